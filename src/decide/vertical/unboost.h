/*
 * Startup boosts of a running pod (vpa.md 3.7): the webhook leaves an annotation
 * vpaCpuStartupBoost/<container> for each container whose CPU it raised, and the boost ends some
 * time after the pod became Ready. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa.h"
#include "base/clock.h"
#include "decide/vertical/pod.h"

struct td_boost_status {
    size_t count;          /* annotations of boosts */
    size_t expired_count;  /* of them to be taken back */
    td_duration remaining; /* until the next one expires; 0 when none is waiting */
};

struct td_boost_status td_boost_status_of(const struct td_vpa *vpa,
                                          const struct td_vertical_pod *pod, td_time now);

/* Does the pod have any boost? */
bool td_boost_is_active(const struct td_vertical_pod *pod);
