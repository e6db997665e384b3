/*
 * Shared by the files of the workload controllers only. Each kind is a row with
 * a function that makes one object what it should be (sync); workloads.c finds out which objects
 * to look at, workload_util.c holds what the kinds share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "kube/selector/selector.h"
#include "local/controllers/child_index.h"
#include "local/kinds/condition.h"
#include "local/resources/resource.h"
#include "local/workloads/pod_maker.h"
#include "local/workloads/workload_rank.h"

struct td_api;
struct td_log;
struct td_queue;
struct td_workload_control;
struct td_workload_item;
struct td_workloads;

enum td_workload_kinds {
    TD_KIND_REPLICA_SET,
    TD_KIND_REPLICATION_CONTROLLER,
    TD_KIND_DEPLOYMENT,
    TD_KIND_STATEFUL_SET,
    TD_KIND_DAEMON_SET,
    TD_KIND_JOB,
    TD_KIND_CRON_JOB,
    TD_KIND_COUNT,
};

struct td_workload_row {
    td_str api_version;
    td_str kind;
    td_str collection;
    td_str component;          /* in events */
    td_str user;               /* creates its pods; empty: makes none */
    td_str made_group_version; /* of what it makes, when that are no pods: see pod_maker.h */
    td_str made_plural;
    void (*sync)(struct td_workload_item *item);
    /* Another text than "Created pod: NAME" for what became of a pod; may be NULL. */
    void (*made)(struct td_workload_control *control, const struct td_pod_made *made);
};

extern const struct td_workload_row td_workload_rows[TD_KIND_COUNT];

/* The functions of the rows. */
void td_replica_sync(struct td_workload_item *item);
void td_deployment_sync(struct td_workload_item *item);
void td_stateful_sync(struct td_workload_item *item);
void td_stateful_made(struct td_workload_control *control, const struct td_pod_made *made);
void td_daemon_sync(struct td_workload_item *item);
void td_job_sync(struct td_workload_item *item);
void td_cron_sync(struct td_workload_item *item);
void td_cron_made(struct td_workload_control *control, const struct td_pod_made *made);

struct td_workload_control {
    struct td_workloads *all;
    const struct td_workload_row *row;
    const struct td_resource *resource;
    bool is_built_in;
    struct td_queue *queue;     /* keys: namespace/name */
    struct td_pod_maker *maker; /* NULL: makes no pods */
};

struct td_workloads {
    struct td_api *api;
    struct td_log *log;
    struct td_observer *observer;
    const struct td_resource *pods; /* rows that controllers write */
    const struct td_resource *revisions;
    const struct td_resource *claims;
    struct td_child_index pod_index;
    struct td_child_index replica_set_index;
    struct td_child_index revision_index;
    struct td_child_index job_index;
    struct td_child_index node_index;
    struct td_map customs;   /* by definition: see workload_custom.c */
    struct td_map owners;    /* by uid: td_workload_owner */
    struct td_queue *strays; /* keys: pods that a Job left behind with its finalizer */
    struct td_workload_control controls[TD_KIND_COUNT];
};

/* What is remembered of a workload between two passes, while something does not go well. */
struct td_workload_owner {
    td_str uid;        /* owned */
    unsigned failures; /* creations refused in a row */
    td_time retry_at;  /* nothing is created before it */
    td_str message;    /* of the last refusal; owned */
    size_t batch;      /* pods to create at once next time: doubles while it goes well; 0: one */
};

/* One object in hand. */
struct td_workload_item {
    struct td_workload_control *control;
    struct td_arena *arena;
    struct td_json *object;
    struct td_json *metadata;
    struct td_json *spec;
    td_str ns;
    td_str name;
    td_str uid;
    int64_t generation;
    bool is_deleting;
    td_time now;
};

/* ---- workloads.c ---- */

void td_workload_enqueue(struct td_workload_control *control, td_str ns, td_str name);
void td_workload_enqueue_after(struct td_workload_control *control, td_str ns, td_str name,
                               td_duration after);

/* A controller of that row: its queue and its maker. */
void td_workload_control_init(struct td_workloads *all, struct td_workload_control *control,
                              const struct td_workload_row *row);
void td_workload_control_done(struct td_workload_control *control);

/* The state of an owner, or NULL when there is none; made by _need, forgotten by _clear. */
struct td_workload_owner *td_workload_owner(const struct td_workloads *all, td_str uid);
struct td_workload_owner *td_workload_owner_need(struct td_workloads *all, td_str uid);
void td_workload_owner_clear(struct td_workloads *all, td_str uid);

/* ---- workload_replica.c ---- */

/* Makes and removes pods until there are spec.replicas of them; those that count. */
struct td_children td_workload_replicate(struct td_workload_item *item);

/* ---- workload_util.c ---- */

/* False when it is not there. */
bool td_workload_load(struct td_workload_control *control, struct td_arena *arena, td_str ns,
                      td_str name, struct td_workload_item *ret);
/* Writes the object; overtaken or refused, it is looked at again. */
int td_workload_put(struct td_workload_item *item);
/* A copy of its status to be changed, or an empty one. */
struct td_json *td_workload_status(const struct td_workload_item *item);
/* Writes the object when `status` differs from the one it has. */
int td_workload_put_status(struct td_workload_item *item, struct td_json *status);

/* A number of a status: 0 is left out, as Go does. */
void td_workload_set_count(struct td_arena *arena, struct td_json *object, td_str key,
                           int64_t value);
int64_t td_workload_min_ready(const struct td_workload_item *item);
struct td_json *td_workload_time(struct td_arena *arena, td_time time);

void td_workload_event(const struct td_workload_item *item, bool is_warning, const char *reason,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Removes the condition of that type, and the list with its last one. */
void td_workload_condition_remove(struct td_json *status, td_str type);
/* A condition of now; `other_time` is a second member with the time, or NULL. */
struct td_json *td_workload_condition(const struct td_workload_item *item,
                                      const struct td_condition *condition, const char *other_time);
/* At the end of the list; replaces one of the same type. */
void td_workload_condition_put(struct td_arena *arena, struct td_json *status,
                               struct td_json *condition);

/* The selector of a workload; one that cannot be read selects nothing. */
struct td_selector td_workload_selector(const struct td_workload_item *item);

/* Those that belong to the item: its own that its selector matches, orphans that match (adopted),
 * without those that do not match any more (let go). `is_mine` may be NULL; others are left alone.
 */
typedef bool (*td_workload_mine_fn)(const struct td_workload_item *item,
                                    const struct td_child *child);
struct td_children td_workload_claim(struct td_workload_item *item, struct td_child_index *index,
                                     const struct td_resource *resource,
                                     td_workload_mine_fn is_mine);
struct td_children td_workload_claim_pods(struct td_workload_item *item,
                                          td_workload_mine_fn is_mine);

bool td_pod_is_active(const struct td_child *pod); /* neither finished nor being deleted */
/* Its place among those to delete, without neighbours. */
struct td_rank_pod td_pod_rank(const struct td_child *pod, size_t index);
bool td_pod_is_available(const struct td_child *pod, int64_t min_ready_seconds, td_time now);
/* Looks again when the next of the pods has been ready for long enough. */
void td_workload_watch_available(struct td_workload_item *item, const struct td_children *pods,
                                 int64_t min_ready_seconds);

/* With the event that upstream writes. */
int td_workload_delete_pod(struct td_workload_item *item, const struct td_child *pod);

/* Creates up to `count` pods, few at first and twice as many each time it goes well. `make` writes
 * the pod with that number. */
typedef struct td_json *(*td_workload_make_fn)(struct td_workload_item *item, size_t index,
                                               void *context);
void td_workload_create_pods(struct td_workload_item *item, size_t count, td_workload_make_fn make,
                             void *context);
/* May pods be created now? Not while answers are pending, nor shortly after a refusal. */
bool td_workload_can_create(struct td_workload_item *item);
size_t td_workload_pending(const struct td_workload_item *item);

/* A hash that names templates: FNV-1a over the sorted text, written with letters and digits that
 * make no words. */
td_str td_workload_hash(struct td_arena *arena, const struct td_json *tree, int64_t collisions);
