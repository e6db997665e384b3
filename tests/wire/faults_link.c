#include "faults_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>

#include "base/alloc.h"
#include "base/assert.h"

#define LINK_OPEN_TRIES 50
#define LINK_OPEN_PAUSE_US 100000

struct link_connection {
    struct link *link;
    struct link_connection *next;
    struct link_connection *previous;
    struct bufferevent *client;
    struct bufferevent *server; /* NULL before the first request that is handed on */
    struct event *pace;
    struct evbuffer *held; /* of a slow answer */
    bool has_certificate;
    bool is_list;          /* the request being answered */
    bool is_closing;       /* when everything is sent */
    bool is_struck;        /* the answer on its way counts as one of the plan's */
    struct link_plan plan; /* of the answer on its way */
    size_t passed;         /* bytes of it */
};

static void connection_free(struct link_connection *connection)
{
    struct link *link = connection->link;
    if (connection->previous) {
        connection->previous->next = connection->next;
    } else {
        link->first = connection->next;
    }
    if (connection->next) {
        connection->next->previous = connection->previous;
    }
    event_free(connection->pace);
    evbuffer_free(connection->held);
    bufferevent_free(connection->client);
    if (connection->server) {
        bufferevent_free(connection->server);
    }
    td_free(connection);
}

/* The fault has happened as a whole. */
static void connection_finish(struct link_connection *connection)
{
    if (connection->is_struck) {
        connection->link->finished++;
        connection->link->struck_at = td_clock_steady(&connection->link->clock);
        connection->link->is_timing = true;
    }
    connection->is_struck = false;
}

/* Closed once the client's side has taken everything. */
static void connection_close(struct link_connection *connection)
{
    if (evbuffer_get_length(bufferevent_get_output(connection->client)) > 0) {
        connection->is_closing = true;
        return;
    }
    if (connection->plan.fault == LINK_RESET) {
        const struct linger now = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(bufferevent_getfd(connection->client), SOL_SOCKET, SO_LINGER, &now,
                         sizeof(now));
    }
    connection_free(connection);
}

static void connection_more_headers(struct link_connection *connection)
{
    struct evbuffer *out = bufferevent_get_output(connection->client);
    for (int i = 0; i < 64; i++) {
        (void)evbuffer_add_printf(out, "X-Endless-%d: %0200d\r\n", i, i);
    }
}

static void client_wrote(struct bufferevent *stream, void *context)
{
    (void)stream;
    struct link_connection *connection = context;
    if (connection->is_closing) {
        connection_close(connection);
    } else if (connection->plan.fault == LINK_HEADERS) {
        connection_more_headers(connection);
    }
}

static void client_happened(struct bufferevent *stream, short what, void *context)
{
    struct link_connection *connection = context;
    if (what & BEV_EVENT_CONNECTED) {
        X509 *peer = SSL_get1_peer_certificate(bufferevent_openssl_get_ssl(stream));
        connection->has_certificate = peer != NULL;
        X509_free(peer);
        return;
    }
    if (connection->plan.fault == LINK_HEADERS || connection->plan.fault == LINK_SILENCE) {
        connection_finish(connection); /* the client had enough of it */
    }
    connection_free(connection);
}

/* ---- From the server to the client ---- */

static void pass_until(struct link_connection *connection, struct evbuffer *from)
{
    struct evbuffer *out = bufferevent_get_output(connection->client);
    size_t room = connection->plan.at - connection->passed;
    int moved = evbuffer_remove_buffer(from, out, room);
    connection->passed += moved > 0 ? (size_t)moved : 0;
    if (connection->passed < connection->plan.at) {
        return;
    }
    connection_finish(connection);
    connection_close(connection);
}

/* An event ends with its own line break and the chunk's: only there a chunk can be added. */
static bool ends_with_event(struct evbuffer *from)
{
    char tail[3];
    size_t len = evbuffer_get_length(from);
    struct evbuffer_ptr at;
    return len > sizeof(tail) &&
           evbuffer_ptr_set(from, &at, len - sizeof(tail), EVBUFFER_PTR_SET) == 0 &&
           evbuffer_copyout_from(from, &at, tail, sizeof(tail)) == (ssize_t)sizeof(tail) &&
           memcmp(tail, "\n\r\n", sizeof(tail)) == 0;
}

static void pass_on(struct link_connection *connection, struct evbuffer *from)
{
    struct evbuffer *out = bufferevent_get_output(connection->client);
    bool is_spoilt = connection->plan.fault == LINK_GARBAGE && ends_with_event(from);
    connection->passed += evbuffer_get_length(from);
    (void)evbuffer_add_buffer(out, from);
    if (is_spoilt) {
        td_str text = connection->plan.answer;
        (void)evbuffer_add_printf(out, "%zx\r\n%.*s\r\n", text.len, TD_STR_ARG(text));
        connection->plan = (struct link_plan){.fault = LINK_FINE};
        connection_finish(connection);
    }
    if (connection->is_list) {
        connection->link->list_bytes = connection->passed;
    }
}

static void drip(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct link_connection *connection = context;
    (void)evbuffer_remove_buffer(connection->held, bufferevent_get_output(connection->client),
                                 connection->plan.at);
    if (evbuffer_get_length(connection->held) > 0) {
        const struct timeval pause = {.tv_usec = 1000};
        (void)event_add(connection->pace, &pause);
    } else {
        connection_finish(connection);
    }
}

static void server_sent(struct bufferevent *stream, void *context)
{
    struct link_connection *connection = context;
    struct evbuffer *from = bufferevent_get_input(stream);
    char status[12];
    if (connection->is_closing) {
        (void)evbuffer_drain(from, evbuffer_get_length(from));
        return;
    }
    if (connection->passed == 0 &&
        evbuffer_copyout(from, status, sizeof(status)) == (ssize_t)sizeof(status) &&
        memcmp(status + 9, "401", 3) == 0) {
        connection->link->refused++;
    }
    switch (connection->plan.fault) {
    case LINK_CUT:
    case LINK_RESET:
        pass_until(connection, from);
        return;
    case LINK_DRIP:
        connection->passed += evbuffer_get_length(from);
        (void)evbuffer_add_buffer(connection->held, from);
        if (!evtimer_pending(connection->pace, NULL)) {
            drip(-1, 0, connection);
        }
        return;
    default:
        pass_on(connection, from);
        return;
    }
}

static void server_happened(struct bufferevent *stream, short what, void *context)
{
    (void)stream;
    if (!(what & BEV_EVENT_CONNECTED)) {
        connection_close(context);
    }
}

/* ---- From the client to the server ---- */

static void connection_dial(struct link_connection *connection)
{
    const struct link_upstream *upstream = connection->link->upstream;
    SSL_CTX *tls = connection->has_certificate ? upstream->with_certificate : upstream->without;
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(upstream->port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    SSL *ssl = SSL_new(tls);
    SSL_SESSION *session = SSL_CTX_get_app_data(tls);
    if (session) {
        (void)SSL_set_session(ssl, session);
    }
    connection->server =
        bufferevent_openssl_socket_new(connection->link->base, -1, ssl, BUFFEREVENT_SSL_CONNECTING,
                                       BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    td_assert(connection->server);
    bufferevent_setcb(connection->server, server_sent, NULL, server_happened, connection);
    (void)bufferevent_enable(connection->server, EV_READ | EV_WRITE);
    (void)bufferevent_socket_connect(connection->server, (const struct sockaddr *)&address,
                                     sizeof(address));
}

static bool contains(const char *text, size_t len, const char *part)
{
    return memmem(text, len, part, strlen(part)) != NULL;
}

static const char no_streams[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"Invalid\","
    "\"message\":\"sendInitialEvents is forbidden\",\"code\":422}\n";

static void choose_plan(struct link_connection *connection, const char *line, size_t len)
{
    struct link *link = connection->link;
    bool is_watch = contains(line, len, "watch=1");
    bool is_get = len > 4 && memcmp(line, "GET ", 4) == 0;
    connection->is_list = is_get && !is_watch;
    connection->passed = 0;
    connection->plan = (struct link_plan){.fault = LINK_FINE};
    connection->is_struck = false;
    if (link->is_timing) {
        td_duration pause = td_clock_steady(&link->clock) - link->struck_at;
        link->pause_min = pause < link->pause_min ? pause : link->pause_min;
        link->is_timing = false;
    }
    if (link->is_old && contains(line, len, "sendInitialEvents")) {
        connection->plan = (struct link_plan){.fault = LINK_OLD};
        return;
    }
    const struct link_plan *plan = &link->plan;
    bool is_meant = plan->match == LINK_ANY || (plan->match == LINK_WATCH ? is_watch : !is_watch);
    if (plan->fault != LINK_FINE && is_meant && (plan->count == 0 || link->struck < plan->count)) {
        link->struck++;
        connection->plan = *plan;
        connection->is_struck = true;
    }
}

/* Bytes of the whole request at the front, or 0. */
static size_t request_len(struct evbuffer *input, size_t *ret_line)
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
    *ret_line = (size_t)((const char *)memchr(text, '\r', head) - text);
    return head + body <= len ? head + body : 0;
}

static void answer_request(struct link_connection *connection, struct evbuffer *input, size_t len)
{
    struct evbuffer *out = bufferevent_get_output(connection->client);
    switch (connection->plan.fault) {
    case LINK_ANSWER:
        (void)evbuffer_drain(input, len);
        (void)evbuffer_add(out, connection->plan.answer.ptr, connection->plan.answer.len);
        connection_finish(connection);
        connection_close(connection);
        return;
    case LINK_SILENCE:
        (void)evbuffer_drain(input, len);
        return;
    case LINK_OLD:
        (void)evbuffer_drain(input, len);
        (void)evbuffer_add_printf(out,
                                  "HTTP/1.1 422 Unprocessable Entity\r\n"
                                  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                  strlen(no_streams), no_streams);
        return;
    case LINK_HEADERS:
        (void)evbuffer_drain(input, len);
        (void)evbuffer_add_printf(out, "HTTP/1.1 200 OK\r\n");
        return;
    default:
        break;
    }
    if (!connection->server) {
        connection_dial(connection);
    }
    (void)evbuffer_remove_buffer(input, bufferevent_get_output(connection->server), len);
}

static void client_sent(struct bufferevent *stream, void *context)
{
    struct link_connection *connection = context;
    struct evbuffer *input = bufferevent_get_input(stream);
    size_t line = 0;
    size_t len = request_len(input, &line);
    if (len == 0 || connection->is_closing) {
        return;
    }
    connection->link->requests++;
    choose_plan(connection, (const char *)evbuffer_pullup(input, -1), line);
    answer_request(connection, input, len);
}

/* ---- The listener ---- */

static void link_accept(struct evconnlistener *listener, evutil_socket_t fd,
                        struct sockaddr *address, int len, void *context)
{
    (void)listener;
    (void)address;
    (void)len;
    struct link *link = context;
    struct link_connection *connection = td_alloc_zero(1, sizeof(*connection));
    connection->link = link;
    connection->next = link->first;
    if (link->first) {
        link->first->previous = connection;
    }
    link->first = connection;
    link->connections++;
    connection->client = bufferevent_openssl_socket_new(
        link->base, fd, SSL_new(link->tls), BUFFEREVENT_SSL_ACCEPTING,
        BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    connection->pace = event_new(link->base, -1, 0, drip, connection);
    connection->held = evbuffer_new();
    td_assert(connection->client && connection->pace && connection->held);
    bufferevent_setcb(connection->client, client_sent, client_wrote, client_happened, connection);
    (void)bufferevent_enable(connection->client, EV_READ | EV_WRITE);
}

void link_open(struct link *link)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(link->port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    /* While it was closed a connection of another program may have got its port, for a moment. */
    for (int tries = 0; !link->listener && tries < LINK_OPEN_TRIES; tries++) {
        (void)usleep(tries > 0 ? LINK_OPEN_PAUSE_US : 0);
        link->listener = evconnlistener_new_bind(link->base, link_accept, link,
                                                 LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE |
                                                     LEV_OPT_CLOSE_ON_EXEC,
                                                 64, (struct sockaddr *)&address, sizeof(address));
    }
    td_assert(link->listener);
    socklen_t len = sizeof(address);
    int result =
        getsockname(evconnlistener_get_fd(link->listener), (struct sockaddr *)&address, &len);
    td_assert(result == 0);
    link->port = ntohs(address.sin_port);
}

void link_cut(struct link *link)
{
    while (link->first) {
        connection_free(link->first);
    }
}

void link_close(struct link *link)
{
    if (link->listener) {
        evconnlistener_free(link->listener);
    }
    link->listener = NULL;
    link_cut(link);
}

void link_set_tls(struct link *link, SSL_CTX *tls)
{
    (void)SSL_CTX_up_ref(tls);
    SSL_CTX_free(link->tls);
    link->tls = tls;
    link_cut(link);
}

void link_start(struct link *link, struct event_base *base, SSL_CTX *tls,
                const struct link_upstream *upstream)
{
    *link = (struct link){
        .base = base,
        .upstream = upstream,
        .clock = td_clock_real(),
        .pause_min = INT64_MAX,
    };
    link_set_tls(link, tls);
    link_open(link);
}

void link_stop(struct link *link)
{
    link_close(link);
    SSL_CTX_free(link->tls);
    link->tls = NULL;
}

void link_arm(struct link *link, const struct link_plan *plan, bool is_live)
{
    link->plan = *plan;
    link->struck = 0;
    link->finished = 0;
    link->is_timing = false;
    link->pause_min = INT64_MAX;
    for (struct link_connection *at = link->first; is_live && at; at = at->next) {
        link->struck++;
        at->plan = *plan;
        at->is_struck = true;
        at->passed = 0;
    }
}
