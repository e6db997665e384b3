/* Topics of tolerance, behaviour and status. */
#include "decide/horizontal/behavior.h"
#include "decide/horizontal/replicas.h"
#include "decide/horizontal/status.h"
#include "golden/golden.h"
#include "golden/hpa_support.h"

#define TEXT_BYTES_MAX ((size_t)1 << 16)

/* A whole HPA around the behaviour and bounds of a case. */
static int read_hpa(struct td_arena *arena, const struct td_json *in, struct td_hpa *ret,
                    struct td_error *err)
{
    static const td_str text = TD_STR_INIT(
        "{\"apiVersion\":\"autoscaling/v2\",\"kind\":\"HorizontalPodAutoscaler\","
        "\"metadata\":{\"name\":\"hpa\",\"namespace\":\"ns\"},\"spec\":{\"scaleTargetRef\":"
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\"},\"metrics\":[]}}");
    struct td_json *hpa = NULL;
    int code = td_json_parse(arena, text, NULL, &hpa, err);
    if (code < 0) {
        return code;
    }
    struct td_json *spec = td_json_get(hpa, TD_STR("spec"));
    golden_set_int(arena, spec, TD_STR("minReplicas"),
                   td_json_get_int64(in, TD_STR("minReplicas"), 1));
    golden_set_int(arena, spec, TD_STR("maxReplicas"),
                   td_json_get_int64(in, TD_STR("maxReplicas"), 1));
    const struct td_json *behavior = td_json_get(in, TD_STR("behavior"));
    if (td_json_is(behavior, TD_JSON_TYPE_OBJECT)) {
        td_json_set(arena, spec, TD_STR("behavior"), td_json_copy(arena, behavior, false));
    }
    return td_hpa_decode(arena, hpa, ret, err);
}

static struct td_json *plain_replicas(struct td_arena *arena, const struct td_json *metric,
                                      struct td_hpa_tolerance tolerance)
{
    const struct td_json *values = td_json_get(metric, TD_STR("valuesMilli"));
    struct td_hpa_pod *pods = td_arena_array(arena, struct td_hpa_pod, values->count);
    struct td_hpa_view view = {.pods = pods, .count = values->count};
    size_t i = 0;
    for (const struct td_json *value = td_json_first_child(values); value; value = value->next) {
        pods[i] = (struct td_hpa_pod){
            .phase = TD_POD_RUNNING, .ready = TD_CONDITION_TRUE, .has_sample = true};
        (void)td_json_to_int64(value, &pods[i++].sample_milli);
    }
    struct td_hpa_calc_options options = {
        .replicas = (int32_t)td_json_get_int64(metric, TD_STR("currentReplicas"), 0),
        .tolerance = tolerance,
    };
    struct td_hpa_calculation calculation =
        td_hpa_calc_average(&view, &options, td_json_get_int64(metric, TD_STR("targetMilli"), 0));
    return td_json_new_int64(arena, calculation.replicas);
}

/* "[down:10.0%, up:10.0%]" */
static void write_tolerance(struct td_hpa_tolerance tolerance, struct td_buf *out)
{
    (void)td_buf_append_format(out, "[down:%.1f%%, up:%.1f%%]", tolerance.down * 100.,
                               tolerance.up * 100.); /* the caller checks the buffer */
}

static int run_tolerance(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                         struct td_error *err)
{
    struct td_hpa hpa;
    int code = read_hpa(arena, in, &hpa, err);
    if (code < 0) {
        return code;
    }
    struct td_hpa_tolerance tolerance =
        td_hpa_tolerance_of(&hpa, golden_double(in, TD_STR("clusterTolerance"), 0),
                            td_json_get_bool(in, TD_STR("gateHPAConfigurableTolerance"), true));
    struct td_json *out = td_json_new_object(arena);
    td_json_set(arena, out, TD_STR("scaleDown"), td_json_new_double(arena, tolerance.down));
    td_json_set(arena, out, TD_STR("scaleUp"), td_json_new_double(arena, tolerance.up));
    struct td_json *within = td_json_new_array(arena);
    const struct td_json *ratios = td_json_get(in, TD_STR("ratios"));
    for (const struct td_json *item = td_json_first_child(ratios); item; item = item->next) {
        double ratio = 0;
        (void)td_json_to_double(item, &ratio);
        td_json_append(within, td_json_new_bool(arena, td_hpa_is_within(tolerance, ratio)));
    }
    td_json_set(arena, out, TD_STR("within"), within);
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES_MAX);
    write_tolerance(tolerance, &text);
    golden_set_text(arena, out, TD_STR("text"), td_arena_copy_str(arena, td_buf_str(&text)));
    const struct td_json *metric = td_json_get(in, TD_STR("podsMetric"));
    if (metric) {
        td_json_set(arena, out, TD_STR("replicas"), plain_replicas(arena, metric, tolerance));
    }
    *ret_out = out;
    return TD_OK;
}

static void read_events(const struct td_json *list, struct td_hpa_scale_events *ret)
{
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        *td_vec_push(ret) = (struct td_hpa_scale_event){
            .change = (int32_t)td_json_get_int64(item, TD_STR("change"), 0),
            .at = golden_time(item, TD_STR("at")),
            .is_outdated = td_json_get_bool(item, TD_STR("outdated"), false),
        };
    }
}

static void read_history(const struct td_json *in, struct td_hpa_history *ret)
{
    td_hpa_history_init(ret);
    const struct td_json *list = td_json_get(in, TD_STR("recommendations"));
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        *td_vec_push(&ret->recommendations) = (struct td_hpa_recommendation){
            .replicas = (int32_t)td_json_get_int64(item, TD_STR("replicas"), 0),
            .at = golden_time(item, TD_STR("at")),
        };
    }
    read_events(td_json_get(in, TD_STR("scaleUpEvents")), &ret->ups);
    read_events(td_json_get(in, TD_STR("scaleDownEvents")), &ret->downs);
}

struct call {
    struct td_arena *arena;
    const struct td_json *in;
    struct td_json *out;
    struct td_hpa_history history;
    struct td_hpa_normalization normalization;
};

static void set_recommendations(struct call *call)
{
    td_json_set(call->arena, call->out, TD_STR("recommendations"),
                golden_recommendations_json(call->arena, &call->history));
}

static void set_limited(struct call *call, const struct td_hpa_limited *limited)
{
    golden_set_int(call->arena, call->out, TD_STR("replicas"), limited->replicas);
    golden_set_text(call->arena, call->out, TD_STR("reason"), limited->reason);
    golden_set_text(call->arena, call->out, TD_STR("message"), limited->message);
}

static void call_normalize(struct call *call)
{
    struct td_hpa_normalized normalized = td_hpa_normalize(&call->history, &call->normalization);
    struct td_hpa_conditions conditions;
    td_hpa_conditions_read(call->arena, NULL, &conditions);
    td_hpa_conditions_normalized(&conditions, &normalized, call->normalization.now);
    golden_set_int(call->arena, call->out, TD_STR("replicas"), normalized.replicas);
    td_json_set(call->arena, call->out, TD_STR("conditions"),
                golden_conditions_json(call->arena, &conditions));
    set_recommendations(call);
}

static void call_convert_legacy(struct call *call)
{
    struct td_hpa_limited limited =
        td_hpa_limit_legacy(&call->normalization, call->normalization.proposed);
    set_limited(call, &limited);
}

static void call_convert(struct call *call)
{
    struct td_hpa_limited limited =
        td_hpa_limit(&call->history, &call->normalization, call->normalization.proposed);
    set_limited(call, &limited);
}

static void call_stabilize(struct call *call)
{
    struct td_hpa_stabilized stabilized = td_hpa_stabilize(&call->history, &call->normalization);
    golden_set_int(call->arena, call->out, TD_STR("replicas"), stabilized.replicas);
    golden_set_text(call->arena, call->out, TD_STR("reason"), stabilized.reason);
    golden_set_text(call->arena, call->out, TD_STR("message"), stabilized.message);
    set_recommendations(call);
}

static void call_limits(struct call *call)
{
    const struct td_hpa_normalization *in = &call->normalization;
    golden_set_int(
        call->arena, call->out, TD_STR("scaleUpLimit"),
        td_hpa_limit_by_policies(&call->history, &in->hpa->scale_up, in->current, in->now, true)
            .replicas);
    golden_set_int(
        call->arena, call->out, TD_STR("scaleDownLimit"),
        td_hpa_limit_by_policies(&call->history, &in->hpa->scale_down, in->current, in->now, false)
            .replicas);
}

static void call_store(struct call *call)
{
    const struct td_hpa_normalization *in = &call->normalization;
    td_hpa_history_store(&call->history, in->hpa, in->current, in->proposed, in->now);
    td_json_set(call->arena, call->out, TD_STR("scaleUpEvents"),
                golden_scale_events_json(call->arena, &call->history.ups));
    td_json_set(call->arena, call->out, TD_STR("scaleDownEvents"),
                golden_scale_events_json(call->arena, &call->history.downs));
}

static const struct {
    td_str name;
    void (*run)(struct call *call);
} operations[] = {
    {TD_STR_INIT("normalizeWithBehaviors"), call_normalize},
    {TD_STR_INIT("normalizeLegacy"), call_normalize},
    {TD_STR_INIT("convertLegacy"), call_convert_legacy},
    {TD_STR_INIT("convertWithBehaviorRate"), call_convert},
    {TD_STR_INIT("stabilizeWithBehaviors"), call_stabilize},
    {TD_STR_INIT("limits"), call_limits},
    {TD_STR_INIT("storeScaleEvent"), call_store},
};

static int begin_call(struct call *call, struct td_arena *arena, const struct td_json *in,
                      td_duration stabilization, struct td_error *err)
{
    struct td_hpa *hpa = td_arena_new(arena, struct td_hpa);
    int code = read_hpa(arena, in, hpa, err);
    if (code < 0) {
        return code;
    }
    *call = (struct call){
        .arena = arena,
        .in = in,
        .out = td_json_new_object(arena),
        .normalization =
            {
                .hpa = hpa,
                .now = golden_time(in, TD_STR("now")),
                .current = (int32_t)td_json_get_int64(in, TD_STR("currentReplicas"), 0),
                .proposed = (int32_t)td_json_get_int64(in, TD_STR("desiredReplicas"), 0),
                .downscale_stabilization =
                    golden_duration(in, TD_STR("downscaleStabilization"), stabilization),
            },
    };
    read_history(in, &call->history);
    return TD_OK;
}

static int run_behavior(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                        struct td_error *err)
{
    struct call call;
    int code = begin_call(&call, arena, in, 0, err);
    if (code < 0) {
        return code;
    }
    td_str name = golden_text(in, TD_STR("op"));
    code = td_error_set(err, TD_INVALID, "op '%.*s' is not known", TD_STR_ARG(name));
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (td_str_equal(operations[i].name, name)) {
            operations[i].run(&call);
            *ret_out = call.out;
            code = TD_OK;
        }
    }
    td_hpa_history_done(&call.history);
    return code;
}

static void run_conditions(struct td_arena *arena, const struct td_json *in, struct td_json *out)
{
    struct td_hpa_conditions conditions;
    td_hpa_conditions_read(arena, td_json_get(in, TD_STR("conditions")), &conditions);
    const struct td_json *changes = td_json_get(in, TD_STR("changes"));
    for (const struct td_json *each = td_json_first_child(changes); each; each = each->next) {
        td_str type = golden_text(each, TD_STR("type"));
        if (td_json_get_bool(each, TD_STR("remove"), false)) {
            td_hpa_condition_remove(&conditions, type);
            continue;
        }
        td_hpa_condition_set(&conditions, golden_time(each, TD_STR("at")), type,
                             td_str_equal(golden_text(each, TD_STR("status")), TD_STR("True")),
                             golden_text(each, TD_STR("reason")),
                             golden_text(each, TD_STR("message")));
    }
    td_json_set(arena, out, TD_STR("conditions"),
                conditions.is_list ? td_hpa_conditions_json(arena, &conditions)
                                   : td_json_new_null(arena));
}

static int run_normalize(struct td_arena *arena, const struct td_json *in, struct td_json *out,
                         struct td_error *err)
{
    struct call call;
    int code = begin_call(&call, arena, in, 5 * TD_MINUTE, err);
    if (code < 0) {
        return code;
    }
    struct td_hpa_conditions conditions;
    td_hpa_conditions_read(arena, td_json_get(in, TD_STR("conditions")), &conditions);
    struct td_hpa_normalized normalized = td_hpa_normalize(&call.history, &call.normalization);
    td_hpa_conditions_normalized(&conditions, &normalized, call.normalization.now);
    td_json_set(arena, out, TD_STR("conditions"), td_hpa_conditions_json(arena, &conditions));
    golden_set_int(arena, out, TD_STR("replicas"), normalized.replicas);
    td_hpa_history_done(&call.history);
    return TD_OK;
}

static void run_set_status(struct td_arena *arena, const struct td_json *in, struct td_json *out)
{
    struct td_hpa_status status;
    td_hpa_status_read(arena, td_json_get(in, TD_STR("oldStatus")), &status);
    status.observed_generation = 0; /* 1.36 rebuilds a status without it */
    status.current_replicas = (int32_t)td_json_get_int64(in, TD_STR("currentReplicas"), 0);
    status.desired_replicas = (int32_t)td_json_get_int64(in, TD_STR("desiredReplicas"), 0);
    const struct td_json *metrics = td_json_get(in, TD_STR("currentMetrics"));
    status.current_metrics = td_json_is(metrics, TD_JSON_TYPE_ARRAY) ? metrics : NULL;
    if (td_json_get_bool(in, TD_STR("rescale"), false)) {
        status.has_last_scale_time = true;
        status.last_scale_time = golden_instant(in, TD_STR("now"));
    }
    td_json_set(arena, out, TD_STR("status"), td_hpa_status_json(arena, &status));
}

static int run_status(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                      struct td_error *err)
{
    struct td_json *out = td_json_new_object(arena);
    td_str name = golden_text(in, TD_STR("op"));
    *ret_out = out;
    if (td_str_equal(name, TD_STR("conditions"))) {
        run_conditions(arena, in, out);
        return TD_OK;
    }
    if (td_str_equal(name, TD_STR("normalize"))) {
        return run_normalize(arena, in, out, err);
    }
    if (td_str_equal(name, TD_STR("setStatus"))) {
        run_set_status(arena, in, out);
        return TD_OK;
    }
    if (td_str_equal(name, TD_STR("changed"))) {
        bool differs = td_hpa_status_differs(td_json_get(in, TD_STR("oldStatus")),
                                             td_json_get(in, TD_STR("newStatus")));
        td_json_set(arena, out, TD_STR("changed"), td_json_new_bool(arena, differs));
        return TD_OK;
    }
    if (td_str_equal(name, TD_STR("quantity"))) {
        golden_set_text(arena, out, TD_STR("text"),
                        td_hpa_quantity_text(arena, golden_text(in, TD_STR("resource")),
                                             td_json_get_int64(in, TD_STR("milli"), 0)));
        return TD_OK;
    }
    return td_error_set(err, TD_INVALID, "op '%.*s' is not known", TD_STR_ARG(name));
}

const struct golden_topic golden_hpa_behavior[] = {
    {.name = "hpa/tolerance", .run = run_tolerance},
    {.name = "hpa/behavior", .run = run_behavior},
    {.name = "hpa/status", .run = run_status},
    {.name = NULL},
};
