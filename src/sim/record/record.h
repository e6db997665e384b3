/*
 * A run of a world, kept while it goes on: series of the cluster and of each workload
 * (sim/record/curve.h), what happened, and how long requests took. A sample is taken with every
 * tick of the engine; it changes nothing of the run. Memory is bounded by workloads and columns,
 * not by how long the run lasts. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "sim/record/curve.h"

struct td_loop;
struct td_record;
struct td_world;
struct td_world_event;

/* CPU in millicores, memory in bytes, of one pod. */
enum td_record_curve {
    TD_RECORD_CPU_USE, /* of the middle pod */
    TD_RECORD_CPU_MOST,
    TD_RECORD_CPU_REQUEST,
    TD_RECORD_CPU_LIMIT,
    TD_RECORD_CPU_TARGET,
    TD_RECORD_CPU_LOWER,
    TD_RECORD_CPU_UPPER,
    TD_RECORD_MEMORY_USE,
    TD_RECORD_MEMORY_MOST,
    TD_RECORD_MEMORY_REQUEST,
    TD_RECORD_MEMORY_LIMIT,
    TD_RECORD_MEMORY_TARGET,
    TD_RECORD_MEMORY_LOWER,
    TD_RECORD_MEMORY_UPPER,
    TD_RECORD_REPLICAS,
    TD_RECORD_READY,
    TD_RECORD_WANTED,    /* replicas that an autoscaler asks for */
    TD_RECORD_THROTTLED, /* percent of the CPU time wanted */
    TD_RECORD_LATENCY,   /* seconds */
    TD_RECORD_CURVES
};

/* Of the whole cluster. */
enum td_record_total {
    TD_RECORD_CPU_USED,
    TD_RECORD_CPU_REQUESTED,
    TD_RECORD_CPU_ROOM,
    TD_RECORD_MEMORY_USED,
    TD_RECORD_MEMORY_REQUESTED,
    TD_RECORD_MEMORY_ROOM,
    TD_RECORD_PODS,
    TD_RECORD_PENDING,
    TD_RECORD_KILLS, /* since the start, as the three below */
    TD_RECORD_EVICTIONS,
    TD_RECORD_RESIZES,
    TD_RECORD_SCALINGS, /* changes of replicas */
    TD_RECORD_TOTALS
};

/* How long requests took, each weighing the same: a histogram of shares of 2 %. */
#define TD_RECORD_LATENCY_BUCKETS 896
struct td_record_latency {
    double served[TD_RECORD_LATENCY_BUCKETS];
    double sum;
    double most; /* seconds */
};

struct td_record_row {
    td_str ns; /* the record's, as the three below */
    td_str kind;
    td_str name;
    td_str role;
    struct td_curve curves[TD_RECORD_CURVES];
    struct td_record_latency *latency; /* NULL: no requests reach it */
    int64_t replicas; /* that the workload last wished; below 0: it is no matter of wishes */
    int64_t replicas_most;
    uint64_t replica_changes;
    double throttled_cpu_seconds; /* as of the last sample, as the one below */
    double wanted_cpu_seconds;
};

/* Something that happened; texts are the record's. */
struct td_record_event {
    td_duration at;
    bool is_scenario;
    bool is_warning;
    td_str reason;
    td_str kind; /* of the object that it is about */
    td_str ns;
    td_str name;
    td_str workload_kind; /* empty: none, as the two below */
    td_str workload_name;
    td_str role;
    td_str message;
    td_str decision; /* what an autoscaler decided and why */
};

/* `columns_max` 0: TD_RECORD_COLUMNS. */
struct td_record *td_record_new(td_duration lasts, size_t columns_max);
void td_record_free(struct td_record *record); /* NULL is accepted */

/* Begins to take samples of the world; to be ended before it is freed. */
void td_record_begin(struct td_record *record, struct td_loop *loop, struct td_world *world);
void td_record_end(struct td_record *record);
/* Of each thing that the world tells. */
void td_record_tell(struct td_record *record, const struct td_world_event *event);

struct td_curve_grid td_record_grid(const struct td_record *record);
/* Workloads in the order in which they were first seen; NULL: no more. */
const struct td_record_row *td_record_row_at(const struct td_record *record, size_t index);
const struct td_record_row *td_record_find(const struct td_record *record, td_str ns, td_str kind,
                                           td_str name, td_str role);
size_t td_record_rows_left_out(const struct td_record *record);
const struct td_curve *td_record_total(const struct td_record *record, enum td_record_total total);
const struct td_record_event *td_record_event_at(const struct td_record *record, size_t index);
uint64_t td_record_events_left_out(const struct td_record *record);

/* ---- How long requests took ---- */

void td_record_latency_add(struct td_record_latency *latency, double seconds, double requests);
void td_record_latency_join(struct td_record_latency *sum, const struct td_record_latency *other);
/* So long a share (0 to 1) of requests took at most, within 2 %; below 0: there was none. */
double td_record_latency_at(const struct td_record_latency *latency, double share);
double td_record_latency_mean(const struct td_record_latency *latency); /* the same */
