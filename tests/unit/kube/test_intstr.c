/* IntOrString: tokens, texts and percentages with upstream's answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "kube/intstr.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define ARENA_BYTES ((size_t)1 << 20)
#define TEXT_BYTES 256

/* A token becomes a number or a string and is written back as the token that Go writes. */
static void test_intstr_json_round_trips(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        bool is_string;
        int64_t int_value;
        const char *text;
        const char *written;
    } rows[] = {
        {"5", false, 5, "5", "5"},
        {"-0", false, 0, "0", "0"},
        {" 7 ", false, 7, "7", "7"},
        {"2147483647", false, INT32_MAX, "2147483647", "2147483647"},
        {"-2147483648", false, INT32_MIN, "-2147483648", "-2147483648"},
        {"null", false, 0, "0", "0"},
        {"\"25%\"", true, 0, "25%", "\"25%\""},
        {"\"007\"", true, 7, "007", "\"007\""},
        {"\"+5\"", true, 5, "+5", "\"+5\""},
        {"\"\"", true, 0, "", "\"\""},
        {"\"a<b\"", true, 0, "a<b", "\"a\\u003cb\""},
        {"\"\\u0031\"", true, 1, "1", "\"1\""},
        {"\"99999999999999999999\"", true, INT64_MAX, "99999999999999999999",
         "\"99999999999999999999\""},
        {"\"-99999999999999999999x\"", true, INT64_MIN, "-99999999999999999999x",
         "\"-99999999999999999999x\""},
        {"\"9223372036854775808x\"", true, 0, "9223372036854775808x", "\"9223372036854775808x\""},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_intstr value;
        assert_int_equal(td_intstr_parse_json(&arena, td_str_from(rows[i].token), &value, NULL),
                         TD_OK);
        assert_int_equal(value.is_string, rows[i].is_string);
        assert_int_equal(td_intstr_int_value(&value), rows[i].int_value);
        td_auto_buf text;
        td_buf_init(&text, TEXT_BYTES);
        td_intstr_write(&value, &text);
        assert_true(td_str_equal(td_buf_str(&text), td_str_from(rows[i].text)));
        td_auto_buf written;
        td_buf_init(&written, TEXT_BYTES);
        td_intstr_write_json(&value, &written);
        assert_string_equal(td_buf_str(&written).ptr, rows[i].written);
    }
}

/* Tokens that are neither leave the result alone. */
static void test_intstr_json_refuses_other_tokens(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",    "1.0", "1e3",    "2147483648", "-2147483649", "true", "{}", "[]",
        "\"a", "1 2", "\"a\"x", " \"a\"",     "nul",         "+1",   "01",
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_intstr value = {.number = 7};
        struct td_error err = TD_ERROR_INIT;
        assert_true(td_intstr_parse_json(&arena, td_str_from(rows[i]), &value, &err) < 0);
        assert_int_equal(value.number, 7);
        assert_true(err.message[0] != '\0');
    }
}

/* A word of a command line is a number when it reads as an int32, else the text itself. */
static void test_intstr_parse_prefers_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_string;
        int32_t number;
    } rows[] = {
        {"5", false, 5},         {"+5", false, 5}, {"-5", false, -5}, {"0010", false, 10},
        {"2147483648", true, 0}, {"5%", true, 0},  {"", true, 0},     {"1_0", true, 0},
        {"http", true, 0},       {" 5", true, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_intstr value = td_intstr_parse(td_str_from(rows[i].text));
        assert_int_equal(value.is_string, rows[i].is_string);
        assert_int_equal(value.number, rows[i].number);
        if (rows[i].is_string) {
            assert_true(td_str_equal(value.string, td_str_from(rows[i].text)));
        }
    }
}

/* Percentages scale the total, rounded as asked; numbers stay; other texts are refused by name. */
static void test_intstr_scaled_takes_percentages(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t total;
        bool round_up;
        int code;
        int64_t result;
    } rows[] = {
        {"3", 10, true, TD_OK, 3},
        {"25%", 10, true, TD_OK, 3},
        {"25%", 10, false, TD_OK, 2},
        {"-25%", 10, true, TD_OK, -2},
        {"-25%", 10, false, TD_OK, -3},
        {"+10%", 5, true, TD_OK, 1},
        {"0%", 5, true, TD_OK, 0},
        {"150%", 4, false, TD_OK, 6},
        {"9223372036854775807%", INT64_MAX, true, TD_OK, INT64_MIN},
        {"%", 10, true, TD_INVALID, 0},
        {"25%%", 10, true, TD_INVALID, 0},
        {"2.5%", 10, true, TD_INVALID, 0},
        {"http", 10, true, TD_INVALID, 0},
        {"99999999999", 10, true, TD_INVALID, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_intstr value = td_intstr_parse(td_str_from(rows[i].text));
        int64_t result = 0;
        struct td_error err = TD_ERROR_INIT;
        int code = td_intstr_scaled(&value, rows[i].total, rows[i].round_up, &result, &err);
        assert_int_equal(code, rows[i].code);
        assert_int_equal(result, rows[i].result);
        assert_true(code == TD_OK || strstr(err.message, rows[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intstr_json_round_trips),
        cmocka_unit_test(test_intstr_json_refuses_other_tokens),
        cmocka_unit_test(test_intstr_parse_prefers_numbers),
        cmocka_unit_test(test_intstr_scaled_takes_percentages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
