/* Pods and containers: what their owner does with them. */
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "kube/objectkey.h"
#include "local/engine/engine_private.h"

#define ENGINE_LOOK TD_SECOND /* after a change */

#define ENGINE_SMALL_CPU_MILLI 1.0
#define ENGINE_SMALL_MEMORY_BYTES (10.0 * 1024 * 1024)
#define ENGINE_STARTUP TD_SECOND /* of workloads that say nothing, while their starts are slow */

/* ---- Pods ---- */

/* Limits of the pod's own, or the sum of its containers'. Without a limit of one container there is
 * none of the sum. */
static void pod_sum_limits(struct td_engine_pod *pod)
{
    td_engine_tell_row(pod);
    struct td_engine_limits sum = {.cpu_request_milli = 0};
    bool has_cpu = true;
    bool has_memory = true;
    for (size_t i = 0; i < pod->count; i++) {
        const struct td_engine_limits *limits = &pod->items[i]->limits;
        sum.cpu_request_milli += limits->cpu_request_milli;
        sum.cpu_limit_milli += limits->cpu_limit_milli;
        sum.memory_request_bytes += limits->memory_request_bytes;
        sum.memory_limit_bytes += limits->memory_limit_bytes;
        has_cpu = has_cpu && limits->cpu_limit_milli > 0;
        has_memory = has_memory && limits->memory_limit_bytes > 0;
    }
    sum.cpu_limit_milli = has_cpu ? sum.cpu_limit_milli : 0;
    sum.memory_limit_bytes = has_memory ? sum.memory_limit_bytes : 0;
    const struct td_engine_limits *own = &pod->limits;
    pod->whole = (struct td_engine_limits){
        .cpu_request_milli =
            own->cpu_request_milli ? own->cpu_request_milli : sum.cpu_request_milli,
        .cpu_limit_milli = own->cpu_limit_milli ? own->cpu_limit_milli : sum.cpu_limit_milli,
        .memory_request_bytes =
            own->memory_request_bytes ? own->memory_request_bytes : sum.memory_request_bytes,
        .memory_limit_bytes =
            own->memory_limit_bytes ? own->memory_limit_bytes : sum.memory_limit_bytes,
    };
    pod->group.cpu_request_milli = own->cpu_request_milli;
    pod->group.cpu_limit_milli = own->cpu_limit_milli;
    pod->group.memory_limit_bytes = own->memory_limit_bytes;
}

struct td_engine_pod *td_engine_find_pod(const struct td_engine *engine, td_str ns, td_str name)
{
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    return td_map_get(&engine->pods, td_object_key_write(TD_OBJECT_KEY(ns, name), buffer));
}

struct td_engine_pod *td_engine_add_pod(struct td_engine *engine,
                                        const struct td_engine_pod_spec *spec)
{
    td_duration now = td_engine_catch_up(engine);
    struct engine_node *node = td_engine_find_node(engine, spec->node);
    if (!node || engine->pods.count >= engine->pods.count_max ||
        td_engine_find_pod(engine, spec->ns, spec->name)) {
        return NULL;
    }
    td_engine_settle_node(node, now);
    struct td_engine_pod **place = td_vec_push(node);
    td_assert(place != NULL); /* a node may have all pods */
    struct td_engine_pod *pod = td_slab_take(&engine->pod_slab);
    *place = pod;
    char buffer[TD_OBJECT_KEY_BYTES_MAX];
    pod->engine = engine;
    pod->node = node;
    pod->limits = spec->limits;
    pod->owner = spec->owner;
    pod->reported = now;
    pod->key = td_text_copy(td_object_key_write(TD_OBJECT_KEY(spec->ns, spec->name), buffer));
    pod->ns = td_object_key_read(pod->key).namespace;
    pod->name = td_object_key_read(pod->key).name;
    pod->role = td_text_copy(spec->role);
    pod->count_max = TD_ENGINE_CONTAINERS_MAX;
    pod->workload =
        td_engine_workload_of(engine, spec->ns, spec->workload_kind, spec->workload_name);
    int code = td_map_put(&engine->pods, pod->key, pod);
    td_assert(code == TD_OK); /* looked at above */
    td_engine_join_row(pod);
    pod_sum_limits(pod);
    td_engine_arm(engine);
    return pod;
}

void td_engine_remove_pod(struct td_engine_pod *pod)
{
    struct td_engine *engine = pod->engine;
    struct engine_node *node = pod->node;
    td_engine_settle_node(node, td_engine_catch_up(engine));
    while (pod->count > 0) {
        td_engine_stop(pod->items[pod->count - 1]);
    }
    size_t i = 0;
    while (node->items[i] != pod) {
        i++;
    }
    td_vec_remove(node, i);
    node->is_stale = true;
    td_engine_leave_row(pod);
    td_engine_drop_workload(engine, pod->workload);
    (void)td_map_remove(&engine->pods, pod->key); /* it is there */
    td_vec_done(pod);
    td_text_free(pod->key);
    td_text_free(pod->role);
    td_slab_give(&engine->pod_slab, pod);
    if (node->cpu_milli <= 0 && node->count == 0) {
        td_engine_drop_node(engine, node);
    }
    td_engine_arm(engine);
}

void td_engine_resize_pod(struct td_engine_pod *pod, const struct td_engine_limits *limits)
{
    td_engine_settle_node(pod->node, td_engine_catch_up(pod->engine));
    pod->limits = *limits;
    pod_sum_limits(pod);
    td_engine_arm(pod->engine);
}

void *td_engine_pod_owner(const struct td_engine_pod *pod)
{
    return pod->owner;
}

struct td_want td_engine_pod_use(const struct td_engine_pod *pod)
{
    struct td_want use = {.cpu_milli = 0};
    for (size_t i = 0; i < pod->count; i++) {
        use.cpu_milli += pod->items[i]->body.cpu_milli;
        use.memory_bytes += pod->items[i]->body.memory_bytes;
    }
    return use;
}

/* ---- What a container follows ---- */

static void container_set_role(struct td_engine_container *container)
{
    const struct engine_entry *entry = container->entry;
    if (entry) {
        const struct td_demand *demand = entry->demand;
        size_t role = td_demand_role(demand, container->pod->role);
        bool has_weight = container->stream && role < demand->role_count;
        container->level = &entry->levels[role];
        container->weight = has_weight ? demand->roles[role].weight : 1;
    }
}

/* Everything the entry's containers share is settled, and looked at anew afterwards. */
static void container_settle(struct td_engine_container *container)
{
    struct td_engine *engine = container->pod->engine;
    td_duration now = td_engine_catch_up(engine);
    td_engine_settle_node(container->pod->node, now);
    if (container->stream) {
        td_engine_settle_entry(container->stream, now);
        container->stream->is_weighed = false;
    }
}

static void container_join(struct td_engine_container *container, struct engine_entry *entry)
{
    bool is_stream = entry && entry->demand->driver == TD_DEMAND_REQUESTS;
    container->entry = entry;
    container->stream = is_stream ? entry : NULL;
    container->level = NULL;
    container->body.keeps_memory = entry && entry->demand->keeps_memory;
    container->body.is_carried_over = entry && entry->demand->is_carried_over;
    if (entry) {
        struct td_engine_container **place = td_vec_push(entry);
        td_assert(place != NULL); /* an entry may have all containers */
        *place = container;
        container->entry_place = entry->count - 1;
        container_set_role(container);
    }
}

static void container_leave(struct td_engine_container *container)
{
    struct engine_entry *entry = container->entry;
    if (entry) {
        struct td_engine_container *last = entry->items[--entry->count];
        entry->items[container->entry_place] = last;
        last->entry_place = container->entry_place;
        container->entry = NULL;
        container->stream = NULL;
        container->level = NULL;
        container->rate = 0;
        container->offered = 0;
        container->body.waiting_cpu_seconds = 0;
    }
}

void td_engine_set_role(struct td_engine_pod *pod, td_str role)
{
    if (td_str_equal(pod->role, role)) {
        return;
    }
    for (size_t i = 0; i < pod->count; i++) {
        container_settle(pod->items[i]);
    }
    td_engine_settle_node(pod->node, td_engine_catch_up(pod->engine));
    td_str old = pod->role;
    td_engine_leave_row(pod);
    pod->role = td_text_copy(role);
    td_text_free(old);
    td_engine_join_row(pod);
    for (size_t i = 0; i < pod->count; i++) {
        container_set_role(pod->items[i]);
    }
    td_engine_arm(pod->engine);
}

/* ---- Containers ---- */

/* FNV-1a: the same pod has the same noise in every run. */
static uint64_t engine_hash(uint64_t hash, td_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(0x100000001b3);
    }
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static struct td_want container_small_want(const struct td_engine_limits *limits)
{
    double cpu = (double)limits->cpu_limit_milli / 2;
    double memory = (double)limits->memory_limit_bytes / 2;
    return (struct td_want){
        .cpu_milli = cpu > 0 && cpu < ENGINE_SMALL_CPU_MILLI ? cpu : ENGINE_SMALL_CPU_MILLI,
        .memory_bytes =
            memory > 0 && memory < ENGINE_SMALL_MEMORY_BYTES ? memory : ENGINE_SMALL_MEMORY_BYTES,
    };
}

static td_duration container_startup(const struct td_engine_container *container)
{
    double factor = container->pod->workload->slow_factor;
    td_duration written = container->own_entry ? container->own_entry->demand->startup_time : 0;
    if (written <= 0 && factor == 1) {
        return -1;
    }
    double span = (double)(written > 0 ? written : ENGINE_STARTUP) * factor;
    return span < (double)TD_ENGINE_STARTUP_MAX ? (td_duration)span : TD_ENGINE_STARTUP_MAX;
}

td_duration td_engine_done_at(const struct td_engine_container *container)
{
    if (!td_engine_is_task(container)) {
        return INT64_MAX;
    }
    td_duration startup = container->startup_time > 0 ? container->startup_time : 0;
    return container->started + startup + container->entry->demand->run_time;
}

struct td_engine_container *td_engine_container_of(struct engine_moment *moment)
{
    return (struct td_engine_container *)(void *)((char *)moment -
                                                  offsetof(struct td_engine_container, moment));
}

static void container_set_limits(struct td_engine_container *container,
                                 const struct td_engine_limits *limits)
{
    container->limits = *limits;
    container->body.cpu_request_milli = limits->cpu_request_milli;
    container->body.cpu_limit_milli = limits->cpu_limit_milli;
    container->body.memory_limit_bytes = limits->memory_limit_bytes;
    if (!container->own_entry && !container->has_fixed) {
        container->fixed = container_small_want(limits);
    }
    pod_sum_limits(container->pod);
}

/* What it has from the first moment; no container is killed before time has passed. */
static void container_set_memory(struct td_engine_container *container, td_duration now)
{
    struct td_body *body = &container->body;
    double memory = td_engine_memory_now(container, now);
    double limit = (double)body->memory_limit_bytes;
    body->want_memory_bytes = memory;
    body->memory_bytes = limit > 0 && memory > limit ? limit : memory;
    container->pod->node->has_memory_moved = true;
}

static void turn_sooner(td_duration at, td_duration now, td_duration *next)
{
    *next = at > now && at < *next ? at : *next;
}

void td_engine_set_turn(struct td_engine_container *container, td_duration now)
{
    td_duration next = INT64_MAX;
    turn_sooner(container->look, now, &next);
    turn_sooner(container->started + container->startup_time, now, &next);
    if (container->entry && container->ready_at < INT64_MAX) {
        turn_sooner(container->ready_at + container->entry->demand->warmup_time, now, &next);
    }
    turn_sooner(td_engine_done_at(container), now, &next);
    td_engine_moments_set(&container->pod->engine->moments, &container->moment, next);
}

/* What just changed may kill it, and that should not wait for a tick. */
static void container_look_soon(struct td_engine_container *container, td_duration now)
{
    container->look = now + ENGINE_LOOK;
    td_engine_set_turn(container, now);
}

struct td_engine_container *td_engine_start(struct td_engine_pod *pod,
                                            const struct td_engine_spec *spec)
{
    struct td_engine *engine = pod->engine;
    td_duration now = td_engine_catch_up(engine);
    td_engine_settle_node(pod->node, now);
    struct td_engine_container **place =
        engine->container_count < TD_ENGINE_CONTAINERS_MAX ? td_vec_push(pod) : NULL;
    if (!place) {
        return NULL;
    }
    engine->container_count++;
    (void)td_vec_push(&pod->node->bodies); /* room, for when they are gathered */
    pod->node->is_stale = true;
    struct td_engine_container *container = td_slab_take(&engine->container_slab);
    *place = container;
    container->pod = pod;
    container->name = td_text_copy(spec->name);
    container->started = now;
    container->ready_at = INT64_MAX;
    container->moment.kind = ENGINE_CONTAINER_TURNS;
    container->own_entry = td_engine_entry_of(engine, pod, spec);
    container->has_fixed = spec->has_fixed;
    container->fixed = spec->fixed;
    container->startup_time = container_startup(container);
    if (container->own_entry) {
        container->seed =
            container->own_entry->demand->seed ^ engine_hash(engine_hash(0, pod->key), spec->name);
    }
    container_set_limits(container, &spec->limits);
    container_join(container, spec->has_fixed ? NULL : container->own_entry);
    container_set_memory(container, now);
    container_look_soon(container, now);
    if (td_engine_done_at(container) <= now) {
        td_engine_due(engine, container, false);
    }
    td_engine_arm(engine);
    return container;
}

void td_engine_stop(struct td_engine_container *container)
{
    struct td_engine_pod *pod = container->pod;
    struct td_engine *engine = pod->engine;
    td_engine_set_ready(container, false);
    td_engine_settle_node(pod->node, td_engine_catch_up(engine));
    container_leave(container);
    td_engine_moments_drop(&engine->moments, &container->moment);
    if (container->due_place > 0) {
        engine->due.items[container->due_place - 1] = NULL;
    }
    size_t i = 0;
    while (pod->items[i] != container) {
        i++;
    }
    td_engine_tell_row(pod);
    td_vec_remove(pod, i);
    pod->node->is_stale = true;
    pod->node->bodies.count--;
    engine->container_count--;
    pod_sum_limits(pod);
    td_text_free(container->name);
    td_slab_give(&engine->container_slab, container);
    td_engine_arm(engine);
}

void td_engine_resize(struct td_engine_container *container, const struct td_engine_limits *limits)
{
    struct td_engine *engine = container->pod->engine;
    td_duration now = td_engine_catch_up(engine);
    td_engine_settle_node(container->pod->node, now);
    container_set_limits(container, limits);
    container_look_soon(container, now);
    td_engine_arm(engine);
}

void td_engine_set_ready(struct td_engine_container *container, bool is_ready)
{
    if (container->is_ready == is_ready || (is_ready && container->is_dead)) {
        return;
    }
    container_settle(container);
    container->is_ready = is_ready;
    if (container->ready_at == INT64_MAX) {
        container->ready_at = td_engine_since(container->pod->engine);
        td_engine_set_turn(container, container->ready_at);
    }
    container->pod->ready_count += is_ready ? 1 : (size_t)-1;
    td_engine_arm(container->pod->engine);
}

void td_engine_set_fixed(struct td_engine_container *container, const struct td_want *want)
{
    struct td_engine *engine = container->pod->engine;
    struct engine_entry *entry = container->own_entry;
    td_duration now = td_engine_catch_up(engine);
    td_engine_settle_node(container->pod->node, now);
    if (entry) {
        td_engine_settle_entry(entry, now);
        entry->is_weighed = false;
    }
    container_leave(container);
    container->has_fixed = want != NULL;
    container->fixed = want ? *want : container_small_want(&container->limits);
    container_join(container, want ? NULL : entry);
    container_look_soon(container, now);
    td_engine_arm(engine);
}

td_duration td_engine_startup(const struct td_engine_container *container)
{
    return container->startup_time;
}

bool td_engine_is_task(const struct td_engine_container *container)
{
    return container->entry && container->entry->demand->driver == TD_DEMAND_RUN;
}

struct td_engine_pod *td_engine_pod(const struct td_engine_container *container)
{
    return container->pod;
}

td_str td_engine_name(const struct td_engine_container *container)
{
    return container->name;
}

const struct td_body *td_engine_body(const struct td_engine_container *container)
{
    return &container->body;
}

struct td_engine_container *td_engine_find(const struct td_engine_pod *pod, td_str name)
{
    for (size_t i = 0; i < pod->count; i++) {
        if (td_str_equal(pod->items[i]->name, name)) {
            return pod->items[i];
        }
    }
    return NULL;
}

bool td_engine_sample(const struct td_engine_container *container, struct td_engine_sample *ret)
{
    const struct td_engine *engine = container->pod->engine;
    td_time latest = td_clock_wall(td_loop_clock(engine->loop)) - engine->metrics_lag;
    size_t count = container->sample_count;
    for (size_t back = 1; back <= engine->sample_max && back <= count; back++) {
        const struct td_engine_sample *sample =
            &container->samples[(count - back) % engine->sample_max];
        if (sample->at <= latest) {
            *ret = *sample;
            return true;
        }
    }
    return false;
}

const struct td_engine_pod *td_engine_next_pod(const struct td_engine *engine, td_str node,
                                               size_t *position)
{
    const struct engine_node *found = td_engine_find_node(engine, node);
    return found && *position < found->count ? found->items[(*position)++] : NULL;
}

const struct td_engine_container *td_engine_next_container(const struct td_engine_pod *pod,
                                                           size_t *position)
{
    return *position < pod->count ? pod->items[(*position)++] : NULL;
}
