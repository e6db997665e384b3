/*
 * One copy of each distinct string, counted: a cluster repeats the same few names, labels and
 * images, and equal interned strings are equal pointers. A reference is taken with td_intern_ref
 * and given back with td_intern_unref; the last one frees the copy. Born with a maximum count of
 * strings. One owner, no locking.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"

struct td_intern; /* the table */

struct td_intern *td_intern_new(size_t count_max);
void td_intern_free(struct td_intern *table);

/* The interned copy of `text` (NUL-terminated, stable until its last unref), with one reference
 * added; a NULL ptr when the table is at its maximum. */
td_str td_intern_ref(struct td_intern *table, td_str text);

/* Give back one reference of a string that td_intern_ref returned; the empty slice with NULL ptr is
 * accepted. */
void td_intern_unref(struct td_intern *table, td_str interned);

size_t td_intern_count(const struct td_intern *table);
