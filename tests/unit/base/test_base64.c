#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/base64.h"

/* Both alphabets write and read back the same bytes, padded or not. */
static void test_base64_round_trip(void **state)
{
    (void)state;
    static const struct {
        td_str bytes;
        td_str standard;
        td_str url;
    } rows[] = {
        {TD_STR_INIT(""), TD_STR_INIT(""), TD_STR_INIT("")},
        {TD_STR_INIT("f"), TD_STR_INIT("Zg=="), TD_STR_INIT("Zg")},
        {TD_STR_INIT("fo"), TD_STR_INIT("Zm8="), TD_STR_INIT("Zm8")},
        {TD_STR_INIT("foo"), TD_STR_INIT("Zm9v"), TD_STR_INIT("Zm9v")},
        {TD_STR_INIT("\xfb\xff\xbf"), TD_STR_INIT("+/+/"), TD_STR_INIT("-_-_")},
        {TD_STR_INIT("a\0b"), TD_STR_INIT("YQBi"), TD_STR_INIT("YQBi")},
    };
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (enum td_base64 alphabet = TD_BASE64_STANDARD; alphabet <= TD_BASE64_URL; alphabet++) {
            td_str text = alphabet == TD_BASE64_URL ? rows[i].url : rows[i].standard;
            td_auto_buf out;
            td_buf_init(&out, 64);
            td_base64_write(rows[i].bytes, alphabet, &out);
            assert_true(td_str_equal(td_buf_str(&out), text));
            td_str bytes;
            assert_true(td_base64_read(&arena, text, alphabet, &bytes));
            assert_true(td_str_equal(bytes, rows[i].bytes));
        }
    }
}

/* What is not base64 of the alphabet is refused. */
static void test_base64_refuses(void **state)
{
    (void)state;
    static const struct {
        td_str text;
        enum td_base64 alphabet;
    } rows[] = {
        {TD_STR_INIT("Zg"), TD_BASE64_STANDARD},    {TD_STR_INIT("Zg="), TD_BASE64_STANDARD},
        {TD_STR_INIT("Zg==="), TD_BASE64_STANDARD}, {TD_STR_INIT("Z"), TD_BASE64_URL},
        {TD_STR_INIT("Zg=="), TD_BASE64_URL},       {TD_STR_INIT("-_-_"), TD_BASE64_STANDARD},
        {TD_STR_INIT("+/+/"), TD_BASE64_URL},       {TD_STR_INIT("Zm 9"), TD_BASE64_STANDARD},
        {TD_STR_INIT("=Zm9"), TD_BASE64_STANDARD},  {TD_STR_INIT("Zg\n"), TD_BASE64_URL},
    };
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str bytes;
        assert_false(td_base64_read(&arena, rows[i].text, rows[i].alphabet, &bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64_round_trip),
        cmocka_unit_test(test_base64_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
