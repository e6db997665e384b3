/* HorizontalPodAutoscaler: bad input field by field, decoding, round trips, admission. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/hpa/hpa.h"
#include "base/error.h"
#include "base/limits.h"
#include "support/field_lines.h"
#include "support/quoted_json.h"
#include "support/wrong_values.h"

#define ARENA_BYTES ((size_t)256 << 20)
#define V1 TD_STR("autoscaling/v1")
#define V2 TD_STR("autoscaling/v2")

/* A v2 object with the given spec (single quotes stand for double ones). */
static struct td_json *object_of(struct td_arena *arena, const char *version, const char *spec)
{
    td_str text = td_arena_format(arena,
                                  "{\"apiVersion\":\"%s\",\"kind\":\"HorizontalPodAutoscaler\","
                                  "\"metadata\":{\"name\":\"hpa\",\"namespace\":\"ns\","
                                  "\"resourceVersion\":\"7\"},\"spec\":%s}",
                                  version, spec);
    return quoted_json(arena, text.ptr);
}

#define TARGET "'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"

/* --- every field wrong in turn --- */

static void expect_refused(const char *version, const struct wrong_way *way, const char *value)
{
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = td_arena_format(
        &arena, "{\"apiVersion\":\"%s\",\"kind\":\"HorizontalPodAutoscaler\",%s%s%s}", version,
        way->open, value, way->close);
    struct td_json *tree = quoted_json(&arena, text.ptr);
    struct td_error err = TD_ERROR_INIT;
    char expected[1200];
    (void)snprintf(expected, sizeof(expected), "%s: %s: ", way->path, value);
    assert_int_equal(td_hpa_check_types(tree, &err), TD_INVALID);
    if (strncmp(err.message, expected, strlen(expected)) != 0) {
        fail_msg("'%s' does not begin with '%s'", err.message, expected);
    }
    struct td_hpa hpa;
    struct td_json *made = NULL;
    struct td_field_errors errors = {.arena = &arena};
    const struct td_hpa_admission admission = {.object = tree};
    assert_int_equal(td_hpa_decode(&arena, tree, &hpa, NULL), TD_INVALID);
    assert_int_equal(td_hpa_convert(&arena, tree, V1, &made, NULL), TD_INVALID);
    assert_int_equal(td_hpa_admit(&arena, &admission, &errors, &made, NULL), TD_INVALID);
    assert_int_equal(td_hpa_default(&arena, tree, NULL), TD_INVALID);
    assert_null(made);
}

/* A value of the wrong type anywhere in the object is refused by every entry point, and the message
 * begins with its path and shows it. */
static void test_every_field_of_the_wrong_type_is_named(void **state)
{
    (void)state;
    static const char *const versions[] = {"autoscaling/v1", "autoscaling/v2",
                                           "autoscaling.tandem.dev/v2"};
    for (size_t i = 0; i < 3; i++) {
        struct wrong_walk walk = {.context = versions[i], .refuse = expect_refused};
        struct wrong_way root = {.open = ""};
        const struct td_schema_type *type =
            i == 0 ? td_schema_find(V1, TD_STR("HorizontalPodAutoscaler")) : td_hpa_schema();
        wrong_walk_type(&walk, type, &root, 0);
        assert_true(walk.tried > 100);
    }
}

struct range_row {
    const char *spec;  /* members of spec */
    const char *field; /* that must be named */
    const char *shown; /* inside the line: class and value */
};

#define METRIC(target) TARGET ",'maxReplicas':5,'metrics':[" target "]"
#define RESOURCE(target) METRIC("{'type':'Resource','resource':{'name':'cpu','target':" target "}}")
#define UP(rules) TARGET ",'maxReplicas':5,'behavior':{'scaleUp':" rules "}"
#define POLICY(policy) UP("{'policies':[" policy "]}")

/* Values of the right type but out of range, or unknown words. */
static const struct range_row range_rows[] = {
    {TARGET, "spec.maxReplicas", "Required value"},
    {TARGET ",'maxReplicas':-1", "spec.maxReplicas", "Invalid value: -1"},
    {TARGET ",'maxReplicas':-2147483648", "spec.maxReplicas", "Invalid value: -2147483648"},
    {TARGET ",'maxReplicas':1,'minReplicas':2", "spec.maxReplicas", "Invalid value: 1"},
    {TARGET ",'maxReplicas':1,'minReplicas':0", "spec.minReplicas", "Invalid value: 0"},
    {TARGET ",'maxReplicas':1,'selectionStrategy':'x'", "spec.selectionStrategy",
     "Unsupported value: \"x\""},
    {TARGET ",'maxReplicas':1,'selectionStrategy':''", "spec.selectionStrategy",
     "Unsupported value: \"\""},
    {"'maxReplicas':1", "spec.scaleTargetRef.kind", "Required value"},
    {"'maxReplicas':1", "spec.scaleTargetRef.name", "Required value"},
    {"'maxReplicas':1", "spec.scaleTargetRef.apiVersion", "Invalid value: \"\""},
    {"'maxReplicas':1,'scaleTargetRef':{'kind':'a/b','name':'..','apiVersion':'a/b/c'}",
     "spec.scaleTargetRef.kind", "Invalid value: \"a/b\""},
    {"'maxReplicas':1,'scaleTargetRef':{'kind':'a/b','name':'..','apiVersion':'a/b/c'}",
     "spec.scaleTargetRef.name", "Invalid value: \"..\""},
    {"'maxReplicas':1,'scaleTargetRef':{'kind':'a/b','name':'..','apiVersion':'a/b/c'}",
     "spec.scaleTargetRef.apiVersion", "Invalid value: \"a/b/c\""},
    {METRIC("null"), "spec.metrics[0].type", "Required value"},
    {METRIC("{'type':'Cpu'}"), "spec.metrics[0].type", "Unsupported value: \"Cpu\""},
    {METRIC("{'type':'Pods'}"), "spec.metrics[0].pods", "Required value"},
    {METRIC("{'type':'Pods','pods':{}}"), "spec.metrics[0].pods.metric.name", "Required value"},
    {METRIC("{'type':'Pods','pods':{}}"), "spec.metrics[0].pods.target.type", "Required value"},
    {METRIC("{'type':'Pods','pods':{},'external':{}}"), "spec.metrics[0].external", "Forbidden"},
    {METRIC("{'type':'Object','object':{'metric':{'name':'a%b'}}}"),
     "spec.metrics[0].object.metric.name", "Invalid value: \"a%b\""},
    {METRIC("{'type':'Object','object':{}}"), "spec.metrics[0].object.describedObject.kind",
     "Required value"},
    {METRIC("{'type':'ContainerResource','containerResource':{'name':'gpu','container':'A'}}"),
     "spec.metrics[0].containerResource.name", "Invalid value: \"gpu\""},
    {METRIC("{'type':'ContainerResource','containerResource':{'name':'gpu','container':'A'}}"),
     "spec.metrics[0].containerResource.container", "Invalid value: \"A\""},
    {RESOURCE("{'type':'Percent'}"), "spec.metrics[0].resource.target.type",
     "Invalid value: \"Percent\""},
    {RESOURCE("{'type':'Utilization','averageUtilization':0}"),
     "spec.metrics[0].resource.target.averageUtilization", "Invalid value: 0"},
    {RESOURCE("{'type':'Utilization','averageUtilization':1,'averageValue':'1'}"),
     "spec.metrics[0].resource.target.averageValue", "Forbidden"},
    {RESOURCE("{'type':'AverageValue','averageValue':-0.5}"),
     "spec.metrics[0].resource.target.averageValue", "Invalid value: \"-500m\""},
    {RESOURCE("{'type':'Value','value':'0'}"), "spec.metrics[0].resource.target.value",
     "Invalid value: \"0\""},
    {UP("{'stabilizationWindowSeconds':-1}"), "spec.behavior.scaleUp.stabilizationWindowSeconds",
     "Invalid value: -1"},
    {UP("{'stabilizationWindowSeconds':3601}"), "spec.behavior.scaleUp.stabilizationWindowSeconds",
     "Invalid value: 3601"},
    {UP("{'selectPolicy':'Avg'}"), "spec.behavior.scaleUp.selectPolicy",
     "Unsupported value: \"Avg\""},
    {UP("{'policies':[]}"), "spec.behavior.scaleUp.policies", "Required value"},
    {UP("{'tolerance':'-1n'}"), "spec.behavior.scaleUp.tolerance", "Invalid value: \"-1n\""},
    {POLICY("{'type':'Nodes','value':1,'periodSeconds':1}"),
     "spec.behavior.scaleUp.policies[0].type", "Unsupported value: \"Nodes\""},
    {POLICY("{'type':'Pods','value':0,'periodSeconds':1}"),
     "spec.behavior.scaleUp.policies[0].value", "Invalid value: 0"},
    {POLICY("{'type':'Pods','value':1,'periodSeconds':0}"),
     "spec.behavior.scaleUp.policies[0].periodSeconds", "Invalid value: 0"},
    {POLICY("{'type':'Pods','value':1,'periodSeconds':1801}"),
     "spec.behavior.scaleUp.policies[0].periodSeconds", "Invalid value: 1801"},
    {POLICY("null"), "spec.behavior.scaleUp.policies[0].type", "Unsupported value: \"\""},
};

static int admit(struct td_arena *arena, struct td_json *object, const struct td_json *old,
                 struct td_field_errors *errors, struct td_json **ret)
{
    const struct td_hpa_admission admission = {
        .operation = old ? TD_HPA_UPDATE : TD_HPA_CREATE,
        .object = object,
        .old = old,
        .gates = {.selection_strategy = true},
    };
    *errors = (struct td_field_errors){.arena = arena};
    return td_hpa_admit(arena, &admission, errors, ret, NULL);
}

static void test_values_out_of_range_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(range_rows) / sizeof(range_rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        char spec[1024];
        (void)snprintf(spec, sizeof(spec), "{%s}", range_rows[i].spec);
        struct td_field_errors errors;
        struct td_json *stored = NULL;
        struct td_json *object = object_of(&arena, "autoscaling.tandem.dev/v2", spec);
        assert_int_equal(admit(&arena, object, NULL, &errors, &stored), TD_OK);
        if (!has_line(&errors, range_rows[i].field, range_rows[i].shown)) {
            fail_msg("%s: no error at %s with %s (%zu errors)", spec, range_rows[i].field,
                     range_rows[i].shown, errors.count);
        }
        assert_null(stored);
    }
}

/* Things that are no HorizontalPodAutoscaler of ours. */
static void test_other_objects_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "null",
        "1",
        "\"x\"",
        "[]",
        "{}",
        "{\"kind\":\"HorizontalPodAutoscaler\"}",
        "{\"apiVersion\":\"autoscaling/v2\"}",
        "{\"apiVersion\":\"autoscaling/v2beta2\",\"kind\":\"HorizontalPodAutoscaler\"}",
        "{\"apiVersion\":2,\"kind\":\"HorizontalPodAutoscaler\"}",
        "{\"apiVersion\":\"autoscaling/v2\",\"kind\":[]}",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        struct td_hpa hpa;
        struct td_json *tree = quoted_json(&arena, rows[i]);
        assert_int_equal(td_hpa_default(&arena, tree, &err), TD_INVALID);
        assert_true(err.message[0] != '\0');
        assert_int_equal(td_hpa_decode(&arena, tree, &hpa, NULL), TD_INVALID);
    }
    assert_int_equal(td_hpa_check_types(NULL, NULL), TD_INVALID);
}

/* --- defaults and decoding --- */

#define ALL_METRICS                                                                                \
    "'metrics':[{'type':'Resource','resource':{'name':'memory','target':{'type':'AverageValue',"   \
    "'averageValue':'1.5Gi'}}},{'type':'ContainerResource','containerResource':{'name':'cpu',"     \
    "'container':'app','target':{'type':'Utilization','averageUtilization':70}}},"                 \
    "{'type':'Pods','pods':{'metric':{'name':'qps','selector':{'matchLabels':{'a':'b'}}},"         \
    "'target':{'type':'AverageValue','averageValue':'10'}}},"                                      \
    "{'type':'Object','object':{'describedObject':{'kind':'Ingress','name':'main',"                \
    "'apiVersion':'networking.k8s.io/v1'},'metric':{'name':'rps'},"                                \
    "'target':{'type':'Value','value':'2k'}}},"                                                    \
    "{'type':'External','external':{'metric':{'name':'lag'},"                                      \
    "'target':{'type':'AverageValue','averageValue':'30'}}},"                                      \
    "{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization',"                  \
    "'averageUtilization':55}}}]"

static void test_decode_reads_every_field(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = object_of(
        &arena, "autoscaling/v2",
        "{" TARGET ",'minReplicas':2,'maxReplicas':9,'selectionStrategy':'OwnerReference',"
        "'behavior':{'scaleUp':{'tolerance':0.3,'selectPolicy':'Min'},'scaleDown':"
        "{'stabilizationWindowSeconds':60,'selectPolicy':'Disabled','policies':"
        "[{'type':'Percent','value':10,'periodSeconds':30}]}}," ALL_METRICS "}");
    struct td_hpa hpa;
    assert_int_equal(td_hpa_default(&arena, object, NULL), TD_OK);
    assert_int_equal(td_hpa_decode(&arena, object, &hpa, NULL), TD_OK);
    assert_int_equal(hpa.min_replicas, 2);
    assert_int_equal(hpa.max_replicas, 9);
    assert_true(td_str_equal(hpa.target.kind, TD_STR("Deployment")));
    assert_true(td_str_equal(hpa.selection_strategy, TD_STR("OwnerReference")));
    assert_int_equal(hpa.metric_count, 6);
    assert_int_equal(hpa.metrics[0].type, TD_HPA_RESOURCE);
    assert_int_equal(hpa.metrics[0].target.average_value_milli, 1610612736000);
    assert_int_equal(hpa.metrics[1].target.average_utilization, 70);
    assert_true(td_str_equal(hpa.metrics[1].container, TD_STR("app")));
    assert_non_null(hpa.metrics[2].metric_selector);
    assert_true(td_str_equal(hpa.metrics[2].name, TD_STR("qps")));
    assert_true(td_str_equal(hpa.metrics[3].described.name, TD_STR("main")));
    assert_int_equal(hpa.metrics[3].target.value_milli, 2000000);
    assert_false(hpa.metrics[3].target.has_average_value);
    assert_int_equal(hpa.metrics[4].type, TD_HPA_EXTERNAL);
    assert_true(hpa.has_behavior);
    assert_true(hpa.scale_up.has_window);
    assert_int_equal(hpa.scale_up.window_seconds, 0);
    assert_int_equal(hpa.scale_up.select, TD_HPA_SELECT_MIN);
    assert_int_equal(hpa.scale_up.policy_count, 2);
    assert_true(hpa.scale_up.has_tolerance);
    assert_true(hpa.scale_up.tolerance == 300 * 0.001); /* not 3 * 0.1 */
    assert_int_equal(hpa.scale_down.select, TD_HPA_SELECT_DISABLED);
    assert_int_equal(hpa.scale_down.policies[0].value, 10);
    assert_false(hpa.scale_down.has_tolerance);
}

struct decode_row {
    const char *spec;
    const char *message; /* NULL: accepted */
};

/* Trees that no server would hand out: decoded as far as they make sense, or refused by name. */
static void test_decode_of_hostile_trees(void **state)
{
    (void)state;
    static const struct decode_row rows[] = {
        {"null", NULL},
        {"{}", NULL},
        {"{'metrics':[null,{},{'type':'x'},{'type':'Pods'},{'type':'Object','object':null}]}",
         NULL},
        {"{'behavior':{}}", NULL},
        {"{'behavior':{'scaleUp':null,'scaleDown':{'policies':null,'selectPolicy':null}}}", NULL},
        {"{'behavior':{'scaleUp':{'selectPolicy':'Avg'}}}",
         "spec.behavior.scaleUp.selectPolicy: \"Avg\": must be Max, Min or Disabled"},
        {"{'behavior':{'scaleDown':{'policies':[{'type':'Pods'},{'type':''}]}}}",
         "spec.behavior.scaleDown.policies[1].type: \"\": must be Pods or Percent"},
        {"{'behavior':{'scaleDown':{'policies':[null]}}}",
         "spec.behavior.scaleDown.policies[0].type: \"\": must be Pods or Percent"},
        {"{'metrics':[{'type':'Pods','pods':{'target':{'averageValue':'9e99'}}}]}", NULL},
        {"{'behavior':{'scaleUp':{'tolerance':'1e1000'}}}", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_error err = TD_ERROR_INIT;
        struct td_hpa hpa = {.max_replicas = -77};
        struct td_json *object = object_of(&arena, "autoscaling/v2", rows[i].spec);
        int code = td_hpa_decode(&arena, object, &hpa, &err);
        assert_int_equal(code, rows[i].message ? TD_INVALID : TD_OK);
        if (rows[i].message) {
            assert_string_equal(err.message, rows[i].message);
            assert_int_equal(hpa.max_replicas, -77); /* untouched on failure */
        }
    }
}

static void test_milli_values_saturate(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_hpa hpa;
    struct td_json *object =
        object_of(&arena, "autoscaling/v2",
                  "{'metrics':[{'type':'Pods','pods':{'target':{'averageValue':'9e30',"
                  "'value':'-9e30'}}}]}");
    assert_int_equal(td_hpa_decode(&arena, object, &hpa, NULL), TD_OK);
    assert_true(hpa.metrics[0].target.average_value_milli == INT64_MAX);
    assert_true(hpa.metrics[0].target.value_milli == INT64_MIN);
}

/* Defaulting twice is defaulting once, and members that we do not know stay. */
static void test_default_is_idempotent_and_keeps_unknown_members(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = object_of(
        &arena, "autoscaling/v2",
        "{" TARGET ",'maxReplicas':3,'future':{'a':[null]},'behavior':{'scaleUp':{'next':1}}}");
    assert_int_equal(td_hpa_default(&arena, object, NULL), TD_OK);
    struct td_json *once = td_json_copy(&arena, object, true);
    assert_int_equal(td_hpa_default(&arena, object, NULL), TD_OK);
    assert_true(td_json_equal(once, object));
    assert_non_null(td_json_get_path(object, "spec.future.a"));
    assert_int_equal(
        td_json_get_int64(td_json_get_path(object, "spec.behavior.scaleUp"), TD_STR("next"), 0), 1);
}

/* --- conversion --- */

static struct td_json *convert(struct td_arena *arena, const struct td_json *object, td_str version)
{
    struct td_json *made = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_hpa_convert(arena, object, version, &made, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return made;
}

/* All that v2 can say survives a trip through v1, as long as there is one CPU metric and it stands
 * last (v1 to v2 puts it there). */
static void test_round_trip_through_v1_keeps_everything(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = object_of(
        &arena, "autoscaling/v2",
        "{" TARGET ",'minReplicas':2,'maxReplicas':9,'selectionStrategy':'OwnerReference',"
        "'behavior':{'scaleUp':{'tolerance':'50m'}}," ALL_METRICS "}");
    struct td_json *status = quoted_json(
        &arena,
        "{\"observedGeneration\":3,\"currentReplicas\":4,\"desiredReplicas\":5,"
        "\"lastScaleTime\":\"2026-03-01T11:00:00Z\",\"currentMetrics\":[{\"type\":"
        "\"Resource\",\"resource\":{\"name\":\"cpu\",\"current\":{\"averageUtilization\":63,"
        "\"averageValue\":\"630m\"}}},{\"type\":\"\"},{\"type\":\"External\",\"external\":{"
        "\"metric\":{\"name\":\"lag\"},\"current\":{\"value\":\"7\"}}}],\"conditions\":[{"
        "\"type\":\"AbleToScale\",\"status\":\"True\",\"reason\":\"<&>\","
        "\"lastTransitionTime\":\"2026-03-01T10:00:00Z\"}]}");
    td_json_set(&arena, object, TD_STR("status"), status);
    struct td_json *v2 = convert(&arena, object, V2);
    struct td_json *v1 = convert(&arena, object, V1);
    assert_null(td_json_get_path(v1, "spec.metrics"));
    assert_int_equal(td_json_get_int64(td_json_get(v1, TD_STR("spec")),
                                       TD_STR("targetCPUUtilizationPercentage"), 0),
                     55);
    struct td_json *back = convert(&arena, v1, V2);
    assert_true(td_json_equal(v2, back));
    assert_true(td_json_equal(convert(&arena, v1, V1), v1));
    assert_null(td_json_get_path(back, "metadata.annotations"));
}

/* Members of the other version are unknown members: they neither come alive nor crash anything. */
static void test_members_of_the_other_version_stay_dead(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *v1 = object_of(
        &arena, "autoscaling/v1",
        "{" TARGET ",'maxReplicas':3,'metrics':'x','behavior':[1],'selectionStrategy':{}}");
    struct td_json *made = convert(&arena, v1, V2);
    assert_null(td_json_get_path(made, "spec.behavior"));
    assert_null(td_json_get_path(made, "spec.selectionStrategy"));
    assert_int_equal(td_json_get_path(made, "spec.metrics")->count, 1);
    struct td_json *v2 =
        object_of(&arena, "autoscaling/v2",
                  "{" TARGET ",'maxReplicas':3,'targetCPUUtilizationPercentage':'x',"
                  "'metrics':[{'type':'Pods','pods':{}}]}");
    made = convert(&arena, v2, V1);
    assert_null(td_json_get_path(made, "spec.targetCPUUtilizationPercentage"));
    assert_int_equal(td_hpa_convert(&arena, v2, TD_STR("autoscaling/v3"), &made, NULL), TD_INVALID);
}

/* --- admission --- */

static void test_admit_counts_generation_by_spec(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_field_errors errors;
    struct td_json *first = NULL;
    struct td_json *second = NULL;
    struct td_json *third = NULL;
    struct td_json *object = object_of(&arena, "autoscaling/v2", "{" TARGET ",'maxReplicas':3}");
    assert_int_equal(admit(&arena, object, NULL, &errors, &first), TD_OK);
    assert_int_equal(errors.count, 0);
    const struct td_json *meta = td_json_get(first, TD_STR("metadata"));
    assert_int_equal(td_json_get_int64(meta, TD_STR("generation"), 0), 1);
    struct td_json *labelled = td_json_copy(&arena, first, true);
    td_json_set(
        &arena,
        td_json_ensure_object(&arena, td_json_get(labelled, TD_STR("metadata")), TD_STR("labels")),
        TD_STR("a"), td_json_new_string(&arena, TD_STR("b")));
    assert_int_equal(admit(&arena, labelled, first, &errors, &second), TD_OK);
    meta = td_json_get(second, TD_STR("metadata"));
    assert_int_equal(td_json_get_int64(meta, TD_STR("generation"), 0), 1);
    td_json_set(&arena, td_json_get(labelled, TD_STR("spec")), TD_STR("maxReplicas"),
                td_json_new_int64(&arena, 4));
    assert_int_equal(admit(&arena, labelled, second, &errors, &third), TD_OK);
    meta = td_json_get(third, TD_STR("metadata"));
    assert_int_equal(td_json_get_int64(meta, TD_STR("generation"), 0), 2);
}

/* A status update changes no spec, an update no status, and the kind stays in its group. */
static void test_admit_keeps_what_the_writer_may_not_change(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *old =
        object_of(&arena, "autoscaling.tandem.dev/v2", "{" TARGET ",'maxReplicas':3}");
    td_json_set(&arena, old, TD_STR("status"),
                quoted_json(&arena, "{\"desiredReplicas\":2,\"currentReplicas\":2}"));
    struct td_json *object =
        object_of(&arena, "autoscaling.tandem.dev/v2", "{" TARGET ",'maxReplicas':-9}");
    td_json_set(&arena, object, TD_STR("status"),
                quoted_json(&arena, "{\"desiredReplicas\":4,\"currentReplicas\":2}"));
    struct td_field_errors errors = {.arena = &arena};
    struct td_json *stored = NULL;
    const struct td_hpa_admission admission = {
        .operation = TD_HPA_STATUS_UPDATE, .object = object, .old = old};
    assert_int_equal(td_hpa_admit(&arena, &admission, &errors, &stored, NULL), TD_OK);
    assert_int_equal(errors.count, 0);
    assert_int_equal(
        td_json_get_int64(td_json_get(stored, TD_STR("spec")), TD_STR("maxReplicas"), 0), 3);
    assert_int_equal(
        td_json_get_int64(td_json_get(stored, TD_STR("status")), TD_STR("desiredReplicas"), 0), 4);
    assert_true(td_str_equal(td_json_get_str(stored, TD_STR("apiVersion"), TD_STR_EMPTY),
                             TD_STR("autoscaling.tandem.dev/v2")));
    td_json_set(&arena, td_json_get(object, TD_STR("spec")), TD_STR("maxReplicas"),
                td_json_new_int64(&arena, 8));
    assert_int_equal(admit(&arena, object, old, &errors, &stored), TD_OK);
    assert_int_equal(
        td_json_get_int64(td_json_get(stored, TD_STR("status")), TD_STR("desiredReplicas"), 0), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_of_the_wrong_type_is_named),
        cmocka_unit_test(test_values_out_of_range_are_named),
        cmocka_unit_test(test_other_objects_are_refused),
        cmocka_unit_test(test_decode_reads_every_field),
        cmocka_unit_test(test_decode_of_hostile_trees),
        cmocka_unit_test(test_milli_values_saturate),
        cmocka_unit_test(test_default_is_idempotent_and_keeps_unknown_members),
        cmocka_unit_test(test_round_trip_through_v1_keeps_everything),
        cmocka_unit_test(test_members_of_the_other_version_stay_dead),
        cmocka_unit_test(test_admit_counts_generation_by_spec),
        cmocka_unit_test(test_admit_keeps_what_the_writer_may_not_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
