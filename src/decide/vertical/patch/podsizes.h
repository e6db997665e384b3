/*
 * Sizes that an Hvpa decided, written into a pod (hvpa.md 5.4): into one that is created, by the
 * webhook and, before an eviction, into the pod that would come back; into one that runs, by a
 * resize. Pure; results are in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/pod.h"

/* What is to be written; nothing else changes. */
struct td_pod_size {
    td_str container; /* empty: the resources of the pod itself */
    struct td_resource_list requests;
    struct td_resource_list limits;
};

struct td_pod_sizes {
    td_str hvpa; /* its name, for the account on the pod */
    const struct td_pod_size *items;
    size_t count;
};

struct td_pod_sizes_patch {
    struct td_json *patches; /* JSON patch; NULL: the pod stays as it is */
    bool is_kept_out; /* and that is because a LimitRange for pods would refuse it otherwise */
};

/* Sizes are brought within the LimitRange for containers: a pod that the API server refuses is
 * worse than one that the Hvpa has to say is not as decided. `limits` may be NULL. */
struct td_pod_sizes_patch td_pod_sizes_patch(struct td_arena *arena,
                                             const struct td_pod_sizes *sizes,
                                             const struct td_pod *pod,
                                             const struct td_limit_ranges *limits);

/* Has the spec of a running pod all of these sizes? Then a resize to them is under way or done. */
bool td_pod_sizes_are_in_spec(const struct td_pod_sizes *sizes, const struct td_pod *pod);

/* The JSON patch that gives a running pod these sizes by its resize subresource, and only the pod
 * that was judged: it tests the uid. NULL: the spec of the pod has them all.
 */
struct td_json *td_pod_sizes_resize(struct td_arena *arena, const struct td_pod_sizes *sizes,
                                    const struct td_pod *pod);

/* Is some size of a container above what a LimitRange allows? Such a pod is not evicted, since the
 * one that comes back would not have the decided size. `limits` may be NULL. */
bool td_pod_sizes_exceed(const struct td_pod_sizes *sizes, const struct td_limit_ranges *limits);
