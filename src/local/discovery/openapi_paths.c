/*
 * The paths of OpenAPI: which operations a resource and its subresources have, what they take (the
 * body, the query parameters) and what they answer.
 */
#include <string.h>

#include "local/discovery/openapi_private.h"

static void openapi_parameter(const struct openapi *api, struct td_json *list, const char *name,
                              const char *place, const char *type)
{
    struct td_json *parameter = td_json_new_object(api->arena);
    td_json_set_str(api->arena, parameter, TD_STR("name"), td_str_from(name));
    td_json_set_str(api->arena, parameter, TD_STR("in"), td_str_from(place));
    if (strcmp(place, "path") == 0) {
        td_json_set_bool(api->arena, parameter, TD_STR("required"), true);
    }
    if (api->is_v3) {
        td_json_set(api->arena, parameter, TD_STR("schema"),
                    td_openapi_typed(api->arena, type, NULL));
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

static struct td_json *openapi_content(const struct openapi *api, struct td_json *schema)
{
    struct td_json *content = td_json_new_object(api->arena);
    struct td_json *json = td_json_ensure_object(api->arena, content, TD_STR("application/json"));
    td_json_set(api->arena, json, TD_STR("schema"), schema);
    return content;
}

static void openapi_body(const struct openapi *api, struct td_json *operation,
                         struct td_json *schema, bool is_required)
{
    struct td_json *body = td_json_new_object(api->arena);
    if (api->is_v3) {
        td_json_set(api->arena, body, TD_STR("content"), openapi_content(api, schema));
        td_json_set(api->arena, operation, TD_STR("requestBody"), body);
    } else {
        td_json_set_str(api->arena, body, TD_STR("name"), TD_STR("body"));
        td_json_set_str(api->arena, body, TD_STR("in"), TD_STR("body"));
        td_json_set(api->arena, body, TD_STR("schema"), schema);
        td_json_append(td_json_get(operation, TD_STR("parameters")), body);
    }
    if (is_required) {
        td_json_set_bool(api->arena, body, TD_STR("required"), true);
    }
}

static struct td_json *openapi_responses(const struct openapi *api, td_str component)
{
    struct td_json *ok = td_json_new_object(api->arena);
    td_json_set_str(api->arena, ok, TD_STR("description"), TD_STR("OK"));
    if (api->is_v3) {
        td_json_set(api->arena, ok, TD_STR("content"),
                    openapi_content(api, td_openapi_ref(api, component)));
    } else {
        td_json_set(api->arena, ok, TD_STR("schema"), td_openapi_ref(api, component));
    }
    struct td_json *responses = td_json_new_object(api->arena);
    td_json_set(api->arena, responses, TD_STR("200"), ok);
    return responses;
}

/* What the operations of a path are about. */
struct openapi_path {
    td_str api_version;
    td_str kind;
    td_str component; /* of the kind */
    td_str list;      /* of its list; empty when it has none */
    td_str options;   /* DeleteOptions */
    td_str status;    /* Status */
    unsigned verbs;
};

static struct td_json *openapi_operate(const struct openapi *api, const struct openapi_path *at,
                                       const struct openapi_operation *operation)
{
    unsigned deletes = TD_VERB_DELETE | TD_VERB_DELETE_COLLECTION;
    td_str answer = operation->verb & deletes ? at->status : at->component;
    struct td_json *made = td_json_new_object(api->arena);
    td_json_set(api->arena, made, TD_STR("parameters"), openapi_parameters(api, operation));
    if (operation->verb & deletes) {
        openapi_body(api, made, td_openapi_ref(api, at->options), false);
    } else if (operation->verb & (TD_VERB_CREATE | TD_VERB_UPDATE)) {
        openapi_body(api, made, td_openapi_ref(api, at->component), true);
    } else if (operation->verb & TD_VERB_PATCH) {
        openapi_body(api, made, td_openapi_typed(api->arena, "object", NULL), true);
    } else if (operation->verb & TD_VERB_LIST) {
        answer = at->list;
    }
    td_json_set(api->arena, made, TD_STR("responses"), openapi_responses(api, answer));
    td_json_set_str(api->arena, made, TD_STR("x-kubernetes-action"),
                    td_str_from(operation->action));
    td_json_set(api->arena, made, TD_STR("x-kubernetes-group-version-kind"),
                td_openapi_gvk(api->arena, at->api_version, at->kind));
    return made;
}

static void openapi_add_path(const struct openapi *api, td_str path, const struct openapi_path *at,
                             const struct openapi_operation *operations, size_t count)
{
    struct td_json *item = td_json_new_object(api->arena);
    for (size_t i = 0; i < count; i++) {
        if (at->verbs & operations[i].verb) {
            td_json_set(api->arena, item, td_str_from(operations[i].method),
                        openapi_operate(api, at, &operations[i]));
        }
    }
    if (item->count == 0) {
        return;
    }
    struct td_json *parameters = td_json_new_array(api->arena);
    if (strstr(path.ptr, "{name}")) {
        openapi_parameter(api, parameters, "name", "path", "string");
    }
    if (strstr(path.ptr, "{namespace}")) {
        openapi_parameter(api, parameters, "namespace", "path", "string");
    }
    td_json_set(api->arena, item, TD_STR("parameters"), parameters);
    td_json_set(api->arena, api->paths, path, item);
}

static const struct openapi_operation openapi_of_one[] = {
    {"get", "get", TD_VERB_GET},
    {"put", "put", TD_VERB_UPDATE},
    {"patch", "patch", TD_VERB_PATCH},
    {"delete", "delete", TD_VERB_DELETE},
};

/* The subresources: some are the object itself, others kinds of their own. */
static void openapi_add_subresources(struct openapi *api, const struct td_resource *row,
                                     const struct openapi_path *of_row, td_str one)
{
    static const unsigned changes = TD_VERB_GET | TD_VERB_UPDATE | TD_VERB_PATCH;
    static const struct openapi_operation create[] = {{"post", "post", TD_VERB_CREATE}};
    static const struct {
        unsigned bit;
        unsigned verbs;
        const char *name;
        const char *api_version; /* NULL: the object itself */
        const char *kind;
    } parts[] = {
        {TD_SUB_STATUS, changes, "status", NULL, NULL},
        {TD_SUB_RESIZE, changes, "resize", NULL, NULL},
        {TD_SUB_EPHEMERAL, changes, "ephemeralcontainers", NULL, NULL},
        {TD_SUB_FINALIZE, TD_VERB_UPDATE, "finalize", NULL, NULL},
        {TD_SUB_SCALE, changes, "scale", "autoscaling/v1", "Scale"},
        {TD_SUB_EVICTION, TD_VERB_CREATE, "eviction", "policy/v1", "Eviction"},
        {TD_SUB_BINDING, TD_VERB_CREATE, "binding", "v1", "Binding"},
        {TD_SUB_TOKEN, TD_VERB_CREATE, "token", "authentication.k8s.io/v1", "TokenRequest"},
    };
    for (size_t i = 0; i < TD_COUNT(parts); i++) {
        if (!(row->subresources & parts[i].bit)) {
            continue;
        }
        struct openapi_path at = *of_row;
        at.verbs = parts[i].verbs;
        if (parts[i].kind) {
            at.api_version = td_str_from(parts[i].api_version);
            at.kind = td_str_from(parts[i].kind);
            at.component = td_openapi_publish(api, td_schema_find(at.api_version, at.kind));
            td_openapi_mark(api, at.component, at.api_version, at.kind);
        }
        bool is_made = at.verbs == TD_VERB_CREATE;
        openapi_add_path(api, td_arena_format(api->arena, "%s/%s", one.ptr, parts[i].name), &at,
                         is_made ? create : openapi_of_one, is_made ? 1 : TD_COUNT(openapi_of_one));
    }
}

void td_openapi_add_paths(struct openapi *api, const struct td_resource *row, size_t version,
                          td_str component)
{
    static const struct openapi_operation of_all[] = {{"get", "list", TD_VERB_LIST}};
    static const struct openapi_operation of_list[] = {
        {"get", "list", TD_VERB_LIST},
        {"post", "post", TD_VERB_CREATE},
        {"delete", "deletecollection", TD_VERB_DELETE_COLLECTION},
    };
    struct openapi_path at = {
        .api_version = row->versions[version].api_version,
        .kind = row->kind,
        .component = component,
        .list = td_arena_format(api->arena, "%.*sList", TD_STR_ARG(component)),
        .verbs = row->verbs,
    };
    if (row->verbs & (TD_VERB_DELETE | TD_VERB_DELETE_COLLECTION)) {
        at.options = td_openapi_publish(api, td_schema_find(TD_STR("v1"), TD_STR("DeleteOptions")));
        td_openapi_mark(api, at.options, TD_STR("v1"), TD_STR("DeleteOptions"));
        if (!row->custom) {
            td_openapi_mark(api, at.options, at.api_version, TD_STR("DeleteOptions"));
        }
        at.status = td_openapi_publish(api, td_schema_find(TD_STR("v1"), TD_STR("Status")));
        td_openapi_mark(api, at.status, TD_STR("v1"), TD_STR("Status"));
    }
    const char *prefix = row->group.len > 0 ? "/apis/" : "/api/";
    td_str base = td_arena_format(api->arena, "%s%.*s", prefix, TD_STR_ARG(at.api_version));
    td_str all = td_arena_format(api->arena, "%s/%.*s", base.ptr, TD_STR_ARG(row->plural));
    td_str list = all;
    if (row->is_namespaced) {
        list = td_arena_format(api->arena, "%s/namespaces/{namespace}/%.*s", base.ptr,
                               TD_STR_ARG(row->plural));
        openapi_add_path(api, all, &at, of_all, 1);
    }
    openapi_add_path(api, list, &at, of_list, TD_COUNT(of_list));
    td_str one = td_arena_format(api->arena, "%s/{name}", list.ptr);
    openapi_add_path(api, one, &at, openapi_of_one, TD_COUNT(openapi_of_one));
    openapi_add_subresources(api, row, &at, one);
}
