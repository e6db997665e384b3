/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "unit/decide/support.h"

#define STEPS 400
#define SEEDS 60

/* Counts over time, to look back at. */
struct trace {
    td_time at[STEPS + 1];
    int32_t replicas[STEPS + 1];
    size_t count;
};

/* The count that stood at a moment: the last one set at or before it. */
static int32_t count_at(const struct trace *trace, td_time time)
{
    int32_t replicas = trace->replicas[0];
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->at[i] <= time) {
            replicas = trace->replicas[i];
        }
    }
    return replicas;
}

static void check_policies(const struct trace *trace, const struct td_hpa_rules *rules, bool is_up,
                           int32_t replicas, td_time now)
{
    for (size_t i = 0; i < rules->policy_count; i++) {
        const struct td_hpa_policy *policy = &rules->policies[i];
        int32_t start = count_at(trace, now - policy->period_seconds * TD_SECOND);
        if (is_up) {
            assert_true(replicas <= start + policy->value);
        } else {
            assert_true(replicas >= start - policy->value);
        }
    }
}

/* Whatever the metrics ask for, no sliding window holds more change than its policies allow, and
 * the count stays between its bounds. */
static void test_rate_policies_hold_over_every_window(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= SEEDS; s++) {
        uint64_t seed = s;
        struct td_hpa_policy policies[4];
        for (size_t i = 0; i < 4; i++) {
            policies[i] = (struct td_hpa_policy){.type = TD_HPA_POLICY_PODS,
                                                 .value = test_below(&seed, 9) + 1,
                                                 .period_seconds = test_below(&seed, 300) + 1};
        }
        struct td_hpa hpa = test_hpa(1 + test_below(&seed, 5), 20 + test_below(&seed, 100));
        hpa.has_behavior = true;
        hpa.scale_up = (struct td_hpa_rules){.has_window = true,
                                             .window_seconds = test_below(&seed, 60),
                                             .select = TD_HPA_SELECT_MIN,
                                             .policies = policies,
                                             .policy_count = 2};
        hpa.scale_down = (struct td_hpa_rules){.has_window = true,
                                               .window_seconds = test_below(&seed, 60),
                                               .select = TD_HPA_SELECT_MIN,
                                               .policies = policies + 2,
                                               .policy_count = 2};
        struct td_hpa_history history;
        td_hpa_history_init(&history);
        struct trace trace = {.at = {TEST_NOW}, .replicas = {hpa.min_replicas + 3}, .count = 1};
        td_time now = TEST_NOW;
        td_hpa_history_seed(&history, trace.replicas[0], now);
        for (size_t i = 0; i < STEPS; i++) {
            now += (1 + test_below(&seed, 40)) * TD_SECOND;
            int32_t current = trace.replicas[trace.count - 1];
            struct td_hpa_normalization in = {
                .hpa = &hpa, .now = now, .current = current, .proposed = test_below(&seed, 150)};
            struct td_hpa_normalized got = td_hpa_normalize(&history, &in);
            assert_in_range(got.replicas, hpa.min_replicas, hpa.max_replicas);
            if (got.replicas == current) {
                continue;
            }
            bool is_up = got.replicas > current;
            check_policies(&trace, is_up ? &hpa.scale_up : &hpa.scale_down, is_up, got.replicas,
                           now);
            td_hpa_history_store(&history, &hpa, current, got.replicas, now);
            trace.at[trace.count] = now;
            trace.replicas[trace.count++] = got.replicas;
        }
        assert_true(history.ups.count <= 302 && history.downs.count <= 302);
        td_hpa_history_done(&history);
    }
}

/* Without a behaviour the count stays between its bounds and at most doubles, from 4 up. */
static void test_legacy_rules_keep_bounds(void **state)
{
    (void)state;
    uint64_t seed = 3;
    struct td_hpa_history history;
    td_hpa_history_init(&history);
    td_time now = TEST_NOW;
    for (int i = 0; i < 20000; i++) {
        struct td_hpa hpa = test_hpa(test_below(&seed, 10), 10 + test_below(&seed, 100));
        int32_t current = hpa.min_replicas + test_below(&seed, hpa.max_replicas);
        current = current > hpa.max_replicas ? hpa.max_replicas : current;
        now += test_below(&seed, 30) * TD_SECOND;
        struct td_hpa_normalization in = {.hpa = &hpa,
                                          .now = now,
                                          .current = current,
                                          .proposed = test_below(&seed, 200),
                                          .downscale_stabilization = 5 * TD_MINUTE};
        struct td_hpa_normalized got = td_hpa_normalize(&history, &in);
        assert_in_range(got.replicas, hpa.min_replicas, hpa.max_replicas);
        assert_true(got.replicas <= (current > 2 ? 2 * current : 4) ||
                    got.replicas == hpa.min_replicas);
    }
    assert_true(history.recommendations.count < 400);
    td_hpa_history_done(&history);
}

/* A proposal a nanosecond for a whole window fills the history to its cap and no further. */
static void test_history_is_bounded(void **state)
{
    (void)state;
    struct td_hpa hpa = test_hpa(1, 10);
    struct td_hpa_history history;
    td_hpa_history_init(&history);
    for (int i = 0; i < 3 * TD_HPA_HISTORY_MAX; i++) {
        struct td_hpa_normalization in = {.hpa = &hpa,
                                          .now = TEST_NOW + i,
                                          .current = 5,
                                          .proposed = i % 9,
                                          .downscale_stabilization = TD_HOUR};
        (void)td_hpa_normalize(&history, &in);
    }
    assert_int_equal(history.recommendations.count, TD_HPA_HISTORY_MAX);
    hpa.has_behavior = true;
    const struct td_hpa_policy policy = {TD_HPA_POLICY_PODS, 1, 1800};
    hpa.scale_up = (struct td_hpa_rules){.policies = &policy, .policy_count = 1};
    for (int i = 0; i < 2 * TD_HPA_HISTORY_MAX; i++) {
        td_hpa_history_store(&history, &hpa, 1, 2, TEST_NOW + i);
    }
    assert_int_equal(history.ups.count, TD_HPA_HISTORY_MAX);
    td_hpa_history_done(&history);
}

/* The account can say until when a count is held. */
static void test_stabilisation_says_until_when(void **state)
{
    (void)state;
    struct td_hpa hpa = test_hpa(1, 10);
    struct td_hpa_history history;
    td_hpa_history_init(&history);
    td_hpa_history_seed(&history, 8, TEST_NOW);
    struct td_hpa_normalization in = {.hpa = &hpa,
                                      .now = TEST_NOW + TD_MINUTE,
                                      .current = 8,
                                      .proposed = 2,
                                      .downscale_stabilization = 5 * TD_MINUTE};
    struct td_hpa_normalized got = td_hpa_normalize(&history, &in);
    assert_true(got.stabilized.is_held);
    assert_int_equal(got.replicas, 8);
    assert_true(got.stabilized.held_until == TEST_NOW + 5 * TD_MINUTE);
    td_hpa_history_done(&history);
}

/* Both windows act at once: the count moves only when all recent proposals agree on the direction,
 * and no further than the nearest of them. */
static void test_both_windows_hold_the_count(void **state)
{
    (void)state;
    static const struct {
        int32_t before; /* proposed 10 s earlier */
        int32_t proposed;
        int32_t expected;
        const char *reason;
    } rows[] = {
        {5, 9, 5, "ScaleUpStabilized"},
        {7, 9, 7, "ScaleUpStabilized"},
        {9, 9, 9, NULL},
        {12, 9, 9, NULL},
        {5, 2, 5, "ScaleDownStabilized"},
        {3, 2, 3, "ScaleDownStabilized"},
        {1, 2, 2, NULL},
        {5, 5, 5, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_hpa hpa = test_hpa(1, 20);
        hpa.has_behavior = true;
        hpa.scale_up = (struct td_hpa_rules){.has_window = true, .window_seconds = 60};
        hpa.scale_down = hpa.scale_up;
        struct td_hpa_history history;
        td_hpa_history_init(&history);
        td_hpa_history_seed(&history, rows[i].before, TEST_NOW - 10 * TD_SECOND);
        struct td_hpa_normalization in = {
            .hpa = &hpa, .now = TEST_NOW, .current = 5, .proposed = rows[i].proposed};
        struct td_hpa_stabilized got = td_hpa_stabilize(&history, &in);
        assert_int_equal(got.replicas, rows[i].expected);
        assert_int_equal(got.is_held, rows[i].reason != NULL);
        if (rows[i].reason) {
            assert_true(td_str_equal(got.reason, td_str_from(rows[i].reason)));
            assert_true(got.held_until == TEST_NOW + 50 * TD_SECOND);
        }
        td_hpa_history_done(&history);
    }
}

/* Rounding of doubles is upstream's: 50 and a tenth more is 56, 90 less 30 % is 62. */
static void test_percent_limits_round_as_doubles_do(void **state)
{
    (void)state;
    static const struct {
        int32_t current;
        int32_t percent;
        int32_t up;
        int32_t down;
    } rows[] = {
        {50, 10, 56, 45}, {90, 30, 117, 62}, {1, 100, 2, 0}, {0, 100, 0, 0}, {3, 150, 8, -1}};
    struct td_hpa_history history;
    td_hpa_history_init(&history);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct td_hpa_policy policy = {TD_HPA_POLICY_PERCENT, rows[i].percent, 60};
        struct td_hpa_rules rules = {.policies = &policy, .policy_count = 1};
        assert_int_equal(
            td_hpa_limit_by_policies(&history, &rules, rows[i].current, TEST_NOW, true).replicas,
            rows[i].up);
        assert_int_equal(
            td_hpa_limit_by_policies(&history, &rules, rows[i].current, TEST_NOW, false).replicas,
            rows[i].down);
    }
    td_hpa_history_done(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_policies_hold_over_every_window),
        cmocka_unit_test(test_legacy_rules_keep_bounds),
        cmocka_unit_test(test_history_is_bounded),
        cmocka_unit_test(test_stabilisation_says_until_when),
        cmocka_unit_test(test_both_windows_hold_the_count),
        cmocka_unit_test(test_percent_limits_round_as_doubles_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
