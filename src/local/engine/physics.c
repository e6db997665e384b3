/*
 * A node in want of cpu is shared in two levels, and in each the same way: there is a water level,
 * and each one gets its weight times the level or what it can use, whichever is less. The level is
 * found in rounds: those who can use less than their part are set aside with what they use, the
 * others share the rest, whereby the level only rises, until no further container is set aside.
 */
#include "local/engine/physics.h"

#define PHYSICS_WEIGHT_MIN 2

struct physics_part {
    double reach;
    double weight;
};
typedef struct physics_part (*physics_part_fn)(const void *all, size_t i);

static double physics_weight(int64_t request_milli)
{
    return request_milli > PHYSICS_WEIGHT_MIN ? (double)request_milli : PHYSICS_WEIGHT_MIN;
}

static struct physics_part physics_body_part(const void *all, size_t i)
{
    const struct td_body *body = ((struct td_body *const *)all)[i];
    return (struct physics_part){.reach = body->reach_cpu_milli,
                                 .weight = physics_weight(body->cpu_request_milli)};
}

static struct physics_part physics_group_part(const void *all, size_t i)
{
    const struct td_body_group *group = ((struct td_body_group *const *)all)[i];
    int64_t request = group->cpu_request_milli;
    for (size_t k = 0; group->cpu_request_milli <= 0 && k < group->count; k++) {
        request += group->bodies[k]->cpu_request_milli;
    }
    return (struct physics_part){.reach = group->reach_cpu_milli,
                                 .weight = physics_weight(request)};
}

static double physics_got(struct physics_part part, double level)
{
    return part.reach <= level * part.weight ? part.reach : level * part.weight;
}

/* At least one is set aside in each round but the last, so there are at most `count` of them. */
static double physics_level(const void *all, size_t count, physics_part_fn fn, double capacity)
{
    double level = 0;
    size_t aside = 0;
    for (size_t round = 0; round <= count; round++) {
        double left = capacity;
        double weights = 0;
        size_t settled = 0;
        for (size_t i = 0; i < count; i++) {
            struct physics_part part = fn(all, i);
            bool is_aside = round > 0 && part.reach <= level * part.weight;
            left -= is_aside ? part.reach : 0;
            weights += is_aside ? 0 : part.weight;
            settled += is_aside;
        }
        if (settled == count || (round > 0 && settled == aside)) {
            break;
        }
        aside = settled;
        level = left > 0 ? left / weights : 0;
    }
    return level;
}

/* Its want and what waits. */
static double physics_full(const struct td_body *body, double seconds)
{
    double waiting = body->waiting_cpu_seconds;
    return waiting > 0 ? body->want_cpu_milli + waiting * 1000 / seconds : body->want_cpu_milli;
}

static double physics_reach(const struct td_body *body, double seconds)
{
    double full = physics_full(body, seconds);
    double limit = (double)body->cpu_limit_milli;
    return limit > 0 && full > limit ? limit : full;
}

static void physics_limit_group(struct td_body_group *group, double seconds)
{
    double sum = 0;
    for (size_t i = 0; i < group->count; i++) {
        struct td_body *body = group->bodies[i];
        body->reach_cpu_milli = physics_reach(body, seconds);
        sum += body->reach_cpu_milli;
    }
    double limit = (double)group->cpu_limit_milli;
    group->reach_cpu_milli = sum;
    if (limit > 0 && sum > limit) {
        double level = physics_level(group->bodies, group->count, physics_body_part, limit);
        for (size_t i = 0; i < group->count; i++) {
            group->bodies[i]->reach_cpu_milli =
                physics_got(physics_body_part(group->bodies, i), level);
        }
        group->reach_cpu_milli = limit;
    }
}

static void physics_account(struct td_body *body, double seconds)
{
    double want = body->want_cpu_milli;
    double reach = body->reach_cpu_milli < want ? body->reach_cpu_milli : want;
    body->used_cpu_seconds += body->cpu_milli / 1000 * seconds;
    body->wanted_cpu_seconds += want / 1000 * seconds;
    body->throttled_cpu_seconds += (want - reach) / 1000 * seconds;
    if (body->cpu_milli < reach) {
        body->starved_cpu_seconds += (reach - body->cpu_milli) / 1000 * seconds;
    }
    bool is_left = body->is_carried_over && body->cpu_milli < physics_full(body, seconds);
    double waiting = body->waiting_cpu_seconds + (want - body->cpu_milli) / 1000 * seconds;
    body->waiting_cpu_seconds = is_left && waiting > 0 ? waiting : 0;
}

/* `capacity` is the pod's part, or enough. */
static void physics_use_group(struct td_body_group *group, double capacity, double seconds)
{
    bool is_short = capacity < group->reach_cpu_milli;
    double level =
        is_short ? physics_level(group->bodies, group->count, physics_body_part, capacity) : 0;
    group->cpu_milli = 0;
    for (size_t i = 0; i < group->count; i++) {
        struct td_body *body = group->bodies[i];
        body->cpu_milli = is_short ? physics_got(physics_body_part(group->bodies, i), level)
                                   : body->reach_cpu_milli;
        group->cpu_milli += body->cpu_milli;
        physics_account(body, seconds);
    }
}

static struct td_body *physics_largest(const struct td_body_group *group)
{
    struct td_body *largest = NULL;
    for (size_t i = 0; i < group->count; i++) {
        struct td_body *body = group->bodies[i];
        if (!body->is_killed && (!largest || body->memory_bytes > largest->memory_bytes)) {
            largest = body;
        }
    }
    return largest;
}

/* Each kill frees what that container had, so there are at most as many as containers. */
static void physics_kill_largest(struct td_body_group *group, double living)
{
    double limit = (double)group->memory_limit_bytes;
    for (size_t i = 0; i < group->count && living > limit; i++) {
        struct td_body *body = physics_largest(group);
        if (!body) {
            return;
        }
        double others = living - body->memory_bytes;
        double left = limit > others ? limit - others : 0; /* it got this far */
        group->memory_bytes -= body->memory_bytes - left;
        body->memory_bytes = left;
        body->is_killed = true;
        group->is_killed = true;
        living = others;
    }
}

void td_physics_memory(struct td_body_group *group)
{
    double living = 0;
    group->memory_bytes = 0;
    group->is_killed = false;
    for (size_t i = 0; i < group->count; i++) {
        struct td_body *body = group->bodies[i];
        double memory = body->want_memory_bytes;
        if (body->keeps_memory && body->memory_bytes > memory) {
            memory = body->memory_bytes;
        }
        double limit = (double)body->memory_limit_bytes;
        body->is_killed = limit > 0 && memory > limit;
        body->memory_bytes = body->is_killed ? limit : memory;
        group->is_killed = group->is_killed || body->is_killed;
        group->memory_bytes += body->memory_bytes;
        living += body->is_killed ? 0 : body->memory_bytes;
    }
    if (group->memory_limit_bytes > 0) {
        physics_kill_largest(group, living);
    }
}

void td_physics_step(struct td_body_group *const *groups, size_t count, double capacity_milli,
                     td_duration span)
{
    double seconds = (double)span / (double)TD_SECOND;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        physics_limit_group(groups[i], seconds);
        sum += groups[i]->reach_cpu_milli;
    }
    bool is_short = sum > capacity_milli;
    double level = is_short ? physics_level(groups, count, physics_group_part, capacity_milli) : 0;
    for (size_t i = 0; i < count; i++) {
        double part = groups[i]->reach_cpu_milli;
        if (is_short) {
            part = physics_got(physics_group_part(groups, i), level);
        }
        physics_use_group(groups[i], part, seconds);
        td_physics_memory(groups[i]);
    }
}
