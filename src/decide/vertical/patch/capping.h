/*
 * What may be applied of a recommendation. Two paths, as upstream has them: td_cap_by_policy is the
 * recommender's (minAllowed, maxAllowed, global maxima; per container it is td_recommend_cap), and
 * td_cap_for_pod is the one that updater and admission share (vpa.md 5.3): Pod LimitRange over all
 * containers, then per container its LimitRange, its policy and, under RequestsOnly, its own limit;
 * at last, where asked for, the largest node. Max wins over min, policy over LimitRange, the own
 * limit over both.
 *
 * Pure. The input is not changed; results are in the arena and borrow names and texts. Every change
 * of a value is one step of the account.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/recommendation.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "decide/vertical/patch/capstep.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/pod.h"
#include "kube/podresources.h"
#include "model/name_table.h"

/* A copy whose container lists may be changed. */
struct td_recommendation td_recommendation_copy(struct td_arena *arena,
                                                const struct td_recommendation *recommendation);

/* Its containers, and where in it they are. */
struct td_name_table td_recommendation_names(struct td_arena *arena,
                                             const struct td_recommendation *recommendation);

/* Upstream's ApplyVPAPolicy; policy and global_max may be NULL. */
struct td_recommendation td_cap_by_policy(struct td_arena *arena,
                                          const struct td_recommendation *recommendation,
                                          const struct td_resource_policy *policy,
                                          const struct td_resource_list *global_max);

struct td_capping {
    const struct td_pod *pod;
    const struct td_recommendation *recommendation; /* NULL: the VPA has none */
    const struct td_resource_policy *policy;
    const struct td_limit_summary *container_limits; /* NULL: none, or not to be used */
    const struct td_limit_summary *pod_limits;       /* NULL: none */
    const struct td_resource_list *largest_node;     /* allocatable; NULL: --cap-to-node is off */
    bool is_upstream_exact; /* Pod LimitRange: forget what containers keep, as upstream does */
};

struct td_capped {
    bool is_set; /* neither recommendation nor policy: nothing can be said */
    struct td_recommendation recommendation;
    struct td_notes *notes; /* one list an entry of the recommendation */
    struct td_cap_steps steps;
};

void td_cap_for_pod(struct td_arena *arena, const struct td_capping *capping,
                    struct td_capped *ret);
