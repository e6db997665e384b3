#include "sim/scenario_values.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/quantity.h"

struct td_place td_place_member(const struct td_place *place, const char *name)
{
    struct td_place member = *place;
    member.field = place->field.len > 0
                       ? td_arena_format(place->arena, "%.*s.%s", TD_STR_ARG(place->field), name)
                       : td_str_from(name);
    member.value = td_json_get(place->value, td_str_from(name));
    if (member.value && member.value->type == TD_JSON_TYPE_NULL) {
        member.value = NULL;
    }
    return member;
}

struct td_place td_place_item(const struct td_place *place, const struct td_json *item,
                              size_t index)
{
    struct td_place member = *place;
    member.field = td_arena_format(place->arena, "%.*s[%zu]", TD_STR_ARG(place->field), index);
    member.value = item;
    return member;
}

/* A value as a person wrote it, in short. */
static td_str place_shown(const struct td_place *place)
{
    if (!place->value) {
        return TD_STR("missing");
    }
    switch ((enum td_json_type)place->value->type) {
    case TD_JSON_TYPE_STRING:
    case TD_JSON_TYPE_NUMBER:
        return td_str_cut_utf8(place->value->text, 80);
    case TD_JSON_TYPE_BOOL:
        return place->value->boolean ? TD_STR("true") : TD_STR("false");
    case TD_JSON_TYPE_ARRAY:
        return TD_STR("a list");
    case TD_JSON_TYPE_OBJECT:
        return TD_STR("a mapping");
    case TD_JSON_TYPE_NULL:
        break;
    }
    return TD_STR("null");
}

int td_place_refuse(const struct td_place *place, const char *format, ...)
{
    char why[TD_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args); /* cut like any message */
    va_end(args);
    td_str shown = place_shown(place);
    if (place->value && place->value->line > 0) {
        return td_error_set(place->err, TD_INVALID, "%.*s:%u: %.*s: %.*s: %s",
                            TD_STR_ARG(place->file), (unsigned)place->value->line,
                            TD_STR_ARG(place->field), TD_STR_ARG(shown), why);
    }
    return td_error_set(place->err, TD_INVALID, "%.*s: %.*s: %.*s: %s", TD_STR_ARG(place->file),
                        TD_STR_ARG(place->field), TD_STR_ARG(shown), why);
}

int td_place_object(const struct td_place *place, const char *const *names)
{
    if (!td_json_is(place->value, TD_JSON_TYPE_OBJECT)) {
        return td_place_refuse(place, "must be a mapping");
    }
    for (const struct td_json *member = place->value->first; member; member = member->next) {
        bool is_known = false;
        for (size_t i = 0; names[i] && !is_known; i++) {
            is_known = td_str_equal(member->key, td_str_from(names[i]));
        }
        if (!is_known) {
            td_str name = td_arena_copy_str(place->arena, member->key);
            struct td_place unknown = td_place_member(place, name.ptr);
            unknown.value = member;
            return td_place_refuse(&unknown, "is not a field of a scenario; see docs/scenario.md");
        }
    }
    return TD_OK;
}

int td_place_array(const struct td_place *place)
{
    return td_json_is(place->value, TD_JSON_TYPE_ARRAY) ? TD_OK
                                                        : td_place_refuse(place, "must be a list");
}

int td_place_text(const struct td_place *place, bool is_required, td_str *ret)
{
    if (!place->value && !is_required) {
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_STRING) || place->value->text.len == 0) {
        return td_place_refuse(place, "must be a text");
    }
    *ret = place->value->text;
    return TD_OK;
}

int td_place_bool(const struct td_place *place, bool *ret)
{
    if (!place->value) {
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_BOOL)) {
        return td_place_refuse(place, "must be true or false");
    }
    *ret = place->value->boolean;
    return TD_OK;
}

int td_place_int(const struct td_place *place, int64_t min, int64_t max, int64_t *ret)
{
    int64_t value;
    if (!place->value) {
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_NUMBER) || !td_json_to_int64(place->value, &value) ||
        value < min || value > max) {
        return td_place_refuse(place, "must be a whole number from %lld to %lld", (long long)min,
                               (long long)max);
    }
    *ret = value;
    return TD_OK;
}

int td_place_number(const struct td_place *place, double min, double *ret)
{
    double value;
    if (!place->value) {
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_NUMBER) ||
        !td_json_to_double(place->value, &value) || value < min) {
        return td_place_refuse(place, "must be a number of at least %g", min);
    }
    *ret = value;
    return TD_OK;
}

/* "3d12h" is three days and twelve hours: days are taken off the front, the rest is Go's. */
static bool place_parse_duration(td_str text, td_duration *ret)
{
    size_t letter = td_str_find(text, 'd', 0);
    int64_t days = 0;
    td_duration rest = 0;
    if (letter < text.len) {
        if (!td_str_to_int64(td_str_slice(text, 0, letter), &days) || days < 0 || days > 36500) {
            return false;
        }
        text = td_str_slice(text, letter + 1, text.len);
        if (text.len == 0) {
            *ret = days * 24 * TD_HOUR;
            return true;
        }
    }
    if (td_duration_parse(text, &rest, NULL) != TD_OK || rest < 0) {
        return false;
    }
    *ret = days * 24 * TD_HOUR + rest;
    return true;
}

int td_place_duration(const struct td_place *place, td_duration *ret)
{
    if (!place->value) {
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_STRING) ||
        !place_parse_duration(place->value->text, ret)) {
        return td_place_refuse(place, "must be a duration such as 90s, 9h30m or 3d");
    }
    return TD_OK;
}

/* "14:00"; YAML may have read it as a number in base sixty, which our reader does not do. */
int td_place_time_of_day(const struct td_place *place, td_duration *ret)
{
    int64_t hours;
    int64_t minutes;
    if (!place->value) {
        return TD_OK;
    }
    td_str text = td_json_is(place->value, TD_JSON_TYPE_STRING) ? place->value->text : TD_STR_EMPTY;
    size_t colon = td_str_find(text, ':', 0);
    if (!td_str_to_int64(td_str_slice(text, 0, colon), &hours) ||
        !td_str_to_int64(td_str_slice(text, colon + 1, text.len), &minutes) || hours < 0 ||
        hours > 23 || minutes < 0 || minutes > 59) {
        return td_place_refuse(place, "must be a time of day such as \"14:00\"");
    }
    *ret = hours * TD_HOUR + minutes * TD_MINUTE;
    return TD_OK;
}

/* A number with one of two letters behind it, or none. */
static bool place_parse_double(td_str text, double *ret)
{
    struct td_json number = {.type = TD_JSON_TYPE_NUMBER, .text = text};
    td_auto_arena arena;
    td_arena_init(&arena, 4096);
    struct td_json *tree;
    return td_json_parse(&arena, text, NULL, &tree, NULL) == TD_OK &&
           tree->type == TD_JSON_TYPE_NUMBER && td_json_to_double(&number, ret);
}

int td_place_share(const struct td_place *place, double *ret)
{
    double value = -1;
    if (!place->value) {
        return TD_OK;
    }
    if (td_json_is(place->value, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_double(place->value, &value); /* checked below */
    } else if (td_json_is(place->value, TD_JSON_TYPE_STRING) &&
               td_str_ends_with(place->value->text, TD_STR("%")) &&
               place_parse_double(td_str_slice(place->value->text, 0, place->value->text.len - 1),
                                  &value)) {
        value /= 100;
    }
    if (!(value >= 0 && value <= 1)) {
        return td_place_refuse(place, "must be a share such as 5%% or 0.05, from 0 to 1");
    }
    *ret = value;
    return TD_OK;
}

static int place_quantity(const struct td_place *place, const char *example, int scale_milli,
                          double *ret)
{
    struct td_quantity quantity;
    if (!place->value) {
        return TD_OK;
    }
    bool is_scalar = td_json_is(place->value, TD_JSON_TYPE_STRING) ||
                     td_json_is(place->value, TD_JSON_TYPE_NUMBER);
    if (!is_scalar || td_quantity_from_json(place->arena, place->value, &quantity, NULL) != TD_OK ||
        td_quantity_sign(&quantity) < 0) {
        return td_place_refuse(place, "must be a quantity such as %s, not negative", example);
    }
    double value = td_quantity_to_double(&quantity);
    *ret = scale_milli ? value * 1000 : value;
    return TD_OK;
}

int td_place_cpu(const struct td_place *place, double *ret)
{
    return place_quantity(place, "250m or 1.5", 1, ret);
}

int td_place_bytes(const struct td_place *place, double *ret)
{
    return place_quantity(place, "180Mi", 0, ret);
}

int td_place_rate(const struct td_place *place, double *ret)
{
    static const struct {
        const char *ending;
        double seconds;
    } units[] = {{"/s", 1}, {"/m", 60}, {"/h", 3600}};
    double value = -1;
    if (!place->value) {
        return TD_OK;
    }
    if (td_json_is(place->value, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_double(place->value, &value); /* checked below */
    }
    for (size_t i = 0;
         td_json_is(place->value, TD_JSON_TYPE_STRING) && i < sizeof(units) / sizeof(units[0]);
         i++) {
        td_str text = place->value->text;
        td_str ending = td_str_from(units[i].ending);
        if (td_str_ends_with(text, ending) &&
            place_parse_double(td_str_slice(text, 0, text.len - ending.len), &value)) {
            value /= units[i].seconds;
        }
    }
    if (!(value >= 0)) {
        return td_place_refuse(place, "must be a rate such as 40/s, not negative");
    }
    *ret = value;
    return TD_OK;
}

/* ---- Series ---- */

static int series_points(const struct td_place *place, td_place_number_fn number,
                         struct td_series *ret)
{
    static const char *const names[] = {"at", "value", NULL};
    int code = td_place_array(place);
    if (code != TD_OK) {
        return code;
    }
    struct td_series_point *points =
        td_arena_array(place->arena, struct td_series_point, place->value->count);
    size_t count = 0;
    for (const struct td_json *item = place->value->first; item; item = item->next, count++) {
        struct td_place at = td_place_item(place, item, count);
        code = td_place_object(&at, names);
        struct td_place when = td_place_member(&at, "at");
        struct td_place value = td_place_member(&at, "value");
        if (code == TD_OK && (!when.value || !value.value)) {
            code = td_place_refuse(when.value ? &value : &when, "is required");
        }
        if (code == TD_OK) {
            code = td_place_duration(&when, &points[count].at);
        }
        if (code == TD_OK) {
            code = number(&value, &points[count].value);
        }
        if (code == TD_OK && count > 0 && points[count].at <= points[count - 1].at) {
            code = td_place_refuse(&when, "must be later than the point before it");
        }
        if (code != TD_OK) {
            return code;
        }
    }
    ret->points = points;
    ret->point_count = count;
    return TD_OK;
}

struct series_name {
    const char *name;
    enum td_series_shape shape;
};

static int series_shape(const struct td_place *place, enum td_series_shape *ret)
{
    static const struct series_name shapes[] = {
        {"constant", TD_SERIES_CONSTANT}, {"steps", TD_SERIES_STEPS}, {"ramp", TD_SERIES_RAMP},
        {"day", TD_SERIES_DAY},           {"week", TD_SERIES_WEEK},   {"spikes", TD_SERIES_SPIKES},
    };
    td_str text = TD_STR_EMPTY;
    int code = td_place_text(place, true, &text);
    for (size_t i = 0; code == TD_OK && i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (td_str_equal(text, td_str_from(shapes[i].name))) {
            *ret = shapes[i].shape;
            return TD_OK;
        }
    }
    return code == TD_OK
               ? td_place_refuse(place, "must be constant, steps, ramp, day, week or spikes")
               : code;
}

/* What a shape cannot do without. */
static int series_require(const struct td_place *place, const struct td_series *series)
{
    static const struct {
        enum td_series_shape shape;
        const char *members[3];
    } needs[] = {
        {TD_SERIES_CONSTANT, {"value", NULL}},   {TD_SERIES_STEPS, {"points", NULL}},
        {TD_SERIES_RAMP, {"points", NULL}},      {TD_SERIES_DAY, {"low", "high", NULL}},
        {TD_SERIES_WEEK, {"low", "high", NULL}}, {TD_SERIES_SPIKES, {"high", "every", "for"}},
    };
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        for (size_t m = 0; needs[i].shape == series->shape && m < 3 && needs[i].members[m]; m++) {
            struct td_place member = td_place_member(place, needs[i].members[m]);
            if (!member.value) {
                return td_place_refuse(&member, "is required by this shape");
            }
        }
    }
    struct td_place high = td_place_member(place, "high");
    if (high.value && series->high < series->low) {
        return td_place_refuse(&high, "must be at least low");
    }
    struct td_place lasts = td_place_member(place, "for");
    if (lasts.value && series->lasts >= series->every) {
        return td_place_refuse(&lasts, "must be shorter than every");
    }
    return TD_OK;
}

static int series_read(const struct td_place *place, td_place_number_fn number,
                       struct td_series *series)
{
    struct td_place shape = td_place_member(place, "shape");
    struct td_place value = td_place_member(place, "value");
    struct td_place low = td_place_member(place, "low");
    struct td_place high = td_place_member(place, "high");
    struct td_place peak = td_place_member(place, "peakAt");
    struct td_place weekend = td_place_member(place, "weekend");
    struct td_place every = td_place_member(place, "every");
    struct td_place lasts = td_place_member(place, "for");
    struct td_place noise = td_place_member(place, "noise");
    struct td_place points = td_place_member(place, "points");
    int code = shape.value ? series_shape(&shape, &series->shape) : TD_OK;
    code = code == TD_OK ? number(&value, &series->low) : code;
    code = code == TD_OK ? number(&low, &series->low) : code;
    code = code == TD_OK ? number(&high, &series->high) : code;
    code = code == TD_OK ? td_place_time_of_day(&peak, &series->peak_at) : code;
    code = code == TD_OK ? td_place_number(&weekend, 0, &series->weekend) : code;
    code = code == TD_OK ? td_place_duration(&every, &series->every) : code;
    code = code == TD_OK ? td_place_duration(&lasts, &series->lasts) : code;
    code = code == TD_OK ? td_place_share(&noise, &series->noise) : code;
    if (code == TD_OK && points.value) {
        code = series_points(&points, number, series);
    }
    return code == TD_OK ? series_require(place, series) : code;
}

int td_place_series(const struct td_place *place, td_place_number_fn number, struct td_series *ret)
{
    static const char *const names[] = {"shape", "value", "low",   "high",   "peakAt", "weekend",
                                        "every", "for",   "noise", "points", NULL};
    struct td_series series = {.shape = TD_SERIES_CONSTANT, .peak_at = 14 * TD_HOUR, .weekend = 1};
    int code = TD_OK;
    if (!place->value) {
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_OBJECT)) {
        code = number(place, &series.low);
    } else {
        code = td_place_object(place, names);
        code = code == TD_OK ? series_read(place, number, &series) : code;
    }
    if (code == TD_OK) {
        *ret = series;
    }
    return code;
}
