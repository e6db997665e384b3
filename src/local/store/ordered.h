/*
 * The objects of one kind in order of namespace and name (bytes): an array of chunks, each a short
 * sorted array of pointers, which is a B-tree of two levels. Finding compares about log2(n) keys,
 * inserting moves at most one chunk and seldom the array of chunks. It borrows the objects. A place
 * is valid until the next insert or remove, which `changes` counts. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "local/store/stored.h"

struct td_ordered_chunk;

struct td_ordered {
    struct td_ordered_chunk **chunks; /* none is empty; owned */
    size_t chunk_count;
    size_t chunk_cap;
    size_t count;     /* objects */
    uint64_t changes; /* inserts and removes so far */
};

struct td_ordered_place {
    size_t chunk; /* chunk_count at the end */
    size_t index;
};

struct td_ordered_key {
    td_str ns;
    td_str name;
    enum {
        TD_ORDERED_AT,               /* the first object not before this one */
        TD_ORDERED_BEHIND,           /* the first object after this one */
        TD_ORDERED_BEHIND_NAMESPACE, /* the first object after all of this namespace */
    } side;
};

void td_ordered_done(struct td_ordered *ordered);

struct td_ordered_place td_ordered_seek(const struct td_ordered *ordered,
                                        const struct td_ordered_key *key);

/* NULL at the end. */
struct td_stored *td_ordered_get(const struct td_ordered *ordered, struct td_ordered_place place);

/* The object with exactly this name, or NULL. */
struct td_stored *td_ordered_find(const struct td_ordered *ordered, td_str ns, td_str name,
                                  struct td_ordered_place *ret_place);

/* The place behind one that is not the end. */
struct td_ordered_place td_ordered_next(const struct td_ordered *ordered,
                                        struct td_ordered_place place);

/* How many objects are before the place. */
size_t td_ordered_rank(const struct td_ordered *ordered, struct td_ordered_place place);

/* `place` is where td_ordered_find did not find it. */
void td_ordered_insert(struct td_ordered *ordered, struct td_ordered_place place,
                       struct td_stored *stored);
void td_ordered_replace(struct td_ordered *ordered, struct td_ordered_place place,
                        struct td_stored *stored);
void td_ordered_remove(struct td_ordered *ordered, struct td_ordered_place place);
