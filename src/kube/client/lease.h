/*
 * One leader among many by a Lease, with client-go's rules and numbers: a holder renews every
 * 2 s; one that could not for 10 s stops; another takes over when it has seen no change for the
 * 15 s that the lease names. Only the local steady clock is compared, never a time that another
 * machine wrote, so skewed clocks do no harm. Time is the machine's:
 * candidates are other programs.
 *
 * Beside it the plain heartbeat of a program that only says "I am here" (vpa-admission-controller):
 * holder and renewTime, written at an interval.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/os/loop.h"
#include "base/str.h"
#include "kube/client/client.h"

struct td_lease;

struct td_lease_events {
    void (*started)(void *context); /* we lead from now on */
    /* We do not lead any more: stop at once, others may begin when the lease ends. The lease is
     * idle then; td_lease_start tries again. Not called after td_lease_stop. */
    void (*stopped)(void *context, const struct td_error *why);
    void (*new_leader)(void *context,
                       td_str identity); /* may be us; empty: released. May be NULL */
    /* This client may not read or write it; tried again all the same. May be NULL. */
    void (*denied)(void *context, const struct td_error *why);
};

struct td_lease_options {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    td_str namespace;
    td_str name;
    td_str identity;            /* unique for each process */
    td_duration duration;       /* 0: 15 s; whole seconds */
    td_duration renew_deadline; /* 0: 10 s; below duration */
    td_duration retry_period;   /* 0: 2 s; times 1.2 below renew_deadline */
    uint64_t seed;              /* of the jitter */
    /* What the caller has seen of it already: this spec, as JSON text, unchanged since then (steady
     * time). Found again, its time counts from there. Empty: nothing. */
    td_str known_spec;
    td_duration known_since;
    struct td_lease_events events;
    void *context;
};

/* Texts are copied. Nothing is tried before td_lease_start. TD_INVALID for times that do not stand
 * in the order above. */
int td_lease_new(const struct td_lease_options *options, struct td_lease **ret,
                 struct td_error *err);
void td_lease_free(struct td_lease *lease); /* without giving the lease back */

void td_lease_start(struct td_lease *lease); /* no effect while it tries or leads */
bool td_lease_is_held(const struct td_lease *lease);
/* Records of the holder that it is with now, when that is another process: what was found, and each
 * renewal that was seen. */
unsigned td_lease_renewals(const struct td_lease *lease);

/* Stop trying; a lease that we hold is given back first, so that another can lead at once: call it
 * when the work has ended. `done` is called once from the loop, whether or not that worked. */
void td_lease_stop(struct td_lease *lease, void (*done)(void *context), void *context);

struct td_heartbeat;

struct td_heartbeat_options {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    td_str namespace;
    td_str name;
    td_str holder;
    int64_t duration_seconds; /* what readers may believe a beat for */
    td_duration interval;     /* of the loop's clock, and 100 ms of the machine's at least */
    void (*beaten)(void *context,
                   const struct td_error *err); /* err->code 0: written; may be NULL */
    void *context;
};

/* The first beat comes at once. The Lease is made when there is none. */
struct td_heartbeat *td_heartbeat_new(const struct td_heartbeat_options *options);
void td_heartbeat_free(struct td_heartbeat *beat);
