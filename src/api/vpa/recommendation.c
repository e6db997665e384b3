/*
 * Lists that are absent and lists that are empty differ in the API, so each list has a flag beside
 * it, which decoding sets, encoding follows and comparing counts.
 */
#include "api/vpa/recommendation.h"

#include "base/error.h"

/* An absent list and null leave has_list false; {} is a list without entries. */
static int recommendation_list(struct td_arena *arena, const struct td_json *object, td_str key,
                               struct td_resource_list *ret, bool *ret_has, struct td_error *err)
{
    const struct td_json *list = td_json_get(object, key);
    *ret = (struct td_resource_list){.items = NULL, .count = 0};
    *ret_has = list && list->type != TD_JSON_TYPE_NULL;
    if (!*ret_has) {
        return TD_OK;
    }
    if (list->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "%.*s: not an object", TD_STR_ARG(key));
    }
    int code = td_resource_list_decode(arena, list, ret, err);
    return code < 0 ? td_error_wrap(err, code, "%.*s", TD_STR_ARG(key)) : code;
}

static int recommendation_container(struct td_arena *arena, const struct td_json *object,
                                    struct td_container_recommendation *ret, struct td_error *err)
{
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "not an object");
    }
    ret->container_name = td_json_text(object, "containerName");
    const struct {
        td_str key;
        struct td_resource_list *list;
        bool *has;
    } lists[] = {
        {TD_STR("target"), &ret->target, &ret->has_target},
        {TD_STR("lowerBound"), &ret->lower_bound, &ret->has_lower_bound},
        {TD_STR("upperBound"), &ret->upper_bound, &ret->has_upper_bound},
        {TD_STR("uncappedTarget"), &ret->uncapped_target, &ret->has_uncapped_target},
    };
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        int code =
            recommendation_list(arena, object, lists[i].key, lists[i].list, lists[i].has, err);
        if (code < 0) {
            return code;
        }
    }
    return TD_OK;
}

static int recommendation_pod(struct td_arena *arena, const struct td_json *object,
                              struct td_pod_recommendation *ret, struct td_error *err)
{
    bool has_list = false;
    *ret = (struct td_pod_recommendation){.is_set = td_json_is(object, TD_JSON_TYPE_OBJECT)};
    if (!ret->is_set) {
        return TD_OK;
    }
    int code = recommendation_list(arena, object, TD_STR("target"), &ret->target, &has_list, err);
    if (code == TD_OK) {
        code = recommendation_list(arena, object, TD_STR("lowerBound"), &ret->lower_bound,
                                   &has_list, err);
    }
    if (code == TD_OK) {
        code = recommendation_list(arena, object, TD_STR("upperBound"), &ret->upper_bound,
                                   &has_list, err);
    }
    return code;
}

int td_recommendation_decode(struct td_arena *arena, const struct td_json *object,
                             struct td_recommendation *ret, struct td_error *err)
{
    struct td_recommendation made = {.containers = NULL, .container_count = 0};
    if (object && object->type != TD_JSON_TYPE_NULL && object->type != TD_JSON_TYPE_OBJECT) {
        return td_error_set(err, TD_INVALID, "recommendation: not an object");
    }
    const struct td_json *list = td_json_get(object, TD_STR("containerRecommendations"));
    if (list && list->type != TD_JSON_TYPE_NULL && list->type != TD_JSON_TYPE_ARRAY) {
        return td_error_set(err, TD_INVALID, "containerRecommendations: not an array");
    }
    int code = TD_OK;
    if (td_json_item_count(list) > 0) {
        made.containers = td_arena_array(arena, struct td_container_recommendation, list->count);
    }
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        code = recommendation_container(arena, item, &made.containers[made.container_count], err);
        if (code < 0) {
            return td_error_wrap(err, code, "containerRecommendations[%zu]", made.container_count);
        }
        made.container_count++;
    }
    const struct td_json *pod = td_json_get(object, TD_STR("podRecommendation"));
    code = recommendation_pod(arena, pod, &made.pod, err);
    if (code < 0) {
        return td_error_wrap(err, code, "podRecommendation");
    }
    *ret = made;
    return TD_OK;
}

void td_recommendation_put_lists(struct td_arena *arena, struct td_json *object,
                                 const struct td_container_recommendation *from, bool skips_empty)
{
    const struct {
        td_str key;
        const struct td_resource_list *list;
        bool has;
    } lists[] = {
        {TD_STR("target"), &from->target, from->has_target},
        {TD_STR("lowerBound"), &from->lower_bound, from->has_lower_bound},
        {TD_STR("upperBound"), &from->upper_bound, from->has_upper_bound},
        {TD_STR("uncappedTarget"), &from->uncapped_target, from->has_uncapped_target},
    };
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        /* target has no omitempty upstream; the others vanish when empty. */
        if (lists[i].has && (i == 0 || !skips_empty || lists[i].list->count > 0)) {
            td_json_set(arena, object, lists[i].key, td_resource_list_json(arena, lists[i].list));
        }
    }
}

struct td_json *td_recommendation_encode(struct td_arena *arena,
                                         const struct td_recommendation *recommendation)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        const struct td_container_recommendation *from = &recommendation->containers[i];
        struct td_json *item = td_json_new_object(arena);
        td_json_set_str(arena, item, TD_STR("containerName"), from->container_name);
        td_recommendation_put_lists(arena, item, from, true);
        td_json_append(list, item);
    }
    if (recommendation->container_count > 0) {
        td_json_set(arena, object, TD_STR("containerRecommendations"), list);
    }
    if (recommendation->pod.is_set) {
        struct td_json *pod = td_json_ensure_object(arena, object, TD_STR("podRecommendation"));
        td_json_set(arena, pod, TD_STR("target"),
                    td_resource_list_json(arena, &recommendation->pod.target));
        td_json_set(arena, pod, TD_STR("lowerBound"),
                    td_resource_list_json(arena, &recommendation->pod.lower_bound));
        td_json_set(arena, pod, TD_STR("upperBound"),
                    td_resource_list_json(arena, &recommendation->pod.upper_bound));
    }
    return object;
}

static bool recommendation_lists_equal(const struct td_resource_list *a,
                                       const struct td_resource_list *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!td_str_equal(a->items[i].name, b->items[i].name) ||
            td_quantity_compare(&a->items[i].quantity, &b->items[i].quantity) != 0) {
            return false;
        }
    }
    return true;
}

bool td_recommendation_equal(const struct td_recommendation *a, const struct td_recommendation *b)
{
    if (a->container_count != b->container_count || a->pod.is_set != b->pod.is_set) {
        return false;
    }
    for (size_t i = 0; i < a->container_count; i++) {
        const struct td_container_recommendation *x = &a->containers[i];
        const struct td_container_recommendation *y = &b->containers[i];
        if (!td_str_equal(x->container_name, y->container_name) ||
            !recommendation_lists_equal(&x->target, &y->target) ||
            !recommendation_lists_equal(&x->lower_bound, &y->lower_bound) ||
            !recommendation_lists_equal(&x->upper_bound, &y->upper_bound) ||
            !recommendation_lists_equal(&x->uncapped_target, &y->uncapped_target)) {
            return false;
        }
    }
    return recommendation_lists_equal(&a->pod.target, &b->pod.target) &&
           recommendation_lists_equal(&a->pod.lower_bound, &b->pod.lower_bound) &&
           recommendation_lists_equal(&a->pod.upper_bound, &b->pod.upper_bound);
}
