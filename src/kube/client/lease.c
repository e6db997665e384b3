/*
 * One try is a chain of calls: a holder writes the object that it wrote last; when that fails, and
 * for all other candidates, the lease is read, made when it is missing, taken when it is free or
 * its holder has not changed it for as long as it says. Each write carries the resourceVersion
 * that was read, so of two that take it at once one loses. The chain ends in lease_tried, which
 * alone decides what happens next.
 */
#include "kube/client/lease.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "kube/client/lease_object.h"
#include "kube/client/verbs.h"

#define LEASE_JITTER 1.2

enum lease_state { LEASE_IDLE, LEASE_TRYING, LEASE_LEADING, LEASE_RELEASING };

struct td_lease {
    struct td_lease_options options; /* texts owned by `texts` */
    struct td_arena texts;
    enum lease_state state;
    unsigned renewals;         /* see td_lease_renewals */
    struct td_timer *retry;    /* the next try */
    struct td_timer *deadline; /* while leading: since the last renewal; while releasing: its end */
    struct td_client_call *call;
    struct td_backoff jitter; /* only its random state is used */
    struct td_arena memory;   /* of what was seen last; replaced as a whole */
    struct td_json *object;   /* NULL: nothing seen */
    struct td_lease_record seen;
    td_duration seen_at;  /* steady time at which `seen` last changed */
    td_duration sent_at;  /* of the last request: a write answered late counts from here */
    struct td_buf leader; /* reported by new_leader */
    bool object_was_seen; /* once: what the caller knew is used up */
    bool has_reported;
    bool is_stopping; /* a try is under way and its end is waited for */
    void (*done)(void *context);
    void *done_context;
    struct td_error last_error; /* of the last try */
};

static void lease_read(struct td_lease *lease);

static td_duration lease_now(const struct td_lease *lease)
{
    return td_clock_machine(td_loop_clock(lease->options.loop));
}

static struct td_instant lease_wall(const struct td_lease *lease)
{
    return td_time_to_instant(td_clock_wall(td_loop_clock(lease->options.loop)));
}

static bool lease_is_ours(const struct td_lease *lease)
{
    return lease->object && td_str_equal(lease->seen.holder, lease->options.identity);
}

static bool lease_is_valid(const struct td_lease *lease)
{
    int64_t seconds = lease->seen.duration_seconds;
    int64_t seconds_max = INT32_MAX; /* of the field; more is nonsense of an old version */
    seconds = seconds < 0 ? 0 : seconds > seconds_max ? seconds_max : seconds;
    return lease_now(lease) < lease->seen_at + seconds * TD_SECOND;
}

/* Remember an answer. A record that did not change keeps the time at which it was first seen. */
static int lease_see(struct td_lease *lease, td_str body, struct td_error *err)
{
    struct td_arena memory;
    td_arena_init(&memory, TD_TREE_ARENA_BYTES_MAX);
    struct td_json *object;
    struct td_lease_record record;
    int code = td_lease_decode(&memory, body, &object, &record, err);
    if (code != TD_OK) {
        td_arena_done(&memory);
        return code;
    }
    bool is_same = lease->object && td_str_equal(record.spec, lease->seen.spec);
    bool is_held_on = lease->object && td_str_equal(record.holder, lease->seen.holder);
    bool is_other = record.holder.len > 0 && !td_str_equal(record.holder, lease->options.identity);
    lease->renewals = !is_other ? 0 : is_held_on ? lease->renewals + !is_same : 1;
    td_arena_done(&lease->memory);
    lease->memory = memory;
    lease->object = object;
    lease->seen = record;
    bool is_known = !lease->object_was_seen && record.spec.len > 0 &&
                    td_str_equal(record.spec, lease->options.known_spec);
    lease->object_was_seen = true;
    lease->seen_at = is_same    ? lease->seen_at
                     : is_known ? lease->options.known_since
                                : lease_now(lease);
    return TD_OK;
}

static void lease_report(struct td_lease *lease)
{
    if (!lease->object || !lease->options.events.new_leader ||
        (lease->has_reported && td_str_equal(td_buf_str(&lease->leader), lease->seen.holder))) {
        return;
    }
    lease->has_reported = true;
    td_buf_reset(&lease->leader);
    (void)td_buf_append(&lease->leader, lease->seen.holder); /* under the cap of the object */
    lease->options.events.new_leader(lease->options.context, td_buf_str(&lease->leader));
}

static td_duration lease_pause(struct td_lease *lease)
{
    if (lease->state == LEASE_LEADING) {
        return lease->options.retry_period;
    }
    /* Of a backoff that does not grow the jitter is 0.5 to 1.5; client-go's is 1 to 2.2. */
    lease->jitter.attempts = 0;
    double random = (double)td_backoff_next(&lease->jitter) / (double)TD_SECOND - 0.5;
    return (td_duration)((double)lease->options.retry_period * (1 + random * LEASE_JITTER));
}

static void lease_stopped(struct td_lease *lease)
{
    td_timer_stop(lease->retry);
    td_timer_stop(lease->deadline);
    lease->state = LEASE_IDLE;
}

static void lease_lose(struct td_lease *lease, const char *why)
{
    struct td_error err = TD_ERROR_INIT;
    (void)td_error_set(&err, TD_CONFLICT, "lease '%.*s/%.*s': %s%s%s",
                       TD_STR_ARG(lease->options.namespace), TD_STR_ARG(lease->options.name), why,
                       lease->last_error.code != TD_OK ? ": " : "", lease->last_error.message);
    td_client_cancel(lease->call);
    lease->call = NULL;
    lease_stopped(lease);
    lease->options.events.stopped(lease->options.context, &err);
}

static void lease_released(struct td_lease *lease)
{
    void (*done)(void *context) = lease->done;
    lease_stopped(lease);
    lease->done = NULL;
    done(lease->done_context);
}

static void lease_release(struct td_lease *lease)
{
    lease->is_stopping = false;
    bool was_leading = lease->state == LEASE_LEADING;
    lease_stopped(lease);
    lease->state = LEASE_RELEASING;
    td_timer_set_machine(lease->deadline, was_leading ? lease->options.renew_deadline : 0);
    if (was_leading) {
        lease_read(lease);
    }
}

/* The end of every try. */
static void lease_tried(struct td_lease *lease, bool is_won)
{
    lease->call = NULL;
    if (lease->state == LEASE_RELEASING) {
        lease_released(lease);
        return;
    }
    bool is_new = is_won && lease->state == LEASE_TRYING;
    if (is_won) {
        lease->state = LEASE_LEADING;
        lease->last_error.code = TD_OK;
        lease->last_error.message[0] = '\0';
        td_duration due =
            lease->sent_at + lease->options.retry_period + lease->options.renew_deadline;
        td_timer_set_machine(lease->deadline, due - lease_now(lease));
    }
    if (lease->is_stopping) {
        lease_release(lease);
        return;
    }
    bool is_lost = !is_won && lease->state == LEASE_LEADING && lease->object &&
                   !lease_is_ours(lease) && lease->seen.holder.len > 0;
    if (!is_lost) {
        td_timer_set_machine(lease->retry, lease_pause(lease));
    }
    if (is_new) {
        lease->options.events.started(lease->options.context);
    } else if (is_lost) {
        lease_lose(lease, "another process holds it");
    }
    lease_report(lease);
}

static void lease_fail(struct td_lease *lease, const struct td_error *err)
{
    lease->last_error = *err;
    lease_tried(lease, false);
    if (lease->last_error.code == TD_DENIED && lease->state == LEASE_TRYING &&
        lease->options.events.denied) {
        lease->options.events.denied(lease->options.context, &lease->last_error);
    }
}

static void lease_written(void *context, const struct td_client_reply *reply)
{
    struct td_lease *lease = context;
    struct td_error err = reply->err;
    if (reply->code == TD_OK && lease_see(lease, reply->body, &err) == TD_OK) {
        lease_tried(lease, true);
    } else {
        lease_fail(lease, &err);
    }
}

/* The shortcut of a holder: when it fails, another client may have changed the object. */
static void lease_rewritten(void *context, const struct td_client_reply *reply)
{
    struct td_lease *lease = context;
    if (reply->code == TD_OK || lease->state != LEASE_LEADING) {
        lease_written(context, reply);
        return;
    }
    lease->last_error = reply->err;
    lease_read(lease);
}

static void lease_send(struct td_lease *lease, struct td_client_request *request,
                       td_client_done_fn done)
{
    request->flow = lease->options.flow;
    request->deadline = lease->options.renew_deadline / 2; /* two tries fit before it is lost */
    lease->sent_at = lease_now(lease);
    lease->call = td_client_send(lease->options.client, request, done, lease);
}

static struct td_lease_record lease_our_record(const struct td_lease *lease)
{
    struct td_lease_record record = {
        .holder = lease->options.identity,
        .duration_seconds = lease->options.duration / TD_SECOND,
    };
    if (lease->state == LEASE_RELEASING) {
        record.holder = TD_STR_EMPTY;
        record.duration_seconds = 1;
        record.transitions = lease->seen.transitions;
    } else if (lease_is_ours(lease)) {
        record.acquire_time = lease->seen.acquire_time;
        record.transitions = lease->seen.transitions;
    } else if (lease->object) {
        record.transitions = lease->seen.transitions + 1;
    }
    return record;
}

/* Create it, or change what was seen last. */
static void lease_write(struct td_lease *lease, bool is_new, td_client_done_fn done)
{
    td_auto_arena turn;
    td_arena_init(&turn, TD_TREE_ARENA_BYTES_MAX);
    const struct td_lease_options *options = &lease->options;
    struct td_json *object = is_new ? td_lease_new_object(&turn, options->namespace, options->name)
                                    : td_json_copy(&turn, lease->object, false);
    struct td_lease_record record = lease_our_record(lease);
    td_lease_set(&turn, object, &record, lease_wall(lease));
    struct td_api_path path =
        td_lease_path(options->namespace, is_new ? TD_STR_EMPTY : options->name);
    td_str body = td_json_line(&turn, object);
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    int code = is_new ? td_verb_create(&turn, &path, body, NULL, &request, &err)
                      : td_verb_update(&turn, &path, body, NULL, &request, &err);
    td_assert(code == TD_OK); /* the path was tried by td_lease_new */
    lease_send(lease, &request, done);
}

static void lease_has_read(void *context, const struct td_client_reply *reply)
{
    struct td_lease *lease = context;
    struct td_error err = reply->err;
    lease->call = NULL;
    if (reply->code == TD_NOT_FOUND && lease->state != LEASE_RELEASING) {
        td_arena_reset(&lease->memory);
        lease->object = NULL;
        lease_write(lease, true, lease_written);
        return;
    }
    if (reply->code != TD_OK || lease_see(lease, reply->body, &err) != TD_OK) {
        lease_fail(lease, &err);
        return;
    }
    bool is_free = lease->seen.holder.len == 0 || !lease_is_valid(lease);
    bool is_ours = lease_is_ours(lease);
    if (lease->state == LEASE_RELEASING ? is_ours : is_free || is_ours) {
        lease_write(lease, false, lease_written);
    } else {
        lease_tried(lease, false);
    }
}

static void lease_read(struct td_lease *lease)
{
    td_auto_arena turn;
    td_arena_init(&turn, TD_API_PATH_BYTES_MAX);
    struct td_api_path path = td_lease_path(lease->options.namespace, lease->options.name);
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    int code = td_verb_get(&turn, &path, &request, &err);
    td_assert(code == TD_OK); /* the path was tried by td_lease_new */
    lease_send(lease, &request, lease_has_read);
}

static void lease_retry_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_lease *lease = context;
    td_assert(!lease->call);
    if (lease->state == LEASE_LEADING && lease_is_ours(lease) && lease_is_valid(lease)) {
        lease_write(lease, false, lease_rewritten);
    } else {
        lease_read(lease);
    }
}

static void lease_deadline_rings(struct td_timer *timer, void *context)
{
    (void)timer;
    struct td_lease *lease = context;
    if (lease->state == LEASE_LEADING && !lease->is_stopping) {
        lease_lose(lease, "not renewed in time");
        return;
    }
    td_assert(lease->done);
    lease->is_stopping = false;
    td_client_cancel(lease->call);
    lease->call = NULL;
    lease_released(lease);
}

static int lease_check(const struct td_lease_options *options, struct td_error *err)
{
    td_auto_buf path = td_buf_capped(TD_API_PATH_BYTES_MAX);
    struct td_api_path api = td_lease_path(options->namespace, options->name);
    int code = td_path_write(&api, &path, err);
    if (code != TD_OK) {
        return code;
    }
    if (options->identity.len == 0 || options->name.len == 0 || options->namespace.len == 0) {
        return td_error_set(err, TD_INVALID, "a lease needs namespace, name and identity");
    }
    double retry = (double)options->retry_period * LEASE_JITTER;
    if (options->duration <= options->renew_deadline || options->duration < TD_SECOND ||
        (double)options->renew_deadline <= retry || options->retry_period <= 0) {
        return td_error_set(err, TD_INVALID,
                            "a lease needs duration > renew deadline > 1.2 x retry period > 0");
    }
    return TD_OK;
}

int td_lease_new(const struct td_lease_options *options, struct td_lease **ret,
                 struct td_error *err)
{
    struct td_lease_options all = *options;
    all.duration = options->duration > 0 ? options->duration : 15 * TD_SECOND;
    all.renew_deadline = options->renew_deadline > 0 ? options->renew_deadline : 10 * TD_SECOND;
    all.retry_period = options->retry_period > 0 ? options->retry_period : 2 * TD_SECOND;
    int code = lease_check(&all, err);
    if (code != TD_OK) {
        return code;
    }
    struct td_lease *lease = td_alloc_zero(1, sizeof(*lease));
    td_arena_init(&lease->texts, TD_API_PATH_BYTES_MAX);
    td_arena_init(&lease->memory, TD_TREE_ARENA_BYTES_MAX);
    td_buf_init(&lease->leader, TD_LEASE_BYTES_MAX);
    lease->options = all;
    lease->options.namespace = td_arena_copy_str(&lease->texts, options->namespace);
    lease->options.name = td_arena_copy_str(&lease->texts, options->name);
    lease->options.identity = td_arena_copy_str(&lease->texts, options->identity);
    lease->options.known_spec = td_arena_copy_str(&lease->texts, options->known_spec);
    lease->jitter = (struct td_backoff){TD_SECOND, TD_SECOND, 0, options->seed};
    lease->retry = td_timer_new(options->loop, lease_retry_rings, lease);
    lease->deadline = td_timer_new(options->loop, lease_deadline_rings, lease);
    *ret = lease;
    return TD_OK;
}

void td_lease_free(struct td_lease *lease)
{
    if (!lease) {
        return;
    }
    td_client_cancel(lease->call);
    td_timer_free(lease->retry);
    td_timer_free(lease->deadline);
    td_buf_done(&lease->leader);
    td_arena_done(&lease->memory);
    td_arena_done(&lease->texts);
    td_free(lease);
}

void td_lease_start(struct td_lease *lease)
{
    if (lease->state == LEASE_IDLE) {
        lease->state = LEASE_TRYING;
        td_timer_set_machine(lease->retry, 0);
    }
}

unsigned td_lease_renewals(const struct td_lease *lease)
{
    return lease->renewals;
}

bool td_lease_is_held(const struct td_lease *lease)
{
    return lease->state == LEASE_LEADING;
}

void td_lease_stop(struct td_lease *lease, void (*done)(void *context), void *context)
{
    td_assert(!lease->done);
    lease->done = done;
    lease->done_context = context;
    if (lease->call) {
        lease->is_stopping = true; /* a write under way could otherwise come after the release */
    } else {
        lease_release(lease);
    }
}
