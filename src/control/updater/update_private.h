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
#include "base/metrics.h"
#include "base/stringset.h"
#include "base/vec.h"
#include "control/actuator.h"
#include "control/informers/informers.h"
#include "control/updater/update_loop.h"

struct td_client_call;
struct td_timer;
struct update_conditions;
struct update_replacement;
struct update_boost_revert;

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
    struct td_string_set held; /* reasons for which pods are held, of VPAs, told by events */
    struct update_turn *first; /* its VPAs in this pass */
    struct update_turn *last;
};

enum update_phase {
    UPDATE_IDLE,
    UPDATE_LEASE,   /* the admission controller's lease is being read */
    UPDATE_ACTING,  /* a call is under way */
    UPDATE_WAITING, /* for a token, or for an answer that a source said it has to ask for */
};

struct update_metrics {
    struct td_metric_family *controlled;
    struct td_metric_family *evictable;
    struct td_metric_family *evicted;
    struct td_metric_family *failed_evictions;
    struct td_metric_family *updatable;
    struct td_metric_family *updated;
    struct td_metric_family *failed_updates;
    struct td_metric_family *infeasible_skips;
    struct td_metric_family *with_evictable;
    struct td_metric_family *with_evicted;
    struct td_metric_family *with_updatable;
    struct td_metric_family *with_updated;
    struct td_metric_family *lease_invalid;
    struct td_metric_family *skipped;
    struct td_metric_family *steps;
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
    size_t events_reported;
    int busy_count;
    struct td_webhook_proof proof; /* of the eviction that is due */

    struct update_conditions *conditions;
    struct update_replacement *replacement;
    struct update_boost_revert *revert; /* NULL: gate CPUStartupBoost is off */
    struct update_metrics metrics;
};

td_time update_now(const struct td_update_loop *loop);

/* Is what is known of the cluster good enough to act on? */
bool update_is_fresh(const struct td_update_loop *loop);

/* The tokens of resizes, wherever they are lent to. */
struct td_token_bucket *update_resizes(struct td_update_loop *loop);

/* Rests for a while; then the action is tried again, or the pass goes on. */
void update_pause(struct td_update_loop *loop, td_duration span);
/* An answer that an action waited for is there: it is tried again. */
void update_go_on(struct td_update_loop *loop);

/* Calls the `done` of td_update_loop_stop when nothing is under way any more. */
void update_settle(struct td_update_loop *loop);

/* ---- update_boost_revert.c ---- */

/* Before the informers start, since it listens to pods. */
struct update_boost_revert *update_boost_revert_new(struct td_update_loop *loop);
void update_boost_revert_free(struct update_boost_revert *revert);
void update_boost_revert_start(struct update_boost_revert *revert);
/* Nothing new is begun; what is under way ends with update_settle. */
void update_boost_revert_stop(struct update_boost_revert *revert);
bool update_boost_revert_is_idle(const struct update_boost_revert *revert);

/* ---- update_blocked_events.c ---- */

/* At the end of the pass over a namespace. */
void update_blocked_tell(struct td_update_loop *loop, struct update_part *part);

/* ---- update_replacement.c ---- */

struct update_replacement *update_replacement_new(void);
void update_replacement_free(struct update_replacement *replacement);
/* May the pod of the action be evicted? If not, *ret_why says why. READING: update_go_on or the
 * pause follows. */
enum td_replacement_verdict update_replacement_judge(struct td_update_loop *loop, td_str *ret_why);
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
    struct td_informers *informers;
    struct td_arena *arena;
    const struct td_pod_template *found; /* private: the last template, of the informers */
    struct td_pod_template copy;         /* private: it, in the arena */
};
bool update_decode_pod(struct update_decoder *decoder, const struct td_informer_object *object,
                       struct td_pod *ret);

/* ---- update_dry_run.c ---- */

/* The VPAs of a namespace, and its pods that run on a node, decoded into the arena. */
size_t update_gather_vpas(const struct td_informers *informers, struct td_arena *arena,
                          td_str namespace, const struct td_update_view *view,
                          const struct td_vpa *const **ret);
size_t update_gather_pods(struct td_informers *informers, struct td_arena *arena, td_str namespace,
                          const struct td_pod **ret);

/* ---- update_parts.c ---- */

/* The parts that have VPAs now and whose pods can be changed; others are forgotten. */
void update_collect(struct td_update_loop *loop);
void update_part_free(struct update_part *part);
/* The VPAs of a part, and the pods on a node that their targets select, decoded into the arena.
 * TD_BUSY: some target is being asked for. */
int update_gather(const struct td_update_loop *loop, const struct update_part *part,
                  struct td_updater_input *input);

/* ---- update_metrics.c ---- */

void update_metrics_init(struct td_update_loop *loop);
/* `reason` is one of few words, or each pass would be a series of its own. */
void update_metrics_skip(struct td_update_loop *loop, const char *reason);
void update_metrics_begin(struct td_update_loop *loop);
void update_metrics_pass(struct td_update_loop *loop);
void update_metrics_end(struct td_update_loop *loop); /* of a pass that was not skipped */
void update_metrics_result(struct td_update_loop *loop, enum td_updater_result result);
void update_metrics_revert_boost(struct td_update_loop *loop, const struct td_vpa *vpa,
                                 size_t pod_count, bool is_done);
