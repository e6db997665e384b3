/*
 * A connection is a machine of phases (enum http_phase), moved by what libevent reports: input,
 * output sent, end of input, an error, or its one timer. Rules that keep it simple:
 *
 * 1. One request at a time. The next one is looked at when the answer before it has left for the
 *    socket, so output never belongs to two requests and each phase has exactly one deadline.
 * 2. One request in a callback. A client that sends thousands at once gets one turn like any other.
 * 3. Calls of the handler's side only put bytes into the output and change the phase; what follows
 *    happens in a callback. So a connection is never freed under its user.
 * 4. Behind the last answer the socket is shut for sending but read on for a while (lingering): a
 *    socket closed with unread input sends a reset, which can destroy the answer on its way.
 *
 * Reading pauses when more than TD_HTTP_READ_AHEAD_BYTES wait behind a request in hand. That is
 * done by hand, not with libevent's watermark: its TLS sockets stop there with bytes left inside
 * OpenSSL, and then wait for a socket that has nothing more to say.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/http/http_internal.h"
#include "base/limits.h"

#define READ_ONCE_BYTES ((size_t)64 << 10) /* taken from or given to a socket in one turn */
#define WRITE_ONCE_BYTES ((size_t)256 << 10)
#define PIECES 4            /* of the input, looked at together */
#define KEEPALIVE_IDLE_S 60 /* a peer that vanished without a word is noticed */
#define KEEPALIVE_INTERVAL_S 15

static bool connection_is_reading(const struct http_connection *connection)
{
    return connection->phase == HTTP_IDLE || connection->phase == HTTP_HEAD ||
           connection->phase == HTTP_BODY;
}

static struct evbuffer *input_of(const struct http_connection *connection)
{
    return bufferevent_get_input(connection->io);
}

static size_t output_bytes(const struct http_connection *connection)
{
    return evbuffer_get_length(bufferevent_get_output(connection->io));
}

static td_duration real_now(const struct http_connection *connection)
{
    return td_clock_steady(&connection->server->real);
}

/* libevent may count from a clock that is a tick of the machine behind: late rather than early. */
#define TIMER_SLACK (10 * TD_MILLISECOND)

static void connection_set_timer(struct http_connection *connection, td_duration after)
{
    td_duration micros = after > 0 ? (after + TIMER_SLACK) / TD_MICROSECOND : 0;
    const struct timeval wait = {
        .tv_sec = (time_t)(micros / 1000000),
        .tv_usec = (suseconds_t)(micros % 1000000),
    };
    if (event_add(connection->timer, &wait) != 0) {
        td_out_of_memory();
    }
}

static void connection_stop_timer(struct http_connection *connection)
{
    (void)event_del(connection->timer); /* fails only for an event without a base */
}

static void connection_pause_reading(struct http_connection *connection)
{
    connection->is_read_paused = true;
    (void)bufferevent_disable(connection->io, EV_READ); /* cannot fail for sockets */
}

static void connection_resume_reading(struct http_connection *connection)
{
    if (connection->is_read_paused && !connection->has_input_ended) {
        connection->is_read_paused = false;
        (void)bufferevent_enable(connection->io, EV_READ); /* a dead socket reports itself */
    }
}

/* What the request's body holds counts against the cap of all connections; a buffer that is only
 * kept for the next one does not. */
static void connection_count_body(struct http_connection *connection)
{
    struct td_http_server *server = connection->server;
    bool has_body = connection->parser && td_http1_request(connection->parser)->body.len > 0;
    size_t now = has_body ? td_http1_body_bytes(connection->parser) : 0;
    http_admit_count_body(server, connection->source, connection->body_bytes, now);
    connection->body_bytes = now;
}

void http_connection_wrote(struct http_connection *connection)
{
    if (output_bytes(connection) == 0) {
        connection->progress_at = real_now(connection);
    }
    bool is_answering = connection->phase == HTTP_ANSWER || connection->phase == HTTP_FLUSH;
    if (is_answering && !event_pending(connection->timer, EV_TIMEOUT, NULL)) {
        connection_set_timer(connection, connection->server->limits.write_time);
    }
}

void http_connection_finish(struct http_connection *connection, bool is_last)
{
    connection->phase = HTTP_FLUSH;
    connection->is_last = connection->is_last || is_last;
    if (output_bytes(connection) == 0) {
        /* Nothing will be sent, so nothing would be reported: the timer moves it on. */
        event_active(connection->timer, EV_TIMEOUT, 0);
    }
}

/* The same with an exchange that is not over: it goes to the server's lists. */
static void connection_detach(struct http_connection *connection)
{
    struct td_http_server *server = connection->server;
    struct td_http_exchange *exchange = connection->exchange;
    td_assert(!exchange->is_over);
    exchange->connection = NULL;
    exchange->parser = connection->parser;
    exchange->peer = connection->peer;
    exchange->body_bytes = connection->body_bytes;
    connection->exchange = NULL;
    connection->parser = NULL;
    connection->peer = NULL;
    connection->body_bytes = 0;
    http_list_add(exchange->on_close ? &server->closing : &server->orphans, &exchange->link);
    if (exchange->on_close) {
        event_active(server->sweep, EV_TIMEOUT, 0);
    }
    http_connection_finish(connection, true);
}

void http_connection_drop(struct http_connection *connection)
{
    struct td_http_server *server = connection->server;
    if (connection->exchange && !connection->exchange->is_over) {
        connection_detach(connection);
    }
    if (connection->exchange) {
        http_exchange_free(connection->exchange);
    }
    event_free(connection->timer);
    /* libevent frees the output in a later turn, but what it only refers to is given back now. */
    struct evbuffer *output = bufferevent_get_output(connection->io);
    (void)evbuffer_unfreeze(output, 1); /* cannot fail */
    (void)evbuffer_drain(output, evbuffer_get_length(output));
    bufferevent_free(connection->io);
    td_http1_free(connection->parser);
    connection->parser = NULL;
    connection_count_body(connection);
    http_peer_free(connection->peer);
    http_list_remove(&connection->link);
    http_admit_remove(connection);
    td_assert(server->connection_count > 0);
    server->connection_count--;
    td_free(connection);
}

/* Tell the other side that nothing more comes. */
static void connection_shut_output(struct http_connection *connection)
{
    SSL *ssl = connection->is_tls ? bufferevent_openssl_get_ssl(connection->io) : NULL;
    if (ssl) {
        ERR_clear_error();
        (void)SSL_shutdown(ssl); /* best effort: the client may be gone */
        ERR_clear_error();
    }
    (void)shutdown(bufferevent_getfd(connection->io), SHUT_WR); /* the same */
}

static void connection_linger(struct http_connection *connection)
{
    connection_shut_output(connection);
    if (connection->has_input_ended || connection->discarded_bytes > TD_HTTP_LINGER_BYTES_MAX) {
        http_connection_drop(connection);
        return;
    }
    connection->phase = HTTP_LINGER;
    connection_set_timer(connection, connection->server->limits.linger_time);
    connection_resume_reading(connection);
}

/* Answer here instead of by the handler, and take no more requests. */
static void connection_refuse(struct http_connection *connection, int status, const char *problem)
{
    connection_stop_timer(connection);
    connection->phase = HTTP_FLUSH;
    http_reply_problem(connection, status, problem);
    http_connection_finish(connection, true);
    if (connection->parser) {
        td_http1_reset(connection->parser); /* its memory is not needed any more */
        connection_count_body(connection);
    }
}

/* The whole request is there. */
static void connection_dispatch(struct http_connection *connection)
{
    struct td_http_server *server = connection->server;
    connection_stop_timer(connection);
    http_admit_prove(connection);
    connection->phase = HTTP_ANSWER;
    connection->exchange = http_exchange_new(connection);
    struct td_http_exchange *exchange = connection->exchange;
    server->is_in_callback = true;
    server->handler(exchange, &exchange->request, server->context);
    server->is_in_callback = false;
}

static void connection_enter_body(struct http_connection *connection)
{
    const struct td_http_limits *limits = &connection->server->limits;
    connection->phase = HTTP_BODY;
    connection->period_bytes = 0;
    connection->body_end = real_now(connection) + limits->body_time;
    td_duration first =
        limits->body_period < limits->body_time ? limits->body_period : limits->body_time;
    connection_set_timer(connection, first);
}

static void connection_continue(struct http_connection *connection)
{
    const struct td_http1_request *request = td_http1_request(connection->parser);
    if (!request->expects_continue || connection->has_continued || request->body.len > 0) {
        return;
    }
    connection->has_continued = true;
    http_connection_wrote(connection);
    const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    (void)bufferevent_write(connection->io, text, sizeof(text) - 1); /* fails without memory only */
}

/* Feed the parser until the request is complete or the input is used up. */
static void connection_feed(struct http_connection *connection)
{
    struct evbuffer *input = input_of(connection);
    struct td_http1 *parser = connection->parser;
    while (td_http1_state(parser) < TD_HTTP1_DONE && evbuffer_get_length(input) > 0) {
        struct evbuffer_iovec pieces[PIECES];
        int count = evbuffer_peek(input, -1, NULL, pieces, PIECES);
        size_t taken = 0;
        for (int i = 0; i < count && i < PIECES; i++) {
            td_str bytes = {.ptr = pieces[i].iov_base, .len = pieces[i].iov_len};
            taken += td_http1_feed(parser, bytes);
        }
        connection->period_bytes += taken;
        (void)evbuffer_drain(input, taken); /* cannot fail: so much was just seen */
        if (taken == 0) {
            break; /* it has just failed */
        }
    }
}

static void connection_parse(struct http_connection *connection)
{
    struct td_http_server *server = connection->server;
    struct td_http1 *parser = connection->parser;
    if (connection->phase == HTTP_IDLE) {
        if (evbuffer_get_length(input_of(connection)) == 0) {
            return;
        }
        connection->phase = HTTP_HEAD;
        connection_set_timer(connection, server->limits.head_time);
    }
    connection_feed(connection);
    connection_count_body(connection);
    if (td_http1_state(parser) == TD_HTTP1_FAILED) {
        connection_refuse(connection, td_http1_status(parser), td_http1_problem(parser));
    } else if (connection->body_bytes > 0 && !http_admit_has_budget(server, connection->source)) {
        connection_refuse(connection, 429, "too many request bodies at one time");
    } else if (td_http1_state(parser) == TD_HTTP1_DONE) {
        connection_dispatch(connection);
    } else if (td_http1_state(parser) == TD_HTTP1_BODY) {
        if (connection->phase == HTTP_HEAD) {
            connection_enter_body(connection);
        }
        connection_continue(connection);
    }
}

/* Input has ended inside a request, or where one could have begun. */
static void connection_miss_rest(struct http_connection *connection)
{
    if (connection->phase == HTTP_IDLE || td_http1_is_empty(connection->parser)) {
        connection_linger(connection);
    } else {
        connection_refuse(connection, 400, "the request ended before it was complete");
    }
}

/* The answer has left for the socket. */
static void connection_flushed(struct http_connection *connection)
{
    connection_stop_timer(connection);
    if (connection->exchange) {
        http_exchange_free(connection->exchange);
        connection->exchange = NULL;
    }
    if (connection->is_last) {
        connection_linger(connection);
        return;
    }
    td_http1_reset(connection->parser);
    connection_count_body(connection);
    connection->has_continued = false;
    connection->phase = HTTP_IDLE;
    if (evbuffer_get_length(input_of(connection)) > 0) {
        connection_resume_reading(connection);
        connection_parse(connection);
        if (connection_is_reading(connection) && connection->has_input_ended) {
            connection_miss_rest(connection);
        }
    } else if (connection->has_input_ended) {
        connection_linger(connection);
    } else {
        connection_set_timer(connection, connection->server->limits.idle_time);
        connection_resume_reading(connection);
    }
}

/* Behind the last request whatever comes is thrown away, up to a cap. */
static void connection_discard(struct http_connection *connection)
{
    struct evbuffer *input = input_of(connection);
    size_t len = evbuffer_get_length(input);
    connection->discarded_bytes += len;
    (void)evbuffer_drain(input, len); /* cannot fail */
    if (connection->discarded_bytes <= TD_HTTP_LINGER_BYTES_MAX) {
        return;
    }
    if (connection->phase == HTTP_LINGER) {
        http_connection_drop(connection);
    } else {
        connection_pause_reading(connection);
    }
}

static void connection_on_read(struct bufferevent *io, void *context)
{
    (void)io;
    struct http_connection *connection = context;
    if (connection->is_last) {
        connection_discard(connection);
        return;
    }
    if (connection_is_reading(connection)) {
        connection_parse(connection);
    } else if (evbuffer_get_length(input_of(connection)) > TD_HTTP_READ_AHEAD_BYTES) {
        connection_pause_reading(connection);
    }
}

/* A client that has shut down its side gets what was written, but the connection is not kept open
 * for more: a stream that has nothing left to send is over. */
static bool connection_stream_is_idle(const struct http_connection *connection)
{
    return connection->phase == HTTP_ANSWER && connection->has_input_ended &&
           connection->exchange->is_begun && output_bytes(connection) == 0;
}

/* Little or nothing is left to send: more from the stream's writer, or the next phase. */
static void connection_drained(struct http_connection *connection)
{
    struct td_http_server *server = connection->server;
    struct td_http_exchange *exchange = connection->exchange;
    if (connection->phase == HTTP_ANSWER && exchange->is_begun && exchange->on_drain) {
        server->is_in_callback = true;
        exchange->on_drain(exchange, exchange->context);
        server->is_in_callback = false;
    }
    if (connection_stream_is_idle(connection)) {
        connection_detach(connection);
    }
    if (connection->phase == HTTP_FLUSH && output_bytes(connection) == 0) {
        connection_flushed(connection);
    }
}

static void connection_on_write(struct bufferevent *io, void *context)
{
    (void)io;
    connection_drained(context);
}

static void connection_on_input_end(struct http_connection *connection)
{
    connection->has_input_ended = true;
    (void)bufferevent_disable(connection->io, EV_READ); /* cannot fail for sockets */
    if (connection->is_tls) {
        /* libevent stops both directions of TLS at the end of one. */
        (void)bufferevent_disable(connection->io, EV_WRITE);
        (void)bufferevent_enable(connection->io, EV_WRITE);
    }
    if (connection_is_reading(connection)) {
        connection_parse(connection); /* the last bytes may not have been reported yet */
    }
    if (connection->phase == HTTP_HANDSHAKE || connection->phase == HTTP_LINGER) {
        http_connection_drop(connection);
    } else if (connection_is_reading(connection)) {
        connection_miss_rest(connection);
    } else if (output_bytes(connection) == 0) {
        /* A stream's writer may not have been told yet that all is sent: libevent tells it late
         * over TLS. Only one that has nothing to add is idle. */
        connection_drained(connection);
    }
}

/* A browser or curl with http:// instead of https:// is told so, before TLS has begun. */
static void connection_fail_handshake(struct http_connection *connection)
{
    if (http_tls_is_plain_request(bufferevent_get_openssl_error(connection->io))) {
        static const char text[] =
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 52\r\nConnection: close\r\n\r\n"
            "this port speaks HTTPS, the request was plain HTTP.\n";
        evutil_socket_t fd = bufferevent_getfd(connection->io);
        char rest[READ_ONCE_BYTES];
        (void)!recv(fd, rest, sizeof(rest), MSG_DONTWAIT); /* unread input would reset the answer */
        (void)!send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL); /* best effort */
    }
    http_connection_drop(connection);
}

static void connection_on_event(struct bufferevent *io, short what, void *context)
{
    (void)io;
    struct http_connection *connection = context;
    if (what & BEV_EVENT_CONNECTED) {
        connection->peer = http_peer_new(bufferevent_openssl_get_ssl(connection->io));
        connection->phase = HTTP_HEAD;
        connection_set_timer(connection, connection->server->limits.head_time);
    } else if ((what & BEV_EVENT_EOF) && !(what & BEV_EVENT_WRITING)) {
        /* Behind TLS's goodbye OpenSSL calls also a failed write an end: that one has no answer. */
        connection_on_input_end(connection);
    } else if (connection->phase == HTTP_HANDSHAKE) {
        connection_fail_handshake(connection);
    } else {
        http_connection_drop(connection);
    }
    ERR_clear_error(); /* what OpenSSL says about one client must not be read as another's */
}

/* The body must be there by its end, and some of it in each period until then. */
static void connection_check_body(struct http_connection *connection)
{
    td_duration left = connection->body_end - real_now(connection);
    if (left <= 0) {
        connection_refuse(connection, 408, "the request body took too long");
    } else if (connection->period_bytes < TD_HTTP_BODY_PERIOD_BYTES) {
        connection_refuse(connection, 408, "the request body comes too slowly");
    } else {
        td_duration period = connection->server->limits.body_period;
        connection->period_bytes = 0;
        connection_set_timer(connection, period < left ? period : left);
    }
}

static void connection_check_output(struct http_connection *connection)
{
    if (output_bytes(connection) == 0) {
        if (connection->phase == HTTP_FLUSH) {
            connection_flushed(connection);
        }
        return;
    }
    td_duration end = connection->progress_at + connection->server->limits.write_time;
    td_duration left = end - real_now(connection);
    if (left > 0) {
        connection_set_timer(connection, left);
    } else {
        http_connection_drop(connection);
    }
}

static void connection_on_timer(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct http_connection *connection = context;
    switch (connection->phase) {
    case HTTP_HEAD:
        if (td_http1_is_empty(connection->parser)) {
            connection_linger(connection);
        } else {
            connection_refuse(connection, 408, "the request headers took too long");
        }
        break;
    case HTTP_IDLE:
        connection_linger(connection);
        break;
    case HTTP_BODY:
        connection_check_body(connection);
        break;
    case HTTP_ANSWER:
    case HTTP_FLUSH:
        connection_check_output(connection);
        break;
    case HTTP_HANDSHAKE:
    case HTTP_LINGER:
        http_connection_drop(connection);
        break;
    }
}

static void connection_on_output(struct evbuffer *output, const struct evbuffer_cb_info *change,
                                 void *context)
{
    (void)output;
    struct http_connection *connection = context;
    if (change->n_deleted > 0) {
        connection->progress_at = real_now(connection);
    }
}

static void socket_set_options(evutil_socket_t fd)
{
    const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
    };
    for (size_t i = 0; i < TD_COUNT(options); i++) {
        /* Each only makes the connection better. */
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(options[i].value));
    }
}

static struct bufferevent *socket_open(struct td_http_server *server, evutil_socket_t fd)
{
    if (!server->tls) {
        return bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    }
    SSL *ssl = SSL_new(server->tls);
    if (!ssl) {
        td_out_of_memory();
    }
    /* Clients that close without TLS's goodbye are common; lengths say what is complete. */
    (void)SSL_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
    (void)SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS); /* 34 KiB less for a watcher that is idle */
    /* Without a name for its sessions OpenSSL refuses to resume those with a client certificate. */
    static const unsigned char sessions[] = "td_http";
    if (SSL_set_session_id_context(ssl, sessions, sizeof(sessions) - 1) != 1) {
        td_out_of_memory();
    }
    return bufferevent_openssl_socket_new(server->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                          BEV_OPT_CLOSE_ON_FREE);
}

void http_connection_start(struct td_http_server *server, evutil_socket_t fd,
                           struct http_source *source)
{
    socket_set_options(fd);
    struct http_connection *connection = td_alloc_zero(1, sizeof(*connection));
    connection->server = server;
    connection->source = source;
    connection->is_tls = server->tls != NULL;
    connection->parser = td_http1_new(&server->limits.request);
    connection->io = socket_open(server, fd);
    connection->timer = event_new(server->base, -1, 0, connection_on_timer, connection);
    if (!connection->io || !connection->timer ||
        !evbuffer_add_cb(bufferevent_get_output(connection->io), connection_on_output,
                         connection)) {
        td_out_of_memory();
    }
    http_list_add(&server->connections, &connection->link);
    http_admit_add(connection);
    server->connection_count++;
    connection->phase = connection->is_tls ? HTTP_HANDSHAKE : HTTP_HEAD;
    connection_set_timer(connection, connection->is_tls ? server->limits.handshake_time
                                                        : server->limits.head_time);
    bufferevent_setcb(connection->io, connection_on_read, connection_on_write, connection_on_event,
                      connection);
    bufferevent_setwatermark(connection->io, EV_WRITE, TD_HTTP_WRITE_LOW_BYTES, 0);
    (void)bufferevent_set_max_single_read(connection->io, READ_ONCE_BYTES); /* cannot fail */
    (void)bufferevent_set_max_single_write(connection->io, WRITE_ONCE_BYTES);
    (void)bufferevent_enable(connection->io, EV_READ | EV_WRITE); /* a dead socket reports itself */
}
