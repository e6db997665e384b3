/*
 * The pipeline of a write. An attempt is:
 *
 * 1. load: the stored object, as stored and as the client's version sees it;
 * 2. build: the next object as the client sees it, from the body (a whole object, a patch, a
 * Scale), with defaults and managed fields;
 * 3. mutating admission, which may change it and may take a while;
 * 4. complete: into the storage version, metadata that only the server knows, the kind's own
 *    preparation and its checks;
 * 5. validating admission, which may take a while too;
 * 6. commit: nothing was stored under that name since 1, or the attempt is made again, or it is a
 *    conflict when the client named the version it knew. A write that changes nothing is none, and
 *    one that takes the last finalizer from an object that is being deleted removes it.
 *
 * Steps that can answer return what became of the call, so that a call that is gone is not touched.
 */
#include "local/api/write.h"

#include "base/error.h"
#include "base/limits.h"
#include "local/api/api_private.h"
#include "local/auth/auth.h"

static enum td_write_step write_steps(struct td_write *write, bool is_resumed);

/* The characters before the first slash of a User-Agent, at most as many as a manager may have. */
static td_str write_manager(struct td_api_call *call)
{
    if (call->query.field_manager.len > 0) {
        return call->query.field_manager;
    }
    td_str agent = call->request.user_agent;
    agent = td_str_slice(agent, 0, td_str_find(agent, '/', 0));
    agent = td_str_cut_utf8(agent, TD_FIELD_MANAGER_BYTES_MAX);
    char *kept = td_arena_alloc(&call->arena, agent.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < agent.len && td_str_is_utf8(agent); i++) {
        unsigned char byte = (unsigned char)agent.ptr[i];
        if (byte >= 0x20 && byte != 0x7f) {
            kept[len++] = (char)byte;
        }
    }
    kept[len] = 0;
    return (td_str){.ptr = kept, .len = len};
}

static enum td_write_operation write_operation(td_str subresource)
{
    if (td_str_equal(subresource, TD_STR("status")) ||
        td_str_equal(subresource, TD_STR("approval"))) {
        return TD_WRITE_STATUS;
    }
    if (td_str_equal(subresource, TD_STR("resize"))) {
        return TD_WRITE_RESIZE;
    }
    if (td_str_equal(subresource, TD_STR("ephemeralcontainers"))) {
        return TD_WRITE_EPHEMERAL;
    }
    return TD_WRITE_UPDATE;
}

static void write_finish(struct td_write *write)
{
    struct td_api_call *call = write->call;
    int status = write->old ? 200 : 201;
    if (write->is_scale) {
        struct td_json *scale =
            td_scale_view(write->arena, write->resource, write->version, write->object);
        td_call_reply_json(call, status, scale);
        return;
    }
    bool is_as_stored = write->stored && write->version == write->resource->storage &&
                        call->form == TD_FORM_OBJECT && !call->is_yaml && !call->is_pretty;
    if (is_as_stored) {
        td_call_reply_stored(call, status, write->stored);
        return;
    }
    td_call_reply_object(call, status, write->object);
}

struct td_write *td_write_new(struct td_api_call *call, struct td_json *body)
{
    const struct td_resource *resource = call->at.resource;
    struct td_write *write = td_arena_new(&call->arena, struct td_write);
    *write = (struct td_write){
        .call = call,
        .arena = &call->arena,
        .resource = resource,
        .version = call->at.version,
        .operation = write_operation(call->path.subresource),
        .ns = resource->is_namespaced ? call->path.ns : TD_STR_EMPTY,
        .name = call->path.name,
        .manager = write_manager(call),
        .is_scale = td_str_equal(call->path.subresource, TD_STR("scale")),
        .is_finalize = td_str_equal(call->path.subresource, TD_STR("finalize")),
        .is_dry_run = call->query.is_dry_run,
        .finish = write_finish,
        .body = body,
    };
    struct td_error err = TD_ERROR_INIT;
    int r = td_store_collection(td_api_store(call->api), resource->collection, &write->collection,
                                &err);
    if (r < 0) {
        td_call_fail(call, 413, "RequestEntityTooLarge", "%s", err.message);
        return NULL;
    }
    call->state = write;
    return write;
}

/* Step 1. The text is copied: the revision may be gone when admission is done. */
static enum td_write_step write_load(struct td_write *write)
{
    write->base_version = 0;
    write->old = NULL;
    write->old_at = NULL;
    struct td_stored *stored =
        write->name.len > 0 ? td_collection_get(write->collection, write->ns, write->name) : NULL;
    if (!stored || write->operation == TD_WRITE_CREATE) {
        if (!stored && !write->can_create) {
            return td_write_missing(write);
        }
        bool may_create = write->operation == TD_WRITE_CREATE || td_authorize_create(write->call);
        return may_create ? TD_STEP_NEXT : TD_STEP_ANSWERED;
    }
    struct td_error err = TD_ERROR_INIT;
    td_str text = td_arena_copy_str(write->arena, stored->json);
    int r = td_json_parse(write->arena, text, NULL, &write->old, &err);
    if (r == TD_OK) {
        r = td_resource_convert(write->arena, write->resource, write->resource->storage,
                                write->version, write->old, &write->old_at, &err);
    }
    if (r < 0) {
        td_call_fail(write->call, 500, "InternalError", "Internal error occurred: %s", err.message);
        return TD_STEP_ANSWERED;
    }
    write->base_version = stored->version;
    if (write->is_scale) {
        write->old_at = td_scale_view(write->arena, write->resource, write->version, write->old);
    }
    return TD_STEP_NEXT;
}

static void write_admission_done(void *context, const struct td_admission_verdict *verdict);

static void write_cancel(struct td_api_call *call)
{
    td_admission_cancel(td_api_admission(call->api), call->state);
}

static enum td_write_step write_refused(struct td_write *write,
                                        const struct td_admission_verdict *verdict)
{
    td_str reason = td_arena_copy_str(write->arena, verdict->reason);
    struct td_json *status =
        td_call_status(write->call, verdict->status, reason.ptr, verdict->message);
    struct td_json *details = td_json_is(verdict->details, TD_JSON_TYPE_OBJECT)
                                  ? td_json_copy(write->arena, verdict->details, false)
                                  : NULL;
    if (!verdict->is_foreign) {
        const struct td_json *causes = td_json_get(details, TD_STR("causes"));
        details = td_status_details(write->arena, write->name, write->resource->group,
                                    write->resource->plural);
        td_json_set_copy(write->arena, details, TD_STR("causes"), causes);
    }
    if (details) {
        td_json_set(write->arena, status, TD_STR("details"), details);
    }
    td_call_reply_json(write->call, verdict->status, status);
    return TD_STEP_ANSWERED;
}

/* The kind of options that a webhook is shown. */
static const char *write_options_kind(const struct td_write *write)
{
    td_str method = write->call->request.method;
    if (write->is_delete) {
        return "DeleteOptions";
    }
    if (td_str_equal(method, TD_STR("PATCH"))) {
        return "PatchOptions";
    }
    return td_str_equal(method, TD_STR("PUT")) ? "UpdateOptions" : "CreateOptions";
}

/* Steps 3 and 5. */
static enum td_write_step write_admit(struct td_write *write, bool is_validating)
{
    struct td_api_call *call = write->call;
    write->is_validating = is_validating;
    const char *operation = write->old ? "UPDATE" : "CREATE";
    write->admission = (struct td_admission_request){
        .phase = is_validating ? TD_ADMISSION_VALIDATING : TD_ADMISSION_MUTATING,
        .operation = write->is_delete ? "DELETE" : operation,
        .at = {.resource = write->resource, .version = write->version},
        .subresource = call->path.subresource,
        .ns = write->ns,
        .name = write->name,
        .user = &call->request.user,
        .is_dry_run = write->is_dry_run,
        .options_kind = write_options_kind(write),
        .field_manager = call->query.field_manager,
        .field_validation = write->is_delete ? TD_STR_EMPTY : call->query.field_validation,
        .arena = write->arena,
        .object = write->is_delete ? NULL : write->incoming,
        .old = write->old_at,
        .warnings = call->warnings,
    };
    struct td_admission_verdict verdict = {.status = 0};
    call->release = write_cancel;
    bool is_decided = td_admission_run(td_api_admission(call->api), &write->admission, &verdict,
                                       write_admission_done, write);
    if (!is_decided) {
        return TD_STEP_WAITS;
    }
    call->release = NULL;
    return verdict.status == 0 ? TD_STEP_NEXT : write_refused(write, &verdict);
}

static void write_admission_done(void *context, const struct td_admission_verdict *verdict)
{
    struct td_write *write = context;
    struct td_api_call *call = write->call;
    call->release = NULL;
    td_call_hold(call);
    enum td_write_step step =
        verdict->status != 0 ? write_refused(write, verdict) : write_steps(write, true);
    if (step == TD_STEP_NEXT) {
        write->finish(write);
    }
    td_call_drop(call);
}

/* What only the kind knows, and its checks. */
static enum td_write_step write_check_kind(struct td_write *write)
{
    struct td_kind_write kind = {
        .arena = write->arena,
        .resource = write->resource,
        .operation = write->old ? write->operation : TD_WRITE_CREATE,
        .old = write->old,
        .object = write->object,
        .now = td_call_now(write->call),
        .has_no_strategy = write->call->api->has_no_strategy,
        .warnings = write->call->warnings,
    };
    td_kind_prepare(&kind);
    struct td_field_errors errors = {.arena = write->arena};
    td_kind_validate(&kind, &errors);
    write->object = kind.object;
    write->call->warnings = kind.warnings;
    return errors.count == 0 ? TD_STEP_NEXT : td_write_invalid(write, &errors);
}

/* Only spec.finalizers of the incoming namespace. */
static void write_take_finalizers(struct td_write *write)
{
    const struct td_json *finalizers = td_json_get_path(write->incoming, "spec.finalizers");
    write->object = td_json_copy(write->arena, write->old, false);
    struct td_json *spec = td_json_ensure_object(write->arena, write->object, TD_STR("spec"));
    if (td_json_is(finalizers, TD_JSON_TYPE_ARRAY) && finalizers->count > 0) {
        td_json_set_copy(write->arena, spec, TD_STR("finalizers"), finalizers);
    } else {
        (void)td_json_remove(spec, TD_STR("finalizers")); /* it may not be there */
    }
}

/* Roles and bindings give rights: the user who writes one must have them. */
static enum td_write_step write_check_grant(struct td_write *write)
{
    struct td_auth *auth = td_api_auth(write->call->api);
    if (!auth || !td_str_equal(write->resource->group, TD_STR("rbac.authorization.k8s.io"))) {
        return TD_STEP_NEXT;
    }
    const struct td_grant grant = {.user = &write->call->request.user,
                                   .plural = write->resource->plural,
                                   .ns = write->ns,
                                   .name = write->call->path.name,
                                   .object = write->object,
                                   .old = write->old};
    td_str why = TD_STR_EMPTY;
    td_str name = td_json_text(td_json_get(write->object, TD_STR("metadata")), "name");
    int code = td_auth_check_grant(auth, &grant, write->arena, &why);
    if (code == TD_NOT_FOUND) {
        return td_write_fail(write, 404, "NotFound", why);
    }
    return code == TD_OK ? TD_STEP_NEXT
                         : td_write_fail(write, 403, "Forbidden",
                                         td_arena_format(write->arena,
                                                         "%.*s.%.*s \"%.*s\" is forbidden: %.*s",
                                                         TD_STR_ARG(write->resource->plural),
                                                         TD_STR_ARG(write->resource->group),
                                                         TD_STR_ARG(name), TD_STR_ARG(why)));
}

/* Step 4. */
static enum td_write_step write_complete(struct td_write *write)
{
    if (write->is_finalize) {
        write_take_finalizers(write);
        return TD_STEP_NEXT;
    }
    if (write->is_scale) {
        enum td_write_step step = td_scale_take(write);
        if (step != TD_STEP_NEXT) {
            return step;
        }
    } else {
        struct td_error err = TD_ERROR_INIT;
        int r =
            td_kind_default(write->arena, write->resource, write->version, write->incoming, &err);
        if (r == TD_OK) {
            r = td_resource_convert(write->arena, write->resource, write->version,
                                    write->resource->storage, write->incoming, &write->object,
                                    &err);
        }
        if (r < 0) {
            return td_write_bad_request(write, "%s", err.message);
        }
    }
    if (write_check_grant(write) != TD_STEP_NEXT) {
        return TD_STEP_ANSWERED;
    }
    td_meta_complete(write, write->object);
    return write_check_kind(write);
}

/* The object as validating admission sees it. */
static enum td_write_step write_show(struct td_write *write)
{
    if (write->is_scale) {
        write->incoming =
            td_scale_view(write->arena, write->resource, write->version, write->object);
        return TD_STEP_NEXT;
    }
    struct td_error err = TD_ERROR_INIT;
    int r = td_resource_convert(write->arena, write->resource, write->resource->storage,
                                write->version, write->object, &write->incoming, &err);
    return r < 0 ? td_write_bad_request(write, "%s", err.message) : TD_STEP_NEXT;
}

/* Did another write come first? *ret_again: the attempt is to be made once more. */
static enum td_write_step write_check_overtaken(struct td_write *write, bool *ret_again)
{
    const struct td_stored *now =
        write->name.len > 0 ? td_collection_get(write->collection, write->ns, write->name) : NULL;
    if ((now ? now->version : 0) == write->base_version) {
        return TD_STEP_NEXT;
    }
    if (write->operation == TD_WRITE_CREATE) {
        return td_write_exists(write);
    }
    if (write->attempt >= TD_WRITE_ATTEMPTS_MAX) {
        return td_write_conflict(write);
    }
    *ret_again = true;
    return TD_STEP_NEXT;
}

static enum td_write_step write_store(struct td_write *write, enum td_change_type type,
                                      struct td_json *object)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_stored *stored = NULL;
    int r = td_meta_commit(td_api_store(write->call->api), write->collection, type, write->arena,
                           object, &stored, &err);
    switch (r) {
    case TD_OK:
        write->stored = type != TD_CHANGE_DELETED ? stored : NULL;
        return TD_STEP_NEXT;
    case TD_LIMIT:
        return td_write_too_large(write, err.message);
    case TD_EXISTS:
        return td_write_exists(write);
    default:
        td_call_fail(write->call, 500, "InternalError", "Internal error occurred: %s", err.message);
        return TD_STEP_ANSWERED;
    }
}

/* Step 6 of a deletion. */
static enum td_write_step write_commit_delete(struct td_write *write)
{
    write->object = td_json_copy(write->arena, write->old, false);
    write->outcome = td_delete_plan(write->arena, write->resource, &write->deletion,
                                    td_call_now(write->call), write->object);
    bool is_same = write->outcome == TD_DELETE_LATER && td_json_equal(write->old, write->object);
    if (write->is_dry_run || write->outcome == TD_DELETE_PENDING || is_same) {
        return TD_STEP_NEXT;
    }
    return write_store(write,
                       write->outcome == TD_DELETE_NOW ? TD_CHANGE_DELETED : TD_CHANGE_MODIFIED,
                       write->object);
}

/* Step 6. */
static enum td_write_step write_commit(struct td_write *write)
{
    if (write->is_delete) {
        return write_commit_delete(write);
    }
    td_meta_order(write->arena, write->object);
    if (!write->old) {
        return write->is_dry_run ? TD_STEP_NEXT
                                 : write_store(write, TD_CHANGE_ADDED, write->object);
    }
    if (td_meta_is_finished(write->resource, write->old, write->object)) {
        struct td_json *last = td_json_copy(write->arena, write->old, false);
        return write->is_dry_run ? TD_STEP_NEXT : write_store(write, TD_CHANGE_DELETED, last);
    }
    if (td_meta_is_same(write->old, write->object)) {
        write->object = write->old;
        return TD_STEP_NEXT;
    }
    return write->is_dry_run ? TD_STEP_NEXT : write_store(write, TD_CHANGE_MODIFIED, write->object);
}

/* The call's memory, between two steps of its work. */
static enum td_write_step write_check_memory(struct td_write *write)
{
    struct td_error err = TD_ERROR_INIT;
    return td_arena_check(write->arena, &err) == TD_OK ? TD_STEP_NEXT
                                                       : td_write_too_large(write, err.message);
}

/* Everything in front of validating admission. */
static enum td_write_step write_first_half(struct td_write *write, bool is_resumed)
{
    enum td_write_step step = TD_STEP_NEXT;
    if (!is_resumed) {
        write->attempt++;
        step = write_load(write);
        step = step == TD_STEP_NEXT ? write->build(write) : step;
        step = step == TD_STEP_NEXT ? write_check_memory(write) : step;
        step = step == TD_STEP_NEXT ? write_admit(write, false) : step;
    }
    if (step != TD_STEP_NEXT) {
        return step;
    }
    if (!write->is_delete) {
        write->incoming = write->admission.object;
        step = write_complete(write);
        step = step == TD_STEP_NEXT ? write_check_memory(write) : step;
        step = step == TD_STEP_NEXT ? write_show(write) : step;
    }
    return step == TD_STEP_NEXT ? write_admit(write, true) : step;
}

/* From the beginning, or from where admission left off, to the end or the next wait. */
static enum td_write_step write_steps(struct td_write *write, bool is_resumed)
{
    bool is_second_half = is_resumed && write->is_validating;
    for (int i = 0; i <= TD_WRITE_ATTEMPTS_MAX; i++) {
        enum td_write_step step =
            is_second_half ? TD_STEP_NEXT : write_first_half(write, is_resumed);
        bool is_again = false;
        step = step == TD_STEP_NEXT ? write_check_overtaken(write, &is_again) : step;
        if (step != TD_STEP_NEXT || !is_again) {
            return step == TD_STEP_NEXT ? write_commit(write) : step;
        }
        is_resumed = false;
        is_second_half = false;
    }
    return td_write_conflict(write);
}

enum td_write_step td_write_attempt(struct td_write *write)
{
    return write_steps(write, false);
}

void td_write_run(struct td_write *write)
{
    if (td_write_attempt(write) == TD_STEP_NEXT) {
        write->finish(write);
    }
}
