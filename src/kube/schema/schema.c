#include "kube/schema/schema.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/limits.h"

struct schema_root {
    td_str api_version;
    td_str kind;
    const struct td_schema_type *type;
};

/* The words the table is written in. */
#define SOME_FIELD(json_name, id, path, pointer, written)                                          \
    {                                                                                              \
        .name = TD_STR_INIT(json_name), .type = &schema_types[id], .proto_path = (path),           \
        .is_pointer = (pointer), .is_written = (written)                                           \
    }
#define FIELD(json_name, id, path) SOME_FIELD(json_name, id, path, false, false)
#define WRITTEN_FIELD(json_name, id, path) SOME_FIELD(json_name, id, path, false, true)
#define POINTER_FIELD(json_name, id, path) SOME_FIELD(json_name, id, path, true, false)
#define POINTER_WRITTEN_FIELD(json_name, id, path) SOME_FIELD(json_name, id, path, true, true)
#define SOME_PATCHED(json_name, id, path, how, key, pointer, written)                              \
    {                                                                                              \
        .name = TD_STR_INIT(json_name), .type = &schema_types[id], .proto_path = (path),           \
        .is_pointer = (pointer), .is_written = (written), .patch = TD_SCHEMA_PATCH_##how,          \
        .patch_key = TD_STR_INIT(key)                                                              \
    }
#define PATCHED(json_name, id, path, how, key)                                                     \
    SOME_PATCHED(json_name, id, path, how, key, false, false)
#define WRITTEN_PATCHED(json_name, id, path, how, key)                                             \
    SOME_PATCHED(json_name, id, path, how, key, false, true)
#define POINTER_PATCHED(json_name, id, path, how, key)                                             \
    SOME_PATCHED(json_name, id, path, how, key, true, false)
#define KEY(json_name, default_text)                                                               \
    {                                                                                              \
        .name = TD_STR_INIT(json_name), .fallback = TD_STR_INIT(default_text)                      \
    }
#define LEAF(which, how)                                                                           \
    {                                                                                              \
        .kind = TD_SCHEMA_##which, .topology = TD_SCHEMA_##how                                     \
    }
#define OBJECT(type_name, how, members)                                                            \
    {                                                                                              \
        .name = TD_STR_INIT(type_name), .kind = TD_SCHEMA_OBJECT, .topology = TD_SCHEMA_##how,     \
        .fields = (members), .field_count = sizeof(members) / sizeof((members)[0])                 \
    }
#define MAP(how, id)                                                                               \
    {                                                                                              \
        .kind = TD_SCHEMA_MAP, .topology = TD_SCHEMA_##how, .element = &schema_types[id]           \
    }
#define LIST(how, id)                                                                              \
    {                                                                                              \
        .kind = TD_SCHEMA_LIST, .topology = TD_SCHEMA_##how, .element = &schema_types[id]          \
    }
#define KEYED(id, keys)                                                                            \
    {                                                                                              \
        .kind = TD_SCHEMA_LIST, .topology = TD_SCHEMA_KEYED, .element = &schema_types[id],         \
        .list_keys = (keys), .list_key_count = sizeof(keys) / sizeof((keys)[0])                    \
    }
#define SPECIAL(which, how, id, form)                                                              \
    {                                                                                              \
        .kind = TD_SCHEMA_##which, .topology = TD_SCHEMA_##how, .element = &schema_types[id],      \
        .proto = TD_SCHEMA_PROTO_##form                                                            \
    }
#define ROOT(version, kind_name, id)                                                               \
    {                                                                                              \
        .api_version = TD_STR_INIT(version), .kind = TD_STR_INIT(kind_name),                       \
        .type = &schema_types[id]                                                                  \
    }

#include "kube/schema/schema_table.inc"

#define SCHEMA_ROOT_COUNT (sizeof(schema_roots) / sizeof(schema_roots[0]))

static const struct td_schema_field schema_open_fields[] = {
    FIELD("apiVersion", T_String, 0),
    FIELD("kind", T_String, 0),
    FIELD("metadata", T_ObjectMeta, 0),
};

static const struct td_schema_type schema_open_object = {
    .name = TD_STR_INIT(""),
    .kind = TD_SCHEMA_OBJECT,
    .topology = TD_SCHEMA_GRANULAR,
    .element = &schema_types[T_Any],
    .fields = schema_open_fields,
    .field_count = sizeof(schema_open_fields) / sizeof(schema_open_fields[0]),
};

/* Roots are few and sorted by kind, then by version. */
const struct td_schema_type *td_schema_find(td_str api_version, td_str kind)
{
    size_t low = 0;
    size_t high = SCHEMA_ROOT_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct schema_root *root = &schema_roots[middle];
        int order = td_str_compare(root->kind, kind);
        if (order == 0) {
            order = td_str_compare(root->api_version, api_version);
        }
        if (order == 0) {
            return root->type;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const struct td_schema_type *td_schema_any_object(void)
{
    return &schema_open_object;
}

const struct td_schema_field *td_schema_field(const struct td_schema_type *type, td_str name)
{
    size_t low = 0;
    size_t high = type->field_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = td_str_compare(type->fields[middle].name, name);
        if (order == 0) {
            return &type->fields[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const struct td_schema_type *td_schema_member(const struct td_schema_type *type, td_str name)
{
    if (type->kind == TD_SCHEMA_ANY) {
        return type;
    }
    if (type->kind == TD_SCHEMA_MAP) {
        return type->element;
    }
    const struct td_schema_field *field = td_schema_field(type, name);
    return field ? field->type : type->kind == TD_SCHEMA_OBJECT ? type->element : NULL;
}

/* One step of the path from the root to a value, linked upwards; the root has no step. */
struct schema_step {
    const struct schema_step *up;
    td_str name;  /* of a member; a NULL ptr for an element */
    size_t index; /* of an element */
};

/* Quoted as Go's strconv.Quote: control bytes and bytes outside UTF-8 as escapes. Code points that
 * Go calls unprintable are kept as they are above U+009F. */
static void schema_quote(td_str text, struct td_buf *out)
{
    bool is_utf8 = td_str_is_utf8(text);
    (void)td_buf_append_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        const char *at = byte >= 0x07 && byte <= 0x0d ? "abtnvfr" : NULL;
        if (at) {
            (void)td_buf_append_char(out, '\\');
            (void)td_buf_append_char(out, at[byte - 0x07]);
        } else if (byte == '"' || byte == '\\') {
            (void)td_buf_append_char(out, '\\');
            (void)td_buf_append_char(out, (char)byte);
        } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_utf8)) {
            (void)td_buf_append_format(out, "\\x%02x", byte);
        } else {
            (void)td_buf_append_char(out, (char)byte);
        }
    }
    (void)td_buf_append_char(out, '"');
}

/* The path's parts are written last to first, into the end of a buffer of fixed size; what does not
 * fit is cut at the front. */
static td_str schema_path(struct td_arena *arena, const struct schema_step *step)
{
    char *bytes = td_arena_alloc(arena, TD_STRICT_PATH_BYTES_MAX);
    size_t at = TD_STRICT_PATH_BYTES_MAX;
    for (; step; step = step->up) {
        td_str part = step->name;
        if (!part.ptr) {
            part = td_arena_format(arena, "[%zu]", step->index);
        }
        size_t fit = part.len < at ? part.len : at;
        at -= fit;
        memcpy(bytes + at, part.ptr + (part.len - fit), fit);
        if (step->name.ptr && step->up && at > 0) {
            bytes[--at] = '.';
        }
    }
    return (td_str){.ptr = bytes + at, .len = TD_STRICT_PATH_BYTES_MAX - at};
}

static void schema_report(const struct schema_step *step, struct td_json_problems *problems)
{
    if (problems->count == TD_STRICT_PROBLEMS_MAX) {
        problems->is_cut = true;
        return;
    }
    td_auto_buf text;
    /* Every byte of a path may become an escape of four. */
    td_buf_init(&text, 4 * TD_STRICT_PATH_BYTES_MAX + sizeof("unknown field \"\""));
    (void)td_buf_append(&text, TD_STR("unknown field "));
    schema_quote(schema_path(problems->arena, step), &text);
    problems->items[problems->count++] = td_arena_copy_str(problems->arena, td_buf_str(&text));
}

static void schema_check(const struct td_schema_type *type, const struct td_json *value,
                         const struct schema_step *step, uint32_t depth,
                         struct td_json_problems *problems)
{
    if (depth > TD_JSON_DEPTH_MAX || problems->is_cut) {
        return;
    }
    bool is_object = type->kind == TD_SCHEMA_OBJECT || type->kind == TD_SCHEMA_MAP;
    if (is_object && td_json_is(value, TD_JSON_TYPE_OBJECT)) {
        for (const struct td_json *member = td_json_first_member(value); member;
             member = member->next) {
            struct schema_step below = {.up = step, .name = member->key};
            const struct td_schema_type *inner = td_schema_member(type, member->key);
            below.name.ptr = below.name.ptr ? below.name.ptr : "";
            if (inner) {
                schema_check(inner, member, &below, depth + 1, problems);
            } else {
                schema_report(&below, problems);
            }
        }
    } else if (type->kind == TD_SCHEMA_LIST && td_json_is(value, TD_JSON_TYPE_ARRAY)) {
        struct schema_step below = {.up = step, .name = {.ptr = NULL, .len = 0}};
        for (const struct td_json *item = td_json_first_item(value); item; item = item->next) {
            schema_check(type->element, item, &below, depth + 1, problems);
            below.index++;
        }
    }
}

void td_schema_find_unknown(const struct td_schema_type *type, const struct td_json *object,
                            struct td_json_problems *problems)
{
    td_assert(type);
    schema_check(type, object, NULL, 1, problems);
}

bool td_schema_is_empty(const struct td_schema_type *type, const struct td_json *value)
{
    int64_t number;
    switch (value->type) {
    case TD_JSON_TYPE_NULL:
        return true;
    case TD_JSON_TYPE_BOOL:
        return !value->boolean;
    case TD_JSON_TYPE_NUMBER:
        return td_json_to_int64(value, &number) && number == 0;
    case TD_JSON_TYPE_STRING:
        return value->text.len == 0;
    case TD_JSON_TYPE_ARRAY:
        return value->count == 0;
    case TD_JSON_TYPE_OBJECT:
        return type->kind == TD_SCHEMA_MAP && value->count == 0;
    }
    return false;
}
