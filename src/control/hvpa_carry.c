/*
 * A decision is carried out: the scale, then the sizes. Pods are resized in place, a few at a time;
 * one that its node has no room for, or that would have to restart or change its class for it, is
 * evicted instead, one a tick, where budgets, minReplicas and eviction requirements allow. What is
 * not done when the next tick is due is found again by it: pods tell what they have.
 */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/hvpa/hvpa_private.h"
#include "decide/vertical/updater/pass.h"
#include "decide/vertical/updater/restriction.h"
#include "kube/client/verbs.h"

#define CARRY_PAUSE TD_SECOND /* between two looks at pods that are being resized */
#define CARRY_PROOF_MAX 10    /* pauses until it is left to the next tick */

static const struct td_write_options carry_options = {.field_manager = HVPA_MANAGER};

static void carry_sizes(struct hvpa_tick *tick);
static void carry_pods(struct hvpa_tick *tick);
static void carry_wait(struct hvpa_tick *tick);

static td_str carry_message(struct td_arena *arena, const struct td_client_reply *reply)
{
    struct td_json *status;
    td_str message = TD_STR_EMPTY;
    if (td_json_parse(arena, reply->body, &(struct td_json_options){.copy_strings = true}, &status,
                      NULL) == TD_OK) {
        message = td_json_get_str(status, TD_STR("message"), TD_STR_EMPTY);
    }
    return message.len > 0 ? message : td_arena_copy_str(arena, td_str_from(reply->err.message));
}

static td_str carry_text(struct td_arena *arena, const struct td_json *tree)
{
    td_auto_buf buf;
    td_buf_init(&buf, TD_OBJECT_BYTES_MAX);
    td_json_write(tree, &(struct td_json_format){.indent = 0}, &buf);
    return td_arena_copy_str(arena, td_buf_str(&buf));
}

static void carry_send(struct hvpa_tick *tick, struct td_client_request *request,
                       td_client_done_fn done)
{
    request->flow = tick->loop->options.control.flow;
    request->deadline = HVPA_DEADLINE;
    tick->call = td_client_send(tick->loop->options.control.client, request, done, tick);
}

/* ---- Failures ---- */

static void carry_status_written(void *context, const struct td_client_reply *reply)
{
    struct hvpa_tick *tick = context;
    tick->call = NULL;
    tick->item->written = reply->code == TD_OK ? tick->item->written : 0;
    carry_sizes(tick);
}

/* The axis did not move after all. */
static void carry_take_back(struct hvpa_tick *tick)
{
    const struct td_hvpa_status *before = &tick->hvpa.status;
    struct td_hvpa_status *status = &tick->status;
    status->has_horizontal_time = before->has_horizontal_time;
    status->horizontal_time = before->horizontal_time;
    status->has_from_to = before->has_from_to;
    status->from_replicas = before->from_replicas;
    status->to_replicas = before->to_replicas;
}

static void carry_back_off(struct hvpa_tick *tick)
{
    td_duration pause = td_backoff_next(&tick->item->backoff);
    td_time due = tick->now + pause;
    tick->item->due = due > tick->item->due ? due : tick->item->due;
}

static void carry_failed(struct hvpa_tick *tick, td_str message)
{
    tick->failure = message;
    hvpa_tick_event(tick, true, TD_STR("ScaleFailed"), message);
    td_log_line(tick->loop->options.control.log, TD_LOG_WARN, "an Hvpa cannot act",
                TD_LOG_S("hvpa", tick->item->key), TD_LOG_S("error", message));
    carry_back_off(tick);
    hvpa_status_failed(tick);
}

static void carry_worked(struct hvpa_tick *tick)
{
    if (tick->failure.len == 0 && tick->item->failure.len > 0) {
        td_text_free(tick->item->failure);
        tick->item->failure = td_text_copy(TD_STR_EMPTY);
        td_backoff_reset(&tick->item->backoff);
    }
}

/* ---- The scale ---- */

static void carry_tell_scaled(struct hvpa_tick *tick)
{
    const struct td_tandem_decision *decision = &tick->decision;
    hvpa_tick_event(tick, false, TD_STR("HorizontalScaled"),
                    td_arena_format(&tick->arena, "%d -> %d replicas; %.*s, %.*s%s%.*s",
                                    tick->input.replicas, decision->replicas,
                                    TD_STR_ARG(td_tandem_reason_name(decision->reason)),
                                    TD_STR_ARG(td_hvpa_mode_name(tick->hvpa.mode)),
                                    decision->blend.has_stage ? ", " : "",
                                    TD_STR_ARG(tick->status.decision.stage)));
}

static void carry_scaled(void *context, const struct td_client_reply *reply)
{
    struct hvpa_tick *tick = context;
    struct hvpa_item *item = tick->item;
    tick->call = NULL;
    if (reply->code == TD_OK) {
        item->conflicts = 0;
        carry_worked(tick);
        td_hpa_history_store(&item->horizontal.history, &tick->hpa, tick->input.replicas,
                             tick->decision.replicas, tick->now);
        carry_tell_scaled(tick);
        /* The rest of a wish that a stage border cut belongs to the next stage: at once. */
        item->is_again = item->is_again || tick->decision.blend.is_cut_by_border;
        hvpa_children_buffer(tick);
        carry_sizes(tick);
        return;
    }
    carry_take_back(tick);
    item->written = 0;
    if (reply->code == TD_CONFLICT && ++item->conflicts < HVPA_CONFLICTS_MAX) {
        hvpa_item_set_status(
            item, carry_text(&tick->arena, td_hvpa_status_encode(&tick->arena, &tick->status)));
        item->is_again = true; /* read and decide again, never write blindly */
        hvpa_tick_end(tick);
        return;
    }
    item->conflicts = 0;
    carry_failed(tick, carry_message(&tick->arena, reply));
    if (!hvpa_status_send(tick, carry_status_written)) {
        carry_sizes(tick);
    }
}

static void carry_scale(struct hvpa_tick *tick)
{
    struct td_arena *arena = &tick->arena;
    struct td_error err = TD_ERROR_INIT;
    td_json_set_int64(arena, td_json_ensure_object(arena, tick->scale, TD_STR("spec")),
                      TD_STR("replicas"), tick->decision.replicas);
    const struct td_api_path path = {
        .group = tick->resource.group,
        .version = tick->resource.version,
        .namespace = tick->resource.is_namespaced ? tick->hvpa.meta.namespace : TD_STR_EMPTY,
        .plural = tick->resource.plural,
        .name = tick->hvpa.target.name,
        .subresource = TD_STR("scale"),
    };
    struct td_client_request request;
    if (td_verb_update(arena, &path, carry_text(arena, tick->scale), &carry_options, &request,
                       &err) != TD_OK) {
        carry_failed(tick, td_arena_copy_str(arena, td_str_from(err.message)));
        hvpa_tick_end(tick);
        return;
    }
    carry_send(tick, &request, carry_scaled);
}

/* ---- The template ---- */

static void carry_templated(void *context, const struct td_client_reply *reply)
{
    struct hvpa_tick *tick = context;
    tick->call = NULL;
    if (reply->code == TD_OK) {
        carry_worked(tick);
    } else {
        carry_failed(tick, carry_message(&tick->arena, reply));
    }
    hvpa_tick_end(tick);
}

static void carry_template(struct hvpa_tick *tick)
{
    struct td_arena *arena = &tick->arena;
    struct td_json *list = td_json_new_array(arena);
    struct td_json *patch = td_json_new_object(arena);
    struct td_json *spec = td_json_ensure_object(arena, patch, TD_STR("spec"));
    struct td_json *template = td_json_ensure_object(arena, spec, TD_STR("template"));
    struct td_json *pod = td_json_ensure_object(arena, template, TD_STR("spec"));
    for (size_t i = 0; i < tick->decided.count; i++) {
        td_str name = tick->decided.items[i].container;
        bool is_pod = td_tandem_is_pod(name);
        struct td_json *container = is_pod ? pod : td_json_new_object(arena);
        struct td_json *resources = td_json_ensure_object(arena, container, TD_STR("resources"));
        if (!is_pod) {
            td_json_set_str(arena, container, TD_STR("name"), name);
            td_json_append(list, container);
        }
        td_json_set(arena, resources, TD_STR("requests"),
                    td_resource_list_json(arena, &tick->decided.items[i].resources));
        for (size_t j = 0; j < tick->decided_limits.count; j++) {
            if (td_str_equal(tick->decided_limits.items[j].container, name)) {
                td_json_set(arena, resources, TD_STR("limits"),
                            td_resource_list_json(arena, &tick->decided_limits.items[j].resources));
            }
        }
    }
    td_json_set(arena, pod, TD_STR("containers"), list);
    bool is_daemon = !tick->scale; /* the one kind without */
    const struct td_api_path path = {
        .group = is_daemon ? TD_STR("apps") : tick->resource.group,
        .version = is_daemon ? TD_STR("v1") : tick->resource.version,
        .namespace = tick->hvpa.meta.namespace,
        .plural = is_daemon ? TD_STR("daemonsets") : tick->resource.plural,
        .name = tick->hvpa.target.name,
    };
    struct td_client_request request;
    struct td_error err = TD_ERROR_INIT;
    if (td_verb_patch(arena, &path, TD_PATCH_STRATEGIC, carry_text(arena, patch), &carry_options,
                      &request, &err) != TD_OK) {
        carry_failed(tick, td_arena_copy_str(arena, td_str_from(err.message)));
        hvpa_tick_end(tick);
        return;
    }
    carry_send(tick, &request, carry_templated);
}

/* ---- Eviction ---- */

/* And was that seen just now, as the updater has it? */
static bool carry_is_proved(struct hvpa_tick *tick)
{
    const struct td_hvpa_options *options = &tick->loop->options;
    if (tick->proof_count == 0) {
        tick->proof_since = td_clock_machine(td_loop_clock(options->control.loop));
    }
    return !options->is_proved || options->is_proved(options->context, tick->proof_since);
}

static void carry_evicted(void *context, const struct td_client_reply *reply)
{
    struct hvpa_tick *tick = context;
    tick->call = NULL;
    enum td_evict_result result = td_evict_result_of(reply);
    if (result == TD_EVICT_FAILED) {
        carry_failed(tick, carry_message(&tick->arena, reply));
    } else if (result == TD_EVICT_DONE) {
        hvpa_evicted(tick, tick->pod);
    }
    carry_pods(tick);
}

/* Told once, and kept for the condition EvictionBlocked of the next tick; empty: no pod waits. */
static void carry_blocked(struct hvpa_tick *tick, td_str why)
{
    struct hvpa_item *item = tick->item;
    if (td_str_equal(item->blocked, why)) {
        return;
    }
    td_text_free(item->blocked);
    item->blocked = td_text_copy(why);
    if (why.len > 0) {
        hvpa_tick_event(tick, true, TD_STR("EvictionBlocked"), why);
    }
}

static void carry_fact_read(void *context, const struct td_client_reply *reply)
{
    struct hvpa_tick *tick = context;
    tick->call = NULL;
    td_replacement_facts_take(&tick->facts, reply);
    carry_pods(tick);
}

/* Nothing is evicted that could not come back. False: it is being found out, or it could not. */
static bool carry_can_return(struct hvpa_tick *tick, const struct td_vertical_pod *pod,
                             bool *ret_asked)
{
    struct td_controller owner;
    *ret_asked = false;
    if (!td_replacement_facts_turn(&tick->facts, pod, &owner)) {
        return true;
    }
    td_auto_buf path;
    td_buf_init(&path, TD_OBJECT_BYTES_MAX);
    if (td_replacement_facts_next(&tick->facts, &owner, &path)) {
        struct td_client_request request = {.method = TD_STR("GET"), .path = td_buf_str(&path)};
        *ret_asked = true;
        carry_send(tick, &request, carry_fact_read);
        return false;
    }
    td_str failure = tick->facts.failure;
    td_str problem = failure.len > 0 ? failure : hvpa_replacement_problem(tick, pod);
    carry_blocked(tick, problem.len == 0
                            ? problem
                            : td_arena_format(&tick->arena, "pods are not evicted: %s: %.*s",
                                              failure.len > 0 ? "their owner cannot be read"
                                                              : "a replacement would be refused",
                                              TD_STR_ARG(problem)));
    return problem.len == 0;
}

static bool carry_evict(struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    bool is_asked = false;
    struct td_delete_options options = TD_DELETE_OPTIONS_INIT;
    struct td_client_request request;
    options.uid = pod->meta.uid; /* the pod that was judged, not another of its name */
    if (!hvpa_may_evict(tick, pod) ||
        td_verb_evict(&tick->arena, pod->meta.namespace, pod->meta.name, &options, &request,
                      NULL) != TD_OK) {
        return false;
    }
    if (!carry_can_return(tick, pod, &is_asked)) {
        return is_asked;
    }
    if (!carry_is_proved(tick)) {
        bool waits = tick->proof_count++ < CARRY_PROOF_MAX;
        if (waits) {
            carry_wait(tick);
        }
        return waits;
    }
    tick->has_evicted = true;
    tick->pod = pod->meta.name;
    carry_send(tick, &request, carry_evicted);
    return true;
}

/* ---- In place ---- */

/* The node is too small or cannot resize whole pods, the pod's class would change, or a limit that
 * is this pod's own is in the way: only another pod can have that size. */
static bool carry_is_infeasible(const struct td_client_reply *reply)
{
    bool is_node = reply->status == 403 && (strstr(reply->err.message, "enough allocatable") ||
                                            strstr(reply->err.message, "requires features"));
    bool is_own =
        reply->code == TD_INVALID && (strcasestr(reply->err.message, "qos") ||
                                      strstr(reply->err.message, "must be less than or equal to"));
    return is_node || is_own;
}

static void carry_resized(void *context, const struct td_client_reply *reply)
{
    struct hvpa_tick *tick = context;
    tick->call = NULL;
    bool is_gone = reply->code == TD_NOT_FOUND || reply->code == TD_CONFLICT;
    if (reply->code == TD_OK) {
        carry_worked(tick);
    } else if (!is_gone) {
        (void)td_map_put(&tick->refused, tick->pod, tick); /* room for all pods */
    }
    if (reply->code != TD_OK && !is_gone && !carry_is_infeasible(reply)) {
        carry_failed(tick, carry_message(&tick->arena, reply));
        tick->item->written = 0; /* said with the next tick */
        hvpa_tick_end(tick);
        return;
    }
    carry_pods(tick);
}

static void carry_add(struct td_arena *arena, struct td_json *patch, const char *op, td_str path,
                      struct td_json *value)
{
    struct td_json *operation = td_json_new_object(arena);
    td_json_set_str(arena, operation, TD_STR("op"), td_str_from(op));
    td_json_set_str(arena, operation, TD_STR("path"), path);
    td_json_set(arena, operation, TD_STR("value"), value);
    td_json_append(patch, operation);
}

static bool carry_put(struct td_arena *arena, struct td_json *resources, td_str member,
                      const struct td_hvpa_requests *decided, td_str container)
{
    bool is_changed = false;
    for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
        enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
        const struct td_quantity *quantity = hvpa_request_of(decided, container, resource);
        if (quantity) {
            td_json_set_str(arena, td_json_ensure_object(arena, resources, member),
                            td_hvpa_resource_name(resource), td_quantity_text(arena, quantity));
            is_changed = true;
        }
    }
    return is_changed;
}

/* The resources of one container, or of the pod, as decided. */
static void carry_patch_one(struct hvpa_tick *tick, struct td_json *patch, td_str name,
                            const struct td_json *old, td_str path)
{
    struct td_arena *arena = &tick->arena;
    struct td_json *resources = td_json_is(old, TD_JSON_TYPE_OBJECT)
                                    ? td_json_copy(arena, old, false)
                                    : td_json_new_object(arena);
    bool is_changed = carry_put(arena, resources, TD_STR("requests"), &tick->decided, name);
    is_changed =
        carry_put(arena, resources, TD_STR("limits"), &tick->decided_limits, name) || is_changed;
    if (is_changed) {
        carry_add(arena, patch, "add", path, resources);
    }
}

static struct td_json *carry_patch(struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    struct td_arena *arena = &tick->arena;
    struct td_json *patch = td_json_new_array(arena);
    const struct td_json *spec = td_json_get(pod->tree, TD_STR("spec"));
    const struct td_json *list = td_json_get(spec, TD_STR("containers"));
    const struct td_json *c = td_json_first_item(list);
    carry_add(arena, patch, "test", TD_STR("/metadata/uid"),
              td_json_new_string(arena, pod->meta.uid));
    for (size_t i = 0; c; c = c->next, i++) {
        carry_patch_one(tick, patch, td_json_get_str(c, TD_STR("name"), TD_STR_EMPTY),
                        td_json_get(c, TD_STR("resources")),
                        td_arena_format(arena, "/spec/containers/%zu/resources", i));
    }
    if (pod->has_pod_level) {
        carry_patch_one(tick, patch, hvpa_pod_name, td_json_get(spec, TD_STR("resources")),
                        TD_STR("/spec/resources"));
    }
    return patch;
}

static bool carry_resize(struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    const struct td_api_path path = {
        .version = TD_STR("v1"),
        .namespace = pod->meta.namespace,
        .plural = TD_STR("pods"),
        .name = pod->meta.name,
        .subresource = TD_STR("resize"),
    };
    struct td_client_request request;
    if (td_verb_patch(&tick->arena, &path, TD_PATCH_JSON,
                      carry_text(&tick->arena, carry_patch(tick, pod)), &carry_options, &request,
                      NULL) != TD_OK) {
        return false;
    }
    tick->pod = pod->meta.name;
    (void)td_map_put(&tick->asked, tick->pod, tick); /* room for all pods */
    carry_send(tick, &request, carry_resized);
    return true;
}

/* ---- Pod by pod ---- */

/* Was the resize asked for already? */
static bool pod_is_asked(const struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *c = &pod->containers[i];
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            td_str name = td_hvpa_resource_name(resource);
            const struct td_quantity *request = hvpa_request_of(&tick->decided, c->name, resource);
            const struct td_quantity *limit =
                hvpa_request_of(&tick->decided_limits, c->name, resource);
            if ((request && hvpa_amount(resource, td_resource_list_get(&c->spec_requests, name)) !=
                                hvpa_amount(resource, request)) ||
                (limit && hvpa_amount(resource, td_resource_list_get(&c->spec_limits, name)) !=
                              hvpa_amount(resource, limit))) {
                return false;
            }
        }
    }
    return true;
}

static bool pod_would_restart(const struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *c = &pod->containers[i];
        for (size_t j = 0; j < tick->decided.count && c->restarts_on_resize; j++) {
            if (td_str_equal(tick->decided.items[j].container, c->name)) {
                return true;
            }
        }
    }
    return false;
}

static bool pod_needs_another(const struct hvpa_tick *tick, const struct td_vertical_pod *pod)
{
    return td_map_has(&tick->refused, pod->meta.name) || pod_would_restart(tick, pod) ||
           td_resize_status_of(pod) == TD_RESIZE_INFEASIBLE;
}

/* At most so many at a time, as the updater's eviction tolerance has it. */
static size_t carry_tolerance(const struct hvpa_tick *tick)
{
    const struct td_restriction_config *given = tick->loop->options.restriction;
    double share = given ? given->tolerance : td_updater_config_default().restriction.tolerance;
    size_t count = (size_t)((double)tick->pod_count * share);
    return count > 0 ? count : 1;
}

static void carry_look_again(struct td_timer *timer, void *context)
{
    struct hvpa_tick *tick = context;
    (void)timer;
    if (hvpa_now(tick->loop) >= tick->item->due || !tick->loop->is_running) {
        hvpa_tick_end(tick);
        return;
    }
    hvpa_view_pods(tick, tick->pod_names, tick->name_count);
    carry_pods(tick);
}

static void carry_wait(struct hvpa_tick *tick)
{
    tick->phase = HVPA_CARRYING;
    if (!tick->pause) {
        tick->pause = td_timer_new(tick->loop->options.control.loop, carry_look_again, tick);
    }
    td_timer_set(tick->pause, CARRY_PAUSE);
}

/* The next call, or a pause, or the end: all pods are as decided, or wait for somebody else. */
static void carry_pods(struct hvpa_tick *tick)
{
    size_t in_flight = 0;
    bool is_ignored = false;
    if (!tick->loop->is_running) {
        hvpa_tick_end(tick);
        return;
    }
    const struct td_vertical_pod *next = NULL;
    const struct td_vertical_pod *misfit = NULL;
    for (size_t i = 0; i < tick->pod_count; i++) {
        const struct td_vertical_pod *pod = &tick->pods[i];
        if (!hvpa_pod_is_sized(tick, pod) ||
            hvpa_pod_is_as_decided(&tick->decided, &tick->decided_limits, pod, &is_ignored)) {
            continue;
        }
        if (pod_needs_another(tick, pod)) {
            misfit = misfit || hvpa_is_left_alone(tick, pod) ? misfit : pod;
        } else if (td_map_has(&tick->asked, pod->meta.name) || pod_is_asked(tick, pod)) {
            in_flight++; /* the sight may not have shown us our own write yet */
        } else {
            next = next ? next : pod;
        }
    }
    if (next && in_flight < carry_tolerance(tick) && carry_resize(tick, next)) {
        return;
    }
    if (misfit && carry_evict(tick, misfit)) {
        return;
    }
    if (!misfit) {
        carry_blocked(tick, TD_STR_EMPTY);
    }
    if (next || in_flight > 0) {
        carry_wait(tick);
        return;
    }
    hvpa_tick_end(tick);
}

static void carry_sizes(struct hvpa_tick *tick)
{
    const struct td_hvpa *hvpa = &tick->hvpa;
    if (hvpa->paused || (!tick->is_resized && !tick->is_progressing)) {
        hvpa_tick_end(tick);
    } else if (hvpa->actuation == TD_HVPA_ACTUATE_PODS) {
        hvpa_evict_meet(tick);
        carry_pods(tick);
    } else if (tick->is_resized) {
        carry_template(tick);
    } else {
        hvpa_tick_end(tick);
    }
}

void hvpa_carry(struct hvpa_tick *tick)
{
    tick->phase = HVPA_WRITING;
    if (tick->is_scaled) {
        carry_scale(tick);
    } else {
        hvpa_children_buffer(tick);
        carry_sizes(tick);
    }
}
