#include "decide/vertical/patch/origin.h"

#include "decide/vertical/resourcelist.h"

static const td_str scaled[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};

/* One resource of a container that has a limit for it now. */
static void set_resource(struct td_arena *arena, const struct td_template_container *template,
                         const struct td_resource_list *default_limits, td_str resource,
                         struct td_pod_container *container)
{
    const struct td_quantity *limit = td_resource_list_get(&template->limits, resource);
    const struct td_quantity *request = td_resource_list_get(&template->requests, resource);
    bool has_default = default_limits && td_resource_list_get(default_limits, resource);
    if (!td_resource_list_get(td_vertical_limits(container), resource) ||
        (!limit && (!request || !has_default))) {
        return;
    }
    if (limit) {
        td_resource_list_set(arena, &container->origin_limits, resource, limit);
    } else {
        td_resource_list_drop(&container->origin_limits, resource); /* the default stands in */
    }
    if (request) {
        td_resource_list_set(arena, &container->origin_requests, resource, request);
    } else {
        td_resource_list_drop(&container->origin_requests, resource); /* as much as the limit */
    }
}

static void set_container(struct td_arena *arena, const struct td_template_container *template,
                          const struct td_resource_list *default_limits,
                          struct td_pod_container *container)
{
    container->origin_requests = td_resource_list_copy(arena, td_vertical_requests(container));
    container->origin_limits = td_resource_list_copy(arena, td_vertical_limits(container));
    for (size_t i = 0; i < TD_COUNT(scaled); i++) {
        set_resource(arena, template, default_limits, scaled[i], container);
    }
    container->has_origin = true;
}

/* The pod's own stanza: a request that it lacks is the sum of those of its containers, as the API
 * server fills it in, else as much as the limit. */
static void set_pod(struct td_arena *arena, const struct td_pod_template *template,
                    struct td_pod *pod)
{
    pod->origin_pod_limits = td_resource_list_copy(arena, &template->pod_limits);
    pod->origin_pod_requests = td_resource_list_copy(arena, &template->pod_requests);
    for (size_t i = 0; i < TD_COUNT(scaled); i++) {
        struct td_quantity sum = td_quantity_new(0, TD_QUANTITY_NONE);
        bool is_asked = false;
        for (size_t c = 0; c < template->container_count; c++) {
            const struct td_quantity *part =
                td_resource_list_get(&template->containers[c].requests, scaled[i]);
            if (part) {
                td_quantity_add(arena, &sum, part);
                is_asked = true;
            }
        }
        if (is_asked && !td_resource_list_get(&template->pod_requests, scaled[i])) {
            td_resource_list_set(arena, &pod->origin_pod_requests, scaled[i], &sum);
        }
    }
}

void td_vertical_set_origin(struct td_arena *arena, const struct td_pod_template *template,
                            const struct td_resource_list *default_limits, struct td_pod *pod)
{
    if (!template || !template->is_set) {
        return;
    }
    struct td_pod_container *containers =
        td_arena_array(arena, struct td_pod_container, pod->container_count);
    for (size_t i = 0; i < pod->container_count; i++) {
        containers[i] = pod->containers[i];
        const struct td_template_container *from =
            td_pod_template_container(template, containers[i].name);
        if (from && td_vertical_limits(&containers[i])->count > 0) {
            set_container(arena, from, default_limits, &containers[i]);
        }
    }
    pod->containers = containers;
    if (pod->has_pod_level && pod->pod_limits.count > 0) {
        set_pod(arena, template, pod);
    }
}
