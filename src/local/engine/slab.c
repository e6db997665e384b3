/*
 * The first chunks are small, so that a few objects cost little; later ones are as large as the
 * machine's large pages, and the system is asked to use those: a walk over all objects then misses
 * the table of pages rarely.
 */
#include "local/engine/slab.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

#define SLAB_SMALL_BYTES ((size_t)1 << 18)
#define SLAB_SMALL_COUNT 4
#define SLAB_LARGE_BYTES ((size_t)2 << 20)
#define SLAB_LINE_BYTES ((size_t)64)

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SLAB_IS_APART 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SLAB_IS_APART 1
#endif

void td_slab_init(struct td_slab *slab, size_t item_bytes)
{
    *slab = (struct td_slab){.item_bytes = (item_bytes + SLAB_LINE_BYTES - 1) / SLAB_LINE_BYTES *
                                           SLAB_LINE_BYTES};
}

void td_slab_done(struct td_slab *slab)
{
    for (size_t i = 0; i < slab->chunk_count; i++) {
        td_free(slab->chunks[i]);
    }
    td_free(slab->chunks);
    *slab = (struct td_slab){.item_bytes = slab->item_bytes};
}

#ifdef SLAB_IS_APART

void *td_slab_take(struct td_slab *slab)
{
    return td_alloc_zero(1, slab->item_bytes);
}

void td_slab_give(struct td_slab *slab, void *item)
{
    (void)slab;
    td_free(item);
}

#else

static size_t slab_per_chunk(const struct td_slab *slab)
{
    bool is_small = slab->chunk_count <= SLAB_SMALL_COUNT;
    size_t count = (is_small ? SLAB_SMALL_BYTES : SLAB_LARGE_BYTES) / slab->item_bytes;
    return count > 0 ? count : 1;
}

static void slab_grow(struct td_slab *slab)
{
    if (slab->chunk_count == slab->chunk_cap) {
        slab->chunk_cap = slab->chunk_cap > 0 ? slab->chunk_cap * 2 : SLAB_SMALL_COUNT;
        slab->chunks = td_realloc(slab->chunks, slab->chunk_cap * sizeof(*slab->chunks));
    }
    slab->chunk_count++;
    slab->used = 0;
    void *chunk = NULL;
    bool is_small = slab->chunk_count <= SLAB_SMALL_COUNT;
    size_t bytes = slab_per_chunk(slab) * slab->item_bytes;
    if (posix_memalign(&chunk, is_small ? SLAB_LINE_BYTES : SLAB_LARGE_BYTES, bytes) != 0) {
        td_out_of_memory();
    }
    if (!is_small) {
        (void)madvise(chunk, bytes, MADV_HUGEPAGE); /* a wish */
    }
    slab->chunks[slab->chunk_count - 1] = chunk;
}

void *td_slab_take(struct td_slab *slab)
{
    void *item = slab->free;
    if (item) {
        memcpy(&slab->free, item, sizeof(slab->free));
    } else {
        if (slab->chunk_count == 0 || slab->used == slab_per_chunk(slab)) {
            slab_grow(slab);
        }
        item = (char *)slab->chunks[slab->chunk_count - 1] + slab->item_bytes * slab->used++;
    }
    memset(item, 0, slab->item_bytes);
    return item;
}

void td_slab_give(struct td_slab *slab, void *item)
{
    if (item) {
        memcpy(item, &slab->free, sizeof(slab->free));
        slab->free = item;
    }
}

#endif
