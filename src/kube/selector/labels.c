/*
 * Sets that come sorted, as the API server writes them, are taken as they are; others are sorted
 * once. Small sets are searched from the front, which is faster than a binary search.
 */
#include "kube/selector/labels.h"

#include <stdlib.h>

#define LABELS_LINEAR_MAX 12 /* up to so many labels are looked at one by one */

/* Byte order of keys; of equal keys the one that came first stands first, so the order is total and
 * the sort need not be stable. Both point into one array. */
static int labels_compare(const void *a, const void *b)
{
    const struct td_label *left = *(const struct td_label *const *)a;
    const struct td_label *right = *(const struct td_label *const *)b;
    int order = td_str_compare(left->key, right->key);
    return order != 0 ? order : (left > right) - (left < right);
}

/* Most sets arrive as they were written by the API server: sorted and unique. */
static bool labels_are_sorted(const struct td_label *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (td_str_compare(items[i - 1].key, items[i].key) >= 0) {
            return false;
        }
    }
    return true;
}

/* `pairs` in a set's order, without all but the last of equal keys. */
static struct td_labels labels_sort(struct td_arena *arena, const struct td_label *pairs,
                                    size_t count)
{
    const struct td_label **order = td_arena_array(arena, const struct td_label *, count);
    for (size_t i = 0; i < count; i++) {
        order[i] = &pairs[i];
    }
    qsort(order, count, sizeof(*order), labels_compare);
    struct td_label *items = td_arena_array(arena, struct td_label, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 == count || !td_str_equal(order[i]->key, order[i + 1]->key)) {
            items[kept++] = *order[i];
        }
    }
    return (struct td_labels){.items = items, .count = kept};
}

struct td_labels td_labels_from_pairs(struct td_arena *arena, const struct td_label *pairs,
                                      size_t count)
{
    if (count == 0) {
        return (struct td_labels){.items = NULL, .count = 0};
    }
    if (!labels_are_sorted(pairs, count)) {
        return labels_sort(arena, pairs, count);
    }
    struct td_label *items = td_arena_array(arena, struct td_label, count);
    memcpy(items, pairs, count * sizeof(*items));
    return (struct td_labels){.items = items, .count = count};
}

struct td_labels td_labels_from_json(struct td_arena *arena, const struct td_json *object)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT) || object->count == 0) {
        return (struct td_labels){.items = NULL, .count = 0};
    }
    struct td_label *items = td_arena_array(arena, struct td_label, object->count);
    size_t count = 0;
    for (const struct td_json *member = td_json_first_member(object); member;
         member = member->next) {
        if (member->type == TD_JSON_TYPE_STRING) {
            items[count++] = (struct td_label){.key = member->key, .value = member->text};
        }
    }
    if (!labels_are_sorted(items, count)) {
        return labels_sort(arena, items, count);
    }
    return (struct td_labels){.items = items, .count = count};
}

/* Keys of different lengths need no look at their bytes, so in the small sets that nearly all
 * objects have this is faster than the binary search. */
static const td_str *labels_get_linear(const struct td_labels *labels, td_str key)
{
    for (size_t i = 0; i < labels->count; i++) {
        if (td_str_equal(labels->items[i].key, key)) {
            return &labels->items[i].value;
        }
    }
    return NULL;
}

const td_str *td_labels_get(const struct td_labels *labels, td_str key)
{
    if (labels->count <= LABELS_LINEAR_MAX) {
        return labels_get_linear(labels, key);
    }
    size_t at = td_str_place(labels->items, labels->count, sizeof(labels->items[0]), key);
    bool is_found = at < labels->count && td_str_equal(labels->items[at].key, key);
    return is_found ? &labels->items[at].value : NULL;
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
