/* Binary search over chunks, then inside one; chunks are split when full and dropped when empty. */
#include "local/store/ordered.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define CHUNK_ITEMS 128
#define CHUNK_CAP_FIRST ((size_t)8)

struct td_ordered_chunk {
    size_t count;
    struct td_stored *items[CHUNK_ITEMS];
};

void td_ordered_done(struct td_ordered *ordered)
{
    for (size_t i = 0; i < ordered->chunk_count; i++) {
        td_free(ordered->chunks[i]);
    }
    td_free(ordered->chunks);
    *ordered = (struct td_ordered){.changes = ordered->changes + 1};
}

static bool ordered_is_before(const struct td_stored *item, const struct td_ordered_key *key)
{
    int by_ns = td_str_compare(item->ns, key->ns);
    if (by_ns != 0 || key->side == TD_ORDERED_BEHIND_NAMESPACE) {
        return by_ns <= 0;
    }
    int by_name = td_str_compare(item->name, key->name);
    return by_name < 0 || (by_name == 0 && key->side == TD_ORDERED_BEHIND);
}

struct td_ordered_place td_ordered_seek(const struct td_ordered *ordered,
                                        const struct td_ordered_key *key)
{
    /* The first chunk whose last object is not before the key holds the place. */
    size_t low = 0;
    size_t high = ordered->chunk_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct td_ordered_chunk *chunk = ordered->chunks[middle];
        if (ordered_is_before(chunk->items[chunk->count - 1], key)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct td_ordered_place place = {.chunk = low};
    if (low == ordered->chunk_count) {
        return place;
    }
    const struct td_ordered_chunk *chunk = ordered->chunks[low];
    size_t end = chunk->count - 1; /* the last one is known not to be before */
    while (place.index < end) {
        size_t middle = place.index + (end - place.index) / 2;
        if (ordered_is_before(chunk->items[middle], key)) {
            place.index = middle + 1;
        } else {
            end = middle;
        }
    }
    return place;
}

struct td_stored *td_ordered_get(const struct td_ordered *ordered, struct td_ordered_place place)
{
    if (place.chunk == ordered->chunk_count) {
        return NULL;
    }
    td_assert(place.chunk < ordered->chunk_count);
    td_assert(place.index < ordered->chunks[place.chunk]->count);
    return ordered->chunks[place.chunk]->items[place.index];
}

struct td_stored *td_ordered_find(const struct td_ordered *ordered, td_str ns, td_str name,
                                  struct td_ordered_place *ret_place)
{
    const struct td_ordered_key key = {.ns = ns, .name = name, .side = TD_ORDERED_AT};
    *ret_place = td_ordered_seek(ordered, &key);
    struct td_stored *item = td_ordered_get(ordered, *ret_place);
    bool is_same = item && td_str_equal(item->ns, ns) && td_str_equal(item->name, name);
    return is_same ? item : NULL;
}

struct td_ordered_place td_ordered_next(const struct td_ordered *ordered,
                                        struct td_ordered_place place)
{
    td_assert(place.chunk < ordered->chunk_count);
    place.index++;
    if (place.index == ordered->chunks[place.chunk]->count) {
        place = (struct td_ordered_place){.chunk = place.chunk + 1};
    }
    return place;
}

size_t td_ordered_rank(const struct td_ordered *ordered, struct td_ordered_place place)
{
    size_t rank = place.index;
    for (size_t i = 0; i < place.chunk; i++) {
        rank += ordered->chunks[i]->count;
    }
    return rank;
}

/* An empty chunk at `at` in the array; the others behind it move. */
static struct td_ordered_chunk *ordered_add_chunk(struct td_ordered *ordered, size_t at)
{
    if (ordered->chunk_count == ordered->chunk_cap) {
        ordered->chunk_cap = ordered->chunk_cap > 0 ? ordered->chunk_cap * 2 : CHUNK_CAP_FIRST;
        ordered->chunks = td_realloc(ordered->chunks, ordered->chunk_cap * sizeof(void *));
    }
    struct td_ordered_chunk **place = ordered->chunks + at;
    memmove(place + 1, place, (ordered->chunk_count - at) * sizeof(*place));
    ordered->chunk_count++;
    *place = td_alloc(sizeof(**place));
    (*place)->count = 0;
    return *place;
}

static void ordered_remove_chunk(struct td_ordered *ordered, size_t at)
{
    struct td_ordered_chunk **place = ordered->chunks + at;
    td_free(*place);
    ordered->chunk_count--;
    memmove(place, place + 1, (ordered->chunk_count - at) * sizeof(*place));
}

/* Room at `place` in a chunk that is not full. Names that are made in rising order (an appended
 * one) begin a new chunk, so that they leave full chunks behind and not half ones. */
static struct td_ordered_place ordered_make_room(struct td_ordered *ordered,
                                                 struct td_ordered_place place)
{
    if (place.chunk == ordered->chunk_count && place.chunk > 0) {
        size_t last = place.chunk - 1;
        place = (struct td_ordered_place){.chunk = last, .index = ordered->chunks[last]->count};
    }
    if (place.chunk < ordered->chunk_count && ordered->chunks[place.chunk]->count < CHUNK_ITEMS) {
        return place;
    }
    if (ordered->chunk_count == 0 || place.index == CHUNK_ITEMS) {
        place = (struct td_ordered_place){.chunk = ordered->chunk_count};
        (void)ordered_add_chunk(ordered, place.chunk);
        return place;
    }
    struct td_ordered_chunk *right = ordered_add_chunk(ordered, place.chunk + 1);
    struct td_ordered_chunk *left = ordered->chunks[place.chunk];
    size_t half = CHUNK_ITEMS / 2;
    memcpy(right->items, left->items + half, (CHUNK_ITEMS - half) * sizeof(*left->items));
    right->count = CHUNK_ITEMS - half;
    left->count = half;
    if (place.index > half) {
        place = (struct td_ordered_place){.chunk = place.chunk + 1, .index = place.index - half};
    }
    return place;
}

void td_ordered_insert(struct td_ordered *ordered, struct td_ordered_place place,
                       struct td_stored *stored)
{
    place = ordered_make_room(ordered, place);
    struct td_ordered_chunk *chunk = ordered->chunks[place.chunk];
    struct td_stored **item = chunk->items + place.index;
    memmove(item + 1, item, (chunk->count - place.index) * sizeof(*item));
    *item = stored;
    chunk->count++;
    ordered->count++;
    ordered->changes++;
}

void td_ordered_replace(struct td_ordered *ordered, struct td_ordered_place place,
                        struct td_stored *stored)
{
    td_assert(td_ordered_get(ordered, place));
    ordered->chunks[place.chunk]->items[place.index] = stored;
}

/* Neighbours that together fill no more than half a chunk become one, so that what is left of many
 * objects does not keep the chunks of all. */
static void ordered_merge(struct td_ordered *ordered, size_t at)
{
    if (at + 1 >= ordered->chunk_count) {
        return;
    }
    struct td_ordered_chunk *left = ordered->chunks[at];
    struct td_ordered_chunk *right = ordered->chunks[at + 1];
    if (left->count + right->count <= CHUNK_ITEMS / 2) {
        memcpy(left->items + left->count, right->items, right->count * sizeof(*left->items));
        left->count += right->count;
        ordered_remove_chunk(ordered, at + 1);
    }
}

void td_ordered_remove(struct td_ordered *ordered, struct td_ordered_place place)
{
    td_assert(td_ordered_get(ordered, place));
    struct td_ordered_chunk *chunk = ordered->chunks[place.chunk];
    struct td_stored **item = chunk->items + place.index;
    chunk->count--;
    memmove(item, item + 1, (chunk->count - place.index) * sizeof(*item));
    ordered->count--;
    ordered->changes++;
    if (chunk->count == 0) {
        ordered_remove_chunk(ordered, place.chunk);
        return;
    }
    ordered_merge(ordered, place.chunk);
    if (place.chunk > 0) {
        ordered_merge(ordered, place.chunk - 1);
    }
}
