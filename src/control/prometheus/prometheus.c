/*
 * One query is one call of the transport, whose body is read as it arrives by the reader of
 * answers; a query ends once, by its answer, its deadline, or its cancellation. At the end:
 * PromQL's way of writing a span of time and of quoting a text.
 */
#include "control/prometheus/prometheus.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/os/env.h"
#include "kube/client/transport_http.h"
#include "kube/kubeconfig/kubeconfig.h"
#include "kube/paths.h"

#define PROMETHEUS_CONNECTIONS 4L

static const double prometheus_seconds[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4,
                                            0.5,  0.6,  0.7,  0.8, 0.9, 1,   2,
                                            5,    10,   20,   30,  60,  120, 300};

struct td_prometheus_call {
    struct td_prometheus *prometheus;
    struct td_prometheus_answer answer;
    struct td_prometheus_events events;
    void *context;
    struct td_call *call;
    int status;          /* of HTTP; 0: no head yet */
    struct td_error err; /* why the answer was given up */
    td_duration began;   /* steady, of the machine */
    struct td_prometheus_call *next;
    struct td_prometheus_call *previous;
};

struct td_prometheus {
    struct td_loop *loop;
    struct td_arena arena;
    struct td_kube_config config;
    struct td_transport *transport;
    struct td_clock machine;
    struct td_prometheus_call *first;
    uint64_t bytes;
    struct td_metric_family *requests; /* NULL: requests are not counted */
    struct td_metric_family *durations;
};

/* ---- The client ---- */

static int prometheus_connect(struct td_prometheus *prometheus,
                              const struct td_prometheus_options *options, struct td_error *err)
{
    struct td_arena *arena = &prometheus->arena;
    int code = td_kube_config_of_url(arena, options->address, td_env_get, &prometheus->config, err);
    if (code != TD_OK) {
        return code;
    }
    prometheus->config.is_insecure = options->is_insecure;
    prometheus->config.token = td_arena_copy_str(arena, options->bearer_token);
    if (options->bearer_token.len == 0) {
        prometheus->config.username = td_arena_copy_str(arena, options->username);
        prometheus->config.password = td_arena_copy_str(arena, options->password);
    }
    if (options->transport) {
        prometheus->transport = options->transport;
        return TD_OK;
    }
    const struct td_transport_http_options http = {
        .loop = prometheus->loop,
        .config = &prometheus->config,
        .connections_max = PROMETHEUS_CONNECTIONS,
    };
    return td_transport_http_new(&http, &prometheus->transport, err);
}

static void prometheus_declare(struct td_prometheus *prometheus,
                               struct td_metric_registry *registry)
{
    static const struct td_metric_declaration rows[] = {
        {"vpa_recommender_prometheus_client_api_requests_count", "Queries sent to Prometheus.",
         .kind = TD_METRIC_COUNTER, .labels = {"code", "method"}},
        {"vpa_recommender_prometheus_client_api_requests_duration_seconds",
         "Duration of Prometheus queries, up to the end of the response.",
         .kind = TD_METRIC_HISTOGRAM, .labels = {"code", "method"}, .buckets = prometheus_seconds,
         .bucket_count = TD_COUNT(prometheus_seconds)},
    };
    prometheus->requests = td_metric_declare(registry, &rows[0]);
    prometheus->durations = td_metric_declare(registry, &rows[1]);
}

int td_prometheus_new(struct td_loop *loop, const struct td_prometheus_options *options,
                      struct td_metric_registry *registry, struct td_prometheus **ret,
                      struct td_error *err)
{
    struct td_prometheus *prometheus = td_alloc_zero(1, sizeof(*prometheus));
    prometheus->loop = loop;
    prometheus->machine = td_clock_real();
    td_arena_init(&prometheus->arena, TD_OBJECT_BYTES_MAX);
    int code = prometheus_connect(prometheus, options, err);
    if (code != TD_OK) {
        td_prometheus_free(prometheus);
        return code;
    }
    if (registry) {
        prometheus_declare(prometheus, registry);
    }
    *ret = prometheus;
    return TD_OK;
}

void td_prometheus_free(struct td_prometheus *prometheus)
{
    if (!prometheus) {
        return;
    }
    while (prometheus->first) {
        td_prometheus_cancel(prometheus->first);
    }
    if (prometheus->transport) {
        prometheus->transport->ops->free(prometheus->transport);
    }
    td_arena_done(&prometheus->arena);
    td_free(prometheus);
}

td_str td_prometheus_url(const struct td_prometheus *prometheus)
{
    return prometheus->config.server;
}

uint64_t td_prometheus_bytes(const struct td_prometheus *prometheus)
{
    return prometheus->bytes;
}

/* ---- One query ---- */

static void call_free(struct td_prometheus_call *call)
{
    *(call->previous ? &call->previous->next : &call->prometheus->first) = call->next;
    if (call->next) {
        call->next->previous = call->previous;
    }
    td_prometheus_answer_done(&call->answer);
    td_free(call);
}

void td_prometheus_cancel(struct td_prometheus_call *call)
{
    if (call->call) {
        call->prometheus->transport->ops->cancel(call->call);
    }
    call_free(call);
}

static void call_count(const struct td_prometheus_call *call)
{
    const struct td_prometheus *prometheus = call->prometheus;
    char code[16];
    (void)snprintf(code, sizeof(code), "%d", call->status);
    const td_str values[] = {td_str_from(call->status > 0 ? code : "error"), TD_STR("get")};
    if (prometheus->requests) {
        td_duration took = td_clock_steady(&prometheus->machine) - call->began;
        td_metric_add(td_metric_series(prometheus->requests, values), 1);
        td_metric_observe(td_metric_series(prometheus->durations, values),
                          (double)took / (double)TD_SECOND);
    }
}

static void call_finish(struct td_prometheus_call *call, int code, struct td_error *err)
{
    struct td_prometheus_events events = call->events;
    void *context = call->context;
    call_count(call);
    if (code != TD_OK) {
        (void)td_error_wrap(err, code, "%.*s", TD_STR_ARG(call->prometheus->config.server));
    }
    call_free(call);
    events.done(context, code, err);
}

static void call_head(void *context, const struct td_call_head *head)
{
    struct td_prometheus_call *call = context;
    call->status = head->status;
}

static void call_body(void *context, td_str bytes)
{
    struct td_prometheus_call *call = context;
    call->prometheus->bytes += bytes.len;
    if (call->err.code != TD_OK) {
        return; /* given up: the rest goes by */
    }
    int code = td_prometheus_answer_feed(&call->answer, bytes, &call->err);
    if (code == TD_OK || call->status != 200) {
        call->err = code == TD_OK ? call->err : TD_ERROR_INIT; /* a page, not an answer: see end */
        return;
    }
    /* What is wrong will not get better by reading on. */
    struct td_error err = call->err;
    call->prometheus->transport->ops->cancel(call->call);
    call->call = NULL;
    call_finish(call, code, &err);
}

static void call_end(void *context, int code, const struct td_error *why)
{
    struct td_prometheus_call *call = context;
    struct td_error err = TD_ERROR_INIT;
    call->call = NULL;
    if (code != TD_OK) {
        err = *why;
        call_finish(call, code, &err);
        return;
    }
    code = td_prometheus_answer_finish(&call->answer, &err);
    if (call->status != 200) {
        /* A refusal has its reason in the answer's form; what is in between has not. */
        bool is_theirs = code == TD_INVALID && call->answer.code == TD_OK &&
                         td_str_starts_with(td_buf_str(&call->answer.around), TD_STR("{"));
        struct td_error refused = TD_ERROR_INIT;
        code = call->status == 401 || call->status == 403 ? TD_DENIED : TD_INVALID;
        code = call->status >= 500 ? TD_IO : code;
        (void)td_error_set(&refused, code, "HTTP %d%s%s", call->status, is_theirs ? ": " : "",
                           is_theirs ? err.message : ""); /* passed on below */
        err = refused;
    }
    call_finish(call, code, &err);
}

static void call_add_time(struct td_buf *path, td_str key, td_time time)
{
    char text[32];
    int64_t ms = time / TD_MILLISECOND;
    (void)snprintf(text, sizeof(text), "%lld.%03lld", (long long)(ms / 1000),
                   (long long)(ms % 1000));
    td_path_add_query(path, key, td_str_from(text));
}

struct td_prometheus_call *td_prometheus_ask(struct td_prometheus *prometheus,
                                             const struct td_prometheus_query *query,
                                             const struct td_prometheus_events *events,
                                             void *context)
{
    static const struct td_call_events transport_events = {
        .head = call_head, .body = call_body, .end = call_end};
    struct td_prometheus_call *call = td_alloc_zero(1, sizeof(*call));
    call->prometheus = prometheus;
    call->events = *events;
    call->context = context;
    call->began = td_clock_steady(&prometheus->machine);
    td_prometheus_answer_init(&call->answer, &events->series, context);
    call->next = prometheus->first;
    if (prometheus->first) {
        prometheus->first->previous = call;
    }
    prometheus->first = call;
    td_auto_buf path = td_buf_capped(TD_API_PATH_BYTES_MAX);
    (void)td_buf_append(&path,
                        query->step > 0 ? TD_STR("/api/v1/query_range") : TD_STR("/api/v1/query"));
    td_path_add_query(&path, TD_STR("query"), query->text);
    call_add_time(&path, query->step > 0 ? TD_STR("start") : TD_STR("time"), query->at);
    if (query->step > 0) {
        call_add_time(&path, TD_STR("end"), query->end);
        call_add_time(&path, TD_STR("step"), query->step);
    }
    const struct td_call_request request = {
        .method = TD_STR("GET"), .path = td_buf_str(&path), .deadline = query->timeout};
    call->call =
        prometheus->transport->ops->start(prometheus->transport, &request, &transport_events, call);
    return call;
}

/* ---- PromQL ---- */

void td_prometheus_span(td_duration span, char out[TD_PROMETHEUS_SPAN_BYTES])
{
    static const struct {
        td_duration unit;
        const char *name;
    } units[] = {{24 * TD_HOUR, "d"}, {TD_HOUR, "h"}, {TD_MINUTE, "m"}, {TD_SECOND, "s"}};
    for (size_t i = 0; i < TD_COUNT(units); i++) {
        if (span > 0 && span % units[i].unit == 0) {
            (void)snprintf(out, TD_PROMETHEUS_SPAN_BYTES, "%lld%s",
                           (long long)(span / units[i].unit), units[i].name);
            return;
        }
    }
    (void)snprintf(out, TD_PROMETHEUS_SPAN_BYTES, "%lldms", (long long)(span / TD_MILLISECOND));
}

void td_prometheus_quote(td_str text, struct td_buf *out)
{
    (void)td_buf_append_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.ptr[i];
        if (byte == '\n') {
            (void)td_buf_append(out, TD_STR("\\n"));
            continue;
        }
        if (byte == '"' || byte == '\\') {
            (void)td_buf_append_char(out, '\\');
        }
        (void)td_buf_append_char(out, byte);
    }
    (void)td_buf_append_char(out, '"');
}
