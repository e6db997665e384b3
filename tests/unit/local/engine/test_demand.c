/*
 * What a container wants in an interval: each driver, and what comes on top of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "local/engine/demand.h"

static const struct td_demand_role roles[] = {
    {.value = TD_STR_INIT("leader"), .cpu = {.low = 1800}, .memory = {.low = 500}},
    {.value = TD_STR_INIT("follower"), .cpu = {.low = 400}, .memory = {.low = 100}},
};

static struct td_want want_of(const struct td_demand *demand, const char *role,
                              const struct td_demand_moment *moment)
{
    struct td_demand_level level;
    size_t place = td_demand_role(demand, td_str_from(role));
    td_demand_level_init(demand, &level);
    td_demand_cpu_level(demand, place, 0, &level);
    td_demand_memory_level(demand, place, 0, &level);
    return td_demand_want(&level, moment);
}

/* Rows of driver, role and moment. */
static void test_demand_wants_what_its_driver_says(void **state)
{
    (void)state;
    const struct td_demand pod = {.cpu = {.low = 300},
                                  .memory = {.low = 1000},
                                  .idle_cpu_milli = 20,
                                  .idle_memory_bytes = 50,
                                  .startup_cpu_milli = 900,
                                  .warmup_time = 100,
                                  .warmup_factor = 3,
                                  .leak_bytes_per_hour = 10};
    const struct td_demand role = {
        .driver = TD_DEMAND_ROLES, .roles = roles, .role_count = 2, .idle_memory_bytes = 7};
    const struct td_demand stream = {.driver = TD_DEMAND_REQUESTS,
                                     .request_cpu_ms = 12,
                                     .request_memory_bytes = 4,
                                     .idle_cpu_milli = 5,
                                     .startup_cpu_milli = 1};
    const struct {
        const struct td_demand *demand;
        const char *role;
        struct td_demand_moment moment;
        double cpu_milli;
        double memory_bytes;
    } rows[] = {
        {&pod, "", {.warm_age = 100}, 320, 1050},
        {&pod, "", {.warm_age = 0, .span = 100}, 20 + 300 * 2.0, 1050 + 10 * 100 / 3.6e12},
        {&pod, "", {.warm_age = -1}, 920, 1050},
        {&pod, "", {.startup_time = 9, .warm_age = -1}, 900, 50},
        {&pod, "", {.age = TD_HOUR, .warm_age = 100}, 320, 1060},
        {&role, "leader", {.age = 1}, 1800, 507},
        {&role, "follower", {.age = 1}, 400, 107},
        {&role, "other", {.age = 1}, 0, 7},
        {&stream, "", {.request_rate = 10}, 125, 40},
        {&stream, "", {.startup_time = 9}, 5, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_want want = want_of(rows[i].demand, rows[i].role, &rows[i].moment);
        if (want.cpu_milli != rows[i].cpu_milli || want.memory_bytes != rows[i].memory_bytes) {
            fail_msg("row %zu: %.17g %.17g", i, want.cpu_milli, want.memory_bytes);
        }
    }
    assert_true(td_demand_is_steady(&pod));
    assert_true(td_demand_is_steady(&role));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demand_wants_what_its_driver_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
