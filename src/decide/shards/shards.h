/*
 * Shards of the cluster's namespaces over replicas: where one is cut from the next, whether the cut
 * has become bad, and what a replica does about the shards' leases. Pure: the controller
 * (control/shards) brings what was seen and does what comes out.
 *
 * A cut has an epoch; leases of shards carry that of the cut that they were taken under. No replica
 * works on a shard before it holds the shard's lease and has seen since then that no lease of
 * another epoch is alive. Of two that take leases of different epochs each writes its own before it
 * looks for the other's, so that one of them always sees the other, and waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* ---- The cut ---- */

struct td_shard_weight {
    td_str namespace;
    uint64_t hash;   /* of the namespace */
    uint64_t weight; /* its pods and autoscalers */
};

/* Writes the first hash of each shard but the first into `ret_starts` (count - 1 of them, growing),
 * so that the heaviest shard is as light as whole namespaces allow. `weights` is sorted in place.
 * Without enough namespaces the rest of the range is cut in equal parts. */
void td_shards_cut(struct td_shard_weight *weights, size_t weight_count, size_t shard_count,
                   uint64_t *ret_starts);

struct td_shard_balance {
    uint64_t heaviest;
    uint64_t total;
};
struct td_shard_balance td_shards_weigh(const struct td_shard_weight *weights, size_t weight_count,
                                        const uint64_t *starts, size_t shard_count);

/* Is the heaviest above the mean by half, and would another cut make it lighter by a tenth? */
bool td_shards_is_uneven(const struct td_shard_balance *now, const struct td_shard_balance *then,
                         size_t shard_count);

/* ---- Leases ---- */

/* A lease of a shard as it was seen. */
struct td_shard_lease {
    size_t index;   /* from 0 */
    size_t count;   /* of N, by its name */
    uint64_t epoch; /* by its holder */
    td_str holder;  /* without the epoch; empty: none */
    bool is_alive;  /* it has a holder whose renewals are seen */
};

struct td_shards_view {
    td_str self;
    uint64_t epoch; /* of the newest cut; 0: none was read */
    size_t count;   /* its shards */
    const struct td_shard_lease *leases;
    size_t lease_count;
    td_str claimant; /* a living replica without a shard that asks for one; empty: none */
};

struct td_shards_plan {
    size_t live;      /* replicas that were seen, this one included */
    size_t share;     /* shards that a replica may hold: ceil(count / live) */
    bool is_drained;  /* no lease of another cut is alive */
    bool is_claiming; /* this replica asks for a shard */
    size_t release;   /* shards to give up, the last ones first */
    size_t take;      /* shards to try for, the first free ones */
};

/* What to do about the shards of the newest cut; `held` of them are this replica's. */
struct td_shards_plan td_shards_plan(const struct td_shards_view *view, size_t held);

/* Is the shard free under the newest cut: does no live replica hold its lease? */
bool td_shards_is_free(const struct td_shards_view *view, size_t index);
