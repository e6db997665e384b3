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
 * Upstream forgets what stays as it is: resources that an entry does not speak of, containers that
 * have no recommendation, limits under RequestsOnly, sidecars. The API server adds them up too, and
 * would refuse the pod. So what is kept takes part of the room under max, and the rest shares what
 * is left. Where nothing is left, nothing that a VPA may write makes the pod fit, and values stay.
 *
 * Upstream writes to every entry here, also to one that has no such list (a panic) or does not name
 * the resource (0, or -1 byte in case 3). An entry that does not speak of a resource is left alone
 * here, so that a request that no VPA controls is not overwritten; only where there is no request
 * either it gets upstream's harmless 0.
 */
#include "decide/vertical/patch/podcaps.h"

#include "base/error.h"
#include "decide/vertical/patch/capping.h"
#include "decide/vertical/patch/proportional.h"
#include "decide/vertical/resourcelist.h"
#include "model/name_table.h"

void td_podcaps_insert_requests(struct td_arena *arena, const struct td_pod *pod,
                                struct td_recommendation *recommendation)
{
    struct td_name_table table = td_recommendation_names(arena, recommendation);
    size_t old_count = recommendation->container_count;
    size_t count = old_count;
    struct td_container_recommendation *entries =
        td_arena_array(arena, struct td_container_recommendation, old_count + pod->container_count);
    for (size_t i = 0; i < old_count; i++) {
        entries[i] = recommendation->containers[i];
    }
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
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

struct td_podcaps_pair *td_podcaps_pair(struct td_arena *arena, const struct td_pod *pod,
                                        const struct td_recommendation *recommendation)
{
    struct td_name_table table = td_recommendation_names(arena, recommendation);
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
    const struct td_podcaps_bounds *bounds; /* NULL: the largest node */
    struct td_quantity sum;                 /* of the entries, as upstream has it */
    struct td_quantity limit_sum;           /* of the limits that follow from them, likewise */
    struct td_quantity free_limit_sum;      /* of those that may be changed */
    struct td_quantity kept_limit_sum;      /* of limits that stay as they are */
    struct td_cap_steps *steps;
};

/* Does the container's limit stay as it is? */
static bool pass_keeps(const struct pass *pass, const struct td_podcaps_pair *pair)
{
    const struct td_container_policy *policy =
        td_vpa_container_policy(pass->bounds->policy, pair->container->name);
    return (policy && policy->is_requests_only) || !pair->entry ||
           pair->entry >= pass->bounds->inserted ||
           !td_resource_list_get(entry_list(pair->entry, pass->value), pass->resource);
}

static void pass_add(const struct pass *pass, struct td_quantity *sum,
                     const struct td_quantity *more)
{
    if (more) {
        td_quantity_add(pass->arena, sum, more);
    }
}

/* Upstream counts nothing for a resource that an entry lacks. */
static void pass_add_container(struct pass *pass, const struct td_podcaps_pair *pair)
{
    const struct td_quantity *request =
        td_resource_list_get(td_vertical_requests(pair->container), pass->resource);
    const struct td_quantity *limit =
        td_resource_list_get(td_vertical_limits(pair->container), pass->resource);
    const struct td_quantity *value =
        pair->entry ? td_resource_list_get(entry_list(pair->entry, pass->value), pass->resource)
                    : request;
    const struct td_proportion proportion = {
        .limit = td_resource_list_get(td_vertical_origin_limits(pair->container), pass->resource),
        .request =
            td_resource_list_get(td_vertical_origin_requests(pair->container), pass->resource),
        .recommended = value,
        .default_limit = td_resource_list_get(&pass->bounds->limits->default_limit, pass->resource),
    };
    struct td_proportional_limit made = td_proportional_limit(pass->resource, &proportion);
    pass_add(pass, &pass->sum, value);
    pass_add(pass, &pass->limit_sum, made.is_set ? &made.limit : NULL);
    if (pass_keeps(pass, pair)) {
        pass_add(pass, &pass->kept_limit_sum, limit);
    } else {
        pass_add(pass, &pass->free_limit_sum, made.is_set ? &made.limit : NULL);
    }
}

static void pass_add_up(struct pass *pass)
{
    const struct td_quantity zero = td_quantity_new(0, TD_QUANTITY_NONE);
    pass->sum = zero;
    pass->limit_sum = zero;
    pass->free_limit_sum = zero;
    pass->kept_limit_sum = td_resource_list_value(&pass->bounds->sidecar_limits, pass->resource);
    for (size_t i = 0; i < pass->count; i++) {
        pass_add_container(pass, &pass->pairs[i]);
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

/* How values are scaled: by goal / base. */
struct scaling {
    const struct td_quantity *goal;
    const struct td_quantity *base;
    enum td_rounding rounding;
    enum td_cap_rule rule;
};

/* False: the entry does not speak of the resource. */
static bool pass_scale_one(const struct pass *pass, const struct td_podcaps_pair *pair,
                           const struct scaling *scaling)
{
    struct td_container_recommendation *entry = pair->entry;
    struct td_quantity *value =
        entry ? td_resource_list_edit(entry_list(entry, pass->value), pass->resource) : NULL;
    if (!value) {
        return false;
    }
    struct td_quantity scaled = td_scale_quantity(pass->resource, value, scaling->goal,
                                                  scaling->base, scaling->rounding, NULL);
    td_cap_steps_add(pass->arena, pass->steps,
                     &(struct td_cap_step){.container = entry->container_name,
                                           .resource = pass->resource,
                                           .value = pass->value,
                                           .rule = scaling->rule,
                                           .before = *value,
                                           .after = scaled});
    *value = scaled;
    return true;
}

static void pass_scale(const struct pass *pass, const struct scaling *scaling)
{
    bool is_filled = scaling->rule != TD_CAP_RULE_NODE &&
                     (scaling->base == &pass->sum || td_str_equal(pass->resource, TD_CPU));
    for (size_t i = 0; i < pass->count; i++) {
        if (!pass_scale_one(pass, &pass->pairs[i], scaling) && pass->pairs[i].entry && is_filled) {
            pass_fill(pass, &pass->pairs[i]);
        }
    }
}

/* Scales what may be changed into what the rest leaves of max. Where the rest leaves nothing the
 * pod is refused whatever is done, and upstream's answer is as good as any. */
static void pass_share(const struct pass *pass, const struct td_quantity *max)
{
    struct td_quantity room = *max;
    td_quantity_sub(pass->arena, &room, &pass->kept_limit_sum);
    if (pass->bounds->is_upstream_exact || td_quantity_sign(&room) <= 0) {
        pass_scale(pass, &(struct scaling){max, &pass->limit_sum, TD_ROUND_DOWN,
                                           TD_CAP_RULE_POD_RANGE_MAX});
        return;
    }
    const struct scaling scaling = {&room, &pass->free_limit_sum, TD_ROUND_DOWN,
                                    TD_CAP_RULE_POD_RANGE_MAX};
    for (size_t i = 0; i < pass->count; i++) {
        if (!pass_keeps(pass, &pass->pairs[i])) {
            (void)pass_scale_one(pass, &pass->pairs[i], &scaling); /* it has the resource */
        }
    }
}

static bool pass_is_above(const struct pass *pass, const struct td_quantity *max)
{
    struct td_quantity limits = pass->limit_sum;
    if (!pass->bounds->is_upstream_exact) {
        limits = pass->free_limit_sum;
        td_quantity_add(pass->arena, &limits, &pass->kept_limit_sum);
    }
    return td_quantity_sign(max) != 0 && td_quantity_compare(max, &limits) < 0;
}

static void pass_run(struct pass *pass)
{
    const struct td_podcaps_bounds *bounds = pass->bounds;
    struct td_quantity min = td_resource_list_value(&bounds->limits->min, pass->resource);
    struct td_quantity max = td_resource_list_value(&bounds->limits->max, pass->resource);
    pass_add_up(pass);
    bool is_cpu = td_str_equal(pass->resource, TD_CPU);
    if (td_quantity_sign(&pass->limit_sum) == 0) {
        return;
    }
    if (td_quantity_compare(&min, &pass->sum) > 0) {
        pass_scale(pass, &(struct scaling){&min, &pass->sum, is_cpu ? TD_ROUND_UP : TD_ROUND_DOWN,
                                           TD_CAP_RULE_POD_RANGE_MIN});
    } else if (pass_is_above(pass, &max)) {
        pass_share(pass, &max);
    } else if (td_quantity_compare(&min, &pass->limit_sum) > 0) {
        pass_scale(pass, &(struct scaling){&min, &pass->limit_sum, TD_ROUND_DOWN,
                                           TD_CAP_RULE_POD_RANGE_MIN});
    }
}

void td_podcaps_to_limits(struct td_arena *arena, const struct td_podcaps_pair *pairs, size_t count,
                          const struct td_podcaps_bounds *bounds, struct td_cap_steps *steps)
{
    static const enum td_cap_value values[] = {TD_CAP_UPPER, TD_CAP_TARGET, TD_CAP_LOWER};
    for (size_t v = 0; v < TD_COUNT(values); v++) {
        const td_str resources[] = {TD_CPU, TD_MEMORY};
        for (size_t r = 0; r < 2; r++) {
            struct pass pass = {.arena = arena,
                                .pairs = pairs,
                                .count = count,
                                .resource = resources[r],
                                .value = values[v],
                                .bounds = bounds,
                                .steps = steps};
            pass_run(&pass);
        }
    }
}

struct td_resource_list td_podcaps_sidecar_limits(struct td_arena *arena, const struct td_pod *pod)
{
    struct td_resource_list sums = {.count = 0};
    const struct td_json *list = td_json_get_path(pod->tree, "spec.initContainers");
    for (const struct td_json *each = td_json_first_item(list); each; each = each->next) {
        td_str policy = td_json_text(each, "restartPolicy");
        const struct td_json *limits = td_json_get_path(each, "resources.limits");
        struct td_resource_list own;
        if (!td_str_equal(policy, TD_STR("Always")) ||
            td_resource_list_decode(arena, limits, &own, NULL) != TD_OK) {
            continue; /* the API server refuses limits that cannot be read */
        }
        for (size_t i = 0; i < own.count; i++) {
            struct td_quantity sum = td_resource_list_value(&sums, own.items[i].name);
            td_quantity_add(arena, &sum, &own.items[i].quantity);
            td_resource_list_set(arena, &sums, own.items[i].name, &sum);
        }
    }
    return sums;
}

/* ---- The largest node ---- */

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
        pass_scale(&pass, &(struct scaling){&room, &pass.sum, TD_ROUND_DOWN, TD_CAP_RULE_NODE});
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
