#include "decide/horizontal/evaluate.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "kube/quote.h"
#include "kube/selector/selector.h"

#define TEXT_BYTES_MAX ((size_t)1 << 20) /* one message; longer ones are cut */

struct td_hpa_config td_hpa_config_default(void)
{
    return (struct td_hpa_config){
        .tolerance = 0.1,
        .cpu_initialization = 5 * TD_MINUTE,
        .readiness_delay = 30 * TD_SECOND,
        .downscale_stabilization = 5 * TD_MINUTE,
        .is_tolerance_configurable = true,
        .is_ambiguity_owner_scoped = true,
    };
}

void td_hpa_event_add(struct td_hpa_events *events, bool is_warning, td_str reason, td_str message)
{
    if (events->count == events->cap) {
        size_t cap = 2 * events->cap + 8;
        struct td_hpa_event *items = td_arena_array(events->arena, struct td_hpa_event, cap);
        for (size_t i = 0; i < events->count; i++) {
            items[i] = events->items[i];
        }
        events->items = items;
        events->cap = cap;
    }
    events->items[events->count++] =
        (struct td_hpa_event){.is_warning = is_warning, .reason = reason, .message = message};
}

/* One text after another. Every pass of every HPA makes a few of these, so they are not worth a
 * format. */
static td_str join(struct td_arena *arena, td_str prefix, td_str text)
{
    char *bytes = td_arena_alloc(arena, prefix.len + text.len + 1);
    if (prefix.len > 0) {
        memcpy(bytes, prefix.ptr, prefix.len);
    }
    if (text.len > 0) {
        memcpy(bytes + prefix.len, text.ptr, text.len);
    }
    bytes[prefix.len + text.len] = '\0';
    return (td_str){.ptr = bytes, .len = prefix.len + text.len};
}

static void write_match_labels(struct td_arena *arena, const struct td_json *labels,
                               struct td_buf *out)
{
    struct td_labels sorted = td_labels_from_json(arena, labels);
    for (size_t i = 0; i < sorted.count; i++) {
        (void)td_buf_append_format(out, "%.*s: %.*s,", TD_STR_ARG(sorted.items[i].key),
                                   TD_STR_ARG(sorted.items[i].value));
    }
}

static void write_expressions(const struct td_json *expressions, struct td_buf *out)
{
    const struct td_json *each = td_json_first_item(expressions);
    for (; each; each = each->next) {
        (void)td_buf_append_format(
            out, "LabelSelectorRequirement{Key:%.*s,Operator:%.*s,Values:[",
            TD_STR_ARG(td_json_get_str(each, TD_STR("key"), TD_STR_EMPTY)),
            TD_STR_ARG(td_json_get_str(each, TD_STR("operator"), TD_STR_EMPTY)));
        const struct td_json *values = td_json_get(each, TD_STR("values"));
        const struct td_json *value = td_json_first_item(values);
        for (bool is_first = true; value; value = value->next, is_first = false) {
            if (td_json_is(value, TD_JSON_TYPE_STRING)) {
                (void)td_buf_append_format(out, "%s%.*s", is_first ? "" : " ",
                                           TD_STR_ARG(value->text));
            }
        }
        (void)td_buf_append(out, TD_STR("],},"));
    }
}

td_str td_hpa_selector_go_text(struct td_arena *arena, const struct td_json *selector)
{
    if (!td_json_is(selector, TD_JSON_TYPE_OBJECT)) {
        return TD_STR("nil");
    }
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES_MAX);
    (void)td_buf_append(&text, TD_STR("&LabelSelector{MatchLabels:map[string]string{"));
    write_match_labels(arena, td_json_get(selector, TD_STR("matchLabels")), &text);
    (void)td_buf_append(&text, TD_STR("},MatchExpressions:[]LabelSelectorRequirement{"));
    const struct td_json *expressions = td_json_get(selector, TD_STR("matchExpressions"));
    write_expressions(td_json_is(expressions, TD_JSON_TYPE_ARRAY) ? expressions : NULL, &text);
    (void)td_buf_append(&text, TD_STR("},}"));
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* One metric on its way: what is asked, what came back, what is written. */
struct job {
    struct td_arena *arena;
    const struct td_hpa_evaluation_input *in;
    const struct td_hpa_metric *metric;
    const struct td_hpa_answer *answer;
    struct td_hpa_tolerance tolerance;
    struct td_hpa_metric_result *result;
};

static struct td_hpa_calc_options options_of(const struct job *job, int32_t replicas, bool is_cpu)
{
    return (struct td_hpa_calc_options){
        .replicas = replicas,
        .tolerance = job->tolerance,
        .grouping = {.is_cpu = is_cpu,
                     .now = job->in->now,
                     .cpu_initialization = job->in->config->cpu_initialization,
                     .readiness_delay = job->in->config->readiness_delay},
    };
}

static void fail(struct job *job, const char *reason, td_str inner, td_str error)
{
    job->result->is_failed = true;
    job->result->reason = td_str_from(reason);
    job->result->inner = inner;
    job->result->error = error;
}

static td_str problem_text(const struct job *job)
{
    if (job->result->calculation.problem == TD_HPA_CALC_OK) {
        return TD_STR_EMPTY;
    }
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES_MAX);
    td_hpa_calc_write_problem(&job->result->calculation, job->metric->name, job->in->hpa, &text);
    return td_arena_copy_str(job->arena, td_buf_str(&text));
}

/* The metric's own selector; false when it is no selector, with upstream's words. */
static bool check_selector(const struct job *job, td_str *ret_error)
{
    if (!job->metric->metric_selector) {
        return true;
    }
    struct td_selector selector;
    struct td_error err = TD_ERROR_INIT;
    if (td_selector_from_json(job->arena, job->metric->metric_selector, &selector, &err) == TD_OK) {
        return true;
    }
    *ret_error = td_arena_copy_str(job->arena, td_str_from(err.message));
    return false;
}

static td_str resource_prefix(const struct job *job)
{
    const struct td_hpa_metric *metric = job->metric;
    return metric->type == TD_HPA_CONTAINER_RESOURCE
               ? td_arena_format(job->arena, "failed to get %.*s container metric value: ",
                                 TD_STR_ARG(metric->container))
               : td_arena_format(job->arena, "failed to get %.*s resource metric value: ",
                                 TD_STR_ARG(metric->name));
}

static void judge_resource(struct job *job)
{
    const struct td_hpa_metric *metric = job->metric;
    bool is_container = metric->type == TD_HPA_CONTAINER_RESOURCE;
    bool is_cpu = td_str_equal(metric->name, TD_STR("cpu"));
    const char *reason =
        is_container ? "FailedGetContainerResourceMetric" : "FailedGetResourceMetric";
    bool is_raw = metric->target.has_average_value;
    if (!is_raw && !metric->target.has_average_utilization) {
        td_str text = TD_STR("invalid resource metric source: neither an average utilization "
                             "target nor an average value (usage) target was set");
        fail(job, reason, text, join(job->arena, resource_prefix(job), text));
        return;
    }
    struct td_hpa_calculation *calculation = &job->result->calculation;
    td_str problem;
    if (job->answer->is_failed) {
        problem = td_arena_format(job->arena, "unable to get metrics for resource %.*s: %.*s",
                                  TD_STR_ARG(metric->name), TD_STR_ARG(job->answer->error));
    } else {
        struct td_hpa_calc_options options = options_of(job, job->in->spec_replicas, is_cpu);
        *calculation = is_raw ? td_hpa_calc_average(&job->answer->view, &options,
                                                    metric->target.average_value_milli)
                              : td_hpa_calc_utilization(&job->answer->view, &options,
                                                        metric->target.average_utilization);
        problem = problem_text(job);
    }
    if (problem.len > 0) {
        td_str inner =
            td_arena_format(job->arena, "failed to get %.*s %s: %.*s", TD_STR_ARG(metric->name),
                            is_raw ? "usage" : "utilization", TD_STR_ARG(problem));
        fail(job, reason, inner, join(job->arena, resource_prefix(job), inner));
        return;
    }
    static const td_str kinds[2][2] = {
        {TD_STR_INIT(" resource utilization (percentage of request)"), TD_STR_INIT(" resource")},
        {TD_STR_INIT(" container resource utilization (percentage of request)"),
         TD_STR_INIT(" resource")},
    };
    job->result->description = join(job->arena, metric->name, kinds[is_container][is_raw]);
    job->result->timestamp = job->answer->timestamp;
    job->result->is_average = true;
}

static void judge_pods(struct job *job)
{
    static const td_str outer = TD_STR_INIT("failed to get pods metric value: ");
    td_str problem = TD_STR_EMPTY;
    if (!check_selector(job, &problem)) {
        fail(job, "FailedGetPodsMetric", problem, join(job->arena, outer, problem));
        return;
    }
    if (job->answer->is_failed) {
        problem = td_arena_format(job->arena, "unable to get metric %.*s: %.*s",
                                  TD_STR_ARG(job->metric->name), TD_STR_ARG(job->answer->error));
    } else {
        struct td_hpa_calc_options options = options_of(job, job->in->spec_replicas, false);
        job->result->calculation = td_hpa_calc_average(&job->answer->view, &options,
                                                       job->metric->target.average_value_milli);
        problem = problem_text(job);
    }
    if (problem.len > 0) {
        fail(job, "FailedGetPodsMetric", problem, join(job->arena, outer, problem));
        return;
    }
    job->result->description = join(job->arena, TD_STR("pods metric "), job->metric->name);
    job->result->timestamp = job->answer->timestamp;
    job->result->is_average = true;
}

/* Why there is no value, in the client's words; empty: there is one. No answer is a usage of 0. */
static td_str no_value(const struct td_hpa_answer *answer, td_str empty)
{
    return answer->is_failed ? answer->error : answer->value_count == 0 ? empty : TD_STR_EMPTY;
}

static td_str external_description(const struct job *job)
{
    td_str selector = td_hpa_selector_go_text(job->arena, job->metric->metric_selector);
    return td_arena_format(job->arena, "external metric %.*s(%.*s)", TD_STR_ARG(job->metric->name),
                           TD_STR_ARG(selector));
}

/* One value for all pods: a share of it for each, or the whole against a target. */
static void calculate_total(struct job *job, int64_t usage_milli, bool is_average)
{
    const struct td_hpa_target *target = &job->metric->target;
    if (is_average) {
        struct td_hpa_calc_options options = options_of(job, job->in->status_replicas, false);
        job->result->calculation =
            td_hpa_calc_per_pod(&options, usage_milli, target->average_value_milli);
        job->result->timestamp = job->answer->timestamp;
    } else {
        struct td_hpa_calc_options options = options_of(job, job->in->spec_replicas, false);
        job->result->calculation =
            td_hpa_calc_value(&job->answer->view, &options, usage_milli, target->value_milli);
    }
    job->result->is_average = is_average;
}

/* The argument order of the error is the one of 1.36: kind and object at the wrong places. */
static td_str object_error(const struct job *job, td_str error)
{
    const struct td_object_reference *described = &job->metric->described;
    return td_arena_format(job->arena, "unable to get metric %.*s: %.*s on %.*s %.*s/%.*s",
                           TD_STR_ARG(job->metric->name), TD_STR_ARG(described->kind),
                           TD_STR_ARG(job->in->hpa->meta.namespace), TD_STR_ARG(described->name),
                           TD_STR_ARG(error));
}

static void judge_object(struct job *job)
{
    static const td_str outer = TD_STR_INIT("failed to get object metric value: ");
    const struct td_hpa_target *target = &job->metric->target;
    td_str problem = TD_STR_EMPTY;
    if (!check_selector(job, &problem)) {
        fail(job, "FailedGetObjectMetric", problem, join(job->arena, outer, problem));
        return;
    }
    bool is_average = target->type == TD_HPA_AVERAGE_VALUE && target->has_average_value;
    if (!is_average && !(target->type == TD_HPA_VALUE && target->has_value)) {
        problem = TD_STR("invalid object metric source: neither a value target nor an average "
                         "value target was set");
        fail(job, "FailedGetObjectMetric", problem, join(job->arena, outer, problem));
        return;
    }
    td_str error = no_value(job->answer, TD_STR("no metrics returned from custom metrics API"));
    if (error.len > 0) {
        problem = object_error(job, error);
    } else {
        calculate_total(job, job->answer->values_milli[0], is_average);
        problem = problem_text(job);
    }
    if (problem.len > 0) {
        td_str middle = is_average
                            ? td_arena_format(job->arena, "failed to get %.*s object metric: ",
                                              TD_STR_ARG(job->metric->name))
                            : TD_STR_EMPTY;
        fail(job, "FailedGetObjectMetric", problem,
             join(job->arena, outer, join(job->arena, middle, problem)));
        return;
    }
    job->result->description = is_average ? external_description(job)
                                          : td_arena_format(job->arena, "%.*s metric %.*s",
                                                            TD_STR_ARG(job->metric->described.kind),
                                                            TD_STR_ARG(job->metric->name));
}

static td_str external_problem(struct job *job, bool is_average)
{
    td_str problem = TD_STR_EMPTY;
    const struct td_hpa_answer *answer = job->answer;
    if (!check_selector(job, &problem)) {
        return problem;
    }
    td_str error = no_value(answer, TD_STR("no metrics returned from external metrics API"));
    if (error.len > 0) {
        td_str selector = td_hpa_selector_go_text(job->arena, job->metric->metric_selector);
        return td_arena_format(job->arena, "unable to get external metric %.*s/%.*s/%.*s: %.*s",
                               TD_STR_ARG(job->in->hpa->meta.namespace),
                               TD_STR_ARG(job->metric->name), TD_STR_ARG(selector),
                               TD_STR_ARG(error));
    }
    calculate_total(job,
                    is_average ? td_hpa_sum_averages(answer->values_milli, answer->value_count)
                               : td_hpa_sum_values(answer->values_milli, answer->value_count),
                    is_average);
    return problem_text(job);
}

static void judge_external(struct job *job)
{
    td_str name = job->metric->name;
    td_str outer =
        td_arena_format(job->arena, "failed to get %.*s external metric value: ", TD_STR_ARG(name));
    bool is_average = job->metric->target.has_average_value;
    if (!is_average && !job->metric->target.has_value) {
        td_str text = TD_STR("invalid external metric source: neither a value target nor an "
                             "average value target was set");
        fail(job, "FailedGetExternalMetric", text, join(job->arena, outer, text));
        return;
    }
    td_str problem = external_problem(job, is_average);
    if (problem.len > 0) {
        td_str middle =
            is_average ? td_arena_format(job->arena,
                                         "failed to get %.*s external metric: ", TD_STR_ARG(name))
                       : td_arena_format(job->arena,
                                         "failed to get external metric %.*s: ", TD_STR_ARG(name));
        fail(job, "FailedGetExternalMetric", problem,
             join(job->arena, outer, join(job->arena, middle, problem)));
        return;
    }
    job->result->description = external_description(job);
}

static void judge_unknown(struct job *job)
{
    td_auto_buf quoted;
    td_buf_init(&quoted, TEXT_BYTES_MAX);
    td_quote_write(job->metric->type_text, &quoted);
    td_str text = td_arena_format(job->arena, "unknown metric source type %.*s",
                                  TD_STR_ARG(td_buf_str(&quoted)));
    fail(job, "InvalidMetricSourceType", text, text);
    job->result->is_spec_fault = true;
}

static void judge_metric(struct job *job)
{
    switch (job->metric->type) {
    case TD_HPA_RESOURCE:
    case TD_HPA_CONTAINER_RESOURCE:
        judge_resource(job);
        break;
    case TD_HPA_PODS:
        judge_pods(job);
        break;
    case TD_HPA_OBJECT:
        judge_object(job);
        break;
    case TD_HPA_EXTERNAL:
        judge_external(job);
        break;
    case TD_HPA_METRIC_UNKNOWN:
        judge_unknown(job);
        break;
    }
}

/* Ties keep the earliest metric, but a proposal of 0 gives way to any later one. */
static void combine(struct td_hpa_evaluation *evaluation)
{
    for (size_t i = 0; i < evaluation->result_count; i++) {
        const struct td_hpa_metric_result *result = &evaluation->results[i];
        if (result->is_failed) {
            if (!evaluation->is_failed) {
                evaluation->is_spec_fault = result->is_spec_fault;
            }
            evaluation->is_failed = true;
            evaluation->failed_count++;
        } else if (evaluation->replicas == 0 ||
                   result->calculation.replicas > evaluation->replicas) {
            evaluation->replicas = result->calculation.replicas;
            evaluation->metric = result->description;
            evaluation->timestamp = result->timestamp;
            evaluation->winner = i;
        }
    }
}

static const struct td_hpa_metric_result *first_failure(const struct td_hpa_evaluation *evaluation)
{
    for (size_t i = 0; i < evaluation->result_count; i++) {
        if (evaluation->results[i].is_failed) {
            return &evaluation->results[i];
        }
    }
    return NULL;
}

static void conclude(struct td_arena *arena, const struct td_hpa_evaluation_input *in,
                     struct td_hpa_evaluation *evaluation, struct td_hpa_conditions *conditions)
{
    const struct td_hpa_metric_result *failure = first_failure(evaluation);
    if (failure) {
        evaluation->error = td_arena_format(
            arena, "invalid metrics (%zu invalid out of %zu), first error is: %.*s",
            evaluation->failed_count, evaluation->result_count, TD_STR_ARG(failure->error));
    }
    bool is_blocked = evaluation->failed_count >= evaluation->result_count ||
                      (failure && evaluation->replicas < in->spec_replicas);
    if (!is_blocked) {
        td_hpa_condition_set(
            conditions, in->now, TD_HPA_SCALING_ACTIVE, true, TD_STR("ValidMetricFound"),
            join(arena, TD_STR("the HPA was able to successfully calculate a replica count from "),
                 evaluation->metric));
        return;
    }
    if (failure) {
        td_hpa_condition_set(
            conditions, in->now, TD_HPA_SCALING_ACTIVE, false, failure->reason,
            td_arena_format(arena, "the HPA was unable to compute the replica count: %.*s",
                            TD_STR_ARG(failure->inner)));
    }
    evaluation->replicas = -1;
    evaluation->metric = TD_STR_EMPTY;
    evaluation->timestamp = TD_INSTANT_ZERO;
    evaluation->winner = SIZE_MAX;
}

struct td_hpa_evaluation td_hpa_evaluate(struct td_arena *arena,
                                         const struct td_hpa_evaluation_input *in,
                                         struct td_hpa_conditions *conditions,
                                         struct td_hpa_events *events)
{
    size_t count = in->hpa->metric_count;
    struct td_hpa_metric_result *results =
        td_arena_array(arena, struct td_hpa_metric_result, count);
    struct job job = {
        .arena = arena,
        .in = in,
        .tolerance = td_hpa_tolerance_of(in->hpa, in->config->tolerance,
                                         in->config->is_tolerance_configurable),
    };
    for (size_t i = 0; i < count; i++) {
        results[i] = (struct td_hpa_metric_result){.description = TD_STR_EMPTY,
                                                   .timestamp = TD_INSTANT_ZERO};
        job.metric = &in->hpa->metrics[i];
        job.answer = &in->answers[i];
        job.result = &results[i];
        judge_metric(&job);
        if (results[i].is_failed) {
            td_hpa_event_add(events, true, results[i].reason, results[i].inner);
        }
    }
    struct td_hpa_evaluation evaluation = {
        .metric = TD_STR_EMPTY,
        .winner = SIZE_MAX,
        .timestamp = TD_INSTANT_ZERO,
        .results = results,
        .result_count = count,
        .error = TD_STR_EMPTY,
    };
    combine(&evaluation);
    conclude(arena, in, &evaluation, conditions);
    return evaluation;
}

static bool is_resource(const struct td_hpa_metric *metric)
{
    return metric->type == TD_HPA_RESOURCE || metric->type == TD_HPA_CONTAINER_RESOURCE;
}

td_str td_hpa_metric_amount(struct td_arena *arena, const struct td_hpa_metric *metric,
                            int64_t milli)
{
    return td_hpa_quantity_text(arena, is_resource(metric) ? metric->name : TD_STR_EMPTY, milli);
}

static struct td_json *current_json(struct td_arena *arena, const struct td_hpa_metric *metric,
                                    const struct td_hpa_metric_result *result)
{
    struct td_json *current = td_json_new_object(arena);
    td_json_set_str(arena, current, result->is_average ? TD_STR("averageValue") : TD_STR("value"),
                    td_hpa_metric_amount(arena, metric, result->calculation.usage_milli));
    if (result->calculation.has_utilization) {
        td_json_set_int64(arena, current, TD_STR("averageUtilization"),
                          result->calculation.utilization);
    }
    return current;
}

static struct td_json *reference_json(struct td_arena *arena,
                                      const struct td_object_reference *reference)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("kind"), reference->kind);
    td_json_set_str(arena, object, TD_STR("name"), reference->name);
    if (reference->api_version.len > 0) {
        td_json_set_str(arena, object, TD_STR("apiVersion"), reference->api_version);
    }
    return object;
}

static struct td_json *identifier_json(struct td_arena *arena, const struct td_hpa_metric *metric)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("name"), metric->name);
    if (td_json_is(metric->metric_selector, TD_JSON_TYPE_OBJECT)) {
        td_json_set(arena, object, TD_STR("selector"),
                    td_json_copy(arena, metric->metric_selector, false));
    }
    return object;
}

static struct td_json *source_json(struct td_arena *arena, const struct td_hpa_metric *metric,
                                   const struct td_hpa_metric_result *result)
{
    struct td_json *source = td_json_new_object(arena);
    if (is_resource(metric)) {
        td_json_set_str(arena, source, TD_STR("name"), metric->name);
    } else {
        td_json_set(arena, source, TD_STR("metric"), identifier_json(arena, metric));
    }
    td_json_set(arena, source, TD_STR("current"), current_json(arena, metric, result));
    if (metric->type == TD_HPA_CONTAINER_RESOURCE) {
        td_json_set_str(arena, source, TD_STR("container"), metric->container);
    }
    if (metric->type == TD_HPA_OBJECT) {
        td_json_set(arena, source, TD_STR("describedObject"),
                    reference_json(arena, &metric->described));
    }
    return source;
}

struct td_json *td_hpa_current_metrics_json(struct td_arena *arena, const struct td_hpa *hpa,
                                            const struct td_hpa_evaluation *evaluation)
{
    static const struct {
        td_str type;
        td_str member;
    } names[] = {
        [TD_HPA_RESOURCE] = {TD_STR_INIT("Resource"), TD_STR_INIT("resource")},
        [TD_HPA_CONTAINER_RESOURCE] = {TD_STR_INIT("ContainerResource"),
                                       TD_STR_INIT("containerResource")},
        [TD_HPA_PODS] = {TD_STR_INIT("Pods"), TD_STR_INIT("pods")},
        [TD_HPA_OBJECT] = {TD_STR_INIT("Object"), TD_STR_INIT("object")},
        [TD_HPA_EXTERNAL] = {TD_STR_INIT("External"), TD_STR_INIT("external")},
    };
    td_assert(evaluation->result_count == hpa->metric_count);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < evaluation->result_count; i++) {
        const struct td_hpa_metric *metric = &hpa->metrics[i];
        const struct td_hpa_metric_result *result = &evaluation->results[i];
        struct td_json *entry = td_json_new_object(arena);
        if (result->is_failed) {
            td_json_set_str(arena, entry, TD_STR("type"), TD_STR_EMPTY);
        } else {
            td_json_set_str(arena, entry, TD_STR("type"), names[metric->type].type);
            td_json_set(arena, entry, names[metric->type].member,
                        source_json(arena, metric, result));
        }
        td_json_append(list, entry);
    }
    return list;
}
