/*
 * What the files of the Hvpa controller share.
 *
 * An item is one Hvpa. What has to outlive a reconcile is its status, and nearly nothing else: each
 * reconcile starts from the status of the one before, kept as text, so that a restart is a
 * reconcile like any other. A reconcile is a small machine over asynchronous calls with an arena of
 * its own: it reads (hvpa_reconcile.c, hvpa_view.c), judges (hvpa_input.c), decides, says so in the
 * status (hvpa_status.c), and carries the decision out (hvpa_actuate.c: the scale, then sizes, pod
 * by pod until they are as decided or the next reconcile is due).
 */
#pragma once

#include "api/hvpa/hvpa.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/metrics.h"
#include "control/actuator.h"
#include "control/horizontal/horizontal_loop.h"
#include "control/hvpa/hvpa_loop.h"
#include "control/informers/informers.h"
#include "control/replacement.h"
#include "decide/tandem/actuation.h"
#include "decide/tandem/coupling.h"
#include "decide/tandem/decide.h"
#include "decide/tandem/emergency.h"
#include "decide/tandem/gates.h"
#include "decide/tandem/ownership.h"
#include "decide/tandem/progress.h"
#include "decide/tandem/requests.h"
#include "decide/tandem/verdict.h"
#include "decide/vertical/pod.h"
#include "decide/vertical/resourcelist.h"
#include "decide/vertical/updater/restriction.h"
#include "decide/vertical/updater/updater_state.h"
#include "kube/client/client.h"

struct td_queue;
struct td_timer;

#define HVPA_MANAGER TD_STR_INIT("tandem-hvpa") /* who our writes say they are from */
#define HVPA_DEADLINE (10 * TD_SECOND)          /* of one call, repetitions included */
#define HVPA_YOUNG (24 * TD_HOUR)               /* until a day was seen */
#define HVPA_CONFLICTS_MAX 3                    /* of one reconcile: others wrote the scale too */
#define HVPA_READING_MAX 32                     /* reconciles that read at one time */
#define HVPA_CHILD_SUFFIX "-hvpa"               /* of the names of child objects */

struct hvpa_item {
    struct td_hvpa_loop *loop;
    td_str key; /* owned: "namespace/name" */
    td_str namespace;
    td_str name;
    td_str status;    /* owned JSON: after the last reconcile, else as it is stored */
    uint64_t written; /* of what counts of the stored status; 0: not known */
    struct td_arena spec_arena;
    uint64_t spec_hash; /* of the spec without .replicas, which we write */
    bool has_selector;  /* of the vpaSpec: only these pods are sized */
    struct td_selector selector;
    struct td_arena sizes_arena;
    struct td_hvpa_requests sizes; /* for new pods, from the status */
    struct td_hvpa_requests size_limits;
    struct td_hpa_state horizontal;
    struct td_updater_state restrictions; /* when resizes were first seen, for evictions */
    td_time first_seen;
    td_time due;      /* the next reconcile */
    td_time oom_seen; /* the newest that raised a flag; TD_TIME_NONE */
    struct td_backoff backoff;
    td_str failure;              /* owned: what a write was answered; empty: it worked */
    td_str blocked;              /* owned: why a pod is not evicted; empty: none has to wait */
    int64_t reported_generation; /* of the event InvalidSpec */
    uint64_t reported;           /* hash of the last problem that an event reported */
    td_time last_reconcile;      /* TD_TIME_NONE */
    unsigned conflicts;          /* of the scale, in this reconcile */
    struct hvpa_reconcile *reconcile;
    bool is_gone;
    bool is_again;    /* asked for while a reconcile was writing */
    bool is_ours;     /* its status is that of our own reconciles */
    bool is_paused;   /* by its spec, as the next two */
    bool is_kept;     /* sizes stay when it is deleted; as the next one, by its spec */
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
    HVPA_ACTUATING, /* between two writes it may be given up */
};

/* What a reconcile has seen of the target, its pods and both autoscalers. */
struct hvpa_seen {
    struct td_served_resource resource; /* of the target */
    struct td_json *scale;              /* NULL: a DaemonSet has none */
    td_str selector;
    struct hvpa_container *template; /* containers of the workload's template */
    size_t template_count;
    struct td_pod *pods; /* alive: neither ended nor being deleted */
    size_t pod_count;
    const struct td_pod *newest; /* of them, the newest that is ready; NULL */
    bool is_unready;             /* some pod that may have been resized is not ready */
    const td_str *pod_names;     /* of all pods that there were when it began */
    size_t name_count;
    const struct td_pod *ended; /* evicted ones */
    size_t ended_count;
    td_str horizontal_reason;
    bool is_limited; /* the HPA's wish was cut */
    td_str limited_reason;
    td_str limited_message;
    td_str vertical_reason;
    struct td_recommendation recommendation;
    const struct td_account *accounts; /* of its containers, by name; NULL: of child objects */
    size_t account_count;
    td_time learnt_since; /* by child objects; TD_TIME_NONE: not known */
};

/* What was decided before, and what is now. */
struct hvpa_decided {
    struct td_hvpa_requests requests; /* what pods are to have: until the decision, as before */
    struct td_hvpa_requests limits;
    struct td_hvpa_requests reference;
    struct td_hvpa_origin origin; /* in whose proportion limits follow */
    struct td_tandem_emergencies emergencies;
    struct td_tandem_progress progress; /* of the pods to what was decided before */
    struct td_tandem_row *rows;
    int64_t *in_template;
    size_t row_count;
    struct td_tandem_input input;
    struct td_tandem_outcome *outcomes;
    struct td_tandem_decision decision;
    struct td_tandem_plan plan;
    bool is_scaled;               /* the scale is written in this reconcile */
    bool is_resized;              /* sizes change in this reconcile */
    struct td_hvpa_status status; /* as it is to be */
    td_str gated;                 /* fields whose gate is off, in a sentence; empty: none */
};

/* How far the writes of a reconcile have come. */
struct hvpa_doing {
    struct td_map refused;      /* pods that cannot be resized in place, by name */
    struct td_map resizes_sent; /* pods that were asked to resize in this reconcile, by name */
    td_str pod;                 /* whose call is under way */
    bool has_evicted;
    struct td_replacement_facts facts; /* about the owner of a pod to be evicted */
    struct td_webhook_proof proof;     /* of that eviction */
    td_str failure;                    /* what a write was answered; empty: none failed */
};

struct hvpa_reconcile {
    struct td_hvpa_loop *loop;
    struct hvpa_item *item;
    struct td_arena arena;
    enum hvpa_phase phase;
    td_time now;
    struct td_instant instant; /* the same, in whole seconds */
    struct td_hvpa hvpa;       /* its status is that of the reconcile before */
    struct td_hpa hpa;         /* as it is asked for */
    struct horizontal_sync *sync;
    struct td_client_call *call;
    struct td_timer *pause;
    bool is_counted;            /* among those that read */
    td_hvpa_explain_fn explain; /* called with the decision, which is not acted on; NULL: it is */
    void *explain_context;
    struct hvpa_seen seen;
    struct hvpa_decided decided;
    struct hvpa_doing doing;
};

struct hvpa_metrics {
    struct td_metric_family *decisions;
    struct td_metric_family *blocked;
    struct td_metric_family *gain;
    struct td_metric_family *replicas;
    struct td_metric_family *requests;
};

/* An autoscaler of a target, or an Hvpa that names it; texts are owned. */
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
    struct td_restriction_config restriction; /* that of the options, or the default */
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
    size_t reconcile_count;
    size_t reading_count; /* of them, those that read */
    struct hvpa_child_call *child_calls;
    struct hvpa_metrics metrics;
};

extern const td_str hvpa_pod_name; /* of the pod's own resources among containers */

td_time hvpa_now(const struct td_hvpa_loop *loop);

/* ---- hvpa_loop.c ---- */

struct td_api_path hvpa_item_path(const struct hvpa_item *item); /* of the object itself */
void hvpa_item_set_status(struct hvpa_item *item, td_str text);
void hvpa_item_done(struct hvpa_item *item); /* its reconcile is over */
void hvpa_item_now(struct hvpa_item *item);
struct hvpa_item *hvpa_item_find(const struct td_hvpa_loop *loop, td_str namespace, td_str name);

/* ---- hvpa_reconcile.c ---- */

/* With `explain`, which gets the decision, nothing is written; NULL: the decision is acted on. */
void hvpa_reconcile_start(struct hvpa_item *item, const struct td_informer_object *object,
                          td_hvpa_explain_fn explain, void *context);
void hvpa_reconcile_free(struct hvpa_reconcile *run); /* cancels its calls */
void hvpa_reconcile_end(struct hvpa_reconcile *run);
void hvpa_reconcile_event(const struct hvpa_reconcile *run, bool is_warning, td_str reason,
                          td_str message);
/* The same for what was decided and is being done. */
void hvpa_reconcile_decided(struct hvpa_reconcile *run, td_str reason, td_str message);

/* An empty reconcile of the item, of which nothing is asked yet. */
struct hvpa_reconcile *hvpa_reconcile_new(struct hvpa_item *item);

/* ---- hvpa_delete.c ---- */

/* Does the object need its finalizer put, taken away, or its sizes written before it goes? Then
 * that is under way, and the reconcile of the item comes after it. */
bool hvpa_delete_begin(struct hvpa_item *item, const struct td_informer_object *object);

/* ---- hvpa_targets.c ---- */

void hvpa_targets_init(struct td_hvpa_loop *loop);
void hvpa_targets_done(struct td_hvpa_loop *loop);
/* Who else is on the target: a sentence, or empty. */
td_str hvpa_targets_conflict(struct hvpa_reconcile *run);
/* The Hvpa that acts on a target, or NULL. */
struct hvpa_item *hvpa_targets_owner(const struct td_hvpa_loop *loop,
                                     const struct td_ownership_target *target);

/* ---- hvpa_view.c ---- */

void hvpa_view_template(struct hvpa_reconcile *run);
/* The HPA as it is asked: behaviour filled in, utilisation by reference where that is the coupling.
 */
void hvpa_view_hpa(struct hvpa_reconcile *run);
void hvpa_view_pods(struct hvpa_reconcile *run, const td_str *names, size_t count);
/* A DaemonSet has no scale: replicas and pods by its own. False: it is not there. */
bool hvpa_view_daemons(struct hvpa_reconcile *run, int32_t *ret_replicas);

/* Is the pod one that the vpaSpec selects? */
bool hvpa_pod_is_sized(const struct hvpa_reconcile *run, const struct td_pod *pod);

/* ---- hvpa_emergency.c ---- */

/* Has the object, as it is stored, that condition with status True? */
bool hvpa_condition_is_true(const struct td_json *object, td_str type);
/* Containers that want for memory: those from before and those that there are now. */
void hvpa_emergencies_find(struct hvpa_reconcile *run);

/* ---- hvpa_input.c ---- */

/* What pods are to have by that status; false: nothing was ever applied, or it is paused. */
bool hvpa_input_decided(const struct td_hvpa_status *status);
void hvpa_input_recall(struct hvpa_reconcile *run);   /* what was decided before */
void hvpa_input_vertical(struct hvpa_reconcile *run); /* the verdict of the vpaSpec */
void hvpa_input_build(struct hvpa_reconcile *run, const struct td_horizontal_result *result);
void hvpa_input_judge(struct hvpa_reconcile *run, const struct td_vpa_condition *conditions,
                      size_t count);
void hvpa_input_progress(struct hvpa_reconcile *run);
void hvpa_input_keep(struct hvpa_reconcile *run); /* what was decided is what pods are to have */

/* ---- hvpa_status.c ---- */

/* From what was decided; a reconcile without a decision says why there is none. */
void hvpa_status_fill(struct hvpa_reconcile *run);
/* Does the stored status say so already? */
bool hvpa_status_has_problem(const struct hvpa_reconcile *run, td_str reason, td_str message);
void hvpa_status_problem(struct hvpa_reconcile *run, td_str reason, td_str message);
/* A write of ours failed: the status says so instead of what it hoped for. */
void hvpa_status_failed(struct hvpa_reconcile *run);
/* False: nothing that counts has changed, nothing is sent. */
bool hvpa_status_send(struct hvpa_reconcile *run,
                      void (*done)(void *context, const struct td_client_reply *reply));

/* ---- hvpa_actuate.c ---- */

void hvpa_actuate(struct hvpa_reconcile *run); /* the plan, then hvpa_reconcile_end */
/* The write of sizes into the template of the target, whose resource is run->seen.resource. */
int hvpa_template_request(struct hvpa_reconcile *run, const struct td_pod_sizes *sizes,
                          struct td_client_request *ret, struct td_error *err);

/* ---- hvpa_evict.c ---- */

/* The pods there are, once a reconcile: those that came for evicted ones are told from others. */
void hvpa_evict_meet(struct hvpa_reconcile *run);
/* Did it come back unchanged too often? Told by an event once. */
bool hvpa_is_left_alone(struct hvpa_reconcile *run, const struct td_pod *pod);
/* What pods are to have, as admission writes it into new ones; in the arena. */
struct td_pod_sizes hvpa_decided_sizes(struct hvpa_reconcile *run);
/* What new pods of the item get at admission. */
struct td_pod_sizes hvpa_item_sizes(struct td_arena *arena, const struct hvpa_item *item);
bool hvpa_may_evict(struct hvpa_reconcile *run, const struct td_pod *pod);
void hvpa_evicted(struct hvpa_reconcile *run, td_str name);

/* ---- hvpa_children.c ---- */

/* Child objects are made, changed or removed as the sources say; the reconcile does not wait. */
void hvpa_children(struct hvpa_reconcile *run);
void hvpa_children_cancel(struct td_hvpa_loop *loop); /* what is under way */
/* The verdict of the child VPA. */
void hvpa_children_vertical(struct hvpa_reconcile *run);
/* What the child HPA wrote into our scale. */
bool hvpa_children_desired(struct hvpa_reconcile *run, int32_t *ret);
/* .spec.replicas of the Hvpa, so that its scale can be read: what was applied last. */
void hvpa_children_buffer(struct hvpa_reconcile *run);

/* ---- hvpa_metrics.c ---- */

void hvpa_metrics_init(struct td_hvpa_loop *loop);
void hvpa_metrics_record(const struct hvpa_reconcile *run);
void hvpa_metrics_forget(const struct hvpa_item *item);
