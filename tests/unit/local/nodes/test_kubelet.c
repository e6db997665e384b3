/* What becomes of a pod on a node of ours, step by step on a virtual clock. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/nodes_bed.h"

static int setup(void **state)
{
    struct nodes_bed *n = td_alloc_zero(1, sizeof(*n));
    nodes_bed_init(n, 1);
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

static void check_condition(struct nodes_bed *n, const char *pod, const char *type,
                            const char *status, const char *reason)
{
    const struct td_json *object = nodes_bed_pod(n, pod);
    assert_string_equal(edit_bed_condition(&n->bed, object, type, "status"), status);
    assert_string_equal(edit_bed_condition(&n->bed, object, type, "reason"), reason);
}

/* A member of the first status of a list. */
static const char *first_status(struct nodes_bed *n, const char *pod, const char *list,
                                const char *path)
{
    char key[64];
    (void)snprintf(key, sizeof(key), "status.%s", list);
    return edit_bed_text(&n->bed, td_json_at(td_json_get_path(nodes_bed_pod(n, pod), key), 0),
                         path);
}

/* Pending with its containers being created, then running and ready a second later. */
static void test_pod_starts(void **state)
{
    struct nodes_bed *n = *state;
    nodes_bed_post_pod(n, "p", "'requests':{'cpu':'1','memory':'1Gi'},'limits':{'cpu':'2'}", "");
    bed_run(&n->bed, 999 * TD_MILLISECOND);
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.phase"), "Pending");
    assert_string_equal(first_status(n, "p", "containerStatuses", "state.waiting.reason"),
                        "ContainerCreating");
    check_condition(n, "p", "PodScheduled", "True", "");
    check_condition(n, "p", "Initialized", "True", "");
    check_condition(n, "p", "Ready", "False", "ContainersNotReady");
    check_condition(n, "p", "ContainersReady", "False", "ContainersNotReady");
    check_condition(n, "p", "PodReadyToStartContainers", "False", "");
    assert_string_equal(edit_bed_condition(&n->bed, nodes_bed_pod(n, "p"), "Ready", "message"),
                        "containers with unready status: [app]");
    bed_run(&n->bed, 2 * TD_MILLISECOND);
    static const struct {
        const char *path;
        const char *text;
    } rows[] = {
        {"status.phase", "Running"},        {"status.startTime", "2023-11-14T22:13:20Z"},
        {"status.hostIP", "172.18.0.2"},    {"status.podIP", "10.128.0.1"},
        {"status.qosClass", "Burstable"}, /* as the server had computed it */
        {"status.observedGeneration", "1"}, {"metadata.generation", "1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(nodes_bed_pod_text(n, "p", rows[i].path), rows[i].text);
    }
    static const char *const conditions[] = {"PodReadyToStartContainers", "Initialized",
                                             "ContainersReady", "Ready", "PodScheduled"};
    for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
        check_condition(n, "p", conditions[i], "True", "");
    }
    assert_string_equal(first_status(n, "p", "containerStatuses", "state.running.startedAt"),
                        "2023-11-14T22:13:21Z");
    assert_string_equal(first_status(n, "p", "containerStatuses", "resources.limits.cpu"), "2");
    assert_string_equal(first_status(n, "p", "containerStatuses", "allocatedResources.memory"),
                        "1Gi");
    assert_int_equal(strlen(first_status(n, "p", "containerStatuses", "containerID")), 9 + 64);
    const char *version = nodes_bed_pod_text(n, "p", "metadata.resourceVersion");
    bed_run(&n->bed, TD_HOUR); /* and then nothing is written any more */
    assert_string_equal(nodes_bed_pod_text(n, "p", "metadata.resourceVersion"), version);
}

/* Init containers run one after the other, a second each unless an annotation says otherwise;
 * sidecars start in their turn and stay; then come the containers. */
static void test_pod_runs_init_containers_and_sidecars(void **state)
{
    struct nodes_bed *n = *state;
    nodes_bed_post(n, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','annotations':{"
                      "'runs-for.tandem.dev/migrate':'3s'}},'spec':{'initContainers':[{'name':"
                      "'prepare','image':'i'},{'name':'proxy','image':'i','restartPolicy':"
                      "'Always'},{'name':'migrate','image':'i'}],'containers':[{'name':'app',"
                      "'image':'i'}]}}");
    static const struct {
        int at_ms;
        const char *phase;
        const char *states[4]; /* prepare, proxy, migrate, app */
        const char *initialized;
        const char *unready;
    } rows[] = {
        {500, "Pending", {"waiting", "waiting", "waiting", "waiting"}, "False", "[proxy app]"},
        {1500, "Pending", {"running", "waiting", "waiting", "waiting"}, "False", "[proxy app]"},
        {2500, "Pending", {"terminated", "running", "running", "waiting"}, "False", "[app]"},
        {4900, "Pending", {"terminated", "running", "running", "waiting"}, "False", "[app]"},
        {5100, "Running", {"terminated", "running", "terminated", "running"}, "True", ""},
    };
    int now_ms = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_run(&n->bed, (rows[i].at_ms - now_ms) * TD_MILLISECOND);
        now_ms = rows[i].at_ms;
        assert_string_equal(nodes_bed_pod_text(n, "p", "status.phase"), rows[i].phase);
        for (size_t c = 0; c < 4; c++) {
            const struct td_json *list =
                td_json_get_path(nodes_bed_pod(n, "p"), c < 3 ? "status.initContainerStatuses"
                                                              : "status.containerStatuses");
            const struct td_json *one = td_json_get(td_json_at(list, c % 3), TD_STR("state"));
            assert_non_null(td_json_get(one, td_str_from(rows[i].states[c])));
        }
        check_condition(n, "p", "Initialized", rows[i].initialized,
                        rows[i].initialized[0] == 'T' ? "" : "ContainersNotInitialized");
        const char *message =
            edit_bed_condition(&n->bed, nodes_bed_pod(n, "p"), "Ready", "message");
        assert_true(strlen(message) >= strlen(rows[i].unready));
        assert_string_equal(message + strlen(message) - strlen(rows[i].unready), rows[i].unready);
    }
    assert_string_equal(first_status(n, "p", "initContainerStatuses", "state.terminated.reason"),
                        "Completed");
    check_condition(n, "p", "Ready", "True", "");
}

/* Pods that are not always restarted end after a while, with a code, and are restarted or not. */
static void test_pod_ends(void **state)
{
    struct nodes_bed *n = *state;
    static const struct {
        const char *annotations;
        const char *policy;
        int at_ms; /* after the start; then: */
        const char *phase;
        const char *code;
        const char *reason; /* of Ready */
        const char *restarts;
    } rows[] = {
        {"", "Never", 5900, "Running", "", "", "0"},
        {"", "Never", 6100, "Succeeded", "0", "PodCompleted", "0"},
        {"", "OnFailure", 6100, "Succeeded", "0", "PodCompleted", "0"},
        {"", "Always", 60000, "Running", "", "", "0"},
        {"'tandem.dev/runs-for':'90s'", "Never", 90900, "Running", "", "", "0"},
        {"'tandem.dev/runs-for':'90s'", "Never", 91100, "Succeeded", "0", "PodCompleted", "0"},
        {"'tandem.dev/runs-for':'soon'", "Never", 6100, "Succeeded", "0", "PodCompleted", "0"},
        {"'tandem.dev/runs-for':'2540400h'", "Never", 6100, "Running", "", "", "0"},
        {"'tandem.dev/runs-for':'0s'", "Never", 1100, "Succeeded", "0", "PodCompleted", "0"},
        {"'tandem.dev/exit-code':'3'", "Never", 6100, "Failed", "3", "PodFailed", "0"},
        {"'tandem.dev/exit-code':'300'", "Never", 6100, "Succeeded", "0", "PodCompleted", "0"},
        {"'tandem.dev/exit-code':'1'", "OnFailure", 6100, "Running", "", "", "1"},
        {"'tandem.dev/exit-code':'1'", "OnFailure", 11100, "Running", "", "ContainersNotReady",
         "1"},
        {"'tandem.dev/exit-code':'1'", "OnFailure", 20900, "Running", "", "ContainersNotReady",
         "1"},
        {"'tandem.dev/exit-code':'1'", "OnFailure", 21100, "Running", "", "", "2"},
        {"'tandem.dev/exit-code':'1'", "OnFailure", 46100, "Running", "", "", "3"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[16];
        char text[512];
        (void)snprintf(name, sizeof(name), "p-%zu", i);
        (void)snprintf(text, sizeof(text),
                       "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'n',"
                       "'annotations':{%s}},'spec':{'restartPolicy':'%s','containers':[{'name':"
                       "'app','image':'i'}]}}",
                       name, rows[i].annotations, rows[i].policy);
        nodes_bed_post(n, text);
        bed_run(&n->bed, rows[i].at_ms * TD_MILLISECOND);
        assert_string_equal(nodes_bed_pod_text(n, name, "status.phase"), rows[i].phase);
        assert_string_equal(first_status(n, name, "containerStatuses", "state.terminated.exitCode"),
                            rows[i].code);
        assert_string_equal(first_status(n, name, "containerStatuses", "restartCount"),
                            rows[i].restarts);
        assert_string_equal(edit_bed_condition(&n->bed, nodes_bed_pod(n, name), "Ready", "reason"),
                            rows[i].reason);
    }
}

/* A deleted pod goes after a second, or after its grace when that is shorter; what a finalizer
 * holds is at its end first. */
static void test_pod_goes_when_deleted(void **state)
{
    struct nodes_bed *n = *state;
    const struct td_resource *pods = edit_bed_resource(&n->bed, "v1", "Pod");
    static const int64_t graces[] = {30, 1, 0, 3600};
    for (size_t i = 0; i < sizeof(graces) / sizeof(graces[0]); i++) {
        nodes_bed_post_pod(n, "p", "", "");
        bed_run(&n->bed, 1700 * TD_MILLISECOND);
        assert_int_equal(td_edit_delete(n->bed.api, pods, TD_STR("n"), TD_STR("p"), TD_STR_EMPTY,
                                        TD_STR_EMPTY, graces[i], NULL),
                         TD_OK);
        if (graces[i] > 0) {
            bed_run(&n->bed, 990 * TD_MILLISECOND);
            assert_non_null(nodes_bed_pod(n, "p"));
            bed_run(&n->bed, 20 * TD_MILLISECOND);
        }
        assert_null(nodes_bed_pod(n, "p"));
        bed_run(&n->bed, TD_MILLISECOND);
    }
    nodes_bed_post(n, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'held','namespace':"
                      "'n','finalizers':['example.com/x']},'spec':{'containers':[{'name':'app',"
                      "'image':'i'}]}}");
    bed_run(&n->bed, 2 * TD_SECOND);
    assert_int_equal(td_edit_delete(n->bed.api, pods, TD_STR("n"), TD_STR("held"), TD_STR_EMPTY,
                                    TD_STR_EMPTY, 30, NULL),
                     TD_OK);
    bed_run(&n->bed, 2 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(n, "held", "status.phase"), "Failed");
    assert_string_equal(first_status(n, "held", "containerStatuses", "state.terminated.exitCode"),
                        "143");
    assert_int_equal(nodes_bed_patch(n, "/api/v1/namespaces/n/pods/held",
                                     "{'metadata':{'$deleteFromPrimitiveList/finalizers':["
                                     "'example.com/x']}}"),
                     200);
    assert_null(nodes_bed_pod(n, "held"));
}

static void resize(struct nodes_bed *n, const char *name, const char *resources)
{
    char target[128];
    char patch[512];
    (void)snprintf(target, sizeof(target), "/api/v1/namespaces/n/pods/%s/resize", name);
    (void)snprintf(patch, sizeof(patch),
                   "{'spec':{'containers':[{'name':'app','resources':{%s}}]}}", resources);
    assert_int_equal(nodes_bed_patch(n, target, patch), 200);
}

/* The API refuses what is larger than the node; what got past it, by a node that shrank, is the
 * kubelet's to refuse. */
static void resize_past_admission(struct nodes_bed *n, const char *name, const char *cpu)
{
    char target[128];
    char patch[512];
    (void)snprintf(target, sizeof(target), "/api/v1/namespaces/n/pods/%s/resize", name);
    (void)snprintf(patch, sizeof(patch),
                   "{'spec':{'containers':[{'name':'app','resources':{'requests':{'cpu':'%s'}}}]}}",
                   cpu);
    assert_int_equal(nodes_bed_patch(n, target, patch), 403);
    struct td_json *pod;
    struct td_arena *arena = &n->bed.arena;
    const struct td_resource *pods = edit_bed_resource(&n->bed, "v1", "Pod");
    assert_int_equal(
        td_edit_get(n->bed.api, pods, TD_STR("n"), td_str_from(name), arena, &pod, NULL), TD_OK);
    struct td_json *container = td_json_first_child(td_json_get_path(pod, "spec.containers"));
    struct td_json *resources = td_json_ensure_object(arena, container, TD_STR("resources"));
    td_json_set_str(arena, td_json_ensure_object(arena, resources, TD_STR("requests")),
                    TD_STR("cpu"), td_str_from(cpu));
    assert_int_equal(td_edit_put(n->bed.api, pods, arena, pod, NULL), TD_OK);
}

/* A resize is in progress for a second, then in the status. */
static void test_pod_is_resized_in_place(void **state)
{
    struct nodes_bed *n = *state;
    nodes_bed_post_pod(n, "p", "'requests':{'cpu':'1'}", "");
    bed_run(&n->bed, 2 * TD_SECOND);
    resize(n, "p", "'requests':{'cpu':'2'}");
    bed_run(&n->bed, 900 * TD_MILLISECOND);
    check_condition(n, "p", "PodResizeInProgress", "True", "");
    check_condition(n, "p", "Ready", "True", "");
    assert_string_equal(first_status(n, "p", "containerStatuses", "resources.requests.cpu"), "1");
    assert_string_equal(first_status(n, "p", "containerStatuses", "allocatedResources.cpu"), "2");
    bed_run(&n->bed, 200 * TD_MILLISECOND);
    check_condition(n, "p", "PodResizeInProgress", "", "");
    assert_string_equal(first_status(n, "p", "containerStatuses", "resources.requests.cpu"), "2");
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.observedGeneration"), "2");
    assert_string_equal(nodes_bed_pod_text(n, "p", "metadata.generation"), "2");
    assert_string_equal(first_status(n, "p", "containerStatuses", "restartCount"), "0");
    /* Another one while the first is under way: the last counts. */
    resize(n, "p", "'requests':{'cpu':'3'}");
    bed_run(&n->bed, 500 * TD_MILLISECOND);
    resize(n, "p", "'requests':{'cpu':'4'}");
    bed_run(&n->bed, 900 * TD_MILLISECOND);
    assert_string_equal(first_status(n, "p", "containerStatuses", "resources.requests.cpu"), "2");
    bed_run(&n->bed, 200 * TD_MILLISECOND);
    assert_string_equal(first_status(n, "p", "containerStatuses", "resources.requests.cpu"), "4");
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.observedGeneration"), "4");
}

/* What the node has no room for waits; what is larger than the node never comes; both end when the
 * wish is taken back. */
static void test_resize_waits_for_room(void **state)
{
    struct nodes_bed *n = *state;
    nodes_bed_post_pod(n, "p", "'requests':{'cpu':'1'}", "");
    nodes_bed_post_pod(n, "other", "'requests':{'cpu':'5'}", "");
    bed_run(&n->bed, 2 * TD_SECOND);
    resize(n, "p", "'requests':{'cpu':'4'}");
    bed_run(&n->bed, 5 * TD_SECOND);
    check_condition(n, "p", "PodResizePending", "True", "Deferred");
    assert_string_equal(
        edit_bed_condition(&n->bed, nodes_bed_pod(n, "p"), "PodResizePending", "message"),
        "Node didn't have enough resource: cpu, requested: 4000, used: 5000, capacity: 8000");
    assert_string_equal(first_status(n, "p", "containerStatuses", "allocatedResources.cpu"), "1");
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.observedGeneration"), "2");
    /* The scheduler keeps the room that it waits for. */
    nodes_bed_post_pod(n, "late", "'requests':{'cpu':'1'}", "");
    bed_run(&n->bed, 2 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(n, "late", "spec.nodeName"), "");
    resize(n, "other", "'requests':{'cpu':'2'}");
    bed_run(&n->bed, 4 * TD_SECOND);
    check_condition(n, "p", "PodResizePending", "", "");
    assert_string_equal(first_status(n, "p", "containerStatuses", "resources.requests.cpu"), "4");
    assert_string_equal(nodes_bed_pod_text(n, "late", "spec.nodeName"), "node-1");
    resize_past_admission(n, "p", "9");
    bed_run(&n->bed, 2 * TD_SECOND);
    check_condition(n, "p", "PodResizePending", "True", "Infeasible");
    assert_string_equal(
        edit_bed_condition(&n->bed, nodes_bed_pod(n, "p"), "PodResizePending", "message"),
        "Node didn't have enough capacity: cpu, requested: 9000, capacity: 8000");
    resize(n, "p", "'requests':{'cpu':'4'}");
    bed_run(&n->bed, 2 * TD_SECOND);
    check_condition(n, "p", "PodResizePending", "", "");
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.observedGeneration"), "4");
    /* Deletion makes room too. */
    resize(n, "p", "'requests':{'cpu':'6'}");
    bed_run(&n->bed, 2 * TD_SECOND);
    check_condition(n, "p", "PodResizePending", "True", "Deferred");
    assert_int_equal(td_edit_delete(n->bed.api, edit_bed_resource(&n->bed, "v1", "Pod"),
                                    TD_STR("n"), TD_STR("other"), TD_STR_EMPTY, TD_STR_EMPTY, 30,
                                    NULL),
                     TD_OK);
    bed_run(&n->bed, 3 * TD_SECOND);
    assert_string_equal(first_status(n, "p", "containerStatuses", "resources.requests.cpu"), "6");
}

/* Policies that demand a restart get one, for the resource they name only. */
static void test_resize_restarts_where_the_policy_says_so(void **state)
{
    struct nodes_bed *n = *state;
    nodes_bed_post(
        n, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n'},'spec':{"
           "'containers':[{'name':'app','image':'i','resources':{'requests':{'cpu':'1',"
           "'memory':'1Gi'}},'resizePolicy':[{'resourceName':'cpu','restartPolicy':"
           "'NotRequired'},{'resourceName':'memory','restartPolicy':'RestartContainer'}]}]},"
           "'status':{'qosClass':'Burstable'}}");
    bed_run(&n->bed, 2 * TD_SECOND);
    resize(n, "p", "'requests':{'cpu':'2'}");
    bed_run(&n->bed, 2 * TD_SECOND);
    assert_string_equal(first_status(n, "p", "containerStatuses", "restartCount"), "0");
    resize(n, "p", "'requests':{'memory':'2Gi'}");
    bed_run(&n->bed, 2 * TD_SECOND);
    assert_string_equal(first_status(n, "p", "containerStatuses", "restartCount"), "1");
    assert_string_equal(first_status(n, "p", "containerStatuses", "resources.requests.memory"),
                        "2Gi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pod_starts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pod_runs_init_containers_and_sidecars, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_pod_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pod_goes_when_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pod_is_resized_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resize_waits_for_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resize_restarts_where_the_policy_says_so, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
