/*
 * Commits: each takes the next version and puts the object into its collection and its log.
 * Watchers are woken later, from the loop.
 */
#include "local/store/store.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "local/store/journal.h"
#include "local/store/store_private.h"

#define VERSION_START 1

static void store_flush(struct td_timer *timer, void *context);
static void store_rested(struct td_timer *timer, void *context);

void td_store_ask_flush(struct td_store *store)
{
    if (!td_timer_is_set(store->flush)) {
        td_timer_set(store->flush, 0);
    }
}

int td_store_new(struct td_loop *loop, const struct td_store_options *options,
                 struct td_store **ret, struct td_error *err)
{
    struct td_store *store = td_alloc_zero(1, sizeof(*store));
    store->loop = loop;
    store->flush = td_timer_new(loop, store_flush, store);
    store->wake = td_timer_new(loop, store_rested, store);
    store->version = options && options->version_start > 0 ? options->version_start : VERSION_START;
    store->durable_version = store->version;
    store->floor = store->version;
    store->aged_at = td_clock_machine(td_loop_clock(loop));
    store->waits.next = &store->waits;
    store->waits.previous = &store->waits;
    store->collections = td_alloc_zero(TD_COLLECTIONS_MAX, sizeof(*store->collections));
    td_map_init(&store->by_key, TD_COLLECTIONS_MAX);
    int code = options && options->data_dir ? td_store_load(store, options, err) : TD_OK;
    if (code < 0) {
        td_store_free(store);
        return code;
    }
    *ret = store;
    return TD_OK;
}

static void collection_free(struct td_collection *collection)
{
    td_assert(collection->cursors.next == &collection->cursors);
    struct td_collection_iter iter = td_collection_walk(collection, TD_STR_EMPTY);
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
    if (store->journal) {
        (void)td_store_sync(store, NULL); /* no client was told that these are done */
    }
    td_collection_iter_done(&store->snapshot_iter);
    td_queue_free(store->snapshots);
    td_journal_close(store->journal);
    for (size_t i = 0; i < store->collection_count; i++) {
        collection_free(store->collections[i]);
    }
    td_map_done(&store->by_key);
    td_free(store->collections);
    td_timer_free(store->flush);
    td_timer_free(store->wake);
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
    collection->store = store;
    collection->key = td_text_behind(collection + 1, key);
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
        return td_error_set(err, TD_LIMIT, "the limit of %zu kinds is reached, cannot add '%.*s'",
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

/* The oldest change, which must be published. */
static void collection_drop_first(struct td_collection *collection)
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
            collection_drop_first(collection);
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
        collection_drop_first(collection);
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

/* Once a minute: the changes of more than so many minutes ago go, even if a watcher waits for them.
 * A log of a day would be of no use, and most of the memory of a cluster. It happens beside changes
 * only, as only they fill the logs. */
static void store_forget(struct td_store *store)
{
    td_duration now = td_clock_machine(td_loop_clock(store->loop));
    if (now - store->aged_at < TD_MINUTE) {
        return;
    }
    td_duration minutes = (now - store->aged_at) / TD_MINUTE;
    size_t steps = minutes < TD_CHANGE_LOG_MINUTES ? (size_t)minutes : TD_CHANGE_LOG_MINUTES;
    uint64_t oldest = 0;
    for (size_t i = 0; i < steps; i++) {
        oldest = store->ages[store->age_next];
        store->ages[store->age_next] = store->durable_version;
        store->age_next = (store->age_next + 1) % TD_CHANGE_LOG_MINUTES;
    }
    store->aged_at = now;
    for (size_t i = 0; i < store->collection_count; i++) {
        struct td_collection *collection = store->collections[i];
        uint64_t end = td_changelog_after(&collection->log, oldest);
        while (collection->log.first < end) {
            collection_drop_first(collection);
        }
    }
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

void td_collection_put(struct td_collection *collection, struct td_ordered_place place,
                       struct td_stored *before, struct td_stored *after)
{
    struct td_store *store = collection->store;
    if (!before) {
        td_assert(after);
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

void td_collection_log(struct td_collection *collection, const struct td_change *change)
{
    struct td_store *store = collection->store;
    struct td_changelog *log = &collection->log;
    size_t bytes = log->bytes;
    td_changelog_append(log, change);
    store->log_bytes += log->bytes - bytes;
    collection->version = change->version;
    store->version = change->version;
    if (!store->journal) {
        collection->published = log->end;
        store->durable_version = store->version;
    }
    collection_trim(collection, TD_CHANGE_LOG_BYTES_MAX);
    store_trim(store);
}

/* Into the journal, if there is one; a batch that has grown large is brought to disk before. */
static int commit_write(struct td_store *store, const struct td_collection *collection,
                        const struct td_commit *commit, struct td_error *err)
{
    if (!store->journal) {
        return TD_OK;
    }
    int code = TD_OK;
    if (td_journal_pending_bytes(store->journal) >= TD_JOURNAL_PENDING_BYTES_MAX ||
        td_journal_pending_count(store->journal) >= TD_JOURNAL_PENDING_COUNT_MAX) {
        code = td_store_sync(store, err);
    }
    const struct td_journal_record record = {
        .type = (enum td_journal_type)commit->type,
        .version = commit->version,
        .collection = collection->key,
        .ns = commit->ns,
        .name = commit->name,
        .json = commit->json,
    };
    (void)td_store_failure(store); /* a journal that has failed says why it is refused */
    return code < 0 ? code : td_journal_append(store->journal, &record, err);
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
    code = commit_write(store, collection, commit, err);
    if (code < 0) {
        td_stored_unref(after);
        td_store_ask_flush(store); /* those who wait for earlier commits have to be told */
        return code;
    }
    bool is_deleted = commit->type == TD_CHANGE_DELETED;
    const struct td_change change = {
        .version = commit->version,
        .type = commit->type,
        .before = before,
        .after = after,
    };
    td_collection_log(collection, &change);
    td_collection_put(collection, place, before, is_deleted ? NULL : after);
    if (is_deleted) {
        td_stored_unref(after); /* the log keeps it */
    }
    td_store_ask_flush(store);
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
    td_store_ask_flush(store);
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

/* Said once; the store stays readable. */
static void store_note_failure(struct td_store *store)
{
    const char *reason = store->journal ? td_journal_failure(store->journal) : NULL;
    if (reason && !store->is_failed) {
        store->is_failed = true;
        store->heal_at = td_clock_machine(td_loop_clock(store->loop)) + TD_STORE_HEAL_PAUSE;
        const struct td_log_field fields[] = {TD_LOG_C("reason", reason), {.key = NULL}};
        td_log_write(store->logger, TD_LOG_ERROR, "storage failed, the store is read-only", fields);
    }
}

static void store_flush(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_store *store = context;
    int code = td_store_is_durable(store) ? TD_OK : td_store_sync(store, NULL);
    if (code < 0) {
        td_store_take_back(store);
    }
    store_note_failure(store);
    store_tell_waits(store, code);
    if (!td_watch_wake(store)) {
        td_store_ask_flush(store);
    }
    store_forget(store);
    td_store_snapshot(store);
}

static void store_rested(struct td_timer *timer, void *context)
{
    (void)timer;
    td_store_ask_flush(context);
}
