/*
 * A quantity over time, as a scenario describes it: constant, steps, ramps, a day or a week with a
 * peak, spikes, a recorded trace; with noise that follows from a seed. A pure function of the time
 * since the scenario began (which is midnight before a Monday) and made of additions and
 * multiplications only, so a value is the same bits on every machine.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"

enum td_series_shape {
    TD_SERIES_CONSTANT, /* low */
    TD_SERIES_STEPS,    /* each point's value holds until the next; low before the first */
    TD_SERIES_RAMP,     /* straight between points; the ends hold */
    TD_SERIES_DAY,      /* low at night, high at peak_at, smooth between */
    TD_SERIES_WEEK,     /* the same, on Saturday and Sunday times weekend */
    TD_SERIES_SPIKES,   /* low, and high for `lasts` at the begin of every `every` */
};

struct td_series_point {
    td_duration at; /* since the start; growing */
    double value;
};

struct td_series {
    enum td_series_shape shape;
    double low;
    double high;
    td_duration peak_at; /* since midnight */
    double weekend;      /* factor */
    td_duration every;
    td_duration lasts;
    const struct td_series_point *points;
    size_t point_count;
    td_duration period; /* STEPS, RAMP: begins again after it; 0: never */
    double noise;       /* 0.05: up to five percent up or down */
};

/* Never negative. `seed` tells two series with the same noise apart. */
double td_series_at(const struct td_series *series, td_duration since, uint64_t seed);

/* The same in parts, for a caller that needs one series with many noises: the value without noise,
 * where a moment is between two draws, and the noise of a seed there, in [-1, 1). */
struct td_series_beat {
    int64_t draw;
    double share; /* of the way to the next one */
};
double td_series_plain(const struct td_series *series, td_duration since);
struct td_series_beat td_series_beat(td_duration since);
double td_series_noise(struct td_series_beat beat, uint64_t seed);

/* The next moment after `since` at which the value jumps, or INT64_MAX: between jumps it is smooth.
 */
td_duration td_series_next_jump(const struct td_series *series, td_duration since);
