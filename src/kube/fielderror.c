/*
 * Errors are gathered with copies of their texts, values cut to a readable length, and are written
 * in the form of upstream's field.Error.
 */
#include "kube/fielderror.h"

#include "base/limits.h"
#include "kube/quote.h"

/* Texts come from objects: a name of a megabyte is not told whole a hundred times. */
static td_str field_cut(struct td_arena *arena, td_str text)
{
    if (text.len <= TD_FIELD_ERROR_TEXT_BYTES_MAX) {
        return td_arena_copy_str(arena, text);
    }
    td_str cut = td_str_cut_utf8(text, TD_FIELD_ERROR_TEXT_BYTES_MAX);
    return td_arena_format(arena, "%.*s...", TD_STR_ARG(cut));
}

void td_field_error_add(struct td_field_errors *errors, const struct td_field_path *path,
                        enum td_field_error_type type, td_str value, td_str detail)
{
    if (errors->count >= TD_FIELD_ERRORS_MAX) {
        return; /* they are mended step by step, and a hostile object could have millions */
    }
    errors->items = td_arena_grow(errors->arena, errors->items, errors->count, &errors->cap,
                                  sizeof(*errors->items));
    errors->items[errors->count++] = (struct td_field_error){
        .field = field_cut(errors->arena, td_field_path_text(errors->arena, path)),
        .type = type,
        .value = field_cut(errors->arena, value),
        .detail = field_cut(errors->arena, detail),
    };
}

void td_field_required(struct td_field_errors *errors, const struct td_field_path *path,
                       const char *detail)
{
    td_field_error_add(errors, path, TD_FIELD_REQUIRED, TD_STR_EMPTY, td_str_from(detail));
}

void td_field_forbidden(struct td_field_errors *errors, const struct td_field_path *path,
                        const char *detail)
{
    td_field_error_add(errors, path, TD_FIELD_FORBIDDEN, TD_STR_EMPTY, td_str_from(detail));
}

static td_str field_quote(struct td_arena *arena, td_str value)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_quote_write(td_str_cut_utf8(value, TD_FIELD_ERROR_TEXT_BYTES_MAX), &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

void td_field_invalid_str(struct td_field_errors *errors, const struct td_field_path *path,
                          td_str value, const char *detail)
{
    td_field_error_add(errors, path, TD_FIELD_INVALID, field_quote(errors->arena, value),
                       td_str_from(detail));
}

void td_field_error_str(struct td_field_errors *errors, const struct td_field_path *path,
                        enum td_field_error_type type, td_str value)
{
    td_field_error_add(errors, path, type, field_quote(errors->arena, value), TD_STR_EMPTY);
}

void td_field_invalid_lines(struct td_field_errors *errors, const struct td_field_path *path,
                            td_str value, td_str details)
{
    while (details.len > 0) {
        size_t end = td_str_find(details, '\n', 0);
        td_field_error_add(errors, path, TD_FIELD_INVALID, field_quote(errors->arena, value),
                           td_str_slice(details, 0, end));
        details = td_str_slice(details, end + 1, details.len);
    }
}

void td_field_invalid_int(struct td_field_errors *errors, const struct td_field_path *path,
                          int64_t value, const char *detail)
{
    td_str text = td_arena_format(errors->arena, "%lld", (long long)value);
    td_field_error_add(errors, path, TD_FIELD_INVALID, text, td_str_from(detail));
}

/* The shortest digits come from the writer of JSON, which lays them out differently: they are
 * gathered without leading and trailing zeros, with the place of the point. */
td_str td_field_double_text(struct td_arena *arena, double value)
{
    char storage[TD_JSON_DOUBLE_BYTES];
    size_t count = 0;
    int64_t point = 0; /* digits before it; negative: zeros after it */
    bool has_point = false;
    td_auto_buf json = td_buf_capped(TD_JSON_DOUBLE_BYTES);
    td_json_write_double(value, &json);
    td_str text = td_buf_str(&json);
    size_t mark = td_str_find(text, 'e', 0);
    for (size_t i = 0; i < mark; i++) {
        char c = text.ptr[i];
        has_point = has_point || c == '.';
        bool is_digit = c >= '0' && c <= '9' && (c != '0' || count > 0);
        if (is_digit) {
            storage[count++] = c;
        }
        point += !has_point && is_digit ? 1 : 0;
        point -= has_point && c == '0' && count == 0 ? 1 : 0;
    }
    while (count > 0 && storage[count - 1] == '0') {
        count--;
    }
    td_str power = td_str_slice(text, mark + 1, text.len);
    int64_t exponent = 0;
    (void)td_str_to_int64(power, &exponent); /* none: 0 */
    exponent += point - 1;
    if (count == 0 || (exponent >= -4 && exponent < 6)) {
        return td_arena_copy_str(arena, text);
    }
    return td_arena_format(arena, "%s%c%s%.*se%c%02lld", text.ptr[0] == '-' ? "-" : "", storage[0],
                           count > 1 ? "." : "", (int)(count - 1), storage + 1,
                           exponent < 0 ? '-' : '+',
                           (long long)(exponent < 0 ? -exponent : exponent));
}

void td_field_unsupported(struct td_field_errors *errors, const struct td_field_path *path,
                          td_str value, const td_str *supported, size_t supported_count)
{
    td_auto_buf detail = td_buf_capped(TD_JSON_BYTES_MAX);
    for (size_t i = 0; i < supported_count; i++) {
        /* The list is ours and short. */
        (void)td_buf_append(&detail, i == 0 ? TD_STR("supported values: ") : TD_STR(", "));
        td_quote_write(supported[i], &detail);
    }
    td_field_error_add(errors, path, TD_FIELD_UNSUPPORTED, field_quote(errors->arena, value),
                       td_buf_str(&detail));
}

td_str td_field_error_type_name(enum td_field_error_type type)
{
    switch (type) {
    case TD_FIELD_REQUIRED:
        return TD_STR("Required value");
    case TD_FIELD_INVALID:
    case TD_FIELD_TYPE_INVALID:
        return TD_STR("Invalid value");
    case TD_FIELD_UNSUPPORTED:
        return TD_STR("Unsupported value");
    case TD_FIELD_FORBIDDEN:
        return TD_STR("Forbidden");
    case TD_FIELD_DUPLICATE:
        return TD_STR("Duplicate value");
    case TD_FIELD_TOO_MANY:
        return TD_STR("Too many");
    case TD_FIELD_TOO_LONG:
        return TD_STR("Too long");
    case TD_FIELD_NOT_FOUND:
        return TD_STR("Not found");
    }
    return TD_STR("Invalid value");
}

const char *td_field_error_reason(enum td_field_error_type type)
{
    switch (type) {
    case TD_FIELD_REQUIRED:
        return "FieldValueRequired";
    case TD_FIELD_INVALID:
        return "FieldValueInvalid";
    case TD_FIELD_UNSUPPORTED:
        return "FieldValueNotSupported";
    case TD_FIELD_FORBIDDEN:
        return "FieldValueForbidden";
    case TD_FIELD_DUPLICATE:
        return "FieldValueDuplicate";
    case TD_FIELD_TOO_MANY:
        return "FieldValueTooMany";
    case TD_FIELD_TOO_LONG:
        return "FieldValueTooLong";
    case TD_FIELD_NOT_FOUND:
        return "FieldValueNotFound";
    case TD_FIELD_TYPE_INVALID:
        return "FieldValueTypeInvalid";
    }
    return "FieldValueInvalid";
}

void td_field_error_write(const struct td_field_error *error, struct td_buf *out)
{
    /* The caller checks its buffer once, at the end. */
    (void)td_buf_append(out, error->field);
    (void)td_buf_append(out, TD_STR(": "));
    (void)td_buf_append(out, td_field_error_type_name(error->type));
    if (error->value.len > 0) {
        (void)td_buf_append(out, TD_STR(": "));
        (void)td_buf_append(out, error->value);
    }
    if (error->detail.len > 0) {
        (void)td_buf_append(out, TD_STR(": "));
        (void)td_buf_append(out, error->detail);
    }
}
