/* The HTTP server with finite answers: order, framing, refusals that can be read, deadlines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "base/limits.h"
#include "support/http_bed.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define LATER_MAX 8

/* What the handler saw, and the exchanges that it has not answered yet. */
struct seen {
    int requests;
    int closes;
    size_t body_bytes;
    char targets[256]; /* one after another */
    struct td_http_exchange *later[LATER_MAX];
    int later_count;
};

static void count_close(struct td_http_exchange *exchange, void *context)
{
    (void)exchange;
    struct seen *seen = context;
    seen->closes++;
}

/* /later waits, /watched too and wants to know when the client goes, /echo gives the body back, and
 * others a fixed text. */
static void serve(struct td_http_exchange *exchange, const struct td_http_request *request,
                  void *context)
{
    struct seen *seen = context;
    seen->requests++;
    seen->body_bytes += request->body.len;
    size_t used = strlen(seen->targets);
    (void)snprintf(seen->targets + used, sizeof(seen->targets) - used, "%.*s",
                   TD_STR_ARG(request->target));
    assert_false(request->is_tls);
    assert_false(request->has_peer);
    const struct td_http_header headers[] = {
        {TD_STR("Content-Type"), TD_STR("text/plain")},
        {TD_STR("X-Split"), TD_STR("a\r\nSet-Cookie: b")},
        {TD_STR("Content-Length"), TD_STR("999")},
    };
    if (td_str_starts_with(request->target, TD_STR("/later")) ||
        td_str_starts_with(request->target, TD_STR("/watched"))) {
        assert_true(seen->later_count < LATER_MAX);
        seen->later[seen->later_count++] = exchange;
        if (request->target.ptr[1] == 'w') {
            td_http_exchange_set_callbacks(exchange, NULL, count_close, seen);
        }
    } else if (td_str_equal(request->target, TD_STR("/none"))) {
        td_http_reply(exchange, 204, NULL, 0, TD_STR("not sent"));
    } else if (td_str_equal(request->target, TD_STR("/echo"))) {
        td_http_reply(exchange, 200, headers, 1, request->body);
    } else {
        td_http_reply(exchange, 200, headers, COUNT(headers), TD_STR("hello"));
    }
}

static void start(struct bed *bed, struct seen *seen, const struct td_http_limits *limits)
{
    *seen = (struct seen){.requests = 0};
    struct td_http_server_options options = {.handler = serve, .context = seen};
    if (limits) {
        options.limits = *limits;
    }
    bed_start(bed, &options);
}

static void answer(struct seen *seen, int place, const char *text)
{
    td_http_reply(seen->later[place], 200, NULL, 0, td_str_from(text));
}

/* Two requests on one connection, with the server's own headers and none that splits the answer. */
static void test_http_server_keeps_connections(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    struct client client;
    start(&bed, &seen, NULL);
    client_open(&bed, &client);
    client_send(&bed, &client, TD_STR("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
    client_expect(&bed, &client, "\r\n\r\nhello");
    assert_true(client_has(&client, "HTTP/1.1 200 OK\r\nDate: "));
    assert_true(client_has(&client, " GMT\r\nContent-Type: text/plain\r\n"));
    assert_true(client_has(&client, "\r\nX-Split: a  Set-Cookie: b\r\nContent-Length: 5\r\n\r\n"));
    assert_false(client_has(&client, "Connection:"));
    client_send(&bed, &client,
                TD_STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
    client_expect(&bed, &client, "\r\n\r\nabc");
    assert_int_equal(td_http_server_connections(bed.server), 1);
    client_close(&client);
    bed_run(&bed, 20);
    assert_int_equal(td_http_server_connections(bed.server), 0);
    assert_string_equal(seen.targets, "/a/echo");
    bed_stop(&bed);
}

/* Beside the date it says how fast its clock goes, where that is not the usual speed. */
static void test_http_server_says_how_fast_its_clock_goes(void **state)
{
    (void)state;
    static const struct {
        double speed;
        const char *says;
    } rows[] = {{1.5, " GMT\r\nClock-Speed: 1.5\r\nContent-Type: "},
                {0.125, " GMT\r\nClock-Speed: 0.125\r\nContent-Type: "},
                {1, " GMT\r\nContent-Type: "}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed;
        struct seen seen;
        struct client client;
        start(&bed, &seen, NULL);
        client_open(&bed, &client);
        td_loop_set_speed(bed.loop, rows[i].speed);
        client_send(&bed, &client, TD_STR("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
        client_expect(&bed, &client, "\r\n\r\nhello");
        assert_true(client_has(&client, rows[i].says));
        client_close(&client);
        bed_stop(&bed);
    }
}

/* Requests sent in one go are answered in order, also when the first is answered last. */
static void test_http_server_serves_pipelined_requests_in_order(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    struct client client;
    start(&bed, &seen, NULL);
    client_open(&bed, &client);
    client_send(&bed, &client,
                TD_STR("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
                       "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nsecond"
                       "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
                       "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                       "GET /never HTTP/1.1\r\nHost: x\r\n\r\n"));
    bed_expect_count(&bed, &seen.later_count, 1);
    bed_run(&bed, 20);
    assert_int_equal(seen.requests, 1);
    answer(&seen, 0, "first");
    bed_expect_count(&bed, &seen.later_count, 2);
    answer(&seen, 1, "third");
    client_expect_end(&bed, &client);
    const char *first = strstr(client.in.ptr, "first");
    const char *second = strstr(client.in.ptr, "second");
    const char *third = strstr(client.in.ptr, "third");
    assert_true(first && second && third && first < second && second < third);
    assert_true(client_has(&client, "Connection: close\r\n\r\nhello"));
    assert_string_equal(seen.targets, "/later/echo/later/end");
    client_close(&client);
    bed_stop(&bed);
}

/* A client that sends far more than it may ahead is slowed down, not buffered, and all is served.
 */
static void test_http_server_reads_ahead_only_so_far(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    struct client client;
    start(&bed, &seen, NULL);
    client_open(&bed, &client);
    td_auto_buf text;
    td_buf_init(&text, (size_t)8 << 20);
    const size_t count = 60;
    (void)td_buf_append(&text, TD_STR("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append(
            &text, TD_STR("POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"));
        memset(td_buf_reserve(&text, 100000), 'x', 100000);
        td_buf_commit(&text, 100000);
    }
    struct want want = {.client = &client, .text = td_buf_str(&text)};
    bed_expect_count(&bed, &seen.later_count, 0);
    (void)want_is_sent(&want);
    bed_run(&bed, 50);
    (void)want_is_sent(&want);
    bed_run(&bed, 50);
    assert_true(want.at < text.len); /* sockets hold a part, the server does not take the rest */
    answer(&seen, 0, "ok");
    assert_true(bed_until(&bed, want_is_sent, &want));
    client_expect_count(&bed, &client, "\r\n\r\nhello", count);
    assert_int_equal(seen.body_bytes, count * 100000);
    client_close(&client);
    bed_stop(&bed);
}

/* The head of the answer decides what a client reads on: versions, HEAD, and answers without body.
 */
static void test_http_server_frames_answers(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        const char *want;
        const char *not_wanted;
        bool is_closed;
    } rows[] = {
        {"GET / HTTP/1.0\r\n\r\n", "Connection: close\r\n\r\nhello", "keep-alive", true},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Connection: keep-alive\r\n\r\nhello",
         "close", false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "close\r\n\r\nhello", "keep",
         true},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
         "Length: 5\r\n\r\nhello", "Upgrade", false},
        {"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "Content-Length: 5\r\n\r\n", "hello", false},
        {"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 204 No Content\r\n", "Content-Length",
         false},
        {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "Connection", false},
    };
    struct bed bed;
    struct seen seen;
    start(&bed, &seen, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct client client;
        client_open(&bed, &client);
        client_send(&bed, &client, td_str_from(rows[i].request));
        client_expect(&bed, &client, rows[i].want);
        if (rows[i].is_closed) {
            client_expect_end(&bed, &client);
        } else {
            bed_run(&bed, 5);
            client_read(&client, BED_TEXT_BYTES);
            assert_false(client.is_ended);
        }
        assert_false(client_has(&client, rows[i].not_wanted));
        client_close(&client);
    }
    bed_stop(&bed);
}

/* 100 Continue comes before the body is sent, once, and not where the body is refused. */
static void test_http_server_asks_for_the_body(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    struct client client;
    start(&bed, &seen, NULL);
    client_open(&bed, &client);
    for (size_t i = 1; i <= 2; i++) {
        client_send(&bed, &client,
                    TD_STR("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                           "Content-Length: 4\r\n\r\n"));
        client_expect_count(&bed, &client, "HTTP/1.1 100 Continue\r\n\r\n", i);
        client_send(&bed, &client, TD_STR("bo"));
        bed_run(&bed, 5);
        client_send(&bed, &client, TD_STR("dy"));
        client_expect_count(&bed, &client, "\r\n\r\nbody", i);
        assert_int_equal(text_count(td_buf_str(&client.in), TD_STR("100 Continue")), i);
    }
    client_send(&bed, &client,
                TD_STR("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                       "Content-Length: 8000000\r\n\r\n"));
    client_expect_end(&bed, &client);
    assert_true(client_has(&client, "413 Content Too Large"));
    assert_int_equal(text_count(td_buf_str(&client.in), TD_STR("100 Continue")), 2);
    client_close(&client);
    bed_stop(&bed);
}

/* Broken requests: a 4xx that can be read, then the end; the handler never sees them. */
static void test_http_server_refuses_readably(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        int status;
    } rows[] = {
        {"\x16\x03\x01\x02", 400},
        {"nonsense\r\n", 400},
        {"GET / HTTP/3\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : x\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0",
         400},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n400001\r\n", 413},
        {"GET / HTTP/1.1\r\nHost: x\r\nExpect: y\r\n\r\n", 417},
    };
    struct bed bed;
    struct seen seen;
    start(&bed, &seen, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct client client;
        client_open(&bed, &client);
        client_send(&bed, &client, td_str_from(rows[i].request));
        client_expect_end(&bed, &client);
        assert_int_equal(bed_status(&client), rows[i].status);
        assert_true(client_has(&client, "Connection: close\r\n\r\n"));
        client_close(&client);
    }
    assert_int_equal(seen.requests, 0);
    bed_stop(&bed);
}

/* A long line and long headers, refused while they are still being sent. */
static void test_http_server_caps_heads(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        int status;
    } rows[] = {
        {"GET /", 414},
        {"GET / HTTP/1.1\r\nHost: ", 431},
    };
    struct bed bed;
    struct seen seen;
    start(&bed, &seen, NULL);
    char *text = malloc((size_t)1 << 20);
    assert_non_null(text);
    memset(text, 'a', (size_t)1 << 20);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct client client;
        client_open(&bed, &client);
        client_send(&bed, &client, td_str_from(rows[i].before));
        client_send(&bed, &client, (td_str){.ptr = text, .len = (size_t)1 << 20});
        client_expect_end(&bed, &client);
        assert_int_equal(bed_status(&client), rows[i].status);
        client_close(&client);
    }
    free(text);
    bed_stop(&bed);
}

/* 8 MB are refused with an answer that a client can read that sends all of them before it reads. */
static void test_http_server_413_is_readable(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7A1200\r\n",
    };
    struct bed bed;
    struct seen seen;
    start(&bed, &seen, NULL);
    char *text = calloc(1, 8000000);
    assert_non_null(text);
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct client client;
        client_open(&bed, &client);
        client_send(&bed, &client, td_str_from(heads[i]));
        client_send(&bed, &client, (td_str){.ptr = text, .len = 8000000});
        assert_false(client.is_broken);
        client_expect_end(&bed, &client);
        assert_int_equal(bed_status(&client), 413);
        assert_true(client_has(&client, "larger than 4194304 bytes\n"));
        client_close(&client);
    }
    free(text);
    assert_int_equal(seen.requests, 0);
    bed_stop(&bed);
}

/* A chunked request cut at each byte: in two pieces it is served; without its rest it is a 400, or
 * an end without words where nothing was asked; with the byte broken it is a 4xx or still a
 * request, never a 5xx, never silence. */
static void test_http_server_chunked_body_broken_at_each_byte(void **state)
{
    (void)state;
    const td_str whole =
        TD_STR("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
               "3\r\nabc\r\nA;e=f\r\n0123456789\r\n0\r\nT: v\r\n\r\n");
    struct bed bed;
    struct seen seen;
    start(&bed, &seen, NULL);
    for (size_t cut = 0; cut < whole.len; cut++) {
        seen.targets[0] = '\0';
        struct client client;
        client_open(&bed, &client);
        client_send(&bed, &client, td_str_slice(whole, 0, cut));
        bed_run(&bed, 1);
        client_send(&bed, &client, td_str_slice(whole, cut, whole.len));
        client_expect(&bed, &client, "\r\n\r\nabc0123456789");
        client_close(&client);

        client_open(&bed, &client);
        client_send(&bed, &client, td_str_slice(whole, 0, cut));
        (void)shutdown(client.fd, SHUT_WR);
        client_expect_end(&bed, &client);
        assert_int_equal(bed_status(&client), cut > 0 ? 400 : 0);
        client_close(&client);

        char broken[256];
        memcpy(broken, whole.ptr, whole.len);
        broken[cut] = '\x01';
        client_open(&bed, &client);
        client_send(&bed, &client, (td_str){.ptr = broken, .len = whole.len});
        (void)shutdown(client.fd, SHUT_WR);
        client_expect_end(&bed, &client);
        int status = bed_status(&client);
        assert_true(status == 200 || status == 400);
        client_close(&client);
    }
    bed_stop(&bed);
}

/* Who has shut down its side after a request still gets its answers, now or later. */
static void test_http_server_answers_half_closed_clients(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    struct client client;
    start(&bed, &seen, NULL);
    client_open(&bed, &client);
    client_send(&bed, &client,
                TD_STR("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
                       "GET /watched HTTP/1.1\r\nHost: x\r\n\r\n"));
    (void)shutdown(client.fd, SHUT_WR);
    bed_expect_count(&bed, &seen.later_count, 1);
    bed_run(&bed, 30);
    answer(&seen, 0, "late but there");
    client_expect_end(&bed, &client);
    assert_true(client_has(&client, "hello"));
    assert_true(client_has(&client, "\r\n\r\nlate but there"));
    assert_false(client_has(&client, "400 Bad")); /* an empty line is no request */
    assert_int_equal(seen.closes, 0);
    client_close(&client);
    bed_stop(&bed);
}

/* The deadlines, each made short: what arrives until then, and the answer. Bytes that keep coming
 * do not help, since the time counts as a whole. */
static void test_http_server_deadlines(void **state)
{
    (void)state;
    static const struct {
        const char *at_once;
        char drip;  /* one each 5 ms, until the server answers or closes */
        int status; /* 0: closed without an answer */
    } rows[] = {
        {"", '\0', 0},
        {"GET", '\0', 408},
        {"GET /", 'x', 408},
        {"GET / HTTP/1.1\r\nX: ", 'x', 408},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n", '\0', 408},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n", 'x', 408},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;", 'x', 408},
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", '\0', 200}, /* then idle */
    };
    const struct td_http_limits limits = {
        .head_time = 100 * TD_MILLISECOND,
        .body_time = 200 * TD_MILLISECOND,
        .body_period = 100 * TD_MILLISECOND,
        .idle_time = 100 * TD_MILLISECOND,
    };
    struct bed bed;
    struct seen seen;
    start(&bed, &seen, &limits);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct client client;
        client_open(&bed, &client);
        td_duration begin = td_clock_steady(&bed.clock);
        client_send(&bed, &client, td_str_from(rows[i].at_once));
        for (int turn = 0; turn < 400 && !client.is_ended && !client.is_broken; turn++) {
            if (rows[i].drip) {
                (void)!send(client.fd, &rows[i].drip, 1, MSG_NOSIGNAL);
            }
            bed_run(&bed, 5);
            client_read(&client, BED_TEXT_BYTES);
        }
        td_duration took = td_clock_steady(&bed.clock) - begin;
        assert_true(client.is_ended);
        assert_int_equal(bed_status(&client), rows[i].status);
        assert_true(took >= 99 * TD_MILLISECOND);
        assert_true(took < 2 * TD_SECOND);
        client_close(&client);
    }
    bed_stop(&bed);
}

/* A body at a fair pace is not cut by the period, but by its whole time. */
static void test_http_server_body_time_is_whole(void **state)
{
    (void)state;
    const struct td_http_limits limits = {
        .body_time = 600 * TD_MILLISECOND,
        .body_period = 200 * TD_MILLISECOND,
    };
    struct bed bed;
    struct seen seen;
    struct client client;
    start(&bed, &seen, &limits);
    client_open(&bed, &client);
    client_send(&bed, &client,
                TD_STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n"));
    static const char piece[8192];
    td_duration begin = td_clock_steady(&bed.clock);
    for (int turn = 0; turn < 300 && !client.is_ended && !client.is_broken; turn++) {
        (void)!send(client.fd, piece, sizeof(piece), MSG_NOSIGNAL);
        bed_run(&bed, 10);
        client_read(&client, BED_TEXT_BYTES);
    }
    td_duration took = td_clock_steady(&bed.clock) - begin;
    assert_int_equal(bed_status(&client), 408);
    assert_true(client_has(&client, "took too long"));
    assert_true(took >= 599 * TD_MILLISECOND && took < 3 * TD_SECOND);
    client_close(&client);
    bed_stop(&bed);
}

static bool bed_is_empty(void *arg)
{
    struct bed *bed = arg;
    return td_http_server_connections(bed->server) == 0;
}

/* A client that never reads its answer is cut off. */
static void test_http_server_cuts_off_who_does_not_read(void **state)
{
    (void)state;
    const struct td_http_limits limits = {.write_time = 500 * TD_MILLISECOND};
    struct bed bed;
    struct seen seen;
    struct client client;
    start(&bed, &seen, &limits);
    client_open_sized(&bed, &client, NULL, 4096);
    client_send(&bed, &client, TD_STR("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
    bed_expect_count(&bed, &seen.later_count, 1);
    char *text = calloc(1, (size_t)32 << 20);
    assert_non_null(text);
    td_http_reply(seen.later[0], 200, NULL, 0, (td_str){.ptr = text, .len = (size_t)32 << 20});
    free(text);
    bed_run(&bed, 20);
    assert_int_equal(td_http_server_connections(bed.server), 1);
    td_duration begin = td_clock_steady(&bed.clock);
    assert_true(bed_until(&bed, bed_is_empty, &bed));
    assert_true(td_clock_steady(&bed.clock) - begin < 3 * TD_SECOND);
    client_close(&client);
    bed_stop(&bed);
}

static void client_ask(struct bed *bed, struct client *client)
{
    client_send(bed, client, TD_STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    client_expect(bed, client, "hello");
}

/* Past the cap the oldest connection that has said nothing makes room; those over which a request
 * has come stay, and when there are no others the newcomer is closed. */
static void test_http_server_caps_connections(void **state)
{
    (void)state;
    const struct td_http_limits limits = {.connections_max = 3};
    struct bed bed;
    struct seen seen;
    struct client clients[6];
    start(&bed, &seen, &limits);
    for (size_t i = 0; i < 3; i++) {
        client_open(&bed, &clients[i]);
        bed_run(&bed, 5);
    }
    client_ask(&bed, &clients[0]); /* proven, though it is the oldest */
    client_open(&bed, &clients[3]);
    client_expect_end(&bed, &clients[1]);
    client_ask(&bed, &clients[3]);
    client_open(&bed, &clients[4]);
    client_expect_end(&bed, &clients[2]);
    client_ask(&bed, &clients[4]);
    client_open(&bed, &clients[5]); /* all places are held by proven ones */
    client_expect_end(&bed, &clients[5]);
    assert_int_equal(td_http_server_connections(bed.server), 3);
    client_close(&clients[0]);
    client_close(&clients[5]);
    bed_run(&bed, 10);
    client_open(&bed, &clients[0]);
    client_ask(&bed, &clients[0]);
    for (size_t i = 0; i < 5; i++) {
        client_close(&clients[i]);
    }
    bed_stop(&bed);
}

/* A source has a quarter of the connections unproven at most: its own oldest ones go, and the
 * places of others stay free. */
static void test_http_server_caps_silent_connections_of_a_source(void **state)
{
    (void)state;
    enum { SILENT = 60 };
    const struct td_http_limits limits = {.connections_max = 64};
    struct bed bed;
    struct seen seen;
    struct client silent[SILENT];
    struct client decent;
    start(&bed, &seen, &limits);
    client_open(&bed, &decent);
    client_ask(&bed, &decent);
    for (size_t i = 0; i < SILENT; i++) {
        client_open(&bed, &silent[i]);
        bed_run(&bed, 1);
    }
    bed_run(&bed, 20);
    assert_int_equal(td_http_server_connections(bed.server), 64 / 4 + 1);
    client_expect_end(&bed, &silent[0]);
    client_ask(&bed, &silent[SILENT - 1]);
    td_buf_reset(&decent.in);
    client_ask(&bed, &decent);
    for (size_t i = 0; i < SILENT; i++) {
        client_close(&silent[i]);
    }
    client_close(&decent);
    bed_stop(&bed);
}

/* Out of descriptors: clients wait instead of the server spinning, and are served afterwards. */
static void test_http_server_waits_for_descriptors(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    struct client client;
    struct rlimit old;
    start(&bed, &seen, NULL);
    client_open(&bed, &client);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    const struct rlimit tight = {.rlim_cur = (rlim_t)client.fd + 1, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    clock_t begin = clock();
    bed_run(&bed, 250);
    clock_t spent = clock() - begin;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(td_http_server_connections(bed.server), 0);
    assert_true(spent < CLOCKS_PER_SEC / 10); /* of the 250 ms that passed */
    client_send(&bed, &client, TD_STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    client_expect(&bed, &client, "hello");
    client_close(&client);
    bed_stop(&bed);
}

/* Bodies of all connections together are capped; the one that is too much is asked to come back. */
static void test_http_server_caps_all_bodies(void **state)
{
    (void)state;
    const struct td_http_limits limits = {.bodies_bytes_max = 3000000};
    struct bed bed;
    struct seen seen;
    struct client clients[2];
    start(&bed, &seen, &limits);
    char *text = calloc(1, 2000000);
    assert_non_null(text);
    const td_str head =
        TD_STR("POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n");
    for (size_t i = 0; i < 2; i++) {
        client_open(&bed, &clients[i]);
        client_send(&bed, &clients[i], head);
        client_send(&bed, &clients[i], (td_str){.ptr = text, .len = 2000000});
        bed_expect_count(&bed, &seen.later_count, 1);
    }
    client_expect_end(&bed, &clients[1]);
    assert_int_equal(bed_status(&clients[1]), 429);
    assert_true(client_has(&clients[1], "Retry-After: 1\r\n"));
    answer(&seen, 0, "done");
    client_expect(&bed, &clients[0], "done");
    client_send(&bed, &clients[0], head); /* there is room again */
    client_send(&bed, &clients[0], (td_str){.ptr = text, .len = 2000000});
    bed_expect_count(&bed, &seen.later_count, 2);
    free(text);
    client_close(&clients[0]);
    client_close(&clients[1]);
    bed_stop(&bed);
}

/* Half of the budget is one source's at most, in bytes and in number: beyond it that source is
 * asked to come back, and another one is served. */
static void test_http_server_shares_the_budget(void **state)
{
    (void)state;
    static const struct {
        size_t bytes;
        struct td_http_limits limits;
    } rows[] = {
        {500000, {.bodies_bytes_max = 3000000}},
        {2000, {.bodies_count_max = 4}},
    };
    char *text = calloc(1, 500000);
    assert_non_null(text);
    for (size_t row = 0; row < 2; row++) {
        struct bed bed;
        struct seen seen;
        struct client clients[4];
        start(&bed, &seen, &rows[row].limits);
        char head[128];
        (void)snprintf(head, sizeof(head),
                       "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                       rows[row].bytes);
        for (size_t i = 0; i < 4; i++) {
            bool is_other = i == 3;
            client_connect_from(&clients[i], is_other ? INADDR_LOOPBACK + 1 : 0,
                                td_http_server_port(bed.server), NULL, 0);
            client_send(&bed, &clients[i], td_str_from(head));
            client_send(&bed, &clients[i], (td_str){.ptr = text, .len = rows[row].bytes});
            bed_expect_count(&bed, &seen.later_count, is_other ? 3 : i < 2 ? (int)i + 1 : 2);
        }
        client_expect_end(&bed, &clients[2]);
        assert_int_equal(bed_status(&clients[2]), 429);
        assert_true(client_has(&clients[2], "Retry-After: 1\r\n"));
        for (size_t i = 0; i < 4; i++) {
            client_close(&clients[i]);
        }
        bed_stop(&bed);
    }
    free(text);
}

/* A client that resets while its request waits: on_close once, or an exchange that stays usable. */
static void test_http_server_survives_clients_that_leave(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    struct client clients[3];
    start(&bed, &seen, NULL);
    static const char *const requests[] = {
        "POST /watched HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
        "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
        "GET /later HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    for (size_t i = 0; i < 3; i++) {
        client_open(&bed, &clients[i]);
        client_send(&bed, &clients[i], td_str_from(requests[i]));
        bed_expect_count(&bed, &seen.later_count, (int)i + 1);
        (void)setsockopt(clients[i].fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        client_close(&clients[i]);
    }
    bed_expect_count(&bed, &seen.closes, 1);
    bed_run(&bed, 20);
    assert_int_equal(seen.closes, 1);
    assert_int_equal(td_http_server_connections(bed.server), 0);
    assert_int_equal(td_http_exchange_pending_bytes(seen.later[1]), 0);
    answer(&seen, 1, "to nobody");
    td_http_exchange_set_callbacks(seen.later[2], NULL, count_close, &seen);
    assert_int_equal(seen.closes, 1); /* never from inside a call */
    bed_expect_count(&bed, &seen.closes, 2);
    bed_run(&bed, 20);
    assert_int_equal(seen.closes, 2);
    bed_stop(&bed);
}

/* Freeing the server ends what is open, at once: clients see it, and on_close is called. */
static void test_http_server_free_closes_everything(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    struct client clients[4];
    start(&bed, &seen, NULL);
    static const char *const requests[] = {
        "GET /watched HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /watched HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /later HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /half",
    };
    for (size_t i = 0; i < COUNT(requests); i++) {
        client_open(&bed, &clients[i]);
        client_send(&bed, &clients[i], td_str_from(requests[i]));
    }
    bed_expect_count(&bed, &seen.later_count, 3);
    td_http_server_free(bed.server);
    bed.server = NULL;
    assert_int_equal(seen.closes, 2);
    for (size_t i = 0; i < COUNT(requests); i++) {
        client_read(&clients[i], BED_TEXT_BYTES);
        assert_true(clients[i].is_ended || clients[i].is_broken);
        client_close(&clients[i]);
    }
    bed_stop(&bed);
}

/* Addresses that cannot be read or bound, and those that can. */
static void test_http_server_addresses(void **state)
{
    (void)state;
    struct bed bed;
    struct seen seen;
    start(&bed, &seen, NULL);
    char taken[32];
    (void)snprintf(taken, sizeof(taken), "127.0.0.1:%d", td_http_server_port(bed.server));
    const struct {
        const char *address;
        int code;
    } rows[] = {
        {"127.0.0.1:0", TD_OK},
        {"", TD_INVALID},
        {"127.0.0.1", TD_INVALID},
        {"127.0.0.1:", TD_INVALID},
        {"127.0.0.1:-1", TD_INVALID},
        {"127.0.0.1:+1", TD_INVALID},
        {"127.0.0.1:x", TD_INVALID},
        {"127.0.0.1:65536", TD_INVALID},
        {"localhost:80", TD_INVALID},
        {":80", TD_INVALID},
        {"::1:80", TD_INVALID},
        {"[::1:80", TD_INVALID},
        {"[127.0.0.1]:0", TD_INVALID},
        {"1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17:0", TD_INVALID},
        {taken, TD_IO},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_http_server *server = NULL;
        const struct td_http_server_options options = {
            .loop = bed.loop, .address = rows[i].address, .handler = serve};
        assert_int_equal(td_http_server_new(&options, &server, &err), rows[i].code);
        assert_int_equal(server != NULL, rows[i].code == TD_OK);
        assert_true(rows[i].code == TD_OK || strstr(err.message, rows[i].address));
        assert_true(!server || td_http_server_port(server) > 0);
        td_http_server_free(server);
    }
    td_http_server_free(NULL);
    bed_stop(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_server_keeps_connections),
        cmocka_unit_test(test_http_server_says_how_fast_its_clock_goes),
        cmocka_unit_test(test_http_server_serves_pipelined_requests_in_order),
        cmocka_unit_test(test_http_server_reads_ahead_only_so_far),
        cmocka_unit_test(test_http_server_frames_answers),
        cmocka_unit_test(test_http_server_asks_for_the_body),
        cmocka_unit_test(test_http_server_refuses_readably),
        cmocka_unit_test(test_http_server_caps_heads),
        cmocka_unit_test(test_http_server_413_is_readable),
        cmocka_unit_test(test_http_server_chunked_body_broken_at_each_byte),
        cmocka_unit_test(test_http_server_answers_half_closed_clients),
        cmocka_unit_test(test_http_server_deadlines),
        cmocka_unit_test(test_http_server_body_time_is_whole),
        cmocka_unit_test(test_http_server_cuts_off_who_does_not_read),
        cmocka_unit_test(test_http_server_caps_connections),
        cmocka_unit_test(test_http_server_caps_silent_connections_of_a_source),
        cmocka_unit_test(test_http_server_waits_for_descriptors),
        cmocka_unit_test(test_http_server_caps_all_bodies),
        cmocka_unit_test(test_http_server_shares_the_budget),
        cmocka_unit_test(test_http_server_survives_clients_that_leave),
        cmocka_unit_test(test_http_server_free_closes_everything),
        cmocka_unit_test(test_http_server_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
