/*
 * Values at the ends of a message. Most are one payload; those that write themselves in Go
 * (quantities, times, numbers that may be texts, embedded JSON) are small messages of their own,
 * read here by a shape: one letter for each field from number 1 on.
 */
#include <math.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "kube/proto/proto_work.h"
#include "kube/quantity/quantity.h"

#define SMALL_FIELDS_MAX 3
#define NANOS_PER_MICRO 1000
#define NANOS_PER_SECOND 1000000000
#define TIME_SECONDS_MIN (-62167219200) /* the years that RFC 3339 can write: 0000 ... */
#define TIME_SECONDS_MAX 253402300799   /* ... to 9999 */

struct small_field {
    bool is_set;
    uint64_t value;
    td_str bytes;
};

/* The path as a text that leaves room for the reason behind it; of a longer one the beginning. */
static td_str place_text(const struct proto_work *work, const struct td_field_path *path)
{
    td_auto_buf text = td_buf_capped(TD_PROTO_PATH_BYTES_MAX);
    td_field_path_write(path, &text);
    td_str place = td_buf_str(&text);
    return td_arena_format(work->arena, "%.*s%s", TD_STR_ARG(place), text.is_full ? "..." : "");
}

int td_proto_fail(const struct proto_work *work, const struct td_field_path *path, const char *what)
{
    td_str place = path ? place_text(work, path) : TD_STR("the object");
    return td_error_set(work->err, TD_INVALID, "%.*s: %s", TD_STR_ARG(place), what);
}

int td_proto_wrap(const struct proto_work *work, const struct td_field_path *path, int code)
{
    if (!path) {
        return code;
    }
    td_str place = place_text(work, path);
    return td_error_wrap(work->err, code, "%.*s", TD_STR_ARG(place));
}

size_t td_proto_depth(const struct td_field_path *path)
{
    return path ? (size_t)path->depth + 1 : 0;
}

static int leaf_string(const struct proto_work *work, td_str bytes,
                       const struct td_field_path *path, struct td_json **ret)
{
    if (!td_str_is_utf8(bytes)) {
        return td_proto_fail(work, path, "not UTF-8");
    }
    *ret = td_json_new_string(work->arena, bytes);
    return TD_OK;
}

/* Reads a message of a few fields, 'v' a varint and 'b' bytes; of a repeated one the last counts.
 */
static int small_read(const struct proto_work *work, td_str message, const char *shape,
                      const struct td_field_path *path, struct small_field ret[SMALL_FIELDS_MAX])
{
    size_t count = strlen(shape);
    td_assert(count <= SMALL_FIELDS_MAX);
    for (size_t i = 0; i < SMALL_FIELDS_MAX; i++) {
        ret[i] = (struct small_field){.bytes = TD_STR_EMPTY};
    }
    while (message.len > 0) {
        struct td_wire_field wire;
        int r = td_wire_next(&message, &wire, work->err);
        if (r < 0) {
            return td_proto_wrap(work, path, r);
        }
        if (wire.number > count) {
            continue;
        }
        size_t i = wire.number - 1;
        if (wire.type != (shape[i] == 'v' ? TD_WIRE_VARINT : TD_WIRE_BYTES)) {
            return td_proto_fail(work, path, "wrong wire type");
        }
        ret[i] = (struct small_field){.is_set = true, .value = wire.value, .bytes = wire.bytes};
    }
    return TD_OK;
}

static int leaf_bytes(const struct proto_work *work, td_str bytes, struct td_json **ret)
{
    td_auto_buf text = td_buf_capped(bytes.len / 3 * 4 + 4);
    td_base64_write(bytes, TD_BASE64_STANDARD, &text);
    td_assert(!text.is_full);
    *ret = td_json_new_string(work->arena, td_arena_copy_str(work->arena, td_buf_str(&text)));
    return TD_OK;
}

static int leaf_double(const struct proto_work *work, uint64_t bits,
                       const struct td_field_path *path, struct td_json **ret)
{
    double value;
    static_assert(sizeof(value) == sizeof(bits), "a fixed64 holds a double");
    memcpy(&value, &bits, sizeof(value));
    if (!isfinite(value)) {
        return td_proto_fail(work, path, "not a finite number");
    }
    *ret = td_json_new_double(work->arena, value);
    return TD_OK;
}

static int leaf_quantity(const struct proto_work *work, const struct small_field *fields,
                         const struct td_field_path *path, struct td_json **ret)
{
    td_str text = TD_STR("0");
    if (fields[0].is_set) {
        struct td_quantity quantity;
        int r = td_quantity_parse(work->arena, fields[0].bytes, &quantity, work->err);
        if (r < 0) {
            return td_proto_wrap(work, path, r);
        }
        text = td_quantity_text(work->arena, &quantity);
    }
    *ret = td_json_new_string(work->arena, text);
    return TD_OK;
}

static int leaf_int_or_string(const struct proto_work *work, const struct small_field *fields,
                              const struct td_field_path *path, struct td_json **ret)
{
    if (fields[0].value > 1) {
        return td_proto_fail(work, path, "neither a number nor a text");
    }
    if (fields[0].value == 0) {
        *ret = td_json_new_int64(work->arena, (int32_t)(uint32_t)fields[1].value);
        return TD_OK;
    }
    return leaf_string(work, fields[2].bytes, path, ret);
}

/* Seconds and nanoseconds since 1970. An empty message is Go's zero time, which JSON writes null.
 * Times of whole seconds lose their fraction, as in the JSON form. */
static int leaf_time(const struct proto_work *work, const struct td_schema_type *type,
                     bool is_empty, const struct small_field *fields,
                     const struct td_field_path *path, struct td_json **ret)
{
    bool is_micro = type->kind == TD_SCHEMA_MICRO_TIME;
    struct td_instant instant = {.unix_seconds = (int64_t)fields[0].value};
    int32_t nanos = is_micro ? (int32_t)(uint32_t)fields[1].value : 0;
    if (instant.unix_seconds < TIME_SECONDS_MIN || instant.unix_seconds > TIME_SECONDS_MAX) {
        return td_proto_fail(work, path, "a time outside the years 0000 to 9999");
    }
    /* Nanoseconds below zero or above a second are carried over, as Go's time.Unix does. */
    nanos -= nanos % NANOS_PER_MICRO;
    instant.unix_seconds += nanos / NANOS_PER_SECOND;
    nanos %= NANOS_PER_SECOND;
    if (nanos < 0) {
        nanos += NANOS_PER_SECOND;
        instant.unix_seconds--;
    }
    instant.nanos = nanos;
    struct td_instant zero = TD_INSTANT_ZERO;
    if (is_empty || (instant.unix_seconds == zero.unix_seconds && nanos == 0)) {
        *ret = td_json_new_null(work->arena);
        return TD_OK;
    }
    if (instant.unix_seconds < TIME_SECONDS_MIN || instant.unix_seconds > TIME_SECONDS_MAX) {
        return td_proto_fail(work, path, "a time outside the years 0000 to 9999");
    }
    *ret = td_json_new_string(work->arena, td_time_text(work->arena, instant, is_micro ? 6 : 0));
    return TD_OK;
}

static int leaf_duration(const struct proto_work *work, const struct small_field *fields,
                         struct td_json **ret)
{
    char text[TD_DURATION_TEXT_BYTES];
    size_t len = td_duration_format((td_duration)fields[0].value, text);
    td_str copy = td_arena_copy_str(work->arena, (td_str){.ptr = text, .len = len});
    *ret = td_json_new_string(work->arena, copy);
    return TD_OK;
}

/* JSON inside protobuf: RawExtension, FieldsV1, a schema's default. */
static int leaf_any(const struct proto_work *work, const struct small_field *fields,
                    const struct td_field_path *path, struct td_json **ret)
{
    if (fields[0].bytes.len == 0) {
        *ret = td_json_new_null(work->arena);
        return TD_OK;
    }
    size_t depth = td_proto_depth(path);
    if (depth >= TD_JSON_DEPTH_MAX) {
        return td_proto_fail(work, path, "nested too deeply");
    }
    struct td_json_options options = {.depth_max = (uint32_t)(TD_JSON_DEPTH_MAX - depth)};
    int r = td_json_parse(work->arena, fields[0].bytes, &options, ret, work->err);
    return r < 0 ? td_proto_wrap(work, path, r) : TD_OK;
}

enum td_wire_type td_proto_wire_type(const struct td_schema_type *type)
{
    bool is_plain_list = type->kind == TD_SCHEMA_LIST && type->proto == TD_SCHEMA_PROTO_PLAIN;
    switch (is_plain_list ? type->element->kind : type->kind) {
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_BOOL:
        return TD_WIRE_VARINT;
    case TD_SCHEMA_NUMBER:
        return TD_WIRE_FIXED64;
    default:
        return TD_WIRE_BYTES;
    }
}

/* Those that are small messages. */
static int leaf_message(const struct proto_work *work, const struct td_schema_type *type,
                        td_str message, const struct td_field_path *path, struct td_json **ret)
{
    static const char *const shapes[] = {
        [TD_SCHEMA_QUANTITY] = "b",    [TD_SCHEMA_INT_OR_STRING] = "vvb", [TD_SCHEMA_TIME] = "vv",
        [TD_SCHEMA_MICRO_TIME] = "vv", [TD_SCHEMA_DURATION] = "v",        [TD_SCHEMA_ANY] = "b",
    };
    struct small_field fields[SMALL_FIELDS_MAX];
    td_assert(type->kind < TD_COUNT(shapes) && shapes[type->kind]);
    int r = small_read(work, message, shapes[type->kind], path, fields);
    if (r < 0) {
        return r;
    }
    switch (type->kind) {
    case TD_SCHEMA_QUANTITY:
        return leaf_quantity(work, fields, path, ret);
    case TD_SCHEMA_INT_OR_STRING:
        return leaf_int_or_string(work, fields, path, ret);
    case TD_SCHEMA_TIME:
    case TD_SCHEMA_MICRO_TIME:
        return leaf_time(work, type, message.len == 0, fields, path, ret);
    case TD_SCHEMA_DURATION:
        return leaf_duration(work, fields, ret);
    default:
        return leaf_any(work, fields, path, ret);
    }
}

int td_proto_leaf(const struct proto_work *work, const struct td_schema_type *type,
                  const struct td_wire_field *wire, const struct td_field_path *path,
                  struct td_json **ret)
{
    if (wire->type != td_proto_wire_type(type)) {
        return td_proto_fail(work, path, "wrong wire type");
    }
    switch (type->kind) {
    case TD_SCHEMA_STRING:
        return leaf_string(work, wire->bytes, path, ret);
    case TD_SCHEMA_INT32:
        *ret = td_json_new_int64(work->arena, (int32_t)(uint32_t)wire->value);
        return TD_OK;
    case TD_SCHEMA_INT64:
        *ret = td_json_new_int64(work->arena, (int64_t)wire->value);
        return TD_OK;
    case TD_SCHEMA_BOOL:
        *ret = td_json_new_bool(work->arena, wire->value != 0);
        return TD_OK;
    case TD_SCHEMA_NUMBER:
        return leaf_double(work, wire->value, path, ret);
    case TD_SCHEMA_BYTES:
        return leaf_bytes(work, wire->bytes, ret);
    default:
        return leaf_message(work, type, wire->bytes, path, ret);
    }
}

/* An empty payload reads as the zero value of every leaf. */
struct td_json *td_proto_zero_leaf(const struct proto_work *work, const struct td_schema_type *type)
{
    struct td_wire_field wire = {.type = td_proto_wire_type(type), .bytes = TD_STR_EMPTY};
    struct td_json *zero = NULL;
    int r = td_proto_leaf(work, type, &wire, NULL, &zero);
    td_assert(r == TD_OK);
    return zero;
}
