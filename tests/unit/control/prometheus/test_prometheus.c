/*
 * The client of Prometheus against a server of raw bytes: whole answers, refusals, pages of others,
 * answers that end early or drip, and who we say we are. Each failure is one line with the URL and
 * without a secret.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/metrics.h"
#include "control/prometheus/prometheus.h"
#include "support/raw_server.h"

#define OK_BODY                                                                                    \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{},"      \
    "\"value\":[1,\"7\"]}]}}"

struct served {
    const char *status; /* "200 OK" and further lines of the head */
    const char *body;
    size_t cut;
    unsigned pause_ms;
    char reply[2048];
    char asked[2048];
};

struct heard {
    struct td_loop *loop;
    double sum;
    int code;
    bool is_done;
    char message[TD_ERROR_MESSAGE_BYTES];
};

static void serve(void *context, const struct raw_request *request, struct raw_reply *ret)
{
    struct served *served = context;
    (void)snprintf(served->asked, sizeof(served->asked), "%s", request->text);
    (void)snprintf(served->reply, sizeof(served->reply),
                   "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", served->status,
                   strlen(served->body), served->body);
    ret->bytes = td_str_from(served->reply);
    ret->cut = served->cut > 0 ? served->cut : SIZE_MAX;
    ret->pause_ms = served->pause_ms;
}

static bool hear_series(void *context, const struct td_labels *labels)
{
    (void)context;
    (void)labels;
    return true;
}

static int hear_point(void *context, td_time time, double value, struct td_error *err)
{
    struct heard *heard = context;
    (void)time;
    (void)err;
    heard->sum += value;
    return TD_OK;
}

static void hear_done(void *context, int code, const struct td_error *err)
{
    struct heard *heard = context;
    heard->code = code;
    heard->is_done = true;
    (void)snprintf(heard->message, sizeof(heard->message), "%s", err->message);
    td_loop_stop(heard->loop);
}

/* One query; `options` without an address. */
static void ask(struct served *served, struct td_prometheus_options options, td_duration timeout,
                struct heard *heard, struct td_metric_registry *registry)
{
    static const struct td_prometheus_events events = {
        .series = {.series = hear_series, .point = hear_point}, .done = hear_done};
    struct td_clock clock = td_clock_real();
    struct td_loop *loop;
    struct raw_server server;
    struct td_prometheus *prometheus;
    char address[64];
    assert_int_equal(td_loop_new(&clock, &loop, NULL), TD_OK);
    raw_server_start(&server, loop, NULL, serve, served);
    (void)snprintf(address, sizeof(address), "http://127.0.0.1:%u/sub/", server.port);
    options.address = td_str_from(address);
    assert_int_equal(td_prometheus_new(loop, &options, registry, &prometheus, NULL), TD_OK);
    *heard = (struct heard){.loop = loop};
    const struct td_prometheus_query query = {
        .text = TD_STR("up{a=\"b c\"}"), .at = 1500 * TD_MILLISECOND, .timeout = timeout};
    (void)td_prometheus_ask(prometheus, &query, &events, heard);
    assert_int_equal(td_loop_run(loop, NULL), TD_OK);
    assert_true(heard->is_done);
    td_prometheus_free(prometheus);
    raw_server_stop(&server);
    td_loop_free(loop);
    char begin[80];
    (void)snprintf(begin, sizeof(begin), "http://127.0.0.1:%u/sub: ", server.port);
    if (heard->code != TD_OK) {
        assert_int_equal(strncmp(heard->message, begin, strlen(begin)), 0);
        memmove(heard->message, heard->message + strlen(begin),
                strlen(heard->message) - strlen(begin) + 1);
    }
}

static void test_answers_and_failures_are_told_in_one_line(void **state)
{
    (void)state;
    static const struct {
        struct served served;
        int code;
        const char *says; /* begins so */
    } rows[] = {
        {{.status = "200 OK", .body = OK_BODY}, TD_OK, ""},
        {{.status = "200 OK", .body = "<html>login</html>"},
         TD_INVALID,
         "the response is not valid JSON: "},
        {{.status = "200 OK", .body = OK_BODY, .cut = 120}, TD_IO, ""},
        {{.status = "200 OK", .body = OK_BODY, .pause_ms = 50},
         TD_TIMEOUT,
         "no whole answer within"},
        {{.status = "400 Bad Request",
          .body = "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}"},
         TD_INVALID,
         "HTTP 400: bad_data: parse error"},
        {{.status = "503 Unavailable",
          .body = "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"too slow\"}"},
         TD_IO,
         "HTTP 503: timeout: too slow"},
        {{.status = "502 Bad Gateway", .body = "<html>\n"}, TD_IO, "HTTP 502"},
        {{.status = "502 Bad Gateway", .body = ""}, TD_IO, "HTTP 502"},
        {{.status = "401 Unauthorized", .body = "no"}, TD_DENIED, "HTTP 401"},
        {{.status = "302 Found\r\nLocation: http://127.0.0.1:1/", .body = ""},
         TD_INVALID,
         "HTTP 302"},
        {{.status = "204 No Content", .body = ""}, TD_INVALID, "HTTP 204"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct served served = rows[i].served;
        struct heard heard;
        bool is_slow = served.pause_ms > 0;
        ask(&served, (struct td_prometheus_options){.job = TD_STR_EMPTY},
            is_slow ? 300 * TD_MILLISECOND : 30 * TD_SECOND, &heard, NULL);
        if (heard.code != rows[i].code ||
            strncmp(heard.message, rows[i].says, strlen(rows[i].says)) != 0) {
            fail_msg("%s %s: code %d: '%s'", served.status, served.body, heard.code, heard.message);
        }
        assert_true(heard.sum >= (heard.code == TD_OK ? 7 : 0));
        assert_null(strchr(heard.message, '\n'));
        assert_non_null(
            strstr(served.asked,
                   "GET /sub/api/v1/query?query=up%7Ba%3D%22b%20c%22%7D&time=1.500 HTTP/1."));
    }
}

static void test_credentials_are_sent_and_not_reported(void **state)
{
    (void)state;
    static const struct {
        struct td_prometheus_options options;
        const char *header; /* NULL: none */
    } rows[] = {
        {{.job = TD_STR_INIT("")}, NULL},
        {{.username = TD_STR_INIT("me"), .password = TD_STR_INIT("secret")},
         "Authorization: Basic bWU6c2VjcmV0\r\n"},
        {{.bearer_token = TD_STR_INIT("secret")}, "Authorization: Bearer secret\r\n"},
        {{.bearer_token = TD_STR_INIT("secret"),
          .username = TD_STR_INIT("me"),
          .password = TD_STR_INIT("x")},
         "Authorization: Bearer secret\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct served served = {.status = "403 Forbidden", .body = "no"};
        struct heard heard;
        ask(&served, rows[i].options, 30 * TD_SECOND, &heard, NULL);
        const char *found = strstr(served.asked, "Authorization: ");
        assert_int_equal(found != NULL, rows[i].header != NULL);
        if (rows[i].header && strncmp(found, rows[i].header, strlen(rows[i].header)) != 0) {
            fail_msg("%s", found);
        }
        assert_string_equal(heard.message, "HTTP 403");
    }
}

static void test_queries_are_counted_by_their_answers(void **state)
{
    (void)state;
    struct td_metric_registry *registry = td_metric_registry_new();
    struct served served = {.status = "200 OK", .body = OK_BODY};
    struct heard heard;
    ask(&served, (struct td_prometheus_options){.job = TD_STR_EMPTY}, 30 * TD_SECOND, &heard,
        registry);
    served.status = "500 No";
    ask(&served, (struct td_prometheus_options){.job = TD_STR_EMPTY}, 30 * TD_SECOND, &heard,
        registry);
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_metric_registry_write(registry, &text);
    static const char *const lines[] = {
        "vpa_recommender_prometheus_client_api_requests_count{code=\"200\",method=\"get\"} 1\n",
        "vpa_recommender_prometheus_client_api_requests_count{code=\"500\",method=\"get\"} 1\n",
        ("vpa_recommender_prometheus_client_api_requests_duration_seconds_count{code=\"200\","
         "method=\"get\"} 1\n"),
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_non_null(strstr(td_buf_str(&text).ptr, lines[i]));
    }
    td_metric_registry_free(registry);
}

static void test_spans_and_texts_are_written_as_promql_has_them(void **state)
{
    (void)state;
    static const struct {
        td_duration span;
        const char *text;
    } rows[] = {
        {TD_HOUR, "1h"},         {8 * 24 * TD_HOUR, "8d"},          {15 * TD_MINUTE, "15m"},
        {90 * TD_SECOND, "90s"}, {1500 * TD_MILLISECOND, "1500ms"}, {36 * TD_HOUR, "36h"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[TD_PROMETHEUS_SPAN_BYTES];
        td_prometheus_span(rows[i].span, text);
        assert_string_equal(text, rows[i].text);
    }
    td_auto_buf out;
    td_buf_init(&out, 100);
    td_prometheus_quote(TD_STR("a\"b\\c\nd"), &out);
    assert_string_equal(td_buf_str(&out).ptr, "\"a\\\"b\\\\c\\nd\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_and_failures_are_told_in_one_line),
        cmocka_unit_test(test_credentials_are_sent_and_not_reported),
        cmocka_unit_test(test_queries_are_counted_by_their_answers),
        cmocka_unit_test(test_spans_and_texts_are_written_as_promql_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
