/* Resizes in place: what is given, when it comes into use, and what cannot be. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/kubelet_bed.h"

#define APP "'name':'app','image':'i'"

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

static struct td_engine_container *body(struct nodes_bed *n, const char *pod, const char *name)
{
    struct td_engine_pod *found = td_engine_find_pod(n->engine, TD_STR("n"), td_str_from(pod));
    assert_non_null(found);
    struct td_engine_container *container = td_engine_find(found, td_str_from(name));
    assert_non_null(container);
    return container;
}

static void delete_pod(struct nodes_bed *n, const char *pod)
{
    assert_int_equal(td_edit_delete(n->bed.api, edit_bed_resource(&n->bed, "v1", "Pod"),
                                    TD_STR("n"), td_str_from(pod), TD_STR_EMPTY, TD_STR_EMPTY, 30,
                                    NULL),
                     TD_OK);
}

/* A second in progress, then in use by the body too; every step has its event. */
static void test_resize_reaches_the_engine(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "",
                     "'containers':[{" APP ",'resources':{'requests':{'cpu':'1'},'limits':{"
                     "'memory':'1Gi'}}}]");
    bed_run(&n->bed, 2 * TD_SECOND);
    assert_int_equal(td_engine_body(body(n, "p", "app"))->cpu_request_milli, 1000);
    kubelet_bed_resize(n, "p",
                       "'containers':[{'name':'app','resources':{'requests':{'cpu':'2'}}}]");
    bed_run(&n->bed, 900 * TD_MILLISECOND);
    assert_int_equal(td_engine_body(body(n, "p", "app"))->cpu_request_milli, 1000);
    kubelet_bed_condition(n, "p", "PodResizeInProgress", "True", "");
    assert_string_equal(edit_bed_event(&n->bed, "p", "ResizeStarted"),
                        "Pod resize started: {\"containers\":[{\"name\":\"app\",\"resources\":{"
                        "\"limits\":{\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"2\",\"memory\":"
                        "\"1Gi\"}}}],\"generation\":2}");
    bed_run(&n->bed, 200 * TD_MILLISECOND);
    assert_int_equal(td_engine_body(body(n, "p", "app"))->cpu_request_milli, 2000);
    kubelet_bed_condition(n, "p", "PodResizeInProgress", "", "");
    kubelet_bed_check(n, "p", "app", "resources.requests.cpu", "2");
    kubelet_bed_check(n, "p", "app", "ready", "true");
    assert_string_equal(edit_bed_event(&n->bed, "p", "ResizeCompleted"),
                        "Pod resize completed: {\"containers\":[{\"name\":\"app\",\"resources\":{"
                        "\"limits\":{\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"2\",\"memory\":"
                        "\"1Gi\"}}}],\"generation\":2}");
}

/* More than the node will ever have is refused at once; programs know it by its cause. */
static void test_more_than_the_node_has_is_refused(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(
        n, "p", "", "'containers':[{" APP ",'resources':{'requests':{'cpu':'1','memory':'1Gi'}}}]");
    bed_run(&n->bed, 2 * TD_SECOND);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    struct bed_request request = {
        .method = "PATCH",
        .target = "/api/v1/namespaces/n/pods/p/resize",
        .content_type = "application/merge-patch+json",
        .body =
            TD_STR("{\"spec\":{\"containers\":[{\"name\":\"app\",\"image\":\"i\",\"resources\":{"
                   "\"requests\":{\"cpu\":\"999\",\"memory\":\"9000Gi\"}}}]}}"),
    };
    bed_ask(&n->bed, &request, &answer);
    assert_int_equal(answer.status, 403);
    const char *body = td_buf_str(&answer.body).ptr;
    assert_non_null(strstr(body,
                           "\"message\":\"pods \\\"p\\\" is forbidden: node didn't have enough "
                           "allocatable resources: cpu, requested: 999000, allocatable: "));
    assert_non_null(strstr(body, "\"details\":{\"name\":\"p\",\"kind\":"
                                 "\"pods\",\"causes\":[{\"reason\":\"NodeCapacity\"}]}"));
}

/* Who waits for room is asked by priority, then class, then time; room comes when others leave. */
static void test_deferred_resizes_have_an_order(void **state)
{
    struct nodes_bed *n = *state;
    static const struct {
        const char *name;
        const char *resources;
        const char *wish;
    } rows[] = {
        {"first", "'requests':{'cpu':'1'}", "'requests':{'cpu':'3'}"},
        {"second", "'requests':{'cpu':'1'}", "'requests':{'cpu':'3'}"},
        {"guaranteed", "'requests':{'cpu':'1','memory':'1Gi'},'limits':{'cpu':'1','memory':'1Gi'}",
         "'requests':{'cpu':'3'},'limits':{'cpu':'3'}"},
    };
    kubelet_bed_post(n, "a", "",
                     "'containers':[{" APP ",'resources':{'requests':{'cpu':'2500m'}}}]");
    kubelet_bed_post(n, "b", "", "'containers':[{" APP ",'resources':{'requests':{'cpu':'2'}}}]");
    for (size_t i = 0; i < 3; i++) {
        char spec[256];
        (void)snprintf(spec, sizeof(spec), "'containers':[{" APP ",'resources':{%s}}]",
                       rows[i].resources);
        kubelet_bed_post(n, rows[i].name, "", spec);
    }
    bed_run(&n->bed, 3 * TD_SECOND);
    for (size_t i = 0; i < 3; i++) {
        char spec[256];
        (void)snprintf(spec, sizeof(spec), "'containers':[{'name':'app','resources':{%s}}]",
                       rows[i].wish);
        kubelet_bed_resize(n, rows[i].name, spec);
        bed_run(&n->bed, 2 * TD_SECOND);
        kubelet_bed_condition(n, rows[i].name, "PodResizePending", "True", "Deferred");
    }
    assert_string_equal(
        edit_bed_event(&n->bed, "first", "ResizeDeferred"),
        "Pod resize Deferred: {\"containers\":[{\"name\":\"app\",\"resources\":{\"requests\":{"
        "\"cpu\":\"3\"}}}],\"generation\":2,\"error\":\"Node didn't have enough resource: cpu, "
        "requested: 3000, used: 6500, capacity: 8000\"}");
    delete_pod(n, "b");
    bed_run(&n->bed, 3 * TD_SECOND);
    kubelet_bed_check(n, "guaranteed", "app", "resources.requests.cpu", "3");
    kubelet_bed_condition(n, "first", "PodResizePending", "True", "Deferred");
    kubelet_bed_condition(n, "second", "PodResizePending", "True", "Deferred");
    delete_pod(n, "a");
    bed_run(&n->bed, 3 * TD_SECOND);
    kubelet_bed_check(n, "first", "app", "resources.requests.cpu", "3");
    kubelet_bed_condition(n, "first", "PodResizePending", "", "");
    kubelet_bed_condition(n, "second", "PodResizePending", "True", "Deferred");
    delete_pod(n, "guaranteed");
    bed_run(&n->bed, 3 * TD_SECOND);
    kubelet_bed_check(n, "second", "app", "resources.requests.cpu", "3");
}

/* A memory limit that is below what is used waits until less is used. */
static void test_memory_limit_below_use_waits(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "'usage.tandem.dev/app':'1m,300Mi'",
                     "'containers':[{" APP ",'resources':{'limits':{'memory':'1Gi'},'requests':{"
                     "'memory':'100Mi'}}}]");
    bed_run(&n->bed, 7 * TD_SECOND);
    kubelet_bed_resize(n, "p",
                       "'containers':[{'name':'app','resources':{'limits':{'memory':'200Mi'}}}]");
    bed_run(&n->bed, 3 * TD_SECOND);
    kubelet_bed_condition(n, "p", "PodResizeInProgress", "True", "Error");
    assert_string_equal(
        edit_bed_condition(&n->bed, nodes_bed_pod(n, "p"), "PodResizeInProgress", "message"),
        "cannot decrease memory limits: [attempting to set pod memory limit (209715200) below "
        "current usage (314572800), attempting to set container \"app\" memory limit (209715200) "
        "below current usage (314572800)]");
    assert_true(strncmp(edit_bed_event(&n->bed, "p", "ResizeError"), "Pod resize error: {", 19) ==
                0);
    kubelet_bed_check(n, "p", "app", "resources.limits.memory", "1Gi");
    const char *version = nodes_bed_pod_text(n, "p", "metadata.resourceVersion");
    bed_run(&n->bed, TD_MINUTE); /* tried again and again, and nothing written */
    assert_string_equal(nodes_bed_pod_text(n, "p", "metadata.resourceVersion"), version);
    kubelet_bed_annotate(n, "p", "'usage.tandem.dev/app':'1m,100Mi'");
    bed_run(&n->bed, 20 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "resources.limits.memory", "200Mi");
    kubelet_bed_condition(n, "p", "PodResizeInProgress", "", "");
    kubelet_bed_check(n, "p", "app", "restartCount", "0");
    assert_int_equal(td_engine_body(body(n, "p", "app"))->memory_limit_bytes, 209715200);
}

/* Only the container whose policy says so is restarted, once. */
static void test_policy_restarts_one_container(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "'usage.tandem.dev/app':'1m,300Mi'",
                     "'containers':[{" APP ",'resources':{'limits':{'memory':'1Gi'}},"
                     "'resizePolicy':[{'resourceName':'memory','restartPolicy':"
                     "'RestartContainer'}]},{'name':'other','image':'i','resources':{'requests':{"
                     "'cpu':'1'}}}]");
    bed_run(&n->bed, 7 * TD_SECOND);
    kubelet_bed_resize(n, "p",
                       "'containers':[{'name':'app','resources':{'limits':{'memory':'400Mi'},"
                       "'requests':{'memory':'400Mi'}}},{'name':'other','resources':{'requests':{"
                       "'cpu':'2'}}}]");
    bed_run(&n->bed, 2 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "restartCount", "1");
    kubelet_bed_check(n, "p", "app", "lastState.terminated.reason", "Completed");
    kubelet_bed_check(n, "p", "app", "resources.limits.memory", "400Mi");
    kubelet_bed_check(n, "p", "app", "ready", "true");
    kubelet_bed_check(n, "p", "other", "restartCount", "0");
    kubelet_bed_check(n, "p", "other", "resources.requests.cpu", "2");
    assert_string_equal(edit_bed_event(&n->bed, "p", "Killing"),
                        "Container app resize requires restart");
    assert_int_equal(td_engine_body(body(n, "p", "app"))->memory_limit_bytes, 419430400);
}

/* The pod's own resources are resized like those of containers. */
static void test_pod_level_resize(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "'usage.tandem.dev/app':'1m,60Mi'",
                     "'resources':{'limits':{'memory':'100Mi'},'requests':{'memory':'100Mi'}},"
                     "'containers':[{" APP "}]");
    bed_run(&n->bed, 7 * TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.resources.limits.memory"), "100Mi");
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.qosClass"), "Burstable");
    kubelet_bed_resize(n, "p",
                       "'resources':{'limits':{'memory':'200Mi'},'requests':{'memory':'200Mi'}}");
    bed_run(&n->bed, 500 * TD_MILLISECOND);
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.allocatedResources.memory"), "200Mi");
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.resources.limits.memory"), "100Mi");
    bed_run(&n->bed, TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.resources.limits.memory"), "200Mi");
    kubelet_bed_annotate(n, "p", "'usage.tandem.dev/app':'1m,150Mi'");
    bed_run(&n->bed, 10 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "restartCount", "0"); /* the new limit holds */
    kubelet_bed_annotate(n, "p", "'usage.tandem.dev/app':'1m,201Mi'");
    bed_run(&n->bed, 5 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "restartCount", "1");
    kubelet_bed_check(n, "p", "app", "lastState.terminated.reason", "OOMKilled");
}

/* The class of a pod follows from its own resources, when it has them. */
static void test_class_by_pod_level_resources(void **state)
{
    struct nodes_bed *n = *state;
    static const struct {
        const char *resources;
        const char *name;
    } rows[] = {
        {"'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'1','memory':'1Gi'}}",
         "Guaranteed"},
        {"'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'1','memory':'512Mi'}}",
         "Burstable"},
    };
    for (size_t i = 0; i < 2; i++) {
        char name[8];
        char spec[256];
        (void)snprintf(name, sizeof(name), "p-%zu", i);
        (void)snprintf(spec, sizeof(spec), "'resources':{%s,'containers':[{" APP "}]",
                       rows[i].resources);
        kubelet_bed_post(n, name, "", spec);
        assert_string_equal(nodes_bed_pod_text(n, name, "status.qosClass"), rows[i].name);
    }
}

/* A pod that has not started yet is resized too, and starts with what it was given; so does a
 * container that is started again while a wish waits: with what it has. */
static void test_resize_before_and_between_runs(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "'runs-for.tandem.dev/first':'10s'",
                     "'initContainers':[{'name':'first','image':'i'}],'containers':[{" APP
                     ",'resources':{'requests':{'cpu':'1'}}}]");
    bed_run(&n->bed, 3 * TD_SECOND);
    kubelet_bed_resize(n, "p",
                       "'containers':[{'name':'app','resources':{'requests':{'cpu':'2'}}}]");
    bed_run(&n->bed, 2 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "resources.requests.cpu", "2");
    bed_run(&n->bed, 10 * TD_SECOND);
    assert_int_equal(td_engine_body(body(n, "p", "app"))->cpu_request_milli, 2000);
    kubelet_bed_post(n, "other", "'tandem.dev/exit-code':'1','tandem.dev/runs-for':'4s'",
                     "'containers':[{" APP ",'resources':{'requests':{'cpu':'4'}}}]");
    bed_run(&n->bed, 2 * TD_SECOND);
    kubelet_bed_resize(n, "other",
                       "'containers':[{'name':'app','resources':{'requests':{'cpu':'7'}}}]");
    bed_run(&n->bed, 4 * TD_SECOND);
    kubelet_bed_check(n, "other", "app", "restartCount", "1");
    kubelet_bed_condition(n, "other", "PodResizePending", "True", "Deferred");
    kubelet_bed_check(n, "other", "app", "resources.requests.cpu", "4");
    assert_int_equal(td_engine_body(body(n, "other", "app"))->cpu_request_milli, 4000);
}

/* A wish that comes while another is in progress and cannot be given leaves that one alone. */
static void test_deferred_wish_behind_one_in_progress(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "", "'containers':[{" APP ",'resources':{'requests':{'cpu':'1'}}}]");
    kubelet_bed_post(n, "other", "",
                     "'containers':[{" APP ",'resources':{'requests':{'cpu':'4'}}}]");
    bed_run(&n->bed, 2 * TD_SECOND);
    kubelet_bed_resize(n, "p",
                       "'containers':[{'name':'app','resources':{'requests':{'cpu':'2'}}}]");
    bed_run(&n->bed, 500 * TD_MILLISECOND);
    kubelet_bed_resize(n, "p",
                       "'containers':[{'name':'app','resources':{'requests':{'cpu':'6'}}}]");
    bed_run(&n->bed, 100 * TD_MILLISECOND);
    kubelet_bed_condition(n, "p", "PodResizePending", "True", "Deferred");
    kubelet_bed_condition(n, "p", "PodResizeInProgress", "True", "");
    bed_run(&n->bed, TD_SECOND);
    kubelet_bed_condition(n, "p", "PodResizePending", "True", "Deferred");
    kubelet_bed_condition(n, "p", "PodResizeInProgress", "", "");
    kubelet_bed_check(n, "p", "app", "resources.requests.cpu", "2");
    delete_pod(n, "other");
    bed_run(&n->bed, 3 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "resources.requests.cpu", "6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resize_reaches_the_engine, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_than_the_node_has_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deferred_resizes_have_an_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_limit_below_use_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_policy_restarts_one_container, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pod_level_resize, setup, teardown),
        cmocka_unit_test_setup_teardown(test_class_by_pod_level_resources, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resize_before_and_between_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deferred_wish_behind_one_in_progress, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
