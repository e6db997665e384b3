/*
 * How many replicas the values of one metric ask for, and what the status says of it: a constant a
 * metric source (api/hpa/hpa_source.h), and what these share. Private to the evaluation. Texts are
 * upstream's and lie in the arena of the pass.
 */
#pragma once

#include "decide/horizontal/evaluate.h"

#define TD_HPA_TEXT_BYTES_MAX ((size_t)1 << 20) /* one message; longer ones are cut */

/* One metric on its way: what is asked, what came back, what is written. */
struct td_hpa_job {
    struct td_arena *arena;
    const struct td_hpa_evaluation_input *in;
    const struct td_hpa_metric *metric;
    const struct td_hpa_answer *answer;
    struct td_hpa_tolerance tolerance;
    struct td_hpa_metric_result *result;
};

struct td_hpa_judge {
    void (*judge)(struct td_hpa_job *job); /* fills the result */
    /* An entry of status.currentMetrics without its type; takes `current` in. */
    struct td_json *(*status)(struct td_arena *arena, const struct td_hpa_metric *metric,
                              struct td_json *current);
};

#define ROW(name, row) extern const struct td_hpa_judge td_hpa_judge_##row;
TD_HPA_SOURCES(ROW)
#undef ROW

/* One text after another. Every pass of every HPA makes a few of these, so they are not worth a
 * format. */
td_str td_hpa_join(struct td_arena *arena, td_str prefix, td_str text);

/* `replicas` are those that the ratio is about: of the scale's spec, or of its status. */
struct td_hpa_calc_options td_hpa_job_options(const struct td_hpa_job *job, int32_t replicas,
                                              bool is_cpu);

/* Reason FailedGet<type>Metric; the error is outer, middle and inner one after the other. */
void td_hpa_job_fail(struct td_hpa_job *job, td_str outer, td_str middle, td_str inner);

/* Why the calculation came to nothing; empty: it did not. */
td_str td_hpa_job_problem(const struct td_hpa_job *job);

/* The metric's own selector; false when it is no selector, with upstream's words. */
bool td_hpa_job_check_selector(const struct td_hpa_job *job, td_str *ret_error);

/* The status of a metric with a name and a selector: {"metric": ..., "current": ...}. */
struct td_json *td_hpa_identifier_status(struct td_arena *arena, const struct td_hpa_metric *metric,
                                         struct td_json *current);
