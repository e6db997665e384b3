/*
 * Bit-exactness is the point of this file: every sum and product is taken in the order upstream
 * takes it. Two properties need care. Weights below epsilon stay stored outside [min, max] and
 * count again when more is added to their bucket, so the stored stretch covers every bucket that
 * ever got a weight, not only those that count. And scaling touches only [min, max].
 */
#include "decide/vertical/estimator/histogram.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "decide/vertical/estimator/gomath.h"

#define CHECKPOINT_WEIGHT_MAX 10000

static int bucketing_count(double count, struct td_bucketing *scheme, struct td_error *err)
{
    if (!(count >= 1) || count > TD_BUCKETS_MAX) {
        return td_error_set(err, TD_INVALID, "bucketing: %g buckets are not in 1..%d", count,
                            TD_BUCKETS_MAX);
    }
    scheme->count = (int32_t)count;
    return TD_OK;
}

int td_bucketing_exponential(double max, double first, double ratio, double epsilon,
                             struct td_bucketing *ret, struct td_error *err)
{
    if (!(max > 0) || !(first > 0) || !(ratio > 1) || !(epsilon > 0)) {
        return td_error_set(err, TD_INVALID,
                            "bucketing: max %g, first %g and epsilon %g must be above 0, ratio %g "
                            "above 1",
                            max, first, epsilon, ratio);
    }
    struct td_bucketing made = {.first = first,
                                .ratio = ratio,
                                .ratio_minus_one = ratio - 1,
                                .log_ratio = td_go_log(ratio),
                                .epsilon = epsilon};
    double last = td_go_log(max * (ratio - 1) / first + 1) / made.log_ratio;
    int code = bucketing_count(ceil(last) + 1, &made, err);
    if (code == TD_OK) {
        *ret = made;
    }
    return code;
}

int td_bucketing_linear(double max, double size, double epsilon, struct td_bucketing *ret,
                        struct td_error *err)
{
    if (!(max > 0) || !(size > 0) || !(epsilon > 0)) {
        return td_error_set(err, TD_INVALID,
                            "bucketing: max %g, size %g and epsilon %g must be above 0", max, size,
                            epsilon);
    }
    struct td_bucketing made = {.is_linear = true, .first = size, .epsilon = epsilon};
    int code = bucketing_count(ceil(max / size) + 1, &made, err);
    if (code == TD_OK) {
        *ret = made;
    }
    return code;
}

double td_bucketing_start(const struct td_bucketing *scheme, int32_t bucket)
{
    td_assert(bucket >= 0);
    td_assert(bucket < scheme->count);
    if (scheme->is_linear) {
        return (double)bucket * scheme->first;
    }
    if (bucket == 0) {
        return 0.0;
    }
    return scheme->first * (td_go_pow(scheme->ratio, bucket) - 1) / scheme->ratio_minus_one;
}

int32_t td_bucketing_find(const struct td_bucketing *scheme, double value)
{
    double position;
    if (scheme->is_linear) {
        position = value / scheme->first;
    } else if (value < scheme->first) {
        return 0;
    } else {
        position =
            td_go_log(value * scheme->ratio_minus_one / scheme->first + 1) / scheme->log_ratio;
    }
    if (position >= (double)scheme->count) {
        return scheme->count - 1;
    }
    return position > 0 ? (int32_t)position : 0;
}

void td_histogram_init(struct td_histogram *histogram, const struct td_bucketing *scheme)
{
    *histogram = (struct td_histogram){.min = (uint16_t)(scheme->count - 1)};
}

void td_histogram_done(struct td_histogram *histogram)
{
    td_free(histogram->weights);
    *histogram = (struct td_histogram){.weights = NULL};
}

size_t td_histogram_bytes(const struct td_histogram *histogram)
{
    return histogram->stored * sizeof(double);
}

/* Makes the stored stretch cover [low, high]. */
static void histogram_cover(struct td_histogram *histogram, int32_t low, int32_t high)
{
    int32_t old_low = histogram->low;
    int32_t old_end = old_low + histogram->stored;
    if (histogram->stored > 0 && low >= old_low && high < old_end) {
        return;
    }
    int32_t new_low = histogram->stored > 0 && old_low < low ? old_low : low;
    int32_t new_end = histogram->stored > 0 && old_end > high + 1 ? old_end : high + 1;
    double *weights = td_alloc_zero((size_t)(new_end - new_low), sizeof(double));
    if (histogram->stored > 0) {
        memcpy(weights + (old_low - new_low), histogram->weights,
               histogram->stored * sizeof(double));
    }
    td_free(histogram->weights);
    histogram->weights = weights;
    histogram->low = (uint16_t)new_low;
    histogram->stored = (uint16_t)(new_end - new_low);
}

static double *histogram_at(struct td_histogram *histogram, int32_t bucket)
{
    if (bucket < histogram->low || bucket >= histogram->low + histogram->stored) {
        histogram_cover(histogram, bucket, bucket);
    }
    return &histogram->weights[bucket - histogram->low];
}

static void histogram_shrink(struct td_histogram *histogram, const struct td_bucketing *scheme)
{
    int32_t last = scheme->count - 1;
    int32_t min = histogram->min;
    int32_t max = histogram->max;
    while (min < last && td_histogram_weight(histogram, min) < scheme->epsilon) {
        min++;
    }
    while (max > 0 && td_histogram_weight(histogram, max) < scheme->epsilon) {
        max--;
    }
    histogram->min = (uint16_t)min;
    histogram->max = (uint16_t)max;
}

void td_histogram_add(struct td_histogram *histogram, const struct td_bucketing *scheme,
                      double value, double weight)
{
    td_assert(weight >= 0);
    int32_t bucket = td_bucketing_find(scheme, value);
    double *place = histogram_at(histogram, bucket);
    *place += weight;
    histogram->total += weight;
    if (bucket < histogram->min && *place >= scheme->epsilon) {
        histogram->min = (uint16_t)bucket;
    }
    if (bucket > histogram->max && *place >= scheme->epsilon) {
        histogram->max = (uint16_t)bucket;
    }
}

static double subtract_safely(double value, double part, double epsilon)
{
    value -= part;
    return value < epsilon ? 0.0 : value;
}

void td_histogram_subtract(struct td_histogram *histogram, const struct td_bucketing *scheme,
                           double value, double weight)
{
    td_assert(weight >= 0);
    int32_t bucket = td_bucketing_find(scheme, value);
    histogram->total = subtract_safely(histogram->total, weight, scheme->epsilon);
    /* A bucket without a stored weight holds 0 and stays at 0. */
    if (bucket >= histogram->low && bucket < histogram->low + histogram->stored) {
        double *place = &histogram->weights[bucket - histogram->low];
        *place = subtract_safely(*place, weight, scheme->epsilon);
    }
    histogram_shrink(histogram, scheme);
}

void td_histogram_merge(struct td_histogram *histogram, const struct td_bucketing *scheme,
                        const struct td_histogram *other)
{
    td_assert(other->max < scheme->count); /* both are of one scheme */
    if (other->min <= other->max) {
        histogram_cover(histogram, other->min, other->max);
        for (int32_t bucket = other->min; bucket <= other->max; bucket++) {
            histogram->weights[bucket - histogram->low] += td_histogram_weight(other, bucket);
        }
    }
    histogram->total += other->total;
    if (other->min < histogram->min) {
        histogram->min = other->min;
    }
    if (other->max > histogram->max) {
        histogram->max = other->max;
    }
}

void td_histogram_scale(struct td_histogram *histogram, const struct td_bucketing *scheme,
                        double factor)
{
    td_assert(factor >= 0);
    int32_t end = histogram->low + histogram->stored;
    int32_t from = histogram->min > histogram->low ? histogram->min : histogram->low;
    for (int32_t bucket = from; bucket <= histogram->max && bucket < end; bucket++) {
        histogram->weights[bucket - histogram->low] *= factor;
    }
    histogram->total *= factor;
    histogram_shrink(histogram, scheme);
}

bool td_histogram_is_empty(const struct td_histogram *histogram, const struct td_bucketing *scheme)
{
    return td_histogram_weight(histogram, histogram->min) < scheme->epsilon;
}

double td_histogram_percentile(const struct td_histogram *histogram,
                               const struct td_bucketing *scheme, double fraction)
{
    if (td_histogram_is_empty(histogram, scheme)) {
        return 0.0;
    }
    double threshold = fraction * histogram->total;
    double sum = 0.0;
    int32_t bucket = histogram->min;
    for (; bucket < histogram->max; bucket++) {
        sum += td_histogram_weight(histogram, bucket);
        if (sum >= threshold) {
            break;
        }
    }
    return td_bucketing_start(scheme, bucket < scheme->count - 1 ? bucket + 1 : bucket);
}

void td_histogram_save(const struct td_histogram *histogram, struct td_histogram_checkpoint *ret)
{
    double most = 0.0;
    td_assert(histogram->max < TD_CHECKPOINT_BUCKETS_MAX);
    memset(ret->weights, 0, sizeof(ret->weights));
    ret->total_weight = histogram->total;
    for (int32_t bucket = histogram->min; bucket <= histogram->max; bucket++) {
        double weight = td_histogram_weight(histogram, bucket);
        most = weight > most ? weight : most;
    }
    double ratio = (double)CHECKPOINT_WEIGHT_MAX / most;
    for (int32_t bucket = histogram->min; most > 0 && bucket <= histogram->max; bucket++) {
        double scaled = floor(td_histogram_weight(histogram, bucket) * ratio + 0.5);
        ret->weights[bucket] = scaled > 0 && scaled <= UINT32_MAX ? (uint32_t)scaled : 0;
    }
}

int td_histogram_load(struct td_histogram *histogram, const struct td_bucketing *scheme,
                      const struct td_histogram_checkpoint *checkpoint, struct td_error *err)
{
    int64_t sum = 0;
    if (!(checkpoint->total_weight >= 0)) {
        return td_error_set(err, TD_INVALID, "totalWeight: %g is negative",
                            checkpoint->total_weight);
    }
    for (int32_t bucket = 0; bucket < TD_CHECKPOINT_BUCKETS_MAX; bucket++) {
        sum += checkpoint->weights[bucket];
        if (checkpoint->weights[bucket] > 0 && bucket >= scheme->count) {
            return td_error_set(err, TD_INVALID, "bucketWeights: bucket %d of %d", bucket,
                                scheme->count);
        }
    }
    if (sum == 0) {
        return TD_OK;
    }
    double ratio = checkpoint->total_weight / (double)sum;
    for (int32_t bucket = 0; bucket < TD_CHECKPOINT_BUCKETS_MAX; bucket++) {
        if (checkpoint->weights[bucket] == 0) {
            continue;
        }
        if (bucket < histogram->min) {
            histogram->min = (uint16_t)bucket;
        }
        if (bucket > histogram->max) {
            histogram->max = (uint16_t)bucket;
        }
        *histogram_at(histogram, bucket) += (double)checkpoint->weights[bucket] * ratio;
    }
    histogram->total += checkpoint->total_weight;
    histogram_shrink(histogram, scheme);
    return TD_OK;
}
