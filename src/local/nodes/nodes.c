/*
 * The observer only says that something changed; what is looked at is the newest revision in the
 * store. So the index never goes back behind what the scheduler or the kubelet has just written.
 */
#include "local/nodes/nodes.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "kube/objectkey.h"
#include "local/api/api.h"
#include "local/engine/engine.h"
#include "local/kinds/condition.h"
#include "local/nodes/kubelet.h"
#include "local/nodes/node_index.h"
#include "local/nodes/node_life.h"
#include "local/nodes/node_object.h"
#include "local/nodes/node_pressure.h"
#include "local/nodes/node_report.h"
#include "local/nodes/node_taints.h"
#include "local/nodes/scheduler.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"
#include "local/store/observer.h"
#include "local/store/store.h"

#define NODES_LEASE_TICKS 2               /* of TD_NODE_LIFE_EVERY: a lease is renewed every 10 s */
#define NODES_HEARTBEAT_TICKS 60          /* conditions every 5 min */
#define NODES_QUARANTINE (40 * TD_SECOND) /* before pods of a node that is gone are removed */

struct td_nodes {
    struct td_api *api;
    struct td_log *log;
    struct td_node_index index;
    struct td_scheduler *scheduler;
    struct td_kubelet *kubelet;
    struct td_observer *observer;
    struct td_queue *orphans; /* keys of pods whose node is gone */
    struct td_timer *timer;
    struct td_node_report report;
    struct td_node_life *life;
    struct td_node_taints *taints;
    struct td_node_pressure *pressure;
    struct td_engine *engine; /* may be NULL */
    uint64_t ticks;
};

static void nodes_put(struct td_nodes *nodes, struct td_arena *arena,
                      const struct td_resource *resource, struct td_json *object)
{
    struct td_error err = TD_ERROR_INIT;
    int code = td_edit_put(nodes->api, resource, arena, object, &err);
    if (code != TD_OK && code != TD_CONFLICT && code != TD_NOT_FOUND) {
        td_log_line(nodes->log, TD_LOG_ERROR, "cannot update node or pod",
                    TD_LOG_C("error", err.message));
    }
}

/* ---- Leases and heartbeats ---- */

static void nodes_tick(struct td_timer *timer, void *context)
{
    struct td_nodes *nodes = context;
    bool is_renewal = ++nodes->ticks % NODES_LEASE_TICKS == 0;
    bool is_heartbeat = nodes->ticks % NODES_HEARTBEAT_TICKS == 0;
    size_t position = 0;
    const struct td_map_entry *entry;
    while (is_renewal && (entry = td_map_next(&nodes->index.nodes, &position))) {
        struct td_node *node = entry->value;
        if (!node->exists || !node->is_ours || node->is_lost) {
            continue;
        }
        td_node_report_lease(&nodes->report, node);
        if (is_heartbeat) {
            td_node_report_status(&nodes->report, node, true);
        }
    }
    td_node_life_look(nodes->life);
    td_node_pressure_look(nodes->pressure);
    td_timer_set(timer, TD_NODE_LIFE_EVERY);
}

/* ---- Pods whose node is gone ---- */

static enum td_job_result nodes_remove_orphan(td_str key, void *context)
{
    struct td_nodes *nodes = context;
    const struct td_bound_pod *record = td_node_index_pod(&nodes->index, key);
    if (!record || record->node->exists) {
        return TD_JOB_DONE;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_resource *pods = td_api_kind(nodes->api, TD_STR("v1"), TD_STR("Pod"));
    struct td_json *pod;
    struct td_error err = TD_ERROR_INIT;
    td_str ns = td_arena_copy_str(&arena, record->ns);
    td_str name = td_arena_copy_str(&arena, record->name);
    td_str uid = td_arena_copy_str(&arena, record->uid);
    if (td_edit_get(nodes->api, pods, ns, name, &arena, &pod, NULL) != TD_OK) {
        return TD_JOB_DONE;
    }
    const struct td_condition condition = {
        .type = TD_STR("DisruptionTarget"),
        .status = TD_STR("True"),
        .reason = TD_STR("DeletionByPodGC"),
        .message = TD_STR("PodGC: node no longer exists"),
        .has_probe_time = true,
    };
    struct td_json *status = td_json_ensure_object(&arena, pod, TD_STR("status"));
    if (!record->is_over) {
        td_json_set_str(&arena, status, TD_STR("phase"), TD_STR("Failed"));
        (void)td_condition_set(&arena, status, &condition,
                               td_time_to_instant(td_api_now(nodes->api)));
        nodes_put(nodes, &arena, pods, pod);
    }
    int code = td_edit_delete(nodes->api, pods, ns, name, uid, TD_STR_EMPTY, 0, &err);
    if (code != TD_OK && code != TD_NOT_FOUND && code != TD_CONFLICT) {
        td_log_line(nodes->log, TD_LOG_ERROR, "pod garbage collection: cannot delete pod",
                    TD_LOG_C("error", err.message));
    }
    return TD_JOB_DONE;
}

static void nodes_orphan_pods(struct td_nodes *nodes, const struct td_node *node)
{
    for (const struct td_bound_pod *pod = node->first; pod; pod = pod->next) {
        /* At the cap of the queue a pod stays, as on a node that is silent. */
        (void)td_queue_add_after(nodes->orphans, pod->key, NODES_QUARANTINE, NULL);
    }
}

/* ---- Observing ---- */

/* The newest revision as a tree, or NULL: it is gone. */
static struct td_json *nodes_newest(struct td_nodes *nodes, struct td_arena *arena,
                                    const struct td_resource *resource, td_str ns, td_str name,
                                    uint64_t *ret_version)
{
    const struct td_stored *stored =
        td_store_get(td_api_store(nodes->api), resource->collection, ns, name);
    struct td_json *object = NULL;
    if (stored &&
        td_json_parse(arena, stored->json, &(struct td_json_options){.copy_strings = true}, &object,
                      NULL) != TD_OK) {
        return NULL;
    }
    *ret_version = stored ? stored->version : 0;
    return object;
}

static uint64_t nodes_version(struct td_nodes *nodes, const struct td_resource *resource, td_str ns,
                              td_str name)
{
    const struct td_stored *stored =
        td_store_get(td_api_store(nodes->api), resource->collection, ns, name);
    return stored ? stored->version : 0;
}

static void nodes_observe_pod(struct td_nodes *nodes, const struct td_resource *resource, td_str ns,
                              td_str name)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    uint64_t version = 0;
    const struct td_json *pod = nodes_newest(nodes, &arena, resource, ns, name, &version);
    td_str key = td_object_key_text(&arena, TD_OBJECT_KEY(ns, name));
    const struct td_bound_pod *before = td_node_index_pod(&nodes->index, key);
    td_str host = before ? td_arena_copy_str(&arena, before->node->name) : TD_STR_EMPTY;
    if (td_node_index_set_pod(&nodes->index, key, version, pod)) {
        const struct td_node *node = td_node_index_node(&nodes->index, host);
        td_scheduler_room(nodes->scheduler);
        if (node) {
            td_kubelet_room(nodes->kubelet, node);
        }
    }
    td_scheduler_pod(nodes->scheduler, key, pod);
    const struct td_bound_pod *after = td_node_index_pod(&nodes->index, key);
    if (host.len > 0 || (after && after->node->is_ours)) {
        td_kubelet_pod(nodes->kubelet, key);
        td_node_taints_pod(nodes->taints, key);
    } else if (after) {
        td_node_taints_pod(nodes->taints, key);
    }
}

static void nodes_run_pods(struct td_nodes *nodes, const struct td_node *node)
{
    for (const struct td_bound_pod *pod = node->first; pod; pod = pod->next) {
        td_kubelet_pod(nodes->kubelet, pod->key);
    }
}

/* The engine shares out what the node offers; of one that is not ours any more, nothing. */
static void nodes_tell_engine(struct td_nodes *nodes, struct td_node *node)
{
    bool is_run = node->exists && node->is_ours;
    double cpu = is_run ? (double)td_node_offers(node, TD_STR("cpu")) : 0;
    double memory = is_run ? (double)td_node_offers(node, TD_STR("memory")) : 0;
    if (!nodes->engine || (cpu == node->reported_cpu && memory == node->reported_memory)) {
        return;
    }
    node->reported_cpu = cpu;
    node->reported_memory = memory;
    td_engine_set_node(nodes->engine, &(struct td_engine_node){
                                          .name = node->name,
                                          .cpu_milli = cpu,
                                          .memory_bytes = memory,
                                          .available_min = TD_NODE_AVAILABLE_MIN,
                                      });
}

/* A node that is gone: its containers are too, and its pods have some time until they are. */
static void nodes_forget(struct td_nodes *nodes, td_str name)
{
    struct td_node *node = td_node_index_node(&nodes->index, name);
    if (!node || !node->exists) {
        return;
    }
    nodes_orphan_pods(nodes, node);
    if (node->is_ours) {
        td_kubelet_stop_node(nodes->kubelet, node);
        node->is_ours = false;
        nodes->index.own_count--;
        nodes_tell_engine(nodes, node);
    }
    (void)td_node_index_set_node(&nodes->index, name, NULL); /* nothing has more room by that */
}

/* What we have to say about the node: that ours are ready, and taints as conditions want them. */
static bool nodes_complete(struct td_nodes *nodes, struct td_arena *arena, struct td_json *object,
                           const struct td_node *node)
{
    const struct td_node_state state = {
        .now = td_api_now(nodes->api),
        .is_pressed = node && node->is_pressed,
    };
    bool is_ours = td_node_is_ours(object);
    bool is_changed =
        is_ours && !(node && node->is_lost) && td_node_object_complete(arena, object, &state);
    if (is_ours ||
        (node && nodes->index.own_count > 0 && td_node_life_watches(nodes->life, node))) {
        is_changed |= td_node_object_follow(arena, object, state.now);
    }
    return is_changed;
}

static void nodes_observe_node(struct td_nodes *nodes, const struct td_resource *resource,
                               td_str name)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    uint64_t version = nodes_version(nodes, resource, TD_STR_EMPTY, name);
    struct td_node *node = td_node_index_node(&nodes->index, name);
    if (version > 0 && node && node->version == version) {
        return; /* nothing of it changed but times, or it was seen before */
    }
    struct td_json *object = nodes_newest(nodes, &arena, resource, TD_STR_EMPTY, name, &version);
    if (!object) {
        nodes_forget(nodes, name);
        return;
    }
    bool was_ours = node && node->exists && node->is_ours;
    if (nodes_complete(nodes, &arena, object, node)) {
        nodes_put(nodes, &arena, resource, object);
    }
    bool has_room = td_node_index_set_node(&nodes->index, name, object);
    node = td_node_index_node(&nodes->index, name);
    if (!node) {
        return; /* at the cap of objects */
    }
    node->version = nodes_version(nodes, resource, TD_STR_EMPTY, name);
    if (was_ours && !node->is_ours) {
        td_kubelet_stop_node(nodes->kubelet, node);
    }
    nodes_tell_engine(nodes, node);
    if (has_room) {
        td_scheduler_room(nodes->scheduler);
        td_kubelet_room(nodes->kubelet, node);
    }
    if (node->is_ours && !was_ours) {
        td_node_report_lease(&nodes->report, node);
        nodes_run_pods(nodes, node);
    }
    td_node_taints_node(nodes->taints, node);
}

static void nodes_observe(const struct td_resource *resource, struct td_stored *before,
                          struct td_stored *after, void *context)
{
    const struct td_stored *stored = after ? after : before;
    if (td_str_equal(resource->collection, TD_STR("nodes"))) {
        nodes_observe_node(context, resource, stored->name);
    } else {
        nodes_observe_pod(context, resource, stored->ns, stored->name);
    }
}

/* ---- What the engine tells ---- */

static void nodes_pressed(void *context, td_str node, double available_bytes)
{
    td_node_pressure_tell(((struct td_nodes *)context)->pressure, node, available_bytes);
}

static void nodes_killed(void *context, struct td_engine_container *container)
{
    td_kubelet_killed(((struct td_nodes *)context)->kubelet, container);
}

static void nodes_finished(void *context, struct td_engine_container *container)
{
    td_kubelet_finished(((struct td_nodes *)context)->kubelet, container);
}

static const struct td_engine_events nodes_events = {
    .killed = nodes_killed,
    .finished = nodes_finished,
    .pressed = nodes_pressed,
};

/* ---- Making them ---- */

static size_t nodes_count(const struct td_nodes_options *options)
{
    size_t count = 0;
    for (size_t i = 0; i < options->size_count; i++) {
        count += (size_t)options->sizes[i].count;
    }
    return count;
}

static int nodes_make(struct td_nodes *nodes, size_t first, const struct td_node_size *size,
                      struct td_error *err)
{
    const struct td_resource *resource = td_api_kind(nodes->api, TD_STR("v1"), TD_STR("Node"));
    for (size_t number = first; number < first + (size_t)size->count; number++) {
        td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
        struct td_json *node = td_node_object_new(&arena, number, size);
        struct td_json *old;
        td_str name = td_json_text(td_json_get(node, TD_STR("metadata")), "name");
        if (td_edit_get(nodes->api, resource, TD_STR_EMPTY, name, &arena, &old, NULL) == TD_OK) {
            continue; /* of the run before this one */
        }
        const struct td_node_state state = {.now = td_api_now(nodes->api), .is_heartbeat = true};
        (void)td_node_object_complete(&arena, node, &state); /* it is new */
        int code = td_edit_put(nodes->api, resource, &arena, node, err);
        if (code != TD_OK) {
            return code;
        }
    }
    return TD_OK;
}

/* Ours from a run with more of them. */
static void nodes_remove_surplus(struct td_nodes *nodes, size_t count)
{
    const struct td_resource *resource = td_api_kind(nodes->api, TD_STR("v1"), TD_STR("Node"));
    for (struct td_map_walk at = {.map = &nodes->index.nodes}; td_map_step(&at);) {
        const struct td_node *node = at.value;
        if (node->exists && node->is_ours && td_node_object_number(node->name) > count) {
            /* What cannot be removed stays and is run. */
            (void)td_edit_delete(nodes->api, resource, TD_STR_EMPTY, node->name, TD_STR_EMPTY,
                                 TD_STR("Background"), -1, NULL);
        }
    }
}

/* The parts, in the order in which they lean on each other. */
static struct td_nodes *nodes_assemble(const struct td_nodes_options *options)
{
    static const td_str collections[] = {TD_STR_INIT("nodes"), TD_STR_INIT("pods")};
    struct td_nodes *nodes = td_alloc_zero(1, sizeof(*nodes));
    struct td_loop *loop = td_api_loop(options->api);
    nodes->api = options->api;
    nodes->log = options->log;
    nodes->engine = options->engine;
    td_node_index_init(&nodes->index);
    td_node_report_init(&nodes->report, options->api, options->log);
    nodes->scheduler = td_scheduler_new(options->api, options->log, &nodes->index);
    nodes->kubelet = td_kubelet_new(&(struct td_kubelet_options){
        .api = options->api,
        .log = options->log,
        .index = &nodes->index,
        .scheduler = nodes->scheduler,
        .engine = options->engine,
    });
    nodes->life = td_node_life_new(options->api, options->log, &nodes->index);
    nodes->taints = td_node_taints_new(options->api, options->log, &nodes->index);
    nodes->pressure = td_node_pressure_new(&(struct td_node_pressure_options){
        .api = options->api,
        .index = &nodes->index,
        .engine = options->engine,
        .kubelet = nodes->kubelet,
        .report = &nodes->report,
    });
    nodes->orphans = td_queue_new(loop, nodes_remove_orphan, nodes, TD_WORK_QUEUE_MAX);
    nodes->timer = td_timer_new(loop, nodes_tick, nodes);
    if (nodes->engine) {
        td_engine_set_events(nodes->engine, &nodes_events, nodes);
    }
    nodes->observer = td_observer_new(options->api, collections, 2, nodes_observe, nodes);
    return nodes;
}

int td_nodes_new(const struct td_nodes_options *options, struct td_nodes **ret,
                 struct td_error *err)
{
    size_t count = nodes_count(options);
    if (count > TD_NODES_OWN_MAX) {
        return td_error_set(err, TD_LIMIT, "%zu nodes: at most %d are supported", count,
                            TD_NODES_OWN_MAX);
    }
    struct td_nodes *nodes = nodes_assemble(options);
    nodes_remove_surplus(nodes, count);
    int code = TD_OK;
    size_t number = 1;
    for (size_t i = 0; i < options->size_count && code == TD_OK; i++) {
        code = nodes_make(nodes, number, &options->sizes[i], err);
        number += (size_t)options->sizes[i].count;
    }
    if (code != TD_OK) {
        td_nodes_free(nodes);
        return code;
    }
    td_timer_set(nodes->timer, TD_NODE_LIFE_EVERY);
    *ret = nodes;
    return TD_OK;
}

static void nodes_leave_engine(struct td_nodes *nodes)
{
    if (nodes->engine) {
        td_engine_set_events(nodes->engine, NULL, NULL);
    }
    for (struct td_map_walk at = {.map = &nodes->index.nodes}; td_map_step(&at);) {
        struct td_node *node = at.value;
        node->is_ours = false;
        nodes_tell_engine(nodes, node);
    }
}

void td_nodes_free(struct td_nodes *nodes)
{
    if (!nodes) {
        return;
    }
    td_observer_free(nodes->observer);
    td_timer_free(nodes->timer);
    td_queue_free(nodes->orphans);
    td_node_pressure_free(nodes->pressure);
    td_node_taints_free(nodes->taints);
    td_node_life_free(nodes->life);
    td_node_report_done(&nodes->report);
    td_kubelet_free(nodes->kubelet);
    nodes_leave_engine(nodes);
    td_scheduler_free(nodes->scheduler);
    td_node_index_done(&nodes->index);
    td_free(nodes);
}

int td_nodes_lose(struct td_nodes *nodes, td_str name, bool is_lost, struct td_error *err)
{
    struct td_node *node = td_node_index_node(&nodes->index, name);
    if (!node || !node->exists || !node->is_ours) {
        return td_error_set(err, TD_NOT_FOUND, "node \"%.*s\" is not run by this process",
                            TD_STR_ARG(name));
    }
    if (node->is_lost == is_lost) {
        return TD_OK;
    }
    node->is_lost = is_lost;
    if (is_lost) {
        node->is_pressed = false;
        td_kubelet_stop_node(nodes->kubelet, node);
        return TD_OK;
    }
    td_node_report_lease(&nodes->report, node);
    td_node_report_status(&nodes->report, node, true);
    td_kubelet_start_node(nodes->kubelet, node);
    return TD_OK;
}
