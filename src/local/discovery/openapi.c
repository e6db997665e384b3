/*
 * The schemas of OpenAPI, from the schema table and the definitions of custom resources. A named
 * type becomes a component under its published name, referred to by $ref; it is written when it is
 * first met, and what it needs waits in a list until its turn, so recursive types need no recursion
 * here. Version 2 knows neither defaults nor choices of types.
 */
#include "local/discovery/openapi.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "kube/meta.h"
#include "kube/schema/describe_texts.h"
#include "local/discovery/openapi_private.h"
#include "local/kinds/custom.h"

#define OPENAPI_SAY_DEPTH_MAX 8 /* as deep as the texts go */

struct td_json *td_openapi_typed(struct td_arena *arena, const char *type, const char *format)
{
    struct td_json *schema = td_json_new_object(arena);
    td_json_set_str(arena, schema, TD_STR("type"), td_str_from(type));
    if (format) {
        td_json_set_str(arena, schema, TD_STR("format"), td_str_from(format));
    }
    return schema;
}

struct td_json *td_openapi_ref(const struct openapi *api, td_str name)
{
    struct td_json *schema = td_json_new_object(api->arena);
    td_json_set_str(api->arena, schema, TD_STR("$ref"),
                    td_arena_format(api->arena, "#/%s/%.*s",
                                    api->is_v3 ? "components/schemas" : "definitions",
                                    TD_STR_ARG(name)));
    return schema;
}

/* Lets a reference have members beside it, which version 3 allows only so. */
static struct td_json *openapi_wrap(const struct openapi *api, struct td_json *schema)
{
    if (!api->is_v3 || !td_json_get(schema, TD_STR("$ref"))) {
        return schema;
    }
    struct td_json *all = td_json_new_array(api->arena);
    td_json_append(all, schema);
    schema = td_json_new_object(api->arena);
    td_json_set(api->arena, schema, TD_STR("allOf"), all);
    return schema;
}

/* Sets what is said about a type or a field, when there is something. */
static void openapi_say(struct td_arena *arena, struct td_json *schema, td_str type, td_str field)
{
    td_str text = td_describe_text(type, field);
    if (text.len > 0 && !td_json_get(schema, TD_STR("description"))) {
        td_json_set_str(arena, schema, TD_STR("description"), text);
    }
}

/* The published name of a type, which waits to be written when it is new. */
static td_str openapi_name(struct openapi *api, const struct td_schema_type *type)
{
    td_str name =
        td_arena_format(api->arena, "%.*s.%.*s", TD_STR_ARG(type->package), TD_STR_ARG(type->name));
    if (!td_json_get(api->schemas, name)) {
        api->queue =
            td_arena_grow(api->arena, api->queue, api->count, &api->cap, sizeof(api->queue[0]));
        api->queue[api->count++] = type;
        td_json_set(api->arena, api->schemas, name, td_json_new_object(api->arena));
    }
    return name;
}

static void openapi_list_rules(const struct openapi *api, const struct td_schema_type *type,
                               struct td_json *schema)
{
    static const char *const names[] = {[TD_SCHEMA_GRANULAR] = "atomic",
                                        [TD_SCHEMA_ATOMIC] = "atomic",
                                        [TD_SCHEMA_SET] = "set",
                                        [TD_SCHEMA_KEYED] = "map"};
    if (type->topology == TD_SCHEMA_KEYED) {
        struct td_json *keys = td_json_new_array(api->arena);
        for (size_t i = 0; i < type->list_key_count; i++) {
            td_json_append(keys, td_json_new_string(api->arena, type->list_keys[i].name));
        }
        td_json_set(api->arena, schema, TD_STR("x-kubernetes-list-map-keys"), keys);
    }
    td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-list-type"),
                    td_str_from(names[type->topology]));
}

/* The default of a value that has one: the type's own, or its zero value. */
static struct td_json *openapi_default(struct td_arena *arena, const struct td_schema_type *type)
{
    struct td_json *value = NULL;
    if (type->fallback.len > 0) {
        struct td_error err = TD_ERROR_INIT;
        int parsed = td_json_parse(arena, type->fallback, NULL, &value, &err);
        td_assert(parsed == TD_OK); /* our own tables */
        return value;
    }
    switch (type->kind) {
    case TD_SCHEMA_STRING:
        return td_json_new_string(arena, TD_STR_EMPTY);
    case TD_SCHEMA_INT32:
    case TD_SCHEMA_INT64:
    case TD_SCHEMA_NUMBER:
    case TD_SCHEMA_DURATION:
        return td_json_new_int64(arena, 0);
    case TD_SCHEMA_BOOL:
        return td_json_new_bool(arena, false);
    default:
        return td_json_new_object(arena);
    }
}

static struct td_json *openapi_of(struct openapi *api, const struct td_schema_type *type,
                                  unsigned depth);

/* An element is never absent, so scalars and objects among them default to their zero value. */
static struct td_json *openapi_element(struct openapi *api, const struct td_schema_type *type,
                                       unsigned depth)
{
    struct td_json *schema = openapi_of(api, type, depth);
    bool has_default = type->kind == TD_SCHEMA_OBJECT || type->kind == TD_SCHEMA_STRING ||
                       type->kind == TD_SCHEMA_INT32 || type->kind == TD_SCHEMA_INT64;
    if (api->is_v3 && has_default) {
        schema = openapi_wrap(api, schema);
        td_json_set(api->arena, schema, TD_STR("default"), openapi_default(api->arena, type));
    }
    return schema;
}

static struct td_json *openapi_container(struct openapi *api, const struct td_schema_type *type,
                                         unsigned depth)
{
    bool is_list = type->kind == TD_SCHEMA_LIST;
    struct td_json *schema = td_openapi_typed(api->arena, is_list ? "array" : "object", NULL);
    td_json_set(api->arena, schema, is_list ? TD_STR("items") : TD_STR("additionalProperties"),
                openapi_element(api, type->element, depth + 1));
    if (is_list) {
        openapi_list_rules(api, type, schema);
    } else if (type->topology == TD_SCHEMA_ATOMIC) {
        td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-map-type"), TD_STR("atomic"));
    }
    return schema;
}

static struct td_json *openapi_string(const struct openapi *api, td_str values)
{
    struct td_json *schema = td_openapi_typed(api->arena, "string", NULL);
    struct td_json *list = td_json_new_array(api->arena);
    for (size_t at = 0; values.len > 0 && at <= values.len;) {
        size_t comma = td_str_find(values, ',', at);
        td_json_append(list, td_json_new_string(api->arena, td_str_slice(values, at, comma)));
        at = comma + 1;
    }
    if (list->count > 0) {
        td_json_set(api->arena, schema, TD_STR("enum"), list);
    }
    return schema;
}

/* Text or a number; version 2 has no words for that. */
static struct td_json *openapi_either(const struct openapi *api, const char *first,
                                      const char *second, const char *format)
{
    struct td_json *schema = td_openapi_typed(api->arena, "string", format);
    if (api->is_v3) {
        struct td_json *choices = td_json_new_array(api->arena);
        td_json_append(choices, td_openapi_typed(api->arena, first, NULL));
        td_json_append(choices, td_openapi_typed(api->arena, second, NULL));
        (void)td_json_remove(schema, TD_STR("type")); /* it is there */
        td_json_set(api->arena, schema, TD_STR("oneOf"), choices);
    }
    return schema;
}

static struct td_json *openapi_object(struct openapi *api, const struct td_schema_type *type);

/* A type as it is written out, whether it has a name or not. */
static struct td_json *openapi_body(struct openapi *api, const struct td_schema_type *type,
                                    unsigned depth)
{
    td_assert(depth < TD_JSON_DEPTH_MAX); /* our own tables */
    switch (type->kind) {
    case TD_SCHEMA_STRING:
        return openapi_string(api, type->values);
    case TD_SCHEMA_DURATION:
        return td_openapi_typed(api->arena, "string", NULL);
    case TD_SCHEMA_INT32:
        return td_openapi_typed(api->arena, "integer", "int32");
    case TD_SCHEMA_INT64:
        return td_openapi_typed(api->arena, "integer", "int64");
    case TD_SCHEMA_NUMBER:
        return td_openapi_typed(api->arena, "number", "double");
    case TD_SCHEMA_BOOL:
        return td_openapi_typed(api->arena, "boolean", NULL);
    case TD_SCHEMA_BYTES:
        return td_openapi_typed(api->arena, "string", "byte");
    case TD_SCHEMA_QUANTITY:
        return openapi_either(api, "string", "number", NULL);
    case TD_SCHEMA_INT_OR_STRING:
        return openapi_either(api, "integer", "string", "int-or-string");
    case TD_SCHEMA_TIME:
    case TD_SCHEMA_MICRO_TIME:
        return td_openapi_typed(api->arena, "string", "date-time");
    case TD_SCHEMA_MAP:
    case TD_SCHEMA_LIST:
        return openapi_container(api, type, depth);
    case TD_SCHEMA_OBJECT:
        return openapi_object(api, type);
    case TD_SCHEMA_ANY:
        break;
    }
    /* JSON and what may be a schema or something else has no type at all. */
    bool is_open = td_str_starts_with(type->name, TD_STR("JSON"));
    return is_open ? td_json_new_object(api->arena) : td_openapi_typed(api->arena, "object", NULL);
}

static struct td_json *openapi_of(struct openapi *api, const struct td_schema_type *type,
                                  unsigned depth)
{
    return type->name.len > 0 ? td_openapi_ref(api, openapi_name(api, type))
                              : openapi_body(api, type, depth);
}

static const char *openapi_patch_name(enum td_schema_patch patch)
{
    switch (patch) {
    case TD_SCHEMA_PATCH_MERGE:
        return "merge";
    case TD_SCHEMA_PATCH_REPLACE:
        return "replace";
    case TD_SCHEMA_PATCH_RETAIN_KEYS:
        return "retainKeys";
    case TD_SCHEMA_PATCH_MERGE_RETAIN_KEYS:
        return "merge,retainKeys";
    case TD_SCHEMA_PATCH_DEFAULT:
        break;
    }
    return NULL;
}

/* A field of the type that is named. */
static struct td_json *openapi_field(struct openapi *api, td_str type,
                                     const struct td_schema_field *field)
{
    struct td_json *schema = openapi_of(api, field->type, 0);
    const char *patch = openapi_patch_name(field->patch);
    bool has_default = field->has_default && api->is_v3;
    if (patch || has_default || td_describe_text(type, field->name).len > 0) {
        schema = openapi_wrap(api, schema);
    }
    openapi_say(api->arena, schema, type, field->name);
    if (has_default) {
        td_json_set(api->arena, schema, TD_STR("default"),
                    openapi_default(api->arena, field->type));
    }
    td_json_set_text(api->arena, schema, TD_STR("x-kubernetes-patch-merge-key"), field->patch_key);
    if (field->type->is_variant) {
        bool is_atomic = field->type->topology == TD_SCHEMA_ATOMIC;
        td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-map-type"),
                        is_atomic ? TD_STR("atomic") : TD_STR("granular"));
    }
    if (patch) {
        td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-patch-strategy"),
                        td_str_from(patch));
    }
    return schema;
}

static struct td_json *openapi_object(struct openapi *api, const struct td_schema_type *type)
{
    struct td_json *schema = td_openapi_typed(api->arena, "object", NULL);
    struct td_json *properties = td_json_new_object(api->arena);
    struct td_json *required = td_json_new_array(api->arena);
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *field = &type->fields[i];
        td_json_set(api->arena, properties, field->name, openapi_field(api, type->name, field));
        if (field->is_required) {
            td_json_append(required, td_json_new_string(api->arena, field->name));
        }
    }
    if (required->count > 0) {
        td_json_set(api->arena, schema, TD_STR("required"), required);
    }
    if (type->field_count > 0) {
        td_json_set(api->arena, schema, TD_STR("properties"), properties);
    }
    if ((type->topology == TD_SCHEMA_ATOMIC) != type->is_variant) {
        td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-map-type"), TD_STR("atomic"));
    }
    return schema;
}

/* A type that is a kind of its own says so wherever it is published. */
static void openapi_mark_kind(const struct openapi *api, td_str name,
                              const struct td_schema_type *type)
{
    for (size_t i = 0; i < td_resources_count(api->resources); i++) {
        const struct td_resource *row = td_resources_row(api->resources, i);
        for (size_t v = 0; v < row->version_count; v++) {
            if (row->versions[v].type == type) {
                td_openapi_mark(api, name, row->versions[v].api_version, row->kind);
            }
        }
    }
}

td_str td_openapi_publish(struct openapi *api, const struct td_schema_type *type)
{
    td_str name = openapi_name(api, type);
    while (api->written < api->count) {
        const struct td_schema_type *next = api->queue[api->written++];
        struct td_json *schema = openapi_body(api, next, 0);
        openapi_say(api->arena, schema, next->name, TD_STR_EMPTY);
        td_str published = openapi_name(api, next);
        td_json_set(api->arena, api->schemas, published, schema);
        openapi_mark_kind(api, published, next);
    }
    return name;
}

struct td_json *td_openapi_gvk(struct td_arena *arena, td_str api_version, td_str kind)
{
    struct td_group_version parsed = td_group_version_parse(api_version);
    struct td_json *gvk = td_json_new_object(arena);
    td_json_set_str(arena, gvk, TD_STR("group"), parsed.group);
    td_json_set_str(arena, gvk, TD_STR("kind"), kind);
    td_json_set_str(arena, gvk, TD_STR("version"), parsed.version);
    return gvk;
}

void td_openapi_mark(const struct openapi *api, td_str name, td_str api_version, td_str kind)
{
    struct td_json *schema = td_json_get(api->schemas, name);
    struct td_json *gvk = td_openapi_gvk(api->arena, api_version, kind);
    struct td_json *gvks = td_json_get(schema, TD_STR("x-kubernetes-group-version-kind"));
    if (!gvks) {
        gvks = td_json_new_array(api->arena);
        td_json_set(api->arena, schema, TD_STR("x-kubernetes-group-version-kind"), gvks);
    }
    for (const struct td_json *each = td_json_first_item(gvks); each; each = each->next) {
        if (td_json_equal(each, gvk)) {
            return;
        }
    }
    td_json_append(gvks, gvk);
}

/* "dev.tandem.autoscaling.v1alpha1.Hvpa" of group autoscaling.tandem.dev. */
static td_str openapi_custom_name(struct td_arena *arena, const struct td_resource *row, size_t v)
{
    td_str name = TD_STR_EMPTY;
    td_str rest = row->group;
    while (rest.len > 0) {
        size_t dot = td_str_find(rest, '.', 0);
        td_str part = td_str_slice(rest, 0, dot);
        name = td_arena_format(arena, "%.*s%s%.*s", TD_STR_ARG(part), name.len > 0 ? "." : "",
                               TD_STR_ARG(name));
        rest = td_str_slice(rest, dot + 1, rest.len);
    }
    return td_arena_format(arena, "%.*s.%.*s.%.*s", TD_STR_ARG(name),
                           TD_STR_ARG(row->versions[v].name), TD_STR_ARG(row->kind));
}

/* Says what there is to say about a part of a custom kind and what is inside; a definition's own
 * descriptions come first. */
static void openapi_say_parts(struct td_arena *arena, struct td_json *schema, td_str type,
                              unsigned depth)
{
    struct td_json *items = td_json_get(schema, TD_STR("items"));
    struct td_json *inside = items ? items : schema;
    struct td_json *properties = td_json_get(inside, TD_STR("properties"));
    bool has_fields = td_json_is(properties, TD_JSON_TYPE_OBJECT) && depth < OPENAPI_SAY_DEPTH_MAX;
    for (struct td_json *field = has_fields ? td_json_first_member(properties) : NULL; field;
         field = field->next) {
        if (td_json_is(field, TD_JSON_TYPE_OBJECT)) {
            openapi_say(arena, field, type, field->key);
            openapi_say_parts(
                arena, field,
                td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(type), TD_STR_ARG(field->key)),
                depth + 1);
        }
    }
}

/* The members that every object and every list has. */
static void openapi_kind_members(struct openapi *api, struct td_json *properties, td_str type,
                                 const struct td_schema_type *meta)
{
    static const char *const names[] = {"apiVersion", "kind"};
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        struct td_json *text = td_openapi_typed(api->arena, "string", NULL);
        openapi_say(api->arena, text, type, td_str_from(names[i]));
        td_json_set(api->arena, properties, td_str_from(names[i]), text);
    }
    const struct td_schema_field metadata = {.name = TD_STR_INIT("metadata"),
                                             .type = meta,
                                             .has_default = meta == td_schema_list_meta()};
    td_json_set(api->arena, properties, metadata.name, openapi_field(api, type, &metadata));
    (void)td_openapi_publish(api, meta);
}

/* What a CRD says is used as it is; the members that every object has are typed by us. Version 2 of
 * OpenAPI cannot say all that a CRD can, so there the inside is left open. */
static td_str openapi_custom(struct openapi *api, const struct td_resource *row, size_t v)
{
    td_str name = openapi_custom_name(api->arena, row, v);
    const struct td_json *given = row->custom->versions[v].schema;
    struct td_json *schema = api->is_v3 && given ? td_json_copy(api->arena, given, false)
                                                 : td_openapi_typed(api->arena, "object", NULL);
    if (td_str_equal(row->group, TD_STR("autoscaling.k8s.io"))) {
        openapi_say(api->arena, schema, row->kind, TD_STR_EMPTY);
        openapi_say_parts(api->arena, schema, row->kind, 0);
    }
    struct td_json *properties = td_json_ensure_object(api->arena, schema, TD_STR("properties"));
    openapi_kind_members(api, properties, row->kind,
                         td_schema_field(td_schema_any_object(), TD_STR("metadata"))->type);
    if (!api->is_v3) {
        td_json_set_bool(api->arena, schema, TD_STR("x-kubernetes-preserve-unknown-fields"), true);
    }
    td_json_set(api->arena, api->schemas, name, schema);
    return name;
}

static void openapi_list_kind(struct openapi *api, const struct td_resource *row, size_t v,
                              td_str item)
{
    static const td_str type = TD_STR_INIT("List"); /* of the texts */
    td_str name = td_arena_format(api->arena, "%.*sList", TD_STR_ARG(item));
    struct td_json *schema = td_openapi_typed(api->arena, "object", NULL);
    struct td_json *required = td_json_new_array(api->arena);
    td_json_append(required, td_json_new_string(api->arena, TD_STR("items")));
    td_json_set_str(
        api->arena, schema, TD_STR("description"),
        td_arena_format(api->arena, "A list of objects of kind %.*s.", TD_STR_ARG(row->kind)));
    td_json_set(api->arena, schema, TD_STR("required"), required);
    struct td_json *properties = td_json_ensure_object(api->arena, schema, TD_STR("properties"));
    openapi_kind_members(api, properties, type, td_schema_list_meta());
    struct td_json *items = td_openapi_typed(api->arena, "array", NULL);
    struct td_json *element = td_openapi_ref(api, item);
    if (api->is_v3 && !row->custom) {
        element = openapi_wrap(api, element);
        td_json_set(api->arena, element, TD_STR("default"), td_json_new_object(api->arena));
    }
    td_json_set(api->arena, items, TD_STR("items"), element);
    openapi_say(api->arena, items, type, TD_STR("items"));
    td_json_set(api->arena, properties, TD_STR("items"), items);
    td_json_set(api->arena, api->schemas, name, schema);
    td_openapi_mark(api, name, row->versions[v].api_version, row->list_kind);
}

/* The kind of a row in one version, with everything it refers to, its list and its paths. */
static void openapi_add_row(struct openapi *api, const struct td_resource *row, size_t v)
{
    td_str name =
        row->custom ? openapi_custom(api, row, v) : td_openapi_publish(api, row->versions[v].type);
    if (row->custom) {
        td_openapi_mark(api, name, row->versions[v].api_version, row->kind);
    }
    if (row->verbs & TD_VERB_LIST) {
        openapi_list_kind(api, row, v, name);
    }
    td_openapi_add_paths(api, row, v, name);
}

/* Rows that have no shape of their own (metrics of any name) are left out. */
static void openapi_add_rows(struct openapi *api, const td_str *group, td_str version)
{
    for (size_t i = 0; i < td_resources_count(api->resources); i++) {
        const struct td_resource *row = td_resources_row(api->resources, i);
        for (size_t v = 0; v < row->version_count; v++) {
            bool is_wanted = !group || (td_str_equal(row->group, *group) &&
                                        td_str_equal(row->versions[v].name, version));
            bool has_type = !td_str_equal(row->plural, TD_STR("*")) &&
                            (row->custom || row->versions[v].type != td_schema_any_object());
            if (is_wanted && has_type) {
                openapi_add_row(api, row, v);
            }
        }
    }
}

static struct td_json *openapi_info(struct td_arena *arena)
{
    struct td_json *info = td_json_new_object(arena);
    td_json_set_str(arena, info, TD_STR("title"), TD_STR("Kubernetes"));
    td_json_set_str(arena, info, TD_STR("version"), TD_STR("v1.36.3"));
    return info;
}

static struct openapi openapi_begin(struct td_arena *arena, const struct td_resources *resources,
                                    bool is_v3)
{
    return (struct openapi){.arena = arena,
                            .resources = resources,
                            .is_v3 = is_v3,
                            .schemas = td_json_new_object(arena),
                            .paths = td_json_new_object(arena)};
}

struct td_json *td_openapi_v2(struct td_arena *arena, const struct td_resources *resources)
{
    struct openapi api = openapi_begin(arena, resources, false);
    openapi_add_rows(&api, NULL, TD_STR_EMPTY);
    struct td_json *document = td_json_new_object(arena);
    td_json_set_str(arena, document, TD_STR("swagger"), TD_STR("2.0"));
    td_json_set(arena, document, TD_STR("info"), openapi_info(arena));
    td_json_set(arena, document, TD_STR("paths"), api.paths);
    td_json_set(arena, document, TD_STR("definitions"), api.schemas);
    return document;
}

struct td_json *td_openapi_v3(struct td_arena *arena, const struct td_resources *resources,
                              td_str group, td_str version)
{
    struct openapi api = openapi_begin(arena, resources, true);
    openapi_add_rows(&api, &group, version);
    if (api.paths->count == 0) {
        return NULL;
    }
    struct td_json *document = td_json_new_object(arena);
    td_json_set_str(arena, document, TD_STR("openapi"), TD_STR("3.0.0"));
    td_json_set(arena, document, TD_STR("info"), openapi_info(arena));
    td_json_set(arena, document, TD_STR("paths"), api.paths);
    struct td_json *components = td_json_ensure_object(arena, document, TD_STR("components"));
    td_json_set(arena, components, TD_STR("schemas"), api.schemas);
    return document;
}

/* The hash differs from process to process and with every change of the rows, so no client keeps a
 * document for too long. */
struct td_json *td_openapi_v3_index(struct td_arena *arena, const struct td_resources *resources)
{
    struct td_json *answer = td_json_new_object(arena);
    struct td_json *paths = td_json_ensure_object(arena, answer, TD_STR("paths"));
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        for (size_t v = 0; v < row->version_count; v++) {
            td_str key = td_arena_format(arena, "%s%.*s", row->group.len > 0 ? "apis/" : "api/",
                                         TD_STR_ARG(row->versions[v].api_version));
            td_str seed = td_arena_format(arena, "%.*s %" PRIu64, TD_STR_ARG(key),
                                          td_resources_generation(resources));
            struct td_json *entry = td_json_new_object(arena);
            td_json_set_str(arena, entry, TD_STR("serverRelativeURL"),
                            td_arena_format(arena, "/openapi/v3/%.*s?hash=%016" PRIX64,
                                            TD_STR_ARG(key), td_map_hash(seed)));
            td_json_set(arena, paths, key, entry);
        }
    }
    return answer;
}
