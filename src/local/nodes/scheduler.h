/*
 * Places pods: each that waits for the default scheduler is bound to the best node that it fits on
 * (see scheduler_fit.h), or says why there is none and is tried again when room or a node appears.
 * It acts while the cluster has a node of its own, so that where all nodes are external the
 * scheduler can be too. Fed by nodes.c; acts through local/store/edit.h. One thread, the loop's.
 */
#pragma once

#include "base/json/json.h"
#include "base/str.h"

struct td_api;
struct td_log;
struct td_node_index;
struct td_scheduler;

/* The index is borrowed; what is bound is put into it. */
struct td_scheduler *td_scheduler_new(struct td_api *api, struct td_log *log,
                                      struct td_node_index *index);
void td_scheduler_free(struct td_scheduler *scheduler); /* NULL is accepted */

/* A pod as it is now, or NULL: it is gone. */
void td_scheduler_pod(struct td_scheduler *scheduler, td_str key, const struct td_json *pod);

/* Pods may fit that did not before. */
void td_scheduler_room(struct td_scheduler *scheduler);
