/*
 * LimitRanges of a namespace at a pod that is created, as the plugin LimitRanger of an API server
 * applies them: a container without requests or limits gets the defaults, and a container or pod
 * outside the bounds is refused, all reasons in one sentence, as upstream words them. Pure; results
 * are in the arena.
 */
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"

/* LimitRange objects of one namespace, in order of names. */
struct td_limit_objects {
    const struct td_json *const *items;
    size_t count;
};

/* What was set, for the annotation kubernetes.io/limit-ranger ("LimitRanger plugin set: ..."),
 * which is written too. */
void td_pod_limit_defaults(struct td_arena *arena, const struct td_limit_objects *ranges,
                           struct td_json *pod);

/* Why the pod is refused ("maximum cpu usage per Container is 1, but limit is 2"; several in
 * brackets); empty: it is not. */
td_str td_pod_limit_problems(struct td_arena *arena, const struct td_limit_objects *ranges,
                             const struct td_json *pod);
