/*
 * Texts on the heap, for what outlives a turn: a copy followed by a NUL that is not counted. The
 * owner frees it. What has several texts may keep them behind its structure, in one block.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/str.h"

td_str td_text_copy(td_str text);
void td_text_free(td_str text);
/* A copy takes the place of what was owned; an equal text stays where it is, so that maps may
 * borrow it as their key. */
void td_text_set(td_str *owned, td_str text);

/* Copies `text` to *at, without a NUL, and moves *at behind it. */
static inline td_str td_text_place(char **at, td_str text)
{
    td_str copy = {.ptr = *at, .len = text.len};
    *at = text.len > 0 ? (char *)memcpy(*at, text.ptr, text.len) + text.len : *at;
    return copy;
}

/* The same for the one text behind a structure: td_text_behind(item + 1, key). */
td_str td_text_behind(void *end, td_str text);

/* In decimal digits, somewhere in the buffer. */
#define TD_INT64_DIGITS_MAX 20
td_str td_text_int64(char buffer[TD_INT64_DIGITS_MAX], int64_t value);
