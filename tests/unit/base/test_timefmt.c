/* Times and durations as text: Go's readings, Go's refusals, Go's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/timefmt.h"
#include "support/random.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define ROUNDS 20000

/* Every liberty of Go's parser is taken and gives the instant that Go gives. */
static void test_time_parse_reads_what_go_reads(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t unix_seconds;
        int32_t nanos;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"2024-02-29T23:59:59Z", 1709251199, 0},
        {"2006-01-02T15:04:05+07:00", 1136189045, 0},
        {"2006-01-02T15:04:05-07:00", 1136239445, 0},
        {"2006-01-02T5:04:05Z", 1136178245, 0},
        {"2006-01-02T15:04:05.5Z", 1136214245, 500000000},
        {"2006-01-02T15:04:05,5Z", 1136214245, 500000000},
        {"2006-01-02T15:04:05.1234567899Z", 1136214245, 123456789},
        {"2006-01-02T15:04:05.000000001Z", 1136214245, 1},
        {"2006-01-02T15:04:05+24:60", 1136124245, 0},
        {"0001-01-01T00:00:00Z", -62135596800, 0},
        {"0000-01-01T00:00:00Z", -62167219200, 0},
        {"0000-02-29T00:00:00Z", -62162121600, 0},
        {"0000-01-01T00:00:00+24:00", -62167305600, 0},
        {"9999-12-31T23:59:59.999999999Z", 253402300799, 999999999},
        {"2000-02-29T00:00:00Z", 951782400, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_instant instant;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_time_parse(td_str_from(rows[i].text), &instant, &err), TD_OK);
        assert_int_equal(instant.unix_seconds, rows[i].unix_seconds);
        assert_int_equal(instant.nanos, rows[i].nanos);
        assert_int_equal(err.code, TD_OK);
    }
}

/* A refused time leaves the result alone and is named in the message. */
static void test_time_parse_refuses_what_go_refuses(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "2006",
        "206-01-02T15:04:05Z",
        "+006-01-02T15:04:05Z",
        "2006-1-02T15:04:05Z",
        "2006-00-02T15:04:05Z",
        "2006-13-02T15:04:05Z",
        "2006-01-2T15:04:05Z",
        "2006-01-00T15:04:05Z",
        "2006-01-32T15:04:05Z",
        "2005-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2006-04-31T00:00:00Z",
        "2006-01-02 15:04:05Z",
        "2006-01-02t15:04:05Z",
        "2006-01-02T24:00:00Z",
        "2006-01-02T15:60:05Z",
        "2006-01-02T15:4:05Z",
        "2006-01-02T15:04:60Z",
        "2006-01-02T15:04:5Z",
        "2006-01-02T15:04:05",
        "2006-01-02T15:04:05z",
        "2006-01-02T15:04:05.Z",
        "2006-01-02T15:04:05+0700",
        "2006-01-02T15:04:05+07",
        "2006-01-02T15:04:05+25:00",
        "2006-01-02T15:04:05+07:61",
        "2006-01-02T15:04:05 07:00",
        "2006-01-02T15:04:05Z ",
        " 2006-01-02T15:04:05Z",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_instant instant = {.unix_seconds = 7, .nanos = 7};
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_time_parse(td_str_from(rows[i]), &instant, &err), TD_INVALID);
        assert_int_equal(instant.unix_seconds, 7);
        assert_non_null(strstr(err.message, rows[i]));
    }
    assert_int_equal(td_time_parse((td_str){.ptr = NULL, .len = 0}, &(struct td_instant){0}, NULL),
                     TD_INVALID);
}

/* A layout with a fixed fraction wants exactly its digits, and reads them as Go's signed number. */
static void test_time_parse_fraction_wants_all_digits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        int32_t nanos;
    } rows[] = {
        {"2006-01-02T15:04:05.123456Z", TD_OK, 123456000},
        {"2006-01-02T15:04:05,123456+01:00", TD_OK, 123456000},
        {"2006-01-02T15:04:05.+12345Z", TD_OK, 12345000},
        {"2006-01-02T15:04:05.-00000Z", TD_OK, 0},
        {"2006-01-02T15:04:05.-00001Z", TD_INVALID, 0},
        {"2006-01-02T15:04:05.12345Z", TD_INVALID, 0},
        {"2006-01-02T15:04:05.1234567Z", TD_INVALID, 0},
        {"2006-01-02T15:04:05Z", TD_INVALID, 0},
        {"2006-01-02T15:04:05.", TD_INVALID, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_instant instant = {.nanos = 0};
        int code = td_time_parse_fraction(td_str_from(rows[i].text), 6, &instant, NULL);
        assert_int_equal(code, rows[i].code);
        assert_int_equal(instant.nanos, rows[i].nanos);
    }
}

/* Formatting is in UTC, cuts digits, and follows Go past the years of RFC 3339. */
static void test_time_format_writes_as_go(void **state)
{
    (void)state;
    static const struct {
        struct td_instant instant;
        int digits;
        const char *text;
    } rows[] = {
        {{0, 0}, 0, "1970-01-01T00:00:00Z"},
        {{1709251199, 999999999}, 0, "2024-02-29T23:59:59Z"},
        {{1709251199, 999999999}, 6, "2024-02-29T23:59:59.999999Z"},
        {{-1, 1}, 9, "1969-12-31T23:59:59.000000001Z"},
        {{-62135596800, 0}, 3, "0001-01-01T00:00:00.000Z"},
        {{-62167219201, 0}, 0, "-0001-12-31T23:59:59Z"},
        {{253402300800, 0}, 0, "10000-01-01T00:00:00Z"},
        {{INT64_MAX, 999999999}, 9, "292277026596-12-04T15:30:07.999999999Z"},
        {{INT64_MIN, 0}, 0, "292277026596-12-04T15:30:08Z"},
        {{-9223372028741760000, 0}, 9, "-292277022400-03-01T00:00:00.000000000Z"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[TD_TIME_TEXT_BYTES];
        size_t len = td_time_format(rows[i].instant, rows[i].digits, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(len, strlen(rows[i].text));
    }
}

/* Whatever is written in the years 0000 to 9999 reads back as the same instant. */
static void test_time_round_trips(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct td_instant before = {
            .unix_seconds = (int64_t)(random_next() % UINT64_C(315569520000)) - 62167219200,
            .nanos = (int32_t)(random_next() % 1000000000),
        };
        char text[TD_TIME_TEXT_BYTES];
        size_t len = td_time_format(before, 9, text);
        struct td_instant after;
        assert_int_equal(td_time_parse((td_str){.ptr = text, .len = len}, &after, NULL), TD_OK);
        assert_int_equal(after.unix_seconds, before.unix_seconds);
        assert_int_equal(after.nanos, before.nanos);
    }
}

/* Between instants and td_time nothing is lost inside the range, and the rest is clamped. */
static void test_time_instants_convert_and_clamp(void **state)
{
    (void)state;
    static const struct {
        struct td_instant instant;
        td_time time;
    } exact[] = {
        {{0, 0}, 0},
        {{0, 1}, 1},
        {{-1, 999999999}, -1},
        {{9223372036, 854775807}, INT64_MAX},
        {{-9223372037, 145224192}, INT64_MIN},
        {{-9223372036, 0}, -9223372036000000000},
    };
    for (size_t i = 0; i < COUNT(exact); i++) {
        assert_int_equal(td_time_from_instant(exact[i].instant), exact[i].time);
        struct td_instant back = td_time_to_instant(exact[i].time);
        assert_int_equal(back.unix_seconds, exact[i].instant.unix_seconds);
        assert_int_equal(back.nanos, exact[i].instant.nanos);
    }
    assert_int_equal(td_time_from_instant((struct td_instant){9223372036, 854775808}), INT64_MAX);
    assert_int_equal(td_time_from_instant((struct td_instant){INT64_MAX, 0}), INT64_MAX);
    assert_int_equal(td_time_from_instant((struct td_instant){-9223372037, 145224191}), INT64_MIN);
    assert_int_equal(td_time_from_instant((struct td_instant){INT64_MIN, 0}), INT64_MIN);
    assert_int_equal(td_time_from_instant(TD_INSTANT_ZERO), INT64_MIN);
}

/* Durations are read with every quirk of Go's ParseDuration. */
static void test_duration_parse_reads_what_go_reads(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        td_duration duration;
    } rows[] = {
        {"0", 0},
        {"+0", 0},
        {"-0", 0},
        {"0s", 0},
        {"1h30m0.5s", 5400500000000},
        {"1.5h", 5400000000000},
        {"-.5s", -500000000},
        {"5.s", 5000000000},
        {"1ns", 1},
        {"1us", 1000},
        {"1\u00b5s", 1000},
        {"1\u03bcs", 1000},
        {"3ms2us1ns", 3002001},
        {"1s1s", 2000000000},
        {"0.3333333333333333333h", 1200000000000},
        {"0.100000000000000000000h", 360000000000},
        {"0.9223372036854775808h", 3320413933267},
        {"9223372036854775807ns", INT64_MAX},
        {"-9223372036854775808ns", INT64_MIN},
        {"-2562047h47m16.854775808s", INT64_MIN},
        {"9223372036854775808ns9223372036854775808ns", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_duration duration = 7;
        assert_int_equal(td_duration_parse(td_str_from(rows[i].text), &duration, NULL), TD_OK);
        assert_int_equal(duration, rows[i].duration);
    }
}

/* A refused duration leaves the result alone and is named in the message. */
static void test_duration_parse_refuses_what_go_refuses(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "+",
        "-",
        "3",
        "1.5",
        "s",
        ".s",
        "-.s",
        "1 s",
        " 1s",
        "1s ",
        "1d",
        "1S",
        "--1s",
        "+-1s",
        "1\xc2s",
        "1e3s",
        "1_0s",
        "0x1s",
        "9223372036854775808ns",
        "2562048h",
        "3000000h",
        "1..5s",
        "99999999999999999999ns",
        "-9223372036854775809ns",
        "9223372036854775807ns1ns",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_duration duration = 7;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_duration_parse(td_str_from(rows[i]), &duration, &err), TD_INVALID);
        assert_int_equal(duration, 7);
        assert_true(strncmp(err.message, "duration '", 10) == 0);
    }
}

/* Durations are written as Go's String. */
static void test_duration_format_writes_as_go(void **state)
{
    (void)state;
    static const struct {
        td_duration duration;
        const char *text;
    } rows[] = {
        {0, "0s"},
        {1, "1ns"},
        {-999, "-999ns"},
        {1000, "1\u00b5s"},
        {1100, "1.1\u00b5s"},
        {999999, "999.999\u00b5s"},
        {2200000, "2.2ms"},
        {999999999, "999.999999ms"},
        {TD_SECOND, "1s"},
        {3300000000, "3.3s"},
        {59999999999, "59.999999999s"},
        {TD_MINUTE, "1m0s"},
        {TD_HOUR, "1h0m0s"},
        {TD_HOUR + TD_MILLISECOND, "1h0m0.001s"},
        {INT64_MAX, "2562047h47m16.854775807s"},
        {INT64_MIN, "-2562047h47m16.854775808s"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[TD_DURATION_TEXT_BYTES];
        size_t len = td_duration_format(rows[i].duration, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(len, strlen(rows[i].text));
    }
}

/* Whole seconds and below, whatever is written reads back the same. Above, the fraction of a
 * second still has nine digits, which a double holds. */
static void test_duration_round_trips(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        td_duration before = (td_duration)random_next() >> (random_next() % 64);
        char text[TD_DURATION_TEXT_BYTES];
        size_t len = td_duration_format(before, text);
        td_duration after = 0;
        assert_int_equal(td_duration_parse((td_str){.ptr = text, .len = len}, &after, NULL), TD_OK);
        assert_int_equal(after, before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_parse_reads_what_go_reads),
        cmocka_unit_test(test_time_parse_refuses_what_go_refuses),
        cmocka_unit_test(test_time_parse_fraction_wants_all_digits),
        cmocka_unit_test(test_time_format_writes_as_go),
        cmocka_unit_test(test_time_round_trips),
        cmocka_unit_test(test_time_instants_convert_and_clamp),
        cmocka_unit_test(test_duration_parse_reads_what_go_reads),
        cmocka_unit_test(test_duration_parse_refuses_what_go_refuses),
        cmocka_unit_test(test_duration_format_writes_as_go),
        cmocka_unit_test(test_duration_round_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
