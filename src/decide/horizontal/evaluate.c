/*
 * The evaluation walks the metrics of an HPA, lets the judge of each one's source say how many
 * replicas its values ask for, and combines what they say: the largest count wins, and a metric
 * that failed blocks a scale-in. What is particular to a source is in its judge_*.c.
 */
#include "decide/horizontal/evaluate.h"

#include "api/hpa/hpa_source.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "decide/horizontal/judge.h"
#include "kube/quote.h"
#include "kube/selector/selector.h"

struct td_hpa_config td_hpa_config_default(void)
{
    return (struct td_hpa_config){
        .tolerance = 0.1,
        .cpu_initialization = 5 * TD_MINUTE,
        .readiness_delay = 30 * TD_SECOND,
        .downscale_stabilization = 5 * TD_MINUTE,
        .is_tolerance_configurable = true,
        .is_ambiguity_owner_scoped = true,
        .names_earlier_proposals = true,
    };
}

void td_hpa_event_add(struct td_hpa_events *events, bool is_warning, td_str reason, td_str message)
{
    events->items = td_arena_grow(events->arena, events->items, events->count, &events->cap,
                                  sizeof(*events->items));
    events->items[events->count++] =
        (struct td_hpa_event){.is_warning = is_warning, .reason = reason, .message = message};
}

static const struct td_hpa_judge *const judges[TD_HPA_METRIC_UNKNOWN] = {
#define ROW(name, row) [TD_HPA_##name] = &td_hpa_judge_##row,
    TD_HPA_SOURCES(ROW)
#undef ROW
};

/* ---- What the judges share ---- */

td_str td_hpa_join(struct td_arena *arena, td_str prefix, td_str text)
{
    char *bytes = td_arena_alloc(arena, prefix.len + text.len + 1);
    char *at = bytes;
    (void)td_text_place(&at, prefix);
    (void)td_text_place(&at, text);
    *at = '\0';
    return (td_str){.ptr = bytes, .len = prefix.len + text.len};
}

struct td_hpa_calc_options td_hpa_job_options(const struct td_hpa_job *job, int32_t replicas,
                                              bool is_cpu)
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

static void fail(struct td_hpa_job *job, td_str reason, td_str inner, td_str error)
{
    job->result->is_failed = true;
    job->result->reason = reason;
    job->result->inner = inner;
    job->result->error = error;
}

void td_hpa_job_fail(struct td_hpa_job *job, td_str outer, td_str middle, td_str inner)
{
    td_str type = td_hpa_sources[job->metric->type]->type;
    fail(job, td_arena_format(job->arena, "FailedGet%.*sMetric", TD_STR_ARG(type)), inner,
         td_hpa_join(job->arena, outer, td_hpa_join(job->arena, middle, inner)));
}

td_str td_hpa_job_problem(const struct td_hpa_job *job)
{
    if (job->result->calculation.problem == TD_HPA_CALC_OK) {
        return TD_STR_EMPTY;
    }
    td_auto_buf text = td_buf_capped(TD_HPA_TEXT_BYTES_MAX);
    td_hpa_calc_write_problem(&job->result->calculation, job->metric->name, job->in->hpa, &text);
    return td_arena_copy_str(job->arena, td_buf_str(&text));
}

bool td_hpa_job_check_selector(const struct td_hpa_job *job, td_str *ret_error)
{
    struct td_selector selector;
    struct td_error err = TD_ERROR_INIT;
    if (!job->metric->metric_selector ||
        td_selector_from_json(job->arena, job->metric->metric_selector, &selector, &err) == TD_OK) {
        return true;
    }
    *ret_error = td_arena_copy_str(job->arena, td_str_from(err.message));
    return false;
}

struct td_json *td_hpa_identifier_status(struct td_arena *arena, const struct td_hpa_metric *metric,
                                         struct td_json *current)
{
    struct td_json *identifier = td_json_new_object(arena);
    td_json_set_str(arena, identifier, TD_STR("name"), metric->name);
    if (td_json_is(metric->metric_selector, TD_JSON_TYPE_OBJECT)) {
        td_json_set(arena, identifier, TD_STR("selector"),
                    td_json_copy(arena, metric->metric_selector, false));
    }
    struct td_json *status = td_json_new_object(arena);
    td_json_set(arena, status, TD_STR("metric"), identifier);
    td_json_set(arena, status, TD_STR("current"), current);
    return status;
}

/* ---- All metrics of an HPA ---- */

static void judge_unknown(struct td_hpa_job *job)
{
    td_auto_buf quoted = td_buf_capped(TD_HPA_TEXT_BYTES_MAX);
    td_quote_write(job->metric->type_text, &quoted);
    td_str text = td_arena_format(job->arena, "unknown metric source type %.*s",
                                  TD_STR_ARG(td_buf_str(&quoted)));
    fail(job, TD_STR("InvalidMetricSourceType"), text, text);
    job->result->is_spec_fault = true;
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
            td_hpa_join(arena,
                        TD_STR("the HPA was able to successfully calculate a replica count from "),
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
    struct td_hpa_job job = {
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
        (job.metric->type == TD_HPA_METRIC_UNKNOWN ? judge_unknown
                                                   : judges[job.metric->type]->judge)(&job);
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

td_str td_hpa_metric_amount(struct td_arena *arena, const struct td_hpa_metric *metric,
                            int64_t milli)
{
    return td_hpa_quantity_text(
        arena, td_hpa_metric_is_resource(metric) ? metric->name : TD_STR_EMPTY, milli);
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

struct td_json *td_hpa_current_metrics_json(struct td_arena *arena, const struct td_hpa *hpa,
                                            const struct td_hpa_evaluation *evaluation)
{
    td_assert(evaluation->result_count == hpa->metric_count);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < evaluation->result_count; i++) {
        const struct td_hpa_metric *metric = &hpa->metrics[i];
        const struct td_hpa_metric_result *result = &evaluation->results[i];
        struct td_json *entry = td_json_new_object(arena);
        if (result->is_failed) {
            td_json_set_str(arena, entry, TD_STR("type"), TD_STR_EMPTY);
        } else {
            td_json_set_str(arena, entry, TD_STR("type"), td_hpa_sources[metric->type]->type);
            td_json_set(
                arena, entry, td_hpa_sources[metric->type]->member,
                judges[metric->type]->status(arena, metric, current_json(arena, metric, result)));
        }
        td_json_append(list, entry);
    }
    return list;
}
