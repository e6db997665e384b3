/* Our own kind's definition. The rules that fit into a schema stand here too, so that a server
 * refuses the plainest mistakes even where none of our webhooks is asked. */
#include "api/crd.h"
#include "api/hpa/hpa.h"

#define HPA_CRD_TARGET_TYPES "[\"AverageValue\",\"Utilization\",\"Value\"]"

static const struct td_crd_note hpa_crd_notes[] = {
    {"", "required", "[\"spec\"]"},
    {"spec", "required", "[\"maxReplicas\",\"scaleTargetRef\"]"},
    {"spec.scaleTargetRef", "required", "[\"kind\",\"name\"]"},
    {"spec.minReplicas", "default", "1"},
    {"spec.minReplicas", "minimum", "0"},
    {"spec.maxReplicas", "minimum", "1"},
    {"spec.selectionStrategy", "enum",
     "[\"LabelSelector\",\"OwnerReference\",\"OwnerReferences\"]"},
    {"spec.metrics", "maxItems", "100"},
    {"spec.metrics[]", "required", "[\"type\"]"},
    {"spec.metrics[].type", "enum",
     "[\"ContainerResource\",\"External\",\"Object\",\"Pods\",\"Resource\"]"},
    {"spec.metrics[].resource", "required", "[\"name\",\"target\"]"},
    {"spec.metrics[].containerResource", "required", "[\"container\",\"name\",\"target\"]"},
    {"spec.metrics[].pods", "required", "[\"metric\",\"target\"]"},
    {"spec.metrics[].pods.metric", "required", "[\"name\"]"},
    {"spec.metrics[].object", "required", "[\"describedObject\",\"metric\",\"target\"]"},
    {"spec.metrics[].object.metric", "required", "[\"name\"]"},
    {"spec.metrics[].object.describedObject", "required", "[\"kind\",\"name\"]"},
    {"spec.metrics[].external", "required", "[\"metric\",\"target\"]"},
    {"spec.metrics[].external.metric", "required", "[\"name\"]"},
    {"spec.metrics[].resource.target", "required", "[\"type\"]"},
    {"spec.metrics[].containerResource.target", "required", "[\"type\"]"},
    {"spec.metrics[].pods.target", "required", "[\"type\"]"},
    {"spec.metrics[].object.target", "required", "[\"type\"]"},
    {"spec.metrics[].external.target", "required", "[\"type\"]"},
    {"spec.metrics[].resource.target.type", "enum", HPA_CRD_TARGET_TYPES},
    {"spec.metrics[].containerResource.target.type", "enum", HPA_CRD_TARGET_TYPES},
    {"spec.metrics[].pods.target.type", "enum", HPA_CRD_TARGET_TYPES},
    {"spec.metrics[].object.target.type", "enum", HPA_CRD_TARGET_TYPES},
    {"spec.metrics[].external.target.type", "enum", HPA_CRD_TARGET_TYPES},
    {"spec.behavior.scaleUp.selectPolicy", "enum", "[\"Disabled\",\"Max\",\"Min\"]"},
    {"spec.behavior.scaleDown.selectPolicy", "enum", "[\"Disabled\",\"Max\",\"Min\"]"},
    {"spec.behavior.scaleUp.stabilizationWindowSeconds", "minimum", "0"},
    {"spec.behavior.scaleUp.stabilizationWindowSeconds", "maximum", "3600"},
    {"spec.behavior.scaleDown.stabilizationWindowSeconds", "minimum", "0"},
    {"spec.behavior.scaleDown.stabilizationWindowSeconds", "maximum", "3600"},
    {"spec.behavior.scaleUp.policies[]", "required", "[\"periodSeconds\",\"type\",\"value\"]"},
    {"spec.behavior.scaleDown.policies[]", "required", "[\"periodSeconds\",\"type\",\"value\"]"},
    {"spec.behavior.scaleUp.policies[].type", "enum", "[\"Percent\",\"Pods\"]"},
    {"spec.behavior.scaleDown.policies[].type", "enum", "[\"Percent\",\"Pods\"]"},
    {"spec.behavior.scaleUp.policies[].value", "minimum", "1"},
    {"spec.behavior.scaleDown.policies[].value", "minimum", "1"},
    {"spec.behavior.scaleUp.policies[].periodSeconds", "minimum", "1"},
    {"spec.behavior.scaleUp.policies[].periodSeconds", "maximum", "1800"},
    {"spec.behavior.scaleDown.policies[].periodSeconds", "minimum", "1"},
    {"spec.behavior.scaleDown.policies[].periodSeconds", "maximum", "1800"},
    {"status.currentMetrics", "nullable", "true"}, /* the controller writes null, as upstream */
};

static const struct td_crd_rule hpa_crd_rules[] = {
    {"spec", "!has(self.minReplicas) || self.maxReplicas >= self.minReplicas",
     "maxReplicas must be greater than or equal to minReplicas", ".maxReplicas"},
    {"spec.metrics[]",
     "(self.type == 'Resource') == has(self.resource) && "
     "(self.type == 'ContainerResource') == has(self.containerResource) && "
     "(self.type == 'Pods') == has(self.pods) && "
     "(self.type == 'Object') == has(self.object) && "
     "(self.type == 'External') == has(self.external)",
     "must populate the given metric source only", NULL},
};

static const struct td_crd_column hpa_crd_columns[] = {
    {"Reference", "string", ".spec.scaleTargetRef.name", 0},
    {"MinPods", "integer", ".spec.minReplicas", 0},
    {"MaxPods", "integer", ".spec.maxReplicas", 0},
    {"Replicas", "integer", ".status.currentReplicas", 0},
    {"Age", "date", ".metadata.creationTimestamp", 0},
};

struct td_json *td_hpa_crd(struct td_arena *arena)
{
    const struct td_crd crd = {
        .group = "autoscaling.tandem.dev",
        .version = "v2",
        .kind = "HorizontalPodAutoscaler",
        .plural = "horizontalpodautoscalers",
        .singular = "horizontalpodautoscaler",
        .short_name = "thpa",
        .category = "all",
        .has_status = true,
        .type = td_hpa_schema(),
        .notes = hpa_crd_notes,
        .note_count = sizeof(hpa_crd_notes) / sizeof(hpa_crd_notes[0]),
        .rules = hpa_crd_rules,
        .rule_count = sizeof(hpa_crd_rules) / sizeof(hpa_crd_rules[0]),
        .columns = hpa_crd_columns,
        .column_count = sizeof(hpa_crd_columns) / sizeof(hpa_crd_columns[0]),
    };
    return td_crd_new(arena, &crd);
}
