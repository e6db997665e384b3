/*
 * The steps of one pass in upstream's order: scale, path, selector, ambiguity, metrics,
 * normalisation, rescale, status. Each step fills the pass and its status; the caller does in
 * between what a step asks for. The words of conditions, events and errors are made here.
 */
#include "decide/horizontal/reconcile.h"

#include "api/gates.h"
#include "api/hpa/hpa_source.h"
#include "base/error.h"

void td_hpa_state_init(struct td_hpa_state *state)
{
    *state = (struct td_hpa_state){.strategy = TD_HPA_STRATEGY_MEMORY_INIT};
    td_hpa_history_init(&state->history);
}

void td_hpa_state_done(struct td_hpa_state *state)
{
    td_hpa_history_done(&state->history);
}

void td_hpa_state_copy(struct td_hpa_state *to, const struct td_hpa_state *from)
{
    const struct td_hpa_history *history = &from->history;
    to->strategy = from->strategy;
    for (size_t i = 0; i < history->recommendations.count; i++) {
        *td_vec_push(&to->history.recommendations) = history->recommendations.items[i];
    }
    for (size_t i = 0; i < history->ups.count; i++) {
        *td_vec_push(&to->history.ups) = history->ups.items[i];
    }
    for (size_t i = 0; i < history->downs.count; i++) {
        *td_vec_push(&to->history.downs) = history->downs.items[i];
    }
}

static td_str reference_of(const struct td_hpa_pass *pass)
{
    const struct td_hpa *hpa = pass->hpa;
    return td_arena_format(pass->arena, "%.*s/%.*s/%.*s", TD_STR_ARG(hpa->target.kind),
                           TD_STR_ARG(hpa->meta.namespace), TD_STR_ARG(hpa->target.name));
}

static bool has_total_metric(const struct td_hpa *hpa)
{
    for (size_t i = 0; i < hpa->metric_count; i++) {
        if (!td_hpa_metric_is_of_pods(&hpa->metrics[i])) {
            return true;
        }
    }
    return false;
}

static void fail_scale(struct td_hpa_pass *pass, td_time now)
{
    const struct td_hpa_scale *scale = &pass->scale;
    td_hpa_event_add(&pass->events, true, TD_STR("FailedGetScale"), scale->error);
    td_hpa_condition_set(
        &pass->status.conditions, now, TD_HPA_ABLE_TO_SCALE, false, TD_STR("FailedGetScale"),
        td_arena_format(pass->arena,
                        "the HPA controller was unable to get the target's current scale: %.*s",
                        TD_STR_ARG(scale->error)));
    pass->path = TD_HPA_PATH_FAILED;
    pass->is_failed = true;
    pass->has_error = true;
    pass->is_spec_fault = scale->fault == TD_HPA_SCALE_BAD_API_VERSION;
    if (scale->fault == TD_HPA_SCALE_BAD_API_VERSION) {
        pass->error =
            td_arena_format(pass->arena, "invalid API version in scale target reference: %.*s",
                            TD_STR_ARG(scale->error));
    } else if (scale->fault == TD_HPA_SCALE_NO_MAPPING) {
        pass->error = td_arena_format(
            pass->arena, "unable to determine resource for scale target reference: %.*s",
            TD_STR_ARG(scale->error));
    } else {
        pass->error =
            td_arena_format(pass->arena, "failed to query scale subresource for %.*s: %.*s",
                            TD_STR_ARG(reference_of(pass)), TD_STR_ARG(scale->error));
    }
}

/* A target at zero is left alone unless this controller took it there. */
static bool is_woken_from_zero(const struct td_hpa_pass *pass)
{
    return pass->was_scaled_to_zero &&
           (pass->hpa->min_replicas != 0 || has_total_metric(pass->hpa));
}

static void choose_path(struct td_hpa_pass *pass, td_time now)
{
    int32_t current = pass->scale.spec_replicas;
    if (current == 0 && !is_woken_from_zero(pass)) {
        pass->path = TD_HPA_PATH_DISABLED;
        td_hpa_condition_set(
            &pass->status.conditions, now, TD_HPA_SCALING_ACTIVE, false, TD_STR("ScalingDisabled"),
            TD_STR("scaling is disabled since the replica count of the target is zero"));
        if (!pass->config->can_scale_to_zero) {
            td_hpa_condition_remove(&pass->status.conditions, TD_HPA_SCALED_TO_ZERO);
        }
    } else if (current != 0 && current > pass->hpa->max_replicas) {
        pass->path = TD_HPA_PATH_ABOVE_MAX;
        pass->desired = pass->hpa->max_replicas;
        pass->rescale_reason = TD_STR("Current number of replicas above Spec.MaxReplicas");
        pass->wants_rescale = true;
    } else if (current != 0 && current < pass->hpa->min_replicas) {
        pass->path = TD_HPA_PATH_BELOW_MIN;
        pass->desired = pass->hpa->min_replicas;
        pass->rescale_reason = TD_STR("Current number of replicas below Spec.MinReplicas");
        pass->wants_rescale = true;
    } else {
        pass->path = TD_HPA_PATH_METRICS;
    }
}

static void begin_pass(struct td_hpa_pass *pass, struct td_arena *arena, const struct td_hpa *hpa,
                       const struct td_hpa_config *config, struct td_hpa_state *state,
                       const struct td_hpa_scale *scale, td_time now)
{
    *pass = (struct td_hpa_pass){
        .arena = arena,
        .hpa = hpa,
        .config = config,
        .state = state,
        .scale = *scale,
        .now = now,
        .events = {.arena = arena},
        .rescale_reason = TD_STR_EMPTY,
        .error = TD_STR_EMPTY,
        .late_event = TD_STR_EMPTY,
    };
    td_hpa_status_read(arena, hpa->status, &pass->status);
}

void td_hpa_begin(struct td_hpa_pass *pass, struct td_arena *arena, const struct td_hpa *hpa,
                  const struct td_hpa_config *config, struct td_hpa_state *state,
                  const struct td_hpa_scale *scale, td_time now)
{
    begin_pass(pass, arena, hpa, config, state, scale, now);
    if (scale->fault != TD_HPA_SCALE_OK) {
        fail_scale(pass, now);
        return;
    }
    td_hpa_condition_set(&pass->status.conditions, now, TD_HPA_ABLE_TO_SCALE, true,
                         TD_STR("SucceededGetScale"),
                         TD_STR("the HPA controller was able to get the target's current scale"));
    td_hpa_history_seed(&state->history, scale->spec_replicas, now);
    pass->was_scaled_to_zero =
        config->can_scale_to_zero &&
        td_hpa_condition_is_true(&pass->status.conditions, TD_HPA_SCALED_TO_ZERO);
    choose_path(pass, now);
}

void td_hpa_begin_aside(struct td_hpa_pass *pass, struct td_arena *arena, const struct td_hpa *hpa,
                        const struct td_hpa_config *config, struct td_hpa_state *state, td_time now)
{
    const struct td_hpa_scale scale = {.fault = TD_HPA_SCALE_NOT_READ,
                                       .error = TD_STR_EMPTY,
                                       .selector = TD_STR_EMPTY,
                                       .uid = TD_STR_EMPTY};
    begin_pass(pass, arena, hpa, config, state, &scale, now);
    pass->path = TD_HPA_PATH_FAILED;
    pass->is_failed = true;
}

void td_hpa_yield_target(struct td_hpa_pass *pass, td_str words)
{
    pass->scale.error = words;
    pass->has_error = true;
    pass->is_spec_fault = true;
    pass->error = words;
    td_hpa_condition_set(&pass->status.conditions, pass->now, TD_HPA_ABLE_TO_SCALE, false,
                         TD_STR("TargetConflict"), words);
    td_hpa_event_add(&pass->events, true, TD_STR("TargetConflict"), words);
}

void td_hpa_report_gates(struct td_hpa_pass *pass, td_str gated)
{
    struct td_hpa_conditions *conditions = &pass->status.conditions;
    bool is_reported = false;
    if (gated.len == 0) {
        td_hpa_condition_remove(conditions, TD_STR(TD_GATE_OFF));
        return;
    }
    for (size_t i = 0; i < conditions->count; i++) {
        is_reported =
            is_reported || (td_str_equal(conditions->items[i].type, TD_STR(TD_GATE_OFF)) &&
                            td_str_equal(conditions->items[i].message, gated));
    }
    if (!is_reported) {
        td_hpa_event_add(&pass->events, true, TD_STR(TD_GATE_OFF), gated);
    }
    td_hpa_condition_set(conditions, pass->now, TD_STR(TD_GATE_OFF), true, TD_STR("FieldIgnored"),
                         gated);
}

/* Rebuilds the status around the present counts; times and conditions stay. */
static void set_status(struct td_hpa_pass *pass, int32_t desired)
{
    pass->status.observed_generation = pass->hpa->meta.generation;
    pass->status.current_replicas = pass->scale.spec_replicas;
    pass->status.desired_replicas = desired;
    pass->status.current_metrics =
        pass->is_evaluated ? td_hpa_current_metrics_json(pass->arena, pass->hpa, &pass->evaluation)
                           : NULL;
}

static void fail_metrics(struct td_hpa_pass *pass, td_str error)
{
    pass->is_failed = true;
    pass->has_error = true;
    pass->late_event = error;
    pass->error = td_arena_format(
        pass->arena,
        "failed to compute desired number of replicas based on listed metrics for %.*s: %.*s",
        TD_STR_ARG(reference_of(pass)), TD_STR_ARG(error));
    set_status(pass, pass->status.desired_replicas);
}

static void fail_selector(struct td_hpa_pass *pass, td_str event_reason, td_str condition_reason,
                          td_str message, td_str error, td_time now)
{
    td_hpa_event_add(&pass->events, true, event_reason, error);
    td_hpa_condition_set(&pass->status.conditions, now, TD_HPA_SCALING_ACTIVE, false,
                         condition_reason, message);
    fail_metrics(pass, error);
}

bool td_hpa_select(struct td_hpa_pass *pass, td_time now)
{
    td_str text = pass->scale.selector;
    if (text.len == 0) {
        fail_selector(pass, TD_STR("SelectorRequired"), TD_STR("InvalidSelector"),
                      TD_STR("the HPA target's scale is missing a selector"),
                      TD_STR("selector is required"), now);
        return false;
    }
    struct td_error err = TD_ERROR_INIT;
    if (td_selector_parse(pass->arena, text, &pass->selector, &err) < 0) {
        td_str error = td_arena_format(
            pass->arena,
            "couldn't convert selector into a corresponding internal selector object: %s",
            err.message);
        fail_selector(pass, TD_STR("InvalidSelector"), TD_STR("InvalidSelector"), error, error,
                      now);
        return false;
    }
    return true;
}

/* The HPAs, this one among them, that count the same pods. Where ambiguity follows owners, an HPA
 * that counts what its target owns shares its pods with those of the same target only, whatever the
 * labels say; one that counts by labels shares them with those that really count one of them. */
static size_t find_rivals(const struct td_hpa_pass *pass, struct td_hpa_tracker *tracker,
                          const struct td_hpa_matched *matched, td_str ret[TD_HPA_AMBIGUOUS_MAX])
{
    const struct td_meta *meta = &pass->hpa->meta;
    bool is_scoped = pass->config->is_ambiguity_owner_scoped;
    bool is_owned_only = is_scoped && pass->strategy == TD_HPA_STRATEGY_OWNERS;
    /* It was parsed before, so only its copy's arena can refuse it; then it selects nothing. */
    (void)td_hpa_tracker_put(tracker, meta->namespace, meta->name, pass->scale.selector, NULL);
    td_hpa_tracker_put_target(tracker, meta->namespace, meta->name, &pass->hpa->target);
    td_hpa_tracker_put_owned_only(tracker, meta->namespace, meta->name, is_owned_only);
    if (is_owned_only) {
        return td_hpa_tracker_find_target(tracker, meta->namespace, &pass->hpa->target, ret);
    }
    return td_hpa_tracker_find(tracker, is_scoped ? matched->source : NULL, meta->namespace,
                               matched->pods, matched->count, ret);
}

bool td_hpa_select_alone(struct td_hpa_pass *pass, struct td_hpa_tracker *tracker,
                         const struct td_hpa_matched *matched, td_time now)
{
    td_str names[TD_HPA_AMBIGUOUS_MAX];
    size_t count = find_rivals(pass, tracker, matched, names);
    if (count < 2) {
        return true;
    }
    td_str list = TD_STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        list = td_arena_format(pass->arena, "%.*s%s%.*s", TD_STR_ARG(list), i > 0 ? " " : "",
                               TD_STR_ARG(names[i]));
    }
    td_str error = td_arena_format(pass->arena,
                                   "pods by selector %.*s are controlled by multiple HPAs: [%.*s]",
                                   TD_STR_ARG(pass->scale.selector), TD_STR_ARG(list));
    fail_selector(pass, TD_STR("AmbiguousSelector"), TD_STR("AmbiguousSelector"), error, error,
                  now);
    return false;
}

/* Why the count changes. Without a behavior an earlier proposal, cut by the limit on growth at its
 * time, goes on acting for the whole window; upstream then grows the target with no reason at all,
 * or with that for shrinking. */
static td_str reason_of(const struct td_hpa_pass *pass)
{
    int32_t current = pass->scale.spec_replicas;
    int32_t stabilized = pass->normalized.stabilized.replicas;
    if (pass->proposed > current) {
        return td_arena_format(pass->arena, "%.*s above target",
                               TD_STR_ARG(pass->evaluation.metric));
    }
    if (pass->config->names_earlier_proposals && pass->desired > current && stabilized > current) {
        return td_arena_format(
            pass->arena, "%d replicas were proposed within the stabilization window", stabilized);
    }
    return pass->proposed < current ? TD_STR("All metrics below target") : TD_STR_EMPTY;
}

/* "3 → 5 replicas: cpu 86 % of 60 %" */
static td_str decision_words(const struct td_hpa_pass *pass)
{
    const struct td_hpa_evaluation *evaluation = &pass->evaluation;
    td_str why = pass->rescale_reason;
    if (pass->is_evaluated && evaluation->winner < evaluation->result_count) {
        const struct td_hpa_metric *metric = &pass->hpa->metrics[evaluation->winner];
        const struct td_hpa_calculation *sum = &evaluation->results[evaluation->winner].calculation;
        td_str name = metric->name.len > 0 ? metric->name : evaluation->metric;
        why = sum->has_utilization
                  ? td_arena_format(pass->arena, "%.*s %lld %% of %lld %%", TD_STR_ARG(name),
                                    (long long)sum->utilization, (long long)sum->target_milli)
                  : td_arena_format(
                        pass->arena, "%.*s %.*s of %.*s", TD_STR_ARG(name),
                        TD_STR_ARG(td_hpa_metric_amount(pass->arena, metric, sum->usage_milli)),
                        TD_STR_ARG(td_hpa_metric_amount(pass->arena, metric, sum->target_milli)));
    }
    return td_arena_format(pass->arena, "%d → %d replica%s%s%.*s", pass->scale.spec_replicas,
                           pass->desired, TD_PLURAL(pass->desired), why.len > 0 ? ": " : "",
                           TD_STR_ARG(why));
}

/* From the metrics' proposal to the count to set. */
static void normalize(struct td_hpa_pass *pass, td_time now)
{
    int32_t current = pass->scale.spec_replicas;
    pass->proposed = pass->evaluation.replicas > 0 ? pass->evaluation.replicas : 0;
    struct td_hpa_normalization in = {
        .hpa = pass->hpa,
        .now = now,
        .current = current,
        .proposed = pass->proposed,
        .downscale_stabilization = pass->config->downscale_stabilization,
    };
    pass->normalized = td_hpa_normalize(&pass->state->history, &in);
    pass->is_normalized = true;
    td_hpa_conditions_normalized(&pass->status.conditions, &pass->normalized, now);
    pass->desired = pass->normalized.replicas;
    pass->rescale_reason = reason_of(pass);
    int32_t min = pass->hpa->min_replicas;
    if (current == 0 && min != 0 && pass->was_scaled_to_zero && pass->desired < min) {
        pass->desired = min;
        if (pass->rescale_reason.len == 0) {
            pass->rescale_reason = TD_STR("Current number of replicas below Spec.MinReplicas");
        }
    }
    pass->wants_rescale = pass->desired != current;
}

void td_hpa_decide(struct td_hpa_pass *pass, const struct td_hpa_answer *answers, td_time now)
{
    struct td_hpa_evaluation_input in = {
        .hpa = pass->hpa,
        .config = pass->config,
        .now = now,
        .spec_replicas = pass->scale.spec_replicas,
        .status_replicas = pass->scale.status_replicas,
        .answers = answers,
    };
    pass->now = now;
    pass->evaluation = td_hpa_evaluate(pass->arena, &in, &pass->status.conditions, &pass->events);
    pass->is_evaluated = true;
    pass->is_spec_fault = pass->evaluation.is_spec_fault;
    if (pass->evaluation.replicas < 0 && pass->evaluation.winner == SIZE_MAX) {
        fail_metrics(pass, pass->evaluation.is_failed ? pass->evaluation.error
                                                      : TD_STR("the HPA has no metrics"));
        return;
    }
    if (pass->evaluation.is_failed) {
        pass->has_error = true;
        pass->error = pass->evaluation.error;
    }
    normalize(pass, now);
}

static void set_scaled_to_zero(struct td_hpa_pass *pass, td_time now)
{
    struct td_hpa_conditions *conditions = &pass->status.conditions;
    if (!pass->config->can_scale_to_zero) {
        td_hpa_condition_remove(conditions, TD_HPA_SCALED_TO_ZERO);
    } else if (pass->scale.spec_replicas > 0 && pass->desired == 0 &&
               pass->hpa->min_replicas == 0 && has_total_metric(pass->hpa)) {
        td_hpa_condition_set(conditions, now, TD_HPA_SCALED_TO_ZERO, true, TD_STR("ScaledToZero"),
                             TD_STR("the HPA controller scaled the workload to zero"));
    } else {
        td_hpa_condition_set(conditions, now, TD_HPA_SCALED_TO_ZERO, false,
                             TD_STR("NotScaledToZero"),
                             TD_STR("the HPA controller did not scale the workload to zero"));
    }
}

void td_hpa_rescaled(struct td_hpa_pass *pass, bool is_done, td_str error, td_time now)
{
    struct td_hpa_conditions *conditions = &pass->status.conditions;
    if (!is_done) {
        td_hpa_event_add(&pass->events, true, TD_STR("FailedRescale"),
                         td_arena_format(pass->arena, "New size: %d; reason: %.*s; error: %.*s",
                                         pass->desired, TD_STR_ARG(pass->rescale_reason),
                                         TD_STR_ARG(error)));
        td_hpa_condition_set(
            conditions, now, TD_HPA_ABLE_TO_SCALE, false, TD_STR("FailedUpdateScale"),
            td_arena_format(pass->arena,
                            "the HPA controller was unable to update the target scale: %.*s",
                            TD_STR_ARG(error)));
        pass->is_failed = true;
        pass->has_error = true;
        pass->is_spec_fault = false;
        pass->error = td_arena_format(pass->arena, "failed to rescale %.*s: %.*s",
                                      TD_STR_ARG(reference_of(pass)), TD_STR_ARG(error));
        set_status(pass, pass->status.desired_replicas);
        return;
    }
    td_hpa_condition_set(
        conditions, now, TD_HPA_ABLE_TO_SCALE, true, TD_STR("SucceededRescale"),
        td_arena_format(pass->arena, "the HPA controller was able to update the target scale to %d",
                        pass->desired));
    td_hpa_event_add(&pass->events, false, TD_STR("SuccessfulRescale"),
                     td_arena_format(pass->arena, "New size: %d; reason: %.*s", pass->desired,
                                     TD_STR_ARG(pass->rescale_reason)));
    pass->events.items[pass->events.count - 1].decision = decision_words(pass);
    td_hpa_history_store(&pass->state->history, pass->hpa, pass->scale.spec_replicas, pass->desired,
                         now);
    set_scaled_to_zero(pass, now);
    pass->is_rescaled = true;
}

void td_hpa_finish(struct td_hpa_pass *pass, td_time now)
{
    if (!pass->is_failed) {
        if (!pass->is_rescaled) {
            pass->desired = pass->scale.spec_replicas;
        } else {
            pass->status.has_last_scale_time = true;
            pass->status.last_scale_time = td_time_to_instant(now);
        }
        set_status(pass, pass->desired);
    }
    pass->updated = td_hpa_status_json(pass->arena, &pass->status);
    pass->needs_write = td_hpa_status_differs(pass->hpa->status, pass->updated);
}

void td_hpa_end(struct td_hpa_pass *pass, bool is_written, td_str error)
{
    if (pass->needs_write && !is_written) {
        td_hpa_event_add(&pass->events, true, TD_STR("FailedUpdateStatus"), error);
        if (!pass->is_failed) {
            pass->has_error = true;
            pass->is_spec_fault = false;
            pass->error = td_arena_format(pass->arena, "failed to update status for %.*s: %.*s",
                                          TD_STR_ARG(pass->hpa->meta.name), TD_STR_ARG(error));
        }
    }
    if (pass->late_event.len > 0) {
        td_hpa_event_add(&pass->events, true, TD_STR("FailedComputeMetricsReplicas"),
                         pass->late_event);
    }
}
