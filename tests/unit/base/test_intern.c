/* The string table: one copy each, counted, freed with the last reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/intern.h"

/* Equal texts are equal pointers; the copy is the table's own and is terminated. */
static void test_intern_gives_one_copy_of_each(void **state)
{
    (void)state;
    struct td_intern *table = td_intern_new(10);
    char source[] = "web";
    td_str first = td_intern_ref(table, td_str_from(source));
    source[0] = 'X';
    td_str second = td_intern_ref(table, TD_STR("web"));
    td_str other = td_intern_ref(table, TD_STR("webs"));
    td_str empty = td_intern_ref(table, (td_str){.ptr = NULL, .len = 0});
    assert_ptr_equal(first.ptr, second.ptr);
    assert_string_equal(first.ptr, "web");
    assert_int_equal(first.len, 3);
    assert_ptr_not_equal(first.ptr, other.ptr);
    assert_non_null(empty.ptr);
    assert_string_equal(empty.ptr, "");
    assert_int_equal(td_intern_count(table), 3);
    td_intern_free(table);
    td_intern_free(NULL);
}

/* A copy lives until its last reference is given back. */
static void test_intern_frees_with_the_last_reference(void **state)
{
    (void)state;
    struct td_intern *table = td_intern_new(10);
    td_str text = td_intern_ref(table, TD_STR("a/b"));
    (void)td_intern_ref(table, TD_STR("a/b"));
    td_intern_unref(table, text);
    assert_int_equal(td_intern_count(table), 1);
    assert_string_equal(text.ptr, "a/b");
    td_intern_unref(table, text);
    assert_int_equal(td_intern_count(table), 0);
    td_intern_unref(table, (td_str){.ptr = NULL, .len = 0});
    td_intern_free(table);
}

/* At its maximum the table still answers for what it holds, and takes again after an unref. */
static void test_intern_stops_at_its_maximum(void **state)
{
    (void)state;
    struct td_intern *table = td_intern_new(2);
    td_str a = td_intern_ref(table, TD_STR("a"));
    (void)td_intern_ref(table, TD_STR("b"));
    assert_null(td_intern_ref(table, TD_STR("c")).ptr);
    assert_ptr_equal(td_intern_ref(table, TD_STR("a")).ptr, a.ptr);
    td_intern_unref(table, a);
    assert_null(td_intern_ref(table, TD_STR("c")).ptr);
    td_intern_unref(table, a);
    assert_non_null(td_intern_ref(table, TD_STR("c")).ptr);
    td_intern_free(table);
}

/* Many strings with many references each come and go, and nothing is left. */
static void test_intern_turnover_leaves_nothing(void **state)
{
    (void)state;
    static td_str held[5000];
    struct td_intern *table = td_intern_new(5000);
    for (size_t i = 0; i < 5000; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "name-%zu", i % 1700);
        held[i] = td_intern_ref(table, td_str_from(text));
    }
    assert_int_equal(td_intern_count(table), 1700);
    for (size_t i = 0; i < 5000; i++) {
        td_intern_unref(table, held[(i * 3) % 5000]);
    }
    assert_int_equal(td_intern_count(table), 0);
    td_intern_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intern_gives_one_copy_of_each),
        cmocka_unit_test(test_intern_frees_with_the_last_reference),
        cmocka_unit_test(test_intern_stops_at_its_maximum),
        cmocka_unit_test(test_intern_turnover_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
