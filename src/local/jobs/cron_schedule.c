/*
 * The next time of a schedule: fields are bit sets, and the search moves on by the largest unit
 * that does not match.
 */
#include "local/jobs/cron_schedule.h"

#include "base/error.h"
#include "base/timefmt.h"

#define CRON_FIELD_COUNT 5
#define CRON_DAYS_MAX (5 * 366) /* looked at before a schedule counts as one that never comes */
#define CRON_DAY_SECONDS INT64_C(86400)
#define CRON_OFFSET_HOURS_MAX 14

struct schedule_field {
    int64_t min;
    int64_t max;
    const char *names; /* of min and the following, three letters each; NULL: none */
};

static const struct schedule_field schedule_fields[CRON_FIELD_COUNT] = {
    {0, 59, NULL},
    {0, 23, NULL},
    {1, 31, NULL},
    {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {0, 6, "sunmontuewedthufrisat"},
};

static const struct {
    td_str name;
    td_str fields;
} schedule_descriptors[] = {
    {TD_STR_INIT("@yearly"), TD_STR_INIT("0 0 1 1 *")},
    {TD_STR_INIT("@annually"), TD_STR_INIT("0 0 1 1 *")},
    {TD_STR_INIT("@monthly"), TD_STR_INIT("0 0 1 * *")},
    {TD_STR_INIT("@weekly"), TD_STR_INIT("0 0 * * 0")},
    {TD_STR_INIT("@daily"), TD_STR_INIT("0 0 * * *")},
    {TD_STR_INIT("@midnight"), TD_STR_INIT("0 0 * * *")},
    {TD_STR_INIT("@hourly"), TD_STR_INIT("0 * * * *")},
};

/* ---- Reading ---- */

static char schedule_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool schedule_number(td_str text, const struct schedule_field *field, int64_t *ret)
{
    for (int64_t i = 0; field->names && text.len == 3 && i <= field->max - field->min; i++) {
        const char *name = field->names + 3 * i;
        if (schedule_lower(text.ptr[0]) == name[0] && schedule_lower(text.ptr[1]) == name[1] &&
            schedule_lower(text.ptr[2]) == name[2]) {
            *ret = field->min + i;
            return true;
        }
    }
    return text.len > 0 && text.ptr[0] >= '0' && text.ptr[0] <= '9' && td_str_to_int64(text, ret);
}

/* One item of a list: "*", a number, a range, each with a step. */
static bool schedule_item(td_str item, const struct schedule_field *field, uint64_t *bits,
                          bool *is_any)
{
    size_t slash = td_str_find(item, '/', 0);
    td_str range = td_str_slice(item, 0, slash);
    size_t dash = td_str_find(range, '-', 0);
    int64_t first = field->min;
    int64_t last = field->max;
    int64_t step = 1;
    bool is_star = td_str_equal(range, TD_STR("*")) || td_str_equal(range, TD_STR("?"));
    if (slash < item.len && !td_str_to_int64(td_str_slice(item, slash + 1, item.len), &step)) {
        return false;
    }
    if (!is_star && !schedule_number(td_str_slice(range, 0, dash), field, &first)) {
        return false;
    }
    if (!is_star && dash == range.len) {
        last = slash < item.len ? field->max : first;
    } else if (!is_star &&
               !schedule_number(td_str_slice(range, dash + 1, range.len), field, &last)) {
        return false;
    }
    if (first < field->min || last > field->max || first > last || step <= 0) {
        return false;
    }
    for (int64_t i = first; i <= last; i += step < field->max ? step : field->max + 1) {
        *bits |= UINT64_C(1) << i;
    }
    *is_any = *is_any || (is_star && step == 1);
    return true;
}

static bool schedule_field(td_str text, const struct schedule_field *field, uint64_t *bits,
                           bool *is_any)
{
    while (text.len > 0) {
        size_t comma = td_str_find(text, ',', 0);
        if (comma > 0 && !schedule_item(td_str_slice(text, 0, comma), field, bits, is_any)) {
            return false;
        }
        text = td_str_slice(text, comma + 1, text.len);
    }
    return true;
}

static int schedule_bad(td_str schedule, struct td_error *err)
{
    return td_error_set(err, TD_INVALID, "cannot parse schedule '%.*s'", TD_STR_ARG(schedule));
}

int td_cron_parse(td_str schedule, struct td_cron_schedule *ret, struct td_error *err)
{
    td_str rest = td_str_trim(schedule);
    struct td_cron_schedule result = {.every = 0};
    if (td_str_starts_with(rest, TD_STR("@every "))) {
        td_str text = td_str_slice(rest, 7, rest.len);
        if (td_duration_parse(text, &result.every, NULL) != TD_OK) {
            return schedule_bad(schedule, err);
        }
        result.every -= result.every % TD_SECOND;
        result.every = result.every < TD_SECOND ? TD_SECOND : result.every;
        *ret = result;
        return TD_OK;
    }
    for (size_t i = 0; i < TD_COUNT(schedule_descriptors); i++) {
        if (td_str_equal(rest, schedule_descriptors[i].name)) {
            rest = schedule_descriptors[i].fields;
        }
    }
    uint64_t *const bits[] = {&result.minutes, &result.hours, &result.days, &result.months,
                              &result.weekdays};
    for (size_t i = 0; i < CRON_FIELD_COUNT; i++) {
        size_t end = 0;
        while (end < rest.len && rest.ptr[end] != ' ' && rest.ptr[end] != '\t') {
            end++;
        }
        bool is_any = false;
        if (end == 0 ||
            !schedule_field(td_str_slice(rest, 0, end), &schedule_fields[i], bits[i], &is_any)) {
            return schedule_bad(schedule, err);
        }
        result.is_any_day = i == 2 ? is_any : result.is_any_day;
        result.is_any_weekday = i == 4 ? is_any : result.is_any_weekday;
        rest = td_str_trim(td_str_slice(rest, end, rest.len));
    }
    if (rest.len > 0) {
        return schedule_bad(schedule, err);
    }
    *ret = result;
    return TD_OK;
}

int td_cron_zone(td_str zone, int64_t *ret_offset, struct td_error *err)
{
    static const td_str utc[] = {
        TD_STR_INIT(""),    TD_STR_INIT("UTC"),     TD_STR_INIT("Etc/UTC"),
        TD_STR_INIT("GMT"), TD_STR_INIT("Etc/GMT"), TD_STR_INIT("Zulu"),
    };
    for (size_t i = 0; i < TD_COUNT(utc); i++) {
        if (td_str_equal(zone, utc[i])) {
            *ret_offset = 0;
            return TD_OK;
        }
    }
    int64_t hours;
    bool is_fixed = td_str_starts_with(zone, TD_STR("Etc/GMT")) &&
                    td_str_to_int64(td_str_slice(zone, 7, zone.len), &hours) && hours <= 12 &&
                    hours >= -CRON_OFFSET_HOURS_MAX;
    if (!is_fixed) {
        return td_error_set(err, TD_INVALID, "unknown time zone %.*s", TD_STR_ARG(zone));
    }
    *ret_offset = -hours * 3600; /* the sign of these names is the other way round */
    return TD_OK;
}

/* ---- Times ---- */

/* Day of the month and month of a day since 1970 (proleptic Gregorian). */
static void schedule_civil(int64_t days, int64_t *ret_day, int64_t *ret_month)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    *ret_day = of_year - (153 * month + 2) / 5 + 1;
    *ret_month = month < 10 ? month + 3 : month - 9;
}

static bool schedule_has_day(const struct td_cron_schedule *schedule, int64_t days)
{
    int64_t day;
    int64_t month;
    schedule_civil(days, &day, &month);
    int64_t weekday = ((days + 4) % 7 + 7) % 7; /* 1970 began on a Thursday */
    bool is_day = schedule->days >> day & 1;
    bool is_weekday = schedule->weekdays >> weekday & 1;
    bool is_both = schedule->is_any_day || schedule->is_any_weekday;
    return (schedule->months >> month & 1) != 0 &&
           (is_both ? is_day && is_weekday : is_day || is_weekday);
}

/* The first minute of a day that matches, from a minute of it on; -1: none. */
static int64_t schedule_minute(const struct td_cron_schedule *schedule, int64_t from)
{
    for (int64_t minute = from; minute < 24 * 60; minute++) {
        if (!(schedule->hours >> (minute / 60) & 1)) {
            minute += 59 - minute % 60;
        } else if (schedule->minutes >> (minute % 60) & 1) {
            return minute;
        }
    }
    return -1;
}

int td_cron_next(const struct td_cron_schedule *schedule, td_time time, td_time *ret)
{
    int64_t seconds = td_time_to_instant(time).unix_seconds;
    if (schedule->every > 0) {
        *ret = (seconds * TD_SECOND) + schedule->every;
        return TD_OK;
    }
    int64_t local = seconds + schedule->offset;
    int64_t start = local - ((local % 60) + 60) % 60 + 60;
    int64_t days =
        start >= 0 ? start / CRON_DAY_SECONDS : (start - CRON_DAY_SECONDS + 1) / CRON_DAY_SECONDS;
    int64_t from = (start - days * CRON_DAY_SECONDS) / 60;
    for (int i = 0; i < CRON_DAYS_MAX; i++, days++, from = 0) {
        int64_t minute = schedule_has_day(schedule, days) ? schedule_minute(schedule, from) : -1;
        if (minute >= 0) {
            *ret = (days * CRON_DAY_SECONDS + minute * 60 - schedule->offset) * TD_SECOND;
            return TD_OK;
        }
    }
    return TD_NOT_FOUND;
}
