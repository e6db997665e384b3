/*
 * Each metric source has rows that say where a value stands in v1 and where in v2. Both directions
 * walk the same rows, so they cannot drift apart. What v1 cannot leave out (quantities
 * that are no pointers there) is written "0"; on the way back that zero is kept, except beside an
 * averageValue of an Object metric, where validation would refuse it.
 */
#include "api/hpa/hpa_metric.h"

#include "api/hpa/hpa_private.h"
#include "api/hpa/hpa_source.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/quantity/quantity.h"
#include "kube/schema/check.h"

static td_str metric_v1_name(const struct td_hpa_v1_place *place, enum td_hpa_metric_part part)
{
    return part == TD_HPA_METRIC_SPECS ? place->spec : place->status;
}

static td_str metric_outer(const struct td_hpa_v1_place *place, enum td_hpa_metric_part part)
{
    bool is_current =
        part == TD_HPA_METRIC_STATUSES && td_str_equal(place->outer, TD_STR("target"));
    return is_current ? TD_STR("current") : place->outer;
}

static bool metric_has_zero(const struct td_hpa_v1_place *place, enum td_hpa_metric_part part)
{
    return place->zero == TD_HPA_V1_ZERO ||
           (part == TD_HPA_METRIC_STATUSES && place->zero == TD_HPA_V1_ZERO_IN_STATUS);
}

/* {"type": ...}, to which the sources are added. */
static struct td_json *metric_new(struct td_arena *arena, td_str type)
{
    struct td_json *metric = td_json_new_object(arena);
    td_json_set_str(arena, metric, TD_STR("type"), type);
    return metric;
}

/* --- to v1 --- */

static struct td_json *metric_source_to_v1(struct td_arena *arena, enum td_hpa_metric_part part,
                                           const struct td_hpa_v1_place *places,
                                           const struct td_json *source)
{
    struct td_json *made = td_json_new_object(arena);
    for (size_t i = 0; i < TD_HPA_V1_PLACES_MAX && places[i].spec.len > 0; i++) {
        td_str outer_name = metric_outer(&places[i], part);
        const struct td_json *outer =
            outer_name.len > 0 ? td_kind_member(source, outer_name) : source;
        const struct td_json *value = td_kind_member(outer, places[i].inner);
        td_str name = metric_v1_name(&places[i], part);
        if (value) {
            td_json_set(arena, made, name, td_json_copy(arena, value, false));
        } else if (metric_has_zero(&places[i], part)) {
            td_json_set_str(arena, made, name, TD_STR("0"));
        }
    }
    return made;
}

struct td_json *td_hpa_metrics_to_v1(struct td_arena *arena, enum td_hpa_metric_part part,
                                     const struct td_json *metrics)
{
    struct td_json *list = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_item(metrics); item; item = item->next) {
        struct td_json *metric = metric_new(arena, td_json_text(item, "type"));
        for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
            const struct td_json *source = td_kind_member(item, td_hpa_sources[i]->member);
            if (source) {
                td_json_set(arena, metric, td_hpa_sources[i]->member,
                            metric_source_to_v1(arena, part, td_hpa_sources[i]->places, source));
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
                 td_json_member(rules, "stabilizationWindowSeconds"));
    behavior_put(arena, made, TD_STR("SelectPolicy"), td_json_member(rules, "selectPolicy"));
    const struct td_json *policies = td_json_member(rules, "policies");
    td_json_set(arena, made, TD_STR("Policies"),
                policies ? behavior_policies(arena, policies) : td_json_new_null(arena));
    behavior_put(arena, made, TD_STR("Tolerance"), td_json_member(rules, "tolerance"));
    return made;
}

struct td_json *td_hpa_behavior_to_v1(struct td_arena *arena, const struct td_json *behavior)
{
    struct td_json *made = td_json_new_object(arena);
    td_json_set(arena, made, TD_STR("ScaleUp"),
                behavior_rules(arena, td_json_member(behavior, "scaleUp")));
    td_json_set(arena, made, TD_STR("ScaleDown"),
                behavior_rules(arena, td_json_member(behavior, "scaleDown")));
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
 * left out. Values of another shape are copied: the type check that follows complains. The type
 * bounds the depth. */
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

/* NULL: it has not the type. */
static struct td_json *fold_checked(struct td_arena *arena, const struct td_schema_type *type,
                                    const struct td_json *value)
{
    struct td_json *folded = fold_value(arena, type, value, 0);
    return td_check_types(type, folded, NULL, NULL) == TD_OK ? folded : NULL;
}

static const struct td_json_options annotation_options = {.copy_strings = true};

/* With the type of a member of v2's spec or status, which is v1's too. */
static struct td_json *annotation_read(struct td_arena *arena, td_str part, td_str member,
                                       td_str text)
{
    struct td_json *tree;
    return td_json_parse(arena, text, &annotation_options, &tree, NULL) < 0
               ? NULL
               : fold_checked(arena,
                              td_schema_member(td_schema_member(td_hpa_schema(), part), member),
                              tree);
}

/* The member as Go finds it, in any case; the last of several. NULL: there is none but nulls. */
static const struct td_json *fold_member(const struct td_json *object, td_str name)
{
    const struct td_json *found = NULL;
    for (const struct td_json *member = td_json_first_member(object); member;
         member = member->next) {
        if (member->type != TD_JSON_TYPE_NULL && fold_equal(member->key, name)) {
            found = member;
        }
    }
    return found;
}

static bool metric_is_zero(struct td_arena *arena, const struct td_json *value)
{
    struct td_quantity quantity;
    return !value || td_quantity_from_json(arena, value, &quantity, NULL) < 0 ||
           td_quantity_sign(&quantity) == 0;
}

/* The type follows from which value is given; one that v1 could not leave out counts for nothing
 * beside the other, since validation would refuse it. */
static void metric_infer_type(struct td_arena *arena, const struct td_hpa_source *source,
                              struct td_json *made)
{
    const struct td_hpa_target_choice *choice = &source->choice;
    struct td_json *target = td_json_ensure_object(arena, made, TD_STR("target"));
    td_str second = td_hpa_target_members[choice->second];
    bool has_first = td_kind_member(target, td_hpa_target_members[choice->first]) != NULL;
    for (size_t i = 0; i < TD_HPA_V1_PLACES_MAX && has_first; i++) {
        if (source->places[i].zero == TD_HPA_V1_ZERO && choice->first != choice->second &&
            td_str_equal(source->places[i].inner, second) &&
            metric_is_zero(arena, td_kind_member(target, second))) {
            (void)td_json_remove(target, second); /* may be absent */
        }
    }
    td_json_set_str(arena, target, TD_STR("type"),
                    td_hpa_target_types[has_first ? choice->first : choice->second]);
}

/* NULL: a value has the wrong type. */
static struct td_json *metric_source_from_v1(struct td_arena *arena, enum td_hpa_metric_part part,
                                             const struct td_hpa_source *source,
                                             const struct td_json *object)
{
    const struct td_schema_type *type =
        td_schema_member(td_hpa_metric_schema(part == TD_HPA_METRIC_STATUSES), source->member);
    struct td_json *made = td_json_new_object(arena);
    for (size_t i = 0; i < TD_HPA_V1_PLACES_MAX && source->places[i].spec.len > 0; i++) {
        const struct td_hpa_v1_place *place = &source->places[i];
        td_str outer = metric_outer(place, part);
        const struct td_json *given = fold_member(object, metric_v1_name(place, part));
        struct td_json *value = NULL;
        if (given) {
            value =
                fold_checked(arena,
                             td_schema_member(outer.len > 0 ? td_schema_member(type, outer) : type,
                                              place->inner),
                             given);
            if (!value) {
                return NULL;
            }
        } else if (metric_has_zero(place, part)) {
            value = td_json_new_string(arena, TD_STR("0"));
        }
        if (value) {
            td_json_set(arena, outer.len > 0 ? td_json_ensure_object(arena, made, outer) : made,
                        place->inner, value);
        }
    }
    if (part == TD_HPA_METRIC_SPECS) {
        metric_infer_type(arena, source, made);
    }
    return made;
}

static struct td_json *metric_from_v1(struct td_arena *arena, enum td_hpa_metric_part part,
                                      const struct td_json *item)
{
    const struct td_json *type = fold_member(item, TD_STR("type"));
    if ((item->type != TD_JSON_TYPE_OBJECT && item->type != TD_JSON_TYPE_NULL) ||
        (type && type->type != TD_JSON_TYPE_STRING)) {
        return NULL;
    }
    struct td_json *metric = metric_new(arena, type ? type->text : TD_STR_EMPTY);
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        const struct td_json *object = fold_member(item, td_hpa_sources[i]->member);
        struct td_json *source = NULL;
        if (object && object->type == TD_JSON_TYPE_OBJECT) {
            source = metric_source_from_v1(arena, part, td_hpa_sources[i], object);
        }
        if (source) {
            td_json_set(arena, metric, td_hpa_sources[i]->member, source);
        } else if (object) {
            return NULL;
        }
    }
    return metric;
}

struct td_json *td_hpa_metrics_from_text(struct td_arena *arena, enum td_hpa_metric_part part,
                                         td_str text)
{
    struct td_json *list;
    if (td_json_parse(arena, text, &annotation_options, &list, NULL) < 0 ||
        (list->type != TD_JSON_TYPE_ARRAY && list->type != TD_JSON_TYPE_NULL)) {
        return NULL;
    }
    struct td_json *made = td_json_new_array(arena);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        struct td_json *metric = metric_from_v1(arena, part, item);
        if (!metric) {
            return NULL;
        }
        td_json_append(made, metric);
    }
    return made;
}

struct td_json *td_hpa_conditions_from_text(struct td_arena *arena, td_str text)
{
    struct td_json *list = annotation_read(arena, TD_STR("status"), TD_STR("conditions"), text);
    return td_json_is(list, TD_JSON_TYPE_NULL) ? td_json_new_array(arena) : list;
}

struct td_json *td_hpa_behavior_from_text(struct td_arena *arena, td_str text)
{
    struct td_json *behavior = annotation_read(arena, TD_STR("spec"), TD_STR("behavior"), text);
    return td_json_is(behavior, TD_JSON_TYPE_OBJECT) && behavior->count > 0 ? behavior : NULL;
}
