#include "kube/objectpath.h"

#include "base/limits.h"

struct td_field_path td_field_child(const struct td_field_path *parent, td_str name)
{
    return (struct td_field_path){
        .parent = parent, .name = name, .depth = parent ? parent->depth + 1 : 0};
}

struct td_field_path td_field_item(const struct td_field_path *parent, size_t index)
{
    return (struct td_field_path){.parent = parent,
                                  .index = index,
                                  .is_index = true,
                                  .depth = parent ? parent->depth + 1 : 0};
}

/* The chain points upwards, so the frames are collected first. Trees are at most TD_JSON_DEPTH_MAX
 * deep; of a longer chain the last frames are written. */
void td_field_path_write(const struct td_field_path *path, struct td_buf *out)
{
    const struct td_field_path *frames[TD_JSON_DEPTH_MAX];
    size_t count = 0;
    for (; path && count < TD_JSON_DEPTH_MAX; path = path->parent) {
        frames[count++] = path;
    }
    bool is_first = true;
    while (count > 0) {
        const struct td_field_path *frame = frames[--count];
        if (frame->is_index) {
            (void)td_buf_append_format(out, "[%zu]", frame->index);
        } else if (frame->is_key) {
            (void)td_buf_append_format(out, "[%.*s]", TD_STR_ARG(frame->name));
        } else {
            (void)td_buf_append(out, is_first ? TD_STR_EMPTY : TD_STR("."));
            (void)td_buf_append(out, frame->name);
        }
        is_first = false;
    }
}

td_str td_field_path_text(struct td_arena *arena, const struct td_field_path *path)
{
    td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
    td_field_path_write(path, &text);
    return td_arena_copy_str(arena, td_buf_str(&text));
}
