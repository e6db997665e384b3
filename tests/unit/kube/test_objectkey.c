/* Keys of objects: one text for namespace and name, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/objectkey.h"

static void str_is(td_str got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

/* What is written is read back as it was; cluster-scoped objects have no slash. */
static void test_key_is_written_and_read(void **state)
{
    (void)state;
    static const struct {
        const char *namespace, *name, *text;
    } rows[] = {
        {"web", "front", "web/front"},
        {"", "node-1", "node-1"},
        {"web", "", "web/"},
        {"", "", ""},
    };
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char buffer[TD_OBJECT_KEY_BYTES_MAX];
        struct td_object_key key =
            TD_OBJECT_KEY(td_str_from(rows[i].namespace), td_str_from(rows[i].name));
        str_is(td_object_key_write(key, buffer), rows[i].text);
        str_is(td_object_key_text(&arena, key), rows[i].text);
        struct td_object_key read = td_object_key_read(td_str_from(rows[i].text));
        str_is(read.namespace, rows[i].namespace);
        str_is(read.name, rows[i].name);
    }
}

/* The buffer takes keys up to its size; a longer one is empty, and whole in an arena. */
static void test_key_that_does_not_fit_is_empty(void **state)
{
    (void)state;
    static char long_text[TD_OBJECT_KEY_BYTES_MAX];
    memset(long_text, 'x', sizeof(long_text));
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 16);
    td_str whole = {.ptr = long_text, .len = sizeof(long_text)};
    td_str fits = td_str_slice(whole, 0, whole.len - 2);
    assert_int_equal(td_object_key_write(TD_OBJECT_KEY(TD_STR_EMPTY, whole), buffer).len,
                     whole.len);
    assert_int_equal(td_object_key_write(TD_OBJECT_KEY(TD_STR("a"), fits), buffer).len, whole.len);
    assert_int_equal(td_object_key_write(TD_OBJECT_KEY(TD_STR("ab"), fits), buffer).len, 0);
    assert_int_equal(td_object_key_write(TD_OBJECT_KEY(whole, TD_STR_EMPTY), buffer).len, 0);
    assert_int_equal(td_object_key_text(&arena, TD_OBJECT_KEY(TD_STR("a"), whole)).len,
                     whole.len + 2);
    assert_int_equal(TD_KEY_LINES(buffer, whole, TD_STR_EMPTY).len, 0);
}

/* Each part has its line, so that no two lists of parts have the same key. */
static void test_key_of_more_parts_has_lines(void **state)
{
    (void)state;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    str_is(TD_KEY_LINES(buffer, TD_STR("web"), TD_STR("Deployment"), TD_STR("a/b")),
           "web\nDeployment\na/b");
    str_is(TD_KEY_LINES(buffer, TD_STR_EMPTY, TD_STR("x"), TD_STR_EMPTY), "\nx\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_is_written_and_read),
        cmocka_unit_test(test_key_that_does_not_fit_is_empty),
        cmocka_unit_test(test_key_of_more_parts_has_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
