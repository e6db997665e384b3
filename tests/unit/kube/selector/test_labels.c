/* Label sets: order, repeats and look-ups, against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/selector/labels.h"
#include "support/random.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define ROUNDS 300
#define PAIRS_MAX 40
#define MANY_PAIRS 200000

static void assert_is_set(const struct td_labels *labels)
{
    for (size_t i = 1; i < labels->count; i++) {
        assert_true(td_str_compare(labels->items[i - 1].key, labels->items[i].key) < 0);
    }
}

/* No pairs, no object and an object of nothing are the empty set, and it has no labels. */
static void test_labels_empty_set_has_nothing(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = td_json_new_object(&arena);
    struct td_labels sets[] = {
        td_labels_from_pairs(&arena, NULL, 0),
        td_labels_from_json(&arena, NULL),
        td_labels_from_json(&arena, td_json_new_null(&arena)),
        td_labels_from_json(&arena, td_json_new_array(&arena)),
        td_labels_from_json(&arena, object),
    };
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        assert_int_equal(sets[i].count, 0);
        assert_null(td_labels_get(&sets[i], TD_STR("")));
        assert_true(td_labels_equal(&sets[i], &sets[0]));
    }
}

/* Whatever order pairs come in, the set is sorted and the last value of a key wins. */
static void test_labels_last_of_repeated_keys_wins(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t round = 0; round < ROUNDS; round++) {
        struct td_label pairs[PAIRS_MAX];
        size_t count = random_below(PAIRS_MAX + 1);
        for (size_t i = 0; i < count; i++) {
            pairs[i].key = td_arena_format(&arena, "k%zu", random_below(25));
            pairs[i].value = td_arena_format(&arena, "%zu", i);
        }
        struct td_labels labels = td_labels_from_pairs(&arena, pairs, count);
        assert_is_set(&labels);
        size_t distinct = 0;
        for (size_t i = 0; i < count; i++) {
            size_t last = i;
            for (size_t j = i + 1; j < count; j++) {
                last = td_str_equal(pairs[i].key, pairs[j].key) ? j : last;
            }
            const td_str *value = td_labels_get(&labels, pairs[i].key);
            assert_non_null(value);
            assert_true(td_str_equal(*value, pairs[last].value));
            distinct += last == i;
        }
        assert_int_equal(labels.count, distinct);
        assert_null(td_labels_get(&labels, TD_STR("k")));
        assert_null(td_labels_get(&labels, TD_STR("z")));
        td_arena_reset(&arena);
    }
}

/* The set keeps its own items: the caller's pairs may change afterwards. */
static void test_labels_do_not_alias_the_pairs(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_label pairs[] = {{TD_STR("a"), TD_STR("1")}, {TD_STR("b"), TD_STR("2")}};
    struct td_labels labels = td_labels_from_pairs(&arena, pairs, 2);
    pairs[0].value = TD_STR("changed");
    assert_true(td_str_equal(*td_labels_get(&labels, TD_STR("a")), TD_STR("1")));
}

/* A very large map of few keys is handled in n log n: this would take minutes otherwise. */
static void test_labels_many_repeats_stay_fast(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_label *pairs = td_arena_array(&arena, struct td_label, MANY_PAIRS);
    for (size_t i = 0; i < MANY_PAIRS; i++) {
        pairs[i].key = td_arena_format(&arena, "%zu", random_below(MANY_PAIRS));
        pairs[i].value = TD_STR("x");
    }
    struct td_labels labels = td_labels_from_pairs(&arena, pairs, MANY_PAIRS);
    assert_is_set(&labels);
    assert_true(labels.count > MANY_PAIRS / 2);
}

/* Members that are no strings are left out, in any order of the object. */
static void test_labels_from_json_takes_strings_only(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = td_json_new_object(&arena);
    td_json_set(&arena, object, TD_STR("z"), td_json_new_string(&arena, TD_STR("last")));
    td_json_set(&arena, object, TD_STR("m"), td_json_new_int64(&arena, 1));
    td_json_set(&arena, object, TD_STR("n"), td_json_new_null(&arena));
    td_json_set(&arena, object, TD_STR("a"), td_json_new_string(&arena, TD_STR("")));
    struct td_labels labels = td_labels_from_json(&arena, object);
    struct td_label expected[] = {{TD_STR("a"), TD_STR("")}, {TD_STR("z"), TD_STR("last")}};
    struct td_labels same = td_labels_from_pairs(&arena, expected, 2);
    assert_true(td_labels_equal(&labels, &same));
}

/* Sets differ by count, by key and by value. */
static void test_labels_equal_compares_everything(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_label rows[][2] = {
        {{TD_STR("a"), TD_STR("1")}, {TD_STR("b"), TD_STR("2")}},
        {{TD_STR("a"), TD_STR("1")}, {TD_STR("c"), TD_STR("2")}},
        {{TD_STR("a"), TD_STR("1")}, {TD_STR("b"), TD_STR("3")}},
    };
    struct td_labels base = td_labels_from_pairs(&arena, rows[0], 2);
    struct td_labels shorter = td_labels_from_pairs(&arena, rows[0], 1);
    assert_true(td_labels_equal(&base, &base));
    assert_false(td_labels_equal(&base, &shorter));
    for (size_t i = 1; i < 3; i++) {
        struct td_labels other = td_labels_from_pairs(&arena, rows[i], 2);
        assert_false(td_labels_equal(&base, &other));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_empty_set_has_nothing),
        cmocka_unit_test(test_labels_last_of_repeated_keys_wins),
        cmocka_unit_test(test_labels_do_not_alias_the_pairs),
        cmocka_unit_test(test_labels_many_repeats_stay_fast),
        cmocka_unit_test(test_labels_from_json_takes_strings_only),
        cmocka_unit_test(test_labels_equal_compares_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
