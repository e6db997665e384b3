/*
 * The objects of one collection by who controls them: what a controller needs to know of its pods,
 * ReplicaSets, revisions or Jobs, decoded once when they change. Fed by an observer, which lags
 * behind the store; td_child_index_list therefore looks at the newest revisions, so a controller
 * always sees its own writes. Children come in an order that follows from what happened, not from
 * hashes. A child is valid until the index hears of its next change. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "kube/selector/labels.h"
#include "local/store/store.h"
#include "model/pod.h"

struct td_child_group;

/* Of a pod: all that workload controllers decide on. */
struct td_pod_facts {
    enum td_pod_phase phase;
    bool is_ready;
    bool has_tracking_finalizer; /* batch.kubernetes.io/job-tracking */
    td_time ready_since;         /* TD_TIME_NONE when not ready */
    td_time finished;            /* last container's end, or TD_TIME_NONE */
    td_str node;                 /* empty: not assigned */
    td_str affinity_node;        /* the one node that its affinity demands (DaemonSets), or empty */
    int64_t restarts;            /* most of its containers */
    int64_t sidecar_restarts;
    int64_t restarts_total; /* of all its containers, init containers included */
    int64_t deletion_cost;
};

struct td_child {
    struct td_stored *stored; /* a reference: name, namespace, uid and text */
    td_str controller_uid;    /* empty: an orphan; texts are slices of the stored one */
    td_str controller_api_version;
    td_str controller_kind;
    td_str controller_name;
    struct td_labels labels;
    td_time created;
    bool is_deleting;
    struct td_pod_facts pod;      /* zero for what is no pod */
    struct td_child_group *group; /* private, as all below */
    size_t place;                 /* in the group */
    td_str key;                   /* owned */
    struct td_label items[];      /* of labels */
};

/* What became of a child: `before` NULL: it is new; `after` NULL: it is gone. Called from inside
 * whatever made the index look. */
typedef void (*td_child_fn)(const struct td_child *before, const struct td_child *after,
                            void *context);

struct td_child_index {
    struct td_store *store; /* borrowed */
    td_str collection;      /* "pods"; static text */
    struct td_map children; /* by namespace and name */
    struct td_map groups;   /* by controller uid, or by "namespace/" for orphans */
    td_child_fn fn;
    void *context;
};

void td_child_index_init(struct td_child_index *index, struct td_store *store, td_str collection,
                         td_child_fn fn, void *context);
void td_child_index_done(struct td_child_index *index);

/* Takes over the newest revision in the store, when it is not the one that is known. */
void td_child_index_refresh(struct td_child_index *index, td_str ns, td_str name);

/* As it was at the last look; NULL: none. */
const struct td_child *td_child_index_get(const struct td_child_index *index, td_str ns,
                                          td_str name);

/* Would a controller act differently? Changes of what it does not look at are not worth a turn. */
bool td_child_is_same(const struct td_child *a, const struct td_child *b);

/* The value of its label, or empty. */
td_str td_child_label(const struct td_child *child, const char *key);

struct td_children {
    struct td_child **items; /* in the arena */
    size_t count;
};

/* Those that the controller with that uid has, as they are now. */
struct td_children td_child_index_list(struct td_child_index *index, struct td_arena *arena,
                                       td_str controller_uid);

/* Those of a namespace without a controller. */
struct td_children td_child_index_orphans(struct td_child_index *index, struct td_arena *arena,
                                          td_str ns);
