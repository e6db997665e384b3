/* A help text read by its layout: summary, examples, usage, rows with one and two options, words,
 * and descriptions over several lines. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/limits.h"
#include "cli/complete/help.h"

static const char help_text[] = "print a thing\n\n"
                                "  tandem thing web          for example\n\n"
                                "usage: tandem thing [OPTIONS] KIND NAME\n"
                                "                    [FILE...]\n\n"
                                "KIND is one of two:\n"
                                "  -n, --namespace NAME      where it is\n"
                                "  -o, --output text|json\n"
                                "                            how it is\n"
                                "                            printed (text)\n"
                                "  --min A, --max B          bounds\n"
                                "  --low, --high QUANTITY    more bounds\n"
                                "  --mode=fast               how\n"
                                "  --quiet                   nothing else\n"
                                "  FOLDER                    a word\n\n"
                                "Exit status: 0 done. Guide: docs/run.md\n";

static void assert_text(td_str got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

static void test_blocks_are_told_by_their_layout(void **state)
{
    (void)state;
    static const enum td_help_kind kinds[] = {TD_HELP_EXAMPLES, TD_HELP_USAGE, TD_HELP_PARAGRAPH,
                                              TD_HELP_ROWS, TD_HELP_PARAGRAPH};
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_help help = td_help_read(&arena, help_text);
    assert_text(help.summary, "print a thing");
    assert_int_equal(help.block_count, TD_COUNT(kinds));
    for (size_t i = 0; i < TD_COUNT(kinds); i++) {
        assert_int_equal(help.blocks[i].kind, kinds[i]);
    }
    assert_text(help.blocks[1].text, "usage: tandem thing [OPTIONS] KIND NAME\n"
                                     "                    [FILE...]");
    assert_text(help.blocks[4].text, "Exit status: 0 done. Guide: docs/run.md");
}

static void test_rows_name_options_with_values_and_words(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        char letter;
        const char *value;
        const char *text;
    } rows[] = {
        {"namespace", 'n', "NAME", "where it is"},
        {"output", 'o', "text|json", "how it is printed (text)"},
        {"min", 0, "A", "bounds"},
        {"max", 0, "B", "bounds"},
        {"low", 0, "QUANTITY", "more bounds"},
        {"high", 0, "QUANTITY", "more bounds"},
        {"mode", 0, "fast", "how"},
        {"quiet", 0, "", "nothing else"},
    };
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_help help = td_help_read(&arena, help_text);
    assert_int_equal(help.option_count, TD_COUNT(rows) + 1);
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        const struct td_help_option *option = td_help_find(&help, td_str_from(rows[i].name));
        assert_ptr_equal(option, &help.options[i]);
        assert_int_equal(option->letter, rows[i].letter);
        assert_text(option->value, rows[i].value);
        assert_text(option->text, rows[i].text);
    }
    assert_true(help.options[TD_COUNT(rows)].is_word);
    assert_null(td_help_find(&help, TD_STR("FOLDER")));
    assert_null(td_help_find(&help, TD_STR("nothing")));
}

static void test_an_empty_text_has_nothing(void **state)
{
    (void)state;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_help help = td_help_read(&arena, "");
    assert_int_equal(help.summary.len, 0);
    assert_int_equal(help.block_count, 0);
    assert_int_equal(help.option_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_told_by_their_layout),
        cmocka_unit_test(test_rows_name_options_with_values_and_words),
        cmocka_unit_test(test_an_empty_text_has_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
