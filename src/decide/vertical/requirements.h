/*
 * Eviction requirements (vpa.md 3.6, seeds.md 2): may the updater act on a pod as far as the
 * direction of the change goes? One container has to meet all requirements. Pure.
 */
#pragma once

#include <stdbool.h>

#include "api/recommendation.h"
#include "api/vpa.h"
#include "base/arena.h"
#include "base/buf.h"
#include "decide/vertical/pod.h"

/* `recommendation` is the one capped for this pod; containers without one do not count. Nor do
 * containers of mode Off, unless `counts_off`: upstream leaves those to the recommender, which
 * drops them a little later. */
bool td_requirements_admit(struct td_arena *arena, const struct td_vpa *vpa,
                           const struct td_vertical_pod *pod,
                           const struct td_recommendation *recommendation, bool counts_off);

/* "only to TargetHigherThanRequests of cpu or memory, by one container" */
void td_requirements_write(const struct td_vpa *vpa, struct td_buf *out);
