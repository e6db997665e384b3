#include "kube/labels.h"

#include <stdlib.h>

static int labels_compare(const void *a, const void *b)
{
    const struct td_label *left = a;
    const struct td_label *right = b;
    return td_str_compare(left->key, right->key);
}

/* Sorts and drops all but the last of equal keys. The sort is not stable, so equal keys are told apart by the position
 * they had: `items` still holds them in input order when the duplicates are dropped. */
struct td_labels td_labels_from_pairs(struct td_arena *arena, const struct td_label *pairs,
                                      size_t count)
{
    struct td_label *items = td_arena_array(arena, struct td_label, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_last = true;
        for (size_t j = i + 1; j < count && is_last; j++) {
            is_last = !td_str_equal(pairs[i].key, pairs[j].key);
        }
        if (is_last) {
            items[kept++] = pairs[i];
        }
    }
    qsort(items, kept, sizeof(*items), labels_compare);
    return (struct td_labels){.items = items, .count = kept};
}

struct td_labels td_labels_from_json(struct td_arena *arena, const struct td_json *object)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return (struct td_labels){.items = NULL, .count = 0};
    }
    struct td_label *items = td_arena_array(arena, struct td_label, object->count);
    size_t count = 0;
    for (const struct td_json *member = object->first; member; member = member->next) {
        if (member->type == TD_JSON_TYPE_STRING) {
            items[count++] = (struct td_label){.key = member->key, .value = member->text};
        }
    }
    qsort(items, count, sizeof(*items), labels_compare);
    return (struct td_labels){.items = items, .count = count};
}

const td_str *td_labels_get(const struct td_labels *labels, td_str key)
{
    size_t low = 0;
    size_t high = labels->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = td_str_compare(labels->items[middle].key, key);
        if (order == 0) {
            return &labels->items[middle].value;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

bool td_labels_equal(const struct td_labels *a, const struct td_labels *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!td_str_equal(a->items[i].key, b->items[i].key) ||
            !td_str_equal(a->items[i].value, b->items[i].value)) {
            return false;
        }
    }
    return true;
}
