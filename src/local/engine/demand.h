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

#include "base/os/clock.h"
#include "base/str.h"
#include "local/engine/series.h"

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
    td_duration run_time;  /* RUN */
    td_duration run_every; /* RUN of a CronJob: as often as its schedule must say; 0: unsaid */
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

/* What the want of a container of one role follows from, in one small piece: the entry's constants
 * and where its series are now, worked out once for all containers. */
struct td_demand_level {
    double cpu_milli; /* PER_POD, RUN, and ROLES of that role */
    double memory_bytes;
    double cpu_noise; /* each container's own, on top */
    double memory_noise;
    double idle_cpu_milli; /* as in struct td_demand, and so on */
    double idle_memory_bytes;
    double startup_cpu_milli;
    double warmup_factor;
    td_duration warmup_time;
    double leak_bytes_per_hour;
    double request_cpu_ms; /* REQUESTS; 0 for the others */
    double request_memory_bytes;
};

/* The role of that label's value: its place, or role_count when none has it. */
size_t td_demand_role(const struct td_demand *demand, td_str value);

/* `role` is a place, or role_count; cpu and memory are asked at moments of their own. */
void td_demand_level_init(const struct td_demand *demand, struct td_demand_level *level);
void td_demand_cpu_level(const struct td_demand *demand, size_t role, td_duration since,
                         struct td_demand_level *level);
void td_demand_memory_level(const struct td_demand *demand, size_t role, td_duration since,
                            struct td_demand_level *level);

/* Do its levels stay as they are for ever? */
bool td_demand_is_steady(const struct td_demand *demand);

/* The next moment at which one of its series jumps, or INT64_MAX. */
td_duration td_demand_next_jump(const struct td_demand *demand, td_duration since);

/* One container in an interval in which nothing jumps. */
struct td_demand_moment {
    td_duration age;            /* of the container, when it begins */
    td_duration span;           /* how long it is */
    td_duration startup_time;   /* the entry's, or longer while starts are slow */
    td_duration warm_age;       /* since it was ready, when it begins; below 0: it was not yet */
    struct td_series_beat beat; /* where its own noise is */
    uint64_t seed;              /* of that noise */
    double request_rate;        /* REQUESTS: a second, this container's share */
};

/* Processor time of one unit of work in the middle of the interval, against a warm container's. */
double td_demand_warmth(const struct td_demand_level *level, const struct td_demand_moment *moment);

/* Cpu on average over the interval, memory at its end. */
struct td_want td_demand_want(const struct td_demand_level *level,
                              const struct td_demand_moment *moment);
