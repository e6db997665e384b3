/*
 * Explain and recommend with less than the whole: the rights of one namespace, kinds that may not
 * be listed, and clusters without our kinds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/explain_bed.h"

#define ROLES "/apis/rbac.authorization.k8s.io/v1" NAMESPACE "roles"
#define BINDINGS "/apis/rbac.authorization.k8s.io/v1" NAMESPACE "rolebindings"
#define READS(group, resources)                                                                    \
    "{'apiGroups':['" group "'],'resources':[" resources "],'verbs':['get','list','watch']}"
#define WORKLOADS                                                                                  \
    READS("", "'pods','replicationcontrollers'")                                                   \
    "," READS("apps", "'deployments','replicasets','statefulsets','daemonsets'") "," READS(        \
        "batch", "'jobs','cronjobs'") "," READS("metrics.k8s.io", "'pods'")
#define SCALERS                                                                                    \
    READS("autoscaling.k8s.io",                                                                    \
          "'verticalpodautoscalers','verticalpodautoscalercheckpoints','hvpas'")                   \
    "," READS("autoscaling", "'horizontalpodautoscalers'") "," READS("autoscaling.tandem.dev",     \
                                                                     "'horizontalpodautoscalers'")

static void rights_init(struct explain_bed *e, const char *rules)
{
    explain_bed_init(e);
    char text[2048];
    (void)snprintf(text, sizeof(text), "{'metadata':{'name':'reader'},'rules':[%s]}", rules);
    control_bed_create(&e->c, ROLES, text);
    control_bed_create(&e->c, BINDINGS,
                       "{'metadata':{'name':'reader'},'roleRef':{'apiGroup':"
                       "'rbac.authorization.k8s.io','kind':'Role','name':'reader'},'subjects':[{"
                       "'apiGroup':'rbac.authorization.k8s.io','kind':'User','name':'dev'}]}");
    explain_bed_deploy(e, "web", "");
    explain_bed_vpa(e, "web", "web", "");
    control_bed_create(&e->c, HPAS,
                       "{'metadata':{'name':'web'},'spec':{'scaleTargetRef':{'apiVersion':"
                       "'apps/v1','kind':'Deployment','name':'web'},'maxReplicas':9}}");
    control_bed_run(&e->c, 2 * TD_MINUTE);
    e->user = "dev";
}

static void test_the_rights_of_one_namespace_are_enough(void **state)
{
    (void)state;
    struct explain_bed e;
    rights_init(&e, WORKLOADS "," SCALERS "," READS("", "'limitranges'"));
    assert_false(explain_bed_try(&e, NULL)); /* all namespaces */
    explain_expect(e.failure.message, "pods: ");
    explain_expect(e.failure.message, "forbidden");
    td_snapshot_free(e.snapshot);
    e.namespace = "default";
    const char *text = explain_bed_ask(&e, "vpa", "web");
    assert_int_equal(e.code, TD_OK);
    explain_expect(text, "587m");
    assert_null(strstr(text, "\n  rights "));
    text = explain_bed_ask(&e, "hpa", "web");
    assert_int_equal(e.code, TD_OK);
    explain_expect(text, "\n  group       autoscaling/v2\n");
    text = explain_bed_ask(&e, "deployment", "web");
    assert_int_equal(e.code, TD_OK);
    explain_expect(text, "VPA web");
    text = explain_bed_ask(&e, "hvpa", "nope");
    assert_int_equal(e.code, TD_NOT_FOUND);
    text = sizes_ask(&e, "default");
    explain_expect(text, "deploy/web x2  app        vpa/web");
    assert_null(strstr(text, "warning"));
    explain_bed_done(&e);
}

/* Another namespace than the one granted. */
static void test_another_namespace_is_one_line(void **state)
{
    (void)state;
    struct explain_bed e;
    rights_init(&e, WORKLOADS "," SCALERS);
    e.namespace = "kube-system";
    assert_false(explain_bed_try(&e, NULL));
    explain_expect(e.failure.message, "in the namespace \"kube-system\"");
    td_snapshot_free(e.snapshot);
    explain_bed_done(&e);
}

static void test_what_may_not_be_listed_is_named(void **state)
{
    (void)state;
    struct explain_bed e;
    rights_init(&e, WORKLOADS "," READS("autoscaling", "'horizontalpodautoscalers'"));
    e.namespace = "default";
    const char *text = explain_bed_ask(&e, "hpa", "web");
    assert_int_equal(e.code, TD_OK);
    explain_expect(
        text, "\n  rights      no permission to list "
              "verticalpodautoscalers, horizontalpodautoscalers.autoscaling.tandem.dev, hvpas, "
              "limitranges, verticalpodautoscalercheckpoints: they are "
              "treated as absent; ");
    text = explain_bed_ask(&e, "hpa", "nope"); /* it may be in the other group */
    assert_int_equal(e.code, TD_NOT_FOUND);
    explain_expect(text, "; no permission to list ");
    text = sizes_ask(&e, "default");
    explain_expect(text, "deploy/web x2  app        -  ");
    explain_expect(text, "warning: no permission to list ");
    /* What was asked about must be readable. */
    static const enum td_informer_kind kinds[] = {TD_INFORMER_VPAS, TD_INFORMER_HVPAS};
    static const char *const names[] = {"verticalpodautoscalers: ", "hvpas: "};
    for (size_t i = 0; i < 2; i++) {
        bool needs[TD_INFORMER_COUNT] = {[TD_INFORMER_PODS] = false};
        needs[kinds[i]] = true;
        assert_false(explain_bed_try(&e, needs));
        explain_expect(e.failure.message, names[i]);
        td_snapshot_free(e.snapshot);
    }
    explain_bed_done(&e);
}

/* VPAs, Hvpas and our HPAs are not installed. */
static void test_a_cluster_without_our_kinds_is_explained(void **state)
{
    (void)state;
    static const char *const groups[] = {"/apis/autoscaling.k8s.io/",
                                         "/apis/autoscaling.tandem.dev/"};
    for (size_t i = 0; i < 2; i++) {
        struct explain_bed e;
        rights_init(&e, WORKLOADS);
        e.user = NULL;
        e.absent.absent = groups[i];
        const char *text = explain_bed_ask(&e, "hpa", "web");
        assert_int_equal(e.code, TD_OK);
        explain_expect(text, "\n  group       autoscaling/v2\n");
        assert_null(strstr(text, "\n  rights "));
        text = explain_bed_ask(&e, "deployment", "web");
        assert_int_equal(e.code, TD_OK);
        explain_expect(text, "HPA (autoscaling/v2) web");
        assert_int_equal(strstr(text, "VPA web") != NULL, i == 1);
        text = explain_bed_ask(&e, "vpa", "web");
        assert_int_equal(e.code, i == 1 ? TD_OK : TD_NOT_FOUND);
        text = sizes_ask(&e, "default");
        explain_expect(text, i == 1 ? "app        vpa/web" : "app        -  ");
        explain_bed_done(&e);
    }
}

/* The name is in both groups: both are told, each with its group. */
static void test_an_hpa_is_looked_for_in_both_groups(void **state)
{
    (void)state;
    struct explain_bed e;
    rights_init(&e, WORKLOADS);
    e.user = NULL;
    explain_bed_deploy(&e, "api", "");
    static const char hpa[] = "{'apiVersion':'autoscaling.tandem.dev/v2','kind':"
                              "'HorizontalPodAutoscaler','metadata':{'name':'%s'},'spec':{"
                              "'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':"
                              "'api'},'maxReplicas':9}}";
    static const char *const names[] = {"web", "ours"};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        (void)snprintf(text, sizeof(text), hpa, names[i]);
        control_bed_create(
            &e.c, "/apis/autoscaling.tandem.dev/v2" NAMESPACE "horizontalpodautoscalers", text);
    }
    control_bed_run(&e.c, TD_MINUTE);
    const char *text = explain_bed_ask(&e, "hpa", "ours");
    explain_expect(text, "\n  group       autoscaling.tandem.dev/v2\n");
    assert_null(strstr(text, "group       autoscaling/v2"));
    text = explain_bed_ask(&e, "hpa", "web");
    explain_expect(text, "\n  group       autoscaling.tandem.dev/v2\n");
    explain_expect(text, "\n  group       autoscaling/v2\n");
    assert_non_null(td_json_get(e.json, TD_STR("also")));
    explain_bed_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rights_of_one_namespace_are_enough),
        cmocka_unit_test(test_another_namespace_is_one_line),
        cmocka_unit_test(test_what_may_not_be_listed_is_named),
        cmocka_unit_test(test_a_cluster_without_our_kinds_is_explained),
        cmocka_unit_test(test_an_hpa_is_looked_for_in_both_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
