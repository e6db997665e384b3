/*
 * Handlers are called while the object before and the object after both exist; the old one is freed
 * when the last handler has returned. A handler that changes the store is caught by an assertion.
 */
#include "kube/cache/cache_store.h"

#include "base/assert.h"
#include "base/error.h"

void td_cache_store_init(struct cache_store *store, const struct td_cache_plan *plan,
                         const struct td_cache_options *options)
{
    *store = (struct cache_store){
        .plan = plan,
        .names = options->names,
        .fill = options->fill,
        .release = options->release,
        .context = options->context,
    };
    td_map_init(&store->objects, TD_CACHE_OBJECTS_MAX);
}

static void store_free(struct cache_store *store, struct td_cache_head *object)
{
    store->bytes -= object->bytes;
    if (store->release) {
        store->release(store->context, object);
    }
    td_cache_object_free(store->plan, object, store->names);
}

void td_cache_store_done(struct cache_store *store)
{
    td_assert(!store->is_telling);
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&store->objects, &position)) != NULL) {
        store_free(store, entry->value);
    }
    td_map_done(&store->objects);
}

enum store_change { STORE_ADDED, STORE_CHANGED, STORE_DELETED, STORE_SYNCED };

static void store_tell(struct cache_store *store, enum store_change change, const void *before,
                       const void *after)
{
    td_assert(!store->is_telling);
    store->is_telling = true;
    for (size_t i = 0; i < store->subscriber_count; i++) {
        const struct td_cache_handler *handler = &store->subscribers[i].handler;
        void *context = store->subscribers[i].context;
        if (change == STORE_ADDED && handler->added) {
            handler->added(context, after);
        } else if (change == STORE_CHANGED && handler->changed) {
            handler->changed(context, before, after);
        } else if (change == STORE_DELETED && handler->deleted) {
            handler->deleted(context, before);
        } else if (change == STORE_SYNCED && handler->synced) {
            handler->synced(context);
        }
    }
    store->is_telling = false;
}

static void store_delete(struct cache_store *store, struct td_cache_head *object)
{
    void *removed = td_map_remove(&store->objects, td_cache_object_key(object));
    td_assert(removed == object);
    store_tell(store, STORE_DELETED, object, NULL);
    store_free(store, object);
}

static struct td_cache_head *store_make(struct cache_store *store, struct td_cache_decoded *decoded)
{
    if (store->fill) {
        store->fill(store->context, decoded->object, &decoded->arena);
    }
    struct td_cache_head *object = td_cache_object_new(store->plan, decoded, store->names);
    object->round = store->round;
    store->bytes += object->bytes;
    return object;
}

int td_cache_store_put(struct cache_store *store, struct td_cache_decoded *decoded,
                       struct td_error *err)
{
    int code = td_cache_decode_key(decoded, err);
    if (code != TD_OK) {
        return code;
    }
    const struct td_cache_head *head = td_cache_decoded_head(decoded);
    struct td_cache_head *before = td_map_get(&store->objects, decoded->key);
    bool is_same_object = before && td_str_equal(before->uid, head->uid);
    if (is_same_object && td_str_equal(before->version, head->version)) {
        before->round = store->round;
        return TD_OK;
    }
    if (!before && store->objects.count >= TD_CACHE_OBJECTS_MAX) {
        return td_error_set(err, TD_LIMIT, "'%.*s' is one object more than the %zu that are held",
                            TD_STR_ARG(decoded->key), (size_t)TD_CACHE_OBJECTS_MAX);
    }
    if (before && !is_same_object) {
        store_delete(store, before); /* another one under its name: the first is gone */
        before = NULL;
    }
    struct td_cache_head *after = store_make(store, decoded);
    code = td_map_put(&store->objects, td_cache_object_key(after), after);
    td_assert(code == TD_OK); /* room was checked above */
    store_tell(store, before ? STORE_CHANGED : STORE_ADDED, before, after);
    if (before) {
        store_free(store, before);
    }
    return TD_OK;
}

int td_cache_store_remove(struct cache_store *store, struct td_cache_decoded *decoded,
                          struct td_error *err)
{
    int code = td_cache_decode_key(decoded, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_cache_head *object = td_map_get(&store->objects, decoded->key);
    if (object) {
        store_delete(store, object);
    }
    return TD_OK;
}

void td_cache_store_begin(struct cache_store *store)
{
    store->round++;
}

void td_cache_store_finish(struct cache_store *store)
{
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&store->objects, &position)) != NULL) {
        struct td_cache_head *object = entry->value;
        if (object->round != store->round) {
            store_delete(store, object);
        }
    }
    store_tell(store, STORE_SYNCED, NULL, NULL);
}
