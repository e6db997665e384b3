/* All items of all objects are folded into the two summaries, one after another: an order that
 * decides for resources other than cpu and memory. */
#include "decide/vertical/patch/limitrange.h"

#include "base/error.h"
#include "decide/vertical/resourcelist.h"

enum pick { PICK_LOWER, PICK_HIGHER };

static void merge_resource(struct td_arena *arena, struct td_resource_list *into,
                           const struct td_resource_list *item, td_str name, enum pick pick)
{
    const struct td_quantity *offered = td_resource_list_get(item, name);
    const struct td_quantity *held = td_resource_list_get(into, name);
    if (!offered) {
        return;
    }
    /* Of equal ones the later is taken, with its text. */
    int order = held ? td_quantity_compare(held, offered) : 0;
    if (held && (pick == PICK_LOWER ? order < 0 : order > 0)) {
        return;
    }
    td_resource_list_set(arena, into, name, offered);
}

static int merge_list(struct td_arena *arena, const struct td_json *item, td_str key,
                      enum pick pick, bool *has, struct td_resource_list *into,
                      struct td_error *err)
{
    const struct td_json *object = td_json_get(item, key);
    if (!object || td_json_is(object, TD_JSON_TYPE_NULL)) {
        return TD_OK;
    }
    struct td_resource_list list;
    int code = td_resource_list_decode(arena, object, &list, err);
    if (code < 0) {
        return td_error_wrap(err, code, "%.*s", TD_STR_ARG(key));
    }
    if (!*has) {
        *has = true;
        *into = list;
        return TD_OK;
    }
    merge_resource(arena, into, &list, TD_CPU, pick);
    merge_resource(arena, into, &list, TD_MEMORY, pick);
    return TD_OK;
}

static int merge_default(struct td_arena *arena, const struct td_json *item,
                         struct td_limit_summary *into, struct td_error *err)
{
    const struct td_json *object = td_json_get(item, TD_STR("default"));
    if (!object || td_json_is(object, TD_JSON_TYPE_NULL)) {
        return TD_OK;
    }
    into->has_default = true;
    int code = td_resource_list_decode(arena, object, &into->default_limit, err);
    return code < 0 ? td_error_wrap(err, code, "default") : code;
}

static int merge_item(struct td_arena *arena, const struct td_json *item,
                      struct td_limit_summary *into, struct td_error *err)
{
    int code = merge_list(arena, item, TD_STR("max"), PICK_LOWER, &into->has_max, &into->max, err);
    if (code == TD_OK) {
        code = merge_list(arena, item, TD_STR("min"), PICK_HIGHER, &into->has_min, &into->min, err);
    }
    if (code == TD_OK) {
        code = merge_default(arena, item, into, err);
    }
    into->is_set = into->has_max || into->has_min || into->has_default;
    return code;
}

static int merge_object(struct td_arena *arena, const struct td_json *object,
                        struct td_limit_ranges *into, bool *ret_has_container, struct td_error *err)
{
    const struct td_json *items = td_json_get_path(object, "spec.limits");
    if (items && !td_json_is(items, TD_JSON_TYPE_ARRAY) && !td_json_is(items, TD_JSON_TYPE_NULL)) {
        return td_error_set(err, TD_INVALID, "spec.limits: has the wrong JSON type");
    }
    size_t index = 0;
    const struct td_json *item = td_json_first_item(items);
    for (; item; item = item->next, index++) {
        td_str type = td_json_text(item, "type");
        bool is_container = td_str_equal(type, TD_STR("Container"));
        if (!is_container && !td_str_equal(type, TD_STR("Pod"))) {
            continue;
        }
        *ret_has_container = *ret_has_container || is_container;
        int code = merge_item(arena, item, is_container ? &into->container : &into->pod, err);
        if (code < 0) {
            return td_error_wrap(err, code, "spec.limits[%zu]", index);
        }
    }
    return TD_OK;
}

int td_limit_ranges_read(struct td_arena *arena, const struct td_json *const *objects, size_t count,
                         td_str namespace, struct td_limit_ranges *ret, struct td_error *err)
{
    struct td_limit_ranges result = {.container_names = NULL};
    td_str *names = td_arena_array(arena, td_str, count);
    for (size_t i = 0; i < count; i++) {
        const struct td_json *meta = td_json_get(objects[i], TD_STR("metadata"));
        td_str name = td_json_text(meta, "name");
        td_str home = td_json_text(meta, "namespace");
        if (namespace.len > 0 && !td_str_equal(home, namespace)) {
            continue;
        }
        bool has_container = false;
        int code = merge_object(arena, objects[i], &result, &has_container, err);
        if (code < 0) {
            return td_error_wrap(err, code, "LimitRange '%.*s'", TD_STR_ARG(name));
        }
        if (has_container) {
            names[result.container_name_count++] = name;
        }
    }
    result.container_names = names;
    *ret = result;
    return td_arena_check(arena, err);
}

const struct td_limit_summary *td_limit_summary_or_null(const struct td_limit_summary *summary)
{
    return summary && summary->is_set ? summary : NULL;
}
