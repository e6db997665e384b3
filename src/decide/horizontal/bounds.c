#include "decide/horizontal/bounds.h"

#define BOUNDS_VALUE_MAX (INT64_MAX / 4)

/* Does every usage that is shown as `shown` ask for more replicas, or for fewer? */
static bool is_moved(const struct td_hpa_basis *basis, int32_t current, int64_t shown, bool is_out)
{
    int32_t replicas = td_hpa_calc_again(basis, shown, !is_out);
    return is_out ? replicas > current : replicas < current;
}

/* Of two values on different sides of the border, those next to it: *low and *high. */
static void halve(const struct td_hpa_basis *basis, int32_t current, bool is_out, int64_t *low,
                  int64_t *high)
{
    bool is_low_moved = is_moved(basis, current, *low, is_out);
    while (*high - *low > 1) {
        int64_t middle = *low + (*high - *low) / 2;
        if (is_moved(basis, current, middle, is_out) == is_low_moved) {
            *low = middle;
        } else {
            *high = middle;
        }
    }
}

/* The border lies on the side of the target where the count moves: at the target itself it stays,
 * unless status and spec disagree about the replicas. */
static bool find_border(const struct td_hpa_basis *basis, int32_t current, bool is_out,
                        int64_t *ret_low)
{
    bool is_above = is_moved(basis, current, basis->target, is_out) != is_out;
    int64_t max = basis->measure == TD_HPA_MEASURE_UTILIZATION ? INT32_MAX / 2 : BOUNDS_VALUE_MAX;
    int64_t low = is_above ? basis->target : 0;
    int64_t high = basis->target;
    bool is_low_moved = is_moved(basis, current, low, is_out);
    if (is_above) {
        while (high < max && is_moved(basis, current, high, is_out) == is_low_moved) {
            low = high;
            high = high > max / 2 ? max : high * 2;
        }
    }
    if (low >= high || is_moved(basis, current, high, is_out) == is_low_moved) {
        return false; /* no value moves it */
    }
    halve(basis, current, is_out, &low, &high);
    *ret_low = low;
    return true;
}

static bool is_disabled(const struct td_hpa *hpa, const struct td_hpa_rules *rules)
{
    return hpa->has_behavior && rules->select == TD_HPA_SELECT_DISABLED;
}

struct td_hpa_bounds td_hpa_bounds_of(const struct td_hpa *hpa, const struct td_hpa_basis *basis,
                                      int32_t current)
{
    struct td_hpa_bounds bounds = {.can_scale_out = false};
    if (basis->target <= 0 || basis->replicas <= 0 || current <= 0) {
        return bounds;
    }
    if (current < hpa->max_replicas && !is_disabled(hpa, &hpa->scale_up)) {
        bounds.can_scale_out = find_border(basis, current, true, &bounds.out_above);
    }
    if (current > hpa->min_replicas && !is_disabled(hpa, &hpa->scale_down)) {
        bounds.can_scale_in = find_border(basis, current, false, &bounds.in_up_to);
    }
    return bounds;
}
