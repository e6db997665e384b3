/* Topics of the replica calculator: pod groups and the five metric types. */
#include <stdlib.h>

#include "decide/horizontal/evaluate.h"
#include "golden/golden.h"
#include "golden/hpa_support.h"

#define TEXT_BYTES_MAX ((size_t)1 << 20)

/* What the metrics client returned: pod name to sample. */
static struct td_hpa_sample *read_samples(struct td_arena *arena, const struct td_json *metrics,
                                          size_t *ret_count)
{
    size_t count = metrics ? metrics->count : 0;
    struct td_hpa_sample *samples = td_arena_array(arena, struct td_hpa_sample, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_child(metrics); item; item = item->next) {
        samples[i++] = (struct td_hpa_sample){
            .pod = item->key,
            .value_milli = td_json_get_int64(item, TD_STR("valueMilli"), 0),
            .at = golden_time(item, TD_STR("timestamp")),
            .window = golden_duration(item, TD_STR("window"), 0),
        };
    }
    *ret_count = count;
    return samples;
}

static struct td_hpa_calc_options read_options(const struct td_json *in, bool is_cpu)
{
    return (struct td_hpa_calc_options){
        .replicas = (int32_t)td_json_get_int64(in, TD_STR("currentReplicas"), 0),
        .tolerance = {.down = golden_double(in, TD_STR("toleranceDown"), 0),
                      .up = golden_double(in, TD_STR("toleranceUp"), 0)},
        .grouping = {.is_cpu = is_cpu,
                     .now = golden_time(in, TD_STR("now")),
                     .cpu_initialization =
                         golden_duration(in, TD_STR("cpuInitializationPeriod"), 0),
                     .readiness_delay = golden_duration(in, TD_STR("initialReadinessDelay"), 0)},
    };
}

static struct td_json *sorted_names(struct td_arena *arena, td_str *names, size_t count)
{
    struct td_json *list = td_json_new_array(arena);
    qsort(names, count, sizeof(names[0]), td_str_compare_items);
    for (size_t i = 0; i < count; i++) {
        td_json_append(list, td_json_new_string(arena, names[i]));
    }
    return list;
}

static int run_groups(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                      struct td_error *err)
{
    struct golden_pods pods;
    int code = golden_read_pods(arena, td_json_get(in, TD_STR("pods")), &pods, err);
    if (code < 0) {
        return code;
    }
    size_t sample_count = 0;
    struct td_hpa_sample *samples =
        read_samples(arena, td_json_get(in, TD_STR("metrics")), &sample_count);
    td_str resource = golden_text(in, TD_STR("resource"));
    struct td_hpa_view view =
        golden_view(arena, &pods, TD_STR_EMPTY, TD_STR_EMPTY, samples, sample_count);
    struct td_hpa_calc_options options = read_options(in, td_str_equal(resource, TD_STR("cpu")));
    td_str *names[4];
    size_t counts[4] = {0};
    for (size_t g = 0; g < 4; g++) {
        names[g] = td_arena_array(arena, td_str, pods.count);
    }
    for (size_t i = 0; i < view.count; i++) {
        size_t group = (size_t)td_hpa_why_group(td_hpa_pod_judge(&view.pods[i], &options.grouping));
        names[group][counts[group]++] = view.pods[i].name;
    }
    struct td_json *out = td_json_new_object(arena);
    golden_set_int(arena, out, TD_STR("readyCount"), (int64_t)counts[TD_HPA_GROUP_READY]);
    td_json_set(arena, out, TD_STR("unready"),
                sorted_names(arena, names[TD_HPA_GROUP_UNREADY], counts[TD_HPA_GROUP_UNREADY]));
    td_json_set(arena, out, TD_STR("missing"),
                sorted_names(arena, names[TD_HPA_GROUP_MISSING], counts[TD_HPA_GROUP_MISSING]));
    td_json_set(arena, out, TD_STR("ignored"),
                sorted_names(arena, names[TD_HPA_GROUP_IGNORED], counts[TD_HPA_GROUP_IGNORED]));
    *ret_out = out;
    return TD_OK;
}

/* The pods of the cache that a case's selector matches. */
static int read_matched(struct td_arena *arena, const struct td_json *in, struct golden_pods *ret,
                        struct td_error *err)
{
    struct golden_pods pods;
    struct td_selector selector;
    int code = golden_read_pods(arena, td_json_get(in, TD_STR("pods")), &pods, err);
    if (code == TD_OK) {
        code = td_selector_parse(arena, golden_text(in, TD_STR("selector")), &selector, err);
    }
    if (code == TD_OK) {
        *ret = golden_match_pods(arena, &pods, golden_text(in, TD_STR("namespace")), &selector);
    }
    return code;
}

static int fail_with(const struct td_hpa_calculation *calculation, td_str resource,
                     const struct td_json *in, struct td_error *err)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES_MAX);
    struct td_hpa hpa = {.meta = {.namespace = golden_text(in, TD_STR("namespace"))}};
    td_hpa_calc_write_problem(calculation, resource, &hpa, &text);
    return td_error_set(err, TD_INVALID, "%.*s", TD_STR_ARG(td_buf_str(&text)));
}

static bool has_client_error(const struct td_json *in)
{
    return td_json_get(in, TD_STR("metricsError")) != NULL;
}

static int run_resource(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                        struct td_error *err)
{
    td_str resource = golden_text(in, TD_STR("resource"));
    if (has_client_error(in)) {
        return td_error_set(err, TD_INVALID, "unable to get metrics for resource %.*s: %.*s",
                            TD_STR_ARG(resource),
                            TD_STR_ARG(golden_text(in, TD_STR("metricsError"))));
    }
    struct golden_pods pods;
    int code = read_matched(arena, in, &pods, err);
    if (code < 0) {
        return code;
    }
    size_t sample_count = 0;
    struct td_hpa_sample *samples =
        read_samples(arena, td_json_get(in, TD_STR("metrics")), &sample_count);
    struct td_hpa_view view = golden_view(
        arena, &pods, resource, golden_text(in, TD_STR("container")), samples, sample_count);
    struct td_hpa_calc_options options = read_options(in, td_str_equal(resource, TD_STR("cpu")));
    struct td_hpa_calculation calculation = td_hpa_calc_utilization(
        &view, &options, (int32_t)td_json_get_int64(in, TD_STR("targetUtilization"), 0));
    if (calculation.problem != TD_HPA_CALC_OK) {
        return fail_with(&calculation, resource, in, err);
    }
    struct td_json *out = td_json_new_object(arena);
    golden_set_int(arena, out, TD_STR("replicas"), calculation.replicas);
    golden_set_int(arena, out, TD_STR("utilization"), calculation.utilization);
    golden_set_int(arena, out, TD_STR("rawMilli"), calculation.usage_milli);
    golden_set_text(arena, out, TD_STR("timestamp"), golden_text(in, TD_STR("metricsTimestamp")));
    *ret_out = out;
    return TD_OK;
}

static int run_average(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                       struct td_error *err)
{
    td_str resource = golden_text(in, TD_STR("resource"));
    if (has_client_error(in)) {
        return td_error_set(err, TD_INVALID, "unable to get metric %.*s: %.*s",
                            TD_STR_ARG(golden_text(in, TD_STR("metricName"))),
                            TD_STR_ARG(golden_text(in, TD_STR("metricsError"))));
    }
    struct golden_pods pods;
    int code = read_matched(arena, in, &pods, err);
    if (code < 0) {
        return code;
    }
    size_t sample_count = 0;
    struct td_hpa_sample *samples =
        read_samples(arena, td_json_get(in, TD_STR("metrics")), &sample_count);
    struct td_hpa_view view =
        golden_view(arena, &pods, TD_STR_EMPTY, TD_STR_EMPTY, samples, sample_count);
    struct td_hpa_calc_options options = read_options(in, td_str_equal(resource, TD_STR("cpu")));
    struct td_hpa_calculation calculation =
        td_hpa_calc_average(&view, &options, td_json_get_int64(in, TD_STR("targetMilli"), 0));
    if (calculation.problem != TD_HPA_CALC_OK) {
        return fail_with(&calculation, resource, in, err);
    }
    struct td_json *out = td_json_new_object(arena);
    golden_set_int(arena, out, TD_STR("replicas"), calculation.replicas);
    golden_set_int(arena, out, TD_STR("usageMilli"), calculation.usage_milli);
    golden_set_text(arena, out, TD_STR("timestamp"), golden_text(in, TD_STR("metricsTimestamp")));
    *ret_out = out;
    return TD_OK;
}

/* One value for all, or several: an HPA with that one metric is evaluated. */
static int run_total(struct td_arena *arena, const struct td_json *in, struct td_hpa_metric *metric,
                     const int64_t *values, size_t value_count, struct td_json **ret_out,
                     struct td_error *err)
{
    struct golden_pods pods;
    int code = read_matched(arena, in, &pods, err);
    if (code < 0) {
        return code;
    }
    bool is_average = td_str_equal(golden_text(in, TD_STR("mode")), TD_STR("averageValue"));
    int64_t target = td_json_get_int64(in, TD_STR("targetMilli"), 0);
    metric->name = golden_text(in, TD_STR("metricName"));
    metric->target = (struct td_hpa_target){
        .type = is_average ? TD_HPA_AVERAGE_VALUE : TD_HPA_VALUE,
        .has_average_value = is_average,
        .average_value_milli = target,
        .has_value = !is_average,
        .value_milli = target,
    };
    const struct td_hpa hpa = {
        .meta = {.namespace = golden_text(in, TD_STR("namespace"))},
        .metrics = metric,
        .metric_count = 1,
        .has_behavior = true,
        .scale_up = {.has_tolerance = true,
                     .tolerance = golden_double(in, TD_STR("toleranceUp"), 0)},
        .scale_down = {.has_tolerance = true,
                       .tolerance = golden_double(in, TD_STR("toleranceDown"), 0)},
    };
    const struct td_hpa_answer answer = {
        .is_failed = td_json_get(in, TD_STR("metricsError")) != NULL,
        .error = golden_text(in, TD_STR("metricsError")),
        .timestamp = golden_instant(in, TD_STR("metricsTimestamp")),
        .view = golden_view(arena, &pods, TD_STR_EMPTY, TD_STR_EMPTY, NULL, 0),
        .values_milli = values,
        .value_count = value_count,
    };
    const struct td_hpa_config config = td_hpa_config_default();
    const struct td_hpa_evaluation_input input = {
        .hpa = &hpa,
        .config = &config,
        .spec_replicas = (int32_t)td_json_get_int64(in, TD_STR("currentReplicas"), 0),
        .status_replicas = (int32_t)td_json_get_int64(in, TD_STR("statusReplicas"), 0),
        .answers = &answer,
    };
    struct td_hpa_conditions conditions = {.arena = arena};
    struct td_hpa_events events = {.arena = arena};
    struct td_hpa_evaluation made = td_hpa_evaluate(arena, &input, &conditions, &events);
    const struct td_hpa_metric_result *result = &made.results[0];
    if (result->is_failed) {
        return td_error_set(err, TD_INVALID, "%.*s", TD_STR_ARG(result->inner));
    }
    struct td_json *out = td_json_new_object(arena);
    golden_set_int(arena, out, TD_STR("replicas"), result->calculation.replicas);
    golden_set_int(arena, out, TD_STR("usageMilli"), result->calculation.usage_milli);
    td_json_set(arena, out, TD_STR("timestamp"), golden_instant_json(arena, result->timestamp));
    *ret_out = out;
    return TD_OK;
}

static int run_object(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                      struct td_error *err)
{
    const struct td_json *described = td_json_get(in, TD_STR("describedObject"));
    struct td_hpa_metric metric = {
        .type = TD_HPA_OBJECT,
        .described = {.kind = golden_text(described, TD_STR("kind")),
                      .name = golden_text(described, TD_STR("name"))},
    };
    int64_t usage = td_json_get_int64(in, TD_STR("usageMilli"), 0);
    return run_total(arena, in, &metric, &usage, 1, ret_out, err);
}

static int run_external(struct td_arena *arena, const struct td_json *in, struct td_json **ret_out,
                        struct td_error *err)
{
    struct td_hpa_metric metric = {
        .type = TD_HPA_EXTERNAL,
        .metric_selector = td_json_get(in, TD_STR("metricSelector")),
    };
    const struct td_json *list = td_json_get(in, TD_STR("valuesMilli"));
    size_t count = list ? list->count : 0;
    int64_t *values = td_arena_array(arena, int64_t, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_child(list); item; item = item->next) {
        (void)td_json_to_int64(item, &values[i++]);
    }
    return run_total(arena, in, &metric, values, count, ret_out, err);
}

const struct golden_topic golden_hpa_replicas[] = {
    {.name = "hpa/pod-groups", .run = run_groups},
    {.name = "hpa/replica-resource", .run = run_resource},
    {.name = "hpa/replica-raw-resource", .run = run_average},
    {.name = "hpa/replica-pods-metric", .run = run_average},
    {.name = "hpa/replica-object", .run = run_object},
    {.name = "hpa/replica-external", .run = run_external},
    {.name = NULL},
};
