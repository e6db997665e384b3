/*
 * The time of a cluster is its API server's: objects, metrics and leases are dated by it, and how
 * old they are is a matter between two readings of that one clock. So where the server's date is
 * more than a minute from this machine's, the loop's clock leaves the machine's and follows the
 * server's from then on; one that runs fast (`tandem up --speed 60`) says how fast in the header
 * Clock-Speed. A virtual clock stays: who moves it knows what time it is.
 */
#pragma once

#include "base/os/clock.h"

#define TD_CLOCKS_APART_MAX TD_MINUTE /* of the clocks of machines that are set */

struct td_call_head;
struct td_loop;

/* For the head of every answer. A date is some whole seconds old when it is read, so a clock that
 * follows is never behind one, and goes back only when it is ahead by more than a minute, or by
 * more than passes there in a second. Answers of 500 and above are passed over: they may be those
 * of a proxy, with its own date. */
void td_server_clock_follow(struct td_loop *loop, const struct td_call_head *head);
