/* The definition of our kind. The group is a protected one (*.k8s.io), which servers accept only
 * with an annotation that says whether its API was reviewed. Defaults are not written into the
 * schema: a missing startReplicaCount, ratio or coupling has a meaning that a stored value would
 * hide, and the decoder knows them all. */
#include "api/crd.h"
#include "api/hvpa/hvpa_private.h"

#define CRD_AXES "[\"\",\"horizontal\",\"vertical\"]"
#define CRD_UPDATES "[\"Auto\",\"Off\",\"MaintenanceWindow\"]"
#define CRD_DURATION "\"^([0-9]+(\\\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$\""
#define CRD_TIME "\"^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-]([01][0-9]|2[0-3])[0-5][0-9]$\""

#define CRD_CHANGE(path)                                                                           \
    {path ".cpu.percentage", "minimum", "0"},                                                      \
    {                                                                                              \
        path ".memory.percentage", "minimum", "0"                                                  \
    }
#define CRD_POLICY(path)                                                                           \
    {path ".updatePolicy.updateMode", "enum", CRD_UPDATES},                                        \
        {path ".stabilizationDuration", "pattern", CRD_DURATION}, CRD_CHANGE(path ".minChange")

static const struct td_crd_note hvpa_crd_notes[] = {
    {"", "required", "[\"spec\"]"},
    {"spec.mode", "enum",
     "[\"\",\"HPAPreferred\",\"HPABiased\",\"VPABiased\",\"Mixed\",\"RatioBased\"]"},
    {"spec.targetRef", "required", "[\"kind\",\"name\"]"},
    {"spec.initialScaling", "enum", CRD_AXES},
    {"spec.finalScaling", "enum", CRD_AXES},
    {"spec.ratioBasedScalingSpec.vToHScalingRatio", "minimum", "0"},
    {"spec.ratioBasedScalingSpec.vToHScalingRatio", "maximum", "1000000"},
    {"spec.ratioBasedScalingSpec.capacityPolicy", "enum", "[\"Blend\",\"Max\"]"},
    {"spec.mixed.preference", "enum", CRD_AXES},
    {"spec.mixed.horizontalThreshold", "minimum", "0"},
    {"spec.mixed.patienceSeconds", "minimum", "0"},
    CRD_CHANGE("spec.mixed.verticalThreshold"),
    {"spec.replicas", "minimum", "0"},
    CRD_POLICY("spec.horizontal.scaleUp"),
    CRD_POLICY("spec.horizontal.scaleDown"),
    CRD_POLICY("spec.vertical.scaleUp"),
    CRD_POLICY("spec.vertical.scaleDown"),
    CRD_CHANGE("spec.vertical.limitsRequestsGapScaleParams"),
    {"spec.vertical.tolerancePercent", "minimum", "0"},
    {"spec.vertical.tolerancePercent", "maximum", "100"},
    {"spec.vertical.settleSeconds", "minimum", "0"},
    {"spec.onDelete", "enum", "[\"Keep\",\"Template\"]"},
    {"spec.vertical.actuation", "enum", "[\"Pods\",\"Template\"]"},
    {"spec.maintenanceTimeWindow", "required", "[\"begin\",\"end\"]"},
    {"spec.maintenanceTimeWindow.begin", "pattern", CRD_TIME},
    {"spec.maintenanceTimeWindow.end", "pattern", CRD_TIME},
    {"spec.coupling", "enum", "[\"Reference\",\"Reconcile\",\"None\"]"},
    {"spec.sources", "enum", "[\"Internal\",\"Objects\"]"},
};

static const struct td_crd_rule hvpa_crd_rules[] = {
    {"spec", "has(self.hpaSpec) || has(self.vpaSpec)", "hpaSpec, vpaSpec or both must be there",
     NULL, NULL},
};

static const struct td_crd_column hvpa_crd_columns[] = {
    {"Mode", "string", ".status.mode", 0},
    {"Ready", "string", ".status.conditions[?(@.type=='Ready')].status", 0},
    {"Replicas", "integer", ".status.current.replicas", 0},
    {"Desired", "integer", ".status.decision.replicas", 0},
    {"Axis", "string", ".status.decision.axis", 0},
    {"Reason", "string", ".status.reason", 0},
    {"Age", "date", ".metadata.creationTimestamp", 0},
};

struct td_json *td_hvpa_crd(struct td_arena *arena)
{
    const struct td_crd crd = {
        .group = TD_HVPA_GROUP,
        .version = TD_HVPA_VERSION,
        .kind = "Hvpa",
        .plural = "hvpas",
        .singular = "hvpa",
        .category = "all",
        .has_status = true,
        .is_described = true,
        .scale_spec = ".spec.replicas",
        .scale_status = ".status.replicas",
        .scale_selector = ".status.targetSelector",
        .type = td_hvpa_schema(),
        .notes = hvpa_crd_notes,
        .note_count = TD_COUNT(hvpa_crd_notes),
        .rules = hvpa_crd_rules,
        .rule_count = TD_COUNT(hvpa_crd_rules),
        .columns = hvpa_crd_columns,
        .column_count = TD_COUNT(hvpa_crd_columns),
    };
    struct td_json *made = td_crd_new(arena, &crd);
    struct td_json *metadata = td_json_ensure_object(arena, made, TD_STR("metadata"));
    struct td_json *annotations = td_json_ensure_object(arena, metadata, TD_STR("annotations"));
    td_json_set_str(arena, annotations, TD_STR("api-approved.kubernetes.io"),
                    TD_STR("unapproved, experimental API of tandem"));
    return made;
}
