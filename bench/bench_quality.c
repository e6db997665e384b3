/*
 * What autoscalers decide, in closed loop: eight loads of four days on a local cluster in virtual
 * time with the controllers as they run, each load under no autoscaling, an HPA, a VPA, both, and
 * an Hvpa in each mode, with each estimator; three seeds. Each scenario and seed is one process,
 * two at a time. Set-ups share the cluster and nothing else. Ends with 1 where a rule of
 * quality/judge.c is broken. Arguments: scenarios, set-ups (by how their names begin), and a number
 * for fewer seeds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "control/controllers.h"
#include "local/engine/series.h"
#include "quality/judge.h"
#include "quality/picture.h"
#include "quality/scenarios.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"

#define START (INT64_C(1704326400) * TD_SECOND) /* Thursday, 2024-01-04T00:00:00Z */
#define SPAN (4 * 24 * TD_HOUR)
#define LOOKS ((size_t)(4 * 24 * 60)) /* one a minute */
#define GIB 1073741824.0
#define GIB_A_CORE 7.5
#define PROCESSES 2
#define TEXT_BYTES ((size_t)1 << 22)
#define RESULT_PATH "build/quality.json"

struct sample {
    double latency; /* seconds */
    double weight;  /* requests a second */
};

/* One workload while the run goes on. */
struct watched {
    struct sample samples[LOOKS];
    size_t sample_count;
    int64_t replicas;
    size_t changes;
};

struct run {
    const struct quality_setup *setups;
    size_t setup_count;
    struct td_clock clock;
    struct td_loop *loop;
    struct td_arena arena;
    struct td_scenario scenario;
    struct td_world *world;
    struct td_timer *timer;
    struct watched *watched;
};

static void must(int code, const struct td_error *err)
{
    if (code != TD_OK) {
        (void)fprintf(stderr, "bench_quality: %s\n", err->message);
        _Exit(2);
    }
}

static size_t setup_of(const struct run *run, td_str name)
{
    size_t i = 0;
    while (i < run->setup_count && !td_str_equal(name, td_str_from(run->setups[i].name))) {
        i++;
    }
    return i;
}

/* Rows of one workload by role follow each other; the sums are by workload. */
static void look(struct run *run)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_world_view view;
    int64_t replicas[QUALITY_SETUPS_MAX] = {0};
    double latency[QUALITY_SETUPS_MAX] = {0};
    td_world_look(run->world, &arena, &view);
    for (size_t i = 0; i < view.row_count; i++) {
        size_t setup = setup_of(run, view.rows[i].load.name);
        if (setup < run->setup_count) {
            replicas[setup] += view.rows[i].replicas;
            latency[setup] = view.rows[i].latency_seconds;
        }
    }
    for (size_t i = 0; i < run->setup_count; i++) {
        struct watched *watched = &run->watched[i];
        const struct td_demand *demand = &run->scenario.demands[i];
        watched->changes += watched->sample_count > 0 && watched->replicas != replicas[i] ? 1 : 0;
        watched->replicas = replicas[i];
        if (watched->sample_count < LOOKS) {
            watched->samples[watched->sample_count] = (struct sample){
                .latency = latency[i],
                .weight = td_series_at(&demand->requests, view.since, demand->seed)};
            watched->sample_count++;
        }
    }
}

static void tick(struct td_timer *timer, void *context)
{
    struct run *run = context;
    if (td_clock_wall(&run->clock) - START >= SPAN) {
        td_loop_stop(run->loop);
        return;
    }
    look(run);
    td_timer_set(timer, TD_MINUTE);
}

static int by_latency(const void *a, const void *b)
{
    double x = ((const struct sample *)a)->latency;
    double y = ((const struct sample *)b)->latency;
    return x < y ? -1 : x > y;
}

static double quantile(const struct watched *watched, double all, double share)
{
    double sum = 0;
    size_t i = 0;
    for (; i + 1 < watched->sample_count; i++) {
        sum += watched->samples[i].weight;
        if (sum >= all * share) {
            break;
        }
    }
    return watched->sample_count > 0 ? watched->samples[i].latency * 1000 : 0;
}

static void conclude(struct run *run, struct quality_figures *figures)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_world_view view;
    td_world_look(run->world, &arena, &view);
    for (size_t i = 0; i < view.row_count; i++) {
        const struct td_world_row *row = &view.rows[i];
        size_t setup = setup_of(run, row->load.name);
        if (setup == run->setup_count) {
            continue;
        }
        struct quality_figures *f = &figures[setup];
        f->cost += row->load.totals.requested_cpu_seconds / 3600 +
                   row->load.totals.requested_byte_seconds / GIB / GIB_A_CORE / 3600;
        f->mean = row->mean_latency_seconds * 1000; /* of the stream, the same in every row */
        f->dropped = row->dropped;
        f->ooms += (double)row->load.kill_count;
        f->evictions += (double)row->eviction_count;
        f->resizes += (double)row->resize_count;
    }
    for (size_t i = 0; i < run->setup_count; i++) {
        struct watched *watched = &run->watched[i];
        double all = 0;
        for (size_t k = 0; k < watched->sample_count; k++) {
            all += watched->samples[k].weight;
        }
        qsort(watched->samples, watched->sample_count, sizeof(watched->samples[0]), by_latency);
        figures[i].requests = all * 60;
        figures[i].p50 = quantile(watched, all, 0.5);
        figures[i].p99 = quantile(watched, all, 0.99);
        figures[i].changes = (double)watched->changes;
    }
}

static void write_file(const char *path, const struct td_buf *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fwrite(text->ptr, 1, text->len, file) != text->len || fclose(file) != 0) {
        (void)fprintf(stderr, "bench_quality: %s cannot be written\n", path);
        _Exit(2);
    }
}

/* The files stay, so that a run can be looked at with `tandem simulate`. */
static void load(struct run *run, const struct quality_scenario *scenario, size_t seed)
{
    struct td_error err = TD_ERROR_INIT;
    char path[256];
    td_auto_buf text = td_buf_capped(TEXT_BYTES);
    (void)mkdir("build", 0777);
    (void)mkdir("build/quality", 0777);
    (void)snprintf(path, sizeof(path), "build/quality/%s-%zu", scenario->name, seed);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof(path), "build/quality/%s-%zu/objects.yaml", scenario->name, seed);
    quality_write_objects(scenario, run->setups, run->setup_count, &text);
    write_file(path, &text);
    td_buf_reset(&text);
    (void)snprintf(path, sizeof(path), "build/quality/%s-%zu/scenario.yaml", scenario->name, seed);
    quality_write_scenario(scenario, run->setups, run->setup_count, &text);
    write_file(path, &text);
    must(td_scenario_load(&run->arena, path, &run->scenario, &err), &err);
    td_scenario_set_seed(&run->arena, &run->scenario, seed);
    /* The same noise for all, so that set-ups differ by what they decide only. */
    struct td_demand *demands =
        td_arena_array(&run->arena, struct td_demand, run->scenario.demand_count);
    for (size_t i = 0; i < run->scenario.demand_count; i++) {
        demands[i] = run->scenario.demands[i];
        demands[i].seed = run->scenario.demands[0].seed;
    }
    run->scenario.demands = demands;
}

static void simulate(const struct quality_table *table, size_t scenario, size_t seed,
                     struct quality_figures *ret)
{
    struct td_error err = TD_ERROR_INIT;
    struct run run = {.setups = table->setups,
                      .setup_count = table->setup_count,
                      .clock = td_clock_virtual(START),
                      .watched = calloc(table->setup_count, sizeof(struct watched))};
    struct td_controllers_options controllers = td_controllers_options_default();
    if (!run.watched) {
        _Exit(2);
    }
    td_arena_init(&run.arena, TD_TREE_ARENA_BYTES_MAX);
    load(&run, &quality_scenarios[scenario], seed);
    must(td_loop_new(&run.clock, &run.loop, &err), &err);
    const struct td_world_options options = {
        .loop = run.loop,
        .scenario = &run.scenario,
        .seed = seed,
        .has_seed = true,
        .controllers = &controllers,
    };
    must(td_world_new(&options, &run.world, &err), &err);
    run.timer = td_timer_new(run.loop, tick, &run);
    td_timer_set(run.timer, TD_MINUTE);
    must(td_loop_run(run.loop, &err), &err);
    conclude(&run, ret);
    td_timer_free(run.timer);
    td_world_free(run.world);
    td_loop_free(run.loop);
    td_arena_done(&run.arena);
    free(run.watched);
}

/* ---- Processes ---- */

struct child {
    pid_t pid;
    int from;
    size_t scenario;
    size_t seed;
};

static struct child begin(const struct quality_table *table, size_t scenario, size_t seed)
{
    int ends[2];
    struct child child = {.scenario = scenario, .seed = seed};
    (void)fflush(NULL);
    if (pipe(ends) != 0 || (child.pid = fork()) < 0) {
        _Exit(2);
    }
    if (child.pid == 0) {
        struct quality_figures figures[QUALITY_SETUPS_MAX] = {{.cost = 0}};
        size_t bytes = table->setup_count * sizeof(figures[0]);
        (void)close(ends[0]);
        simulate(table, scenario, seed + 1, figures);
        _Exit(write(ends[1], figures, bytes) == (ssize_t)bytes ? 0 : 2);
    }
    (void)close(ends[1]);
    child.from = ends[0];
    return child;
}

/* The figures of one run are less than what a pipe holds, so that no child waits for its reader. */
static void end(struct quality_table *table, const struct child *child)
{
    struct quality_figures figures[QUALITY_SETUPS_MAX];
    size_t bytes = table->setup_count * sizeof(figures[0]);
    bool is_read = read(child->from, figures, bytes) == (ssize_t)bytes;
    int status = 0;
    (void)close(child->from);
    (void)waitpid(child->pid, &status, 0);
    if (!is_read || status != 0) {
        (void)fprintf(stderr, "bench_quality: %s, seed %zu: the run failed\n",
                      quality_scenarios[child->scenario].name, child->seed + 1);
        _Exit(2);
    }
    for (size_t i = 0; i < table->setup_count; i++) {
        table->figures[child->scenario][i][child->seed] = figures[i];
    }
}

static void run_all(struct quality_table *table)
{
    struct child children[QUALITY_SCENARIOS * QUALITY_SEEDS];
    size_t begun = 0;
    size_t ended = 0;
    for (size_t s = 0; s < QUALITY_SCENARIOS; s++) {
        for (size_t seed = 0; table->has[s] && seed < table->seed_count; seed++) {
            if (begun - ended == PROCESSES) {
                end(table, &children[ended]);
                ended++;
            }
            children[begun] = begin(table, s, seed);
            begun++;
        }
    }
    while (ended < begun) {
        end(table, &children[ended]);
        ended++;
    }
}

static bool choose(struct quality_table *table, const char *word)
{
    char *after = NULL;
    unsigned long seeds = strtoul(word, &after, 10);
    if (*after == '\0' && seeds > 0 && seeds <= QUALITY_SEEDS) {
        table->seed_count = seeds;
        return true;
    }
    for (size_t s = 0; s < QUALITY_SCENARIOS; s++) {
        if (strcmp(word, quality_scenarios[s].name) == 0) {
            table->has[s] = true;
            table->scenario_count++;
            return true;
        }
    }
    for (size_t i = 0; i < table->setup_count; i++) {
        if (strncmp(word, table->setups[i].name, strlen(word)) == 0) {
            table->is_chosen[i] = true;
            table->chosen_count++;
        }
    }
    return table->chosen_count > 0;
}

/* Of all set-ups those that were asked for, and the two that others are measured by. */
static void keep_chosen(struct quality_table *table)
{
    size_t count = 0;
    for (size_t i = 0; table->chosen_count > 0 && i < table->setup_count; i++) {
        if (table->is_chosen[i] || quality_is_measure(table->setups[i].name)) {
            table->setups[count] = table->setups[i];
            count++;
        }
    }
    table->setup_count = table->chosen_count > 0 ? count : table->setup_count;
}

int main(int argc, char **argv)
{
    static struct quality_table table = {.seed_count = QUALITY_SEEDS};
    struct timespec before;
    struct timespec after;
    table.setup_count = quality_setups(table.setups);
    for (int i = 1; i < argc; i++) {
        if (!choose(&table, argv[i])) {
            (void)fprintf(stderr, "bench_quality: '%s' is no scenario, set-up or number of seeds\n",
                          argv[i]);
            return 2;
        }
    }
    keep_chosen(&table);
    for (size_t s = 0; table.scenario_count == 0 && s < QUALITY_SCENARIOS; s++) {
        table.has[s] = true;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &before);
    run_all(&table);
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    quality_print(&table);
    printf("bench quality_elapsed %.0f s\n", (double)(after.tv_sec - before.tv_sec));
    if (!quality_write_json(&table, RESULT_PATH)) {
        (void)fprintf(stderr, "bench_quality: " RESULT_PATH " cannot be written\n");
        return 2;
    }
    for (size_t s = 0; s < QUALITY_SCENARIOS; s++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "build/quality/%s.svg", quality_scenarios[s].name);
        if (table.has[s] && !quality_write_picture(&table, s, path)) {
            (void)fprintf(stderr, "bench_quality: %s cannot be written\n", path);
            return 2;
        }
    }
    return quality_judge(&table) > 0 ? 1 : 0;
}
