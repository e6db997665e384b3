/*
 * Caps that look at all containers of a pod together: a Pod LimitRange (vpa.md 5.5) and the largest
 * node. Both scale the entries in proportion to each other. They work on the entries of a
 * recommendation in place.
 */
#pragma once

#include <stddef.h>

#include "api/vpa/recommendation.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "decide/vertical/patch/capstep.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/pod.h"

/* The entries with one more for every container that has requests and no entry: {target: requests}.
 */
void td_podcaps_insert_requests(struct td_arena *arena, const struct td_pod *pod,
                                struct td_recommendation *recommendation);

/* A container of the pod beside its entry, the first of its name. */
struct td_podcaps_pair {
    const struct td_pod_container *container;
    struct td_container_recommendation *entry; /* NULL: none */
};

/* One pair a container, in the pod's order. */
struct td_podcaps_pair *td_podcaps_pair(struct td_arena *arena, const struct td_pod *pod,
                                        const struct td_recommendation *recommendation);

/* The limits of init containers that run beside the others (restartPolicy Always), added up. */
struct td_resource_list td_podcaps_sidecar_limits(struct td_arena *arena, const struct td_pod *pod);

/* What bounds the sums over a pod. */
struct td_podcaps_bounds {
    const struct td_limit_summary *limits;
    const struct td_resource_policy *policy;            /* NULL: none; RequestsOnly keeps limits */
    const struct td_container_recommendation *inserted; /* the first entry that was inserted */
    struct td_resource_list sidecar_limits;
    bool is_upstream_exact; /* what is kept takes no room */
};

/* So that the sums stay in bounds, if what the VPA does not control leaves room for that. */
void td_podcaps_to_limits(struct td_arena *arena, const struct td_podcaps_pair *pairs, size_t count,
                          const struct td_podcaps_bounds *bounds, struct td_cap_steps *steps);

/* Targets whose sum, with the requests of containers without one, is more than a node has are
 * scaled down to fit, and lower bounds with them, so that the updater finds nothing to do. Names of
 * capped resources go to `notes`, one list an entry of `recommendation`. */
void td_podcaps_to_node(struct td_arena *arena, const struct td_podcaps_pair *pairs, size_t count,
                        const struct td_resource_list *node,
                        const struct td_recommendation *recommendation, struct td_notes *notes,
                        struct td_cap_steps *steps);
