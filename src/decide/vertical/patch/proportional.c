/* Upstream's arithmetic with its own rounding: cpu in milli-units, everything else in whole units,
 * products in 128 bits. */
#include "decide/vertical/patch/proportional.h"

#include "decide/vertical/resourcelist.h"

static bool is_nothing(const struct td_quantity *quantity)
{
    return !quantity || td_quantity_value(quantity) == 0;
}

/* Equal in thousandths, as upstream compares; amounts past that range are compared exactly. */
static bool is_equal_amount(const struct td_quantity *a, const struct td_quantity *b)
{
    int64_t milli = td_quantity_milli(a);
    bool is_clamped = milli == INT64_MAX || milli == INT64_MIN;
    return milli == td_quantity_milli(b) && (!is_clamped || td_quantity_compare(a, b) == 0);
}

/* Euclidean division, as Go's big.Int: the remainder is never negative. */
static __int128 divide(__int128 dividend, __int128 divisor, enum td_rounding rounding)
{
    __int128 quotient = dividend / divisor;
    __int128 remainder = dividend % divisor;
    if (remainder < 0) {
        quotient += divisor > 0 ? -1 : 1;
    }
    return rounding == TD_ROUND_UP && remainder != 0 ? quotient + 1 : quotient;
}

struct td_quantity td_scale_quantity(td_str resource, const struct td_quantity *quantity,
                                     const struct td_quantity *numerator,
                                     const struct td_quantity *base, enum td_rounding rounding,
                                     bool *ret_is_capped)
{
    bool is_cpu = td_str_equal(resource, TD_CPU);
    int32_t scale = is_cpu ? -3 : 0;
    int64_t divisor = td_quantity_scaled(base, scale);
    if (ret_is_capped) {
        *ret_is_capped = false;
    }
    if (divisor == 0) {
        return *quantity;
    }
    __int128 product =
        (__int128)td_quantity_scaled(quantity, scale) * td_quantity_scaled(numerator, scale);
    __int128 quotient = divide(product, divisor, rounding);
    if (quotient > INT64_MAX || quotient < INT64_MIN) {
        quotient = INT64_MAX;
        if (ret_is_capped) {
            *ret_is_capped = true;
        }
    }
    return is_cpu ? td_quantity_new_milli((int64_t)quotient, quantity->format)
                  : td_quantity_new((int64_t)quotient, quantity->format);
}

struct td_proportional_limit td_proportional_limit(td_str resource,
                                                   const struct td_proportion *proportion)
{
    const struct td_quantity *limit =
        is_nothing(proportion->limit) ? proportion->default_limit : proportion->limit;
    const struct td_quantity *request = proportion->request;
    const struct td_quantity *recommended = proportion->recommended;
    if (is_nothing(limit)) {
        return (struct td_proportional_limit){.note =
                                                  "limit NOT set since originalLimit is nil or 0"};
    }
    if (is_nothing(recommended)) {
        return (struct td_proportional_limit){
            .note = "limit NOT set since recommendedRequest is nil or 0"};
    }
    /* A limit without a request is taken by Kubernetes as if both were equal. */
    if (is_nothing(request) || is_equal_amount(request, limit)) {
        return (struct td_proportional_limit){.is_set = true, .limit = *recommended};
    }
    bool is_capped = false;
    struct td_proportional_limit result = {.is_set = true};
    result.limit =
        td_scale_quantity(resource, limit, recommended, request, TD_ROUND_DOWN, &is_capped);
    result.note =
        is_capped ? "failed to keep limit to request ratio; capping limit to int64" : NULL;
    return result;
}

struct td_proportional_limits td_proportional_limits(struct td_arena *arena,
                                                     const struct td_original *original,
                                                     const struct td_resource_list *recommended)
{
    const td_str names[] = {TD_CPU, TD_MEMORY};
    struct td_proportional_limits result = {.note_count = 0};
    for (size_t i = 0; i < 2; i++) {
        const struct td_proportion proportion = {
            .limit = td_resource_list_get(original->limits, names[i]),
            .request = td_resource_list_get(original->requests, names[i]),
            .recommended = td_resource_list_get(recommended, names[i]),
            .default_limit = original->default_limits
                                 ? td_resource_list_get(original->default_limits, names[i])
                                 : NULL,
        };
        struct td_proportional_limit made = td_proportional_limit(names[i], &proportion);
        if (made.is_set) {
            td_resource_list_set(arena, &result.limits, names[i], &made.limit);
        }
        if (made.note) {
            result.notes[result.note_count++] =
                td_arena_format(arena, "%.*s: %s", TD_STR_ARG(names[i]), made.note);
        }
    }
    if (result.limits.count == 0) {
        result.note_count = 0;
    }
    return result;
}

struct td_quantity td_boundary_request(td_str resource, const struct td_proportion *proportion,
                                       const struct td_quantity *boundary)
{
    const struct td_quantity zero = td_quantity_new(0, TD_QUANTITY_NONE);
    const struct td_quantity *limit =
        is_nothing(proportion->limit) ? proportion->default_limit : proportion->limit;
    if (is_nothing(limit) || !boundary) {
        return zero;
    }
    if (is_nothing(proportion->request)) {
        return *boundary;
    }
    return td_scale_quantity(resource, proportion->request, boundary, limit, TD_ROUND_DOWN, NULL);
}
