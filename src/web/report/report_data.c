/*
 * Curves are the bulk of a report. A line is written point by point, memory in whole KiB; a step
 * only where it changes. Names and texts go through the JSON writer, which escapes what could end
 * the element that they are in.
 */
#include "web/report/report_data.h"

#include <math.h>
#include <string.h>

#include "web/assets.h"

#define REPORT_KIB 1024

void report_begin(struct td_json_writer *writer, const struct td_report_head *head)
{
    const char *charts = td_web_charts();
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "title", head->title);
    td_writer_text(writer, "command", head->command);
    td_writer_text(writer, "version", head->version);
    td_writer_text(writer, "charts", charts ? td_str_from(charts) : TD_STR("plain SVG"));
}

void report_end(struct td_json_writer *writer)
{
    td_writer_close(writer, '}');
}

void report_fact(struct td_json_writer *writer, const char *name, td_str text)
{
    td_writer_open(writer, NULL, '[');
    td_writer_text(writer, NULL, td_str_from(name));
    td_writer_text(writer, NULL, text);
    td_writer_close(writer, ']');
}

void report_columns(struct td_json_writer *writer, const struct report_column *columns,
                    size_t count)
{
    td_writer_open(writer, "columns", '[');
    for (size_t i = 0; i < count; i++) {
        td_writer_open(writer, NULL, '{');
        td_writer_text(writer, "title", td_str_from(columns[i].title));
        td_writer_text(writer, "unit", td_str_from(columns[i].unit));
        td_writer_int(writer, "better", columns[i].better);
        td_writer_close(writer, '}');
    }
    td_writer_close(writer, ']');
}

/* ---- Curves ---- */

static int unit_places(const char *unit)
{
    return strcmp(unit, "seconds") == 0 ? 4 : strcmp(unit, "percent") == 0 ? 1 : 0;
}

static void point_write(struct td_json_writer *writer, const char *unit, double value)
{
    bool is_memory = strcmp(unit, "memory") == 0;
    if (isnan(value)) {
        td_writer_null(writer, NULL);
    } else {
        td_writer_number(writer, NULL, is_memory ? value / REPORT_KIB : value, unit_places(unit));
    }
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void line_write(struct td_json_writer *writer, const char *unit, report_point_fn at,
                       const void *points, size_t count)
{
    td_writer_open(writer, "v", '[');
    for (size_t i = 0; i < count; i++) {
        point_write(writer, unit, at(points, i));
    }
    td_writer_close(writer, ']');
}

/* i: where it changes; s: to what. */
static void step_write(struct td_json_writer *writer, const char *unit, report_point_fn at,
                       const void *points, size_t count)
{
    td_writer_open(writer, "i", '[');
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !is_same(at(points, i), at(points, i - 1))) {
            td_writer_int(writer, NULL, (int64_t)i);
        }
    }
    td_writer_close(writer, ']');
    td_writer_open(writer, "s", '[');
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !is_same(at(points, i), at(points, i - 1))) {
            point_write(writer, unit, at(points, i));
        }
    }
    td_writer_close(writer, ']');
    td_writer_int(writer, "n", (int64_t)count);
}

static void curve_write(struct td_json_writer *writer, const char *name, bool is_step,
                        const char *unit, report_point_fn at, const void *points, size_t count)
{
    td_writer_open(writer, name, '{');
    if (is_step) {
        step_write(writer, unit, at, points, count);
    } else {
        line_write(writer, unit, at, points, count);
    }
    td_writer_close(writer, '}');
}

static void style_write(struct td_json_writer *writer, const struct report_style *style)
{
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "name", td_str_from(style->name));
    td_writer_text(writer, "kind", td_str_from(style->kind));
    td_writer_int(writer, "color", style->color);
    if (style->dash) {
        td_writer_raw(writer, "dash", td_str_from(style->dash));
    }
    if (style->is_clipped) {
        td_writer_bool(writer, "clip", true);
    }
}

void report_plot_open(struct td_json_writer *writer, const char *title, const char *unit,
                      td_str axis)
{
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "title", td_str_from(title));
    td_writer_text(writer, "unit", td_str_from(unit));
    td_writer_text(writer, "axis", axis);
    td_writer_int(writer, "scale", strcmp(unit, "memory") == 0 ? REPORT_KIB : 1);
    td_writer_open(writer, "series", '[');
}

void report_plot_close(struct td_json_writer *writer)
{
    td_writer_close(writer, ']');
    td_writer_close(writer, '}');
}

static bool has_points(report_point_fn at, const void *points, size_t count)
{
    size_t i = 0;
    while (i < count && isnan(at(points, i))) {
        i++;
    }
    return i < count;
}

void report_series(struct td_json_writer *writer, const struct report_style *style,
                   const char *unit, report_point_fn at, const void *points, size_t count)
{
    if (!has_points(at, points, count)) {
        return; /* nothing that a legend should name */
    }
    style_write(writer, style);
    curve_write(writer, "curve", strcmp(style->kind, "step") == 0, unit, at, points, count);
    td_writer_close(writer, '}');
}

/* A curve and the grid of its run. */
struct grid_curve {
    const struct td_curve *curve;
    const struct td_curve_grid *grid;
};

static double grid_curve_at(const void *points, size_t index)
{
    const struct grid_curve *from = points;
    return td_curve_point(from->curve, from->grid, index);
}

void report_curve(struct td_json_writer *writer, const struct report_style *style, const char *unit,
                  const struct td_curve *curve, const struct td_curve_grid *grid)
{
    const struct grid_curve from = {curve, grid};
    report_series(writer, style, unit, grid_curve_at, &from, td_curve_points(curve, grid));
}

void report_curve_band(struct td_json_writer *writer, const struct report_style *style,
                       const char *unit, const struct td_curve *const bounds[2],
                       const struct td_curve_grid *grid)
{
    static const char *const names[] = {"low", "high"};
    const struct grid_curve from[] = {{bounds[0], grid}, {bounds[1], grid}};
    for (size_t i = 0; i < 2; i++) {
        if (!has_points(grid_curve_at, &from[i], td_curve_points(bounds[i], grid))) {
            return;
        }
    }
    style_write(writer, style);
    td_writer_bool(writer, "step", true);
    for (size_t i = 0; i < 2; i++) {
        curve_write(writer, names[i], true, unit, grid_curve_at, &from[i],
                    td_curve_points(bounds[i], grid));
    }
    td_writer_close(writer, '}');
}

/* ---- What happened, and texts ---- */

void report_event(struct td_json_writer *writer, const struct report_event *event)
{
    td_writer_open(writer, NULL, '[');
    td_writer_int(writer, NULL, (int64_t)event->run);
    td_writer_int(writer, NULL, event->at_ms);
    td_writer_text(writer, NULL, event->anchor);
    td_writer_text(writer, NULL, td_str_from(event->kind));
    td_writer_text(writer, NULL, event->reason);
    td_writer_text(writer, NULL, event->object);
    td_writer_text(writer, NULL, event->text);
    td_writer_text(writer, NULL, event->why);
    td_writer_close(writer, ']');
}

void report_text(struct td_json_writer *writer, td_str title, td_str text)
{
    td_writer_open(writer, NULL, '{');
    td_writer_text(writer, "title", title);
    td_writer_text(writer, "text", text);
    td_writer_close(writer, '}');
}
