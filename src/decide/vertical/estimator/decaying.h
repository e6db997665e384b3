/*
 * Histograms whose weights halve with age, with upstream's arithmetic, bit for bit. Times are
 * instants because checkpoints may carry any year. As histogram.h otherwise: init/done own memory,
 * the scheme is passed every time, one owner, no locking.
 */
#pragma once

#include <stdbool.h>

#include "base/os/clock.h"
#include "base/timefmt.h"
#include "decide/vertical/estimator/histogram.h"

struct td_error;

struct td_decay {
    struct td_bucketing scheme;
    td_duration half_life; /* above 0 */
};

struct td_decaying {
    struct td_histogram plain;
    struct td_instant reference; /* weights are as of this time; TD_INSTANT_ZERO at first */
};

void td_decaying_init(struct td_decaying *histogram, const struct td_decay *decay);
void td_decaying_done(struct td_decaying *histogram);
void td_decaying_add(struct td_decaying *histogram, const struct td_decay *decay, double value,
                     double weight, struct td_instant time);
void td_decaying_subtract(struct td_decaying *histogram, const struct td_decay *decay, double value,
                          double weight, struct td_instant time);

/* Whichever reference is older is moved to the newer one, so `other` changes too, as upstream's
 * does. */
void td_decaying_merge(struct td_decaying *histogram, const struct td_decay *decay,
                       struct td_decaying *other);
double td_decaying_percentile(const struct td_decaying *histogram, const struct td_decay *decay,
                              double fraction);
bool td_decaying_is_empty(const struct td_decaying *histogram, const struct td_decay *decay);
void td_decaying_save(const struct td_decaying *histogram, struct td_histogram_checkpoint *ret);
int td_decaying_load(struct td_decaying *histogram, const struct td_decay *decay,
                     const struct td_histogram_checkpoint *checkpoint, struct td_error *err);

/* A copy that owns its own weights. */
void td_decaying_copy(const struct td_decaying *from, struct td_decaying *ret);

/* The difference of two instants in nanoseconds, clamped to int64 as Go's Time.Sub. */
td_duration td_instant_since(struct td_instant later, struct td_instant earlier);
static inline bool td_instant_before(struct td_instant a, struct td_instant b)
{
    return a.unix_seconds < b.unix_seconds ||
           (a.unix_seconds == b.unix_seconds && a.nanos < b.nanos);
}
bool td_instant_is_zero(struct td_instant instant);
