/*
 * The bodies of running containers: every tick each one's demand is asked (local/demand.h), its
 * node shares what it has (local/physics.h), and who is out of memory, done, or on a node without
 * memory is told to the owner (the kubelet), which acts on it. Metrics are samples of this, taken
 * at their own resolution. Nothing here knows of JSON or the API. Deterministic: containers are
 * visited in the order in which they were started, node by node.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/str.h"
#include "local/demand.h"
#include "local/physics.h"

struct td_engine;
struct td_engine_container;
struct td_loop;

struct td_engine_events {
    /* Out of memory: the owner stops it and, if it likes, starts another. */
    void (*killed)(void *context, struct td_engine_container *container);
    /* A task that has run its time. */
    void (*finished)(void *context, struct td_engine_container *container);
    /* The containers of a node use more memory than it has, by that many bytes. */
    void (*pressed)(void *context, td_str node, double excess_bytes);
};

struct td_engine_options {
    struct td_loop *loop;
    const struct td_demand *demands; /* borrowed */
    size_t demand_count;
    td_duration tick;          /* 0: TD_ENGINE_TICK_MS */
    td_duration metrics_every; /* 0: 15 s */
    struct td_engine_events events;
    void *context;
};

struct td_engine *td_engine_new(const struct td_engine_options *options);
void td_engine_free(struct td_engine *engine); /* every container must have been stopped */

/* What a node has; cpu 0 removes it when it has no containers. */
void td_engine_set_node(struct td_engine *engine, td_str node, double cpu_milli,
                        double memory_bytes);

struct td_engine_spec {
    td_str node; /* that was set */
    td_str ns;
    td_str workload_kind; /* topmost owner of the pod */
    td_str workload_name;
    td_str container;
    bool is_first;  /* of its pod: entries without a container mean this one */
    bool has_fixed; /* wants this instead of what a demand entry says */
    struct td_want fixed;
    td_str role; /* value of the entry's role label */
    int64_t cpu_request_milli;
    int64_t cpu_limit_milli;
    int64_t memory_limit_bytes;
    void *owner; /* for the callbacks */
};

struct td_engine_container *td_engine_start(struct td_engine *engine,
                                            const struct td_engine_spec *spec);
void td_engine_stop(struct td_engine_container *container);
void td_engine_resize(struct td_engine_container *container, int64_t cpu_request_milli,
                      int64_t cpu_limit_milli, int64_t memory_limit_bytes);
void td_engine_set_ready(struct td_engine_container *container, bool is_ready);
void td_engine_set_role(struct td_engine_container *container, td_str role);
void td_engine_set_fixed(struct td_engine_container *container, const struct td_want *want);

void *td_engine_owner(const struct td_engine_container *container);
const struct td_body *td_engine_body(const struct td_engine_container *container);

/* The entry of a container, or NULL; and how long such a container takes until it is ready. */
const struct td_demand *td_engine_demand(const struct td_engine *engine,
                                         const struct td_engine_spec *spec);

/* What metrics tell: use averaged over the last whole window. False before the first one. */
struct td_engine_sample {
    td_time at;
    td_duration window;
    double cpu_milli;
    double memory_bytes;
};
bool td_engine_sample(const struct td_engine_container *container, struct td_engine_sample *ret);
