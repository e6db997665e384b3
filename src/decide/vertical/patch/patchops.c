#include "decide/vertical/patch/patchops.h"

#include "kube/patch/patch_write.h"

static td_str annotation_path(struct td_arena *arena, td_str name)
{
    return td_arena_format(arena, "/metadata/annotations/%.*s",
                           TD_STR_ARG(td_patch_part(arena, name)));
}

void td_patchops_set_annotation(struct td_arena *arena, struct td_json *patches, td_str name,
                                td_str value)
{
    td_patch_append(arena, patches, "add", annotation_path(arena, name),
                    td_json_new_string(arena, value));
}

void td_patchops_remove_annotation(struct td_arena *arena, struct td_json *patches, td_str name)
{
    td_patch_append(arena, patches, "remove", annotation_path(arena, name), NULL);
}

td_str td_patchops_container_path(struct td_arena *arena, size_t index)
{
    return td_arena_format(arena, "/spec/containers/%zu/resources", index);
}

static void set_list(struct td_arena *arena, struct td_json *patches, td_str path, bool is_there,
                     const struct td_resource_list *list)
{
    if (!is_there && list->count > 0) {
        td_patch_append(arena, patches, "add", path, td_json_new_object(arena));
    }
    for (size_t i = 0; i < list->count; i++) {
        td_str name = td_patch_part(arena, list->items[i].name);
        td_patch_append(
            arena, patches, "add",
            td_arena_format(arena, "%.*s/%.*s", TD_STR_ARG(path), TD_STR_ARG(name)),
            td_json_new_string(arena, td_quantity_text(arena, &list->items[i].quantity)));
    }
}

void td_patchops_set_resources(struct td_arena *arena, struct td_json *patches,
                               const struct td_patch_place *place,
                               const struct td_resource_list *requests,
                               const struct td_resource_list *limits)
{
    if (!place->has_requests && !place->has_limits && !place->has_stanza) {
        td_patch_append(arena, patches, "add", place->path, td_json_new_object(arena));
    }
    set_list(arena, patches, td_arena_format(arena, "%.*s/requests", TD_STR_ARG(place->path)),
             place->has_requests, requests);
    set_list(arena, patches, td_arena_format(arena, "%.*s/limits", TD_STR_ARG(place->path)),
             place->has_limits, limits);
}
