#include "kube/objectkey.h"

#include "base/text.h"

/* The parts with `between` between them; empty when that is more than `size`. */
static td_str key_join(char *out, size_t size, char between, const td_str *parts, size_t count)
{
    char *at = out;
    for (size_t i = 0; i < count; i++) {
        size_t left = size - (size_t)(at - out);
        if (parts[i].len + (i > 0) > left) {
            return TD_STR_EMPTY;
        }
        if (i > 0) {
            *at++ = between;
        }
        (void)td_text_place(&at, parts[i]);
    }
    return (td_str){.ptr = out, .len = (size_t)(at - out)};
}

static td_str key_write(struct td_object_key key, char *out, size_t size)
{
    const td_str parts[] = {key.namespace, key.name};
    bool is_cluster_scoped = key.namespace.len == 0;
    return key_join(out, size, '/', parts + is_cluster_scoped, 2 - (size_t)is_cluster_scoped);
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
    return key_join(buffer, TD_OBJECT_KEY_BYTES_MAX, '\n', parts, count);
}
