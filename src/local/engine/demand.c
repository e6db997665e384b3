/*
 * Which series an entry has for a role, their levels at a moment, and when one of them jumps next.
 */
#include "local/engine/demand.h"

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

static bool demand_is_constant(const struct td_series *series)
{
    return series->shape == TD_SERIES_CONSTANT;
}

/* The noise of requests is the stream's, so it is part of the level. */
bool td_demand_is_steady(const struct td_demand *demand)
{
    bool is_steady = true;
    switch (demand->driver) {
    case TD_DEMAND_PER_POD:
    case TD_DEMAND_RUN:
        return demand_is_constant(&demand->cpu) && demand_is_constant(&demand->memory);
    case TD_DEMAND_ROLES:
        for (size_t i = 0; i < demand->role_count; i++) {
            is_steady = is_steady && demand_is_constant(&demand->roles[i].cpu) &&
                        demand_is_constant(&demand->roles[i].memory);
        }
        return is_steady;
    case TD_DEMAND_REQUESTS:
        return !demand->has_source && demand_is_constant(&demand->requests) &&
               demand->requests.noise <= 0;
    }
    return false;
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

void td_demand_level_init(const struct td_demand *demand, struct td_demand_level *level)
{
    bool is_stream = demand->driver == TD_DEMAND_REQUESTS;
    *level = (struct td_demand_level){
        .idle_cpu_milli = demand->idle_cpu_milli,
        .idle_memory_bytes = demand->idle_memory_bytes,
        .startup_cpu_milli = demand->startup_cpu_milli,
        .warmup_factor = demand->warmup_factor,
        .warmup_time = demand->warmup_time,
        .leak_bytes_per_hour = demand->leak_bytes_per_hour,
        .request_cpu_ms = is_stream ? demand->request_cpu_ms : 0,
        .request_memory_bytes = is_stream ? demand->request_memory_bytes : 0,
    };
}

/* A straight fall is on average what it is in its middle. */
double td_demand_warmth(const struct td_demand_level *level, const struct td_demand_moment *moment)
{
    if (level->warmup_factor <= 1 || moment->warm_age >= level->warmup_time) {
        return 1;
    }
    if (moment->warm_age < 0) {
        return level->warmup_factor;
    }
    double middle = (double)moment->warm_age + (double)moment->span / 2;
    double left = 1 - middle / (double)level->warmup_time;
    return left > 0 ? 1 + (level->warmup_factor - 1) * left : 1;
}

static double demand_noisy(double value, double noise, struct td_series_beat beat, uint64_t seed)
{
    if (noise <= 0) {
        return value;
    }
    value *= 1 + noise * td_series_noise(beat, seed);
    return value > 0 ? value : 0;
}

/* A stream has no level of its own and the others have no requests, so both can be added. */
struct td_want td_demand_want(const struct td_demand_level *level,
                              const struct td_demand_moment *moment)
{
    double cpu = level->idle_cpu_milli;
    double memory = level->idle_memory_bytes;
    double work = moment->request_rate * level->request_cpu_ms; /* 1 ms a second: 1 milli-core */
    if (moment->age < moment->startup_time) {
        cpu = level->startup_cpu_milli > cpu ? level->startup_cpu_milli : cpu;
    } else if (level->cpu_milli > 0) {
        work += demand_noisy(level->cpu_milli, level->cpu_noise, moment->beat, moment->seed);
    }
    if (moment->age + moment->span >= moment->startup_time && level->memory_bytes > 0) {
        memory += demand_noisy(level->memory_bytes, level->memory_noise, moment->beat,
                               moment->seed + DEMAND_MEMORY_SEED);
    }
    memory += moment->request_rate * level->request_memory_bytes;
    if (level->leak_bytes_per_hour > 0) {
        memory +=
            level->leak_bytes_per_hour * ((double)(moment->age + moment->span) / (double)TD_HOUR);
    }
    return (struct td_want){.cpu_milli = cpu + work * td_demand_warmth(level, moment),
                            .memory_bytes = memory};
}
