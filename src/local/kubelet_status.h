/*
 * The status of a pod as a kubelet writes it, from one step of its life to the next. Each function
 * changes the pod's tree in hand; nothing is stored and no clock is asked, so that what drives the
 * steps (kubelet.c today, demand and memory pressure later) is free to choose the moments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

struct td_pod_life {
    struct td_arena *arena;
    struct td_json *pod;
    td_time now;
    td_str host_address; /* of the node; may be empty */
    td_str pod_address;
};

/* Pending, containers being created: the kubelet took the pod. */
void td_pod_life_create(const struct td_pod_life *life);

/* Running and ready; init containers are over, sidecars run. Containers that ran before count a
 * restart. */
void td_pod_life_run(const struct td_pod_life *life);

/* All containers ended with that code: Succeeded or Failed. */
void td_pod_life_finish(const struct td_pod_life *life, int64_t exit_code);

/* They ended with that code and will be started again after a pause, which the state names. */
void td_pod_life_crash(const struct td_pod_life *life, int64_t exit_code, td_duration pause);

/* Do containers wait to be started again? */
bool td_pod_life_is_crashed(const struct td_pod_life *life);

/* Restarts of the container that has most. */
int64_t td_pod_life_restarts(const struct td_pod_life *life);

/* Are the resources of the spec others than those in the statuses? */
bool td_pod_life_is_resized(const struct td_pod_life *life);

/* Gives the pod the requests of its spec; they are not in use yet. */
void td_pod_life_allocate(const struct td_pod_life *life);

/* Resources of the spec are in use; containers whose policy says so count a restart. */
void td_pod_life_actuate(const struct td_pod_life *life);

/* The status follows from the pod's present generation; all steps above say so themselves. */
void td_pod_life_observe(const struct td_pod_life *life);

/* A condition of the pod, with its generation; status NULL removes it. True: something changed. */
bool td_pod_life_condition(const struct td_pod_life *life, const char *type, const char *status,
                           const char *reason, td_str message);
