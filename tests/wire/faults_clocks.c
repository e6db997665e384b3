/*
 * Clocks of clients that are an hour ahead or behind, or that run faster than the machine's, so
 * that the longest waits of the client can be seen to their end. Each such client has a loop of its
 * own; the loops take turns of a millisecond.
 */
#include "faults_clocks.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "faults_run.h"
#include "kube/client/lease.h"

#define SILENT_PATIENCE (3 * TD_SECOND)
#define LEASE_CLOCK_SPEED 60.0 /* of one candidate; a lease goes by the machine's time */
#define LEASE_SHORTER 5        /* than the usual 15, 10 and 2 s, so that terms end soon */
#define LEASE_DRIFT_PERCENT 10 /* the other candidate takes so much longer for everything */
#define LEASE_CALLS_PER_SECOND_MAX 20.0 /* of both */
#define CLOCK_PATIENCE (30 * TD_SECOND)

/* ---- Caches ---- */

static size_t skewed_caches(struct bed *bed)
{
    struct td_loop *ahead = bed_add_loop(bed, 1, TD_HOUR);
    struct td_loop *behind = bed_add_loop(bed, 1, -TD_HOUR);
    const struct link_plan reset = {.fault = LINK_RESET, .count = 1, .at = 700};
    const struct fault faults[] = {
        {.name = "clock-an-hour-ahead",
         .plan = reset,
         .start = FAULT_LIVE,
         .stack = {.loop = ahead, .has_user = true}},
        {.name = "clock-an-hour-behind",
         .plan = reset,
         .start = FAULT_LIVE,
         .stack = {.loop = behind, .has_user = true}},
        {.name = "plugin-token-looks-expired",
         .plan = reset,
         .start = FAULT_LIVE,
         .stack =
             {.login = LOGIN_EXEC, .login_seconds = 600, .login_behind = 3600, .has_user = true}},
    };
    static struct run runs[3];
    size_t failed = 0;
    for (size_t i = 0; i < 3; i++) {
        run_start(&runs[i], bed, &faults[i]);
    }
    (void)run_all(bed, runs, 3); /* each one tells its own verdict */
    for (size_t i = 0; i < 3; i++) {
        failed += !run_report(&runs[i]);
    }
    bed_drop_loop(bed);
    bed_drop_loop(bed);
    return failed;
}

/* ---- A server that takes requests and never answers ---- */

struct silent_call {
    int code;
    bool is_done;
};

static void silent_done(void *context, const struct td_client_reply *reply)
{
    struct silent_call *call = context;
    call->code = reply->code;
    call->is_done = true;
}

static size_t silent_to_call(struct bed *bed)
{
    static struct stack stack;
    stack_start(&stack, bed, &(struct stack_options){.seed = 1});
    link_arm(&stack.link, &(struct link_plan){.fault = LINK_SILENCE}, false);
    const struct td_client_request request = {
        .method = TD_STR("GET"), .path = TD_STR("/version"), .deadline = TD_SECOND};
    struct silent_call call = {.code = TD_OK};
    td_duration begin = bed_now(bed);
    (void)td_client_send(stack.client, &request, silent_done, &call);
    while (!call.is_done && bed_now(bed) - begin < CLOCK_PATIENCE) {
        bed_turn(bed);
    }
    td_duration span = bed_now(bed) - begin;
    bool is_good =
        call.is_done && call.code == TD_TIMEOUT && span >= TD_SECOND && stack.link.requests == 1;
    (void)printf("%s fault silent-server: a call with a deadline of 1 s ended after %lld ms with "
                 "'%s', %zu calls\n",
                 is_good ? "ok  " : "FAIL", (long long)(span / TD_MILLISECOND),
                 td_code_name(call.code), stack.link.requests);
    stack_stop(&stack);
    return !is_good;
}

static size_t silent_to_watch(struct bed *bed)
{
    const struct fault fault = {
        .name = "silent-watch",
        .plan = {.fault = LINK_SILENCE, .match = LINK_WATCH, .count = 1},
        .start = FAULT_CUT,
        .stack = {.silence = SILENT_PATIENCE},
    };
    static struct run run;
    run_start(&run, bed, &fault);
    (void)run_all(bed, &run, 1); /* it tells its own verdict */
    return !run_report(&run);
}

/* ---- Leases ---- */

struct candidate {
    struct stack stack;
    struct td_lease *lease;
    int started;
    int stopped;
};

struct election {
    struct bed *bed;
    struct candidate both[2];
    bool had_two;
    bool is_given_back;
};

static void candidate_started(void *context)
{
    ((struct candidate *)context)->started++;
}

static void candidate_stopped(void *context, const struct td_error *why)
{
    (void)why;
    ((struct candidate *)context)->stopped++;
}

static void candidate_start(struct candidate *candidate, struct bed *bed, struct td_loop *loop,
                            const char *name, int64_t percent)
{
    stack_start(&candidate->stack, bed, &(struct stack_options){.loop = loop, .seed = 1});
    const struct td_lease_options options = {
        .loop = loop,
        .client = candidate->stack.client,
        .namespace = TD_STR(BED_NAMESPACE),
        .name = TD_STR("leader"),
        .identity = td_str_from(name),
        .duration = 15 * TD_SECOND / LEASE_SHORTER,
        .renew_deadline = 10 * TD_SECOND / LEASE_SHORTER * percent / 100,
        .retry_period = 2 * TD_SECOND / LEASE_SHORTER * percent / 100,
        .seed = bed_random(bed),
        .events = {.started = candidate_started, .stopped = candidate_stopped},
        .context = candidate,
    };
    struct td_error err = TD_ERROR_INIT;
    bed_require(td_lease_new(&options, &candidate->lease, &err), &err);
}

static void candidate_stop(struct candidate *candidate)
{
    td_lease_free(candidate->lease);
    stack_stop(&candidate->stack);
}

/* Until `leader` leads, watching that never two do. */
static bool election_await(struct election *election, size_t leader)
{
    struct candidate *both = election->both;
    td_duration begin = bed_now(election->bed);
    while (!td_lease_is_held(both[leader].lease) &&
           bed_now(election->bed) - begin < CLOCK_PATIENCE) {
        bed_turn(election->bed);
        election->had_two = election->had_two ||
                            (td_lease_is_held(both[0].lease) && td_lease_is_held(both[1].lease));
    }
    return td_lease_is_held(both[leader].lease);
}

static void given_back(void *context)
{
    ((struct election *)context)->is_given_back = true;
}

/* The first one leads, loses its server, is followed by the other, comes back, and leads again
 * when the other gives the lease back. */
static bool election_run(struct election *election)
{
    static const struct link_plan silence = {.fault = LINK_SILENCE};
    static const struct link_plan fine = {.fault = LINK_FINE};
    struct candidate *both = election->both;
    td_lease_start(both[0].lease);
    if (!election_await(election, 0)) {
        return false;
    }
    td_lease_start(both[1].lease);
    link_arm(&both[0].stack.link, &silence, false);
    link_cut(&both[0].stack.link);
    if (!election_await(election, 1) || both[0].stopped != 1) {
        return false;
    }
    link_arm(&both[0].stack.link, &fine, false);
    link_cut(&both[0].stack.link);
    td_lease_start(both[0].lease);
    td_lease_stop(both[1].lease, given_back, election);
    return election_await(election, 0) && election->is_given_back && both[0].started == 2;
}

static size_t skewed_leases(struct bed *bed)
{
    static struct election election;
    election = (struct election){.bed = bed};
    struct td_loop *ahead = bed_add_loop(bed, 1, TD_HOUR);
    struct td_loop *behind = bed_add_loop(bed, LEASE_CLOCK_SPEED, -TD_HOUR);
    td_duration begin = bed_now(bed);
    candidate_start(&election.both[0], bed, ahead, "ahead", 100 + LEASE_DRIFT_PERCENT);
    candidate_start(&election.both[1], bed, behind, "behind", 100);
    bool is_good = election_run(&election) && !election.had_two;
    size_t calls = election.both[0].stack.link.requests + election.both[1].stack.link.requests;
    double seconds = (double)(bed_now(bed) - begin) / (double)TD_SECOND;
    is_good = is_good && (double)calls / seconds <= LEASE_CALLS_PER_SECOND_MAX;
    (void)printf("%s fault leases-two-hours-apart: three terms in %.1f s, %s, %zu calls, %.1f "
                 "calls/s\n",
                 is_good ? "ok  " : "FAIL", seconds,
                 election.had_two ? "two leaders at one time" : "never two leaders", calls,
                 (double)calls / seconds);
    candidate_stop(&election.both[0]);
    candidate_stop(&election.both[1]);
    bed_drop_loop(bed);
    bed_drop_loop(bed);
    return !is_good;
}

size_t faults_clocks(struct bed *bed)
{
    size_t failed = skewed_caches(bed);
    failed += silent_to_call(bed);
    failed += silent_to_watch(bed);
    failed += skewed_leases(bed);
    (void)fflush(stdout);
    return failed;
}
