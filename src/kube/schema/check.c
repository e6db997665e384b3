/*
 * Two walks down the schema table and the object: one over types, which ends at the first value
 * that cannot be decoded, and one over names, which collects the fields that no type has.
 */
#include "kube/schema/check.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/objectpath.h"
#include "kube/quantity/quantity.h"

#define CHECK_PATH_BYTES_MAX 4096
#define CHECK_VALUE_BYTES_MAX 60 /* of a wrong value that is shown */

/* "spec.replicas: \"three\": must be an integer", the value cut to a readable length. */
static int check_fail(const struct td_field_path *path, const struct td_json *value,
                      const char *rule, struct td_error *err)
{
    td_auto_buf where = td_buf_capped(CHECK_PATH_BYTES_MAX);
    td_auto_buf shown = td_buf_capped(TD_JSON_BYTES_MAX);
    td_field_path_write(path, &where);
    td_json_write(value, &(struct td_json_format){.indent = 0}, &shown);
    td_str text = td_str_cut_utf8(td_buf_str(&shown), CHECK_VALUE_BYTES_MAX);
    bool is_cut = text.len < shown.len;
    return td_error_set(err, TD_INVALID, "%.*s: %.*s%s: %s", TD_STR_ARG(td_buf_str(&where)),
                        TD_STR_ARG(text), is_cut ? "…" : "", rule);
}

static bool check_is_integer(const struct td_json *value, int64_t min, int64_t max)
{
    int64_t number;
    return td_json_is(value, TD_JSON_TYPE_NUMBER) && td_str_to_int64(value->text, &number) &&
           number >= min && number <= max;
}

static bool check_is_base64(td_str text)
{
    if (text.len % 4 != 0) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_digit = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || c == '+' || c == '/';
        bool is_padding =
            c == '=' && i + 2 >= text.len && (i + 1 == text.len || text.ptr[i + 1] == '=');
        if (!is_digit && !is_padding) {
            return false;
        }
    }
    return true;
}

static bool check_is_quantity(const struct td_json *value)
{
    if (!td_json_is(value, TD_JSON_TYPE_STRING) && !td_json_is(value, TD_JSON_TYPE_NUMBER)) {
        return false;
    }
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_quantity quantity;
    td_str text = value->type == TD_JSON_TYPE_STRING ? td_str_trim(value->text) : value->text;
    return td_quantity_parse(&scratch, text, &quantity, NULL) == TD_OK;
}

/* NULL when a scalar is right, else the rule it breaks. */
static const char *check_scalar(enum td_schema_kind kind, const struct td_json *value)
{
    struct td_instant instant;
    td_duration duration;
    bool is_string = value->type == TD_JSON_TYPE_STRING;
    switch (kind) {
    case TD_SCHEMA_STRING:
        return is_string ? NULL : "must be a string";
    case TD_SCHEMA_INT32:
        return check_is_integer(value, INT32_MIN, INT32_MAX) ? NULL : "must be a 32-bit integer";
    case TD_SCHEMA_INT64:
        return check_is_integer(value, INT64_MIN, INT64_MAX) ? NULL : "must be an integer";
    case TD_SCHEMA_NUMBER:
        return value->type == TD_JSON_TYPE_NUMBER ? NULL : "must be a number";
    case TD_SCHEMA_BOOL:
        return value->type == TD_JSON_TYPE_BOOL ? NULL : "must be true or false";
    case TD_SCHEMA_QUANTITY:
        return check_is_quantity(value) ? NULL : "must be a quantity such as 500m, 1.5 or 128Mi";
    case TD_SCHEMA_INT_OR_STRING:
        return is_string || check_is_integer(value, INT32_MIN, INT32_MAX)
                   ? NULL
                   : "must be a 32-bit integer or a string";
    case TD_SCHEMA_TIME:
    case TD_SCHEMA_MICRO_TIME:
        return is_string && td_time_parse(value->text, &instant, NULL) == TD_OK
                   ? NULL
                   : "must be a time such as 2006-01-02T15:04:05Z";
    case TD_SCHEMA_DURATION:
        return is_string && td_duration_parse(value->text, &duration, NULL) == TD_OK
                   ? NULL
                   : "must be a duration such as 1m30s";
    case TD_SCHEMA_BYTES:
        return is_string && check_is_base64(value->text) ? NULL : "must be base64";
    case TD_SCHEMA_ANY:
    case TD_SCHEMA_OBJECT:
    case TD_SCHEMA_MAP:
    case TD_SCHEMA_LIST:
        break;
    }
    return NULL;
}

struct check_types {
    uint32_t line;
    struct td_error *err;
};

static int check_value(struct check_types *check, const struct td_schema_type *type,
                       const struct td_json *value, const struct td_field_path *path);

static int check_children(struct check_types *check, const struct td_schema_type *type,
                          const struct td_json *value, const struct td_field_path *path)
{
    size_t index = 0;
    for (const struct td_json *child = td_json_first_child(value); child;
         child = child->next, index++) {
        const struct td_schema_type *child_type =
            type->kind == TD_SCHEMA_LIST ? type->element : td_schema_member(type, child->key);
        if (!child_type) {
            continue; /* unknown fields are a problem, not a failure: see td_check_unknown */
        }
        struct td_field_path place = type->kind == TD_SCHEMA_LIST
                                         ? td_field_item(path, index)
                                         : td_field_child(path, child->key);
        int code = check_value(check, child_type, child, &place);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

/* Recursion is bounded by the depth of the tree, which every parser caps at TD_JSON_DEPTH_MAX. */
static int check_value(struct check_types *check, const struct td_schema_type *type,
                       const struct td_json *value, const struct td_field_path *path)
{
    if (value->type == TD_JSON_TYPE_NULL || type->kind == TD_SCHEMA_ANY) {
        return TD_OK;
    }
    const char *rule = check_scalar(type->kind, value);
    bool wants_list = type->kind == TD_SCHEMA_LIST;
    bool wants_object = type->kind == TD_SCHEMA_OBJECT || type->kind == TD_SCHEMA_MAP;
    if (wants_list && value->type != TD_JSON_TYPE_ARRAY) {
        rule = "must be a list";
    } else if (wants_object && value->type != TD_JSON_TYPE_OBJECT) {
        rule = "must be an object";
    } else if (path && path->depth >= TD_JSON_DEPTH_MAX) {
        rule = "is nested too deeply";
    }
    if (rule) {
        check->line = value->line;
        return check_fail(path, value, rule, check->err);
    }
    return wants_list || wants_object ? check_children(check, type, value, path) : TD_OK;
}

int td_check_types(const struct td_schema_type *type, const struct td_json *object,
                   uint32_t *ret_line, struct td_error *err)
{
    struct check_types check = {.err = err};
    int code = check_value(&check, type, object, NULL);
    if (code < 0 && ret_line) {
        *ret_line = check.line;
    }
    return code;
}

void td_problems_add(struct td_problems *problems, const struct td_problem *problem)
{
    if (problems->count == TD_STRICT_PROBLEMS_MAX) {
        problems->is_cut = true;
        return;
    }
    if (!problems->items) {
        problems->items =
            td_arena_array(problems->arena, struct td_problem, TD_STRICT_PROBLEMS_MAX);
    }
    problems->items[problems->count++] = *problem;
}

/* One value of a known type, and all below it. Recursion as in check_value. */
static void check_unknown(struct td_problems *problems, const struct td_schema_type *type,
                          const struct td_json *value, const struct td_field_path *path)
{
    bool is_list = value->type == TD_JSON_TYPE_ARRAY;
    if (type->kind == TD_SCHEMA_ANY || (value->type != TD_JSON_TYPE_OBJECT && !is_list) ||
        (path && path->depth >= TD_JSON_DEPTH_MAX)) {
        return;
    }
    size_t index = 0;
    for (const struct td_json *child = td_json_first_child(value); child;
         child = child->next, index++) {
        struct td_field_path place =
            is_list ? td_field_item(path, index) : td_field_child(path, child->key);
        const struct td_schema_type *child_type =
            is_list ? type->element : td_schema_member(type, child->key);
        if (child_type) {
            check_unknown(problems, child_type, child, &place);
            continue;
        }
        td_problems_add(problems, &(struct td_problem){
                                      .line = child->line,
                                      .field = td_field_path_text(problems->arena, &place),
                                      .message = TD_STR("unknown field"),
                                      .rule = "unknown-field",
                                  });
    }
}

void td_check_unknown(const struct td_schema_type *type, const struct td_json *object,
                      struct td_problems *problems)
{
    check_unknown(problems, type, object, NULL);
}
