/*
 * Pruning first, then checking, each one walk down the schema and the object together. The words
 * and the oddities are those of the validator that servers use:
 *
 * 1. A value of the wrong type is reported under the format where there is one ("must be of type
 *    int32"), unless it is a string or a list: then under the type.
 * 2. A number written with a point or an exponent is a float; a float that is a whole number
 *    passes as an integer, up to 2^53 - 1 either way.
 * 3. A number outside its format, and a value that fits no branch of anyOf, are reported without a
 *    path in front ("<nil>"), the path in the text.
 * 4. The other checks of a value go on after one failed, so one value can have several errors.
 */
#include "api/crd_apply.h"

#include <math.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"

#define APPLY_DEPTH_MAX (TD_JSON_DEPTH_MAX + 1) /* a schema is no deeper than the JSON it was */
#define APPLY_FLOAT_INTEGER_MAX 9007199254740991.0
#define APPLY_FLOAT_EPSILON 1e-9
#define APPLY_DATE_BYTES 10 /* 2006-01-02 */

/* --- pruning --- */

static bool apply_is_meta(td_str key)
{
    return td_str_equal(key, TD_STR("apiVersion")) || td_str_equal(key, TD_STR("kind")) ||
           td_str_equal(key, TD_STR("metadata"));
}

static bool apply_flag(const struct td_json *schema, td_str key)
{
    return td_json_get_bool(schema, key, false);
}

/* The schema of a member, or NULL when it is not known. */
static const struct td_json *apply_member(const struct td_json *schema, td_str key)
{
    const struct td_json *found = td_json_get(td_json_get(schema, TD_STR("properties")), key);
    return found ? found : td_json_get(schema, TD_STR("additionalProperties"));
}

static struct td_json *prune_value(struct td_arena *arena, const struct td_json *schema,
                                   const struct td_json *value, size_t depth);

static struct td_json *prune_object(struct td_arena *arena, const struct td_json *schema,
                                    const struct td_json *object, size_t depth)
{
    struct td_json *made = td_json_new_object(arena);
    bool keeps_unknown = apply_flag(schema, TD_STR("x-kubernetes-preserve-unknown-fields"));
    made->line = object->line;
    for (const struct td_json *member = td_json_first_member(object); member;
         member = member->next) {
        const struct td_json *known = apply_member(schema, member->key);
        struct td_json *kept = NULL;
        if (depth == 0 && apply_is_meta(member->key)) {
            kept = td_json_copy(arena, member, false);
        } else if (!known) {
            kept = keeps_unknown ? td_json_copy(arena, member, false) : NULL;
        } else if (member->type != TD_JSON_TYPE_NULL || apply_flag(known, TD_STR("nullable"))) {
            kept = prune_value(arena, known, member, depth + 1);
        }
        if (kept) {
            td_json_set(arena, made, member->key, kept);
        }
    }
    return made;
}

static struct td_json *prune_value(struct td_arena *arena, const struct td_json *schema,
                                   const struct td_json *value, size_t depth)
{
    td_assert(depth < APPLY_DEPTH_MAX);
    if (value->type == TD_JSON_TYPE_OBJECT) {
        return prune_object(arena, schema, value, depth);
    }
    if (value->type != TD_JSON_TYPE_ARRAY) {
        return td_json_copy(arena, value, false);
    }
    const struct td_json *items = td_json_get(schema, TD_STR("items"));
    struct td_json *made = td_json_new_array(arena);
    made->line = value->line;
    for (const struct td_json *item = td_json_first_item(value); item; item = item->next) {
        td_json_append(made, items ? prune_value(arena, items, item, depth + 1)
                                   : td_json_copy(arena, item, false));
    }
    return made;
}

struct td_json *td_crd_prune(struct td_arena *arena, const struct td_json *schema,
                             const struct td_json *object)
{
    return prune_value(arena, schema, object, 0);
}

/* --- checking --- */

/* A value's place, its schema and where errors go. */
struct apply_place {
    const struct td_json *schema;
    const struct td_field_path *path; /* NULL: the root */
    struct td_field_errors *errors;
    size_t depth;
};

/* A value as the validator classifies it. */
struct apply_kind {
    const char *type;   /* "integer" */
    const char *format; /* "int64", or "" */
};

static bool apply_is_integer_text(const struct td_json *value)
{
    int64_t number;
    return td_json_is(value, TD_JSON_TYPE_NUMBER) && td_str_to_int64(value->text, &number);
}

static struct apply_kind apply_kind_of(const struct td_json *value)
{
    static const struct apply_kind kinds[] = {
        [TD_JSON_TYPE_NULL] = {"null", ""},
        [TD_JSON_TYPE_BOOL] = {"boolean", ""},
        [TD_JSON_TYPE_NUMBER] = {"number", "float64"},
        [TD_JSON_TYPE_STRING] = {"string", ""},
        [TD_JSON_TYPE_ARRAY] = {"array", ""},
        [TD_JSON_TYPE_OBJECT] = {"object", ""},
    };
    if (apply_is_integer_text(value)) {
        return (struct apply_kind){"integer", "int64"};
    }
    return kinds[value->type];
}

/* Is a float near enough to a whole number to pass as one (rule 2 above)? */
static bool apply_is_whole_float(const struct td_json *value)
{
    double number;
    if (!td_json_is(value, TD_JSON_TYPE_NUMBER) || !td_json_to_double(value, &number) ||
        fabs(number) > APPLY_FLOAT_INTEGER_MAX) {
        return false;
    }
    double whole = trunc(number);
    return number == whole ||
           (whole != 0 && (number - whole) / (number + whole) < APPLY_FLOAT_EPSILON);
}

static td_str apply_path_text(const struct apply_place *place)
{
    return td_field_path_text(place->errors->arena, place->path);
}

static void apply_add(const struct apply_place *place, enum td_field_error_type type, td_str value,
                      td_str detail)
{
    td_field_error_add(place->errors, place->path, type, value, detail);
}

/* An error that servers report without a path. */
static void apply_add_bare(const struct apply_place *place, td_str detail)
{
    const struct td_field_path nowhere = td_field_child(NULL, TD_STR("<nil>"));
    td_field_error_add(place->errors, &nowhere, TD_FIELD_INVALID, TD_STR("\"\""), detail);
}

static void apply_wrong_type(const struct apply_place *place, const char *wanted, const char *got)
{
    struct td_arena *arena = place->errors->arena;
    td_str path = apply_path_text(place);
    td_str quoted = td_arena_format(arena, "\"%s\"", got);
    apply_add(place, TD_FIELD_TYPE_INVALID, quoted,
              td_arena_format(arena, "%.*s in body must be of type %s: %.*s", TD_STR_ARG(path),
                              wanted, TD_STR_ARG(quoted)));
}

static td_str apply_shown(struct td_arena *arena, const struct td_json *value)
{
    double number;
    if (td_json_is(value, TD_JSON_TYPE_NUMBER) && !apply_is_integer_text(value) &&
        td_json_to_double(value, &number)) {
        return td_field_double_text(arena, number);
    }
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_json_write(value, &(struct td_json_format){.indent = 0}, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* Does the value have the schema's type? Says so when not. */
static bool check_type(const struct apply_place *place, const struct td_json *value)
{
    td_str type = td_json_get_str(place->schema, TD_STR("type"), TD_STR_EMPTY);
    td_str format = td_json_get_str(place->schema, TD_STR("format"), TD_STR_EMPTY);
    struct apply_kind kind = apply_kind_of(value);
    td_str got = td_str_from(kind.type);
    bool is_null = value->type == TD_JSON_TYPE_NULL;
    bool wants_integer = td_str_equal(type, TD_STR("integer"));
    if (type.len == 0 || td_str_equal(type, got) ||
        (is_null && apply_flag(place->schema, TD_STR("nullable"))) ||
        (wants_integer && apply_is_whole_float(value)) ||
        (td_str_equal(type, TD_STR("number")) && value->type == TD_JSON_TYPE_NUMBER)) {
        return true;
    }
    bool by_format = format.len > 0 && !is_null && value->type != TD_JSON_TYPE_STRING &&
                     value->type != TD_JSON_TYPE_ARRAY;
    td_str wanted = td_arena_copy_str(place->errors->arena, by_format ? format : type);
    apply_wrong_type(place, wanted.ptr, by_format ? kind.format : kind.type);
    return false;
}

/* The range of a number's format, whatever its type turned out to be. */
static void check_range(const struct apply_place *place, td_str type, td_str format,
                        const struct td_json *value)
{
    double number;
    int64_t whole = 0;
    bool is_int32 = td_str_equal(format, TD_STR("int32"));
    if (!td_str_equal(type, TD_STR("integer"))) {
        return;
    }
    bool fits = td_json_to_int64(value, &whole);
    if (!fits && td_json_to_double(value, &number) && trunc(number) == number) {
        fits = fabs(number) < 0x1p63;
        whole = fits ? (int64_t)number : 0;
    }
    if (fits && (!is_int32 || (whole >= INT32_MIN && whole <= INT32_MAX))) {
        return;
    }
    td_str path = apply_path_text(place);
    struct td_arena *arena = place->errors->arena;
    apply_add_bare(place,
                   format.len > 0
                       ? td_arena_format(arena,
                                         "Checked value must be of type %.*s with format %.*s in "
                                         "%.*s",
                                         TD_STR_ARG(type), TD_STR_ARG(format), TD_STR_ARG(path))
                       : td_arena_format(arena,
                                         "Checked value must be of type %.*s (default format) in "
                                         "%.*s",
                                         TD_STR_ARG(type), TD_STR_ARG(path)));
}

static void check_number(const struct apply_place *place, const struct td_json *value)
{
    static const struct {
        td_str key;
        const char *words;
        double sign;
    } bounds[] = {
        {TD_STR_INIT("minimum"), "should be greater than or equal to", 1},
        {TD_STR_INIT("maximum"), "should be less than or equal to", -1},
    };
    double number;
    double bound;
    check_range(place, td_json_get_str(place->schema, TD_STR("type"), TD_STR_EMPTY),
                td_json_get_str(place->schema, TD_STR("format"), TD_STR_EMPTY), value);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        const struct td_json *node = td_json_get(place->schema, bounds[i].key);
        if (!node || !td_json_to_double(node, &bound) || !td_json_to_double(value, &number) ||
            (number - bound) * bounds[i].sign >= 0) {
            continue;
        }
        td_str path = apply_path_text(place);
        apply_add(place, TD_FIELD_INVALID, apply_shown(place->errors->arena, value),
                  td_arena_format(place->errors->arena, "%.*s in body %s %.*s", TD_STR_ARG(path),
                                  bounds[i].words, TD_STR_ARG(node->text)));
    }
}

/* A value that may be an integer or a string, and is neither. One that is only nearly whole passes
 * the test of types but not that of the integer's range. */
static void check_any_of(const struct apply_place *place, const struct td_json *value)
{
    double number = 0;
    bool is_whole = apply_is_integer_text(value) || apply_is_whole_float(value);
    bool is_exact = is_whole && (apply_is_integer_text(value) ||
                                 (td_json_to_double(value, &number) && trunc(number) == number));
    if (!td_json_get(place->schema, TD_STR("anyOf")) || value->type == TD_JSON_TYPE_STRING ||
        value->type == TD_JSON_TYPE_NULL || is_exact) {
        return;
    }
    td_str path = apply_path_text(place);
    apply_add_bare(place, td_arena_format(place->errors->arena,
                                          "\"%.*s\" must validate at least one schema (anyOf)",
                                          TD_STR_ARG(path)));
    if (!is_whole) {
        apply_wrong_type(place, "integer", apply_kind_of(value).type);
        apply_wrong_type(place, "integer,string", apply_kind_of(value).type);
    }
    if (value->type == TD_JSON_TYPE_NUMBER) {
        check_range(place, TD_STR("integer"), TD_STR_EMPTY, value);
    }
}

static size_t scan_digits(td_str text, size_t at)
{
    while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') {
        at++;
    }
    return at;
}

static bool scan_is(td_str text, size_t at, const char *set)
{
    return at < text.len && text.ptr[at] != '\0' && strchr(set, text.ptr[at]) != NULL;
}

/* Digits with an optional fraction, or a fraction alone, after an optional sign; returns `at` when
 * there is no number. */
static size_t scan_number(td_str text, size_t at)
{
    size_t start = at + scan_is(text, at, "+-");
    size_t end = scan_digits(text, start);
    bool has_digits = end > start;
    if (scan_is(text, end, ".")) {
        size_t fraction = scan_digits(text, end + 1);
        if (has_digits || fraction > end + 1) {
            return fraction;
        }
    }
    return has_digits ? end : at;
}

/* The one pattern that our schemas have, that of quantities. */
static bool apply_matches_quantity(td_str text)
{
    size_t end = scan_number(text, 0);
    if (end == 0) {
        return false;
    }
    td_str suffix = td_str_slice(text, end, text.len);
    if (suffix.len == 0 || (suffix.len == 1 && scan_is(suffix, 0, "numkMGTPE")) ||
        (suffix.len == 2 && scan_is(suffix, 0, "KMGTPE") && suffix.ptr[1] == 'i')) {
        return true;
    }
    size_t exponent = scan_is(suffix, 0, "eE") ? scan_number(suffix, 1) : 1;
    return exponent > 1 && exponent == suffix.len;
}

/* "z" or an offset. */
static bool apply_is_zone(td_str zone)
{
    if (zone.len == 1) {
        return scan_is(zone, 0, "zZ");
    }
    return zone.len == 6 && scan_is(zone, 0, "+-") && scan_digits(zone, 1) == 3 &&
           zone.ptr[3] == ':' && scan_digits(zone, 4) == 6;
}

/* The part after the first "t" up to the next: a time of day with its offset, both cases. */
static bool apply_is_time_of_day(td_str text)
{
    static const char shape[] = "00:00:00";
    size_t at = sizeof(shape) - 1;
    for (size_t i = 0; i < at; i++) {
        bool is_digit = scan_is(text, i, "0123456789");
        if (i >= text.len || (shape[i] == '0' ? !is_digit : text.ptr[i] != shape[i])) {
            return false;
        }
    }
    if (memcmp(text.ptr, "23", 2) > 0 || memcmp(text.ptr + 3, "59", 2) > 0 ||
        memcmp(text.ptr + 6, "59", 2) > 0) {
        return false;
    }
    /* The validator lets any character begin a fraction, so "+02" looks like one at first. */
    size_t fraction = scan_digits(text, at + 1);
    return apply_is_zone(td_str_slice(text, at, text.len)) ||
           (fraction > at + 1 && apply_is_zone(td_str_slice(text, fraction, text.len)));
}

static bool apply_is_date_time(struct td_arena *arena, td_str text)
{
    struct td_instant instant;
    size_t mark = 0;
    while (mark < text.len && text.ptr[mark] != 't' && text.ptr[mark] != 'T') {
        mark++;
    }
    size_t end = mark + 1;
    while (end < text.len && text.ptr[end] != 't' && text.ptr[end] != 'T') {
        end++;
    }
    if (mark != APPLY_DATE_BYTES) {
        return false;
    }
    td_str date = td_arena_format(arena, "%.*sT00:00:00Z", (int)mark, text.ptr);
    return td_time_parse(date, &instant, NULL) == TD_OK &&
           apply_is_time_of_day(td_str_slice(text, mark + 1, end));
}

static void check_string(const struct apply_place *place, const struct td_json *value)
{
    struct td_arena *arena = place->errors->arena;
    const struct td_json *pattern = td_json_get(place->schema, TD_STR("pattern"));
    td_str format = td_json_get_str(place->schema, TD_STR("format"), TD_STR_EMPTY);
    td_str path = apply_path_text(place);
    if (pattern && !apply_matches_quantity(value->text)) {
        apply_add(place, TD_FIELD_INVALID, apply_shown(arena, value),
                  td_arena_format(arena, "%.*s in body should match '%.*s'", TD_STR_ARG(path),
                                  TD_STR_ARG(pattern->text)));
    }
    if (td_str_equal(format, TD_STR("date-time")) && !apply_is_date_time(arena, value->text)) {
        td_str shown = apply_shown(arena, value);
        apply_add(place, TD_FIELD_TYPE_INVALID, shown,
                  td_arena_format(arena, "%.*s in body must be of type date-time: %.*s",
                                  TD_STR_ARG(path), TD_STR_ARG(shown)));
    }
}

static void check_enum(const struct apply_place *place, const struct td_json *value)
{
    const struct td_json *list = td_json_get(place->schema, TD_STR("enum"));
    if (!list) {
        return;
    }
    td_auto_buf detail;
    td_buf_init(&detail, TD_JSON_BYTES_MAX);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        if (td_json_equal(item, value)) {
            return;
        }
        /* The list is ours and short. */
        (void)td_buf_append(&detail, detail.len == 0 ? TD_STR("supported values: ") : TD_STR(", "));
        td_json_write_string(item->text, false, &detail);
    }
    apply_add(place, TD_FIELD_UNSUPPORTED, apply_shown(place->errors->arena, value),
              td_buf_str(&detail));
}

static void check_value(const struct apply_place *place, const struct td_json *value);

static void check_required(const struct apply_place *place, const struct td_json *object)
{
    const struct td_json *required = td_json_get(place->schema, TD_STR("required"));
    for (const struct td_json *name = td_json_first_item(required); name; name = name->next) {
        if (!td_json_get(object, name->text)) {
            struct td_field_path path = td_field_child(place->path, name->text);
            td_field_required(place->errors, &path, "");
        }
    }
}

static void check_object(const struct apply_place *place, const struct td_json *object)
{
    for (const struct td_json *member = td_json_first_member(object); member;
         member = member->next) {
        const struct td_json *known = apply_member(place->schema, member->key);
        if (!known || (place->depth == 0 && apply_is_meta(member->key))) {
            continue;
        }
        struct td_field_path path = td_field_child(place->path, member->key);
        struct apply_place below = {known, &path, place->errors, place->depth + 1};
        check_value(&below, member);
    }
    check_required(place, object);
}

static void check_list(const struct apply_place *place, const struct td_json *list)
{
    const struct td_json *items = td_json_get(place->schema, TD_STR("items"));
    size_t index = 0;
    for (const struct td_json *item = items ? td_json_first_item(list) : NULL; item;
         item = item->next) {
        struct td_field_path path = td_field_item(place->path, index++);
        struct apply_place below = {items, &path, place->errors, place->depth + 1};
        check_value(&below, item);
    }
}

static void check_value(const struct apply_place *place, const struct td_json *value)
{
    td_assert(place->depth < APPLY_DEPTH_MAX);
    if (place->errors->count >= TD_STRICT_PROBLEMS_MAX) {
        return; /* nobody reads more, and a hostile object could have millions */
    }
    (void)check_type(place, value); /* the other checks are made all the same (rule 4) */
    check_enum(place, value);
    check_any_of(place, value);
    if (value->type == TD_JSON_TYPE_STRING) {
        check_string(place, value);
    } else if (value->type == TD_JSON_TYPE_NUMBER) {
        check_number(place, value);
    } else if (value->type == TD_JSON_TYPE_OBJECT) {
        check_object(place, value);
    } else if (value->type == TD_JSON_TYPE_ARRAY) {
        check_list(place, value);
    }
}

void td_crd_check(const struct td_json *schema, const struct td_json *object,
                  struct td_field_errors *errors)
{
    struct apply_place place = {.schema = schema, .errors = errors};
    check_value(&place, object);
}
