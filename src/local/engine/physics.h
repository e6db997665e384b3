/*
 * What a container gets of what it wants: cpu above its limit, or above the limit of its pod, is
 * throttled; cpu that the node does not have is shared as cgroup v2 does it, among pods by their
 * requests and inside each pod by its containers' requests; memory above a limit kills. One step is
 * an interval in which wants and limits do not change, so sums over steps are exact integrals. Pure
 * functions on plain structs; the owner of the containers applies the result. Only additions,
 * multiplications and divisions of doubles, so results are the same bits on every machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"

struct td_body {
    /* In. */
    int64_t cpu_request_milli;  /* weight when cpu is short; at least 2 counts */
    int64_t cpu_limit_milli;    /* 0: none */
    int64_t memory_limit_bytes; /* 0: none */
    double want_cpu_milli;
    double want_memory_bytes;
    bool keeps_memory;    /* never gives back what it once used */
    bool is_carried_over; /* cpu work that was not done waits */
    /* State and out. */
    bool is_killed;               /* out of memory in this step: used more than its limit allows */
    double cpu_milli;             /* used in this step */
    double reach_cpu_milli;       /* could have used in it, by the limits alone */
    double memory_bytes;          /* used at its end */
    double used_cpu_seconds;      /* since the start, and so on */
    double wanted_cpu_seconds;    /* each piece of work once, however long it waits */
    double throttled_cpu_seconds; /* of it, above the limits when it came */
    double starved_cpu_seconds;   /* of it, below the limits, but the node had none left */
    double waiting_cpu_seconds;   /* carried over, now */
};

/* A pod. */
struct td_body_group {
    /* In. */
    int64_t cpu_request_milli; /* 0: the sum of its containers'; at least 2 counts */
    int64_t cpu_limit_milli;   /* of all together; 0: none */
    int64_t memory_limit_bytes;
    struct td_body **bodies;
    size_t count;
    /* Out. */
    double cpu_milli;
    double reach_cpu_milli;
    double memory_bytes;
    bool is_killed; /* one of them was */
};

/* One step of all pods of a node, longer than nothing. */
void td_physics_step(struct td_body_group *const *groups, size_t count, double capacity_milli,
                     td_duration span);

/* Memory alone, at this moment. Above the pod's limit its largest container is killed. */
void td_physics_memory(struct td_body_group *group);
