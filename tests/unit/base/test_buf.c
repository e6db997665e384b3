/* The byte buffer: growth up to its maximum, the sticky failure, reserve and consume. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"

static void assert_content(const struct td_buf *buf, const char *expected)
{
    td_str content = td_buf_str(buf);
    assert_int_equal(content.len, strlen(expected));
    assert_string_equal(content.ptr, expected);
}

/* A buffer that was never written has content that is empty, terminated and not NULL. */
static void test_buf_is_a_valid_slice_from_birth(void **state)
{
    (void)state;
    td_auto_buf buf;
    td_buf_init(&buf, 10);
    assert_content(&buf, "");
    td_buf_reset(&buf);
    td_buf_consume(&buf, 0);
    assert_int_equal(td_buf_append(&buf, (td_str){.ptr = NULL, .len = 0}), TD_OK);
    assert_content(&buf, "");
}

/* Every way of appending, one after the other. */
static void test_buf_appends_texts_bytes_formats_and_numbers(void **state)
{
    (void)state;
    td_auto_buf buf;
    td_buf_init(&buf, 1000);
    assert_int_equal(td_buf_append(&buf, TD_STR("ab")), TD_OK);
    assert_int_equal(td_buf_append_char(&buf, ','), TD_OK);
    assert_int_equal(td_buf_append_format(&buf, "%s=%d", "x", 5), TD_OK);
    assert_int_equal(td_buf_append_format(&buf, "%s", ""), TD_OK);
    static const int64_t numbers[] = {0, -1, 9, 10, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_int_equal(td_buf_append_char(&buf, ' '), TD_OK);
        assert_int_equal(td_buf_append_int64(&buf, numbers[i]), TD_OK);
    }
    assert_content(&buf, "ab,x=5 0 -1 9 10 9223372036854775807 -9223372036854775808");
    assert_int_equal(td_buf_check(&buf, "text", NULL), TD_OK);
}

/* The maximum itself fits; one byte more does not, changes nothing and sticks until reset. */
static void test_buf_maximum_is_sticky(void **state)
{
    (void)state;
    static const size_t maxima[] = {0, 1, 63, 64, 65, 1000};
    for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
        td_auto_buf buf;
        td_buf_init(&buf, maxima[i]);
        for (size_t j = 0; j < maxima[i]; j++) {
            assert_int_equal(td_buf_append_char(&buf, 'x'), TD_OK);
        }
        assert_int_equal(td_buf_check(&buf, "answer", NULL), TD_OK);
        assert_int_equal(td_buf_append_char(&buf, 'y'), TD_LIMIT);
        assert_int_equal(buf.len, maxima[i]);
        assert_true(buf.cap <= maxima[i] + 1);
        td_buf_consume(&buf, buf.len);
        assert_int_equal(td_buf_append(&buf, TD_STR("")), TD_LIMIT);
        assert_int_equal(td_buf_append_format(&buf, "%d", 1), TD_LIMIT);
        assert_int_equal(td_buf_append_int64(&buf, 1), TD_LIMIT);
        assert_null(td_buf_reserve(&buf, 0));
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_buf_check(&buf, "answer", &err), TD_LIMIT);
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "answer is larger than %zu bytes", maxima[i]);
        assert_string_equal(err.message, expected);
        td_buf_reset(&buf);
        assert_content(&buf, "");
        assert_int_equal(td_buf_append(&buf, (td_str){.ptr = expected, .len = maxima[i] % 32}),
                         TD_OK);
    }
}

/* Lengths that would overflow a sum are refused like any other that is too large. */
static void test_buf_refuses_lengths_that_overflow(void **state)
{
    (void)state;
    td_auto_buf buf;
    td_buf_init(&buf, SIZE_MAX - 1);
    assert_int_equal(td_buf_append(&buf, TD_STR("abc")), TD_OK);
    assert_null(td_buf_reserve(&buf, SIZE_MAX));
    td_buf_reset(&buf);
    assert_int_equal(td_buf_append(&buf, TD_STR("abc")), TD_OK);
    assert_null(td_buf_reserve(&buf, SIZE_MAX - 3));
    assert_content(&buf, "abc");
}

/* What was reserved is content once it is committed, wholly or in part. */
static void test_buf_reserve_then_commit(void **state)
{
    (void)state;
    td_auto_buf buf;
    td_buf_init(&buf, 200);
    char *place = td_buf_reserve(&buf, 200);
    assert_non_null(place);
    memcpy(place, "hello", 5);
    td_buf_commit(&buf, 3);
    assert_content(&buf, "hel");
    place = td_buf_reserve(&buf, 197);
    assert_non_null(place);
    memset(place, 'z', 197);
    td_buf_commit(&buf, 197);
    assert_int_equal(buf.len, 200);
    assert_int_equal(buf.ptr[200], '\0');
    assert_null(td_buf_reserve(&buf, 1));
}

/* Consuming moves the rest to the front and leaves it terminated. */
static void test_buf_consume_keeps_the_rest(void **state)
{
    (void)state;
    td_auto_buf buf;
    td_buf_init(&buf, 100);
    assert_int_equal(td_buf_append(&buf, TD_STR("line one\nrest")), TD_OK);
    td_buf_consume(&buf, 9);
    assert_content(&buf, "rest");
    td_buf_consume(&buf, 4);
    assert_content(&buf, "");
    assert_int_equal(td_buf_append(&buf, TD_STR("new")), TD_OK);
    assert_content(&buf, "new");
}

/* For reading: few digits, no exponent, no zeros at the end. */
static void test_buf_numbers_have_no_exponent(void **state)
{
    (void)state;
    static const struct {
        double value;
        int digits;
        const char *text;
    } rows[] = {
        {0, 3, "0"},         {28.71, 3, "28.7"},
        {2880, 3, "2880"},   {1.5, 3, "1.5"},
        {999.96, 4, "1000"}, {0.12345, 3, "0.123"},
        {-2.999, 2, "-3"},   {1e21, 3, "1000000000000000000000"},
        {100, 3, "100"},     {0.05, 3, "0.05"},
        {1e-12, 3, "0"},     {HUGE_VAL, 3, "infinite"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf buf = td_buf_capped(100);
        assert_int_equal(td_buf_append_number(&buf, rows[i].value, rows[i].digits), TD_OK);
        assert_content(&buf, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf_is_a_valid_slice_from_birth),
        cmocka_unit_test(test_buf_appends_texts_bytes_formats_and_numbers),
        cmocka_unit_test(test_buf_maximum_is_sticky),
        cmocka_unit_test(test_buf_refuses_lengths_that_overflow),
        cmocka_unit_test(test_buf_reserve_then_commit),
        cmocka_unit_test(test_buf_consume_keeps_the_rest),
        cmocka_unit_test(test_buf_numbers_have_no_exponent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
