/* Hvpa: bad input field by field, rules, defaults, both forms, status, CRD. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/hvpa/hvpa.h"
#include "base/error.h"
#include "base/limits.h"
#include "support/hvpa_normal_form.h"
#include "support/quoted_json.h"
#include "support/wrong_values.h"

#define ARENA_BYTES ((size_t)256 << 20)

#define TARGET "{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"
#define BASE_HPA "'hpaSpec':{'minReplicas':2,'maxReplicas':10}"
#define BASE_VPA "'vpaSpec':{}"
#define BASE "'targetRef':" TARGET "," BASE_HPA "," BASE_VPA

static struct td_json *object_of(struct td_arena *arena, const char *spec)
{
    td_str text = td_arena_format(arena,
                                  "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa',"
                                  "'metadata':{'name':'web','namespace':'shop','generation':3},"
                                  "'spec':{%s}}",
                                  spec);
    return quoted_json(arena, text.ptr);
}

static struct td_hvpa decode(struct td_arena *arena, const char *spec)
{
    struct td_hvpa hvpa;
    struct td_error err = TD_ERROR_INIT;
    if (td_hvpa_decode(arena, object_of(arena, spec), &hvpa, NULL, &err) < 0) {
        fail_msg("%s in %s", err.message, spec);
    }
    return hvpa;
}

/* --- every field wrong in turn --- */

#define PATH_BYTES 512

/* Put a value at a path such as "spec.hpaSpec.metrics[0].type"; what is missing on the way is
 * made. */
static void put(struct td_arena *arena, struct td_json *object, const char *path,
                struct td_json *value)
{
    char step[PATH_BYTES];
    size_t end = strcspn(path, ".[");
    (void)snprintf(step, sizeof(step), "%.*s", (int)end, path);
    td_str key = td_arena_copy_str(arena, td_str_from(step));
    const char *rest = path + end;
    if (*rest == '\0') {
        td_json_set(arena, object, key, value);
        return;
    }
    if (*rest == '.') {
        put(arena, td_json_ensure_object(arena, object, key), rest + 1, value);
        return;
    }
    struct td_json *list = td_json_new_array(arena);
    rest += strlen("[0]");
    struct td_json *item = *rest == '\0' ? value : td_json_new_object(arena);
    td_json_append(list, item);
    td_json_set(arena, object, key, list);
    if (*rest == '.') {
        put(arena, item, rest + 1, value);
    }
}

/* A spec inside a part that is no object leaves the flat form. */
static bool is_form(const char *path)
{
    return strcmp(path, "spec.hpaSpec.spec") == 0 || strcmp(path, "spec.vpaSpec.spec") == 0;
}

static void expect_refused(const char *unused, const struct wrong_way *way, const char *value)
{
    (void)unused;
    const char *path = way->path;
    if (is_form(path)) {
        return;
    }
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = object_of(&arena, BASE);
    struct td_json *wrong = quoted_json(&arena, value);
    put(&arena, object, path, wrong);
    struct td_hvpa hvpa = {.replicas = 77};
    struct td_hvpa_findings findings;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_hvpa_decode(&arena, object, &hvpa, &findings, &err), TD_INVALID);
    assert_int_equal(hvpa.replicas, 77); /* nothing is handed out on failure */
    assert_true(findings.errors.count > 0);
    assert_false(findings.is_target_mismatch);
    td_auto_buf shown;
    td_buf_init(&shown, 1 << 16);
    td_json_write(wrong, &(struct td_json_format){.indent = 0}, &shown);
    td_str expected =
        td_arena_format(&arena, "%s: Invalid value: %.*s: ", path, TD_STR_ARG(td_buf_str(&shown)));
    if (strncmp(err.message, expected.ptr, expected.len) != 0) {
        fail_msg("'%s' does not begin with '%s'", err.message, expected.ptr);
    }
}

/* What an object form holds beside its spec is not a matter of types. */
static bool is_beside(const char *path)
{
    static const char *const parts[] = {"spec.hpaSpec.", "spec.vpaSpec."};
    static const char *const names[] = {"apiVersion", "kind", "metadata", "status"};
    for (size_t i = 0; i < 2; i++) {
        size_t len = strlen(parts[i]);
        for (size_t j = 0; strncmp(path, parts[i], len) == 0 && j < 4; j++) {
            if (strcmp(path + len, names[j]) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Every field of the spec, both autoscalers in both forms included, with values of other types. */
static void test_every_field_of_a_wrong_type_is_named(void **state)
{
    (void)state;
    const struct td_schema_type *spec = td_schema_member(td_hvpa_schema(), TD_STR("spec"));
    struct wrong_walk walk = {.refuse = expect_refused, .passes_over = is_beside};
    struct wrong_way way = {.path = "spec"};
    wrong_walk_type(&walk, spec, &way, 0);
    assert_true(walk.tried > 1000);
}

/* --- rules --- */

struct rule_row {
    const char *spec;
    const char *message; /* how it begins */
};

#define HPA_OF(members) "'targetRef':" TARGET ",'hpaSpec':{" members "}," BASE_VPA
#define VPA_OF(members) "'targetRef':" TARGET "," BASE_HPA ",'vpaSpec':{" members "}"
#define POLICY_OF(members) VPA_OF("'resourcePolicy':{'containerPolicies':[{" members "}]}")
#define WINDOW_OF(begin, end) BASE ",'maintenanceTimeWindow':{'begin':'" begin "','end':'" end "'}"
#define MIN_OF_0 "must be greater than or equal to 0"
#define MAX_METRIC(type, target)                                                                   \
    "'targetRef':" TARGET ",'ratioBasedScalingSpec':{'capacityPolicy':'Max'}," BASE_VPA            \
    ",'hpaSpec':{'maxReplicas':5,'metrics':[{'type':'" type "'," target "}]}"

static const struct rule_row rule_rows[] = {
    {"", "spec: Required value: hpaSpec, vpaSpec or both must be there"},
    {"'hpaSpec':{},'targetRef':" TARGET, "spec: Required value: "},
    {"'hpaSpec':null,'vpaSpec':null,'targetRef':" TARGET, "spec: Required value: "},
    {BASE_HPA "," BASE_VPA, "spec.targetRef: Required value: "},
    {BASE_HPA ",'targetRef':{'kind':'','name':''}", "spec.targetRef: Required value: "},
    {BASE_HPA ",'targetRef':{'name':'web'}", "spec.targetRef.kind: Required value"},
    {BASE_HPA ",'targetRef':{'kind':'Deployment'}", "spec.targetRef.name: Required value"},
    {BASE_HPA ",'targetRef':{'kind':'a/b','name':'web'}",
     "spec.targetRef.kind: Invalid value: \"a/b\": "},
    {BASE_HPA ",'targetRef':{'kind':'Deployment','name':'..'}",
     "spec.targetRef.name: Invalid value: \"..\": "},
    {BASE_HPA ",'targetRef':{'apiVersion':'a/b/c','kind':'D','name':'x'}",
     "spec.targetRef.apiVersion: Invalid value: \"a/b/c\": "},
    {"'hpaSpec':{'maxReplicas':3,'scaleTargetRef':{'name':'web'}}",
     "spec.hpaSpec.scaleTargetRef.kind: Required value"},
    {"'targetRef':" TARGET ",'hpaSpec':{'maxReplicas':3,"
     "'scaleTargetRef':{'kind':'Deployment','name':'api'}}",
     "TargetMismatch: spec.hpaSpec.scaleTargetRef.name: Invalid value: \"api\": differs from "
     "spec.targetRef, which has \"web\""},
    {"'hpaSpec':{'spec':{'maxReplicas':3,'scaleTargetRef':" TARGET "}},"
     "'vpaSpec':{'spec':{'targetRef':{'kind':'StatefulSet','name':'web'}}}",
     "TargetMismatch: spec.vpaSpec.spec.targetRef.kind: Invalid value: \"StatefulSet\": differs "
     "from spec.hpaSpec.spec.scaleTargetRef"},
    {BASE ",'mode':'HPApreferred'", "spec.mode: Unsupported value: \"HPApreferred\": supported "
                                    "values: \"HPAPreferred\", \"HPABiased\", \"VPABiased\", "
                                    "\"Mixed\", \"RatioBased\""},
    {BASE ",'initialScaling':'Vertical'", "spec.initialScaling: Unsupported value: \"Vertical\""},
    {BASE ",'finalScaling':'none'", "spec.finalScaling: Unsupported value: \"none\""},
    {BASE ",'coupling':'none'", "spec.coupling: Unsupported value: \"none\""},
    {BASE ",'sources':'External'", "spec.sources: Unsupported value: \"External\""},
    {BASE ",'replicas':-1", "spec.replicas: Invalid value: -1: " MIN_OF_0},
    {BASE ",'ratioBasedScalingSpec':{'vToHScalingRatio':-0.5}",
     "spec.ratioBasedScalingSpec.vToHScalingRatio: Invalid value: -0.5: must be between 0 and "},
    {BASE ",'ratioBasedScalingSpec':{'vToHScalingRatio':1000001}",
     "spec.ratioBasedScalingSpec.vToHScalingRatio: Invalid value: 1000001: "},
    {BASE ",'ratioBasedScalingSpec':{'vToHScalingRatio':1e999}",
     "spec.ratioBasedScalingSpec.vToHScalingRatio: Invalid value: 1e999: "},
    {BASE ",'ratioBasedScalingSpec':{'startReplicaCount':1}",
     "spec.ratioBasedScalingSpec.startReplicaCount: Invalid value: 1: must be between 2 and 10"},
    {BASE ",'ratioBasedScalingSpec':{'startReplicaCount':11}",
     "spec.ratioBasedScalingSpec.startReplicaCount: Invalid value: 11: must be between 2 and 10"},
    {BASE ",'ratioBasedScalingSpec':{'startReplicaCount':-3}",
     "spec.ratioBasedScalingSpec.startReplicaCount: Invalid value: -3: "},
    {BASE ",'ratioBasedScalingSpec':{'startReplicaCount':5,'finishReplicaCount':4}",
     "spec.ratioBasedScalingSpec.finishReplicaCount: Invalid value: 4: must be between 5 and 10"},
    {BASE ",'ratioBasedScalingSpec':{'finishReplicaCount':11}",
     "spec.ratioBasedScalingSpec.finishReplicaCount: Invalid value: 11: must be between 2 and 10"},
    {BASE ",'ratioBasedScalingSpec':{'capacityPolicy':'Min'}",
     "spec.ratioBasedScalingSpec.capacityPolicy: Unsupported value: \"Min\": supported values: "
     "\"Blend\", \"Max\""},
    {MAX_METRIC("Resource", "'resource':{'name':'cpu','target':{'type':'AverageValue',"
                            "'averageValue':'1'}}"),
     "spec.ratioBasedScalingSpec.capacityPolicy: Invalid value: \"Max\": needs every metric to be "
     "a Utilization of a resource that the VPA controls; spec.hpaSpec.metrics[0] is not"},
    {MAX_METRIC("External", "'external':{'metric':{'name':'q'},'target':{'type':'Value',"
                            "'value':'1'}}"),
     "spec.ratioBasedScalingSpec.capacityPolicy: Invalid value: \"Max\": "},
    {BASE ",'mixed':{'preference':'both'}", "spec.mixed.preference: Unsupported value: \"both\""},
    {BASE ",'mixed':{'horizontalThreshold':-1}",
     "spec.mixed.horizontalThreshold: Invalid value: -1: " MIN_OF_0},
    {BASE ",'mixed':{'patienceSeconds':-1}", "spec.mixed.patienceSeconds: Invalid value: -1: "},
    {BASE ",'mixed':{'verticalThreshold':{'cpu':{'value':'-1m'}}}",
     "spec.mixed.verticalThreshold.cpu.value: Invalid value: \"-1m\": " MIN_OF_0},
    {BASE ",'mixed':{'verticalThreshold':{'memory':{'percentage':-1}}}",
     "spec.mixed.verticalThreshold.memory.percentage: Invalid value: -1: " MIN_OF_0},
    {HPA_OF("'minReplicas':0,'maxReplicas':3"), "spec.hpaSpec.minReplicas: Invalid value: 0: "},
    {HPA_OF("'minReplicas':5,'maxReplicas':3"), "spec.hpaSpec.maxReplicas: Invalid value: 3: "},
    {HPA_OF("'minReplicas':1"), "spec.hpaSpec.maxReplicas: Invalid value: 0: "},
    {HPA_OF("'spec':{'maxReplicas':0}"), "spec.hpaSpec.spec.maxReplicas: Invalid value: 0: "},
    {HPA_OF("'maxReplicas':3,'targetCPUUtilizationPercentage':0"),
     "spec.hpaSpec.targetCPUUtilizationPercentage: Invalid value: 0: "},
    {HPA_OF("'maxReplicas':3,'metrics':[{'type':'Cpu'}]"),
     "spec.hpaSpec.metrics[0].type: Unsupported value: \"Cpu\""},
    {HPA_OF("'maxReplicas':3,'behavior':{'scaleUp':{'stabilizationWindowSeconds':-1}}"),
     "spec.hpaSpec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: "},
    {HPA_OF("'kind':'HPA','spec':{'maxReplicas':3}"),
     "spec.hpaSpec.kind: Unsupported value: \"HPA\""},
    {HPA_OF("'apiVersion':'autoscaling/v3','spec':{'maxReplicas':3}"),
     "spec.hpaSpec.apiVersion: Unsupported value: \"autoscaling/v3\""},
    {VPA_OF("'kind':'VPA','spec':{}"), "spec.vpaSpec.kind: Unsupported value: \"VPA\""},
    {VPA_OF("'apiVersion':'v1','spec':{}"), "spec.vpaSpec.apiVersion: Unsupported value: \"v1\""},
    {POLICY_OF("'containerName':'a','minAllowed':{'cpu':'2'},'maxAllowed':{'cpu':'1'}"),
     "spec.vpaSpec.resourcePolicy.containerPolicies[0].maxAllowed.cpu: Invalid value: \"1\": "},
    {POLICY_OF("'containerName':'a','minAllowed':{'memory':'-1'}"),
     "spec.vpaSpec.resourcePolicy.containerPolicies[0].minAllowed.memory: Invalid value: \"-1\""},
    {POLICY_OF("'containerName':'a','controlledValues':'All'"),
     "spec.vpaSpec.resourcePolicy.containerPolicies[0].controlledValues: Unsupported value: "},
    {POLICY_OF("'containerName':'a','mode':'On'"),
     "spec.vpaSpec.resourcePolicy.containerPolicies[0].mode: Unsupported value: \"On\""},
    {POLICY_OF("'containerName':'a','controlledResources':['gpu']"),
     "spec.vpaSpec.resourcePolicy.containerPolicies[0].controlledResources[0]: Unsupported"},
    {POLICY_OF("'minAllowed':{}"),
     "spec.vpaSpec.resourcePolicy.containerPolicies[0].containerName: Required value"},
    {VPA_OF("'selector':{'matchLabels':{'a':'b'}}"),
     "spec.vpaSpec.selector: Forbidden: RatioBased needs pods of one size"},
    {VPA_OF("'selector':{'matchExpressions':[{'key':'a','operator':'Near'}]}"),
     "spec.vpaSpec.selector"},
    {BASE ",'vertical':{'tolerancePercent':101}",
     "spec.vertical.tolerancePercent: Invalid value: 101: must be between 0 and 100"},
    {BASE ",'vertical':{'settleSeconds':-1}", "spec.vertical.settleSeconds: Invalid value: -1: "},
    {BASE ",'vertical':{'actuation':'Rollout'}",
     "spec.vertical.actuation: Unsupported value: \"Rollout\": supported values: \"Pods\", "
     "\"Template\""},
    {BASE ",'vertical':{'limitsRequestsGapScaleParams':{'cpu':{'value':'-1'}}}",
     "spec.vertical.limitsRequestsGapScaleParams.cpu.value: Invalid value: \"-1\": " MIN_OF_0},
    {BASE ",'vertical':{'scaleUp':{'stabilizationDuration':'-3m'}}",
     "spec.vertical.scaleUp.stabilizationDuration: Invalid value: \"-3m\": " MIN_OF_0},
    {BASE ",'vertical':{'scaleDown':{'minChange':{'memory':{'percentage':-5}}}}",
     "spec.vertical.scaleDown.minChange.memory.percentage: Invalid value: -5: " MIN_OF_0},
    {BASE ",'horizontal':{'scaleUp':{'updatePolicy':{'updateMode':'auto'}}}",
     "spec.horizontal.scaleUp.updatePolicy.updateMode: Unsupported value: \"auto\""},
    {BASE ",'horizontal':{'scaleDown':{'updatePolicy':{'updateMode':'MaintenanceWindow'}}}",
     "spec.horizontal.scaleDown.updatePolicy.updateMode: Invalid value: \"MaintenanceWindow\": "
     "needs spec.maintenanceTimeWindow"},
    {BASE ",'maintenanceTimeWindow':{'begin':'220000+0100'}",
     "spec.maintenanceTimeWindow.end: Required value: "},
    {WINDOW_OF("220000", "230000+0100"), "spec.maintenanceTimeWindow.begin: Invalid value: \"220"},
    {WINDOW_OF("22:00:00+01", "230000+0100"), "spec.maintenanceTimeWindow.begin: Invalid value: "},
    {WINDOW_OF("240000+0100", "230000+0100"), "spec.maintenanceTimeWindow.begin: Invalid value: "},
    {WINDOW_OF("220000+0100", "236000+0100"), "spec.maintenanceTimeWindow.end: Invalid value: "},
    {WINDOW_OF("220000+0100", "235960+0100"), "spec.maintenanceTimeWindow.end: Invalid value: "},
    {WINDOW_OF("220000+0100", "230000+2400"), "spec.maintenanceTimeWindow.end: Invalid value: "},
    {WINDOW_OF("220000+0100", "230000+0060"), "spec.maintenanceTimeWindow.end: Invalid value: "},
    {WINDOW_OF("220000+0100", "210000+0000"),
     "spec.maintenanceTimeWindow: Invalid value: \"220000+0100\": begin and end must differ"},
};

/* Each broken rule is named by its path and value. */
static void test_each_rule_names_path_and_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rule_rows) / sizeof(rule_rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct rule_row *row = &rule_rows[i];
        struct td_hvpa hvpa;
        struct td_hvpa_findings findings;
        struct td_error err = TD_ERROR_INIT;
        if (td_hvpa_decode(&arena, object_of(&arena, row->spec), &hvpa, &findings, &err) !=
                TD_INVALID ||
            strncmp(err.message, row->message, strlen(row->message)) != 0) {
            fail_msg("{%s}: '%s' does not begin with '%s'", row->spec, err.message, row->message);
        }
        assert_int_equal(findings.is_target_mismatch, strncmp(row->message, "TargetM", 7) == 0);
    }
}

/* One look at a file finds all its faults; a mismatch among others is an invalid spec. */
static void test_all_faults_are_collected(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings;
    struct td_json *object =
        object_of(&arena, "'mode':'x','coupling':'y','targetRef':" TARGET
                          ",'hpaSpec':{'minReplicas':3,'maxReplicas':1,'scaleTargetRef':"
                          "{'kind':'Deployment','name':'api'}},'vertical':{'tolerancePercent':-1}");
    assert_int_equal(td_hvpa_decode(&arena, object, &hvpa, &findings, NULL), TD_INVALID);
    assert_int_equal(findings.errors.count, 5);
    assert_false(findings.is_target_mismatch);
}

/* Metrics are bounded, and a flood of faults in policies costs no more than a list of them. */
static void test_floods_are_bounded(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_auto_buf text;
    td_buf_init(&text, 1 << 24);
    for (int i = 0; i < 101; i++) {
        (void)td_buf_append_format(&text,
                                   "%s{'type':'Pods','pods':{'metric':{'name':'m%d'},'target':"
                                   "{'type':'AverageValue','averageValue':'1'}}}",
                                   i > 0 ? "," : "", i);
    }
    td_str spec = td_arena_format(
        &arena, "'targetRef':" TARGET ",'hpaSpec':{'maxReplicas':3,'metrics':[%s]}", text.ptr);
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_hvpa_decode(&arena, object_of(&arena, spec.ptr), &hvpa, NULL, &err),
                     TD_INVALID);
    assert_string_equal(err.message,
                        "spec.hpaSpec.metrics: Too many: 101: must have at most 100 items");
    td_buf_reset(&text);
    for (int i = 0; i < 20000; i++) {
        (void)td_buf_append_format(&text, "%s{'containerName':'c%d','mode':'x'}", i > 0 ? "," : "",
                                   i);
    }
    spec = td_arena_format(&arena,
                           BASE_HPA ",'targetRef':" TARGET
                                    ",'vpaSpec':{'resourcePolicy':{'containerPolicies':[%s]}}",
                           text.ptr);
    assert_int_equal(td_hvpa_decode(&arena, object_of(&arena, spec.ptr), &hvpa, &findings, &err),
                     TD_INVALID);
    assert_in_range(findings.errors.count, 1, 2 * TD_STRICT_PROBLEMS_MAX);
}

/* --- what is accepted --- */

/* The proposal's own example of ratio based scaling, in the object form that its types ask for. */
static void test_proposal_example(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_hvpa hvpa = decode(
        &arena, "'initialScaling':'horizontal','finalScaling':'vertical','ratioBasedScalingSpec':"
                "{'vToHScalingRatio':0.5,'startReplicaCount':3,'finishReplicaCount':7},"
                "'hpaSpec':{'metadata':{'creationTimestamp':null},'spec':{'scaleTargetRef':" TARGET
                ",'minReplicas':1,'maxReplicas':10,'targetCPUUtilizationPercentage':60},'status':"
                "{'currentReplicas':0,'desiredReplicas':0}},'vpaSpec':{'metadata':{},'spec':"
                "{'targetRef':" TARGET ",'updatePolicy':{'updateMode':'Recreate','minReplicas':2},"
                "'resourcePolicy':{'containerPolicies':[{'containerName':'web','minAllowed':"
                "{'memory':'400Mi'},'maxAllowed':{'memory':'3000Mi'}}]}},'status':{}}");
    assert_int_equal(hvpa.mode, TD_HVPA_RATIO_BASED);
    assert_int_equal(hvpa.coupling, TD_HVPA_RECONCILE);
    assert_int_equal(hvpa.initial_scaling, TD_HVPA_HORIZONTAL);
    assert_int_equal(hvpa.final_scaling, TD_HVPA_VERTICAL);
    assert_true(hvpa.ratio.v_to_h == 0.5);
    assert_int_equal(hvpa.ratio.start, 3);
    assert_int_equal(hvpa.ratio.finish, 7);
    assert_int_equal(hvpa.hpa.metric_count, 1);
    assert_int_equal(hvpa.hpa.metrics[0].target.average_utilization, 60);
    assert_int_equal(hvpa.hpa.max_replicas, 10);
    assert_int_equal(hvpa.vpa.mode, TD_VPA_OFF);
    assert_int_equal(hvpa.vpa.min_replicas, 2);
    assert_int_equal(hvpa.vpa.policy.container_count, 1);
    assert_true(td_str_equal(hvpa.target.name, TD_STR("web")));
    assert_true(td_str_equal(hvpa.hpa.meta.name, TD_STR("web")));
    assert_true(td_str_equal(hvpa.vpa.target_name, TD_STR("web")));
    assert_int_equal(hvpa.meta.generation, 3);
}

/* An object that says as little as possible has every default. */
static void test_defaults(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_hvpa hvpa = decode(&arena, BASE ",'mode':'','ratioBasedScalingSpec':null");
    assert_int_equal(hvpa.mode, TD_HVPA_RATIO_BASED);
    assert_true(hvpa.ratio.v_to_h == 1.0);
    assert_true(hvpa.ratio.overflow);
    assert_false(hvpa.ratio.has_start);
    assert_false(hvpa.ratio.has_finish);
    assert_int_equal(hvpa.ratio.capacity, TD_HVPA_BLEND);
    assert_int_equal(hvpa.mixed.horizontal_threshold, 0);
    assert_int_equal(decode(&arena, BASE ",'mode':'Mixed'").mixed.horizontal_threshold, 1);
    assert_int_equal(hvpa.mixed.patience_seconds, 300);
    assert_int_equal(hvpa.mixed.vertical_threshold[TD_HVPA_MEMORY].percentage, 10);
    assert_false(hvpa.mixed.vertical_threshold[TD_HVPA_MEMORY].has_value);
    assert_int_equal(hvpa.horizontal_up.stabilization, 0);
    assert_int_equal(hvpa.horizontal_down.stabilization, 0);
    assert_int_equal(hvpa.vertical_up.stabilization, 3 * TD_MINUTE);
    assert_int_equal(hvpa.vertical_down.stabilization, 15 * TD_MINUTE);
    assert_false(hvpa.vertical_up.min_change[TD_HVPA_CPU].has_percentage);
    assert_int_equal(hvpa.tolerance_percent, 10);
    assert_int_equal(hvpa.settle_seconds, 60);
    assert_int_equal(hvpa.actuation, TD_HVPA_ACTUATE_PODS);
    assert_int_equal(hvpa.sources, TD_HVPA_INTERNAL);
    assert_true(hvpa.opposing_guard);
    assert_false(hvpa.paused);
    assert_false(hvpa.window.is_set);
    assert_int_equal(hvpa.hpa.metrics[0].target.average_utilization, 80);
    hvpa = decode(&arena, BASE ",'mode':'Mixed'");
    assert_int_equal(hvpa.coupling, TD_HVPA_REFERENCE);
}

/* Amounts are in milli cpu and in bytes; zero counts of replicas are none. */
static void test_units_and_zeros(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_hvpa hvpa =
        decode(&arena, BASE ",'mixed':{'verticalThreshold':{'cpu':{'value':'0.25'},'memory':"
                            "{'value':'200Mi','percentage':20}}},'ratioBasedScalingSpec':"
                            "{'vToHScalingRatio':0,'startReplicaCount':0,'finishReplicaCount':0}");
    assert_int_equal(hvpa.mixed.vertical_threshold[TD_HVPA_CPU].amount, 250);
    assert_false(hvpa.mixed.vertical_threshold[TD_HVPA_CPU].has_percentage);
    assert_int_equal(hvpa.mixed.vertical_threshold[TD_HVPA_MEMORY].amount, 200LL << 20);
    assert_int_equal(hvpa.mixed.vertical_threshold[TD_HVPA_MEMORY].percentage, 20);
    assert_true(hvpa.ratio.v_to_h == 0.0);
    assert_false(hvpa.ratio.has_start);
    assert_false(hvpa.ratio.has_finish);
}

struct warning_row {
    const char *spec;
    const char *field; /* NULL: no warning */
};

/* What is accepted but has no effect is said. */
static void test_warnings(void **state)
{
    (void)state;
    static const struct warning_row rows[] = {
        {BASE, NULL},
        {HPA_OF("'maxReplicas':3,'targetCPUUtilizationPercentage':50,'metrics':[]"), NULL},
        {HPA_OF("'maxReplicas':3,'targetCPUUtilizationPercentage':50,'metrics':[{'type':'Resource',"
                "'resource':{'name':'cpu','target':{'type':'Utilization',"
                "'averageUtilization':70}}}]"),
         "spec.hpaSpec.targetCPUUtilizationPercentage"},
        {"'targetRef':" TARGET "," BASE_VPA ",'ratioBasedScalingSpec':{'startReplicaCount':3}",
         "spec.ratioBasedScalingSpec.startReplicaCount"},
        {"'targetRef':" TARGET "," BASE_VPA ",'ratioBasedScalingSpec':{'capacityPolicy':'Max'}",
         "spec.ratioBasedScalingSpec.capacityPolicy"},
        {"'targetRef':{'kind':'DaemonSet','name':'web'}," BASE_HPA "," BASE_VPA, "spec.hpaSpec"},
        {BASE ",'vertical':{'scaleUp':{'minChange':{'replicas':{'value':'1'}}}}",
         "spec.vertical.scaleUp.minChange.replicas"},
        {BASE ",'weightBasedScalingIntervals':[]", "spec.weightBasedScalingIntervals"},
        {BASE ",'hpa':{'deploy':true}", "spec.hpa"},
        {BASE ",'mode':'HPABiased','ratioBasedScalingSpec':{'startReplicaCount':3}",
         "spec.ratioBasedScalingSpec"},
        {BASE ",'mode':'Mixed','finalScaling':'vertical'", "spec.finalScaling"},
        {BASE ",'mixed':{'preference':'vertical'}", "spec.mixed"},
        {BASE ",'initialScaling':'vertical'", "spec.initialScaling"},
        {BASE ",'initialScaling':'vertical','ratioBasedScalingSpec':{'startReplicaCount':2}", NULL},
        {BASE ",'finalScaling':'vertical','ratioBasedScalingSpec':{'startReplicaCount':2}",
         "spec.finalScaling"},
        {VPA_OF("'resourcePolicy':{'containerPolicies':[{'containerName':'*','mode':'Off',"
                "'minAllowed':{'cpu':'1'}}]}"),
         "spec.vpaSpec.resourcePolicy.containerPolicies[0].minAllowed[cpu]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_hvpa hvpa;
        struct td_hvpa_findings findings;
        struct td_error err = TD_ERROR_INIT;
        if (td_hvpa_decode(&arena, object_of(&arena, rows[i].spec), &hvpa, &findings, &err) < 0) {
            fail_msg("%s", err.message);
        }
        assert_int_equal(findings.warnings.count, rows[i].field ? 1 : 0);
        if (rows[i].field) {
            assert_true(td_str_equal(findings.warnings.items[0].field, td_str_from(rows[i].field)));
        }
    }
}

/* Rules of RatioBased bind no other mode, and a selector is free there. */
static void test_other_modes_ignore_the_interval(void **state)
{
    (void)state;
    static const char *const modes[] = {"HPAPreferred", "HPABiased", "VPABiased", "Mixed"};
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < 4; i++) {
        td_str spec =
            td_arena_format(&arena,
                            "%s,'mode':'%s','ratioBasedScalingSpec':{'startReplicaCount':99,"
                            "'finishReplicaCount':-1}",
                            VPA_OF("'selector':{'matchLabels':{'a':'b'}}"), modes[i]);
        struct td_hvpa hvpa = decode(&arena, spec.ptr);
        assert_int_equal(hvpa.mode, i);
        assert_true(hvpa.vpa.has_selector);
    }
}

struct window_row {
    int64_t second;
    bool is_inside;
};

/* Both ends belong to the window, which may span midnight. */
static void test_window_spans_midnight(void **state)
{
    (void)state;
    static const struct window_row rows[] = {
        {82799, false}, {82800, true}, {86399, true},  {0, true},
        {3600, true},   {3601, false}, {43200, false}, {-1, true},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_hvpa hvpa = decode(&arena, WINDOW_OF("000000+0100", "010000+0000"));
    assert_int_equal(hvpa.window.begin_second, 82800);
    assert_int_equal(hvpa.window.end_second, 3600);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_instant now = {.unix_seconds = rows[i].second};
        assert_int_equal(td_hvpa_window_contains(&hvpa.window, now), rows[i].is_inside);
    }
    assert_false(td_hvpa_window_contains(&(struct td_hvpa_window){.is_set = false},
                                         (struct td_instant){.unix_seconds = 0}));
}

/* The normal form is its own normal form. */
static void test_normal_form_is_stable(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = object_of(
        &arena,
        WINDOW_OF("220000+0100", "230000-0530") ",'paused':true,'replicas':4,'mode':'Mixed',"
                                                "'vertical':{'scaleDown':{'stabilizationDuration':"
                                                "'90m','updatePolicy':{'updateMode':"
                                                "'MaintenanceWindow'},'minChange':{'cpu':"
                                                "{'value':'1'}}},'limitsRequestsGapScaleParams':"
                                                "{'memory':{'percentage':70}}}");
    struct td_hvpa hvpa;
    assert_int_equal(td_hvpa_decode(&arena, object, &hvpa, NULL, NULL), TD_OK);
    struct td_json *once = hvpa_normal_form(&arena, &hvpa);
    td_json_set(&arena, object, TD_STR("spec"), once);
    assert_int_equal(td_hvpa_decode(&arena, object, &hvpa, NULL, NULL), TD_OK);
    assert_true(td_json_equal(once, hvpa_normal_form(&arena, &hvpa)));
    assert_int_equal(hvpa.vertical_down.stabilization, 90 * TD_MINUTE);
    assert_int_equal(hvpa.window.begin_second, 21 * 3600);
    assert_int_equal(hvpa.window.end_second, 4 * 3600 + 30 * 60);
}

/* --- status, CRD --- */

#define STATUS                                                                                     \
    "{'observedGeneration':3,'mode':'RatioBased','replicas':4,'targetSelector':'app=web',"         \
    "'current':{'replicas':4,'requests':{'app':{'cpu':'500m','memory':'1Gi'}}},"                   \
    "'recommendation':{'horizontal':{'desiredReplicas':8,'valid':true,"                            \
    "'reason':'cpu above target'},'vertical':{'valid':true,'containers':[{'name':'app',"           \
    "'target':{'cpu':'1'},'lowerBound':{'cpu':'700m'},'upperBound':{'cpu':'2'},"                   \
    "'uncappedTarget':{'cpu':'1'}}]}},'decision':{'time':'2025-01-01T00:00:00Z','axis':'Both',"    \
    "'reason':'BothApplied','stage':'Ratio','replicas':6,'requests':{'app':{'cpu':'667m'}},"       \
    "'limits':{'app':{'cpu':'2'}},'weights':{'horizontal':0.5,'vertical':0.5},'emergency':true,"   \
    "'belowThresholdsSince':'2024-12-31T23:00:00Z'},'lastScaling':{'horizontalTime':"              \
    "'2025-01-01T00:00:00Z','verticalTime':'2024-12-01T00:00:00Z','fromReplicas':4,"               \
    "'toReplicas':6},'writtenReplicas':6,'infeasible':{'time':'2025-01-01T00:00:00Z',"             \
    "'requests':{'app':{'cpu':'64'}}},'blocked':[{'axis':'vertical','container':'app',"            \
    "'resource':'memory','reason':'StabilizationWindow','since':'2025-01-01T00:00:00Z'},"          \
    "{'axis':'horizontal','reason':'UpdatePolicy'}],'emergency':[{'container':'app',"              \
    "'since':'2025-01-01T00:00:00Z','usableSeconds':60}],'referenceRequests':{'app':"              \
    "{'cpu':'500m'}},'origin':{'requests':{'app':{'cpu':'500m'}},'limits':{'app':{'cpu':'1'}}},"   \
    "'conditions':[{'type':'Ready','status':'True','lastTransitionTime':"                          \
    "'2025-01-01T00:00:00Z','reason':'Ok','message':'fine'},{'type':'Coupled',"                    \
    "'status':'False'}]}"

/* Every field of a status comes back as it was. */
static void test_status_round_trip(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *tree = quoted_json(&arena, STATUS);
    struct td_hvpa_status status;
    assert_int_equal(td_hvpa_status_decode(&arena, tree, &status, NULL), TD_OK);
    assert_int_equal(status.desired_replicas, 8);
    assert_int_equal(status.blocked_count, 2);
    assert_int_equal(status.horizontal_time.unix_seconds, 1735689600);
    assert_int_equal(status.emergency[0].usable_seconds, 60);
    assert_int_equal(status.decision.requests.count, 1);
    const struct td_hvpa_container_resources *app = &status.decision.requests.items[0];
    assert_true(td_str_equal(app->container, TD_STR("app")));
    const struct td_quantity *request = td_resource_list_get(&app->resources, TD_STR("cpu"));
    assert_non_null(request);
    assert_int_equal(td_quantity_milli(request), 667);
    assert_true(td_json_equal(tree, td_hvpa_status_encode(&arena, &status)));
    assert_int_equal(td_hvpa_status_decode(&arena, NULL, &status, NULL), TD_OK);
    assert_true(td_json_equal(quoted_json(&arena, "{'blocked':[]}"),
                              td_hvpa_status_encode(&arena, &status)));
}

/* A broken status costs its memory, not the object. */
static void test_unreadable_status_is_dropped(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = object_of(&arena, BASE);
    td_json_set(&arena, object, TD_STR("status"),
                quoted_json(&arena, "{'observedGeneration':3,'decision':{'time':'soon'}}"));
    struct td_hvpa hvpa;
    struct td_hvpa_findings findings;
    assert_int_equal(td_hvpa_decode(&arena, object, &hvpa, &findings, NULL), TD_OK);
    assert_int_equal(hvpa.status.observed_generation, 0);
    assert_int_equal(findings.warnings.count, 1);
}

/* The CRD has the scale subresource, the columns and the mark of a protected group. */
static void test_crd(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    const struct td_json *crd = td_hvpa_crd(&arena);
    const struct td_json *version = td_json_at(td_json_get_path(crd, "spec.versions"), 0);
    td_str approved = td_json_get_str(td_json_get_path(crd, "metadata.annotations"),
                                      TD_STR("api-approved.kubernetes.io"), TD_STR_EMPTY);
    assert_true(td_str_starts_with(approved, TD_STR("unapproved, ")));
    assert_true(
        td_json_equal(td_json_get_path(version, "subresources.scale"),
                      quoted_json(&arena, "{'specReplicasPath':'.spec.replicas',"
                                          "'statusReplicasPath':'.status.replicas',"
                                          "'labelSelectorPath':'.status.targetSelector'}")));
    static const char *const names[] = {"Mode", "Ready",  "Replicas", "Desired",
                                        "Axis", "Reason", "Age"};
    const struct td_json *columns = td_json_get(version, TD_STR("additionalPrinterColumns"));
    assert_int_equal(columns->count, TD_COUNT(names));
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        assert_true(
            td_str_equal(td_json_get_str(td_json_at(columns, i), TD_STR("name"), TD_STR_EMPTY),
                         td_str_from(names[i])));
    }
}

/* Things that are no object, and an object without spec. */
static void test_no_object_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"null",        "1",
                                       "[]",          "'x'",
                                       "{}",          "{'spec':null}",
                                       "{'spec':[]}", "{'metadata':{'labels':{'a':1}}}"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_hvpa hvpa;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_hvpa_decode(&arena, quoted_json(&arena, rows[i]), &hvpa, NULL, &err),
                         TD_INVALID);
        assert_true(err.message[0] != '\0');
    }
}

#define OBJECT_OF(spec)                                                                            \
    "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'x','namespace'" \
    ":'default'},'spec':" spec "}"
#define NAMED(name) "{'apiVersion':'apps/v1','kind':'Deployment','name':'" name "'}"
#define NONE "{'kind':'','name':''}"

/* The target is the same one that decoding chooses, wherever it stands; what is not valid still
 * has one. */
static void test_target_is_found_wherever_it_stands(void **state)
{
    static const struct {
        const char *object;
        const char *field;
        const char *name; /* NULL: none */
        bool is_valid;
    } rows[] = {
        {OBJECT_OF("{'targetRef':" NAMED("a") ",'vpaSpec':{}}"), "spec.targetRef", "a", true},
        {OBJECT_OF("{'hpaSpec':{'maxReplicas':2,'scaleTargetRef':" NAMED("a") "}}"),
         "spec.hpaSpec.scaleTargetRef", "a", true},
        {OBJECT_OF("{'hpaSpec':{'spec':{'maxReplicas':2,'scaleTargetRef':" NAMED("a") "}}}"),
         "spec.hpaSpec.spec.scaleTargetRef", "a", true},
        {OBJECT_OF("{'vpaSpec':{'targetRef':" NAMED("a") "}}"), "spec.vpaSpec.targetRef", "a",
         true},
        {OBJECT_OF("{'vpaSpec':{'spec':{'targetRef':" NAMED("a") "}}}"),
         "spec.vpaSpec.spec.targetRef", "a", true},
        {OBJECT_OF(
             "{'hpaSpec':{'metadata':{'name':''},'spec':{'maxReplicas':2,'scaleTargetRef':" NAMED(
                 "a") "}},'vpaSpec':{'spec':{'targetRef':" NAMED("a") "}}}"),
         "spec.hpaSpec.spec.scaleTargetRef", "a", true},
        {OBJECT_OF("{'targetRef':" NONE ",'hpaSpec':{'spec':{'maxReplicas':2,'scaleTargetRef':" NONE
                   "}},'vpaSpec':{'spec':{'targetRef':" NAMED("a") "}}}"),
         "spec.vpaSpec.spec.targetRef", "a", true},
        {OBJECT_OF("{'targetRef':null,'vpaSpec':{'targetRef':" NAMED("a") "}}"),
         "spec.vpaSpec.targetRef", "a", true},
        {OBJECT_OF("{'mode':'none','targetRef':" NAMED("a") ",'hpaSpec':{'scaleTargetRef':" NAMED(
             "b") "}}"),
         "spec.targetRef", "a", false},
        {OBJECT_OF("{'vpaSpec':{}}"), "spec.targetRef", NULL, false},
        {OBJECT_OF("{'targetRef':'web','hpaSpec':[],'vpaSpec':7}"), "spec.targetRef", NULL, false},
        {OBJECT_OF("[]"), "spec.targetRef", NULL, false},
        {"[]", "spec.targetRef", NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_hvpa hvpa;
        td_str field = TD_STR_EMPTY;
        const struct td_json *object = quoted_json(&arena, rows[i].object);
        const struct td_json *target = td_hvpa_target(object, &field);
        assert_true(td_str_equal(field, td_str_from(rows[i].field)));
        assert_int_equal(target != NULL, rows[i].name != NULL);
        assert_true(td_str_equal(td_json_get_str(target, TD_STR("name"), TD_STR_EMPTY),
                                 td_str_from(rows[i].name)));
        bool is_valid = td_hvpa_decode(&arena, object, &hvpa, NULL, NULL) == TD_OK;
        assert_int_equal(is_valid, rows[i].is_valid);
        assert_true(!is_valid || td_str_equal(hvpa.target.name, td_str_from(rows[i].name)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_of_a_wrong_type_is_named),
        cmocka_unit_test(test_each_rule_names_path_and_value),
        cmocka_unit_test(test_all_faults_are_collected),
        cmocka_unit_test(test_floods_are_bounded),
        cmocka_unit_test(test_proposal_example),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_units_and_zeros),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_other_modes_ignore_the_interval),
        cmocka_unit_test(test_window_spans_midnight),
        cmocka_unit_test(test_normal_form_is_stable),
        cmocka_unit_test(test_status_round_trip),
        cmocka_unit_test(test_unreadable_status_is_dropped),
        cmocka_unit_test(test_crd),
        cmocka_unit_test(test_no_object_is_refused),
        cmocka_unit_test(test_target_is_found_wherever_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
