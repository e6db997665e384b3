/*
 * The one event loop: timers and work queues over libevent. Work is done at our pace, not inside
 * arrival callbacks: events put jobs into a queue, and the queue is drained in slices of at most
 * TD_SLICE_US of real time, after which the loop serves sockets and timers before the next slice. A
 * long pass is a job that returns TD_JOB_AGAIN at its own checkpoints (td_loop_slice_is_over) and
 * is called again from where it stopped. Timers follow the clock given at creation; on a virtual
 * clock the loop moves time itself to the next timer when nothing else is to do, so a run never
 * waits. Everything belongs to the thread that runs the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/os/clock.h"
#include "base/str.h"

struct event_base;
struct td_error;
struct td_loop;
struct td_timer;
struct td_queue;

int td_loop_new(struct td_clock *clock, struct td_loop **ret, struct td_error *err);

/* All timers and queues of the loop must have been freed. NULL is accepted. */
void td_loop_free(struct td_loop *loop);

/* Run until td_loop_stop, or until there is nothing left to wait for: no timer set, no job, no
 * event of libevent. A stop from before the run ends it at once. */
int td_loop_run(struct td_loop *loop, struct td_error *err);
void td_loop_stop(struct td_loop *loop);

/* For sockets, signals and HTTP in the rooms that own them. */
struct event_base *td_loop_base(struct td_loop *loop);
struct td_clock *td_loop_clock(struct td_loop *loop);

/* The clock goes at that speed from now on (td_clock_set_speed); what waits for the machine's time
 * still does. */
void td_loop_set_speed(struct td_loop *loop, double speed);

/* Inside a job: has this slice used up its time? Always false on a virtual clock, where results
 * must not depend on it. */
bool td_loop_slice_is_over(struct td_loop *loop);

typedef void (*td_timer_fn)(struct td_timer *timer, void *context);

/* A timer that is not set. Timers that are due at the same time fire in the order in which they
 * were set; a callback may set or free its own timer. */
struct td_timer *td_timer_new(struct td_loop *loop, td_timer_fn fn, void *context);
void td_timer_free(struct td_timer *timer);
void td_timer_set(struct td_timer *timer, td_duration after);

/* The same by the machine's time, also on an accelerated clock: for the timeouts of protocols,
 * which other programs keep too. On a virtual clock it is td_timer_set. */
void td_timer_set_machine(struct td_timer *timer, td_duration after);
void td_timer_stop(struct td_timer *timer);
bool td_timer_is_set(const struct td_timer *timer);

enum td_job_result { TD_JOB_DONE, TD_JOB_AGAIN };
typedef enum td_job_result (*td_job_fn)(td_str key, void *context);

/* A queue of keys, first come first served: a key that waits is not added twice; a key added while
 * its job runs is run once more. A job that returns TD_JOB_AGAIN goes to the back, also of a full
 * queue; queues take turns, one job each. A job may free its own queue. */
struct td_queue *td_queue_new(struct td_loop *loop, td_job_fn fn, void *context, size_t count_max);
void td_queue_free(struct td_queue *queue);

/* TD_OK also when the key already waits; TD_LIMIT when the queue is full. The key is copied. */
int td_queue_add(struct td_queue *queue, td_str key, struct td_error *err);

/* Add it when `after` has passed. Of two delays of one key the earlier counts; adding it without
 * one does not cancel the delay. */
int td_queue_add_after(struct td_queue *queue, td_str key, td_duration after, struct td_error *err);

/* Keys that wait or are delayed, each once; the one whose job runs is not among them. */
size_t td_queue_count(const struct td_queue *queue);
