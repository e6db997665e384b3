/* Scenarios from any bytes: what is read has finite numbers, events in order and no circle, and
 * what is refused is refused in one line that begins with the file. */
#include <math.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "sim/scenario/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_amount(double amount)
{
    td_assert(isfinite(amount));
    td_assert(amount >= 0);
}

static void check_series(const struct td_series *series)
{
    static const td_duration moments[] = {0, 1, TD_HOUR, 24 * TD_HOUR, 3650 * 24 * TD_HOUR};
    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
        check_amount(td_series_at(series, moments[i], 7));
    }
    for (size_t i = 1; i < series->point_count; i++) {
        td_assert(series->points[i].at > series->points[i - 1].at);
    }
}

static void check_demand(const struct td_scenario *scenario, const struct td_demand *demand)
{
    td_assert(demand->name.len > 0 && demand->kind.len > 0);
    td_assert(demand->warmup_factor >= 1);
    check_series(&demand->cpu);
    check_series(&demand->memory);
    check_series(&demand->requests);
    check_amount(demand->request_cpu_ms);
    check_amount(demand->request_memory_bytes);
    check_amount(demand->idle_cpu_milli);
    check_amount(demand->idle_memory_bytes);
    check_amount(demand->startup_cpu_milli);
    check_amount(demand->leak_bytes_per_hour);
    for (size_t i = 0; i < demand->role_count; i++) {
        check_series(&demand->roles[i].cpu);
        check_series(&demand->roles[i].memory);
        check_amount(demand->roles[i].weight);
    }
    const struct td_demand *source = demand;
    for (size_t steps = 0; source->has_source; steps++) {
        td_assert(steps < TD_SCENARIO_CHAIN_MAX);
        td_assert(source->source < scenario->demand_count);
        source = &scenario->demands[source->source];
        td_assert(source->driver == TD_DEMAND_REQUESTS);
    }
}

static void check_scenario(const struct td_scenario *scenario)
{
    int64_t nodes = 0;
    for (size_t i = 0; i < scenario->node_count; i++) {
        td_assert(scenario->nodes[i].cpu_milli > 0 && scenario->nodes[i].memory_bytes > 0);
        nodes += scenario->nodes[i].count;
    }
    td_assert(nodes <= TD_NODES_OWN_MAX);
    for (size_t i = 0; i < scenario->demand_count; i++) {
        check_demand(scenario, &scenario->demands[i]);
    }
    for (size_t i = 0; i < scenario->metric_count; i++) {
        check_series(&scenario->metrics[i].series);
    }
    for (size_t i = 0; i < scenario->event_count; i++) {
        td_assert(i == 0 || scenario->events[i].at >= scenario->events[i - 1].at);
        td_assert(scenario->events[i].lasts >= 0);
        check_amount(scenario->events[i].amount);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    struct td_error err = TD_ERROR_INIT;
    struct td_scenario scenario;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    td_str text = {.ptr = size > 0 ? (const char *)data : "", .len = size};
    int code = td_scenario_parse(&arena, TD_STR("no/such/folder/s.yaml"), text, &scenario, &err);
    if (code == TD_OK) {
        td_assert(err.message[0] == '\0');
        check_scenario(&scenario);
        return 0;
    }
    td_str message = td_str_from(err.message);
    td_assert(td_str_starts_with(message, TD_STR("no/such/folder/s.yaml:")));
    td_assert(td_str_find(message, '\n', 0) == message.len);
    return 0;
}
