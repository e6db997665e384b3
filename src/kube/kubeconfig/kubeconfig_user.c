/*
 * The user of a context. The order in which credentials win is client-go's: a plugin is asked only
 * when there is no token, password or certificate of one's own; a token file, once read, wins over
 * the token beside it. No credentials go to a server without TLS, but what is contradictory
 * is refused there too.
 */
#include "kube/kubeconfig/kubeconfig_private.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "base/pki/pki.h"

static struct td_kube_extra *user_extras(struct td_arena *arena, const struct td_json *map,
                                         size_t *ret_count)
{
    size_t count = td_json_member_count(map);
    struct td_kube_extra *extras = td_arena_array(arena, struct td_kube_extra, count);
    const struct td_json *item = td_json_first_member(map);
    for (size_t i = 0; i < count; i++, item = item->next) {
        extras[i].key = td_arena_copy_str(arena, item->key);
        extras[i].values = td_kubeconfig_texts(arena, item, &extras[i].value_count);
    }
    qsort(extras, count, sizeof(*extras), td_str_compare_items);
    *ret_count = count;
    return extras;
}

static bool user_are_headers(const td_str *texts, size_t count)
{
    bool are = true;
    for (size_t i = 0; i < count; i++) {
        are = are && td_kubeconfig_is_header(texts[i]);
    }
    return are;
}

static int user_set_impersonation(struct td_arena *arena, const struct td_kubeconfig_named *user,
                                  struct td_kube_config *config, struct td_error *err)
{
    struct td_kube_impersonation as = {.user = td_kubeconfig_text(arena, user, TD_STR("as")),
                                       .uid = td_kubeconfig_text(arena, user, TD_STR("as-uid"))};
    as.groups =
        td_kubeconfig_texts(arena, td_json_get(user->value, TD_STR("as-groups")), &as.group_count);
    as.extras =
        user_extras(arena, td_json_get(user->value, TD_STR("as-user-extra")), &as.extra_count);
    if (as.user.len == 0 && as.uid.len + as.group_count + as.extra_count > 0) {
        return td_kubeconfig_fail(user, "as", TD_INVALID, err,
                                  "is not set, but as-uid, as-groups or as-user-extra is");
    }
    bool are_headers = td_kubeconfig_is_header(as.user) && td_kubeconfig_is_header(as.uid) &&
                       user_are_headers(as.groups, as.group_count);
    for (size_t i = 0; i < as.extra_count; i++) {
        are_headers =
            are_headers && user_are_headers(as.extras[i].values, as.extras[i].value_count);
    }
    if (!are_headers) {
        return td_kubeconfig_fail(user, "as", TD_INVALID, err,
                                  "user, uid, groups or extras hold a control character");
    }
    config->impersonation = as;
    return TD_OK;
}

static int user_set_certificate(struct td_arena *arena, const struct td_kubeconfig_named *user,
                                struct td_kube_config *config, struct td_error *err)
{
    static const struct td_kubeconfig_source certificate_source = {
        .data_field = TD_STR_INIT("client-certificate-data"),
        .file_field = TD_STR_INIT("client-certificate")};
    static const struct td_kubeconfig_source key_source = {
        .data_field = TD_STR_INIT("client-key-data"), .file_field = TD_STR_INIT("client-key")};
    struct td_error cause = TD_ERROR_INIT;
    td_str certificate;
    td_str certificate_path;
    td_str key;
    td_str key_path;
    int code =
        td_kubeconfig_bytes(arena, user, &certificate_source, &certificate, &certificate_path, err);
    if (code < 0 || certificate.len + certificate_path.len == 0) {
        return code; /* a key alone is passed over */
    }
    code = td_kubeconfig_bytes(arena, user, &key_source, &key, &key_path, err);
    if (code < 0) {
        return code;
    }
    if (key.len + key_path.len == 0) {
        return td_kubeconfig_fail(user, "client-key", TD_INVALID, err,
                                  "neither it nor client-key-data is set, but the certificate is");
    }
    if (!config->is_tls) {
        return TD_OK;
    }
    if (td_pki_check_pair(certificate, key, &cause) < 0) {
        td_str field = certificate_path.len > 0 ? certificate_source.file_field
                                                : certificate_source.data_field;
        return td_kubeconfig_fail(user, field.ptr, TD_INVALID, err, "%s", cause.message);
    }
    bool are_files = certificate_path.len > 0 && key_path.len > 0;
    config->certificate_pem = certificate;
    config->key_pem = key;
    config->certificate_file = are_files ? certificate_path : TD_STR_EMPTY;
    config->key_file = are_files ? key_path : TD_STR_EMPTY;
    return TD_OK;
}

static int user_set_token(struct td_arena *arena, const struct td_kubeconfig_named *user,
                          struct td_kube_config *config, struct td_error *err)
{
    struct td_error cause = TD_ERROR_INIT;
    td_str token = td_kubeconfig_text(arena, user, TD_STR("token"));
    td_str path = td_kubeconfig_path(arena, user, TD_STR("tokenFile"));
    td_str content = TD_STR_EMPTY;
    if (token.len > TD_TOKEN_FILE_BYTES_MAX) {
        return td_kubeconfig_fail(user, "token", TD_LIMIT, err, "larger than %zu bytes",
                                  TD_TOKEN_FILE_BYTES_MAX);
    }
    if (!td_kubeconfig_is_header(token)) {
        return td_kubeconfig_fail(user, "token", TD_INVALID, err,
                                  "holds a line break or control character");
    }
    if (!config->is_tls) {
        return TD_OK;
    }
    if (path.len > 0 &&
        td_file_read(path.ptr, arena, TD_TOKEN_FILE_BYTES_MAX, &content, &cause) < 0 &&
        token.len == 0) {
        return td_kubeconfig_fail(user, "tokenFile", TD_INVALID, err, "%s", cause.message);
    }
    content = td_str_trim(content);
    if (!td_kubeconfig_is_header(content)) {
        return td_kubeconfig_fail(user, "tokenFile", TD_INVALID, err,
                                  "%s: holds a line break or control character", path.ptr);
    }
    config->token = content.len > 0 ? td_arena_copy_str(arena, content) : token;
    config->token_file = path;
    return TD_OK;
}

static int user_set_basic(struct td_arena *arena, const struct td_kubeconfig_named *user,
                          struct td_kube_config *config, struct td_error *err)
{
    td_str username = td_kubeconfig_text(arena, user, TD_STR("username"));
    td_str password = td_kubeconfig_text(arena, user, TD_STR("password"));
    td_str token = td_json_text(user->value, "token");
    td_str token_file = td_json_text(user->value, "tokenFile");
    bool has_basic = username.len + password.len > 0;
    if (has_basic && (token.len > 0 || (token_file.len > 0 && username.len > 0))) {
        return td_kubeconfig_fail(user, "username", TD_INVALID, err,
                                  "a token is set too, only one may be");
    }
    if (config->is_tls) {
        config->username = username;
        config->password = password;
    }
    return TD_OK;
}

int td_kubeconfig_use_user(struct td_arena *arena, const struct td_kubeconfig_named *user,
                           const struct td_kubeconfig_named *cluster, struct td_kube_config *config,
                           struct td_error *err)
{
    config->user = td_arena_copy_str(arena, user->name);
    const struct td_json *provider = td_json_get(user->value, TD_STR("auth-provider"));
    if (td_json_is(provider, TD_JSON_TYPE_OBJECT)) {
        return td_kubeconfig_fail(user, "auth-provider", TD_INVALID, err,
                                  "is not supported; use an exec plugin or a token");
    }
    int code = user_set_certificate(arena, user, config, err);
    if (code == TD_OK) {
        code = user_set_basic(arena, user, config, err);
    }
    if (code == TD_OK) {
        code = user_set_token(arena, user, config, err);
    }
    if (code == TD_OK) {
        code = user_set_impersonation(arena, user, config, err);
    }
    if (code == TD_OK &&
        td_json_is(td_json_get(user->value, TD_STR("exec")), TD_JSON_TYPE_OBJECT)) {
        code = td_kubeconfig_use_exec(arena, user, cluster, config, err);
    }
    return code;
}
