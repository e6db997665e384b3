/*
 * Shared by loop.c and queue.c only. Timers may be embedded (a queue has one
 * in each key), and queues with waiting keys stand in a line of the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/os/loop.h"

struct event;

struct td_timer {
    struct td_loop *loop;
    td_timer_fn fn;
    void *context;
    td_duration due;   /* steady time of the loop's clock */
    uint64_t sequence; /* which call set it; orders timers that are due together */
    size_t place;      /* in the heap; SIZE_MAX when not set */
    bool is_machine;   /* was set by the machine's time */
};

struct td_loop {
    struct event_base *base; /* owned */
    struct event *alarm;     /* owned; wakes libevent for the earliest timer */
    td_duration alarm_due;   /* while the alarm is set */
    bool is_alarm_set;
    bool is_running;
    bool is_stopped;
    struct td_clock *clock;  /* borrowed */
    struct td_clock machine; /* real time, for slices */
    td_duration slice_end;   /* machine's steady time */
    struct td_timer **heap;  /* the set timers, earliest first; owned */
    size_t heap_count;
    size_t heap_cap;
    uint64_t sequence;            /* of the next td_timer_set */
    struct td_queue *ready_first; /* queues with waiting keys, in the order of their turns */
    struct td_queue *ready_last;
    size_t timer_count; /* made by td_timer_new */
    size_t queue_count;
};

void td_timer_init(struct td_timer *timer, struct td_loop *loop, td_timer_fn fn, void *context);

/* Run the first waiting key of the first queue in the line; there must be one. */
void td_queue_run_next(struct td_loop *loop);
