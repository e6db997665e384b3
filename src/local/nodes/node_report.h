/*
 * What a kubelet reports of its node: that it lives (a Lease in kube-node-lease) and how it is (the
 * conditions of the Node object). For nodes of our own, called by nodes.c and node_pressure.c. One
 * thread, the loop's.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

struct td_api;
struct td_log;
struct td_node;

#define TD_NODE_LEASE_NAMESPACE "kube-node-lease"
#define TD_NODE_LEASE_COLLECTION "leases.coordination.k8s.io"

struct td_node_report {
    struct td_api *api;
    struct td_log *log; /* may be NULL */
    struct td_buf text; /* of a lease; kept to save an allocation each renewal */
};

void td_node_report_init(struct td_node_report *report, struct td_api *api, struct td_log *log);
void td_node_report_done(struct td_node_report *report);

/* Makes the node's lease, or renews it. */
void td_node_report_lease(struct td_node_report *report, struct td_node *node);

/* Writes what its status lacks; a heartbeat renews the times in it, too. */
void td_node_report_status(struct td_node_report *report, struct td_node *node, bool is_heartbeat);

/* An event of the node's kubelet about the node. */
void td_node_report_event(struct td_node_report *report, const struct td_node *node, td_str type,
                          td_str reason, td_str message);
