/*
 * The kinds that are questions: who am I, who is this token's owner, may this user do this; and the
 * request for a service account's token. Each is answered with the question and a status; nothing
 * is stored.
 */
#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "local/api/api_private.h"
#include "local/api/write.h"
#include "local/auth/auth.h"
#include "local/store/store.h"

#define REVIEW_TOKEN_SECONDS 3600
#define REVIEW_TOKEN_SECONDS_MIN 600
#define REVIEW_TOKEN_SECONDS_MAX ((int64_t)1 << 32)

static struct td_json *review_user(struct td_arena *arena, const struct td_api_user *user)
{
    struct td_json *info = td_json_new_object(arena);
    td_json_set_str(arena, info, TD_STR("username"), user->name);
    td_json_set_text(arena, info, TD_STR("uid"), user->uid);
    if (user->group_count > 0) {
        td_json_set(arena, info, TD_STR("groups"),
                    td_json_new_strings(arena, user->groups, user->group_count));
    }
    return info;
}

/* The question comes back with its answer. */
static void review_reply(struct td_api_call *call, struct td_json *review, struct td_json *status)
{
    (void)td_json_ensure_object(&call->arena, review, TD_STR("metadata"));
    td_json_set(&call->arena, review, TD_STR("status"), status);
    td_call_reply_json(call, 201, review);
}

static void review_refuse_field(struct td_api_call *call, td_str name, const char *field,
                                const char *value, const char *detail)
{
    struct td_field_errors errors = {.arena = &call->arena};
    td_field_error_add(&errors, TD_FIELD_AT(TD_FIELD(NULL, "spec"), td_str_from(field)),
                       TD_FIELD_INVALID, td_str_from(value), td_str_from(detail));
    td_call_invalid(call, call->at.resource->kind, name, &errors);
}

static td_str review_get(const struct td_json *object, const char *key)
{
    return td_json_get_str(object, td_str_from(key), TD_STR_EMPTY);
}

/* ---- Access ---- */

static void review_access_of(const struct td_json *spec, struct td_auth_attributes *ret)
{
    const struct td_json *resource = td_json_get(spec, TD_STR("resourceAttributes"));
    const struct td_json *path = td_json_get(spec, TD_STR("nonResourceAttributes"));
    if (resource) {
        *ret = (struct td_auth_attributes){
            .verb = review_get(resource, "verb"),
            .group = review_get(resource, "group"),
            .resource = review_get(resource, "resource"),
            .subresource = review_get(resource, "subresource"),
            .ns = review_get(resource, "namespace"),
            .name = review_get(resource, "name"),
        };
    } else {
        *ret = (struct td_auth_attributes){.verb = review_get(path, "verb"),
                                           .path = review_get(path, "path")};
    }
}

static struct td_json *review_judge(struct td_api_call *call, const struct td_api_user *user,
                                    const struct td_json *spec)
{
    struct td_auth *auth = td_api_auth(call->api);
    struct td_auth_attributes access;
    review_access_of(spec, &access);
    td_str reason = TD_STR_EMPTY;
    bool is_allowed = !auth || td_auth_allows(auth, user, &access, &call->arena, &reason);
    struct td_json *status = td_json_new_object(&call->arena);
    td_json_set_bool(&call->arena, status, TD_STR("allowed"), is_allowed);
    td_json_set_text(&call->arena, status, TD_STR("reason"), reason);
    return status;
}

static void review_subject_of(struct td_api_call *call, const struct td_json *spec,
                              struct td_api_user *ret)
{
    const struct td_json *groups = td_json_get(spec, TD_STR("groups"));
    td_str *names = td_arena_array(&call->arena, td_str, td_json_item_count(groups));
    *ret = (struct td_api_user){
        .name = review_get(spec, "user"), .uid = review_get(spec, "uid"), .groups = names};
    for (const struct td_json *group = td_json_first_item(groups); group; group = group->next) {
        if (group->type == TD_JSON_TYPE_STRING) {
            names[ret->group_count++] = group->text;
        }
    }
}

/* Does a LocalSubjectAccessReview ask about its own namespace? Else it was answered. */
static bool review_is_local(struct td_api_call *call, const struct td_json *spec, bool has_path)
{
    td_str ns = review_get(td_json_get(spec, TD_STR("resourceAttributes")), "namespace");
    if (has_path) {
        review_refuse_field(call, TD_STR_EMPTY, "nonResourceAttributes", "null",
                            "disallowed on this kind of request");
        return false;
    }
    if (!td_str_equal(ns, call->path.ns)) {
        td_str quoted = td_arena_format(&call->arena, "\"%.*s\"", TD_STR_ARG(ns));
        review_refuse_field(call, TD_STR_EMPTY, "resourceAttributes.namespace", quoted.ptr,
                            "must match metadata.namespace");
        return false;
    }
    return true;
}

static void review_access(struct td_api_call *call, struct td_json *review)
{
    const struct td_json *spec = td_json_get(review, TD_STR("spec"));
    bool has_resource =
        td_json_is(td_json_get(spec, TD_STR("resourceAttributes")), TD_JSON_TYPE_OBJECT);
    bool has_path =
        td_json_is(td_json_get(spec, TD_STR("nonResourceAttributes")), TD_JSON_TYPE_OBJECT);
    struct td_api_user user = call->request.user;
    td_str kind = call->at.resource->kind;
    if (has_resource == has_path) {
        review_refuse_field(call, TD_STR_EMPTY,
                            has_path ? "nonResourceAttributes" : "resourceAttributes", "null",
                            has_path ? "cannot be specified in combination with resourceAttributes"
                                     : "exactly one of nonResourceAttributes or "
                                       "resourceAttributes must be specified");
        return;
    }
    if (!td_str_equal(kind, TD_STR("SelfSubjectAccessReview"))) {
        review_subject_of(call, spec, &user);
        if (user.name.len == 0 && user.group_count == 0) {
            review_refuse_field(call, TD_STR_EMPTY, "user", "\"\"",
                                "at least one of user or group must be specified");
            return;
        }
    }
    if (td_str_equal(kind, TD_STR("LocalSubjectAccessReview")) &&
        !review_is_local(call, spec, has_path)) {
        return;
    }
    review_reply(call, review, review_judge(call, &user, spec));
}

struct review_rules {
    struct td_arena *arena;
    struct td_json *resources;
    struct td_json *paths;
};

static void review_add(struct td_arena *arena, struct td_json *rule, const char *key,
                       const struct td_json *list)
{
    if (list) {
        td_json_set(arena, rule, td_str_from(key), td_json_copy(arena, list, true));
    }
}

static void review_add_rule(const struct td_auth_rule *rule, void *context)
{
    struct review_rules *rules = context;
    struct td_json *entry = td_json_new_object(rules->arena);
    review_add(rules->arena, entry, "verbs", rule->verbs);
    if (rule->resources) {
        review_add(rules->arena, entry, "apiGroups", rule->groups);
        review_add(rules->arena, entry, "resources", rule->resources);
        review_add(rules->arena, entry, "resourceNames", rule->names);
        td_json_append(rules->resources, entry);
    } else {
        review_add(rules->arena, entry, "nonResourceURLs", rule->paths);
        td_json_append(rules->paths, entry);
    }
}

static void review_list_rules(struct td_api_call *call, struct td_json *review)
{
    struct td_arena *arena = &call->arena;
    td_str ns = review_get(td_json_get(review, TD_STR("spec")), "namespace");
    if (ns.len == 0) {
        td_call_fail(call, 400, "BadRequest", "no namespace on request");
        return;
    }
    struct review_rules rules = {
        .arena = arena, .resources = td_json_new_array(arena), .paths = td_json_new_array(arena)};
    struct td_auth *auth = td_api_auth(call->api);
    if (auth) {
        td_auth_each_rule(auth, &call->request.user, ns, review_add_rule, &rules);
    }
    struct td_json *status = td_json_new_object(arena);
    td_json_set(arena, status, TD_STR("resourceRules"), rules.resources);
    td_json_set(arena, status, TD_STR("nonResourceRules"), rules.paths);
    td_json_set_bool(arena, status, TD_STR("incomplete"), false);
    review_reply(call, review, status);
}

/* ---- Identity ---- */

static void review_self(struct td_api_call *call, struct td_json *review)
{
    struct td_json *status = td_json_new_object(&call->arena);
    td_json_set(&call->arena, status, TD_STR("userInfo"),
                review_user(&call->arena, &call->request.user));
    review_reply(call, review, status);
}

static struct td_audiences review_audiences(struct td_arena *arena, const struct td_json *spec)
{
    const struct td_json *list = td_json_get(spec, TD_STR("audiences"));
    td_str *names = td_arena_array(arena, td_str, td_json_item_count(list));
    size_t count = 0;
    for (const struct td_json *a = td_json_first_item(list); a; a = a->next) {
        if (a->type == TD_JSON_TYPE_STRING) {
            names[count++] = a->text;
        }
    }
    return (struct td_audiences){.names = names, .count = count};
}

static void review_token(struct td_api_call *call, struct td_json *review)
{
    struct td_arena *arena = &call->arena;
    td_str token = review_get(td_json_get(review, TD_STR("spec")), "token");
    if (token.len == 0) {
        td_call_fail(call, 400, "BadRequest",
                     "token is required for TokenReview in authentication");
        return;
    }
    struct td_auth *auth = td_api_auth(call->api);
    struct td_audiences wanted = review_audiences(arena, td_json_get(review, TD_STR("spec")));
    struct td_audiences found;
    struct td_api_user user;
    struct td_error err = TD_ERROR_INIT;
    struct td_json *status = td_json_new_object(arena);
    if (!auth) {
        td_json_set_str(arena, status, TD_STR("error"),
                        TD_STR("the server has no token authenticator"));
    } else if (td_auth_token_user(auth, arena, token, &wanted, &user, &found, &err) == TD_OK) {
        td_json_set_bool(arena, status, TD_STR("authenticated"), true);
        td_json_set(arena, status, TD_STR("user"), review_user(arena, &user));
        td_json_set(arena, status, TD_STR("audiences"),
                    td_json_new_strings(arena, found.names, found.count));
    } else {
        td_json_set_str(arena, status, TD_STR("error"),
                        td_arena_copy_str(arena, td_str_from(err.message)));
    }
    review_reply(call, review, status);
}

/* The account of POST serviceaccounts/NAME/token; NULL when the call was answered. */
static const struct td_stored *review_account(struct td_api_call *call)
{
    const struct td_stored *account = td_store_get(
        td_api_store(call->api), TD_STR("serviceaccounts"), call->path.ns, call->path.name);
    if (!account) {
        td_call_not_found(call, call->path.name);
    }
    return account;
}

/* Is what a TokenRequest asks for possible? Else it was answered. */
static bool review_check_request(struct td_api_call *call, const struct td_json *request,
                                 int64_t seconds)
{
    const struct td_json *metadata = td_json_get(request, TD_STR("metadata"));
    td_str name = td_json_get_str(metadata, TD_STR("name"), call->path.name);
    td_str ns = td_json_get_str(metadata, TD_STR("namespace"), call->path.ns);
    const struct td_json *spec = td_json_get(request, TD_STR("spec"));
    if ((name.len > 0 && !td_str_equal(name, call->path.name)) ||
        (ns.len > 0 && !td_str_equal(ns, call->path.ns))) {
        td_call_fail(call, 400, "BadRequest",
                     "name and namespace must match the service account if specified");
        return false;
    }
    if (td_json_is(td_json_get(spec, TD_STR("boundObjectRef")), TD_JSON_TYPE_OBJECT)) {
        td_call_fail(call, 400, "BadRequest",
                     "the local cluster binds tokens to service accounts only");
        return false;
    }
    if (seconds < REVIEW_TOKEN_SECONDS_MIN || seconds > REVIEW_TOKEN_SECONDS_MAX) {
        td_str text = td_arena_format(&call->arena, "%lld", (long long)seconds);
        struct td_field_errors errors = {.arena = &call->arena};
        td_field_error_add(&errors, TD_FIELD(TD_FIELD(NULL, "spec"), "expirationSeconds"),
                           TD_FIELD_INVALID, text,
                           seconds < REVIEW_TOKEN_SECONDS_MIN
                               ? TD_STR("may not specify a duration less than 10 minutes")
                               : TD_STR("may not specify a duration larger than 2^32 seconds"));
        td_call_invalid_of(call, TD_STR("authentication.k8s.io"), TD_STR("TokenRequest"),
                           TD_STR_EMPTY, &errors);
        return false;
    }
    return true;
}

static void review_issue_token(struct td_api_call *call, struct td_json *request)
{
    struct td_arena *arena = &call->arena;
    const struct td_stored *account = review_account(call);
    struct td_json *spec = td_json_ensure_object(arena, request, TD_STR("spec"));
    int64_t seconds = td_json_get_int64(spec, TD_STR("expirationSeconds"), REVIEW_TOKEN_SECONDS);
    if (!account || !review_check_request(call, request, seconds)) {
        return;
    }
    static const td_str own = TD_STR_INIT(TD_AUTH_AUDIENCE);
    struct td_audiences audiences = review_audiences(arena, spec);
    audiences = audiences.count > 0 ? audiences : (struct td_audiences){.names = &own, .count = 1};
    struct td_instant expires = td_call_now(call);
    struct td_json *made = td_meta_time(arena, expires);
    /* The holder of a token lives in the machine's time; on a fast clock it would be gone soon. */
    const struct td_clock *clock = td_loop_clock(call->api->loop);
    expires.unix_seconds += td_clock_from_machine(clock, seconds * TD_SECOND) / TD_SECOND;
    const struct td_token_request ask = {
        .ns = account->ns,
        .name = account->name,
        .uid = account->uid,
        .audiences = audiences.names,
        .audience_count = audiences.count,
        .expires_unix_seconds = expires.unix_seconds,
    };
    td_auto_buf token = td_buf_capped(TD_TOKEN_TEXT_BYTES_MAX);
    struct td_error err = TD_ERROR_INIT;
    if (!td_api_auth(call->api) ||
        td_auth_issue_token(td_api_auth(call->api), &ask, &token, &err) != TD_OK) {
        td_call_fail(call, 400, "BadRequest", "cannot issue a token: %s", err.message);
        return;
    }
    struct td_json *metadata = td_json_ensure_object(arena, request, TD_STR("metadata"));
    td_json_set_str(arena, metadata, TD_STR("name"), td_arena_copy_str(arena, account->name));
    td_json_set_str(arena, metadata, TD_STR("namespace"), td_arena_copy_str(arena, account->ns));
    td_json_set_str(arena, metadata, TD_STR("uid"), td_arena_copy_str(arena, account->uid));
    td_json_set(arena, metadata, TD_STR("creationTimestamp"), made);
    td_json_set(arena, spec, TD_STR("audiences"),
                td_json_new_strings(arena, audiences.names, audiences.count));
    td_json_set_int64(arena, spec, TD_STR("expirationSeconds"), seconds);
    struct td_json *status = td_json_new_object(arena);
    td_json_set_str(arena, status, TD_STR("token"), td_arena_copy_str(arena, td_buf_str(&token)));
    td_json_set(arena, status, TD_STR("expirationTimestamp"), td_meta_time(arena, expires));
    review_reply(call, request, status);
}

void td_reviews_create(struct td_api_call *call)
{
    static const struct {
        td_str kind;
        void (*answer)(struct td_api_call *call, struct td_json *review);
    } reviews[] = {
        {TD_STR_INIT("SelfSubjectAccessReview"), review_access},
        {TD_STR_INIT("SubjectAccessReview"), review_access},
        {TD_STR_INIT("LocalSubjectAccessReview"), review_access},
        {TD_STR_INIT("SelfSubjectRulesReview"), review_list_rules},
        {TD_STR_INIT("SelfSubjectReview"), review_self},
        {TD_STR_INIT("TokenReview"), review_token},
    };
    bool is_token = call->path.subresource.len > 0;
    const struct td_resource *resource = call->at.resource;
    td_str version = is_token ? TD_STR("authentication.k8s.io/v1")
                              : resource->versions[call->at.version].api_version;
    td_str kind = is_token ? TD_STR("TokenRequest") : resource->kind;
    const struct td_body_want want = {.api_version = version,
                                      .kind = kind,
                                      .type = td_schema_find(version, kind),
                                      .is_checked = true};
    struct td_json *review;
    if (!td_body_decode(call, &want, &review)) {
        return;
    }
    td_json_set_str(&call->arena, review, TD_STR("kind"), kind);
    td_json_set_str(&call->arena, review, TD_STR("apiVersion"), version);
    if (is_token) {
        review_issue_token(call, review);
        return;
    }
    for (size_t i = 0; i < TD_COUNT(reviews); i++) {
        if (td_str_equal(reviews[i].kind, kind)) {
            reviews[i].answer(call, review);
            return;
        }
    }
    td_call_no_resource(call);
}
