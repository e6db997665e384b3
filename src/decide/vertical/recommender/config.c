#include "decide/vertical/recommender/config.h"

#include "base/assert.h"

#define DAY (24 * TD_HOUR)

struct td_vertical_config td_vertical_config_default(void)
{
    struct td_vertical_config config = {
        .cpu.half_life = DAY,
        .memory.half_life = DAY,
        .memory_interval = DAY,
        .memory_interval_count = 8,
        .oom_bump_up_ratio = 1.2,
        .oom_min_bump_up = 100.0 * 1024 * 1024,
        .margin_fraction = 0.15,
        .pod_min_cpu_milli = 25,
        .pod_min_memory_mib = 250,
        .target_cpu_percentile = 0.9,
        .target_memory_percentile = 0.9,
        .lower_cpu_percentile = 0.5,
        .lower_memory_percentile = 0.5,
        .upper_cpu_percentile = 0.95,
        .upper_memory_percentile = 0.95,
        .confidence_cpu = DAY,
        .confidence_memory = DAY,
        .round_cpu_milli = 1,
        .round_memory_bytes = 1,
    };
    int code = td_bucketing_exponential(1000.0, 0.01, 1.05, 0.0001, &config.cpu.scheme, NULL);
    td_assert(code == 0);
    code = td_bucketing_exponential(1e12, 1e7, 1.05, 0.0001, &config.memory.scheme, NULL);
    td_assert(code == 0);
    return config;
}

int64_t td_amount_from_double(double value)
{
    if (value > (double)TD_AMOUNT_MAX) {
        return TD_AMOUNT_MAX;
    }
    return value > 0 ? (int64_t)value : 0;
}

int64_t td_amount_scale(int64_t amount, double factor)
{
    return td_amount_from_double((double)amount * factor);
}
