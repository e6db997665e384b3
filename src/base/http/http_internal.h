/*
 * What the files of the HTTP server share: the server, its connections and their exchanges. A
 * connection owns its socket and is freed only from the loop's callbacks, never from a call of the
 * handler's side. An exchange outlives its connection when the client goes away first; it then owns
 * the request and waits in one of the server's two lists for its on_close or for its user's end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/arena.h"
#include "base/http/http_server.h"
#include "base/map.h"
#include "base/os/clock.h"

struct http_source; /* http_admit.c */
struct sockaddr;
struct ssl_st;

/* A ring with a head of its own. First member of what is linked, so that a link is its owner. */
struct http_link {
    struct http_link *next;
    struct http_link *prev;
};

enum http_phase {
    HTTP_HANDSHAKE,
    HTTP_IDLE,   /* between two requests */
    HTTP_HEAD,   /* the head of a request, or nothing yet on a new connection */
    HTTP_BODY,   /* the body of a request */
    HTTP_ANSWER, /* the exchange is with the handler's side */
    HTTP_FLUSH,  /* the answer is complete, but not all sent */
    HTTP_LINGER, /* nothing more will be sent; the client may still be sending */
};

/* The verified client certificate of a connection. */
struct http_peer {
    struct td_arena arena;
    td_str name;
    td_str *organizations;
    size_t organization_count;
};

struct http_connection {
    struct http_link link;
    struct http_link fresh; /* in the server's unproven ones */
    struct http_link kin;   /* in its source's */
    struct http_source *source;
    bool is_proven; /* a whole request has come over it */
    struct td_http_server *server;
    struct bufferevent *io;
    struct event *timer; /* the phase's deadline */
    enum http_phase phase;
    bool is_last;         /* no request is served after the one in hand; input is thrown away */
    bool has_input_ended; /* the client has shut down its sending side */
    bool is_read_paused;
    bool has_continued; /* 100 Continue was sent */
    bool is_tls;
    struct td_http1 *parser;           /* owned, until an exchange takes it */
    struct http_peer *peer;            /* owned, until an exchange takes it; NULL without one */
    struct td_http_exchange *exchange; /* owned; also while its answer is flushed */
    size_t body_bytes;                 /* its part of the server's bodies_bytes */
    size_t period_bytes;               /* of the body, in this period */
    size_t discarded_bytes;
    td_duration body_end;    /* steady real time by which the body must be there */
    td_duration progress_at; /* steady real time when the socket last took something */
};

struct td_http_exchange {
    struct http_link link;              /* in `closing` or `orphans` once the client is gone */
    struct td_http_server *server;      /* borrowed */
    struct http_connection *connection; /* NULL once the client is gone */
    struct http_source *source;
    struct td_http_request request;
    bool is_keep_alive; /* by the request */
    bool is_begun;
    bool is_chunked;
    bool is_bodiless; /* HEAD, 204, 304: what is written is dropped */
    bool is_over;
    td_http_exchange_fn on_drain;
    td_http_exchange_fn on_close;
    void *context;
    struct td_http1 *parser; /* owned here once the client is gone */
    struct http_peer *peer;
    size_t body_bytes;
};

#define HTTP_DATE_BYTES 32

struct td_http_server {
    struct td_loop *loop;
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *resume; /* accepts again after a failure to accept */
    struct event *sweep;  /* calls on_close */
    struct ssl_ctx_st *tls;
    td_http_handler_fn handler;
    void *context;
    struct td_http_limits limits;
    struct td_clock real; /* for deadlines, whatever the loop's clock is */
    struct http_link connections;
    struct http_link fresh;   /* those that are unproven, the oldest first */
    struct td_map sources;    /* address to struct http_source */
    struct http_link closing; /* exchanges whose client is gone and whose on_close is due */
    struct http_link orphans; /* the same without an on_close */
    size_t connection_count;
    size_t bodies_bytes;
    size_t bodies_count; /* requests that have a body, or a part of it */
    uint16_t port;
    bool is_in_callback;
    int64_t date_second; /* of `date`, so that it is written once a second */
    char date[HTTP_DATE_BYTES];
};

void http_list_init(struct http_link *list);
void http_list_add(struct http_link *list, struct http_link *link);
void http_list_remove(struct http_link *link);
bool http_list_is_empty(const struct http_link *list);

/* ---- http_admit.c: who is let in ---- */

/* The source of an address; a reference for the caller. */
struct http_source *http_source_get(struct td_http_server *server, const struct sockaddr *address);
struct http_source *http_source_ref(struct http_source *source);
void http_source_unref(struct td_http_server *server, struct http_source *source);

/* Make a place for a new connection of the source, at the cost of unproven ones; false: there is
 * none. */
bool http_admit_make_room(struct td_http_server *server, struct http_source *source);
/* Close the oldest unproven connection; false: there is none. */
bool http_admit_drop_oldest(struct td_http_server *server);
void http_admit_add(struct http_connection *connection);
void http_admit_prove(struct http_connection *connection);
/* The connection goes, and with it its reference of the source. */
void http_admit_remove(struct http_connection *connection);

/* A request's body had `before` bytes and has `now`. */
void http_admit_count_body(struct td_http_server *server, struct http_source *source, size_t before,
                           size_t now);
/* May the source go on with what it sends? */
bool http_admit_has_budget(const struct td_http_server *server, const struct http_source *source);

/* ---- The others ---- */

/* Serve an accepted socket, which is taken in any case, as is the reference of its source. */
void http_connection_start(struct td_http_server *server, evutil_socket_t fd,
                           struct http_source *source);

/* Close at once; an open exchange goes to the server's lists. */
void http_connection_drop(struct http_connection *connection);

/* Bytes were or are about to be put into the output: watch that the client takes them. */
void http_connection_wrote(struct http_connection *connection);

/* The answer is complete: send what is left, then the next request or the end. */
void http_connection_finish(struct http_connection *connection, bool is_last);

/* Begin an exchange for the request that the parser holds. */
struct td_http_exchange *http_exchange_new(struct http_connection *connection);
void http_exchange_free(struct td_http_exchange *exchange);

/* A short plain-text answer of the server's own, with "Connection: close". */
void http_reply_problem(struct http_connection *connection, int status, const char *problem);

/* The subject of the client's certificate, or NULL when none was verified. */
struct http_peer *http_peer_new(struct ssl_st *ssl);
void http_peer_free(struct http_peer *peer);

/* The socket sends plain HTTP where TLS was expected. Looks at the errors of this thread's last TLS
 * call, given as OpenSSL's packed code. */
bool http_tls_is_plain_request(unsigned long code);
