/*
 * The very pod that would replace an evicted one, judged before the eviction: made from the owner's
 * template, defaulted, changed as admission would change it, and held against what an API server
 * demands of a pod and against the LimitRanges and ResourceQuotas of the namespace. No right to
 * create pods is needed for it. What the validators say of the template as it is does not count:
 * the API server has accepted it. Pure; results are in the arena.
 */
#pragma once

#include <stdbool.h>

#include "api/pod/pod_limits.h"
#include "api/pod/pod_quota.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/patch/podsizes.h"
#include "decide/vertical/pod.h"

struct td_replacement_input {
    const struct td_json *template;       /* PodTemplateSpec of the pod's owner, whole */
    const struct td_pod *pod;             /* that would be evicted */
    const struct td_vpa *vpa;             /* the one that controls it; NULL: an Hvpa does */
    const struct td_pod_sizes *sizes;     /* what that Hvpa decided; NULL: a VPA does */
    const struct td_limit_ranges *limits; /* of the namespace, as admission reads them */
    struct td_limit_objects limit_objects;
    struct td_quota_objects quotas;
    struct td_vpa_gates gates;
    const struct td_quantity *max_cpu_boost;     /* as admission has it */
    const struct td_resource_list *largest_node; /* likewise */
    bool warns_of_limit_range;                   /* likewise */
};

/* Why the replacement would be of no use or refused; empty: it would be neither. */
td_str td_replacement_problem(struct td_arena *arena, const struct td_replacement_input *input);

/* Why the owner of the pods cannot make any just now, by its conditions and its events; empty: it
 * can. `owner` is the object of a workload with its status, `events` those about it, in any order.
 */
td_str td_owner_problem(struct td_arena *arena, const struct td_json *owner,
                        const struct td_json *events);
