#include "kube/selector_build.h"

#include <stdlib.h>

#include "base/error.h"
#include "kube/names.h"

#define SELECTOR_LIST_FIRST 8     /* items of a list before it grows */
#define SELECTOR_REASON_BYTES 512 /* words of one broken rule in a message */

/* Room for one more item: the list moved to twice its place when it is full. What the moves leave
 * behind in the arena is less than the final list. */
static void *selector_grow(struct td_arena *arena, void *items, size_t count, size_t *cap,
                           size_t item_size)
{
    if (count < *cap) {
        return items;
    }
    *cap = *cap == 0 ? SELECTOR_LIST_FIRST : *cap * 2;
    void *moved = td_arena_alloc_zero(arena, *cap, item_size);
    if (count > 0) {
        memcpy(moved, items, count * item_size);
    }
    return moved;
}

void td_selector_values_push(struct td_arena *arena, struct td_selector_values *values, td_str text)
{
    values->items =
        selector_grow(arena, values->items, values->count, &values->cap, sizeof(*values->items));
    values->items[values->count++] = text;
}

void td_selector_values_sort(struct td_selector_values *values)
{
    if (values->count > 1) {
        qsort(values->items, values->count, sizeof(*values->items), td_str_compare_items);
    }
}

void td_selector_values_unique(struct td_selector_values *values)
{
    size_t kept = 0;
    for (size_t i = 0; i < values->count; i++) {
        if (kept == 0 || !td_str_equal(values->items[kept - 1], values->items[i])) {
            values->items[kept++] = values->items[i];
        }
    }
    values->count = kept;
}

int td_selector_list_push(struct td_arena *arena, struct td_selector_list *list,
                          const struct td_requirement *requirement, struct td_error *err)
{
    list->items = selector_grow(arena, list->items, list->count, &list->cap, sizeof(*list->items));
    list->items[list->count++] = *requirement;
    return td_arena_check(arena, err);
}

/* Order by key, then by place; both point into one array. */
static int selector_compare(const void *a, const void *b)
{
    const struct td_requirement *left = *(const struct td_requirement *const *)a;
    const struct td_requirement *right = *(const struct td_requirement *const *)b;
    int order = td_str_compare(left->key, right->key);
    return order != 0 ? order : (left > right) - (left < right);
}

static bool selector_is_sorted(const struct td_selector_list *list)
{
    for (size_t i = 1; i < list->count; i++) {
        if (td_str_compare(list->items[i - 1].key, list->items[i].key) > 0) {
            return false;
        }
    }
    return true;
}

struct td_selector td_selector_list_finish(struct td_arena *arena,
                                           const struct td_selector_list *list)
{
    if (selector_is_sorted(list)) {
        return (struct td_selector){.requirements = list->items, .count = list->count};
    }
    const struct td_requirement **order =
        td_arena_array(arena, const struct td_requirement *, list->count);
    for (size_t i = 0; i < list->count; i++) {
        order[i] = &list->items[i];
    }
    qsort(order, list->count, sizeof(*order), selector_compare);
    struct td_requirement *sorted = td_arena_array(arena, struct td_requirement, list->count);
    for (size_t i = 0; i < list->count; i++) {
        sorted[i] = *order[i];
    }
    return (struct td_selector){.requirements = sorted, .count = list->count};
}

static int selector_refuse(td_str text, size_t (*check)(td_str, struct td_buf *),
                           struct td_error *err)
{
    td_auto_buf reason;
    td_buf_init(&reason, SELECTOR_REASON_BYTES);
    (void)check(text, &reason);
    td_str words = td_buf_str(&reason);
    words = td_str_slice(words, 0, td_str_find(words, '\n', 0));
    return td_error_set(err, TD_INVALID, "invalid value '%.*s': %.*s", TD_STR_ARG(text),
                        TD_STR_ARG(words));
}

int td_selector_check_key(td_str key, struct td_error *err)
{
    return td_name_check_qualified(key, NULL) == 0
               ? TD_OK
               : selector_refuse(key, td_name_check_qualified, err);
}

int td_selector_check_value(td_str value, struct td_error *err)
{
    return td_name_check_label_value(value, NULL) == 0
               ? TD_OK
               : selector_refuse(value, td_name_check_label_value, err);
}
