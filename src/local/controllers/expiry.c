/*
 * Each event has a delayed job of its own, which looks at it when an hour has passed since it was
 * last seen happening: it goes, or the job waits for what is left. So an event costs two looks in
 * its life, however many there are. Repeats need no notice: the job finds them.
 */
#include "local/controllers/expiry.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "base/timefmt.h"
#include "kube/objectkey.h"
#include "local/api/api.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"
#include "local/store/observer.h"
#include "local/store/store.h"

#define EXPIRY_AGE_SECONDS 3600
#define EXPIRY_LEFT_SECONDS_MAX 86400 /* of an event from the future: looked at again */

static_assert(TD_COLLECTION_OBJECTS_MAX < TD_WORK_QUEUE_MAX, "every event has a job");

struct td_expiry {
    struct td_api *api;
    struct td_observer *observer;
    struct td_queue *queue; /* keys: namespace/name */
    bool has_left_out;      /* events have no job: the queue was full of those that are gone */
};

/* When it last happened: the newest of the times that an event has. */
static int64_t expiry_time(const struct td_json *event)
{
    static const char *const paths[] = {
        "metadata.creationTimestamp", "firstTimestamp",         "lastTimestamp", "eventTime",
        "series.lastObservedTime",    "deprecatedLastTimestamp"};
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < TD_COUNT(paths); i++) {
        const struct td_json *text = td_json_get_path(event, paths[i]);
        struct td_instant instant;
        if (td_json_is(text, TD_JSON_TYPE_STRING) &&
            td_time_parse(text->text, &instant, NULL) == TD_OK && instant.unix_seconds > newest) {
            newest = instant.unix_seconds;
        }
    }
    return newest;
}

/* How long it may still stay; not positive: it goes. */
static td_duration expiry_left(const struct td_expiry *expiry, const struct td_stored *stored)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *event;
    if (td_json_parse(&arena, stored->json, NULL, &event, NULL) != TD_OK) {
        return EXPIRY_AGE_SECONDS * TD_SECOND; /* never so: the store's texts are our own */
    }
    td_time now = td_api_now(expiry->api);
    int64_t left = expiry_time(event) + EXPIRY_AGE_SECONDS - td_time_to_instant(now).unix_seconds;
    left = left > 0 ? left : 0;
    return (left < EXPIRY_LEFT_SECONDS_MAX ? left : EXPIRY_LEFT_SECONDS_MAX) * TD_SECOND;
}

static void expiry_later(struct td_expiry *expiry, td_str key, td_duration after)
{
    if (td_queue_add_after(expiry->queue, key, after, NULL) != TD_OK) {
        expiry->has_left_out = true;
    }
}

static void expiry_add(struct td_expiry *expiry, const struct td_stored *stored)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_str key = td_object_key_write(TD_OBJECT_KEY(stored->ns, stored->name), buffer);
    expiry_later(expiry, key, expiry_left(expiry, stored));
}

/* There is room again: every event that is stored gets its job. */
static void expiry_catch_up(struct td_expiry *expiry, const struct td_collection *collection)
{
    expiry->has_left_out = false;
    struct td_collection_iter iter = td_collection_walk(collection, TD_STR_EMPTY);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        expiry_add(expiry, stored);
    }
}

static enum td_job_result expiry_work(td_str key, void *context)
{
    struct td_expiry *expiry = context;
    const struct td_resource *events = td_api_kind(expiry->api, TD_STR("v1"), TD_STR("Event"));
    const struct td_collection *collection =
        td_store_find(td_api_store(expiry->api), events->collection);
    struct td_object_key event = td_object_key_read(key);
    if (!collection) {
        return TD_JOB_DONE;
    }
    size_t room = TD_WORK_QUEUE_MAX - TD_COLLECTION_OBJECTS_MAX;
    if (expiry->has_left_out && td_queue_count(expiry->queue) < room) {
        expiry_catch_up(expiry, collection);
    }
    const struct td_stored *stored = td_collection_get(collection, event.namespace, event.name);
    if (!stored) {
        return TD_JOB_DONE;
    }
    td_duration left = expiry_left(expiry, stored);
    if (left > 0) {
        expiry_later(expiry, key, left);
        return TD_JOB_DONE;
    }
    /* One that is gone already, or that a finalizer keeps, is no concern of ours. */
    (void)td_edit_delete(expiry->api, events, event.namespace, event.name, TD_STR_EMPTY,
                         TD_STR_EMPTY, -1, NULL);
    return TD_JOB_DONE;
}

static void expiry_observe(const struct td_resource *resource, struct td_stored *before,
                           struct td_stored *after, void *context)
{
    (void)resource;
    struct td_expiry *expiry = context;
    if (before || !after) {
        return; /* its job waits already, or finds nothing */
    }
    expiry_add(expiry, after);
}

struct td_expiry *td_expiry_new(struct td_api *api)
{
    static const td_str events = TD_STR_INIT("events");
    struct td_expiry *expiry = td_alloc_zero(1, sizeof(*expiry));
    expiry->api = api;
    expiry->queue = td_queue_new(td_api_loop(api), expiry_work, expiry, TD_WORK_QUEUE_MAX);
    expiry->observer = td_observer_new(api, &events, 1, expiry_observe, expiry);
    return expiry;
}

void td_expiry_free(struct td_expiry *expiry)
{
    if (!expiry) {
        return;
    }
    td_observer_free(expiry->observer);
    td_queue_free(expiry->queue);
    td_free(expiry);
}
