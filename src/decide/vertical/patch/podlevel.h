/*
 * Pod-level recommendations (the pod-level resources proposal): what the recommender derives from
 * the recommendations of containers, and how the pod's policy bounds it. Pure; results are in the
 * arena.
 */
#pragma once

#include <stdbool.h>

#include "api/vpa/recommendation.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "decide/vertical/patch/capstep.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/pod.h"
#include "kube/podresources.h"

/* Which resources the live pods of a VPA state at pod level; one pod suffices. Ask for running pods
 * that the VPA manages. A limit counts as a request, as the API server fills it in. */
struct td_pod_level_use {
    bool has_cpu;
    bool has_memory;
};
void td_pod_level_use_add(struct td_pod_level_use *use, const struct td_pod *pod);

struct td_pod_level_terms {
    struct td_pod_level_use use;               /* nothing: the feature is off, or unused */
    const struct td_resource_policy *policy;   /* NULL: none */
    const struct td_resource_list *global_max; /* of containers; NULL: none */
    const struct td_resource_list *pod_max;    /* --pod-recommendation-max-allowed-*; NULL: none */
};

/* Sums up the containers (already capped by their policies), holds the sum inside the pod's bounds
 * and scales the containers with it. `recommendation` gets its pod part; its container lists are
 * replaced where they are scaled. */
void td_pod_level_recommend(struct td_arena *arena, const struct td_pod_level_terms *terms,
                            struct td_recommendation *recommendation, struct td_cap_steps *steps);

/* The pod-level recommendation as a Pod LimitRange and the largest node (either may be NULL) let it
 * be applied. */
struct td_pod_recommendation td_pod_level_cap(struct td_arena *arena,
                                              const struct td_pod_recommendation *recommendation,
                                              const struct td_limit_summary *limits,
                                              const struct td_resource_list *largest_node,
                                              struct td_cap_steps *steps);
