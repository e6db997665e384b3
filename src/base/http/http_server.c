/* The listening side: options, the socket, and the lists of what is open. */
#include "base/http/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/listener.h>
#include <openssl/ssl.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/http/http_internal.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/os/usage.h"

#define LISTEN_BACKLOG 1024
#define ACCEPT_DROPS 64        /* connections that make room when there are no descriptors */
#define ACCEPT_PAUSE_US 100000 /* out of descriptors: trying again at once would only spin */

void http_list_init(struct http_link *list)
{
    list->next = list;
    list->prev = list;
}

void http_list_add(struct http_link *list, struct http_link *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

void http_list_remove(struct http_link *link)
{
    if (!link->next) {
        return;
    }
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = NULL;
    link->prev = NULL;
}

bool http_list_is_empty(const struct http_link *list)
{
    return list->next == list;
}

static void server_on_accept(struct evconnlistener *listener, evutil_socket_t fd,
                             struct sockaddr *address, int address_len, void *context)
{
    (void)listener;
    (void)address_len;
    struct td_http_server *server = context;
    struct http_source *source = http_source_get(server, address);
    if (!http_admit_make_room(server, source)) {
        http_source_unref(server, source);
        (void)close(fd); /* nothing was written to it */
        return;
    }
    http_connection_start(server, fd, source);
}

static void server_on_accept_error(struct evconnlistener *listener, void *context)
{
    struct td_http_server *server = context;
    const struct timeval pause = {.tv_sec = 0, .tv_usec = ACCEPT_PAUSE_US};
    /* Out of descriptors, most likely: those that have said nothing make room. */
    for (size_t i = 0; i < ACCEPT_DROPS && http_admit_drop_oldest(server); i++) {
    }
    (void)evconnlistener_disable(listener); /* fails only without an event base */
    if (event_add(server->resume, &pause) != 0) {
        td_out_of_memory();
    }
}

static void server_on_resume(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct td_http_server *server = context;
    (void)evconnlistener_enable(server->listener); /* an error comes back to the error callback */
}

/* A close callback may end other exchanges, and so change the list: nothing is held across it. */
static void server_call_closes(struct td_http_server *server)
{
    server->is_in_callback = true;
    while (!http_list_is_empty(&server->closing)) {
        struct td_http_exchange *exchange = (struct td_http_exchange *)server->closing.next;
        http_list_remove(&exchange->link);
        exchange->is_over = true;
        exchange->on_close(exchange, exchange->context);
        http_exchange_free(exchange);
    }
    server->is_in_callback = false;
}

static void server_on_sweep(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    server_call_closes(context);
}

static size_t size_or(size_t value, size_t fallback)
{
    return value > 0 ? value : fallback;
}

static td_duration time_or(td_duration value, td_duration fallback_ms)
{
    return value > 0 ? value : fallback_ms * TD_MILLISECOND;
}

/* Two servers of a process, all their places taken, leave the descriptors that everything else
 * needs: health, files, connections to the API server. */
static size_t limits_connections(void)
{
    int64_t files = td_usage_files_max();
    int64_t most = (files - TD_FILES_RESERVED) / 2;
    most = most < TD_HTTP_CONNECTIONS_MIN ? TD_HTTP_CONNECTIONS_MIN : most;
    return most < (int64_t)TD_HTTP_CONNECTIONS_MAX ? (size_t)most : TD_HTTP_CONNECTIONS_MAX;
}

static struct td_http_limits limits_resolve(const struct td_http_limits *given)
{
    return (struct td_http_limits){
        .request = given->request, /* the parser has its own defaults */
        .connections_max = size_or(given->connections_max, limits_connections()),
        .bodies_bytes_max = size_or(given->bodies_bytes_max, TD_HTTP_BODIES_BYTES_MAX),
        .bodies_count_max = size_or(given->bodies_count_max, TD_HTTP_BODIES_COUNT_MAX),
        .handshake_time = time_or(given->handshake_time, TD_HTTP_HANDSHAKE_MS),
        .head_time = time_or(given->head_time, TD_HTTP_HEAD_MS),
        .body_time = time_or(given->body_time, TD_HTTP_BODY_MS),
        .body_period = time_or(given->body_period, TD_HTTP_BODY_PERIOD_MS),
        .idle_time = time_or(given->idle_time, TD_HTTP_IDLE_MS),
        .write_time = time_or(given->write_time, TD_HTTP_WRITE_MS),
        .linger_time = time_or(given->linger_time, TD_HTTP_LINGER_MS),
    };
}

/* "127.0.0.1:8080" or "[::1]:8080"; libevent's own reader refuses port 0. Returns the length of
 * what was read into *ret, 0 when it is no address. */
static socklen_t address_parse(td_str text, struct sockaddr_storage *ret)
{
    size_t colon = text.len;
    while (colon > 0 && text.ptr[colon - 1] != ':') {
        colon--;
    }
    td_str port_text = td_str_slice(text, colon, text.len);
    td_str host = td_str_slice(text, 0, colon > 0 ? colon - 1 : 0);
    bool is_wide = td_str_starts_with(host, TD_STR("[")) && td_str_ends_with(host, TD_STR("]"));
    host = is_wide ? td_str_slice(host, 1, host.len - 1) : host;
    int64_t port = -1;
    bool is_number = port_text.len > 0 && port_text.ptr[0] >= '0' && port_text.ptr[0] <= '9' &&
                     td_str_to_int64(port_text, &port);
    char host_text[INET6_ADDRSTRLEN];
    if (!is_number || port > UINT16_MAX || host.len >= sizeof(host_text)) {
        return 0;
    }
    (void)snprintf(host_text, sizeof(host_text), "%.*s", TD_STR_ARG(host)); /* fits: just checked */
    if (is_wide) {
        struct sockaddr_in6 *wide = (struct sockaddr_in6 *)ret;
        *wide = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        return inet_pton(AF_INET6, host_text, &wide->sin6_addr) == 1 ? sizeof(*wide) : 0;
    }
    struct sockaddr_in *narrow = (struct sockaddr_in *)ret;
    *narrow = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, host_text, &narrow->sin_addr) == 1 ? sizeof(*narrow) : 0;
}

static int server_listen(struct td_http_server *server, const char *address, struct td_error *err)
{
    struct sockaddr_storage place = {.ss_family = AF_UNSPEC};
    socklen_t place_len = address_parse(td_str_from(address), &place);
    if (place_len == 0) {
        return td_error_set(err, TD_INVALID,
                            "cannot read the address '%s': want one like '127.0.0.1:8080'",
                            address);
    }
    const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
    server->listener =
        evconnlistener_new_bind(server->base, server_on_accept, server, flags, LISTEN_BACKLOG,
                                (struct sockaddr *)&place, (int)place_len);
    if (!server->listener) {
        return td_error_set(err, TD_IO, "listen on '%s': %s", address, strerror(errno));
    }
    evconnlistener_set_error_cb(server->listener, server_on_accept_error);
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t bound_len = sizeof(bound);
    if (getsockname(evconnlistener_get_fd(server->listener), (struct sockaddr *)&bound,
                    &bound_len) != 0) {
        return td_error_set(err, TD_IO, "address of the listener on '%s': %s", address,
                            strerror(errno));
    }
    server->port =
        ntohs(bound.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&bound)->sin6_port
                                          : ((const struct sockaddr_in *)&bound)->sin_port);
    return TD_OK;
}

int td_http_server_new(const struct td_http_server_options *options, struct td_http_server **ret,
                       struct td_error *err)
{
    struct td_http_server *server = td_alloc_zero(1, sizeof(*server));
    server->loop = options->loop;
    server->base = td_loop_base(options->loop);
    server->handler = options->handler;
    server->context = options->context;
    server->limits = limits_resolve(&options->limits);
    server->real = td_clock_real();
    server->date_second = INT64_MIN;
    http_list_init(&server->connections);
    http_list_init(&server->fresh);
    td_map_init(&server->sources, SIZE_MAX / 2);
    http_list_init(&server->closing);
    http_list_init(&server->orphans);
    server->resume = event_new(server->base, -1, 0, server_on_resume, server);
    server->sweep = event_new(server->base, -1, 0, server_on_sweep, server);
    if (!server->resume || !server->sweep) {
        td_out_of_memory();
    }
    (void)signal(SIGPIPE, SIG_IGN); /* a client that is gone is an error of write, not our end */
    int result = server_listen(server, options->address, err);
    if (result != TD_OK) {
        td_http_server_free(server);
        return result;
    }
    if (options->tls) {
        td_assert(SSL_CTX_up_ref(options->tls) == 1);
        server->tls = options->tls;
    }
    *ret = server;
    return TD_OK;
}

void td_http_server_free(struct td_http_server *server)
{
    if (!server) {
        return;
    }
    td_assert(!server->is_in_callback);
    if (server->listener) {
        evconnlistener_free(server->listener);
    }
    while (!http_list_is_empty(&server->connections)) {
        struct http_connection *connection = (struct http_connection *)server->connections.next;
        /* libevent closes the descriptor in a later turn; the client is told now. */
        (void)shutdown(bufferevent_getfd(connection->io), SHUT_RDWR); /* may be closed already */
        http_connection_drop(connection);
    }
    server_call_closes(server);
    while (!http_list_is_empty(&server->orphans)) {
        struct td_http_exchange *exchange = (struct td_http_exchange *)server->orphans.next;
        http_list_remove(&exchange->link);
        http_exchange_free(exchange);
    }
    td_assert(server->sources.count == 0);
    td_map_done(&server->sources);
    event_free(server->resume);
    event_free(server->sweep);
    SSL_CTX_free(server->tls);
    td_free(server);
}

uint16_t td_http_server_port(const struct td_http_server *server)
{
    return server->port;
}

size_t td_http_server_connections(const struct td_http_server *server)
{
    return server->connection_count;
}

void td_http_server_set_tls(struct td_http_server *server, SSL_CTX *tls)
{
    td_assert(server->tls);
    td_assert(SSL_CTX_up_ref(tls) == 1);
    SSL_CTX_free(server->tls);
    server->tls = tls;
}
