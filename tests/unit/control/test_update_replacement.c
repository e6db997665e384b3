/*
 * What the updater does not evict on a local cluster with all controllers and the webhook at work:
 * pods whose replacement would not be of the same VPA, or would be refused.
 */
#include "never/never_bed.h"

/* One pod of Deployment web gets a role, as an election gives it. */
static td_str elect(struct never_bed *n)
{
    const struct td_json *items =
        td_json_get(control_bed_get(&n->c, PODS "?labelSelector=app%3Dweb"), TD_STR("items"));
    td_str name = td_json_get_str(td_json_get(td_json_at(items, 0), TD_STR("metadata")),
                                  TD_STR("name"), TD_STR_EMPTY);
    td_str path = td_arena_format(&n->c.bed.arena, PODS "/%.*s", TD_STR_ARG(name));
    assert_int_equal(
        control_bed_patch(&n->c, path.ptr, "{'metadata':{'labels':{'role':'leader'}}}"), 200);
    return path;
}

/* How often a reason was told of VPAs. */
static int64_t told(struct never_bed *n, const char *reason)
{
    const struct td_json *list = control_bed_get(&n->c, "/api/v1/namespaces/default/events");
    int64_t count = 0;
    for (const struct td_json *e = td_json_first_item(td_json_get(list, TD_STR("items"))); e;
         e = e->next) {
        const struct td_json *about = td_json_get(e, TD_STR("involvedObject"));
        bool is_it =
            td_str_equal(td_json_get_str(e, TD_STR("reason"), TD_STR_EMPTY), td_str_from(reason)) &&
            td_str_equal(td_json_get_str(about, TD_STR("kind"), TD_STR_EMPTY),
                         TD_STR("VerticalPodAutoscaler"));
        count += is_it ? td_json_get_int64(e, TD_STR("count"), 1) : 0;
    }
    return count;
}

static td_str cpu_of(struct never_bed *n, td_str pod)
{
    const struct td_json *tree = control_bed_get(&n->c, pod.ptr);
    const struct td_json *container = td_json_at(td_json_get_path(tree, "spec.containers"), 0);
    return td_json_get_str(td_json_get_path(container, "resources.requests"), TD_STR("cpu"),
                           TD_STR_EMPTY);
}

#define LEADER ",'selector':{'matchLabels':{'role':'leader'}}"

/* A role is lost with its pod: the replacement would be another VPA's, or none's. */
static void test_a_pod_that_has_its_role_from_an_election_is_not_evicted(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    never_deploy(&n, "web", 3);
    never_start(&n);
    control_bed_run(&n.c, TD_MINUTE);
    td_str leader = elect(&n);
    never_vpa(&n, "leader", LEADER NEVER_AT_LEAST("700m"));
    struct never_pods before = never_pods(&n);
    control_bed_run(&n.c, 30 * TD_MINUTE);
    struct never_pods after = never_pods(&n);
    assert_int_equal(n.evictions, 0);
    assert_true(never_same_pods(&before, &after));
    never_assert_begins(never_condition(&n, VPAS "/leader", "EvictionBlocked"),
                        "True/ReplacementNotSelected: 1 pod is not updated: ");
    assert_int_equal(told(&n, "ReplacementNotSelected"), 1);
    /* Where the mode lets it, it is resized, and the condition goes. */
    assert_int_equal(
        control_bed_patch(&n.c, VPAS "/leader",
                          "{'spec':{'updatePolicy':{'updateMode':'InPlaceOrRecreate'}}}"),
        200);
    control_bed_run(&n.c, 10 * TD_MINUTE);
    assert_int_equal(n.evictions, 0);
    assert_true(td_str_equal(cpu_of(&n, leader), TD_STR("700m")));
    assert_string_equal(never_condition(&n, VPAS "/leader", "EvictionBlocked"), "");
    never_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pod_that_has_its_role_from_an_election_is_not_evicted),
    };
    return cmocka_run_group_tests_name("control/update_replacement", tests, NULL, NULL);
}
