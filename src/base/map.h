/*
 * Hash map from string slices to pointers. Keys come from strangers (labels, names), so the hash is
 * SipHash-1-3 under a key drawn once per process, or set by td_map_set_seed for runs that must
 * replay. The map borrows keys and values: both must outlive their entry (intern.h and arenas own
 * them). Iteration is in insertion order while nothing was removed, so output never depends on the
 * hash. Born with a maximum count. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct td_map_entry {
    td_str key;
    void *value;
    uint64_t hash; /* its top bit is set; 0 in an entry that was removed */
};

struct td_map {
    struct td_map_entry *entries; /* in insertion order, removed ones not live; owned */
    uint32_t *slots;              /* 1 + index into entries, 0 when free; owned */
    size_t slot_count;            /* power of two, or 0 */
    size_t entry_count;           /* live and removed */
    size_t count;                 /* live */
    size_t count_max;
};

#define td_auto_map __attribute__((cleanup(td_map_done))) struct td_map

void td_map_init(struct td_map *map, size_t count_max);
struct td_map td_map_capped(size_t count_max); /* for a local, as td_arena_capped */
void td_map_done(struct td_map *map);
void td_map_reset(struct td_map *map);

/* The value under `key`, or NULL. */
void *td_map_get(const struct td_map *map, td_str key);
bool td_map_has(const struct td_map *map, td_str key);

/* Add, or replace key and value of the entry there is; value may be NULL. TD_LIMIT when the map is
 * at its maximum. */
int td_map_put(struct td_map *map, td_str key, void *value);

/* Remove and return the value; NULL when there was none. */
void *td_map_remove(struct td_map *map, td_str key);

/* Next live entry at or after *position, which starts at 0 and is moved past it; NULL at the end.
 * Entries must not be added while iterating; removing the entry just returned is allowed (it
 * must not be looked at afterwards). */
const struct td_map_entry *td_map_next(const struct td_map *map, size_t *position);

/* The same as a loop: `for (struct td_map_walk at = {.map = map}; td_map_step(&at);)`. */
struct td_map_walk {
    const struct td_map *map;
    size_t position;
    td_str key;
    void *value;
};
bool td_map_step(struct td_map_walk *walk);

/* The process-wide hash key; by default random. Only before the first hash is made (asserted). */
void td_map_set_seed(uint64_t k0, uint64_t k1);
uint64_t td_map_hash(td_str key);
