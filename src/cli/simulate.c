/*
 * `tandem simulate`: one scenario from its begin to its end on a virtual clock
 * (sim/world/world.h), a progress line meanwhile, and the report as a table, JSON or YAML.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/loop.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/scenario_path.h"
#include "cli/simulate_table.h"
#include "cli/up/screen.h"
#include "control/controllers.h"
#include "control/gates.h"
#include "local/nodes/node_object.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"
#include "sim/world/world_report.h"

#define SIMULATE_START (INT64_C(1704067200) * TD_SECOND) /* Monday, 2024-01-01T00:00:00Z */
#define SIMULATE_NODES 3
#define SIMULATE_LOOKS 500 /* moments of a run at which the bar may be drawn */
#define SIMULATE_BAR_AFTER (2 * TD_SECOND)
#define SIMULATE_BAR_EVERY (200 * TD_MILLISECOND)
#define SIMULATE_BAR_WIDTH 20

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
    "  --events              print a line for each event before the table\n"
    "  -o, --output FORMAT   table, json or yaml (table)\n"
    "  -q, --quiet           no progress bar, log errors only\n"
    "  -v, --verbose         print the cluster's log\n\n"
    "The same scenario and seed give the same output, byte for byte.\n"
    "Guide: docs/simulate.md\n";

struct simulate {
    const char *path;
    td_duration lasts; /* 0: as the scenario says */
    uint64_t seed;
    bool has_seed;
    bool shows_events;
    bool is_quiet;
    enum td_output output;
    enum td_log_level level;
    struct td_controllers_options controllers;
    bool has_controllers;
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
    struct td_clock real;
    td_duration real_start;
    td_duration bar_shown; /* when it was last drawn; 0: never */
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

/* Long runs only, on a terminal only. */
static void simulate_draw(struct simulate *run)
{
    td_duration now = td_clock_steady(&run->real);
    td_duration passed = now - run->real_start;
    if (run->is_quiet || passed < SIMULATE_BAR_AFTER || now - run->bar_shown < SIMULATE_BAR_EVERY) {
        return;
    }
    double share = (double)simulate_since(run) / (double)run->lasts;
    double left = share > 0 ? (double)passed / (double)TD_SECOND * (1 - share) / share : 0;
    double speed = (double)simulate_since(run) / (double)passed;
    int full = (int)(share * SIMULATE_BAR_WIDTH);
    run->bar_shown = now;
    (void)fputs("\rsimulating ", stderr); /* a bar that cannot be drawn is no failure */
    for (int i = 0; i < SIMULATE_BAR_WIDTH; i++) {
        (void)fputs(i < full ? "█" : "░", stderr);
    }
    (void)fprintf(stderr, " %3.0f%%  %.0fx  %.0f s left \033[K", share * 100, speed, left);
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
        .seed = run->seed,
        .has_seed = run->has_seed,
        .nodes = &nodes,
        .node_size_count = 1,
        .controllers = run->has_controllers ? &run->controllers : NULL,
        .happened = simulate_happened,
        .context = run,
    };
    run->controllers.log = run->level == TD_LOG_DEBUG ? run->log : NULL; /* events tell most */
    int code = td_world_new(&options, &run->world, err);
    if (code != TD_OK) {
        return code;
    }
    run->end = td_timer_new(run->loop, simulate_end, run);
    run->progress = td_timer_new(run->loop, simulate_look, run);
    td_timer_set(run->end, run->lasts - simulate_since(run));
    td_timer_set(run->progress, run->lasts / SIMULATE_LOOKS + TD_MILLISECOND);
    code = td_loop_run(run->loop, err);
    if (run->bar_shown > 0) {
        (void)fputs("\r\033[K", stderr); /* the same as above */
    }
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

static int simulate_parse_for(struct simulate *run, const char *text)
{
    if (!td_scenario_parse_duration(td_str_from(text), &run->lasts) || run->lasts <= 0) {
        return td_command_fail("simulate: --for: '%s': must be a duration such as 90m, 6h or 3d",
                               text);
    }
    return TD_EXIT_DONE;
}

static int simulate_parse_seed(struct simulate *run, const char *text)
{
    int64_t seed;
    if (!td_str_to_int64(td_str_from(text), &seed) || seed < 0) {
        return td_command_fail("simulate: --seed: '%s': must be a non-negative integer", text);
    }
    run->seed = (uint64_t)seed;
    run->has_seed = true;
    return TD_EXIT_DONE;
}

static int simulate_parse_controllers(struct simulate *run, const char *text)
{
    struct td_error err = TD_ERROR_INIT;
    run->has_controllers = strcmp(text, "none") != 0;
    if (run->has_controllers &&
        td_controllers_choose(td_str_from(text), run->controllers.has, &err) != TD_OK) {
        return td_command_fail("simulate: --controllers: %s", err.message);
    }
    return TD_EXIT_DONE;
}

enum {
    SIMULATE_OPTION_FOR = 256,
    SIMULATE_OPTION_SEED,
    SIMULATE_OPTION_EVENTS,
    SIMULATE_OPTION_CONTROLLERS,
    SIMULATE_OPTION_GATES
};

static int simulate_parse_gates(struct simulate *run, const char *text)
{
    struct td_error err = TD_ERROR_INIT;
    if (td_gates_set(&run->controllers, td_str_from(text), &err) != TD_OK) {
        return td_command_fail("simulate: %s", err.message);
    }
    return TD_EXIT_DONE;
}

/* -1: it is none. */
static int simulate_option(struct simulate *run, int option)
{
    switch (option) {
    case SIMULATE_OPTION_FOR:
        return simulate_parse_for(run, optarg);
    case SIMULATE_OPTION_SEED:
        return simulate_parse_seed(run, optarg);
    case SIMULATE_OPTION_EVENTS:
        run->shows_events = true;
        return TD_EXIT_DONE;
    case SIMULATE_OPTION_CONTROLLERS:
        return simulate_parse_controllers(run, optarg);
    case SIMULATE_OPTION_GATES:
        return simulate_parse_gates(run, optarg);
    case 'o':
        return td_output_parse("simulate", optarg, &run->output);
    case 'q':
        run->is_quiet = true;
        run->level = TD_LOG_ERROR;
        return TD_EXIT_DONE;
    case 'v':
        run->level = TD_LOG_DEBUG;
        return TD_EXIT_DONE;
    default:
        return -1;
    }
}

/* -1: go on. */
static int simulate_options(struct simulate *run, int argc, char **argv)
{
    static const struct option options[] = {
        {"for", required_argument, NULL, SIMULATE_OPTION_FOR},
        {"seed", required_argument, NULL, SIMULATE_OPTION_SEED},
        {"events", no_argument, NULL, SIMULATE_OPTION_EVENTS},
        {"controllers", required_argument, NULL, SIMULATE_OPTION_CONTROLLERS},
        {"feature-gates", required_argument, NULL, SIMULATE_OPTION_GATES},
        {"output", required_argument, NULL, 'o'},
        {"quiet", no_argument, NULL, 'q'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    opterr = 0; /* one line of ours instead of getopt's */
    for (int option; (option = getopt_long(argc, argv, ":o:qvh", options, NULL)) != -1;) {
        if (option == 'h') {
            (void)fputs(simulate_help, stdout); /* main looks at the stream's state */
            return TD_EXIT_DONE;
        }
        int status = simulate_option(run, option);
        if (status != TD_EXIT_DONE) {
            return status > 0 ? status : td_command_bad_option("simulate", options, option, argv);
        }
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

int td_command_simulate(int argc, char **argv)
{
    struct simulate run = {.is_quiet = !isatty(STDERR_FILENO),
                           .level = TD_LOG_WARN,
                           .has_controllers = true,
                           .controllers = td_controllers_options_default()};
    int status = simulate_options(&run, argc, argv);
    if (status >= 0) {
        return status;
    }
    struct td_error err = TD_ERROR_INIT;
    td_arena_init(&run.arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&run.event_arena, TD_TREE_ARENA_BYTES_MAX);
    run.events = run.output == TD_OUTPUT_TABLE ? NULL : td_json_new_array(&run.event_arena);
    run.real = td_clock_real();
    run.real_start = td_clock_steady(&run.real);
    run.clock = td_clock_virtual(SIMULATE_START);
    run.log = td_log_new(&(struct td_log_options){
        .stream = stderr, .clock = &run.clock, .level = run.level, .format = TD_LOG_TEXT});
    int code = simulate_load(&run, &err);
    if (code == TD_OK) {
        code = td_loop_new(&run.clock, &run.loop, &err);
    }
    if (code == TD_OK) {
        code = simulate_run(&run, &err);
    }
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
