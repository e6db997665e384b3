/*
 * Usage traces: for each container a list of windows in time order, read from CSV files or from
 * dumps of Prometheus range queries (docs/replay.md has both formats). A set owns its traces; names
 * live in its arena. Reading is all or nothing for the caller: on failure the set is to be thrown
 * away, and the message names the file, the line and column or the JSON path, and the value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct td_error;

/* Fractions of a millicore and of a byte are dropped. */
struct td_trace_window {
    int64_t time; /* seconds, of its beginning */
    int64_t cpu_milli;
    int64_t cpu_p90_milli; /* cpu_milli where the trace does not know */
    int64_t memory_bytes;  /* average; the highest where the trace does not know */
    int64_t memory_bytes_max;
    int64_t cpu_limit_milli;    /* what was really set; 0: unknown */
    int64_t memory_limit_bytes; /* likewise */
};

struct td_trace {
    td_str name; /* of the CSV file, or "namespace/pod/container" */
    TD_VEC_FIELDS(struct td_trace_window);
};

struct td_trace_series;

struct td_trace_set {
    struct td_arena arena; /* names */
    struct td_traces {
        TD_VEC_FIELDS(struct td_trace);
    } traces;
    size_t window_count;
    /* Series of Prometheus dumps, until td_trace_set_finish makes windows of them. */
    struct td_map by_name;
    struct td_trace_all_series {
        TD_VEC_FIELDS(struct td_trace_series);
    } series;
    size_t point_count;
};

void td_trace_set_init(struct td_trace_set *set);
void td_trace_set_done(struct td_trace_set *set);

/* One file: JSON when the first character is { or [, else CSV. The text need not outlive the
 * call. */
int td_trace_read(struct td_trace_set *set, td_str path, td_str text, struct td_error *err);

/* After the last file: CPU and memory of one container may come in different files. Fails when
 * there is no window at all. */
int td_trace_set_finish(struct td_trace_set *set, struct td_error *err);
