/*
 * `tandem replay`: reads traces, runs each chosen policy over each of them (sim/replay/replay.h),
 * and prints the figures side by side. Row 0 of the scores is always as-was, since every cost is
 * measured by it.
 */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "cli/bar.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report_file.h"
#include "kube/quantity/quantity.h"
#include "sim/replay/replay.h"

#define REPLAY_POLICIES_MAX 16
#define REPLAY_DEFAULT "as-was,upstream,krr,adaptive,track,oracle"
#define REPLAY_NAMES_BYTES_MAX ((size_t)1024)
#define REPLAY_HELP_INDENT 4
#define REPLAY_HELP_WIDTH 80

static const char replay_help[] = /* of the names of all policies */
    "back-test request policies on recorded usage, side by side\n\n"
    "  tandem replay traces/*.csv                 for example: all default policies\n"
    "  tandem replay cpu.json memory.json --policy upstream,adaptive --per-container\n"
    "  tandem replay traces/ --policy upstream,adaptive --report replay.html\n\n"
    "usage: tandem replay [OPTIONS] TRACE...\n\n"
    "  --policy A,B,...      policies to compare\n"
    "                        (" REPLAY_DEFAULT "), of\n"
    "    %.*s\n"
    "  --per-container       print the figures of each container too\n"
    "  --memory-limit RATIO  memory limit of containers, as a multiple of the\n"
    "                        request (1)\n"
    "  --report FILE         write one HTML file with scores, plots and decisions\n"
    "                        of all policies side by side (docs/report.md)\n"
    "  -o, --output FORMAT   table, json or yaml (table)\n"
    "  -q, --quiet           no progress bar\n\n"
    "Reads CSV files, JSON responses of Prometheus range queries, and folders of\n"
    "both; '-' is standard input. Policies learn from the first day of each trace,\n"
    "which is not evaluated. Guide: docs/replay.md\n";

struct replay_policies {
    struct td_replay_policy items[REPLAY_POLICIES_MAX];
    size_t count;
};

struct replay {
    struct replay_policies policies;
    enum td_output output;
    bool is_per_container;
    int64_t limit_permille;  /* of the memory limit to the request */
    const char *report_path; /* NULL: no report */
    struct td_arena arena;   /* of the command line */
    td_str command;
    bool is_quiet;
    struct td_trace_set set;
    struct td_replay_score
        *scores; /* a row for as-was, then one for each policy; a column a trace */
    struct td_replay_score *totals; /* of each row */
    int64_t windows;
    int64_t censored;
    struct td_bar bar;
};

static int replay_read(const char *path, void *context, struct td_error *err)
{
    struct replay *run = context;
    td_auto_arena arena = td_arena_capped(2 * TD_TRACE_BYTES_MAX);
    td_str text;
    int code = td_file_read(path, &arena, TD_TRACE_BYTES_MAX, &text, err);
    return code < 0 ? code : td_trace_read(&run->set, td_str_from(path), text, err);
}

static void replay_progress(struct replay *run, size_t done, size_t total)
{
    if (td_bar_is_due(&run->bar)) {
        double share = (double)done / (double)total;
        td_bar_draw(&run->bar, "replaying", share, "%.0f s left",
                    (double)td_bar_passed(&run->bar) / (double)TD_SECOND * (1 - share) / share);
    }
}

static struct td_replay_score *replay_score(struct replay *run, size_t row, size_t trace)
{
    return &run->scores[row * run->set.traces.count + trace];
}

/* Row 0 is as-was, which every cost is measured by. */
static void replay_run(struct replay *run)
{
    struct td_replay_policy as_was;
    (void)td_replay_policy_find(TD_STR("as-was"), &as_was); /* it is there */
    size_t traces = run->set.traces.count;
    size_t rows = run->policies.count + 1;
    size_t done = 0;
    run->scores = td_alloc_zero(rows * traces, sizeof(run->scores[0]));
    run->totals = td_alloc_zero(rows, sizeof(run->totals[0]));
    for (size_t t = 0; t < traces; t++) {
        const struct td_trace *trace = &run->set.traces.items[t];
        int64_t windows;
        int64_t censored;
        td_replay_count(trace, &windows, &censored);
        run->windows += windows;
        run->censored += censored;
        for (size_t row = 0; row < rows; row++) {
            struct td_replay_policy policy = row == 0 ? as_was : run->policies.items[row - 1];
            policy.limit_permille = run->limit_permille;
            td_replay_run(&policy, trace, replay_score(run, row, t));
            td_replay_score_add(&run->totals[row], replay_score(run, row, t));
            done += trace->count;
            replay_progress(run, done, run->set.window_count * rows);
        }
    }
    td_bar_clear(&run->bar);
}

/* A cell of at least `width` columns; "-" where there is no figure. */
static void print_cell(double value, double factor, int decimals, const char *unit, int width)
{
    char text[64];
    if (isnan(value)) {
        (void)snprintf(text, sizeof(text), "-");
    } else {
        (void)snprintf(text, sizeof(text), "%.*f%s", decimals, value * factor, unit);
    }
    (void)printf("%*s", width, text);
}

static void print_figures(const struct td_replay_score *score, const struct td_replay_score *as_was)
{
    struct td_replay_figures figures = td_replay_figures(score, as_was);
    print_cell(figures.cpu_slack, 100, 1, "%", 11);
    print_cell(figures.cpu_overrun, 100, 2, "%", 9);
    print_cell(figures.cpu_excess, 100, 2, "%", 8);
    print_cell(figures.throttled, 100, 1, "%", 11);
    print_cell(figures.memory_slack, 100, 1, "%", 12);
    print_cell(figures.memory_overrun, 100, 2, "%", 9);
    print_cell(figures.ooms_per_day, 1, 3, "", 10);
    (void)printf("%10lld", (long long)score->containers_oom);
    print_cell(figures.changes_per_day, 1, 2, "", 13);
    print_cell(figures.cost, 100, 0, "%", 7);
    (void)putchar('\n'); /* main looks at the stream's state */
}

static void print_header(const char *first, int width)
{
    (void)printf("%-*s%11s%9s%8s%11s%12s%9s%10s%10s%13s%7s\n", width, first, "CPU slack", "overrun",
                 "excess", "throttled", "MEM slack", "overrun", "OOMs/day", "with OOM",
                 "changes/day", "cost");
}

/* Bytes of a name that fit the column, from its end: that is where names differ. */
static const char *shortened(td_str name, char *out, size_t size)
{
    td_str end = name.len < size - 4 ? name : td_str_slice(name, name.len - (size - 8), name.len);
    (void)snprintf(out, size, "%s%.*s", end.len < name.len ? "..." : "", TD_STR_ARG(end));
    return out;
}

static void print_containers(struct replay *run)
{
    for (size_t t = 0; t < run->set.traces.count; t++) {
        char name[100];
        (void)printf("\n%s\n", shortened(run->set.traces.items[t].name, name, sizeof(name)));
        for (size_t row = 1; row <= run->policies.count; row++) {
            (void)printf("  %-19s", run->policies.items[row - 1].title);
            print_figures(replay_score(run, row, t), replay_score(run, 0, t));
        }
    }
    (void)putchar('\n'); /* main looks at the stream's state */
}

static void print_table(struct replay *run)
{
    print_header("", 21);
    if (run->is_per_container) {
        print_containers(run);
        (void)puts("all"); /* main looks at the stream's state */
    }
    for (size_t row = 1; row <= run->policies.count; row++) {
        (void)printf(" %-20s", run->policies.items[row - 1].title);
        print_figures(&run->totals[row], &run->totals[0]);
    }
    (void)printf("%zu container%s, %.1f container-days after the first day of each. overrun = "
                 "share of windows with usage above the request.\n%lld of %lld window%s %s their "
                 "limit (censored): demand may have been higher.\n",
                 run->set.traces.count, TD_PLURAL(run->set.traces.count),
                 td_replay_figures(&run->totals[0], &run->totals[0]).container_days,
                 (long long)run->censored, (long long)run->windows, TD_PLURAL(run->windows),
                 run->censored == 1 ? "touches" : "touch");
}

static void set_share(struct td_arena *arena, struct td_json *object, const char *key, double value)
{
    td_json_set(arena, object, td_str_from(key),
                isnan(value) ? td_json_new_null(arena) : td_json_new_double(arena, value));
}

static void set_count(struct td_arena *arena, struct td_json *object, const char *key,
                      int64_t value)
{
    td_json_set_int64(arena, object, td_str_from(key), value);
}

static void fill_figures(struct td_arena *arena, struct td_json *object,
                         const struct td_replay_score *score, const struct td_replay_score *as_was)
{
    struct td_replay_figures figures = td_replay_figures(score, as_was);
    set_share(arena, object, "cpuSlack", figures.cpu_slack);
    set_share(arena, object, "cpuOverrun", figures.cpu_overrun);
    set_share(arena, object, "cpuExcess", figures.cpu_excess);
    set_share(arena, object, "throttled", figures.throttled);
    set_share(arena, object, "memorySlack", figures.memory_slack);
    set_share(arena, object, "memoryOverrun", figures.memory_overrun);
    set_share(arena, object, "oomsPerDay", figures.ooms_per_day);
    set_count(arena, object, "ooms", score->ooms);
    set_count(arena, object, "tasksWithOom", score->containers_oom);
    set_share(arena, object, "changesPerDay", figures.changes_per_day);
    set_count(arena, object, "changes", score->changes);
    set_share(arena, object, "cpuChangesPerDay", figures.cpu_changes_per_day);
    set_share(arena, object, "cost", figures.cost);
    set_share(arena, object, "containerDays", figures.container_days);
    set_count(arena, object, "windows", score->windows);
}

static struct td_json *policy_json(struct td_arena *arena, struct replay *run, size_t row)
{
    struct td_json *object = td_json_new_object(arena);
    const char *name = run->policies.items[row - 1].name;
    td_json_set_str(arena, object, TD_STR("policy"), td_str_from(name));
    fill_figures(arena, object, &run->totals[row], &run->totals[0]);
    if (run->is_per_container) {
        struct td_json *list = td_json_new_array(arena);
        for (size_t t = 0; t < run->set.traces.count; t++) {
            struct td_json *item = td_json_new_object(arena);
            td_json_set_str(arena, item, TD_STR("container"), run->set.traces.items[t].name);
            fill_figures(arena, item, replay_score(run, row, t), replay_score(run, 0, t));
            td_json_append(list, item);
        }
        td_json_set(arena, object, TD_STR("containers"), list);
    }
    return object;
}

static int print_report(struct replay *run)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *report = td_json_new_object(&arena);
    struct td_json *list = td_json_new_array(&arena);
    set_count(&arena, report, "containers", (int64_t)run->set.traces.count);
    set_count(&arena, report, "windows", run->windows);
    set_count(&arena, report, "censoredWindows", run->censored);
    for (size_t row = 1; row <= run->policies.count; row++) {
        td_json_append(list, policy_json(&arena, run, row));
    }
    td_json_set(&arena, report, TD_STR("policies"), list);
    return td_output_print(report, run->output);
}

static int replay_write_report(struct replay *run)
{
    td_auto_buf data = td_buf_capped(TD_REPORT_BYTES_MAX);
    td_str title = TD_STR("tandem replay");
    struct td_error err = TD_ERROR_INIT;
    for (size_t i = 0; i < run->policies.count; i++) {
        run->policies.items[i].limit_permille = run->limit_permille;
    }
    const struct td_report_head head = td_report_head(title, run->command);
    const struct td_report_replay replay = {
        .set = &run->set,
        .policies = run->policies.items,
        .policy_count = run->policies.count,
        .scores = run->scores,
        .totals = run->totals,
        .windows = run->windows,
        .censored = run->censored,
    };
    td_report_replay(&head, &replay, &data);
    return td_report_save(run->report_path, title, &data, &err) == TD_OK
               ? TD_EXIT_DONE
               : td_command_fail("replay: %s", err.message);
}

static int replay_files(struct replay *run, int count, char **paths)
{
    struct td_error err = TD_ERROR_INIT;
    for (int i = 0; i < count; i++) {
        if (td_file_each(paths[i], ".csv,.json", replay_read, run, &err) < 0) {
            return td_command_fail("%s", err.message);
        }
    }
    if (td_trace_set_finish(&run->set, &err) < 0) {
        return td_command_fail("%s", err.message);
    }
    replay_run(run);
    if (run->windows == 0) {
        return td_command_fail("replay: every trace ends within its first day, from which policies "
                               "only learn: nothing to compare");
    }
    if (run->report_path && replay_write_report(run) != TD_EXIT_DONE) {
        return TD_EXIT_FAILED;
    }
    if (run->output != TD_OUTPUT_TABLE) {
        return print_report(run);
    }
    print_table(run);
    return TD_EXIT_DONE;
}

static td_str replay_names(struct td_buf *buf)
{
    td_buf_init(buf, REPLAY_NAMES_BYTES_MAX);
    td_replay_policy_write_names(buf);
    return td_buf_str(buf);
}

static int replay_unknown_policy(td_str word)
{
    struct td_replay_policy known[REPLAY_POLICIES_MAX];
    size_t count = 0;
    while (count < REPLAY_POLICIES_MAX && td_replay_policy_at(count, &known[count])) {
        count++;
    }
    const char *meant = td_str_suggest(word, known, count, sizeof(known[0]));
    if (meant) {
        return td_command_fail("replay: --policy: '%.*s': unknown policy; did you mean %s?",
                               TD_STR_ARG(word), meant);
    }
    td_auto_buf names;
    td_str list = replay_names(&names);
    return td_command_fail("replay: --policy: '%.*s': use %.*s", TD_STR_ARG(word),
                           TD_STR_ARG(list));
}

/* "as-was,krr" */
static int replay_parse_policies(void *place, const char *words)
{
    struct replay_policies *policies = place;
    td_str rest = td_str_from(words);
    policies->count = 0;
    bool is_more = true;
    while (is_more) {
        size_t end = td_str_find(rest, ',', 0);
        td_str word = td_str_trim(td_str_slice(rest, 0, end));
        struct td_replay_policy policy;
        if (!td_replay_policy_find(word, &policy)) {
            return replay_unknown_policy(word);
        }
        if (policies->count == REPLAY_POLICIES_MAX) {
            return td_command_fail("replay: --policy: '%s': more than %d policies", words,
                                   REPLAY_POLICIES_MAX);
        }
        policies->items[policies->count++] = policy;
        is_more = end < rest.len;
        rest = td_str_slice(rest, end + 1, rest.len);
    }
    return TD_EXIT_DONE;
}

/* "1.2": as in the template of a pod whose limit is 20 % above its request. */
static int replay_parse_limit(void *place, const char *text)
{
    td_auto_arena arena = td_arena_capped(TD_OBJECT_BYTES_MAX);
    struct td_quantity ratio;
    int64_t permille = td_quantity_parse(&arena, td_str_from(text), &ratio, NULL) == TD_OK
                           ? td_quantity_milli(&ratio)
                           : 0;
    if (permille < 1000 || permille > TD_REPLAY_LIMIT_PERMILLE_MAX) {
        return td_command_fail("replay: --memory-limit: '%s': not a number from 1 to %d", text,
                               TD_REPLAY_LIMIT_PERMILLE_MAX / 1000);
    }
    *(int64_t *)place = permille;
    return TD_EXIT_DONE;
}

/* Names with commas between them as lines of the help, indented as the first one is. */
static void replay_fold(td_str names, struct td_buf *out)
{
    size_t column = REPLAY_HELP_INDENT;
    while (names.len > 0) {
        size_t comma = td_str_find(names, ',', 0);
        size_t len = comma < names.len ? comma + 1 : names.len;
        bool is_first = column == REPLAY_HELP_INDENT;
        if (!is_first && column + 1 + len > REPLAY_HELP_WIDTH) {
            (void)td_buf_append_format(out, "\n%*s", REPLAY_HELP_INDENT, "");
            column = REPLAY_HELP_INDENT;
        } else if (!is_first) {
            (void)td_buf_append_char(out, ' '); /* looked at when it is printed */
            column++;
        }
        (void)td_buf_append(out, td_str_slice(names, 0, len));
        column += len;
        names = td_str_trim(td_str_slice(names, len, names.len));
    }
}

static int replay_parse_output(void *place, const char *word)
{
    return td_output_parse("replay", word, place);
}

static const struct td_option replay_options[] = {
    TD_OPTION("policy", 0, struct replay, policies, replay_parse_policies),
    TD_OPTION_FLAG("per-container", 0, struct replay, is_per_container),
    TD_OPTION("memory-limit", 0, struct replay, limit_permille, replay_parse_limit),
    TD_OPTION_TEXT("report", 0, struct replay, report_path),
    TD_OPTION("output", 'o', struct replay, output, replay_parse_output),
    TD_OPTION_FLAG("quiet", 'q', struct replay, is_quiet),
};

/* -1: go on. */
static int replay_parse(struct replay *run, int argc, char **argv)
{
    td_auto_buf names;
    td_auto_buf lines = td_buf_capped(TD_JSON_BYTES_MAX);
    td_auto_buf help = td_buf_capped(TD_OBJECT_BYTES_MAX);
    replay_fold(replay_names(&names), &lines);
    (void)td_buf_append_format(&help, replay_help, (int)lines.len, lines.ptr);
    const struct td_options options = {"replay", help.ptr, replay_options,
                                       TD_COUNT(replay_options)};
    (void)replay_parse_policies(&run->policies, REPLAY_DEFAULT); /* all of them are there */
    run->command = td_report_command(&run->arena, argc, argv);
    int status = td_options_parse(&options, run, argc, argv);
    struct td_error err = TD_ERROR_INIT;
    if (status < 0 && optind == argc) {
        return td_command_fail("replay: no traces; for example 'tandem replay traces/*.csv'");
    }
    if (status < 0 && run->report_path && td_report_check(run->report_path, &err) != TD_OK) {
        return td_command_fail("replay: %s", err.message);
    }
    return status;
}

int td_command_replay(int argc, char **argv)
{
    struct replay run = {.is_quiet = false};
    td_arena_init(&run.arena, TD_TREE_ARENA_BYTES_MAX);
    int status = replay_parse(&run, argc, argv);
    if (status >= 0) {
        td_arena_done(&run.arena);
        return status;
    }
    td_bar_begin(&run.bar, run.is_quiet);
    td_trace_set_init(&run.set);
    status = replay_files(&run, argc - optind, argv + optind);
    td_trace_set_done(&run.set);
    td_arena_done(&run.arena);
    td_free(run.scores);
    td_free(run.totals);
    return status;
}
