/*
 * When a startup boost is taken back, and how (vpa.md 3.7). Pods of one
 * namespace that are due are judged together, since the VPAs of the namespace and the groups that
 * pods are in are the same for all of them; each is judged as if it were the only one, for a boost
 * that is taken back does not count against the others. Pure; everything is in the arena.
 *
 *     td_boost_revert_begin(&round, &input, &err);
 *     td_boost_revert_judge(&round, pod, &answer, &err);
 *     td_boost_revert_end(&round);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/os/clock.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/patch/resizepatch.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/updater/matching.h"
#include "decide/vertical/updater/restriction.h"
#include "model/owners.h"

struct td_error;

struct td_boost_revert_input {
    struct td_arena *arena;
    td_time now;
    const struct td_restriction_config *config;
    const struct td_vpa_gates *gates;
    const struct td_vpa *const *vpas; /* of the namespace, of any mode */
    size_t vpa_count;
    const struct td_workload_source *source;
    const struct td_limit_ranges *limits; /* of the namespace; NULL: none */
    void *context;
    /* The pods of the namespace that are on a node and not over; asked for once, and only when a
     * boost has expired. */
    size_t (*get_pods)(void *context, const struct td_pod **ret);
};

struct td_boost_revert {
    struct td_boost_revert_input input;
    struct td_match_index index;
    struct td_top_memo memo;
    struct td_groups groups;
    struct td_map teams; /* private: the pods of a VPA, by its key */
    bool has_pods;
    const struct td_pod *pods;
    const struct td_match_vpa **masters; /* of each pod, or NULL */
    size_t pod_count;
};

enum td_boost_revert_fate {
    TD_BOOST_REVERT_NOTHING, /* no boost, not Ready, or going: nothing until the pod changes */
    TD_BOOST_REVERT_NO_VPA,  /* no VPA controls it */
    TD_BOOST_REVERT_LATER,   /* the boost lasts */
    TD_BOOST_REVERT_HELD,    /* expired, but the pod may not be disturbed now */
    TD_BOOST_REVERT_NOW,
};

struct td_boost_revert_answer {
    enum td_boost_revert_fate fate;
    td_duration after; /* LATER: until a boost expires; 0: any moment now */
    const struct td_vpa *vpa;
    size_t pod_count;             /* HELD, NOW: pods of that VPA */
    struct td_resize_patch patch; /* NOW */
};

/* TD_BUSY when the source has to ask first; there is nothing to end then. */
int td_boost_revert_begin(struct td_boost_revert *round, const struct td_boost_revert_input *input,
                          struct td_error *err);
void td_boost_revert_end(struct td_boost_revert *round);

/* TD_BUSY likewise. Other failures: the boost cannot be taken back as things are, for reasons in
 * the error; vpa and pod_count of the answer are set then too. */
int td_boost_revert_judge(struct td_boost_revert *round, const struct td_pod *pod,
                          struct td_boost_revert_answer *ret, struct td_error *err);
