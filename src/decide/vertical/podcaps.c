/*
 * A Pod LimitRange bounds the sums over a pod: limits and requests at least min, limits at most
 * max. For one resource and one of upper bound, target and lower bound the entries are scaled by
 * one factor:
 *
 *   1. sums in bounds: nothing to do;
 *   2. requests below min (and some container has a limit): entries * min / sum of entries, rounded
 *      up for cpu, down for memory, as upstream does;
 *   3. limits below min or above max: entries * goal / sum of limits, rounded down. The limits then
 *      follow, because they are derived from the requests in proportion.
 *
 * Upstream writes to every entry here, also to one that has no such list (a panic) or does not name
 * the resource (0, or -1 byte in case 3). An entry that does not speak of a resource is left alone
 * here, so that a request which nobody controls is not overwritten; only where there is no request
 * either it gets upstream's harmless 0.
 */
#include "decide/vertical/podcaps.h"

#include "decide/vertical/names.h"
#include "decide/vertical/proportional.h"
#include "decide/vertical/resourcelist.h"

static struct td_name_table entry_table(struct td_arena *arena,
                                        const struct td_recommendation *recommendation)
{
    struct td_name_table table = td_name_table_new(arena, recommendation->container_count);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        td_name_table_add(&table, recommendation->containers[i].container_name, i);
    }
    return table;
}

void td_podcaps_insert_requests(struct td_arena *arena, const struct td_vertical_pod *pod,
                                struct td_recommendation *recommendation)
{
    struct td_name_table table = entry_table(arena, recommendation);
    size_t old_count = recommendation->container_count;
    size_t count = old_count;
    struct td_container_recommendation *entries =
        td_arena_array(arena, struct td_container_recommendation, old_count + pod->container_count);
    for (size_t i = 0; i < old_count; i++) {
        entries[i] = recommendation->containers[i];
    }
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *container = &pod->containers[i];
        const struct td_resource_list *requests = td_vertical_requests(container);
        if (requests->count == 0 || td_name_table_find(&table, container->name) != TD_NAME_NONE) {
            continue;
        }
        entries[count++] = (struct td_container_recommendation){
            .container_name = container->name,
            .target = td_resource_list_copy(arena, requests),
            .has_target = true,
        };
    }
    recommendation->containers = entries;
    recommendation->container_count = count;
}

struct td_podcaps_pair *td_podcaps_pair(struct td_arena *arena, const struct td_vertical_pod *pod,
                                        const struct td_recommendation *recommendation)
{
    struct td_name_table table = entry_table(arena, recommendation);
    struct td_podcaps_pair *pairs =
        td_arena_array(arena, struct td_podcaps_pair, pod->container_count);
    for (size_t i = 0; i < pod->container_count; i++) {
        size_t position = td_name_table_find(&table, pod->containers[i].name);
        pairs[i] = (struct td_podcaps_pair){
            .container = &pod->containers[i],
            .entry = position == TD_NAME_NONE ? NULL : &recommendation->containers[position],
        };
    }
    return pairs;
}

static struct td_resource_list *entry_list(struct td_container_recommendation *entry,
                                           enum td_cap_value value)
{
    return value == TD_CAP_UPPER   ? &entry->upper_bound
           : value == TD_CAP_LOWER ? &entry->lower_bound
                                   : &entry->target;
}

/* One run over the containers: a resource, and which of the three lists. */
struct pass {
    struct td_arena *arena;
    const struct td_podcaps_pair *pairs;
    size_t count;
    td_str resource;
    enum td_cap_value value;
    struct td_quantity sum;       /* of the entries */
    struct td_quantity limit_sum; /* of the limits that follow from them */
    struct td_cap_steps *steps;
};

static void pass_add_up(struct pass *pass, const struct td_quantity *default_limit)
{
    pass->sum = td_quantity_new(0, TD_QUANTITY_NONE);
    pass->limit_sum = pass->sum;
    for (size_t i = 0; i < pass->count; i++) {
        const struct td_podcaps_pair *pair = &pass->pairs[i];
        const struct td_quantity *request =
            td_resource_list_get(td_vertical_requests(pair->container), pass->resource);
        const struct td_quantity *value =
            pair->entry ? td_resource_list_get(entry_list(pair->entry, pass->value), pass->resource)
                        : request;
        const struct td_proportion proportion = {
            .limit =
                td_resource_list_get(td_vertical_origin_limits(pair->container), pass->resource),
            .request =
                td_resource_list_get(td_vertical_origin_requests(pair->container), pass->resource),
            .recommended = value,
            .default_limit = default_limit,
        };
        struct td_proportional_limit limit = td_proportional_limit(pass->resource, &proportion);
        if (limit.is_set) {
            td_quantity_add(pass->arena, &pass->limit_sum, &limit.limit);
        }
        if (value) {
            td_quantity_add(pass->arena, &pass->sum, value);
        }
    }
}

static bool entry_has_list(const struct td_container_recommendation *entry, enum td_cap_value value)
{
    return value == TD_CAP_UPPER   ? entry->has_upper_bound
           : value == TD_CAP_LOWER ? entry->has_lower_bound
                                   : entry->has_target;
}

/* Upstream's 0 for an entry that lacks the resource; see the top of the file. */
static void pass_fill(const struct pass *pass, const struct td_podcaps_pair *pair)
{
    const struct td_quantity zero = td_quantity_new(0, TD_QUANTITY_NONE);
    const struct td_resource_list *requests = td_vertical_requests(pair->container);
    if (entry_has_list(pair->entry, pass->value) &&
        !td_resource_list_get(requests, pass->resource)) {
        td_resource_list_set(pass->arena, entry_list(pair->entry, pass->value), pass->resource,
                             &zero);
    }
}

static void pass_scale(const struct pass *pass, const struct td_quantity *goal,
                       const struct td_quantity *base, enum td_rounding rounding,
                       enum td_cap_rule rule)
{
    for (size_t i = 0; i < pass->count; i++) {
        struct td_container_recommendation *entry = pass->pairs[i].entry;
        struct td_quantity *value =
            entry ? td_resource_list_edit(entry_list(entry, pass->value), pass->resource) : NULL;
        if (!value) {
            bool is_filled = rule != TD_CAP_RULE_NODE &&
                             (base == &pass->sum || td_str_equal(pass->resource, TD_CPU));
            if (entry && is_filled) {
                pass_fill(pass, &pass->pairs[i]);
            }
            continue;
        }
        struct td_quantity scaled =
            td_scale_quantity(pass->resource, value, goal, base, rounding, NULL);
        td_cap_steps_add(pass->arena, pass->steps,
                         &(struct td_cap_step){.container = entry->container_name,
                                               .resource = pass->resource,
                                               .value = pass->value,
                                               .rule = rule,
                                               .before = *value,
                                               .after = scaled});
        *value = scaled;
    }
}

static void pass_run(struct pass *pass, const struct td_limit_summary *limits)
{
    struct td_quantity min = td_resource_list_value(&limits->min, pass->resource);
    struct td_quantity max = td_resource_list_value(&limits->max, pass->resource);
    pass_add_up(pass, td_resource_list_get(&limits->default_limit, pass->resource));
    bool is_limited = td_quantity_sign(&pass->limit_sum) != 0;
    bool is_above_max =
        td_quantity_sign(&max) != 0 && td_quantity_compare(&max, &pass->limit_sum) < 0;
    bool is_cpu = td_str_equal(pass->resource, TD_CPU);
    if (!is_limited) {
        return;
    }
    if (td_quantity_compare(&min, &pass->sum) > 0) {
        pass_scale(pass, &min, &pass->sum, is_cpu ? TD_ROUND_UP : TD_ROUND_DOWN,
                   TD_CAP_RULE_POD_RANGE_MIN);
    } else if (is_above_max) {
        pass_scale(pass, &max, &pass->limit_sum, TD_ROUND_DOWN, TD_CAP_RULE_POD_RANGE_MAX);
    } else if (td_quantity_compare(&min, &pass->limit_sum) > 0) {
        pass_scale(pass, &min, &pass->limit_sum, TD_ROUND_DOWN, TD_CAP_RULE_POD_RANGE_MIN);
    }
}

void td_podcaps_to_limits(struct td_arena *arena, const struct td_podcaps_pair *pairs, size_t count,
                          const struct td_limit_summary *limits, struct td_cap_steps *steps)
{
    static const enum td_cap_value values[] = {TD_CAP_UPPER, TD_CAP_TARGET, TD_CAP_LOWER};
    for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
        const td_str resources[] = {TD_CPU, TD_MEMORY};
        for (size_t r = 0; r < 2; r++) {
            struct pass pass = {.arena = arena,
                                .pairs = pairs,
                                .count = count,
                                .resource = resources[r],
                                .value = values[v],
                                .steps = steps};
            pass_run(&pass, limits);
        }
    }
}

/* What the targets of a resource add up to, and what containers without one take. */
static void node_add_up(struct td_arena *arena, const struct td_podcaps_pair *pairs, size_t count,
                        td_str resource, struct td_quantity *ret_targets,
                        struct td_quantity *ret_others)
{
    *ret_targets = td_quantity_new(0, TD_QUANTITY_NONE);
    *ret_others = *ret_targets;
    for (size_t i = 0; i < count; i++) {
        const struct td_quantity *target =
            pairs[i].entry ? td_resource_list_get(&pairs[i].entry->target, resource) : NULL;
        const struct td_quantity *request =
            td_resource_list_get(td_vertical_requests(pairs[i].container), resource);
        if (target) {
            td_quantity_add(arena, ret_targets, target);
        } else if (request) {
            td_quantity_add(arena, ret_others, request);
        }
    }
}

/* A bound past its target is moved to it. */
static void node_hold_lower(struct td_arena *arena, struct td_container_recommendation *entry,
                            td_str resource, struct td_cap_steps *steps)
{
    struct td_quantity *lower = td_resource_list_edit(&entry->lower_bound, resource);
    const struct td_quantity *target = td_resource_list_get(&entry->target, resource);
    if (!lower || !target || td_quantity_compare(lower, target) <= 0) {
        return;
    }
    td_cap_steps_add(arena, steps,
                     &(struct td_cap_step){.container = entry->container_name,
                                           .resource = resource,
                                           .value = TD_CAP_LOWER,
                                           .rule = TD_CAP_RULE_BESIDE_TARGET,
                                           .before = *lower,
                                           .after = *target});
    *lower = *target;
}

void td_podcaps_to_node(struct td_arena *arena, const struct td_podcaps_pair *pairs, size_t count,
                        const struct td_resource_list *node,
                        const struct td_recommendation *recommendation, struct td_notes *notes,
                        struct td_cap_steps *steps)
{
    const td_str resources[] = {TD_CPU, TD_MEMORY};
    for (size_t r = 0; r < 2; r++) {
        const struct td_quantity *allocatable = td_resource_list_get(node, resources[r]);
        struct pass pass = {.arena = arena,
                            .pairs = pairs,
                            .count = count,
                            .resource = resources[r],
                            .value = TD_CAP_TARGET,
                            .steps = steps};
        struct td_quantity others;
        node_add_up(arena, pairs, count, resources[r], &pass.sum, &others);
        struct td_quantity room = allocatable ? *allocatable : td_quantity_new(0, TD_QUANTITY_NONE);
        td_quantity_sub(arena, &room, &others);
        /* Without any room the pod fits nowhere, whatever its targets are. */
        if (td_quantity_sign(&room) <= 0 || td_quantity_compare(&pass.sum, &room) <= 0) {
            continue;
        }
        pass_scale(&pass, &room, &pass.sum, TD_ROUND_DOWN, TD_CAP_RULE_NODE);
        for (size_t i = 0; i < count; i++) {
            struct td_container_recommendation *entry = pairs[i].entry;
            if (!entry || !td_resource_list_get(&entry->target, resources[r])) {
                continue;
            }
            node_hold_lower(arena, entry, resources[r], steps);
            td_notes_add(arena, &notes[entry - recommendation->containers],
                         td_arena_format(arena, "%.*s %.*s", TD_STR_ARG(resources[r]),
                                         TD_STR_ARG(td_cap_rule_text(TD_CAP_RULE_NODE))));
        }
    }
}
