/*
 * Events of a kubelet, in its words. Repeats of one message about one container are one event with
 * a count, so a container that crashes for ever fills no store.
 */
#include "local/nodes/kubelet_private.h"
#include "local/store/edit.h"

static void tell(struct kubelet_pod *pod, td_str part, const char *type, const char *reason,
                 td_str message)
{
    const struct td_json *spec = td_json_get(pod->life.pod, TD_STR("spec"));
    const struct td_occasion occasion = {
        .type = td_str_from(type),
        .reason = td_str_from(reason),
        .component = TD_STR("kubelet"),
        .host = td_json_text(spec, "nodeName"),
        .part = part,
        .message = message,
    };
    td_edit_record(pod->kubelet->api, pod->life.pod, &occasion);
}

void kubelet_tell(struct kubelet_pod *pod, const char *type, const char *reason, td_str message)
{
    tell(pod, TD_STR_EMPTY, type, reason, message);
}

void kubelet_tell_of(struct kubelet_pod *pod, const struct td_life_container *container,
                     const char *type, const char *reason, td_str message)
{
    td_str part = td_arena_format(pod->life.arena, "spec.%s{%.*s}",
                                  container->is_init ? "initContainers" : "containers",
                                  TD_STR_ARG(container->name));
    tell(pod, part, type, reason, message);
}

void kubelet_tell_start(struct kubelet_pod *pod, const struct td_life_container *container)
{
    td_str image = td_json_text(container->spec, "image");
    kubelet_tell_of(
        pod, container, "Normal", "Pulled",
        td_arena_format(pod->life.arena,
                        "Container image \"%.*s\" already present on machine and can be accessed "
                        "by the pod",
                        TD_STR_ARG(image)));
    kubelet_tell_of(pod, container, "Normal", "Created", TD_STR("Container created"));
    kubelet_tell_of(pod, container, "Normal", "Started", TD_STR("Container started"));
}

void kubelet_tell_back_off(struct kubelet_pod *pod, const struct td_life_container *container)
{
    const struct td_json *metadata = td_json_get(pod->life.pod, TD_STR("metadata"));
    kubelet_tell_of(
        pod, container, "Warning", "BackOff",
        td_arena_format(pod->life.arena,
                        "Back-off restarting failed container %.*s in pod %.*s_%.*s(%.*s)",
                        TD_STR_ARG(container->name), TD_STR_ARG(td_json_text(metadata, "name")),
                        TD_STR_ARG(td_json_text(metadata, "namespace")),
                        TD_STR_ARG(td_json_text(metadata, "uid"))));
}

/* Resources as an API server writes them: limits before requests. */
static struct td_json *tell_resources(struct td_arena *arena, const struct td_json *resources)
{
    static const td_str lists[] = {TD_STR_INIT("limits"), TD_STR_INIT("requests")};
    struct td_json *copy = td_json_new_object(arena);
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        const struct td_json *list = td_json_get(resources, lists[i]);
        if (list && list->count > 0) {
            td_json_set_copy(arena, copy, lists[i], list);
        }
    }
    return copy;
}

/* What each container wishes or was given, in one line. */
static td_str tell_summary(struct kubelet_pod *pod, int64_t generation, td_str error)
{
    struct td_arena *arena = pod->life.arena;
    struct td_json *init = td_json_new_array(arena);
    struct td_json *own = td_json_new_array(arena);
    for (size_t i = 0; i < pod->record->count; i++) {
        const struct td_life_container *container = &pod->containers[i];
        struct td_json *entry = td_json_new_object(arena);
        td_json_set_str(arena, entry, TD_STR("name"), container->name);
        const struct td_json *resources = generation > 0
                                              ? td_json_get(container->spec, TD_STR("resources"))
                                              : kubelet_given(pod, i);
        td_json_set(arena, entry, TD_STR("resources"), tell_resources(arena, resources));
        td_json_append(container->is_init ? init : own, entry);
    }
    struct td_json *summary = td_json_new_object(arena);
    if (init->count > 0) {
        td_json_set(arena, summary, TD_STR("initContainers"), init);
    }
    td_json_set(arena, summary, TD_STR("containers"), own);
    td_json_set_int64(arena, summary, TD_STR("generation"),
                      generation > 0 ? generation : pod->record->resize_generation);
    td_json_set_text(arena, summary, TD_STR("error"), error);
    return td_json_line(arena, summary);
}

void kubelet_tell_resize(struct kubelet_pod *pod, const char *reason, const char *what,
                         td_str error)
{
    kubelet_tell(pod, error.len > 0 ? "Warning" : "Normal", reason,
                 td_arena_format(pod->life.arena, "Pod resize %s: %.*s", what,
                                 TD_STR_ARG(tell_summary(pod, 0, error))));
}

void kubelet_tell_pending(struct kubelet_pod *pod, bool is_hopeless, td_str message)
{
    int64_t generation =
        td_json_get_int64(td_json_get(pod->life.pod, TD_STR("metadata")), TD_STR("generation"), 0);
    kubelet_tell(pod, "Warning", is_hopeless ? "ResizeInfeasible" : "ResizeDeferred",
                 td_arena_format(pod->life.arena, "Pod resize %s: %.*s",
                                 is_hopeless ? "Infeasible" : "Deferred",
                                 TD_STR_ARG(tell_summary(pod, generation, message))));
}
