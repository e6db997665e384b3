#include "faults_run.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"

#define RUN_PATIENCE (90 * TD_SECOND)    /* for the whole run */
#define RUN_REST (1500 * TD_MILLISECOND) /* that a client has between two faults */
#define RUN_USER_TRIES_MAX 5             /* of one call of a user, while the server refuses all */
#define RUN_WRITES_SEEN 3                /* changes behind the fault that the cache must follow */

void run_start(struct run *run, struct bed *bed, const struct fault *fault)
{
    *run = (struct run){.bed = bed,
                        .fault = fault,
                        .plan = fault->plan,
                        .phase = RUN_SYNCING,
                        .began_at = bed_now(bed)};
    struct stack_options options = fault->stack;
    options.seed = bed_random(bed);
    stack_start(&run->stack, bed, &options);
    run->stack.link.is_old = fault->is_old;
    if (fault->prepare) {
        fault->prepare(run);
    }
    if (fault->start == FAULT_FIRST) {
        link_arm(&run->stack.link, &run->plan, false);
        run->armed_at = run->began_at;
        run->phase = RUN_STRUCK;
    }
    stack_go(&run->stack);
}

void run_again(struct run *run, const struct fault *fault)
{
    run->fault = fault;
    run->plan = fault->plan;
    run->phase = RUN_SYNCING;
    run->began_at = bed_now(run->bed);
    run->rest = RUN_REST;
    run->stage = 0;
    run->stack.link.is_old = fault->is_old;
    if (fault->prepare) {
        fault->prepare(run);
    }
}

void run_stop(struct run *run)
{
    stack_stop(&run->stack);
}

/* What the client sent, also to a server that does not take it. */
static size_t run_sent(const struct run *run)
{
    size_t sent = (size_t)td_client_counts(run->stack.client).calls;
    return sent > run->stack.link.requests ? sent : run->stack.link.requests;
}

static void run_arm(struct run *run)
{
    run->armed_at = bed_now(run->bed);
    run->staged_at = run->armed_at;
    run->calls_at = run_sent(run);
    link_arm(&run->stack.link, &run->plan, run->fault->start == FAULT_LIVE);
    if (run->fault->start == FAULT_CUT) {
        link_cut(&run->stack.link);
    }
    run->phase = RUN_STRUCK;
}

static bool run_is_over(struct run *run)
{
    if (run->fault->step) {
        return run->fault->step(run);
    }
    if (run->plan.count > 0) {
        return run->stack.link.finished >= run->plan.count;
    }
    return bed_now(run->bed) - run->armed_at >= run->fault->ms * TD_MILLISECOND;
}

static void run_judge(struct run *run)
{
    const struct fault *fault = run->fault;
    const struct stack *stack = &run->stack;
    run->calls = run_sent(run) - run->calls_at;
    /* Calls of a user are repeated each for itself, with growing pauses. */
    double most = RUN_CALLS_PER_SECOND_MAX;
    if (fault->stack.has_user) {
        most += RUN_USER_TRIES_MAX * 1000.0 / BED_ASK_MS;
    }
    if (run_calls_per_second(run) > most) {
        (void)snprintf(run->problem, sizeof(run->problem), "above %.1f calls/s", most);
    } else if (!stack_is_honest(stack)) {
        (void)snprintf(run->problem, sizeof(run->problem), "told %zu differences, %zu untrue",
                       stack->reported, stack->lies);
    } else if (stack->link.pause_min < fault->pause_min) {
        (void)snprintf(run->problem, sizeof(run->problem), "asked again after %lld ms",
                       (long long)(stack->link.pause_min / TD_MILLISECOND));
    } else if (stack->asked_badly > 0 && !fault->may_refuse_user) {
        (void)snprintf(run->problem, sizeof(run->problem), "%zu of %zu calls failed: %s",
                       stack->asked_badly, stack->asked, stack->ask_problem);
    } else if (fault->check && !fault->check(run)) {
        (void)snprintf(run->problem, sizeof(run->problem), "its check failed");
    }
}

void run_step(struct run *run)
{
    td_duration now = bed_now(run->bed);
    switch (run->phase) {
    case RUN_SYNCING:
        if (now - run->began_at >= run->rest && stack_is_equal(&run->stack)) {
            run_arm(run);
        }
        break;
    case RUN_STRUCK:
        if (run_is_over(run)) {
            run->over_at = now;
            run->writes_over = run->bed->writes;
            run->stack.link.plan.fault = LINK_FINE;
            run->phase = RUN_RECOVERING;
        }
        break;
    case RUN_RECOVERING:
        if (run->bed->writes >= run->writes_over + RUN_WRITES_SEEN && stack_is_equal(&run->stack)) {
            run->recovered = now - run->over_at;
            run->elapsed = now - run->armed_at;
            run->phase = RUN_DONE;
            run_judge(run);
        }
        break;
    default:
        break;
    }
    if (run->phase != RUN_DONE && now - run->began_at > RUN_PATIENCE) {
        static const char *const names[] = {"start", "sync", "happen", "recover"};
        (void)snprintf(run->problem, sizeof(run->problem), "did not %s: %.300s", names[run->phase],
                       td_cache_error(run->stack.cache)->message);
        run->phase = RUN_DONE;
        run->elapsed = now - run->began_at;
        run->calls = run_sent(run);
    }
}

bool run_all(struct bed *bed, struct run *runs, size_t count)
{
    size_t open = count;
    while (open > 0) {
        bed_turn(bed);
        for (size_t i = 0; i < count; i++) {
            if (runs[i].phase == RUN_DONE) {
                continue;
            }
            run_step(&runs[i]);
            if (runs[i].phase == RUN_DONE) {
                run_stop(&runs[i]);
                open--;
            }
        }
    }
    bool is_good = true;
    for (size_t i = 0; i < count; i++) {
        is_good = is_good && runs[i].problem[0] == '\0';
    }
    return is_good;
}

/* A second at least: two calls within ten milliseconds are not two hundred calls a second. */
double run_calls_per_second(const struct run *run)
{
    td_duration span = run->elapsed > TD_SECOND ? run->elapsed : TD_SECOND;
    return (double)run->calls / ((double)span / (double)TD_SECOND);
}

bool run_report(const struct run *run)
{
    bool is_good = run->problem[0] == '\0';
    (void)printf("%s fault %s: recovered in %lld ms, %zu calls, %.1f calls/s%s%s\n",
                 is_good ? "ok  " : "FAIL", run->fault->name,
                 (long long)(run->recovered / TD_MILLISECOND), run->calls,
                 run_calls_per_second(run), is_good ? "" : ": ", run->problem);
    (void)fflush(stdout);
    return is_good;
}
