/*
 * Which VPA controls a pod (vpa.md 4.1; spec.selector: proposals.md 1.1, 1.4). VPAs are indexed
 * once by the controller they name; a pod is then judged by its topmost controller and its labels.
 * Of several VPAs that match the oldest has the pod, so no pod is ever acted on by two. With the
 * gate open that holds whatever its mode: a VPA that only recommends keeps a pod from younger ones,
 * and no VPA acts on it. The index is in the arena that made it and borrows the VPAs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/map.h"
#include "kube/selector/labels.h"
#include "model/owners.h"

struct td_error;

enum td_match_user {
    TD_MATCH_ADMISSION, /* mode Off counts only with a startup boost */
    TD_MATCH_UPDATER,   /* so do Off and Initial */
    TD_MATCH_ANY,       /* every mode, as for samples and for reverting boosts */
};

struct td_match_vpa {
    const struct td_vpa *vpa;
    struct td_selector target_selector; /* of the target itself */
    td_str key;                         /* "namespace/name" */
    bool is_idle;                       /* its mode does not count for the user */
    struct td_match_vpa *next;          /* the next younger one of the same target */
};

struct td_match_index {
    struct td_arena *arena;
    struct td_map targets;        /* namespace, kind and name to the oldest VPA of that target */
    bool heterogeneous_workloads; /* the gate: spec.selector counts */
};

bool td_vpa_has_boost(const struct td_vpa *vpa);
struct td_controller td_match_target(const struct td_vpa *vpa); /* what its targetRef names */

void td_match_index_init(struct td_match_index *index, struct td_arena *arena,
                         bool heterogeneous_workloads);
void td_match_index_done(struct td_match_index *index);

/* Adds VPAs, in any order; those whose target's selector cannot be read are left out. TD_BUSY when
 * the source has to ask first: nothing is added then. *ret_skipped, when not NULL, gets how many
 * were left out. */
int td_match_index_add(struct td_match_index *index, const struct td_workload_source *source,
                       const struct td_vpa *const *vpas, size_t count, enum td_match_user user,
                       size_t *ret_skipped, struct td_error *err);

/* The VPA of a pod, or NULL. `top` is the pod's topmost controller. */
const struct td_match_vpa *td_match_find(const struct td_match_index *index,
                                         const struct td_controller *top, td_str namespace,
                                         const struct td_labels *labels);

/* Topmost controllers by the pods' direct owners, each walked once: pods of one workload share
 * their answer. */
struct td_top_memo {
    struct td_arena *arena;
    struct td_map tops;
};

void td_top_memo_init(struct td_top_memo *memo, struct td_arena *arena);
void td_top_memo_done(struct td_top_memo *memo);

/* The topmost controller of a pod, or NULL when it has no controller; *ret_why, when not NULL, then
 * says why, or is empty when there simply is no owner. TD_BUSY when the source has to ask first. */
int td_top_memo_get(struct td_top_memo *memo, const struct td_workload_source *source,
                    const struct td_meta *pod, const struct td_controller **ret, td_str *ret_why,
                    struct td_error *err);
