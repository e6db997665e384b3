#include "api/hpa/hpa_validate.h"

#include "api/hpa/hpa_private.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/names.h"
#include "kube/quantity/quantity.h"

#define WINDOW_SECONDS_MAX 3600
#define PERIOD_SECONDS_MAX 1800

static td_str validate_text(const struct td_json *object, td_str key)
{
    return td_json_get_str(object, key, TD_STR_EMPTY);
}

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

/* Texts that become part of a URL path. */
static void validate_segment(struct td_field_errors *errors, const struct td_field_path *parent,
                             td_str member, const struct td_json *object,
                             const char *missing_detail)
{
    struct td_field_path path = td_field_child(parent, member);
    td_str name = validate_text(object, member);
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

static void validate_reference(struct td_field_errors *errors, const struct td_field_path *path,
                               const struct td_json *reference, bool allows_any_version,
                               bool allows_core)
{
    validate_segment(errors, path, TD_STR("kind"), reference, "");
    validate_segment(errors, path, TD_STR("name"), reference, "");
    td_str version = validate_text(reference, TD_STR("apiVersion"));
    const char *problem =
        allows_any_version ? NULL : td_hpa_version_problem(errors->arena, version, allows_core);
    if (problem) {
        struct td_field_path place = td_field_child(path, TD_STR("apiVersion"));
        td_field_invalid_str(errors, &place, version, problem);
    }
}

/* --- metrics --- */

static void validate_positive(struct td_field_errors *errors, const struct td_field_path *parent,
                              td_str member, const struct td_json *object)
{
    const struct td_json *node = td_hpa_member(object, member);
    struct td_quantity quantity;
    if (node && td_quantity_from_json(errors->arena, node, &quantity, NULL) == TD_OK &&
        td_quantity_sign(&quantity) <= 0) {
        struct td_field_path path = td_field_child(parent, member);
        td_field_invalid_str(errors, &path, td_quantity_text(errors->arena, &quantity),
                             "must be positive");
    }
}

static void validate_target(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *target)
{
    struct td_field_path type_path = td_field_child(path, TD_STR("type"));
    td_str type = validate_text(target, TD_STR("type"));
    if (type.len == 0) {
        td_field_required(errors, &type_path, "must specify a metric target type");
    }
    if (!td_str_equal(type, TD_STR("Utilization")) && !td_str_equal(type, TD_STR("Value")) &&
        !td_str_equal(type, TD_STR("AverageValue"))) {
        td_field_invalid_str(errors, &type_path, type,
                             "must be either Utilization, Value, or AverageValue");
    }
    validate_positive(errors, path, TD_STR("value"), target);
    validate_positive(errors, path, TD_STR("averageValue"), target);
    int64_t utilization = td_json_get_int64(target, TD_STR("averageUtilization"), 1);
    if (utilization < 1) {
        struct td_field_path place = td_field_child(path, TD_STR("averageUtilization"));
        td_field_invalid_int(errors, &place, utilization, "must be greater than 0");
    }
}

static void validate_identifier(struct td_field_errors *errors, const struct td_field_path *source,
                                const struct td_json *object)
{
    struct td_field_path path = td_field_child(source, TD_STR("metric"));
    validate_segment(errors, &path, TD_STR("name"), td_hpa_member(object, TD_STR("metric")),
                     "must specify a metric name");
}

/* Of two ways to say how much, exactly one: which is missing, and which is too much. */
struct target_choice {
    td_str first;
    td_str second;
    bool allows_both;
    td_str missing; /* the member that is named when neither is there */
    const char *missing_detail;
    td_str surplus;
    const char *surplus_detail;
};

static void validate_choice(struct td_field_errors *errors, const struct td_field_path *target_path,
                            const struct td_json *target, const struct target_choice *choice)
{
    bool has_first = td_hpa_member(target, choice->first) != NULL;
    bool has_second = td_hpa_member(target, choice->second) != NULL;
    if (!has_first && !has_second) {
        struct td_field_path path = td_field_child(target_path, choice->missing);
        td_field_required(errors, &path, choice->missing_detail);
    } else if (has_first && has_second && !choice->allows_both) {
        struct td_field_path path = td_field_child(target_path, choice->surplus);
        td_field_forbidden(errors, &path, choice->surplus_detail);
    }
}

static const struct target_choice resource_choice = {
    .first = TD_STR_INIT("averageUtilization"),
    .second = TD_STR_INIT("averageValue"),
    .missing = TD_STR_INIT("averageUtilization"),
    .missing_detail = "must set either a target raw value or a target utilization",
    .surplus = TD_STR_INIT("averageValue"),
    .surplus_detail = "may not set both a target raw value and a target utilization",
};
static const struct target_choice pods_choice = {
    .first = TD_STR_INIT("averageValue"),
    .second = TD_STR_INIT("averageValue"),
    .allows_both = true,
    .missing = TD_STR_INIT("averageValue"),
    .missing_detail = "must specify a positive target averageValue",
};
static const struct target_choice object_choice = {
    .first = TD_STR_INIT("value"),
    .second = TD_STR_INIT("averageValue"),
    .allows_both = true,
    .missing = TD_STR_INIT("averageValue"),
    .missing_detail = "must set either a target value or averageValue",
};
static const struct target_choice external_choice = {
    .first = TD_STR_INIT("value"),
    .second = TD_STR_INIT("averageValue"),
    .missing = TD_STR_INIT("averageValue"),
    .missing_detail = "must set either a target value for metric or a per-pod target",
    .surplus = TD_STR_INIT("value"),
    .surplus_detail = "may not set both a target value for metric and a per-pod target",
};

static bool validate_contains(td_str text, td_str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (td_str_starts_with(td_str_slice(text, i, text.len), part)) {
            return true;
        }
    }
    return false;
}

/* Bare names must be what a container can ask for; names with a prefix are Kubernetes' own or
 * extended resources, which must still be a qualified name as a quota, "requests.NAME". */
static void validate_resource_name(struct td_field_errors *errors, const struct td_field_path *path,
                                   td_str name)
{
    static const td_str standard[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory"),
                                      TD_STR_INIT("ephemeral-storage")};
    td_auto_buf lines;
    td_buf_init(&lines, TD_JSON_BYTES_MAX);
    (void)td_name_check_qualified(name, &lines); /* the lines say how many */
    td_field_invalid_lines(errors, path, name, td_buf_str(&lines));
    if (td_str_find(name, '/', 0) == name.len) {
        bool is_standard = td_str_starts_with(name, TD_STR("hugepages-"));
        for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++) {
            is_standard = is_standard || td_str_equal(name, standard[i]);
        }
        if (!is_standard) {
            td_field_invalid_str(errors, path, name, "must be a standard resource for containers");
        }
    } else if (!validate_contains(name, TD_STR("kubernetes.io/"))) {
        td_str as_quota = td_arena_format(errors->arena, "requests.%.*s", TD_STR_ARG(name));
        if (td_str_starts_with(name, TD_STR("requests.")) ||
            td_name_check_qualified(as_quota, NULL) > 0) {
            td_field_invalid_str(errors, path, name,
                                 "doesn't follow extended resource name standard");
        }
    }
}

static void validate_container_resource(struct td_field_errors *errors,
                                        const struct td_field_path *path,
                                        const struct td_json *source)
{
    struct td_field_path name_path = td_field_child(path, TD_STR("name"));
    td_str name = validate_text(source, TD_STR("name"));
    if (name.len == 0) {
        td_field_required(errors, &name_path, "must specify a resource name");
    } else {
        validate_resource_name(errors, &name_path, name);
    }
    struct td_field_path container_path = td_field_child(path, TD_STR("container"));
    td_str container = validate_text(source, TD_STR("container"));
    if (container.len == 0) {
        td_field_required(errors, &container_path, "must specify a container");
        return;
    }
    td_auto_buf lines;
    td_buf_init(&lines, TD_JSON_BYTES_MAX);
    (void)td_name_check_dns1123_label(container, &lines); /* the lines say how many */
    td_field_invalid_lines(errors, &container_path, container, td_buf_str(&lines));
}

enum validate_source {
    /* In the order in which upstream looks: of several, only the first is looked into. */
    SOURCE_OBJECT,
    SOURCE_EXTERNAL,
    SOURCE_PODS,
    SOURCE_RESOURCE,
    SOURCE_CONTAINER_RESOURCE,
    SOURCE_COUNT,
};

struct source_names {
    td_str type;
    td_str member;
    const struct target_choice *choice;
};

static const struct source_names source_names[SOURCE_COUNT] = {
    [SOURCE_OBJECT] = {TD_STR_INIT("Object"), TD_STR_INIT("object"), &object_choice},
    [SOURCE_EXTERNAL] = {TD_STR_INIT("External"), TD_STR_INIT("external"), &external_choice},
    [SOURCE_PODS] = {TD_STR_INIT("Pods"), TD_STR_INIT("pods"), &pods_choice},
    [SOURCE_RESOURCE] = {TD_STR_INIT("Resource"), TD_STR_INIT("resource"), &resource_choice},
    [SOURCE_CONTAINER_RESOURCE] = {TD_STR_INIT("ContainerResource"),
                                   TD_STR_INIT("containerResource"), &resource_choice},
};

static void validate_source(struct td_field_errors *errors, const struct td_field_path *path,
                            enum validate_source which, const struct td_json *source,
                            const struct td_hpa_rules_in_force *rules)
{
    if (which == SOURCE_OBJECT) {
        struct td_field_path described = td_field_child(path, TD_STR("describedObject"));
        validate_reference(errors, &described, td_hpa_member(source, TD_STR("describedObject")),
                           rules->allows_any_described_version, true);
    }
    if (which == SOURCE_CONTAINER_RESOURCE) {
        validate_container_resource(errors, path, source);
    } else if (which == SOURCE_RESOURCE) {
        struct td_field_path name = td_field_child(path, TD_STR("name"));
        if (validate_text(source, TD_STR("name")).len == 0) {
            td_field_required(errors, &name, "must specify a resource name");
        }
    } else {
        validate_identifier(errors, path, source);
    }
    struct td_field_path target_path = td_field_child(path, TD_STR("target"));
    const struct td_json *target = td_hpa_member(source, TD_STR("target"));
    validate_target(errors, &target_path, target);
    validate_choice(errors, &target_path, target, source_names[which].choice);
}

static void validate_metric_type(struct td_field_errors *errors, const struct td_field_path *path,
                                 td_str type, enum validate_source expected)
{
    static const td_str supported[] = {TD_STR_INIT("ContainerResource"), TD_STR_INIT("External"),
                                       TD_STR_INIT("Object"), TD_STR_INIT("Pods"),
                                       TD_STR_INIT("Resource")};
    struct td_field_path type_path = td_field_child(path, TD_STR("type"));
    if (type.len == 0) {
        td_field_required(errors, &type_path, "must specify a metric source type");
    }
    if (expected == SOURCE_COUNT) {
        td_field_unsupported(errors, &type_path, type, supported,
                             sizeof(supported) / sizeof(supported[0]));
    }
}

static enum validate_source validate_metric(struct td_field_errors *errors,
                                            const struct td_field_path *path,
                                            const struct td_json *metric,
                                            const struct td_hpa_rules_in_force *rules)
{
    td_str type = validate_text(metric, TD_STR("type"));
    size_t expected = 0;
    while (expected < SOURCE_COUNT && !td_str_equal(type, source_names[expected].type)) {
        expected++;
    }
    validate_metric_type(errors, path, type, (enum validate_source)expected);
    size_t present = 0;
    for (size_t i = 0; i < SOURCE_COUNT; i++) {
        const struct td_json *source = td_hpa_member(metric, source_names[i].member);
        struct td_field_path place = td_field_child(path, source_names[i].member);
        present += source != NULL;
        if (source && present == 1) {
            validate_source(errors, &place, (enum validate_source)i, source, rules);
        } else if (!source && i == expected) {
            td_field_required(errors, &place,
                              "must populate information for the given metric source");
        }
    }
    for (size_t i = 0; i < SOURCE_COUNT && present > 1; i++) {
        struct td_field_path place = td_field_child(path, source_names[i].member);
        if (i != expected && td_hpa_member(metric, source_names[i].member)) {
            td_field_forbidden(errors, &place, "must populate the given metric source only");
        }
    }
    return (enum validate_source)expected;
}

static void validate_metrics(struct td_field_errors *errors, const struct td_field_path *spec_path,
                             const struct td_json *spec, const struct td_hpa_rules_in_force *rules)
{
    struct td_field_path path = td_field_child(spec_path, TD_STR("metrics"));
    const struct td_json *metrics = td_hpa_member(spec, TD_STR("metrics"));
    bool can_wake = false; /* from zero pods, only a metric that needs no pod can */
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(metrics); item;
         item = item->next, index++) {
        struct td_field_path place = td_field_item(&path, index);
        enum validate_source which = validate_metric(errors, &place, item, rules);
        can_wake = can_wake || which == SOURCE_OBJECT || which == SOURCE_EXTERNAL;
    }
    if (td_json_get_int64(spec, TD_STR("minReplicas"), 1) == 0 && !can_wake) {
        td_field_forbidden(errors, &path,
                           "must specify at least one Object or External metric to support "
                           "scaling to zero replicas");
    }
}

/* --- behavior --- */

static void validate_policy(struct td_field_errors *errors, const struct td_field_path *path,
                            const struct td_json *policy)
{
    static const td_str supported[] = {TD_STR_INIT("Percent"), TD_STR_INIT("Pods")};
    td_str type = validate_text(policy, TD_STR("type"));
    if (!td_str_equal(type, supported[0]) && !td_str_equal(type, supported[1])) {
        struct td_field_path place = td_field_child(path, TD_STR("type"));
        td_field_unsupported(errors, &place, type, supported, 2);
    }
    int64_t value = td_json_get_int64(policy, TD_STR("value"), 0);
    if (value <= 0) {
        struct td_field_path place = td_field_child(path, TD_STR("value"));
        td_field_invalid_int(errors, &place, value, "must be greater than zero");
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
        struct td_field_path place = td_field_item(&path, index);
        validate_policy(errors, &place, item);
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
    const struct td_json *select = td_hpa_member(rules, TD_STR("selectPolicy"));
    bool is_known = !select;
    for (size_t i = 0; i < sizeof(supported) / sizeof(supported[0]) && !is_known; i++) {
        is_known = td_str_equal(select->text, supported[i]);
    }
    if (!is_known) {
        struct td_field_path place = td_field_child(path, TD_STR("selectPolicy"));
        td_field_unsupported(errors, &place, select->text, supported,
                             sizeof(supported) / sizeof(supported[0]));
    }
    validate_policies(errors, path, td_hpa_member(rules, TD_STR("policies")));
    const struct td_json *tolerance = td_hpa_member(rules, TD_STR("tolerance"));
    struct td_quantity quantity;
    if (tolerance && td_quantity_from_json(errors->arena, tolerance, &quantity, NULL) == TD_OK &&
        td_quantity_sign(&quantity) < 0) {
        struct td_field_path place = td_field_child(path, TD_STR("tolerance"));
        td_field_invalid_str(errors, &place, td_quantity_text(errors->arena, &quantity),
                             "must be greater than or equal to 0");
    }
}

/* --- the rest --- */

static void validate_replicas(struct td_field_errors *errors, const struct td_field_path *path,
                              const struct td_json *spec, int64_t bound)
{
    int64_t min = td_json_get_int64(spec, TD_STR("minReplicas"), 1);
    int64_t max = td_json_get_int64(spec, TD_STR("maxReplicas"), 0);
    bool has_min = td_hpa_member(spec, TD_STR("minReplicas")) != NULL;
    if (has_min && min < bound) {
        struct td_field_path place = td_field_child(path, TD_STR("minReplicas"));
        td_field_invalid_int(errors, &place, min,
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
    const struct td_json *strategy = td_hpa_member(spec, TD_STR("selectionStrategy"));
    /* The plural is the prototype's spelling. */
    if (strategy && !td_str_equal(strategy->text, supported[0]) &&
        !td_str_equal(strategy->text, supported[1]) &&
        !td_str_equal(strategy->text, TD_STR("OwnerReferences"))) {
        struct td_field_path place = td_field_child(path, TD_STR("selectionStrategy"));
        td_field_unsupported(errors, &place, strategy->text, supported, 2);
    }
}

void td_hpa_validate_spec(struct td_field_errors *errors, const struct td_json *spec,
                          const struct td_hpa_rules_in_force *rules)
{
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    validate_replicas(errors, &path, spec, rules->min_replicas_bound);
    struct td_field_path target = td_field_child(&path, TD_STR("scaleTargetRef"));
    validate_reference(errors, &target, td_hpa_member(spec, TD_STR("scaleTargetRef")),
                       rules->allows_any_target_version, rules->allows_core_target);
    validate_metrics(errors, &path, spec, rules);
    const struct td_json *behavior = td_hpa_member(spec, TD_STR("behavior"));
    struct td_field_path behavior_path = td_field_child(&path, TD_STR("behavior"));
    struct td_field_path up = td_field_child(&behavior_path, TD_STR("scaleUp"));
    validate_rules(errors, &up, td_hpa_member(behavior, TD_STR("scaleUp")));
    struct td_field_path down = td_field_child(&behavior_path, TD_STR("scaleDown"));
    validate_rules(errors, &down, td_hpa_member(behavior, TD_STR("scaleDown")));
    validate_selection(errors, &path, spec);
}

void td_hpa_validate_status(struct td_field_errors *errors, const struct td_json *status)
{
    static const td_str members[] = {TD_STR_INIT("currentReplicas"),
                                     TD_STR_INIT("desiredReplicas")};
    struct td_field_path path = td_field_child(NULL, TD_STR("status"));
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        int64_t count = td_json_get_int64(status, members[i], 0);
        if (count < 0) {
            struct td_field_path place = td_field_child(&path, members[i]);
            td_field_invalid_int(errors, &place, count, "must be greater than or equal to 0");
        }
    }
}
