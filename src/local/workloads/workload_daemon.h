/*
 * DaemonSets hear of nodes: the one thing that another file of the controllers needs of theirs.
 */
#pragma once

struct td_stored;
struct td_workloads;

/* `before` NULL: the node is new; `after` NULL: it is gone. */
void td_workload_node_changed(struct td_workloads *all, const struct td_stored *before,
                              const struct td_stored *after);
