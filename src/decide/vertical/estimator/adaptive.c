/*
 * State and recommendation of the adaptive estimator.
 *
 * CPU: five-minute slots of the last day, each worth half way between its mean and its highest
 * sample. Of a few high quantiles the cheapest is taken, where a request costs what it reserves and
 * time above it costs overrun_cost times as much.
 *
 * Memory: what may not be exceeded is a peak, so peaks are all that is kept: of the last 24
 * observed hours, with a margin; of the last days, each day counting for a little less; and what an
 * OOM has shown to be needed, which stays for weeks.
 *
 * Only observed slots, hours and days are stored. A job that runs once a week is sized by its runs,
 * and a gap forgets nothing.
 */
#include "decide/vertical/estimator/adaptive.h"

#include <stdlib.h>

#define SLOT_SECONDS 300
#define HOUR_SECONDS 3600
#define DAY_SECONDS 86400
#define WHOLE 1000 /* permille */
#define MIB_100 ((int64_t)104857600)

static_assert(TD_ADAPTIVE_SLOT_SAMPLES_MAX * TD_ADAPTIVE_CPU_MAX <= INT64_MAX / 4,
              "a slot's sum fits");

#define CONSTANT_PARAMS                                                                            \
    .overrun_cost = 10, .throttle_at = 970, .throttle_bump = 1250, .cpu_young = 100,               \
    .mem_margin = 100, .mem_young = 150, .young_hours = 48, .day_decay = 20, .min_cpu = 10,        \
    .min_mem = MIB_100, .bumps = {1200, 1500, 2000}, .bump_min = MIB_100, .oom_divisor = WHOLE,    \
    .floor_days = 28, .floor_decay = 50, .cpu_up = 100, .cpu_down = 200, .mem_up = 40,             \
    .mem_down = 100, .cpu_step = 200, .mem_step = 150, .wait = 43200, .cpu_wait = 14400

static const struct td_adaptive_params adaptive_params[] = {
    [TD_RISK_BALANCED] = {.arms = {970, 940, 900}, .arm_count = 3, CONSTANT_PARAMS},
    [TD_RISK_CAREFUL] = {.arms = {990, 970, 900}, .arm_count = 3, CONSTANT_PARAMS},
    [TD_RISK_FRUGAL] = {.arms = {920, 900, 850}, .arm_count = 3, CONSTANT_PARAMS},
};

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smallest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t clamp(int64_t value, int64_t max)
{
    return value < 0 ? 0 : smallest(value, max);
}

const struct td_adaptive_params *td_adaptive_params_of(enum td_adaptive_risk risk)
{
    return &adaptive_params[risk];
}

const char *td_adaptive_reason_name(enum td_adaptive_reason reason)
{
    static const char *const names[] = {
        [TD_ADAPTIVE_NO_DATA] = "no-data",       [TD_ADAPTIVE_MINIMUM] = "minimum",
        [TD_ADAPTIVE_QUANTILE] = "quantile",     [TD_ADAPTIVE_RECENT_PEAK] = "recent-peak",
        [TD_ADAPTIVE_OLDER_PEAK] = "older-peak", [TD_ADAPTIVE_OOM] = "oom",
    };
    return names[reason];
}

int64_t td_adaptive_seconds(td_time time)
{
    return time / TD_SECOND - (time % TD_SECOND < 0 ? 1 : 0);
}

void td_adaptive_init(struct td_adaptive *state)
{
    *state = (struct td_adaptive){.first = -1, .slot = -1, .hour = -1, .day = -1};
}

int64_t td_adaptive_slot_value(int64_t sum, int64_t samples, int64_t top)
{
    int64_t value = (sum + top * samples + 2 * samples - 1) / (2 * samples);
    return smallest(value, TD_ADAPTIVE_CPU_MAX);
}

int64_t td_adaptive_demand(const struct td_adaptive_params *params, int64_t milli,
                           int64_t limit_milli)
{
    int64_t value = smallest(milli, TD_ADAPTIVE_CPU_MAX);
    int64_t limit = smallest(limit_milli, 2 * TD_ADAPTIVE_CPU_MAX);
    if (limit > 0 && value * WHOLE >= limit * params->throttle_at) {
        value = smallest(value * params->throttle_bump / WHOLE, TD_ADAPTIVE_CPU_MAX);
    }
    return value;
}

static int64_t open_value(const struct td_adaptive *state)
{
    return td_adaptive_slot_value(state->slot_sum, state->slot_samples, state->slot_top);
}

static void slot_close(struct td_adaptive *state)
{
    size_t end = ((size_t)state->cpu_start + state->cpu_count) % TD_ADAPTIVE_SLOTS;
    state->cpu[end] = (uint32_t)open_value(state);
    if (state->cpu_count < TD_ADAPTIVE_SLOTS) {
        state->cpu_count++;
    } else {
        state->cpu_start = (uint16_t)((state->cpu_start + 1) % TD_ADAPTIVE_SLOTS);
    }
}

/* One more peak into a ring of `cap` places. */
static void ring_append(uint64_t *ring, uint8_t *start, uint8_t *count, uint8_t cap, int64_t peak)
{
    ring[(*start + *count) % cap] = (uint64_t)peak;
    if (*count < cap) {
        (*count)++;
    } else {
        *start = (uint8_t)((*start + 1) % cap);
    }
}

void td_adaptive_cpu(struct td_adaptive *state, const struct td_adaptive_params *params, int64_t t,
                     int64_t milli, int64_t limit_milli)
{
    int64_t time = smallest(t, TD_ADAPTIVE_MAX);
    int64_t slot = time / SLOT_SECONDS;
    if (milli < 0 || t < 0 || slot < state->slot) {
        return;
    }
    int64_t value = td_adaptive_demand(params, milli, limit_milli);
    if (state->first < 0) {
        state->first = time;
    }
    if (slot > state->slot) {
        if (state->slot_samples > 0) {
            slot_close(state);
        }
        state->slot = slot;
        state->slot_sum = 0;
        state->slot_samples = 0;
        state->slot_top = 0;
    }
    if (state->slot_samples < TD_ADAPTIVE_SLOT_SAMPLES_MAX) {
        state->slot_sum += value;
        state->slot_samples++;
    }
    state->slot_top = largest(state->slot_top, value);
}

void td_adaptive_memory(struct td_adaptive *state, int64_t t, int64_t bytes)
{
    int64_t time = smallest(t, TD_ADAPTIVE_MAX);
    int64_t hour = time / HOUR_SECONDS;
    int64_t day = time / DAY_SECONDS;
    if (bytes < 0 || t < 0 || hour < state->hour) {
        return;
    }
    int64_t value = smallest(bytes, TD_ADAPTIVE_MAX);
    if (state->first < 0) {
        state->first = time;
    }
    if (hour > state->hour) {
        if (state->hour >= 0) {
            ring_append(state->hours, &state->hours_start, &state->hours_count, TD_ADAPTIVE_HOURS,
                        state->hour_peak);
            state->seen = smallest(state->seen + 1, TD_ADAPTIVE_SEEN_MAX);
        }
        state->hour = hour;
        state->hour_peak = 0;
    }
    if (day > state->day) {
        if (state->day >= 0) {
            ring_append(state->days, &state->days_start, &state->days_count, TD_ADAPTIVE_DAYS,
                        state->day_peak);
        }
        state->day = day;
        state->day_peak = 0;
    }
    state->hour_peak = largest(state->hour_peak, value);
    state->day_peak = largest(state->day_peak, value);
}

int64_t td_adaptive_floor(const struct td_adaptive *state, const struct td_adaptive_params *params,
                          int64_t now)
{
    int64_t age_days = largest(0, clamp(now, TD_ADAPTIVE_MAX) - state->oom_time) / DAY_SECONDS;
    int64_t late_days = smallest(largest(0, age_days - params->floor_days), WHOLE);
    int64_t share = largest(0, WHOLE - params->floor_decay * late_days);
    return state->oom_floor * share / WHOLE;
}

void td_adaptive_oom(struct td_adaptive *state, const struct td_adaptive_params *params, int64_t t,
                     int64_t requested_bytes)
{
    int64_t time = clamp(t, TD_ADAPTIVE_MAX);
    int64_t used = clamp(largest(requested_bytes, state->hour_peak), TD_ADAPTIVE_MAX);
    int64_t passed = time - state->oom_time;
    bool is_streak = state->oom_count > 0 && passed >= 0 && passed < HOUR_SECONDS;
    state->oom_streak = is_streak ? smallest(state->oom_streak + 1, TD_ADAPTIVE_STREAK_MAX) : 1;
    int64_t need =
        largest(used + params->bump_min, used * params->bumps[state->oom_streak - 1] / WHOLE);
    need = need * WHOLE / params->oom_divisor;
    int64_t floor = td_adaptive_floor(state, params, time);
    state->oom_floor = smallest(largest(floor, need), TD_ADAPTIVE_MAX);
    state->oom_time = largest(state->oom_time, time);
    state->oom_count = smallest(state->oom_count + 1, TD_ADAPTIVE_MAX);
}

static int compare_values(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* The quantile whose cost is lowest: what it reserves, and what the time above it costs. */
static void choose_arm(const uint32_t *sorted, int64_t count, int64_t sum,
                       const struct td_adaptive_params *params, struct td_adaptive_cpu_answer *ret)
{
    int64_t best = INT64_MAX;
    for (size_t i = 0; i < params->arm_count; i++) {
        int64_t q = params->arms[i];
        int64_t value = sorted[smallest(count * q / WHOLE, count - 1)];
        int64_t cost = value * count * WHOLE + params->overrun_cost * (WHOLE - q) * sum;
        if (i == 0) {
            ret->first_arm = q;
            ret->first_peak = value;
        }
        if (cost < best) {
            best = cost;
            ret->quantile = q;
            ret->peak = value;
        }
    }
}

static void recommend_cpu(const struct td_adaptive *state, const struct td_adaptive_params *params,
                          struct td_adaptive_cpu_answer *ret)
{
    uint32_t sorted[TD_ADAPTIVE_SLOTS + 1];
    size_t count = state->cpu_count;
    int64_t sum = 0;
    memcpy(sorted, state->cpu, count * sizeof(sorted[0])); /* order does not matter */
    if (state->slot_samples > 0) {
        sorted[count++] = (uint32_t)open_value(state);
    }
    *ret =
        (struct td_adaptive_cpu_answer){.target = params->min_cpu, .reason = TD_ADAPTIVE_NO_DATA};
    if (count > 0) {
        qsort(sorted, count, sizeof(sorted[0]), compare_values);
        for (size_t i = 0; i < count; i++) {
            sum += sorted[i];
        }
        choose_arm(sorted, (int64_t)count, sum, params, ret);
        int64_t young = TD_ADAPTIVE_SLOTS - smallest((int64_t)count, TD_ADAPTIVE_SLOTS);
        ret->slots = (int64_t)count;
        ret->margin = params->cpu_young * young / TD_ADAPTIVE_SLOTS;
        int64_t raised = ret->peak * (WHOLE + ret->margin) / WHOLE;
        ret->reason = raised < params->min_cpu ? TD_ADAPTIVE_MINIMUM : TD_ADAPTIVE_QUANTILE;
        ret->target = largest(raised, params->min_cpu);
    }
}

/* The highest of the days, older ones counting for less; ages in days. */
static void find_old_peak(const struct td_adaptive *state, const struct td_adaptive_params *params,
                          struct td_adaptive_memory_answer *ret)
{
    ret->old_peak = state->day_peak;
    ret->old_peak_age = 0;
    for (int64_t age = 1; age <= state->days_count; age++) {
        size_t place = (size_t)(state->days_start + state->days_count - age) % TD_ADAPTIVE_DAYS;
        int64_t share = WHOLE - params->day_decay * age;
        int64_t peak = (int64_t)state->days[place] * share / WHOLE;
        if (peak > ret->old_peak) {
            ret->old_peak = peak;
            ret->old_peak_age = age;
        }
    }
}

static void find_memory(const struct td_adaptive *state, const struct td_adaptive_params *params,
                        int64_t now, struct td_adaptive_memory_answer *ret)
{
    *ret = (struct td_adaptive_memory_answer){.target = params->min_mem,
                                              .reason = TD_ADAPTIVE_NO_DATA};
    if (state->hour < 0 && state->oom_count == 0) {
        return;
    }
    int64_t young = params->young_hours - smallest(state->seen, params->young_hours);
    ret->margin = params->mem_margin;
    if (params->young_hours > 0) {
        ret->margin += params->mem_young * young / params->young_hours;
    }
    ret->peak = state->hour_peak;
    for (size_t i = 0; i < state->hours_count; i++) {
        ret->peak = largest(ret->peak, (int64_t)state->hours[i]);
    }
    ret->hours = state->hours_count + (state->hour >= 0 ? 1 : 0);
    find_old_peak(state, params, ret);
    ret->floor = td_adaptive_floor(state, params, now);
    ret->oom_time = state->oom_time;
    ret->oom_count = state->oom_count;
    const struct {
        int64_t amount;
        enum td_adaptive_reason reason;
    } claims[] = {
        {ret->peak * (WHOLE + ret->margin) / WHOLE, TD_ADAPTIVE_RECENT_PEAK},
        {ret->old_peak, TD_ADAPTIVE_OLDER_PEAK},
        {ret->floor, TD_ADAPTIVE_OOM},
        {params->min_mem, TD_ADAPTIVE_MINIMUM},
    };
    size_t winner = 0;
    for (size_t i = 1; i < TD_COUNT(claims); i++) {
        winner = claims[i].amount > claims[winner].amount ? i : winner;
    }
    ret->target = smallest(claims[winner].amount, TD_ADAPTIVE_MAX);
    ret->reason = claims[winner].reason;
}

void td_adaptive_recommend_memory(const struct td_adaptive *state,
                                  const struct td_adaptive_params *params, int64_t now,
                                  struct td_adaptive_memory_answer *ret)
{
    find_memory(state, params, now, ret);
    ret->lower = (ret->target * WHOLE + WHOLE + params->mem_up - 1) / (WHOLE + params->mem_up);
    ret->upper = ret->target * WHOLE / (WHOLE - params->mem_down);
}

void td_adaptive_recommend(const struct td_adaptive *state, const struct td_adaptive_params *params,
                           int64_t now, struct td_adaptive_answer *ret)
{
    recommend_cpu(state, params, &ret->cpu);
    td_adaptive_recommend_memory(state, params, now, &ret->memory);
    /* Exactly the requests that the apply rule leaves alone. */
    ret->cpu.lower =
        (ret->cpu.target * WHOLE + WHOLE + params->cpu_up - 1) / (WHOLE + params->cpu_up);
    ret->cpu.upper = ret->cpu.target * WHOLE / (WHOLE - params->cpu_down);
}
