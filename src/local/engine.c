#include "local/engine.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/loop.h"
#include "base/vec.h"

#define ENGINE_METRICS_EVERY (15 * TD_SECOND)

struct engine_node {
    td_str name; /* owned */
    double cpu_milli;
    double memory_bytes;
    TD_VEC_FIELDS(struct td_engine_container *);
};

struct td_engine_container {
    struct td_body body; /* first: an array of containers is one of bodies */
    struct td_engine *engine;
    struct engine_node *node;
    const struct td_demand *demand; /* NULL: fixed, or nothing */
    struct td_want fixed;
    td_str role;         /* owned */
    td_duration started; /* since the engine's start */
    bool is_ready;
    bool is_over;               /* was told to be killed or finished: waits to be stopped */
    double sampled_cpu_seconds; /* used when the window began */
    struct td_engine_sample sample;
    void *owner;
};

struct td_engine {
    struct td_loop *loop;
    const struct td_demand *demands;
    size_t demand_count;
    size_t *ready_counts; /* of each demand */
    td_duration tick;
    td_duration metrics_every;
    td_duration start; /* steady time */
    td_duration now;   /* since then, of the last tick */
    td_duration sampled;
    struct td_engine_events events;
    void *context;
    struct td_timer *timer;
    TD_VEC_FIELDS(struct engine_node *);
};

static td_str engine_copy(td_str text)
{
    char *copy = td_alloc(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return (td_str){.ptr = copy, .len = text.len};
}

static void engine_free_text(td_str text)
{
    td_free((void *)(uintptr_t)text.ptr);
}

static td_duration engine_now(const struct td_engine *engine)
{
    return td_clock_steady(td_loop_clock(engine->loop)) - engine->start;
}

/* ---- A tick ---- */

static struct td_want engine_want(const struct td_engine_container *container)
{
    const struct td_engine *engine = container->engine;
    const struct td_demand *demand = container->demand;
    if (!demand) {
        return container->fixed;
    }
    const struct td_demand_moment moment = {
        .since = engine->now,
        .age = engine->now - container->started,
        .is_ready = container->is_ready,
        .ready_count = engine->ready_counts[demand - engine->demands],
        .role = container->role,
    };
    return td_demand_at(demand, &moment);
}

static void engine_step_node(struct engine_node *node, td_duration span)
{
    for (size_t i = 0; i < node->count; i++) {
        struct td_want want = engine_want(node->items[i]);
        node->items[i]->body.want_cpu_milli = want.cpu_milli;
        node->items[i]->body.want_memory_bytes = want.memory_bytes;
    }
    /* A container begins with its body, so pointers to the one are pointers to the other. */
    td_physics_step((struct td_body *const *)(void *)node->items, node->count, node->cpu_milli,
                    span);
}

static bool engine_is_finished(const struct td_engine_container *container)
{
    const struct td_demand *demand = container->demand;
    return demand && demand->driver == TD_DEMAND_RUN &&
           container->engine->now - container->started >= demand->run_time;
}

/* Callbacks may stop the container they are about, and start others behind it. */
static void engine_tell_node(struct td_engine *engine, struct engine_node *node)
{
    double used = 0;
    size_t i = 0;
    while (i < node->count) {
        struct td_engine_container *container = node->items[i];
        used += container->body.memory_bytes;
        if (!container->is_over && container->body.is_killed) {
            container->is_over = true;
            engine->events.killed(engine->context, container);
        } else if (!container->is_over && engine_is_finished(container)) {
            container->is_over = true;
            engine->events.finished(engine->context, container);
        }
        i += i < node->count && node->items[i] == container;
    }
    if (used > node->memory_bytes && node->memory_bytes > 0) {
        engine->events.pressed(engine->context, node->name, used - node->memory_bytes);
    }
}

static void engine_sample_all(struct td_engine *engine)
{
    td_time wall = td_clock_wall(td_loop_clock(engine->loop));
    td_duration window = engine->now - engine->sampled;
    for (size_t n = 0; n < engine->count; n++) {
        struct engine_node *node = engine->items[n];
        for (size_t i = 0; i < node->count; i++) {
            struct td_engine_container *c = node->items[i];
            double seconds = (double)window / (double)TD_SECOND;
            bool is_whole = engine->now - c->started >= window;
            if (is_whole) {
                c->sample = (struct td_engine_sample){
                    .at = wall,
                    .window = window,
                    .cpu_milli =
                        (c->body.used_cpu_seconds - c->sampled_cpu_seconds) * 1000 / seconds,
                    .memory_bytes = c->body.memory_bytes,
                };
            }
            c->sampled_cpu_seconds = c->body.used_cpu_seconds;
        }
    }
    engine->sampled = engine->now;
}

static void engine_tick(struct td_timer *timer, void *context)
{
    struct td_engine *engine = context;
    td_duration now = engine_now(engine);
    td_duration span = now - engine->now;
    engine->now = now;
    for (size_t n = 0; span > 0 && n < engine->count; n++) {
        engine_step_node(engine->items[n], span);
    }
    for (size_t n = 0; span > 0 && n < engine->count; n++) {
        engine_tell_node(engine, engine->items[n]);
    }
    if (engine->now - engine->sampled >= engine->metrics_every) {
        engine_sample_all(engine);
    }
    td_timer_set(timer, engine->tick);
}

struct td_engine *td_engine_new(const struct td_engine_options *options)
{
    struct td_engine *engine = td_alloc_zero(1, sizeof(*engine));
    engine->loop = options->loop;
    engine->demands = options->demands;
    engine->demand_count = options->demand_count;
    engine->ready_counts = td_alloc_zero(options->demand_count + 1, sizeof(size_t));
    engine->tick = options->tick > 0 ? options->tick : TD_ENGINE_TICK_MS * TD_MILLISECOND;
    engine->metrics_every =
        options->metrics_every > 0 ? options->metrics_every : ENGINE_METRICS_EVERY;
    engine->start = td_clock_steady(td_loop_clock(options->loop));
    engine->events = options->events;
    engine->context = options->context;
    engine->count_max = TD_ENGINE_NODES_MAX;
    engine->timer = td_timer_new(options->loop, engine_tick, engine);
    td_timer_set(engine->timer, engine->tick);
    return engine;
}

static void engine_node_free(struct engine_node *node)
{
    td_assert(node->count == 0);
    td_vec_done(node);
    engine_free_text(node->name);
    td_free(node);
}

void td_engine_free(struct td_engine *engine)
{
    if (!engine) {
        return;
    }
    for (size_t n = 0; n < engine->count; n++) {
        engine_node_free(engine->items[n]);
    }
    td_vec_done(engine);
    td_timer_free(engine->timer);
    td_free(engine->ready_counts);
    td_free(engine);
}

/* ---- Nodes ---- */

static size_t engine_find_node(const struct td_engine *engine, td_str name)
{
    size_t i = 0;
    while (i < engine->count && !td_str_equal(engine->items[i]->name, name)) {
        i++;
    }
    return i;
}

void td_engine_set_node(struct td_engine *engine, td_str name, double cpu_milli,
                        double memory_bytes)
{
    size_t i = engine_find_node(engine, name);
    if (i == engine->count && cpu_milli > 0) {
        struct engine_node **place = td_vec_push(engine);
        if (!place) {
            return; /* more nodes than can be: their containers want nothing */
        }
        *place = td_alloc_zero(1, sizeof(**place));
        (*place)->name = engine_copy(name);
        (*place)->count_max = TD_ENGINE_CONTAINERS_MAX;
    }
    if (i < engine->count && cpu_milli <= 0 && engine->items[i]->count == 0) {
        engine_node_free(engine->items[i]);
        td_vec_remove(engine, i);
        return;
    }
    if (i < engine->count) {
        engine->items[i]->cpu_milli = cpu_milli;
        engine->items[i]->memory_bytes = memory_bytes;
    }
}

/* ---- Containers ---- */

const struct td_demand *td_engine_demand(const struct td_engine *engine,
                                         const struct td_engine_spec *spec)
{
    for (size_t i = 0; i < engine->demand_count; i++) {
        const struct td_demand *demand = &engine->demands[i];
        bool is_container = demand->container.len > 0
                                ? td_str_equal(demand->container, spec->container)
                                : spec->is_first;
        if (is_container && td_str_equal(demand->kind, spec->workload_kind) &&
            td_str_equal(demand->name, spec->workload_name) && td_str_equal(demand->ns, spec->ns)) {
            return demand;
        }
    }
    return NULL;
}

struct td_engine_container *td_engine_start(struct td_engine *engine,
                                            const struct td_engine_spec *spec)
{
    size_t n = engine_find_node(engine, spec->node);
    if (n == engine->count) {
        return NULL;
    }
    struct td_engine_container **place = td_vec_push(engine->items[n]);
    if (!place) {
        return NULL;
    }
    struct td_engine_container *container = td_alloc_zero(1, sizeof(*container));
    *place = container;
    container->engine = engine;
    container->node = engine->items[n];
    container->demand = spec->has_fixed ? NULL : td_engine_demand(engine, spec);
    container->fixed = spec->has_fixed ? spec->fixed : (struct td_want){.cpu_milli = 0};
    container->role = engine_copy(spec->role);
    container->started = engine_now(engine);
    container->owner = spec->owner;
    if (container->demand) {
        container->body.keeps_memory = container->demand->keeps_memory;
        container->body.is_carried_over = container->demand->is_carried_over;
    }
    td_engine_resize(container, spec->cpu_request_milli, spec->cpu_limit_milli,
                     spec->memory_limit_bytes);
    return container;
}

void td_engine_stop(struct td_engine_container *container)
{
    struct engine_node *node = container->node;
    td_engine_set_ready(container, false);
    for (size_t i = 0; i < node->count; i++) {
        if (node->items[i] == container) {
            td_vec_remove(node, i);
            break;
        }
    }
    engine_free_text(container->role);
    td_free(container);
}

void td_engine_resize(struct td_engine_container *container, int64_t cpu_request_milli,
                      int64_t cpu_limit_milli, int64_t memory_limit_bytes)
{
    container->body.cpu_request_milli = cpu_request_milli;
    container->body.cpu_limit_milli = cpu_limit_milli;
    container->body.memory_limit_bytes = memory_limit_bytes;
}

void td_engine_set_ready(struct td_engine_container *container, bool is_ready)
{
    if (container->is_ready == is_ready) {
        return;
    }
    container->is_ready = is_ready;
    if (container->demand) {
        size_t *count =
            &container->engine->ready_counts[container->demand - container->engine->demands];
        *count = is_ready ? *count + 1 : *count - 1;
    }
}

void td_engine_set_role(struct td_engine_container *container, td_str role)
{
    if (!td_str_equal(container->role, role)) {
        engine_free_text(container->role);
        container->role = engine_copy(role);
    }
}

void td_engine_set_fixed(struct td_engine_container *container, const struct td_want *want)
{
    td_engine_set_ready(container, false); /* leaves the count of its entry */
    container->demand = NULL;
    container->fixed = *want;
}

void *td_engine_owner(const struct td_engine_container *container)
{
    return container->owner;
}

const struct td_body *td_engine_body(const struct td_engine_container *container)
{
    return &container->body;
}

bool td_engine_sample(const struct td_engine_container *container, struct td_engine_sample *ret)
{
    if (container->sample.window == 0) {
        return false;
    }
    *ret = container->sample;
    return true;
}
