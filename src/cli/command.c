#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"

int td_command_fail(const char *format, ...)
{
    va_list args;
    (void)fputs("tandem: ", stderr); /* nowhere else to report that stderr is closed */
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    return TD_EXIT_FAILED;
}

/* "--name" of the option that takes or lacks a value. */
static const char *command_name_of(const struct option *options, int value)
{
    while (options->name && options->val != value) {
        options++;
    }
    return options->name;
}

int td_command_bad_option(const char *command, const struct option *options, int found, char **argv)
{
    const char *word = argv[optind - 1];
    const char *name = optopt != 0 ? command_name_of(options, optopt) : NULL;
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
    size_t count = 0;
    while (options[count].name) {
        count++;
    }
    given = td_str_slice(given, 2, td_str_find(given, '=', 0));
    const char *meant = td_str_suggest(given, options, count, sizeof(options[0]));
    return meant ? td_command_fail("%s: --%.*s: unknown option; did you mean --%s?", command,
                                   TD_STR_ARG(given), meant)
                 : td_command_fail("%s: --%.*s: unknown option; see 'tandem %s --help'", command,
                                   TD_STR_ARG(given), command);
}
