/*
 * A value over time in a bounded number of columns. Each column keeps its lowest and its highest
 * value in the order in which they came, so that no peak is lost however many values share a
 * column. All curves of one run have the same grid. Values are kept as floats: exact to seven
 * digits. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/os/clock.h"

struct td_curve_grid {
    td_duration column; /* time that a column covers, a multiple of the distance of values */
    size_t count;       /* columns */
    size_t slots;       /* points of a column: 1 where each value has a column to itself, else 2 */
};

/* For values that come every `every` during `lasts`, in at most `columns_max` columns. */
struct td_curve_grid td_curve_grid(td_duration lasts, td_duration every, size_t columns_max);

struct td_curve {
    float *low; /* one for each column, NaN: no value yet; owned, as the two below */
    float *high;
    bool *is_high_first;
    size_t count; /* columns up to the last that has a value */
    size_t cap;
};

void td_curve_done(struct td_curve *curve);

/* A value at a time since the start. NaN, and times outside the grid, are passed over. */
void td_curve_put(struct td_curve *curve, const struct td_curve_grid *grid, td_duration at,
                  double value);

/* What was put: grid->slots points for each column; NaN where there is none. */
size_t td_curve_points(const struct td_curve *curve, const struct td_curve_grid *grid);
double td_curve_point(const struct td_curve *curve, const struct td_curve_grid *grid, size_t point);

/* Is any point of them not the same? */
bool td_curve_differs(const struct td_curve *a, const struct td_curve *b,
                      const struct td_curve_grid *grid);

/* The time between two points. */
td_duration td_curve_step(const struct td_curve_grid *grid);
