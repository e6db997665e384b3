/*
 * What the vertical recommender can be told: upstream's flags with upstream's defaults, and one
 * switch of ours. Plain values, checked once when they are read from flags; everything that learns
 * or estimates takes a pointer to one config that lives as long as it does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decide/vertical/estimator/decaying.h"

#define TD_AMOUNT_MAX ((int64_t)100000000000000) /* 10^14: the largest amount of a resource */

struct td_vertical_config {
    struct td_decay cpu;    /* cores */
    struct td_decay memory; /* bytes */
    td_duration memory_interval;
    int64_t memory_interval_count;
    double oom_bump_up_ratio;
    double oom_min_bump_up; /* bytes */
    bool per_vpa_config;    /* gate PerVPAConfig */

    double margin_fraction;
    double pod_min_cpu_milli;
    double pod_min_memory_mib;
    double target_cpu_percentile;
    double target_memory_percentile;
    double lower_cpu_percentile;
    double lower_memory_percentile;
    double upper_cpu_percentile;
    double upper_memory_percentile;
    td_duration confidence_cpu;
    td_duration confidence_memory;

    bool humanize_memory;
    int64_t round_cpu_milli;
    int64_t round_memory_bytes;
    bool cpu_integer_post_processor;

    /* Learn exactly as upstream does, its defects included: one aggregate per label set, histories
     * that a changed selector throws away, settings that stick. For replays that compare policies
     * and for the golden cases; what differs without it is listed in docs/deviations.md. */
    bool is_upstream_exact;
};

struct td_vertical_config td_vertical_config_default(void);

/* A float as an amount: truncated, 0 to TD_AMOUNT_MAX, NaN as 0. */
int64_t td_amount_from_double(double value);

/* amount * factor as an amount. */
int64_t td_amount_scale(int64_t amount, double factor);
