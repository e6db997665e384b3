/*
 * What there is to see, gathered by td_world_look: what the engine knows of pods that run, and
 * of workloads without any what their objects say. Two things need a memory. How much was throttled
 * in the last minute is the difference to one of two samples of the totals, taken every half minute
 * once td_world_look was called for the first time. The mean latency of requests is summed up once
 * a minute, weighed by how many were served.
 */
#include <stdlib.h>

#include "kube/selector/labels.h"
#include "kube/selector/selector.h"
#include "sim/world/world_private.h"

#define ROWS_FLOW_EVERY (1 * TD_MINUTE)
#define ROWS_SAMPLE_EVERY (30 * TD_SECOND)

/* ---- Over time ---- */

static void flows_take(struct td_timer *timer, void *context)
{
    struct td_world *world = context;
    double seconds = (double)(ROWS_FLOW_EVERY / TD_SECOND);
    for (size_t i = 0; i < world->scenario->demand_count; i++) {
        struct td_engine_flow flow;
        if (world->scenario->demands[i].driver == TD_DEMAND_REQUESTS &&
            td_engine_flow(world->engine, i, &flow)) {
            double served = flow.served_per_second * seconds;
            world->flows[i].served += served;
            world->flows[i].latency_sum += served * flow.latency_seconds;
        }
    }
    td_timer_set(timer, ROWS_FLOW_EVERY);
}

static void samples_take(struct td_timer *timer, void *context)
{
    struct td_world *world = context;
    struct td_engine_workload load;
    size_t position = 0;
    while (td_engine_next_workload(world->engine, &position, &load)) {
        struct td_world_workload *workload =
            td_world_find_workload(world, load.ns, load.kind, load.name);
        if (workload) {
            struct td_world_part *part = td_world_part(workload, load.role);
            part->throttled[0] = part->throttled[1];
            part->wanted[0] = part->wanted[1];
            part->throttled[1] = load.totals.throttled_cpu_seconds;
            part->wanted[1] = load.totals.wanted_cpu_seconds;
        }
    }
    td_timer_set(timer, ROWS_SAMPLE_EVERY);
}

/* ---- One row ---- */

static double row_throttled(struct td_world_workload *workload,
                            const struct td_engine_workload *load)
{
    const struct td_world_part *part = td_world_part(workload, load->role);
    double throttled = load->totals.throttled_cpu_seconds - part->throttled[0];
    double wanted = load->totals.wanted_cpu_seconds - part->wanted[0];
    return wanted > 0 && throttled > 0 ? throttled / wanted : 0;
}

static void row_flow(struct td_world *world, const struct td_engine_workload *load,
                     struct td_world_row *row)
{
    const struct td_world_flow *entry =
        td_map_get(&world->flow_entries, td_world_key(world, load->ns, load->kind, load->name));
    struct td_engine_flow flow;
    row->latency_seconds = -1;
    row->mean_latency_seconds = -1;
    if (entry && td_engine_flow(world->engine, (size_t)(entry - world->flows), &flow)) {
        row->latency_seconds = flow.latency_seconds;
        row->waiting = flow.waiting;
        row->dropped = flow.dropped;
        row->mean_latency_seconds = entry->served > 0 ? entry->latency_sum / entry->served : -1;
    }
}

const struct td_world_pod *td_world_pod_of_role(const struct td_world_workload *workload,
                                                td_str role)
{
    const struct td_world_pod *pod = workload->first_pod;
    while (pod && role.len > 0 && !td_str_equal(pod->role, role)) {
        pod = pod->next;
    }
    return pod;
}

bool td_world_scaler_selects(struct td_world *world, struct td_arena *arena,
                             const struct td_world_scaler *scaler, const struct td_world_pod *pod)
{
    if (scaler->kind == TD_WORLD_HVPA && !world->hvpa_gate) {
        return false;
    }
    if (!scaler->selector || !world->selector_gate) {
        return true;
    }
    const struct td_collection *pods = td_store_find(td_api_store(world->api), TD_STR("pods"));
    const struct td_stored *stored =
        pods && pod ? td_collection_get(pods, pod->ns, pod->name) : NULL;
    struct td_selector selector;
    struct td_json *labels;
    if (!stored || stored->labels.len == 0 ||
        td_json_parse(arena, stored->labels, NULL, &labels, NULL) < 0 ||
        td_selector_from_json(arena, scaler->selector, &selector, NULL) < 0) {
        return false;
    }
    struct td_labels set = td_labels_from_json(arena, labels);
    return td_selector_matches(&selector, &set);
}

static td_str row_by(struct td_world *world, struct td_arena *arena,
                     const struct td_world_workload *workload, td_str role)
{
    static const char *const kinds[] = {
        [TD_WORLD_HVPA] = "hvpa", [TD_WORLD_HPA] = "hpa", [TD_WORLD_VPA] = "vpa"};
    const struct td_world_pod *pod = td_world_pod_of_role(workload, role);
    for (const struct td_world_scaler *s = workload->scalers; s; s = s->next) {
        if (td_world_scaler_selects(world, arena, s, pod)) {
            return td_arena_format(arena, "%s/%.*s", kinds[s->kind], TD_STR_ARG(s->name));
        }
    }
    return TD_STR_EMPTY;
}

/* Decisions about a workload are about all its roles; what is counted belongs to one. A row without
 * a role is about all of them. */
static void row_parts(struct td_arena *arena, const struct td_world_workload *workload,
                      struct td_world_row *row)
{
    const struct td_world_part *newest = NULL;
    bool is_whole = row->load.role.len == 0;
    for (size_t i = 0; i < workload->part_count; i++) {
        const struct td_world_part *part = &workload->parts[i];
        bool is_ours = is_whole || td_str_equal(part->role, row->load.role);
        if ((is_ours || part->role.len == 0) && part->decided_at >= 0 &&
            (!newest || part->decided_at >= newest->decided_at)) {
            newest = part;
        }
        if (is_ours) {
            row->restart_count += part->restart_count;
            row->eviction_count += part->eviction_count;
            row->resize_count += part->resize_count;
        }
    }
    if (newest) {
        row->decided_at = newest->decided_at;
        row->decision = td_arena_copy_str(arena, newest->decision);
    }
}

static void row_fill(struct td_world *world, struct td_arena *arena,
                     struct td_world_workload *workload, const struct td_engine_workload *load,
                     struct td_world_row *row)
{
    *row = (struct td_world_row){
        .load = *load,
        .by = TD_STR_EMPTY,
        .replicas = (int64_t)load->pod_count,
        .is_pod_level = workload->is_pod_level,
        .throttled_share = row_throttled(workload, load),
        .decided_at = -1,
        .decision = TD_STR_EMPTY,
    };
    row->load.ns = td_arena_copy_str(arena, load->ns);
    row->load.kind = td_arena_copy_str(arena, load->kind);
    row->load.name = td_arena_copy_str(arena, load->name);
    row->load.role = td_arena_copy_str(arena, load->role);
    row_flow(world, load, row);
    row->by = row_by(world, arena, workload, load->role);
    row_parts(arena, workload, row);
    if (load->role.len == 0 && workload->replicas >= 0) {
        row->replicas = workload->replicas;
    }
}

static int row_compare(const void *a, const void *b)
{
    const struct td_engine_workload *left = &((const struct td_world_row *)a)->load;
    const struct td_engine_workload *right = &((const struct td_world_row *)b)->load;
    const td_str pairs[][2] = {
        {left->ns, right->ns},
        {left->name, right->name},
        {left->kind, right->kind},
        {left->role, right->role},
    };
    for (size_t i = 0; i < TD_COUNT(pairs); i++) {
        int order = td_str_compare(pairs[i][0], pairs[i][1]);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

/* ---- The view ---- */

static void view_add(struct td_world_view *view, const struct td_engine_workload *load)
{
    view->requested.cpu_request_milli += load->limits.cpu_request_milli;
    view->requested.cpu_limit_milli += load->limits.cpu_limit_milli;
    view->requested.memory_request_bytes += load->limits.memory_request_bytes;
    view->requested.memory_limit_bytes += load->limits.memory_limit_bytes;
    view->used.cpu_milli += load->use.cpu_milli;
    view->used.memory_bytes += load->use.memory_bytes;
}

struct rows {
    struct td_world_row *items;
    size_t count;
    size_t cap;
};

static struct td_world_row *rows_push(struct td_arena *arena, struct rows *rows)
{
    rows->items =
        td_arena_grow(arena, rows->items, rows->count, &rows->cap, sizeof(rows->items[0]));
    return &rows->items[rows->count++];
}

/* Everything the engine runs or has run, while its workload is there. */
static void rows_of_engine(struct td_world *world, struct td_arena *arena, struct rows *rows,
                           struct td_world_view *view)
{
    struct td_engine_workload load;
    size_t position = 0;
    world->look_count++;
    while (td_engine_next_workload(world->engine, &position, &load)) {
        struct td_world_workload *workload =
            td_world_find_workload(world, load.ns, load.kind, load.name);
        view_add(view, &load);
        bool is_shown =
            workload && (load.pod_count > 0 ||
                         (workload->has_object && (load.role.len > 0 || !workload->roles)));
        if (is_shown) {
            workload->looked_at = world->look_count;
            row_fill(world, arena, workload, &load, rows_push(arena, rows));
        }
    }
}

static void rows_of_objects(struct td_world *world, struct td_arena *arena, struct rows *rows)
{
    for (struct td_map_walk at = {.map = &world->workloads}; td_map_step(&at);) {
        struct td_world_workload *workload = at.value;
        bool is_there = workload->has_object || workload->pod_count > 0;
        if (!is_there || workload->looked_at == world->look_count) {
            continue;
        }
        const struct td_engine_workload load = {
            .ns = workload->ns,
            .kind = workload->kind,
            .name = workload->name,
            .role = TD_STR_EMPTY,
        };
        row_fill(world, arena, workload, &load, rows_push(arena, rows));
    }
}

void td_world_look(struct td_world *world, struct td_arena *arena, struct td_world_view *ret)
{
    struct rows rows = {.items = NULL};
    *ret = (struct td_world_view){
        .since = td_engine_since(world->engine),
        .node_count = world->nodes.count,
        .ready_node_count = world->ready_node_count,
        .pod_count = world->pods.count - world->over_count,
        .pending_count = world->pending_count,
        .cpu_capacity_milli = world->cpu_capacity_milli,
        .memory_capacity_bytes = world->memory_capacity_bytes,
        .kill_count = world->counts.kills,
        .eviction_count = world->counts.evictions,
        .resize_count = world->counts.resizes,
        .restart_count = world->counts.restarts,
        .event_count = world->counts.events,
    };
    rows_of_engine(world, arena, &rows, ret);
    rows_of_objects(world, arena, &rows);
    if (rows.count > 0) {
        qsort(rows.items, rows.count, sizeof(rows.items[0]), row_compare);
    }
    ret->rows = rows.items;
    ret->row_count = rows.count;
    if (!world->sample_timer) {
        world->sample_timer = td_timer_new(world->loop, samples_take, world);
        td_timer_set(world->sample_timer, ROWS_SAMPLE_EVERY);
    }
}

void td_world_rows_start(struct td_world *world)
{
    if (world->scenario && world->scenario->demand_count > 0) {
        world->flow_timer = td_timer_new(world->loop, flows_take, world);
        td_timer_set(world->flow_timer, ROWS_FLOW_EVERY);
    }
}

void td_world_rows_done(struct td_world *world)
{
    td_timer_free(world->flow_timer);
    td_timer_free(world->sample_timer);
}
