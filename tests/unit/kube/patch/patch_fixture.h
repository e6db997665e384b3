/*
 * For the tests of patches: JSON written with single quotes, results as sorted text, and random
 * documents from a seed.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json/json.h"
#include "support/quoted_json.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define TEXT_BYTES ((size_t)16 << 20)

static inline struct td_json *json(struct td_arena *arena, const char *text)
{
    return quoted_json(arena, text);
}

/* Members sorted, single quotes; NUL-terminated. */
static inline const char *text_of(struct td_arena *arena, const struct td_json *tree)
{
    struct td_json *sorted = td_json_copy(arena, tree, false);
    td_json_sort(arena, sorted);
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    td_json_write(sorted, &(struct td_json_format){.indent = 0}, &text);
    td_str copy = td_arena_copy_str(arena, td_buf_str(&text));
    char *quoted = td_arena_alloc(arena, copy.len + 1);
    for (size_t i = 0; i <= copy.len; i++) {
        quoted[i] = copy.ptr[i] == '"' ? '\'' : copy.ptr[i];
    }
    return quoted;
}

static inline size_t random_below(uint64_t *seed, size_t bound)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (size_t)(*seed % bound);
}

/* Any JSON value of at most `depth` levels, with few names so that documents meet. */
static inline struct td_json *random_json(struct td_arena *arena, uint64_t *seed, size_t depth)
{
    static const char *const names[] = {"a", "b", "c", "d", "0", "~", "x/y"};
    size_t pick = random_below(seed, depth > 0 ? 8 : 5);
    switch (pick) {
    case 0:
        return td_json_new_null(arena);
    case 1:
        return td_json_new_bool(arena, random_below(seed, 2) == 0);
    case 2:
        return td_json_new_int64(arena, (int64_t)random_below(seed, 5));
    case 3:
    case 4:
        return td_json_new_string(arena, td_str_from(names[random_below(seed, 7)]));
    default:
        break;
    }
    struct td_json *node = pick == 5 ? td_json_new_array(arena) : td_json_new_object(arena);
    for (size_t i = random_below(seed, 4); i > 0; i--) {
        struct td_json *child = random_json(arena, seed, depth - 1);
        if (pick == 5) {
            td_json_append(node, child);
        } else {
            td_json_set(arena, node, td_str_from(names[random_below(seed, 7)]), child);
        }
    }
    return node;
}
