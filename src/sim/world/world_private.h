/*
 * The inside of a world, shared by the files world*.c: what it remembers of workloads, pods,
 * autoscalers and nodes, fed by one observer, and the calls between the files. An entry of a
 * workload lives while its object, one of its pods or an autoscaler of it does, so memory follows
 * what the cluster has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/os/loop.h"
#include "base/str.h"
#include "kube/manifest.h"
#include "kube/objectkey.h"
#include "local/api/api.h"
#include "local/engine/faults.h"
#include "local/store/observer.h"
#include "sim/scenario/scenario.h"
#include "sim/world/world.h"
#include "sim/world/world_sample.h"

struct roles_keeper;
struct td_json;
struct td_world_call;
struct td_world_scaler;
struct td_world_workload;
struct world_outcome;

/* ---- What is remembered (world_index.c) ---- */

struct td_world_pod {
    td_str key; /* namespace and name; owned, behind the structure, as the two below */
    td_str ns;
    td_str name;
    struct td_world_workload *workload;
    struct td_world_pod *previous; /* of the workload, in order of arrival */
    struct td_world_pod *next;
    td_str role; /* value of the workload's role label, owned; empty: none */
    bool is_ready;
    bool is_pending; /* counts as pending: not yet running */
    bool is_over;    /* succeeded or failed: its object is all that is left */
    bool is_going;   /* deleted, or over */
    bool is_evicted;
    td_duration unready_since; /* valid while not ready */
    int64_t restarts;          /* of all its containers */
    uint64_t kill_stamp;       /* changes with each kill for memory */
    uint64_t size_stamp;       /* changes with the resources of a container that runs */
};

/* Of the pods of one role; those without one, and the workload itself, have the empty role. */
struct td_world_part {
    td_str role;            /* owned, as the text */
    td_duration decided_at; /* when an autoscaler last did; below 0: never */
    td_str decision;
    double throttled[2]; /* CPU seconds at two moments, the older first */
    double wanted[2];
    uint64_t restart_count;
    uint64_t eviction_count;
    uint64_t resize_count;
};

struct td_world_workload {
    td_str key; /* namespace, kind and name; owned, behind the structure, as the three below */
    td_str ns;
    td_str kind;
    td_str name;
    bool has_object;
    bool is_pod_level;
    int64_t replicas; /* that it wishes; below 0: it does not say */
    struct td_world_pod *first_pod;
    struct td_world_pod *last_pod;
    size_t pod_count;
    struct td_world_scaler *scalers;
    struct td_world_part *parts; /* owned */
    size_t part_count;
    const struct td_demand *roles;    /* the entry that names its roles, or NULL */
    struct roles_keeper *role_keeper; /* NULL: it has no roles, as the timer */
    struct td_timer *role_timer;
    uint64_t looked_at; /* number of the look that has shown it */
};

enum td_world_scaler_kind {
    TD_WORLD_HVPA,
    TD_WORLD_HPA,
    TD_WORLD_VPA
}; /* the first there is counts */

/* What an autoscaler wants, of one pod: millicores and bytes; below 0: nothing. */
struct td_world_advice {
    double target[TD_WORLD_RESOURCES];
    double lower[TD_WORLD_RESOURCES];
    double upper[TD_WORLD_RESOURCES];
    int64_t wanted; /* replicas */
};

struct td_world_scaler {
    td_str key; /* kind, namespace and name; owned, behind the structure, as name */
    td_str name;
    enum td_world_scaler_kind kind;
    struct td_world_workload *workload;
    struct td_world_scaler *next;   /* of the workload */
    struct td_arena arena;          /* of the selector */
    const struct td_json *selector; /* of a VPA that has one, or NULL */
    struct td_world_advice advice;
};

struct td_world_node {
    bool is_ready;
    double cpu_milli;
    double memory_bytes;
    td_str name; /* owned, behind the structure */
};

/* A stream of requests over the whole run. */
struct td_world_flow {
    double served;
    double latency_sum; /* seconds, of all served */
};

/* A moment at which an event of the scenario begins or ends. */
struct td_world_moment {
    td_duration at;
    size_t event;
    bool is_end;
};

/* The events of the scenario. */
struct td_world_schedule {
    struct td_world_moment *moments; /* in the arena, in order of time */
    size_t count;
    size_t next;
    struct td_timer *timer;
    bool *is_active;           /* one for each event of the scenario */
    struct td_manifest *files; /* the same: objects of apply */
};

/* What has happened since the start. */
struct td_world_counts {
    uint64_t kills;
    uint64_t evictions;
    uint64_t resizes;
    uint64_t restarts;
    uint64_t events;
};

struct td_world {
    struct td_loop *loop;
    struct td_log *log;
    struct td_scenario own_scenario;    /* with the seed of this world */
    const struct td_scenario *scenario; /* NULL: none */
    struct world_outcome *outcome;      /* of the manifests, while they are applied */
    td_world_fn happened;
    void *context;
    struct td_arena arena; /* of what lives as long as the world */
    struct td_faults faults;
    bool hand_webhooks_down;
    struct td_cluster *cluster;
    struct td_api *api;
    struct td_engine *engine;
    struct td_controllers *controllers; /* NULL: none */
    bool hvpa_gate;                     /* with it off Hvpas act on nothing */
    bool selector_gate;                 /* and selectors of VPAs do not count */
    /* What there is. */
    struct td_observer *observer;
    char key[TD_OBJECT_KEY_BYTES_MAX]; /* of the last look-up */
    struct td_map role_entries;        /* flows of demand entries that name roles, by workload */
    struct td_map flow_entries;        /* the same of streams of requests */
    struct td_map workloads;
    struct td_map pods;
    struct td_map scalers;
    struct td_map nodes;
    size_t ready_node_count;
    double cpu_capacity_milli;
    double memory_capacity_bytes;
    size_t pending_count;
    size_t over_count;
    uint64_t event_version; /* of the newest Event object that was looked at */
    struct td_world_counts counts;
    bool is_started; /* what is told from now on is new */
    /* What happens by itself. */
    struct td_world_schedule schedule;
    struct td_timer *flow_timer;
    struct td_world_flow *flows; /* one for each demand entry */
    struct td_timer *sample_timer;
    uint64_t look_count;
    struct td_world_call *calls; /* that have not ended */
};

/* ---- world_index.c ---- */

void td_world_index_start(struct td_world *world);
void td_world_index_done(struct td_world *world);
struct td_world_workload *td_world_find_workload(struct td_world *world, td_str ns, td_str kind,
                                                 td_str name);
struct td_world_pod *td_world_find_pod(struct td_world *world, td_str ns, td_str name);
/* The workload at the top of an object's owners, itself when it has none; NULL: it is not known. */
struct td_world_workload *td_world_find_owner(struct td_world *world, td_str api_version, td_str ns,
                                              td_str kind, td_str name);
/* The key of a workload; valid until the next one is made. */
td_str td_world_key(struct td_world *world, td_str ns, td_str kind, td_str name);
/* What is kept of one role; valid until the next one is asked for. */
struct td_world_part *td_world_part(struct td_world_workload *workload, td_str role);

/* ---- world_happened.c ---- */

/* Counts it and calls `happened`. */
void td_world_tell(struct td_world *world, const struct td_world_event *event);
/* A Kubernetes Event was written. */
void td_world_see_event(struct td_world *world, const struct td_stored *stored);
/* A pod changed: kills, evictions and resizes that no Event tells of. `pod` still says what was. */
struct td_world_pod_facts;
void td_world_see_pod(struct td_world *world, struct td_world_pod *pod,
                      const struct td_world_pod_facts *facts, const struct td_stored *before,
                      const struct td_json *after);

/* ---- world_pod.c: what is read of a pod ---- */

struct td_world_pod_facts {
    td_str phase;
    bool is_ready;
    bool is_deleting;
    bool is_evicted;
    td_str eviction; /* the reason of its condition DisruptionTarget, or of the pod */
    int64_t restarts;
    uint64_t kill_stamp;
    uint64_t size_stamp;
    td_str killed; /* name of the container that was last killed for memory */
};
struct td_world_pod_facts td_world_pod_read(const struct td_json *pod);
/* "app cpu 500m -> 667m, memory 1Gi -> 2Gi" */
void td_world_pod_write_sizes(const struct td_json *before, const struct td_json *after,
                              struct td_buf *buf);

/* ---- world_manifests.c ---- */

/* Adds the objects of a file or folder. TD_INVALID with file and line, TD_NOT_FOUND, TD_IO. */
int td_world_read_manifest(struct td_arena *arena, td_str path, struct td_manifest *manifest,
                           struct td_error *err);

/* Applies the objects in order; `done` is called once, also from inside. */
typedef void (*td_world_done_fn)(struct td_world *world, size_t tag, int code,
                                 const struct td_error *err);
void td_world_apply(struct td_world *world, const struct td_manifest *manifest, size_t tag,
                    td_world_done_fn done);
/* The replicas of a scale subresource. */
void td_world_scale(struct td_world *world, const struct td_scenario_event *event, size_t tag,
                    td_world_done_fn done);
void td_world_calls_done(struct td_world *world);
const struct td_resource *td_world_resource_of_kind(const struct td_world *world, td_str kind);

/* ---- world_targets.c ---- */

/* Does everything that the scenario names exist? */
int td_world_check_targets(struct td_world *world, struct td_error *err);

/* ---- world_roles.c ---- */

void td_world_roles_attach(struct td_world *world, struct td_world_workload *workload);
void td_world_roles_detach(struct td_world_workload *workload);
/* Pods changed: looks at the roles soon. */
void td_world_roles_wake(struct td_world_workload *workload);
/* The pod takes the value, and the pod that had it gets what this one had. */
int td_world_roles_move(struct td_world *world, const struct td_scenario_event *event,
                        struct td_error *err);

/* ---- world_events.c ---- */

/* Events are kept in order of time; messages count them in the order of lines. */
size_t td_world_event_index(const struct td_scenario *scenario,
                            const struct td_scenario_event *event);
int td_world_events_load(struct td_world *world, struct td_error *err);
void td_world_events_start(struct td_world *world);
void td_world_events_done(struct td_world *world);

/* ---- world_rows.c ---- */

void td_world_rows_start(struct td_world *world);
void td_world_rows_done(struct td_world *world);
/* A pod that stands for a role: one of it, or any where the role is empty; NULL: there is none. */
const struct td_world_pod *td_world_pod_of_role(const struct td_world_workload *workload,
                                                td_str role);
/* Does the autoscaler act on that pod? */
bool td_world_scaler_selects(struct td_world *world, struct td_arena *arena,
                             const struct td_world_scaler *scaler, const struct td_world_pod *pod);

/* ---- world_sample.c ---- */

struct td_world_advice td_world_read_advice(enum td_world_scaler_kind kind,
                                            const struct td_json *object);
