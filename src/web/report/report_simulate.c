/*
 * Simulated runs, one or several side by side. Workloads are matched by namespace, kind, name and
 * role; one that a run lacks has no row and no plots there. A later run's plots carry the requests
 * and replicas of the first as a thin dashed line, so that a difference is seen where it is.
 */
#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/timefmt.h"
#include "sim/record/record.h"
#include "sim/record/rules.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"
#include "sim/world/world_report.h"
#include "web/report/report_data.h"

#define SIMULATE_ORIGIN_MS INT64_C(1704067200000) /* Monday, 2024-01-01T00:00:00Z */

/* One workload, or one role of it, in any of the runs. */
struct subject {
    const struct td_engine_workload *load; /* of the first run that has it */
    td_str anchor;
};

struct simulate_report {
    struct td_json_writer *writer;
    struct td_arena *arena;
    const struct td_report_run *runs;
    size_t count;
    struct subject *subjects;
    size_t subject_count;
    size_t subject_cap;
};

/* ---- Who is there ---- */

static bool is_same_workload(const struct td_engine_workload *a, const struct td_engine_workload *b)
{
    return td_str_equal(a->ns, b->ns) && td_str_equal(a->kind, b->kind) &&
           td_str_equal(a->name, b->name) && td_str_equal(a->role, b->role);
}

static const struct td_world_row *row_of(const struct td_report_run *run,
                                         const struct td_engine_workload *load)
{
    for (size_t i = 0; i < run->view->row_count; i++) {
        if (is_same_workload(&run->view->rows[i].load, load)) {
            return &run->view->rows[i];
        }
    }
    return NULL;
}

static void find_subjects(struct simulate_report *report)
{
    for (size_t r = 0; r < report->count; r++) {
        const struct td_world_view *view = report->runs[r].view;
        for (size_t i = 0; i < view->row_count; i++) {
            const struct td_engine_workload *load = &view->rows[i].load;
            bool is_known = false;
            for (size_t before = 0; before < r && !is_known; before++) {
                is_known = row_of(&report->runs[before], load) != NULL;
            }
            if (is_known) {
                continue;
            }
            report->subjects = td_arena_grow(report->arena, report->subjects, report->subject_count,
                                             &report->subject_cap, sizeof(report->subjects[0]));
            report->subjects[report->subject_count] = (struct subject){
                .load = load,
                .anchor = td_arena_format(report->arena, "w%zu", report->subject_count),
            };
            report->subject_count++;
        }
    }
}

static td_str subject_name(struct td_arena *arena, const struct td_engine_workload *load, td_str ns)
{
    bool is_elsewhere = !td_str_equal(load->ns, ns);
    return td_arena_format(arena, "%.*s%s%.*s%s%.*s%s", is_elsewhere ? (int)load->ns.len : 0,
                           load->ns.ptr, is_elsewhere ? "/" : "", TD_STR_ARG(load->name),
                           load->role.len > 0 ? " (" : "", TD_STR_ARG(load->role),
                           load->role.len > 0 ? ")" : "");
}

/* ---- Scores ---- */

static const struct report_column score_columns[] = {
    {"pods", "count", 0},      {"CPU requested", "cpu", -1}, {"used", "cpu", 0},
    {"slack", "share", -1},    {"throttled", "share", -1},   {"mem. requested", "memory", -1},
    {"used", "memory", 0},     {"slack", "share", -1},       {"OOMs", "count", -1},
    {"restarts", "count", -1}, {"evicted", "count", -1},     {"resized", "count", -1},
    {"scaled", "count", -1},   {"latency", "seconds", -1},   {"p99", "seconds", -1},
    {"waiting", "count", -1},  {"dropped", "count", -1},
};

static void score_figures(struct td_json_writer *writer, const struct td_engine_workload *load,
                          td_duration span)
{
    struct td_world_figures figures = td_world_figures(load, span);
    td_writer_number(writer, NULL, figures.cpu_requested_milli, 1);
    td_writer_number(writer, NULL, figures.cpu_used_milli, 1);
    td_writer_known(writer, NULL, figures.cpu_slack, 4);
    td_writer_known(writer, NULL, figures.cpu_throttled, 4);
    td_writer_number(writer, NULL, figures.memory_requested_bytes, 0);
    td_writer_number(writer, NULL, figures.memory_used_bytes, 0);
    td_writer_known(writer, NULL, figures.memory_slack, 4);
}

static void score_row(struct td_json_writer *writer, const struct td_report_run *run,
                      const struct td_world_row *row)
{
    const struct td_record_row *kept =
        td_record_find(run->record, row->load.ns, row->load.kind, row->load.name, row->load.role);
    bool has_requests = row->latency_seconds >= 0;
    td_writer_int(writer, NULL, row->replicas);
    score_figures(writer, &row->load, run->view->since);
    td_writer_int(writer, NULL, (int64_t)row->load.kill_count);
    td_writer_int(writer, NULL, (int64_t)row->restart_count);
    td_writer_int(writer, NULL, (int64_t)row->eviction_count);
    td_writer_int(writer, NULL, (int64_t)row->resize_count);
    td_writer_known(writer, NULL, kept && kept->replicas >= 0 ? (double)kept->replica_changes : -1,
                    0);
    td_writer_known(writer, NULL, row->mean_latency_seconds, 4);
    td_writer_known(writer, NULL,
                    kept && kept->latency ? td_record_latency_at(kept->latency, 0.99) : -1, 4);
    td_writer_known(writer, NULL, has_requests ? row->waiting : -1, 0);
    td_writer_known(writer, NULL, has_requests ? row->dropped : -1, 0);
}

static void score_total(struct td_json_writer *writer, const struct td_report_run *run)
{
    const struct td_world_view *view = run->view;
    struct td_engine_workload sum = {.pod_count = 0};
    double waiting = 0;
    double dropped = 0;
    double changes = 0;
    for (size_t i = 0; i < view->row_count; i++) {
        const struct td_engine_workload *load = &view->rows[i].load;
        const struct td_record_row *kept =
            td_record_find(run->record, load->ns, load->kind, load->name, load->role);
        td_world_figures_add(&sum, load);
        waiting += view->rows[i].waiting;
        dropped += view->rows[i].dropped;
        changes += kept ? (double)kept->replica_changes : 0;
    }
    td_writer_int(writer, NULL, (int64_t)view->pod_count);
    score_figures(writer, &sum, view->since);
    td_writer_int(writer, NULL, (int64_t)view->kill_count);
    td_writer_int(writer, NULL, (int64_t)view->restart_count);
    td_writer_int(writer, NULL, (int64_t)view->eviction_count);
    td_writer_int(writer, NULL, (int64_t)view->resize_count);
    td_writer_number(writer, NULL, changes, 0);
    td_writer_null(writer, NULL);
    td_writer_null(writer, NULL);
    td_writer_number(writer, NULL, waiting, 0);
    td_writer_number(writer, NULL, dropped, 0);
}

static void score_open_row(struct td_json_writer *writer, size_t run, td_str by)
{
    td_writer_open(writer, NULL, '{');
    td_writer_int(writer, "run", (int64_t)run);
    td_writer_text(writer, "detail", by);
    td_writer_open(writer, "cells", '[');
}

static void score_close_row(struct td_json_writer *writer)
{
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void score_block(struct simulate_report *report, const struct subject *subject)
{
    struct td_json_writer *writer = report->writer;
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name",
                   subject_name(report->arena, subject->load, report->runs[0].scenario->ns));
    td_writer_text(writer, "kind", subject->load->kind);
    td_writer_text(writer, "anchor", subject->anchor);
    td_writer_open(writer, "rows", '[');
    for (size_t r = 0; r < report->count; r++) {
        const struct td_world_row *row = row_of(&report->runs[r], subject->load);
        if (row) {
            score_open_row(writer, r, row->by);
            score_row(writer, &report->runs[r], row);
            score_close_row(writer);
        }
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void write_score(struct simulate_report *report)
{
    struct td_json_writer *writer = report->writer;
    td_writer_open(writer, "score", '{');
    td_writer_text(writer, "note",
                   TD_STR("CPU and memory are averages over the run, summed over pods; slack is "
                          "the share of requests that was not used; latency is the mean and the "
                          "99th percentile over all requests; scaled counts changes of replicas."));
    report_columns(writer, score_columns, TD_COUNT(score_columns));
    td_writer_open(writer, "blocks", '[');
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name", TD_STR("total"));
    td_writer_text(writer, "anchor", TD_STR("cluster"));
    td_writer_open(writer, "rows", '[');
    for (size_t r = 0; r < report->count; r++) {
        score_open_row(writer, r, TD_STR_EMPTY);
        score_total(writer, &report->runs[r]);
        score_close_row(writer);
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
    for (size_t i = 0; i < report->subject_count; i++) {
        score_block(report, &report->subjects[i]);
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

/* ---- Plots ---- */

static void curve_series(struct td_json_writer *writer, const struct report_style *style,
                         const char *unit, const struct td_curve *curve, struct td_curve_grid grid)
{
    report_curve(writer, style, unit, curve, &grid);
}

static bool curve_has_above(const struct td_curve *curve, struct td_curve_grid grid, double least)
{
    for (size_t i = 0; i < td_curve_points(curve, &grid); i++) {
        if (td_curve_point(curve, &grid, i) > least) {
            return true;
        }
    }
    return false;
}

/* One workload in one run; `first` is what it was in the first run, NULL: this is it. */
struct plot_of {
    struct simulate_report *report;
    const struct td_record_row *row;
    struct td_curve_grid grid;
    const struct td_record_row *first;
    struct td_curve_grid first_grid;
    td_str anchor;
};

static const struct report_style first_style = {"first run", "step", 7, "[2,3]", true};

static void plot_first(const struct plot_of *of, const char *unit, enum td_record_curve which)
{
    if (of->first) {
        curve_series(of->report->writer, &first_style, unit, &of->first->curves[which],
                     of->first_grid);
    }
}

static td_str plot_axis(const struct plot_of *of, const char *what)
{
    return td_arena_format(of->report->arena, "%.*s %s", TD_STR_ARG(of->anchor), what);
}

/* `base` is the first of the resource's curves. */
static void plot_resource(const struct plot_of *of, const char *title, const char *unit,
                          enum td_record_curve base)
{
    static const struct report_style bounds = {"bounds", "band", 2, NULL, true};
    static const struct report_style most = {"highest use", "line", 6, NULL, false};
    static const struct report_style use = {"use (middle pod)", "line", 0, NULL, false};
    static const struct report_style alone = {"use", "line", 0, NULL, false};
    static const struct report_style request = {"request", "step", 1, NULL, false};
    static const struct report_style limit = {"limit", "step", 3, "[6,3]", true};
    static const struct report_style target = {"target", "step", 2, NULL, false};
    const struct td_curve *curves = of->row->curves + (base - TD_RECORD_CPU_USE);
    struct td_json_writer *writer = of->report->writer;
    bool has_most =
        td_curve_differs(&curves[TD_RECORD_CPU_MOST], &curves[TD_RECORD_CPU_USE], &of->grid);
    report_plot_open(writer, title, unit, plot_axis(of, unit));
    report_curve_band(writer, &bounds, unit,
                      (const struct td_curve *const[]){&curves[TD_RECORD_CPU_LOWER],
                                                       &curves[TD_RECORD_CPU_UPPER]},
                      &of->grid);
    if (has_most) {
        curve_series(writer, &most, unit, &curves[TD_RECORD_CPU_MOST], of->grid);
    }
    curve_series(writer, has_most ? &use : &alone, unit, &curves[TD_RECORD_CPU_USE], of->grid);
    curve_series(writer, &request, unit, &curves[TD_RECORD_CPU_REQUEST], of->grid);
    curve_series(writer, &limit, unit, &curves[TD_RECORD_CPU_LIMIT], of->grid);
    curve_series(writer, &target, unit, &curves[TD_RECORD_CPU_TARGET], of->grid);
    plot_first(of, unit, base + TD_RECORD_CPU_REQUEST);
    report_plot_close(writer);
}

static void plot_replicas(const struct plot_of *of)
{
    static const struct report_style replicas = {"replicas", "step", 1, NULL, false};
    static const struct report_style ready = {"ready", "step", 0, NULL, false};
    static const struct report_style wanted = {"wanted by the HPA", "step", 2, "[4,3]", false};
    struct td_json_writer *writer = of->report->writer;
    const struct td_curve *curves = of->row->curves;
    report_plot_open(writer, "Replicas", "count", plot_axis(of, "count"));
    curve_series(writer, &replicas, "count", &curves[TD_RECORD_REPLICAS], of->grid);
    curve_series(writer, &ready, "count", &curves[TD_RECORD_READY], of->grid);
    curve_series(writer, &wanted, "count", &curves[TD_RECORD_WANTED], of->grid);
    plot_first(of, "count", TD_RECORD_REPLICAS);
    report_plot_close(writer);
}

static void plot_alone(const struct plot_of *of, const char *title, const char *unit,
                       const struct report_style *style, enum td_record_curve which)
{
    report_plot_open(of->report->writer, title, unit, plot_axis(of, unit));
    curve_series(of->report->writer, style, unit, &of->row->curves[which], of->grid);
    report_plot_close(of->report->writer);
}

static void plot_workload(const struct plot_of *of)
{
    static const struct report_style throttled = {"share of the CPU wanted", "line", 3, NULL,
                                                  false};
    static const struct report_style latency = {"mean of its requests", "line", 4, NULL, false};
    plot_resource(of, "CPU of one pod", "cpu", TD_RECORD_CPU_USE);
    plot_resource(of, "Memory of one pod", "memory", TD_RECORD_MEMORY_USE);
    plot_replicas(of);
    if (curve_has_above(&of->row->curves[TD_RECORD_THROTTLED], of->grid, 0)) {
        plot_alone(of, "Throttled", "percent", &throttled, TD_RECORD_THROTTLED);
    }
    if (curve_has_above(&of->row->curves[TD_RECORD_LATENCY], of->grid, 0)) {
        plot_alone(of, "Latency", "seconds", &latency, TD_RECORD_LATENCY);
    }
}

static void plot_cluster(struct simulate_report *report, const struct td_report_run *run)
{
    static const struct report_style used = {"used", "line", 0, NULL, false};
    static const struct report_style requested = {"requested", "step", 1, NULL, false};
    static const struct report_style room = {"allocatable", "step", 7, "[4,3]", false};
    static const struct report_style pods = {"pods", "step", 1, NULL, false};
    static const struct report_style pending = {"pending", "step", 3, "[4,3]", false};
    static const struct {
        const char *title;
        const char *unit;
        enum td_record_total base;
    } resources[] = {{"CPU", "cpu", TD_RECORD_CPU_USED},
                     {"Memory", "memory", TD_RECORD_MEMORY_USED}};
    struct td_json_writer *writer = report->writer;
    struct td_curve_grid grid = td_record_grid(run->record);
    for (size_t i = 0; i < TD_COUNT(resources); i++) {
        const char *unit = resources[i].unit;
        enum td_record_total base = resources[i].base;
        report_plot_open(writer, resources[i].title, unit,
                         td_arena_format(report->arena, "cluster %s", unit));
        curve_series(writer, &used, unit, td_record_total(run->record, base), grid);
        curve_series(writer, &requested, unit, td_record_total(run->record, base + 1), grid);
        curve_series(writer, &room, unit, td_record_total(run->record, base + 2), grid);
        report_plot_close(writer);
    }
    report_plot_open(writer, "Pods", "count", TD_STR("cluster count"));
    curve_series(writer, &pods, "count", td_record_total(run->record, TD_RECORD_PODS), grid);
    curve_series(writer, &pending, "count", td_record_total(run->record, TD_RECORD_PENDING), grid);
    report_plot_close(writer);
}

/* What is counted since the start. */
static void write_counts(struct simulate_report *report, const struct td_report_run *run)
{
    static const struct report_style counts[] = {{"OOM kills", "step", 0, NULL, false},
                                                 {"Evictions", "step", 0, NULL, false},
                                                 {"Resizes", "step", 0, NULL, false},
                                                 {"Replica changes", "step", 0, NULL, false}};
    const struct td_curve_grid grid = td_record_grid(run->record);
    td_writer_open(report->writer, "counts", '[');
    for (size_t i = 0; i < TD_COUNT(counts); i++) {
        enum td_record_total which = (enum td_record_total)(TD_RECORD_KILLS + i);
        report_curve(report->writer, &counts[i], "count", td_record_total(run->record, which),
                     &grid);
    }
    td_writer_close(report->writer, ']');
}

static void part_open(struct td_json_writer *writer, size_t run, td_str detail)
{
    td_writer_open(writer, NULL, '{');
    td_writer_int(writer, "run", (int64_t)run);
    td_writer_text(writer, "detail", detail);
    td_writer_open(writer, "plots", '[');
}

static void part_close(struct td_json_writer *writer)
{
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void group_open(struct td_json_writer *writer, td_str anchor, td_str name, td_str kind)
{
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "anchor", anchor);
    td_writer_text(writer, "name", name);
    td_writer_text(writer, "kind", kind);
    td_writer_open(writer, "parts", '[');
}

static const struct td_record_row *kept_row(const struct td_report_run *run,
                                            const struct td_engine_workload *load)
{
    return td_record_find(run->record, load->ns, load->kind, load->name, load->role);
}

static void write_group(struct simulate_report *report, const struct subject *subject)
{
    struct td_json_writer *writer = report->writer;
    const struct td_record_row *first = kept_row(&report->runs[0], subject->load);
    bool has_any = false;
    for (size_t r = 0; r < report->count; r++) {
        has_any = has_any || kept_row(&report->runs[r], subject->load);
    }
    if (!has_any) {
        return; /* no plots were kept */
    }
    group_open(writer, subject->anchor,
               subject_name(report->arena, subject->load, report->runs[0].scenario->ns),
               subject->load->kind);
    for (size_t r = 0; r < report->count; r++) {
        const struct td_world_row *row = row_of(&report->runs[r], subject->load);
        const struct plot_of of = {.report = report,
                                   .row = kept_row(&report->runs[r], subject->load),
                                   .grid = td_record_grid(report->runs[r].record),
                                   .first = r > 0 ? first : NULL,
                                   .first_grid = td_record_grid(report->runs[0].record),
                                   .anchor = subject->anchor};
        if (of.row) {
            part_open(writer, r, row ? row->by : TD_STR_EMPTY);
            plot_workload(&of);
            part_close(writer);
        }
    }
    part_close(writer);
}

static void write_groups(struct simulate_report *report)
{
    struct td_json_writer *writer = report->writer;
    td_writer_open(writer, "groups", '[');
    group_open(writer, TD_STR("cluster"), TD_STR("Cluster"), TD_STR_EMPTY);
    for (size_t r = 0; r < report->count; r++) {
        part_open(writer, r, TD_STR_EMPTY);
        plot_cluster(report, &report->runs[r]);
        td_writer_close(writer, ']');
        write_counts(report, &report->runs[r]);
        td_writer_close(writer, '}');
    }
    part_close(writer);
    for (size_t i = 0; i < report->subject_count; i++) {
        write_group(report, &report->subjects[i]);
    }
    td_writer_close(writer, ']');
}

/* ---- What happened ---- */

/* As a mark. */
static const char *event_kind(const struct td_record_event *event)
{
    static const struct {
        td_str reason;
        const char *kind;
    } kinds[] = {
        {TD_STR_INIT("OOMKilled"), "oom"},           {TD_STR_INIT("Evicted"), "evict"},
        {TD_STR_INIT("EvictedByVPA"), "evict"},      {TD_STR_INIT("TaintManagerEviction"), "evict"},
        {TD_STR_INIT("ResizeCompleted"), "resize"},  {TD_STR_INIT("InPlaceResizedByVPA"), "resize"},
        {TD_STR_INIT("VerticalScaled"), "resize"},   {TD_STR_INIT("HorizontalScaled"), "scale"},
        {TD_STR_INIT("SuccessfulRescale"), "scale"}, {TD_STR_INIT("ScalingReplicaSet"), "scale"},
    };
    for (size_t i = 0; !event->is_scenario && i < TD_COUNT(kinds); i++) {
        if (td_str_equal(event->reason, kinds[i].reason)) {
            return kinds[i].kind;
        }
    }
    return "event";
}

static td_str event_anchor(const struct simulate_report *report,
                           const struct td_record_event *event)
{
    td_str whole = TD_STR_EMPTY;
    for (size_t i = 0; event->workload_name.len > 0 && i < report->subject_count; i++) {
        const struct td_engine_workload *load = report->subjects[i].load;
        bool is_workload = td_str_equal(load->kind, event->workload_kind) &&
                           td_str_equal(load->name, event->workload_name) &&
                           (event->ns.len == 0 || td_str_equal(load->ns, event->ns));
        if (is_workload && td_str_equal(load->role, event->role)) {
            return report->subjects[i].anchor;
        }
        whole = is_workload && whole.len == 0 ? report->subjects[i].anchor : whole;
    }
    return whole.len > 0 || event->workload_name.len > 0 ? whole : TD_STR("cluster");
}

static void write_events(struct simulate_report *report)
{
    uint64_t left_out = 0;
    td_writer_open(report->writer, "events", '{');
    td_writer_open(report->writer, "rows", '[');
    for (size_t r = 0; r < report->count; r++) {
        const struct td_record *record = report->runs[r].record;
        const struct td_record_event *event;
        left_out += td_record_events_left_out(record);
        for (size_t i = 0; (event = td_record_event_at(record, i)) != NULL; i++) {
            bool has_why = !td_str_equal(event->decision, event->message);
            const struct report_event written = {
                .run = r,
                .at_ms = SIMULATE_ORIGIN_MS + event->at / TD_MILLISECOND,
                .anchor = event_anchor(report, event),
                .kind = event_kind(event),
                .reason = event->reason,
                .object = td_arena_format(report->arena, "%.*s%s%.*s", TD_STR_ARG(event->kind),
                                          event->kind.len > 0 ? " " : "", TD_STR_ARG(event->name)),
                .text = event->message,
                .why = has_why ? event->decision : TD_STR_EMPTY,
            };
            report_event(report->writer, &written);
        }
    }
    td_writer_close(report->writer, ']');
    td_writer_int(report->writer, "leftOut", (int64_t)left_out);
    td_writer_close(report->writer, '}');
}

/* ---- What was run ---- */

static void write_rules(struct simulate_report *report, const struct td_report_run *run)
{
    td_writer_open(report->writer, "rules", '[');
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct td_report_rule *rule = &run->rules[i];
        td_writer_open(report->writer, NULL, '{');
        td_writer_text(report->writer, "text", rule->rule->text);
        td_writer_bool(report->writer, "broken", rule->verdict->is_broken);
        td_writer_text(report->writer, "value",
                       td_rule_value(report->arena, rule->rule, rule->verdict));
        td_writer_close(report->writer, '}');
    }
    td_writer_close(report->writer, ']');
}

static td_str span_text(struct td_arena *arena, td_duration span)
{
    char text[TD_DURATION_TEXT_BYTES];
    td_str words = {.ptr = text, .len = td_duration_format(span / TD_SECOND * TD_SECOND, text)};
    if (td_str_ends_with(words, TD_STR("m0s"))) {
        words.len -= sizeof("0s") - 1;
    }
    if (td_str_ends_with(words, TD_STR("h0m"))) {
        words.len -= sizeof("0m") - 1;
    }
    return td_arena_copy_str(arena, words);
}

static void write_facts(struct simulate_report *report, const struct td_report_run *run)
{
    struct td_json_writer *writer = report->writer;
    struct td_arena *arena = report->arena;
    struct td_curve_grid grid = td_record_grid(run->record);
    td_writer_open(writer, "facts", '[');
    report_fact(writer, "scenario", run->scenario->name);
    report_fact(writer, "seed", td_arena_format(arena, "%llu", (unsigned long long)run->seed));
    report_fact(writer, "simulated", span_text(arena, run->view->since));
    report_fact(writer, "at the end",
                td_arena_format(arena, "%zu nodes, %zu pods, %zu pending", run->view->node_count,
                                run->view->pod_count, run->view->pending_count));
    report_fact(writer, "points",
                grid.slots == 1 ? td_arena_format(arena, "every sample, one each %.*s",
                                                  TD_STR_ARG(span_text(arena, grid.column)))
                                : td_arena_format(arena, "lowest and highest sample of each %.*s",
                                                  TD_STR_ARG(span_text(arena, grid.column))));
    size_t left_out = td_record_rows_left_out(run->record);
    if (left_out > 0) {
        report_fact(writer, "without plots",
                    td_arena_format(arena, "%zu more workloads", left_out));
    }
    td_writer_close(writer, ']');
}

static void write_runs(struct simulate_report *report)
{
    struct td_json_writer *writer = report->writer;
    td_writer_open(writer, "runs", '[');
    for (size_t r = 0; r < report->count; r++) {
        const struct td_report_run *run = &report->runs[r];
        struct td_curve_grid grid = td_record_grid(run->record);
        td_writer_open(writer, NULL, '{');
        td_writer_text(writer, "name", run->name);
        td_writer_int(writer, "origin", SIMULATE_ORIGIN_MS);
        td_writer_int(writer, "start", SIMULATE_ORIGIN_MS);
        td_writer_int(writer, "end", SIMULATE_ORIGIN_MS + run->view->since / TD_MILLISECOND);
        td_writer_int(writer, "step", td_curve_step(&grid) / TD_MILLISECOND);
        td_writer_int(writer, "count", (int64_t)(grid.count * grid.slots));
        write_facts(report, run);
        write_rules(report, run);
        td_writer_close(writer, '}');
    }
    td_writer_close(writer, ']');
}

void td_report_simulate(const struct td_report_head *head, const struct td_report_run *runs,
                        size_t count, struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json_writer writer = {.out = out};
    struct simulate_report report = {
        .writer = &writer, .arena = &arena, .runs = runs, .count = count};
    find_subjects(&report);
    report_begin(&writer, head);
    write_runs(&report);
    write_score(&report);
    write_groups(&report);
    write_events(&report);
    td_writer_open(&writer, "texts", '[');
    for (size_t r = 0; r < count; r++) {
        report_text(&writer, runs[r].name, runs[r].text);
    }
    td_writer_close(&writer, ']');
    report_end(&writer);
}
