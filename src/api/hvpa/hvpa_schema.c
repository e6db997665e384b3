/* The shape of an Hvpa as tables. hpaSpec and vpaSpec hold either a spec or a whole object, so
 * their types have the members of both: built on first use from the tables of the two kinds,
 * because a field that those learn is one that an Hvpa may carry. Constant afterwards. */
#include <pthread.h>

#include "api/hvpa/hvpa_private.h"
#include "api/schema_rows.h"
#include "base/assert.h"

static const struct td_schema_type type_requests = {.kind = TD_SCHEMA_MAP,
                                                    .element = &type_resources};

static const struct td_schema_field change_fields[] = {POINTER("percentage", type_int32),
                                                       POINTER("value", type_quantity)};
static const struct td_schema_type type_change = OBJECT("ChangeParams", change_fields);
static const struct td_schema_field changes_fields[] = {
    FIELD("cpu", type_change), FIELD("memory", type_change), FIELD("replicas", type_change)};
static const struct td_schema_type type_changes = OBJECT("ScaleParams", changes_fields);
static const struct td_schema_field threshold_fields[] = {FIELD("cpu", type_change),
                                                          FIELD("memory", type_change)};
static const struct td_schema_type type_threshold = OBJECT("VerticalThreshold", threshold_fields);

static const struct td_schema_field update_fields[] = {POINTER("updateMode", type_string)};
static const struct td_schema_type type_update = OBJECT("UpdatePolicy", update_fields);
static const struct td_schema_field policy_fields[] = {
    FIELD("minChange", type_changes),
    POINTER("stabilizationDuration", type_duration),
    FIELD("updatePolicy", type_update),
};
static const struct td_schema_type type_policy = OBJECT("ScalePolicy", policy_fields);

static const struct td_schema_field horizontal_fields[] = {FIELD("scaleDown", type_policy),
                                                           FIELD("scaleUp", type_policy)};
static const struct td_schema_type type_horizontal = OBJECT("HorizontalScaling", horizontal_fields);
static const struct td_schema_field vertical_fields[] = {
    FIELD("actuation", type_string),      FIELD("limitsRequestsGapScaleParams", type_changes),
    FIELD("scaleDown", type_policy),      FIELD("scaleUp", type_policy),
    POINTER("settleSeconds", type_int64), POINTER("tolerancePercent", type_int32),
};
static const struct td_schema_type type_vertical = OBJECT("VerticalScaling", vertical_fields);

static const struct td_schema_field ratio_fields[] = {
    FIELD("capacityPolicy", type_string),     POINTER("finishReplicaCount", type_int32),
    POINTER("overflow", type_bool),           POINTER("startReplicaCount", type_int32),
    POINTER("vToHScalingRatio", type_number),
};
static const struct td_schema_type type_ratio = OBJECT("RatioBasedScaling", ratio_fields);
static const struct td_schema_field mixed_fields[] = {
    POINTER("horizontalThreshold", type_int32),
    POINTER("patienceSeconds", type_int64),
    FIELD("preference", type_string),
    FIELD("verticalThreshold", type_threshold),
};
static const struct td_schema_type type_mixed = OBJECT("MixedScaling", mixed_fields);
static const struct td_schema_field window_fields[] = {FIELD("begin", type_string),
                                                       FIELD("end", type_string)};
static const struct td_schema_type type_window = OBJECT("MaintenanceTimeWindow", window_fields);

/* --- status --- */

static const struct td_schema_field current_fields[] = {FIELD("replicas", type_int32),
                                                        FIELD("requests", type_requests)};
static const struct td_schema_type type_current = OBJECT("HvpaCurrent", current_fields);
static const struct td_schema_field wish_fields[] = {
    POINTER("desiredReplicas", type_int32),
    FIELD("reason", type_string),
    FIELD("valid", type_bool),
};
static const struct td_schema_type type_wish = OBJECT("HvpaHorizontalRecommendation", wish_fields);
static const struct td_schema_field target_fields[] = {
    FIELD("lowerBound", type_resources), FIELD("name", type_string),
    FIELD("target", type_resources),     FIELD("uncappedTarget", type_resources),
    FIELD("upperBound", type_resources),
};
static const struct td_schema_type type_target = OBJECT("HvpaContainerTarget", target_fields);
static const struct td_schema_type type_targets = LIST(type_target);
static const struct td_schema_field sizes_fields[] = {
    FIELD("containers", type_targets), FIELD("reason", type_string), FIELD("valid", type_bool)};
static const struct td_schema_type type_sizes = OBJECT("HvpaVerticalRecommendation", sizes_fields);
static const struct td_schema_field recommendation_fields[] = {FIELD("horizontal", type_wish),
                                                               FIELD("vertical", type_sizes)};
static const struct td_schema_type type_recommendation =
    OBJECT("HvpaRecommendation", recommendation_fields);
static const struct td_schema_field weights_fields[] = {FIELD("horizontal", type_number),
                                                        FIELD("vertical", type_number)};
static const struct td_schema_type type_weights = OBJECT("HvpaWeights", weights_fields);
static const struct td_schema_field decision_fields[] = {
    FIELD("axis", type_string),       POINTER("belowThresholdsSince", type_time),
    FIELD("emergency", type_bool),    FIELD("limits", type_requests),
    FIELD("reason", type_string),     POINTER("replicas", type_int32),
    FIELD("requests", type_requests), FIELD("stage", type_string),
    POINTER("time", type_time),       POINTER("weights", type_weights),
};
static const struct td_schema_type type_decision = OBJECT("HvpaDecision", decision_fields);
static const struct td_schema_field last_fields[] = {
    POINTER("fromReplicas", type_int32),
    POINTER("horizontalTime", type_time),
    POINTER("toReplicas", type_int32),
    POINTER("verticalTime", type_time),
};
static const struct td_schema_type type_last = OBJECT("HvpaLastScaling", last_fields);
static const struct td_schema_field blocked_fields[] = {
    FIELD("axis", type_string),     FIELD("container", type_string), FIELD("reason", type_string),
    FIELD("resource", type_string), POINTER("since", type_time),
};
static const struct td_schema_type type_blocked = OBJECT("HvpaBlocked", blocked_fields);
static const struct td_schema_type type_blocked_list = LIST(type_blocked);
static const struct td_schema_field emergency_fields[] = {
    FIELD("container", type_string),
    POINTER("since", type_time),
    FIELD("usableSeconds", type_int64),
};
static const struct td_schema_type type_emergency = OBJECT("HvpaEmergency", emergency_fields);
static const struct td_schema_type type_emergencies = LIST(type_emergency);
static const struct td_schema_field infeasible_fields[] = {FIELD("requests", type_requests),
                                                           POINTER("time", type_time)};
static const struct td_schema_type type_infeasible = OBJECT("HvpaInfeasible", infeasible_fields);
static const struct td_schema_field origin_fields[] = {FIELD("limits", type_requests),
                                                       FIELD("requests", type_requests)};
static const struct td_schema_type type_origin = OBJECT("HvpaOrigin", origin_fields);
static const struct td_schema_field condition_fields[] = {
    FIELD("lastTransitionTime", type_time),
    FIELD("message", type_string),
    FIELD("reason", type_string),
    FIELD("status", type_string),
    FIELD("type", type_string),
};
static const struct td_schema_type type_condition = OBJECT("HvpaCondition", condition_fields);
static const struct td_schema_key condition_keys[] = {{.name = TD_STR_INIT("type")}};
static const struct td_schema_type type_conditions = {
    .kind = TD_SCHEMA_LIST,
    .topology = TD_SCHEMA_KEYED,
    .element = &type_condition,
    .list_keys = condition_keys,
    .list_key_count = 1,
};
static const struct td_schema_field status_fields[] = {
    FIELD("blocked", type_blocked_list),
    FIELD("conditions", type_conditions),
    FIELD("current", type_current),
    FIELD("decision", type_decision),
    FIELD("emergency", type_emergencies),
    POINTER("infeasible", type_infeasible),
    FIELD("lastScaling", type_last),
    FIELD("mode", type_string),
    FIELD("observedGeneration", type_int64),
    POINTER("origin", type_origin),
    FIELD("reason", type_string),
    FIELD("recommendation", type_recommendation),
    FIELD("referenceRequests", type_requests),
    POINTER("replicas", type_int32),
    POINTER("targetSelector", type_string),
    POINTER("writtenReplicas", type_int32),
};
static const struct td_schema_type type_status = OBJECT("HvpaStatus", status_fields);

/* --- what is built on first use --- */

#define PART_FIELDS_MAX 24

/* Around the flat fields of a spec: those of a whole object. What it says beside its spec is of no
 * use here. */
struct hvpa_part_types {
    struct td_schema_field spec_fields[PART_FIELDS_MAX];
    struct td_schema_type spec;
    struct td_schema_field fields[PART_FIELDS_MAX];
    struct td_schema_type part;
};
static struct hvpa_part_types hpa_types;
static struct hvpa_part_types vpa_types;

static const struct td_schema_field extra_hpa_fields[] = {
    POINTER("targetCPUUtilizationPercentage", type_int32)};
static const struct td_schema_field object_fields[] = {
    FIELD("apiVersion", type_string), FIELD("kind", type_string), FIELD("metadata", type_any),
    FIELD("spec", type_any),          FIELD("status", type_any),
};
#define OBJECT_SPEC TD_STR("spec")

/* weightBasedScalingIntervals, hpa and vpa are gardener's: kept and reported, never read. */
enum { SPEC_HPA = 4, SPEC_VPA = 18, ROOT_METADATA = 2, ROOT_SPEC = 3, ROOT_STATUS = 4 };

static const struct td_schema_type type_old = {.kind = TD_SCHEMA_ANY};

static struct td_schema_field spec_fields[] = {
    FIELD("coupling", type_string),
    FIELD("finalScaling", type_string),
    FIELD("horizontal", type_horizontal),
    FIELD("hpa", type_old),
    [SPEC_HPA] = POINTER("hpaSpec", type_any),
    FIELD("initialScaling", type_string),
    FIELD("maintenanceTimeWindow", type_window),
    FIELD("mixed", type_mixed),
    FIELD("mode", type_string),
    FIELD("onDelete", type_string),
    POINTER("opposingGuard", type_bool),
    POINTER("paused", type_bool),
    FIELD("ratioBasedScalingSpec", type_ratio),
    POINTER("replicas", type_int32),
    FIELD("sources", type_string),
    POINTER("targetRef", type_reference),
    FIELD("vertical", type_vertical),
    FIELD("vpa", type_old),
    [SPEC_VPA] = POINTER("vpaSpec", type_any),
    FIELD("weightBasedScalingIntervals", type_old),
};
static const struct td_schema_type type_spec = OBJECT("HvpaSpec", spec_fields);
static struct td_schema_field reading_spec_fields[TD_COUNT(spec_fields)];
static const struct td_schema_type type_reading_spec = OBJECT("HvpaSpec", reading_spec_fields);

static struct td_schema_field root_fields[] = {
    FIELD("apiVersion", type_string),
    FIELD("kind", type_string),
    [ROOT_METADATA] = FIELD("metadata", type_any),
    [ROOT_SPEC] = FIELD("spec", type_spec),
    [ROOT_STATUS] = FIELD("status", type_status),
};
static const struct td_schema_type type_root = OBJECT("Hvpa", root_fields);
static struct td_schema_field reading_fields[TD_COUNT(root_fields)];
static const struct td_schema_type type_reading = OBJECT("Hvpa", reading_fields);

static pthread_once_t schema_once = PTHREAD_ONCE_INIT;

/* Two sorted lists of fields into one. */
static size_t schema_merge(struct td_schema_field *to, const struct td_schema_type *type,
                           const struct td_schema_field *extra, size_t extra_count)
{
    size_t count = 0;
    size_t next = 0;
    td_assert(type->field_count + extra_count <= PART_FIELDS_MAX);
    for (size_t i = 0; i < type->field_count; i++) {
        while (next < extra_count && td_str_compare(extra[next].name, type->fields[i].name) < 0) {
            to[count++] = extra[next++];
        }
        to[count++] = type->fields[i];
    }
    while (next < extra_count) {
        to[count++] = extra[next++];
    }
    return count;
}

static void schema_build_part(struct hvpa_part_types *types, const struct td_schema_type *root,
                              const struct td_schema_field *extra, size_t extra_count)
{
    const struct td_schema_type *spec = td_schema_member(root, OBJECT_SPEC);
    td_assert(spec);
    types->spec = *spec;
    types->spec.field_count = schema_merge(types->spec_fields, spec, extra, extra_count);
    types->spec.fields = types->spec_fields;
    types->part = types->spec;
    types->part.field_count =
        schema_merge(types->fields, &types->spec, object_fields, TD_COUNT(object_fields));
    types->part.fields = types->fields;
    for (size_t i = 0; i < types->part.field_count; i++) {
        if (td_str_equal(types->fields[i].name, OBJECT_SPEC)) {
            types->fields[i].type = &types->spec;
        }
    }
}

static void schema_init(void)
{
    schema_build_part(&hpa_types, td_hpa_schema(), extra_hpa_fields, 1);
    schema_build_part(&vpa_types, td_vpa_schema(), NULL, 0);
    const struct td_schema_type *metadata = td_schema_member(td_hpa_schema(), TD_STR("metadata"));
    td_assert(metadata);
    root_fields[ROOT_METADATA].type = metadata;
    memcpy(reading_spec_fields, spec_fields, sizeof(spec_fields));
    memcpy(reading_fields, root_fields, sizeof(root_fields));
    reading_fields[ROOT_SPEC].type = &type_reading_spec;
    reading_fields[ROOT_STATUS].type = &type_any;
    spec_fields[SPEC_HPA].type = &hpa_types.part;
    spec_fields[SPEC_VPA].type = &vpa_types.part;
}

static void schema_ready(void)
{
    int code = pthread_once(&schema_once, schema_init);
    td_assert(code == 0);
}

const struct td_schema_type *td_hvpa_schema(void)
{
    schema_ready();
    return &type_root;
}

const struct td_schema_type *td_hvpa_reading_type(void)
{
    schema_ready();
    return &type_reading;
}

const struct td_schema_type *td_hvpa_hpa_spec_type(void)
{
    schema_ready();
    return &hpa_types.spec;
}

const struct td_schema_type *td_hvpa_vpa_spec_type(void)
{
    schema_ready();
    return &vpa_types.spec;
}
