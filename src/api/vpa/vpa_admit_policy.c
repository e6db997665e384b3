/* Admission's part on spec.resourcePolicy: upstream's rules for each container policy, then the
 * pod-level proposal's for podPolicies. */
#include <stdlib.h>

#include "api/object_check.h"
#include "api/vpa/vpa_private.h"
#include "base/error.h"
#include "base/limits.h"

enum { POLICY_CPU, POLICY_MEMORY, POLICY_RESOURCES };
static const td_str policy_resources[POLICY_RESOURCES] = {TD_STR_INIT("cpu"),
                                                          TD_STR_INIT("memory")};

static size_t policy_resource(td_str name)
{
    size_t i = 0;
    while (i < POLICY_RESOURCES && !td_str_equal(name, policy_resources[i])) {
        i++;
    }
    return i;
}

/* --- container policies --- */

static void check_bounds(struct td_vpa_check *check, const struct td_container_policy *policy,
                         const struct td_field_path *path)
{
    struct td_field_path max_path = td_field_child(path, TD_STR("maxAllowed"));
    for (size_t i = 0; i < policy->min_allowed.count && !td_vpa_check_is_full(check); i++) {
        const struct td_resource_amount *min = &policy->min_allowed.items[i];
        const struct td_quantity *max = td_resource_list_get(&policy->max_allowed, min->name);
        struct td_field_path min_key = td_kind_key(TD_FIELD(path, "minAllowed"), min->name);
        struct td_field_path max_key = td_kind_key(&max_path, min->name);
        td_vpa_check_resolution(check, &min_key, min->name, &min->quantity);
        if (max && td_quantity_compare(max, &min->quantity) < 0) {
            td_str lowest = td_quantity_text(check->arena, &min->quantity);
            td_str detail =
                td_arena_format(check->arena, "max resource for %.*s is lower than min of \"%.*s\"",
                                TD_STR_ARG(min->name), TD_STR_ARG(lowest));
            td_field_invalid_str(check->errors, &max_key, td_quantity_text(check->arena, max),
                                 detail.ptr);
        }
    }
    for (size_t i = 0; i < policy->max_allowed.count && !td_vpa_check_is_full(check); i++) {
        const struct td_resource_amount *max = &policy->max_allowed.items[i];
        struct td_field_path max_key = td_kind_key(&max_path, max->name);
        td_vpa_check_resolution(check, &max_key, max->name, &max->quantity);
    }
}

static void check_controlled(struct td_vpa_check *check, const struct td_container_policy *policy,
                             const struct td_field_path *path)
{
    for (size_t i = 0; i < policy->controlled_resource_count && !td_vpa_check_is_full(check); i++) {
        td_str name = policy->controlled_resources[i];
        struct td_field_path item = td_field_item(TD_FIELD(path, "controlledResources"), i);
        if (policy_resource(name) < POLICY_RESOURCES) {
            continue;
        }
        if (!td_json_get(check->old_resources, name)) {
            td_field_unsupported(check->errors, &item, name, policy_resources, POLICY_RESOURCES);
        } else if (check->warnings->count < TD_STRICT_PROBLEMS_MAX) {
            td_str place = td_field_path_text(check->arena, &item);
            td_str text = td_arena_format(
                check->arena,
                "%.*s: unsupported value \"%.*s\" is allowed only because it is present in the "
                "existing VPA object; supported values: \"cpu\", \"memory\"",
                TD_STR_ARG(place), TD_STR_ARG(name));
            td_json_append(check->warnings, td_json_new_string(check->arena, text));
        }
    }
}

/* One of the fields behind the gate PerVPAConfig; false when it is not allowed at all. */
static bool check_config(struct td_vpa_check *check, const struct td_field_path *path)
{
    if (!check->allows_config) {
        td_field_forbidden(check->errors, path,
                           "not supported when feature flag PerVPAConfig is disabled");
    }
    return check->allows_config;
}

static void check_oom(struct td_vpa_check *check, const struct td_container_policy *policy,
                      const struct td_field_path *path)
{
    struct td_field_path ratio_path = td_field_child(path, TD_STR("oomBumpUpRatio"));
    struct td_field_path bump_path = td_field_child(path, TD_STR("oomMinBumpUp"));
    if (policy->has_oom_bump_up_ratio && check_config(check, &ratio_path)) {
        double ratio = (double)td_quantity_milli(&policy->oom_bump_up_ratio) / 1000.0;
        if (ratio < 1.0) {
            td_field_error_add(check->errors, &ratio_path, TD_FIELD_INVALID,
                               td_field_double_text(check->arena, ratio),
                               TD_STR("must be greater than or equal to 1.0"));
        }
    }
    if (policy->has_oom_min_bump_up && check_config(check, &bump_path)) {
        int64_t bump = td_quantity_value(&policy->oom_min_bump_up);
        if (bump < 0) {
            td_field_invalid_int(check->errors, &bump_path, bump,
                                 "must be greater than or equal to 0");
        }
    }
}

static void check_intervals(struct td_vpa_check *check, const struct td_container_policy *policy,
                            const struct td_field_path *path)
{
    static const char rule[] = "must be greater than or equal to 1";
    struct td_field_path seconds = td_field_child(path, TD_STR("memoryAggregationIntervalSeconds"));
    struct td_field_path count = td_field_child(path, TD_STR("memoryAggregationIntervalCount"));
    if (policy->has_memory_interval && check_config(check, &seconds) &&
        policy->memory_interval_seconds < 1) {
        td_field_invalid_int(check->errors, &seconds, policy->memory_interval_seconds, rule);
    }
    if (policy->has_memory_interval_count && check_config(check, &count) &&
        policy->memory_interval_count < 1) {
        td_field_invalid_int(check->errors, &count, policy->memory_interval_count, rule);
    }
}

static void check_container(struct td_vpa_check *check, const struct td_json *tree,
                            const struct td_container_policy *policy,
                            const struct td_field_path *path)
{
    static const td_str modes[] = {TD_STR_INIT("Auto"), TD_STR_INIT("Off")};
    const struct td_json *mode = td_json_member(tree, "mode");
    td_str values = td_json_text(tree, "controlledValues");
    if (policy->container_name.len == 0) {
        td_field_required(check->errors, TD_FIELD(path, "containerName"), "");
    }
    if (mode && !td_str_equal(mode->text, modes[0]) && !td_str_equal(mode->text, modes[1])) {
        td_field_unsupported(check->errors, TD_FIELD(path, "mode"), mode->text, modes, 2);
    }
    check_bounds(check, policy, path);
    if (policy->is_off && td_str_equal(values, TD_STR("RequestsAndLimits"))) {
        td_field_forbidden(
            check->errors, TD_FIELD(path, "controlledValues"),
            "controlledValues shouldn't be specified if container scaling mode is off");
    }
    check_controlled(check, policy, path);
    check_oom(check, policy, path);
    check_intervals(check, policy, path);
    td_vpa_check_boost(check, &policy->startup_boost, TD_FIELD(path, "startupBoost"));
}

/* --- podPolicies --- */

struct td_json *td_vpa_check_pod_quantities(struct td_vpa_check *check,
                                            const struct td_json *policies)
{
    struct td_json *made = td_json_copy(check->arena, policies, false);
    static const td_str lists[] = {TD_STR_INIT("minAllowed"), TD_STR_INIT("maxAllowed")};
    static const struct td_field_path pod_path = {
        .name = TD_STR_INIT("spec.resourcePolicy.podPolicies")};
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        const struct td_json *list = td_json_get(policies, lists[i]);
        struct td_json *kept = td_json_new_object(check->arena);
        if (!td_json_is(list, TD_JSON_TYPE_OBJECT)) {
            continue; /* missing, or for decoding to refuse */
        }
        for (const struct td_json *member = td_json_first_member(list); member;
             member = member->next) {
            struct td_quantity quantity;
            struct td_error err = TD_ERROR_INIT;
            if (td_quantity_from_json(check->arena, member, &quantity, &err) == TD_OK) {
                td_json_set(check->arena, kept, member->key,
                            td_json_copy(check->arena, member, false));
            } else if (check->pod_bad.count < TD_STRICT_PROBLEMS_MAX) {
                struct td_field_path key =
                    td_kind_key(TD_FIELD_AT(&pod_path, lists[i]), member->key);
                td_field_error_add(&check->pod_bad, &key, TD_FIELD_INVALID,
                                   td_json_line(check->arena, member), td_str_from(err.message));
            }
        }
        td_json_set(check->arena, made, lists[i], kept);
    }
    return made;
}

/* Is a value fit for comparisons? Not below zero, no fraction of the smallest unit. */
static bool pod_is_sound(struct td_arena *arena, const struct td_resource_amount *resource)
{
    struct td_quantity rounded = resource->quantity;
    size_t r = policy_resource(resource->name);
    return td_quantity_sign(&resource->quantity) >= 0 &&
           (r == POLICY_RESOURCES ||
            td_quantity_round_up(arena, &rounded, r == POLICY_CPU ? -3 : 0));
}

static void check_pod_values(struct td_vpa_check *check, const struct td_resource_list *list,
                             const struct td_field_path *path)
{
    for (size_t i = 0; i < list->count && !td_vpa_check_is_full(check); i++) {
        struct td_field_path key = td_kind_key(path, list->items[i].name);
        if (td_quantity_sign(&list->items[i].quantity) < 0) {
            td_field_invalid_str(check->errors, &key,
                                 td_quantity_text(check->arena, &list->items[i].quantity),
                                 "must be greater than or equal to 0");
        }
        td_vpa_check_resolution(check, &key, list->items[i].name, &list->items[i].quantity);
    }
}

/* maxAllowed below minAllowed of the same policy. */
static void check_pod_order(struct td_vpa_check *check, const struct td_field_path *path)
{
    const struct td_pod_policy *pod = &check->vpa->policy.pod;
    for (size_t i = 0; i < pod->max_allowed.count && !td_vpa_check_is_full(check); i++) {
        const struct td_resource_amount *max = &pod->max_allowed.items[i];
        const struct td_quantity *lowest = td_resource_list_get(&pod->min_allowed, max->name);
        struct td_resource_amount min = {.name = max->name};
        if (!lowest) {
            continue;
        }
        min.quantity = *lowest;
        if (!pod_is_sound(check->arena, max) || !pod_is_sound(check->arena, &min) ||
            td_quantity_compare(&max->quantity, lowest) >= 0) {
            continue;
        }
        struct td_field_path min_key = td_kind_key(TD_FIELD(path, "minAllowed"), max->name);
        struct td_field_path max_key = td_kind_key(TD_FIELD(path, "maxAllowed"), max->name);
        td_str place = td_field_path_text(check->arena, &min_key);
        td_str shown = td_quantity_text(check->arena, lowest);
        td_str detail =
            td_arena_format(check->arena, "must not be lower than %.*s, which is \"%.*s\"",
                            TD_STR_ARG(place), TD_STR_ARG(shown));
        td_field_invalid_str(check->errors, &max_key,
                             td_quantity_text(check->arena, &max->quantity), detail.ptr);
    }
}

static int policy_compare(const void *key, const void *item)
{
    const struct td_resource_amount *left = key;
    const struct td_resource_amount *right = item;
    return td_str_compare(left->name, right->name);
}

/* Adds a container's bounds to the sums of the resources that the pod's list names. */
static void pod_add(struct td_arena *arena, const struct td_resource_list *bounds,
                    const struct td_resource_list *named, struct td_quantity *sums)
{
    for (size_t i = 0; i < bounds->count; i++) {
        const struct td_resource_amount *bound = &bounds->items[i];
        const struct td_resource_amount *found =
            named->count > 0
                ? bsearch(bound, named->items, named->count, sizeof(*bound), policy_compare)
                : NULL;
        if (found && pod_is_sound(arena, bound)) {
            td_quantity_add(arena, &sums[found - named->items], &bound->quantity);
        }
    }
}

/* A bound of the pod below the sum of its containers'. A container is counted once, by the entry
 * that holds for it; "*" and containers that are off are not counted. */
static void check_pod_sums(struct td_vpa_check *check, const struct td_field_path *path,
                           bool is_min)
{
    const struct td_resource_policy *policy = &check->vpa->policy;
    const struct td_resource_list *named =
        is_min ? &policy->pod.min_allowed : &policy->pod.max_allowed;
    struct td_quantity *sums = td_arena_array(check->arena, struct td_quantity, named->count);
    struct td_json *counted = td_json_new_object(check->arena);
    for (size_t i = 0; i < policy->container_count; i++) {
        const struct td_container_policy *container = &policy->containers[i];
        if (td_json_get(counted, container->container_name)) {
            continue;
        }
        td_json_set(check->arena, counted, container->container_name,
                    td_json_new_null(check->arena));
        if (!container->is_off && !td_str_equal(container->container_name, TD_STR("*"))) {
            pod_add(check->arena, is_min ? &container->min_allowed : &container->max_allowed, named,
                    sums);
        }
    }
    struct td_field_path list =
        td_field_child(path, is_min ? TD_STR("minAllowed") : TD_STR("maxAllowed"));
    for (size_t i = 0; i < named->count && !td_vpa_check_is_full(check); i++) {
        const struct td_resource_amount *bound = &named->items[i];
        if (!pod_is_sound(check->arena, bound) ||
            td_quantity_compare(&bound->quantity, &sums[i]) >= 0) {
            continue;
        }
        struct td_field_path key = td_kind_key(&list, bound->name);
        td_str sum = td_quantity_text(check->arena, &sums[i]);
        td_str detail = td_arena_format(
            check->arena, "must not be lower than the sum of the containers' %s, which is \"%.*s\"",
            is_min ? "minAllowed" : "maxAllowed", TD_STR_ARG(sum));
        td_field_invalid_str(check->errors, &key, td_quantity_text(check->arena, &bound->quantity),
                             detail.ptr);
    }
}

static void check_pod_controlled(struct td_vpa_check *check, const struct td_field_path *path)
{
    const struct td_resource_policy *policy = &check->vpa->policy;
    bool is_controlled[POLICY_RESOURCES] = {policy->container_count == 0,
                                            policy->container_count == 0};
    for (size_t i = 0; i < policy->container_count; i++) {
        const struct td_container_policy *container = &policy->containers[i];
        for (size_t r = 0; r < POLICY_RESOURCES && !container->is_off; r++) {
            is_controlled[r] = is_controlled[r] || td_vpa_controls(container, policy_resources[r]);
        }
    }
    for (size_t i = 0; i < policy->pod.controlled_resource_count && !td_vpa_check_is_full(check);
         i++) {
        td_str name = policy->pod.controlled_resources[i];
        size_t r = policy_resource(name);
        struct td_field_path item = td_field_item(TD_FIELD(path, "controlledResources"), i);
        if (r == POLICY_RESOURCES) {
            td_field_unsupported(check->errors, &item, name, policy_resources, POLICY_RESOURCES);
        } else if (!is_controlled[r]) {
            td_field_invalid_str(check->errors, &item, name,
                                 "must be controlled by at least one container policy whose mode "
                                 "is not Off");
        }
    }
}

static void check_pod(struct td_vpa_check *check, const struct td_json *tree,
                      const struct td_field_path *policy_path)
{
    static const td_str values[] = {TD_STR_INIT("RequestsAndLimits"), TD_STR_INIT("RequestsOnly")};
    struct td_field_path path = td_field_child(policy_path, TD_STR("podPolicies"));
    const struct td_json *chosen = td_json_member(tree, "controlledValues");
    for (size_t i = 0; i < check->pod_bad.count; i++) {
        const struct td_field_error *bad = &check->pod_bad.items[i];
        td_field_error_add(check->errors, TD_FIELD_AT(NULL, bad->field), bad->type, bad->value,
                           bad->detail);
    }
    check_pod_values(check, &check->vpa->policy.pod.min_allowed, TD_FIELD(&path, "minAllowed"));
    check_pod_values(check, &check->vpa->policy.pod.max_allowed, TD_FIELD(&path, "maxAllowed"));
    check_pod_order(check, &path);
    check_pod_sums(check, &path, true);
    check_pod_sums(check, &path, false);
    if (chosen && !td_str_equal(chosen->text, values[0]) &&
        !td_str_equal(chosen->text, values[1])) {
        td_field_unsupported(check->errors, TD_FIELD(&path, "controlledValues"), chosen->text,
                             values, 2);
    }
    check_pod_controlled(check, &path);
}

void td_vpa_check_policies(struct td_vpa_check *check, const struct td_field_path *spec_path)
{
    const struct td_json *policy = td_json_member(check->spec, "resourcePolicy");
    const struct td_json *list = td_json_member(policy, "containerPolicies");
    const struct td_json *pod = td_json_member(policy, "podPolicies");
    struct td_field_path path = td_field_child(spec_path, TD_STR("resourcePolicy"));
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list);
         item && !td_vpa_check_is_full(check); item = item->next, index++) {
        check_container(check, item, &check->vpa->policy.containers[index],
                        TD_FIELD_ITEM(TD_FIELD(&path, "containerPolicies"), index));
    }
    if (pod && check->checks_pod) {
        check_pod(check, pod, &path);
    }
}
