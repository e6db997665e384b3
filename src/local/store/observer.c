/*
 * One watcher a collection that is of interest; rows of resources that are added or removed start
 * and end watchers.
 */
#include "local/store/observer.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/vec.h"
#include "local/api/api.h"

struct observed {
    struct td_observer *observer;
    const struct td_resource *resource; /* a reference */
    struct td_watch_cursor cursor;
    bool is_served;
};

struct td_observer {
    struct td_api *api;
    td_observer_fn fn;
    td_observer_missed_fn missed; /* may be NULL */
    void *context;
    const td_str *names; /* borrowed */
    size_t name_count;
    uint64_t generation; /* of the resources when they were last looked at */
    TD_VEC_FIELDS(struct observed *);
};

static void observer_refresh(struct td_observer *observer);

/* What was told since the last time; false when the log dropped some of it. */
static bool observer_drain(struct observed *observed)
{
    struct td_observer *observer = observed->observer;
    const struct td_change *change;
    int code = TD_OK;
    while (observed->cursor.collection &&
           (code = td_watch_next(&observed->cursor, &change, NULL)) == TD_OK && change) {
        struct td_stored *before = change->before ? td_stored_ref(change->before) : NULL;
        struct td_stored *after = td_stored_ref(change->after);
        if (change->type == TD_CHANGE_DELETED) {
            observer->fn(observed->resource, after, NULL, observer->context);
        } else {
            observer->fn(observed->resource, before, after, observer->context);
        }
        td_stored_unref(before);
        td_stored_unref(after);
    }
    return code == TD_OK;
}

static void observer_read_all(struct observed *observed)
{
    struct td_observer *observer = observed->observer;
    struct td_collection_iter iter = td_collection_walk(observed->cursor.collection, TD_STR_EMPTY);
    for (struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        td_stored_ref(stored);
        observer->fn(observed->resource, NULL, stored, observer->context);
        td_stored_unref(stored);
    }
}

static void observer_woken(void *context);

static void observer_open(struct observed *observed, struct td_collection *collection)
{
    struct td_store *store = td_api_store(observed->observer->api);
    int code = td_watch_open(&observed->cursor, collection, td_store_version(store), observer_woken,
                             observed, NULL);
    td_assert(code == TD_OK); /* no log has dropped what is still to come */
}

/* A cursor fell off its log: whatever was deleted meanwhile is not known, so everything of every
 * collection is told again. Who keeps what it was told clears that first. */
static void observer_restart(struct observed *observed)
{
    struct td_observer *observer = observed->observer;
    struct td_collection *collection = observed->cursor.collection;
    td_watch_close(&observed->cursor);
    observer_open(observed, collection);
    if (observer->missed) {
        observer->missed(observer->context);
    }
    for (size_t i = 0; i < observer->count; i++) {
        observer_read_all(observer->items[i]);
    }
}

/* Resources come and go with definitions, whose controller was woken before us: the cursors of one
 * collection are woken in the order in which they were opened. */
static void observer_woken(void *context)
{
    struct observed *observed = context;
    struct td_observer *observer = observed->observer;
    if (!observer_drain(observed)) {
        observer_restart(observed);
    }
    observer_refresh(observer); /* may free what woke us */
}

static void observer_add(struct td_observer *observer, const struct td_resource *resource)
{
    struct td_collection *collection;
    struct td_store *store = td_api_store(observer->api);
    if (td_store_collection(store, resource->collection, &collection, NULL) != TD_OK) {
        return; /* at the cap of collections nothing of it can be stored either */
    }
    struct observed **place = td_vec_push(observer);
    if (!place) {
        return; /* as above */
    }
    struct observed *observed = td_alloc_zero(1, sizeof(*observed));
    *place = observed;
    observed->observer = observer;
    observed->resource = td_resource_ref(resource);
    observed->is_served = true;
    observer_open(observed, collection);
    observer_read_all(observed);
}

static bool observer_wants(const struct td_observer *observer, const struct td_resource *resource)
{
    return observer->name_count == 0 ||
           td_str_is_among(resource->collection, observer->names, observer->name_count);
}

static struct observed *observer_find(struct td_observer *observer, td_str collection)
{
    for (size_t i = 0; i < observer->count; i++) {
        if (td_str_equal(observer->items[i]->resource->collection, collection)) {
            return observer->items[i];
        }
    }
    return NULL;
}

static void observed_free(struct observed *observed)
{
    td_watch_close(&observed->cursor);
    td_resource_unref(observed->resource);
    td_free(observed);
}

/* Rows may have been replaced, added or removed. Several rows can share a collection (events). */
static void observer_refresh(struct td_observer *observer)
{
    const struct td_resources *resources = td_api_resources(observer->api);
    if (observer->generation == td_resources_generation(resources)) {
        return;
    }
    observer->generation = td_resources_generation(resources);
    for (size_t i = 0; i < observer->count; i++) {
        observer->items[i]->is_served = false;
    }
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *resource = td_resources_row(resources, i);
        if (resource->is_virtual || !observer_wants(observer, resource)) {
            continue;
        }
        struct observed *observed = observer_find(observer, resource->collection);
        if (!observed) {
            observer_add(observer, resource);
        } else if (!observed->is_served) {
            observed->is_served = true;
            td_resource_unref(observed->resource);
            observed->resource = td_resource_ref(resource);
        }
    }
    for (size_t i = observer->count; i > 0; i--) {
        struct observed *observed = observer->items[i - 1];
        if (!observed->is_served) {
            (void)observer_drain(observed); /* its last deletions; no reader asks for it any more */
            td_vec_remove(observer, i - 1);
            observed_free(observed);
        }
    }
}

struct td_observer *td_observer_new(struct td_api *api, const td_str *collections, size_t count,
                                    td_observer_fn fn, void *context)
{
    struct td_observer *observer = td_alloc_zero(1, sizeof(*observer));
    observer->api = api;
    observer->names = collections;
    observer->name_count = count;
    observer->fn = fn;
    observer->context = context;
    observer->count_max = TD_COLLECTIONS_MAX;
    observer_refresh(observer);
    return observer;
}

void td_observer_set_missed(struct td_observer *observer, td_observer_missed_fn fn)
{
    observer->missed = fn;
}

void td_observer_free(struct td_observer *observer)
{
    if (!observer) {
        return;
    }
    for (size_t i = 0; i < observer->count; i++) {
        observed_free(observer->items[i]);
    }
    td_vec_done(observer);
    td_free(observer);
}
