/*
 * Values as the strategic merge sees them: their decoded kind, equality and printed form, the copy
 * that a patch works on (import, which checks numbers) and the tree that it returns (export), the
 * look-up of a field by a name in any case, and failures with their path.
 */
#include "kube/patch/patch_work.h"

#include "base/error.h"
#include "base/limits.h"

enum patch_kind td_patch_kind(const struct td_json *node)
{
    if (!node) {
        return PATCH_MISSING;
    }
    int64_t whole = 0;
    switch (node->type) {
    case TD_JSON_TYPE_NULL:
        return PATCH_NULL;
    case TD_JSON_TYPE_BOOL:
        return PATCH_BOOL;
    case TD_JSON_TYPE_NUMBER:
        return td_str_to_int64(node->text, &whole) ? PATCH_INT64 : PATCH_FLOAT64;
    case TD_JSON_TYPE_STRING:
        return PATCH_STRING;
    case TD_JSON_TYPE_ARRAY:
        return PATCH_LIST;
    default:
        return PATCH_OBJECT;
    }
}

static td_str value_number_text(struct patch_work *work, const struct td_json *number)
{
    double value = 0;
    if (td_patch_kind(number) == PATCH_INT64) {
        return td_str_equal(number->text, TD_STR("-0")) ? TD_STR("0") : number->text;
    }
    if (!td_json_to_double(number, &value)) {
        return number->text; /* an import has refused it already */
    }
    return td_json_new_double(work->arena, value)->text;
}

struct patch_value td_patch_value(struct patch_work *work, const struct td_json *node)
{
    struct patch_value value = {.kind = td_patch_kind(node), .text = TD_STR_EMPTY};
    switch (value.kind) {
    case PATCH_BOOL:
        value.text = node->boolean ? TD_STR("true") : TD_STR("false");
        break;
    case PATCH_INT64:
    case PATCH_FLOAT64:
        value.text = value_number_text(work, node);
        break;
    case PATCH_STRING:
        value.text = node->text;
        break;
    default:
        break;
    }
    return value;
}

/* Lists as [a b], objects as map[k:a l:b]; the members are sorted already. */
static void value_print(struct patch_work *work, const struct td_json *node, size_t depth,
                        struct td_buf *out)
{
    struct patch_value value = td_patch_value(work, node);
    if (value.kind == PATCH_NULL) {
        (void)td_buf_append(out, TD_STR("<nil>"));
    } else if (value.kind != PATCH_LIST && value.kind != PATCH_OBJECT) {
        (void)td_buf_append(out, value.text);
    } else if (depth <= TD_JSON_DEPTH_MAX) {
        (void)td_buf_append(out, value.kind == PATCH_LIST ? TD_STR("[") : TD_STR("map["));
        for (const struct td_json *child = td_json_first_child(node); child; child = child->next) {
            (void)td_buf_append(out, child == td_json_first_child(node) ? TD_STR("") : TD_STR(" "));
            (void)td_buf_append(out, child->key);
            (void)td_buf_append(out, value.kind == PATCH_LIST ? TD_STR("") : TD_STR(":"));
            value_print(work, child, depth + 1, out);
        }
        (void)td_buf_append_char(out, ']');
    }
}

td_str td_patch_print(struct patch_work *work, const struct td_json *node)
{
    struct patch_value value = td_patch_value(work, node);
    if (value.kind == PATCH_MISSING || value.kind == PATCH_NULL) {
        return TD_STR("<nil>");
    }
    if (value.kind != PATCH_LIST && value.kind != PATCH_OBJECT) {
        return value.text;
    }
    struct td_json *sorted = td_json_copy(work->arena, node, false);
    td_json_sort(work->arena, sorted);
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX); /* cut beyond: it only decides an order */
    value_print(work, sorted, 1, &text);
    return td_arena_copy_str(work->arena, td_buf_str(&text));
}

static bool value_equal(struct patch_work *work, const struct td_json *a, const struct td_json *b,
                        size_t depth);

static bool value_equal_objects(struct patch_work *work, const struct td_json *a,
                                const struct td_json *b, size_t depth)
{
    for (const struct td_json *member = td_json_first_member(a); member; member = member->next) {
        const struct td_json *other = td_json_get(b, member->key);
        if (!other || !value_equal(work, member, other, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool value_equal(struct patch_work *work, const struct td_json *a, const struct td_json *b,
                        size_t depth)
{
    struct patch_value left = td_patch_value(work, a);
    struct patch_value right = td_patch_value(work, b);
    if (depth > TD_JSON_DEPTH_MAX || left.kind != right.kind) {
        return false;
    }
    if (left.kind != PATCH_LIST && left.kind != PATCH_OBJECT) {
        return td_str_equal(left.text, right.text);
    }
    if (a->count != b->count) {
        return false;
    }
    if (left.kind == PATCH_OBJECT) {
        return value_equal_objects(work, a, b, depth);
    }
    const struct td_json *other = td_json_first_item(b);
    for (const struct td_json *item = td_json_first_item(a); item; item = item->next) {
        if (!value_equal(work, item, other, depth + 1)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

bool td_patch_deep_equal(struct patch_work *work, const struct td_json *a, const struct td_json *b)
{
    return value_equal(work, a, b, 1);
}

/* Visits every number of a tree that is no deeper than TD_JSON_DEPTH_MAX: checks it, or writes it
 * as Go does. */
static int value_visit_numbers(struct patch_work *work, struct td_json *node, bool is_export,
                               size_t depth)
{
    double value = 0;
    if (node->type == TD_JSON_TYPE_NUMBER && is_export) {
        node->text = value_number_text(work, node);
    } else if (node->type == TD_JSON_TYPE_NUMBER && td_patch_kind(node) == PATCH_FLOAT64 &&
               !td_json_to_double(node, &value)) {
        return td_error_set(work->err, TD_INVALID, "number %.*s is out of range",
                            TD_STR_ARG(node->text));
    }
    bool is_collection = node->type == TD_JSON_TYPE_ARRAY || node->type == TD_JSON_TYPE_OBJECT;
    if (!is_collection || depth > TD_JSON_DEPTH_MAX) {
        return TD_OK;
    }
    for (struct td_json *child = td_json_first_child(node); child; child = child->next) {
        int code = value_visit_numbers(work, child, is_export, depth + 1);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

int td_patch_import(struct patch_work *work, const struct td_json *input, const char *what,
                    struct td_json **ret)
{
    if (!input || input->type == TD_JSON_TYPE_NULL) {
        *ret = td_json_new_object(work->arena);
        return TD_OK;
    }
    if (input->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(work->err, TD_INVALID, "%s is not an object", what);
    }
    if (td_json_depth(input) > TD_JSON_DEPTH_MAX) {
        return td_error_set(work->err, TD_LIMIT, "%s is nested deeper than %d", what,
                            TD_JSON_DEPTH_MAX);
    }
    struct td_json *copy = td_json_copy(work->arena, input, false);
    int code = value_visit_numbers(work, copy, false, 1);
    if (code < 0) {
        return code;
    }
    *ret = copy;
    return TD_OK;
}

void td_patch_export(struct patch_work *work, struct td_json *tree)
{
    (void)value_visit_numbers(work, tree, true, 1); /* only a check can fail */
}

/* One character of a field name against the start of `text`: letters in either case, and the two
 * letters outside ASCII that fold to k and s, as Go's decoder has it. Returns the bytes taken. */
static size_t value_fold(char letter, td_str text)
{
    char lower = (char)(letter | 0x20);
    bool is_letter = lower >= 'a' && lower <= 'z';
    if (text.len > 0 && (text.ptr[0] == letter || (is_letter && (text.ptr[0] | 0x20) == lower))) {
        return 1;
    }
    if (lower == 'k' && td_str_starts_with(text, TD_STR("\xe2\x84\xaa"))) {
        return 3;
    }
    return lower == 's' && td_str_starts_with(text, TD_STR("\xc5\xbf")) ? 2 : 0;
}

static bool value_name_folds(td_str field, td_str name)
{
    for (size_t i = 0; i < field.len; i++) {
        size_t taken = value_fold(field.ptr[i], name);
        if (taken == 0) {
            return false;
        }
        name = td_str_slice(name, taken, name.len);
    }
    return name.len == 0;
}

static const struct td_schema_field *value_find_field(const struct td_schema_type *type,
                                                      td_str name)
{
    const struct td_schema_field *field = td_schema_field(type, name);
    for (size_t i = 0; i < type->field_count && !field; i++) {
        field = value_name_folds(type->fields[i].name, name) ? &type->fields[i] : NULL;
    }
    return field;
}

static int value_lookup(struct patch_work *work, const struct td_schema_type *type, td_str name,
                        const struct td_schema_field **ret, struct patch_field *ret_field)
{
    if (!type || type->kind != TD_SCHEMA_OBJECT) {
        return td_error_set(work->err, TD_INVALID,
                            "field \"%.*s\" is inside a value that has no fields",
                            TD_STR_ARG(name));
    }
    const struct td_schema_field *field = value_find_field(type, name);
    if (!field) {
        return td_error_set(work->err, TD_INVALID, "%.*s has no field \"%.*s\"",
                            TD_STR_ARG(type->name), TD_STR_ARG(name));
    }
    enum td_schema_patch how = field->patch;
    *ret = field;
    *ret_field = (struct patch_field){
        .type = field->type,
        .retains_keys =
            how == TD_SCHEMA_PATCH_RETAIN_KEYS || how == TD_SCHEMA_PATCH_MERGE_RETAIN_KEYS,
        .is_merged = how == TD_SCHEMA_PATCH_MERGE || how == TD_SCHEMA_PATCH_MERGE_RETAIN_KEYS,
        .is_replaced = how == TD_SCHEMA_PATCH_REPLACE,
        .key = field->patch_key,
    };
    return TD_OK;
}

int td_patch_lookup_object(struct patch_work *work, const struct td_schema_type *type, td_str name,
                           struct patch_field *ret)
{
    const struct td_schema_field *field = NULL;
    return value_lookup(work, type, name, &field, ret);
}

int td_patch_lookup_list(struct patch_work *work, const struct td_schema_type *type, td_str name,
                         struct patch_field *ret)
{
    const struct td_schema_field *field = NULL;
    struct patch_field found;
    int code = value_lookup(work, type, name, &field, &found);
    if (code < 0) {
        return code;
    }
    enum td_schema_kind kind = field->type->kind;
    if (kind == TD_SCHEMA_LIST) {
        found.type = field->type->element;
        kind = found.type->kind;
        if (kind == TD_SCHEMA_LIST || kind == TD_SCHEMA_BYTES) {
            return td_error_set(work->err, TD_INVALID, "field \"%.*s\" is a list of lists",
                                TD_STR_ARG(name));
        }
    } else if (kind != TD_SCHEMA_BYTES && !field->is_pointer) {
        return td_error_set(work->err, TD_INVALID, "field \"%.*s\" is no list", TD_STR_ARG(name));
    }
    *ret = found;
    return TD_OK;
}

int td_patch_fail_at(struct patch_work *work, td_str name, int code)
{
    if (work->path.len > TD_ERROR_MESSAGE_BYTES) {
        return code; /* the message is cut anyway */
    }
    const char *dot = work->path.len > 0 ? "." : "";
    work->path =
        td_arena_format(work->arena, "%.*s%s%.*s", TD_STR_ARG(name), dot, TD_STR_ARG(work->path));
    return code;
}

int td_patch_fail(struct patch_work *work, int code)
{
    if (work->path.len == 0) {
        return code;
    }
    return td_error_wrap(work->err, code, "%.*s", TD_STR_ARG(work->path));
}
