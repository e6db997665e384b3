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
#include "base/metrics.h"
#include "control/horizontal/horizontal_loop.h"
#include "control/informers/informers.h"
#include "decide/horizontal/account.h"
#include "decide/horizontal/claim.h"
#include "decide/horizontal/owners.h"
#include "decide/horizontal/tracker.h"

struct td_client_call;
struct td_client_reply;
struct td_client_request;
struct td_container_metrics;
struct td_metrics_call;
struct td_queue;
struct td_timer;

#define HORIZONTAL_MANAGER TD_STR("tandem-horizontal") /* who our writes say they are from */
#define HORIZONTAL_DEADLINE (10 * TD_SECOND)           /* of one call, repetitions included */

enum horizontal_group { HORIZONTAL_OWN, HORIZONTAL_BUILTIN, HORIZONTAL_GROUPS };

/* What is kept of a scale that was read; texts are owned. */
struct horizontal_scale {
    bool is_known;
    int32_t spec_replicas;
    int32_t status_replicas;
    td_str selector;
    td_str uid;
};

struct horizontal_item {
    struct td_horizontal_loop *loop;
    td_str key; /* owned: group, namespace and name */
    enum horizontal_group group;
    td_str namespace; /* of the key */
    td_str name;
    struct td_hpa_state state;
    uint64_t strategy;             /* a hash of the choice that the object asks for */
    struct td_hpa_claim claim;     /* on a built-in HPA */
    td_time rival_reported;        /* event AnotherControllerActive; TD_TIME_NONE */
    bool reads_scale;              /* what was seen of the target was not what the server has */
    int64_t written_version;       /* resourceVersion of our last write; 0: none, or not a number */
    struct horizontal_sync *sync;  /* under way */
    td_duration due;               /* of its next sync, steady time */
    td_duration looked;            /* when it was looked at last, likewise */
    struct horizontal_scale scale; /* as a sync read it */
    struct horizontal_usage *usage;    /* the metrics that it is judged by; NULL: others, or none */
    td_time counted;                   /* by the namespace, in its period that began then */
    struct horizontal_item *next_user; /* of these */
    struct horizontal_item *previous_user;
    bool is_in_line;   /* due, but all places are taken */
    bool is_again;     /* changed while its sync ran */
    bool is_gone;      /* deleted while its sync ran */
    bool may_look;     /* between syncs: the last one judged it by metrics, and changed nothing */
    bool wants_look;   /* something that it is judged by has changed */
    bool is_evaluated; /* the sync under way came to its metrics */
    struct horizontal_item *next_in_line;
};

/* What one metric's API is asked. */
struct horizontal_query {
    struct horizontal_sync *sync;
    const struct td_hpa_metric *metric; /* of the HPA, which an Hvpa takes back with its result */
    const struct horizontal_source *source;
    struct td_served_resource resource; /* of an Object metric's object */
    struct td_metrics_call *call;       /* under way */
    struct horizontal_usage *usage;     /* waits for this one */
    struct horizontal_query *next_waiter;
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
    td_time sent_at;
    td_duration took;
};

/* What a sync saw; all of it is in the arena of the sync. */
struct horizontal_seen {
    struct td_json *tree; /* the object */
    struct td_hpa hpa;
    td_str gated;                       /* fields whose gate is off, in a sentence; empty: none */
    struct td_served_resource resource; /* of the target */
    size_t resource_at;                 /* of those that serve its kind */
    td_str scale_error;                 /* of the first of them; empty: none was tried yet */
    struct td_json *scale; /* NULL: what the informers have of the target was good enough so far */
    const struct td_pod **pods; /* that the selector matches */
    size_t pod_count;
    struct td_owner_filter filter;
    bool has_filter;
    struct horizontal_query *queries; /* one a metric */
    size_t query_count;
    struct td_container_metrics *uses; /* of containers, as the metrics API gave them */
    size_t use_count;
    size_t use_cap;
};

/* What it decided, and what it decided that with. */
struct horizontal_decided {
    struct td_hpa_pass pass;
    struct td_hpa_account_selection selection;
    const struct td_hpa_config *config;
    struct td_hpa_state *state;     /* of the item or the Hvpa, or its own */
    struct td_hpa_tracker *tracker; /* of the loop, or its own */
    struct td_hpa_state own_state;
    struct td_hpa_tracker own_tracker;
};

/* What a sync is for: the reconcile of an item, a look whether one would change something, the
 * result that an Hvpa asks for, or an account of what a reconcile would do. They read and decide
 * alike. */
struct horizontal_purpose {
    void (*decided)(struct horizontal_sync *sync); /* what follows; the sync ends here or later */
    bool is_periodic; /* one of many: informers and shared queries will do */
    bool is_look;     /* and nothing is asked for: what is known has to do */
    bool keeps_uses;  /* of containers */
    bool finds_peers; /* that count the same pods, anew: none of them may have been judged yet */
};
extern const struct horizontal_purpose horizontal_purpose_reconcile; /* horizontal_write.c */
extern const struct horizontal_purpose horizontal_purpose_look;
extern const struct horizontal_purpose horizontal_purpose_result;
extern const struct horizontal_purpose horizontal_purpose_explain;

enum horizontal_phase {
    HORIZONTAL_READING, /* may be given up */
    HORIZONTAL_WRITING,
};

/* What is being done. */
struct horizontal_sync {
    struct td_horizontal_loop *loop;
    const struct horizontal_purpose *purpose;
    void *context;                /* of its purpose, in the arena */
    struct horizontal_item *item; /* of a reconcile; else NULL */
    enum horizontal_group group;
    struct horizontal_sync *next;
    struct horizontal_sync *previous;
    enum horizontal_phase phase;
    void (*resume)(struct horizontal_sync *sync); /* when the informers have settled */
    bool is_settled;
    td_time began;
    size_t owners_open;  /* fetches without an answer */
    size_t queries_open; /* likewise */
    struct td_client_call *call;
    struct td_timer *timer; /* before the next try of a write; NULL until needed */
    unsigned puts;
    struct td_arena arena;
    struct horizontal_seen seen;
    struct horizontal_decided decided;
};

/* A group of HPAs: the context of the handlers of its objects. */
struct horizontal_group_context {
    struct td_horizontal_loop *loop;
    enum horizontal_group group;
};

/* A kind of owners that the informers watch, likewise. */
struct horizontal_owner_kind {
    struct td_horizontal_loop *loop;
    size_t row;
};
#define HORIZONTAL_OWNER_KINDS 7

/* A kind of other objects that scale targets, likewise. */
struct horizontal_guarded {
    struct td_hpa_tracker *tracker; /* of their targets */
    bool (*read)(struct td_arena *arena, const struct td_json *tree,
                 struct td_object_reference *ret); /* false: it scales nothing */
};

struct horizontal_metrics {
    struct td_metric_family *reconciliations;
    struct td_metric_family *reconciliation_seconds;
    struct td_metric_family *computations;
    struct td_metric_family *computation_seconds;
    struct td_metric_family *objects;
    struct td_metric_family *desired;
    struct td_metric_family *stale_skips;
    struct td_metric_family *waited;
    struct td_metric_family *owner_hits;
    struct td_metric_family *owner_misses;
    struct td_metric_family *fallbacks;
};

struct td_horizontal_loop {
    struct td_horizontal_options options;
    bool is_running;
    void (*stopped)(void *context);
    void *stopped_context;
    uint64_t random;     /* state of the jitter */
    td_duration created; /* steady time */

    struct horizontal_group_context groups[HORIZONTAL_GROUPS];
    struct td_map items; /* by key */
    struct td_queue *queue;
    struct horizontal_item *line_first; /* due, waiting for a place */
    struct horizontal_item *line_last;
    struct horizontal_sync *syncs;
    size_t sync_count;     /* those with an item */
    struct td_timer *wake; /* the informers have settled */
    struct td_timer *sweep;

    struct td_hpa_tracker tracker; /* selectors and targets of the items */
    struct td_hpa_tracker builtin; /* targets of all built-in HPAs, served here or not */
    struct td_hpa_tracker hvpas;   /* targets of Hvpas */
    struct horizontal_guarded guarded_hpas;
    struct horizontal_guarded guarded_hvpas;
    struct td_owner_cache owners;
    struct horizontal_owner_kind owner_kinds[HORIZONTAL_OWNER_KINDS];
    struct td_map fetches;    /* of owners, under way */
    struct td_map usages;     /* answers of the resource metrics API, by namespace and selector */
    size_t polled_containers; /* in the answers that are asked for again and again */
    struct td_map shared_queries; /* namespaces by how much is asked about them */
    struct td_timer *usages_sweep;
    struct horizontal_metrics metrics;
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
td_duration horizontal_steady(const struct td_horizontal_loop *loop);
/* To be run when it is due, or looked at. */
void horizontal_item_queue(struct horizontal_item *item, td_duration after);
/* It is due again after so long; its sync is over. */
void horizontal_item_put_off(struct horizontal_item *item, td_duration after);
/* The sync is over: the item is due again in a sync period. */
void horizontal_item_done(struct horizontal_item *item);
/* A look is over: the item is due when it was before, or now. */
void horizontal_item_looked(struct horizontal_item *item, bool is_due);

/* ---- horizontal_sync.c ---- */

/* Begins a reconcile of the object; it is gone before this returns when there is nothing to do. */
void horizontal_sync_start(struct horizontal_item *item, const struct td_informer_object *object);
/* A sync with a state and a tracker of its own, to be begun by one of the two below. */
struct horizontal_sync *horizontal_sync_new(struct td_horizontal_loop *loop,
                                            enum horizontal_group group,
                                            const struct horizontal_purpose *purpose);
int horizontal_sync_read(struct horizontal_sync *sync, const struct td_informer_object *object,
                         struct td_error *err);
void horizontal_sync_begin(struct horizontal_sync *sync);     /* from the object that was read */
void horizontal_sync_ask_scale(struct horizontal_sync *sync); /* from its target */
/* All calls are cancelled, and no callback of its purpose is called. */
void horizontal_sync_free(struct horizontal_sync *sync);
/* Goes on when the informers have settled. */
void horizontal_sync_wait(struct horizontal_sync *sync,
                          void (*resume)(struct horizontal_sync *sync));
/* Goes on from the loop, not from inside the caller. */
void horizontal_sync_resume(struct horizontal_sync *sync,
                            void (*resume)(struct horizontal_sync *sync));
void horizontal_sync_wake(struct td_horizontal_loop *loop);
void horizontal_sync_filter(struct horizontal_sync *sync); /* owners were answered */
void horizontal_sync_decide(struct horizontal_sync *sync); /* metrics were answered */
void horizontal_record(const struct horizontal_sync *sync, const struct td_hpa_event *event);
/* As the call of the sync. */
void horizontal_send(struct horizontal_sync *sync, struct td_client_request *request,
                     void (*done)(void *context, const struct td_client_reply *reply));
int horizontal_get_scale(struct horizontal_sync *sync,
                         void (*done)(void *context, const struct td_client_reply *reply),
                         struct td_error *err);
/* Into the arena of the sync. */
int horizontal_read_scale(struct horizontal_sync *sync, const struct td_client_reply *reply,
                          td_str *ret_error);

/* ---- horizontal_look.c ---- */

/* Subscribes to pods, before the informers start. */
void horizontal_look_init(struct td_horizontal_loop *loop);
/* Something that the item is judged by has changed. */
void horizontal_look_want(struct horizontal_item *item);
/* Is it worth a sync, out of the order? */
void horizontal_look_start(struct horizontal_item *item, const struct td_informer_object *object);
/* After a sync: may it be looked at until the next one? */
void horizontal_look_allow(struct horizontal_sync *sync);
void horizontal_scale_keep(struct horizontal_scale *kept, const struct td_hpa_scale *scale);
void horizontal_scale_done(struct horizontal_scale *kept);

/* ---- horizontal_explain.c ---- */

/* The tracker as it would be if all HPAs of the namespace had been judged. */
void horizontal_explain_track(struct horizontal_sync *sync);

/* ---- horizontal_guard.c ---- */

void horizontal_guard_init(struct td_horizontal_loop *loop);
/* The manager that served the object within the last two sync periods, if it is not us. */
bool horizontal_guard_rival(struct td_arena *arena, const struct td_horizontal_loop *loop,
                            const struct td_informer_object *object, td_str *ret_manager);
td_str horizontal_guard_words(struct td_arena *arena, td_str manager);
/* May the item be served? */
enum td_hpa_claim_verdict horizontal_guard_judge(struct td_arena *arena,
                                                 struct horizontal_item *item,
                                                 const struct td_informer_object *object,
                                                 td_str *ret_manager, td_duration *ret_wait);
/* Which other object scales the target: a sentence, or empty. */
td_str horizontal_guard_conflict(struct td_arena *arena, const struct td_horizontal_loop *loop,
                                 const struct td_hpa *hpa);
/* spec.scaleTargetRef of an HPA's tree. */
struct td_object_reference horizontal_target(const struct td_json *tree);

/* ---- horizontal_pods.c ---- */

const struct td_pod *horizontal_pods_decode(struct td_arena *arena,
                                            const struct td_informer_pod *pod);
void horizontal_pods_match(struct horizontal_sync *sync);
/* The answer for one metric, joined with the pods that count. */
struct td_hpa_answer horizontal_pods_answer(struct horizontal_sync *sync,
                                            struct horizontal_query *query);

/* ---- horizontal_owners.c ---- */

void horizontal_owners_init(struct td_horizontal_loop *loop);
/* Brings what the filter wants, then horizontal_sync_filter. */
void horizontal_owners_fetch(struct horizontal_sync *sync);
void horizontal_owners_leave(struct horizontal_sync *sync); /* waits no more */
void horizontal_owners_done(struct td_horizontal_loop *loop);

/* ---- horizontal_queries.c ---- */

/* Where the values of a metric source are asked for; api/hpa/hpa_source.h has the rest of it. */
struct horizontal_source {
    /* What must be known before; false: discovery is under way. NULL: nothing. */
    bool (*resolve)(struct horizontal_query *query);
    /* Fills the query and closes it or lets it fail, now or when the API has answered. `selector`
     * is that of the HPA's pods. */
    void (*ask)(struct horizontal_query *query, td_str selector);
    void (*leave)(struct horizontal_query *query); /* gives up, `call` apart; NULL: nothing to do */
};
#define ROW(name, row) extern const struct horizontal_source horizontal_source_##row;
TD_HPA_SOURCES(ROW)
#undef ROW

void horizontal_query_close(struct horizontal_query *query);
void horizontal_query_fail(struct horizontal_query *query, td_str error);
void horizontal_query_add_sample(struct horizontal_query *query,
                                 const struct td_hpa_sample *sample);
void horizontal_query_see_time(struct horizontal_query *query, td_time time);

/* Asks for all metrics of the HPA, then horizontal_sync_decide. */
void horizontal_queries_ask(struct horizontal_sync *sync);
void horizontal_queries_leave(struct horizontal_sync *sync);

/* ---- horizontal_usage.c ---- */

void horizontal_usage_init(struct td_horizontal_loop *loop);
void horizontal_usage_done(struct td_horizontal_loop *loop);
/* The item is judged by these metrics no more: they are not asked for because of it. */
void horizontal_usage_quit(struct horizontal_item *item);

/* ---- horizontal_metrics.c ---- */

void horizontal_metrics_init(struct td_horizontal_loop *loop);
void horizontal_metrics_objects(struct td_horizontal_loop *loop);
void horizontal_metrics_sync(const struct horizontal_sync *sync);
void horizontal_metrics_responses(const struct horizontal_sync *sync);
void horizontal_metrics_stale(const struct horizontal_item *item);
void horizontal_metrics_waited(const struct horizontal_item *item); /* since it was due */
void horizontal_metrics_forget(const struct horizontal_item *item);
void horizontal_metrics_fallback(struct td_horizontal_loop *loop, enum td_hpa_filter_cause cause);
void horizontal_metrics_lookup(void *context, const struct td_owner_key *key, bool is_hit);
