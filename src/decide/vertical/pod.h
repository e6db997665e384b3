/*
 * A pod as the vertical deciders see it: exact quantities (a recommendation is written back in the
 * format it had), resources as the kubelet reports them beside those of the spec, resize
 * conditions, OOM terminations. Decoded from the tree when a decision about that pod is due;
 * nothing of it is kept. Texts are slices of the tree, arrays in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "kube/meta.h"
#include "kube/podresources.h"
#include "model/pod.h"

struct td_error;

struct td_vertical_container {
    td_str name;
    struct td_resource_list spec_requests;
    struct td_resource_list spec_limits;
    bool has_spec_requests; /* the map is there, be it empty: a patch need not add it */
    bool has_spec_limits;
    bool has_status_resources; /* containerStatuses[].resources is there */
    struct td_resource_list status_requests;
    struct td_resource_list status_limits;
    bool has_status_requests;
    bool has_status_limits;
    bool has_origin; /* the owner's template is known (origin.h) */
    struct td_resource_list origin_requests;
    struct td_resource_list origin_limits;
    bool restarts_on_resize; /* some resizePolicy entry is RestartContainer */
    bool has_status;
    int32_t restart_count;
    bool has_last_terminated; /* lastState.terminated */
    td_str last_terminated_reason;
    td_time last_started;  /* TD_TIME_NONE when absent */
    td_time last_finished; /* likewise */
};

struct td_resize_condition {
    bool is_present;
    bool is_true;
    td_str reason;
    td_str message;
};

struct td_vertical_pod {
    struct td_meta meta;
    enum td_pod_phase phase;
    td_time start_time;
    td_time resized; /* when its resize subresource was last written; TD_TIME_NONE: never */
    enum td_condition_status ready;
    td_time ready_since;
    const struct td_vertical_container *containers; /* spec.containers, in order */
    size_t container_count;
    bool has_pod_level; /* spec.resources has requests or limits */
    struct td_resource_list pod_requests;
    struct td_resource_list pod_limits;
    struct td_resource_list origin_pod_requests; /* of the owner's template (origin.h); where a
                                                    limit is not in the list, the pod's own count */
    struct td_resource_list origin_pod_limits;
    struct td_resize_condition resize_pending;     /* PodResizePending */
    struct td_resize_condition resize_in_progress; /* PodResizeInProgress */
    bool is_pending_first; /* of the two conditions, Pending stands first in the list */
    const struct td_json *tree;
};

int td_vertical_pod_decode(struct td_arena *arena, const struct td_json *pod,
                           struct td_vertical_pod *ret, struct td_error *err);

/* What upstream calls the container's requests and limits: those of containerStatuses when that
 * block is there, else of the spec. */
const struct td_resource_list *td_vertical_requests(const struct td_vertical_container *container);
const struct td_resource_list *td_vertical_limits(const struct td_vertical_container *container);

/* Are those maps there, be they empty? */
bool td_vertical_has_requests(const struct td_vertical_container *container);
bool td_vertical_has_limits(const struct td_vertical_container *container);

/* Does the kubelet report other amounts than the spec has? A resize is under way then, whether or
 * not a condition says so yet. */
bool td_vertical_is_behind(const struct td_vertical_pod *pod);

/* What new limits are in proportion to: the resources of the owner's template where they are known,
 * else those above. */
const struct td_resource_list *
td_vertical_origin_requests(const struct td_vertical_container *container);
const struct td_resource_list *
td_vertical_origin_limits(const struct td_vertical_container *container);
