/* Writing: Go's escapes and numbers, indentation, the buffer's cap, trees of any depth. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json/json.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void expect_text(const struct td_buf *out, const char *expected)
{
    assert_string_equal(td_buf_str(out).ptr, expected);
    assert_int_equal(out->len, strlen(expected));
}

/* Strings are escaped as Go's encoding/json does. */
static void test_write_escapes_strings_as_go(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *plain;
        const char *html;
    } rows[] = {
        {TD_STR_INIT(""), "\"\"", "\"\""},
        {TD_STR_INIT("a/b'c"), "\"a/b'c\"", "\"a/b'c\""},
        {TD_STR_INIT("\"\\\n\r\t\b\f"), "\"\\\"\\\\\\n\\r\\t\\b\\f\"",
         "\"\\\"\\\\\\n\\r\\t\\b\\f\""},
        {TD_STR_INIT("\0\x01\x0B\x1F\x7F"), "\"\\u0000\\u0001\\u000b\\u001f\x7F\"",
         "\"\\u0000\\u0001\\u000b\\u001f\x7F\""},
        {TD_STR_INIT("<a>&"), "\"<a>&\"", "\"\\u003ca\\u003e\\u0026\""},
        {TD_STR_INIT("0123456789abcdef<0123456789abcdef"), "\"0123456789abcdef<0123456789abcdef\"",
         "\"0123456789abcdef\\u003c0123456789abcdef\""},
        {TD_STR_INIT("\xE2\x80\xA7\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA"),
         "\"\xE2\x80\xA7\\u2028\\u2029\xE2\x80\xAA\"",
         "\"\xE2\x80\xA7\\u2028\\u2029\xE2\x80\xAA\""},
        {TD_STR_INIT("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
         "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        /* Cannot come from a parsed text; Go's replacement keeps the output readable. */
        {TD_STR_INIT("a\xFF\xC3"), "\"a\\ufffd\\ufffd\"", "\"a\\ufffd\\ufffd\""},
        {TD_STR_INIT("\xED\xA0\x80"), "\"\\ufffd\\ufffd\\ufffd\"", "\"\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_buf out;
        td_buf_init(&out, 1000);
        td_json_write_string(rows[i].text, false, &out);
        expect_text(&out, rows[i].plain);
        td_buf_reset(&out);
        td_json_write_string(rows[i].text, true, &out);
        expect_text(&out, rows[i].html);
    }
}

/* Doubles have Go's text: shortest digits that read back, its switch to exponents, its exponents.
 */
static void test_write_doubles_as_go(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {100, "100"},
        {123456789012345678.0, "123456789012345680"},
        {1e20, "100000000000000000000"},
        {999999999999999868928.0, "999999999999999900000"},
        {1e21, "1e+21"},
        {1.5e300, "1.5e+300"},
        {0.000001, "0.000001"},
        {0.0000012345, "0.0000012345"},
        {9.99999e-7, "9.99999e-7"},
        {1e-7, "1e-7"},
        {1e-10, "1e-10"},
        {1.25e-100, "1.25e-100"},
        {5e-324, "5e-324"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {0x1p-44, "5.684341886080802e-14"}, /* the nearest decimal of 16 digits reads as another */
        {0x1p-24, "5.960464477539063e-8"},
        {9007199254740993.0, "9007199254740992"},
        {0.1 + 0.2, "0.30000000000000004"},
        {4.35, "4.35"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_buf out;
        td_buf_init(&out, TD_JSON_DOUBLE_BYTES);
        td_json_write_double(rows[i].value, &out);
        expect_text(&out, rows[i].text);
        td_auto_arena arena;
        td_arena_init(&arena, 1000);
        const struct td_json *node = td_json_new_double(&arena, rows[i].value);
        assert_true(td_str_equal(node->text, td_str_from(rows[i].text)));
        double back;
        assert_true(td_json_to_double(node, &back));
        assert_memory_equal(&back, &rows[i].value, sizeof(back));
    }
}

static struct td_json *parse(struct td_arena *arena, td_str text)
{
    struct td_json *root = NULL;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_json_parse(arena, text, NULL, &root, &err), TD_OK);
    return root;
}

/* Compact and indented forms; members in the order of the tree, numbers as they were written. */
static void test_write_compact_and_indented(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *compact;
        const char *indented;
    } rows[] = {
        {TD_STR_INIT(" null"), "null", "null"},
        {TD_STR_INIT("[ ]"), "[]", "[]"},
        {TD_STR_INIT("{ }"), "{}", "{}"},
        {TD_STR_INIT("[1.50 ,2E3]"), "[1.50,2E3]", "[\n  1.50,\n  2E3\n]"},
        {TD_STR_INIT("{\"b\":{\"x\":[],\"y\":{}},\"a\":[true,[false,null]],\"c<\":\"<\\/\"}"),
         "{\"b\":{\"x\":[],\"y\":{}},\"a\":[true,[false,null]],\"c<\":\"</\"}",
         "{\n  \"b\": {\n    \"x\": [],\n    \"y\": {}\n  },\n  \"a\": [\n    true,\n    [\n      "
         "false,\n      null\n    ]\n  ],\n  \"c<\": \"</\"\n}"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        const struct td_json *root = parse(&arena, rows[i].text);
        td_auto_buf out;
        td_buf_init(&out, 1000);
        td_json_write(root, NULL, &out);
        expect_text(&out, rows[i].compact);
        td_buf_reset(&out);
        td_json_write(root, &(struct td_json_format){.indent = 2}, &out);
        expect_text(&out, rows[i].indented);
    }
}

/* Names are escaped like values when HTML is. */
static void test_write_escapes_html_in_names(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    td_auto_buf out;
    td_buf_init(&out, 1000);
    td_json_write(parse(&arena, TD_STR("{\"a<b\":\">&\"}")),
                  &(struct td_json_format){.escape_html = true}, &out);
    expect_text(&out, "{\"a\\u003cb\":\"\\u003e\\u0026\"}");
}

/* Writing appends; a text that does not fit makes the buffer fail at every size below its own. */
static void test_write_stops_at_the_buffers_cap(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    const struct td_json *root =
        parse(&arena, TD_STR("{\"a\":[1,true,\"x\\u0001\\u2028\"],\"b\":{\"c\":null}}"));
    const char *expected = "{\n \"a\": [\n  1,\n  true,\n  \"x\\u0001\\u2028\"\n ],\n \"b\": {\n  "
                           "\"c\": null\n }\n}";
    size_t len = strlen(expected);
    for (size_t max = 0; max <= len + 1; max++) {
        td_auto_buf out;
        td_buf_init(&out, max);
        td_json_write(root, &(struct td_json_format){.indent = 1}, &out);
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_buf_check(&out, "answer", &err), max < len ? TD_LIMIT : TD_OK);
        assert_true(out.len <= max);
        if (max >= len) {
            expect_text(&out, expected);
        }
    }
}

/* A tree that code has made deeper than any text may be is written without a deep call stack. */
static void test_write_takes_trees_of_any_depth(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    struct td_json *node = td_json_new_array(&arena);
    for (size_t i = 1; i < DEPTH; i++) {
        struct td_json *parent;
        if (i % 2 == 0) {
            parent = td_json_new_array(&arena);
            td_json_append(parent, node);
        } else {
            parent = td_json_new_object(&arena);
            td_json_set(&arena, parent, TD_STR("a"), node);
        }
        node = parent;
    }
    td_auto_buf out;
    td_buf_init(&out, 1 << 24);
    td_json_write(node, NULL, &out);
    assert_false(out.is_full);
    assert_int_equal(out.len, DEPTH * 2 + DEPTH / 2 * 4);
    assert_int_equal(td_json_depth(node), DEPTH);
    struct td_json *copy = td_json_copy(&arena, node, true);
    td_json_sort(&arena, copy);
    assert_true(td_json_equal(node, copy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_escapes_strings_as_go),
        cmocka_unit_test(test_write_doubles_as_go),
        cmocka_unit_test(test_write_compact_and_indented),
        cmocka_unit_test(test_write_escapes_html_in_names),
        cmocka_unit_test(test_write_stops_at_the_buffers_cap),
        cmocka_unit_test(test_write_takes_trees_of_any_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
