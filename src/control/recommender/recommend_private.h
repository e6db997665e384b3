/*
 * What the files of the recommender share. How a pass goes is told in recommend_loop.c. Writes of
 * statuses and of checkpoints go out side by side, at most writes_max at a time.
 */
#pragma once

#include "base/map.h"
#include "base/stringset.h"
#include "base/vec.h"
#include "control/informers/informers.h"
#include "control/recommender/recommend_loop.h"
#include "decide/vertical/patch/podlevel.h"
#include "decide/vertical/recommender/recommender.h"
#include "decide/vertical/updater/matching.h"
#include "kube/objectkey.h"

struct recommend_history;
struct td_client_call;
struct td_metrics_call;
struct td_queue;
struct td_timer;

/* In the order of a pass. */
enum recommend_phase {
    RECOMMEND_IDLE,
    RECOMMEND_VPAS,
    RECOMMEND_MEMORY, /* checkpoints are read: once after the start */
    RECOMMEND_PODS,
    RECOMMEND_PROMETHEUS, /* once after the start, where there is one */
    RECOMMEND_METRICS,
    RECOMMEND_STANZAS, /* resources that pods state at pod level */
    RECOMMEND_STATUSES,
    RECOMMEND_CHECKPOINTS, /* are written */
    RECOMMEND_GC,
    RECOMMEND_PHASES,
};

enum recommend_kind {
    RECOMMEND_WHOLE = 1,
    RECOMMEND_URGENT = 2, /* writes what cannot wait for the next whole pass, and nothing else */
    RECOMMEND_LOOK = 4,   /* reads everything and writes nothing */
};

/* A VPA that is ours. */
struct recommend_vpa {
    td_str key;                    /* "namespace/name"; owned */
    struct td_object_key of;       /* its parts */
    td_str target;                 /* "namespace/group/kind/name"; owned */
    struct recommend_vpa *sibling; /* the next VPA of the same target */
    uint64_t linked;               /* of what it was last linked with; 0: never */
    td_str config_error;           /* owned; empty: none */
    td_str conflict;               /* owned; with an elder sibling; empty: none */
    struct td_pod_level_use use;   /* of its pods, in this pass */
    td_time created;
    td_time remembered;   /* the newest of the checkpoints that were read; 0: none */
    td_time checkpointed; /* when they were last written */
    td_time idle;         /* when it last had no pod that could be measured; 0: never */
    td_time born;         /* when it was first seen without a recommendation; 0: it has one */
    struct td_map saved;  /* container to the hash of what was last written, as a pointer */
    bool is_seen;         /* in this pass */
    bool is_urgent;       /* it learnt of an OOM that is not written yet */
};

/* An OOM that waits for the pass; texts are owned. */
struct recommend_oom {
    td_str ns;
    td_str pod;
    td_str container;
    td_time at;
    struct td_oom_kill kill;
    bool is_recalled; /* from before the start: checkpoints may know of it */
};

struct recommend_move {
    td_str pod; /* "namespace/name", owned */
    td_time at; /* when it was noticed */
};

/* A VPA, or an Hvpa, that is to be linked; texts are in the arena of the roll. */
struct recommend_turn {
    td_str ns;
    td_str name;
    bool is_hvpa;
};

/* The pass under way. */
struct recommend_pass {
    enum recommend_phase phase;
    enum recommend_kind kind;
    bool is_telling; /* an urgent pass writes all statuses: a webhook's problem is in each */
    td_time began;
    td_time told; /* a line of the log said how far it is */
    td_time phase_began;
    struct {
        struct td_arena arena;
        TD_VEC_FIELDS(struct recommend_turn);
        size_t at;
    } roll; /* the VPAs that RECOMMEND_VPAS links */
    struct {
        TD_VEC_FIELDS(struct recommend_vpa *);
    } turns; /* the VPAs that RECOMMEND_STATUSES or RECOMMEND_CHECKPOINTS writes */
    size_t turn_at;
    size_t writes; /* under way */
    struct recommend_write *first_write;
    struct td_metrics_call *measure;
    struct td_client_call *page; /* of checkpoints */
};

/* What informers and events have told of pods since a pass last looked. Sets have owned keys. */
struct recommend_pods {
    struct td_string_set dirty;   /* pods that have changed */
    struct td_string_set feeding; /* those of them that this pass feeds to the model */
    struct td_string_set lost;    /* pods whose owners are not in the informers yet */
    struct td_string_set gone;    /* pods to be dropped from the model */
    struct td_string_set stanzas; /* pods with resources at pod level */
    struct td_map moves; /* pods that have come to another VPA lately: struct recommend_move */
    size_t stanza_at;    /* position of RECOMMEND_STANZAS among the stanzas */
    struct {
        TD_VEC_FIELDS(struct recommend_oom);
    } ooms;
    struct td_cache *evictions; /* events of the kubelet */
    bool is_watching;           /* evictions */
    bool is_listed;             /* the first list of pods was seen to its end */
};

struct td_recommend_loop {
    struct td_recommend_options options;
    struct td_recommender *model;
    struct td_queue *work; /* one key: the pass */
    struct td_timer *timer;
    struct td_timer *urgent;
    struct td_timer *meeting; /* after VPAs came or were edited: do they share a target? */
    struct recommend_pass pass;
    struct recommend_pods pods;
    bool is_running;
    bool must_tell;   /* what get_webhook_problem says has changed: the next pass is_telling */
    int look_tries;   /* how often targets or owners were waited for since the start */
    bool has_history; /* checkpoints were read */
    bool is_denied;   /* checkpoints may not be listed */
    void (*stopped)(void *context); /* called when the pass ends; NULL: nothing waits for that */
    void *stopped_context;

    struct td_map vpas;         /* by key */
    struct td_map targets;      /* to the first VPA of each */
    struct td_string_set fresh; /* VPAs that came or were edited lately */
    td_time last_pass;
    td_time started;
    td_time last_metrics;      /* the newest measurement */
    unsigned metrics_failures; /* reads that failed, one after another */
    td_time last_gc;
    struct td_error metrics_error;
    struct recommend_history *history; /* of Prometheus, until it was read; NULL: none */
    struct recommend_metrics *metrics;
};

td_time recommend_now(const struct td_recommend_loop *loop);
/* The job has something to do again. */
void recommend_wake(struct td_recommend_loop *loop);
/* The pass is over, also half-way; td_recommend_loop_stop and _look are answered. */
void recommend_end(struct td_recommend_loop *loop);
struct recommend_vpa *recommend_find(const struct td_recommend_loop *loop, td_str ns, td_str name);

/* ---- recommend_vpas.c ---- */

/* Notes which VPAs there are, then links one after the other: false when all were. Targets that are
 * being asked for do not hold up the others. */
void recommend_roll_vpas(struct td_recommend_loop *loop);
bool recommend_link_next(struct td_recommend_loop *loop);
void recommend_vpa_free(struct recommend_vpa *vpa);
/* VPAs that share a target get to know of each other within seconds, not with the next pass: from
 * here on those that come or are edited are noted, and the timer `meeting` is set. */
void recommend_vpas_init(struct td_recommend_loop *loop);
/* Does one of those that were noted share its target? They are forgotten. */
bool recommend_vpas_meet(struct td_recommend_loop *loop);
/* The name under which the model knows the vpaSpec of an Hvpa: "hvpa:web". */
#define RECOMMEND_HVPA_PREFIX "hvpa:"
td_str recommend_hvpa_name(struct td_arena *arena, td_str hvpa);

/* The estimator that a VPA or Hvpa asks for by its annotations, else the default one. */
struct td_estimator_choice recommend_choose(const struct td_recommend_loop *loop,
                                            const struct td_json *annotations);

/* ---- recommend_pods.c ---- */

int recommend_pods_init(struct td_recommend_loop *loop, struct td_error *err);
void recommend_pods_done(struct td_recommend_loop *loop);
/* The next pass feeds this pod to the model again. */
void recommend_look_at(struct td_recommend_loop *loop, const struct td_informer_pod *pod);
void recommend_feed_ooms(struct td_recommend_loop *loop);
/* Was the pod under another VPA when this was measured? */
bool recommend_is_of_another(const struct td_recommend_loop *loop, td_str ns, td_str pod,
                             td_time measured);
/* These work until the slice is over: true when nothing is left. Pods that changed become those of
 * this pass first. */
void recommend_take_pods(struct td_recommend_loop *loop);
bool recommend_feed_pods(struct td_recommend_loop *loop);
bool recommend_drop_pods(struct td_recommend_loop *loop);
/* Which resources live pods state at pod level, for each VPA. */
void recommend_begin_stanzas(struct td_recommend_loop *loop);
bool recommend_find_stanzas(struct td_recommend_loop *loop);

/* ---- recommend_status.c ---- */

/* A write of a status or a checkpoint under way: the first member of what its answer needs. */
struct recommend_write {
    struct td_recommend_loop *loop;
    struct recommend_write *next;
    struct recommend_write *previous;
    struct td_client_call *call;
    void (*release)(struct recommend_write *write); /* it and what it is part of */
};
void recommend_write_begin(struct td_recommend_loop *loop, struct recommend_write *write,
                           void (*release)(struct recommend_write *write));
void recommend_write_end(struct recommend_write *write);

/* Computes the status of one VPA and sends it when it differs; counts itself among the writes. */
void recommend_write_status(struct td_recommend_loop *loop, struct recommend_vpa *vpa);
/* Older than this is stale: what the intervals let expect, but no less than what is usual. */
td_duration recommend_stale_age(const struct td_recommend_loop *loop);

/* ---- recommend_checkpoints.c ---- */

/* Reads all checkpoints, page by page; the job goes on when it has ended. */
void recommend_read_checkpoints(struct td_recommend_loop *loop);
void recommend_write_checkpoints(struct td_recommend_loop *loop, struct recommend_vpa *vpa);
void recommend_collect_checkpoints(struct td_recommend_loop *loop);

/* ---- recommend_history.c ---- */

/* Nothing without an address. TD_INVALID when it is none. */
int recommend_history_new(struct td_recommend_loop *loop, struct td_error *err);
void recommend_history_free(struct td_recommend_loop *loop);
/* What a checkpoint that was read covers, for a VPA by its key. */
void recommend_history_cover(struct td_recommend_loop *loop, td_str vpa,
                             const struct td_checkpoint *checkpoint);
/* Asks Prometheus; the job goes on when it is over. After a failure has_history is false. */
void recommend_history_start(struct td_recommend_loop *loop);
bool recommend_history_is_over(const struct td_recommend_loop *loop);
/* In the midst of it: what was learnt is forgotten, and it can be started again. */
void recommend_history_stop(struct td_recommend_loop *loop);
