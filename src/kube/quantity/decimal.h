/*
 * Decimals of arbitrary precision for quantities: a sign, digits and a power of ten. Private to the
 * quantity module. A td_decimal is a view: its limbs belong to the caller, who passes storage for
 * each result, usually on the stack, and copies what is kept into an arena. No number has more than
 * TD_QUANTITY_DIGITS_MAX digits; where a result would, its lowest digits are cut, so every call
 * takes bounded time and none can fail. Results never share storage with their operands unless a
 * call says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"

#define TD_DECIMAL_LIMB_DIGITS 18
#define TD_DECIMAL_LIMBS_MAX (TD_QUANTITY_DIGITS_MAX / TD_DECIMAL_LIMB_DIGITS + 4)
#define TD_DECIMAL_TEXT_BYTES (TD_DECIMAL_LIMBS_MAX * TD_DECIMAL_LIMB_DIGITS + 1)

struct td_decimal {
    const uint64_t *limbs; /* 18 digits each, lowest first; the last is not 0 */
    uint32_t count;        /* of limbs; 0 for zero */
    int32_t scale;         /* power of ten of the lowest digit */
    bool is_negative;      /* never for zero */
};

/* 10^0 to 10^18. */
extern const uint64_t td_decimal_powers[19];

struct td_decimal td_decimal_from_int64(int64_t value, int32_t scale,
                                        uint64_t limbs[TD_DECIMAL_LIMBS_MAX]);

/* The digits of both texts one after the other, at scale 0; at most TD_QUANTITY_TEXT_BYTES_MAX. */
struct td_decimal td_decimal_from_digits(td_str high, td_str low,
                                         uint64_t limbs[TD_DECIMAL_LIMBS_MAX]);

/* A copy that lives as long as the arena. */
const struct td_decimal *td_decimal_copy(struct td_arena *arena, const struct td_decimal *x);

/* Exact whatever the scales. */
int td_decimal_compare(const struct td_decimal *a, const struct td_decimal *b);

struct td_decimal td_decimal_add(const struct td_decimal *a, const struct td_decimal *b,
                                 uint64_t limbs[TD_DECIMAL_LIMBS_MAX]);
struct td_decimal td_decimal_multiply(const struct td_decimal *x, int64_t factor,
                                      uint64_t limbs[TD_DECIMAL_LIMBS_MAX]);

/* The same number at `scale`, rounded away from zero. A finer scale that would need too many digits
 * leaves the number, which may then be x itself, at its own. */
struct td_decimal td_decimal_round(const struct td_decimal *x, int32_t scale, bool *ret_is_exact,
                                   uint64_t limbs[TD_DECIMAL_LIMBS_MAX]);

/* Divide by 1024 as often as that is exact, changing `limbs`, which must be x's own; returns how
 * often. */
uint32_t td_decimal_remove_1024(struct td_decimal *x, uint64_t limbs[TD_DECIMAL_LIMBS_MAX]);

/* The digits as int64, without the power of ten; false when they do not fit. */
bool td_decimal_digits_int64(const struct td_decimal *x, int64_t *ret);

/* x / 10^scale, rounded away from zero and clamped. */
int64_t td_decimal_scaled_int64(const struct td_decimal *x, int32_t scale);

/* The nearest double to the digits, without the power of ten; infinite when there is none. */
double td_decimal_digits_double(const struct td_decimal *x);

/* The digits, without sign and power of ten, as text ("0" for zero); returns the length, no NUL is
 * written. */
size_t td_decimal_digits_text(const struct td_decimal *x, char out[TD_DECIMAL_TEXT_BYTES]);
