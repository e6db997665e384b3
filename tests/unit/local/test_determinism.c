/* On a virtual clock a cluster's whole history is a function of its inputs: every revision of every
 * object, in order, byte by byte, whatever the addresses and the hash keys of the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "base/str.h"
#include "local/api/api.h"
#include "local/cluster.h"
#include "local/nodes/node_object.h"
#include "local/store/observer.h"

#define RUNS 3
#define HISTORY_START 1767571200 /* a Monday */
#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_FACTOR UINT64_C(0x100000001b3)

#define POD(app, more)                                                                             \
    "\"template\":{\"metadata\":{\"labels\":{\"app\":\"" app "\"}},\"spec\":{" more                \
    "\"containers\":[{\"name\":\"c\",\"image\":\"a\",\"resources\":{\"requests\":{\"cpu\":"        \
    "\"500m\",\"memory\":\"256Mi\"}}}]}}"
#define SELECTOR(app) "\"selector\":{\"matchLabels\":{\"app\":\"" app "\"}},"

/* What happened, told apart by its bytes. */
struct history {
    uint64_t hash;
    uint64_t changes;
    uint64_t bytes;
};

struct run {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_cluster *cluster;
    struct history history;
    int status;
};

static void history_add(struct history *history, td_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        history->hash = (history->hash ^ (unsigned char)bytes.ptr[i]) * HASH_FACTOR;
    }
    history->bytes += bytes.len;
}

static void observe(const struct td_resource *resource, struct td_stored *before,
                    struct td_stored *after, void *context)
{
    struct run *run = context;
    const struct td_stored *stored = after ? after : before;
    if (td_str_equal(stored->name, TD_STR("kube-root-ca.crt"))) {
        return; /* certificates are new each time */
    }
    run->history.changes++;
    history_add(&run->history, resource->collection);
    history_add(&run->history, after ? TD_STR("=") : TD_STR("-"));
    history_add(&run->history, stored->json);
}

static void head(void *context, int status, const struct td_api_header *headers, size_t count)
{
    (void)headers;
    (void)count;
    *(int *)context = status;
}

static void body(void *context, td_str bytes, void (*release)(void *owner), void *owner)
{
    (void)context;
    (void)bytes;
    if (release) {
        release(owner);
    }
}

static bool is_full(void *context)
{
    (void)context;
    return false;
}

static void end(void *context)
{
    (void)context;
}

struct step {
    int64_t at_seconds;
    const char *method;
    const char *target;
    const char *body;
};

static void ask(struct run *run, const struct step *step)
{
    static const struct td_api_sink sink = {head, body, is_full, end};
    static const td_str groups[] = {TD_STR_INIT("system:masters")};
    bool is_patch = td_str_equal(td_str_from(step->method), TD_STR("PATCH"));
    const struct td_api_request request = {
        .method = td_str_from(step->method),
        .target = td_str_from(step->target),
        .accept = TD_STR("application/json"),
        .content_type = is_patch ? TD_STR("application/merge-patch+json") : TD_STR(""),
        .user_agent = TD_STR("test"),
        .body = td_str_from(step->body),
        .user = {.name = TD_STR("admin"), .groups = groups, .group_count = 1},
    };
    run->status = 0;
    (void)td_api_start(td_cluster_api(run->cluster), &request, &sink, &run->status);
    if (run->status / 100 != 2) {
        (void)fprintf(stderr, "%s %s: status %d\n", step->method, step->target, run->status);
        _Exit(3);
    }
}

static void stop(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

static void pass(struct run *run, td_duration until)
{
    struct td_timer *timer = td_timer_new(run->loop, stop, run->loop);
    td_timer_set(timer, until - td_clock_steady(&run->clock));
    (void)td_loop_run(run->loop, NULL);
    td_timer_free(timer);
}

#define APPS "/apis/apps/v1/namespaces/default/"
#define BATCH "/apis/batch/v1/namespaces/default/"

static const struct step steps[] = {
    {0, "POST", APPS "deployments",
     "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":12," SELECTOR("web")
         POD("web", "") "}}"},
    {0, "POST", APPS "statefulsets",
     "{\"metadata\":{\"name\":\"db\"},\"spec\":{\"replicas\":3,\"serviceName\":\"db\"," SELECTOR(
         "db") POD("db", "") "}}"},
    {0, "POST", APPS "daemonsets",
     "{\"metadata\":{\"name\":\"agent\"},\"spec\":{" SELECTOR("agent") POD("agent", "") "}}"},
    {1, "POST", BATCH "jobs",
     "{\"metadata\":{\"name\":\"load\"},\"spec\":{\"completions\":6,\"parallelism\":2," POD(
         "load", "\"restartPolicy\":\"Never\",") "}}"},
    {2, "POST", BATCH "cronjobs",
     "{\"metadata\":{\"name\":\"tick\"},\"spec\":{\"schedule\":\"*/5 * * * *\",\"jobTemplate\":{"
     "\"spec\":{" POD("tick", "\"restartPolicy\":\"OnFailure\",") "}}}}"},
    {60, "PATCH", APPS "deployments/web",
     "{\"spec\":{\"replicas\":20,\"template\":{\"metadata\":{\"annotations\":{\"v\":\"2\"}}}}}"},
    {90, "PATCH", APPS "deployments/web", "{\"spec\":{\"replicas\":5}}"},
    {120, "DELETE", "/api/v1/nodes/node-2", NULL},
    {150, "PATCH", APPS "statefulsets/db",
     "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"v\":\"2\"}}}}}"},
    {900, "DELETE", APPS "deployments/web", NULL},
    {1800, "DELETE", "/api/v1/namespaces/default/pods/db-0", NULL},
};

static struct history live(uint64_t seed)
{
    struct run run = {
        .clock = td_clock_virtual(HISTORY_START * TD_SECOND),
        .history = {.hash = HASH_START},
    };
    struct td_error err = TD_ERROR_INIT;
    const struct td_node_size nodes = td_node_size_usual(3);
    struct td_cluster_options options = {
        .name = TD_STR("test"), .seed = seed, .nodes = &nodes, .node_size_count = 1};
    if (td_loop_new(&run.clock, &run.loop, &err) != TD_OK) {
        _Exit(3);
    }
    options.loop = run.loop;
    if (td_cluster_new(&options, &run.cluster, &err) != TD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        _Exit(3);
    }
    struct td_observer *observer =
        td_observer_new(td_cluster_api(run.cluster), NULL, 0, observe, &run);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        pass(&run, steps[i].at_seconds * TD_SECOND);
        ask(&run, &steps[i]);
    }
    pass(&run, TD_HOUR);
    td_observer_free(observer);
    td_cluster_free(run.cluster);
    td_loop_free(run.loop);
    return run.history;
}

/* In a process of its own, which draws its own hash keys, with other addresses each time. */
static struct history live_apart(uint64_t seed, size_t shift)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < 1000 * shift; i++) {
            void *hole = malloc(16 + i * 37 % 4096);
            if (i % 3 != 0) {
                free(hole); /* the others stay: the heap is not the one of the other runs */
            }
        }
        struct history history = live(seed);
        _Exit(write(ends[1], &history, sizeof(history)) == (ssize_t)sizeof(history) ? 0 : 3);
    }
    (void)close(ends[1]);
    struct history history = {.hash = 0};
    assert_int_equal(read(ends[0], &history, sizeof(history)), sizeof(history));
    (void)close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return history;
}

static void test_cluster_history_follows_from_its_inputs(void **state)
{
    (void)state;
    struct history first = live_apart(7, 0);
    assert_true(first.changes > 500);
    for (size_t i = 1; i < RUNS; i++) {
        struct history again = live_apart(7, i);
        assert_int_equal(again.changes, first.changes);
        assert_int_equal(again.bytes, first.bytes);
        assert_true(again.hash == first.hash);
    }
}

/* Names and uids follow from the seed, or two clusters could not be told apart. */
static void test_cluster_history_differs_with_the_seed(void **state)
{
    (void)state;
    assert_true(live_apart(7, 0).hash != live_apart(8, 0).hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_history_follows_from_its_inputs),
        cmocka_unit_test(test_cluster_history_differs_with_the_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
