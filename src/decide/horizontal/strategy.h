/*
 * Which pods an HPA counts: all that its target's selector matches (LabelSelector, upstream's way)
 * or only those the target owns (OwnerReference). This module says which strategy is in effect and
 * which events its changes call for; owners.h does the filtering. With the gate off there is one
 * strategy and not a word about it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/hpa/hpa.h"
#include "base/assert.h"
#include "base/str.h"
#include "decide/horizontal/evaluate.h"

#define TD_HPA_STRATEGY_ANNOTATION TD_STR("tandem.dev/hpa-selection-strategy")
#define TD_HPA_STRATEGY_ALIAS TD_STR("autoscaling.alpha.kubernetes.io/pod-selection-strategy")
#define TD_HPA_FILTER_EVENT_PAUSE (10 * TD_MINUTE) /* between events of one cause */

enum td_hpa_strategy { TD_HPA_STRATEGY_LABELS, TD_HPA_STRATEGY_OWNERS };

enum td_hpa_strategy_source {
    TD_HPA_STRATEGY_FROM_SPEC,
    TD_HPA_STRATEGY_FROM_PRIMARY,
    TD_HPA_STRATEGY_FROM_ALIAS,
    TD_HPA_STRATEGY_FROM_DEFAULT,
    TD_HPA_STRATEGY_FROM_GATE, /* the gate is off */
};

struct td_hpa_strategy_options {
    bool is_gate_on;
    td_str primary_key;              /* annotation; TD_HPA_STRATEGY_ANNOTATION unless set by flag */
    enum td_hpa_strategy by_default; /* flag */
};

struct td_hpa_strategy_choice {
    enum td_hpa_strategy strategy;
    enum td_hpa_strategy_source source;
    bool is_unsupported;
    td_str value; /* as written, when it is not supported */
};

/* Which fields of an HPA count (api/gates.h). */
struct td_hpa_gates td_hpa_gates_of(const struct td_hpa_config *config,
                                    const struct td_hpa_strategy_options *options);

/* A key that is there decides, even with an unknown value: that one means LabelSelector. */
struct td_hpa_strategy_choice td_hpa_strategy_choose(const struct td_hpa *hpa,
                                                     const struct td_hpa_strategy_options *options);

td_str td_hpa_strategy_name(enum td_hpa_strategy strategy);

/* Why pods could not be told apart. */
enum td_hpa_filter_cause {
    TD_HPA_FILTER_FORBIDDEN, /* no pod is proven and some owner may not be read */
    TD_HPA_FILTER_THROTTLED,
    TD_HPA_FILTER_ERROR,
    TD_HPA_FILTER_TIMEOUT,
    TD_HPA_FILTER_UNMAPPED,
    TD_HPA_FILTER_CAUSES,
};

/* What one HPA remembers of this between passes. */
struct td_hpa_strategy_memory {
    bool is_known;
    enum td_hpa_strategy last;
    uint64_t unsupported_hash;                 /* of the value that was last complained about */
    td_time reported_at[TD_HPA_FILTER_CAUSES]; /* TD_TIME_NONE: never */
};

#define TD_HPA_STRATEGY_MEMORY_INIT                                                                \
    ((struct td_hpa_strategy_memory){                                                              \
        .reported_at = {TD_TIME_NONE, TD_TIME_NONE, TD_TIME_NONE, TD_TIME_NONE, TD_TIME_NONE}})

static_assert(TD_HPA_FILTER_CAUSES == 5, "one time for each cause above");

/* A pod that the selector of the target matches. */
struct td_hpa_selected_pod {
    td_str name;
    td_str owner; /* "Job/report"; empty: it has none */
    bool is_counted;
};

/* How the pods were selected. */
struct td_hpa_account_selection {
    struct td_hpa_strategy_choice choice;
    bool is_filtered;
    bool is_failed; /* the filter failed, so all pods counted */
    size_t matched_count;
    size_t owned_count;
    td_str culprit;                         /* the owner that could not be read */
    const struct td_hpa_selected_pod *pods; /* for accounts alone, else NULL */
    size_t pod_count;
};

/* The condition SelectionStrategy: True while only owned pods count, with the numbers of those that
 * count and of those that are left out. None where no strategy was chosen. Before pods were looked
 * at (`is_counted` false) it stays as it is. */
void td_hpa_strategy_report(const struct td_hpa_account_selection *selection, bool is_counted,
                            struct td_hpa_conditions *conditions, td_time now);

/* Events for a first sight or a change. */
void td_hpa_strategy_observe(struct td_hpa_strategy_memory *memory,
                             const struct td_hpa_strategy_choice *choice,
                             struct td_hpa_events *events);

/* A failed filter: one event per cause in TD_HPA_FILTER_EVENT_PAUSE. `owner` may be empty. */
void td_hpa_strategy_filter_failed(struct td_hpa_strategy_memory *memory,
                                   enum td_hpa_filter_cause cause, td_str owner, td_time now,
                                   struct td_hpa_events *events);
