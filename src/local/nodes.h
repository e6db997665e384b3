/*
 * The nodes of a local cluster: makes them, keeps them ready and their leases fresh, and feeds the
 * scheduler and the kubelet (scheduler.h, kubelet.h) with what changes. A node is ours when it has
 * the annotation tandem.dev/kubelet: local; one that a user makes with it is run like the others,
 * and nodes without it are left to whoever brought them. Pods of a node that was deleted go after a
 * while. Observes the store, acts through local/edit.h.
 */
#pragma once

#include <stddef.h>

struct td_api;
struct td_error;
struct td_log;
struct td_nodes;

struct td_nodes_options {
    struct td_api *api;
    struct td_log *log; /* may be NULL */
    size_t count;       /* nodes "tandem-1", ... to have; ours of a higher number are removed */
};

/* TD_LIMIT: more than TD_NODES_OWN_MAX. */
int td_nodes_new(const struct td_nodes_options *options, struct td_nodes **ret,
                 struct td_error *err);
void td_nodes_free(struct td_nodes *nodes); /* NULL is accepted */
