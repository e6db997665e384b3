/*
 * Right sizes of a cluster from its Prometheus alone: what containers used (cAdvisor), whose they
 * are, what they ask for and when they ran out of memory (kube-state-metrics). The recommender
 * learns it as if it had been there, with a made-up VPA for each workload; no cluster is asked. A
 * series that is missing costs what it tells, and the report says so. One thread, the loop's.
 */
#pragma once

#include "control/inspect/recommend_once.h"
#include "control/prometheus/history.h"
#include "control/prometheus/prometheus.h"

struct td_loop;
struct td_recommend_prometheus;

#define TD_RECOMMEND_RESOLUTION (15 * TD_MINUTE) /* between two samples */

struct td_recommend_prometheus_options {
    struct td_loop *loop;
    struct td_prometheus *prometheus; /* borrowed */
    td_str namespace;                 /* empty: all */
    td_duration window;
    td_str estimator; /* empty: upstream's */
    struct td_right_limits limits;
    td_duration query_timeout;
    void (*progress)(void *context, const struct td_history_counts *counts); /* may be NULL */
};

/* `fn` is called once, from the loop, unless it is freed before. */
struct td_recommend_prometheus *
td_recommend_prometheus_start(const struct td_recommend_prometheus_options *options,
                              td_right_sizes_fn fn, void *context);
void td_recommend_prometheus_free(struct td_recommend_prometheus *sizes); /* not inside `fn` */
