/*
 * The help of a command, read as what it is: a summary, examples, usage, rows of options and
 * paragraphs. `--help` prints the text; the manual page and the completion of a command are made of
 * its parts, so that the three say the same. Parts are slices of the text, joined lines are the
 * arena's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

enum td_help_kind {
    TD_HELP_EXAMPLES, /* indented, before the usage */
    TD_HELP_USAGE,
    TD_HELP_ROWS, /* indented, behind the usage: "  -n, --name VALUE   what it does" */
    TD_HELP_PARAGRAPH,
};

/* What stands between two empty lines. */
struct td_help_block {
    enum td_help_kind kind;
    td_str text; /* whole lines, as written */
};

/* One option of a row; a row that names two is two of them. */
struct td_help_option {
    char letter;  /* 0: none */
    td_str name;  /* without dashes; of what is no option the word itself: "SCENARIO" */
    td_str value; /* "NAMESPACE", "text|json|yaml"; empty: it takes none */
    td_str text;  /* what it does, in one line */
    bool is_word; /* no option */
};

struct td_help {
    td_str summary;
    struct td_help_block *blocks;
    size_t block_count;
    struct td_help_option *options;
    size_t option_count;
};

struct td_help td_help_read(struct td_arena *arena, const char *text);

/* The rows of a block, from *rest: first what stands at the left, then the description joined into
 * one line. False: there is none any more. */
bool td_help_next_row(struct td_arena *arena, td_str *rest, td_str *ret_head, td_str *ret_text);

/* By its name; NULL when there is none of that name. */
const struct td_help_option *td_help_find(const struct td_help *help, td_str name);

/* The next line of *rest without its end, which is taken off; false at the end. */
bool td_help_next_line(td_str *rest, td_str *ret);

/* The next word of *rest, parted by spaces and line ends; false at the end. */
bool td_help_next_word(td_str *rest, td_str *ret);
