/* A whole local cluster in virtual time: what a simulated day costs with 100 to 10,000 pods in
 * workloads of five, and its exponent; the same with rollouts through the day; memory; and how fast
 * it ends. Every figure is measured in a process of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "base/str.h"
#include "local/api/api.h"
#include "local/cluster.h"
#include "local/engine/demand.h"
#include "local/nodes/node_object.h"
#include "local/store/store.h"

#define WORKLOAD_PODS 5
#define NODE_PODS 64 /* of 8 CPUs: 80 pods of 100m would fit */
#define NAME_BYTES 32
#define DAY_START 1767571200 /* a Monday, 2026-01-05 */
#define TEMPLATE                                                                                   \
    "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web-%zu\","      \
    "\"namespace\":\"default\",\"labels\":{\"app\":\"web-%zu\"}},\"spec\":{\"replicas\":%d,"       \
    "\"selector\":{\"matchLabels\":{\"app\":\"web-%zu\"}},\"template\":{\"metadata\":{"            \
    "\"labels\":{\"app\":\"web-%zu\"}},\"spec\":{\"containers\":[{\"name\":\"web\","               \
    "\"image\":\"web:1\",\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"},"     \
    "\"limits\":{\"cpu\":\"500m\",\"memory\":\"256Mi\"}}}]}}}}"
#define ROLLOUT "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"rolled\":\"%zu\"}}}}}"

struct figures {
    double up;            /* seconds until every pod is ready */
    double day;           /* seconds of one simulated day, with the bringing up */
    double free;          /* seconds to take it down */
    double resident;      /* MiB at its most */
    unsigned long writes; /* versions of the store */
};

struct run {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_cluster *cluster;
    struct td_timer *timer;
    size_t workload_count;
    size_t rolled; /* workloads that were rolled out */
    td_duration roll_every;
    int status; /* of the last answer */
};

/* Of this core alone: others on the machine do not count. */
static double cpu_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void must(int code, const struct td_error *err)
{
    if (code < 0) {
        (void)fprintf(stderr, "bench_local: %s\n", err->message);
        _Exit(2);
    }
}

static void answer_head(void *context, int status, const struct td_api_header *headers,
                        size_t count)
{
    (void)headers;
    (void)count;
    *(int *)context = status;
}

static void answer_body(void *context, td_str bytes, void (*release)(void *owner), void *owner)
{
    (void)context;
    (void)bytes;
    if (release) {
        release(owner);
    }
}

static bool answer_is_full(void *context)
{
    (void)context;
    return false;
}

static void answer_end(void *context)
{
    (void)context;
}

static void ask(struct run *run, const char *method, const char *target, const char *type,
                const char *body)
{
    static const struct td_api_sink sink = {answer_head, answer_body, answer_is_full, answer_end};
    static const td_str groups[] = {TD_STR_INIT("system:masters")};
    const struct td_api_request request = {
        .method = td_str_from(method),
        .target = td_str_from(target),
        .accept = TD_STR("application/json"),
        .content_type = td_str_from(type),
        .user_agent = TD_STR("bench"),
        .body = td_str_from(body),
        .user = {.name = TD_STR("admin"), .groups = groups, .group_count = 1},
    };
    run->status = 0;
    (void)td_api_start(td_cluster_api(run->cluster), &request, &sink, &run->status);
    if (run->status / 100 != 2) {
        (void)fprintf(stderr, "bench_local: %s %s: status %d\n", method, target, run->status);
        _Exit(2);
    }
}

static void bring_up(struct run *run)
{
    char body[2048];
    for (size_t i = 0; i < run->workload_count; i++) {
        (void)snprintf(body, sizeof(body), TEMPLATE, i, i, WORKLOAD_PODS, i, i);
        ask(run, "POST", "/apis/apps/v1/namespaces/default/deployments", "application/json", body);
    }
}

static void stop(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

static void pass(struct run *run, td_duration span)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_timer *timer = td_timer_new(run->loop, stop, run->loop);
    td_timer_set(timer, span);
    must(td_loop_run(run->loop, &err), &err);
    td_timer_free(timer);
}

/* One workload after the other gets a new template. */
static void roll(struct td_timer *timer, void *context)
{
    struct run *run = context;
    char target[128];
    char body[256];
    (void)snprintf(target, sizeof(target), "/apis/apps/v1/namespaces/default/deployments/web-%zu",
                   run->rolled % run->workload_count);
    (void)snprintf(body, sizeof(body), ROLLOUT, run->rolled);
    ask(run, "PATCH", target, "application/merge-patch+json", body);
    run->rolled++;
    td_timer_set(timer, run->roll_every);
}

/* So that a figure of a cluster that stands still for a fault of ours is not one. */
static void check_ready(const struct run *run)
{
    const struct td_collection *pods =
        td_store_find(td_api_store(td_cluster_api(run->cluster)), TD_STR("pods"));
    struct td_collection_iter iter;
    const struct td_stored *pod;
    size_t ready = 0;
    iter = td_collection_walk(pods, TD_STR_EMPTY);
    while ((pod = td_collection_iter_next(&iter))) {
        ready += memmem(pod->json.ptr, pod->json.len, "\"ready\":true", 12) ? 1 : 0;
    }
    td_collection_iter_done(&iter);
    if (ready < run->workload_count * WORKLOAD_PODS) {
        (void)fprintf(stderr, "bench_local: %zu pods of %zu are ready\n", ready,
                      run->workload_count * WORKLOAD_PODS);
        _Exit(2);
    }
}

/* A closed loop of requests for each workload, busiest at different hours. */
static struct td_demand *make_demands(size_t count)
{
    struct td_demand *demands = calloc(count, sizeof(*demands));
    char *names = calloc(count, NAME_BYTES);
    if (!demands || !names) {
        _Exit(2);
    }
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names + NAME_BYTES * i, NAME_BYTES, "web-%zu", i);
        demands[i] = (struct td_demand){
            .ns = TD_STR("default"),
            .kind = TD_STR("Deployment"),
            .name = td_str_from(names + NAME_BYTES * i),
            .seed = i,
            .driver = TD_DEMAND_REQUESTS,
            .requests = {.shape = TD_SERIES_DAY,
                         .low = 5,
                         .high = 25,
                         .peak_at = (td_duration)(i % 24) * TD_HOUR,
                         .weekend = 1,
                         .noise = 0.05},
            .request_cpu_ms = 20,
            .request_memory_bytes = 1 << 20,
            .idle_cpu_milli = 5,
            .idle_memory_bytes = 64 << 20,
            .startup_time = 10 * TD_SECOND,
            .startup_cpu_milli = 300,
            .warmup_factor = 1,
        };
    }
    return demands;
}

static struct figures measure(size_t pod_count, size_t rollouts)
{
    struct td_error err = TD_ERROR_INIT;
    struct run run = {
        .clock = td_clock_virtual(DAY_START * TD_SECOND),
        .workload_count = pod_count / WORKLOAD_PODS,
        .roll_every = rollouts > 0 ? 23 * TD_HOUR / (td_duration)rollouts : 0,
    };
    must(td_loop_new(&run.clock, &run.loop, &err), &err);
    const struct td_node_size nodes =
        td_node_size_usual((int64_t)(pod_count + NODE_PODS - 1) / NODE_PODS);
    const struct td_cluster_options options = {
        .loop = run.loop,
        .name = TD_STR("bench"),
        .seed = 1,
        .nodes = &nodes,
        .node_size_count = 1,
        .demands = make_demands(run.workload_count),
        .demand_count = run.workload_count,
    };
    must(td_cluster_new(&options, &run.cluster, &err), &err);
    struct figures figures = {.up = 0};
    double begin = cpu_seconds();
    bring_up(&run);
    pass(&run, 5 * TD_MINUTE);
    figures.up = cpu_seconds() - begin;
    check_ready(&run);
    run.timer = td_timer_new(run.loop, roll, &run);
    if (run.roll_every > 0) {
        td_timer_set(run.timer, run.roll_every);
    }
    pass(&run, 24 * TD_HOUR - 5 * TD_MINUTE);
    figures.day = cpu_seconds() - begin;
    check_ready(&run);
    figures.writes = td_store_version(td_api_store(td_cluster_api(run.cluster)));
    td_timer_free(run.timer);
    begin = cpu_seconds();
    td_cluster_free(run.cluster);
    td_loop_free(run.loop);
    figures.free = cpu_seconds() - begin;
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    figures.resident = (double)usage.ru_maxrss / 1024;
    return figures;
}

static struct figures measure_apart(size_t pod_count, size_t rollouts)
{
    int ends[2];
    if (pipe(ends) != 0) {
        _Exit(2);
    }
    pid_t child = fork();
    if (child == 0) {
        struct figures figures = measure(pod_count, rollouts);
        _Exit(write(ends[1], &figures, sizeof(figures)) == (ssize_t)sizeof(figures) ? 0 : 2);
    }
    (void)close(ends[1]);
    struct figures figures = {.up = 0};
    bool is_read = read(ends[0], &figures, sizeof(figures)) == (ssize_t)sizeof(figures);
    (void)close(ends[0]);
    int status = 0;
    (void)waitpid(child, &status, 0);
    if (!is_read || status != 0) {
        (void)fprintf(stderr, "bench_local: %zu pods: the run failed\n", pod_count);
        _Exit(2);
    }
    return figures;
}

static void report(const char *name, const struct figures *figures)
{
    printf("bench local_%s_up %.3f s\n", name, figures->up);
    printf("bench local_%s_day %.3f s\n", name, figures->day);
    printf("bench local_%s_free %.1f ms\n", name, figures->free * 1e3);
    printf("bench local_%s_resident %.1f MiB\n", name, figures->resident);
    printf("bench local_%s_writes %lu writes\n", name, figures->writes);
    (void)fflush(stdout);
}

/* Slope of the best straight line through the logarithms. */
static double exponent(const size_t *counts, const double *costs, size_t count)
{
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;
    double n = (double)count;
    for (size_t i = 0; i < count; i++) {
        double a = log((double)counts[i]);
        double b = log(costs[i]);
        x += a;
        y += b;
        xx += a * a;
        xy += a * b;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}

/* With arguments: one run, of so many pods and rollouts. */
int main(int argc, char **argv)
{
    if (argc > 1) {
        struct figures figures =
            measure(strtoul(argv[1], NULL, 10), argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
        report(argv[1], &figures);
        return 0;
    }
    static const size_t counts[] = {100, 1000, 10000};
    double costs[3];
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        struct figures figures = measure_apart(counts[i], 0);
        (void)snprintf(name, sizeof(name), "%zu", counts[i]);
        report(name, &figures);
        costs[i] = figures.day;
    }
    printf("bench local_exponent %.2f power\n", exponent(counts, costs, 3));
    struct figures figures = measure_apart(5000, 0);
    report("5000", &figures);
    figures = measure_apart(5000, 2000);
    report("5000_churn", &figures);
    return 0;
}
