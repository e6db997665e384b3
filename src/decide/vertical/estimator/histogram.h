/*
 * Weighted histograms of usage with upstream's arithmetic, bit for bit: bucketing by an exponential
 * or a linear scheme, and plain histograms (decaying.h adds age). Weights are doubles, stored only
 * for the stretch of buckets that ever got one, so a container whose usage stays within a factor of
 * two costs a few hundred bytes. A histogram does not hold its scheme: callers pass the same one
 * every time. init/done own the stretch; everything else is pure. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/vpa/checkpoint.h"

struct td_error;

struct td_bucketing {
    bool is_linear;
    int32_t count;          /* buckets, at least 2 */
    double first;           /* size of the first bucket; linear: of every bucket */
    double ratio;           /* exponential: of one bucket's size to that before it */
    double ratio_minus_one; /* likewise */
    double log_ratio;       /* likewise */
    double epsilon;         /* weights below it count as nothing */
};

#define TD_BUCKETS_MAX 65535

/* Refuses what upstream's constructors refuse, and more than TD_BUCKETS_MAX buckets. */
int td_bucketing_exponential(double max, double first, double ratio, double epsilon,
                             struct td_bucketing *ret, struct td_error *err);
int td_bucketing_linear(double max, double size, double epsilon, struct td_bucketing *ret,
                        struct td_error *err);
double td_bucketing_start(const struct td_bucketing *scheme, int32_t bucket);
int32_t td_bucketing_find(const struct td_bucketing *scheme, double value);

struct td_histogram {
    double *weights; /* of buckets low .. low + stored - 1; owned, NULL while nothing is stored */
    double total;
    uint16_t low;
    uint16_t stored;
    uint16_t min; /* lowest bucket that counts; count - 1 in an empty one */
    uint16_t max; /* highest bucket that counts; 0 in an empty one */
};

void td_histogram_init(struct td_histogram *histogram, const struct td_bucketing *scheme);
void td_histogram_done(struct td_histogram *histogram);

/* Weights are not negative (asserted). */
void td_histogram_add(struct td_histogram *histogram, const struct td_bucketing *scheme,
                      double value, double weight);
void td_histogram_subtract(struct td_histogram *histogram, const struct td_bucketing *scheme,
                           double value, double weight);
void td_histogram_merge(struct td_histogram *histogram, const struct td_bucketing *scheme,
                        const struct td_histogram *other);
void td_histogram_scale(struct td_histogram *histogram, const struct td_bucketing *scheme,
                        double factor);
bool td_histogram_is_empty(const struct td_histogram *histogram, const struct td_bucketing *scheme);
double td_histogram_percentile(const struct td_histogram *histogram,
                               const struct td_bucketing *scheme, double fraction);
static inline double td_histogram_weight(const struct td_histogram *histogram, int32_t bucket)
{
    int32_t index = bucket - histogram->low;
    return index >= 0 && index < histogram->stored ? histogram->weights[index] : 0.0;
}
size_t td_histogram_bytes(const struct td_histogram *histogram); /* on the heap */

/* Weights and total; the reference is left as it is. The scheme has at most
 * TD_CHECKPOINT_BUCKETS_MAX buckets (asserted). */
void td_histogram_save(const struct td_histogram *histogram, struct td_histogram_checkpoint *ret);

/* Adds what was saved. Refuses a negative total and buckets that the scheme does not have. */
int td_histogram_load(struct td_histogram *histogram, const struct td_bucketing *scheme,
                      const struct td_histogram_checkpoint *checkpoint, struct td_error *err);
