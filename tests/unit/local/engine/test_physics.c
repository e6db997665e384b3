/*
 * Containers against limits and nodes, where the answer can be worked out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "local/engine/physics.h"

#define MEBI 1048576.0

static void step(struct td_body *body, double capacity, td_duration span)
{
    struct td_body_group group = {.bodies = &body, .count = 1};
    struct td_body_group *const groups[] = {&group};
    td_physics_step(groups, 1, capacity, span);
}

/* Memory equal to the limit is allowed, one byte more kills. */
static void test_physics_kills_at_the_exact_byte(void **state)
{
    (void)state;
    struct td_body body = {.memory_limit_bytes = 1000, .want_memory_bytes = 1000};
    step(&body, 1000, TD_SECOND);
    assert_false(body.is_killed);
    assert_true(body.memory_bytes == 1000);
    body.want_memory_bytes = 1001;
    step(&body, 1000, TD_SECOND);
    assert_true(body.is_killed);
    assert_true(body.memory_bytes == 1000);
    body.memory_limit_bytes = 0;
    step(&body, 1000, TD_SECOND);
    assert_false(body.is_killed);
}

/* Throttled time is the integral of what was wanted above the limit: a ramp from 0 to 2000m over
 * 100 s against 1000m loses the triangle of 50 s and 1000m, 25 cpu-seconds, in steps of 1 s taken
 * at their middle. */
static void test_physics_throttles_what_is_above_the_limit(void **state)
{
    (void)state;
    struct td_body body = {.cpu_limit_milli = 1000};
    for (int i = 0; i < 100; i++) {
        body.want_cpu_milli = 20 * (i + 0.5);
        step(&body, 8000, TD_SECOND);
    }
    assert_true(body.throttled_cpu_seconds > 24.999999 && body.throttled_cpu_seconds < 25.000001);
    assert_true(body.used_cpu_seconds > 74.999999 && body.used_cpu_seconds < 75.000001);
    assert_true(body.starved_cpu_seconds == 0);
}

/* Work that waits is done later: 30 s of 2000m against 1000m leave 30 cpu-seconds, which an idle
 * container works off in 30 s more. */
static void test_physics_carries_work_over_until_it_is_drained(void **state)
{
    (void)state;
    struct td_body body = {
        .cpu_limit_milli = 1000, .want_cpu_milli = 2000, .is_carried_over = true};
    for (int i = 0; i < 30; i++) {
        step(&body, 8000, TD_SECOND);
    }
    assert_true(body.waiting_cpu_seconds > 29.999999 && body.waiting_cpu_seconds < 30.000001);
    body.want_cpu_milli = 0;
    int drained = 0;
    while (body.waiting_cpu_seconds > 0.000001 && drained < 100) {
        step(&body, 8000, TD_SECOND);
        drained++;
    }
    assert_int_equal(drained, 30);
    body = (struct td_body){.cpu_limit_milli = 1000, .want_cpu_milli = 2000};
    step(&body, 8000, TD_SECOND);
    assert_true(body.waiting_cpu_seconds == 0); /* dropped */
}

/* A full node is shared by requests; who wants less than its share leaves the rest to others. */
static void test_physics_shares_a_full_node_by_requests(void **state)
{
    (void)state;
    struct td_body a = {.cpu_request_milli = 1000, .want_cpu_milli = 3000};
    struct td_body b = {.cpu_request_milli = 3000, .want_cpu_milli = 4000};
    struct td_body c = {.cpu_request_milli = 2000, .want_cpu_milli = 400};
    struct td_body *bodies[] = {&a, &b, &c};
    struct td_body_group pods[] = {
        {.bodies = &bodies[0], .count = 1},
        {.bodies = &bodies[1], .count = 1},
        {.bodies = &bodies[2], .count = 1},
    };
    struct td_body_group *const groups[] = {&pods[0], &pods[1], &pods[2]};
    td_physics_step(groups, 3, 4400, TD_SECOND);
    assert_true(c.cpu_milli == 400);
    assert_true(a.cpu_milli == 1000); /* the other 4000 as 1 to 3 */
    assert_true(b.cpu_milli == 3000);
    assert_true(a.starved_cpu_seconds == 2);
    assert_true(a.throttled_cpu_seconds == 0);
    td_physics_step(groups, 3, 8000, TD_SECOND);
    assert_true(a.cpu_milli == 3000 && b.cpu_milli == 4000);
}

/* A heap that never shrinks keeps its highest use. */
static void test_physics_keeps_memory(void **state)
{
    (void)state;
    struct td_body body = {.keeps_memory = true, .want_memory_bytes = 500 * MEBI};
    step(&body, 1000, TD_SECOND);
    body.want_memory_bytes = 100 * MEBI;
    step(&body, 1000, TD_SECOND);
    assert_true(body.memory_bytes == 500 * MEBI);
}

/* A pod-level limit throttles the containers together, by their requests; what one does not need
 * is the other's. */
static void test_physics_throttles_at_the_pods_limit(void **state)
{
    (void)state;
    struct td_body a = {.cpu_request_milli = 100, .want_cpu_milli = 900};
    struct td_body b = {.cpu_request_milli = 300, .want_cpu_milli = 900};
    struct td_body *bodies[] = {&a, &b};
    struct td_body_group pod = {.cpu_limit_milli = 1000, .bodies = bodies, .count = 2};
    struct td_body_group *const groups[] = {&pod};
    td_physics_step(groups, 1, 8000, TD_SECOND);
    assert_true(a.cpu_milli == 250 && b.cpu_milli == 750);
    assert_true(a.throttled_cpu_seconds == 0.65 && a.starved_cpu_seconds == 0);
    b.want_cpu_milli = 200;
    td_physics_step(groups, 1, 8000, TD_SECOND);
    assert_true(a.cpu_milli == 800 && b.cpu_milli == 200);
}

/* Pods share the node by their weight, whatever containers they have, and then inside. */
static void test_physics_shares_in_two_levels(void **state)
{
    (void)state;
    struct td_body a = {.cpu_request_milli = 100, .want_cpu_milli = 4000};
    struct td_body b = {.cpu_request_milli = 300, .want_cpu_milli = 4000};
    struct td_body c = {.cpu_request_milli = 0, .want_cpu_milli = 4000};
    struct td_body *bodies[] = {&a, &b, &c};
    struct td_body_group pods[] = {
        {.bodies = &bodies[0], .count = 2}, /* weighs 400 */
        {.cpu_request_milli = 1200, .bodies = &bodies[2], .count = 1},
    };
    struct td_body_group *const groups[] = {&pods[0], &pods[1]};
    td_physics_step(groups, 2, 4000, TD_SECOND);
    assert_true(a.cpu_milli == 250 && b.cpu_milli == 750 && c.cpu_milli == 3000);
    pods[1].cpu_request_milli = 0; /* as little as can be: 2 */
    td_physics_step(groups, 2, 4020, TD_SECOND);
    assert_true(c.cpu_milli == 20 && a.cpu_milli == 1000);
}

/* The pod's memory limit kills the container that uses most, and only when a byte is too much. */
static void test_physics_kills_the_largest_of_a_pod(void **state)
{
    (void)state;
    struct td_body a = {.want_memory_bytes = 400};
    struct td_body b = {.want_memory_bytes = 600};
    struct td_body *bodies[] = {&a, &b};
    struct td_body_group pod = {.memory_limit_bytes = 1000, .bodies = bodies, .count = 2};
    td_physics_memory(&pod);
    assert_true(!a.is_killed && !b.is_killed && !pod.is_killed);
    a.want_memory_bytes = 401;
    td_physics_memory(&pod);
    assert_true(!a.is_killed && b.is_killed && pod.is_killed);
    assert_true(pod.memory_bytes == 1000 && b.memory_bytes == 599);
    a.want_memory_bytes = 1001; /* too much alone */
    td_physics_memory(&pod);
    assert_true(a.is_killed && !b.is_killed);
}

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*random >> 33) % below;
}

static bool is_near(double a, double b)
{
    double slack = 1e-9 * (a > b ? a : b) + 1e-12;
    return a - b < slack && b - a < slack;
}

/* Whatever pods, limits and wants there are: used, throttled, starved and waiting add up to what
 * was wanted, and a node never gives more than it has. */
static void test_physics_conserves_work(void **state)
{
    (void)state;
    enum { BODIES = 24, PODS = 8 };
    uint64_t random = 11;
    struct td_body all[BODIES] = {{.cpu_milli = 0}};
    struct td_body *bodies[BODIES];
    struct td_body_group pods[PODS] = {{.count = 0}};
    struct td_body_group *groups[PODS];
    for (size_t i = 0; i < BODIES; i++) {
        bodies[i] = &all[i];
        all[i].is_carried_over = i % 2;
    }
    for (size_t i = 0; i < PODS; i++) {
        pods[i] = (struct td_body_group){.bodies = &bodies[3 * i], .count = 3};
        groups[i] = &pods[i];
    }
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < BODIES; i++) {
            all[i].cpu_request_milli = (int64_t)draw(&random, 1000);
            all[i].cpu_limit_milli = (int64_t)draw(&random, 3) * (int64_t)draw(&random, 900);
            all[i].want_cpu_milli = (double)draw(&random, 100000) / 97;
        }
        for (size_t i = 0; i < PODS; i++) {
            pods[i].cpu_request_milli = (int64_t)draw(&random, 2) * 700;
            pods[i].cpu_limit_milli = (int64_t)draw(&random, 2) * 900;
        }
        double capacity = (double)draw(&random, 20000);
        td_physics_step(groups, PODS, capacity, 1 + (td_duration)draw(&random, TD_MINUTE));
        double used = 0;
        for (size_t i = 0; i < BODIES; i++) {
            used += all[i].cpu_milli;
            assert_true(all[i].cpu_milli >= 0);
        }
        assert_true(used <= capacity * (1 + 1e-9));
    }
    for (size_t i = 0; i < BODIES; i++) {
        double lost = all[i].throttled_cpu_seconds + all[i].starved_cpu_seconds;
        double rest = all[i].is_carried_over ? all[i].waiting_cpu_seconds : lost;
        assert_true(is_near(all[i].used_cpu_seconds + rest, all[i].wanted_cpu_seconds));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_physics_kills_at_the_exact_byte),
        cmocka_unit_test(test_physics_throttles_what_is_above_the_limit),
        cmocka_unit_test(test_physics_carries_work_over_until_it_is_drained),
        cmocka_unit_test(test_physics_shares_a_full_node_by_requests),
        cmocka_unit_test(test_physics_keeps_memory),
        cmocka_unit_test(test_physics_throttles_at_the_pods_limit),
        cmocka_unit_test(test_physics_shares_in_two_levels),
        cmocka_unit_test(test_physics_kills_the_largest_of_a_pod),
        cmocka_unit_test(test_physics_conserves_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
