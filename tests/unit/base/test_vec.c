/* The typed array: growth, maximum, removal in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/vec.h"

struct item {
    int number;
    char padding[37];
};

struct items {
    TD_VEC_FIELDS(struct item);
};

/* Pushed items are zeroed, stay where they were pushed, and stop at the maximum. */
static void test_vec_push_grows_to_its_maximum(void **state)
{
    (void)state;
    static const size_t maxima[] = {0, 1, 7, 8, 9, 1000};
    for (size_t m = 0; m < sizeof(maxima) / sizeof(maxima[0]); m++) {
        struct items items = TD_VEC_INIT(maxima[m]);
        for (size_t i = 0; i < maxima[m]; i++) {
            struct item *item = td_vec_push(&items);
            assert_non_null(item);
            assert_int_equal(item->number, 0);
            memset(item, 0xff, sizeof(*item));
            item->number = (int)i;
        }
        assert_null(td_vec_push(&items));
        assert_int_equal(items.count, maxima[m]);
        assert_in_range(items.cap, maxima[m], maxima[m]);
        for (size_t i = 0; i < items.count; i++) {
            assert_int_equal(items.items[i].number, i);
        }
        td_vec_reset(&items);
        assert_int_equal(items.count, 0);
        if (maxima[m] > 0) {
            assert_int_equal(td_vec_push(&items)->number, 0); /* zeroed again */
        }
        td_vec_done(&items);
        assert_null(items.items);
        assert_int_equal(items.cap, 0);
    }
}

/* Removing the first, a middle and the last keeps the order of the others. */
static void test_vec_remove_keeps_order(void **state)
{
    (void)state;
    struct items items = TD_VEC_INIT(10);
    for (int i = 0; i < 5; i++) {
        td_vec_push(&items)->number = i;
    }
    td_vec_remove(&items, 0);
    td_vec_remove(&items, 1);
    td_vec_remove(&items, items.count - 1);
    assert_int_equal(items.count, 2);
    assert_int_equal(items.items[0].number, 1);
    assert_int_equal(items.items[1].number, 3);
    td_vec_remove(&items, 0);
    td_vec_remove(&items, 0);
    assert_int_equal(items.count, 0);
    td_vec_done(&items);
    td_vec_done(&items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vec_push_grows_to_its_maximum),
        cmocka_unit_test(test_vec_remove_keeps_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
