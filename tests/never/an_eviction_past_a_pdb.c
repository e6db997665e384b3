/*
 * Never: an eviction past a PDB. Pods that the updater wants to evict, under budgets that say no in
 * each way there is, for hours; every pod goes by the eviction API or not at all.
 */
#include "never_bed.h"

#define BUDGET(name, rule)                                                                         \
    "{'metadata':{'name':'" name "'},'spec':{" rule ",'selector':{'matchLabels':{'app':'web'}}}}"

static void pdb_begin(struct never_bed *n, const char *const *budgets)
{
    never_init(n);
    never_deploy(n, "web", 4);
    for (size_t i = 0; budgets[i]; i++) {
        control_bed_create(&n->c, PDBS, budgets[i]);
    }
    control_bed_run(&n->c, TD_MINUTE);
    never_start(n);
    never_vpa(n, "web", NEVER_AT_LEAST("500m"));
}

/* Two hours in which no pod goes, although it is tried. */
static void pdb_holds(const char *const *budgets, void (*before)(struct never_bed *n))
{
    struct never_bed n;
    pdb_begin(&n, budgets);
    n.before_eviction = before;
    struct never_pods first = never_pods(&n);
    assert_int_equal(first.count, 4);
    control_bed_run(&n.c, 2 * TD_HOUR);
    struct never_pods last = never_pods(&n);
    assert_true(n.evictions > 0);
    assert_true(never_same_pods(&first, &last));
    assert_int_equal(n.deletions, 0);
    never_done(&n);
}

static void test_no_pod_may_be_missing(void **state)
{
    (void)state;
    static const char *const budgets[] = {BUDGET("a", "'maxUnavailable':0"), NULL};
    pdb_holds(budgets, NULL);
}

/* The eviction API knows no answer where two budgets apply: then no pod is evicted. */
static void test_two_budgets(void **state)
{
    (void)state;
    static const char *const budgets[] = {BUDGET("a", "'maxUnavailable':1"),
                                          BUDGET("b", "'maxUnavailable':3"), NULL};
    pdb_holds(budgets, NULL);
}

static void pdb_appears(struct never_bed *n)
{
    n->before_eviction = NULL;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_auto_buf body;
    td_buf_init(&body, 4096);
    td_json_write(edit_bed_parse(&n->c.bed, BUDGET("late", "'maxUnavailable':0")),
                  &(struct td_json_format){.indent = 0}, &body);
    assert_int_equal(bed_call(&n->c.bed, "POST", PDBS, td_buf_str(&body).ptr, &answer), 201);
}

/* Decided without a budget, and when the call is made there is one. */
static void test_a_budget_between_decision_and_eviction(void **state)
{
    (void)state;
    static const char *const budgets[] = {NULL};
    pdb_holds(budgets, pdb_appears);
}

/* Without a budget, or with one that lets some go, the same pods do go: never more than it says. */
static void test_within_the_budget(void **state)
{
    (void)state;
    static const struct {
        const char *budgets[2];
        size_t ready_min;
    } rows[] = {{{NULL}, 2}, {{BUDGET("a", "'minAvailable':3"), NULL}, 3}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct never_bed n;
        pdb_begin(&n, rows[i].budgets);
        for (int second = 0; second < 20 * 60; second++) {
            control_bed_run(&n.c, TD_SECOND);
            assert_true(never_pods(&n).ready >= rows[i].ready_min);
        }
        struct never_pods last = never_pods(&n);
        for (size_t p = 0; p < last.count; p++) {
            assert_string_equal(last.cpu[p], "500m");
        }
        assert_int_equal(n.deletions, 0);
        never_done(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_pod_may_be_missing),
        cmocka_unit_test(test_two_budgets),
        cmocka_unit_test(test_a_budget_between_decision_and_eviction),
        cmocka_unit_test(test_within_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
