/*
 * The coordinator (hvpa.md 5): every reconcile of an Hvpa reads both verdicts at one instant,
 * decides (decide/tandem/decide.h), writes what follows in the order of decide/tandem/actuation.h,
 * and says why in its status. Verdicts are computed here from hpaSpec and vpaSpec with the same
 * deciders as the other controllers (sources: Internal), or come from child objects (sources:
 * Objects).
 */
#pragma once

#include <stdbool.h>

#include "base/os/clock.h"
#include "control/admission/webhook.h"
#include "control/common.h"
#include "decide/horizontal/evaluate.h"

struct td_error;
struct td_hvpa;
struct td_hvpa_status;
struct td_tandem_decision;
struct td_tandem_input;
struct td_horizontal_loop;
struct td_hvpa_loop;
struct td_restriction_config;
struct td_recommend_loop;

struct td_hvpa_options {
    struct td_control control;
    td_duration sync_period;             /* --hvpa-sync-period, 15 s */
    struct td_recommend_loop *recommend; /* borrowed: its model learns for Hvpas too */
    struct td_horizontal_loop *gather; /* borrowed: measures for Hvpas, started or not; NULL: one of
                                          our own */
    struct td_hpa_config horizontal;
    /* Why pods would come back unchanged, so that none is evicted; empty: they would not
     * (webhook.h). NULL: no webhook is watched. */
    td_str (*get_webhook_problem)(void *context);
    bool (*is_proved)(void *context, td_duration since); /* as the updater's, as the next two */
    bool (*is_exempt)(void *context, td_str namespace);
    const struct td_restriction_config *restriction; /* borrowed; NULL: the defaults */
    void *context;
};

int td_hvpa_loop_new(const struct td_hvpa_options *options, struct td_hvpa_loop **ret,
                     struct td_error *err);
void td_hvpa_loop_start(struct td_hvpa_loop *loop);
void td_hvpa_loop_stop(struct td_hvpa_loop *loop, void (*done)(void *context), void *context);
void td_hvpa_loop_free(struct td_hvpa_loop *loop);

/* What one reconcile would decide now; valid during the call. */
struct td_hvpa_reported {
    int code;       /* TD_OK; TD_NOT_FOUND: there is none; TD_INVALID: nothing can be decided */
    td_str reason;  /* of the latter: "TargetConflict", "InvalidSpec", ... */
    td_str message; /* why */
    const struct td_hvpa *hvpa;
    const struct td_tandem_input *input; /* NULL on failure, as the next two */
    const struct td_tandem_decision *decision;
    const struct td_hvpa_status *status; /* as it would be written */
};
typedef void (*td_hvpa_explain_fn)(void *context, const struct td_hvpa_reported *reported);

/* Decides without writing, on a loop that is not started, once the informers are synced and the
 * recommender has looked. `fn` is called once, unless the loop is freed before. */
void td_hvpa_loop_explain(struct td_hvpa_loop *loop, td_str namespace, td_str name,
                          td_hvpa_explain_fn fn, void *context);

/* For admission (a td_webhook_sizes_fn whose context is the loop), on every replica, started or
 * not: what a new pod of a workload is to have. */
bool td_hvpa_loop_sizes(void *loop, struct td_arena *arena, const struct td_controller *top,
                        const struct td_pod *pod, struct td_pod_sizes *ret);
