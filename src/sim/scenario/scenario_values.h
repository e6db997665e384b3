/*
 * Values of a scenario file, each read with its place for the message: durations ("3d", "9h30m",
 * "90s"), quantities, rates ("40/s"), shares, times of day ("14:00"), numbers, names, series. The
 * reader of a mapping has a table of the members it knows, with where each one goes; others are
 * refused, with the nearest known name. Private to the scenario reader.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/str.h"

struct td_error;

/* The file that is read. */
struct td_scenario_source {
    struct td_arena *arena;
    td_str path;
    struct td_error *err;
    struct td_map traces; /* by path: those that were read */
    size_t point_count;   /* of all series so far */
};

/* Where a value is. A place refers to the one that it was found in, which must outlive it. */
struct td_place {
    struct td_scenario_source *source;
    const struct td_place *parent; /* NULL: the whole file */
    td_str name;                   /* of the member; empty: an item of a list */
    size_t index;
    const struct td_json *value; /* NULL: missing */
};

struct td_place td_place_member(const struct td_place *place, const char *name);
struct td_place td_place_item(const struct td_place *place, const struct td_json *item,
                              size_t index);

uint32_t td_place_line(const struct td_place *place); /* its own, or that of what it lacks in */

/* Sets the error: "FILE:LINE: FIELD: VALUE: why", one line. Returns TD_INVALID. */
int td_place_refuse(const struct td_place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Any message of our readers in one line: control characters become spaces. */
void td_place_flatten(struct td_error *err);

/* A list of at most so many items; missing is as good as empty. */
int td_place_list(const struct td_place *place, size_t count_max, size_t *ret_count);

enum td_place_kind {
    TD_PLACE_OTHER,        /* known here and read by another file */
    TD_PLACE_TEXT,         /* td_str, not empty */
    TD_PLACE_NAME,         /* td_str, of an object */
    TD_PLACE_LABEL,        /* td_str, a DNS label: of a namespace or container */
    TD_PLACE_KEY,          /* td_str, of a label */
    TD_PLACE_PATH,         /* td_str, of a file; relative ones are resolved beside the scenario */
    TD_PLACE_BOOL,         /* bool */
    TD_PLACE_DURATION,     /* td_duration, from 0 */
    TD_PLACE_SPAN,         /* td_duration, above 0 */
    TD_PLACE_TIME_OF_DAY,  /* td_duration since midnight */
    TD_PLACE_SHARE,        /* double from 0 to 1: "5%" or 0.05 */
    TD_PLACE_NUMBER,       /* double from 0 */
    TD_PLACE_FACTOR,       /* double from 1 */
    TD_PLACE_MILLISECONDS, /* double, of processor time: "12ms" */
    TD_PLACE_CPU,          /* double, milli-cores of a quantity */
    TD_PLACE_BYTES,        /* double, of a quantity */
    TD_PLACE_RATE,         /* double, a second: "40/s", "600/m", or a number */
    TD_PLACE_AMOUNT,       /* double, of a quantity: a metric */
    TD_PLACE_CPU_SERIES,   /* struct td_series of these four: a plain value is a constant */
    TD_PLACE_BYTES_SERIES,
    TD_PLACE_RATE_SERIES,
    TD_PLACE_AMOUNT_SERIES,
};

struct td_place_field {
    const char *name;
    enum td_place_kind kind;
    bool is_required;
    size_t offset; /* in what is filled */
};

/* A mapping with these members only. Those that are missing leave what there is. */
int td_place_fields(const struct td_place *place, const struct td_place_field *fields, size_t count,
                    void *ret);

/* One value; missing leaves *ret as it is. */
int td_place_read(const struct td_place *place, enum td_place_kind kind, void *ret);
int td_place_int(const struct td_place *place, int64_t min, int64_t max, int64_t *ret);

struct td_series;

/* sim/scenario_series.c; `number` is CPU, BYTES, RATE or AMOUNT. */
int td_place_series(const struct td_place *place, enum td_place_kind number, struct td_series *ret);
/* {file: x.csv, repeat: true}: both series of a trace. */
int td_place_trace(const struct td_place *place, struct td_series *ret_cpu,
                   struct td_series *ret_memory);
