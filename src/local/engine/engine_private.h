/*
 * The insides of the engine, for its own files: engine.c (time and nodes), engine_step.c (what a
 * node does between two moments), engine_pod.c (pods and containers), engine_rows.c (workloads,
 * entries, what is summed), engine_moments.c (what comes next).
 *
 * Each node, and each entry that is a stream of requests, has a moment up to which it is settled.
 * Between it and now nothing changed for it, so that a later step over the whole interval is exact:
 * a function that changes something first settles what the change touches.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "local/engine/engine.h"
#include "local/engine/slab.h"

struct td_timer;
struct engine_node;
struct engine_workload;

/* ---- What comes next: a heap by time ---- */

enum engine_moment_kind { ENGINE_ENTRY_JUMPS, ENGINE_CONTAINER_TURNS };

struct engine_moment {
    td_duration at;
    uint64_t order; /* of two at the same time the one that was set first */
    size_t place;   /* 1 + its place in the heap; 0: not set */
    enum engine_moment_kind kind;
};

struct engine_moments {
    TD_VEC_FIELDS(struct engine_moment *);
    uint64_t orders;
};

void td_engine_moments_init(struct engine_moments *moments);
void td_engine_moments_done(struct engine_moments *moments);
/* Set anew when it was set; INT64_MAX: never. */
void td_engine_moments_set(struct engine_moments *moments, struct engine_moment *moment,
                           td_duration at);
void td_engine_moments_drop(struct engine_moments *moments, struct engine_moment *moment);
/* The earliest, or NULL. */
struct engine_moment *td_engine_moments_first(const struct engine_moments *moments);

/* ---- Entries ---- */

struct engine_entry {
    struct engine_moment moment; /* first: ENGINE_ENTRY_JUMPS */
    const struct td_demand *demand;
    /* A stream of requests. */
    double rate;        /* arrivals a second since it was settled */
    double weights;     /* of the ready containers */
    double pool;        /* of those that wait when they were last shared */
    uint64_t round;     /* how often they were */
    double waiting;     /* requests, and so on */
    double served;      /* since the start */
    double dropped;     /* since the start */
    double answer_time; /* seconds that those served took, waiting not included, together */
    bool is_weighed;    /* `weights` is what they are now */
    bool is_steady;     /* levels never change */
    td_duration settled;
    double tick_served; /* `served` at the last tick, and so on */
    double tick_answer;
    double served_rate; /* in the tick before */
    double answer_mean; /* seconds, in the tick before */
    /* Every entry. */
    td_str key;                     /* owned: workload and container; NULL: another one has it */
    struct td_demand_level *levels; /* of each role and of none; in engine->levels */
    TD_VEC_FIELDS(struct td_engine_container *);
};

/* ---- Workloads ---- */

struct engine_row {
    struct engine_workload *workload;
    td_str key;  /* owned; in engine->rows */
    td_str role; /* part of it */
    TD_VEC_FIELDS(struct td_engine_pod *);
    struct td_engine_totals totals; /* of what was; of what runs only the bodies know */
    uint64_t kill_count;
};

struct engine_workload {
    td_str key; /* owned: namespace, kind and name, a line each */
    td_str ns;  /* parts of it */
    td_str kind;
    td_str name;
    const struct td_demand *roles; /* the first entry that knows roles; NULL: none */
    double slow_factor;
    bool is_named;    /* by an entry: stays without pods */
    size_t row_count; /* of its roles */
};

/* ---- Pods and containers ---- */

/* What is told of windows: a ring, the newest at `samples_next` - 1. */
struct engine_window {
    double used_cpu_seconds; /* when it began, and so on */
    double served;
    double answer_time;
};

struct td_engine_container {
    struct td_body body; /* first: pointers to the one are pointers to the other */
    /* What a step needs, together. */
    const struct td_demand_level *level; /* NULL: what is fixed */
    struct engine_entry *stream;         /* NULL: it is sent no requests */
    td_duration started;
    td_duration startup_time; /* -1: unset */
    td_duration ready_at;     /* for the first time; INT64_MAX: not yet */
    uint64_t seed;
    bool has_fixed;
    bool is_ready;
    bool is_dead;   /* was killed or is done: uses nothing until it is stopped */
    bool is_killed; /* ... which of the two */
    struct td_want fixed;
    double weight;              /* requests: against the other containers' */
    double rate;                /* requests: a second, in the last step */
    double offered;             /* requests: of those that wait, its part */
    double offered_cpu_seconds; /* ... as work, in the last step */
    double cost_ms;             /* requests: processor time of one, in the last step */
    double served;              /* requests: since the start */
    double answer_time;         /* of those, together */
    uint64_t round;             /* of sharing what waits */
    struct td_engine_pod *pod;
    /* What changes and samples need. */
    struct engine_window window;
    struct td_engine_totals reported; /* to the row: of its body */
    size_t sample_count;              /* ever taken */
    td_duration look;                 /* soon after a change that may kill it */
    struct engine_moment moment;
    struct engine_entry *entry;     /* that it follows; NULL: what is fixed */
    struct engine_entry *own_entry; /* also while it is fixed */
    size_t entry_place;
    size_t due_place; /* 1 + its place among those to tell; 0: not one of them */
    struct td_engine_limits limits;
    td_str name; /* owned */
    struct td_engine_sample samples[];
};

struct td_engine_pod {
    struct td_body_group group; /* first, for the same reason; bodies are the node's */
    double used_byte_seconds;   /* since the row was told */
    struct td_engine *engine;
    struct engine_node *node;
    struct engine_row *row;
    struct engine_workload *workload;
    td_duration reported; /* the row was told until then */
    struct td_engine_limits limits;
    struct td_engine_limits whole; /* those, or the sum of its containers' */
    size_t ready_count;
    size_t row_place;
    void *owner;
    td_str key; /* owned: "ns/name" */
    td_str ns;
    td_str name;
    td_str role; /* owned */
    TD_VEC_FIELDS(struct td_engine_container *);
};

/* The bodies of a node, pod by pod. */
struct engine_bodies {
    TD_VEC_FIELDS(struct td_body *);
};

struct engine_node {
    td_str name; /* owned */
    double cpu_milli;
    double memory_bytes;
    double available_min;
    double used_cpu_milli; /* in the last step */
    td_duration settled;
    struct engine_bodies bodies;
    bool is_stale;            /* they are those of before a start or a stop */
    double used_memory_bytes; /* after the last step */
    bool has_memory_moved;    /* since then, by what is no step */
    TD_VEC_FIELDS(struct td_engine_pod *);
};

struct engine_nodes {
    TD_VEC_FIELDS(struct engine_node *);
};

struct engine_due {
    TD_VEC_FIELDS(struct td_engine_container *); /* NULL: stopped meanwhile */
};

struct td_engine {
    struct td_loop *loop;
    struct td_timer *timer;
    td_duration armed; /* the moment it is set to */
    td_duration start; /* steady time */
    td_duration tick;
    td_duration metrics_every;
    td_duration metrics_lag;
    size_t sample_max; /* kept of each container */
    td_duration next_tick;
    td_duration next_sample;
    td_duration sampled;
    td_duration ticked;
    struct td_engine_events events;
    void *context;
    struct td_slab pod_slab;
    struct td_slab container_slab; /* with their samples */
    struct engine_entry *entries;
    size_t entry_count;
    struct td_demand_level *levels;
    struct td_map entry_map; /* "ns/kind/name/container" */
    size_t container_count;
    double load; /* times what entries say */
    struct td_map node_map;
    struct engine_nodes nodes;
    struct td_map pods;
    struct td_map workloads;
    struct td_map rows; /* in the order in which they were first seen */
    struct engine_moments moments;
    struct engine_due due;
};

/* ---- engine.c ---- */

/* Everything that was to happen until now has happened, and the moment. */
td_duration td_engine_catch_up(struct td_engine *engine);
/* The timer is set to what comes next. */
void td_engine_arm(struct td_engine *engine);
struct engine_node *td_engine_find_node(const struct td_engine *engine, td_str name);
void td_engine_drop_node(struct td_engine *engine, struct engine_node *node);

/* ---- engine_pod.c ---- */

/* INT64_MAX: it is no task. */
td_duration td_engine_done_at(const struct td_engine_container *container);
/* Its moment is the next one after `now` at which its want turns. */
void td_engine_set_turn(struct td_engine_container *container, td_duration now);
struct td_engine_container *td_engine_container_of(struct engine_moment *moment);

/* ---- engine_step.c ---- */

void td_engine_settle_node(struct engine_node *node, td_duration to);
void td_engine_settle_entry(struct engine_entry *entry, td_duration to);
/* The same when its nodes are settled. */
void td_engine_close_entry(struct engine_entry *entry, td_duration to);
/* Memory of its containers follows its level at once. */
void td_engine_refresh_memory(struct engine_entry *entry, td_duration at);
double td_engine_memory_now(const struct td_engine_container *container, td_duration at);
/* Seconds that a request of the stream waits before it is looked at. */
double td_engine_wait(const struct engine_entry *entry);
/* It will be told. */
void td_engine_due(struct td_engine *engine, struct td_engine_container *container, bool is_killed);
void td_engine_sample_all(struct td_engine *engine, td_duration at);

/* ---- engine_rows.c ---- */

void td_engine_index_entries(struct td_engine *engine);
void td_engine_free_rows(struct td_engine *engine);
struct engine_entry *td_engine_entry_of(const struct td_engine *engine,
                                        const struct td_engine_pod *pod,
                                        const struct td_engine_spec *spec);
/* The workload of that name, made when it is new. */
struct engine_workload *td_engine_workload_of(struct td_engine *engine, td_str ns, td_str kind,
                                              td_str name);
void td_engine_join_row(struct td_engine_pod *pod);
void td_engine_leave_row(struct td_engine_pod *pod);
/* Its row knows everything until now; its node must be settled. */
void td_engine_tell_row(struct td_engine_pod *pod);
/* When nothing needs it any more. */
void td_engine_drop_workload(struct td_engine *engine, struct engine_workload *workload);
