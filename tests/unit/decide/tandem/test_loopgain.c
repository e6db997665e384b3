/* The loop between an HPA and a VPA: its gain, and where it ends. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decide/tandem/loopgain.h"

struct gain_row {
    int64_t usage;
    int64_t target;
    int64_t utilization_percent;
    double gain; /* 0: none */
};

/* g = usage / (U * target); what is unknown gives none. */
static void test_gain(void **state)
{
    (void)state;
    static const struct gain_row rows[] = {
        {500, 575, 50, 1.7391304347826086},
        {500, 1000, 50, 1},
        {400, 500, 80, 1},
        {500, 1200, 50, 0.8333333333333334},
        {0, 575, 50, 0},
        {500, 0, 50, 0},
        {500, 575, 0, 0},
        {-1, 575, 50, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double gain = 7;
        bool has_gain =
            td_loop_gain(rows[i].usage, rows[i].target, rows[i].utilization_percent, &gain);
        assert_int_equal(has_gain, rows[i].gain > 0);
        assert_true(fabs(gain - (rows[i].gain > 0 ? rows[i].gain : 7)) < 1e-12);
    }
}

/* Before anything runs only the target counts: quiet from 79.1 to 96.6 percent. */
static void test_gain_of_a_target(void **state)
{
    (void)state;
    static const struct {
        int64_t utilization_percent;
        bool is_quiet;
    } rows[] = {{1, false}, {50, false}, {79, false}, {80, true}, {96, true}, {97, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double gain = 0;
        assert_true(td_loop_gain_of_target(rows[i].utilization_percent, &gain));
        assert_int_equal(td_loop_gain_is_quiet(gain), rows[i].is_quiet);
    }
    double gain = 0;
    assert_true(td_loop_gain_of_target(50, &gain));
    assert_true(fabs(gain - 1.7391304347826086) < 1e-12);
    assert_false(td_loop_gain_of_target(0, &gain));
}

struct end_row {
    struct td_loop_pair loop;
    int64_t replicas;
    int64_t request;
    int64_t rounds;
};

/* The traces of the specification, and bounds that stop a drift. */
static void test_where_it_ends(void **state)
{
    (void)state;
    static const struct end_row rows[] = {
        {{2, 1000, 50, 1000, 1, 100, 25, INT64_MAX}, 79, 25, 7},
        {{2, 800, 80, 1000, 1, 100, 25, INT64_MAX}, 2, 575, 1},
        {{2, 1000, 50, 1000, 1, 10, 25, INT64_MAX}, 10, 115, 4},
        {{2, 1000, 50, 1000, 2, 2, 25, INT64_MAX}, 2, 575, 1},
        {{2, 1000, 50, 1000, 1, 100, 1000, INT64_MAX}, 2, 1000, 0},
        {{10, 100, 100, 1000, 1, 100, 25, INT64_MAX}, 7, 165, 4},
        {{2, 1000, 50, 0, 1, 100, 25, INT64_MAX}, 1, 25, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_loop_end end = td_loop_pair_run(&rows[i].loop);
        assert_true(end.is_settled);
        assert_int_equal(end.replicas, rows[i].replicas);
        assert_int_equal(end.request, rows[i].request);
        assert_int_equal(end.rounds, rows[i].rounds);
    }
}

/* Amounts at the end of their range do not overflow. */
static void test_largest_amounts(void **state)
{
    (void)state;
    const struct td_loop_pair loop = {.replicas = INT32_MAX,
                                      .request = INT64_MAX,
                                      .utilization_percent = 1,
                                      .usage_total = INT64_MAX,
                                      .replicas_min = 1,
                                      .replicas_max = INT32_MAX,
                                      .request_min = 1,
                                      .request_max = INT64_MAX};
    struct td_loop_end end = td_loop_pair_run(&loop);
    assert_in_range(end.replicas, 1, INT32_MAX);
    assert_true(end.request >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gain),
        cmocka_unit_test(test_gain_of_a_target),
        cmocka_unit_test(test_where_it_ends),
        cmocka_unit_test(test_largest_amounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
