/*
 * Each kind of metric is a table of rows: where a value stands in v1 and where in v2. Both
 * directions walk the same rows, so they cannot drift apart. What v1 cannot leave out (quantities
 * that are no pointers there) is written "0"; on the way back that zero is kept, except beside an
 * averageValue of an Object metric, where validation would refuse it.
 */
#include "api/hpa/hpa_metric.h"

#include "api/hpa/hpa_private.h"
#include "api/schema_rows.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/quantity/quantity.h"
#include "kube/schema/check.h"

#define METRIC_ROWS_MAX 5

/* --- v1's shapes, for reading annotations --- */

static const struct td_schema_type type_labels = {.kind = TD_SCHEMA_MAP, .element = &type_string};

static const struct td_schema_field requirement_fields[] = {
    FIELD("key", type_string), FIELD("operator", type_string), FIELD("values", type_strings)};
static const struct td_schema_type type_requirement = OBJECT("", requirement_fields);
static const struct td_schema_type type_requirements = LIST(type_requirement);
static const struct td_schema_field selector_fields[] = {
    FIELD("matchExpressions", type_requirements), FIELD("matchLabels", type_labels)};
static const struct td_schema_type type_selector = OBJECT("", selector_fields);

/* The fields of a metric's source and of its status are few, and no name means two things, so one
 * table serves each kind in both. */
static const struct td_schema_field resource_fields[] = {
    FIELD("container", type_string),
    FIELD("currentAverageUtilization", type_int32),
    FIELD("currentAverageValue", type_quantity),
    FIELD("name", type_string),
    FIELD("targetAverageUtilization", type_int32),
    FIELD("targetAverageValue", type_quantity),
};
static const struct td_schema_type type_resource = OBJECT("", resource_fields);
static const struct td_schema_field metric_fields[] = {
    FIELD("averageValue", type_quantity),   FIELD("currentAverageValue", type_quantity),
    FIELD("currentValue", type_quantity),   FIELD("metricName", type_string),
    FIELD("metricSelector", type_selector), FIELD("selector", type_selector),
    FIELD("target", type_reference),        FIELD("targetAverageValue", type_quantity),
    FIELD("targetValue", type_quantity),
};
static const struct td_schema_type type_metric = OBJECT("", metric_fields);
static const struct td_schema_field any_metric_fields[] = {
    FIELD("containerResource", type_resource),
    FIELD("external", type_metric),
    FIELD("object", type_metric),
    FIELD("pods", type_metric),
    FIELD("resource", type_resource),
    FIELD("type", type_string),
};
static const struct td_schema_type type_any_metric = OBJECT("", any_metric_fields);
static const struct td_schema_type type_metrics = LIST(type_any_metric);
static const struct td_schema_field condition_fields[] = {
    FIELD("lastTransitionTime", type_time),
    FIELD("message", type_string),
    FIELD("reason", type_string),
    FIELD("status", type_string),
    FIELD("type", type_string),
};
static const struct td_schema_type type_condition = OBJECT("", condition_fields);
static const struct td_schema_type type_conditions = LIST(type_condition);
static const struct td_schema_field policy_fields[] = {
    FIELD("periodSeconds", type_int32), FIELD("type", type_string), FIELD("value", type_int32)};
static const struct td_schema_type type_policy = OBJECT("", policy_fields);
static const struct td_schema_type type_policies = LIST(type_policy);
static const struct td_schema_field rules_fields[] = {
    FIELD("policies", type_policies),
    FIELD("selectPolicy", type_string),
    FIELD("stabilizationWindowSeconds", type_int32),
    FIELD("tolerance", type_quantity),
};
static const struct td_schema_type type_rules = OBJECT("", rules_fields);
static const struct td_schema_field behavior_fields[] = {FIELD("scaleDown", type_rules),
                                                         FIELD("scaleUp", type_rules)};
static const struct td_schema_type type_behavior = OBJECT("", behavior_fields);

/* --- where values stand --- */

struct metric_row {
    td_str v1;
    td_str v2_outer; /* "target", or empty for a member of the source itself */
    td_str v2_inner;
    bool has_zero; /* a quantity that v1 always writes */
};

struct metric_kind {
    td_str member;
    struct metric_row rows[METRIC_ROWS_MAX]; /* in upstream's order; ends at an empty name */
};

#define ROW(name, outer, inner)                                                                    \
    {                                                                                              \
        .v1 = TD_STR_INIT(name), .v2_outer = TD_STR_INIT(outer), .v2_inner = TD_STR_INIT(inner)    \
    }
#define ZERO_ROW(name, outer, inner)                                                               \
    {                                                                                              \
        .v1 = TD_STR_INIT(name), .v2_outer = TD_STR_INIT(outer), .v2_inner = TD_STR_INIT(inner),   \
        .has_zero = true                                                                           \
    }

static const struct metric_kind metric_specs[] = {
    {TD_STR_INIT("object"),
     {ROW("target", "", "describedObject"), ROW("metricName", "metric", "name"),
      ZERO_ROW("targetValue", "target", "value"), ROW("selector", "metric", "selector"),
      ROW("averageValue", "target", "averageValue")}},
    {TD_STR_INIT("pods"),
     {ROW("metricName", "metric", "name"), ZERO_ROW("targetAverageValue", "target", "averageValue"),
      ROW("selector", "metric", "selector")}},
    {TD_STR_INIT("resource"),
     {ROW("name", "", "name"), ROW("targetAverageUtilization", "target", "averageUtilization"),
      ROW("targetAverageValue", "target", "averageValue")}},
    {TD_STR_INIT("containerResource"),
     {ROW("name", "", "name"), ROW("targetAverageUtilization", "target", "averageUtilization"),
      ROW("targetAverageValue", "target", "averageValue"), ROW("container", "", "container")}},
    {TD_STR_INIT("external"),
     {ROW("metricName", "metric", "name"), ROW("metricSelector", "metric", "selector"),
      ROW("targetValue", "target", "value"), ROW("targetAverageValue", "target", "averageValue")}},
};

static const struct metric_kind metric_statuses[] = {
    {TD_STR_INIT("object"),
     {ROW("target", "", "describedObject"), ROW("metricName", "metric", "name"),
      ZERO_ROW("currentValue", "current", "value"), ROW("selector", "metric", "selector"),
      ROW("averageValue", "current", "averageValue")}},
    {TD_STR_INIT("pods"),
     {ROW("metricName", "metric", "name"),
      ZERO_ROW("currentAverageValue", "current", "averageValue"),
      ROW("selector", "metric", "selector")}},
    {TD_STR_INIT("resource"),
     {ROW("name", "", "name"), ROW("currentAverageUtilization", "current", "averageUtilization"),
      ZERO_ROW("currentAverageValue", "current", "averageValue")}},
    {TD_STR_INIT("containerResource"),
     {ROW("name", "", "name"), ROW("currentAverageUtilization", "current", "averageUtilization"),
      ZERO_ROW("currentAverageValue", "current", "averageValue"),
      ROW("container", "", "container")}},
    {TD_STR_INIT("external"),
     {ROW("metricName", "metric", "name"), ROW("metricSelector", "metric", "selector"),
      ZERO_ROW("currentValue", "current", "value"),
      ROW("currentAverageValue", "current", "averageValue")}},
};

#define METRIC_KIND_COUNT (sizeof(metric_specs) / sizeof(metric_specs[0]))
static_assert(METRIC_KIND_COUNT == sizeof(metric_statuses) / sizeof(metric_statuses[0]),
              "every metric has a status");

static const struct metric_kind *metric_kinds(enum td_hpa_metric_part part)
{
    return part == TD_HPA_METRIC_SPECS ? metric_specs : metric_statuses;
}

static struct td_json *metric_copy(struct td_arena *arena, const struct td_json *value,
                                   const struct metric_row *row)
{
    if (value) {
        return td_json_copy(arena, value, false);
    }
    return row->has_zero ? td_json_new_string(arena, TD_STR("0")) : NULL;
}

/* --- to v1 --- */

static struct td_json *metric_source_to_v1(struct td_arena *arena, const struct metric_kind *kind,
                                           const struct td_json *source)
{
    struct td_json *made = td_json_new_object(arena);
    for (size_t i = 0; i < METRIC_ROWS_MAX && kind->rows[i].v1.len > 0; i++) {
        const struct metric_row *row = &kind->rows[i];
        const struct td_json *outer =
            row->v2_outer.len > 0 ? td_hpa_member(source, row->v2_outer) : source;
        struct td_json *value = metric_copy(arena, td_hpa_member(outer, row->v2_inner), row);
        if (value) {
            td_json_set(arena, made, row->v1, value);
        }
    }
    return made;
}

struct td_json *td_hpa_metrics_to_v1(struct td_arena *arena, enum td_hpa_metric_part part,
                                     const struct td_json *metrics)
{
    struct td_json *list = td_json_new_array(arena);
    const struct metric_kind *kinds = metric_kinds(part);
    for (const struct td_json *item = td_json_first_item(metrics); item; item = item->next) {
        struct td_json *metric = td_json_new_object(arena);
        td_str type = td_json_get_str(item, TD_STR("type"), TD_STR_EMPTY);
        td_json_set(arena, metric, TD_STR("type"), td_json_new_string(arena, type));
        for (size_t k = 0; k < METRIC_KIND_COUNT; k++) {
            const struct td_json *source = td_hpa_member(item, kinds[k].member);
            if (source) {
                td_json_set(arena, metric, kinds[k].member,
                            metric_source_to_v1(arena, &kinds[k], source));
            }
        }
        td_json_append(list, metric);
    }
    return list;
}

/* Upstream marshals a type without JSON names: the Go names, and nothing is left out. */
static void behavior_put(struct td_arena *arena, struct td_json *to, td_str key,
                         const struct td_json *value)
{
    td_json_set(arena, to, key,
                value ? td_json_copy(arena, value, false) : td_json_new_null(arena));
}

static struct td_json *behavior_policies(struct td_arena *arena, const struct td_json *policies)
{
    struct td_json *list = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_item(policies); item; item = item->next) {
        struct td_json *policy = td_json_new_object(arena);
        behavior_put(arena, policy, TD_STR("Type"), td_json_get(item, TD_STR("type")));
        behavior_put(arena, policy, TD_STR("Value"), td_json_get(item, TD_STR("value")));
        behavior_put(arena, policy, TD_STR("PeriodSeconds"),
                     td_json_get(item, TD_STR("periodSeconds")));
        td_json_append(list, policy);
    }
    return list;
}

static struct td_json *behavior_rules(struct td_arena *arena, const struct td_json *rules)
{
    if (!rules) {
        return td_json_new_null(arena);
    }
    struct td_json *made = td_json_new_object(arena);
    behavior_put(arena, made, TD_STR("StabilizationWindowSeconds"),
                 td_hpa_member(rules, TD_STR("stabilizationWindowSeconds")));
    behavior_put(arena, made, TD_STR("SelectPolicy"), td_hpa_member(rules, TD_STR("selectPolicy")));
    const struct td_json *policies = td_hpa_member(rules, TD_STR("policies"));
    td_json_set(arena, made, TD_STR("Policies"),
                policies ? behavior_policies(arena, policies) : td_json_new_null(arena));
    behavior_put(arena, made, TD_STR("Tolerance"), td_hpa_member(rules, TD_STR("tolerance")));
    return made;
}

struct td_json *td_hpa_behavior_to_v1(struct td_arena *arena, const struct td_json *behavior)
{
    struct td_json *made = td_json_new_object(arena);
    td_json_set(arena, made, TD_STR("ScaleUp"),
                behavior_rules(arena, td_hpa_member(behavior, TD_STR("scaleUp"))));
    td_json_set(arena, made, TD_STR("ScaleDown"),
                behavior_rules(arena, td_hpa_member(behavior, TD_STR("scaleDown"))));
    return made;
}

/* --- reading annotations --- */

static bool fold_equal(td_str a, td_str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        char x = a.ptr[i] >= 'A' && a.ptr[i] <= 'Z' ? (char)(a.ptr[i] + 32) : a.ptr[i];
        char y = b.ptr[i] >= 'A' && b.ptr[i] <= 'Z' ? (char)(b.ptr[i] + 32) : b.ptr[i];
        if (x != y) {
            return false;
        }
    }
    return true;
}

static const struct td_schema_field *fold_field(const struct td_schema_type *type, td_str name)
{
    const struct td_schema_field *exact = td_schema_field(type, name);
    for (size_t i = 0; i < type->field_count && !exact; i++) {
        if (fold_equal(type->fields[i].name, name)) {
            return &type->fields[i];
        }
    }
    return exact;
}

/* A copy with member names as the schema spells them and nothing that it does not know; nulls are
 * left out. Values of another shape are copied: the type check that follows complains. The schemas
 * above bound the depth. */
static struct td_json *fold_value(struct td_arena *arena, const struct td_schema_type *type,
                                  const struct td_json *value, uint32_t depth)
{
    td_assert(depth < TD_JSON_DEPTH_MAX);
    if (type->kind == TD_SCHEMA_OBJECT && value->type == TD_JSON_TYPE_OBJECT) {
        struct td_json *made = td_json_new_object(arena);
        for (const struct td_json *member = td_json_first_member(value); member;
             member = member->next) {
            const struct td_schema_field *field = fold_field(type, member->key);
            if (field && member->type != TD_JSON_TYPE_NULL) {
                td_json_set(arena, made, field->name,
                            fold_value(arena, field->type, member, depth + 1));
            }
        }
        return made;
    }
    if (type->kind == TD_SCHEMA_LIST && value->type == TD_JSON_TYPE_ARRAY) {
        struct td_json *made = td_json_new_array(arena);
        for (const struct td_json *item = td_json_first_item(value); item; item = item->next) {
            td_json_append(made, fold_value(arena, type->element, item, depth + 1));
        }
        return made;
    }
    return td_json_copy(arena, value, false);
}

static struct td_json *annotation_read(struct td_arena *arena, const struct td_schema_type *type,
                                       td_str text)
{
    struct td_json *tree;
    const struct td_json_options options = {.copy_strings = true};
    if (td_json_parse(arena, text, &options, &tree, NULL) < 0) {
        return NULL;
    }
    struct td_json *folded = fold_value(arena, type, tree, 0);
    return td_check_types(type, folded, NULL, NULL) == TD_OK ? folded : NULL;
}

static bool metric_is_zero(struct td_arena *arena, const struct td_json *value)
{
    struct td_quantity quantity;
    return !value || td_quantity_from_json(arena, value, &quantity, NULL) < 0 ||
           td_quantity_sign(&quantity) == 0;
}

/* The type follows from which value is given; the rows have placed the values. */
static void metric_infer_type(struct td_arena *arena, td_str kind, struct td_json *source)
{
    struct td_json *target = td_json_ensure_object(arena, source, TD_STR("target"));
    const struct td_json *value = td_hpa_member(target, TD_STR("value"));
    const struct td_json *average = td_hpa_member(target, TD_STR("averageValue"));
    td_str type = TD_STR("AverageValue");
    if (td_hpa_member(target, TD_STR("averageUtilization"))) {
        type = TD_STR("Utilization");
    } else if (td_str_equal(kind, TD_STR("object"))) {
        type = average ? type : TD_STR("Value");
        if (average && metric_is_zero(arena, value)) {
            (void)td_json_remove(target, TD_STR("value")); /* v1 cannot leave it out */
        }
    } else if (td_str_equal(kind, TD_STR("external")) && value) {
        type = TD_STR("Value");
    }
    td_json_set(arena, target, TD_STR("type"), td_json_new_string(arena, type));
}

static struct td_json *metric_source_from_v1(struct td_arena *arena, enum td_hpa_metric_part part,
                                             const struct metric_kind *kind,
                                             const struct td_json *source)
{
    struct td_json *made = td_json_new_object(arena);
    for (size_t i = 0; i < METRIC_ROWS_MAX && kind->rows[i].v1.len > 0; i++) {
        const struct metric_row *row = &kind->rows[i];
        struct td_json *value = metric_copy(arena, td_hpa_member(source, row->v1), row);
        if (value) {
            struct td_json *outer =
                row->v2_outer.len > 0 ? td_json_ensure_object(arena, made, row->v2_outer) : made;
            td_json_set(arena, outer, row->v2_inner, value);
        }
    }
    if (part == TD_HPA_METRIC_SPECS) {
        metric_infer_type(arena, kind->member, made);
    }
    return made;
}

struct td_json *td_hpa_metrics_from_text(struct td_arena *arena, enum td_hpa_metric_part part,
                                         td_str text)
{
    const struct td_json *list = annotation_read(arena, &type_metrics, text);
    if (!list) {
        return NULL;
    }
    struct td_json *made = td_json_new_array(arena);
    const struct metric_kind *kinds = metric_kinds(part);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        struct td_json *metric = td_json_new_object(arena);
        td_str type = td_json_get_str(item, TD_STR("type"), TD_STR_EMPTY);
        td_json_set(arena, metric, TD_STR("type"), td_json_new_string(arena, type));
        for (size_t k = 0; k < METRIC_KIND_COUNT; k++) {
            const struct td_json *source = td_hpa_member(item, kinds[k].member);
            if (source) {
                td_json_set(arena, metric, kinds[k].member,
                            metric_source_from_v1(arena, part, &kinds[k], source));
            }
        }
        td_json_append(made, metric);
    }
    return made;
}

struct td_json *td_hpa_conditions_from_text(struct td_arena *arena, td_str text)
{
    struct td_json *list = annotation_read(arena, &type_conditions, text);
    return td_json_is(list, TD_JSON_TYPE_NULL) ? td_json_new_array(arena) : list;
}

struct td_json *td_hpa_behavior_from_text(struct td_arena *arena, td_str text)
{
    struct td_json *behavior = annotation_read(arena, &type_behavior, text);
    return td_json_is(behavior, TD_JSON_TYPE_OBJECT) && behavior->count > 0 ? behavior : NULL;
}
