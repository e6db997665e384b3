/*
 * What the files of the Hvpa controller share.
 *
 * An item is one Hvpa. What has to outlive a tick is its status, and nearly nothing else: each tick
 * starts from the status of the one before, kept as text, so that a restart is a tick like any
 * other. A tick is a small machine over asynchronous calls with an arena of its own: it reads
 * (hvpa_tick.c, hvpa_view.c), judges (hvpa_rows.c), decides, says so in the status
 * (hvpa_status.c), and carries the decision out (hvpa_carry.c: the scale, then sizes, pod by pod
 * until they are as decided or the next tick is due).
 */
#pragma once

#include "api/hvpa/hvpa.h"
#include "base/arena.h"
#include "base/map.h"
#include "control/horizontal/horizontal_loop.h"
#include "control/hvpa/hvpa_loop.h"
#include "control/replacement.h"
#include "control/sight.h"
#include "control/tally.h"
#include "decide/tandem/actuation.h"
#include "decide/tandem/coupling.h"
#include "decide/tandem/decide.h"
#include "decide/tandem/gates.h"
#include "decide/tandem/ownership.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/resourcelist.h"
#include "decide/vertical/updater/updater_state.h"
#include "kube/client/client.h"

struct td_queue;
struct td_timer;

#define HVPA_MANAGER TD_STR_INIT("tandem-hvpa") /* who our writes say they are from */
#define HVPA_DEADLINE (10 * TD_SECOND)          /* of one call, repetitions included */
#define HVPA_GIVE_UP (15 * TD_MINUTE)           /* of a resize that does not come to its end */
#define HVPA_RETRY TD_HOUR                      /* of one that was given up */
#define HVPA_YOUNG (24 * TD_HOUR)               /* until a day was seen */
#define HVPA_EMERGENCY_SECONDS 1800             /* until an OOM is forgotten that led to nothing */
#define HVPA_CONFLICTS_MAX 3                    /* of one tick: others wrote the scale too */
#define HVPA_READING_MAX 32                     /* ticks that read at one time */
#define HVPA_CHILD_SUFFIX "-hvpa"               /* of the names of child objects */

struct hvpa_item {
    struct td_hvpa_loop *loop;
    td_str key; /* owned: "namespace/name" */
    td_str namespace;
    td_str name;
    td_str status;    /* owned JSON: after the last tick, else as it is stored */
    uint64_t written; /* of what counts of the stored status; 0: not known */
    struct td_arena spec_arena;
    uint64_t spec_hash; /* of the spec without .replicas, which we write */
    bool has_selector;  /* of the vpaSpec: only these pods are sized */
    struct td_selector selector;
    struct td_arena sizes_arena;
    struct td_hvpa_requests sizes; /* for new pods, from the status */
    struct td_hvpa_requests size_limits;
    bool has_sizes;
    struct td_hpa_state horizontal;
    struct td_updater_state restrictions; /* first sights of resizes, for evictions */
    td_time first_seen;
    td_time due;      /* the next tick */
    td_time oom_seen; /* the newest that raised a flag; TD_TIME_NONE */
    struct td_backoff backoff;
    td_str failure;          /* owned: what a write was answered; empty: it worked */
    td_str blocked;          /* owned: why a pod is not evicted; empty: none has to wait */
    int64_t told_generation; /* of the event InvalidSpec */
    uint64_t told;           /* hash of the last trouble that an event told */
    td_time last_tick;       /* TD_TIME_NONE */
    unsigned conflicts;      /* of the scale, in this tick */
    struct hvpa_tick *tick;
    bool is_gone;
    bool is_again;    /* asked for while a tick was writing */
    bool is_ours;     /* its status is that of our own ticks */
    bool is_paused;   /* by its spec, as the next two */
    bool is_template; /* sizes are in the template, not given at admission */
    bool is_objects;  /* sources: Objects; .spec.replicas is a wish */
};

struct hvpa_container {
    td_str name;
    struct td_resource_list requests;
    struct td_resource_list limits;
};

struct hvpa_child_call; /* hvpa_children.c */

enum hvpa_phase {
    HVPA_READING, /* may be given up */
    HVPA_WRITING,
    HVPA_CARRYING, /* between two writes it may be given up */
};

struct hvpa_tick {
    struct td_hvpa_loop *loop;
    struct hvpa_item *item;
    struct td_arena arena;
    enum hvpa_phase phase;
    td_time now;
    struct td_instant instant; /* the same, in whole seconds */
    struct td_hvpa hvpa;       /* its status is that of the tick before */
    struct td_hpa hpa;         /* as it is asked for */
    struct horizontal_sync *sync;
    struct td_client_call *call;
    struct td_timer *pause;
    bool is_counted;            /* among those that read */
    td_hvpa_explain_fn explain; /* somebody asks only; NULL: it is acted on */
    void *explain_context;

    /* What was seen. */
    bool is_read; /* the target is there */
    struct td_sight_resource resource;
    struct td_json *scale;
    td_str selector;
    struct hvpa_container *template; /* containers of the workload's template */
    size_t template_count;
    struct td_vertical_pod *pods; /* alive: neither ended nor being deleted */
    size_t pod_count;
    const struct td_vertical_pod *newest; /* of them, the newest that is ready; NULL */
    const td_str *pod_names;
    const struct td_vertical_pod *ended; /* evicted ones */
    size_t ended_count;
    td_str horizontal_reason;
    bool is_limited; /* the HPA's wish was cut */
    td_str limited_reason;
    td_str limited_message;
    td_str vertical_reason;
    struct td_recommendation recommendation;
    const struct td_account *accounts; /* of its containers, by name; NULL: of child objects */
    size_t account_count;
    td_time learnt_since;            /* by child objects; TD_TIME_NONE: not known */
    struct td_hvpa_requests decided; /* before this tick: what pods are to have */
    struct td_hvpa_requests decided_limits;
    struct td_hvpa_requests reference;
    struct td_hvpa_origin origin; /* in whose proportion limits follow */
    struct td_hvpa_emergency *emergencies;
    size_t emergency_count;
    bool is_progressing; /* some pod is not as decided */
    bool is_growing;     /* a ready one has less */
    bool is_unready;     /* some pod that may have been resized is not ready */
    td_time progressing_since;

    /* What is decided. */
    struct td_tandem_row *rows;
    int64_t *in_template;
    size_t row_count;
    struct td_tandem_input input;
    struct td_tandem_outcome *outcomes;
    struct td_tandem_decision decision;
    struct td_tandem_plan plan;
    bool is_scaled;               /* the scale is written in this tick */
    bool is_resized;              /* sizes change in this tick */
    struct td_hvpa_status status; /* as it is to be */
    td_str failure;
    td_str gated; /* fields whose gate is off, in a sentence; empty: none */

    /* What is carried out. */
    size_t name_count;     /* of pod_names: those that there were when it began */
    struct td_map refused; /* pods that cannot be resized in place, by name */
    struct td_map asked;   /* pods that were asked to resize in this tick, by name */
    td_str pod;            /* whose call is under way */
    bool has_evicted;
    struct td_replacement_facts facts; /* about the owner of a pod to be evicted */
    int proof_count;         /* how often the proof that pods are mutated was waited for */
    td_duration proof_since; /* an older one does not count */
};

struct hvpa_tallies {
    struct td_tally_family *decisions;
    struct td_tally_family *blocked;
    struct td_tally_family *gain;
    struct td_tally_family *replicas;
    struct td_tally_family *requests;
};

/* Somebody who scales a target, or an Hvpa that means to; texts are owned. */
struct hvpa_claim {
    td_str key;
    td_str target; /* "namespace/kind/name"; empty: none that can be read */
    td_str namespace;
    td_str name;
    td_str api_version; /* of the target; may be empty */
    enum td_ownership_kind kind;
    struct td_instant created;
    bool is_off;
    struct hvpa_claim *next; /* on the same target */
    struct hvpa_claim *previous;
};

/* A kind of objects with claims: the context of its handlers. */
struct hvpa_claim_kind {
    struct td_hvpa_loop *loop;
    size_t row;
};
#define HVPA_CLAIM_KINDS 4

struct td_hvpa_loop {
    struct td_hvpa_options options;
    struct td_horizontal_loop *horizontal;
    bool owns_horizontal;
    bool is_running;
    void (*stopped)(void *context);
    void *stopped_context;
    struct td_map items;   /* by key */
    struct td_map claims;  /* of all that scale, by kind, namespace and name */
    struct td_map targets; /* to the first claim on each */
    struct hvpa_claim_kind claim_kinds[HVPA_CLAIM_KINDS];
    struct td_queue *queue;
    size_t tick_count;
    size_t reading_count; /* of them, those that read */
    struct hvpa_child_call *child_calls;
    struct hvpa_tallies tallies;
};

extern const td_str hvpa_pod_name; /* of the pod's own resources among containers */

td_time hvpa_now(const struct td_hvpa_loop *loop);
/* One of two, of which one may be missing; NULL. */
const struct td_quantity *hvpa_request_of(const struct td_hvpa_requests *requests, td_str container,
                                          enum td_hvpa_resource resource);
int64_t hvpa_amount(enum td_hvpa_resource resource, const struct td_quantity *quantity);
struct td_quantity hvpa_quantity(enum td_hvpa_resource resource, int64_t amount);
void hvpa_request_put(struct td_arena *arena, struct td_hvpa_requests *requests, td_str container,
                      enum td_hvpa_resource resource, const struct td_quantity *quantity);

/* ---- hvpa_loop.c ---- */

/* Again after so long, at least. */
void hvpa_item_later(struct hvpa_item *item, td_duration after);
void hvpa_item_set_status(struct hvpa_item *item, td_str text);
void hvpa_item_done(struct hvpa_item *item); /* its tick is over */
void hvpa_item_now(struct hvpa_item *item);
struct hvpa_item *hvpa_item_find(const struct td_hvpa_loop *loop, td_str namespace, td_str name);

/* ---- hvpa_tick.c ---- */

void hvpa_tick_start(struct hvpa_item *item, const struct td_sight_object *object);
void hvpa_tick_start_dry(struct hvpa_item *item, const struct td_sight_object *object,
                         td_hvpa_explain_fn fn, void *context);
void hvpa_tick_free(struct hvpa_tick *tick); /* calls are cancelled, nobody is told */
void hvpa_tick_end(struct hvpa_tick *tick);
void hvpa_tick_event(const struct hvpa_tick *tick, bool is_warning, td_str reason, td_str message);

/* ---- hvpa_claims.c ---- */

void hvpa_claims_init(struct td_hvpa_loop *loop);
void hvpa_claims_done(struct td_hvpa_loop *loop);
/* Who else is on the target: a sentence, or empty. */
td_str hvpa_claims_conflict(struct hvpa_tick *tick);
/* The Hvpa that acts on a target, or NULL. */
struct hvpa_item *hvpa_claims_owner(const struct td_hvpa_loop *loop,
                                    const struct td_ownership_target *target);

/* ---- hvpa_view.c ---- */

void hvpa_view_template(struct hvpa_tick *tick);
/* The HPA as it is asked: behaviour filled in, utilisation by reference where that is the coupling.
 */
void hvpa_view_hpa(struct hvpa_tick *tick);
void hvpa_view_pods(struct hvpa_tick *tick, const td_str *names, size_t count);
/* A DaemonSet has no scale: replicas and pods by its own. False: it is not there. */
bool hvpa_view_daemons(struct hvpa_tick *tick, int32_t *ret_replicas);

/* Is the pod one that the vpaSpec selects? */
bool hvpa_pod_is_sized(const struct hvpa_tick *tick, const struct td_vertical_pod *pod);
/* Are requests and limits of the pod as decided? `ret_is_smaller`: some request is below. */
bool hvpa_pod_is_as_decided(const struct td_hvpa_requests *requests,
                            const struct td_hvpa_requests *limits,
                            const struct td_vertical_pod *pod, bool *ret_is_smaller);

/* ---- hvpa_emergency.c ---- */

/* Those from before, without the ones whose time is over, and those that there are now. */
void hvpa_emergencies_recall(struct hvpa_tick *tick);
void hvpa_emergencies_keep(struct hvpa_tick *tick); /* after the decision */
struct td_hvpa_emergency *hvpa_emergency_find(struct hvpa_tick *tick, td_str container); /* NULL */

/* ---- hvpa_rows.c ---- */

/* What pods are to have by that status; false: nothing was ever applied, or it is paused. */
bool hvpa_rows_decided(const struct td_hvpa_status *status);
void hvpa_rows_recall(struct hvpa_tick *tick);   /* what was decided before */
void hvpa_rows_vertical(struct hvpa_tick *tick); /* the verdict of the vpaSpec */
void hvpa_rows_build(struct hvpa_tick *tick, const struct td_horizontal_verdict *verdict);
void hvpa_rows_judge(struct hvpa_tick *tick, const struct td_vpa_condition *conditions,
                     size_t count);
void hvpa_rows_progress(struct hvpa_tick *tick);
void hvpa_rows_resize(struct hvpa_tick *tick); /* how the progress looks to the decision */
void hvpa_rows_keep(struct hvpa_tick *tick);   /* what was decided is what pods are to have */

/* ---- hvpa_status.c ---- */

/* From what was decided; a tick without a decision says why there is none. */
void hvpa_status_fill(struct hvpa_tick *tick);
/* Does the stored status say so already? */
bool hvpa_status_has_trouble(const struct hvpa_tick *tick, td_str reason, td_str message);
void hvpa_status_trouble(struct hvpa_tick *tick, td_str reason, td_str message);
/* A write of ours failed: the status says so instead of what it hoped for. */
void hvpa_status_failed(struct hvpa_tick *tick);
/* False: nothing that counts has changed, nothing is sent. */
bool hvpa_status_send(struct hvpa_tick *tick,
                      void (*done)(void *context, const struct td_client_reply *reply));
uint64_t hvpa_status_hash(struct td_arena *arena, const struct td_hvpa_status *status);

/* ---- hvpa_carry.c ---- */

void hvpa_carry(struct hvpa_tick *tick); /* the plan, then hvpa_tick_end */

/* ---- hvpa_evict.c ---- */

/* The pods there are, once a tick: those that came for evicted ones are told from others. */
void hvpa_evict_meet(struct hvpa_tick *tick);
/* Did it come back unchanged too often? Told by an event once. */
bool hvpa_is_left_alone(struct hvpa_tick *tick, const struct td_vertical_pod *pod);
/* What admission writes into a new pod of these sizes; in the arena. */
struct td_pod_sizes hvpa_pod_sizes(struct td_arena *arena, td_str hvpa,
                                   const struct td_hvpa_requests *requests,
                                   const struct td_hvpa_requests *limits);
bool hvpa_may_evict(struct hvpa_tick *tick, const struct td_vertical_pod *pod);
/* Why the pod that would come back would be refused, by what was read of its owner; or empty. */
td_str hvpa_replacement_problem(struct hvpa_tick *tick, const struct td_vertical_pod *pod);
void hvpa_evicted(struct hvpa_tick *tick, td_str name);

/* ---- hvpa_children.c ---- */

/* Child objects are made, changed or removed as the sources say; nobody waits for it. */
void hvpa_children(struct hvpa_tick *tick);
void hvpa_children_cancel(struct td_hvpa_loop *loop); /* what is under way */
/* The verdict of the child VPA. */
void hvpa_children_vertical(struct hvpa_tick *tick);
/* What the child HPA wrote into our scale. */
bool hvpa_children_desired(struct hvpa_tick *tick, int32_t *ret);
/* .spec.replicas of the Hvpa, so that its scale can be read: what was applied last. */
void hvpa_children_buffer(struct hvpa_tick *tick);

/* ---- hvpa_tallies.c ---- */

void hvpa_tallies_init(struct td_hvpa_loop *loop);
void hvpa_tally(const struct hvpa_tick *tick);
void hvpa_tally_forget(const struct hvpa_item *item);
