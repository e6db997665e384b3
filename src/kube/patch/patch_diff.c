/*
 * The strategic merge patch between two objects. Lists merged by key are compared after sorting
 * both by the key's text, so elements meet their partners in one pass; the patch then lists changed
 * and added elements in the order of the new list, deletions last, and $setElementOrder says how
 * all of them stand.
 */
#include "base/error.h"
#include "base/limits.h"
#include "kube/patch/patch_work.h"

struct diff {
    const struct patch_diff_options *options;
    const struct td_schema_type *type;
    struct td_json *original;
    const struct td_json *modified;
    struct td_json *patch;
    size_t depth;
};

static int diff_objects(struct patch_work *work, const struct diff *pair, struct td_json **ret);

static void diff_put(struct patch_work *work, const struct diff *diff, td_str name,
                     const struct td_json *value)
{
    td_json_set(work->arena, diff->patch, name, td_json_copy(work->arena, value, false));
}

static td_str diff_parallel_name(struct patch_work *work, td_str prefix, td_str name)
{
    return td_arena_format(work->arena, "%.*s/%.*s", TD_STR_ARG(prefix), TD_STR_ARG(name));
}

static void diff_replace(struct patch_work *work, const struct diff *diff,
                         const struct td_json *original, const struct td_json *modified)
{
    if (!diff->options->without_changes && !td_patch_deep_equal(work, original, modified)) {
        diff_put(work, diff, modified->key, modified);
    }
}

static int diff_directive(struct patch_work *work, const struct diff *diff,
                          const struct td_json *original, const struct td_json *modified)
{
    if (original->type != TD_JSON_TYPE_STRING || modified->type != TD_JSON_TYPE_STRING) {
        return td_error_set(work->err, TD_INVALID, "$patch is no string");
    }
    if (!td_str_equal(original->text, modified->text)) {
        diff_put(work, diff, PATCH_DIRECTIVE, modified);
    }
    return TD_OK;
}

static int diff_member_objects(struct patch_work *work, const struct diff *diff,
                               struct td_json *original, const struct td_json *modified)
{
    struct patch_field field;
    int code = td_patch_lookup_object(work, diff->type, modified->key, &field);
    if (code < 0) {
        /* A field that the schema lacks does not matter while it stays the same. */
        return td_patch_deep_equal(work, original, modified) ? TD_OK : code;
    }
    if (field.is_replaced) {
        if (!diff->options->without_changes) {
            diff_put(work, diff, modified->key, modified);
        }
        return TD_OK;
    }
    struct patch_diff_options options = *diff->options;
    options.with_retain_keys = field.retains_keys;
    struct diff inner = {
        .options = &options,
        .type = field.type,
        .original = original,
        .modified = modified,
        .depth = diff->depth + 1,
    };
    struct td_json *patch = NULL;
    code = diff_objects(work, &inner, &patch);
    if (code == TD_OK && patch->count > 0) {
        td_json_set(work->arena, diff->patch, modified->key, patch);
    }
    return code;
}

/* What a merging list gives to the patch. */
struct list_diff {
    struct patch_list changes; /* nodes of their own */
    struct patch_list deletions;
    struct td_json *order; /* or NULL */
};

static struct patch_list diff_new_list(struct patch_work *work, size_t capacity)
{
    return (struct patch_list){.items = td_arena_array(work->arena, struct td_json *, capacity)};
}

static int diff_compare_scalars(struct patch_work *work, const struct td_json *left,
                                const struct td_json *right)
{
    if (!left || !right) {
        return left ? -1 : 1;
    }
    return td_str_compare(td_patch_print(work, left), td_patch_print(work, right));
}

static int diff_scalars(struct patch_work *work, const struct diff *diff,
                        struct patch_list original, struct patch_list modified,
                        struct list_diff *ret)
{
    struct patch_list sorted = td_patch_list_copy(work, modified);
    td_patch_sort_printed(work, original, NULL);
    td_patch_sort_printed(work, sorted, NULL);
    ret->changes = diff_new_list(work, modified.count);
    ret->deletions = diff_new_list(work, original.count);
    size_t i = 0;
    size_t j = 0;
    while (i < original.count || j < sorted.count) {
        struct td_json *ours = i < original.count ? original.items[i] : NULL;
        struct td_json *theirs = j < sorted.count ? sorted.items[j] : NULL;
        int order = diff_compare_scalars(work, ours, theirs);
        if (order < 0 && !diff->options->without_deletions) {
            ret->deletions.items[ret->deletions.count++] = td_json_copy(work->arena, ours, false);
        }
        if (order > 0 && !diff->options->without_changes) {
            ret->changes.items[ret->changes.count++] = td_json_copy(work->arena, theirs, false);
        }
        i += order <= 0 ? 1 : 0;
        j += order >= 0 ? 1 : 0;
    }
    ret->deletions.count = td_patch_deduplicate(work, ret->deletions);
    return TD_OK;
}

static struct td_json *diff_deletion(struct patch_work *work, td_str key,
                                     const struct td_json *value)
{
    struct td_json *element = td_json_new_object(work->arena);
    td_json_set(work->arena, element, key, td_json_copy(work->arena, value, false));
    td_json_set_str(work->arena, element, PATCH_DIRECTIVE, TD_STR("delete"));
    return element;
}

static int diff_element(struct patch_work *work, const struct diff *diff, td_str key,
                        struct td_json *original, const struct td_json *modified,
                        struct list_diff *ret)
{
    struct diff inner = {
        .options = diff->options,
        .type = diff->type,
        .original = original,
        .modified = modified,
        .depth = diff->depth + 1,
    };
    struct td_json *patch = NULL;
    int code = diff_objects(work, &inner, &patch);
    if (code == TD_OK && patch->count > 0) {
        td_json_set(work->arena, patch, key,
                    td_json_copy(work->arena, td_json_get(modified, key), false));
        ret->changes.items[ret->changes.count++] = patch;
    }
    return code;
}

static int diff_check_key(struct patch_work *work, struct patch_list list, td_str key)
{
    for (size_t i = 0; i < list.count; i++) {
        if (!td_json_get(list.items[i], key)) {
            return td_error_set(work->err, TD_INVALID, "element %zu has no merge key \"%.*s\"", i,
                                TD_STR_ARG(key));
        }
    }
    return TD_OK;
}

/* Here diff->type is that of the elements. */
static int diff_elements(struct patch_work *work, const struct diff *diff, td_str key,
                         struct patch_list original, struct patch_list modified,
                         struct list_diff *ret)
{
    struct patch_list ours = td_patch_list_copy(work, original);
    struct patch_list theirs = td_patch_list_copy(work, modified);
    td_patch_sort_printed(work, ours, &key);
    td_patch_sort_printed(work, theirs, &key);
    ret->changes = diff_new_list(work, original.count + modified.count);
    ret->deletions = diff_new_list(work, original.count);
    size_t i = 0;
    size_t j = 0;
    int code = TD_OK;
    while ((i < ours.count || j < theirs.count) && code == TD_OK) {
        const struct td_json *left = i < ours.count ? td_json_get(ours.items[i], key) : NULL;
        const struct td_json *right = j < theirs.count ? td_json_get(theirs.items[j], key) : NULL;
        int order = diff_compare_scalars(work, left, right);
        if (order == 0) {
            code = diff_element(work, diff, key, ours.items[i], theirs.items[j], ret);
        } else if (order > 0 && !diff->options->without_changes) {
            ret->changes.items[ret->changes.count++] =
                td_json_copy(work->arena, theirs.items[j], false);
        } else if (order < 0 && !diff->options->without_deletions) {
            ret->deletions.items[ret->deletions.count++] = diff_deletion(work, key, left);
        }
        i += order <= 0 ? 1 : 0;
        j += order >= 0 ? 1 : 0;
    }
    return code;
}

static int diff_is_same_order(struct patch_work *work, struct patch_list original,
                              struct patch_list modified, td_str key, bool *ret)
{
    *ret = original.count == modified.count;
    for (size_t i = 0; i < modified.count && *ret; i++) {
        struct patch_value left = td_patch_value(work, td_json_get(original.items[i], key));
        struct patch_value right = td_patch_value(work, td_json_get(modified.items[i], key));
        if (left.kind == right.kind && (left.kind == PATCH_LIST || left.kind == PATCH_OBJECT)) {
            return td_error_set(work->err, TD_INVALID, "merge key \"%.*s\" is no scalar",
                                TD_STR_ARG(key));
        }
        *ret = left.kind == right.kind && td_str_equal(left.text, right.text);
    }
    return TD_OK;
}

/* The list of merge keys that $setElementOrder holds. */
static struct td_json *diff_order_of(struct patch_work *work, struct patch_list modified,
                                     td_str key)
{
    struct td_json *order = td_json_new_array(work->arena);
    for (size_t i = 0; i < modified.count; i++) {
        struct td_json *element = td_json_new_object(work->arena);
        const struct td_json *value = td_json_get(modified.items[i], key);
        td_json_set(work->arena, element, key, td_json_copy(work->arena, value, false));
        td_json_append(order, element);
    }
    return order;
}

static int diff_object_lists(struct patch_work *work, const struct diff *diff, td_str key,
                             struct patch_list original, struct patch_list modified,
                             struct list_diff *ret)
{
    int code = diff_check_key(work, original, key);
    if (code < 0) {
        return code;
    }
    code = diff_check_key(work, modified, key);
    if (code < 0) {
        return code;
    }
    code = diff_elements(work, diff, key, original, modified, ret);
    if (code < 0) {
        return code;
    }
    struct patch_order by = {.order = modified, .key = key, .kind = PATCH_OBJECT};
    code = td_patch_sort(work, &ret->changes, &by);
    if (code < 0) {
        return code;
    }
    bool is_same_order = true;
    code = diff_is_same_order(work, original, modified, key, &is_same_order);
    if (code < 0) {
        return code;
    }
    for (size_t i = 0; i < ret->deletions.count; i++) {
        ret->changes.items[ret->changes.count++] = ret->deletions.items[i];
    }
    ret->deletions.count = 0;
    bool has_changes = ret->changes.count > 0;
    bool is_reordered = !diff->options->without_changes && (has_changes || !is_same_order);
    bool is_deleted = !diff->options->without_deletions && has_changes;
    if (diff->options->with_order && (is_reordered || is_deleted)) {
        ret->order = diff_order_of(work, modified, key);
    }
    return TD_OK;
}

/* `original` is sorted in place, and then compared with `modified` as it came. */
static int diff_scalar_lists(struct patch_work *work, const struct diff *diff, td_str name,
                             struct patch_list original, struct patch_list modified,
                             struct list_diff *ret)
{
    struct td_json *modified_node = td_json_get(diff->modified, name);
    int code = diff_scalars(work, diff, original, modified, ret);
    if (code < 0) {
        return code;
    }
    struct td_json *sorted = td_patch_list_json(work, original);
    td_json_set(work->arena, diff->original, name, sorted);
    struct patch_order by = {.order = modified,
                             .key = TD_STR_EMPTY,
                             .kind = td_patch_kind(td_json_first_item(modified_node))};
    code = td_patch_sort(work, &ret->changes, &by);
    if (code < 0) {
        return code;
    }
    bool is_deleted = !diff->options->without_deletions && ret->deletions.count > 0;
    bool is_changed =
        !diff->options->without_changes && !td_patch_deep_equal(work, sorted, modified_node);
    if (diff->options->with_order && (is_deleted || is_changed)) {
        ret->order = td_json_copy(work->arena, modified_node, false);
    }
    return TD_OK;
}

static int diff_merging_lists(struct patch_work *work, const struct diff *diff,
                              const struct patch_field *field, const struct td_json *original,
                              const struct td_json *modified, struct list_diff *ret)
{
    if (original->count == 0) {
        if (modified->count > 0 && !diff->options->without_changes) {
            ret->changes = td_patch_list(work, td_json_copy(work->arena, modified, false));
        }
        return TD_OK;
    }
    struct patch_list ours = td_patch_list(work, original);
    struct patch_list theirs = td_patch_list(work, modified);
    enum patch_kind kind = PATCH_MISSING;
    int code = td_patch_element_kind(work, ours, theirs, &kind);
    if (code < 0) {
        return code;
    }
    if (kind != PATCH_OBJECT) {
        return diff_scalar_lists(work, diff, modified->key, ours, theirs, ret);
    }
    struct patch_diff_options options = *diff->options;
    options.with_retain_keys = field->retains_keys;
    struct diff inner = {.options = &options, .type = field->type, .depth = diff->depth};
    return diff_object_lists(work, &inner, field->key, ours, theirs, ret);
}

static int diff_member_lists(struct patch_work *work, const struct diff *diff,
                             struct td_json *original, const struct td_json *modified)
{
    struct patch_field field;
    int code = td_patch_lookup_list(work, diff->type, modified->key, &field);
    if (code < 0) {
        return td_patch_deep_equal(work, original, modified) ? TD_OK : code;
    }
    if (!field.is_merged) {
        diff_replace(work, diff, original, modified);
        return TD_OK;
    }
    struct list_diff found = {.order = NULL};
    code = diff_merging_lists(work, diff, &field, original, modified, &found);
    if (code < 0) {
        return code;
    }
    if (found.changes.count > 0) {
        td_json_set(work->arena, diff->patch, modified->key,
                    td_patch_list_json(work, found.changes));
    }
    if (found.deletions.count > 0) {
        td_json_set(work->arena, diff->patch,
                    diff_parallel_name(work, PATCH_DELETE_PREFIX, modified->key),
                    td_patch_list_json(work, found.deletions));
    }
    if (found.order && found.order->count > 0) {
        td_json_set(work->arena, diff->patch,
                    diff_parallel_name(work, PATCH_ORDER_PREFIX, modified->key), found.order);
    }
    return TD_OK;
}

static int diff_member(struct patch_work *work, const struct diff *diff,
                       const struct td_json *modified)
{
    struct td_json *original = td_json_get(diff->original, modified->key);
    bool is_directive = td_str_equal(modified->key, PATCH_DIRECTIVE);
    if (original && is_directive) {
        return diff_directive(work, diff, original, modified);
    }
    if (td_patch_kind(original) != td_patch_kind(modified)) {
        if (!diff->options->without_changes) {
            diff_put(work, diff, modified->key, modified);
        }
        return TD_OK;
    }
    if (modified->type == TD_JSON_TYPE_OBJECT) {
        return diff_member_objects(work, diff, original, modified);
    }
    if (modified->type == TD_JSON_TYPE_ARRAY) {
        return diff_member_lists(work, diff, original, modified);
    }
    diff_replace(work, diff, original, modified);
    return TD_OK;
}

static bool diff_drops_something(const struct td_json *original, const struct td_json *modified)
{
    for (const struct td_json *member = td_json_first_member(original); member;
         member = member->next) {
        if (member->type != TD_JSON_TYPE_NULL && !td_json_get(modified, member->key)) {
            return true;
        }
    }
    return false;
}

static void diff_deleted_members(struct patch_work *work, const struct diff *diff)
{
    for (const struct td_json *member = td_json_first_member(diff->original); member;
         member = member->next) {
        if (!td_json_get(diff->modified, member->key)) {
            td_json_set(work->arena, diff->patch, member->key, td_json_new_null(work->arena));
        }
    }
}

/* The names that stay, sorted. */
static struct td_json *diff_retained_keys(struct patch_work *work, const struct td_json *modified)
{
    struct patch_list keys = diff_new_list(work, modified->count);
    for (const struct td_json *member = td_json_first_member(modified); member;
         member = member->next) {
        if (member->type != TD_JSON_TYPE_NULL) {
            keys.items[keys.count++] = td_json_new_string(work->arena, member->key);
        }
    }
    td_patch_sort_printed(work, keys, NULL);
    return td_patch_list_json(work, keys);
}

static int diff_objects(struct patch_work *work, const struct diff *pair, struct td_json **ret)
{
    if (pair->depth > TD_JSON_DEPTH_MAX) {
        return td_error_set(work->err, TD_LIMIT, "object is nested deeper than %d",
                            TD_JSON_DEPTH_MAX);
    }
    struct diff diff = *pair;
    diff.patch = td_json_new_object(work->arena);
    for (const struct td_json *member = td_json_first_member(diff.modified); member;
         member = member->next) {
        int code = diff_member(work, &diff, member);
        if (code < 0) {
            return td_patch_fail_at(work, member->key, code);
        }
    }
    if (!diff.options->without_deletions) {
        diff_deleted_members(work, &diff);
    }
    if (diff.options->with_retain_keys) {
        struct td_json *keys = diff_retained_keys(work, diff.modified);
        bool is_needed =
            diff.patch->count > 0 || diff_drops_something(diff.original, diff.modified);
        if (keys->count > 0 && is_needed) {
            td_json_set(work->arena, diff.patch, PATCH_RETAIN_KEYS, keys);
        }
    }
    *ret = diff.patch;
    return TD_OK;
}

int td_patch_diff(struct patch_work *work, const struct td_schema_type *type,
                  struct td_json *original, const struct td_json *modified,
                  const struct patch_diff_options *options, struct td_json **ret)
{
    struct diff diff = {
        .options = options,
        .type = type,
        .original = original,
        .modified = modified,
        .depth = 1,
    };
    return diff_objects(work, &diff, ret);
}
