/* The inside of a replica with shards, shared by the files shards*.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/os/loop.h"
#include "base/vec.h"
#include "control/shards/shards.h"
#include "decide/shards/shards.h"
#include "kube/client/client.h"
#include "kube/selector/shard.h"

#define SHARDS_TEXT_BYTES 48 /* "3-of-8" */

/* Where shards begin, as the ConfigMap says. */
struct shards_cut {
    uint64_t epoch; /* 0: there is none */
    size_t count;
    uint64_t starts[TD_SHARDS_MAX]; /* of shards 1 and up */
};

enum shard_state {
    SHARD_TRYING,
    SHARD_HELD, /* its lease; it begins when all leases were seen since */
    SHARD_RUNNING,
    SHARD_STOPPING, /* its controllers come to their end */
    SHARD_RELEASING,
    SHARD_OVER, /* to be freed when nothing of it is being called */
};

/* A shard that this replica tries for or holds. */
struct shard_one {
    struct td_shards *shards;
    enum shard_state state;
    size_t index;
    uint64_t epoch;
    uint64_t won; /* number of the last look that was begun before the lease was won */
    struct td_shard_range range;
    char name[2 * SHARDS_TEXT_BYTES]; /* of the lease */
    char label[SHARDS_TEXT_BYTES];    /* "3-of-8" */
    struct td_lease *lease;
    struct td_controllers *controllers; /* NULL: they do not run */
};

/* A lease as it was seen. */
struct shard_seen {
    td_str name;         /* owned */
    td_str holder;       /* owned; with the epoch behind it */
    td_str spec;         /* owned: any change is a sign of life */
    td_duration seen_at; /* steady: that it changed */
    td_duration lasts;
    uint64_t look; /* that saw it last */
};

struct td_shards {
    struct td_shards_options options;
    struct td_client *client;
    struct td_client_flow *flow;
    struct td_controllers *common;
    struct td_timer *tick;
    struct td_timer *reap;
    struct td_client_call *call; /* of the look that is under way */
    uint64_t look;               /* its number */
    struct shards_cut cut;
    td_str cut_version; /* owned: resourceVersion of the ConfigMap; empty: there is none */
    bool has_asserted;  /* the cut had this replica's N once: a later one wins over it */
    struct {
        TD_VEC_FIELDS(struct shard_one *);
    } ones;
    struct {
        TD_VEC_FIELDS(struct shard_seen);
    } seen;
    struct td_lease *claim; /* asks for a shard */
    bool is_claiming;
    struct shards_survey *survey; /* NULL: none is under way */
    td_duration surveyed_at;      /* steady */
    td_duration uneven_since;     /* steady; 0: it is not */
    bool is_ending;
    size_t pending; /* parts that have not come to their end */
    void (*done)(void *context);
    void *done_context;
    struct td_metric_registry *registry;
};

/* ---- shards_cut.c ---- */

/* The cut of a ConfigMap; TD_INVALID names what is wrong with it. */
int shards_cut_read(const struct td_json *object, struct shards_cut *ret, struct td_error *err);
/* The namespaces of a shard. */
struct td_shard_range shards_cut_range(const struct shards_cut *cut, size_t index);
/* Weighs the namespaces and writes a cut: always when `is_needed`, else when the one there is has
 * been uneven for long. */
void shards_survey(struct td_shards *shards, bool is_needed);
void shards_survey_free(struct td_shards *shards);
