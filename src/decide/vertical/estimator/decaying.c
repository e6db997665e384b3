/*
 * Weights that halve: instead of ageing old weights at every sample, a new one is made heavier by
 * 2^(age of the reference in half-lives). When that exponent grows past 100 the reference moves and
 * all weights are scaled once, by a power of two, which is exact.
 */
#include "decide/vertical/estimator/decaying.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "decide/vertical/estimator/gomath.h"

#define DECAY_EXPONENT_MAX 100 /* half-lives past the reference before it is moved */
#define NANOS_PER_SECOND 1000000000LL
#define SECONDS_SPAN_MAX 9223372036LL  /* whole seconds that fit in int64 nanoseconds */
#define YEAR_ONE_SECONDS 62135596800LL /* from 0001-01-01 to 1970-01-01 */

bool td_instant_is_zero(struct td_instant instant)
{
    const struct td_instant zero = TD_INSTANT_ZERO;
    return instant.unix_seconds == zero.unix_seconds && instant.nanos == zero.nanos;
}

td_duration td_instant_since(struct td_instant later, struct td_instant earlier)
{
    int64_t seconds = later.unix_seconds - earlier.unix_seconds;
    int64_t nanos = later.nanos - earlier.nanos;
    if (seconds >= -SECONDS_SPAN_MAX + 1 && seconds <= SECONDS_SPAN_MAX - 1) {
        return seconds * NANOS_PER_SECOND + nanos;
    }
    __int128 exact = (__int128)seconds * NANOS_PER_SECOND + nanos;
    if (exact > INT64_MAX) {
        return INT64_MAX;
    }
    return exact < INT64_MIN ? INT64_MIN : (td_duration)exact;
}

static struct td_instant instant_add(struct td_instant instant, td_duration span)
{
    int64_t nanos = instant.nanos + span % NANOS_PER_SECOND;
    int64_t seconds = instant.unix_seconds + span / NANOS_PER_SECOND;
    if (nanos < 0) {
        nanos += NANOS_PER_SECOND;
        seconds--;
    } else if (nanos >= NANOS_PER_SECOND) {
        nanos -= NANOS_PER_SECOND;
        seconds++;
    }
    return (struct td_instant){.unix_seconds = seconds, .nanos = (int32_t)nanos};
}

/* The nearest multiple of `unit` counted from the year 1, halves up: Go's Time.Round. */
static struct td_instant instant_round(struct td_instant instant, td_duration unit)
{
    if (unit <= 0) {
        return instant;
    }
    __int128 since =
        (__int128)(instant.unix_seconds + YEAR_ONE_SECONDS) * NANOS_PER_SECOND + instant.nanos;
    int64_t rest = (int64_t)(since % unit);
    if (rest < 0) {
        rest += unit;
    }
    bool is_down = rest < unit - rest;
    return instant_add(instant, is_down ? -rest : unit - rest);
}

static void decaying_shift(struct td_decaying *histogram, const struct td_decay *decay,
                           struct td_instant to)
{
    to = instant_round(to, decay->half_life);
    double half_lives =
        (double)td_instant_since(histogram->reference, to) / (double)decay->half_life;
    double exponent = floor(half_lives + 0.5);
    /* Past these the factor is 0 or infinite; the clamp only keeps the conversion defined. */
    exponent = fmin(fmax(exponent, -100000.0), 100000.0);
    td_histogram_scale(&histogram->plain, &decay->scheme, ldexp(1.0, (int)exponent));
    histogram->reference = to;
}

/* What a weight at `time` is multiplied by. */
static double decaying_factor(struct td_decaying *histogram, const struct td_decay *decay,
                              struct td_instant time)
{
    /* Go's multiplication wraps; half-lives that long are refused with the flags. */
    td_duration span = (td_duration)((uint64_t)decay->half_life * DECAY_EXPONENT_MAX);
    if (td_instant_before(instant_add(histogram->reference, span), time)) {
        decaying_shift(histogram, decay, time);
    }
    return td_go_exp2((double)td_instant_since(time, histogram->reference) /
                      (double)decay->half_life);
}

void td_decaying_init(struct td_decaying *histogram, const struct td_decay *decay)
{
    td_histogram_init(&histogram->plain, &decay->scheme);
    histogram->reference = TD_INSTANT_ZERO;
}

void td_decaying_done(struct td_decaying *histogram)
{
    td_histogram_done(&histogram->plain);
}

void td_decaying_add(struct td_decaying *histogram, const struct td_decay *decay, double value,
                     double weight, struct td_instant time)
{
    double factor = decaying_factor(histogram, decay, time);
    td_histogram_add(&histogram->plain, &decay->scheme, value, weight * factor);
}

void td_decaying_subtract(struct td_decaying *histogram, const struct td_decay *decay, double value,
                          double weight, struct td_instant time)
{
    double factor = decaying_factor(histogram, decay, time);
    td_histogram_subtract(&histogram->plain, &decay->scheme, value, weight * factor);
}

void td_decaying_merge(struct td_decaying *histogram, const struct td_decay *decay,
                       struct td_decaying *other)
{
    if (td_instant_before(histogram->reference, other->reference)) {
        decaying_shift(histogram, decay, other->reference);
    } else if (td_instant_before(other->reference, histogram->reference)) {
        decaying_shift(other, decay, histogram->reference);
    }
    td_histogram_merge(&histogram->plain, &decay->scheme, &other->plain);
}

double td_decaying_percentile(const struct td_decaying *histogram, const struct td_decay *decay,
                              double fraction)
{
    return td_histogram_percentile(&histogram->plain, &decay->scheme, fraction);
}

bool td_decaying_is_empty(const struct td_decaying *histogram, const struct td_decay *decay)
{
    return td_histogram_is_empty(&histogram->plain, &decay->scheme);
}

void td_decaying_save(const struct td_decaying *histogram, struct td_histogram_checkpoint *ret)
{
    td_histogram_save(&histogram->plain, ret);
    ret->reference = histogram->reference;
}

int td_decaying_load(struct td_decaying *histogram, const struct td_decay *decay,
                     const struct td_histogram_checkpoint *checkpoint, struct td_error *err)
{
    int code = td_histogram_load(&histogram->plain, &decay->scheme, checkpoint, err);
    if (code == 0) {
        histogram->reference = checkpoint->reference;
    }
    return code;
}

void td_decaying_copy(const struct td_decaying *from, struct td_decaying *ret)
{
    *ret = *from;
    if (from->plain.stored > 0) {
        ret->plain.weights = td_alloc(from->plain.stored * sizeof(double));
        memcpy(ret->plain.weights, from->plain.weights, from->plain.stored * sizeof(double));
    }
}
