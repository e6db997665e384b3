/* JSON patches as they are sent: an operation reads back as the server reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "kube/patch/patch.h"
#include "kube/patch/patch_write.h"

/* Members in upstream's order; no value is null. */
static void test_patch_operation_is_written_whole(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    assert_string_equal(
        td_patch_one(&arena, "add", TD_STR("/status"), td_json_new_object(&arena)).ptr,
        "[{\"op\":\"add\",\"path\":\"/status\",\"value\":{}}]");
    assert_string_equal(td_patch_one(&arena, "remove", TD_STR("/a"), NULL).ptr,
                        "[{\"op\":\"remove\",\"path\":\"/a\",\"value\":null}]");
}

/* A key with slashes and tildes is one part of the path, also for the reader. */
static void test_patch_part_is_escaped(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    const td_str key = TD_STR("a/b~c~1");
    td_str part = td_patch_part(&arena, key);
    assert_int_equal(part.len, strlen("a~1b~0c~01"));
    assert_memory_equal(part.ptr, "a~1b~0c~01", part.len);
    struct td_json *patch = td_json_new_array(&arena);
    td_patch_append(&arena, patch, "add", td_arena_format(&arena, "/%.*s", TD_STR_ARG(part)),
                    td_json_new_string(&arena, TD_STR("v")));
    struct td_json *made;
    assert_int_equal(td_patch_json(&arena, td_json_new_object(&arena), patch, &made, NULL), TD_OK);
    assert_true(td_str_equal(td_json_get_str(made, key, TD_STR_EMPTY), TD_STR("v")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patch_operation_is_written_whole),
        cmocka_unit_test(test_patch_part_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
