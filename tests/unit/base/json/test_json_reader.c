/* The pull reader: tokens, places of failures, skipping, escapes and numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json_reader.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* A document as a line of tokens: brackets and words as they are, K for names, S for strings and N
 * for numbers with their texts. */
static void reader_spell(td_str text, char *out, size_t size)
{
    struct td_json_reader reader;
    td_json_reader_init(&reader, text, TD_JSON_DEPTH_MAX);
    static const char *const words[] = {"",  "{", "}",    "[",     "]",   "K",
                                        "S", "N", "true", "false", "null"};
    size_t len = 0;
    enum td_json_token token;
    while ((token = td_json_reader_next(&reader)) > TD_JSON_END) {
        bool has_text = token >= TD_JSON_KEY && token <= TD_JSON_NUMBER;
        td_str shown = has_text ? reader.text : TD_STR_EMPTY;
        len += (size_t)snprintf(out + len, size - len, "%s%.*s ", words[token], TD_STR_ARG(shown));
        assert_true(len < size);
    }
    (void)snprintf(out + len, size - len, "%s", token == TD_JSON_END ? "end" : "error");
}

/* Tokens come in order, with slices of the text. */
static void test_reader_gives_tokens_in_order(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *tokens;
    } rows[] = {
        {TD_STR_INIT("7"), "N7 end"},
        {TD_STR_INIT(" null "), "null end"},
        {TD_STR_INIT("{}"), "{ } end"},
        {TD_STR_INIT("[[],{}]"), "[ [ ] { } ] end"},
        {TD_STR_INIT("{\"a\":1,\"b\":[true,false,null,\"x\"]}"),
         "{ Ka N1 Kb [ true false null Sx ] } end"},
        {TD_STR_INIT("\n{ \"a\" :\t-1.5e+3 ,\r\n \"\" : \"\" }\n"), "{ Ka N-1.5e+3 K S } end"},
        {TD_STR_INIT("[\"raw \\\" text\"]"), "[ Sraw \\\" text ] end"},
        {TD_STR_INIT("[1,]"), "[ N1 error"},
        {TD_STR_INIT("[1] 2"), "[ N1 ] error"},
        {TD_STR_INIT(""), "error"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char spelled[512];
        reader_spell(rows[i].text, spelled, sizeof(spelled));
        assert_string_equal(spelled, rows[i].tokens);
    }
}

/* A failure says where and what; lines and columns count from 1, columns in characters. */
static void test_reader_names_the_place_of_a_failure(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *message;
    } rows[] = {
        {TD_STR_INIT(""), "line 1 column 1: the text is empty"},
        {TD_STR_INIT("  "), "line 1 column 3: expected a value"},
        {TD_STR_INIT("\xEF\xBB\xBF{}"), "line 1 column 1: expected a value, not a byte order mark"},
        {TD_STR_INIT("{\"a\":1\n \"b\":2}"), "line 2 column 2: expected ',' or '}' after a member"},
        {TD_STR_INIT("{\n\"a\":1,\n    \"b\" 2}"),
         "line 3 column 9: expected ':' after a member's name"},
        {TD_STR_INIT("[1 2]"), "line 1 column 4: expected ',' or ']' after an item"},
        {TD_STR_INIT("[\n\n1,\n]"), "line 4 column 1: expected a value"},
        {TD_STR_INIT("{a:1}"), "line 1 column 2: expected a member's name in quotes"},
        {TD_STR_INIT("{\"a\":1,}"), "line 1 column 8: expected a member's name in quotes"},
        {TD_STR_INIT("[\"\xC3\xA9\xE2\x82\xAC\",x]"), "line 1 column 7: expected a value"},
        {TD_STR_INIT("[01]"), "line 1 column 2: a number must not begin with 0"},
        {TD_STR_INIT("[-x]"), "line 1 column 3: expected a digit after '-'"},
        {TD_STR_INIT("[1.]"), "line 1 column 4: expected a digit after '.'"},
        {TD_STR_INIT("[1e+]"), "line 1 column 5: expected a digit in the exponent"},
        {TD_STR_INIT("[\"a\tb\"]"),
         "line 1 column 4: control character in a string must be escaped"},
        {TD_STR_INIT("[\"\\q\"]"), "line 1 column 4: unknown escape in a string"},
        {TD_STR_INIT("[\"\\u12x4\"]"),
         "line 1 column 4: expected four hexadecimal digits after \\u"},
        {TD_STR_INIT("[\"\\ud800\"]"), "line 1 column 4: half of a surrogate pair in \\u escapes"},
        {TD_STR_INIT("[\"\xFF\"]"), "line 1 column 3: invalid UTF-8 in a string"},
        {TD_STR_INIT("[\"abc"), "line 1 column 6: the text ends inside a string"},
        {TD_STR_INIT("{}\n{}"), "line 2 column 1: expected nothing after the value"},
        {TD_STR_INIT("[[[[1]]]]"), "line 1 column 4: nested deeper than 3 levels"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_json_reader reader;
        td_json_reader_init(&reader, rows[i].text, 3);
        enum td_json_token token;
        do {
            token = td_json_reader_next(&reader);
        } while (token > TD_JSON_END);
        assert_int_equal(token, TD_JSON_ERROR);
        struct td_error err = TD_ERROR_INIT;
        int code = td_json_reader_error(&reader, &err);
        assert_int_equal(code, i + 1 == COUNT(rows) ? TD_LIMIT : TD_INVALID);
        assert_int_equal(err.code, code);
        assert_string_equal(err.message, rows[i].message);
    }
}

/* The first failure is final: neither next nor skip goes on, and the message stays. */
static void test_reader_failure_is_final(void **state)
{
    (void)state;
    struct td_json_reader reader;
    td_json_reader_init(&reader, TD_STR("[1 2,3]"), TD_JSON_DEPTH_MAX);
    assert_int_equal(td_json_reader_next(&reader), TD_JSON_BEGIN_ARRAY);
    assert_int_equal(td_json_reader_next(&reader), TD_JSON_NUMBER);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(td_json_reader_next(&reader), TD_JSON_ERROR);
        assert_int_equal(td_json_reader_skip(&reader), TD_INVALID);
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_json_reader_error(&reader, &err), TD_INVALID);
        assert_string_equal(err.message, "line 1 column 4: expected ',' or ']' after an item");
    }
}

static void reader_expect(struct td_json_reader *reader, enum td_json_token token, const char *text)
{
    assert_int_equal(td_json_reader_next(reader), token);
    if (text) {
        assert_true(td_str_equal(reader->text, td_str_from(text)));
    }
}

/* Skip passes a member's value, or the rest of a collection, and the tokens go on behind it. */
static void test_reader_skip_passes_whole_values(void **state)
{
    (void)state;
    struct td_json_reader reader;
    td_json_reader_init(&reader,
                        TD_STR("{\"a\":{\"x\":[1,{\"y\":\"]}\"}],\"z\":{}},\"b\":[[1,2],[3,[4]],5],"
                               "\"c\":\"\\u00e9\",\"d\":7,\"e\":{\"f\":1,\"g\":2}}"),
                        TD_JSON_DEPTH_MAX);
    reader_expect(&reader, TD_JSON_BEGIN_OBJECT, NULL);
    reader_expect(&reader, TD_JSON_KEY, "a");
    assert_int_equal(td_json_reader_skip(&reader), TD_OK);
    reader_expect(&reader, TD_JSON_KEY, "b");
    reader_expect(&reader, TD_JSON_BEGIN_ARRAY, NULL);
    reader_expect(&reader, TD_JSON_BEGIN_ARRAY, NULL);
    assert_int_equal(td_json_reader_skip(&reader), TD_OK); /* the rest of [1,2] */
    assert_int_equal(reader.depth, 2);
    reader_expect(&reader, TD_JSON_BEGIN_ARRAY, NULL);
    reader_expect(&reader, TD_JSON_NUMBER, "3");
    assert_int_equal(td_json_reader_skip(&reader), TD_OK); /* nothing to skip after a scalar */
    reader_expect(&reader, TD_JSON_BEGIN_ARRAY, NULL);
    assert_int_equal(td_json_reader_skip(&reader), TD_OK);
    reader_expect(&reader, TD_JSON_END_ARRAY, NULL);
    reader_expect(&reader, TD_JSON_NUMBER, "5");
    reader_expect(&reader, TD_JSON_END_ARRAY, NULL);
    reader_expect(&reader, TD_JSON_KEY, "c");
    assert_int_equal(td_json_reader_skip(&reader), TD_OK);
    reader_expect(&reader, TD_JSON_KEY, "d");
    assert_int_equal(td_json_reader_skip(&reader), TD_OK);
    reader_expect(&reader, TD_JSON_KEY, "e");
    reader_expect(&reader, TD_JSON_BEGIN_OBJECT, NULL);
    assert_int_equal(td_json_reader_skip(&reader), TD_OK);
    reader_expect(&reader, TD_JSON_END_OBJECT, NULL);
    reader_expect(&reader, TD_JSON_END, NULL);
    assert_int_equal(td_json_reader_skip(&reader), TD_OK);
}

/* Skip checks all that it passes. */
static void test_reader_skip_rejects_what_next_would(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        int code;
    } rows[] = {
        {TD_STR_INIT("{\"a\":[1,2}"), TD_INVALID},    {TD_STR_INIT("{\"a\":\"\\x\"}"), TD_INVALID},
        {TD_STR_INIT("{\"a\":{\"b\"}}"), TD_INVALID}, {TD_STR_INIT("{\"a\":tru}"), TD_INVALID},
        {TD_STR_INIT("{\"a\":[[[]]]}"), TD_LIMIT},    {TD_STR_INIT("{\"a\":[[]"), TD_INVALID},
        {TD_STR_INIT("{\"a\":"), TD_INVALID},         {TD_STR_INIT("{\"a\":1.}"), TD_INVALID},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_json_reader reader;
        td_json_reader_init(&reader, rows[i].text, 3);
        reader_expect(&reader, TD_JSON_BEGIN_OBJECT, NULL);
        reader_expect(&reader, TD_JSON_KEY, "a");
        assert_int_equal(td_json_reader_skip(&reader), rows[i].code);
        assert_int_equal(td_json_reader_next(&reader), TD_JSON_ERROR);
    }
}

/* Decoding resolves every escape; a text without escapes stays a slice of the input. */
static void test_reader_decodes_escapes(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        td_str decoded;
    } rows[] = {
        {TD_STR_INIT("\"\""), TD_STR_INIT("")},
        {TD_STR_INIT("\"plain\""), TD_STR_INIT("plain")},
        {TD_STR_INIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), TD_STR_INIT("\"\\/\b\f\n\r\t")},
        {TD_STR_INIT("\"\\u0041\\u00e9\\u20AC\""), TD_STR_INIT("A\xC3\xA9\xE2\x82\xAC")},
        {TD_STR_INIT("\"\\u0000x\""), TD_STR_INIT("\0x")},
        {TD_STR_INIT("\"\\ud83d\\ude00!\""), TD_STR_INIT("\xF0\x9F\x98\x80!")},
        {TD_STR_INIT("\"\\uDBFF\\uDFFF\""), TD_STR_INIT("\xF4\x8F\xBF\xBF")},
        {TD_STR_INIT("\"\\u07ff\\u0800\\uffff\""), TD_STR_INIT("\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF")},
        {TD_STR_INIT("\"\xC3\xA9\\n\xC3\xA9\""), TD_STR_INIT("\xC3\xA9\n\xC3\xA9")},
    };
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_json_reader reader;
        td_json_reader_init(&reader, rows[i].text, 1);
        assert_int_equal(td_json_reader_next(&reader), TD_JSON_STRING);
        td_str decoded = td_json_reader_decode(&reader, &arena);
        assert_true(td_str_equal(decoded, rows[i].decoded));
        if (!reader.has_escape) {
            assert_ptr_equal(decoded.ptr, rows[i].text.ptr + 1);
        }
    }
}

/* Names are compared by what they mean, not by how they are written. */
static void test_reader_compares_escaped_names(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        td_str name;
        bool is_equal;
    } rows[] = {
        {TD_STR_INIT("{\"name\":1}"), TD_STR_INIT("name"), true},
        {TD_STR_INIT("{\"name\":1}"), TD_STR_INIT("nam"), false},
        {TD_STR_INIT("{\"name\":1}"), TD_STR_INIT("names"), false},
        {TD_STR_INIT("{\"n\\u0061me\":1}"), TD_STR_INIT("name"), true},
        {TD_STR_INIT("{\"n\\u0061me\":1}"), TD_STR_INIT("n\\u0061me"), false},
        {TD_STR_INIT("{\"n\\u0061m\":1}"), TD_STR_INIT("name"), false},
        {TD_STR_INIT("{\"n\\u0061mes\":1}"), TD_STR_INIT("name"), false},
        {TD_STR_INIT("{\"\\ud83d\\ude00\":1}"), TD_STR_INIT("\xF0\x9F\x98\x80"), true},
        {TD_STR_INIT("{\"\\ud83d\\ude00\":1}"), TD_STR_INIT("\xF0\x9F\x98"), false},
        {TD_STR_INIT("{\"\\n\":1}"), TD_STR_INIT("\n"), true},
        {TD_STR_INIT("{\"\":1}"), TD_STR_INIT(""), true},
        {TD_STR_INIT("{\"\\n\":1}"), TD_STR_INIT(""), false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_json_reader reader;
        td_json_reader_init(&reader, rows[i].text, 1);
        reader_expect(&reader, TD_JSON_BEGIN_OBJECT, NULL);
        reader_expect(&reader, TD_JSON_KEY, NULL);
        assert_int_equal(td_json_reader_key_is(&reader, rows[i].name), rows[i].is_equal);
    }
}

/* Whole numbers in range are read however they are written. */
static void test_reader_reads_whole_numbers(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        bool is_whole;
        int64_t value;
    } rows[] = {
        {TD_STR_INIT("0"), true, 0},
        {TD_STR_INIT("-0"), true, 0},
        {TD_STR_INIT("-0.000e-5"), true, 0},
        {TD_STR_INIT("0e99999999999999999999999999"), true, 0},
        {TD_STR_INIT("1e3"), true, 1000},
        {TD_STR_INIT("1.0"), true, 1},
        {TD_STR_INIT("-12.50e1"), true, -125},
        {TD_STR_INIT("1000e-3"), true, 1},
        {TD_STR_INIT("0.00012e5"), true, 12},
        {TD_STR_INIT("1e0000000000000000000000001"), true, 10},
        {TD_STR_INIT("9223372036854775807"), true, INT64_MAX},
        {TD_STR_INIT("-9223372036854775808"), true, INT64_MIN},
        {TD_STR_INIT("9.223372036854775807e18"), true, INT64_MAX},
        {TD_STR_INIT("9223372036854775808"), false, 0},
        {TD_STR_INIT("-9223372036854775809"), false, 0},
        {TD_STR_INIT("9.3e18"), false, 0},
        {TD_STR_INIT("1e19"), false, 0},
        {TD_STR_INIT("1e999999999"), false, 0},
        {TD_STR_INIT("1e99999999999999999999999999"), false, 0},
        {TD_STR_INIT("1e-99999999999999999999999999"), false, 0},
        {TD_STR_INIT("1.5"), false, 0},
        {TD_STR_INIT("1e-1"), false, 0},
        {TD_STR_INIT("0.1"), false, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_json_reader reader;
        td_json_reader_init(&reader, rows[i].text, 1);
        reader_expect(&reader, TD_JSON_NUMBER, NULL);
        int64_t value = 77;
        assert_int_equal(td_json_reader_int64(&reader, &value), rows[i].is_whole);
        assert_int_equal(value, rows[i].is_whole ? rows[i].value : 77);
    }
}

/* A cap of 0 or above the largest means the largest; a NULL slice is the empty text. */
static void test_reader_init_clamps_its_cap(void **state)
{
    (void)state;
    struct td_json_reader reader;
    td_json_reader_init(&reader, TD_STR("[]"), 0);
    assert_int_equal(reader.depth_max, TD_JSON_DEPTH_MAX);
    td_json_reader_init(&reader, TD_STR("[]"), TD_JSON_DEPTH_MAX + 1);
    assert_int_equal(reader.depth_max, TD_JSON_DEPTH_MAX);
    td_json_reader_init(&reader, (td_str){0}, 1);
    assert_int_equal(td_json_reader_next(&reader), TD_JSON_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader_gives_tokens_in_order),
        cmocka_unit_test(test_reader_names_the_place_of_a_failure),
        cmocka_unit_test(test_reader_failure_is_final),
        cmocka_unit_test(test_reader_skip_passes_whole_values),
        cmocka_unit_test(test_reader_skip_rejects_what_next_would),
        cmocka_unit_test(test_reader_decodes_escapes),
        cmocka_unit_test(test_reader_compares_escaped_names),
        cmocka_unit_test(test_reader_reads_whole_numbers),
        cmocka_unit_test(test_reader_init_clamps_its_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
