/* What happens to pods from outside: deletion, eviction, nodes that fall silent, a new process. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/workloads/pod_workload.h"
#include "support/kubelet_bed.h"

#define APP "'name':'app','image':'i'"

static const struct td_demand_role roles[] = {
    {.value = TD_STR_INIT("leader"), .cpu = {.low = 900}, .memory = {.low = 1048576}},
    {.value = TD_STR_INIT("follower"), .cpu = {.low = 100}, .memory = {.low = 1048576}},
};

static const struct td_demand demands[] = {
    {.ns = TD_STR_INIT("n"),
     .kind = TD_STR_INIT("Deployment"),
     .name = TD_STR_INIT("db"),
     .warmup_factor = 1,
     .driver = TD_DEMAND_ROLES,
     .role_label = TD_STR_INIT("role"),
     .roles = roles,
     .role_count = 2},
};

static int setup(void **state)
{
    struct nodes_bed *n = td_alloc_zero(1, sizeof(*n));
    nodes_bed_init_demands(n, 1, demands, 1);
    *state = n;
    return 0;
}

static int teardown(void **state)
{
    struct nodes_bed *n = *state;
    nodes_bed_done(n);
    td_free(n);
    return 0;
}

static void delete_pod(struct nodes_bed *n, const char *pod, int64_t grace)
{
    assert_int_equal(td_edit_delete(n->bed.api, edit_bed_resource(&n->bed, "v1", "Pod"),
                                    TD_STR("n"), td_str_from(pod), TD_STR_EMPTY, TD_STR_EMPTY,
                                    grace, NULL),
                     TD_OK);
}

static struct td_engine_pod *body(struct nodes_bed *n, const char *pod)
{
    return td_engine_find_pod(n->engine, TD_STR("n"), td_str_from(pod));
}

/* Its events, in a kubelet's words, about the container and from the node. */
static void test_events_of_a_start(void **state)
{
    struct nodes_bed *n = *state;
    nodes_bed_post_pod(n, "p", "", "");
    bed_run(&n->bed, 2 * TD_SECOND);
    static const struct {
        const char *reason;
        const char *message;
    } rows[] = {
        {"Pulled",
         "Container image \"nginx\" already present on machine and can be accessed by the pod"},
        {"Created", "Container created"},
        {"Started", "Container started"},
        {"Killing", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(edit_bed_event(&n->bed, "p", rows[i].reason), rows[i].message);
    }
    delete_pod(n, "p", 30);
    bed_run(&n->bed, 100 * TD_MILLISECOND);
    assert_string_equal(edit_bed_event(&n->bed, "p", "Killing"), "Stopping container app");
}

/* The body is there as long as the containers, also of a pod that goes without being asked. */
static void test_deletion_ends_the_body(void **state)
{
    struct nodes_bed *n = *state;
    static const int64_t graces[] = {30, 0};
    for (size_t i = 0; i < 2; i++) {
        nodes_bed_post_pod(n, "p", "", "");
        bed_run(&n->bed, 900 * TD_MILLISECOND);
        assert_null(body(n, "p"));
        bed_run(&n->bed, TD_SECOND);
        assert_non_null(body(n, "p"));
        delete_pod(n, "p", graces[i]);
        bed_run(&n->bed, graces[i] > 0 ? 900 * TD_MILLISECOND : TD_MILLISECOND);
        assert_int_equal(body(n, "p") != NULL, graces[i] > 0);
        bed_run(&n->bed, 200 * TD_MILLISECOND);
        assert_null(body(n, "p"));
        assert_null(nodes_bed_pod(n, "p"));
    }
}

/* On a silent node nothing runs and nothing is written; back, everything is started again. */
static void test_silent_node(void **state)
{
    struct nodes_bed *n = *state;
    nodes_bed_post_pod(n, "p", "", "");
    nodes_bed_post_pod(n, "once", "", ",'restartPolicy':'Never'");
    kubelet_bed_annotate(n, "once", "'tandem.dev/runs-for':'1h'");
    bed_run(&n->bed, 3 * TD_SECOND);
    assert_int_equal(td_nodes_lose(n->nodes, TD_STR("node-1"), true, NULL), TD_OK);
    assert_null(body(n, "p"));
    const char *version = nodes_bed_pod_text(n, "p", "metadata.resourceVersion");
    bed_run(&n->bed, 10 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(n, "p", "metadata.resourceVersion"), version);
    assert_int_equal(td_nodes_lose(n->nodes, TD_STR("node-1"), false, NULL), TD_OK);
    bed_run(&n->bed, TD_SECOND);
    kubelet_bed_check(n, "p", "app", "restartCount", "1");
    kubelet_bed_check(n, "p", "app", "lastState.terminated.exitCode", "255");
    kubelet_bed_check(n, "p", "app", "lastState.terminated.reason", "Unknown");
    kubelet_bed_check(n, "p", "app", "ready", "true");
    assert_non_null(body(n, "p"));
    assert_string_equal(nodes_bed_pod_text(n, "once", "status.phase"), "Failed");
    assert_string_equal(edit_bed_event(&n->bed, "p", "SandboxChanged"),
                        "Pod sandbox changed, it will be killed and re-created.");
}

/* Who makes its node run out of memory is evicted, and its containers are killed. */
static void test_eviction(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "big", "'usage.tandem.dev/app':'1m,33Gi'",
                     "'containers':[{" APP "},{'name':'other','image':'i'}]");
    nodes_bed_post_pod(n, "small", "", "");
    bed_run(&n->bed, TD_MINUTE);
    assert_string_equal(nodes_bed_pod_text(n, "big", "status.phase"), "Failed");
    assert_string_equal(nodes_bed_pod_text(n, "big", "status.reason"), "Evicted");
    const char *message = nodes_bed_pod_text(n, "big", "status.message");
    assert_true(strlen(message) > 0);
    assert_string_equal(edit_bed_event(&n->bed, "big", "Evicted"), message);
    kubelet_bed_condition(n, "big", "DisruptionTarget", "True", "TerminationByKubelet");
    kubelet_bed_condition(n, "big", "Ready", "False", "PodFailed");
    kubelet_bed_check(n, "big", "app", "state.terminated.exitCode", "137");
    kubelet_bed_check(n, "big", "other", "state.terminated.exitCode", "137");
    assert_null(body(n, "big"));
    assert_non_null(body(n, "small"));
    assert_string_equal(nodes_bed_pod_text(n, "small", "status.phase"), "Running");
}

/* A new process gives running containers their bodies back, and no restart is counted. */
static void test_new_process(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "",
                     "'initContainers':[{'name':'first','image':'i'},{'name':'side','image':'i',"
                     "'restartPolicy':'Always'}],'containers':[{" APP "}]");
    nodes_bed_post_pod(n, "job", "", ",'restartPolicy':'Never'");
    nodes_bed_post_pod(n, "late", "", "");
    bed_run(&n->bed, 4 * TD_SECOND);
    const char *version = nodes_bed_pod_text(n, "p", "metadata.resourceVersion");
    td_nodes_free(n->nodes);
    td_engine_free(n->engine);
    const struct td_engine_options engine = {.loop = n->bed.loop};
    n->engine = td_engine_new(&engine);
    const struct td_node_size size = td_node_size_usual(1);
    const struct td_nodes_options options = {
        .api = n->bed.api, .sizes = &size, .size_count = 1, .engine = n->engine};
    assert_int_equal(td_nodes_new(&options, &n->nodes, NULL), TD_OK);
    bed_run(&n->bed, TD_SECOND);
    struct td_engine_pod *pod = body(n, "p");
    assert_non_null(pod);
    assert_non_null(td_engine_find(pod, TD_STR("app")));
    assert_non_null(td_engine_find(pod, TD_STR("side")));
    assert_null(td_engine_find(pod, TD_STR("first")));
    assert_string_equal(nodes_bed_pod_text(n, "p", "metadata.resourceVersion"), version);
    kubelet_bed_check(n, "p", "app", "restartCount", "0");
    bed_run(&n->bed, 2 * TD_SECOND); /* it ends five seconds after it began */
    assert_string_equal(nodes_bed_pod_text(n, "job", "status.phase"), "Succeeded");
}

/* An object that one of apps/v1 controls. */
static void put_owned(struct nodes_bed *n, const char *type, const char *metadata,
                      const char *owner_kind, const char *owner_name, const char *rest)
{
    char text[1024];
    const struct td_json *owner = edit_bed_get(&n->bed, "apps/v1", owner_kind, "n", owner_name);
    (void)snprintf(text, sizeof(text),
                   "{%s,'metadata':{%s,'namespace':'n','ownerReferences':[{'apiVersion':'apps/v1',"
                   "'kind':'%s','name':'%s','uid':'%s','controller':true}]}%s}",
                   type, metadata, owner_kind, owner_name,
                   edit_bed_text(&n->bed, owner, "metadata.uid"), rest);
    edit_bed_put(&n->bed, text);
}

/* The workload of a pod is its topmost owner; labels of the pod decide its role at once. */
static void test_workload_and_role(void **state)
{
    struct nodes_bed *n = *state;
    edit_bed_put(&n->bed, "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'db',"
                          "'namespace':'n'}}");
    put_owned(n, "'apiVersion':'apps/v1','kind':'ReplicaSet'", "'name':'db-1'", "Deployment", "db",
              "");
    put_owned(n, "'apiVersion':'v1','kind':'Pod'", "'name':'db-1-a','labels':{'role':'follower'}",
              "ReplicaSet", "db-1", ",'spec':{'containers':[{" APP "}]}");
    struct td_pod_workload workload =
        td_pod_workload(n->bed.api, &n->bed.arena, nodes_bed_pod(n, "db-1-a"));
    assert_string_equal(workload.kind.ptr, "Deployment");
    assert_string_equal(workload.name.ptr, "db");
    bed_run(&n->bed, 7 * TD_SECOND);
    struct td_engine_pod *pod = body(n, "db-1-a");
    assert_non_null(pod);
    assert_int_equal((int)td_engine_pod_use(pod).cpu_milli, 100);
    struct td_json *object = nodes_bed_pod(n, "db-1-a");
    td_json_set_str(&n->bed.arena, td_json_get_path(object, "metadata.labels"), TD_STR("role"),
                    TD_STR("leader"));
    assert_int_equal(td_edit_put(n->bed.api, edit_bed_resource(&n->bed, "v1", "Pod"), &n->bed.arena,
                                 object, NULL),
                     TD_OK);
    bed_run(&n->bed, 6 * TD_SECOND);
    assert_int_equal((int)td_engine_pod_use(pod).cpu_milli, 900);
    /* A pod alone, and one whose owner is gone. */
    nodes_bed_post_pod(n, "alone", "", "");
    workload = td_pod_workload(n->bed.api, &n->bed.arena, nodes_bed_pod(n, "alone"));
    assert_string_equal(workload.kind.ptr, "Pod");
    assert_string_equal(workload.name.ptr, "alone");
    edit_bed_put(&n->bed,
                 "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'lost','namespace':"
                 "'n','ownerReferences':[{'apiVersion':'example.com/v1','kind':'Thing',"
                 "'name':'t','uid':'u','controller':true}]},'spec':{'containers':[{" APP "}]}}");
    workload = td_pod_workload(n->bed.api, &n->bed.arena, nodes_bed_pod(n, "lost"));
    assert_string_equal(workload.kind.ptr, "Thing");
    assert_string_equal(workload.name.ptr, "t");
}

/* Containers that crash for ever write events that are counted, not more and more of them. */
static void test_events_are_counted(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "'tandem.dev/exit-code':'1','tandem.dev/runs-for':'1s'",
                     "'containers':[{" APP "}]");
    bed_run(&n->bed, 30 * TD_MINUTE);
    const struct td_collection *events = td_store_find(n->bed.store, TD_STR("events"));
    struct td_collection_iter iter;
    size_t count = 0;
    iter = td_collection_walk(events, TD_STR("n"));
    while (td_collection_iter_next(&iter)) {
        count++;
    }
    td_collection_iter_done(&iter);
    assert_int_equal(count, 5); /* Scheduled, Pulled, Created, Started, BackOff */
}

/* Conditions that others must set hold the pod's readiness back, and nothing else. */
static void test_readiness_gates(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "",
                     "'readinessGates':[{'conditionType':'example.com/gate'}],'containers':[{" APP
                     "}]");
    bed_run(&n->bed, 2 * TD_SECOND);
    kubelet_bed_condition(n, "p", "ContainersReady", "True", "");
    kubelet_bed_condition(n, "p", "Ready", "False", "ReadinessGatesNotReady");
    assert_int_equal(nodes_bed_patch(n, "/api/v1/namespaces/n/pods/p/status",
                                     "{'status':{'conditions':[{'type':'example.com/gate',"
                                     "'status':'True'}]}}"),
                     200);
    bed_run(&n->bed, TD_SECOND);
    kubelet_bed_condition(n, "p", "Ready", "True", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_events_of_a_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deletion_ends_the_body, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_node, setup, teardown),
        cmocka_unit_test_setup_teardown(test_eviction, setup, teardown),
        cmocka_unit_test_setup_teardown(test_new_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_workload_and_role, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readiness_gates, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
