/* The stream splitter: whole values out of pieces of any size, under a cap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json/json_stream.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Take out what is complete and append it to `out`, each value followed by a bar. */
static void stream_take(struct td_json_stream *stream, struct td_buf *out)
{
    td_str value;
    while (td_json_stream_next(stream, &value)) {
        assert_int_equal(td_buf_append(out, value), TD_OK);
        assert_int_equal(td_buf_append_char(out, '|'), TD_OK);
    }
}

/* Feed the text in pieces of `size` bytes, then finish; what came out, and the code of finish. */
static int stream_split(td_str text, size_t size, struct td_buf *out)
{
    struct td_json_stream stream;
    td_json_stream_init(&stream, 1000);
    for (size_t at = 0; at < text.len; at += size) {
        assert_int_equal(td_json_stream_feed(&stream, td_str_slice(text, at, at + size), NULL),
                         TD_OK);
        stream_take(&stream, out);
    }
    int code = td_json_stream_finish(&stream, NULL);
    stream_take(&stream, out);
    td_json_stream_done(&stream);
    return code;
}

/* Values are found whatever separates them and wherever the pieces are cut. */
static void test_stream_finds_values_at_every_split(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *values;
        int finish;
    } rows[] = {
        {TD_STR_INIT(""), "", TD_OK},
        {TD_STR_INIT(" \n\t\r "), "", TD_OK},
        {TD_STR_INIT("{}"), "{}|", TD_OK},
        {TD_STR_INIT("{\"a\":1}\n{\"b\":2}\n"), "{\"a\":1}|{\"b\":2}|", TD_OK},
        {TD_STR_INIT("{}{}[][[]]"), "{}|{}|[]|[[]]|", TD_OK},
        {TD_STR_INIT("{\"a\":\"}]{\\\"\\\\\"}[\"\\\\\"]"), "{\"a\":\"}]{\\\"\\\\\"}|[\"\\\\\"]|",
         TD_OK},
        {TD_STR_INIT("\"a\"\"b\\\"\" \"\""), "\"a\"|\"b\\\"\"|\"\"|", TD_OK},
        {TD_STR_INIT("1 2\n3"), "1|2|3|", TD_OK},
        {TD_STR_INIT("true{}false[]null\"x\"7"), "true|{}|false|[]|null|\"x\"|7|", TD_OK},
        {TD_STR_INIT("{\"long\":\"0123456789abcdef0123456789abcdef\\n0123456789\xC3\xA9\"}7"),
         "{\"long\":\"0123456789abcdef0123456789abcdef\\n0123456789\xC3\xA9\"}|7|", TD_OK},
        {TD_STR_INIT("{\"a\":[1,2"), "", TD_INVALID},
        {TD_STR_INIT("{}\n\"abc"), "{}|", TD_INVALID},
        {TD_STR_INIT("[]\"a\\\""), "[]|", TD_INVALID},
        {TD_STR_INIT("}{}"), "}|{}|", TD_OK}, /* for the parser to refuse */
        {TD_STR_INIT("],1"), "]|,1|", TD_OK},
        {TD_STR_INIT("{]"), "{]|", TD_OK},
        /* A missing quote, bracket or comma does not swallow what follows. */
        {TD_STR_INIT("{\"a\":\"b}\n{}\n"), "{\"a\":\"b}\n|{}|", TD_OK},
        {TD_STR_INIT("{\"a\\\n{}"), "{\"a\\\n|{}|", TD_OK},
        {TD_STR_INIT("{\"a\":{\n{\"b\":1}\n"), "{\"a\":{\n{|\"b\"|:1|}|", TD_OK},
        {TD_STR_INIT("{\"a\":[{}\n{}"), "{\"a\":[{}\n{|}|", TD_OK},
        {TD_STR_INIT("{\"a\" \"b\"}"), "{\"a\" \"|b|", TD_INVALID},
        {TD_STR_INIT("[1\n[2]]"), "[1\n[|2|]|]|", TD_OK},
        {TD_STR_INIT("\xEF\xBB\xBF{}"), "\xEF\xBB\xBF|{}|", TD_OK},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t size = 1; size <= rows[i].text.len + 1; size++) {
            td_auto_buf out;
            td_buf_init(&out, 1000);
            assert_int_equal(stream_split(rows[i].text, size, &out), rows[i].finish);
            assert_string_equal(td_buf_str(&out).ptr, rows[i].values);
        }
    }
}

/* A partial value is named at the end of the input. */
static void test_stream_finish_names_what_is_left(void **state)
{
    (void)state;
    struct td_json_stream stream;
    td_json_stream_init(&stream, 100);
    assert_int_equal(td_json_stream_feed(&stream, TD_STR("  {\"a\":"), NULL), TD_OK);
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_json_stream_finish(&stream, &err), TD_INVALID);
    assert_string_equal(err.message, "the stream ended inside a JSON value, after 5 bytes of it");
    td_json_stream_done(&stream);
}

/* A value of exactly the cap passes, one byte more is a limit, at once and for ever. */
static void test_stream_caps_one_value(void **state)
{
    (void)state;
    static const struct {
        td_str first;
        td_str second;
        int first_code;
        int second_code;
    } rows[] = {
        {TD_STR_INIT("[1234567]"), TD_STR_INIT("\n"), TD_OK, TD_OK},
        {TD_STR_INIT("[12345678]"), TD_STR_INIT("\n"), TD_OK, TD_OK},
        {TD_STR_INIT("[123456789]"), TD_STR_INIT("\n"), TD_LIMIT, TD_LIMIT},
        {TD_STR_INIT("[123456789"), TD_STR_INIT("]"), TD_OK, TD_LIMIT},
        {TD_STR_INIT("[1234567890"), TD_STR_INIT("]"), TD_LIMIT, TD_LIMIT},
        {TD_STR_INIT("\"123456789"), TD_STR_INIT("0\""), TD_OK, TD_LIMIT},
        {TD_STR_INIT("12345678901"), TD_STR_INIT(""), TD_LIMIT, TD_LIMIT},
        {TD_STR_INIT("                [1]     "), TD_STR_INIT("              "), TD_OK, TD_OK},
        {TD_STR_INIT("[1][2][3][4][5][6]"), TD_STR_INIT("[1234567][1]"), TD_OK, TD_OK},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct td_json_stream stream;
        td_json_stream_init(&stream, 10);
        td_auto_buf out;
        td_buf_init(&out, 1000);
        assert_int_equal(td_json_stream_feed(&stream, rows[i].first, NULL), rows[i].first_code);
        stream_take(&stream, &out);
        struct td_error err = TD_ERROR_INIT;
        int code = td_json_stream_feed(&stream, rows[i].second, &err);
        assert_int_equal(code, rows[i].second_code);
        stream_take(&stream, &out);
        assert_int_equal(td_json_stream_finish(&stream, NULL), code);
        if (code < 0) {
            assert_string_equal(err.message, "a JSON value in the stream is larger than 10 bytes");
        }
        td_json_stream_done(&stream);
    }
}

/* A value past the cap behind good ones is found out when it is reached, and stops the stream. */
static void test_stream_caps_a_later_value(void **state)
{
    (void)state;
    struct td_json_stream stream;
    td_json_stream_init(&stream, 10);
    td_auto_buf out;
    td_buf_init(&out, 1000);
    assert_int_equal(td_json_stream_feed(&stream, TD_STR("[1][2][123456789012][3]"), NULL), TD_OK);
    stream_take(&stream, &out);
    assert_string_equal(td_buf_str(&out).ptr, "[1]|[2]|");
    assert_int_equal(td_json_stream_feed(&stream, TD_STR("[4]"), NULL), TD_LIMIT);
    assert_int_equal(td_json_stream_finish(&stream, NULL), TD_LIMIT);
    td_json_stream_done(&stream);
}

/* Feeding without taking values out ends at the buffer's cap. */
static void test_stream_caps_what_waits(void **state)
{
    (void)state;
    struct td_json_stream stream;
    td_json_stream_init(&stream, 1000);
    struct td_error err = TD_ERROR_INIT;
    int code = TD_OK;
    for (size_t i = 0; i < 1000000 && code == TD_OK; i++) {
        code = td_json_stream_feed(&stream, TD_STR("[1,2,3,4,5,6,7,8,9] "), &err);
    }
    assert_int_equal(code, TD_LIMIT);
    assert_int_equal(td_json_stream_feed(&stream, TD_STR("[1]"), NULL), TD_LIMIT);
    td_json_stream_done(&stream);
}

/* Each byte is looked at once: a large value in tiny pieces, and many values in one piece, take no
 * more than a moment. */
static void test_stream_is_linear(void **state)
{
    (void)state;
    enum { BYTES = 2000000 };
    struct td_json_stream stream;
    td_json_stream_init(&stream, BYTES + 10);
    td_str value;
    assert_int_equal(td_json_stream_feed(&stream, TD_STR("["), NULL), TD_OK);
    for (size_t i = 0; i < BYTES / 2; i++) {
        assert_int_equal(td_json_stream_feed(&stream, TD_STR("1,"), NULL), TD_OK);
        assert_false(td_json_stream_next(&stream, &value));
    }
    assert_int_equal(td_json_stream_feed(&stream, TD_STR("1]"), NULL), TD_OK);
    assert_true(td_json_stream_next(&stream, &value));
    assert_int_equal(value.len, BYTES + 3);
    td_auto_buf many;
    td_buf_init(&many, BYTES);
    for (size_t i = 0; i < BYTES / 4; i++) {
        assert_int_equal(td_buf_append(&many, TD_STR("[1]\n")), TD_OK);
    }
    assert_int_equal(td_json_stream_feed(&stream, td_buf_str(&many), NULL), TD_OK);
    size_t count = 0;
    while (td_json_stream_next(&stream, &value)) {
        count++;
        /* A feed between two values must not move all that waits. */
        assert_int_equal(td_json_stream_feed(&stream, TD_STR(" "), NULL), TD_OK);
    }
    assert_int_equal(count, BYTES / 4);
    td_json_stream_done(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_finds_values_at_every_split),
        cmocka_unit_test(test_stream_finish_names_what_is_left),
        cmocka_unit_test(test_stream_caps_one_value),
        cmocka_unit_test(test_stream_caps_a_later_value),
        cmocka_unit_test(test_stream_caps_what_waits),
        cmocka_unit_test(test_stream_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
