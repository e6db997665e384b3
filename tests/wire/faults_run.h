/*
 * One fault put on one stack: sync, let it happen, wait until the cache is equal to the store again
 * and goes on following it. Many runs go side by side, so that waiting costs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "faults_bed.h"

#define RUN_CALLS_PER_SECOND_MAX 6.0 /* of a stack without a user of its own */

enum fault_start {
    FAULT_FIRST, /* meets the first answers of a new client */
    FAULT_LIVE,  /* meets the watch that is open */
    FAULT_CUT,   /* connections are cut, and it meets the next answers */
};

struct run;

struct fault {
    const char *name;
    struct link_plan plan;
    enum fault_start start;
    bool is_old; /* the server has no streaming lists */
    unsigned ms; /* how long a plan without a count lasts */
    struct stack_options stack;
    td_duration pause_min;            /* that the client must wait behind such an answer */
    bool may_refuse_user;             /* calls of the user may fail while it lasts */
    void (*prepare)(struct run *run); /* may be NULL: completes run->plan */
    bool (*step)(struct run *run);    /* may be NULL: is the fault over? Instead of the plan */
    bool (*check)(struct run *run);   /* may be NULL: was it what it should be? */
};

enum run_phase { RUN_NEW, RUN_SYNCING, RUN_STRUCK, RUN_RECOVERING, RUN_DONE };

struct run {
    const struct fault *fault;
    struct bed *bed;
    struct link_plan plan;
    struct stack stack;
    enum run_phase phase;
    td_duration began_at;
    td_duration rest; /* before the fault: a watch that lasted makes the client trust again */
    td_duration armed_at;
    td_duration over_at;
    td_duration recovered;
    td_duration elapsed; /* from the fault's begin to the recovery */
    size_t calls_at;
    size_t calls;
    size_t writes_over;
    int stage;             /* of step */
    td_duration staged_at; /* when it began */
    char problem[512];     /* empty: good */
};

void run_start(struct run *run, struct bed *bed, const struct fault *fault);
void run_step(struct run *run);
void run_stop(struct run *run);

/* Arm another fault on a stack that has recovered. */
void run_again(struct run *run, const struct fault *fault);

/* All of them to their end; false when one failed. The stacks are stopped. */
bool run_all(struct bed *bed, struct run *runs, size_t count);

double run_calls_per_second(const struct run *run);
bool run_report(const struct run *run); /* its line; is it good? */
