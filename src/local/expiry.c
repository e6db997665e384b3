#include "local/expiry.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/loop.h"
#include "base/timefmt.h"
#include "local/api.h"
#include "local/edit.h"
#include "local/resource.h"
#include "local/store.h"

#define EXPIRY_AGE_SECONDS 3600
#define EXPIRY_EVERY (60 * TD_SECOND)

struct td_expiry {
    struct td_api *api;
    struct td_timer *timer;
};

/* When it last happened: the newest of the times that an event has. */
static int64_t expiry_time(const struct td_json *event)
{
    static const char *const paths[] = {
        "metadata.creationTimestamp", "firstTimestamp",         "lastTimestamp", "eventTime",
        "series.lastObservedTime",    "deprecatedLastTimestamp"};
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const struct td_json *text = td_json_get_path(event, paths[i]);
        struct td_instant instant;
        if (td_json_is(text, TD_JSON_TYPE_STRING) &&
            td_time_parse(text->text, &instant, NULL) == TD_OK && instant.unix_seconds > newest) {
            newest = instant.unix_seconds;
        }
    }
    return newest;
}

static void expiry_pass(struct td_expiry *expiry, int64_t oldest)
{
    const struct td_resource *events =
        td_resources_find_kind(td_api_resources(expiry->api), TD_STR("v1"), TD_STR("Event"))
            .resource;
    const struct td_collection *collection =
        td_store_find(td_api_store(expiry->api), events->collection);
    struct td_collection_iter iter;
    struct td_stored *stored;
    if (!collection) {
        return;
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_collection_iter_init(&iter, collection, TD_STR_EMPTY);
    while ((stored = td_collection_iter_next(&iter))) {
        struct td_json *event;
        td_arena_reset(&arena);
        if (td_json_parse(&arena, stored->json, NULL, &event, NULL) == TD_OK &&
            expiry_time(event) < oldest) {
            td_stored_ref(stored);
            /* One that is gone already, or that a finalizer keeps, is no concern of ours. */
            (void)td_edit_delete(expiry->api, events, stored->ns, stored->name, stored->uid,
                                 TD_STR_EMPTY, -1, NULL);
            td_stored_unref(stored);
        }
    }
    td_collection_iter_done(&iter);
}

static void expiry_tick(struct td_timer *timer, void *context)
{
    struct td_expiry *expiry = context;
    td_time now = td_clock_wall(td_loop_clock(td_api_loop(expiry->api)));
    expiry_pass(expiry, td_time_to_instant(now).unix_seconds - EXPIRY_AGE_SECONDS);
    td_timer_set(timer, EXPIRY_EVERY);
}

struct td_expiry *td_expiry_new(struct td_api *api)
{
    struct td_expiry *expiry = td_alloc_zero(1, sizeof(*expiry));
    expiry->api = api;
    expiry->timer = td_timer_new(td_api_loop(api), expiry_tick, expiry);
    td_timer_set(expiry->timer, EXPIRY_EVERY);
    return expiry;
}

void td_expiry_free(struct td_expiry *expiry)
{
    if (!expiry) {
        return;
    }
    td_timer_free(expiry->timer);
    td_free(expiry);
}
