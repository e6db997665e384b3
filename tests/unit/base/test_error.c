/* The error object: set once, wrapped on the way up, cut at a whole character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/str.h"

/* Setting returns the code and fills every field; wrapping reads from intent to cause. */
static void test_error_set_and_wrap_read_from_intent_to_cause(void **state)
{
    (void)state;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(err.code, TD_OK);
    assert_int_equal(td_error_set(&err, TD_INVALID, "tab in indentation"), TD_INVALID);
    int line = __LINE__ - 1;
    assert_int_equal(err.code, TD_INVALID);
    assert_int_equal(err.line, line);
    assert_non_null(strstr(err.file, "test_error.c"));
    assert_int_equal(td_error_wrap(&err, TD_INVALID, "line %d", 3), TD_INVALID);
    assert_int_equal(td_error_wrap(&err, TD_INVALID, "read '%s'", "a.yaml"), TD_INVALID);
    assert_string_equal(err.message, "read 'a.yaml': line 3: tab in indentation");
    assert_int_equal(err.line, line);
}

/* A caller need not pass an error object to get the code. */
static void test_error_set_without_object_returns_the_code(void **state)
{
    (void)state;
    assert_int_equal(td_error_set(NULL, TD_GONE, "unseen"), TD_GONE);
    assert_int_equal(td_error_wrap(NULL, TD_GONE, "unseen"), TD_GONE);
}

/* A message of exactly the room fits; one more byte is cut; a character is never split. */
static void test_error_message_is_cut_at_a_whole_character(void **state)
{
    (void)state;
    static const struct {
        const char *tail;
        size_t fill;
        size_t kept; /* of the tail */
    } rows[] = {
        {"", 1023, 0},
        {"x", 1022, 1},
        {"x", 1023, 0},
        {"\xC3\xA9", 1021, 2},
        {"\xC3\xA9", 1022, 0},
        {"\xE2\x82\xAC", 1020, 3},
        {"\xE2\x82\xAC", 1021, 0},
        {"\xE2\x82\xAC", 1022, 0},
        {"\xF0\x9F\x98\x80", 1019, 4},
        {"\xF0\x9F\x98\x80", 1020, 0},
        {"\xF0\x9F\x98\x80", 1022, 0},
        {"\x80\x80\x80\x80\x80", 1021, 2}, /* no UTF-8: cut where it is */
    };
    char fill[TD_ERROR_MESSAGE_BYTES];
    memset(fill, 'a', sizeof(fill));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        (void)td_error_set(&err, TD_IO, "%.*s%s", (int)rows[i].fill, fill, rows[i].tail);
        assert_int_equal(strlen(err.message), rows[i].fill + rows[i].kept);
        assert_memory_equal(err.message + rows[i].fill, rows[i].tail, rows[i].kept);

        (void)td_error_set(&err, TD_IO, "%s", rows[i].tail);
        (void)td_error_wrap(&err, err.code, "%.*s", (int)rows[i].fill - 2, fill);
        assert_int_equal(strlen(err.message), rows[i].fill + rows[i].kept);
        assert_memory_equal(err.message + rows[i].fill, rows[i].tail, rows[i].kept);
    }
}

/* A prefix that fills the message on its own leaves a message that is whole and terminated. */
static void test_error_wrap_survives_endless_prefixes(void **state)
{
    (void)state;
    char fill[3000];
    memset(fill, 'p', sizeof(fill));
    struct td_error err = TD_ERROR_INIT;
    (void)td_error_set(&err, TD_LIMIT, "cause");
    for (size_t len = 1000; len < sizeof(fill); len++) {
        assert_int_equal(td_error_wrap(&err, TD_LIMIT, "%.*s", (int)len, fill), TD_LIMIT);
        assert_in_range(strlen(err.message), 1000, TD_ERROR_MESSAGE_BYTES - 1);
    }
}

/* Arguments may point into the message that is being replaced. */
static void test_error_set_may_quote_the_old_message(void **state)
{
    (void)state;
    struct td_error err = TD_ERROR_INIT;
    (void)td_error_set(&err, TD_NOT_FOUND, "no such pod");
    (void)td_error_set(&err, TD_INVALID, "target is wrong (%s)", err.message);
    assert_string_equal(err.message, "target is wrong (no such pod)");
    (void)td_error_wrap(&err, err.code, "%s", err.message);
    assert_string_equal(err.message,
                        "target is wrong (no such pod): target is wrong (no such pod)");
}

/* Every code has a name of its own; numbers that are no codes have one too. */
static void test_error_codes_have_names(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *name;
    } rows[] = {
        {TD_OK, "ok"},
        {TD_NOT_FOUND, "not-found"},
        {TD_CONFLICT, "conflict"},
        {TD_GONE, "gone"},
        {TD_INVALID, "invalid"},
        {TD_LIMIT, "limit"},
        {TD_TIMEOUT, "timeout"},
        {TD_IO, "io"},
        {TD_DENIED, "denied"},
        {TD_BUSY, "busy"},
        {TD_EXISTS, "exists"},
        {1, "unknown"},
        {-11, "unknown"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(td_code_name(rows[i].code), rows[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_set_and_wrap_read_from_intent_to_cause),
        cmocka_unit_test(test_error_set_without_object_returns_the_code),
        cmocka_unit_test(test_error_message_is_cut_at_a_whole_character),
        cmocka_unit_test(test_error_wrap_survives_endless_prefixes),
        cmocka_unit_test(test_error_set_may_quote_the_old_message),
        cmocka_unit_test(test_error_codes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
