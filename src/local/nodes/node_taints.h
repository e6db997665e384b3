/*
 * Removes pods from nodes with NoExecute taints: at once those that do not tolerate one of them,
 * and those that do for some seconds when that time is over. As upstream's taint eviction
 * controller does, for taints that users set and those of node_life.h alike. Acts while there is a
 * node of ours. Fed by nodes.c; acts through local/store/edit.h. One thread, the loop's.
 */
#pragma once

#include "base/str.h"

struct td_api;
struct td_log;
struct td_node;
struct td_node_index;
struct td_node_taints;

struct td_node_taints *td_node_taints_new(struct td_api *api, struct td_log *log,
                                          struct td_node_index *index);
void td_node_taints_free(struct td_node_taints *taints); /* NULL is accepted */

/* The node, or a pod that is or was bound, has changed; the index knows already. */
void td_node_taints_node(struct td_node_taints *taints, const struct td_node *node);
void td_node_taints_pod(struct td_node_taints *taints, td_str key);
