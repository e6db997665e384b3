/*
 * `tandem simulate`: scenarios one after the other (cli/simulate/simulate_run.h), of each a table
 * or a tree, of all of them one report, and the rules that none of them may meet.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report_file.h"
#include "cli/run/run_flags.h"
#include "cli/simulate/simulate_run.h"
#include "cli/simulate/simulate_table.h"

static const char simulate_help[] =
    "run a scenario in virtual time, with the controllers on a local cluster\n\n"
    "  tandem simulate examples/shop              for example: three days in seconds\n"
    "  tandem simulate shop.yaml --for 6h --seed 3 --output json\n"
    "  tandem simulate before.yaml after.yaml --report difference.html\n"
    "  tandem simulate shop.yaml --fail-if 'web.latency.p99 > 200ms'\n\n"
    "usage: tandem simulate [OPTIONS] SCENARIO...\n\n"
    "  --for DURATION        simulated time: 90m, 3d (the scenario's duration)\n"
    "  --seed N              random seed (the scenario's)\n"
    "  --controllers LIST    controllers to run, of recommender, updater, admission,\n"
    "                        horizontal, hvpa, or none (all)\n"
    "  --feature-gates LIST  Name=true,Name=false, as of tandem run\n"
    "  --FLAG VALUE          flags of the controllers, as of tandem run\n"
    "                        (docs/run.md), such as --updater-interval 30s\n"
    "  --report FILE         write one HTML file with scores, plots and decisions,\n"
    "                        several scenarios side by side\n"
    "  --fail-if RULE        exit 1 when the rule holds at the end; may be repeated\n"
    "                        (docs/report.md), such as 'web.ooms > 0'\n"
    "  --metrics FILE        write the controllers' /metrics of the end to FILE\n"
    "  --events              print a line for each event before the table\n"
    "  -o, --output FORMAT   table, json or yaml (table)\n"
    "  -q, --quiet           no progress bar, log errors only\n"
    "  -v, --verbose         print the cluster's log\n\n"
    "The same scenario and seed give the same output, byte for byte.\n"
    "Exit status: 0 done, 1 a rule of --fail-if holds, 2 a scenario cannot be run.\n"
    "Guide: docs/simulate.md\n";

/* ---- What is printed ---- */

static void simulate_print_table(const struct simulate *simulate, const struct simulate_run *run)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    td_auto_buf text = td_buf_capped(TD_TREE_ARENA_BYTES_MAX);
    const struct td_table_options shape = {.width = td_output_width(),
                                           .has_utf8 = td_output_has_utf8()};
    if (simulate->run_count > 1 && !simulate->shows_events) {
        (void)printf("%s:\n", run->path); /* main looks at the stream's state */
    }
    td_simulate_table(&run->view, run->scenario.ns, &shape, &arena, &text);
    (void)fwrite(text.ptr, 1, text.len, stdout); /* the same */
}

static int simulate_print_trees(struct simulate *simulate)
{
    struct td_arena *arena = &simulate->arena;
    if (simulate->run_count == 1) {
        return td_output_print(simulate->runs[0].report, simulate->output);
    }
    struct td_json *all = td_json_new_object(arena);
    struct td_json *list = td_json_new_array(arena);
    for (size_t i = 0; i < simulate->run_count; i++) {
        const struct simulate_run *run = &simulate->runs[i];
        struct td_json *item = td_json_copy(arena, run->report, false);
        td_json_set_str(arena, item, TD_STR("file"), td_str_from(run->path));
        td_json_append(list, item);
    }
    td_json_set(arena, all, TD_STR("runs"), list);
    return td_output_print(all, simulate->output);
}

static struct td_report_run simulate_report_run(struct simulate *simulate,
                                                const struct simulate_run *run)
{
    const struct simulate_rules *rules = &simulate->rules;
    struct td_report_rule *told =
        td_arena_array(&simulate->arena, struct td_report_rule, rules->count + 1);
    for (size_t i = 0; i < rules->count; i++) {
        told[i] = (struct td_report_rule){.rule = &rules->items[i], .verdict = &run->verdicts[i]};
    }
    return (struct td_report_run){
        .name = td_str_from(run->path),
        .scenario = &run->scenario,
        .text = run->text,
        .seed = simulate->flags.has_seed ? simulate->flags.seed : run->scenario.seed,
        .view = &run->view,
        .record = run->record,
        .rules = told,
        .rule_count = rules->count,
    };
}

static int simulate_write_report(struct simulate *simulate, struct td_error *err)
{
    td_auto_buf data = td_buf_capped(TD_REPORT_BYTES_MAX);
    struct td_report_run *runs =
        td_arena_array(&simulate->arena, struct td_report_run, simulate->run_count);
    td_str title = TD_STR("tandem simulate:");
    for (size_t i = 0; i < simulate->run_count; i++) {
        const struct simulate_run *run = &simulate->runs[i];
        runs[i] = simulate_report_run(simulate, run);
        title = td_arena_format(&simulate->arena, "%.*s%s %.*s", TD_STR_ARG(title),
                                i > 0 ? "," : "", TD_STR_ARG(run->scenario.name));
    }
    const struct td_report_head head = td_report_head(title, simulate->command);
    td_report_simulate(&head, runs, simulate->run_count, &data);
    return td_report_save(simulate->report_path, title, &data, err);
}

/* One line for each rule that holds. */
static int simulate_tell_rules(struct simulate *simulate)
{
    int status = TD_EXIT_DONE;
    for (size_t i = 0; i < simulate->run_count; i++) {
        const struct simulate_run *run = &simulate->runs[i];
        for (size_t r = 0; r < simulate->rules.count; r++) {
            const struct td_rule *rule = &simulate->rules.items[r];
            if (run->verdicts[r].is_broken) {
                td_str value = td_rule_value(&simulate->arena, rule, &run->verdicts[r]);
                (void)td_command_fail("simulate: %s: '%.*s': it is %.*s", run->path,
                                      TD_STR_ARG(rule->text), TD_STR_ARG(value));
                status = TD_EXIT_PROBLEMS;
            }
        }
    }
    return status;
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

static int simulate_parse_rule(void *place, const char *text)
{
    struct simulate_rules *rules = place;
    struct td_error err = TD_ERROR_INIT;
    struct td_rule rule;
    if (rules->count == TD_RECORD_RULES_MAX) {
        return td_command_fail("simulate: --fail-if: more than %zu rules", TD_RECORD_RULES_MAX);
    }
    if (td_rule_parse(&rules->arena, td_str_from(text), &rule, &err) != TD_OK) {
        return td_command_fail("simulate: --fail-if: %s", err.message);
    }
    rules->items = td_arena_grow(&rules->arena, rules->items, rules->count, &rules->cap,
                                 sizeof(rules->items[0]));
    rules->items[rules->count++] = rule;
    return TD_EXIT_DONE;
}

static const struct td_option simulate_options[] = {
    TD_OPTION("for", 0, struct simulate, lasts, simulate_parse_for),
    TD_OPTION_TEXT("report", 0, struct simulate, report_path),
    TD_OPTION("fail-if", 0, struct simulate, rules, simulate_parse_rule),
    TD_OPTION_TEXT("metrics", 0, struct simulate, metrics_path),
    TD_OPTION_FLAG("events", 0, struct simulate, shows_events),
    TD_OPTION("output", 'o', struct simulate, output, simulate_parse_output),
    TD_WORLD_OPTIONS(struct simulate, flags),
};

/* What the words beside the options and some options together demand. -1: go on. */
static int simulate_check_words(const struct simulate *simulate, int count)
{
    struct td_error err = TD_ERROR_INIT;
    if (count == 0) {
        return td_command_fail("simulate: no scenario; for example 'tandem simulate "
                               "examples/shop'");
    }
    if ((size_t)count > TD_RECORD_RUNS_MAX) {
        return td_command_fail("simulate: more than %zu scenarios", TD_RECORD_RUNS_MAX);
    }
    if (count > 1 && simulate->metrics_path) {
        return td_command_fail("simulate: --metrics: only allowed with one scenario");
    }
    if (simulate->shows_events && simulate->output != TD_OUTPUT_TABLE) {
        return td_command_fail("simulate: --events: only allowed with --output table; json and "
                               "yaml contain the events");
    }
    return simulate->report_path && td_report_check(simulate->report_path, &err) != TD_OK
               ? td_command_fail("simulate: %s", err.message)
               : -1;
}

/* -1: go on. */
static int simulate_parse(struct simulate *simulate, int argc, char **argv)
{
    const struct td_options options = {"simulate", simulate_help, simulate_options,
                                       TD_COUNT(simulate_options)};
    struct td_error err = TD_ERROR_INIT;
    simulate->command = td_report_command(&simulate->arena, argc, argv);
    if (!td_options_is_question(argc, argv) &&
        td_run_flags_extract(&simulate->arena, &argc, argv, &simulate->flags.controllers, &err) !=
            TD_OK) {
        return td_command_fail("simulate: %s", err.message);
    }
    int status = td_options_parse(&options, simulate, argc, argv);
    status = status < 0 ? simulate_check_words(simulate, argc - optind) : status;
    if (status >= 0) {
        return status;
    }
    simulate->run_count = (size_t)(argc - optind);
    simulate->runs = td_arena_array(&simulate->arena, struct simulate_run, simulate->run_count);
    for (size_t i = 0; i < simulate->run_count; i++) {
        simulate->runs[i].path = argv[(size_t)optind + i];
        simulate->runs[i].simulate = simulate;
        td_arena_init(&simulate->runs[i].arena, TD_TREE_ARENA_BYTES_MAX);
    }
    return -1;
}

/* All scenarios are read, and all rules are looked at, before the first one runs. */
static int simulate_prepare(struct simulate *simulate, struct td_error *err)
{
    int code = TD_OK;
    for (size_t i = 0; code == TD_OK && i < simulate->run_count; i++) {
        code = simulate_run_load(&simulate->runs[i], err);
    }
    bool is_checked = simulate->run_count > 1 && simulate->rules.count > 0;
    for (size_t i = 0; code == TD_OK && is_checked && i < simulate->run_count; i++) {
        code = simulate_run_check(&simulate->runs[i], err);
    }
    return code;
}

static int simulate_do(struct simulate *simulate)
{
    struct td_error err = TD_ERROR_INIT;
    int code = simulate_prepare(simulate, &err);
    for (size_t i = 0; code == TD_OK && i < simulate->run_count; i++) {
        struct simulate_run *run = &simulate->runs[i];
        if (simulate->run_count > 1 && simulate->shows_events) {
            (void)printf("%s:\n", run->path); /* main looks at the stream's state */
        }
        code = simulate_run_do(run, &err);
        if (code == TD_OK && simulate->output == TD_OUTPUT_TABLE) {
            simulate_print_table(simulate, run);
        }
    }
    code = code == TD_OK && simulate->report_path ? simulate_write_report(simulate, &err) : code;
    if (code != TD_OK) {
        return td_command_fail("%s", err.message);
    }
    int status =
        simulate->output == TD_OUTPUT_TABLE ? TD_EXIT_DONE : simulate_print_trees(simulate);
    return status == TD_EXIT_DONE ? simulate_tell_rules(simulate) : status;
}

int td_command_simulate(int argc, char **argv)
{
    struct simulate simulate = {.flags = {.command = "simulate",
                                          .level = TD_LOG_WARN,
                                          .has_controllers = true,
                                          .controllers = td_controllers_options_default()}};
    td_arena_init(&simulate.arena, TD_TREE_ARENA_BYTES_MAX);
    td_arena_init(&simulate.rules.arena, TD_TREE_ARENA_BYTES_MAX);
    int status = simulate_parse(&simulate, argc, argv);
    if (status < 0) {
        td_bar_begin(&simulate.bar, simulate.flags.is_quiet);
        simulate.log = td_log_new(&(struct td_log_options){.stream = stderr,
                                                           .clock = &simulate.clock,
                                                           .level = simulate.flags.level,
                                                           .format = TD_LOG_TEXT});
        status = simulate_do(&simulate);
        for (size_t i = 0; i < simulate.run_count; i++) {
            simulate_run_done(&simulate.runs[i]);
        }
        td_log_free(simulate.log);
    }
    td_arena_done(&simulate.rules.arena);
    td_arena_done(&simulate.arena);
    return status;
}
