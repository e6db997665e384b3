/*
 * What a container gets of what it wants: cpu above its limit is throttled, cpu that the node does
 * not have is shared by requests, memory above the limit kills it. One step is an interval in which
 * wants and limits do not change, so sums over steps are exact integrals. Pure functions on plain
 * structs; whoever owns the containers applies what comes out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct td_body {
    /* In. */
    int64_t cpu_request_milli;  /* weight when the node is short; at least 2 counts */
    int64_t cpu_limit_milli;    /* 0: none */
    int64_t memory_limit_bytes; /* 0: none */
    double want_cpu_milli;
    double want_memory_bytes;
    bool keeps_memory;    /* never gives back what it once used */
    bool is_carried_over; /* cpu work that was not done waits */
    /* State and out. */
    double cpu_milli;             /* used in this step */
    double memory_bytes;          /* used at its end */
    double used_cpu_seconds;      /* since the start, and so on */
    double throttled_cpu_seconds; /* wanted above the limit */
    double starved_cpu_seconds;   /* wanted below the limit, but the node had none left */
    double waiting_cpu_seconds;   /* carried over */
    bool is_killed;               /* out of memory in this step: used more than its limit allows */
};

/* One step of all containers of a node. */
void td_physics_step(struct td_body *const *bodies, size_t count, double capacity_milli,
                     td_duration span);
