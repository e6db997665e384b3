/* JSON straight into a buffer: commas, names, numbers that JSON has, texts that a page may hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <math.h>

#include <cmocka.h>

#include "base/buf.h"
#include "web/json_writer.h"

static void expect(const struct td_buf *out, const char *text)
{
    assert_string_equal(out->ptr, text);
}

/* A comma stands between items and nowhere else. */
static void test_writer_nests(void **state)
{
    (void)state;
    td_auto_buf out = td_buf_capped(4096);
    struct td_json_writer writer = {.out = &out};
    td_writer_open(&writer, NULL, '{');
    td_writer_open(&writer, "empty", '[');
    td_writer_close(&writer, ']');
    td_writer_open(&writer, "list", '[');
    td_writer_int(&writer, NULL, -3);
    td_writer_null(&writer, NULL);
    td_writer_open(&writer, NULL, '{');
    td_writer_bool(&writer, "yes", true);
    td_writer_bool(&writer, "no", false);
    td_writer_close(&writer, '}');
    td_writer_close(&writer, ']');
    td_writer_raw(&writer, "raw", TD_STR("{\"a\":1}"));
    td_writer_close(&writer, '}');
    expect(&out, "{\"empty\":[],\"list\":[-3,null,{\"yes\":true,\"no\":false}],"
                 "\"raw\":{\"a\":1}}");
}

/* Rounded as asked; what JSON cannot say, and what is not known, is null. */
static void test_writer_rounds_numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        int places;
        const char *text;
    } rows[] = {{1.25, 0, "[1]"},
                {1.25, 1, "[1.3]"},
                {0.12345, 4, "[0.1235]"},
                {-0.4, 0, "[0]"},
                {1e15, 0, "[1000000000000000]"},
                {NAN, 0, "[null]"},
                {INFINITY, 2, "[null]"},
                {1e17, 0, "[null]"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf out = td_buf_capped(4096);
        struct td_json_writer writer = {.out = &out};
        td_writer_open(&writer, NULL, '[');
        td_writer_number(&writer, NULL, rows[i].value, rows[i].places);
        td_writer_close(&writer, ']');
        expect(&out, rows[i].text);
    }
    td_auto_buf out = td_buf_capped(4096);
    struct td_json_writer writer = {.out = &out};
    td_writer_open(&writer, NULL, '[');
    td_writer_known(&writer, NULL, -1, 0);
    td_writer_known(&writer, NULL, 0, 0);
    td_writer_close(&writer, ']');
    expect(&out, "[null,0]");
}

/* Names of strangers cannot end a string, nor a script element that the text were put into. */
static void test_writer_escapes_texts(void **state)
{
    (void)state;
    td_auto_buf out = td_buf_capped(4096);
    struct td_json_writer writer = {.out = &out};
    td_writer_open(&writer, NULL, '[');
    td_writer_text(&writer, NULL, TD_STR("</script><img src=x onerror=alert(1)>&\"\\\n"));
    td_writer_close(&writer, ']');
    assert_null(strchr(out.ptr, '<'));
    assert_null(strchr(out.ptr, '>'));
    assert_null(strchr(out.ptr, '&'));
    assert_null(strchr(out.ptr, '\n'));
    assert_non_null(strstr(out.ptr, "\\\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_nests),
        cmocka_unit_test(test_writer_rounds_numbers),
        cmocka_unit_test(test_writer_escapes_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
