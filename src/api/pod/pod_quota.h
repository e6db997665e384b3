/*
 * ResourceQuotas of a namespace at a pod that would take the place of another, as the plugin
 * ResourceQuota of an API server judges one that is created, in its words. What the replaced pod
 * takes counts as free: it is gone before. Scopes that a pod does not tell by itself
 * (CrossNamespacePodAffinity) are not judged. Pure; results are in the arena.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"

struct td_quota_objects {
    const struct td_json *const *items; /* ResourceQuota objects with their status */
    size_t count;
};

/* "exceeded quota: compute, requested: limits.cpu=2, used: limits.cpu=3, limited: limits.cpu=4" of
 * the first quota that refuses the pod; empty: none does. `replaced` may be NULL. */
td_str td_pod_quota_problem(struct td_arena *arena, const struct td_quota_objects *quotas,
                            const struct td_json *pod, const struct td_json *replaced);
