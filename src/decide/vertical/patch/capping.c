/* Each list of each container goes through the same rules in the same order; what a rule changes
 * becomes a step of the account. */
#include "decide/vertical/patch/capping.h"

#include "decide/vertical/patch/podcaps.h"
#include "decide/vertical/patch/proportional.h"
#include "decide/vertical/recommender/recommend.h"
#include "decide/vertical/resourcelist.h"
#include "model/name_table.h"

struct td_recommendation td_recommendation_copy(struct td_arena *arena,
                                                const struct td_recommendation *recommendation)
{
    struct td_recommendation copy = *recommendation;
    copy.containers =
        td_arena_array(arena, struct td_container_recommendation, recommendation->container_count);
    for (size_t i = 0; i < copy.container_count; i++) {
        struct td_container_recommendation *entry = &copy.containers[i];
        *entry = recommendation->containers[i];
        entry->target = td_resource_list_copy(arena, &entry->target);
        entry->lower_bound = td_resource_list_copy(arena, &entry->lower_bound);
        entry->upper_bound = td_resource_list_copy(arena, &entry->upper_bound);
    }
    return copy;
}

struct td_name_table td_recommendation_names(struct td_arena *arena,
                                             const struct td_recommendation *recommendation)
{
    struct td_name_table names = td_name_table_new(arena, recommendation->container_count);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        td_name_table_add(&names, recommendation->containers[i].container_name, i);
    }
    return names;
}

struct td_recommendation td_cap_by_policy(struct td_arena *arena,
                                          const struct td_recommendation *recommendation,
                                          const struct td_resource_policy *policy,
                                          const struct td_resource_list *global_max)
{
    struct td_recommendation capped = td_recommendation_copy(arena, recommendation);
    for (size_t i = 0; i < capped.container_count; i++) {
        td_recommend_cap(policy, global_max, &capped.containers[i], NULL);
    }
    return capped;
}

/* Capping of one list of one entry. */
struct cap {
    struct td_arena *arena;
    const struct td_pod_container *container;
    const struct td_container_policy *policy; /* NULL: none */
    const struct td_limit_summary *limits;    /* NULL: none */
    enum td_cap_value value;
    struct td_cap_steps *steps;
    struct td_notes *notes; /* NULL: none are taken of this list */
};

static void cap_move(const struct cap *cap, struct td_resource_amount *resource,
                     const struct td_quantity *to, enum td_cap_rule rule)
{
    td_cap_steps_add(cap->arena, cap->steps,
                     &(struct td_cap_step){.container = cap->container->name,
                                           .resource = resource->name,
                                           .value = cap->value,
                                           .rule = rule,
                                           .before = resource->quantity,
                                           .after = *to});
    resource->quantity = *to;
    if (cap->notes) {
        td_notes_add(cap->arena, cap->notes,
                     td_arena_format(cap->arena, "%.*s %.*s", TD_STR_ARG(resource->name),
                                     TD_STR_ARG(td_cap_rule_text(rule))));
    }
}

/* Bounds that are absent or zero do not bound. */
static void cap_to_min(const struct cap *cap, struct td_resource_amount *resource,
                       const struct td_quantity *min, enum td_cap_rule rule)
{
    if (min && td_quantity_sign(min) != 0 && td_quantity_compare(&resource->quantity, min) < 0) {
        cap_move(cap, resource, min, rule);
    }
}

static void cap_to_max(const struct cap *cap, struct td_resource_amount *resource,
                       const struct td_quantity *max, enum td_cap_rule rule)
{
    if (max && td_quantity_sign(max) != 0 && td_quantity_compare(&resource->quantity, max) > 0) {
        cap_move(cap, resource, max, rule);
    }
}

/* The LimitRange bounds limits; a request is bounded where the limit that follows from it would
 * reach the bound. The minimum holds for the request itself too. */
static void cap_to_container_range(const struct cap *cap, struct td_resource_amount *resource)
{
    if (!td_resource_is_scaled(resource->name)) {
        return;
    }
    const struct td_proportion proportion = {
        .limit = td_resource_list_get(td_vertical_origin_limits(cap->container), resource->name),
        .request =
            td_resource_list_get(td_vertical_origin_requests(cap->container), resource->name),
        .default_limit = td_resource_list_get(&cap->limits->default_limit, resource->name),
    };
    const struct td_quantity *min = td_resource_list_get(&cap->limits->min, resource->name);
    struct td_quantity for_min = td_boundary_request(resource->name, &proportion, min);
    struct td_quantity for_max = td_boundary_request(
        resource->name, &proportion, td_resource_list_get(&cap->limits->max, resource->name));
    if (min && td_quantity_compare(min, &for_min) > 0) {
        for_min = *min;
    }
    cap_to_min(cap, resource, &for_min, TD_CAP_RULE_CONTAINER_RANGE_MIN);
    cap_to_max(cap, resource, &for_max, TD_CAP_RULE_CONTAINER_RANGE_MAX);
}

static void cap_list(const struct cap *cap, struct td_resource_list *list)
{
    for (size_t i = 0; cap->limits && i < list->count; i++) {
        cap_to_container_range(cap, &list->items[i]);
    }
    for (size_t i = 0; cap->policy && i < list->count; i++) {
        struct td_resource_amount *resource = &list->items[i];
        cap_to_min(cap, resource, td_resource_list_get(&cap->policy->min_allowed, resource->name),
                   TD_CAP_RULE_MIN_ALLOWED);
        cap_to_max(cap, resource, td_resource_list_get(&cap->policy->max_allowed, resource->name),
                   TD_CAP_RULE_MAX_ALLOWED);
    }
    bool is_requests_only = cap->policy && cap->policy->is_requests_only;
    for (size_t i = 0; is_requests_only && i < list->count; i++) {
        struct td_resource_amount *resource = &list->items[i];
        const struct td_quantity *limit =
            td_resource_list_get(td_vertical_limits(cap->container), resource->name);
        if (limit && td_quantity_milli(&resource->quantity) > td_quantity_milli(limit)) {
            cap_move(cap, resource, limit, TD_CAP_RULE_OWN_LIMIT);
        }
    }
}

static void cap_entry(struct td_arena *arena, const struct td_capping *capping,
                      const struct td_pod_container *container,
                      struct td_container_recommendation *entry, struct td_notes *notes,
                      struct td_cap_steps *steps)
{
    struct cap cap = {
        .arena = arena,
        .container = container,
        .policy = td_vpa_container_policy(capping->policy, container->name),
        .limits = td_limit_summary_or_null(capping->container_limits),
        .value = TD_CAP_TARGET,
        .steps = steps,
        .notes = notes,
    };
    cap_list(&cap, &entry->target);
    cap.notes = NULL;
    cap.value = TD_CAP_LOWER;
    cap_list(&cap, &entry->lower_bound);
    cap.value = TD_CAP_UPPER;
    cap_list(&cap, &entry->upper_bound);
}

/* Entries of containers that the pod has not are left out. */
static void cap_entries(struct td_arena *arena, const struct td_capping *capping,
                        struct td_recommendation *recommendation, struct td_capped *result)
{
    const struct td_pod *pod = capping->pod;
    struct td_name_table table = td_name_table_new(arena, pod->container_count);
    for (size_t i = 0; i < pod->container_count; i++) {
        td_name_table_add(&table, pod->containers[i].name, i);
    }
    size_t kept = 0;
    for (size_t i = 0; i < recommendation->container_count; i++) {
        struct td_container_recommendation *entry = &recommendation->containers[kept];
        *entry = recommendation->containers[i];
        size_t position = td_name_table_find(&table, entry->container_name);
        if (position != TD_NAME_NONE) {
            cap_entry(arena, capping, &pod->containers[position], entry, &result->notes[kept],
                      &result->steps);
            kept++;
        }
    }
    recommendation->container_count = kept;
}

void td_cap_for_pod(struct td_arena *arena, const struct td_capping *capping, struct td_capped *ret)
{
    const struct td_recommendation none = {.container_count = 0};
    const struct td_limit_summary *pod_limits = td_limit_summary_or_null(capping->pod_limits);
    *ret = (struct td_capped){.is_set = capping->recommendation ||
                                        (capping->policy && capping->policy->is_set)};
    if (!ret->is_set) {
        return;
    }
    ret->recommendation =
        td_recommendation_copy(arena, capping->recommendation ? capping->recommendation : &none);
    size_t count = capping->pod->container_count;
    if (pod_limits) {
        size_t recommended = ret->recommendation.container_count;
        td_podcaps_insert_requests(arena, capping->pod, &ret->recommendation);
        const struct td_podcaps_bounds bounds = {
            .limits = pod_limits,
            .policy = capping->policy,
            .inserted = &ret->recommendation.containers[recommended],
            .sidecar_limits = td_podcaps_sidecar_limits(arena, capping->pod),
            .is_upstream_exact = capping->is_upstream_exact,
        };
        td_podcaps_to_limits(arena, td_podcaps_pair(arena, capping->pod, &ret->recommendation),
                             count, &bounds, &ret->steps);
    }
    ret->notes = td_arena_array(arena, struct td_notes, ret->recommendation.container_count);
    cap_entries(arena, capping, &ret->recommendation, ret);
    if (capping->largest_node) {
        td_podcaps_to_node(arena, td_podcaps_pair(arena, capping->pod, &ret->recommendation), count,
                           capping->largest_node, &ret->recommendation, ret->notes, &ret->steps);
    }
}
