#include "local/store.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/loop.h"
#include "local/store_private.h"

#define VERSION_START 1

static void store_flush(struct td_timer *timer, void *context);

/* The next turn of the loop brings to disk, tells those who wait and wakes cursors. */
static void store_ask_flush(struct td_store *store)
{
    if (!td_timer_is_set(store->flush)) {
        td_timer_set(store->flush, 0);
    }
}

int td_store_new(struct td_loop *loop, const struct td_store_options *options,
                 struct td_store **ret, struct td_error *err)
{
    (void)err;
    struct td_store *store = td_alloc_zero(1, sizeof(*store));
    store->loop = loop;
    store->flush = td_timer_new(loop, store_flush, store);
    store->version = options && options->version_start > 0 ? options->version_start : VERSION_START;
    store->durable_version = store->version;
    store->floor = store->version;
    store->waits.next = &store->waits;
    store->waits.previous = &store->waits;
    store->collections = td_alloc_zero(TD_COLLECTIONS_MAX, sizeof(*store->collections));
    td_map_init(&store->by_key, TD_COLLECTIONS_MAX);
    *ret = store;
    return TD_OK;
}

static void collection_free(struct td_collection *collection)
{
    td_assert(collection->cursors.next == &collection->cursors);
    struct td_collection_iter iter;
    td_collection_iter_init(&iter, collection, TD_STR_EMPTY);
    struct td_stored *stored;
    while ((stored = td_collection_iter_next(&iter)) != NULL) {
        td_stored_unref(stored); /* the iterator holds it a moment longer */
    }
    td_ordered_done(&collection->objects);
    td_changelog_done(&collection->log);
    td_free(collection);
}

void td_store_free(struct td_store *store)
{
    if (!store) {
        return;
    }
    td_assert(store->waits.next == &store->waits);
    for (size_t i = 0; i < store->collection_count; i++) {
        collection_free(store->collections[i]);
    }
    td_map_done(&store->by_key);
    td_free(store->collections);
    td_timer_free(store->flush);
    td_free(store);
}

uint64_t td_store_version(const struct td_store *store)
{
    return store->version;
}

uint64_t td_store_durable_version(const struct td_store *store)
{
    return store->durable_version;
}

uint64_t td_store_reserve(const struct td_store *store)
{
    return store->version + 1;
}

static struct td_collection *collection_new(struct td_store *store, td_str key)
{
    struct td_collection *collection = td_alloc_zero(1, sizeof(*collection) + key.len);
    char *copy = (char *)(collection + 1);
    memcpy(copy, key.ptr, key.len);
    collection->store = store;
    collection->key = (td_str){.ptr = copy, .len = key.len};
    collection->floor = store->floor;
    collection->version = store->floor;
    collection->cursors.next = &collection->cursors;
    collection->cursors.previous = &collection->cursors;
    return collection;
}

int td_store_collection(struct td_store *store, td_str key, struct td_collection **ret,
                        struct td_error *err)
{
    struct td_collection *collection = td_store_find(store, key);
    if (collection) {
        *ret = collection;
        return TD_OK;
    }
    if (key.len == 0 || key.len > TD_COLLECTION_KEY_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "the key of a kind has %zu bytes, not 1 to %zu", key.len,
                            TD_COLLECTION_KEY_BYTES_MAX);
    }
    if (store->collection_count == TD_COLLECTIONS_MAX) {
        return td_error_set(err, TD_LIMIT, "there are %zu kinds already, '%.*s' is one too many",
                            TD_COLLECTIONS_MAX, TD_STR_ARG(key));
    }
    collection = collection_new(store, key);
    store->collections[store->collection_count++] = collection;
    int code = td_map_put(&store->by_key, collection->key, collection);
    td_assert(code == TD_OK); /* the map holds as many as the array */
    *ret = collection;
    return TD_OK;
}

struct td_collection *td_store_find(const struct td_store *store, td_str key)
{
    return td_map_get(&store->by_key, key);
}

struct td_collection *td_store_at(const struct td_store *store, size_t index)
{
    return index < store->collection_count ? store->collections[index] : NULL;
}

void td_collection_drop_first(struct td_collection *collection)
{
    struct td_changelog *log = &collection->log;
    td_assert(log->first < collection->published);
    size_t bytes = log->bytes;
    collection->floor = td_changelog_at(log, log->first)->version;
    td_changelog_drop_first(log);
    collection->store->log_bytes -= bytes - log->bytes;
}

void td_store_compact(struct td_store *store, uint64_t version)
{
    uint64_t floor = version < store->durable_version ? version : store->durable_version;
    for (size_t i = 0; i < store->collection_count; i++) {
        struct td_collection *collection = store->collections[i];
        uint64_t end = td_changelog_after(&collection->log, floor);
        while (collection->log.first < end) {
            td_collection_drop_first(collection);
        }
        collection->floor = collection->floor > floor ? collection->floor : floor;
    }
    store->floor = store->floor > floor ? store->floor : floor;
}

/* Drop what is above the caps, oldest first. What is not on disk stays: it may have to be taken
 * back. */
static void collection_trim(struct td_collection *collection, size_t bytes_max)
{
    struct td_changelog *log = &collection->log;
    while (log->first < collection->published &&
           (log->end - log->first > TD_CHANGE_LOG_COUNT_MAX || log->bytes > bytes_max)) {
        td_collection_drop_first(collection);
    }
}

/* When all logs together keep too much, the one that keeps most loses half. */
static void store_trim(struct td_store *store)
{
    if (store->log_bytes <= TD_CHANGE_LOGS_BYTES_MAX) {
        return;
    }
    struct td_collection *largest = store->collections[0];
    for (size_t i = 1; i < store->collection_count; i++) {
        struct td_collection *collection = store->collections[i];
        largest = collection->log.bytes > largest->log.bytes ? collection : largest;
    }
    collection_trim(largest, largest->log.bytes / 2);
}

static int commit_check(const struct td_store *store, const struct td_collection *collection,
                        const struct td_commit *commit, const struct td_stored *before,
                        struct td_error *err)
{
    td_str key = collection->key;
    bool is_added = commit->type == TD_CHANGE_ADDED;
    if (is_added && before) {
        return td_error_set(err, TD_EXISTS, "%.*s '%.*s' already exists", TD_STR_ARG(key),
                            TD_STR_ARG(commit->name));
    }
    if (!is_added && !before) {
        return td_error_set(err, TD_NOT_FOUND, "%.*s '%.*s' not found", TD_STR_ARG(key),
                            TD_STR_ARG(commit->name));
    }
    if (is_added && collection->objects.count >= TD_COLLECTION_OBJECTS_MAX) {
        return td_error_set(err, TD_LIMIT, "there are %zu %.*s, no more can be stored",
                            collection->objects.count, TD_STR_ARG(key));
    }
    if (commit->type != TD_CHANGE_DELETED &&
        commit->json.len > TD_STORE_BYTES_MAX - store->live_bytes) {
        return td_error_set(err, TD_LIMIT, "the store is full: %zu bytes of %zu are used",
                            store->live_bytes, TD_STORE_BYTES_MAX);
    }
    return TD_OK;
}

/* The object's new state; `after` is NULL when it is deleted. Takes the reference of `after` and
 * gives back that of the state before. */
static void collection_put(struct td_collection *collection, struct td_ordered_place place,
                           struct td_stored *before, struct td_stored *after)
{
    struct td_store *store = collection->store;
    if (!before) {
        td_ordered_insert(&collection->objects, place, after);
    } else if (after) {
        td_ordered_replace(&collection->objects, place, after);
    } else {
        td_ordered_remove(&collection->objects, place);
    }
    store->live_bytes += after ? after->bytes : 0;
    store->live_bytes -= before ? before->bytes : 0;
    td_stored_unref(before);
}

static void collection_append(struct td_collection *collection, const struct td_change *change)
{
    struct td_changelog *log = &collection->log;
    size_t bytes = log->bytes;
    td_changelog_append(log, change);
    collection->version = change->version;
    collection->store->log_bytes += log->bytes - bytes;
}

int td_store_commit(struct td_store *store, struct td_collection *collection,
                    const struct td_commit *commit, struct td_stored **ret, struct td_error *err)
{
    td_assert(collection->store == store);
    td_assert(commit->version == td_store_reserve(store));
    struct td_ordered_place place;
    struct td_stored *before =
        td_ordered_find(&collection->objects, commit->ns, commit->name, &place);
    int code = commit_check(store, collection, commit, before, err);
    if (code < 0) {
        return code;
    }
    struct td_stored *after;
    code = td_stored_new(commit->version, commit->ns, commit->name, commit->json, &after, err);
    if (code < 0) {
        return code;
    }
    bool is_deleted = commit->type == TD_CHANGE_DELETED;
    const struct td_change change = {
        .version = commit->version,
        .type = commit->type,
        .before = before,
        .after = after,
    };
    collection_append(collection, &change);
    collection_put(collection, place, before, is_deleted ? NULL : after);
    if (is_deleted) {
        td_stored_unref(after); /* the log keeps it */
    }
    store->version = commit->version;
    store->durable_version = store->version;
    collection->published = collection->log.end;
    collection_trim(collection, TD_CHANGE_LOG_BYTES_MAX);
    store_trim(store);
    store_ask_flush(store);
    if (ret) {
        *ret = after;
    }
    return TD_OK;
}

bool td_store_is_durable(const struct td_store *store)
{
    return store->durable_version == store->version;
}

void td_store_when_durable(struct td_store *store, struct td_durable_wait *wait, td_durable_fn fn,
                           void *context)
{
    td_assert(!wait->previous);
    struct td_durable_wait *head = &store->waits;
    *wait = (struct td_durable_wait){
        .fn = fn,
        .context = context,
        .previous = head->previous,
        .next = head,
    };
    head->previous->next = wait;
    head->previous = wait;
    store_ask_flush(store);
}

void td_durable_wait_cancel(struct td_durable_wait *wait)
{
    if (!wait->previous) {
        return;
    }
    wait->previous->next = wait->next;
    wait->next->previous = wait->previous;
    wait->previous = NULL;
    wait->next = NULL;
}

/* Those who wait now; who begins to wait meanwhile is told in the next turn. The ring of `now` is
 * a ring of its own, so that one callback may cancel the wait of another. */
static void store_tell_waits(struct td_store *store, int code)
{
    struct td_durable_wait now = {.previous = NULL};
    struct td_durable_wait *head = &store->waits;
    if (head->next == head) {
        return;
    }
    now.next = head->next;
    now.previous = head->previous;
    now.next->previous = &now;
    now.previous->next = &now;
    head->next = head;
    head->previous = head;
    while (now.next != &now) {
        struct td_durable_wait *wait = now.next;
        td_durable_wait_cancel(wait);
        wait->fn(wait->context, code);
    }
}

static void store_flush(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_store *store = context;
    store_tell_waits(store, TD_OK);
    if (!td_watch_wake(store)) {
        store_ask_flush(store);
    }
}
