/*
 * A column knows which of its extremes came later: a new lowest value came after the highest one so
 * far, and the other way round.
 */
#include "sim/record/curve.h"

#include <math.h>

#include "base/alloc.h"
#include "base/assert.h"

#define CURVE_START ((size_t)64)

struct td_curve_grid td_curve_grid(td_duration lasts, td_duration every, size_t columns_max)
{
    td_assert(lasts > 0);
    td_assert(every > 0);
    td_assert(columns_max > 0);
    td_duration values = lasts / every + 1; /* one at the very start */
    td_duration shared = (values + (td_duration)columns_max - 1) / (td_duration)columns_max;
    return (struct td_curve_grid){
        .column = shared * every,
        .count = (size_t)((values + shared - 1) / shared),
        .slots = shared == 1 ? 1 : 2,
    };
}

void td_curve_done(struct td_curve *curve)
{
    td_free(curve->low);
    td_free(curve->high);
    td_free(curve->is_high_first);
    *curve = (struct td_curve){.count = 0};
}

static void curve_grow(struct td_curve *curve, size_t count, size_t max)
{
    size_t cap = curve->cap > 0 ? curve->cap : CURVE_START;
    while (cap < count) {
        cap *= 2;
    }
    cap = cap < max ? cap : max;
    curve->low = td_realloc(curve->low, cap * sizeof(curve->low[0]));
    curve->high = td_realloc(curve->high, cap * sizeof(curve->high[0]));
    curve->is_high_first = td_realloc(curve->is_high_first, cap * sizeof(curve->is_high_first[0]));
    for (size_t i = curve->cap; i < cap; i++) {
        curve->low[i] = NAN;
        curve->high[i] = NAN;
        curve->is_high_first[i] = false;
    }
    curve->cap = cap;
}

void td_curve_put(struct td_curve *curve, const struct td_curve_grid *grid, td_duration at,
                  double value)
{
    if (isnan(value) || at < 0 || (size_t)(at / grid->column) >= grid->count) {
        return;
    }
    size_t column = (size_t)(at / grid->column);
    float number = (float)value;
    if (column >= curve->cap) {
        curve_grow(curve, column + 1, grid->count);
    }
    curve->count = column < curve->count ? curve->count : column + 1;
    if (isnan(curve->low[column])) {
        curve->low[column] = number;
        curve->high[column] = number;
    } else if (number < curve->low[column]) {
        curve->low[column] = number;
        curve->is_high_first[column] = true;
    } else if (number > curve->high[column]) {
        curve->high[column] = number;
        curve->is_high_first[column] = false;
    }
}

size_t td_curve_points(const struct td_curve *curve, const struct td_curve_grid *grid)
{
    return curve->count * grid->slots;
}

double td_curve_point(const struct td_curve *curve, const struct td_curve_grid *grid, size_t point)
{
    size_t column = point / grid->slots;
    bool is_first = point % grid->slots == 0;
    if (column >= curve->count) {
        return (double)NAN;
    }
    bool is_high = grid->slots == 1 || is_first == curve->is_high_first[column];
    return (double)(is_high ? curve->high[column] : curve->low[column]);
}

bool td_curve_differs(const struct td_curve *a, const struct td_curve *b,
                      const struct td_curve_grid *grid)
{
    size_t count = td_curve_points(a, grid);
    size_t other = td_curve_points(b, grid);
    for (size_t i = 0; i < count || i < other; i++) {
        double left = td_curve_point(a, grid, i);
        double right = td_curve_point(b, grid, i);
        if (left != right && !(isnan(left) && isnan(right))) {
            return true;
        }
    }
    return false;
}

td_duration td_curve_step(const struct td_curve_grid *grid)
{
    return grid->column / (td_duration)grid->slots;
}
