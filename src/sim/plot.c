#include "sim/plot.h"

#include <math.h>

#include "base/assert.h"

#define PLOT_WIDTH 860
#define PLOT_LEFT 64
#define PLOT_RIGHT 170 /* room for labels of lines */
#define PLOT_TOP 44
#define PANEL_HEIGHT 150
#define PANEL_GAP 46
#define PLOT_BOTTOM 30
#define GRID_LINES 4

/* Where one panel lies, and its scales. */
struct frame {
    double top;
    double x_max;
    double y_max;
};

static const double inner_width = PLOT_WIDTH - PLOT_LEFT - PLOT_RIGHT;

/* The smallest 1, 2, 2.5 or 5 times a power of ten that is not below `value`. */
static double nice_step(double value)
{
    if (value <= 0) {
        return 1;
    }
    double power = 1;
    while (power * 10 <= value) {
        power *= 10;
    }
    while (power > value) {
        power /= 10;
    }
    static const double steps[] = {1, 2, 2.5, 5};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i] * power >= value) {
            return steps[i] * power;
        }
    }
    return 10 * power;
}

static void write_text(td_str text, struct td_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        switch (text.ptr[i]) {
        case '&':
            (void)td_buf_append(out, TD_STR("&amp;"));
            break;
        case '<':
            (void)td_buf_append(out, TD_STR("&lt;"));
            break;
        default:
            (void)td_buf_append_char(out, text.ptr[i]);
        }
    }
}

static void write_label(double x, double y, const char *style, td_str text, struct td_buf *out)
{
    (void)td_buf_append_format(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, style);
    write_text(text, out);
    (void)td_buf_append(out, TD_STR("</text>\n"));
}

/* A number of an axis, without needless zeros. */
static void write_number(double x, double y, const char *style, double value, struct td_buf *out)
{
    (void)td_buf_append_format(out, "<text x=\"%.1f\" y=\"%.1f\"%s>%.4g</text>\n", x, y, style,
                               value);
}

static double x_of(const struct frame *frame, double x)
{
    return PLOT_LEFT + inner_width * x / frame->x_max;
}

static double y_of(const struct frame *frame, double y)
{
    return frame->top + PANEL_HEIGHT * (1 - y / frame->y_max);
}

static void write_grid(const struct frame *frame, struct td_buf *out)
{
    double step = frame->y_max / GRID_LINES;
    for (int i = 0; i <= GRID_LINES; i++) {
        double y = y_of(frame, step * i);
        (void)td_buf_append_format(out, "<path class=\"g\" d=\"M%d %.1fH%.1f\"/>\n", PLOT_LEFT, y,
                                   PLOT_LEFT + inner_width);
        write_number(PLOT_LEFT - 6, y + 4, " class=\"e\"", step * i, out);
    }
    double x_step = nice_step(frame->x_max / 8);
    for (double x = 0; x <= frame->x_max * 1.0001; x += x_step) {
        write_number(x_of(frame, x), frame->top + PANEL_HEIGHT + 14, " class=\"m\"", x, out);
    }
}

static void write_line(const struct frame *frame, const struct td_plot_line *line, double x_step,
                       struct td_buf *out)
{
    (void)td_buf_append(out, TD_STR("<path class=\"l\" stroke=\""));
    write_text(line->colour, out);
    (void)td_buf_append(out, line->is_dashed ? TD_STR("\" stroke-dasharray=\"5 4") : TD_STR_EMPTY);
    (void)td_buf_append(out, TD_STR("\" d=\""));
    double last = -1;
    for (size_t i = 0; i < line->count; i++) {
        if (line->values[i] == last) {
            continue;
        }
        double x = x_of(frame, (double)i * x_step);
        double y = y_of(frame, line->values[i]);
        (void)td_buf_append_format(out, i == 0 ? "M%.1f %.1f" : "H%.1fV%.1f", x, y);
        last = line->values[i];
    }
    (void)td_buf_append_format(out, "H%.1f\"/>\n", PLOT_LEFT + inner_width);
}

static double largest(const struct td_plot_panel *panel)
{
    double most = 0;
    for (size_t i = 0; i < panel->line_count; i++) {
        for (size_t v = 0; v < panel->lines[i].count; v++) {
            most = fmax(most, panel->lines[i].values[v]);
        }
    }
    return most;
}

static void write_panel(const struct td_plot *plot, size_t index, struct td_buf *out)
{
    const struct td_plot_panel *panel = &plot->panels[index];
    size_t count = 1;
    for (size_t i = 0; i < panel->line_count; i++) {
        count = panel->lines[i].count > count ? panel->lines[i].count : count;
    }
    struct frame frame = {
        .top = PLOT_TOP + (double)index * (PANEL_HEIGHT + PANEL_GAP),
        .x_max = (double)count * plot->x_step,
        .y_max = nice_step(largest(panel) / GRID_LINES) * GRID_LINES,
    };
    write_label(PLOT_LEFT, frame.top - 8, " class=\"h\"", panel->title, out);
    write_grid(&frame, out);
    for (size_t i = 0; i < panel->line_count; i++) {
        const struct td_plot_line *line = &panel->lines[i];
        write_line(&frame, line, plot->x_step, out);
        double y = frame.top + 14 + 18 * (double)i;
        (void)td_buf_append(out, TD_STR("<path class=\"l\" stroke=\""));
        write_text(line->colour, out);
        (void)td_buf_append_format(out, "\"%s d=\"M%.1f %.1fh18\"/>\n",
                                   line->is_dashed ? " stroke-dasharray=\"5 4\"" : "",
                                   PLOT_LEFT + inner_width + 10, y - 4);
        write_label(PLOT_LEFT + inner_width + 34, y, "", line->label, out);
    }
}

void td_plot_write(const struct td_plot *plot, struct td_buf *out)
{
    td_assert(plot->x_step > 0);
    int height = PLOT_TOP + (int)plot->panel_count * (PANEL_HEIGHT + PANEL_GAP) + PLOT_BOTTOM;
    (void)td_buf_append_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\""
        " font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n",
        PLOT_WIDTH, height, PLOT_WIDTH, height);
    (void)td_buf_append(out, TD_STR("<title>"));
    write_text(plot->title, out);
    (void)td_buf_append(
        out, TD_STR("</title>\n<style>.g{stroke:#d0d7de;fill:none}.l{fill:none;stroke-width:1.8}"
                    ".e{text-anchor:end}.m{text-anchor:middle}.h{font-weight:bold}</style>\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"));
    write_label(PLOT_LEFT, 20, " font-size=\"15\"", plot->title, out);
    for (size_t i = 0; i < plot->panel_count; i++) {
        write_panel(plot, i, out);
    }
    write_label(PLOT_LEFT + inner_width / 2, height - 14, " class=\"m\"", plot->x_label, out);
    (void)td_buf_append(out, TD_STR("</svg>\n"));
}
