/*
 * Lists whose items must differ: uniqueItems, and the sets and maps of x-kubernetes-list-type.
 * Items are compared by their text with sorted members, through a hash map, so that the cost stays
 * linear. Of equal items the second is reported, once.
 */
#include "base/error.h"
#include "base/stringset.h"
#include "kube/schema/schema_private.h"

static td_str lists_key(struct td_arena *arena, const struct td_json *value)
{
    struct td_json *copy = td_json_copy(arena, value, false);
    td_json_sort(arena, copy);
    return td_json_line(arena, copy);
}

bool td_structural_has_duplicates(struct schema_work *work, const struct td_json *list)
{
    td_auto_string_set seen = td_string_set_capped(list->count);
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        if (td_string_set_add(&seen, lists_key(work->arena, item)) == TD_EXISTS) {
            return true;
        }
    }
    return false;
}

/* What tells an item of a map apart: its keys, those that it has. */
static struct td_json *lists_map_key(const struct schema_at *at, const struct td_json *item)
{
    struct td_arena *arena = at->work->arena;
    const struct td_json *keys = td_json_get(at->schema, TD_STR("x-kubernetes-list-map-keys"));
    struct td_json *made = td_json_new_object(arena);
    for (const struct td_json *key = td_json_first_item(keys); key; key = key->next) {
        const struct td_json *value =
            key->type == TD_JSON_TYPE_STRING ? td_json_get(item, key->text) : NULL;
        if (value) {
            td_json_set(arena, made, key->text, td_json_copy(arena, value, false));
        }
    }
    return made;
}

static void lists_check_unique(const struct schema_at *at, const struct td_json *list, bool is_map,
                               struct schema_result *result)
{
    static char once; /* marks in the map */
    static char twice;
    td_auto_map seen = td_map_capped(list->count);
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, index++) {
        const struct td_json *reported = is_map ? lists_map_key(at, item) : item;
        td_str key = lists_key(at->work->arena, reported);
        const char *mark = td_map_get(&seen, key);
        if (mark == &once) {
            struct td_field_path path = td_field_item(at->path, index);
            struct schema_at place = *at;
            place.path = &path;
            td_structural_add(&place, result, TD_FIELD_DUPLICATE,
                              td_structural_shown(at->work->arena, reported), TD_STR_EMPTY);
        }
        (void)td_map_put(&seen, key, mark ? &twice : &once); /* as many as the list has */
    }
}

/* A list of maps holds objects only; names the first that is none. */
static bool lists_has_objects(const struct schema_at *at, const struct td_json *list,
                              struct schema_result *result)
{
    size_t index = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, index++) {
        if (item->type != TD_JSON_TYPE_OBJECT && item->type != TD_JSON_TYPE_NULL) {
            struct td_field_path path = td_field_item(at->path, index);
            struct schema_at place = *at;
            place.path = &path;
            td_structural_add(&place, result, TD_FIELD_INVALID,
                              td_structural_shown(at->work->arena, item),
                              TD_STR("must be an object for an array of list-type map"));
            return false;
        }
    }
    return true;
}

static void lists_check_list(const struct schema_at *at, const struct td_json *list,
                             struct schema_result *result)
{
    td_str type = td_json_text(at->schema, "x-kubernetes-list-type");
    bool is_map = td_str_equal(type, TD_STR("map"));
    bool is_checked =
        is_map ? lists_has_objects(at, list, result) : td_str_equal(type, TD_STR("set"));
    if (is_checked) {
        lists_check_unique(at, list, is_map, result);
    }
    const struct td_json *items = td_json_get(at->schema, TD_STR("items"));
    size_t index = 0;
    for (const struct td_json *item = items ? td_json_first_item(list) : NULL; item;
         item = item->next) {
        struct td_field_path path = td_field_item(at->path, index++);
        struct schema_at below = {at->work, items, &path, at->depth + 1};
        td_structural_check_lists(&below, item, result);
    }
}

void td_structural_check_lists(const struct schema_at *at, const struct td_json *value,
                               struct schema_result *result)
{
    at->work->steps--;
    if (at->depth > TD_SCHEMA_DEPTH_MAX || at->work->steps < 0 ||
        result->errors.count >= TD_STRICT_PROBLEMS_MAX) {
        return;
    }
    if (value->type == TD_JSON_TYPE_ARRAY) {
        lists_check_list(at, value, result);
        return;
    }
    const struct td_json *properties = td_json_get(at->schema, TD_STR("properties"));
    const struct td_json *others = td_json_get(at->schema, TD_STR("additionalProperties"));
    for (const struct td_json *member = td_json_first_member(value); member;
         member = member->next) {
        const struct td_json *own = td_json_get(properties, member->key);
        const struct td_json *schema = own ? own : others;
        struct td_field_path path = td_field_child(at->path, member->key);
        path.is_key = !own;
        struct schema_at below = {at->work, schema, &path, at->depth + 1};
        if (td_json_is(schema, TD_JSON_TYPE_OBJECT)) {
            td_structural_check_lists(&below, member, result);
        }
    }
}
