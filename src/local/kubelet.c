/*
 * One queue of pods. A job looks at a pod as it is and takes the step that is due, or waits until
 * one is: no state but the moments at which steps began, which the index keeps beside the pod. So a
 * pod that was in the middle of something when the process ended goes on after a restart.
 */
#include "local/kubelet.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/loop.h"
#include "local/api.h"
#include "local/condition.h"
#include "local/edit.h"
#include "local/kubelet_status.h"
#include "local/node_index.h"
#include "local/resource.h"
#include "local/scheduler.h"
#include "local/store.h"

#define KUBELET_KILLED_CODE 143 /* of containers that a deletion ends */
#define KUBELET_EVICTED_CODE 137

struct td_kubelet {
    struct td_api *api;
    struct td_log *log;
    struct td_node_index *index;
    struct td_scheduler *scheduler;
    struct td_queue *queue; /* keys of pods */
};

/* A pod in hand. */
struct kubelet_pod {
    struct td_kubelet *kubelet;
    struct td_bound_pod *record; /* replaced by each write */
    td_str key;
    struct td_pod_life life;
};

static void kubelet_enqueue(struct td_kubelet *kubelet, td_str key, td_duration after)
{
    struct td_error err = TD_ERROR_INIT;
    int code = after > 0 ? td_queue_add_after(kubelet->queue, key, after, &err)
                         : td_queue_add(kubelet->queue, key, &err);
    if (code != TD_OK) {
        td_log_line(kubelet->log, TD_LOG_ERROR, "a pod waits for nobody to run it",
                    TD_LOG_C("error", err.message));
    }
}

static const struct td_resource *kubelet_pods(struct td_kubelet *kubelet)
{
    return td_resources_find_kind(td_api_resources(kubelet->api), TD_STR("v1"), TD_STR("Pod"))
        .resource;
}

/* Stores the pod and tells the index at once: other pods' steps count on it. */
static void kubelet_put(struct kubelet_pod *pod)
{
    struct td_kubelet *kubelet = pod->kubelet;
    struct td_error err = TD_ERROR_INIT;
    int code =
        td_edit_put(kubelet->api, kubelet_pods(kubelet), pod->life.arena, pod->life.pod, &err);
    if (code == TD_OK) {
        struct td_node *node = pod->record->node;
        if (td_node_index_set_pod(kubelet->index, pod->key,
                                  td_store_version(td_api_store(kubelet->api)), pod->life.pod)) {
            td_kubelet_room(kubelet, node);
            td_scheduler_room(kubelet->scheduler);
        }
        pod->record = td_node_index_pod(kubelet->index, pod->key);
    } else if (code != TD_CONFLICT && code != TD_NOT_FOUND) {
        td_log_line(kubelet->log, TD_LOG_ERROR, "the status of a pod cannot be written",
                    TD_LOG_C("error", err.message));
    }
}

/* Has `span` passed since the moment? A moment that nobody saw is now. Else waits for the rest. */
static bool kubelet_is_due(struct kubelet_pod *pod, td_time *moment, td_duration span)
{
    if (*moment == 0) {
        *moment = pod->life.now;
    }
    td_duration left = *moment + span - pod->life.now;
    if (left > 0) {
        kubelet_enqueue(pod->kubelet, pod->key, left);
    }
    return left <= 0;
}

static td_str kubelet_annotation(const struct kubelet_pod *pod, const char *name)
{
    const struct td_json *metadata = td_json_get(pod->life.pod, TD_STR("metadata"));
    return td_json_get_str(td_json_get(metadata, TD_STR("annotations")), td_str_from(name),
                           TD_STR_EMPTY);
}

static bool kubelet_has_policy(const struct kubelet_pod *pod, td_str policy)
{
    const struct td_json *spec = td_json_get(pod->life.pod, TD_STR("spec"));
    return td_str_equal(td_json_get_str(spec, TD_STR("restartPolicy"), TD_STR("Always")), policy);
}

/* ---- Beginning ---- */

static void kubelet_create(struct kubelet_pod *pod)
{
    pod->record->times.started = pod->life.now;
    td_pod_life_create(&pod->life);
    kubelet_put(pod);
    kubelet_enqueue(pod->kubelet, pod->key, TD_KUBELET_START_UP);
}

/* The next address; the last part is never 0 or 255. */
static td_str kubelet_address(struct kubelet_pod *pod)
{
    td_str old = td_json_get_str(td_json_get(pod->life.pod, TD_STR("status")), TD_STR("podIP"),
                                 TD_STR_EMPTY);
    if (old.len > 0) {
        return old;
    }
    uint32_t address = pod->kubelet->index->last_address;
    do {
        address = TD_POD_ADDRESS_BASE | ((address + 1) & ~TD_POD_ADDRESS_MASK);
    } while ((address & 0xff) == 0 || (address & 0xff) == 0xff);
    pod->kubelet->index->last_address = address;
    return td_arena_format(pod->life.arena, "%u.%u.%u.%u", address >> 24, address >> 16 & 0xff,
                           address >> 8 & 0xff, address & 0xff);
}

static void kubelet_run(struct kubelet_pod *pod)
{
    pod->record->times.running = pod->life.now;
    pod->life.pod_address = kubelet_address(pod);
    td_pod_life_run(&pod->life);
    kubelet_put(pod);
}

/* ---- Ending by itself ---- */

/* Doubles with each restart; the first one comes at once. */
static td_duration kubelet_pause(int64_t restarts)
{
    td_duration pause = restarts > 0 ? TD_KUBELET_PAUSE_MIN : 0;
    for (int64_t i = 1; i < restarts && pause < TD_KUBELET_PAUSE_MAX; i++) {
        pause *= 2;
    }
    return pause < TD_KUBELET_PAUSE_MAX ? pause : TD_KUBELET_PAUSE_MAX;
}

static void kubelet_finish(struct kubelet_pod *pod)
{
    td_duration runs_for = TD_KUBELET_RUNS_FOR;
    td_duration named;
    if (td_duration_parse(kubelet_annotation(pod, TD_KUBELET_RUNS_FOR_ANNOTATION), &named, NULL) ==
            TD_OK &&
        named >= 0) {
        runs_for = named;
    }
    int64_t exit_code = 0;
    int64_t code;
    if (td_str_to_int64(kubelet_annotation(pod, TD_KUBELET_EXIT_CODE_ANNOTATION), &code) &&
        code >= 0 && code <= 255) {
        exit_code = code;
    }
    if (!kubelet_is_due(pod, &pod->record->times.running, runs_for)) {
        return;
    }
    if (exit_code != 0 && kubelet_has_policy(pod, TD_STR("OnFailure"))) {
        td_duration pause = kubelet_pause(td_pod_life_restarts(&pod->life));
        td_pod_life_crash(&pod->life, exit_code, pause);
        pod->record->times.running = pod->life.now; /* of the pause, now */
    } else {
        td_pod_life_finish(&pod->life, exit_code);
    }
    kubelet_put(pod);
}

static void kubelet_restart(struct kubelet_pod *pod)
{
    td_duration pause = kubelet_pause(td_pod_life_restarts(&pod->life));
    if (kubelet_is_due(pod, &pod->record->times.running, pause)) {
        kubelet_run(pod);
    }
}

/* ---- Deletion ---- */

static bool kubelet_is_over(const struct kubelet_pod *pod)
{
    td_str phase = td_json_get_str(td_json_get(pod->life.pod, TD_STR("status")), TD_STR("phase"),
                                   TD_STR_EMPTY);
    return td_str_equal(phase, TD_STR("Succeeded")) || td_str_equal(phase, TD_STR("Failed"));
}

static void kubelet_delete(struct kubelet_pod *pod)
{
    const struct td_json *metadata = td_json_get(pod->life.pod, TD_STR("metadata"));
    const struct td_json *finalizers = td_json_get(metadata, TD_STR("finalizers"));
    int64_t grace = td_json_get_int64(metadata, TD_STR("deletionGracePeriodSeconds"), 0);
    td_duration wait = grace * TD_SECOND < TD_KUBELET_SHUT_DOWN && grace >= 0
                           ? grace * TD_SECOND
                           : TD_KUBELET_SHUT_DOWN;
    if (!kubelet_is_due(pod, &pod->record->times.deleting, wait)) {
        return;
    }
    if (finalizers && finalizers->count > 0 && !kubelet_is_over(pod)) {
        /* It stays in sight for a while: whoever holds it waits for its end. */
        td_pod_life_finish(&pod->life, KUBELET_KILLED_CODE);
        kubelet_put(pod);
    }
    if (grace == 0 && finalizers && finalizers->count > 0) {
        return; /* nothing is left to do but for whoever put them there */
    }
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_delete(pod->kubelet->api, kubelet_pods(pod->kubelet), pod->record->ns,
                              pod->record->name, pod->record->uid, TD_STR_EMPTY, 0, &err);
    if (code != TD_OK && code != TD_NOT_FOUND && code != TD_CONFLICT) {
        td_log_line(pod->kubelet->log, TD_LOG_ERROR, "a pod cannot be removed",
                    TD_LOG_C("error", err.message));
    }
}

/* ---- Resizing ---- */

/* What is lacking for the pod as its spec wants it; empty: nothing. *ret_is_hopeless: the node is
 * too small even without other pods. */
static td_str kubelet_lacks(struct kubelet_pod *pod, bool *ret_is_hopeless)
{
    const struct td_node *node = pod->record->node;
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
        long long used = is_cpu ? node->allocated_cpu - pod->record->allocated_cpu
                                : node->allocated_memory - pod->record->allocated_memory;
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

/* A resize that the node has not been asked for yet, or could not give. */
static void kubelet_admit(struct kubelet_pod *pod)
{
    bool is_hopeless = false;
    td_str lack = kubelet_lacks(pod, &is_hopeless);
    const struct td_pod_life *life = &pod->life;
    if (lack.len > 0) {
        (void)td_pod_life_condition(life, "PodResizePending", "True",
                                    is_hopeless ? "Infeasible" : "Deferred", lack);
        td_pod_life_observe(life);
        kubelet_put(pod);
        return;
    }
    pod->record->times.resizing = life->now;
    td_pod_life_allocate(life);
    (void)td_pod_life_condition(life, "PodResizePending", NULL, NULL, TD_STR_EMPTY);
    (void)td_pod_life_condition(life, "PodResizeInProgress", "True", NULL, TD_STR_EMPTY);
    kubelet_put(pod);
    kubelet_enqueue(pod->kubelet, pod->key, TD_KUBELET_RESIZE);
}

static void kubelet_resize(struct kubelet_pod *pod)
{
    const struct td_json *status = td_json_get(pod->life.pod, TD_STR("status"));
    const struct td_json *metadata = td_json_get(pod->life.pod, TD_STR("metadata"));
    const struct td_json *progress = td_condition_find(status, TD_STR("PodResizeInProgress"));
    int64_t generation = td_json_get_int64(metadata, TD_STR("generation"), 0);
    if (td_pod_life_is_resized(&pod->life)) {
        if (!progress ||
            td_json_get_int64(progress, TD_STR("observedGeneration"), 0) != generation) {
            kubelet_admit(pod);
        } else if (kubelet_is_due(pod, &pod->record->times.resizing, TD_KUBELET_RESIZE)) {
            td_pod_life_actuate(&pod->life);
            kubelet_put(pod);
        }
        return;
    }
    bool is_stale = progress || td_condition_find(status, TD_STR("PodResizePending")) ||
                    td_json_get_int64(status, TD_STR("observedGeneration"), 0) != generation;
    if (is_stale) { /* the wish was taken back, or the spec changed otherwise */
        td_pod_life_actuate(&pod->life);
        kubelet_put(pod);
    }
}

void td_kubelet_room(struct td_kubelet *kubelet, const struct td_node *node)
{
    if (node->deferred_count == 0) {
        return;
    }
    for (const struct td_bound_pod *pod = node->first; pod; pod = pod->next) {
        if (pod->is_deferred) {
            kubelet_enqueue(kubelet, pod->key, 0);
        }
    }
}

/* ---- The step that is due ---- */

static void kubelet_step(struct kubelet_pod *pod)
{
    const struct td_json *status = td_json_get(pod->life.pod, TD_STR("status"));
    td_str phase = td_json_get_str(status, TD_STR("phase"), TD_STR("Pending"));
    if (td_json_get_path(pod->life.pod, "metadata.deletionTimestamp")) {
        kubelet_delete(pod);
    } else if (kubelet_is_over(pod)) {
        return;
    } else if (!td_json_get(status, TD_STR("startTime"))) {
        kubelet_create(pod);
    } else if (!td_str_equal(phase, TD_STR("Running"))) {
        if (kubelet_is_due(pod, &pod->record->times.started, TD_KUBELET_START_UP)) {
            kubelet_run(pod);
        }
    } else if (td_pod_life_is_crashed(&pod->life)) {
        kubelet_restart(pod);
    } else {
        kubelet_resize(pod);
        if (pod->record && !kubelet_has_policy(pod, TD_STR("Always"))) {
            kubelet_finish(pod);
        }
    }
}

/* The pod as it is stored; life.pod is NULL when it is gone. */
static struct kubelet_pod kubelet_take(struct td_kubelet *kubelet, struct td_bound_pod *record,
                                       struct td_arena *arena)
{
    struct kubelet_pod pod = {
        .kubelet = kubelet,
        .record = record,
        .key = td_arena_copy_str(arena, record->key),
        .life =
            {
                .arena = arena,
                .now = td_clock_wall(td_loop_clock(td_api_loop(kubelet->api))),
                .host_address = td_arena_copy_str(arena, record->node->address),
            },
    };
    if (td_edit_get(kubelet->api, kubelet_pods(kubelet), record->ns, record->name, arena,
                    &pod.life.pod, NULL) != TD_OK) {
        pod.life.pod = NULL;
    }
    return pod;
}

static enum td_job_result kubelet_work(td_str key, void *context)
{
    struct td_kubelet *kubelet = context;
    struct td_bound_pod *record = td_node_index_pod(kubelet->index, key);
    if (!record || !record->node->exists || !record->node->is_ours || record->node->is_lost) {
        return TD_JOB_DONE;
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct kubelet_pod pod = kubelet_take(kubelet, record, &arena);
    if (pod.life.pod) {
        kubelet_step(&pod);
    }
    return TD_JOB_DONE;
}

void td_kubelet_pod(struct td_kubelet *kubelet, td_str key)
{
    kubelet_enqueue(kubelet, key, 0);
}

static void kubelet_fail(struct kubelet_pod *pod, td_str reason, td_str message)
{
    struct td_json *status =
        td_json_ensure_object(pod->life.arena, pod->life.pod, TD_STR("status"));
    td_pod_life_finish(&pod->life, KUBELET_EVICTED_CODE);
    td_json_set_str(pod->life.arena, status, TD_STR("reason"), reason);
    td_json_set_str(pod->life.arena, status, TD_STR("message"), message);
    (void)td_pod_life_condition(&pod->life, "DisruptionTarget", "True", "TerminationByKubelet",
                                message);
    td_edit_event(pod->kubelet->api, pod->life.pod, TD_STR("Warning"), reason, TD_STR("kubelet"),
                  message);
    kubelet_put(pod);
}

int td_kubelet_evict(struct td_kubelet *kubelet, td_str pod_key, td_str message)
{
    struct td_bound_pod *record = td_node_index_pod(kubelet->index, pod_key);
    if (!record || record->is_over) {
        return TD_NOT_FOUND;
    }
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    struct kubelet_pod pod = kubelet_take(kubelet, record, &arena);
    if (!pod.life.pod) {
        return TD_NOT_FOUND;
    }
    kubelet_fail(&pod, TD_STR("Evicted"), message);
    return TD_OK;
}

void td_kubelet_stop_node(struct td_kubelet *kubelet, const struct td_node *node)
{
    (void)kubelet;
    (void)node;
}

void td_kubelet_start_node(struct td_kubelet *kubelet, const struct td_node *node)
{
    for (const struct td_bound_pod *pod = node->first; pod; pod = pod->next) {
        kubelet_enqueue(kubelet, pod->key, 0);
    }
}

struct td_kubelet *td_kubelet_new(const struct td_kubelet_options *options)
{
    struct td_kubelet *kubelet = td_alloc_zero(1, sizeof(*kubelet));
    kubelet->scheduler = options->scheduler;
    kubelet->api = options->api;
    kubelet->log = options->log;
    kubelet->index = options->index;
    kubelet->queue =
        td_queue_new(td_api_loop(options->api), kubelet_work, kubelet, TD_WORK_QUEUE_MAX);
    return kubelet;
}

void td_kubelet_free(struct td_kubelet *kubelet)
{
    if (!kubelet) {
        return;
    }
    td_queue_free(kubelet->queue);
    td_free(kubelet);
}
