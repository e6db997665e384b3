/*
 * When the pods of a VPA became more. New pods have not yet used the memory that those before them
 * need, and there may be many of them: until they have lived for hours, memory is not lowered.
 *
 * A scale-out is a number of pods above the largest of the last TD_SCALE_OUT_HOLD to twice as long;
 * a pod that is evicted and comes back is none. Nothing is stored: after a restart the pods' own
 * ages tell. Pure, of constant size.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/os/clock.h"

#define TD_YOUNG_POD TD_HOUR            /* in which a pod's memory peaks lower nothing */
#define TD_SCALE_OUT_HOLD (6 * TD_HOUR) /* after a scale-out in which memory is not lowered */

struct td_scale_out {
    td_time at;           /* of the last one; valid when is_set */
    td_time since;        /* the period in which most_now was seen began; valid when is_known */
    uint32_t most_now;    /* pods, in this period */
    uint32_t most_before; /* in the one before it */
    bool is_known;
    bool is_set;
};

/* What pods are there at the first look. */
struct td_scale_out_pods {
    uint32_t count;
    uint32_t old_count; /* that have started TD_SCALE_OUT_HOLD ago, or at an unknown time */
    td_time last_start; /* of the youngest that is not old; valid when there is one */
};

/* The first look. Where no pod is old, none needs to be spared. */
void td_scale_out_begin(struct td_scale_out *scale_out, const struct td_scale_out_pods *pods,
                        td_time now);

/* Every other look; times must not go back. */
void td_scale_out_see(struct td_scale_out *scale_out, uint32_t count, td_time now);

/* Is memory not to be lowered? Then *ret_until tells how long. */
bool td_scale_out_holds(const struct td_scale_out *scale_out, td_time now, td_time *ret_until);
