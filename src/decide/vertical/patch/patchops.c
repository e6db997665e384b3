#include "decide/vertical/patch/patchops.h"

/* A path segment: '~' and '/' have meanings of their own. */
static td_str escape(struct td_arena *arena, td_str segment)
{
    char *out = td_arena_alloc(arena, segment.len * 2 + 1);
    size_t len = 0;
    for (size_t i = 0; i < segment.len; i++) {
        char byte = segment.ptr[i];
        if (byte == '~' || byte == '/') {
            out[len++] = '~';
            out[len++] = byte == '~' ? '0' : '1';
        } else {
            out[len++] = byte;
        }
    }
    return (td_str){.ptr = out, .len = len};
}

void td_patchops_add(struct td_arena *arena, struct td_json *patches, const char *op, td_str path,
                     struct td_json *value)
{
    struct td_json *record = td_json_new_object(arena);
    td_json_set(arena, record, TD_STR("op"), td_json_new_string(arena, td_str_from(op)));
    td_json_set(arena, record, TD_STR("path"), td_json_new_string(arena, path));
    td_json_set(arena, record, TD_STR("value"), value ? value : td_json_new_null(arena));
    td_json_append(patches, record);
}

static td_str annotation_path(struct td_arena *arena, td_str name)
{
    return td_arena_format(arena, "/metadata/annotations/%.*s", TD_STR_ARG(escape(arena, name)));
}

void td_patchops_set_annotation(struct td_arena *arena, struct td_json *patches, td_str name,
                                td_str value)
{
    td_patchops_add(arena, patches, "add", annotation_path(arena, name),
                    td_json_new_string(arena, value));
}

void td_patchops_remove_annotation(struct td_arena *arena, struct td_json *patches, td_str name)
{
    td_patchops_add(arena, patches, "remove", annotation_path(arena, name), NULL);
}

td_str td_patchops_container_path(struct td_arena *arena, size_t index)
{
    return td_arena_format(arena, "/spec/containers/%zu/resources", index);
}

static void set_list(struct td_arena *arena, struct td_json *patches, td_str path, bool is_there,
                     const struct td_resource_list *list)
{
    if (!is_there && list->count > 0) {
        td_patchops_add(arena, patches, "add", path, td_json_new_object(arena));
    }
    for (size_t i = 0; i < list->count; i++) {
        td_str name = escape(arena, list->items[i].name);
        td_patchops_add(
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
    if (!place->has_requests && !place->has_limits) {
        td_patchops_add(arena, patches, "add", place->path, td_json_new_object(arena));
    }
    set_list(arena, patches, td_arena_format(arena, "%.*s/requests", TD_STR_ARG(place->path)),
             place->has_requests, requests);
    set_list(arena, patches, td_arena_format(arena, "%.*s/limits", TD_STR_ARG(place->path)),
             place->has_limits, limits);
}
