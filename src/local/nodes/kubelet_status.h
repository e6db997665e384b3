/*
 * The status of a pod as a kubelet writes it. Each function changes the pod's tree in hand; nothing
 * is stored and no clock is asked, so that what drives the steps (kubelet.c) is free to choose the
 * moments. Containers change one by one; td_pod_life_conclude says what follows for the pod.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "base/str.h"

struct td_pod_life {
    struct td_arena *arena;
    struct td_json *pod;
    td_time now;
    td_str host_address; /* of the node; may be empty */
    bool is_changed;     /* since it was read */
};

enum td_life_state { TD_LIFE_WAITING, TD_LIFE_RUNNING, TD_LIFE_ENDED };

/* A container of the pod in hand. */
struct td_life_container {
    td_str name;
    const struct td_json *spec;
    struct td_json *status;
    bool is_init;    /* sidecars too */
    bool is_sidecar; /* an init container that goes on running */
};

struct td_life_condition {
    const char *type;
    const char *status; /* NULL: remove it */
    const char *reason; /* may be NULL */
    td_str message;
};

/* ---- The pod ---- */

/* Pending, containers being created: the kubelet took the pod. */
void td_pod_life_create(struct td_pod_life *life);

/* All containers, init containers first, in the order of the spec; statuses that lack are made. */
struct td_life_container *td_pod_life_containers(struct td_pod_life *life, size_t *ret_count);

void td_pod_life_set_address(struct td_pod_life *life, td_str address);

/* A condition of the pod, with its generation; status NULL removes it. True: something changed. */
bool td_pod_life_condition(struct td_pod_life *life, const char *type, const char *status,
                           const char *reason, td_str message);

/* The same for a generation that may be an older one. */
bool td_pod_life_condition_of(struct td_pod_life *life, int64_t generation,
                              const struct td_life_condition *condition);

/* Phase, conditions and the observed generation, as they follow from the containers. is_last:
 * nothing will be started again. */
void td_pod_life_conclude(struct td_pod_life *life, bool is_last);

/* Succeeded or Failed. */
bool td_pod_life_is_over(const struct td_pod_life *life);

/* ---- One container ---- */

enum td_life_state td_life_state(const struct td_life_container *container);

/* Has it ever been running? */
bool td_life_has_run(const struct td_life_container *container);

/* Of its last run; 0 when there was none. */
int64_t td_life_exit_code(const struct td_life_container *container);

/* Must it be started again after its last run? */
bool td_life_restarts(const struct td_pod_life *life, const struct td_life_container *container);

/* Need those behind it in the order wait no longer? Of init containers. */
bool td_life_is_initialized(const struct td_life_container *container);

/* Runs from now on, neither started nor ready; one that has run before counts a restart. */
void td_life_start(struct td_pod_life *life, struct td_life_container *container);

void td_life_set_ready(struct td_pod_life *life, struct td_life_container *container,
                       bool is_started, bool is_ready);

/* Reason NULL: Completed or Error, by the code. */
void td_life_end(struct td_pod_life *life, struct td_life_container *container, int64_t exit_code,
                 const char *reason);

/* It has ended and will be started after a pause, which the state names. */
void td_life_back_off(struct td_pod_life *life, struct td_life_container *container,
                      td_duration pause);

/* ---- Resources ---- */

/* Equal requests and limits; one that is not there is like an empty one. */
bool td_life_same_resources(const struct td_json *a, const struct td_json *b);

/* What the container may use, and (NULL) the pod as a whole: given, and in use. */
void td_life_allocate(struct td_pod_life *life, struct td_life_container *container,
                      const struct td_json *resources);
void td_life_use(struct td_pod_life *life, struct td_life_container *container,
                 const struct td_json *resources);

/* Does going over to these resources demand a restart by the container's policy? */
bool td_life_resize_restarts(const struct td_life_container *container,
                             const struct td_json *resources);
