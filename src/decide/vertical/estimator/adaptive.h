/*
 * The adaptive estimator: what is remembered of one container, how samples and OOMs change it, what
 * it recommends, and when a pod is changed to follow. One plain state per container of a target,
 * 1.5 KiB, shared by all replicas and rollouts. CPU in millicores, memory in bytes, times in whole
 * seconds since 1970; integer arithmetic only, so the same input gives the same bits on every
 * machine. Larger inputs count as the maxima below, so no product passes 63 bits. Everything is
 * pure and nothing is owned. The rules and their reasons: docs/internals/decide/adaptive.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"

struct td_error;

#define TD_ADAPTIVE_CPU_MAX ((int64_t)1000000000)       /* millicores */
#define TD_ADAPTIVE_MAX ((int64_t)100000000000000)      /* bytes, and seconds */
#define TD_ADAPTIVE_SLOTS 288                           /* closed slots of five minutes kept */
#define TD_ADAPTIVE_HOURS 24                            /* closed hours kept */
#define TD_ADAPTIVE_DAYS 8                              /* closed days kept */
#define TD_ADAPTIVE_SEEN_MAX 255                        /* hours counted */
#define TD_ADAPTIVE_STREAK_MAX 3                        /* OOMs in a row told apart */
#define TD_ADAPTIVE_SLOT_SAMPLES_MAX ((int64_t)1000000) /* further ones only raise slot_top */
#define TD_ADAPTIVE_ARMS_MAX 8

#define TD_ADAPTIVE_ANNOTATION TD_STR("tandem.dev/adaptive") /* on the checkpoint */
/* Of a VPA whose recommendation is this estimator's: since its first sample. */
#define TD_ADAPTIVE_CONDITION TD_STR("AdaptiveEstimator")
#define TD_ADAPTIVE_VERSION TD_STR("a1")

struct td_adaptive {
    int64_t first; /* time of the first accepted sample; -1 before it */

    int64_t slot; /* index of the open slot of CPU, t / 300; -1 before the first sample */
    int64_t slot_sum;
    int64_t slot_samples;
    int64_t slot_top;
    uint32_t cpu[TD_ADAPTIVE_SLOTS]; /* values of closed slots, a ring */
    uint16_t cpu_start;              /* where the oldest is */
    uint16_t cpu_count;

    uint8_t hours_start;
    uint8_t hours_count;
    uint8_t days_start;
    uint8_t days_count;
    int64_t hour; /* index of the open hour of memory, t / 3600; -1 before the first sample */
    int64_t hour_peak;
    uint64_t hours[TD_ADAPTIVE_HOURS]; /* peaks of closed hours, a ring */
    int64_t day;                       /* index of the open UTC day; -1 before the first sample */
    int64_t day_peak;
    uint64_t days[TD_ADAPTIVE_DAYS]; /* peaks of closed days, a ring */
    int64_t seen;                    /* hours closed so far, at most TD_ADAPTIVE_SEEN_MAX */

    int64_t oom_floor;
    int64_t oom_time; /* of the latest */
    int64_t oom_count;
    int64_t oom_streak; /* how many in a row, 1 to 3; 0 before the first */
};

/* Shares are in permille, waits in seconds. Users choose a risk; the rest are constants that only
 * the golden cases change. */
struct td_adaptive_params {
    int64_t arms[TD_ADAPTIVE_ARMS_MAX]; /* quantiles to choose from, the highest first */
    size_t arm_count;                   /* at least 1 */
    int64_t overrun_cost;
    int64_t throttle_at;
    int64_t throttle_bump;
    int64_t cpu_young;
    int64_t mem_margin;
    int64_t mem_young;
    int64_t young_hours;
    int64_t day_decay;
    int64_t min_cpu;
    int64_t min_mem;
    int64_t bumps[TD_ADAPTIVE_STREAK_MAX];
    int64_t bump_min;
    int64_t oom_divisor; /* what an OOM demands is divided by it */
    int64_t floor_days;
    int64_t floor_decay;
    int64_t cpu_up;
    int64_t cpu_down;
    int64_t mem_up;
    int64_t mem_down;
    int64_t cpu_step;
    int64_t mem_step;
    int64_t wait;
    int64_t cpu_wait;
};

enum td_adaptive_risk { TD_RISK_BALANCED, TD_RISK_CAREFUL, TD_RISK_FRUGAL };

const struct td_adaptive_params *td_adaptive_params_of(enum td_adaptive_risk risk);

/* Whole seconds, rounded down, before 1970 too. */
int64_t td_adaptive_seconds(td_time time);

void td_adaptive_init(struct td_adaptive *state);

/* Half way between the mean and the highest of a slot's samples, rounded up; samples above 0. A
 * loaded state may hold a sum that no samples can have; bounded, what comes of it can be saved and
 * loaded again. */
int64_t td_adaptive_slot_value(int64_t sum, int64_t samples, int64_t top);
/* What a sample of CPU stands for: use at its limit (0: none) was throttled, and the demand that
 * is hidden by that is surely higher. */
int64_t td_adaptive_demand(const struct td_adaptive_params *params, int64_t milli,
                           int64_t limit_milli);

/* limit: the CPU limit in force, 0 without one. Negative amounts and samples of a closed slot or
 * hour are ignored. */
void td_adaptive_cpu(struct td_adaptive *state, const struct td_adaptive_params *params, int64_t t,
                     int64_t milli, int64_t limit_milli);
void td_adaptive_memory(struct td_adaptive *state, int64_t t, int64_t bytes);

/* An OOM of a container that requested this much, 0 without a request. None is discarded. */
void td_adaptive_oom(struct td_adaptive *state, const struct td_adaptive_params *params, int64_t t,
                     int64_t requested_bytes);

enum td_adaptive_reason {
    TD_ADAPTIVE_NO_DATA,
    TD_ADAPTIVE_MINIMUM,
    TD_ADAPTIVE_QUANTILE,    /* CPU */
    TD_ADAPTIVE_RECENT_PEAK, /* memory, likewise the next two */
    TD_ADAPTIVE_OLDER_PEAK,
    TD_ADAPTIVE_OOM,
};

const char *td_adaptive_reason_name(enum td_adaptive_reason reason);

struct td_adaptive_cpu_answer {
    int64_t target;
    int64_t lower;
    int64_t upper;
    enum td_adaptive_reason reason;
    int64_t quantile; /* permille */
    int64_t slots;
    int64_t margin;     /* permille */
    int64_t peak;       /* the quantile's value */
    int64_t first_arm;  /* permille; the highest quantile there was to choose */
    int64_t first_peak; /* and its value */
};

struct td_adaptive_memory_answer {
    int64_t target;
    int64_t lower;
    int64_t upper;
    enum td_adaptive_reason reason;
    int64_t margin; /* permille */
    int64_t peak;
    int64_t old_peak;
    int64_t old_peak_age; /* days since the old peak, 0: today */
    int64_t floor;        /* what OOMs demand now */
    int64_t oom_time;     /* of the latest, valid when oom_count is above 0 */
    int64_t oom_count;
    int64_t hours; /* observed, the open one included, at most 25 */
};

struct td_adaptive_answer {
    struct td_adaptive_cpu_answer cpu;
    struct td_adaptive_memory_answer memory;
};

void td_adaptive_recommend(const struct td_adaptive *state, const struct td_adaptive_params *params,
                           int64_t now, struct td_adaptive_answer *ret);

/* Memory alone, at a fraction of the cost. */
void td_adaptive_recommend_memory(const struct td_adaptive *state,
                                  const struct td_adaptive_params *params, int64_t now,
                                  struct td_adaptive_memory_answer *ret);

/* What OOMs demand at `now`: whole for floor_days, then less each day. */
int64_t td_adaptive_floor(const struct td_adaptive *state, const struct td_adaptive_params *params,
                          int64_t now);

/* Saving keeps every field; loading refuses what the format does not allow, naming the field, and
 * then leaves the state as it was. */
struct td_json *td_adaptive_save(struct td_arena *arena, const struct td_adaptive *state);
int td_adaptive_load(struct td_adaptive *state, const struct td_json *saved, struct td_error *err);

/* "cpu 587m: 97 % of the last 288 five-minute windows stayed at or below 587m"; with is_detail
 * without the resource and the amount. No line end. */
void td_adaptive_write_cpu(const struct td_adaptive_cpu_answer *answer, bool is_detail,
                           struct td_buf *out);
void td_adaptive_write_memory(const struct td_adaptive_memory_answer *answer,
                              const struct td_adaptive_params *params, bool is_detail,
                              struct td_buf *out);
