/*
 * What a VPA wants written to the containers of a pod (vpa.md 4.4): requests from the capped
 * target, limits in proportion, and the notes about it. The base of admission patches and of
 * in-place resizes; boosts and pod-level rules come on top. Pure; results are in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "decide/vertical/patch/capping.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/pod.h"

struct td_container_change {
    struct td_resource_list requests; /* to be written; empty: none */
    struct td_resource_list limits;
    struct td_notes notes;
    bool lacks_recommendation; /* pods with a stanza of their own: a request without one */
};

struct td_changes_input {
    const struct td_pod *pod;
    const struct td_vpa *vpa;
    const struct td_limit_ranges *limits;        /* of the pod's namespace */
    const struct td_resource_list *largest_node; /* allocatable; NULL: --cap-to-node is off */
    bool is_pod_level; /* the pod has resources of its own and the gate is on: only what is there is
                          overwritten, and LimitRanges for containers do not count */
};

struct td_changes {
    struct td_container_change *containers; /* as many as the pod has */
    struct td_capped capped; /* the recommendation they come from, with its account */
};

/* Under mode Off nothing is to be written. */
void td_changes_make(struct td_arena *arena, const struct td_changes_input *input,
                     struct td_changes *ret);
