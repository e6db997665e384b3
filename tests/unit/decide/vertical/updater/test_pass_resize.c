/* Resizes that would change nothing: attempts that failed, of which the server hears nothing. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "unit/decide/updater_support.h"

#define BOOSTED "{\"vpaCpuStartupBoost/c\":\"{\\\"requests\\\":{\\\"cpu\\\":\\\"50m\\\"}}\"}"
#define READY(status) "[{\"type\":\"Ready\",\"status\":\"" status "\"}]"

static void add_vpa(struct stage *stage, const char *mode, int replicas)
{
    stage_add_workload(stage, "ReplicaSet", "web", replicas);
    stage_add_vpa(
        stage, "v", OLD, "ReplicaSet", "web",
        td_arena_format(&stage->arena, "\"updatePolicy\":{\"updateMode\":\"%s\"}", mode).ptr);
}

static void add_pods(struct stage *stage, const struct stage_pod *pod, int count)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3"};
    for (int i = 0; i < count; i++) {
        struct stage_pod one = *pod;
        one.name = names[i];
        one.owner_kind = "ReplicaSet";
        one.owner = "web";
        stage_add_pod(stage, &one);
    }
}

/* A boosted pod that is not ready and whose VPA has no boost any more: there is nothing to write.
 * No call, no event, no share of the budget; where the mode allows it, an eviction instead. */
static void test_resize_of_nothing_is_a_failed_attempt(void **unused)
{
    (void)unused;
    static const struct {
        const char *mode;
        size_t evicted;
        int rule; /* of the first pod */
    } rows[] = {
        {"InPlace", 0, TD_RULE_RESIZE_IMPOSSIBLE},
        {"InPlaceOrRecreate", 2, TD_RULE_EVICTED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        stage.gates.cpu_startup_boost = true;
        add_vpa(&stage, rows[i].mode, 4);
        add_pods(&stage, &(struct stage_pod){.annotations = BOOSTED, .conditions = READY("False")},
                 4);
        for (int pass = 0; pass < 3; pass++) {
            assert_int_equal(stage_pass(&stage), rows[i].evicted);
            assert_int_equal(stage.call_count, rows[i].evicted);
            for (size_t c = 0; c < stage.call_count; c++) {
                assert_int_equal(stage.calls[c].call, TD_UPDATER_EVICT);
            }
            assert_int_equal(stage.event_count, 2 * rows[i].evicted);
            assert_int_equal(stage_rule(&stage, "p0"), rows[i].rule);
        }
        stage_done(&stage);
    }
}

/* What fails without a call takes no token from a pod that can be resized. */
static void test_resize_of_nothing_takes_no_token(void **unused)
{
    (void)unused;
    struct stage stage;
    stage_init(&stage);
    stage.gates.cpu_startup_boost = true;
    stage.config.rate_per_second = 0.001;
    stage.deadline = stage.now + TD_MINUTE;
    add_vpa(&stage, "InPlace", 3);
    add_pods(&stage, &(struct stage_pod){.annotations = BOOSTED, .conditions = READY("False")}, 2);
    stage_add_pod(&stage,
                  &(struct stage_pod){
                      .name = "plain", .owner_kind = "ReplicaSet", .owner = "web", .cpu = "150m"});
    assert_int_equal(stage_pass(&stage), 1);
    assert_string_equal(stage.calls[0].pod, "plain");
    assert_int_equal(stage.calls[0].call, TD_UPDATER_RESIZE);
    stage_done(&stage);
}

#define REPORTED(cpu)                                                                              \
    "[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"" cpu "\",\"memory\":\"300Mi\"}}}]"

/* The spec has the target already and the kubelet has not followed: the resize is under way, also
 * before a condition says so. Asking again would change nothing, and neither would an eviction. */
static void test_resize_under_way_is_not_asked_for_again(void **unused)
{
    (void)unused;
    static const char *const modes[] = {"InPlace", "InPlaceOrRecreate"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct stage stage;
        stage_init(&stage);
        add_vpa(&stage, modes[i], 2);
        const struct stage_pod asked = {
            .cpu = "300m", .memory = "300Mi", .statuses = REPORTED("100m")};
        add_pods(&stage, &asked, 2);
        for (int pass = 0; pass < 3; pass++) {
            assert_int_equal(stage_pass(&stage), 0);
            assert_int_equal(stage.call_count, 0);
            assert_int_equal(stage.event_count, 0);
            assert_int_equal(stage_rule(&stage, "p0"), TD_RULE_RESIZING);
        }
        stage_done(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resize_of_nothing_is_a_failed_attempt),
        cmocka_unit_test(test_resize_of_nothing_takes_no_token),
        cmocka_unit_test(test_resize_under_way_is_not_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
