/*
 * PATCH in its four media types. The document that a patch meets is the object as the client's
 * version shows it (a Scale for the scale subresource); what comes out goes the way of an update.
 * An apply brings its own ownership and may create the object. Whatever a patch says, the answer to
 * a bad one is a 4xx: where upstream stumbles into a 500, a 400 with the same words is given.
 */
#include "base/error.h"
#include "base/limits.h"
#include "kube/apply/apply.h"
#include "kube/meta.h"
#include "kube/patch/patch.h"
#include "kube/schema/check.h"
#include "local/api/api_private.h"
#include "local/api/write.h"
#include "local/kinds/kinds.h"

/* The schema of the document that is patched. */
static const struct td_schema_type *patch_type(const struct td_write *write)
{
    const struct td_schema_type *type =
        write->is_scale ? td_scale_type() : write->resource->versions[write->version].type;
    return type ? type : td_schema_any_object();
}

/* What a strict reader objects to in the result, duplicates of the patch itself included. */
static enum td_write_step patch_report(struct td_write *write)
{
    struct td_api_call *call = write->call;
    if (td_str_equal(call->query.field_validation, TD_STR("Ignore"))) {
        return TD_STEP_NEXT;
    }
    struct td_json_problems problems = {.arena = write->arena};
    const struct td_json_problems *of_patch = write->repeated;
    for (size_t i = 0; of_patch && i < of_patch->count; i++) {
        problems.items[problems.count++] = of_patch->items[i];
    }
    td_schema_find_unknown(patch_type(write), write->incoming, &problems);
    if (write->attempt > 1 && !td_str_equal(call->query.field_validation, TD_STR("Strict"))) {
        return TD_STEP_NEXT; /* said before */
    }
    td_str refusal = td_body_report(call, &problems);
    return refusal.len == 0 ? TD_STEP_NEXT : td_object_refuse_patched(write, refusal.ptr);
}

static enum td_write_step patch_check_scale(struct td_write *write)
{
    struct td_error err = TD_ERROR_INIT;
    int r = td_check_types(td_scale_type(), write->incoming, NULL, &err);
    return r < 0 ? td_object_refuse_patched(write, err.message) : TD_STEP_NEXT;
}

/* The patched document as an update. */
static enum td_write_step patch_take(struct td_write *write)
{
    if (!td_json_is(write->incoming, TD_JSON_TYPE_OBJECT)) {
        td_call_fail(write->call, 422, "Invalid",
                     "the server rejected our request due to an error in our request");
        return TD_STEP_ANSWERED;
    }
    struct td_body_want want = td_object_want(write);
    td_str kind = td_json_get_str(write->incoming, TD_STR("kind"), want.kind);
    td_str version = td_json_get_str(write->incoming, TD_STR("apiVersion"), want.api_version);
    if (!td_str_equal(kind, want.kind) || !td_str_equal(version, want.api_version)) {
        return td_object_refuse_patched(write, "apiVersion and kind cannot be changed");
    }
    td_json_set_str(write->arena, write->incoming, TD_STR("kind"), want.kind);
    td_json_set_str(write->arena, write->incoming, TD_STR("apiVersion"), want.api_version);
    enum td_write_step step = patch_report(write);
    if (step == TD_STEP_NEXT) {
        step = write->is_scale ? patch_check_scale(write) : td_object_default(write, true);
    }
    step = step == TD_STEP_NEXT ? td_object_check_identity(write) : step;
    if (step != TD_STEP_NEXT || write->is_scale || write->is_finalize) {
        return step;
    }
    td_object_confine(write, write->incoming);
    td_object_manage(write);
    return TD_STEP_NEXT;
}

static enum td_write_step patch_build_json(struct td_write *write)
{
    struct td_error err = TD_ERROR_INIT;
    int r = td_patch_json(write->arena, write->old_at, write->body, &write->incoming, &err);
    if (r == TD_LIMIT) {
        return td_write_too_large(write, err.message);
    }
    if (r < 0) {
        td_call_fail(write->call, 422, "Invalid",
                     "the server rejected our request due to an error in our request");
        return TD_STEP_ANSWERED;
    }
    return patch_take(write);
}

static enum td_write_step patch_refuse(struct td_write *write, int code, const struct td_error *err)
{
    return code == TD_LIMIT ? td_write_too_large(write, err->message)
                            : td_write_bad_request(write, "%s", err->message);
}

static enum td_write_step patch_build_merge(struct td_write *write)
{
    struct td_error err = TD_ERROR_INIT;
    int r = td_patch_merge(write->arena, write->old_at, write->body, &write->incoming, &err);
    return r < 0 ? patch_refuse(write, r, &err) : patch_take(write);
}

static enum td_write_step patch_build_strategic(struct td_write *write)
{
    struct td_error err = TD_ERROR_INIT;
    int r = td_patch_strategic(write->arena, patch_type(write), write->old_at, write->body,
                               &write->incoming, &err);
    return r < 0 ? patch_refuse(write, r, &err) : patch_take(write);
}

/* 409 with one cause for each field that another manager owns. */
enum td_write_step td_patch_report_conflicts(struct td_write *write,
                                             const struct td_json *conflicts,
                                             const struct td_error *err)
{
    struct td_arena *arena = write->arena;
    struct td_json *causes = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_item(conflicts); item; item = item->next) {
        td_str manager = td_json_text(item, "manager");
        struct td_json *cause = td_json_new_object(arena);
        td_json_set_str(arena, cause, TD_STR("reason"), TD_STR("FieldManagerConflict"));
        td_json_set_str(arena, cause, TD_STR("message"),
                        td_arena_format(arena, "conflict with %.*s", TD_STR_ARG(manager)));
        td_json_set_str(arena, cause, TD_STR("field"), td_json_text(item, "field"));
        td_json_append(causes, cause);
    }
    struct td_json *details = td_json_new_object(arena);
    td_json_set(arena, details, TD_STR("causes"), causes);
    td_str message = td_arena_copy_str(arena, td_str_from(err->message));
    struct td_json *tree = td_call_status(write->call, 409, "Conflict", message);
    td_json_set(arena, tree, TD_STR("details"), details);
    td_call_reply_json(write->call, 409, tree);
    return TD_STEP_ANSWERED;
}

/* What may be applied here: the main resource without status, or nothing but status. */
static struct td_json *patch_confine_applied(struct td_write *write)
{
    struct td_json *applied = td_json_copy(write->arena, write->body, false);
    td_kind_rename(write->resource, write->arena, applied);
    if (write->operation != TD_WRITE_STATUS) {
        if (write->resource->subresources & TD_SUB_STATUS) {
            (void)td_json_remove(applied, TD_STR("status")); /* it may not be there */
        }
        return applied;
    }
    static const td_str kept[] = {
        TD_STR_INIT("apiVersion"),
        TD_STR_INIT("kind"),
        TD_STR_INIT("metadata"),
        TD_STR_INIT("status"),
    };
    struct td_json *next = td_json_new_object(write->arena);
    for (size_t i = 0; i < TD_COUNT(kept); i++) {
        struct td_json *value = td_json_get(applied, kept[i]);
        td_json_set_copy(write->arena, next, kept[i], value);
    }
    return next;
}

static enum td_write_step patch_refuse_applied(struct td_write *write, int code,
                                               const struct td_error *err)
{
    static const td_str prefix = TD_STR_INIT("applied configuration: ");
    td_str message = td_str_from(err->message);
    if (code == TD_LIMIT) {
        return td_write_too_large(write, err->message);
    }
    if (!td_str_starts_with(message, prefix)) {
        return td_write_bad_request(write, "%s", err->message);
    }
    message = td_str_slice(message, prefix.len, message.len);
    const struct td_resource_version *version = &write->resource->versions[write->version];
    return td_write_bad_request(
        write, "failed to create typed patch object (%.*s/%.*s; %s%.*s, Kind=%.*s): %.*s",
        TD_STR_ARG(write->ns), TD_STR_ARG(write->name), write->resource->group.len > 0 ? "" : "/",
        TD_STR_ARG(version->api_version), TD_STR_ARG(write->resource->kind), TD_STR_ARG(message));
}

/* The applied object was merged: an update or, when there was none, a creation. */
static enum td_write_step patch_take_applied(struct td_write *write)
{
    enum td_write_step step = td_object_default(write, true);
    td_str uid = td_json_text(td_json_get(write->body, TD_STR("metadata")), "uid");
    if (step == TD_STEP_NEXT && !write->old && uid.len > 0) {
        td_str detail = td_arena_format(write->arena,
                                        "uid mismatch: the provided object specified uid %.*s, and "
                                        "no existing object was found",
                                        TD_STR_ARG(td_str_cut_utf8(uid, TD_STORED_NAME_BYTES_MAX)));
        td_call_conflict(write->call, write->name, detail.ptr);
        return TD_STEP_ANSWERED;
    }
    step = step == TD_STEP_NEXT ? td_object_check_identity(write) : step;
    if (step == TD_STEP_NEXT && !write->old) {
        td_meta_wipe(write->incoming);
    }
    return step;
}

static enum td_write_step patch_build_apply(struct td_write *write)
{
    const struct td_resource_version *version = &write->resource->versions[write->version];
    const struct td_apply_request request = td_write_apply_request(write, version);
    struct td_error err = TD_ERROR_INIT;
    struct td_json *conflicts = NULL;
    int r = td_apply(write->arena, &request, write->old_at, patch_confine_applied(write),
                     &write->incoming, &conflicts, &err);
    if (r == TD_CONFLICT) {
        return td_patch_report_conflicts(write, conflicts, &err);
    }
    return r < 0 ? patch_refuse_applied(write, r, &err) : patch_take_applied(write);
}

/* An apply of a Scale is one of the object behind it: whose replicas are they? */
static enum td_write_step patch_build_apply_scale(struct td_write *write)
{
    struct td_json *scale = td_json_copy(write->arena, write->body, false);
    struct td_json *metadata = td_json_ensure_object(write->arena, scale, TD_STR("metadata"));
    (void)td_json_remove(metadata, TD_STR("managedFields")); /* those are of the object behind it */
    write->incoming = scale;
    td_json_set_str(write->arena, metadata, TD_STR("name"), write->name);
    return td_object_check_identity(write);
}

/* Options that only some patches may have. */
static bool patch_check_options(struct td_api_call *call, bool is_apply)
{
    struct td_field_errors errors = {.arena = &call->arena};
    const struct td_field_path force = td_field_child(NULL, TD_STR("force"));
    const struct td_field_path manager = td_field_child(NULL, TD_STR("fieldManager"));
    if (is_apply && call->query.field_manager.len == 0) {
        td_field_required(&errors, &manager, "is required for apply patch");
    }
    if (!is_apply && call->query.force) {
        td_field_forbidden(&errors, &force, "may not be specified for non-apply patch");
    }
    if (errors.count > 0) {
        td_call_invalid_options(call, "PatchOptions", &errors);
    }
    return errors.count == 0;
}

/* A JSON patch is a list of operations. */
static bool patch_check_operations(struct td_api_call *call, const struct td_json *body)
{
    const struct td_json *wrong = NULL;
    for (const struct td_json *item = td_json_first_item(body); item && !wrong; item = item->next) {
        wrong = td_json_is(item, TD_JSON_TYPE_OBJECT) ? NULL : item;
    }
    if (!td_json_is(body, TD_JSON_TYPE_ARRAY)) {
        td_call_fail(call, 400, "BadRequest",
                     "error decoding patch: json: cannot unmarshal %s into Go value of type "
                     "[]handlers.jsonPatchOp",
                     td_body_type_name(body));
        return false;
    }
    if (wrong) {
        td_call_fail(call, 400, "BadRequest",
                     "error decoding patch: json: cannot unmarshal %s into Go value of type "
                     "handlers.jsonPatchOp",
                     td_body_type_name(wrong));
    }
    return !wrong;
}

struct patch_media {
    td_str media;
    enum td_write_step (*build)(struct td_write *write);
    const char *prefix; /* of what is said about a body that cannot be read */
};

static const struct patch_media patch_medias[] = {
    {TD_STR_INIT("application/json-patch+json"), patch_build_json, "error decoding patch: "},
    {TD_STR_INIT("application/merge-patch+json"), patch_build_merge, "error decoding patch: "},
    {TD_STR_INIT("application/strategic-merge-patch+json"), patch_build_strategic, ""},
    {TD_STR_INIT("application/apply-patch+yaml"), patch_build_apply, "error decoding YAML: "},
};

static const struct patch_media *patch_find_media(struct td_api_call *call)
{
    td_str media = td_body_media_type(&call->arena, call->request.content_type);
    const struct patch_media *found = NULL;
    for (size_t i = 0; i < TD_COUNT(patch_medias); i++) {
        found = td_str_equal(media, patch_medias[i].media) ? &patch_medias[i] : found;
    }
    bool is_custom = call->at.resource->custom != NULL;
    if (found && found->build == patch_build_strategic && is_custom) {
        td_call_fail(call, 415, "UnsupportedMediaType",
                     "the body of the request was in an unknown format - accepted media types "
                     "include: application/json-patch+json, application/merge-patch+json, "
                     "application/apply-patch+yaml");
        return NULL;
    }
    if (!found) {
        td_call_fail(call, 415, "UnsupportedMediaType", "415: Unsupported Media Type");
    }
    return found;
}

static bool patch_decode(struct td_write *write, const struct patch_media *media)
{
    struct td_api_call *call = write->call;
    struct td_json_problems *problems = td_arena_new(&call->arena, struct td_json_problems);
    problems->arena = &call->arena;
    write->repeated = problems;
    struct td_error err = TD_ERROR_INIT;
    write->body = td_body_parse(call, NULL, media->media, problems, &err);
    if (!write->body) {
        int status = err.code == TD_LIMIT ? 413 : 400;
        td_call_fail(call, status, status == 413 ? "RequestEntityTooLarge" : "BadRequest", "%s%s",
                     media->prefix, err.message);
        return false;
    }
    if (media->build == patch_build_json) {
        return patch_check_operations(call, write->body);
    }
    if (td_json_is(write->body, TD_JSON_TYPE_NULL)) {
        write->body = td_json_new_object(&call->arena);
    }
    if (!td_json_is(write->body, TD_JSON_TYPE_OBJECT)) {
        td_call_fail(call, 400, "BadRequest",
                     "%sjson: cannot unmarshal %s into Go value of type map[string]interface {}",
                     media->prefix, td_body_type_name(write->body));
        return false;
    }
    return true;
}

/* An applied object must name what it is. */
static bool patch_check_applied(struct td_write *write)
{
    struct td_body_want want = td_object_want(write);
    td_str version = td_json_text(write->body, "apiVersion");
    td_str kind = td_json_text(write->body, "kind");
    if (td_str_equal(version, want.api_version) && td_str_equal(kind, want.kind)) {
        return true;
    }
    struct td_group_version parts = td_group_version_parse(version);
    (void)td_write_bad_request(write, "invalid object type: %.*s/%.*s, Kind=%.*s",
                               TD_STR_ARG(parts.group), TD_STR_ARG(parts.version),
                               TD_STR_ARG(kind)); /* the call is gone */
    return false;
}

void td_write_patch(struct td_api_call *call)
{
    const struct patch_media *media = patch_find_media(call);
    if (!media) {
        return;
    }
    bool is_apply = media->build == patch_build_apply;
    struct td_write *write = patch_check_options(call, is_apply) ? td_write_new(call, NULL) : NULL;
    if (!write || !patch_decode(write, media)) {
        return;
    }
    if (is_apply && !patch_check_applied(write)) {
        return;
    }
    write->is_apply = is_apply;
    write->can_create = is_apply && call->path.subresource.len == 0;
    write->build = is_apply && write->is_scale ? patch_build_apply_scale : media->build;
    td_write_run(write);
}
