/* Changes are made as for admission, then settled with the boosts of the pod: a boosted container
 * is not written until its boost has expired. */
#include "decide/vertical/patch/resizepatch.h"

#include "base/error.h"
#include "decide/vertical/estimator/adaptive_pod.h"
#include "decide/vertical/patch/boost.h"
#include "decide/vertical/patch/patchops.h"
#include "decide/vertical/patch/podpatch.h"
#include "decide/vertical/resourcelist.h"
#include "kube/patch/patch_write.h"

/* What a container gets: nothing while its boost lasts, its recommendation or else its original
 * resources once that has expired. */
static int settle_container(struct td_arena *arena, const struct td_resize_input *input,
                            size_t index, struct td_container_change *change, bool *ret_is_written,
                            struct td_error *err)
{
    const struct td_pod_container *container = &input->pod->containers[index];
    td_str annotation = td_boost_annotation(arena, container->name);
    bool is_boosted = td_json_get(input->pod->meta.annotations, annotation) != NULL;
    bool is_expired =
        is_boosted && td_boost_is_expired(input->pod, input->vpa, annotation, input->now);
    *ret_is_written = is_expired || (!is_boosted && input->vpa->mode != TD_VPA_OFF);
    if (!*ret_is_written) {
        *change = (struct td_container_change){.lacks_recommendation = false};
    }
    if (!is_expired) {
        return TD_OK;
    }
    struct td_resource_list requests;
    struct td_resource_list limits;
    int code = td_boost_original(arena, input->pod, container->name, &requests, &limits, err);
    if (code == TD_OK && change->requests.count + change->limits.count == 0) {
        change->requests = requests;
        change->limits = limits;
    }
    return code;
}

static int settle(struct td_arena *arena, const struct td_resize_input *input,
                  struct td_resize_patch *patch, bool *is_written, struct td_error *err)
{
    const struct td_changes_input changes = {
        .pod = input->pod,
        .vpa = input->vpa,
        .limits = input->limits,
        .largest_node = input->largest_node,
        .is_pod_level = patch->is_pod_level,
    };
    td_changes_make(arena, &changes, &patch->changes);
    for (size_t i = 0; i < input->pod->container_count; i++) {
        int code =
            settle_container(arena, input, i, &patch->changes.containers[i], &is_written[i], err);
        if (code < 0) {
            return code;
        }
    }
    if (!patch->is_pod_level) {
        return TD_OK;
    }
    int code = td_stanza_make(arena, &changes, patch->changes.containers,
                              &patch->changes.capped.steps, &patch->stanza, err);
    for (size_t i = 0; i < input->pod->container_count; i++) {
        const struct td_container_change *change = &patch->changes.containers[i];
        is_written[i] = change->requests.count + change->limits.count > 0;
    }
    return code;
}

static td_str resized_text(struct td_arena *arena, const struct td_resize_input *input,
                           const struct td_resize_patch *patch, const bool *is_written)
{
    const struct td_pod *pod = input->pod;
    const struct td_resource_list **requests =
        td_arena_array(arena, const struct td_resource_list *, pod->container_count);
    for (size_t i = 0; i < pod->container_count; i++) {
        requests[i] = is_written[i] ? &patch->changes.containers[i].requests : NULL;
    }
    return td_resized_text(arena, pod, requests, input->now);
}

static void write_annotations(struct td_arena *arena, const struct td_resize_input *input,
                              struct td_resize_patch *patch, const bool *is_written,
                              const struct td_notes *clauses)
{
    const struct td_json *annotations = input->pod->meta.annotations;
    if (!annotations) {
        td_patch_append(arena, patch->pod, "add", TD_STR("/metadata/annotations"),
                        td_json_new_object(arena));
    }
    td_patchops_set_annotation(arena, patch->pod, TD_STR("vpaInPlaceUpdated"), TD_STR("true"));
    if (input->is_tracked) {
        td_patchops_set_annotation(arena, patch->pod, TD_RESIZED_ANNOTATION,
                                   resized_text(arena, input, patch, is_written));
    }
    if (patch->is_pod_level) {
        td_patchops_set_annotation(
            arena, patch->pod, TD_STR("vpaUpdates"),
            td_pod_patch_updates(arena, input->vpa->meta.name, &patch->stanza, clauses));
    }
    for (const struct td_json *item = td_json_first_member(annotations); item; item = item->next) {
        if (td_boost_is_expired(input->pod, input->vpa, item->key, input->now)) {
            td_patchops_remove_annotation(arena, patch->pod, item->key);
        }
    }
}

int td_resize_patch(struct td_arena *arena, const struct td_resize_input *input,
                    struct td_resize_patch *ret, struct td_error *err)
{
    const struct td_pod *pod = input->pod;
    struct td_resize_patch patch = {
        .resize = td_json_new_array(arena),
        .pod = td_json_new_array(arena),
        .is_pod_level = input->gates.pod_level_resources && pod->has_pod_level,
    };
    bool *is_written = td_arena_array(arena, bool, pod->container_count);
    int code = settle(arena, input, &patch, is_written, err);
    if (code < 0) {
        return code;
    }
    struct td_notes clauses = {.items = NULL};
    td_stanza_patch(arena, pod, &patch.stanza, patch.resize);
    patch.has_change = !td_resource_list_has_all(&pod->pod_requests, &patch.stanza.requests) ||
                       !td_resource_list_has_all(&pod->pod_limits, &patch.stanza.limits);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_container_change *change = &patch.changes.containers[i];
        const struct td_patch_place place = {
            .path = td_patchops_container_path(arena, i),
            .has_requests = pod->containers[i].has_spec_requests,
            .has_limits = pod->containers[i].has_spec_limits,
        };
        if (is_written[i]) {
            patch.has_change =
                patch.has_change ||
                !td_resource_list_has_all(&pod->containers[i].spec_requests, &change->requests) ||
                !td_resource_list_has_all(&pod->containers[i].spec_limits, &change->limits);
            td_patchops_set_resources(arena, patch.resize, &place, &change->requests,
                                      &change->limits);
            td_notes_add(arena, &clauses, td_pod_patch_clause(arena, i, change));
        }
    }
    if (patch.resize->count == 0) {
        *ret = patch;
        return td_error_set(err, TD_NOT_FOUND, TD_RESIZE_NOTHING);
    }
    write_annotations(arena, input, &patch, is_written, &clauses);
    *ret = patch;
    return td_arena_check(arena, err);
}
