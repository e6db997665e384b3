/*
 * The rule of adaptive_apply.h on a whole pod, in place of upstream's question whether its requests
 * are outside the bounds. A row is a container for which the VPA recommends something, and the pod
 * itself where it has resources of its own. The pod is updated when a row asks for it; the others
 * then stay as they are.
 *
 * What the rule must remember is kept by the API server: since when the estimator has measured is a
 * condition of the VPA, written with its recommendation; when the pod was last resized is in its
 * managedFields, whoever did it; its last OOM is in its status. So a restart changes no decision,
 * it makes no difference where the recommender runs, and there is nothing to bound. Pure; results
 * are in the arena.
 */
#pragma once

#include <stdbool.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/os/clock.h"
#include "decide/vertical/estimator/adaptive_apply.h"
#include "decide/vertical/pod.h"

struct td_adaptive_pod_input {
    const struct td_vpa *vpa;
    const struct td_vertical_pod *pod;
    const struct td_recommendation *recommendation; /* capped for this pod */
    td_time since;                                  /* td_adaptive_since */
    td_time now;
    bool is_pod_level; /* the pod's own resources count */
};

struct td_adaptive_pod {
    enum td_adaptive_apply_reason reason; /* of the row that weighs most */
    bool is_apply;
    td_time until; /* WAITING: when the first row may be made smaller */
    td_str text;   /* that row's decision, for people; empty: there is no row */
    /* A copy that recommends what is to be set now, and nothing for rows that stay; to be capped
     * again. NULL: nothing is to be set. */
    const struct td_vpa *vpa;
};

/* Is what the VPA recommends the adaptive estimator's, and since when has that measured? */
bool td_adaptive_since(const struct td_vpa *vpa, td_time *ret);

struct td_adaptive_pod td_adaptive_judge_pod(struct td_arena *arena,
                                             const struct td_adaptive_pod_input *input);

/* The order of pods in the queue: what was killed for its memory, what grows, what shrinks. */
int td_adaptive_rank(enum td_adaptive_apply_reason reason);
