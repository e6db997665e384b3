/*
 * Service account tokens: JSON web tokens signed with HMAC-SHA-256, of the shape that Kubernetes
 * issues, so that clients which look inside find what they expect. Only tokens that we signed are
 * read, so the parts can be trusted once the signature holds.
 */
#include "base/base64.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/pki/hmac.h"
#include "base/pki/pki.h"
#include "base/timefmt.h"
#include "local/auth/auth_private.h"
#include "local/store/store.h"

#define AUTH_TOKEN_HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

static int64_t auth_now(const struct td_auth *auth)
{
    return td_time_to_instant(td_clock_wall(auth->clock)).unix_seconds;
}

static struct td_json *auth_claims(struct td_auth *auth, struct td_arena *arena,
                                   const struct td_token_request *request)
{
    struct td_json *claims = td_json_new_object(arena);
    struct td_json *audiences = td_json_new_array(arena);
    for (size_t i = 0; i < request->audience_count; i++) {
        td_json_append(audiences, td_json_new_string(arena, request->audiences[i]));
    }
    if (request->audience_count == 0) {
        td_json_append(audiences, td_json_new_string(arena, TD_STR(TD_AUTH_AUDIENCE)));
    }
    int64_t now = auth_now(auth);
    td_json_set(arena, claims, TD_STR("aud"), audiences);
    td_json_set_int64(arena, claims, TD_STR("exp"), request->expires_unix_seconds);
    td_json_set_int64(arena, claims, TD_STR("iat"), now);
    td_json_set_str(arena, claims, TD_STR("iss"), TD_STR(TD_AUTH_AUDIENCE));
    struct td_json *kube = td_json_ensure_object(arena, claims, TD_STR("kubernetes.io"));
    td_json_set_str(arena, kube, TD_STR("namespace"), request->ns);
    struct td_json *account = td_json_ensure_object(arena, kube, TD_STR("serviceaccount"));
    td_json_set_str(arena, account, TD_STR("name"), request->name);
    td_json_set_str(arena, account, TD_STR("uid"), request->uid);
    td_json_set_int64(arena, claims, TD_STR("nbf"), now);
    td_json_set_str(arena, claims, TD_STR("sub"),
                    auth_service_account_user(arena, request->ns, request->name));
    return claims;
}

int td_auth_issue_token(struct td_auth *auth, const struct td_token_request *request,
                        struct td_buf *out, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_auto_buf claims = td_buf_capped(TD_TOKEN_TEXT_BYTES_MAX);
    td_json_write(auth_claims(auth, &arena, request), &(struct td_json_format){0}, &claims);
    td_auto_buf token = td_buf_capped(TD_TOKEN_TEXT_BYTES_MAX);
    td_base64_write(TD_STR(AUTH_TOKEN_HEADER), TD_BASE64_URL, &token);
    (void)td_buf_append_char(&token, '.'); /* checked at the end */
    td_base64_write(td_buf_str(&claims), TD_BASE64_URL, &token);
    unsigned char digest[TD_HMAC_BYTES];
    td_hmac_sha256(auth->token_key, td_buf_str(&token), digest);
    (void)td_buf_append_char(&token, '.');
    td_base64_write((td_str){.ptr = (const char *)digest, .len = sizeof(digest)}, TD_BASE64_URL,
                    &token);
    int code = td_buf_check(&claims, "token", err);
    if (code == TD_OK) {
        code = td_buf_check(&token, "token", err);
    }
    return code == TD_OK ? td_buf_append(out, td_buf_str(&token)) : code;
}

/* The claims of a token that we signed. */
static int auth_verify(struct td_auth *auth, struct td_arena *arena, td_str token,
                       struct td_json **ret, struct td_error *err)
{
    size_t first = td_str_find(token, '.', 0);
    size_t second = first < token.len ? td_str_find(token, '.', first + 1) : token.len;
    if (token.len > TD_TOKEN_TEXT_BYTES_MAX || second == token.len) {
        return td_error_set(err, TD_INVALID, "the bearer token is unknown");
    }
    unsigned char digest[TD_HMAC_BYTES];
    td_hmac_sha256(auth->token_key, td_str_slice(token, 0, second), digest);
    td_str signature;
    td_str claims;
    if (!td_base64_read(arena, td_str_slice(token, second + 1, token.len), TD_BASE64_URL,
                        &signature) ||
        !td_secret_equal(signature, (td_str){.ptr = (const char *)digest, .len = sizeof(digest)}) ||
        !td_base64_read(arena, td_str_slice(token, first + 1, second), TD_BASE64_URL, &claims)) {
        return td_error_set(err, TD_INVALID, "the bearer token is unknown");
    }
    return td_json_parse(arena, claims, NULL, ret, err);
}

static int auth_token_account(struct td_auth *auth, struct td_arena *arena,
                              const struct td_json *claims, struct td_api_user *ret,
                              struct td_error *err)
{
    if (td_json_get_int64(claims, TD_STR("exp"), 0) <= auth_now(auth)) {
        return td_error_set(err, TD_INVALID, "the bearer token has expired");
    }
    const struct td_json *kube = td_json_get(claims, TD_STR("kubernetes.io"));
    const struct td_json *account = td_json_get(kube, TD_STR("serviceaccount"));
    td_str ns = td_json_text(kube, "namespace");
    td_str name = td_json_text(account, "name");
    td_str uid = td_json_text(account, "uid");
    const struct td_stored *stored = td_store_get(auth->store, TD_STR("serviceaccounts"), ns, name);
    if (!stored || !td_str_equal(stored->uid, uid)) {
        return td_error_set(err, TD_INVALID,
                            "the bearer token's service account %.*s/%.*s does not exist any more",
                            TD_STR_ARG(ns), TD_STR_ARG(name));
    }
    struct td_api_user user = {.name = auth_service_account_user(arena, ns, name), .uid = uid};
    auth_service_account_groups(arena, ns, &user);
    *ret = user;
    return TD_OK;
}

/* Those of the wanted audiences that are in the list; without a list it is the server's own. */
static int auth_match_audiences(struct td_arena *arena, const struct td_json *list,
                                const struct td_audiences *wanted, struct td_audiences *ret,
                                struct td_error *err)
{
    static const td_str own = TD_STR_INIT(TD_AUTH_AUDIENCE);
    const struct td_audiences server = {.names = &own, .count = 1};
    if (!wanted || wanted->count == 0) {
        wanted = &server;
    }
    td_str *names = td_arena_array(arena, td_str, wanted->count);
    size_t count = 0;
    for (size_t i = 0; i < wanted->count; i++) {
        if (list ? td_json_has_text(list, wanted->names[i]) : td_str_equal(wanted->names[i], own)) {
            names[count++] = wanted->names[i];
        }
    }
    if (count == 0) {
        return td_error_set(err, TD_INVALID, "the bearer token is for another audience");
    }
    *ret = (struct td_audiences){.names = names, .count = count};
    return TD_OK;
}

int td_auth_token_user(struct td_auth *auth, struct td_arena *arena, td_str token,
                       const struct td_audiences *wanted, struct td_api_user *ret,
                       struct td_audiences *ret_audiences, struct td_error *err)
{
    static const td_str masters = TD_STR_INIT("system:masters");
    struct td_api_user user = {
        .name = TD_STR("kubernetes-admin"), .groups = &masters, .group_count = 1};
    struct td_json *claims = NULL;
    int code = TD_OK;
    if (auth->admin_token.len == 0 || !td_secret_equal(token, auth->admin_token)) {
        code = auth_verify(auth, arena, token, &claims, err);
        code = code == TD_OK ? auth_token_account(auth, arena, claims, &user, err) : code;
    }
    struct td_audiences audiences;
    if (code == TD_OK) {
        code = auth_match_audiences(arena, td_json_get(claims, TD_STR("aud")), wanted, &audiences,
                                    err);
    }
    if (code != TD_OK) {
        return code;
    }
    *ret = user;
    if (ret_audiences) {
        *ret_audiences = audiences;
    }
    return TD_OK;
}
