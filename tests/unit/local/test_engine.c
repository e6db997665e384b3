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
#include "base/loop.h"
#include "local/engine.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_settles_at_steps_between_ticks),
        cmocka_unit_test(test_engine_drains_a_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
