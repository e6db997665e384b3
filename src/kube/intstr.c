/*
 * The JSON token decides the type, as Go's UnmarshalJSON does. Percentages are scaled in float64
 * and converted back to an integer as Go does it.
 */
#include "kube/intstr.h"

#include <math.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_reader.h"

#define TOKEN_DEPTH_MAX 1 /* one token: a collection is refused anyway */
#define INT64_LIMIT_DOUBLE 0x1p63

static int intstr_from_token(struct td_arena *arena, const struct td_json_reader *reader,
                             enum td_json_token kind, struct td_intstr *ret, struct td_error *err)
{
    int64_t number = 0;
    switch (kind) {
    case TD_JSON_STRING:
        *ret = (struct td_intstr){
            .is_string = true,
            .string = td_json_reader_decode(reader, arena),
        };
        return TD_OK;
    case TD_JSON_NULL:
        *ret = (struct td_intstr){.is_string = false, .number = 0, .string = TD_STR_EMPTY};
        return TD_OK;
    case TD_JSON_NUMBER:
        /* Go reads the digits as they are: 1.0 and 1e3 are no integers to it. */
        if (!td_str_to_int64(reader->text, &number) || number < INT32_MIN || number > INT32_MAX) {
            return td_error_set(err, TD_INVALID, "number %.*s is not a 32-bit integer",
                                TD_STR_ARG(reader->text));
        }
        *ret = (struct td_intstr){
            .is_string = false,
            .number = (int32_t)number,
            .string = TD_STR_EMPTY,
        };
        return TD_OK;
    default:
        return td_error_set(err, TD_INVALID, "neither an integer nor a string");
    }
}

int td_intstr_parse_json(struct td_arena *arena, td_str token, struct td_intstr *ret,
                         struct td_error *err)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, token, TOKEN_DEPTH_MAX);
    enum td_json_token kind = td_json_reader_next(&reader);
    if (kind == TD_JSON_ERROR) {
        return td_json_reader_error(&reader, err);
    }
    /* Upstream looks at the first byte: a string with a space in front is read as an integer, and
     * fails. */
    if (kind == TD_JSON_STRING && token.ptr[0] != '"') {
        return td_error_set(err, TD_INVALID, "'%.*s' is not a 32-bit integer", TD_STR_ARG(token));
    }
    struct td_intstr value;
    int code = intstr_from_token(arena, &reader, kind, &value, err);
    if (code != TD_OK) {
        return code;
    }
    if (td_json_reader_next(&reader) != TD_JSON_END) {
        return td_json_reader_error(&reader, err);
    }
    *ret = value;
    return TD_OK;
}

struct td_intstr td_intstr_parse(td_str text)
{
    int64_t number = 0;
    if (td_str_to_int64(text, &number) && number >= INT32_MIN && number <= INT32_MAX) {
        return (struct td_intstr){.number = (int32_t)number, .string = TD_STR_EMPTY};
    }
    return (struct td_intstr){.is_string = true, .string = text};
}

void td_intstr_write(const struct td_intstr *value, struct td_buf *out)
{
    if (value->is_string) {
        (void)td_buf_append(out, value->string); /* A full buffer stays full: callers check once. */
    } else {
        (void)td_buf_append_int64(out, value->number);
    }
}

void td_intstr_write_json(const struct td_intstr *value, struct td_buf *out)
{
    if (value->is_string) {
        td_json_write_string(value->string, true, out);
    } else {
        td_intstr_write(value, out);
    }
}

/* Go's Atoi with its error dropped: 0 for what is no number, the bound for what is out of range.
 * The bound is met as soon as the digits leave 64 bits, so text after that goes unread. */
static int64_t integer_or_bound(td_str text)
{
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    size_t first = is_negative || (text.len > 0 && text.ptr[0] == '+') ? 1 : 0;
    int64_t bound = is_negative ? INT64_MIN : INT64_MAX;
    uint64_t value = 0;
    for (size_t i = first; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return 0;
        }
        uint64_t digit = (uint64_t)(text.ptr[i] - '0');
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return bound;
        }
    }
    if (value > INT64_MAX) {
        return bound;
    }
    return is_negative ? -(int64_t)value : (int64_t)value;
}

int64_t td_intstr_int_value(const struct td_intstr *value)
{
    return value->is_string ? integer_or_bound(value->string) : value->number;
}

/* As the conversion of a double that Go's compiler emits: what does not fit is the lowest integer.
 */
static int64_t double_to_int64(double value)
{
    bool fits = value >= -INT64_LIMIT_DOUBLE && value < INT64_LIMIT_DOUBLE;
    return fits ? (int64_t)value : INT64_MIN;
}

int td_intstr_scaled(const struct td_intstr *value, int64_t total, bool round_up, int64_t *ret,
                     struct td_error *err)
{
    if (!value->is_string) {
        *ret = value->number;
        return TD_OK;
    }
    td_str text = value->string;
    int64_t percent = 0;
    if (!td_str_ends_with(text, TD_STR("%")) ||
        !td_str_to_int64(td_str_slice(text, 0, text.len - 1), &percent)) {
        return td_error_set(err, TD_INVALID,
                            "'%.*s' is not a percentage: write an integer followed by %%",
                            TD_STR_ARG(text));
    }
    double scaled = (double)percent * (double)total / 100;
    *ret = double_to_int64(round_up ? ceil(scaled) : floor(scaled));
    return TD_OK;
}
