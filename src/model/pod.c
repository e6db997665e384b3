/*
 * Members are read with Go's tolerance: null counts as absent, a wrong type is an error. Container
 * statuses are put beside their containers by name, where the first of equal names counts.
 */
#include "model/pod.h"

#include "base/error.h"
#include "base/timefmt.h"
#include "model/name_table.h"

enum td_pod_phase td_pod_phase_from(td_str text)
{
    static const struct {
        td_str name;
        enum td_pod_phase phase;
    } names[] = {
        {TD_STR_INIT("Pending"), TD_POD_PENDING},
        {TD_STR_INIT("Running"), TD_POD_RUNNING},
        {TD_STR_INIT("Succeeded"), TD_POD_SUCCEEDED},
        {TD_STR_INIT("Failed"), TD_POD_FAILED},
    };
    for (size_t i = 0; i < TD_COUNT(names); i++) {
        if (td_str_equal(text, names[i].name)) {
            return names[i].phase;
        }
    }
    return text.len == 0 ? TD_POD_PHASE_NONE : TD_POD_PHASE_UNKNOWN;
}

bool td_pod_phase_is_over(enum td_pod_phase phase)
{
    return phase == TD_POD_SUCCEEDED || phase == TD_POD_FAILED;
}

bool td_pod_tree_is_over(const struct td_json *pod)
{
    td_str phase = td_json_text(td_json_get(pod, TD_STR("status")), "phase");
    return td_pod_phase_is_over(td_pod_phase_from(phase));
}

static enum td_condition_status condition_status(td_str text)
{
    return td_str_equal(text, TD_STR("True"))    ? TD_CONDITION_TRUE
           : td_str_equal(text, TD_STR("False")) ? TD_CONDITION_FALSE
                                                 : TD_CONDITION_UNKNOWN;
}

static int parse_time(td_str text, td_time *ret, struct td_error *err)
{
    if (text.len == 0) {
        *ret = TD_TIME_NONE;
        return TD_OK;
    }
    struct td_instant instant;
    int code = td_time_parse(text, &instant, err);
    if (code < 0) {
        return code;
    }
    td_time time = td_time_from_instant(instant);
    *ret = time == TD_TIME_NONE ? TD_TIME_NONE + 1 : time;
    return TD_OK;
}

td_time td_time_member(const struct td_json *object, td_str key)
{
    td_time time;
    td_str text = td_json_get_str(object, key, TD_STR_EMPTY);
    return parse_time(text, &time, NULL) == TD_OK ? time : TD_TIME_NONE;
}

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
    code = parse_time(text, ret, err);
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

/* Of one resource; empty: of any. */
static bool has_restart_policy(const struct td_json *policies, td_str resource)
{
    for (const struct td_json *item = td_json_first_item(policies); item; item = item->next) {
        td_str policy = td_json_text(item, "restartPolicy");
        if (td_str_equal(policy, TD_STR("RestartContainer")) &&
            (resource.len == 0 || td_str_equal(td_json_text(item, "resourceName"), resource))) {
            return true;
        }
    }
    return false;
}

static int decode_container(struct td_arena *arena, const struct td_json *object,
                            struct td_pod_container *ret, struct td_error *err)
{
    const struct td_json *resources = NULL;
    const struct td_json *policies = NULL;
    td_str restart_policy = TD_STR_EMPTY;
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "has the wrong JSON type");
    }
    int code = get_text(object, TD_STR("name"), &ret->name, err);
    if (code == TD_OK) {
        code = get_text(object, TD_STR("restartPolicy"), &restart_policy, err);
    }
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
    ret->is_sidecar = td_str_equal(restart_policy, TD_STR("Always"));
    ret->restarts_on_resize = has_restart_policy(policies, TD_STR_EMPTY);
    ret->restarts_on_cpu = has_restart_policy(policies, TD_STR("cpu"));
    ret->last_started = TD_TIME_NONE;
    ret->last_finished = TD_TIME_NONE;
    return code;
}

static int decode_terminated(const struct td_json *status, struct td_pod_container *ret,
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
                                   struct td_pod_container *ret, struct td_error *err)
{
    const struct td_json *resources = NULL;
    int64_t restarts = td_json_get_int64(status, TD_STR("restartCount"), 0);
    ret->has_status = true;
    ret->is_running = td_json_get(td_json_get(status, TD_STR("state")), TD_STR("running")) != NULL;
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
                                     struct td_pod_container *containers, size_t count,
                                     struct td_error *err)
{
    size_t status_count = td_json_item_count(list);
    const struct td_json **statuses = td_arena_array(arena, const struct td_json *, status_count);
    struct td_name_table table = td_name_table_new(arena, status_count);
    size_t n = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        td_name_table_add(&table, td_json_text(item, "name"), n);
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

static int decode_ready(const struct td_json *item, struct td_pod *ret, struct td_error *err)
{
    if (ret->ready != TD_CONDITION_ABSENT) {
        return TD_OK;
    }
    td_str status = TD_STR_EMPTY;
    int code = get_text(item, TD_STR("status"), &status, err);
    if (code == TD_OK) {
        code = get_time(item, TD_STR("lastTransitionTime"), &ret->ready_since, err);
    }
    ret->ready = condition_status(status);
    return code;
}

static int decode_condition(const struct td_json *item, struct td_pod *ret, struct td_error *err)
{
    td_str type = td_json_text(item, "type");
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

/* Where `containers` is NULL, their statuses are passed over. */
static int decode_status(struct td_arena *arena, struct td_pod *ret,
                         struct td_pod_container *containers, struct td_error *err)
{
    const struct td_json *status = NULL;
    const struct td_json *conditions = NULL;
    const struct td_json *statuses = NULL;
    td_str phase = TD_STR_EMPTY;
    int code = get_object(ret->tree, TD_STR("status"), &status, err);
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
    return containers
               ? decode_container_statuses(arena, statuses, containers, ret->container_count, err)
               : TD_OK;
}

static int decode_containers(struct td_arena *arena, const struct td_json *spec, td_str key,
                             struct td_pod_container **ret, size_t *ret_count, struct td_error *err)
{
    const struct td_json *list = NULL;
    int code = get_typed(spec, key, TD_JSON_TYPE_ARRAY, &list, err);
    if (code < 0) {
        return td_error_wrap(err, code, "spec");
    }
    struct td_pod_container *containers =
        td_arena_array(arena, struct td_pod_container, td_json_item_count(list));
    size_t n = 0;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        code = decode_container(arena, item, &containers[n], err);
        if (code < 0) {
            return td_error_wrap(err, code, "spec.%.*s[%zu]", TD_STR_ARG(key), n);
        }
        n++;
    }
    *ret = containers;
    *ret_count = n;
    return TD_OK;
}

/* The pod's own resources, and what it asks for as a whole. */
static int decode_pod_level(struct td_arena *arena, const struct td_json *spec, struct td_pod *ret,
                            struct td_error *err)
{
    const struct td_json *resources = NULL;
    bool has_list = false;
    int code = get_object(spec, TD_STR("resources"), &resources, err);
    if (code == TD_OK) {
        code = decode_lists(arena, resources, &ret->pod_requests, &ret->pod_limits, &has_list,
                            &has_list, err);
    }
    if (code == TD_OK) {
        code = td_resource_list_decode(arena, td_json_get(spec, TD_STR("overhead")), &ret->overhead,
                                       err);
        code = code < 0 ? td_error_wrap(err, code, "overhead") : code;
    }
    if (code == TD_OK && ret->pod_requests.count > 0) {
        code = td_pod_requests(arena, ret->tree, NULL, &ret->whole_requests, err);
    }
    ret->has_pod_level = ret->pod_requests.count > 0 || ret->pod_limits.count > 0;
    return code < 0 ? td_error_wrap(err, code, "spec") : code;
}

static int decode_spec(struct td_arena *arena, struct td_pod *ret,
                       struct td_pod_container **ret_containers, struct td_error *err)
{
    const struct td_json *spec = NULL;
    struct td_pod_container *init = NULL;
    int code = get_object(ret->tree, TD_STR("spec"), &spec, err);
    if (code == TD_OK) {
        code = decode_containers(arena, spec, TD_STR("containers"), ret_containers,
                                 &ret->container_count, err);
    }
    if (code == TD_OK) {
        code = decode_containers(arena, spec, TD_STR("initContainers"), &init,
                                 &ret->init_container_count, err);
    }
    if (code == TD_OK) {
        code = decode_pod_level(arena, spec, ret, err);
    }
    ret->containers = *ret_containers;
    ret->init_containers = init;
    return code;
}

/* The server notes there who wrote to the resize subresource, and when, with the write itself: so
 * it is known of every client that resizes, and after any restart. A list that cannot be read is
 * none. */
static td_time resized_at(const struct td_json *pod)
{
    const struct td_json *list = td_json_get_path(pod, "metadata.managedFields");
    td_time latest = TD_TIME_NONE;
    for (const struct td_json *item = td_json_first_item(list); item; item = item->next) {
        struct td_instant at;
        td_str subresource = td_json_text(item, "subresource");
        td_str time = td_json_text(item, "time");
        if (td_str_equal(subresource, TD_STR("resize")) &&
            td_time_parse(time, &at, NULL) == TD_OK && td_time_from_instant(at) > latest) {
            latest = td_time_from_instant(at);
        }
    }
    return latest;
}

static int decode_pod(struct td_arena *arena, const struct td_json *pod, bool has_statuses,
                      struct td_pod *ret, struct td_error *err)
{
    struct td_pod result = {
        .tree = pod,
        .start_time = TD_TIME_NONE,
        .resized = has_statuses ? resized_at(pod) : TD_TIME_NONE,
        .ready_since = TD_TIME_NONE,
    };
    struct td_pod_container *containers = NULL;
    int code = td_meta_decode(arena, pod, &result.meta, err);
    if (code == TD_OK) {
        code = decode_spec(arena, &result, &containers, err);
    }
    if (code == TD_OK) {
        code = decode_status(arena, &result, has_statuses ? containers : NULL, err);
    }
    if (code == TD_OK) {
        code = td_arena_check(arena, err);
    }
    result.is_terminating = result.meta.deleted.unix_seconds != TD_INSTANT_ZERO.unix_seconds;
    if (code == TD_OK) {
        *ret = result;
    }
    return code;
}

int td_pod_decode(struct td_arena *arena, const struct td_json *pod, struct td_pod *ret,
                  struct td_error *err)
{
    return decode_pod(arena, pod, true, ret, err);
}

int td_pod_decode_brief(struct td_arena *arena, const struct td_json *pod, struct td_pod *ret,
                        struct td_error *err)
{
    return decode_pod(arena, pod, false, ret, err);
}
