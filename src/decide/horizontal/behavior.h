/*
 * From a proposal to the count that is set: stabilisation over recent proposals and rate policies
 * over recent changes, or upstream's older rules when an HPA has no behaviour. The history belongs
 * to one HPA, is kept in memory only, and is bounded: places whose time has passed are used again,
 * and at TD_HPA_HISTORY_MAX entries the oldest gives way. Pure but for the history passed in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hpa/hpa.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "base/vec.h"

#define TD_HPA_HISTORY_MAX 4096 /* an hour's window at one proposal a second, and some */

struct td_hpa_recommendation {
    td_time at;
    int32_t replicas; /* as proposed, before stabilisation */
};

struct td_hpa_scale_event {
    td_time at;
    int32_t change;   /* above 0 */
    bool is_outdated; /* the place may be used again */
};

struct td_hpa_recommendations {
    TD_VEC_FIELDS(struct td_hpa_recommendation);
};

struct td_hpa_scale_events {
    TD_VEC_FIELDS(struct td_hpa_scale_event);
};

struct td_hpa_history {
    struct td_hpa_recommendations recommendations;
    struct td_hpa_scale_events ups;
    struct td_hpa_scale_events downs;
};

void td_hpa_history_init(struct td_hpa_history *history);
void td_hpa_history_done(struct td_hpa_history *history);

/* After a start nothing is known: the present count stands as a proposal. */
void td_hpa_history_seed(struct td_hpa_history *history, int32_t current, td_time now);

struct td_hpa_normalization {
    const struct td_hpa *hpa; /* bounds and behaviour */
    td_time now;
    int32_t current;
    int32_t proposed;                    /* by the metrics, not below 0 */
    td_duration downscale_stabilization; /* the flag */
};

struct td_hpa_stabilized {
    int32_t replicas;
    td_str reason; /* ScaleUpStabilized or ScaleDownStabilized, whether it acted or not */
    td_str message;
    td_time held_until; /* when the proposal that holds the count leaves its window */
    bool is_held;       /* the result is not the proposal */
};

/* Rate limits of one direction. */
struct td_hpa_limit {
    int32_t replicas;   /* the farthest count allowed now */
    size_t policy;      /* index of the policy that set it; SIZE_MAX when none did */
    td_time loosens_at; /* when the oldest change that counts leaves its period; TD_TIME_NONE */
};

struct td_hpa_limited {
    int32_t replicas;
    td_str reason; /* DesiredWithinRange, TooFewReplicas, ... */
    td_str message;
    struct td_hpa_limit limit; /* when a rate policy was asked */
    bool is_limited;           /* the result is not what was wanted */
    bool has_limit;
};

struct td_hpa_normalized {
    int32_t replicas;
    struct td_hpa_stabilized stabilized;
    struct td_hpa_limited limited;
};

/* Both steps; records the proposal. */
struct td_hpa_normalized td_hpa_normalize(struct td_hpa_history *history,
                                          const struct td_hpa_normalization *in);

/* The steps one by one. Stabilising records the proposal. */
struct td_hpa_stabilized td_hpa_stabilize(struct td_hpa_history *history,
                                          const struct td_hpa_normalization *in);
struct td_hpa_limited td_hpa_limit_legacy(const struct td_hpa_normalization *in, int32_t wanted);
struct td_hpa_limited td_hpa_limit(const struct td_hpa_history *history,
                                   const struct td_hpa_normalization *in, int32_t wanted);
struct td_hpa_limit td_hpa_limit_by_policies(const struct td_hpa_history *history,
                                             const struct td_hpa_rules *rules, int32_t current,
                                             td_time now, bool is_up);

/* Remembers a rescale that was done, when the HPA has a behaviour. */
void td_hpa_history_store(struct td_hpa_history *history, const struct td_hpa *hpa,
                          int32_t replicas_before, int32_t replicas_after, td_time now);
