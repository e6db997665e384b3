/*
 * How many pods of a group may be disturbed in one pass (vpa.md 3.2, 3.5). A group is the pods of
 * one direct controller. What a group has lost in this pass is counted once for all VPAs; what it
 * must keep is judged for each VPA. A VPA with spec.selector counts the whole workload, of which it
 * may change only its own pods: so a single leader among three replicas can be updated.
 *
 * Memory beyond the pass is one time a pod: when it was first seen resizing. It is the caller's
 * (updater_state.h); everything else is in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "decide/vertical/pod.h"
#include "model/owners.h"

struct td_updater_state;

#define TD_RESIZE_DEFERRED_MAX (5 * TD_MINUTE) /* then a deferred resize is given up */
#define TD_RESIZE_RUNNING_MAX TD_HOUR          /* then one in progress is */

struct td_restriction_config {
    int64_t min_replicas;       /* --min-replicas */
    double tolerance;           /* --eviction-tolerance */
    bool in_place_skips_budget; /* --in-place-skip-disruption-budget */
};

/* How many of so many replicas may be missing or resizing at one time: the one tolerance rule.
 * Where it says 0, callers let a single one go when nothing else is missing. */
int64_t td_restriction_tolerance(const struct td_restriction_config *config, int64_t replicas);

/* Losses of one group in this pass. */
struct td_replica_group {
    td_str namespace;
    td_str kind; /* empty: pods without a controller */
    td_str name;
    int64_t evicted;
    int64_t initiated;   /* resizes started */
    int64_t all_count;   /* live pods, of whichever VPA */
    int64_t all_pending; /* of them in phase Pending */
    bool has_boosted;    /* some pod of it has a startup boost */
};

/* All groups of a pass. */
struct td_groups {
    struct td_arena *arena;
    struct td_map by_key; /* "namespace/kind/name" */
};

void td_groups_init(struct td_groups *groups, struct td_arena *arena);
void td_groups_done(struct td_groups *groups);

/* Counts a live pod; every live pod of a workload must be counted before a VPA is judged. NULL when
 * there are too many groups. */
struct td_replica_group *td_groups_add(struct td_groups *groups, const struct td_pod *pod);

enum td_group_fate {
    TD_GROUP_KEPT,
    TD_GROUP_BELOW_MIN,   /* kept for resizes only */
    TD_GROUP_TOO_FEW,     /* fewer live pods than required: dropped */
    TD_GROUP_NO_REPLICAS, /* the replicas that it should have cannot be read: dropped */
};

/* A group as one VPA sees it. */
struct td_group_view {
    struct td_replica_group *group;
    enum td_group_fate fate;
    int64_t actual;     /* live pods that count */
    int64_t required;   /* minReplicas */
    int64_t configured; /* replicas that the controller wants */
    int64_t tolerance;  /* of those may be missing */
    int64_t pending;
    int64_t running;
    bool has_boosted;
    const char *why; /* of NO_REPLICAS; static */
};

struct td_restriction {
    struct td_arena *arena;
    const struct td_vpa *vpa;
    const struct td_restriction_config *config;
    const struct td_vpa_gates *gates;
    struct td_updater_state *state; /* when resizes were first seen */
    td_time now;
    struct td_map views; /* by the key of the group */
    struct td_map pods;  /* "namespace/name" of the VPA's own pods to the view */
};

struct td_restriction_input {
    struct td_arena *arena;
    struct td_groups *groups;
    const struct td_workload_source *source; /* get_workload only */
    const struct td_vpa *vpa;
    const struct td_pod *const *pods; /* live pods of this VPA */
    size_t pod_count;
    const struct td_restriction_config *config;
    const struct td_vpa_gates *gates;
    struct td_updater_state *state;
    td_time now;
};

void td_restriction_init(struct td_restriction *restriction,
                         const struct td_restriction_input *input);
void td_restriction_done(struct td_restriction *restriction);

/* The pod's group when this VPA may count on it at all, else NULL. */
const struct td_group_view *td_restriction_view(const struct td_restriction *restriction,
                                                const struct td_pod *pod);

/* The same for a group that was dropped; NULL for a pod of another VPA. For accounts. */
const struct td_group_view *td_restriction_any_view(const struct td_restriction *restriction,
                                                    const struct td_pod *pod);

enum td_resize_status {
    TD_RESIZE_NONE,
    TD_RESIZE_DEFERRED,
    TD_RESIZE_INFEASIBLE,
    TD_RESIZE_IN_PROGRESS,
    TD_RESIZE_ERROR,
    TD_RESIZE_UNKNOWN,
};

enum td_resize_status td_resize_status_of(const struct td_pod *pod);

enum td_evict_verdict {
    TD_EVICTION_YES,
    TD_EVICTION_NO_GROUP,  /* not in a kept group */
    TD_EVICTION_BELOW_MIN, /* fewer pods than required */
    TD_EVICTION_BUDGET,    /* the group has lost enough */
    TD_EVICTION_RESIZING,  /* a resize is under way and not given up yet */
};

/* *ret_until, when not NULL and the verdict is RESIZING, says when the resize is given up. */
enum td_evict_verdict td_restriction_can_evict(struct td_restriction *restriction,
                                               const struct td_pod *pod, td_time *ret_until);

enum td_in_place_decision {
    TD_IN_PLACE_APPROVED,
    TD_IN_PLACE_DEFERRED,
    TD_IN_PLACE_EVICT,
    TD_IN_PLACE_INFEASIBLE,
    TD_IN_PLACE_INFEASIBLE_CACHED,
};

/* Which row of the decision table was reached. */
enum td_in_place_cause {
    TD_IN_PLACE_GATE_OFF,
    TD_IN_PLACE_NO_GROUP,
    TD_IN_PLACE_PENDING,
    TD_IN_PLACE_NO_RECOMMENDATION,
    TD_IN_PLACE_FAILED_BEFORE,
    TD_IN_PLACE_RESIZING,
    TD_IN_PLACE_NO_RESTART, /* no container restarts, so the budget is not asked */
    TD_IN_PLACE_BUDGET,
};

struct td_in_place_answer {
    enum td_in_place_decision decision;
    enum td_in_place_cause cause;
    enum td_resize_status resize;
    td_time until; /* deferred while resizing: when it is given up; else 0 */
};

/* `failed` is the recommendation recorded as infeasible for this pod, or NULL. */
struct td_in_place_answer td_restriction_in_place(struct td_restriction *restriction,
                                                  const struct td_pod *pod,
                                                  const struct td_recommendation *failed);

/* May a startup boost that has expired be taken back now? */
bool td_restriction_can_revert_boost(struct td_restriction *restriction, const struct td_pod *pod);

/* What was done, so that the next answer knows. */
void td_restriction_evicted(struct td_restriction *restriction, const struct td_pod *pod);
void td_restriction_resized(struct td_restriction *restriction, const struct td_pod *pod);
