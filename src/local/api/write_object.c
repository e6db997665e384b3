/*
 * Writes that bring whole objects (POST and PUT), and the checks that they share with patches: does
 * it decode, is it the object that the path names, which version of it was meant, which part of it
 * may be written here, and who owns which field afterwards.
 */
#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/apply.h"
#include "kube/apply/managed.h"
#include "kube/meta.h"
#include "kube/quote.h"
#include "local/api/write.h"
#include "local/kinds/kinds_default.h"

/* May a PUT make a missing object? Upstream's choice, kind by kind. */
static bool object_allows_create(const struct td_resource *resource)
{
    static const td_str collections[] = {
        TD_STR_INIT("leases.coordination.k8s.io"),
        TD_STR_INIT("events"),
        TD_STR_INIT("events.events.k8s.io"),
        TD_STR_INIT("limitranges"),
        TD_STR_INIT("services"),
        TD_STR_INIT("endpoints"),
        TD_STR_INIT("roles.rbac.authorization.k8s.io"),
        TD_STR_INIT("rolebindings.rbac.authorization.k8s.io"),
        TD_STR_INIT("clusterroles.rbac.authorization.k8s.io"),
        TD_STR_INIT("clusterrolebindings.rbac.authorization.k8s.io"),
    };
    return td_str_is_among(resource->collection, collections, TD_COUNT(collections));
}

/* May an update leave out the version that it replaces? Custom resources never do; VPAs are among
 * those for every client. */
static bool object_allows_unconditional(const struct td_resource *resource)
{
    static const td_str collections[] = {
        TD_STR_INIT("leases.coordination.k8s.io"),
        TD_STR_INIT("poddisruptionbudgets.policy"),
        TD_STR_INIT("customresourcedefinitions.apiextensions.k8s.io"),
        TD_STR_INIT("mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        TD_STR_INIT("validatingwebhookconfigurations.admissionregistration.k8s.io"),
        TD_STR_INIT("verticalpodautoscalers.autoscaling.k8s.io"),
        TD_STR_INIT("verticalpodautoscalercheckpoints.autoscaling.k8s.io"),
        TD_STR_INIT("hvpas.autoscaling.k8s.io"),
    };
    return !resource->custom &&
           !td_str_is_among(resource->collection, collections, TD_COUNT(collections));
}

struct td_body_want td_object_want(const struct td_write *write)
{
    if (write->is_scale) {
        return (struct td_body_want){
            .api_version = TD_STR("autoscaling/v1"),
            .kind = TD_STR("Scale"),
            .type = td_scale_type(),
        };
    }
    const struct td_resource_version *version = &write->resource->versions[write->version];
    return (struct td_body_want){
        .api_version = version->api_version,
        .kind = write->resource->kind,
        .type = version->type,
        .needs_kind = write->resource->custom != NULL,
    };
}

/* What is wrong with the incoming object, without the words that name its kind. */
static td_str object_detail(struct td_write *write, td_str message, td_str *ret_prefix)
{
    const struct td_resource_version *version = &write->resource->versions[write->version];
    td_str prefix = td_arena_format(
        write->arena,
        "%.*s in version \"%.*s\" cannot be handled as a %.*s: ", TD_STR_ARG(write->resource->kind),
        TD_STR_ARG(version->name), TD_STR_ARG(write->resource->kind));
    *ret_prefix = prefix;
    return td_str_starts_with(message, prefix) ? td_str_slice(message, prefix.len, message.len)
                                               : message;
}

enum td_write_step td_object_refuse_patched(struct td_write *write, const char *message)
{
    td_str prefix;
    td_str detail = object_detail(write, td_str_from(message), &prefix);
    td_auto_buf quoted = td_buf_capped(TD_JSON_BYTES_MAX);
    td_quote_write(td_json_line(write->arena, write->incoming), &quoted);
    struct td_field_errors errors = {.arena = write->arena};
    const struct td_field_path path = td_field_child(NULL, TD_STR("patch"));
    td_field_error_add(&errors, &path, TD_FIELD_INVALID, td_buf_str(&quoted), detail);
    return td_write_invalid_part(write, TD_STR_EMPTY, TD_STR_EMPTY, TD_STR_EMPTY, &errors);
}

enum td_write_step td_object_default(struct td_write *write, bool is_patch)
{
    struct td_error err = TD_ERROR_INIT;
    write->resets_owners = td_managed_state(write->incoming) == TD_MANAGED_RESET;
    int r = td_kind_default(write->arena, write->resource, write->version, write->incoming, &err);
    if (r == TD_OK) {
        return TD_STEP_NEXT;
    }
    if (r == TD_LIMIT) {
        return td_write_too_large(write, err.message);
    }
    if (is_patch) {
        return td_object_refuse_patched(write, err.message);
    }
    td_str prefix;
    td_str detail = object_detail(write, td_str_from(err.message), &prefix);
    return td_write_bad_request(write, "%.*s%.*s", TD_STR_ARG(prefix), TD_STR_ARG(detail));
}

static enum td_write_step object_need_version(struct td_write *write)
{
    struct td_field_errors errors = {.arena = write->arena};
    const struct td_field_path metadata = td_field_child(NULL, TD_STR("metadata"));
    const struct td_field_path path = td_field_child(&metadata, TD_STR("resourceVersion"));
    td_field_invalid_int(&errors, &path, 0, "must be specified for an update");
    return td_write_invalid_part(write, write->resource->group, write->resource->plural,
                                 write->name, &errors);
}

static enum td_write_step object_check_version(struct td_write *write)
{
    td_str text = td_meta_text(write->incoming, TD_STR("resourceVersion"));
    int64_t version = 0;
    if (text.len > 0 && (!td_str_to_int64(text, &version) || version < 0)) {
        return td_write_bad_request(write,
                                    "metadata.resourceVersion: Invalid value: \"%.*s\": must "
                                    "be the version of a stored object",
                                    TD_STR_ARG(td_str_cut_utf8(text, TD_BODY_SHOWN_BYTES)));
    }
    if (!write->old) {
        return TD_STEP_NEXT;
    }
    if (version == 0) {
        bool is_allowed = write->is_scale || object_allows_unconditional(write->resource);
        return is_allowed ? TD_STEP_NEXT : object_need_version(write);
    }
    return (uint64_t)version == write->base_version ? TD_STEP_NEXT : td_write_conflict(write);
}

enum td_write_step td_object_check_identity(struct td_write *write)
{
    td_str name = td_meta_text(write->incoming, TD_STR("name"));
    if (name.len == 0) {
        return td_write_bad_request(
            write,
            "the name of the object (%.*s based on URL) was undeterminable: "
            "name must be provided",
            TD_STR_ARG(write->name));
    }
    if (!td_str_equal(name, write->name)) {
        return td_write_bad_request(
            write, "the name of the object (%.*s) does not match the name on the URL (%.*s)",
            TD_STR_ARG(td_str_cut_utf8(name, TD_STORED_NAME_BYTES_MAX)), TD_STR_ARG(write->name));
    }
    enum td_write_step step = td_meta_check_place(write, write->incoming);
    return step == TD_STEP_NEXT ? object_check_version(write) : step;
}

static void object_put_back(struct td_write *write, struct td_json *object, td_str key)
{
    const struct td_json *value = td_json_get(write->old_at, key);
    if (value) {
        td_json_set_copy(write->arena, object, key, value);
    } else {
        (void)td_json_remove(object, key); /* it may not be there */
    }
}

void td_object_confine(struct td_write *write, struct td_json *incoming)
{
    bool brings_status = !write->old && td_str_equal(write->resource->collection, TD_STR("nodes"));
    if (write->operation != TD_WRITE_STATUS) {
        if ((write->resource->subresources & TD_SUB_STATUS) && !brings_status) {
            object_put_back(write, incoming, TD_STR("status"));
        }
        return;
    }
    struct td_json *next = td_json_copy(write->arena, write->old_at, false);
    struct td_json *status = td_json_get(incoming, TD_STR("status"));
    (void)td_json_remove(next, TD_STR("status")); /* it may not be there */
    td_json_set_copy(write->arena, next, TD_STR("status"), status);
    td_json_set_copy(write->arena, next, TD_STR("metadata"),
                     td_json_get(incoming, TD_STR("metadata")));
    *incoming = *next;
}

/* Without usable ownership the object keeps what it had: upstream never fails a write for it. */
static void object_keep_managed(struct td_write *write)
{
    struct td_json *metadata =
        td_json_ensure_object(write->arena, write->incoming, TD_STR("metadata"));
    (void)td_json_remove(metadata, TD_STR("managedFields")); /* it may not be there */
    const struct td_json *managed = td_json_get_path(write->old_at, "metadata.managedFields");
    td_json_set_copy(write->arena, metadata, TD_STR("managedFields"), managed);
}

/* What a new object is compared with: nothing, in the form that a server writes. Members that are
 * always written (spec of most kinds) are there before any client writes them, so no manager owns
 * them as such; a custom resource has none. */
static const struct td_json *object_nothing(struct td_write *write,
                                            const struct td_resource_version *version)
{
    struct td_json *nothing = td_json_new_object(write->arena);
    td_json_set_str(write->arena, nothing, TD_STR("apiVersion"), version->api_version);
    td_json_set_str(write->arena, nothing, TD_STR("kind"), write->resource->kind);
    if (!write->resource->custom && version->type) {
        td_kind_to_wire(write->arena, version->type, nothing);
    }
    return nothing;
}

struct td_apply_request td_write_apply_request(const struct td_write *write,
                                               const struct td_resource_version *version)
{
    return (struct td_apply_request){
        .type = version->type ? version->type : td_schema_any_object(),
        .api_version = version->api_version,
        .kind = write->resource->kind,
        .manager = write->manager,
        .subresource = write->call->path.subresource,
        .now = td_call_now(write->call),
        .force = write->call->query.force,
    };
}

void td_object_manage(struct td_write *write)
{
    const struct td_resource_version *version = &write->resource->versions[write->version];
    const struct td_apply_request request = td_write_apply_request(write, version);
    if (write->resets_owners) { /* an empty list did not survive the form of the wire */
        struct td_json *metadata =
            td_json_ensure_object(write->arena, write->incoming, TD_STR("metadata"));
        td_json_set(write->arena, metadata, TD_STR("managedFields"),
                    td_json_new_array(write->arena));
    }
    const struct td_json *live = write->old_at ? write->old_at : object_nothing(write, version);
    struct td_json *next = NULL;
    int r = td_apply_update(write->arena, &request, live, write->incoming, &next, NULL);
    if (r < 0) {
        object_keep_managed(write);
        return;
    }
    write->incoming = next;
}

/* A new object: what only the server says about it is wiped first. */
static enum td_write_step object_build_new(struct td_write *write)
{
    td_meta_wipe(write->incoming);
    enum td_write_step step = td_meta_check_place(write, write->incoming);
    if (step != TD_STEP_NEXT) {
        return step;
    }
    td_object_confine(write, write->incoming);
    td_object_manage(write);
    return TD_STEP_NEXT;
}

static enum td_write_step object_build_create(struct td_write *write)
{
    write->incoming = td_json_copy(write->arena, write->body, false);
    enum td_write_step step = td_object_default(write, false);
    if (step != TD_STEP_NEXT) {
        return step;
    }
    if (td_meta_text(write->incoming, TD_STR("resourceVersion")).len > 0) {
        return td_write_bad_request(write,
                                    "resourceVersion should not be set on objects to be created");
    }
    return object_build_new(write);
}

/* The uid that a client names must be the stored object's. */
static enum td_write_step object_check_uid(struct td_write *write)
{
    td_str uid = td_meta_text(write->incoming, TD_STR("uid"));
    td_str stored = td_meta_text(write->old, TD_STR("uid"));
    if (uid.len == 0 || td_str_equal(uid, stored)) {
        return TD_STEP_NEXT;
    }
    uid = td_str_cut_utf8(uid, TD_STORED_NAME_BYTES_MAX);
    td_str detail = td_arena_format(
        write->arena, "Precondition failed: UID in precondition: %.*s, UID in object meta: %.*s",
        TD_STR_ARG(uid), TD_STR_ARG(stored));
    td_call_conflict(write->call, write->name, detail.ptr);
    return TD_STEP_ANSWERED;
}

static enum td_write_step object_build_update(struct td_write *write)
{
    write->incoming = td_json_copy(write->arena, write->body, false);
    enum td_write_step step = write->is_scale ? TD_STEP_NEXT : td_object_default(write, false);
    step = step == TD_STEP_NEXT ? object_check_uid(write) : step;
    step = step == TD_STEP_NEXT ? td_object_check_identity(write) : step;
    if (step != TD_STEP_NEXT || write->is_scale || write->is_finalize) {
        return step;
    }
    if (!write->old) {
        return object_build_new(write);
    }
    td_object_confine(write, write->incoming);
    td_object_manage(write);
    return TD_STEP_NEXT;
}

static void object_start(struct td_api_call *call, bool is_create)
{
    struct td_write *write = td_write_new(call, NULL);
    if (!write) {
        return;
    }
    struct td_body_want want = td_object_want(write);
    if (!td_body_decode(call, &want, &write->body)) {
        return;
    }
    write->build = is_create ? object_build_create : object_build_update;
    if (is_create) {
        write->operation = TD_WRITE_CREATE;
        write->name = td_meta_text(write->body, TD_STR("name"));
    }
    bool is_main = call->path.subresource.len == 0;
    write->can_create = is_create || (is_main && object_allows_create(write->resource));
    td_write_run(write);
}

void td_write_create(struct td_api_call *call)
{
    object_start(call, true);
}

void td_write_update(struct td_api_call *call)
{
    object_start(call, false);
}
