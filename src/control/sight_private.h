/*
 * What the files of the sight share.
 */
#pragma once

#include "base/intern.h"
#include "base/map.h"
#include "control/sight.h"
#include "control/sight_asked.h"
#include "control/sight_labels.h"
#include "decide/vertical/patch/limitrange.h"

#define TD_SIGHT_LISTENERS_MAX 8

/* LimitRanges of one namespace, read. */
struct td_sight_limits {
    td_str namespace; /* owned */
    struct td_arena arena;
    bool is_set;
    struct td_limit_ranges ranges;
    struct td_limit_objects objects; /* in the arena */
};

struct td_sight_workload {
    struct td_arena arena;
    struct td_workload workload;
};

struct td_sight_namespace {
    td_str name; /* owned */
    struct td_sight_pod *first;
    struct td_sight_pod *last;
};

struct td_sight {
    struct td_loop *loop;
    struct td_client *client;
    struct td_log *log;
    struct td_cache *caches[TD_SIGHT_COUNT];  /* NULL: not wanted */
    enum td_sight_kind kinds[TD_SIGHT_COUNT]; /* each its own number: the context of its cache */
    struct td_intern *names;
    struct td_map namespaces; /* of pods: struct td_sight_namespace */
    bool is_indexed;          /* pods by labels too */
    struct td_sight_labels labels;
    struct td_map limits;      /* by namespace: struct td_sight_limits */
    int64_t largest_cpu_milli; /* sight_nodes.c; 0: no node is known */
    int64_t largest_memory;
    td_time largest_found;
    struct td_sight_asked *asked;
    struct td_workload_source source;
    struct {
        void (*settled)(void *context);
        void *context;
    } listeners[TD_SIGHT_LISTENERS_MAX];
    size_t listener_count;
};

/* The row of a kind. */
struct td_sight_row {
    const char *group;
    const char *version;
    const char *plural;
    const char *kind;
};
extern const struct td_sight_row td_sight_rows[TD_SIGHT_COUNT];

/* ---- sight_source.c ---- */

void td_sight_source_init(struct td_sight *sight);
void td_sight_workload_free(struct td_sight_workload *workload); /* NULL is accepted */
