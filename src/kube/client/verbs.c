/*
 * Each verb fills method, path, body and content type. Reads, merge patches, applies and deletions
 * with a uid may be sent twice; creations and JSON patches may not.
 */
#include "kube/client/verbs.h"

#include "base/json/json.h"
#include "base/limits.h"

struct verb_query {
    td_str key;
    td_str value; /* empty: left out */
};

static int verb_path(struct td_arena *arena, const struct td_api_path *path,
                     const struct verb_query *queries, size_t query_count, td_str *ret,
                     struct td_error *err)
{
    td_auto_buf out = td_buf_capped(TD_API_PATH_BYTES_MAX);
    int code = td_path_write(path, &out, err);
    if (code != TD_OK) {
        return code;
    }
    for (size_t i = 0; i < query_count; i++) {
        if (queries[i].value.len > 0) {
            td_path_add_query(&out, queries[i].key, queries[i].value);
        }
    }
    code = td_buf_check(&out, "request path", err);
    if (code == TD_OK) {
        *ret = td_arena_copy_str(arena, td_buf_str(&out));
    }
    return code;
}

static int verb_write(struct td_arena *arena, const struct td_api_path *path,
                      const struct td_write_options *options, bool is_forced,
                      struct td_client_request *request, struct td_error *err)
{
    static const struct td_write_options none = {.is_dry_run = false};
    const struct td_write_options *given = options ? options : &none;
    const struct verb_query queries[] = {
        {TD_STR("fieldManager"), given->field_manager},
        {TD_STR("fieldValidation"), given->field_validation},
        {TD_STR("force"), is_forced ? TD_STR("true") : TD_STR_EMPTY},
        {TD_STR("dryRun"), given->is_dry_run ? TD_STR("All") : TD_STR_EMPTY},
    };
    return verb_path(arena, path, queries, TD_COUNT(queries), &request->path, err);
}

static int verb_done(int code, const struct td_client_request *request,
                     struct td_client_request *ret)
{
    if (code == TD_OK) {
        *ret = *request;
    }
    return code;
}

int td_verb_get(struct td_arena *arena, const struct td_api_path *path,
                struct td_client_request *ret, struct td_error *err)
{
    struct td_client_request request = {.method = TD_STR("GET"), .is_idempotent = true};
    return verb_done(verb_path(arena, path, NULL, 0, &request.path, err), &request, ret);
}

int td_verb_create(struct td_arena *arena, const struct td_api_path *path, td_str body,
                   const struct td_write_options *options, struct td_client_request *ret,
                   struct td_error *err)
{
    struct td_client_request request = {
        .method = TD_STR("POST"),
        .content_type = TD_STR("application/json"),
        .body = body,
    };
    return verb_done(verb_write(arena, path, options, false, &request, err), &request, ret);
}

int td_verb_update(struct td_arena *arena, const struct td_api_path *path, td_str body,
                   const struct td_write_options *options, struct td_client_request *ret,
                   struct td_error *err)
{
    struct td_client_request request = {
        .method = TD_STR("PUT"),
        .content_type = TD_STR("application/json"),
        .body = body,
    };
    return verb_done(verb_write(arena, path, options, false, &request, err), &request, ret);
}

static td_str verb_patch_type(enum td_patch_kind kind)
{
    switch (kind) {
    case TD_PATCH_JSON:
        return TD_STR("application/json-patch+json");
    case TD_PATCH_MERGE:
        return TD_STR("application/merge-patch+json");
    case TD_PATCH_STRATEGIC:
        break;
    }
    return TD_STR("application/strategic-merge-patch+json");
}

int td_verb_patch(struct td_arena *arena, const struct td_api_path *path, enum td_patch_kind kind,
                  td_str body, const struct td_write_options *options,
                  struct td_client_request *ret, struct td_error *err)
{
    struct td_client_request request = {
        .method = TD_STR("PATCH"),
        .content_type = verb_patch_type(kind),
        .body = body,
        .is_idempotent = kind != TD_PATCH_JSON,
    };
    return verb_done(verb_write(arena, path, options, false, &request, err), &request, ret);
}

int td_verb_apply(struct td_arena *arena, const struct td_api_path *path, td_str body,
                  bool is_forced, const struct td_write_options *options,
                  struct td_client_request *ret, struct td_error *err)
{
    if (!options || options->field_manager.len == 0) {
        return td_error_set(err, TD_INVALID, "server-side apply without a field manager");
    }
    struct td_client_request request = {
        .method = TD_STR("PATCH"),
        .content_type = TD_STR("application/apply-patch+yaml"), /* JSON is YAML */
        .body = body,
        .is_idempotent = true,
    };
    return verb_done(verb_write(arena, path, options, is_forced, &request, err), &request, ret);
}

static struct td_json *verb_delete_options(struct td_arena *arena, td_str api_version,
                                           const struct td_delete_options *options)
{
    struct td_json *object = td_json_new_object(arena);
    td_json_set_str(arena, object, TD_STR("apiVersion"), api_version);
    td_json_set_str(arena, object, TD_STR("kind"), TD_STR("DeleteOptions"));
    if (options->grace_period_seconds >= 0) {
        td_json_set_int64(arena, object, TD_STR("gracePeriodSeconds"),
                          options->grace_period_seconds);
    }
    td_json_set_text(arena, object, TD_STR("propagationPolicy"), options->propagation);
    if (options->uid.len > 0 || options->resource_version.len > 0) {
        struct td_json *only = td_json_ensure_object(arena, object, TD_STR("preconditions"));
        td_json_set_text(arena, only, TD_STR("uid"), options->uid);
        td_json_set_text(arena, only, TD_STR("resourceVersion"), options->resource_version);
    }
    if (options->is_dry_run) {
        struct td_json *all = td_json_new_array(arena);
        td_json_append(all, td_json_new_string(arena, TD_STR("All")));
        td_json_set(arena, object, TD_STR("dryRun"), all);
    }
    return object;
}

int td_verb_delete(struct td_arena *arena, const struct td_api_path *path,
                   const struct td_delete_options *options, struct td_client_request *ret,
                   struct td_error *err)
{
    struct td_client_request request = {
        .method = TD_STR("DELETE"),
        .content_type = TD_STR("application/json"),
        /* The second of two finds nothing, or by its preconditions another object. */
        .is_idempotent = options->uid.len > 0,
    };
    int code = verb_path(arena, path, NULL, 0, &request.path, err);
    request.body = td_json_line(arena, verb_delete_options(arena, TD_STR("v1"), options));
    return verb_done(code, &request, ret);
}

int td_verb_evict(struct td_arena *arena, td_str namespace, td_str pod,
                  const struct td_delete_options *options, struct td_client_request *ret,
                  struct td_error *err)
{
    const struct td_api_path path = {
        .version = TD_STR("v1"),
        .namespace = namespace,
        .plural = TD_STR("pods"),
        .name = pod,
        .subresource = TD_STR("eviction"),
    };
    struct td_client_request request = {
        .method = TD_STR("POST"),
        .content_type = TD_STR("application/json"),
    };
    struct td_json *body = td_json_new_object(arena);
    td_json_set_str(arena, body, TD_STR("apiVersion"), TD_STR("policy/v1"));
    td_json_set_str(arena, body, TD_STR("kind"), TD_STR("Eviction"));
    struct td_json *meta = td_json_ensure_object(arena, body, TD_STR("metadata"));
    td_json_set_str(arena, meta, TD_STR("name"), pod);
    td_json_set_str(arena, meta, TD_STR("namespace"), namespace);
    struct td_delete_options plain = *options;
    plain.propagation = TD_STR_EMPTY;
    td_json_set(arena, body, TD_STR("deleteOptions"),
                verb_delete_options(arena, TD_STR("policy/v1"), &plain));
    int code = verb_path(arena, &path, NULL, 0, &request.path, err);
    request.body = td_json_line(arena, body);
    return verb_done(code, &request, ret);
}

enum td_evict_result td_evict_result_of(const struct td_client_reply *reply)
{
    switch (reply->code) {
    case TD_OK:
        return TD_EVICT_DONE;
    case TD_NOT_FOUND:
    case TD_CONFLICT: /* the precondition on the uid does not hold */
        return TD_EVICT_GONE;
    case TD_BUSY:
        return td_str_equal(reply->reason, TD_STR("DisruptionBudget")) ? TD_EVICT_BUDGET
                                                                       : TD_EVICT_THROTTLED;
    default:
        break;
    }
    return TD_EVICT_FAILED;
}
