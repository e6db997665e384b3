/*
 * How far a pod is from its recommendation, and whether that is reason enough to update it (vpa.md
 * 3.3; moved pods: proposals.md 1.3; pods with resources of their own: proposals.md 3.4). Pure: the
 * recommendation is the one capped for this pod, and what is remembered of the pod is an input.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/recommendation.h"
#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/os/clock.h"
#include "decide/vertical/pod.h"
#include "model/name_table.h"

#define TD_UPDATE_THRESHOLD_DEFAULT 0.1
#define TD_UPDATE_LIFETIME_DEFAULT (12 * TD_HOUR)
#define TD_UPDATE_OOM_THRESHOLD_DEFAULT (10 * TD_MINUTE)

struct td_update_config {
    double threshold;          /* --pod-update-threshold */
    td_duration lifetime;      /* --in-recommendation-bounds-eviction-lifetime-threshold */
    td_duration oom_threshold; /* --evict-after-oom-threshold */
};

struct td_update_priority {
    bool is_outside;  /* some request is outside its range */
    bool is_scale_up; /* some target is above its request */
    double resource_diff;
};

enum td_update_verdict {
    TD_UPDATE_ACCEPTED,
    TD_UPDATE_INFEASIBLE,    /* failed before, and no target is lower now */
    TD_UPDATE_NO_START_TIME, /* inside its range, and its age is not known */
    TD_UPDATE_YOUNG,         /* inside its range, and not old enough */
    TD_UPDATE_SMALL_CHANGE,  /* inside its range, and close to the target */
    TD_UPDATE_OOM_NO_CHANGE, /* killed early, but nothing would change */
    TD_UPDATE_WAITING,       /* adaptive: a smaller request is due later */
    TD_UPDATE_IN_BAND,       /* adaptive: close to the target */
};

struct td_update_question {
    const struct td_vpa *vpa;
    const struct td_pod *pod;
    const struct td_recommendation *recommendation; /* capped for this pod */
    const struct td_recommendation *failed;         /* InPlace: recorded as infeasible, or NULL */
    const struct td_update_config *config;
    const struct td_vpa_gates *gates;
    td_time now;
    bool is_moved; /* was under another VPA, or under none, when last seen */
};

struct td_update_answer {
    enum td_update_verdict verdict;
    struct td_update_priority priority;  /* at the level that decided */
    struct td_update_priority container; /* over the containers */
    bool is_pod_checked;
    struct td_update_priority pod; /* over the pod's own resources, when checked */
    bool is_quick_oom;
    bool is_moved;  /* and that is why it counts as outside */
    bool ends_move; /* it had moved, and is close to all that its new VPA recommends */
    td_time until;  /* YOUNG, WAITING: when it is old enough */
    int rank;       /* adaptive: lower ones first (td_adaptive_rank); 0 by upstream's rule */
    td_str text;    /* adaptive: what decided, as a sentence; empty by upstream's rule */
};

/* Which containers the admission webhook saw; false when it left no readable word, and then all
 * count. */
bool td_update_observed(struct td_arena *arena, const struct td_pod *pod,
                        struct td_name_table *ret);

/* Over the containers. With `skip_absent` a resource without a request is left out, else it counts
 * as outside. */
struct td_update_priority td_update_priority(struct td_arena *arena, const struct td_pod *pod,
                                             const struct td_recommendation *recommendation,
                                             bool skip_absent);

struct td_update_answer td_update_judge(struct td_arena *arena,
                                        const struct td_update_question *question);

/* Has `now` a target that is lower than the same one of `before`? */
bool td_recommendation_is_lower(struct td_arena *arena, const struct td_recommendation *before,
                                const struct td_recommendation *now);

/* For qsort: pods that grow first, then the larger difference; 0 when equal. */
int td_update_priority_compare(const struct td_update_priority *a,
                               const struct td_update_priority *b);
