/*
 * A message is decoded straight into its JSON object, field by field as they come. What a field
 * means is looked up in the schema table by its number, or by the numbers on the way to it where Go
 * inlines a struct that protobuf nests: then both levels fill the same object. At the end of a
 * message the fields that Go prints although they were not set are added. A message that comes in
 * several pieces is merged, as the format demands, by decoding each into the object that is there.
 *
 * Every byte is looked at once as part of its field, whatever the nesting: an outer message skips
 * over an inner one by its length. A field costs a search among the type's fields and the object's
 * members, both bounded by the table; maps can be long and are indexed by the JSON tree.
 */
#include "kube/proto/proto.h"

#include "base/limits.h"
#include "kube/proto/proto_work.h"

#define PROTO_MAGIC TD_STR("k8s\0")
#define PATH_NUMBER_MAX 255 /* numbers on the path to a field are bytes */

static const struct td_schema_type proto_string = {.kind = TD_SCHEMA_STRING};

static int decode_message(const struct proto_work *work, const struct td_schema_type *type,
                          td_str message, const struct td_field_path *path, struct td_json *object);
static int decode_value(const struct proto_work *work, const struct td_schema_type *type,
                        const struct td_wire_field *wire, const struct td_field_path *path,
                        struct td_json **ret);

/* Does Go's JSON leave out a field that has this value, not a list, map or object? Structs are
 * always written, but for times whose tag has omitzero. */
static bool is_omitted(const struct td_schema_field *field, const struct td_json *value)
{
    if (field->is_pointer || field->is_written) {
        return false;
    }
    switch (value->type) {
    case TD_JSON_TYPE_NULL:
        return true;
    case TD_JSON_TYPE_STRING:
        return value->text.len == 0;
    case TD_JSON_TYPE_BOOL:
        return !value->boolean;
    case TD_JSON_TYPE_NUMBER:
        return td_str_equal(value->text, TD_STR("0"));
    default:
        return false;
    }
}

/* What Go prints for a value that was not set: lists and maps are nil. */
static int zero_value(const struct proto_work *work, const struct td_schema_type *type,
                      const struct td_field_path *path, struct td_json **ret)
{
    switch (type->kind) {
    case TD_SCHEMA_OBJECT: {
        struct td_json *object = td_json_new_object(work->arena);
        int r = decode_message(work, type, TD_STR_EMPTY, path, object);
        if (r < 0) {
            return r;
        }
        *ret = object;
        return TD_OK;
    }
    case TD_SCHEMA_LIST:
    case TD_SCHEMA_MAP:
    case TD_SCHEMA_BYTES:
        *ret = td_json_new_null(work->arena);
        return TD_OK;
    default:
        *ret = td_proto_zero_leaf(work, type);
        return TD_OK;
    }
}

/* Adds what is printed although absent. Structs inside structs end: Go's types are finite. */
static int fill_absent(const struct proto_work *work, const struct td_schema_type *type,
                       const struct td_field_path *path, struct td_json *object)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *field = &type->fields[i];
        bool is_wanted = field->is_written && field->proto_path != 0;
        if (!is_wanted || td_json_get(object, field->name)) {
            continue;
        }
        struct td_json *zero = NULL;
        if (field->is_pointer) {
            zero = td_json_new_null(work->arena);
        } else {
            int r = zero_value(work, field->type, TD_FIELD_AT(path, field->name), &zero);
            if (r < 0) {
                return r;
            }
        }
        td_json_set(work->arena, object, field->name, zero);
    }
    return TD_OK;
}

/* The member `name` when it is a container of that type, else a new one in its place. */
static struct td_json *ensure_container(const struct proto_work *work, struct td_json *object,
                                        td_str name, enum td_json_type type)
{
    struct td_json *found = td_json_get(object, name);
    if (!td_json_is(found, type)) {
        found = type == TD_JSON_TYPE_ARRAY ? td_json_new_array(work->arena)
                                           : td_json_new_object(work->arena);
        td_json_set(work->arena, object, name, found);
    }
    return found;
}

/* One element of a repeated field, or several scalars packed into one payload. */
static int decode_elements(const struct proto_work *work, const struct td_schema_type *element,
                           const struct td_wire_field *wire, const struct td_field_path *path,
                           struct td_json *array)
{
    enum td_wire_type type = td_proto_wire_type(element);
    td_str packed = wire->bytes;
    bool is_packed = wire->type == TD_WIRE_BYTES && type != TD_WIRE_BYTES;
    if (td_proto_depth(path) >= TD_JSON_DEPTH_MAX) {
        return td_proto_fail(work, path, "nested too deeply");
    }
    do {
        struct td_field_path place = td_field_item(path, array->count);
        struct td_wire_field one = *wire;
        if (is_packed) {
            one.type = type;
            bool is_whole = type == TD_WIRE_VARINT ? td_wire_varint(&packed, &one.value)
                                                   : td_wire_fixed64(&packed, &one.value);
            if (!is_whole) {
                return td_proto_fail(work, &place, "a packed number is cut short");
            }
        }
        struct td_json *value = NULL;
        int r = decode_value(work, element, &one, &place, &value);
        if (r < 0) {
            return r;
        }
        td_json_append(array, value);
    } while (is_packed && packed.len > 0);
    return td_arena_check(work->arena, work->err);
}

/* One entry of a map: a message of key and value, either of which may be left out when zero. */
static int decode_entry(const struct proto_work *work, const struct td_schema_type *type,
                        const struct td_wire_field *entry, const struct td_field_path *path,
                        struct td_json *map)
{
    td_str message = entry->bytes;
    td_str key = TD_STR_EMPTY;
    struct td_wire_field value_wire = {.number = 0};
    if (td_proto_depth(path) >= TD_JSON_DEPTH_MAX) {
        return td_proto_fail(work, path, "nested too deeply");
    }
    while (message.len > 0) {
        struct td_wire_field wire;
        int r = td_wire_next(&message, &wire, work->err);
        if (r < 0) {
            return td_proto_wrap(work, path, r);
        }
        if (wire.number == 2) {
            value_wire = wire;
        } else if (wire.number == 1) {
            if (wire.type != TD_WIRE_BYTES || !td_str_is_utf8(wire.bytes)) {
                return td_proto_fail(work, path, "a key is not UTF-8");
            }
            key = wire.bytes;
        }
    }
    struct td_field_path place = td_field_child(path, key);
    place.is_key = true;
    /* A value that is left out reads like an empty one. */
    if (value_wire.number == 0) {
        value_wire = (struct td_wire_field){.type = td_proto_wire_type(type->element),
                                            .bytes = TD_STR_EMPTY};
    }
    struct td_json *value = NULL;
    int r = decode_value(work, type->element, &value_wire, &place, &value);
    if (r < 0) {
        return r;
    }
    td_json_set(work->arena, map, key, value);
    return td_arena_check(work->arena, work->err);
}

/* A list that is a message of its own, the elements in its field 1. */
static int decode_items(const struct proto_work *work, const struct td_schema_type *type,
                        td_str message, const struct td_field_path *path, struct td_json **ret)
{
    struct td_json *array = td_json_new_array(work->arena);
    while (message.len > 0) {
        struct td_wire_field wire;
        int r = td_wire_next(&message, &wire, work->err);
        if (r < 0) {
            return td_proto_wrap(work, path, r);
        }
        if (wire.number == 1) {
            r = decode_elements(work, type->element, &wire, path, array);
        }
        if (r < 0) {
            return r;
        }
    }
    *ret = array;
    return TD_OK;
}

/* What a choice has been found to hold. */
struct choice {
    struct td_json *schema; /* or NULL */
    struct td_json *list;   /* of the other form; empty at first */
    bool is_allowed;
};

static int choice_field(const struct proto_work *work, const struct td_schema_type *type,
                        const struct td_wire_field *wire, const struct td_field_path *path,
                        struct choice *choice)
{
    bool is_bool = type->proto == TD_SCHEMA_PROTO_OR_BOOL;
    uint32_t schema_number = is_bool ? 2 : 1;
    if (wire->number == schema_number) {
        if (wire->type != TD_WIRE_BYTES) {
            return td_proto_fail(work, path, "wrong wire type");
        }
        choice->schema = choice->schema ? choice->schema : td_json_new_object(work->arena);
        return decode_message(work, type->element, wire->bytes, path, choice->schema);
    }
    if (wire->number > 2) {
        return TD_OK;
    }
    if (!is_bool) {
        bool is_strings = type->proto == TD_SCHEMA_PROTO_OR_STRINGS;
        return decode_elements(work, is_strings ? &proto_string : type->element, wire, path,
                               choice->list);
    }
    if (wire->type != TD_WIRE_VARINT) {
        return td_proto_fail(work, path, "wrong wire type");
    }
    choice->is_allowed = wire->value != 0;
    return TD_OK;
}

/* A schema or something in its place: JSON shows one of the two, in Go's order of preference. */
static int decode_choice(const struct proto_work *work, const struct td_schema_type *type,
                         td_str message, const struct td_field_path *path, struct td_json **ret)
{
    struct choice choice = {.schema = NULL, .list = td_json_new_array(work->arena)};
    while (message.len > 0) {
        struct td_wire_field wire;
        int r = td_wire_next(&message, &wire, work->err);
        if (r < 0) {
            return td_proto_wrap(work, path, r);
        }
        r = choice_field(work, type, &wire, path, &choice);
        if (r < 0) {
            return r;
        }
    }
    if (choice.list->count > 0) {
        *ret = choice.list;
    } else if (choice.schema) {
        *ret = choice.schema;
    } else if (type->proto == TD_SCHEMA_PROTO_OR_BOOL) {
        *ret = td_json_new_bool(work->arena, choice.is_allowed);
    } else {
        *ret = td_json_new_null(work->arena);
    }
    return TD_OK;
}

/* One value by itself: an element, a map's value, or a field that is no plain list and no map. */
static int decode_value(const struct proto_work *work, const struct td_schema_type *type,
                        const struct td_wire_field *wire, const struct td_field_path *path,
                        struct td_json **ret)
{
    bool is_leaf = type->kind != TD_SCHEMA_OBJECT && type->proto == TD_SCHEMA_PROTO_PLAIN;
    if (is_leaf) {
        return td_proto_leaf(work, type, wire, path, ret);
    }
    if (wire->type != TD_WIRE_BYTES) {
        return td_proto_fail(work, path, "wrong wire type");
    }
    if (type->proto == TD_SCHEMA_PROTO_ITEMS) {
        return decode_items(work, type, wire->bytes, path, ret);
    }
    if (type->proto != TD_SCHEMA_PROTO_PLAIN) {
        return decode_choice(work, type, wire->bytes, path, ret);
    }
    struct td_json *object = td_json_new_object(work->arena);
    int r = decode_message(work, type, wire->bytes, path, object);
    if (r < 0) {
        return r;
    }
    *ret = object;
    return TD_OK;
}

static int decode_member(const struct proto_work *work, const struct td_schema_field *field,
                         const struct td_wire_field *wire, const struct td_field_path *path,
                         struct td_json *object)
{
    const struct td_schema_type *type = field->type;
    struct td_field_path place = td_field_child(path, field->name);
    bool is_list = type->kind == TD_SCHEMA_LIST && type->proto == TD_SCHEMA_PROTO_PLAIN;
    bool is_map = type->kind == TD_SCHEMA_MAP;
    bool is_object = type->kind == TD_SCHEMA_OBJECT;
    if (wire->type != TD_WIRE_BYTES && (is_map || is_object)) {
        return td_proto_fail(work, &place, "wrong wire type");
    }
    if (is_list) {
        bool is_empty_pack = wire->type == TD_WIRE_BYTES && wire->bytes.len == 0 &&
                             td_proto_wire_type(type) != TD_WIRE_BYTES;
        return is_empty_pack ? TD_OK
                             : decode_elements(
                                   work, type->element, wire, &place,
                                   ensure_container(work, object, field->name, TD_JSON_TYPE_ARRAY));
    }
    if (is_map || is_object) {
        struct td_json *inner = ensure_container(work, object, field->name, TD_JSON_TYPE_OBJECT);
        return is_map ? decode_entry(work, type, wire, &place, inner)
                      : decode_message(work, type, wire->bytes, &place, inner);
    }
    struct td_json *value = NULL;
    int r = decode_value(work, type, wire, &place, &value);
    if (r < 0) {
        return r;
    }
    if (is_omitted(field, value)) {
        (void)td_json_remove(object, field->name); /* an earlier one need not be there */
    } else {
        td_json_set(work->arena, object, field->name, value);
    }
    return TD_OK;
}

/* The field at a path of numbers; or NULL, and then whether the path leads to inlined fields. */
static const struct td_schema_field *find_field(const struct td_schema_type *type, uint32_t numbers,
                                                bool *ret_is_inlined)
{
    *ret_is_inlined = false;
    for (size_t i = 0; i < type->field_count; i++) {
        uint32_t path = type->fields[i].proto_path;
        if (path == numbers) {
            return &type->fields[i];
        }
        if (path >> 8 == numbers || path >> 16 == numbers) {
            *ret_is_inlined = true;
        }
    }
    return NULL;
}

/* The fields of one message, `outer` being the numbers that led to it from the object's own. Each
 * inlined message makes the path a byte longer, and no path of the table has more than three. */
static int decode_fields(const struct proto_work *work, const struct td_schema_type *type,
                         uint32_t outer, td_str message, const struct td_field_path *path,
                         struct td_json *object)
{
    while (message.len > 0) {
        struct td_wire_field wire;
        int r = td_wire_next(&message, &wire, work->err);
        if (r < 0) {
            return td_proto_wrap(work, path, r);
        }
        if (wire.number > PATH_NUMBER_MAX) {
            continue;
        }
        bool is_inlined;
        uint32_t numbers = outer << 8 | wire.number;
        const struct td_schema_field *field = find_field(type, numbers, &is_inlined);
        if (field) {
            r = decode_member(work, field, &wire, path, object);
        } else if (is_inlined && wire.type == TD_WIRE_BYTES) {
            r = decode_fields(work, type, numbers, wire.bytes, path, object);
        } else if (is_inlined) {
            r = td_proto_fail(work, path, "wrong wire type");
        }
        if (r < 0) {
            return r;
        }
    }
    return TD_OK;
}

static int decode_message(const struct proto_work *work, const struct td_schema_type *type,
                          td_str message, const struct td_field_path *path, struct td_json *object)
{
    if (td_proto_depth(path) >= TD_JSON_DEPTH_MAX) {
        return td_proto_fail(work, path, "nested too deeply");
    }
    int r = decode_fields(work, type, 0, message, path, object);
    if (r < 0) {
        return r;
    }
    r = fill_absent(work, type, path, object);
    return r < 0 ? r : td_arena_check(work->arena, work->err);
}

/* Takes the texts in the fields 1 and up of a message; other fields are passed over. */
static int envelope_texts(td_str message, const char *what, td_str **texts, uint32_t count,
                          struct td_error *err)
{
    while (message.len > 0) {
        struct td_wire_field wire;
        int r = td_wire_next(&message, &wire, err);
        if (r < 0) {
            return r;
        }
        if (wire.number > count) {
            continue;
        }
        if (wire.type != TD_WIRE_BYTES) {
            return td_error_set(err, TD_INVALID, "protobuf: field %u of %s is no text", wire.number,
                                what);
        }
        *texts[wire.number - 1] = wire.bytes;
    }
    return TD_OK;
}

int td_proto_open(td_str body, struct td_proto_envelope *ret, struct td_error *err)
{
    if (body.len > TD_PROTO_BYTES_MAX) {
        return td_error_set(err, TD_LIMIT, "protobuf: a body of %zu bytes, at most %zu are read",
                            body.len, TD_PROTO_BYTES_MAX);
    }
    if (!td_str_starts_with(body, PROTO_MAGIC)) {
        return td_error_set(err, TD_INVALID,
                            "protobuf: the body does not begin with \"k8s\" and a zero byte");
    }
    struct td_proto_envelope found = {TD_STR_EMPTY, TD_STR_EMPTY, TD_STR_EMPTY};
    td_str type_meta = TD_STR_EMPTY;
    int r = envelope_texts(td_str_slice(body, PROTO_MAGIC.len, body.len), "the envelope",
                           (td_str *[]){&type_meta, &found.message}, 2, err);
    if (r < 0) {
        return r;
    }
    r = envelope_texts(type_meta, "the envelope's type",
                       (td_str *[]){&found.api_version, &found.kind}, 2, err);
    if (r < 0) {
        return r;
    }
    if (!td_str_is_utf8(found.api_version) || !td_str_is_utf8(found.kind)) {
        return td_error_set(err, TD_INVALID, "protobuf: apiVersion or kind is not UTF-8");
    }
    *ret = found;
    return TD_OK;
}

int td_proto_decode(struct td_arena *arena, const struct td_proto_envelope *envelope,
                    struct td_json **ret, struct td_error *err)
{
    struct proto_work work = {.arena = arena, .err = err};
    td_str kind = envelope->kind;
    bool is_options = td_str_equal(kind, TD_STR("DeleteOptions"));
    const struct td_schema_type *type =
        td_schema_find(is_options ? TD_STR("v1") : envelope->api_version, kind);
    if (!type) {
        return td_error_set(err, TD_INVALID, "protobuf: no kind '%.*s' in version '%.*s' is known",
                            TD_STR_ARG(kind), TD_STR_ARG(envelope->api_version));
    }
    struct td_json *object = td_json_new_object(arena);
    td_json_set_text(arena, object, TD_STR("apiVersion"), envelope->api_version);
    td_json_set_str(arena, object, TD_STR("kind"), kind);
    int r = decode_message(&work, type, envelope->message, NULL, object);
    if (r < 0) {
        return r;
    }
    *ret = object;
    return TD_OK;
}
