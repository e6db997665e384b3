/*
 * All metrics of one HPA together: each is judged alone, failures are remembered, the largest
 * proposal wins; a broken metric blocks scaling in but not holding or scaling out. Texts are
 * upstream's (Kubernetes 1.36), words and order. Pure; texts are in the arena of the pass.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hpa/hpa.h"
#include "base/arena.h"
#include "base/timefmt.h"
#include "decide/horizontal/replicas.h"
#include "decide/horizontal/status.h"

struct td_hpa_config {
    double tolerance;                    /* both directions; 0.1 */
    td_duration cpu_initialization;      /* 5 min */
    td_duration readiness_delay;         /* 30 s */
    td_duration downscale_stabilization; /* 5 min */
    bool is_tolerance_configurable;      /* gate HPAConfigurableTolerance */
    bool can_scale_to_zero;              /* gate HPAScaleToZero */
    bool is_ambiguity_owner_scoped;      /* ambiguity is judged on the pods that count */
    bool names_earlier_proposals;        /* as the reason of a growth that they ask for */
};

/* Upstream's defaults, but for ambiguity and reasons. */
struct td_hpa_config td_hpa_config_default(void);

/* An event to be emitted; texts are in the arena. */
struct td_hpa_event {
    bool is_warning;
    td_str reason;
    td_str message;
    td_str decision; /* the same in a few words; empty: nothing was decided */
};

struct td_hpa_events {
    struct td_arena *arena;
    struct td_hpa_event *items;
    size_t count;
    size_t cap;
};

void td_hpa_event_add(struct td_hpa_events *events, bool is_warning, td_str reason, td_str message);

/* What the metrics API answered for one metric. */
struct td_hpa_answer {
    bool is_failed;
    td_str error; /* the client's words, when it failed */
    struct td_instant timestamp;
    struct td_hpa_view view; /* pods with their samples; for Object and External the pods only */
    const int64_t *values_milli; /* External: all of them; Object: one */
    size_t value_count;
};

struct td_hpa_metric_result {
    bool is_failed;
    bool is_spec_fault; /* the HPA is at fault, not the world */
    td_str reason;      /* of condition and event, when it failed */
    td_str inner;       /* the text of condition and event */
    td_str error;       /* the same with its prefix */
    td_str description; /* "cpu resource utilization (percentage of request)" */
    struct td_instant timestamp;
    struct td_hpa_calculation calculation;
    bool is_average; /* usage is reported as averageValue, else as value */
};

struct td_hpa_evaluation_input {
    const struct td_hpa *hpa;
    const struct td_hpa_config *config;
    td_time now;
    int32_t spec_replicas;
    int32_t status_replicas;
    const struct td_hpa_answer *answers; /* one a metric */
};

struct td_hpa_evaluation {
    int32_t replicas; /* -1: nothing can be decided */
    td_str metric;    /* description of the winner */
    size_t winner;    /* its index; SIZE_MAX when there is none */
    struct td_instant timestamp;
    const struct td_hpa_metric_result *results; /* one a metric */
    size_t result_count;
    size_t failed_count;
    bool is_failed;     /* some metric failed; replicas may still be good */
    bool is_spec_fault; /* the first failure is one */
    td_str error;
};

struct td_hpa_evaluation td_hpa_evaluate(struct td_arena *arena,
                                         const struct td_hpa_evaluation_input *in,
                                         struct td_hpa_conditions *conditions,
                                         struct td_hpa_events *events);

/* status.currentMetrics: one entry a metric, {"type":""} for one that failed. */
struct td_json *td_hpa_current_metrics_json(struct td_arena *arena, const struct td_hpa *hpa,
                                            const struct td_hpa_evaluation *evaluation);

/* An amount of the metric's own unit as status shows it. */
td_str td_hpa_metric_amount(struct td_arena *arena, const struct td_hpa_metric *metric,
                            int64_t milli);
