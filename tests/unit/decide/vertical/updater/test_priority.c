/* Whether a pod is far enough from its recommendation to be updated. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "unit/decide/updater_support.h"

static struct td_update_answer judge(struct stage *stage, bool is_moved)
{
    const struct td_update_question question = {
        .vpa = stage->vpas[0],
        .pod = &stage->pods[0],
        .recommendation = &stage->vpas[0]->recommendation,
        .config = &stage->config.update,
        .gates = &stage->gates,
        .now = stage->now,
        .is_moved = is_moved,
    };
    return td_update_judge(&stage->arena, &question);
}

/* The target is 300m and 300Mi, the range 200 to 500; the pod is one hour old. */
static void test_priority_by_range_age_and_distance(void **unused)
{
    (void)unused;
    static const struct {
        const char *cpu;
        const char *memory;
        td_duration age;
        bool is_moved;
        enum td_update_verdict verdict;
        bool is_outside;
        bool is_scale_up;
    } rows[] = {
        {"100m", "300Mi", TD_HOUR, false, TD_UPDATE_ACCEPTED, true, true},
        {"200m", "300Mi", TD_HOUR, false, TD_UPDATE_YOUNG, false, true},
        {"200m", "300Mi", 12 * TD_HOUR - 1, false, TD_UPDATE_YOUNG, false, true},
        {"200m", "300Mi", 12 * TD_HOUR, false, TD_UPDATE_ACCEPTED, false, true},
        {"500m", "300Mi", 12 * TD_HOUR, false, TD_UPDATE_ACCEPTED, false, false},
        {"501m", "300Mi", TD_HOUR, false, TD_UPDATE_ACCEPTED, true, false},
        {"299m", "300Mi", 12 * TD_HOUR, false, TD_UPDATE_SMALL_CHANGE, false, true},
        {"200m", "300Mi", TD_HOUR, true, TD_UPDATE_ACCEPTED, false, true},
        {"299m", "300Mi", TD_HOUR, true, TD_UPDATE_YOUNG, false, true},
        {"300m", "300Mi", TD_HOUR, true, TD_UPDATE_YOUNG, false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", RECREATE);
        stage_add_pod(
            &stage, &(struct stage_pod){.name = "p", .cpu = rows[i].cpu, .memory = rows[i].memory});
        stage.pods[0].start_time = stage.now - rows[i].age;
        struct td_update_answer answer = judge(&stage, rows[i].is_moved);
        assert_int_equal(answer.verdict, rows[i].verdict);
        assert_int_equal(answer.container.is_outside, rows[i].is_outside);
        assert_int_equal(answer.container.is_scale_up, rows[i].is_scale_up);
        stage_done(&stage);
    }
}

#define KILLED(reason, started, finished)                                                          \
    "[{\"name\":\"c\",\"lastState\":{\"terminated\":{\"reason\":\"" reason                         \
    "\",\"startedAt\":" started ",\"finishedAt\":" finished "}}}]"

/* An early death by memory counts only while it is fresh, observed and not switched off. */
static void test_priority_quick_oom(void **unused)
{
    (void)unused;
    static const struct {
        const char *statuses;
        const char *annotations;
        const char *spec;
        bool is_quick;
    } rows[] = {
        {KILLED("OOMKilled", "\"2026-03-01T11:55:00Z\"", "\"2026-03-01T11:59:00Z\""), NULL, "",
         true},
        {KILLED("Error", "\"2026-03-01T11:55:00Z\"", "\"2026-03-01T11:59:00Z\""), NULL, "", false},
        /* ten minutes are not less than ten minutes, neither of life nor since */
        {KILLED("OOMKilled", "\"2026-03-01T11:49:00Z\"", "\"2026-03-01T11:59:00Z\""), NULL, "",
         false},
        {KILLED("OOMKilled", "\"2026-03-01T11:45:00Z\"", "\"2026-03-01T11:50:00Z\""), NULL, "",
         false},
        {KILLED("OOMKilled", "\"2026-03-01T11:45:01Z\"", "\"2026-03-01T11:50:01Z\""), NULL, "",
         true},
        {KILLED("OOMKilled", "null", "\"2026-03-01T11:59:00Z\""), NULL, "", false},
        {KILLED("OOMKilled", "\"2026-03-01T11:55:00Z\"", "null"), NULL, "", false},
        {KILLED("OOMKilled", "\"2026-03-01T11:55:00Z\"", "\"2026-03-01T11:59:00Z\""),
         "{\"vpaObservedContainers\":\"d\"}", "", false},
        {KILLED("OOMKilled", "\"2026-03-01T11:55:00Z\"", "\"2026-03-01T11:59:00Z\""),
         "{\"vpaObservedContainers\":\"d, c\"}", "", true},
        {KILLED("OOMKilled", "\"2026-03-01T11:55:00Z\"", "\"2026-03-01T11:59:00Z\""),
         "{\"vpaObservedContainers\":\"\"}", "", false},
        /* not readable, so it counts as absent */
        {KILLED("OOMKilled", "\"2026-03-01T11:55:00Z\"", "\"2026-03-01T11:59:00Z\""),
         "{\"vpaObservedContainers\":\"d,, \"}", "", true},
        {KILLED("OOMKilled", "\"2026-03-01T11:55:00Z\"", "\"2026-03-01T11:59:00Z\""),
         "{\"vpaObservedContainers\":\"d, \"}", "", true},
        {KILLED("OOMKilled", "\"2026-03-01T11:55:00Z\"", "\"2026-03-01T11:59:00Z\""), NULL,
         "\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"*\",\"mode\":\"Off\"}]}",
         false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", rows[i].spec);
        stage_add_pod(&stage, &(struct stage_pod){.name = "p",
                                                  .cpu = "300m",
                                                  .memory = "300Mi",
                                                  .annotations = rows[i].annotations,
                                                  .statuses = rows[i].statuses});
        struct td_update_answer answer = judge(&stage, false);
        assert_int_equal(answer.is_quick_oom, rows[i].is_quick);
        if (rows[i].is_quick) {
            assert_int_equal(answer.verdict, TD_UPDATE_OOM_NO_CHANGE);
        }
        stage_done(&stage);
    }
}

/* Amounts past int64 saturate: a huge sum never wraps to a small one. */
static void test_priority_saturates(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage_add_vpa(&stage, "v", OLD, "ReplicaSet", "web", RECREATE);
    stage_add_pod(&stage, &(struct stage_pod){.name = "p", .cpu = "300m", .memory = "9E"});
    struct td_update_answer answer = judge(&stage, false);
    assert_true(answer.container.is_outside);
    assert_true(answer.container.resource_diff > 0.99 && answer.container.resource_diff < 1.01);
    stage_done(&stage);
}

/* Growing pods come first, then the larger difference. */
static void test_priority_order(void **unused)
{
    (void)unused;
    const struct td_update_priority small_up = {.is_scale_up = true, .resource_diff = 0.1};
    const struct td_update_priority big_up = {.is_scale_up = true, .resource_diff = 2};
    const struct td_update_priority big_down = {.resource_diff = 5};
    assert_true(td_update_priority_compare(&big_up, &small_up) < 0);
    assert_true(td_update_priority_compare(&small_up, &big_down) < 0);
    assert_true(td_update_priority_compare(&big_down, &big_up) > 0);
    assert_int_equal(td_update_priority_compare(&big_up, &big_up), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_priority_by_range_age_and_distance),
        cmocka_unit_test(test_priority_quick_oom),
        cmocka_unit_test(test_priority_saturates),
        cmocka_unit_test(test_priority_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
