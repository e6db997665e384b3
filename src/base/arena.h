/*
 * Turn memory: many small pieces, freed together. One arena serves one request, one watch event or
 * one pass and is reset at its end; nothing in it is freed singly, and nothing in it is kept
 * elsewhere without a copy. Allocation never fails (see alloc.h); the cap is soft: a caller that
 * grows an arena from outside data asks td_arena_check at each step and turns a crossing into
 * TD_LIMIT. Built with TD_ARENA_DEBUG each piece is its own heap block, so sanitizers see every
 * misuse. One owner, no locking.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct td_error;
struct td_arena_block;

struct td_arena {
    struct td_arena_block *blocks; /* the one being filled first; owned */
    char *at;                      /* free space of the first block */
    char *end;
    size_t used_bytes; /* handed out since the last reset */
    size_t max_bytes;  /* soft cap; see td_arena_check */
};

#define td_auto_arena __attribute__((cleanup(td_arena_done))) struct td_arena

void td_arena_init(struct td_arena *arena, size_t max_bytes);
/* For a local: `td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);` */
static inline struct td_arena td_arena_capped(size_t max_bytes)
{
    return (struct td_arena){.max_bytes = max_bytes};
}
/* The same with room for `first_bytes` at once, for what is kept long: used_bytes of an arena that
 * held the same before says how many. */
void td_arena_init_exact(struct td_arena *arena, size_t first_bytes, size_t max_bytes);
void td_arena_done(struct td_arena *arena);

/* Forget every piece; the largest block of ordinary size is kept for the next turn. */
void td_arena_reset(struct td_arena *arena);

/* `size` bytes aligned for any type, not initialised; zero-sized pieces are valid pointers. */
void *td_arena_alloc(struct td_arena *arena, size_t size)
    __attribute__((returns_nonnull, warn_unused_result));
void *td_arena_alloc_zero(struct td_arena *arena, size_t count, size_t size)
    __attribute__((returns_nonnull, warn_unused_result));

#define td_arena_new(arena, type) ((type *)td_arena_alloc_zero(arena, 1, sizeof(type)))
#define td_arena_array(arena, type, count) ((type *)td_arena_alloc_zero(arena, count, sizeof(type)))

/* Room for one more behind `count` items: the array itself, or when `*cap` are used, a copy of
 * twice the size, zeroed behind the items. What the copies leave behind is less than the last
 * array. */
void *td_arena_grow(struct td_arena *arena, void *items, size_t count, size_t *cap,
                    size_t item_size) __attribute__((warn_unused_result));

/* A copy followed by a NUL (not counted), so its ptr also serves as a C string when it holds no NUL
 * itself. */
td_str td_arena_copy_str(struct td_arena *arena, td_str s);

td_str td_arena_format(struct td_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* In decimal digits: the same as "%lld", without the parsing of a format. */
td_str td_arena_int64(struct td_arena *arena, int64_t value);

/* TD_OK, or TD_LIMIT with a message once more than max_bytes have been handed out. */
int td_arena_check(const struct td_arena *arena, struct td_error *err);
