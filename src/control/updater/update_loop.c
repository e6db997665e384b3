/*
 * A timer starts a pass every interval. With --use-admission-controller-status the lease of the
 * admission controller is read first (UPDATE_LEASE). Then get_problem and the age of the informers
 * are asked: a problem ends the pass, counted by its reason. The pass goes part by part
 * (update_parts.c); each part is opened, its actions are done one at a time, and it is closed.
 *
 * An action waits in UPDATE_WAITING: for a token of the rate limit, for the webhook's proof before
 * an eviction, for the replacement of a sibling, or for an owner that is being asked for. It is
 * under way in UPDATE_ACTING: the reads before an eviction (update_replacement.c), then the call.
 * Its answer goes back to the pass, which chooses the next action or falls back to an eviction.
 * UPDATE_IDLE is the time between passes; a tick that finds a pass under way starts the next one at
 * its end.
 *
 * The loop writes pods (eviction, resize, annotations), events on pods and VPAs, the condition
 * EvictionBlocked of VPAs (update_condition.c), and boosts that are over (update_boost_revert.c).
 * Stopped, it starts nothing new; a call under way is answered, then `done` is called.
 */
#include "control/updater/update_loop.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/timefmt.h"
#include "control/updater/update_private.h"
#include "kube/client/client.h"
#include "kube/client/events.h"
#include "kube/client/verbs.h"

#define UPDATE_FRESH (2 * TD_MINUTE + 30 * TD_SECOND) /* a quiet watch is confirmed each minute */
#define UPDATE_BUSY_PAUSE TD_SECOND
#define UPDATE_PROOF_PAUSE (10 * TD_MILLISECOND) /* of the machine's time */
#define UPDATE_PROOF_MAX 1500
#define UPDATE_BUSY_MAX 10 /* then the namespace waits for the next pass */

td_time update_now(const struct td_update_loop *loop)
{
    return td_clock_wall(td_loop_clock(loop->options.control.loop));
}

bool update_is_fresh(const struct td_update_loop *loop)
{
    const struct td_informers *informers = loop->options.control.informers;
    return td_informers_is_synced(informers) && td_informers_age(informers) <= UPDATE_FRESH;
}

struct td_token_bucket *update_resizes(struct td_update_loop *loop)
{
    return loop->is_open ? &loop->turns.items[loop->turn_at]->state.resizes : &loop->resizes;
}

static void update_next(struct td_update_loop *loop);

/* ---- The end of a pass ---- */

static bool update_is_idle(const struct td_update_loop *loop)
{
    return loop->phase == UPDATE_IDLE && update_conditions_are_idle(loop->conditions) &&
           (!loop->revert || update_boost_revert_is_idle(loop->revert));
}

void update_settle(struct td_update_loop *loop)
{
    if (loop->stopped && update_is_idle(loop)) {
        void (*stopped)(void *context) = loop->stopped;
        loop->stopped = NULL;
        stopped(loop->stopped_context);
    }
}

static void update_close(struct td_update_loop *loop)
{
    if (loop->is_open) {
        struct update_part *part = loop->turns.items[loop->turn_at];
        loop->evictions = part->state.evictions;
        loop->resizes = part->state.resizes;
        update_metrics_pass(loop);
        update_blocked_tell(loop, part);
        td_updater_pass_end(&loop->pass);
        loop->is_open = false;
        loop->resume = part->state.resume.len > 0 && !loop->resume ? part : loop->resume;
        update_replacement_forget(loop->replacement);
    }
    td_arena_reset(&loop->arena);
}

static void update_finish(struct td_update_loop *loop)
{
    update_close(loop);
    td_arena_done(&loop->arena); /* its memory is not needed until the next pass */
    loop->phase = UPDATE_IDLE;
    loop->last_pass = update_now(loop);
    if (loop->is_running && loop->is_due) {
        td_timer_set(loop->timer, 0); /* a pass that lasted an interval is followed by the next */
    }
    update_settle(loop);
}

static void update_skip(struct td_update_loop *loop, const char *reason, td_str why)
{
    update_metrics_skip(loop, reason);
    td_log_line(loop->options.control.log, TD_LOG_WARN, "updater: pass skipped",
                TD_LOG_S("because", why));
    update_finish(loop);
}

/* ---- Calls ---- */

static void update_tell_events(struct td_update_loop *loop)
{
    for (; loop->events_reported < loop->pass.events.count; loop->events_reported++) {
        const struct td_updater_event *event = &loop->pass.events.items[loop->events_reported];
        const struct td_meta *meta = event->pod ? &event->pod->meta : &event->vpa->meta;
        if (!loop->options.control.events) {
            continue;
        }
        td_events_record(
            loop->options.control.events,
            &(struct td_event){
                .api_version = event->pod ? TD_STR("v1") : TD_STR("autoscaling.k8s.io/v1"),
                .kind = event->pod ? TD_STR("Pod") : TD_STR("VerticalPodAutoscaler"),
                .namespace = meta->namespace,
                .name = meta->name,
                .uid = meta->uid,
                .reason = event->reason,
                .message = event->message,
                .decision = event->decision,
            });
    }
}

static void update_answered(void *context, const struct td_client_reply *reply)
{
    struct td_update_loop *loop = context;
    loop->call = NULL;
    enum td_updater_result result = TD_UPDATER_DONE;
    if (reply->code != TD_OK) {
        /* Only the cause counts here, as upstream's metrics and its memory of failures have it. */
        result = loop->action.call == TD_UPDATER_RESIZE &&
                         td_resize_result_of(reply) == TD_RESIZE_RESULT_CAPACITY
                     ? TD_UPDATER_INFEASIBLE
                     : TD_UPDATER_FAILED;
        td_log_line(loop->options.control.log, TD_LOG_WARN, "updater: pod update failed",
                    TD_LOG_S("namespace", loop->action.pod->meta.namespace),
                    TD_LOG_S("pod", loop->action.pod->meta.name),
                    TD_LOG_C("error", reply->err.message));
    }
    if (loop->action.call == TD_UPDATER_EVICT && result == TD_UPDATER_DONE) {
        update_replacement_evicted(loop->replacement);
    }
    update_metrics_result(loop, result);
    td_updater_pass_result(&loop->pass, result, td_str_from(reply->err.message));
    update_tell_events(loop);
    update_next(loop);
}

static int update_request(struct td_update_loop *loop, struct td_client_request *ret,
                          struct td_error *err)
{
    const struct td_updater_action *action = &loop->action;
    return action->call == TD_UPDATER_EVICT
               ? td_actuator_evict(&loop->arena, action->pod, ret, err)
               : td_actuator_patch(&loop->arena, action->pod, action->patch,
                                   action->call == TD_UPDATER_RESIZE, NULL, ret, err);
}

void update_pause(struct td_update_loop *loop, td_duration span)
{
    loop->phase = UPDATE_WAITING;
    td_timer_set(loop->pause, span);
}

/* A pass may last: what spoke for it at its begin is asked again before each call. */
static bool update_is_stopped(struct td_update_loop *loop)
{
    const struct td_update_options *options = &loop->options;
    struct td_update_problem problem = {.reason = NULL};
    if (options->get_problem) {
        problem = options->get_problem(options->context);
    }
    if (problem.message.len > 0) {
        update_skip(loop, problem.reason, problem.message);
        return true;
    }
    return false;
}

/* The webhook that mutated pods at the begin of the pass may be broken by now, and the pod would
 * come back as it was: right before each eviction it is probed again. False: wait, or the pass is
 * over. */
static bool update_has_proof(struct td_update_loop *loop)
{
    const struct td_update_options *options = &loop->options;
    const struct td_clock *clock = td_loop_clock(options->control.loop);
    if (loop->action.call != TD_UPDATER_EVICT) {
        return true;
    }
    switch (td_webhook_proof_ask(&loop->proof, options->is_proved, options->context, clock,
                                 UPDATE_PROOF_MAX)) {
    case TD_PROOF_SEEN:
        return true;
    case TD_PROOF_AWAITED:
        update_pause(loop, td_clock_from_machine(clock, UPDATE_PROOF_PAUSE));
        break;
    case TD_PROOF_MISSING:
        update_skip(loop, "Webhook",
                    TD_STR("the webhook probe did not confirm that new pods are mutated"));
        break;
    }
    return false;
}

/* A pod is not evicted when its replacement would be refused. False: that is being read, or the
 * action is over. */
static bool update_can_return(struct td_update_loop *loop)
{
    td_str why = TD_STR_EMPTY;
    enum td_replacement_verdict verdict = loop->action.call == TD_UPDATER_EVICT
                                              ? update_replacement_judge(loop, &why)
                                              : TD_REPLACEMENT_FINE;
    if (verdict == TD_REPLACEMENT_REFUSED || verdict == TD_REPLACEMENT_UNKNOWN) {
        bool is_refused = verdict == TD_REPLACEMENT_REFUSED;
        td_updater_pass_result(&loop->pass, is_refused ? TD_UPDATER_REFUSED : TD_UPDATER_FAILED,
                               why);
        update_tell_events(loop);
        update_pause(loop, 0); /* there may be many of them: each in a turn of its own */
    }
    return verdict == TD_REPLACEMENT_FINE;
}

static void update_act(struct td_update_loop *loop)
{
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (update_is_stopped(loop) || !update_can_return(loop) || !update_has_proof(loop)) {
        return;
    }
    loop->phase = UPDATE_ACTING;
    if (loop->action.call == TD_UPDATER_ANNOTATE && !loop->options.annotates) {
        td_updater_pass_result(&loop->pass, TD_UPDATER_DONE, TD_STR_EMPTY);
        update_tell_events(loop);
        update_next(loop);
        return;
    }
    if (update_request(loop, &request, &err) != TD_OK) {
        td_updater_pass_result(&loop->pass, TD_UPDATER_FAILED, td_str_from(err.message));
        update_next(loop);
        return;
    }
    td_actuator_log_lacking(loop->options.control.log, loop->action.pod, &loop->action.lacking);
    request.flow = loop->options.control.flow;
    loop->call = td_client_send(loop->options.control.client, &request, update_answered, loop);
}

/* ---- One part ---- */

static const struct td_limit_ranges *update_limits(void *context, td_str namespace)
{
    struct td_update_loop *loop = context;
    return td_informers_limits(loop->options.control.informers, namespace);
}

/* TD_BUSY: some target or owner is being asked for. */
static int update_open(struct td_update_loop *loop, struct update_part *part)
{
    struct td_updater_input input = {
        .arena = &loop->arena,
        .now = update_now(loop),
        .deadline = loop->began + loop->options.interval,
        .config = &loop->options.config,
        .gates = loop->options.control.gates,
        .source = td_informers_source(loop->options.control.informers),
        .state = &part->state,
        .context = loop,
        .get_limits = update_limits,
    };
    if (loop->options.control.caps_to_node) {
        input.largest_node =
            td_informers_largest_node(loop->options.control.informers, &loop->arena);
    }
    part->state.evictions = loop->evictions;
    part->state.resizes = loop->resizes;
    struct td_error err = TD_ERROR_INIT;
    int code = update_gather(loop, part, &input);
    code = code == TD_OK ? td_updater_pass_begin(&loop->pass, &input, &err) : code;
    loop->is_open = code == TD_OK;
    loop->events_reported = 0;
    if (code != TD_OK && code != TD_BUSY) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "updater: namespace skipped",
                    TD_LOG_S("namespace", part->namespace), TD_LOG_C("error", err.message));
    }
    return code;
}

/* ---- The pass ---- */

/* Goes on until a call is under way, a pause is needed, or the pass is over. After each part the
 * loop has its turn. */
static void update_next(struct td_update_loop *loop)
{
    if (loop->is_running && loop->turn_at < loop->turns.count) {
        struct update_part *part = loop->turns.items[loop->turn_at];
        if (!loop->is_open && update_open(loop, part) == TD_BUSY &&
            loop->busy_count++ < UPDATE_BUSY_MAX) {
            td_arena_reset(&loop->arena);
            update_pause(loop, UPDATE_BUSY_PAUSE);
            return;
        }
        td_time now = update_now(loop);
        if (loop->is_open && td_updater_pass_next(&loop->pass, now, &loop->action)) {
            update_tell_events(loop);
            if (loop->action.not_before > now) {
                update_pause(loop, loop->action.not_before - now);
            } else {
                update_act(loop);
            }
            return;
        }
        if (loop->is_open) {
            update_tell_events(loop);
        }
        update_close(loop);
        loop->busy_count = 0;
        loop->turn_at++;
    }
    if (loop->is_running && loop->turn_at < loop->turns.count) {
        update_pause(loop, 0);
    } else {
        update_metrics_end(loop);
        update_finish(loop);
    }
}

void update_go_on(struct td_update_loop *loop)
{
    bool has_action = loop->is_open && loop->pass.phase == TD_PASS_WAITING;
    if (has_action && loop->is_running) {
        update_act(loop);
    } else {
        update_next(loop);
    }
}

static void update_resume(struct td_timer *timer, void *context)
{
    (void)timer;
    update_go_on(context);
}

static void update_judge(struct td_update_loop *loop)
{
    if (update_is_stopped(loop)) {
        return;
    }
    if (!update_is_fresh(loop)) {
        update_skip(loop, "Informers", TD_STR("the informer caches are stale"));
    } else {
        update_metrics_begin(loop);
        update_collect(loop);
        loop->busy_count = 0;
        update_next(loop);
    }
}

/* ---- The lease of the admission controller ---- */

static bool update_is_within(const struct td_json *object, const char *path, td_duration timeout,
                             td_time now)
{
    const struct td_json *text = td_json_get_path(object, path);
    struct td_instant at;
    return td_json_is(text, TD_JSON_TYPE_STRING) &&
           (td_time_parse(text->text, &at, NULL) == TD_OK ||
            td_time_parse_fraction(text->text, 6, &at, NULL) == TD_OK) &&
           td_time_from_instant(at) + timeout > now;
}

static void update_lease_read(void *context, const struct td_client_reply *reply)
{
    struct td_update_loop *loop = context;
    loop->call = NULL;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *lease = NULL;
    bool is_read =
        reply->code == TD_OK && td_json_parse(&arena, reply->body, NULL, &lease, NULL) == TD_OK;
    td_duration timeout = loop->options.lease_timeout;
    td_time now = update_now(loop);
    bool is_valid =
        is_read && (update_is_within(lease, "metadata.creationTimestamp", timeout, now) ||
                    update_is_within(lease, "spec.renewTime", timeout, now));
    loop->is_lease_stale = !is_valid;
    if (!is_valid) {
        const td_str values[] = {is_read ? TD_STR("invalid") : TD_STR("error")};
        td_metric_add(td_metric_series(loop->metrics.lease_invalid, values), 1);
        update_skip(loop, "AdmissionLease", td_update_loop_problem(loop));
        return;
    }
    update_judge(loop);
}

static void update_read_lease(struct td_update_loop *loop)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_api_path path = {
        .group = TD_STR("coordination.k8s.io"),
        .version = TD_STR("v1"),
        .namespace = loop->options.lease_namespace,
        .plural = TD_STR("leases"),
        .name = loop->options.lease_name,
    };
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_verb_get(&arena, &path, &request, &err) != TD_OK) {
        update_skip(loop, "AdmissionLease", td_str_from(err.message));
        return;
    }
    request.flow = loop->options.control.flow;
    loop->phase = UPDATE_LEASE;
    loop->call = td_client_send(loop->options.control.client, &request, update_lease_read, loop);
}

static void update_tick(struct td_timer *timer, void *context)
{
    struct td_update_loop *loop = context;
    td_timer_set(timer, loop->options.interval);
    if (loop->phase != UPDATE_IDLE) {
        loop->is_due = true; /* the pass before goes on; its deadline is near */
        return;
    }
    loop->is_due = false;
    loop->began = update_now(loop);
    if (loop->options.uses_lease) {
        update_read_lease(loop);
    } else {
        update_judge(loop);
    }
}

/* ---- The whole ---- */

int td_update_loop_new(const struct td_update_options *options, struct td_update_loop **ret,
                       struct td_error *err)
{
    (void)err;
    struct td_update_loop *loop = td_alloc_zero(1, sizeof(*loop));
    loop->options = *options;
    td_arena_init(&loop->arena, TD_UPDATE_ARENA_BYTES_MAX);
    td_map_init(&loop->parts, TD_CACHE_OBJECTS_MAX);
    td_arena_init(&loop->roll, TD_UPDATE_ARENA_BYTES_MAX);
    td_informers_index_pods(options->control.informers);
    loop->turns.count_max = TD_CACHE_OBJECTS_MAX;
    loop->timer = td_timer_new(options->control.loop, update_tick, loop);
    loop->pause = td_timer_new(options->control.loop, update_resume, loop);
    update_metrics_init(loop);
    loop->conditions = update_conditions_new(loop);
    loop->replacement = update_replacement_new();
    loop->revert = options->control.gates.cpu_startup_boost ? update_boost_revert_new(loop) : NULL;
    *ret = loop;
    return TD_OK;
}

void td_update_loop_start(struct td_update_loop *loop)
{
    loop->is_running = true;
    td_timer_set(loop->timer, loop->options.interval);
    if (loop->revert) {
        update_boost_revert_start(loop->revert);
    }
}

void td_update_loop_stop(struct td_update_loop *loop, void (*done)(void *context), void *context)
{
    loop->is_running = false;
    td_timer_stop(loop->timer);
    if (loop->phase == UPDATE_WAITING) {
        td_timer_stop(loop->pause);
        update_finish(loop);
    }
    if (loop->revert) {
        update_boost_revert_stop(loop->revert);
    }
    update_conditions_stop(loop->conditions);
    loop->stopped = done;
    loop->stopped_context = context;
    update_settle(loop);
}

void td_update_loop_free(struct td_update_loop *loop)
{
    if (!loop) {
        return;
    }
    update_boost_revert_free(loop->revert);
    update_conditions_free(loop->conditions);
    td_client_cancel(loop->call);
    if (loop->is_open) {
        td_updater_pass_end(&loop->pass);
    }
    for (struct td_map_walk at = {.map = &loop->parts}; td_map_step(&at);) {
        update_part_free(at.value);
    }
    td_map_done(&loop->parts);
    td_arena_done(&loop->roll);
    td_vec_done(&loop->turns);
    td_timer_free(loop->timer);
    td_timer_free(loop->pause);
    update_replacement_free(loop->replacement);
    td_arena_done(&loop->arena);
    td_free(loop);
}

td_time td_update_loop_last(const struct td_update_loop *loop)
{
    return loop->last_pass > 0 ? loop->last_pass : TD_TIME_NONE;
}

td_str td_update_loop_problem(const struct td_update_loop *loop)
{
    return loop->is_lease_stale ? TD_STR("the status lease of the admission controller is stale: "
                                         "replacements would not be mutated")
                                : TD_STR_EMPTY;
}
