/*
 * Policies over recorded use. Each container is a group: its use, and over it the request of every
 * policy on the same axes. Scores come from the run that printed the table; for the curves each
 * policy walks the trace once more, one container at a time, so memory does not grow with the
 * number of containers.
 */
#include <math.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "base/vec.h"
#include "sim/replay/replay.h"
#include "sim/replay/trace.h"
#include "web/report/report_data.h"

#define REPLAY_EVERY (300 * TD_SECOND)
#define REPLAY_HOLD (3600 * TD_SECOND) /* a longer time without windows is a hole */
#define REPLAY_RELATIVE 1000000000     /* seconds: earlier times count from no calendar */
#define REPLAY_COLORS 6
#define REPLAY_POLICIES_MAX 16

struct replay_event {
    size_t trace;
    size_t policy;
    int64_t time; /* seconds */
    bool is_oom;
    int64_t before[2]; /* CPU and memory */
    int64_t after[2];
    const char *why;
};

struct replay_report {
    struct td_json_writer *writer;
    struct td_arena *arena;
    const struct td_report_replay *from;
    int64_t start; /* seconds, of all traces that are shown */
    int64_t end;
    size_t shown; /* containers that have plots */
    struct td_curve_grid grid;
    struct {
        TD_VEC_FIELDS(struct replay_event);
    } events;
    uint64_t events_left_out;
};

static const struct td_trace *trace_at(const struct replay_report *report, size_t index)
{
    return &report->from->set->traces.items[index];
}

/* ---- Scores ---- */

static const struct report_column replay_columns[] = {
    {"CPU slack", "share", -1},   {"overrun", "share", -1},      {"excess", "share", -1},
    {"throttled", "share", -1},   {"memory slack", "share", -1}, {"overrun", "share", -1},
    {"OOMs a day", "figure", -1}, {"OOMs", "count", -1},         {"changes a day", "figure", -1},
    {"cost", "share", -1},
};

static void figure_write(struct td_json_writer *writer, double value)
{
    if (isnan(value)) {
        td_writer_null(writer, NULL);
    } else {
        td_writer_number(writer, NULL, value, 4);
    }
}

static void score_write(struct td_json_writer *writer, const char *name,
                        const struct td_replay_score *score, const struct td_replay_score *as_was)
{
    struct td_replay_figures figures = td_replay_figures(score, as_was);
    td_writer_open(writer, NULL, '{');
    td_writer_int(writer, "run", 0);
    td_writer_text(writer, "name", td_str_from(name));
    td_writer_open(writer, "cells", '[');
    figure_write(writer, figures.cpu_slack);
    figure_write(writer, figures.cpu_overrun);
    figure_write(writer, figures.cpu_excess);
    figure_write(writer, figures.throttled);
    figure_write(writer, figures.memory_slack);
    figure_write(writer, figures.memory_overrun);
    figure_write(writer, figures.ooms_per_day);
    td_writer_int(writer, NULL, score->ooms);
    figure_write(writer, figures.changes_per_day);
    figure_write(writer, figures.cost);
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static td_str anchor_of(struct replay_report *report, size_t trace)
{
    return td_arena_format(report->arena, "w%zu", trace);
}

/* `trace` at the number of traces: all of them together. */
static void block_write(struct replay_report *report, size_t trace)
{
    const struct td_report_replay *from = report->from;
    struct td_json_writer *writer = report->writer;
    size_t count = from->set->traces.count;
    bool is_all = trace == count;
    const struct td_replay_score *as_was = is_all ? &from->totals[0] : &from->scores[trace];
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name",
                   is_all ? TD_STR("all containers") : trace_at(report, trace)->name);
    if (!is_all) {
        td_writer_text(writer, "anchor", anchor_of(report, trace));
    }
    td_writer_open(writer, "rows", '[');
    for (size_t p = 0; p < from->policy_count; p++) {
        const struct td_replay_score *score =
            is_all ? &from->totals[p + 1] : &from->scores[(p + 1) * count + trace];
        score_write(writer, from->policies[p].title, score, as_was);
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static void write_score(struct replay_report *report)
{
    struct td_json_writer *writer = report->writer;
    size_t count = report->from->set->traces.count;
    td_writer_open(writer, "score", '{');
    td_writer_text(writer, "what", TD_STR("container"));
    td_writer_text(writer, "side", TD_STR("policy"));
    td_writer_text(writer, "note",
                   TD_STR("Overrun is the share of windows with use above the request, excess the "
                          "use above it as a share of all use; cost is of what was requested, "
                          "against as it was. The first day of each trace is not counted."));
    report_columns(writer, replay_columns, TD_COUNT(replay_columns));
    td_writer_open(writer, "blocks", '[');
    block_write(report, count);
    for (size_t t = 0; count > 1 && t < report->shown; t++) {
        block_write(report, t);
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

/* ---- Curves ---- */

enum { USE_CPU, USE_CPU_HIGH, USE_MEMORY, USE_MEMORY_HIGH, USE_CURVES };

/* One container: its use, and the requests of each policy. */
struct container {
    struct replay_report *report;
    size_t trace;
    size_t policy; /* that walks now */
    struct td_curve use[USE_CURVES];
    struct td_curve requests[REPLAY_POLICIES_MAX][2];
    struct replay_request_of {
        int64_t amounts[2];
        bool is_set;
    } last;
};

/* A window holds until the next one begins; across a hole nothing is known. */
static void curve_hold(const struct container *container, struct td_curve *curve, size_t index,
                       double value)
{
    const struct replay_report *report = container->report;
    const struct td_trace *trace = trace_at(report, container->trace);
    td_duration at = (trace->items[index].time - report->start) * TD_SECOND;
    td_duration end = at + REPLAY_EVERY;
    if (index + 1 < trace->count) {
        td_duration next = (trace->items[index + 1].time - report->start) * TD_SECOND;
        end = next - at <= REPLAY_HOLD ? next : end;
    }
    for (; at < end; at += REPLAY_EVERY) {
        td_curve_put(curve, &report->grid, at, value);
    }
}

static void container_use(struct container *container)
{
    const struct td_trace *trace = trace_at(container->report, container->trace);
    for (size_t i = 0; i < trace->count; i++) {
        const struct td_trace_window *window = &trace->items[i];
        curve_hold(container, &container->use[USE_CPU], i, (double)window->cpu_milli);
        curve_hold(container, &container->use[USE_CPU_HIGH], i, (double)window->cpu_p90_milli);
        curve_hold(container, &container->use[USE_MEMORY], i, (double)window->memory_bytes);
        curve_hold(container, &container->use[USE_MEMORY_HIGH], i,
                   (double)window->memory_bytes_max);
    }
}

static void event_add(struct container *container, const struct td_replay_window *window,
                      bool is_oom)
{
    struct replay_report *report = container->report;
    struct replay_event *event = td_vec_push(&report->events);
    if (!event) {
        report->events_left_out++;
        return;
    }
    *event = (struct replay_event){
        .trace = container->trace,
        .policy = container->policy,
        .time = trace_at(report, container->trace)->items[window->index].time,
        .is_oom = is_oom,
        .before = {container->last.amounts[0], container->last.amounts[1]},
        .after = {window->cpu_milli, is_oom ? window->limit_bytes : window->memory_bytes},
        .why = window->why,
    };
}

static void container_window(void *context, const struct td_replay_window *window)
{
    struct container *container = context;
    const int64_t amounts[2] = {window->cpu_milli, window->memory_bytes};
    struct replay_request_of *last = &container->last;
    bool is_changed =
        last->is_set && (last->amounts[0] != amounts[0] || last->amounts[1] != amounts[1]);
    for (int r = 0; r < 2; r++) {
        curve_hold(container, &container->requests[container->policy][r], window->index,
                   amounts[r] > 0 ? (double)amounts[r] : (double)NAN);
    }
    if (is_changed) {
        event_add(container, window, false);
    }
    if (window->is_oom) {
        event_add(container, window, true);
    }
    last->is_set = amounts[0] > 0 || amounts[1] > 0;
    last->amounts[0] = amounts[0];
    last->amounts[1] = amounts[1];
}

static void container_walk(struct container *container)
{
    const struct td_report_replay *from = container->report->from;
    for (size_t p = 0; p < from->policy_count; p++) {
        struct td_replay_score score;
        container->policy = p;
        container->last = (struct replay_request_of){.is_set = false};
        td_replay_watch(&from->policies[p], trace_at(container->report, container->trace),
                        container_window, container, &score);
    }
}

static void container_done(struct container *container)
{
    for (size_t i = 0; i < USE_CURVES; i++) {
        td_curve_done(&container->use[i]);
    }
    for (size_t p = 0; p < REPLAY_POLICIES_MAX; p++) {
        td_curve_done(&container->requests[p][0]);
        td_curve_done(&container->requests[p][1]);
    }
}

static void write_curve(struct replay_report *report, const struct report_style *style,
                        const char *unit, const struct td_curve *curve)
{
    report_curve(report->writer, style, unit, curve, &report->grid);
}

static void write_plot(struct container *container, int resource)
{
    static const char *const dashes[] = {NULL, "[6,3]", "[2,2]"};
    static const struct {
        const char *title;
        const char *unit;
        const char *use;
        const char *high;
    } words[] = {{"CPU", "cpu", "use", "90th percentile of use"},
                 {"Memory", "memory", "use", "highest use"}};
    struct replay_report *report = container->report;
    const char *unit = words[resource].unit;
    const struct report_style use = {words[resource].use, "line", 0, NULL, false};
    const struct report_style high = {words[resource].high, "line", 5, NULL, resource == 0};
    report_plot_open(report->writer, words[resource].title, unit,
                     td_arena_format(report->arena, "w%zu %s", container->trace, unit));
    const struct td_curve *usual = &container->use[resource == 0 ? USE_CPU : USE_MEMORY];
    const struct td_curve *highest =
        &container->use[resource == 0 ? USE_CPU_HIGH : USE_MEMORY_HIGH];
    if (td_curve_differs(usual, highest, &report->grid)) { /* else the trace knows averages only */
        write_curve(report, &high, unit, highest);
    }
    write_curve(report, &use, unit, usual);
    for (size_t p = 0; p < report->from->policy_count; p++) {
        const struct report_style style = {report->from->policies[p].title, "step",
                                           1 + (int)(p % REPLAY_COLORS), dashes[p / REPLAY_COLORS],
                                           false};
        write_curve(report, &style, unit, &container->requests[p][resource]);
    }
    report_plot_close(report->writer);
}

static void write_container(struct replay_report *report, size_t trace)
{
    struct td_json_writer *writer = report->writer;
    struct container container = {.report = report, .trace = trace};
    container_use(&container);
    container_walk(&container);
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "anchor", anchor_of(report, trace));
    td_writer_text(writer, "name", trace_at(report, trace)->name);
    td_writer_text(writer, "kind", TD_STR_EMPTY);
    td_writer_open(writer, "parts", '[');
    td_writer_open(writer, NULL, '{');
    td_writer_int(writer, "run", 0);
    td_writer_text(writer, "detail", TD_STR_EMPTY);
    td_writer_open(writer, "plots", '[');
    write_plot(&container, 0);
    write_plot(&container, 1);
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
    container_done(&container);
}

/* ---- What happened ---- */

static td_str amount_text(struct td_arena *arena, int resource, int64_t amount)
{
    if (amount <= 0) {
        return TD_STR("none");
    }
    return resource == 0 ? td_arena_format(arena, "%lldm", (long long)amount)
                         : td_arena_format(arena, "%.1fMi", (double)amount / (1 << 20));
}

static td_str change_text(struct td_arena *arena, const struct replay_event *event)
{
    static const char *const names[] = {"CPU", "memory"};
    td_str text = TD_STR_EMPTY;
    if (event->is_oom) {
        return td_arena_format(arena, "use above the limit of %.*s",
                               TD_STR_ARG(amount_text(arena, 1, event->after[1])));
    }
    for (int r = 0; r < 2; r++) {
        if (event->before[r] != event->after[r]) {
            text = td_arena_format(arena, "%.*s%s%s %.*s → %.*s", TD_STR_ARG(text),
                                   text.len > 0 ? ", " : "", names[r],
                                   TD_STR_ARG(amount_text(arena, r, event->before[r])),
                                   TD_STR_ARG(amount_text(arena, r, event->after[r])));
        }
    }
    return text;
}

static void write_events(struct replay_report *report)
{
    td_writer_open(report->writer, "events", '{');
    td_writer_open(report->writer, "rows", '[');
    for (size_t i = 0; i < report->events.count; i++) {
        const struct replay_event *event = &report->events.items[i];
        const struct report_event written = {
            .run = 0,
            .at_ms = event->time * 1000,
            .anchor = anchor_of(report, event->trace),
            .kind = event->is_oom ? "oom" : "resize",
            .reason = event->is_oom ? TD_STR("OOM") : TD_STR("change"),
            .object = td_str_from(report->from->policies[event->policy].title),
            .text = change_text(report->arena, event),
            .why = event->is_oom || !event->why ? TD_STR_EMPTY : td_str_from(event->why),
        };
        report_event(report->writer, &written);
    }
    td_writer_close(report->writer, ']');
    td_writer_int(report->writer, "leftOut", (int64_t)report->events_left_out);
    td_writer_close(report->writer, '}');
}

/* ---- The whole ---- */

static void write_run(struct replay_report *report)
{
    struct td_json_writer *writer = report->writer;
    struct td_arena *arena = report->arena;
    const struct td_report_replay *from = report->from;
    size_t count = from->set->traces.count;
    td_writer_open(writer, "runs", '[');
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name", TD_STR("replay"));
    if (report->start < REPLAY_RELATIVE) {
        td_writer_int(writer, "origin", 0);
    }
    td_writer_int(writer, "start", report->start * 1000);
    td_writer_int(writer, "end", report->end * 1000);
    td_writer_int(writer, "step", td_curve_step(&report->grid) / TD_MILLISECOND);
    td_writer_int(writer, "count", (int64_t)(report->grid.count * report->grid.slots));
    td_writer_open(writer, "facts", '[');
    report_fact(writer, "containers", td_arena_format(arena, "%zu", count));
    report_fact(
        writer, "container-days",
        td_arena_format(arena, "%.1f, after the first day of each",
                        td_replay_figures(&from->totals[0], &from->totals[0]).container_days));
    report_fact(writer, "windows that touch their limit",
                td_arena_format(arena, "%lld of %lld", (long long)from->censored,
                                (long long)from->windows));
    report_fact(writer, "points",
                report->grid.slots == 1
                    ? TD_STR("every window of five minutes")
                    : td_arena_format(arena, "lowest and highest window of each %lld minutes",
                                      (long long)(report->grid.column / TD_MINUTE)));
    if (count > report->shown) {
        report_fact(writer, "without plots",
                    td_arena_format(arena, "%zu more containers", count - report->shown));
    }
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
    td_writer_close(writer, ']');
}

/* From the first window of any trace that is shown to the last. */
static void find_span(struct replay_report *report)
{
    size_t count = report->from->set->traces.count;
    bool has_any = false;
    report->shown = count < TD_RECORD_ROWS_MAX ? count : TD_RECORD_ROWS_MAX;
    for (size_t t = 0; t < report->shown; t++) {
        const struct td_trace *trace = trace_at(report, t);
        if (trace->count == 0) {
            continue;
        }
        int64_t start = trace->items[0].time;
        int64_t end = trace->items[trace->count - 1].time + REPLAY_EVERY / TD_SECOND;
        report->start = !has_any || start < report->start ? start : report->start;
        report->end = !has_any || end > report->end ? end : report->end;
        has_any = true;
    }
    size_t columns = TD_RECORD_COLUMNS;
    if (report->shown > TD_RECORD_ROWS_FULL) {
        columns = columns * TD_RECORD_ROWS_FULL / report->shown;
    }
    report->grid = td_curve_grid((report->end - report->start) * TD_SECOND, REPLAY_EVERY, columns);
}

void td_report_replay(const struct td_report_head *head, const struct td_report_replay *replay,
                      struct td_buf *out)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json_writer writer = {.out = out};
    struct replay_report report = {.writer = &writer, .arena = &arena, .from = replay};
    report.events.count_max = TD_RECORD_EVENTS_MAX;
    find_span(&report);
    report_begin(&writer, head);
    write_run(&report);
    write_score(&report);
    td_writer_open(&writer, "groups", '[');
    for (size_t t = 0; t < report.shown; t++) {
        write_container(&report, t);
    }
    td_writer_close(&writer, ']');
    write_events(&report);
    td_writer_open(&writer, "texts", '[');
    td_writer_close(&writer, ']');
    report_end(&writer);
    td_vec_done(&report.events);
}
