/*
 * Time goes on in three ways: ticks, at which every node is settled and every level is worked out
 * anew; moments, at which one entry jumps or one container turns (is started up, is done) and only
 * the nodes it touches are settled; and samples. One timer is set to whatever comes first. When the
 * machine is late, moments that passed are made up for in their order, each at its own time, so
 * that steps stay exact. Owners are told from the timer alone, never from inside a call of theirs.
 */
#include "local/engine/engine.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/loop.h"
#include "base/text.h"
#include "local/engine/engine_private.h"

#define ENGINE_METRICS_EVERY (15 * TD_SECOND)

td_duration td_engine_since(const struct td_engine *engine)
{
    return td_clock_steady(td_loop_clock(engine->loop)) - engine->start;
}

/* ---- Levels ---- */

static void entry_set_memory(struct engine_entry *entry, td_duration at)
{
    bool has_level = entry->demand->driver != TD_DEMAND_REQUESTS;
    for (size_t i = 0; has_level && i <= entry->demand->role_count; i++) {
        td_demand_memory_level(entry->demand, i, at, &entry->levels[i]);
    }
}

/* What is smooth is taken in the middle of the interval that begins now: of a straight line that is
 * the mean. */
static void entry_set_cpu(struct td_engine *engine, struct engine_entry *entry, td_duration from)
{
    const struct td_demand *demand = entry->demand;
    td_duration to = engine->next_tick;
    if (entry->moment.place > 0 && entry->moment.at < to) {
        to = entry->moment.at;
    }
    td_duration middle = from + (to > from ? (to - from) / 2 : 0);
    if (demand->driver == TD_DEMAND_REQUESTS) {
        entry->rate = demand->has_source
                          ? engine->entries[demand->source].served_rate * demand->source_times
                          : td_series_at(&demand->requests, middle, demand->seed) * engine->load;
        return;
    }
    for (size_t i = 0; i <= demand->role_count; i++) {
        td_demand_cpu_level(demand, i, middle, &entry->levels[i]);
        entry->levels[i].cpu_milli *= engine->load;
    }
}

void td_engine_set_load(struct td_engine *engine, double factor)
{
    td_duration now = td_engine_since(engine);
    engine->load = factor;
    for (size_t i = 0; i < engine->entry_count; i++) {
        td_engine_settle_entry(&engine->entries[i], now);
        entry_set_cpu(engine, &engine->entries[i], now);
    }
}

double td_engine_load(const struct td_engine *engine)
{
    return engine->load;
}

/* ---- Moments ---- */

static void entry_set_jump(struct td_engine *engine, struct engine_entry *entry, td_duration after)
{
    td_duration at = td_demand_next_jump(entry->demand, after);
    td_duration soonest = after + TD_ENGINE_JUMP_MIN_US * TD_MICROSECOND;
    td_engine_moments_set(&engine->moments, &entry->moment, at > soonest ? at : soonest);
}

static void entry_jump(struct td_engine *engine, struct engine_entry *entry, td_duration at)
{
    entry_set_jump(engine, entry, at);
    entry_set_memory(entry, at);
    td_engine_settle_entry(entry, at);
    entry_set_cpu(engine, entry, at);
    if (entry->demand->driver != TD_DEMAND_REQUESTS) {
        td_engine_refresh_memory(entry, at);
    }
}

/* Started up, warm, or done. */
static void container_turn(struct td_engine *engine, struct td_engine_container *container,
                           td_duration at)
{
    td_engine_settle_node(container->pod->node, at);
    td_engine_set_turn(container, at);
    if (td_engine_done_at(container) <= at) {
        td_engine_due(engine, container, false);
    }
}

td_duration td_engine_catch_up(struct td_engine *engine)
{
    td_duration now = td_engine_since(engine);
    struct engine_moment *moment;
    while ((moment = td_engine_moments_first(&engine->moments)) != NULL && moment->at <= now) {
        if (moment->kind == ENGINE_ENTRY_JUMPS) {
            entry_jump(engine, (struct engine_entry *)(void *)moment, moment->at);
        } else {
            container_turn(engine, td_engine_container_of(moment), moment->at);
        }
    }
    return now;
}

/* ---- Ticks ---- */

static void entry_count_tick(struct engine_entry *entry, double seconds)
{
    double served = entry->served - entry->tick_served;
    double answer = entry->answer_time - entry->tick_answer;
    entry->served_rate = served / seconds;
    entry->answer_mean = served > 0 ? answer / served : 0;
    entry->tick_served = entry->served;
    entry->tick_answer = entry->answer_time;
}

static void engine_settle_nodes(struct td_engine *engine, td_duration to)
{
    for (size_t i = 0; i < engine->nodes.count; i++) {
        td_engine_settle_node(engine->nodes.items[i], to);
    }
}

static void engine_tick(struct td_engine *engine, td_duration now)
{
    td_duration span = now - engine->ticked;
    engine->ticked = now;
    engine->next_tick = now - now % engine->tick + engine->tick;
    for (size_t i = 0; i < engine->entry_count; i++) {
        if (!engine->entries[i].is_steady) {
            entry_set_memory(&engine->entries[i], now);
        }
    }
    engine_settle_nodes(engine, now);
    for (size_t i = 0; i < engine->entry_count && span > 0; i++) {
        if (engine->entries[i].demand->driver == TD_DEMAND_REQUESTS) {
            td_engine_close_entry(&engine->entries[i], now);
            entry_count_tick(&engine->entries[i], (double)span / (double)TD_SECOND);
        }
    }
    for (size_t i = 0; i < engine->entry_count; i++) {
        if (!engine->entries[i].is_steady) {
            entry_set_cpu(engine, &engine->entries[i], now);
        }
    }
}

static struct td_want node_use(const struct engine_node *node)
{
    struct td_want use = {.cpu_milli = 0};
    for (size_t i = 0; i < node->count; i++) {
        struct td_want pod = td_engine_pod_use(node->items[i]);
        use.cpu_milli += pod.cpu_milli;
        use.memory_bytes += pod.memory_bytes;
    }
    return use;
}

static double node_used_memory(const struct engine_node *node)
{
    bool is_known = !node->is_stale && !node->has_memory_moved;
    return is_known ? node->used_memory_bytes : node_use(node).memory_bytes;
}

/* Owners may do anything, so each node is looked up again by its place. */
static void engine_tell_pressed(struct td_engine *engine)
{
    for (size_t i = 0; i < engine->nodes.count && engine->events.pressed; i++) {
        struct engine_node *node = engine->nodes.items[i];
        if (node->memory_bytes > 0 && node->count > 0) {
            double available = node->memory_bytes - node_used_memory(node);
            if (available < node->available_min) {
                engine->events.pressed(engine->context, node->name, available);
            }
        }
    }
}

/* Those that become due meanwhile are told the next time, which is at once. */
static void engine_tell_due(struct td_engine *engine)
{
    size_t count = engine->due.count;
    for (size_t i = 0; i < count; i++) {
        struct td_engine_container *container = engine->due.items[i];
        if (!container) {
            continue;
        }
        container->due_place = 0;
        engine->due.items[i] = NULL;
        td_engine_set_ready(container, false);
        if (container->is_killed) {
            container->pod->row->kill_count++;
        }
        void (*tell)(void *, struct td_engine_container *) =
            container->is_killed ? engine->events.killed : engine->events.finished;
        if (tell) {
            tell(engine->context, container);
        }
    }
    size_t rest = 0;
    for (size_t i = count; i < engine->due.count; i++) {
        if (engine->due.items[i]) {
            engine->due.items[rest++] = engine->due.items[i];
            engine->due.items[rest - 1]->due_place = rest;
        }
    }
    engine->due.count = rest;
}

static void engine_timer(struct td_timer *timer, void *context)
{
    struct td_engine *engine = context;
    (void)timer;
    engine->armed = -1;
    td_duration now = td_engine_catch_up(engine);
    bool is_tick = now >= engine->next_tick;
    if (is_tick) {
        engine_tick(engine, now);
    }
    if (now >= engine->next_sample) {
        engine_settle_nodes(engine, now);
        td_engine_sample_all(engine, now);
        engine->next_sample = now - now % engine->metrics_every + engine->metrics_every;
    }
    engine_tell_due(engine);
    if (is_tick) {
        engine_tell_pressed(engine);
    }
    td_engine_arm(engine);
}

/* Without pods and entries nothing happens, and a loop may end. */
void td_engine_arm(struct td_engine *engine)
{
    if (engine->pods.count == 0 && engine->entry_count == 0) {
        td_timer_stop(engine->timer);
        engine->armed = -1;
        return;
    }
    td_duration at =
        engine->next_tick < engine->next_sample ? engine->next_tick : engine->next_sample;
    const struct engine_moment *moment = td_engine_moments_first(&engine->moments);
    at = moment && moment->at < at ? moment->at : at;
    at = engine->due.count > 0 ? 0 : at;
    if (at != engine->armed) {
        td_duration now = td_engine_since(engine);
        td_timer_set(engine->timer, at > now ? at - now : 0);
        engine->armed = at;
    }
}

/* ---- Life ---- */

static void engine_add_entry(struct td_engine *engine, const struct td_demand *demand,
                             struct engine_entry *entry)
{
    td_assert(!demand->has_source || demand->source < engine->entry_count);
    entry->demand = demand;
    entry->count_max = TD_ENGINE_CONTAINERS_MAX;
    for (size_t i = 0; i <= demand->role_count; i++) {
        td_demand_level_init(demand, &entry->levels[i]);
    }
    entry->is_steady = td_demand_is_steady(demand);
    entry->moment.kind = ENGINE_ENTRY_JUMPS;
    entry_set_jump(engine, entry, 0);
    entry_set_memory(entry, 0);
    entry_set_cpu(engine, entry, 0);
}

static void engine_set_metrics(struct td_engine *engine, const struct td_engine_options *options)
{
    engine->metrics_every =
        options->metrics_every > 0 ? options->metrics_every : ENGINE_METRICS_EVERY;
    td_duration lag_max = engine->metrics_every * (td_duration)(TD_ENGINE_SAMPLES_MAX - 1);
    engine->metrics_lag = options->metrics_lag > 0 ? options->metrics_lag : 0;
    engine->metrics_lag = engine->metrics_lag < lag_max ? engine->metrics_lag : lag_max;
    engine->load = 1;
    engine->sample_max =
        (size_t)((engine->metrics_lag + engine->metrics_every - 1) / engine->metrics_every) + 1;
    engine->next_sample = engine->metrics_every;
}

struct td_engine *td_engine_new(const struct td_engine_options *options)
{
    td_assert(options->demand_count <= TD_ENGINE_ENTRIES_MAX);
    struct td_engine *engine = td_alloc_zero(1, sizeof(*engine));
    engine->loop = options->loop;
    engine->start = td_clock_steady(td_loop_clock(options->loop));
    engine->tick = options->tick > 0 ? options->tick : TD_ENGINE_TICK_MS * TD_MILLISECOND;
    engine->next_tick = engine->tick;
    engine->armed = -1;
    engine_set_metrics(engine, options);
    td_slab_init(&engine->pod_slab, sizeof(struct td_engine_pod));
    td_slab_init(&engine->container_slab, sizeof(struct td_engine_container) +
                                              engine->sample_max * sizeof(struct td_engine_sample));
    engine->timer = td_timer_new(options->loop, engine_timer, engine);
    engine->nodes.count_max = TD_ENGINE_NODES_MAX;
    engine->due.count_max = TD_ENGINE_CONTAINERS_MAX;
    td_map_init(&engine->entry_map, TD_ENGINE_ENTRIES_MAX);
    td_map_init(&engine->node_map, TD_ENGINE_NODES_MAX);
    td_map_init(&engine->pods, TD_ENGINE_PODS_MAX);
    td_map_init(&engine->workloads, TD_ENGINE_ENTRIES_MAX + 2 * TD_ENGINE_PODS_MAX);
    td_map_init(&engine->rows, TD_ENGINE_ROWS_MAX);
    td_engine_moments_init(&engine->moments);
    engine->entry_count = options->demand_count;
    engine->entries = td_alloc_zero(options->demand_count + 1, sizeof(*engine->entries));
    size_t level_count = 0;
    for (size_t i = 0; i < options->demand_count; i++) {
        level_count += options->demands[i].role_count + 1;
    }
    engine->levels = td_alloc_zero(level_count + 1, sizeof(*engine->levels));
    level_count = 0;
    for (size_t i = 0; i < options->demand_count; i++) {
        engine->entries[i].levels = &engine->levels[level_count];
        engine_add_entry(engine, &options->demands[i], &engine->entries[i]);
        level_count += options->demands[i].role_count + 1;
    }
    td_engine_index_entries(engine);
    td_engine_arm(engine);
    return engine;
}

void td_engine_free(struct td_engine *engine)
{
    if (!engine) {
        return;
    }
    td_assert(engine->pods.count == 0);
    while (engine->nodes.count > 0) {
        td_engine_drop_node(engine, engine->nodes.items[engine->nodes.count - 1]);
    }
    td_vec_done(&engine->nodes);
    td_vec_done(&engine->due);
    td_engine_free_rows(engine);
    for (size_t i = 0; i < engine->entry_count; i++) {
        td_vec_done(&engine->entries[i]);
        td_text_free(engine->entries[i].key);
    }
    td_free(engine->entries);
    td_free(engine->levels);
    td_slab_done(&engine->pod_slab);
    td_slab_done(&engine->container_slab);
    td_map_done(&engine->node_map);
    td_map_done(&engine->pods);
    td_engine_moments_done(&engine->moments);
    td_timer_free(engine->timer);
    td_free(engine);
}

void td_engine_set_events(struct td_engine *engine, const struct td_engine_events *events,
                          void *context)
{
    engine->events = events ? *events : (struct td_engine_events){.killed = NULL};
    engine->context = context;
}

/* ---- Nodes ---- */

struct engine_node *td_engine_find_node(const struct td_engine *engine, td_str name)
{
    return td_map_get(&engine->node_map, name);
}

void td_engine_drop_node(struct td_engine *engine, struct engine_node *node)
{
    td_assert(node->count == 0);
    size_t i = 0;
    while (engine->nodes.items[i] != node) {
        i++;
    }
    td_vec_remove(&engine->nodes, i);
    (void)td_map_remove(&engine->node_map, node->name); /* it is there */
    td_vec_done(node);
    td_vec_done(&node->bodies);
    td_text_free(node->name);
    td_free(node);
}

static struct engine_node *engine_add_node(struct td_engine *engine, td_str name)
{
    struct engine_node **place = td_vec_push(&engine->nodes);
    if (!place) {
        return NULL; /* more nodes than can be: pods on it are not run */
    }
    struct engine_node *node = td_alloc_zero(1, sizeof(*node));
    *place = node;
    node->name = td_text_copy(name);
    node->count_max = TD_ENGINE_PODS_MAX;
    node->bodies.count_max = TD_ENGINE_CONTAINERS_MAX;
    node->settled = td_engine_since(engine);
    int code = td_map_put(&engine->node_map, node->name, node);
    td_assert(code == TD_OK); /* as many as places */
    return node;
}

void td_engine_set_node(struct td_engine *engine, const struct td_engine_node *node)
{
    td_duration now = td_engine_catch_up(engine);
    struct engine_node *found = td_engine_find_node(engine, node->name);
    if (!found && node->cpu_milli > 0) {
        found = engine_add_node(engine, node->name);
    }
    if (!found) {
        return;
    }
    td_engine_settle_node(found, now);
    found->cpu_milli = node->cpu_milli > 0 ? node->cpu_milli : 0;
    found->memory_bytes = node->memory_bytes;
    found->available_min = node->available_min;
    if (found->cpu_milli <= 0 && found->count == 0) {
        td_engine_drop_node(engine, found);
    }
    td_engine_arm(engine);
}

bool td_engine_node_use(const struct td_engine *engine, td_str node, struct td_want *ret)
{
    const struct engine_node *found = td_engine_find_node(engine, node);
    if (!found) {
        return false;
    }
    *ret = node_use(found);
    return true;
}

/* ---- Streams ---- */

bool td_engine_flow(const struct td_engine *engine, size_t demand, struct td_engine_flow *ret)
{
    if (demand >= engine->entry_count ||
        engine->entries[demand].demand->driver != TD_DEMAND_REQUESTS) {
        return false;
    }
    const struct engine_entry *entry = &engine->entries[demand];
    *ret = (struct td_engine_flow){
        .served_per_second = entry->served_rate,
        .latency_seconds = entry->answer_mean + td_engine_wait(entry),
        .waiting = entry->waiting,
        .dropped = entry->dropped,
    };
    return true;
}
