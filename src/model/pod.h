/*
 * A pod as autoscalers see it, a few dozen fields of the hundreds that a pod has: exact quantities
 * (a recommendation is written back in the format it had), resources as the kubelet reports them
 * beside those of the spec, readiness, resize conditions, OOM terminations. Decoded from the tree
 * when a decision about that pod is due. Texts are slices of the tree, arrays are in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/clock.h"
#include "base/str.h"
#include "kube/meta.h"
#include "kube/podresources.h"

struct td_error;

struct td_pod_container {
    td_str name;
    bool is_sidecar; /* an init container with restartPolicy Always */
    struct td_resource_list spec_requests;
    struct td_resource_list spec_limits;
    bool has_spec_requests; /* the map is there, be it empty: a patch need not add it */
    bool has_spec_limits;
    bool has_status_resources; /* containerStatuses[].resources is there */
    struct td_resource_list status_requests;
    struct td_resource_list status_limits;
    bool has_status_requests;
    bool has_status_limits;
    bool has_origin; /* the owner's template is known (decide/vertical/patch/origin.h) */
    struct td_resource_list origin_requests;
    struct td_resource_list origin_limits;
    bool restarts_on_resize; /* some resizePolicy entry is RestartContainer */
    bool restarts_on_cpu;    /* that of cpu is */
    bool has_status;
    bool is_running; /* state.running */
    int32_t restart_count;
    bool has_last_terminated; /* lastState.terminated */
    td_str last_terminated_reason;
    td_time last_started;  /* TD_TIME_NONE when absent */
    td_time last_finished; /* likewise */
};

enum td_pod_phase {
    TD_POD_PHASE_NONE, /* empty */
    TD_POD_PENDING,
    TD_POD_RUNNING,
    TD_POD_SUCCEEDED,
    TD_POD_FAILED,
    TD_POD_PHASE_UNKNOWN,
};

enum td_condition_status {
    TD_CONDITION_ABSENT,
    TD_CONDITION_TRUE,
    TD_CONDITION_FALSE,
    TD_CONDITION_UNKNOWN
};

#define TD_TIME_NONE INT64_MIN /* a td_time that is not set */

struct td_resize_condition {
    bool is_present;
    bool is_true;
    td_str reason;
    td_str message;
};

struct td_pod {
    struct td_meta meta;
    bool is_terminating; /* deletionTimestamp is set */
    enum td_pod_phase phase;
    td_time start_time; /* status.startTime, or TD_TIME_NONE */
    td_time resized;    /* when its resize subresource was last written; TD_TIME_NONE: never */
    enum td_condition_status ready;
    td_time ready_since; /* lastTransitionTime of Ready; TD_TIME_NONE when absent */
    const struct td_pod_container *containers; /* spec.containers, in order */
    size_t container_count;
    const struct td_pod_container *init_containers; /* their spec alone */
    size_t init_container_count;
    bool has_pod_level; /* spec.resources has requests or limits */
    struct td_resource_list pod_requests;
    struct td_resource_list pod_limits;
    struct td_resource_list overhead;
    struct td_resource_list whole_requests;      /* of a pod with requests of its own: what it asks
                                                    for as a whole, containers and overhead included;
                                                    else empty */
    struct td_resource_list origin_pod_requests; /* of the owner's template (origin.h); where a
                                                    limit is not in the list, the pod's own count */
    struct td_resource_list origin_pod_limits;
    struct td_resize_condition resize_pending;     /* PodResizePending */
    struct td_resize_condition resize_in_progress; /* PodResizeInProgress */
    bool is_pending_first; /* of the two conditions, Pending stands first in the list */
    const struct td_json *tree;
};

/* From a Pod tree. Wrong types and bad quantities are TD_INVALID with their path and value. */
int td_pod_decode(struct td_arena *arena, const struct td_json *pod, struct td_pod *ret,
                  struct td_error *err);

/* The same without containerStatuses and `resized`, for passes over very many pods. */
int td_pod_decode_brief(struct td_arena *arena, const struct td_json *pod, struct td_pod *ret,
                        struct td_error *err);

/* status.phase; a name that is none of Kubernetes' is TD_POD_PHASE_UNKNOWN. */
enum td_pod_phase td_pod_phase_from(td_str text);

/* Succeeded or Failed: its containers have ended and hold nothing any more. */
bool td_pod_phase_is_over(enum td_pod_phase phase);
bool td_pod_tree_is_over(const struct td_json *pod);

/* The time in a member of a tree; TD_TIME_NONE when it is absent or cannot be read, and for
 * no other however long ago it was. */
td_time td_time_member(const struct td_json *object, td_str key);
