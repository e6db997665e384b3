/* Hand-made HPAs and pods for tests of the horizontal deciders. */
#pragma once

#include <stdint.h>

#include "decide/horizontal/reconcile.h"

#define TEST_NOW ((td_time)1772000000 * TD_SECOND)

static inline uint64_t test_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* A number below `limit`, the next of a sequence. */
static inline int32_t test_below(uint64_t *seed, int32_t limit)
{
    *seed = test_mix(*seed);
    return (int32_t)(*seed % (uint64_t)limit);
}

static inline struct td_hpa test_hpa(int32_t min, int32_t max)
{
    return (struct td_hpa){
        .meta = {.namespace = TD_STR("shop"), .name = TD_STR("web")},
        .target = {.api_version = TD_STR("apps/v1"),
                   .kind = TD_STR("Deployment"),
                   .name = TD_STR("web")},
        .has_min_replicas = true,
        .min_replicas = min,
        .max_replicas = max,
    };
}

static inline struct td_hpa_pod test_pod(td_str name, int64_t request_milli, int64_t usage_milli)
{
    return (struct td_hpa_pod){
        .name = name,
        .phase = TD_POD_RUNNING,
        .ready = TD_CONDITION_TRUE,
        .has_sample = true,
        .start_time = TEST_NOW - TD_HOUR,
        .ready_since = TEST_NOW - TD_HOUR,
        .request_milli = request_milli,
        .sample_milli = usage_milli,
        .sample_time = TEST_NOW,
        .sample_window = 30 * TD_SECOND,
    };
}

static inline struct td_hpa_calc_options test_options(int32_t replicas)
{
    return (struct td_hpa_calc_options){
        .replicas = replicas,
        .tolerance = {.down = 0.1, .up = 0.1},
        .grouping = {.is_cpu = true,
                     .now = TEST_NOW,
                     .cpu_initialization = 5 * TD_MINUTE,
                     .readiness_delay = 30 * TD_SECOND},
    };
}
