/* Containers under the VPA's control are made subjects with their requests and targets; then each
 * requirement is held against all of them. Upstream's own reading is kept beside ours. */
#include "decide/vertical/updater/requirements.h"

#include "model/name_table.h"

static int64_t milli_of(const struct td_resource_list *resources, td_str name)
{
    const struct td_quantity *quantity = td_resource_list_get(resources, name);
    return quantity ? td_quantity_milli(quantity) : 0;
}

static bool is_met(enum td_change_requirement change, int64_t request_milli, int64_t target_milli)
{
    return (change == TD_TARGET_HIGHER_THAN_REQUESTS && target_milli > request_milli) ||
           (change == TD_TARGET_LOWER_THAN_REQUESTS && target_milli < request_milli);
}

/* One that is judged: a container under VPA control, or the pod's own stanza. */
struct subject {
    const struct td_resource_list *requests;
    const struct td_resource_list *target;
    const struct td_pod *pod; /* of the container; NULL: this is the pod's stanza */
};

/* A stanza is judged by what it requests and has a target for. A container is judged by everything
 * but what it leaves to the stanza. */
static bool is_judged(const struct subject *subject, td_str resource)
{
    bool has_request = td_resource_list_get(subject->requests, resource);
    if (!subject->pod) {
        return has_request && td_resource_list_get(subject->target, resource);
    }
    return has_request || (!td_resource_list_get(&subject->pod->pod_requests, resource) &&
                           !td_resource_list_get(&subject->pod->pod_limits, resource));
}

/* At least one of the requirement's resources moves the way it asks for. */
static bool meets(const struct subject *subject, const struct td_eviction_requirement *requirement)
{
    for (size_t i = 0; i < requirement->resource_count; i++) {
        td_str resource = requirement->resources[i];
        if (is_judged(subject, resource) &&
            is_met(requirement->change, milli_of(subject->requests, resource),
                   milli_of(subject->target, resource))) {
            return true;
        }
    }
    return false;
}

static bool is_met_by_any(const struct td_eviction_requirement *requirement,
                          const struct subject *subjects, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (meets(&subjects[i], requirement)) {
            return true;
        }
    }
    return false;
}

/* Upstream: one container meets all, or lacks a request. */
static bool is_admitted_as_upstream(const struct td_vpa *vpa, const struct subject *subjects,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool has_both = td_resource_list_get(subjects[i].requests, TD_STR("cpu")) &&
                        td_resource_list_get(subjects[i].requests, TD_STR("memory"));
        size_t met = 0;
        while (has_both && met < vpa->eviction_requirement_count &&
               meets(&subjects[i], &vpa->eviction_requirements[met])) {
            met++;
        }
        if (!has_both || met == vpa->eviction_requirement_count) {
            return true;
        }
    }
    return false;
}

/* The containers under VPA control; `ret` has room for all of the pod. */
static size_t controlled(struct td_arena *arena, const struct td_vpa *vpa, const struct td_pod *pod,
                         const struct td_recommendation *recommendation, bool counts_off,
                         struct subject *ret)
{
    struct td_name_table names = td_name_table_new(arena, recommendation->container_count);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        td_name_table_add(&names, recommendation->containers[i].container_name, i);
    }
    size_t count = 0;
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        size_t found = td_name_table_find(&names, container->name);
        const struct td_container_policy *policy =
            td_vpa_container_policy(&vpa->policy, container->name);
        if (found == TD_NAME_NONE || (policy && policy->is_off && !counts_off)) {
            continue;
        }
        ret[count++] = (struct subject){
            .requests = td_vertical_requests(container),
            .target = &recommendation->containers[found].target,
            .pod = pod,
        };
    }
    return count;
}

bool td_requirements_admit(struct td_arena *arena, const struct td_vpa *vpa,
                           const struct td_pod *pod, const struct td_recommendation *recommendation,
                           bool is_upstream_exact)
{
    if (!vpa->has_update_policy) {
        return true;
    }
    struct subject *subjects = td_arena_array(arena, struct subject, pod->container_count + 1);
    size_t count = controlled(arena, vpa, pod, recommendation, is_upstream_exact, subjects);
    if (is_upstream_exact) {
        return is_admitted_as_upstream(vpa, subjects, count);
    }
    if (count == 0) {
        return false;
    }
    if (recommendation->pod.is_set) {
        subjects[count++] =
            (struct subject){.requests = &pod->pod_requests, .target = &recommendation->pod.target};
    }
    for (size_t i = 0; i < vpa->eviction_requirement_count; i++) {
        if (!is_met_by_any(&vpa->eviction_requirements[i], subjects, count)) {
            return false;
        }
    }
    return true;
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
    (void)td_buf_append_format(out, ", %sby at least one container",
                               vpa->eviction_requirement_count > 1 ? "each " : "");
}
