/*
 * What a node does between two moments. Wants follow from the entries' levels, which hold for the
 * whole interval; physics says what is used; then what was served, summed and found out of memory
 * is noted. Nothing here allocates but the list of those to tell, which keeps its room.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "local/engine/engine_private.h"

#define ENGINE_CORE_MILLI 1000.0 /* what one request can use at once */
#define ENGINE_RHO_MAX 0.99      /* beyond it the queue is counted, not guessed */
#define ENGINE_LINE_BYTES 64     /* of a cache */
#define ENGINE_HOT_BYTES 320     /* of a container, used in each step */
#define ENGINE_AHEAD 8           /* containers */

/* ---- Streams of requests ---- */

static double entry_weights(struct engine_entry *entry)
{
    if (!entry->is_weighed) {
        entry->weights = 0;
        for (size_t i = 0; i < entry->count; i++) {
            entry->weights += entry->items[i]->is_ready ? entry->items[i]->weight : 0;
        }
        entry->is_weighed = true;
    }
    return entry->weights;
}

/* Requests without a ready pod wait or are dropped. */
static void entry_leave(struct engine_entry *entry, double requests)
{
    if (entry->demand->is_carried_over) {
        entry->waiting += requests;
    } else {
        entry->dropped += requests;
    }
}

void td_engine_settle_entry(struct engine_entry *entry, td_duration to)
{
    if (entry->settled >= to) {
        return;
    }
    for (size_t i = 0; i < entry->count; i++) {
        td_engine_settle_node(entry->items[i]->pod->node, to);
    }
    td_engine_close_entry(entry, to);
}

/* It is one queue: what waits is shared anew whenever all who take from it are at one moment, and
 * in between each one works off its part. */
void td_engine_close_entry(struct engine_entry *entry, td_duration to)
{
    if (entry->settled >= to) {
        return;
    }
    if (entry->demand->driver == TD_DEMAND_REQUESTS) {
        if (entry_weights(entry) <= 0) {
            entry_leave(entry, entry->rate * ((double)(to - entry->settled) / (double)TD_SECOND));
        }
        entry->pool = entry->waiting;
        entry->round++;
    }
    entry->settled = to;
}

/* Its part of what arrives and of what waits. */
static void container_take(struct td_engine_container *container)
{
    struct engine_entry *entry = container->stream;
    double weights = container->is_ready ? entry_weights(entry) : 0;
    double share = weights > 0 ? container->weight / weights : 0;
    container->rate = entry->rate * share;
    if (container->round != entry->round) {
        container->round = entry->round;
        container->offered = entry->pool * share;
    }
}

/* Seconds that an answer takes without waiting: a processor that all requests share. */
static double container_answer_time(const struct td_engine_container *container)
{
    const struct td_body *body = &container->body;
    const struct td_body_group *group = &container->pod->group;
    const struct engine_node *node = container->pod->node;
    double available = node->cpu_milli - node->used_cpu_milli + body->cpu_milli;
    double in_pod = (double)group->cpu_limit_milli - group->cpu_milli + body->cpu_milli;
    if (group->cpu_limit_milli > 0 && in_pod < available) {
        available = in_pod;
    }
    if (body->cpu_limit_milli > 0 && (double)body->cpu_limit_milli < available) {
        available = (double)body->cpu_limit_milli;
    }
    available = available > body->cpu_milli ? available : body->cpu_milli;
    if (available <= 0 || container->cost_ms <= 0) {
        return 0;
    }
    double rho = body->want_cpu_milli / available;
    rho = rho < ENGINE_RHO_MAX ? rho : ENGINE_RHO_MAX;
    double at_once = available < ENGINE_CORE_MILLI ? available : ENGINE_CORE_MILLI;
    return container->cost_ms / at_once / (1 - rho);
}

/* Cpu that was missing is requests that were not answered; what the idle process lacks is not. */
static void container_serve(struct td_engine_container *container, double seconds)
{
    struct engine_entry *entry = container->stream;
    const struct td_body *body = &container->body;
    double arrived = container->rate * seconds;
    double all = arrived + container->offered;
    double full = body->want_cpu_milli;
    if (container->offered > 0) {
        full += container->offered_cpu_seconds * 1000 / seconds; /* in physics' own words */
    }
    double undone = 0;
    if (container->is_dead) {
        undone = all;
    } else if (body->cpu_milli < full && container->cost_ms > 0) {
        undone = (full - body->cpu_milli) * seconds / container->cost_ms;
        undone = undone < all ? undone : all;
    }
    if (entry->demand->is_carried_over) {
        entry->waiting += undone - container->offered;
        entry->waiting = entry->waiting > 0 ? entry->waiting : 0;
        container->offered = undone;
    } else {
        entry->dropped += undone;
    }
    double served = all - undone;
    if (served > 0) {
        double time = served * container_answer_time(container);
        container->served += served;
        container->answer_time += time;
        entry->served += served;
        entry->answer_time += time;
    }
}

/* ---- One node ---- */

static void container_prepare(struct td_engine_container *container, td_duration from,
                              td_duration span, struct td_series_beat beat)
{
    struct td_body *body = &container->body;
    struct td_want want = container->fixed;
    if (container->stream) {
        container_take(container);
    }
    if (container->level) {
        const struct td_demand_moment moment = {
            .age = from - container->started,
            .span = span,
            .startup_time = container->startup_time,
            .warm_age = container->ready_at <= from ? from - container->ready_at : -1,
            .beat = beat,
            .seed = container->seed,
            .request_rate = container->rate,
        };
        want = td_demand_want(container->level, &moment);
        if (container->stream) {
            container->cost_ms =
                container->level->request_cpu_ms * td_demand_warmth(container->level, &moment);
            container->offered_cpu_seconds = container->offered * container->cost_ms / 1000;
            body->waiting_cpu_seconds = container->offered_cpu_seconds;
        }
    }
    if (container->is_dead) {
        want = (struct td_want){.cpu_milli = 0};
        body->memory_bytes = 0;
        body->waiting_cpu_seconds = 0;
    }
    body->want_cpu_milli = want.cpu_milli;
    body->want_memory_bytes = want.memory_bytes;
}

void td_engine_due(struct td_engine *engine, struct td_engine_container *container, bool is_killed)
{
    if (container->is_dead) {
        return;
    }
    struct td_engine_container **place = td_vec_push(&engine->due);
    td_assert(place != NULL); /* each container once, and those are fewer */
    *place = container;
    container->due_place = engine->due.count;
    container->is_dead = true;
    container->is_killed = is_killed;
}

static void pod_find_killed(struct td_engine_pod *pod)
{
    for (size_t i = 0; i < pod->count; i++) {
        if (pod->items[i]->body.is_killed) {
            td_engine_due(pod->engine, pod->items[i], true);
        }
    }
}

/* There is room: a start makes it. */
static void node_gather(struct engine_node *node)
{
    td_vec_reset(&node->bodies);
    for (size_t i = 0; i < node->count; i++) {
        struct td_engine_pod *pod = node->items[i];
        pod->group.bodies = &node->bodies.items[node->bodies.count];
        pod->group.count = pod->count;
        for (size_t k = 0; k < pod->count; k++) {
            struct td_body **place = td_vec_push(&node->bodies);
            td_assert(place != NULL);
            *place = &pod->items[k]->body;
        }
    }
    node->is_stale = false;
    node->has_memory_moved = true;
}

/* A container begins with its body. */
static struct td_engine_container *node_container(const struct engine_node *node, size_t i)
{
    return (struct td_engine_container *)(void *)node->bodies.items[i];
}

static void engine_fetch(const void *piece, size_t bytes)
{
    for (size_t i = 0; piece && i < bytes; i += ENGINE_LINE_BYTES) {
        __builtin_prefetch((const char *)piece + i, 1);
    }
}

/* Those ahead are fetched while one is worked on: there are more than a cache holds, and each is
 * used in one pass a tick. First the container, and what it points to when that has come. */
static void node_fetch(const struct engine_node *node, size_t i)
{
    if (i + ENGINE_AHEAD < node->bodies.count) {
        engine_fetch(node_container(node, i + ENGINE_AHEAD), ENGINE_HOT_BYTES);
    }
    if (i + ENGINE_AHEAD / 2 < node->bodies.count) {
        const struct td_engine_container *container = node_container(node, i + ENGINE_AHEAD / 2);
        engine_fetch(container->stream, 2 * ENGINE_LINE_BYTES);
        engine_fetch(container->level, 2 * ENGINE_LINE_BYTES);
    }
    if (i < node->count) {
        engine_fetch(node->items[i], 2 * ENGINE_LINE_BYTES);
    }
}

static void node_prepare(struct engine_node *node, td_duration from, td_duration span)
{
    struct td_series_beat beat = td_series_beat(from + span / 2);
    for (size_t i = 0; i < node->bodies.count; i++) {
        node_fetch(node, i);
        container_prepare(node_container(node, i), from, span, beat);
    }
}

void td_engine_settle_node(struct engine_node *node, td_duration to)
{
    td_duration from = node->settled;
    td_duration span = to - from;
    if (span <= 0) {
        return;
    }
    node->settled = to;
    if (node->is_stale) {
        node_gather(node);
    }
    node_prepare(node, from, span);
    td_physics_step((struct td_body_group *const *)(void *)node->items, node->count,
                    node->cpu_milli, span);
    double seconds = (double)span / (double)TD_SECOND;
    node->used_cpu_milli = 0;
    node->used_memory_bytes = 0;
    node->has_memory_moved = false;
    for (size_t i = 0; i < node->count; i++) {
        struct td_engine_pod *pod = node->items[i];
        node->used_cpu_milli += pod->group.cpu_milli;
        node->used_memory_bytes += pod->group.memory_bytes;
        pod->used_byte_seconds += pod->group.memory_bytes * seconds;
        if (pod->group.is_killed) {
            pod_find_killed(pod);
        }
    }
    for (size_t i = 0; i < node->bodies.count; i++) {
        struct td_engine_container *container = node_container(node, i);
        if (container->stream) {
            container_serve(container, seconds);
        }
    }
}

double td_engine_memory_now(const struct td_engine_container *container, td_duration at)
{
    if (!container->level) {
        return container->fixed.memory_bytes;
    }
    const struct td_demand_moment moment = {
        .age = at - container->started,
        .startup_time = container->startup_time,
        .beat = td_series_beat(at),
        .seed = container->seed,
        .request_rate = container->rate,
    };
    return td_demand_want(container->level, &moment).memory_bytes;
}

void td_engine_refresh_memory(struct engine_entry *entry, td_duration at)
{
    for (size_t i = 0; i < entry->count; i++) {
        struct td_engine_container *container = entry->items[i];
        struct td_engine_pod *pod = container->pod;
        if (!container->is_dead) {
            if (pod->node->is_stale) {
                node_gather(pod->node);
            }
            container->body.want_memory_bytes = td_engine_memory_now(container, at);
            td_physics_memory(&pod->group);
            pod->node->has_memory_moved = true;
            pod_find_killed(pod);
        }
    }
}

/* ---- Samples ---- */

static void container_sample(struct td_engine_container *container, td_time wall,
                             td_duration window, size_t sample_max)
{
    const struct td_body *body = &container->body;
    const struct engine_entry *stream = container->stream;
    const struct engine_window *begin = &container->window;
    double seconds = (double)window / (double)TD_SECOND;
    double served = container->served - begin->served;
    struct td_engine_sample sample = {
        .at = wall,
        .window = window,
        .cpu_milli = (body->used_cpu_seconds - begin->used_cpu_seconds) * 1000 / seconds,
        .memory_bytes = body->memory_bytes,
    };
    if (stream) {
        sample.has_requests = true;
        sample.requests_per_second = served / seconds;
        double answer = container->answer_time - begin->answer_time;
        sample.latency_seconds = served > 0 ? answer / served + td_engine_wait(stream) : 0;
    }
    container->samples[container->sample_count++ % sample_max] = sample;
}

static void node_sample(struct td_engine *engine, struct engine_node *node, td_time wall,
                        td_duration window)
{
    if (node->is_stale) {
        node_gather(node);
    }
    for (size_t i = 0; i < node->bodies.count; i++) {
        if (i + ENGINE_AHEAD < node->bodies.count) {
            engine_fetch(node_container(node, i + ENGINE_AHEAD),
                         sizeof(struct td_engine_container));
        }
        struct td_engine_container *container = node_container(node, i);
        if (container->started <= engine->sampled) {
            container_sample(container, wall, window, engine->sample_max);
        }
        container->window = (struct engine_window){
            .used_cpu_seconds = container->body.used_cpu_seconds,
            .served = container->served,
            .answer_time = container->answer_time,
        };
    }
}

void td_engine_sample_all(struct td_engine *engine, td_duration at)
{
    td_time wall = td_clock_wall(td_loop_clock(engine->loop));
    td_duration window = at - engine->sampled;
    for (size_t n = 0; n < engine->nodes.count; n++) {
        node_sample(engine, engine->nodes.items[n], wall, window);
    }
    engine->sampled = at;
}

/* A request that arrives now waits until those before it are answered. */
double td_engine_wait(const struct engine_entry *entry)
{
    if (entry->waiting <= 0) {
        return 0;
    }
    double most = (double)TD_ENGINE_LATENCY_SECONDS_MAX;
    return entry->waiting < entry->served_rate * most ? entry->waiting / entry->served_rate : most;
}
