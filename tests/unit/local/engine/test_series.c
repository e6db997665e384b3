/*
 * Quantities over time: values at and around the points of each shape, and where they jump.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "local/engine/series.h"

#define DAY (24 * TD_HOUR)

static const struct td_series_point points[] = {{.at = 10 * TD_SECOND, .value = 5},
                                                {.at = 20 * TD_SECOND, .value = 15}};

/* Values of each shape, by hand. */
static void test_series_has_the_value_of_its_shape(void **state)
{
    (void)state;
    const struct td_series constant = {.low = 3};
    const struct td_series steps = {
        .shape = TD_SERIES_STEPS, .low = 1, .points = points, .point_count = 2};
    const struct td_series again = {.shape = TD_SERIES_STEPS,
                                    .low = 1,
                                    .points = points,
                                    .point_count = 2,
                                    .period = 30 * TD_SECOND};
    const struct td_series ramp = {.shape = TD_SERIES_RAMP, .points = points, .point_count = 2};
    const struct td_series saw = {
        .shape = TD_SERIES_RAMP, .points = points, .point_count = 2, .period = 25 * TD_SECOND};
    const struct td_series day = {
        .shape = TD_SERIES_DAY, .low = 10, .high = 20, .peak_at = 14 * TD_HOUR};
    const struct td_series week = {
        .shape = TD_SERIES_WEEK, .low = 10, .high = 20, .peak_at = 14 * TD_HOUR, .weekend = 0.5};
    const struct td_series spikes = {
        .shape = TD_SERIES_SPIKES, .low = 1, .high = 9, .every = TD_MINUTE, .lasts = 5 * TD_SECOND};
    const struct td_series below = {.low = -1};
    const struct {
        const struct td_series *series;
        td_duration since;
        double value;
        td_duration jump;
    } rows[] = {
        {&constant, 0, 3, INT64_MAX},
        {&below, 0, 0, INT64_MAX},
        {&steps, 0, 1, 10 * TD_SECOND},
        {&steps, 10 * TD_SECOND - 1, 1, 10 * TD_SECOND},
        {&steps, 10 * TD_SECOND, 5, 20 * TD_SECOND},
        {&steps, 90 * TD_SECOND, 15, INT64_MAX},
        {&again, 25 * TD_SECOND, 15, 30 * TD_SECOND},
        {&again, 30 * TD_SECOND, 1, 40 * TD_SECOND},
        {&again, 40 * TD_SECOND, 5, 50 * TD_SECOND},
        {&ramp, 0, 5, INT64_MAX},
        {&ramp, 15 * TD_SECOND, 10, INT64_MAX},
        {&ramp, 90 * TD_SECOND, 15, INT64_MAX},
        {&saw, 24 * TD_SECOND, 15, 25 * TD_SECOND},
        {&saw, 40 * TD_SECOND, 10, 50 * TD_SECOND},
        {&day, 14 * TD_HOUR, 20, INT64_MAX},
        {&day, 2 * TD_HOUR, 10, INT64_MAX},
        {&day, 20 * TD_HOUR, 15, INT64_MAX},
        {&week, 4 * DAY + 14 * TD_HOUR, 20, 5 * DAY},
        {&week, 5 * DAY + 14 * TD_HOUR, 10, 6 * DAY},
        {&week, 7 * DAY + 14 * TD_HOUR, 20, 8 * DAY},
        {&spikes, 0, 9, 5 * TD_SECOND},
        {&spikes, 5 * TD_SECOND, 1, TD_MINUTE},
        {&spikes, TD_MINUTE, 9, 65 * TD_SECOND},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (td_series_at(rows[i].series, rows[i].since, 1) != rows[i].value) {
            fail_msg("row %zu: %g", i, td_series_at(rows[i].series, rows[i].since, 1));
        }
        assert_int_equal(td_series_next_jump(rows[i].series, rows[i].since), rows[i].jump);
    }
}

/* Noise stays inside its bounds, follows from the seed and has no steps. */
static void test_series_noise_is_bounded_and_repeats(void **state)
{
    (void)state;
    const struct td_series series = {.low = 100, .noise = 0.05};
    double before = td_series_at(&series, 0, 7);
    double other = 0;
    for (td_duration at = 0; at < TD_HOUR; at += TD_SECOND) {
        double value = td_series_at(&series, at, 7);
        assert_true(value >= 95 && value <= 105);
        assert_true(value == td_series_at(&series, at, 7));
        assert_true(value - before < 0.2 && before - value < 0.2); /* 10 in 60 s at most */
        other += value == td_series_at(&series, at, 8) ? 1 : 0;
        before = value;
    }
    assert_true(other < 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series_has_the_value_of_its_shape),
        cmocka_unit_test(test_series_noise_is_bounded_and_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
