/*
 * The engine in virtual time: containers with demand on nodes, where the answer can be worked out
 * by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/os/loop.h"
#include "local/engine/engine.h"

#define MEBI 1048576.0

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_engine *engine;
    struct td_timer *end;
    td_duration kill_at[8];
    size_t kill_count;
    td_duration done_at[8];
    size_t done_count;
    size_t press_count;
    double available;
    bool restarts;
};

static void bed_killed(void *context, struct td_engine_container *container)
{
    struct bed *bed = context;
    assert_true(bed->kill_count < 8);
    bed->kill_at[bed->kill_count++] = td_engine_since(bed->engine);
    struct td_engine_pod *pod = td_engine_pod(container);
    if (bed->restarts) {
        const struct td_engine_spec again = {.name = TD_STR("main"), .is_first = true};
        td_engine_stop(container);
        assert_non_null(td_engine_start(pod, &again));
    } else {
        td_engine_remove_pod(pod);
    }
}

static void bed_finished(void *context, struct td_engine_container *container)
{
    struct bed *bed = context;
    assert_true(bed->done_count < 8);
    bed->done_at[bed->done_count++] = td_engine_since(bed->engine);
    td_engine_stop(container);
}

static void bed_pressed(void *context, td_str node, double available_bytes)
{
    struct bed *bed = context;
    assert_true(td_str_equal(node, TD_STR("n1")));
    bed->press_count++;
    bed->available = available_bytes;
}

static void bed_end(struct td_timer *timer, void *context)
{
    (void)timer;
    td_loop_stop(((struct bed *)context)->loop);
}

static void bed_open(struct bed *bed, const struct td_demand *demands, size_t count)
{
    struct td_error err = TD_ERROR_INIT;
    *bed = (struct bed){.clock = td_clock_virtual(0)};
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, &err), TD_OK);
    const struct td_engine_options options = {
        .loop = bed->loop, .demands = demands, .demand_count = count};
    bed->engine = td_engine_new(&options);
    const struct td_engine_events events = {
        .killed = bed_killed, .finished = bed_finished, .pressed = bed_pressed};
    td_engine_set_events(bed->engine, &events, bed);
    const struct td_engine_node node = {
        .name = TD_STR("n1"), .cpu_milli = 8000, .memory_bytes = 32768 * MEBI};
    td_engine_set_node(bed->engine, &node);
    bed->end = td_timer_new(bed->loop, bed_end, bed);
}

static void bed_close(struct bed *bed)
{
    td_engine_free(bed->engine);
    td_timer_free(bed->end);
    td_loop_free(bed->loop);
}

/* Until that time since the start, with all that is due then. */
static void bed_run(struct bed *bed, td_duration until)
{
    struct td_error err = TD_ERROR_INIT;
    td_timer_set(bed->end, until - td_engine_since(bed->engine));
    assert_int_equal(td_loop_run(bed->loop, &err), TD_OK);
    td_timer_set(bed->end, 0); /* behind the engine's timer */
    assert_int_equal(td_loop_run(bed->loop, &err), TD_OK);
}

static struct td_engine_pod *bed_pod(struct bed *bed, const char *name)
{
    const struct td_engine_pod_spec spec = {
        .node = TD_STR("n1"),
        .ns = TD_STR("shop"),
        .name = td_str_from(name),
        .workload_kind = TD_STR("Deployment"),
        .workload_name = TD_STR("web"),
    };
    return td_engine_add_pod(bed->engine, &spec);
}

static struct td_engine_container *bed_start(struct bed *bed, const char *name,
                                             struct td_engine_limits limits)
{
    struct td_engine_pod *pod = bed_pod(bed, name);
    assert_non_null(pod);
    const struct td_engine_spec spec = {.name = TD_STR("main"), .is_first = true, .limits = limits};
    return td_engine_start(pod, &spec);
}

static void bed_remove(struct bed *bed, const char *name)
{
    td_engine_remove_pod(td_engine_find_pod(bed->engine, TD_STR("shop"), td_str_from(name)));
}

static struct td_demand demand_of(enum td_demand_driver driver)
{
    return (struct td_demand){.ns = TD_STR("shop"),
                              .kind = TD_STR("Deployment"),
                              .name = TD_STR("web"),
                              .driver = driver};
}

static void assert_near(double got, double expected)
{
    double slack = 1e-9 * (expected > 0 ? expected : -expected) + 1e-12;
    if (got < expected - slack || got > expected + slack) {
        fail_msg("%.17g is not %.17g", got, expected);
    }
}

/* Steps that fall between ticks are exact: 7 s of 500m, 6.5 s of 2500m against 1000m, then 200m. */
static void test_engine_settles_at_steps_between_ticks(void **state)
{
    (void)state;
    struct bed bed;
    const struct td_series_point points[] = {{.at = 7 * TD_SECOND, .value = 2500},
                                             {.at = 13500 * TD_MILLISECOND, .value = 200}};
    struct td_demand demand = demand_of(TD_DEMAND_PER_POD);
    demand.cpu = (struct td_series){
        .shape = TD_SERIES_STEPS, .low = 500, .points = points, .point_count = 2};
    bed_open(&bed, &demand, 1);
    struct td_engine_container *c =
        bed_start(&bed, "a", (struct td_engine_limits){.cpu_limit_milli = 1000});
    bed_run(&bed, 20 * TD_SECOND);
    const struct td_body *body = td_engine_body(c);
    assert_near(body->throttled_cpu_seconds, 1.5 * 6.5);
    assert_near(body->used_cpu_seconds, 0.5 * 7 + 1.0 * 6.5 + 0.2 * 6.5);
    bed_remove(&bed, "a");
    bed_close(&bed);
}

/* A queue that all pods share drains in backlog / (capacity - arrivals). */
static void test_engine_drains_a_queue(void **state)
{
    (void)state;
    struct bed bed;
    const struct td_series_point points[] = {{.at = 60 * TD_SECOND, .value = 50}};
    struct td_demand demand = demand_of(TD_DEMAND_REQUESTS);
    demand.requests = (struct td_series){
        .shape = TD_SERIES_STEPS, .low = 300, .points = points, .point_count = 1};
    demand.request_cpu_ms = 10;
    demand.is_carried_over = true;
    bed_open(&bed, &demand, 1);
    struct td_engine_container *c =
        bed_start(&bed, "a", (struct td_engine_limits){.cpu_limit_milli = 1000});
    td_engine_set_ready(c, true);
    bed_run(&bed, 60 * TD_SECOND);
    struct td_engine_flow flow;
    assert_true(td_engine_flow(bed.engine, 0, &flow));
    assert_near(flow.waiting, 200 * 60); /* a pod answers 100 a second */
    assert_near(flow.served_per_second, 100);
    bed_run(&bed, 90 * TD_SECOND);
    assert_true(td_engine_flow(bed.engine, 0, &flow));
    assert_near(flow.waiting, 12000 - 50 * 30);
    struct td_engine_container *d =
        bed_start(&bed, "b", (struct td_engine_limits){.cpu_limit_milli = 1000});
    td_engine_set_ready(d, true);
    bed_run(&bed, 155 * TD_SECOND);
    assert_true(td_engine_flow(bed.engine, 0, &flow));
    assert_near(flow.waiting, 10500 - 150 * 65);
    bed_run(&bed, 160 * TD_SECOND); /* 10500 / 150 = 70 s after the second pod came */
    assert_true(td_engine_flow(bed.engine, 0, &flow));
    assert_near(flow.waiting, 0);
    assert_near(flow.dropped, 0);
    bed_remove(&bed, "a");
    bed_remove(&bed, "b");
    bed_close(&bed);
}

/* Limit 100Mi, 40Mi at the start, 60Mi an hour: the limit is met after an hour and passed in the
 * next tick. */
static void test_engine_kills_a_leak_when_it_passes_the_limit(void **state)
{
    (void)state;
    struct bed bed;
    struct td_demand demand = demand_of(TD_DEMAND_PER_POD);
    demand.idle_memory_bytes = 40 * MEBI;
    demand.leak_bytes_per_hour = 60 * MEBI;
    bed_open(&bed, &demand, 1);
    (void)bed_start(&bed, "a", (struct td_engine_limits){.memory_limit_bytes = 100 << 20});
    bed_run(&bed, 2 * TD_HOUR);
    assert_int_equal(bed.kill_count, 1);
    assert_int_equal(bed.kill_at[0], TD_HOUR + 5 * TD_SECOND);
    size_t position = 0;
    struct td_engine_workload row;
    assert_true(td_engine_next_workload(bed.engine, &position, &row));
    assert_int_equal(row.kill_count, 1);
    assert_int_equal(row.pod_count, 0);
    assert_false(td_engine_next_workload(bed.engine, &position, &row));
    bed_close(&bed);
}

/* A step of memory one byte above the limit kills at its moment, between ticks; the owner may start
 * another inside the callback. */
static void test_engine_kills_at_a_jump_and_restarts(void **state)
{
    (void)state;
    struct bed bed;
    const struct td_series_point points[] = {{.at = 7 * TD_SECOND, .value = 1000},
                                             {.at = 13 * TD_SECOND, .value = 1001},
                                             {.at = 14 * TD_SECOND, .value = 10}};
    struct td_demand demand = demand_of(TD_DEMAND_PER_POD);
    demand.memory =
        (struct td_series){.shape = TD_SERIES_STEPS, .low = 10, .points = points, .point_count = 3};
    bed_open(&bed, &demand, 1);
    bed.restarts = true;
    (void)bed_start(&bed, "a", (struct td_engine_limits){.memory_limit_bytes = 1000});
    bed_run(&bed, 30 * TD_SECOND);
    assert_int_equal(bed.kill_count, 1);
    assert_int_equal(bed.kill_at[0], 13 * TD_SECOND);
    bed_remove(&bed, "a");
    bed_close(&bed);
}

/* Start-up cpu for 12 s, then work that costs double at first and falls to its price in 20 s: twice
 * the price at the start is one and a half on average. */
static void test_engine_starts_and_warms_up(void **state)
{
    (void)state;
    struct bed bed;
    struct td_demand demand = demand_of(TD_DEMAND_PER_POD);
    demand.cpu = (struct td_series){.shape = TD_SERIES_CONSTANT, .low = 400};
    demand.startup_time = 12 * TD_SECOND;
    demand.startup_cpu_milli = 1000;
    demand.warmup_time = 20 * TD_SECOND;
    demand.warmup_factor = 2;
    bed_open(&bed, &demand, 1);
    struct td_engine_container *c = bed_start(&bed, "a", (struct td_engine_limits){0});
    assert_int_equal(td_engine_startup(c), 12 * TD_SECOND);
    bed_run(&bed, 12 * TD_SECOND);
    td_engine_set_ready(c, true);
    assert_near(td_engine_body(c)->used_cpu_seconds, 12);
    bed_run(&bed, 60 * TD_SECOND);
    assert_near(td_engine_body(c)->used_cpu_seconds, 12 + 0.4 * 1.5 * 20 + 0.4 * 28);
    td_engine_slow_starts(bed.engine, TD_STR("shop"), TD_STR("Deployment"), TD_STR("web"), 3);
    struct td_engine_container *slow = bed_start(&bed, "b", (struct td_engine_limits){0});
    assert_int_equal(td_engine_startup(slow), 36 * TD_SECOND);
    bed_remove(&bed, "a");
    bed_remove(&bed, "b");
    bed_close(&bed);
}

/* A task is done after its time, at that moment. */
static void test_engine_finishes_tasks(void **state)
{
    (void)state;
    struct bed bed;
    struct td_demand demand = demand_of(TD_DEMAND_RUN);
    demand.cpu = (struct td_series){.shape = TD_SERIES_CONSTANT, .low = 1000};
    demand.run_time = 93 * TD_SECOND;
    bed_open(&bed, &demand, 1);
    assert_true(td_engine_is_task(bed_start(&bed, "a", (struct td_engine_limits){0})));
    bed_run(&bed, 200 * TD_SECOND);
    assert_int_equal(bed.done_count, 1);
    assert_int_equal(bed.done_at[0], 93 * TD_SECOND);
    size_t position = 0;
    struct td_engine_workload row;
    assert_true(td_engine_next_workload(bed.engine, &position, &row));
    assert_near(row.totals.used_cpu_seconds, 93);
    bed_remove(&bed, "a");
    bed_close(&bed);
}

/* The first sample is of a whole window, and it is told when it is old enough. */
static void test_engine_samples_whole_windows(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed, NULL, 0);
    bed_run(&bed, 4 * TD_SECOND);
    struct td_engine_pod *pod = bed_pod(&bed, "a");
    const struct td_engine_spec spec = {
        .name = TD_STR("main"), .has_fixed = true, .fixed = {.cpu_milli = 250, .memory_bytes = 7}};
    struct td_engine_container *c = td_engine_start(pod, &spec);
    struct td_engine_sample sample;
    bed_run(&bed, 29 * TD_SECOND);
    assert_false(td_engine_sample(c, &sample));
    bed_run(&bed, 30 * TD_SECOND);
    assert_true(td_engine_sample(c, &sample));
    assert_int_equal(sample.window, 15 * TD_SECOND);
    assert_near(sample.cpu_milli, 250);
    assert_near(sample.memory_bytes, 7);
    assert_null(bed_pod(&bed, "a")); /* one of a name */
    bed_remove(&bed, "a");
    bed_close(&bed);
}

/* Everything a stream was sent was served, waits or was dropped, with and without pods, and what a
 * node gives is never above what it has. */
static void test_engine_conserves_work(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    struct bed bed;
    struct td_demand demand = demand_of(TD_DEMAND_REQUESTS);
    demand.requests = (struct td_series){.shape = TD_SERIES_CONSTANT, .low = 700};
    demand.request_cpu_ms = 10;
    demand.is_carried_over = true;
    bed_open(&bed, &demand, 1);
    const struct td_engine_node small = {.name = TD_STR("n1"), .cpu_milli = 3000};
    td_engine_set_node(bed.engine, &small);
    uint64_t random = 7;
    struct td_engine_container *running[6] = {NULL};
    td_duration now = 0;
    for (int i = 0; i < 400; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t k = (size_t)(random >> 33) % 6;
        int64_t limit = 500 + (int64_t)(random >> 50) % 1500;
        const struct td_engine_limits limits = {.cpu_request_milli = limit / 2,
                                                .cpu_limit_milli = limit};
        if (!running[k]) {
            running[k] = bed_start(&bed, names[k], limits);
            td_engine_set_ready(running[k], true);
        } else if ((random >> 40) % 3 == 0) {
            td_engine_resize(running[k], &limits);
        } else {
            bed_remove(&bed, names[k]);
            running[k] = NULL;
        }
        now += (td_duration)(random >> 45) % (8 * TD_SECOND);
        bed_run(&bed, now);
        struct td_want use;
        assert_true(td_engine_node_use(bed.engine, TD_STR("n1"), &use));
        assert_true(use.cpu_milli <= 3000 * (1 + 1e-9));
    }
    now = now - now % (5 * TD_SECOND) + 5 * TD_SECOND;
    bed_run(&bed, now);
    size_t position = 0;
    struct td_engine_workload row;
    struct td_engine_flow flow;
    assert_true(td_engine_next_workload(bed.engine, &position, &row));
    assert_true(td_engine_flow(bed.engine, 0, &flow));
    double sent = 700 * ((double)now / (double)TD_SECOND);
    assert_near(row.totals.used_cpu_seconds * 100 + flow.waiting, sent);
    for (size_t k = 0; k < 6; k++) {
        if (running[k]) {
            bed_remove(&bed, names[k]);
        }
    }
    bed_close(&bed);
}

/* Requests by weight of the role; another entry is sent two for each one served; an answer takes
 * s / (1 - rho). */
static void test_engine_sends_requests_on_and_tells_latency(void **state)
{
    (void)state;
    struct bed bed;
    const struct td_demand_role roles[] = {{.value = TD_STR_INIT("hot"), .weight = 3}};
    struct td_demand demands[] = {demand_of(TD_DEMAND_REQUESTS), demand_of(TD_DEMAND_REQUESTS)};
    demands[0].requests = (struct td_series){.shape = TD_SERIES_CONSTANT, .low = 40};
    demands[0].request_cpu_ms = 10;
    demands[0].role_label = TD_STR("shard");
    demands[0].roles = roles;
    demands[0].role_count = 1;
    demands[1].name = TD_STR("db");
    demands[1].has_source = true;
    demands[1].source_times = 2;
    bed_open(&bed, demands, 2);
    const struct td_engine_limits limits = {.cpu_limit_milli = 600};
    struct td_engine_container *hot = bed_start(&bed, "a", limits);
    struct td_engine_container *cold = bed_start(&bed, "b", limits);
    td_engine_set_role(td_engine_pod(hot), TD_STR("hot"));
    td_engine_set_ready(hot, true);
    td_engine_set_ready(cold, true);
    bed_run(&bed, 15 * TD_SECOND);
    assert_near(td_engine_body(hot)->cpu_milli, 300);
    assert_near(td_engine_body(cold)->cpu_milli, 100);
    struct td_engine_sample sample;
    assert_true(td_engine_sample(hot, &sample));
    assert_true(sample.has_requests);
    assert_near(sample.requests_per_second, 30);
    assert_near(sample.latency_seconds, 10.0 / 600 / (1 - 0.5));
    struct td_engine_flow flow;
    assert_true(td_engine_flow(bed.engine, 1, &flow));
    assert_near(flow.served_per_second, 0);
    assert_true(flow.dropped > 0); /* no pod is ready */
    assert_false(td_engine_flow(bed.engine, 2, &flow));
    assert_true(td_str_equal(
        td_engine_role_label(bed.engine, TD_STR("shop"), TD_STR("Deployment"), TD_STR("web")),
        TD_STR("shard")));
    bed_remove(&bed, "a");
    bed_remove(&bed, "b");
    bed_close(&bed);
}

/* Too little memory left is told each tick, and only then. */
static void test_engine_tells_pressure(void **state)
{
    (void)state;
    struct bed bed;
    struct td_demand demand = demand_of(TD_DEMAND_PER_POD);
    demand.memory = (struct td_series){.shape = TD_SERIES_CONSTANT, .low = 950};
    bed_open(&bed, &demand, 1);
    struct td_engine_node node = {
        .name = TD_STR("n1"), .cpu_milli = 1000, .memory_bytes = 1000, .available_min = 50};
    td_engine_set_node(bed.engine, &node);
    (void)bed_start(&bed, "a", (struct td_engine_limits){0});
    bed_run(&bed, 20 * TD_SECOND);
    assert_int_equal(bed.press_count, 0);
    node.available_min = 51;
    td_engine_set_node(bed.engine, &node);
    bed_run(&bed, 30 * TD_SECOND);
    assert_int_equal(bed.press_count, 2);
    assert_near(bed.available, 50);
    bed_remove(&bed, "a");
    bed_close(&bed);
}

/* A sample is told when it is as old as the lag, and the next one not before. */
static void test_engine_tells_samples_late(void **state)
{
    (void)state;
    struct bed bed;
    struct td_error err = TD_ERROR_INIT;
    bed = (struct bed){.clock = td_clock_virtual(0)};
    assert_int_equal(td_loop_new(&bed.clock, &bed.loop, &err), TD_OK);
    const struct td_engine_options options = {.loop = bed.loop, .metrics_lag = 20 * TD_SECOND};
    bed.engine = td_engine_new(&options);
    bed.end = td_timer_new(bed.loop, bed_end, &bed);
    const struct td_engine_node node = {.name = TD_STR("n1"), .cpu_milli = 1000};
    td_engine_set_node(bed.engine, &node);
    struct td_engine_container *c = bed_start(&bed, "a", (struct td_engine_limits){0});
    const struct {
        td_duration at;
        td_time reported; /* 0: nothing */
    } rows[] = {
        {34 * TD_SECOND, 0},
        {35 * TD_SECOND, 15 * TD_SECOND},
        {49 * TD_SECOND, 15 * TD_SECOND},
        {50 * TD_SECOND, 30 * TD_SECOND},
        {64 * TD_SECOND, 30 * TD_SECOND},
        {65 * TD_SECOND, 45 * TD_SECOND},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_engine_sample sample = {.at = 0};
        bed_run(&bed, rows[i].at);
        assert_int_equal(td_engine_sample(c, &sample), rows[i].reported > 0);
        assert_int_equal(sample.at, rows[i].reported);
    }
    bed_remove(&bed, "a");
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_settles_at_steps_between_ticks),
        cmocka_unit_test(test_engine_drains_a_queue),
        cmocka_unit_test(test_engine_kills_a_leak_when_it_passes_the_limit),
        cmocka_unit_test(test_engine_kills_at_a_jump_and_restarts),
        cmocka_unit_test(test_engine_starts_and_warms_up),
        cmocka_unit_test(test_engine_finishes_tasks),
        cmocka_unit_test(test_engine_samples_whole_windows),
        cmocka_unit_test(test_engine_conserves_work),
        cmocka_unit_test(test_engine_sends_requests_on_and_tells_latency),
        cmocka_unit_test(test_engine_tells_pressure),
        cmocka_unit_test(test_engine_tells_samples_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
