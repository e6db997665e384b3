/*
 * The rules of adaptive_apply.h and track.h on a whole pod, in place of upstream's question whether
 * its requests are outside the bounds. A row is a container for which the VPA recommends something,
 * and the pod itself where it has resources of its own. The pod is updated when a row asks for it;
 * the others then stay as they are.
 *
 * What the rule must remember is kept by the API server: since when the estimator has measured is a
 * condition of the VPA, written with its recommendation; when the pod was last resized is in its
 * managedFields, whichever client did it; its last OOM is in its status. Under the track estimator
 * CPU and memory wait each for themselves, which managedFields do not tell apart: an annotation of
 * the pod has when each request became what it is. So a restart changes no decision, it makes no
 * difference where the recommender runs, and there is nothing to bound. Pure; results are in the
 * arena.
 */
#pragma once

#include <stdbool.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/os/clock.h"
#include "decide/vertical/estimator/adaptive_apply.h"
#include "decide/vertical/estimator/track.h"
#include "decide/vertical/pod.h"
#include "model/template.h"

struct td_adaptive_pod_input {
    const struct td_vpa *vpa;
    const struct td_pod *pod;
    const struct td_recommendation *recommendation; /* capped for this pod */
    td_time since;                                  /* td_adaptive_since */
    const struct td_track_params *track;            /* td_track_since; NULL: CPU is adaptive's */
    td_time track_since;                            /* likewise */
    const struct td_pod_template *template;         /* of its owner; NULL: not known */
    td_time now;
    bool is_pod_level; /* the pod's own resources count */
};

struct td_adaptive_pod {
    enum td_adaptive_apply_reason reason; /* of the row that weighs most */
    bool is_apply;
    td_time until; /* WAITING: when the first row may be made smaller */
    td_str text;   /* that row's decision as a sentence; empty: there is no row */
    /* A copy that recommends what is to be set now, and nothing for rows that stay; to be capped
     * again. NULL: nothing is to be set. */
    const struct td_vpa *vpa;
};

/* Is what the VPA recommends the adaptive estimator's, and since when has that measured? */
bool td_adaptive_since(const struct td_vpa *vpa, td_time *ret);

/* Is the VPA's CPU the track estimator's, since when, and at which risk? NULL: it is not. */
const struct td_track_params *td_track_since(const struct td_vpa *vpa, td_time *ret);

/* What the template says of a container's memory; where it is not known, what the pod has, which is
 * in the same proportion. */
struct td_track_template td_track_template_of(const struct td_pod_template *template,
                                              const struct td_pod_container *container);

/* On a pod: {"app":{"cpu":["431m",1772409600],"memory":["512Mi",1772406000]}}, the requests that
 * were set and since when each has been. An amount that another client has changed since does not
 * count. */
#define TD_RESIZED_ANNOTATION TD_STR("tandem.dev/resized")

/* Seconds since a request of a container is what it is: by the annotation, else the last resize of
 * the pod or its creation. */
int64_t td_resized_at(const struct td_pod *pod, const struct td_pod_container *container,
                      td_str resource);
/* The annotation's text once these containers (as many as the pod has) have these requests; NULL
 * items: unchanged. */
td_str td_resized_text(struct td_arena *arena, const struct td_pod *pod,
                       const struct td_resource_list *const *requests, td_time now);

struct td_adaptive_pod td_adaptive_judge_pod(struct td_arena *arena,
                                             const struct td_adaptive_pod_input *input);

/* Is the target of some container at least half as much again as what it has? */
bool td_adaptive_is_short(const struct td_pod *pod, const struct td_recommendation *recommendation);

/* The order of pods in the queue: what was killed for its memory, what grows, what shrinks. */
int td_adaptive_rank(enum td_adaptive_apply_reason reason);
