/*
 * At which values of a metric the count of replicas begins to move: found by asking the replica
 * calculator again, so that rounding, tolerance, pods without a sample and the bounds of the HPA
 * count as they do in a decision. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decide/horizontal/replicas.h"

/* In the unit of the target, as status shows it. */
struct td_hpa_bounds {
    bool can_scale_out;
    int64_t out_above; /* every value above it asks for more replicas; it does not */
    bool can_scale_in;
    int64_t in_up_to; /* it and every value below ask for fewer replicas; one above does not */
};

/* What would hold it for a time only (stabilisation, rates) does not count; minReplicas,
 * maxReplicas and a disabled direction do. */
struct td_hpa_bounds td_hpa_bounds_of(const struct td_hpa *hpa, const struct td_hpa_basis *basis,
                                      int32_t current);
