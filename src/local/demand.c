#include "local/demand.h"

/* Cpu and memory of one entry have noise of their own. */
#define DEMAND_MEMORY_SEED UINT64_C(0x5bd1e995)

size_t td_demand_role(const struct td_demand *demand, td_str value)
{
    size_t i = 0;
    while (i < demand->role_count && !td_str_equal(demand->roles[i].value, value)) {
        i++;
    }
    return i;
}

/* The series that an entry's containers of that role follow; NULL: none. */
static const struct td_series *demand_series(const struct td_demand *demand, size_t role,
                                             bool is_memory)
{
    switch (demand->driver) {
    case TD_DEMAND_PER_POD:
    case TD_DEMAND_RUN:
        return is_memory ? &demand->memory : &demand->cpu;
    case TD_DEMAND_ROLES:
        if (role < demand->role_count) {
            return is_memory ? &demand->roles[role].memory : &demand->roles[role].cpu;
        }
        return NULL;
    case TD_DEMAND_REQUESTS:
        break;
    }
    return NULL;
}

void td_demand_cpu_level(const struct td_demand *demand, size_t role, td_duration since,
                         struct td_demand_level *level)
{
    const struct td_series *series = demand_series(demand, role, false);
    level->cpu_milli = series ? td_series_plain(series, since) : 0;
    level->cpu_noise = series ? series->noise : 0;
}

void td_demand_memory_level(const struct td_demand *demand, size_t role, td_duration since,
                            struct td_demand_level *level)
{
    const struct td_series *series = demand_series(demand, role, true);
    level->memory_bytes = series ? td_series_plain(series, since) : 0;
    level->memory_noise = series ? series->noise : 0;
}

static void demand_sooner(const struct td_series *series, td_duration since, td_duration *next)
{
    td_duration jump = td_series_next_jump(series, since);
    *next = jump < *next ? jump : *next;
}

td_duration td_demand_next_jump(const struct td_demand *demand, td_duration since)
{
    td_duration next = INT64_MAX;
    switch (demand->driver) {
    case TD_DEMAND_PER_POD:
    case TD_DEMAND_RUN:
        demand_sooner(&demand->cpu, since, &next);
        demand_sooner(&demand->memory, since, &next);
        break;
    case TD_DEMAND_ROLES:
        for (size_t i = 0; i < demand->role_count; i++) {
            demand_sooner(&demand->roles[i].cpu, since, &next);
            demand_sooner(&demand->roles[i].memory, since, &next);
        }
        break;
    case TD_DEMAND_REQUESTS:
        if (!demand->has_source) {
            demand_sooner(&demand->requests, since, &next);
        }
        break;
    }
    return next;
}

/* A straight fall is on average what it is in its middle. */
double td_demand_warmth(const struct td_demand *demand, const struct td_demand_moment *moment)
{
    if (demand->warmup_factor <= 1 || moment->warm_age >= demand->warmup_time) {
        return 1;
    }
    if (moment->warm_age < 0) {
        return demand->warmup_factor;
    }
    double middle = (double)moment->warm_age + (double)moment->span / 2;
    double left = 1 - middle / (double)demand->warmup_time;
    return left > 0 ? 1 + (demand->warmup_factor - 1) * left : 1;
}

static double demand_noisy(double value, double noise, struct td_series_beat beat, uint64_t seed)
{
    if (noise <= 0) {
        return value;
    }
    value *= 1 + noise * td_series_noise(beat, seed);
    return value > 0 ? value : 0;
}

struct td_want td_demand_want(const struct td_demand *demand, const struct td_demand_level *level,
                              const struct td_demand_moment *moment)
{
    struct td_want want = {.cpu_milli = demand->idle_cpu_milli,
                           .memory_bytes = demand->idle_memory_bytes};
    bool is_starting = moment->age < moment->startup_time;
    if (is_starting && demand->startup_cpu_milli > want.cpu_milli) {
        want.cpu_milli = demand->startup_cpu_milli;
    }
    if (demand->driver == TD_DEMAND_REQUESTS) {
        /* 1 ms in each second is 1 milli-core. */
        want.cpu_milli +=
            moment->request_rate * demand->request_cpu_ms * td_demand_warmth(demand, moment);
        want.memory_bytes += moment->request_rate * demand->request_memory_bytes;
    } else if (!is_starting) {
        want.cpu_milli +=
            demand_noisy(level->cpu_milli, level->cpu_noise, moment->beat, moment->seed) *
            td_demand_warmth(demand, moment);
    }
    if (demand->driver != TD_DEMAND_REQUESTS &&
        moment->age + moment->span >= moment->startup_time) {
        want.memory_bytes += demand_noisy(level->memory_bytes, level->memory_noise, moment->beat,
                                          moment->seed + DEMAND_MEMORY_SEED);
    }
    if (demand->leak_bytes_per_hour > 0) {
        want.memory_bytes +=
            demand->leak_bytes_per_hour * ((double)(moment->age + moment->span) / (double)TD_HOUR);
    }
    return want;
}
