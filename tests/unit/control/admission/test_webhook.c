/*
 * The webhook on a local cluster: pods that Deployments create come out with what their VPA or
 * Hvpa wants, VPAs are judged beside their siblings, HPAs of our group and Hvpas by their rules,
 * and whatever cannot be decided is let through as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/os/log.h"
#include "decide/vertical/patch/podsizes.h"
#include "decide/vertical/pod.h"
#include "model/owners.h"
#include "support/webhook_bed.h"

#define TARGET(cpu, memory)                                                                        \
    "'containerRecommendations':[{'containerName':'app','target':{'cpu':'" cpu                     \
    "','memory':'" memory "'},'lowerBound':{'cpu':'" cpu "','memory':'" memory                     \
    "'},'upperBound':{'cpu':'" cpu "','memory':'" memory "'}}]"
#define APP(resources) "'containers':[{'name':'app','image':'nginx','resources':{" resources "}}]"
#define SMALL "'requests':{'cpu':'100m','memory':'100Mi'},'limits':{'cpu':'200m'}"

static void test_a_pod_of_a_deployment_is_mutated(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    webhook_bed_vpa(&h, "web", "web", "", TARGET("250m", "300Mi"));
    webhook_bed_deploy(&h, "web", "", APP(SMALL));
    control_bed_run(&h.c, 5 * TD_SECOND);
    const struct td_json *pod = webhook_bed_pod(&h, "web");
    assert_non_null(pod);
    assert_string_equal(webhook_bed_resource(&h, pod, "requests.cpu"), "250m");
    assert_string_equal(webhook_bed_resource(&h, pod, "requests.memory"), "300Mi");
    assert_string_equal(webhook_bed_resource(&h, pod, "limits.cpu"), "500m");
    assert_string_equal(webhook_bed_annotation(&h, pod, "vpaUpdates"),
                        "Pod resources updated by web: container 0: memory: limit NOT set since "
                        "originalLimit is nil or 0, cpu request, memory request, cpu limit");
    assert_string_equal(webhook_bed_annotation(&h, pod, "vpaObservedContainers"), "app");
    assert_true(webhook_side_counts(
        &h.side, "vpa_admission_controller_admission_pods_total{applied=\"true\"} "));
    assert_true(webhook_side_counts(
        &h.side, "vpa_admission_controller_admission_latency_seconds_count{status=\"applied\","
                 "resource=\"Pod\"} "));
    assert_true(webhook_side_counts(
        &h.side, "vpa_admission_controller_execution_latency_seconds_count{step=\"admit\"} "));
    webhook_bed_done(&h);
}

/* Pods that stay as they are: no VPA, mode Off, a pod without a controller, an exempt namespace. */
static void test_other_pods_stay_as_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *vpa; /* its spec; NULL: none */
    } rows[] = {
        {"alone", NULL},
        {"off", ",'updatePolicy':{'updateMode':'Off'}"},
        {"elsewhere", ",'selector':{'matchLabels':{'role':'leader'}}"},
        {"silent",
         ",'resourcePolicy':{'containerPolicies':[{'containerName':'app','mode':'Off'}]}"},
    };
    struct webhook_bed h;
    webhook_bed_init(&h);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].vpa) {
            webhook_bed_vpa(&h, rows[i].name, rows[i].name, rows[i].vpa,
                            i == 3 ? "'containerRecommendations':[]" : TARGET("250m", "300Mi"));
        }
        webhook_bed_deploy(&h, rows[i].name, "", APP(SMALL));
    }
    control_bed_create(
        &h.c, WEBHOOK_PODS,
        "{'metadata':{'name':'bare','labels':{'app':'bare'}},'spec':{" APP(SMALL) "}}");
    control_bed_run(&h.c, 5 * TD_SECOND);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct td_json *pod = webhook_bed_pod(&h, rows[i].name);
        assert_non_null(pod);
        assert_string_equal(webhook_bed_resource(&h, pod, "requests.cpu"), "100m");
    }
    assert_string_equal(webhook_bed_resource(&h, webhook_bed_pod(&h, "bare"), "requests.cpu"),
                        "100m");
    webhook_bed_done(&h);
}

/* Labels of the pod being created choose among the VPAs of one target. */
static void test_roles_get_sizes_of_their_own(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    webhook_bed_vpa(&h, "leader", "db", ",'selector':{'matchLabels':{'role':'leader'}}",
                    TARGET("800m", "800Mi"));
    webhook_bed_vpa(&h, "follower", "db",
                    ",'selector':{'matchExpressions':[{'key':'role','operator':'NotIn','values':["
                    "'leader']}]}",
                    TARGET("150m", "150Mi"));
    webhook_bed_deploy(&h, "db", ",'role':'leader'", APP(SMALL));
    control_bed_run(&h.c, 5 * TD_SECOND);
    const struct td_json *pod = webhook_bed_pod(&h, "db");
    assert_string_equal(webhook_bed_resource(&h, pod, "requests.cpu"), "800m");
    assert_int_equal(control_bed_patch(&h.c, WEBHOOK_DEPLOYMENTS "/db",
                                       "{'spec':{'template':{'metadata':{'labels':{'role':"
                                       "'follower'}}}}}"),
                     200);
    control_bed_run(&h.c, 5 * TD_MINUTE);
    pod = webhook_bed_pod(&h, "db");
    assert_string_equal(webhook_bed_resource(&h, pod, "requests.cpu"), "150m");
    webhook_bed_done(&h);
}

/* A target that changes hands, and a VPA that goes: the index follows. */
static void test_a_vpa_that_moves_or_goes_is_followed(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    webhook_bed_vpa(&h, "v", "a", "", TARGET("250m", "300Mi"));
    assert_int_equal(
        control_bed_patch(&h.c, WEBHOOK_VPAS "/v", "{'spec':{'targetRef':{'name':'b'}}}"), 200);
    control_bed_run(&h.c, TD_SECOND);
    webhook_bed_deploy(&h, "a", "", APP(SMALL));
    webhook_bed_deploy(&h, "b", "", APP(SMALL));
    control_bed_run(&h.c, 5 * TD_SECOND);
    assert_string_equal(webhook_bed_resource(&h, webhook_bed_pod(&h, "a"), "requests.cpu"), "100m");
    assert_string_equal(webhook_bed_resource(&h, webhook_bed_pod(&h, "b"), "requests.cpu"), "250m");
    assert_int_equal(control_bed_delete(&h.c, WEBHOOK_VPAS "/v"), 200);
    control_bed_run(&h.c, TD_SECOND);
    webhook_bed_deploy(&h, "b2", "", APP(SMALL));
    control_bed_run(&h.c, 5 * TD_SECOND);
    assert_string_equal(webhook_bed_resource(&h, webhook_bed_pod(&h, "b2"), "requests.cpu"),
                        "100m");
    webhook_bed_done(&h);
}

#define POD_LEVEL                                                                                  \
    "'resources':{'requests':{'cpu':'200m','memory':'200Mi'}}," APP(                               \
        "'requests':{'cpu':'100m','memory':'100Mi'}")

static void test_pod_level_resources_are_sized(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    webhook_bed_vpa(&h, "web", "web", "",
                    TARGET("250m", "300Mi") ",'podRecommendation':{'target':{'cpu':'260m','memory':"
                                            "'310Mi'},'lowerBound':{'cpu':'100m','memory':'100Mi'},"
                                            "'upperBound':{'cpu':'1','memory':'1Gi'}}");
    webhook_bed_deploy(&h, "web", "", POD_LEVEL);
    control_bed_run(&h.c, 5 * TD_SECOND);
    const struct td_json *pod = webhook_bed_pod(&h, "web");
    assert_non_null(pod);
    const struct td_json *requests = td_json_get_path(pod, "spec.resources.requests");
    assert_true(
        td_str_equal(td_json_get_str(requests, TD_STR("cpu"), TD_STR_EMPTY), TD_STR("260m")));
    assert_string_equal(webhook_bed_resource(&h, pod, "requests.cpu"), "250m");
    assert_non_null(strstr(webhook_bed_annotation(&h, pod, "vpaUpdates"), "Pod "));
    webhook_bed_done(&h);
}

/* Requests without a recommendation stay, and the log says so in the words of the proposal. */
static void test_what_has_no_recommendation_is_logged(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct td_clock clock = td_clock_real();
    struct td_webhook_options options = webhook_bed_options();
    options.control.log = td_log_new(&(struct td_log_options){
        .stream = stream, .clock = &clock, .level = TD_LOG_INFO, .format = TD_LOG_TEXT});
    struct webhook_bed h;
    webhook_bed_init_with(&h, &options);
    webhook_bed_vpa(&h, "web", "web", "",
                    "'containerRecommendations':[{'containerName':'other','target':{'cpu':'1'}}]");
    webhook_bed_deploy(&h, "web", "", POD_LEVEL);
    control_bed_run(&h.c, 5 * TD_SECOND);
    const struct td_json *pod = webhook_bed_pod(&h, "web");
    assert_string_equal(webhook_bed_resource(&h, pod, "requests.cpu"), "100m");
    assert_int_equal(fflush(stream), 0);
    const char *container = strstr(text, "No recommendation found for container, skipping");
    assert_non_null(container);
    assert_non_null(strstr(container, "container=app"));
    const char *of_pod = strstr(text, "No recommendation found for pod, skipping");
    assert_non_null(of_pod);
    assert_non_null(strstr(of_pod, "pod=web-"));
    webhook_bed_done(&h);
    td_log_free(options.control.log);
    assert_int_equal(fclose(stream), 0);
    free(text);
}

/* The one case in which a pod is refused, and the flag that warns instead. */
static void test_a_container_limit_range_refuses_pod_level_pods(void **state)
{
    (void)state;
    for (int warns = 0; warns < 2; warns++) {
        struct webhook_bed h;
        struct td_webhook_options options = webhook_bed_options();
        options.warns_of_limit_range = warns != 0;
        webhook_bed_init_with(&h, &options);
        control_bed_create(&h.c, "/api/v1/namespaces/default/limitranges",
                           "{'metadata':{'name':'caps'},'spec':{'limits':[{'type':'Container',"
                           "'min':{'cpu':'10m'}}]}}");
        webhook_bed_vpa(&h, "web", "web", "", TARGET("250m", "300Mi"));
        webhook_bed_deploy(&h, "web", "", POD_LEVEL);
        control_bed_run(&h.c, 5 * TD_SECOND);
        const struct td_json *set = control_bed_get(&h.c, "/api/v1/namespaces/default/events");
        td_auto_buf text;
        td_buf_init(&text, (size_t)1 << 20);
        td_json_write(set, &(struct td_json_format){.indent = 0}, &text);
        assert_int_equal(strstr(td_buf_str(&text).ptr, "caps") != NULL, warns == 0);
        assert_int_equal(webhook_bed_pod(&h, "web") != NULL, warns != 0);
        webhook_bed_done(&h);
    }
}

static bool sizes_of(void *context, struct td_arena *arena, const struct td_controller *top,
                     const struct td_pod *pod, struct td_pod_sizes *ret)
{
    const char *target = context;
    (void)pod;
    if (!td_str_equal(top->name, td_str_from(target))) {
        return false;
    }
    struct td_json *tree;
    struct td_pod_size *size = td_arena_new(arena, struct td_pod_size);
    assert_int_equal(td_json_parse(arena, TD_STR("{\"cpu\":\"333m\"}"), NULL, &tree, NULL), TD_OK);
    assert_int_equal(td_resource_list_decode(arena, tree, &size->requests, NULL), TD_OK);
    size->container = TD_STR("app");
    *ret = (struct td_pod_sizes){.hvpa = TD_STR("both"), .items = size, .count = 1};
    return true;
}

/* What an Hvpa decided goes before what a VPA recommends. */
static void test_pods_of_an_hvpa_get_what_it_decided(void **state)
{
    (void)state;
    struct webhook_bed h;
    struct td_webhook_options options = webhook_bed_options();
    char target[] = "web";
    options.get_sizes = sizes_of;
    options.sizes_context = target;
    webhook_bed_init_with(&h, &options);
    webhook_bed_vpa(&h, "web", "web", "", TARGET("250m", "300Mi"));
    webhook_bed_vpa(&h, "api", "api", "", TARGET("250m", "300Mi"));
    webhook_bed_deploy(&h, "web", "", APP(SMALL));
    webhook_bed_deploy(&h, "api", "", APP(SMALL));
    control_bed_run(&h.c, 5 * TD_SECOND);
    const struct td_json *pod = webhook_bed_pod(&h, "web");
    assert_string_equal(webhook_bed_resource(&h, pod, "requests.cpu"), "333m");
    assert_string_equal(webhook_bed_resource(&h, pod, "requests.memory"), "100Mi");
    assert_string_equal(webhook_bed_annotation(&h, pod, "vpaUpdates"),
                        "Pod resources updated by both: container 0: cpu request, cpu limit");
    assert_string_equal(webhook_bed_resource(&h, pod, "limits.cpu"), "333m");
    assert_string_equal(webhook_bed_resource(&h, webhook_bed_pod(&h, "api"), "requests.cpu"),
                        "250m");
    webhook_bed_done(&h);
}

/* A pod that a LimitRange refuses is worse than one that is not as decided: it is cut to what is
 * let in, and where all containers together are too much it comes as it was sent. */
static void test_sizes_of_an_hvpa_stay_within_limit_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *limits;
        const char *cpu;
    } rows[] = {
        {"{'type':'Container','max':{'cpu':'200m'}}", "200m"},
        {"{'type':'Container','max':{'cpu':'2'}}", "333m"},
        {"{'type':'Container','min':{'cpu':'50m'},'max':{'memory':'4Gi'}}", "333m"},
        {"{'type':'Container','min':{'cpu':'40m'}},{'type':'Pod','max':{'cpu':'300m'}}", "100m"},
        {"{'type':'Pod','max':{'cpu':'333m'}}", "333m"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct webhook_bed h;
        struct td_webhook_options options = webhook_bed_options();
        char target[] = "web";
        char text[512];
        options.get_sizes = sizes_of;
        options.sizes_context = target;
        webhook_bed_init_with(&h, &options);
        (void)snprintf(text, sizeof(text), "{'metadata':{'name':'caps'},'spec':{'limits':[%s]}}",
                       rows[i].limits);
        control_bed_create(&h.c, "/api/v1/namespaces/default/limitranges", text);
        webhook_bed_vpa(&h, "web", "web", "", TARGET("250m", "300Mi"));
        control_bed_run(&h.c, TD_SECOND);
        webhook_bed_deploy(&h, "web", "", APP(SMALL));
        control_bed_run(&h.c, 5 * TD_SECOND);
        const struct td_json *pod = webhook_bed_pod(&h, "web");
        assert_non_null(pod);
        assert_string_equal(webhook_bed_resource(&h, pod, "requests.cpu"), rows[i].cpu);
        webhook_bed_done(&h);
    }
}

/* ---- Objects ---- */

#define VPA_TEXT(name, rest)                                                                       \
    "{'apiVersion':'autoscaling.k8s.io/"                                                           \
    "v1','kind':'VerticalPodAutoscaler','metadata':{'name':'" name                                 \
    "'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}" rest "}}"
#define LEADER ",'selector':{'matchLabels':{'role':'leader'}}"

struct object_row {
    const char *target;
    const char *text;
    int status;
    const char *field;   /* of the first cause; NULL: none */
    const char *message; /* a part of it */
};

static void check_objects(struct webhook_bed *h, const struct object_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct td_json *answer;
        int status = webhook_bed_post(h, rows[i].target, rows[i].text, &answer);
        td_str message = td_json_get_str(answer, TD_STR("message"), TD_STR_EMPTY);
        if (status != rows[i].status ||
            (rows[i].message && !strstr(message.ptr, rows[i].message))) {
            fail_msg("row %zu: %d %.*s", i, status, TD_STR_ARG(message));
        }
        const struct td_json *causes = td_json_get_path(answer, "details.causes");
        if (rows[i].field) {
            assert_true(td_json_is(causes, TD_JSON_TYPE_ARRAY));
            assert_true(td_str_equal(
                td_json_get_str(td_json_first_child(causes), TD_STR("field"), TD_STR_EMPTY),
                td_str_from(rows[i].field)));
        }
        control_bed_run(&h->c, TD_SECOND);
    }
}

static void test_vpas_are_judged(void **state)
{
    (void)state;
    static const struct object_row rows[] = {
        {WEBHOOK_VPAS, VPA_TEXT("leader", LEADER), 201, NULL, NULL},
        {WEBHOOK_VPAS, VPA_TEXT("all", ""), 422, "spec.selector", "default/leader"},
        {WEBHOOK_VPAS,
         VPA_TEXT("wide", ",'selector':{'matchExpressions':[{'key':'role','operator':'Exists'}]}"),
         422, "spec.selector", "role=leader"},
        {WEBHOOK_VPAS,
         VPA_TEXT("none", ",'selector':{'matchExpressions':[{'key':'role','operator':"
                          "'Exists'},{'key':'role','operator':'DoesNotExist'}]}"),
         422, "spec.selector", "can never match"},
        {WEBHOOK_VPAS, VPA_TEXT("follower", ",'selector':{'matchLabels':{'role':'follower'}}"), 201,
         NULL, NULL},
        {WEBHOOK_VPAS,
         "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler','metadata':{'name':"
         "'bad'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'x'},"
         "'updatePolicy':{'updateMode':'Recreate','evictionRequirements':[{'resources':['cpu'],"
         "'changeRequirement':'TargetHigherThanRequests'},{'resources':['cpu','memory'],"
         "'changeRequirement':'TargetLowerThanRequests'}]}}}",
         422, "spec.updatePolicy.evictionRequirements[1].resources[0]",
         "spec.updatePolicy.evictionRequirements[0].resources[0]"},
        {WEBHOOK_VPAS,
         "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler','metadata':{'name':"
         "'pod'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'x'},"
         "'resourcePolicy':{'podPolicies':{'minAllowed':{'cpu':'100m'}},'containerPolicies':[{"
         "'containerName':'a','minAllowed':{'cpu':'1'}}]}}}",
         422, NULL, "spec.resourcePolicy.podPolicies.minAllowed"},
    };
    struct webhook_bed h;
    webhook_bed_init(&h);
    check_objects(&h, rows, sizeof(rows) / sizeof(rows[0]));
    const struct td_json *vpa = control_bed_get(&h.c, WEBHOOK_VPAS "/leader");
    assert_true(td_str_equal(td_json_get_str(td_json_get_path(vpa, "spec.updatePolicy"),
                                             TD_STR("updateMode"), TD_STR_EMPTY),
                             TD_STR("Recreate")));
    /* An edit of neither selector nor target is not held up by an old conflict; a new one is. */
    assert_int_equal(control_bed_patch(&h.c, WEBHOOK_VPAS "/follower",
                                       "{'spec':{'selector':{'matchLabels':{'role':'leader'}}}}"),
                     422);
    assert_int_equal(control_bed_patch(&h.c, WEBHOOK_VPAS "/follower",
                                       "{'spec':{'updatePolicy':{'updateMode':'Off'}}}"),
                     200);
    webhook_bed_done(&h);
}

#define HPAS "/apis/autoscaling.tandem.dev/v2/namespaces/default/horizontalpodautoscalers"
#define HPA_TEXT(name, rest)                                                                       \
    "{'apiVersion':'autoscaling.tandem.dev/v2','kind':'HorizontalPodAutoscaler','metadata':{"      \
    "'name':'" name "'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment',"     \
    "'name':'web'}," rest "}}"
#define HVPAS "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas"
#define HVPA_TEXT(name, rest)                                                                      \
    "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'" name          \
    "'},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}," rest "}}"
#define CPU_METRIC                                                                                 \
    "'metrics':[{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization',"       \
    "'averageUtilization':60}}}]"

#define QUEUE_METRIC                                                                               \
    "'metrics':[{'type':'External','external':{'metric':{'name':'queue'},'target':{'type':"        \
    "'AverageValue','averageValue':'5'}}}]"

static void test_hpas_and_hvpas_are_judged(void **state)
{
    (void)state;
    static const struct object_row rows[] = {
        {HPAS, HPA_TEXT("good", "'minReplicas':1,'maxReplicas':3," CPU_METRIC), 201, NULL, NULL},
        {HPAS, HPA_TEXT("upside", "'minReplicas':5,'maxReplicas':3," CPU_METRIC), 422,
         "spec.maxReplicas", "must be greater than or equal to `minReplicas`"},
        {HPAS, HPA_TEXT("zero", "'minReplicas':0,'maxReplicas':3," QUEUE_METRIC), 422,
         "spec.minReplicas", NULL},
        {HPAS, HPA_TEXT("strategy", "'maxReplicas':3,'selectionStrategy':'Nobody'," CPU_METRIC),
         422, "spec.selectionStrategy", NULL},
        {HVPAS,
         HVPA_TEXT("good",
                   "'mode':'HPAPreferred','hpaSpec':{'minReplicas':1,'maxReplicas':3," CPU_METRIC
                   "},'vpaSpec':{}"),
         201, NULL, NULL},
        {HVPAS,
         HVPA_TEXT("window", "'mode':'Mixed','hpaSpec':{'minReplicas':4,'maxReplicas':3," CPU_METRIC
                             "},'vpaSpec':{}"),
         422, NULL, "spec.hpaSpec.maxReplicas"},
    };
    struct webhook_bed h;
    webhook_bed_init(&h);
    check_objects(&h, rows, sizeof(rows) / sizeof(rows[0]));
    assert_int_equal(control_bed_patch(&h.c, HPAS "/good", "{'spec':{'maxReplicas':0}}"), 422);
    assert_int_equal(control_bed_patch(&h.c, HPAS "/good", "{'spec':{'maxReplicas':9}}"), 200);
    assert_int_equal(control_bed_patch(&h.c, HVPAS "/good", "{'metadata':{'labels':{'a':'b'}}}"),
                     200);
    webhook_bed_done(&h);
}

/* With its gate open no replica at all is a minimum. */
static void test_the_gate_of_zero_is_asked(void **state)
{
    (void)state;
    static const struct object_row row = {
        HPAS, HPA_TEXT("zero", "'minReplicas':0,'maxReplicas':3," QUEUE_METRIC), 201, NULL, NULL};
    struct webhook_bed h;
    struct td_webhook_options options = webhook_bed_options();
    options.control.scale_to_zero_gate = true;
    webhook_bed_init_with(&h, &options);
    check_objects(&h, &row, 1);
    webhook_bed_done(&h);
}

/* A mode that is going away is taken, with a warning in the answer. */
/* The warning of the answer to a new VPA of Deployment web; NULL: there is none. */
static bool is_warned(struct webhook_bed *h, const char *vpa, const char *says)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_auto_buf body;
    td_buf_init(&body, (size_t)1 << 20);
    td_json_write(edit_bed_parse(&h->c.bed, vpa), &(struct td_json_format){.indent = 0}, &body);
    assert_int_equal(bed_call(&h->c.bed, "POST", WEBHOOK_VPAS, td_buf_str(&body).ptr, &answer),
                     201);
    const char *warning = bed_header(&answer, "Warning");
    return warning && strstr(warning, says);
}

static void test_warnings_reach_the_client(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_auto_buf body;
    td_buf_init(&body, (size_t)1 << 20);
    td_json_write(
        edit_bed_parse(&h.c.bed, VPA_TEXT("auto", ",'updatePolicy':{'updateMode':'Auto'}")),
        &(struct td_json_format){.indent = 0}, &body);
    assert_int_equal(bed_call(&h.c.bed, "POST", WEBHOOK_VPAS, td_buf_str(&body).ptr, &answer), 201);
    assert_non_null(bed_header(&answer, "Warning"));
    assert_non_null(strstr(bed_header(&answer, "Warning"), "mode is deprecated"));
    webhook_bed_done(&h);
}

static void test_what_has_no_effect_is_warned_of(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    assert_true(is_warned(
        &h,
        VPA_TEXT("bound", ",'resourcePolicy':{'containerPolicies':[{'containerName':'*',"
                          "'controlledResources':['cpu'],'minAllowed':{'memory':'1Gi'}}]}"),
        "minAllowed[memory]: has no effect: controlledResources leaves memory out"));
    webhook_bed_done(&h);
}

/* Pods that get the label later would not be evicted: better said now. */
static void test_a_selector_that_no_new_pod_meets_is_warned_of(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    webhook_bed_deploy(&h, "web", ",'role':'follower'", "'containers':[{'name':'c','image':'c'}]");
    control_bed_run(&h.c, TD_SECOND);
#define OF_ROLE(role, mode)                                                                        \
    ",'selector':{'matchLabels':{'role':'" role "'}},'updatePolicy':{'updateMode':'" mode "'}"
    static const char says[] = "the pod template of Deployment web does not meet role=leader";
    assert_true(is_warned(&h, VPA_TEXT("leader", OF_ROLE("leader", "Recreate")), says));
    assert_false(is_warned(&h, VPA_TEXT("follower", OF_ROLE("follower", "Recreate")), says));
    webhook_bed_done(&h);
}

/* ---- Reviews as bytes ---- */

#define REVIEW(request)                                                                            \
    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"           \
    "\"uid\":\"u\"," request "}}"
#define PODS_CREATE                                                                                \
    "\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},\"operation\":"        \
    "\"CREATE\",\"namespace\":\"default\""
#define ALLOWED "\"response\":{\"uid\":\"u\",\"allowed\":true}}"

static void test_what_cannot_be_judged_is_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *answer;  /* its end */
        const char *counted; /* a reason, or NULL */
    } rows[] = {
        {"", "\"response\":{\"uid\":\"\",\"allowed\":true}}", "unreadable-review"},
        {"no", "\"response\":{\"uid\":\"\",\"allowed\":true}}", "unreadable-review"},
        {"[]", "\"response\":{\"uid\":\"\",\"allowed\":true}}", "unreadable-review"},
        {"{}", "\"response\":{\"uid\":\"\",\"allowed\":true}}", "unreadable-review"},
        {"{\"request\":[]}", "\"response\":{\"uid\":\"\",\"allowed\":true}}", "unreadable-review"},
        {"{\"request\":{\"uid\":7}}", "\"response\":{\"uid\":\"\",\"allowed\":true}}", NULL},
        {REVIEW("\"operation\":\"CREATE\""), ALLOWED, NULL},
        {REVIEW("\"resource\":{\"group\":\"apps\",\"resource\":\"deployments\"},\"operation\":"
                "\"CREATE\",\"object\":{}"),
         ALLOWED, NULL},
        {REVIEW(PODS_CREATE), ALLOWED, NULL},
        {REVIEW(PODS_CREATE ",\"object\":null"), ALLOWED, NULL},
        {REVIEW(PODS_CREATE ",\"object\":{}"), ALLOWED, NULL},
        {REVIEW(PODS_CREATE ",\"object\":{\"metadata\":7,\"spec\":\"x\"}"), ALLOWED,
         "unreadable-pod"},
        {REVIEW(PODS_CREATE ",\"subResource\":\"binding\",\"object\":{\"metadata\":7}"), ALLOWED,
         NULL},
        {REVIEW(PODS_CREATE ",\"object\":{\"metadata\":{\"ownerReferences\":[{\"controller\":true,"
                            "\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"gone\","
                            "\"uid\":\"x\"}]},\"spec\":{\"containers\":[{\"name\":\"a\"}]}}"),
         ALLOWED, "owner-unknown"},
        {REVIEW("\"resource\":{\"group\":\"autoscaling.k8s.io\",\"resource\":"
                "\"verticalpodautoscalers\"},\"operation\":\"DELETE\",\"oldObject\":{}"),
         ALLOWED, NULL},
        {REVIEW("\"resource\":{\"group\":\"autoscaling.tandem.dev\",\"resource\":"
                "\"horizontalpodautoscalers\"},\"operation\":\"UPDATE\",\"object\":{\"metadata\":{"
                "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}"),
         ALLOWED, NULL},
    };
    struct webhook_bed h;
    webhook_bed_init(&h);
    webhook_bed_vpa(&h, "web", "web", "", TARGET("250m", "300Mi"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf answer;
        td_buf_init(&answer, (size_t)1 << 20);
        td_webhook_review(h.side.webhook, td_str_from(rows[i].body), &answer);
        if (!td_str_ends_with(td_buf_str(&answer), td_str_from(rows[i].answer))) {
            fail_msg("row %zu: %s", i, td_buf_str(&answer).ptr);
        }
        char line[128];
        (void)snprintf(line, sizeof(line), "tandem_admission_undecided_total{reason=\"%s\"} ",
                       rows[i].counted ? rows[i].counted : "");
        assert_true(!rows[i].counted || webhook_side_counts(&h.side, line));
    }
    webhook_bed_done(&h);
}

/* A VPA that does not decode is refused with the path of its fault. */
static void test_an_unreadable_vpa_is_refused(void **state)
{
    (void)state;
    struct webhook_bed h;
    webhook_bed_init(&h);
    td_auto_buf answer;
    td_buf_init(&answer, (size_t)1 << 20);
    td_webhook_review(
        h.side.webhook,
        TD_STR("{\"request\":{\"uid\":\"u\",\"resource\":{\"group\":\"autoscaling.k8s."
               "io\",\"resource\":\"verticalpodautoscalers\"},\"operation\":\"CREATE\","
               "\"object\":{\"spec\":{\"targetRef\":7}}}}"),
        &answer);
    assert_non_null(strstr(td_buf_str(&answer).ptr, "\"allowed\":false"));
    assert_non_null(strstr(td_buf_str(&answer).ptr, "spec.targetRef"));
    assert_non_null(strstr(td_buf_str(&answer).ptr, "\"code\":422"));
    webhook_bed_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pod_of_a_deployment_is_mutated),
        cmocka_unit_test(test_other_pods_stay_as_they_are),
        cmocka_unit_test(test_roles_get_sizes_of_their_own),
        cmocka_unit_test(test_a_vpa_that_moves_or_goes_is_followed),
        cmocka_unit_test(test_pod_level_resources_are_sized),
        cmocka_unit_test(test_what_has_no_recommendation_is_logged),
        cmocka_unit_test(test_a_container_limit_range_refuses_pod_level_pods),
        cmocka_unit_test(test_pods_of_an_hvpa_get_what_it_decided),
        cmocka_unit_test(test_sizes_of_an_hvpa_stay_within_limit_ranges),
        cmocka_unit_test(test_vpas_are_judged),
        cmocka_unit_test(test_hpas_and_hvpas_are_judged),
        cmocka_unit_test(test_the_gate_of_zero_is_asked),
        cmocka_unit_test(test_warnings_reach_the_client),
        cmocka_unit_test(test_what_has_no_effect_is_warned_of),
        cmocka_unit_test(test_a_selector_that_no_new_pod_meets_is_warned_of),
        cmocka_unit_test(test_what_cannot_be_judged_is_allowed),
        cmocka_unit_test(test_an_unreadable_vpa_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
