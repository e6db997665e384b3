/*
 * A lease that only says that its writer is there: written at an interval, made when it is missing,
 * and written on after failures. Nothing is read and no other holder is kept out.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "kube/client/lease.h"
#include "kube/client/lease_object.h"
#include "kube/client/verbs.h"

#define HEARTBEAT_MIN (100 * TD_MILLISECOND) /* however fast the clock is */

struct td_heartbeat {
    struct td_heartbeat_options options; /* texts owned by `texts` */
    struct td_arena texts;
    struct td_timer *timer;
    struct td_client_call *call;
};

/* Of the machine's time: readers compare beats with the cluster's clock, so the interval is of
 * that, but not shorter than programs can bear. */
static td_duration heartbeat_span(const struct td_heartbeat *beat)
{
    const struct td_clock *clock = td_loop_clock(beat->options.loop);
    td_duration span = clock->kind == TD_CLOCK_VIRTUAL
                           ? beat->options.interval
                           : td_clock_real_span(clock, beat->options.interval);
    return span > HEARTBEAT_MIN ? span : HEARTBEAT_MIN;
}

static void heartbeat_ended(struct td_heartbeat *beat, const struct td_error *err)
{
    const struct td_clock *clock = td_loop_clock(beat->options.loop);
    td_timer_set(beat->timer, td_clock_from_machine(clock, heartbeat_span(beat)));
    if (beat->options.beaten) {
        beat->options.beaten(beat->options.context, err);
    }
}

static void heartbeat_send(struct td_heartbeat *beat, bool is_new, td_client_done_fn done)
{
    td_auto_arena turn;
    td_arena_init(&turn, TD_LEASE_BYTES_MAX);
    const struct td_heartbeat_options *options = &beat->options;
    struct td_instant now = td_time_to_instant(td_clock_wall(td_loop_clock(options->loop)));
    struct td_json *object = is_new ? td_lease_new_object(&turn, options->namespace, options->name)
                                    : td_json_new_object(&turn);
    struct td_json *spec = td_json_ensure_object(&turn, object, TD_STR("spec"));
    td_json_set_str(&turn, spec, TD_STR("holderIdentity"), options->holder);
    td_json_set_int64(&turn, spec, TD_STR("leaseDurationSeconds"), options->duration_seconds);
    td_json_set_str(&turn, spec, TD_STR("renewTime"), td_lease_time(&turn, now));
    td_str body = td_json_line(&turn, object);
    struct td_api_path path =
        td_lease_path(options->namespace, is_new ? TD_STR_EMPTY : options->name);
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    int code = is_new ? td_verb_create(&turn, &path, body, NULL, &request, &err)
                      : td_verb_patch(&turn, &path, TD_PATCH_MERGE, body, NULL, &request, &err);
    if (code != TD_OK) {
        heartbeat_ended(beat, &err);
        return;
    }
    request.flow = options->flow;
    request.deadline = heartbeat_span(beat); /* a beat that is late is replaced by the next one */
    beat->call = td_client_send(options->client, &request, done, beat);
}

static void heartbeat_written(void *context, const struct td_client_reply *reply)
{
    struct td_heartbeat *beat = context;
    beat->call = NULL;
    heartbeat_ended(beat, &reply->err);
}

static void heartbeat_patched(void *context, const struct td_client_reply *reply)
{
    struct td_heartbeat *beat = context;
    beat->call = NULL;
    if (reply->code == TD_NOT_FOUND) {
        heartbeat_send(beat, true, heartbeat_written);
    } else {
        heartbeat_ended(beat, &reply->err);
    }
}

static void heartbeat_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    heartbeat_send(context, false, heartbeat_patched);
}

struct td_heartbeat *td_heartbeat_new(const struct td_heartbeat_options *options)
{
    td_assert(options->interval > 0);
    struct td_heartbeat *beat = td_alloc_zero(1, sizeof(*beat));
    td_arena_init(&beat->texts, TD_API_PATH_BYTES_MAX);
    beat->options = *options;
    beat->options.namespace = td_arena_copy_str(&beat->texts, options->namespace);
    beat->options.name = td_arena_copy_str(&beat->texts, options->name);
    beat->options.holder = td_arena_copy_str(&beat->texts, options->holder);
    beat->timer = td_timer_new(options->loop, heartbeat_rings, beat);
    td_timer_set(beat->timer, 0);
    return beat;
}

void td_heartbeat_free(struct td_heartbeat *beat)
{
    if (!beat) {
        return;
    }
    td_client_cancel(beat->call);
    td_timer_free(beat->timer);
    td_arena_done(&beat->texts);
    td_free(beat);
}
