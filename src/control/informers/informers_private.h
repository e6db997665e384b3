/*
 * What the files of the informers share.
 */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "control/informers/discovery.h"
#include "control/informers/informers.h"
#include "control/informers/pod_index.h"
#include "decide/vertical/patch/limitrange.h"

#define TD_INFORMER_LISTENERS_MAX 8

/* LimitRanges of one namespace, read. */
struct td_informer_limits {
    td_str namespace; /* owned */
    struct td_arena arena;
    bool is_set;
    struct td_limit_ranges ranges;
    struct td_limit_objects objects; /* in the arena */
};

struct td_informer_workload {
    struct td_arena arena;
    struct td_workload workload;
};

struct td_informer_namespace {
    td_str name; /* owned */
    struct td_informer_pod *first;
    struct td_informer_pod *last;
};

/* What a cache of ours is about. */
struct td_informer_feed {
    struct td_informers *informers;
    enum td_informer_kind kind;
};

struct td_informers {
    struct td_loop *loop;
    struct td_client *client;
    struct td_log *log;
    struct td_cache *caches[TD_INFORMER_COUNT];       /* NULL: not wanted */
    struct td_informer_feed feeds[TD_INFORMER_COUNT]; /* the contexts of the caches */
    struct td_intern *names;
    struct td_intern *shapes; /* of pods' texts (pod_text.h) */
    struct td_map namespaces; /* of pods: struct td_informer_namespace */
    bool is_indexed;          /* pods by labels too */
    struct td_pod_index labels;
    struct td_map limits;      /* by namespace: struct td_informer_limits */
    int64_t largest_cpu_milli; /* informers_nodes.c; 0: no node is known */
    int64_t largest_memory;
    td_time largest_found;
    struct td_api_discovery *discovery;
    struct td_workload_source source;
    size_t workload_count;       /* decoded */
    struct td_timer *forgetting; /* set when they are too many */
    struct {
        void (*settled)(void *context);
        void *context;
    } listeners[TD_INFORMER_LISTENERS_MAX];
    size_t listener_count;
};

/* The row of a kind. */
struct td_informer_row {
    const char *group;
    const char *version;
    const char *plural;
    const char *kind;
};
extern const struct td_informer_row td_informer_rows[TD_INFORMER_COUNT];

/* ---- informers_source.c ---- */

void td_informers_source_init(struct td_informers *informers);
void td_informers_source_done(struct td_informers *informers);
void td_informer_workload_free(struct td_informer_workload *workload); /* NULL is accepted */
