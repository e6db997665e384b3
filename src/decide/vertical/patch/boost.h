/*
 * CPU startup boost (vpa.md 4.6, 3.7): more cpu while a container starts, taken back once the pod
 * has been Ready for long enough. The original resources wait in an annotation of the pod. A boost
 * without a cpu part, on which upstream panics, is no boost.
 */
#pragma once

#include <stdbool.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/os/clock.h"
#include "decide/vertical/patch/changes.h"
#include "decide/vertical/pod.h"

struct td_error;

#define TD_BOOST_ANNOTATION_PREFIX TD_STR("vpaCpuStartupBoost/")

/* "vpaCpuStartupBoost/<container>" */
td_str td_boost_annotation(struct td_arena *arena, td_str container);

/* Raises the cpu request (and limit) in `change`. *ret_original is the value of the annotation,
 * empty when there is no boost. TD_INVALID with upstream's text for a boost without a usable
 * amount. */
int td_boost_apply(struct td_arena *arena, const struct td_vpa *vpa,
                   const struct td_pod_container *container, const struct td_quantity *max_boost,
                   struct td_container_change *change, td_str *ret_original, struct td_error *err);

bool td_boost_is_expired(const struct td_pod *pod, const struct td_vpa *vpa, td_str annotation,
                         td_time now);

/* Has the pod any boost annotation? */
bool td_boost_is_in_progress(const struct td_pod *pod);

/* The shortest time until a boost of the pod expires; 0 when none is left or it is not Ready. */
td_duration td_boost_remaining(const struct td_pod *pod, const struct td_vpa *vpa, td_time now);

/* Reads the annotation of a container; TD_INVALID when it is no JSON of resource lists. */
int td_boost_original(struct td_arena *arena, const struct td_pod *pod, td_str container,
                      struct td_resource_list *ret_requests, struct td_resource_list *ret_limits,
                      struct td_error *err);
