/* Budgets, leases and priorities. */
#include "local/kinds/kinds_private.h"

#define PRIORITY_USER_MAX 1000000000

static void budget_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str policies[] = {TD_STR_INIT("AlwaysAllow"), TD_STR_INIT("IfHealthyBudget")};
    static const td_str counts[] = {TD_STR_INIT("disruptionsAllowed"),
                                    TD_STR_INIT("currentHealthy"), TD_STR_INIT("desiredHealthy"),
                                    TD_STR_INIT("expectedPods")};
    if (write->operation == TD_WRITE_STATUS) {
        for (size_t i = 0; i < TD_COUNT(counts); i++) {
            td_kind_check_not_negative(errors, TD_FIELD(NULL, "status"),
                                       td_kind_member(write->object, TD_STR("status")), counts[i]);
        }
        return;
    }
    const struct td_json *spec = td_kind_spec(write->object);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    if (td_kind_member(spec, TD_STR("minAvailable")) &&
        td_kind_member(spec, TD_STR("maxUnavailable"))) {
        td_kind_invalid_tree(errors, &path, spec,
                             "minAvailable and maxUnavailable cannot be both set");
    }
    td_kind_check_share(errors, &path, spec, TD_STR("minAvailable"), true);
    td_kind_check_share(errors, &path, spec, TD_STR("maxUnavailable"), true);
    td_kind_check_selector(errors, TD_FIELD(&path, "selector"),
                           td_kind_member(spec, TD_STR("selector")));
    if (td_kind_member(spec, TD_STR("unhealthyPodEvictionPolicy"))) {
        td_kind_check_one_of(errors, &path, spec, TD_STR("unhealthyPodEvictionPolicy"), policies,
                             2);
    }
}

static void lease_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str strategies[] = {TD_STR_INIT("OldestEmulationVersion")};
    const struct td_json *spec = td_kind_spec(write->object);
    struct td_field_path path = td_field_child(NULL, TD_STR("spec"));
    int64_t seconds = td_json_get_int64(spec, TD_STR("leaseDurationSeconds"), 1);
    if (seconds <= 0) {
        td_field_invalid_int(errors, TD_FIELD(&path, "leaseDurationSeconds"), seconds,
                             "must be greater than 0");
    }
    td_kind_check_not_negative(errors, &path, spec, TD_STR("leaseTransitions"));
    td_str strategy = td_json_text(spec, "strategy");
    if (strategy.len > 0 && td_str_find(strategy, '/', 0) == strategy.len) {
        td_kind_check_one_of(errors, &path, spec, TD_STR("strategy"), strategies, 1);
    }
    if (td_json_text(spec, "preferredHolder").len > 0 && strategy.len == 0) {
        td_field_forbidden(errors, TD_FIELD(&path, "preferredHolder"),
                           "may only be specified if `strategy` is defined");
    }
}

static void priority_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str policies[] = {TD_STR_INIT("PreemptLowerPriority"), TD_STR_INIT("Never")};
    struct td_field_path value_path = td_field_child(NULL, TD_STR("value"));
    int64_t value = td_json_get_int64(write->object, TD_STR("value"), 0);
    td_str name = td_json_text(td_kind_metadata(write->object), "name");
    bool is_system = td_str_starts_with(name, TD_STR("system-"));
    if (write->old) {
        if (value != td_json_get_int64(write->old, TD_STR("value"), 0)) {
            td_field_forbidden(errors, &value_path, "may not be changed in an update.");
        }
        td_kind_check_immutable(errors, TD_FIELD(NULL, "preemptionPolicy"),
                                td_json_get(write->object, TD_STR("preemptionPolicy")),
                                td_json_get(write->old, TD_STR("preemptionPolicy")));
        return;
    }
    if (!is_system && value > PRIORITY_USER_MAX) {
        td_field_forbidden(errors, &value_path,
                           "maximum allowed value of a user defined priority is 1000000000");
    }
    td_kind_check_one_of(errors, NULL, write->object, TD_STR("preemptionPolicy"), policies, 2);
}

const struct td_kind_rules td_kind_policy_rules[] = {
    {TD_KIND("policy", "PodDisruptionBudget", budget_validate)},
    {TD_KIND("coordination.k8s.io", "Lease", lease_validate)},
    {TD_KIND("scheduling.k8s.io", "PriorityClass", priority_validate)},
    TD_KIND_END,
};
