/*
 * What the files of the kubelet share. A record is kept for every pod that is run here: the bodies
 * of its containers in the engine, and the moments and pauses that no status tells exactly. It can
 * be made anew from the status at any time, with moments that begin again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "base/str.h"
#include "local/engine/engine.h"
#include "local/nodes/kubelet.h"
#include "local/nodes/kubelet_status.h"

struct td_bound_pod;
struct td_queue;

#define KUBELET_NEVER INT64_MAX

/* Why a container has ended that the status still calls running. */
enum kubelet_end {
    KUBELET_RUNS_ON,
    KUBELET_OUT_OF_MEMORY,
    KUBELET_FINISHED,
    KUBELET_LOST, /* with its node */
};

struct kubelet_container {
    struct td_engine_container *body; /* in the engine; NULL: it has none */
    enum kubelet_end end;
    bool is_seen;        /* moments of its present run are set */
    bool is_ready;       /* as its body knows */
    td_time started_at;  /* startup probe passed */
    td_time ready_at;    /* KUBELET_NEVER: not by itself */
    td_time ends_at;     /* KUBELET_NEVER: not by itself */
    td_time ended_at;    /* 0: before this process began */
    td_duration pause;   /* before the next restart; 0: none */
    td_time pause_since; /* when it was last lengthened */
    bool has_fixed;      /* a want of its own, by annotation */
    struct td_want fixed;
};

struct kubelet_record {
    td_str key; /* as in the index; follows the record in memory, as uid does */
    td_str uid;
    uint64_t seen_version; /* of the pod when it was last looked at */
    td_time next;          /* when there is something to do without a change */
    struct td_engine_pod *body;
    td_str role_label;
    td_str role; /* that the engine knows; owned */
    td_time created;
    td_time resize_due;
    td_time deleting;
    int64_t resize_generation;
    td_str allocated; /* resources that are given but not yet in use, as JSON; owned; or empty */
    bool is_sandbox_lost;
    size_t count;
    struct kubelet_container containers[]; /* as td_pod_life_containers has them */
};

struct td_kubelet {
    struct td_api *api;
    struct td_log *log;
    struct td_node_index *index;
    struct td_scheduler *scheduler;
    struct td_engine *engine;
    struct td_queue *queue; /* keys of pods */
    struct td_map records;  /* by key; owned */
};

/* A pod in hand. */
struct kubelet_pod {
    struct td_kubelet *kubelet;
    struct td_bound_pod *bound; /* replaced by each write; NULL: gone */
    struct kubelet_record *record;
    struct td_life_container *containers; /* beside record->containers */
    const struct td_json *allocated;      /* record->allocated as a tree, or NULL */
    struct td_pod_life life;
};

/* ---- kubelet.c ---- */

/* Looks at the pod again at that moment. */
void kubelet_wake(struct kubelet_pod *pod, td_time at);
/* Looks at it now, changed or not. */
void kubelet_look(struct td_kubelet *kubelet, td_str key);

/* ---- kubelet_containers.c ---- */

/* The pod has a body in the engine from now on, when there is an engine. */
void kubelet_embody(struct kubelet_pod *pod);
/* Its containers stop, and the engine forgets it. */
void kubelet_disembody(struct kubelet_record *record);
/* What of labels and annotations concerns the bodies. */
void kubelet_follow(struct kubelet_pod *pod);
/* Each container takes the step that is due. True: the pod is over. */
bool kubelet_step_containers(struct kubelet_pod *pod);
/* Stops one and starts it again, with a restart counted. */
void kubelet_restart_container(struct kubelet_pod *pod, size_t index);
/* Those that have not ended end with that code. */
void kubelet_end_all(struct kubelet_pod *pod, int64_t exit_code);
struct td_engine_limits kubelet_limits(struct td_arena *arena, const struct td_json *resources);

/* ---- kubelet_resize.c ---- */

void kubelet_step_resize(struct kubelet_pod *pod);
/* What the node has given to a container, be it in use yet or not. */
const struct td_json *kubelet_given(struct kubelet_pod *pod, size_t index);

/* ---- kubelet_events.c ---- */

void kubelet_tell(struct kubelet_pod *pod, const char *type, const char *reason, td_str message);
void kubelet_tell_of(struct kubelet_pod *pod, const struct td_life_container *container,
                     const char *type, const char *reason, td_str message);
void kubelet_tell_start(struct kubelet_pod *pod, const struct td_life_container *container);
void kubelet_tell_back_off(struct kubelet_pod *pod, const struct td_life_container *container);
/* Of what was given: "Pod resize WHAT: {...}"; error may be empty. */
void kubelet_tell_resize(struct kubelet_pod *pod, const char *reason, const char *what,
                         td_str error);
/* Of what is wished and cannot be given. */
void kubelet_tell_pending(struct kubelet_pod *pod, bool is_hopeless, td_str message);
