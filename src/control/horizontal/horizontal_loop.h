/*
 * The horizontal controller (hpa.md 2, 5, 6, 7): every HPA each sync period, new and changed ones
 * at once, and those whose resource metrics or pods change where that changes their replicas; per
 * reconcile at most one read of the scale, one request for each metric that is not shared, one
 * write of the scale and one of the status. Serves HPAs of our own group always, built-in ones when
 * told to, and never one that another controller is serving (7.8). Pods are told apart by owners
 * where the strategy says so.
 */
#pragma once

#include <stdbool.h>

#include "base/os/clock.h"
#include "control/common.h"
#include "control/informers/informers.h"
#include "decide/horizontal/account.h"
#include "decide/horizontal/reconcile.h"

struct horizontal_sync;
struct td_error;
struct td_horizontal_loop;

struct td_horizontal_options {
    struct td_control control;
    struct td_hpa_config config;
    td_duration sync_period; /* 15 s */
    size_t syncs_max;        /* --concurrent-horizontal-pod-autoscaler-syncs */
    bool serves_builtin;     /* --horizontal=builtin */
    bool is_alone;           /* no other HPA controller can exist, as in a local cluster */
    struct td_hpa_strategy_options strategy; /* the gate is that of control; no key: ours */
    td_duration owner_ttl;                   /* 0: TD_OWNER_TTL_DEFAULT */
};

int td_horizontal_loop_new(const struct td_horizontal_options *options,
                           struct td_horizontal_loop **ret, struct td_error *err);
void td_horizontal_loop_start(struct td_horizontal_loop *loop);
void td_horizontal_loop_stop(struct td_horizontal_loop *loop, void (*done)(void *context),
                             void *context);
void td_horizontal_loop_free(struct td_horizontal_loop *loop);

/* What one reconcile would decide now; texts are valid during the call. */
struct td_horizontal_account {
    int code;       /* TD_OK; TD_NOT_FOUND: there is no such HPA; TD_INVALID: it cannot be read */
    td_str message; /* of a failure */
    td_str api_version;             /* "autoscaling/v2" or our own group's */
    td_str warning;                 /* another controller is serving it; empty: none */
    td_str gated;                   /* fields whose gate is off; empty: none */
    const struct td_hpa_pass *pass; /* decided, but nothing was written; NULL on failure */
    const struct td_hpa_account_selection *selection;
    bool is_last; /* an HPA of that name in the other group is told first */
};
typedef void (*td_horizontal_explain_fn)(void *context,
                                         const struct td_horizontal_account *account);

/* Reconciles without writing, ours first when both groups have the name; works on a loop that was
 * never started, once the informers are synced. `fn` is not called any more after
 * td_horizontal_loop_free.
 */
void td_horizontal_explain(struct td_horizontal_loop *loop, td_str namespace, td_str name,
                           td_horizontal_explain_fn fn, void *context);

/* ---- For Hvpas, whose hpaSpec is no object ---- */

/* What is asked; all of it is borrowed until the answer. */
struct td_horizontal_input {
    const struct td_hpa *hpa; /* without metrics: only scale and pods are wanted */
    struct td_hpa_state *state;
    const struct td_hpa_config *config;
};

/* Valid during the callback. */
struct td_horizontal_result {
    struct td_arena *arena;                    /* of the answer */
    const struct td_hpa_pass *pass;            /* decided, nothing written */
    const struct td_served_resource *resource; /* of the target, when the scale was read */
    struct td_json *scale;                     /* as it was read, or NULL */
    const struct td_pod *const *pods;          /* that count for the HPA */
    size_t pod_count;
    struct horizontal_sync *sync; /* private */
};
typedef void (*td_horizontal_result_fn)(void *context, const struct td_horizontal_result *result);

/* One reconcile that ends with the result, on a loop that need not be started. The answer comes
 * from the loop, once, unless it is cancelled. */
struct horizontal_sync *td_horizontal_ask(struct td_horizontal_loop *loop,
                                          const struct td_horizontal_input *query,
                                          td_horizontal_result_fn fn, void *context);
void td_horizontal_cancel(struct horizontal_sync *sync);

/* The mean use of a container over the pods that the HPA counts as running; false: not measured. */
bool td_horizontal_usage(const struct td_horizontal_result *result, td_str container,
                         td_str resource, int64_t *ret_amount);
