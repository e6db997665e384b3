/*
 * A decision is carried out: the scale, then the sizes. Pods are resized in place, a few at a time;
 * one that its node has no room for, or that would have to restart or change its class for it, is
 * evicted instead, one a reconcile, where budgets, minReplicas and eviction requirements allow.
 * What is not done when the next reconcile is due is found again by it: pods tell what they have.
 */
#include "base/error.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/hvpa/hvpa_private.h"
#include "kube/client/client_reply.h"
#include "kube/client/verbs.h"

#define ACTUATE_PAUSE TD_SECOND /* between two looks at pods that are being resized */
#define ACTUATE_PROOF_MAX 10    /* pauses until it is left to the next reconcile */

static const struct td_write_options actuate_options = {.field_manager = HVPA_MANAGER};

static void actuate_sizes(struct hvpa_reconcile *run);
static void actuate_pods(struct hvpa_reconcile *run);
static void actuate_wait(struct hvpa_reconcile *run);

static void actuate_send(struct hvpa_reconcile *run, struct td_client_request *request,
                         td_client_done_fn done)
{
    request->flow = run->loop->options.control.flow;
    request->deadline = HVPA_DEADLINE;
    run->call = td_client_send(run->loop->options.control.client, request, done, run);
}

/* ---- Failures ---- */

static void actuate_status_written(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    run->item->written = reply->code == TD_OK ? run->item->written : 0;
    actuate_sizes(run);
}

/* The axis did not move after all. */
static void actuate_take_back(struct hvpa_reconcile *run)
{
    const struct td_hvpa_status *before = &run->hvpa.status;
    struct td_hvpa_status *status = &run->decided.status;
    status->has_horizontal_time = before->has_horizontal_time;
    status->horizontal_time = before->horizontal_time;
    status->has_from_to = before->has_from_to;
    status->from_replicas = before->from_replicas;
    status->to_replicas = before->to_replicas;
}

static void actuate_back_off(struct hvpa_reconcile *run)
{
    td_duration pause = td_backoff_next(&run->item->backoff);
    td_time due = run->now + pause;
    run->item->due = due > run->item->due ? due : run->item->due;
}

static void actuate_failed(struct hvpa_reconcile *run, td_str message)
{
    run->doing.failure = message;
    hvpa_reconcile_event(run, true, TD_STR("ScaleFailed"), message);
    td_log_line(run->loop->options.control.log, TD_LOG_WARN, "Hvpa scaling failed",
                TD_LOG_S("hvpa", run->item->key), TD_LOG_S("error", message));
    actuate_back_off(run);
    hvpa_status_failed(run);
}

static void actuate_worked(struct hvpa_reconcile *run)
{
    if (run->doing.failure.len == 0 && run->item->failure.len > 0) {
        td_text_set(&run->item->failure, TD_STR_EMPTY);
        td_backoff_reset(&run->item->backoff);
    }
}

/* ---- The scale ---- */

static void actuate_scaled(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    struct hvpa_item *item = run->item;
    run->call = NULL;
    if (reply->code == TD_OK) {
        item->conflicts = 0;
        actuate_worked(run);
        td_hpa_history_store(&item->horizontal.history, &run->hpa, run->decided.input.replicas,
                             run->decided.decision.replicas, run->now);
        hvpa_reconcile_decided(
            run, TD_STR("HorizontalScaled"),
            td_tandem_scaled_text(&run->arena, &run->decided.input, &run->decided.decision));
        /* The rest of a wish that a stage border cut belongs to the next stage: at once. */
        item->is_again = item->is_again || run->decided.decision.blend.is_cut_by_border;
        hvpa_children_buffer(run);
        actuate_sizes(run);
        return;
    }
    actuate_take_back(run);
    item->written = 0;
    if (reply->code == TD_CONFLICT && ++item->conflicts < HVPA_CONFLICTS_MAX) {
        hvpa_item_set_status(
            item,
            td_json_line(&run->arena, td_hvpa_status_encode(&run->arena, &run->decided.status)));
        item->is_again = true; /* read and decide again, never write blindly */
        hvpa_reconcile_end(run);
        return;
    }
    item->conflicts = 0;
    actuate_failed(run, td_reply_message(&run->arena, reply));
    if (!hvpa_status_send(run, actuate_status_written)) {
        actuate_sizes(run);
    }
}

static void actuate_scale(struct hvpa_reconcile *run)
{
    struct td_arena *arena = &run->arena;
    struct td_error err = TD_ERROR_INIT;
    td_json_set_int64(arena, td_json_ensure_object(arena, run->seen.scale, TD_STR("spec")),
                      TD_STR("replicas"), run->decided.decision.replicas);
    const struct td_api_path path = td_path_scale(
        &run->seen.resource, TD_OBJECT_KEY(run->hvpa.meta.namespace, run->hvpa.target.name));
    struct td_client_request request;
    if (td_verb_update(arena, &path, td_json_line(arena, run->seen.scale), &actuate_options,
                       &request, &err) != TD_OK) {
        actuate_failed(run, td_arena_copy_str(arena, td_str_from(err.message)));
        hvpa_reconcile_end(run);
        return;
    }
    actuate_send(run, &request, actuate_scaled);
}

/* ---- The template ---- */

static void actuate_templated(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    if (reply->code == TD_OK) {
        actuate_worked(run);
    } else {
        actuate_failed(run, td_reply_message(&run->arena, reply));
    }
    hvpa_reconcile_end(run);
}

int hvpa_template_request(struct hvpa_reconcile *run, const struct td_pod_sizes *sizes,
                          struct td_client_request *ret, struct td_error *err)
{
    struct td_arena *arena = &run->arena;
    struct td_json *list = td_json_new_array(arena);
    struct td_json *patch = td_json_new_object(arena);
    struct td_json *spec = td_json_ensure_object(arena, patch, TD_STR("spec"));
    struct td_json *template = td_json_ensure_object(arena, spec, TD_STR("template"));
    struct td_json *pod = td_json_ensure_object(arena, template, TD_STR("spec"));
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_pod_size *size = &sizes->items[i];
        bool is_pod = size->container.len == 0;
        struct td_json *container = is_pod ? pod : td_json_new_object(arena);
        struct td_json *resources = td_json_ensure_object(arena, container, TD_STR("resources"));
        if (!is_pod) {
            td_json_set_str(arena, container, TD_STR("name"), size->container);
            td_json_append(list, container);
        }
        td_json_set(arena, resources, TD_STR("requests"),
                    td_resource_list_json(arena, &size->requests));
        if (size->limits.count > 0) {
            td_json_set(arena, resources, TD_STR("limits"),
                        td_resource_list_json(arena, &size->limits));
        }
    }
    td_json_set(arena, pod, TD_STR("containers"), list);
    bool is_daemon = td_workload_kind_of(run->hvpa.target.kind) == TD_WORKLOAD_DAEMON_SET;
    const struct td_api_path path = {
        .group = is_daemon ? TD_STR("apps") : run->seen.resource.group,
        .version = is_daemon ? TD_STR("v1") : run->seen.resource.version,
        .namespace = run->hvpa.meta.namespace,
        .plural = is_daemon ? TD_STR("daemonsets") : run->seen.resource.plural,
        .name = run->hvpa.target.name,
    };
    return td_verb_patch(arena, &path, TD_PATCH_STRATEGIC, td_json_line(arena, patch),
                         &actuate_options, ret, err);
}

static void actuate_template(struct hvpa_reconcile *run)
{
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    const struct td_pod_sizes sizes = hvpa_decided_sizes(run);
    if (hvpa_template_request(run, &sizes, &request, &err) != TD_OK) {
        actuate_failed(run, td_arena_copy_str(&run->arena, td_str_from(err.message)));
        hvpa_reconcile_end(run);
        return;
    }
    actuate_send(run, &request, actuate_templated);
}

/* ---- Eviction ---- */

static void actuate_evicted(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    enum td_evict_result result = td_evict_result_of(reply);
    if (result == TD_EVICT_FAILED) {
        actuate_failed(run, td_reply_message(&run->arena, reply));
    } else if (result == TD_EVICT_DONE) {
        hvpa_evicted(run, run->doing.pod);
    }
    actuate_pods(run);
}

/* Told once, and kept for the condition EvictionBlocked of the next reconcile; empty: no pod waits.
 */
static void actuate_blocked(struct hvpa_reconcile *run, td_str why)
{
    struct hvpa_item *item = run->item;
    if (td_str_equal(item->blocked, why)) {
        return;
    }
    td_text_set(&item->blocked, why);
    if (why.len > 0) {
        hvpa_reconcile_event(run, true, TD_STR("EvictionBlocked"), why);
    }
}

static void actuate_fact_read(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    td_replacement_facts_take(&run->doing.facts, reply);
    actuate_pods(run);
}

/* A pod is not evicted when its replacement would be refused. False: that is being read
 * (*ret_asked), or the replacement would be. */
static bool actuate_can_return(struct hvpa_reconcile *run, const struct td_pod *pod,
                               bool *ret_asked)
{
    const struct td_control *control = &run->loop->options.control;
    const struct td_pod_sizes sizes = hvpa_decided_sizes(run);
    struct td_replacement_input input = {.pod = pod, .sizes = &sizes};
    struct td_client_request request;
    struct td_controller owner;
    td_str why = TD_STR_EMPTY;
    *ret_asked = false;
    if (!td_replacement_facts_turn(&run->doing.facts, pod, &owner)) {
        return true;
    }
    enum td_replacement_verdict verdict = td_replacement_facts_judge(
        &run->doing.facts, &run->arena, control, &owner, &input, &request, &why);
    if (verdict == TD_REPLACEMENT_READING) {
        *ret_asked = true;
        actuate_send(run, &request, actuate_fact_read);
        return false;
    }
    if (verdict != TD_REPLACEMENT_FINE) {
        why = td_arena_format(&run->arena, "pods not evicted: %s: %.*s",
                              verdict == TD_REPLACEMENT_UNKNOWN
                                  ? "cannot read their owner"
                                  : "the API server would refuse the replacement",
                              TD_STR_ARG(why));
    }
    actuate_blocked(run, why);
    return verdict == TD_REPLACEMENT_FINE;
}

/* False: the pod is not evicted in this reconcile. */
static bool actuate_evict(struct hvpa_reconcile *run, const struct td_pod *pod)
{
    const struct td_hvpa_options *options = &run->loop->options;
    bool is_asked = false;
    struct td_client_request request;
    if (!hvpa_may_evict(run, pod) || td_actuator_evict(&run->arena, pod, &request, NULL) != TD_OK) {
        return false;
    }
    if (!actuate_can_return(run, pod, &is_asked)) {
        return is_asked;
    }
    switch (td_webhook_proof_ask(&run->doing.proof, options->is_proved, options->context,
                                 td_loop_clock(options->control.loop), ACTUATE_PROOF_MAX)) {
    case TD_PROOF_SEEN:
        break;
    case TD_PROOF_AWAITED:
        actuate_wait(run);
        return true;
    case TD_PROOF_MISSING:
        return false;
    }
    run->doing.has_evicted = true;
    run->doing.pod = pod->meta.name;
    actuate_send(run, &request, actuate_evicted);
    return true;
}

/* ---- In place ---- */

static void actuate_resized(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    enum td_resize_result result = td_resize_result_of(reply);
    if (result == TD_RESIZE_RESULT_DONE) {
        actuate_worked(run);
    } else if (result != TD_RESIZE_RESULT_GONE) {
        (void)td_map_put(&run->doing.refused, run->doing.pod, run); /* room for all pods */
    }
    if (result == TD_RESIZE_RESULT_FAILED) {
        actuate_failed(run, td_reply_message(&run->arena, reply));
        run->item->written = 0; /* said with the next reconcile */
        hvpa_reconcile_end(run);
        return;
    }
    actuate_pods(run);
}

static bool actuate_resize(struct hvpa_reconcile *run, const struct td_pod *pod)
{
    const struct td_pod_sizes sizes = hvpa_decided_sizes(run);
    const struct td_json *patch = td_pod_sizes_resize(&run->arena, &sizes, pod);
    struct td_client_request request;
    if (!patch || td_actuator_patch(&run->arena, pod, patch, true, &actuate_options, &request,
                                    NULL) != TD_OK) {
        return false;
    }
    run->doing.pod = pod->meta.name;
    (void)td_map_put(&run->doing.resizes_sent, run->doing.pod, run); /* room for all pods */
    actuate_send(run, &request, actuate_resized);
    return true;
}

/* ---- Pod by pod ---- */

static bool pod_would_restart(const struct hvpa_reconcile *run, const struct td_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *c = &pod->containers[i];
        for (size_t j = 0; j < run->decided.requests.count && c->restarts_on_resize; j++) {
            if (td_str_equal(run->decided.requests.items[j].container, c->name)) {
                return true;
            }
        }
    }
    return false;
}

static bool pod_needs_another(const struct hvpa_reconcile *run, const struct td_pod *pod)
{
    return td_map_has(&run->doing.refused, pod->meta.name) || pod_would_restart(run, pod) ||
           td_resize_status_of(pod) == TD_RESIZE_INFEASIBLE;
}

static void actuate_look_again(struct td_timer *timer, void *context)
{
    struct hvpa_reconcile *run = context;
    (void)timer;
    if (hvpa_now(run->loop) >= run->item->due || !run->loop->is_running) {
        hvpa_reconcile_end(run);
        return;
    }
    hvpa_view_pods(run, run->seen.pod_names, run->seen.name_count);
    actuate_pods(run);
}

static void actuate_wait(struct hvpa_reconcile *run)
{
    run->phase = HVPA_ACTUATING;
    if (!run->pause) {
        run->pause = td_timer_new(run->loop->options.control.loop, actuate_look_again, run);
    }
    td_timer_set(run->pause, ACTUATE_PAUSE);
}

/* The next call, or a pause, or the end: all pods are as decided, or their resize cannot go on now.
 */
static void actuate_pods(struct hvpa_reconcile *run)
{
    int64_t in_flight = 0;
    bool is_ignored = false;
    if (!run->loop->is_running) {
        hvpa_reconcile_end(run);
        return;
    }
    const struct td_pod_sizes sizes = hvpa_decided_sizes(run);
    const struct td_pod *next = NULL;
    const struct td_pod *misfit = NULL;
    for (size_t i = 0; i < run->seen.pod_count; i++) {
        const struct td_pod *pod = &run->seen.pods[i];
        if (!hvpa_pod_is_sized(run, pod) ||
            td_tandem_pod_is_as_decided(&run->decided.requests, &run->decided.limits, pod,
                                        &is_ignored)) {
            continue;
        }
        if (pod_needs_another(run, pod)) {
            misfit = misfit || hvpa_is_left_alone(run, pod) ? misfit : pod;
        } else if (td_map_has(&run->doing.resizes_sent, pod->meta.name) ||
                   td_pod_sizes_are_in_spec(&sizes, pod)) {
            in_flight++; /* the informers may not have shown us our own write yet */
        } else {
            next = next ? next : pod;
        }
    }
    int64_t tolerated =
        td_restriction_tolerance(&run->loop->restriction, (int64_t)run->seen.pod_count);
    if (next && (in_flight == 0 || in_flight < tolerated) && actuate_resize(run, next)) {
        return;
    }
    if (misfit && actuate_evict(run, misfit)) {
        return;
    }
    if (!misfit) {
        actuate_blocked(run, TD_STR_EMPTY);
    }
    if (next || in_flight > 0) {
        actuate_wait(run);
        return;
    }
    hvpa_reconcile_end(run);
}

static void actuate_sizes(struct hvpa_reconcile *run)
{
    const struct td_hvpa *hvpa = &run->hvpa;
    if (hvpa->paused || (!run->decided.is_resized && !run->decided.progress.is_progressing)) {
        hvpa_reconcile_end(run);
    } else if (hvpa->actuation == TD_HVPA_ACTUATE_PODS) {
        hvpa_evict_meet(run);
        actuate_pods(run);
    } else if (run->decided.is_resized) {
        actuate_template(run);
    } else {
        hvpa_reconcile_end(run);
    }
}

void hvpa_actuate(struct hvpa_reconcile *run)
{
    run->phase = HVPA_WRITING;
    if (run->decided.is_scaled) {
        actuate_scale(run);
    } else {
        hvpa_children_buffer(run);
        actuate_sizes(run);
    }
}
