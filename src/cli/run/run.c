/*
 * `tandem run`: reads flags, connects, runs the controllers (control/controllers.h) until a
 * signal, and drains them.
 */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/confine.h"
#include "base/os/env.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/os/watchdog.h"
#include "base/pki/pki.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/run/run_flags.h"
#include "control/controllers.h"
#include "control/shards/shards.h"
#include "kube/client/transport_http.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "web/web.h"

#define RUN_SIGNALS 2
#define RUN_DEBUG_FROM 5   /* of --v */
#define RUN_HOST_BYTES 256 /* of a machine's name */

static const char run_help[] =
    "run the controllers on a cluster, real or local\n\n"
    "  tandem run                              for example: in a pod, or with the\n"
    "                                          current kubeconfig context\n"
    "  tandem run --kubeconfig F --webhook-listen 127.0.0.1:8000    out of cluster\n"
    "  tandem run --controllers=recommender    recommendations only, no pod changes\n\n"
    "usage: tandem run [FLAGS]\n\n"
    "  --controllers LIST     controllers to run, of recommender, updater, admission,\n"
    "                         horizontal, hvpa (all)\n"
    "  --kubeconfig FILE      path to a kubeconfig ($KUBECONFIG, ~/.kube/config, or\n"
    "                         the pod's service account)\n"
    "  --leader-elect         elect a leader per controller; only leaders act\n"
    "  --shadow               only compute, beside upstream's VPA (docs/migrate.md)\n"
    "  --horizontal=builtin   reconcile HPAs of autoscaling/v2 too (off: only those\n"
    "                         of autoscaling.tandem.dev)\n"
    "  --address HOST:PORT    serve /metrics, /healthz, /livez, /readyz\n"
    "                         (127.0.0.1:8942)\n"
    "  --page-listen ADDR     serve the page, with TLS and login (docs/page.md)\n"
    "  --feature-gates LIST   Name=true,Name=false\n"
    "  --v N                  log verbosity, 0 to 10 (4)\n"
    "  --logging-format F     text or json (text)\n"
    "  -q, --quiet            log errors only\n"
    "  --flags                print all flags with their defaults\n\n"
    "SIGINT or SIGTERM shuts down: requests in flight finish, leases are released,\n"
    "webhooks registered by URL are deleted (not with --keep-webhooks). A second\n"
    "signal exits at once. Guide: docs/run.md\n";

struct run {
    struct td_arena arena; /* for the whole run */
    struct td_run_flags flags;
    struct td_kube_config config;
    struct td_clock clock;   /* the cluster's: it follows that of the API server */
    struct td_clock machine; /* of the log, as other programs' */
    struct td_log *log;
    struct td_loop *loop;
    struct td_controllers *controllers; /* of all shards: what is common to them */
    struct td_shards *shards;           /* NULL: one set of controllers for all namespaces */
    struct td_web *web;                 /* NULL: there is no page */
    bool is_stopping;
    bool is_cut; /* by a second signal */
    int page_code;
    struct td_error page_error;
    struct td_error refused; /* why it must not run here; code TD_OK: it may */
};

/* ---- Where it runs ---- */

static bool run_is_loopback(td_str host)
{
    return td_str_starts_with(host, TD_STR("127.")) || td_str_equal(host, TD_STR("::1")) ||
           td_str_equal(host, TD_STR("[::1]")) || td_str_equal(host, TD_STR("localhost"));
}

static td_str run_host_of(td_str address)
{
    size_t colon = address.len;
    while (colon > 0 && address.ptr[colon - 1] != ':') {
        colon--;
    }
    return td_str_slice(address, 0, colon > 0 ? colon - 1 : 0);
}

/* In a cluster the webhook is reached by its Service, outside by its address on this machine. */
static int run_place_webhook(struct run *run, struct td_error *err)
{
    struct td_webhook_options *webhook = &run->flags.controllers.webhook;
    td_str listen = run->flags.webhook_listen;
    bool is_in_cluster = td_str_equal(run->config.source, TD_STR("in-cluster"));
    if (!run->flags.controllers.has[TD_CONTROLLER_ADMISSION]) {
        return TD_OK;
    }
    if (listen.len > 0 && !run_is_loopback(run_host_of(listen))) {
        return td_error_set(
            err, TD_INVALID,
            "--webhook-listen: '%.*s': must be a loopback address, such as 127.0.0.1:8000",
            TD_STR_ARG(listen));
    }
    if (listen.len == 0 && !is_in_cluster && !run_is_loopback(run->config.host)) {
        return td_error_set(err, TD_INVALID,
                            "admission: the API server at '%.*s' cannot call a webhook on this "
                            "machine; run tandem in the cluster (tandem manifests), or leave out "
                            "admission and updater with --controllers",
                            TD_STR_ARG(run->config.host));
    }
    webhook->is_by_url = listen.len > 0 || !is_in_cluster;
    if (webhook->is_by_url) {
        webhook->listen =
            listen.len > 0 ? td_arena_copy_str(&run->arena, listen).ptr : "127.0.0.1:0";
        return TD_OK;
    }
    td_str *exempt = td_arena_array(&run->arena, td_str, webhook->exempt_count + 1);
    memcpy(exempt, webhook->exempt_namespaces, webhook->exempt_count * sizeof(*exempt));
    exempt[webhook->exempt_count++] = webhook->namespace; /* we must be able to come back */
    webhook->exempt_namespaces = exempt;
    webhook->listen =
        td_arena_format(&run->arena, "0.0.0.0:%lld", (long long)run->flags.webhook_port).ptr;
    return TD_OK;
}

/* As client-go's: the machine's name, and something that no other process has. */
static int run_name_identity(struct run *run, struct td_error *err)
{
    char host[RUN_HOST_BYTES] = "tandem";
    td_auto_buf token = td_buf_capped(TD_TOKEN_TEXT_BYTES_MAX);
    uint64_t seed = 0;
    int code = td_random_token(&token, err);
    if (code == TD_OK) {
        code = td_random_bytes(&seed, sizeof(seed), err);
    }
    if (code != TD_OK) {
        return code;
    }
    (void)gethostname(host, sizeof(host) - 1); /* the name is only shown */
    host[sizeof(host) - 1] = '\0';
    run->flags.controllers.seed = seed;
    struct td_leader_options *leader = &run->flags.controllers.leader;
    bool is_in_cluster = td_str_equal(run->config.source, TD_STR("in-cluster"));
    leader->is_alone = !is_in_cluster && !leader->is_on && !run->flags.has_shards;
    bool is_named = td_str_starts_with(td_str_from(host), TD_STR(TD_IDENTITY_OURS));
    leader->identity = td_arena_format(&run->arena, "%s%s_%.*s",
                                       is_in_cluster      ? is_named ? "" : TD_IDENTITY_OURS "-"
                                       : leader->is_alone ? TD_IDENTITY_ALONE
                                                          : TD_IDENTITY_OUTSIDE,
                                       host, 16, token.ptr);
    return TD_OK;
}

static int run_connect(struct run *run, struct td_error *err)
{
    const struct td_run_flags *flags = &run->flags;
    const struct td_kube_config_input input = {
        .kubeconfig = td_arena_copy_str(&run->arena, flags->kubeconfig).ptr,
        .context = td_arena_copy_str(&run->arena, flags->context).ptr,
        .env = td_env_get,
        .home = td_env_get("HOME", NULL),
    };
    int code = td_kube_config_load(&run->arena, &input, &run->config, err);
    if (code == TD_OK) {
        code = run_place_webhook(run, err);
    }
    return code == TD_OK ? run_name_identity(run, err) : code;
}

/* ---- The run ---- */

static void run_stopped(void *context)
{
    struct run *run = context;
    td_loop_stop(run->loop);
}

/* Orderly: run_stopped is called at the end. */
static void run_stop(struct run *run)
{
    run->is_stopping = true;
    if (run->shards) {
        td_shards_stop(run->shards, run_stopped, run);
    } else {
        td_controllers_stop(run->controllers, run_stopped, run);
    }
}

static int run_connect_more(void *context, struct td_transport **ret, struct td_error *err)
{
    struct run *run = context;
    const struct td_transport_http_options options = {.loop = run->loop, .config = &run->config};
    return td_transport_http_new(&options, ret, err);
}

static void run_refused(void *context, const struct td_error *why)
{
    struct run *run = context;
    run->refused = *why;
    run_stop(run);
}

static int run_make(struct run *run, struct td_error *err)
{
    struct td_controllers_options options = run->flags.controllers;
    const struct td_transport_http_options transport = {.loop = run->loop, .config = &run->config};
    int code = td_transport_http_new(&transport, &options.transport, err);
    if (code != TD_OK) {
        return code;
    }
    options.loop = run->loop;
    options.log = run->log;
    options.checks_access = true;
    options.watches_upstream = !run->flags.is_shadow;
    options.server = run->config.server;
    options.refused = run_refused;
    options.refused_context = run;
    if (!run->flags.has_shards) {
        return td_controllers_new(&options, &run->controllers, err);
    }
    const struct td_shards_options shards = {.controllers = options,
                                             .count = run->flags.shards,
                                             .connect = run_connect_more,
                                             .context = run};
    code = td_shards_new(&shards, &run->shards, err);
    run->controllers = code == TD_OK ? td_shards_common(run->shards) : NULL;
    return code;
}

/* The usual port may be another program's; one that was asked for may not. */
static int run_make_anywhere(struct run *run, struct td_error *err)
{
    td_str address = run->flags.address;
    struct td_error first = TD_ERROR_INIT;
    if (address.len > 0 && address.ptr[0] == ':') {
        address = td_arena_format(&run->arena, "0.0.0.0%.*s", TD_STR_ARG(address));
    }
    run->flags.controllers.address =
        address.len > 0 ? td_arena_copy_str(&run->arena, address).ptr : NULL;
    int code = run_make(run, &first);
    if (code == TD_IO && !run->flags.has_address) {
        run->flags.controllers.address = "127.0.0.1:0";
        return run_make(run, err);
    }
    if (code != TD_OK) {
        *err = first;
    }
    return code;
}

/* ---- The page ---- */

/* The first certificate starts it, each later one takes its place. */
static void run_page_tls(void *context, struct ssl_ctx_st *tls)
{
    struct run *run = context;
    td_str listen = run->flags.page_listen;
    if (run->web) {
        td_web_set_tls(run->web, tls);
        return;
    }
    if (listen.ptr[0] == ':') {
        listen = td_arena_format(&run->arena, "0.0.0.0%.*s", TD_STR_ARG(listen));
    }
    const struct td_web_options options = {
        .loop = run->loop,
        .log = run->log,
        .listen = td_arena_copy_str(&run->arena, listen).ptr,
        .tls = tls,
        .title = run->config.server,
        .asks_server = true,
        .feature_gates = run->flags.gates_text,
        .selector_gate = run->flags.controllers.gates.heterogeneous_workloads,
        .connect = run_connect_more,
        .context = run,
    };
    run->page_code = td_web_new(&options, &run->web, &run->page_error);
}

static int run_make_page(struct run *run, struct td_error *err)
{
    struct td_webhook *webhook = td_controllers_webhook(run->controllers);
    if (run->flags.page_listen.len == 0) {
        return TD_OK;
    }
    if (!webhook) {
        return td_error_set(err, TD_INVALID,
                            "--page-listen: '%.*s': needs the certificate of the webhook; run "
                            "admission too (--controllers)",
                            TD_STR_ARG(run->flags.page_listen));
    }
    td_webhook_follow_tls(webhook, run_page_tls, run);
    *err = run->page_error;
    return run->page_code == TD_OK ? TD_OK : td_error_wrap(err, run->page_code, "--page-listen");
}

static void run_greet(const struct run *run)
{
    td_str server = run->config.server;
    struct td_webhook *webhook = td_controllers_webhook(run->controllers);
    td_log_line(run->log, TD_LOG_INFO, "tandem " TANDEM_VERSION " runs", TD_LOG_S("server", server),
                TD_LOG_S("config", run->config.source),
                TD_LOG_S("identity", run->flags.controllers.leader.identity),
                TD_LOG_I("metrics_port", td_controllers_port(run->controllers)),
                TD_LOG_I("page_port", run->web ? td_web_port(run->web) : 0),
                TD_LOG_S("webhook", webhook ? td_webhook_url(webhook) : TD_STR("none")));
}

static void run_signalled(evutil_socket_t number, short what, void *context)
{
    struct run *run = context;
    (void)number;
    (void)what;
    if (run->is_stopping) {
        run->is_cut = true;
        td_loop_stop(run->loop);
        return;
    }
    td_log_write(run->log, TD_LOG_INFO, "shutting down; a second signal exits at once", NULL);
    run_stop(run);
}

/* All that it needs is open by now, but for what is read again. A credential plugin is a program of
 * its own that would be confined with us. */
static void run_confine(const struct run *run)
{
    const struct td_kube_config *config = &run->config;
    const td_str files[] = {config->ca_file, config->certificate_file, config->key_file,
                            config->token_file};
    const struct td_confine_options options = {.files = files,
                                               .file_count = sizeof(files) / sizeof(files[0])};
    struct td_confined confined;
    struct td_error err = TD_ERROR_INIT;
    if (config->exec) {
        td_log_write(run->log, TD_LOG_INFO, "not confined: the kubeconfig runs a credential plugin",
                     NULL);
        return;
    }
    if (td_confine(&options, &confined, &err) != TD_OK) {
        td_log_line(run->log, TD_LOG_WARN, "cannot confine the process",
                    TD_LOG_S("reason", td_str_from(err.message)));
    }
    td_log_line(run->log, TD_LOG_DEBUG, "confined",
                TD_LOG_I("landlock_version", confined.landlock_version),
                TD_LOG_S("seccomp", confined.has_seccomp ? TD_STR("on") : TD_STR("off")));
}

static int run_wait(struct run *run, struct td_error *err)
{
    static const int numbers[RUN_SIGNALS] = {SIGINT, SIGTERM};
    struct event *events[RUN_SIGNALS] = {NULL};
    int code = TD_OK;
    for (size_t i = 0; i < RUN_SIGNALS && code == TD_OK; i++) {
        events[i] = evsignal_new(td_loop_base(run->loop), numbers[i], run_signalled, run);
        if (!events[i] || evsignal_add(events[i], NULL) != 0) {
            code = td_error_set(err, TD_IO, "cannot wait for signals");
        }
    }
    if (code == TD_OK) {
        code = td_watchdog_start(run->loop, TD_WATCHDOG_S * TD_SECOND, err);
    }
    if (code == TD_OK) {
        run_greet(run);
        run_confine(run);
        if (run->shards) {
            td_shards_start(run->shards);
        } else {
            td_controllers_start(run->controllers);
        }
        code = td_loop_run(run->loop, err);
        td_watchdog_stop();
    }
    for (size_t i = 0; i < RUN_SIGNALS; i++) {
        if (events[i]) {
            event_free(events[i]);
        }
    }
    return code;
}

static enum td_log_level run_log_level(const struct td_run_flags *flags)
{
    if (flags->is_quiet) {
        return TD_LOG_ERROR;
    }
    return flags->verbosity == 0               ? TD_LOG_WARN
           : flags->verbosity < RUN_DEBUG_FROM ? TD_LOG_INFO
                                               : TD_LOG_DEBUG;
}

static int run_do(struct run *run)
{
    struct td_error err = TD_ERROR_INIT;
    run->clock = td_clock_real();
    run->machine = td_clock_real();
    run->log = td_log_new(
        &(struct td_log_options){.stream = stderr,
                                 .clock = &run->machine,
                                 .level = run_log_level(&run->flags),
                                 .format = run->flags.is_log_json ? TD_LOG_JSON : TD_LOG_TEXT});
    int code = run_connect(run, &err);
    code = code == TD_OK ? td_loop_new(&run->clock, &run->loop, &err) : code;
    code = code == TD_OK ? run_make_anywhere(run, &err) : code;
    code = code == TD_OK ? run_make_page(run, &err) : code;
    code = code == TD_OK ? run_wait(run, &err) : code;
    td_web_free(run->web);
    if (run->shards) {
        td_shards_free(run->shards);
    } else {
        td_controllers_free(run->controllers);
    }
    td_loop_free(run->loop);
    td_log_free(run->log);
    if (code != TD_OK || run->refused.code != TD_OK) {
        return td_command_fail("run: %s", code != TD_OK ? err.message : run->refused.message);
    }
    return run->is_cut ? TD_EXIT_PROBLEMS : TD_EXIT_DONE;
}

static int run_print_flags(void)
{
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    td_run_flags_write(&text);
    (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
    return TD_EXIT_DONE;
}

/* Asked about itself: what its own table says beside that of the flags. */
static int run_answer(int argc, char **argv)
{
    static const struct td_option rows[] = {
        {"quiet", 'q', false, offsetof(struct run, flags.is_quiet), td_option_take_flag},
        {"flags", 0, false, offsetof(struct run, flags.wants_flags), td_option_take_flag},
    };
    const struct td_options options = {"run", run_help, rows, TD_COUNT(rows)};
    return td_options_parse(&options, NULL, argc, argv);
}

int td_command_run(int argc, char **argv)
{
    struct run run = {.is_stopping = false};
    struct td_error err = TD_ERROR_INIT;
    int status;
    if (td_options_is_question(argc, argv)) {
        return run_answer(argc, argv);
    }
    td_arena_init(&run.arena, TD_TREE_ARENA_BYTES_MAX);
    if (td_run_flags_parse(&run.arena, argc - 1, argv + 1, td_env_get, &run.flags, &err) != TD_OK) {
        status = td_command_fail("run: %s", err.message);
    } else if (run.flags.wants_help) {
        (void)fputs(run_help, stdout); /* main looks at the stream's state */
        status = TD_EXIT_DONE;
    } else if (run.flags.wants_flags) {
        status = run_print_flags();
    } else {
        status = run_do(&run);
    }
    td_arena_done(&run.arena);
    return status;
}
