/*
 * Two reasons to look at an object: it changed (does it still have an owner? is it waiting for its
 * dependents, or to be cut from them?), or an owner or dependent of it did. Both put it into one
 * queue, and what is to be done follows from the store as it is then, so nothing depends on the
 * order in which things happened.
 *
 * An owner whose kind is not served, or a namespaced one of an object without namespace, cannot be
 * looked up: nothing is done to its dependents then, as upstream does, unless it was seen going.
 */
#include "local/controllers/gc.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "kube/meta.h"
#include "kube/objectkey.h"
#include "local/api/api.h"
#include "local/controllers/gc_index.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"
#include "local/store/observer.h"
#include "local/store/store.h"

#define GC_FOREGROUND "foregroundDeletion"
#define GC_ORPHAN "orphan"

struct td_gc {
    struct td_api *api;
    struct td_log *log;
    struct td_observer *observer;
    struct td_queue *queue; /* keys: collection, namespace and name, a line each */
    struct td_gc_index index;
};

/* An object in hand. */
struct gc_item {
    struct td_arena *arena;
    const struct td_resource *resource;
    struct td_json *object;
    struct td_meta meta;
};

static void gc_enqueue(struct td_gc *gc, td_str collection, td_str ns, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    struct td_error err = TD_ERROR_INIT;
    if (td_queue_add(gc->queue, TD_KEY_LINES(buffer, collection, ns, name), &err) != TD_OK) {
        td_log_line(gc->log, TD_LOG_ERROR, "garbage collection queue full, object dropped",
                    TD_LOG_S("name", name), TD_LOG_C("error", err.message));
    }
}

static void gc_enqueue_dependents(struct td_gc *gc, td_str owner_uid)
{
    size_t count = td_gc_index_count(&gc->index, owner_uid);
    for (size_t i = 0; i < count; i++) {
        const struct td_gc_dependent *d = td_gc_index_at(&gc->index, owner_uid, i);
        gc_enqueue(gc, d->collection, d->ns, d->name);
    }
}

static const struct td_resource *gc_resource(struct td_gc *gc, td_str collection)
{
    const struct td_resources *resources = td_api_resources(gc->api);
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        if (!row->is_virtual && td_str_equal(row->collection, collection)) {
            return row;
        }
    }
    return NULL;
}

static bool gc_lists_finalizer(const struct td_json *object, const char *name)
{
    return td_json_has_text(td_json_get_path(object, "metadata.finalizers"), td_str_from(name));
}

/* Does the text hold the word? Tells cheaply what need not be parsed. */
static bool gc_mentions(const struct td_stored *stored, const char *word)
{
    return memmem(stored->json.ptr, stored->json.len, word, strlen(word));
}

/* Does a stored object wait for its dependents to go? */
static bool gc_waits(const struct td_stored *stored)
{
    if (!stored->is_deleting || !gc_mentions(stored, "\"" GC_FOREGROUND "\"")) {
        return false;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    return td_json_parse(&arena, stored->json, NULL, &object, NULL) == TD_OK &&
           td_json_get_path(object, "metadata.deletionTimestamp") &&
           gc_lists_finalizer(object, GC_FOREGROUND);
}

enum gc_owner_state {
    GC_OWNER_SOLID,
    GC_OWNER_WAITS, /* for its dependents to go */
    GC_OWNER_ABSENT,
    GC_OWNER_UNKNOWN, /* it cannot be looked up */
};

static enum gc_owner_state gc_owner_state(struct td_gc *gc, td_str ns,
                                          const struct td_owner_reference *reference)
{
    struct td_resource_at at =
        td_resources_find_kind(td_api_resources(gc->api), reference->api_version, reference->kind);
    if (!at.resource || at.resource->is_virtual) {
        return td_gc_index_is_gone(&gc->index, reference->uid) ? GC_OWNER_ABSENT : GC_OWNER_UNKNOWN;
    }
    if (at.resource->is_namespaced && ns.len == 0) {
        return GC_OWNER_UNKNOWN;
    }
    const struct td_stored *owner =
        td_store_get(td_api_store(gc->api), at.resource->collection,
                     at.resource->is_namespaced ? ns : TD_STR_EMPTY, reference->name);
    if (!owner || !td_str_equal(owner->uid, reference->uid)) {
        return GC_OWNER_ABSENT;
    }
    return gc_waits(owner) ? GC_OWNER_WAITS : GC_OWNER_SOLID;
}

/* ---- Observing ---- */

/* Owners of a dependent that went: one of them may wait for it. */
static void gc_enqueue_owners(struct td_gc *gc, td_str ns, const struct td_meta *meta)
{
    for (size_t i = 0; i < meta->owner_count; i++) {
        struct td_resource_at at = td_resources_find_kind(
            td_api_resources(gc->api), meta->owners[i].api_version, meta->owners[i].kind);
        if (at.resource) {
            gc_enqueue(gc, at.resource->collection, at.resource->is_namespaced ? ns : TD_STR_EMPTY,
                       meta->owners[i].name);
        }
    }
}

/* The owners of a stored object from now on. */
static void gc_learn(struct td_gc *gc, struct td_arena *arena, td_str collection,
                     const struct td_stored *stored, const struct td_meta *meta)
{
    td_str *uids = td_arena_array(arena, td_str, meta->owner_count);
    for (size_t i = 0; i < meta->owner_count; i++) {
        uids[i] = meta->owners[i].uid;
    }
    td_gc_index_set(&gc->index, collection, stored->ns, stored->name, uids, meta->owner_count);
}

static void gc_observe(const struct td_resource *resource, struct td_stored *before,
                       struct td_stored *after, void *context)
{
    struct td_gc *gc = context;
    struct td_stored *stored = after ? after : before;
    if (before && after && !after->is_deleting && td_str_equal(before->owners, after->owners)) {
        return; /* nothing that is of interest here */
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    struct td_meta meta = {.owner_count = 0};
    if (stored->owners.len > 0 &&
        (td_json_parse(&arena, stored->json, NULL, &object, NULL) != TD_OK ||
         td_meta_decode(&arena, object, &meta, NULL) != TD_OK)) {
        meta = (struct td_meta){.owner_count = 0}; /* what cannot be read has no owner */
    }
    if (!after) {
        td_gc_index_set(&gc->index, resource->collection, stored->ns, stored->name, NULL, 0);
        td_gc_index_mark_gone(&gc->index, stored->uid);
        gc_enqueue_dependents(gc, stored->uid);
        gc_enqueue_owners(gc, stored->ns, &meta);
        return;
    }
    gc_learn(gc, &arena, resource->collection, stored, &meta);
    if (stored->is_deleting) {
        gc_enqueue_dependents(gc, stored->uid);
    }
    if (stored->is_deleting || meta.owner_count > 0) {
        gc_enqueue(gc, resource->collection, stored->ns, stored->name);
    }
}

/* Deletions were missed: what is still there is told again, the rest must not be waited for. */
static void gc_missed(void *context)
{
    struct td_gc *gc = context;
    td_gc_index_done(&gc->index);
    td_gc_index_init(&gc->index);
}

/* ---- Acting ---- */

/* False when it could not be written, which is logged. No other write comes between reading and
 * writing, so there are no conflicts. */
static bool gc_put(struct td_gc *gc, const struct gc_item *item)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(gc->api, item->resource, item->arena, item->object, &err);
    if (code != TD_OK) {
        td_log_line(gc->log, TD_LOG_ERROR, "garbage collection: cannot update object",
                    TD_LOG_S("kind", item->resource->kind), TD_LOG_S("name", item->meta.name),
                    TD_LOG_C("error", err.message));
    }
    return code == TD_OK;
}

static void gc_remove_finalizer(struct td_gc *gc, struct gc_item *item, const char *name)
{
    struct td_json *list = td_json_get_path(item->object, "metadata.finalizers");
    struct td_json *kept = td_json_new_array(item->arena);
    for (const struct td_json *f = td_json_first_item(list); f; f = f->next) {
        if (f->type != TD_JSON_TYPE_STRING || !td_str_equal(f->text, td_str_from(name))) {
            td_json_append(kept, td_json_copy(item->arena, f, false));
        }
    }
    struct td_json *metadata = td_json_get(item->object, TD_STR("metadata"));
    td_json_set_filled(item->arena, metadata, TD_STR("finalizers"), kept);
    (void)gc_put(gc, item); /* it says so itself */
}

/* Without the references to that owner, or when none is named, to owners that are gone or wait: who
 * still has another owner must not keep them waiting. False when it cannot be written. */
static bool gc_cut_references(struct td_gc *gc, struct gc_item *item, td_str orphan_uid)
{
    struct td_json *metadata = td_json_get(item->object, TD_STR("metadata"));
    const struct td_json *list = td_json_get(metadata, TD_STR("ownerReferences"));
    struct td_json *kept = td_json_new_array(item->arena);
    size_t i = 0;
    for (const struct td_json *r = td_json_first_item(list); r && i < item->meta.owner_count;
         r = r->next, i++) {
        const struct td_owner_reference *reference = &item->meta.owners[i];
        bool is_cut = orphan_uid.len > 0
                          ? td_str_equal(reference->uid, orphan_uid)
                          : gc_owner_state(gc, item->meta.namespace, reference) != GC_OWNER_SOLID;
        if (!is_cut) {
            td_json_append(kept, td_json_copy(item->arena, r, false));
        }
    }
    td_json_set_filled(item->arena, metadata, TD_STR("ownerReferences"), kept);
    return gc_put(gc, item);
}

static bool gc_load(struct td_gc *gc, struct td_arena *arena, td_str collection, td_str ns,
                    td_str name, struct gc_item *ret)
{
    *ret = (struct gc_item){.arena = arena, .resource = gc_resource(gc, collection)};
    return ret->resource &&
           td_edit_get(gc->api, ret->resource, ns, name, arena, &ret->object, NULL) == TD_OK &&
           td_meta_decode(arena, ret->object, &ret->meta, NULL) == TD_OK;
}

/* Cuts one dependent off an owner that lets go of them, and takes it off the list at once, so that
 * a long list gets shorter from slice to slice. */
static bool gc_orphan_one(struct td_gc *gc, td_str uid)
{
    const struct td_gc_dependent *d = td_gc_index_at(&gc->index, uid, 0);
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str collection = td_arena_copy_str(&arena, d->collection);
    td_str ns = td_arena_copy_str(&arena, d->ns);
    td_str name = td_arena_copy_str(&arena, d->name);
    td_str *kept = td_arena_array(&arena, td_str, d->owner_count);
    size_t count = 0;
    for (size_t i = 0; i < d->owner_count; i++) {
        if (!td_str_equal(d->owners[i], uid)) {
            kept[count++] = td_arena_copy_str(&arena, d->owners[i]);
        }
    }
    struct gc_item dependent;
    if (gc_load(gc, &arena, collection, ns, name, &dependent) &&
        !gc_cut_references(gc, &dependent, uid)) {
        return false;
    }
    td_gc_index_set(&gc->index, collection, ns, name, kept, count);
    return true;
}

/* An owner goes alone only when all its dependents were cut off. */
static enum td_job_result gc_orphan_dependents(struct td_gc *gc, struct gc_item *item)
{
    while (td_gc_index_count(&gc->index, item->meta.uid) > 0) {
        if (td_loop_slice_is_over(td_api_loop(gc->api))) {
            return TD_JOB_AGAIN;
        }
        if (!gc_orphan_one(gc, item->meta.uid)) {
            return TD_JOB_DONE; /* it would take the dependents along */
        }
    }
    gc_remove_finalizer(gc, item, GC_ORPHAN);
    return TD_JOB_DONE;
}

/* Is a dependent still there that the owner must wait for? */
static bool gc_is_blocked(struct td_gc *gc, td_str uid)
{
    size_t count = td_gc_index_count(&gc->index, uid);
    for (size_t i = 0; i < count; i++) {
        const struct td_gc_dependent *d = td_gc_index_at(&gc->index, uid, i);
        td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
        struct gc_item item;
        if (!gc_load(gc, &arena, d->collection, d->ns, d->name, &item)) {
            continue;
        }
        for (size_t o = 0; o < item.meta.owner_count; o++) {
            if (td_str_equal(item.meta.owners[o].uid, uid) &&
                item.meta.owners[o].blocks_owner_deletion) {
                return true;
            }
        }
    }
    return false;
}

/* How many owners are in each state. */
struct gc_owners {
    size_t counts[GC_OWNER_UNKNOWN + 1];
};

static struct gc_owners gc_count_owners(struct td_gc *gc, const struct gc_item *item)
{
    struct gc_owners owners = {.counts = {0}};
    for (size_t i = 0; i < item->meta.owner_count; i++) {
        owners.counts[gc_owner_state(gc, item->meta.namespace, &item->meta.owners[i])]++;
    }
    return owners;
}

/* Does a dependent wait for its own dependents, which may be this very object? */
static bool gc_is_in_circle(struct td_gc *gc, td_str uid)
{
    size_t count = td_gc_index_count(&gc->index, uid);
    for (size_t i = 0; i < count; i++) {
        const struct td_gc_dependent *d = td_gc_index_at(&gc->index, uid, i);
        const struct td_stored *stored =
            td_store_get(td_api_store(gc->api), d->collection, d->ns, d->name);
        if (stored && gc_waits(stored)) {
            return true;
        }
    }
    return false;
}

/* Its owners need not wait for it any more. */
static void gc_unblock(struct td_gc *gc, struct gc_item *item)
{
    struct td_json *list = td_json_get_path(item->object, "metadata.ownerReferences");
    for (struct td_json *r = td_json_first_item(list); r; r = r->next) {
        td_json_set_bool(item->arena, r, TD_STR("blockOwnerDeletion"), false);
    }
    (void)gc_put(gc, item); /* it says so itself */
}

/* No owner is left: it goes, in the foreground when an owner waits and it has
 * dependents of its own, else as its finalizers say. */
static void gc_delete(struct td_gc *gc, struct gc_item *item, bool is_waited_for)
{
    td_str how = TD_STR("Background");
    if (is_waited_for && td_gc_index_count(&gc->index, item->meta.uid) > 0) {
        how = TD_STR("Foreground");
        if (gc_is_in_circle(gc, item->meta.uid)) {
            gc_unblock(gc, item);
        }
    } else if (gc_lists_finalizer(item->object, GC_ORPHAN)) {
        how = TD_STR("Orphan");
    } else if (gc_lists_finalizer(item->object, GC_FOREGROUND)) {
        how = TD_STR("Foreground");
    }
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_delete(gc->api, item->resource, item->meta.namespace, item->meta.name,
                              item->meta.uid, how, -1, &err);
    if (code != TD_OK && code != TD_NOT_FOUND) {
        td_log_line(gc->log, TD_LOG_ERROR, "garbage collection: cannot delete object",
                    TD_LOG_S("kind", item->resource->kind), TD_LOG_S("name", item->meta.name),
                    TD_LOG_C("error", err.message));
    }
}

static enum td_job_result gc_judge(struct td_gc *gc, struct gc_item *item)
{
    bool is_deleting = td_json_get_path(item->object, "metadata.deletionTimestamp");
    if (is_deleting && gc_lists_finalizer(item->object, GC_ORPHAN)) {
        return gc_orphan_dependents(gc, item);
    }
    if (is_deleting && gc_lists_finalizer(item->object, GC_FOREGROUND)) {
        if (!gc_is_blocked(gc, item->meta.uid)) {
            gc_remove_finalizer(gc, item, GC_FOREGROUND);
        }
        return TD_JOB_DONE;
    }
    if (is_deleting || item->meta.owner_count == 0) {
        return TD_JOB_DONE;
    }
    struct gc_owners owners = gc_count_owners(gc, item);
    if (owners.counts[GC_OWNER_UNKNOWN] > 0) {
        return TD_JOB_DONE;
    }
    if (owners.counts[GC_OWNER_SOLID] == 0) {
        gc_delete(gc, item, owners.counts[GC_OWNER_WAITS] > 0);
    } else if (owners.counts[GC_OWNER_ABSENT] + owners.counts[GC_OWNER_WAITS] > 0) {
        (void)gc_cut_references(gc, item, TD_STR_EMPTY); /* it says so itself */
    }
    return TD_JOB_DONE;
}

static enum td_job_result gc_work(td_str key, void *context)
{
    struct td_gc *gc = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    size_t first = td_str_find(key, '\n', 0);
    size_t second = td_str_find(key, '\n', first + 1);
    struct gc_item item;
    if (gc_load(gc, &arena, td_str_slice(key, 0, first), td_str_slice(key, first + 1, second),
                td_str_slice(key, second + 1, key.len), &item)) {
        return gc_judge(gc, &item);
    }
    return TD_JOB_DONE;
}

struct td_gc *td_gc_new(struct td_api *api, struct td_log *log)
{
    struct td_gc *gc = td_alloc_zero(1, sizeof(*gc));
    gc->api = api;
    gc->log = log;
    td_gc_index_init(&gc->index);
    gc->queue = td_queue_new(td_api_loop(api), gc_work, gc, TD_GC_DEPENDENTS_MAX);
    gc->observer = td_observer_new(api, NULL, 0, gc_observe, gc);
    td_observer_set_missed(gc->observer, gc_missed);
    return gc;
}

void td_gc_free(struct td_gc *gc)
{
    if (!gc) {
        return;
    }
    td_observer_free(gc->observer);
    td_queue_free(gc->queue);
    td_gc_index_done(&gc->index);
    td_free(gc);
}
