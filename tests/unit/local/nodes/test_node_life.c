/* A node that falls silent: when that is noticed, what its pods see of it, and how it comes back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/workloads/workloads.h"

#include "support/nodes_bed.h"

/* Whole seconds after the start of the bed, and a bit, so that what is due then is over. */
static void run_to(struct nodes_bed *n, int64_t seconds)
{
    td_time now = td_clock_wall(&n->bed.clock);
    td_time then = (BED_START + seconds) * TD_SECOND + 5 * TD_MILLISECOND;
    bed_run(&n->bed, then > now ? then - now : 0);
}

/* Changes node-1 at that very second. */
static void patch_at(struct nodes_bed *n, int64_t seconds, const char *patch)
{
    bed_run(&n->bed, (BED_START + seconds) * TD_SECOND - td_clock_wall(&n->bed.clock));
    assert_int_equal(nodes_bed_patch(n, "/api/v1/nodes/node-1", patch), 200);
}

static void lose(struct nodes_bed *n, const char *name, bool is_lost)
{
    assert_int_equal(td_nodes_lose(n->nodes, td_str_from(name), is_lost, NULL), TD_OK);
    bed_run(&n->bed, 0);
}

static const char *condition(struct nodes_bed *n, const char *node, const char *type,
                             const char *member)
{
    return edit_bed_condition(&n->bed, edit_bed_get(&n->bed, "v1", "Node", "", node), type, member);
}

/* "key:effect key:effect" of a node's taints. */
static const char *taints(struct nodes_bed *n, const char *node)
{
    const struct td_json *list =
        td_json_get_path(edit_bed_get(&n->bed, "v1", "Node", "", node), "spec.taints");
    td_str text = TD_STR_EMPTY;
    for (const struct td_json *t = td_json_first_child(list); t; t = t->next) {
        const char *key = edit_bed_text(&n->bed, t, "key");
        const char *slash = strchr(key, '/');
        text =
            td_arena_format(&n->bed.arena, "%.*s%s%s:%s", TD_STR_ARG(text), text.len > 0 ? " " : "",
                            slash ? slash + 1 : key, edit_bed_text(&n->bed, t, "effect"));
    }
    return td_arena_copy_str(&n->bed.arena, text).ptr;
}

static const char *pod_ready(struct nodes_bed *n, const char *pod, const char *member)
{
    return edit_bed_condition(&n->bed, nodes_bed_pod(n, pod), "Ready", member);
}

static const char *deleted_at(struct nodes_bed *n, const char *pod)
{
    return nodes_bed_pod_text(n, pod, "metadata.deletionTimestamp");
}

/* Bytes that containers of node-1 use. */
static double memory_used(struct nodes_bed *n)
{
    struct td_want use = {.memory_bytes = -1};
    assert_true(td_engine_node_use(n->engine, TD_STR("node-1"), &use));
    return use.memory_bytes;
}

/* The last lease is of second 10, so second 65 is the first look more than 50 s after it. */
static void test_silence_is_noticed_after_the_grace_period(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 3);
    nodes_bed_post_pod(&n, "p", "", ",'nodeName':'node-1'");
    run_to(&n, 12);
    assert_string_equal(pod_ready(&n, "p", "status"), "True");
    lose(&n, "node-1", true);
    run_to(&n, 64);
    assert_string_equal(condition(&n, "node-1", "Ready", "status"), "True");
    assert_string_equal(taints(&n, "node-1"), "");
    assert_string_equal(pod_ready(&n, "p", "status"), "True");
    run_to(&n, 65);
    static const char *const types[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(condition(&n, "node-1", types[i], "status"), "Unknown");
        assert_string_equal(condition(&n, "node-1", types[i], "reason"), "NodeStatusUnknown");
        assert_string_equal(condition(&n, "node-1", types[i], "message"),
                            "Kubelet stopped posting node status.");
        assert_string_equal(condition(&n, "node-1", types[i], "lastHeartbeatTime"),
                            "2023-11-14T22:13:20Z");
        assert_string_equal(condition(&n, "node-1", types[i], "lastTransitionTime"),
                            "2023-11-14T22:14:25Z");
    }
    assert_string_equal(taints(&n, "node-1"), "unreachable:NoSchedule unreachable:NoExecute");
    assert_string_equal(pod_ready(&n, "p", "status"), "False");
    assert_string_equal(pod_ready(&n, "p", "lastTransitionTime"), "2023-11-14T22:14:25Z");
    assert_string_equal(edit_bed_event(&n.bed, "node-1", "NodeNotReady"),
                        "Node node-1 status is now: NodeNotReady");
    assert_string_equal(edit_bed_event(&n.bed, "p", "NodeNotReady"), "Node is not ready");
    assert_string_equal(taints(&n, "node-2"), "");
    assert_string_equal(condition(&n, "node-2", "Ready", "status"), "True");
    nodes_bed_done(&n);
}

/* Pods are told to go 300 s after the taint, or when they say; they stay until the node is back. */
static void test_pods_of_a_silent_node_are_replaced_elsewhere(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 3);
    nodes_bed_post_pod(&n, "usual", "", ",'nodeName':'node-1'");
    nodes_bed_post_pod(&n, "patient", "",
                       ",'nodeName':'node-1','tolerations':[{'operator':'Exists'}]");
    nodes_bed_post_pod(&n, "hasty", "",
                       ",'nodeName':'node-1','tolerations':[{'key':'node.kubernetes.io/unreachable'"
                       ",'operator':'Exists','effect':'NoExecute','tolerationSeconds':7}]");
    nodes_bed_post_pod(&n, "other", "", ",'nodeName':'node-2'");
    run_to(&n, 3);
    lose(&n, "node-1", true); /* its last lease is of second 0 */
    run_to(&n, 61);
    assert_string_equal(deleted_at(&n, "hasty"), "");
    run_to(&n, 62);
    assert_string_not_equal(deleted_at(&n, "hasty"), "");
    run_to(&n, 354);
    assert_string_equal(deleted_at(&n, "usual"), "");
    run_to(&n, 355);
    assert_string_equal(deleted_at(&n, "usual"), "2023-11-14T22:19:45Z"); /* with its grace */
    assert_string_equal(
        edit_bed_condition(&n.bed, nodes_bed_pod(&n, "usual"), "DisruptionTarget", "reason"),
        "DeletionByTaintManager");
    assert_string_equal(edit_bed_event(&n.bed, "usual", "TaintManagerEviction"),
                        "Marking for deletion Pod n/usual");
    run_to(&n, 3000);
    assert_non_null(nodes_bed_pod(&n, "usual"));
    assert_non_null(nodes_bed_pod(&n, "hasty"));
    assert_string_equal(nodes_bed_pod_text(&n, "usual", "status.phase"), "Running");
    assert_string_equal(deleted_at(&n, "patient"), "");
    assert_string_equal(deleted_at(&n, "other"), "");
    lose(&n, "node-1", false);
    assert_string_equal(condition(&n, "node-1", "Ready", "status"), "True");
    assert_string_equal(condition(&n, "node-1", "MemoryPressure", "reason"),
                        "KubeletHasSufficientMemory");
    assert_string_equal(edit_bed_event(&n.bed, "node-1", "NodeReady"),
                        "Node node-1 status is now: NodeReady");
    run_to(&n, 3005);
    assert_string_equal(taints(&n, "node-1"), "");
    run_to(&n, 3040);
    assert_null(nodes_bed_pod(&n, "usual"));
    assert_null(nodes_bed_pod(&n, "hasty"));
    assert_non_null(nodes_bed_pod(&n, "patient"));
    assert_string_equal(pod_ready(&n, "patient", "status"), "True");
    nodes_bed_done(&n);
}

/* Names of the pods that are not being deleted, or of those that are; how many? */
static size_t count_pods(struct nodes_bed *n, bool is_deleted)
{
    struct td_collection_iter iter;
    const struct td_stored *stored;
    size_t count = 0;
    iter = td_collection_walk(td_store_find(n->bed.store, TD_STR("pods")), TD_STR("n"));
    while ((stored = td_collection_iter_next(&iter))) {
        bool is_marked =
            memmem(stored->json.ptr, stored->json.len, "\"deletionTimestamp\"", 19) != NULL;
        count += is_marked == is_deleted ? 1 : 0;
    }
    td_collection_iter_done(&iter);
    return count;
}

/* A ReplicaSet makes a pod for each that is told to go, elsewhere; a DaemonSet's pod stays. */
static void test_controllers_replace_pods_of_a_silent_node(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 2);
    struct td_workloads *workloads = td_workloads_new(n.bed.api, NULL);
    edit_bed_put(&n.bed, "{'apiVersion':'v1','kind':'ServiceAccount','metadata':{'name':'default',"
                         "'namespace':'n'}}");
    static const char *const kinds[] = {"ReplicaSet", "DaemonSet"};
    for (size_t i = 0; i < 2; i++) {
        char text[1024];
        (void)snprintf(
            text, sizeof(text),
            "{'apiVersion':'apps/v1','kind':'%s','metadata':{'name':'w%zu','namespace':"
            "'n'},'spec':{%s'selector':{'matchLabels':{'app':'w%zu'}},'updateStrategy':{"
            "'type':'OnDelete'},'template':{'metadata':{'labels':{'app':'w%zu'}},'spec':{"
            "'containers':[{'name':'c','image':'i'}],'restartPolicy':'Always'}}}}",
            kinds[i], i, i == 0 ? "'replicas':4," : "", i, i);
        edit_bed_put(&n.bed, text);
    }
    run_to(&n, 6);
    assert_int_equal(count_pods(&n, false), 6);
    lose(&n, "node-1", true); /* its last lease is of second 0 */
    run_to(&n, 354);
    assert_int_equal(count_pods(&n, false), 6);
    run_to(&n, 356);
    assert_int_equal(count_pods(&n, false), 6); /* 4 of the set, all on node-2, and 2 daemons */
    assert_int_equal(count_pods(&n, true), 2);
    run_to(&n, 1000);
    assert_int_equal(count_pods(&n, true), 2);
    lose(&n, "node-1", false);
    run_to(&n, 1040);
    assert_int_equal(count_pods(&n, false), 6);
    assert_int_equal(count_pods(&n, true), 0);
    td_workloads_free(workloads);
    nodes_bed_done(&n);
}

/* A node that is back in time keeps its pods, and is told so. */
static void test_a_node_that_comes_back_keeps_its_pods(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 2);
    nodes_bed_post_pod(&n, "p", "", ",'nodeName':'node-1'");
    run_to(&n, 3);
    assert_true(memory_used(&n) > 0);
    lose(&n, "node-1", true);
    lose(&n, "node-1", true);
    assert_true(memory_used(&n) == 0);
    run_to(&n, 100);
    assert_true(memory_used(&n) == 0);
    assert_string_equal(pod_ready(&n, "p", "status"), "False");
    lose(&n, "node-1", false);
    run_to(&n, 106);
    assert_string_equal(taints(&n, "node-1"), "");
    assert_string_equal(edit_bed_event(&n.bed, "p", "TaintManagerEviction"),
                        "Cancelling deletion of Pod n/p");
    run_to(&n, 1000);
    assert_string_equal(deleted_at(&n, "p"), "");
    assert_string_equal(pod_ready(&n, "p", "status"), "True");
    assert_true(memory_used(&n) > 0);
    /* A silence shorter than the grace period is not noticed. */
    lose(&n, "node-1", true);
    run_to(&n, 1050);
    lose(&n, "node-1", false);
    run_to(&n, 1200);
    assert_string_equal(condition(&n, "node-1", "Ready", "lastTransitionTime"),
                        "2023-11-14T22:15:00Z");
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_nodes_lose(n.nodes, TD_STR("node-3"), true, &err), TD_NOT_FOUND);
    assert_string_equal(err.message, "node \"node-3\" is not run by this process");
    nodes_bed_done(&n);
}

/* A silent node that is deleted takes its pods with it after the quarantine. */
static void test_a_silent_node_can_be_deleted(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 2);
    nodes_bed_post_pod(&n, "p", "", ",'nodeName':'node-1'");
    run_to(&n, 3);
    lose(&n, "node-1", true);
    run_to(&n, 400);
    assert_string_not_equal(deleted_at(&n, "p"), "");
    assert_int_equal(td_edit_delete(n.bed.api, edit_bed_resource(&n.bed, "v1", "Node"),
                                    TD_STR_EMPTY, TD_STR("node-1"), TD_STR_EMPTY,
                                    TD_STR("Background"), -1, NULL),
                     TD_OK);
    run_to(&n, 439);
    assert_non_null(nodes_bed_pod(&n, "p"));
    run_to(&n, 441);
    assert_null(nodes_bed_pod(&n, "p"));
    assert_int_equal(td_nodes_lose(n.nodes, TD_STR("node-1"), false, NULL), TD_NOT_FOUND);
    nodes_bed_done(&n);
}

/* Two nodes are emptied ten seconds apart; when most of a small cluster is silent, or all of it,
 * none is, since then the fault is another one. */
static void test_few_nodes_are_emptied_at_a_time(void **state)
{
    (void)state;
    static const struct {
        size_t nodes;
        size_t lost;
        const char *at_55; /* taints that remove pods, a letter a node */
        const char *at_65;
        const char *at_75;
    } rows[] = {
        {4, 1, "x...", "x...", "x..."},
        {4, 2, "x...", "xx..", "xx.."},
        {6, 3, "x.....", "xx....", "xxx..."},
        {5, 3, ".....", ".....", "....."},
        {2, 2, "..", "..", ".."},
        {1, 1, ".", ".", "."},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nodes_bed n;
        nodes_bed_init(&n, rows[i].nodes);
        char name[16];
        for (size_t node = 1; node <= rows[i].lost; node++) {
            (void)snprintf(name, sizeof(name), "node-%zu", node);
            lose(&n, name, true);
        }
        const char *const texts[] = {rows[i].at_55, rows[i].at_65, rows[i].at_75};
        for (int64_t at = 0; at < 3; at++) {
            run_to(&n, 55 + 10 * at);
            char found[8] = "";
            for (size_t node = 1; node <= rows[i].nodes; node++) {
                (void)snprintf(name, sizeof(name), "node-%zu", node);
                found[node - 1] = strstr(taints(&n, name), "NoExecute") ? 'x' : '.';
                assert_string_equal(condition(&n, name, "Ready", "status"),
                                    node <= rows[i].lost ? "Unknown" : "True");
            }
            assert_string_equal(found, texts[at]);
        }
        nodes_bed_done(&n);
    }
}

/* An external node is judged by its lease, and left alone when no lease is renewed. */
static void test_other_nodes_are_judged_by_their_leases(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 1);
    static const char *const names[] = {"renewed", "forgotten", "without"};
    for (size_t i = 0; i < 3; i++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s'},'status':{"
                       "'conditions':[{'type':'Ready','status':'True'}]}}",
                       names[i]);
        edit_bed_put(&n.bed, text);
    }
    for (int64_t at = 0; at < 100; at += 10) {
        for (size_t i = 0; i < 2; i++) {
            char text[512];
            (void)snprintf(text, sizeof(text),
                           "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{"
                           "'name':'%s','namespace':'kube-node-lease'},'spec':{'renewTime':"
                           "'2023-11-14T22:%02d:00.000000Z'}}",
                           names[i], i == 0 ? (int)at / 2 : 13);
            edit_bed_put(&n.bed, text);
        }
        run_to(&n, at + 10);
    }
    static const char *const states[] = {"True", "Unknown", "True"};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(condition(&n, names[i], "Ready", "status"), states[i]);
    }
    nodes_bed_done(&n);
}

/* A cordon is a taint too, as kubectl describe shows it. */
static void test_a_cordon_is_a_taint(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 1);
    assert_int_equal(nodes_bed_patch(&n, "/api/v1/nodes/node-1", "{'spec':{'unschedulable':true}}"),
                     200);
    assert_string_equal(taints(&n, "node-1"), "unschedulable:NoSchedule");
    assert_int_equal(nodes_bed_patch(&n, "/api/v1/nodes/node-1", "{'spec':{'unschedulable':null}}"),
                     200);
    assert_string_equal(taints(&n, "node-1"), "");
    nodes_bed_done(&n);
}

/* Taints of users remove who does not tolerate them, at once or when the time is over. */
static void test_taints_of_users_remove_pods(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *tolerations;
        int64_t gone; /* told to go at that second; -1: never */
    } rows[] = {
        {"none", "", 5},
        {"other-key", "{'key':'other','operator':'Exists','effect':'NoExecute'}", 5},
        {"other-value", "{'key':'job','value':'x','effect':'NoExecute'}", 5},
        {"other-effect", "{'key':'job','value':'batch','effect':'NoSchedule'}", 5},
        {"equal", "{'key':'job','value':'batch','effect':'NoExecute'}", -1},
        {"exists", "{'key':'job','operator':'Exists'}", -1},
        {"everything", "{'operator':'Exists'}", -1},
        {"zero", "{'key':'job','operator':'Exists','effect':'NoExecute','tolerationSeconds':0}", 5},
        {"ten", "{'key':'job','operator':'Exists','effect':'NoExecute','tolerationSeconds':10}",
         15},
        {"first-counts",
         "{'key':'job','operator':'Exists','effect':'NoExecute','tolerationSeconds':20},"
         "{'key':'job','value':'batch','effect':'NoExecute','tolerationSeconds':3}",
         25},
    };
    struct nodes_bed n;
    nodes_bed_init(&n, 2);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char spec[512];
        (void)snprintf(spec, sizeof(spec), ",'nodeName':'node-1','tolerations':[%s]",
                       rows[i].tolerations);
        nodes_bed_post_pod(&n, rows[i].name, "", spec);
    }
    patch_at(&n, 5, "{'spec':{'taints':[{'key':'job','value':'batch','effect':'NoExecute'}]}}");
    for (int64_t at = 5; at < 60; at++) {
        run_to(&n, at);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            bool is_reported =
                !nodes_bed_pod(&n, rows[i].name) || deleted_at(&n, rows[i].name)[0] != '\0';
            if (is_reported != (rows[i].gone >= 0 && at >= rows[i].gone)) {
                fail_msg("%s at second %d: %d", rows[i].name, (int)at, is_reported);
            }
        }
    }
    nodes_bed_done(&n);
}

/* A taint that goes in time lets its pods stay; a pod that comes to a tainted node goes, too. */
static void test_taints_that_come_and_go(void **state)
{
    (void)state;
    struct nodes_bed n;
    nodes_bed_init(&n, 2);
    static const char tainted[] =
        "{'spec':{'taints':[{'key':'job','value':'x','effect':'NoExecute'}]}}";
    static const char minute[] =
        ",'nodeName':'node-1','tolerations':[{'key':'job','operator':'Exists','effect':'NoExecute',"
        "'tolerationSeconds':60}]";
    nodes_bed_post_pod(&n, "a", "", minute);
    patch_at(&n, 5, tainted);
    patch_at(&n, 50, "{'spec':{'taints':null}}");
    assert_string_equal(edit_bed_event(&n.bed, "a", "TaintManagerEviction"),
                        "Cancelling deletion of Pod n/a");
    patch_at(&n, 100, tainted);
    assert_string_equal(deleted_at(&n, "a"), "");
    nodes_bed_post_pod(&n, "b", "", ",'nodeName':'node-1'");
    bed_run(&n.bed, TD_MILLISECOND);
    assert_true(!nodes_bed_pod(&n, "b") || deleted_at(&n, "b")[0] != '\0');
    run_to(&n, 159);
    assert_string_equal(deleted_at(&n, "a"), "");
    run_to(&n, 160);
    assert_string_not_equal(deleted_at(&n, "a"), "");
    nodes_bed_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence_is_noticed_after_the_grace_period),
        cmocka_unit_test(test_pods_of_a_silent_node_are_replaced_elsewhere),
        cmocka_unit_test(test_controllers_replace_pods_of_a_silent_node),
        cmocka_unit_test(test_a_node_that_comes_back_keeps_its_pods),
        cmocka_unit_test(test_a_silent_node_can_be_deleted),
        cmocka_unit_test(test_few_nodes_are_emptied_at_a_time),
        cmocka_unit_test(test_other_nodes_are_judged_by_their_leases),
        cmocka_unit_test(test_a_cordon_is_a_taint),
        cmocka_unit_test(test_taints_of_users_remove_pods),
        cmocka_unit_test(test_taints_that_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
