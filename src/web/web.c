/*
 * Routes and what every answer has. The order of checks: Host and Origin (a page of another site
 * must not reach a loopback server by DNS rebinding or a form), then who asks, then the route.
 * Files need no login, since they hold nothing of a cluster.
 */
#include "web/web.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/pki/pki.h"
#include "sim/world/world.h"
#include "web/assets.h"
#include "web/json_writer.h"
#include "web/web_private.h"

#define WEB_PORTS_TRIED 32
/* So many rows or pods more, and they are looked at a second later. */
#define WEB_ROWS_A_SECOND 2000
#define WEB_PODS_A_SECOND 20000
#define WEB_CSP                                                                                    \
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action "   \
    "'none'; frame-ancestors 'none'"

static const struct {
    const char *method;
    const char *path;
    void (*fn)(const struct web_call *call);
} web_routes[] = {
    {"GET", "/api/info", web_view_info},           {"GET", "/api/cluster", web_view_cluster},
    {"GET", "/api/workloads", web_view_workloads}, {"GET", "/api/workload", web_view_workload},
    {"GET", "/api/explain", web_view_explain},     {"GET", "/api/yaml", web_view_yaml},
    {"GET", "/api/stream", web_view_stream},       {"POST", "/api/whatif", web_do_whatif},
    {"POST", "/api/scenario", web_do_scenario},
};

/* ---- Answers ---- */

#define WEB_HEADERS_MAX 10

static size_t web_headers(struct td_http_header headers[WEB_HEADERS_MAX], td_str type)
{
    size_t count = 0;
    headers[count++] = (struct td_http_header){TD_STR("Content-Type"), type};
    headers[count++] = (struct td_http_header){TD_STR("Content-Security-Policy"), TD_STR(WEB_CSP)};
    headers[count++] = (struct td_http_header){TD_STR("X-Content-Type-Options"), TD_STR("nosniff")};
    headers[count++] = (struct td_http_header){TD_STR("X-Frame-Options"), TD_STR("DENY")};
    headers[count++] = (struct td_http_header){TD_STR("Referrer-Policy"), TD_STR("no-referrer")};
    headers[count++] =
        (struct td_http_header){TD_STR("Cross-Origin-Resource-Policy"), TD_STR("same-origin")};
    return count;
}

static void web_reply(struct td_http_exchange *exchange, int status, td_str type, td_str body)
{
    struct td_http_header headers[WEB_HEADERS_MAX];
    size_t count = web_headers(headers, type);
    headers[count++] = (struct td_http_header){TD_STR("Cache-Control"), TD_STR("no-store")};
    if (status == 401) {
        headers[count++] = (struct td_http_header){TD_STR("WWW-Authenticate"), TD_STR("Bearer")};
    }
    td_http_reply(exchange, status, headers, count, body);
}

void web_reply_json(struct td_http_exchange *exchange, int status, const struct td_buf *body)
{
    if (body->is_full) {
        web_fail(exchange, 500, TD_STR("the answer is too large"));
        return;
    }
    web_reply(exchange, status, TD_STR("application/json"), td_buf_str(body));
}

void web_fail(struct td_http_exchange *exchange, int status, td_str message)
{
    td_auto_buf body = td_buf_capped(WEB_ANSWER_BYTES_MAX);
    struct td_json_writer writer = {.out = &body};
    td_writer_open(&writer, NULL, '{');
    td_writer_text(&writer, "error", message);
    td_writer_close(&writer, '}');
    web_reply(exchange, status, TD_STR("application/json"), td_buf_str(&body));
}

static void web_reply_file(struct td_http_exchange *exchange, const struct td_http_request *request,
                           const struct td_web_asset *asset)
{
    struct td_http_header headers[WEB_HEADERS_MAX];
    size_t count = web_headers(headers, td_str_from(asset->type));
    td_str etag = td_str_from(asset->etag);
    const struct td_http_header *known =
        td_http_header_get(request->headers, request->header_count, TD_STR("If-None-Match"));
    bool is_known = known && td_str_equal(known->value, etag);
    headers[count++] = (struct td_http_header){TD_STR("Cache-Control"), TD_STR("no-cache")};
    headers[count++] = (struct td_http_header){TD_STR("ETag"), etag};
    td_http_reply(exchange, is_known ? 304 : 200, headers, count,
                  is_known ? TD_STR_EMPTY : td_web_asset_text(asset));
}

/* ---- Parameters ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static td_str parameter_unescape(struct td_arena *arena, td_str text)
{
    char *out = td_arena_alloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int high = text.ptr[i] == '%' && i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text.ptr[i + 2]) : -1;
        if (low >= 0) {
            out[len++] = (char)(high * 16 + low);
            i += 2;
        } else {
            out[len++] = (char)(text.ptr[i] == '+' ? ' ' : text.ptr[i]);
        }
    }
    return (td_str){.ptr = out, .len = len};
}

td_str web_parameter(struct td_arena *arena, td_str query, const char *name)
{
    td_str wanted = td_str_from(name);
    while (query.len > 0) {
        size_t end = td_str_find(query, '&', 0);
        td_str pair = td_str_slice(query, 0, end);
        size_t middle = td_str_find(pair, '=', 0);
        if (td_str_equal(td_str_slice(pair, 0, middle), wanted)) {
            return parameter_unescape(arena, td_str_slice(pair, middle + 1, pair.len));
        }
        query = td_str_slice(query, end + 1, query.len);
    }
    return TD_STR_EMPTY;
}

void web_look(struct td_web *web)
{
    const struct td_model *model = web->model;
    td_duration now = td_clock_machine(td_loop_clock(web->options.loop));
    size_t by_rows = model->rows.count / WEB_ROWS_A_SECOND;
    size_t by_pods = model->pods.count / WEB_PODS_A_SECOND;
    td_duration rest = (td_duration)(by_rows > by_pods ? by_rows : by_pods) * TD_SECOND;
    if (web->looked_at == 0 || now - web->looked_at >= rest) {
        td_model_look(web->model);
        web->looked_at = now;
    }
}

bool web_shared_begin(const struct td_web *web, struct web_shared *shared)
{
    if (shared->body.len > 0 && shared->version == web->model->version) {
        return false;
    }
    td_buf_reset(&shared->body);
    shared->version = web->model->version;
    return true;
}

bool web_is_in_scope(const struct web_call *call, td_str namespace)
{
    return call->scope.len == 0 || td_str_equal(call->scope, namespace);
}

struct td_model_row *web_call_row(const struct web_call *call, struct td_arena *arena)
{
    td_str ns = web_parameter(arena, call->query, "ns");
    td_model_look(call->web->model);
    struct td_model_row *row =
        web_is_in_scope(call, ns)
            ? td_model_find(call->web->model, ns, web_parameter(arena, call->query, "kind"),
                            web_parameter(arena, call->query, "name"),
                            web_parameter(arena, call->query, "by"))
            : NULL;
    if (!row) {
        web_fail(call->exchange, 404, TD_STR("no such workload"));
    }
    return row;
}

/* ---- Who asks ---- */

static td_str web_header(const struct td_http_request *request, td_str name)
{
    const struct td_http_header *header =
        td_http_header_get(request->headers, request->header_count, name);
    return header ? header->value : TD_STR_EMPTY;
}

static bool web_host_is_loopback(td_str host)
{
    static const td_str names[] = {TD_STR_INIT("127.0.0.1"), TD_STR_INIT("localhost"),
                                   TD_STR_INIT("[::1]")};
    size_t end = host.len;
    for (size_t i = host.len; i > 0 && host.ptr[i - 1] != ']'; i--) {
        end = host.ptr[i - 1] == ':' ? i - 1 : end;
    }
    return td_str_is_among(td_str_slice(host, 0, end), names, TD_COUNT(names));
}

/* A name that leads here and is not ours, or a page of another site. */
static bool web_is_ours(const struct td_web *web, const struct td_http_request *request,
                        bool is_api)
{
    td_str host = web_header(request, TD_STR("Host"));
    td_str origin = web_header(request, TD_STR("Origin"));
    td_str site = web_header(request, TD_STR("Sec-Fetch-Site"));
    td_str mode = web_header(request, TD_STR("Sec-Fetch-Mode"));
    td_str scheme = web->options.tls ? TD_STR("https://") : TD_STR("http://");
    if (!web->options.tls && !web_host_is_loopback(host)) {
        return false;
    }
    if (origin.len > 0 && !(td_str_starts_with(origin, scheme) &&
                            td_str_equal(td_str_slice(origin, scheme.len, origin.len), host))) {
        return false;
    }
    bool is_link = !is_api && td_str_equal(mode, TD_STR("navigate")); /* a link was clicked */
    return is_link || site.len == 0 || td_str_equal(site, TD_STR("same-origin")) ||
           td_str_equal(site, TD_STR("none"));
}

static bool web_has_token(const struct td_web *web, const struct td_http_request *request)
{
    td_str given = web_header(request, TD_STR("Authorization"));
    td_str word = TD_STR("Bearer ");
    return td_str_starts_with(given, word) &&
           td_secret_equal(td_str_slice(given, word.len, given.len), web->options.token);
}

/* ---- Routes ---- */

void web_route(const struct web_call *call)
{
    bool is_known = false;
    for (size_t i = 0; i < TD_COUNT(web_routes); i++) {
        if (!td_str_equal(call->path, td_str_from(web_routes[i].path))) {
            continue;
        }
        is_known = true;
        if (td_str_equal(call->request->method, td_str_from(web_routes[i].method))) {
            web_routes[i].fn(call);
            return;
        }
    }
    web_fail(call->exchange, is_known ? 405 : 404,
             is_known ? TD_STR("method not allowed") : TD_STR("no such path"));
}

static void web_file(const struct web_call *call)
{
    bool is_read = td_str_equal(call->request->method, TD_STR("GET")) ||
                   td_str_equal(call->request->method, TD_STR("HEAD"));
    td_str path = td_str_equal(call->path, TD_STR("/")) ? TD_STR("/page.html") : call->path;
    const struct td_web_asset *asset = td_web_asset_find(path);
    if (!is_read) {
        web_reply(call->exchange, 405, TD_STR("text/plain; charset=utf-8"),
                  TD_STR("method not allowed\n"));
    } else if (!asset) {
        web_reply(call->exchange, 404, TD_STR("text/plain; charset=utf-8"),
                  TD_STR("no such page\n"));
    } else {
        web_reply_file(call->exchange, call->request, asset);
    }
}

/* A POST of another site would be a simple request without this. */
static bool web_is_json(const struct td_http_request *request)
{
    td_str type = web_header(request, TD_STR("Content-Type"));
    return td_http_text_equal(td_str_trim(td_str_slice(type, 0, td_str_find(type, ';', 0))),
                              TD_STR("application/json"));
}

static void web_handle(struct td_http_exchange *exchange, const struct td_http_request *request,
                       void *context)
{
    struct td_web *web = context;
    size_t mark = td_str_find(request->target, '?', 0);
    const struct web_call call = {
        .web = web,
        .exchange = exchange,
        .request = request,
        .path = td_str_slice(request->target, 0, mark),
        .query = td_str_slice(request->target, mark + 1, request->target.len),
        .scope = TD_STR_EMPTY,
    };
    bool is_api = td_str_starts_with(call.path, TD_STR("/api/"));
    if (!web_is_ours(web, request, is_api)) {
        web_fail(exchange, 403, TD_STR("another host or origin: open the page by its own address"));
    } else if (!is_api) {
        web_file(&call);
    } else if (call.query.len > WEB_QUERY_BYTES_MAX) {
        web_fail(exchange, 414, TD_STR("the query is too long"));
    } else if (request->body.len > 0 && !web_is_json(request)) {
        web_fail(exchange, 415, TD_STR("Content-Type: must be application/json"));
    } else if (web->options.token.len > 0 && !web_has_token(web, request)) {
        web_fail(exchange, 401,
                 TD_STR("the token is missing or wrong: open the whole address that "
                        "tandem page printed"));
    } else if (web->access) {
        web_access_admit(&call);
    } else {
        web_route(&call);
    }
}

/* ---- The whole ---- */

static int web_listen_once(struct td_web *web, const char *address, struct td_error *err)
{
    const struct td_http_server_options options = {
        .loop = web->options.loop,
        .address = address,
        .tls = web->options.tls,
        .handler = web_handle,
        .context = web,
        .limits = {.connections_max = WEB_CONNECTIONS_MAX,
                   .request = {.body_bytes_max = WEB_BODY_BYTES_MAX}},
    };
    return td_http_server_new(&options, &web->server, err);
}

/* The port that was asked for or, where it may move, the next that is free. */
static int web_listen(struct td_web *web, struct td_error *err)
{
    td_str address = td_str_from(web->options.listen);
    size_t colon = address.len;
    int64_t port = 0;
    while (colon > 0 && address.ptr[colon - 1] != ':') {
        colon--;
    }
    if (colon == 0 || !td_str_to_int64(td_str_slice(address, colon, address.len), &port) ||
        port < 0 || port > 65535) {
        return td_error_set(err, TD_INVALID, "'%s': must be HOST:PORT", web->options.listen);
    }
    if (!web->options.tls && !web_host_is_loopback(address)) {
        return td_error_set(err, TD_INVALID,
                            "'%s': must be a loopback address, such as 127.0.0.1:8080: the page "
                            "asks for no login",
                            web->options.listen);
    }
    int code = web_listen_once(web, web->options.listen, err);
    for (int i = 1; code == TD_IO && web->options.moves_port && i < WEB_PORTS_TRIED; i++) {
        char other[128];
        (void)snprintf(other, sizeof(other), "%.*s%d", (int)colon, address.ptr,
                       (int)((port + i) & 65535)); /* as long as the one that was taken */
        code = web_listen_once(web, other, err);
    }
    return code;
}

static int web_start(struct td_web *web, struct td_error *err)
{
    struct td_model_options model = {
        .loop = web->options.loop,
        .namespace = web->options.namespace,
        .watches_events = !web->options.world,
        .selector_gate = web->options.selector_gate,
    };
    int code = web_listen(web, err);
    code = code == TD_OK ? web->options.connect(web->options.context, &model.transport, err) : code;
    code = code == TD_OK ? td_model_new(&model, &web->model, err) : code;
    if (code == TD_OK) {
        if (web->options.asks_server) {
            web_access_new(web);
        }
        if (web->options.world) {
            web->model->overlay = web_overlay;
            web->model->overlay_context = web;
        }
        if (web->options.prometheus) {
            web_past_new(web, web->options.prometheus);
            web->options.prometheus = NULL; /* it was copied */
        }
        web_stream_start(web);
    }
    return code;
}

int td_web_new(const struct td_web_options *options, struct td_web **ret, struct td_error *err)
{
    struct td_web *web = td_alloc_zero(1, sizeof(*web));
    td_arena_init(&web->texts, WEB_ARENA_BYTES_MAX);
    td_arena_init(&web->check_arena, WEB_ARENA_BYTES_MAX);
    td_buf_init(&web->cluster.body, WEB_ANSWER_BYTES_MAX);
    td_buf_init(&web->rows.body, WEB_ANSWER_BYTES_MAX);
    web->options = *options;
    web->options.title = td_arena_copy_str(&web->texts, options->title);
    web->options.namespace = td_arena_copy_str(&web->texts, options->namespace);
    web->options.token = td_arena_copy_str(&web->texts, options->token);
    web->options.feature_gates = td_arena_copy_str(&web->texts, options->feature_gates);
    web->options.listen = td_arena_copy_str(&web->texts, td_str_from(options->listen)).ptr;
    web->metrics_problem = TD_STR_EMPTY;
    web->webhook_problem = TD_STR_EMPTY;
    web->rights_problem = TD_STR_EMPTY;
    web->history_problem = TD_STR_EMPTY;
    int code = web_start(web, err);
    if (code != TD_OK) {
        td_web_free(web);
        return code;
    }
    *ret = web;
    return TD_OK;
}

void td_web_free(struct td_web *web)
{
    if (!web) {
        return;
    }
    td_http_server_free(web->server);
    web_stream_done(web);
    web_whatifs_done(web);
    web_asks_done(web);
    web_access_free(web->access);
    web_past_free(web->past);
    td_model_free(web->model);
    td_buf_done(&web->cluster.body);
    td_buf_done(&web->rows.body);
    td_arena_done(&web->check_arena);
    td_arena_done(&web->texts);
    td_free(web);
}

uint16_t td_web_port(const struct td_web *web)
{
    return td_http_server_port(web->server);
}

void td_web_set_tls(struct td_web *web, struct ssl_ctx_st *tls)
{
    td_http_server_set_tls(web->server, tls);
}

void td_web_happened(struct td_web *web, const struct td_world_event *event)
{
    const struct td_model_happening what = {
        .at = td_model_now(web->model),
        .reason = event->reason,
        .kind = event->kind,
        .ns = event->ns,
        .name = event->name,
        .message = event->message,
        .decision = TD_STR_EMPTY,
        .is_scenario = td_str_equal(event->type, TD_STR("Scenario")),
    };
    td_model_tell(web->model, &what);
}
