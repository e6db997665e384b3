/*
 * A closed loop in virtual time: a demand comes in, the pods there are share it, a horizontal and a
 * vertical decider look at what they use, and either the coordinator decides for both or each acts
 * alone, as separate autoscalers do. One container, cpu only; a tick every 15 s. It shows what a
 * setting does over hours in a millisecond, and that a loop which is meant to settle does. Pure:
 * the ticks are a function of the options.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hvpa/hvpa.h"
#include "base/timefmt.h"
#include "decide/tandem/coupling.h"
#include "decide/tandem/decide.h"

#define TD_CLOSED_TICK_SECONDS 15

/* The demand from a tick on. */
struct td_closed_load {
    int32_t first_tick;
    int64_t demand_milli; /* of all pods together */
};

struct td_closed_loop {
    const struct td_hvpa *hvpa;     /* the coordinator's spec; NULL: both act alone */
    enum td_hvpa_coupling coupling; /* of the two alone */
    int32_t utilization;            /* percent, the HPA's target */
    int32_t min_replicas;
    int32_t max_replicas;
    int64_t min_allowed_milli;
    int64_t max_allowed_milli;
    int32_t replicas; /* at first; above 0 */
    int64_t request_milli;
    const struct td_closed_load *loads; /* by tick; the first at tick 0 */
    size_t load_count;
    int64_t scale_in_stabilization_seconds; /* the HPA's */
    /* The VPA's target is 1.15 times a peak: the largest usage of the last `peak_ticks`, or, with a
     * half-life, one that decays. */
    int32_t peak_ticks;
    int64_t peak_half_life_seconds; /* 0: by peak_ticks */
    bool uses_decider;   /* the horizontal decider with its floating point, else whole numbers */
    bool keeps_patience; /* hand Mixed its timer from tick to tick */
    int32_t ticks;
    struct td_instant start;
};

/* One tick: what was seen, and the state after it. */
struct td_closed_tick {
    int64_t demand_milli;
    int32_t desired_replicas; /* the HPA's wish */
    int64_t target_milli;     /* the VPA's */
    int32_t replicas;
    int64_t request_milli;
    bool is_changed;
    enum td_tandem_reason reason;     /* of the coordinator */
    enum td_tandem_coupled condition; /* of the coordinator */
};

/* Fills options->ticks ticks. The arena holds what the deciders need on the way. */
void td_closed_loop_run(struct td_arena *arena, const struct td_closed_loop *options,
                        struct td_closed_tick *ret_ticks);
