/*
 * Regular expressions: the same answers as Go's regexp for patterns as definitions have them
 * (tests/data/regex), and no pattern whose cost grows faster than its text.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/os/file.h"
#include "kube/schema/regex.h"

#define REGEX_ARENA_BYTES_MAX ((size_t)256 << 20)

static bool matches(struct td_regex *regex, td_str text)
{
    bool is_match = false;
    int64_t steps = INT64_MAX;
    assert_int_equal(td_regex_match(regex, text, &steps, &is_match), TD_OK);
    return is_match;
}

static void check_texts(struct td_regex *regex, const struct td_json *row, const char *key,
                        bool is_match)
{
    const struct td_json *list = td_json_get(row, td_str_from(key));
    td_str pattern = td_json_get_str(row, TD_STR("p"), TD_STR_EMPTY);
    for (const struct td_json *text = td_json_first_child(list); text; text = text->next) {
        if (matches(regex, text->text) != is_match) {
            fail_msg("'%.*s' %s '%.*s'", TD_STR_ARG(pattern),
                     is_match ? "does not match" : "matches", TD_STR_ARG(text->text));
        }
    }
}

/* What Go accepts we accept, or say that we do not know it; what it refuses we refuse. */
static void test_answers_are_those_of_go(void **state)
{
    (void)state;
    struct td_error err = TD_ERROR_INIT;
    td_auto_arena arena;
    td_arena_init(&arena, REGEX_ARENA_BYTES_MAX);
    td_str text;
    struct td_json *cases = NULL;
    size_t unknown = 0;
    if (td_file_read(TEST_DATA_DIR "/regex/cases.json", &arena, TD_JSON_BYTES_MAX, &text, &err) <
            0 ||
        td_json_parse(&arena, text, NULL, &cases, &err) < 0) {
        fail_msg("%s", err.message);
    }
    for (const struct td_json *row = td_json_first_child(cases); row; row = row->next) {
        td_str pattern = td_json_get_str(row, TD_STR("p"), TD_STR_EMPTY);
        struct td_regex *regex = NULL;
        int code = td_regex_compile(&arena, pattern, &regex, &err);
        bool is_valid = td_json_get_bool(row, TD_STR("ok"), false);
        if (code == TD_LIMIT) {
            unknown++;
            continue;
        }
        if ((code == TD_OK) != is_valid) {
            fail_msg("'%.*s' is %s: %s", TD_STR_ARG(pattern), is_valid ? "valid" : "invalid",
                     err.message);
        }
        if (code == TD_OK) {
            check_texts(regex, row, "y", true);
            check_texts(regex, row, "n", false);
        }
    }
    assert_true(cases->count > 500);
    assert_true(unknown <= 8);
}

/* Patterns that ruin engines which try one way after the other cost no more than others here. */
static void test_cost_is_linear_in_the_text(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(x+x+)+y", "(x*)*y", "(x|xx)+$y", "^(x?){50}x{50}y",
                                           "(.*)(.*)(.*)(.*)z"};
    enum { LENGTH = 20000 };
    td_auto_arena arena;
    td_arena_init(&arena, REGEX_ARENA_BYTES_MAX);
    char *text = td_arena_alloc(&arena, LENGTH);
    memset(text, 'x', LENGTH);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        struct td_regex *regex = NULL;
        assert_int_equal(td_regex_compile(&arena, td_str_from(patterns[i]), &regex, NULL), TD_OK);
        int64_t used[2];
        for (size_t half = 0; half < 2; half++) {
            int64_t steps = INT64_MAX;
            bool is_match = true;
            td_str part = {.ptr = text, .len = half == 0 ? LENGTH / 2 : LENGTH};
            assert_int_equal(td_regex_match(regex, part, &steps, &is_match), TD_OK);
            assert_false(is_match);
            used[half] = INT64_MAX - steps;
        }
        assert_true(used[1] <= used[0] * 2 + 1000);
    }
}

/* A match that would take more steps than are left ends with a limit, and large patterns too. */
static void test_limits_are_kept(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, REGEX_ARENA_BYTES_MAX);
    struct td_regex *regex = NULL;
    bool is_match = false;
    int64_t steps = 10;
    assert_int_equal(td_regex_compile(&arena, TD_STR("(a|b|c|d)+x"), &regex, NULL), TD_OK);
    assert_int_equal(td_regex_match(regex, TD_STR("abcdabcdabcd"), &steps, &is_match), TD_LIMIT);
    assert_int_equal(td_regex_compile(&arena, TD_STR("(a{20}b{20}c{20}){1,990}"), &regex, NULL),
                     TD_INVALID);
    assert_int_equal(td_regex_compile(&arena, TD_STR("(abcdefghijabcdefghij){1000}"), &regex, NULL),
                     TD_LIMIT);
    char deep[2048];
    memset(deep, '(', sizeof(deep));
    assert_int_equal(td_regex_compile(&arena, (td_str){deep, sizeof(deep)}, &regex, NULL),
                     TD_LIMIT);
    char *wide = td_arena_alloc(&arena, 5000);
    memset(wide, 'a', 5000);
    assert_int_equal(td_regex_compile(&arena, (td_str){wide, 5000}, &regex, NULL), TD_LIMIT);
}

/* Repeats inside each other are refused before they are written out, also those of nothing, which
 * have no steps that could be counted: ten to the thirtieth copies would never end. */
static void test_nested_repeats_of_nothing_end(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        "((((((((((){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}",
        "(((|){1000}){1000}){1000}", "((((){1000}){1,1000}){999,}){1000}", "(((){33}){32})"};
    struct td_error err = TD_ERROR_INIT;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        assert_int_equal(td_regex_check(td_str_from(patterns[i]), &err), TD_INVALID);
    }
    assert_int_equal(td_regex_check(TD_STR("(((){10}){10}){10}"), &err), TD_OK);
    /* A thousand copies of many empty groups: work without a step. */
    char wide[2100] = "(";
    for (size_t i = 0; i < 1000; i++) {
        memcpy(wide + 1 + 2 * i, "()", 2);
    }
    memcpy(wide + 2001, "){1000}", 8);
    assert_int_equal(td_regex_check(td_str_from(wide), &err), TD_LIMIT);
}

/* A class of many ranges costs what looking at its ranges costs. */
static void test_ranges_are_work(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, REGEX_ARENA_BYTES_MAX);
    char pattern[3100] = "[";
    for (size_t i = 0; i < 1000; i++) {
        memcpy(pattern + 1 + 3 * i, "a-a", 3);
    }
    memcpy(pattern + 3001, "]y", 3);
    struct td_regex *regex = NULL;
    assert_int_equal(td_regex_compile(&arena, td_str_from(pattern), &regex, NULL), TD_OK);
    int64_t steps = 50000;
    bool is_match = false;
    char text[100];
    memset(text, 'x', sizeof(text));
    assert_int_equal(td_regex_match(regex, (td_str){text, sizeof(text)}, &steps, &is_match),
                     TD_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_those_of_go),
        cmocka_unit_test(test_cost_is_linear_in_the_text),
        cmocka_unit_test(test_limits_are_kept),
        cmocka_unit_test(test_nested_repeats_of_nothing_end),
        cmocka_unit_test(test_ranges_are_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
