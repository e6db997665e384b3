/* Both CRDs, and what the first one does with an object. The schema tables say what fields there
 * are; notes say the rest (required members, enums, bounds). The two CEL rules stand beside the
 * functions that hold them here, since there is no CEL in this program. */
#include "api/crd.h"
#include "api/vpa/vpa_private.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/schema/schema_check.h"

#define CRD_GROUP "autoscaling.k8s.io"
#define CRD_APPROVED "https://github.com/kubernetes/kubernetes/pull/63797"
#define CRD_VALUES "[\"RequestsAndLimits\",\"RequestsOnly\"]"
#define CRD_BOOST_TYPES "[\"Factor\",\"Quantity\"]"
#define CRD_CONTAINERS "spec.resourcePolicy.containerPolicies"
#define CRD_POD "spec.resourcePolicy.podPolicies"

static const struct td_crd_note vpa_notes[] = {
    {"", "required", "[\"spec\"]"},
    {"spec", "required", "[\"targetRef\"]"},
    /* Of what upstream's definition does not have. */
    {"spec.selector", "description",
     "\"Of the target's pods only those that match; without it all.\""},
    {CRD_POD, "description",
     "\"Bounds of the recommendation for the pod as a whole, where pods have resources of their "
     "own.\""},
    {CRD_POD ".controlledResources", "description",
     "\"cpu, memory or both; both when not given.\""},
    {CRD_POD ".controlledValues", "description",
     "\"RequestsAndLimits, the default, or RequestsOnly.\""},
    {CRD_POD ".minAllowed", "description", "\"Never recommends less for the pod.\""},
    {CRD_POD ".maxAllowed", "description", "\"Never recommends more for the pod.\""},
    {"status.recommendation.podRecommendation", "description",
     "\"For the pod as a whole: the sum over its containers, within the bounds of podPolicies.\""},
    {"spec.targetRef", "required", "[\"kind\",\"name\"]"},
    {"spec.updatePolicy.updateMode", "enum",
     "[\"Off\",\"Initial\",\"Recreate\",\"InPlaceOrRecreate\",\"InPlace\",\"Auto\"]"},
    {"spec.updatePolicy.evictAfterOOMSeconds", "minimum", "1"},
    {"spec.updatePolicy.evictionRequirements[]", "required",
     "[\"changeRequirement\",\"resources\"]"},
    {"spec.updatePolicy.evictionRequirements[].changeRequirement", "enum",
     "[\"TargetHigherThanRequests\",\"TargetLowerThanRequests\"]"},
    {CRD_CONTAINERS "[].mode", "enum", "[\"Auto\",\"Off\"]"},
    {CRD_CONTAINERS "[].controlledValues", "enum", CRD_VALUES},
    {CRD_CONTAINERS "[].memoryAggregationIntervalSeconds", "minimum", "1"},
    {CRD_CONTAINERS "[].memoryAggregationIntervalCount", "minimum", "1"},
    {CRD_CONTAINERS "[].startupBoost.cpu", "required", "[\"type\"]"},
    {CRD_CONTAINERS "[].startupBoost.cpu.type", "enum", CRD_BOOST_TYPES},
    {CRD_POD ".controlledResources[]", "enum", "[\"cpu\",\"memory\"]"},
    {CRD_POD ".controlledValues", "enum", CRD_VALUES},
    {"spec.startupBoost.cpu", "required", "[\"type\"]"},
    {"spec.startupBoost.cpu.type", "enum", CRD_BOOST_TYPES},
    {"spec.recommenders[]", "required", "[\"name\"]"},
    {"spec.selector.matchExpressions[]", "required", "[\"key\",\"operator\"]"},
    {"spec.selector.matchExpressions[].operator", "enum",
     "[\"In\",\"NotIn\",\"Exists\",\"DoesNotExist\"]"},
    {"status.recommendation.containerRecommendations[]", "required", "[\"target\"]"},
    {"status.conditions[]", "required", "[\"status\",\"type\"]"},
    {"status.conditions[].observedGeneration", "minimum", "0"},
    {"status.observedGeneration", "minimum", "0"},
};

#define CRD_FACTOR_RULE "(self.type == 'Factor') == has(self.factor)"
#define CRD_FACTOR_TEXT "factor is required when type is Factor and forbidden otherwise"
#define CRD_QUANTITY_RULE "(self.type == 'Quantity') == has(self.quantity)"
#define CRD_QUANTITY_TEXT "quantity is required when type is Quantity and forbidden otherwise"

static const struct td_crd_rule vpa_rules[] = {
    {CRD_CONTAINERS "[].startupBoost.cpu", CRD_FACTOR_RULE, CRD_FACTOR_TEXT, NULL, NULL},
    {CRD_CONTAINERS "[].startupBoost.cpu", CRD_QUANTITY_RULE, CRD_QUANTITY_TEXT, NULL, NULL},
    {"spec.startupBoost.cpu", CRD_FACTOR_RULE, CRD_FACTOR_TEXT, NULL, NULL},
    {"spec.startupBoost.cpu", CRD_QUANTITY_RULE, CRD_QUANTITY_TEXT, NULL, NULL},
};

#define CRD_FIRST_TARGET ".status.recommendation.containerRecommendations[0].target"

static const struct td_crd_column vpa_columns[] = {
    {"Target", "string", ".spec.targetRef.name", 0},
    {"Mode", "string", ".spec.updatePolicy.updateMode", 0},
    {"CPU", "string", CRD_FIRST_TARGET ".cpu", 0},
    {"Mem", "string", CRD_FIRST_TARGET ".memory", 0},
    {"Provided", "string", ".status.conditions[?(@.type=='RecommendationProvided')].status", 0},
    {"Age", "date", ".metadata.creationTimestamp", 0},
    {"Selector", "string", ".spec.selector", 1},
    {"PodCPU", "string", ".status.recommendation.podRecommendation.target.cpu", 1},
    {"PodMem", "string", ".status.recommendation.podRecommendation.target.memory", 1},
    {"MinReplicas", "integer", ".spec.updatePolicy.minReplicas", 1},
    {"OOMSeconds", "integer", ".spec.updatePolicy.evictAfterOOMSeconds", 1},
};

static const struct td_crd_note checkpoint_notes[] = {
    {"status.lastUpdateTime", "nullable", "true"},
    {"status.firstSampleStart", "nullable", "true"},
    {"status.lastSampleStart", "nullable", "true"},
    {"status.cpuHistogram.referenceTimestamp", "nullable", "true"},
    {"status.memoryHistogram.referenceTimestamp", "nullable", "true"},
};

static struct td_crd vpa_definition(void)
{
    return (struct td_crd){
        .group = CRD_GROUP,
        .version = "v1",
        .kind = "VerticalPodAutoscaler",
        .plural = "verticalpodautoscalers",
        .singular = "verticalpodautoscaler",
        .short_name = "vpa",
        .has_status = true,
        .type = td_vpa_schema(),
        .notes = vpa_notes,
        .note_count = TD_COUNT(vpa_notes),
        .rules = vpa_rules,
        .rule_count = TD_COUNT(vpa_rules),
        .columns = vpa_columns,
        .column_count = TD_COUNT(vpa_columns),
    };
}

/* The version that is no longer served but must stay listed while a cluster may have stored it. Its
 * schema keeps whatever was stored. */
static struct td_json *crd_old_version(struct td_arena *arena, bool is_deprecated, bool has_status)
{
    static const char text[] =
        "{\"name\":\"v1beta2\",\"served\":false,\"storage\":false,\"schema\":{\"openAPIV3Schema\":"
        "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}";
    struct td_json *version = td_json_parse_own(arena, text);
    if (is_deprecated) {
        td_json_set_bool(arena, version, TD_STR("deprecated"), true);
        td_json_set_str(arena, version, TD_STR("deprecationWarning"),
                        TD_STR(CRD_GROUP "/v1beta2 API is deprecated"));
    }
    if (has_status) {
        (void)td_json_ensure_object(
            arena, td_json_ensure_object(arena, version, TD_STR("subresources")), TD_STR("status"));
    }
    return version;
}

/* What a group below k8s.io needs beside the definition itself. */
static void crd_finish(struct td_arena *arena, struct td_json *crd, struct td_json *old_version)
{
    struct td_json *metadata = td_json_get(crd, TD_STR("metadata"));
    td_json_set_str(arena, td_json_ensure_object(arena, metadata, TD_STR("annotations")),
                    TD_STR("api-approved.kubernetes.io"), TD_STR(CRD_APPROVED));
    td_json_append(td_json_get_path(crd, "spec.versions"), old_version);
}

struct td_json *td_vpa_crd(struct td_arena *arena)
{
    const struct td_crd definition = vpa_definition();
    struct td_json *crd = td_crd_new(arena, &definition);
    crd_finish(arena, crd, crd_old_version(arena, true, true));
    return crd;
}

struct td_json *td_vpa_checkpoint_crd(struct td_arena *arena)
{
    const struct td_crd definition = {
        .group = CRD_GROUP,
        .version = "v1",
        .kind = "VerticalPodAutoscalerCheckpoint",
        .plural = "verticalpodautoscalercheckpoints",
        .singular = "verticalpodautoscalercheckpoint",
        .short_name = "vpacheckpoint",
        .type = td_vpa_checkpoint_schema(),
        .notes = checkpoint_notes,
        .note_count = TD_COUNT(checkpoint_notes),
    };
    struct td_json *crd = td_crd_new(arena, &definition);
    crd_finish(arena, crd, crd_old_version(arena, false, false));
    return crd;
}

static const struct td_crd_column shadow_columns[] = {
    {"CPU", "string", ".recommendation.containerRecommendations[0].target.cpu", 0},
    {"Mem", "string", ".recommendation.containerRecommendations[0].target.memory", 0},
    {"Evict", "string", ".tandem.evict", 0},
    {"Resize", "string", ".tandem.resize", 0},
    {"Upstream-Evict", "string", ".upstream.evict", 1},
    {"Upstream-Resize", "string", ".upstream.resize", 1},
    {"Age", "date", ".metadata.creationTimestamp", 0},
};

struct td_json *td_vpa_shadow_crd(struct td_arena *arena)
{
    const struct td_crd definition = {
        .group = TD_SHADOW_GROUP,
        .version = TD_SHADOW_VERSION,
        .kind = TD_SHADOW_KIND,
        .plural = TD_SHADOW_PLURAL,
        .singular = "verticalpodautoscalershadow",
        .short_name = "vpashadow",
        .is_described = true,
        .type = td_vpa_shadow_schema(),
        .columns = shadow_columns,
        .column_count = TD_COUNT(shadow_columns),
    };
    return td_crd_new(arena, &definition);
}

/* --- what the first one does with an object --- */

/* The rules of one startupBoost.cpu, in the order of vpa_rules. */
static void rules_check_boost(const struct td_json *boost, const struct td_field_path *parent,
                              struct td_field_errors *errors)
{
    const struct td_json *cpu = td_json_get(boost, TD_STR("cpu"));
    if (!cpu) {
        return;
    }
    struct td_field_path path = td_field_child(TD_FIELD(parent, "startupBoost"), TD_STR("cpu"));
    td_str type = td_json_text(cpu, "type");
    bool has_factor = td_json_get(cpu, TD_STR("factor")) != NULL;
    bool has_quantity = td_json_get(cpu, TD_STR("quantity")) != NULL;
    if (td_str_equal(type, TD_STR("Factor")) != has_factor) {
        td_field_error_add(errors, &path, TD_FIELD_INVALID, TD_STR_EMPTY, TD_STR(CRD_FACTOR_TEXT));
    }
    if (td_str_equal(type, TD_STR("Quantity")) != has_quantity) {
        td_field_error_add(errors, &path, TD_FIELD_INVALID, TD_STR_EMPTY,
                           TD_STR(CRD_QUANTITY_TEXT));
    }
}

void td_vpa_check_rules(const struct td_json *object, struct td_field_errors *errors)
{
    const struct td_json *spec = td_json_get(object, TD_STR("spec"));
    const struct td_json *policies = td_json_get_path(spec, "resourcePolicy.containerPolicies");
    struct td_field_path spec_path = td_field_child(NULL, TD_STR("spec"));
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(policies);
         item && errors->count < TD_STRICT_PROBLEMS_MAX; item = item->next) {
        struct td_field_path path = td_field_item(
            TD_FIELD(TD_FIELD(&spec_path, "resourcePolicy"), "containerPolicies"), index++);
        rules_check_boost(td_json_get(item, TD_STR("startupBoost")), &path, errors);
    }
    rules_check_boost(td_json_get(spec, TD_STR("startupBoost")), &spec_path, errors);
}

int td_vpa_apply_crd(struct td_arena *arena, const struct td_json *object,
                     struct td_field_errors *errors, struct td_json **ret_stored,
                     struct td_error *err)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "a VerticalPodAutoscaler must be an object");
    }
    const struct td_json *crd = td_vpa_crd(arena);
    const struct td_json *version = td_json_at(td_json_get_path(crd, "spec.versions"), 0);
    const struct td_json *schema = td_json_get_path(version, "schema.openAPIV3Schema");
    td_assert(schema);
    struct td_json *stored;
    int code = td_schema_shape(arena, schema, object, &stored, err);
    if (code != TD_OK) {
        return code;
    }
    size_t count = errors->count;
    td_schema_check(schema, stored, errors);
    if (errors->count == count) {
        td_vpa_check_rules(stored, errors); /* servers, too, evaluate rules of valid objects only */
    }
    code = td_arena_check(arena, err);
    if (code == TD_OK) {
        *ret_stored = stored;
    }
    return code;
}
