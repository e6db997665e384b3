/* The shape of both kinds as tables, the fields of three proposals included. Only the types of
 * metadata and of label selectors are borrowed from the built-in schema, so the two objects that
 * hold them are filled in once, on first use; all else is constant. */
#include <pthread.h>

#include "api/schema_rows.h"
#include "api/vpa/vpa_private.h"
#include "base/assert.h"

static const struct td_schema_field requirement_fields[] = {FIELD("changeRequirement", type_string),
                                                            FIELD("resources", type_strings)};
static const struct td_schema_type type_requirement =
    OBJECT("EvictionRequirement", requirement_fields);
static const struct td_schema_type type_requirements = LIST(type_requirement);

static const struct td_schema_field update_fields[] = {
    POINTER("evictAfterOOMSeconds", type_int32),
    FIELD("evictionRequirements", type_requirements),
    POINTER("minReplicas", type_int32),
    POINTER("updateMode", type_string),
};
static const struct td_schema_type type_update = OBJECT("PodUpdatePolicy", update_fields);

static const struct td_schema_field boost_cpu_fields[] = {
    POINTER("durationSeconds", type_int32),
    POINTER("factor", type_int32),
    POINTER("quantity", type_quantity),
    FIELD("type", type_string),
};
static const struct td_schema_type type_boost_cpu = OBJECT("GenericStartupBoost", boost_cpu_fields);
static const struct td_schema_field boost_fields[] = {POINTER("cpu", type_boost_cpu)};
static const struct td_schema_type type_boost = OBJECT("StartupBoost", boost_fields);

static const struct td_schema_field container_fields[] = {
    FIELD("containerName", type_string),
    POINTER("controlledResources", type_strings),
    POINTER("controlledValues", type_string),
    FIELD("maxAllowed", type_resources),
    POINTER("memoryAggregationIntervalCount", type_int64),
    POINTER("memoryAggregationIntervalSeconds", type_int32),
    FIELD("minAllowed", type_resources),
    POINTER("mode", type_string),
    POINTER("oomBumpUpRatio", type_quantity),
    POINTER("oomMinBumpUp", type_quantity),
    POINTER("startupBoost", type_boost),
};
static const struct td_schema_type type_container =
    OBJECT("ContainerResourcePolicy", container_fields);
static const struct td_schema_type type_containers = LIST(type_container);

static const struct td_schema_field pod_fields[] = {
    POINTER("controlledResources", type_strings),
    POINTER("controlledValues", type_string),
    FIELD("maxAllowed", type_resources),
    FIELD("minAllowed", type_resources),
};
static const struct td_schema_type type_pod = OBJECT("PodResourcePolicies", pod_fields);

static const struct td_schema_field policy_fields[] = {
    {.name = TD_STR_INIT("containerPolicies"),
     .type = &type_containers,
     .patch = TD_SCHEMA_PATCH_MERGE,
     .patch_key = TD_STR_INIT("containerName")},
    POINTER("podPolicies", type_pod),
};
static const struct td_schema_type type_policy = OBJECT("PodResourcePolicy", policy_fields);

static const struct td_schema_field recommender_fields[] = {FIELD("name", type_string)};
static const struct td_schema_type type_recommender =
    OBJECT("VerticalPodAutoscalerRecommenderSelector", recommender_fields);
static const struct td_schema_type type_recommenders = LIST(type_recommender);

static const struct td_schema_field target_fields[] = {
    FIELD("containerName", type_string), FIELD("lowerBound", type_resources),
    FIELD("target", type_resources),     FIELD("uncappedTarget", type_resources),
    FIELD("upperBound", type_resources),
};
static const struct td_schema_type type_target =
    OBJECT("RecommendedContainerResources", target_fields);
static const struct td_schema_type type_targets = LIST(type_target);
static const struct td_schema_field pod_target_fields[] = {
    FIELD("lowerBound", type_resources),
    FIELD("target", type_resources),
    FIELD("upperBound", type_resources),
};
static const struct td_schema_type type_pod_target =
    OBJECT("RecommendedPodLevelResources", pod_target_fields);
static const struct td_schema_field recommendation_fields[] = {
    FIELD("containerRecommendations", type_targets),
    POINTER("podRecommendation", type_pod_target),
};
static const struct td_schema_type type_recommendation =
    OBJECT("RecommendedPodResources", recommendation_fields);

static const struct td_schema_field condition_fields[] = {
    FIELD("lastTransitionTime", type_time),
    FIELD("message", type_string),
    FIELD("observedGeneration", type_int64),
    FIELD("reason", type_string),
    FIELD("status", type_string),
    FIELD("type", type_string),
};
static const struct td_schema_type type_condition =
    OBJECT("VerticalPodAutoscalerCondition", condition_fields);
static const struct td_schema_type type_conditions = LIST(type_condition);
static const struct td_schema_field status_fields[] = {
    FIELD("conditions", type_conditions),
    FIELD("observedGeneration", type_int64),
    POINTER("recommendation", type_recommendation),
};
static const struct td_schema_type type_status =
    OBJECT("VerticalPodAutoscalerStatus", status_fields);

/* The checkpoint. */

static const struct td_schema_field checkpoint_spec_fields[] = {
    FIELD("containerName", type_string), FIELD("vpaObjectName", type_string)};
static const struct td_schema_type type_checkpoint_spec =
    OBJECT("VerticalPodAutoscalerCheckpointSpec", checkpoint_spec_fields);
/* Bucket numbers to weights; checked by the decoder of checkpoints alone. */
static const struct td_schema_type type_weights = {.kind = TD_SCHEMA_OBJECT, .element = &type_any};
static const struct td_schema_field histogram_fields[] = {
    FIELD("bucketWeights", type_weights),
    FIELD("referenceTimestamp", type_time),
    FIELD("totalWeight", type_number),
};
static const struct td_schema_type type_histogram = OBJECT("HistogramCheckpoint", histogram_fields);
static const struct td_schema_field checkpoint_status_fields[] = {
    FIELD("cpuHistogram", type_histogram),
    FIELD("firstSampleStart", type_time),
    FIELD("lastSampleStart", type_time),
    FIELD("lastUpdateTime", type_time),
    FIELD("memoryHistogram", type_histogram),
    FIELD("totalSamplesCount", type_int64),
    FIELD("version", type_string),
};
static const struct td_schema_type type_checkpoint_status =
    OBJECT("VerticalPodAutoscalerCheckpointStatus", checkpoint_status_fields);

/* What `tandem run --shadow` would do. */

static const struct td_schema_field wishes_fields[] = {FIELD("evict", type_strings),
                                                       FIELD("resize", type_strings)};
static const struct td_schema_type type_wishes = OBJECT("ShadowWishes", wishes_fields);

/* What borrows from the built-in schema. */

enum { SPEC_SELECTOR = 2, ROOT_METADATA = 2 };

static struct td_schema_field spec_fields[] = {
    FIELD("recommenders", type_recommenders),
    POINTER("resourcePolicy", type_policy),
    [SPEC_SELECTOR] = POINTER("selector", type_any),
    POINTER("startupBoost", type_boost),
    POINTER("targetRef", type_reference),
    POINTER("updatePolicy", type_update),
};
static const struct td_schema_type type_spec = OBJECT("VerticalPodAutoscalerSpec", spec_fields);

static struct td_schema_field root_fields[] = {
    FIELD("apiVersion", type_string),
    FIELD("kind", type_string),
    [ROOT_METADATA] = FIELD("metadata", type_any),
    FIELD("spec", type_spec),
    FIELD("status", type_status),
};
static const struct td_schema_type type_root = OBJECT("VerticalPodAutoscaler", root_fields);

static struct td_schema_field checkpoint_fields[] = {
    FIELD("apiVersion", type_string),
    FIELD("kind", type_string),
    [ROOT_METADATA] = FIELD("metadata", type_any),
    FIELD("spec", type_checkpoint_spec),
    FIELD("status", type_checkpoint_status),
};
static const struct td_schema_type type_checkpoint =
    OBJECT("VerticalPodAutoscalerCheckpoint", checkpoint_fields);

static struct td_schema_field shadow_fields[] = {
    FIELD("apiVersion", type_string),
    FIELD("kind", type_string),
    [ROOT_METADATA] = FIELD("metadata", type_any),
    POINTER("recommendation", type_recommendation),
    FIELD("tandem", type_wishes),
    FIELD("upstream", type_wishes),
};
static const struct td_schema_type type_shadow =
    OBJECT("VerticalPodAutoscalerShadow", shadow_fields);

static pthread_once_t schema_once = PTHREAD_ONCE_INIT;

static void schema_init(void)
{
    const struct td_schema_type *deployment =
        td_schema_find(TD_STR("apps/v1"), TD_STR("Deployment"));
    const struct td_schema_type *metadata = td_schema_member(deployment, TD_STR("metadata"));
    const struct td_schema_type *selector =
        td_schema_member(td_schema_member(deployment, TD_STR("spec")), TD_STR("selector"));
    td_assert(metadata);
    td_assert(selector);
    root_fields[ROOT_METADATA].type = metadata;
    checkpoint_fields[ROOT_METADATA].type = metadata;
    shadow_fields[ROOT_METADATA].type = metadata;
    spec_fields[SPEC_SELECTOR].type = selector;
}

const struct td_schema_type *td_vpa_schema(void)
{
    int code = pthread_once(&schema_once, schema_init);
    td_assert(code == 0);
    return &type_root;
}

const struct td_schema_type *td_vpa_checkpoint_schema(void)
{
    int code = pthread_once(&schema_once, schema_init);
    td_assert(code == 0);
    return &type_checkpoint;
}

const struct td_schema_type *td_vpa_shadow_schema(void)
{
    int code = pthread_once(&schema_once, schema_init);
    td_assert(code == 0);
    return &type_shadow;
}
