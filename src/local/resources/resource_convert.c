/*
 * Between the versions of one resource. Three kinds of difference exist: HPAs (api/hpa/hpa.h),
 * events, whose members have other names in events.k8s.io than in core, and custom resources, of
 * which only the apiVersion differs.
 */
#include "api/hpa/hpa.h"
#include "base/error.h"
#include "local/resources/resource.h"

struct event_name {
    td_str core;
    td_str events;
};

/* In the order in which each group writes them. */
static const struct event_name event_names_to_core[] = {
    {TD_STR_INIT("involvedObject"), TD_STR_INIT("regarding")},
    {TD_STR_INIT("reason"), TD_STR_INIT("reason")},
    {TD_STR_INIT("message"), TD_STR_INIT("note")},
    {TD_STR_INIT("source"), TD_STR_INIT("deprecatedSource")},
    {TD_STR_INIT("firstTimestamp"), TD_STR_INIT("deprecatedFirstTimestamp")},
    {TD_STR_INIT("lastTimestamp"), TD_STR_INIT("deprecatedLastTimestamp")},
    {TD_STR_INIT("count"), TD_STR_INIT("deprecatedCount")},
    {TD_STR_INIT("type"), TD_STR_INIT("type")},
    {TD_STR_INIT("eventTime"), TD_STR_INIT("eventTime")},
    {TD_STR_INIT("series"), TD_STR_INIT("series")},
    {TD_STR_INIT("action"), TD_STR_INIT("action")},
    {TD_STR_INIT("related"), TD_STR_INIT("related")},
    {TD_STR_INIT("reportingComponent"), TD_STR_INIT("reportingController")},
    {TD_STR_INIT("reportingInstance"), TD_STR_INIT("reportingInstance")},
};

static const size_t event_order_of_events[] = {8, 9, 12, 13, 10, 1, 0, 11, 2, 7, 3, 4, 5, 6};

#define EVENT_NAME_COUNT (TD_COUNT(event_names_to_core))

static struct td_json *convert_event(struct td_arena *arena, const struct td_json *object,
                                     td_str api_version, bool to_core)
{
    struct td_json *event = td_json_new_object(arena);
    td_json_set_str(arena, event, TD_STR("kind"), TD_STR("Event"));
    td_json_set_str(arena, event, TD_STR("apiVersion"), api_version);
    const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    td_json_set_copy(arena, event, TD_STR("metadata"), metadata);
    for (size_t i = 0; i < EVENT_NAME_COUNT; i++) {
        const struct event_name *name =
            &event_names_to_core[to_core ? i : event_order_of_events[i]];
        const struct td_json *value = td_json_get(object, to_core ? name->events : name->core);
        bool is_empty = td_json_is(value, TD_JSON_TYPE_STRING) && value->text.len == 0;
        if (value && (to_core || !is_empty)) {
            td_json_set_copy(arena, event, to_core ? name->core : name->events, value);
        }
    }
    static const td_str always[] = {TD_STR_INIT("reportingComponent"),
                                    TD_STR_INIT("reportingInstance")};
    for (size_t i = 0; to_core && i < 2; i++) {
        if (!td_json_get(event, always[i])) {
            td_json_set_str(arena, event, always[i], TD_STR_EMPTY);
        }
    }
    return event;
}

int td_resource_convert(struct td_arena *arena, const struct td_resource *resource,
                        size_t from_version, size_t to_version, struct td_json *object,
                        struct td_json **ret, struct td_error *err)
{
    td_str to = resource->versions[to_version].api_version;
    if (from_version == to_version) {
        *ret = object;
        return TD_OK;
    }
    if (!resource->custom && td_str_equal(resource->kind, TD_STR("HorizontalPodAutoscaler"))) {
        return td_hpa_convert(arena, object, to, ret, err);
    }
    if (!resource->custom && td_str_equal(resource->kind, TD_STR("Event"))) {
        *ret = convert_event(arena, object, to, to_version == resource->storage);
        return TD_OK;
    }
    struct td_json *copy = td_json_copy(arena, object, false);
    td_json_set_str(arena, copy, TD_STR("apiVersion"), to);
    *ret = copy;
    return TD_OK;
}
