/*
 * Accounts of a cluster: VPAs, HPAs, Hvpas, pods and workloads explained, right sizes
 * of a cluster without a VPA; and that asking changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/explain_bed.h"

static td_str explain_bed_pod(struct explain_bed *e, size_t index)
{
    const struct td_json *list = control_bed_get(&e->c, "/api/v1/namespaces/default/pods");
    const struct td_json *pod = td_json_at(td_json_get(list, TD_STR("items")), index);
    assert_non_null(pod);
    td_str name =
        td_json_get_str(td_json_get(pod, TD_STR("metadata")), TD_STR("name"), TD_STR_EMPTY);
    return td_arena_copy_str(&e->c.bed.arena, name); /* with a NUL */
}

static void test_kinds_are_called_as_kubectl_calls_them(void **state)
{
    static const struct {
        const char *word;
        int kind; /* -1: there is none */
        const char *workload;
    } rows[] = {
        {"vpa", TD_EXPLAIN_VPA, ""},
        {"VerticalPodAutoscalers", TD_EXPLAIN_VPA, ""},
        {"hpa", TD_EXPLAIN_HPA, ""},
        {"hvpas.autoscaling.k8s.io", TD_EXPLAIN_HVPA, ""},
        {"po", TD_EXPLAIN_POD, ""},
        {"deploy", TD_EXPLAIN_WORKLOAD, "Deployment"},
        {"statefulsets.apps", TD_EXPLAIN_WORKLOAD, "StatefulSet"},
        {"ds", TD_EXPLAIN_WORKLOAD, "DaemonSet"},
        {"cj", TD_EXPLAIN_WORKLOAD, "CronJob"},
        {"job", TD_EXPLAIN_WORKLOAD, "Job"},
        {"", -1, ""},
        {"s", -1, ""},
        {"vpass", -1, ""},
        {"node", -1, ""},
        {"averyveryveryveryveryveryveryveryveryveryveryveryveryveryverylongword", -1, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_explain_subject subject = {.kind = TD_EXPLAIN_POD};
        struct td_error err = TD_ERROR_INIT;
        int code = td_explain_parse_kind(td_str_from(rows[i].word), &subject, &err);
        assert_int_equal(code, rows[i].kind < 0 ? TD_INVALID : TD_OK);
        if (code == TD_OK) {
            assert_int_equal(subject.kind, rows[i].kind);
            assert_true(td_str_equal(subject.workload, td_str_from(rows[i].workload)));
        }
    }
}

static void test_a_vpa_is_explained_and_nothing_is_written(void **state)
{
    (void)state;
    struct explain_bed e;
    explain_bed_init(&e);
    explain_bed_deploy(&e, "web", "");
    explain_bed_vpa(&e, "web", "web", "");
    control_bed_run(&e.c, 3 * TD_MINUTE);
    td_str before =
        td_json_get_str(td_json_get(control_bed_get(&e.c, VPAS "/web"), TD_STR("metadata")),
                        TD_STR("resourceVersion"), TD_STR_EMPTY);
    const char *text = explain_bed_ask(&e, "vpa", "web");
    assert_int_equal(e.code, TD_OK);
    explain_expect(text, "web (VerticalPodAutoscaler default/web, Recreate, of Deployment web)\n\n"
                         "  recommends  app: cpu 587m, memory 561Mi  (");
    explain_expect(text, "\n  because     container app (upstream): 2 samples from ");
    explain_expect(text, "\n              would change it: more samples (a day of them)\n");
    explain_expect(text,
                   "\n  webhook     no webhook for pods is registered (tandem-webhook-config), "
                   "so new pods are not mutated; run the admission controller: tandem run\n");
    const struct td_json *accounts = td_json_get(e.json, TD_STR("accounts"));
    assert_true(td_json_is(accounts, TD_JSON_TYPE_ARRAY));
    assert_int_equal(accounts->count, 1);
    assert_non_null(td_json_get(e.json, TD_STR("recommendation")));
    const struct td_json *after = control_bed_get(&e.c, VPAS "/web");
    assert_true(td_str_equal(before, td_json_get_str(td_json_get(after, TD_STR("metadata")),
                                                     TD_STR("resourceVersion"), TD_STR_EMPTY)));
    assert_null(td_json_get(after, TD_STR("status")));
    explain_bed_done(&e);
}

static void test_what_is_not_there_is_one_line(void **state)
{
    static const struct {
        const char *kind;
        const char *says;
    } rows[] = {
        {"vpa", "VerticalPodAutoscaler default/nope: not found"},
        {"hpa", "HorizontalPodAutoscaler default/nope: not found, neither in "},
        {"hvpa", "Hvpa default/nope: not found"},
        {"pod", "Pod default/nope: not found"},
        {"deploy", "Deployment default/nope: not found"},
        {"sts", "StatefulSet default/nope: not found"},
    };
    (void)state;
    struct explain_bed e;
    explain_bed_init(&e);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        explain_expect(explain_bed_ask(&e, rows[i].kind, "nope"), rows[i].says);
        assert_int_equal(e.code, TD_NOT_FOUND);
    }
    explain_bed_done(&e);
}

static void test_a_pod_says_who_manages_it(void **state)
{
    (void)state;
    struct explain_bed e;
    explain_bed_init(&e);
    explain_bed_deploy(&e, "web", ",'role':'leader'");
    control_bed_run(&e.c, 2 * TD_MINUTE);
    td_str pod = explain_bed_pod(&e, 0);
    const char *text = explain_bed_ask(&e, "pod", pod.ptr);
    explain_expect(text, "\n  owner       Deployment web by ReplicaSet web-");
    explain_expect(text,
                   "\n  managed     by no VPA: none of the 0 in namespace default selects it; "
                   "create one with targetRef Deployment web, or run tandem recommend -n "
                   "default\n");
    explain_expect(text, "\n  requests    app: cpu 1, memory 1Gi\n");

    explain_bed_vpa(&e, "other", "web", ",'selector':{'matchLabels':{'role':'other'}}");
    text = explain_bed_ask(&e, "pod", pod.ptr);
    /* One without a selector would be refused. */
    explain_expect(text, "none of the 1 in namespace default selects it; label it so that one of "
                         "them does, or create one with targetRef Deployment web and the selector "
                         "role In (leader)\n");
    explain_bed_vpa(&e, "leader", "web", ",'selector':{'matchLabels':{'role':'leader'}}");
    text = explain_bed_ask(&e, "pod", pod.ptr);
    explain_expect(text,
                   "\n  managed     by VPA leader, mode Recreate: its target is Deployment web "
                   "and its selector role=leader matches\n");
    explain_expect(text, "\n  not by      VPA other: its selector role=other does not match labels "
                         "app=web,");
    explain_expect(text, "\n  requests    app: cpu 1, memory 1Gi; recommended cpu 587m, memory ");
    explain_expect(text, "\n  annotations none from the webhook: ");
    assert_true(
        td_str_equal(td_json_get_str(e.json, TD_STR("vpa"), TD_STR_EMPTY), TD_STR("leader")));

    /* The selector of a younger one matches too. */
    control_bed_run(&e.c, 2 * TD_SECOND);
    explain_bed_vpa(&e, "younger", "web", ",'selector':{'matchLabels':{'app':'web'}}");
    text = explain_bed_ask(&e, "pod", pod.ptr);
    explain_expect(
        text, "VPA younger: its selector matches too, but VPA leader is older; make the selectors "
              "disjoint (tandem validate)\n");
    text = explain_bed_ask(&e, "vpa", "younger");
    explain_expect(text, "\n  conditions  ConflictingSelector: ");
    explain_expect(text, "; next: make the selectors disjoint; tandem validate checks files\n");
    explain_bed_done(&e);
}

/* What the updater would not evict, since the replacement would be refused, is said to be held. */
static void test_a_pod_that_is_held_is_not_said_to_be_evicted(void **state)
{
    static const char quotas[] = "/api/v1/namespaces/default/resourcequotas";
    static const char held[] = "its replacement would be refused: exceeded quota: compute, "
                               "requested: requests.cpu=2, used: requests.cpu=1, limited: "
                               "requests.cpu=2500m";
    (void)state;
    struct explain_bed e;
    explain_bed_init(&e);
    explain_bed_deploy(&e, "web", "");
    explain_bed_vpa(&e, "web", "web", "");
    control_bed_run(&e.c, TD_MINUTE);
    assert_int_equal(control_bed_patch(
                         &e.c, VPAS "/web/status",
                         "{'status':{'conditions':[{'type':'RecommendationProvided','status':"
                         "'True'}],'recommendation':{'containerRecommendations':[{"
                         "'containerName':'app','target':{'cpu':'2','memory':'1Gi'},'lowerBound':"
                         "{'cpu':'2','memory':'1Gi'},'upperBound':{'cpu':'3','memory':'2Gi'}}]}}}"),
                     200);
    td_str pod = explain_bed_pod(&e, 0);
    explain_expect(explain_bed_ask(&e, "vpa", "web"), ": would be evicted, so that ");
    control_bed_create(&e.c, quotas,
                       "{'metadata':{'name':'compute'},'spec':{'hard':{'requests.cpu':'2500m'}}}");
    assert_int_equal(control_bed_patch(&e.c,
                                       "/api/v1/namespaces/default/resourcequotas/compute/status",
                                       "{'status':{'hard':{'requests.cpu':'2500m'},'used':{"
                                       "'requests.cpu':'2'}}}"),
                     200);
    const char *text = explain_bed_ask(&e, "vpa", "web");
    explain_expect(text, held);
    assert_null(strstr(text, "would be evicted"));
    text = explain_bed_ask(&e, "pod", pod.ptr);
    explain_expect(text, held);
    assert_null(strstr(text, "would be evicted"));
    const struct td_json *note = td_json_get(e.json, TD_STR("updater"));
    assert_true(td_str_equal(td_json_text(note, "rule"), TD_STR("ReplacementRefused")));
    explain_bed_done(&e);
}

static void test_a_bare_pod_has_nobody(void **state)
{
    (void)state;
    struct explain_bed e;
    explain_bed_init(&e);
    control_bed_create(&e.c, "/api/v1/namespaces/default/pods",
                       "{'metadata':{'name':'bare'},'spec':{'containers':[{'name':'app','image':"
                       "'nginx'}]}}");
    control_bed_run(&e.c, TD_MINUTE);
    const char *text = explain_bed_ask(&e, "pod", "bare");
    explain_expect(text, "bare (Pod default/bare, Running)\n\n  owner       none: VPAs manage only "
                         "pods of a controller; ");
    explain_expect(text, "\n  managed     by no VPA\n  requests    app: nothing\n");
    explain_bed_done(&e);
}

static void test_a_target_that_is_not_there_is_said(void **state)
{
    (void)state;
    struct explain_bed e;
    explain_bed_init(&e);
    explain_bed_vpa(&e, "web", "web", "");
    const char *text = explain_bed_ask(&e, "vpa", "web");
    explain_expect(text,
                   "\n  recommends  nothing yet: the recommender has no samples of its pods\n");
    explain_expect(text, "ConfigUnsupported: Cannot read targetRef. Reason: ");
    explain_expect(text, "; next: point targetRef at an existing topmost controller\n");
    assert_null(strstr(text, "RecommendationProvided")); /* it would say the same again */
    assert_null(strstr(text, "pod metrics"));            /* there is no pod: no fault of theirs */
    explain_bed_done(&e);
}

static void test_hpas_and_hvpas_and_who_acts_on_a_workload(void **state)
{
    static const char hpa[] =
        "'minReplicas':1,'maxReplicas':9,'metrics':[{'type':'Resource','resource':{'name':'cpu',"
        "'target':{'type':'Utilization','averageUtilization':40}}}]";
    (void)state;
    struct explain_bed e;
    char text[2048];
    explain_bed_init(&e);
    explain_bed_deploy(&e, "api", "");
    explain_bed_deploy(&e, "web", "");
    (void)snprintf(text, sizeof(text),
                   "{'metadata':{'name':'api'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1',"
                   "'kind':'Deployment','name':'api'},%s}}",
                   hpa);
    control_bed_create(&e.c, HPAS, text);
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':"
                   "'web'},'spec':{'mode':'RatioBased','targetRef':{'apiVersion':'apps/v1','kind':"
                   "'Deployment','name':'web'},'initialScaling':'horizontal','finalScaling':"
                   "'vertical','ratioBasedScalingSpec':{'vToHScalingRatio':1,'startReplicaCount':2,"
                   "'finishReplicaCount':8},'hpaSpec':{%s},'vpaSpec':{}}}",
                   hpa);
    control_bed_create(&e.c, HVPAS, text);
    control_bed_run(&e.c, 10 * TD_MINUTE);
    const char *said = explain_bed_ask(&e, "hpa", "api");
    explain_expect(said, "api (HorizontalPodAutoscaler default/api of Deployment/api, replicas "
                         "1..9) decided at ");
    explain_expect(said, "\n  wanted  3 replicas: ");
    explain_expect(said, "\n  group       autoscaling/v2\n");
    assert_non_null(td_json_get(e.json, TD_STR("account")));
    said = explain_bed_ask(&e, "hvpa", "web");
    explain_expect(said, "web (Hvpa default/web, RatioBased 1:1, replicas 1..9, ratio stage 2..8)");
    explain_expect(said, "\n  wanted  horizontally  3 replicas ");
    explain_expect(said, "percentile 90 of use is 511m, with a margin of 15 % 587m");
    assert_non_null(td_json_get(e.json, TD_STR("account")));
    const struct td_json *hvpa = control_bed_get(&e.c, HVPAS "/web");
    assert_null(td_json_get(hvpa, TD_STR("status")));
    said = explain_bed_ask(&e, "deployment", "web");
    explain_expect(said,
                   "web (Deployment default/web, 2 replicas)\n\n  acted on by Hvpa web: tandem "
                   "explain hvpa web -n default\n");
    said = explain_bed_ask(&e, "deployment", "api");
    explain_expect(said, "\n  acted on by HPA (autoscaling/v2) api: tandem explain hpa api -n "
                         "default\n");
    explain_bed_vpa(&e, "api", "api", "");
    said = explain_bed_ask(&e, "deployment", "api");
    explain_expect(said, "\n  warning     a VPA and an HPA: ");
    explain_bed_done(&e);
}

/* The proposal's literal form has the target inside hpaSpec and vpaSpec only: explain and recommend
 * find it there. */
static void test_an_hvpa_of_the_literal_form_acts_on_its_workload(void **state)
{
#define TARGET_REF(name) "{'apiVersion':'apps/v1','kind':'Deployment','name':'" name "'}"
    static const struct {
        const char *name;
        const char *parts;
    } rows[] = {
        {"api", "'hpaSpec':{'metadata':{},'spec':{'scaleTargetRef':" TARGET_REF(
                    "api") ",'maxReplicas':4}},'vpaSpec':{'metadata':{},'spec':{'targetRef'"
                           ":" TARGET_REF("api") "}}"},
        {"web", "'vpaSpec':{'spec':{'targetRef':" TARGET_REF("web") "}}"},
    };
    (void)state;
    struct explain_bed e;
    char text[1024];
    explain_bed_init(&e);
    for (size_t i = 0; i < 2; i++) {
        explain_bed_deploy(&e, rows[i].name, "");
        (void)snprintf(text, sizeof(text),
                       "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{"
                       "'name':'%s'},'spec':{%s}}",
                       rows[i].name, rows[i].parts);
        control_bed_create(&e.c, HVPAS, text);
    }
    control_bed_run(&e.c, 3 * TD_MINUTE);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(text, sizeof(text),
                       "\n  acted on by Hvpa %s: tandem explain hvpa %s -n default\n", rows[i].name,
                       rows[i].name);
        explain_expect(explain_bed_ask(&e, "deployment", rows[i].name), text);
    }
    const char *sizes = sizes_ask(&e, "default");
    explain_expect(sizes, " deploy/api x2  app        hvpa/api ");
    explain_expect(sizes, " deploy/web x2  app        hvpa/web ");
    assert_int_equal(e.yaml.len, 0); /* nothing is left to be pasted */
    explain_bed_done(&e);
}

/* ---- Right sizes ---- */

static void test_right_sizes_with_and_without_a_vpa(void **state)
{
    (void)state;
    struct explain_bed e;
    explain_bed_init(&e);
    explain_bed_deploy(&e, "api", "");
    explain_bed_deploy(&e, "web", "");
    explain_bed_vpa(&e, "web", "web", "");
    control_bed_run(&e.c, 3 * TD_MINUTE);
    /* Two samples are not enough, and what is left out is said. */
    assert_string_equal(
        sizes_ask(&e, "default"),
        " NAMESPACE  WORKLOAD       CONTAINER  SIZED BY  CPU now → should  MEMORY now → should  "
        "WASTE/RISK of all pods\n"
        " default    deploy/api x2  app        -         1 → ?             1Gi → ?              "
        "not enough data (2 samples)\n"
        " default    deploy/web x2  app        vpa/web   1 → ?             1Gi → ?              "
        "not enough data (2 samples)\n"
        "total: 0 → 0 cpu, 0 → 0 memory; 0 containers should have a larger memory request.  YAML: "
        "--output yaml\n"
        "2 containers left out of the total: not enough data (--min-samples, --min-history)\n");
    assert_int_equal(e.yaml.len, 0);
    e.limits.samples_min = 2;
    assert_string_equal(
        sizes_ask(&e, "default"),
        " NAMESPACE  WORKLOAD       CONTAINER  SIZED BY  CPU now → should  MEMORY now → should  "
        "WASTE/RISK of all pods\n"
        " default    deploy/api x2  app        -         1 → 587m          1Gi → 561Mi          "
        "−826m cpu, −927Mi\n"
        " default    deploy/web x2  app        vpa/web   1 → 587m          1Gi → 561Mi          "
        "−826m cpu, −927Mi\n"
        "total: 4 → 2.348 cpu, 4Gi → 2.2Gi memory; 0 containers should have a larger memory "
        "request.  YAML: --output yaml\n");
    /* Only workloads that no autoscaler sizes are in the YAML. */
    assert_string_equal(e.yaml.ptr,
                        "---\n# window: checkpoints of VPAs, and metrics of this moment\n"
                        "# container app: 2 samples over 0s, confidence 0.00\n"
                        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: api\n"
                        "  namespace: default\nspec:\n  template:\n    spec:\n      containers:\n"
                        "      - name: app\n        resources:\n          requests:\n"
                        "            cpu: 587m\n            memory: 561Mi\n");
    explain_expect(sizes_ask(&e, "kube-system"), "total: 0 → 0 cpu");
    assert_string_equal(sizes_ask(&e, "elsewhere"), "namespace 'elsewhere' does not exist");
    explain_bed_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_are_called_as_kubectl_calls_them),
        cmocka_unit_test(test_a_vpa_is_explained_and_nothing_is_written),
        cmocka_unit_test(test_what_is_not_there_is_one_line),
        cmocka_unit_test(test_a_pod_says_who_manages_it),
        cmocka_unit_test(test_a_pod_that_is_held_is_not_said_to_be_evicted),
        cmocka_unit_test(test_a_bare_pod_has_nobody),
        cmocka_unit_test(test_a_target_that_is_not_there_is_said),
        cmocka_unit_test(test_hpas_and_hvpas_and_who_acts_on_a_workload),
        cmocka_unit_test(test_an_hvpa_of_the_literal_form_acts_on_its_workload),
        cmocka_unit_test(test_right_sizes_with_and_without_a_vpa),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
