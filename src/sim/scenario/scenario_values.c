/*
 * A place is a node of the file with the path that led to it; every refusal is written from it.
 * Below it one reader for each kind of value, and the table-driven reader of a mapping.
 */
#include "sim/scenario/scenario_values.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/names.h"
#include "kube/quantity/quantity.h"
#include "sim/scenario/scenario.h"

#define PLACE_DEPTH_MAX 16       /* levels of a scenario; it has fewer */
#define PLACE_SHOWN_BYTES_MAX 80 /* of a value in a message */
#define PLACE_DAY (24 * TD_HOUR)

struct td_place td_place_member(const struct td_place *place, const char *name)
{
    struct td_place member = {
        .source = place->source,
        .parent = place,
        .name = td_str_from(name),
        .value = td_json_get(place->value, td_str_from(name)),
    };
    if (member.value && member.value->type == TD_JSON_TYPE_NULL) {
        member.value = NULL;
    }
    return member;
}

struct td_place td_place_item(const struct td_place *place, const struct td_json *item,
                              size_t index)
{
    return (struct td_place){
        .source = place->source, .parent = place, .index = index, .value = item};
}

/* "spec.demand[0].requests.low", in the arena. */
static td_str place_title(const struct td_place *place)
{
    const struct td_place *levels[PLACE_DEPTH_MAX] = {NULL};
    struct td_arena *arena = place->source->arena;
    size_t count = 0;
    td_str field = TD_STR_EMPTY;
    for (const struct td_place *p = place; p->parent && count < PLACE_DEPTH_MAX; p = p->parent) {
        levels[count++] = p;
    }
    for (size_t i = count; i-- > 0;) {
        const struct td_place *level = levels[i];
        if (level->name.len == 0) {
            field = td_arena_format(arena, "%.*s[%zu]", TD_STR_ARG(field), level->index);
        } else {
            field = td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(field),
                                    field.len > 0 ? "." : "", TD_STR_ARG(level->name));
        }
    }
    return field.len > 0 ? field : TD_STR("the file");
}

uint32_t td_place_line(const struct td_place *place)
{
    const struct td_place *p = place;
    while (p->parent && (!p->value || p->value->line == 0)) {
        p = p->parent;
    }
    return p->value && p->value->line > 0 ? p->value->line : 1;
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
        return place->value->text.len > 0
                   ? td_str_cut_utf8(place->value->text, PLACE_SHOWN_BYTES_MAX)
                   : TD_STR("''");
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

void td_place_flatten(struct td_error *err)
{
    for (char *p = err ? err->message : NULL; p && *p; p++) {
        *p = (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p;
    }
}

int td_place_refuse(const struct td_place *place, const char *format, ...)
{
    const struct td_scenario_source *source = place->source;
    char why[TD_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args); /* cut like any message */
    va_end(args);
    int code = td_error_set(source->err, TD_INVALID, "%.*s:%u: %.*s: %.*s: %s",
                            TD_STR_ARG(source->path), (unsigned)td_place_line(place),
                            TD_STR_ARG(place_title(place)), TD_STR_ARG(place_shown(place)), why);
    td_place_flatten(source->err);
    return code;
}

int td_place_list(const struct td_place *place, size_t count_max, size_t *ret_count)
{
    if (!place->value) {
        *ret_count = 0;
        return TD_OK;
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_ARRAY)) {
        return td_place_refuse(place, "must be a list");
    }
    if (place->value->count > count_max) {
        return td_place_refuse(place, "has %zu items, more than %zu", place->value->count,
                               count_max);
    }
    *ret_count = place->value->count;
    return TD_OK;
}

/* ---- Mappings ---- */

static int place_known(const struct td_place *place, const struct td_place_field *fields,
                       size_t count)
{
    for (const struct td_json *member = td_json_first_member(place->value); member;
         member = member->next) {
        size_t i = 0;
        while (i < count && !td_str_equal(member->key, td_str_from(fields[i].name))) {
            i++;
        }
        if (i < count) {
            continue;
        }
        const struct td_place unknown = {
            .source = place->source,
            .parent = place,
            .name = member->key.len > 0 ? td_str_cut_utf8(member->key, PLACE_SHOWN_BYTES_MAX)
                                        : TD_STR("''"),
            .value = member};
        const char *nearest = td_str_suggest(member->key, fields, count, sizeof(fields[0]));
        if (nearest) {
            return td_place_refuse(&unknown, "unknown field; did you mean %s?", nearest);
        }
        return td_place_refuse(&unknown, "unknown field; see docs/scenario.md");
    }
    return TD_OK;
}

int td_place_fields(const struct td_place *place, const struct td_place_field *fields, size_t count,
                    void *ret)
{
    if (!place->value) {
        return td_place_refuse(place, "is required");
    }
    if (!td_json_is(place->value, TD_JSON_TYPE_OBJECT)) {
        return td_place_refuse(place, "must be a mapping");
    }
    int code = place_known(place, fields, count);
    for (size_t i = 0; code == TD_OK && i < count; i++) {
        struct td_place member = td_place_member(place, fields[i].name);
        if (!member.value && fields[i].is_required) {
            return td_place_refuse(&member, "is required");
        }
        if (member.value && fields[i].kind != TD_PLACE_OTHER) {
            code = td_place_read(&member, fields[i].kind, (char *)ret + fields[i].offset);
        }
    }
    return code;
}

/* ---- Texts ---- */

static int place_text(const struct td_place *place, td_str *ret)
{
    if (!td_json_is(place->value, TD_JSON_TYPE_STRING) || place->value->text.len == 0) {
        return td_place_refuse(place, "must be a text");
    }
    *ret = place->value->text;
    return TD_OK;
}

static int place_name(const struct td_place *place, enum td_place_kind kind, td_str *ret)
{
    td_str text = TD_STR_EMPTY;
    int code = place_text(place, &text);
    if (code != TD_OK) {
        return code;
    }
    if (kind == TD_PLACE_NAME && td_name_check_dns1123_subdomain(text, NULL) > 0) {
        return td_place_refuse(place, "must be a name of small letters, digits, '-' and '.'");
    }
    if (kind == TD_PLACE_LABEL && td_name_check_dns1123_label(text, NULL) > 0) {
        return td_place_refuse(place, "must be a name of small letters, digits and '-'");
    }
    if (kind == TD_PLACE_KEY && td_name_check_qualified(text, NULL) > 0) {
        return td_place_refuse(place, "must be the key of a label such as role");
    }
    *ret = text;
    return TD_OK;
}

/* Beside the scenario when relative. "-" would be standard input, which is not ours. */
static int place_path(const struct td_place *place, td_str *ret)
{
    td_str text = TD_STR_EMPTY;
    td_str file = place->source->path;
    size_t slash = file.len;
    int code = place_text(place, &text);
    if (code != TD_OK) {
        return code;
    }
    while (slash > 0 && file.ptr[slash - 1] != '/') {
        slash--;
    }
    bool is_beside = !td_str_starts_with(text, TD_STR("/")) && slash > 0;
    if (td_str_equal(text, TD_STR("-")) || td_str_find(text, '\0', 0) < text.len ||
        text.len + (is_beside ? slash : 0) >= TD_PATH_BYTES_MAX) {
        return td_place_refuse(place, "must be the path of a file");
    }
    *ret = is_beside ? td_arena_format(place->source->arena, "%.*s%.*s",
                                       TD_STR_ARG(td_str_slice(file, 0, slash)), TD_STR_ARG(text))
                     : td_arena_copy_str(place->source->arena, text);
    return TD_OK;
}

static int place_bool(const struct td_place *place, bool *ret)
{
    if (!td_json_is(place->value, TD_JSON_TYPE_BOOL)) {
        return td_place_refuse(place, "must be true or false");
    }
    *ret = place->value->boolean;
    return TD_OK;
}

/* ---- Times ---- */

/* "3d12h" is three days and twelve hours: days are taken off the front, the rest is Go's. */
bool td_scenario_parse_duration(td_str text, td_duration *ret)
{
    size_t letter = td_str_find(text, 'd', 0);
    int64_t days = 0;
    td_duration rest = 0;
    if (letter < text.len) {
        if (!td_str_to_int64(td_str_slice(text, 0, letter), &days) || days < 0 ||
            days > TD_SCENARIO_DAYS_MAX) {
            return false;
        }
        text = td_str_slice(text, letter + 1, text.len);
    }
    if ((letter == 0 || text.len > 0) && td_duration_parse(text, &rest, NULL) != TD_OK) {
        return false;
    }
    if (rest < 0 || rest > TD_SCENARIO_DAYS_MAX * PLACE_DAY - days * PLACE_DAY) {
        return false;
    }
    *ret = days * PLACE_DAY + rest;
    return true;
}

static int place_duration(const struct td_place *place, enum td_place_kind kind, td_duration *ret)
{
    td_duration span = 0;
    if (!td_json_is(place->value, TD_JSON_TYPE_STRING) || place->value->text.len == 0 ||
        !td_scenario_parse_duration(place->value->text, &span)) {
        return td_place_refuse(place, "must be a duration from 0s to %dd, such as 90s, 9h30m or 3d",
                               TD_SCENARIO_DAYS_MAX);
    }
    if (kind == TD_PLACE_SPAN && span == 0) {
        return td_place_refuse(place, "must be longer than 0s");
    }
    *ret = span;
    return TD_OK;
}

/* "14:00"; YAML 1.1 knows numbers in base sixty, which our reader does not make of it. */
static int place_time_of_day(const struct td_place *place, td_duration *ret)
{
    int64_t hours = -1;
    int64_t minutes = -1;
    td_str text = td_json_is(place->value, TD_JSON_TYPE_STRING) ? place->value->text : TD_STR_EMPTY;
    size_t colon = td_str_find(text, ':', 0);
    td_str after = td_str_slice(text, colon + 1, text.len);
    bool is_read = after.len == 2 && td_str_to_int64(td_str_slice(text, 0, colon), &hours) &&
                   td_str_to_int64(after, &minutes);
    if (!is_read || hours < 0 || hours > 23 || minutes < 0 || minutes > 59) {
        return td_place_refuse(place, "must be a time of day such as \"14:00\"");
    }
    *ret = hours * TD_HOUR + minutes * TD_MINUTE;
    return TD_OK;
}

/* ---- Numbers ---- */

static bool place_parse_double(td_str text, double *ret)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *tree;
    return text.len <= PLACE_SHOWN_BYTES_MAX &&
           td_json_parse(&arena, text, NULL, &tree, NULL) == TD_OK &&
           tree->type == TD_JSON_TYPE_NUMBER && td_json_to_double(tree, ret);
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

static int place_number(const struct td_place *place, double min, double *ret)
{
    double value = -1;
    if (td_json_is(place->value, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_double(place->value, &value); /* checked below */
    }
    if (!(value >= min && value <= TD_SCENARIO_FACTOR_MAX)) {
        return td_place_refuse(place, "must be a number from %g to %d", min,
                               TD_SCENARIO_FACTOR_MAX);
    }
    *ret = value;
    return TD_OK;
}

static int place_share(const struct td_place *place, double *ret)
{
    double value = -1;
    if (td_json_is(place->value, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_double(place->value, &value); /* checked below */
    } else if (td_json_is(place->value, TD_JSON_TYPE_STRING) &&
               td_str_ends_with(place->value->text, TD_STR("%")) &&
               place_parse_double(td_str_slice(place->value->text, 0, place->value->text.len - 1),
                                  &value)) {
        value /= 100;
    }
    if (!(value >= 0 && value <= 1)) {
        return td_place_refuse(place, "must be a share from 0 to 1, such as 5%% or 0.05");
    }
    *ret = value;
    return TD_OK;
}

static int place_milliseconds(const struct td_place *place, double *ret)
{
    td_duration span = -1;
    if (!td_json_is(place->value, TD_JSON_TYPE_STRING) ||
        td_duration_parse(place->value->text, &span, NULL) != TD_OK || span < 0 || span > TD_HOUR) {
        return td_place_refuse(place, "must be processor time from 0s to 1h, such as 12ms");
    }
    *ret = (double)span / (double)TD_MILLISECOND;
    return TD_OK;
}

static int place_quantity(const struct td_place *place, enum td_place_kind kind, double *ret)
{
    static const struct {
        enum td_place_kind kind;
        double max;
        double unit;       /* of the result */
        const char *texts; /* the highest, and an example */
    } kinds[] = {
        {TD_PLACE_CPU, TD_SCENARIO_CPU_MAX, 1000, "1000000, such as 250m or 1.5"},
        {TD_PLACE_BYTES, (double)TD_SCENARIO_MEMORY_MAX, 1, "1Pi, such as 180Mi"},
        {TD_PLACE_AMOUNT, (double)TD_SCENARIO_AMOUNT_MAX, 1, "1P, such as 20 or 300m"},
    };
    struct td_quantity quantity;
    size_t i = 0;
    while (kinds[i].kind != kind) {
        i++;
    }
    bool is_scalar = td_json_is(place->value, TD_JSON_TYPE_STRING) ||
                     td_json_is(place->value, TD_JSON_TYPE_NUMBER);
    double value = -1;
    if (is_scalar && place->value->text.len > 0 &&
        td_quantity_from_json(place->source->arena, place->value, &quantity, NULL) == TD_OK) {
        value = td_quantity_to_double(&quantity);
    }
    if (!(value >= 0 && value <= kinds[i].max)) {
        return td_place_refuse(place, "must be a quantity from 0 to %s", kinds[i].texts);
    }
    *ret = value * kinds[i].unit;
    return TD_OK;
}

static int place_rate(const struct td_place *place, double *ret)
{
    static const struct {
        const char *ending;
        double seconds;
    } units[] = {{"/s", 1}, {"/m", 60}, {"/h", 3600}};
    double value = -1;
    if (td_json_is(place->value, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_double(place->value, &value); /* checked below */
    }
    for (size_t i = 0; td_json_is(place->value, TD_JSON_TYPE_STRING) && i < TD_COUNT(units); i++) {
        td_str text = place->value->text;
        td_str ending = td_str_from(units[i].ending);
        if (td_str_ends_with(text, ending) &&
            place_parse_double(td_str_slice(text, 0, text.len - ending.len), &value)) {
            value /= units[i].seconds;
        }
    }
    if (!(value >= 0 && value <= TD_SCENARIO_RATE_MAX)) {
        return td_place_refuse(place, "must be a rate from 0/s to %d/s, such as 40/s or 600/m",
                               TD_SCENARIO_RATE_MAX);
    }
    *ret = value;
    return TD_OK;
}

int td_place_read(const struct td_place *place, enum td_place_kind kind, void *ret)
{
    if (!place->value) {
        return TD_OK;
    }
    switch (kind) {
    case TD_PLACE_OTHER:
        break;
    case TD_PLACE_TEXT:
        return place_text(place, ret);
    case TD_PLACE_NAME:
    case TD_PLACE_LABEL:
    case TD_PLACE_KEY:
        return place_name(place, kind, ret);
    case TD_PLACE_PATH:
        return place_path(place, ret);
    case TD_PLACE_BOOL:
        return place_bool(place, ret);
    case TD_PLACE_DURATION:
    case TD_PLACE_SPAN:
        return place_duration(place, kind, ret);
    case TD_PLACE_TIME_OF_DAY:
        return place_time_of_day(place, ret);
    case TD_PLACE_SHARE:
        return place_share(place, ret);
    case TD_PLACE_NUMBER:
        return place_number(place, 0, ret);
    case TD_PLACE_FACTOR:
        return place_number(place, 1, ret);
    case TD_PLACE_MILLISECONDS:
        return place_milliseconds(place, ret);
    case TD_PLACE_CPU:
    case TD_PLACE_BYTES:
    case TD_PLACE_AMOUNT:
        return place_quantity(place, kind, ret);
    case TD_PLACE_RATE:
        return place_rate(place, ret);
    case TD_PLACE_CPU_SERIES:
        return td_place_series(place, TD_PLACE_CPU, ret);
    case TD_PLACE_BYTES_SERIES:
        return td_place_series(place, TD_PLACE_BYTES, ret);
    case TD_PLACE_RATE_SERIES:
        return td_place_series(place, TD_PLACE_RATE, ret);
    case TD_PLACE_AMOUNT_SERIES:
        return td_place_series(place, TD_PLACE_AMOUNT, ret);
    }
    return TD_OK;
}
