/*
 * The bodies of running containers: every tick each one's demand is asked (local/engine/demand.h),
 * its node shares what it has (local/engine/physics.h), and who is out of memory, done, or on a
 * node without memory is told to the owner (the kubelet), which acts on it. Metrics are samples of
 * this, taken at their own resolution. Nothing here knows of JSON or the API. Whatever changes a
 * node (a start, a stop, a resize, readiness, a role) brings it up to the present first, so
 * integrals are exact. What is asked of it is as of the last tick or change. Deterministic: pods
 * are visited in the order in which they came, node by node. The model:
 * docs/internals/local/physics.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"
#include "local/engine/demand.h"
#include "local/engine/physics.h"

struct td_engine;
struct td_engine_container;
struct td_engine_pod;
struct td_loop;

/* Called from the engine's own timer, at the moment it happens but never from inside another call;
 * they may stop and start any container. */
struct td_engine_events {
    /* Out of memory: the owner stops it and, if it likes, starts another. It is not ready any more
     * and uses nothing from now on. */
    void (*killed)(void *context, struct td_engine_container *container);
    /* A task that has run its time. */
    void (*finished)(void *context, struct td_engine_container *container);
    /* Containers of the node leave less memory than `available_min`: told each tick while so. */
    void (*pressed)(void *context, td_str node, double available_bytes);
};

struct td_engine_options {
    struct td_loop *loop;
    const struct td_demand *demands; /* borrowed */
    size_t demand_count;
    td_duration tick;          /* 0: TD_ENGINE_TICK_MS */
    td_duration metrics_every; /* resolution of samples; 0: 15 s, as metrics-server's manifests */
    td_duration metrics_lag;   /* a sample is told that much later; 0: at once */
};

struct td_engine *td_engine_new(const struct td_engine_options *options);
void td_engine_free(struct td_engine *engine); /* every pod must have been removed */

/* Without it what happens is not told. */
void td_engine_set_events(struct td_engine *engine, const struct td_engine_events *events,
                          void *context);

/* Time since the engine was made, which is the scenario's start. */
td_duration td_engine_since(const struct td_engine *engine);

/* ---- Nodes ---- */

struct td_engine_node {
    td_str name;
    double cpu_milli; /* all that can be used; 0 removes the node as soon as it has no pods */
    double memory_bytes;
    double available_min; /* less free memory than that is pressure */
};
void td_engine_set_node(struct td_engine *engine, const struct td_engine_node *node);

/* What its containers use together; false: not known. */
bool td_engine_node_use(const struct td_engine *engine, td_str node, struct td_want *ret);

/* ---- Pods: a group of containers on one node, with limits of its own ---- */

/* 0: none. */
struct td_engine_limits {
    int64_t cpu_request_milli;
    int64_t cpu_limit_milli;
    int64_t memory_request_bytes;
    int64_t memory_limit_bytes;
};

struct td_engine_pod_spec {
    td_str node; /* that was set */
    td_str ns;
    td_str name;
    td_str workload_kind; /* topmost owner of the pod, or Pod and its own name */
    td_str workload_name;
    td_str role;                    /* value of the label td_engine_role_label names */
    struct td_engine_limits limits; /* pod-level; 0: those of the containers alone */
    void *owner;                    /* for the callbacks */
};

/* NULL: the node was not set, there is a pod of that name, or there are too many. */
struct td_engine_pod *td_engine_add_pod(struct td_engine *engine,
                                        const struct td_engine_pod_spec *spec);
/* With the containers that still run. */
void td_engine_remove_pod(struct td_engine_pod *pod);
void td_engine_resize_pod(struct td_engine_pod *pod, const struct td_engine_limits *limits);
void td_engine_set_role(struct td_engine_pod *pod, td_str role);
struct td_engine_pod *td_engine_find_pod(const struct td_engine *engine, td_str ns, td_str name);
void *td_engine_pod_owner(const struct td_engine_pod *pod);
/* The pods of a node, and the containers that run in a pod, in the order in which they came;
 * `position` starts at 0. NULL: no more. */
const struct td_engine_pod *td_engine_next_pod(const struct td_engine *engine, td_str node,
                                               size_t *position);
const struct td_engine_container *td_engine_next_container(const struct td_engine_pod *pod,
                                                           size_t *position);
/* What its containers use now, together. */
struct td_want td_engine_pod_use(const struct td_engine_pod *pod);

/* The label whose value is the role of the workload's pods; empty: none of its entries has one. */
td_str td_engine_role_label(const struct td_engine *engine, td_str ns, td_str kind, td_str name);

/* ---- Containers ---- */

struct td_engine_spec {
    td_str name;
    bool is_first;  /* of its pod: entries without a container mean this one */
    bool has_fixed; /* wants this instead of what a demand entry says */
    struct td_want fixed;
    struct td_engine_limits limits;
};

/* A container without an entry and without a fixed want uses 1m and 10Mi, or half its limit. */
struct td_engine_container *td_engine_start(struct td_engine_pod *pod,
                                            const struct td_engine_spec *spec);
void td_engine_stop(struct td_engine_container *container);
void td_engine_resize(struct td_engine_container *container, const struct td_engine_limits *limits);
void td_engine_set_ready(struct td_engine_container *container, bool is_ready);
/* NULL: back to its entry. */
void td_engine_set_fixed(struct td_engine_container *container, const struct td_want *want);

/* How long it takes from its start until it is ready: its entry's, stretched while starts are slow;
 * -1: it has no entry that says so. */
td_duration td_engine_startup(const struct td_engine_container *container);
/* Is it a task that ends by itself (`finished`)? */
bool td_engine_is_task(const struct td_engine_container *container);

struct td_engine_pod *td_engine_pod(const struct td_engine_container *container);
td_str td_engine_name(const struct td_engine_container *container);
const struct td_body *td_engine_body(const struct td_engine_container *container);
/* The container of that name that runs in the pod, or NULL. */
struct td_engine_container *td_engine_find(const struct td_engine_pod *pod, td_str name);

/* Starts of that workload take `factor` as long from now on; 1: as written. */
void td_engine_slow_starts(struct td_engine *engine, td_str ns, td_str kind, td_str name,
                           double factor);

/* All entries want `factor` times the requests and processor time that they say; 1: as written. */
void td_engine_set_load(struct td_engine *engine, double factor);
double td_engine_load(const struct td_engine *engine);

/* ---- What is measured ---- */

/* Cpu averaged over the last whole window that may be told, memory at its end. False before the
 * first one. */
struct td_engine_sample {
    td_time at; /* the end of the window */
    td_duration window;
    double cpu_milli;
    double memory_bytes;
    bool has_requests; /* its entry is a stream of requests */
    double requests_per_second;
    double latency_seconds; /* mean time from arrival to answer, waiting included */
};
bool td_engine_sample(const struct td_engine_container *container, struct td_engine_sample *ret);

/* A stream of requests as a whole, now. False: the entry is not one. */
struct td_engine_flow {
    double served_per_second;
    double latency_seconds;
    double waiting; /* requests in the queue */
    double dropped; /* since the start */
};
bool td_engine_flow(const struct td_engine *engine, size_t demand, struct td_engine_flow *ret);

/* Summed over time. */
struct td_engine_totals {
    double used_cpu_seconds;
    double wanted_cpu_seconds;
    double throttled_cpu_seconds;
    double starved_cpu_seconds;
    double used_byte_seconds;
    double requested_cpu_seconds;
    double requested_byte_seconds;
};

/* Pods of one workload, those of one role apart from the others. Sums over running containers now,
 * and totals since it was first seen; totals of workloads that no entry names, and of roles that
 * its entries do not know, go with their last pod. */
struct td_engine_workload {
    td_str ns;
    td_str kind;
    td_str name;
    td_str role; /* empty: its entries know no roles */
    size_t pod_count;
    size_t ready_count;             /* pods all of whose containers are ready */
    struct td_engine_limits limits; /* pod-level ones in place of the containers' */
    struct td_want use;
    struct td_engine_totals totals;
    uint64_t kill_count; /* out of memory */
};
/* In the order in which they were first seen; `position` starts at 0. False: no more. */
bool td_engine_next_workload(const struct td_engine *engine, size_t *position,
                             struct td_engine_workload *ret);
