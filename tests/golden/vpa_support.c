#include "golden/vpa_support.h"

#include "base/error.h"
#include "decide/vertical/resourcelist.h"

int golden_limit_ranges(struct td_arena *arena, const struct td_json *objects, td_str namespace,
                        struct td_limit_ranges *ret, struct td_error *err)
{
    size_t count = objects ? objects->count : 0;
    const struct td_json **list = td_arena_array(arena, const struct td_json *, count);
    size_t n = 0;
    for (const struct td_json *item = objects ? objects->first : NULL; item; item = item->next) {
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
            const struct td_resources *list;
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
                        lists[l].has ? td_resources_json(arena, lists[l].list)
                                     : td_json_new_null(arena));
        }
        td_json_append(array, object);
    }
    return array;
}
