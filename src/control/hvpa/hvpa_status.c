/*
 * The status of an Hvpa (hvpa.md 5.3): it is what people read, what webhooks size new pods by, and
 * what the next tick starts from, in this process or another. It is sent when something in it has
 * changed other than a time that says since when nothing has.
 */
#include <math.h>

#include "api/gates.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "control/hvpa/hvpa_private.h"
#include "kube/client/verbs.h"

#define STATUS_CONDITIONS_MAX 16 /* more than there are types */

/* ---- Conditions ---- */

static const struct td_vpa_condition *condition_before(const struct hvpa_tick *tick, td_str type)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    for (size_t i = 0; i < status->condition_count; i++) {
        if (td_str_equal(status->conditions[i].type, type)) {
            return &status->conditions[i];
        }
    }
    return NULL;
}

struct condition_list {
    struct td_vpa_condition items[STATUS_CONDITIONS_MAX];
    size_t count;
};

static void condition_add(const struct hvpa_tick *tick, struct condition_list *list, td_str type,
                          bool is_true, td_str reason, td_str message)
{
    const struct td_vpa_condition *before = condition_before(tick, type);
    struct td_vpa_condition made = {
        .type = type,
        .status = is_true ? TD_STR("True") : TD_STR("False"),
        .reason = reason,
        .message = message,
        .last_transition = tick->instant,
    };
    if (before && td_str_equal(before->status, made.status)) {
        made.last_transition = before->last_transition;
    }
    td_assert(list->count < STATUS_CONDITIONS_MAX);
    list->items[list->count++] = made;
}

static void conditions_store(struct hvpa_tick *tick, const struct condition_list *list)
{
    struct td_vpa_condition *items =
        td_arena_array(&tick->arena, struct td_vpa_condition, list->count + 1);
    for (size_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
    }
    tick->status.conditions = items;
    tick->status.condition_count = list->count;
}

static td_str coupled_message(struct hvpa_tick *tick,
                              const struct td_tandem_coupled_condition *coupled)
{
    const struct td_tandem_row *row = &tick->rows[coupled->row];
    td_str resource = td_hvpa_resource_name(row->resource);
    td_str gain = TD_STR_EMPTY;
    if (coupled->has_gain) {
        /* Coarse, so that a steady load is a steady status. */
        gain = td_arena_format(&tick->arena, " (g = %.1f)", coupled->gain);
    }
    switch (coupled->reason) {
    case TD_TANDEM_COUPLED_LOOP_POSSIBLE:
        return td_arena_format(&tick->arena,
                               "the HPA measures %.*s of container '%.*s' by a request that the "
                               "VPA moves%.*s; set spec.coupling, or an AverageValue target",
                               TD_STR_ARG(resource), TD_STR_ARG(row->container), TD_STR_ARG(gain));
    case TD_TANDEM_COUPLED_NO_REFERENCE:
        return td_arena_format(&tick->arena,
                               "the template has no %.*s request for container '%.*s' to measure "
                               "against; the live one is used",
                               TD_STR_ARG(resource), TD_STR_ARG(row->container));
    case TD_TANDEM_COUPLED_HEADROOM_CONFLICT:
        return td_arena_format(&tick->arena,
                               "%.*s of container '%.*s': the VPA's headroom is larger than the "
                               "HPA's%.*s; lower averageUtilization, or use coupling Reference",
                               TD_STR_ARG(resource), TD_STR_ARG(row->container), TD_STR_ARG(gain));
    case TD_TANDEM_COUPLED_FALSE:
        break;
    }
    return TD_STR_EMPTY;
}

static void conditions_coupled(struct hvpa_tick *tick, struct condition_list *list)
{
    struct td_tandem_coupled_condition coupled =
        td_tandem_coupled_of(&tick->hvpa, tick->rows, tick->in_template, tick->row_count);
    bool is_coupled = coupled.reason != TD_TANDEM_COUPLED_FALSE;
    td_str message = is_coupled ? coupled_message(tick, &coupled) : TD_STR_EMPTY;
    td_str reason = is_coupled ? td_tandem_coupled_name(coupled.reason) : TD_STR("NotCoupled");
    const struct td_vpa_condition *before = condition_before(tick, TD_STR("Coupled"));
    /* Before there is a recommendation there are no rows; that a loop is possible is known. */
    if (tick->row_count == 0 && tick->hvpa.coupling == TD_HVPA_COUPLING_NONE) {
        for (size_t i = 0; i < tick->template_count && !is_coupled; i++) {
            td_str container = tick->template[i].name;
            is_coupled = td_tandem_coupling_of(&tick->hvpa, container, TD_HVPA_CPU).is_coupled ||
                         td_tandem_coupling_of(&tick->hvpa, container, TD_HVPA_MEMORY).is_coupled;
        }
        reason = is_coupled ? TD_STR("LoopPossible") : reason;
        message = is_coupled ? TD_STR("the HPA measures by a request that the VPA moves; set "
                                      "spec.coupling, or an AverageValue target")
                             : message;
    }
    bool was = before && td_str_equal(before->reason, TD_STR("LoopPossible"));
    if (is_coupled && !was && td_str_equal(reason, TD_STR("LoopPossible"))) {
        hvpa_tick_event(tick, true, reason, message);
    }
    condition_add(tick, list, TD_STR("Coupled"), is_coupled, reason, message);
}

static void conditions_verdicts(struct hvpa_tick *tick, struct condition_list *list)
{
    const struct td_hvpa *hvpa = &tick->hvpa;
    bool is_horizontal = tick->input.is_horizontal_valid;
    bool is_vertical = tick->input.is_vertical_valid;
    const struct td_vpa_condition *horizontal = condition_before(tick, TD_STR("HorizontalReady"));
    const struct td_vpa_condition *vertical = condition_before(tick, TD_STR("VerticalReady"));
    bool is_horizontal_lost = horizontal && td_hvpa_scales_horizontally(hvpa) && !is_horizontal &&
                              td_str_equal(horizontal->status, TD_STR("True"));
    bool is_vertical_lost =
        vertical && hvpa->has_vpa && !is_vertical && td_str_equal(vertical->status, TD_STR("True"));
    if (is_horizontal_lost || is_vertical_lost) {
        hvpa_tick_event(tick, true, TD_STR("RecommendationUnavailable"),
                        is_horizontal_lost ? tick->horizontal_reason : tick->vertical_reason);
    }
    condition_add(tick, list, TD_STR("HorizontalReady"), is_horizontal,
                  is_horizontal                       ? TD_STR("ValidMetricFound")
                  : td_hvpa_scales_horizontally(hvpa) ? TD_STR("MetricsUnavailable")
                                                      : TD_STR("NoHpaSpec"),
                  is_horizontal ? TD_STR_EMPTY : tick->horizontal_reason);
    condition_add(tick, list, TD_STR("VerticalReady"), is_vertical,
                  is_vertical     ? TD_STR("RecommendationProvided")
                  : hvpa->has_vpa ? TD_STR("RecommendationUnavailable")
                                  : TD_STR("NoVpaSpec"),
                  is_vertical ? TD_STR_EMPTY : tick->vertical_reason);
}

static void conditions_limited(struct hvpa_tick *tick, struct condition_list *list)
{
    td_str reason = tick->is_limited ? tick->limited_reason : TD_STR("DesiredWithinRange");
    td_str message = tick->is_limited ? tick->limited_message : TD_STR_EMPTY;
    bool is_limited = tick->is_limited;
    for (size_t i = 0; i < tick->row_count && !is_limited; i++) {
        const struct td_tandem_row *row = &tick->rows[i];
        if (row->max_allowed.is_set && row->uncapped > row->max_allowed.amount &&
            row->request >= row->max_allowed.amount) {
            is_limited = true;
            reason = TD_STR("MaxAllowed");
            message = td_arena_format(&tick->arena, "%.*s of container '%.*s' is at maxAllowed",
                                      TD_STR_ARG(td_hvpa_resource_name(row->resource)),
                                      TD_STR_ARG(row->container));
        }
    }
    condition_add(tick, list, TD_STR("ScalingLimited"), is_limited, reason, message);
}

static void conditions_progress(struct hvpa_tick *tick, struct condition_list *list)
{
    bool is_given_up = !tick->is_progressing && tick->status.infeasible.is_set;
    bool is_true = tick->is_progressing || (tick->is_resized && !tick->hvpa.paused);
    condition_add(tick, list, TD_STR("Progressing"), is_true,
                  is_true       ? TD_STR("Resizing")
                  : is_given_up ? TD_STR("ResizeInfeasible")
                                : TD_STR("AsDecided"),
                  is_true       ? TD_STR("some pods do not have the decided sizes yet")
                  : is_given_up ? TD_STR("pods could not be given the decided sizes")
                                : TD_STR_EMPTY);
}

/* Only while it is so, as on VPAs. */
static void conditions_webhook(struct hvpa_tick *tick, struct condition_list *list)
{
    const struct td_hvpa_options *options = &tick->loop->options;
    td_str trouble = options->get_hook_trouble && tick->loop->is_running
                         ? options->get_hook_trouble(options->context)
                         : TD_STR_EMPTY;
    if (trouble.len > 0) {
        condition_add(tick, list, TD_STR("WebhookNotMutating"), true, TD_STR("ProbeFailed"),
                      td_arena_copy_str(&tick->arena, trouble));
    }
}

static void conditions_eviction(struct hvpa_tick *tick, struct condition_list *list)
{
    if (tick->item->blocked.len > 0 && tick->is_progressing) {
        condition_add(tick, list, TD_STR("EvictionBlocked"), true, TD_STR("ReplacementRefused"),
                      td_arena_copy_str(&tick->arena, tick->item->blocked));
    }
}

static void conditions_gates(struct hvpa_tick *tick, struct condition_list *list)
{
    const struct td_vpa_condition *before = condition_before(tick, TD_STR(TD_GATE_OFF));
    if (tick->gated.len == 0) {
        return;
    }
    condition_add(tick, list, TD_STR(TD_GATE_OFF), true, TD_STR("FieldIgnored"), tick->gated);
    /* What is stored says whether it was told. */
    if (!tick->explain && !(before && td_str_equal(before->message, tick->gated))) {
        hvpa_tick_event(tick, true, TD_STR(TD_GATE_OFF), tick->gated);
    }
}

static void conditions_fill(struct hvpa_tick *tick)
{
    struct condition_list list = {.count = 0};
    bool is_acting = tick->plan.count > 0 || tick->is_progressing;
    bool is_failing = tick->item->failure.len > 0 && is_acting;
    td_str reason = tick->hvpa.paused ? TD_STR("Paused") : TD_STR("Deciding");
    td_str message = tick->hvpa.paused
                         ? TD_STR("spec.paused: decisions are reported and not carried out")
                         : TD_STR_EMPTY;
    if (is_failing) {
        reason = TD_STR("ScaleFailed");
        message = td_arena_copy_str(&tick->arena, tick->item->failure);
    }
    condition_add(tick, &list, TD_STR("Ready"), !is_failing, reason, message);
    conditions_verdicts(tick, &list);
    conditions_limited(tick, &list);
    conditions_coupled(tick, &list);
    conditions_progress(tick, &list);
    conditions_webhook(tick, &list);
    conditions_eviction(tick, &list);
    conditions_gates(tick, &list);
    conditions_store(tick, &list);
}

/* ---- Parts ---- */

static void status_current(struct hvpa_tick *tick)
{
    struct td_hvpa_status *status = &tick->status;
    status->has_replicas = true;
    status->replicas = tick->pod_count > INT32_MAX ? INT32_MAX : (int32_t)tick->pod_count;
    status->target_selector = tick->selector;
    status->has_current = true;
    status->current_replicas = tick->input.replicas;
    for (size_t i = 0; tick->newest && i < tick->newest->container_count; i++) {
        const struct td_vertical_container *c = &tick->newest->containers[i];
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            const struct td_quantity *has =
                td_resource_list_get(td_vertical_requests(c), td_hvpa_resource_name(resource));
            if (has) {
                hvpa_request_put(&tick->arena, &status->current_requests, c->name, resource, has);
            }
        }
    }
}

static void status_recommendation(struct hvpa_tick *tick)
{
    struct td_hvpa_status *status = &tick->status;
    status->has_horizontal = td_hvpa_scales_horizontally(&tick->hvpa);
    status->horizontal_valid = tick->input.is_horizontal_valid;
    status->has_desired_replicas = tick->input.is_horizontal_valid;
    status->desired_replicas = tick->input.desired_replicas;
    status->horizontal_reason = tick->horizontal_reason;
    status->has_vertical = tick->hvpa.has_vpa;
    status->vertical_valid = tick->input.is_vertical_valid;
    status->vertical_reason = tick->vertical_reason;
    status->vertical = tick->recommendation;
}

static bool decision_is_same(struct td_arena *arena, const struct td_hvpa_status_decision *a,
                             const struct td_hvpa_status_decision *b)
{
    struct td_hvpa_status x = {.decision = *a};
    struct td_hvpa_status y = {.decision = *b};
    x.decision.has_time = false;
    y.decision.has_time = false;
    return a->is_set && b->is_set && hvpa_status_hash(arena, &x) == hvpa_status_hash(arena, &y);
}

static void status_decision(struct hvpa_tick *tick)
{
    const struct td_tandem_decision *decision = &tick->decision;
    const struct td_hvpa_status_decision *before = &tick->hvpa.status.decision;
    struct td_hvpa_status_decision *made = &tick->status.decision;
    *made = (struct td_hvpa_status_decision){
        .is_set = true,
        .has_time = true,
        .time = tick->instant,
        .axis = td_tandem_axis_name(decision->axis),
        .reason = td_tandem_reason_name(decision->reason),
        .stage =
            decision->blend.has_stage ? td_tandem_stage_name(decision->blend.stage) : TD_STR_EMPTY,
        .has_replicas = true,
        .replicas = decision->replicas,
        .requests = tick->decided,
        .limits = tick->decided_limits,
        .has_weights = decision->blend.has_weights,
        .weight_horizontal = decision->blend.horizontal,
        .weight_vertical = decision->blend.vertical,
        .emergency = decision->is_emergency,
        .has_below_thresholds_since = decision->below_thresholds_since.is_set,
        .below_thresholds_since = decision->below_thresholds_since.at,
    };
    if (decision_is_same(&tick->arena, made, before)) {
        made->time = before->time;
    }
}

static void blocked_add(struct hvpa_tick *tick, struct td_hvpa_blocked *list, size_t *count,
                        const struct td_hvpa_blocked *blocked)
{
    const struct td_hvpa_status *before = &tick->hvpa.status;
    struct td_hvpa_blocked made = *blocked;
    made.has_since = true;
    made.since = tick->instant;
    for (size_t i = 0; i < before->blocked_count; i++) {
        const struct td_hvpa_blocked *old = &before->blocked[i];
        if (old->axis == made.axis && old->has_since &&
            td_str_equal(old->container, made.container) &&
            td_str_equal(old->resource, made.resource) && td_str_equal(old->reason, made.reason)) {
            made.since = old->since;
        }
    }
    list[(*count)++] = made;
}

static void status_blocked(struct hvpa_tick *tick)
{
    struct td_hvpa_blocked *list =
        td_arena_array(&tick->arena, struct td_hvpa_blocked, tick->row_count + 2);
    size_t count = 0;
    if (tick->decision.horizontal_block != TD_TANDEM_BLOCK_NONE) {
        blocked_add(tick, list, &count,
                    &(struct td_hvpa_blocked){
                        .axis = TD_HVPA_HORIZONTAL,
                        .container = TD_STR_EMPTY,
                        .resource = TD_STR_EMPTY,
                        .reason = td_tandem_block_name(tick->decision.horizontal_block)});
    }
    for (size_t i = 0; i < tick->row_count; i++) {
        if (tick->outcomes[i].block != TD_TANDEM_BLOCK_NONE) {
            blocked_add(
                tick, list, &count,
                &(struct td_hvpa_blocked){.axis = TD_HVPA_VERTICAL,
                                          .container = tick->rows[i].container,
                                          .resource = td_hvpa_resource_name(tick->rows[i].resource),
                                          .reason = td_tandem_block_name(tick->outcomes[i].block)});
        }
    }
    tick->status.blocked = list;
    tick->status.blocked_count = count;
}

/* What is about to be done counts as done: a write that fails takes it back. */
static void status_last(struct hvpa_tick *tick)
{
    const struct td_hvpa_status *before = &tick->hvpa.status;
    struct td_hvpa_status *status = &tick->status;
    status->has_horizontal_time = before->has_horizontal_time || tick->is_scaled;
    status->horizontal_time = tick->is_scaled ? tick->instant : before->horizontal_time;
    status->has_from_to = before->has_from_to || tick->is_scaled;
    status->from_replicas = tick->is_scaled ? tick->input.replicas : before->from_replicas;
    status->to_replicas = tick->is_scaled ? tick->decision.replicas : before->to_replicas;
    bool is_resized = tick->is_resized && !tick->hvpa.paused;
    status->has_vertical_time = before->has_vertical_time || is_resized;
    status->vertical_time = is_resized ? tick->instant : before->vertical_time;
}

void hvpa_status_fill(struct hvpa_tick *tick)
{
    struct td_hvpa_status *status = &tick->status;
    const struct td_hvpa_infeasible infeasible = status->infeasible;
    *status = (struct td_hvpa_status){
        .observed_generation = tick->hvpa.meta.generation,
        .mode = td_hvpa_mode_name(tick->hvpa.mode),
        .infeasible = infeasible,
        .emergency = tick->emergencies,
        .emergency_count = tick->emergency_count,
        .reference_requests = tick->reference,
        .origin = tick->origin,
        .has_written_replicas = tick->hvpa.sources == TD_HVPA_OBJECTS,
        .written_replicas = tick->is_scaled ? tick->decision.replicas : tick->input.replicas,
    };
    status_current(tick);
    status_recommendation(tick);
    status_decision(tick);
    status_last(tick);
    status_blocked(tick);
    conditions_fill(tick);
}

bool hvpa_status_has_trouble(const struct hvpa_tick *tick, td_str reason, td_str message)
{
    const struct td_vpa_condition *ready = condition_before(tick, TD_STR("Ready"));
    return ready && td_str_equal(ready->status, TD_STR("False")) &&
           td_str_equal(ready->reason, reason) && td_str_equal(ready->message, message);
}

void hvpa_status_trouble(struct hvpa_tick *tick, td_str reason, td_str message)
{
    struct condition_list list = {.count = 0};
    tick->status = tick->hvpa.status;
    tick->status.observed_generation = tick->hvpa.meta.generation;
    condition_add(tick, &list, TD_STR("Ready"), false, reason, message);
    for (size_t i = 0; i < tick->hvpa.status.condition_count; i++) {
        const struct td_vpa_condition *c = &tick->hvpa.status.conditions[i];
        if (list.count < STATUS_CONDITIONS_MAX && !td_str_equal(c->type, TD_STR("Ready"))) {
            list.items[list.count++] = *c;
        }
    }
    conditions_store(tick, &list);
}

void hvpa_status_failed(struct hvpa_tick *tick)
{
    td_text_free(tick->item->failure);
    tick->item->failure = td_text_copy(tick->failure);
    struct condition_list list = {.count = 0};
    condition_add(tick, &list, TD_STR("Ready"), false, TD_STR("ScaleFailed"), tick->failure);
    for (size_t i = 0; i < tick->status.condition_count; i++) {
        const struct td_vpa_condition *c = &tick->status.conditions[i];
        if (list.count < STATUS_CONDITIONS_MAX && !td_str_equal(c->type, TD_STR("Ready"))) {
            list.items[list.count++] = *c;
        }
    }
    conditions_store(tick, &list);
}

/* ---- Sending ---- */

static td_str status_text(struct td_arena *arena, const struct td_hvpa_status *status)
{
    td_auto_buf buf;
    td_buf_init(&buf, TD_OBJECT_BYTES_MAX);
    td_json_write(td_hvpa_status_encode(arena, status), &(struct td_json_format){.indent = 0},
                  &buf);
    return td_arena_copy_str(arena, td_buf_str(&buf));
}

uint64_t hvpa_status_hash(struct td_arena *arena, const struct td_hvpa_status *status)
{
    struct td_hvpa_status plain = *status;
    struct td_hvpa_emergency *flags =
        td_arena_array(arena, struct td_hvpa_emergency, status->emergency_count + 1);
    for (size_t i = 0; i < status->emergency_count; i++) {
        flags[i] = status->emergency[i];
        flags[i].usable_seconds = 0; /* it only says that time goes by */
    }
    plain.emergency = flags;
    return td_map_hash(status_text(arena, &plain)) | 1;
}

bool hvpa_status_send(struct hvpa_tick *tick,
                      void (*done)(void *context, const struct td_client_reply *reply))
{
    struct td_arena *arena = &tick->arena;
    struct hvpa_item *item = tick->item;
    uint64_t hash = hvpa_status_hash(arena, &tick->status);
    hvpa_item_set_status(item, status_text(arena, &tick->status));
    if (hash == item->written) {
        return false;
    }
    struct td_json *operation = td_json_new_object(arena);
    struct td_json *patch = td_json_new_array(arena);
    td_json_set_str(arena, operation, TD_STR("op"), TD_STR("add"));
    td_json_set_str(arena, operation, TD_STR("path"), TD_STR("/status"));
    td_json_set(arena, operation, TD_STR("value"), td_hvpa_status_encode(arena, &tick->status));
    td_json_append(patch, operation);
    td_auto_buf body;
    td_buf_init(&body, TD_OBJECT_BYTES_MAX);
    td_json_write(patch, &(struct td_json_format){.indent = 0}, &body);
    const struct td_api_path path = {
        .group = TD_STR(TD_HVPA_GROUP),
        .version = TD_STR(TD_HVPA_VERSION),
        .namespace = item->namespace,
        .plural = TD_STR("hvpas"),
        .name = item->name,
        .subresource = TD_STR("status"),
    };
    struct td_client_request request;
    const struct td_write_options options = {.field_manager = HVPA_MANAGER};
    if (td_verb_patch(arena, &path, TD_PATCH_JSON, td_buf_str(&body), &options, &request, NULL) !=
        TD_OK) {
        return false;
    }
    request.flow = tick->loop->options.control.flow;
    request.deadline = HVPA_DEADLINE;
    request.is_idempotent = true; /* the whole status, each time */
    item->written = hash;
    tick->phase = HVPA_WRITING;
    tick->call = td_client_send(tick->loop->options.control.client, &request, done, tick);
    return true;
}
