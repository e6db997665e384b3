/* The log: both forms of a line, caps, escapes, secrets and the counting of repeats. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/log.h"

/* 2026-01-02T15:04:05.123Z */
#define START (1767366245 * TD_SECOND + 123 * TD_MILLISECOND)

struct fixture {
    struct td_clock clock;
    FILE *stream;
    char *text;
    size_t len;
    struct td_log *log;
};

static void fixture_init(struct fixture *f, enum td_log_level level, enum td_log_format format)
{
    *f = (struct fixture){.clock = td_clock_virtual(START)};
    f->stream = open_memstream(&f->text, &f->len);
    assert_non_null(f->stream);
    const struct td_log_options options = {
        .stream = f->stream,
        .clock = &f->clock,
        .level = level,
        .format = format,
    };
    f->log = td_log_new(&options);
}

static void fixture_done(struct fixture *f)
{
    td_log_free(f->log);
    (void)fclose(f->stream);
    free(f->text);
}

/* The text form, with values of each type. */
static void test_log_text_line(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, TD_LOG_INFO, TD_LOG_TEXT);
    td_log_line(f.log, TD_LOG_INFO, "evicted pod", TD_LOG_C("pod", "web-1"),
                TD_LOG_I("age_seconds", 4));
    assert_string_equal(f.text,
                        "2026-01-02T15:04:05.123Z INFO  evicted pod pod=web-1 age_seconds=4\n");
    fixture_done(&f);
    fixture_init(&f, TD_LOG_DEBUG, TD_LOG_TEXT);
    td_clock_advance(&f.clock, 59 * TD_SECOND);
    td_log_line(f.log, TD_LOG_ERROR, "all types", TD_LOG_S("s", TD_STR("x")),
                TD_LOG_I("i", INT64_MIN), TD_LOG_F("f", 0.1), TD_LOG_F("nan", NAN),
                TD_LOG_F("inf", -INFINITY), TD_LOG_B("b", true), TD_LOG_SECRET("token"));
    assert_string_equal(f.text,
                        "2026-01-02T15:05:04.123Z ERROR all types s=x i=-9223372036854775808 "
                        "f=0.1 nan=NaN inf=-Inf b=true token=<hidden>\n");
    fixture_done(&f);
}

/* The JSON form is one valid object a line, with the same values. */
static void test_log_json_line(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, TD_LOG_INFO, TD_LOG_JSON);
    td_log_line(f.log, TD_LOG_WARN, "said \"no\"", TD_LOG_C("why", "a\nb\x01\\"),
                TD_LOG_F("cpu", 1e21), TD_LOG_F("nan", NAN), TD_LOG_B("ok", false),
                TD_LOG_SECRET("token"), TD_LOG_S("bad", TD_STR("x\xff")));
    assert_string_equal(
        f.text, "{\"time\":\"2026-01-02T15:04:05.123Z\",\"level\":\"warn\",\"msg\":\"said "
                "\\\"no\\\"\",\"why\":\"a\\nb\\u0001\\\\\",\"cpu\":1e+21,\"nan\":\"NaN\",\"ok\":"
                "false,\"token\":\"<hidden>\",\"bad\":\"x\xEF\xBF\xBD\"}\n");
    json_t *parsed = json_loads(f.text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(parsed);
    assert_string_equal(json_string_value(json_object_get(parsed, "why")), "a\nb\x01\\");
    json_decref(parsed);
    fixture_done(&f);
}

/* A value is quoted when a reader could not tell where it begins or ends, or when a terminal would
 * act on it. */
static void test_log_quotes_and_escapes_values(void **state)
{
    (void)state;
    static const struct {
        td_str value;
        const char *written;
    } rows[] = {
        {TD_STR_INIT("plain/1.2:3"), "plain/1.2:3"},
        {TD_STR_INIT(""), "\"\""},
        {{.ptr = NULL, .len = 0}, "\"\""},
        {TD_STR_INIT("two words"), "\"two words\""},
        {TD_STR_INIT("a=b"), "\"a=b\""},
        {TD_STR_INIT("say \"x\""), "\"say \\\"x\\\"\""},
        {TD_STR_INIT("back\\slash"), "\"back\\\\slash\""},
        {TD_STR_INIT("line\r\n\tend"), "\"line\\r\\n\\tend\""},
        {TD_STR_INIT("\x1b[31mred"), "\"\\u001b[31mred\""},
        {TD_STR_INIT("nul\0byte"), "\"nul\\u0000byte\""},
        {TD_STR_INIT("\x7f"), "\"\\u007f\""},
        {TD_STR_INIT("\xC2\x9B"
                     "31m"),
         "\"\\u009b31m\""},
        {TD_STR_INIT("caf\xC3\xA9\xC2\xA0"), "caf\xC3\xA9\xC2\xA0"},
        {TD_STR_INIT("\xff\xfe"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        fixture_init(&f, TD_LOG_INFO, TD_LOG_TEXT);
        td_log_line(f.log, TD_LOG_INFO, "m", TD_LOG_S("v", rows[i].value));
        char expected[200];
        (void)snprintf(expected, sizeof(expected), "2026-01-02T15:04:05.123Z INFO  m v=%s\n",
                       rows[i].written);
        assert_string_equal(f.text, expected);
        fixture_done(&f);
    }
}

/* Lines above the level are dropped and not counted; no log drops all. */
static void test_log_drops_below_its_level(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, TD_LOG_WARN, TD_LOG_TEXT);
    td_log_write(f.log, TD_LOG_INFO, "unseen", NULL);
    td_log_write(f.log, TD_LOG_DEBUG, "unseen", NULL);
    td_log_write(NULL, TD_LOG_ERROR, "unseen", NULL);
    td_log_write(f.log, TD_LOG_WARN, "seen", NULL);
    td_log_write(f.log, TD_LOG_ERROR, "seen", NULL);
    td_log_free(f.log);
    f.log = NULL;
    assert_string_equal(f.text, "2026-01-02T15:04:05.123Z WARN  seen\n"
                                "2026-01-02T15:04:05.123Z ERROR seen\n");
    fixture_done(&f);
}

/* A long value is cut at a whole character; fields that no longer fit are left out and the line
 * says so, and stays one valid line in both forms. */
static void test_log_caps_values_and_lines(void **state)
{
    (void)state;
    static char value[3000];
    static const enum td_log_format formats[] = {TD_LOG_TEXT, TD_LOG_JSON};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        fixture_init(&f, TD_LOG_INFO, formats[i]);
        memset(value, 'a', sizeof(value) - 1);
        memcpy(value + TD_LOG_VALUE_BYTES_MAX - 1, "\xC3\xA9", 2);
        td_log_line(f.log, TD_LOG_INFO, "long", TD_LOG_C("v", value));
        assert_non_null(strstr(f.text, "aaa..."));
        assert_null(strstr(f.text, "\xC3"));
        assert_in_range(strlen(f.text), TD_LOG_VALUE_BYTES_MAX, TD_LOG_VALUE_BYTES_MAX + 200);

        size_t before = f.len;
        struct td_log_field fields[21] = {0};
        memset(value, 1, sizeof(value) - 1); /* each byte becomes six */
        for (size_t j = 0; j < 20; j++) {
            fields[j] = TD_LOG_C("v", value);
        }
        td_log_write(f.log, TD_LOG_INFO, value, fields);
        const char *line = f.text + before;
        assert_true(strlen(line) <= TD_LOG_LINE_BYTES_MAX);
        assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
        assert_non_null(
            strstr(line, formats[i] == TD_LOG_JSON ? ",\"cut\":true}\n" : " cut=true\n"));
        if (formats[i] == TD_LOG_JSON) {
            json_t *parsed = json_loads(line, 0, NULL);
            assert_non_null(parsed);
            json_decref(parsed);
        }
        fixture_done(&f);
    }
}

/* Repeats inside the window are counted per level and message, whatever their fields, and the count
 * comes with the first line after it. */
static void test_log_counts_repeats(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, TD_LOG_INFO, TD_LOG_TEXT);
    for (int i = 0; i < 42; i++) {
        td_log_line(f.log, TD_LOG_INFO, "evicted pod", TD_LOG_I("n", i));
        td_clock_advance(&f.clock, 100 * TD_MILLISECOND);
    }
    td_log_write(f.log, TD_LOG_WARN, "evicted pod", NULL);
    td_clock_advance(&f.clock, 10 * TD_SECOND);
    td_log_write(f.log, TD_LOG_DEBUG, "dropped, so it writes nothing", NULL);
    td_log_write(f.log, TD_LOG_INFO, "other", NULL);
    td_log_line(f.log, TD_LOG_INFO, "evicted pod", TD_LOG_I("n", 42));
    assert_string_equal(f.text,
                        "2026-01-02T15:04:05.123Z INFO  evicted pod n=0\n"
                        "2026-01-02T15:04:09.323Z WARN  evicted pod\n"
                        "2026-01-02T15:04:19.323Z INFO  evicted pod (repeated 41 times in 10s)\n"
                        "2026-01-02T15:04:19.323Z INFO  other\n"
                        "2026-01-02T15:04:19.323Z INFO  evicted pod n=42\n");
    fixture_done(&f);
}

/* What is still held back is written when the log is freed; JSON has the count as fields. */
static void test_log_free_writes_held_counts(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, TD_LOG_INFO, TD_LOG_JSON);
    td_log_write(f.log, TD_LOG_INFO, "m", NULL);
    td_clock_advance(&f.clock, 2500 * TD_MILLISECOND);
    td_log_write(f.log, TD_LOG_INFO, "m", NULL);
    td_log_free(f.log);
    f.log = NULL;
    assert_string_equal(
        f.text,
        "{\"time\":\"2026-01-02T15:04:05.123Z\",\"level\":\"info\",\"msg\":\"m\"}\n"
        "{\"time\":\"2026-01-02T15:04:07.623Z\",\"level\":\"info\",\"msg\":\"m\",\"repeated\":1,"
        "\"seconds\":3}\n");
    fixture_done(&f);
}

/* The window's last nanosecond still counts; its end does not. */
static void test_log_window_ends_on_time(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, TD_LOG_INFO, TD_LOG_TEXT);
    td_log_write(f.log, TD_LOG_INFO, "m", NULL);
    td_clock_advance(&f.clock, TD_LOG_REPEAT_WINDOW_MS * TD_MILLISECOND - 1);
    td_log_write(f.log, TD_LOG_INFO, "m", NULL);
    td_clock_advance(&f.clock, 1);
    td_log_write(f.log, TD_LOG_INFO, "m", NULL);
    assert_string_equal(f.text, "2026-01-02T15:04:05.123Z INFO  m\n"
                                "2026-01-02T15:04:15.123Z INFO  m (repeated 1 time in 10s)\n"
                                "2026-01-02T15:04:15.123Z INFO  m\n");
    fixture_done(&f);
}

/* The table of messages is bounded: with too many the oldest is closed early, and none is lost. */
static void test_log_repeat_table_is_bounded(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, TD_LOG_INFO, TD_LOG_TEXT);
    int printed = 0;
    int counted = 0;
    for (int i = 0; i < 10 * TD_LOG_REPEATS_MAX; i++) {
        char message[32];
        (void)snprintf(message, sizeof(message), "message %d", i);
        td_log_write(f.log, TD_LOG_INFO, message, NULL);
        td_log_write(f.log, TD_LOG_INFO, message, NULL);
    }
    td_log_free(f.log);
    f.log = NULL;
    for (const char *at = f.text; (at = strchr(at, '\n')) != NULL; at++) {
        printed++;
    }
    for (const char *at = f.text; (at = strstr(at, "(repeated 1 time in 0s)")) != NULL; at++) {
        counted++;
    }
    assert_int_equal(printed, 20 * TD_LOG_REPEATS_MAX);
    assert_int_equal(counted, 10 * TD_LOG_REPEATS_MAX);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_text_line),
        cmocka_unit_test(test_log_json_line),
        cmocka_unit_test(test_log_quotes_and_escapes_values),
        cmocka_unit_test(test_log_drops_below_its_level),
        cmocka_unit_test(test_log_caps_values_and_lines),
        cmocka_unit_test(test_log_counts_repeats),
        cmocka_unit_test(test_log_free_writes_held_counts),
        cmocka_unit_test(test_log_window_ends_on_time),
        cmocka_unit_test(test_log_repeat_table_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
