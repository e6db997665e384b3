/* Requests read from bytes: what is taken, what is refused and with which status, and that pieces
 * make no difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/http/http1.h"
#include "base/limits.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define HEAD "POST /x HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n\r\n"

static const struct td_http1_limits defaults;

/* The whole text, in pieces of this size; returns the bytes that were taken. */
static size_t feed_pieces(struct td_http1 *parser, td_str text, size_t piece)
{
    size_t taken = 0;
    while (taken < text.len) {
        size_t end = text.len - taken < piece ? text.len : taken + piece;
        size_t now = td_http1_feed(parser, td_str_slice(text, taken, end));
        taken += now;
        if (taken < end) {
            break;
        }
    }
    return taken;
}

/* Methods, targets, versions, bodies, keep-alive and Expect of requests that are served. */
static void test_http1_takes_requests(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *method;
        const char *target;
        const char *body;
        size_t header_count;
        int minor;
        bool is_keep_alive;
        bool expects_continue;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", "", 1, 1, true, false},
        {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", "", 1, 1, true, false},
        {"GET /a%20b?c=d&e HTTP/1.0\r\n\r\n", "GET", "/a%20b?c=d&e", "", 0, 0, false, false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET", "/", "", 1, 0, true, false},
        {"GET / HTTP/1.1\r\nHost:\r\nConnection: x , CLOSE\r\n\r\n", "GET", "/", "", 2, 1, false,
         false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n", "GET", "/", "", 2, 1,
         false, false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "GET", "/", "",
         3, 1, true, false},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS", "*", "", 1, 1, true, false},
        {"GET http://a:1/b?c HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/b?c", "", 1, 1, true, false},
        {"GET HTTPS://a HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", "", 1, 1, true, false},
        {"PURGE-IT!~ / HTTP/1.1\r\nHost: a\r\n\r\n", "PURGE-IT!~", "/", "", 1, 1, true, false},
        {HEAD "Content-Length: 0\r\n\r\n", "POST", "/x", "", 2, 1, true, false},
        {HEAD "content-length: 0003\r\n\r\nabc", "POST", "/x", "abc", 2, 1, true, false},
        {HEAD "Content-Length: 3\r\nExpect: 100-Continue\r\n\r\nabc", "POST", "/x", "abc", 3, 1,
         true, true},
        {HEAD "Expect: 100-continue\r\n\r\n", "POST", "/x", "", 2, 1, true, false},
        {"POST / HTTP/1.0\r\nExpect: x\r\nContent-Length: 1\r\n\r\na", "POST", "/", "a", 2, 0,
         false, false},
        {CHUNKED "0\r\n\r\n", "POST", "/x", "", 2, 1, true, false},
        {CHUNKED "3\r\nabc\r\n00A;x=\"y z\"\r\n0123456789\r\n0\r\nT: v\r\nU:\r\n\r\n", "POST", "/x",
         "abc0123456789", 2, 1, true, false},
        {HEAD "Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0;\r\n\r\n", "POST", "/x", "a", 2, 1,
         true, false},
        {"GET /\xc3\xa4 HTTP/1.1\r\nHost: \xff\r\n\r\n", "GET", "/\xc3\xa4", "", 1, 1, true, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_http1 *parser = td_http1_new(&defaults);
        td_str text = td_str_from(rows[i].text);
        for (size_t piece = 1; piece <= text.len; piece++) {
            td_http1_reset(parser);
            assert_true(td_http1_is_empty(parser));
            assert_int_equal(feed_pieces(parser, text, piece), text.len);
            assert_int_equal(td_http1_state(parser), TD_HTTP1_DONE);
            const struct td_http1_request *request = td_http1_request(parser);
            assert_true(td_str_equal(request->method, td_str_from(rows[i].method)));
            assert_true(td_str_equal(request->target, td_str_from(rows[i].target)));
            assert_true(td_str_equal(request->body, td_str_from(rows[i].body)));
            assert_int_equal(request->header_count, rows[i].header_count);
            assert_int_equal(request->minor, rows[i].minor);
            assert_int_equal(request->is_keep_alive, rows[i].is_keep_alive);
            assert_int_equal(request->expects_continue, rows[i].expects_continue);
            assert_int_equal(td_http1_feed(parser, TD_STR("GET")), 0);
        }
        td_http1_free(parser);
    }
}

/* Whatever two readers could understand differently, and whatever is no request at all. */
static void test_http1_refuses_broken_requests(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {"\x16\x03\x01", 400}, /* TLS, refused at once */
        {" GET / HTTP/1.1\r\n", 400},
        {"\r\n\r\n", 400},
        {"\n", 400},
        {"GET /\r\n", 400},
        {"GET / HTTP/1.1\n", 400},
        {"GET / HTTP/1.1\r\r\n", 400},
        {"GET  / HTTP/1.1\r\n", 400},
        {"GET / HTTP/1.1 \r\n", 400},
        {"GET / x HTTP/1.1\r\n", 400},
        {"GET\t/ HTTP/1.1\r\n", 400},
        {"G@T / HTTP/1.1\r\n", 400},
        {"GET /\x01 HTTP/1.1\r\n", 400},
        {"GET /\x7f HTTP/1.1\r\n", 400},
        {"GET / HTTP/2.0\r\n", 400},
        {"GET / HTTP/1.2\r\n", 400},
        {"GET / HTTP/11\r\n", 400},
        {"GET / http/1.1\r\n", 400},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http:/a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n Host: a\r\n", 400},
        {HEAD "A: b\r\n c\r\n", 400},
        {HEAD "A: b\r\n\tc\r\n", 400},
        {HEAD "A : b\r\n", 400},
        {HEAD "A\t: b\r\n", 400},
        {HEAD ": b\r\n", 400},
        {HEAD "A b: c\r\n", 400},
        {HEAD "A\r\n", 400},
        {HEAD "A: b\rc\r\n", 400},
        {HEAD "A: b\r\r\n", 400},
        {HEAD "A: b\n", 400},
        {HEAD "A: b\x01\r\n", 400},
        {HEAD "\n", 400},
        {HEAD "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {HEAD "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        {HEAD "Content-Length: 1, 1\r\n\r\n", 400},
        {HEAD "Content-Length: +1\r\n\r\n", 400},
        {HEAD "Content-Length: -1\r\n\r\n", 400},
        {HEAD "Content-Length: 0x1\r\n\r\n", 400},
        {HEAD "Content-Length: 1 1\r\n\r\n", 400},
        {HEAD "Content-Length:\r\n\r\n", 400},
        {HEAD "Content-Length: 4194305\r\n\r\n", 413},
        {HEAD "Content-Length: 18446744073709551616\r\n\r\n", 413},
        {HEAD "Content-Length: 99999999999999999999999999\r\n\r\n", 413},
        {HEAD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked, identity\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: xchunked\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n",
         400},
        {HEAD "Transfer-Encoding:\r\n\r\n", 400},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {HEAD "Expect: a-miracle\r\n\r\n", 417},
        {CHUNKED "x", 400},
        {CHUNKED "\r\n", 400},
        {CHUNKED "-1\r\n", 400},
        {CHUNKED "0x1\r\n", 400},
        {CHUNKED "1 \r\n", 400},
        {CHUNKED "1\n", 400},
        {CHUNKED "1;a\rb\r\n", 400},
        {CHUNKED "00000000000000001\r\n", 400},
        {CHUNKED "ffffffffffffffff\r\n", 413},
        {CHUNKED "400001\r\n", 413},
        {CHUNKED "1\r\nab", 400},
        {CHUNKED "1\r\na\n", 400},
        {CHUNKED "1\r\na\r\r", 400},
        {CHUNKED "1\r\na\r\n\r\n", 400},
        {CHUNKED "0\r\nT : v\r\n", 400},
        {CHUNKED "0\r\n T: v\r\n", 400},
        {CHUNKED "0\r\nT: v\n", 400},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_http1 *parser = td_http1_new(&defaults);
        td_str text = td_str_from(rows[i].text);
        for (size_t piece = 1; piece <= text.len; piece++) {
            td_http1_reset(parser);
            (void)feed_pieces(parser, text, piece);
            if (td_http1_state(parser) != TD_HTTP1_FAILED ||
                td_http1_status(parser) != rows[i].status) {
                fail_msg("row %zu in pieces of %zu: state %d, status %d", i, piece,
                         (int)td_http1_state(parser), td_http1_status(parser));
            }
            assert_true(strlen(td_http1_problem(parser)) > 0);
            assert_int_equal(td_http1_feed(parser, TD_STR("x")), 0);
        }
        td_http1_free(parser);
    }
}

/* NUL anywhere in the head is refused: C strings cannot carry these rows. */
static void test_http1_refuses_nul(void **state)
{
    (void)state;
    static const td_str rows[] = {
        TD_STR_INIT("\0"),
        TD_STR_INIT("GET /\0 HTTP/1.1\r\n"),
        TD_STR_INIT(HEAD "A\0: b\r\n"),
        TD_STR_INIT(HEAD "A: b\0\r\n"),
        TD_STR_INIT(CHUNKED "1\0\r\n"),
        TD_STR_INIT(CHUNKED "0\r\nT: \0\r\n"),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_http1 *parser = td_http1_new(&defaults);
        (void)td_http1_feed(parser, rows[i]);
        assert_int_equal(td_http1_state(parser), TD_HTTP1_FAILED);
        assert_int_equal(td_http1_status(parser), 400);
        td_http1_free(parser);
    }
}

/* Each cap holds exactly: its value passes, one more does not. `before` and `after` stand around a
 * run of one letter, or of one repeated line. */
static void test_http1_caps(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        const char *unit;
        size_t count;
        const char *after;
        int status; /* 0: taken */
    } rows[] = {
        {"GET /", "a", 100 - 14, " HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"GET /", "a", 100 - 13, " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
        {"GET /", "a", 5000, "", 414}, /* no end of line needed */
        {HEAD "A:", "a", 200 - 15, "\r\n\r\n", 0},
        {HEAD "A:", "a", 200 - 14, "\r\n\r\n", 431},
        {HEAD "A:", "a", 5000, "", 431},
        {HEAD, "A:\r\n", 9, "\r\n", 0},
        {HEAD, "A:\r\n", 10, "\r\n", 431},
        {HEAD "Content-Length: 50\r\n\r\n", "a", 50, "", 0},
        {HEAD "Content-Length: 51\r\n\r\n", "a", 50, "", 413},
        {CHUNKED, "1\r\na\r\n", 50, "0\r\n\r\n", 0},
        {CHUNKED, "1\r\na\r\n", 51, "0\r\n\r\n", 413},
        {CHUNKED "1;", "a", 252, "\r\na\r\n0\r\n\r\n", 0},
        {CHUNKED "1;", "a", 253, "\r\na\r\n0\r\n\r\n", 400},
        {CHUNKED "0\r\n", "A:\r\n", 10, "\r\n", 0},
        {CHUNKED "0\r\n", "A:\r\n", 11, "\r\n", 431},
        {CHUNKED "0\r\nA:", "a", 200 - 6, "\r\n\r\n", 0},
        {CHUNKED "0\r\nA:", "a", 200 - 5, "\r\n\r\n", 431},
    };
    const struct td_http1_limits limits = {
        .line_bytes_max = 100,
        .header_bytes_max = 200,
        .header_count_max = 10,
        .body_bytes_max = 50,
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_buf text;
        td_buf_init(&text, (size_t)1 << 20);
        (void)td_buf_append(&text, td_str_from(rows[i].before));
        for (size_t n = 0; n < rows[i].count; n++) {
            (void)td_buf_append(&text, td_str_from(rows[i].unit));
        }
        (void)td_buf_append(&text, td_str_from(rows[i].after));
        for (size_t piece = 1; piece <= 128; piece *= 2) {
            struct td_http1 *parser = td_http1_new(&limits);
            (void)feed_pieces(parser, td_buf_str(&text), piece);
            enum td_http1_state want = rows[i].status ? TD_HTTP1_FAILED : TD_HTTP1_DONE;
            if (td_http1_state(parser) != want || td_http1_status(parser) != rows[i].status) {
                fail_msg("row %zu: state %d, status %d, %s", i, (int)td_http1_state(parser),
                         td_http1_status(parser), td_http1_problem(parser));
            }
            td_http1_free(parser);
        }
    }
}

/* Chunk extensions cost the sender more than us: all of them together are capped. */
static void test_http1_caps_all_extensions(void **state)
{
    (void)state;
    struct td_http1 *parser = td_http1_new(&defaults);
    (void)td_http1_feed(parser, TD_STR(CHUNKED));
    const td_str chunk = TD_STR("1;0123456789012345678901234567890\r\na\r\n");
    size_t count = 0;
    while (td_http1_state(parser) == TD_HTTP1_BODY && count <= TD_HTTP_CHUNK_EXTENSION_BYTES_MAX) {
        (void)td_http1_feed(parser, chunk);
        count++;
    }
    assert_int_equal(td_http1_status(parser), 400);
    assert_int_equal(count, TD_HTTP_CHUNK_EXTENSION_BYTES_MAX / 32 + 1);
    td_http1_free(parser);
}

/* What follows a request is left for the next, which begins clean. */
static void test_http1_leaves_the_next_request(void **state)
{
    (void)state;
    struct td_http1 *parser = td_http1_new(&defaults);
    const td_str first = TD_STR(CHUNKED "2\r\nhi\r\n0\r\n\r\n");
    const td_str both = TD_STR(CHUNKED "2\r\nhi\r\n0\r\n\r\nGET /y HTTP/1.0\r\n\r\n");
    assert_int_equal(td_http1_feed(parser, both), first.len);
    assert_true(td_str_equal(td_http1_request(parser)->body, TD_STR("hi")));
    td_http1_reset(parser);
    td_str rest = td_str_slice(both, first.len, both.len);
    assert_int_equal(td_http1_feed(parser, rest), rest.len);
    const struct td_http1_request *request = td_http1_request(parser);
    assert_int_equal(td_http1_state(parser), TD_HTTP1_DONE);
    assert_true(td_str_equal(request->target, TD_STR("/y")));
    assert_int_equal(request->header_count, 0);
    assert_int_equal(request->body.len, 0);
    td_http1_free(parser);
    td_http1_free(NULL);
}

/* Names in either case, values without the blanks around them; the first of a name counts. */
static void test_http1_headers(void **state)
{
    (void)state;
    struct td_http1 *parser = td_http1_new(&defaults);
    (void)td_http1_feed(parser, TD_STR("GET / HTTP/1.1\r\nhost: a\r\nX-A:\t one two \t\r\n"
                                       "x-a: second\r\nEmpty: \t \r\n\r\n"));
    const struct td_http1_request *request = td_http1_request(parser);
    assert_int_equal(request->header_count, 4);
    static const struct {
        td_str name;
        const char *value; /* NULL: there is none */
    } rows[] = {
        {TD_STR_INIT("Host"), "a"}, {TD_STR_INIT("x-A"), "one two"}, {TD_STR_INIT("EMPTY"), ""},
        {TD_STR_INIT("X-"), NULL},  {TD_STR_INIT(""), NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct td_http_header *header =
            td_http_header_get(request->headers, request->header_count, rows[i].name);
        assert_int_equal(header != NULL, rows[i].value != NULL);
        if (header) {
            assert_true(td_str_equal(header->value, td_str_from(rows[i].value)));
        }
    }
    assert_true(td_http_list_has(TD_STR("a, B ,c"), TD_STR("b")));
    assert_true(td_http_list_has(TD_STR(""), TD_STR("")));
    assert_false(td_http_list_has(TD_STR("ab"), TD_STR("a")));
    td_http1_free(parser);
}

/* A body of several megabytes is given back when the next request begins. */
static void test_http1_gives_large_bodies_back(void **state)
{
    (void)state;
    struct td_http1 *parser = td_http1_new(&defaults);
    (void)td_http1_feed(parser, TD_STR(HEAD "Content-Length: 4194304\r\n\r\n"));
    assert_int_equal(td_http1_state(parser), TD_HTTP1_BODY);
    assert_int_equal(td_http1_body_bytes(parser), 0); /* nothing is kept ready for a promise */
    static const char piece[4096];
    for (size_t i = 0; i < 1024; i++) {
        assert_int_equal(td_http1_feed(parser, (td_str){.ptr = piece, .len = sizeof(piece)}),
                         sizeof(piece));
    }
    assert_int_equal(td_http1_state(parser), TD_HTTP1_DONE);
    assert_true(td_http1_body_bytes(parser) >= TD_HTTP_BODY_BYTES_MAX);
    td_http1_reset(parser);
    assert_int_equal(td_http1_body_bytes(parser), 0);
    td_http1_free(parser);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http1_takes_requests),
        cmocka_unit_test(test_http1_refuses_broken_requests),
        cmocka_unit_test(test_http1_refuses_nul),
        cmocka_unit_test(test_http1_caps),
        cmocka_unit_test(test_http1_caps_all_extensions),
        cmocka_unit_test(test_http1_leaves_the_next_request),
        cmocka_unit_test(test_http1_headers),
        cmocka_unit_test(test_http1_gives_large_bodies_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
