/*
 * The table itself is generated (schema_table.inc, by tools/schema) and written in the macros of
 * this file. Here are the look-ups in it, and the walk that finds unknown fields.
 */
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
enum { POINTER = 1, WRITTEN = 2, REQUIRED = 4, DEFAULTED = 8 };

#define FIELD(json_name, id, path, flags) PATCHED(json_name, id, path, flags, DEFAULT, "")
#define PATCHED(json_name, id, path, flags, how, key)                                              \
    {                                                                                              \
        .name = TD_STR_INIT(json_name), .type = &schema_types[id], .proto_path = (path),           \
        .is_pointer = ((flags)&POINTER) != 0, .is_written = ((flags)&WRITTEN) != 0,                \
        .is_required = ((flags)&REQUIRED) != 0, .has_default = ((flags)&DEFAULTED) != 0,           \
        .patch = TD_SCHEMA_PATCH_##how, .patch_key = TD_STR_INIT(key)                              \
    }
#define KEY(json_name, default_text)                                                               \
    {                                                                                              \
        .name = TD_STR_INIT(json_name), .fallback = TD_STR_INIT(default_text)                      \
    }
#define LEAF(published_in, type_name, which, how, allowed, default_text)                           \
    {                                                                                              \
        .package = TD_STR_INIT(published_in), .name = TD_STR_INIT(type_name),                      \
        .kind = TD_SCHEMA_##which, .topology = TD_SCHEMA_##how, .values = TD_STR_INIT(allowed),    \
        .fallback = TD_STR_INIT(default_text)                                                      \
    }
#define OBJECT(published_in, type_name, how, members)                                              \
    SOME_OBJECT(published_in, type_name, how, members, false)
#define VARIANT(published_in, type_name, how, members)                                             \
    SOME_OBJECT(published_in, type_name, how, members, true)
#define SOME_OBJECT(published_in, type_name, how, members, variant)                                \
    {                                                                                              \
        .package = TD_STR_INIT(published_in), .name = TD_STR_INIT(type_name),                      \
        .kind = TD_SCHEMA_OBJECT, .topology = TD_SCHEMA_##how, .is_variant = (variant),            \
        .fields = (members), .field_count = TD_COUNT(members)                                      \
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
        .list_keys = (keys), .list_key_count = TD_COUNT(keys)                                      \
    }
#define SPECIAL(published_in, type_name, which, how, id, form)                                     \
    {                                                                                              \
        .package = TD_STR_INIT(published_in), .name = TD_STR_INIT(type_name),                      \
        .kind = TD_SCHEMA_##which, .topology = TD_SCHEMA_##how, .element = &schema_types[id],      \
        .proto = TD_SCHEMA_PROTO_##form                                                            \
    }
#define ROOT(version, kind_name, id)                                                               \
    {                                                                                              \
        .api_version = TD_STR_INIT(version), .kind = TD_STR_INIT(kind_name),                       \
        .type = &schema_types[id]                                                                  \
    }

#include "kube/schema/schema_table.inc"

#define SCHEMA_ROOT_COUNT TD_COUNT(schema_roots)

static const struct td_schema_field schema_open_fields[] = {
    FIELD("apiVersion", T_String, 0, 0),
    FIELD("kind", T_String, 0, 0),
    FIELD("metadata", T_ObjectMeta, 0, 0),
};

static const struct td_schema_type schema_open_object = {
    .kind = TD_SCHEMA_OBJECT,
    .topology = TD_SCHEMA_GRANULAR,
    .element = &schema_types[T_RawExtension],
    .fields = schema_open_fields,
    .field_count = TD_COUNT(schema_open_fields),
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

const struct td_schema_type *td_schema_list_meta(void)
{
    return &schema_types[T_ListMeta];
}

const struct td_schema_field *td_schema_field(const struct td_schema_type *type, td_str name)
{
    size_t at = td_str_place(type->fields, type->field_count, sizeof(type->fields[0]), name);
    bool is_found = at < type->field_count && td_str_equal(type->fields[at].name, name);
    return is_found ? &type->fields[at] : NULL;
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
