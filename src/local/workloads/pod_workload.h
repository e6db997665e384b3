/*
 * The workload that a pod belongs to: its topmost controlling owner, from the pod over a ReplicaSet
 * to the Deployment, from a Job to the CronJob, and so on for custom kinds. A pod without one is a
 * workload of its own. An owner that is not stored (any more) ends the way and counts by what the
 * reference says.
 */
#pragma once

#include "base/json/json.h"
#include "base/str.h"

struct td_api;

struct td_pod_workload {
    td_str kind; /* "Deployment" */
    td_str name;
};

/* Texts belong to the arena. At most TD_CONTROLLER_CHAIN_MAX owners above each other are
 * followed. */
struct td_pod_workload td_pod_workload(struct td_api *api, struct td_arena *arena,
                                       const struct td_json *pod);
