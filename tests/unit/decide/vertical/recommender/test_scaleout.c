/* When a workload counts as scaled out, and for how long memory is held. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "decide/vertical/recommender/scaleout.h"

#define START ((td_time)1772366400 * TD_SECOND)

/* Counts at hours after the first look. */
static void test_more_pods_than_lately_are_a_scale_out(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct {
            int64_t hour;
            uint32_t count;
            bool is_held;
        } steps[6];
    } rows[] = {
        {"grown, and held for six hours", {{1, 26, true}, {6, 26, true}, {7, 26, false}}},
        {"a pod that comes back is none", {{1, 2, false}, {2, 3, false}}},
        {"nor are more, after fewer, of what was there lately",
         {{1, 26, true}, {8, 3, false}, {10, 26, false}}},
        {"long ago counts no more", {{1, 26, true}, {8, 3, false}, {15, 3, false}, {22, 26, true}}},
        {"each growth anew", {{1, 4, true}, {5, 5, true}, {10, 5, true}, {11, 5, false}}},
        {"from nothing", {{1, 0, false}, {20, 0, false}, {30, 0, false}, {31, 5, false}}},
        {"a look after a long time", {{100, 5, false}, {101, 6, true}}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_scale_out scale_out;
        td_time until;
        print_message("%s\n", rows[i].what);
        const struct td_scale_out_pods pods = {.count = 3, .old_count = 3};
        td_scale_out_begin(&scale_out, &pods, START);
        assert_false(td_scale_out_holds(&scale_out, START, &until));
        for (size_t s = 0; s < 6 && rows[i].steps[s].hour > 0; s++) {
            td_time now = START + rows[i].steps[s].hour * TD_HOUR;
            td_scale_out_see(&scale_out, rows[i].steps[s].count, now);
            assert_int_equal(td_scale_out_holds(&scale_out, now, &until), rows[i].steps[s].is_held);
        }
    }
}

/* After a restart the ages of pods tell when they became more. */
static void test_the_first_look_asks_the_ages_of_pods(void **state)
{
    (void)state;
    static const struct {
        struct td_scale_out_pods pods;
        bool is_held;
        td_time until;
    } rows[] = {
        {{.count = 26, .old_count = 3, .last_start = START - TD_HOUR}, true, START + 5 * TD_HOUR},
        {{.count = 3, .old_count = 3}, false, 0},
        {{.count = 26, .old_count = 0, .last_start = START - TD_HOUR}, false, 0},
        {{.count = 0, .old_count = 0}, false, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_scale_out scale_out;
        td_time until;
        td_scale_out_begin(&scale_out, &rows[i].pods, START);
        assert_int_equal(td_scale_out_holds(&scale_out, START, &until), rows[i].is_held);
        if (rows[i].is_held) {
            assert_int_equal(until, rows[i].until);
            assert_false(td_scale_out_holds(&scale_out, until, &until));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_pods_than_lately_are_a_scale_out),
        cmocka_unit_test(test_the_first_look_asks_the_ages_of_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
