/*
 * Says that the API server cannot be reached: within two seconds after the start or after informers
 * begin to fail, again after pauses that grow, and when it is back. Informers, leases and
 * controllers try again by themselves; this only tells, so that a silent log is never a dead
 * server's. Also says when time goes by the server's clock, or at another speed (server_clock.h).
 */
#pragma once

#include "base/str.h"

struct td_client;
struct td_client_flow;
struct td_informers;
struct td_log;
struct td_loop;
struct td_reach;

struct td_reach_options {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    struct td_informers *informers;
    struct td_log *log;
    td_str server; /* its URL, borrowed */
};

struct td_reach *td_reach_new(const struct td_reach_options *options);
void td_reach_start(struct td_reach *reach);
void td_reach_free(struct td_reach *reach); /* NULL is accepted */
