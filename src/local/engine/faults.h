/*
 * Faults on demand: what a scenario breaks for a while. The cluster looks at them where they act;
 * the owner (sim/world.c) sets and clears. All zero: nothing is broken.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/os/clock.h"

struct td_faults {
    bool is_metrics_gap;        /* the three metrics APIs answer 503 */
    td_duration measures_ahead; /* by which clocks of nodes are fast; slow when negative */
    bool are_webhooks_down;     /* connections to webhooks are refused */
    double api_error_share;     /* of requests through the API that fail with 500, 0 to 1 */
    uint64_t draws;             /* random numbers that were taken for it */
};
