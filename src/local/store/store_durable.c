/*
 * The store's side of the journal: filling it on a start, and keeping the log short.
 *
 * A snapshot is written in slices while commits go on, so it is not the state of one moment: each
 * object is in the state it had when the slice reached it. That is enough, because every commit
 * since the snapshot was begun is in the log file that was begun with it, and replaying those in
 * order ends, for each object, with its last commit, whatever state came from the snapshot. Only
 * the state of the moment in which it was ended is whole again; so changes are remembered for
 * cursors from that version on.
 */
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "local/store/journal.h"
#include "local/store/store_private.h"

static_assert((int)TD_JOURNAL_ADDED == (int)TD_CHANGE_ADDED, "types are the same numbers");
static_assert((int)TD_JOURNAL_MODIFIED == (int)TD_CHANGE_MODIFIED, "types are the same numbers");
static_assert((int)TD_JOURNAL_DELETED == (int)TD_CHANGE_DELETED, "types are the same numbers");

/* A change whose state before is known: it goes into the log, and has to fit the objects. */
static int load_change(struct td_collection *collection, const struct td_journal_record *record,
                       struct td_stored *before, struct td_stored *after, struct td_error *err)
{
    bool is_added = record->type == TD_JOURNAL_ADDED;
    if (is_added != (before == NULL)) {
        return td_error_set(err, TD_INVALID, "%.*s '%.*s' is %s", TD_STR_ARG(record->collection),
                            TD_STR_ARG(record->name), before ? "added twice" : "not there");
    }
    const struct td_change change = {
        .version = record->version,
        .type = (enum td_change_type)record->type,
        .before = before,
        .after = after,
    };
    td_collection_log(collection, &change);
    return TD_OK;
}

static int load_record(void *context, const struct td_journal_record *record, struct td_error *err)
{
    struct td_store *store = context;
    if (record->type == TD_JOURNAL_END) {
        store->load_end = record->version;
        return TD_OK;
    }
    struct td_collection *collection;
    struct td_stored *after;
    int code = td_store_collection(store, record->collection, &collection, err);
    if (code < 0) {
        return code;
    }
    code = td_stored_new(record->version, record->ns, record->name, record->json, &after, err);
    if (code < 0) {
        return code;
    }
    struct td_ordered_place place;
    struct td_stored *before =
        td_ordered_find(&collection->objects, record->ns, record->name, &place);
    bool is_object = record->type == TD_JOURNAL_OBJECT;
    if (!is_object && record->version > store->load_end) {
        code = load_change(collection, record, before, after, err);
    }
    bool is_deleted = record->type == TD_JOURNAL_DELETED;
    if (code == TD_OK && (before || !is_deleted)) {
        td_collection_put(collection, place, before, is_deleted ? NULL : td_stored_ref(after));
        collection->version =
            record->version > collection->version ? record->version : collection->version;
    }
    td_stored_unref(after);
    return code;
}

/* The head of what was read is where the logs begin; all of it is on disk. */
static void load_finish(struct td_store *store, const struct td_journal_state *state)
{
    store->version = state->version;
    store->durable_version = state->version;
    store->floor = state->floor;
    for (size_t i = 0; i < store->collection_count; i++) {
        struct td_collection *collection = store->collections[i];
        collection->floor = collection->floor > state->floor ? collection->floor : state->floor;
        collection->published = collection->log.end;
        collection->announced = collection->log.end;
    }
}

static enum td_job_result snapshot_job(td_str key, void *context);

int td_store_load(struct td_store *store, const struct td_store_options *options,
                  struct td_error *err)
{
    const struct td_journal_options journal_options = {
        .path = options->data_dir,
        .version_start = store->version,
        .log = options->log,
        .fault = options->fault,
    };
    struct td_journal_state state;
    store->logger = options->log;
    /* Collections that come from the folder begin below all versions that are in it. */
    store->floor = 0;
    int code = td_journal_open(&journal_options, load_record, store, &state, &store->journal, err);
    if (code < 0) {
        return td_error_wrap(err, code, "read the data folder");
    }
    load_finish(store, &state);
    store->snapshots = td_queue_new(store->loop, snapshot_job, store, 1);
    return TD_OK;
}

int td_store_sync(struct td_store *store, struct td_error *err)
{
    int code = td_journal_sync(store->journal, err);
    if (code < 0) {
        return code;
    }
    store->durable_version = store->version;
    for (size_t i = 0; i < store->collection_count; i++) {
        store->collections[i]->published = store->collections[i]->log.end;
    }
    return TD_OK;
}

const char *td_store_failure(struct td_store *store)
{
    if (!store->journal) {
        return NULL;
    }
    td_duration now = td_clock_machine(td_loop_clock(store->loop));
    if (store->is_failed && td_store_is_durable(store) && now >= store->heal_at) {
        store->heal_at = now + TD_STORE_HEAL_PAUSE;
        if (td_journal_heal(store->journal, NULL) == TD_OK) {
            store->is_failed = false;
            td_log_write(store->logger, TD_LOG_INFO, "storage works again", NULL);
        }
    }
    return td_journal_failure(store->journal);
}

/* Undo the newest change of the log. */
static void collection_undo(struct td_collection *collection)
{
    struct td_changelog *log = &collection->log;
    struct td_change change = *td_changelog_at(log, log->end - 1);
    size_t bytes = log->bytes;
    struct td_ordered_place place;
    struct td_stored *now =
        td_ordered_find(&collection->objects, change.after->ns, change.after->name, &place);
    td_assert((now == NULL) == (change.type == TD_CHANGE_DELETED));
    struct td_stored *then = change.before ? td_stored_ref(change.before) : NULL;
    td_collection_put(collection, place, now, then);
    td_changelog_drop_last(log);
    collection->store->log_bytes -= bytes - log->bytes;
}

void td_store_take_back(struct td_store *store)
{
    for (size_t i = 0; i < store->collection_count; i++) {
        struct td_collection *collection = store->collections[i];
        while (collection->log.end > collection->published) {
            collection_undo(collection);
        }
        bool has_log = collection->log.first < collection->log.end;
        collection->version =
            has_log ? td_changelog_at(&collection->log, collection->log.end - 1)->version
                    : collection->floor;
    }
    store->version = store->durable_version;
    if (td_journal_has_snapshot(store->journal)) { /* it may have what was taken back */
        td_collection_iter_done(&store->snapshot_iter);
        td_journal_snapshot_give_up(store->journal);
    }
}

/* ---- Snapshots ---- */

static void snapshot_failed(struct td_store *store, const struct td_error *err)
{
    td_collection_iter_done(&store->snapshot_iter);
    td_journal_snapshot_give_up(store->journal);
    const struct td_log_field fields[] = {TD_LOG_C("reason", err->message), {.key = NULL}};
    td_log_write(store->logger, TD_LOG_WARN, "cannot write a snapshot, the log keeps growing",
                 fields);
}

void td_store_snapshot(struct td_store *store)
{
    if (!store->journal || !td_journal_wants_snapshot(store->journal, store->live_bytes)) {
        return;
    }
    struct td_error err = TD_ERROR_INIT;
    int code = td_journal_snapshot_begin(store->journal, &err);
    if (code == TD_OK) {
        store->snapshot_index = 0;
        code = td_queue_add(store->snapshots, TD_STR("snapshot"), &err);
    }
    if (code < 0) {
        snapshot_failed(store, &err);
    }
}

/* The next object in any collection, or NULL. */
static struct td_stored *snapshot_next(struct td_store *store, td_str *ret_collection)
{
    for (;;) {
        const struct td_collection *collection = store->snapshot_iter.collection;
        struct td_stored *stored = td_collection_iter_next(&store->snapshot_iter);
        if (stored) {
            *ret_collection = collection->key;
            return stored;
        }
        if (store->snapshot_index == store->collection_count) {
            return NULL;
        }
        store->snapshot_iter =
            td_collection_walk(store->collections[store->snapshot_index++], TD_STR_EMPTY);
    }
}

/* One slice; *ret_is_done when all objects are written. It ends with bringing them to disk, so that
 * the last slice does not have to wait for all of them. */
static int snapshot_slice(struct td_store *store, bool *ret_is_done, struct td_error *err)
{
    size_t bytes = 0;
    while (bytes < TD_JOURNAL_SLICE_BYTES) {
        struct td_journal_record record = {0};
        const struct td_stored *stored = snapshot_next(store, &record.collection);
        if (!stored) {
            *ret_is_done = true;
            return TD_OK;
        }
        record.version = stored->version;
        record.ns = stored->ns;
        record.name = stored->name;
        record.json = stored->json;
        int code = td_journal_snapshot_put(store->journal, &record, err);
        if (code < 0) {
            return code;
        }
        bytes += stored->bytes;
    }
    return td_journal_snapshot_sync(store->journal, err);
}

static enum td_job_result snapshot_job(td_str key, void *context)
{
    (void)key;
    struct td_store *store = context;
    struct td_error err = TD_ERROR_INIT;
    bool is_done = false;
    if (!td_journal_has_snapshot(store->journal)) {
        return TD_JOB_DONE; /* given up meanwhile */
    }
    int code = snapshot_slice(store, &is_done, &err);
    if (code == TD_OK && !is_done) {
        return TD_JOB_AGAIN;
    }
    /* Objects in the snapshot may be newer than what is on disk of the log. */
    if (code == TD_OK) {
        code = td_store_sync(store, &err);
    }
    if (code == TD_OK) {
        td_store_ask_flush(store); /* cursors can see more now */
        code = td_journal_snapshot_end(store->journal, store->version, &err);
    }
    if (code < 0) {
        snapshot_failed(store, &err);
    }
    return TD_JOB_DONE;
}
