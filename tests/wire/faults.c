/*
 * Everything that goes wrong between a client and its API server, done on purpose: our whole client
 * follows ConfigMaps of the local cluster over TLS while they change, and whatever happens on the
 * way its cache comes back to exactly what the store has (name, uid, version of each object), tells
 * nothing that was not so, and never asks more often than a few times a second. One line a fault.
 *
 *     wire_faults                      every fault once, connections cut at each byte
 *     wire_faults FAULT                only that one of the tables
 *     wire_faults --soak 60 [SEED]     faults at random on clients that live as long as the run
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/str.h"
#include "faults_clocks.h"
#include "faults_run.h"
#include "faults_table.h"

#define SWEEP_RUNS 128          /* side by side */
#define SWEEP_CALLS_MAX 6       /* of one run: a list, its repetition, a watch and their like */
#define SWEEP_STREAM_BYTES 1600 /* of a watch: what there is, and some changes */
#define SWEEP_GZIP_STEP 11      /* every so many bytes of a coded list */
#define SOAK_STACKS 8
#define MEMORY_GROWTH_BYTES ((size_t)8 << 20)

static struct run runs[SWEEP_RUNS];

static size_t memory_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";
    if (!file || !fgets(line, sizeof(line), file)) {
        abort();
    }
    (void)fclose(file);
    char *second = strchr(line, ' ');
    return second ? (size_t)strtoull(second, NULL, 10) * 4096 : 0;
}

static bool memory_is_flat(const char *what, size_t before)
{
    size_t after = memory_bytes();
    size_t growth = after > before ? after - before : 0;
#ifdef KEEPS_FREED
    bool is_good = true; /* sanitizers keep what was freed */
#else
    bool is_good = growth <= MEMORY_GROWTH_BYTES;
#endif
    (void)printf("%s memory %s: %zu KiB, grown by %zu KiB\n", is_good ? "ok  " : "FAIL", what,
                 after >> 10, growth >> 10);
    return is_good;
}

/* ---- Each byte of an answer ---- */

struct sweep {
    const char *name;
    bool is_old;
    enum link_match match;
    bool is_gzip;
    size_t bytes; /* 0: as long as the answer is */
};

struct sweep_sum {
    size_t positions;
    size_t calls;
    size_t calls_most;
    double rate_most;
    td_duration slowest;
    size_t memory; /* when half of them were over; 0: not yet */
    bool is_good;
};

static void sweep_gzip(struct run *run)
{
    td_str text = bed_list_text(run->bed, &run->stack.arena);
    size_t whole = faults_gzip_bytes(text);
    run->plan.fault = LINK_ANSWER;
    run->plan.answer = faults_gzip_answer(&run->stack.arena, text,
                                          run->plan.at < whole ? whole - run->plan.at : 0);
}

static void sweep_fault(const struct sweep *sweep, size_t position, struct fault *ret)
{
    *ret = (struct fault){
        .name = sweep->name,
        .plan = {.fault = position % 2 == 0 ? LINK_CUT : LINK_RESET,
                 .match = sweep->match,
                 .at = position,
                 .count = 1},
        .start = FAULT_FIRST,
        .is_old = sweep->is_old,
        .stack = {.host = sweep->is_gzip ? "0.0.0.0" : NULL},
        .prepare = sweep->is_gzip ? sweep_gzip : NULL,
    };
}

static void sweep_add(struct sweep_sum *sum, const struct run *run)
{
    sum->positions++;
    sum->calls += run->calls;
    sum->calls_most = run->calls > sum->calls_most ? run->calls : sum->calls_most;
    double rate = run_calls_per_second(run);
    sum->rate_most = rate > sum->rate_most ? rate : sum->rate_most;
    sum->slowest = run->recovered > sum->slowest ? run->recovered : sum->slowest;
    if (run->problem[0] != '\0') {
        sum->is_good = false;
        (void)printf("FAIL fault %s at byte %zu: %s\n", run->fault->name, run->plan.at,
                     run->problem);
    }
}

/* How long is the answer to a list? */
static size_t sweep_list_bytes(struct bed *bed)
{
    static const struct fault fine = {
        .name = "none", .plan = {.fault = LINK_FINE}, .start = FAULT_LIVE, .is_old = true};
    static struct run probe;
    run_start(&probe, bed, &fine);
    (void)run_all(bed, &probe, 1);
    return probe.stack.link.list_bytes;
}

/* The next position begins where a run has ended, so that no run waits for the slowest. */
static void sweep_begin(struct bed *bed, const struct sweep *sweep, size_t position,
                        struct run *run)
{
    static struct fault cuts[SWEEP_RUNS];
    struct fault *cut = &cuts[run - runs];
    sweep_fault(sweep, position, cut);
    run_start(run, bed, cut);
}

static void sweep_positions(struct bed *bed, const struct sweep *sweep, struct sweep_sum *sum)
{
    size_t step = sweep->is_gzip ? SWEEP_GZIP_STEP : 1;
    size_t bytes = sweep->bytes > 0 ? sweep->bytes : sweep_list_bytes(bed);
    size_t position = 0;
    size_t open = 0;
    for (size_t i = 0; i < SWEEP_RUNS; i++) {
        runs[i].phase = RUN_NEW;
    }
    do {
        for (size_t i = 0; i < SWEEP_RUNS; i++) {
            struct run *run = &runs[i];
            if (run->phase != RUN_NEW) {
                run_step(run);
            }
            if (run->phase == RUN_DONE) {
                sweep_add(sum, run);
                run_stop(run);
                run->phase = RUN_NEW;
                open--;
            }
            if (run->phase == RUN_NEW && position < bytes && sum->is_good) {
                sweep_begin(bed, sweep, position, run);
                position += step;
                open++;
            }
        }
        bed_turn(bed);
        if (sum->memory == 0 && sum->positions >= bytes / step / 2) {
            sum->memory = memory_bytes();
        }
    } while (open > 0);
}

static bool sweep_run(struct bed *bed, const struct sweep *sweep)
{
    struct sweep_sum sum = {.is_good = true};
    sweep_positions(bed, sweep, &sum);
    sum.is_good = sum.is_good && sum.calls_most <= SWEEP_CALLS_MAX;
    (void)printf("%s fault %s: recovered in %lld ms, %zu calls, %.1f calls/s; the worst of %zu "
                 "positions, at most %zu calls each\n",
                 sum.is_good ? "ok  " : "FAIL", sweep->name,
                 (long long)(sum.slowest / TD_MILLISECOND), sum.calls, sum.rate_most, sum.positions,
                 sum.calls_most);
    bool is_flat = sum.memory == 0 || memory_is_flat(sweep->name, sum.memory);
    (void)fflush(stdout);
    return is_flat && sum.is_good;
}

/* ---- The whole set ---- */

/* With a name only that one. */
static size_t run_table(struct bed *bed, const struct fault *table, size_t table_count,
                        const char *name)
{
    size_t failed = 0;
    size_t count = 0;
    for (size_t i = 0; i < table_count; i++) {
        if (!name || strcmp(name, table[i].name) == 0) {
            run_start(&runs[count++], bed, &table[i]);
        }
    }
    (void)run_all(bed, runs, count); /* each one tells its own verdict */
    for (size_t i = 0; i < count; i++) {
        failed += !run_report(&runs[i]);
    }
    return failed;
}

static size_t run_everything(struct bed *bed, const char *name)
{
    static const struct sweep sweeps[] = {
        {"list-cut-at-each-byte", true, LINK_LIST, false, 0},
        {"watch-cut-at-each-byte", false, LINK_WATCH, false, SWEEP_STREAM_BYTES},
        {"truncated-gzip", true, LINK_LIST, true, 0},
    };
    size_t failed = 0;
    for (size_t i = 0; !name && i < sizeof(sweeps) / sizeof(sweeps[0]); i++) {
        failed += !sweep_run(bed, &sweeps[i]);
    }
    bed->is_steady = false;
    failed += run_table(bed, faults_table, faults_count, name);
    failed += run_table(bed, faults_alone, faults_alone_count, name);
    failed += !name || strcmp(name, "clocks") == 0 ? faults_clocks(bed) : 0;
    return failed;
}

/* ---- Soak ---- */

static const struct fault *soak_fault(struct bed *bed)
{
    return &faults_table[bed_random(bed) % faults_soak_count];
}

/* Another fault on the same client, unless it is one of new clients. */
static void soak_again(struct run *run)
{
    struct bed *bed = run->bed;
    const struct fault *fault = soak_fault(bed);
    if (fault->start == FAULT_FIRST) {
        run_stop(run);
        run_start(run, bed, fault);
    } else {
        run_again(run, fault);
    }
}

static size_t soak(struct bed *bed, int64_t seconds)
{
    size_t failed = 0;
    size_t count = 0;
    size_t memory = 0;
    td_duration begin = bed_now(bed);
    td_duration end = begin + seconds * TD_SECOND;
    bed->is_steady = false;
    for (size_t i = 0; i < SOAK_STACKS; i++) {
        run_start(&runs[i], bed, soak_fault(bed));
    }
    for (size_t open = SOAK_STACKS; open > 0;) {
        bed_turn(bed);
        memory = memory == 0 && bed_now(bed) - begin >= (end - begin) / 2 ? memory_bytes() : memory;
        for (size_t i = 0; i < SOAK_STACKS; i++) {
            if (runs[i].phase != RUN_NEW) {
                run_step(&runs[i]);
            }
            if (runs[i].phase != RUN_DONE) {
                continue;
            }
            count++;
            bool is_good = run_report(&runs[i]);
            failed += !is_good;
            if (is_good && bed_now(bed) < end) {
                soak_again(&runs[i]);
            } else {
                run_stop(&runs[i]);
                runs[i].phase = RUN_NEW;
                open--;
            }
        }
    }
    (void)printf("%s soak: %zu faults in %lld s, %zu failed\n", failed == 0 ? "ok  " : "FAIL",
                 count, (long long)((bed_now(bed) - begin) / TD_SECOND), failed);
    return failed + !memory_is_flat("soak", memory);
}

int main(int argc, char **argv)
{
    static struct bed bed;
    int64_t seconds = 0;
    int64_t seed = 1;
    bool is_soak = argc >= 3 && strcmp(argv[1], "--soak") == 0;
    if ((argc > 2 && !is_soak) || argc > 4 ||
        (is_soak && !td_str_to_int64(td_str_from(argv[2]), &seconds)) ||
        (argc > 3 && !td_str_to_int64(td_str_from(argv[3]), &seed))) {
        (void)fprintf(stderr, "usage: wire_faults [FAULT | --soak SECONDS [SEED]]\n");
        return 2;
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; /* many clients side by side need more than usual */
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    (void)printf("seed %lld\n", (long long)seed);
    bed_start(&bed, (uint64_t)seed);
    size_t failed = is_soak ? soak(&bed, seconds) : run_everything(&bed, argc > 1 ? argv[1] : NULL);
    bed_stop(&bed);
    (void)printf("%zu failed\n", failed);
    return failed == 0 ? 0 : 1;
}
