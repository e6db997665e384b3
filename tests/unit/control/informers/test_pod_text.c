/*
 * A pod's text in two parts: both together are the text to the byte, whatever it is, and pods of
 * one template have the same shape.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/limits.h"
#include "control/informers/pod_text.h"
#include "support/random.h"

static const struct td_pod_text_known web = {
    .name = TD_STR_INIT("web-7f-x1"),
    .uid = TD_STR_INIT("2d94b5db-70a7-46d8-8661-612388a8a57c"),
    .version = TD_STR_INIT("10472"),
    .node = TD_STR_INIT("node-1"),
};

struct parts {
    struct td_buf shape;
    struct td_buf values;
    struct td_buf text;
};

static void parts_init(struct parts *parts)
{
    td_buf_init(&parts->shape, TD_JSON_BYTES_MAX);
    td_buf_init(&parts->values, TD_JSON_BYTES_MAX);
    td_buf_init(&parts->text, TD_JSON_BYTES_MAX);
}

static void parts_done(struct parts *parts)
{
    td_buf_done(&parts->shape);
    td_buf_done(&parts->values);
    td_buf_done(&parts->text);
}

/* Splits and joins; what comes out is what went in. */
static bool parts_check(struct parts *parts, td_str text, const struct td_pod_text_known *known)
{
    td_buf_reset(&parts->shape);
    td_buf_reset(&parts->values);
    td_buf_reset(&parts->text);
    if (!td_pod_text_split(text, known, &parts->shape, &parts->values)) {
        return false;
    }
    td_pod_text_join(td_buf_str(&parts->shape), td_buf_str(&parts->values), known, &parts->text);
    assert_true(td_str_equal(td_buf_str(&parts->text), text));
    return true;
}

/* What is recognised costs as many bytes as said, what is not stays in the shape. */
static void test_each_value_costs_what_it_must(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t shape;
        size_t values;
    } rows[] = {
        {"{}", 2, 0},
        {"", 0, 0},
        {"{\"name\":\"web-7f-x1\"}", 12, 0},
        {"{\"a\":\"web-7f-x1\",\"b\":\"web-7f-x12\"}", 26, 0},
        {"{\"uid\":\"2d94b5db-70a7-46d8-8661-612388a8a57c\"}", 11, 0},
        {"{\"resourceVersion\":\"10472\",\"nodeName\":\"node-1\"}", 38, 0},
        {"{\"startTime\":\"2026-01-02T03:04:05Z\"}", 17, 6},
        {"{\"any\":\"9999-99-99T99:99:99Z\"}", 11, 6},
        {"{\"any\":\"0000-00-00T00:00:00Z\"}", 11, 6},
        {"{\"any\":\"2026-01-02T03:04:05z\"}", 30, 0},
        {"{\"any\":\"2026-01-02 03:04:05Z\"}", 30, 0},
        {"{\"any\":\"2026-01-02T03:04:05.1Z\"}", 32, 0},
        {"{\"2026-01-02T03:04:05Z\":1}", 26, 0}, /* a name is no value */
        {"{\"restartCount\":0}", 18, 1},
        {"{\"restartCount\":127,\"a\":127}", 26, 1},
        {"{\"restartCount\":128}", 18, 2},
        {"{\"restartCount\":999999999999999999}", 18, 9},
        {"{\"restartCount\":9999999999999999999}", 36, 0}, /* more digits than are looked at */
        {"{\"restartCount\":01}", 19, 0},
        {"{\"restartCount\":-1}", 19, 0},
        {"{\"restartCount\":1.5}", 20, 0},
        {"{\"restartCount\":1e3}", 20, 0},
        {"{\"restartCount\":\"1\"}", 20, 0},
        {"{\"restartCount\":[1,2]}", 22, 0},
        {"{\"message\":\"a \\\"quoted\\\" \\\\ one\"}", 15, 20},
        {"{\"message\":\"\"}", 15, 1},
        {"{\"message\":{\"message\":null}}", 28, 0},
        {"[\"web-7f-x1\",\"node-1\"]", 9, 0},
    };
    struct parts parts;
    parts_init(&parts);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(parts_check(&parts, td_str_from(rows[i].text), &web));
        assert_int_equal(parts.shape.len, rows[i].shape);
        assert_int_equal(parts.values.len, rows[i].values);
    }
    parts_done(&parts);
}

/* A mark in the text would be taken for one of ours. */
static void test_refuses_what_is_no_compact_json(void **state)
{
    (void)state;
    static const char *const rows[] = {"{\n}", "{\"a\":\"\x01\"}", "{\"a\x05\":1}", "{\"a", "\"",
                                       "\"\\", "{\"a\":\"b\\\"}"};
    struct parts parts;
    parts_init(&parts);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool is_split = parts_check(&parts, td_str_from(rows[i]), &web);
        assert_int_equal(is_split, i == 0); /* white space is no mark */
    }
    parts_done(&parts);
}

static const char pod[] =
    "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"labels\":{\"app\":\"web\","
    "\"apps.kubernetes.io/pod-index\":\"%d\"},\"creationTimestamp\":\"2026-01-02T03:04:%02dZ\","
    "\"resourceVersion\":\"%s\",\"generation\":%d},\"spec\":{\"nodeName\":\"%s\"},\"status\":{"
    "\"containerStatuses\":[{\"name\":\"app\",\"restartCount\":%d,\"lastState\":{\"terminated\":{"
    "\"reason\":\"%s\",\"containerID\":\"containerd://%d\"}}}]}}";

static void test_pods_of_one_template_have_one_shape(void **state)
{
    (void)state;
    struct parts parts;
    char first[1024] = "";
    parts_init(&parts);
    for (int i = 0; i < 4; i++) {
        char text[1024];
        char name[16];
        char uid[16];
        char version[16];
        char node[16];
        (void)snprintf(name, sizeof(name), "web-%d", i);
        (void)snprintf(uid, sizeof(uid), "uid-%d", i);
        (void)snprintf(version, sizeof(version), "%d", 7 * i + 100);
        (void)snprintf(node, sizeof(node), "node-%d", i);
        const struct td_pod_text_known known = {.name = td_str_from(name),
                                                .uid = td_str_from(uid),
                                                .version = td_str_from(version),
                                                .node = td_str_from(node)};
        (void)snprintf(text, sizeof(text), pod, name, uid, i, 2 * i, version, i, node, 40 * i,
                       i == 3 ? "OOMKilled" : "Error", 1000 * i);
        assert_true(parts_check(&parts, td_str_from(text), &known));
        assert_true(parts.values.len < 40);
        if (i == 0) {
            (void)snprintf(first, sizeof(first), "%s", parts.shape.ptr);
        } else {
            assert_int_equal(strcmp(parts.shape.ptr, first) == 0, i < 3);
        }
    }
    assert_non_null(strstr(parts.shape.ptr, "\"OOMKilled\"")); /* words are looked for in shapes */
    parts_done(&parts);
}

/* Texts made of pieces that matter, in any order, JSON or not. */
static void test_any_text_comes_back(void **state)
{
    (void)state;
    static const char *const pieces[] = {"\"",
                                         "\"",
                                         ":",
                                         ",",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "\\",
                                         "0",
                                         "9",
                                         "12",
                                         "node-1",
                                         "10472",
                                         "-",
                                         "e",
                                         "\"restartCount\":",
                                         "\"message\":\"",
                                         "2026-01-02T03:04:05Z",
                                         "\"2026-01-02T03:04:05Z\"",
                                         "\"web-7f-x1\"",
                                         "\xc3\xa4",
                                         "\xff",
                                         "true",
                                         "\x1f",
                                         "\x01",
                                         "\x07"};
    struct parts parts;
    size_t split = 0;
    parts_init(&parts);
    for (int round = 0; round < 20000; round++) {
        char text[1024] = "";
        for (uint64_t left = random_below(12); left > 0; left--) {
            (void)strcat(text, pieces[random_below(sizeof(pieces) / sizeof(pieces[0]))]);
        }
        split += parts_check(&parts, td_str_from(text), &web);
    }
    assert_true(split > 5000);
    parts_done(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_value_costs_what_it_must),
        cmocka_unit_test(test_refuses_what_is_no_compact_json),
        cmocka_unit_test(test_pods_of_one_template_have_one_shape),
        cmocka_unit_test(test_any_text_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
