/*
 * Members are read one after the other by type; null counts as missing, as in Go. The path of the
 * object that is being read is kept for the first error, which ends the decoding.
 */
#include "kube/meta.h"

#include <stdio.h>

#include "base/error.h"

#define META_PATH_BYTES 64 /* "metadata.ownerReferences[18446744073709551615]" and its NUL */

/* One object while its members are read. Null members count as missing, as in Go. */
struct meta_reader {
    const struct td_json *object; /* NULL has no members */
    char path[META_PATH_BYTES];   /* of the object */
    struct td_error *err;
};

static bool meta_is_missing(const struct td_json *node)
{
    return !node || node->type == TD_JSON_TYPE_NULL;
}

static const char *meta_type_name(enum td_json_type type)
{
    static const char *const names[] = {
        [TD_JSON_TYPE_NULL] = "null",       [TD_JSON_TYPE_BOOL] = "a boolean",
        [TD_JSON_TYPE_NUMBER] = "a number", [TD_JSON_TYPE_STRING] = "a string",
        [TD_JSON_TYPE_ARRAY] = "an array",  [TD_JSON_TYPE_OBJECT] = "an object",
    };
    return names[type];
}

/* Sets *ret to a member of the given type, NULL when it is missing or null. */
static int meta_member(const struct meta_reader *reader, const char *key, enum td_json_type type,
                       const struct td_json **ret)
{
    const struct td_json *node = td_json_get(reader->object, td_str_from(key));
    if (meta_is_missing(node)) {
        *ret = NULL;
        return TD_OK;
    }
    if (node->type != type) {
        return td_error_set(reader->err, TD_INVALID, "%s.%s: must be %s, not %s", reader->path, key,
                            meta_type_name(type), meta_type_name(node->type));
    }
    *ret = node;
    return TD_OK;
}

struct meta_text {
    const char *key;
    td_str *ret;
};

/* The string members named by `rows`; empty when missing. */
static int meta_texts(const struct meta_reader *reader, const struct meta_text *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct td_json *node = NULL;
        int code = meta_member(reader, rows[i].key, TD_JSON_TYPE_STRING, &node);
        if (code != TD_OK) {
            return code;
        }
        *rows[i].ret = node ? node->text : TD_STR_EMPTY;
    }
    return TD_OK;
}

static int meta_time(const struct meta_reader *reader, const char *key, struct td_instant *ret)
{
    const struct td_json *node = NULL;
    int code = meta_member(reader, key, TD_JSON_TYPE_STRING, &node);
    if (code != TD_OK) {
        return code;
    }
    *ret = TD_INSTANT_ZERO;
    if (!node) {
        return TD_OK;
    }
    code = td_time_parse(node->text, ret, reader->err);
    return code < 0 ? td_error_wrap(reader->err, code, "%s.%s", reader->path, key) : code;
}

static int meta_generation(const struct meta_reader *reader, int64_t *ret)
{
    const struct td_json *node = NULL;
    int code = meta_member(reader, "generation", TD_JSON_TYPE_NUMBER, &node);
    if (code != TD_OK) {
        return code;
    }
    *ret = 0;
    if (node && !td_json_to_int64(node, ret)) {
        return td_error_set(reader->err, TD_INVALID,
                            "%s.generation: '%.*s' is not a whole number of 64 bits", reader->path,
                            TD_STR_ARG(node->text));
    }
    return TD_OK;
}

static int meta_flag(const struct meta_reader *reader, const char *key, bool *ret)
{
    const struct td_json *node = NULL;
    int code = meta_member(reader, key, TD_JSON_TYPE_BOOL, &node);
    if (code != TD_OK) {
        return code;
    }
    *ret = node && node->boolean;
    return TD_OK;
}

/* An object whose members are all strings or null, or NULL. */
static int meta_strings(const struct meta_reader *reader, const char *key,
                        const struct td_json **ret)
{
    const struct td_json *map = NULL;
    int code = meta_member(reader, key, TD_JSON_TYPE_OBJECT, &map);
    if (code != TD_OK) {
        return code;
    }
    for (const struct td_json *node = td_json_first_member(map); node; node = node->next) {
        if (!meta_is_missing(node) && node->type != TD_JSON_TYPE_STRING) {
            return td_error_set(reader->err, TD_INVALID, "%s.%s.%.*s: must be a string, not %s",
                                reader->path, key, TD_STR_ARG(node->key),
                                meta_type_name(node->type));
        }
    }
    *ret = map;
    return TD_OK;
}

/* A label whose value is null is the empty label, as Go decodes it. */
static int meta_labels(const struct meta_reader *reader, struct td_arena *arena,
                       struct td_labels *ret)
{
    const struct td_json *map = NULL;
    int code = meta_strings(reader, "labels", &map);
    if (code != TD_OK) {
        return code;
    }
    struct td_label *pairs = td_arena_array(arena, struct td_label, td_json_member_count(map));
    size_t count = 0;
    for (const struct td_json *node = td_json_first_member(map); node; node = node->next) {
        bool has_text = node->type == TD_JSON_TYPE_STRING;
        pairs[count++] = (struct td_label){
            .key = node->key,
            .value = has_text ? node->text : TD_STR_EMPTY,
        };
    }
    *ret = td_labels_from_pairs(arena, pairs, count);
    return TD_OK;
}

static int meta_owner(const struct meta_reader *reader, struct td_owner_reference *ret)
{
    const struct meta_text rows[] = {
        {"apiVersion", &ret->api_version},
        {"kind", &ret->kind},
        {"name", &ret->name},
        {"uid", &ret->uid},
    };
    int code = meta_texts(reader, rows, TD_COUNT(rows));
    if (code == TD_OK) {
        code = meta_flag(reader, "controller", &ret->is_controller);
    }
    if (code == TD_OK) {
        code = meta_flag(reader, "blockOwnerDeletion", &ret->blocks_owner_deletion);
    }
    return code;
}

static int meta_owners(const struct meta_reader *reader, struct td_arena *arena,
                       struct td_meta *ret)
{
    const struct td_json *list = NULL;
    int code = meta_member(reader, "ownerReferences", TD_JSON_TYPE_ARRAY, &list);
    if (code != TD_OK || !list) {
        return code;
    }
    struct td_owner_reference *owners =
        td_arena_array(arena, struct td_owner_reference, list->count);
    size_t count = 0;
    for (const struct td_json *node = td_json_first_item(list); node; node = node->next) {
        struct meta_reader element = {.object = node, .err = reader->err};
        (void)snprintf(element.path, sizeof(element.path), "metadata.ownerReferences[%zu]", count);
        if (!meta_is_missing(node) && node->type != TD_JSON_TYPE_OBJECT) {
            return td_error_set(reader->err, TD_INVALID, "%s: must be an object, not %s",
                                element.path, meta_type_name(node->type));
        }
        code = meta_owner(&element, &owners[count]);
        if (code != TD_OK) {
            return code;
        }
        count++;
    }
    ret->owners = owners;
    ret->owner_count = count;
    return TD_OK;
}

static int meta_decode(const struct meta_reader *reader, struct td_arena *arena,
                       struct td_meta *meta)
{
    const struct meta_text rows[] = {
        {"name", &meta->name},
        {"generateName", &meta->generate_name},
        {"namespace", &meta->namespace},
        {"uid", &meta->uid},
        {"resourceVersion", &meta->resource_version},
    };
    int code = meta_texts(reader, rows, TD_COUNT(rows));
    if (code == TD_OK) {
        code = meta_generation(reader, &meta->generation);
    }
    if (code == TD_OK) {
        code = meta_time(reader, "creationTimestamp", &meta->created);
    }
    if (code == TD_OK) {
        code = meta_time(reader, "deletionTimestamp", &meta->deleted);
    }
    if (code == TD_OK) {
        code = meta_labels(reader, arena, &meta->labels);
    }
    if (code == TD_OK) {
        code = meta_strings(reader, "annotations", &meta->annotations);
    }
    if (code == TD_OK) {
        code = meta_owners(reader, arena, meta);
    }
    return code != TD_OK ? code : td_arena_check(arena, reader->err);
}

int td_meta_decode(struct td_arena *arena, const struct td_json *object, struct td_meta *ret,
                   struct td_error *err)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "object: must be an object, not %s",
                            meta_type_name(object ? object->type : TD_JSON_TYPE_NULL));
    }
    const struct td_json *node = td_json_get(object, TD_STR("metadata"));
    struct meta_reader reader = {.object = node, .path = "metadata", .err = err};
    if (!meta_is_missing(node) && node->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "metadata: must be an object, not %s",
                            meta_type_name(node->type));
    }
    struct td_meta meta = {.generation = 0};
    int code = meta_decode(&reader, arena, &meta);
    if (code != TD_OK) {
        return code;
    }
    *ret = meta;
    return TD_OK;
}

/* More than one slash is no group and version: both stay empty, as upstream's
 * FromAPIVersionAndKind has it. */
struct td_group_version td_group_version_parse(td_str api_version)
{
    size_t slash = td_str_find(api_version, '/', 0);
    if (slash == api_version.len) {
        return (struct td_group_version){.group = TD_STR_EMPTY, .version = api_version};
    }
    td_str version = td_str_slice(api_version, slash + 1, api_version.len);
    if (td_str_find(version, '/', 0) < version.len) {
        return (struct td_group_version){.group = TD_STR_EMPTY, .version = TD_STR_EMPTY};
    }
    return (struct td_group_version){.group = td_str_slice(api_version, 0, slash),
                                     .version = version};
}

td_str td_meta_text(const struct td_json *object, td_str key)
{
    return td_json_get_str(td_json_get(object, TD_STR("metadata")), key, TD_STR_EMPTY);
}

const struct td_owner_reference *td_owner_controller(const struct td_owner_reference *owners,
                                                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (owners[i].is_controller) {
            return &owners[i];
        }
    }
    return NULL;
}

const struct td_owner_reference *td_meta_controller(const struct td_meta *meta)
{
    return td_owner_controller(meta->owners, meta->owner_count);
}

const struct td_json *td_meta_controller_tree(const struct td_json *object)
{
    const struct td_json *owners = td_json_get_path(object, "metadata.ownerReferences");
    const struct td_json *owner = td_json_first_item(owners);
    while (owner && !td_json_get_bool(owner, TD_STR("controller"), false)) {
        owner = owner->next;
    }
    return owner;
}

const struct td_owner_reference *
td_owners_copy(struct td_arena *arena, const struct td_owner_reference *owners, size_t count)
{
    struct td_owner_reference *copies = td_arena_array(arena, struct td_owner_reference, count);
    for (size_t i = 0; i < count; i++) {
        copies[i] = owners[i];
        copies[i].api_version = td_arena_copy_str(arena, owners[i].api_version);
        copies[i].kind = td_arena_copy_str(arena, owners[i].kind);
        copies[i].name = td_arena_copy_str(arena, owners[i].name);
        copies[i].uid = td_arena_copy_str(arena, owners[i].uid);
    }
    return copies;
}
