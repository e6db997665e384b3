/* String slices: comparing, cutting, reading numbers and UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const td_str none = {.ptr = NULL, .len = 0};

/* Literals, C strings, nothing and slices with NUL bytes are told apart by bytes and length. */
static void test_str_equal_and_from(void **state)
{
    (void)state;
    static const td_str table[] = {TD_STR_INIT("a"), TD_STR_INIT("")};
    assert_true(td_str_equal(TD_STR("abc"), td_str_from("abc")));
    assert_true(td_str_equal(none, TD_STR_EMPTY));
    assert_true(td_str_equal(td_str_from(NULL), TD_STR("")));
    assert_non_null(td_str_from(NULL).ptr);
    assert_false(td_str_equal(TD_STR("a\0b"), TD_STR("a\0c")));
    assert_false(td_str_equal(TD_STR("ab"), TD_STR("abc")));
    assert_true(td_str_equal(table[0], TD_STR("a")));
    char text[32];
    (void)snprintf(text, sizeof(text), "[%.*s%.*s]", TD_STR_ARG(TD_STR("xy")), TD_STR_ARG(none));
    assert_string_equal(text, "[xy]");
}

/* Order is by unsigned bytes, the shorter first, as Go's. */
static void test_str_compare_orders_as_go(void **state)
{
    (void)state;
    static const td_str sorted[] = {
        TD_STR_INIT(""),  TD_STR_INIT("\0"),   TD_STR_INIT("A"),    TD_STR_INIT("Z"),
        TD_STR_INIT("a"), TD_STR_INIT("a\0"),  TD_STR_INIT("aa"),   TD_STR_INIT("b"),
        TD_STR_INIT("~"), TD_STR_INIT("\x80"), TD_STR_INIT("\xff"),
    };
    for (size_t i = 0; i < COUNT(sorted); i++) {
        for (size_t j = 0; j < COUNT(sorted); j++) {
            int expected = (i > j) - (i < j);
            assert_int_equal(td_str_compare(sorted[i], sorted[j]), expected);
        }
    }
    assert_int_equal(td_str_compare(none, TD_STR("")), 0);
    td_str mixed[COUNT(sorted)];
    for (size_t i = 0; i < COUNT(sorted); i++) {
        mixed[i] = sorted[(i * 7) % COUNT(sorted)];
    }
    qsort(mixed, COUNT(mixed), sizeof(mixed[0]), td_str_compare_items);
    for (size_t i = 0; i < COUNT(sorted); i++) {
        assert_true(td_str_equal(mixed[i], sorted[i]));
    }
}

/* The last of a list counts, a part of one does not, and nothing is in an empty list. */
static void test_str_is_among_looks_at_all(void **state)
{
    (void)state;
    const td_str list[] = {TD_STR("one"), TD_STR(""), TD_STR("three")};
    assert_true(td_str_is_among(TD_STR("three"), list, 3));
    assert_true(td_str_is_among(TD_STR_EMPTY, list, 3));
    assert_false(td_str_is_among(TD_STR("three"), list, 2));
    assert_false(td_str_is_among(TD_STR("thr"), list, 3));
    assert_false(td_str_is_among(TD_STR("one"), NULL, 0));
}

static void test_str_starts_and_ends(void **state)
{
    (void)state;
    static const struct {
        td_str s;
        td_str part;
        bool starts;
        bool ends;
    } rows[] = {
        {TD_STR_INIT("abc"), TD_STR_INIT(""), true, true},
        {TD_STR_INIT("abc"), TD_STR_INIT("abc"), true, true},
        {TD_STR_INIT("abc"), TD_STR_INIT("ab"), true, false},
        {TD_STR_INIT("abc"), TD_STR_INIT("bc"), false, true},
        {TD_STR_INIT("abc"), TD_STR_INIT("abcd"), false, false},
        {TD_STR_INIT(""), TD_STR_INIT("a"), false, false},
        {{.ptr = NULL, .len = 0}, TD_STR_INIT(""), true, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(td_str_starts_with(rows[i].s, rows[i].part), rows[i].starts);
        assert_int_equal(td_str_ends_with(rows[i].s, rows[i].part), rows[i].ends);
    }
}

/* Positions past the end are clamped, never read. */
static void test_str_find_slice_and_trim_clamp(void **state)
{
    (void)state;
    td_str s = TD_STR("a.b.c");
    assert_int_equal(td_str_find(s, '.', 0), 1);
    assert_int_equal(td_str_find(s, '.', 2), 3);
    assert_int_equal(td_str_find(s, '.', 4), 5);
    assert_int_equal(td_str_find(s, 'x', 0), 5);
    assert_int_equal(td_str_find(s, 'a', 99), 5);
    assert_int_equal(td_str_find(none, 'a', 0), 0);
    assert_true(td_str_equal(td_str_slice(s, 2, 3), TD_STR("b")));
    assert_true(td_str_equal(td_str_slice(s, 4, 99), TD_STR("c")));
    assert_true(td_str_equal(td_str_slice(s, 4, 2), TD_STR("")));
    assert_true(td_str_equal(td_str_slice(s, SIZE_MAX, SIZE_MAX), TD_STR("")));
    assert_non_null(td_str_slice(none, 0, 5).ptr);
    assert_true(td_str_equal(td_str_trim(TD_STR(" \t\r\n a b\v \n")), TD_STR("a b\v")));
    assert_true(td_str_equal(td_str_trim(TD_STR(" \n ")), TD_STR("")));
    assert_true(td_str_equal(td_str_trim(none), TD_STR("")));
}

/* Same texts as Go's strconv.ParseInt(s, 10, 64); a refused one leaves the output alone. */
static void test_str_to_int64_takes_what_go_takes(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        bool is_valid;
        int64_t value;
    } rows[] = {
        {TD_STR_INIT("0"), true, 0},
        {TD_STR_INIT("-0"), true, 0},
        {TD_STR_INIT("+7"), true, 7},
        {TD_STR_INIT("007"), true, 7},
        {TD_STR_INIT("00000000000000000000000000001"), true, 1},
        {TD_STR_INIT("9223372036854775807"), true, INT64_MAX},
        {TD_STR_INIT("-9223372036854775808"), true, INT64_MIN},
        {TD_STR_INIT("9223372036854775808"), false, 0},
        {TD_STR_INIT("-9223372036854775809"), false, 0},
        {TD_STR_INIT("18446744073709551616"), false, 0},
        {TD_STR_INIT("99999999999999999999999"), false, 0},
        {TD_STR_INIT(""), false, 0},
        {TD_STR_INIT("-"), false, 0},
        {TD_STR_INIT("+"), false, 0},
        {TD_STR_INIT("+-1"), false, 0},
        {TD_STR_INIT(" 1"), false, 0},
        {TD_STR_INIT("1 "), false, 0},
        {TD_STR_INIT("1_000"), false, 0},
        {TD_STR_INIT("0x10"), false, 0},
        {TD_STR_INIT("1.0"), false, 0},
        {TD_STR_INIT("1\0"), false, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t value = 4711;
        assert_int_equal(td_str_to_int64(rows[i].text, &value), rows[i].is_valid);
        assert_true(value == (rows[i].is_valid ? rows[i].value : 4711));
    }
}

/* The bounds of each form, and one step past them. */
static void test_str_utf8_knows_its_bounds(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        bool is_valid;
    } rows[] = {
        {TD_STR_INIT(""), true},
        {TD_STR_INIT("plain text, longer than one word"), true},
        {TD_STR_INIT("\x7f\0"), true},
        {TD_STR_INIT("\xC2\x80 \xDF\xBF"), true},
        {TD_STR_INIT("\xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF"), true},
        {TD_STR_INIT("\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"), true},
        {TD_STR_INIT("12345678\xC3\xA9"
                     "12345678"),
         true},
        {TD_STR_INIT("\x80"), false},
        {TD_STR_INIT("\xBF"), false},
        {TD_STR_INIT("\xC0\x80"), false},
        {TD_STR_INIT("\xC1\xBF"), false},
        {TD_STR_INIT("\xC3"), false},
        {TD_STR_INIT("\xC3\x28"), false},
        {TD_STR_INIT("\xE0\x9F\xBF"), false},
        {TD_STR_INIT("\xED\xA0\x80"), false},
        {TD_STR_INIT("\xE2\x82"), false},
        {TD_STR_INIT("\xE2\x82\x28"), false},
        {TD_STR_INIT("\xF0\x8F\xBF\xBF"), false},
        {TD_STR_INIT("\xF4\x90\x80\x80"), false},
        {TD_STR_INIT("\xF5\x80\x80\x80"), false},
        {TD_STR_INIT("\xFF"), false},
        {TD_STR_INIT("1234567\xC3"), false},
        {TD_STR_INIT("12345678\xC3"), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(td_str_is_utf8(rows[i].text), rows[i].is_valid);
    }
    assert_true(td_str_is_utf8(none));
    assert_int_equal(td_str_utf8_char(none), 0);
    assert_int_equal(td_str_utf8_char(TD_STR("ab")), 1);
    assert_int_equal(td_str_utf8_char(TD_STR("\xE2\x82\xAC-")), 3);
    assert_int_equal(td_str_utf8_char(TD_STR("\xE2\x82")), 0);
}

/* Cutting keeps whole characters, and gives up nothing of what is no UTF-8. */
static void test_str_cut_keeps_whole_characters(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        size_t max;
        size_t len;
    } rows[] = {
        {TD_STR_INIT("abc"), 3, 3},
        {TD_STR_INIT("abc"), 2, 2},
        {TD_STR_INIT("abc"), 0, 0},
        {TD_STR_INIT("a\xC3\xA9"), 2, 1},
        {TD_STR_INIT("a\xC3\xA9"), 3, 3},
        {TD_STR_INIT("\xF0\x9F\x98\x80"), 3, 0},
        {TD_STR_INIT("\xF0\x9F\x98\x80x"), 4, 4},
        {TD_STR_INIT("\xC3\xA9\x80\x80"), 3, 3},
        {TD_STR_INIT("\x80\x80\x80\x80\x80\x80"), 5, 5},
        {TD_STR_INIT("\x80\x80"), 1, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_str cut = td_str_cut_utf8(rows[i].text, rows[i].max);
        assert_int_equal(cut.len, rows[i].len);
        assert_ptr_equal(cut.ptr, rows[i].text.ptr);
    }
    assert_int_equal(td_str_cut_utf8(none, 5).len, 0);
}

/* The nearest name, at most two letters off, of short words one; none when it is another. */
static void test_str_suggest_finds_what_was_meant(void **state)
{
    static const struct {
        const char *name;
        int other;
    } names[] = {{"validate", 1}, {"recommend", 2}, {"run", 3},
                 {NULL, 4},       {"up", 5},        {"replay", 6}};
    static const struct {
        const char *given;
        const char *meant;
    } rows[] = {
        {"vlidate", "validate"},
        {"valdiate", "validate"},
        {"recomend", "recommend"},
        {"rnu", "run"},
        {"rum", "run"},
        {"upp", "up"},
        {"repaly", "replay"},
        {"xyz", NULL},
        {"rub2", NULL},
        {"", NULL},
        {"vldt", NULL},
        {"u", NULL},
        {"validation", NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *meant =
            td_str_suggest(td_str_from(rows[i].given), names, COUNT(names), sizeof(names[0]));
        if (rows[i].meant) {
            assert_non_null(meant);
            assert_string_equal(meant, rows[i].meant);
        } else {
            assert_null(meant);
        }
    }
    char longer[200];
    memset(longer, 'a', sizeof(longer));
    td_str word = {.ptr = longer, .len = sizeof(longer)};
    assert_null(td_str_suggest(word, names, COUNT(names), sizeof(names[0])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_str_equal_and_from),
        cmocka_unit_test(test_str_compare_orders_as_go),
        cmocka_unit_test(test_str_is_among_looks_at_all),
        cmocka_unit_test(test_str_starts_and_ends),
        cmocka_unit_test(test_str_find_slice_and_trim_clamp),
        cmocka_unit_test(test_str_to_int64_takes_what_go_takes),
        cmocka_unit_test(test_str_utf8_knows_its_bounds),
        cmocka_unit_test(test_str_cut_keeps_whole_characters),
        cmocka_unit_test(test_str_suggest_finds_what_was_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
