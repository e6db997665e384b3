/*
 * Blocks grow twofold up to ARENA_BLOCK_MAX; what is larger has a block of its own. A reset keeps
 * the largest ordinary block. With TD_ARENA_DEBUG each piece is an allocation of its own, so that
 * tools see a use after a reset.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"

#define ARENA_ALIGN _Alignof(max_align_t)
#define ARENA_BLOCK_FIRST ((size_t)4096)
#define ARENA_BLOCK_MAX ((size_t)1 << 20)
#define ARENA_ITEMS_FIRST ((size_t)8) /* of a growing array */
#define ARENA_FORMAT_BYTES 256        /* longer texts are formatted twice */

#ifndef TD_ARENA_DEBUG
#define TD_ARENA_DEBUG 0
#endif

struct td_arena_block {
    struct td_arena_block *next;
    size_t size; /* of data */
    _Alignas(max_align_t) char data[];
};

void td_arena_init(struct td_arena *arena, size_t max_bytes)
{
    *arena = (struct td_arena){.max_bytes = max_bytes};
}

static void arena_free_blocks(struct td_arena_block *block)
{
    while (block) {
        struct td_arena_block *next = block->next;
        td_free(block);
        block = next;
    }
}

void td_arena_done(struct td_arena *arena)
{
    arena_free_blocks(arena->blocks);
    *arena = (struct td_arena){.max_bytes = arena->max_bytes};
}

void td_arena_reset(struct td_arena *arena)
{
    struct td_arena_block *kept = NULL;
    for (struct td_arena_block *b = arena->blocks; b && !TD_ARENA_DEBUG; b = b->next) {
        /* One huge turn must not pin its memory for ever. */
        bool is_better = b->size <= ARENA_BLOCK_MAX && (!kept || b->size > kept->size);
        kept = is_better ? b : kept;
    }
    for (struct td_arena_block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        if (b != kept) {
            td_free(b);
        }
    }
    *arena = (struct td_arena){.max_bytes = arena->max_bytes, .blocks = kept};
    if (kept) {
        kept->next = NULL;
        arena->at = kept->data;
        arena->end = kept->data + kept->size;
    }
}

static struct td_arena_block *arena_block_new(size_t size)
{
    struct td_arena_block *block = td_alloc(sizeof(*block) + size);
    block->next = NULL;
    block->size = size;
    return block;
}

void td_arena_init_exact(struct td_arena *arena, size_t first_bytes, size_t max_bytes)
{
    td_arena_init(arena, max_bytes);
    if (first_bytes > 0 && !TD_ARENA_DEBUG) {
        arena->blocks = arena_block_new(first_bytes);
        arena->at = arena->blocks->data;
        arena->end = arena->at + first_bytes;
    }
}

/* Blocks double from 4 KiB to 1 MiB. A piece that is larger than the next block gets one of its own
 * behind the newest, so that the free space of that one stays in use. */
static void *arena_alloc_slow(struct td_arena *arena, size_t size)
{
    struct td_arena_block *newest = arena->blocks;
    size_t next = newest ? newest->size * 2 : ARENA_BLOCK_FIRST;
    next = next > ARENA_BLOCK_MAX     ? ARENA_BLOCK_MAX
           : next < ARENA_BLOCK_FIRST ? ARENA_BLOCK_FIRST
                                      : next;
    if (newest && (TD_ARENA_DEBUG || size > next)) {
        struct td_arena_block *own = arena_block_new(size);
        own->next = newest->next;
        newest->next = own;
        return own->data;
    }
    struct td_arena_block *block = arena_block_new(TD_ARENA_DEBUG ? size
                                                   : size > next  ? size
                                                                  : next);
    block->next = newest;
    arena->blocks = block;
    arena->at = block->data + size;
    arena->end = block->data + block->size;
    return block->data;
}

void *td_arena_alloc(struct td_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2) {
        td_out_of_memory();
    }
    size_t rounded = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    arena->used_bytes += rounded;
    if (TD_ARENA_DEBUG) {
        return arena_alloc_slow(arena, size);
    }
    if (!arena->at || rounded > (size_t)(arena->end - arena->at)) {
        return arena_alloc_slow(arena, rounded);
    }
    void *piece = arena->at;
    arena->at += rounded;
    return piece;
}

void *td_arena_alloc_zero(struct td_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        td_out_of_memory();
    }
    void *piece = td_arena_alloc(arena, bytes);
    memset(piece, 0, bytes);
    return piece;
}

void *td_arena_grow(struct td_arena *arena, void *items, size_t count, size_t *cap,
                    size_t item_size)
{
    td_assert(count <= *cap);
    if (count < *cap) {
        return items;
    }
    size_t wanted = *cap > 0 ? *cap * 2 : ARENA_ITEMS_FIRST;
    void *grown = td_arena_alloc_zero(arena, wanted, item_size);
    if (count > 0) {
        memcpy(grown, items, count * item_size);
    }
    *cap = wanted;
    return grown;
}

td_str td_arena_copy_str(struct td_arena *arena, td_str s)
{
    char *at = td_arena_alloc(arena, s.len + 1);
    td_str copy = td_text_place(&at, s);
    *at = '\0';
    return copy;
}

td_str td_arena_format(struct td_arena *arena, const char *format, ...)
{
    char written[ARENA_FORMAT_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(written, sizeof(written), format, args);
    va_end(args);
    td_assert(len >= 0);
    char *text = td_arena_alloc(arena, (size_t)len + 1);
    if ((size_t)len < sizeof(written)) {
        memcpy(text, written, (size_t)len + 1);
    } else {
        va_start(args, format);
        (void)vsnprintf(text, (size_t)len + 1, format, args); /* same length as measured above */
        va_end(args);
    }
    return (td_str){.ptr = text, .len = (size_t)len};
}

td_str td_arena_int64(struct td_arena *arena, int64_t value)
{
    char buffer[TD_INT64_DIGITS_MAX];
    return td_arena_copy_str(arena, td_text_int64(buffer, value));
}

int td_arena_check(const struct td_arena *arena, struct td_error *err)
{
    if (arena->used_bytes > arena->max_bytes) {
        return td_error_set(err, TD_LIMIT, "needs more than %zu bytes of memory", arena->max_bytes);
    }
    return TD_OK;
}
