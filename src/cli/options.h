/*
 * The options of a command as a table: a row says what an option is called and where its value
 * goes. Help, unknown options and missing values are handled for all of them alike.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define TD_OPTIONS_MAX 24            /* of one command */
#define TD_OPTION_NAME_BYTES_MAX 128 /* with its dashes */

/* As the first argument of a command: it says what it has instead of doing it, as after --help. The
 * words behind the first are those of a line that is being typed (complete/complete.h). */
#define TD_OPTIONS_COMPLETE "--help=complete"
#define TD_OPTIONS_MAN "--help=man"

struct td_option {
    const char *name;
    char letter; /* 0: it has none */
    bool has_value;
    size_t offset; /* of the place in the command's struct */
    /* TD_EXIT_DONE, or TD_EXIT_FAILED after one line; `value` is NULL without one. */
    int (*take)(void *place, const char *value);
};

#define TD_OPTION(name, letter, type, member, take)                                                \
    {                                                                                              \
        (name), (letter), true, offsetof(type, member), (take)                                     \
    }
#define TD_OPTION_TEXT(name, letter, type, member)                                                 \
    TD_OPTION(name, letter, type, member, td_option_take_text)
#define TD_OPTION_FLAG(name, letter, type, member)                                                 \
    {                                                                                              \
        (name), (letter), false, offsetof(type, member), td_option_take_flag                       \
    }

int td_option_take_text(void *place, const char *value); /* a const char * */
int td_option_take_flag(void *place, const char *value); /* a bool, which becomes true */

struct td_options {
    const char *command;
    const char *help;
    const struct td_option *rows;
    size_t count;
};

/* Is a command asked about itself? Then td_options_parse answers, whatever else is in the line. */
static inline bool td_options_is_question(int argc, char **argv)
{
    return argc > 1 && strncmp(argv[1], "--help=", strlen("--help=")) == 0;
}

/* -1: go on, the other words begin at optind; else the status to end with: help was printed, or
 * TD_EXIT_FAILED after one line. */
int td_options_parse(const struct td_options *options, void *run, int argc, char **argv);
