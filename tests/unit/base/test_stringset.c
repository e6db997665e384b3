/* Sets of texts: copies of their own, each once, capped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/stringset.h"
#include "base/text.h"

/* A text is added once, found by its bytes, and not borrowed from where it came. */
static void test_set_keeps_copies(void **state)
{
    (void)state;
    td_auto_string_set set;
    td_string_set_init(&set, 2);
    char text[] = "abc";
    assert_int_equal(td_string_set_add(&set, td_str_from(text)), TD_OK);
    text[0] = 'x';
    assert_true(td_string_set_has(&set, TD_STR("abc")));
    assert_false(td_string_set_has(&set, TD_STR("xbc")));
    assert_int_equal(td_string_set_add(&set, TD_STR("abc")), TD_EXISTS);
    assert_int_equal(td_string_set_add(&set, TD_STR_EMPTY), TD_OK);
    assert_true(td_string_set_has(&set, TD_STR_EMPTY));
    assert_int_equal(td_string_set_add(&set, TD_STR("more")), TD_LIMIT);
    assert_int_equal(set.texts.count, 2);
}

/* Walked in the order of insertion; the one just returned may be removed. */
static void test_set_is_walked_and_emptied(void **state)
{
    (void)state;
    td_auto_string_set set;
    td_string_set_init(&set, 10);
    static const char *const texts[] = {"c", "a", "b"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(td_string_set_add(&set, td_str_from(texts[i])), TD_OK);
    }
    size_t position = 0;
    for (size_t i = 0; i < 3; i++) {
        const td_str *text = td_string_set_next(&set, &position);
        assert_non_null(text);
        assert_string_equal(text->ptr, texts[i]);
        td_string_set_remove(&set, *text);
    }
    assert_null(td_string_set_next(&set, &position));
    assert_int_equal(set.texts.count, 0);
    td_string_set_remove(&set, TD_STR("a")); /* not there: nothing */
    assert_int_equal(td_string_set_add(&set, TD_STR("a")), TD_OK);
    td_string_set_reset(&set);
    assert_false(td_string_set_has(&set, TD_STR("a")));
}

/* Texts behind a structure lie one behind the other. */
static void test_text_is_placed(void **state)
{
    (void)state;
    char block[8];
    char *at = block;
    td_str first = td_text_place(&at, TD_STR("abc"));
    td_str none = td_text_place(&at, (td_str){0});
    td_str last = td_text_place(&at, TD_STR("de"));
    assert_ptr_equal(first.ptr, block);
    assert_int_equal(none.len, 0);
    assert_ptr_equal(last.ptr, block + 3);
    assert_ptr_equal(at, block + 5);
    assert_memory_equal(block, "abcde", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_keeps_copies),
        cmocka_unit_test(test_set_is_walked_and_emptied),
        cmocka_unit_test(test_text_is_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
