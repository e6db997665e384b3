/*
 * Walks the words that are there already, as getopt would, until it is known what the last one is:
 * an option, the value of one, or a word. What that may be is said by its name in the help (KIND,
 * NAMESPACE, FILE, text|json) or by the option (--policy, --controllers).
 */
#include "cli/complete/complete.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/complete/complete_names.h"
#include "cli/complete/help.h"
#include "cli/options.h"
#include "cli/run/run_flags.h"
#include "control/gates.h"
#include "control/inspect/explain.h"
#include "control/install.h"
#include "decide/vertical/estimator/estimator.h"
#include "sim/replay/replay.h"

#define COMPLETE_OPTIONS_MAX 192 /* of a command with the flags of the controllers */
#define COMPLETE_WORDS_MAX 64    /* beside the options; those after are of the last kind */

struct complete_option {
    td_str name;
    td_str value; /* its name in the help */
    td_str text;
    char letter;
    bool has_value;
    bool is_switch; /* of the controllers: --name or --name=false */
};

struct complete {
    struct td_arena arena;
    struct td_help help;
    struct complete_option options[COMPLETE_OPTIONS_MAX];
    size_t option_count;
    td_str words[COMPLETE_WORDS_MAX]; /* beside the options */
    size_t word_count;
    struct td_complete_where where;
    td_str typed; /* of the value that is being typed, what stands so far */
    td_str kept;  /* what each candidate begins with: the list before its last comma */
    int directive;
};

void td_complete_print(const char *typed, const char *candidate, const char *meaning)
{
    if (strncmp(candidate, typed, strlen(typed)) == 0) {
        (void)printf("%s%s%s\n", candidate, meaning[0] != '\0' ? "\t" : "", meaning);
    }
}

void td_complete_end(int directive)
{
    (void)printf(":%d\n", directive);
}

/* ---- What a value may be ---- */

static void complete_offer(const struct complete *run, td_str candidate, td_str meaning)
{
    if (td_str_starts_with(candidate, run->typed)) {
        (void)printf("%.*s%.*s%s%.*s\n", TD_STR_ARG(run->kept), TD_STR_ARG(candidate),
                     meaning.len > 0 ? "\t" : "", TD_STR_ARG(meaning));
    }
}

/* A list parted by commas: what is typed is its last item. */
static void complete_in_list(struct complete *run)
{
    size_t at = run->typed.len;
    while (at > 0 && run->typed.ptr[at - 1] != ',') {
        at--;
    }
    run->kept = td_str_slice(run->typed, 0, at);
    run->typed = td_str_slice(run->typed, at, run->typed.len);
    run->directive |= TD_COMPLETE_NO_SPACE;
}

static void complete_controllers(struct complete *run)
{
    complete_in_list(run);
    for (int i = 0; i < TD_CONTROLLER_COUNT; i++) {
        complete_offer(run, td_str_from(td_controller_name((enum td_controller_kind)i)),
                       TD_STR_EMPTY);
    }
}

static void complete_gates(struct complete *run)
{
    const struct td_controllers_options options = td_controllers_options_default();
    complete_in_list(run);
    for (size_t i = 0; i < TD_GATE_COUNT; i++) {
        struct td_gate gate = td_gate_at(&options, i);
        complete_offer(run, td_arena_format(&run->arena, "%s=true", gate.name),
                       td_str_from(gate.stage));
        complete_offer(run, td_arena_format(&run->arena, "%s=false", gate.name),
                       td_str_from(gate.stage));
    }
}

static void complete_parts(struct complete *run)
{
    complete_in_list(run);
    for (int i = 0; i < TD_INSTALL_PARTS; i++) {
        complete_offer(run, td_str_from(td_install_part_name((enum td_install_part)i)),
                       TD_STR_EMPTY);
    }
}

static void complete_estimators(struct complete *run)
{
    const struct td_estimator *row;
    for (size_t i = 0; (row = td_estimator_at(i)) != NULL; i++) {
        complete_offer(run, td_str_from(row->name), td_str_from(row->title));
    }
}

static void complete_policies(struct complete *run)
{
    struct td_replay_policy policy;
    complete_in_list(run);
    for (size_t i = 0; td_replay_policy_at(i, &policy); i++) {
        complete_offer(run, td_str_from(policy.name), td_str_from(policy.title));
    }
}

static void complete_names(struct complete *run, td_str kind)
{
    td_auto_buf names = td_buf_capped(TD_JSON_BYTES_MAX);
    td_complete_names(&run->arena, &run->where, kind, &names);
    td_str rest = td_buf_str(&names);
    for (td_str name; td_help_next_line(&rest, &name);) {
        complete_offer(run, name, TD_STR_EMPTY);
    }
}

/* KIND, or KIND/NAME once the slash is there. */
static void complete_kinds(struct complete *run)
{
    size_t slash = td_str_find(run->typed, '/', 0);
    if (slash < run->typed.len) {
        run->kept = td_str_slice(run->typed, 0, slash + 1);
        run->typed = td_str_slice(run->typed, slash + 1, run->typed.len);
        complete_names(run, td_str_slice(run->kept, 0, slash));
        return;
    }
    const char *kind;
    for (size_t i = 0; (kind = td_explain_kind_at(i)) != NULL; i++) {
        complete_offer(run, td_str_from(kind), TD_STR_EMPTY);
    }
}

static void complete_objects(struct complete *run)
{
    if (run->word_count > 0) {
        complete_names(run, run->words[0]);
    }
}

static void complete_namespaces(struct complete *run)
{
    complete_names(run, TD_STR("namespace"));
}

static void complete_files(struct complete *run)
{
    run->directive &= ~TD_COMPLETE_NO_FILES;
}

static void complete_folders(struct complete *run)
{
    run->directive = TD_COMPLETE_FOLDERS;
}

/* By the name of an option, or of a value in the help. */
static const struct complete_source {
    const char *name;
    void (*offer)(struct complete *run);
} complete_sources[] = {
    {"controllers", complete_controllers},
    {"estimator", complete_estimators},
    {"feature-gates", complete_gates},
    {"only", complete_parts},
    {"policy", complete_policies},
    {"DIR", complete_folders},
    {"FILE", complete_files},
    {"KIND", complete_kinds},
    {"NAME", complete_objects}, /* beside KIND; options that take one are below */
    {"NAMESPACE", complete_namespaces},
    {"SCENARIO", complete_files},
    {"TRACE", complete_files},
};

static bool complete_by_name(struct complete *run, td_str name)
{
    for (size_t i = 0; i < TD_COUNT(complete_sources); i++) {
        if (td_str_equal(name, td_str_from(complete_sources[i].name))) {
            complete_sources[i].offer(run);
            return true;
        }
    }
    return false;
}

static bool complete_is_choice(td_str word)
{
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < 'a' || word.ptr[i] > 'z') {
            return false;
        }
    }
    return word.len > 0;
}

/* "text|json|yaml", and of "ADDR|off" the one that is no name of a value. */
static void complete_choices(struct complete *run, td_str value)
{
    while (value.len > 0) {
        size_t end = td_str_find(value, '|', 0);
        td_str word = td_str_slice(value, 0, end);
        value = td_str_slice(value, end < value.len ? end + 1 : end, value.len);
        if (complete_is_choice(word)) {
            complete_offer(run, word, TD_STR_EMPTY);
        }
    }
}

/* "table, json or yaml (table)": what a FORMAT may be is said where it is explained. */
static void complete_format(struct complete *run, td_str text)
{
    for (td_str word; td_help_next_word(&text, &word);) {
        bool goes_on = td_str_ends_with(word, TD_STR(","));
        word = goes_on ? td_str_slice(word, 0, word.len - 1) : word;
        if (!complete_is_choice(word)) {
            return;
        }
        if (!td_str_equal(word, TD_STR("or"))) {
            complete_offer(run, word, TD_STR_EMPTY);
        }
    }
}

static void complete_value(struct complete *run, const struct complete_option *option)
{
    run->directive = TD_COMPLETE_NO_FILES;
    bool is_namespace = td_str_ends_with(option->name, TD_STR("namespace"));
    if (option->is_switch) {
        complete_choices(run, TD_STR("true|false"));
    } else if (is_namespace) {
        complete_namespaces(run);
    } else if (td_str_ends_with(option->name, TD_STR("file")) ||
               td_str_equal(option->name, TD_STR("kubeconfig"))) {
        complete_files(run);
    } else if (td_str_equal(option->value, TD_STR("FORMAT"))) {
        complete_format(run, option->text);
    } else if (!complete_by_name(run, option->name) &&
               !td_str_equal(option->value, TD_STR("NAME")) &&
               !complete_by_name(run, option->value)) {
        complete_choices(run, option->value);
    }
}

/* ---- Words beside the options ---- */

/* "NAME" of "NAME", "[SCENARIO]" or "FILE...", else empty. */
static td_str complete_placeholder(td_str word)
{
    bool is_optional = td_str_starts_with(word, TD_STR("[")) && td_str_ends_with(word, TD_STR("]"));
    word = is_optional ? td_str_slice(word, 1, word.len - 1) : word;
    word = td_str_ends_with(word, TD_STR("...")) ? td_str_slice(word, 0, word.len - 3) : word;
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < 'A' || word.ptr[i] > 'Z') {
            return TD_STR_EMPTY;
        }
    }
    bool is_options = td_str_equal(word, TD_STR("OPTIONS")) || td_str_equal(word, TD_STR("FLAGS"));
    return is_options ? TD_STR_EMPTY : word;
}

/* The usage names what follows: word by word, the last with "..." for all others. */
static td_str complete_expected(const struct complete *run)
{
    td_str usage = TD_STR_EMPTY;
    size_t at = 0;
    for (size_t i = 0; i < run->help.block_count && usage.len == 0; i++) {
        usage = run->help.blocks[i].kind == TD_HELP_USAGE ? run->help.blocks[i].text : usage;
    }
    td_str before = TD_STR_EMPTY;
    for (td_str word; td_help_next_word(&usage, &word); before = word) {
        bool is_value =
            (td_str_starts_with(before, TD_STR("[-")) || td_str_starts_with(before, TD_STR("-"))) &&
            !td_str_ends_with(before, TD_STR("]")) &&
            !td_str_ends_with(word, TD_STR("...")); /* of an option */
        td_str name = is_value ? TD_STR_EMPTY : complete_placeholder(word);
        if (name.len == 0) {
            continue;
        }
        if (at == run->word_count || td_str_ends_with(word, TD_STR("..."))) {
            return name;
        }
        at++;
    }
    return TD_STR_EMPTY;
}

/* ---- The line ---- */

static void complete_add(struct complete *run, struct complete_option option)
{
    if (run->option_count < COMPLETE_OPTIONS_MAX) {
        run->options[run->option_count++] = option;
    }
}

/* The rows of the command, and of those whose help says so the flags of the controllers: all of
 * them in `tandem run`, elsewhere those that say how they decide. */
static void complete_list_options(struct complete *run, const struct td_options *options)
{
    for (size_t i = 0; i < options->count; i++) {
        const struct td_option *row = &options->rows[i];
        td_str name = td_str_from(row->name);
        const struct td_help_option *said = td_help_find(&run->help, name);
        complete_add(run, (struct complete_option){.name = name,
                                                   .value = said ? said->value : TD_STR_EMPTY,
                                                   .text = said ? said->text : TD_STR_EMPTY,
                                                   .letter = row->letter,
                                                   .has_value = row->has_value});
    }
    complete_add(run, (struct complete_option){.name = TD_STR("help"),
                                               .value = TD_STR_EMPTY,
                                               .text = TD_STR("print help"),
                                               .letter = 'h'});
    bool is_run = strcmp(options->command, "run") == 0;
    struct td_run_flag flag;
    bool has_flags = is_run || td_help_find(&run->help, TD_STR("FLAG")) != NULL;
    for (size_t i = 0; has_flags && td_run_flags_at(i, &flag); i++) {
        td_str name = td_str_from(flag.name);
        const struct td_help_option *said = is_run ? td_help_find(&run->help, name) : NULL;
        if (is_run || flag.is_of_decisions) {
            complete_add(run, (struct complete_option){.name = name,
                                                       .value = said ? said->value : TD_STR_EMPTY,
                                                       .text = td_str_from(flag.help),
                                                       .has_value = !flag.is_switch,
                                                       .is_switch = flag.is_switch});
        }
    }
}

static const struct complete_option *complete_find(const struct complete *run, td_str word)
{
    bool is_long = td_str_starts_with(word, TD_STR("--"));
    td_str name = is_long ? td_str_slice(word, 2, td_str_find(word, '=', 0)) : TD_STR_EMPTY;
    for (size_t i = 0; i < run->option_count; i++) {
        const struct complete_option *option = &run->options[i];
        if (is_long ? td_str_equal(option->name, name)
                    : option->letter != 0 && option->letter == word.ptr[1]) {
            return option;
        }
    }
    return NULL;
}

static void complete_note(struct complete *run, const struct complete_option *option,
                          const char *value)
{
    if (td_str_equal(option->name, TD_STR("kubeconfig"))) {
        run->where.kubeconfig = value;
    } else if (td_str_equal(option->name, TD_STR("context"))) {
        run->where.context = value;
    } else if (td_str_equal(option->name, TD_STR("namespace"))) {
        run->where.namespace = td_str_from(value);
    }
}

/* What stands before the last word. Returns the option whose value that one is, or NULL. */
static const struct complete_option *complete_walk(struct complete *run, int count, char **words,
                                                   bool *ret_is_over)
{
    const struct complete_option *open = NULL;
    for (int i = 0; i < count; i++) {
        td_str word = td_str_from(words[i]);
        bool is_option = !open && !*ret_is_over && word.len > 1 && word.ptr[0] == '-';
        const struct complete_option *option = is_option ? complete_find(run, word) : NULL;
        size_t equals = td_str_find(word, '=', 0);
        if (open) {
            complete_note(run, open, words[i]);
            open = NULL;
        } else if (td_str_equal(word, TD_STR("--"))) {
            *ret_is_over = true;
        } else if (!is_option && run->word_count < COMPLETE_WORDS_MAX) {
            run->words[run->word_count++] = word;
        } else if (option && option->has_value && equals < word.len) {
            complete_note(run, option, words[i] + equals + 1);
        } else if (option && option->has_value && (word.len == 2 || word.ptr[1] == '-')) {
            open = option;
        }
    }
    return open;
}

static void complete_options(const struct complete *run)
{
    for (size_t i = 0; i < run->option_count; i++) {
        const struct complete_option *option = &run->options[i];
        char name[TD_OPTION_NAME_BYTES_MAX];
        char text[TD_ERROR_MESSAGE_BYTES];
        (void)snprintf(name, sizeof(name), "--%.*s", TD_STR_ARG(option->name));
        (void)snprintf(text, sizeof(text), "%.*s", TD_STR_ARG(option->text)); /* cut, if too long */
        td_complete_print(run->typed.ptr, name, text);
    }
}

/* The last word. */
static void complete_last(struct complete *run, const struct complete_option *open, bool is_over,
                          char *last)
{
    td_str word = td_str_from(last);
    size_t equals = td_str_find(word, '=', 0);
    run->typed = word;
    if (open) {
        complete_value(run, open);
    } else if (is_over || word.len == 0 || word.ptr[0] != '-') {
        (void)complete_by_name(run, complete_expected(run));
    } else if (equals < word.len) {
        const struct complete_option *option = complete_find(run, word);
        run->typed = td_str_slice(word, equals + 1, word.len);
        if (option && (option->has_value || option->is_switch)) {
            complete_value(run, option);
        }
    } else {
        complete_options(run);
    }
}

int td_complete(const struct td_options *options, int count, char **words)
{
    struct complete run = {.directive = TD_COMPLETE_NO_FILES, .kept = TD_STR_EMPTY};
    bool is_over = false; /* by "--" */
    td_arena_init(&run.arena, TD_TREE_ARENA_BYTES_MAX);
    run.help = td_help_read(&run.arena, options->help);
    complete_list_options(&run, options);
    if (count > 0) {
        const struct complete_option *open = complete_walk(&run, count - 1, words, &is_over);
        complete_last(&run, open, is_over, words[count - 1]);
    }
    td_complete_end(run.directive);
    td_arena_done(&run.arena);
    return TD_EXIT_DONE;
}
