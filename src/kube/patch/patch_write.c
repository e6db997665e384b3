#include "kube/patch/patch_write.h"

void td_patch_append(struct td_arena *arena, struct td_json *patch, const char *op, td_str path,
                     struct td_json *value)
{
    struct td_json *operation = td_json_new_object(arena);
    td_json_set_str(arena, operation, TD_STR("op"), td_str_from(op));
    td_json_set_str(arena, operation, TD_STR("path"), path);
    td_json_set(arena, operation, TD_STR("value"), value ? value : td_json_new_null(arena));
    td_json_append(patch, operation);
}

td_str td_patch_one(struct td_arena *arena, const char *op, td_str path, struct td_json *value)
{
    struct td_json *patch = td_json_new_array(arena);
    td_patch_append(arena, patch, op, path, value);
    return td_json_line(arena, patch);
}

td_str td_patch_part(struct td_arena *arena, td_str part)
{
    char *out = td_arena_alloc(arena, part.len * 2 + 1);
    size_t len = 0;
    for (size_t i = 0; i < part.len; i++) {
        char byte = part.ptr[i];
        if (byte == '~' || byte == '/') {
            out[len++] = '~';
            out[len++] = byte == '~' ? '0' : '1';
        } else {
            out[len++] = byte;
        }
    }
    return (td_str){.ptr = out, .len = len};
}
