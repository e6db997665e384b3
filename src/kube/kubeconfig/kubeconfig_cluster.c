#include "kube/kubeconfig/kubeconfig_private.h"

#include "base/error.h"
#include "base/json/json.h"
#include "base/pki/pki.h"
#include "kube/kubeconfig/proxy.h"

static int cluster_set_server(struct td_arena *arena, const struct td_kubeconfig_named *cluster,
                              struct td_kube_config *config, struct td_error *err)
{
    struct td_error cause = TD_ERROR_INIT;
    td_str server = td_kubeconfig_text(arena, cluster, TD_STR("server"));
    if (server.len == 0) {
        return td_kubeconfig_fail(cluster, "server", TD_INVALID, err, "is not set");
    }
    if (td_kubeconfig_set_server(arena, server, config, &cause) < 0) {
        return td_kubeconfig_fail(cluster, "server", TD_INVALID, err, "%s", cause.message);
    }
    return TD_OK;
}

static int cluster_set_authority(struct td_arena *arena, const struct td_kubeconfig_named *cluster,
                                 struct td_kube_config *config, struct td_error *err)
{
    static const struct td_kubeconfig_source source = {
        .data_field = TD_STR_INIT("certificate-authority-data"),
        .file_field = TD_STR_INIT("certificate-authority")};
    struct td_error cause = TD_ERROR_INIT;
    struct td_pki_validity validity;
    td_str pem;
    td_str path;
    int code = td_kubeconfig_bytes(arena, cluster, &source, &pem, &path, err);
    if (code < 0) {
        return code;
    }
    bool is_insecure = td_json_get_bool(cluster->value, TD_STR("insecure-skip-tls-verify"), false);
    td_str field = path.len > 0 ? source.file_field : source.data_field;
    if (is_insecure && pem.len + path.len > 0) {
        return td_kubeconfig_fail(cluster, "insecure-skip-tls-verify", TD_INVALID, err,
                                  "true: %s is set too, only one may be", field.ptr);
    }
    if (!config->is_tls) {
        return TD_OK;
    }
    if (pem.len + path.len > 0 && td_pki_validity_of(pem, &validity, &cause) < 0) {
        return td_kubeconfig_fail(cluster, field.ptr, TD_INVALID, err,
                                  "%s%sholds no certificate in PEM form", path.ptr,
                                  path.len > 0 ? ": " : "");
    }
    config->ca_pem = pem;
    config->ca_file = path;
    config->is_insecure = is_insecure;
    return TD_OK;
}

static int cluster_set_proxy(struct td_arena *arena, const struct td_kubeconfig_named *cluster,
                             const struct td_kube_config_input *input,
                             struct td_kube_config *config, struct td_error *err)
{
    struct td_error cause = TD_ERROR_INIT;
    td_str url = td_kubeconfig_text(arena, cluster, TD_STR("proxy-url"));
    if (url.len > 0 && td_proxy_check(url, "proxy-url", &cause) < 0) {
        return td_error_set(err, TD_INVALID, "%.*s: clusters[%.*s].cluster.%s",
                            TD_STR_ARG(cluster->file->path), TD_STR_ARG(cluster->name),
                            cause.message);
    }
    struct td_proxy_target target = {
        .is_tls = config->is_tls, .host = config->host, .port = config->port};
    config->proxy_url = url;
    return url.len > 0 ? TD_OK
                       : td_proxy_choose(arena, input->env, input->env_context, &target,
                                         &config->proxy_url, err);
}

int td_kubeconfig_use_cluster(struct td_arena *arena, const struct td_kubeconfig_named *cluster,
                              const struct td_kube_config_input *input,
                              struct td_kube_config *config, struct td_error *err)
{
    int code = cluster_set_server(arena, cluster, config, err);
    if (code == TD_OK) {
        code = cluster_set_authority(arena, cluster, config, err);
    }
    if (code == TD_OK) {
        code = cluster_set_proxy(arena, cluster, input, config, err);
    }
    if (code < 0) {
        return code;
    }
    td_str server_name = td_kubeconfig_text(arena, cluster, TD_STR("tls-server-name"));
    if (!td_kubeconfig_is_header(server_name) ||
        td_str_find(server_name, ' ', 0) < server_name.len) {
        return td_kubeconfig_fail(cluster, "tls-server-name", TD_INVALID, err,
                                  "holds a space or control character");
    }
    config->source = td_arena_copy_str(arena, cluster->file->path);
    config->tls_server_name = config->is_tls ? server_name : TD_STR_EMPTY;
    config->is_compression_disabled =
        td_json_get_bool(cluster->value, TD_STR("disable-compression"), false);
    return TD_OK;
}
