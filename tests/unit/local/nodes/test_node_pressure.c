/* Memory pressure of nodes: who is evicted, when, what is said of it, and when it is over. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/engine/engine.h"
#include "local/nodes/node_pressure.h"

#include "support/nodes_bed.h"

#define MI (1024.0 * 1024.0)

/* Above its request first, then the lowest priority, then the most above, then the first. */
static void test_pressure_ranks_pods(void **state)
{
    (void)state;
    static const struct {
        struct td_pressure_pod pods[3];
        size_t count;
        size_t picked;
    } rows[] = {
        {{{0}}, 0, 0},
        {{{100, 50, 0}}, 1, 0},
        {{{100, 200, 0}, {60, 50, 0}}, 2, 1},                /* who is above its request */
        {{{500, 0, 10}, {60, 50, 0}}, 2, 1},                 /* lower priority, though less */
        {{{100, 200, -5}, {60, 50, 1000}}, 2, 1},            /* above its request counts first */
        {{{100, 50, 0}, {200, 50, 0}, {160, 50, 0}}, 3, 1},  /* most above */
        {{{100, 200, 0}, {100, 150, 0}}, 2, 1},              /* least below */
        {{{100, 50, 0}, {100, 50, 0}}, 2, 0},                /* the same: who came first */
        {{{50, 50, 0}, {51, 51, 0}, {1, 0, 0}}, 3, 2},       /* at its request is not above it */
        {{{100, 0, 2000000000}, {1, 50, 1999999999}}, 2, 1}, /* critical ones stay */
        {{{100, 0, 2000000000}, {1, 50, 2000001000}}, 2, 2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t picked = td_pressure_pick(rows[i].pods, rows[i].count);
        if (picked != rows[i].picked) {
            fail_msg("row %zu: %zu", i, picked);
        }
    }
}

/* Whole seconds after the start of the bed, and a bit, so that what is due then is over. */
static void run_to(struct nodes_bed *n, int64_t seconds)
{
    td_time now = td_clock_wall(&n->bed.clock);
    td_time then = (BED_START + seconds) * TD_SECOND + 5 * TD_MILLISECOND;
    bed_run(&n->bed, then > now ? then - now : 0);
}

/* From now on the pod's container wants that much. */
static void use_memory(struct nodes_bed *n, const char *pod, double bytes)
{
    struct td_engine_pod *body = td_engine_find_pod(n->engine, TD_STR("n"), td_str_from(pod));
    assert_non_null(body);
    struct td_engine_container *container = td_engine_find(body, TD_STR("app"));
    assert_non_null(container);
    const struct td_want want = {.cpu_milli = 10, .memory_bytes = bytes};
    td_engine_set_fixed(container, &want);
}

static const char *pressure(struct nodes_bed *n, const char *member)
{
    return edit_bed_condition(&n->bed, edit_bed_get(&n->bed, "v1", "Node", "", "node-1"),
                              "MemoryPressure", member);
}

static const char *taint(struct nodes_bed *n)
{
    const struct td_json *list =
        td_json_get_path(edit_bed_get(&n->bed, "v1", "Node", "", "node-1"), "spec.taints");
    return list ? edit_bed_text(&n->bed, td_json_first_child(list), "key") : "";
}

/* Exactly 100Mi available are enough, a byte less is pressure: told in condition, taint and events,
 * and answered by one eviction each 10 s until it is over; 5 min later nothing is left of it. */
static void test_pressure_evicts_one_pod_at_a_time(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 1); /* 32Gi */
    static const char *const names[] = {"modest", "greedy", "hungry"};
    for (size_t i = 0; i < 3; i++) {
        nodes_bed_post_pod(&n, names[i], "'requests':{'memory':'8Gi'}", ",'nodeName':'node-1'");
    }
    run_to(&n, 3);
    use_memory(&n, "modest", 7.0 * 1024 * MI);
    use_memory(&n, "greedy", 13.0 * 1024 * MI);
    use_memory(&n, "hungry", (12.0 * 1024 - 100) * MI);
    run_to(&n, 99);
    assert_string_equal(pressure(&n, "status"), "False");
    use_memory(&n, "hungry", (12.0 * 1024 - 100) * MI + 1);
    run_to(&n, 100);
    assert_string_equal(pressure(&n, "status"), "True");
    assert_string_equal(pressure(&n, "reason"), "KubeletHasInsufficientMemory");
    assert_string_equal(pressure(&n, "lastTransitionTime"), "2023-11-14T22:15:00Z");
    assert_string_equal(taint(&n), "node.kubernetes.io/memory-pressure");
    assert_string_equal(edit_bed_event(&n.bed, "node-1", "NodeHasInsufficientMemory"),
                        "Node node-1 status is now: NodeHasInsufficientMemory");
    assert_string_equal(edit_bed_event(&n.bed, "node-1", "EvictionThresholdMet"),
                        "Attempting to reclaim memory");
    assert_string_equal(nodes_bed_pod_text(&n, "greedy", "status.phase"), "Failed");
    assert_string_equal(nodes_bed_pod_text(&n, "greedy", "status.reason"), "Evicted");
    assert_string_equal(nodes_bed_pod_text(&n, "greedy", "status.message"),
                        "The node was low on resource: memory. Threshold quantity: 100Mi, "
                        "available: 102399Ki. Container "
                        "app was using 13Gi, request is 8Gi, has larger consumption of memory. ");
    assert_string_equal(nodes_bed_pod_text(&n, "hungry", "status.phase"), "Running");
    use_memory(&n, "hungry", (25.0 * 1024 - 99) * MI); /* 99Mi are left */
    run_to(&n, 109);
    assert_string_equal(nodes_bed_pod_text(&n, "hungry", "status.phase"), "Running");
    run_to(&n, 110);
    assert_string_equal(nodes_bed_pod_text(&n, "hungry", "status.phase"), "Failed");
    assert_string_equal(
        nodes_bed_pod_text(&n, "hungry", "status.message"),
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi. "
        "Container app was using 25501Mi, request is 8Gi, has larger consumption of memory. ");
    assert_string_equal(nodes_bed_pod_text(&n, "modest", "status.phase"), "Running");
    run_to(&n, 409);
    assert_string_equal(pressure(&n, "status"), "True");
    run_to(&n, 410);
    assert_string_equal(pressure(&n, "status"), "False");
    assert_string_equal(pressure(&n, "lastTransitionTime"), "2023-11-14T22:20:10Z");
    assert_string_equal(taint(&n), "");
    assert_string_equal(edit_bed_event(&n.bed, "node-1", "NodeHasSufficientMemory"),
                        "Node node-1 status is now: NodeHasSufficientMemory");
    assert_string_equal(nodes_bed_pod_text(&n, "modest", "status.phase"), "Running");
    nodes_bed_done(&n);
}

/* Only pods that tolerate it come to a node without memory; critical pods are not evicted. */
static void test_pressure_keeps_pods_away(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 1);
    edit_bed_put(&n.bed, "{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass','metadata':{"
                         "'name':'vital'},'value':2000000000}");
    nodes_bed_post_pod(&n, "vital", "", ",'nodeName':'node-1','priorityClassName':'vital'");
    run_to(&n, 3);
    use_memory(&n, "vital", 40.0 * 1024 * MI); /* more than there is */
    run_to(&n, 60);
    assert_string_equal(pressure(&n, "status"), "True");
    assert_string_equal(nodes_bed_pod_text(&n, "vital", "status.phase"), "Running");
    nodes_bed_post_pod(&n, "plain", "", "");
    nodes_bed_post_pod(&n, "tolerant", "",
                       ",'tolerations':[{'key':'node.kubernetes.io/memory-pressure','operator':"
                       "'Exists','effect':'NoSchedule'}]");
    bed_run(&n.bed, 10 * TD_MILLISECOND);
    assert_string_equal(nodes_bed_pod_text(&n, "plain", "spec.nodeName"), "");
    assert_string_equal(nodes_bed_pod_text(&n, "tolerant", "spec.nodeName"), "node-1");
    use_memory(&n, "vital", MI);
    run_to(&n, 65 + 300 + 5);
    assert_string_equal(nodes_bed_pod_text(&n, "plain", "spec.nodeName"), "node-1");
    nodes_bed_done(&n);
}

/* A node of a user's offers what its allocatable says, which may be less than it has; the limit of
 * the whole pod is named when the pod asked as a whole. */
static void test_pressure_counts_what_is_allocatable(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 0);
    edit_bed_put(&n.bed,
                 "{'apiVersion':'v1','kind':'Node','metadata':{'name':'node-1','annotations':{"
                 "'tandem.dev/kubelet':'local'}},'status':{'capacity':{'cpu':'4','memory':'8Gi',"
                 "'pods':'10'},'allocatable':{'cpu':'3','memory':'1Gi','pods':'10'}}}");
    bed_run(&n.bed, TD_MILLISECOND);
    nodes_bed_post_pod(&n, "whole", "", ",'resources':{'requests':{'memory':'100Mi'}}");
    run_to(&n, 3);
    use_memory(&n, "whole", 900 * MI);
    run_to(&n, 10);
    assert_string_equal(pressure(&n, "status"), "False");
    use_memory(&n, "whole", 925 * MI);
    run_to(&n, 16);
    assert_string_equal(pressure(&n, "status"), "True");
    assert_string_equal(
        nodes_bed_pod_text(&n, "whole", "status.message"),
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi. Pod "
        "whole was using 925Mi, request is 100Mi, has larger consumption of memory. Container app "
        "was using 925Mi, request is 0, has larger consumption of memory. ");
    nodes_bed_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pressure_ranks_pods),
        cmocka_unit_test(test_pressure_evicts_one_pod_at_a_time),
        cmocka_unit_test(test_pressure_keeps_pods_away),
        cmocka_unit_test(test_pressure_counts_what_is_allocatable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
