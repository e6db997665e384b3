/*
 * What a world came to, as data: figures of each workload since the start, and the state in which
 * its workloads and pods are. The bytes are a function of the run, so they tell two runs apart. The
 * tree is the arena's; texts too.
 */
#pragma once

#include "sim/world/world.h"

/* Averages and shares over the run; below 0: there is nothing to divide by. */
struct td_world_figures {
    double cpu_requested_milli;
    double cpu_used_milli;
    double cpu_slack;     /* requested and not used, of what was requested */
    double cpu_throttled; /* of what was wanted */
    double cpu_starved;   /* the same: the node had no more */
    double memory_requested_bytes;
    double memory_used_bytes;
    double memory_slack;
};
struct td_world_figures td_world_figures(const struct td_engine_workload *load, td_duration span);

/* Adds the totals of a row; names are left alone. */
void td_world_figures_add(struct td_engine_workload *sum, const struct td_engine_workload *load);

struct td_json *td_world_event_report(struct td_arena *arena, const struct td_world_event *event);
struct td_json *td_world_report(struct td_world *world, struct td_arena *arena);
