/*
 * Values of a scenario file, each read with its place for the message: durations ("3d", "9h30m",
 * "90s"), quantities, rates ("40/s"), percents, times of day ("14:00"), numbers, names. The reader
 * of an object names the members it knows; others are refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "local/series.h"

struct td_error;

/* Where a value is: for messages. */
struct td_place {
    struct td_arena *arena;
    td_str file;
    td_str field;                /* "spec.demand[0].requests.low" */
    const struct td_json *value; /* NULL: missing */
    struct td_error *err;
};

struct td_place td_place_member(const struct td_place *place, const char *name);
struct td_place td_place_item(const struct td_place *place, const struct td_json *item,
                              size_t index);

/* Sets the error: "FILE:LINE: FIELD: VALUE: why". Returns TD_INVALID. */
int td_place_refuse(const struct td_place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* It is an object and has only these members; `names` ends with NULL. */
int td_place_object(const struct td_place *place, const char *const *names);
int td_place_array(const struct td_place *place);

/* Readers: a missing value leaves *ret as it is, unless it is required. */
int td_place_text(const struct td_place *place, bool is_required, td_str *ret);
int td_place_bool(const struct td_place *place, bool *ret);
int td_place_int(const struct td_place *place, int64_t min, int64_t max, int64_t *ret);
int td_place_number(const struct td_place *place, double min, double *ret);
int td_place_duration(const struct td_place *place, td_duration *ret); /* not negative */
int td_place_time_of_day(const struct td_place *place, td_duration *ret);
int td_place_share(const struct td_place *place, double *ret); /* "5%" or 0.05; 0 to 1 */
int td_place_cpu(const struct td_place *place, double *ret);   /* milli-cores, of a quantity */
int td_place_bytes(const struct td_place *place, double *ret); /* of a quantity */
int td_place_rate(const struct td_place *place, double *ret);  /* "40/s", "600/m", or a number */

/* How the numbers of a series are written. */
typedef int (*td_place_number_fn)(const struct td_place *place, double *ret);

/* A series: a plain value is a constant; an object has shape and what belongs to it. */
int td_place_series(const struct td_place *place, td_place_number_fn number, struct td_series *ret);
