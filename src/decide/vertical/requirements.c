#include "decide/vertical/requirements.h"

#include "decide/vertical/names.h"

static int64_t milli_of(const struct td_resource_list *resources, td_str name)
{
    const struct td_quantity *quantity = td_resource_list_get(resources, name);
    return quantity ? td_quantity_milli(quantity) : 0;
}

/* At least one of its resources moves the way it asks for. */
static bool holds(const struct td_eviction_requirement *requirement,
                  const struct td_resource_list *requests, const struct td_resource_list *target)
{
    for (size_t i = 0; i < requirement->resource_count; i++) {
        int64_t request = milli_of(requests, requirement->resources[i]);
        int64_t wanted = milli_of(target, requirement->resources[i]);
        bool is_met = (requirement->change == TD_TARGET_HIGHER_THAN_REQUESTS && wanted > request) ||
                      (requirement->change == TD_TARGET_LOWER_THAN_REQUESTS && wanted < request);
        if (is_met) {
            return true;
        }
    }
    return false;
}

static bool admit_container(const struct td_vpa *vpa, const struct td_resource_list *requests,
                            const struct td_resource_list *target)
{
    if (!td_resource_list_get(requests, TD_STR("cpu")) ||
        !td_resource_list_get(requests, TD_STR("memory"))) {
        return true;
    }
    for (size_t i = 0; i < vpa->eviction_requirement_count; i++) {
        if (!holds(&vpa->eviction_requirements[i], requests, target)) {
            return false;
        }
    }
    return true;
}

bool td_requirements_admit(struct td_arena *arena, const struct td_vpa *vpa,
                           const struct td_vertical_pod *pod,
                           const struct td_recommendation *recommendation, bool counts_off)
{
    if (!vpa->has_update_policy) {
        return true;
    }
    struct td_name_table names = td_name_table_new(arena, recommendation->container_count);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        td_name_table_add(&names, recommendation->containers[i].container_name, i);
    }
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *container = &pod->containers[i];
        size_t found = td_name_table_find(&names, container->name);
        const struct td_container_policy *policy =
            td_vpa_container_policy(&vpa->policy, container->name);
        if (found == TD_NAME_NONE || (policy && policy->is_off && !counts_off)) {
            continue;
        }
        if (admit_container(vpa, td_vertical_requests(container),
                            &recommendation->containers[found].target)) {
            return true;
        }
    }
    return false;
}

void td_requirements_write(const struct td_vpa *vpa, struct td_buf *out)
{
    for (size_t i = 0; i < vpa->eviction_requirement_count; i++) {
        const struct td_eviction_requirement *requirement = &vpa->eviction_requirements[i];
        bool is_higher = requirement->change == TD_TARGET_HIGHER_THAN_REQUESTS;
        (void)td_buf_append_format(out, "%sto Target%sThanRequests of ",
                                   i == 0 ? "only " : ", and ", is_higher ? "Higher" : "Lower");
        for (size_t j = 0; j < requirement->resource_count; j++) {
            (void)td_buf_append(out, j == 0 ? TD_STR_EMPTY : TD_STR(" or "));
            (void)td_buf_append(out, requirement->resources[j]);
        }
    }
    (void)td_buf_append(out, TD_STR(", by one container"));
}
