/* Tables for terminals of any width: alignment, columns that are dropped, sentences that are cut,
 * notes that are folded, and ASCII. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/os/table.h"

static void check(const char *text, const struct td_table_options *options, const char *expected)
{
    td_auto_buf out = td_buf_capped(1 << 16);
    td_table_write(td_str_from(text), options, &out);
    assert_false(out.is_full);
    assert_string_equal(td_buf_str(&out).ptr, expected);
}

static const char rows[] =
    "NAME\tPODS\tWHY\nweb\t12\tload went up, a lot\nworker\t3\t\nin all: 15 pods\n";

/* Without a terminal nothing is dropped or cut, and no line ends in spaces. */
static void test_table_of_any_width(void **state)
{
    (void)state;
    check(rows, &(struct td_table_options){.has_utf8 = true, .right = 2},
          " NAME    PODS  WHY\n"
          " web       12  load went up, a lot\n"
          " worker     3\n"
          "in all: 15 pods\n");
}

/* Columns that do not fit go from the right and are named; notes are folded at words. */
static void test_table_drops_columns(void **state)
{
    (void)state;
    check(rows, &(struct td_table_options){.has_utf8 = true, .right = 2, .width = 20},
          " NAME    PODS\n"
          " web       12\n"
          " worker     3\n"
          "a wider terminal\n"
          "also shows: WHY\n"
          "in all: 15 pods\n");
    check(rows, &(struct td_table_options){.has_utf8 = true, .width = 5},
          " NAME\n web\n wor\u2026\n"
          "a\nwider\nterminal\nalso\nshows:\nPODS,\nWHY\n"
          "in\nall:\n15\npods\n");
}

/* A last column of sentences is cut at a word while some of it fits. */
static void test_table_cuts_sentences(void **state)
{
    (void)state;
    check(rows, &(struct td_table_options){.has_utf8 = true, .width = 31, .has_sentences = true},
          " NAME    PODS  WHY\n"
          " web     12    load went up, a\u2026\n"
          " worker  3\n"
          "in all: 15 pods\n");
}

/* Widths are those of what is printed: an arrow takes two columns in ASCII. */
static void test_table_in_ascii(void **state)
{
    (void)state;
    check("A \u2192 B\tC\n1 \u2192 2\tx\nnone\ty\ntotal \u2264 3\n",
          &(struct td_table_options){.width = 0},
          " A -> B  C\n"
          " 1 -> 2  x\n"
          " none    y\n"
          "total <= 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_of_any_width),
        cmocka_unit_test(test_table_drops_columns),
        cmocka_unit_test(test_table_cuts_sentences),
        cmocka_unit_test(test_table_in_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
