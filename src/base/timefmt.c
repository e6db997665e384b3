/*
 * Times and durations as text, with the answers of Go's time package.
 *
 * Go reads RFC 3339 with a strict parser first and with its general layout parser when that one
 * gives up. The general one takes everything that the strict one takes and gives the same instant,
 * so only it is rebuilt here, with its liberties: an hour of one digit, a comma before the
 * fraction, offsets up to 24:60, and a sign inside a fraction of fixed width (".-00000" is zero).
 *
 * Dates use the proleptic Gregorian calendar. Days are counted from the first of March of a year
 * that is a multiple of 400, so that a leap day is the last day of its year and the 400-year cycle
 * needs no special case. Formatting counts from such a year before every instant that an int64 of
 * seconds can reach, in unsigned numbers that wrap where Go's do.
 */
#include "base/timefmt.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"

#define SECONDS_PER_DAY 86400
#define DAYS_PER_ERA 146097 /* 400 years */
#define NANOS_PER_SECOND 1000000000
#define FRACTION_DIGITS_MAX 9
#define DURATION_MAGNITUDE_MAX ((uint64_t)1 << 63) /* of a negative duration */

/* Days from March 1 of year 0 to 1970-01-01. */
#define EPOCH_DAY_OF_MARCH_YEAR_0 719468

/* March 1 of year -292277022400, the first day that formatting knows, in seconds before 1970. */
#define FIRST_YEAR (-292277022400)
#define FIRST_SECONDS_BEFORE_EPOCH UINT64_C(9223372028741760000)

struct cursor {
    const char *at;
    const char *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool cursor_has_digit(const struct cursor *cursor, ptrdiff_t offset)
{
    return offset < cursor->end - cursor->at && is_digit(cursor->at[offset]);
}

static bool cursor_take(struct cursor *cursor, char byte)
{
    if (cursor->at == cursor->end || *cursor->at != byte) {
        return false;
    }
    cursor->at++;
    return true;
}

/* One or two digits; exactly two when is_fixed. */
static bool cursor_number(struct cursor *cursor, bool is_fixed, int *ret)
{
    if (!cursor_has_digit(cursor, 0)) {
        return false;
    }
    if (!cursor_has_digit(cursor, 1)) {
        if (is_fixed) {
            return false;
        }
        *ret = cursor->at[0] - '0';
        cursor->at++;
        return true;
    }
    *ret = (cursor->at[0] - '0') * 10 + (cursor->at[1] - '0');
    cursor->at += 2;
    return true;
}

static bool year_is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int month_days(int year, int month)
{
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && year_is_leap(year) ? 29 : days[month - 1];
}

/* Days since 1970-01-01 of a date in the years 0 to 9999. */
static int64_t days_from_date(int year, int month, int day)
{
    /* January and February belong to the year that began last March; a full cycle is added so that
     * those of year 0 stay positive. */
    int64_t march_year = year - (month <= 2) + 400;
    int64_t march_month = (month + 9) % 12;
    int64_t day_of_year = (153 * march_month + 2) / 5 + day - 1;
    int64_t era = march_year / 400;
    int64_t year_of_era = march_year % 400;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_PER_ERA - EPOCH_DAY_OF_MARCH_YEAR_0;
}

/* "2006-01-02"; returns what is wrong, or NULL. The day is checked against its month last, as Go
 * does. */
static const char *parse_date(struct cursor *cursor, int64_t *ret_days, bool *ret_day_is_valid)
{
    if (!cursor_has_digit(cursor, 0) || !cursor_has_digit(cursor, 1) ||
        !cursor_has_digit(cursor, 2) || !cursor_has_digit(cursor, 3)) {
        return "a year of four digits is expected";
    }
    int year = 0;
    for (int i = 0; i < 4; i++) {
        year = year * 10 + (*cursor->at++ - '0');
    }
    int month = 0;
    if (!cursor_take(cursor, '-') || !cursor_number(cursor, true, &month)) {
        return "'-' and a month of two digits are expected after the year";
    }
    if (month < 1 || month > 12) {
        return "month out of range";
    }
    int day = 0;
    if (!cursor_take(cursor, '-') || !cursor_number(cursor, true, &day)) {
        return "'-' and a day of two digits are expected after the month";
    }
    *ret_day_is_valid = day >= 1 && day <= month_days(year, month);
    *ret_days = days_from_date(year, month, day);
    return NULL;
}

/* The digits after '.' or ',' as nanoseconds; digits past the ninth are cut. */
static int32_t fraction_nanos(const char *digits, ptrdiff_t count)
{
    int32_t nanos = 0;
    for (ptrdiff_t i = 0; i < FRACTION_DIGITS_MAX; i++) {
        nanos = nanos * 10 + (i < count ? digits[i] - '0' : 0);
    }
    return nanos;
}

static const char *parse_free_fraction(struct cursor *cursor, int32_t *ret_nanos)
{
    *ret_nanos = 0;
    bool has_mark = cursor->at < cursor->end && (*cursor->at == '.' || *cursor->at == ',');
    if (!has_mark || !cursor_has_digit(cursor, 1)) {
        return NULL;
    }
    const char *digits = ++cursor->at;
    while (cursor_has_digit(cursor, 0)) {
        cursor->at++;
    }
    *ret_nanos = fraction_nanos(digits, cursor->at - digits);
    return NULL;
}

/* Exactly `count` characters after the mark. Go reads them as a signed number, so a plus sign or a
 * negative zero passes. */
static const char *parse_fixed_fraction(struct cursor *cursor, int count, int32_t *ret_nanos)
{
    static const char expected[] = "a fraction of the second with a fixed number of digits is "
                                   "expected";
    if (cursor->end - cursor->at < 1 + count || (*cursor->at != '.' && *cursor->at != ',')) {
        return expected;
    }
    const char *digits = cursor->at + 1;
    bool is_negative = *digits == '-';
    int first = is_negative || *digits == '+' ? 1 : 0;
    int32_t nanos = 0;
    for (int i = first; i < count; i++) {
        if (!is_digit(digits[i])) {
            return expected;
        }
        nanos = nanos * 10 + (digits[i] - '0');
    }
    for (int i = count; i < FRACTION_DIGITS_MAX; i++) {
        nanos *= 10;
    }
    if (is_negative && nanos != 0) {
        return "fraction of the second out of range";
    }
    cursor->at += 1 + count;
    *ret_nanos = nanos;
    return NULL;
}

/* "15:04:05" without its fraction. */
static const char *parse_clock(struct cursor *cursor, int64_t *ret_seconds)
{
    int hour = 0;
    if (!cursor_take(cursor, 'T') || !cursor_number(cursor, false, &hour)) {
        return "'T' and an hour are expected after the date";
    }
    if (hour >= 24) {
        return "hour out of range";
    }
    int minute = 0;
    if (!cursor_take(cursor, ':') || !cursor_number(cursor, true, &minute)) {
        return "':' and a minute of two digits are expected after the hour";
    }
    if (minute >= 60) {
        return "minute out of range";
    }
    int second = 0;
    if (!cursor_take(cursor, ':') || !cursor_number(cursor, true, &second)) {
        return "':' and a second of two digits are expected after the minute";
    }
    if (second >= 60) {
        return "second out of range";
    }
    *ret_seconds = ((int64_t)hour * 60 + minute) * 60 + second;
    return NULL;
}

/* "Z" or "+07:00". */
static const char *parse_zone(struct cursor *cursor, int64_t *ret_offset_seconds)
{
    *ret_offset_seconds = 0;
    if (cursor_take(cursor, 'Z')) {
        return NULL;
    }
    static const char expected[] = "'Z' or an offset such as '+07:00' is expected at the end";
    bool is_negative = cursor_take(cursor, '-');
    if (!is_negative && !cursor_take(cursor, '+')) {
        return expected;
    }
    int hour = 0;
    int minute = 0;
    if (!cursor_number(cursor, true, &hour) || !cursor_take(cursor, ':') ||
        !cursor_number(cursor, true, &minute)) {
        return expected;
    }
    /* Go accepts 24 hours and 60 minutes, so they are accepted here. */
    if (hour > 24 || minute > 60) {
        return "offset of the time zone out of range";
    }
    int64_t offset_seconds = ((int64_t)hour * 60 + minute) * 60;
    *ret_offset_seconds = is_negative ? -offset_seconds : offset_seconds;
    return NULL;
}

/* fraction_digits 0: any fraction or none. */
static const char *parse_instant(struct cursor *cursor, int fraction_digits, struct td_instant *ret)
{
    int64_t days = 0;
    bool day_is_valid = false;
    const char *problem = parse_date(cursor, &days, &day_is_valid);
    if (problem) {
        return problem;
    }
    int64_t seconds = 0;
    problem = parse_clock(cursor, &seconds);
    if (problem) {
        return problem;
    }
    int32_t nanos = 0;
    problem = fraction_digits > 0 ? parse_fixed_fraction(cursor, fraction_digits, &nanos)
                                  : parse_free_fraction(cursor, &nanos);
    if (problem) {
        return problem;
    }
    int64_t offset_seconds = 0;
    problem = parse_zone(cursor, &offset_seconds);
    if (problem) {
        return problem;
    }
    if (cursor->at != cursor->end) {
        return "extra text at the end";
    }
    if (!day_is_valid) {
        return "day out of range";
    }
    ret->unix_seconds = days * SECONDS_PER_DAY + seconds - offset_seconds;
    ret->nanos = nanos;
    return NULL;
}

static int time_parse(td_str text, int fraction_digits, struct td_instant *ret,
                      struct td_error *err)
{
    const char *begin = text.len > 0 ? text.ptr : "";
    struct cursor cursor = {.at = begin, .end = begin + text.len};
    struct td_instant instant;
    const char *problem = parse_instant(&cursor, fraction_digits, &instant);
    if (problem) {
        return td_error_set(err, TD_INVALID, "time '%.*s': %s", TD_STR_ARG(text), problem);
    }
    *ret = instant;
    return TD_OK;
}

int td_time_parse(td_str text, struct td_instant *ret, struct td_error *err)
{
    return time_parse(text, 0, ret, err);
}

int td_time_parse_fraction(td_str text, int fraction_digits, struct td_instant *ret,
                           struct td_error *err)
{
    td_assert(fraction_digits >= 1 && fraction_digits <= FRACTION_DIGITS_MAX);
    return time_parse(text, fraction_digits, ret, err);
}

/* Decimal digits of `value` at `out`, with zeros in front up to `width`; returns the place after
 * them. */
static char *put_digits(char *out, uint64_t value, int width)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (width > count) {
        *out++ = '0';
        width--;
    }
    while (count > 0) {
        *out++ = digits[--count];
    }
    return out;
}

/* "2006-01-02" of a day counted from March 1 of FIRST_YEAR. */
static char *put_date(char *out, uint64_t day)
{
    uint64_t era = day / DAYS_PER_ERA;
    uint64_t day_of_era = day % DAYS_PER_ERA;
    /* A day is taken off for each leap day before it, so that the rest divides evenly by 365. */
    uint64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / (DAYS_PER_ERA - 1)) /
        365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t march_month = (5 * day_of_year + 2) / 153;
    uint64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
    int64_t year = FIRST_YEAR + (int64_t)(era * 400 + year_of_era) + (month <= 2);
    if (year < 0) {
        *out++ = '-';
    }
    out = put_digits(out, year < 0 ? (uint64_t)-year : (uint64_t)year, 4);
    *out++ = '-';
    out = put_digits(out, month, 2);
    *out++ = '-';
    return put_digits(out, day_of_year - (153 * march_month + 2) / 5 + 1, 2);
}

size_t td_time_format(struct td_instant instant, int fraction_digits, char out[TD_TIME_TEXT_BYTES])
{
    td_assert(fraction_digits >= 0 && fraction_digits <= FRACTION_DIGITS_MAX);
    td_assert(instant.nanos >= 0 && instant.nanos < NANOS_PER_SECOND);
    uint64_t seconds = (uint64_t)instant.unix_seconds + FIRST_SECONDS_BEFORE_EPOCH;
    uint64_t second_of_day = seconds % SECONDS_PER_DAY;
    char *at = put_date(out, seconds / SECONDS_PER_DAY);
    *at++ = 'T';
    at = put_digits(at, second_of_day / 3600, 2);
    *at++ = ':';
    at = put_digits(at, second_of_day / 60 % 60, 2);
    *at++ = ':';
    at = put_digits(at, second_of_day % 60, 2);
    if (fraction_digits > 0) {
        *at++ = '.';
        at = put_digits(at, (uint64_t)instant.nanos, FRACTION_DIGITS_MAX) -
             (FRACTION_DIGITS_MAX - fraction_digits);
    }
    *at++ = 'Z';
    *at = '\0';
    return (size_t)(at - out);
}

td_str td_time_text(struct td_arena *arena, struct td_instant instant, int fraction_digits)
{
    char text[TD_TIME_TEXT_BYTES];
    size_t len = td_time_format(instant, fraction_digits, text);
    return td_arena_copy_str(arena, (td_str){.ptr = text, .len = len});
}

td_time td_time_from_instant(struct td_instant instant)
{
    td_time nanos;
    if (instant.unix_seconds < 0) {
        /* One second is borrowed so that the earliest nanoseconds, whose whole second lies before
         * the range, do not overflow on the way. */
        if (__builtin_mul_overflow(instant.unix_seconds + 1, NANOS_PER_SECOND, &nanos) ||
            __builtin_add_overflow(nanos, instant.nanos - NANOS_PER_SECOND, &nanos)) {
            return INT64_MIN;
        }
        return nanos;
    }
    if (__builtin_mul_overflow(instant.unix_seconds, NANOS_PER_SECOND, &nanos) ||
        __builtin_add_overflow(nanos, instant.nanos, &nanos)) {
        return INT64_MAX;
    }
    return nanos;
}

struct td_instant td_time_to_instant(td_time time)
{
    int64_t seconds = time / NANOS_PER_SECOND;
    int32_t nanos = (int32_t)(time % NANOS_PER_SECOND);
    if (nanos < 0) {
        seconds--;
        nanos += NANOS_PER_SECOND;
    }
    return (struct td_instant){.unix_seconds = seconds, .nanos = nanos};
}

/* Digits as a number up to 2^63; false when it is larger. */
static bool duration_integer(struct cursor *cursor, uint64_t *ret)
{
    uint64_t value = 0;
    for (; cursor_has_digit(cursor, 0); cursor->at++) {
        if (value > DURATION_MAGNITUDE_MAX / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(*cursor->at - '0');
        if (value > DURATION_MAGNITUDE_MAX) {
            return false;
        }
    }
    *ret = value;
    return true;
}

/* Digits of a fraction: value / scale. Digits that no longer fit are read and dropped. */
static uint64_t duration_fraction(struct cursor *cursor, double *ret_scale)
{
    uint64_t value = 0;
    double scale = 1;
    bool is_full = false;
    for (; cursor_has_digit(cursor, 0); cursor->at++) {
        if (is_full || value > (DURATION_MAGNITUDE_MAX - 1) / 10) {
            is_full = true;
            continue;
        }
        uint64_t next = value * 10 + (uint64_t)(*cursor->at - '0');
        if (next > DURATION_MAGNITUDE_MAX) {
            is_full = true;
            continue;
        }
        value = next;
        scale *= 10;
    }
    *ret_scale = scale;
    return value;
}

/* Everything up to the next digit or point; 0 when it is no unit. */
static uint64_t duration_unit(struct cursor *cursor, bool *ret_is_missing)
{
    static const struct {
        td_str name;
        td_duration nanos;
    } units[] = {
        {TD_STR_INIT("ns"), TD_NANOSECOND},
        {TD_STR_INIT("us"), TD_MICROSECOND},
        {TD_STR_INIT("\u00b5s"), TD_MICROSECOND}, /* micro sign */
        {TD_STR_INIT("\u03bcs"), TD_MICROSECOND}, /* Greek letter mu */
        {TD_STR_INIT("ms"), TD_MILLISECOND},
        {TD_STR_INIT("s"), TD_SECOND},
        {TD_STR_INIT("m"), TD_MINUTE},
        {TD_STR_INIT("h"), TD_HOUR},
    };
    const char *begin = cursor->at;
    while (cursor->at < cursor->end && *cursor->at != '.' && !is_digit(*cursor->at)) {
        cursor->at++;
    }
    td_str name = {.ptr = begin, .len = (size_t)(cursor->at - begin)};
    *ret_is_missing = name.len == 0;
    for (size_t i = 0; i < TD_COUNT(units); i++) {
        if (td_str_equal(name, units[i].name)) {
            return (uint64_t)units[i].nanos;
        }
    }
    return 0;
}

/* One number with its unit, such as "1.5h", as nanoseconds up to 2^63; returns what is wrong. */
static const char *duration_term(struct cursor *cursor, uint64_t *ret)
{
    static const char too_large[] = "out of range";
    const char *begin = cursor->at;
    uint64_t value = 0;
    if (!duration_integer(cursor, &value)) {
        return too_large;
    }
    bool has_digits = cursor->at != begin;
    uint64_t fraction = 0;
    double scale = 1;
    if (cursor_take(cursor, '.')) {
        const char *digits = cursor->at;
        fraction = duration_fraction(cursor, &scale);
        has_digits = has_digits || cursor->at != digits;
    }
    if (!has_digits) {
        return "a number is expected";
    }
    bool unit_is_missing = false;
    uint64_t unit = duration_unit(cursor, &unit_is_missing);
    if (unit == 0) {
        return unit_is_missing ? "missing unit" : "unknown unit";
    }
    if (value > DURATION_MAGNITUDE_MAX / unit) {
        return too_large;
    }
    value *= unit;
    if (fraction > 0) {
        value += (uint64_t)((double)fraction * ((double)unit / scale));
        if (value > DURATION_MAGNITUDE_MAX) {
            return too_large;
        }
    }
    *ret = value;
    return NULL;
}

static const char *duration_terms(struct cursor *cursor, uint64_t *ret)
{
    if (cursor->end - cursor->at == 1 && *cursor->at == '0') {
        *ret = 0;
        return NULL;
    }
    if (cursor->at == cursor->end) {
        return "a number is expected";
    }
    uint64_t sum = 0;
    while (cursor->at < cursor->end) {
        uint64_t term = 0;
        const char *problem = duration_term(cursor, &term);
        if (problem) {
            return problem;
        }
        /* Twice 2^63 wraps to zero and passes, as it does in Go. */
        sum += term;
        if (sum > DURATION_MAGNITUDE_MAX) {
            return "out of range";
        }
    }
    *ret = sum;
    return NULL;
}

int td_duration_parse(td_str text, td_duration *ret, struct td_error *err)
{
    const char *begin = text.len > 0 ? text.ptr : "";
    struct cursor cursor = {.at = begin, .end = begin + text.len};
    bool is_negative = cursor_take(&cursor, '-');
    if (!is_negative) {
        (void)cursor_take(&cursor, '+'); /* A plus sign is optional. */
    }
    uint64_t magnitude = 0;
    const char *problem = duration_terms(&cursor, &magnitude);
    if (!problem && !is_negative && magnitude == DURATION_MAGNITUDE_MAX) {
        problem = "out of range";
    }
    if (problem) {
        return td_error_set(err, TD_INVALID, "duration '%.*s': %s", TD_STR_ARG(text), problem);
    }
    *ret = (td_duration)(is_negative ? 0 - magnitude : magnitude);
    return TD_OK;
}

/* value / 10^digits with no zeros at the end, and no point when nothing is left of the fraction. */
static char *put_decimal(char *out, uint64_t value, int digits)
{
    while (digits > 0 && value % 10 == 0) {
        value /= 10;
        digits--;
    }
    uint64_t divisor = 1;
    for (int i = 0; i < digits; i++) {
        divisor *= 10;
    }
    out = put_digits(out, value / divisor, 1);
    if (digits > 0) {
        *out++ = '.';
        out = put_digits(out, value % divisor, digits);
    }
    return out;
}

static char *put_text(char *out, td_str text)
{
    memcpy(out, text.ptr, text.len);
    return out + text.len;
}

static char *put_below_second(char *out, uint64_t nanos)
{
    if (nanos < (uint64_t)TD_MICROSECOND) {
        return put_text(put_digits(out, nanos, 1), TD_STR("ns"));
    }
    if (nanos < (uint64_t)TD_MILLISECOND) {
        return put_text(put_decimal(out, nanos, 3), TD_STR("\u00b5s"));
    }
    return put_text(put_decimal(out, nanos, 6), TD_STR("ms"));
}

static char *put_from_second(char *out, uint64_t nanos)
{
    uint64_t minutes = nanos / (uint64_t)TD_MINUTE;
    if (minutes >= 60) {
        out = put_digits(out, minutes / 60, 1);
        *out++ = 'h';
    }
    if (minutes > 0) {
        out = put_digits(out, minutes % 60, 1);
        *out++ = 'm';
    }
    out = put_decimal(out, nanos % (uint64_t)TD_MINUTE, FRACTION_DIGITS_MAX);
    *out++ = 's';
    return out;
}

size_t td_duration_format(td_duration duration, char out[TD_DURATION_TEXT_BYTES])
{
    uint64_t nanos = duration < 0 ? 0 - (uint64_t)duration : (uint64_t)duration;
    char *at = out;
    if (duration < 0) {
        *at++ = '-';
    }
    if (nanos == 0) {
        at = put_text(at, TD_STR("0s"));
    } else if (nanos < (uint64_t)TD_SECOND) {
        at = put_below_second(at, nanos);
    } else {
        at = put_from_second(at, nanos);
    }
    *at = '\0';
    return (size_t)(at - out);
}
