#include "sim/loop_plots.h"

#include "sim/plot.h"

#define PLOT_ARENA_BYTES_MAX ((size_t)64 << 20)
#define START_UNIX 1773100800 /* 2026-03-10T00:00:00Z */

static const struct td_closed_load constant_load[] = {{.first_tick = 0, .demand_milli = 1000}};
static const struct td_closed_load step_load[] = {
    {.first_tick = 0, .demand_milli = 1000},
    {.first_tick = 20, .demand_milli = 5000},  /* after 5 minutes */
    {.first_tick = 300, .demand_milli = 1000}, /* after 75 minutes */
};

struct td_closed_loop td_loop_uncoordinated(void)
{
    return (struct td_closed_loop){
        .coupling = TD_HVPA_COUPLING_NONE,
        .utilization = 50,
        .min_replicas = 1,
        .max_replicas = 100,
        .min_allowed_milli = 25,
        .max_allowed_milli = 100000,
        .replicas = 2,
        .request_milli = 1000,
        .loads = constant_load,
        .load_count = 1,
        .peak_ticks = 1,
        .ticks = 24,
        .start = {.unix_seconds = START_UNIX},
    };
}

struct td_closed_loop td_loop_in_tandem(const struct td_hvpa *hvpa)
{
    return (struct td_closed_loop){
        .hvpa = hvpa,
        .utilization = 50,
        .min_replicas = hvpa->hpa.min_replicas,
        .max_replicas = hvpa->hpa.max_replicas,
        .min_allowed_milli = 100,
        .max_allowed_milli = 4000,
        .replicas = 2,
        .request_milli = 1000,
        .loads = step_load,
        .load_count = 3,
        .scale_in_stabilization_seconds = 300,
        .peak_half_life_seconds = 600,
        .keeps_patience = true,
        .uses_decider = true,
        .ticks = 600,
        .start = {.unix_seconds = START_UNIX},
    };
}

enum { REPLICAS, REQUEST, TOTAL, NEEDED, DEMAND, CURVE_COUNT };

void td_loop_plot(const struct td_closed_loop *loop, td_str title, struct td_buf *out)
{
    td_auto_arena arena;
    td_arena_init(&arena, PLOT_ARENA_BYTES_MAX);
    size_t count = (size_t)loop->ticks;
    struct td_closed_tick *ticks = td_arena_array(&arena, struct td_closed_tick, count);
    td_closed_loop_run(&arena, loop, ticks);
    double *curves[CURVE_COUNT];
    for (int i = 0; i < CURVE_COUNT; i++) {
        curves[i] = td_arena_array(&arena, double, count);
    }
    for (size_t i = 0; i < count; i++) {
        double demand = (double)ticks[i].demand_milli;
        curves[REPLICAS][i] = ticks[i].replicas;
        curves[REQUEST][i] = (double)ticks[i].request_milli;
        curves[TOTAL][i] = (double)ticks[i].request_milli * ticks[i].replicas / 1000;
        curves[NEEDED][i] = demand * 100 / loop->utilization / 1000;
        curves[DEMAND][i] = demand / 1000;
    }
    const struct td_plot_line replicas[] = {{.label = TD_STR("replicas"),
                                             .colour = TD_STR("#1f6feb"),
                                             .values = curves[REPLICAS],
                                             .count = count}};
    const struct td_plot_line request[] = {{.label = TD_STR("request"),
                                            .colour = TD_STR("#bf3989"),
                                            .values = curves[REQUEST],
                                            .count = count}};
    const struct td_plot_line total[] = {
        {.label = TD_STR("all requests"),
         .colour = TD_STR("#1a7f37"),
         .values = curves[TOTAL],
         .count = count},
        {.label = TD_STR("needed at target"),
         .colour = TD_STR("#57606a"),
         .values = curves[NEEDED],
         .count = count,
         .is_dashed = true},
        {.label = TD_STR("used"),
         .colour = TD_STR("#9a6700"),
         .values = curves[DEMAND],
         .count = count},
    };
    const struct td_plot_panel panels[] = {
        {.title = TD_STR("Replicas"), .lines = replicas, .line_count = 1},
        {.title = TD_STR("CPU request of one pod, millicores"), .lines = request, .line_count = 1},
        {.title = TD_STR("CPU of all pods, cores"), .lines = total, .line_count = 3},
    };
    const struct td_plot plot = {
        .title = title,
        .x_label = TD_STR("minutes"),
        .x_step = (double)TD_CLOSED_TICK_SECONDS / 60,
        .panels = panels,
        .panel_count = 3,
    };
    td_plot_write(&plot, out);
}
