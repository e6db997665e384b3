/*
 * Merge patch. Upstream prunes nulls from what it adds, at every level and through arrays (whose
 * own nulls stay), with one exception that is kept here: an array that replaces an object is taken
 * as it is.
 */
#include "kube/patch/patch.h"

#include "base/error.h"
#include "base/limits.h"

/* A copy without null members; nulls of arrays stay. No deeper than TD_JSON_DEPTH_MAX. */
static struct td_json *merge_prune(struct td_arena *arena, const struct td_json *node, size_t depth)
{
    if (depth > TD_JSON_DEPTH_MAX) {
        return td_json_new_null(arena);
    }
    if (node->type == TD_JSON_TYPE_ARRAY) {
        struct td_json *array = td_json_new_array(arena);
        for (const struct td_json *item = td_json_first_item(node); item; item = item->next) {
            td_json_append(array, merge_prune(arena, item, depth + 1));
        }
        return array;
    }
    if (node->type != TD_JSON_TYPE_OBJECT) {
        return td_json_copy(arena, node, false);
    }
    struct td_json *object = td_json_new_object(arena);
    for (const struct td_json *member = td_json_first_member(node); member; member = member->next) {
        if (member->type != TD_JSON_TYPE_NULL) {
            td_json_set(arena, object, member->key, merge_prune(arena, member, depth + 1));
        }
    }
    return object;
}

/* `into` is ours to change, `patch` is not. */
static void merge_objects(struct td_arena *arena, struct td_json *into, const struct td_json *patch,
                          size_t depth)
{
    if (depth > TD_JSON_DEPTH_MAX) {
        return;
    }
    for (const struct td_json *member = td_json_first_member(patch); member;
         member = member->next) {
        struct td_json *current = td_json_get(into, member->key);
        bool is_into_object = td_json_is(current, TD_JSON_TYPE_OBJECT);
        if (member->type == TD_JSON_TYPE_NULL) {
            (void)td_json_remove(into, member->key); /* may not be there */
        } else if (is_into_object && member->type == TD_JSON_TYPE_OBJECT) {
            merge_objects(arena, current, member, depth + 1);
        } else if (is_into_object) {
            td_json_set(arena, into, member->key, td_json_copy(arena, member, false));
        } else {
            td_json_set(arena, into, member->key, merge_prune(arena, member, depth + 1));
        }
    }
}

int td_patch_merge(struct td_arena *arena, const struct td_json *document,
                   const struct td_json *patch, struct td_json **ret, struct td_error *err)
{
    if (document->type == TD_JSON_TYPE_NULL) {
        return td_error_set(err, TD_INVALID, "document is null");
    }
    if (patch->type != TD_JSON_TYPE_OBJECT && patch->type != TD_JSON_TYPE_ARRAY) {
        return td_error_set(err, TD_INVALID, "merge patch is neither an object nor an array");
    }
    if (td_json_depth(document) > TD_JSON_DEPTH_MAX || td_json_depth(patch) > TD_JSON_DEPTH_MAX) {
        return td_error_set(err, TD_LIMIT, "document or patch is nested deeper than %d",
                            TD_JSON_DEPTH_MAX);
    }
    if (document->type != TD_JSON_TYPE_OBJECT || patch->type == TD_JSON_TYPE_ARRAY) {
        *ret = merge_prune(arena, patch, 1);
        return TD_OK;
    }
    struct td_json *result = td_json_copy(arena, document, false);
    merge_objects(arena, result, patch, 1);
    *ret = result;
    return TD_OK;
}
