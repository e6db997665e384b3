/*
 * Are upstream's programs alive on the cluster? Two updaters would evict the same pods, two
 * recommenders write the same statuses, two webhooks mutate the same pod, so ours hold while
 * upstream's act. What is looked at, every two seconds: the lease of each in kube-system, which is
 * alive while its record changes before our eyes (never by a time that another machine wrote), and,
 * for upstream's programs without leader election, a running pod of the Deployment that upstream's
 * scripts make there. Only read; one thread, the loop's.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "control/rights.h"

struct td_arena;
struct td_client;
struct td_client_flow;
struct td_informers;
struct td_log;
struct td_loop;
struct td_upstream;

#define TD_UPSTREAM_NAMESPACE "kube-system"

struct td_upstream_options {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    struct td_informers *informers;
    struct td_log *log;
    bool looks_for[TD_CONTROLLER_COUNT]; /* at the programs that do the work of these */
    bool shares_leases; /* --replace-upstream: who has a lease acts, so only a program that runs and
                           has none is in the way */
    void (*changed)(void *context, enum td_controller_kind kind);
    void *context;
};

struct td_upstream *td_upstream_new(const struct td_upstream_options *options);
void td_upstream_start(struct td_upstream *upstream);
void td_upstream_free(struct td_upstream *upstream); /* NULL is accepted */

/* May ours act? Not before it is known, nor while upstream's does. Always where nothing is looked
 * at, or `upstream` is NULL. */
bool td_upstream_allows(const struct td_upstream *upstream, enum td_controller_kind kind);
bool td_upstream_is_alive(const struct td_upstream *upstream, enum td_controller_kind kind);

/* "upstream's vpa-updater is alive: lease kube-system/vpa-updater is held and renewed by 'a'", in
 * the arena; empty: it is not. */
td_str td_upstream_words(const struct td_upstream *upstream, enum td_controller_kind kind,
                         struct td_arena *arena);
