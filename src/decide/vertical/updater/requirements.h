/*
 * Eviction requirements (vpa.md 3.6, proposals.md 2): may the updater act on a pod as far as the
 * direction of the change goes? Every requirement has to be met by at least one container under
 * VPA control, not all by the same one. Pure.
 */
#pragma once

#include <stdbool.h>

#include "api/vpa/recommendation.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/buf.h"
#include "decide/vertical/pod.h"

/* `recommendation` is the one capped for this pod. Containers without one, and those of mode Off,
 * are not under control; where nothing is, nothing is admitted. A missing request counts as 0. A
 * pod-level stanza is judged as one more container, and what it carries is not judged in
 * containers that do not request it themselves.
 *
 * With `is_upstream_exact` one container has to meet all requirements, a container that lacks a
 * cpu or memory request is admitted at once, and mode Off counts: for comparisons. */
bool td_requirements_admit(struct td_arena *arena, const struct td_vpa *vpa,
                           const struct td_pod *pod, const struct td_recommendation *recommendation,
                           bool is_upstream_exact);

/* "only to TargetHigherThanRequests of cpu or memory, by at least one container" */
void td_requirements_write(const struct td_vpa *vpa, struct td_buf *out);
