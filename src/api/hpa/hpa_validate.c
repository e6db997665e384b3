/*
 * The rules of a spec and a status, part by part, in upstream's words. What is particular to a
 * metric source is in the row of that source; which sources may stand in a metric, and what all of
 * them have to say of their target, is here.
 */
#include "api/hpa/hpa_validate.h"

#include "api/hpa/hpa_private.h"
#include "api/hpa/hpa_source.h"
#include "base/error.h"
#include "kube/quantity/quantity.h"

#define WINDOW_SECONDS_MAX 3600
#define PERIOD_SECONDS_MAX 1800

const char *td_hpa_version_problem(struct td_arena *arena, td_str api_version, bool allows_core)
{
    size_t slash = td_str_find(api_version, '/', 0);
    if (slash + 1 < api_version.len && td_str_find(api_version, '/', slash + 1) < api_version.len) {
        return td_arena_format(arena, "unexpected GroupVersion string: %.*s",
                               TD_STR_ARG(api_version))
            .ptr;
    }
    bool has_group = slash > 0 && slash < api_version.len;
    return has_group || allows_core ? NULL : "apiVersion must specify API group";
}

void td_hpa_validate_segment(struct td_field_errors *errors, const struct td_field_path *parent,
                             td_str member, const struct td_json *object,
                             const char *missing_detail)
{
    struct td_field_path path = td_field_child(parent, member);
    td_str name = td_kind_text(object, member);
    if (name.len == 0) {
        td_field_required(errors, &path, missing_detail);
    } else if (td_str_equal(name, TD_STR("."))) {
        td_field_invalid_str(errors, &path, name, "may not be '.'");
    } else if (td_str_equal(name, TD_STR(".."))) {
        td_field_invalid_str(errors, &path, name, "may not be '..'");
    } else {
        if (td_str_find(name, '/', 0) < name.len) {
            td_field_invalid_str(errors, &path, name, "may not contain '/'");
        }
        if (td_str_find(name, '%', 0) < name.len) {
            td_field_invalid_str(errors, &path, name, "may not contain '%'");
        }
    }
}

void td_hpa_validate_reference(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *reference, bool allows_any_version,
                               bool allows_core)
{
    td_hpa_validate_segment(errors, path, TD_STR("kind"), reference, "");
    td_hpa_validate_segment(errors, path, TD_STR("name"), reference, "");
    td_str version = td_json_text(reference, "apiVersion");
    const char *problem =
        allows_any_version ? NULL : td_hpa_version_problem(errors->arena, version, allows_core);
    if (problem) {
        td_field_invalid_str(errors, TD_FIELD(path, "apiVersion"), version, problem);
    }
}

/* --- metrics --- */

static void validate_positive(struct td_field_errors *errors, const struct td_field_path *parent,
                              td_str member, const struct td_json *object)
{
    const struct td_json *node = td_kind_member(object, member);
    struct td_quantity quantity;
    if (node && td_quantity_from_json(errors->arena, node, &quantity, NULL) == TD_OK &&
        td_quantity_sign(&quantity) <= 0) {
        td_field_invalid_str(errors, TD_FIELD_AT(parent, member),
                             td_quantity_text(errors->arena, &quantity), "must be positive");
    }
}

static void validate_target(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *target)
{
    struct td_field_path type_path = td_field_child(path, TD_STR("type"));
    td_str type = td_json_text(target, "type");
    if (type.len == 0) {
        td_field_required(errors, &type_path, "must specify a metric target type");
    }
    bool is_known = false;
    for (size_t i = 0; i < TD_HPA_TARGET_UNKNOWN; i++) {
        is_known = is_known || td_str_equal(type, td_hpa_target_types[i]);
    }
    if (!is_known) {
        td_field_invalid_str(errors, &type_path, type,
                             "must be either Utilization, Value, or AverageValue");
    }
    validate_positive(errors, path, TD_STR("value"), target);
    validate_positive(errors, path, TD_STR("averageValue"), target);
    int64_t utilization = td_json_get_int64(target, TD_STR("averageUtilization"), 1);
    if (utilization < 1) {
        td_field_invalid_int(errors, TD_FIELD(path, "averageUtilization"), utilization,
                             "must be greater than 0");
    }
}

static void validate_choice(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *target, const struct td_hpa_target_choice *choice)
{
    bool has_first = td_kind_member(target, td_hpa_target_members[choice->first]) != NULL;
    bool has_second = td_kind_member(target, td_hpa_target_members[choice->second]) != NULL;
    if (!has_first && !has_second) {
        struct td_field_path place = td_field_child(path, td_hpa_target_members[choice->missing]);
        td_field_required(errors, &place, choice->missing_detail);
    } else if (has_first && has_second && choice->surplus_detail) {
        struct td_field_path place = td_field_child(path, td_hpa_target_members[choice->surplus]);
        td_field_forbidden(errors, &place, choice->surplus_detail);
    }
}

static void validate_source(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_hpa_source *source, const struct td_json *object,
                            const struct td_hpa_rules_in_force *rules)
{
    source->validate(errors, path, object, rules);
    struct td_field_path target_path = td_field_child(path, TD_STR("target"));
    const struct td_json *target = td_json_member(object, "target");
    validate_target(errors, &target_path, target);
    validate_choice(errors, &target_path, target, &source->choice);
}

static void validate_metric_type(struct td_field_errors *errors, const struct td_field_path *path,
                                 td_str type, bool is_known)
{
    td_str supported[TD_HPA_METRIC_UNKNOWN];
    struct td_field_path type_path = td_field_child(path, TD_STR("type"));
    if (type.len == 0) {
        td_field_required(errors, &type_path, "must specify a metric source type");
    }
    if (!is_known) {
        td_hpa_source_types(supported);
        td_field_unsupported(errors, &type_path, type, supported, TD_HPA_METRIC_UNKNOWN);
    }
}

static enum td_hpa_metric_type validate_metric(struct td_field_errors *errors,
                                               const struct td_field_path *path,
                                               const struct td_json *metric,
                                               const struct td_hpa_rules_in_force *rules)
{
    td_str type = td_json_text(metric, "type");
    size_t expected = 0;
    while (expected < TD_HPA_METRIC_UNKNOWN &&
           !td_str_equal(type, td_hpa_sources[expected]->type)) {
        expected++;
    }
    validate_metric_type(errors, path, type, expected < TD_HPA_METRIC_UNKNOWN);
    size_t present = 0;
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN; i++) {
        const struct td_json *source = td_kind_member(metric, td_hpa_sources[i]->member);
        struct td_field_path place = td_field_child(path, td_hpa_sources[i]->member);
        present += source != NULL;
        if (source && present == 1) {
            validate_source(errors, &place, td_hpa_sources[i], source, rules);
        } else if (!source && i == expected) {
            td_field_required(errors, &place,
                              "must populate information for the given metric source");
        }
    }
    for (size_t i = 0; i < TD_HPA_METRIC_UNKNOWN && present > 1; i++) {
        struct td_field_path place = td_field_child(path, td_hpa_sources[i]->member);
        if (i != expected && td_kind_member(metric, td_hpa_sources[i]->member)) {
            td_field_forbidden(errors, &place, "must populate the given metric source only");
        }
    }
    return (enum td_hpa_metric_type)expected;
}

static void validate_metrics(struct td_field_errors *errors, const struct td_field_path *spec_path,
                             const struct td_json *spec, const struct td_hpa_rules_in_force *rules)
{
    struct td_field_path path = td_field_child(spec_path, TD_STR("metrics"));
    const struct td_json *metrics = td_json_member(spec, "metrics");
    bool can_wake = false; /* from zero pods, only a metric that needs no pod can */
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(metrics); item;
         item = item->next, index++) {
        enum td_hpa_metric_type type =
            validate_metric(errors, TD_FIELD_ITEM(&path, index), item, rules);
        can_wake = can_wake || (type != TD_HPA_METRIC_UNKNOWN && !td_hpa_sources[type]->is_of_pods);
    }
    if (td_json_get_int64(spec, TD_STR("minReplicas"), 1) == 0 && !can_wake) {
        td_field_forbidden(errors, &path,
                           "must specify at least one Object or External metric to support "
                           "scaling to zero replicas");
    }
}

/* --- behavior --- */

static void validate_one_of(struct td_field_errors *errors, const struct td_field_path *parent,
                            td_str member, td_str value, const td_str *supported, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (td_str_equal(value, supported[i])) {
            return;
        }
    }
    td_field_unsupported(errors, TD_FIELD_AT(parent, member), value, supported, count);
}

static void validate_policy(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *policy)
{
    static const td_str supported[] = {TD_STR_INIT("Percent"), TD_STR_INIT("Pods")};
    validate_one_of(errors, path, TD_STR("type"), td_json_text(policy, "type"), supported,
                    TD_COUNT(supported));
    int64_t value = td_json_get_int64(policy, TD_STR("value"), 0);
    if (value <= 0) {
        td_field_invalid_int(errors, TD_FIELD(path, "value"), value, "must be greater than zero");
    }
    struct td_field_path period_path = td_field_child(path, TD_STR("periodSeconds"));
    int64_t period = td_json_get_int64(policy, TD_STR("periodSeconds"), 0);
    if (period <= 0) {
        td_field_invalid_int(errors, &period_path, period, "must be greater than zero");
    } else if (period > PERIOD_SECONDS_MAX) {
        td_field_invalid_int(errors, &period_path, period, "must be less than or equal to 1800");
    }
}

static void validate_policies(struct td_field_errors *errors,
                              const struct td_field_path *rules_path,
                              const struct td_json *policies)
{
    struct td_field_path path = td_field_child(rules_path, TD_STR("policies"));
    if (!policies || policies->count == 0) {
        td_field_required(errors, &path, "must specify at least one Policy");
        return;
    }
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(policies); item;
         item = item->next, index++) {
        validate_policy(errors, TD_FIELD_ITEM(&path, index), item);
    }
}

static void validate_window(struct td_field_errors *errors, const struct td_field_path *rules_path,
                            const struct td_json *rules)
{
    struct td_field_path path = td_field_child(rules_path, TD_STR("stabilizationWindowSeconds"));
    int64_t window = td_json_get_int64(rules, TD_STR("stabilizationWindowSeconds"), 0);
    if (window < 0) {
        td_field_invalid_int(errors, &path, window, "must be greater than or equal to zero");
    } else if (window > WINDOW_SECONDS_MAX) {
        td_field_invalid_int(errors, &path, window, "must be less than or equal to 3600");
    }
}

static void validate_rules(struct td_field_errors *errors, const struct td_field_path *path,
                           const struct td_json *rules)
{
    static const td_str supported[] = {TD_STR_INIT("Disabled"), TD_STR_INIT("Max"),
                                       TD_STR_INIT("Min")};
    if (!rules) {
        return;
    }
    validate_window(errors, path, rules);
    const struct td_json *select = td_json_member(rules, "selectPolicy");
    if (select) {
        validate_one_of(errors, path, TD_STR("selectPolicy"), select->text, supported,
                        TD_COUNT(supported));
    }
    validate_policies(errors, path, td_json_member(rules, "policies"));
    const struct td_json *tolerance = td_json_member(rules, "tolerance");
    struct td_quantity quantity;
    if (tolerance && td_quantity_from_json(errors->arena, tolerance, &quantity, NULL) == TD_OK &&
        td_quantity_sign(&quantity) < 0) {
        td_field_invalid_str(errors, TD_FIELD(path, "tolerance"),
                             td_quantity_text(errors->arena, &quantity),
                             "must be greater than or equal to 0");
    }
}

/* --- the rest --- */

static void validate_replicas(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *spec, int64_t bound)
{
    int64_t min = td_json_get_int64(spec, TD_STR("minReplicas"), 1);
    int64_t max = td_json_get_int64(spec, TD_STR("maxReplicas"), 0);
    bool has_min = td_json_member(spec, "minReplicas") != NULL;
    if (has_min && min < bound) {
        td_field_invalid_int(errors, TD_FIELD(path, "minReplicas"), min,
                             bound == 0 ? "must be greater than or equal to 0"
                                        : "must be greater than or equal to 1");
    }
    struct td_field_path max_path = td_field_child(path, TD_STR("maxReplicas"));
    if (max == 0) {
        td_field_required(errors, &max_path, "must be set and greater than 0");
    } else if (max < 0) {
        td_field_invalid_int(errors, &max_path, max, "must be greater than or equal to 1");
    }
    if (has_min && max < min) {
        td_field_invalid_int(errors, &max_path, max,
                             "must be greater than or equal to `minReplicas`");
    }
}

static void validate_selection(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *spec)
{
    static const td_str supported[] = {TD_STR_INIT("LabelSelector"), TD_STR_INIT("OwnerReference")};
    const struct td_json *strategy = td_json_member(spec, "selectionStrategy");
    /* The plural is the prototype's spelling. */
    if (strategy && !td_str_equal(strategy->text, TD_STR("OwnerReferences"))) {
        validate_one_of(errors, path, TD_STR("selectionStrategy"), strategy->text, supported,
                        TD_COUNT(supported));
    }
}

void td_hpa_validate_spec(struct td_field_errors *errors, const struct td_json *spec,
                          const struct td_hpa_rules_in_force *rules)
{
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    validate_replicas(errors, &path, spec, rules->min_replicas_bound);
    td_hpa_validate_reference(errors, TD_FIELD(&path, "scaleTargetRef"),
                              td_json_member(spec, "scaleTargetRef"),
                              rules->allows_any_target_version, rules->allows_core_target);
    validate_metrics(errors, &path, spec, rules);
    const struct td_json *behavior = td_json_member(spec, "behavior");
    struct td_field_path behavior_path = td_field_child(&path, TD_STR("behavior"));
    validate_rules(errors, TD_FIELD(&behavior_path, "scaleUp"),
                   td_json_member(behavior, "scaleUp"));
    validate_rules(errors, TD_FIELD(&behavior_path, "scaleDown"),
                   td_json_member(behavior, "scaleDown"));
    validate_selection(errors, &path, spec);
}

void td_hpa_validate_status(struct td_field_errors *errors, const struct td_json *status)
{
    static const td_str members[] = {TD_STR_INIT("currentReplicas"),
                                     TD_STR_INIT("desiredReplicas")};
    for (size_t i = 0; i < TD_COUNT(members); i++) {
        int64_t count = td_json_get_int64(status, members[i], 0);
        if (count < 0) {
            td_field_invalid_int(errors, TD_FIELD_AT(TD_FIELD(NULL, "status"), members[i]), count,
                                 "must be greater than or equal to 0");
        }
    }
}
