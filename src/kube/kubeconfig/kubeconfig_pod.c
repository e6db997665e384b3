/*
 * Inside a pod: the service's address is in the environment, token, authorities and namespace are
 * files that the kubelet keeps fresh.
 */
#include "kube/kubeconfig/kubeconfig_private.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "base/pki/pki.h"
#include "kube/kubeconfig/proxy.h"

static td_str pod_env(const struct td_kube_config_input *input, const char *name)
{
    return td_str_from(input->env ? input->env(name, input->env_context) : NULL);
}

static td_str pod_path(struct td_arena *arena, const struct td_kube_config_input *input,
                       const char *name)
{
    const char *folder = input->service_account ? input->service_account : TD_SERVICE_ACCOUNT_DIR;
    return td_arena_format(arena, "%s/%s", folder, name);
}

/* TD_NOT_FOUND unless service and token are there. */
static int pod_token(struct td_arena *arena, const struct td_kube_config_input *input, td_str *ret,
                     struct td_error *err)
{
    if (pod_env(input, "KUBERNETES_SERVICE_HOST").len == 0 ||
        pod_env(input, "KUBERNETES_SERVICE_PORT").len == 0) {
        return td_error_set(err, TD_NOT_FOUND, "KUBERNETES_SERVICE_HOST and _PORT are not set");
    }
    td_str path = pod_path(arena, input, "token");
    return td_file_read(path.ptr, arena, TD_TOKEN_FILE_BYTES_MAX, ret, err);
}

td_str td_kubeconfig_pod_namespace(struct td_arena *arena, const struct td_kube_config_input *input)
{
    td_str token;
    td_str content = TD_STR_EMPTY;
    td_str from_env = pod_env(input, "POD_NAMESPACE");
    if (pod_token(arena, input, &token, NULL) < 0) {
        return TD_STR("default"); /* no pod, whatever its variables say */
    }
    if (from_env.len == 0) {
        td_str path = pod_path(arena, input, "namespace");
        /* A pod without this file is in the default namespace. */
        (void)td_file_read(path.ptr, arena, TD_TOKEN_FILE_BYTES_MAX, &content, NULL);
        from_env = td_str_trim(content);
    }
    return from_env.len > 0 ? td_arena_copy_str(arena, from_env) : TD_STR("default");
}

/* Without the file the system's authorities count. */
static int pod_authority(struct td_arena *arena, const struct td_kube_config_input *input,
                         struct td_kube_config *config, struct td_error *err)
{
    td_str path = pod_path(arena, input, "ca.crt");
    td_str pem;
    struct td_pki_validity validity;
    int code = td_file_read(path.ptr, arena, TD_PEM_BYTES_MAX, &pem, err);
    if (code == TD_NOT_FOUND) {
        return TD_OK;
    }
    if (code < 0) {
        return code;
    }
    if (td_pki_validity_of(pem, &validity, NULL) < 0) {
        return td_error_set(err, TD_INVALID, "%s: holds no certificate in PEM form", path.ptr);
    }
    config->ca_pem = pem;
    config->ca_file = path;
    return TD_OK;
}

int td_kubeconfig_in_cluster(struct td_arena *arena, const struct td_kube_config_input *input,
                             struct td_kube_config *ret, struct td_error *err)
{
    td_str token = TD_STR_EMPTY;
    int code = pod_token(arena, input, &token, err);
    if (code < 0) {
        return code == TD_DENIED ? code : TD_NOT_FOUND;
    }
    struct td_kube_config config = *ret;
    td_str host = pod_env(input, "KUBERNETES_SERVICE_HOST");
    td_str port = pod_env(input, "KUBERNETES_SERVICE_PORT");
    bool is_v6 = td_str_find(host, ':', 0) < host.len;
    td_str server = td_arena_format(arena, is_v6 ? "https://[%.*s]:%.*s" : "https://%.*s:%.*s",
                                    TD_STR_ARG(host), TD_STR_ARG(port));
    struct td_error cause = TD_ERROR_INIT;
    if (td_kubeconfig_set_server(arena, server, &config, &cause) < 0) {
        return td_error_set(err, TD_INVALID, "KUBERNETES_SERVICE_HOST and _PORT: %s",
                            cause.message);
    }
    code = pod_authority(arena, input, &config, err);
    if (code < 0) {
        return code;
    }
    struct td_proxy_target target = {
        .is_tls = config.is_tls, .host = config.host, .port = config.port};
    code = td_proxy_choose(arena, input->env, input->env_context, &target, &config.proxy_url, err);
    if (code < 0) {
        return code;
    }
    token = td_str_trim(token);
    if (!td_kubeconfig_is_header(token)) {
        return td_error_set(err, TD_INVALID, "%s: holds a line break or control character",
                            pod_path(arena, input, "token").ptr);
    }
    config.source = TD_STR("in-cluster");
    config.token = td_arena_copy_str(arena, token);
    config.token_file = pod_path(arena, input, "token");
    config.namespace = td_kubeconfig_pod_namespace(arena, input);
    *ret = config;
    return TD_OK;
}
