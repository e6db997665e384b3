/* Quoted texts as Go's %q prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/quote.h"

/* Every kind of character: plain, with a letter, control, hidden, broken. */
static void test_quote_writes_as_go(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        const char *quoted;
    } rows[] = {
        {TD_STR_INIT(""), "\"\""},
        {TD_STR_INIT("web <&>'~"), "\"web <&>'~\""},
        {TD_STR_INIT("\"\\"), "\"\\\"\\\\\""},
        {TD_STR_INIT("\a\b\f\n\r\t\v"), "\"\\a\\b\\f\\n\\r\\t\\v\""},
        {TD_STR_INIT("a\0b\x01\x1f\x7f"), "\"a\\x00b\\x01\\x1f\\x7f\""},
        {TD_STR_INIT("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
         "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {TD_STR_INIT("\xc2\x80\xc2\xa0\xc2\xa1"), "\"\\u0080\\u00a0\xc2\xa1\""},
        {TD_STR_INIT("\xe2\x80\x8b\xe2\x80\xa8\xef\xbb\xbf"), "\"\\u200b\\u2028\\ufeff\""},
        {TD_STR_INIT("\xf3\xa0\x80\x81\xf4\x8f\xbf\xbd"), "\"\\U000e0001\\U0010fffd\""},
        {TD_STR_INIT("\xff\xc3"), "\"\\xff\\xc3\""},
        {TD_STR_INIT("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\""},
        {TD_STR_INIT("\xef\xbf\xbd"), "\"\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf out;
        td_buf_init(&out, 4096);
        td_quote_write(rows[i].text, &out);
        assert_string_equal(out.ptr, rows[i].quoted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quote_writes_as_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
