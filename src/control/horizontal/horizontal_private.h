/*
 * What the files of the horizontal controller share.
 *
 * An item is an HPA that is served, with what is remembered of it between passes. A sync is one
 * reconcile under way: a small machine over asynchronous calls, with an arena of its own. It reads
 * (horizontal_sync.c: scale, pods, owners, metrics), decides with decide/horizontal/reconcile.h,
 * and writes (horizontal_write.c). While it reads it may be given up at any time.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "control/horizontal/horizontal_loop.h"
#include "control/sight.h"
#include "control/tally.h"
#include "decide/horizontal/account.h"
#include "decide/horizontal/owners.h"
#include "decide/horizontal/tracker.h"

struct td_client_call;
struct td_client_reply;
struct td_measure_call;
struct td_queue;
struct td_timer;

#define HORIZONTAL_MANAGER TD_STR("tandem-horizontal") /* who our writes say they are from */
#define HORIZONTAL_DEADLINE (10 * TD_SECOND)           /* of one call, repetitions included */

enum horizontal_group { HORIZONTAL_OWN, HORIZONTAL_BUILTIN, HORIZONTAL_GROUPS };

struct horizontal_item {
    struct td_horizontal_loop *loop;
    td_str key; /* owned: group, namespace and name */
    enum horizontal_group group;
    td_str namespace; /* of the key */
    td_str name;
    struct td_hpa_state state;
    uint64_t strategy;            /* a hash of the choice that the object asks for */
    td_time first_seen;           /* since the start of this controller */
    td_time rival_told;           /* event AnotherControllerActive; TD_TIME_NONE */
    td_time claimed;              /* our claim was written, and is not old enough; TD_TIME_NONE */
    td_time hold_until;           /* a claim was lost */
    bool needs_claim;             /* another controller was seen at work */
    bool reads_scale;             /* what was seen of the target was not what the server has */
    int64_t written_version;      /* resourceVersion of our last write; 0: none, or not a number */
    struct horizontal_sync *sync; /* under way */
    bool is_in_line;              /* due, but all places are taken */
    bool is_again;                /* changed while its sync ran */
    bool is_gone;                 /* deleted while its sync ran */
    struct horizontal_item *next_in_line;
};

/* What one metric's API is asked. */
struct horizontal_question {
    struct horizontal_sync *sync;
    const struct td_hpa_metric *metric;
    struct td_sight_resource resource; /* of an Object metric's object */
    struct td_measure_call *call;      /* under way */
    struct horizontal_usage *usage;    /* waits for this one */
    struct horizontal_question *next_waiter;
    bool is_open; /* not answered yet */
    bool is_failed;
    td_str error;
    td_time time; /* of the first value */
    bool has_time;
    struct td_hpa_sample *samples; /* of pods */
    size_t sample_count;
    size_t sample_cap;
    int64_t *values;
    size_t value_count;
    size_t value_cap;
    td_time asked;
    td_duration took;
};

/* What one container uses. */
struct horizontal_use {
    td_str pod;
    td_str container;
    td_time time;
    td_duration window;
    bool has_cpu;
    bool has_memory;
    int64_t cpu_milli;
    int64_t memory_bytes;
};

enum horizontal_phase {
    HORIZONTAL_READING, /* may be given up */
    HORIZONTAL_WRITING,
};

struct horizontal_sync {
    struct td_horizontal_loop *loop;
    struct horizontal_item *item; /* NULL: nothing is to be written */
    enum horizontal_group group;
    struct horizontal_sync *next;
    struct horizontal_sync *previous;
    enum horizontal_phase phase;
    void (*resume)(struct horizontal_sync *sync); /* when the sight has settled */
    bool is_settled;
    td_time began;

    struct td_arena arena;
    struct td_json *tree; /* the object */
    struct td_hpa hpa;
    td_str gated; /* fields whose gate is off, in a sentence; empty: none */
    struct td_hpa_state *state;
    struct td_hpa_tracker *tracker;
    struct td_sight_resource resource; /* of the target */
    size_t resource_at;                /* of those that serve its kind */
    td_str scale_error;                /* of the first of them; empty: none was tried yet */
    struct td_json *scale; /* NULL: what the sight has of the target was good enough so far */
    struct td_hpa_pass pass;
    struct td_hpa_account_selection selection;

    const struct td_pod **pods; /* that the selector matches */
    size_t pod_count;
    struct td_owner_filter filter;
    bool has_filter;
    size_t owners_open; /* fetches without an answer */
    struct horizontal_question *questions;
    size_t question_count;
    size_t questions_open;

    struct td_client_call *call;
    struct td_timer *timer; /* before the next try of a write; NULL until needed */
    unsigned puts;

    /* Of a verdict for an Hvpa. */
    td_horizontal_verdict_fn verdict;
    void *verdict_context;
    const struct td_hpa_config *config;
    struct horizontal_use *uses; /* of containers, as the metrics API gave them */
    size_t use_count;
    size_t use_cap;

    /* Of a reconcile that writes nothing. */
    td_horizontal_explain_fn explain;
    void *explain_context;
    bool is_last;
    td_str namespace; /* of the object, in the arena */
    td_str name;
    td_str warning;
    struct td_hpa_state own_state;
    struct td_hpa_tracker own_tracker;
};

/* A kind of owners that the sight watches: the context of its handlers. */
struct horizontal_owner_kind {
    struct td_horizontal_loop *loop;
    size_t row;
};
#define HORIZONTAL_OWNER_KINDS 7

struct horizontal_tallies {
    struct td_tally_family *reconciliations;
    struct td_tally_family *reconciliation_seconds;
    struct td_tally_family *computations;
    struct td_tally_family *computation_seconds;
    struct td_tally_family *objects;
    struct td_tally_family *desired;
    struct td_tally_family *stale_skips;
    struct td_tally_family *owner_hits;
    struct td_tally_family *owner_misses;
    struct td_tally_family *fallbacks;
};

struct td_horizontal_loop {
    struct td_horizontal_options options;
    bool is_running;
    void (*stopped)(void *context);
    void *stopped_context;
    uint64_t random;     /* state of the jitter */
    td_duration created; /* steady time */

    struct td_map items; /* by key */
    struct td_queue *queue;
    struct horizontal_item *line_first; /* due, waiting for a place */
    struct horizontal_item *line_last;
    struct horizontal_sync *syncs;
    size_t sync_count;     /* those with an item */
    struct td_timer *wake; /* the sight has settled */
    struct td_timer *sweep;

    struct td_hpa_tracker tracker; /* selectors and targets of the items */
    struct td_hpa_tracker builtin; /* targets of all built-in HPAs, whoever serves them */
    struct td_hpa_tracker hvpas;   /* targets of Hvpas */
    struct td_owner_cache owners;
    struct horizontal_owner_kind owner_kinds[HORIZONTAL_OWNER_KINDS];
    struct td_map fetches; /* of owners, under way */
    struct td_map usages;  /* answers of the resource metrics API, by namespace and selector */
    struct td_map crowds;  /* namespaces by how much is asked about them */
    struct td_timer *usages_sweep;
    struct horizontal_tallies tallies;
};

td_time horizontal_now(const struct td_horizontal_loop *loop);
td_str horizontal_api_version(enum horizontal_group group);
const struct td_cache *horizontal_cache(const struct td_horizontal_loop *loop,
                                        enum horizontal_group group);

/* ---- horizontal_loop.c ---- */

struct horizontal_item *horizontal_item_find(const struct td_horizontal_loop *loop,
                                             enum horizontal_group group, td_str namespace,
                                             td_str name);
/* The strategy that an HPA's tree asks for. */
struct td_hpa_strategy_choice horizontal_strategy(const struct td_horizontal_loop *loop,
                                                  struct td_arena *arena,
                                                  const struct td_json *tree);
/* It is due again after so long; its sync is over. */
void horizontal_item_put_off(struct horizontal_item *item, td_duration after);
/* The sync is over: the item is due again in a sync period. */
void horizontal_item_done(struct horizontal_item *item);

/* ---- horizontal_sync.c ---- */

/* Begins a reconcile of the object; it is gone before this returns when there is nothing to do. */
void horizontal_sync_start(struct horizontal_item *item, const struct td_sight_object *object);
/* The same without writing. */
void horizontal_sync_start_dry(struct td_horizontal_loop *loop, enum horizontal_group group,
                               const struct td_sight_object *object,
                               const struct horizontal_sync *how);
/* A verdict: only what is known, nothing is written. */
struct horizontal_sync *horizontal_sync_start_verdict(struct td_horizontal_loop *loop,
                                                      const struct td_horizontal_question *how,
                                                      td_horizontal_verdict_fn fn, void *context);
/* All calls are cancelled, nobody is told. */
void horizontal_sync_free(struct horizontal_sync *sync);
/* Goes on when the sight has settled. */
void horizontal_sync_wait(struct horizontal_sync *sync,
                          void (*resume)(struct horizontal_sync *sync));
/* Goes on from the loop, not from inside the caller. */
void horizontal_sync_resume(struct horizontal_sync *sync,
                            void (*resume)(struct horizontal_sync *sync));
void horizontal_sync_wake(struct td_horizontal_loop *loop);
void horizontal_sync_filter(struct horizontal_sync *sync); /* owners were answered */
void horizontal_sync_decide(struct horizontal_sync *sync); /* metrics were answered */
/* What the server said, without the words of our client. */
td_str horizontal_message(struct td_arena *arena, const struct td_client_reply *reply);
int horizontal_get_scale(struct horizontal_sync *sync,
                         void (*done)(void *context, const struct td_client_reply *reply),
                         struct td_error *err);
/* Into the arena of the sync. */
int horizontal_read_scale(struct horizontal_sync *sync, const struct td_client_reply *reply,
                          td_str *ret_error);

/* ---- horizontal_write.c ---- */

void horizontal_write(struct horizontal_sync *sync); /* what was decided */

/* ---- horizontal_explain.c ---- */

/* The sync is gone afterwards. */
void horizontal_explain_tell(struct horizontal_sync *sync, int code, td_str message);
void horizontal_explain_state(struct horizontal_sync *sync); /* a copy of what is remembered */
/* The tracker as it would be if all HPAs of the namespace had been judged. */
void horizontal_explain_track(struct horizontal_sync *sync);

/* ---- horizontal_verdict.c ---- */

void horizontal_verdict_tell(struct horizontal_sync *sync); /* the sync is gone afterwards */

/* ---- horizontal_guard.c ---- */

void horizontal_guard_init(struct td_horizontal_loop *loop);
/* The manager that served the object within the last two sync periods, if it is not us. */
bool horizontal_guard_rival(struct td_arena *arena, const struct td_horizontal_loop *loop,
                            const struct td_sight_object *object, td_str *ret_manager);
td_str horizontal_guard_words(struct td_arena *arena, td_str manager);
enum horizontal_verdict {
    HORIZONTAL_GO,
    HORIZONTAL_WAIT,  /* for a while, then it is judged again */
    HORIZONTAL_RIVAL, /* another controller serves it */
    HORIZONTAL_CLAIM, /* another one did: say in the status that we take over, and see */
};
/* May the item be served? */
enum horizontal_verdict horizontal_guard_judge(struct td_arena *arena, struct horizontal_item *item,
                                               const struct td_sight_object *object,
                                               td_str *ret_manager, td_duration *ret_wait);
/* Who else scales the target: a sentence, or empty. */
td_str horizontal_guard_conflict(struct td_arena *arena, const struct td_horizontal_loop *loop,
                                 const struct td_hpa *hpa);
/* spec.scaleTargetRef of an HPA's tree. */
struct td_object_reference horizontal_target(const struct td_json *tree);

/* ---- horizontal_pods.c ---- */

void horizontal_pods_match(struct horizontal_sync *sync);
/* The answer for one metric, joined with the pods that count. */
struct td_hpa_answer horizontal_pods_answer(struct horizontal_sync *sync,
                                            struct horizontal_question *question);

/* ---- horizontal_owners.c ---- */

void horizontal_owners_init(struct td_horizontal_loop *loop);
/* Brings what the filter wants, then horizontal_sync_filter. */
void horizontal_owners_fetch(struct horizontal_sync *sync);
void horizontal_owners_leave(struct horizontal_sync *sync); /* waits no more */
void horizontal_owners_done(struct td_horizontal_loop *loop);

/* ---- horizontal_measures.c ---- */

void horizontal_measures_init(struct td_horizontal_loop *loop);
/* Asks for all metrics of the HPA, then horizontal_sync_decide. */
void horizontal_measures_ask(struct horizontal_sync *sync);
void horizontal_measures_leave(struct horizontal_sync *sync);
void horizontal_measures_done(struct td_horizontal_loop *loop);

/* ---- horizontal_tallies.c ---- */

void horizontal_tallies_init(struct td_horizontal_loop *loop);
void horizontal_tally_objects(struct td_horizontal_loop *loop);
void horizontal_tally_sync(const struct horizontal_sync *sync);
void horizontal_tally_metrics(const struct horizontal_sync *sync);
void horizontal_tally_stale(const struct horizontal_item *item);
void horizontal_tally_forget(const struct horizontal_item *item);
void horizontal_tally_fallback(struct td_horizontal_loop *loop, enum td_hpa_filter_cause cause);
void horizontal_tally_lookup(void *context, const struct td_owner_key *key, bool is_hit);
