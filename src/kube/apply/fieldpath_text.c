/*
 * Paths as messages show them. Strings are quoted as Go's %q does and numbers written as Go's %v
 * writes a float64, because that is what upstream's conflict messages show and what tools match.
 */
#include "kube/apply/fieldpath.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/limits.h"
#include "kube/quote.h"

#define GO_EXPONENT_MIN (-4) /* %v of a float64 switches to an exponent outside these */
#define GO_EXPONENT_MAX 6
#define NUMBER_TEXT_BYTES_MAX ((size_t)64)

/* Split a float64's shortest text into its digits and the power of ten of the first one. */
static size_t number_digits(td_str text, char digits[NUMBER_TEXT_BYTES_MAX], int *ret_exponent)
{
    size_t count = 0;
    int point = -1; /* digits seen before the point, leading zeros left out */
    int skipped = 0;
    int exponent = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '.') {
            point = (int)count;
        } else if (c == 'e' || c == 'E') {
            int64_t written = 0;
            (void)td_str_to_int64(td_str_slice(text, i + 1, text.len), &written);
            exponent = (int)written;
            break;
        } else if (c == '0' && count == 0) {
            skipped += point >= 0 ? 1 : 0;
        } else if (c >= '0' && c <= '9' && count < NUMBER_TEXT_BYTES_MAX) {
            digits[count++] = c;
        }
    }
    *ret_exponent = exponent + (point < 0 ? (int)count : point) - 1 - skipped;
    while (count > 1 && digits[count - 1] == '0') {
        count--;
    }
    return count;
}

/* A whole number of an object is an int64 to Go and shows as it is. */
static void path_write_number(const struct td_json *number, bool is_float, struct td_buf *out)
{
    int64_t whole;
    double value;
    if (!is_float && td_str_to_int64(number->text, &whole)) {
        td_buf_append_int64(out, whole);
        return;
    }
    if (!td_json_to_double(number, &value)) {
        td_buf_append(out, number->text);
        return;
    }
    td_auto_buf text = td_buf_capped(NUMBER_TEXT_BYTES_MAX);
    td_json_write_double(value, &text);
    char digits[NUMBER_TEXT_BYTES_MAX];
    int exponent;
    size_t count = number_digits(td_buf_str(&text), digits, &exponent);
    if (count == 0 || (exponent >= GO_EXPONENT_MIN && exponent < GO_EXPONENT_MAX)) {
        td_buf_append(out, td_buf_str(&text));
        return;
    }
    td_buf_append(out, value < 0 ? TD_STR("-") : TD_STR_EMPTY);
    td_buf_append_char(out, digits[0]);
    if (count > 1) {
        td_buf_append_char(out, '.');
        td_buf_append(out, (td_str){.ptr = digits + 1, .len = count - 1});
    }
    td_buf_append_format(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

static void path_write_value(const struct td_json *value, bool is_read, unsigned depth,
                             struct td_buf *out)
{
    td_assert(depth <= TD_JSON_DEPTH_MAX);
    switch ((enum td_json_type)value->type) {
    case TD_JSON_TYPE_NULL:
        td_buf_append(out, TD_STR("null"));
        break;
    case TD_JSON_TYPE_BOOL:
        td_buf_append(out, value->boolean ? TD_STR("true") : TD_STR("false"));
        break;
    case TD_JSON_TYPE_NUMBER:
        path_write_number(value, is_read, out);
        break;
    case TD_JSON_TYPE_STRING:
        td_quote_write(value->text, out);
        break;
    case TD_JSON_TYPE_ARRAY:
        td_buf_append_char(out, '[');
        for (const struct td_json *item = td_json_first_item(value); item; item = item->next) {
            path_write_value(item, is_read, depth + 1, out);
            td_buf_append(out, item->next ? TD_STR(",") : TD_STR_EMPTY);
        }
        td_buf_append_char(out, ']');
        break;
    case TD_JSON_TYPE_OBJECT:
        for (const struct td_json *member = td_json_first_member(value); member;
             member = member->next) {
            td_buf_append(out, member->key);
            td_buf_append_char(out, '=');
            path_write_value(member, is_read, depth + 1, out);
        }
        break;
    }
}

void td_field_step_write(const struct td_field_step *step, struct td_buf *out)
{
    switch (step->kind) {
    case TD_FIELD_NAME:
        td_buf_append_char(out, '.');
        td_buf_append(out, step->name);
        break;
    case TD_FIELD_KEY:
        td_buf_append_char(out, '[');
        for (size_t i = 0; i < step->key_count; i++) {
            td_buf_append(out, i > 0 ? TD_STR(",") : TD_STR_EMPTY);
            td_buf_append(out, step->keys[i].name);
            td_buf_append_char(out, '=');
            path_write_value(step->keys[i].value, step->is_read, 0, out);
        }
        td_buf_append_char(out, ']');
        break;
    case TD_FIELD_VALUE:
        td_buf_append(out, TD_STR("[="));
        path_write_value(step->value, step->is_read, 0, out);
        td_buf_append_char(out, ']');
        break;
    case TD_FIELD_INDEX:
        td_buf_append_char(out, '[');
        td_buf_append_int64(out, step->index);
        td_buf_append_char(out, ']');
        break;
    case TD_FIELD_LOST:
        td_buf_append(out, TD_STR("[]"));
        break;
    }
}
