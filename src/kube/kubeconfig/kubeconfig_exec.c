/*
 * The exec member of a user: which program to run for credentials, with which arguments and
 * environment, and the hint shown when it is not installed. Nothing is run here (credentials_exec.c
 * does that).
 */
#include "kube/kubeconfig/kubeconfig_private.h"

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"

/* A control character would move the terminal's cursor, and a message is one line. */
static td_str exec_clean_hint(struct td_arena *arena, td_str hint)
{
    td_auto_buf clean = td_buf_capped(TD_ERROR_MESSAGE_BYTES);
    for (size_t i = 0; i < hint.len && !clean.is_full; i++) {
        unsigned char byte = (unsigned char)hint.ptr[i];
        if (byte >= '\t' && byte <= '\r') {
            (void)td_buf_append_char(&clean, ' ');
        } else if (byte < ' ' || byte == 0x7f) {
            (void)td_buf_append_format(&clean, "U+%04X", byte);
        } else if (byte == 0xc2 && i + 1 < hint.len && (unsigned char)hint.ptr[i + 1] < 0xa0) {
            i++;
            (void)td_buf_append_format(&clean, "U+%04X", (unsigned char)hint.ptr[i]);
        } else {
            (void)td_buf_append_char(&clean, (char)byte);
        }
    }
    return td_arena_copy_str(arena, td_str_trim(td_str_cut_utf8(td_buf_str(&clean), clean.len)));
}

static int exec_set_version(const struct td_kubeconfig_named *user, struct td_exec_spec *spec,
                            td_str mode, struct td_error *err)
{
    bool is_v1 = td_str_equal(spec->api_version, TD_STR("client.authentication.k8s.io/v1"));
    bool is_beta = td_str_equal(spec->api_version, TD_STR("client.authentication.k8s.io/v1beta1"));
    if (!is_v1 && !is_beta) {
        return td_kubeconfig_fail(user, "exec.apiVersion", TD_INVALID, err,
                                  "'%s': must be client.authentication.k8s.io/v1 or v1beta1",
                                  spec->api_version.ptr);
    }
    if (td_str_equal(mode, TD_STR("Never"))) {
        spec->interaction = TD_EXEC_NEVER;
    } else if (td_str_equal(mode, TD_STR("Always"))) {
        spec->interaction = TD_EXEC_ALWAYS;
    } else if (td_str_equal(mode, TD_STR("IfAvailable")) || (mode.len == 0 && is_beta)) {
        spec->interaction = TD_EXEC_IF_AVAILABLE;
    } else {
        return td_kubeconfig_fail(user, "exec.interactiveMode", TD_INVALID, err,
                                  "'%.*s': must be Never, IfAvailable or Always", TD_STR_ARG(mode));
    }
    return TD_OK;
}

static int exec_set_arguments(struct td_arena *arena, const struct td_kubeconfig_named *user,
                              const struct td_json *exec, struct td_exec_spec *spec,
                              struct td_error *err)
{
    const struct td_json *args = td_json_get(exec, TD_STR("args"));
    size_t count = td_json_item_count(args);
    if (count > TD_PROCESS_ARGS_MAX) {
        return td_kubeconfig_fail(user, "exec.args", TD_LIMIT, err, "more than %d",
                                  TD_PROCESS_ARGS_MAX);
    }
    spec->args = td_kubeconfig_texts(arena, args, &spec->arg_count);
    return TD_OK;
}

static int exec_set_env(struct td_arena *arena, const struct td_kubeconfig_named *user,
                        const struct td_json *exec, struct td_exec_spec *spec, struct td_error *err)
{
    const struct td_json *list = td_json_get(exec, TD_STR("env"));
    size_t count = td_json_item_count(list);
    if (count > TD_PROCESS_ARGS_MAX) {
        return td_kubeconfig_fail(user, "exec.env", TD_LIMIT, err, "more than %d",
                                  TD_PROCESS_ARGS_MAX);
    }
    struct td_exec_env *env = td_arena_array(arena, struct td_exec_env, count);
    const struct td_json *item = td_json_first_item(list);
    for (size_t i = 0; i < count; i++, item = item->next) {
        td_str name = td_json_text(item, "name");
        if (name.len == 0 || td_str_find(name, '=', 0) < name.len) {
            return td_kubeconfig_fail(user, "exec.env", TD_INVALID, err,
                                      "variable %zu has no name, or one with '='", i);
        }
        env[i].name = td_arena_copy_str(arena, name);
        env[i].value = td_arena_copy_str(arena, td_json_text(item, "value"));
    }
    spec->env = env;
    spec->env_count = count;
    return TD_OK;
}

/* As other paths a command with a slash starts at its file; one without is for PATH. */
static td_str exec_command(struct td_arena *arena, const struct td_kubeconfig_named *user,
                           const struct td_json *exec)
{
    td_str command = td_json_text(exec, "command");
    bool is_relative = td_str_find(command, '/', 0) < command.len && command.ptr[0] != '/';
    return td_arena_format(arena, "%s%.*s", is_relative ? user->file->folder.ptr : "",
                           TD_STR_ARG(command));
}

/* What a cluster's entry says to plugins, or NULL. */
static const struct td_json *exec_cluster_config(const struct td_kubeconfig_named *cluster)
{
    const struct td_json *list = td_json_get(cluster->value, TD_STR("extensions"));
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_str name = td_json_text(item, "name");
        if (td_str_equal(name, TD_STR("client.authentication.k8s.io/exec"))) {
            return td_json_get(item, TD_STR("extension"));
        }
    }
    return NULL;
}

int td_kubeconfig_use_exec(struct td_arena *arena, const struct td_kubeconfig_named *user,
                           const struct td_kubeconfig_named *cluster, struct td_kube_config *config,
                           struct td_error *err)
{
    const struct td_json *exec = td_json_get(user->value, TD_STR("exec"));
    struct td_exec_spec *spec = td_arena_new(arena, struct td_exec_spec);
    spec->command = exec_command(arena, user, exec);
    spec->api_version = td_arena_copy_str(arena, td_json_text(exec, "apiVersion"));
    spec->install_hint = exec_clean_hint(arena, td_json_text(exec, "installHint"));
    spec->provides_cluster_info = td_json_get_bool(exec, TD_STR("provideClusterInfo"), false);
    spec->cluster_config = exec_cluster_config(cluster);
    if (spec->command.len == 0) {
        return td_kubeconfig_fail(user, "exec.command", TD_INVALID, err, "is not set");
    }
    td_str mode = td_json_text(exec, "interactiveMode");
    int code = exec_set_version(user, spec, mode, err);
    if (code == TD_OK) {
        code = exec_set_arguments(arena, user, exec, spec, err);
    }
    if (code == TD_OK) {
        code = exec_set_env(arena, user, exec, spec, err);
    }
    bool has_other = config->token.len + config->token_file.len + config->username.len +
                         config->certificate_pem.len >
                     0;
    if (code == TD_OK && config->is_tls && !has_other) {
        config->exec = spec;
    }
    return code;
}
