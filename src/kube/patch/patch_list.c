/*
 * Lists of strategic merge patch: finding elements by merge key and putting them in order.
 *
 * Upstream searches linearly inside its sorts, which is cubic in bad cases. Here every list that is
 * searched gets an index first (linear below INDEX_FROM elements, hashed above), each element's
 * rank is looked up once, and ranks are sorted.
 *
 * Two oddities of upstream decide results and are kept. Elements that the order list lacks count as
 * smaller than anything, and the insertion sort that Go uses below 21 elements then reverses them.
 * And sorting by text calls equal texts out of order, which reverses those. Longer lists with such
 * elements come out of Go in an arbitrary order; here they get that of the short ones.
 */
#include "base/text.h"
#include "kube/patch/patch_work.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"

#define INDEX_FROM 16 /* shorter lists are searched from the front */
#define INSERTION_SORT_MAX 20
#define EXACT_DEDUPLICATION_MAX 512

struct patch_list td_patch_list(struct patch_work *work, const struct td_json *array)
{
    struct patch_list list = {.items = td_arena_array(work->arena, struct td_json *, array->count)};
    for (struct td_json *item = td_json_first_item(array); item; item = item->next) {
        list.items[list.count++] = item;
    }
    return list;
}

struct td_json *td_patch_list_json(struct patch_work *work, struct patch_list list)
{
    struct td_json *array = td_json_new_array(work->arena);
    for (size_t i = 0; i < list.count; i++) {
        td_json_append(array, list.items[i]);
    }
    return array;
}

struct patch_list td_patch_list_copy(struct patch_work *work, struct patch_list list)
{
    struct patch_list copy = {.items = td_arena_array(work->arena, struct td_json *, list.count),
                              .count = list.count};
    for (size_t i = 0; i < list.count; i++) {
        copy.items[i] = list.items[i];
    }
    return copy;
}

int td_patch_element_kind(struct patch_work *work, struct patch_list a, struct patch_list b,
                          enum patch_kind *ret)
{
    enum patch_kind kind = PATCH_MISSING;
    for (size_t i = 0; i < a.count + b.count; i++) {
        enum patch_kind here = td_patch_kind(i < a.count ? a.items[i] : b.items[i - a.count]);
        if (here == PATCH_NULL || here == PATCH_LIST) {
            return td_error_set(work->err, TD_INVALID, "list has a %s as element",
                                here == PATCH_NULL ? "null" : "list");
        }
        if (kind != PATCH_MISSING && here != kind) {
            return td_error_set(work->err, TD_INVALID, "list has elements of different types");
        }
        kind = here;
    }
    if (kind == PATCH_MISSING) {
        return td_error_set(work->err, TD_INVALID, "list has no elements");
    }
    *ret = kind;
    return TD_OK;
}

static bool list_same(struct patch_value a, struct patch_value b)
{
    return a.kind == b.kind && td_str_equal(a.text, b.text);
}

static td_str list_map_key(struct patch_work *work, struct patch_value value)
{
    char *text = td_arena_alloc(work->arena, value.text.len + 1);
    text[0] = (char)('0' + (int)value.kind);
    (void)td_text_behind(text + 1, value.text);
    return (td_str){.ptr = text, .len = value.text.len + 1};
}

static bool list_is_scalar(enum patch_kind kind)
{
    return kind != PATCH_MISSING && kind != PATCH_LIST && kind != PATCH_OBJECT;
}

static size_t list_mapped(struct patch_work *work, const struct patch_index *index,
                          struct patch_value value)
{
    uintptr_t found = (uintptr_t)td_map_get(&index->map, list_map_key(work, value));
    return found > 0 ? (size_t)found - 1 : PATCH_NONE;
}

/* Remember `position` as the first of its value. The map holds as many values as there are
 * elements, so it cannot be full. */
static void list_map_put(struct patch_work *work, struct patch_index *index, size_t position)
{
    td_str key = list_map_key(work, index->values[position]);
    (void)td_map_put(&index->map, key, (void *)(uintptr_t)(position + 1));
}

static void list_note(struct patch_index *index, struct patch_value value)
{
    index->has_lists = index->has_lists || value.kind == PATCH_LIST;
    index->has_objects = index->has_objects || value.kind == PATCH_OBJECT;
}

void td_patch_index_init(struct patch_work *work, struct patch_index *index, struct patch_list list,
                         const td_str *key, size_t capacity)
{
    *index = (struct patch_index){
        .values = td_arena_array(work->arena, struct patch_value, capacity),
        .count = list.count,
        .capacity = capacity,
        .foreign = PATCH_NONE,
        .is_mapped = capacity >= INDEX_FROM,
    };
    for (size_t i = list.count; i-- > 0;) {
        const struct td_json *item = list.items[i];
        index->foreign = key && item->type != TD_JSON_TYPE_OBJECT ? i : index->foreign;
        index->values[i] = td_patch_value(work, key ? td_json_get(item, *key) : item);
        list_note(index, index->values[i]);
    }
    td_map_init(&index->map, capacity);
    if (!index->is_mapped) {
        return;
    }
    index->next_same = td_arena_array(work->arena, size_t, capacity);
    for (size_t i = list.count; i-- > 0;) {
        index->next_same[i] = PATCH_NONE;
        if (list_is_scalar(index->values[i].kind)) {
            index->next_same[i] = list_mapped(work, index, index->values[i]);
            list_map_put(work, index, i);
        }
    }
}

void td_patch_index_done(struct patch_index *index)
{
    td_map_done(&index->map);
}

void td_patch_index_add(struct patch_work *work, struct patch_index *index,
                        struct patch_value value)
{
    size_t position = index->count++;
    index->values[position] = value;
    list_note(index, value);
    if (!index->is_mapped) {
        return;
    }
    index->next_same[position] = PATCH_NONE;
    if (list_is_scalar(value.kind) && list_mapped(work, index, value) == PATCH_NONE) {
        list_map_put(work, index, position);
    }
}

static size_t list_scan(const struct patch_index *index, struct patch_value value, size_t from)
{
    for (size_t i = from; i < index->count; i++) {
        if (list_same(index->values[i], value)) {
            return i;
        }
    }
    return PATCH_NONE;
}

int td_patch_index_find(struct patch_work *work, const struct patch_index *index,
                        struct patch_value value, size_t *ret)
{
    if ((value.kind == PATCH_LIST && index->has_lists) ||
        (value.kind == PATCH_OBJECT && index->has_objects)) {
        return td_error_set(work->err, TD_INVALID, "%s cannot be compared",
                            value.kind == PATCH_LIST ? "lists" : "objects");
    }
    if (!list_is_scalar(value.kind)) {
        *ret = PATCH_NONE;
    } else if (index->is_mapped) {
        *ret = list_mapped(work, index, value);
    } else {
        *ret = list_scan(index, value, 0);
    }
    return TD_OK;
}

size_t td_patch_index_next(const struct patch_index *index, size_t position)
{
    return index->is_mapped ? index->next_same[position]
                            : list_scan(index, index->values[position], position + 1);
}

/* td_patch_index_find, but an element that is no object in front of what is looked for is refused.
 */
static int index_find_object(struct patch_work *work, const struct patch_index *index,
                             struct patch_value value, size_t *ret)
{
    int code = td_patch_index_find(work, index, value, ret);
    if (code == TD_OK && *ret >= index->foreign && index->foreign != PATCH_NONE) {
        return td_error_set(work->err, TD_INVALID, "element %zu is no object", index->foreign);
    }
    return code;
}

static int list_check_keys(struct patch_work *work, struct patch_list list, td_str key)
{
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i]->type != TD_JSON_TYPE_OBJECT) {
            return td_error_set(work->err, TD_INVALID, "element %zu is no object", i);
        }
        if (!td_json_get(list.items[i], key)) {
            return td_error_set(work->err, TD_INVALID, "element %zu has no merge key \"%.*s\"", i,
                                TD_STR_ARG(key));
        }
    }
    return TD_OK;
}

/* Move elements with "$patch": "delete" out of `list`. */
static struct patch_list list_take_deleted(struct patch_work *work, struct patch_list *list)
{
    struct patch_list deleted = {.items =
                                     td_arena_array(work->arena, struct td_json *, list->count)};
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        td_str directive = td_json_get_str(list->items[i], PATCH_DIRECTIVE, TD_STR_EMPTY);
        if (td_str_equal(directive, TD_STR("delete"))) {
            deleted.items[deleted.count++] = list->items[i];
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
    return deleted;
}

struct ranked {
    size_t rank; /* position in the order list, or PATCH_NONE */
    size_t position;
    struct td_json *item;
};

static int list_compare_ranked(const void *a, const void *b)
{
    const struct ranked *left = a;
    const struct ranked *right = b;
    if (left->rank != right->rank) {
        return left->rank < right->rank ? -1 : 1;
    }
    return left->position < right->position ? -1 : left->position > right->position;
}

/* Elements without a place first, in reverse. */
static int list_compare_partly_ranked(const void *a, const void *b)
{
    const struct ranked *left = a;
    const struct ranked *right = b;
    bool is_left_lost = left->rank == PATCH_NONE;
    bool is_right_lost = right->rank == PATCH_NONE;
    if (is_left_lost != is_right_lost) {
        return is_left_lost ? -1 : 1;
    }
    return is_left_lost ? list_compare_ranked(b, a) : list_compare_ranked(a, b);
}

static void list_insertion_sort(struct ranked *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t j = i; j > 0; j--) {
            size_t left = items[j - 1].rank;
            size_t right = items[j].rank;
            if (left != PATCH_NONE && right != PATCH_NONE && right >= left) {
                break;
            }
            struct ranked swapped = items[j];
            items[j] = items[j - 1];
            items[j - 1] = swapped;
        }
    }
}

static int list_rank(struct patch_work *work, struct patch_list list, const struct patch_order *by,
                     struct ranked *ret, bool *ret_all)
{
    struct patch_index index;
    const td_str *key = by->kind == PATCH_OBJECT ? &by->key : NULL;
    td_patch_index_init(work, &index, by->order, key, by->order.count);
    int code = TD_OK;
    *ret_all = true;
    for (size_t i = 0; i < list.count && code == TD_OK; i++) {
        const struct td_json *item = list.items[i];
        struct patch_value value = td_patch_value(work, key ? td_json_get(item, *key) : item);
        ret[i] = (struct ranked){.rank = PATCH_NONE, .position = i, .item = list.items[i]};
        code = td_patch_index_find(work, &index, value, &ret[i].rank);
        *ret_all = *ret_all && ret[i].rank != PATCH_NONE;
    }
    td_patch_index_done(&index);
    return code;
}

int td_patch_sort(struct patch_work *work, struct patch_list *list, const struct patch_order *by)
{
    struct patch_list deleted = {.items = NULL, .count = 0};
    if (by->kind == PATCH_OBJECT) {
        int code = list_check_keys(work, *list, by->key);
        if (code < 0) {
            return code;
        }
        code = list_check_keys(work, by->order, by->key);
        if (code < 0) {
            return code;
        }
        deleted = list_take_deleted(work, list);
    }
    struct ranked *ranked = td_arena_array(work->arena, struct ranked, list->count);
    bool is_all = true;
    if (list->count > 1) { /* upstream compares nothing in shorter ones */
        int code = list_rank(work, *list, by, ranked, &is_all);
        if (code < 0) {
            return code;
        }
        if (is_all) {
            qsort(ranked, list->count, sizeof(*ranked), list_compare_ranked);
        } else if (list->count <= INSERTION_SORT_MAX) {
            list_insertion_sort(ranked, list->count);
        } else {
            qsort(ranked, list->count, sizeof(*ranked), list_compare_partly_ranked);
        }
        for (size_t i = 0; i < list->count; i++) {
            list->items[i] = ranked[i].item;
        }
    }
    for (size_t i = 0; i < deleted.count; i++) {
        list->items[list->count++] = deleted.items[i];
    }
    return TD_OK;
}

/* Which elements of `merged` are in the order list? */
static int list_partition(struct patch_work *work, struct patch_list merged,
                          const struct patch_order *by, struct patch_list *ret_in,
                          struct patch_list *ret_out)
{
    const td_str *key = by->key.len > 0 ? &by->key : NULL;
    if (key) {
        int code = list_check_keys(work, merged, *key);
        if (code < 0) {
            return code;
        }
    }
    struct patch_index index;
    td_patch_index_init(work, &index, by->order, key, by->order.count);
    int code = TD_OK;
    if (!key && (index.has_lists || index.has_objects)) {
        code = td_error_set(work->err, TD_INVALID, "order lists something that is no scalar");
    }
    for (size_t i = 0; i < merged.count && code == TD_OK; i++) {
        struct td_json *item = merged.items[i];
        size_t found = PATCH_NONE;
        struct patch_value value = td_patch_value(work, key ? td_json_get(item, *key) : item);
        if (!key && !list_is_scalar(value.kind)) {
            code = td_error_set(work->err, TD_INVALID, "element %zu is no scalar", i);
        } else {
            code = index_find_object(work, &index, value, &found);
        }
        struct patch_list *side = found != PATCH_NONE ? ret_in : ret_out;
        side->items[side->count++] = item;
    }
    td_patch_index_done(&index);
    return code;
}

/* Both sides are sorted; an element of the server's goes before one of the patch's only when the
 * server's list has both and says so. */
static int list_interleave(struct patch_work *work, struct patch_list server_only,
                           struct patch_list patched, const struct patch_order *server,
                           struct patch_list *ret)
{
    size_t count = server_only.count + patched.count;
    struct ranked *left = td_arena_array(work->arena, struct ranked, server_only.count);
    struct ranked *right = td_arena_array(work->arena, struct ranked, patched.count);
    struct patch_list list = {.items = td_arena_array(work->arena, struct td_json *, count)};
    bool is_all = true;
    if (server_only.count > 0 && patched.count > 0) {
        int code = list_rank(work, server_only, server, left, &is_all);
        if (code < 0) {
            return code;
        }
        code = list_rank(work, patched, server, right, &is_all);
        if (code < 0) {
            return code;
        }
    }
    size_t i = 0;
    size_t j = 0;
    while (list.count < count) {
        bool takes_left = j >= patched.count;
        if (i < server_only.count && j < patched.count) {
            bool has_both = left[i].rank != PATCH_NONE && right[j].rank != PATCH_NONE;
            takes_left = has_both && left[i].rank < right[j].rank;
        }
        list.items[list.count++] = takes_left ? server_only.items[i++] : patched.items[j++];
    }
    *ret = list;
    return TD_OK;
}

int td_patch_arrange(struct patch_work *work, struct patch_list merged,
                     const struct patch_order *order, struct patch_list server,
                     struct patch_list *ret)
{
    struct patch_order by_server = *order;
    by_server.order = server;
    struct patch_list patched = {.items =
                                     td_arena_array(work->arena, struct td_json *, merged.count)};
    struct patch_list server_only = {
        .items = td_arena_array(work->arena, struct td_json *, merged.count)};
    int code = list_partition(work, merged, order, &patched, &server_only);
    if (code < 0) {
        return code;
    }
    code = td_patch_sort(work, &patched, order);
    if (code < 0) {
        return code;
    }
    code = td_patch_sort(work, &server_only, &by_server);
    if (code < 0) {
        return code;
    }
    return list_interleave(work, server_only, patched, &by_server, ret);
}

/* For long lists: the first of equal ones stays, in order. */
static size_t list_deduplicate_long(struct patch_work *work, struct patch_list list)
{
    struct patch_index index;
    struct patch_list none = {.items = NULL, .count = 0};
    td_patch_index_init(work, &index, none, NULL, list.count);
    size_t kept = 0;
    for (size_t i = 0; i < list.count; i++) {
        struct patch_value value = td_patch_value(work, list.items[i]);
        if (list_mapped(work, &index, value) == PATCH_NONE) {
            td_patch_index_add(work, &index, value);
            list.items[kept++] = list.items[i];
        }
    }
    td_patch_index_done(&index);
    return kept;
}

size_t td_patch_deduplicate(struct patch_work *work, struct patch_list list)
{
    if (list.count > EXACT_DEDUPLICATION_MAX) {
        return list_deduplicate_long(work, list);
    }
    struct patch_value *values = td_arena_array(work->arena, struct patch_value, list.count);
    for (size_t i = 0; i < list.count; i++) {
        values[i] = td_patch_value(work, list.items[i]);
    }
    size_t count = list.count;
    for (size_t i = 0; i < count; i++) {
        size_t j = i + 1;
        while (j < count) {
            if (!list_same(values[i], values[j])) {
                j++;
                continue;
            }
            count--;
            list.items[j] = list.items[count];
            values[j] = values[count];
        }
    }
    return count;
}

struct printed {
    td_str text;
    size_t position;
    struct td_json *item;
};

static int list_compare_printed(const void *a, const void *b)
{
    const struct printed *left = a;
    const struct printed *right = b;
    int order = td_str_compare(left->text, right->text);
    if (order != 0) {
        return order;
    }
    return left->position < right->position ? 1 : left->position > right->position ? -1 : 0;
}

void td_patch_sort_printed(struct patch_work *work, struct patch_list list, const td_str *key)
{
    struct printed *printed = td_arena_array(work->arena, struct printed, list.count);
    for (size_t i = 0; i < list.count; i++) {
        const struct td_json *item = list.items[i];
        td_str text = td_patch_print(work, key ? td_json_get(item, *key) : item);
        printed[i] = (struct printed){.text = text, .position = i, .item = list.items[i]};
    }
    qsort(printed, list.count, sizeof(*printed), list_compare_printed);
    for (size_t i = 0; i < list.count; i++) {
        list.items[i] = printed[i].item;
    }
}
