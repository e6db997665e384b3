#include "golden/vpa_support.h"

#include "base/error.h"
#include "decide/vertical/resourcelist.h"

int golden_limit_ranges(struct td_arena *arena, const struct td_json *objects, td_str namespace,
                        struct td_limit_ranges *ret, struct td_error *err)
{
    size_t count = objects ? objects->count : 0;
    const struct td_json **list = td_arena_array(arena, const struct td_json *, count);
    size_t n = 0;
    for (const struct td_json *item = td_json_first_child(objects); item; item = item->next) {
        list[n++] = item;
    }
    return td_limit_ranges_read(arena, list, count, namespace, ret, err);
}

int golden_vpa_of(struct td_arena *arena, const struct td_json *policy,
                  const struct td_json *container_recommendations, struct td_vpa *ret,
                  struct td_error *err)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    if (policy) {
        td_json_set(arena, spec, TD_STR("resourcePolicy"), td_json_copy(arena, policy, false));
    }
    if (td_json_is(container_recommendations, TD_JSON_TYPE_ARRAY)) {
        struct td_json *status = td_json_ensure_object(arena, object, TD_STR("status"));
        struct td_json *made = td_json_ensure_object(arena, status, TD_STR("recommendation"));
        td_json_set(arena, made, TD_STR("containerRecommendations"),
                    td_json_copy(arena, container_recommendations, false));
    }
    return td_vpa_decode(arena, object, ret, err);
}

struct td_json *golden_recommendation_json(struct td_arena *arena,
                                           const struct td_recommendation *recommendation)
{
    struct td_json *array = td_json_new_array(arena);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        const struct td_container_recommendation *entry = &recommendation->containers[i];
        const struct {
            td_str key;
            const struct td_resource_list *list;
            bool has;
        } lists[] = {
            {TD_STR("target"), &entry->target, entry->has_target},
            {TD_STR("lowerBound"), &entry->lower_bound, entry->has_lower_bound},
            {TD_STR("upperBound"), &entry->upper_bound, entry->has_upper_bound},
            {TD_STR("uncappedTarget"), &entry->uncapped_target, entry->has_uncapped_target},
        };
        struct td_json *object = td_json_new_object(arena);
        td_json_set(arena, object, TD_STR("containerName"),
                    td_json_new_string(arena, entry->container_name));
        for (size_t l = 0; l < 4; l++) {
            td_json_set(arena, object, lists[l].key,
                        lists[l].has ? td_resource_list_json(arena, lists[l].list)
                                     : td_json_new_null(arena));
        }
        td_json_append(array, object);
    }
    return array;
}

struct td_json *golden_sorted_clauses(struct td_arena *arena, td_str text)
{
    struct td_json *clauses = td_json_new_array(arena);
    struct td_json *parts = td_json_new_object(arena);
    size_t start = 0;
    for (size_t i = 0; i <= text.len; i++) {
        bool is_end = i == text.len || text.ptr[i] == ';';
        if (is_end || text.ptr[i] == ',') {
            td_str part = td_str_trim(td_str_slice(text, start, i));
            /* The first part of a clause has the container in front. */
            td_json_set(arena, parts, part, td_json_new_bool(arena, true));
            start = i + 1;
        } else if (text.ptr[i] == ':' && i + 2 < text.len && parts->count == 0) {
            td_str head = td_str_trim(td_str_slice(text, start, i));
            td_json_set(arena, parts, head, td_json_new_bool(arena, true));
            start = i + 1;
        }
        if (is_end) {
            td_json_append(clauses, parts);
            parts = td_json_new_object(arena);
        }
    }
    return clauses;
}

static bool is_same_text(td_str a, td_str b)
{
    struct td_quantity left;
    struct td_quantity right;
    td_auto_arena arena;
    td_arena_init(&arena, SIZE_MAX);
    return td_str_equal(a, b) || (td_quantity_parse(&arena, a, &left, NULL) == TD_OK &&
                                  td_quantity_parse(&arena, b, &right, NULL) == TD_OK &&
                                  td_quantity_compare(&left, &right) == 0);
}

static bool is_same_set(const struct td_json *a, const struct td_json *b)
{
    for (const struct td_json *item = td_json_first_child(a); item; item = item->next) {
        bool is_found = false;
        for (const struct td_json *other = td_json_first_child(b); other && !is_found;
             other = other->next) {
            is_found = golden_equal_values(item, other);
        }
        if (!is_found) {
            return false;
        }
    }
    return a->count == b->count;
}

bool golden_equal_values(const struct td_json *a, const struct td_json *b)
{
    if (!a || !b || a->type != b->type) {
        return a == b;
    }
    if (td_json_is(a, TD_JSON_TYPE_STRING)) {
        return is_same_text(a->text, b->text);
    }
    if (td_json_is(a, TD_JSON_TYPE_ARRAY)) {
        return is_same_set(a, b);
    }
    if (!td_json_is(a, TD_JSON_TYPE_OBJECT)) {
        return td_json_equal(a, b);
    }
    for (const struct td_json *item = td_json_first_child(a); item; item = item->next) {
        if (!golden_equal_values(item, td_json_get(b, item->key))) {
            return false;
        }
    }
    return a->count == b->count;
}
