/*
 * One reconcile of one HPA, as pure steps with the world in between:
 *
 *     td_hpa_begin          given the scale, or why there is none
 *     td_hpa_select         when metrics are wanted: which pods
 *     td_hpa_select_alone   given those: does no other HPA count them
 *     td_hpa_decide         given the answers of the metrics APIs
 *     td_hpa_rescaled       when a rescale is wanted: how the PUT went
 *     td_hpa_finish         the status to write, if it differs
 *     td_hpa_end            how that write went: the last events and the error
 *
 * The pass holds what was decided and why (account.h writes it); only the state outlives it. A
 * caller that stops after any step has changed nothing but the history.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hpa/hpa.h"
#include "decide/horizontal/evaluate.h"
#include "decide/horizontal/strategy.h"
#include "decide/horizontal/tracker.h"

/* What is remembered of an HPA between passes, in memory only. */
struct td_hpa_state {
    struct td_hpa_history history;
    struct td_hpa_strategy_memory strategy;
};

void td_hpa_state_init(struct td_hpa_state *state);
void td_hpa_state_done(struct td_hpa_state *state);
void td_hpa_state_copy(struct td_hpa_state *to, const struct td_hpa_state *from); /* to a new one */

/* What kept the scale from being read. */
enum td_hpa_scale_fault {
    TD_HPA_SCALE_OK,
    TD_HPA_SCALE_BAD_API_VERSION,
    TD_HPA_SCALE_NO_MAPPING,
    TD_HPA_SCALE_NOT_READ,
};

struct td_hpa_scale {
    enum td_hpa_scale_fault fault;
    td_str error; /* its words */
    int32_t spec_replicas;
    int32_t status_replicas;
    td_str selector; /* status.selector */
    td_str uid;      /* of the target */
};

enum td_hpa_path {
    TD_HPA_PATH_FAILED,    /* no scale */
    TD_HPA_PATH_DISABLED,  /* the target stands at zero */
    TD_HPA_PATH_ABOVE_MAX, /* straight to maxReplicas */
    TD_HPA_PATH_BELOW_MIN, /* straight to minReplicas */
    TD_HPA_PATH_METRICS,
};

struct td_hpa_pass {
    struct td_arena *arena;
    const struct td_hpa *hpa;
    const struct td_hpa_config *config;
    struct td_hpa_state *state;
    struct td_hpa_scale scale;
    enum td_hpa_path path;
    enum td_hpa_strategy strategy; /* set after td_hpa_begin by who chose it; LabelSelector */
    td_time now;                   /* of the decision */
    bool was_scaled_to_zero;       /* the stored condition, when the gate is on */
    struct td_hpa_status status;
    struct td_hpa_events events;
    struct td_selector selector; /* after td_hpa_select */
    bool is_evaluated;
    struct td_hpa_evaluation evaluation;
    bool is_normalized;
    int32_t proposed; /* by the metrics */
    struct td_hpa_normalized normalized;
    int32_t desired;
    bool wants_rescale;
    td_str rescale_reason;
    bool is_rescaled;
    bool is_failed; /* ended early: a failed status write is then only logged */
    bool has_error;
    bool is_spec_fault;
    td_str error;            /* what the reconcile returns */
    td_str late_event;       /* FailedComputeMetricsReplicas, after the status write */
    struct td_json *updated; /* after td_hpa_finish */
    bool needs_write;
};

void td_hpa_begin(struct td_hpa_pass *pass, struct td_arena *arena, const struct td_hpa *hpa,
                  const struct td_hpa_config *config, struct td_hpa_state *state,
                  const struct td_hpa_scale *scale, td_time now);

/* A pass that decides nothing and keeps the status but for conditions: it is over with what the two
 * below, or td_hpa_claim_write, put into it. */
void td_hpa_begin_aside(struct td_hpa_pass *pass, struct td_arena *arena, const struct td_hpa *hpa,
                        const struct td_hpa_config *config, struct td_hpa_state *state,
                        td_time now);
/* The target is scaled by another object: `words` say by which. */
void td_hpa_yield_target(struct td_hpa_pass *pass, td_str words);

/* A field that is stored although its gate is off is named in the status; what is stored says
 * whether an event told it. `gated`: a sentence, or empty. */
void td_hpa_report_gates(struct td_hpa_pass *pass, td_str gated);

/* Parses the scale's selector into pass->selector; false when there is none that is usable, and the
 * pass has failed. */
bool td_hpa_select(struct td_hpa_pass *pass, td_time now);

/* The pods that the selector matches. */
struct td_hpa_matched {
    const struct td_pod *const *pods;
    size_t count;
    const struct td_workload_source *source; /* of their owners; NULL: none is known */
};

/* Refuses pods that another HPA counts too; false then, and the pass has failed. Records first what
 * this HPA counts. */
bool td_hpa_select_alone(struct td_hpa_pass *pass, struct td_hpa_tracker *tracker,
                         const struct td_hpa_matched *matched, td_time now);

/* `answers`: one a metric. */
void td_hpa_decide(struct td_hpa_pass *pass, const struct td_hpa_answer *answers, td_time now);

/* `error` is empty when the PUT succeeded. */
void td_hpa_rescaled(struct td_hpa_pass *pass, bool is_done, td_str error, td_time now);
void td_hpa_finish(struct td_hpa_pass *pass, td_time now);
void td_hpa_end(struct td_hpa_pass *pass, bool is_written, td_str error);
