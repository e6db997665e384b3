/* Streams: flow control towards slow readers, shared bytes that are given back once, many watchers,
 * and clients that leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/limits.h"
#include "support/http_bed.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define STREAMS_MAX 256
#define BLOCK_BYTES ((size_t)20000)

struct streams;

/* One stream: a source of blocks that is written while there is room. */
struct stream {
    struct streams *all;
    struct td_http_exchange *exchange; /* NULL once it is over */
    size_t blocks_left;
    int closes;
    int drains;
};

struct streams {
    struct stream items[STREAMS_MAX];
    int count;
    int closes;
    int ended;
    int references; /* handed out and not given back */
    int releases;
    size_t pending_bytes_max;
    size_t blocks; /* of each new stream; 0: it is left open */
    bool is_referring;
};

static char block[BLOCK_BYTES];

static void stream_release(void *arg)
{
    struct streams *all = arg;
    assert_true(all->references > 0);
    all->references--;
    all->releases++;
}

static void stream_pump(struct td_http_exchange *exchange, void *context)
{
    struct stream *stream = context;
    struct streams *all = stream->all;
    stream->drains++;
    if (stream->blocks_left == 0) {
        return; /* an endless one that has nothing to say */
    }
    while (stream->blocks_left > 0 &&
           td_http_exchange_pending_bytes(exchange) < TD_HTTP_WRITE_HIGH_BYTES) {
        td_str bytes = {.ptr = block, .len = BLOCK_BYTES};
        if (all->is_referring) {
            all->references++;
            td_http_reply_write_ref(exchange, bytes, stream_release, all);
        } else {
            td_http_reply_write(exchange, bytes);
        }
        stream->blocks_left--;
        size_t pending = td_http_exchange_pending_bytes(exchange);
        all->pending_bytes_max =
            pending > all->pending_bytes_max ? pending : all->pending_bytes_max;
    }
    if (stream->blocks_left == 0) {
        td_http_reply_end(exchange);
        stream->exchange = NULL;
        all->ended++;
    }
}

static void stream_close(struct td_http_exchange *exchange, void *context)
{
    struct stream *stream = context;
    assert_ptr_equal(stream->exchange, exchange);
    stream->exchange = NULL;
    stream->closes++;
    stream->all->closes++;
}

static void serve(struct td_http_exchange *exchange, const struct td_http_request *request,
                  void *context)
{
    struct streams *all = context;
    if (td_str_equal(request->target, TD_STR("/plain"))) {
        td_http_reply(exchange, 200, NULL, 0, TD_STR("plain"));
        return;
    }
    assert_true(all->count < STREAMS_MAX);
    struct stream *stream = &all->items[all->count++];
    *stream = (struct stream){.all = all, .exchange = exchange, .blocks_left = all->blocks};
    td_http_exchange_set_callbacks(exchange, stream_pump, stream_close, stream);
    td_http_reply_begin(exchange, 200, NULL, 0);
    stream_pump(exchange, stream);
}

static void start(struct bed *bed, struct streams *all)
{
    memset(block, 'b', sizeof(block));
    const struct td_http_server_options options = {.handler = serve, .context = all};
    bed_start(bed, &options);
}

#define WATCH TD_STR("GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")

/* Chunks with their sizes and the last one, then the next request; bare bytes for HTTP/1.0. */
static void test_http_stream_framing(void **state)
{
    (void)state;
    struct bed bed;
    struct streams all = {.count = 0};
    struct client client;
    start(&bed, &all);
    client_open(&bed, &client);
    client_send(&bed, &client, WATCH);
    client_expect(&bed, &client, "Transfer-Encoding: chunked\r\n\r\n");
    struct td_http_exchange *exchange = all.items[0].exchange;
    td_http_reply_write(exchange, TD_STR("one"));
    td_http_reply_write(exchange, TD_STR("")); /* would be the end */
    client_expect(&bed, &client, "\r\n\r\n3\r\none\r\n");
    td_http_reply_write(exchange, TD_STR("two and twenty"));
    td_http_reply_end(exchange);
    client_expect(&bed, &client, "\r\ne\r\ntwo and twenty\r\n0\r\n\r\n");
    client_send(&bed, &client, TD_STR("GET /plain HTTP/1.1\r\nHost: x\r\n\r\n"));
    client_expect(&bed, &client, "\r\n\r\nplain");
    client_send(&bed, &client, TD_STR("HEAD /watch HTTP/1.1\r\nHost: x\r\n\r\n"));
    client_expect_count(&bed, &client, "Transfer-Encoding: chunked\r\n\r\n", 2);
    td_http_reply_write(all.items[1].exchange, TD_STR("unseen"));
    td_http_reply_end(all.items[1].exchange);
    client_send(&bed, &client, TD_STR("GET /watch HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    bed_expect_count(&bed, &all.count, 3);
    td_http_reply_write(all.items[2].exchange, TD_STR("raw"));
    client_expect(&bed, &client, "Connection: close\r\n\r\nraw");
    td_http_reply_end(all.items[2].exchange);
    client_expect_end(&bed, &client);
    assert_false(client_has(&client, "unseen"));
    assert_int_equal(all.closes, 0);
    client_close(&client);
    bed_stop(&bed);
}

struct slow {
    struct client *client;
    struct streams *all;
};

static bool slow_has_ended(void *arg)
{
    struct slow *slow = arg;
    client_read(slow->client, 100000); /* of what a millisecond could bring */
    return slow->client->in.len > 10 &&
           memcmp(slow->client->in.ptr + slow->client->in.len - 5, "0\r\n\r\n", 5) == 0;
}

/* 20 MB to a slow reader, copied and referred to: the server never holds more than a little above
 * the high-water mark, all bytes arrive, and every reference comes back once. */
static void test_http_stream_flow_control(void **state)
{
    (void)state;
    for (int is_referring = 0; is_referring < 2; is_referring++) {
        struct bed bed;
        struct streams all = {.blocks = 1000, .is_referring = is_referring};
        struct client client;
        start(&bed, &all);
        client_open_sized(&bed, &client, NULL, 16384);
        client_send(&bed, &client, WATCH);
        struct slow slow = {.client = &client, .all = &all};
        assert_true(bed_until(&bed, slow_has_ended, &slow));
        assert_int_equal(text_count(td_buf_str(&client.in), TD_STR("4e20\r\nb")), 1000);
        assert_true(client.in.len > 1000 * BLOCK_BYTES);
        assert_true(all.items[0].drains > 10);
        assert_true(all.pending_bytes_max < TD_HTTP_WRITE_HIGH_BYTES + BLOCK_BYTES + 64);
        assert_int_equal(all.releases, is_referring ? 1000 : 0);
        assert_int_equal(all.references, 0);
        client_close(&client);
        bed_stop(&bed);
        assert_int_equal(all.closes, 0);
    }
}

/* References are given back exactly once: sent, small, dropped for HEAD, of a client that leaves,
 * after it left, and when the server is freed. */
static void test_http_stream_references_come_back_once(void **state)
{
    (void)state;
    struct bed bed;
    struct streams all = {.count = 0};
    struct client clients[3];
    start(&bed, &all);
    for (size_t i = 0; i < 3; i++) {
        client_open_sized(&bed, &clients[i], NULL, 4096);
    }
    client_send(&bed, &clients[0], TD_STR("HEAD /watch HTTP/1.1\r\nHost: x\r\n\r\n"));
    bed_expect_count(&bed, &all.count, 1);
    client_send(&bed, &clients[1], WATCH);
    bed_expect_count(&bed, &all.count, 2);
    client_send(&bed, &clients[2], WATCH);
    bed_expect_count(&bed, &all.count, 3);
    const td_str bytes = {.ptr = block, .len = BLOCK_BYTES};
    all.references = 1000;
    td_http_reply_write_ref(all.items[0].exchange, bytes, stream_release, &all);
    td_http_reply_write_ref(all.items[1].exchange, TD_STR("small"), stream_release, &all);
    td_http_reply_write_ref(all.items[1].exchange, TD_STR(""), stream_release, &all);
    assert_int_equal(all.releases, 3);
    for (size_t i = 0; i < 400; i++) { /* 8 MB: more than sockets hold */
        td_http_reply_write_ref(all.items[1].exchange, bytes, stream_release, &all);
        td_http_reply_write_ref(all.items[2].exchange, bytes, stream_release, &all);
    }
    bed_run(&bed, 30);
    assert_true(all.releases > 3);
    assert_true(all.releases < 803);
    client_close(&clients[1]);
    bed_expect_count(&bed, &all.closes, 1);
    assert_int_equal(all.items[1].closes, 1);
    assert_true(all.releases >= 403);
    td_http_server_free(bed.server);
    bed.server = NULL;
    assert_int_equal(all.releases, 803);
    assert_int_equal(all.closes, 3);
    client_close(&clients[0]);
    client_close(&clients[2]);
    bed_stop(&bed);
    assert_int_equal(all.releases, 803);
}

/* A client that goes away: on_close once, also with much unsent, and writes before it are dropped.
 */
static void test_http_stream_client_leaves(void **state)
{
    (void)state;
    static const struct {
        size_t bytes; /* unsent when it leaves */
        bool is_reset;
        bool is_half_closed;
    } rows[] = {
        {0, false, false},       {0, true, false},       {0, false, true},
        {8 << 20, false, false}, {8 << 20, true, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed;
        struct streams all = {.count = 0};
        struct client client;
        start(&bed, &all);
        client_open_sized(&bed, &client, NULL, 4096);
        client_send(&bed, &client, WATCH);
        client_expect(&bed, &client, "chunked\r\n\r\n");
        for (size_t n = 0; n < rows[i].bytes / BLOCK_BYTES; n++) {
            td_http_reply_write(all.items[0].exchange, (td_str){.ptr = block, .len = BLOCK_BYTES});
        }
        bed_run(&bed, 5);
        if (rows[i].is_half_closed) {
            (void)shutdown(client.fd, SHUT_WR);
            client_expect_end(&bed, &client);
        } else {
            const struct linger at_once = {.l_onoff = rows[i].is_reset, .l_linger = 0};
            (void)setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
            client_close(&client);
        }
        bed_expect_count(&bed, &all.closes, 1);
        bed_run(&bed, 20);
        assert_int_equal(all.closes, 1);
        assert_int_equal(td_http_server_connections(bed.server), 0);
        client_close(&client);
        bed_stop(&bed);
        assert_int_equal(all.closes, 1);
    }
}

/* A long finite stream reaches a client that has shut down its side: there is always something left
 * to send until its end. */
static void test_http_stream_finite_for_half_closed(void **state)
{
    (void)state;
    struct bed bed;
    struct streams all = {.blocks = 300};
    struct client client;
    start(&bed, &all);
    client_open_sized(&bed, &client, NULL, 16384);
    client_send(&bed, &client, WATCH);
    (void)shutdown(client.fd, SHUT_WR);
    client_expect_end(&bed, &client);
    assert_int_equal(text_count(td_buf_str(&client.in), TD_STR("4e20\r\nb")), 300);
    assert_true(client_has(&client, "0\r\n\r\n"));
    assert_int_equal(all.ended, 1);
    assert_int_equal(all.closes, 0);
    client_close(&client);
    bed_stop(&bed);
}

/* 200 watchers of 50 shared events: each gets all, and the bytes exist once. */
static void test_http_stream_many_watchers(void **state)
{
    (void)state;
    struct bed bed;
    struct streams all = {.count = 0};
    static struct client clients[200];
    start(&bed, &all);
    for (size_t i = 0; i < COUNT(clients); i++) {
        client_open(&bed, &clients[i]);
        client_send(&bed, &clients[i], WATCH);
    }
    bed_expect_count(&bed, &all.count, COUNT(clients));
    const td_str event = {.ptr = block, .len = 2000};
    for (size_t n = 0; n < 50; n++) {
        for (size_t i = 0; i < COUNT(clients); i++) {
            all.references++;
            td_http_reply_write_ref(all.items[i].exchange, event, stream_release, &all);
        }
        bed_run(&bed, 1);
    }
    for (size_t i = 0; i < COUNT(clients); i++) {
        client_expect_count(&bed, &clients[i], "7d0\r\nb", 50);
        td_http_reply_end(all.items[i].exchange);
    }
    for (size_t i = 0; i < COUNT(clients); i++) {
        client_expect(&bed, &clients[i], "\r\n0\r\n\r\n");
        client_close(&clients[i]);
    }
    assert_int_equal(all.references, 0);
    assert_int_equal(all.closes, 0);
    bed_stop(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_stream_framing),
        cmocka_unit_test(test_http_stream_flow_control),
        cmocka_unit_test(test_http_stream_references_come_back_once),
        cmocka_unit_test(test_http_stream_client_leaves),
        cmocka_unit_test(test_http_stream_finite_for_half_closed),
        cmocka_unit_test(test_http_stream_many_watchers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
