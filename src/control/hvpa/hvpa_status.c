/*
 * The status of an Hvpa (hvpa.md 5.3): it is what users read, what webhooks size new pods by, and
 * what the next reconcile starts from, in this process or another. It is sent when something in it
 * has changed other than a time that says since when nothing has.
 */

#include "api/gates.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "control/hvpa/hvpa_private.h"
#include "control/recommender/recommend_loop.h"
#include "kube/client/verbs.h"
#include "kube/patch/patch_write.h"

#define STATUS_CONDITIONS_MAX 16 /* more than there are types */

/* ---- Conditions ---- */

static const struct td_vpa_condition *condition_before(const struct hvpa_reconcile *run,
                                                       td_str type)
{
    return td_vpa_condition_find(run->hvpa.status.conditions, run->hvpa.status.condition_count,
                                 type);
}

struct condition_list {
    struct td_vpa_condition items[STATUS_CONDITIONS_MAX];
    size_t count;
};

static void condition_add(const struct hvpa_reconcile *run, struct condition_list *list,
                          td_str type, bool is_true, td_str reason, td_str message)
{
    const struct td_vpa_condition *before = condition_before(run, type);
    struct td_vpa_condition made = {
        .type = type,
        .status = is_true ? TD_STR("True") : TD_STR("False"),
        .reason = reason,
        .message = message,
        .last_transition = run->instant,
    };
    if (before && td_str_equal(before->status, made.status)) {
        made.last_transition = before->last_transition;
    }
    td_assert(list->count < STATUS_CONDITIONS_MAX);
    list->items[list->count++] = made;
}

static void conditions_store(struct hvpa_reconcile *run, const struct condition_list *list)
{
    struct td_vpa_condition *items =
        td_arena_array(&run->arena, struct td_vpa_condition, list->count + 1);
    for (size_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
    }
    run->decided.status.conditions = items;
    run->decided.status.condition_count = list->count;
}

static td_str coupled_message(struct hvpa_reconcile *run,
                              const struct td_tandem_coupled_condition *coupled)
{
    const struct td_tandem_row *row = &run->decided.rows[coupled->row];
    td_str resource = td_hvpa_resource_name(row->resource);
    td_str gain = TD_STR_EMPTY;
    if (coupled->has_gain) {
        /* Coarse, so that a steady load is a steady status. */
        gain = td_arena_format(&run->arena, " (g = %.1f)", coupled->gain);
    }
    switch (coupled->reason) {
    case TD_TANDEM_COUPLED_LOOP_POSSIBLE:
        return td_arena_format(
            &run->arena,
            "the HPA targets the utilization of %.*s of container '%.*s', relative to a request "
            "that the VPA changes%.*s; set spec.coupling, or an AverageValue target",
            TD_STR_ARG(resource), TD_STR_ARG(row->container), TD_STR_ARG(gain));
    case TD_TANDEM_COUPLED_NO_REFERENCE:
        return td_arena_format(&run->arena,
                               "the pod template has no %.*s request for container '%.*s'; "
                               "utilization is relative to the running pods' request",
                               TD_STR_ARG(resource), TD_STR_ARG(row->container));
    case TD_TANDEM_COUPLED_HEADROOM_CONFLICT:
        return td_arena_format(&run->arena,
                               "%.*s of container '%.*s': the VPA leaves more headroom than the "
                               "HPA%.*s; lower averageUtilization, or use coupling Reference",
                               TD_STR_ARG(resource), TD_STR_ARG(row->container), TD_STR_ARG(gain));
    case TD_TANDEM_COUPLED_FALSE:
        break;
    }
    return TD_STR_EMPTY;
}

static void conditions_coupled(struct hvpa_reconcile *run, struct condition_list *list)
{
    struct td_tandem_coupled_condition coupled = td_tandem_coupled_of(
        &run->hvpa, run->decided.rows, run->decided.in_template, run->decided.row_count);
    bool is_coupled = coupled.reason != TD_TANDEM_COUPLED_FALSE;
    td_str message = is_coupled ? coupled_message(run, &coupled) : TD_STR_EMPTY;
    td_str reason = is_coupled ? td_tandem_coupled_name(coupled.reason) : TD_STR("NotCoupled");
    const struct td_vpa_condition *before = condition_before(run, TD_STR("Coupled"));
    /* Before there is a recommendation there are no rows; that a loop is possible is known. */
    if (run->decided.row_count == 0 && run->hvpa.coupling == TD_HVPA_COUPLING_NONE) {
        for (size_t i = 0; i < run->seen.template_count && !is_coupled; i++) {
            td_str container = run->seen.template[i].name;
            is_coupled = td_tandem_coupling_of(&run->hvpa, container, TD_HVPA_CPU).is_coupled ||
                         td_tandem_coupling_of(&run->hvpa, container, TD_HVPA_MEMORY).is_coupled;
        }
        reason = is_coupled ? TD_STR("LoopPossible") : reason;
        message = is_coupled
                      ? TD_STR("the HPA targets a utilization relative to a request that the VPA "
                               "changes; set spec.coupling, or an AverageValue target")
                      : message;
    }
    bool was = before && td_str_equal(before->reason, TD_STR("LoopPossible"));
    if (is_coupled && !was && td_str_equal(reason, TD_STR("LoopPossible"))) {
        hvpa_reconcile_event(run, true, reason, message);
    }
    condition_add(run, list, TD_STR("Coupled"), is_coupled, reason, message);
}

static void conditions_verdicts(struct hvpa_reconcile *run, struct condition_list *list)
{
    const struct td_hvpa *hvpa = &run->hvpa;
    bool is_horizontal = run->decided.input.is_horizontal_valid;
    bool is_vertical = run->decided.input.is_vertical_valid;
    const struct td_vpa_condition *horizontal = condition_before(run, TD_STR("HorizontalReady"));
    const struct td_vpa_condition *vertical = condition_before(run, TD_STR("VerticalReady"));
    bool is_horizontal_lost = horizontal && td_hvpa_scales_horizontally(hvpa) && !is_horizontal &&
                              td_str_equal(horizontal->status, TD_STR("True"));
    bool is_vertical_lost =
        vertical && hvpa->has_vpa && !is_vertical && td_str_equal(vertical->status, TD_STR("True"));
    if (is_horizontal_lost || is_vertical_lost) {
        hvpa_reconcile_event(run, true, TD_STR("RecommendationUnavailable"),
                             is_horizontal_lost ? run->seen.horizontal_reason
                                                : run->seen.vertical_reason);
    }
    condition_add(run, list, TD_STR("HorizontalReady"), is_horizontal,
                  is_horizontal                       ? TD_STR("ValidMetricFound")
                  : td_hvpa_scales_horizontally(hvpa) ? TD_STR("MetricsUnavailable")
                                                      : TD_STR("NoHpaSpec"),
                  is_horizontal ? TD_STR_EMPTY : run->seen.horizontal_reason);
    condition_add(run, list, TD_STR("VerticalReady"), is_vertical,
                  is_vertical     ? TD_STR("RecommendationProvided")
                  : hvpa->has_vpa ? TD_STR("RecommendationUnavailable")
                                  : TD_STR("NoVpaSpec"),
                  is_vertical ? TD_STR_EMPTY : run->seen.vertical_reason);
}

static void conditions_limited(struct hvpa_reconcile *run, struct condition_list *list)
{
    td_str reason = run->seen.is_limited ? run->seen.limited_reason : TD_STR("DesiredWithinRange");
    td_str message = run->seen.is_limited ? run->seen.limited_message : TD_STR_EMPTY;
    bool is_limited = run->seen.is_limited;
    for (size_t i = 0; i < run->decided.row_count && !is_limited; i++) {
        const struct td_tandem_row *row = &run->decided.rows[i];
        if (row->max_allowed.is_set && row->uncapped > row->max_allowed.amount &&
            row->request >= row->max_allowed.amount) {
            is_limited = true;
            reason = TD_STR("MaxAllowed");
            message = td_arena_format(&run->arena, "%.*s of container '%.*s' is at maxAllowed",
                                      TD_STR_ARG(td_hvpa_resource_name(row->resource)),
                                      TD_STR_ARG(row->container));
        }
    }
    condition_add(run, list, TD_STR("ScalingLimited"), is_limited, reason, message);
}

static void conditions_progress(struct hvpa_reconcile *run, struct condition_list *list)
{
    bool is_given_up =
        !run->decided.progress.is_progressing && run->decided.progress.infeasible.is_set;
    bool is_true =
        run->decided.progress.is_progressing || (run->decided.is_resized && !run->hvpa.paused);
    condition_add(run, list, TD_STR("Progressing"), is_true,
                  is_true       ? TD_STR("Resizing")
                  : is_given_up ? TD_STR("ResizeInfeasible")
                                : TD_STR("AsDecided"),
                  is_true       ? TD_STR("some pods do not have the decided sizes yet")
                  : is_given_up ? TD_STR("pods did not get the decided sizes")
                                : TD_STR_EMPTY);
}

/* Only while it is so, as on VPAs. */
static void conditions_webhook(struct hvpa_reconcile *run, struct condition_list *list)
{
    const struct td_hvpa_options *options = &run->loop->options;
    td_str problem = options->get_webhook_problem && run->loop->is_running
                         ? options->get_webhook_problem(options->context)
                         : TD_STR_EMPTY;
    if (problem.len > 0) {
        condition_add(run, list, TD_STR("WebhookNotMutating"), true, TD_STR("ProbeFailed"),
                      td_arena_copy_str(&run->arena, problem));
    }
}

static void conditions_eviction(struct hvpa_reconcile *run, struct condition_list *list)
{
    if (run->item->blocked.len > 0 && run->decided.progress.is_progressing) {
        condition_add(run, list, TD_STR("EvictionBlocked"), true, TD_STR("ReplacementRefused"),
                      td_arena_copy_str(&run->arena, run->item->blocked));
    }
}

static void conditions_gates(struct hvpa_reconcile *run, struct condition_list *list)
{
    const struct td_vpa_condition *before = condition_before(run, TD_STR(TD_GATE_OFF));
    if (run->decided.gated.len == 0) {
        return;
    }
    condition_add(run, list, TD_STR(TD_GATE_OFF), true, TD_STR("FieldIgnored"), run->decided.gated);
    /* What is stored says whether it was told. */
    if (!run->explain && !(before && td_str_equal(before->message, run->decided.gated))) {
        hvpa_reconcile_event(run, true, TD_STR(TD_GATE_OFF), run->decided.gated);
    }
}

/* An annotation whose value names no estimator or no risk of it. */
static void conditions_estimator(struct hvpa_reconcile *run, struct condition_list *list)
{
    const td_str type = TD_STR("EstimatorUnknown");
    const struct td_vpa_condition *before = condition_before(run, type);
    td_str problem =
        run->loop->options.recommend
            ? td_recommend_loop_estimator_problem(run->loop->options.recommend, &run->arena,
                                                  run->hvpa.meta.annotations)
            : TD_STR_EMPTY;
    if (problem.len == 0) {
        return;
    }
    condition_add(run, list, type, true, TD_STR("UnknownValue"), problem);
    if (!run->explain && !(before && td_str_equal(before->message, problem))) {
        hvpa_reconcile_event(run, true, type, problem);
    }
}

static void conditions_fill(struct hvpa_reconcile *run)
{
    struct condition_list list = {.count = 0};
    bool is_acting = run->decided.plan.count > 0 || run->decided.progress.is_progressing;
    bool is_failing = run->item->failure.len > 0 && is_acting;
    td_str reason = run->hvpa.paused ? TD_STR("Paused") : TD_STR("Deciding");
    td_str message = run->hvpa.paused ? TD_STR("spec.paused: decisions are reported, not applied")
                                      : TD_STR_EMPTY;
    if (is_failing) {
        reason = TD_STR("ScaleFailed");
        message = td_arena_copy_str(&run->arena, run->item->failure);
    }
    condition_add(run, &list, TD_STR("Ready"), !is_failing, reason, message);
    run->decided.status.reason = is_failing || run->hvpa.paused
                                     ? reason
                                     : td_tandem_reason_name(run->decided.decision.reason);
    conditions_verdicts(run, &list);
    conditions_limited(run, &list);
    conditions_coupled(run, &list);
    conditions_progress(run, &list);
    conditions_webhook(run, &list);
    conditions_eviction(run, &list);
    conditions_gates(run, &list);
    conditions_estimator(run, &list);
    conditions_store(run, &list);
}

/* ---- Parts ---- */

static void status_current(struct hvpa_reconcile *run)
{
    struct td_hvpa_status *status = &run->decided.status;
    status->has_replicas = true;
    status->replicas = run->seen.pod_count > INT32_MAX ? INT32_MAX : (int32_t)run->seen.pod_count;
    status->target_selector = run->seen.selector;
    status->has_current = true;
    status->current_replicas = run->decided.input.replicas;
    for (size_t i = 0; run->seen.newest && i < run->seen.newest->container_count; i++) {
        const struct td_pod_container *c = &run->seen.newest->containers[i];
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            const struct td_quantity *has =
                td_resource_list_get(td_vertical_requests(c), td_hvpa_resource_name(resource));
            if (has) {
                td_tandem_request_put(&run->arena, &status->current_requests, c->name, resource,
                                      has);
            }
        }
    }
}

static void status_recommendation(struct hvpa_reconcile *run)
{
    struct td_hvpa_status *status = &run->decided.status;
    status->has_horizontal = td_hvpa_scales_horizontally(&run->hvpa);
    status->horizontal_valid = run->decided.input.is_horizontal_valid;
    status->has_desired_replicas = run->decided.input.is_horizontal_valid;
    status->desired_replicas = run->decided.input.desired_replicas;
    status->horizontal_reason = run->seen.horizontal_reason;
    status->has_vertical = run->hvpa.has_vpa;
    status->vertical_valid = run->decided.input.is_vertical_valid;
    status->vertical_reason = run->seen.vertical_reason;
    status->vertical = run->seen.recommendation;
}

static uint64_t status_hash(struct td_arena *arena, const struct td_hvpa_status *status)
{
    struct td_hvpa_status plain = *status;
    struct td_hvpa_emergency *flags =
        td_arena_array(arena, struct td_hvpa_emergency, status->emergency_count + 1);
    for (size_t i = 0; i < status->emergency_count; i++) {
        flags[i] = status->emergency[i];
        flags[i].usable_seconds = 0; /* it only says that time goes by */
    }
    plain.emergency = flags;
    return td_map_hash(td_json_line(arena, td_hvpa_status_encode(arena, &plain))) | 1;
}

static bool decision_is_same(struct td_arena *arena, const struct td_hvpa_status_decision *a,
                             const struct td_hvpa_status_decision *b)
{
    struct td_hvpa_status x = {.decision = *a};
    struct td_hvpa_status y = {.decision = *b};
    x.decision.has_time = false;
    y.decision.has_time = false;
    return a->is_set && b->is_set && status_hash(arena, &x) == status_hash(arena, &y);
}

static void status_decision(struct hvpa_reconcile *run)
{
    const struct td_tandem_decision *decision = &run->decided.decision;
    const struct td_hvpa_status_decision *before = &run->hvpa.status.decision;
    struct td_hvpa_status_decision *made = &run->decided.status.decision;
    *made = (struct td_hvpa_status_decision){
        .is_set = true,
        .has_time = true,
        .time = run->instant,
        .axis = td_tandem_axis_name(decision->axis),
        .reason = td_tandem_reason_name(decision->reason),
        .stage =
            decision->blend.has_stage ? td_tandem_stage_name(decision->blend.stage) : TD_STR_EMPTY,
        .has_replicas = true,
        .replicas = decision->replicas,
        .requests = run->decided.requests,
        .limits = run->decided.limits,
        .has_weights = decision->blend.has_weights,
        .weight_horizontal = decision->blend.horizontal,
        .weight_vertical = decision->blend.vertical,
        .emergency = decision->is_emergency,
        .has_below_thresholds_since = decision->below_thresholds_since.is_set,
        .below_thresholds_since = decision->below_thresholds_since.at,
    };
    if (decision_is_same(&run->arena, made, before)) {
        made->time = before->time;
    }
}

static void blocked_add(struct hvpa_reconcile *run, struct td_hvpa_blocked *list, size_t *count,
                        const struct td_hvpa_blocked *blocked)
{
    const struct td_hvpa_status *before = &run->hvpa.status;
    struct td_hvpa_blocked made = *blocked;
    made.has_since = true;
    made.since = run->instant;
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

static void status_blocked(struct hvpa_reconcile *run)
{
    struct td_hvpa_blocked *list =
        td_arena_array(&run->arena, struct td_hvpa_blocked, run->decided.row_count + 2);
    size_t count = 0;
    if (run->decided.decision.horizontal_block != TD_TANDEM_BLOCK_NONE) {
        blocked_add(run, list, &count,
                    &(struct td_hvpa_blocked){
                        .axis = TD_HVPA_HORIZONTAL,
                        .container = TD_STR_EMPTY,
                        .resource = TD_STR_EMPTY,
                        .reason = td_tandem_block_name(run->decided.decision.horizontal_block)});
    }
    for (size_t i = 0; i < run->decided.row_count; i++) {
        if (run->decided.outcomes[i].block != TD_TANDEM_BLOCK_NONE) {
            blocked_add(run, list, &count,
                        &(struct td_hvpa_blocked){
                            .axis = TD_HVPA_VERTICAL,
                            .container = run->decided.rows[i].container,
                            .resource = td_hvpa_resource_name(run->decided.rows[i].resource),
                            .reason = td_tandem_block_name(run->decided.outcomes[i].block)});
        }
    }
    run->decided.status.blocked = list;
    run->decided.status.blocked_count = count;
}

/* What is about to be done counts as done: a write that fails takes it back. */
static void status_last(struct hvpa_reconcile *run)
{
    const struct td_hvpa_status *before = &run->hvpa.status;
    struct td_hvpa_status *status = &run->decided.status;
    status->has_horizontal_time = before->has_horizontal_time || run->decided.is_scaled;
    status->horizontal_time = run->decided.is_scaled ? run->instant : before->horizontal_time;
    status->has_from_to = before->has_from_to || run->decided.is_scaled;
    status->from_replicas =
        run->decided.is_scaled ? run->decided.input.replicas : before->from_replicas;
    status->to_replicas =
        run->decided.is_scaled ? run->decided.decision.replicas : before->to_replicas;
    bool is_resized = run->decided.is_resized && !run->hvpa.paused;
    status->has_vertical_time = before->has_vertical_time || is_resized;
    status->vertical_time = is_resized ? run->instant : before->vertical_time;
}

void hvpa_status_fill(struct hvpa_reconcile *run)
{
    struct td_hvpa_status *status = &run->decided.status;
    *status = (struct td_hvpa_status){
        .observed_generation = run->hvpa.meta.generation,
        .mode = td_hvpa_mode_name(run->hvpa.mode),
        .infeasible = run->decided.progress.infeasible,
        .emergency = run->decided.emergencies.items,
        .emergency_count = run->decided.emergencies.count,
        .reference_requests = run->decided.reference,
        .origin = run->decided.origin,
        .has_written_replicas = run->hvpa.sources == TD_HVPA_OBJECTS,
        .written_replicas =
            run->decided.is_scaled ? run->decided.decision.replicas : run->decided.input.replicas,
    };
    status_current(run);
    status_recommendation(run);
    status_decision(run);
    status_last(run);
    status_blocked(run);
    conditions_fill(run);
}

bool hvpa_status_has_problem(const struct hvpa_reconcile *run, td_str reason, td_str message)
{
    const struct td_vpa_condition *ready = condition_before(run, TD_STR("Ready"));
    return ready && td_str_equal(ready->status, TD_STR("False")) &&
           td_str_equal(ready->reason, reason) && td_str_equal(ready->message, message);
}

/* Condition Ready is false; the others stay as they are in the status. */
static void status_not_ready(struct hvpa_reconcile *run, td_str reason, td_str message)
{
    const struct td_hvpa_status *status = &run->decided.status;
    struct condition_list list = {.count = 0};
    condition_add(run, &list, TD_STR("Ready"), false, reason, message);
    run->decided.status.reason = reason;
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct td_vpa_condition *c = &status->conditions[i];
        if (list.count < STATUS_CONDITIONS_MAX && !td_str_equal(c->type, TD_STR("Ready"))) {
            list.items[list.count++] = *c;
        }
    }
    conditions_store(run, &list);
}

void hvpa_status_problem(struct hvpa_reconcile *run, td_str reason, td_str message)
{
    run->decided.status = run->hvpa.status;
    run->decided.status.observed_generation = run->hvpa.meta.generation;
    status_not_ready(run, reason, message);
}

void hvpa_status_failed(struct hvpa_reconcile *run)
{
    td_text_set(&run->item->failure, run->doing.failure);
    status_not_ready(run, TD_STR("ScaleFailed"), run->doing.failure);
}

/* ---- Sending ---- */

bool hvpa_status_send(struct hvpa_reconcile *run,
                      void (*done)(void *context, const struct td_client_reply *reply))
{
    struct td_arena *arena = &run->arena;
    struct hvpa_item *item = run->item;
    uint64_t hash = status_hash(arena, &run->decided.status);
    struct td_json *encoded = td_hvpa_status_encode(arena, &run->decided.status);
    hvpa_item_set_status(item, td_json_line(arena, encoded));
    if (hash == item->written) {
        return false;
    }
    td_str body = td_patch_one(arena, "add", TD_STR("/status"), encoded);
    struct td_api_path path = hvpa_item_path(item);
    path.subresource = TD_STR("status");
    struct td_client_request request;
    const struct td_write_options options = {.field_manager = HVPA_MANAGER};
    if (td_verb_patch(arena, &path, TD_PATCH_JSON, body, &options, &request, NULL) != TD_OK) {
        return false;
    }
    request.flow = run->loop->options.control.flow;
    request.deadline = HVPA_DEADLINE;
    request.is_idempotent = true; /* the whole status, each time */
    item->written = hash;
    run->phase = HVPA_WRITING;
    run->call = td_client_send(run->loop->options.control.client, &request, done, run);
    return true;
}
