/*
 * What the files of the quantity module share: the step from a quantity to a decimal and back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/quantity/decimal.h"
#include "kube/quantity/quantity.h"

#define TD_QUANTITY_STEPS_MAX 18 /* powers of ten that fit an int64 */

/* scale + steps in 32 bits, wrapping as upstream's does. */
static inline int32_t td_quantity_scale_add(int32_t scale, int64_t steps)
{
    return (int32_t)(uint32_t)((int64_t)scale + steps);
}

/* The quantity as a decimal; limbs is storage for one that is an int64. */
struct td_decimal td_quantity_decimal(const struct td_quantity *quantity,
                                      uint64_t limbs[TD_DECIMAL_LIMBS_MAX]);

/* Make `x` the value of the quantity, which keeps its format and loses its text. */
void td_quantity_store(struct td_arena *arena, struct td_quantity *quantity,
                       const struct td_decimal *x);
