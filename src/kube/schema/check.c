#include "kube/schema/check.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/intstr.h"
#include "kube/names.h"
#include "kube/objectpath.h"
#include "kube/quantity/quantity.h"
#include "kube/selector/selector.h"

#define CHECK_PATH_BYTES_MAX 4096
#define CHECK_VALUE_BYTES_MAX 60 /* of a wrong value that is shown */

/* "spec.replicas: \"three\": must be an integer", the value cut to a readable length. */
static int check_fail(const struct td_field_path *path, const struct td_json *value,
                      const char *rule, struct td_error *err)
{
    td_auto_buf where;
    td_auto_buf shown;
    td_buf_init(&where, CHECK_PATH_BYTES_MAX);
    td_buf_init(&shown, TD_JSON_BYTES_MAX);
    td_field_path_write(path, &where);
    td_json_write(value, &(struct td_json_format){.indent = 0}, &shown);
    td_str text = td_buf_str(&shown);
    bool is_cut = text.len > CHECK_VALUE_BYTES_MAX;
    size_t end = is_cut ? CHECK_VALUE_BYTES_MAX : text.len;
    while (is_cut && end > 0 && ((unsigned char)text.ptr[end] & 0xC0) == 0x80) {
        end--;
    }
    text.len = end;
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
    td_auto_arena scratch;
    td_arena_init(&scratch, TD_TREE_ARENA_BYTES_MAX);
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
            continue; /* unknown fields are a problem, not a failure: see td_check_object */
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

void td_problems_add(struct td_problems *problems, uint32_t line, td_str field, td_str message)
{
    if (problems->count == TD_STRICT_PROBLEMS_MAX) {
        problems->is_cut = true;
        return;
    }
    if (!problems->items) {
        problems->items =
            td_arena_array(problems->arena, struct td_problem, TD_STRICT_PROBLEMS_MAX);
    }
    problems->items[problems->count++] =
        (struct td_problem){.line = line, .field = field, .message = message};
}

/* Each line of `text` as one problem; td_name_check_* write one message a line. */
static void check_add_lines(struct td_problems *problems, uint32_t line, td_str field, td_str value,
                            td_str text)
{
    while (text.len > 0) {
        size_t end = td_str_find(text, '\n', 0);
        td_str message = td_arena_format(problems->arena, "\"%.*s\": %.*s", TD_STR_ARG(value),
                                         TD_STR_ARG(td_str_slice(text, 0, end)));
        td_problems_add(problems, line, field, message);
        text = td_str_slice(text, end + 1, text.len);
    }
}

static void check_metadata(const struct td_json *object, struct td_problems *problems)
{
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    const struct td_json *name = td_json_get(metadata, TD_STR("name"));
    const struct td_json *prefix = td_json_get(metadata, TD_STR("generateName"));
    const struct td_json *namespace = td_json_get(metadata, TD_STR("namespace"));
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    if (td_json_is(name, TD_JSON_TYPE_STRING)) {
        (void)td_name_check_dns1123_subdomain(name->text, &text); /* the text says how many */
        check_add_lines(problems, name->line, TD_STR("metadata.name"), name->text,
                        td_buf_str(&text));
    } else if (!td_json_is(prefix, TD_JSON_TYPE_STRING)) {
        td_problems_add(problems, metadata ? metadata->line : object->line, TD_STR("metadata.name"),
                        TD_STR("name or generateName is required"));
    }
    td_buf_reset(&text);
    if (td_json_is(namespace, TD_JSON_TYPE_STRING)) {
        (void)td_name_check_dns1123_label(namespace->text, &text); /* as above */
        check_add_lines(problems, namespace->line, TD_STR("metadata.namespace"), namespace->text,
                        td_buf_str(&text));
    }
}

static td_str check_field(struct td_problems *problems, const struct td_field_path *path,
                          td_str member)
{
    struct td_field_path field = td_field_child(path, member);
    return td_field_path_text(problems->arena, &field);
}

typedef size_t (*check_map_fn)(const struct td_json *map, td_str path, struct td_buf *out);

/* Labels or annotations of one ObjectMeta; each message begins with the path, which the problem
 * already has. */
static void check_map(struct td_problems *problems, const struct td_json *meta, td_str member,
                      check_map_fn check, const struct td_field_path *path)
{
    const struct td_json *map = td_json_get(meta, member);
    if (!td_json_is(map, TD_JSON_TYPE_OBJECT)) {
        return;
    }
    td_auto_buf text;
    td_buf_init(&text, TD_JSON_BYTES_MAX);
    td_str field = check_field(problems, path, member);
    (void)check(map, field, &text); /* the text says how many */
    td_str rest = td_buf_str(&text);
    while (rest.len > 0) {
        size_t end = td_str_find(rest, '\n', 0);
        td_str line = td_str_slice(rest, 0, end);
        if (td_str_starts_with(line, field)) {
            line = td_str_trim(td_str_slice(line, field.len + 1, line.len));
        }
        td_problems_add(problems, map->line, field, td_arena_copy_str(problems->arena, line));
        rest = td_str_slice(rest, end + 1, rest.len);
    }
}

static void check_selector(struct td_problems *problems, const struct td_json *value,
                           const struct td_field_path *path)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_selector_check_json(problems->arena, value, &err) < 0) {
        td_problems_add(problems, value->line, td_field_path_text(problems->arena, path),
                        td_arena_format(problems->arena, "%s", err.message));
    }
}

/* One value of a known type, and all below it. Recursion as in check_value. */
static void check_semantics(struct td_problems *problems, const struct td_schema_type *type,
                            const struct td_json *value, const struct td_field_path *path)
{
    bool is_object = value->type == TD_JSON_TYPE_OBJECT;
    bool is_list = value->type == TD_JSON_TYPE_ARRAY;
    if (type->kind == TD_SCHEMA_ANY || (!is_object && !is_list) ||
        (path && path->depth >= TD_JSON_DEPTH_MAX)) {
        return;
    }
    if (is_object && td_str_equal(type->name, TD_STR("ObjectMeta"))) {
        check_map(problems, value, TD_STR("labels"), td_name_check_labels, path);
        check_map(problems, value, TD_STR("annotations"), td_name_check_annotations, path);
    } else if (is_object && td_str_equal(type->name, TD_STR("LabelSelector"))) {
        check_selector(problems, value, path);
    }
    size_t index = 0;
    for (const struct td_json *child = td_json_first_child(value); child;
         child = child->next, index++) {
        struct td_field_path place =
            is_list ? td_field_item(path, index) : td_field_child(path, child->key);
        const struct td_schema_type *child_type =
            is_list ? type->element : td_schema_member(type, child->key);
        if (child_type) {
            check_semantics(problems, child_type, child, &place);
        } else {
            td_problems_add(problems, child->line, check_field(problems, path, child->key),
                            TD_STR("unknown field"));
        }
    }
}

void td_check_object(const struct td_schema_type *type, const struct td_json *object,
                     struct td_problems *problems)
{
    check_metadata(object, problems);
    check_semantics(problems, type ? type : td_schema_any_object(), object, NULL);
}
