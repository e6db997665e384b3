/*
 * Which cluster, and the loop that runs until a command has what it asked for: one look with every
 * informer (snapshot.h), or the client alone.
 */
#include "cli/connect.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/env.h"
#include "base/os/loop.h"
#include "cli/command.h"
#include "control/inspect/snapshot.h"
#include "kube/client/client.h"
#include "kube/client/transport_http.h"

void td_connect_init(struct td_connect *connect, const char *command)
{
    *connect = (struct td_connect){.command = command, .namespace = TD_STR_EMPTY};
    td_arena_init(&connect->arena, TD_TREE_ARENA_BYTES_MAX);
}

void td_connect_done(struct td_connect *connect)
{
    td_snapshot_free(connect->snapshot);
    td_client_free(connect->client);
    td_loop_free(connect->loop);
    td_arena_done(&connect->arena);
}

int td_connect_load(struct td_connect *connect)
{
    struct td_error err = TD_ERROR_INIT;
    const struct td_kube_config_input input = {
        .kubeconfig = connect->kubeconfig,
        .context = connect->context,
        .env = td_env_get,
        .home = td_env_get("HOME", NULL),
    };
    if (td_kube_config_load(&connect->arena, &input, &connect->config, &err) != TD_OK) {
        return td_command_fail("%s: %s", connect->command, err.message);
    }
    return TD_EXIT_DONE;
}

void td_connect_end(struct td_connect *connect, int status)
{
    connect->status = status;
    td_loop_stop(connect->loop);
}

int td_connect_fail(const struct td_connect *connect, int code, const struct td_error *err)
{
    bool is_away = code == TD_IO || code == TD_TIMEOUT;
    return is_away ? td_command_fail("%s: cannot reach the API server at %.*s (%.*s): %s; is it "
                                     "running, and the right one?",
                                     connect->command, TD_STR_ARG(connect->config.server),
                                     TD_STR_ARG(connect->config.source), err->message)
                   : td_command_fail("%s: %s", connect->command, err->message);
}

static void connect_seen(void *context, int code, const struct td_error *err)
{
    struct td_connect *connect = context;
    if (code != TD_OK) {
        td_connect_end(connect, td_connect_fail(connect, code, err));
        return;
    }
    connect->ready(connect->ready_context);
}

/* The loop, and a transport to the server. */
static int connect_begin(struct td_connect *connect, struct td_transport **ret,
                         struct td_error *err)
{
    connect->clock = td_clock_real();
    connect->status = TD_EXIT_FAILED;
    int code = td_loop_new(&connect->clock, &connect->loop, err);
    if (code == TD_OK) {
        const struct td_transport_http_options transport = {.loop = connect->loop,
                                                            .config = &connect->config};
        code = td_transport_http_new(&transport, ret, err);
    }
    return code;
}

int td_connect_call(struct td_connect *connect, void (*ready)(void *context), void *context)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_client_options client = {.burst = 1, .keeps_server_time = true};
    int code = connect_begin(connect, &client.transport, &err);
    if (code == TD_OK) {
        client.loop = connect->loop;
        connect->client = td_client_new(&client);
        connect->flow = td_client_flow_new(connect->client, td_str_from(connect->command));
        ready(context);
        code = td_loop_run(connect->loop, &err);
    }
    return code == TD_OK ? connect->status
                         : td_command_fail("%s: %s", connect->command, err.message);
}

int td_connect_run(struct td_connect *connect, void (*ready)(void *context), void *context)
{
    struct td_error err = TD_ERROR_INIT;
    struct td_snapshot_options options = {.loop = NULL};
    connect->ready = ready;
    connect->ready_context = context;
    int code = connect_begin(connect, &options.transport, &err);
    if (code == TD_OK) {
        options.loop = connect->loop;
        options.namespace = connect->namespace;
        options.feature_gates = td_str_from(connect->feature_gates);
        options.estimator = td_str_from(connect->estimator);
        memcpy(options.needs, connect->needs, sizeof(options.needs));
        code = td_snapshot_new(&options, &connect->snapshot, &err);
    }
    if (code == TD_OK) {
        td_snapshot_start(connect->snapshot, connect_seen, connect);
        code = td_loop_run(connect->loop, &err);
    }
    return code == TD_OK ? connect->status
                         : td_command_fail("%s: %s", connect->command, err.message);
}
