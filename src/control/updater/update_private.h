/*
 * What the files of the updater share.
 *
 * A pass goes part by part. A part is some of the targets of a namespace, all VPAs of each together
 * with all of its pods, since nothing that the updater decides looks beyond a target; which part a
 * target belongs to is a matter of its name and stays so. Memory is therefore bounded by a small
 * share of the largest namespace, and between two parts the loop has its turn. Each part has a
 * state of its own; the tokens of the rate limits are one for all and are lent to the part at work.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/sight.h"
#include "control/tally.h"
#include "control/updater/update_loop.h"

struct td_client_call;
struct td_client_request;
struct td_timer;
struct update_conditions;
struct update_replacement;
struct update_unboost;

/* A VPA of a part, in the arena of the roll. */
struct update_turn {
    td_str name;
    struct update_turn *next;
};

/* What is remembered of a part between passes. */
struct update_part {
    td_str key;       /* "namespace/number"; owned */
    td_str namespace; /* of the key */
    struct td_updater_state state;
    struct td_map held; /* reasons for which pods are held, of VPAs, told by events: owned keys */
    struct update_turn *first; /* its VPAs in this pass */
    struct update_turn *last;
};

enum update_phase {
    UPDATE_IDLE,
    UPDATE_LEASE,   /* the admission controller's lease is being read */
    UPDATE_ACTING,  /* a call is under way */
    UPDATE_WAITING, /* for a token, or for an answer that a source said it has to ask for */
};

struct update_tallies {
    struct td_tally_family *controlled;
    struct td_tally_family *evictable;
    struct td_tally_family *evicted;
    struct td_tally_family *failed_evictions;
    struct td_tally_family *updatable;
    struct td_tally_family *updated;
    struct td_tally_family *failed_updates;
    struct td_tally_family *infeasible_skips;
    struct td_tally_family *with_evictable;
    struct td_tally_family *with_evicted;
    struct td_tally_family *with_updatable;
    struct td_tally_family *with_updated;
    struct td_tally_family *lease_invalid;
    struct td_tally_family *skipped;
    struct td_tally_family *steps;
};

struct td_update_loop {
    struct td_update_options options;
    struct td_timer *timer; /* of the interval */
    struct td_timer *pause; /* until an action may be done, or a source is asked again */
    bool is_running;
    bool is_due; /* a tick found the pass before under way */
    enum update_phase phase;
    void (*stopped)(void *context);
    void *stopped_context;
    struct td_client_call *call;

    struct td_map parts; /* by key */
    struct {
        TD_VEC_FIELDS(struct update_part *);
    } turns; /* parts of this pass */
    size_t turn_at;
    struct td_arena roll;       /* of the names of this pass */
    struct update_part *resume; /* ran out of time first: the next pass begins with it; or NULL */
    td_time began;
    td_time last_pass;
    bool is_lease_stale; /* it was, at the last look */
    struct td_token_bucket evictions;
    struct td_token_bucket resizes;

    /* Of the part at work. */
    struct td_arena arena;
    bool is_open;
    struct td_updater_pass pass;
    struct td_updater_action action;
    size_t events_told;
    int busy_count;
    int proof_count;         /* how often the proof that pods are mutated was waited for */
    td_duration proof_since; /* an older one does not count */

    struct update_conditions *conditions;
    struct update_replacement *replacement;
    struct update_unboost *unboost; /* NULL: gate CPUStartupBoost is off */
    struct update_tallies tallies;
};

td_time update_now(const struct td_update_loop *loop);

/* Is what is known of the cluster good enough to act on? */
bool update_is_fresh(const struct td_update_loop *loop);

/* A JSON patch to a pod, or to its resize subresource; texts are in the arena. */
int update_patch_request(struct td_arena *arena, const struct td_vertical_pod *pod,
                         const struct td_json *patch, bool is_resize, struct td_client_request *ret,
                         struct td_error *err);

/* The tokens of resizes, wherever they are lent to. */
struct td_token_bucket *update_resizes(struct td_update_loop *loop);

/* Rests for a while; then the action is tried again, or the pass goes on. */
void update_pause(struct td_update_loop *loop, td_duration span);
/* An answer that an action waited for is there: it is tried again. */
void update_go_on(struct td_update_loop *loop);

/* Tells whoever asked for the end when nothing is under way any more. */
void update_settle(struct td_update_loop *loop);

/* ---- update_unboost.c ---- */

/* Before the sight starts, since it listens to pods. */
struct update_unboost *update_unboost_new(struct td_update_loop *loop);
void update_unboost_free(struct update_unboost *unboost);
void update_unboost_start(struct update_unboost *unboost);
/* Nothing new is begun; what is under way ends with update_settle. */
void update_unboost_stop(struct update_unboost *unboost);
bool update_unboost_is_idle(const struct update_unboost *unboost);

/* ---- update_held.c ---- */

void update_held_init(struct update_part *part);
void update_held_done(struct update_part *part);
/* At the end of the pass over a namespace. */
void update_held_tell(struct td_update_loop *loop, struct update_part *part);

/* ---- update_replacement.c ---- */

enum update_verdict {
    UPDATE_VERDICT_FINE,
    UPDATE_VERDICT_ASKED,   /* something is read first: update_go_on or the pause follows */
    UPDATE_VERDICT_REFUSED, /* the replacement would be */
    UPDATE_VERDICT_UNKNOWN, /* it cannot be judged */
};

struct update_replacement *update_replacement_new(void);
void update_replacement_free(struct update_replacement *replacement);
/* May the pod of the action be evicted? If not, *ret_why says why. */
enum update_verdict update_replacement_judge(struct td_update_loop *loop, td_str *ret_why);
/* The pod that was judged last is evicted: what was read is old. */
void update_replacement_evicted(struct update_replacement *replacement);
/* At the end of a part. */
void update_replacement_forget(struct update_replacement *replacement);

/* ---- update_condition.c ---- */

/* Condition EvictionBlocked of a VPA of the part at work; an empty reason: it goes. Written only
 * where it differs from what is stored. */
void update_condition_set(struct td_update_loop *loop, const struct td_vpa *vpa, td_str reason,
                          td_str message);
struct update_conditions *update_conditions_new(struct td_update_loop *loop);
void update_conditions_stop(struct update_conditions *conditions);
bool update_conditions_are_idle(const struct update_conditions *conditions);
void update_conditions_free(struct update_conditions *conditions);

/* ---- update_pods.c ---- */

/* Decodes pods, one after another in one turn of the loop. */
struct update_decoder {
    struct td_sight *sight;
    struct td_arena *arena;
    const struct td_pod_template *found; /* private: the last template, of the sight */
    struct td_pod_template copy;         /* private: it, in the arena */
};
bool update_decode_pod(struct update_decoder *decoder, const struct td_sight_object *object,
                       struct td_vertical_pod *ret);

/* ---- update_dry.c ---- */

/* The VPAs of a namespace, and its pods that run on a node, decoded into the arena. */
size_t update_gather_vpas(const struct td_sight *sight, struct td_arena *arena, td_str namespace,
                          const struct td_vpa *const **ret);
size_t update_gather_pods(struct td_sight *sight, struct td_arena *arena, td_str namespace,
                          const struct td_vertical_pod **ret);

/* ---- update_parts.c ---- */

/* The parts that have VPAs now and whose pods can be changed; others are forgotten. */
void update_collect(struct td_update_loop *loop);
void update_part_free(struct update_part *part);
/* The VPAs of a part, and the pods on a node that their targets select, decoded into the arena.
 * TD_BUSY: some target is being asked for. */
int update_gather(const struct td_update_loop *loop, const struct update_part *part,
                  struct td_updater_input *input);

/* ---- update_tallies.c ---- */

void update_tallies_init(struct td_update_loop *loop);
/* `reason` is one of few words, or each pass would be a series of its own. */
void update_tally_skip(struct td_update_loop *loop, const char *reason);
void update_tally_begin(struct td_update_loop *loop);
void update_tally_pass(struct td_update_loop *loop);
void update_tally_end(struct td_update_loop *loop); /* of a pass that was not skipped */
void update_tally_result(struct td_update_loop *loop, enum td_updater_result result);
void update_tally_unboost(struct td_update_loop *loop, const struct td_vpa *vpa, size_t pod_count,
                          bool is_done);
