/*
 * The schema is made in one walk down the table of the type, with what its kinds imply (formats,
 * list keys, atomic parts); the notes and rules of the definition are attached afterwards, by path.
 */
#include "api/crd.h"

#include "base/assert.h"
#include "kube/schema/describe_texts.h"

#define CRD_DEPTH_MAX 32 /* of a schema; a recursive type would pass it */

static void crd_set_text(struct td_arena *arena, struct td_json *object, td_str key,
                         const char *text)
{
    td_json_set_str(arena, object, key, td_str_from(text));
}

static void crd_set_int_or_string(struct td_arena *arena, struct td_json *schema)
{
    td_json_set_bool(arena, schema, TD_STR("x-kubernetes-int-or-string"), true);
    td_json_set(arena, schema, TD_STR("anyOf"),
                td_json_parse_own(arena, "[{\"type\":\"integer\"},{\"type\":\"string\"}]"));
}

struct crd_scalar {
    const char *type;
    const char *format; /* NULL: none */
};

static void crd_scalar(struct td_arena *arena, enum td_schema_kind kind, struct td_json *schema)
{
    static const struct crd_scalar scalars[] = {
        [TD_SCHEMA_STRING] = {"string", NULL},
        [TD_SCHEMA_INT32] = {"integer", "int32"},
        [TD_SCHEMA_INT64] = {"integer", "int64"},
        [TD_SCHEMA_NUMBER] = {"number", "double"},
        [TD_SCHEMA_BOOL] = {"boolean", NULL},
        [TD_SCHEMA_TIME] = {"string", "date-time"},
        [TD_SCHEMA_MICRO_TIME] = {"string", "date-time"},
        [TD_SCHEMA_DURATION] = {"string", NULL},
        [TD_SCHEMA_BYTES] = {"string", "byte"},
    };
    if (kind == TD_SCHEMA_ANY) {
        td_json_set_bool(arena, schema, TD_STR("x-kubernetes-preserve-unknown-fields"), true);
    } else if (kind == TD_SCHEMA_QUANTITY) {
        crd_set_int_or_string(arena, schema);
        crd_set_text(
            arena, schema, TD_STR("pattern"),
            "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))"
            "(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$");
    } else if (kind == TD_SCHEMA_INT_OR_STRING) {
        crd_set_int_or_string(arena, schema);
    } else {
        td_assert(kind < TD_COUNT(scalars));
        td_assert(scalars[kind].type);
        crd_set_text(arena, schema, TD_STR("type"), scalars[kind].type);
        if (scalars[kind].format) {
            crd_set_text(arena, schema, TD_STR("format"), scalars[kind].format);
        }
    }
}

static struct td_json *crd_value(struct td_arena *arena, const struct td_schema_type *type,
                                 size_t depth);

static void crd_object(struct td_arena *arena, const struct td_schema_type *type,
                       struct td_json *schema, size_t depth)
{
    crd_set_text(arena, schema, TD_STR("type"), "object");
    if (type->topology == TD_SCHEMA_ATOMIC) {
        crd_set_text(arena, schema, TD_STR("x-kubernetes-map-type"), "atomic");
    }
    if (type->kind == TD_SCHEMA_MAP) {
        td_json_set(arena, schema, TD_STR("additionalProperties"),
                    crd_value(arena, type->element, depth + 1));
        return;
    }
    if (type->element) {
        /* Declared members beside others: a structural schema cannot type the others. */
        td_json_set_bool(arena, schema, TD_STR("x-kubernetes-preserve-unknown-fields"), true);
    }
    for (size_t i = 0; i < type->field_count; i++) {
        /* Made with its first member: an API server stores no empty one, and an apply that has one
         * would conflict. */
        td_json_set(arena, td_json_ensure_object(arena, schema, TD_STR("properties")),
                    type->fields[i].name, crd_value(arena, type->fields[i].type, depth + 1));
    }
}

/* A server wants every key of a keyed list to be there: demanded, or filled in by its default. */
static void crd_list_keys(struct td_arena *arena, const struct td_schema_type *type,
                          struct td_json *schema, struct td_json *items)
{
    struct td_json *keys = td_json_new_array(arena);
    struct td_json *required = td_json_new_array(arena);
    struct td_json *properties = td_json_get(items, TD_STR("properties"));
    for (size_t i = 0; i < type->list_key_count; i++) {
        const struct td_schema_key *key = &type->list_keys[i];
        td_json_append(keys, td_json_new_string(arena, key->name));
        struct td_json *property = td_json_get(properties, key->name);
        td_assert(property);
        if (key->fallback.len > 0) {
            td_json_set(arena, property, TD_STR("default"),
                        td_json_parse_own(arena, key->fallback.ptr));
        } else {
            td_json_append(required, td_json_new_string(arena, key->name));
        }
    }
    crd_set_text(arena, schema, TD_STR("x-kubernetes-list-type"), "map");
    td_json_set(arena, schema, TD_STR("x-kubernetes-list-map-keys"), keys);
    if (required->count > 0) {
        td_json_set(arena, items, TD_STR("required"), required);
    }
}

static void crd_list(struct td_arena *arena, const struct td_schema_type *type,
                     struct td_json *schema, size_t depth)
{
    struct td_json *items = crd_value(arena, type->element, depth + 1);
    crd_set_text(arena, schema, TD_STR("type"), "array");
    td_json_set(arena, schema, TD_STR("items"), items);
    if (type->topology == TD_SCHEMA_KEYED) {
        crd_list_keys(arena, type, schema, items);
    } else {
        crd_set_text(arena, schema, TD_STR("x-kubernetes-list-type"),
                     type->topology == TD_SCHEMA_SET ? "set" : "atomic");
    }
}

static struct td_json *crd_value(struct td_arena *arena, const struct td_schema_type *type,
                                 size_t depth)
{
    td_assert(depth < CRD_DEPTH_MAX); /* OpenAPI in a CRD has no references: no recursion */
    struct td_json *schema = td_json_new_object(arena);
    if (type->kind == TD_SCHEMA_OBJECT || type->kind == TD_SCHEMA_MAP) {
        crd_object(arena, type, schema, depth);
    } else if (type->kind == TD_SCHEMA_LIST) {
        crd_list(arena, type, schema, depth);
    } else {
        crd_scalar(arena, type->kind, schema);
    }
    return schema;
}

struct td_json *td_crd_schema(struct td_arena *arena, const struct td_schema_type *type)
{
    return crd_value(arena, type, 0);
}

struct td_json *td_crd_schema_at(struct td_json *schema, const char *path)
{
    td_str rest = td_str_from(path);
    while (rest.len > 0) {
        td_str step = rest;
        if (td_str_starts_with(rest, TD_STR("[]"))) {
            schema = td_json_get(schema, TD_STR("items"));
            step.len = 2;
        } else if (td_str_starts_with(rest, TD_STR("{}"))) {
            schema = td_json_get(schema, TD_STR("additionalProperties"));
            step.len = 2;
        } else {
            step.len = 0;
            while (step.len < rest.len && !memchr(".[{", rest.ptr[step.len], 3)) {
                step.len++;
            }
            schema = td_json_get(td_json_get(schema, TD_STR("properties")), step);
        }
        td_assert(schema);
        bool has_dot = step.len < rest.len && rest.ptr[step.len] == '.';
        rest = td_str_slice(rest, step.len + has_dot, rest.len);
    }
    return schema;
}

/* What `kubectl explain` says: by the place, "Hvpa.spec", else by the name of the type. */
static void crd_describe(struct td_arena *arena, const struct td_schema_type *type,
                         struct td_json *schema, td_str path)
{
    for (size_t i = 0; type->kind == TD_SCHEMA_OBJECT && i < type->field_count; i++) {
        const struct td_schema_field *field = &type->fields[i];
        struct td_json *member =
            td_json_get(td_json_get(schema, TD_STR("properties")), field->name);
        if (td_str_equal(field->name, TD_STR("metadata"))) {
            continue; /* the server knows it itself */
        }
        td_str text = td_describe_text(path, field->name);
        if (text.len == 0 && type->name.len > 0) {
            text = td_describe_text(type->name, field->name);
        }
        td_json_set_text(arena, member, TD_STR("description"), text);
        crd_describe(
            arena, field->type, member,
            td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(path), TD_STR_ARG(field->name)));
    }
    if (type->kind == TD_SCHEMA_LIST) {
        crd_describe(arena, type->element, td_json_get(schema, TD_STR("items")), path);
    } else if (type->kind == TD_SCHEMA_MAP) {
        crd_describe(arena, type->element, td_json_get(schema, TD_STR("additionalProperties")),
                     path);
    }
}

static void crd_attach(struct td_arena *arena, const struct td_crd *crd, struct td_json *schema)
{
    for (size_t i = 0; i < crd->note_count; i++) {
        const struct td_crd_note *note = &crd->notes[i];
        td_json_set(arena, td_crd_schema_at(schema, note->path), td_str_from(note->key),
                    td_json_parse_own(arena, note->json));
    }
    static const td_str key = TD_STR_INIT("x-kubernetes-validations");
    for (size_t i = 0; i < crd->rule_count; i++) {
        struct td_json *place = td_crd_schema_at(schema, crd->rules[i].path);
        struct td_json *list = td_json_get(place, key);
        if (!list) {
            list = td_json_new_array(arena);
            td_json_set(arena, place, key, list);
        }
        struct td_json *rule = td_json_new_object(arena);
        crd_set_text(arena, rule, TD_STR("rule"), crd->rules[i].rule);
        crd_set_text(arena, rule, TD_STR("message"), crd->rules[i].message);
        if (crd->rules[i].field) {
            crd_set_text(arena, rule, TD_STR("fieldPath"), crd->rules[i].field);
        }
        if (crd->rules[i].reason) {
            crd_set_text(arena, rule, TD_STR("reason"), crd->rules[i].reason);
        }
        td_json_append(list, rule);
    }
}

/* The server knows metadata itself and refuses a schema that says more than its type. */
static struct td_json *crd_root_schema(struct td_arena *arena, const struct td_crd *crd)
{
    struct td_json *schema = td_crd_schema(arena, crd->type);
    struct td_json *properties = td_json_get(schema, TD_STR("properties"));
    td_assert(td_json_get(properties, TD_STR("metadata")));
    struct td_json *metadata = td_json_new_object(arena);
    crd_set_text(arena, metadata, TD_STR("type"), "object");
    td_json_set(arena, properties, TD_STR("metadata"), metadata);
    if (crd->is_described) {
        td_str kind = td_str_from(crd->kind);
        crd_describe(arena, crd->type, schema, kind);
        td_json_set_str(arena, schema, TD_STR("description"), td_describe_text(kind, TD_STR_EMPTY));
    }
    crd_attach(arena, crd, schema);
    return schema;
}

static struct td_json *crd_columns(struct td_arena *arena, const struct td_crd *crd)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < crd->column_count; i++) {
        struct td_json *column = td_json_new_object(arena);
        crd_set_text(arena, column, TD_STR("name"), crd->columns[i].name);
        crd_set_text(arena, column, TD_STR("type"), crd->columns[i].type);
        crd_set_text(arena, column, TD_STR("jsonPath"), crd->columns[i].json_path);
        if (crd->columns[i].priority > 0) {
            td_json_set_int64(arena, column, TD_STR("priority"), crd->columns[i].priority);
        }
        td_json_append(list, column);
    }
    return list;
}

static void crd_subresources(struct td_arena *arena, const struct td_crd *crd,
                             struct td_json *version)
{
    struct td_json *made = td_json_new_object(arena);
    if (crd->has_status) {
        td_json_set(arena, made, TD_STR("status"), td_json_new_object(arena));
    }
    if (crd->scale_spec) {
        struct td_json *scale = td_json_ensure_object(arena, made, TD_STR("scale"));
        crd_set_text(arena, scale, TD_STR("specReplicasPath"), crd->scale_spec);
        crd_set_text(arena, scale, TD_STR("statusReplicasPath"), crd->scale_status);
        if (crd->scale_selector) {
            crd_set_text(arena, scale, TD_STR("labelSelectorPath"), crd->scale_selector);
        }
    }
    if (made->count > 0) {
        td_json_set(arena, version, TD_STR("subresources"), made);
    }
}

static struct td_json *crd_names(struct td_arena *arena, const struct td_crd *crd)
{
    struct td_json *names = td_json_new_object(arena);
    crd_set_text(arena, names, TD_STR("kind"), crd->kind);
    td_json_set_str(arena, names, TD_STR("listKind"), td_arena_format(arena, "%sList", crd->kind));
    crd_set_text(arena, names, TD_STR("plural"), crd->plural);
    crd_set_text(arena, names, TD_STR("singular"), crd->singular);
    const char *const words[] = {crd->short_name, crd->category};
    static const td_str keys[] = {TD_STR_INIT("shortNames"), TD_STR_INIT("categories")};
    for (size_t i = 0; i < 2; i++) {
        if (words[i]) {
            struct td_json *list = td_json_new_array(arena);
            td_json_append(list, td_json_new_string(arena, td_str_from(words[i])));
            td_json_set(arena, names, keys[i], list);
        }
    }
    return names;
}

struct td_json *td_crd_new(struct td_arena *arena, const struct td_crd *crd)
{
    struct td_json *version = td_json_new_object(arena);
    crd_set_text(arena, version, TD_STR("name"), crd->version);
    td_json_set_bool(arena, version, TD_STR("served"), true);
    td_json_set_bool(arena, version, TD_STR("storage"), true);
    td_json_set(arena, td_json_ensure_object(arena, version, TD_STR("schema")),
                TD_STR("openAPIV3Schema"), crd_root_schema(arena, crd));
    crd_subresources(arena, crd, version);
    if (crd->column_count > 0) {
        td_json_set(arena, version, TD_STR("additionalPrinterColumns"), crd_columns(arena, crd));
    }
    struct td_json *versions = td_json_new_array(arena);
    td_json_append(versions, version);

    struct td_json *made = td_json_new_object(arena);
    crd_set_text(arena, made, TD_STR("apiVersion"), "apiextensions.k8s.io/v1");
    crd_set_text(arena, made, TD_STR("kind"), "CustomResourceDefinition");
    td_str name = td_arena_format(arena, "%s.%s", crd->plural, crd->group);
    td_json_set_str(arena, td_json_ensure_object(arena, made, TD_STR("metadata")), TD_STR("name"),
                    name);
    struct td_json *spec = td_json_ensure_object(arena, made, TD_STR("spec"));
    crd_set_text(arena, spec, TD_STR("group"), crd->group);
    crd_set_text(arena, spec, TD_STR("scope"), "Namespaced");
    td_json_set(arena, spec, TD_STR("names"), crd_names(arena, crd));
    td_json_set(arena, spec, TD_STR("versions"), versions);
    return made;
}
