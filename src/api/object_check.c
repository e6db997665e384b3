/*
 * Names and maps are checked by kube/names.h, which writes lines of text; here they become field
 * errors at their paths.
 */
#include "api/object_check.h"

#include <stdarg.h>
#include <stdio.h>

#include "kube/names.h"
#include "kube/selector/selector.h"

#define KIND_DETAIL_BYTES 1024 /* of a formatted detail; longer ones are cut */

static bool kind_is_empty(const struct td_json *value)
{
    bool is_collection =
        td_json_is(value, TD_JSON_TYPE_ARRAY) || td_json_is(value, TD_JSON_TYPE_OBJECT);
    return !value || value->type == TD_JSON_TYPE_NULL || (is_collection && value->count == 0);
}

bool td_kind_same(const struct td_json *a, const struct td_json *b)
{
    bool is_a_empty = kind_is_empty(a);
    bool is_b_empty = kind_is_empty(b);
    return is_a_empty || is_b_empty ? is_a_empty == is_b_empty : td_json_equal(a, b);
}

bool td_kind_same_member(const struct td_json *a, const struct td_json *b, td_str key)
{
    return td_kind_same(td_json_get(a, key), td_json_get(b, key));
}

void td_kind_take(struct td_arena *arena, struct td_json *to, const struct td_json *from,
                  td_str key)
{
    const struct td_json *value = td_json_get(from, key);
    if (value) {
        td_json_set(arena, to, key, td_json_copy(arena, value, false));
    } else {
        (void)td_json_remove(to, key); /* may be absent */
    }
}

struct td_field_path td_kind_key(const struct td_field_path *parent, td_str key)
{
    struct td_field_path path = td_field_child(parent, key);
    path.is_key = true;
    return path;
}

void td_kind_check_name_at(struct td_field_errors *errors, const struct td_field_path *path,
                           td_str name, td_kind_name_fn check)
{
    td_auto_buf lines = td_buf_capped(TD_JSON_BYTES_MAX);
    (void)check(name, &lines); /* the lines say how many */
    td_field_invalid_lines(errors, path, name, td_buf_str(&lines));
}

void td_kind_check_not_negative(struct td_field_errors *errors, const struct td_field_path *path,
                                const struct td_json *object, td_str key)
{
    int64_t value = td_json_get_int64(object, key, 0);
    if (value < 0) {
        struct td_field_path place = td_field_child(path, key);
        td_field_invalid_int(errors, &place, value, "must be greater than or equal to 0");
    }
}

void td_kind_check_one_of(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *object, td_str key, const td_str *values,
                          size_t count)
{
    td_str text = td_kind_text(object, key);
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(text, values[i])) {
            return;
        }
    }
    struct td_field_path place = td_field_child(path, key);
    if (text.len == 0) {
        td_field_required(errors, &place, "");
    } else {
        td_field_unsupported(errors, &place, text, values, count);
    }
}

void td_kind_invalid_tree(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *value, const char *detail)
{
    td_str shown = value ? td_json_line(errors->arena, value) : TD_STR("null");
    td_field_error_add(errors, path, TD_FIELD_INVALID, shown, td_str_from(detail));
}

void td_kind_invalid_text(struct td_field_errors *errors, const struct td_field_path *path,
                          td_str value, const char *format, ...)
{
    char detail[KIND_DETAIL_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof(detail), format, args); /* cut at the size */
    va_end(args);
    td_field_invalid_str(errors, path, value, detail);
}

void td_kind_check_immutable(struct td_field_errors *errors, const struct td_field_path *path,
                             const struct td_json *value, const struct td_json *old)
{
    if (!td_kind_same(value, old)) {
        td_kind_invalid_tree(errors, path, value, "field is immutable");
    }
}

typedef size_t (*kind_map_fn)(const struct td_json *map, td_str path, struct td_buf *out);

/* Checks of whole maps write complete messages, "PATH: CLASS: the rest", which are taken apart. */
static void kind_check_map(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *map, kind_map_fn check)
{
    static const td_str too_long = TD_STR_INIT("Too long: ");
    static const td_str invalid = TD_STR_INIT("Invalid value: ");
    if (!td_json_is(map, TD_JSON_TYPE_OBJECT)) {
        return;
    }
    td_auto_buf lines = td_buf_capped(TD_JSON_BYTES_MAX);
    td_str where = td_field_path_text(errors->arena, path);
    (void)check(map, where, &lines); /* the lines say how many */
    for (td_str rest = td_buf_str(&lines); rest.len > 0;) {
        size_t end = td_str_find(rest, '\n', 0);
        td_str line = td_str_slice(rest, where.len + 2, end); /* past "PATH: " */
        bool is_long = td_str_starts_with(line, too_long);
        size_t skip = is_long ? too_long.len : invalid.len;
        td_field_error_add(errors, path, is_long ? TD_FIELD_TOO_LONG : TD_FIELD_INVALID,
                           TD_STR_EMPTY, td_str_slice(line, skip, line.len));
        rest = td_str_slice(rest, end + 1, rest.len);
    }
}

void td_kind_check_labels(struct td_field_errors *errors, const struct td_field_path *path,
                          const struct td_json *labels)
{
    kind_check_map(errors, path, labels, td_name_check_labels);
}

void td_kind_check_annotations(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *annotations)
{
    kind_check_map(errors, path, annotations, td_name_check_annotations);
}

static void kind_check_requirement(struct td_field_errors *errors, const struct td_field_path *path,
                                   const struct td_json *requirement)
{
    td_str operation = td_kind_text(requirement, TD_STR("operator"));
    const struct td_json *values = td_kind_member(requirement, TD_STR("values"));
    bool has_values = values && values->count > 0;
    bool wants_set =
        td_str_equal(operation, TD_STR("In")) || td_str_equal(operation, TD_STR("NotIn"));
    bool wants_none = td_str_equal(operation, TD_STR("Exists")) ||
                      td_str_equal(operation, TD_STR("DoesNotExist"));
    struct td_field_path values_path = td_field_child(path, TD_STR("values"));
    if (wants_set && !has_values) {
        td_field_required(errors, &values_path,
                          "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (wants_none && has_values) {
        td_field_forbidden(errors, &values_path,
                           "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (!wants_set && !wants_none) {
        struct td_field_path place = td_field_child(path, TD_STR("operator"));
        td_field_invalid_str(errors, &place, operation, "not a valid selector operator");
    }
    struct td_field_path key = td_field_child(path, TD_STR("key"));
    td_kind_check_name_at(errors, &key, td_kind_text(requirement, TD_STR("key")),
                          td_name_check_qualified);
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(values); item;
         item = item->next, index++) {
        struct td_field_path place = td_field_item(&values_path, index);
        td_kind_check_name_at(errors, &place, item->text, td_name_check_label_value);
    }
}

void td_kind_check_selector(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *selector)
{
    struct td_field_path labels = td_field_child(path, TD_STR("matchLabels"));
    td_kind_check_labels(errors, &labels, td_kind_member(selector, TD_STR("matchLabels")));
    const struct td_json *list = td_kind_member(selector, TD_STR("matchExpressions"));
    struct td_field_path expressions = td_field_child(path, TD_STR("matchExpressions"));
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, index++) {
        struct td_field_path place = td_field_item(&expressions, index);
        kind_check_requirement(errors, &place, item);
    }
}

bool td_kind_selects(struct td_arena *arena, const struct td_json *selector,
                     const struct td_json *labels)
{
    struct td_selector parsed;
    if (td_selector_from_json(arena, selector, &parsed, NULL) < 0) {
        return false;
    }
    struct td_labels set = td_labels_from_json(arena, labels);
    return td_selector_matches(&parsed, &set);
}

#define KIND_PORT_MAX 65535

void td_kind_check_port(struct td_field_errors *errors, const struct td_field_path *path,
                        const struct td_json *port)
{
    int64_t number = 0;
    if (td_json_is(port, TD_JSON_TYPE_STRING)) {
        td_kind_check_name_at(errors, path, port->text, td_name_check_port);
        return;
    }
    if (td_json_is(port, TD_JSON_TYPE_NUMBER)) {
        (void)td_json_to_int64(port, &number); /* an int32 by its type */
    }
    if (number < 1 || number > KIND_PORT_MAX) {
        td_field_invalid_int(errors, path, number, "must be between 1 and 65535, inclusive");
    }
}

bool td_kind_add_name(struct td_arena *arena, struct td_json *set, td_str name)
{
    if (td_json_get(set, name)) {
        return false;
    }
    td_json_set(arena, set, name, td_json_new_null(arena));
    return true;
}

void td_kind_duplicate(struct td_field_errors *errors, const struct td_field_path *path,
                       td_str value)
{
    td_field_error_str(errors, path, TD_FIELD_DUPLICATE, value);
}

size_t td_kind_check_path_segment(td_str name, struct td_buf *out)
{
    size_t count = 0;
    bool is_dots = td_str_equal(name, TD_STR(".")) || td_str_equal(name, TD_STR(".."));
    const char *rules[] = {
        is_dots ? (name.len == 1 ? "may not be '.'" : "may not be '..'") : NULL,
        td_str_find(name, '/', 0) < name.len ? "may not contain '/'" : NULL,
        td_str_find(name, '%', 0) < name.len ? "may not contain '%'" : NULL,
    };
    for (size_t i = 0; i < TD_COUNT(rules); i++) {
        if (rules[i]) {
            count++;
            if (out) {
                (void)td_buf_append_format(out, "%s\n", rules[i]); /* checked by its owner */
            }
        }
    }
    return count;
}
