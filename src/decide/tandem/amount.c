/*
 * A power is 2^(exponent·log2 base), from the logarithm and exponential that the recommender
 * already keeps identical everywhere. Its error is below 1e-13 of the value for every base that
 * int64 amounts can give; rounding forgives 1e-9, so a whole number stays one.
 */
#include "decide/tandem/amount.h"

#include <math.h>

#include "base/assert.h"
#include "decide/vertical/estimator/gomath.h"

#define LOG2_OF_E 1.44269504088896340736
#define SNAP 1e-9
#define SNAP_INVERSE 1000000000
#define MEMORY_GRANULE ((int64_t)1 << 20)
#define INT64_END 9223372036854775808.0 /* 2^63 */

int64_t td_tandem_saturate(td_wide value)
{
    if (value > INT64_MAX) {
        return INT64_MAX;
    }
    return value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

double td_tandem_power(double base, double exponent)
{
    td_assert(base >= 0);
    if (exponent == 0) {
        return 1;
    }
    if (exponent == 1 || base == 0) {
        return base;
    }
    return td_go_exp2(exponent * (td_go_log(base) * LOG2_OF_E));
}

static int64_t to_int64(double whole)
{
    if (whole >= INT64_END) {
        return INT64_MAX;
    }
    return whole < -INT64_END ? INT64_MIN : (int64_t)whole;
}

/* The nearest whole number when the value is as good as that, else the value. */
static double snap(double value)
{
    double nearest = round(value);
    double slack = SNAP * fmax(1, fabs(value));
    return fabs(value - nearest) <= slack ? nearest : value;
}

int64_t td_tandem_ceil(double value)
{
    return to_int64(ceil(snap(value)));
}

int64_t td_tandem_floor(double value)
{
    return to_int64(floor(snap(value)));
}

int64_t td_tandem_ceil_quotient(td_wide dividend, int64_t divisor)
{
    td_assert(divisor > 0);
    td_wide below = dividend / divisor;
    td_wide rest = dividend % divisor;
    if (rest < 0) {
        below--;
        rest += divisor;
    }
    td_wide to_nearest = rest * 2 < divisor ? rest : divisor - rest;
    td_wide size = dividend < 0 ? -dividend : dividend;
    bool is_near = to_nearest * SNAP_INVERSE <= (size > divisor ? size : divisor);
    bool is_nearest_below = rest * 2 < divisor;
    return td_tandem_saturate(rest == 0 || (is_near && is_nearest_below) ? below : below + 1);
}

int64_t td_tandem_round_up(enum td_hvpa_resource resource, double amount)
{
    if (resource == TD_HVPA_CPU) {
        return td_tandem_ceil(amount);
    }
    td_wide granules = td_tandem_ceil(amount / (double)MEMORY_GRANULE);
    return td_tandem_saturate(granules * MEMORY_GRANULE);
}

bool td_tandem_is_change_set(const struct td_hvpa_change *change)
{
    return change->has_value || change->has_percentage;
}

bool td_tandem_reaches(const struct td_hvpa_change *change, int64_t difference, int64_t base)
{
    return (change->has_value && difference >= change->amount) ||
           (change->has_percentage &&
            (td_wide)difference * 100 >= (td_wide)base * change->percentage);
}

bool td_tandem_exceeds(const struct td_hvpa_change *change, int64_t difference, int64_t base)
{
    return (change->has_value && difference > change->amount) ||
           (change->has_percentage &&
            (td_wide)difference * 100 > (td_wide)base * change->percentage);
}

int64_t td_tandem_cap_by_limit(const struct td_tandem_row *row, int64_t request)
{
    bool is_over = row->is_requests_only && row->limit.is_set && request > row->limit.amount;
    return is_over ? row->limit.amount : request;
}

static td_wide ceil_div(td_wide dividend, td_wide divisor)
{
    return (dividend + divisor - 1) / divisor;
}

/* The farther of both ends of the gap. */
static td_wide limit_by_gap(const struct td_hvpa_change *gap, int64_t request)
{
    td_wide by_percentage = gap->has_percentage
                                ? ceil_div((td_wide)request * (100 + (td_wide)gap->percentage), 100)
                                : 0;
    td_wide by_value = gap->has_value ? (td_wide)request + gap->amount : 0;
    return by_percentage > by_value ? by_percentage : by_value;
}

int64_t td_tandem_limit_for(const struct td_tandem_row *row, const struct td_hvpa_change *gap,
                            int64_t request, bool *ret_is_saturated)
{
    td_assert(row->limit.is_set);
    struct td_tandem_pair origin = row->origin;
    if (origin.request == 0 || origin.limit == 0) {
        origin = (struct td_tandem_pair){.request = row->request, .limit = row->limit.amount};
    }
    if (origin.request == 0 || origin.limit == origin.request) {
        return request;
    }
    td_wide limit = td_tandem_is_change_set(gap)
                        ? limit_by_gap(gap, request)
                        : ceil_div((td_wide)origin.limit * request, origin.request);
    *ret_is_saturated = limit > INT64_MAX;
    return td_tandem_saturate(limit);
}
