/* Our own kind's definition. The rules that fit into a schema stand here too, so that a server
 * refuses the plainest mistakes even where none of our webhooks is asked. */
#include <string.h>

#include "api/crd.h"
#include "api/hpa/hpa.h"
#include "api/hpa/hpa_source.h"
#include "base/assert.h"

static const struct td_crd_note hpa_crd_notes[] = {
    {"spec", "required", "[\"maxReplicas\"]"},
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

#define CRD_MUST "must be set"
#define CRD_REQUIRED "FieldValueRequired"
#define CRD_ORDER "must be greater than or equal to `minReplicas`"
#define CRD_HAS "must populate information for the given metric source"
#define CRD_ALONE "must populate the given metric source only"
#define CRD_HAS_TARGET "has(self.spec) && has(self.spec.scaleTargetRef)"

/* A whole object that is missing is demanded by rules, and not by the schema: the built-in kind
 * names the members that are missing in it. No two rules of a place may have one text.
 * td_hpa_check_rules is these rules in C. */
static const struct td_crd_rule hpa_crd_rules[] = {
    {"", "has(self.spec) && has(self.spec.maxReplicas)", CRD_MUST, ".spec.maxReplicas",
     CRD_REQUIRED},
    {"", CRD_HAS_TARGET " && has(self.spec.scaleTargetRef.kind)", CRD_MUST,
     ".spec.scaleTargetRef.kind", CRD_REQUIRED},
    {"", CRD_HAS_TARGET " && has(self.spec.scaleTargetRef.name)", CRD_MUST,
     ".spec.scaleTargetRef.name", CRD_REQUIRED},
    {"spec", "!has(self.minReplicas) || self.maxReplicas >= self.minReplicas", CRD_ORDER,
     ".maxReplicas", NULL},
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
#define HPA_CRD_PART_RULES 4   /* at most, of the objects in a metric source */

/* A JSON list with one text more, not closed yet. */
static td_str crd_add(struct td_arena *arena, td_str list, td_str text)
{
    return td_arena_format(arena, "%.*s%s\"%.*s\"", TD_STR_ARG(list), list.len > 0 ? "," : "[",
                           TD_STR_ARG(text));
}

static bool crd_is_object(const struct td_schema_field *field)
{
    return field->type->kind == TD_SCHEMA_OBJECT;
}

/* What a type always has, but for objects; NULL: nothing. */
static const char *crd_required(struct td_arena *arena, const struct td_schema_type *type)
{
    td_str list = TD_STR_EMPTY;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *field = &type->fields[i];
        bool is_listed = field->is_written && !crd_is_object(field);
        list = is_listed ? crd_add(arena, list, field->name) : list;
    }
    return list.len > 0 ? td_arena_format(arena, "%.*s]", TD_STR_ARG(list)).ptr : NULL;
}

static size_t crd_note_required(struct td_arena *arena, td_str path,
                                const struct td_schema_type *type, struct td_crd_note *ret)
{
    const char *required = crd_required(arena, type);
    if (required) {
        *ret = (struct td_crd_note){path.ptr, "required", required};
    }
    return required != NULL;
}

/* A source and the objects in it say what they must have; its target is of one of three types. */
static size_t crd_note_source(struct td_arena *arena, const struct td_hpa_source *source,
                              struct td_crd_note *ret)
{
    const struct td_schema_type *type =
        td_schema_member(td_hpa_metric_schema(false), source->member);
    td_str path = td_arena_format(arena, "spec.metrics[].%.*s", TD_STR_ARG(source->member));
    size_t count = 0;
    count += crd_note_required(arena, path, type, &ret[count]);
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *field = &type->fields[i];
        if (crd_is_object(field) && count < HPA_CRD_SOURCE_NOTES - 1) {
            td_str place =
                td_arena_format(arena, "%.*s.%.*s", TD_STR_ARG(path), TD_STR_ARG(field->name));
            count += crd_note_required(arena, place, field->type, &ret[count]);
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
    ret[0] = (struct td_crd_rule){"spec.metrics[]", has.ptr, CRD_HAS, field, CRD_REQUIRED};
    ret[1] =
        (struct td_crd_rule){"spec.metrics[]", alone.ptr, CRD_ALONE, field, "FieldValueForbidden"};
}

/* A source has its objects (target, metric, describedObject). */
static size_t crd_rule_parts(struct td_arena *arena, const struct td_hpa_source *source,
                             struct td_crd_rule ret[HPA_CRD_PART_RULES])
{
    const struct td_schema_type *type =
        td_schema_member(td_hpa_metric_schema(false), source->member);
    const char *path =
        td_arena_format(arena, "spec.metrics[].%.*s", TD_STR_ARG(source->member)).ptr;
    size_t count = 0;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct td_schema_field *part = &type->fields[i];
        for (size_t j = 0; crd_is_object(part) && j < part->type->field_count; j++) {
            const struct td_schema_field *member = &part->type->fields[j];
            if (member->is_written && !crd_is_object(member)) {
                td_assert(count < HPA_CRD_PART_RULES);
                td_str has = td_arena_format(arena, "has(self.%.*s) && has(self.%.*s.%.*s)",
                                             TD_STR_ARG(part->name), TD_STR_ARG(part->name),
                                             TD_STR_ARG(member->name));
                td_str field = td_arena_format(arena, ".%.*s.%.*s", TD_STR_ARG(part->name),
                                               TD_STR_ARG(member->name));
                ret[count++] =
                    (struct td_crd_rule){path, has.ptr, CRD_MUST, field.ptr, CRD_REQUIRED};
            }
        }
    }
    return count;
}

/* Is an object missing whose members are demanded? */
static bool hpa_is_cut(const struct td_json *object)
{
    const struct td_json *spec = td_json_member(object, "spec");
    if (!spec || !td_json_member(spec, "scaleTargetRef")) {
        return true;
    }
    const struct td_json *metrics = td_json_member(spec, "metrics");
    for (const struct td_json *item = td_json_first_item(metrics); item; item = item->next) {
        for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
            td_str name = td_hpa_sources[i]->member;
            const struct td_schema_type *type = td_schema_member(td_hpa_metric_schema(false), name);
            const struct td_json *source = td_json_get(item, name);
            for (size_t j = 0; source && j < type->field_count; j++) {
                if (crd_is_object(&type->fields[j]) && !td_json_get(source, type->fields[j].name)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Of a whole object the rules judge these; the rest is our webhook's. */
static bool hpa_is_rule(td_str detail)
{
    static const td_str rules[] = {TD_STR_INIT(CRD_ORDER), TD_STR_INIT(CRD_HAS),
                                   TD_STR_INIT(CRD_ALONE)};
    for (size_t i = 0; i < TD_COUNT(rules); i++) {
        if (td_str_equal(detail, rules[i])) {
            return true;
        }
    }
    return false;
}

void td_hpa_check_rules(const struct td_json *object, struct td_field_errors *errors)
{
    const struct td_hpa_admission admission = {
        .operation = TD_HPA_CREATE,
        .object = object,
        .gates = {.scale_to_zero = true, .selection_strategy = true},
    };
    struct td_field_errors found = {.arena = errors->arena};
    if (td_hpa_admit(errors->arena, &admission, &found, NULL, NULL) < 0) {
        return; /* it decodes: the schema accepts it */
    }
    bool is_cut = hpa_is_cut(object);
    for (size_t i = 0; i < found.count; i++) {
        const struct td_field_error *error = &found.items[i];
        bool is_of_spec = td_str_starts_with(error->field, TD_STR("spec")); /* not of metadata */
        if (is_of_spec && (is_cut || hpa_is_rule(error->detail))) {
            struct td_field_path path = td_field_child(NULL, error->field);
            td_field_error_add(errors, &path, error->type, error->value, error->detail);
        }
    }
}

struct td_json *td_hpa_crd(struct td_arena *arena)
{
    struct td_crd_note notes[HPA_CRD_NOTES + 1 + TD_HPA_METRIC_UNKNOWN * HPA_CRD_SOURCE_NOTES];
    struct td_crd_rule
        rules[HPA_CRD_RULES + TD_HPA_METRIC_UNKNOWN * (HPA_CRD_SOURCE_RULES + HPA_CRD_PART_RULES)];
    memcpy(notes, hpa_crd_notes, sizeof(hpa_crd_notes));
    memcpy(rules, hpa_crd_rules, sizeof(hpa_crd_rules));
    notes[HPA_CRD_NOTES] = crd_note_types(arena);
    size_t note_count = HPA_CRD_NOTES + 1;
    size_t rule_count = HPA_CRD_RULES;
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        note_count += crd_note_source(arena, td_hpa_sources[i], &notes[note_count]);
        crd_rule_source(arena, td_hpa_sources[i], &rules[rule_count]);
        rule_count += HPA_CRD_SOURCE_RULES;
        rule_count += crd_rule_parts(arena, td_hpa_sources[i], &rules[rule_count]);
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
        .is_described = true,
        .type = td_hpa_schema(),
        .notes = notes,
        .note_count = note_count,
        .rules = rules,
        .rule_count = rule_count,
        .columns = hpa_crd_columns,
        .column_count = TD_COUNT(hpa_crd_columns),
    };
    return td_crd_new(arena, &crd);
}
