/* A bounded curve keeps every peak: its points are compared with the raw values. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "sim/record/curve.h"
#include "support/random.h"

static double raw_extreme(const double *raw, size_t from, size_t to, bool is_high)
{
    double found = NAN;
    for (size_t i = from; i < to; i++) {
        bool is_more = isnan(found) || (is_high ? raw[i] > found : raw[i] < found);
        found = !isnan(raw[i]) && is_more ? raw[i] : found;
    }
    return found;
}

/* Raw values of each column against the two points of it: the same lowest, the same highest, in the
 * order in which they came. */
static void test_curve_keeps_the_extremes_of_each_column(void **state)
{
    (void)state;
    const size_t counts[] = {1, 2, 99, 100, 101, 1000, 51841, 51999};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        size_t count = counts[c];
        double *raw = td_alloc_zero(count, sizeof(*raw));
        struct td_curve curve = {.count = 0};
        td_duration lasts = (td_duration)(count > 1 ? count - 1 : 1) * 5 * TD_SECOND;
        struct td_curve_grid grid = td_curve_grid(lasts, 5 * TD_SECOND, 100);
        assert_true(grid.count <= 100);
        for (size_t i = 0; i < count; i++) {
            raw[i] = (double)random_below(1000000);
            td_curve_put(&curve, &grid, (td_duration)i * 5 * TD_SECOND, raw[i]);
        }
        size_t wide = (size_t)(grid.column / (5 * TD_SECOND));
        for (size_t column = 0; column * wide < count; column++) {
            size_t from = column * wide;
            size_t to = from + wide < count ? from + wide : count;
            double low = td_curve_point(&curve, &grid, column * grid.slots);
            double high = td_curve_point(&curve, &grid, column * grid.slots + grid.slots - 1);
            double least = low < high ? low : high;
            double most = low < high ? high : low;
            assert_true(least == raw_extreme(raw, from, to, false));
            assert_true(most == raw_extreme(raw, from, to, true));
        }
        td_curve_done(&curve);
        td_free(raw);
    }
}

/* Where values are few enough each has a point of its own. */
static void test_curve_keeps_few_values_as_they_are(void **state)
{
    (void)state;
    struct td_curve curve = {.count = 0};
    struct td_curve_grid grid = td_curve_grid(40 * TD_SECOND, 10 * TD_SECOND, 5);
    const double raw[] = {3, 1, NAN, 2, 7};
    for (size_t i = 0; i < 5; i++) {
        td_curve_put(&curve, &grid, (td_duration)i * 10 * TD_SECOND, raw[i]);
    }
    assert_int_equal(grid.slots, 1);
    assert_int_equal(td_curve_step(&grid), 10 * TD_SECOND);
    assert_int_equal(td_curve_points(&curve, &grid), 5);
    for (size_t i = 0; i < 5; i++) {
        double point = td_curve_point(&curve, &grid, i);
        assert_true(point == raw[i] || (isnan(point) && isnan(raw[i])));
    }
    assert_true(isnan(td_curve_point(&curve, &grid, 5)));
    td_curve_done(&curve);
}

/* The order within a column: down and up again is low first, up and down high first. */
static void test_curve_keeps_the_order_of_extremes(void **state)
{
    (void)state;
    static const struct {
        double values[4];
        double first, second;
    } rows[] = {
        {{5, 1, 9, 5}, 1, 9}, {{5, 9, 1, 5}, 9, 1}, {{1, 9, 9, 1}, 1, 9},
        {{4, 4, 4, 4}, 4, 4}, {{9, 5, 5, 1}, 9, 1}, {{NAN, 7, NAN, 3}, 7, 3},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct td_curve curve = {.count = 0};
        struct td_curve_grid grid = td_curve_grid(3 * TD_SECOND, TD_SECOND, 1);
        for (size_t i = 0; i < 4; i++) {
            td_curve_put(&curve, &grid, (td_duration)i * TD_SECOND, rows[r].values[i]);
        }
        assert_int_equal(td_curve_points(&curve, &grid), 2);
        assert_true(td_curve_point(&curve, &grid, 0) == rows[r].first);
        assert_true(td_curve_point(&curve, &grid, 1) == rows[r].second);
        td_curve_done(&curve);
    }
}

/* What is before the start or behind the end is passed over, and takes no memory. */
static void test_curve_passes_over_what_is_outside(void **state)
{
    (void)state;
    struct td_curve curve = {.count = 0};
    struct td_curve_grid grid = td_curve_grid(10 * TD_SECOND, TD_SECOND, 100);
    td_curve_put(&curve, &grid, -1, 1);
    td_curve_put(&curve, &grid, 11 * TD_SECOND, 1);
    td_curve_put(&curve, &grid, INT64_MAX, 1);
    td_curve_put(&curve, &grid, 0, NAN);
    assert_int_equal(curve.count, 0);
    assert_int_equal(curve.cap, 0);
    td_curve_done(&curve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curve_keeps_the_extremes_of_each_column),
        cmocka_unit_test(test_curve_keeps_few_values_as_they_are),
        cmocka_unit_test(test_curve_keeps_the_order_of_extremes),
        cmocka_unit_test(test_curve_passes_over_what_is_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
