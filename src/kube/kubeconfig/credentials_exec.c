/*
 * Credential plugins as client-go runs them: the command gets an ExecCredential in
 * KUBERNETES_EXEC_INFO and prints one with a token or a certificate pair. Its answer is used until
 * it expires or the server refuses it. While a refused answer cannot be replaced, it stays: a
 * plugin that fails for a while must not stop what still works. What it prints is never shown,
 * since a broken answer may hold a whole token.
 */
#include "kube/kubeconfig/credentials_private.h"

#include "base/base64.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/os/process.h"
#include "base/pki/pki.h"
#include "base/timefmt.h"
#include "base/yaml/yaml.h"
#include "kube/kubeconfig/kubeconfig_private.h"

#define EXEC_INTERVAL_MIN (TD_EXEC_INTERVAL_MIN_MS * TD_MILLISECOND)

static struct td_json *exec_cluster(struct td_arena *arena,
                                    const struct td_credentials *credentials)
{
    const struct td_kube_config *config = credentials->config;
    struct td_json *cluster = td_json_new_object(arena);
    td_json_set_str(arena, cluster, TD_STR("server"), config->server);
    td_json_set_text(arena, cluster, TD_STR("tls-server-name"), config->tls_server_name);
    if (config->is_insecure) {
        td_json_set_bool(arena, cluster, TD_STR("insecure-skip-tls-verify"), true);
    }
    td_auto_buf authority = td_buf_capped(2 * TD_PEM_BYTES_MAX);
    td_base64_write(td_buf_str(&credentials->ca_pem), TD_BASE64_STANDARD, &authority);
    td_json_set_text(arena, cluster, TD_STR("certificate-authority-data"),
                     td_arena_copy_str(arena, td_buf_str(&authority)));
    td_json_set_text(arena, cluster, TD_STR("proxy-url"), config->proxy_url);
    if (config->is_compression_disabled) {
        td_json_set_bool(arena, cluster, TD_STR("disable-compression"), true);
    }
    if (config->exec->cluster_config) {
        struct td_json *extension = td_json_copy(arena, config->exec->cluster_config, false);
        td_json_sort(arena, extension); /* as Go writes it */
        td_json_set(arena, cluster, TD_STR("config"), extension);
    }
    return cluster;
}

/* "KUBERNETES_EXEC_INFO={...}" */
static int exec_write_info(struct td_arena *arena, const struct td_credentials *credentials,
                           bool is_interactive, td_str *ret, struct td_error *err)
{
    const struct td_exec_spec *spec = credentials->config->exec;
    struct td_json *info = td_json_new_object(arena);
    struct td_json *inner = td_json_new_object(arena);
    td_json_set_str(arena, info, TD_STR("kind"), TD_STR("ExecCredential"));
    td_json_set_str(arena, info, TD_STR("apiVersion"), spec->api_version);
    if (spec->provides_cluster_info) {
        td_json_set(arena, inner, TD_STR("cluster"), exec_cluster(arena, credentials));
    }
    td_json_set_bool(arena, inner, TD_STR("interactive"), is_interactive);
    td_json_set(arena, info, TD_STR("spec"), inner);
    td_auto_buf text = td_buf_capped(TD_EXEC_INFO_BYTES_MAX);
    (void)td_buf_append(&text, TD_STR("KUBERNETES_EXEC_INFO=")); /* checked below */
    td_json_write(info, &(struct td_json_format){.escape_html = true}, &text);
    int code = td_buf_check(&text, "what a credential plugin is told", err);
    if (code == TD_OK) {
        *ret = td_arena_copy_str(arena, td_buf_str(&text));
    }
    return code;
}

static bool exec_is_text(const struct td_json *status, td_str key)
{
    const struct td_json *value = td_json_get(status, key);
    return !value || td_json_is(value, TD_JSON_TYPE_NULL) || td_json_is(value, TD_JSON_TYPE_STRING);
}

struct exec_answer {
    td_str token;
    td_str certificate_pem;
    td_str key_pem;
    bool has_expiry;
    td_time expires;
};

static int exec_read_status(const struct td_json *status, struct exec_answer *ret,
                            struct td_error *err)
{
    struct exec_answer answer = {.token = td_json_text(status, "token"),
                                 .certificate_pem = td_json_text(status, "clientCertificateData"),
                                 .key_pem = td_json_text(status, "clientKeyData")};
    td_str expiry = td_json_text(status, "expirationTimestamp");
    struct td_instant instant;
    if (!exec_is_text(status, TD_STR("token")) || !td_kubeconfig_is_header(answer.token) ||
        answer.token.len > TD_TOKEN_FILE_BYTES_MAX) {
        return td_error_set(err, TD_DENIED, "status.token is not usable as a token");
    }
    if (answer.token.len + answer.certificate_pem.len + answer.key_pem.len == 0) {
        return td_error_set(err, TD_DENIED, "status has no token and no certificate pair");
    }
    if ((answer.certificate_pem.len == 0) != (answer.key_pem.len == 0)) {
        return td_error_set(err, TD_DENIED, "status has a certificate or a key, but not both");
    }
    if (!exec_is_text(status, TD_STR("expirationTimestamp")) ||
        (expiry.len > 0 && td_time_parse(expiry, &instant, NULL) < 0)) {
        return td_error_set(err, TD_DENIED, "status.expirationTimestamp is no time");
    }
    struct td_error cause = TD_ERROR_INIT;
    if (answer.certificate_pem.len > 0 &&
        td_pki_check_pair(answer.certificate_pem, answer.key_pem, &cause) < 0) {
        return td_error_set(err, TD_DENIED, "status: %s", cause.message);
    }
    answer.has_expiry = expiry.len > 0;
    answer.expires = answer.has_expiry ? td_time_from_instant(instant) : 0;
    *ret = answer;
    return TD_OK;
}

/* Texts of the answer lie in the arena or in the output. */
static int exec_read_answer(struct td_arena *arena, td_str output, td_str api_version,
                            struct exec_answer *ret, struct td_error *err)
{
    struct td_json *tree = NULL;
    struct td_yaml_documents documents = {.count = 0};
    td_str text = td_str_trim(output);
    if (td_json_parse(arena, text, NULL, &tree, NULL) < 0 &&
        td_yaml_parse(arena, text, &documents, NULL) < 0) {
        return td_error_set(err, TD_DENIED, "it printed neither JSON nor YAML");
    }
    tree = documents.count > 0 ? documents.items[0] : tree;
    td_str kind = td_json_text(tree, "kind");
    td_str version = td_json_text(tree, "apiVersion");
    if (!td_str_equal(kind, TD_STR("ExecCredential")) || !td_str_equal(version, api_version)) {
        return td_error_set(err, TD_DENIED, "it printed no ExecCredential of %.*s",
                            TD_STR_ARG(api_version));
    }
    const struct td_json *status = td_json_get(tree, TD_STR("status"));
    if (!td_json_is(status, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_DENIED, "its ExecCredential has no status");
    }
    return exec_read_status(status, ret, err);
}

/* How it ended, when that was not well. */
static int exec_check_end(const struct td_process_end *end, struct td_error *err)
{
    if (end->code == TD_TIMEOUT) {
        return td_error_set(err, TD_DENIED, "did not end within %d s", TD_EXEC_DEADLINE_MS / 1000);
    }
    if (end->code == TD_LIMIT) {
        return td_error_set(err, TD_DENIED, "printed more than %zu bytes",
                            TD_EXEC_OUTPUT_BYTES_MAX);
    }
    if (end->code < 0) {
        return td_error_set(err, TD_DENIED, "how it ended is not known");
    }
    if (end->exit_status != 0) {
        return td_error_set(err, TD_DENIED, "exited with status %d", end->exit_status);
    }
    return TD_OK;
}

/* "exec plugin 'aws' of user 'admin': ..." */
static void exec_keep_failure(struct td_credentials *credentials, struct td_error *failure)
{
    (void)td_error_wrap(failure, failure->code, "exec plugin '%.*s' of user '%.*s'",
                        TD_STR_ARG(credentials->config->exec->command),
                        TD_STR_ARG(credentials->config->user)); /* its code is kept */
    failure->code = TD_DENIED;
    (void)td_kubeconfig_one_line(failure, failure->code); /* the names are from a file */
    credentials->exec.failure = *failure;
}

static void exec_ends(const struct td_process_end *end, void *context)
{
    struct td_credentials *credentials = context;
    struct td_credentials_exec *exec = &credentials->exec;
    struct td_error failure = TD_ERROR_INIT;
    struct exec_answer answer = {.has_expiry = false};
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str api_version = credentials->config->exec->api_version;
    int code = exec_check_end(end, &failure);
    code = code < 0 ? code : exec_read_answer(&arena, end->output, api_version, &answer, &failure);
    if (code == TD_OK) {
        td_credentials_set_token(credentials, answer.token);
        td_credentials_set_pair(credentials, answer.certificate_pem, answer.key_pem);
        exec->has_answer = true;
        exec->is_rejected = false;
        exec->has_expiry = answer.has_expiry;
        exec->expires = answer.expires;
        exec->failure = TD_ERROR_INIT;
    } else {
        exec_keep_failure(credentials, &failure);
    }
    td_process_free(exec->process);
    exec->process = NULL;
    exec->has_run = true;
    exec->ended = td_clock_machine(td_loop_clock(credentials->loop));
    td_credentials_tell(credentials);
}

static const char **exec_arguments(struct td_arena *arena, const struct td_exec_spec *spec)
{
    const char **args = td_arena_array(arena, const char *, spec->arg_count + 1);
    for (size_t i = 0; i < spec->arg_count; i++) {
        args[i] = spec->args[i].ptr;
    }
    return args;
}

static const char **exec_environment(struct td_arena *arena, const struct td_exec_spec *spec,
                                     td_str info)
{
    const char **env = td_arena_array(arena, const char *, spec->env_count + 2);
    for (size_t i = 0; i < spec->env_count; i++) {
        env[i] = td_arena_format(arena, "%s=%s", spec->env[i].name.ptr, spec->env[i].value.ptr).ptr;
    }
    env[spec->env_count] = info.ptr;
    return env;
}

static int exec_start(struct td_credentials *credentials, struct td_error *err)
{
    const struct td_exec_spec *spec = credentials->config->exec;
    bool has_terminal = spec->interaction != TD_EXEC_NEVER && td_process_has_terminal();
    td_auto_arena arena;
    td_str info;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    if (spec->interaction == TD_EXEC_ALWAYS && !has_terminal) {
        return td_error_set(err, TD_DENIED,
                            "interactiveMode is Always, but standard input is no terminal");
    }
    int code = exec_write_info(&arena, credentials, has_terminal, &info, err);
    if (code < 0) {
        return code;
    }
    struct td_process_spec process = {.command = spec->command.ptr,
                                      .args = exec_arguments(&arena, spec),
                                      .env = exec_environment(&arena, spec, info),
                                      .passes_stdin = has_terminal,
                                      .output_bytes_max = TD_EXEC_OUTPUT_BYTES_MAX,
                                      .deadline = TD_EXEC_DEADLINE_MS * TD_MILLISECOND};
    struct td_error cause = TD_ERROR_INIT;
    code = td_process_start(credentials->loop, &process, exec_ends, credentials,
                            &credentials->exec.process, &cause);
    if (code < 0) {
        return td_error_set(err, TD_DENIED, "cannot be run: %s%s%s", cause.message,
                            spec->install_hint.len > 0 ? ": " : "", spec->install_hint.ptr);
    }
    return TD_OK;
}

/* An answer is good until it expires; one that was refused only while there is nothing better. */
static bool exec_has_usable(const struct td_credentials *credentials)
{
    const struct td_credentials_exec *exec = &credentials->exec;
    td_time now = td_clock_machine_wall(td_loop_clock(credentials->loop));
    return exec->has_answer && !(exec->has_expiry && now > exec->expires);
}

/* Just after a good run its answer counts, even one that was born too old. */
int td_credentials_exec_result(const struct td_credentials *credentials, struct td_error *err)
{
    const struct td_credentials_exec *exec = &credentials->exec;
    if (exec_has_usable(credentials) || (exec->has_answer && exec->failure.code == TD_OK)) {
        return TD_OK;
    }
    return td_error_set(err, exec->failure.code, "%s", exec->failure.message);
}

int td_credentials_exec_get(struct td_credentials *credentials, struct td_error *err)
{
    struct td_credentials_exec *exec = &credentials->exec;
    td_duration now = td_clock_machine(td_loop_clock(credentials->loop));
    if (exec->process) {
        return TD_BUSY;
    }
    if (exec_has_usable(credentials) && !exec->is_rejected) {
        return TD_OK;
    }
    if (exec->has_run && now - exec->ended < EXEC_INTERVAL_MIN) {
        return td_credentials_exec_result(credentials, err);
    }
    struct td_error failure = TD_ERROR_INIT;
    if (exec_start(credentials, &failure) == TD_OK) {
        return TD_BUSY;
    }
    exec_keep_failure(credentials, &failure);
    exec->has_run = true;
    exec->ended = now;
    return td_credentials_exec_result(credentials, err);
}
