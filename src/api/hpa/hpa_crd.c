/* Our own kind's definition. The rules that fit into a schema stand here too, so that a server
 * refuses the plainest mistakes even where none of our webhooks is asked. */
#include <string.h>

#include "api/crd.h"
#include "api/hpa/hpa_source.h"

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
     "must be greater than or equal to `minReplicas`", ".maxReplicas", NULL},
};

static const struct td_crd_column hpa_crd_columns[] = {
    {"Reference", "string", ".spec.scaleTargetRef.name", 0},
    {"MinPods", "integer", ".spec.minReplicas", 0},
    {"MaxPods", "integer", ".spec.maxReplicas", 0},
    {"Replicas", "integer", ".status.currentReplicas", 0},
    {"Age", "date", ".metadata.creationTimestamp", 0},
};

#define HPA_CRD_NOTES (TD_COUNT(hpa_crd_notes))
#define HPA_CRD_RULES (TD_COUNT(hpa_crd_rules))
#define HPA_CRD_SOURCE_NOTES 5 /* at most, of one metric source */
#define HPA_CRD_SOURCE_RULES 2 /* of one metric source */

/* A JSON list with one text more, not closed yet. */
static td_str crd_add(struct td_arena *arena, td_str list, td_str text)
{
    return td_arena_format(arena, "%.*s%s\"%.*s\"", TD_STR_ARG(list), list.len > 0 ? "," : "[",
                           TD_STR_ARG(text));
}

/* What a type always has. */
static const char *crd_required(struct td_arena *arena, const struct td_schema_type *type)
{
    td_str list = TD_STR_EMPTY;
    for (size_t i = 0; i < type->field_count; i++) {
        list = type->fields[i].is_written ? crd_add(arena, list, type->fields[i].name) : list;
    }
    return td_arena_format(arena, "%.*s]", TD_STR_ARG(list)).ptr;
}

/* A source and the objects in it say what they must have; its target is of one of three types. */
static size_t crd_note_source(struct td_arena *arena, const struct td_hpa_source *source,
                              struct td_crd_note *ret)
{
    const struct td_schema_type *type =
        td_schema_member(td_hpa_metric_schema(false), source->member);
    td_str path = td_arena_format(arena, "spec.metrics[].%.*s", TD_STR_ARG(source->member));
    size_t count = 0;
    ret[count++] = (struct td_crd_note){path.ptr, "required", crd_required(arena, type)};
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *field = &type->fields[i];
        if (field->type->kind == TD_SCHEMA_OBJECT && count < HPA_CRD_SOURCE_NOTES - 1) {
            td_str place =
                td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(path), TD_STR_ARG(field->name));
            ret[count++] =
                (struct td_crd_note){place.ptr, "required", crd_required(arena, field->type)};
        }
    }
    ret[count++] =
        (struct td_crd_note){td_arena_format(arena, "%.*s.target.type", TD_STR_ARG(path)).ptr,
                             "enum", "[\"AverageValue\",\"Utilization\",\"Value\"]"};
    return count;
}

static struct td_crd_note crd_note_types(struct td_arena *arena)
{
    td_str types[TD_HPA_METRIC_UNKNOWN];
    td_str list = TD_STR_EMPTY;
    td_hpa_source_types(types);
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        list = crd_add(arena, list, types[i]);
    }
    return (struct td_crd_note){"spec.metrics[].type", "enum",
                                td_arena_format(arena, "%.*s]", TD_STR_ARG(list)).ptr};
}

/* Does the metric have a source other than this one? */
static td_str crd_has_other(struct td_arena *arena, const struct td_hpa_source *source)
{
    td_str rule = TD_STR_EMPTY;
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        if (td_hpa_sources[i] != source) {
            rule =
                td_arena_format(arena, "%.*s%shas(self.%.*s)", TD_STR_ARG(rule),
                                rule.len > 0 ? " || " : "", TD_STR_ARG(td_hpa_sources[i]->member));
        }
    }
    return rule;
}

/* A metric has the source of its type, and of several no other: the same fields, classes and words
 * as of the built-in kind. */
static void crd_rule_source(struct td_arena *arena, const struct td_hpa_source *source,
                            struct td_crd_rule ret[HPA_CRD_SOURCE_RULES])
{
    td_str type = source->type;
    td_str member = source->member;
    td_str other = crd_has_other(arena, source);
    const char *field = td_arena_format(arena, ".%.*s", TD_STR_ARG(member)).ptr;
    td_str has = td_arena_format(arena, "self.type != '%.*s' || has(self.%.*s)", TD_STR_ARG(type),
                                 TD_STR_ARG(member));
    td_str alone = td_arena_format(arena, "self.type == '%.*s' || !has(self.%.*s) || !(%.*s)",
                                   TD_STR_ARG(type), TD_STR_ARG(member), TD_STR_ARG(other));
    ret[0] = (struct td_crd_rule){"spec.metrics[]", has.ptr,
                                  "must populate information for the given metric source", field,
                                  "FieldValueRequired"};
    ret[1] = (struct td_crd_rule){"spec.metrics[]", alone.ptr,
                                  "must populate the given metric source only", field,
                                  "FieldValueForbidden"};
}

struct td_json *td_hpa_crd(struct td_arena *arena)
{
    struct td_crd_note notes[HPA_CRD_NOTES + 1 + TD_HPA_METRIC_UNKNOWN * HPA_CRD_SOURCE_NOTES];
    struct td_crd_rule rules[HPA_CRD_RULES + TD_HPA_METRIC_UNKNOWN * HPA_CRD_SOURCE_RULES];
    memcpy(notes, hpa_crd_notes, sizeof(hpa_crd_notes));
    memcpy(rules, hpa_crd_rules, sizeof(hpa_crd_rules));
    notes[HPA_CRD_NOTES] = crd_note_types(arena);
    size_t note_count = HPA_CRD_NOTES + 1;
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        note_count += crd_note_source(arena, td_hpa_sources[i], &notes[note_count]);
        crd_rule_source(arena, td_hpa_sources[i], &rules[HPA_CRD_RULES + i * HPA_CRD_SOURCE_RULES]);
    }
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
        .notes = notes,
        .note_count = note_count,
        .rules = rules,
        .rule_count = TD_COUNT(rules),
        .columns = hpa_crd_columns,
        .column_count = TD_COUNT(hpa_crd_columns),
    };
    return td_crd_new(arena, &crd);
}
