/*
 * The inside of `tandem simulate`: one scenario from its begin to its end on a virtual clock, and
 * what is left of it.
 */
#pragma once

#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/loop.h"
#include "cli/bar.h"
#include "cli/output.h"
#include "cli/world_flags.h"
#include "sim/record/record.h"
#include "sim/record/rules.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"

/* One scenario. */
struct simulate_run {
    const char *path;
    struct td_arena arena; /* of the scenario, and of what is left */
    struct td_scenario scenario;
    td_str text; /* of its file */
    td_duration lasts;
    struct td_loop *loop;
    struct td_timer *end;
    struct td_timer *progress;
    struct td_world *world;
    struct td_record *record; /* NULL: no report and no rule needs it */
    struct td_json *events;   /* NULL: not part of a table */
    uint64_t event_count;
    struct td_world_view view;        /* of the end */
    struct td_json *report;           /* the same as a tree; NULL: a table is printed */
    struct td_rule_verdict *verdicts; /* one for each rule */
    struct simulate *simulate;
};

/* What all of them have in common. */
struct simulate {
    const char *metrics_path; /* NULL: metrics are not written */
    const char *report_path;  /* NULL: no report */
    td_duration lasts;        /* 0: as the scenario says */
    bool shows_events;
    enum td_output output;
    struct td_world_flags flags;
    struct simulate_rules {
        struct td_arena arena;
        struct td_rule *items; /* in the arena */
        size_t count;
        size_t cap;
    } rules;
    struct td_arena arena; /* of the command line */
    td_str command;
    struct td_clock clock;
    struct td_log *log;
    struct simulate_run *runs; /* in the arena */
    size_t run_count;
    struct td_bar bar;
};

int simulate_run_load(struct simulate_run *run, struct td_error *err);
/* Only looks whether the cluster can be made and has what the rules name. */
int simulate_run_check(struct simulate_run *run, struct td_error *err);
/* To its end. What is left is in the run; the cluster is gone. */
int simulate_run_do(struct simulate_run *run, struct td_error *err);
void simulate_run_done(struct simulate_run *run);
