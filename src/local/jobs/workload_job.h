/*
 * Between the files of the Job controller: what it does (workload_job.c) and how its pods are
 * counted exactly once (workload_job_track.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "local/jobs/workload_job_plan.h"
#include "local/jobs/workload_job_policy.h"
#include "local/workloads/workload_private.h"

/* A pod that failed and is not counted yet. */
struct td_job_failure {
    struct td_child *pod;
    int64_t index;    /* or -1 */
    int64_t failures; /* of its index before it, that count */
    int64_t ignored;  /* and that do not */
    bool is_counted;
    bool ends_index; /* the index is not tried again */
    bool is_held;    /* kept until its index has another pod, which inherits the numbers */
};

struct td_job {
    struct td_workload_item *item;
    struct td_json *status; /* being written */
    struct td_children pods;
    struct td_children active;
    bool is_indexed;
    bool is_suspended;
    bool replaces_failed_only;            /* podReplacementPolicy Failed */
    bool is_news;                         /* pods ended that the status does not know of */
    const struct td_json *failure_policy; /* or NULL */
    int64_t index_limit;                  /* failures that each index may have; -1: not given */
    int64_t parallelism;
    int64_t completions; /* -1: not given */
    int64_t succeeded;
    int64_t failed; /* all that count, those that are held too */
    int64_t failed_listed;
    int64_t ready;
    int64_t terminating;
    int64_t active_count;          /* as it will be after this pass */
    struct td_job_indexes indexes; /* that succeeded */
    struct td_job_indexes failed_indexes;
    struct td_job_failure *failures; /* sorted by index */
    size_t failure_count;
    td_str fail_message; /* of a pod that makes the Job fail, or empty */
    /* How it ends: empty while it does not. */
    td_str end_type; /* "Complete" or "Failed" */
    td_str reason;
    td_str message;
};

/* The index of a pod, or -1. */
int64_t td_job_pod_index(const struct td_child *pod);

/* Is the Job over? Its type: "Complete", "Failed" or empty. */
td_str td_job_end_of(const struct td_json *status);

/* Reads the pods: who ended and is not counted yet is put on the list of the status. */
void td_job_track(struct td_job *job);

/* The pod whose numbers the next one of that index inherits, or NULL. */
const struct td_job_failure *td_job_held(const struct td_job *job, int64_t index);

/* The Job ends: pods that were held count, and those that it takes away when it failed. Before they
 * are deleted. */
void td_job_close(struct td_job *job);

/* Writes the status, lets counted pods go, counts them, and ends the Job when all is done. */
void td_job_settle(struct td_job *job);

/* Takes the mark off a pod: it is counted, or not to be. */
void td_job_release_pod(struct td_workloads *all, td_str ns, td_str name);

/* A condition; a false one is only written over a true one. True when something changed. */
bool td_job_set_condition(struct td_job *job, td_str type, bool is_true, td_str reason,
                          td_str message);
