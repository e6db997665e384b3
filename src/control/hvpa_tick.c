/*
 * One tick of one Hvpa: the object, who else is on its target, both verdicts of one instant, the
 * decision, and then its status and what follows from it.
 */
#include <string.h>

#include "api/gates.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "control/hvpa/hvpa_private.h"
#include "kube/client/events.h"

/* ---- Its life ---- */

static struct hvpa_tick *tick_new(struct hvpa_item *item)
{
    struct hvpa_tick *tick = td_alloc_zero(1, sizeof(*tick));
    tick->loop = item->loop;
    tick->item = item;
    tick->now = hvpa_now(item->loop);
    tick->instant = td_time_to_instant(tick->now);
    tick->instant.nanos = 0;
    tick->selector = TD_STR_EMPTY;
    tick->horizontal_reason = TD_STR_EMPTY;
    tick->vertical_reason = TD_STR_EMPTY;
    tick->limited_reason = TD_STR_EMPTY;
    tick->limited_message = TD_STR_EMPTY;
    tick->failure = TD_STR_EMPTY;
    tick->gated = TD_STR_EMPTY;
    td_arena_init(&tick->arena, TD_TREE_ARENA_BYTES_MAX);
    td_map_init(&tick->refused, TD_CACHE_OBJECTS_MAX);
    td_map_init(&tick->asked, TD_CACHE_OBJECTS_MAX);
    td_replacement_facts_init(&tick->facts);
    item->tick = tick;
    item->loop->tick_count++;
    item->loop->reading_count++;
    tick->is_counted = true;
    return tick;
}

static void tick_has_read(struct hvpa_tick *tick)
{
    if (tick->is_counted) {
        tick->is_counted = false;
        tick->loop->reading_count--;
    }
}

void hvpa_tick_free(struct hvpa_tick *tick)
{
    tick_has_read(tick);
    if (tick->call) {
        td_client_cancel(tick->call);
    }
    td_horizontal_cancel(tick->sync);
    td_timer_free(tick->pause);
    td_map_done(&tick->refused);
    td_map_done(&tick->asked);
    td_replacement_facts_done(&tick->facts);
    td_arena_done(&tick->arena);
    tick->item->tick = NULL;
    tick->loop->tick_count--;
    td_free(tick);
}

void hvpa_tick_end(struct hvpa_tick *tick)
{
    struct hvpa_item *item = tick->item;
    item->last_tick = tick->now;
    hvpa_tick_free(tick);
    hvpa_item_done(item);
}

void hvpa_tick_event(const struct hvpa_tick *tick, bool is_warning, td_str reason, td_str message)
{
    struct td_events *events = tick->loop->options.control.events;
    if (!events) {
        return;
    }
    td_events_record(events, &(struct td_event){
                                 .api_version = TD_STR(TD_HVPA_API_VERSION),
                                 .kind = TD_STR("Hvpa"),
                                 .namespace = tick->item->namespace,
                                 .name = tick->item->name,
                                 .uid = tick->hvpa.meta.uid,
                                 .is_warning = is_warning,
                                 .reason = reason,
                                 .message = message,
                             });
}

/* ---- Trouble: nothing is decided ---- */

static void tick_trouble_written(void *context, const struct td_client_reply *reply)
{
    struct hvpa_tick *tick = context;
    tick->call = NULL;
    if (reply->code != TD_OK) {
        tick->item->written = 0;
    }
    hvpa_tick_end(tick);
}

/* What was decided, or why nothing was, is told; nothing is done. */
static void tick_tell(struct hvpa_tick *tick, td_str reason, td_str message)
{
    bool is_decided = reason.len == 0;
    tick->explain(tick->explain_context, &(struct td_hvpa_told){
                                             .code = is_decided ? TD_OK : TD_INVALID,
                                             .reason = reason,
                                             .message = message,
                                             .hvpa = &tick->hvpa,
                                             .input = is_decided ? &tick->input : NULL,
                                             .decision = is_decided ? &tick->decision : NULL,
                                             .status = is_decided ? &tick->status : NULL,
                                         });
    hvpa_tick_end(tick);
}

/* An event once for each trouble; the status says so for as long as it lasts. */
static void tick_trouble(struct hvpa_tick *tick, td_str reason, td_str message)
{
    if (tick->explain) {
        tick_tell(tick, reason, message);
        return;
    }
    td_str words =
        td_arena_format(&tick->arena, "%.*s: %.*s", TD_STR_ARG(reason), TD_STR_ARG(message));
    uint64_t told = td_map_hash(words);
    bool is_told =
        tick->item->told == 0 /* by the process before */
            ? hvpa_status_has_trouble(tick, reason, message)
            : tick->item->told == told && tick->item->told_generation == tick->hvpa.meta.generation;
    if (!is_told) {
        hvpa_tick_event(tick, true, reason, message);
    }
    tick->item->told = told;
    tick->item->told_generation = tick->hvpa.meta.generation;
    hvpa_status_trouble(tick, reason, message);
    if (!hvpa_status_send(tick, tick_trouble_written)) {
        hvpa_tick_end(tick);
    }
}

static void tick_back_off(struct hvpa_tick *tick)
{
    td_duration pause = td_backoff_next(&tick->item->backoff);
    td_duration period = tick->loop->options.sync_period;
    tick->item->due = tick->now + (pause > period ? pause : period);
}

/* ---- The decision ---- */

static struct td_tandem_time tick_time(bool is_set, struct td_instant at)
{
    return (struct td_tandem_time){.is_set = is_set, .at = at};
}

/* Fewer pods wait until the larger ones are there and ready (5.4). */
static bool tick_holds_scale(const struct hvpa_tick *tick)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    bool is_recent =
        status->has_vertical_time &&
        !td_tandem_has_passed(status->vertical_time, tick->instant, HVPA_GIVE_UP / TD_SECOND);
    bool is_waiting = (tick->is_progressing && tick->is_growing) || (is_recent && tick->is_unready);
    return tick->decision.replicas < tick->input.replicas && is_waiting;
}

static void tick_plan(struct hvpa_tick *tick)
{
    tick->plan = td_tandem_plan_of(&tick->hvpa, &tick->input, &tick->decision);
    bool is_held = tick_holds_scale(tick);
    for (size_t i = 0; i < tick->plan.count; i++) {
        if (tick->plan.steps[i] == TD_TANDEM_STEP_WAIT_READY) {
            break; /* what comes after it is decided anew when they are ready */
        }
        tick->is_scaled =
            tick->is_scaled || (tick->plan.steps[i] == TD_TANDEM_STEP_SCALE && !is_held);
    }
}

static void tick_tell_vertical(struct hvpa_tick *tick)
{
    td_auto_buf text;
    td_buf_init(&text, TD_EVENT_MESSAGE_BYTES_MAX);
    for (size_t i = 0; i < tick->row_count; i++) {
        const struct td_tandem_row *row = &tick->rows[i];
        struct td_quantity from = hvpa_quantity(row->resource, row->request);
        struct td_quantity to = hvpa_quantity(row->resource, tick->outcomes[i].request);
        if (tick->outcomes[i].request == row->request) {
            continue;
        }
        td_str old = td_quantity_text(&tick->arena, &from);
        td_str new = td_quantity_text(&tick->arena, &to);
        (void)td_buf_append_format(
            &text, "%s%.*s %.*s %.*s -> %.*s", text.len > 0 ? ", " : "", TD_STR_ARG(row->container),
            TD_STR_ARG(td_hvpa_resource_name(row->resource)), TD_STR_ARG(old), TD_STR_ARG(new));
    }
    td_str message = td_arena_format(
        &tick->arena, "%.*s; %.*s, %.*s%s%.*s", TD_STR_ARG(td_buf_str(&text)),
        TD_STR_ARG(td_tandem_reason_name(tick->decision.reason)),
        TD_STR_ARG(td_hvpa_mode_name(tick->hvpa.mode)), tick->decision.blend.has_stage ? ", " : "",
        TD_STR_ARG(tick->status.decision.stage));
    hvpa_tick_event(tick, false,
                    tick->decision.is_emergency ? TD_STR("EmergencyMemoryIncrease")
                                                : TD_STR("VerticalScaled"),
                    message);
}

static void tick_tell_maximum(struct hvpa_tick *tick)
{
    for (size_t i = 0; i < tick->row_count; i++) {
        const struct td_hvpa_status *before = &tick->hvpa.status;
        bool is_known = false;
        for (size_t j = 0; j < before->emergency_count; j++) {
            is_known =
                is_known || td_str_equal(before->emergency[j].container, tick->rows[i].container);
        }
        if (tick->outcomes[i].is_at_max_allowed && !is_known) {
            hvpa_tick_event(tick, true, TD_STR("MemoryAtMaxAllowed"),
                            td_arena_format(&tick->arena,
                                            "container '%.*s' was OOM-killed at maxAllowed; raise "
                                            "vpaSpec.resourcePolicy.containerPolicies[].maxAllowed",
                                            TD_STR_ARG(tick->rows[i].container)));
        }
    }
}

static void tick_status_written(void *context, const struct td_client_reply *reply)
{
    struct hvpa_tick *tick = context;
    tick->call = NULL;
    if (reply->code == TD_OK) {
        hvpa_carry(tick);
        return;
    }
    /* Without it a restart would not know what was decided: nothing is done. */
    tick->item->written = 0;
    td_log_line(tick->loop->options.control.log, TD_LOG_WARN, "a status cannot be written",
                TD_LOG_S("hvpa", tick->item->key), TD_LOG_C("error", reply->err.message));
    hvpa_tick_end(tick);
}

static void tick_decide(struct hvpa_tick *tick, const struct td_horizontal_verdict *verdict)
{
    const struct td_hvpa_status *before = &tick->hvpa.status;
    struct td_tandem_input *in = &tick->input;
    in->hvpa = &tick->hvpa;
    in->now = td_time_to_instant(tick->now);
    hvpa_rows_vertical(tick);
    hvpa_rows_progress(tick);
    hvpa_rows_build(tick, verdict);
    hvpa_rows_resize(tick);
    in->last_horizontal = tick_time(before->has_horizontal_time, before->horizontal_time);
    in->last_vertical = tick_time(before->has_vertical_time, before->vertical_time);
    /* Who only asks has just begun to see; who acts has probably seen it from its beginning. */
    in->first_seen = tick_time(true, tick->explain ? tick->hvpa.meta.created
                                                   : td_time_to_instant(tick->item->first_seen));
    in->below_thresholds_since =
        tick_time(before->decision.is_set && before->decision.has_below_thresholds_since,
                  before->decision.below_thresholds_since);
    td_tandem_decide(in, tick->outcomes, &tick->decision);
    hvpa_rows_keep(tick);
    tick_plan(tick);
    if (tick->explain) {
        hvpa_status_fill(tick);
        tick_tell(tick, TD_STR_EMPTY, TD_STR_EMPTY);
        return;
    }
    hvpa_children(tick);
    hvpa_status_fill(tick);
    hvpa_tally(tick);
    tick_tell_maximum(tick);
    if (tick->is_resized && !tick->hvpa.paused) {
        tick_tell_vertical(tick);
    }
    if (!hvpa_status_send(tick, tick_status_written)) {
        hvpa_carry(tick);
    }
}

/* ---- The verdicts ---- */

static td_str tick_why(struct hvpa_tick *tick, const struct td_hpa_pass *pass)
{
    switch (pass->path) {
    case TD_HPA_PATH_DISABLED:
        return TD_STR("the target stands at zero replicas");
    case TD_HPA_PATH_ABOVE_MAX:
        return TD_STR("replicas are above maxReplicas");
    case TD_HPA_PATH_BELOW_MIN:
        return TD_STR("replicas are below minReplicas");
    default:
        break;
    }
    if (pass->is_failed) {
        return td_arena_copy_str(&tick->arena, pass->error);
    }
    int32_t current = pass->scale.spec_replicas;
    const char *side = pass->proposed > current   ? "above target"
                       : pass->proposed < current ? "below target"
                                                  : "at target";
    return pass->evaluation.metric.len > 0
               ? td_arena_format(&tick->arena, "%.*s %s", TD_STR_ARG(pass->evaluation.metric), side)
               : TD_STR("no metric asks for another count");
}

static void tick_horizontal(struct hvpa_tick *tick, const struct td_hpa_pass *pass)
{
    struct td_tandem_input *in = &tick->input;
    in->replicas = pass->scale.spec_replicas;
    in->is_horizontal_valid = false;
    if (!td_hvpa_scales_horizontally(&tick->hvpa)) {
        tick->horizontal_reason = TD_STR("there is no hpaSpec");
        return;
    }
    if (tick->hvpa.sources == TD_HVPA_OBJECTS) {
        in->is_horizontal_valid = hvpa_children_desired(tick, &in->desired_replicas);
        tick->horizontal_reason = in->is_horizontal_valid ? TD_STR("as the child HPA wrote it")
                                                          : TD_STR("the child HPA does not scale");
        return;
    }
    bool is_judged = pass->path == TD_HPA_PATH_METRICS ? pass->is_normalized && !pass->is_failed
                                                       : pass->path == TD_HPA_PATH_ABOVE_MAX ||
                                                             pass->path == TD_HPA_PATH_BELOW_MIN;
    in->is_horizontal_valid = is_judged;
    in->desired_replicas = is_judged ? pass->desired : in->replicas;
    tick->horizontal_reason = tick_why(tick, pass);
    const struct td_hpa_limited *limited = &pass->normalized.limited;
    if (is_judged && pass->is_normalized && limited->is_limited) {
        tick->is_limited = true;
        tick->limited_reason = td_arena_copy_str(&tick->arena, limited->reason);
        tick->limited_message = td_arena_copy_str(&tick->arena, limited->message);
    }
}

static void tick_missing(struct hvpa_tick *tick, td_str error)
{
    tick_back_off(tick);
    bool is_denied = !memmem(error.ptr, error.len, "not found", strlen("not found")) &&
                     !memmem(error.ptr, error.len, "no matches", strlen("no matches"));
    tick_trouble(tick, is_denied ? TD_STR("TargetUnreadable") : TD_STR("TargetNotFound"), error);
}

static void tick_verdict(void *context, const struct td_horizontal_verdict *verdict)
{
    struct hvpa_tick *tick = context;
    struct td_arena *arena = &tick->arena;
    const struct td_hpa_pass *pass = verdict->pass;
    tick->sync = NULL;
    tick_has_read(tick);
    if (!verdict->scale) {
        tick_missing(tick, td_arena_copy_str(arena, pass->scale.error));
        return;
    }
    if (tick->item->failure.len == 0) {
        td_backoff_reset(&tick->item->backoff);
    }
    tick->is_read = true;
    tick->scale = td_json_copy(arena, verdict->scale, true);
    tick->selector = td_arena_copy_str(arena, pass->scale.selector);
    tick->resource = (struct td_sight_resource){
        .group = td_arena_copy_str(arena, verdict->resource->group),
        .version = td_arena_copy_str(arena, verdict->resource->version),
        .plural = td_arena_copy_str(arena, verdict->resource->plural),
        .is_namespaced = verdict->resource->is_namespaced,
    };
    td_str *names = td_arena_array(arena, td_str, verdict->pod_count + 1);
    for (size_t i = 0; i < verdict->pod_count; i++) {
        names[i] = td_arena_copy_str(arena, verdict->pods[i]->name);
    }
    hvpa_view_pods(tick, names, verdict->pod_count);
    tick_horizontal(tick, pass);
    tick_decide(tick, verdict);
}

static void tick_daemons(struct hvpa_tick *tick)
{
    const struct td_object_reference *target = &tick->hvpa.target;
    if (!hvpa_view_daemons(tick, &tick->input.replicas)) {
        tick_missing(tick, td_arena_format(&tick->arena, "%.*s \"%.*s\" not found",
                                           TD_STR_ARG(target->kind), TD_STR_ARG(target->name)));
        return;
    }
    td_backoff_reset(&tick->item->backoff);
    tick->is_read = true;
    tick->horizontal_reason = TD_STR("a DaemonSet is not scaled horizontally");
    tick_decide(tick, NULL);
}

/* ---- The object ---- */

/* The status of the tick before, whoever made it. */
static void tick_recall(struct hvpa_tick *tick)
{
    struct td_json *tree;
    struct td_hvpa_status status;
    td_str text = td_arena_copy_str(&tick->arena, tick->item->status);
    tick->hvpa.status = (struct td_hvpa_status){.mode = TD_STR_EMPTY,
                                                .target_selector = TD_STR_EMPTY,
                                                .horizontal_reason = TD_STR_EMPTY,
                                                .vertical_reason = TD_STR_EMPTY};
    if (text.len > 0 && td_json_parse(&tick->arena, text, NULL, &tree, NULL) == TD_OK &&
        td_hvpa_status_decode(&tick->arena, tree, &status, NULL) == TD_OK) {
        tick->hvpa.status = status;
    }
}

static void tick_begin(struct hvpa_tick *tick)
{
    td_str conflict = hvpa_claims_conflict(tick);
    if (conflict.len > 0) {
        tick_trouble(tick, TD_STR("TargetConflict"), conflict);
        return;
    }
    hvpa_view_template(tick);
    hvpa_rows_recall(tick);
    if (td_workload_kind_of(tick->hvpa.target.kind) == TD_WORKLOAD_DAEMON_SET) {
        tick_daemons(tick);
        return;
    }
    hvpa_view_hpa(tick);
    const struct td_horizontal_question question = {
        .hpa = &tick->hpa,
        .state = &tick->item->horizontal,
        .config = &tick->loop->options.horizontal,
    };
    tick->sync = td_horizontal_ask(tick->loop->horizontal, &question, tick_verdict, tick);
}

/* With the gate of the kind off nothing is decided; fields whose gate is off are left out. */
static void tick_close_gates(struct hvpa_tick *tick)
{
    const struct td_control *control = &tick->loop->options.control;
    const struct td_hpa_strategy_options strategy = {.is_gate_on =
                                                         control->selection_strategy_gate};
    const struct td_hpa_gates gates = td_hpa_gates_of(&tick->loop->options.horizontal, &strategy);
    if (!control->hvpa_gate) {
        tick_trouble(tick, TD_STR(TD_GATE_OFF),
                     TD_STR("the feature gate Hvpa is off: nothing is decided or carried out"));
        return;
    }
    tick->gated = td_hvpa_close_gates(&tick->arena, &control->gates, &gates,
                                      TD_HPA_STRATEGY_ANNOTATION, &tick->hvpa);
    tick_begin(tick);
}

static void tick_start(struct hvpa_tick *tick, const struct td_sight_object *object)
{
    struct hvpa_item *item = tick->item;
    struct td_hvpa_findings findings = {.is_target_mismatch = false};
    struct td_error err = TD_ERROR_INIT;
    struct td_json *tree = NULL;
    item->due = tick->now + tick->loop->options.sync_period;
    int code = td_sight_tree(&tick->arena, object, &tree, &err);
    if (code == TD_OK) {
        td_json_set_str(&tick->arena, tree, TD_STR("apiVersion"), TD_STR(TD_HVPA_API_VERSION));
        td_json_set_str(&tick->arena, tree, TD_STR("kind"), TD_STR("Hvpa"));
        code = td_hvpa_decode(&tick->arena, tree, &tick->hvpa, &findings, &err);
    }
    if (code == TD_OK) {
        tick_recall(tick);
        tick_close_gates(tick);
        return;
    }
    tick->hvpa = (struct td_hvpa){.tree = tree};
    if (!tree || td_meta_decode(&tick->arena, tree, &tick->hvpa.meta, NULL) != TD_OK) {
        tick->explain ? tick_tell(tick, TD_STR("InvalidSpec"), TD_STR("it cannot be read"))
                      : hvpa_tick_end(tick);
        return;
    }
    tick_recall(tick);
    tick_trouble(tick,
                 findings.is_target_mismatch ? TD_STR("TargetMismatch") : TD_STR("InvalidSpec"),
                 td_arena_copy_str(&tick->arena, td_str_from(err.message)));
}

void hvpa_tick_start(struct hvpa_item *item, const struct td_sight_object *object)
{
    tick_start(tick_new(item), object);
}

void hvpa_tick_start_dry(struct hvpa_item *item, const struct td_sight_object *object,
                         td_hvpa_explain_fn fn, void *context)
{
    struct hvpa_tick *tick = tick_new(item);
    tick->explain = fn;
    tick->explain_context = context;
    tick_start(tick, object);
}
