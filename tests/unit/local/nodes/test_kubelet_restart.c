/* Containers that end: out of memory, with a code, done; and when they are started again. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/kubelet_bed.h"

#define APP "'name':'app','image':'i'"

static const struct td_demand demands[] = {
    {.ns = TD_STR_INIT("n"),
     .kind = TD_STR_INIT("Pod"),
     .name = TD_STR_INIT("slow"),
     .warmup_factor = 1,
     .startup_time = 20 * TD_SECOND,
     .startup_cpu_milli = 500},
    {.ns = TD_STR_INIT("n"),
     .kind = TD_STR_INIT("Pod"),
     .name = TD_STR_INIT("task"),
     .warmup_factor = 1,
     .driver = TD_DEMAND_RUN,
     .run_time = 42 * TD_SECOND,
     .cpu = {.low = 100}},
};

static int setup(void **state)
{
    struct nodes_bed *n = td_alloc_zero(1, sizeof(*n));
    nodes_bed_init_demands(n, 1, demands, sizeof(demands) / sizeof(demands[0]));
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

/* At its limit a container lives, a byte above it is killed; the other one goes on. */
static void test_out_of_memory_at_the_exact_byte(void **state)
{
    struct nodes_bed *n = *state;
    static const struct {
        const char *name;
        const char *usage;
        const char *restarts;
        const char *last;
    } rows[] = {
        {"at", "10m,104857600", "0", ""},
        {"above", "10m,104857601", "1", "OOMKilled"},
    };
    for (size_t i = 0; i < 2; i++) {
        char annotations[128];
        (void)snprintf(annotations, sizeof(annotations), "'usage.tandem.dev/app':'%s'",
                       rows[i].usage);
        kubelet_bed_post(n, rows[i].name, annotations,
                         "'containers':[{" APP ",'resources':{'limits':{'memory':'100Mi'}}},"
                         "{'name':'other','image':'i'}]");
        bed_run(&n->bed, 10 * TD_SECOND + 500 * TD_MILLISECOND); /* two looks of the engine */
        kubelet_bed_check(n, rows[i].name, "app", "restartCount", rows[i].restarts);
        kubelet_bed_check(n, rows[i].name, "app", "lastState.terminated.reason", rows[i].last);
        kubelet_bed_check(n, rows[i].name, "other", "restartCount", "0");
        kubelet_bed_check(n, rows[i].name, "other", "ready", "true");
        assert_string_equal(nodes_bed_pod_text(n, rows[i].name, "status.phase"), "Running");
    }
    kubelet_bed_check(n, "above", "app", "lastState.terminated.exitCode", "137");
    kubelet_bed_check(n, "above", "app", "state.waiting.reason", "CrashLoopBackOff");
    kubelet_bed_condition(n, "above", "Ready", "False", "ContainersNotReady");
    /* Less is wanted: the next run lasts. */
    kubelet_bed_annotate(n, "above", "'usage.tandem.dev/app':'10m,50Mi'");
    bed_run(&n->bed, 15 * TD_SECOND);
    kubelet_bed_check(n, "above", "app", "restartCount", "2");
    kubelet_bed_check(n, "above", "app", "ready", "true");
    kubelet_bed_condition(n, "above", "Ready", "True", "");
    /* And what is wanted while it runs counts at once. */
    kubelet_bed_annotate(n, "above", "'usage.tandem.dev/app':'10m,101Mi'");
    bed_run(&n->bed, 5 * TD_SECOND);
    kubelet_bed_check(n, "above", "app", "restartCount", "2");
    kubelet_bed_check(n, "above", "app", "state.waiting.reason", "CrashLoopBackOff");
}

/* The first restart comes at once, then pauses double up to five minutes; a run of more than ten
 * minutes forgets them. */
static void test_restarts_pause(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "'tandem.dev/exit-code':'3','tandem.dev/runs-for':'2s'",
                     "'containers':[{" APP "}]");
    static const struct {
        td_duration pause;
        const char *restarts;
        const char *text;
    } rows[] = {
        {0, "1", ""},
        {10 * TD_SECOND, "2", "10s"},
        {20 * TD_SECOND, "3", "20s"},
        {40 * TD_SECOND, "4", "40s"},
        {80 * TD_SECOND, "5", "1m20s"},
        {160 * TD_SECOND, "6", "2m40s"},
        {300 * TD_SECOND, "7", "5m0s"},
        {300 * TD_SECOND, "8", "5m0s"},
    };
    bed_run(&n->bed, TD_SECOND + 50 * TD_MILLISECOND); /* it runs */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_run(&n->bed, 2 * TD_SECOND); /* it has ended */
        if (rows[i].pause > 0) {
            char text[192];
            (void)snprintf(text, sizeof(text),
                           "back-off %s restarting failed container=app pod=p_n(%s)", rows[i].text,
                           nodes_bed_pod_text(n, "p", "metadata.uid"));
            kubelet_bed_check(n, "p", "app", "state.waiting.message", text);
            kubelet_bed_check(n, "p", "app", "lastState.terminated.exitCode", "3");
            bed_run(&n->bed, rows[i].pause - 100 * TD_MILLISECOND);
            kubelet_bed_check(n, "p", "app", "state.waiting.message", text);
            bed_run(&n->bed, 100 * TD_MILLISECOND);
        }
        kubelet_bed_check(n, "p", "app", "restartCount", rows[i].restarts);
        kubelet_bed_check(n, "p", "app", "ready", "true");
    }
    char text[192];
    (void)snprintf(text, sizeof(text), "Back-off restarting failed container app in pod p_n(%s)",
                   nodes_bed_pod_text(n, "p", "metadata.uid"));
    assert_string_equal(edit_bed_event(&n->bed, "p", "BackOff"), text);
    static const struct {
        const char *runs_for;
        const char *after_end; /* restarts a second after its end */
    } runs[] = {{"600s", "9"}, {"601s", "11"}};
    /* A run of ten minutes is not yet long enough, one of a second more is. */
    kubelet_bed_annotate(n, "p", "'tandem.dev/runs-for':'600s'");
    (void)kubelet_bed_await_restart(n, "p", "app", "9", 310 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "restartCount", "9");
    bed_run(&n->bed, 602 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "restartCount", runs[0].after_end);
    kubelet_bed_annotate(n, "p", "'tandem.dev/runs-for':'601s'");
    (void)kubelet_bed_await_restart(n, "p", "app", "10", 310 * TD_SECOND);
    bed_run(&n->bed, 602 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "restartCount", runs[1].after_end);
}

/* Whether and how a pod ends follows from codes and policies of its containers. */
static void test_policies(void **state)
{
    struct nodes_bed *n = *state;
    static const struct {
        const char *annotations;
        const char *policy;
        const char *spec; /* further members */
        const char *phase;
        const char *restarts; /* of app */
    } rows[] = {
        /* app ends, other runs on for 60 s */
        {"'runs-for.tandem.dev/other':'60s'", "Never", "", "Running", "0"},
        {"'runs-for.tandem.dev/other':'5s'", "Never", "", "Succeeded", "0"},
        {"'exit-code.tandem.dev/other':'1'", "Never", "", "Failed", "0"},
        {"'exit-code.tandem.dev/app':'1','runs-for.tandem.dev/other':'60s'", "OnFailure", "",
         "Running", "1"},
        {"'exit-code.tandem.dev/other':'1'", "OnFailure", "", "Running", "0"},
        /* memory */
        {"'usage.tandem.dev/app':'1m,2Gi','runs-for.tandem.dev/other':'2s'", "Never", "", "Failed",
         "0"},
        {"'usage.tandem.dev/app':'1m,2Gi','runs-for.tandem.dev/other':'2s'", "OnFailure", "",
         "Running", "1"},
        /* an init container that fails */
        {"'exit-code.tandem.dev/first':'1'", "Never",
         ",'initContainers':[{'name':'first','image':'i'}]", "Failed", "0"},
        {"'exit-code.tandem.dev/first':'1'", "OnFailure",
         ",'initContainers':[{'name':'first','image':'i'}]", "Pending", "0"},
        {"'exit-code.tandem.dev/first':'1'", "Always",
         ",'initContainers':[{'name':'first','image':'i'}]", "Pending", "0"},
        /* a sidecar holds no pod back */
        {"", "Never", ",'initContainers':[{'name':'side','image':'i','restartPolicy':'Always'}]",
         "Succeeded", "0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[16];
        char spec[512];
        (void)snprintf(name, sizeof(name), "p-%zu", i);
        (void)snprintf(spec, sizeof(spec),
                       "'restartPolicy':'%s','containers':[{" APP ",'resources':{'limits':{"
                       "'memory':'1Gi'}}},{'name':'other','image':'i'}]%s",
                       rows[i].policy, rows[i].spec);
        kubelet_bed_post(n, name, rows[i].annotations, spec);
        bed_run(&n->bed, 7 * TD_SECOND + 500 * TD_MILLISECOND);
        if (strcmp(nodes_bed_pod_text(n, name, "status.phase"), rows[i].phase) != 0) {
            fail_msg("row %zu: %s", i, nodes_bed_pod_text(n, name, "status.phase"));
        }
        kubelet_bed_check(n, name, "app", "restartCount", rows[i].restarts);
    }
    kubelet_bed_check(n, "p-5", "app", "state.terminated.reason", "OOMKilled");
    kubelet_bed_check(n, "p-7", "first", "state.terminated.exitCode", "1");
    kubelet_bed_check(n, "p-8", "first", "restartCount", "2"); /* time has passed since */
    kubelet_bed_check(n, "p-10", "side", "state.terminated.exitCode", "0");
    /* What is over has left the engine. */
    assert_null(td_engine_find_pod(n->engine, TD_STR("n"), TD_STR("p-1")));
    assert_non_null(td_engine_find_pod(n->engine, TD_STR("n"), TD_STR("p-4")));
}

/* Ready after what the entry says, also when it was started again; probes can make it longer. */
static void test_ready_after_startup(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "slow", "", "'containers':[{" APP "}]");
    kubelet_bed_post(n, "probed", "",
                     "'containers':[{" APP ",'readinessProbe':{'tcpSocket':{'port':80},"
                     "'initialDelaySeconds':7}},{'name':'second','image':'i','startupProbe':{"
                     "'tcpSocket':{'port':80},'initialDelaySeconds':4}}]");
    static const struct {
        int at_ms;
        const char *pod;
        const char *container;
        const char *started;
        const char *ready;
    } rows[] = {
        {4900, "probed", "app", "true", "false"},   {4900, "probed", "second", "false", "false"},
        {5100, "probed", "second", "true", "true"}, {7900, "probed", "app", "true", "false"},
        {8100, "probed", "app", "true", "true"},    {8100, "slow", "app", "true", "false"},
        {20900, "slow", "app", "true", "false"},    {21100, "slow", "app", "true", "true"},
    };
    int now_ms = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].at_ms > now_ms) {
            bed_run(&n->bed, (rows[i].at_ms - now_ms) * TD_MILLISECOND);
        }
        now_ms = rows[i].at_ms;
        kubelet_bed_check(n, rows[i].pod, rows[i].container, "started", rows[i].started);
        kubelet_bed_check(n, rows[i].pod, rows[i].container, "ready", rows[i].ready);
    }
    kubelet_bed_condition(n, "slow", "Ready", "True", "");
    kubelet_bed_check(n, "slow", "app", "state.running.startedAt", "2023-11-14T22:13:21Z");
    assert_string_equal(
        edit_bed_condition(&n->bed, nodes_bed_pod(n, "slow"), "Ready", "lastTransitionTime"),
        "2023-11-14T22:13:41Z");
    /* Slow starts make it longer. */
    td_engine_slow_starts(n->engine, TD_STR("n"), TD_STR("Pod"), TD_STR("slow"), 2);
    kubelet_bed_annotate(n, "slow", "'exit-code.tandem.dev/app':'1'");
    assert_int_equal(td_edit_delete(n->bed.api, edit_bed_resource(&n->bed, "v1", "Pod"),
                                    TD_STR("n"), TD_STR("slow"), TD_STR_EMPTY, TD_STR_EMPTY, 0,
                                    NULL),
                     TD_OK);
    kubelet_bed_post(n, "slow", "", "'containers':[{" APP "}]");
    bed_run(&n->bed, 40 * TD_SECOND);
    kubelet_bed_check(n, "slow", "app", "ready", "false");
    bed_run(&n->bed, 2 * TD_SECOND);
    kubelet_bed_check(n, "slow", "app", "ready", "true");
}

/* A sidecar is started again for itself, whatever the pod's policy; who runs is not disturbed, and
 * the pod is not ready until it is back. */
static void test_sidecar_restarts(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p",
                     "'exit-code.tandem.dev/side':'2','runs-for.tandem.dev/side':'3s',"
                     "'runs-for.tandem.dev/app':'1h'",
                     "'restartPolicy':'Never','initContainers':[{'name':'side','image':'i',"
                     "'restartPolicy':'Always'}],'containers':[{" APP "}]");
    static const struct {
        int at_ms; /* side starts at 1 s */
        const char *restarts;
        const char *ready;
    } rows[] = {
        {3900, "0", "True"},   {4100, "1", "True"},  {7100, "1", "False"},
        {16900, "1", "False"}, {17100, "2", "True"}, {20100, "2", "False"},
    };
    int now_ms = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_run(&n->bed, (rows[i].at_ms - now_ms) * TD_MILLISECOND);
        now_ms = rows[i].at_ms;
        kubelet_bed_check(n, "p", "side", "restartCount", rows[i].restarts);
        assert_string_equal(edit_bed_condition(&n->bed, nodes_bed_pod(n, "p"), "Ready", "status"),
                            rows[i].ready);
        kubelet_bed_condition(n, "p", "Initialized", "True", "");
        kubelet_bed_check(n, "p", "app", "restartCount", "0");
        kubelet_bed_check(n, "p", "app", "ready", "true");
        assert_string_equal(nodes_bed_pod_text(n, "p", "status.phase"), "Running");
    }
}

/* A task is done when the engine says so, and its pod with it. */
static void test_tasks_finish(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "task", "", "'restartPolicy':'Never','containers':[{" APP "}]");
    bed_run(&n->bed, 42 * TD_SECOND + 900 * TD_MILLISECOND);
    assert_string_equal(nodes_bed_pod_text(n, "task", "status.phase"), "Running");
    bed_run(&n->bed, TD_SECOND);
    assert_string_equal(nodes_bed_pod_text(n, "task", "status.phase"), "Succeeded");
    kubelet_bed_check(n, "task", "app", "state.terminated.reason", "Completed");
    kubelet_bed_check(n, "task", "app", "state.terminated.finishedAt", "2023-11-14T22:14:03Z");
    assert_null(td_engine_find_pod(n->engine, TD_STR("n"), TD_STR("task")));
}

/* A pod's own limit counts for all its containers together: one of them is killed. */
static void test_out_of_memory_of_a_pod(void **state)
{
    struct nodes_bed *n = *state;
    kubelet_bed_post(n, "p", "'usage.tandem.dev/app':'1m,60Mi','usage.tandem.dev/other':'1m,30Mi'",
                     "'resources':{'limits':{'memory':'100Mi'}},'containers':[{" APP
                     "},{'name':'other','image':'i'}]");
    bed_run(&n->bed, 5 * TD_SECOND);
    kubelet_bed_check(n, "p", "app", "restartCount", "0");
    kubelet_bed_annotate(n, "p", "'usage.tandem.dev/other':'1m,41Mi'");
    bed_run(&n->bed, 5 * TD_SECOND);
    int kills = 0;
    static const char *const names[] = {"app", "other"};
    for (size_t i = 0; i < 2; i++) {
        kills += strcmp(kubelet_bed_status(n, "p", names[i], "lastState.terminated.reason"),
                        "OOMKilled") == 0;
    }
    assert_int_equal(kills, 1);
    assert_string_equal(nodes_bed_pod_text(n, "p", "status.phase"), "Running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_out_of_memory_at_the_exact_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restarts_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(test_policies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ready_after_startup, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sidecar_restarts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tasks_finish, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory_of_a_pod, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
