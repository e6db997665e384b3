/*
 * Since when each request of a pod is what it is. The API server notes when a pod was last resized,
 * not what of it: so what was set is written beside when, and counts as long as the pod has it.
 */
#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/estimator/adaptive_pod.h"
#include "decide/vertical/resourcelist.h"

static const td_str resized_names[] = {TD_STR_INIT("cpu"), TD_STR_INIT("memory")};

/* When the pod was last resized, by any client, or made. */
static int64_t pod_changed(const struct td_pod *pod)
{
    td_time made = td_time_from_instant(pod->meta.created);
    return td_adaptive_seconds(pod->resized > made ? pod->resized : made);
}

/* The annotation as a tree; NULL: there is none, or it does not read. */
static const struct td_json *read_annotation(struct td_arena *arena, const struct td_pod *pod)
{
    td_str text = td_json_get_str(pod->meta.annotations, TD_RESIZED_ANNOTATION, TD_STR_EMPTY);
    struct td_json *tree = NULL;
    if (text.len == 0 || td_json_parse(arena, text, NULL, &tree, NULL) < 0) {
        return NULL;
    }
    return tree;
}

static int64_t changed_by(struct td_arena *arena, const struct td_json *tree,
                          const struct td_pod *pod, const struct td_pod_container *container,
                          td_str resource)
{
    const struct td_json *pair = td_json_get(td_json_get(tree, container->name), resource);
    const struct td_json *amount = td_json_first_item(pair);
    const struct td_quantity *has = td_resource_list_get(&container->spec_requests, resource);
    struct td_quantity set;
    int64_t at;
    bool is_same = has && td_json_is(amount, TD_JSON_TYPE_STRING) &&
                   td_quantity_parse(arena, amount->text, &set, NULL) == TD_OK &&
                   td_quantity_compare(&set, has) == 0;
    return is_same && amount->next && td_json_to_int64(amount->next, &at) ? at : pod_changed(pod);
}

int64_t td_resized_at(const struct td_pod *pod, const struct td_pod_container *container,
                      td_str resource)
{
    td_auto_arena arena = td_arena_capped(TD_OBJECT_BYTES_MAX);
    return changed_by(&arena, read_annotation(&arena, pod), pod, container, resource);
}

td_str td_resized_text(struct td_arena *arena, const struct td_pod *pod,
                       const struct td_resource_list *const *requests, td_time now)
{
    const struct td_json *before = read_annotation(arena, pod);
    struct td_json *object = td_json_new_object(arena);
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_pod_container *container = &pod->containers[i];
        struct td_json *entry = td_json_new_object(arena);
        for (size_t r = 0; r < TD_COUNT(resized_names); r++) {
            td_str name = resized_names[r];
            const struct td_quantity *has = td_resource_list_get(&container->spec_requests, name);
            const struct td_quantity *made =
                requests[i] ? td_resource_list_get(requests[i], name) : NULL;
            const struct td_quantity *amount = made ? made : has;
            if (!amount) {
                continue;
            }
            bool is_changed = !has || td_quantity_compare(amount, has) != 0;
            int64_t at = is_changed ? td_adaptive_seconds(now)
                                    : changed_by(arena, before, pod, container, name);
            struct td_json *pair = td_json_new_array(arena);
            td_json_append(pair, td_json_new_string(arena, td_quantity_text(arena, amount)));
            td_json_append(pair, td_json_new_int64(arena, at));
            td_json_set(arena, entry, name, pair);
        }
        td_json_set(arena, object, container->name, entry);
    }
    return td_json_line(arena, object);
}

struct td_track_template td_track_template_of(const struct td_pod_template *template,
                                              const struct td_pod_container *container)
{
    const struct td_template_container *known =
        template && template->is_set ? td_pod_template_container(template, container->name) : NULL;
    const struct td_quantity *request =
        td_resource_list_get(known ? &known->requests : &container->spec_requests, TD_MEMORY);
    const struct td_quantity *limit =
        td_resource_list_get(known ? &known->limits : &container->spec_limits, TD_MEMORY);
    return (struct td_track_template){
        .request_bytes = request ? td_quantity_value(request) : 0,
        .limit_bytes = limit ? td_quantity_value(limit) : 0,
    };
}
