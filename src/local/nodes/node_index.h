/*
 * Nodes and the pods bound to them, as placement needs them: what each node offers, what its pods
 * ask for, who controls them. Kept up to date by one change at a time, so that placing a pod costs
 * the nodes and not the pods there are. Shared by scheduler and kubelet, owned by nodes.c, and told
 * at once of what they write, since observers hear of it later. Texts belong to the index. One
 * thread, the loop's.
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
#include "kube/selector/labels.h"

/* On a node that is ours: our kubelet runs its pods. Other nodes have kubelets of their own. */
#define TD_NODE_OWNER_ANNOTATION "tandem.dev/kubelet"
#define TD_NODE_OWNER "local"

/* Less memory than that available is pressure: the kubelet's hard eviction threshold. */
#define TD_NODE_AVAILABLE_MIN (100.0 * 1024 * 1024)

/* Pods of our nodes have addresses of 10.128.0.0/9, counted upwards. */
#define TD_POD_ADDRESS_BASE UINT32_C(0x0a800000)
#define TD_POD_ADDRESS_MASK UINT32_C(0xff800000)

struct td_node_amount {
    td_str name;   /* "cpu", "memory", ... */
    int64_t value; /* thousandths of cpu, else units */
};

struct td_taint {
    td_str key;
    td_str value;
    td_str effect;
};

struct td_bound_pod;

/* The lease of a node: its revision, and where in its text a renewal changes it (node_report.c). */
struct td_node_lease {
    uint64_t version;  /* that was written or seen last; 0: none yet */
    size_t renewed_at; /* 0: not known */
    size_t version_at;
    size_t version_bytes;
};

struct td_node {
    td_str name;
    bool exists; /* false: pods name a node that is not there (any more) */
    bool is_ours;
    bool is_lost; /* ours and silent: nothing on it runs, no status of it is written (nodes.c) */
    bool is_ready;
    bool is_unknown; /* whether it is ready */
    bool is_unschedulable;
    bool is_pressed;     /* has too little memory, or had a while ago (node_pressure.c) */
    uint64_t version;    /* of the object; 0: the version of this copy is unknown */
    td_time pressed;     /* when it last had too little */
    double available;    /* bytes that it had then */
    td_time evicted;     /* when it last removed a pod for that */
    td_time probed;      /* when its lease was last renewed, as far as we saw; 0: never */
    double reported_cpu; /* what the engine was told of it */
    double reported_memory;
    struct td_node_lease lease;
    struct td_arena arena; /* of what is read from the object */
    struct td_labels labels;
    td_str address;
    const struct td_taint *taints;
    size_t taint_count;
    const struct td_node_amount *allocatable; /* without pods; at most TD_NODE_RESOURCES_MAX */
    int64_t *used;                            /* by bound pods, beside it */
    size_t resource_count;
    int64_t pods_max;
    int64_t pod_count;        /* bound and not over */
    int64_t allocated_cpu;    /* thousandths; what the kubelet gave its pods */
    int64_t allocated_memory; /* bytes */
    size_t deferred_count;    /* pods whose resize waits for room */
    struct td_map controllers;
    struct td_bound_pod *first; /* in the order in which they came */
    struct td_bound_pod *last;
};

struct td_bound_pod {
    td_str key; /* "namespace/name" */
    td_str ns;
    td_str name;
    td_str uid;
    uint64_t version;
    struct td_node *node;
    struct td_bound_pod *previous;
    struct td_bound_pod *next;
    bool is_over;     /* Succeeded or Failed: it uses nothing any more */
    bool is_deferred; /* its resize waits for room */
    td_str controller_uid;
    const struct td_node_amount *requests; /* the most of what is wished, given and in use */
    size_t request_count;
    int64_t allocated_cpu;
    int64_t allocated_memory;
};

struct td_node_index {
    struct td_map nodes; /* by name */
    struct td_map pods;  /* bound ones, by key */
    size_t node_count;   /* that exist */
    size_t own_count;    /* of them ours */
    uint32_t last_address;
};

/* Does the object say that it is ours? */
bool td_node_is_ours(const struct td_json *node);

void td_node_index_init(struct td_node_index *index);
void td_node_index_done(struct td_node_index *index);

/* The node as it is now, or NULL: it is gone. True: pods may fit that did not before. */
bool td_node_index_set_node(struct td_node_index *index, td_str name, const struct td_json *node);

/* The pod as it is now, or NULL: it is gone. True: room became free on the node that it had. */
bool td_node_index_set_pod(struct td_node_index *index, td_str key, uint64_t version,
                           const struct td_json *pod);

/* NULL: not known. */
struct td_node *td_node_index_node(const struct td_node_index *index, td_str name);
struct td_bound_pod *td_node_index_pod(const struct td_node_index *index, td_str key);

/* Bound pods of that controller on the node. */
size_t td_node_siblings(const struct td_node *node, td_str controller_uid);

/* The place of a resource in allocatable, or resource_count. */
size_t td_node_resource(const struct td_node *node, td_str name);

/* What it offers of a resource; 0: nothing. */
int64_t td_node_offers(const struct td_node *node, td_str name);

/* Has it a taint of that effect, and of that key unless that is empty? */
bool td_node_has_taint(const struct td_node *node, td_str key, td_str effect);

/* What the pod asks for: the most of spec and status. */
int td_pod_amounts(struct td_arena *arena, const struct td_json *pod, bool uses_status,
                   struct td_node_amount **ret, size_t *ret_count);
