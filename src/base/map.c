/*
 * Entries lie in an array in the order in which they came; slots are an open-addressed table
 * (linear probing) of indexes into it. Removing marks the entry and leaves its slot, so probes walk
 * past it by the dead entry itself and no second kind of mark is needed. A dead entry's key is
 * never looked at: it may be gone already.
 *
 * Both tables are rebuilt together, with the dead left out, in one place: when the entries are full
 * or when less than a sixth of its room is used. That happens only in td_map_put, because removing
 * has to leave the others where an iteration expects them; a map that becomes empty gives its
 * memory back at once. The array has room for three quarters of the slots, so a probe always meets
 * a free slot.
 */
#include "base/map.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"

#define MAP_SLOTS_FIRST ((size_t)4)            /* most maps of one object hold two or three */
#define MAP_SLOTS_KEPT ((size_t)64)            /* an empty map of at most this many keeps them */
#define MAP_COUNT_MAX ((size_t)UINT32_MAX / 4) /* so that indexes and slot counts fit */
#define MAP_LIVE ((uint64_t)1 << 63)           /* in the hash of every entry that was not removed */

static struct {
    uint64_t k0;
    uint64_t k1;
    atomic_bool is_set;
    atomic_bool is_used; /* a hash was made under this key */
} map_seed;

static pthread_once_t map_seed_once = PTHREAD_ONCE_INIT;

static void map_seed_draw(void)
{
    if (atomic_load(&map_seed.is_set)) {
        return;
    }
    uint64_t key[2];
    if (getentropy(key, sizeof(key)) != 0) {
        /* A sandbox without the call: the kernel gave every process 16 random bytes at its start.
         */
        const void *start = (const void *)getauxval(AT_RANDOM);
        td_assert(start);
        memcpy(key, start, sizeof(key));
    }
    map_seed.k0 = key[0];
    map_seed.k1 = key[1];
    atomic_store(&map_seed.is_set, true);
}

void td_map_set_seed(uint64_t k0, uint64_t k1)
{
    bool is_same = atomic_load(&map_seed.is_set) && map_seed.k0 == k0 && map_seed.k1 == k1;
    /* Maps made under another key could no longer find their entries. */
    td_assert(is_same || !atomic_load(&map_seed.is_used));
    map_seed.k0 = k0;
    map_seed.k1 = k1;
    atomic_store(&map_seed.is_set, true);
}

struct map_sip {
    uint64_t v0;
    uint64_t v1;
    uint64_t v2;
    uint64_t v3;
};

static inline uint64_t map_rotate(uint64_t value, int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static inline void map_sip_round(struct map_sip *s)
{
    s->v0 += s->v1;
    s->v1 = map_rotate(s->v1, 13) ^ s->v0;
    s->v0 = map_rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = map_rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = map_rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = map_rotate(s->v1, 17) ^ s->v2;
    s->v2 = map_rotate(s->v2, 32);
}

static inline void map_sip_word(struct map_sip *s, uint64_t word)
{
    s->v3 ^= word;
    map_sip_round(s);
    s->v0 ^= word;
}

/* The up to seven bytes behind the whole words, the first one lowest. A copy of so few costs more
 * as a call than as loads. */
static uint64_t map_sip_tail(td_str key, size_t whole)
{
    uint64_t last = 0;
    if (whole > 0 && key.len > whole) {
        memcpy(&last, key.ptr + key.len - 8, sizeof(last));
        return le64toh(last) >> 8 * (8 - (key.len - whole));
    }
    for (size_t i = key.len; i > whole; i--) {
        last = last << 8 | (unsigned char)key.ptr[i - 1];
    }
    return last;
}

/* SipHash-1-3: one round a word, three at the end (Aumasson and Bernstein). */
uint64_t td_map_hash(td_str key)
{
    if (!atomic_load_explicit(&map_seed.is_used, memory_order_acquire)) {
        (void)pthread_once(&map_seed_once, map_seed_draw); /* cannot fail with a static control */
        atomic_store_explicit(&map_seed.is_used, true, memory_order_release);
    }
    struct map_sip s = {
        .v0 = map_seed.k0 ^ 0x736f6d6570736575,
        .v1 = map_seed.k1 ^ 0x646f72616e646f6d,
        .v2 = map_seed.k0 ^ 0x6c7967656e657261,
        .v3 = map_seed.k1 ^ 0x7465646279746573,
    };
    size_t whole = key.len & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word;
        memcpy(&word, key.ptr + i, sizeof(word));
        map_sip_word(&s, le64toh(word));
    }
    map_sip_word(&s, map_sip_tail(key, whole) | (uint64_t)key.len << 56);
    s.v2 ^= 0xff;
    map_sip_round(&s);
    map_sip_round(&s);
    map_sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* Places come from the low bits, so the top one is free to say that an entry is there. */
static uint64_t map_live_hash(td_str key)
{
    return td_map_hash(key) | MAP_LIVE;
}

static size_t map_entry_cap(const struct td_map *map)
{
    return map->slot_count / 4 * 3;
}

struct td_map td_map_capped(size_t count_max)
{
    return (struct td_map){.count_max = count_max < MAP_COUNT_MAX ? count_max : MAP_COUNT_MAX};
}

void td_map_init(struct td_map *map, size_t count_max)
{
    *map = td_map_capped(count_max);
}

void td_map_done(struct td_map *map)
{
    td_free(map->entries);
    td_free(map->slots);
    *map = (struct td_map){.count_max = map->count_max};
}

void td_map_reset(struct td_map *map)
{
    if (map->entry_count > 0) {
        memset(map->slots, 0, map->slot_count * sizeof(*map->slots));
    }
    map->entry_count = 0;
    map->count = 0;
}

/* The entry of `key`, or NULL. */
static struct td_map_entry *map_find(const struct td_map *map, td_str key, uint64_t hash)
{
    if (map->count == 0) {
        return NULL;
    }
    size_t mask = map->slot_count - 1;
    for (size_t at = hash & mask; map->slots[at] != 0; at = (at + 1) & mask) {
        struct td_map_entry *entry = &map->entries[map->slots[at] - 1];
        if (entry->hash == hash && td_str_equal(entry->key, key)) {
            return entry;
        }
    }
    return NULL;
}

static void map_place(struct td_map *map, uint64_t hash, size_t index)
{
    size_t mask = map->slot_count - 1;
    size_t at = hash & mask;
    while (map->slots[at] != 0) {
        at = (at + 1) & mask;
    }
    map->slots[at] = (uint32_t)(index + 1);
}

/* Make tables with room for as many live entries again, and leave the dead out. */
static void map_rebuild(struct td_map *map)
{
    size_t slot_count = MAP_SLOTS_FIRST;
    while (slot_count / 4 * 3 <= map->count + map->count / 2) {
        slot_count *= 2;
    }
    struct td_map old = *map;
    map->slot_count = slot_count;
    map->entries = td_alloc(map_entry_cap(map) * sizeof(*map->entries));
    map->slots = td_alloc_zero(slot_count, sizeof(*map->slots));
    map->entry_count = 0;
    for (size_t i = 0; i < old.entry_count; i++) {
        if (old.entries[i].hash != 0) {
            map_place(map, old.entries[i].hash, map->entry_count);
            map->entries[map->entry_count++] = old.entries[i];
        }
    }
    td_assert(map->entry_count == map->count);
    td_free(old.entries);
    td_free(old.slots);
}

void *td_map_get(const struct td_map *map, td_str key)
{
    const struct td_map_entry *entry = map_find(map, key, map_live_hash(key));
    return entry ? entry->value : NULL;
}

bool td_map_has(const struct td_map *map, td_str key)
{
    return map_find(map, key, map_live_hash(key)) != NULL;
}

int td_map_put(struct td_map *map, td_str key, void *value)
{
    uint64_t hash = map_live_hash(key);
    struct td_map_entry *entry = map_find(map, key, hash);
    if (entry) {
        entry->key = key;
        entry->value = value;
        return TD_OK;
    }
    if (map->count >= map->count_max) {
        return TD_LIMIT;
    }
    bool is_sparse = map->slot_count > MAP_SLOTS_KEPT && map->count < map->slot_count / 8;
    if (is_sparse || map->entry_count == map_entry_cap(map)) {
        map_rebuild(map);
    }
    map_place(map, hash, map->entry_count);
    map->entries[map->entry_count++] =
        (struct td_map_entry){.key = key, .value = value, .hash = hash};
    map->count++;
    return TD_OK;
}

void *td_map_remove(struct td_map *map, td_str key)
{
    struct td_map_entry *entry = map_find(map, key, map_live_hash(key));
    if (!entry) {
        return NULL;
    }
    void *value = entry->value;
    *entry = (struct td_map_entry){.hash = 0};
    map->count--;
    if (map->count == 0 && map->slot_count > MAP_SLOTS_KEPT) {
        td_map_done(map);
    } else if (map->count == 0) {
        td_map_reset(map);
    }
    return value;
}

const struct td_map_entry *td_map_next(const struct td_map *map, size_t *position)
{
    while (*position < map->entry_count) {
        const struct td_map_entry *entry = &map->entries[(*position)++];
        if (entry->hash != 0) {
            return entry;
        }
    }
    return NULL;
}

bool td_map_step(struct td_map_walk *walk)
{
    const struct td_map_entry *entry = td_map_next(walk->map, &walk->position);
    if (entry) {
        walk->key = entry->key;
        walk->value = entry->value;
    }
    return entry;
}
