/*
 * Reads the fields of a schedule and says which one is wrong and why, in the words of robfig/cron.
 */
#include "local/jobs/cron_text.h"

#include "base/error.h"
#include "base/os/clock.h"
#include "base/timefmt.h"

#define CRON_FIELD_COUNT 5

struct cron_field {
    int64_t min;
    int64_t max;
    const char *const *names; /* of min and the following, lower case; NULL: none */
    size_t name_count;
};

static const char *const cron_months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const cron_days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const struct cron_field cron_fields[CRON_FIELD_COUNT] = {
    {0, 59, NULL, 0},         {0, 23, NULL, 0},     {1, 31, NULL, 0},
    {1, 12, cron_months, 12}, {0, 6, cron_days, 7},
};

static bool cron_same_letters(td_str text, const char *lower)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if (lower[i] == 0 || c != lower[i]) {
            return false;
        }
    }
    return lower[text.len] == 0;
}

static bool cron_number(td_str text, const struct cron_field *field, int64_t *ret)
{
    for (size_t i = 0; i < field->name_count; i++) {
        if (cron_same_letters(text, field->names[i])) {
            *ret = field->min + (int64_t)i;
            return true;
        }
    }
    return text.len > 0 && text.ptr[0] != '+' && text.ptr[0] != '-' && td_str_to_int64(text, ret);
}

static bool cron_is_star(td_str text)
{
    return td_str_equal(text, TD_STR("*")) || td_str_equal(text, TD_STR("?"));
}

/* One item of a list: "*", "*" with a step, "5", "1-5", "1-5/2". */
static td_str cron_item_problem(struct td_arena *arena, td_str item, const struct cron_field *field)
{
    size_t slash = td_str_find(item, '/', 0);
    td_str range = td_str_slice(item, 0, slash);
    td_str step_text = td_str_slice(item, slash + 1, item.len);
    size_t dash = td_str_find(range, '-', 0);
    int64_t first = field->min;
    int64_t last = field->max;
    int64_t step = 1;
    if (td_str_find(step_text, '/', 0) < step_text.len) {
        return td_arena_format(arena, "too many slashes: %.*s", TD_STR_ARG(item));
    }
    if (!cron_is_star(range)) {
        td_str low = td_str_slice(range, 0, dash);
        td_str high = dash < range.len ? td_str_slice(range, dash + 1, range.len) : low;
        if (td_str_find(high, '-', 0) < high.len) {
            return td_arena_format(arena, "too many hyphens: %.*s", TD_STR_ARG(item));
        }
        if (!cron_number(low, field, &first) || !cron_number(high, field, &last)) {
            return td_arena_format(arena, "failed to parse number: %.*s", TD_STR_ARG(item));
        }
        last = slash < item.len && dash == range.len ? field->max : last;
    }
    if (slash < item.len && (!td_str_to_int64(step_text, &step) || step < 0)) {
        return td_arena_format(arena, "failed to parse number: %.*s", TD_STR_ARG(item));
    }
    if (step == 0) {
        return td_arena_format(arena, "step of range should be a positive number: %.*s",
                               TD_STR_ARG(item));
    }
    if (first < field->min) {
        return td_arena_format(arena, "beginning of range (%lld) below minimum (%lld): %.*s",
                               (long long)first, (long long)field->min, TD_STR_ARG(item));
    }
    if (last > field->max) {
        return td_arena_format(arena, "end of range (%lld) above maximum (%lld): %.*s",
                               (long long)last, (long long)field->max, TD_STR_ARG(item));
    }
    return first > last ? td_arena_format(arena,
                                          "beginning of range (%lld) beyond end of range "
                                          "(%lld): %.*s",
                                          (long long)first, (long long)last, TD_STR_ARG(item))
                        : TD_STR_EMPTY;
}

static td_str cron_descriptor_problem(struct td_arena *arena, td_str schedule)
{
    static const td_str known[] = {
        TD_STR_INIT("@yearly"), TD_STR_INIT("@annually"), TD_STR_INIT("@monthly"),
        TD_STR_INIT("@weekly"), TD_STR_INIT("@daily"),    TD_STR_INIT("@midnight"),
        TD_STR_INIT("@hourly"),
    };
    for (size_t i = 0; i < TD_COUNT(known); i++) {
        if (td_str_equal(schedule, known[i])) {
            return TD_STR_EMPTY;
        }
    }
    static const td_str every = TD_STR_INIT("@every ");
    td_duration duration;
    if (td_str_starts_with(schedule, every)) {
        bool is_read = td_duration_parse(td_str_slice(schedule, every.len, schedule.len), &duration,
                                         NULL) == TD_OK;
        return is_read
                   ? TD_STR_EMPTY
                   : td_arena_format(arena, "failed to parse duration %.*s", TD_STR_ARG(schedule));
    }
    return td_arena_format(arena, "unrecognized descriptor: %.*s", TD_STR_ARG(schedule));
}

static td_str cron_field_problem(struct td_arena *arena, td_str text,
                                 const struct cron_field *field)
{
    while (text.len > 0) {
        size_t comma = td_str_find(text, ',', 0);
        td_str item = td_str_slice(text, 0, comma);
        td_str problem = item.len > 0 ? cron_item_problem(arena, item, field) : TD_STR_EMPTY;
        if (problem.len > 0) {
            return problem;
        }
        text = td_str_slice(text, comma + 1, text.len);
    }
    return TD_STR_EMPTY;
}

td_str td_cron_problem(struct td_arena *arena, td_str schedule)
{
    td_str rest = schedule;
    if (td_cron_has_zone(schedule)) {
        size_t space = td_str_find(rest, ' ', 0);
        rest = td_str_trim(td_str_slice(rest, space, rest.len));
    }
    if (rest.len > 0 && rest.ptr[0] == '@') {
        return cron_descriptor_problem(arena, rest);
    }
    td_str fields[CRON_FIELD_COUNT];
    size_t count = 0;
    for (rest = td_str_trim(rest); rest.len > 0; rest = td_str_trim(rest)) {
        size_t end = 0;
        while (end < rest.len && rest.ptr[end] != ' ' && rest.ptr[end] != '\t') {
            end++;
        }
        if (count < CRON_FIELD_COUNT) {
            fields[count] = td_str_slice(rest, 0, end);
        }
        count++;
        rest = td_str_slice(rest, end, rest.len);
    }
    if (count != CRON_FIELD_COUNT) {
        return td_arena_format(arena, "expected exactly 5 fields, found %zu: [%.*s]", count,
                               TD_STR_ARG(td_str_trim(schedule)));
    }
    for (size_t i = 0; i < CRON_FIELD_COUNT; i++) {
        td_str problem = cron_field_problem(arena, fields[i], &cron_fields[i]);
        if (problem.len > 0) {
            return problem;
        }
    }
    return TD_STR_EMPTY;
}

bool td_cron_has_zone(td_str schedule)
{
    for (size_t i = 0; i + 1 < schedule.len; i++) {
        if (schedule.ptr[i] == 'T' && schedule.ptr[i + 1] == 'Z') {
            return true;
        }
    }
    return false;
}
