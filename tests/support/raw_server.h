/*
 * A server of raw bytes for tests, on the loop of the test: it reads whole HTTP/1.1 requests and
 * writes what the test says, byte for byte, as far as the test says and as slowly. With a TLS
 * context it speaks TLS and knows the name in the client's certificate.
 */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/os/loop.h"
#include "base/str.h"

struct raw_reply {
    td_str bytes;      /* must stay as they are */
    size_t cut;        /* only so many are sent, then the connection is closed; SIZE_MAX: all */
    bool is_closed;    /* close behind the reply */
    unsigned pause_ms; /* between two bytes; 0: all at once */
};

struct raw_request {
    const char *text;  /* head and body, NUL-terminated */
    const char *user;  /* common name of the client's certificate, "" without one */
    size_t connection; /* which one since the start, from 0 */
};

typedef void (*raw_fn)(void *context, const struct raw_request *request, struct raw_reply *ret);

struct raw_connection;

struct raw_server {
    struct event_base *base;
    struct evconnlistener *listener;
    SSL_CTX *tls; /* borrowed; NULL: plain */
    unsigned short port;
    raw_fn fn;
    void *context;
    size_t connections; /* accepted */
    size_t open;
    size_t requests;
    struct raw_connection *first;
};

struct raw_connection {
    struct raw_server *server;
    struct raw_connection *next;
    struct bufferevent *stream;
    struct event *pace;
    size_t number;
    struct raw_reply reply; /* being sent slowly */
    size_t sent;
    bool is_closing;
    char user[128];
};

static inline void raw_close(struct raw_connection *connection)
{
    struct raw_connection **at = &connection->server->first;
    while (*at != connection) {
        at = &(*at)->next;
    }
    *at = connection->next;
    connection->server->open--;
    event_free(connection->pace);
    bufferevent_free(connection->stream);
    td_free(connection);
}

static inline void raw_wrote(struct bufferevent *stream, void *context)
{
    struct raw_connection *connection = context;
    if (connection->is_closing && evbuffer_get_length(bufferevent_get_output(stream)) == 0) {
        raw_close(connection);
    }
}

static inline void raw_happened(struct bufferevent *stream, short what, void *context)
{
    struct raw_connection *connection = context;
    if (what & BEV_EVENT_CONNECTED) {
        SSL *ssl = bufferevent_openssl_get_ssl(stream);
        X509 *peer = ssl ? SSL_get1_peer_certificate(ssl) : NULL;
        if (peer) {
            (void)X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName,
                                            connection->user, sizeof(connection->user));
            X509_free(peer);
        }
        return;
    }
    raw_close(connection);
}

static inline void raw_send(struct raw_connection *connection)
{
    const struct raw_reply *reply = &connection->reply;
    size_t len = reply->cut < reply->bytes.len ? reply->cut : reply->bytes.len;
    size_t now = reply->pause_ms > 0 && connection->sent < len ? 1 : len - connection->sent;
    connection->is_closing =
        (reply->is_closed || reply->cut != SIZE_MAX) && connection->sent + now == len;
    const char *from = reply->bytes.ptr + connection->sent;
    connection->sent += now;
    if (connection->sent < len) {
        struct timeval pause = {.tv_usec = (suseconds_t)reply->pause_ms * 1000};
        (void)event_add(connection->pace, &pause);
    }
    if (now > 0) {
        (void)bufferevent_write(connection->stream, from, now);
    } else if (connection->is_closing) {
        raw_close(connection);
    }
}

static inline void raw_paced(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    raw_send(context);
}

/* Bytes of one whole request at the front, or 0. */
static inline size_t raw_request_len(struct evbuffer *input)
{
    size_t len = evbuffer_get_length(input);
    const char *text = (const char *)evbuffer_pullup(input, -1);
    const char *end = len > 0 ? memmem(text, len, "\r\n\r\n", 4) : NULL;
    if (!end) {
        return 0;
    }
    size_t head = (size_t)(end - text) + 4;
    const char *length = memmem(text, head, "Content-Length: ", 16);
    size_t body = 0;
    for (const char *at = length ? length + 16 : end; *at >= '0' && *at <= '9'; at++) {
        body = body * 10 + (size_t)(*at - '0');
    }
    return head + body <= len ? head + body : 0;
}

static inline void raw_read(struct bufferevent *stream, void *context)
{
    struct raw_connection *connection = context;
    struct evbuffer *input = bufferevent_get_input(stream);
    size_t len = raw_request_len(input);
    if (len == 0 || connection->is_closing) {
        return;
    }
    char *text = td_alloc(len + 1);
    (void)evbuffer_remove(input, text, len);
    text[len] = '\0';
    const struct raw_request request = {text, connection->user, connection->number};
    connection->server->requests++;
    connection->reply = (struct raw_reply){.bytes = TD_STR_EMPTY, .cut = SIZE_MAX};
    connection->sent = 0;
    connection->server->fn(connection->server->context, &request, &connection->reply);
    td_free(text);
    raw_send(connection);
}

static inline void raw_accept(struct evconnlistener *listener, evutil_socket_t fd,
                              struct sockaddr *address, int len, void *context)
{
    (void)listener;
    (void)address;
    (void)len;
    struct raw_server *server = context;
    struct raw_connection *connection = td_alloc_zero(1, sizeof(*connection));
    connection->server = server;
    connection->number = server->connections++;
    connection->next = server->first;
    server->first = connection;
    server->open++;
    connection->stream =
        server->tls
            ? bufferevent_openssl_socket_new(server->base, fd, SSL_new(server->tls),
                                             BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE)
            : bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
    connection->pace = event_new(server->base, -1, 0, raw_paced, connection);
    bufferevent_setcb(connection->stream, raw_read, raw_wrote, raw_happened, connection);
    (void)bufferevent_enable(connection->stream, EV_READ | EV_WRITE);
}

static inline void raw_server_start(struct raw_server *server, struct td_loop *loop, SSL_CTX *tls,
                                    raw_fn fn, void *context)
{
    *server =
        (struct raw_server){.base = td_loop_base(loop), .tls = tls, .fn = fn, .context = context};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    server->listener = evconnlistener_new_bind(server->base, raw_accept, server,
                                               LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 16,
                                               (struct sockaddr *)&address, sizeof(address));
    td_assert(server->listener);
    socklen_t len = sizeof(address);
    int result =
        getsockname(evconnlistener_get_fd(server->listener), (struct sockaddr *)&address, &len);
    td_assert(result == 0);
    server->port = ntohs(address.sin_port);
}

static inline void raw_server_stop(struct raw_server *server)
{
    while (server->first) {
        raw_close(server->first);
    }
    if (server->listener) {
        evconnlistener_free(server->listener);
    }
    server->listener = NULL;
}
