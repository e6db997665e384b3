#include "control/updater/update_loop.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
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
    const struct td_sight *sight = loop->options.control.sight;
    return td_sight_is_synced(sight) && td_sight_age(sight) <= UPDATE_FRESH;
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
           (!loop->unboost || update_unboost_is_idle(loop->unboost));
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
        update_tally_pass(loop);
        update_held_tell(loop, part);
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
    td_arena_done(&loop->arena); /* until the next pass nobody needs it */
    loop->phase = UPDATE_IDLE;
    loop->last_pass = update_now(loop);
    if (loop->is_running && loop->is_due) {
        td_timer_set(loop->timer, 0); /* a pass that lasted an interval is followed by the next */
    }
    update_settle(loop);
}

static void update_skip(struct td_update_loop *loop, const char *reason, td_str why)
{
    update_tally_skip(loop, reason);
    td_log_line(loop->options.control.log, TD_LOG_WARN, "no pods are updated",
                TD_LOG_S("because", why));
    update_finish(loop);
}

/* ---- Calls ---- */

static void update_tell_events(struct td_update_loop *loop)
{
    for (; loop->events_told < loop->pass.events.count; loop->events_told++) {
        const struct td_updater_event *event = &loop->pass.events.items[loop->events_told];
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
            });
    }
}

/* Forbidden because no node is large enough: the API server says so by a cause. */
static bool update_is_infeasible(const struct td_client_reply *reply)
{
    return reply->status == 403 && td_str_equal(reply->reason, TD_STR("NodeCapacity"));
}

static void update_answered(void *context, const struct td_client_reply *reply)
{
    struct td_update_loop *loop = context;
    loop->call = NULL;
    enum td_updater_result result = TD_UPDATER_DONE;
    if (reply->code != TD_OK) {
        result = loop->action.call == TD_UPDATER_RESIZE && update_is_infeasible(reply)
                     ? TD_UPDATER_INFEASIBLE
                     : TD_UPDATER_FAILED;
        td_log_line(loop->options.control.log, TD_LOG_WARN, "a pod cannot be updated",
                    TD_LOG_S("namespace", loop->action.pod->meta.namespace),
                    TD_LOG_S("pod", loop->action.pod->meta.name),
                    TD_LOG_C("error", reply->err.message));
    }
    if (loop->action.call == TD_UPDATER_EVICT && result == TD_UPDATER_DONE) {
        update_replacement_evicted(loop->replacement);
    }
    update_tally_result(loop, result);
    td_updater_pass_result(&loop->pass, result, td_str_from(reply->err.message));
    update_tell_events(loop);
    update_next(loop);
}

int update_patch_request(struct td_arena *arena, const struct td_vertical_pod *pod,
                         const struct td_json *patch, bool is_resize, struct td_client_request *ret,
                         struct td_error *err)
{
    td_auto_buf body;
    td_buf_init(&body, TD_OBJECT_BYTES_MAX);
    td_json_write(patch, &(struct td_json_format){.indent = 0}, &body);
    const struct td_api_path path = {
        .version = TD_STR("v1"),
        .namespace = pod->meta.namespace,
        .plural = TD_STR("pods"),
        .name = pod->meta.name,
        .subresource = is_resize ? TD_STR("resize") : TD_STR_EMPTY,
    };
    return td_verb_patch(arena, &path, TD_PATCH_JSON, td_arena_copy_str(arena, td_buf_str(&body)),
                         NULL, ret, err);
}

static int update_request(struct td_update_loop *loop, struct td_client_request *ret,
                          struct td_error *err)
{
    const struct td_updater_action *action = &loop->action;
    const struct td_meta *meta = &action->pod->meta;
    if (action->call == TD_UPDATER_EVICT) {
        struct td_delete_options options = TD_DELETE_OPTIONS_INIT;
        options.uid = meta->uid; /* the pod that was judged, not another of its name */
        return td_verb_evict(&loop->arena, meta->namespace, meta->name, &options, ret, err);
    }
    return update_patch_request(&loop->arena, action->pod, action->patch,
                                action->call == TD_UPDATER_RESIZE, ret, err);
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
    struct td_update_trouble trouble = {.reason = NULL};
    if (options->get_trouble) {
        trouble = options->get_trouble(options->context);
    }
    if (trouble.message.len > 0) {
        update_skip(loop, trouble.reason, trouble.message);
        return true;
    }
    return false;
}

/* What was seen ten seconds ago may be broken by now, and the pod would come back as it was: right
 * before each eviction it is looked at again. False: wait, or the pass is over. */
static bool update_has_proof(struct td_update_loop *loop)
{
    const struct td_update_options *options = &loop->options;
    const struct td_clock *clock = td_loop_clock(options->control.loop);
    if (loop->proof_count == 0) {
        loop->proof_since = td_clock_machine(clock);
    }
    if (loop->action.call != TD_UPDATER_EVICT || !options->is_proved ||
        options->is_proved(options->context, loop->proof_since)) {
        loop->proof_count = 0;
        return true;
    }
    if (loop->proof_count++ < UPDATE_PROOF_MAX) {
        update_pause(
            loop, td_clock_from_machine(td_loop_clock(options->control.loop), UPDATE_PROOF_PAUSE));
    } else {
        loop->proof_count = 0;
        update_skip(loop, "Webhook", TD_STR("it could not be seen that pods are mutated"));
    }
    return false;
}

/* Nobody is evicted who could not come back. False: it is being found out, or the action is over.
 */
static bool update_can_return(struct td_update_loop *loop)
{
    td_str why = TD_STR_EMPTY;
    enum update_verdict verdict = loop->action.call == TD_UPDATER_EVICT
                                      ? update_replacement_judge(loop, &why)
                                      : UPDATE_VERDICT_FINE;
    if (verdict == UPDATE_VERDICT_REFUSED || verdict == UPDATE_VERDICT_UNKNOWN) {
        bool is_refused = verdict == UPDATE_VERDICT_REFUSED;
        td_updater_pass_result(&loop->pass, is_refused ? TD_UPDATER_REFUSED : TD_UPDATER_FAILED,
                               why);
        update_tell_events(loop);
        update_pause(loop, 0); /* there may be many of them: each in a turn of its own */
    }
    return verdict == UPDATE_VERDICT_FINE;
}

static void update_act(struct td_update_loop *loop)
{
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (update_is_stopped(loop) || !update_can_return(loop) || !update_has_proof(loop)) {
        return;
    }
    loop->phase = UPDATE_ACTING;
    if (update_request(loop, &request, &err) != TD_OK) {
        td_updater_pass_result(&loop->pass, TD_UPDATER_FAILED, td_str_from(err.message));
        update_next(loop);
        return;
    }
    request.flow = loop->options.control.flow;
    loop->call = td_client_send(loop->options.control.client, &request, update_answered, loop);
}

/* ---- One part ---- */

static const struct td_limit_ranges *update_limits(void *context, td_str namespace)
{
    struct td_update_loop *loop = context;
    return td_sight_limits(loop->options.control.sight, namespace);
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
        .source = td_sight_source(loop->options.control.sight),
        .state = &part->state,
        .context = loop,
        .get_limits = update_limits,
    };
    if (loop->options.control.caps_to_node) {
        input.largest_node = td_sight_largest_node(loop->options.control.sight, &loop->arena);
    }
    part->state.evictions = loop->evictions;
    part->state.resizes = loop->resizes;
    struct td_error err = TD_ERROR_INIT;
    int code = update_gather(loop, part, &input);
    code = code == TD_OK ? td_updater_pass_begin(&loop->pass, &input, &err) : code;
    loop->is_open = code == TD_OK;
    loop->events_told = 0;
    if (code != TD_OK && code != TD_BUSY) {
        td_log_line(loop->options.control.log, TD_LOG_WARN, "a namespace cannot be judged",
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
        update_tally_end(loop);
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
        update_skip(loop, "Sight", TD_STR("what is known of the cluster is not fresh"));
    } else {
        update_tally_begin(loop);
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
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
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
        td_tally_add(td_tally_series(loop->tallies.lease_invalid, values), 1);
        update_skip(loop, "AdmissionLease", td_update_loop_trouble(loop));
        return;
    }
    update_judge(loop);
}

static void update_read_lease(struct td_update_loop *loop)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
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
    td_sight_index_pods(options->control.sight);
    loop->turns.count_max = TD_CACHE_OBJECTS_MAX;
    loop->timer = td_timer_new(options->control.loop, update_tick, loop);
    loop->pause = td_timer_new(options->control.loop, update_resume, loop);
    update_tallies_init(loop);
    loop->conditions = update_conditions_new(loop);
    loop->replacement = update_replacement_new();
    loop->unboost = options->control.gates.cpu_startup_boost ? update_unboost_new(loop) : NULL;
    *ret = loop;
    return TD_OK;
}

void td_update_loop_start(struct td_update_loop *loop)
{
    loop->is_running = true;
    td_timer_set(loop->timer, loop->options.interval);
    if (loop->unboost) {
        update_unboost_start(loop->unboost);
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
    if (loop->unboost) {
        update_unboost_stop(loop->unboost);
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
    update_unboost_free(loop->unboost);
    update_conditions_free(loop->conditions);
    if (loop->call) {
        td_client_cancel(loop->call);
    }
    if (loop->is_open) {
        td_updater_pass_end(&loop->pass);
    }
    size_t position = 0;
    const struct td_map_entry *entry;
    while ((entry = td_map_next(&loop->parts, &position))) {
        update_part_free(entry->value);
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

td_str td_update_loop_trouble(const struct td_update_loop *loop)
{
    return loop->is_lease_stale ? TD_STR("the lease of the admission controller is not fresh: pods "
                                         "would come back unchanged")
                                : TD_STR_EMPTY;
}
