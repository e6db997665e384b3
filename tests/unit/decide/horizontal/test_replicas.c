/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "unit/decide/support.h"

#define PODS_MAX 20
#define ROUNDS 2000

/* Rising load never lowers the proposal, whatever pods are ready, starting or without a sample. */
static void test_proposal_is_monotone_in_the_metric(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < ROUNDS; round++) {
        struct td_hpa_pod pods[PODS_MAX];
        size_t count = (size_t)test_below(&seed, PODS_MAX) + 1;
        for (size_t i = 0; i < count; i++) {
            pods[i] = test_pod(TD_STR("p"), 1000, 0);
            pods[i].has_sample = test_below(&seed, 6) > 0;
            pods[i].phase = test_below(&seed, 8) > 0 ? TD_POD_RUNNING : TD_POD_PENDING;
        }
        struct td_hpa_view view = {.pods = pods, .count = count};
        struct td_hpa_calc_options options = test_options((int32_t)count);
        int32_t last = 0;
        for (int64_t usage = 0; usage <= 2000; usage += 50) {
            for (size_t i = 0; i < count; i++) {
                pods[i].sample_milli = usage;
            }
            struct td_hpa_calculation got = td_hpa_calc_utilization(&view, &options, 60);
            if (got.problem == TD_HPA_CALC_OK) {
                assert_true(got.replicas >= last);
                last = got.replicas;
            }
        }
    }
}

/* Inside the tolerance the count stays what it is, at both ends included. */
static void test_nothing_moves_inside_the_tolerance(void **state)
{
    (void)state;
    static const struct {
        int64_t usage;
        int32_t expected;
    } rows[] = {{749, 3}, {899, 4}, {900, 4}, {1000, 4}, {1100, 4}, {1101, 5}, {2000, 8}, {0, 0}};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct td_hpa_pod pods[4];
        for (size_t i = 0; i < 4; i++) {
            pods[i] = test_pod(TD_STR("p"), 0, rows[r].usage);
        }
        struct td_hpa_view view = {.pods = pods, .count = 4};
        struct td_hpa_calc_options options = test_options(4);
        struct td_hpa_calculation got = td_hpa_calc_average(&view, &options, 1000);
        assert_int_equal(got.replicas, rows[r].expected);
        bool is_inside = rows[r].usage >= 900 && rows[r].usage <= 1100;
        assert_int_equal(got.rule == TD_HPA_RULE_TOLERANCE, is_inside);
    }
}

/* Pods without a sample may shrink a change to nothing, but never turn it around. */
static void test_pods_without_a_sample_never_turn_the_direction(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int round = 0; round < ROUNDS; round++) {
        struct td_hpa_pod pods[PODS_MAX];
        size_t count = (size_t)test_below(&seed, PODS_MAX) + 1;
        for (size_t i = 0; i < count; i++) {
            pods[i] = test_pod(TD_STR("p"), 500, test_below(&seed, 1500));
            pods[i].has_sample = test_below(&seed, 3) > 0;
        }
        struct td_hpa_view view = {.pods = pods, .count = count};
        struct td_hpa_calc_options options = test_options((int32_t)count);
        struct td_hpa_calculation got = td_hpa_calc_utilization(&view, &options, 70);
        if (got.problem != TD_HPA_CALC_OK) {
            assert_int_equal(got.why_count[TD_HPA_WHY_COUNTED], 0);
            continue;
        }
        if (got.ratio >= 1.0 && got.is_filled_in) {
            assert_true(got.replicas >= (int32_t)count);
        }
        if (got.ratio <= 1.0 && got.is_filled_in) {
            assert_true(got.replicas <= (int32_t)count);
        }
    }
}

/* Amounts at the edge of int64 give a defined answer. */
static void test_amounts_saturate(void **state)
{
    (void)state;
    struct td_hpa_pod pods[2] = {test_pod(TD_STR("a"), 1, INT64_MAX),
                                 test_pod(TD_STR("b"), INT64_MAX, INT64_MAX)};
    struct td_hpa_view view = {.pods = pods, .count = 2};
    struct td_hpa_calc_options options = test_options(2);
    assert_int_equal(td_hpa_calc_average(&view, &options, 1).replicas, INT32_MAX);
    assert_int_equal(td_hpa_calc_utilization(&view, &options, 100).problem, TD_HPA_CALC_OK);
    assert_int_equal(td_hpa_calc_value(&view, &options, INT64_MAX, 1).replicas, INT32_MAX);
    assert_int_equal(td_hpa_calc_per_pod(&options, INT64_MAX, 1).replicas, INT32_MAX);
    int64_t values[] = {INT64_MAX, 1, -5};
    assert_true(td_hpa_sum_values(values, 3) == INT64_MAX);
    assert_true(td_hpa_sum_averages(values, 3) == INT64_MAX);
}

/* Without status replicas the value is reported undivided. */
static void test_average_over_no_replicas_reports_the_usage(void **state)
{
    (void)state;
    struct td_hpa_calc_options options = test_options(0);
    struct td_hpa_calculation got = td_hpa_calc_per_pod(&options, 5000, 1000);
    assert_int_equal(got.replicas, 5);
    assert_int_equal(got.usage_milli, 5000);
}

/* Faults are told apart, each in its own words. */
static void test_problems_have_words(void **state)
{
    (void)state;
    struct td_hpa hpa = test_hpa(1, 10);
    struct td_hpa_calc_options options = test_options(3);
    struct td_hpa_pod pod = test_pod(TD_STR("web-1"), 0, 5);
    struct td_hpa_view none = {.pods = NULL};
    struct td_hpa_view filtered = {.is_owner_filtered = true};
    struct td_hpa_view one = {.pods = &pod, .count = 1};
    struct td_hpa_pod faulty = pod;
    faulty.request_problem = TD_HPA_REQUEST_MISSING;
    faulty.request_container = TD_STR("app");
    struct td_hpa_view broken = {.pods = &faulty, .count = 1};
    struct td_hpa_calculation calculations[] = {
        td_hpa_calc_average(&none, &options, 1),     td_hpa_calc_average(&filtered, &options, 1),
        td_hpa_calc_value(&none, &options, 5, 1),    td_hpa_calc_value(&filtered, &options, 5, 1),
        td_hpa_calc_utilization(&one, &options, 50), td_hpa_calc_utilization(&broken, &options, 50),
    };
    static const char *const words[] = {
        "no pods returned by selector while calculating replica count",
        "did not receive metrics for targeted pods (pods might be unready)",
        ("unable to calculate ready pods: no pods returned by selector while calculating replica "
         "count"),
        "no pods owned by Deployment shop/web among pods matched by selector",
        "no metrics returned matched known pods",
        "missing request for cpu in container app of Pod web-1",
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        td_auto_buf text;
        td_buf_init(&text, 4096);
        td_hpa_calc_write_problem(&calculations[i], TD_STR("cpu"), &hpa, &text);
        assert_string_equal(text.ptr, words[i]);
    }
}

/* Samples find their pods by name; the last of two counts, and strangers are kept apart. */
static void test_samples_are_joined_by_name(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_hpa_pod pods[3] = {test_pod(TD_STR("a"), 1, 0), test_pod(TD_STR("b"), 1, 0),
                                 test_pod(TD_STR("c"), 1, 0)};
    for (size_t i = 0; i < 3; i++) {
        pods[i].has_sample = false;
    }
    const struct td_hpa_sample samples[] = {
        {.pod = TD_STR("b"), .value_milli = 1}, {.pod = TD_STR("x"), .value_milli = 10},
        {.pod = TD_STR("b"), .value_milli = 2}, {.pod = TD_STR("x"), .value_milli = 20},
        {.pod = TD_STR("a"), .value_milli = 3},
    };
    struct td_hpa_view view = {.pods = NULL};
    td_hpa_samples_join(&arena, pods, 3, samples, 5, &view);
    assert_int_equal(pods[0].sample_milli, 3);
    assert_int_equal(pods[1].sample_milli, 2);
    assert_false(pods[2].has_sample);
    assert_int_equal(view.extra_count, 1);
    assert_int_equal(view.extra_milli, 20);
    view.is_owner_filtered = true;
    td_hpa_samples_join(&arena, pods, 3, samples, 5, &view);
    assert_int_equal(view.extra_count, 0);
    td_hpa_samples_join(&arena, pods, 0, NULL, 0, &view);
    assert_int_equal(view.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proposal_is_monotone_in_the_metric),
        cmocka_unit_test(test_nothing_moves_inside_the_tolerance),
        cmocka_unit_test(test_pods_without_a_sample_never_turn_the_direction),
        cmocka_unit_test(test_amounts_saturate),
        cmocka_unit_test(test_average_over_no_replicas_reports_the_usage),
        cmocka_unit_test(test_problems_have_words),
        cmocka_unit_test(test_samples_are_joined_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
