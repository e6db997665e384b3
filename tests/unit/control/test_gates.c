/*
 * Every feature gate on and off, at every controller, webhook and command that has it: with the
 * gate off nothing acts by the field, and where it is stored it is reported. Objects are stored
 * before the controllers start, as they would be from a time when the gate was on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/controllers.h"
#include "control/gates.h"
#include "support/explain_bed.h"

#define OWN_HPAS "/apis/autoscaling.tandem.dev/v2" NAMESPACE "horizontalpodautoscalers"
#define PODS "/api/v1" NAMESPACE "pods"
#define CHECKPOINTS "/apis/autoscaling.k8s.io/v1" NAMESPACE "verticalpodautoscalercheckpoints"
#define REGISTRATION                                                                               \
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"                       \
    "tandem-outside-webhook-config"
#define SMALL "20m" /* request of a container that needs 400m */
#define TARGET "{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"

struct gates_bed {
    struct explain_bed e;
    struct td_controllers *controllers;
};

static void gates_review(void *context, td_str review, struct td_buf *answer)
{
    td_webhook_review(context, review, answer);
}

static void gates_start(struct gates_bed *g, const char *gates)
{
    struct td_controllers_options options = td_controllers_options_default();
    struct td_error err = TD_ERROR_INIT;
    options.loop = g->e.c.bed.loop;
    options.transport = explain_bed_transport(&g->e);
    options.horizontal.serves_builtin = true;
    options.horizontal.is_alone = true;
    options.update.interval = 20 * TD_SECOND;
    assert_int_equal(td_gates_set(&options, td_str_from(gates), &err), TD_OK);
    if (td_controllers_new(&options, &g->controllers, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    struct td_webhook *webhook = td_controllers_webhook(g->controllers);
    td_api_answer_reviews(g->e.c.bed.api, td_webhook_url(webhook), gates_review, webhook);
    td_controllers_start(g->controllers);
    control_bed_run(&g->e.c, 10 * TD_SECOND);
}

static void gates_done(struct gates_bed *g)
{
    td_api_answer_reviews(g->e.c.bed.api, TD_STR_EMPTY, NULL, NULL);
    td_controllers_free(g->controllers);
    explain_bed_done(&g->e);
}

/* ---- What there is to see ---- */

static const struct td_json *gates_get(struct gates_bed *g, const char *collection,
                                       const char *name)
{
    char target[256];
    (void)snprintf(target, sizeof(target), "%s/%s", collection, name);
    return control_bed_get(&g->e.c, target);
}

/* "True/Reason", "" when there is no such condition. */
static const char *gates_condition(struct gates_bed *g, const char *collection, const char *name,
                                   const char *type)
{
    const struct td_json *list =
        td_json_get_path(gates_get(g, collection, name), "status.conditions");
    for (size_t i = 0; td_json_at(list, i); i++) {
        const struct td_json *c = td_json_at(list, i);
        td_str status = td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY);
        td_str reason = td_json_get_str(c, TD_STR("reason"), TD_STR_EMPTY);
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY), td_str_from(type))) {
            return td_arena_format(&g->e.c.bed.arena, "%.*s/%.*s", TD_STR_ARG(status),
                                   TD_STR_ARG(reason))
                .ptr;
        }
    }
    return "";
}

static bool gates_has_event(struct gates_bed *g, const char *reason)
{
    const struct td_json *list =
        td_json_get(control_bed_get(&g->e.c, "/api/v1" NAMESPACE "events"), TD_STR("items"));
    for (size_t i = 0; td_json_at(list, i); i++) {
        if (td_str_equal(td_json_get_str(td_json_at(list, i), TD_STR("reason"), TD_STR_EMPTY),
                         td_str_from(reason))) {
            return true;
        }
    }
    return false;
}

/* Is the text somewhere in what the server answers? */
static bool gates_holds(struct gates_bed *g, const char *target, const char *part)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 22);
    td_json_write(control_bed_get(&g->e.c, target), &(struct td_json_format){.indent = 0}, &text);
    return strstr(td_buf_str(&text).ptr, part) != NULL;
}

static int64_t gates_replicas(struct gates_bed *g)
{
    return td_json_get_int64(td_json_get(gates_get(g, DEPLOYMENTS, "web"), TD_STR("spec")),
                             TD_STR("replicas"), -1);
}

/* A text of the first pod's container or of the pod itself. */
static const char *gates_pod(struct gates_bed *g, const char *path)
{
    const struct td_json *items = td_json_get(control_bed_get(&g->e.c, PODS), TD_STR("items"));
    const struct td_json *value = td_json_get_path(td_json_at(items, 0), path);
    if (!value) {
        const struct td_json *containers =
            td_json_get_path(td_json_at(items, 0), "spec.containers");
        value = td_json_get_path(td_json_at(containers, 0), path);
    }
    return td_json_is(value, TD_JSON_TYPE_STRING)
               ? td_arena_copy_str(&g->e.c.bed.arena, value->text).ptr
               : "";
}

/* ---- What is stored ---- */

struct gate_case {
    const char *gate;
    const char *vpa; /* its spec, or NULL */
    const char *hpa;
    bool has_hvpa;
    const char *pod;    /* members of the pod's spec; NULL: none */
    const char *limits; /* of its container; NULL: none */
    const char *use;    /* NULL: 400m of CPU and 300Mi */
    void (*see)(struct gates_bed *g, bool is_on);
};

static void gates_deploy(struct gates_bed *g, const struct gate_case *row)
{
    char text[1024];
    (void)snprintf(
        text, sizeof(text),
        "{'metadata':{'name':'web'},'spec':{'replicas':2,'selector':{'matchLabels':{'app':'web'}},"
        "'template':{'metadata':{'labels':{'app':'web'},'annotations':{'usage.tandem.dev/app':"
        "'%s'}},'spec':{%s'containers':[{'name':'app','image':'nginx','resources':{'requests':{"
        "'cpu':'%s','memory':'200Mi'}%s}}]}}}}",
        row->use ? row->use : "400m,300Mi", row->pod ? row->pod : "", row->vpa ? SMALL : "500m",
        row->limits ? row->limits : "");
    control_bed_create(&g->e.c, DEPLOYMENTS, text);
}

static void gates_hpa(struct gates_bed *g, const char *rest)
{
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "{'apiVersion':'autoscaling.tandem.dev/v2','kind':'HorizontalPodAutoscaler',"
                   "'metadata':{'name':'web'},'spec':{'scaleTargetRef':" TARGET ",'maxReplicas':9,"
                   "'metrics':[{'type':'Resource','resource':{'name':'cpu','target':{'type':"
                   "'Utilization','averageUtilization':50}}}]%s}}",
                   rest);
    control_bed_create(&g->e.c, OWN_HPAS, text);
}

static void gates_hvpa(struct gates_bed *g)
{
    control_bed_create(
        &g->e.c, HVPAS,
        "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'web'},"
        "'spec':{'mode':'HPABiased','targetRef':" TARGET ",'hpaSpec':{'maxReplicas':9,'metrics':[{"
        "'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization',"
        "'averageUtilization':50}}}]},'vpaSpec':{}}}");
}

#define SELECTOR ",'selector':{'matchLabels':{'role':'leader'}}"
#define IN_PLACE ",'updatePolicy':{'updateMode':'InPlace'}"
#define POD_POLICY                                                                                 \
    ",'resourcePolicy':{'podPolicies':{'controlledResources':['cpu','memory'],'maxAllowed':{"      \
    "'cpu':'300m'}}}"
#define CONFIG                                                                                     \
    ",'resourcePolicy':{'containerPolicies':[{'containerName':'*','oomMinBumpUp':'3Gi'}]},'"       \
    "updatePolicy':{'updateMode':'Off'}"
#define BOOST                                                                                      \
    ",'startupBoost':{'cpu':{'type':'Factor','factor':3,'durationSeconds':3600}},'updatePolicy':{" \
    "'updateMode':'Initial'}"

/* ---- The table ---- */

static void see_hvpa_scales(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 20 * TD_MINUTE);
    assert_int_equal(gates_replicas(g) > 2, is_on);
    assert_string_equal(gates_condition(g, HVPAS, "web", "Ready"),
                        is_on ? "True/Deciding" : "False/FeatureGateOff");
    assert_int_equal(gates_has_event(g, "FeatureGateOff"), !is_on);
    assert_int_equal(td_controllers_is_leading(g->controllers, TD_CONTROLLER_HVPA), is_on);
    const struct td_json *items =
        td_json_get(control_bed_get(&g->e.c, CHECKPOINTS), TD_STR("items"));
    assert_int_equal(td_json_at(items, 0) != NULL, is_on); /* the recommender learns for it */
    assert_int_equal(gates_holds(g, REGISTRATION, "\"hvpas\""), is_on);
    /* The Hvpa has resized what runs; now a new pod. */
    (void)control_bed_delete(&g->e.c, PODS);
    control_bed_run(&g->e.c, 5 * TD_SECOND);
    assert_int_equal(strcmp(gates_pod(g, "resources.requests.cpu"), "500m") != 0, is_on);
}

static void see_hvpa_frees_target(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 8 * TD_MINUTE);
    assert_string_equal(gates_condition(g, OWN_HPAS, "web", "AbleToScale"),
                        is_on ? "False/TargetConflict" : "True/ReadyForNewScale");
}

static void see_selector_recommends(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 3 * TD_MINUTE);
    const struct td_json *made = td_json_get_path(gates_get(g, VPAS, "web"),
                                                  "status.recommendation.containerRecommendations");
    assert_int_equal(td_json_at(made, 0) != NULL, !is_on); /* no pod has the label */
    assert_int_equal(gates_has_event(g, "FeatureGateOff"), !is_on);
    /* The updater and new pods. */
    assert_int_equal(strcmp(gates_pod(g, "resources.requests.cpu"), SMALL) != 0, !is_on);
}

static void see_in_place(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 3 * TD_MINUTE);
    assert_int_equal(strcmp(gates_pod(g, "resources.requests.cpu"), SMALL) != 0, is_on);
}

static void see_pod_level(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 5 * TD_MINUTE);
    const struct td_json *vpa = gates_get(g, VPAS, "web");
    assert_int_equal(td_json_get_path(vpa, "status.recommendation.podRecommendation") != NULL,
                     is_on);
    /* Updater and new pods: the stanza of the pod is theirs only with the gate. */
    assert_int_equal(strcmp(gates_pod(g, "spec.resources.requests.cpu"), "30m") != 0, is_on);
}

static void see_boost(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 3 * TD_MINUTE);
    (void)control_bed_delete(&g->e.c, PODS);
    control_bed_run(&g->e.c, 5 * TD_SECOND);
    const struct td_json *vpa = gates_get(g, VPAS, "web");
    const struct td_json *rows =
        td_json_get_path(vpa, "status.recommendation.containerRecommendations");
    td_str target = td_json_get_str(td_json_get(td_json_at(rows, 0), TD_STR("target")),
                                    TD_STR("cpu"), TD_STR_EMPTY);
    td_str got = td_str_from(gates_pod(g, "resources.requests.cpu"));
    assert_int_equal(td_str_equal(got, target), !is_on);
}

/* After an OOM the memory grows by what the policy says, or by what the flag does. */
static void see_config(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 6 * TD_MINUTE);
    const struct td_json *rows = td_json_get_path(gates_get(g, VPAS, "web"),
                                                  "status.recommendation.containerRecommendations");
    struct td_quantity memory;
    td_str text = td_json_get_str(td_json_get(td_json_at(rows, 0), TD_STR("target")),
                                  TD_STR("memory"), TD_STR("0"));
    assert_int_equal(td_quantity_parse(&g->e.c.bed.arena, text, &memory, NULL), TD_OK);
    assert_int_equal(td_quantity_value(&memory) > INT64_C(3) << 30, is_on);
    assert_int_equal(gates_has_event(g, "FeatureGateOff"), !is_on);
}

static void see_strategy(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 3 * TD_MINUTE);
    assert_int_equal(gates_has_event(g, "SelectionStrategyActive"), is_on);
    assert_int_equal(gates_has_event(g, "FeatureGateOff"), !is_on);
}

/* 80 % of use against a target of 50 %. */
static void see_tolerance(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 8 * TD_MINUTE);
    assert_int_equal(gates_replicas(g) == 2, is_on);
}

/* Nothing is used, so nothing is needed: with the gate off one replica stays. */
static void see_zero(struct gates_bed *g, bool is_on)
{
    control_bed_run(&g->e.c, 15 * TD_MINUTE);
    assert_true(is_on || gates_replicas(g) == 1);
}

static const struct gate_case gate_cases[] = {
    {.gate = "Hvpa", .has_hvpa = true, .use = "900m,300Mi", .see = see_hvpa_scales},
    {.gate = "Hvpa", .has_hvpa = true, .hpa = "", .see = see_hvpa_frees_target},
    {.gate = "HeterogeneousWorkloads", .vpa = SELECTOR, .see = see_selector_recommends},
    {.gate = "InPlace", .vpa = IN_PLACE, .see = see_in_place},
    {.gate = "PodLevelResources",
     .vpa = POD_POLICY,
     .pod = "'resources':{'requests':{'cpu':'30m','memory':'1Gi'}},",
     .see = see_pod_level},
    {.gate = "CPUStartupBoost", .vpa = BOOST, .see = see_boost},
    {.gate = "PerVPAConfig",
     .vpa = CONFIG,
     .limits = ",'limits':{'memory':'250Mi'}",
     .see = see_config},
    {.gate = "HPASelectionStrategy",
     .hpa = ",'selectionStrategy':'OwnerReference'",
     .see = see_strategy},
    {.gate = "HPAConfigurableTolerance",
     .hpa = ",'behavior':{'scaleUp':{'tolerance':'900m'},'scaleDown':{'tolerance':'900m'}}",
     .see = see_tolerance},
    {.gate = "HPAScaleToZero", .hpa = ",'minReplicas':0", .use = "0m,300Mi", .see = see_zero},
};

/* The condition says it, and so does explain, told of the gates that the controllers have. */
static void gates_check_report(struct gates_bed *g, const struct gate_case *row, bool is_on)
{
    const char *kind = row->vpa ? "vpa" : row->has_hvpa ? "hvpa" : "hpa";
    const char *said = explain_bed_ask(&g->e, kind, "web");
    if ((strstr(said, "feature gate") != NULL) == is_on) {
        fail_msg("%s: %s", row->gate, said);
    }
    if (!row->has_hvpa) {
        assert_string_equal(gates_condition(g, row->vpa ? VPAS : OWN_HPAS, "web", "FeatureGateOff"),
                            is_on ? "" : "True/FieldIgnored");
        return;
    }
    said = explain_bed_ask(&g->e, "deployment", "web");
    explain_expect(said, is_on ? " Hvpa web: tandem explain hvpa web -n default\n"
                               : "\n  ignored     Hvpa web: the feature gate Hvpa is off\n");
    explain_expect(sizes_ask(&g->e, "default"), is_on ? " hvpa/web " : " -  ");
}

static void test_a_gate_that_is_off_means_off(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(gate_cases) / sizeof(gate_cases[0]); i++) {
        const struct gate_case *row = &gate_cases[i / 2];
        struct gates_bed g = {.controllers = NULL};
        char text[1024];
        char gates[64];
        bool is_on = i % 2 == 1;
        explain_bed_init(&g.e);
        gates_deploy(&g, row);
        if (row->vpa) {
            (void)snprintf(text, sizeof(text),
                           "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                           "'metadata':{'name':'web'},'spec':{'targetRef':" TARGET "%s}}",
                           row->vpa);
            control_bed_create(&g.e.c, VPAS, text);
        }
        if (row->hpa) {
            gates_hpa(&g, row->hpa);
        }
        if (row->has_hvpa) {
            gates_hvpa(&g);
        }
        (void)snprintf(gates, sizeof(gates), "%s=%s", row->gate, is_on ? "true" : "false");
        gates_start(&g, gates);
        row->see(&g, is_on);
        g.e.gates = gates;
        gates_check_report(&g, row, is_on);
        gates_done(&g);
    }
}

/* Where selectors do not count, two VPAs on one target are in each other's way, and the younger one
 * says whose the pods are. */
static void test_the_younger_names_the_elder(void **state)
{
    (void)state;
    struct gates_bed g = {.controllers = NULL};
    explain_bed_init(&g.e);
    gates_deploy(&g, &(struct gate_case){.vpa = ""});
    explain_bed_vpa(&g.e, "elder", "web", ",'selector':{'matchLabels':{'role':'a'}}");
    control_bed_run(&g.e.c, 2 * TD_SECOND);
    explain_bed_vpa(&g.e, "a-younger", "web", ",'selector':{'matchLabels':{'role':'b'}}");
    gates_start(&g, "HeterogeneousWorkloads=false");
    control_bed_run(&g.e.c, 2 * TD_MINUTE);
    assert_string_equal(gates_condition(&g, VPAS, "elder", "ConflictingSelector"), "");
    assert_string_equal(gates_condition(&g, VPAS, "a-younger", "ConflictingSelector"),
                        "True/OverlapsOlder");
    g.e.gates = "HeterogeneousWorkloads=false";
    explain_expect(explain_bed_ask(&g.e, "vpa", "a-younger"),
                   "the older VPA default/elder has the same target and manages all its pods");
    gates_done(&g);
}

/* ---- The webhook's word about objects ---- */

#define OF_VPA(spec)                                                                               \
    VPAS, "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler','metadata':{"      \
          "'name':'new'},'spec':{'targetRef':" TARGET spec "}}"
#define OF_HPA(spec)                                                                               \
    OWN_HPAS, "{'apiVersion':'autoscaling.tandem.dev/v2','kind':'HorizontalPodAutoscaler',"        \
              "'metadata':{'name':'new'},'spec':{'scaleTargetRef':" TARGET ",'maxReplicas':9,"     \
              "'metrics':[{'type':'External','external':{'metric':{'name':'q'},'target':{'type':"  \
              "'Value','value':'5'}}}]" spec "}}"

static const struct {
    const char *gate;
    const char *collection;
    const char *object;
    int status_off;
    int status_on;
    bool warns; /* with the gate off */
} review_cases[] = {
    {"CPUStartupBoost", OF_VPA(BOOST), 422, 201, false},
    {"InPlace", OF_VPA(IN_PLACE), 422, 201, false},
    {"PerVPAConfig", OF_VPA(CONFIG), 422, 201, false},
    {"HeterogeneousWorkloads", OF_VPA(SELECTOR), 201, 422, true}, /* 'old' selects all pods */
    {"PodLevelResources", OF_VPA(POD_POLICY), 201, 201, true},
    {"HPASelectionStrategy", OF_HPA(",'selectionStrategy':'OwnerReference'"), 201, 201, true},
    {"HPAConfigurableTolerance", OF_HPA(",'behavior':{'scaleUp':{'tolerance':'900m'}}"), 201, 201,
     true},
    {"HPAScaleToZero", OF_HPA(",'minReplicas':0"), 422, 201, false},
    {"Hvpa", HVPAS,
     "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'new'},'spec':{"
     "'targetRef':" TARGET ",'hpaSpec':{'maxReplicas':0}}}",
     201, 422, false}, /* no webhook is called */
};

static void test_the_webhook_judges_by_its_gates(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(review_cases) / sizeof(review_cases[0]); i++) {
        struct gates_bed g = {.controllers = NULL};
        char gates[64];
        bool is_on = i % 2 == 1;
        (void)snprintf(gates, sizeof(gates), "%s=%s", review_cases[i / 2].gate,
                       is_on ? "true" : "false");
        explain_bed_init(&g.e);
        gates_start(&g, gates);
        if (strcmp(review_cases[i / 2].gate, "HeterogeneousWorkloads") == 0) {
            explain_bed_vpa(&g.e, "old", "web", "");
            control_bed_run(&g.e.c, TD_SECOND);
        }
        bed_auto_answer answer;
        bed_answer_init(&answer);
        td_auto_buf body;
        td_buf_init(&body, (size_t)1 << 20);
        td_json_write(edit_bed_parse(&g.e.c.bed, review_cases[i / 2].object),
                      &(struct td_json_format){.indent = 0}, &body);
        int status = bed_call(&g.e.c.bed, "POST", review_cases[i / 2].collection,
                              td_buf_str(&body).ptr, &answer);
        const char *warning = bed_header(&answer, "Warning");
        bool is_warned = warning && strstr(warning, "feature gate") != NULL;
        bool is_right = is_on ? status == review_cases[i / 2].status_on && !is_warned
                              : status == review_cases[i / 2].status_off &&
                                    is_warned == review_cases[i / 2].warns;
        if (!is_right) {
            fail_msg("%s: %d %s %s", gates, status, warning ? warning : "",
                     td_buf_str(&answer.body).ptr);
        }
        gates_done(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gate_that_is_off_means_off),
        cmocka_unit_test(test_the_younger_names_the_elder),
        cmocka_unit_test(test_the_webhook_judges_by_its_gates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
