/*
 * An HTTP/1.1 server on the event loop, plain or over TLS. The handler is called once for each
 * whole request, on the loop's thread, and answers now or later: with td_http_reply (a finite
 * answer), or with td_http_reply_begin, _write and _end (a stream of unknown length). Requests of a
 * connection are served one after another. Broken, oversized and slow requests are answered here
 * with a 4xx, and slow or silent clients are cut off by deadlines that follow real time whatever
 * clock the loop has.
 *
 * An exchange is one request with its answer. It belongs to the handler's side from the call of the
 * handler until that side calls td_http_reply or td_http_reply_end, or until on_close was called,
 * whichever is first; after that it must not be touched. The request and everything it points to
 * live exactly as long. When the client goes away first, on_close is called once; without such a
 * callback the exchange stays valid and what is written to it is dropped. Callbacks are only called
 * from the loop, never from inside a call of this header but td_http_server_free, and they must not
 * free the server. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/http1.h"
#include "base/os/clock.h"
#include "base/str.h"

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct td_error;
struct td_http_exchange;
struct td_http_server;
struct td_loop;

struct td_http_request {
    td_str method;
    td_str target; /* raw: "/path?query" with its escapes, or "*" */
    const struct td_http_header *headers;
    size_t header_count;
    td_str body; /* whole, chunks joined; empty when there is none */
    int minor;   /* HTTP/1.minor: 0 or 1 */
    bool is_tls;
    bool has_peer;                    /* a client certificate was given and verified */
    td_str peer_name;                 /* its common name; empty without one */
    const td_str *peer_organizations; /* its organizations, in order */
    size_t peer_organization_count;
};

typedef void (*td_http_handler_fn)(struct td_http_exchange *exchange,
                                   const struct td_http_request *request, void *context);

/* A zero stands for the default in base/limits.h. All times are real time. */
struct td_http_limits {
    struct td_http1_limits request;
    size_t connections_max;     /* past it the oldest unproven one goes, or the newcomer */
    size_t bodies_bytes_max;    /* request bodies of all connections; past it 429 */
    size_t bodies_count_max;    /* requests that have one; likewise */
    td_duration handshake_time; /* TLS handshake, as a whole */
    td_duration head_time;      /* request line and headers, as a whole */
    td_duration body_time;      /* body, as a whole */
    td_duration body_period;    /* in each of these TD_HTTP_BODY_PERIOD_BYTES must arrive */
    td_duration idle_time;      /* between two requests */
    td_duration write_time;     /* an answer of which the client takes nothing */
    td_duration linger_time;    /* reading on behind a refused request */
};

struct td_http_server_options {
    struct td_loop *loop;   /* borrowed */
    const char *address;    /* numeric, "127.0.0.1:0" or "[::1]:8443"; port 0 takes a free one */
    struct ssl_ctx_st *tls; /* NULL: plain. The server holds a reference of its own */
    td_http_handler_fn handler;
    void *context;
    struct td_http_limits limits;
};

/* Bind, listen and serve from the next turn of the loop on. TD_INVALID for an address that cannot
 * be read, TD_IO when it cannot be bound. SIGPIPE is ignored from here on, in the whole process. */
int td_http_server_new(const struct td_http_server_options *options, struct td_http_server **ret,
                       struct td_error *err);

/* Close everything at once: every exchange that is not over gets its on_close. NULL is accepted. */
void td_http_server_free(struct td_http_server *server);

/* The port it really listens on. */
uint16_t td_http_server_port(const struct td_http_server *server);

/* Connections open now, those that only linger included. */
size_t td_http_server_connections(const struct td_http_server *server);

/* Use another certificate for new connections; those open go on with the old one. Only for a server
 * that was made with TLS. */
void td_http_server_set_tls(struct td_http_server *server, struct ssl_ctx_st *tls);

/* A finite answer; headers and body are copied. Date, Content-Length and Connection are added, and
 * those framing headers are left out where the caller gives them. No body is sent for HEAD and for
 * 204 and 304. The exchange is over. */
void td_http_reply(struct td_http_exchange *exchange, int status,
                   const struct td_http_header *headers, size_t header_count, td_str body);

/* Begin a stream: chunked, or for HTTP/1.0 ended by closing. A client that shuts down its sending
 * side keeps its claim to a finite answer but ends a stream (on_close). */
void td_http_reply_begin(struct td_http_exchange *exchange, int status,
                         const struct td_http_header *headers, size_t header_count);

/* The bytes are copied. Write only while td_http_exchange_pending_bytes is below
 * TD_HTTP_WRITE_HIGH_BYTES, and go on in on_drain. */
void td_http_reply_write(struct td_http_exchange *exchange, td_str bytes);

/* The same without a copy: the bytes stay as they are until release(arg) is called, exactly once,
 * possibly before this returns (small pieces are copied after all, and dropped ones are not
 * needed). `release` must not call into the server. */
void td_http_reply_write_ref(struct td_http_exchange *exchange, td_str bytes,
                             void (*release)(void *arg), void *arg);

/* The stream is complete; the exchange is over, what is pending is still sent. */
void td_http_reply_end(struct td_http_exchange *exchange);

/* Written to the exchange but not yet taken by the socket; 0 when the client is gone. */
size_t td_http_exchange_pending_bytes(const struct td_http_exchange *exchange);

typedef void (*td_http_exchange_fn)(struct td_http_exchange *exchange, void *context);

/* `drain` is called when something was sent and at most TD_HTTP_WRITE_LOW_BYTES are left; `close`
 * once, when the client went away before the end. Either may be NULL. May be set at any time of the
 * exchange; when the client is already gone, `close` is called in a later turn of the loop. */
void td_http_exchange_set_callbacks(struct td_http_exchange *exchange, td_http_exchange_fn drain,
                                    td_http_exchange_fn close, void *context);
