/*
 * A replica of `tandem run --shards N`: one set of controllers (control/controllers.h) that all
 * replicas run, the webhook and the address, and one for each shard of the namespaces that this
 * replica holds the Lease of. What to hold is decided by decide/shards/shards.h. A shard that is
 * lost ends at once, one that is given up in order, and its knowledge is what checkpoints have. One
 * thread, the loop's.
 */
#pragma once

#include <stddef.h>

#include "control/controllers.h"

struct td_error;
struct td_shards;
struct td_transport;

#define TD_SHARDS_CONFIG "tandem-shards"

struct td_shards_options {
    /* As of a single process; its transport is that of the common part. */
    struct td_controllers_options controllers;
    size_t count; /* N: 1 to TD_SHARDS_MAX */
    /* A transport for each set of controllers, and for the leases. */
    int (*connect)(void *context, struct td_transport **ret, struct td_error *err);
    void *context;
};

int td_shards_new(const struct td_shards_options *options, struct td_shards **ret,
                  struct td_error *err);
void td_shards_start(struct td_shards *shards);
void td_shards_stop(struct td_shards *shards, void (*done)(void *context), void *context);
void td_shards_free(struct td_shards *shards);

/* The webhook, the address: what all replicas do. */
struct td_controllers *td_shards_common(struct td_shards *shards);
