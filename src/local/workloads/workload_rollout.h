/*
 * How a Deployment moves pods between its ReplicaSets: pure arithmetic of the Deployment
 * controller. Sets are given as they are; the answers are in `target`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"

struct td_rollout {
    int64_t replicas;
    bool is_rolling; /* else the strategy is Recreate */
    int64_t surge_max;
    int64_t unavailable_max;
    int64_t status_replicas; /* of the last status */
};

#define TD_ROLLOUT_NONE (-1) /* an annotation that is missing or no count */

struct td_rollout_set {
    td_str name;
    td_time created;
    bool is_new;
    int64_t replicas; /* asked for */
    int64_t actual;
    int64_t ready;
    int64_t available;
    int64_t desired_before; /* annotation desired-replicas, or TD_ROLLOUT_NONE */
    int64_t max_before;     /* annotation max-replicas, or TD_ROLLOUT_NONE */
    int64_t target;
};

/* A count or percentage of a total; 0 when it is missing. */
int64_t td_rollout_share(struct td_arena *arena, const struct td_json *value, int64_t total,
                         bool round_up);

/* From spec.strategy; both limits 0 gives one unavailable, as upstream. */
struct td_rollout td_rollout_read(struct td_arena *arena, const struct td_json *deployment);

/* How many pods may the new set have now? `sets` includes it unless it is still to be made. */
int64_t td_rollout_new_size(const struct td_rollout *rollout, const struct td_rollout_set *sets,
                            size_t count, int64_t new_replicas);

/* Takes pods from old sets: first those that are not available, then as many as may be missing.
 * Says how many; sets come in the order of their age. */
int64_t td_rollout_shrink_old(const struct td_rollout *rollout, struct td_rollout_set *sets,
                              size_t count);

/* The Deployment's size changed, or it is paused: the sets grow or shrink in proportion. Those with
 * pods come to the front of `sets`. Forced: sets that keep their size get new annotations too. */
void td_rollout_scale(const struct td_rollout *rollout, struct td_rollout_set **sets, size_t count,
                      bool *ret_is_forced);

/* Was the Deployment scaled since the active sets were last sized? */
bool td_rollout_is_scaled(const struct td_rollout *rollout, const struct td_rollout_set *sets,
                          size_t count);
