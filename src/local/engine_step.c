/*
 * What a node does between two moments. Wants follow from the entries' levels, which hold for the
 * whole interval; physics says what is used; then what was served, summed and found out of memory
 * is noted. Nothing here allocates but the list of those to tell, which keeps its room.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/loop.h"
#include "local/engine_private.h"

#define ENGINE_CORE_MILLI 1000.0 /* what one request can use at once */
#define ENGINE_RHO_MAX 0.99      /* beyond it the queue is counted, not guessed */

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

/* What nobody is there for waits or is dropped. */
static void entry_leave(struct engine_entry *entry, double requests)
{
    if (entry->demand->is_carried_over) {
        entry->waiting += requests;
    } else {
        entry->dropped += requests;
    }
}

void td_engine_settle_entry(struct td_engine *engine, struct engine_entry *entry, td_duration to)
{
    if (entry->settled >= to) {
        return;
    }
    for (size_t i = 0; i < entry->count; i++) {
        td_engine_settle_node(engine, entry->items[i]->pod->node, to);
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
    struct engine_entry *entry = container->entry;
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
    struct engine_entry *entry = container->entry;
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
    struct engine_entry *entry = container->entry;
    struct td_want want = container->fixed;
    if (entry) {
        const struct td_demand *demand = entry->demand;
        bool is_stream = demand->driver == TD_DEMAND_REQUESTS;
        if (is_stream) {
            container_take(container);
        }
        const struct td_demand_moment moment = {
            .age = from - container->started,
            .span = span,
            .startup_time = container->startup_time,
            .warm_age = container->ready_at <= from ? from - container->ready_at : -1,
            .beat = beat,
            .seed = container->seed,
            .request_rate = container->rate,
        };
        want = td_demand_want(demand, &entry->levels[container->role], &moment);
        if (is_stream) {
            container->cost_ms = demand->request_cpu_ms * td_demand_warmth(demand, &moment);
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

static void pod_account(struct td_engine_pod *pod, double seconds)
{
    double wanted = 0;
    double throttled = 0;
    double starved = 0;
    bool is_any_killed = false;
    for (size_t i = 0; i < pod->count; i++) {
        struct td_engine_container *container = pod->items[i];
        const struct td_body *body = &container->body;
        double want = body->want_cpu_milli;
        double reach = body->reach_cpu_milli < want ? body->reach_cpu_milli : want;
        wanted += want;
        throttled += want - reach;
        starved += body->cpu_milli < reach ? reach - body->cpu_milli : 0;
        is_any_killed |= body->is_killed;
        if (container->entry && container->entry->demand->driver == TD_DEMAND_REQUESTS) {
            container_serve(container, seconds);
        }
    }
    double cores = seconds / 1000;
    struct td_engine_workload *totals = &pod->row->totals;
    totals->used_cpu_seconds += pod->group.cpu_milli * cores;
    totals->wanted_cpu_seconds += wanted * cores;
    totals->throttled_cpu_seconds += throttled * cores;
    totals->starved_cpu_seconds += starved * cores;
    totals->used_byte_seconds += pod->group.memory_bytes * seconds;
    totals->requested_cpu_seconds += (double)pod->whole.cpu_request_milli * cores;
    totals->requested_byte_seconds += (double)pod->whole.memory_request_bytes * seconds;
    if (is_any_killed) {
        pod_find_killed(pod);
    }
}

void td_engine_settle_node(struct td_engine *engine, struct engine_node *node, td_duration to)
{
    td_duration from = node->settled;
    td_duration span = to - from;
    (void)engine;
    if (span <= 0) {
        return;
    }
    node->settled = to;
    struct td_series_beat beat = td_series_beat(from + span / 2);
    for (size_t i = 0; i < node->count; i++) {
        struct td_engine_pod *pod = node->items[i];
        pod->group.bodies = (struct td_body **)(void *)pod->items;
        pod->group.count = pod->count;
        for (size_t k = 0; k < pod->count; k++) {
            container_prepare(pod->items[k], from, span, beat);
        }
    }
    td_physics_step((struct td_body_group *const *)(void *)node->items, node->count,
                    node->cpu_milli, span);
    node->used_cpu_milli = 0;
    for (size_t i = 0; i < node->count; i++) {
        node->used_cpu_milli += node->items[i]->group.cpu_milli;
    }
    double seconds = (double)span / (double)TD_SECOND;
    for (size_t i = 0; i < node->count; i++) {
        pod_account(node->items[i], seconds);
    }
}

double td_engine_memory_now(const struct td_engine_container *container, td_duration at)
{
    const struct engine_entry *entry = container->entry;
    if (!entry) {
        return container->fixed.memory_bytes;
    }
    const struct td_demand_moment moment = {
        .age = at - container->started,
        .startup_time = container->startup_time,
        .beat = td_series_beat(at),
        .seed = container->seed,
        .request_rate = container->rate,
    };
    return td_demand_want(entry->demand, &entry->levels[container->role], &moment).memory_bytes;
}

void td_engine_refresh_memory(struct engine_entry *entry, td_duration at)
{
    for (size_t i = 0; i < entry->count; i++) {
        struct td_engine_container *container = entry->items[i];
        struct td_engine_pod *pod = container->pod;
        if (!container->is_dead) {
            container->body.want_memory_bytes = td_engine_memory_now(container, at);
            pod->group.bodies = (struct td_body **)(void *)pod->items;
            pod->group.count = pod->count;
            td_physics_memory(&pod->group);
            pod_find_killed(pod);
        }
    }
}

/* ---- Samples ---- */

static void container_sample(struct td_engine_container *container, td_time wall,
                             td_duration window, size_t sample_max)
{
    const struct td_body *body = &container->body;
    const struct engine_entry *entry = container->entry;
    const struct engine_window *begin = &container->window;
    double seconds = (double)window / (double)TD_SECOND;
    double served = container->served - begin->served;
    struct td_engine_sample sample = {
        .at = wall,
        .window = window,
        .cpu_milli = (body->used_cpu_seconds - begin->used_cpu_seconds) * 1000 / seconds,
        .memory_bytes = body->memory_bytes,
    };
    if (entry && entry->demand->driver == TD_DEMAND_REQUESTS) {
        sample.has_requests = true;
        sample.requests_per_second = served / seconds;
        double answer = container->answer_time - begin->answer_time;
        sample.latency_seconds = served > 0 ? answer / served + td_engine_wait(entry) : 0;
    }
    container->samples[container->sample_count++ % sample_max] = sample;
}

void td_engine_sample_all(struct td_engine *engine, td_duration at)
{
    td_time wall = td_clock_wall(td_loop_clock(engine->loop));
    td_duration window = at - engine->sampled;
    for (size_t n = 0; n < engine->nodes.count; n++) {
        struct engine_node *node = engine->nodes.items[n];
        for (size_t i = 0; i < node->count; i++) {
            struct td_engine_pod *pod = node->items[i];
            for (size_t k = 0; k < pod->count; k++) {
                struct td_engine_container *container = pod->items[k];
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
    }
    engine->sampled = at;
}

/* Whoever comes now waits until those before it were answered. */
double td_engine_wait(const struct engine_entry *entry)
{
    if (entry->waiting <= 0) {
        return 0;
    }
    double most = (double)TD_ENGINE_LATENCY_SECONDS_MAX;
    return entry->waiting < entry->served_rate * most ? entry->waiting / entry->served_rate : most;
}
