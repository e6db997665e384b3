/*
 * What the updater remembers from pass to pass: under which VPA each pod was seen, resizes that the
 * node could not take, when a pod was first seen resizing, replicas that came back unchanged after
 * an eviction, and the tokens of the rate limits. In memory only; forgotten with the pods it is
 * about. Bounded by TD_UPDATER_PODS_MAX. One owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/vpa/recommendation.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/os/clock.h"
#include "decide/vertical/pod.h"

#define TD_FRUITLESS_MAX 2              /* evictions of one replica without effect */
#define TD_FRUITLESS_PAUSE TD_HOUR      /* then it is left alone for this long */
#define TD_RESIZE_MEMORY (24 * TD_HOUR) /* a first sight is kept this long after the last */
#define TD_REBIRTHS_MAX 4096            /* evicted replicas of one group still to come back */

struct td_pod_memory {
    td_str key;              /* uid, else namespace/name; owned */
    td_str vpa;              /* "namespace/name" when last seen, empty: none; owned */
    td_str failed;           /* JSON of the recommendation that was infeasible, or empty; owned */
    bool is_moved;           /* to another VPA, and nothing was done about it yet */
    int fruitless;           /* evictions of this replica that changed nothing */
    uint64_t recommendation; /* what they were to bring about, hashed */
    td_time left_alone_until;
    bool is_reported; /* that it is left alone, by an event */
    uint64_t pass;    /* the last one that saw it */
    /* Under the track estimator: resizes that the node or the server did not grant. */
    int held_count;        /* in a row */
    bool is_refused;       /* the last by the server */
    td_time held_until;    /* the next attempt; 0: at once */
    td_time starved_since; /* its target has been far above what it has; 0: it is not */
};

#define TD_RESIZE_PAUSE (5 * TD_MINUTE) /* after one that was not granted; doubled each time */
#define TD_RESIZE_PAUSE_MAX TD_HOUR
#define TD_STARVED_MAX TD_HOUR /* then a pod under the track estimator may be evicted */

struct td_token_bucket {
    double tokens;
    td_time at;
    bool is_started;
};

struct td_updater_state {
    struct td_map pods;     /* key to td_pod_memory; owned */
    struct td_map resizing; /* "namespace/name" to a first sight; owned */
    struct td_map rebirths; /* group to evicted replicas that should come back; owned */
    uint64_t pass;          /* counts from 1 */
    struct td_token_bucket evictions;
    struct td_token_bucket resizes;
    td_str resume; /* key of the VPA at which a pass ran out of time, or empty; owned */
};

void td_updater_state_init(struct td_updater_state *state);
void td_updater_state_done(struct td_updater_state *state);

/* Where the next pass begins; empty: with the first VPA. */
void td_updater_state_set_resume(struct td_updater_state *state, td_str vpa);

void td_updater_state_begin(struct td_updater_state *state);

/* Forgets pods that the pass did not see. */
void td_updater_state_end(struct td_updater_state *state, td_time now);

/* The memory of a pod, made when it is new; NULL when too many are remembered. *ret_is_new tells
 * whether it was never seen. */
struct td_pod_memory *td_updater_state_pod(struct td_updater_state *state, const struct td_pod *pod,
                                           bool *ret_is_new);
struct td_pod_memory *td_updater_state_find(const struct td_updater_state *state,
                                            const struct td_pod *pod);

/* Notes under which VPA the pod is now (empty: none); is_moved follows, and stays until
 * td_updater_state_settled. */
void td_updater_state_see(struct td_pod_memory *memory, td_str vpa, bool is_new);

/* A resize was not granted: the next attempt waits, longer each time. */
void td_updater_state_hold_resize(struct td_pod_memory *memory, td_time now);

/* Something was done about the move, or there is nothing to do. */
void td_updater_state_settled(struct td_pod_memory *memory);

/* Records a recommendation as infeasible for a pod, and reads it back (NULL: none). */
void td_updater_state_set_failed(struct td_pod_memory *memory,
                                 const struct td_recommendation *recommendation);
const struct td_recommendation *td_updater_state_failed(struct td_arena *arena,
                                                        const struct td_pod_memory *memory);

/* When the pod was first seen resizing; noted now when it is the first time. It is never renewed,
 * as upstream. */
td_time td_updater_state_resizing_since(struct td_updater_state *state, td_str namespace,
                                        td_str name, td_time now);
void td_updater_state_set_resizing(struct td_updater_state *state, td_str key, td_time since);
bool td_updater_state_next_resizing(const struct td_updater_state *state, size_t *position,
                                    td_str *ret_key, td_time *ret_since);

/* The pod was evicted to bring about these targets. */
void td_updater_state_evicted(struct td_arena *arena, struct td_updater_state *state,
                              const struct td_pod *pod,
                              const struct td_recommendation *recommendation, td_time now);

/* A pod never seen before: does it stand for an evicted one? If it came back with the same requests
 * the memory counts one more eviction without effect. */
void td_updater_state_born(struct td_arena *arena, struct td_updater_state *state,
                           struct td_pod_memory *memory, const struct td_pod *pod, td_time now);

/* Is the replica left alone for now? Ends by itself, and when the targets change. */
bool td_updater_state_is_left_alone(struct td_pod_memory *memory,
                                    const struct td_recommendation *recommendation, td_time now);

/* When a token is there: `now`, or later. Takes it. A rate of 0 or less is no limit. */
td_time td_token_bucket_take(struct td_token_bucket *bucket, double per_second, int64_t burst,
                             td_time now);
