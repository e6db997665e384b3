/* Text for terminals: which locales have UTF-8, what ASCII has for characters, cutting at words,
 * and the stream that all output passes where the locale has none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/os/screen_text.h"

struct locale {
    const char *all;
    const char *type;
    const char *lang;
};

static const char *locale_get(const char *name, void *context)
{
    const struct locale *locale = context;
    return strcmp(name, "LC_ALL") == 0     ? locale->all
           : strcmp(name, "LC_CTYPE") == 0 ? locale->type
                                           : locale->lang;
}

/* LC_ALL counts before LC_CTYPE before LANG; empty ones do not count. */
static void test_screen_text_locales(void **state)
{
    static const struct {
        struct locale locale;
        bool has_utf8;
    } rows[] = {
        {{NULL, NULL, NULL}, false},
        {{NULL, NULL, "C"}, false},
        {{NULL, NULL, "POSIX"}, false},
        {{NULL, NULL, "de_DE.UTF-8"}, true},
        {{NULL, NULL, "C.utf8"}, true},
        {{"C", "en_US.UTF-8", "en_US.UTF-8"}, false},
        {{"", "en_US.UTF-8", "C"}, true},
        {{NULL, "C", "en_US.UTF-8"}, false},
        {{NULL, NULL, "en_US.ISO-8859-1"}, false},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        struct locale locale = rows[i].locale;
        assert_int_equal(td_screen_has_utf8(locale_get, &locale), rows[i].has_utf8);
    }
}

static void test_screen_text_ascii(void **state)
{
    td_auto_buf buf = td_buf_capped(4096);
    (void)state;
    td_screen_ascii(&buf,
                    TD_STR("3 \u2192 5\u2026 \u2264 \u22121 \u2588\u2591 4\u00b72 \u00fc\xff\n"));
    assert_string_equal(td_buf_str(&buf).ptr, "3 -> 5... <= -1 #. 4*2 ??\n");
    td_buf_reset(&buf);
    td_screen_ascii_json(&buf, TD_STR("{\"a\":\"\u2192 \U0001f600\"}"));
    assert_string_equal(td_buf_str(&buf).ptr, "{\"a\":\"\\u2192 \\ud83d\\ude00\"}");
}

/* Only between words, unless the first one is too long. */
static void test_screen_text_clip(void **state)
{
    static const struct {
        const char *text;
        size_t columns;
        bool has_utf8;
        const char *expected;
    } rows[] = {
        {"07:00 3 to 5", 12, true, "07:00 3 to 5"},
        {"07:00 3 to 5", 11, true, "07:00 3 to\u2026"},
        {"07:00 3 to 5", 10, true, "07:00 3\u2026"},
        {"07:00 3 to 5", 11, false, "07:00 3..."},
        {"cpu 1, memory 2", 12, true, "cpu 1\u2026"},
        {"abcdefgh", 5, true, "abcd\u2026"},
        {"abcdefgh", 2, false, ""},
        {"abcdefgh", 0, true, ""},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        td_auto_buf buf = td_buf_capped(4096);
        td_screen_clip(&buf, td_str_from(rows[i].text), rows[i].columns, rows[i].has_utf8);
        assert_string_equal(buf.len > 0 ? td_buf_str(&buf).ptr : "", rows[i].expected);
    }
}

/* A character that comes in pieces is one. */
static void test_screen_text_stream(void **state)
{
    int ends[2];
    char text[64] = "";
    (void)state;
    assert_int_equal(pipe(ends), 0);
    FILE *stream = td_screen_stream(ends[1], _IONBF);
    assert_non_null(stream);
    assert_int_equal(fputs("a \xe2\x86", stream) >= 0, 1);
    assert_int_equal(fputs("\x92 b\n", stream) >= 0, 1);
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(read(ends[0], text, sizeof(text) - 1), 7);
    assert_string_equal(text, "a -> b\n");
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_screen_text_locales),
        cmocka_unit_test(test_screen_text_ascii),
        cmocka_unit_test(test_screen_text_clip),
        cmocka_unit_test(test_screen_text_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
