/* First what is decided (a refusal by LimitRange, changes, boosts), then the operations in their
 * order: the stanza of the pod, its containers, the account, the list of containers. */
#include "decide/vertical/patch/podpatch.h"

#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/patch/boost.h"
#include "decide/vertical/patch/patchops.h"
#include "decide/vertical/resourcelist.h"
#include "kube/patch/patch_write.h"

static void join(struct td_buf *out, const struct td_notes *notes, td_str separator)
{
    for (size_t i = 0; i < notes->count; i++) {
        if (i > 0) {
            (void)td_buf_append(out, separator); /* cut at the limit of one text */
        }
        (void)td_buf_append(out, notes->items[i]);
    }
}

static td_str joined(struct td_arena *arena, td_str prefix, const struct td_notes *notes,
                     td_str separator)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    (void)td_buf_append(&text, prefix);
    join(&text, notes, separator);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

static void note_list(struct td_arena *arena, struct td_notes *notes,
                      const struct td_resource_list *list, const char *word)
{
    for (size_t i = 0; i < list->count; i++) {
        td_notes_add(arena, notes,
                     td_arena_format(arena, "%.*s %s", TD_STR_ARG(list->items[i].name), word));
    }
}

td_str td_pod_patch_clause(struct td_arena *arena, size_t index,
                           const struct td_container_change *change)
{
    struct td_notes notes = {.items = NULL};
    for (size_t i = 0; i < change->notes.count; i++) {
        td_notes_add(arena, &notes, change->notes.items[i]);
    }
    note_list(arena, &notes, &change->requests, "request");
    note_list(arena, &notes, &change->limits, "limit");
    return joined(arena, td_arena_format(arena, "container %zu: ", index), &notes, TD_STR(", "));
}

td_str td_pod_patch_updates(struct td_arena *arena, td_str vpa_name, const struct td_stanza *stanza,
                            const struct td_notes *clauses)
{
    struct td_notes all = {.items = NULL};
    struct td_notes pod = {.items = NULL};
    for (size_t i = 0; stanza && i < stanza->note_count; i++) {
        if (stanza->notes[i].container.len == 0) {
            td_notes_add(arena, &pod, td_stanza_note_text(arena, &stanza->notes[i]));
        }
    }
    if (pod.count > 0) {
        td_notes_add(arena, &all, joined(arena, TD_STR("Pod: "), &pod, TD_STR(", ")));
    }
    for (size_t i = 0; i < clauses->count; i++) {
        td_notes_add(arena, &all, clauses->items[i]);
    }
    return joined(arena,
                  td_arena_format(arena, "Pod resources updated by %.*s: ", TD_STR_ARG(vpa_name)),
                  &all, TD_STR("; "));
}

/* Does the gate let the container be boosted? One whose pod states resources is only where it
 * states a cpu request, since none is ever added there. */
static bool may_boost(const struct td_pod_patch_input *input, bool is_pod_level,
                      const struct td_pod_container *container)
{
    return input->gates.cpu_startup_boost &&
           (!is_pod_level || td_resource_list_get(&container->spec_requests, TD_CPU));
}

/* With the boost's gate on, upstream passes over containers whose policy is Off. */
static bool is_passed_over(const struct td_pod_patch_input *input, size_t index)
{
    const struct td_container_policy *policy =
        td_vpa_container_policy(&input->vpa->policy, input->pod->containers[index].name);
    return input->gates.cpu_startup_boost && policy && policy->is_off;
}

static int boost_all(struct td_arena *arena, const struct td_pod_patch_input *input,
                     struct td_pod_patch *patch, td_str *originals, struct td_error *err)
{
    for (size_t i = 0; i < input->pod->container_count; i++) {
        const struct td_pod_container *container = &input->pod->containers[i];
        originals[i] = TD_STR_EMPTY;
        if (is_passed_over(input, i) || !may_boost(input, patch->is_pod_level, container)) {
            continue;
        }
        int code = td_boost_apply(arena, input->vpa, container, input->max_cpu_boost,
                                  &patch->changes.containers[i], &originals[i], err);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

/* The records of one container; false when there are none. */
static bool patch_container(struct td_arena *arena, const struct td_pod_patch_input *input,
                            struct td_pod_patch *patch, size_t index, td_str original)
{
    const struct td_pod_container *container = &input->pod->containers[index];
    const struct td_container_change *change = &patch->changes.containers[index];
    const struct td_patch_place place = {
        .path = td_patchops_container_path(arena, index),
        .has_requests = td_vertical_has_requests(container),
        .has_limits = td_vertical_has_limits(container),
    };
    if (original.len > 0) {
        td_patchops_set_annotation(arena, patch->patches,
                                   td_boost_annotation(arena, container->name), original);
    }
    if (patch->is_pod_level && change->requests.count + change->limits.count == 0) {
        return false;
    }
    size_t before = patch->patches->count;
    td_patchops_set_resources(arena, patch->patches, &place, &change->requests, &change->limits);
    return patch->patches->count > before;
}

static void patch_observed(struct td_arena *arena, const struct td_pod *pod,
                           struct td_json *patches)
{
    struct td_notes names = {.items = NULL};
    for (size_t i = 0; i < pod->container_count; i++) {
        td_notes_add(arena, &names, pod->containers[i].name);
    }
    td_patchops_set_annotation(arena, patches, TD_STR("vpaObservedContainers"),
                               joined(arena, TD_STR_EMPTY, &names, TD_STR(", ")));
}

/* A LimitRange for containers gives every container requests and limits that no spec asked for. */
static void judge_limit_range(struct td_arena *arena, const struct td_pod_patch_input *input,
                              struct td_pod_patch *patch)
{
    if (!patch->is_pod_level || input->vpa->mode == TD_VPA_OFF ||
        input->limits->container_name_count == 0) {
        return;
    }
    td_str name = input->limits->container_names[0];
    patch->is_rejected = !input->warns_of_limit_range;
    patch->message = td_arena_format(
        arena,
        "pod has pod-level resources and is managed by VerticalPodAutoscaler '%.*s', but "
        "LimitRange "
        "'%.*s' of its namespace has an item of type Container; remove that item, or move the pod "
        "to a namespace without one",
        TD_STR_ARG(input->vpa->meta.name), TD_STR_ARG(name));
}

static int decide_changes(struct td_arena *arena, const struct td_pod_patch_input *input,
                          struct td_pod_patch *patch, td_str *originals, struct td_error *err)
{
    const struct td_changes_input changes = {
        .pod = input->pod,
        .vpa = input->vpa,
        .limits = input->limits,
        .largest_node = input->largest_node,
        .is_pod_level = patch->is_pod_level,
    };
    td_changes_make(arena, &changes, &patch->changes);
    int code = boost_all(arena, input, patch, originals, err);
    if (code < 0 || !patch->is_pod_level) {
        return code;
    }
    return td_stanza_make(arena, &changes, patch->changes.containers, &patch->changes.capped.steps,
                          &patch->stanza, err);
}

int td_pod_patch(struct td_arena *arena, const struct td_pod_patch_input *input,
                 struct td_pod_patch *ret, struct td_error *err)
{
    const struct td_pod *pod = input->pod;
    struct td_pod_patch patch = {
        .patches = td_json_new_array(arena),
        .message = TD_STR_EMPTY,
        .is_pod_level = input->gates.pod_level_resources && pod->has_pod_level,
    };
    judge_limit_range(arena, input, &patch);
    if (patch.is_rejected) {
        *ret = patch;
        return TD_OK;
    }
    td_str *originals = td_arena_array(arena, td_str, pod->container_count);
    int code = decide_changes(arena, input, &patch, originals, err);
    if (code < 0) {
        return code;
    }
    if (!pod->meta.annotations) {
        td_patch_append(arena, patch.patches, "add", TD_STR("/metadata/annotations"),
                        td_json_new_object(arena));
    }
    struct td_notes clauses = {.items = NULL};
    td_stanza_patch(arena, pod, &patch.stanza, patch.patches);
    for (size_t i = 0; i < pod->container_count; i++) {
        if (!is_passed_over(input, i) && patch_container(arena, input, &patch, i, originals[i])) {
            td_notes_add(arena, &clauses,
                         td_pod_patch_clause(arena, i, &patch.changes.containers[i]));
        }
    }
    if (clauses.count > 0 || patch.stanza.note_count > 0) {
        td_patchops_set_annotation(
            arena, patch.patches, TD_STR("vpaUpdates"),
            td_pod_patch_updates(arena, input->vpa->meta.name, &patch.stanza, &clauses));
    }
    patch_observed(arena, pod, patch.patches);
    *ret = patch;
    return td_arena_check(arena, err);
}
