/*
 * One pass of the updater (vpa.md 3.1, 3.4) as a machine without I/O: it is given VPAs, pods and
 * what was remembered, says which call to make next, and is told how the call went. Live
 * controllers, simulations and tests drive the same code:
 *
 *     td_updater_pass_begin(&pass, &input, &err);
 *     while (td_updater_pass_next(&pass, now, &action)) {
 *         td_updater_pass_result(&pass, result, message);
 *     }
 *     td_updater_pass_end(&pass);
 *
 * Pods are handled in the order given where priorities are equal, VPAs in the order given,
 * beginning where the last pass ran out of time. No pod is acted on by two VPAs. Events and the
 * account of every pod are in the pass. Taking back startup boosts is no part of it (restriction.h:
 * td_restriction_can_revert_boost). Memory is the arena's, but for the state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "base/os/clock.h"
#include "decide/vertical/patch/limitrange.h"
#include "decide/vertical/patch/podstanza.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/updater/matching.h"
#include "decide/vertical/updater/priority.h"
#include "decide/vertical/updater/restriction.h"
#include "decide/vertical/updater/updater_account.h"
#include "decide/vertical/updater/updater_state.h"
#include "model/owners.h"

struct td_error;

struct td_updater_config {
    struct td_update_config update;
    struct td_restriction_config restriction;
    double rate_per_second;             /* --eviction-rate-limit; 0 or less: none */
    int64_t rate_burst;                 /* --eviction-rate-burst */
    bool in_place_ignores_requirements; /* --in-place-ignores-eviction-requirements */
    bool is_upstream_exact;    /* eviction requirements as upstream reads them; for comparisons */
    bool warns_of_limit_range; /* --pod-level-container-limitrange=warn: such pods do come
                                  back from an eviction */
    const td_str *ignored_namespaces; /* --ignored-vpa-object-namespaces */
    size_t ignored_namespace_count;
};

struct td_updater_config td_updater_config_default(void);

struct td_updater_input {
    struct td_arena *arena;
    td_time now;
    td_time
        deadline; /* actions that would have to wait past it are left to the next pass; 0: none */
    const struct td_updater_config *config;
    struct td_vpa_gates gates;
    const struct td_vpa *const *vpas;
    size_t vpa_count;
    const struct td_pod *pods; /* assigned to a node, neither Succeeded nor Failed; those
                                           being deleted are passed over */
    size_t pod_count;
    const struct td_workload_source *source;
    struct td_updater_state *state;
    void *context;
    /* LimitRanges of a namespace. */
    const struct td_limit_ranges *(*get_limits)(void *context, td_str namespace);
    const struct td_resource_list *largest_node; /* allocatable; NULL: --cap-to-node is off */
};

enum td_updater_call { TD_UPDATER_EVICT, TD_UPDATER_RESIZE, TD_UPDATER_ANNOTATE };

struct td_updater_action {
    enum td_updater_call call;
    const struct td_vpa *vpa;
    const struct td_pod *pod;
    const struct td_json *patch; /* JSON patch, to the resize subresource or to the pod */
    td_time not_before;          /* the rate limit lets it through then */
    struct td_lacking lacking;   /* of a resize */
};

enum td_updater_result {
    TD_UPDATER_DONE,
    TD_UPDATER_INFEASIBLE, /* resize: Forbidden, with a cause of type NodeCapacity */
    TD_UPDATER_REFUSED,    /* evict: nothing was called, since the pod could not come back */
    TD_UPDATER_FAILED,
};

/* All events are of type Normal. */
struct td_updater_event {
    const struct td_pod *pod; /* NULL: about the VPA */
    const struct td_vpa *vpa;
    td_str reason;
    td_str message;
    td_str decision; /* the same in a few words with the sizes; empty: nothing was done */
};

struct td_updater_events {
    struct td_updater_event *items;
    size_t count;
    size_t cap;
};

/* A pod that may be updated. */
struct td_updater_candidate {
    const struct td_pod *pod;
    struct td_pod_memory *memory;
    struct td_update_answer answer;
    const struct td_recommendation *recommendation; /* capped for it */
    size_t position;                                /* among the VPA's pods */
    const struct td_vpa *resized; /* recommends what a resize sets; NULL: the VPA itself does */
    bool is_admitted;             /* an eviction, by the eviction requirements */
    bool is_tracked;              /* by the track estimator: evicted only when may_evict */
    bool may_evict;               /* tracked: its target has long been far above what it has */
};

struct td_updater_candidates {
    struct td_updater_candidate *items;
    size_t count;
};

/* What one VPA has to do. */
struct td_updater_job {
    const struct td_match_vpa *match;
    const struct td_pod **pods; /* of this VPA, live */
    size_t pod_count;
    struct td_restriction restriction;
    struct td_updater_candidates in_place;
    struct td_updater_candidates evictions;
    size_t in_place_at;
    size_t eviction_at;
    size_t evicted; /* done in this pass */
    size_t resized;
    size_t skipped; /* a resize that was infeasible before */
};

enum td_updater_phase { TD_PASS_READY, TD_PASS_WAITING, TD_PASS_ANNOTATING, TD_PASS_OVER };

struct td_updater_pass {
    struct td_updater_input input;
    struct td_match_index index; /* VPAs that may act */
    struct td_match_index roles; /* all VPAs: a mode switched off is not a change of role */
    struct td_top_memo memo;
    struct td_groups groups;
    struct td_updater_job *jobs;
    size_t job_count;
    size_t job_at;
    bool is_job_open;
    enum td_updater_phase phase;
    struct td_updater_action action;        /* asked for last */
    struct td_updater_candidate *candidate; /* of that action */
    const struct td_json *annotations;      /* patch that follows a resize */
    struct td_updater_events events;
    struct td_updater_notes notes;
    size_t controlled_count; /* pods under some VPA */
};

/* TD_BUSY when the source has to ask first; nothing is changed then, and there is nothing to end.
 */
int td_updater_pass_begin(struct td_updater_pass *pass, const struct td_updater_input *input,
                          struct td_error *err);

/* The next call to be made; false when the pass is over. `now` is for the rate limit. */
bool td_updater_pass_next(struct td_updater_pass *pass, td_time now, struct td_updater_action *ret);

/* How the last call went; `message` is the server's on failure, borrowed. */
void td_updater_pass_result(struct td_updater_pass *pass, enum td_updater_result result,
                            td_str message);

/* Forgets what the state need not keep. */
void td_updater_pass_end(struct td_updater_pass *pass);
