/* Clocks: real, accelerated and virtual, and the way back to the machine's time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/os/clock.h"

/* The real clock is near the machine's wall time and its steady time does not go back. */
static void test_clock_real_follows_the_machine(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_real();
    td_time before = (td_time)time(NULL) * TD_SECOND;
    td_time wall = td_clock_wall(&clock);
    assert_true(wall > before - 2 * TD_SECOND);
    assert_true(wall < before + 60 * TD_SECOND);
    td_duration last = td_clock_steady(&clock);
    for (int i = 0; i < 10000; i++) {
        td_duration now = td_clock_steady(&clock);
        assert_true(now >= last);
        last = now;
    }
    assert_int_equal(td_clock_real_span(&clock, 5), 5);
    assert_int_equal(td_clock_real_span(&clock, 0), 0);
    assert_int_equal(td_clock_real_span(&clock, -5), 0);
}

/* A day passes in a tenth of a second, wall and steady together. */
static void test_clock_accelerated_multiplies_elapsed_time(void **state)
{
    (void)state;
    td_time start = 1767366245 * TD_SECOND;
    struct td_clock machine = td_clock_real();
    td_duration before = td_clock_steady(&machine);
    struct td_clock clock = td_clock_accelerated(864000, start);
    td_duration after = td_clock_steady(&machine);
    assert_true(td_clock_steady(&clock) >= 0);
    while (td_clock_steady(&machine) - after < 100 * TD_MILLISECOND) {
    }
    td_duration steady = td_clock_steady(&clock);
    td_time wall = td_clock_wall(&clock);
    assert_true(steady >= 24 * TD_HOUR);
    assert_true(steady <= (td_clock_steady(&machine) - before) * 864000);
    assert_true(wall - start >= steady);
}

/* Waiting is shorter on a fast clock, longer on a slow one, rounded up, and none when virtual. */
static void test_clock_real_span_goes_back_to_the_machine(void **state)
{
    (void)state;
    static const struct {
        double speed;
        td_duration span;
        td_duration real;
    } rows[] = {
        {60, TD_MINUTE, TD_SECOND},
        {1, 7, 7},
        {0.5, 10, 20},
        {3, 10, 4},
        {1e6, 1, 1},
        {60, -TD_MINUTE, 0},
        {60, 0, 0},
        {1e-9, INT64_MAX, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_clock clock = td_clock_accelerated(rows[i].speed, 0);
        assert_true(td_clock_real_span(&clock, rows[i].span) == rows[i].real);
    }
    struct td_clock clock = td_clock_virtual(0);
    assert_int_equal(td_clock_real_span(&clock, TD_HOUR), 0);
}

/* The other way: what the machine waits is more on a fast clock, and itself on the other kinds. */
static void test_clock_from_machine_scales_accelerated_time_only(void **state)
{
    (void)state;
    static const struct {
        double speed;
        td_duration machine;
        td_duration span;
    } rows[] = {
        {60, TD_SECOND, TD_MINUTE},
        {1, 7, 7},
        {0.5, 10, 5},
        {60, 0, 0},
        {60, -TD_SECOND, -TD_MINUTE},
        {60, INT64_MAX, INT64_MAX},
        {60, INT64_MIN, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_clock clock = td_clock_accelerated(rows[i].speed, 0);
        assert_true(td_clock_from_machine(&clock, rows[i].machine) == rows[i].span);
    }
    struct td_clock clock = td_clock_real();
    td_duration before = td_clock_steady(&clock);
    assert_int_equal(td_clock_from_machine(&clock, TD_HOUR), TD_HOUR);
    assert_true(td_clock_machine(&clock) >= before);
    struct td_clock fast = td_clock_accelerated(60, 0);
    assert_true(td_clock_machine(&fast) >= before);
    clock = td_clock_virtual(0);
    td_clock_advance(&clock, TD_MINUTE);
    assert_int_equal(td_clock_from_machine(&clock, TD_HOUR), TD_HOUR);
    assert_int_equal(td_clock_machine(&clock), TD_MINUTE);
}

/* A virtual clock moves by what it is told and stays at the end of time. */
static void test_clock_virtual_moves_only_when_reported(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_virtual(1000);
    assert_int_equal(td_clock_wall(&clock), 1000);
    assert_int_equal(td_clock_steady(&clock), 0);
    td_clock_advance(&clock, 0);
    td_clock_advance(&clock, TD_SECOND);
    assert_int_equal(td_clock_wall(&clock), 1000 + TD_SECOND);
    assert_int_equal(td_clock_steady(&clock), TD_SECOND);
    td_clock_advance(&clock, INT64_MAX);
    td_clock_advance(&clock, INT64_MAX);
    assert_true(td_clock_steady(&clock) == INT64_MAX);
    assert_true(td_clock_wall(&clock) == INT64_MAX);
    clock = td_clock_virtual(-5 * TD_HOUR);
    td_clock_advance(&clock, TD_HOUR);
    assert_true(td_clock_wall(&clock) == -4 * TD_HOUR);
}

/* A real clock that is set, or made faster, goes on from where it is: its steady time does not
 * jump, and the machine's times stay what they are. */
static void test_clock_real_can_be_taken_from_the_machine(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_real();
    td_duration steady = td_clock_steady(&clock);
    td_time wall = td_clock_machine_wall(&clock);
    td_clock_set_wall(&clock, 5 * TD_HOUR);
    assert_int_equal(clock.kind, TD_CLOCK_ACCELERATED);
    assert_true(td_clock_wall(&clock) >= 5 * TD_HOUR);
    assert_true(td_clock_wall(&clock) < 5 * TD_HOUR + TD_MINUTE);
    assert_true(td_clock_steady(&clock) >= steady);
    assert_true(td_clock_steady(&clock) < steady + TD_MINUTE);
    assert_true(td_clock_machine_wall(&clock) >= wall);
    clock = td_clock_real();
    td_clock_set_speed(&clock, 86400);
    td_duration from = td_clock_steady(&clock);
    wall = td_clock_wall(&clock);
    while (td_clock_machine(&clock) - steady < 100 * TD_MILLISECOND) {
    }
    td_clock_set_wall(&clock, wall);
    assert_true(td_clock_steady(&clock) - from >= TD_MINUTE);
    assert_true(td_clock_wall(&clock) >= wall);
    clock = td_clock_virtual(7);
    assert_int_equal(td_clock_machine_wall(&clock), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_real_follows_the_machine),
        cmocka_unit_test(test_clock_accelerated_multiplies_elapsed_time),
        cmocka_unit_test(test_clock_real_span_goes_back_to_the_machine),
        cmocka_unit_test(test_clock_from_machine_scales_accelerated_time_only),
        cmocka_unit_test(test_clock_virtual_moves_only_when_reported),
        cmocka_unit_test(test_clock_real_can_be_taken_from_the_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
