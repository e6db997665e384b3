#include "decide/vertical/pod.h"

#include "base/error.h"
#include "decide/vertical/names.h"

/* A member that has to be of one type when it is there; null counts as absent. */
static int get_typed(const struct td_json *object, td_str key, enum td_json_type type,
                     const struct td_json **ret, struct td_error *err)
{
    const struct td_json *member = td_json_get(object, key);
    bool is_absent = !member || td_json_is(member, TD_JSON_TYPE_NULL);
    if (!is_absent && !td_json_is(member, type)) {
        return td_error_set(err, TD_INVALID, "%.*s: has the wrong JSON type", TD_STR_ARG(key));
    }
    *ret = is_absent ? NULL : member;
    return TD_OK;
}

static int get_object(const struct td_json *object, td_str key, const struct td_json **ret,
                      struct td_error *err)
{
    return get_typed(object, key, TD_JSON_TYPE_OBJECT, ret, err);
}

static int get_text(const struct td_json *object, td_str key, td_str *ret, struct td_error *err)
{
    const struct td_json *member = NULL;
    int code = get_typed(object, key, TD_JSON_TYPE_STRING, &member, err);
    if (code == TD_OK) {
        *ret = member ? member->text : TD_STR_EMPTY;
    }
    return code;
}

static int get_time(const struct td_json *object, td_str key, td_time *ret, struct td_error *err)
{
    td_str text;
    int code = get_text(object, key, &text, err);
    if (code < 0) {
        return code;
    }
    code = td_pod_time_parse(text, ret, err);
    return code < 0 ? td_error_wrap(err, code, "%.*s", TD_STR_ARG(key)) : code;
}

static int get_resources(struct td_arena *arena, const struct td_json *object, td_str key,
                         struct td_resource_list *ret, bool *ret_has, struct td_error *err)
{
    const struct td_json *list = NULL;
    int code = get_object(object, key, &list, err);
    if (code == TD_OK) {
        *ret_has = list != NULL;
        code = td_resource_list_decode(arena, list, ret, err);
    }
    return code < 0 ? td_error_wrap(err, code, "resources.%.*s", TD_STR_ARG(key)) : code;
}

static int decode_lists(struct td_arena *arena, const struct td_json *resources,
                        struct td_resource_list *ret_requests, struct td_resource_list *ret_limits,
                        bool *ret_has_requests, bool *ret_has_limits, struct td_error *err)
{
    int code =
        get_resources(arena, resources, TD_STR("requests"), ret_requests, ret_has_requests, err);
    if (code == TD_OK) {
        code = get_resources(arena, resources, TD_STR("limits"), ret_limits, ret_has_limits, err);
    }
    return code;
}

static bool has_restart_policy(const struct td_json *policies)
{
    for (const struct td_json *item = td_json_first_item(policies); item; item = item->next) {
        td_str policy = td_json_get_str(item, TD_STR("restartPolicy"), TD_STR_EMPTY);
        if (td_str_equal(policy, TD_STR("RestartContainer"))) {
            return true;
        }
    }
    return false;
}

static int decode_container(struct td_arena *arena, const struct td_json *object,
                            struct td_vertical_container *ret, struct td_error *err)
{
    const struct td_json *resources = NULL;
    const struct td_json *policies = NULL;
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "has the wrong JSON type");
    }
    int code = get_text(object, TD_STR("name"), &ret->name, err);
    if (code == TD_OK) {
        code = get_object(object, TD_STR("resources"), &resources, err);
    }
    if (code == TD_OK) {
        code = get_typed(object, TD_STR("resizePolicy"), TD_JSON_TYPE_ARRAY, &policies, err);
    }
    if (code == TD_OK) {
        code = decode_lists(arena, resources, &ret->spec_requests, &ret->spec_limits,
                            &ret->has_spec_requests, &ret->has_spec_limits, err);
    }
    ret->restarts_on_resize = has_restart_policy(policies);
    ret->last_started = TD_TIME_NONE;
    ret->last_finished = TD_TIME_NONE;
    return code;
}

static int decode_terminated(const struct td_json *status, struct td_vertical_container *ret,
                             struct td_error *err)
{
    const struct td_json *last = NULL;
    const struct td_json *terminated = NULL;
    int code = get_object(status, TD_STR("lastState"), &last, err);
    if (code == TD_OK) {
        code = get_object(last, TD_STR("terminated"), &terminated, err);
    }
    if (code < 0 || !terminated) {
        return code;
    }
    ret->has_last_terminated = true;
    code = get_text(terminated, TD_STR("reason"), &ret->last_terminated_reason, err);
    if (code == TD_OK) {
        code = get_time(terminated, TD_STR("startedAt"), &ret->last_started, err);
    }
    if (code == TD_OK) {
        code = get_time(terminated, TD_STR("finishedAt"), &ret->last_finished, err);
    }
    return code;
}

static int decode_container_status(struct td_arena *arena, const struct td_json *status,
                                   struct td_vertical_container *ret, struct td_error *err)
{
    const struct td_json *resources = NULL;
    int64_t restarts = td_json_get_int64(status, TD_STR("restartCount"), 0);
    ret->has_status = true;
    ret->restart_count = restarts > INT32_MAX ? INT32_MAX : restarts < 0 ? 0 : (int32_t)restarts;
    int code = get_object(status, TD_STR("resources"), &resources, err);
    if (code == TD_OK) {
        ret->has_status_resources = resources != NULL;
        code = decode_lists(arena, resources, &ret->status_requests, &ret->status_limits,
                            &ret->has_status_requests, &ret->has_status_limits, err);
    }
    return code == TD_OK ? decode_terminated(status, ret, err) : code;
}

/* Puts each status beside its container; of several with one name the first counts. */
static int decode_container_statuses(struct td_arena *arena, const struct td_json *list,
                                     struct td_vertical_container *containers, size_t count,
                                     struct td_error *err)
{
    size_t status_count = td_json_item_count(list);
    const struct td_json **statuses = td_arena_array(arena, const struct td_json *, status_count);
    struct td_name_table table = td_name_table_new(arena, status_count);
    size_t n = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_name_table_add(&table, td_json_get_str(item, TD_STR("name"), TD_STR_EMPTY), n);
        statuses[n++] = item;
    }
    for (size_t i = 0; i < count; i++) {
        size_t position = td_name_table_find(&table, containers[i].name);
        if (position == TD_NAME_NONE) {
            continue;
        }
        int code = decode_container_status(arena, statuses[position], &containers[i], err);
        if (code < 0) {
            return td_error_wrap(err, code, "status.containerStatuses[%zu]", position);
        }
    }
    return TD_OK;
}

static int decode_resize(const struct td_json *item, struct td_resize_condition *ret,
                         struct td_error *err)
{
    if (ret->is_present) {
        return TD_OK;
    }
    td_str status = TD_STR_EMPTY;
    int code = get_text(item, TD_STR("status"), &status, err);
    if (code == TD_OK) {
        code = get_text(item, TD_STR("reason"), &ret->reason, err);
    }
    if (code == TD_OK) {
        code = get_text(item, TD_STR("message"), &ret->message, err);
    }
    ret->is_present = true;
    ret->is_true = td_str_equal(status, TD_STR("True"));
    return code;
}

static int decode_ready(const struct td_json *item, struct td_vertical_pod *ret,
                        struct td_error *err)
{
    if (ret->ready != TD_CONDITION_ABSENT) {
        return TD_OK;
    }
    td_str status = TD_STR_EMPTY;
    int code = get_text(item, TD_STR("status"), &status, err);
    if (code == TD_OK) {
        code = get_time(item, TD_STR("lastTransitionTime"), &ret->ready_since, err);
    }
    ret->ready = td_condition_status_from(status);
    return code;
}

static int decode_condition(const struct td_json *item, struct td_vertical_pod *ret,
                            struct td_error *err)
{
    td_str type = td_json_get_str(item, TD_STR("type"), TD_STR_EMPTY);
    if (td_str_equal(type, TD_STR("Ready"))) {
        return decode_ready(item, ret, err);
    }
    if (td_str_equal(type, TD_STR("PodResizePending"))) {
        ret->is_pending_first = ret->is_pending_first || !ret->resize_in_progress.is_present;
        return decode_resize(item, &ret->resize_pending, err);
    }
    if (td_str_equal(type, TD_STR("PodResizeInProgress"))) {
        return decode_resize(item, &ret->resize_in_progress, err);
    }
    return TD_OK;
}

static int decode_status(struct td_arena *arena, const struct td_json *pod,
                         struct td_vertical_container *containers, struct td_vertical_pod *ret,
                         struct td_error *err)
{
    const struct td_json *status = NULL;
    const struct td_json *conditions = NULL;
    const struct td_json *statuses = NULL;
    td_str phase = TD_STR_EMPTY;
    int code = get_object(pod, TD_STR("status"), &status, err);
    if (code == TD_OK) {
        code = get_text(status, TD_STR("phase"), &phase, err);
    }
    if (code == TD_OK) {
        code = get_time(status, TD_STR("startTime"), &ret->start_time, err);
    }
    if (code == TD_OK) {
        code = get_typed(status, TD_STR("conditions"), TD_JSON_TYPE_ARRAY, &conditions, err);
    }
    if (code == TD_OK) {
        code = get_typed(status, TD_STR("containerStatuses"), TD_JSON_TYPE_ARRAY, &statuses, err);
    }
    const struct td_json *item = td_json_first_item(conditions);
    for (; item && code == TD_OK; item = item->next) {
        code = decode_condition(item, ret, err);
    }
    if (code < 0) {
        return td_error_wrap(err, code, "status");
    }
    ret->phase = td_pod_phase_from(phase);
    return decode_container_statuses(arena, statuses, containers, ret->container_count, err);
}

static int decode_spec(struct td_arena *arena, const struct td_json *pod,
                       struct td_vertical_container **ret_containers, struct td_vertical_pod *ret,
                       struct td_error *err)
{
    const struct td_json *spec = NULL;
    const struct td_json *list = NULL;
    const struct td_json *resources = NULL;
    bool has_requests = false;
    bool has_limits = false;
    int code = get_object(pod, TD_STR("spec"), &spec, err);
    if (code == TD_OK) {
        code = get_typed(spec, TD_STR("containers"), TD_JSON_TYPE_ARRAY, &list, err);
    }
    if (code == TD_OK) {
        code = get_object(spec, TD_STR("resources"), &resources, err);
    }
    if (code == TD_OK) {
        code = decode_lists(arena, resources, &ret->pod_requests, &ret->pod_limits, &has_requests,
                            &has_limits, err);
    }
    if (code < 0) {
        return td_error_wrap(err, code, "spec");
    }
    ret->has_pod_level = ret->pod_requests.count > 0 || ret->pod_limits.count > 0;
    ret->container_count = td_json_item_count(list);
    struct td_vertical_container *containers =
        td_arena_array(arena, struct td_vertical_container, ret->container_count);
    size_t n = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        code = decode_container(arena, item, &containers[n], err);
        if (code < 0) {
            return td_error_wrap(err, code, "spec.containers[%zu]", n);
        }
        n++;
    }
    ret->containers = containers;
    *ret_containers = containers;
    return TD_OK;
}

/* The server notes there who wrote to the resize subresource, and when, with the write itself: so
 * it is known of whoever resizes, and after any restart. A list that cannot be read is none. */
static td_time resized_at(const struct td_json *pod)
{
    const struct td_json *list = td_json_get_path(pod, "metadata.managedFields");
    td_time latest = TD_TIME_NONE;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        struct td_instant at;
        td_str subresource = td_json_get_str(item, TD_STR("subresource"), TD_STR_EMPTY);
        td_str time = td_json_get_str(item, TD_STR("time"), TD_STR_EMPTY);
        if (td_str_equal(subresource, TD_STR("resize")) &&
            td_time_parse(time, &at, NULL) == TD_OK && td_time_from_instant(at) > latest) {
            latest = td_time_from_instant(at);
        }
    }
    return latest;
}

int td_vertical_pod_decode(struct td_arena *arena, const struct td_json *pod,
                           struct td_vertical_pod *ret, struct td_error *err)
{
    struct td_vertical_pod result = {
        .tree = pod,
        .start_time = TD_TIME_NONE,
        .resized = resized_at(pod),
        .ready_since = TD_TIME_NONE,
    };
    struct td_vertical_container *containers = NULL;
    int code = td_meta_decode(arena, pod, &result.meta, err);
    if (code == TD_OK) {
        code = decode_spec(arena, pod, &containers, &result, err);
    }
    if (code == TD_OK) {
        code = decode_status(arena, pod, containers, &result, err);
    }
    if (code == TD_OK) {
        code = td_arena_check(arena, err);
    }
    if (code == TD_OK) {
        *ret = result;
    }
    return code;
}

const struct td_resource_list *td_vertical_requests(const struct td_vertical_container *container)
{
    return container->has_status_resources ? &container->status_requests
                                           : &container->spec_requests;
}

const struct td_resource_list *td_vertical_limits(const struct td_vertical_container *container)
{
    return container->has_status_resources ? &container->status_limits : &container->spec_limits;
}

bool td_vertical_has_requests(const struct td_vertical_container *container)
{
    return container->has_status_resources ? container->has_status_requests
                                           : container->has_spec_requests;
}

bool td_vertical_has_limits(const struct td_vertical_container *container)
{
    return container->has_status_resources ? container->has_status_limits
                                           : container->has_spec_limits;
}

/* Some amount of the spec that the status has too, and otherwise. */
static bool is_list_behind(const struct td_resource_list *spec,
                           const struct td_resource_list *status)
{
    for (size_t i = 0; i < spec->count; i++) {
        const struct td_quantity *seen = td_resource_list_get(status, spec->items[i].name);
        if (seen && td_quantity_compare(seen, &spec->items[i].quantity) != 0) {
            return true;
        }
    }
    return false;
}

bool td_vertical_is_behind(const struct td_vertical_pod *pod)
{
    for (size_t i = 0; i < pod->container_count; i++) {
        const struct td_vertical_container *container = &pod->containers[i];
        if (is_list_behind(&container->spec_requests, &container->status_requests) ||
            is_list_behind(&container->spec_limits, &container->status_limits)) {
            return true;
        }
    }
    return false;
}

const struct td_resource_list *
td_vertical_origin_requests(const struct td_vertical_container *container)
{
    return container->has_origin ? &container->origin_requests : td_vertical_requests(container);
}

const struct td_resource_list *
td_vertical_origin_limits(const struct td_vertical_container *container)
{
    return container->has_origin ? &container->origin_limits : td_vertical_limits(container);
}
