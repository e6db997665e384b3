/*
 * A kubeconfig of any bytes: it is used, with every text ended by a NUL, or refused in one line.
 */
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "kube/kubeconfig/kubeconfig.h"

#define ARENA_BYTES ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(td_str text)
{
    td_assert(text.ptr);
    td_assert(strlen(text.ptr) == text.len);
}

static void check_exec(const struct td_exec_spec *exec)
{
    check_text(exec->command);
    td_assert(exec->command.len > 0);
    for (size_t i = 0; i < exec->arg_count; i++) {
        check_text(exec->args[i]);
    }
    for (size_t i = 0; i < exec->env_count; i++) {
        check_text(exec->env[i].name);
        check_text(exec->env[i].value);
    }
    check_text(exec->install_hint);
}

static void check_config(const struct td_kube_config *config)
{
    const td_str texts[] = {
        config->source,     config->context,          config->user,     config->server,
        config->host,       config->path_prefix,      config->ca_file,  config->tls_server_name,
        config->proxy_url,  config->certificate_file, config->key_file, config->token,
        config->token_file, config->username,         config->password, config->namespace,
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        check_text(texts[i]);
    }
    td_assert(config->port > 0);
    td_assert(config->host.len > 0);
    td_assert(!config->is_insecure || config->ca_pem.len == 0);
    td_assert((config->certificate_pem.len > 0) == (config->key_pem.len > 0));
    bool has_credentials = config->token.len + config->username.len + config->password.len > 0 ||
                           config->certificate_pem.len > 0 || config->exec;
    td_assert(config->is_tls || !has_credentials);
    if (config->exec) {
        check_exec(config->exec);
    }
}

/* Written again with the same server and token it means the same. */
static void check_written(struct td_arena *arena, const struct td_kube_config *config,
                          const struct td_kube_config_input *input)
{
    td_auto_buf text;
    struct td_kube_config again;
    struct td_kubeconfig_entry entry = {.name = TD_STR("again"),
                                        .server = config->server,
                                        .token = config->token,
                                        .namespace = config->namespace};
    td_buf_init(&text, (size_t)32 << 20);
    td_kubeconfig_write(&entry, &text);
    int code = td_kube_config_parse(arena, TD_STR("again"), td_buf_str(&text), input, &again, NULL);
    td_assert(code == TD_OK || code == TD_LIMIT);
    if (code == TD_OK) {
        td_assert(td_str_equal(again.server, config->server));
        td_assert(td_str_equal(again.token, config->token));
        td_assert(td_str_equal(again.namespace, config->namespace));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_auto_arena arena;
    struct td_error err = TD_ERROR_INIT;
    struct td_kube_config config;
    struct td_kube_config_input input = {.env = NULL};
    td_str text = {.ptr = (const char *)data, .len = size};
    td_arena_init(&arena, ARENA_BYTES);
    if (memmem(data, size, "/dev", 4) || memmem(data, size, "/proc", 5)) {
        return 0; /* files that never end or wait for a person */
    }
    int code = td_kube_config_parse(&arena, TD_STR("config"), text, &input, &config, &err);
    if (code < 0) {
        td_assert(err.code == code);
        for (const char *at = err.message; *at; at++) {
            td_assert((unsigned char)*at >= ' ');
        }
        return 0;
    }
    check_config(&config);
    check_written(&arena, &config, &input);
    return 0;
}
