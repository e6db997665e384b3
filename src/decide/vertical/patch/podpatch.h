/*
 * The JSON patch with which admission answers the creation of a pod that a VPA controls (vpa.md 4.4
 * to 4.6, proposals.md 3.3): requests and limits, boost annotations, the account in `vpaUpdates`
 * and the list of containers seen. Pods with resources of their own may be refused where a
 * LimitRange for containers would spoil them. Pure; results are in the arena.
 */
#pragma once

#include <stdbool.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "decide/vertical/patch/changes.h"
#include "decide/vertical/patch/podstanza.h"

struct td_error;

struct td_pod_patch_input {
    const struct td_pod *pod;
    const struct td_vpa *vpa;             /* the one that controls the pod */
    const struct td_limit_ranges *limits; /* of the namespace of the request */
    struct td_vpa_gates gates;
    const struct td_quantity *max_cpu_boost;     /* --max-allowed-cpu-boost; NULL or zero: none */
    const struct td_resource_list *largest_node; /* allocatable; NULL: --cap-to-node is off */
    bool warns_of_limit_range; /* --pod-level-container-limitrange=warn, instead of refusing */
};

struct td_pod_patch {
    struct td_json *patches; /* array of records */
    bool is_rejected;        /* then there are no patches */
    td_str message;          /* why rejected, or a warning; else empty */
    struct td_changes changes;
    bool is_pod_level; /* the pod has resources of its own, and they are managed */
    struct td_stanza stanza;
};

/* Fails with upstream's text where it computes no patches (a boost without a usable amount); the
 * pod is then admitted as it is. */
int td_pod_patch(struct td_arena *arena, const struct td_pod_patch_input *input,
                 struct td_pod_patch *ret, struct td_error *err);

/* The value of `vpaUpdates` for pod-level notes and one clause a container. `clauses` may be empty.
 */
td_str td_pod_patch_updates(struct td_arena *arena, td_str vpa_name, const struct td_stanza *stanza,
                            const struct td_notes *clauses);

/* "container 0: cpu request, memory request" */
td_str td_pod_patch_clause(struct td_arena *arena, size_t index,
                           const struct td_container_change *change);
