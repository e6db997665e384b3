/* The engine in virtual time: what a tick costs a container, with the shapes of demand that cost
 * most (days with noise, requests shared by pods), at several sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "local/engine/engine.h"

#define PODS_OF_WORKLOAD 5
#define PODS_OF_NODE 50
#define CONTAINER_TICKS 20000000 /* about, of one run */

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_engine *engine;
    struct td_demand *demands;
    char (*names)[24];
};

static void bed_end(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(context);
}

static void bed_demand(struct bed *bed, size_t i)
{
    (void)snprintf(bed->names[i], sizeof(bed->names[i]), "workload-%zu", i);
    struct td_demand *demand = &bed->demands[i];
    const struct td_series day = {
        .shape = TD_SERIES_DAY, .low = 100, .high = 900, .peak_at = 14 * TD_HOUR, .noise = 0.05};
    *demand = (struct td_demand){.ns = TD_STR("shop"),
                                 .kind = TD_STR("Deployment"),
                                 .name = td_str_from(bed->names[i]),
                                 .seed = i,
                                 .cpu = day,
                                 .memory = day,
                                 .requests = day,
                                 .request_cpu_ms = 4,
                                 .request_memory_bytes = 1000,
                                 .idle_memory_bytes = 1e8};
    demand->driver = i % 2 ? TD_DEMAND_REQUESTS : TD_DEMAND_PER_POD;
}

static void bed_add_pod(struct bed *bed, size_t i)
{
    char name[32];
    char node[32];
    (void)snprintf(name, sizeof(name), "pod-%zu", i);
    (void)snprintf(node, sizeof(node), "node-%zu", i / PODS_OF_NODE);
    const struct td_engine_node there = {
        .name = td_str_from(node), .cpu_milli = 16000, .memory_bytes = 6.4e10};
    td_engine_set_node(bed->engine, &there);
    const struct td_engine_pod_spec pod = {
        .node = there.name,
        .ns = TD_STR("shop"),
        .name = td_str_from(name),
        .workload_kind = TD_STR("Deployment"),
        .workload_name = bed->demands[i / PODS_OF_WORKLOAD].name,
    };
    const struct td_engine_spec container = {.name = TD_STR("main"),
                                             .is_first = true,
                                             .limits = {.cpu_request_milli = 300,
                                                        .cpu_limit_milli = 800,
                                                        .memory_limit_bytes = 1 << 30}};
    td_engine_set_ready(td_engine_start(td_engine_add_pod(bed->engine, &pod), &container), true);
}

static void bed_remove_pod(struct bed *bed, size_t i)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "pod-%zu", i);
    td_engine_remove_pod(td_engine_find_pod(bed->engine, TD_STR("shop"), td_str_from(name)));
}

/* Nanoseconds of one container in one tick. */
static double bench_steps(size_t pods)
{
    struct td_error err = TD_ERROR_INIT;
    size_t workloads = pods / PODS_OF_WORKLOAD;
    struct bed bed = {.clock = td_clock_virtual(0)};
    if (td_loop_new(&bed.clock, &bed.loop, &err) != TD_OK) {
        (void)fprintf(stderr, "bench_engine: %s\n", err.message);
        _Exit(2);
    }
    bed.demands = calloc(workloads, sizeof(*bed.demands));
    bed.names = calloc(workloads, sizeof(*bed.names));
    if (!bed.demands || !bed.names) {
        _Exit(2);
    }
    for (size_t i = 0; i < workloads; i++) {
        bed_demand(&bed, i);
    }
    const struct td_engine_options options = {
        .loop = bed.loop, .demands = bed.demands, .demand_count = workloads};
    bed.engine = td_engine_new(&options);
    for (size_t i = 0; i < pods; i++) {
        bed_add_pod(&bed, i);
    }
    size_t ticks = CONTAINER_TICKS / pods;
    struct td_timer *end = td_timer_new(bed.loop, bed_end, bed.loop);
    td_timer_set(end, (td_duration)ticks * 5 * TD_SECOND + 1);
    clock_t begin = clock(); /* of this process: others may be busy */
    if (td_loop_run(bed.loop, &err) != TD_OK) {
        _Exit(2);
    }
    double spent = (double)(clock() - begin) * 1e9 / CLOCKS_PER_SEC;
    for (size_t i = 0; i < pods; i++) {
        bed_remove_pod(&bed, i);
    }
    td_timer_free(end);
    td_engine_free(bed.engine);
    td_loop_free(bed.loop);
    free(bed.demands);
    free(bed.names);
    return spent / (double)(ticks * pods);
}

int main(void)
{
    printf("bench engine_step_500_ns %.1f ns\n", bench_steps(500));
    printf("bench engine_step_50000_ns %.1f ns\n", bench_steps(50000));
    printf("bench engine_step_ns %.1f ns\n", bench_steps(5000));
    return 0;
}
