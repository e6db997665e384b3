/*
 * A run has a loop, a world and two timers of its own, on the clock that all runs share and that
 * begins anew with each.
 */
#include "cli/simulate/simulate_run.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/file.h"
#include "base/os/log.h"
#include "cli/scenario_path.h"
#include "cli/up/screen.h"
#include "local/nodes/node_object.h"
#include "sim/world/world_report.h"

#define SIMULATE_START (INT64_C(1704067200) * TD_SECOND) /* Monday, 2024-01-01T00:00:00Z */
#define SIMULATE_NODES 3
#define SIMULATE_METRICS_MODE 0644
#define SIMULATE_LOOKS 500 /* moments of a run at which the bar may be drawn */

/* ---- While it runs ---- */

static void run_happened(const struct td_world_event *event, void *context)
{
    struct simulate_run *run = context;
    run->event_count++;
    if (run->record) {
        td_record_tell(run->record, event);
    }
    if (run->events && run->events->count < TD_SIMULATE_EVENTS_MAX) {
        td_json_append(run->events, td_world_event_report(&run->arena, event));
    }
    if (run->simulate->shows_events) {
        td_auto_buf line = td_buf_capped(TD_LOG_LINE_BYTES_MAX);
        td_screen_event(event, false, &line);
        (void)fwrite(line.ptr, 1, line.len, stdout); /* main looks at the stream's state */
    }
}

static void run_end(struct td_timer *timer, void *context)
{
    struct simulate_run *run = context;
    (void)timer;
    td_loop_stop(run->loop);
}

static td_duration run_since(const struct simulate_run *run)
{
    return td_clock_wall(&run->simulate->clock) - SIMULATE_START;
}

static void run_draw(struct simulate_run *run)
{
    struct td_bar *bar = &run->simulate->bar;
    if (!td_bar_is_due(bar)) {
        return;
    }
    double passed = (double)td_bar_passed(bar);
    double share = (double)run_since(run) / (double)run->lasts;
    double left = share > 0 ? passed / (double)TD_SECOND * (1 - share) / share : 0;
    td_bar_draw(bar, "simulating", share, "%.0fx  %.0f s left", (double)run_since(run) / passed,
                left);
}

/* The timer is there with and without a terminal, so that a run does not depend on it. */
static void run_look(struct td_timer *timer, void *context)
{
    struct simulate_run *run = context;
    run_draw(run);
    td_timer_set(timer, run->lasts / SIMULATE_LOOKS + TD_MILLISECOND);
}

/* ---- Its parts ---- */

int simulate_run_load(struct simulate_run *run, struct td_error *err)
{
    run->path = td_scenario_path(&run->arena, run->path);
    int code = td_scenario_load(&run->arena, run->path, &run->scenario, err);
    if (code == TD_OK && run->simulate->report_path) {
        code = td_file_read(run->path, &run->arena, TD_SCENARIO_BYTES_MAX, &run->text, err);
    }
    if (code != TD_OK) {
        return code;
    }
    run->lasts = run->simulate->lasts > 0 ? run->simulate->lasts : run->scenario.duration;
    if (run->lasts == 0) {
        return td_error_set(err, TD_INVALID,
                            "simulate: %s: the scenario has no duration; use --for", run->path);
    }
    return TD_OK;
}

static int run_make(struct simulate_run *run, struct td_error *err)
{
    struct simulate *simulate = run->simulate;
    const struct td_node_size nodes = td_node_size_usual(SIMULATE_NODES);
    simulate->clock = td_clock_virtual(SIMULATE_START);
    int code = td_loop_new(&simulate->clock, &run->loop, err);
    if (code != TD_OK) {
        return code;
    }
    const struct td_world_options options = {
        .loop = run->loop,
        .log = simulate->log,
        .scenario = &run->scenario,
        .seed = simulate->flags.seed,
        .has_seed = simulate->flags.has_seed,
        .nodes = &nodes,
        .node_size_count = 1,
        .controllers = simulate->flags.has_controllers ? &simulate->flags.controllers : NULL,
        .has_no_strategy = !simulate->flags.controllers.selection_strategy_gate,
        .happened = run_happened,
        .context = run,
    };
    /* Events tell most of it. */
    simulate->flags.controllers.log = simulate->flags.level == TD_LOG_DEBUG ? simulate->log : NULL;
    code = td_world_new(&options, &run->world, err);
    for (size_t i = 0; code == TD_OK && i < simulate->rules.count; i++) {
        code = td_rule_check(&simulate->rules.items[i], run->world, &run->scenario, err);
        code = code == TD_OK ? code : td_error_wrap(err, code, "simulate: --fail-if");
    }
    return code;
}

/* Of the cluster nothing is needed any more. */
static void run_unmake(struct simulate_run *run)
{
    td_timer_free(run->end);
    td_timer_free(run->progress);
    if (run->record) {
        td_record_end(run->record);
    }
    td_world_free(run->world);
    td_loop_free(run->loop);
    run->end = NULL;
    run->progress = NULL;
    run->world = NULL;
    run->loop = NULL;
}

int simulate_run_check(struct simulate_run *run, struct td_error *err)
{
    bool shows_events = run->simulate->shows_events;
    run->simulate->shows_events = false; /* of what does not count */
    int code = run_make(run, err);
    run_unmake(run);
    run->simulate->shows_events = shows_events;
    run->event_count = 0;
    return code;
}

static int run_write_metrics(const struct simulate_run *run, struct td_error *err)
{
    struct td_controllers *controllers = td_world_controllers(run->world);
    td_auto_buf text = td_buf_capped(TD_METRIC_TEXT_BYTES_MAX);
    if (!run->simulate->metrics_path) {
        return TD_OK;
    }
    if (controllers) {
        td_controllers_write_metrics(controllers, &text);
    }
    return td_file_write(run->simulate->metrics_path, SIMULATE_METRICS_MODE, td_buf_str(&text),
                         err);
}

static void run_take(struct simulate_run *run)
{
    const struct simulate_rules *rules = &run->simulate->rules;
    td_world_look(run->world, &run->arena, &run->view);
    run->verdicts = td_arena_array(&run->arena, struct td_rule_verdict, rules->count + 1);
    for (size_t i = 0; i < rules->count; i++) {
        run->verdicts[i] = td_rule_judge(&rules->items[i], &run->view, run->record);
    }
    if (run->events) {
        run->report = td_world_report(run->world, &run->arena);
        uint64_t cut = run->event_count - run->events->count;
        td_json_set(&run->arena, run->report, TD_STR("events"), run->events);
        if (cut > 0) {
            td_json_set_int64(&run->arena, run->report, TD_STR("eventsLeftOut"), (int64_t)cut);
        }
    }
}

int simulate_run_do(struct simulate_run *run, struct td_error *err)
{
    struct simulate *simulate = run->simulate;
    if (simulate->report_path || simulate->rules.count > 0) {
        run->record = td_record_new(run->lasts, 0);
    }
    if (simulate->output != TD_OUTPUT_TABLE) {
        run->events = td_json_new_array(&run->arena);
    }
    int code = run_make(run, err);
    if (code == TD_OK) {
        if (run->record) {
            td_record_begin(run->record, run->loop, run->world);
        }
        run->end = td_timer_new(run->loop, run_end, run);
        run->progress = td_timer_new(run->loop, run_look, run);
        td_timer_set(run->end, run->lasts - run_since(run));
        td_timer_set(run->progress, run->lasts / SIMULATE_LOOKS + TD_MILLISECOND);
        code = td_loop_run(run->loop, err);
        td_bar_clear(&simulate->bar);
    }
    code = code == TD_OK ? run_write_metrics(run, err) : code;
    if (code == TD_OK) {
        run_take(run);
    }
    run_unmake(run);
    return code;
}

void simulate_run_done(struct simulate_run *run)
{
    run_unmake(run);
    td_record_free(run->record);
    td_arena_done(&run->arena);
}
