/* VerticalPodAutoscaler: bad input field by field, decoding, admission, the CRDs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/vpa/vpa.h"
#include "base/error.h"
#include "base/limits.h"
#include "support/field_lines.h"
#include "support/quoted_json.h"
#include "support/wrong_values.h"

#define ARENA_BYTES ((size_t)1 << 30)
#define ALL_GATES                                                                                  \
    {                                                                                              \
        .in_place = true, .per_vpa_config = true, .cpu_startup_boost = true,                       \
        .heterogeneous_workloads = true, .pod_level_resources = true                               \
    }

#define TARGET "'targetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"

/* An object with a target and the given members of spec. */
static struct td_json *object_of(struct td_arena *arena, const char *members)
{
    td_str text =
        td_arena_format(arena,
                        "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
                        "'metadata':{'name':'v','namespace':'ns'},'spec':{" TARGET "%s%s}}",
                        members[0] != '\0' ? "," : "", members);
    return quoted_json(arena, text.ptr);
}

struct admitted {
    int code;
    struct td_field_errors errors;
    struct td_json *patches;
    struct td_json *warnings;
};

static struct admitted admit(struct td_arena *arena, const struct td_json *object,
                             const struct td_json *old, struct td_vpa_gates gates)
{
    const struct td_vpa_admission admission = {
        .is_update = old != NULL, .object = object, .old = old, .gates = gates};
    struct admitted made = {.errors = {.arena = arena}};
    made.code = td_vpa_admit(arena, &admission, &made.errors, &made.patches, &made.warnings, NULL);
    return made;
}

/* --- every field wrong in turn --- */

static void expect_refused(const char *unused, const struct wrong_way *way, const char *value)
{
    (void)unused;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = td_arena_format(&arena, "{%s%s%s}", way->open, value, way->close);
    struct td_json *tree = quoted_json(&arena, text.ptr);
    struct td_error err = TD_ERROR_INIT;
    struct td_vpa vpa;
    char expected[1200];
    (void)snprintf(expected, sizeof(expected), "%s: %s: ", way->path, value);
    assert_int_equal(td_vpa_decode(&arena, tree, &vpa, &err), TD_INVALID);
    if (strncmp(err.message, expected, strlen(expected)) != 0) {
        fail_msg("'%s' does not begin with '%s'", err.message, expected);
    }
    struct admitted admitted = admit(&arena, tree, NULL, (struct td_vpa_gates)ALL_GATES);
    assert_true(admitted.code == TD_INVALID || admitted.errors.count > 0);
    struct td_field_errors errors = {.arena = &arena};
    struct td_json *stored = NULL;
    assert_int_equal(td_vpa_apply_crd(&arena, tree, &errors, &stored, NULL), TD_OK);
    if (strncmp(way->path, "metadata", 8) != 0 && errors.count == 0) {
        fail_msg("%s: the CRD accepts %s", way->path, value);
    }
}

/* A value of the wrong type anywhere in the object is refused by every entry point; decoding names
 * its path and shows it. */
static void test_every_field_of_the_wrong_type_is_named(void **state)
{
    (void)state;
    struct wrong_walk walk = {.refuse = expect_refused};
    struct wrong_way root = {.open = ""};
    wrong_walk_type(&walk, td_vpa_schema(), &root, 0);
    assert_true(walk.tried > 300);
}

/* --- values out of range --- */

struct range_row {
    const char *spec;  /* members beside targetRef */
    const char *field; /* that must be named */
    const char *shown; /* inside the line: class and value */
};

#define UPDATE(members) "'updatePolicy':{" members "}"
#define EVICTION(items) UPDATE("'updateMode':'Recreate','evictionRequirements':[" items "]")
#define CONTAINER(members)                                                                         \
    "'resourcePolicy':{'containerPolicies':[{'containerName':'a'," members "}]}"
#define POD(members) "'resourcePolicy':{'podPolicies':{" members "}}"
#define CONTAINER_PATH "spec.resourcePolicy.containerPolicies[0]."
#define POD_PATH "spec.resourcePolicy.podPolicies."
#define EVICTION_PATH "spec.updatePolicy.evictionRequirements"
#define SELECTOR(members) "'selector':{" members "}"

static const struct range_row range_rows[] = {
    {UPDATE(""), "spec.updatePolicy.updateMode", "Required value"},
    {UPDATE("'updateMode':''"), "spec.updatePolicy.updateMode", "Unsupported value: \"\""},
    {UPDATE("'updateMode':'off'"), "spec.updatePolicy.updateMode", "Unsupported value: \"off\""},
    {UPDATE("'updateMode':'Off','minReplicas':0"), "spec.updatePolicy.minReplicas",
     "Invalid value: 0"},
    {UPDATE("'updateMode':'Off','minReplicas':-2147483648"), "spec.updatePolicy.minReplicas",
     "Invalid value: -2147483648"},
    {UPDATE("'updateMode':'Off','evictAfterOOMSeconds':0"),
     "spec.updatePolicy.evictAfterOOMSeconds", "Invalid value: 0"},
    {EVICTION("{}"), EVICTION_PATH "[0].resources", "Required value"},
    {EVICTION("null"), EVICTION_PATH "[0].resources", "Required value"},
    {EVICTION("{}"), EVICTION_PATH "[0].changeRequirement", "Required value"},
    {EVICTION("{'resources':['gpu'],'changeRequirement':'Up'}"), EVICTION_PATH "[0].resources[0]",
     "Unsupported value: \"gpu\""},
    {EVICTION("{'resources':['CPU'],'changeRequirement':'Up'}"),
     EVICTION_PATH "[0].changeRequirement", "Unsupported value: \"Up\""},
    {EVICTION("{'resources':['cpu','cpu'],'changeRequirement':'TargetHigherThanRequests'}"),
     EVICTION_PATH "[0].resources[1]", EVICTION_PATH "[0].resources[0]"},
    {"'resourcePolicy':{'containerPolicies':[null]}",
     "spec.resourcePolicy.containerPolicies[0].containerName", "Required value"},
    {CONTAINER("'mode':'On'"), CONTAINER_PATH "mode", "Unsupported value: \"On\""},
    {CONTAINER("'minAllowed':{'cpu':'1n'}"), CONTAINER_PATH "minAllowed[cpu]",
     "Invalid value: \"1n\""},
    {CONTAINER("'maxAllowed':{'memory':'1.5'}"), CONTAINER_PATH "maxAllowed[memory]",
     "Invalid value: \"1500m\""},
    {CONTAINER("'minAllowed':{'cpu':2},'maxAllowed':{'cpu':1}"), CONTAINER_PATH "maxAllowed[cpu]",
     "Invalid value: \"1\""},
    {CONTAINER("'mode':'Off','controlledValues':'RequestsAndLimits'"),
     CONTAINER_PATH "controlledValues", "Forbidden"},
    {CONTAINER("'controlledResources':['cpu','disk']"), CONTAINER_PATH "controlledResources[1]",
     "Unsupported value: \"disk\""},
    {CONTAINER("'oomBumpUpRatio':'0.5'"), CONTAINER_PATH "oomBumpUpRatio", "Invalid value: 0.5"},
    {CONTAINER("'oomBumpUpRatio':-1e6"), CONTAINER_PATH "oomBumpUpRatio",
     "Invalid value: -1e+06: "},
    {CONTAINER("'oomMinBumpUp':-1"), CONTAINER_PATH "oomMinBumpUp", "Invalid value: -1"},
    {CONTAINER("'memoryAggregationIntervalSeconds':0"),
     CONTAINER_PATH "memoryAggregationIntervalSeconds", "Invalid value: 0"},
    {CONTAINER("'memoryAggregationIntervalCount':-9223372036854775808"),
     CONTAINER_PATH "memoryAggregationIntervalCount", "Invalid value: -9223372036854775808"},
    {CONTAINER("'startupBoost':{'cpu':{}}"), CONTAINER_PATH "startupBoost.cpu.type",
     "Required value"},
    {"'startupBoost':{'cpu':{'type':'Percent'}}", "spec.startupBoost.cpu.type",
     "Unsupported value: \"Percent\""},
    {"'startupBoost':{'cpu':{'type':'Factor'}}", "spec.startupBoost.cpu.factor", "Required value"},
    {"'startupBoost':{'cpu':{'type':'Factor','factor':0}}", "spec.startupBoost.cpu.factor",
     "Invalid value: 0"},
    {"'startupBoost':{'cpu':{'type':'Quantity'}}", "spec.startupBoost.cpu.quantity",
     "Required value"},
    {"'startupBoost':{'cpu':{'type':'Quantity','quantity':'1u'}}", "spec.startupBoost.cpu.quantity",
     "Invalid value: \"1u\""},
    {"'recommenders':[{'name':'a'},{'name':'b'}]", "spec.recommenders", "Too many: 2"},
    {POD("'controlledValues':'All'"), POD_PATH "controlledValues", "Unsupported value: \"All\""},
    {POD("'controlledResources':['gpu']"), POD_PATH "controlledResources[0]",
     "Unsupported value: \"gpu\""},
    {POD("'minAllowed':{'cpu':'lots'}"), POD_PATH "minAllowed[cpu]", "Invalid value: \"lots\""},
    {POD("'maxAllowed':{'cpu':true}"), POD_PATH "maxAllowed[cpu]", "Invalid value: true"},
    {POD("'minAllowed':{'memory':'-1'}"), POD_PATH "minAllowed[memory]", "Invalid value: \"-1\""},
    {POD("'minAllowed':{'cpu':'1u'}"), POD_PATH "minAllowed[cpu]", "Invalid value: \"1u\""},
    {POD("'minAllowed':{'cpu':2},'maxAllowed':{'cpu':1}"), POD_PATH "maxAllowed[cpu]",
     POD_PATH "minAllowed[cpu]"},
    {SELECTOR("'matchLabels':{'-a':'b'}"), "spec.selector.matchLabels", "-a"},
    {SELECTOR("'matchLabels':{'a':'b c'}"), "spec.selector.matchLabels", "b c"},
    {SELECTOR("'matchExpressions':[{'key':'a','operator':'Inside'}]"),
     "spec.selector.matchExpressions[0]", "Inside"},
    {SELECTOR("'matchExpressions':[{'key':'a','operator':'In'}]"),
     "spec.selector.matchExpressions[0]", "values"},
};

static void test_values_out_of_range_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(range_rows) / sizeof(range_rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_json *object = object_of(&arena, range_rows[i].spec);
        struct admitted got = admit(&arena, object, NULL, (struct td_vpa_gates)ALL_GATES);
        assert_int_equal(got.code, TD_OK);
        if (!has_line(&got.errors, range_rows[i].field, range_rows[i].shown)) {
            fail_msg("%s: no error at %s with %s (%zu errors)", range_rows[i].spec,
                     range_rows[i].field, range_rows[i].shown, got.errors.count);
        }
        assert_int_equal(got.patches->count, 0);
    }
}

/* A hostile list costs time once, not an error for each of its items. */
static void test_errors_of_a_huge_object_are_bounded(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object =
        object_of(&arena, "'resourcePolicy':{'containerPolicies':[{'containerName':'a',"
                          "'controlledResources':[]}]},'updatePolicy':{'evictionRequirements':[]}");
    struct td_json *resources = td_json_get(
        td_json_first_child(td_json_get_path(object, "spec.resourcePolicy.containerPolicies")),
        TD_STR("controlledResources"));
    struct td_json *requirements =
        td_json_get_path(object, "spec.updatePolicy.evictionRequirements");
    for (size_t i = 0; i < 200000; i++) {
        td_json_append(resources, td_json_new_string(&arena, TD_STR("x")));
        td_json_append(requirements, td_json_new_object(&arena));
    }
    struct admitted got = admit(&arena, object, NULL, (struct td_vpa_gates)ALL_GATES);
    assert_int_equal(got.code, TD_OK);
    assert_in_range(got.errors.count, 100, 200);
    struct td_field_errors errors = {.arena = &arena};
    struct td_json *stored = NULL;
    assert_int_equal(td_vpa_apply_crd(&arena, object, &errors, &stored, NULL), TD_OK);
    assert_in_range(errors.count, 100, 200);
}

/* --- gates, waivers, defaults --- */

struct gate_row {
    const char *spec;
    const char *old;   /* NULL: created */
    const char *field; /* of the refusal; NULL: accepted */
};

#define CONFIG "'memoryAggregationIntervalCount':2"
#define BOOST "'startupBoost':{'cpu':{'type':'Factor','factor':2}}"

/* All gates are closed; what the stored object uses stays allowed. */
static const struct gate_row gate_rows[] = {
    {UPDATE("'updateMode':'InPlace'"), NULL, "spec.updatePolicy.updateMode"},
    {UPDATE("'updateMode':'InPlace'"), "", "spec.updatePolicy.updateMode"},
    {UPDATE("'updateMode':'InPlace'"), UPDATE("'updateMode':'InPlace'"), NULL},
    {CONTAINER(CONFIG), NULL, CONTAINER_PATH "memoryAggregationIntervalCount"},
    {CONTAINER(CONFIG), CONTAINER("'oomMinBumpUp':1"), NULL},
    {CONTAINER(CONFIG), UPDATE("'updateMode':'Off','evictAfterOOMSeconds':1"), NULL},
    {BOOST, NULL, "spec.startupBoost"},
    {BOOST, "'startupBoost':{}", "spec.startupBoost"},
    {BOOST, BOOST, NULL},
    {BOOST, CONTAINER("'startupBoost':{}"), NULL},
    {CONTAINER("'controlledResources':['gpu']"), "", CONTAINER_PATH "controlledResources[0]"},
    {CONTAINER("'controlledResources':['gpu']"),
     "'resourcePolicy':{'containerPolicies':[{'containerName':'z','controlledResources':['gpu']}]}",
     NULL},
    /* A closed gate hides the field, whatever it holds. */
    {POD("'minAllowed':{'cpu':'lots'},'controlledValues':7"), NULL, NULL},
    {"'selector':{'matchExpressions':[{'operator':'Never'}]}", NULL, NULL},
    {"'selector':'x'", NULL, NULL},
};

static void test_gates_and_what_waives_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(gate_rows) / sizeof(gate_rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        const struct gate_row *row = &gate_rows[i];
        struct td_json *old = row->old ? object_of(&arena, row->old) : NULL;
        struct td_vpa_gates closed = {.in_place = false};
        struct admitted got = admit(&arena, object_of(&arena, row->spec), old, closed);
        assert_int_equal(got.code, TD_OK);
        if ((got.errors.count > 0) != (row->field != NULL) ||
            (row->field && !has_line(&got.errors, row->field, ""))) {
            fail_msg("%s after %s: %zu errors", row->spec, row->old ? row->old : "nothing",
                     got.errors.count);
        }
    }
}

static void test_defaults_and_warnings(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa_gates gates = ALL_GATES;
    struct admitted got = admit(&arena, object_of(&arena, ""), NULL, gates);
    assert_true(td_json_equal(got.patches, quoted_json(&arena, "[{'op':'add','path':"
                                                               "'/spec/updatePolicy','value':"
                                                               "{'updateMode':'Recreate'}}]")));
    assert_int_equal(got.warnings->count, 0);
    got = admit(&arena, object_of(&arena, UPDATE("'updateMode':'Auto'")), NULL, gates);
    assert_int_equal(got.patches->count, 0);
    assert_int_equal(got.warnings->count, 1);
    struct td_json *gpu = object_of(&arena, CONTAINER("'controlledResources':['gpu']"));
    got = admit(&arena, gpu, gpu, gates);
    assert_int_equal(got.errors.count, 0);
    assert_int_equal(got.warnings->count, 1);
}

/* An object stored before our rules can still be edited elsewhere. */
static void test_old_faults_do_not_block_other_edits(void **state)
{
    (void)state;
    static const char *const rows[] = {
        EVICTION("{'resources':['cpu','cpu'],'changeRequirement':'TargetLowerThanRequests'}"),
        POD("'minAllowed':{'cpu':2},'maxAllowed':{'cpu':1}"),
    };
    for (size_t i = 0; i < 2; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_json *old = object_of(&arena, rows[i]);
        struct td_json *object = td_json_copy(&arena, old, true);
        td_json_set(&arena,
                    td_json_ensure_object(&arena, td_json_get(object, TD_STR("metadata")),
                                          TD_STR("labels")),
                    TD_STR("a"), td_json_new_string(&arena, TD_STR("b")));
        assert_true(admit(&arena, object, NULL, (struct td_vpa_gates)ALL_GATES).errors.count > 0);
        assert_int_equal(admit(&arena, object, old, (struct td_vpa_gates)ALL_GATES).errors.count,
                         0);
    }
}

/* --- the proposals' own examples --- */

struct example_row {
    const char *spec;
    bool is_valid;
};

static void check_examples(const struct example_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct admitted got =
            admit(&arena, object_of(&arena, rows[i].spec), NULL, (struct td_vpa_gates)ALL_GATES);
        assert_int_equal(got.code, TD_OK);
        if ((got.errors.count == 0) != rows[i].is_valid) {
            fail_msg("%s: %zu errors", rows[i].spec, got.errors.count);
        }
    }
}

#define HIGHER(resources)                                                                          \
    "{'resources':[" resources "],'changeRequirement':'TargetHigherThanRequests'}"
#define LOWER(resources)                                                                           \
    "{'resources':[" resources "],'changeRequirement':'TargetLowerThanRequests'}"

/* Proposal 4831: one requirement for a resource, alone or in a pair. */
static void test_proposal_eviction_requirements(void **state)
{
    (void)state;
    static const struct example_row rows[] = {
        {EVICTION(HIGHER("'cpu'")), true},
        {EVICTION(HIGHER("'cpu'") "," LOWER("'memory'")), true},
        {EVICTION(HIGHER("'cpu','memory'")), true},
        {EVICTION(HIGHER("'cpu'") "," LOWER("'cpu'")), false},
        {EVICTION(HIGHER("'cpu'") "," HIGHER("'cpu'")), false},
        {EVICTION(HIGHER("'cpu','memory'") "," HIGHER("'cpu'")), false},
        {EVICTION(HIGHER("'memory'") "," LOWER("'cpu','memory'")), false},
    };
    check_examples(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Proposal 7571: which controlledResources go together, and sums of minAllowed. */
static void test_proposal_pod_level_resources(void **state)
{
    (void)state;
    static const struct example_row rows[] = {
        {"'resourcePolicy':{'containerPolicies':[{'containerName':'*','controlledResources':"
         "['cpu']}],'podPolicies':{'controlledResources':['memory']}}",
         false},
        {"'resourcePolicy':{'containerPolicies':[{'containerName':'c1','controlledResources':"
         "['cpu']},{'containerName':'c2','controlledResources':['cpu']},{'containerName':'c3',"
         "'controlledResources':['memory']}],'podPolicies':{'controlledResources':['memory']}}",
         true},
        {"'resourcePolicy':{'containerPolicies':[{'containerName':'sidecar','mode':'Off'}]}", true},
        {"'resourcePolicy':{'containerPolicies':[{'containerName':'c1','minAllowed':{'cpu':'100m'}}"
         ","
         "{'containerName':'c2','minAllowed':{'cpu':'200m'}}],'podPolicies':{'minAllowed':"
         "{'cpu':'300m'}}}",
         true},
        {"'resourcePolicy':{'containerPolicies':[{'containerName':'c1','minAllowed':{'cpu':'100m'}}"
         ","
         "{'containerName':'c2','minAllowed':{'cpu':'201m'}}],'podPolicies':{'minAllowed':"
         "{'cpu':'300m'}}}",
         false},
    };
    check_examples(rows, sizeof(rows) / sizeof(rows[0]));
}

/* --- decoding --- */

static void test_decode_reads_every_field(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = object_of(
        &arena,
        "'selector':{'matchLabels':{'role':'leader'}},'recommenders':[{'name':'mine'}],"
        "'startupBoost':{'cpu':{'type':'Quantity','quantity':'500m','durationSeconds':9}},"
        "'updatePolicy':{'updateMode':'InPlace','minReplicas':3,'evictAfterOOMSeconds':60,"
        "'evictionRequirements':[" LOWER(
            "'memory'") "]},"
                        "'resourcePolicy':{'containerPolicies':[{'containerName':'a','mode':'Off',"
                        "'controlledResources':[],'controlledValues':'RequestsOnly','minAllowed':{'"
                        "cpu':'1'},"
                        "'maxAllowed':{'memory':'1Gi'},'oomBumpUpRatio':1.5,'oomMinBumpUp':'1Mi',"
                        "'memoryAggregationIntervalSeconds':5,'memoryAggregationIntervalCount':7,"
                        "'startupBoost':{}}],'podPolicies':{'controlledResources':['cpu'],'"
                        "maxAllowed':"
                        "{'cpu':2}}}");
    td_json_set(&arena, object, TD_STR("status"),
                quoted_json(&arena, "{'conditions':[{'type':'T','status':'True','reason':'R',"
                                    "'message':'M','lastTransitionTime':'2026-01-01T00:00:00Z'}],"
                                    "'recommendation':{},'observedGeneration':4}"));
    struct td_vpa vpa;
    assert_int_equal(td_vpa_decode(&arena, object, &vpa, NULL), TD_OK);
    assert_true(vpa.has_target && vpa.has_selector && vpa.has_update_policy);
    assert_true(td_str_equal(vpa.target_name, TD_STR("web")));
    assert_true(td_str_equal(vpa.recommender, TD_STR("mine")));
    assert_int_equal(vpa.mode, TD_VPA_IN_PLACE);
    assert_int_equal(vpa.min_replicas, 3);
    assert_int_equal(vpa.evict_after_oom_seconds, 60);
    assert_int_equal(vpa.eviction_requirements[0].change, TD_TARGET_LOWER_THAN_REQUESTS);
    assert_true(td_str_equal(vpa.eviction_requirements[0].resources[0], TD_STR("memory")));
    assert_int_equal(vpa.startup_boost.type, TD_BOOST_QUANTITY);
    assert_int_equal(td_quantity_milli(&vpa.startup_boost.quantity), 500);
    assert_int_equal(vpa.startup_boost.duration_seconds, 9);
    const struct td_container_policy *policy = &vpa.policy.containers[0];
    assert_true(policy->is_off && policy->is_requests_only && policy->has_controlled_resources);
    assert_int_equal(policy->controlled_resource_count, 0);
    assert_int_equal(td_quantity_milli(&policy->oom_bump_up_ratio), 1500);
    assert_int_equal(td_quantity_value(&policy->oom_min_bump_up), 1 << 20);
    assert_int_equal(policy->memory_interval_seconds, 5);
    assert_int_equal(policy->memory_interval_count, 7);
    assert_true(policy->startup_boost.is_set && !policy->startup_boost.has_cpu);
    assert_true(vpa.policy.pod.is_set && !vpa.policy.pod.is_requests_only);
    assert_int_equal(
        td_quantity_value(td_resource_list_get(&vpa.policy.pod.max_allowed, TD_STR("cpu"))), 2);
    assert_true(vpa.has_recommendation);
    assert_int_equal(vpa.conditions[0].last_transition.unix_seconds, 1767225600);
    assert_int_equal(vpa.observed_generation, 4);
}

struct mode_row {
    const char *spec;
    enum td_vpa_mode mode;
};

static void test_decode_modes(void **state)
{
    (void)state;
    static const struct mode_row rows[] = {
        {"", TD_VPA_RECREATE},
        {UPDATE(""), TD_VPA_RECREATE},
        {UPDATE("'updateMode':null"), TD_VPA_RECREATE},
        {UPDATE("'updateMode':''"), TD_VPA_RECREATE},
        {UPDATE("'updateMode':'Auto'"), TD_VPA_RECREATE},
        {UPDATE("'updateMode':'Initial'"), TD_VPA_INITIAL},
        {UPDATE("'updateMode':'InPlaceOrRecreate'"), TD_VPA_IN_PLACE_OR_RECREATE},
        {UPDATE("'updateMode':'Off'"), TD_VPA_OFF},
        {UPDATE("'updateMode':'Tomorrow'"), TD_VPA_OFF}, /* never act on what is not understood */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_vpa vpa;
        assert_int_equal(td_vpa_decode(&arena, object_of(&arena, rows[i].spec), &vpa, NULL), TD_OK);
        assert_int_equal(vpa.mode, rows[i].mode);
    }
}

/* Missing, null, {} and empty members all mean every pod of the target. */
static void test_decode_catch_all_selectors(void **state)
{
    (void)state;
    static const char *const rows[] = {"", "'selector':null", "'selector':{}",
                                       "'selector':{'matchLabels':{}}",
                                       "'selector':{'matchExpressions':[],'matchLabels':null}"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_vpa vpa;
        assert_int_equal(td_vpa_decode(&arena, object_of(&arena, rows[i]), &vpa, NULL), TD_OK);
        assert_false(vpa.has_selector);
    }
}

/* A bad selector is refused with its path; outputs stay as they were. */
static void test_decode_refuses_bad_selectors(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa vpa = {.observed_generation = 42};
    struct td_error err = TD_ERROR_INIT;
    struct td_json *object =
        object_of(&arena, SELECTOR("'matchExpressions':[{'key':'a','operator':'Inside'}]"));
    assert_int_equal(td_vpa_decode(&arena, object, &vpa, &err), TD_INVALID);
    assert_non_null(strstr(err.message, "spec.selector: matchExpressions[0]: \"Inside\""));
    assert_int_equal(vpa.observed_generation, 42);
    assert_int_equal(td_vpa_decode(&arena, NULL, &vpa, NULL), TD_INVALID);
}

static void test_container_policy_first_name_then_last_star(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_vpa vpa;
    struct td_json *object = object_of(
        &arena, "'resourcePolicy':{'containerPolicies':[{'containerName':'*'},"
                "{'containerName':'a','controlledResources':['cpu']},{'containerName':'a'},"
                "{'containerName':'*','mode':'Off'}]}");
    assert_int_equal(td_vpa_decode(&arena, object, &vpa, NULL), TD_OK);
    const struct td_container_policy *named = td_vpa_container_policy(&vpa.policy, TD_STR("a"));
    assert_ptr_equal(named, &vpa.policy.containers[1]);
    assert_ptr_equal(td_vpa_container_policy(&vpa.policy, TD_STR("b")), &vpa.policy.containers[3]);
    assert_true(td_vpa_controls(named, TD_STR("cpu")));
    assert_false(td_vpa_controls(named, TD_STR("memory")));
    assert_true(td_vpa_controls(NULL, TD_STR("memory")));
    assert_false(td_vpa_controls(NULL, TD_STR("gpu")));
    assert_null(
        td_vpa_container_policy(&(struct td_resource_policy){.is_set = false}, TD_STR("a")));
}

static void test_maxima_are_quantities_with_digits(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "Mi", "lots", "2Xi", "1.5.5", "-", "0", "-1Gi"};
    static const char *const good[] = {"1500m", "2Gi", "1n", "1e3"};
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_quantity quantity;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(
            td_vpa_parse_flag(&arena, TD_STR("--max"), td_str_from(bad[i]), &quantity, &err),
            TD_INVALID);
        assert_int_equal(strncmp(err.message, "--max: \"", 8), 0);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(
            td_vpa_parse_flag(&arena, TD_STR("--max"), td_str_from(good[i]), &quantity, NULL),
            TD_OK);
    }
}

/* --- the CRDs --- */

/* Every node of a structural schema has a type, or is an integer or string, or is open. */
static void check_structural(const struct td_json *schema, size_t depth)
{
    assert_true(depth < WRONG_STEPS_MAX);
    const struct td_json *properties = td_json_get(schema, TD_STR("properties"));
    assert_true(td_json_get(schema, TD_STR("type")) ||
                td_json_get_bool(schema, TD_STR("x-kubernetes-int-or-string"), false) ||
                td_json_get_bool(schema, TD_STR("x-kubernetes-preserve-unknown-fields"), false));
    for (const struct td_json *field = td_json_first_child(properties); field;
         field = field->next) {
        check_structural(field, depth + 1);
    }
    static const td_str children[] = {TD_STR_INIT("items"), TD_STR_INIT("additionalProperties")};
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *child = td_json_get(schema, children[i]);
        if (child) {
            check_structural(child, depth + 1);
        }
    }
}

struct text_row {
    const char *path;
    const char *vpa;
    const char *checkpoint;
};

/* What is right and has no effect is found, and nothing else. */
static void test_unused_fields_are_found(void **state)
{
    (void)state;
#define REQUIRE(resources, change)                                                                 \
    "'updatePolicy':{'updateMode':'Recreate','evictionRequirements':[{'resources':[" resources     \
    "],'changeRequirement':'" change "'}]}"
#define POLICY(name, rest) "{'containerName':'" name "'," rest "}"
#define POLICIES(list) "'resourcePolicy':{'containerPolicies':[" list "]}"
    static const struct {
        const char *spec;
        const char *field; /* NULL: nothing is found */
        const char *words;
    } rows[] = {
        {REQUIRE("'memory'", "TargetHigherThanRequests"), NULL, NULL},
        /* A container without a policy may be there. */
        {REQUIRE("'memory'", "TargetHigherThanRequests") "," POLICIES(
             POLICY("app", "'controlledResources':['cpu']")),
         NULL, NULL},
        {REQUIRE("'cpu','memory'", "TargetHigherThanRequests") "," POLICIES(
             POLICY("*", "'controlledResources':['cpu']")),
         "spec.updatePolicy.evictionRequirements[0].resources[1]",
         "no container policy controls memory, so its target counts as 0: it is never higher than "
         "a request"},
        {REQUIRE("'cpu'", "TargetLowerThanRequests") "," POLICIES(POLICY("*", "'mode':'Off'")),
         "spec.updatePolicy.evictionRequirements[0].resources[0]",
         "no container policy controls cpu, so its target counts as 0: it is lower than any "
         "request"},
        {POLICIES(POLICY("app", "'minAllowed':{'cpu':'1','memory':'1Gi'}")), NULL, NULL},
        {POLICIES(POLICY("app", "'minAllowed':{'nvidia.com/gpu':'1'}")),
         "spec.resourcePolicy.containerPolicies[0].minAllowed[nvidia.com/gpu]",
         "has no effect: only cpu and memory are recommended"},
        {POLICIES(POLICY("app", "'controlledResources':['cpu'],'maxAllowed':{'memory':'1Gi'}")),
         "spec.resourcePolicy.containerPolicies[0].maxAllowed[memory]",
         "has no effect: controlledResources leaves memory out"},
        {POLICIES(POLICY("app", "'mode':'Off','minAllowed':{'cpu':'1'}")),
         "spec.resourcePolicy.containerPolicies[0].minAllowed[cpu]",
         "has no effect: the mode of the policy is Off"},
        {"'resourcePolicy':{'podPolicies':{'controlledResources':['cpu'],'minAllowed':{'memory':"
         "'1Gi'}}}",
         "spec.resourcePolicy.podPolicies.minAllowed[memory]",
         "has no effect: controlledResources leaves memory out"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_vpa vpa;
        struct td_field_errors found = {.arena = &arena};
        struct td_field_path spec = td_field_child(NULL, TD_STR("spec"));
        struct td_json *object = object_of(&arena, rows[i].spec);
        assert_int_equal(td_vpa_decode(&arena, object, &vpa, NULL), TD_OK);
        td_vpa_find_unused(&vpa, &spec, &found);
        assert_int_equal(found.count, rows[i].field ? 1 : 0);
        if (rows[i].field) {
            assert_true(td_str_equal(found.items[0].field, td_str_from(rows[i].field)));
            assert_true(td_str_equal(found.items[0].detail, td_str_from(rows[i].words)));
        }
    }
}

static void test_crds_have_what_servers_ask_for(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    const struct td_json *crds[] = {td_vpa_crd(&arena), td_vpa_checkpoint_crd(&arena)};
    static const struct text_row rows[] = {
        {"metadata.name", "verticalpodautoscalers.autoscaling.k8s.io",
         "verticalpodautoscalercheckpoints.autoscaling.k8s.io"},
        {"spec.group", "autoscaling.k8s.io", "autoscaling.k8s.io"},
        {"spec.scope", "Namespaced", "Namespaced"},
        {"spec.names.kind", "VerticalPodAutoscaler", "VerticalPodAutoscalerCheckpoint"},
        {"spec.names.listKind", "VerticalPodAutoscalerList", "VerticalPodAutoscalerCheckpointList"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(
            td_str_equal(td_json_get_path(crds[0], rows[i].path)->text, td_str_from(rows[i].vpa)));
        assert_true(td_str_equal(td_json_get_path(crds[1], rows[i].path)->text,
                                 td_str_from(rows[i].checkpoint)));
    }
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *versions = td_json_get_path(crds[i], "spec.versions");
        const struct td_json *annotations = td_json_get_path(crds[i], "metadata.annotations");
        assert_non_null(td_json_get(annotations, TD_STR("api-approved.kubernetes.io")));
        assert_int_equal(versions->count, 2);
        assert_true(td_json_get_bool(td_json_first_child(versions), TD_STR("served"), false));
        assert_false(td_json_get_bool(td_json_last_child(versions), TD_STR("served"), true));
        assert_false(td_json_get_bool(td_json_last_child(versions), TD_STR("storage"), true));
        assert_true(td_json_get_bool(td_json_last_child(versions), TD_STR("deprecated"), false) ==
                    (i == 0));
        assert_true(!td_json_get(td_json_first_child(versions), TD_STR("subresources")) ==
                    (i == 1));
        for (const struct td_json *version = td_json_first_child(versions); version;
             version = version->next) {
            check_structural(td_json_get_path(version, "schema.openAPIV3Schema"), 0);
        }
    }
    const struct td_json *first = td_json_first_child(td_json_get_path(crds[0], "spec.versions"));
    assert_int_equal(td_json_get(first, TD_STR("additionalPrinterColumns"))->count, 11);
}

/* The proposals' fields survive, unknown ones and nulls do not, and a stored object stays as it
 * is. */
static void test_crd_keeps_and_prunes(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object =
        object_of(&arena, "'selector':{'matchLabels':{'a':'b','c':null},'x':1},'unknown':{'a':1},"
                          "'resourcePolicy':{'podPolicies':{'minAllowed':{'cpu':1},'mode':'Off'}},"
                          "'updatePolicy':null");
    struct td_json *expected =
        object_of(&arena, "'selector':{'matchLabels':{'a':'b'}},'resourcePolicy':{'podPolicies':"
                          "{'minAllowed':{'cpu':1}}}");
    struct td_field_errors errors = {.arena = &arena};
    struct td_json *stored = NULL;
    struct td_json *again = NULL;
    assert_int_equal(td_vpa_apply_crd(&arena, object, &errors, &stored, NULL), TD_OK);
    assert_int_equal(errors.count, 0);
    assert_true(td_json_equal(stored, expected));
    assert_int_equal(td_vpa_apply_crd(&arena, stored, &errors, &again, NULL), TD_OK);
    assert_true(td_json_equal(stored, again));
    assert_int_equal(td_vpa_apply_crd(&arena, NULL, &errors, &again, NULL), TD_INVALID);
}

static const struct range_row schema_rows[] = {
    {UPDATE("'minReplicas':2147483648"), "<nil>", "format int32 in spec.updatePolicy.minReplicas"},
    {UPDATE("'minReplicas':1.5"), "spec.updatePolicy.minReplicas", "must be of type int32"},
    {UPDATE("'minReplicas':true"), "spec.updatePolicy.minReplicas", "must be of type int32: \"\""},
    {UPDATE("'minReplicas':[]"), "spec.updatePolicy.minReplicas", "of type integer: \"array\""},
    {UPDATE("'evictAfterOOMSeconds':0"), "spec.updatePolicy.evictAfterOOMSeconds",
     "should be greater than or equal to 1"},
    {UPDATE("'updateMode':[1]"), "spec.updatePolicy.updateMode", "Unsupported value: [1]"},
    {CONTAINER("'minAllowed':{'cpu':true}"), "<nil>", "must validate at least one schema (anyOf)"},
    {CONTAINER("'minAllowed':{'cpu':1.5}"), CONTAINER_PATH "minAllowed.cpu",
     "must be of type integer: \"number\""},
    {CONTAINER("'minAllowed':{'cpu':[]}"), CONTAINER_PATH "minAllowed.cpu",
     "must be of type integer,string: \"array\""},
    {CONTAINER("'oomMinBumpUp':3.0000000001"), "<nil>",
     "Checked value must be of type integer (default format)"},
    {UPDATE("'evictAfterOOMSeconds':1e-7"), "spec.updatePolicy.evictAfterOOMSeconds",
     "Invalid value: 1e-07: "},
    {UPDATE("'evictAfterOOMSeconds':-3.0"), "spec.updatePolicy.evictAfterOOMSeconds",
     "Invalid value: -3: "},
    {CONTAINER("'minAllowed':{'cpu':' 1'}"), CONTAINER_PATH "minAllowed.cpu", "should match"},
    {CONTAINER("'controlledResources':[null]"), CONTAINER_PATH "controlledResources[0]",
     "must be of type string: \"null\""},
    {POD("'controlledResources':['gpu']"), POD_PATH "controlledResources[0]",
     "Unsupported value: \"gpu\""},
    {SELECTOR("'matchExpressions':[{}]"), "spec.selector.matchExpressions[0].key",
     "Required value"},
    {"'startupBoost':{'cpu':{'type':'Factor'}}", "spec.startupBoost.cpu",
     "factor is required when type is Factor"},
    {CONTAINER("'startupBoost':{'cpu':{'type':'Factor','factor':1,'quantity':1}}"),
     CONTAINER_PATH "startupBoost.cpu", "quantity is required when type is Quantity"},
};

static void test_crd_refuses_in_a_servers_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(schema_rows) / sizeof(schema_rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_field_errors errors = {.arena = &arena};
        struct td_json *stored = NULL;
        struct td_json *object = object_of(&arena, schema_rows[i].spec);
        assert_int_equal(td_vpa_apply_crd(&arena, object, &errors, &stored, NULL), TD_OK);
        if (!has_line(&errors, schema_rows[i].field, schema_rows[i].shown)) {
            fail_msg("%s: no error at %s with %s (%zu errors)", schema_rows[i].spec,
                     schema_rows[i].field, schema_rows[i].shown, errors.count);
        }
    }
}

/* A whole number may be written as a float; times have their format. */
static void test_crd_accepts_what_servers_accept(void **state)
{
    (void)state;
    static const char *const times[] = {"2026-01-01T00:00:00Z", "2026-01-01t23:59:59.5z",
                                        "2026-01-01T00:00:00+02:00"};
    static const char *const bad_times[] = {"2026-01-01",
                                            "2026-02-30T00:00:00Z",
                                            "2026-01-01T24:00:00Z",
                                            "2026-01-01T00:00:00",
                                            "2026-01-01T00:00Z",
                                            "T",
                                            ""};
    for (size_t i = 0; i < 3 + 7; i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_field_errors errors = {.arena = &arena};
        struct td_json *stored = NULL;
        struct td_json *object = object_of(&arena, UPDATE("'minReplicas':3.0"));
        td_str status = td_arena_format(
            &arena, "{'conditions':[{'type':'a','status':'b','lastTransitionTime':'%s'}]}",
            i < 3 ? times[i] : bad_times[i - 3]);
        td_json_set(&arena, object, TD_STR("status"), quoted_json(&arena, status.ptr));
        assert_int_equal(td_vpa_apply_crd(&arena, object, &errors, &stored, NULL), TD_OK);
        assert_int_equal(errors.count, i < 3 ? 0 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_of_the_wrong_type_is_named),
        cmocka_unit_test(test_values_out_of_range_are_named),
        cmocka_unit_test(test_errors_of_a_huge_object_are_bounded),
        cmocka_unit_test(test_gates_and_what_waives_them),
        cmocka_unit_test(test_defaults_and_warnings),
        cmocka_unit_test(test_old_faults_do_not_block_other_edits),
        cmocka_unit_test(test_proposal_eviction_requirements),
        cmocka_unit_test(test_proposal_pod_level_resources),
        cmocka_unit_test(test_decode_reads_every_field),
        cmocka_unit_test(test_decode_modes),
        cmocka_unit_test(test_decode_catch_all_selectors),
        cmocka_unit_test(test_decode_refuses_bad_selectors),
        cmocka_unit_test(test_container_policy_first_name_then_last_star),
        cmocka_unit_test(test_maxima_are_quantities_with_digits),
        cmocka_unit_test(test_unused_fields_are_found),
        cmocka_unit_test(test_crds_have_what_servers_ask_for),
        cmocka_unit_test(test_crd_keeps_and_prunes),
        cmocka_unit_test(test_crd_refuses_in_a_servers_words),
        cmocka_unit_test(test_crd_accepts_what_servers_accept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
