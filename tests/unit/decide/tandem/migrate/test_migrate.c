/* Hvpas made from existing objects: gardener's weights and metrics, pairs of an HPA and a VPA. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "decide/tandem/migrate/migrate.h"
#include "support/quoted_json.h"

#define ARENA_BYTES ((size_t)64 << 20)

#define TARGET "{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"

static struct td_migration gardener(struct td_arena *arena, const char *bounds,
                                    const char *intervals)
{
    td_str text = td_arena_format(
        arena,
        "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'web'},"
        "'spec':{'targetRef':" TARGET ",'hpa':{'deploy':true,'template':{'spec':{%s}}},"
        "'vpa':{'deploy':true,'template':{'spec':{}}},'weightBasedScalingIntervals':[%s]}}",
        bounds, intervals);
    struct td_migration migration = {.object = NULL};
    td_migrate_gardener(arena, quoted_json(arena, text.ptr), &migration);
    return migration;
}

#define INTERVAL(weight, first, last)                                                              \
    "{'vpaWeight':" #weight ",'startReplicaCount':" #first ",'lastReplicaCount':" #last "}"

struct weights_row {
    const char *intervals;
    const char *mode;  /* NULL: cannot be expressed */
    const char *ratio; /* ratioBasedScalingSpec, or NULL */
    const char *initial;
    const char *final;
};

/* Each shape of weights over 1 to 10 replicas; gaps weigh 0 and the first match counts. */
static void test_weights(void **state)
{
    (void)state;
    static const struct weights_row rows[] = {
        {INTERVAL(0, 1, 2) "," INTERVAL(60, 3, 7) "," INTERVAL(0, 8, 10), "RatioBased",
         "{'vToHScalingRatio':1.5,'startReplicaCount':3,'finishReplicaCount':7}", "horizontal",
         "horizontal"},
        {INTERVAL(60, 3, 7), "RatioBased",
         "{'vToHScalingRatio':1.5,'startReplicaCount':3,'finishReplicaCount':7}", "horizontal",
         "horizontal"},
        {INTERVAL(100, 1, 1) "," INTERVAL(50, 2, 4) "," INTERVAL(0, 5, 10), "RatioBased",
         "{'vToHScalingRatio':1,'startReplicaCount':2,'finishReplicaCount':4}", "vertical",
         "horizontal"},
        {INTERVAL(0, 1, 9) "," INTERVAL(100, 10, 10), "HPAPreferred", NULL, NULL, NULL},
        {INTERVAL(100, 10, 0), "HPAPreferred", NULL, NULL, NULL},
        {INTERVAL(0, 0, 4) "," INTERVAL(100, 5, 0), "RatioBased",
         "{'startReplicaCount':5,'finishReplicaCount':5}", "horizontal", "vertical"},
        {INTERVAL(75, 0, 4) "," INTERVAL(100, 5, 0), "RatioBased",
         "{'vToHScalingRatio':3,'finishReplicaCount':4}", NULL, "vertical"},
        {INTERVAL(0, 0, 4) "," INTERVAL(75, 5, 0), "RatioBased",
         "{'vToHScalingRatio':3,'startReplicaCount':5}", "horizontal", NULL},
        {INTERVAL(50, 0, 0), "RatioBased", "{'vToHScalingRatio':1}", NULL, NULL},
        {INTERVAL(50, 0, 0) "," INTERVAL(10, 3, 4), "RatioBased", "{'vToHScalingRatio':1}", NULL,
         NULL},
        {INTERVAL(0, 1, 3) "," INTERVAL(100, 4, 6) "," INTERVAL(0, 7, 10), "RatioBased",
         "{'vToHScalingRatio':1000000,'startReplicaCount':4,'finishReplicaCount':6}", "horizontal",
         "horizontal"},
        {"", "HPABiased", NULL, NULL, NULL},
        {INTERVAL(0, 0, 0), "HPABiased", NULL, NULL, NULL},
        {INTERVAL(100, 0, 0), "VPABiased", NULL, NULL, NULL},
        {INTERVAL(10, 1, 2) "," INTERVAL(20, 3, 10), NULL, NULL, NULL, NULL},
        {INTERVAL(0, 1, 2) "," INTERVAL(10, 3, 4) "," INTERVAL(20, 5, 10), NULL, NULL, NULL, NULL},
        {INTERVAL(0, 1, 2) "," INTERVAL(10, 3, 4) "," INTERVAL(20, 5, 6) "," INTERVAL(0, 7, 10),
         NULL, NULL, NULL, NULL},
        {INTERVAL(101, 1, 10), NULL, NULL, NULL, NULL},
        {INTERVAL(-1, 1, 10), NULL, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_migration got =
            gardener(&arena, "'minReplicas':1,'maxReplicas':10", rows[i].intervals);
        assert_true(got.note_count > 0);
        assert_int_equal(got.object != NULL, rows[i].mode != NULL);
        if (!got.object) {
            continue;
        }
        const struct td_json *spec = td_json_get(got.object, TD_STR("spec"));
        td_str mode = td_json_get_str(spec, TD_STR("mode"), TD_STR_EMPTY);
        assert_true(td_str_equal(mode, td_str_from(rows[i].mode)));
        const struct td_json *ratio = td_json_get(spec, TD_STR("ratioBasedScalingSpec"));
        assert_true(
            td_json_equal(ratio, rows[i].ratio ? quoted_json(&arena, rows[i].ratio) : NULL));
        td_str initial = td_json_get_str(spec, TD_STR("initialScaling"), TD_STR_EMPTY);
        td_str final = td_json_get_str(spec, TD_STR("finalScaling"), TD_STR_EMPTY);
        assert_true(td_str_equal(initial, td_str_from(rows[i].initial)));
        assert_true(td_str_equal(final, td_str_from(rows[i].final)));
    }
}

/* Bounds that gardener's validator would trip over are answered. */
static void test_bad_bounds(void **state)
{
    (void)state;
    static const char *const rows[] = {"", "'minReplicas':3,'maxReplicas':2",
                                       "'minReplicas':0,'maxReplicas':2", "'maxReplicas':'many'",
                                       "'maxReplicas':99999999999"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_migration got = gardener(&arena, rows[i], INTERVAL(0, 0, 0));
        assert_null(got.object);
        assert_int_equal(got.note_count, 1);
    }
}

/* Metrics of v2beta1 in each of their five kinds become v2's. */
static void test_old_metrics(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_migration got =
        gardener(&arena,
                 "'maxReplicas':5,'metrics':["
                 "{'type':'Resource','resource':{'name':'cpu','targetAverageUtilization':80}},"
                 "{'type':'ContainerResource','containerResource':{'name':'memory','container':'a',"
                 "'targetAverageValue':'1Gi'}},"
                 "{'type':'Pods','pods':{'metricName':'rps','targetAverageValue':'30'}},"
                 "{'type':'Object','object':{'metricName':'q','target':{'apiVersion':'v1',"
                 "'kind':'Service','name':'s'},'targetValue':'5'}},"
                 "{'type':'External','external':{'metricName':'e','metricSelector':{'matchLabels':"
                 "{'a':'b'}},'targetAverageValue':'7'}}]",
                 INTERVAL(50, 0, 0));
    assert_non_null(got.object);
    const struct td_json *metrics = td_json_get_path(got.object, "spec.hpaSpec.metrics");
    assert_true(td_json_equal(
        metrics,
        quoted_json(
            &arena,
            "[{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization',"
            "'averageUtilization':80}}},"
            "{'type':'ContainerResource','containerResource':{'name':'memory','container':'a',"
            "'target':{'type':'AverageValue','averageValue':'1Gi'}}},"
            "{'type':'Pods','pods':{'metric':{'name':'rps'},'target':{'type':'AverageValue',"
            "'averageValue':'30'}}},"
            "{'type':'Object','object':{'metric':{'name':'q'},'describedObject':"
            "{'apiVersion':'v1','kind':'Service','name':'s'},'target':{'type':'Value',"
            "'value':'5'}}},"
            "{'type':'External','external':{'metric':{'name':'e','selector':{'matchLabels':"
            "{'a':'b'}}},'target':{'type':'AverageValue','averageValue':'7'}}}]")));
}

struct pair_row {
    const char *metric;
    const char *vpa; /* spec beside the target */
    const char *mode;
    bool is_vertical_off;
};

#define CPU(target) "'resource':{'name':'cpu','target':{" target "}}"

/* The mode follows from what the two share; what was Off stays off. */
static void test_pairs(void **state)
{
    (void)state;
    static const struct pair_row rows[] = {
        {CPU("'type':'Utilization','averageUtilization':50"), "", "RatioBased", false},
        {CPU("'type':'AverageValue','averageValue':'300m'"), "", "HPABiased", false},
        {CPU("'type':'Utilization','averageUtilization':50"),
         ",'resourcePolicy':{'containerPolicies':[{'containerName':'*','controlledResources':"
         "['memory']}]}",
         "HPABiased", false},
        {CPU("'type':'Utilization','averageUtilization':50"),
         ",'selector':{'matchLabels':{'a':'b'}}", "HPABiased", false},
        {CPU("'type':'Utilization','averageUtilization':50"),
         ",'updatePolicy':{'updateMode':'Off'}", "RatioBased", true},
        {CPU("'type':'Utilization','averageUtilization':50"),
         ",'updatePolicy':{'updateMode':'Initial','minReplicas':1}", "RatioBased", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        td_str text = td_arena_format(
            &arena,
            "{'apiVersion':'v1','kind':'List','items':[{'apiVersion':'autoscaling/v2',"
            "'kind':'HorizontalPodAutoscaler','metadata':{'name':'h'},'spec':{'maxReplicas':5,"
            "'scaleTargetRef':" TARGET ",'metrics':[{'type':'Resource',%s}]}},"
            "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
            "'metadata':{'name':'v'},'spec':{'targetRef':" TARGET "%s}}]}",
            rows[i].metric, rows[i].vpa);
        struct td_manifest manifest = {.count = 0};
        struct td_migrations got;
        struct td_error err = TD_ERROR_INIT;
        if (td_manifest_read(&arena, TD_STR("a.json"), quoted_text(&arena, text.ptr), &manifest,
                             &err) < 0) {
            fail_msg("%s", err.message);
        }
        td_migrate_all(&arena, &manifest, &got);
        assert_int_equal(got.count, 1);
        const struct td_json *object = got.items[0].object;
        assert_non_null(object);
        const struct td_json *spec = td_json_get(object, TD_STR("spec"));
        td_str mode = td_json_get_str(spec, TD_STR("mode"), TD_STR_EMPTY);
        assert_true(td_str_equal(mode, td_str_from(rows[i].mode)));
        assert_int_equal(td_json_get(spec, TD_STR("vertical")) != NULL, rows[i].is_vertical_off);
        assert_null(td_json_get_path(spec, "vpaSpec.updatePolicy.updateMode"));
        assert_null(td_json_get_path(spec, "hpaSpec.scaleTargetRef"));
    }
}

/* Many annotations are settings, so they go with the object; not what conversion has read already,
 * nor the copy that kubectl keeps of another object. */
static void test_annotations_are_carried(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_str text = quoted_text(
        &arena,
        "{'apiVersion':'v1','kind':'List','items':[{'apiVersion':'autoscaling/v1',"
        "'kind':'HorizontalPodAutoscaler','metadata':{'name':'h','labels':{'app':'web'},"
        "'annotations':{'tandem.dev/hpa-selection-strategy':'OwnerReference','team':'a',"
        "'kubectl.kubernetes.io/last-applied-configuration':'{}',"
        "'autoscaling.alpha.kubernetes.io/behavior':'{}'}},'spec':{'maxReplicas':5,"
        "'targetCPUUtilizationPercentage':50,'scaleTargetRef':" TARGET "}},"
        "{'apiVersion':'autoscaling.k8s.io/v1','kind':'VerticalPodAutoscaler',"
        "'metadata':{'name':'v','annotations':{'tandem.dev/estimator':'adaptive','team':'b'}},"
        "'spec':{'targetRef':" TARGET "}},"
        "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'g',"
        "'annotations':{'own':'1'}},'spec':{'targetRef':{'apiVersion':'apps/v1','kind':"
        "'Deployment','name':'other'},'hpa':{'deploy':true,'template':{'metadata':{'annotations':"
        "{'of-hpa':'2'}},'spec':{'maxReplicas':3}}},'vpa':{'deploy':true,'template':{'metadata':{"
        "'annotations':{'of-vpa':'3'}},'spec':{}}}}}]}");
    static const char *const annotations[] = {
        "{'tandem.dev/hpa-selection-strategy':'OwnerReference','team':'a',"
        "'tandem.dev/estimator':'adaptive'}",
        "{'own':'1','of-hpa':'2','of-vpa':'3'}",
    };
    struct td_manifest manifest = {.count = 0};
    struct td_migrations got;
    struct td_error err = TD_ERROR_INIT;
    assert_int_equal(td_manifest_read(&arena, TD_STR("a.json"), text, &manifest, &err), TD_OK);
    td_migrate_all(&arena, &manifest, &got);
    assert_int_equal(got.count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct td_json *made = td_json_get_path(got.items[i].object, "metadata.annotations");
        assert_true(td_json_equal(made, quoted_json(&arena, annotations[i])));
    }
    assert_true(td_json_equal(td_json_get_path(got.items[0].object, "metadata.labels"),
                              quoted_json(&arena, "{'app':'web'}")));
    bool is_noted = false;
    for (size_t i = 0; i < got.items[0].note_count; i++) {
        is_noted = is_noted || td_str_equal(got.items[0].notes[i],
                                            TD_STR("Annotation team has several values: the first "
                                                   "is kept."));
    }
    assert_true(is_noted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_bad_bounds),
        cmocka_unit_test(test_old_metrics),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_annotations_are_carried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
