/*
 * Arithmetic of decisions: products that cannot wrap, powers that are the same on every machine,
 * and rounding that forgives the last bits. Amounts are milli-cores or bytes, not negative. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/hvpa/hvpa.h"
#include "decide/tandem/decide.h"

typedef __int128 td_wide;

/* To int64, the nearest one when outside. */
int64_t td_tandem_saturate(td_wide value);

/* base^exponent for a base of 0 or more and an exponent from 0 to 1; exact for the exponents 0 and
 * 1 and for equal inputs identical on every machine, which libm does not promise. */
double td_tandem_power(double base, double exponent);

/* The next whole number up or down, but the nearest one when it is within 1e-9 of the value (or of
 * 1 for small values); cut at int64. */
int64_t td_tandem_ceil(double value);
int64_t td_tandem_floor(double value);

/* The same for the quotient of whole numbers, exactly; divisor above 0. */
int64_t td_tandem_ceil_quotient(td_wide dividend, int64_t divisor);

/* A blended amount rounded up to 1m or 1Mi. */
int64_t td_tandem_round_up(enum td_hvpa_resource resource, double amount);

/* Is |a - b| at least (or above) the smaller of the members that `change` gives, a percentage being
 * one of `base`? False when it gives none. */
bool td_tandem_reaches(const struct td_hvpa_change *change, int64_t difference, int64_t base);
bool td_tandem_exceeds(const struct td_hvpa_change *change, int64_t difference, int64_t base);
bool td_tandem_is_change_set(const struct td_hvpa_change *change);

/* A request that its limit, where that is fixed, allows. */
int64_t td_tandem_cap_by_limit(const struct td_tandem_row *row, int64_t request);

/* The limit that goes with a new request above 0, for a row whose limit follows it. It keeps the
 * proportion of the row's origin: from resize to resize the rounding would add up. */
int64_t td_tandem_limit_for(const struct td_tandem_row *row, const struct td_hvpa_change *gap,
                            int64_t request, bool *ret_is_saturated);
