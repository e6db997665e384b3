/*
 * Judges nodes by their leases, as kube-controller-manager's node life cycle controller does with
 * its defaults: one whose lease was not renewed for 50 s is Unknown, its pods are not ready, and it
 * gets taints that keep pods away and, through node_taints.h, remove those that do not tolerate it.
 * Looks at nodes of ours and at others that have a lease; one without is left alone. Acts while
 * there is a node of ours. Fed by nodes.c; acts through local/store/edit.h. One thread, the loop's.
 */
#pragma once

#include <stdbool.h>

#include "base/os/clock.h"

struct td_api;
struct td_log;
struct td_node;
struct td_node_index;
struct td_node_life;

#define TD_NODE_LIFE_EVERY (5 * TD_SECOND)  /* node-monitor-period */
#define TD_NODE_LIFE_GRACE (50 * TD_SECOND) /* node-monitor-grace-period */

struct td_node_life *td_node_life_new(struct td_api *api, struct td_log *log,
                                      struct td_node_index *index);
void td_node_life_free(struct td_node_life *life); /* NULL is accepted */

/* One look at all nodes: every TD_NODE_LIFE_EVERY, after ours renewed their leases. */
void td_node_life_look(struct td_node_life *life);

/* Is the node one that is judged here? */
bool td_node_life_watches(const struct td_node_life *life, const struct td_node *node);
