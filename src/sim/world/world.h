/*
 * A scenario at work: a local cluster with the scenario's nodes, its manifests applied, demand in
 * the engine, roles kept (the first role of an entry has one holder, all other pods have the
 * last one, as an operator would see to it), events and faults at their moments. The same on a
 * real, an accelerated and a virtual clock. On a virtual one a run is a function of scenario and
 * seed. What a screen shows of it is a snapshot (td_world_look) and one line for each thing that
 * happens. Manifests go through the API like those of any client. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "local/engine/engine.h"

struct td_cluster;
struct td_controllers;
struct td_controllers_options;
struct td_error;
struct td_log;
struct td_loop;
struct td_node_size;
struct td_scenario;
struct td_world;

/* Something happened: scaled, resized, killed, evicted, a fault, an event of the scenario. */
struct td_world_event {
    td_duration at; /* since the start */
    td_str type;    /* "Normal", "Warning", or "Scenario" */
    td_str reason;  /* "OOMKilled", "ScalingReplicaSet", "node-loss", ... */
    td_str kind;    /* of the object that it is about */
    td_str ns;
    td_str name;
    td_str message;
    td_str decision; /* what an autoscaler decided and why, where it did; else empty */
    /* The workload that it is about, in ns; empty: none, or it is not known. */
    td_str workload_kind;
    td_str workload_name;
    td_str role; /* of the pod */
};
typedef void (*td_world_fn)(const struct td_world_event *event, void *context);

struct td_world_options {
    struct td_loop *loop;
    struct td_log *log;                 /* may be NULL */
    const struct td_scenario *scenario; /* borrowed; NULL: an empty cluster */
    const char *listen;                 /* NULL: for this process only */
    const char *data_dir;               /* NULL: in memory */
    uint64_t seed;                      /* in place of the scenario's when has_seed */
    bool has_seed;
    const struct td_node_size *nodes; /* where the scenario names none */
    size_t node_size_count;
    /* Of the autoscalers, which then run in this process: loop, transport and seed are filled in
     * here. NULL: none. */
    const struct td_controllers_options *controllers;
    bool has_no_strategy; /* of the cluster: the gate HPASelectionStrategy is off */
    td_world_fn happened; /* may be NULL */
    void *context;
};

/* Manifests that cannot be read or that the API refuses: TD_INVALID, with file, line and field. The
 * same for what the scenario names and the manifests lack (a demand's workload or container, an
 * event's target or node). */
int td_world_new(const struct td_world_options *options, struct td_world **ret,
                 struct td_error *err);
void td_world_free(struct td_world *world); /* NULL is accepted */

struct td_cluster *td_world_cluster(struct td_world *world);
struct td_controllers *td_world_controllers(struct td_world *world); /* NULL: there are none */

/* ---- What a person breaks by hand; the scenario's own events go on ---- */

void td_world_break_webhooks(struct td_world *world, bool is_down);
/* A node falls silent, or comes back. TD_NOT_FOUND. */
int td_world_lose_node(struct td_world *world, td_str node, bool is_lost, struct td_error *err);
void td_world_set_load(struct td_world *world, double factor);

struct td_world_hand {
    bool are_webhooks_down;
    double load;
};
struct td_world_hand td_world_hand(const struct td_world *world);

/* ---- What there is to see ---- */

struct td_world_row {
    struct td_engine_workload load; /* texts are the arena's */
    td_str by;                   /* "hpa/web", "vpa/db-leader", "hvpa/web"; empty: no autoscaler */
    int64_t replicas;            /* wished by the workload; of a role: the pods there are */
    bool is_pod_level;           /* its pods have resources of their own */
    double throttled_share;      /* of what was wanted, in the last minute */
    double latency_seconds;      /* of its requests now; below 0: it has none */
    double mean_latency_seconds; /* since the start, each request the same; below 0: none yet */
    double waiting;              /* requests */
    double dropped;              /* requests, since the start */
    uint64_t restart_count;      /* of its containers, since the start, as the two below */
    uint64_t eviction_count;
    uint64_t resize_count;
    td_duration decided_at; /* since the start; below 0: never */
    td_str decision;        /* what an autoscaler last decided about it and why, in a few words */
};

struct td_world_view {
    td_duration since; /* the start */
    size_t node_count;
    size_t ready_node_count;
    size_t pod_count; /* those that are over are not counted */
    size_t pending_count;
    double cpu_capacity_milli;
    double memory_capacity_bytes;
    struct td_engine_limits requested;
    struct td_want used;
    uint64_t kill_count;
    uint64_t eviction_count;
    uint64_t resize_count;
    uint64_t restart_count;
    uint64_t event_count;
    const struct td_world_row *rows; /* workloads by kind of view: namespace, name, role */
    size_t row_count;
};

void td_world_look(struct td_world *world, struct td_arena *arena, struct td_world_view *ret);
