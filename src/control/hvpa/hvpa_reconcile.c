/*
 * One reconcile of one Hvpa: the object, who else is on its target, both verdicts of one instant,
 * the decision, and then its status and what follows from it.
 */
#include <string.h>

#include "api/gates.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "control/hvpa/hvpa_private.h"
#include "kube/client/events.h"

/* ---- Its life ---- */

struct hvpa_reconcile *hvpa_reconcile_new(struct hvpa_item *item)
{
    struct hvpa_reconcile *run = td_alloc_zero(1, sizeof(*run));
    run->loop = item->loop;
    run->item = item;
    run->now = hvpa_now(item->loop);
    run->instant = td_time_to_instant(run->now);
    run->instant.nanos = 0;
    run->seen.selector = TD_STR_EMPTY;
    run->seen.horizontal_reason = TD_STR_EMPTY;
    run->seen.vertical_reason = TD_STR_EMPTY;
    run->seen.limited_reason = TD_STR_EMPTY;
    run->seen.limited_message = TD_STR_EMPTY;
    run->doing.failure = TD_STR_EMPTY;
    run->decided.gated = TD_STR_EMPTY;
    td_arena_init(&run->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&run->doing.refused, TD_CACHE_OBJECTS_MAX);
    td_map_init(&run->doing.resizes_sent, TD_CACHE_OBJECTS_MAX);
    td_replacement_facts_init(&run->doing.facts);
    item->reconcile = run;
    item->loop->reconcile_count++;
    item->loop->reading_count++;
    run->is_counted = true;
    return run;
}

static void reconcile_has_read(struct hvpa_reconcile *run)
{
    if (run->is_counted) {
        run->is_counted = false;
        run->loop->reading_count--;
    }
}

void hvpa_reconcile_free(struct hvpa_reconcile *run)
{
    reconcile_has_read(run);
    td_client_cancel(run->call);
    td_horizontal_cancel(run->sync);
    td_timer_free(run->pause);
    td_map_done(&run->doing.refused);
    td_map_done(&run->doing.resizes_sent);
    td_replacement_facts_done(&run->doing.facts);
    td_arena_done(&run->arena);
    run->item->reconcile = NULL;
    run->loop->reconcile_count--;
    td_free(run);
}

void hvpa_reconcile_end(struct hvpa_reconcile *run)
{
    struct hvpa_item *item = run->item;
    item->last_reconcile = run->now;
    hvpa_reconcile_free(run);
    hvpa_item_done(item);
}

static void reconcile_record(const struct hvpa_reconcile *run, const struct td_event *reported)
{
    struct td_event event = *reported;
    event.api_version = TD_STR(TD_HVPA_API_VERSION);
    event.kind = TD_STR("Hvpa");
    event.namespace = run->item->namespace;
    event.name = run->item->name;
    event.uid = run->hvpa.meta.uid;
    if (run->loop->options.control.events) {
        td_events_record(run->loop->options.control.events, &event);
    }
}

void hvpa_reconcile_event(const struct hvpa_reconcile *run, bool is_warning, td_str reason,
                          td_str message)
{
    reconcile_record(
        run, &(struct td_event){.is_warning = is_warning, .reason = reason, .message = message});
}

void hvpa_reconcile_decided(struct hvpa_reconcile *run, td_str reason, td_str message)
{
    td_str words =
        td_tandem_decision_text(&run->arena, &run->decided.input, &run->decided.decision);
    reconcile_record(run,
                     &(struct td_event){.reason = reason, .message = message, .decision = words});
}

/* ---- Problems: nothing is decided ---- */

static void reconcile_problem_written(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    if (reply->code != TD_OK) {
        run->item->written = 0;
    }
    hvpa_reconcile_end(run);
}

/* What was decided, or why nothing was, is told; nothing is done. */
static void reconcile_tell(struct hvpa_reconcile *run, td_str reason, td_str message)
{
    bool is_decided = reason.len == 0;
    run->explain(run->explain_context, &(struct td_hvpa_reported){
                                           .code = is_decided ? TD_OK : TD_INVALID,
                                           .reason = reason,
                                           .message = message,
                                           .hvpa = &run->hvpa,
                                           .input = is_decided ? &run->decided.input : NULL,
                                           .decision = is_decided ? &run->decided.decision : NULL,
                                           .status = is_decided ? &run->decided.status : NULL,
                                       });
    hvpa_reconcile_end(run);
}

/* An event once for each problem; the status says so for as long as it lasts. */
static void reconcile_problem(struct hvpa_reconcile *run, td_str reason, td_str message)
{
    if (run->explain) {
        reconcile_tell(run, reason, message);
        return;
    }
    td_str words =
        td_arena_format(&run->arena, "%.*s: %.*s", TD_STR_ARG(reason), TD_STR_ARG(message));
    uint64_t reported = td_map_hash(words);
    bool is_reported = run->item->reported == 0 /* by the process before */
                           ? hvpa_status_has_problem(run, reason, message)
                           : run->item->reported == reported &&
                                 run->item->reported_generation == run->hvpa.meta.generation;
    if (!is_reported) {
        hvpa_reconcile_event(run, true, reason, message);
    }
    run->item->reported = reported;
    run->item->reported_generation = run->hvpa.meta.generation;
    hvpa_status_problem(run, reason, message);
    if (!hvpa_status_send(run, reconcile_problem_written)) {
        hvpa_reconcile_end(run);
    }
}

static void reconcile_back_off(struct hvpa_reconcile *run)
{
    td_duration pause = td_backoff_next(&run->item->backoff);
    td_duration period = run->loop->options.sync_period;
    run->item->due = run->now + (pause > period ? pause : period);
}

/* ---- The decision ---- */

static struct td_tandem_time reconcile_time(bool is_set, struct td_instant at)
{
    return (struct td_tandem_time){.is_set = is_set, .at = at};
}

static void reconcile_plan(struct hvpa_reconcile *run)
{
    run->decided.plan = td_tandem_plan_of(&run->hvpa, &run->decided.input, &run->decided.decision);
    bool is_held = td_tandem_holds_scale(&run->decided.progress, &run->decided.input,
                                         &run->decided.decision, run->seen.is_unready);
    for (size_t i = 0; i < run->decided.plan.count; i++) {
        if (run->decided.plan.steps[i] == TD_TANDEM_STEP_WAIT_READY) {
            break; /* what comes after it is decided anew when they are ready */
        }
        run->decided.is_scaled = run->decided.is_scaled ||
                                 (run->decided.plan.steps[i] == TD_TANDEM_STEP_SCALE && !is_held);
    }
}

static void reconcile_tell_maximum(struct hvpa_reconcile *run)
{
    for (size_t i = 0; i < run->decided.row_count; i++) {
        const struct td_hvpa_status *before = &run->hvpa.status;
        bool is_known = false;
        for (size_t j = 0; j < before->emergency_count; j++) {
            is_known = is_known ||
                       td_str_equal(before->emergency[j].container, run->decided.rows[i].container);
        }
        if (run->decided.outcomes[i].is_at_max_allowed && !is_known) {
            hvpa_reconcile_event(
                run, true, TD_STR("MemoryAtMaxAllowed"),
                td_arena_format(&run->arena,
                                "container '%.*s' was OOM-killed at maxAllowed; raise "
                                "vpaSpec.resourcePolicy.containerPolicies[].maxAllowed",
                                TD_STR_ARG(run->decided.rows[i].container)));
        }
    }
}

static void reconcile_status_written(void *context, const struct td_client_reply *reply)
{
    struct hvpa_reconcile *run = context;
    run->call = NULL;
    if (reply->code == TD_OK) {
        hvpa_actuate(run);
        return;
    }
    /* Without it a restart would not know what was decided: nothing is done. */
    run->item->written = 0;
    td_log_line(run->loop->options.control.log, TD_LOG_WARN, "cannot update the Hvpa's status",
                TD_LOG_S("hvpa", run->item->key), TD_LOG_C("error", reply->err.message));
    hvpa_reconcile_end(run);
}

static void reconcile_decide(struct hvpa_reconcile *run, const struct td_horizontal_result *result)
{
    const struct td_hvpa_status *before = &run->hvpa.status;
    struct td_tandem_input *in = &run->decided.input;
    in->hvpa = &run->hvpa;
    in->now = td_time_to_instant(run->now);
    hvpa_input_vertical(run);
    hvpa_input_progress(run);
    hvpa_input_build(run, result);
    in->last_horizontal = reconcile_time(before->has_horizontal_time, before->horizontal_time);
    in->last_vertical = reconcile_time(before->has_vertical_time, before->vertical_time);
    /* Who only asks has just begun to see; who acts has probably seen it from its beginning. */
    in->first_seen = reconcile_time(true, run->explain ? run->hvpa.meta.created
                                                       : td_time_to_instant(run->item->first_seen));
    in->below_thresholds_since =
        reconcile_time(before->decision.is_set && before->decision.has_below_thresholds_since,
                       before->decision.below_thresholds_since);
    td_tandem_decide(in, run->decided.outcomes, &run->decided.decision);
    hvpa_input_keep(run);
    reconcile_plan(run);
    if (run->explain) {
        hvpa_status_fill(run);
        reconcile_tell(run, TD_STR_EMPTY, TD_STR_EMPTY);
        return;
    }
    hvpa_children(run);
    hvpa_status_fill(run);
    hvpa_metrics_record(run);
    reconcile_tell_maximum(run);
    if (run->decided.is_resized && !run->hvpa.paused) {
        hvpa_reconcile_decided(
            run,
            run->decided.decision.is_emergency ? TD_STR("EmergencyMemoryIncrease")
                                               : TD_STR("VerticalScaled"),
            td_tandem_resized_text(&run->arena, &run->decided.input, &run->decided.decision));
    }
    if (!hvpa_status_send(run, reconcile_status_written)) {
        hvpa_actuate(run);
    }
}

/* ---- The verdicts ---- */

static void reconcile_horizontal(struct hvpa_reconcile *run, const struct td_hpa_pass *pass)
{
    struct td_tandem_input *in = &run->decided.input;
    in->replicas = pass->scale.spec_replicas;
    in->is_horizontal_valid = false;
    if (!td_hvpa_scales_horizontally(&run->hvpa)) {
        run->seen.horizontal_reason = TD_STR("the Hvpa has no hpaSpec");
        return;
    }
    if (run->hvpa.sources == TD_HVPA_OBJECTS) {
        in->is_horizontal_valid = hvpa_children_desired(run, &in->desired_replicas);
        run->seen.horizontal_reason = in->is_horizontal_valid
                                          ? TD_STR("desiredReplicas of the child HPA")
                                          : TD_STR("the child HPA is not active");
        return;
    }
    struct td_tandem_horizontal verdict = td_tandem_horizontal_of(&run->arena, pass);
    in->is_horizontal_valid = verdict.is_valid;
    in->desired_replicas = verdict.desired;
    run->seen.horizontal_reason = verdict.reason;
    const struct td_hpa_limited *limited = &pass->normalized.limited;
    if (verdict.is_valid && pass->is_normalized && limited->is_limited) {
        run->seen.is_limited = true;
        run->seen.limited_reason = td_arena_copy_str(&run->arena, limited->reason);
        run->seen.limited_message = td_arena_copy_str(&run->arena, limited->message);
    }
}

static void reconcile_missing(struct hvpa_reconcile *run, td_str error)
{
    reconcile_back_off(run);
    bool is_denied = !memmem(error.ptr, error.len, "not found", strlen("not found")) &&
                     !memmem(error.ptr, error.len, "no matches", strlen("no matches"));
    reconcile_problem(run, is_denied ? TD_STR("TargetUnreadable") : TD_STR("TargetNotFound"),
                      error);
}

static void reconcile_result(void *context, const struct td_horizontal_result *result)
{
    struct hvpa_reconcile *run = context;
    struct td_arena *arena = &run->arena;
    const struct td_hpa_pass *pass = result->pass;
    run->sync = NULL;
    reconcile_has_read(run);
    if (!result->scale) {
        reconcile_missing(run, td_arena_copy_str(arena, pass->scale.error));
        return;
    }
    if (run->item->failure.len == 0) {
        td_backoff_reset(&run->item->backoff);
    }
    run->seen.scale = td_json_copy(arena, result->scale, true);
    run->seen.selector = td_arena_copy_str(arena, pass->scale.selector);
    run->seen.resource = (struct td_served_resource){
        .group = td_arena_copy_str(arena, result->resource->group),
        .version = td_arena_copy_str(arena, result->resource->version),
        .plural = td_arena_copy_str(arena, result->resource->plural),
        .is_namespaced = result->resource->is_namespaced,
    };
    td_str *names = td_arena_array(arena, td_str, result->pod_count + 1);
    for (size_t i = 0; i < result->pod_count; i++) {
        names[i] = td_arena_copy_str(arena, result->pods[i]->meta.name);
    }
    hvpa_view_pods(run, names, result->pod_count);
    reconcile_horizontal(run, pass);
    reconcile_decide(run, result);
}

static void reconcile_daemons(struct hvpa_reconcile *run)
{
    const struct td_object_reference *target = &run->hvpa.target;
    if (!hvpa_view_daemons(run, &run->decided.input.replicas)) {
        reconcile_missing(run, td_arena_format(&run->arena, "%.*s \"%.*s\" not found",
                                               TD_STR_ARG(target->kind), TD_STR_ARG(target->name)));
        return;
    }
    td_backoff_reset(&run->item->backoff);
    run->seen.horizontal_reason = TD_STR("a DaemonSet is not scaled horizontally");
    reconcile_decide(run, NULL);
}

/* ---- The object ---- */

/* The status of the reconcile before, be it of another process. */
static void reconcile_recall(struct hvpa_reconcile *run)
{
    struct td_json *tree;
    struct td_hvpa_status status;
    td_str text = td_arena_copy_str(&run->arena, run->item->status);
    run->hvpa.status = (struct td_hvpa_status){.mode = TD_STR_EMPTY,
                                               .target_selector = TD_STR_EMPTY,
                                               .horizontal_reason = TD_STR_EMPTY,
                                               .vertical_reason = TD_STR_EMPTY};
    if (text.len > 0 && td_json_parse(&run->arena, text, NULL, &tree, NULL) == TD_OK &&
        td_hvpa_status_decode(&run->arena, tree, &status, NULL) == TD_OK) {
        run->hvpa.status = status;
    }
}

static void reconcile_begin(struct hvpa_reconcile *run)
{
    td_str conflict = hvpa_targets_conflict(run);
    if (conflict.len > 0) {
        reconcile_problem(run, TD_STR("TargetConflict"), conflict);
        return;
    }
    hvpa_view_template(run);
    hvpa_input_recall(run);
    if (td_workload_kind_of(run->hvpa.target.kind) == TD_WORKLOAD_DAEMON_SET) {
        reconcile_daemons(run);
        return;
    }
    hvpa_view_hpa(run);
    const struct td_horizontal_input question = {
        .hpa = &run->hpa,
        .state = &run->item->horizontal,
        .config = &run->loop->options.horizontal,
    };
    run->sync = td_horizontal_ask(run->loop->horizontal, &question, reconcile_result, run);
}

/* With the gate of the kind off nothing is decided; fields whose gate is off are left out. */
static void reconcile_close_gates(struct hvpa_reconcile *run)
{
    const struct td_control *control = &run->loop->options.control;
    const struct td_hpa_strategy_options strategy = {.is_gate_on =
                                                         control->selection_strategy_gate};
    const struct td_hpa_gates gates = td_hpa_gates_of(&run->loop->options.horizontal, &strategy);
    if (!control->hvpa_gate) {
        reconcile_problem(
            run, TD_STR(TD_GATE_OFF),
            TD_STR("the feature gate Hvpa is off: the controller neither decides nor scales"));
        return;
    }
    run->decided.gated = td_hvpa_close_gates(&run->arena, &control->gates, &gates,
                                             TD_HPA_STRATEGY_ANNOTATION, &run->hvpa);
    reconcile_begin(run);
}

void hvpa_reconcile_start(struct hvpa_item *item, const struct td_informer_object *object,
                          td_hvpa_explain_fn explain, void *context)
{
    struct hvpa_reconcile *run = hvpa_reconcile_new(item);
    struct td_hvpa_findings findings = {.is_target_mismatch = false};
    struct td_error err = TD_ERROR_INIT;
    struct td_json *tree = NULL;
    run->explain = explain;
    run->explain_context = context;
    item->due = run->now + run->loop->options.sync_period;
    int code = td_informers_tree(&run->arena, object, &tree, &err);
    if (code == TD_OK) {
        td_json_set_str(&run->arena, tree, TD_STR("apiVersion"), TD_STR(TD_HVPA_API_VERSION));
        td_json_set_str(&run->arena, tree, TD_STR("kind"), TD_STR("Hvpa"));
        code = td_hvpa_decode(&run->arena, tree, &run->hvpa, &findings, &err);
    }
    if (code == TD_OK) {
        reconcile_recall(run);
        reconcile_close_gates(run);
        return;
    }
    run->hvpa = (struct td_hvpa){.tree = tree};
    if (!tree || td_meta_decode(&run->arena, tree, &run->hvpa.meta, NULL) != TD_OK) {
        run->explain ? reconcile_tell(run, TD_STR("InvalidSpec"), TD_STR("cannot decode the Hvpa"))
                     : hvpa_reconcile_end(run);
        return;
    }
    reconcile_recall(run);
    reconcile_problem(
        run, findings.is_target_mismatch ? TD_STR("TargetMismatch") : TD_STR("InvalidSpec"),
        td_arena_copy_str(&run->arena, td_str_from(err.message)));
}
