#include "decide/vertical/pod.h"

const struct td_resource_list *td_vertical_requests(const struct td_pod_container *container)
{
    return container->has_status_resources ? &container->status_requests
                                           : &container->spec_requests;
}

const struct td_resource_list *td_vertical_limits(const struct td_pod_container *container)
{
    return container->has_status_resources ? &container->status_limits : &container->spec_limits;
}

bool td_vertical_has_requests(const struct td_pod_container *container)
{
    return container->has_status_resources ? container->has_status_requests
                                           : container->has_spec_requests;
}

bool td_vertical_has_limits(const struct td_pod_container *container)
{
    return container->has_status_resources ? container->has_status_limits
                                           : container->has_spec_limits;
}

/* Some amount of the spec that the status has too, and otherwise. */
static bool is_list_behind(const struct td_resource_list *spec,
                           const struct td_resource_list *status)
{
    for (size_t i = 0; i < spec->count; i++) {
        const struct td_quantity *seen = td_resource_list_get(status, spec->items[i].name);
        if (seen && td_quantity_compare(seen, &spec->items[i].quantity) != 0) {
            return true;
        }
    }
    return false;
}

bool td_vertical_is_behind(const struct td_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        if (is_list_behind(&container->spec_requests, &container->status_requests) ||
            is_list_behind(&container->spec_limits, &container->status_limits)) {
            return true;
        }
    }
    return false;
}

const struct td_resource_list *td_vertical_origin_requests(const struct td_pod_container *container)
{
    return container->has_origin ? &container->origin_requests : td_vertical_requests(container);
}

const struct td_resource_list *td_vertical_origin_limits(const struct td_pod_container *container)
{
    return container->has_origin ? &container->origin_limits : td_vertical_limits(container);
}
