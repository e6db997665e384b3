/*
 * Line plots as SVG: panels above each other over one horizontal axis, each with its own scale from
 * zero. Values hold until the next one, so lines are steps. The bytes are a function of the input.
 * The caller owns everything and checks the buffer at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

struct td_plot_line {
    td_str label;
    td_str colour;        /* of SVG: "#1f6feb" */
    const double *values; /* one a step, not negative, finite */
    size_t count;
    bool is_dashed;
};

struct td_plot_panel {
    td_str title;
    const struct td_plot_line *lines;
    size_t line_count;
};

struct td_plot {
    td_str title;
    td_str x_label;
    double x_step; /* between two values, in the unit of x_label; above 0 */
    const struct td_plot_panel *panels;
    size_t panel_count;
};

void td_plot_write(const struct td_plot *plot, struct td_buf *out);
