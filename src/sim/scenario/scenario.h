/*
 * A scenario: the file in which a user writes what a cluster has, what workloads want and what
 * happens when. Manifests stay plain Kubernetes files beside it. Reading it checks everything that
 * can be checked without a cluster; what is wrong is one line with file, line, field and value.
 * Everything is in the caller's arena. Schema: docs/scenario.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "local/engine/demand.h"
#include "local/engine/measures.h"
#include "local/nodes/node_object.h"

struct td_error;

enum td_scenario_action {
    TD_ACTION_MOVE_ROLE,    /* target, label, to */
    TD_ACTION_NODE_LOSS,    /* node, for */
    TD_ACTION_WEBHOOK_DOWN, /* for */
    TD_ACTION_METRICS_GAP,  /* for */
    TD_ACTION_API_ERRORS,   /* for, share */
    TD_ACTION_SLOW_START,   /* target, for, factor */
    TD_ACTION_SCALE,        /* target, replicas */
    TD_ACTION_APPLY,        /* manifest */
};

struct td_scenario_event {
    td_duration at;
    enum td_scenario_action action;
    td_str kind; /* of target: "StatefulSet" */
    td_str name;
    td_str node;
    td_str label_key;
    td_str label_value;
    td_str to;       /* pod */
    td_str manifest; /* path */
    td_duration lasts;
    double amount; /* share, factor or replicas */
    uint32_t line;
};

struct td_scenario {
    td_str path;
    td_str name;
    td_str ns; /* where demand targets are: metadata.namespace, "default" */
    uint64_t seed;
    td_duration duration; /* 0: endless */
    const struct td_node_size *nodes;
    size_t node_count;
    const td_str *manifests; /* paths, relative ones resolved */
    size_t manifest_count;
    const struct td_demand *demands;
    size_t demand_count;
    const struct td_scenario_event *events; /* in order of time */
    size_t event_count;
    const struct td_measure *metrics;
    size_t metric_count;
    td_duration metrics_every; /* resolution of metrics.k8s.io */
    td_duration metrics_lag;
};

/* TD_INVALID with "FILE:LINE: FIELD: VALUE: why", TD_NOT_FOUND, TD_IO. */
int td_scenario_load(struct td_arena *arena, const char *path, struct td_scenario *ret,
                     struct td_error *err);

/* The same from a text, for tests; relative paths begin in the folder of `path`. */
int td_scenario_parse(struct td_arena *arena, td_str path, td_str text, struct td_scenario *ret,
                      struct td_error *err);

/* "90s", "9h30m", "3d12h", as in a scenario; false: it is no such time. */
bool td_scenario_parse_duration(td_str text, td_duration *ret);

/* As if the file had said this seed. Arrays that change are made anew in the arena. */
void td_scenario_set_seed(struct td_arena *arena, struct td_scenario *scenario, uint64_t seed);

/* `run.every` of a demand entry is what its CronJob's schedule must say, for the schedule decides:
 * TD_INVALID, with file, line and field, when the runs from `start` on are not that far apart. */
int td_scenario_check_schedule(const struct td_scenario *scenario, size_t demand, td_str schedule,
                               td_time start, struct td_error *err);
