/*
 * The recommendation of one VPA: the pod's minimum split over its containers, an estimate for each,
 * and then the same steps for every estimator: keep the controlled resources, round, humanise,
 * round up to whole CPUs where annotated, cap by policy and by the global maxima (the per-pod
 * capping of admission and updater is elsewhere). Pure; results are in the arena.
 */
#pragma once

#include <stddef.h>

#include "api/vpa/recommendation.h"
#include "api/vpa/vpa.h"
#include "decide/vertical/estimator/estimator.h"

/* One container to size. Those with mode Off are left out by the caller. */
struct td_subject {
    td_str container;
    const struct td_aggregate *aggregate;
    const void *estimator_state;
};

struct td_recommend_terms {
    const struct td_vertical_config *config;
    const struct td_estimator *estimator;
    const struct td_resource_policy *policy;   /* NULL: none */
    const struct td_json *annotations;         /* of the VPA; NULL: none */
    const struct td_resource_list *global_max; /* NULL: none */
    bool is_display_only;                      /* mode Off or Initial */
    td_time now;
    const struct td_recommendation *held; /* below whose memory no target falls; NULL: none */
    td_time held_until;                   /* for the account */
};

/* Subjects in ascending order of name, as the result will be. ret_accounts gets an array of `count`
 * accounts; NULL: not wanted. */
void td_recommend(struct td_arena *arena, const struct td_recommend_terms *terms,
                  const struct td_subject *subjects, size_t count, struct td_recommendation *ret,
                  struct td_account **ret_accounts);

/* The amounts alone, before rounding: for replays and tests. */
void td_recommend_estimate(const struct td_recommend_terms *terms, const struct td_subject *subject,
                           size_t subject_count, struct td_estimate *ret,
                           struct td_account *account);

/* Policy and global maxima over target and bounds (upstream's ApplyVPAPolicy). */
void td_recommend_cap(const struct td_resource_policy *policy,
                      const struct td_resource_list *global_max,
                      struct td_container_recommendation *container, struct td_account *account);
