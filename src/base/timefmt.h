/*
 * Times and durations as text, in Go's forms: RFC 3339 (time.Parse and time.Format with RFC3339Nano
 * or a fixed number of fractional digits) and durations ("1h30m0.5s", ParseDuration and
 * Duration.String). Times are split into seconds and nanoseconds so that every year from 0000 to
 * 9999 that RFC 3339 can write is exact.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"

struct td_arena;
struct td_error;

struct td_instant {
    int64_t unix_seconds; /* since 1970 UTC; negative before */
    int32_t nanos;        /* 0 to 999,999,999 */
};

/* Go's zero time.Time, 0001-01-01T00:00:00Z. */
#define TD_INSTANT_ZERO ((struct td_instant){.unix_seconds = -62135596800, .nanos = 0})

#define TD_TIME_TEXT_BYTES 40     /* room for any time text and its NUL */
#define TD_DURATION_TEXT_BYTES 40 /* room for any duration text and its NUL */

/* Exactly what Go's time.Parse(time.RFC3339, s) takes, any number of fractional digits included
 * (past nine they are cut). */
int td_time_parse(td_str text, struct td_instant *ret, struct td_error *err);

/* The same for a layout that demands exactly `fraction_digits` (1 to 9) digits of a second
 * ("2006-01-02T15:04:05.000000Z07:00" for 6). */
int td_time_parse_fraction(td_str text, int fraction_digits, struct td_instant *ret,
                           struct td_error *err);

/* "2006-01-02T15:04:05Z" with `fraction_digits` (0 to 9) digits of a second, always UTC; returns
 * the length. */
size_t td_time_format(struct td_instant instant, int fraction_digits, char out[TD_TIME_TEXT_BYTES]);
/* The same text, the arena's. */
td_str td_time_text(struct td_arena *arena, struct td_instant instant, int fraction_digits);

/* Between td_instant and td_time; an instant outside td_time's years is clamped. */
td_time td_time_from_instant(struct td_instant instant);
struct td_instant td_time_to_instant(td_time time);

/* Go's time.ParseDuration, every quirk included ("1.5h", "-.5s", "1µs", "0", overflow rejected). */
int td_duration_parse(td_str text, td_duration *ret, struct td_error *err);

/* Go's Duration.String; returns the length. */
size_t td_duration_format(td_duration duration, char out[TD_DURATION_TEXT_BYTES]);
