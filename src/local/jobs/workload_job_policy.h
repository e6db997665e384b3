/*
 * What the policies of a Job say: pure. podFailurePolicy judges a pod that failed, successPolicy
 * the indexes that succeeded, and two annotations carry from pod to pod how often an index has
 * failed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/str.h"
#include "local/jobs/workload_job_plan.h"

#define TD_JOB_INDEX_FAILURES "batch.kubernetes.io/job-index-failure-count"
#define TD_JOB_INDEX_IGNORED "batch.kubernetes.io/job-index-ignored-failure-count"

enum td_job_action {
    TD_JOB_ACTION_NONE, /* no rule is about it: it counts */
    TD_JOB_ACTION_COUNT,
    TD_JOB_ACTION_IGNORE,
    TD_JOB_ACTION_FAIL_INDEX,
    TD_JOB_ACTION_FAIL_JOB,
};

struct td_job_verdict {
    enum td_job_action action;
    td_str message; /* of FAIL_JOB; in the arena */
};

/* The first rule that the failed pod matches decides; `policy` may be NULL. */
struct td_job_verdict td_job_judge_pod(struct td_arena *arena, const struct td_json *policy,
                                       const struct td_json *pod);

/* Is it enough? `policy` may be NULL: never. The message is in the arena. */
bool td_job_judge_success(struct td_arena *arena, const struct td_json *policy,
                          const struct td_job_indexes *succeeded, td_str *ret_message);

/* A count of one of the annotations above; what is no such number is 0. */
int64_t td_job_failures(const struct td_json *pod, td_str annotation);
