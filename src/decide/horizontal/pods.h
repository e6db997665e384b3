/*
 * Pods as the replica calculator judges them for one metric: one small struct a pod with its state,
 * its request and its sample, filled from the pod model and from what a metrics API answered. The
 * arrays belong to the caller; filling and judging allocate nothing. Texts are borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"
#include "model/pod.h"

enum td_hpa_request_problem {
    TD_HPA_REQUEST_OK,
    TD_HPA_REQUEST_MISSING,      /* a container has no request for the resource */
    TD_HPA_REQUEST_NO_CONTAINER, /* the container that the metric names is not in the pod */
    TD_HPA_REQUEST_NO_POD_LEVEL, /* a pod-level request is set, but not for the resource */
};

struct td_hpa_pod {
    td_str name;
    uint8_t phase; /* enum td_pod_phase */
    uint8_t ready; /* enum td_condition_status */
    bool is_terminating;
    bool has_sample;
    uint8_t request_problem;  /* enum td_hpa_request_problem */
    td_time start_time;       /* or TD_TIME_NONE */
    td_time ready_since;      /* or TD_TIME_NONE */
    int64_t request_milli;    /* 0 unless the metric is a utilization */
    td_str request_container; /* the one at fault, when there is a problem */
    int64_t sample_milli;
    td_time sample_time;
    td_duration sample_window;
};

/* The pods of one metric. */
struct td_hpa_view {
    const struct td_hpa_pod *pods;
    size_t count;
    size_t extra_count;     /* samples of names that are no pod: they count, as upstream has it */
    int64_t extra_milli;    /* their sum, saturated */
    size_t unowned_count;   /* pods that the selection strategy left out */
    bool is_owner_filtered; /* the strategy left only owned pods; there may be none */
};

/* One usage sample as a metrics API gave it. */
struct td_hpa_sample {
    td_str pod;
    int64_t value_milli; /* summed over containers */
    td_time at;
    td_duration window;
};

enum td_hpa_group {
    TD_HPA_GROUP_READY,
    TD_HPA_GROUP_UNREADY,
    TD_HPA_GROUP_MISSING,
    TD_HPA_GROUP_IGNORED,
};

/* Why a pod is in its group; the words are td_hpa_why_name. */
enum td_hpa_why {
    TD_HPA_WHY_COUNTED,
    TD_HPA_WHY_TERMINATING,
    TD_HPA_WHY_FAILED,
    TD_HPA_WHY_PENDING,
    TD_HPA_WHY_NO_SAMPLE,
    TD_HPA_WHY_NO_READINESS, /* no Ready condition, or not started */
    TD_HPA_WHY_STARTING,     /* inside the initialisation period and not ready */
    TD_HPA_WHY_OLD_SAMPLE,   /* inside it, and the sample began before the pod was ready */
    TD_HPA_WHY_NEVER_READY,
    TD_HPA_WHY_COUNT,
};

struct td_hpa_grouping {
    bool is_cpu; /* only then does readiness matter */
    td_time now;
    td_duration cpu_initialization;
    td_duration readiness_delay;
};

enum td_hpa_why td_hpa_pod_judge(const struct td_hpa_pod *pod,
                                 const struct td_hpa_grouping *grouping);
enum td_hpa_group td_hpa_why_group(enum td_hpa_why why);
td_str td_hpa_why_name(enum td_hpa_why why);

/* Running and ready: what Object and External Value metrics multiply with. */
size_t td_hpa_ready_count(const struct td_hpa_view *view);

/* State of a pod without request and sample. */
void td_hpa_pod_fill(struct td_hpa_pod *item, const struct td_pod *pod);

/* What the pod asks for: of `container`, or of the whole pod when that is empty. */
void td_hpa_pod_fill_request(struct td_hpa_pod *item, const struct td_pod *pod, td_str resource,
                             td_str container);

/* Gives every pod its sample (names of pods are unique); a name that comes twice counts with its
 * last one. What is left over goes to the view's extras, unless the view is owner-filtered. Table
 * memory is from the arena. */
void td_hpa_samples_join(struct td_arena *arena, struct td_hpa_pod *pods, size_t pod_count,
                         const struct td_hpa_sample *samples, size_t sample_count,
                         struct td_hpa_view *view);

/* a + b without leaving int64. */
static inline int64_t td_hpa_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}
