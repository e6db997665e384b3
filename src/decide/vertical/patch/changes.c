/* Capped target to requests, requests to limits: one change for each container, empty where the VPA
 * does not control it. */
#include "decide/vertical/patch/changes.h"

#include "decide/vertical/patch/podcaps.h"
#include "decide/vertical/patch/proportional.h"
#include "decide/vertical/resourcelist.h"

static void change_limits(struct td_arena *arena, const struct td_changes_input *input,
                          const struct td_pod_container *container,
                          struct td_container_change *change)
{
    const struct td_container_policy *policy =
        td_vpa_container_policy(&input->vpa->policy, container->name);
    if (policy && policy->is_requests_only) {
        return;
    }
    const struct td_limit_summary *limits = td_limit_summary_or_null(&input->limits->container);
    struct td_proportional_limits made = td_proportional_limits(
        arena,
        &(struct td_original){.limits = td_vertical_origin_limits(container),
                              .requests = td_vertical_origin_requests(container),
                              .default_limits =
                                  limits && !input->is_pod_level ? &limits->default_limit : NULL},
        &change->requests);
    change->limits = made.limits;
    for (size_t i = 0; i < made.note_count; i++) {
        td_notes_add(arena, &change->notes, made.notes[i]);
    }
}

/* Only requests that the pod states are overwritten, and limits beside them. */
static void change_present(struct td_arena *arena, const struct td_changes_input *input,
                           const struct td_pod_container *container,
                           const struct td_resource_list *target,
                           struct td_container_change *change)
{
    const struct td_container_policy *policy =
        td_vpa_container_policy(&input->vpa->policy, container->name);
    for (size_t i = 0; i < container->spec_requests.count; i++) {
        td_str name = container->spec_requests.items[i].name;
        const struct td_quantity *wanted = target ? td_resource_list_get(target, name) : NULL;
        if (!wanted) {
            change->lacks_recommendation =
                change->lacks_recommendation || td_resource_is_scaled(name);
            continue;
        }
        td_resource_list_set(arena, &change->requests, name, wanted);
        if ((policy && policy->is_requests_only) ||
            !td_resource_list_get(&container->spec_limits, name)) {
            continue;
        }
        const struct td_proportion proportion = {
            .limit = td_resource_list_get(td_vertical_origin_limits(container), name),
            .request = td_resource_list_get(td_vertical_origin_requests(container), name),
            .recommended = wanted,
        };
        struct td_proportional_limit limit = td_proportional_limit(name, &proportion);
        if (limit.is_set) {
            td_resource_list_set(arena, &change->limits, name, &limit.limit);
        }
    }
}

void td_changes_make(struct td_arena *arena, const struct td_changes_input *input,
                     struct td_changes *ret)
{
    const struct td_pod *pod = input->pod;
    const struct td_vpa *vpa = input->vpa;
    *ret = (struct td_changes){
        .containers = td_arena_array(arena, struct td_container_change, pod->container_count)};
    if (vpa->mode == TD_VPA_OFF) {
        return;
    }
    if (vpa->has_recommendation) {
        td_cap_for_pod(
            arena,
            &(struct td_capping){
                .pod = pod,
                .recommendation = &vpa->recommendation,
                .policy = &vpa->policy,
                .container_limits = input->is_pod_level ? NULL : &input->limits->container,
                .pod_limits = &input->limits->pod,
                .largest_node = input->largest_node,
            },
            &ret->capped);
    }
    const struct td_recommendation *capped = &ret->capped.recommendation;
    const struct td_podcaps_pair *pairs = td_podcaps_pair(arena, pod, capped);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_container_recommendation *entry = pairs[i].entry;
        struct td_container_change *change = &ret->containers[i];
        if (entry) {
            change->notes = ret->capped.notes[entry - capped->containers];
        }
        if (input->is_pod_level) {
            change_present(arena, input, &pod->containers[i], entry ? &entry->target : NULL,
                           change);
        } else if (entry) {
            change->requests = td_resource_list_copy(arena, &entry->target);
            change_limits(arena, input, &pod->containers[i], change);
            td_resource_list_drop(&change->requests, TD_STR_EMPTY);
        }
    }
}
