/* Readers of objects survive every shape of every member, with and without a place for the reason:
 * kinds by their schema, annotations by what they hold. */
#include "support/shapes.h"

#include <stdio.h>

#include "api/hpa/hpa.h"
#include "api/hvpa/hvpa.h"
#include "api/objects.h"
#include "api/vpa/checkpoint.h"
#include "api/vpa/recommendation.h"
#include "api/vpa/vpa.h"
#include "decide/horizontal/status.h"
#include "decide/horizontal/strategy.h"
#include "decide/manifests.h"
#include "decide/tandem/migrate/migrate.h"
#include "decide/tandem/ownership.h"
#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/patch/boost.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/recommender/oom_annotation.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/siblings_check.h"
#include "kube/apply/fieldset.h"
#include "kube/apply/last_applied.h"
#include "kube/apply/managed.h"
#include "kube/client/lease_object.h"
#include "kube/meta.h"
#include "kube/patch/patch.h"
#include "kube/podresources.h"
#include "kube/quantity/quantity.h"
#include "kube/schema/check.h"
#include "kube/selector/labels.h"
#include "kube/selector/selector.h"
#include "model/owners.h"
#include "model/pod.h"
#include "model/template.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TURN_BYTES ((size_t)64 << 20)
#define NOW ((td_time)1773482467 * TD_SECOND)

typedef int (*read_fn)(struct td_arena *arena, const struct td_json *object, struct td_error *err);

static td_str text_of(struct td_arena *arena, const struct td_json *object)
{
    td_auto_buf text;
    td_buf_init(&text, TURN_BYTES);
    td_json_write(object, NULL, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

/* ---- Every kind ---- */

static int read_meta(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_meta meta;
    (void)td_labels_from_json(arena, td_json_get_path(object, "metadata.labels"));
    return td_meta_decode(arena, object, &meta, err);
}

static int read_managed(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_managed managed;
    return td_managed_decode(arena, object, &managed, err);
}

static int read_owner(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_workload workload;
    struct td_ownership_object owned;
    (void)td_ownership_read(object, &owned); /* false is an answer */
    return td_workload_decode(arena, object, &workload, err);
}

/* What `tandem validate` does with an object, alone and beside others. */
static int read_checked(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    td_str version = td_json_get_str(object, TD_STR("apiVersion"), TD_STR_EMPTY);
    td_str kind = td_json_get_str(object, TD_STR("kind"), TD_STR_EMPTY);
    const struct td_schema_type *type = shapes_schema(version, kind);
    struct td_problems alone = {.arena = arena};
    int code = td_check_types(type ? type : td_schema_any_object(), object, NULL, err);
    if (code < 0) {
        return code;
    }
    td_check_unknown(type ? type : td_schema_any_object(), object, &alone);
    td_objects_check(version, kind, object, &alone);
    struct td_manifest manifest = {.count = 0};
    code = td_manifest_read(arena, TD_STR("a.json"), text_of(arena, object), &manifest, err);
    if (code < 0) {
        return code;
    }
    struct td_problems *problems = td_arena_array(arena, struct td_problems, manifest.count);
    for (size_t i = 0; i < manifest.count; i++) {
        problems[i] = (struct td_problems){.arena = arena};
    }
    td_objects_check_all(&manifest, problems);
    td_siblings_check_all(&manifest, problems);
    td_manifests_check_all(&manifest, problems);
    struct td_migrations migrations;
    td_migrate_all(arena, &manifest, &migrations);
    return TD_OK;
}

/* ---- Pods and what they are made from ---- */

static int read_pod(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_pod pod;
    return td_pod_decode(arena, object, &pod, err);
}

static int read_vertical_pod(struct td_arena *arena, const struct td_json *object,
                             struct td_error *err)
{
    struct td_pod pod;
    return td_pod_decode(arena, object, &pod, err);
}

static int read_requests(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    const struct td_pod_resource_options options = {.use_status_resources = true,
                                                    .in_place_pod_level_resources = true};
    struct td_resource_list list;
    return td_pod_requests(arena, object, &options, &list, err);
}

static int read_limits(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    const struct td_pod_resource_options options = {.use_status_resources = true};
    struct td_resource_list list;
    return td_pod_limits(arena, object, &options, &list, err);
}

static int read_template(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    const struct td_json *selector = td_json_get_path(object, "spec.selector");
    struct td_selector made;
    (void)td_pod_template_decode(arena, td_json_get_path(object, "spec.template"));
    (void)td_selector_check_json(arena, selector, NULL); /* refusing is fine */
    return td_selector_from_json(arena, selector, &made, err);
}

static int read_limit_range(struct td_arena *arena, const struct td_json *object,
                            struct td_error *err)
{
    struct td_limit_ranges ranges;
    return td_limit_ranges_read(arena, &object, 1, TD_STR_EMPTY, &ranges, err);
}

static int read_lease(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_json *tree;
    struct td_lease_record record;
    return td_lease_decode(arena, text_of(arena, object), &tree, &record, err);
}

/* ---- Autoscalers ---- */

static int read_vpa(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_vpa vpa;
    return td_vpa_decode(arena, object, &vpa, err);
}

static int read_vpa_crd(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_field_errors errors = {.arena = arena};
    struct td_json *stored;
    return td_vpa_apply_crd(arena, object, &errors, &stored, err);
}

static int admit_vpa(struct td_arena *arena, const struct td_json *object,
                     const struct td_json *old, struct td_error *err)
{
    const struct td_vpa_admission admission = {
        .is_update = old != NULL,
        .object = object,
        .old = old,
        .gates = {.in_place = true,
                  .per_vpa_config = true,
                  .cpu_startup_boost = true,
                  .heterogeneous_workloads = true,
                  .pod_level_resources = true},
    };
    struct td_field_errors errors = {.arena = arena};
    struct td_json *patches;
    struct td_json *warnings;
    return td_vpa_admit(arena, &admission, &errors, &patches, &warnings, err);
}

static int read_new_vpa(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    return admit_vpa(arena, object, NULL, err);
}

static int read_old_vpa(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    const char *other = "{\"spec\":{\"targetRef\":{\"kind\":\"Deployment\",\"name\":\"a\"}}}";
    return admit_vpa(arena, shapes_parse(arena, other), object, err);
}

static int read_recommendation(struct td_arena *arena, const struct td_json *object,
                               struct td_error *err)
{
    struct td_recommendation made;
    return td_recommendation_decode(arena, td_json_get_path(object, "status.recommendation"), &made,
                                    err);
}

static int read_checkpoint(struct td_arena *arena, const struct td_json *object,
                           struct td_error *err)
{
    struct td_checkpoint made;
    return td_checkpoint_decode(arena, object, &made, err);
}

/* A checkpoint as a restarted recommender takes it, annotations and all. */
static int read_knowledge(struct td_arena *arena, const struct td_json *object,
                          struct td_error *err)
{
    struct td_checkpoint made;
    int code = td_checkpoint_decode(arena, object, &made, err);
    if (code < 0) {
        return code;
    }
    const struct td_vpa vpa = {.meta = {.name = made.vpa_name, .namespace = TD_STR("a")},
                               .target_kind = TD_STR("Deployment"),
                               .target_name = TD_STR("a"),
                               .target_api_version = TD_STR("apps/v1")};
    struct td_selector all;
    assert_int_equal(td_selector_parse(arena, TD_STR("a=a"), &all, NULL), TD_OK);
    const struct td_json *annotations = td_json_get_path(object, "metadata.annotations");
    const struct td_vpa_link link = {.vpa = &vpa,
                                     .target_selector = &all,
                                     .target = TD_STR_EMPTY,
                                     .estimator = td_estimator_find(TD_STR("adaptive"))};
    struct td_vertical_config config = td_vertical_config_default();
    struct td_recommender *recommender = td_recommender_new(&config);
    code = td_recommender_set_vpa(recommender, &link, NOW, err);
    if (code == TD_OK) {
        code = td_recommender_load(recommender, TD_STR("a"), &made, annotations, NOW, err);
    }
    td_recommender_free(recommender);
    return code;
}

static int read_hpa(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_json *copy = td_json_copy(arena, object, false);
    struct td_hpa hpa;
    struct td_hpa_status status;
    td_hpa_status_read(arena, td_json_get(object, TD_STR("status")), &status);
    int code = td_hpa_default(arena, copy, err);
    code = code == TD_OK ? td_hpa_decode(arena, copy, &hpa, err) : code;
    if (code == TD_OK) {
        const struct td_hpa_strategy_options options = {.primary_key = TD_STR("a")};
        (void)td_hpa_strategy_choose(&hpa, &options);
    }
    return code;
}

static int read_hpa_file(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_hpa hpa;
    return td_manifests_hpa(arena, object, &hpa, err);
}

static int convert_hpa(struct td_arena *arena, const struct td_json *object, const char *to,
                       struct td_error *err)
{
    struct td_json *made;
    return td_hpa_convert(arena, object, td_str_from(to), &made, err);
}

static int read_as_v1(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    return convert_hpa(arena, object, "autoscaling/v1", err);
}

static int read_as_v2(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    return convert_hpa(arena, object, "autoscaling/v2", err);
}

static int read_new_hpa(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_field_errors errors = {.arena = arena};
    const struct td_hpa_admission admission = {.object = object};
    return td_hpa_admit(arena, &admission, &errors, NULL, err);
}

static int read_hvpa(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_hvpa hvpa;
    td_str field;
    struct td_hvpa_findings findings = {.errors = {.arena = arena}, .warnings = {.arena = arena}};
    (void)td_hvpa_target(object, &field);
    (void)td_hvpa_decode(arena, object, &hvpa, &findings, NULL); /* refusing is fine */
    return td_hvpa_decode(arena, object, &hvpa, NULL, err);
}

static int read_hvpa_status(struct td_arena *arena, const struct td_json *object,
                            struct td_error *err)
{
    struct td_hvpa_status status;
    return td_hvpa_status_decode(arena, td_json_get(object, TD_STR("status")), &status, err);
}

/* What reads annotations of pods and of autoscalers. */
static int read_boost(struct td_arena *arena, const struct td_json *object, struct td_error *err)
{
    struct td_pod pod;
    struct td_resource_list requests;
    struct td_resource_list limits;
    const struct td_vpa vpa = {.has_target = false};
    int code = td_pod_decode(arena, object, &pod, err);
    if (code < 0) {
        return code;
    }
    (void)td_boost_is_in_progress(&pod);
    (void)td_boost_remaining(&pod, &vpa, NOW);
    (void)td_boost_is_expired(&pod, &vpa, td_boost_annotation(arena, TD_STR("a")), NOW);
    return td_boost_original(arena, &pod, TD_STR("a"), &requests, &limits, err);
}

static int read_estimator(struct td_arena *arena, const struct td_json *object,
                          struct td_error *err)
{
    (void)arena;
    (void)err;
    (void)td_estimator_choose(td_json_get_path(object, "metadata.annotations"),
                              td_estimator_find(TD_STR("adaptive")));
    return TD_OK;
}

/* ---- The table ---- */

/* Objects as they are stored, with every annotation that is read. */
static const char pod_text[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"a\","
    "\"labels\":{\"a\":\"a\"},\"annotations\":{\"vpaCpuStartupBoost/a\":\"{\\\"requests\\\":{"
    "\\\"cpu\\\":\\\"1\\\"},\\\"limits\\\":{\\\"cpu\\\":\\\"2\\\"}}\","
    "\"vpaObservedContainers\":\"a, b\",\"vpaUpdates\":\"Pod resources updated by a\","
    "\"tandem.dev/hvpa\":\"a\",\"kubectl.kubernetes.io/last-applied-configuration\":"
    "\"{\\\"metadata\\\":{\\\"name\\\":\\\"a\\\"},\\\"spec\\\":{\\\"a\\\":[1]}}\"},"
    "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"a\","
    "\"uid\":\"u\",\"controller\":true}]},\"spec\":{\"containers\":[{\"name\":\"a\","
    "\"resources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\"},\"limits\":{\"cpu\":\"2\"}},"
    "\"resizePolicy\":[{\"resourceName\":\"cpu\",\"restartPolicy\":\"NotRequired\"}]}],"
    "\"initContainers\":[{\"name\":\"b\",\"restartPolicy\":\"Always\"}],\"resources\":{"
    "\"requests\":{\"cpu\":\"2\"}},\"overhead\":{\"cpu\":\"1m\"}},\"status\":{\"phase\":"
    "\"Running\","
    "\"startTime\":\"2026-03-14T10:11:07Z\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
    "\"True\","
    "\"lastTransitionTime\":\"2026-03-14T10:11:07Z\"}],\"containerStatuses\":[{\"name\":\"a\","
    "\"allocatedResources\":{\"cpu\":\"1\"},\"resources\":{\"requests\":{\"cpu\":\"1\"}},"
    "\"lastState\":{\"terminated\":{\"reason\":\"OOMKilled\",\"finishedAt\":"
    "\"2026-03-14T10:11:07Z\"}},\"state\":{\"running\":{\"startedAt\":"
    "\"2026-03-14T10:11:07Z\"}}}]}}";
static const char checkpoint_text[] =
    "{\"apiVersion\":\"autoscaling.k8s.io/v1\",\"kind\":\"VerticalPodAutoscalerCheckpoint\","
    "\"metadata\":{\"name\":\"a\",\"namespace\":\"a\",\"annotations\":{\"tandem.dev/oom\":"
    "\"{\\\"at\\\":\\\"2026-03-14T10:11:07Z\\\",\\\"windowEnd\\\":\\\"2026-03-15T10:11:07Z\\\","
    "\\\"bytes\\\":1073741824,\\\"count\\\":2,\\\"cappedBytes\\\":0,\\\"shortRuns\\\":1}\","
    "\"tandem.dev/adaptive\":\"ADAPTIVE\"}},\"spec\":{\"vpaObjectName\":\"a\",\"containerName\":"
    "\"a\"},\"status\":{\"version\":\"v3\",\"lastUpdateTime\":\"2026-03-14T10:11:07Z\","
    "\"firstSampleStart\":\"2026-03-13T10:11:07Z\",\"lastSampleStart\":\"2026-03-14T10:11:07Z\","
    "\"totalSamplesCount\":7,\"cpuHistogram\":{\"referenceTimestamp\":\"2026-03-14T00:00:00Z\","
    "\"bucketWeights\":{\"0\":10000,\"7\":1},\"totalWeight\":1.5},\"memoryHistogram\":{"
    "\"referenceTimestamp\":\"2026-03-14T00:00:00Z\",\"bucketWeights\":{\"3\":10000},"
    "\"totalWeight\":1}}}";
static const char vpa_text[] =
    "{\"apiVersion\":\"autoscaling.k8s.io/v1\",\"kind\":\"VerticalPodAutoscaler\",\"metadata\":{"
    "\"name\":\"a\",\"annotations\":{\"tandem.dev/estimator\":\"adaptive\",\"tandem.dev/risk\":"
    "\"careful\",\"vpa-post-processor.kubernetes.io/a_integerCPU\":\"true\"}},\"spec\":{"
    "\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"a\"},"
    "\"updatePolicy\":{\"updateMode\":\"Recreate\",\"minReplicas\":1,\"evictionRequirements\":[{"
    "\"resources\":[\"cpu\"],\"changeRequirement\":\"TargetHigherThanRequests\"}]},"
    "\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"a\",\"mode\":\"Auto\","
    "\"minAllowed\":{\"cpu\":\"1\"},\"maxAllowed\":{\"cpu\":\"2\"},\"controlledResources\":["
    "\"cpu\"]}]}},\"status\":{\"recommendation\":{\"containerRecommendations\":[{"
    "\"containerName\":\"a\",\"target\":{\"cpu\":\"1\"},\"lowerBound\":{\"cpu\":\"1\"},"
    "\"upperBound\":{\"cpu\":\"1\"}}]},\"conditions\":[{\"type\":\"RecommendationProvided\","
    "\"status\":\"True\",\"lastTransitionTime\":\"2026-03-14T10:11:07Z\"}]}}";
static const char hpa_v1_text[] =
    "{\"apiVersion\":\"autoscaling/"
    "v1\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{\"name\":"
    "\"a\",\"annotations\":{\"tandem.dev/hpa-selection-strategy\":\"OwnerReference\","
    "\"tandem.dev/spec-selection-strategy\":\"OwnerReference\","
    "\"autoscaling.alpha.kubernetes.io/"
    "metrics\":\"[{\\\"type\\\":\\\"Pods\\\",\\\"pods\\\":{\\\"metricName\\\":\\\"a\\\","
    "\\\"targetAverageValue\\\":\\\"1\\\"}}]\","
    "\"autoscaling.alpha.kubernetes.io/"
    "current-metrics\":\"[{\\\"type\\\":\\\"Pods\\\",\\\"pods\\\":{\\\"metricName\\\":\\\"a\\\","
    "\\\"currentAverageValue\\\":\\\"1\\\"}}]\","
    "\"autoscaling.alpha.kubernetes.io/"
    "conditions\":\"[{\\\"type\\\":\\\"AbleToScale\\\",\\\"status\\\":\\\"True\\\","
    "\\\"lastTransitionTime\\\":\\\"2026-03-14T10:11:07Z\\\"}]\","
    "\"autoscaling.alpha.kubernetes.io/"
    "behavior\":\"{\\\"ScaleUp\\\":{\\\"Policies\\\":[{\\\"Type\\\":\\\"Pods\\\",\\\"Value\\\":1,"
    "\\\"PeriodSeconds\\\":60}]}}\","
    "\"autoscaling.alpha.kubernetes.io/scale-up-tolerance\":\"0.1\","
    "\"autoscaling.alpha.kubernetes.io/scale-down-tolerance\":\"0.1\"}},\"spec\":{"
    "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"a\"},"
    "\"minReplicas\":1,\"maxReplicas\":9,\"targetCPUUtilizationPercentage\":50}}";
static const char hpa_v2_text[] =
    "{\"apiVersion\":\"autoscaling/"
    "v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{\"name\":"
    "\"a\",\"annotations\":{\"tandem.dev/hpa-selection-strategy\":\"OwnerReference\"}},\"spec\":{"
    "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"a\"},"
    "\"minReplicas\":1,\"maxReplicas\":9,\"metrics\":[{\"type\":\"Resource\",\"resource\":{"
    "\"name\":\"cpu\",\"target\":{\"type\":\"Utilization\",\"averageUtilization\":50}}},{\"type\":"
    "\"External\",\"external\":{\"metric\":{\"name\":\"a\",\"selector\":{\"matchLabels\":{\"a\":"
    "\"a\"},\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"a\"]}]}},"
    "\"target\":{\"type\":\"Value\",\"value\":\"1\"}}},{\"type\":\"Object\",\"object\":{"
    "\"describedObject\":{\"kind\":\"Service\",\"name\":\"a\"},\"metric\":{\"name\":\"a\"},"
    "\"target\":{\"type\":\"Value\",\"value\":\"1\"}}}],\"behavior\":{\"scaleDown\":{"
    "\"stabilizationWindowSeconds\":1,\"selectPolicy\":\"Max\",\"policies\":[{\"type\":\"Pods\","
    "\"value\":1,\"periodSeconds\":60}]}}},\"status\":{\"currentMetrics\":[{\"type\":\"Resource\","
    "\"resource\":{\"name\":\"cpu\",\"current\":{\"averageUtilization\":50,\"averageValue\":\"1\"}}"
    "}"
    "],\"conditions\":[{\"type\":\"AbleToScale\",\"status\":\"True\",\"lastTransitionTime\":"
    "\"2026-03-14T10:11:07Z\"}],\"desiredReplicas\":1,\"lastScaleTime\":"
    "\"2026-03-14T10:11:07Z\"}}";
static const char hvpa_text[] =
    "{\"apiVersion\":\"autoscaling.k8s.io/"
    "v1alpha1\",\"kind\":\"Hvpa\",\"metadata\":{\"name\":\"a\","
    "\"annotations\":{\"tandem.dev/hpa-selection-strategy\":\"OwnerReference\","
    "\"tandem.dev/estimator\":\"adaptive\",\"tandem.dev/hvpa-child\":\"a\"}},\"spec\":{\"mode\":"
    "\"RatioBased\",\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":"
    "\"a\"},\"initialScaling\":\"horizontal\",\"finalScaling\":\"vertical\","
    "\"ratioBasedScalingSpec\":{\"vToHScalingRatio\":0.5,\"startReplicaCount\":3,"
    "\"finishReplicaCount\":8},\"hpaSpec\":{\"minReplicas\":2,\"maxReplicas\":12,\"metrics\":[{"
    "\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{\"type\":\"Utilization\","
    "\"averageUtilization\":60}}}]},\"vpaSpec\":{\"resourcePolicy\":{\"containerPolicies\":[{"
    "\"containerName\":\"a\",\"minAllowed\":{\"cpu\":\"100m\"},\"maxAllowed\":{\"cpu\":\"4\"}}]}},"
    "\"vertical\":{\"scaleDown\":{\"stabilizationDuration\":\"1h\",\"updatePolicy\":{"
    "\"updateMode\":\"MaintenanceWindow\"}}},\"maintenanceTimeWindow\":{\"begin\":\"220000+0100\","
    "\"end\":\"040000+0100\"}}}";

#define READERS_MAX 8
#define READ_EVERY read_meta, read_managed, read_owner, read_checked

static const struct shapes_row {
    const char *api_version;
    const char *kind;
    read_fn readers[READERS_MAX + 1];
    bool is_brief;    /* what rows before it have in common with it is not tried again */
    const char *text; /* a valid object, instead of one made from the schema */
} rows[] = {
    {"v1",
     "Pod",
     {READ_EVERY, read_pod, read_vertical_pod, read_requests, read_limits},
     false,
     NULL},
    {"v1", "ReplicationController", {READ_EVERY}, true, NULL},
    {"apps/v1", "Deployment", {READ_EVERY, read_template}, true, NULL},
    {"apps/v1", "StatefulSet", {READ_EVERY, read_template}, true, NULL},
    {"apps/v1", "DaemonSet", {READ_EVERY, read_template}, true, NULL},
    {"batch/v1", "Job", {READ_EVERY, read_template}, true, NULL},
    {"batch/v1", "CronJob", {READ_EVERY, read_template}, true, NULL},
    {"v1", "Node", {READ_EVERY}, true, NULL},
    {"v1", "LimitRange", {READ_EVERY, read_limit_range}, true, NULL},
    {"coordination.k8s.io/v1", "Lease", {READ_EVERY, read_lease}, true, NULL},
    {"autoscaling.k8s.io/v1",
     "VerticalPodAutoscaler",
     {READ_EVERY, read_vpa, read_vpa_crd, read_new_vpa, read_old_vpa},
     false,
     NULL},
    {"autoscaling.k8s.io/v1",
     "VerticalPodAutoscalerCheckpoint",
     {READ_EVERY, read_checkpoint, read_knowledge},
     false,
     NULL},
    {"autoscaling/v1",
     "HorizontalPodAutoscaler",
     {READ_EVERY, read_hpa_file, read_as_v2, read_new_hpa},
     false,
     NULL},
    {"autoscaling/v2",
     "HorizontalPodAutoscaler",
     {READ_EVERY, read_hpa, read_hpa_file, read_as_v1, read_new_hpa},
     false,
     NULL},
    {"autoscaling.tandem.dev/v2",
     "HorizontalPodAutoscaler",
     {READ_EVERY, read_hpa, read_hpa_file, read_new_hpa},
     false,
     NULL},
    {"autoscaling.k8s.io/v1alpha1", "Hvpa", {READ_EVERY, read_hvpa, read_hvpa_status}, false, NULL},
    {"v1",
     "Pod",
     {READ_EVERY, read_vertical_pod, read_boost, read_requests, read_limits},
     false,
     pod_text},
    {"autoscaling.k8s.io/v1",
     "VerticalPodAutoscaler",
     {READ_EVERY, read_vpa, read_new_vpa, read_old_vpa, read_recommendation},
     false,
     vpa_text},
    {"autoscaling.k8s.io/v1", "VerticalPodAutoscaler", {read_estimator}, false, vpa_text},
    {"autoscaling.k8s.io/v1",
     "VerticalPodAutoscalerCheckpoint",
     {READ_EVERY, read_checkpoint, read_knowledge},
     false,
     checkpoint_text},
    {"autoscaling/v1",
     "HorizontalPodAutoscaler",
     {READ_EVERY, read_hpa_file, read_as_v2, read_new_hpa},
     false,
     hpa_v1_text},
    {"autoscaling/v2",
     "HorizontalPodAutoscaler",
     {READ_EVERY, read_hpa, read_hpa_file, read_as_v1, read_new_hpa},
     false,
     hpa_v2_text},
    {"autoscaling.k8s.io/v1alpha1",
     "Hvpa",
     {READ_EVERY, read_hvpa, read_hvpa_status},
     false,
     hvpa_text},
};

/* Both ways: with a place for the reason, which a failure must fill, and without. */
static void read_both(struct shapes *shapes, const struct td_json *object, read_fn reader)
{
    for (int reported = 0; reported < 2; reported++) {
        td_auto_arena arena;
        td_arena_init(&arena, TURN_BYTES);
        struct td_error err = TD_ERROR_INIT;
        int code = reader(&arena, object, reported ? &err : NULL);
        shapes_check(shapes, code, reported ? &err : NULL);
    }
}

static void read_row(struct shapes *shapes, const struct td_json *object, void *context)
{
    const struct shapes_row *row = context;
    for (size_t i = 0; row->readers[i]; i++) {
        read_both(shapes, object, row->readers[i]);
    }
}

/* The object of a row, whose values are listed; a checkpoint gets a state that was saved. */
static struct td_json *row_object(struct shapes *shapes, const struct shapes_row *row)
{
    td_str version = td_str_from(row->api_version);
    td_str kind = td_str_from(row->kind);
    const struct td_schema_type *type = shapes_schema(version, kind);
    assert_non_null(type);
    if (!row->text) {
        return shapes_object(shapes, type, version, kind);
    }
    struct td_json *object = shapes_read(shapes, row->text);
    struct td_json *annotations = td_json_get_path(object, "metadata.annotations");
    struct td_json *saved = td_json_get(annotations, TD_ADAPTIVE_ANNOTATION);
    if (saved) {
        struct td_adaptive state;
        td_adaptive_init(&state);
        for (int64_t minute = 0; minute < 3000; minute++) {
            int64_t at = NOW / TD_SECOND + minute * 60;
            td_adaptive_cpu(&state, td_adaptive_params_of(TD_RISK_BALANCED), at, minute % 700, 0);
            td_adaptive_memory(&state, at, (minute % 70) << 20);
        }
        struct td_json *tree = td_adaptive_save(&shapes->arena, &state);
        td_json_take(saved, td_json_new_string(&shapes->arena, text_of(&shapes->arena, tree)));
    }
    return object;
}

/* Nothing of a valid object is refused: else its shapes would try little. */
static void expect_valid(struct shapes *shapes, const struct shapes_row *row,
                         const struct td_json *object)
{
    for (size_t i = 0; row->readers[i]; i++) {
        struct td_error err = TD_ERROR_INIT;
        if (row->readers[i](&shapes->arena, object, &err) < 0) {
            fail_msg("%s %s, reader %zu: %s", row->api_version, row->kind, i, err.message);
        }
    }
}

static void shapes_tell(const struct shapes *shapes, const struct shapes_row *row, const char *what)
{
    printf("%s %s%s: %zu values, %llu shapes, %llu refusals\n", row->api_version, row->kind, what,
           shapes->node_count, (unsigned long long)shapes->tried,
           (unsigned long long)shapes->refused);
    assert_true(shapes->tried > 0);
}

/* Whatever stands where a member should: it is refused or passed over. */
static void test_every_member_of_every_shape(void **state)
{
    (void)state;
    struct shapes known;
    shapes_init(&known);
    known.has_once = true;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct shapes_row row = rows[i];
        struct shapes own;
        shapes_init(&own);
        struct shapes *shapes = row.is_brief ? &known : &own;
        struct td_json *object = row_object(shapes, &row);
        if (row.text) {
            expect_valid(shapes, &row, object);
        } else if (!row.is_brief) {
            (void)row_object(&known, &row); /* its types are known from here on */
        }
        shapes_each(shapes, object, read_row, &row);
        shapes_tell(shapes, &row, "");
        shapes_done(&own);
    }
    shapes_done(&known);
}

/* ---- Annotations ---- */

/* The annotation of an object, and what it holds. */
struct noted {
    const struct shapes_row *row;
    const struct td_json *object;
    struct td_json *annotation;
};

static void read_noted(struct shapes *shapes, const struct td_json *inside, void *context)
{
    const struct noted *noted = context;
    td_auto_arena arena;
    td_arena_init(&arena, TURN_BYTES);
    td_json_take(noted->annotation, td_json_new_string(&arena, text_of(&arena, inside)));
    struct shapes_row row = *noted->row;
    read_row(shapes, noted->object, &row);
}

/* Texts that no writer of annotations leaves. */
static const char *const noted_texts[] = {
    "",
    " ",
    "a",
    ",,",
    "\\",
    "null",
    "1e999",
    "-1",
    "99999999999999999999",
    "[",
    "{\"requests\":",
    "\"\\ud800\"",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    "{\"at\":\"soon\",\"windowEnd\":\"2026-03-15T10:11:07Z\",\"bytes\":1,\"count\":1,"
    "\"cappedBytes\":0,\"shortRuns\":0}",
    "{\"at\":\"2026-03-15T10:11:07Z\",\"windowEnd\":\"never\",\"bytes\":1,\"count\":1,"
    "\"cappedBytes\":0,\"shortRuns\":0}",
    "{\"at\":\"9999-12-31T23:59:59Z\",\"windowEnd\":\"9999-12-31T23:59:59Z\",\"bytes\":"
    "9223372036854775807,\"count\":9223372036854775807,\"cappedBytes\":9223372036854775807,"
    "\"shortRuns\":9223372036854775807}",
    "{\"at\":\"0001-01-01T00:00:00Z\",\"windowEnd\":\"0001-01-01T00:00:00Z\",\"bytes\":0,"
    "\"count\":0,\"cappedBytes\":0,\"shortRuns\":0}",
};

/* The value of each annotation is another text, and what is inside of it has every shape. */
static void test_every_annotation_of_every_shape(void **state)
{
    (void)state;
    size_t annotation_count = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct shapes shapes;
        shapes_init(&shapes);
        struct shapes_row row = rows[i];
        struct td_json *object = row.text ? row_object(&shapes, &row) : NULL;
        struct td_json *annotations = td_json_get_path(object, "metadata.annotations");
        struct td_json *each = td_json_first_member(annotations);
        for (; each; each = each->next, annotation_count++) {
            struct td_json whole = *each;
            td_str text = td_arena_copy_str(&shapes.arena, each->text);
            for (size_t k = 0; k < COUNT(noted_texts); k++) {
                td_json_take(each, td_json_new_string(&shapes.arena, td_str_from(noted_texts[k])));
                read_row(&shapes, object, &row);
            }
            *each = whole;
            struct td_json *inside = NULL;
            if (td_json_parse(&shapes.arena, text, NULL, &inside, NULL) == TD_OK &&
                td_json_is_collection(inside)) {
                struct noted noted = {.row = &row, .object = object, .annotation = each};
                shapes.node_count = 0;
                shapes_list_below(&shapes, inside, 0);
                shapes_each(&shapes, inside, read_noted, &noted);
                shapes_tell(&shapes, &row,
                            td_arena_format(&shapes.arena, " %.*s", TD_STR_ARG(each->key)).ptr);
            }
            *each = whole;
        }
        shapes_done(&shapes);
    }
    assert_int_equal(annotation_count, 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_of_every_shape),
        cmocka_unit_test(test_every_annotation_of_every_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
