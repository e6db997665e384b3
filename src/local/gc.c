/*
 * Two reasons to look at an object: it changed (does it still have an owner? is it waiting for its
 * dependents, or to be cut from them?), or an owner or dependent of it did. Both put it into one
 * queue, and what is to be done follows from the store as it is then, so nothing depends on the
 * order in which things happened.
 */
#include "local/gc.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/loop.h"
#include "kube/meta.h"
#include "local/api.h"
#include "local/edit.h"
#include "local/gc_index.h"
#include "local/observer.h"
#include "local/resource.h"
#include "local/store.h"

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
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_str key = td_arena_format(&arena, "%.*s%c%.*s%c%.*s", TD_STR_ARG(collection), '\n',
                                 TD_STR_ARG(ns), '\n', TD_STR_ARG(name));
    struct td_error err = TD_ERROR_INIT;
    if (td_queue_add(gc->queue, key, &err) != TD_OK) {
        td_log_line(gc->log, TD_LOG_ERROR, "an object waits for nobody to collect it",
                    TD_LOG_S("name", name), TD_LOG_C("error", err.message));
    }
}

/* Texts are copied first, because acting on a dependent changes the list. */
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

/* The stored object that a reference names, or NULL when it is not there (any more). */
static struct td_stored *gc_owner(struct td_gc *gc, td_str ns,
                                  const struct td_owner_reference *reference)
{
    struct td_resource_at at =
        td_resources_find_kind(td_api_resources(gc->api), reference->api_version, reference->kind);
    if (!at.resource) {
        return NULL;
    }
    const struct td_collection *collection =
        td_store_find(td_api_store(gc->api), at.resource->collection);
    struct td_stored *owner =
        collection ? td_collection_get(collection, at.resource->is_namespaced ? ns : TD_STR_EMPTY,
                                       reference->name)
                   : NULL;
    return owner && td_str_equal(owner->uid, reference->uid) ? owner : NULL;
}

/* Does a stored object wait for its dependents to go? */
static bool gc_waits(const struct td_stored *stored)
{
    return memmem(stored->json.ptr, stored->json.len, GC_FOREGROUND, strlen(GC_FOREGROUND)) &&
           memmem(stored->json.ptr, stored->json.len, "\"deletionTimestamp\"", 19);
}

/* ---- Observing ---- */

static void gc_observe(const struct td_resource *resource, struct td_stored *before,
                       struct td_stored *after, void *context)
{
    struct td_gc *gc = context;
    struct td_stored *stored = after ? after : before;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    struct td_meta meta = {.owner_count = 0};
    bool has_owners = memmem(stored->json.ptr, stored->json.len, "\"ownerReferences\"", 17);
    if (has_owners && (td_json_parse(&arena, stored->json, NULL, &object, NULL) != TD_OK ||
                       td_meta_decode(&arena, object, &meta, NULL) != TD_OK)) {
        return; /* what cannot be read has no owner */
    }
    td_str *uids = td_arena_array(&arena, td_str, meta.owner_count);
    for (size_t i = 0; i < meta.owner_count; i++) {
        uids[i] = meta.owners[i].uid;
    }
    td_gc_index_set(&gc->index, resource->collection, stored->ns, stored->name, uids,
                    after ? meta.owner_count : 0);
    if (!after) {
        gc_enqueue_dependents(gc, stored->uid);
        for (size_t i = 0; i < meta.owner_count; i++) { /* one of them may wait for it */
            struct td_resource_at at = td_resources_find_kind(
                td_api_resources(gc->api), meta.owners[i].api_version, meta.owners[i].kind);
            if (at.resource) {
                gc_enqueue(gc, at.resource->collection,
                           at.resource->is_namespaced ? stored->ns : TD_STR_EMPTY,
                           meta.owners[i].name);
            }
        }
        return;
    }
    bool is_deleting = memmem(stored->json.ptr, stored->json.len, "\"deletionTimestamp\"", 19);
    if (is_deleting) {
        gc_enqueue_dependents(gc, stored->uid);
    }
    if (is_deleting || meta.owner_count > 0) {
        gc_enqueue(gc, resource->collection, stored->ns, stored->name);
    }
}

/* ---- Acting ---- */

static bool gc_has_finalizer(const struct gc_item *item, const char *name)
{
    const struct td_json *list = td_json_get_path(item->object, "metadata.finalizers");
    for (const struct td_json *f = list ? list->first : NULL; f; f = f->next) {
        if (f->type == TD_JSON_TYPE_STRING && td_str_equal(f->text, td_str_from(name))) {
            return true;
        }
    }
    return false;
}

static void gc_put(struct td_gc *gc, const struct gc_item *item)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(gc->api, item->resource, item->arena, item->object, &err);
    if (code != TD_OK && code != TD_CONFLICT && code != TD_NOT_FOUND) {
        td_log_line(gc->log, TD_LOG_ERROR, "garbage collection cannot write",
                    TD_LOG_S("kind", item->resource->kind), TD_LOG_S("name", item->meta.name),
                    TD_LOG_C("error", err.message));
    }
}

static void gc_remove_finalizer(struct td_gc *gc, struct gc_item *item, const char *name)
{
    struct td_json *list = td_json_get_path(item->object, "metadata.finalizers");
    struct td_json *kept = td_json_new_array(item->arena);
    for (const struct td_json *f = list->first; f; f = f->next) {
        if (f->type != TD_JSON_TYPE_STRING || !td_str_equal(f->text, td_str_from(name))) {
            td_json_append(kept, td_json_copy(item->arena, f, false));
        }
    }
    struct td_json *metadata = td_json_get(item->object, TD_STR("metadata"));
    if (kept->count > 0) {
        td_json_set(item->arena, metadata, TD_STR("finalizers"), kept);
    } else {
        (void)td_json_remove(metadata, TD_STR("finalizers")); /* it is there */
    }
    gc_put(gc, item);
}

/* Without the references to that owner, or when none is named, to owners that are gone. */
static void gc_cut_references(struct td_gc *gc, struct gc_item *item, td_str orphan_uid)
{
    struct td_json *metadata = td_json_get(item->object, TD_STR("metadata"));
    const struct td_json *list = td_json_get(metadata, TD_STR("ownerReferences"));
    struct td_json *kept = td_json_new_array(item->arena);
    size_t i = 0;
    for (const struct td_json *r = list->first; r; r = r->next, i++) {
        const struct td_owner_reference *reference = &item->meta.owners[i];
        bool is_cut = orphan_uid.len > 0 ? td_str_equal(reference->uid, orphan_uid)
                                         : !gc_owner(gc, item->meta.namespace, reference);
        if (!is_cut) {
            td_json_append(kept, td_json_copy(item->arena, r, false));
        }
    }
    if (kept->count > 0) {
        td_json_set(item->arena, metadata, TD_STR("ownerReferences"), kept);
    } else {
        (void)td_json_remove(metadata, TD_STR("ownerReferences")); /* it is there */
    }
    gc_put(gc, item);
}

static bool gc_load(struct td_gc *gc, struct td_arena *arena, td_str collection, td_str ns,
                    td_str name, struct gc_item *ret)
{
    *ret = (struct gc_item){.arena = arena, .resource = gc_resource(gc, collection)};
    return ret->resource &&
           td_edit_get(gc->api, ret->resource, ns, name, arena, &ret->object, NULL) == TD_OK &&
           td_meta_decode(arena, ret->object, &ret->meta, NULL) == TD_OK;
}

static void gc_orphan_dependents(struct td_gc *gc, struct gc_item *item)
{
    td_str uid = item->meta.uid;
    /* Each cut takes the dependent off the list when it is observed, not now: positions stay. */
    size_t count = td_gc_index_count(&gc->index, uid);
    for (size_t i = 0; i < count; i++) {
        const struct td_gc_dependent *d = td_gc_index_at(&gc->index, uid, i);
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
        struct gc_item dependent;
        if (gc_load(gc, &arena, d->collection, d->ns, d->name, &dependent) &&
            td_json_get_path(dependent.object, "metadata.ownerReferences")) {
            gc_cut_references(gc, &dependent, uid);
        }
    }
    gc_remove_finalizer(gc, item, GC_ORPHAN);
}

/* Is a dependent still there that the owner must wait for? */
static bool gc_is_blocked(struct td_gc *gc, td_str uid)
{
    size_t count = td_gc_index_count(&gc->index, uid);
    for (size_t i = 0; i < count; i++) {
        const struct td_gc_dependent *d = td_gc_index_at(&gc->index, uid, i);
        td_auto_arena arena;
        td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
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

/* How many owners are there, and do all of those wait for their dependents? */
struct gc_owners {
    size_t solid;
    size_t waiting;
    size_t dangling;
};

static struct gc_owners gc_count_owners(struct td_gc *gc, const struct gc_item *item)
{
    struct gc_owners owners = {.solid = 0};
    for (size_t i = 0; i < item->meta.owner_count; i++) {
        const struct td_stored *owner = gc_owner(gc, item->meta.namespace, &item->meta.owners[i]);
        if (!owner) {
            owners.dangling++;
        } else if (gc_waits(owner)) {
            owners.waiting++;
        } else {
            owners.solid++;
        }
    }
    return owners;
}

/* Nobody is left that wants it: it goes, in the foreground when an owner waits and it has
 * dependents of its own. */
static void gc_delete(struct td_gc *gc, const struct gc_item *item, bool is_waited_for)
{
    bool has_dependents = td_gc_index_count(&gc->index, item->meta.uid) > 0;
    td_str how = is_waited_for && has_dependents ? TD_STR("Foreground") : TD_STR("Background");
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_delete(gc->api, item->resource, item->meta.namespace, item->meta.name,
                              item->meta.uid, how, -1, &err);
    if (code != TD_OK && code != TD_NOT_FOUND && code != TD_CONFLICT) {
        td_log_line(gc->log, TD_LOG_ERROR, "garbage collection cannot delete",
                    TD_LOG_S("kind", item->resource->kind), TD_LOG_S("name", item->meta.name),
                    TD_LOG_C("error", err.message));
    }
}

static void gc_judge(struct td_gc *gc, struct gc_item *item)
{
    bool is_deleting = td_json_get_path(item->object, "metadata.deletionTimestamp");
    if (is_deleting && gc_has_finalizer(item, GC_ORPHAN)) {
        gc_orphan_dependents(gc, item);
        return;
    }
    if (is_deleting && gc_has_finalizer(item, GC_FOREGROUND)) {
        if (!gc_is_blocked(gc, item->meta.uid)) {
            gc_remove_finalizer(gc, item, GC_FOREGROUND);
        }
        return;
    }
    if (is_deleting || item->meta.owner_count == 0) {
        return;
    }
    struct gc_owners owners = gc_count_owners(gc, item);
    if (owners.solid == 0) {
        gc_delete(gc, item, owners.waiting > 0);
    } else if (owners.dangling > 0) {
        gc_cut_references(gc, item, TD_STR_EMPTY);
    }
}

static enum td_job_result gc_work(td_str key, void *context)
{
    struct td_gc *gc = context;
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    size_t first = td_str_find(key, '\n', 0);
    size_t second = td_str_find(key, '\n', first + 1);
    struct gc_item item;
    if (gc_load(gc, &arena, td_str_slice(key, 0, first), td_str_slice(key, first + 1, second),
                td_str_slice(key, second + 1, key.len), &item)) {
        gc_judge(gc, &item);
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
