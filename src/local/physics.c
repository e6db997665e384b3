#include "local/physics.h"

#define PHYSICS_WEIGHT_MIN 2

static double physics_least(double a, double b)
{
    return a < b ? a : b;
}

/* What it could use in this step: its want and what waits, up to its limit. */
static double physics_reach(const struct td_body *body, double seconds)
{
    double want = body->want_cpu_milli + body->waiting_cpu_seconds * 1000 / seconds;
    return body->cpu_limit_milli > 0 ? physics_least(want, (double)body->cpu_limit_milli) : want;
}

static double physics_weight(const struct td_body *body)
{
    return body->cpu_request_milli > PHYSICS_WEIGHT_MIN ? (double)body->cpu_request_milli
                                                        : PHYSICS_WEIGHT_MIN;
}

/* Fair shares by weight: who reaches less than its share gets that, the rest is shared among the
 * others; at least one container is settled in each round. */
static void physics_share(struct td_body *const *bodies, size_t count, double capacity,
                          double seconds)
{
    double left = capacity;
    double weights = 0;
    for (size_t i = 0; i < count; i++) {
        bodies[i]->cpu_milli = -1; /* not settled */
        weights += physics_weight(bodies[i]);
    }
    for (size_t round = 0; round < count && weights > 0; round++) {
        double share = left / weights;
        size_t settled = 0;
        for (size_t i = 0; i < count; i++) {
            double reach = physics_reach(bodies[i], seconds);
            if (bodies[i]->cpu_milli < 0 && reach <= share * physics_weight(bodies[i])) {
                bodies[i]->cpu_milli = reach;
                left -= reach;
                weights -= physics_weight(bodies[i]);
                settled++;
            }
        }
        if (settled == 0) {
            break;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (bodies[i]->cpu_milli < 0) {
            bodies[i]->cpu_milli = left * physics_weight(bodies[i]) / weights;
        }
    }
}

static void physics_account(struct td_body *body, double seconds)
{
    double want = body->want_cpu_milli + body->waiting_cpu_seconds * 1000 / seconds;
    double reach = physics_reach(body, seconds);
    body->used_cpu_seconds += body->cpu_milli / 1000 * seconds;
    body->throttled_cpu_seconds += (want - reach) / 1000 * seconds;
    body->starved_cpu_seconds += (reach - body->cpu_milli) / 1000 * seconds;
    body->waiting_cpu_seconds =
        body->is_carried_over ? (want - body->cpu_milli) / 1000 * seconds : 0;
    double memory = body->want_memory_bytes;
    if (body->keeps_memory && body->memory_bytes > memory) {
        memory = body->memory_bytes;
    }
    body->is_killed = body->memory_limit_bytes > 0 && memory > (double)body->memory_limit_bytes;
    body->memory_bytes = body->is_killed ? (double)body->memory_limit_bytes : memory;
}

void td_physics_step(struct td_body *const *bodies, size_t count, double capacity_milli,
                     td_duration span)
{
    double seconds = (double)span / (double)TD_SECOND;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        bodies[i]->cpu_milli = physics_reach(bodies[i], seconds);
        sum += bodies[i]->cpu_milli;
    }
    if (sum > capacity_milli) {
        physics_share(bodies, count, capacity_milli, seconds);
    }
    for (size_t i = 0; i < count; i++) {
        physics_account(bodies[i], seconds);
    }
}
