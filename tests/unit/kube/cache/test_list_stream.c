/* A list that arrives in pieces: whatever the pieces, the same items come out, and what is no list
 * is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/cache/list_stream.h"

static int take(void *context, td_str text, struct td_error *err)
{
    struct td_buf *out = context;
    (void)err;
    (void)td_buf_append(out, text);
    (void)td_buf_append_char(out, '|');
    return TD_OK;
}

/* The items, each followed by a bar, fed in pieces of so many bytes. */
static int split(const char *text, size_t piece, struct td_buf *out, struct td_error *err)
{
    struct td_list_stream stream;
    td_list_stream_init(&stream, take, out);
    td_str rest = td_str_from(text);
    int code = TD_OK;
    while (rest.len > 0 && code == TD_OK) {
        code = td_list_stream_feed(&stream, td_str_slice(rest, 0, piece), err);
        rest = td_str_slice(rest, piece < rest.len ? piece : rest.len, rest.len);
    }
    code = code == TD_OK ? td_list_stream_finish(&stream, err) : code;
    td_list_stream_done(&stream);
    return code;
}

/* Every list gives its items, wherever it is cut into pieces. */
static void test_items_come_out_whatever_the_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *items;
    } rows[] = {
        {"{\"items\":[]}", ""},
        {"{}", ""},
        {" { \"items\" : [ {} , { } ] } \n", "{}|{ }|"},
        {"{\"kind\":\"List\",\"metadata\":{\"items\":[{\"no\":1}]},\"items\":[{\"a\":[1,{}]},"
         "{\"b\":\"}]{\\\"\"}]}",
         "{\"a\":[1,{}]}|{\"b\":\"}]{\\\"\"}|"},
        {"{\"kind\":\"items\",\"items\":[{\"a\":1}],\"more\":[{\"no\":2}]}", "{\"a\":1}|"},
        {"{\"items\":null}", ""},
        {"{\"xitems\":[{\"no\":1}],\"items\":[{\"a\":1}]}", "{\"a\":1}|"},
        {"{\"a\\\"items\":[{\"no\":1}],\"items\":[{\"a\":1}]}", "{\"a\":1}|"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t piece = 1; piece < 40; piece++) {
            td_auto_buf out;
            td_buf_init(&out, 4096);
            struct td_error err = TD_ERROR_INIT;
            assert_int_equal(split(rows[i].text, piece, &out, &err), TD_OK);
            assert_true(td_str_equal(td_buf_str(&out), td_str_from(rows[i].items)));
        }
    }
}

static void test_what_is_no_list_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        {"", TD_INVALID},
        {"[]", TD_INVALID},
        {"x", TD_INVALID},
        {"{\"items\":[{}", TD_INVALID},
        {"{\"items\":[{}]", TD_INVALID},
        {"{\"items\":[1]}", TD_INVALID},
        {"{\"items\":[[{}]]}", TD_INVALID},
        {"{\"items\":[\"a\"]}", TD_INVALID},
        {"{\"items\":[{}]} x", TD_INVALID},
        {"{\"items\":[{}]}{}", TD_INVALID},
        {"{\"items\":[}", TD_INVALID},
        {"{\"items\":[{\"a\"]{\"b\":1}]}", TD_INVALID},
        {"{\"items\":[{\"a\":[1}}]}", TD_INVALID},
        {"{\"items\":[{}}", TD_INVALID},
        {"{\"metadata\":[},\"items\":[{}]}", TD_INVALID},
        {"{\"items\":[{}]]", TD_INVALID},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t piece = 1; piece < 20; piece++) {
            td_auto_buf out;
            td_buf_init(&out, 4096);
            struct td_error err = TD_ERROR_INIT;
            assert_int_equal(split(rows[i].text, piece, &out, &err), rows[i].code);
        }
    }
}

/* Depth and size are capped, and what is broken stays so. */
static void test_depth_and_size_have_caps(void **state)
{
    (void)state;
    td_auto_buf deep;
    td_buf_init(&deep, TD_OBJECT_BYTES_MAX * 2);
    (void)td_buf_append(&deep, TD_STR("{\"items\":[{\"a\":"));
    for (size_t i = 0; i < (size_t)TD_JSON_DEPTH_MAX; i++) {
        (void)td_buf_append_char(&deep, '[');
    }
    td_auto_buf out;
    td_buf_init(&out, 4096);
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(split(td_buf_str(&deep).ptr, 64, &out, &err), TD_INVALID);
    struct td_list_stream stream;
    td_list_stream_init(&stream, take, &out);
    assert_int_equal(td_list_stream_feed(&stream, TD_STR("{\"items\":[{\"a\":\""), &err), TD_OK);
    int code = TD_OK;
    for (size_t fed = 0; fed <= TD_OBJECT_BYTES_MAX && code == TD_OK; fed += 32) {
        code = td_list_stream_feed(&stream, TD_STR("0123456789abcdef0123456789abcdef"), &err);
    }
    assert_int_equal(code, TD_LIMIT);
    assert_int_equal(td_list_stream_feed(&stream, TD_STR("\"}]}"), &err), TD_LIMIT);
    assert_int_equal(td_list_stream_finish(&stream, &err), TD_LIMIT);
    td_list_stream_done(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_come_out_whatever_the_pieces),
        cmocka_unit_test(test_what_is_no_list_is_refused),
        cmocka_unit_test(test_depth_and_size_have_caps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
