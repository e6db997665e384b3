/*
 * What workloads want: the demand entries of a scenario, as plain data. An entry is about one
 * container of one workload. What it wants is driven in one of four ways:
 *   PER_POD   each pod for itself: cpu and memory over time
 *   REQUESTS  a stream of requests shared by the ready pods (a closed loop: fewer pods, more each)
 *   ROLES     by the value of a label of the pod, which can move from pod to pod
 *   RUN       a task: wants cpu and memory for a while and is then done
 * Beside it: what an idle process needs, what starting and warming up take, memory that leaks or is
 * never given back, and whether work that could not be done waits or is dropped. A queue is a
 * stream of requests that wait. Pure data and pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/str.h"
#include "local/series.h"

enum td_demand_driver {
    TD_DEMAND_PER_POD,
    TD_DEMAND_REQUESTS,
    TD_DEMAND_ROLES,
    TD_DEMAND_RUN,
};

struct td_demand_role {
    td_str value;            /* of the label */
    struct td_series cpu;    /* ROLES: milli-cores */
    struct td_series memory; /* ROLES: bytes */
    double weight;           /* REQUESTS: share of the requests, against the other pods' */
};

struct td_demand {
    td_str ns;
    td_str kind; /* of the workload: "Deployment" */
    td_str name;
    td_str container; /* empty: the first one */
    uint64_t seed;    /* of its noise */
    enum td_demand_driver driver;
    struct td_series cpu;        /* PER_POD, RUN: milli-cores */
    struct td_series memory;     /* PER_POD, RUN: bytes */
    struct td_series requests;   /* REQUESTS: a second, of all pods together */
    bool has_source;             /* REQUESTS: sent by the pods of another entry, for what those */
    size_t source;               /* serve: its place among the entries; no circles */
    double source_times;         /* requests for each one served there */
    double request_cpu_ms;       /* processor time of one */
    double request_memory_bytes; /* for each request a second */
    td_str role_label;           /* ROLES, and REQUESTS that are not shared evenly; empty: none */
    const struct td_demand_role *roles;
    size_t role_count;
    td_duration run_time; /* RUN */
    double idle_cpu_milli;
    double idle_memory_bytes;
    td_duration startup_time; /* until it is ready */
    double startup_cpu_milli;
    td_duration warmup_time; /* after it is ready; work costs warmup_factor at first, then less */
    double warmup_factor;    /* at least 1; falls straight to 1 */
    double leak_bytes_per_hour;
    bool keeps_memory;    /* never gives back what it once used */
    bool is_carried_over; /* work that was not done waits: for REQUESTS in one queue of all pods */
    uint32_t line;        /* in the scenario's file, for messages; 0: not known */
};

/* What one container wants now. */
struct td_want {
    double cpu_milli;
    double memory_bytes;
};

struct td_demand_moment {
    td_duration since;        /* the scenario's start */
    td_duration age;          /* of the container */
    td_duration startup_time; /* the entry's, or longer while starts are slow */
    uint64_t seed;            /* of the container's own noise */
    bool is_ready;
    double request_rate; /* REQUESTS: a second, this container's share */
    td_str role;         /* value of the role label; empty: none */
};

struct td_want td_demand_at(const struct td_demand *demand, const struct td_demand_moment *moment);
