/* Unified diffs by table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/inspect/diff.h"

static void test_diff_of_edited_lines(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        const char *after;
        const char *diff;
    } rows[] = {
        {"a\nb\n", "a\nb\n", ""},
        {"a\n", "b\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"},
        {"1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n5\n6\n",
         "--- a/f\n+++ b/f\n@@ -2,5 +2,6 @@\n 2\n 3\n 4\n+x\n 5\n 6\n"},
        {"a", "a\nb",
         "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ "
         "No newline at end of file\n"},
        {"", "a\n", "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"},
        {"1\n2\n3\n4\n5\n6\n7\n8\n9\n0\n", "x\n2\n3\n4\n5\n6\n7\n8\n9\ny\n",
         "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -7,4 +7,4 @@\n 7\n 8\n "
         "9\n-0\n+y\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf out = td_buf_capped(4096);
        td_diff_write(TD_STR("f"), td_str_from(rows[i].before), td_str_from(rows[i].after), &out);
        assert_string_equal(td_buf_str(&out).ptr, rows[i].diff);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diff_of_edited_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
