/* Who depends on whom: the index against a plain table, over many random changes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "local/controllers/gc_index.h"
#include "support/random.h"

#define OBJECTS 40
#define OWNERS 6
#define OWNERS_OF_ONE 3
#define CHANGES 4000

static const char *const uids[OWNERS] = {"a", "b", "c", "d", "e", "f"};

struct model {
    size_t owners[OBJECTS][OWNERS_OF_ONE];
    size_t counts[OBJECTS];
};

static td_str object_name(size_t i)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH";
    return (td_str){.ptr = &digits[i], .len = 1};
}

static void expect_same(const struct td_gc_index *index, const struct model *model)
{
    for (size_t o = 0; o < OWNERS; o++) {
        size_t wanted = 0;
        for (size_t i = 0; i < OBJECTS; i++) {
            for (size_t k = 0; k < model->counts[i]; k++) {
                wanted += model->owners[i][k] == o;
            }
        }
        td_str uid = td_str_from(uids[o]);
        assert_int_equal(td_gc_index_count(index, uid), wanted);
        for (size_t p = 0; p < wanted; p++) {
            const struct td_gc_dependent *d = td_gc_index_at(index, uid, p);
            assert_true(td_str_equal(d->collection, TD_STR("maps")));
            assert_true(td_str_equal(d->ns, TD_STR("ns")));
            assert_int_equal(d->name.len, 1);
        }
        assert_null(td_gc_index_at(index, uid, wanted));
    }
}

/* The same owner may be named twice, owners come and go in any order. */
static void test_index_follows_a_table(void **state)
{
    (void)state;
    struct td_gc_index index;
    struct model model = {.counts = {0}};
    td_gc_index_init(&index);
    for (size_t change = 0; change < CHANGES; change++) {
        size_t i = random_below(OBJECTS);
        td_str owners[OWNERS_OF_ONE];
        model.counts[i] = random_below(OWNERS_OF_ONE + 1);
        for (size_t k = 0; k < model.counts[i]; k++) {
            model.owners[i][k] = random_below(OWNERS);
            owners[k] = td_str_from(uids[model.owners[i][k]]);
        }
        td_gc_index_set(&index, TD_STR("maps"), TD_STR("ns"), object_name(i), owners,
                        model.counts[i]);
        if (change % 16 == 0) {
            expect_same(&index, &model);
        }
    }
    expect_same(&index, &model);
    td_gc_index_done(&index);
}

/* An owner is remembered as gone while it has dependents. */
static void test_gone_owners(void **state)
{
    (void)state;
    struct td_gc_index index;
    const td_str owner = TD_STR("a");
    td_gc_index_init(&index);
    td_gc_index_mark_gone(&index, owner);
    assert_false(td_gc_index_is_gone(&index, owner));
    td_gc_index_set(&index, TD_STR("maps"), TD_STR(""), TD_STR("x"), &owner, 1);
    assert_false(td_gc_index_is_gone(&index, owner));
    td_gc_index_mark_gone(&index, owner);
    assert_true(td_gc_index_is_gone(&index, owner));
    td_gc_index_set(&index, TD_STR("maps"), TD_STR(""), TD_STR("x"), NULL, 0);
    assert_false(td_gc_index_is_gone(&index, owner));
    td_gc_index_done(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_follows_a_table),
        cmocka_unit_test(test_gone_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
