#include "base/vec.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define VEC_CAP_FIRST 8

static size_t vec_next_cap(size_t cap, size_t count_max)
{
    size_t next = cap > 0 ? cap : VEC_CAP_FIRST / 2;
    next = next > SIZE_MAX / 2 ? SIZE_MAX : next * 2;
    return next < count_max ? next : count_max;
}

void *td_vec_push_bytes(void **items, size_t *count, size_t *cap, size_t count_max,
                        size_t item_size)
{
    td_assert(*count <= *cap);
    if (*count >= count_max) {
        return NULL;
    }
    if (*count == *cap) {
        size_t next = vec_next_cap(*cap, count_max);
        size_t bytes;
        if (__builtin_mul_overflow(next, item_size, &bytes)) {
            td_out_of_memory();
        }
        *items = td_realloc(*items, bytes);
        *cap = next;
    }
    char *item = (char *)*items + *count * item_size;
    memset(item, 0, item_size);
    (*count)++;
    return item;
}

void td_vec_remove_bytes(void *items, size_t *count, size_t index, size_t item_size)
{
    td_assert(index < *count);
    char *item = (char *)items + index * item_size;
    memmove(item, item + item_size, (*count - index - 1) * item_size);
    (*count)--;
}

void td_vec_done_bytes(void **items)
{
    td_free(*items);
    *items = NULL;
}
