/*
 * `tandem simulate`: one scenario from its begin to its end on a virtual clock
 * (sim/world/world.h), a progress line meanwhile, and the report as a table, JSON or YAML.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/file.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "cli/bar.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_flags.h"
#include "cli/scenario_path.h"
#include "cli/simulate_table.h"
#include "cli/up/screen.h"
#include "cli/world_flags.h"
#include "local/nodes/node_object.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"
#include "sim/world/world_report.h"

#define SIMULATE_START (INT64_C(1704067200) * TD_SECOND) /* Monday, 2024-01-01T00:00:00Z */
#define SIMULATE_NODES 3
#define SIMULATE_METRICS_MODE 0644
#define SIMULATE_LOOKS 500 /* moments of a run at which the bar may be drawn */

static const char simulate_help[] =
    "run a scenario in virtual time, with the controllers on a local cluster\n\n"
    "  tandem simulate examples/shop              for example: three days in seconds\n"
    "  tandem simulate shop.yaml --for 6h --seed 3 --output json\n\n"
    "usage: tandem simulate [OPTIONS] SCENARIO\n\n"
    "  --for DURATION        simulated time: 90m, 3d (the scenario's duration)\n"
    "  --seed N              random seed (the scenario's)\n"
    "  --controllers LIST    controllers to run, of recommender, updater, admission,\n"
    "                        horizontal, hvpa, or none (all)\n"
    "  --feature-gates LIST  Name=true,Name=false, as of tandem run\n"
    "  --FLAG VALUE          flags of the controllers, as of tandem run\n"
    "                        (docs/run.md), such as --updater-interval 30s\n"
    "  --metrics FILE        write the controllers' /metrics of the end to FILE\n"
    "  --events              print a line for each event before the table\n"
    "  -o, --output FORMAT   table, json or yaml (table)\n"
    "  -q, --quiet           no progress bar, log errors only\n"
    "  -v, --verbose         print the cluster's log\n\n"
    "The same scenario and seed give the same output, byte for byte.\n"
    "Guide: docs/simulate.md\n";

struct simulate {
    const char *path;
    const char *metrics_path; /* NULL: metrics are not written */
    td_duration lasts;        /* 0: as the scenario says */
    bool shows_events;
    enum td_output output;
    struct td_world_flags flags;
    struct td_arena arena; /* of the scenario */
    struct td_scenario scenario;
    struct td_clock clock;
    struct td_log *log;
    struct td_loop *loop;
    struct td_timer *end;
    struct td_timer *progress;
    struct td_world *world;
    struct td_arena event_arena;
    struct td_json *events; /* NULL: not part of a table */
    uint64_t event_count;
    struct td_bar bar;
};

/* ---- While it runs ---- */

static void simulate_happened(const struct td_world_event *event, void *context)
{
    struct simulate *run = context;
    run->event_count++;
    if (run->events && run->events->count < TD_SIMULATE_EVENTS_MAX) {
        td_json_append(run->events, td_world_event_report(&run->event_arena, event));
    }
    if (run->shows_events) {
        td_auto_buf line = td_buf_capped(TD_LOG_LINE_BYTES_MAX);
        td_screen_event(event, false, &line);
        (void)fwrite(line.ptr, 1, line.len, stdout); /* main looks at the stream's state */
    }
}

static void simulate_end(struct td_timer *timer, void *context)
{
    struct simulate *run = context;
    (void)timer;
    td_loop_stop(run->loop);
}

static td_duration simulate_since(const struct simulate *run)
{
    return td_clock_wall(&run->clock) - SIMULATE_START;
}

static void simulate_draw(struct simulate *run)
{
    if (!td_bar_is_due(&run->bar)) {
        return;
    }
    double passed = (double)td_bar_passed(&run->bar);
    double share = (double)simulate_since(run) / (double)run->lasts;
    double left = share > 0 ? passed / (double)TD_SECOND * (1 - share) / share : 0;
    td_bar_draw(&run->bar, "simulating", share, "%.0fx  %.0f s left",
                (double)simulate_since(run) / passed, left);
}

/* The timer is there with and without a terminal, so that a run does not depend on it. */
static void simulate_look(struct td_timer *timer, void *context)
{
    struct simulate *run = context;
    simulate_draw(run);
    td_timer_set(timer, run->lasts / SIMULATE_LOOKS + TD_MILLISECOND);
}

static int simulate_run(struct simulate *run, struct td_error *err)
{
    const struct td_node_size nodes = td_node_size_usual(SIMULATE_NODES);
    const struct td_world_options options = {
        .loop = run->loop,
        .log = run->log,
        .scenario = &run->scenario,
        .seed = run->flags.seed,
        .has_seed = run->flags.has_seed,
        .nodes = &nodes,
        .node_size_count = 1,
        .controllers = run->flags.has_controllers ? &run->flags.controllers : NULL,
        .has_no_strategy = !run->flags.controllers.selection_strategy_gate,
        .happened = simulate_happened,
        .context = run,
    };
    /* Events tell most of it. */
    run->flags.controllers.log = run->flags.level == TD_LOG_DEBUG ? run->log : NULL;
    int code = td_world_new(&options, &run->world, err);
    if (code != TD_OK) {
        return code;
    }
    run->end = td_timer_new(run->loop, simulate_end, run);
    run->progress = td_timer_new(run->loop, simulate_look, run);
    td_timer_set(run->end, run->lasts - simulate_since(run));
    td_timer_set(run->progress, run->lasts / SIMULATE_LOOKS + TD_MILLISECOND);
    code = td_loop_run(run->loop, err);
    td_bar_clear(&run->bar);
    return code;
}

/* ---- Afterwards ---- */

static int simulate_print(struct simulate *run)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    if (run->output == TD_OUTPUT_TABLE) {
        td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
        struct td_world_view view;
        td_world_look(run->world, &arena, &view);
        const struct td_table_options shape = {.width = td_output_width(),
                                               .has_utf8 = td_output_has_utf8()};
        td_simulate_table(&view, run->scenario.ns, &shape, &arena, &text);
        (void)fwrite(text.ptr, 1, text.len, stdout); /* main looks at the stream's state */
        return TD_EXIT_DONE;
    }
    struct td_json *report = td_world_report(run->world, &arena);
    uint64_t cut = run->event_count - run->events->count;
    td_json_set(&arena, report, TD_STR("events"), td_json_copy(&arena, run->events, false));
    if (cut > 0) {
        td_json_set_int64(&arena, report, TD_STR("eventsLeftOut"), (int64_t)cut);
    }
    return td_output_print(report, run->output);
}

/* ---- Options ---- */

static int simulate_parse_for(void *place, const char *text)
{
    td_duration *lasts = place;
    return td_scenario_parse_duration(td_str_from(text), lasts) && *lasts > 0
               ? TD_EXIT_DONE
               : td_command_fail("simulate: --for: '%s': must be a duration such as 90m, 6h or 3d",
                                 text);
}

static int simulate_parse_output(void *place, const char *word)
{
    return td_output_parse("simulate", word, place);
}

static const struct td_option simulate_options[] = {
    TD_OPTION("for", 0, struct simulate, lasts, simulate_parse_for),
    TD_OPTION_TEXT("metrics", 0, struct simulate, metrics_path),
    TD_OPTION_FLAG("events", 0, struct simulate, shows_events),
    TD_OPTION("output", 'o', struct simulate, output, simulate_parse_output),
    TD_WORLD_OPTIONS(struct simulate, flags),
};

/* -1: go on. */
static int simulate_parse(struct simulate *run, int argc, char **argv)
{
    const struct td_options options = {"simulate", simulate_help, simulate_options,
                                       TD_COUNT(simulate_options)};
    struct td_error err = TD_ERROR_INIT;
    if (td_run_flags_extract(&run->arena, &argc, argv, &run->flags.controllers, &err) != TD_OK) {
        return td_command_fail("simulate: %s", err.message);
    }
    int status = td_options_parse(&options, run, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (optind + 1 != argc) {
        return td_command_fail(optind == argc
                                   ? "simulate: no scenario; for example 'tandem simulate "
                                     "examples/shop'"
                                   : "simulate: takes one scenario; see 'tandem simulate --help'");
    }
    if (run->shows_events && run->output != TD_OUTPUT_TABLE) {
        return td_command_fail("simulate: --events: only allowed with --output table; json and "
                               "yaml contain the events");
    }
    run->path = argv[optind];
    return -1;
}

static int simulate_load(struct simulate *run, struct td_error *err)
{
    run->path = td_scenario_path(&run->arena, run->path);
    int code = td_scenario_load(&run->arena, run->path, &run->scenario, err);
    if (code != TD_OK) {
        return code;
    }
    run->lasts = run->lasts > 0 ? run->lasts : run->scenario.duration;
    if (run->lasts == 0) {
        return td_error_set(err, TD_INVALID,
                            "simulate: %s: the scenario has no duration; use --for", run->path);
    }
    return TD_OK;
}

static int simulate_write_metrics(struct simulate *run, struct td_error *err)
{
    struct td_controllers *controllers = td_world_controllers(run->world);
    td_auto_buf text = td_buf_capped(TD_METRIC_TEXT_BYTES_MAX);
    if (!run->metrics_path) {
        return TD_OK;
    }
    if (controllers) {
        td_controllers_write_metrics(controllers, &text);
    }
    return td_file_write(run->metrics_path, SIMULATE_METRICS_MODE, td_buf_str(&text), err);
}

int td_command_simulate(int argc, char **argv)
{
    struct simulate run = {.flags = {.command = "simulate",
                                     .level = TD_LOG_WARN,
                                     .has_controllers = true,
                                     .controllers = td_controllers_options_default()}};
    td_arena_init(&run.arena, TD_TREE_ARENA_BYTES_MAX);
    int status = simulate_parse(&run, argc, argv);
    if (status >= 0) {
        td_arena_done(&run.arena);
        return status;
    }
    struct td_error err = TD_ERROR_INIT;
    td_arena_init(&run.event_arena, TD_TREE_ARENA_BYTES_MAX);
    run.events = run.output == TD_OUTPUT_TABLE ? NULL : td_json_new_array(&run.event_arena);
    td_bar_begin(&run.bar, run.flags.is_quiet);
    run.clock = td_clock_virtual(SIMULATE_START);
    run.log = td_log_new(&(struct td_log_options){
        .stream = stderr, .clock = &run.clock, .level = run.flags.level, .format = TD_LOG_TEXT});
    int code = simulate_load(&run, &err);
    if (code == TD_OK) {
        code = td_loop_new(&run.clock, &run.loop, &err);
    }
    if (code == TD_OK) {
        code = simulate_run(&run, &err);
    }
    code = code == TD_OK ? simulate_write_metrics(&run, &err) : code;
    status = code == TD_OK ? simulate_print(&run) : td_command_fail("%s", err.message);
    td_timer_free(run.end);
    td_timer_free(run.progress);
    td_world_free(run.world);
    td_loop_free(run.loop);
    td_log_free(run.log);
    td_arena_done(&run.event_arena);
    td_arena_done(&run.arena);
    return status;
}
