/*
 * Figures are shares of the span in which a workload ran; sums over workloads are made before
 * shares, never of shares.
 */
#include "sim/world/world_report.h"

#include "base/error.h"
#include "base/limits.h"
#include "local/store/store.h"
#include "sim/world/world_private.h"

/* ---- Figures ---- */

static double figures_share(double part, double whole)
{
    return whole > 0 ? part / whole : -1;
}

struct td_world_figures td_world_figures(const struct td_engine_workload *load, td_duration span)
{
    double seconds = (double)span / (double)TD_SECOND;
    double scale = seconds > 0 ? 1 / seconds : 0;
    double free_cpu = load->totals.requested_cpu_seconds - load->totals.used_cpu_seconds;
    double free_memory = load->totals.requested_byte_seconds - load->totals.used_byte_seconds;
    return (struct td_world_figures){
        .cpu_requested_milli = load->totals.requested_cpu_seconds * scale * 1000,
        .cpu_used_milli = load->totals.used_cpu_seconds * scale * 1000,
        .cpu_slack = figures_share(free_cpu > 0 ? free_cpu : 0, load->totals.requested_cpu_seconds),
        .cpu_throttled =
            figures_share(load->totals.throttled_cpu_seconds, load->totals.wanted_cpu_seconds),
        .cpu_starved =
            figures_share(load->totals.starved_cpu_seconds, load->totals.wanted_cpu_seconds),
        .memory_requested_bytes = load->totals.requested_byte_seconds * scale,
        .memory_used_bytes = load->totals.used_byte_seconds * scale,
        .memory_slack =
            figures_share(free_memory > 0 ? free_memory : 0, load->totals.requested_byte_seconds),
    };
}

void td_world_figures_add(struct td_engine_workload *sum, const struct td_engine_workload *load)
{
    sum->pod_count += load->pod_count;
    sum->ready_count += load->ready_count;
    sum->totals.used_cpu_seconds += load->totals.used_cpu_seconds;
    sum->totals.wanted_cpu_seconds += load->totals.wanted_cpu_seconds;
    sum->totals.throttled_cpu_seconds += load->totals.throttled_cpu_seconds;
    sum->totals.starved_cpu_seconds += load->totals.starved_cpu_seconds;
    sum->totals.used_byte_seconds += load->totals.used_byte_seconds;
    sum->totals.requested_cpu_seconds += load->totals.requested_cpu_seconds;
    sum->totals.requested_byte_seconds += load->totals.requested_byte_seconds;
    sum->kill_count += load->kill_count;
}

/* ---- As a tree ---- */

static void report_text(struct td_arena *arena, struct td_json *object, const char *key,
                        td_str text)
{
    if (text.len > 0) {
        td_json_set_str(arena, object, td_str_from(key), td_arena_copy_str(arena, text));
    }
}

static void report_count(struct td_arena *arena, struct td_json *object, const char *key,
                         uint64_t count)
{
    td_json_set_int64(arena, object, td_str_from(key), (int64_t)count);
}

static void report_number(struct td_arena *arena, struct td_json *object, const char *key,
                          double value)
{
    td_json_set(arena, object, td_str_from(key), td_json_new_double(arena, value));
}

/* Below 0 there is none. */
static void report_share(struct td_arena *arena, struct td_json *object, const char *key,
                         double value)
{
    td_json_set(arena, object, td_str_from(key),
                value < 0 ? td_json_new_null(arena) : td_json_new_double(arena, value));
}

struct td_json *td_world_event_report(struct td_arena *arena, const struct td_world_event *event)
{
    struct td_json *object = td_json_new_object(arena);
    report_number(arena, object, "atSeconds", (double)event->at / (double)TD_SECOND);
    report_text(arena, object, "type", event->type);
    report_text(arena, object, "reason", event->reason);
    report_text(arena, object, "kind", event->kind);
    report_text(arena, object, "namespace", event->ns);
    report_text(arena, object, "name", event->name);
    report_text(arena, object, "message", event->message);
    return object;
}

static void report_figures(struct td_arena *arena, struct td_json *object,
                           const struct td_engine_workload *load, td_duration span)
{
    struct td_world_figures figures = td_world_figures(load, span);
    report_number(arena, object, "cpuRequestedMilli", figures.cpu_requested_milli);
    report_number(arena, object, "cpuUsedMilli", figures.cpu_used_milli);
    report_share(arena, object, "cpuSlack", figures.cpu_slack);
    report_share(arena, object, "cpuThrottled", figures.cpu_throttled);
    report_share(arena, object, "cpuStarved", figures.cpu_starved);
    report_number(arena, object, "memoryRequestedBytes", figures.memory_requested_bytes);
    report_number(arena, object, "memoryUsedBytes", figures.memory_used_bytes);
    report_share(arena, object, "memorySlack", figures.memory_slack);
    report_count(arena, object, "ooms", load->kill_count);
}

static struct td_json *report_row(struct td_arena *arena, const struct td_world_row *row,
                                  td_duration span)
{
    struct td_json *object = td_json_new_object(arena);
    report_text(arena, object, "namespace", row->load.ns);
    report_text(arena, object, "kind", row->load.kind);
    report_text(arena, object, "name", row->load.name);
    report_text(arena, object, "role", row->load.role);
    report_text(arena, object, "by", row->by);
    td_json_set_int64(arena, object, TD_STR("replicas"), row->replicas);
    report_count(arena, object, "pods", row->load.pod_count);
    report_count(arena, object, "ready", row->load.ready_count);
    report_figures(arena, object, &row->load, span);
    report_count(arena, object, "restarts", row->restart_count);
    report_count(arena, object, "evictions", row->eviction_count);
    report_count(arena, object, "resizes", row->resize_count);
    if (row->latency_seconds >= 0) {
        report_share(arena, object, "meanLatencySeconds", row->mean_latency_seconds);
        report_number(arena, object, "waiting", row->waiting);
        report_number(arena, object, "dropped", row->dropped);
    }
    if (row->decided_at >= 0) {
        report_number(arena, object, "decidedAtSeconds",
                      (double)row->decided_at / (double)TD_SECOND);
        report_text(arena, object, "decision", row->decision);
    }
    return object;
}

static struct td_json *report_totals(struct td_arena *arena, const struct td_world_view *view)
{
    struct td_json *object = td_json_new_object(arena);
    struct td_engine_workload sum = {.pod_count = 0};
    for (size_t i = 0; i < view->row_count; i++) {
        td_world_figures_add(&sum, &view->rows[i].load);
    }
    sum.kill_count = view->kill_count;
    report_count(arena, object, "nodes", view->node_count);
    report_count(arena, object, "readyNodes", view->ready_node_count);
    report_count(arena, object, "pods", view->pod_count);
    report_count(arena, object, "pending", view->pending_count);
    report_figures(arena, object, &sum, view->since);
    report_count(arena, object, "restarts", view->restart_count);
    report_count(arena, object, "evictions", view->eviction_count);
    report_count(arena, object, "resizes", view->resize_count);
    report_count(arena, object, "events", view->event_count);
    return object;
}

/* ---- The state ---- */

static void report_copy(struct td_arena *arena, struct td_json *object, const char *key,
                        const struct td_json *value)
{
    if (value) {
        td_json_set(arena, object, td_str_from(key), td_json_copy(arena, value, true));
    }
}

static struct td_json *report_pod(struct td_arena *arena, const struct td_stored *stored,
                                  const struct td_json *pod)
{
    struct td_json *object = td_json_new_object(arena);
    const struct td_json *containers = td_json_get_path(pod, "spec.containers");
    struct td_json *list = td_json_new_array(arena);
    struct td_world_pod_facts facts = td_world_pod_read(pod);
    report_text(arena, object, "namespace", stored->ns);
    report_text(arena, object, "name", stored->name);
    report_copy(arena, object, "node", td_json_get_path(pod, "spec.nodeName"));
    report_text(arena, object, "phase", facts.phase);
    td_json_set_bool(arena, object, TD_STR("ready"), facts.is_ready);
    td_json_set_int64(arena, object, TD_STR("restarts"), facts.restarts);
    report_copy(arena, object, "labels", td_json_get_path(pod, "metadata.labels"));
    report_copy(arena, object, "resources", td_json_get_path(pod, "spec.resources"));
    for (const struct td_json *c = td_json_first_item(containers); c; c = c->next) {
        struct td_json *item = td_json_new_object(arena);
        report_copy(arena, item, "name", td_json_get(c, TD_STR("name")));
        report_copy(arena, item, "resources", td_json_get(c, TD_STR("resources")));
        td_json_append(list, item);
    }
    td_json_set(arena, object, TD_STR("containers"), list);
    return object;
}

/* In order of names. */
static struct td_json *report_pods(struct td_world *world, struct td_arena *arena)
{
    struct td_json *list = td_json_new_array(arena);
    const struct td_collection *pods = td_store_find(td_api_store(world->api), TD_STR("pods"));
    td_auto_arena scratch = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_collection_iter iter = td_collection_walk(pods, TD_STR_EMPTY);
    for (const struct td_stored *stored; (stored = td_collection_iter_next(&iter));) {
        struct td_json *pod;
        td_arena_reset(&scratch);
        if (td_json_parse(&scratch, stored->json, NULL, &pod, NULL) == TD_OK) {
            td_json_append(list, report_pod(arena, stored, pod));
        }
    }
    return list;
}

struct td_json *td_world_report(struct td_world *world, struct td_arena *arena)
{
    struct td_world_view view;
    td_world_look(world, arena, &view);
    struct td_json *report = td_json_new_object(arena);
    struct td_json *rows = td_json_new_array(arena);
    if (world->scenario) {
        report_text(arena, report, "scenario", world->scenario->name);
        report_count(arena, report, "seed", world->scenario->seed);
    }
    report_number(arena, report, "seconds", (double)view.since / (double)TD_SECOND);
    td_json_set(arena, report, TD_STR("totals"), report_totals(arena, &view));
    for (size_t i = 0; i < view.row_count; i++) {
        td_json_append(rows, report_row(arena, &view.rows[i], view.since));
    }
    td_json_set(arena, report, TD_STR("workloads"), rows);
    td_json_set(arena, report, TD_STR("pods"), report_pods(world, arena));
    return report;
}
