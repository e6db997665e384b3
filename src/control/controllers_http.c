/*
 * What a process says of itself: metrics, and whether it lives and is ready. Gauges of shared parts
 * (client, caches, leases, the process) are read when /metrics is asked for.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/http/http_server.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/os/usage.h"
#include "base/timefmt.h"
#include "control/controllers_private.h"
#include "control/informers/informers.h"
#include "control/informers/informers_private.h"
#include "control/upstream.h"
#include "kube/bearer.h"
#include "kube/client/client.h"
#include "kube/client/events.h"

#define HTTP_FRESH (2 * TD_MINUTE + 30 * TD_SECOND) /* a quiet watch is confirmed each minute */
#define HTTP_METRICS_PATH "/metrics"
#define HTTP_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define HTTP_TEXT_TYPE "text/plain; charset=utf-8"

/* ---- Metrics ---- */

/* A series of the family without labels, or with one. */
static struct td_metric_series *http_series(struct td_controllers *all,
                                            const struct td_metric_declaration *declaration,
                                            td_str label)
{
    const td_str values[] = {label};
    return td_metric_series(td_metric_declare(all->registry, declaration), values);
}

static void http_set(struct td_controllers *all, const struct td_metric_declaration *declaration,
                     td_str label, double value)
{
    struct td_metric_series *series = http_series(all, declaration, label);
    if (declaration->kind == TD_METRIC_COUNTER) {
        td_metric_add(series, value - td_metric_value(series));
    } else {
        td_metric_set(series, value);
    }
}

static void http_metrics_process(struct td_controllers *all)
{
    static const struct td_metric_declaration rows[] = {
        {"process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
         .kind = TD_METRIC_COUNTER},
        {"process_resident_memory_bytes", "Resident memory size in bytes.",
         .kind = TD_METRIC_GAUGE},
        {"process_virtual_memory_bytes", "Virtual memory size in bytes.", .kind = TD_METRIC_GAUGE},
        {"process_open_fds", "Number of open file descriptors.", .kind = TD_METRIC_GAUGE},
        {"process_max_fds", "Maximum number of open file descriptors.", .kind = TD_METRIC_GAUGE},
    };
    struct td_usage usage = td_usage_read();
    http_set(all, &rows[0], TD_STR_EMPTY, usage.cpu_seconds);
    http_set(all, &rows[1], TD_STR_EMPTY, (double)usage.resident_bytes);
    http_set(all, &rows[2], TD_STR_EMPTY, (double)usage.virtual_bytes);
    http_set(all, &rows[3], TD_STR_EMPTY, (double)usage.open_files);
    http_set(all, &rows[4], TD_STR_EMPTY, (double)usage.files_max);
}

static void http_metrics_client(struct td_controllers *all)
{
    static const struct td_metric_declaration rows[] = {
        {"tandem_client_calls_total", "Requests sent to the API server.",
         .kind = TD_METRIC_COUNTER},
        {"tandem_client_retries_total", "Requests to the API server that were retried.",
         .kind = TD_METRIC_COUNTER},
        {"tandem_client_failures_total",
         "Requests to the API server that failed after all retries.", .kind = TD_METRIC_COUNTER},
        {"tandem_client_wait_seconds_total",
         "Time that requests waited for the client-side rate limit.", .kind = TD_METRIC_COUNTER},
        {"tandem_access_missing", "Permissions missing at the start, by SelfSubjectAccessReview.",
         .kind = TD_METRIC_GAUGE},
    };
    struct td_client_counts counts = td_client_counts(all->client);
    http_set(all, &rows[0], TD_STR_EMPTY, (double)counts.calls);
    http_set(all, &rows[1], TD_STR_EMPTY, (double)counts.retries);
    http_set(all, &rows[2], TD_STR_EMPTY, (double)counts.failures);
    http_set(all, &rows[3], TD_STR_EMPTY, (double)counts.waited_ns / 1e9);
    if (!all->access) { /* the check is under way */
        http_set(all, &rows[4], TD_STR_EMPTY, (double)all->access_missing);
    }
}

static void http_metrics_caches(struct td_controllers *all)
{
    static const struct td_metric_declaration rows[] = {
        {"tandem_cache_objects", "Objects in the informer's cache.", .kind = TD_METRIC_GAUGE,
         .labels = {"resource"}},
        {"tandem_cache_bytes", "Memory of the objects in the informer's cache.",
         .kind = TD_METRIC_GAUGE, .labels = {"resource"}},
        {"tandem_cache_age_seconds",
         "Time since the API server last confirmed the informer's cache; -1: never.",
         .kind = TD_METRIC_GAUGE, .labels = {"resource"}},
        {"tandem_cache_failures_total", "Failed lists and watches of the informer.",
         .kind = TD_METRIC_COUNTER, .labels = {"resource"}},
        {"tandem_cache_foreign_bytes_total",
         "Bytes of objects of other shards, which the API server could not leave out.",
         .kind = TD_METRIC_COUNTER, .labels = {"resource"}},
        {"tandem_cache_filtered", "1 if the API server sends the shard's objects only, else 0.",
         .kind = TD_METRIC_GAUGE, .labels = {"resource"}},
    };
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        const struct td_cache *cache =
            td_informers_cache(all->informers, (enum td_informer_kind)kind);
        if (!cache) {
            continue;
        }
        char resource[128];
        const struct td_informer_row *row = &td_informer_rows[kind];
        (void)snprintf(resource, sizeof(resource), "%s%s%s", row->plural, *row->group ? "." : "",
                       row->group); /* names of ours, all shorter */
        td_str label = td_str_from(resource);
        td_duration age = td_cache_age(cache);
        struct td_cache_counts counts = td_cache_counts(cache);
        http_set(all, &rows[0], label, (double)td_cache_count(cache));
        http_set(all, &rows[1], label, (double)counts.bytes);
        http_set(all, &rows[2], label, age == INT64_MAX ? -1 : (double)age / (double)TD_SECOND);
        http_set(all, &rows[3], label, (double)counts.failures);
        if (all->options.shard && kind != TD_INFORMER_NODES) {
            http_set(all, &rows[4], label, (double)counts.foreign_bytes);
            http_set(all, &rows[5], label, counts.is_filtered);
        }
    }
}

static void http_metrics_controllers(struct td_controllers *all)
{
    static const struct td_metric_declaration rows[] = {
        {"leader_election_master_status", "1 if this process is the leader for the lease, else 0.",
         .kind = TD_METRIC_GAUGE, .labels = {"name"}},
        {"tandem_events_written_total", "Events sent to the API server.", .kind = TD_METRIC_COUNTER,
         .labels = {"controller"}},
        {"tandem_events_lost_total",
         "Events that the API server refused or that a full queue dropped.",
         .kind = TD_METRIC_COUNTER, .labels = {"controller"}},
        {"tandem_held_by_upstream",
         "1 while the controller holds because upstream's program of the same work is alive.",
         .kind = TD_METRIC_GAUGE, .labels = {"controller"}},
    };
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        const struct controllers_one *one = &all->ones[kind];
        td_str name = td_str_from(td_controller_name(one->kind));
        if (one->lease) {
            http_set(all, &rows[0], one->lease_name, one->state == CONTROLLERS_RUNNING);
        }
        if (all->options.has[kind] && td_controller_upstream_lease(one->kind)) {
            http_set(all, &rows[3], name, td_upstream_is_alive(all->upstream, one->kind));
        }
        if (one->events) {
            struct td_events_counts counts = td_events_counts(one->events);
            http_set(all, &rows[1], name, (double)counts.written);
            http_set(all, &rows[2], name, (double)(counts.failed + counts.dropped));
        }
    }
}

const struct td_metric_registry *td_controllers_metrics(struct td_controllers *controllers)
{
    if (!controllers->options.shard) {
        http_metrics_process(controllers);
    }
    http_metrics_client(controllers);
    http_metrics_caches(controllers);
    http_metrics_controllers(controllers);
    return controllers->registry;
}

void td_controllers_write_metrics(struct td_controllers *controllers, struct td_buf *out)
{
    td_metric_registry_write(td_controllers_metrics(controllers), out);
}

/* ---- Health ---- */

static bool http_is_one_ready(const struct controllers_one *one, struct td_buf *out)
{
    if (one->state == CONTROLLERS_WAITING && !one->has_leader) {
        (void)td_buf_append_format(out, "%s: no leader elected yet\n",
                                   td_controller_name(one->kind));
        return false;
    }
    if (!td_upstream_allows(one->all->upstream, one->kind) &&
        !td_upstream_is_alive(one->all->upstream, one->kind)) {
        (void)td_buf_append_format(out, "%s: waiting to see whether upstream's is alive\n",
                                   td_controller_name(one->kind));
        return false;
    }
    return true;
}

/* Which kinds are not listed yet, and how much of them is there. */
static void http_missing_caches(const struct td_controllers *all, struct td_buf *out)
{
    const char *separator = "informers: caches not synced yet: ";
    for (size_t kind = 0; kind < TD_INFORMER_COUNT; kind++) {
        const struct td_cache *cache =
            td_informers_cache(all->informers, (enum td_informer_kind)kind);
        if (cache && !td_cache_is_synced(cache)) {
            (void)td_buf_append_format(out, "%s%s (%zu so far)", separator,
                                       td_informer_rows[kind].plural, td_cache_count(cache));
            separator = ", ";
        }
    }
    (void)td_buf_append_char(out, '\n');
}

static bool http_is_informers_ready(const struct td_controllers *all, struct td_buf *out)
{
    td_duration age = td_informers_age(all->informers);
    if (!td_informers_is_synced(all->informers)) {
        http_missing_caches(all, out);
        return false;
    }
    if (age > HTTP_FRESH) {
        char text[TD_DURATION_TEXT_BYTES];
        (void)td_duration_format(age - age % TD_SECOND, text);
        (void)td_buf_append_format(out, "informers: caches stale for %s\n", text);
        return false;
    }
    return true;
}

/* A Service has only pods that are ready behind it: its webhook cannot be seen at work before. */
static bool http_is_webhook_ready(const struct td_controllers *all, struct td_buf *out)
{
    td_str problem = all->webhook ? td_webhook_problem(all->webhook) : TD_STR_EMPTY;
    if (problem.len > 0) {
        (void)td_buf_append_format(out, "webhook: %.*s\n", TD_STR_ARG(problem));
    }
    bool is_by_service = all->options.webhook.listen && !all->options.webhook.is_by_url;
    return problem.len == 0 || is_by_service;
}

bool td_controllers_is_ready(const struct td_controllers *controllers, struct td_buf *out)
{
    bool is_ready = http_is_informers_ready(controllers, out);
    is_ready = http_is_webhook_ready(controllers, out) && is_ready;
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        is_ready = http_is_one_ready(&controllers->ones[kind], out) && is_ready;
    }
    if (controllers->is_ending) {
        (void)td_buf_append(out, TD_STR("stopping\n"));
        is_ready = false;
    }
    if (is_ready) {
        (void)td_buf_append(out, TD_STR("ok"));
    }
    return is_ready;
}

bool td_controllers_is_active(const struct td_controllers *controllers, struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_LOG_LINE_BYTES_MAX);
    for (size_t kind = 0; kind < TD_CONTROLLER_COUNT; kind++) {
        td_str staleness = controllers_staleness(&controllers->ones[kind], &arena);
        if (staleness.len > 0) {
            (void)td_buf_append_format(out, "Error: %.*s", TD_STR_ARG(staleness));
            return false;
        }
    }
    (void)td_buf_append(out, TD_STR("OK"));
    return true;
}

/* ---- The server ---- */

static int http_answer(struct td_controllers *all, td_str path, struct td_buf *out,
                       const char **ret_type)
{
    *ret_type = HTTP_TEXT_TYPE;
    if (td_str_equal(path, TD_STR(HTTP_METRICS_PATH))) {
        *ret_type = HTTP_METRICS_TYPE;
        if (all->options.write_metrics) {
            all->options.write_metrics(all->options.shards_context, out);
        } else {
            td_controllers_write_metrics(all, out);
        }
        return out->is_full ? 500 : 200;
    }
    if (td_str_equal(path, TD_STR("/healthz")) || td_str_equal(path, TD_STR("/livez"))) {
        (void)td_buf_append(out, TD_STR("ok"));
        return 200;
    }
    if (td_str_equal(path, TD_STR("/readyz"))) {
        return td_controllers_is_ready(all, out) ? 200 : 503;
    }
    if (td_str_equal(path, TD_STR("/health-check"))) {
        return td_controllers_is_active(all, out) ? 200 : 500;
    }
    (void)td_buf_append(out, TD_STR("404 page not found\n"));
    return 404;
}

/* ---- Who may have them ---- */

/* A caller of /metrics whose token is being asked about. */
struct controllers_caller {
    struct td_controllers *all;
    struct td_http_exchange *exchange;
    struct td_bearer_ask *ask;
    struct controllers_caller *next;
    struct controllers_caller **place;
};

static void caller_free(struct controllers_caller *caller)
{
    *caller->place = caller->next;
    if (caller->next) {
        caller->next->place = caller->place;
    }
    td_free(caller);
}

static void http_reply(struct td_http_exchange *exchange, int status, const char *type, td_str body)
{
    const struct td_http_header headers[] = {
        {.name = TD_STR("Content-Type"), .value = td_str_from(type)}};
    td_http_reply(exchange, status, headers, 1, body);
}

static void http_give_metrics(struct td_controllers *all, struct td_http_exchange *exchange,
                              int status)
{
    td_auto_buf body = td_buf_capped(TD_METRIC_TEXT_BYTES_MAX);
    const char *type = HTTP_TEXT_TYPE;
    if (status == 200) {
        status = http_answer(all, TD_STR(HTTP_METRICS_PATH), &body, &type);
    } else {
        (void)td_buf_append(&body, status == 401   ? TD_STR("a bearer token is needed\n")
                                   : status == 403 ? TD_STR("its user may not get this path\n")
                                                   : TD_STR("the API server does not say who "
                                                            "you are\n"));
    }
    http_reply(exchange, status, type, td_buf_str(&body));
}

static void caller_answered(void *context, int status)
{
    struct controllers_caller *caller = context;
    struct td_http_exchange *exchange = caller->exchange;
    struct td_controllers *all = caller->all;
    td_http_exchange_set_callbacks(exchange, NULL, NULL, NULL);
    caller_free(caller);
    http_give_metrics(all, exchange, status);
}

static void caller_closed(struct td_http_exchange *exchange, void *context)
{
    struct controllers_caller *caller = context;
    (void)exchange;
    td_bearer_leave(caller->ask);
    caller_free(caller);
}

static void http_admit(struct td_controllers *all, struct td_http_exchange *exchange,
                       const struct td_http_request *request)
{
    const struct td_http_header *header =
        td_http_header_get(request->headers, request->header_count, TD_STR("Authorization"));
    const struct td_bearer_question question = {
        .token = td_bearer_token(header ? header->value : TD_STR_EMPTY),
        .verb = TD_STR("get"),
        .path = TD_STR(HTTP_METRICS_PATH),
    };
    struct controllers_caller *caller = td_alloc_zero(1, sizeof(*caller));
    int status = td_bearer_ask(all->bearers, &question, caller_answered, caller, &caller->ask);
    if (status != 0) {
        td_free(caller);
        http_give_metrics(all, exchange, status);
        return;
    }
    caller->all = all;
    caller->exchange = exchange;
    caller->next = all->callers;
    caller->place = &all->callers;
    if (caller->next) {
        caller->next->place = &caller->next;
    }
    all->callers = caller;
    td_http_exchange_set_callbacks(exchange, NULL, caller_closed, caller);
}

static void http_handle(struct td_http_exchange *exchange, const struct td_http_request *request,
                        void *context)
{
    struct td_controllers *all = context;
    td_auto_buf body = td_buf_capped(TD_METRIC_TEXT_BYTES_MAX);
    const char *type = HTTP_TEXT_TYPE;
    int status = 405;
    td_str path = td_str_slice(request->target, 0, td_str_find(request->target, '?', 0));
    bool is_read = td_str_equal(request->method, TD_STR("GET")) ||
                   td_str_equal(request->method, TD_STR("HEAD"));
    if (is_read && all->options.is_metrics_tls && td_str_equal(path, TD_STR(HTTP_METRICS_PATH))) {
        http_admit(all, exchange, request);
        return;
    }
    if (is_read) {
        status = http_answer(all, path, &body, &type);
    } else {
        (void)td_buf_append(&body, TD_STR("method not allowed: use GET or HEAD\n"));
    }
    http_reply(exchange, status, type, td_buf_str(&body));
}

static int http_serve(struct td_controllers *controllers, struct ssl_ctx_st *tls,
                      struct td_error *err)
{
    const struct td_http_server_options options = {
        .loop = controllers->options.loop,
        .address = controllers->options.address,
        .tls = tls,
        .handler = http_handle,
        .context = controllers,
        /* Its own places: what happens to the webhook's port does not silence the probes. */
        .limits = {.connections_max = TD_HEALTH_CONNECTIONS_MAX},
    };
    return td_http_server_new(&options, &controllers->server, err);
}

/* The webhook's first certificate starts it, each later one takes its place. */
static void http_follow(void *context, struct ssl_ctx_st *tls)
{
    struct td_controllers *all = context;
    if (all->server) {
        td_http_server_set_tls(all->server, tls);
    } else {
        all->listen_code = http_serve(all, tls, &all->listen_error);
    }
}

int controllers_listen(struct td_controllers *controllers, struct td_error *err)
{
    if (!controllers->options.is_metrics_tls) {
        return http_serve(controllers, NULL, err);
    }
    if (!controllers->webhook || !controllers->options.webhook.listen) {
        return td_error_set(err, TD_INVALID,
                            "--metrics-tls: needs the certificate of the webhook; run admission "
                            "too (--controllers)");
    }
    td_webhook_follow_tls(controllers->webhook, http_follow, controllers);
    *err = controllers->listen_error;
    return controllers->listen_code;
}

void controllers_stop_listening(struct td_controllers *controllers)
{
    td_http_server_free(controllers->server); /* those who wait are told that they are gone */
    td_bearers_free(controllers->bearers);
}

uint16_t td_controllers_port(const struct td_controllers *controllers)
{
    return controllers->server ? td_http_server_port(controllers->server) : 0;
}
