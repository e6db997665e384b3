/*
 * A map from the uid of an owner to its dependents, and one from each dependent to its owners,
 * changed together.
 */
#include "local/controllers/gc_index.h"

#include <stdint.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/vec.h"
#include "kube/objectkey.h"

struct gc_owner {
    td_str uid; /* owned */
    bool is_gone;
    TD_VEC_FIELDS(struct td_gc_dependent *);
};

void td_gc_index_init(struct td_gc_index *index)
{
    td_map_init(&index->dependents, TD_GC_DEPENDENTS_MAX);
    td_map_init(&index->owners, TD_GC_DEPENDENTS_MAX);
}

static void gc_dependent_free(struct td_gc_dependent *dependent)
{
    for (size_t i = 0; i < dependent->owner_count; i++) {
        td_text_free(dependent->owners[i]);
    }
    td_free(dependent->owners);
    td_free(dependent->places);
    td_text_free(dependent->key);
    td_free(dependent);
}

static void gc_owner_free(struct gc_owner *owner)
{
    td_vec_done(owner);
    td_text_free(owner->uid);
    td_free(owner);
}

void td_gc_index_done(struct td_gc_index *index)
{
    for (struct td_map_walk at = {.map = &index->dependents}; td_map_step(&at);) {
        gc_dependent_free(at.value);
    }
    for (struct td_map_walk at = {.map = &index->owners}; td_map_step(&at);) {
        gc_owner_free(at.value);
    }
    td_map_done(&index->dependents);
    td_map_done(&index->owners);
}

/* The last of the list takes the free place, so that an owner of many loses each in one step. */
static void gc_take_off(struct gc_owner *owner, size_t place)
{
    struct td_gc_dependent *last = owner->items[owner->count - 1];
    for (size_t i = 0; i < last->owner_count; i++) {
        if (last->places[i] == owner->count - 1 && td_str_equal(last->owners[i], owner->uid)) {
            last->places[i] = place;
            break;
        }
    }
    owner->items[place] = last;
    owner->count--;
}

static void gc_unlink(struct td_gc_index *index, struct td_gc_dependent *dependent)
{
    for (size_t i = 0; i < dependent->owner_count; i++) {
        struct gc_owner *owner = td_map_get(&index->owners, dependent->owners[i]);
        if (!owner || dependent->places[i] == SIZE_MAX) {
            continue;
        }
        gc_take_off(owner, dependent->places[i]);
        if (owner->count == 0) {
            (void)td_map_remove(&index->owners, owner->uid); /* it was there */
            gc_owner_free(owner);
        }
    }
}

/* Where the dependent is in its owner's list from now on. */
static size_t gc_link(struct td_gc_index *index, struct td_gc_dependent *dependent, td_str uid)
{
    struct gc_owner *owner = td_map_get(&index->owners, uid);
    if (!owner) {
        owner = td_alloc_zero(1, sizeof(*owner));
        owner->uid = td_text_copy(uid);
        owner->count_max = TD_GC_DEPENDENTS_MAX;
        if (td_map_put(&index->owners, owner->uid, owner) != 0) {
            gc_owner_free(owner); /* at the cap: its dependents outlive it */
            return SIZE_MAX;
        }
    }
    struct td_gc_dependent **place = td_vec_push(owner);
    if (!place) {
        return SIZE_MAX; /* as above */
    }
    *place = dependent;
    return owner->count - 1;
}

static bool gc_is_same(const struct td_gc_dependent *dependent, const td_str *owners,
                       size_t owner_count)
{
    if (dependent->owner_count != owner_count) {
        return false;
    }
    for (size_t i = 0; i < owner_count; i++) {
        if (!td_str_equal(dependent->owners[i], owners[i])) {
            return false;
        }
    }
    return true;
}

void td_gc_index_set(struct td_gc_index *index, td_str collection, td_str ns, td_str name,
                     const td_str *owners, size_t owner_count)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = TD_KEY_LINES(buffer, collection, ns, name);
    struct td_gc_dependent *dependent = td_map_get(&index->dependents, key);
    if (dependent && gc_is_same(dependent, owners, owner_count)) {
        return;
    }
    if (dependent) {
        (void)td_map_remove(&index->dependents, dependent->key); /* it was there */
        gc_unlink(index, dependent);
        gc_dependent_free(dependent);
    }
    if (owner_count == 0) {
        return;
    }
    dependent = td_alloc_zero(1, sizeof(*dependent));
    key = td_text_copy(key);
    dependent->key = key;
    dependent->collection = td_str_slice(key, 0, collection.len);
    dependent->ns = td_str_slice(key, collection.len + 1, collection.len + 1 + ns.len);
    dependent->name = td_str_slice(key, key.len - name.len, key.len);
    dependent->owners = td_alloc_zero(owner_count, sizeof(td_str));
    dependent->places = td_alloc_zero(owner_count, sizeof(size_t));
    if (td_map_put(&index->dependents, key, dependent) != 0) {
        gc_dependent_free(dependent); /* at the cap: it outlives its owners */
        return;
    }
    for (size_t i = 0; i < owner_count; i++) {
        dependent->owners[i] = td_text_copy(owners[i]);
        dependent->places[i] = gc_link(index, dependent, owners[i]);
        dependent->owner_count++;
    }
}

size_t td_gc_index_count(const struct td_gc_index *index, td_str owner_uid)
{
    const struct gc_owner *owner = td_map_get(&index->owners, owner_uid);
    return owner ? owner->count : 0;
}

const struct td_gc_dependent *td_gc_index_at(const struct td_gc_index *index, td_str owner_uid,
                                             size_t position)
{
    const struct gc_owner *owner = td_map_get(&index->owners, owner_uid);
    return owner && position < owner->count ? owner->items[position] : NULL;
}

void td_gc_index_mark_gone(struct td_gc_index *index, td_str owner_uid)
{
    struct gc_owner *owner = td_map_get(&index->owners, owner_uid);
    if (owner) {
        owner->is_gone = true;
    }
}

bool td_gc_index_is_gone(const struct td_gc_index *index, td_str owner_uid)
{
    const struct gc_owner *owner = td_map_get(&index->owners, owner_uid);
    return owner && owner->is_gone;
}
