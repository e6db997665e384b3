/*
 * One queue of pods. A job looks at a pod as it is, takes the steps that are due, writes its status
 * once if something changed, and waits for the next moment at which something is due; a pod that
 * just runs has none and costs nothing. What must be remembered beside the status is in a record
 * (kubelet_private.h), which is made anew after a restart of the process: containers that the
 * status calls running get their bodies back.
 */
#include "local/nodes/kubelet.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "local/api/api.h"
#include "local/nodes/kubelet_private.h"
#include "local/nodes/node_index.h"
#include "local/nodes/scheduler.h"
#include "local/store/edit.h"
#include "local/store/store.h"

#define KUBELET_KILLED_CODE 143 /* of containers that a deletion ends */
#define KUBELET_EVICTED_CODE 137

static void kubelet_enqueue(struct td_kubelet *kubelet, td_str key, td_duration after)
{
    struct td_error err = TD_ERROR_INIT;
    int code = after > 0 ? td_queue_add_after(kubelet->queue, key, after, &err)
                         : td_queue_add(kubelet->queue, key, &err);
    if (code != TD_OK) {
        td_log_line(kubelet->log, TD_LOG_ERROR, "kubelet queue full, pod dropped",
                    TD_LOG_C("error", err.message));
    }
}

void kubelet_wake(struct kubelet_pod *pod, td_time at)
{
    if (at < pod->record->next) {
        pod->record->next = at;
    }
}

void kubelet_look(struct td_kubelet *kubelet, td_str key)
{
    struct kubelet_record *record = td_map_get(&kubelet->records, key);
    if (record) {
        record->next = 0;
    }
    kubelet_enqueue(kubelet, key, 0);
}

void td_kubelet_pod(struct td_kubelet *kubelet, td_str key)
{
    kubelet_enqueue(kubelet, key, 0);
}

/* ---- Records ---- */

static td_str kubelet_text(char **at, td_str text)
{
    char *to = *at;
    for (size_t i = 0; i < text.len; i++) {
        to[i] = text.ptr[i];
    }
    *at = to + text.len;
    return (td_str){.ptr = to, .len = text.len};
}

static struct kubelet_record *kubelet_new_record(struct td_kubelet *kubelet,
                                                 const struct td_bound_pod *bound, size_t count)
{
    size_t bytes = sizeof(struct kubelet_record) + count * sizeof(struct kubelet_container);
    struct kubelet_record *record = td_alloc_zero(1, bytes + bound->key.len + bound->uid.len);
    char *at = (char *)record + bytes;
    record->key = kubelet_text(&at, bound->key);
    record->uid = kubelet_text(&at, bound->uid);
    record->count = count;
    if (td_map_put(&kubelet->records, record->key, record) != TD_OK) {
        td_free(record);
        return NULL;
    }
    return record;
}

static void kubelet_free_record(struct kubelet_record *record)
{
    kubelet_disembody(record);
    td_text_free(record->role);
    td_text_free(record->allocated);
    td_free(record);
}

static void kubelet_forget(struct td_kubelet *kubelet, td_str key)
{
    struct kubelet_record *record = td_map_remove(&kubelet->records, key);
    if (record) {
        kubelet_free_record(record);
    }
}

/* The bound pod's record, made when there is none; NULL: at the cap. */
static struct kubelet_record *kubelet_record(struct td_kubelet *kubelet,
                                             const struct td_bound_pod *bound, size_t count)
{
    struct kubelet_record *record = td_map_get(&kubelet->records, bound->key);
    if (record && (!td_str_equal(record->uid, bound->uid) || record->count != count)) {
        kubelet_forget(kubelet, bound->key); /* another pod of that name */
        record = NULL;
    }
    return record ? record : kubelet_new_record(kubelet, bound, count);
}

/* ---- Pods in hand ---- */

static size_t kubelet_count(const struct td_json *pod)
{
    size_t count = 0;
    static const char *const lists[] = {"spec.initContainers", "spec.containers"};
    for (size_t i = 0; i < TD_COUNT(lists); i++) {
        const struct td_json *list = td_json_get_path(pod, lists[i]);
        count += td_json_item_count(list);
    }
    return count;
}

/* The pod as it is stored. False: it is gone. */
static bool kubelet_take(struct td_kubelet *kubelet, struct td_bound_pod *bound,
                         struct td_arena *arena, struct kubelet_pod *ret)
{
    struct kubelet_pod pod = {
        .kubelet = kubelet,
        .bound = bound,
        .life =
            {
                .arena = arena,
                .now = td_api_now(kubelet->api),
                .host_address = td_arena_copy_str(arena, bound->node->address),
            },
    };
    if (td_edit_get(kubelet->api, td_api_kind(kubelet->api, TD_STR("v1"), TD_STR("Pod")), bound->ns,
                    bound->name, arena, &pod.life.pod, NULL) != TD_OK) {
        return false;
    }
    pod.record = kubelet_record(kubelet, bound, kubelet_count(pod.life.pod));
    if (!pod.record) {
        return false;
    }
    struct td_json *allocated = NULL;
    if (pod.record->allocated.len > 0) {
        (void)td_json_parse(arena, pod.record->allocated,
                            &(struct td_json_options){.copy_strings = true}, &allocated,
                            NULL); /* we wrote it */
    }
    pod.allocated = allocated;
    *ret = pod;
    return true;
}

/* Stores the pod and tells the index at once: other pods' steps count on it. */
static void kubelet_put(struct kubelet_pod *pod)
{
    struct td_kubelet *kubelet = pod->kubelet;
    struct td_error err = TD_ERROR_INIT;
    if (!pod->life.is_changed) {
        return;
    }
    int code = td_edit_put(kubelet->api, td_api_kind(kubelet->api, TD_STR("v1"), TD_STR("Pod")),
                           pod->life.arena, pod->life.pod, &err);
    if (code == TD_OK) {
        struct td_node *node = pod->bound->node;
        td_str key = pod->record->key;
        if (td_node_index_set_pod(kubelet->index, key, td_store_version(td_api_store(kubelet->api)),
                                  pod->life.pod)) {
            td_kubelet_room(kubelet, node);
            td_scheduler_room(kubelet->scheduler);
        }
        pod->bound = td_node_index_pod(kubelet->index, key);
    } else if (code != TD_CONFLICT && code != TD_NOT_FOUND) {
        td_log_line(kubelet->log, TD_LOG_ERROR, "kubelet: cannot update pod status",
                    TD_LOG_C("error", err.message));
    }
    pod->life.is_changed = false;
}

/* ---- Beginning ---- */

/* The next address; the last part is never 0 or 255. */
static td_str kubelet_address(struct kubelet_pod *pod)
{
    uint32_t address = pod->kubelet->index->last_address;
    do {
        address = TD_POD_ADDRESS_BASE | ((address + 1) & ~TD_POD_ADDRESS_MASK);
    } while ((address & 0xff) == 0 || (address & 0xff) == 0xff);
    pod->kubelet->index->last_address = address;
    return td_arena_format(pod->life.arena, "%u.%u.%u.%u", address >> 24, address >> 16 & 0xff,
                           address >> 8 & 0xff, address & 0xff);
}

/* Its address is there, and so is all that containers need. True: they can start. */
static bool kubelet_prepare(struct kubelet_pod *pod)
{
    struct kubelet_record *record = pod->record;
    const struct td_json *status = td_json_get(pod->life.pod, TD_STR("status"));
    if (td_json_get(status, TD_STR("podIP"))) {
        return true;
    }
    if (record->created == 0) {
        record->created = pod->life.now; /* by a process before this one */
    }
    td_time due = record->created + TD_KUBELET_START_UP;
    if (due > pod->life.now) {
        kubelet_wake(pod, due);
        return false;
    }
    td_pod_life_set_address(&pod->life, kubelet_address(pod));
    return true;
}

static void kubelet_create(struct kubelet_pod *pod)
{
    pod->record->created = pod->life.now;
    td_pod_life_create(&pod->life);
    kubelet_put(pod);
    kubelet_wake(pod, pod->life.now + TD_KUBELET_START_UP);
}

/* ---- Running ---- */

static void kubelet_run(struct kubelet_pod *pod)
{
    struct kubelet_record *record = pod->record;
    size_t count;
    pod->containers = td_pod_life_containers(&pod->life, &count);
    if (record->is_sandbox_lost) {
        record->is_sandbox_lost = false;
        kubelet_tell(pod, "Normal", "SandboxChanged",
                     TD_STR("Pod sandbox changed, it will be killed and re-created."));
    }
    if (kubelet_prepare(pod)) {
        kubelet_embody(pod);
        kubelet_follow(pod);
        if (kubelet_step_containers(pod)) {
            kubelet_disembody(record);
        }
    }
    kubelet_step_resize(pod);
    td_pod_life_conclude(&pod->life, false);
    kubelet_put(pod);
}

/* ---- Ending ---- */

/* It is over now, with what runs killed. */
static void kubelet_finish(struct kubelet_pod *pod, int64_t exit_code)
{
    kubelet_end_all(pod, exit_code);
    kubelet_disembody(pod->record);
    td_pod_life_conclude(&pod->life, true);
}

static void kubelet_begin_deletion(struct kubelet_pod *pod)
{
    struct kubelet_record *record = pod->record;
    record->deleting = pod->life.now;
    for (size_t i = 0; i < record->count; i++) {
        const struct td_life_container *container = &pod->containers[i];
        if (td_life_state(container) == TD_LIFE_RUNNING) {
            kubelet_tell_of(pod, container, "Normal", "Killing",
                            td_arena_format(pod->life.arena, "Stopping container %.*s",
                                            TD_STR_ARG(container->name)));
        }
        struct kubelet_container *own = &record->containers[i];
        if (own->body && own->is_ready) {
            own->is_ready = false; /* no probe asks it any more */
            td_engine_set_ready(own->body, false);
        }
    }
}

static void kubelet_remove(struct kubelet_pod *pod)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_delete(
        pod->kubelet->api, td_api_kind(pod->kubelet->api, TD_STR("v1"), TD_STR("Pod")),
        pod->bound->ns, pod->bound->name, pod->bound->uid, TD_STR_EMPTY, 0, &err);
    if (code != TD_OK && code != TD_NOT_FOUND && code != TD_CONFLICT) {
        td_log_line(pod->kubelet->log, TD_LOG_ERROR, "kubelet: cannot delete pod",
                    TD_LOG_C("error", err.message));
    }
}

static void kubelet_delete(struct kubelet_pod *pod)
{
    const struct td_json *metadata = td_json_get(pod->life.pod, TD_STR("metadata"));
    const struct td_json *finalizers = td_json_get(metadata, TD_STR("finalizers"));
    bool is_held = finalizers && finalizers->count > 0;
    bool is_over = td_pod_life_is_over(&pod->life);
    int64_t grace = td_json_get_int64(metadata, TD_STR("deletionGracePeriodSeconds"), 0);
    td_duration wait = grace >= 0 && grace < TD_KUBELET_SHUT_DOWN / TD_SECOND
                           ? grace * TD_SECOND
                           : TD_KUBELET_SHUT_DOWN;
    size_t count;
    pod->containers = td_pod_life_containers(&pod->life, &count);
    if (pod->record->deleting == 0) {
        kubelet_begin_deletion(pod);
    }
    td_time due = is_over ? pod->life.now : pod->record->deleting + wait;
    if (due > pod->life.now) {
        kubelet_wake(pod, due);
        return;
    }
    kubelet_disembody(pod->record);
    if (is_held && !is_over) {
        /* It stays in sight for a while: a finalizer's owner waits for its end. */
        kubelet_finish(pod, KUBELET_KILLED_CODE);
        kubelet_put(pod);
    }
    if ((grace == 0 && is_held) || !pod->bound) {
        return; /* only the owners of its finalizers have work left */
    }
    kubelet_remove(pod);
}

int td_kubelet_evict(struct td_kubelet *kubelet, td_str pod_key, td_str message)
{
    struct td_bound_pod *bound = td_node_index_pod(kubelet->index, pod_key);
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct kubelet_pod pod;
    if (!bound || bound->is_over || !kubelet_take(kubelet, bound, &arena, &pod)) {
        return TD_NOT_FOUND;
    }
    size_t count;
    pod.containers = td_pod_life_containers(&pod.life, &count);
    struct td_json *status = td_json_ensure_object(&arena, pod.life.pod, TD_STR("status"));
    (void)td_pod_life_condition(&pod.life, "DisruptionTarget", "True", "TerminationByKubelet",
                                message);
    kubelet_tell(&pod, "Warning", "Evicted", message);
    kubelet_finish(&pod, KUBELET_EVICTED_CODE);
    td_json_set_str(&arena, status, TD_STR("reason"), TD_STR("Evicted"));
    td_json_set_str(&arena, status, TD_STR("message"), message);
    kubelet_put(&pod);
    return TD_OK;
}

/* ---- Nodes ---- */

void td_kubelet_stop_node(struct td_kubelet *kubelet, const struct td_node *node)
{
    for (const struct td_bound_pod *pod = node->first; pod; pod = pod->next) {
        struct kubelet_record *record = td_map_get(&kubelet->records, pod->key);
        if (!record) {
            continue;
        }
        kubelet_disembody(record);
        record->next = 0; /* to be looked at when the node is back */
        for (size_t i = 0; i < record->count; i++) {
            struct kubelet_container *own = &record->containers[i];
            own->end = own->is_seen ? KUBELET_LOST : KUBELET_RUNS_ON;
            record->is_sandbox_lost = record->is_sandbox_lost || own->is_seen;
        }
    }
}

void td_kubelet_start_node(struct td_kubelet *kubelet, const struct td_node *node)
{
    for (const struct td_bound_pod *pod = node->first; pod; pod = pod->next) {
        kubelet_look(kubelet, pod->key);
    }
}

/* ---- What the engine tells ---- */

static void kubelet_note_end(struct td_kubelet *kubelet, struct td_engine_container *container,
                             enum kubelet_end end)
{
    struct kubelet_record *record = td_engine_pod_owner(td_engine_pod(container));
    for (size_t i = 0; i < record->count; i++) {
        struct kubelet_container *own = &record->containers[i];
        if (own->body == container) {
            own->body = NULL;
            own->is_ready = false;
            own->end = end;
        }
    }
    td_engine_stop(container);
    kubelet_look(kubelet, record->key);
}

void td_kubelet_killed(struct td_kubelet *kubelet, struct td_engine_container *container)
{
    kubelet_note_end(kubelet, container, KUBELET_OUT_OF_MEMORY);
}

void td_kubelet_finished(struct td_kubelet *kubelet, struct td_engine_container *container)
{
    kubelet_note_end(kubelet, container, KUBELET_FINISHED);
}

/* ---- The step that is due ---- */

static void kubelet_step(struct kubelet_pod *pod)
{
    const struct td_json *status = td_json_get(pod->life.pod, TD_STR("status"));
    if (td_json_get_path(pod->life.pod, "metadata.deletionTimestamp")) {
        kubelet_delete(pod);
    } else if (td_pod_life_is_over(&pod->life)) {
        kubelet_disembody(pod->record);
    } else if (!td_json_get(status, TD_STR("startTime"))) {
        kubelet_create(pod);
    } else {
        kubelet_run(pod);
    }
}

/* Of two delays of one key the queue keeps the earlier, so a later one is asked for again. */
static void kubelet_wait(struct td_kubelet *kubelet, const struct kubelet_record *record)
{
    if (record->next != KUBELET_NEVER) {
        kubelet_enqueue(kubelet, record->key, record->next - td_api_now(kubelet->api));
    }
}

/* Nothing has changed since the last look, and nothing is due. */
static bool kubelet_is_quiet(struct td_kubelet *kubelet, const struct td_bound_pod *bound)
{
    const struct kubelet_record *record = td_map_get(&kubelet->records, bound->key);
    if (!record || record->seen_version != bound->version ||
        record->next <= td_api_now(kubelet->api) || !td_str_equal(record->uid, bound->uid)) {
        return false;
    }
    kubelet_wait(kubelet, record);
    return true;
}

static enum td_job_result kubelet_work(td_str key, void *context)
{
    struct td_kubelet *kubelet = context;
    struct td_bound_pod *bound = td_node_index_pod(kubelet->index, key);
    if (!bound) {
        kubelet_forget(kubelet, key);
        return TD_JOB_DONE;
    }
    if (!bound->node->exists || !bound->node->is_ours || bound->node->is_lost ||
        kubelet_is_quiet(kubelet, bound)) {
        return TD_JOB_DONE;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct kubelet_pod pod;
    if (!kubelet_take(kubelet, bound, &arena, &pod)) {
        return TD_JOB_DONE;
    }
    pod.record->next = KUBELET_NEVER;
    kubelet_step(&pod);
    if (!pod.bound) {
        return TD_JOB_DONE; /* the observer tells when it is gone */
    }
    pod.record->seen_version = pod.bound->version;
    kubelet_wait(kubelet, pod.record);
    return TD_JOB_DONE;
}

struct td_kubelet *td_kubelet_new(const struct td_kubelet_options *options)
{
    struct td_kubelet *kubelet = td_alloc_zero(1, sizeof(*kubelet));
    kubelet->scheduler = options->scheduler;
    kubelet->api = options->api;
    kubelet->log = options->log;
    kubelet->index = options->index;
    kubelet->engine = options->engine;
    kubelet->queue =
        td_queue_new(td_api_loop(options->api), kubelet_work, kubelet, TD_WORK_QUEUE_MAX);
    td_map_init(&kubelet->records, TD_COLLECTION_OBJECTS_MAX);
    return kubelet;
}

void td_kubelet_free(struct td_kubelet *kubelet)
{
    if (!kubelet) {
        return;
    }
    for (struct td_map_walk at = {.map = &kubelet->records}; td_map_step(&at);) {
        kubelet_free_record(at.value);
    }
    td_map_done(&kubelet->records);
    td_queue_free(kubelet->queue);
    td_free(kubelet);
}
