#include "model/pod.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/timefmt.h"
#include "kube/podresources.h"
#include "kube/quantity/quantity.h"

const int64_t *td_amounts_get(const struct td_amounts *amounts, td_str resource)
{
    for (size_t i = 0; i < amounts->count; i++) {
        if (td_str_equal(amounts->items[i].resource, resource)) {
            return &amounts->items[i].milli;
        }
    }
    return NULL;
}

static int compare_amounts(const void *a, const void *b)
{
    const struct td_amount *left = a;
    const struct td_amount *right = b;
    return td_str_compare(left->resource, right->resource);
}

/* A member of an object that must be an object, an array or a string when it is there; JSON null
 * counts as missing, as Go's decoder has it. */
static int get_typed(const struct td_json *object, td_str key, enum td_json_type type,
                     const char *path, const struct td_json **ret, struct td_error *err)
{
    const struct td_json *member = td_json_get(object, key);
    if (!member || td_json_is(member, TD_JSON_TYPE_NULL)) {
        *ret = NULL;
        return TD_OK;
    }
    if (!td_json_is(member, type)) {
        return td_error_set(err, TD_INVALID, "%s.%.*s: has the wrong JSON type", path,
                            TD_STR_ARG(key));
    }
    *ret = member;
    return TD_OK;
}

static int get_text(const struct td_json *object, td_str key, const char *path, td_str *ret,
                    struct td_error *err)
{
    const struct td_json *member = NULL;
    int code = get_typed(object, key, TD_JSON_TYPE_STRING, path, &member, err);
    if (code == TD_OK) {
        *ret = member ? member->text : TD_STR_EMPTY;
    }
    return code;
}

static int decode_quantity(struct td_arena *arena, const struct td_json *value, int64_t *ret,
                           struct td_error *err)
{
    struct td_quantity quantity;
    int code;
    if (td_json_is(value, TD_JSON_TYPE_STRING) || td_json_is(value, TD_JSON_TYPE_NUMBER)) {
        code = td_quantity_parse(arena, td_str_trim(value->text), &quantity, err);
    } else if (td_json_is(value, TD_JSON_TYPE_NULL)) {
        *ret = 0;
        return TD_OK;
    } else {
        return td_error_set(err, TD_INVALID, "is not a quantity");
    }
    if (code == TD_OK) {
        *ret = td_quantity_milli(&quantity);
    }
    return code;
}

/* The list `key` of an object that may be missing: resources.requests, spec.overhead. */
static int decode_amounts(struct td_arena *arena, const struct td_json *object, td_str key,
                          const char *path, struct td_amounts *ret, struct td_error *err)
{
    const struct td_json *list = NULL;
    int code = get_typed(object, key, TD_JSON_TYPE_OBJECT, path, &list, err);
    if (code < 0) {
        return code;
    }
    size_t count = td_json_member_count(list);
    struct td_amount *items = td_arena_array(arena, struct td_amount, count);
    size_t i = 0;
    for (const struct td_json *entry = td_json_first_member(list); entry; entry = entry->next) {
        items[i].resource = entry->key;
        code = decode_quantity(arena, entry, &items[i].milli, err);
        if (code < 0) {
            return td_error_wrap(err, code, "%s.%.*s.%.*s", path, TD_STR_ARG(key),
                                 TD_STR_ARG(entry->key));
        }
        i++;
    }
    if (count > 1) {
        qsort(items, count, sizeof(items[0]), compare_amounts);
    }
    *ret = (struct td_amounts){.items = items, .count = count};
    return TD_OK;
}

/* `path` is that of the resources. */
static int decode_resources(struct td_arena *arena, const struct td_json *resources,
                            const char *path, struct td_amounts *ret_requests,
                            struct td_amounts *ret_limits, struct td_error *err)
{
    int code = decode_amounts(arena, resources, TD_STR("requests"), path, ret_requests, err);
    if (code == TD_OK) {
        code = decode_amounts(arena, resources, TD_STR("limits"), path, ret_limits, err);
    }
    return code;
}

static int decode_container(struct td_arena *arena, const struct td_json *object, bool is_init,
                            struct td_pod_container *ret, struct td_error *err)
{
    const char *path = is_init ? "spec.initContainers[]" : "spec.containers[]";
    if (!td_json_is(object, TD_JSON_TYPE_OBJECT)) {
        return td_error_set(err, TD_INVALID, "%s: has the wrong JSON type", path);
    }
    td_str restart_policy = TD_STR_EMPTY;
    const struct td_json *resources = NULL;
    int code = get_text(object, TD_STR("name"), path, &ret->name, err);
    if (code == TD_OK) {
        code = get_text(object, TD_STR("restartPolicy"), path, &restart_policy, err);
    }
    if (code == TD_OK) {
        code = get_typed(object, TD_STR("resources"), TD_JSON_TYPE_OBJECT, path, &resources, err);
    }
    if (code < 0) {
        return code;
    }
    ret->kind = TD_CONTAINER_REGULAR;
    if (is_init) {
        ret->kind = td_str_equal(restart_policy, TD_STR("Always")) ? TD_CONTAINER_SIDECAR
                                                                   : TD_CONTAINER_INIT;
    }
    return decode_resources(arena, resources,
                            is_init ? "spec.initContainers[].resources"
                                    : "spec.containers[].resources",
                            &ret->requests, &ret->limits, err);
}

static int decode_containers(struct td_arena *arena, const struct td_json *spec, struct td_pod *ret,
                             struct td_error *err)
{
    const struct td_json *lists[2] = {NULL, NULL};
    int code =
        get_typed(spec, TD_STR("initContainers"), TD_JSON_TYPE_ARRAY, "spec", &lists[0], err);
    if (code == TD_OK) {
        code = get_typed(spec, TD_STR("containers"), TD_JSON_TYPE_ARRAY, "spec", &lists[1], err);
    }
    if (code < 0) {
        return code;
    }
    size_t count = (lists[0] ? lists[0]->count : 0) + (lists[1] ? lists[1]->count : 0);
    struct td_pod_container *containers = td_arena_array(arena, struct td_pod_container, count);
    size_t n = 0;
    for (size_t l = 0; l < 2; l++) {
        const struct td_json *item = td_json_first_item(lists[l]);
        for (; item && code == TD_OK; item = item->next) {
            code = decode_container(arena, item, l == 0, &containers[n++], err);
        }
    }
    ret->containers = containers;
    ret->container_count = count;
    return code;
}

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
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (td_str_equal(text, names[i].name)) {
            return names[i].phase;
        }
    }
    return text.len == 0 ? TD_POD_PHASE_NONE : TD_POD_PHASE_UNKNOWN;
}

enum td_condition_status td_condition_status_from(td_str text)
{
    return td_str_equal(text, TD_STR("True"))    ? TD_CONDITION_TRUE
           : td_str_equal(text, TD_STR("False")) ? TD_CONDITION_FALSE
                                                 : TD_CONDITION_UNKNOWN;
}

int td_pod_time_parse(td_str text, td_time *ret, struct td_error *err)
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

static int decode_time(const struct td_json *object, td_str key, const char *path, td_time *ret,
                       struct td_error *err)
{
    td_str text;
    int code = get_text(object, key, path, &text, err);
    if (code < 0) {
        return code;
    }
    code = td_pod_time_parse(text, ret, err);
    return code < 0 ? td_error_wrap(err, code, "%s.%.*s", path, TD_STR_ARG(key)) : code;
}

static int decode_ready(const struct td_json *status, struct td_pod *ret, struct td_error *err)
{
    const struct td_json *conditions = NULL;
    int code =
        get_typed(status, TD_STR("conditions"), TD_JSON_TYPE_ARRAY, "status", &conditions, err);
    ret->ready = TD_CONDITION_ABSENT;
    ret->ready_since = TD_TIME_NONE;
    const struct td_json *item = td_json_first_item(conditions);
    for (; item && code == TD_OK; item = item->next) {
        td_str value = TD_STR_EMPTY;
        if (!td_str_equal(td_json_get_str(item, TD_STR("type"), TD_STR_EMPTY), TD_STR("Ready"))) {
            continue;
        }
        code = get_text(item, TD_STR("status"), "status.conditions[]", &value, err);
        if (code < 0) {
            return code;
        }
        ret->ready = td_condition_status_from(value);
        return decode_time(item, TD_STR("lastTransitionTime"), "status.conditions[]",
                           &ret->ready_since, err);
    }
    return code;
}

static int decode_status(const struct td_json *pod, struct td_pod *ret, struct td_error *err)
{
    const struct td_json *status = NULL;
    td_str phase = TD_STR_EMPTY;
    int code = get_typed(pod, TD_STR("status"), TD_JSON_TYPE_OBJECT, "pod", &status, err);
    if (code == TD_OK) {
        code = get_text(status, TD_STR("phase"), "status", &phase, err);
    }
    if (code == TD_OK) {
        code = decode_time(status, TD_STR("startTime"), "status", &ret->start_time, err);
    }
    if (code == TD_OK) {
        code = decode_ready(status, ret, err);
    }
    ret->phase = td_pod_phase_from(phase);
    return code;
}

static int decode_spec(struct td_arena *arena, const struct td_json *pod, struct td_pod *ret,
                       struct td_error *err)
{
    const struct td_json *spec = NULL;
    const struct td_json *resources = NULL;
    int code = get_typed(pod, TD_STR("spec"), TD_JSON_TYPE_OBJECT, "pod", &spec, err);
    if (code == TD_OK) {
        code = decode_containers(arena, spec, ret, err);
    }
    if (code == TD_OK) {
        code = get_typed(spec, TD_STR("resources"), TD_JSON_TYPE_OBJECT, "spec", &resources, err);
    }
    if (code == TD_OK) {
        code = decode_resources(arena, resources, "spec.resources", &ret->pod_requests,
                                &ret->pod_limits, err);
    }
    if (code == TD_OK) {
        code = decode_amounts(arena, spec, TD_STR("overhead"), "spec", &ret->overhead, err);
    }
    return code;
}

/* Sums of quantities are rounded once, at the end, so they cannot be made from rounded parts. */
static int decode_whole_requests(struct td_arena *arena, const struct td_json *pod,
                                 struct td_pod *ret, struct td_error *err)
{
    if (ret->pod_requests.count == 0) {
        return TD_OK;
    }
    struct td_resource_list resources;
    const struct td_pod_resource_options options = {.use_status_resources = false};
    int code = td_pod_requests(arena, pod, &options, &resources, err);
    if (code < 0) {
        return code;
    }
    struct td_amount *items = td_arena_array(arena, struct td_amount, resources.count);
    for (size_t i = 0; i < resources.count; i++) {
        items[i] = (struct td_amount){.resource = resources.items[i].name,
                                      .milli = td_quantity_milli(&resources.items[i].quantity)};
    }
    ret->whole_requests = (struct td_amounts){.items = items, .count = resources.count};
    return TD_OK;
}

int td_pod_decode(struct td_arena *arena, const struct td_json *pod, struct td_pod *ret,
                  struct td_error *err)
{
    struct td_meta meta;
    struct td_pod decoded = {.phase = TD_POD_PHASE_NONE};
    int code = td_meta_decode(arena, pod, &meta, err);
    if (code == TD_OK) {
        code = decode_spec(arena, pod, &decoded, err);
    }
    if (code == TD_OK) {
        code = decode_whole_requests(arena, pod, &decoded, err);
    }
    if (code == TD_OK) {
        code = decode_status(pod, &decoded, err);
    }
    if (code < 0) {
        return code;
    }
    decoded.namespace = meta.namespace;
    decoded.name = meta.name;
    decoded.uid = meta.uid;
    decoded.labels = meta.labels;
    decoded.owners = meta.owners;
    decoded.owner_count = meta.owner_count;
    decoded.is_terminating = meta.deleted.unix_seconds != TD_INSTANT_ZERO.unix_seconds;
    *ret = decoded;
    return TD_OK;
}
