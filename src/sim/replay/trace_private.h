/* Shared by the readers of traces. */
#pragma once

#include "sim/replay/trace.h"

#define TRACE_CPU_CORES_MAX 1e6
#define TRACE_MEMORY_BYTES_MAX 1e14
#define TRACE_TIME_MAX 9e9 /* seconds: the year 2255, inside what a td_time holds */

enum trace_kind {
    TRACE_CPU_RATE,    /* cores */
    TRACE_CPU_COUNTER, /* seconds of CPU, ever growing */
    TRACE_MEMORY,
    TRACE_CPU_LIMIT,
    TRACE_MEMORY_LIMIT,
    TRACE_KIND_COUNT
};

struct trace_point {
    int64_t time;
    double value;
};

struct trace_points {
    TD_VEC_FIELDS(struct trace_point);
};

/* All series of one container. */
struct td_trace_series {
    td_str name;
    struct trace_points kinds[TRACE_KIND_COUNT];
};

int trace_read_csv(struct td_trace_set *set, td_str path, td_str text, struct td_error *err);
int trace_read_prometheus(struct td_trace_set *set, td_str path, td_str text, struct td_error *err);
int trace_make_windows(struct td_trace_set *set, struct td_error *err);

/* A new trace, or a window of one; TD_LIMIT at the caps of base/limits.h. */
int trace_add(struct td_trace_set *set, td_str name, struct td_trace **ret, struct td_error *err);
int trace_add_window(struct td_trace_set *set, struct td_trace *trace,
                     const struct td_trace_window *window, struct td_error *err);

/* A JSON number from 0 to max. */
bool trace_parse_number(td_str text, double max, double *ret);

/* Whole millicores of cores, the fraction dropped; more than a million cores count as that. */
int64_t trace_milli(double cores);
