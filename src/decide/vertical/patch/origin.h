/*
 * Limits keep the proportion of the owner's template. A resize that scales the limit which the last
 * resize wrote rounds each time, and the proportion drifts: 1.250 became 1.189 after 33 of them. So
 * where the template is known, new limits are computed from what it says, as admission does for a
 * new pod. Where it says nothing of a resource (a limit that a LimitRange or another webhook gave),
 * the pod's own values count, as upstream has it.
 */
#pragma once

#include "base/arena.h"
#include "decide/vertical/pod.h"
#include "model/template.h"

/* Fills in the origins of the pod and its containers, which are copied. A template of NULL, or one
 * that is not set, leaves the pod as it is; default_limits are those of the namespace's LimitRange
 * items of type Container, or NULL. */
void td_vertical_set_origin(struct td_arena *arena, const struct td_pod_template *template,
                            const struct td_resource_list *default_limits, struct td_pod *pod);
