/*
 * Ends a process whose event loop does not turn. A callback that never returns, or waits for a disk
 * that is gone, would leave a process that looks alive and answers no request; a process that ends
 * is started again by the kubelet. One watchdog a process: it owns SIGALRM and the real-time timer.
 *
 * A tick comes every fifth part of the time that is allowed. It is counted in the signal handler
 * and, through a pipe, taken back by the loop: so a machine that slept or a process that was
 * stopped is not mistaken for a loop that stands still.
 */
#pragma once

#include "base/os/clock.h"

struct td_error;
struct td_loop;

/* Watches the loop until td_watchdog_stop. When it has not turned for as long as is allowed, a line
 * and the stack of calls go to standard error and the process ends with SIGABRT. */
int td_watchdog_start(struct td_loop *loop, td_duration allowed, struct td_error *err);

/* Before the loop is freed. Without a watchdog it does nothing. */
void td_watchdog_stop(void);
