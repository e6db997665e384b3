/*
 * Metrics that each pod has a value of: Resource and ContainerResource, whose average is held
 * against a share of the requests or an amount, and Pods, whose average is held against an amount.
 */
#include "decide/horizontal/judge.h"

/* ---- Resource and ContainerResource ---- */

static td_str resource_calculate(struct td_hpa_job *job)
{
    const struct td_hpa_metric *metric = job->metric;
    const struct td_hpa_target *target = &metric->target;
    if (job->answer->is_failed) {
        return td_arena_format(job->arena, "unable to get metrics for resource %.*s: %.*s",
                               TD_STR_ARG(metric->name), TD_STR_ARG(job->answer->error));
    }
    bool is_cpu = td_str_equal(metric->name, TD_STR("cpu"));
    struct td_hpa_calc_options options = td_hpa_job_options(job, job->in->spec_replicas, is_cpu);
    job->result->calculation =
        target->has_average_value
            ? td_hpa_calc_average(&job->answer->view, &options, target->average_value_milli)
            : td_hpa_calc_utilization(&job->answer->view, &options, target->average_utilization);
    return td_hpa_job_problem(job);
}

/* Why there is no count; empty: there is one, described by the name and one of the two texts. */
static td_str resource_judge(struct td_hpa_job *job, td_str of_requests)
{
    const struct td_hpa_target *target = &job->metric->target;
    bool is_raw = target->has_average_value;
    if (!is_raw && !target->has_average_utilization) {
        return TD_STR("invalid resource metric source: neither an average utilization target nor "
                      "an average value (usage) target was set");
    }
    td_str problem = resource_calculate(job);
    if (problem.len > 0) {
        return td_arena_format(job->arena, "failed to get %.*s %s: %.*s",
                               TD_STR_ARG(job->metric->name), is_raw ? "usage" : "utilization",
                               TD_STR_ARG(problem));
    }
    job->result->description =
        td_hpa_join(job->arena, job->metric->name, is_raw ? TD_STR(" resource") : of_requests);
    job->result->timestamp = job->answer->timestamp;
    job->result->is_average = true;
    return TD_STR_EMPTY;
}

static void judge_resource(struct td_hpa_job *job)
{
    td_str problem = resource_judge(job, TD_STR(" resource utilization (percentage of request)"));
    if (problem.len > 0) {
        td_hpa_job_fail(job,
                        td_arena_format(job->arena, "failed to get %.*s resource metric value: ",
                                        TD_STR_ARG(job->metric->name)),
                        TD_STR_EMPTY, problem);
    }
}

static void judge_container_resource(struct td_hpa_job *job)
{
    td_str problem =
        resource_judge(job, TD_STR(" container resource utilization (percentage of request)"));
    if (problem.len > 0) {
        td_hpa_job_fail(job,
                        td_arena_format(job->arena, "failed to get %.*s container metric value: ",
                                        TD_STR_ARG(job->metric->container)),
                        TD_STR_EMPTY, problem);
    }
}

static struct td_json *status_resource(struct td_arena *arena, const struct td_hpa_metric *metric,
                                       struct td_json *current)
{
    struct td_json *status = td_json_new_object(arena);
    td_json_set_str(arena, status, TD_STR("name"), metric->name);
    td_json_set(arena, status, TD_STR("current"), current);
    return status;
}

static struct td_json *status_container_resource(struct td_arena *arena,
                                                 const struct td_hpa_metric *metric,
                                                 struct td_json *current)
{
    struct td_json *status = status_resource(arena, metric, current);
    td_json_set_str(arena, status, TD_STR("container"), metric->container);
    return status;
}

const struct td_hpa_judge td_hpa_judge_resource = {judge_resource, status_resource};
const struct td_hpa_judge td_hpa_judge_container_resource = {judge_container_resource,
                                                             status_container_resource};

/* ---- Pods ---- */

static td_str pods_calculate(struct td_hpa_job *job)
{
    td_str problem;
    if (!td_hpa_job_check_selector(job, &problem)) {
        return problem;
    }
    if (job->answer->is_failed) {
        return td_arena_format(job->arena, "unable to get metric %.*s: %.*s",
                               TD_STR_ARG(job->metric->name), TD_STR_ARG(job->answer->error));
    }
    struct td_hpa_calc_options options = td_hpa_job_options(job, job->in->spec_replicas, false);
    job->result->calculation =
        td_hpa_calc_average(&job->answer->view, &options, job->metric->target.average_value_milli);
    return td_hpa_job_problem(job);
}

static void judge_pods(struct td_hpa_job *job)
{
    td_str problem = pods_calculate(job);
    if (problem.len > 0) {
        td_hpa_job_fail(job, TD_STR("failed to get pods metric value: "), TD_STR_EMPTY, problem);
        return;
    }
    job->result->description = td_hpa_join(job->arena, TD_STR("pods metric "), job->metric->name);
    job->result->timestamp = job->answer->timestamp;
    job->result->is_average = true;
}

const struct td_hpa_judge td_hpa_judge_pods = {judge_pods, td_hpa_identifier_status};
