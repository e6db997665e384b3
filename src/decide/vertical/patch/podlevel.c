/*
 * The recommender's part. For one resource: S is the sum of the containers' targets, B the bound it
 * violates (minimum first, then maximum, so that the maximum wins). Every container's target and
 * bounds become value * B / S in one step, rounded as the deciding bound asks (cpu: up for a
 * minimum, down for a maximum; memory: down). Each container is then held inside its own policy,
 * which wins, and its bounds are moved to enclose its target. The pod's target is B exactly, its
 * bounds are the new sums, widened to enclose B. With S zero there is nothing to scale.
 */
#include "decide/vertical/patch/podlevel.h"

#include "decide/vertical/patch/proportional.h"
#include "decide/vertical/recommender/recommend.h"
#include "decide/vertical/resourcelist.h"

void td_pod_level_use_add(struct td_pod_level_use *use, const struct td_pod *pod)
{
    use->has_cpu = use->has_cpu || td_resource_list_get(&pod->pod_requests, TD_CPU) ||
                   td_resource_list_get(&pod->pod_limits, TD_CPU);
    use->has_memory = use->has_memory || td_resource_list_get(&pod->pod_requests, TD_MEMORY) ||
                      td_resource_list_get(&pod->pod_limits, TD_MEMORY);
}

static bool pod_controls(const struct td_resource_policy *policy, td_str resource)
{
    return !policy || !policy->pod.has_controlled_resources ||
           td_str_is_among(resource, policy->pod.controlled_resources,
                           policy->pod.controlled_resource_count);
}

/* The bound that a sum violates. */
struct bound {
    const struct td_quantity *value; /* NULL: none */
    enum td_cap_rule rule;
    enum td_rounding rounding;
};

/* The pod's own maximum; the flag's only where no policy of the VPA names one. */
static const struct td_quantity *pod_max(const struct td_pod_level_terms *terms, td_str resource,
                                         enum td_cap_rule *ret_rule)
{
    const struct td_resource_policy *policy = terms->policy;
    const struct td_quantity *own =
        policy ? td_resource_list_get(&policy->pod.max_allowed, resource) : NULL;
    *ret_rule = TD_CAP_RULE_POD_MAX_ALLOWED;
    if (own || !terms->pod_max) {
        return own;
    }
    for (size_t i = 0; policy && i < policy->container_count; i++) {
        if (td_resource_list_get(&policy->containers[i].max_allowed, resource)) {
            return NULL;
        }
    }
    *ret_rule = TD_CAP_RULE_POD_GLOBAL_MAX;
    return td_resource_list_get(terms->pod_max, resource);
}

static struct bound violated_bound(const struct td_pod_level_terms *terms, td_str resource,
                                   const struct td_quantity *sum)
{
    struct bound bound = {.value = NULL};
    const struct td_quantity *min =
        terms->policy ? td_resource_list_get(&terms->policy->pod.min_allowed, resource) : NULL;
    enum td_cap_rule rule = TD_CAP_RULE_POD_MAX_ALLOWED;
    const struct td_quantity *max = pod_max(terms, resource, &rule);
    bool is_cpu = td_str_equal(resource, TD_CPU);
    if (min && td_quantity_sign(min) != 0 && td_quantity_compare(sum, min) < 0) {
        bound = (struct bound){.value = min,
                               .rule = TD_CAP_RULE_POD_MIN_ALLOWED,
                               .rounding = is_cpu ? TD_ROUND_UP : TD_ROUND_DOWN};
    }
    const struct td_quantity *reached = bound.value ? bound.value : sum;
    if (max && td_quantity_sign(max) != 0 && td_quantity_compare(reached, max) > 0) {
        bound = (struct bound){.value = max, .rule = rule, .rounding = TD_ROUND_DOWN};
    }
    return bound;
}

static const struct td_resource_list *list_of(const struct td_container_recommendation *entry,
                                              enum td_cap_value value)
{
    return value == TD_CAP_UPPER   ? &entry->upper_bound
           : value == TD_CAP_LOWER ? &entry->lower_bound
                                   : &entry->target;
}

/* False when no container speaks of the resource. */
static bool add_up(struct td_arena *arena, const struct td_recommendation *recommendation,
                   td_str resource, enum td_cap_value value, struct td_quantity *ret)
{
    struct td_quantity sum = td_quantity_new(0, TD_QUANTITY_NONE);
    bool is_there = false;
    for (size_t i = 0; i < recommendation->container_count; i++) {
        const struct td_quantity *part =
            td_resource_list_get(list_of(&recommendation->containers[i], value), resource);
        if (part) {
            td_quantity_add(arena, &sum, part);
            is_there = true;
        }
    }
    *ret = sum;
    return is_there;
}

/* Bounds on the wrong side of their target are moved to it. */
static void enclose_target(struct td_container_recommendation *entry, td_str resource)
{
    const struct td_quantity *target = td_resource_list_get(&entry->target, resource);
    struct td_quantity *lower = td_resource_list_edit(&entry->lower_bound, resource);
    struct td_quantity *upper = td_resource_list_edit(&entry->upper_bound, resource);
    if (target && lower && td_quantity_compare(lower, target) > 0) {
        *lower = *target;
    }
    if (target && upper && td_quantity_compare(upper, target) < 0) {
        *upper = *target;
    }
}

static void scale_entry(struct td_arena *arena, const struct td_pod_level_terms *terms,
                        struct td_container_recommendation *entry, td_str resource,
                        const struct td_quantity *sum, const struct bound *bound,
                        struct td_cap_steps *steps)
{
    static const enum td_cap_value values[] = {TD_CAP_TARGET, TD_CAP_LOWER, TD_CAP_UPPER};
    struct td_resource_list *lists[] = {&entry->target, &entry->lower_bound, &entry->upper_bound};
    struct td_quantity before[3];
    for (size_t i = 0; i < 3; i++) {
        struct td_quantity *quantity = td_resource_list_edit(lists[i], resource);
        before[i] = td_resource_list_value(lists[i], resource);
        if (quantity) {
            *quantity =
                td_scale_quantity(resource, quantity, bound->value, sum, bound->rounding, NULL);
        }
    }
    td_recommend_cap(terms->policy, terms->global_max, entry, NULL);
    enclose_target(entry, resource);
    for (size_t i = 0; i < 3; i++) {
        td_cap_steps_add(
            arena, steps,
            &(struct td_cap_step){.container = entry->container_name,
                                  .resource = resource,
                                  .value = values[i],
                                  .rule = bound->rule,
                                  .before = before[i],
                                  .after = td_resource_list_value(lists[i], resource)});
    }
}

static void recommend_resource(struct td_arena *arena, const struct td_pod_level_terms *terms,
                               td_str resource, struct td_recommendation *recommendation,
                               struct td_cap_steps *steps)
{
    struct td_quantity target;
    struct td_quantity lower;
    struct td_quantity upper;
    if (!add_up(arena, recommendation, resource, TD_CAP_TARGET, &target)) {
        return;
    }
    struct bound bound = violated_bound(terms, resource, &target);
    if (bound.value) {
        td_cap_steps_add(arena, steps,
                         &(struct td_cap_step){.resource = resource,
                                               .value = TD_CAP_TARGET,
                                               .rule = bound.rule,
                                               .before = target,
                                               .after = *bound.value});
        for (size_t i = 0; td_quantity_sign(&target) != 0 && i < recommendation->container_count;
             i++) {
            scale_entry(arena, terms, &recommendation->containers[i], resource, &target, &bound,
                        steps);
        }
        target = *bound.value;
    }
    (void)add_up(arena, recommendation, resource, TD_CAP_LOWER, &lower);
    (void)add_up(arena, recommendation, resource, TD_CAP_UPPER, &upper);
    if (bound.value && td_quantity_compare(&lower, &target) > 0) {
        lower = target;
    }
    if (bound.value && td_quantity_compare(&upper, &target) < 0) {
        upper = target;
    }
    struct td_pod_recommendation *pod = &recommendation->pod;
    pod->is_set = true;
    td_resource_list_set(arena, &pod->target, resource, &target);
    td_resource_list_set(arena, &pod->lower_bound, resource, &lower);
    td_resource_list_set(arena, &pod->upper_bound, resource, &upper);
}

void td_pod_level_recommend(struct td_arena *arena, const struct td_pod_level_terms *terms,
                            struct td_recommendation *recommendation, struct td_cap_steps *steps)
{
    recommendation->pod = (struct td_pod_recommendation){.is_set = false};
    if (terms->use.has_cpu && pod_controls(terms->policy, TD_CPU)) {
        recommend_resource(arena, terms, TD_CPU, recommendation, steps);
    }
    if (terms->use.has_memory && pod_controls(terms->policy, TD_MEMORY)) {
        recommend_resource(arena, terms, TD_MEMORY, recommendation, steps);
    }
}

static void cap_resource(struct td_arena *arena, struct td_resource_amount *resource,
                         enum td_cap_value value, const struct td_quantity *bound,
                         enum td_cap_rule rule, struct td_cap_steps *steps)
{
    bool is_min = rule == TD_CAP_RULE_POD_RANGE_MIN;
    if (!bound || td_quantity_sign(bound) == 0) {
        return;
    }
    int order = td_quantity_compare(&resource->quantity, bound);
    if (is_min ? order >= 0 : order <= 0) {
        return;
    }
    td_cap_steps_add(arena, steps,
                     &(struct td_cap_step){.resource = resource->name,
                                           .value = value,
                                           .rule = rule,
                                           .before = resource->quantity,
                                           .after = *bound});
    resource->quantity = *bound;
}

struct td_pod_recommendation td_pod_level_cap(struct td_arena *arena,
                                              const struct td_pod_recommendation *recommendation,
                                              const struct td_limit_summary *limits,
                                              const struct td_resource_list *largest_node,
                                              struct td_cap_steps *steps)
{
    static const enum td_cap_value values[] = {TD_CAP_TARGET, TD_CAP_LOWER, TD_CAP_UPPER};
    struct td_pod_recommendation capped = {
        .is_set = recommendation->is_set,
        .target = td_resource_list_copy(arena, &recommendation->target),
        .lower_bound = td_resource_list_copy(arena, &recommendation->lower_bound),
        .upper_bound = td_resource_list_copy(arena, &recommendation->upper_bound),
    };
    struct td_resource_list *lists[] = {&capped.target, &capped.lower_bound, &capped.upper_bound};
    for (size_t l = 0; l < 3; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            struct td_resource_amount *resource = &lists[l]->items[i];
            if (limits) {
                cap_resource(arena, resource, values[l],
                             td_resource_list_get(&limits->min, resource->name),
                             TD_CAP_RULE_POD_RANGE_MIN, steps);
                cap_resource(arena, resource, values[l],
                             td_resource_list_get(&limits->max, resource->name),
                             TD_CAP_RULE_POD_RANGE_MAX, steps);
            }
            if (largest_node && values[l] != TD_CAP_UPPER) {
                cap_resource(arena, resource, values[l],
                             td_resource_list_get(largest_node, resource->name), TD_CAP_RULE_NODE,
                             steps);
            }
        }
    }
    return capped;
}
