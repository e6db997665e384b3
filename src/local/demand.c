#include "local/demand.h"

/* Cpu and memory of one entry have noise of their own. */
#define DEMAND_MEMORY_SEED UINT64_C(0x5bd1e995)

static void demand_of_role(const struct td_demand *demand, const struct td_demand_moment *moment,
                           struct td_want *want)
{
    for (size_t i = 0; i < demand->role_count; i++) {
        const struct td_demand_role *role = &demand->roles[i];
        if (td_str_equal(role->value, moment->role)) {
            want->cpu_milli += td_series_at(&role->cpu, moment->since, demand->seed + i);
            want->memory_bytes +=
                td_series_at(&role->memory, moment->since, demand->seed + i + DEMAND_MEMORY_SEED);
            return;
        }
    }
}

/* Only ready pods are sent requests. */
static void demand_of_requests(const struct td_demand *demand,
                               const struct td_demand_moment *moment, struct td_want *want)
{
    double rate = moment->is_ready ? moment->request_rate : 0;
    want->cpu_milli += rate * demand->request_cpu_ms; /* 1 ms in each second is 1 milli-core */
    want->memory_bytes += rate * demand->request_memory_bytes;
}

struct td_want td_demand_at(const struct td_demand *demand, const struct td_demand_moment *moment)
{
    struct td_want want = {.cpu_milli = demand->idle_cpu_milli,
                           .memory_bytes = demand->idle_memory_bytes};
    bool is_starting = moment->age < moment->startup_time;
    if (is_starting && demand->startup_cpu_milli > want.cpu_milli) {
        want.cpu_milli = demand->startup_cpu_milli;
    }
    if (demand->driver == TD_DEMAND_REQUESTS) {
        demand_of_requests(demand, moment, &want);
    } else if (is_starting) {
        /* It does no work yet. */
    } else if (demand->driver == TD_DEMAND_ROLES) {
        demand_of_role(demand, moment, &want);
    } else {
        want.cpu_milli += td_series_at(&demand->cpu, moment->since, demand->seed);
        want.memory_bytes +=
            td_series_at(&demand->memory, moment->since, demand->seed + DEMAND_MEMORY_SEED);
    }
    want.memory_bytes += demand->leak_bytes_per_hour * ((double)moment->age / (double)(TD_HOUR));
    return want;
}
