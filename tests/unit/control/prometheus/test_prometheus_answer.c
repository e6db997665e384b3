/*
 * Answers of Prometheus, read in pieces of every size: what is in them arrives once and in order,
 * and what is not an answer is refused with its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "control/prometheus/prometheus_answer.h"

#define VECTOR(series)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" series "]}}"
#define MATRIX(series)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" series "]}}"

struct seen {
    struct td_buf text; /* "{a=b} 1:2 3:4\n" */
    int refuse;         /* the code that points get; 0: none */
};

static bool seen_series(void *context, const struct td_labels *labels)
{
    struct seen *seen = context;
    (void)td_buf_append(&seen->text, TD_STR("{"));
    for (size_t i = 0; i < labels->count; i++) {
        (void)td_buf_append_format(&seen->text, "%s%.*s=%.*s", i > 0 ? "," : "",
                                   TD_STR_ARG(labels->items[i].key),
                                   TD_STR_ARG(labels->items[i].value));
    }
    (void)td_buf_append(&seen->text, TD_STR("}"));
    return !td_labels_get(labels, TD_STR("skip"));
}

static int seen_point(void *context, td_time time, double value, struct td_error *err)
{
    struct seen *seen = context;
    (void)td_buf_append_format(&seen->text, " %lld:%g", (long long)(time / TD_MILLISECOND), value);
    return seen->refuse == TD_OK ? TD_OK : td_error_set(err, seen->refuse, "enough");
}

static int read_in_pieces(td_str text, size_t piece, int refuse, struct seen *seen,
                          struct td_error *err)
{
    static const struct td_prometheus_handler handler = {.series = seen_series,
                                                         .point = seen_point};
    struct td_prometheus_answer answer;
    *seen = (struct seen){.refuse = refuse};
    td_buf_init(&seen->text, (size_t)1 << 20);
    td_prometheus_answer_init(&answer, &handler, seen);
    int code = TD_OK;
    for (size_t at = 0; at < text.len && code == TD_OK; at += piece) {
        code = td_prometheus_answer_feed(&answer, td_str_slice(text, at, at + piece), err);
    }
    code = code == TD_OK ? td_prometheus_answer_finish(&answer, err) : code;
    td_prometheus_answer_done(&answer);
    return code;
}

static void test_series_and_points_are_handed_on(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *seen;
    } rows[] = {
        {MATRIX(""), ""},
        {VECTOR("{\"metric\":{},\"value\":[1.5,\"2\"]}"), "{} 1500:2"},
        {MATRIX(
             "{\"metric\":{\"pod\":\"a\",\"b\":\"c\"},\"values\":[[1,\"0.25\"],[2.001,\"1e3\"]]}"),
         "{b=c,pod=a} 1000:0.25 2001:1000"},
        {MATRIX("{\"metric\":{\"a\":\"1\"},\"values\":[[1,\"1\"]]} , {\"metric\":{\"a\":\"2\"},"
                "\"values\":[]}"),
         "{a=1} 1000:1{a=2}"},
        {MATRIX("{\"values\":[[1,\"1\"]],\"metric\":{\"a\":\"1\"}}"), "{a=1} 1000:1"},
        {MATRIX("{\"metric\":{\"a\":\"1\"},\"values\":[[1,\"NaN\"],[2,\"+Inf\"],[3,\"-Inf\"],[4,"
                "\"5\"]]}"),
         "{a=1} 4000:5"},
        {MATRIX("{\"metric\":{\"skip\":\"1\"},\"values\":[[1,\"1\"]]}"), "{skip=1}"},
        {MATRIX("{\"metric\":{\"a\":\"}]{[\\\"\\\\\"},\"values\":[[1,\"1\"]]}"),
         "{a=}]{[\"\\} 1000:1"},
        /* Native histograms have no value of their own. */
        {MATRIX("{\"metric\":{\"a\":\"1\"},\"histograms\":[[1,{\"count\":\"1\"}]]}"), ""},
        {"{\"data\":{\"result\":[{\"metric\":{},\"value\":[1,\"2\"]}],\"resultType\":\"vector\"},"
         "\"status\":\"success\",\"warnings\":[\"data\",\"result\"]}",
         "{} 1000:2"},
        {" {\"status\" : \"success\" , \"data\" : { \"resultType\":\"vector\", \"result\" : [ ] } "
         "} \n",
         ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str text = td_str_from(rows[i].text);
        for (size_t piece = 1; piece <= text.len; piece += piece < 8 ? 1 : 31) {
            struct seen seen;
            struct td_error err = TD_ERROR_INIT;
            int code = read_in_pieces(text, piece, TD_OK, &seen, &err);
            if (code != TD_OK || strcmp(td_buf_str(&seen.text).ptr, rows[i].seen) != 0) {
                fail_msg("%s by %zu: %s: %s", rows[i].text, piece, err.message,
                         td_buf_str(&seen.text).ptr);
            }
            td_buf_done(&seen.text);
        }
    }
}

static void test_what_is_no_answer_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"", "the response is not valid JSON"},
        {"<html>502</html>", "the response is not valid JSON"},
        {"{}", "the response is not from the Prometheus API: no status"},
        {"[]", "the response is not from the Prometheus API: no status"},
        {"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse\\nerror\"}",
         "bad_data: parse?error"},
        {"{\"status\":\"success\"}", "no list of series, resultType ''"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"2\"]}}",
         "data.result[0]: expected a series, a comma or the end of the list"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[]}}",
         "no list of series, resultType 'string'"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":{}}}",
         "no list of series, resultType 'matrix'"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"resul\\u0074\":[{}]}}",
         "no list of series, resultType 'matrix'"},
        {MATRIX(","), "data.result[0]: expected a series, a comma or the end of the list"},
        {MATRIX("{\"metric\":{}},"), "data.result[1]: expected a series, a comma"},
        {MATRIX("{\"metric\":{}}{\"metric\":{}}"), "data.result[1]: expected a series, a comma"},
        {MATRIX("{\"metric\":{}} 7"), "data.result[1]: expected a series, a comma"},
        {MATRIX("{\"metric\":7,\"values\":[]}"), "data.result[0]: its metric is not an object"},
        {MATRIX("{\"metric\":{\"a\":1},\"values\":[]}"),
         "data.result[0]: a label value is not a string"},
        {MATRIX("{\"values\":[]}"), "data.result[0]: its metric is not an object"},
        {MATRIX("{\"metric\":{},\"values\":[7]}"), "data.result[0]: a sample is not a list"},
        {MATRIX("{\"metric\":{},\"values\":{}}"), "data.result[0]: its samples are not a list"},
        {MATRIX("{\"metric\":{},\"values\":[[\"1\",\"1\"]]}"),
         "data.result[0]: the timestamp of a sample is not a number"},
        {MATRIX("{\"metric\":{},\"values\":[[-1,\"1\"]]}"),
         "data.result[0]: the timestamp of a sample is not a number"},
        {MATRIX("{\"metric\":{},\"values\":[[1e300,\"1\"]]}"),
         "data.result[0]: the timestamp of a sample is not a number"},
        {MATRIX("{\"metric\":{},\"values\":[[1,1]]}"),
         "data.result[0]: the value of a sample is not a string"},
        {MATRIX("{\"metric\":{},\"values\":[[1,\"\"]]}"), "data.result[0]: '': not a number"},
        {MATRIX("{\"metric\":{},\"values\":[[1,\"1 \\u0000\"]]}"), "data.result[0]: '1 \\u0000'"},
        {MATRIX("{\"metric\":{},\"values\":[[1,\"0x10\"]]}"),
         "data.result[0]: '0x10': not a number"},
        {MATRIX("{\"metric\":{},\"values\":[[1,\"1\",2]]}"),
         "data.result[0]: a sample is not a pair of timestamp and value"},
        {MATRIX("{\"metric\":{},\"values\":[[1,\"1\"}]}"), "data.result[0]: line 1"},
        {MATRIX("{\"metric\":{},\"values\":[[[[[[[[[[1]]]]]]]]]]}"), "data.result[0]: line 1"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[],\"result\":[]}"
         "}",
         "data.result: given twice"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{}",
         "the response ends within data.result"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]",
         "the response is not valid JSON"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str text = td_str_from(rows[i].text);
        for (size_t piece = 1; piece <= text.len + 1; piece += piece < 4 ? 1 : 37) {
            struct seen seen;
            struct td_error err = TD_ERROR_INIT;
            int code = read_in_pieces(text, piece, TD_OK, &seen, &err);
            if (code != TD_INVALID ||
                strncmp(err.message, rows[i].says, strlen(rows[i].says)) != 0) {
                fail_msg("%s by %zu: code %d: '%s'", rows[i].text, piece, code, err.message);
            }
            td_buf_done(&seen.text);
        }
    }
}

/* A callback that refuses a sample is not called again, and the query stays cancelled. */
static void test_a_refused_point_ends_the_reading(void **state)
{
    (void)state;
    struct seen seen;
    struct td_error err = TD_ERROR_INIT;
    td_str text = TD_STR(MATRIX("{\"metric\":{},\"values\":[[1,\"1\"],[2,\"2\"]]}"));
    assert_int_equal(read_in_pieces(text, 7, TD_LIMIT, &seen, &err), TD_LIMIT);
    assert_string_equal(err.message, "enough");
    assert_string_equal(td_buf_str(&seen.text).ptr, "{} 1000:1");
    td_buf_done(&seen.text);
}

/* What never ends is cut where the caps say so, wherever it is. */
static void test_endless_answers_end_at_their_caps(void **state)
{
    (void)state;
    static const struct {
        const char *begin;
        const char *again;
        int code;
    } rows[] = {
        {"{\"status\":\"", "aaaaaaaaaaaaaaaa", TD_LIMIT},
        {"", "[[[[[[[[[[[[[[[[", TD_LIMIT},
        {"{\"data\":{\"result\":[{\"metric\":{\"a\":\"", "aaaaaaaaaaaaaaaa", TD_LIMIT},
        {"{\"data\":{\"result\":[{\"metric\":{\"a\":\"1\"},\"values\":[[1,\"1\"]", ",[1,\"1\"]",
         TD_LIMIT},
        {"{\"data\":{\"result\":[{", "[[[[[[[[[[[[[[[[", TD_LIMIT},
    };
    static const struct td_prometheus_handler handler = {.series = seen_series,
                                                         .point = seen_point};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_prometheus_answer answer;
        struct seen seen = {.refuse = TD_OK};
        struct td_error err = TD_ERROR_INIT;
        td_buf_init(&seen.text, (size_t)1 << 20);
        td_prometheus_answer_init(&answer, &handler, &seen);
        int code = td_prometheus_answer_feed(&answer, td_str_from(rows[i].begin), &err);
        size_t fed = 0;
        while (code == TD_OK && fed < 2 * TD_PROMETHEUS_SERIES_BYTES_MAX) {
            code = td_prometheus_answer_feed(&answer, td_str_from(rows[i].again), &err);
            fed += strlen(rows[i].again);
        }
        assert_int_equal(code, rows[i].code);
        td_prometheus_answer_done(&answer);
        td_buf_done(&seen.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series_and_points_are_handed_on),
        cmocka_unit_test(test_what_is_no_answer_is_refused_with_its_place),
        cmocka_unit_test(test_a_refused_point_ends_the_reading),
        cmocka_unit_test(test_endless_answers_end_at_their_caps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
