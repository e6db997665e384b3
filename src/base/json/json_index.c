/*
 * Lookup, insertion and removal; the index is rebuilt twice as large when it is three quarters
 * full.
 */
#include "base/json/json_index.h"

#include "base/assert.h"
#include "base/map.h"

#define INDEX_SLOTS_FIRST 32

struct index_slot {
    struct td_json *member;
    struct td_json *prev; /* NULL for the first member */
};

struct td_json_index {
    uint32_t mask;  /* slots - 1; slots are a power of two */
    uint32_t count; /* slots in use, at most three of four */
    uint32_t *tags; /* low bits of the hash, never 0; 0 when the slot is free */
    struct index_slot *slots;
};

uint32_t td_json_index_tag(td_str key)
{
    uint32_t tag = (uint32_t)td_map_hash(key);
    return tag != 0 ? tag : 1;
}

static struct td_json_index *index_new(struct td_arena *arena, size_t slot_count)
{
    td_assert(slot_count <= (size_t)1 << 31);
    struct td_json_index *index = td_arena_new(arena, struct td_json_index);
    index->mask = (uint32_t)slot_count - 1;
    index->tags = td_arena_array(arena, uint32_t, slot_count);
    index->slots = td_arena_alloc(arena, slot_count * sizeof(*index->slots));
    return index;
}

/* At most three of four slots are in use, so a free one ends every search. */
static uint32_t index_free_slot(const struct td_json_index *index, uint32_t tag)
{
    uint32_t at = tag & index->mask;
    while (index->tags[at] != 0) {
        at = (at + 1) & index->mask;
    }
    return at;
}

static void index_put(struct td_json_index *index, uint32_t tag, struct index_slot slot)
{
    uint32_t at = index_free_slot(index, tag);
    index->tags[at] = tag;
    index->slots[at] = slot;
    index->count++;
}

static struct index_slot *index_lookup(const struct td_json_index *index, td_str key, uint32_t tag)
{
    for (uint32_t at = tag & index->mask; index->tags[at] != 0; at = (at + 1) & index->mask) {
        if (index->tags[at] == tag && td_str_equal(index->slots[at].member->key, key)) {
            return &index->slots[at];
        }
    }
    return NULL;
}

void td_json_index_build(struct td_arena *arena, struct td_json *object)
{
    size_t slot_count = INDEX_SLOTS_FIRST;
    while (slot_count / 4 * 3 < object->count) {
        slot_count *= 2;
    }
    struct td_json_index *index = index_new(arena, slot_count);
    struct td_json *prev = NULL;
    for (struct td_json *member = object->head_child; member; member = member->next) {
        index_put(index, td_json_index_tag(member->key), (struct index_slot){member, prev});
        prev = member;
    }
    object->index = index;
}

struct td_json *td_json_index_find(const struct td_json *object, td_str key, uint32_t tag,
                                   struct td_json **ret_prev)
{
    const struct index_slot *slot = index_lookup(object->index, key, tag);
    if (!slot) {
        return NULL;
    }
    if (ret_prev) {
        *ret_prev = slot->prev;
    }
    return slot->member;
}

/* Tags hold all the bits that choose a slot, so growing reads no names. */
static void index_grow(struct td_arena *arena, struct td_json *object)
{
    const struct td_json_index *old = object->index;
    struct td_json_index *index = index_new(arena, ((size_t)old->mask + 1) * 2);
    for (size_t i = 0; i <= old->mask; i++) {
        if (old->tags[i] != 0) {
            index_put(index, old->tags[i], old->slots[i]);
        }
    }
    object->index = index;
}

void td_json_index_add(struct td_arena *arena, struct td_json *object, struct td_json *member,
                       uint32_t tag, struct td_json *prev)
{
    if (object->index->count >= object->index->mask / 4 * 3) {
        index_grow(arena, object);
    }
    index_put(object->index, tag, (struct index_slot){member, prev});
}

/* Free a slot and move later ones of the same run back, so that no search meets a hole. */
static void index_free(struct td_json_index *index, uint32_t hole)
{
    uint32_t at = hole;
    for (;;) {
        at = (at + 1) & index->mask;
        if (index->tags[at] == 0) {
            break;
        }
        uint32_t from_home = (at - index->tags[at]) & index->mask;
        uint32_t from_hole = (at - hole) & index->mask;
        if (from_home >= from_hole) {
            index->tags[hole] = index->tags[at];
            index->slots[hole] = index->slots[at];
            hole = at;
        }
    }
    index->tags[hole] = 0;
    index->count--;
}

/* The slot of a member that is there. */
static struct index_slot *index_slot_of(const struct td_json_index *index,
                                        const struct td_json *member)
{
    struct index_slot *slot = index_lookup(index, member->key, td_json_index_tag(member->key));
    td_assert(slot && slot->member == member);
    return slot;
}

void td_json_index_remove(struct td_json *object, const struct td_json *member)
{
    struct td_json_index *index = object->index;
    struct index_slot *slot = index_slot_of(index, member);
    if (member->next) {
        index_slot_of(index, member->next)->prev = slot->prev;
    }
    index_free(index, (uint32_t)(slot - index->slots));
}

void td_json_index_replace(struct td_json *object, const struct td_json *old,
                           struct td_json *member)
{
    index_slot_of(object->index, old)->member = member;
    if (old->next) {
        index_slot_of(object->index, old->next)->prev = member;
    }
}
