/*
 * The table of a command's options made into what getopt_long wants, and the one line that says
 * which option was wrong.
 */
#include "cli/options.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/complete/complete.h"
#include "cli/complete/man.h"

#define OPTIONS_LETTERS_MAX (2 * TD_OPTIONS_MAX + 3)

int td_option_take_text(void *place, const char *value)
{
    *(const char **)place = value;
    return TD_EXIT_DONE;
}

int td_option_take_flag(void *place, const char *value)
{
    (void)value; /* it has none */
    *(bool *)place = true;
    return TD_EXIT_DONE;
}

/* What getopt_long did not take, `found` is what it returned: one line that names the option, with
 * the one that was meant or what it needs. */
static int options_refuse(const struct td_options *options, const struct option *known, int found,
                          char **argv)
{
    const char *command = options->command;
    const char *word = argv[optind - 1];
    const char *name = NULL; /* of the option that takes or lacks a value */
    for (size_t i = 0; optopt != 0 && i <= options->count; i++) {
        name = known[i].val == optopt ? known[i].name : name;
    }
    if (found == ':') {
        return td_command_fail("%s: %s%s: needs a value; see 'tandem %s --help'", command,
                               name ? "--" : "", name ? name : word, command);
    }
    if (name) {
        return td_command_fail("%s: --%s: takes no value; see 'tandem %s --help'", command, name,
                               command);
    }
    if (optopt != 0) {
        return td_command_fail("%s: -%c: unknown option; see 'tandem %s --help'", command, optopt,
                               command);
    }
    td_str given = td_str_from(word);
    given = td_str_slice(given, 2, td_str_find(given, '=', 0));
    const char *meant = td_str_suggest(given, known, options->count + 1, sizeof(known[0]));
    return meant ? td_command_fail("%s: --%.*s: unknown option; did you mean --%s?", command,
                                   TD_STR_ARG(given), meant)
                 : td_command_fail("%s: --%.*s: unknown option; see 'tandem %s --help'", command,
                                   TD_STR_ARG(given), command);
}

/* The rows and --help as getopt_long wants them: an option without a letter has a number of its
 * own. A ':' at the begin leaves the messages to us. */
static void options_list(const struct td_options *options, struct option *ret,
                         char letters[OPTIONS_LETTERS_MAX])
{
    size_t len = 0;
    letters[len++] = ':';
    letters[len++] = 'h';
    for (size_t i = 0; i < options->count; i++) {
        const struct td_option *row = &options->rows[i];
        ret[i] = (struct option){row->name, row->has_value ? required_argument : no_argument, NULL,
                                 row->letter != 0 ? row->letter : UINT8_MAX + 1 + (int)i};
        if (row->letter != 0) {
            letters[len++] = row->letter;
            letters[len] = ':';
            len += row->has_value;
        }
    }
    letters[len] = '\0';
    ret[options->count] = (struct option){"help", no_argument, NULL, 'h'};
    ret[options->count + 1] = (struct option){0};
}

int td_options_parse(const struct td_options *options, void *run, int argc, char **argv)
{
    struct option known[TD_OPTIONS_MAX + 2];
    char letters[OPTIONS_LETTERS_MAX];
    td_assert(options->count <= TD_OPTIONS_MAX);
    if (argc > 1 && strcmp(argv[1], TD_OPTIONS_COMPLETE) == 0) {
        return td_complete(options, argc - 2, argv + 2);
    }
    if (argc > 1 && strcmp(argv[1], TD_OPTIONS_MAN) == 0) {
        return td_man_print(options);
    }
    options_list(options, known, letters);
    opterr = 0; /* one line of ours instead of getopt's */
    for (int found; (found = getopt_long(argc, argv, letters, known, NULL)) != -1;) {
        if (found == 'h') {
            (void)fputs(options->help, stdout); /* main looks at the stream's state */
            return TD_EXIT_DONE;
        }
        size_t at = 0;
        while (at < options->count && known[at].val != found) {
            at++;
        }
        if (at == options->count) {
            return options_refuse(options, known, found, argv);
        }
        const struct td_option *row = &options->rows[at];
        int status = row->take((char *)run + row->offset, row->has_value ? optarg : NULL);
        if (status != TD_EXIT_DONE) {
            return status;
        }
    }
    return -1;
}
