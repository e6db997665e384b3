/*
 * What "kubectl apply" sends: the changes from the live object to the new configuration without
 * deletions, merged with the deletions from the last configuration to the new one. Without
 * overwrite, what was changed on both sides, in the patch and in the live object since the last
 * configuration, must not differ.
 */
#include "base/error.h"
#include "base/limits.h"
#include "kube/patch/patch.h"
#include "kube/patch/patch_work.h"

/* How two values in conflict are compared. */
struct conflict_field {
    const struct td_schema_type *type; /* NULL when nothing is known */
    bool is_merged;
    bool is_replaced;
    td_str key;
};

/* TD_CONFLICT when they differ where both say something; other codes for what upstream cannot
 * compare. */
static int conflict_values(struct patch_work *work, const struct conflict_field *field,
                           struct td_json *left, struct td_json *right, size_t depth);

static int conflict_found(struct patch_work *work)
{
    return td_error_set(work->err, TD_CONFLICT,
                        "changed differently in the live object since it was last applied");
}

static int conflict_lookup(struct patch_work *work, const struct conflict_field *field,
                           const struct td_json *left, struct conflict_field *ret)
{
    struct patch_field found = {.type = NULL, .key = TD_STR_EMPTY};
    int code = TD_OK;
    if (left->type == TD_JSON_TYPE_ARRAY) {
        code = td_patch_lookup_list(work, field->type, left->key, &found);
    } else if (left->type == TD_JSON_TYPE_OBJECT) {
        code = td_patch_lookup_object(work, field->type, left->key, &found);
    }
    if (code == TD_OK) {
        *ret = (struct conflict_field){.type = found.type,
                                       .is_merged = found.is_merged,
                                       .is_replaced = found.is_replaced,
                                       .key = found.key};
    }
    return code;
}

static int conflict_members(struct patch_work *work, const struct conflict_field *field,
                            struct td_json *left, struct td_json *right, size_t depth)
{
    for (struct td_json *member = td_json_first_member(left), *next; member; member = next) {
        td_str name = member->key;
        next = member->next;
        struct td_json *other = td_json_get(right, name);
        if (!other || td_str_equal(name, PATCH_DIRECTIVE) ||
            td_str_equal(name, PATCH_RETAIN_KEYS)) {
            continue;
        }
        struct conflict_field inner;
        int code = conflict_lookup(work, field, member, &inner);
        if (code == TD_OK) {
            code = conflict_values(work, &inner, member, other, depth + 1);
        }
        if (code < 0) {
            return td_patch_fail_at(work, name, code);
        }
    }
    return TD_OK;
}

static int conflict_objects(struct patch_work *work, const struct conflict_field *field,
                            struct td_json *left, struct td_json *right, size_t depth)
{
    struct patch_value ours = td_patch_value(work, td_json_get(left, PATCH_DIRECTIVE));
    struct patch_value theirs = td_patch_value(work, td_json_get(right, PATCH_DIRECTIVE));
    if (ours.kind != theirs.kind || !td_str_equal(ours.text, theirs.text)) {
        return conflict_found(work);
    }
    if (ours.kind == PATCH_LIST || ours.kind == PATCH_OBJECT) {
        return td_error_set(work->err, TD_INVALID, "$patch is no string");
    }
    return field->is_replaced ? TD_OK : conflict_members(work, field, left, right, depth);
}

/* Elements of merging lists meet by their key; of equal keys the last one counts. */
static int conflict_elements(struct patch_work *work, const struct conflict_field *field,
                             struct patch_list left, struct patch_list right, size_t depth)
{
    struct td_json *by_key = td_json_new_object(work->arena); /* position + 1 of the right ones */
    for (size_t side = 0; side < 2; side++) {
        struct patch_list list = side == 0 ? right : left;
        for (size_t i = 0; i < list.count; i++) {
            if (!td_json_get(list.items[i], field->key)) {
                return td_error_set(work->err, TD_INVALID, "element %zu has no merge key \"%.*s\"",
                                    i, TD_STR_ARG(field->key));
            }
        }
    }
    for (size_t i = 0; i < right.count; i++) {
        const struct td_json *value = td_json_get(right.items[i], field->key);
        td_str name = td_arena_format(work->arena, "%d:%.*s", (int)td_patch_kind(value),
                                      TD_STR_ARG(td_patch_print(work, value)));
        td_json_set_int64(work->arena, by_key, name, (int64_t)i);
    }
    struct conflict_field inner = {.type = field->type, .key = TD_STR_EMPTY};
    struct td_json *seen = td_json_new_object(work->arena);
    for (size_t i = left.count; i-- > 0;) {
        const struct td_json *value = td_json_get(left.items[i], field->key);
        td_str name = td_arena_format(work->arena, "%d:%.*s", (int)td_patch_kind(value),
                                      TD_STR_ARG(td_patch_print(work, value)));
        int64_t position = td_json_get_int64(by_key, name, -1);
        if (position < 0 || td_json_get(seen, name)) {
            continue;
        }
        td_json_set(work->arena, seen, name, td_json_new_null(work->arena));
        int code = conflict_values(work, &inner, left.items[i], right.items[position], depth + 1);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

/* Upstream sorts both lists in place and drops duplicates behind their ends, so the patch that is
 * sent has its list sorted too. Returns how many scalars are compared. */
static size_t conflict_sort_scalars(struct patch_work *work, struct td_json *array)
{
    struct patch_list list = td_patch_list(work, array);
    struct patch_list distinct = list;
    distinct.count = td_patch_deduplicate(work, list);
    td_patch_sort_printed(work, distinct, NULL);
    /* Nodes stay in their places and exchange their values; leftovers may be there twice. */
    struct td_json *values = td_arena_array(work->arena, struct td_json, list.count);
    for (size_t i = 0; i < list.count; i++) {
        values[i] = *list.items[i];
    }
    size_t place = 0;
    for (struct td_json *item = td_json_first_item(array); item; item = item->next) {
        const struct td_json *value = &values[place++];
        item->type = value->type;
        item->boolean = value->boolean;
        item->is_escaped = value->is_escaped;
        item->text = value->text;
    }
    return distinct.count;
}

static int conflict_lists(struct patch_work *work, const struct conflict_field *field,
                          struct td_json *left, struct td_json *right, size_t depth)
{
    enum patch_kind kind = PATCH_MISSING;
    int code =
        td_patch_element_kind(work, td_patch_list(work, left), td_patch_list(work, right), &kind);
    if (code < 0) {
        return code;
    }
    if (field->is_merged) {
        return kind != PATCH_OBJECT ? TD_OK
                                    : conflict_elements(work, field, td_patch_list(work, left),
                                                        td_patch_list(work, right), depth);
    }
    if (left->count != right->count) {
        return conflict_found(work);
    }
    size_t count = left->count;
    if (kind != PATCH_OBJECT) {
        count = conflict_sort_scalars(work, left);
        if (conflict_sort_scalars(work, right) < count) {
            return conflict_found(work);
        }
    }
    struct conflict_field inner = {.type = field->type, .key = TD_STR_EMPTY};
    struct td_json *other = td_json_first_item(right);
    struct td_json *item = td_json_first_item(left);
    for (size_t i = 0; i < count; i++) {
        code = conflict_values(work, &inner, item, other, depth + 1);
        if (code < 0) {
            return code;
        }
        item = item->next;
        other = other->next;
    }
    return TD_OK;
}

static int conflict_values(struct patch_work *work, const struct conflict_field *field,
                           struct td_json *left, struct td_json *right, size_t depth)
{
    if (depth > TD_JSON_DEPTH_MAX) {
        return td_error_set(work->err, TD_LIMIT, "patch is nested deeper than %d",
                            TD_JSON_DEPTH_MAX);
    }
    bool is_collection = left->type == TD_JSON_TYPE_OBJECT || left->type == TD_JSON_TYPE_ARRAY;
    if (!is_collection) {
        return td_patch_deep_equal(work, left, right) ? TD_OK : conflict_found(work);
    }
    if (left->type != right->type) {
        return conflict_found(work);
    }
    return left->type == TD_JSON_TYPE_OBJECT ? conflict_objects(work, field, left, right, depth)
                                             : conflict_lists(work, field, left, right, depth);
}

static int three_way_check_conflicts(struct patch_work *work, const struct td_schema_type *type,
                                     struct td_json *patch, struct td_json *original,
                                     const struct td_json *current)
{
    struct patch_diff_options options = {.with_order = false};
    struct td_json *changed = NULL;
    int code = td_patch_diff(work, type, original, current, &options, &changed);
    if (code < 0) {
        return code;
    }
    struct conflict_field root = {.type = type, .key = TD_STR_EMPTY};
    return conflict_values(work, &root, patch, changed, 1);
}

static int three_way_make(struct patch_work *work, const struct td_schema_type *type,
                          const struct td_patch_three_way *input, struct td_json **ret)
{
    struct td_json *original = NULL;
    struct td_json *modified = NULL;
    struct td_json *current = NULL;
    struct td_json *changes = NULL;
    struct td_json *deletions = NULL;
    struct td_json *patch = NULL;
    struct patch_diff_options only_changes = {.with_order = true, .without_deletions = true};
    struct patch_diff_options only_deletions = {.with_order = true, .without_changes = true};
    int code = td_patch_import(work, input->original, "original", &original);
    code = code < 0 ? code : td_patch_import(work, input->modified, "modified", &modified);
    code = code < 0 ? code : td_patch_import(work, input->current, "current", &current);
    if (code < 0) {
        return code;
    }
    code = td_patch_diff(work, type, current, modified, &only_changes, &changes);
    if (code < 0) {
        return code;
    }
    code = td_patch_diff(work, type, original, modified, &only_deletions, &deletions);
    if (code < 0) {
        return code;
    }
    code = td_patch_merge_objects(work, type, deletions, changes, 1, &patch);
    if (code < 0) {
        return code;
    }
    if (!input->overwrite) {
        code = three_way_check_conflicts(work, type, patch, original, current);
        if (code < 0) {
            return code;
        }
    }
    td_patch_export(work, patch);
    *ret = patch;
    return TD_OK;
}

int td_patch_three_way(struct td_arena *arena, const struct td_schema_type *type,
                       const struct td_patch_three_way *input, struct td_json **ret_patch,
                       struct td_error *err)
{
    struct patch_work work = {
        .arena = arena, .err = err, .path = TD_STR_EMPTY, .onto_document = false};
    int code = three_way_make(&work, type, input, ret_patch);
    return code < 0 ? td_patch_fail(&work, code) : TD_OK;
}
