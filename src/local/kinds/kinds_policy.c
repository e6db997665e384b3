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
        struct td_field_path status = td_field_child(NULL, TD_STR("status"));
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            td_kind_check_not_negative(errors, &status,
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
    struct td_field_path selector = td_field_child(&path, TD_STR("selector"));
    td_kind_check_selector(errors, &selector, td_kind_member(spec, TD_STR("selector")));
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
        struct td_field_path place = td_field_child(&path, TD_STR("leaseDurationSeconds"));
        td_field_invalid_int(errors, &place, seconds, "must be greater than 0");
    }
    td_kind_check_not_negative(errors, &path, spec, TD_STR("leaseTransitions"));
    td_str strategy = td_kind_text(spec, TD_STR("strategy"));
    if (strategy.len > 0 && td_str_find(strategy, '/', 0) == strategy.len) {
        td_kind_check_one_of(errors, &path, spec, TD_STR("strategy"), strategies, 1);
    }
    if (td_kind_text(spec, TD_STR("preferredHolder")).len > 0 && strategy.len == 0) {
        struct td_field_path place = td_field_child(&path, TD_STR("preferredHolder"));
        td_field_forbidden(errors, &place, "may only be specified if `strategy` is defined");
    }
}

static void priority_validate(const struct td_kind_write *write, struct td_field_errors *errors)
{
    static const td_str policies[] = {TD_STR_INIT("PreemptLowerPriority"), TD_STR_INIT("Never")};
    struct td_field_path value_path = td_field_child(NULL, TD_STR("value"));
    int64_t value = td_json_get_int64(write->object, TD_STR("value"), 0);
    td_str name = td_kind_text(td_kind_metadata(write->object), TD_STR("name"));
    bool is_system = td_str_starts_with(name, TD_STR("system-"));
    if (write->old) {
        if (value != td_json_get_int64(write->old, TD_STR("value"), 0)) {
            td_field_forbidden(errors, &value_path, "may not be changed in an update.");
        }
        struct td_field_path path = td_field_child(NULL, TD_STR("preemptionPolicy"));
        td_kind_check_immutable(errors, &path,
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
    {.group = TD_STR_INIT("policy"),
     .kind = TD_STR_INIT("PodDisruptionBudget"),
     .validate = budget_validate},
    {.group = TD_STR_INIT("coordination.k8s.io"),
     .kind = TD_STR_INIT("Lease"),
     .validate = lease_validate},
    {.group = TD_STR_INIT("scheduling.k8s.io"),
     .kind = TD_STR_INIT("PriorityClass"),
     .validate = priority_validate},
};
const size_t td_kind_policy_rule_count =
    sizeof(td_kind_policy_rules) / sizeof(td_kind_policy_rules[0]);
