/* A server and its clients in one process, on one loop: clients are sockets that never block, and a
 * test runs the loop until what it waits for has happened. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/http/http_server.h"
#include "base/os/clock.h"
#include "base/os/loop.h"

#define BED_RECEIVED_BYTES ((size_t)256 << 20)
#define BED_TURNS 20000 /* of a millisecond each, before a wait is given up */
#define BED_TEXT_BYTES 4096

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct td_http_server *server;
    struct td_timer *tick;
    bool (*condition)(void *arg);
    void *arg;
    int turns_left;
    bool is_met;
};

struct client {
    int fd;
    SSL *ssl; /* NULL: plain */
    struct td_buf in;
    bool is_ended;  /* the server has shut down its side */
    bool is_broken; /* reset, or TLS failed */
};

static inline void bed_on_tick(struct td_timer *timer, void *context)
{
    struct bed *bed = context;
    bed->turns_left--;
    bed->is_met = bed->condition && bed->condition(bed->arg);
    if (bed->is_met || bed->turns_left <= 0) {
        td_loop_stop(bed->loop);
    } else {
        td_timer_set(timer, TD_MILLISECOND);
    }
}

static inline void bed_start(struct bed *bed, const struct td_http_server_options *options)
{
    *bed = (struct bed){.clock = td_clock_real()};
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, NULL), TD_OK);
    bed->tick = td_timer_new(bed->loop, bed_on_tick, bed);
    struct td_http_server_options own = *options;
    own.loop = bed->loop;
    own.address = own.address ? own.address : "127.0.0.1:0";
    assert_int_equal(td_http_server_new(&own, &bed->server, NULL), TD_OK);
}

static inline void bed_stop(struct bed *bed)
{
    td_http_server_free(bed->server);
    td_timer_free(bed->tick);
    td_loop_free(bed->loop);
}

/* Run until the condition holds; false when that takes too long. */
static inline bool bed_until(struct bed *bed, bool (*condition)(void *arg), void *arg)
{
    bed->condition = condition;
    bed->arg = arg;
    bed->turns_left = BED_TURNS;
    bed->is_met = false;
    td_timer_set(bed->tick, 0);
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
    td_timer_stop(bed->tick);
    return bed->is_met;
}

static inline void bed_run(struct bed *bed, int milliseconds)
{
    bed->condition = NULL;
    bed->turns_left = milliseconds;
    td_timer_set(bed->tick, TD_MILLISECOND);
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
}

/* `from` is an address of the loopback, all of 127/8, or 0 for the usual one. */
static inline void client_connect_from(struct client *client, uint32_t from, uint16_t port,
                                       SSL_CTX *tls, int receive_bytes)
{
    *client = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(client->fd >= 0);
    if (from != 0) {
        const struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
        assert_int_equal(bind(client->fd, (const struct sockaddr *)&own, sizeof(own)), 0);
    }
    td_buf_init(&client->in, BED_RECEIVED_BYTES);
    if (receive_bytes > 0) {
        assert_int_equal(
            setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes)),
            0);
    }
    struct sockaddr_in place = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    assert_int_equal(connect(client->fd, (struct sockaddr *)&place, sizeof(place)), 0);
    assert_int_equal(fcntl(client->fd, F_SETFL, O_NONBLOCK), 0);
    if (tls) {
        client->ssl = SSL_new(tls);
        assert_non_null(client->ssl);
        SSL_set_fd(client->ssl, client->fd);
        SSL_set_connect_state(client->ssl);
        SSL_set_mode(client->ssl,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    }
}

static inline void client_connect(struct client *client, uint16_t port, SSL_CTX *tls,
                                  int receive_bytes)
{
    client_connect_from(client, 0, port, tls, receive_bytes);
}

static inline void client_open_sized(struct bed *bed, struct client *client, SSL_CTX *tls,
                                     int receive_bytes)
{
    client_connect(client, td_http_server_port(bed->server), tls, receive_bytes);
}

static inline void client_open(struct bed *bed, struct client *client)
{
    client_open_sized(bed, client, NULL, 0);
}

static inline void client_close(struct client *client)
{
    SSL_free(client->ssl);
    if (client->fd >= 0) {
        (void)close(client->fd);
    }
    td_buf_done(&client->in);
    client->fd = -1;
}

/* Bytes moved, 0 when it would block, -1 at the end or after a failure. */
static inline ssize_t client_read_once(struct client *client, char *bytes, size_t len)
{
    ssize_t count;
    if (client->ssl) {
        ERR_clear_error();
        count = SSL_read(client->ssl, bytes, (int)len);
        int problem = count > 0 ? SSL_ERROR_NONE : SSL_get_error(client->ssl, (int)count);
        bool is_blocked = problem == SSL_ERROR_WANT_READ || problem == SSL_ERROR_WANT_WRITE;
        client->is_ended = client->is_ended || problem == SSL_ERROR_ZERO_RETURN;
        client->is_broken =
            client->is_broken || (count <= 0 && !is_blocked && problem != SSL_ERROR_ZERO_RETURN);
        return count > 0 ? count : is_blocked ? 0 : -1;
    }
    count = read(client->fd, bytes, len);
    bool is_blocked = count < 0 && errno == EAGAIN;
    client->is_ended = client->is_ended || count == 0;
    client->is_broken = client->is_broken || (count < 0 && !is_blocked);
    return count > 0 ? count : is_blocked ? 0 : -1;
}

/* Take what has arrived, at most `bytes_max`. */
static inline void client_read(struct client *client, size_t bytes_max)
{
    static char bytes[65536];
    while (bytes_max > 0 && !client->is_ended && !client->is_broken) {
        size_t len = bytes_max < sizeof(bytes) ? bytes_max : sizeof(bytes);
        ssize_t count = client_read_once(client, bytes, len);
        if (count <= 0) {
            return;
        }
        bytes_max -= (size_t)count;
        assert_int_equal(td_buf_append(&client->in, (td_str){.ptr = bytes, .len = (size_t)count}),
                         0);
    }
}

/* Something to wait for. */
struct want {
    struct client *client;
    td_str text;  /* to be sent, or to be received */
    size_t at;    /* sent so far */
    size_t count; /* how often the text is to be there */
    const int *number;
    int value;
};

static inline size_t text_count(td_str text, td_str part)
{
    size_t count = 0;
    for (size_t at = 0; at + part.len <= text.len; at++) {
        const char *found = memmem(text.ptr + at, text.len - at, part.ptr, part.len);
        if (!found) {
            break;
        }
        count++;
        at = (size_t)(found - text.ptr);
    }
    return count;
}

static inline bool want_is_sent(void *arg)
{
    struct want *want = arg;
    struct client *client = want->client;
    while (want->at < want->text.len) {
        const char *from = want->text.ptr + want->at;
        size_t len = want->text.len - want->at;
        ssize_t count;
        if (client->ssl) {
            ERR_clear_error();
            count = SSL_write(client->ssl, from, (int)len);
            int problem = count > 0 ? SSL_ERROR_NONE : SSL_get_error(client->ssl, (int)count);
            if (problem == SSL_ERROR_WANT_READ || problem == SSL_ERROR_WANT_WRITE) {
                return false;
            }
        } else {
            count = send(client->fd, from, len, MSG_NOSIGNAL);
            if (count < 0 && errno == EAGAIN) {
                return false;
            }
        }
        if (count <= 0) {
            client->is_broken = true;
            return true;
        }
        want->at += (size_t)count;
    }
    return true;
}

static inline bool want_is_received(void *arg)
{
    struct want *want = arg;
    client_read(want->client, BED_RECEIVED_BYTES);
    return text_count(td_buf_str(&want->client->in), want->text) >= want->count;
}

static inline bool want_has_ended(void *arg)
{
    struct want *want = arg;
    client_read(want->client, BED_RECEIVED_BYTES);
    return want->client->is_ended || want->client->is_broken;
}

static inline bool want_is_counted(void *arg)
{
    struct want *want = arg;
    return *want->number >= want->value;
}

static inline void client_send(struct bed *bed, struct client *client, td_str text)
{
    struct want want = {.client = client, .text = text};
    assert_true(bed_until(bed, want_is_sent, &want));
}

static inline void client_expect_count(struct bed *bed, struct client *client, const char *text,
                                       size_t count)
{
    struct want want = {.client = client, .text = td_str_from(text), .count = count};
    if (!bed_until(bed, want_is_received, &want)) {
        fail_msg("'%s' did not come %zu times, but: %.*s", text, count,
                 TD_STR_ARG(td_str_slice(td_buf_str(&client->in), 0, BED_TEXT_BYTES)));
    }
}

static inline void client_expect(struct bed *bed, struct client *client, const char *text)
{
    client_expect_count(bed, client, text, 1);
}

/* The server closes, and in an orderly way. */
static inline void client_expect_end(struct bed *bed, struct client *client)
{
    struct want want = {.client = client};
    assert_true(bed_until(bed, want_has_ended, &want));
    assert_false(client->is_broken);
}

static inline void bed_expect_count(struct bed *bed, const int *number, int value)
{
    struct want want = {.number = number, .value = value};
    assert_true(bed_until(bed, want_is_counted, &want));
}

static inline bool client_has(const struct client *client, const char *text)
{
    return text_count(td_buf_str(&client->in), td_str_from(text)) > 0;
}

static inline int bed_status(const struct client *client)
{
    const char *text = td_buf_str(&client->in).ptr;
    return client->in.len > 12 && memcmp(text, "HTTP/1.1 ", 9) == 0
               ? (text[9] - '0') * 100 + (text[10] - '0') * 10 + text[11] - '0'
               : 0;
}
