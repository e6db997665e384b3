/* Disjoint selectors against brute force, judgement of siblings, age. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/siblings.h"
#include "kube/names.h"
#include "support/quoted_json.h"

#define ARENA_BYTES ((size_t)1 << 30)
#define RANDOM_PAIRS 20000

static struct td_selector selector_of(struct td_arena *arena, const struct td_json *tree)
{
    struct td_selector selector = {.count = 0};
    struct td_error err = TD_ERROR_INIT;
    if (tree->type != TD_JSON_TYPE_NULL &&
        td_selector_from_json(arena, tree, &selector, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return selector;
}

static void check_witness(const struct td_selector *a, const struct td_selector *b,
                          const struct td_selector_relation *relation)
{
    td_auto_buf text;
    td_buf_init(&text, 1 << 16);
    if (relation->is_disjoint) {
        assert_int_equal(relation->witness.count, 0);
        return;
    }
    assert_true(td_selector_matches(a, &relation->witness));
    assert_true(td_selector_matches(b, &relation->witness));
    for (size_t i = 0; i < relation->witness.count; i++) {
        assert_int_equal(td_name_check_label_value(relation->witness.items[i].value, &text), 0);
        assert_true(i == 0 || td_str_compare(relation->witness.items[i - 1].key,
                                             relation->witness.items[i].key) < 0);
    }
}

/* --- table --- */

struct relate_row {
    const char *own;
    const char *other;
    enum td_selector_case verdict;
    bool is_disjoint;
};

#define ROLE(value) "{'matchLabels':{'role':'" value "'}}"
#define EXPRESSION(key, operation, values)                                                         \
    "{'key':'" key "','operator':'" operation "','values':[" values "]}"
#define EXPRESSIONS(items) "{'matchExpressions':[" items "]}"

/* The proposal's cases and their borders. */
static const struct relate_row relate_rows[] = {
    {"null", ROLE("leader"), TD_SELECTOR_CATCH_ALL, false},
    {ROLE("leader"), "{}", TD_SELECTOR_CATCH_ALL, false},
    {"null", "null", TD_SELECTOR_CATCH_ALL, false},
    {ROLE("leader"), "{'matchLabels':{'env':'prod'}}", TD_SELECTOR_NO_COMMON_KEY, false},
    {ROLE("leader"), ROLE("follower"), TD_SELECTOR_DISJOINT, true},
    {ROLE("leader"), ROLE("leader"), TD_SELECTOR_SATISFIABLE, false},
    {ROLE("leader"), EXPRESSIONS(EXPRESSION("role", "NotIn", "'leader'")), TD_SELECTOR_DISJOINT,
     true},
    {ROLE("leader"), EXPRESSIONS(EXPRESSION("role", "NotIn", "'other'")), TD_SELECTOR_SATISFIABLE,
     false},
    {EXPRESSIONS(EXPRESSION("role", "Exists", "")),
     EXPRESSIONS(EXPRESSION("role", "DoesNotExist", "")), TD_SELECTOR_DISJOINT, true},
    {EXPRESSIONS(EXPRESSION("role", "NotIn", "'x','x0'")),
     EXPRESSIONS(EXPRESSION("role", "Exists", "")), TD_SELECTOR_SATISFIABLE, false},
    {EXPRESSIONS(EXPRESSION("role", "NotIn", "'a'")),
     EXPRESSIONS(EXPRESSION("role", "DoesNotExist", "")), TD_SELECTOR_SATISFIABLE, false},
    {EXPRESSIONS(EXPRESSION("r", "In", "'a','b'") "," EXPRESSION("r", "In", "'b','c'")),
     EXPRESSIONS(EXPRESSION("r", "In", "'a','c'")), TD_SELECTOR_DISJOINT, true},
    {EXPRESSIONS(EXPRESSION("r", "In", "'a'") "," EXPRESSION("r", "NotIn", "'a'")), ROLE("x"),
     TD_SELECTOR_CONTRADICTORY, true},
    {EXPRESSIONS(EXPRESSION("r", "Exists", "") "," EXPRESSION("r", "DoesNotExist", "")), "null",
     TD_SELECTOR_CONTRADICTORY, true},
    {"null", EXPRESSIONS(EXPRESSION("r", "Exists", "") "," EXPRESSION("r", "DoesNotExist", "")),
     TD_SELECTOR_CATCH_ALL, true},
    {"{'matchLabels':{'a':''}}", "{'matchLabels':{'a':''}}", TD_SELECTOR_SATISFIABLE, false},
};

static void test_disjoint_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(relate_rows) / sizeof(relate_rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct relate_row *row = &relate_rows[i];
        struct td_selector own = selector_of(&arena, quoted_json(&arena, row->own));
        struct td_selector other = selector_of(&arena, quoted_json(&arena, row->other));
        struct td_selector_relation got = td_selector_disjoint(&arena, &own, &other);
        if (got.verdict != row->verdict || got.is_disjoint != row->is_disjoint) {
            fail_msg("%s beside %s: verdict %d, disjoint %d", row->own, row->other, got.verdict,
                     got.is_disjoint);
        }
        check_witness(&own, &other, &got);
    }
}

/* --- property --- */

/* Keys and values of the small universe; the last value stands for all that no selector names. */
static const char *const keys[] = {"env", "role", "tier"};
static const char *const values[] = {"", "a", "b", "x", "unnamed"};

enum { KEY_COUNT = 3, NAMED_COUNT = 4, CHOICE_COUNT = 6 };

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void random_expression(struct td_buf *text, uint64_t *seed)
{
    static const char *const operations[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    size_t operation = random_next(seed) % 4;
    (void)td_buf_append_format(text, "{'key':'%s','operator':'%s'",
                               keys[random_next(seed) % KEY_COUNT], operations[operation]);
    if (operation < 2) {
        size_t count = 1 + random_next(seed) % 3;
        (void)td_buf_append(text, TD_STR(",'values':["));
        for (size_t i = 0; i < count; i++) {
            (void)td_buf_append_format(text, "%s'%s'", i > 0 ? "," : "",
                                       values[random_next(seed) % NAMED_COUNT]);
        }
        (void)td_buf_append_char(text, ']');
    }
    (void)td_buf_append_char(text, '}');
}

static struct td_selector random_selector(struct td_arena *arena, uint64_t *seed)
{
    td_auto_buf text;
    td_buf_init(&text, 1 << 16);
    size_t count = random_next(seed) % 4;
    (void)td_buf_append(&text, TD_STR("{"));
    if (random_next(seed) % 3 == 0) {
        (void)td_buf_append_format(&text, "'matchLabels':{'%s':'%s'},",
                                   keys[random_next(seed) % KEY_COUNT],
                                   values[random_next(seed) % NAMED_COUNT]);
    }
    (void)td_buf_append(&text, TD_STR("'matchExpressions':["));
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append(&text, i > 0 ? TD_STR(",") : TD_STR(""));
        random_expression(&text, seed);
    }
    (void)td_buf_append(&text, TD_STR("]}"));
    return selector_of(arena, quoted_json(arena, text.ptr));
}

/* Some label set of the universe that satisfies both: each key is absent or has one of five
 * values. */
static bool brute_overlap(const struct td_selector *a, const struct td_selector *b)
{
    size_t all = 1;
    for (size_t k = 0; k < KEY_COUNT; k++) {
        all *= CHOICE_COUNT;
    }
    for (size_t n = 0; n < all; n++) {
        struct td_label items[KEY_COUNT];
        struct td_labels labels = {.items = items};
        size_t rest = n;
        for (size_t k = 0; k < KEY_COUNT; k++, rest /= CHOICE_COUNT) {
            if (rest % CHOICE_COUNT > 0) {
                items[labels.count++] = (struct td_label){
                    td_str_from(keys[k]), td_str_from(values[rest % CHOICE_COUNT - 1])};
            }
        }
        if (td_selector_matches(a, &labels) && td_selector_matches(b, &labels)) {
            return true;
        }
    }
    return false;
}

/* The exact test agrees with trying every label set, both ways round, and its witness is right. */
static void test_disjoint_agrees_with_brute_force(void **state)
{
    (void)state;
    uint64_t seed = 0x9E3779B97F4A7C15;
    size_t disjoint = 0;
    for (size_t i = 0; i < RANDOM_PAIRS; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_selector a = random_selector(&arena, &seed);
        struct td_selector b = random_selector(&arena, &seed);
        struct td_selector everything = {.count = 0};
        struct td_selector_relation one = td_selector_disjoint(&arena, &a, &b);
        struct td_selector_relation two = td_selector_disjoint(&arena, &b, &a);
        assert_true(one.is_disjoint == !brute_overlap(&a, &b));
        assert_true(two.is_disjoint == one.is_disjoint);
        assert_true(one.is_contradictory == !brute_overlap(&a, &everything));
        assert_true(one.is_other_contradictory == two.is_contradictory);
        check_witness(&a, &b, &one);
        check_witness(&b, &a, &two);
        disjoint += one.is_disjoint;
    }
    assert_in_range(disjoint, RANDOM_PAIRS / 10, RANDOM_PAIRS * 9 / 10);
}

/* Long lists of every kind are compared in a moment. */
static void test_disjoint_of_huge_selectors(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_auto_buf text;
    td_buf_init(&text, (size_t)64 << 20);
    (void)td_buf_append(&text,
                        TD_STR("{'matchExpressions':[{'key':'r','operator':'In','values':["));
    for (size_t i = 0; i < 100000; i++) {
        (void)td_buf_append_format(&text, "%s'v%zu'", i > 0 ? "," : "", i);
    }
    (void)td_buf_append(&text, TD_STR("]}"));
    for (size_t i = 0; i < 100000; i++) {
        (void)td_buf_append_format(&text, ",{'key':'r','operator':'NotIn','values':['v%zu']}", i);
    }
    (void)td_buf_append(&text, TD_STR("]}"));
    struct td_selector selector = selector_of(&arena, quoted_json(&arena, text.ptr));
    struct td_selector_relation got = td_selector_disjoint(&arena, &selector, &selector);
    assert_true(got.is_contradictory);
    assert_int_equal(got.verdict, TD_SELECTOR_CONTRADICTORY);
}

/* Two long lists without a common value, beside many requirements of another kind. */
static void test_disjoint_of_long_lists(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_selector made[2];
    for (size_t s = 0; s < 2; s++) {
        td_auto_buf text;
        td_buf_init(&text, (size_t)64 << 20);
        (void)td_buf_append(&text,
                            TD_STR("{'matchExpressions':[{'key':'r','operator':'In','values':["));
        for (size_t i = 0; i < 50000; i++) {
            (void)td_buf_append_format(&text, "%s'%c%zu'", i > 0 ? "," : "", "ab"[s], i);
        }
        (void)td_buf_append(&text, TD_STR("]}"));
        for (size_t i = 0; i < 50000; i++) {
            (void)td_buf_append_format(&text, ",{'key':'r','operator':'NotIn','values':['c%zu']}",
                                       i);
        }
        (void)td_buf_append(&text, TD_STR("]}"));
        made[s] = selector_of(&arena, quoted_json(&arena, text.ptr));
    }
    struct td_selector_relation got = td_selector_disjoint(&arena, &made[0], &made[1]);
    assert_int_equal(got.verdict, TD_SELECTOR_DISJOINT);
    assert_false(got.is_contradictory || got.is_other_contradictory);
}

/* --- siblings --- */

static struct td_vpa vpa_of(struct td_arena *arena, const char *name, const char *api_version,
                            const char *created, const char *selector)
{
    td_str text = td_arena_format(arena,
                                  "{'metadata':{'name':'%s','namespace':'shop',"
                                  "'creationTimestamp':%s},'spec':{'targetRef':{'apiVersion':'%s',"
                                  "'kind':'StatefulSet','name':'db'},'selector':%s}}",
                                  name, created, api_version, selector);
    struct td_vpa vpa;
    struct td_error err = TD_ERROR_INIT;
    if (td_vpa_decode(arena, quoted_json(arena, text.ptr), &vpa, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return vpa;
}

static bool has_text(td_str text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* The example of the user's guide. */
static void test_overlap_names_witness_and_way_out(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa leader = vpa_of(&arena, "db-leader", "apps/v1", "null",
                                  "{'matchLabels':{'app':'db','role':'leader'}}");
    struct td_vpa all = vpa_of(&arena, "db-all", "apps/v1", "null", "{'matchLabels':{'app':'db'}}");
    const struct td_vpa *existing[] = {&leader};
    const struct td_sibling_request request = {
        .vpa = &all, .existing = existing, .existing_count = 1, .gate = true};
    struct td_sibling_judgement got = td_vpa_judge_siblings(&arena, &request);
    assert_false(got.is_allowed);
    assert_int_equal(got.conflict_count, 1);
    assert_true(
        td_str_equal(got.conflicts[0].reason,
                     TD_STR("both would manage a pod with labels {app=db, role=leader}; add "
                            "a key that tells them apart, e.g. role NotIn (leader)")));
    assert_true(has_text(got.message, "spec.selector: selector overlaps with shop/db-leader: "));
}

/* The three cases of the proposal "selector beside targetRef", and its pair that would fight over
 * the leader: VPA A without a selector beside VPA B with role=leader. */
static void test_proposal_selector_cases(void **state)
{
    (void)state;
    static const struct {
        const char *created;
        const char *existing;
        bool is_allowed;
        const char *message; /* has this part */
    } rows[] = {
        {ROLE("leader"), "null", false, "catch-all"},                     /* case 1 */
        {"null", ROLE("leader"), false, "catch-all"},                     /* case 1 */
        {ROLE("leader"), "{'matchLabels':{'env':'prod'}}", false, "env"}, /* case 2 */
        {ROLE("leader"), ROLE("follower"), true, ""},                     /* case 3 */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_vpa old = vpa_of(&arena, "vpa-existing", "apps/v1", "null", rows[i].existing);
        struct td_vpa new = vpa_of(&arena, "vpa-new", "apps/v1", "null", rows[i].created);
        const struct td_vpa *existing[] = {&old};
        const struct td_sibling_request request = {
            .vpa = &new, .existing = existing, .existing_count = 1, .gate = true};
        struct td_sibling_judgement got = td_vpa_judge_siblings(&arena, &request);
        assert_int_equal(got.is_allowed, rows[i].is_allowed);
        assert_true(rows[i].is_allowed || has_text(got.message, "vpa-existing"));
        assert_true(rows[i].is_allowed || has_text(got.message, rows[i].message));
    }
}

#define ADD "add a key that tells them apart, e.g. "

struct way_row {
    const char *own;
    const char *other;
    const char *expected;
};

/* What is suggested makes the two disjoint. */
static void test_way_out_of_each_operator(void **state)
{
    (void)state;
    static const struct way_row rows[] = {
        /* Added, it would leave nothing to select. */
        {ROLE("a"), ROLE("a"),
         "select something else by a key of both, e.g. role NotIn (a) instead of what it has for "
         "role"},
        {EXPRESSIONS(EXPRESSION("role", "Exists", "")), ROLE("a"), ADD "role NotIn (a)"},
        {ROLE("a"), EXPRESSIONS(EXPRESSION("e", "Exists", "")), ADD "e DoesNotExist"},
        {ROLE("a"), EXPRESSIONS(EXPRESSION("e", "DoesNotExist", "")), ADD "e Exists"},
        {ROLE("a"), EXPRESSIONS(EXPRESSION("e", "NotIn", "'x','y'")), ADD "e In (x, y)"},
        {ROLE("a"), "{'matchLabels':{'role':'a','z':'1'}}", ADD "z NotIn (1)"},
        {ROLE("a"), "null", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_selector own = selector_of(&arena, quoted_json(&arena, rows[i].own));
        struct td_selector other = selector_of(&arena, quoted_json(&arena, rows[i].other));
        td_str got = td_selector_way_out(&arena, &own, &other);
        assert_true(td_str_equal(got, td_str_from(rows[i].expected)));
    }
}

static void test_siblings_are_of_one_group_kind_and_name(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa a = vpa_of(&arena, "a", "apps/v1", "null", "null");
    struct td_vpa b = vpa_of(&arena, "b", "apps/v1beta9", "null", "null");
    struct td_vpa c = vpa_of(&arena, "c", "example.com/v1", "null", "null");
    assert_true(td_vpa_is_sibling(&a, &b));
    assert_false(td_vpa_is_sibling(&a, &c));
    assert_false(td_vpa_is_sibling(&a, &a));
    b.meta.namespace = TD_STR("other");
    assert_false(td_vpa_is_sibling(&a, &b));
    struct td_vpa none = {.meta = {.name = TD_STR("n"), .namespace = TD_STR("shop")}};
    assert_false(td_vpa_is_sibling(&none, &a));
}

/* An update that changes neither selector nor target is not checked; one that does is. */
static void test_unchanged_updates_are_not_checked(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa stored = vpa_of(&arena, "a", "apps/v1", "null", "null");
    struct td_vpa other = vpa_of(&arena, "b", "apps/v1", "null", ROLE("x"));
    struct td_vpa same = vpa_of(&arena, "a", "apps/v2", "null", "{'matchLabels':{}}");
    struct td_vpa changed = vpa_of(&arena, "a", "apps/v1", "null", ROLE("x"));
    const struct td_vpa *existing[] = {&other, &stored};
    struct td_sibling_request request = {
        .vpa = &same, .is_update = true, .existing = existing, .existing_count = 2, .gate = true};
    struct td_sibling_judgement got = td_vpa_judge_siblings(&arena, &request);
    assert_true(got.is_allowed && got.is_unchanged);
    request.vpa = &changed;
    got = td_vpa_judge_siblings(&arena, &request);
    assert_false(got.is_allowed || got.is_unchanged);
    request.gate = false;
    assert_true(td_vpa_judge_siblings(&arena, &request).is_allowed);
}

/* Age is creationTimestamp, then name; the eldest overlapping sibling is named. */
static void test_younger_yields_to_the_eldest(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa old = vpa_of(&arena, "z", "apps/v1", "'2026-01-01T00:00:00Z'", ROLE("x"));
    struct td_vpa middle = vpa_of(&arena, "m", "apps/v1", "'2026-01-02T00:00:00Z'", ROLE("x"));
    struct td_vpa twin = vpa_of(&arena, "a", "apps/v1", "'2026-01-02T00:00:00Z'", ROLE("x"));
    struct td_vpa apart = vpa_of(&arena, "b", "apps/v1", "'2025-01-01T00:00:00Z'", ROLE("y"));
    const struct td_vpa *existing[] = {&middle, &apart, &twin, &old};
    struct td_sibling_conflict conflict;
    assert_true(td_vpa_find_elder(&arena, &middle, existing, 4, &conflict));
    assert_ptr_equal(conflict.sibling, &old);
    assert_true(has_text(conflict.message, "shop/z"));
    assert_true(has_text(conflict.message, "{role=x}"));
    assert_false(td_vpa_find_elder(&arena, &old, existing, 4, &conflict));
    assert_false(td_vpa_find_elder(&arena, &apart, existing, 4, &conflict));
    assert_true(td_vpa_compare_age(&twin, &middle) < 0);
    assert_true(td_vpa_compare_age(&middle, &old) > 0);
    assert_int_equal(td_vpa_compare_age(&old, &old), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disjoint_cases),
        cmocka_unit_test(test_disjoint_agrees_with_brute_force),
        cmocka_unit_test(test_disjoint_of_huge_selectors),
        cmocka_unit_test(test_disjoint_of_long_lists),
        cmocka_unit_test(test_overlap_names_witness_and_way_out),
        cmocka_unit_test(test_proposal_selector_cases),
        cmocka_unit_test(test_way_out_of_each_operator),
        cmocka_unit_test(test_siblings_are_of_one_group_kind_and_name),
        cmocka_unit_test(test_unchanged_updates_are_not_checked),
        cmocka_unit_test(test_younger_yields_to_the_eldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
