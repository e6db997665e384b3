/*
 * Tables for terminals of any width: columns as wide as their widest cell; those that do not fit
 * are dropped from the right and named below the table; a last column of sentences is cut at the
 * end of a word instead. Pure: the caller knows the terminal (cli/output.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define TD_TABLE_GAP                                                                               \
    2 /* columns of the terminal between two of the table; one is before the first */

struct td_table_options {
    size_t width;       /* columns of the terminal; 0: any */
    bool has_utf8;      /* else all of it is ASCII */
    uint32_t right;     /* bit i: column i is aligned to the right */
    bool has_sentences; /* in the last column */
};

/* How many columns fit, at least the first. */
size_t td_table_fit(const size_t *widths, size_t count, size_t width);

/* Lines with tabs are rows, a tab between two cells, the titles first; others are notes, which are
 * folded at the ends of words. Appended; no line ends in spaces. */
void td_table_write(td_str text, const struct td_table_options *options, struct td_buf *out);
