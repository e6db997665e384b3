/*
 * A watch: what is there already, when it was asked for, and then every change, from a cursor in
 * the collection's log. Nothing is queued for a slow receiver: while it is full the cursor stays
 * where it is, and when the log has dropped what comes next the watch ends with an ERROR event of
 * code 410, upon which clients list again.
 *
 * What a change means to a watcher depends on its selector, as in the API server's watch cache:
 *   matched before and after        MODIFIED, the new state
 *   only after                      ADDED, the new state
 *   only before                     DELETED, the state before, under the version of the change
 *   neither                         nothing
 * A bookmark tells a version up to which nothing is missing. It comes every TD_WATCH_BOOKMARK_MS
 * and before the end by timeout; the one that ends the initial objects is annotated.
 */
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "local/api/api_private.h"
#include "local/store/store.h"

struct watch_call {
    struct td_watch_cursor cursor;
    struct td_select select;
    struct td_page initial; /* what was there; emptied when it has been sent */
    size_t initial_next;
    struct td_timer *timer; /* the next bookmark or the end, whichever comes first */
    td_duration ends_at;    /* steady time */
    uint64_t version;       /* up to which everything was sent */
    bool has_initial;       /* initial is still to be sent */
    bool wants_initial_end; /* the annotated bookmark is still to be sent */
    bool has_columns;       /* a Table's columns were sent */
    bool is_behind;         /* the receiver was full before everything was sent */
};

/* One turn of writing: small events are gathered. */
struct watch_turn {
    struct td_api_call *call;
    struct watch_call *watch;
    struct td_item_writer writer;
    struct td_buf batch;
};

enum watch_event { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK };

static const td_str watch_starts[] = {
    [WATCH_ADDED] = TD_STR_INIT("{\"type\":\"ADDED\",\"object\":"),
    [WATCH_MODIFIED] = TD_STR_INIT("{\"type\":\"MODIFIED\",\"object\":"),
    [WATCH_DELETED] = TD_STR_INIT("{\"type\":\"DELETED\",\"object\":"),
    [WATCH_BOOKMARK] = TD_STR_INIT("{\"type\":\"BOOKMARK\",\"object\":"),
};
static const td_str watch_end = TD_STR_INIT("}\n");

static void turn_begin(struct watch_turn *turn, struct td_api_call *call)
{
    turn->call = call;
    turn->watch = call->state;
    td_call_hold(call);
    td_item_writer_init(&turn->writer, call, false);
    turn->writer.is_first = !turn->watch->has_columns;
    td_buf_init(&turn->batch, TD_STREAM_BYTES_MAX);
}

static void turn_flush(struct watch_turn *turn)
{
    td_call_write(turn->call, td_buf_str(&turn->batch));
    td_buf_reset(&turn->batch);
}

static void turn_end(struct watch_turn *turn)
{
    turn_flush(turn);
    turn->watch->has_columns = !turn->writer.is_first;
    td_item_writer_done(&turn->writer);
    td_buf_done(&turn->batch);
    td_call_drop(turn->call);
}

/* ---- Events ---- */

static void watch_release_stored(void *owner)
{
    td_stored_unref(owner);
}

static void watch_write(struct watch_turn *turn, enum watch_event event, struct td_stored *stored)
{
    size_t before = turn->batch.len;
    (void)td_buf_append(&turn->batch, watch_starts[event]);
    if (turn->writer.is_raw && stored->json.len >= TD_STREAM_LEND_BYTES) {
        turn_flush(turn);
        td_call_write_shared(turn->call, stored->json, watch_release_stored, td_stored_ref(stored));
    } else if (td_item_write(&turn->writer, stored, &turn->batch, NULL) != TD_OK) {
        turn->batch.len = before; /* it does not convert: it is not visible in this version */
        return;
    }
    (void)td_buf_append(&turn->batch, watch_end);
    if (turn->batch.len >= TD_STREAM_BATCH_BYTES) {
        turn_flush(turn);
    }
}

/* The tree must be of the storage version; it is used up. */
static void watch_write_tree(struct watch_turn *turn, enum watch_event event, struct td_json *tree)
{
    size_t before = turn->batch.len;
    (void)td_buf_append(&turn->batch, watch_starts[event]);
    if (td_item_write_tree(&turn->writer, tree, &turn->batch, NULL) != TD_OK) {
        turn->batch.len = before;
        return;
    }
    (void)td_buf_append(&turn->batch, watch_end);
}

static td_str watch_version_text(struct td_arena *arena, uint64_t version)
{
    return td_arena_format(arena, "%llu", (unsigned long long)version);
}

/* The state before a change that took it out of the selection, under the change's version. */
static void watch_write_left(struct watch_turn *turn, const struct td_change *change)
{
    struct td_arena *arena = &turn->writer.scratch;
    struct td_json *tree;
    td_arena_reset(arena);
    if (td_json_parse(arena, change->before->json, NULL, &tree, NULL) != TD_OK) {
        return; /* was stored as JSON */
    }
    struct td_json *metadata = td_json_ensure_object(arena, tree, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("resourceVersion"),
                    watch_version_text(arena, change->version));
    watch_write_tree(turn, WATCH_DELETED, tree);
}

static bool watch_matches(struct watch_turn *turn, const struct td_stored *stored)
{
    return stored && td_select_matches(&turn->watch->select, &turn->writer.scratch, stored);
}

static void watch_write_change(struct watch_turn *turn, const struct td_change *change)
{
    turn->watch->version = change->version;
    td_str ns = turn->call->path.ns;
    if (ns.len > 0 && !td_str_equal(change->after->ns, ns)) {
        return;
    }
    bool is_deleted = change->type == TD_CHANGE_DELETED;
    bool was_selected = watch_matches(turn, change->before);
    bool is_selected = !is_deleted && watch_matches(turn, change->after);
    if (is_selected) {
        watch_write(turn, was_selected ? WATCH_MODIFIED : WATCH_ADDED, change->after);
    } else if (was_selected && is_deleted) {
        watch_write(turn, WATCH_DELETED, change->after);
    } else if (was_selected) {
        watch_write_left(turn, change);
    }
}

static void watch_write_bookmark(struct watch_turn *turn, bool ends_initial)
{
    struct td_arena *arena = &turn->writer.scratch;
    const struct td_resource *resource = turn->call->at.resource;
    td_arena_reset(arena);
    struct td_json *tree = td_json_new_object(arena);
    td_json_set_str(arena, tree, TD_STR("kind"), resource->kind);
    td_json_set_str(arena, tree, TD_STR("apiVersion"),
                    resource->versions[resource->storage].api_version);
    struct td_json *metadata = td_json_ensure_object(arena, tree, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("resourceVersion"),
                    watch_version_text(arena, turn->watch->version));
    if (ends_initial) {
        struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
        td_json_set_str(arena, annotations, TD_STR("k8s.io/initial-events-end"), TD_STR("true"));
    }
    if (turn->writer.is_raw) {
        (void)td_buf_append(&turn->batch, watch_starts[WATCH_BOOKMARK]);
        td_json_write(tree, &(struct td_json_format){.escape_html = true}, &turn->batch);
        (void)td_buf_append(&turn->batch, watch_end);
    } else {
        watch_write_tree(turn, WATCH_BOOKMARK, tree);
    }
}

static void watch_write_expired(struct watch_turn *turn, uint64_t version)
{
    struct td_api_call *call = turn->call;
    td_str message = td_arena_format(&call->arena, "too old resource version: %llu (%llu)",
                                     (unsigned long long)version,
                                     (unsigned long long)td_store_version(call->api->store));
    (void)td_buf_append(&turn->batch, TD_STR("{\"type\":\"ERROR\",\"object\":"));
    td_json_write(td_call_status(call, 410, "Expired", message),
                  &(struct td_json_format){.escape_html = true}, &turn->batch);
    (void)td_buf_append(&turn->batch, watch_end);
}

/* ---- The stream ---- */

static void watch_write_initial(struct watch_turn *turn)
{
    struct watch_call *watch = turn->watch;
    if (watch->initial_next < watch->initial.count) {
        struct td_stored *stored = watch->initial.items[watch->initial_next++];
        if (watch_matches(turn, stored)) {
            watch_write(turn, WATCH_ADDED, stored);
        }
        return;
    }
    watch->has_initial = false;
    td_page_done(&watch->initial);
    watch->initial = (struct td_page){.items = NULL};
    if (watch->wants_initial_end) {
        watch_write_bookmark(turn, true);
    }
}

/* Writes until the receiver is full or there is nothing left; true when everything was sent. The
 * call may be over afterwards. */
static bool watch_pump(struct watch_turn *turn)
{
    struct td_api_call *call = turn->call;
    struct watch_call *watch = turn->watch;
    while (!td_call_is_full(call)) {
        if (watch->has_initial) {
            watch_write_initial(turn);
            continue;
        }
        const struct td_change *change = NULL;
        if (td_watch_next(&watch->cursor, &change, NULL) != TD_OK) {
            watch_write_expired(turn, watch->version);
            turn_flush(turn);
            td_call_end(call);
            return false;
        }
        if (!change) {
            uint64_t durable = td_store_durable_version(call->api->store);
            watch->version = durable > watch->version ? durable : watch->version;
            return true;
        }
        watch_write_change(turn, change);
    }
    return false;
}

static void watch_send(struct td_api_call *call)
{
    struct watch_turn turn;
    turn_begin(&turn, call);
    turn.watch->is_behind = !watch_pump(&turn); /* what is left waits for a resume or a change */
    turn_end(&turn);
}

/* The receiver has room again. What has changed since everything was sent is told by the store in
 * its own time, so that a fast receiver does not get a record for each change. */
static void watch_resume(struct td_api_call *call)
{
    const struct watch_call *watch = call->state;
    if (watch->is_behind) {
        watch_send(call);
    }
}

static void watch_changed(void *context)
{
    struct td_api_call *call = context;
    if (call->resume) { /* else it waits for the disk and has no head yet */
        watch_send(call);
    }
}

/* Until the next bookmark or the end; both are the machine's time, which receivers live in. */
static void watch_set_timer(struct td_api_call *call)
{
    struct watch_call *watch = call->state;
    const struct td_clock *clock = td_loop_clock(call->api->loop);
    td_duration left = watch->ends_at - td_clock_steady(clock);
    td_duration bookmark = td_clock_from_machine(clock, TD_WATCH_BOOKMARK_MS * TD_MILLISECOND);
    bool is_bookmark = call->query.allow_bookmarks && bookmark < left;
    td_timer_set(watch->timer, is_bookmark ? bookmark : left > 0 ? left : 0);
}

static void watch_timer(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_api_call *call = context;
    struct watch_turn turn;
    turn_begin(&turn, call);
    struct watch_call *watch = turn.watch;
    uint64_t sent = watch->version;
    bool is_all = watch_pump(&turn);
    watch->is_behind = !is_all;
    bool is_end = td_clock_steady(td_loop_clock(call->api->loop)) >= watch->ends_at;
    if (call->query.allow_bookmarks && is_all && (!is_end || watch->version != sent)) {
        watch_write_bookmark(&turn, false);
    }
    turn_flush(&turn);
    if (call->is_over) {
        /* Ended by the pump, or cancelled by the receiver. */
    } else if (is_end) {
        td_call_end(call);
    } else {
        watch_set_timer(call);
    }
    turn_end(&turn);
}

static void watch_release(struct td_api_call *call)
{
    struct watch_call *watch = call->state;
    td_watch_close(&watch->cursor);
    td_page_done(&watch->initial);
    td_timer_free(watch->timer);
}

/* ---- Starting ---- */

static void watch_begin(struct td_api_call *call)
{
    struct watch_call *watch = call->state;
    int64_t seconds = call->query.timeout_seconds;
    if (seconds <= 0) {
        seconds =
            TD_WATCH_SECONDS_MIN + (int64_t)(td_api_chance(call->api) % TD_WATCH_SECONDS_SPREAD);
    }
    seconds = seconds > TD_WATCH_SECONDS_MAX ? TD_WATCH_SECONDS_MAX : seconds;
    const struct td_clock *clock = td_loop_clock(call->api->loop);
    watch->ends_at = td_clock_steady(clock) + td_clock_from_machine(clock, seconds * TD_SECOND);
    watch->timer = td_timer_new(call->api->loop, watch_timer, call);
    watch_set_timer(call);
    td_call_begin(call, 200, TD_STR("application/json"));
    call->resume = watch_resume;
    watch_send(call);
}

/* The position is gone: an answer like any watch's, with one event. */
static void watch_refuse_expired(struct td_api_call *call, uint64_t version)
{
    struct watch_turn turn;
    td_call_begin(call, 200, TD_STR("application/json"));
    turn_begin(&turn, call);
    watch_write_expired(&turn, version);
    turn_flush(&turn);
    td_call_end(call);
    turn_end(&turn);
}

static bool watch_wants_initial(const struct td_api_query *query)
{
    if (query->has_send_initial_events) {
        return query->send_initial_events;
    }
    return query->resource_version.len == 0 || td_str_equal(query->resource_version, TD_STR("0"));
}

/* Opens the cursor, behind a snapshot of what is there when that is wanted; false when the call was
 * answered. */
static bool watch_open(struct td_api_call *call, struct td_collection *collection)
{
    struct watch_call *watch = call->state;
    struct td_error err = TD_ERROR_INIT;
    int64_t asked = 0;
    (void)td_str_to_int64(call->query.resource_version, &asked); /* checked; empty is 0 */
    watch->version = (uint64_t)asked;
    watch->has_initial = watch_wants_initial(&call->query);
    watch->wants_initial_end = watch->has_initial && call->query.allow_bookmarks;
    uint64_t newest = td_store_version(call->api->store);
    if (watch->has_initial && watch->version > newest) {
        td_call_version_too_large(call, watch->version);
        return false;
    }
    if (watch->has_initial) {
        struct td_page_query query = {.ns = call->path.ns};
        int code = td_collection_snapshot_at(collection, &query, &watch->initial, &err);
        td_assert(code == TD_OK); /* the newest is always there */
        watch->version = watch->initial.version;
    } else if (watch->version == 0) {
        watch->version = newest;
    }
    if (td_watch_open(&watch->cursor, collection, watch->version, watch_changed, call, &err) !=
        TD_OK) {
        watch_refuse_expired(call, watch->version);
        return false;
    }
    return true;
}

void td_watch_start(struct td_api_call *call)
{
    struct watch_call *watch = td_arena_new(&call->arena, struct watch_call);
    struct td_error err = TD_ERROR_INIT;
    struct td_collection *collection;
    call->state = watch;
    call->release = watch_release;
    if (!td_select_parse(call, &watch->select)) {
        return;
    }
    if (td_store_collection(call->api->store, call->at.resource->collection, &collection, &err) !=
        TD_OK) {
        td_call_fail(call, 500, "InternalError", "Internal error occurred: %s", err.message);
        return;
    }
    if (watch_open(call, collection)) {
        td_call_when_durable(call, watch_begin);
    }
}
