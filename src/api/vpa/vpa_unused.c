/*
 * What a VPA says without effect. Nothing here is refused: a policy may be written for a container
 * or a mode that is still to come. A resource counts as controlled when some container policy
 * controls it, or when a container without a policy may be there (no entry "*").
 */
#include "api/object_check.h"
#include "api/vpa/vpa.h"

static const td_str unused_resources[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};

static bool unused_is_known(td_str resource)
{
    return td_str_is_among(resource, unused_resources, TD_COUNT(unused_resources));
}

static void unused_add(struct td_field_errors *ret, const struct td_field_path *path, td_str detail)
{
    td_field_error_add(ret, path, TD_FIELD_INVALID, TD_STR_EMPTY, detail);
}

/* --- eviction requirements --- */

static bool unused_may_control(const struct td_resource_policy *policy, td_str resource)
{
    bool has_default = false;
    for (size_t i = 0; i < policy->container_count; i++) {
        const struct td_container_policy *container = &policy->containers[i];
        has_default = has_default || td_str_equal(container->container_name, TD_STR("*"));
        if (!container->is_off && td_vpa_controls(container, resource)) {
            return true;
        }
    }
    return !has_default;
}

static void unused_requirements(const struct td_vpa *vpa, const struct td_field_path *parent,
                                struct td_field_errors *ret)
{
    struct td_field_path update = td_field_child(parent, TD_STR("updatePolicy"));
    struct td_field_path list = td_field_child(&update, TD_STR("evictionRequirements"));
    for (size_t i = 0; i < vpa->eviction_requirement_count; i++) {
        const struct td_eviction_requirement *requirement = &vpa->eviction_requirements[i];
        for (size_t r = 0; r < requirement->resource_count; r++) {
            td_str resource = requirement->resources[r];
            if (!unused_is_known(resource) || unused_may_control(&vpa->policy, resource)) {
                continue;
            }
            struct td_field_path resources =
                td_field_child(TD_FIELD_ITEM(&list, i), TD_STR("resources"));
            bool is_higher = requirement->change == TD_TARGET_HIGHER_THAN_REQUESTS;
            unused_add(ret, TD_FIELD_ITEM(&resources, r),
                       td_arena_format(ret->arena,
                                       "no container policy controls %.*s, so its target counts as "
                                       "0: %s",
                                       TD_STR_ARG(resource),
                                       is_higher ? "it is never higher than a request"
                                                 : "it is lower than any request"));
        }
    }
}

/* --- bounds --- */

/* Bounds at `path` of what `why` says is not recommended; NULL: `controls` decides. */
static void unused_bounds(const struct td_resource_list *bounds, const struct td_field_path *path,
                          const char *why, bool (*controls)(const void *policy, td_str resource),
                          const void *policy, struct td_field_errors *ret)
{
    for (size_t i = 0; i < bounds->count; i++) {
        td_str resource = bounds->items[i].name;
        struct td_field_path item = td_kind_key(path, resource);
        if (!unused_is_known(resource)) {
            unused_add(ret, &item, TD_STR("has no effect: only cpu and memory are recommended"));
        } else if (why) {
            unused_add(ret, &item, td_str_from(why));
        } else if (!controls(policy, resource)) {
            unused_add(ret, &item,
                       td_arena_format(ret->arena,
                                       "has no effect: controlledResources leaves %.*s out",
                                       TD_STR_ARG(resource)));
        }
    }
}

static bool unused_container_controls(const void *policy, td_str resource)
{
    return td_vpa_controls(policy, resource);
}

static bool unused_pod_controls(const void *policy, td_str resource)
{
    const struct td_pod_policy *pod = policy;
    return !pod->has_controlled_resources ||
           td_str_is_among(resource, pod->controlled_resources, pod->controlled_resource_count);
}

static void unused_policies(const struct td_vpa *vpa, const struct td_field_path *parent,
                            struct td_field_errors *ret)
{
    const struct td_resource_policy *policy = &vpa->policy;
    struct td_field_path resource = td_field_child(parent, TD_STR("resourcePolicy"));
    struct td_field_path list = td_field_child(&resource, TD_STR("containerPolicies"));
    for (size_t i = 0; i < policy->container_count; i++) {
        const struct td_container_policy *container = &policy->containers[i];
        struct td_field_path item = td_field_item(&list, i);
        const char *why = container->is_off ? "has no effect: the mode of the policy is Off" : NULL;
        unused_bounds(&container->min_allowed, TD_FIELD(&item, "minAllowed"), why,
                      unused_container_controls, container, ret);
        unused_bounds(&container->max_allowed, TD_FIELD(&item, "maxAllowed"), why,
                      unused_container_controls, container, ret);
    }
    struct td_field_path pod = td_field_child(&resource, TD_STR("podPolicies"));
    unused_bounds(&policy->pod.min_allowed, TD_FIELD(&pod, "minAllowed"), NULL, unused_pod_controls,
                  &policy->pod, ret);
    unused_bounds(&policy->pod.max_allowed, TD_FIELD(&pod, "maxAllowed"), NULL, unused_pod_controls,
                  &policy->pod, ret);
}

void td_vpa_find_unused(const struct td_vpa *vpa, const struct td_field_path *spec,
                        struct td_field_errors *ret)
{
    unused_requirements(vpa, spec, ret);
    unused_policies(vpa, spec, ret);
}
