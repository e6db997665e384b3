/*
 * What a world knows of its cluster, kept by one observer: workloads without a controller, their
 * pods, the autoscalers that name them, and nodes. Each change costs what it changes. The kinds of
 * workloads that count are the built-in ones and every custom one with a scale.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "decide/tandem/ownership.h"
#include "kube/meta.h"
#include "kube/quantity/quantity.h"
#include "local/kinds/condition.h"
#include "local/resources/resource.h"
#include "local/workloads/pod_workload.h"
#include "model/pod.h"
#include "sim/world/world_private.h"

/* ---- Texts and keys ---- */

td_str td_world_key(struct td_world *world, td_str ns, td_str kind, td_str name)
{
    return TD_KEY_LINES(world->key, ns, kind, name);
}

/* ---- Workloads ---- */

struct td_world_workload *td_world_find_workload(struct td_world *world, td_str ns, td_str kind,
                                                 td_str name)
{
    return td_map_get(&world->workloads, td_world_key(world, ns, kind, name));
}

/* NULL: there are too many. */
static struct td_world_workload *workload_ensure(struct td_world *world, td_str ns, td_str kind,
                                                 td_str name)
{
    td_str key = td_world_key(world, ns, kind, name);
    struct td_world_workload *workload = td_map_get(&world->workloads, key);
    if (workload) {
        return workload;
    }
    workload = td_alloc_zero(1, sizeof(*workload) + key.len);
    workload->key = td_text_behind(workload + 1, key);
    workload->ns = td_str_slice(workload->key, 0, ns.len);
    workload->kind = td_str_slice(workload->key, ns.len + 1, ns.len + 1 + kind.len);
    workload->name = td_str_slice(workload->key, ns.len + kind.len + 2, key.len);
    workload->replicas = -1;
    if (td_map_put(&world->workloads, workload->key, workload) != TD_OK) {
        td_free(workload);
        return NULL;
    }
    td_world_roles_attach(world, workload);
    return workload;
}

static void workload_free(struct td_world_workload *workload)
{
    td_world_roles_detach(workload);
    for (size_t i = 0; i < workload->part_count; i++) {
        td_text_free(workload->parts[i].role);
        td_text_free(workload->parts[i].decision);
    }
    td_free(workload->parts);
    td_free(workload);
}

struct td_world_part *td_world_part(struct td_world_workload *workload, td_str role)
{
    for (size_t i = 0; i < workload->part_count; i++) {
        if (td_str_equal(workload->parts[i].role, role)) {
            return &workload->parts[i];
        }
    }
    if (workload->part_count == TD_WORLD_PARTS_MAX) {
        return &workload->parts[0]; /* more labels than that are shown together */
    }
    size_t count = workload->part_count + 1;
    workload->parts = td_realloc(workload->parts, count * sizeof(*workload->parts));
    struct td_world_part *part = &workload->parts[workload->part_count++];
    *part = (struct td_world_part){
        .role = td_text_copy(role),
        .decided_at = -1,
        .decision = td_text_copy(TD_STR_EMPTY),
    };
    return part;
}

/* Goes when nothing is left of it. */
static void workload_release(struct td_world *world, struct td_world_workload *workload)
{
    if (!workload->has_object && workload->pod_count == 0 && !workload->scalers) {
        (void)td_map_remove(&world->workloads, workload->key); /* it is there */
        workload_free(workload);
    }
}

static struct td_json *index_parse(struct td_arena *arena, const struct td_stored *stored)
{
    struct td_json *tree;
    return td_json_parse(arena, stored->json, NULL, &tree, NULL) == TD_OK ? tree : NULL;
}

struct td_world_workload *td_world_find_owner(struct td_world *world, td_str api_version, td_str ns,
                                              td_str kind, td_str name)
{
    struct td_world_workload *workload = td_world_find_workload(world, ns, kind, name);
    if (workload) {
        return workload;
    }
    const struct td_resource *resource = td_api_kind(world->api, api_version, kind);
    const struct td_collection *collection =
        resource ? td_store_find(td_api_store(world->api), resource->collection) : NULL;
    const struct td_stored *stored = collection ? td_collection_get(collection, ns, name) : NULL;
    if (!stored) {
        return NULL;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_pod_workload top = td_pod_workload(world->api, &arena, index_parse(&arena, stored));
    return td_world_find_workload(world, ns, top.kind, top.name);
}

static int64_t index_number(const struct td_json *object, const char *path, int64_t fallback)
{
    const struct td_json *node = td_json_get_path(object, path);
    int64_t number;
    return td_json_is(node, TD_JSON_TYPE_NUMBER) && td_json_to_int64(node, &number) ? number
                                                                                    : fallback;
}

static int64_t workload_wish(td_str kind, const struct td_json *object)
{
    if (td_str_equal(kind, TD_STR("DaemonSet"))) {
        return index_number(object, "status.desiredNumberScheduled", 0);
    }
    if (td_str_equal(kind, TD_STR("Job"))) {
        return index_number(object, "status.active", 0);
    }
    return td_str_equal(kind, TD_STR("CronJob")) ? -1 : index_number(object, "spec.replicas", 1);
}

static bool workload_is_pod_level(td_str kind, const struct td_json *object)
{
    const char *path = td_str_equal(kind, TD_STR("Pod")) ? "spec.resources"
                       : td_str_equal(kind, TD_STR("CronJob"))
                           ? "spec.jobTemplate.spec.template.spec.resources"
                           : "spec.template.spec.resources";
    const struct td_json *resources = td_json_get_path(object, path);
    return td_json_is(resources, TD_JSON_TYPE_OBJECT) && resources->count > 0;
}

static void see_workload(struct td_world *world, const struct td_resource *resource,
                         const struct td_stored *before, const struct td_stored *after)
{
    const struct td_stored *stored = after ? after : before;
    struct td_world_workload *workload;
    if (!after) {
        workload = td_world_find_workload(world, stored->ns, resource->kind, stored->name);
        if (workload) {
            workload->has_object = false;
            workload_release(world, workload);
        }
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *object = index_parse(&arena, stored);
    if (td_meta_controller_tree(object)) {
        return; /* its pods are its controller's */
    }
    workload = workload_ensure(world, stored->ns, resource->kind, stored->name);
    if (workload) {
        workload->has_object = true;
        workload->replicas = workload_wish(resource->kind, object);
        workload->is_pod_level = workload_is_pod_level(resource->kind, object);
    }
}

/* ---- Pods ---- */

struct td_world_pod *td_world_find_pod(struct td_world *world, td_str ns, td_str name)
{
    return td_map_get(&world->pods, td_world_key(world, ns, TD_STR_EMPTY, name));
}

static void pod_link(struct td_world_pod *pod, struct td_world_workload *workload)
{
    pod->workload = workload;
    pod->previous = workload->last_pod;
    if (workload->last_pod) {
        workload->last_pod->next = pod;
    } else {
        workload->first_pod = pod;
    }
    workload->last_pod = pod;
    workload->pod_count++;
}

static void pod_unlink(struct td_world_pod *pod)
{
    struct td_world_workload *workload = pod->workload;
    *(pod->previous ? &pod->previous->next : &workload->first_pod) = pod->next;
    *(pod->next ? &pod->next->previous : &workload->last_pod) = pod->previous;
    pod->previous = NULL;
    pod->next = NULL;
    workload->pod_count--;
}

static struct td_world_workload *pod_workload(struct td_world *world, td_str ns,
                                              const struct td_json *object)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_pod_workload top = td_pod_workload(world->api, &arena, object);
    return workload_ensure(world, ns, top.kind, top.name);
}

static struct td_world_pod *pod_new(struct td_world *world, const struct td_stored *stored,
                                    const struct td_json *object)
{
    struct td_world_workload *workload = pod_workload(world, stored->ns, object);
    if (!workload) {
        return NULL;
    }
    td_str key = td_world_key(world, stored->ns, TD_STR_EMPTY, stored->name);
    struct td_world_pod *pod = td_alloc_zero(1, sizeof(*pod) + key.len);
    pod->key = td_text_behind(pod + 1, key);
    pod->ns = td_str_slice(pod->key, 0, stored->ns.len);
    pod->name = td_str_slice(pod->key, stored->ns.len + 2, key.len);
    if (td_map_put(&world->pods, pod->key, pod) != TD_OK) {
        td_free(pod);
        workload_release(world, workload);
        return NULL;
    }
    pod_link(pod, workload);
    return pod;
}

static void pod_free(struct td_world_pod *pod)
{
    td_text_free(pod->role);
    td_free(pod);
}

static void pod_gone(struct td_world *world, struct td_world_pod *pod)
{
    struct td_world_workload *workload = pod->workload;
    world->pending_count -= pod->is_pending;
    world->over_count -= pod->is_over;
    (void)td_map_remove(&world->pods, pod->key); /* it is there */
    pod_unlink(pod);
    pod_free(pod);
    td_world_roles_wake(workload);
    workload_release(world, workload);
}

static void pod_take_role(struct td_world_pod *pod, const struct td_json *object)
{
    const struct td_demand *roles = pod->workload->roles;
    if (!roles) {
        return;
    }
    const struct td_json *labels = td_json_get_path(object, "metadata.labels");
    td_str role = td_json_get_str(labels, roles->role_label, TD_STR_EMPTY);
    if (!td_str_equal(role, pod->role)) {
        td_text_set(&pod->role, role);
    }
}

static void pod_take(struct td_world *world, struct td_world_pod *pod,
                     const struct td_world_pod_facts *facts)
{
    bool is_over = td_pod_phase_is_over(td_pod_phase_from(facts->phase));
    bool is_pending = !is_over && !td_str_equal(facts->phase, TD_STR("Running"));
    world->pending_count += is_pending;
    world->pending_count -= pod->is_pending;
    world->over_count += is_over;
    world->over_count -= pod->is_over;
    if (pod->is_ready && !facts->is_ready) {
        pod->unready_since = td_engine_since(world->engine);
    }
    pod->is_pending = is_pending;
    pod->is_over = is_over;
    pod->is_ready = facts->is_ready;
    pod->is_going = is_over || facts->is_deleting;
    pod->is_evicted = facts->is_evicted;
    pod->restarts = facts->restarts;
    pod->kill_stamp = facts->kill_stamp;
    pod->size_stamp = facts->size_stamp;
}

static void see_pod(struct td_world *world, const struct td_resource *resource,
                    const struct td_stored *before, const struct td_stored *after)
{
    const struct td_stored *stored = after ? after : before;
    struct td_world_pod *pod = td_world_find_pod(world, stored->ns, stored->name);
    (void)resource;
    if (!after) {
        if (pod) {
            pod_gone(world, pod);
        }
        return;
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *object = index_parse(&arena, after);
    struct td_world_pod_facts facts = td_world_pod_read(object);
    if (!pod) {
        pod = pod_new(world, after, object);
        if (!pod) {
            return;
        }
        pod->unready_since = td_engine_since(world->engine);
    } else {
        td_world_see_pod(world, pod, &facts, before, object);
    }
    pod_take_role(pod, object);
    pod_take(world, pod, &facts);
    if (td_str_equal(pod->workload->kind, TD_STR("Pod"))) { /* a pod without a controller */
        pod->workload->replicas = pod->is_over ? 0 : 1;
        pod->workload->is_pod_level = workload_is_pod_level(pod->workload->kind, object);
    }
    td_world_roles_wake(pod->workload);
}

/* ---- Autoscalers ---- */

static void scaler_free(struct td_world_scaler *scaler)
{
    td_arena_done(&scaler->arena);
    td_free(scaler);
}

static void scaler_unlink(struct td_world *world, struct td_world_scaler *scaler)
{
    struct td_world_workload *workload = scaler->workload;
    struct td_world_scaler **at = &workload->scalers;
    while (*at != scaler) {
        at = &(*at)->next;
    }
    *at = scaler->next;
    workload_release(world, workload);
}

/* Kept in order: kinds first, then names. */
static void scaler_link(struct td_world_scaler *scaler, struct td_world_workload *workload)
{
    struct td_world_scaler **at = &workload->scalers;
    while (*at && ((*at)->kind < scaler->kind || ((*at)->kind == scaler->kind &&
                                                  td_str_compare((*at)->name, scaler->name) < 0))) {
        at = &(*at)->next;
    }
    scaler->workload = workload;
    scaler->next = *at;
    *at = scaler;
}

static void scaler_remove(struct td_world *world, struct td_world_scaler *scaler)
{
    (void)td_map_remove(&world->scalers, scaler->key); /* it is there */
    scaler_unlink(world, scaler);
    scaler_free(scaler);
}

static void scaler_add(struct td_world *world, const struct td_stored *stored, td_str key,
                       enum td_world_scaler_kind kind)
{
    struct td_world_scaler *scaler = td_alloc_zero(1, sizeof(*scaler) + key.len);
    scaler->key = td_text_behind(scaler + 1, key);
    scaler->name = td_str_slice(scaler->key, key.len - stored->name.len, key.len);
    scaler->kind = kind;
    td_arena_init(&scaler->arena, TD_TREE_ARENA_BYTES_MAX);
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *object = index_parse(&arena, stored);
    struct td_ownership_object read;
    struct td_world_workload *workload =
        td_ownership_read(object, &read)
            ? workload_ensure(world, stored->ns, read.target.kind, read.target.name)
            : NULL;
    if (!workload) {
        scaler_free(scaler);
        return;
    }
    scaler_link(scaler, workload);
    scaler->advice = td_world_read_advice(kind, object);
    const struct td_json *selector =
        kind == TD_WORLD_VPA ? td_json_get_path(object, "spec.selector") : NULL;
    scaler->selector = selector ? td_json_copy(&scaler->arena, selector, true) : NULL;
    if (td_map_put(&world->scalers, scaler->key, scaler) != TD_OK) {
        scaler_unlink(world, scaler);
        scaler_free(scaler);
    }
}

static void see_scaler(struct td_world *world, const struct td_resource *resource,
                       const struct td_stored *before, const struct td_stored *after)
{
    static const struct {
        td_str kind;
        enum td_world_scaler_kind rank;
    } kinds[] = {
        {TD_STR_INIT("Hvpa"), TD_WORLD_HVPA},
        {TD_STR_INIT("HorizontalPodAutoscaler"), TD_WORLD_HPA},
        {TD_STR_INIT("VerticalPodAutoscaler"), TD_WORLD_VPA},
    };
    const struct td_stored *stored = after ? after : before;
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_str key =
        td_arena_copy_str(&arena, td_world_key(world, resource->kind, stored->ns, stored->name));
    struct td_world_scaler *old = td_map_get(&world->scalers, key);
    if (old) {
        scaler_remove(world, old);
    }
    for (size_t i = 0; after && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (td_str_equal(resource->kind, kinds[i].kind)) {
            scaler_add(world, after, key, kinds[i].rank);
        }
    }
}

/* ---- Nodes ---- */

static double node_amount(struct td_arena *arena, const struct td_json *node, const char *path,
                          double factor)
{
    const struct td_json *value = td_json_get_path(node, path);
    struct td_quantity quantity;
    return value && td_quantity_from_json(arena, value, &quantity, NULL) == TD_OK
               ? td_quantity_to_double(&quantity) * factor
               : 0;
}

static void node_count(struct td_world *world, const struct td_world_node *node, double sign)
{
    world->ready_node_count += sign > 0 ? node->is_ready : 0;
    world->ready_node_count -= sign < 0 ? node->is_ready : 0;
    world->cpu_capacity_milli += sign * node->cpu_milli;
    world->memory_capacity_bytes += sign * node->memory_bytes;
}

static void see_node(struct td_world *world, const struct td_resource *resource,
                     const struct td_stored *before, const struct td_stored *after)
{
    const struct td_stored *stored = after ? after : before;
    struct td_world_node *node = td_map_get(&world->nodes, stored->name);
    (void)resource;
    if (node) {
        node_count(world, node, -1);
    }
    if (!after) {
        (void)td_map_remove(&world->nodes, stored->name); /* or it was never known */
        td_free(node);
        return;
    }
    if (!node) {
        node = td_alloc_zero(1, sizeof(*node) + stored->name.len);
        node->name = td_text_behind(node + 1, stored->name);
        if (td_map_put(&world->nodes, node->name, node) != TD_OK) {
            td_free(node);
            return;
        }
    }
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *object = index_parse(&arena, after);
    node->is_ready =
        td_condition_is(td_json_get(object, TD_STR("status")), TD_STR("Ready"), TD_STR("True"));
    node->cpu_milli = node_amount(&arena, object, "status.capacity.cpu", 1000);
    node->memory_bytes = node_amount(&arena, object, "status.capacity.memory", 1);
    node_count(world, node, 1);
}

/* ---- The observer ---- */

static void see_event(struct td_world *world, const struct td_resource *resource,
                      const struct td_stored *before, const struct td_stored *after)
{
    (void)resource;
    (void)before;
    if (after && after->version > world->event_version) {
        world->event_version = after->version;
        if (world->is_started) {
            td_world_see_event(world, after);
        }
    }
}

typedef void (*index_fn)(struct td_world *world, const struct td_resource *resource,
                         const struct td_stored *before, const struct td_stored *after);

static index_fn index_find(const struct td_resource *resource)
{
    static const struct {
        td_str collection;
        index_fn fn;
    } rows[] = {
        {TD_STR_INIT("pods"), see_pod},
        {TD_STR_INIT("events"), see_event},
        {TD_STR_INIT("nodes"), see_node},
        {TD_STR_INIT("deployments.apps"), see_workload},
        {TD_STR_INIT("statefulsets.apps"), see_workload},
        {TD_STR_INIT("replicasets.apps"), see_workload},
        {TD_STR_INIT("daemonsets.apps"), see_workload},
        {TD_STR_INIT("jobs.batch"), see_workload},
        {TD_STR_INIT("cronjobs.batch"), see_workload},
        {TD_STR_INIT("replicationcontrollers"), see_workload},
        {TD_STR_INIT("horizontalpodautoscalers.autoscaling"), see_scaler},
        {TD_STR_INIT("verticalpodautoscalers.autoscaling.k8s.io"), see_scaler},
        {TD_STR_INIT("horizontalpodautoscalers.autoscaling.tandem.dev"), see_scaler},
        {TD_STR_INIT("hvpas.autoscaling.k8s.io"), see_scaler},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (td_str_equal(resource->collection, rows[i].collection)) {
            return rows[i].fn;
        }
    }
    return resource->custom && (resource->subresources & TD_SUB_SCALE) != 0 ? see_workload : NULL;
}

static void index_observe(const struct td_resource *resource, struct td_stored *before,
                          struct td_stored *after, void *context)
{
    index_fn fn = index_find(resource);
    if (fn) {
        fn(context, resource, before, after);
    }
}

static void index_clear(struct td_world *world)
{
    for (struct td_map_walk at = {.map = &world->pods}; td_map_step(&at);) {
        pod_free(at.value);
    }
    for (struct td_map_walk at = {.map = &world->scalers}; td_map_step(&at);) {
        scaler_free(at.value);
    }
    for (struct td_map_walk at = {.map = &world->nodes}; td_map_step(&at);) {
        td_free(at.value);
    }
    for (struct td_map_walk at = {.map = &world->workloads}; td_map_step(&at);) {
        workload_free(at.value);
    }
    td_map_reset(&world->pods);
    td_map_reset(&world->scalers);
    td_map_reset(&world->nodes);
    td_map_reset(&world->workloads);
    world->pending_count = 0;
    world->over_count = 0;
    world->ready_node_count = 0;
    world->cpu_capacity_milli = 0;
    world->memory_capacity_bytes = 0;
}

/* Deletions may be among what was missed: everything is learnt anew. */
static void index_missed(void *context)
{
    index_clear(context);
}

static void index_add_entries(struct td_world *world)
{
    const struct td_scenario *scenario = world->scenario;
    for (size_t i = 0; scenario && i < scenario->demand_count; i++) {
        const struct td_demand *demand = &scenario->demands[i];
        td_str key = td_world_key(world, demand->ns, demand->kind, demand->name);
        bool has_roles = demand->role_label.len > 0 && demand->role_count > 0;
        if (has_roles && !td_map_has(&world->role_entries, key)) {
            key = td_arena_copy_str(&world->arena, key);
            (void)td_map_put(&world->role_entries, key, &world->flows[i]); /* capped below */
        }
        if (demand->driver == TD_DEMAND_REQUESTS && !td_map_has(&world->flow_entries, key)) {
            key = td_arena_copy_str(&world->arena, key);
            (void)td_map_put(&world->flow_entries, key, &world->flows[i]); /* the same */
        }
    }
}

void td_world_index_start(struct td_world *world)
{
    td_map_init(&world->role_entries, TD_WORLD_ENTRIES_MAX);
    td_map_init(&world->flow_entries, TD_WORLD_ENTRIES_MAX);
    td_map_init(&world->workloads, TD_WORLD_ENTRIES_MAX);
    td_map_init(&world->pods, TD_WORLD_ENTRIES_MAX);
    td_map_init(&world->scalers, TD_WORLD_ENTRIES_MAX);
    td_map_init(&world->nodes, TD_WORLD_ENTRIES_MAX);
    index_add_entries(world);
    world->observer = td_observer_new(world->api, NULL, 0, index_observe, world);
    td_observer_set_missed(world->observer, index_missed);
    world->is_started = true;
}

void td_world_index_done(struct td_world *world)
{
    td_observer_free(world->observer);
    index_clear(world);
    td_map_done(&world->role_entries);
    td_map_done(&world->flow_entries);
    td_map_done(&world->workloads);
    td_map_done(&world->pods);
    td_map_done(&world->scalers);
    td_map_done(&world->nodes);
}
