/*
 * Named types become components, referred to by $ref; a type is written when it is first met, and
 * what it needs waits in a list until its turn, so recursive types need no recursion here. Two
 * types of one name (HPA's v1 and v2 have many) get numbers.
 */
#include "local/discovery/openapi.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/map.h"
#include "local/discovery/describe_texts.h"
#include "local/discovery/discovery.h"
#include "local/kinds/custom.h"

#define OPENAPI_SAY_DEPTH_MAX 8 /* as deep as the texts go */

struct openapi {
    struct td_arena *arena;
    bool is_v3;
    struct td_json *schemas;             /* name to schema */
    const struct td_schema_type **queue; /* named types met; those from `written` on wait */
    td_str *names;                       /* of the queue's types */
    size_t count;
    size_t cap;
    size_t name_cap;
    size_t written;
};

static struct td_json *openapi_typed(struct td_arena *arena, const char *type, const char *format)
{
    struct td_json *schema = td_json_new_object(arena);
    td_json_set_str(arena, schema, TD_STR("type"), td_str_from(type));
    if (format) {
        td_json_set_str(arena, schema, TD_STR("format"), td_str_from(format));
    }
    return schema;
}

static struct td_json *openapi_ref(const struct openapi *api, td_str name)
{
    struct td_json *schema = td_json_new_object(api->arena);
    td_json_set_str(api->arena, schema, TD_STR("$ref"),
                    td_arena_format(api->arena, "#/%s/%.*s",
                                    api->is_v3 ? "components/schemas" : "definitions",
                                    TD_STR_ARG(name)));
    return schema;
}

/* A scalar that has a name of its own, so that people see <Quantity> and not <string>. */
static struct td_json *openapi_scalar(struct openapi *api, const char *name, const char *format,
                                      const char *other_type)
{
    td_str full = td_arena_format(api->arena, "io.k8s.%s", name);
    if (!td_json_get(api->schemas, full)) {
        struct td_json *schema = openapi_typed(api->arena, "string", format);
        if (api->is_v3 && other_type) {
            struct td_json *choices = td_json_new_array(api->arena);
            td_json_append(choices, openapi_typed(api->arena, "string", NULL));
            td_json_append(choices, openapi_typed(api->arena, other_type, NULL));
            (void)td_json_remove(schema, TD_STR("type")); /* it is there */
            td_json_set(api->arena, schema, TD_STR("oneOf"), choices);
        }
        td_json_set(api->arena, api->schemas, full, schema);
    }
    return openapi_ref(api, full);
}

/* The component of a named type, which waits to be written when it is new. */
static td_str openapi_name(struct openapi *api, const struct td_schema_type *type)
{
    size_t same = 0;
    for (size_t i = 0; i < api->count; i++) {
        if (api->queue[i] == type) {
            return api->names[i];
        }
        same += td_str_equal(api->queue[i]->name, type->name);
    }
    api->queue =
        td_arena_grow(api->arena, api->queue, api->count, &api->cap, sizeof(api->queue[0]));
    api->names =
        td_arena_grow(api->arena, api->names, api->count, &api->name_cap, sizeof(api->names[0]));
    td_str name = same == 0 ? td_arena_format(api->arena, "io.k8s.%.*s", TD_STR_ARG(type->name))
                            : td_arena_format(api->arena, "io.k8s.%zu.%.*s", same + 1,
                                              TD_STR_ARG(type->name));
    api->queue[api->count] = type;
    api->names[api->count++] = name;
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

static struct td_json *openapi_of(struct openapi *api, const struct td_schema_type *type,
                                  unsigned depth);

static struct td_json *openapi_container(struct openapi *api, const struct td_schema_type *type,
                                         unsigned depth)
{
    bool is_list = type->kind == TD_SCHEMA_LIST;
    struct td_json *schema = openapi_typed(api->arena, is_list ? "array" : "object", NULL);
    td_json_set(api->arena, schema, is_list ? TD_STR("items") : TD_STR("additionalProperties"),
                openapi_of(api, type->element, depth + 1));
    if (is_list) {
        openapi_list_rules(api, type, schema);
    } else if (type->topology == TD_SCHEMA_ATOMIC) {
        td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-map-type"), TD_STR("atomic"));
    }
    return schema;
}

static struct td_json *openapi_of(struct openapi *api, const struct td_schema_type *type,
                                  unsigned depth)
{
    td_assert(depth < TD_JSON_DEPTH_MAX); /* our own tables */
    switch (type->kind) {
    case TD_SCHEMA_STRING:
    case TD_SCHEMA_DURATION:
        return openapi_typed(api->arena, "string", NULL);
    case TD_SCHEMA_INT32:
        return openapi_typed(api->arena, "integer", "int32");
    case TD_SCHEMA_INT64:
        return openapi_typed(api->arena, "integer", "int64");
    case TD_SCHEMA_NUMBER:
        return openapi_typed(api->arena, "number", "double");
    case TD_SCHEMA_BOOL:
        return openapi_typed(api->arena, "boolean", NULL);
    case TD_SCHEMA_BYTES:
        return openapi_typed(api->arena, "string", "byte");
    case TD_SCHEMA_QUANTITY:
        return openapi_scalar(api, "Quantity", NULL, "number");
    case TD_SCHEMA_INT_OR_STRING:
        return openapi_scalar(api, "IntOrString", "int-or-string", "integer");
    case TD_SCHEMA_TIME:
        return openapi_scalar(api, "Time", "date-time", NULL);
    case TD_SCHEMA_MICRO_TIME:
        return openapi_scalar(api, "MicroTime", "date-time", NULL);
    case TD_SCHEMA_MAP:
    case TD_SCHEMA_LIST:
        return openapi_container(api, type, depth);
    case TD_SCHEMA_OBJECT:
        if (type->name.len > 0) {
            return openapi_ref(api, openapi_name(api, type));
        }
        return openapi_typed(api->arena, "object", NULL);
    case TD_SCHEMA_ANY:
        break;
    }
    return openapi_typed(api->arena, "object", NULL);
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

/* Sets what is said about a type or a field, when there is something. */
static void openapi_say(struct td_arena *arena, struct td_json *schema, td_str type, td_str field)
{
    td_str text = td_describe_text(type, field);
    if (text.len > 0 && !td_json_get(schema, TD_STR("description"))) {
        td_json_set_str(arena, schema, TD_STR("description"), text);
    }
}

/* A field of the type that is named. */
static struct td_json *openapi_field(struct openapi *api, td_str type,
                                     const struct td_schema_field *field)
{
    struct td_json *schema = openapi_of(api, field->type, 0);
    const char *patch = openapi_patch_name(field->patch);
    bool has_text = td_describe_text(type, field->name).len > 0;
    if (!patch && !has_text) {
        return schema;
    }
    if (api->is_v3 && td_json_get(schema, TD_STR("$ref"))) {
        struct td_json *all = td_json_new_array(api->arena);
        td_json_append(all, schema);
        schema = td_json_new_object(api->arena);
        td_json_set(api->arena, schema, TD_STR("allOf"), all);
    }
    openapi_say(api->arena, schema, type, field->name);
    if (!patch) {
        return schema;
    }
    if (field->patch_key.len > 0) {
        td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-patch-merge-key"),
                        field->patch_key);
    }
    td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-patch-strategy"), td_str_from(patch));
    return schema;
}

static struct td_json *openapi_object(struct openapi *api, const struct td_schema_type *type)
{
    struct td_json *schema = openapi_typed(api->arena, "object", NULL);
    struct td_json *properties = td_json_new_object(api->arena);
    openapi_say(api->arena, schema, type->name, TD_STR_EMPTY);
    for (size_t i = 0; i < type->field_count; i++) {
        td_json_set(api->arena, properties, type->fields[i].name,
                    openapi_field(api, type->name, &type->fields[i]));
    }
    if (type->field_count > 0) {
        td_json_set(api->arena, schema, TD_STR("properties"), properties);
    }
    if (type->topology == TD_SCHEMA_ATOMIC) {
        td_json_set_str(api->arena, schema, TD_STR("x-kubernetes-map-type"), TD_STR("atomic"));
    }
    return schema;
}

static void openapi_write_waiting(struct openapi *api)
{
    while (api->written < api->count) {
        size_t i = api->written++;
        struct td_json *schema = openapi_object(api, api->queue[i]);
        td_json_set(api->arena, api->schemas, api->names[i], schema);
    }
}

static struct td_json *openapi_gvk(struct td_arena *arena, const struct td_resource *row, size_t v,
                                   td_str kind)
{
    struct td_json *gvk = td_json_new_object(arena);
    td_json_set_str(arena, gvk, TD_STR("group"), row->group);
    td_json_set_str(arena, gvk, TD_STR("kind"), kind);
    td_json_set_str(arena, gvk, TD_STR("version"), row->versions[v].name);
    return gvk;
}

static void openapi_mark(struct openapi *api, td_str name, struct td_json *gvk)
{
    struct td_json *schema = td_json_get(api->schemas, name);
    struct td_json *gvks = td_json_get(schema, TD_STR("x-kubernetes-group-version-kind"));
    if (!gvks) {
        gvks = td_json_new_array(api->arena);
        td_json_set(api->arena, schema, TD_STR("x-kubernetes-group-version-kind"), gvks);
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

/* What a CRD says is used as it is; the members that every object has are typed by us. Version 2 of
 * OpenAPI cannot say all that a CRD can, so there the inside is left open. */
static td_str openapi_custom(struct openapi *api, const struct td_resource *row, size_t v)
{
    td_str name = openapi_custom_name(api->arena, row, v);
    const struct td_json *given = row->custom->versions[v].schema;
    struct td_json *schema = api->is_v3 && given ? td_json_copy(api->arena, given, false)
                                                 : openapi_typed(api->arena, "object", NULL);
    if (td_str_equal(row->group, TD_STR("autoscaling.k8s.io"))) {
        openapi_say(api->arena, schema, row->kind, TD_STR_EMPTY);
        openapi_say_parts(api->arena, schema, row->kind, 0);
    }
    struct td_json *properties = td_json_ensure_object(api->arena, schema, TD_STR("properties"));
    td_json_set(api->arena, properties, TD_STR("apiVersion"),
                openapi_typed(api->arena, "string", NULL));
    td_json_set(api->arena, properties, TD_STR("kind"), openapi_typed(api->arena, "string", NULL));
    const struct td_schema_field *metadata =
        td_schema_field(td_schema_any_object(), TD_STR("metadata"));
    td_json_set(api->arena, properties, TD_STR("metadata"),
                openapi_field(api, TD_STR_EMPTY, metadata));
    if (!api->is_v3) {
        td_json_set(api->arena, schema, TD_STR("x-kubernetes-preserve-unknown-fields"),
                    td_json_new_bool(api->arena, true));
    }
    td_json_set(api->arena, api->schemas, name, schema);
    return name;
}

static void openapi_list_kind(struct openapi *api, const struct td_resource *row, size_t v,
                              td_str item)
{
    td_str name = td_arena_format(api->arena, "%.*sList", TD_STR_ARG(item));
    struct td_json *schema = openapi_typed(api->arena, "object", NULL);
    struct td_json *properties = td_json_ensure_object(api->arena, schema, TD_STR("properties"));
    struct td_json *items = openapi_typed(api->arena, "array", NULL);
    td_json_set(api->arena, items, TD_STR("items"), openapi_ref(api, item));
    td_json_set(api->arena, properties, TD_STR("apiVersion"),
                openapi_typed(api->arena, "string", NULL));
    td_json_set(api->arena, properties, TD_STR("items"), items);
    td_json_set(api->arena, properties, TD_STR("kind"), openapi_typed(api->arena, "string", NULL));
    td_json_set(api->arena, properties, TD_STR("metadata"),
                openapi_typed(api->arena, "object", NULL));
    td_json_set(api->arena, api->schemas, name, schema);
    openapi_mark(api, name, openapi_gvk(api->arena, row, v, row->list_kind));
}

/* The kind of a row in one version, with everything it refers to; its component's name. */
static td_str openapi_kind(struct openapi *api, const struct td_resource *row, size_t v)
{
    td_str name =
        row->custom ? openapi_custom(api, row, v) : openapi_name(api, row->versions[v].type);
    openapi_write_waiting(api);
    openapi_mark(api, name, openapi_gvk(api->arena, row, v, row->kind));
    if (row->verbs & TD_VERB_LIST) {
        openapi_list_kind(api, row, v, name);
    }
    return name;
}

static void openapi_parameter(const struct openapi *api, struct td_json *list, const char *name,
                              const char *place, const char *type)
{
    struct td_json *parameter = td_json_new_object(api->arena);
    td_json_set_str(api->arena, parameter, TD_STR("name"), td_str_from(name));
    td_json_set_str(api->arena, parameter, TD_STR("in"), td_str_from(place));
    if (strcmp(place, "path") == 0) {
        td_json_set(api->arena, parameter, TD_STR("required"), td_json_new_bool(api->arena, true));
    }
    if (api->is_v3) {
        td_json_set(api->arena, parameter, TD_STR("schema"), openapi_typed(api->arena, type, NULL));
    } else {
        td_json_set_str(api->arena, parameter, TD_STR("type"), td_str_from(type));
    }
    td_json_append(list, parameter);
}

struct openapi_operation {
    const char *method;
    const char *action; /* x-kubernetes-action */
    unsigned verb;
};

static struct td_json *openapi_parameters(const struct openapi *api,
                                          const struct openapi_operation *operation)
{
    struct td_json *list = td_json_new_array(api->arena);
    unsigned writes = TD_VERB_CREATE | TD_VERB_UPDATE | TD_VERB_PATCH;
    if (operation->verb & (writes | TD_VERB_DELETE)) {
        openapi_parameter(api, list, "dryRun", "query", "string");
    }
    if (operation->verb & writes) {
        openapi_parameter(api, list, "fieldManager", "query", "string");
        openapi_parameter(api, list, "fieldValidation", "query", "string");
    }
    if (operation->verb & TD_VERB_PATCH) {
        openapi_parameter(api, list, "force", "query", "boolean");
    }
    if (operation->verb & TD_VERB_DELETE) {
        openapi_parameter(api, list, "gracePeriodSeconds", "query", "integer");
        openapi_parameter(api, list, "propagationPolicy", "query", "string");
    }
    if (operation->verb & (TD_VERB_LIST | TD_VERB_DELETE_COLLECTION)) {
        openapi_parameter(api, list, "continue", "query", "string");
        openapi_parameter(api, list, "fieldSelector", "query", "string");
        openapi_parameter(api, list, "labelSelector", "query", "string");
        openapi_parameter(api, list, "limit", "query", "integer");
        openapi_parameter(api, list, "resourceVersion", "query", "string");
    }
    if (operation->verb & TD_VERB_LIST) {
        openapi_parameter(api, list, "watch", "query", "boolean");
    }
    return list;
}

static struct td_json *openapi_response(const struct openapi *api, td_str component)
{
    struct td_json *ok = td_json_new_object(api->arena);
    td_json_set_str(api->arena, ok, TD_STR("description"), TD_STR("OK"));
    if (api->is_v3) {
        struct td_json *content = td_json_ensure_object(api->arena, ok, TD_STR("content"));
        struct td_json *json =
            td_json_ensure_object(api->arena, content, TD_STR("application/json"));
        td_json_set(api->arena, json, TD_STR("schema"), openapi_ref(api, component));
    } else {
        td_json_set(api->arena, ok, TD_STR("schema"), openapi_ref(api, component));
    }
    struct td_json *responses = td_json_new_object(api->arena);
    td_json_set(api->arena, responses, TD_STR("200"), ok);
    return responses;
}

struct openapi_path {
    const struct td_resource *row;
    size_t version;
    td_str component; /* of the row's kind */
    unsigned verbs;
    struct td_json *gvk;
};

static void openapi_add_path(const struct openapi *api, struct td_json *paths, td_str path,
                             const struct openapi_path *at,
                             const struct openapi_operation *operations, size_t count)
{
    struct td_json *item = td_json_new_object(api->arena);
    for (size_t i = 0; i < count; i++) {
        if (!(at->verbs & operations[i].verb)) {
            continue;
        }
        struct td_json *operation =
            td_json_ensure_object(api->arena, item, td_str_from(operations[i].method));
        td_json_set(api->arena, operation, TD_STR("parameters"),
                    openapi_parameters(api, &operations[i]));
        td_json_set(api->arena, operation, TD_STR("responses"),
                    openapi_response(api, at->component));
        td_json_set_str(api->arena, operation, TD_STR("x-kubernetes-action"),
                        td_str_from(operations[i].action));
        td_json_set(api->arena, operation, TD_STR("x-kubernetes-group-version-kind"),
                    td_json_copy(api->arena, at->gvk, false));
    }
    struct td_json *parameters = td_json_new_array(api->arena);
    if (td_str_ends_with(path, TD_STR("}")) || td_str_find(path, '{', 0) < path.len) {
        bool has_ns = strstr(path.ptr, "{namespace}") != NULL;
        if (strstr(path.ptr, "{name}")) {
            openapi_parameter(api, parameters, "name", "path", "string");
        }
        if (has_ns) {
            openapi_parameter(api, parameters, "namespace", "path", "string");
        }
    }
    if (item->count > 0) {
        td_json_set(api->arena, item, TD_STR("parameters"), parameters);
        td_json_set(api->arena, paths, path, item);
    }
}

static void openapi_add_row(struct openapi *api, struct td_json *paths,
                            const struct td_resource *row, size_t v)
{
    static const struct openapi_operation of_all[] = {{"get", "list", TD_VERB_LIST}};
    static const struct openapi_operation of_list[] = {
        {"get", "list", TD_VERB_LIST},
        {"post", "post", TD_VERB_CREATE},
        {"delete", "deletecollection", TD_VERB_DELETE_COLLECTION},
    };
    static const struct openapi_operation of_one[] = {
        {"get", "get", TD_VERB_GET},
        {"put", "put", TD_VERB_UPDATE},
        {"patch", "patch", TD_VERB_PATCH},
        {"delete", "delete", TD_VERB_DELETE},
    };
    struct openapi_path at = {.row = row,
                              .version = v,
                              .component = openapi_kind(api, row, v),
                              .verbs = row->verbs,
                              .gvk = openapi_gvk(api->arena, row, v, row->kind)};
    const char *prefix = row->group.len > 0 ? "/apis/" : "/api/";
    td_str base =
        td_arena_format(api->arena, "%s%.*s", prefix, TD_STR_ARG(row->versions[v].api_version));
    td_str all = td_arena_format(api->arena, "%s/%.*s", base.ptr, TD_STR_ARG(row->plural));
    td_str list = all;
    if (row->is_namespaced) {
        list = td_arena_format(api->arena, "%s/namespaces/{namespace}/%.*s", base.ptr,
                               TD_STR_ARG(row->plural));
        openapi_add_path(api, paths, all, &at, of_all, 1);
    }
    openapi_add_path(api, paths, list, &at, of_list, sizeof(of_list) / sizeof(of_list[0]));
    td_str one = td_arena_format(api->arena, "%s/{name}", list.ptr);
    openapi_add_path(api, paths, one, &at, of_one, sizeof(of_one) / sizeof(of_one[0]));
    at.verbs = TD_VERB_GET | TD_VERB_UPDATE | TD_VERB_PATCH;
    if (row->subresources & TD_SUB_STATUS) {
        openapi_add_path(api, paths, td_arena_format(api->arena, "%s/status", one.ptr), &at, of_one,
                         sizeof(of_one) / sizeof(of_one[0]));
    }
}

/* Rows that have no shape of their own (metrics of any name) are left out. */
static void openapi_add_rows(struct openapi *api, struct td_json *paths,
                             const struct td_resources *resources, const td_str *group,
                             td_str version)
{
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        for (size_t v = 0; v < row->version_count; v++) {
            bool is_wanted = !group || (td_str_equal(row->group, *group) &&
                                        td_str_equal(row->versions[v].name, version));
            bool has_type = !td_str_equal(row->plural, TD_STR("*")) &&
                            (row->custom || row->versions[v].type != td_schema_any_object());
            if (is_wanted && has_type) {
                openapi_add_row(api, paths, row, v);
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

struct td_json *td_openapi_v2(struct td_arena *arena, const struct td_resources *resources)
{
    struct openapi api = {.arena = arena, .schemas = td_json_new_object(arena)};
    struct td_json *paths = td_json_new_object(arena);
    openapi_add_rows(&api, paths, resources, NULL, TD_STR_EMPTY);
    struct td_json *document = td_json_new_object(arena);
    td_json_set_str(arena, document, TD_STR("swagger"), TD_STR("2.0"));
    td_json_set(arena, document, TD_STR("info"), openapi_info(arena));
    td_json_set(arena, document, TD_STR("paths"), paths);
    td_json_set(arena, document, TD_STR("definitions"), api.schemas);
    return document;
}

struct td_json *td_openapi_v3(struct td_arena *arena, const struct td_resources *resources,
                              td_str group, td_str version)
{
    struct openapi api = {.arena = arena, .is_v3 = true, .schemas = td_json_new_object(arena)};
    struct td_json *paths = td_json_new_object(arena);
    openapi_add_rows(&api, paths, resources, &group, version);
    if (paths->count == 0) {
        return NULL;
    }
    struct td_json *document = td_json_new_object(arena);
    td_json_set_str(arena, document, TD_STR("openapi"), TD_STR("3.0.0"));
    td_json_set(arena, document, TD_STR("info"), openapi_info(arena));
    td_json_set(arena, document, TD_STR("paths"), paths);
    struct td_json *components = td_json_ensure_object(arena, document, TD_STR("components"));
    td_json_set(arena, components, TD_STR("schemas"), api.schemas);
    return document;
}

/* The hash differs from process to process and with every change of the rows, so nobody keeps a
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
