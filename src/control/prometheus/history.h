/*
 * What containers used over a span of time, read from Prometheus step by step and handed on in time
 * order, CPU and memory of a step together, so that it can be learnt from as if it had been
 * measured live. Answers are asked for in pieces of time that fit into memory: as many steps as
 * TD_HISTORY_STEPS_MAX, fewer when there are too many points, asked for again then. Handing on is
 * done in slices of the loop. A failure ends it; what was handed on until then cannot be taken
 * back by it. One thread, the loop's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "control/prometheus/prometheus.h"
#include "decide/vertical/recommender/aggregate.h"

struct td_error;
struct td_history;
struct td_loop;

struct td_history_options {
    struct td_loop *loop;
    struct td_prometheus *prometheus;
    td_str cpu_query; /* in cores */
    td_str memory_query;
    td_str namespace_label;
    td_str pod_label;
    td_str container_label;
    td_time start;
    td_time end; /* included when it is on a step */
    td_duration step;
    td_duration query_timeout; /* of one query */
    td_duration budget;        /* of all of them, machine's time; 0: none */
    size_t points_max;         /* 0: TD_HISTORY_POINTS_MAX */
};

struct td_history_counts {
    size_t series;     /* that were answered, each piece for itself */
    size_t containers; /* of which something was handed on */
    size_t samples;
    size_t steps_done;
    size_t steps;
};

struct td_history_handler {
    /* A container that has a series; what is returned comes back with its samples, NULL: it is not
     * wanted, and may be asked for again. Texts are valid during the call. */
    void *(*container)(void *context, td_str namespace, td_str pod, td_str container);
    /* Milli-cores or bytes, cut to whole ones as upstream does. */
    void (*sample)(void *context, void *container, enum td_learn_resource resource, td_time time,
                   int64_t amount);
    void (*progress)(void *context, const struct td_history_counts *counts); /* may be NULL */
    /* Once, from the loop; the history may be freed in it. */
    void (*done)(void *context, int code, const struct td_error *err);
};

/* Texts of the options are copied. */
struct td_history *td_history_start(const struct td_history_options *options,
                                    const struct td_history_handler *handler, void *context);
void td_history_free(struct td_history *history); /* ends it without a callback */
struct td_history_counts td_history_counts(const struct td_history *history);
