/*
 * Strategic merge patch: objects merge member by member, and the type of each field says whether a
 * list is merged by a key, merged as a set, or replaced. Directives inside the patch delete,
 * replace, reorder and retain.
 *
 * Both inputs are private copies that the merge uses up. The same code makes one patch of two for
 * the three-way form (onto_document is false): directives are then carried along instead of carried
 * out, and nulls are kept.
 *
 * Upstream edits slices in place and goes on reading them, so leftovers of a deletion still count
 * when elements are put in order. Where that decides the result it is imitated: see
 * struct strategic_deletion, strategic_merge_elements and strategic_merge_scalars.
 */
#include "base/error.h"
#include "base/limits.h"
#include "kube/patch/patch.h"
#include "kube/patch/patch_work.h"

#define GO_CAPACITY_MAX 32 /* up to here every Go doubles the room of a growing slice */

/* Null members at every level, also inside lists, mean nothing in a value that is added. */
static void strategic_discard_nulls(struct td_json *node, size_t depth)
{
    bool is_object = node->type == TD_JSON_TYPE_OBJECT;
    if ((!is_object && node->type != TD_JSON_TYPE_ARRAY) || depth > TD_JSON_DEPTH_MAX) {
        return;
    }
    for (struct td_json *child = td_json_first_child(node), *next; child; child = next) {
        next = child->next;
        if (is_object && child->type == TD_JSON_TYPE_NULL) {
            (void)td_json_remove(node, child->key); /* it is there */
        } else {
            strategic_discard_nulls(child, depth + 1);
        }
    }
}

/* The value without objects that hold a "$patch" directive; NULL when it is one itself. */
static struct td_json *strategic_strip(struct patch_work *work, struct td_json *node, size_t depth)
{
    if (depth > TD_JSON_DEPTH_MAX) {
        return node;
    }
    if (node->type == TD_JSON_TYPE_ARRAY) {
        struct td_json *kept = td_json_new_array(work->arena);
        for (struct td_json *item = td_json_first_item(node), *next; item; item = next) {
            next = item->next;
            struct td_json *stripped = strategic_strip(work, item, depth + 1);
            if (stripped) {
                td_json_append(kept, stripped);
            }
        }
        return kept;
    }
    if (node->type != TD_JSON_TYPE_OBJECT) {
        return node;
    }
    if (td_json_get(node, PATCH_DIRECTIVE)) {
        return NULL;
    }
    for (struct td_json *member = td_json_first_member(node), *next; member; member = next) {
        next = member->next;
        struct td_json *stripped = strategic_strip(work, member, depth + 1);
        if (!stripped) {
            (void)td_json_remove(node, member->key); /* it is there */
        } else {
            td_json_set(work->arena, node, member->key, stripped);
        }
    }
    return node;
}

static int strategic_directive(struct patch_work *work, const struct td_json *directive,
                               struct td_json *patch, struct td_json **ret)
{
    td_str text = directive->type == TD_JSON_TYPE_STRING ? directive->text : TD_STR_EMPTY;
    if (td_str_equal(text, TD_STR("replace"))) {
        (void)td_json_remove(patch, PATCH_DIRECTIVE); /* it is there */
        *ret = patch;
        return TD_OK;
    }
    if (td_str_equal(text, TD_STR("delete"))) {
        *ret = td_json_new_object(work->arena);
        return TD_OK;
    }
    return td_error_set(work->err, TD_INVALID, "unknown $patch directive \"%.*s\"",
                        TD_STR_ARG(text));
}

/* Two patches must agree on the keys to retain. */
static int strategic_carry_retain_keys(struct patch_work *work, struct td_json *original,
                                       struct td_json *keys)
{
    const struct td_json *ours = td_json_get(original, PATCH_RETAIN_KEYS);
    if (!ours) {
        td_json_set(work->arena, original, PATCH_RETAIN_KEYS, keys);
        return TD_OK;
    }
    return td_patch_deep_equal(work, ours, keys)
               ? TD_OK
               : td_error_set(work->err, TD_INVALID, "two $retainKeys lists differ");
}

static bool strategic_is_parallel_list(td_str name)
{
    return td_str_starts_with(name, PATCH_DELETE_PREFIX) ||
           td_str_starts_with(name, PATCH_ORDER_PREFIX);
}

static int strategic_retain_keys(struct patch_work *work, struct td_json *original,
                                 struct td_json *patch)
{
    struct td_json *keys = td_json_get(patch, PATCH_RETAIN_KEYS);
    if (!keys) {
        return TD_OK;
    }
    (void)td_json_remove(patch, PATCH_RETAIN_KEYS); /* it is there */
    if (!work->onto_document) {
        return strategic_carry_retain_keys(work, original, keys);
    }
    struct td_json *kept = td_json_new_object(work->arena); /* used as a set */
    bool is_valid = keys->type == TD_JSON_TYPE_ARRAY;
    for (struct td_json *key = is_valid ? td_json_first_item(keys) : NULL; key; key = key->next) {
        is_valid = is_valid && key->type != TD_JSON_TYPE_ARRAY && key->type != TD_JSON_TYPE_OBJECT;
        if (key->type == TD_JSON_TYPE_STRING) {
            td_json_set(work->arena, kept, key->text, td_json_new_null(work->arena));
        }
    }
    for (const struct td_json *member = td_json_first_member(patch); member && is_valid;
         member = member->next) {
        is_valid = member->type == TD_JSON_TYPE_NULL || strategic_is_parallel_list(member->key) ||
                   td_json_get(kept, member->key);
    }
    if (!is_valid) {
        return td_error_set(work->err, TD_INVALID,
                            "$retainKeys is no list of names, or lacks a field of the patch");
    }
    for (struct td_json *member = td_json_first_member(original), *next; member; member = next) {
        next = member->next;
        if (!td_json_get(kept, member->key)) {
            (void)td_json_remove(original, member->key); /* it is there */
        }
    }
    return TD_OK;
}

/* The field that "PREFIX/FIELD" is about. */
static int strategic_field_of(struct patch_work *work, td_str name, td_str prefix, td_str *ret)
{
    size_t slash = td_str_find(name, '/', 0);
    if (slash == name.len || slash != prefix.len) {
        return td_error_set(work->err, TD_INVALID, "directive \"%.*s\" is not %.*s/FIELD",
                            TD_STR_ARG(name), TD_STR_ARG(prefix));
    }
    *ret = td_str_slice(name, slash + 1, name.len);
    return TD_OK;
}

/* Elements that the patch deletes leave the list. What upstream's slice keeps behind its new end
 * is then, for each deletion, the element that was last before it; `list.items` is left like
 * that. */
struct strategic_deletion {
    struct patch_list list;
    bool *is_dead;
    size_t alive; /* how many */
    size_t last;  /* no living element after this position */
    struct td_json **leftovers;
};

static void strategic_delete_at(struct strategic_deletion *deletion, size_t position)
{
    while (deletion->is_dead[deletion->last]) {
        deletion->last--;
    }
    deletion->alive--;
    deletion->leftovers[deletion->alive] = deletion->list.items[deletion->last];
    deletion->is_dead[position] = true;
}

static size_t strategic_end_deletion(struct strategic_deletion *deletion)
{
    size_t kept = 0;
    for (size_t i = 0; i < deletion->list.count; i++) {
        if (!deletion->is_dead[i]) {
            deletion->list.items[kept++] = deletion->list.items[i];
        }
    }
    for (size_t i = kept; i < deletion->list.count; i++) {
        deletion->list.items[i] = deletion->leftovers[i];
    }
    return kept;
}

static int strategic_delete_element(struct patch_work *work, const struct patch_index *index,
                                    const struct td_json *key_value,
                                    struct strategic_deletion *deletion)
{
    if (!key_value) {
        return td_error_set(work->err, TD_INVALID, "element to delete has no merge key");
    }
    size_t position = PATCH_NONE;
    int code = td_patch_index_find(work, index, td_patch_value(work, key_value), &position);
    if (position != PATCH_NONE && deletion->is_dead[position]) {
        return code; /* and so are all with this key */
    }
    while (code == TD_OK && position != PATCH_NONE) {
        strategic_delete_at(deletion, position);
        position = td_patch_index_next(index, position);
    }
    return code;
}

static bool strategic_has_directives(struct patch_list patch)
{
    for (size_t i = 0; i < patch.count; i++) {
        if (td_json_get(patch.items[i], PATCH_DIRECTIVE)) {
            return true;
        }
    }
    return false;
}

/* Carry out the elements with directives: deletes elements of `original`, whose new count is set,
 * and leaves the others in `patch`. `is_replaced` tells that the others are the whole new list. */
static int strategic_special_elements(struct patch_work *work, struct patch_list *original,
                                      struct patch_list *patch, td_str key, bool *is_replaced)
{
    if (!strategic_has_directives(*patch)) {
        return TD_OK;
    }
    struct strategic_deletion deletion = {
        .list = *original,
        .is_dead = td_arena_array(work->arena, bool, original->count),
        .alive = original->count,
        .last = original->count > 0 ? original->count - 1 : 0,
        .leftovers = td_arena_array(work->arena, struct td_json *, original->count),
    };
    struct patch_list rest = td_patch_list_copy(work, *patch);
    struct patch_index index;
    td_patch_index_init(work, &index, *original, &key, original->count);
    int code = TD_OK;
    rest.count = 0;
    for (size_t i = 0; i < patch->count && code == TD_OK; i++) {
        const struct td_json *directive = td_json_get(patch->items[i], PATCH_DIRECTIVE);
        td_str text = td_json_get_str(patch->items[i], PATCH_DIRECTIVE, TD_STR_EMPTY);
        if (!directive) {
            rest.items[rest.count++] = patch->items[i];
        } else if (td_str_equal(text, TD_STR("delete"))) {
            const struct td_json *value = td_json_get(patch->items[i], key);
            code = strategic_delete_element(work, &index, value, &deletion);
        } else if (td_str_equal(text, TD_STR("replace"))) {
            *is_replaced = true;
        } else {
            code = td_error_set(work->err, TD_INVALID, "unknown $patch directive \"%.*s\"",
                                TD_STR_ARG(text));
        }
    }
    td_patch_index_done(&index);
    original->count = strategic_end_deletion(&deletion);
    *patch = rest;
    return code;
}

/* Elements of the patch are merged into those with the same key, or appended as they are. Upstream
 * appends into the `room` that deleted elements left in its slice, in place of the leftovers. */
static int strategic_merge_elements(struct patch_work *work, const struct patch_field *field,
                                    struct patch_list original, size_t room,
                                    struct patch_list patch, size_t depth, struct patch_list *ret)
{
    td_str key = field->key;
    struct patch_list merged = {
        .items = td_arena_array(work->arena, struct td_json *, original.count + patch.count),
        .count = original.count,
    };
    for (size_t i = 0; i < original.count; i++) {
        merged.items[i] = original.items[i];
    }
    struct patch_index index;
    td_patch_index_init(work, &index, original, &key, original.count + patch.count);
    int code = TD_OK;
    for (size_t i = 0; i < patch.count && code == TD_OK; i++) {
        const struct td_json *key_value = td_json_get(patch.items[i], key);
        size_t position = PATCH_NONE;
        if (!key_value) {
            code = td_error_set(work->err, TD_INVALID, "element %zu has no merge key \"%.*s\"", i,
                                TD_STR_ARG(key));
            break;
        }
        struct patch_value value = td_patch_value(work, key_value);
        code = td_patch_index_find(work, &index, value, &position);
        if (code == TD_OK && position != PATCH_NONE) {
            code = td_patch_merge_objects(work, field->type, merged.items[position], patch.items[i],
                                          depth + 1, &merged.items[position]);
            if (position < original.count) {
                original.items[position] = merged.items[position];
            }
        } else if (code == TD_OK) {
            td_patch_index_add(work, &index, value);
            if (merged.count < room) {
                original.items[merged.count] = patch.items[i];
            }
            merged.items[merged.count++] = patch.items[i];
        }
    }
    td_patch_index_done(&index);
    *ret = merged;
    return code;
}

static size_t strategic_go_capacity(size_t count)
{
    size_t capacity = 1;
    while (capacity < count) {
        capacity *= 2;
    }
    return capacity;
}

/* The union of two lists of scalars. When Go's slice has room, upstream appends and removes
 * duplicates inside `original`, so that list changes too. */
static struct patch_list strategic_merge_scalars(struct patch_work *work,
                                                 struct patch_list original,
                                                 struct patch_list patch)
{
    struct patch_list both = {
        .items = td_arena_array(work->arena, struct td_json *, original.count + patch.count),
        .count = original.count + patch.count,
    };
    for (size_t i = 0; i < both.count; i++) {
        both.items[i] = i < original.count ? original.items[i] : patch.items[i - original.count];
    }
    struct patch_list merged = both;
    merged.count = td_patch_deduplicate(work, both);
    bool is_in_place = original.count > 0 && both.count <= GO_CAPACITY_MAX &&
                       both.count <= strategic_go_capacity(original.count);
    for (size_t i = 0; i < original.count && is_in_place; i++) {
        original.items[i] = both.items[i];
    }
    return merged;
}

static int strategic_delete_scalars(struct patch_work *work, struct patch_list original,
                                    struct patch_list unwanted, struct patch_list *ret)
{
    struct patch_list kept = td_patch_list_copy(work, original);
    struct patch_index index;
    td_patch_index_init(work, &index, unwanted, NULL, unwanted.count);
    int code = TD_OK;
    kept.count = 0;
    for (size_t i = 0; i < original.count && code == TD_OK; i++) {
        size_t position = PATCH_NONE;
        struct patch_value value = td_patch_value(work, original.items[i]);
        code = td_patch_index_find(work, &index, value, &position);
        if (position == PATCH_NONE) {
            kept.items[kept.count++] = original.items[i];
        }
    }
    td_patch_index_done(&index);
    *ret = kept;
    return code;
}

/* A copy of the keys alone: merging uses up the elements of the patch, and their order is needed
 * afterwards. */
static struct patch_list strategic_keys_of(struct patch_work *work, struct patch_list list,
                                           td_str key)
{
    struct patch_list keys = td_patch_list_copy(work, list);
    for (size_t i = 0; i < list.count; i++) {
        const struct td_json *value = td_json_get(list.items[i], key);
        keys.items[i] = td_json_new_object(work->arena);
        if (value) {
            td_json_set(work->arena, keys.items[i], key, td_json_copy(work->arena, value, false));
        }
    }
    return keys;
}

/* `original.items` is left as upstream's slice would be. */
static int strategic_merge_lists(struct patch_work *work, const struct patch_field *field,
                                 struct patch_list original, struct patch_list patch,
                                 bool is_deletion, size_t depth, struct patch_list *ret)
{
    if (!field->is_merged && !is_deletion) {
        *ret = patch;
        return TD_OK;
    }
    if (original.count == 0 && patch.count == 0) {
        *ret = original;
        return TD_OK;
    }
    struct patch_order order = {.key = field->key};
    int code = td_patch_element_kind(work, original, patch, &order.kind);
    if (code < 0) {
        return code;
    }
    struct patch_list merged = {.items = NULL, .count = 0};
    if (order.kind != PATCH_OBJECT) {
        if (work->onto_document && is_deletion) {
            return strategic_delete_scalars(work, original, patch, ret);
        }
        order.order = patch;
        merged = strategic_merge_scalars(work, original, patch);
        return td_patch_arrange(work, merged, &order, original, ret);
    }
    if (field->key.len == 0) {
        return td_error_set(work->err, TD_INVALID, "list of objects has no merge key");
    }
    bool is_replaced = false;
    size_t room = original.count;
    code = strategic_special_elements(work, &original, &patch, field->key, &is_replaced);
    if (code < 0) {
        return code;
    }
    if (is_replaced) {
        original = patch;
        room = original.count;
        patch = (struct patch_list){.items = NULL, .count = 0};
    }
    order.order = strategic_keys_of(work, patch, field->key);
    code = strategic_merge_elements(work, field, original, room, patch, depth, &merged);
    if (code < 0) {
        return code;
    }
    return td_patch_arrange(work, merged, &order, original, ret);
}

/* Elements of the patch list must come in the order that the order list gives; those with
 * directives do not count. */
static int strategic_check_order(struct patch_work *work, struct patch_list patch,
                                 struct patch_list order, td_str key)
{
    if (order.count == 0 || patch.count == 0) {
        return TD_OK;
    }
    for (size_t i = 0; i < patch.count && key.len > 0; i++) {
        if (patch.items[i]->type != TD_JSON_TYPE_OBJECT) {
            return td_error_set(work->err, TD_INVALID, "element %zu of the patch is no object", i);
        }
    }
    size_t i = 0;
    size_t j = 0;
    while (i < patch.count && j < order.count) {
        const struct td_json *ours = patch.items[i];
        const struct td_json *theirs = order.items[j];
        if (td_json_get(ours, PATCH_DIRECTIVE)) {
            i++;
            continue;
        }
        if (key.len > 0) {
            ours = td_json_get(ours, key);
            theirs = td_json_get(theirs, key);
        }
        struct patch_value left = td_patch_value(work, ours);
        struct patch_value right = td_patch_value(work, theirs);
        bool is_collection = left.kind == PATCH_OBJECT || left.kind == PATCH_LIST;
        if (!ours || !theirs || (is_collection && left.kind == right.kind)) {
            return td_error_set(work->err, TD_INVALID, "element has no merge key \"%.*s\"",
                                TD_STR_ARG(key));
        }
        i += left.kind == right.kind && td_str_equal(left.text, right.text) ? 1 : 0;
        j++;
    }
    bool is_deleted = i < patch.count && key.len > 0;
    while (is_deleted && i < patch.count) {
        td_str directive = td_json_get_str(patch.items[i], PATCH_DIRECTIVE, TD_STR_EMPTY);
        is_deleted = td_str_equal(directive, TD_STR("delete"));
        i += is_deleted ? 1 : 0;
    }
    return i == patch.count
               ? TD_OK
               : td_error_set(work->err, TD_INVALID, "list and its $setElementOrder disagree");
}

/* What one $setElementOrder is about. */
struct strategic_ordered {
    td_str name; /* of the field */
    struct patch_field field;
    struct patch_list order;
    struct td_json *original_node; /* NULL when the list is not there */
    struct td_json *patch_node;
    struct patch_list original;
    struct patch_list patch;
};

static int strategic_take_ordered(struct patch_work *work, const struct td_schema_type *type,
                                  const struct td_json *original, const struct td_json *patch,
                                  const struct td_json *order, struct strategic_ordered *ret)
{
    struct strategic_ordered it = {.name = TD_STR_EMPTY};
    if (order->type != TD_JSON_TYPE_ARRAY) {
        return td_error_set(work->err, TD_INVALID, "order is no list");
    }
    int code = strategic_field_of(work, order->key, PATCH_ORDER_PREFIX, &it.name);
    if (code < 0) {
        return code;
    }
    it.order = td_patch_list(work, order);
    it.original_node = td_json_get(original, it.name);
    it.patch_node = td_json_get(patch, it.name);
    if ((it.original_node && it.original_node->type != TD_JSON_TYPE_ARRAY) ||
        (it.patch_node && it.patch_node->type != TD_JSON_TYPE_ARRAY)) {
        return td_error_set(work->err, TD_INVALID, "field \"%.*s\" is no list",
                            TD_STR_ARG(it.name));
    }
    if (it.original_node) {
        it.original = td_patch_list(work, it.original_node);
    }
    if (it.patch_node) {
        it.patch = td_patch_list(work, it.patch_node);
    }
    code = td_patch_lookup_list(work, type, it.name, &it.field);
    if (code < 0) {
        return code;
    }
    *ret = it;
    return strategic_check_order(work, it.patch, it.order, it.field.key);
}

static int strategic_merge_ordered(struct patch_work *work, struct strategic_ordered *it,
                                   size_t depth, struct patch_list *ret)
{
    struct patch_order order = {.order = it->order, .key = it->field.key};
    struct patch_list merged = it->original;
    int code = TD_OK;
    if (!it->original_node) {
        merged = td_patch_list(work, strategic_strip(work, it->patch_node, 1));
    } else if (it->patch_node) {
        code =
            strategic_merge_lists(work, &it->field, it->original, it->patch, false, depth, &merged);
    }
    if (code < 0) {
        return code;
    }
    code = td_patch_element_kind(work, it->original, it->patch, &order.kind);
    if (code < 0) {
        return code;
    }
    return td_patch_arrange(work, merged, &order, it->original, ret);
}

/* Two patches must agree on an order; the first then holds it. */
static int strategic_carry_order(struct patch_work *work, struct td_json *original,
                                 const struct td_json *order)
{
    const struct td_json *ours = td_json_get(original, order->key);
    if (!ours) {
        td_json_set(work->arena, original, order->key, td_json_copy(work->arena, order, false));
        return TD_OK;
    }
    return td_patch_deep_equal(work, ours, order)
               ? TD_OK
               : td_error_set(work->err, TD_INVALID, "two orders of one list differ");
}

/* One $setElementOrder, its list in both sides, and the elements of that list. */
static int strategic_apply_order(struct patch_work *work, const struct td_schema_type *type,
                                 struct td_json *original, struct td_json *patch,
                                 struct td_json *order, size_t depth)
{
    int code = work->onto_document ? TD_OK : strategic_carry_order(work, original, order);
    if (code < 0) {
        return code;
    }
    struct strategic_ordered it;
    (void)td_json_remove(patch, order->key); /* it is there */
    code = strategic_take_ordered(work, type, original, patch, order, &it);
    if (code < 0 || (!it.original_node && !it.patch_node)) {
        return code;
    }
    struct patch_list merged;
    code = strategic_merge_ordered(work, &it, depth, &merged);
    if (code < 0) {
        return code;
    }
    td_json_set(work->arena, original, it.name, td_patch_list_json(work, merged));
    (void)td_json_remove(patch, it.name); /* there or not, it is done */
    return TD_OK;
}

static int strategic_apply_orders(struct patch_work *work, const struct td_schema_type *type,
                                  struct td_json *original, struct td_json *patch, size_t depth)
{
    size_t count = 0;
    td_str *names = td_arena_array(work->arena, td_str, patch->count);
    for (const struct td_json *member = td_json_first_member(patch); member;
         member = member->next) {
        if (td_str_starts_with(member->key, PATCH_ORDER_PREFIX)) {
            names[count++] = member->key;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct td_json *order = td_json_get(patch, names[i]);
        if (!order) {
            continue; /* another one was about this one */
        }
        int code = strategic_apply_order(work, type, original, patch, order, depth);
        if (code < 0) {
            return td_patch_fail_at(work, names[i], code);
        }
    }
    return TD_OK;
}

/* A value that meets nothing, or something of another type, in the original. */
static void strategic_take(struct patch_work *work, struct td_json *original, td_str name,
                           struct td_json *value)
{
    if (work->onto_document) {
        strategic_discard_nulls(value, 1);
    }
    struct td_json *stripped = strategic_strip(work, value, 1);
    if (stripped) {
        td_json_set(work->arena, original, name, stripped);
    } else {
        (void)td_json_remove(original, name); /* may not be there */
    }
}

static int strategic_merge_both(struct patch_work *work, const struct td_schema_type *type,
                                struct td_json *original, struct td_json *value, td_str name,
                                bool is_deletion, size_t depth)
{
    struct td_json *current = td_json_get(original, name);
    struct patch_field field;
    int code = TD_OK;
    if (value->type == TD_JSON_TYPE_OBJECT) {
        struct td_json *merged = value;
        code = td_patch_lookup_object(work, type, name, &field);
        if (code == TD_OK && !field.is_replaced) {
            code = td_patch_merge_objects(work, field.type, current, value, depth + 1, &merged);
        }
        if (code == TD_OK) {
            td_json_set(work->arena, original, name, merged);
        }
        return code;
    }
    if (value->type == TD_JSON_TYPE_ARRAY) {
        struct patch_list merged;
        code = td_patch_lookup_list(work, type, name, &field);
        if (code == TD_OK) {
            code = strategic_merge_lists(work, &field, td_patch_list(work, current),
                                         td_patch_list(work, value), is_deletion, depth, &merged);
        }
        if (code == TD_OK) {
            td_json_set(work->arena, original, name, td_patch_list_json(work, merged));
        }
        return code;
    }
    td_json_set(work->arena, original, name, value);
    return TD_OK;
}

static int strategic_merge_member(struct patch_work *work, const struct td_schema_type *type,
                                  struct td_json *original, struct td_json *value, size_t depth)
{
    td_str name = value->key;
    bool is_deletion = td_str_starts_with(name, PATCH_DELETE_PREFIX);
    if (is_deletion && !work->onto_document) {
        td_json_set(work->arena, original, name, value);
        return TD_OK;
    }
    if (is_deletion) {
        td_str field = TD_STR_EMPTY;
        int code = strategic_field_of(work, name, PATCH_DELETE_PREFIX, &field);
        if (code < 0) {
            return code;
        }
        name = field.len > 0 ? field : name;
    }
    if (value->type == TD_JSON_TYPE_NULL) {
        (void)td_json_remove(original, name); /* may not be there */
        if (work->onto_document) {
            return TD_OK;
        }
    }
    const struct td_json *current = td_json_get(original, name);
    if (td_patch_kind(current) == td_patch_kind(value)) {
        return strategic_merge_both(work, type, original, value, name, is_deletion, depth);
    }
    if (!is_deletion) {
        strategic_take(work, original, name, value);
    }
    return TD_OK;
}

int td_patch_merge_objects(struct patch_work *work, const struct td_schema_type *type,
                           struct td_json *original, struct td_json *patch, size_t depth,
                           struct td_json **ret)
{
    if (depth > TD_JSON_DEPTH_MAX) {
        return td_error_set(work->err, TD_LIMIT, "patch is nested deeper than %d",
                            TD_JSON_DEPTH_MAX);
    }
    const struct td_json *directive = td_json_get(patch, PATCH_DIRECTIVE);
    if (directive) {
        return strategic_directive(work, directive, patch, ret);
    }
    int code = strategic_retain_keys(work, original, patch);
    if (code < 0) {
        return code;
    }
    code = strategic_apply_orders(work, type, original, patch, depth);
    if (code < 0) {
        return code;
    }
    for (struct td_json *member = td_json_first_member(patch), *next; member; member = next) {
        td_str name = member->key;
        next = member->next;
        code = strategic_merge_member(work, type, original, member, depth);
        if (code < 0) {
            return td_patch_fail_at(work, name, code);
        }
    }
    *ret = original;
    return TD_OK;
}

int td_patch_strategic(struct td_arena *arena, const struct td_schema_type *type,
                       const struct td_json *document, const struct td_json *patch,
                       struct td_json **ret, struct td_error *err)
{
    struct patch_work work = {
        .arena = arena, .err = err, .path = TD_STR_EMPTY, .onto_document = true};
    struct td_json *original = NULL;
    struct td_json *changes = NULL;
    struct td_json *result = NULL;
    int code = td_patch_import(&work, document, "document", &original);
    if (code < 0) {
        return code;
    }
    code = td_patch_import(&work, patch, "patch", &changes);
    if (code < 0) {
        return code;
    }
    code = td_patch_merge_objects(&work, type, original, changes, 1, &result);
    if (code < 0) {
        return td_patch_fail(&work, code);
    }
    td_patch_export(&work, result);
    *ret = result;
    return TD_OK;
}
