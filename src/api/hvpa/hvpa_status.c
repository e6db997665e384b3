/* status between its tree and its struct. Types are checked against the schema before anything is
 * read. Writing leaves out what is not set, except `blocked`, which is an empty list when nothing
 * is blocked: a reader then knows that the wishes of this tick were all granted. */
#include "api/hvpa/hvpa_private.h"
#include "base/error.h"
#include "kube/schema/check.h"

/* --- reading --- */

static bool status_int32(const struct td_json *object, td_str key, int32_t *ret)
{
    *ret = (int32_t)td_json_get_int64(object, key, 0); /* its range is checked */
    return td_kind_member(object, key) != NULL;
}

static bool status_time(const struct td_json *object, td_str key, struct td_instant *ret)
{
    const struct td_json *node = td_kind_member(object, key);
    return node && td_time_parse(node->text, ret, NULL) == TD_OK;
}

static struct td_hvpa_requests status_requests(struct td_arena *arena, const struct td_json *map)
{
    size_t count = td_json_member_count(map);
    struct td_hvpa_container_resources *made =
        td_arena_array(arena, struct td_hvpa_container_resources, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_member(map); item; item = item->next, i++) {
        made[i].container = item->key;
        const struct td_json *list = item->type == TD_JSON_TYPE_OBJECT ? item : NULL;
        (void)td_resource_list_decode(arena, list, &made[i].resources, NULL); /* quantities are */
    }
    return (struct td_hvpa_requests){.items = made, .count = count};
}

static bool status_resources(struct td_arena *arena, const struct td_json *object, td_str key,
                             struct td_resource_list *ret)
{
    const struct td_json *list = td_kind_member(object, key);
    return list && td_resource_list_decode(arena, list, ret, NULL) == TD_OK;
}

static struct td_recommendation status_containers(struct td_arena *arena,
                                                  const struct td_json *list)
{
    size_t count = td_json_item_count(list);
    struct td_container_recommendation *made =
        td_arena_array(arena, struct td_container_recommendation, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, i++) {
        struct td_container_recommendation *to = &made[i];
        to->container_name = td_json_text(item, "name");
        to->has_target = status_resources(arena, item, TD_STR("target"), &to->target);
        to->has_lower_bound = status_resources(arena, item, TD_STR("lowerBound"), &to->lower_bound);
        to->has_upper_bound = status_resources(arena, item, TD_STR("upperBound"), &to->upper_bound);
        to->has_uncapped_target =
            status_resources(arena, item, TD_STR("uncappedTarget"), &to->uncapped_target);
    }
    return (struct td_recommendation){.containers = made, .container_count = count};
}

static void status_read_recommendation(struct td_arena *arena, const struct td_json *recommendation,
                                       struct td_hvpa_status *ret)
{
    const struct td_json *horizontal = td_json_member(recommendation, "horizontal");
    const struct td_json *vertical = td_json_member(recommendation, "vertical");
    ret->has_horizontal = horizontal != NULL;
    ret->horizontal_valid = td_json_get_bool(horizontal, TD_STR("valid"), false);
    ret->has_desired_replicas =
        status_int32(horizontal, TD_STR("desiredReplicas"), &ret->desired_replicas);
    ret->horizontal_reason = td_json_text(horizontal, "reason");
    ret->has_vertical = vertical != NULL;
    ret->vertical_valid = td_json_get_bool(vertical, TD_STR("valid"), false);
    ret->vertical_reason = td_json_text(vertical, "reason");
    ret->vertical = status_containers(arena, td_json_member(vertical, "containers"));
}

static void status_read_decision(struct td_arena *arena, const struct td_json *decision,
                                 struct td_hvpa_status_decision *ret)
{
    const struct td_json *weights = td_json_member(decision, "weights");
    const struct td_json *horizontal = td_json_member(weights, "horizontal");
    const struct td_json *vertical = td_json_member(weights, "vertical");
    ret->is_set = decision != NULL;
    ret->has_time = status_time(decision, TD_STR("time"), &ret->time);
    ret->axis = td_json_text(decision, "axis");
    ret->reason = td_json_text(decision, "reason");
    ret->stage = td_json_text(decision, "stage");
    ret->has_replicas = status_int32(decision, TD_STR("replicas"), &ret->replicas);
    ret->requests = status_requests(arena, td_json_member(decision, "requests"));
    ret->limits = status_requests(arena, td_json_member(decision, "limits"));
    ret->has_weights = horizontal && vertical &&
                       td_json_to_double(horizontal, &ret->weight_horizontal) &&
                       td_json_to_double(vertical, &ret->weight_vertical);
    ret->emergency = td_json_get_bool(decision, TD_STR("emergency"), false);
    ret->has_below_thresholds_since =
        status_time(decision, TD_STR("belowThresholdsSince"), &ret->below_thresholds_since);
}

static void status_read_blocked(struct td_arena *arena, const struct td_json *list,
                                struct td_hvpa_status *ret)
{
    size_t count = td_json_item_count(list);
    struct td_hvpa_blocked *made = td_arena_array(arena, struct td_hvpa_blocked, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, i++) {
        bool is_vertical = td_str_equal(td_json_text(item, "axis"), TD_STR("vertical"));
        made[i] = (struct td_hvpa_blocked){
            .axis = is_vertical ? TD_HVPA_VERTICAL : TD_HVPA_HORIZONTAL,
            .container = td_json_text(item, "container"),
            .resource = td_json_text(item, "resource"),
            .reason = td_json_text(item, "reason"),
        };
        made[i].has_since = status_time(item, TD_STR("since"), &made[i].since);
    }
    ret->blocked = made;
    ret->blocked_count = count;
}

static void status_read_emergency(struct td_arena *arena, const struct td_json *list,
                                  struct td_hvpa_status *ret)
{
    size_t count = td_json_item_count(list);
    struct td_hvpa_emergency *made = td_arena_array(arena, struct td_hvpa_emergency, count);
    size_t i = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next, i++) {
        made[i].container = td_json_text(item, "container");
        made[i].since = TD_INSTANT_ZERO;
        (void)status_time(item, TD_STR("since"), &made[i].since); /* without one: long ago */
        made[i].usable_seconds = td_json_get_int64(item, TD_STR("usableSeconds"), 0);
    }
    ret->emergency = made;
    ret->emergency_count = count;
}

static void status_read_last(const struct td_json *last, struct td_hvpa_status *ret)
{
    ret->has_horizontal_time = status_time(last, TD_STR("horizontalTime"), &ret->horizontal_time);
    ret->has_vertical_time = status_time(last, TD_STR("verticalTime"), &ret->vertical_time);
    bool has_from = status_int32(last, TD_STR("fromReplicas"), &ret->from_replicas);
    bool has_to = status_int32(last, TD_STR("toReplicas"), &ret->to_replicas);
    ret->has_from_to = has_from && has_to;
}

int td_hvpa_status_decode(struct td_arena *arena, const struct td_json *status,
                          struct td_hvpa_status *ret, struct td_error *err)
{
    struct td_hvpa_status made = {.observed_generation = 0};
    if (status) {
        const struct td_schema_type *type = td_schema_member(td_hvpa_schema(), TD_STR("status"));
        int code = td_check_types(type, status, NULL, err);
        if (code < 0) {
            return code;
        }
    }
    const struct td_json *current = td_json_member(status, "current");
    const struct td_json *infeasible = td_json_member(status, "infeasible");
    made.observed_generation = td_json_get_int64(status, TD_STR("observedGeneration"), 0);
    made.mode = td_json_text(status, "mode");
    made.reason = td_json_text(status, "reason");
    made.has_replicas = status_int32(status, TD_STR("replicas"), &made.replicas);
    made.target_selector = td_json_text(status, "targetSelector");
    made.has_current = current != NULL;
    (void)status_int32(current, TD_STR("replicas"), &made.current_replicas); /* else 0 */
    made.current_requests = status_requests(arena, td_json_member(current, "requests"));
    status_read_recommendation(arena, td_json_member(status, "recommendation"), &made);
    status_read_decision(arena, td_json_member(status, "decision"), &made.decision);
    status_read_last(td_json_member(status, "lastScaling"), &made);
    made.has_written_replicas =
        status_int32(status, TD_STR("writtenReplicas"), &made.written_replicas);
    made.infeasible.is_set = status_time(infeasible, TD_STR("time"), &made.infeasible.time);
    made.infeasible.requests = status_requests(arena, td_json_member(infeasible, "requests"));
    status_read_blocked(arena, td_json_member(status, "blocked"), &made);
    status_read_emergency(arena, td_json_member(status, "emergency"), &made);
    made.reference_requests = status_requests(arena, td_json_member(status, "referenceRequests"));
    const struct td_json *origin = td_json_member(status, "origin");
    made.origin.requests = status_requests(arena, td_json_member(origin, "requests"));
    made.origin.limits = status_requests(arena, td_json_member(origin, "limits"));
    made.conditions =
        td_vpa_conditions_read(arena, td_json_member(status, "conditions"), &made.condition_count);
    *ret = made;
    return TD_OK;
}

/* --- writing --- */

static void put_time(struct td_arena *arena, struct td_json *object, td_str key,
                     struct td_instant time)
{
    td_json_set_text(arena, object, key, td_time_text(arena, time, 0));
}

static void put_requests(struct td_arena *arena, struct td_json *object, td_str key,
                         const struct td_hvpa_requests *requests)
{
    if (requests->count == 0) {
        return;
    }
    struct td_json *map = td_json_ensure_object(arena, object, key);
    for (size_t i = 0; i < requests->count; i++) {
        td_json_set(arena, map, requests->items[i].container,
                    td_resource_list_json(arena, &requests->items[i].resources));
    }
}

static struct td_json *containers_json(struct td_arena *arena,
                                       const struct td_recommendation *recommendation)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < recommendation->container_count; i++) {
        const struct td_container_recommendation *from = &recommendation->containers[i];
        struct td_json *item = td_json_new_object(arena);
        td_json_set_text(arena, item, TD_STR("name"), from->container_name);
        td_recommendation_put_lists(arena, item, from, false);
        td_json_append(list, item);
    }
    return list;
}

static void put_recommendation(struct td_arena *arena, struct td_json *object,
                               const struct td_hvpa_status *status)
{
    if (!status->has_horizontal && !status->has_vertical) {
        return;
    }
    struct td_json *made = td_json_ensure_object(arena, object, TD_STR("recommendation"));
    if (status->has_horizontal) {
        struct td_json *horizontal = td_json_ensure_object(arena, made, TD_STR("horizontal"));
        if (status->has_desired_replicas) {
            td_json_set_int64(arena, horizontal, TD_STR("desiredReplicas"),
                              status->desired_replicas);
        }
        td_json_set_bool(arena, horizontal, TD_STR("valid"), status->horizontal_valid);
        td_json_set_text(arena, horizontal, TD_STR("reason"), status->horizontal_reason);
    }
    if (status->has_vertical) {
        struct td_json *vertical = td_json_ensure_object(arena, made, TD_STR("vertical"));
        td_json_set_bool(arena, vertical, TD_STR("valid"), status->vertical_valid);
        td_json_set_text(arena, vertical, TD_STR("reason"), status->vertical_reason);
        td_json_set(arena, vertical, TD_STR("containers"),
                    containers_json(arena, &status->vertical));
    }
}

static void put_decision(struct td_arena *arena, struct td_json *object,
                         const struct td_hvpa_status_decision *decision)
{
    if (!decision->is_set) {
        return;
    }
    struct td_json *made = td_json_ensure_object(arena, object, TD_STR("decision"));
    if (decision->has_time) {
        put_time(arena, made, TD_STR("time"), decision->time);
    }
    td_json_set_text(arena, made, TD_STR("axis"), decision->axis);
    td_json_set_text(arena, made, TD_STR("reason"), decision->reason);
    td_json_set_text(arena, made, TD_STR("stage"), decision->stage);
    if (decision->has_replicas) {
        td_json_set_int64(arena, made, TD_STR("replicas"), decision->replicas);
    }
    put_requests(arena, made, TD_STR("requests"), &decision->requests);
    put_requests(arena, made, TD_STR("limits"), &decision->limits);
    if (decision->has_weights) {
        struct td_json *weights = td_json_ensure_object(arena, made, TD_STR("weights"));
        td_json_set_double(arena, weights, TD_STR("horizontal"), decision->weight_horizontal);
        td_json_set_double(arena, weights, TD_STR("vertical"), decision->weight_vertical);
    }
    if (decision->emergency) {
        td_json_set_bool(arena, made, TD_STR("emergency"), true);
    }
    if (decision->has_below_thresholds_since) {
        put_time(arena, made, TD_STR("belowThresholdsSince"), decision->below_thresholds_since);
    }
}

static void put_last(struct td_arena *arena, struct td_json *object,
                     const struct td_hvpa_status *status)
{
    struct td_json *made = td_json_new_object(arena);
    if (status->has_horizontal_time) {
        put_time(arena, made, TD_STR("horizontalTime"), status->horizontal_time);
    }
    if (status->has_vertical_time) {
        put_time(arena, made, TD_STR("verticalTime"), status->vertical_time);
    }
    if (status->has_from_to) {
        td_json_set_int64(arena, made, TD_STR("fromReplicas"), status->from_replicas);
        td_json_set_int64(arena, made, TD_STR("toReplicas"), status->to_replicas);
    }
    if (made->count > 0) {
        td_json_set(arena, object, TD_STR("lastScaling"), made);
    }
}

static void put_blocked(struct td_arena *arena, struct td_json *object,
                        const struct td_hvpa_status *status)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < status->blocked_count; i++) {
        const struct td_hvpa_blocked *from = &status->blocked[i];
        struct td_json *item = td_json_new_object(arena);
        td_json_set_text(arena, item, TD_STR("axis"), td_hvpa_axis_name(from->axis));
        td_json_set_text(arena, item, TD_STR("container"), from->container);
        td_json_set_text(arena, item, TD_STR("resource"), from->resource);
        td_json_set_text(arena, item, TD_STR("reason"), from->reason);
        if (from->has_since) {
            put_time(arena, item, TD_STR("since"), from->since);
        }
        td_json_append(list, item);
    }
    td_json_set(arena, object, TD_STR("blocked"), list);
}

static void put_emergency(struct td_arena *arena, struct td_json *object,
                          const struct td_hvpa_status *status)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < status->emergency_count; i++) {
        struct td_json *item = td_json_new_object(arena);
        td_json_set_text(arena, item, TD_STR("container"), status->emergency[i].container);
        put_time(arena, item, TD_STR("since"), status->emergency[i].since);
        if (status->emergency[i].usable_seconds > 0) {
            td_json_set_int64(arena, item, TD_STR("usableSeconds"),
                              status->emergency[i].usable_seconds);
        }
        td_json_append(list, item);
    }
    if (list->count > 0) {
        td_json_set(arena, object, TD_STR("emergency"), list);
    }
}

static void put_conditions(struct td_arena *arena, struct td_json *object,
                           const struct td_hvpa_status *status)
{
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < status->condition_count; i++) {
        const struct td_vpa_condition *from = &status->conditions[i];
        struct td_json *item = td_json_new_object(arena);
        td_json_set_text(arena, item, TD_STR("type"), from->type);
        td_json_set_text(arena, item, TD_STR("status"), from->status);
        if (from->last_transition.unix_seconds != TD_INSTANT_ZERO.unix_seconds) {
            put_time(arena, item, TD_STR("lastTransitionTime"), from->last_transition);
        }
        td_json_set_text(arena, item, TD_STR("reason"), from->reason);
        td_json_set_text(arena, item, TD_STR("message"), from->message);
        td_json_append(list, item);
    }
    if (list->count > 0) {
        td_json_set(arena, object, TD_STR("conditions"), list);
    }
}

struct td_json *td_hvpa_status_encode(struct td_arena *arena, const struct td_hvpa_status *status)
{
    struct td_json *object = td_json_new_object(arena);
    if (status->observed_generation != 0) {
        td_json_set_int64(arena, object, TD_STR("observedGeneration"), status->observed_generation);
    }
    td_json_set_text(arena, object, TD_STR("mode"), status->mode);
    td_json_set_text(arena, object, TD_STR("reason"), status->reason);
    if (status->has_replicas) {
        td_json_set_int64(arena, object, TD_STR("replicas"), status->replicas);
    }
    td_json_set_text(arena, object, TD_STR("targetSelector"), status->target_selector);
    if (status->has_current) {
        struct td_json *current = td_json_ensure_object(arena, object, TD_STR("current"));
        td_json_set_int64(arena, current, TD_STR("replicas"), status->current_replicas);
        put_requests(arena, current, TD_STR("requests"), &status->current_requests);
    }
    put_recommendation(arena, object, status);
    put_decision(arena, object, &status->decision);
    put_last(arena, object, status);
    if (status->has_written_replicas) {
        td_json_set_int64(arena, object, TD_STR("writtenReplicas"), status->written_replicas);
    }
    if (status->infeasible.is_set) {
        struct td_json *infeasible = td_json_ensure_object(arena, object, TD_STR("infeasible"));
        put_time(arena, infeasible, TD_STR("time"), status->infeasible.time);
        put_requests(arena, infeasible, TD_STR("requests"), &status->infeasible.requests);
    }
    put_blocked(arena, object, status);
    put_emergency(arena, object, status);
    put_requests(arena, object, TD_STR("referenceRequests"), &status->reference_requests);
    if (status->origin.limits.count > 0) {
        struct td_json *origin = td_json_ensure_object(arena, object, TD_STR("origin"));
        put_requests(arena, origin, TD_STR("requests"), &status->origin.requests);
        put_requests(arena, origin, TD_STR("limits"), &status->origin.limits);
    }
    put_conditions(arena, object, status);
    return object;
}
