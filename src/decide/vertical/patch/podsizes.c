/*
 * The order of the rules: what was decided, brought within the LimitRange for containers, then
 * limits raised to the requests that stand above them, then the LimitRange for pods, which leaves
 * the pod alone. A resize has none of them: what the API server refuses is evicted instead.
 */
#include "decide/vertical/patch/podsizes.h"

#include "decide/vertical/patch/patchops.h"
#include "decide/vertical/patch/podpatch.h"
#include "decide/vertical/resourcelist.h"
#include "kube/patch/patch_write.h"

static const struct td_pod_size *size_of(const struct td_pod_sizes *sizes, td_str container)
{
    for (size_t i = 0; i < sizes->count; i++) {
        if (td_str_equal(sizes->items[i].container, container)) {
            return &sizes->items[i];
        }
    }
    return NULL;
}

/* The limits to write: those decided, and where a request would stand above the pod's own limit,
 * which an API server refuses, that limit raised to it. */
static struct td_resource_list fit_limits(struct td_arena *arena, const struct td_pod_size *size,
                                          const struct td_resource_list *own)
{
    struct td_resource_list limits = td_resource_list_copy(arena, &size->limits);
    for (size_t i = 0; i < size->requests.count; i++) {
        const struct td_resource_amount *request = &size->requests.items[i];
        const struct td_quantity *limit = td_resource_list_get(&limits, request->name);
        limit = limit ? limit : td_resource_list_get(own, request->name);
        if (limit && td_quantity_compare(limit, &request->quantity) < 0) {
            td_resource_list_set(arena, &limits, request->name, &request->quantity);
        }
    }
    return limits;
}

/* A list with what is above the maximum or below the minimum of a LimitRange brought to it. */
static struct td_resource_list within(struct td_arena *arena, const struct td_resource_list *sizes,
                                      const struct td_limit_summary *range)
{
    struct td_resource_list made = td_resource_list_copy(arena, sizes);
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_resource_amount *amount = &sizes->items[i];
        const struct td_quantity *max = td_resource_list_get(&range->max, amount->name);
        const struct td_quantity *min = td_resource_list_get(&range->min, amount->name);
        if (max && td_quantity_compare(&amount->quantity, max) > 0) {
            td_resource_list_set(arena, &made, amount->name, max);
        } else if (min && td_quantity_compare(&amount->quantity, min) < 0) {
            td_resource_list_set(arena, &made, amount->name, min);
        }
    }
    return made;
}

/* What is decided for a container, as far as the LimitRanges of the namespace let it in. */
static struct td_container_change change_of(struct td_arena *arena, const struct td_pod_size *size,
                                            const struct td_limit_ranges *limits,
                                            const struct td_resource_list *own)
{
    struct td_pod_size fit = *size;
    if (limits && limits->container.is_set) {
        fit.requests = within(arena, &size->requests, &limits->container);
        fit.limits = within(arena, &size->limits, &limits->container);
    }
    return (struct td_container_change){.requests = fit.requests,
                                        .limits = fit_limits(arena, &fit, own)};
}

/* One for each container; of those that nothing is decided for it is empty. */
static const struct td_container_change *changes_of(struct td_arena *arena,
                                                    const struct td_pod_sizes *sizes,
                                                    const struct td_pod *pod,
                                                    const struct td_limit_ranges *limits)
{
    struct td_container_change *changes =
        td_arena_array(arena, struct td_container_change, pod->container_count + 1);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        const struct td_pod_size *size =
            container->name.len > 0 ? size_of(sizes, container->name) : NULL;
        changes[i] = (struct td_container_change){.requests = {.count = 0}};
        if (size && size->requests.count + size->limits.count > 0) {
            changes[i] = change_of(arena, size, limits, td_vertical_limits(container));
        }
    }
    return changes;
}

/* Would all containers together have more of a resource than a LimitRange for pods allows? */
static bool is_too_much(struct td_arena *arena, const struct td_pod *pod,
                        const struct td_container_change *changes, bool is_limits,
                        const struct td_resource_amount *max)
{
    struct td_quantity total = td_quantity_new(0, TD_QUANTITY_DECIMAL_SI);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *c = &pod->containers[i];
        const struct td_quantity *changed =
            td_resource_list_get(is_limits ? &changes[i].limits : &changes[i].requests, max->name);
        const struct td_quantity *has = td_resource_list_get(
            is_limits ? td_vertical_limits(c) : td_vertical_requests(c), max->name);
        if (changed || has) {
            td_quantity_add(arena, &total, changed ? changed : has);
        }
    }
    return td_quantity_compare(&total, &max->quantity) > 0;
}

static bool is_let_in(struct td_arena *arena, const struct td_pod *pod,
                      const struct td_container_change *changes,
                      const struct td_limit_ranges *limits)
{
    for (size_t i = 0; limits && limits->pod.has_max && i < limits->pod.max.count; i++) {
        const struct td_resource_amount *max = &limits->pod.max.items[i];
        if (is_too_much(arena, pod, changes, false, max) ||
            is_too_much(arena, pod, changes, true, max)) {
            return false;
        }
    }
    return true;
}

/* Has the container a resources stanza, be it one with claims only? */
static bool has_stanza(const struct td_pod *pod, size_t index)
{
    const struct td_json *c = td_json_first_item(td_json_get_path(pod->tree, "spec.containers"));
    for (; c && index > 0; index--) {
        c = c->next;
    }
    return td_json_is(td_json_get(c, TD_STR("resources")), TD_JSON_TYPE_OBJECT);
}

/* The patch of all containers; false: there is none. */
static bool write_containers(struct td_arena *arena, const struct td_pod *pod,
                             const struct td_container_change *changes, struct td_json *patches,
                             struct td_notes *clauses)
{
    bool has_any = false;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        if (changes[i].requests.count + changes[i].limits.count == 0) {
            continue;
        }
        const struct td_patch_place place = {
            .path = td_patchops_container_path(arena, i),
            .has_requests = container->has_spec_requests,
            .has_limits = container->has_spec_limits,
            .has_stanza = has_stanza(pod, i),
        };
        td_patchops_set_resources(arena, patches, &place, &changes[i].requests, &changes[i].limits);
        td_notes_add(arena, clauses, td_pod_patch_clause(arena, i, &changes[i]));
        has_any = true;
    }
    return has_any;
}

struct td_pod_sizes_patch td_pod_sizes_patch(struct td_arena *arena,
                                             const struct td_pod_sizes *sizes,
                                             const struct td_pod *pod,
                                             const struct td_limit_ranges *limits)
{
    const struct td_container_change *changes = changes_of(arena, sizes, pod, limits);
    if (!is_let_in(arena, pod, changes, limits)) {
        return (struct td_pod_sizes_patch){.is_kept_out = true};
    }
    struct td_json *patches = td_json_new_array(arena);
    struct td_notes clauses = {.count = 0};
    if (!td_json_is(pod->meta.annotations, TD_JSON_TYPE_OBJECT)) {
        td_patch_append(arena, patches, "add", TD_STR("/metadata/annotations"),
                        td_json_new_object(arena));
    }
    const struct td_pod_size *whole = size_of(sizes, TD_STR_EMPTY);
    struct td_stanza stanza = {.note_count = 0};
    if (whole && pod->has_pod_level) {
        stanza.requests = whole->requests;
        stanza.limits = fit_limits(arena, whole, &pod->pod_limits);
        td_stanza_patch(arena, pod, &stanza, patches);
    }
    bool has_containers = write_containers(arena, pod, changes, patches, &clauses);
    if (!has_containers && stanza.requests.count + stanza.limits.count == 0) {
        return (struct td_pod_sizes_patch){.patches = NULL};
    }
    td_patchops_set_annotation(arena, patches, TD_STR("vpaUpdates"),
                               td_pod_patch_updates(arena, sizes->hvpa, &stanza, &clauses));
    return (struct td_pod_sizes_patch){.patches = patches};
}

/* ---- Pods that run ---- */

bool td_pod_sizes_are_in_spec(const struct td_pod_sizes *sizes, const struct td_pod *pod)
{
    const struct td_pod_size *whole = pod->has_pod_level ? size_of(sizes, TD_STR_EMPTY) : NULL;
    bool is_same = !whole || (td_resource_list_has_all(&pod->pod_requests, &whole->requests) &&
                              td_resource_list_has_all(&pod->pod_limits, &whole->limits));
    for (size_t i = 0; i < pod->container_count && is_same; i++) {
        const struct td_pod_container *c = &pod->containers[i];
        const struct td_pod_size *size = size_of(sizes, c->name);
        is_same = !size || (td_resource_list_has_all(&c->spec_requests, &size->requests) &&
                            td_resource_list_has_all(&c->spec_limits, &size->limits));
    }
    return is_same;
}

struct td_json *td_pod_sizes_resize(struct td_arena *arena, const struct td_pod_sizes *sizes,
                                    const struct td_pod *pod)
{
    if (td_pod_sizes_are_in_spec(sizes, pod)) {
        return NULL;
    }
    struct td_container_change *changes =
        td_arena_array(arena, struct td_container_change, pod->container_count + 1);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_size *size = size_of(sizes, pod->containers[i].name);
        changes[i] = (struct td_container_change){.lacks_recommendation = !size};
        if (size) {
            changes[i].requests = size->requests;
            changes[i].limits = size->limits;
        }
    }
    struct td_json *patches = td_json_new_array(arena);
    td_patch_append(arena, patches, "test", TD_STR("/metadata/uid"),
                    td_json_new_string(arena, pod->meta.uid));
    const struct td_pod_size *whole = size_of(sizes, TD_STR_EMPTY);
    if (whole && pod->has_pod_level) {
        const struct td_stanza stanza = {.requests = whole->requests, .limits = whole->limits};
        td_stanza_patch(arena, pod, &stanza, patches);
    }
    struct td_notes clauses = {.count = 0};
    (void)write_containers(arena, pod, changes, patches, &clauses);
    return patches;
}

static bool is_above(const struct td_resource_list *sizes, const struct td_resource_list *max)
{
    for (size_t i = 0; i < sizes->count; i++) {
        const struct td_quantity *most = td_resource_list_get(max, sizes->items[i].name);
        if (most && td_quantity_compare(most, &sizes->items[i].quantity) < 0) {
            return true;
        }
    }
    return false;
}

bool td_pod_sizes_exceed(const struct td_pod_sizes *sizes, const struct td_limit_ranges *limits)
{
    for (size_t i = 0; limits && limits->container.has_max && i < sizes->count; i++) {
        const struct td_pod_size *size = &sizes->items[i];
        if (size->container.len > 0 && (is_above(&size->requests, &limits->container.max) ||
                                        is_above(&size->limits, &limits->container.max))) {
            return true;
        }
    }
    return false;
}
