/* Times and durations of API objects as JSON tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "kube/metatime.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define TEXT_BYTES 128

static void assert_written(struct td_buf *buf, const char *expected)
{
    assert_string_equal(td_buf_str(buf).ptr, expected);
    td_buf_reset(buf);
}

/* Times are read in any zone and written in UTC; seconds only, or six digits. */
static void test_metatime_round_trips(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        int32_t nanos;
        const char *seconds; /* as Time writes it */
        const char *micros;  /* as MicroTime writes it */
    } rows[] = {
        {"\"2024-05-06T07:08:09.123456Z\"", 123456000, "\"2024-05-06T07:08:09Z\"",
         "\"2024-05-06T07:08:09.123456Z\""},
        {"\"2024-05-06T07:08:09.000001+02:00\"", 1000, "\"2024-05-06T05:08:09Z\"",
         "\"2024-05-06T05:08:09.000001Z\""},
        {" \"2024-05-06T07:08:09.500000\\u005a\" ", 500000000, "\"2024-05-06T07:08:09Z\"",
         "\"2024-05-06T07:08:09.500000Z\""},
        {"\"0001-01-01T00:00:00.000000Z\"", 0, "null", "null"},
        {"null", 0, "null", "null"},
    };
    td_auto_buf buf;
    td_buf_init(&buf, TEXT_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_instant instant;
        assert_int_equal(td_metatime_parse_json(td_str_from(rows[i].token), &instant, NULL), TD_OK);
        assert_int_equal(instant.nanos, rows[i].nanos);
        td_metatime_write_json(instant, &buf);
        assert_written(&buf, rows[i].seconds);
        assert_int_equal(td_microtime_parse_json(td_str_from(rows[i].token), &instant, NULL),
                         TD_OK);
        assert_int_equal(instant.nanos, rows[i].nanos);
        td_microtime_write_json(instant, &buf);
        assert_written(&buf, rows[i].micros);
    }
}

/* Only strings of the right shape are times; a refused one leaves the result alone. */
static void test_metatime_refuses_other_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        int time_code;
        int micro_code;
    } rows[] = {
        {"", TD_INVALID, TD_INVALID},
        {"1", TD_INVALID, TD_INVALID},
        {"true", TD_INVALID, TD_INVALID},
        {"{}", TD_INVALID, TD_INVALID},
        {"\"\"", TD_INVALID, TD_INVALID},
        {" null", TD_INVALID, TD_INVALID},
        {"\"2024-05-06\"", TD_INVALID, TD_INVALID},
        {"2024-05-06T07:08:09Z", TD_INVALID, TD_INVALID},
        {"\"2024-05-06T07:08:09Z\"x", TD_INVALID, TD_INVALID},
        {"\"2024-05-06T07:08:09Z\"", TD_OK, TD_INVALID},
        {"\"2024-05-06T07:08:09.1Z\"", TD_OK, TD_INVALID},
        {"\"2024-05-06T07:08:09.1234567Z\"", TD_OK, TD_INVALID},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_instant instant = {.unix_seconds = 7};
        struct td_error err = TD_ERROR_INIT;
        int code = td_microtime_parse_json(td_str_from(rows[i].token), &instant, &err);
        assert_int_equal(code, rows[i].micro_code);
        assert_int_equal(instant.unix_seconds, 7);
        assert_true(err.message[0] != '\0');
        code = td_metatime_parse_json(td_str_from(rows[i].token), &instant, NULL);
        assert_int_equal(code, rows[i].time_code);
        assert_true(code == TD_OK || instant.unix_seconds == 7);
    }
}

/* Durations are strings; null is none. */
static void test_metaduration_reads_and_writes_strings(void **state)
{
    (void)state;
    td_auto_buf buf;
    td_buf_init(&buf, TEXT_BYTES);
    td_duration duration = 7;
    assert_int_equal(td_metaduration_parse_json(TD_STR("\"90s\""), &duration, NULL), TD_OK);
    td_metaduration_write_json(duration, &buf);
    assert_written(&buf, "\"1m30s\"");
    td_metaduration_write_json(1500, &buf);
    assert_written(&buf, "\"1.5\u00b5s\"");
    static const char *const refused[] = {"null", "90", "\"90\"", "\"\"", "90s", ""};
    duration = 7;
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_metaduration_parse_json(td_str_from(refused[i]), &duration, &err),
                         TD_INVALID);
        assert_int_equal(duration, 7);
        assert_true(err.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metatime_round_trips),
        cmocka_unit_test(test_metatime_refuses_other_tokens),
        cmocka_unit_test(test_metaduration_reads_and_writes_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
