/*
 * Keeping the list of updaters short. Every program that ever updated an object leaves an entry, so
 * past ten of them the oldest are merged, oldest first, into one entry "ancient-changes" for each
 * version: the first of a version is only remembered, the second merges with it.
 *
 * Upstream does this entry by entry in its map. Done so here, unions would be quadratic in the
 * number of entries (which a client can write itself), so the sets of one bucket are collected and
 * united once at the end. One oddity is kept: when the bucket itself is not the first of its
 * version it is merged into itself and dropped.
 */
#include "kube/apply/managed.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/map.h"
#include "kube/apply/fieldset_types.h"

#define UPDATERS_MAX ((size_t)10) /* upstream's default */

struct bucket {
    struct td_managed_entry *first;
    struct td_managed_entry *target;   /* where sets are merged to; NULL when there is none */
    struct td_managed_entry *existing; /* the bucket's own entry, NULL when there is none */
    td_str id;
    const struct td_fieldset **sets;
    size_t set_count;
    size_t set_cap;
    bool has_time;
    struct td_instant time;
};

static int updater_compare(const void *a, const void *b)
{
    const struct td_managed_entry *left = *(const struct td_managed_entry *const *)a;
    const struct td_managed_entry *right = *(const struct td_managed_entry *const *)b;
    int64_t left_seconds = left->has_time ? left->time.unix_seconds : 0;
    int64_t right_seconds = right->has_time ? right->time.unix_seconds : 0;
    if (left_seconds != right_seconds) {
        return left_seconds < right_seconds ? -1 : 1;
    }
    return td_str_compare(left->id, right->id);
}

static struct bucket *bucket_new(struct td_arena *arena, const struct td_managed *managed,
                                 struct td_managed_entry *first)
{
    const struct td_manager manager = {
        .name = TD_STR("ancient-changes"),
        .api_version = first->manager.api_version,
    };
    struct td_managed_entry wanted = {.id = td_managed_id(arena, &manager)};
    struct bucket *bucket = td_arena_new(arena, struct bucket);
    bucket->first = first;
    bucket->id = wanted.id;
    bucket->existing = bsearch(&wanted, managed->entries, managed->count,
                               sizeof(managed->entries[0]), td_str_compare_items);
    bucket->target = bucket->existing && bucket->existing->is_present ? bucket->existing : NULL;
    return bucket;
}

static void bucket_collect(struct td_arena *arena, struct bucket *bucket,
                           const struct td_fieldset *set)
{
    bucket->sets = td_arena_grow(arena, bucket->sets, bucket->set_count, &bucket->set_cap,
                                 sizeof(*bucket->sets));
    bucket->sets[bucket->set_count++] = set;
}

static void bucket_merge(struct td_arena *arena, struct bucket *bucket,
                         struct td_managed_entry *updater)
{
    if (!bucket->target) {
        bucket->target = bucket->first;
    }
    if (bucket->set_count == 0) {
        bucket_collect(arena, bucket, bucket->target->fields);
    }
    bucket_collect(arena, bucket, updater->fields);
    bucket->has_time = updater->has_time;
    bucket->time = updater->time;
    updater->is_present = false;
    if (updater == bucket->target) {
        bucket->target = NULL;
        bucket->set_count = 0;
    }
}

static void bucket_finish(struct td_arena *arena, struct bucket *bucket)
{
    struct td_managed_entry *target = bucket->target;
    if (!target || bucket->set_count == 0) {
        return;
    }
    target->fields = td_fieldset_union_all(arena, bucket->sets, bucket->set_count);
    target->id = bucket->id;
    target->manager.name = TD_STR("ancient-changes");
    target->manager.subresource = TD_STR_EMPTY;
    target->has_time = bucket->has_time;
    target->time = bucket->time;
}

/* Drop what is gone and put the renamed entries where they belong. */
static void managed_compact(struct td_managed *managed)
{
    size_t kept = 0;
    for (size_t i = 0; i < managed->count; i++) {
        if (managed->entries[i].is_present) {
            managed->entries[kept++] = managed->entries[i];
        }
    }
    managed->count = kept;
    qsort(managed->entries, kept, sizeof(managed->entries[0]), td_str_compare_items);
}

void td_managed_cap(struct td_arena *arena, struct td_managed *managed)
{
    struct td_managed_entry **updaters =
        td_arena_array(arena, struct td_managed_entry *, managed->count);
    size_t count = 0;
    for (size_t i = 0; i < managed->count; i++) {
        if (managed->entries[i].is_present && !managed->entries[i].manager.is_apply) {
            updaters[count++] = &managed->entries[i];
        }
    }
    if (count <= UPDATERS_MAX) {
        return;
    }
    qsort(updaters, count, sizeof(updaters[0]), updater_compare);
    td_auto_map buckets; /* by version */
    td_map_init(&buckets, count);
    size_t left = count;
    for (size_t i = 0; i < count && left > UPDATERS_MAX; i++) {
        td_str version = updaters[i]->manager.api_version;
        struct bucket *bucket = td_map_get(&buckets, version);
        if (bucket) {
            bucket_merge(arena, bucket, updaters[i]);
            left--;
        } else {
            int r = td_map_put(&buckets, version, bucket_new(arena, managed, updaters[i]));
            td_assert(r == TD_OK); /* the map has room for every updater */
        }
    }
    size_t position = 0;
    for (const struct td_map_entry *e; (e = td_map_next(&buckets, &position));) {
        bucket_finish(arena, e->value);
    }
    managed_compact(managed);
}
