/*
 * The arena in its ordinary mode, whatever mode the library was built in; test_arena_debug.c runs
 * the same cases in the other. For that the module is compiled into the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifndef ARENA_TEST_DEBUG
#define ARENA_TEST_DEBUG 0
#endif
#undef TD_ARENA_DEBUG
#define TD_ARENA_DEBUG ARENA_TEST_DEBUG

#include "base/arena.c"

static void take(struct td_arena *arena, size_t size)
{
    memset(td_arena_alloc(arena, size), 'x', size);
}

/* Pieces of all sizes are aligned, do not overlap and keep what was written. */
static void test_arena_pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    static unsigned char *pieces[2000];
    for (int turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < 2000; i++) {
            size_t size = i % 500 == 499 ? 2000000 : (i * 37) % 301;
            pieces[i] = td_arena_alloc(&arena, size);
            assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
            memset(pieces[i], (int)(i & 0xff), size);
        }
        for (size_t i = 0; i < 2000; i++) {
            size_t size = i % 500 == 499 ? 2000000 : (i * 37) % 301;
            for (size_t j = 0; j < size; j += 1 + size / 64) {
                assert_int_equal(pieces[i][j], i & 0xff);
            }
        }
        td_arena_reset(&arena);
        assert_int_equal(arena.used_bytes, 0);
    }
}

/* A growing array keeps its items wherever it moves, is zero behind them and doubles only when it
 * is full, so that its copies cost a constant for each item. */
static void test_arena_growing_array_keeps_its_items(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    uint32_t *items = NULL;
    size_t cap = 0;
    size_t moves = 0;
    for (uint32_t count = 0; count < 5000; count++) {
        size_t before = cap;
        items = td_arena_grow(&arena, items, count, &cap, sizeof(*items));
        assert_true(cap > count);
        assert_true(cap == before || count == before);
        moves += cap != before;
        for (size_t i = count; cap != before && i < cap; i++) {
            assert_int_equal(items[i], 0);
        }
        items[count] = count + 1;
    }
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(items[i], i + 1);
    }
    assert_true(moves < 16);
}

/* Zeroed pieces are zero also where memory of the last turn is used again. */
static void test_arena_zero_is_zero_after_reset(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    memset(td_arena_alloc(&arena, 3000), 0xff, 3000);
    td_arena_reset(&arena);
    unsigned char *piece = td_arena_array(&arena, unsigned char, 3000);
    for (size_t i = 0; i < 3000; i++) {
        assert_int_equal(piece[i], 0);
    }
    assert_non_null(td_arena_alloc(&arena, 0));
    assert_non_null(td_arena_alloc_zero(&arena, 0, 8));
    assert_null(*td_arena_new(&arena, void *));
}

/* Copies and formatted texts are terminated, and copies are copies. */
static void test_arena_texts_are_terminated_copies(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    char source[] = "name";
    td_str copy = td_arena_copy_str(&arena, td_str_from(source));
    source[0] = 'X';
    assert_string_equal(copy.ptr, "name");
    assert_int_equal(copy.len, 4);
    assert_string_equal(td_arena_copy_str(&arena, (td_str){.ptr = NULL, .len = 0}).ptr, "");
    td_str text = td_arena_format(&arena, "%s/%05d", "ns", 42);
    assert_string_equal(text.ptr, "ns/00042");
    assert_int_equal(text.len, 8);
    td_str wide = td_arena_format(&arena, "%*d", 100000, 1);
    assert_int_equal(wide.len, 100000);
    assert_int_equal(wide.ptr[100000], '\0');
}

/* A formatted text is whole below, at and above what is formatted at once. */
static void test_arena_formats_texts_of_any_length(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    for (int len = ARENA_FORMAT_BYTES - 2; len <= ARENA_FORMAT_BYTES + 2; len++) {
        td_str text = td_arena_format(&arena, "%0*d", len, 7);
        assert_int_equal(text.len, len);
        assert_int_equal(strlen(text.ptr), len);
        assert_int_equal(text.ptr[len - 1], '7');
    }
}

/* Whole numbers are written as printf writes them, ends of the range too. */
static void test_arena_int64_is_decimal(void **state)
{
    (void)state;
    const int64_t values[] = {0, 7, -1, 10, -10, 1234567890123, INT64_MAX, INT64_MIN};
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        char expected[32];
        (void)snprintf(expected, sizeof(expected), "%lld", (long long)values[i]);
        assert_string_equal(td_arena_int64(&arena, values[i]).ptr, expected);
    }
}

/* The cap is soft: it is reported by the check, from the first byte past it until the reset. */
static void test_arena_check_reports_the_cap(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 64);
    struct td_error err = TD_ERROR_INIT;
    take(&arena, 64);
    assert_int_equal(td_arena_check(&arena, &err), TD_OK);
    assert_int_equal(err.code, TD_OK);
    take(&arena, 1);
    assert_int_equal(td_arena_check(&arena, &err), TD_LIMIT);
    assert_string_equal(err.message, "needs more than 64 bytes of memory");
    td_arena_reset(&arena);
    assert_int_equal(td_arena_check(&arena, NULL), TD_OK);
}

/* One huge turn, of one piece or of many, does not pin its memory; an ordinary block is kept. */
static void test_arena_reset_gives_huge_blocks_back(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    td_arena_reset(&arena);
    take(&arena, (size_t)5 << 20);
    td_arena_reset(&arena);
    assert_null(arena.blocks);
    for (size_t i = 0; i < 5000; i++) {
        take(&arena, 1000);
        take(&arena, i == 2500 ? (size_t)5 << 20 : 1);
    }
    td_arena_reset(&arena);
    if (TD_ARENA_DEBUG) {
        assert_null(arena.blocks);
    } else {
        assert_non_null(arena.blocks);
        assert_null(arena.blocks->next);
        assert_int_equal(arena.blocks->size, ARENA_BLOCK_MAX);
    }
    td_arena_done(&arena);
    td_arena_done(&arena);
    assert_null(arena.blocks);
}

/* A large piece does not throw away the room that is left in the block being filled. */
static void test_arena_large_piece_leaves_room_in_use(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    char *first = td_arena_alloc(&arena, 16);
    take(&arena, 100000);
    char *second = td_arena_alloc(&arena, 16);
    if (!TD_ARENA_DEBUG) {
        assert_ptr_equal(second, first + 16);
    }
}

/* What was measured in one arena fits into another that is made for it, in one block; and more than
 * that fits too. */
static void test_arena_exact_holds_what_was_measured(void **state)
{
    (void)state;
    td_auto_arena measured;
    td_arena_init(&measured, SIZE_MAX);
    for (size_t i = 1; i < 50; i++) {
        take(&measured, i);
    }
    td_auto_arena exact;
    td_arena_init_exact(&exact, measured.used_bytes, SIZE_MAX);
    for (size_t i = 1; i < 50; i++) {
        take(&exact, i);
    }
    assert_int_equal(exact.used_bytes, measured.used_bytes);
    assert_true(ARENA_TEST_DEBUG || (!exact.blocks->next && exact.at == exact.end));
    take(&exact, 10000);
    td_arena_reset(&exact);
    assert_int_equal(exact.used_bytes, 0);
    td_auto_arena empty;
    td_arena_init_exact(&empty, 0, SIZE_MAX);
    take(&empty, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_pieces_are_aligned_and_apart),
        cmocka_unit_test(test_arena_growing_array_keeps_its_items),
        cmocka_unit_test(test_arena_zero_is_zero_after_reset),
        cmocka_unit_test(test_arena_texts_are_terminated_copies),
        cmocka_unit_test(test_arena_formats_texts_of_any_length),
        cmocka_unit_test(test_arena_int64_is_decimal),
        cmocka_unit_test(test_arena_check_reports_the_cap),
        cmocka_unit_test(test_arena_reset_gives_huge_blocks_back),
        cmocka_unit_test(test_arena_large_piece_leaves_room_in_use),
        cmocka_unit_test(test_arena_exact_holds_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
