/*
 * Lower left is better. Latency is on a scale of logarithms, for an overload is hundreds of times
 * slower than what is usual. Names stand beside the dots of the upstream estimator only; the other
 * two are the same colour, smaller.
 */
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 860.0
#define HEIGHT 420.0
#define LEFT 64.0
#define RIGHT 150.0
#define TOP 36.0
#define BOTTOM 44.0

struct frame {
    double cost_max; /* percent of the usual HPA's */
    double low;      /* logarithms of milliseconds */
    double high;
};

static double across(const struct frame *frame, double cost)
{
    return LEFT + cost / frame->cost_max * (WIDTH - LEFT - RIGHT);
}

static double down(const struct frame *frame, double latency)
{
    double share = (log(latency) - frame->low) / (frame->high - frame->low);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

static double usual_cost(const struct quality_table *table, size_t scenario)
{
    for (size_t i = 0; i < table->setup_count; i++) {
        if (strcmp(table->setups[i].name, "hpa70") == 0) {
            return quality_mean(table, scenario, i).cost;
        }
    }
    return 1;
}

static struct frame make_frame(const struct quality_table *table, size_t scenario, double usual)
{
    struct frame frame = {.cost_max = 110, .low = log(10), .high = log(30)};
    for (size_t i = 0; i < table->setup_count; i++) {
        struct quality_figures f = quality_mean(table, scenario, i);
        frame.cost_max = fmax(frame.cost_max, 105 * f.cost / usual);
        frame.high = fmax(frame.high, log(fmax(f.mean, 1)) + 0.1);
    }
    return frame;
}

static void write_axes(FILE *file, const struct frame *frame)
{
    for (double cost = 0; cost <= frame->cost_max; cost += 50) {
        double x = across(frame, cost);
        (void)fprintf(file,
                      "<path class=\"g\" d=\"M%.1f %.1fV%.1f\"/><text class=\"m\" x=\"%.1f\" "
                      "y=\"%.1f\">%.0f</text>\n",
                      x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 16, cost);
    }
    for (double ms = 10; log(ms) <= frame->high; ms *= 2) {
        double y = down(frame, ms);
        (void)fprintf(file,
                      "<path class=\"g\" d=\"M%.1f %.1fH%.1f\"/><text class=\"e\" x=\"%.1f\" "
                      "y=\"%.1f\">%.0f ms</text>\n",
                      LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4, ms);
    }
    (void)fprintf(file,
                  "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">cost, 100 is an HPA with a target of "
                  "70 %%</text>\n",
                  (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
}

bool quality_write_picture(const struct quality_table *table, size_t scenario, const char *path)
{
    static const char *const colours[] = {"#6e7781", "#0969da", "#9a6700", "#8250df", "#1a7f37"};
    FILE *file = fopen(path, "w");
    if (!file) {
        return false;
    }
    const char *name = quality_scenarios[scenario].name;
    double usual = usual_cost(table, scenario);
    struct frame frame = make_frame(table, scenario, usual);
    (void)fprintf(file,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                  "width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"11\" "
                  "role=\"img\">\n<title>%s: cost and latency</title>\n"
                  "<style>.g{stroke:#d0d7de;fill:none}.e{text-anchor:end}.m{text-anchor:middle}"
                  "</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
                  "<text x=\"%.1f\" y=\"20\" font-size=\"15\">%s: cost and mean latency</text>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT, name, LEFT, name);
    write_axes(file, &frame);
    for (size_t i = 0; i < table->setup_count; i++) {
        const struct quality_setup *setup = &table->setups[i];
        struct quality_figures f = quality_mean(table, scenario, i);
        bool is_plain = !setup->estimator || strcmp(setup->estimator, "upstream") == 0;
        double x = across(&frame, 100 * f.cost / usual);
        double y = down(&frame, fmax(f.mean, 10));
        (void)fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>\n", x, y,
                      is_plain ? 4 : 2, colours[setup->kind]);
        if (is_plain) {
            (void)fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", x + 6, y + 4,
                          colours[setup->kind], setup->name);
        }
    }
    (void)fprintf(file, "</svg>\n");
    bool is_written = ferror(file) == 0;
    return fclose(file) == 0 && is_written;
}
