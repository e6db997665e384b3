/* Objects of one size: each its own place, zeroed, and places are used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "local/engine/slab.h"

#define COUNT 20000 /* of several chunks, small and large */

struct item {
    uint64_t number;
    char more[200];
};

static void test_objects_are_apart_and_zeroed(void **state)
{
    (void)state;
    static struct item *items[COUNT];
    static const struct item zero;
    struct td_slab slab;
    td_slab_init(&slab, sizeof(struct item));
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            items[i] = td_slab_take(&slab);
            assert_memory_equal(items[i], &zero, sizeof(zero));
            memset(items[i], 0xff, sizeof(*items[i]));
            items[i]->number = i;
        }
        for (size_t i = 0; i < COUNT; i++) {
            assert_int_equal(items[i]->number, i);
        }
        size_t chunks = slab.chunk_count;
        for (size_t i = 0; i < COUNT; i += 2) {
            td_slab_give(&slab, items[i]);
        }
        for (size_t i = 0; i < COUNT; i += 2) {
            items[i] = td_slab_take(&slab);
            assert_memory_equal(items[i], &zero, sizeof(zero));
        }
        assert_int_equal(slab.chunk_count, chunks); /* nothing more was needed */
        for (size_t i = 0; i < COUNT; i++) {
            td_slab_give(&slab, items[i]);
        }
    }
    td_slab_give(&slab, NULL);
    td_slab_done(&slab);
    td_slab_done(&slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_objects_are_apart_and_zeroed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
