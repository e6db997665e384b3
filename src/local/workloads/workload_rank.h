/*
 * Which pods of a ReplicaSet go first when there are too many (controller.ActivePodsWithRanks).
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"
#include "model/pod.h"

struct td_rank_pod {
    size_t index; /* the caller's */
    td_str node;  /* empty: unassigned */
    enum td_pod_phase phase;
    bool is_ready;
    int64_t deletion_cost;
    size_t neighbours; /* active pods of the same workload on its node, itself included */
    td_time ready_since;
    int64_t restarts;
    int64_t sidecar_restarts;
    td_time created;
    td_str uid;
};

/* Puts those that go first in front. Times are compared by the power of two of their age, so that
 * among pods of similar age it is chance (the uid) that decides. */
void td_rank_sort(struct td_rank_pod *pods, size_t count, td_time now);
