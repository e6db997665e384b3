/*
 * Calls, their answers and their deadlines on libcurl's multi interface. Connections are in
 * transport_http_pool.c, options of a handle in transport_http_setup.c.
 */
#include "kube/client/transport_http.h"

#include <string.h>

#include <event2/event.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/timefmt.h"
#include "kube/client/transport_http_internal.h"
#include "kube/quantity/quantity.h"

void td_http_call_move(struct td_call *call, struct http_list *list)
{
    if (call->list) {
        *(call->previous ? &call->previous->next : &call->list->first) = call->next;
        *(call->next ? &call->next->previous : &call->list->last) = call->previous;
    }
    call->list = list;
    call->next = NULL;
    call->previous = NULL;
    if (list) {
        call->previous = list->last;
        *(list->last ? &list->last->next : &list->first) = call;
        list->last = call;
    }
}

void td_http_call_free(struct td_call *call)
{
    struct http_transport *http = call->http;
    if (call->pool) {
        bool is_retired = call->pool->is_retired;
        td_http_pool_remove(call);
        if (is_retired) {
            event_active(http->kick, EV_TIMEOUT, 0); /* its pool may be without calls now */
        }
    }
    if (call->wait) {
        td_credentials_cancel(call->wait);
    }
    td_http_call_move(call, NULL);
    td_assert(http->call_count > 0);
    http->call_count--;
    if (call->timer) {
        event_free(call->timer);
    }
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    curl_slist_free_all(call->route);
    td_free(call->text);
    td_free(call);
}

void td_http_call_finish(struct td_call *call, int code, const struct td_error *err)
{
    struct td_call_events events = call->events;
    void *context = call->context;
    td_http_call_free(call);
    events.end(context, code, err);
}

static void call_fail(struct td_call *call, const struct td_error *err)
{
    td_http_call_finish(call, err->code, err);
}

/* "Content-Type: a/b; c" and its like: the value when the line is of that header. */
static bool call_header_is(td_str line, td_str name, td_str *ret)
{
    if (line.len <= name.len || line.ptr[name.len] != ':' ||
        strncasecmp(line.ptr, name.ptr, name.len) != 0) {
        return false;
    }
    *ret = td_str_trim(td_str_slice(line, name.len + 1, line.len));
    return true;
}

static void call_keep(char *out, size_t size, td_str text)
{
    td_str cut = td_str_cut_utf8(text, size - 1);
    memcpy(out, cut.ptr ? cut.ptr : "", cut.len);
    out[cut.len] = '\0';
}

/* A second has many answers, and reading a date is slow. */
static td_time call_date(struct http_transport *http, td_str value)
{
    if (!td_str_equal(value, td_str_from(http->date_text))) {
        call_keep(http->date_text, sizeof(http->date_text), value);
        time_t seconds = curl_getdate(http->date_text, NULL);
        bool is_read = seconds > 0 && seconds < INT64_MAX / TD_SECOND;
        http->date = is_read ? (td_time)seconds * TD_SECOND : 0;
    }
    return http->date;
}

/* Only local clusters say it, and only fast or slow ones. */
static double call_clock_speed(td_str value)
{
    td_auto_arena arena = td_arena_capped(TD_API_PATH_BYTES_MAX);
    struct td_quantity quantity;
    if (td_quantity_parse(&arena, value, &quantity, NULL) != TD_OK) {
        return 0;
    }
    double speed = td_quantity_to_double(&quantity);
    return speed > 0 && speed <= TD_CLOCK_SPEED_MAX ? speed : 0;
}

/* Whole seconds, as API servers write it; a date counts as not said. */
static td_duration call_retry_after(td_str value)
{
    int64_t seconds;
    if (!td_str_to_int64(value, &seconds) || seconds < 0) {
        return -1;
    }
    return seconds > INT64_MAX / TD_SECOND ? INT64_MAX : seconds * TD_SECOND;
}

static void call_give_head(struct td_call *call)
{
    call->has_head = true;
    if (call->status == 401 && call->generation > call->http->refused_generation) {
        call->http->refused_generation = call->generation;
    }
    const struct td_call_head head = {
        .status = call->status,
        .content_type = td_str_from(call->content_type),
        .retry_after = call->retry_after,
        .date = call->date,
        .clock_speed = call->clock_speed,
        .warning = td_str_from(call->warning),
    };
    if (call->events.head) {
        call->events.head(call->context, &head);
    }
}

size_t td_http_take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct td_call *call = context;
    size_t len = size * count;
    td_str line = td_str_trim((td_str){.ptr = bytes, .len = len});
    td_str value;
    call->last_byte = td_clock_steady(&call->http->machine);
    if (call->is_cancelled || call->has_head) {
        return call->is_cancelled ? 0 : len; /* what follows a body are trailers */
    }
    if (td_str_starts_with(line, TD_STR("HTTP/"))) {
        long status = 0;
        (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status); /* known by now */
        call->status = (int)status;
        call->retry_after = -1;
        call->date = 0;
        call->clock_speed = 0;
        call->content_type[0] = '\0';
        call->warning[0] = '\0';
    } else if (line.len == 0 && call->status >= 200) {
        call_give_head(call);
    } else if (call_header_is(line, TD_STR("Content-Type"), &value)) {
        value = td_str_trim(td_str_slice(value, 0, td_str_find(value, ';', 0)));
        call_keep(call->content_type, sizeof(call->content_type), value);
    } else if (call_header_is(line, TD_STR("Retry-After"), &value)) {
        call->retry_after = call_retry_after(value);
    } else if (call_header_is(line, TD_STR("Date"), &value)) {
        call->date = call_date(call->http, value);
    } else if (call_header_is(line, TD_STR("Clock-Speed"), &value)) {
        call->clock_speed = call_clock_speed(value);
    } else if (call->warning[0] == '\0' && call_header_is(line, TD_STR("Warning"), &value)) {
        call_keep(call->warning, sizeof(call->warning), value);
    }
    return call->is_cancelled ? 0 : len;
}

size_t td_http_take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct td_call *call = context;
    size_t len = size * count;
    call->last_byte = td_clock_steady(&call->http->machine);
    call->body_bytes += len;
    call->pool->taken += len;
    if (call->due != INT64_MAX && call->body_bytes > TD_TRANSPORT_ANSWER_BYTES_MAX) {
        call->is_too_large = true;
    }
    if (call->is_cancelled || call->is_too_large) {
        return 0;
    }
    if (len > 0) {
        call->events.body(call->context, (td_str){.ptr = bytes, .len = len});
    }
    return call->is_cancelled ? 0 : len;
}

/* When a kept connection breaks curl would send the request again by itself; whether a write may be
 * sent twice is not its business. */
int td_http_begin(void *context, char *to_ip, char *from_ip, int to_port, int from_port)
{
    struct td_call *call = context;
    (void)to_ip;
    (void)from_ip;
    (void)to_port;
    (void)from_port;
    call->is_again = call->is_write && call->is_begun;
    call->is_begun = true;
    return call->is_again ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static void call_set_timer(struct td_call *call, td_duration now)
{
    td_duration due = call->due;
    if (call->idle > 0 && call->last_byte < due - call->idle) {
        due = call->last_byte + call->idle;
    }
    td_duration micros = due > now ? (due - now + TD_MICROSECOND - 1) / TD_MICROSECOND : 0;
    const struct timeval wait = {
        .tv_sec = (time_t)(micros / 1000000),
        .tv_usec = (suseconds_t)(micros % 1000000),
    };
    if (event_add(call->timer, &wait) != 0) {
        td_out_of_memory();
    }
}

/* Bytes do not move the timer; when it rings it is looked at whether its time has come. */
static void call_timer_rings(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct td_call *call = context;
    td_duration now = td_clock_steady(&call->http->machine);
    bool is_due = now >= call->due;
    bool is_idle = call->idle > 0 && now - call->last_byte >= call->idle;
    if (!is_due && !is_idle) {
        call_set_timer(call, now);
        return;
    }
    char span[TD_DURATION_TEXT_BYTES];
    (void)td_duration_format(is_due ? call->deadline : call->idle, span); /* length not needed */
    struct td_error err = TD_ERROR_INIT;
    (void)td_error_set(&err, TD_TIMEOUT, is_due ? "no whole answer within %s" : "no byte for %s",
                       span); /* the code is passed on with it */
    call_fail(call, &err);
}

static void call_send(struct td_call *call, const struct td_credential *credential)
{
    struct td_error err = TD_ERROR_INIT;
    struct http_pool *pool = td_http_pool_for(call->http, credential->connection_generation, &err);
    int code = pool ? td_http_setup(call, pool, credential, &err) : err.code;
    if (code == TD_OK) {
        code = td_http_pool_add(pool, call, &err);
    }
    if (code != TD_OK) {
        call_fail(call, &err);
    }
}

static void call_no_credentials(struct td_call *call, const struct td_error *why)
{
    struct td_error err = *why;
    err.code = TD_DENIED;
    (void)td_error_wrap(&err, err.code, "credentials"); /* the code is in err */
    call_fail(call, &err);
}

static void call_credentials_are_there(int code, const struct td_credential *credential,
                                       const struct td_error *err, void *context)
{
    struct td_call *call = context;
    call->wait = NULL;
    if (code == TD_OK) {
        call_send(call, credential);
    } else {
        call_no_credentials(call, err);
    }
}

static void call_take_up(struct td_call *call)
{
    struct http_transport *http = call->http;
    struct td_error err = TD_ERROR_INIT;
    struct td_credential credential;
    if (http->call_count > TD_TRANSPORT_CALLS_MAX) {
        (void)td_error_set(&err, TD_LIMIT, "%zu calls are open already",
                           (size_t)TD_TRANSPORT_CALLS_MAX); /* passed on with err */
        call_fail(call, &err);
        return;
    }
    int code = td_credentials_get(http->credentials, &credential, &err);
    if (code == TD_OK) {
        call_send(call, &credential);
        return;
    }
    if (code == TD_BUSY) {
        td_http_call_move(call, &http->asking);
        code = td_credentials_wait(http->credentials, call_credentials_are_there, call, &call->wait,
                                   &err);
    }
    if (code != TD_OK) {
        call_no_credentials(call, &err);
    }
}

/* Takes up what waits now; what callbacks add meanwhile has its turn in the next round. */
static void http_kick(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct http_transport *http = context;
    const struct td_call *last = http->waiting.last;
    bool is_last = !last;
    while (http->waiting.first && !is_last) {
        struct td_call *call = http->waiting.first;
        is_last = call == last;
        call_take_up(call);
    }
    if (http->waiting.first) {
        event_active(http->kick, EV_TIMEOUT, 0);
    }
    td_http_pools_retire(http);
}

static td_str call_copy(char **at, td_str text)
{
    td_str copy = {.ptr = *at, .len = text.len};
    memcpy(*at, text.ptr ? text.ptr : "", text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

static struct td_call *http_start(struct td_transport *transport,
                                  const struct td_call_request *request,
                                  const struct td_call_events *events, void *context)
{
    struct http_transport *http = (struct http_transport *)transport;
    struct td_call *call = td_alloc_zero(1, sizeof(*call));
    call->http = http;
    call->events = *events;
    call->context = context;
    call->request = *request;
    call->text = td_alloc(request->method.len + request->path.len + request->accept.len +
                          request->content_type.len + request->body.len + 5);
    char *at = call->text;
    call->request.method = call_copy(&at, request->method);
    call->request.path = call_copy(&at, request->path);
    call->request.accept = call_copy(&at, request->accept);
    call->request.content_type = call_copy(&at, request->content_type);
    call->request.body = call_copy(&at, request->body);
    td_duration now = td_clock_steady(&http->machine);
    call->deadline = request->deadline;
    call->idle = request->idle;
    call->due = request->deadline > 0 && request->deadline < INT64_MAX - now
                    ? now + request->deadline
                    : INT64_MAX;
    call->last_byte = now;
    call->retry_after = -1;
    if (call->due != INT64_MAX || call->idle > 0) {
        call->timer = event_new(td_loop_base(http->loop), -1, 0, call_timer_rings, call);
        if (!call->timer) {
            td_out_of_memory();
        }
        call_set_timer(call, now);
    }
    http->call_count++;
    td_http_call_move(call, &http->waiting);
    event_active(http->kick, EV_TIMEOUT, 0);
    return call;
}

static void http_cancel(struct td_call *call)
{
    if (call->http->is_in_curl && call->pool) {
        call->is_cancelled = true;
        td_http_call_move(call, &call->http->cancelled);
    } else {
        td_http_call_free(call);
    }
}

static void http_forget_credentials(struct td_transport *transport)
{
    struct http_transport *http = (struct http_transport *)transport;
    td_credentials_reject(http->credentials, http->refused_generation);
}

static void http_free(struct td_transport *transport)
{
    struct http_transport *http = (struct http_transport *)transport;
    td_assert(!http->is_in_curl);
    td_assert(http->call_count == 0);
    while (http->pools) {
        struct http_pool *pool = http->pools;
        http->pools = pool->next;
        td_http_pool_free(pool);
    }
    td_credentials_free(http->credentials);
    event_free(http->kick);
    curl_slist_free_all(http->impersonation);
    td_free(http);
    curl_global_cleanup();
}

int td_transport_http_new(const struct td_transport_http_options *options,
                          struct td_transport **ret, struct td_error *err)
{
    static const struct td_transport_ops ops = {
        .start = http_start,
        .cancel = http_cancel,
        .forget_credentials = http_forget_credentials,
        .free = http_free,
    };
    const struct td_kube_config *config = options->config;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return td_error_set(err, TD_IO, "cannot start libcurl");
    }
    struct curl_slist *impersonation = NULL;
    int code = td_http_impersonation(&config->impersonation, &impersonation, err);
    if (code != TD_OK) {
        curl_global_cleanup();
        return code;
    }
    struct http_transport *http = td_alloc_zero(1, sizeof(*http));
    http->transport.ops = &ops;
    http->loop = options->loop;
    http->config = config;
    http->credentials = td_credentials_new(config, options->loop);
    http->machine = td_clock_real();
    http->connections_max =
        options->connections_max > 0 ? options->connections_max : TD_TRANSPORT_CONNECTIONS_MAX;
    http->wants_gzip = !config->is_compression_disabled && !td_http_is_loopback(config->host) &&
                       !td_str_equal(config->source, TD_STR("in-cluster"));
    http->impersonation = impersonation;
    http->kick = event_new(td_loop_base(options->loop), -1, 0, http_kick, http);
    if (!http->kick) {
        td_out_of_memory();
    }
    *ret = &http->transport;
    return TD_OK;
}
