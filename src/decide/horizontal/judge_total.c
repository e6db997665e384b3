/*
 * Metrics that have one value for all pods, and so one without any pod: Object and External. The
 * value is held against a target whole, or a share of it for each pod.
 */
#include "decide/horizontal/judge.h"
#include "kube/selector/labels.h"

/* ---- A LabelSelector as Go prints a pointer to one ---- */

static void write_expressions(const struct td_json *expressions, struct td_buf *out)
{
    for (const struct td_json *each = td_json_first_item(expressions); each; each = each->next) {
        (void)td_buf_append_format(out, "LabelSelectorRequirement{Key:%.*s,Operator:%.*s,Values:[",
                                   TD_STR_ARG(td_json_text(each, "key")),
                                   TD_STR_ARG(td_json_text(each, "operator")));
        const struct td_json *value = td_json_first_item(td_json_get(each, TD_STR("values")));
        for (bool is_first = true; value; value = value->next, is_first = false) {
            if (td_json_is(value, TD_JSON_TYPE_STRING)) {
                (void)td_buf_append_format(out, "%s%.*s", is_first ? "" : " ",
                                           TD_STR_ARG(value->text));
            }
        }
        (void)td_buf_append(out, TD_STR("],},"));
    }
}

/* "nil", "&LabelSelector{MatchLabels:...}". */
static td_str selector_go_text(struct td_arena *arena, const struct td_json *selector)
{
    if (!td_json_is(selector, TD_JSON_TYPE_OBJECT)) {
        return TD_STR("nil");
    }
    td_auto_buf text = td_buf_capped(TD_HPA_TEXT_BYTES_MAX);
    (void)td_buf_append(&text, TD_STR("&LabelSelector{MatchLabels:map[string]string{"));
    struct td_labels sorted =
        td_labels_from_json(arena, td_json_get(selector, TD_STR("matchLabels")));
    for (size_t i = 0; i < sorted.count; i++) {
        (void)td_buf_append_format(&text, "%.*s: %.*s,", TD_STR_ARG(sorted.items[i].key),
                                   TD_STR_ARG(sorted.items[i].value));
    }
    (void)td_buf_append(&text, TD_STR("},MatchExpressions:[]LabelSelectorRequirement{"));
    const struct td_json *expressions = td_json_get(selector, TD_STR("matchExpressions"));
    write_expressions(td_json_is(expressions, TD_JSON_TYPE_ARRAY) ? expressions : NULL, &text);
    (void)td_buf_append(&text, TD_STR("},}"));
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* ---- What both do ---- */

/* Why there is no value, in the client's words; empty: there is one. No answer is a usage of 0. */
static td_str no_value(const struct td_hpa_answer *answer, td_str empty)
{
    return answer->is_failed ? answer->error : answer->value_count == 0 ? empty : TD_STR_EMPTY;
}

static td_str external_description(const struct td_hpa_job *job)
{
    td_str selector = selector_go_text(job->arena, job->metric->metric_selector);
    return td_arena_format(job->arena, "external metric %.*s(%.*s)", TD_STR_ARG(job->metric->name),
                           TD_STR_ARG(selector));
}

/* A share of the value for each pod, or the whole against a target. Why it came to nothing. */
static td_str calculate_total(struct td_hpa_job *job, int64_t usage_milli, bool is_average)
{
    const struct td_hpa_target *target = &job->metric->target;
    if (is_average) {
        struct td_hpa_calc_options options =
            td_hpa_job_options(job, job->in->status_replicas, false);
        job->result->calculation =
            td_hpa_calc_per_pod(&options, usage_milli, target->average_value_milli);
        job->result->timestamp = job->answer->timestamp;
    } else {
        struct td_hpa_calc_options options = td_hpa_job_options(job, job->in->spec_replicas, false);
        job->result->calculation =
            td_hpa_calc_value(&job->answer->view, &options, usage_milli, target->value_milli);
    }
    job->result->is_average = is_average;
    return td_hpa_job_problem(job);
}

/* ---- Object ---- */

/* The argument order of the error is the one of 1.36: kind and object at the wrong places. */
static td_str object_calculate(struct td_hpa_job *job, bool is_average)
{
    const struct td_object_reference *described = &job->metric->described;
    td_str error = no_value(job->answer, TD_STR("no metrics returned from custom metrics API"));
    return error.len == 0
               ? calculate_total(job, job->answer->values_milli[0], is_average)
               : td_arena_format(job->arena, "unable to get metric %.*s: %.*s on %.*s %.*s/%.*s",
                                 TD_STR_ARG(job->metric->name), TD_STR_ARG(described->kind),
                                 TD_STR_ARG(job->in->hpa->meta.namespace),
                                 TD_STR_ARG(described->name), TD_STR_ARG(error));
}

static void judge_object(struct td_hpa_job *job)
{
    static const td_str outer = TD_STR_INIT("failed to get object metric value: ");
    const struct td_hpa_target *target = &job->metric->target;
    td_str problem;
    if (!td_hpa_job_check_selector(job, &problem)) {
        td_hpa_job_fail(job, outer, TD_STR_EMPTY, problem);
        return;
    }
    bool is_average = target->type == TD_HPA_AVERAGE_VALUE && target->has_average_value;
    if (!is_average && !(target->type == TD_HPA_VALUE && target->has_value)) {
        td_hpa_job_fail(job, outer, TD_STR_EMPTY,
                        TD_STR("invalid object metric source: neither a value target nor an "
                               "average value target was set"));
        return;
    }
    problem = object_calculate(job, is_average);
    if (problem.len > 0) {
        td_hpa_job_fail(job, outer,
                        is_average
                            ? td_arena_format(job->arena, "failed to get %.*s object metric: ",
                                              TD_STR_ARG(job->metric->name))
                            : TD_STR_EMPTY,
                        problem);
        return;
    }
    job->result->description = is_average ? external_description(job)
                                          : td_arena_format(job->arena, "%.*s metric %.*s",
                                                            TD_STR_ARG(job->metric->described.kind),
                                                            TD_STR_ARG(job->metric->name));
}

static struct td_json *status_object(struct td_arena *arena, const struct td_hpa_metric *metric,
                                     struct td_json *current)
{
    const struct td_object_reference *described = &metric->described;
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("kind"), described->kind);
    td_json_set_str(arena, object, TD_STR("name"), described->name);
    td_json_set_text(arena, object, TD_STR("apiVersion"), described->api_version);
    struct td_json *status = td_hpa_identifier_status(arena, metric, current);
    td_json_set(arena, status, TD_STR("describedObject"), object);
    return status;
}

const struct td_hpa_judge td_hpa_judge_object = {judge_object, status_object};

/* ---- External ---- */

static td_str external_calculate(struct td_hpa_job *job, bool is_average)
{
    const struct td_hpa_answer *answer = job->answer;
    td_str problem;
    if (!td_hpa_job_check_selector(job, &problem)) {
        return problem;
    }
    td_str error = no_value(answer, TD_STR("no metrics returned from external metrics API"));
    if (error.len > 0) {
        td_str selector = selector_go_text(job->arena, job->metric->metric_selector);
        return td_arena_format(job->arena, "unable to get external metric %.*s/%.*s/%.*s: %.*s",
                               TD_STR_ARG(job->in->hpa->meta.namespace),
                               TD_STR_ARG(job->metric->name), TD_STR_ARG(selector),
                               TD_STR_ARG(error));
    }
    int64_t usage = is_average ? td_hpa_sum_averages(answer->values_milli, answer->value_count)
                               : td_hpa_sum_values(answer->values_milli, answer->value_count);
    return calculate_total(job, usage, is_average);
}

static void judge_external(struct td_hpa_job *job)
{
    td_str name = job->metric->name;
    td_str outer =
        td_arena_format(job->arena, "failed to get %.*s external metric value: ", TD_STR_ARG(name));
    bool is_average = job->metric->target.has_average_value;
    if (!is_average && !job->metric->target.has_value) {
        td_hpa_job_fail(job, outer, TD_STR_EMPTY,
                        TD_STR("invalid external metric source: neither a value target nor an "
                               "average value target was set"));
        return;
    }
    td_str problem = external_calculate(job, is_average);
    if (problem.len > 0) {
        td_str middle =
            is_average ? td_arena_format(job->arena,
                                         "failed to get %.*s external metric: ", TD_STR_ARG(name))
                       : td_arena_format(job->arena,
                                         "failed to get external metric %.*s: ", TD_STR_ARG(name));
        td_hpa_job_fail(job, outer, middle, problem);
        return;
    }
    job->result->description = external_description(job);
}

const struct td_hpa_judge td_hpa_judge_external = {judge_external, td_hpa_identifier_status};
