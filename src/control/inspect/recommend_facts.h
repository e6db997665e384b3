/*
 * What a Prometheus with kube-state-metrics and cAdvisor knows of pods besides what they use: who
 * owns them, what they ask for, which run now, and when they ran out of memory. Asked one query
 * after another; a series that is not there leaves its facts empty and is named by `missing`. All
 * of it is in one arena. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "control/prometheus/prometheus.h"

struct td_facts;

enum td_fact {
    TD_FACT_POD_OWNERS,
    TD_FACT_REPLICA_SET_OWNERS,
    TD_FACT_JOB_OWNERS,
    TD_FACT_REQUESTS,
    TD_FACT_LIMITS,
    TD_FACT_RUNNING,
    TD_FACT_OOMS,
    TD_FACT_COUNT,
};

struct td_facts_options {
    struct td_prometheus *prometheus;
    td_str namespace; /* empty: all */
    td_time end;
    td_duration window;
    td_duration step; /* between two looks for OOMs */
    td_duration query_timeout;
};

struct td_fact_owner {
    td_str kind;
    td_str name;
};

/* Of one container of one pod. */
struct td_fact_container {
    double requests[2]; /* cores and bytes; below 0: none, or not known */
    double limits[2];
    bool is_running;
};

struct td_fact_oom {
    td_str namespace;
    td_str pod;
    td_str container;
    td_time time; /* the first look after it */
};

typedef void (*td_facts_fn)(void *context, int code, const struct td_error *err);

/* `done` is called once, from the loop. Texts are copied. */
struct td_facts *td_facts_start(const struct td_facts_options *options, td_facts_fn done,
                                void *context);
void td_facts_free(struct td_facts *facts);

/* How many series there were of a kind. */
size_t td_facts_count(const struct td_facts *facts, enum td_fact fact);
/* The controller of a pod, or the owner of a ReplicaSet or Job; NULL: none is known. */
const struct td_fact_owner *td_facts_owner(const struct td_facts *facts, enum td_fact fact,
                                           td_str namespace, td_str name);
/* NULL: nothing is known of it. */
const struct td_fact_container *td_facts_container(const struct td_facts *facts, td_str namespace,
                                                   td_str pod, td_str container);
/* By time. */
const struct td_fact_oom *td_facts_ooms(const struct td_facts *facts, size_t *ret_count);
