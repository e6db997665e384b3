/*
 * What each workload has and is wanted to have at one moment, for those who keep it over time
 * (sim/record). Sums are as of the engine's last tick; looking changes nothing of the run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "sim/world/world.h"

enum td_world_resource { TD_WORLD_CPU, TD_WORLD_MEMORY, TD_WORLD_RESOURCES };

/* CPU in millicores, memory in bytes; below 0: there is none, or it is not known. */
struct td_world_sample {
    td_str ns; /* valid during the call, as the three below */
    td_str kind;
    td_str name;
    td_str role;
    size_t pod_count;
    size_t ready_count;
    int64_t replicas;                      /* wished by the workload; of a role: its pods */
    bool has_replicas;                     /* it is the workload that wishes them */
    int64_t wanted;                        /* replicas that its HPA or Hvpa asks for */
    double use_middle[TD_WORLD_RESOURCES]; /* of its pods that run */
    double use_most[TD_WORLD_RESOURCES];   /* of one of them */
    double request[TD_WORLD_RESOURCES];    /* of one pod, on the average */
    double limit[TD_WORLD_RESOURCES];      /* likewise */
    double target[TD_WORLD_RESOURCES];     /* of one pod, by its VPA or Hvpa, as the two below */
    double lower[TD_WORLD_RESOURCES];
    double upper[TD_WORLD_RESOURCES];
    double throttled_cpu_seconds; /* since the start, as the one below */
    double wanted_cpu_seconds;
    double latency_seconds; /* of its requests now */
    double served_per_second;
};

typedef void (*td_world_sample_fn)(void *context, const struct td_world_sample *sample);

/* The whole cluster. */
struct td_world_sum {
    double requested[TD_WORLD_RESOURCES];
    double used[TD_WORLD_RESOURCES];
    double room[TD_WORLD_RESOURCES]; /* of its nodes */
    size_t pod_count;
    size_t pending_count;
    uint64_t kill_count; /* since the start, as the two below */
    uint64_t eviction_count;
    uint64_t resize_count;
};

/* Calls `fn` for each workload, those of roles apart, that has pods or is there; always in the same
 * order. */
struct td_world_sum td_world_take_sample(struct td_world *world, td_world_sample_fn fn,
                                         void *context);
