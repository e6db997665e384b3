#include "api/vpa.h"

const struct td_container_policy *td_vpa_container_policy(const struct td_resource_policy *policy,
                                                          td_str container)
{
    const struct td_container_policy *fallback = NULL;
    if (!policy || !policy->is_set) {
        return NULL;
    }
    for (size_t i = 0; i < policy->container_count; i++) {
        if (td_str_equal(policy->containers[i].container_name, container)) {
            return &policy->containers[i];
        }
        if (td_str_equal(policy->containers[i].container_name, TD_STR("*"))) {
            fallback = &policy->containers[i];
        }
    }
    return fallback;
}

bool td_vpa_controls(const struct td_container_policy *policy, td_str resource)
{
    if (!policy || !policy->has_controlled_resources) {
        return td_str_equal(resource, TD_STR("cpu")) || td_str_equal(resource, TD_STR("memory"));
    }
    for (size_t i = 0; i < policy->controlled_resource_count; i++) {
        if (td_str_equal(policy->controlled_resources[i], resource)) {
            return true;
        }
    }
    return false;
}
