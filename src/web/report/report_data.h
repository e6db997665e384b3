/*
 * The data of a report, piece by piece, shared by the files report_*.c. One object:
 *
 *   {title, command, version, charts,
 *    runs: [{name, facts: [[name, text]], origin, start, end, step, count, rules: [...]}],
 *    score: {title, note, columns: [{title, unit, better}], blocks: [{name, detail, anchor,
 * rows}]}, groups: [{anchor, name, parts: [{run, detail, plots: [...]}]}], events: {rows: [[run,
 * at, anchor, kind, reason, object, text, why]], ...}, texts: [{title, text}]}
 *
 * Times are milliseconds. web/report.js draws it; what a field means is said there.
 */
#pragma once

#include "sim/record/curve.h"
#include "web/json_writer.h"
#include "web/report/report.h"

void report_begin(struct td_json_writer *writer, const struct td_report_head *head);
void report_end(struct td_json_writer *writer);

void report_fact(struct td_json_writer *writer, const char *name, td_str text);

/* A column of scores. */
struct report_column {
    const char *title;
    const char *unit; /* "cpu", "memory", "share", "seconds", "count", "figure" */
    int better;       /* -1: less is better, 1: more is, 0: neither */
};
void report_columns(struct td_json_writer *writer, const struct report_column *columns,
                    size_t count);

/* How a curve is drawn: kinds and colours are those of web/plot.js. */
struct report_style {
    const char *name;
    const char *kind; /* "line" or "step" */
    int color;
    const char *dash; /* JSON, or NULL */
    bool is_clipped;  /* does not widen the axis */
};

/* Points from anywhere: NaN is a gap. */
typedef double (*report_point_fn)(const void *points, size_t index);

void report_plot_open(struct td_json_writer *writer, const char *title, const char *unit,
                      td_str axis);
void report_plot_close(struct td_json_writer *writer);
void report_series(struct td_json_writer *writer, const struct report_style *style,
                   const char *unit, report_point_fn at, const void *points, size_t count);
/* The same of a curve, and of a lower and an upper one. */
void report_curve(struct td_json_writer *writer, const struct report_style *style, const char *unit,
                  const struct td_curve *curve, const struct td_curve_grid *grid);
void report_curve_band(struct td_json_writer *writer, const struct report_style *style,
                       const char *unit, const struct td_curve *const bounds[2],
                       const struct td_curve_grid *grid);

struct report_event {
    size_t run;
    int64_t at_ms; /* since 1970, as all times of the run */
    td_str anchor; /* of the group that it is about; empty: none */
    const char *kind;
    td_str reason;
    td_str object;
    td_str text;
    td_str why;
};
void report_event(struct td_json_writer *writer, const struct report_event *event);

void report_text(struct td_json_writer *writer, td_str title, td_str text);
