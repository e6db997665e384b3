/*
 * Many objects of one size, side by side: those that are walked over again and again lie in few
 * pages instead of being strewn over the heap. What is given back is taken again first; memory goes
 * back with the slab. Under the address sanitizer each object is an allocation of its own, so that
 * a use after giving back is found. One owner, no locking.
 */
#pragma once

#include <stddef.h>

struct td_slab {
    size_t item_bytes;
    void **chunks; /* owned */
    size_t chunk_count;
    size_t chunk_cap;
    size_t used; /* of the last chunk */
    void *free;  /* given back: each holds the next */
};

void td_slab_init(struct td_slab *slab, size_t item_bytes);
/* Objects that were not given back go too. */
void td_slab_done(struct td_slab *slab);

/* Zeroed. */
void *td_slab_take(struct td_slab *slab);
void td_slab_give(struct td_slab *slab, void *item); /* NULL is accepted */
