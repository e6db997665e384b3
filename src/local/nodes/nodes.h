/*
 * The nodes of a local cluster: makes them, keeps them ready and their leases fresh, and feeds the
 * scheduler and the kubelet (scheduler.h, kubelet.h) with what changes. A node is ours when it has
 * the annotation tandem.dev/kubelet: local; one that a user makes with it is run like the others,
 * and nodes without it are left to their own kubelets. Pods of a node that was deleted go after a
 * while. Observes the store, acts through local/store/edit.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct td_api;
struct td_engine;
struct td_error;
struct td_log;
struct td_node_size;
struct td_nodes;

struct td_nodes_options {
    struct td_api *api;
    struct td_log *log; /* may be NULL */
    /* Nodes "node-1", ... to have, in this order; ours of a higher number are removed. */
    const struct td_node_size *sizes;
    size_t size_count;
    struct td_engine *engine; /* borrowed: runs the containers */
};

/* TD_LIMIT: more than TD_NODES_OWN_MAX. */
int td_nodes_new(const struct td_nodes_options *options, struct td_nodes **ret,
                 struct td_error *err);
void td_nodes_free(struct td_nodes *nodes); /* NULL is accepted */

/* A node of ours falls silent: no lease, no status, its containers stop; or it comes back and runs
 * what is still bound to it. TD_NOT_FOUND. */
int td_nodes_lose(struct td_nodes *nodes, td_str name, bool is_lost, struct td_error *err);
