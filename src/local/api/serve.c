/*
 * One exchange of the HTTPS server: authentication, the call of the API handler, and the answer in
 * pieces as fast as the client reads.
 */
#include "local/api/serve.h"

#include <strings.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/http/http_server.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/str.h"
#include "local/api/api.h"
#include "local/auth/auth.h"

struct td_serve {
    struct td_http_server *server;
    struct td_api *api;
    struct td_auth *auth;
};

/* The beginning of an answer that may be whole: head and first piece, kept until the second piece,
 * the end, or the return of td_api_start. A whole one goes out in one piece with its length. */
struct serve_held {
    int status;
    const struct td_http_header *headers;
    size_t header_count;
    td_str body;
    void (*release)(void *owner); /* of the body, when it is lent */
    void *owner;
    bool has_body;
};

/* One exchange with its call; freed when both are over. */
struct serve_call {
    struct td_http_exchange *exchange; /* NULL: the answer is complete */
    struct td_api_call *call;          /* NULL: ended, or not yet known */
    struct td_arena *arena;            /* of what is held; NULL when td_api_start has returned */
    struct serve_held *held;           /* NULL: nothing was said yet, or it is a stream */
    bool has_begun;                    /* a stream */
    bool has_ended;
};

static void serve_write(struct serve_call *call, td_str bytes, void (*release)(void *owner),
                        void *owner)
{
    if (release) {
        td_http_reply_write_ref(call->exchange, bytes, release, owner);
    } else {
        td_http_reply_write(call->exchange, bytes);
    }
}

/* It is a stream after all. */
static void serve_flush(struct serve_call *call)
{
    struct serve_held *held = call->held;
    call->held = NULL;
    call->has_begun = true;
    td_http_reply_begin(call->exchange, held->status, held->headers, held->header_count);
    if (held->has_body) {
        serve_write(call, held->body, held->release, held->owner);
    }
}

static void serve_head(void *context, int status, const struct td_api_header *headers, size_t count)
{
    struct serve_call *call = context;
    struct td_http_header copies[TD_API_HEADERS_MAX];
    size_t copied = count < TD_API_HEADERS_MAX ? count : TD_API_HEADERS_MAX;
    struct td_http_header *kept =
        call->arena ? td_arena_array(call->arena, struct td_http_header, copied) : copies;
    for (size_t i = 0; i < copied; i++) {
        kept[i] = (struct td_http_header){.name = headers[i].name, .value = headers[i].value};
    }
    if (!call->arena) {
        call->has_begun = true;
        td_http_reply_begin(call->exchange, status, kept, copied);
        return;
    }
    call->held = td_arena_new(call->arena, struct serve_held);
    *call->held = (struct serve_held){.status = status, .headers = kept, .header_count = copied};
}

static void serve_body(void *context, td_str bytes, void (*release)(void *owner), void *owner)
{
    struct serve_call *call = context;
    struct serve_held *held = call->held;
    if (held && !held->has_body && bytes.len <= TD_HTTP_WRITE_LOW_BYTES) {
        held->has_body = true;
        held->body = release ? bytes : td_arena_copy_str(call->arena, bytes);
        held->release = release;
        held->owner = owner;
        return;
    }
    if (held) {
        serve_flush(call);
    }
    serve_write(call, bytes, release, owner);
}

static bool serve_is_full(void *context)
{
    const struct serve_call *call = context;
    return td_http_exchange_pending_bytes(call->exchange) >= TD_HTTP_WRITE_HIGH_BYTES;
}

static void serve_end(void *context)
{
    struct serve_call *call = context;
    struct serve_held *held = call->held;
    if (held) {
        td_http_reply(call->exchange, held->status, held->headers, held->header_count, held->body);
        if (held->release) {
            held->release(held->owner);
        }
    } else if (call->has_begun) {
        td_http_reply_end(call->exchange);
    } else { /* the handler goes without an answer */
        td_http_reply(call->exchange, 503, NULL, 0, TD_STR_EMPTY);
    }
    call->exchange = NULL;
    call->held = NULL;
    call->has_ended = true;
    if (!call->arena) {
        td_free(call);
    }
}

static const struct td_api_sink serve_sink = {
    .head = serve_head, .body = serve_body, .is_full = serve_is_full, .end = serve_end};

static void serve_drained(struct td_http_exchange *exchange, void *context)
{
    struct serve_call *call = context;
    (void)exchange;
    if (call->call) {
        td_api_resume(call->call);
    }
}

static void serve_closed(struct td_http_exchange *exchange, void *context)
{
    struct serve_call *call = context;
    (void)exchange;
    if (call->call) {
        td_api_cancel(call->call);
    }
    td_free(call);
}

static td_str serve_header(const struct td_http_request *request, const char *name)
{
    const struct td_http_header *header =
        td_http_header_get(request->headers, request->header_count, td_str_from(name));
    return header ? header->value : TD_STR_EMPTY;
}

static bool serve_is_named(td_str name, const char *wanted)
{
    td_str other = td_str_from(wanted);
    return name.len == other.len && strncasecmp(name.ptr, other.ptr, other.len) == 0;
}

static void serve_evidence(struct td_arena *arena, const struct td_http_request *request,
                           struct td_auth_evidence *ret)
{
    td_str *groups = td_arena_array(arena, td_str, request->header_count);
    *ret = (struct td_auth_evidence){
        .has_certificate = request->has_peer,
        .certificate_name = request->peer_name,
        .certificate_groups = request->peer_organizations,
        .certificate_group_count = request->peer_organization_count,
        .authorization = serve_header(request, "Authorization"),
        .impersonate_user = serve_header(request, "Impersonate-User"),
        .impersonate_uid = serve_header(request, "Impersonate-Uid"),
        .impersonate_groups = groups,
    };
    for (size_t i = 0; i < request->header_count; i++) {
        td_str name = request->headers[i].name;
        td_str extra = TD_STR("Impersonate-Extra-");
        if (serve_is_named(name, "Impersonate-Group")) {
            groups[ret->impersonate_group_count++] = request->headers[i].value;
        } else if (serve_is_named(td_str_slice(name, 0, extra.len), extra.ptr)) {
            ret->has_impersonate_extra = true;
        }
    }
}

/* The answer to a request that cannot be authenticated: a Status like any other refusal. */
static void serve_refuse(struct td_http_exchange *exchange, struct td_arena *arena,
                         const struct td_error *err)
{
    bool is_unknown = err->code != TD_DENIED;
    struct td_json *status = td_json_new_object(arena);
    td_json_set_str(arena, status, TD_STR("kind"), TD_STR("Status"));
    td_json_set_str(arena, status, TD_STR("apiVersion"), TD_STR("v1"));
    td_json_set(arena, status, TD_STR("metadata"), td_json_new_object(arena));
    td_json_set_str(arena, status, TD_STR("status"), TD_STR("Failure"));
    td_json_set_str(arena, status, TD_STR("message"),
                    is_unknown ? TD_STR("Unauthorized") : td_str_from(err->message));
    td_json_set_str(arena, status, TD_STR("reason"),
                    is_unknown ? TD_STR("Unauthorized") : TD_STR("Forbidden"));
    td_json_set_int64(arena, status, TD_STR("code"), is_unknown ? 401 : 403);
    td_auto_buf body = td_buf_capped(TD_JSON_BYTES_MAX);
    td_json_write(status, &(struct td_json_format){0}, &body);
    const struct td_http_header headers[] = {
        {.name = TD_STR("Content-Type"), .value = TD_STR("application/json")},
    };
    td_http_reply(exchange, is_unknown ? 401 : 403, headers, 1, td_buf_str(&body));
}

static void serve_request(struct td_http_exchange *exchange, const struct td_http_request *request,
                          void *context)
{
    struct td_serve *serve = context;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_auth_evidence evidence;
    serve_evidence(&arena, request, &evidence);
    struct td_api_request ask = {
        .method = request->method,
        .target = request->target,
        .accept = serve_header(request, "Accept"),
        .content_type = serve_header(request, "Content-Type"),
        .user_agent = serve_header(request, "User-Agent"),
        .body = request->body,
    };
    struct td_error err = TD_ERROR_INIT;
    if (td_auth_identify(serve->auth, &arena, &evidence, &ask.user, &err) != TD_OK) {
        serve_refuse(exchange, &arena, &err);
        return;
    }
    struct serve_call *call = td_alloc_zero(1, sizeof(*call));
    *call = (struct serve_call){.exchange = exchange, .arena = &arena};
    call->call = td_api_start(serve->api, &ask, &serve_sink, call);
    call->arena = NULL;
    if (call->has_ended) {
        td_free(call);
        return;
    }
    if (call->held) {
        serve_flush(call);
    }
    td_http_exchange_set_callbacks(exchange, serve_drained, serve_closed, call);
}

int td_serve_new(const struct td_serve_options *options, struct td_serve **ret,
                 struct td_error *err)
{
    struct td_serve *serve = td_alloc_zero(1, sizeof(*serve));
    serve->api = options->api;
    serve->auth = options->auth;
    const struct td_http_server_options http = {
        .loop = options->loop,
        .address = options->address,
        .tls = options->tls,
        .handler = serve_request,
        .context = serve,
    };
    int code = td_http_server_new(&http, &serve->server, err);
    if (code != TD_OK) {
        td_free(serve);
        return code;
    }
    *ret = serve;
    return TD_OK;
}

void td_serve_free(struct td_serve *serve)
{
    if (!serve) {
        return;
    }
    td_http_server_free(serve->server);
    td_free(serve);
}

uint16_t td_serve_port(const struct td_serve *serve)
{
    return td_http_server_port(serve->server);
}
