/* Routes of the page: which hosts, sites and tokens are let in, what each answer carries, bounds.
 */
#include "support/web_bed.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define VIEWERS_MAX 64

static void answer_nothing(void *context, const struct td_call_request *request,
                           struct fake_answer *ret)
{
    (void)context;
    (void)request;
    ret->status = 404;
    ret->body = "{}";
}

static void begin(struct web_bed *bed, const char *token)
{
    *bed = (struct web_bed){.answers = answer_nothing};
    web_bed_begin(bed, NULL, NULL);
    web_bed_serve(bed, (struct td_web_options){.token = td_str_from(token)});
}

/* Every answer, files and refusals too, has the headers that a browser needs to keep others out. */
static void test_web_sends_headers(void **state)
{
    (void)state;
    static const char *const paths[] = {"/", "/app.js", "/none", "/api/info", "/api/none"};
    static const char *const headers[] = {"default-src 'self'",
                                          "frame-ancestors 'none'",
                                          "X-Content-Type-Options: nosniff",
                                          "Referrer-Policy: no-referrer",
                                          "X-Frame-Options: DENY",
                                          "Cross-Origin-Resource-Policy: same-origin"};
    struct web_bed bed;
    begin(&bed, "");
    for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
        struct web_answer answer = web_bed_get(&bed, paths[p]);
        for (size_t h = 0; h < sizeof(headers) / sizeof(headers[0]); h++) {
            if (text_count(answer.head, td_str_from(headers[h])) != 1) {
                fail_msg("%s: no %s: %.*s", paths[p], headers[h], TD_STR_ARG(answer.head));
            }
        }
        assert_int_equal(text_count(answer.head, TD_STR("unsafe")), 0);
    }
    web_bed_done(&bed);
}

/* Another name that leads here, another site's page, another port's page: refused. */
static void test_web_refuses_other_hosts_and_origins(void **state)
{
    (void)state;
    struct web_bed bed;
    begin(&bed, "");
    unsigned port = td_web_port(bed.web);
    const struct {
        const char *line;
        const char *headers; /* %u: the port */
        int status;
    } rows[] = {
        {"GET /api/info", "Host: evil.example:%u\r\n", 403},
        {"GET /", "Host: evil.example\r\n", 403},
        {"GET /api/info", "Host: 127.0.0.1.evil.example:%u\r\n", 403},
        {"GET /api/info", "Host: localhost.evil.example\r\n", 403},
        {"GET /api/info", "Host: 127.0.0.1@evil.example\r\n", 403},
        {"GET /api/info", "Host: localhost:%u\r\n", 200},
        {"GET /api/info", "Host: [::1]:%u\r\n", 200},
        {"GET /api/info", "Host: 127.0.0.1:%u\r\nOrigin: http://evil.example\r\n", 403},
        {"GET /api/info", "Host: 127.0.0.1:%u\r\nOrigin: null\r\n", 403},
        {"GET /api/info", "Host: 127.0.0.1:%u\r\nOrigin: http://127.0.0.1:1\r\n", 403},
        {"GET /api/info", "Host: 127.0.0.1:%u\r\nOrigin: https://127.0.0.1:%u\r\n", 403},
        {"GET /api/info", "Host: 127.0.0.1:%u\r\nOrigin: http://127.0.0.1:%u\r\n", 200},
        {"GET /api/info", "Host: 127.0.0.1:%u\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"GET /api/info", "Host: 127.0.0.1:%u\r\nSec-Fetch-Site: same-site\r\n", 403},
        {"GET /api/info",
         "Host: 127.0.0.1:%u\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 403},
        {"GET /app.js", "Host: 127.0.0.1:%u\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"GET /",
         "Host: 127.0.0.1:%u\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 200},
        {"POST /api/scenario", "Host: 127.0.0.1:%u\r\nContent-Type: text/plain\r\n", 415},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf headers = td_buf_capped(4096);
        for (const char *at = rows[i].headers; *at;) {
            bool is_port = at[0] == '%';
            assert_int_equal(is_port ? td_buf_append_format(&headers, "%u", port)
                                     : td_buf_append_char(&headers, *at),
                             0);
            at += is_port ? 2 : 1;
        }
        struct web_answer answer =
            web_bed_ask(&bed, rows[i].line, headers.ptr, rows[i].line[0] == 'P' ? "{}" : "");
        if (answer.status != rows[i].status) {
            fail_msg("%s %s: %d", rows[i].line, headers.ptr, answer.status);
        }
    }
    web_bed_done(&bed);
}

/* The token is needed by each call, files hold no secret. */
static void test_web_needs_its_token(void **state)
{
    (void)state;
    static const struct {
        const char *headers;
        int status;
    } rows[] = {{"", 401},
                {"Authorization: Bearer \r\n", 401},
                {"Authorization: Bearer wrong\r\n", 401},
                {"Authorization: Bearer " TOKEN "0\r\n", 401},
                {"Authorization: Basic " TOKEN "\r\n", 401},
                {"Cookie: token=" TOKEN "\r\n", 401},
                {"Authorization: Bearer " TOKEN "\r\n", 200}};
    struct web_bed bed;
    begin(&bed, TOKEN);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct web_answer answer = web_bed_ask(&bed, "GET /api/info", rows[i].headers, "");
        assert_int_equal(answer.status, rows[i].status);
    }
    struct web_answer answer = web_bed_get(&bed, "/api/stream?token=" TOKEN);
    assert_int_equal(answer.status, 401);
    answer = web_bed_get(&bed, "/");
    assert_int_equal(answer.status, 200);
    web_bed_done(&bed);
}

/* What there is not, is not allowed, or is too much. */
static void test_web_refuses_what_it_cannot_do(void **state)
{
    (void)state;
    struct web_bed bed;
    begin(&bed, "");
    struct web_answer answer = web_bed_get(&bed, "/api/none");
    web_answer_expect(&answer, 404, "no such path");
    answer = web_bed_get(&bed, "/../etc/passwd");
    assert_int_equal(answer.status, 404);
    answer = web_bed_ask(&bed, "DELETE /api/info", "", "");
    web_answer_expect(&answer, 405, "method not allowed");
    answer = web_bed_ask(&bed, "POST /", "Content-Type: application/json\r\n", "{}");
    assert_int_equal(answer.status, 405);
    answer = web_bed_post(&bed, "/api/scenario", "{\"do\":\"load\",\"factor\":2}");
    web_answer_expect(&answer, 404, "only a local cluster");
    answer = web_bed_post(&bed, "/api/whatif", "{");
    assert_int_equal(answer.status, 400);
    answer = web_bed_post(&bed, "/api/whatif", "{}");
    web_answer_expect(&answer, 404, "no such workload");
    char *large = td_alloc_zero(1, (64 << 10) + 100);
    memset(large, ' ', (64 << 10) + 10);
    answer = web_bed_post(&bed, "/api/whatif", large);
    assert_int_equal(answer.status, 413);
    memset(large, 'a', 5000);
    large[5000] = '\0';
    answer = web_bed_get(&bed, td_arena_format(&bed.arena, "/api/workload?ns=%s", large).ptr);
    assert_int_equal(answer.status, 414);
    td_free(large);
    web_bed_done(&bed);
}

/* Questions about objects: kinds that there are, namespaces of the page, names by their escapes. */
static void test_web_answers_questions_or_says_why_not(void **state)
{
    (void)state;
    struct web_bed bed;
    begin(&bed, "");
    static const struct {
        const char *path;
        int status;
        const char *text;
    } rows[] = {
        {"/api/explain?ns=x&kind=tree&name=y", 400, "tree"},
        {"/api/explain?kind=vpa&name=y", 404, "no such namespace"},
        {"/api/workload?ns=a%00b&kind=%zz&name=%4", 404, "no such workload"},
        {"/api/yaml?ns=x&kind=Deployment&name=y", 404, "no such workload"},
        {"/api/workload", 404, "no such workload"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct web_answer answer = web_bed_get(&bed, rows[i].path);
        web_answer_expect(&answer, rows[i].status, rows[i].text);
    }
    web_bed_done(&bed);
}

/* Sixty-four pages see what goes on, the next is told so; one that leaves makes room. */
static void test_web_bounds_viewers(void **state)
{
    (void)state;
    struct web_bed bed;
    struct client clients[VIEWERS_MAX];
    begin(&bed, "");
    for (size_t i = 0; i < VIEWERS_MAX; i++) {
        web_bed_send(&bed, &clients[i], web_bed_request(&bed, "GET /api/stream", "", ""));
        struct want want = {.client = &clients[i], .text = TD_STR("event: tick"), .count = 1};
        assert_true(web_bed_until(&bed, want_is_received, &want));
    }
    struct web_answer answer = web_bed_get(&bed, "/api/stream");
    web_answer_expect(&answer, 503, "64 at most");
    struct want beat = {.client = &clients[9], .text = TD_STR(":\n\n"), .count = 2};
    assert_true(web_bed_until(&bed, want_is_received, &beat));
    struct want tick = {.client = &clients[9], .text = TD_STR("event: tick"), .count = 2};
    assert_true(web_bed_until(&bed, want_is_received, &tick));
    web_bed_close(&clients[0]);
    web_bed_run(&bed, 50);
    web_bed_send(&bed, &clients[0], web_bed_request(&bed, "GET /api/stream", "", ""));
    struct want again = {.client = &clients[0], .text = TD_STR("event: tick"), .count = 1};
    assert_true(web_bed_until(&bed, want_is_received, &again));
    td_web_free(bed.web); /* with all of them open */
    bed.web = NULL;
    for (size_t i = 0; i < VIEWERS_MAX; i++) {
        web_bed_close(&clients[i]);
    }
    web_bed_done(&bed);
}

/* Without TLS the page is for this machine only; a port that is taken is an error unless it may
 * move. */
static void test_web_listens_on_loopback(void **state)
{
    (void)state;
    static const char *const wrong[] = {"0.0.0.0:0",   "192.0.2.1:8080",  "127.0.0.1",
                                        "127.0.0.1:x", "127.0.0.1:70000", ""};
    struct web_bed bed;
    begin(&bed, "");
    struct td_web_options options = {
        .loop = bed.world.loop, .connect = web_bed_connect, .context = &bed};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_web *web = NULL;
        options.listen = wrong[i];
        assert_int_equal(td_web_new(&options, &web, &err), TD_INVALID);
        assert_null(web);
    }
    td_str taken = td_arena_format(&bed.arena, "127.0.0.1:%u", (unsigned)td_web_port(bed.web));
    struct web_bed other = {.answers = answer_nothing};
    struct td_web *web = NULL;
    struct td_error err = TD_ERROR_INIT;
    web_bed_begin(&other, NULL, NULL);
    options = (struct td_web_options){.loop = other.world.loop,
                                      .listen = taken.ptr,
                                      .connect = web_bed_connect,
                                      .context = &other};
    assert_int_equal(td_web_new(&options, &web, &err), TD_IO);
    options.moves_port = true;
    assert_int_equal(td_web_new(&options, &web, &err), TD_OK);
    assert_int_not_equal(td_web_port(web), td_web_port(bed.web));
    td_web_free(web);
    web_bed_done(&other);
    web_bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_web_sends_headers),
        cmocka_unit_test(test_web_refuses_other_hosts_and_origins),
        cmocka_unit_test(test_web_needs_its_token),
        cmocka_unit_test(test_web_refuses_what_it_cannot_do),
        cmocka_unit_test(test_web_answers_questions_or_says_why_not),
        cmocka_unit_test(test_web_bounds_viewers),
        cmocka_unit_test(test_web_listens_on_loopback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
