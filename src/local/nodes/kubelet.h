/*
 * Runs the pods of our own nodes. No processes: the bodies of containers are in the engine
 * (local/engine/engine.h), which says what they use, who is out of memory and whose task is done. A
 * bound pod is created, its init containers run one after the other, then its containers; each
 * becomes ready, ends and is started again for itself. A pod that is deleted goes; one whose
 * resources change is resized in place when its node has room. What a status says is in
 * kubelet_status.h; the moments are decided here. Fed by nodes.c; acts through local/store/edit.h.
 * Times are of the cluster's clock. One thread, the loop's.
 */
#pragma once

#include "base/os/clock.h"
#include "base/str.h"

struct td_api;
struct td_engine;
struct td_engine_container;
struct td_kubelet;
struct td_log;
struct td_node;
struct td_node_index;
struct td_scheduler;

#define TD_KUBELET_START_UP TD_SECOND      /* from the binding until containers can start */
#define TD_KUBELET_INIT_RUNS_FOR TD_SECOND /* an init container */
#define TD_KUBELET_RUNS_FOR (5 * TD_SECOND)
#define TD_KUBELET_RESIZE TD_SECOND
#define TD_KUBELET_RESIZE_RETRY (10 * TD_SECOND) /* after an error */
#define TD_KUBELET_SHUT_DOWN TD_SECOND           /* or the grace period, when that is shorter */
#define TD_KUBELET_PAUSE_MIN (10 * TD_SECOND)    /* before a second restart; doubles */
#define TD_KUBELET_PAUSE_MAX (5 * TD_MINUTE)
#define TD_KUBELET_PAUSE_RESET (10 * TD_MINUTE) /* a run that is longer forgets the pause */

/* Annotations of pods: how long containers run ("90s"), and with which code they end ("1"). Without
 * them those that are always restarted go on, and others run for TD_KUBELET_RUNS_FOR. Of one
 * container, init containers too: the name behind it. */
#define TD_KUBELET_RUNS_FOR_ANNOTATION "tandem.dev/runs-for"
#define TD_KUBELET_EXIT_CODE_ANNOTATION "tandem.dev/exit-code"
#define TD_KUBELET_RUNS_FOR_OF "runs-for.tandem.dev/"
#define TD_KUBELET_EXIT_CODE_OF "exit-code.tandem.dev/"

struct td_kubelet_options {
    struct td_api *api;
    struct td_log *log;             /* may be NULL */
    struct td_node_index *index;    /* borrowed; what is written is put into it */
    struct td_scheduler *scheduler; /* borrowed; hears of room that becomes free */
    struct td_engine *engine;       /* borrowed; NULL: containers have no bodies */
};

struct td_kubelet *td_kubelet_new(const struct td_kubelet_options *options);
void td_kubelet_free(struct td_kubelet *kubelet); /* NULL is accepted */

/* A pod that is or was bound has changed or gone. */
void td_kubelet_pod(struct td_kubelet *kubelet, td_str key);

/* Resizes that wait for room on the node may be possible. */
void td_kubelet_room(struct td_kubelet *kubelet, const struct td_node *node);

/* What the engine tells its owner (local/engine/engine.h). */
void td_kubelet_killed(struct td_kubelet *kubelet, struct td_engine_container *container);
void td_kubelet_finished(struct td_kubelet *kubelet, struct td_engine_container *container);

/* The node needs what the pod uses: its containers are killed and it is Failed, Evicted. Safe to
 * call from what the engine tells. TD_NOT_FOUND: nothing of that key runs. */
int td_kubelet_evict(struct td_kubelet *kubelet, td_str pod_key, td_str message);

/* A node of ours falls silent: its containers are gone, and nothing is written. Back, it runs again
 * what is still bound to it; all containers count a restart. While it is silent the index says so
 * (td_node.is_lost). */
void td_kubelet_stop_node(struct td_kubelet *kubelet, const struct td_node *node);
void td_kubelet_start_node(struct td_kubelet *kubelet, const struct td_node *node);
