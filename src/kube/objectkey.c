#include "kube/objectkey.h"

#include "base/text.h"

/* Empty when that is more than `size`. */
static td_str key_write(struct td_object_key key, char *out, size_t size)
{
    char *at = out;
    bool is_cluster_scoped = key.namespace.len == 0;
    if (key.namespace.len + !is_cluster_scoped + key.name.len > size) {
        return TD_STR_EMPTY;
    }
    if (!is_cluster_scoped) {
        (void)td_text_place(&at, key.namespace);
        *at++ = '/';
    }
    (void)td_text_place(&at, key.name);
    return (td_str){.ptr = out, .len = (size_t)(at - out)};
}

td_str td_object_key_write(struct td_object_key key, char buffer[TD_OBJECT_KEY_BYTES_MAX])
{
    return key_write(key, buffer, TD_OBJECT_KEY_BYTES_MAX);
}

td_str td_object_key_text(struct td_arena *arena, struct td_object_key key)
{
    size_t size = key.namespace.len + 1 + key.name.len;
    return key_write(key, td_arena_alloc(arena, size), size);
}

struct td_object_key td_object_key_read(td_str text)
{
    size_t slash = td_str_find(text, '/', 0);
    return slash == text.len ? TD_OBJECT_KEY(TD_STR_EMPTY, text)
                             : TD_OBJECT_KEY(td_str_slice(text, 0, slash),
                                             td_str_slice(text, slash + 1, text.len));
}

td_str td_key_lines(char buffer[TD_OBJECT_KEY_BYTES_MAX], const td_str *parts, size_t count)
{
    char *at = buffer;
    for (size_t i = 0; i < count; i++) {
        size_t left = TD_OBJECT_KEY_BYTES_MAX - (size_t)(at - buffer);
        if (parts[i].len + (i > 0) > left) {
            return TD_STR_EMPTY;
        }
        if (i > 0) {
            *at++ = '\n';
        }
        (void)td_text_place(&at, parts[i]);
    }
    return (td_str){.ptr = buffer, .len = (size_t)(at - buffer)};
}
