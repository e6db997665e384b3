/*
 * A cluster seen once, for commands that only read: the client, the informers and the same
 * controllers that `tandem run` has, none of them started, so that their dry functions can be
 * called. Nothing is ever written. Times are the cluster's: a local one has a clock of its own, and
 * then the loop's clock, when it is an accelerated one, is moved to where the server's is. One
 * thread, the loop's; one look, then it is freed.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/os/clock.h"
#include "control/controllers.h"
#include "control/informers/informers.h"

struct td_client_call;
struct td_snapshot;
struct td_metrics_call;
struct td_metrics_client;
struct td_timer;

struct td_snapshot_options {
    struct td_loop *loop;
    struct td_transport *transport; /* taken, also on failure */
    struct td_log *log;             /* may be NULL */
    td_duration patience;           /* machine's time until it gives up; 0: 30 s */
    td_str namespace;               /* only this one is looked at; empty: all */
    td_str feature_gates;           /* as `tandem run` was given them; empty: the defaults */
    td_str estimator;              /* sizes all containers; empty: the one that each VPA asks for */
    bool needs[TD_INFORMER_COUNT]; /* autoscalers without which there is nothing to say; pods and
                                   workloads are always needed */
};

/* TD_OK, or why the cluster cannot be seen: one line in err. */
typedef void (*td_snapshot_fn)(void *context, int code, const struct td_error *err);

/* All members may be read once it is there. */
struct td_snapshot {
    struct td_loop *loop;
    struct td_client *client;
    struct td_client_flow *flow;
    struct td_informers *informers;
    struct td_metrics_client *metrics_client;
    struct td_metric_registry *registry;
    struct td_recommend_loop *recommend;
    struct td_horizontal_loop *horizontal;
    struct td_hvpa_loop *hvpa;
    struct td_update_options update;

    td_time measured;              /* the newest metrics of pods; TD_TIME_NONE: there are none */
    td_time measured_ahead;        /* the newest that were ahead of the clock when they were read */
    struct td_error metrics_error; /* why not; code TD_OK: they could be read */
    bool is_webhook_known;         /* whether a webhook for pods is registered was read */
    bool has_webhook;
    td_time webhook_renewed; /* of the lease of the admission controller; TD_TIME_NONE: none */

    bool is_denied[TD_INFORMER_COUNT]; /* may not be listed: as if there were none */

    td_str namespace; /* private, as all below; owned */
    bool needs[TD_INFORMER_COUNT];
    struct td_timer *poll;
    struct td_metrics_call *measure;
    struct td_client_call *call;
    size_t hooks_asked;  /* webhook configurations of one name after another */
    size_t leases_asked; /* and status leases */
    td_duration began;
    td_duration patience;
    td_snapshot_fn done;
    void *context;
};

int td_snapshot_new(const struct td_snapshot_options *options, struct td_snapshot **ret,
                    struct td_error *err);
/* `done` is called once, from the loop, unless it is freed before. */
void td_snapshot_start(struct td_snapshot *snapshot, td_snapshot_fn done, void *context);
void td_snapshot_free(struct td_snapshot *snapshot); /* not from inside `done` */

td_time td_snapshot_now(const struct td_snapshot *snapshot);

/* Why evicted pods would come back unchanged, with the next step; empty: they would not. */
td_str td_snapshot_webhook_problem(const struct td_snapshot *snapshot, struct td_arena *arena);
/* Why there are no fresh metrics, with the next step; empty: there are. */
td_str td_snapshot_metrics_problem(const struct td_snapshot *snapshot, struct td_arena *arena);
/* What may not be listed, and so counts as not being there; empty: nothing. */
td_str td_snapshot_rights_problem(const struct td_snapshot *snapshot, struct td_arena *arena);
