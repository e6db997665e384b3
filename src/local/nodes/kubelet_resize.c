/*
 * Resizing pods in place. Three sets of resources: what the spec wishes, what the node has given
 * (requests of it are the status's allocatedResources), what is in use (the status's resources).
 *   1. A wish that differs from what is given: has the node room? Then it is given, and in
 * progress. Else it is pending: infeasible when the node is too small, deferred when others are in
 * the way, and tried again when something on the node becomes smaller.
 *   2. What is given but not in use comes into use TD_KUBELET_RESIZE later. A memory limit that
 *      would be below what is used is not applied: an error in the condition, tried again.
 * What is given and not in use is kept as text in the record, since a status tells only requests.
 */
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "local/api/api.h"
#include "local/kinds/condition.h"
#include "local/nodes/kubelet_private.h"
#include "local/nodes/node_index.h"
#include "local/store/edit.h"

#include <stdlib.h>

static const struct td_json *resize_status(const struct kubelet_pod *pod)
{
    return td_json_get(pod->life.pod, TD_STR("status"));
}

/* Only what runs is resized: containers and sidecars. */
static bool resize_is_possible(const struct td_life_container *container)
{
    return !container->is_init || container->is_sidecar;
}

const struct td_json *kubelet_given(struct kubelet_pod *pod, size_t index)
{
    return pod->allocated ? td_json_at(td_json_get(pod->allocated, TD_STR("containers")), index)
                          : td_json_get(pod->containers[index].status, TD_STR("resources"));
}

static const struct td_json *resize_given_whole(const struct kubelet_pod *pod)
{
    return td_json_get(pod->allocated ? pod->allocated : resize_status(pod), TD_STR("resources"));
}

/* Is something else wished than was given? */
static bool resize_is_wished(struct kubelet_pod *pod)
{
    if (!td_life_same_resources(td_json_get_path(pod->life.pod, "spec.resources"),
                                resize_given_whole(pod))) {
        return true;
    }
    for (size_t i = 0; i < pod->record->count; i++) {
        if (resize_is_possible(&pod->containers[i]) &&
            !td_life_same_resources(td_json_get(pod->containers[i].spec, TD_STR("resources")),
                                    kubelet_given(pod, i))) {
            return true;
        }
    }
    return false;
}

/* ---- Giving ---- */

/* What is lacking for the pod as its spec wants it; empty: nothing. *ret_is_hopeless: the node is
 * too small even without other pods. */
static td_str resize_lack(struct kubelet_pod *pod, bool *ret_is_hopeless)
{
    const struct td_node *node = pod->bound->node;
    struct td_arena *arena = pod->life.arena;
    struct td_node_amount *wanted;
    size_t count;
    if (td_pod_amounts(arena, pod->life.pod, false, &wanted, &count) != TD_OK) {
        return TD_STR_EMPTY;
    }
    td_str lack = TD_STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        bool is_cpu = td_str_equal(wanted[i].name, TD_STR("cpu"));
        size_t place = td_node_resource(node, wanted[i].name);
        if (place == node->resource_count ||
            (!is_cpu && !td_str_equal(wanted[i].name, TD_STR("memory")))) {
            continue;
        }
        long long capacity = node->allocatable[place].value;
        long long used = is_cpu ? node->allocated_cpu - pod->bound->allocated_cpu
                                : node->allocated_memory - pod->bound->allocated_memory;
        long long requested = wanted[i].value;
        if (requested > capacity) {
            *ret_is_hopeless = true;
            return td_arena_format(
                arena, "Node didn't have enough capacity: %.*s, requested: %lld, capacity: %lld",
                TD_STR_ARG(wanted[i].name), requested, capacity);
        }
        if (lack.len == 0 && requested > capacity - used) {
            lack = td_arena_format(arena,
                                   "Node didn't have enough resource: %.*s, requested: %lld, used: "
                                   "%lld, capacity: %lld",
                                   TD_STR_ARG(wanted[i].name), requested, used, capacity);
        }
    }
    return lack;
}

static struct td_json *resize_copy(struct td_arena *arena, const struct td_json *resources)
{
    return resources ? td_json_copy(arena, resources, false) : td_json_new_object(arena);
}

/* What the spec wishes is given from now on. */
static void resize_keep(struct kubelet_pod *pod)
{
    struct td_arena *arena = pod->life.arena;
    struct td_json *given = td_json_new_object(arena);
    struct td_json *list = td_json_new_array(arena);
    const struct td_json *whole = td_json_get_path(pod->life.pod, "spec.resources");
    for (size_t i = 0; i < pod->record->count; i++) {
        struct td_life_container *container = &pod->containers[i];
        const struct td_json *resources = resize_is_possible(container)
                                              ? td_json_get(container->spec, TD_STR("resources"))
                                              : td_json_get(container->status, TD_STR("resources"));
        td_json_append(list, resize_copy(arena, resources));
        td_life_allocate(&pod->life, container, resources);
    }
    td_json_set(arena, given, TD_STR("containers"), list);
    if (whole) {
        td_json_set(arena, given, TD_STR("resources"), resize_copy(arena, whole));
    }
    td_life_allocate(&pod->life, NULL, whole);
    td_text_set(&pod->record->allocated, td_json_line(arena, given));
    pod->allocated = given;
}

static void resize_defer(struct kubelet_pod *pod, td_str lack, bool is_hopeless)
{
    const char *reason = is_hopeless ? "Infeasible" : "Deferred";
    const struct td_json *before =
        td_condition_find(resize_status(pod), TD_STR("PodResizePending"));
    const struct td_json *metadata = td_json_get(pod->life.pod, TD_STR("metadata"));
    bool is_known = td_str_equal(td_json_text(before, "reason"), td_str_from(reason)) &&
                    td_json_get_int64(before, TD_STR("observedGeneration"), 0) ==
                        td_json_get_int64(metadata, TD_STR("generation"), 0);
    (void)td_pod_life_condition(&pod->life, "PodResizePending", "True", reason, lack);
    if (!is_known) {
        kubelet_tell_pending(pod, is_hopeless, lack);
    }
}

static void resize_admit(struct kubelet_pod *pod)
{
    bool is_hopeless = false;
    td_str lack = resize_lack(pod, &is_hopeless);
    if (lack.len > 0) {
        resize_defer(pod, lack, is_hopeless);
        return;
    }
    struct kubelet_record *record = pod->record;
    const struct td_json *metadata = td_json_get(pod->life.pod, TD_STR("metadata"));
    record->resize_generation = td_json_get_int64(metadata, TD_STR("generation"), 0);
    record->resize_due = pod->life.now + TD_KUBELET_RESIZE;
    resize_keep(pod);
    (void)td_pod_life_condition(&pod->life, "PodResizePending", NULL, NULL, TD_STR_EMPTY);
    (void)td_pod_life_condition(&pod->life, "PodResizeInProgress", NULL, NULL, TD_STR_EMPTY);
    (void)td_pod_life_condition(&pod->life, "PodResizeInProgress", "True", NULL, TD_STR_EMPTY);
    kubelet_tell_resize(pod, "ResizeStarted", "started", TD_STR_EMPTY);
}

/* ---- Bringing into use ---- */

/* The memory limit of the pod as a whole: its own, or the sum when all containers have one; 0:
 * none. */
static int64_t resize_pod_limit(struct kubelet_pod *pod, bool is_given)
{
    struct td_arena *arena = pod->life.arena;
    const struct td_json *whole =
        is_given ? resize_given_whole(pod) : td_json_get(resize_status(pod), TD_STR("resources"));
    int64_t sum = kubelet_limits(arena, whole).memory_limit_bytes;
    if (sum > 0) {
        return sum;
    }
    for (size_t i = 0; i < pod->record->count; i++) {
        if (!resize_is_possible(&pod->containers[i])) {
            continue;
        }
        const struct td_json *resources =
            is_given ? kubelet_given(pod, i)
                     : td_json_get(pod->containers[i].status, TD_STR("resources"));
        int64_t limit = kubelet_limits(arena, resources).memory_limit_bytes;
        if (limit == 0) {
            return 0;
        }
        sum += limit;
    }
    return sum;
}

static bool resize_is_less(int64_t after, int64_t before)
{
    return after > 0 && (before == 0 || after < before);
}

/* Texts of a list as Go prints aggregated errors: one alone, several in brackets. */
struct resize_errors {
    struct td_buf text;
    size_t count;
};

static void resize_add_error(struct resize_errors *errors, td_str what, int64_t limit, double use)
{
    (void)td_buf_append_format(
        &errors->text, "%sattempting to set %.*s memory limit (%lld) below current usage (%lld)",
        errors->count > 0 ? ", " : "", TD_STR_ARG(what), (long long)limit,
        (long long)use); /* sticky */
    errors->count++;
}

/* Memory that the pod uses, without containers that are restarted. */
static double resize_use(struct kubelet_pod *pod)
{
    double use = 0;
    for (size_t i = 0; i < pod->record->count; i++) {
        const struct td_engine_container *body = pod->record->containers[i].body;
        if (body && !td_life_resize_restarts(&pod->containers[i], kubelet_given(pod, i))) {
            use += td_engine_body(body)->memory_bytes;
        }
    }
    return use;
}

/* Why limits cannot be lowered now; empty: they can. */
static td_str resize_obstacle(struct kubelet_pod *pod)
{
    struct resize_errors errors = {.count = 0};
    td_buf_init(&errors.text, TD_STATUS_MESSAGE_BYTES_MAX);
    double use = resize_use(pod);
    int64_t limit = resize_pod_limit(pod, true);
    if (resize_is_less(limit, resize_pod_limit(pod, false)) && use >= (double)limit) {
        resize_add_error(&errors, TD_STR("pod"), limit, use);
    }
    for (size_t i = 0; i < pod->record->count; i++) {
        const struct td_life_container *container = &pod->containers[i];
        const struct td_engine_container *body = pod->record->containers[i].body;
        const struct td_json *given = kubelet_given(pod, i);
        int64_t after = kubelet_limits(pod->life.arena, given).memory_limit_bytes;
        int64_t before =
            kubelet_limits(pod->life.arena, td_json_get(container->status, TD_STR("resources")))
                .memory_limit_bytes;
        if (body && resize_is_less(after, before) && !td_life_resize_restarts(container, given) &&
            td_engine_body(body)->memory_bytes >= (double)after) {
            resize_add_error(
                &errors,
                td_arena_format(pod->life.arena, "container \"%.*s\"", TD_STR_ARG(container->name)),
                after, use); /* what the pod uses, as upstream prints it */
        }
    }
    td_str all = td_buf_str(&errors.text);
    td_str text = errors.count == 0
                      ? TD_STR_EMPTY
                      : td_arena_format(pod->life.arena, "cannot decrease memory limits: %s%.*s%s",
                                        errors.count > 1 ? "[" : "", TD_STR_ARG(all),
                                        errors.count > 1 ? "]" : "");
    td_buf_done(&errors.text);
    return text;
}

/* The first text stays while it lasts: use changes with every look, and that is no news. */
static void resize_fail(struct kubelet_pod *pod, td_str message)
{
    const struct td_json *progress =
        td_condition_find(resize_status(pod), TD_STR("PodResizeInProgress"));
    td_str reason = td_json_text(progress, "reason");
    if (!td_str_equal(reason, TD_STR("Error"))) {
        const struct td_life_condition condition = {
            .type = "PodResizeInProgress", .status = "True", .reason = "Error", .message = message};
        (void)td_pod_life_condition_of(&pod->life, pod->record->resize_generation, &condition);
        kubelet_tell_resize(pod, "ResizeError", "error", message);
    }
    pod->record->resize_due = pod->life.now + TD_KUBELET_RESIZE_RETRY;
}

static void resize_container(struct kubelet_pod *pod, size_t index)
{
    struct td_life_container *container = &pod->containers[index];
    const struct td_json *given = kubelet_given(pod, index);
    const struct td_json *used = td_json_get(container->status, TD_STR("resources"));
    if (td_life_same_resources(given, used)) {
        return;
    }
    bool restarts =
        td_life_state(container) == TD_LIFE_RUNNING && td_life_resize_restarts(container, given);
    if (restarts) {
        kubelet_restart_container(pod, index);
        return;
    }
    td_life_use(&pod->life, container, given);
    struct td_engine_container *body = pod->record->containers[index].body;
    if (body) {
        const struct td_engine_limits limits = kubelet_limits(pod->life.arena, given);
        td_engine_resize(body, &limits);
    }
}

static void resize_actuate(struct kubelet_pod *pod)
{
    struct kubelet_record *record = pod->record;
    const struct td_json *whole = resize_given_whole(pod);
    td_str obstacle = resize_obstacle(pod);
    if (obstacle.len > 0) {
        resize_fail(pod, obstacle);
        return;
    }
    for (size_t i = 0; i < record->count; i++) {
        resize_container(pod, i);
    }
    if (!td_life_same_resources(whole, td_json_get(resize_status(pod), TD_STR("resources")))) {
        td_life_use(&pod->life, NULL, whole);
        const struct td_engine_limits limits = kubelet_limits(pod->life.arena, whole);
        if (record->body) {
            td_engine_resize_pod(record->body, &limits);
        }
    }
    td_text_free(record->allocated);
    record->allocated = (td_str){.ptr = NULL};
    pod->allocated = NULL;
    (void)td_pod_life_condition(&pod->life, "PodResizeInProgress", NULL, NULL, TD_STR_EMPTY);
    kubelet_tell_resize(pod, "ResizeCompleted", "completed", TD_STR_EMPTY);
}

void kubelet_step_resize(struct kubelet_pod *pod)
{
    struct kubelet_record *record = pod->record;
    if (resize_is_wished(pod)) {
        resize_admit(pod);
    } else {
        (void)td_pod_life_condition(&pod->life, "PodResizePending", NULL, NULL, TD_STR_EMPTY);
    }
    if (record->allocated.len == 0) {
        (void)td_pod_life_condition(&pod->life, "PodResizeInProgress", NULL, NULL, TD_STR_EMPTY);
        return;
    }
    if (record->resize_due <= pod->life.now) {
        resize_actuate(pod);
    }
    if (record->allocated.len > 0) {
        kubelet_wake(pod, record->resize_due);
    }
}

/* ---- Who is asked first when there is room ---- */

struct resize_waiter {
    td_str key;
    int64_t priority;
    bool is_guaranteed;
    td_str since;
    size_t place; /* among the node's pods */
};

/* Higher priority, then Guaranteed before others, then who waits longest. */
static int resize_compare(const void *left, const void *right)
{
    const struct resize_waiter *a = left;
    const struct resize_waiter *b = right;
    if (a->priority != b->priority) {
        return a->priority > b->priority ? -1 : 1;
    }
    if (a->is_guaranteed != b->is_guaranteed) {
        return a->is_guaranteed ? -1 : 1;
    }
    int order = td_str_compare(a->since, b->since);
    if (order != 0) {
        return order;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

static struct resize_waiter resize_waiter(struct td_kubelet *kubelet, struct td_arena *arena,
                                          const struct td_bound_pod *bound, size_t place)
{
    const struct td_resource *pods = td_api_kind(kubelet->api, TD_STR("v1"), TD_STR("Pod"));
    struct td_json *pod = NULL;
    (void)td_edit_get(kubelet->api, pods, bound->ns, bound->name, arena, &pod,
                      NULL); /* one that is gone has no priority */
    const struct td_json *status = td_json_get(pod, TD_STR("status"));
    const struct td_json *pending = td_condition_find(status, TD_STR("PodResizePending"));
    td_str qos = td_json_text(status, "qosClass");
    return (struct resize_waiter){
        .key = td_arena_copy_str(arena, bound->key),
        .priority = td_json_get_int64(td_json_get(pod, TD_STR("spec")), TD_STR("priority"), 0),
        .is_guaranteed = td_str_equal(qos, TD_STR("Guaranteed")),
        .since = td_json_text(pending, "lastTransitionTime"),
        .place = place,
    };
}

void td_kubelet_room(struct td_kubelet *kubelet, const struct td_node *node)
{
    if (node->deferred_count == 0) {
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct resize_waiter *waiters =
        td_arena_alloc_zero(&arena, node->deferred_count, sizeof(*waiters));
    size_t count = 0;
    for (const struct td_bound_pod *pod = node->first; pod && count < node->deferred_count;
         pod = pod->next) {
        if (pod->is_deferred) {
            waiters[count] = resize_waiter(kubelet, &arena, pod, count);
            count++;
        }
    }
    qsort(waiters, count, sizeof(*waiters), resize_compare);
    for (size_t i = 0; i < count; i++) {
        kubelet_look(kubelet, waiters[i].key);
    }
}
