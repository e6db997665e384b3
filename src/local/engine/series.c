/*
 * The value of a series at a time, shape by shape. Noise is drawn anew each minute from the seed
 * and the minute alone.
 */
#include "local/engine/series.h"

#include <stdbool.h>

#define SERIES_DAY (24 * TD_HOUR)
#define SERIES_NOISE_EVERY TD_MINUTE /* noise is drawn anew, straight lines between */

/* The last point at or before `since`; point_count when there is none. */
static size_t series_point(const struct td_series *series, td_duration since)
{
    size_t low = 0;
    size_t high = series->point_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (series->points[middle].at <= since) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? low - 1 : series->point_count;
}

static double series_steps(const struct td_series *series, td_duration since)
{
    size_t i = series_point(series, since);
    return i < series->point_count ? series->points[i].value : series->low;
}

static double series_ramp(const struct td_series *series, td_duration since)
{
    size_t i = series_point(series, since);
    if (i == series->point_count) {
        return series->point_count > 0 ? series->points[0].value : series->low;
    }
    if (i + 1 == series->point_count) {
        return series->points[i].value;
    }
    const struct td_series_point *from = &series->points[i];
    const struct td_series_point *to = &series->points[i + 1];
    double share = (double)(since - from->at) / (double)(to->at - from->at);
    return from->value + (to->value - from->value) * share;
}

/* Half a day away from the peak is 0, at the peak 1, with level ends: 3x^2 - 2x^3. */
static double series_day(const struct td_series *series, td_duration since)
{
    td_duration away = (since - series->peak_at) % SERIES_DAY;
    away = away < 0 ? away + SERIES_DAY : away;
    away = away > SERIES_DAY / 2 ? SERIES_DAY - away : away;
    double x = 1 - (double)away / (double)(SERIES_DAY / 2);
    return series->low + (series->high - series->low) * (x * x * (3 - 2 * x));
}

static double series_week(const struct td_series *series, td_duration since)
{
    int64_t day = since / SERIES_DAY % 7;
    return series_day(series, since) * (day >= 5 ? series->weekend : 1);
}

static double series_spikes(const struct td_series *series, td_duration since)
{
    return series->every > 0 && since % series->every < series->lasts ? series->high : series->low;
}

/* Uniform in [-1, 1) of the n-th minute: splitmix64. */
static double series_random(uint64_t seed, int64_t n)
{
    uint64_t z = seed + (uint64_t)n * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)(z >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

struct td_series_beat td_series_beat(td_duration since)
{
    return (struct td_series_beat){
        .draw = since / SERIES_NOISE_EVERY,
        .share = (double)(since % SERIES_NOISE_EVERY) / (double)SERIES_NOISE_EVERY,
    };
}

double td_series_noise(struct td_series_beat beat, uint64_t seed)
{
    double from = series_random(seed, beat.draw);
    return from + (series_random(seed, beat.draw + 1) - from) * beat.share;
}

/* Steps and ramps may begin again. */
static td_duration series_inside(const struct td_series *series, td_duration since)
{
    return series->period > 0 ? since % series->period : since;
}

double td_series_plain(const struct td_series *series, td_duration since)
{
    double value = series->low;
    switch (series->shape) {
    case TD_SERIES_CONSTANT:
        break;
    case TD_SERIES_STEPS:
        value = series_steps(series, series_inside(series, since));
        break;
    case TD_SERIES_RAMP:
        value = series_ramp(series, series_inside(series, since));
        break;
    case TD_SERIES_DAY:
        value = series_day(series, since);
        break;
    case TD_SERIES_WEEK:
        value = series_week(series, since);
        break;
    case TD_SERIES_SPIKES:
        value = series_spikes(series, since);
        break;
    }
    return value > 0 ? value : 0;
}

double td_series_at(const struct td_series *series, td_duration since, uint64_t seed)
{
    double value = td_series_plain(series, since);
    if (series->noise > 0) {
        value *= 1 + series->noise * td_series_noise(td_series_beat(since), seed);
    }
    return value > 0 ? value : 0;
}

/* The next point of steps, or the end of the period. */
static td_duration series_next_step(const struct td_series *series, td_duration since)
{
    td_duration inside = series_inside(series, since);
    td_duration next = series->period > 0 ? series->period : INT64_MAX;
    if (series->shape == TD_SERIES_STEPS) {
        size_t i = series_point(series, inside);
        i = i == series->point_count ? 0 : i + 1;
        if (i < series->point_count && series->points[i].at < next) {
            next = series->points[i].at;
        }
    }
    return next < INT64_MAX ? since - inside + next : INT64_MAX;
}

td_duration td_series_next_jump(const struct td_series *series, td_duration since)
{
    switch (series->shape) {
    case TD_SERIES_STEPS:
    case TD_SERIES_RAMP:
        return series_next_step(series, since);
    case TD_SERIES_SPIKES:
        if (series->every > 0) {
            td_duration inside = since % series->every;
            bool is_high = inside < series->lasts && series->lasts < series->every;
            return since - inside + (is_high ? series->lasts : series->every);
        }
        return INT64_MAX;
    case TD_SERIES_WEEK:
        return since - since % SERIES_DAY + SERIES_DAY;
    case TD_SERIES_CONSTANT:
    case TD_SERIES_DAY:
        break;
    }
    return INT64_MAX;
}
