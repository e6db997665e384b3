/*
 * Never: two VPAs fighting over one pod. Overlaps that came past the webhook (it was not there when
 * they were made), and others who would size or scale the same pods: one acts, the other says why
 * it does not, and nothing goes to and fro.
 */
#include "never_bed.h"

#define OWN_HPAS "/apis/autoscaling.tandem.dev/v2/namespaces/default/horizontalpodautoscalers"
#define HPAS "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"

static void fight_assert_sizes(struct never_bed *n, const char *cpu)
{
    struct never_pods pods = never_pods(n);
    assert_int_equal(pods.count, 4);
    for (size_t i = 0; i < pods.count; i++) {
        assert_string_equal(pods.cpu[i], cpu);
    }
}

/* Each pod is evicted at most once: then there is peace for hours. */
static void fight_assert_peace(struct never_bed *n)
{
    assert_true(n->evictions > 0);
    assert_true(n->evictions <= 4);
    struct never_pods before = never_pods(n);
    control_bed_run(&n->c, 3 * TD_HOUR);
    struct never_pods after = never_pods(n);
    assert_true(never_same_pods(&before, &after));
    assert_int_equal(n->deletions, 0);
}

/* The elder wants 500m, the younger 2 whole ones; by no selector, by one that overlaps, by one and
 * the same. */
static void test_the_younger_never_acts(void **state)
{
    (void)state;
    static const char *const selectors[][2] = {
        {"", ""},
        {"", ",'selector':{'matchLabels':{'app':'web'}}"},
        {",'selector':{'matchExpressions':[{'key':'app','operator':'Exists'}]}",
         ",'selector':{'matchLabels':{'app':'web'}}"},
    };
    for (size_t i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++) {
        struct never_bed n;
        char rest[512];
        never_init(&n);
        never_deploy(&n, "web", 4);
        (void)snprintf(rest, sizeof(rest), "%s%s", selectors[i][0], NEVER_AT_LEAST("500m"));
        never_vpa(&n, "elder", rest);
        control_bed_run(&n.c, 2 * TD_SECOND);
        (void)snprintf(rest, sizeof(rest), "%s%s", selectors[i][1], NEVER_AT_LEAST("2"));
        never_vpa(&n, "a-younger", rest);
        never_start(&n);
        control_bed_run(&n.c, 20 * TD_MINUTE);
        never_assert_begins(never_condition(&n, VPAS "/a-younger", "ConflictingSelector"), "True/");
        assert_string_equal(never_condition(&n, VPAS "/elder", "ConflictingSelector"), "");
        fight_assert_sizes(&n, "500m");
        fight_assert_peace(&n);
        never_done(&n);
    }
}

/* An Hvpa whose target has a VPA that acts decides nothing, and says so. */
static void test_a_vpa_and_an_hvpa(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    never_deploy(&n, "web", 4);
    never_vpa(&n, "web", NEVER_AT_LEAST("500m"));
    control_bed_run(&n.c, 2 * TD_SECOND);
    control_bed_create(
        &n.c, HVPAS,
        "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'web'},'spec'"
        ":{'mode':'VPABiased','targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"
        ",'vpaSpec':{'resourcePolicy':{'containerPolicies':[{'containerName':'*','minAllowed':{"
        "'cpu':'2'}}]}},'hpaSpec':{'minReplicas':6,'maxReplicas':8,'metrics':[{'type':'Resource',"
        "'resource':{'name':'cpu','target':{'type':'Utilization','averageUtilization':50}}}]}}}");
    never_start(&n);
    control_bed_run(&n.c, 20 * TD_MINUTE);
    never_assert_begins(never_condition(&n, HVPAS "/web", "Ready"), "False/TargetConflict");
    fight_assert_sizes(&n, "500m");
    fight_assert_peace(&n);
    assert_int_equal(n.scalings, 0);
    never_done(&n);
}

static void fight_hpa(struct never_bed *n, const char *collection, const char *version,
                      int replicas)
{
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'%s','kind':'HorizontalPodAutoscaler','metadata':{'name':'web'},"
                   "'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':"
                   "'web'},'minReplicas':%d,'maxReplicas':%d,'metrics':[{'type':'Resource',"
                   "'resource':{'name':'cpu','target':{'type':'Utilization','averageUtilization':"
                   "50}}}]}}",
                   version, replicas, replicas);
    control_bed_create(&n->c, collection, text);
}

/* An HPA of each group, and they want different numbers: the built-in one has it. */
static void test_hpas_of_both_groups(void **state)
{
    (void)state;
    struct never_bed n;
    never_init(&n);
    never_deploy(&n, "web", 4);
    fight_hpa(&n, OWN_HPAS, "autoscaling.tandem.dev/v2", 7);
    control_bed_run(&n.c, 2 * TD_SECOND);
    fight_hpa(&n, HPAS, "autoscaling/v2", 3);
    never_start(&n);
    control_bed_run(&n.c, 20 * TD_MINUTE);
    assert_int_equal(never_pods(&n).count, 3);
    assert_int_equal(n.scalings, 1);
    never_assert_begins(never_condition(&n, OWN_HPAS "/web", "AbleToScale"),
                        "False/TargetConflict");
    never_assert_begins(never_condition(&n, HPAS "/web", "AbleToScale"), "True/");
    control_bed_run(&n.c, 3 * TD_HOUR);
    assert_int_equal(n.scalings, 1);
    assert_int_equal(never_pods(&n).count, 3);
    never_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_younger_never_acts),
        cmocka_unit_test(test_a_vpa_and_an_hvpa),
        cmocka_unit_test(test_hpas_of_both_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
