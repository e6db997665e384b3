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
static int64_t reported(struct never_bed *n, const char *reason)
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
    assert_int_equal(reported(&n, "ReplacementNotSelected"), 1);
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

static void without_pod_level(struct td_controllers_options *options)
{
    options->gates.pod_level_resources = false;
}

/* Pods of Deployment web with these resources of their own and of their container. */
static void deploy(struct never_bed *n, int replicas, const char *own, const char *resources)
{
    char text[2048];
    (void)snprintf(text, sizeof(text),
                   "{'metadata':{'name':'web'},'spec':{'replicas':%d,'selector':{'matchLabels':{"
                   "'app':'web'}},'template':{'metadata':{'labels':{'app':'web'},'annotations':{"
                   "'usage.tandem.dev/app':'400m,300Mi'}},'spec':{%s'containers':[{'name':'app',"
                   "'image':'nginx','resources':%s}]}}}}",
                   replicas, own, resources);
    control_bed_create(&n->c, DEPLOYMENTS, text);
}

static void check_blocked(struct never_bed *n, const char *says)
{
    struct never_pods before = never_pods(n);
    control_bed_run(&n->c, 20 * TD_MINUTE);
    struct never_pods after = never_pods(n);
    assert_int_equal(n->evictions, 0);
    assert_true(never_same_pods(&before, &after));
    const char *condition = never_condition(n, VPAS "/web", "EvictionBlocked");
    never_assert_begins(condition, "True/ReplacementRefused: 2 pods are not updated: their "
                                   "replacements would be refused: ");
    if (!strstr(condition, says)) {
        fail_msg("'%s' does not say '%s'", condition, says);
    }
    assert_int_equal(reported(n, "ReplacementRefused"), 1);
}

/* The gate is off, so admission sizes containers without a look at the pod's own limits: the API
 * server would refuse the pod that replaces the evicted one. */
static void test_a_pod_that_the_api_would_refuse_is_not_evicted(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    n.configure = without_pod_level;
    deploy(&n, 2, "'resources':{'limits':{'cpu':'500m','memory':'1Gi'}},",
           "{'requests':{'cpu':'100m','memory':'100Mi'}}");
    never_start(&n);
    control_bed_run(&n.c, TD_MINUTE);
    never_vpa(&n, "web", NEVER_AT_LEAST("700m"));
    check_blocked(&n, "spec.resources.requests[cpu]");
    /* What can come back is evicted, and the condition goes. */
    assert_int_equal(
        control_bed_patch(&n.c, VPAS "/web",
                          "{'spec':{'resourcePolicy':{'containerPolicies':[{"
                          "'containerName':'*','maxAllowed':{'cpu':'90m','memory':'90Mi'}}]}}}"),
        200);
    control_bed_run(&n.c, 20 * TD_MINUTE);
    assert_true(n.evictions > 0);
    assert_int_equal(never_pods(&n).ready, 2);
    assert_string_equal(never_condition(&n, VPAS "/web", "EvictionBlocked"), "");
    never_done(&n);
}

/* A LimitRange that came after the pods. */
static void test_a_pod_that_a_limit_range_would_refuse_is_not_evicted(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    deploy(&n, 2, "",
           "{'requests':{'cpu':'100m','memory':'100Mi'},'limits':{'cpu':'400m',"
           "'memory':'400Mi'}}");
    never_start(&n);
    control_bed_run(&n.c, TD_MINUTE);
    control_bed_create(&n.c, "/api/v1/namespaces/default/limitranges",
                       "{'metadata':{'name':'bounds'},'spec':{'limits':[{'type':'Container',"
                       "'maxLimitRequestRatio':{'cpu':'3'}}]}}");
    never_vpa(&n, "web", NEVER_AT_LEAST("700m"));
    check_blocked(&n, "cpu max limit to request ratio per Container is 3, but provided ratio is 4");
    never_done(&n);
}

/* Quotas, as their controller would write them. */
static void test_a_pod_that_a_quota_would_refuse_is_not_evicted(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    deploy(&n, 2, "", "{'requests':{'cpu':'100m','memory':'100Mi'}}");
    never_start(&n);
    control_bed_run(&n.c, TD_MINUTE);
    control_bed_create(&n.c, "/api/v1/namespaces/default/resourcequotas",
                       "{'metadata':{'name':'compute'},'spec':{'hard':{'requests.cpu':'700m'}}}");
    assert_int_equal(control_bed_patch(&n.c,
                                       "/api/v1/namespaces/default/resourcequotas/compute/status",
                                       "{'status':{'hard':{'requests.cpu':'700m'},'used':{"
                                       "'requests.cpu':'200m'}}}"),
                     200);
    never_vpa(&n, "web", NEVER_AT_LEAST("700m"));
    check_blocked(&n, "exceeded quota: compute, requested: requests.cpu=700m, used: "
                      "requests.cpu=100m, limited: requests.cpu=700m");
    never_done(&n);
}

/* Refuses pods from the first eviction on, for a reason that cannot be foreseen. */
static void refuse_pods(struct never_bed *n)
{
    if (n->evictions == 1) {
        control_bed_create(&n->c, "/api/v1/namespaces/default/limitranges",
                           "{'metadata':{'name':'late'},'spec':{'limits':[{'type':'Pod','max':{"
                           "'cpu':'1m'}}]}}");
    }
}

/* The replacement is refused all the same: its siblings are left alone. */
static void test_siblings_of_a_refused_replacement_are_left_alone(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    never_deploy(&n, "web", 8);
    never_start(&n);
    control_bed_run(&n.c, TD_MINUTE);
    n.before_eviction = refuse_pods;
    never_vpa(&n, "web", NEVER_AT_LEAST("700m"));
    control_bed_run(&n.c, 20 * TD_MINUTE);
    assert_int_equal(n.evictions, 1);
    assert_int_equal(never_pods(&n).ready, 7);
    never_assert_begins(
        never_condition(&n, VPAS "/web", "EvictionBlocked"),
        "True/ReplacementRefused: 7 pods are not updated: their replacements would be refused: ");
    n.before_eviction = NULL;
    assert_int_equal(control_bed_delete(&n.c, "/api/v1/namespaces/default/limitranges/late"), 200);
    control_bed_run(&n.c, 40 * TD_MINUTE);
    assert_int_equal(never_pods(&n).ready, 8);
    assert_string_equal(never_pods(&n).cpu[0], "700m");
    assert_string_equal(never_condition(&n, VPAS "/web", "EvictionBlocked"), "");
    never_done(&n);
}

/* Limits keep the proportion of the template, resize after resize. */
static void test_resizes_keep_the_proportion_of_the_template(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    deploy(&n, 2, "",
           "{'requests':{'cpu':'100m','memory':'400Mi'},'limits':{'cpu':'125m',"
           "'memory':'500Mi'}}");
    never_start(&n);
    never_vpa(&n, "web", "");
    assert_int_equal(
        control_bed_patch(&n.c, VPAS "/web",
                          "{'spec':{'updatePolicy':{'updateMode':'InPlaceOrRecreate'}}}"),
        200);
    static const int sizes[] = {13, 50, 11, 70, 13, 90, 7, 30, 3, 60};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char patch[256];
        (void)snprintf(patch, sizeof(patch),
                       "{'spec':{'resourcePolicy':{'containerPolicies':[{'containerName':'*',"
                       "'minAllowed':{'cpu':'%dm'},'maxAllowed':{'cpu':'%dm'}}]}}}",
                       sizes[i], sizes[i]);
        assert_int_equal(control_bed_patch(&n.c, VPAS "/web", patch), 200);
        control_bed_run(&n.c, 5 * TD_MINUTE);
        const struct td_json *items =
            td_json_get(control_bed_get(&n.c, PODS "?labelSelector=app%3Dweb"), TD_STR("items"));
        const struct td_json *resources =
            td_json_get(td_json_at(td_json_get_path(td_json_at(items, 0), "spec.containers"), 0),
                        TD_STR("resources"));
        char wanted[32];
        (void)snprintf(wanted, sizeof(wanted), "%dm", sizes[i] * 125 / 100);
        td_str limit =
            td_json_get_str(td_json_get(resources, TD_STR("limits")), TD_STR("cpu"), TD_STR_EMPTY);
        assert_string_equal(td_arena_copy_str(&n.c.bed.arena, limit).ptr, wanted);
    }
    assert_int_equal(n.evictions, 0);
    never_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pod_that_has_its_role_from_an_election_is_not_evicted),
        cmocka_unit_test(test_a_pod_that_the_api_would_refuse_is_not_evicted),
        cmocka_unit_test(test_a_pod_that_a_limit_range_would_refuse_is_not_evicted),
        cmocka_unit_test(test_a_pod_that_a_quota_would_refuse_is_not_evicted),
        cmocka_unit_test(test_siblings_of_a_refused_replacement_are_left_alone),
        cmocka_unit_test(test_resizes_keep_the_proportion_of_the_template),
    };
    return cmocka_run_group_tests_name("control/update_replacement", tests, NULL, NULL);
}
