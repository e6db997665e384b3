/*
 * The scale subresource: an autoscaling/v1 Scale is a view of three places of the object behind it
 * (wanted replicas, replicas there are, and the selector of its pods as text). Built-in kinds keep
 * them where upstream does; a custom resource says where in its definition. Writing a Scale writes
 * the wanted replicas of the object and nothing else.
 */
#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/apply.h"
#include "kube/schema/check.h"
#include "kube/selector/selector.h"
#include "local/api/write.h"
#include "local/kinds/custom.h"

/* Dotted paths in the object, empty when there is none. */
struct scale_paths {
    td_str spec;
    td_str status;
    td_str selector; /* of a text; built-in kinds have a LabelSelector in spec.selector instead */
};

static struct scale_paths scale_paths(const struct td_resource *resource, size_t version)
{
    if (resource->custom) {
        const struct td_custom_version *custom = &resource->custom->versions[version];
        return (struct scale_paths){
            .spec = custom->scale_spec,
            .status = custom->scale_status,
            .selector = custom->scale_selector,
        };
    }
    return (struct scale_paths){
        .spec = TD_STR("spec.replicas"),
        .status = TD_STR("status.replicas"),
    };
}

const struct td_schema_type *td_scale_type(void)
{
    return td_schema_find(TD_STR("autoscaling/v1"), TD_STR("Scale"));
}

td_str td_scale_place(struct td_arena *arena, td_str path)
{
    td_str text = path.len > 0 && path.ptr[0] == '.' ? td_str_slice(path, 1, path.len) : path;
    return td_arena_copy_str(arena, text);
}

struct td_json *td_scale_parent(struct td_arena *arena, struct td_json *object, td_str path,
                                td_str *ret_key)
{
    td_str rest = td_scale_place(arena, path);
    size_t dot = td_str_find(rest, '.', 0);
    while (dot < rest.len) {
        object = td_json_ensure_object(arena, object, td_str_slice(rest, 0, dot));
        rest = td_str_slice(rest, dot + 1, rest.len);
        dot = td_str_find(rest, '.', 0);
    }
    *ret_key = rest;
    return object;
}

static const struct td_json *scale_at(struct td_arena *arena, const struct td_json *object,
                                      td_str path)
{
    return path.len > 0 ? td_json_get_path(object, td_scale_place(arena, path).ptr) : NULL;
}

static int64_t scale_number(struct td_arena *arena, const struct td_json *object, td_str path)
{
    const struct td_json *value = scale_at(arena, object, path);
    int64_t number = 0;
    if (!td_json_is(value, TD_JSON_TYPE_NUMBER) || !td_json_to_int64(value, &number)) {
        return 0;
    }
    return number;
}

/* The selector as text: of a LabelSelector, or of the plain map of a ReplicationController. */
static td_str scale_selector(struct td_arena *arena, const struct td_resource *resource,
                             const struct td_json *object)
{
    const struct td_json *selector = td_json_get_path(object, "spec.selector");
    struct td_json *wrapped = NULL;
    if (td_str_equal(resource->collection, TD_STR("replicationcontrollers")) && selector) {
        wrapped = td_json_new_object(arena);
        td_json_set_copy(arena, wrapped, TD_STR("matchLabels"), selector);
        selector = wrapped;
    }
    struct td_selector parsed;
    if (!selector || td_selector_from_json(arena, selector, &parsed, NULL) < 0) {
        return TD_STR_EMPTY;
    }
    td_auto_buf text = td_buf_capped(TD_SELECTOR_BYTES_MAX);
    td_selector_write(&parsed, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static struct td_json *scale_metadata(struct td_arena *arena, const struct td_json *object)
{
    static const td_str shown[] = {
        TD_STR_INIT("name"),
        TD_STR_INIT("namespace"),
        TD_STR_INIT("uid"),
        TD_STR_INIT("resourceVersion"),
        TD_STR_INIT("creationTimestamp"),
    };
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    struct td_json *view = td_json_new_object(arena);
    for (size_t i = 0; i < TD_COUNT(shown); i++) {
        const struct td_json *value = td_json_get(metadata, shown[i]);
        td_json_set_copy(arena, view, shown[i], value);
    }
    return view;
}

struct td_json *td_scale_view(struct td_arena *arena, const struct td_resource *resource,
                              size_t version, const struct td_json *object)
{
    struct scale_paths paths = scale_paths(resource, version);
    struct td_json *scale = td_json_new_object(arena);
    td_json_set_str(arena, scale, TD_STR("kind"), TD_STR("Scale"));
    td_json_set_str(arena, scale, TD_STR("apiVersion"), TD_STR("autoscaling/v1"));
    td_json_set(arena, scale, TD_STR("metadata"), scale_metadata(arena, object));
    struct td_json *spec = td_json_ensure_object(arena, scale, TD_STR("spec"));
    int64_t wanted = scale_number(arena, object, paths.spec);
    if (wanted != 0) {
        td_json_set_int64(arena, spec, TD_STR("replicas"), wanted);
    }
    struct td_json *status = td_json_ensure_object(arena, scale, TD_STR("status"));
    td_json_set_int64(arena, status, TD_STR("replicas"), scale_number(arena, object, paths.status));
    td_str selector = TD_STR_EMPTY;
    if (!resource->custom) {
        selector = scale_selector(arena, resource, object);
    } else {
        const struct td_json *text = scale_at(arena, object, paths.selector);
        selector = td_json_is(text, TD_JSON_TYPE_STRING) ? text->text : TD_STR_EMPTY;
    }
    td_json_set_text(arena, status, TD_STR("selector"), selector);
    return scale;
}

static void scale_set(struct td_arena *arena, struct td_json *object, td_str path, int64_t value)
{
    td_str key;
    struct td_json *parent = td_scale_parent(arena, object, path, &key);
    td_json_set_int64(arena, parent, key, value);
}

/* Whose are the replicas now? The write is recorded as one of the object behind the Scale. */
static enum td_write_step scale_manage(struct td_write *write, int64_t replicas)
{
    const struct td_resource *resource = write->resource;
    const struct td_resource_version *version = &resource->versions[resource->storage];
    const struct td_apply_request request = td_write_apply_request(write, version);
    struct scale_paths paths = scale_paths(resource, write->version);
    struct td_json *next = NULL;
    if (!write->is_apply) {
        scale_set(write->arena, write->object, paths.spec, replicas);
        int r = td_apply_update(write->arena, &request, write->old, write->object, &next, NULL);
        write->object = r == TD_OK ? next : write->object; /* ownership never fails an update */
        return TD_STEP_NEXT;
    }
    struct td_json *applied = td_json_new_object(write->arena);
    td_json_set_str(write->arena, applied, TD_STR("apiVersion"), version->api_version);
    td_json_set_str(write->arena, applied, TD_STR("kind"), resource->kind);
    scale_set(write->arena, applied, paths.spec, replicas);
    struct td_error err = TD_ERROR_INIT;
    struct td_json *conflicts = NULL;
    int r = td_apply(write->arena, &request, write->old, applied, &next, &conflicts, &err);
    if (r == TD_CONFLICT) {
        return td_patch_report_conflicts(write, conflicts, &err);
    }
    if (r < 0) {
        return td_write_bad_request(write, "%s", err.message);
    }
    write->object = next;
    return TD_STEP_NEXT;
}

static enum td_write_step scale_refuse(struct td_write *write, const struct td_json *replicas)
{
    struct td_field_errors errors = {.arena = write->arena};
    const struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
    const struct td_field_path path = td_field_child(&spec, TD_STR("replicas"));
    td_field_error_add(&errors, &path, TD_FIELD_INVALID, replicas->text,
                       TD_STR("must be greater than or equal to 0"));
    return td_write_invalid_part(write, TD_STR("autoscaling"), TD_STR("Scale"), write->name,
                                 &errors);
}

enum td_write_step td_scale_take(struct td_write *write)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_check_types(td_scale_type(), write->incoming, NULL, &err) < 0) {
        return td_write_bad_request(
            write, "Scale in version \"v1\" cannot be handled as a Scale: %s", err.message);
    }
    const struct td_json *replicas = td_json_get_path(write->incoming, "spec.replicas");
    int64_t number = 0;
    if (td_json_is(replicas, TD_JSON_TYPE_NUMBER) &&
        (!td_json_to_int64(replicas, &number) || number < 0)) {
        return scale_refuse(write, replicas);
    }
    write->object = td_json_copy(write->arena, write->old, false);
    return scale_manage(write, number);
}

void td_scale_get(struct td_api_call *call)
{
    const struct td_resource *resource = call->at.resource;
    td_str ns = resource->is_namespaced ? call->path.ns : TD_STR_EMPTY;
    const struct td_stored *stored =
        td_store_get(td_api_store(call->api), resource->collection, ns, call->path.name);
    if (!stored) {
        td_call_not_found(call, call->path.name);
        return;
    }
    struct td_json *object = NULL;
    struct td_error err = TD_ERROR_INIT;
    td_str text = td_arena_copy_str(&call->arena, stored->json);
    if (td_json_parse(&call->arena, text, NULL, &object, &err) < 0) {
        td_call_fail(call, 500, "InternalError", "Internal error occurred: %s", err.message);
        return;
    }
    td_call_reply_json(call, 200, td_scale_view(&call->arena, resource, call->at.version, object));
}
