/*
 * The replica calculator: from the pods and the values of one metric to a proposed count, with the
 * numbers that led there. The order of floating-point operations is upstream's, because rounding
 * shows at round percentages. O(p) over the pods, one pass, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hpa/hpa.h"
#include "decide/horizontal/pods.h"

/* Ratios inside [1 - down, 1 + up] change nothing. */
struct td_hpa_tolerance {
    double down;
    double up;
};

/* The cluster's tolerance, each direction overridden by the HPA's own when that is allowed. */
struct td_hpa_tolerance td_hpa_tolerance_of(const struct td_hpa *hpa, double cluster,
                                            bool is_configurable);
bool td_hpa_is_within(struct td_hpa_tolerance tolerance, double ratio);

enum td_hpa_calc_problem {
    TD_HPA_CALC_OK,
    TD_HPA_CALC_NO_PODS,
    TD_HPA_CALC_NO_READY_PODS_LISTED, /* no pods, where only their number was wanted */
    TD_HPA_CALC_NOT_OWNED,            /* pods match, but the target owns none of them */
    TD_HPA_CALC_NO_METRICS,
    TD_HPA_CALC_REQUEST, /* problem_pod says which */
    TD_HPA_CALC_NO_MATCH,
};

/* What decided the count. */
enum td_hpa_rule {
    TD_HPA_RULE_RATIO,     /* ceil(ratio * pods) */
    TD_HPA_RULE_TOLERANCE, /* the ratio is inside the tolerance */
    TD_HPA_RULE_SIDES,     /* pods without a sample would turn the direction around */
    TD_HPA_RULE_DIRECTION, /* the count of pods would turn the direction around */
    TD_HPA_RULE_FROM_ZERO, /* ceil(ratio), without pods and tolerance */
    TD_HPA_RULE_TOTAL,     /* ceil(usage / target) */
};

/* What a value is measured as. */
enum td_hpa_measure {
    TD_HPA_MEASURE_UTILIZATION, /* percent of requests */
    TD_HPA_MEASURE_AVERAGE,     /* of the samples of pods */
    TD_HPA_MEASURE_VALUE,       /* one for all */
    TD_HPA_MEASURE_PER_POD,     /* one for all, shared by replicas */
};

/* All that a value is judged by, without the value. */
struct td_hpa_basis {
    enum td_hpa_measure measure;
    int64_t target; /* in milli, or percent for a utilization */
    int32_t replicas;
    struct td_hpa_tolerance tolerance;
    bool has_pods; /* of VALUE: any at all */
    size_t ready;
    size_t unready;
    size_t missing;
    size_t extra;            /* samples of names that are no pod */
    int64_t request;         /* of ready pods */
    int64_t missing_request; /* what pods without a sample ask for */
    int64_t missing_fill;    /* and what they count as on the way down */
    int64_t unready_request;
};

struct td_hpa_calculation {
    enum td_hpa_calc_problem problem;
    const struct td_hpa_pod *problem_pod; /* of TD_HPA_CALC_REQUEST */
    int32_t replicas;
    bool has_utilization;
    int32_t utilization;  /* percent, first pass */
    int64_t usage_milli;  /* average or value as status reports it */
    int64_t target_milli; /* or percent, for a utilization */
    double ratio;         /* first pass */
    double ratio_again;   /* with pods that have no sample filled in */
    bool is_filled_in;    /* ratio_again decided */
    enum td_hpa_rule rule;
    size_t factor;                      /* pods that the ratio was multiplied with */
    size_t why_count[TD_HPA_WHY_COUNT]; /* pods by what became of them */
    size_t extra_count;                 /* samples of names that are no pod */
    size_t unowned_count;
    struct td_hpa_basis basis;
};

struct td_hpa_calc_options {
    int32_t replicas; /* of scale.spec; of scale.status for averages over the whole */
    struct td_hpa_tolerance tolerance;
    struct td_hpa_grouping grouping;
};

/* Percent of requests. */
struct td_hpa_calculation td_hpa_calc_utilization(const struct td_hpa_view *view,
                                                  const struct td_hpa_calc_options *options,
                                                  int32_t target_percent);
/* Plain average of samples. */
struct td_hpa_calculation td_hpa_calc_average(const struct td_hpa_view *view,
                                              const struct td_hpa_calc_options *options,
                                              int64_t target_milli);
/* One value for all, times the ready pods. */
struct td_hpa_calculation td_hpa_calc_value(const struct td_hpa_view *view,
                                            const struct td_hpa_calc_options *options,
                                            int64_t usage_milli, int64_t target_milli);
/* One value for all, shared by the replicas that status names. */
struct td_hpa_calculation td_hpa_calc_per_pod(const struct td_hpa_calc_options *options,
                                              int64_t usage_milli, int64_t target_milli);

/* The count that another value would ask for, other things equal. `shown` is in the unit of the
 * target, as status shows it, which cuts fractions off: the least usage shown so, or the most. */
int32_t td_hpa_calc_again(const struct td_hpa_basis *basis, int64_t shown, bool is_most);

/* External metrics give several values. Saturated sums stop, so that a later negative value does
 * not pull them back; for averages a negative sum counts as an overflow, as upstream has it. */
int64_t td_hpa_sum_values(const int64_t *values_milli, size_t count);
int64_t td_hpa_sum_averages(const int64_t *values_milli, size_t count);

/* The calculator's words: "missing request for cpu in container app of Pod web-1". */
void td_hpa_calc_write_problem(const struct td_hpa_calculation *calculation, td_str resource,
                               const struct td_hpa *hpa, struct td_buf *out);

/* To whole numbers, the nearest one when outside; not a number is 0. */
int32_t td_hpa_to_int32(double value);
