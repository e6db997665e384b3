/*
 * The updater (vpa.md 3): every interval one pass of decide/vertical/updater/pass.h over the pods
 * under VPAs, its calls carried out one after another: eviction API only, resize subresource,
 * annotation patch. A pass is skipped, with the reason counted and told, while the admission lease
 * is stale, while the webhook does not really mutate pods, while the informers are not fresh, or
 * while metrics or recommendations are. Beside it the queue that takes back startup boosts
 * (vpa.md 3.7).
 */
#pragma once

#include "base/os/clock.h"
#include "control/common.h"
#include "control/replacement.h"
#include "decide/vertical/updater/pass.h"

struct td_error;
struct td_quantity;
struct td_update_loop;

/* Why evictions must wait. */
struct td_update_problem {
    const char *reason; /* a word to count by, of few; static */
    td_str message;     /* for logs and conditions; empty: they need not wait */
};

struct td_update_options {
    struct td_control control;
    struct td_updater_config config;
    td_duration interval;   /* 1 min */
    bool uses_lease;        /* --use-admission-controller-status */
    td_str lease_namespace; /* kube-system */
    td_str lease_name;      /* vpa-admission-controller */
    td_duration lease_timeout;
    const struct td_quantity *max_cpu_boost; /* --max-allowed-cpu-boost, as admission has it; or
                                                NULL */
    bool annotates;                          /* --annotate-resized-pods */
    size_t boost_syncs;                      /* --concurrent-cpu-startup-boost-syncs */
    struct td_update_problem (*get_problem)(void *context); /* webhook.h, recommend_loop.h */
    /* Before an eviction: was it seen after `since`, a time of the machine, that pods are mutated?
     * False: it is being found out. NULL: only the lease tells. */
    bool (*is_proved)(void *context, td_duration since);
    /* The webhook leaves out new pods of the namespace, so an eviction there brings nothing; NULL:
     * of none. */
    bool (*is_exempt)(void *context, td_str namespace);
    void *context;
};

int td_update_loop_new(const struct td_update_options *options, struct td_update_loop **ret,
                       struct td_error *err);
void td_update_loop_start(struct td_update_loop *loop);
void td_update_loop_stop(struct td_update_loop *loop, void (*done)(void *context), void *context);
void td_update_loop_free(struct td_update_loop *loop);

/* Says of an eviction whether the replacement of the pod would be accepted; READING: not yet. */
struct td_update_judge {
    enum td_replacement_verdict (*judge)(void *context, const struct td_updater_action *action,
                                         td_str *ret_why);
    void *context;
};

/* Lets a pass see VPAs with other statuses than those that are stored. */
struct td_update_view {
    void (*see)(void *context, struct td_arena *arena, struct td_vpa *vpa); /* changes it */
    void *context;
};

/* What a pass over one namespace would do now, as if every call of it succeeded; nothing is called.
 * Notes are in the arena. TD_BUSY: something is being asked for, come again. `view` NULL: VPAs as
 * they are stored; `judge` NULL: every replacement would be accepted. */
int td_update_dry_run(const struct td_update_options *options, struct td_arena *arena,
                      td_str namespace, const struct td_update_view *view,
                      const struct td_update_judge *judge, struct td_updater_notes *ret,
                      struct td_error *err);

/* What there is to judge the replacement by, but for what is read for it. */
struct td_replacement_input td_update_replacement_input(const struct td_update_options *options,
                                                        struct td_arena *arena,
                                                        const struct td_updater_action *action);

/* Why pods would come back unchanged, as the lease of the admission controller had it at the last
 * pass; empty: they would not. */
td_str td_update_loop_problem(const struct td_update_loop *loop);
/* When the last pass ended, skipped ones included; TD_TIME_NONE before the first. */
td_time td_update_loop_last(const struct td_update_loop *loop);
