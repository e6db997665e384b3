/* The handler's side: exchanges, and writing answers into the output of their connection. */
#include <stdio.h>

#include <event2/buffer.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/http/http_internal.h"
#include "base/os/loop.h"
#include "base/timefmt.h"

#define PLAIN_COPY_BYTES ((size_t)512) /* below it a copy is cheaper than a piece of its own */
#define TLS_COPY_BYTES                                                                             \
    ((size_t)16 << 10)                    /* each piece would be a record and a write of its own   \
                                           */
#define TOGETHER_BYTES ((size_t)64 << 10) /* an answer up to it lies in one piece of memory */
#define LINE_BYTES 128                    /* a status line, a chunk's size, a problem */
#define HEAD_GUESS_BYTES ((size_t)256)    /* of an answer's head besides its headers */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        if (rows[i].status == status) {
            return rows[i].text;
        }
    }
    return "Status"; /* the phrase means nothing to a client */
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" for now, by the loop's clock; valid until the next call. */
static const char *date_now(struct td_http_server *server)
{
    static const char days[] = "ThuFriSatSunMonTueWed"; /* 1970 began with a Thursday */
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct td_instant now = td_time_to_instant(td_clock_wall(td_loop_clock(server->loop)));
    if (now.unix_seconds == server->date_second) {
        return server->date;
    }
    char text[TD_TIME_TEXT_BYTES]; /* 2006-01-02T15:04:05Z */
    (void)td_time_format(now, 0, text);
    int64_t second_of_week = now.unix_seconds % (7 * 86400);
    size_t day = (size_t)((second_of_week + 7 * 86400) % (7 * 86400)) / 86400;
    size_t month = (size_t)((text[5] - '0') * 10 + text[6] - '0' - 1);
    (void)snprintf(server->date, sizeof(server->date), "%.3s, %.2s %.3s %.4s %.8s GMT",
                   days + day * 3, text + 8, months + month * 3, text, text + 11);
    server->date_second = now.unix_seconds;
    return server->date;
}

static void output_add(struct evbuffer *output, td_str bytes)
{
    if (bytes.len > 0 && evbuffer_add(output, bytes.ptr, bytes.len) != 0) {
        td_out_of_memory();
    }
}

static void output_reserve(struct evbuffer *output, size_t bytes)
{
    if (bytes <= TOGETHER_BYTES && evbuffer_expand(output, bytes) != 0) {
        td_out_of_memory();
    }
}

static struct evbuffer *output_of(const struct http_connection *connection)
{
    return bufferevent_get_output(connection->io);
}

/* A value cannot end its line: whatever would is sent as a space. */
static void output_add_value(struct evbuffer *output, td_str value)
{
    size_t from = 0;
    for (size_t i = 0; i < value.len; i++) {
        uint8_t c = (uint8_t)value.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            output_add(output, td_str_slice(value, from, i));
            output_add(output, TD_STR(" "));
            from = i + 1;
        }
    }
    output_add(output, td_str_slice(value, from, value.len));
}

static bool header_is_ours(td_str name)
{
    return td_http_text_equal(name, TD_STR("Content-Length")) ||
           td_http_text_equal(name, TD_STR("Transfer-Encoding")) ||
           td_http_text_equal(name, TD_STR("Connection")) ||
           td_http_text_equal(name, TD_STR("Date"));
}

static void output_add_head(struct td_http_server *server, struct evbuffer *output, int status,
                            const struct td_http_header *headers, size_t header_count)
{
    char line[LINE_BYTES];
    const struct td_clock *clock = td_loop_clock(server->loop);
    int len = snprintf(line, sizeof(line), "HTTP/1.1 %d %s\r\nDate: %s\r\n", status,
                       reason_of(status), date_now(server));
    td_assert(len > 0 && (size_t)len < sizeof(line));
    output_add(output, (td_str){.ptr = line, .len = (size_t)len});
    if (clock->speed != 1) { /* who reads the date can keep the time from here on */
        len = snprintf(line, sizeof(line), "Clock-Speed: %.9g\r\n", clock->speed);
        output_add(output, (td_str){.ptr = line, .len = (size_t)len});
    }
    for (size_t i = 0; i < header_count; i++) {
        if (!header_is_ours(headers[i].name)) {
            output_add_value(output, headers[i].name);
            output_add(output, TD_STR(": "));
            output_add_value(output, headers[i].value);
            output_add(output, TD_STR("\r\n"));
        }
    }
}

static void output_add_length(struct evbuffer *output, size_t length)
{
    char line[LINE_BYTES];
    int len = snprintf(line, sizeof(line), "Content-Length: %zu\r\n", length);
    output_add(output, (td_str){.ptr = line, .len = (size_t)len});
}

/* The last line of the head that says whether the connection goes on, and the blank one. */
static void output_end_head(struct evbuffer *output, int minor, bool is_last)
{
    if (is_last) {
        output_add(output, TD_STR("Connection: close\r\n"));
    } else if (minor == 0) {
        output_add(output, TD_STR("Connection: keep-alive\r\n"));
    }
    output_add(output, TD_STR("\r\n"));
}

void http_reply_problem(struct http_connection *connection, int status, const char *problem)
{
    static const struct td_http_header headers[] = {
        {TD_STR_INIT("Content-Type"), TD_STR_INIT("text/plain; charset=utf-8")},
        {TD_STR_INIT("Retry-After"), TD_STR_INIT("1")},
    };
    struct evbuffer *output = output_of(connection);
    http_connection_wrote(connection);
    td_str text = td_str_from(problem);
    output_add_head(connection->server, output, status, headers, status == 429 ? 2 : 1);
    output_add_length(output, text.len + 1);
    output_end_head(output, 1, true);
    output_add(output, text);
    output_add(output, TD_STR("\n"));
}

struct td_http_exchange *http_exchange_new(struct http_connection *connection)
{
    const struct td_http1_request *request = td_http1_request(connection->parser);
    const struct http_peer *peer = connection->peer;
    struct td_http_exchange *exchange = td_alloc_zero(1, sizeof(*exchange));
    exchange->server = connection->server;
    exchange->source = http_source_ref(connection->source);
    exchange->connection = connection;
    exchange->is_keep_alive = request->is_keep_alive;
    exchange->is_bodiless = td_str_equal(request->method, TD_STR("HEAD"));
    exchange->request = (struct td_http_request){
        .method = request->method,
        .target = request->target,
        .headers = request->headers,
        .header_count = request->header_count,
        .body = request->body,
        .minor = request->minor,
        .is_tls = connection->is_tls,
        .has_peer = peer != NULL,
        .peer_name = peer ? peer->name : TD_STR_EMPTY,
        .peer_organizations = peer ? peer->organizations : NULL,
        .peer_organization_count = peer ? peer->organization_count : 0,
    };
    return exchange;
}

void http_exchange_free(struct td_http_exchange *exchange)
{
    http_admit_count_body(exchange->server, exchange->source, exchange->body_bytes, 0);
    http_source_unref(exchange->server, exchange->source);
    http_list_remove(&exchange->link);
    td_http1_free(exchange->parser);
    http_peer_free(exchange->peer);
    td_free(exchange);
}

/* The user's side is done with it. With a client, it is freed when the answer has been sent. */
static void exchange_end(struct td_http_exchange *exchange, bool is_last)
{
    struct http_connection *connection = exchange->connection;
    exchange->is_over = true;
    if (connection) {
        http_connection_finish(connection, is_last);
    } else {
        http_exchange_free(exchange);
    }
}

/* Will this be the connection's last answer? */
static bool exchange_is_last(const struct td_http_exchange *exchange)
{
    const struct http_connection *connection = exchange->connection;
    bool has_more = evbuffer_get_length(bufferevent_get_input(connection->io)) > 0;
    return !exchange->is_keep_alive || (connection->has_input_ended && !has_more);
}

void td_http_reply(struct td_http_exchange *exchange, int status,
                   const struct td_http_header *headers, size_t header_count, td_str body)
{
    td_assert(!exchange->is_over);
    td_assert(!exchange->is_begun);
    struct http_connection *connection = exchange->connection;
    if (!connection) {
        exchange_end(exchange, true);
        return;
    }
    bool is_last = exchange_is_last(exchange);
    bool has_no_length = status == 204 || status == 304;
    struct evbuffer *output = output_of(connection);
    size_t bytes = HEAD_GUESS_BYTES + body.len;
    for (size_t i = 0; i < header_count; i++) {
        bytes += headers[i].name.len + headers[i].value.len + 4;
    }
    http_connection_wrote(connection);
    output_reserve(output, bytes);
    output_add_head(exchange->server, output, status, headers, header_count);
    if (!has_no_length) {
        output_add_length(output, body.len);
    }
    output_end_head(output, exchange->request.minor, is_last);
    if (!has_no_length && !exchange->is_bodiless) {
        output_add(output, body);
    }
    exchange_end(exchange, is_last);
}

void td_http_reply_begin(struct td_http_exchange *exchange, int status,
                         const struct td_http_header *headers, size_t header_count)
{
    td_assert(!exchange->is_over);
    td_assert(!exchange->is_begun);
    exchange->is_begun = true;
    struct http_connection *connection = exchange->connection;
    if (!connection) {
        return;
    }
    bool has_no_length = status == 204 || status == 304;
    exchange->is_bodiless = exchange->is_bodiless || has_no_length;
    exchange->is_chunked = exchange->request.minor == 1 && !has_no_length;
    bool is_last = exchange_is_last(exchange) || exchange->request.minor == 0;
    connection->is_last = connection->is_last || is_last;
    struct evbuffer *output = output_of(connection);
    http_connection_wrote(connection);
    output_add_head(exchange->server, output, status, headers, header_count);
    if (exchange->is_chunked) {
        output_add(output, TD_STR("Transfer-Encoding: chunked\r\n"));
    }
    output_end_head(output, exchange->request.minor, is_last);
}

/* Is there still a client to send a part of a body to? */
static bool exchange_takes(const struct td_http_exchange *exchange, td_str bytes)
{
    td_assert(!exchange->is_over);
    td_assert(exchange->is_begun);
    return exchange->connection && !exchange->is_bodiless && bytes.len > 0;
}

static void output_add_chunk_size(struct evbuffer *output, size_t size)
{
    char line[LINE_BYTES];
    int len = snprintf(line, sizeof(line), "%zx\r\n", size);
    output_add(output, (td_str){.ptr = line, .len = (size_t)len});
}

void td_http_reply_write(struct td_http_exchange *exchange, td_str bytes)
{
    if (!exchange_takes(exchange, bytes)) {
        return;
    }
    struct evbuffer *output = output_of(exchange->connection);
    http_connection_wrote(exchange->connection);
    output_reserve(output, bytes.len + LINE_BYTES);
    if (exchange->is_chunked) {
        output_add_chunk_size(output, bytes.len);
    }
    output_add(output, bytes);
    if (exchange->is_chunked) {
        output_add(output, TD_STR("\r\n"));
    }
}

/* What is borrowed until the socket has taken it. */
struct reply_ref {
    void (*release)(void *arg);
    void *arg;
};

static void reply_ref_done(const void *data, size_t len, void *context)
{
    (void)data;
    (void)len;
    struct reply_ref *ref = context;
    ref->release(ref->arg);
    td_free(ref);
}

void td_http_reply_write_ref(struct td_http_exchange *exchange, td_str bytes,
                             void (*release)(void *arg), void *arg)
{
    bool is_taken = exchange_takes(exchange, bytes);
    bool is_tls = is_taken && exchange->connection->is_tls;
    if (!is_taken || bytes.len <= (is_tls ? TLS_COPY_BYTES : PLAIN_COPY_BYTES)) {
        td_http_reply_write(exchange, bytes);
        release(arg);
        return;
    }
    struct evbuffer *output = output_of(exchange->connection);
    struct reply_ref *ref = td_alloc(sizeof(*ref));
    *ref = (struct reply_ref){.release = release, .arg = arg};
    http_connection_wrote(exchange->connection);
    if (exchange->is_chunked) {
        output_add_chunk_size(output, bytes.len);
    }
    if (evbuffer_add_reference(output, bytes.ptr, bytes.len, reply_ref_done, ref) != 0) {
        td_out_of_memory();
    }
    if (exchange->is_chunked) {
        output_add(output, TD_STR("\r\n"));
    }
}

void td_http_reply_end(struct td_http_exchange *exchange)
{
    td_assert(!exchange->is_over);
    td_assert(exchange->is_begun);
    if (exchange->connection && exchange->is_chunked && !exchange->is_bodiless) {
        http_connection_wrote(exchange->connection);
        output_add(output_of(exchange->connection), TD_STR("0\r\n\r\n"));
    }
    exchange_end(exchange, false);
}

size_t td_http_exchange_pending_bytes(const struct td_http_exchange *exchange)
{
    return exchange->connection ? evbuffer_get_length(output_of(exchange->connection)) : 0;
}

void td_http_exchange_set_callbacks(struct td_http_exchange *exchange, td_http_exchange_fn drain,
                                    td_http_exchange_fn close, void *context)
{
    td_assert(!exchange->is_over);
    struct td_http_server *server = exchange->server;
    exchange->on_drain = drain;
    exchange->on_close = close;
    exchange->context = context;
    if (exchange->connection) {
        return;
    }
    http_list_remove(&exchange->link);
    http_list_add(close ? &server->closing : &server->orphans, &exchange->link);
    if (close) {
        event_active(server->sweep, EV_TIMEOUT, 0);
    }
}
