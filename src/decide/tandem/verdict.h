/*
 * The verdicts that a decision starts from, each with the reason that the status gives for it, and
 * the words in which events tell a decision. Pure; texts are in the arena or static.
 */
#pragma once

#include "base/arena.h"
#include "decide/horizontal/reconcile.h"
#include "decide/tandem/decide.h"

struct td_tandem_horizontal {
    bool is_valid;
    int32_t desired; /* of an invalid verdict: the present count */
    td_str reason;
};

/* From a pass over the hpaSpec. */
struct td_tandem_horizontal td_tandem_horizontal_of(struct td_arena *arena,
                                                    const struct td_hpa_pass *pass);

/* Why a recommendation does not count, by the conditions that came with it; empty: it does. */
td_str td_tandem_vertical_problem(const struct td_recommendation *recommendation,
                                  const struct td_vpa_condition *conditions, size_t count);

/* "2 -> 4 replicas; HorizontalApplied, RatioBased, Ratio" */
/* "4 → 6 replicas, web cpu 500m → 667m: REASON", both axes of the decision. */
td_str td_tandem_decision_text(struct td_arena *arena, const struct td_tandem_input *in,
                               const struct td_tandem_decision *decision);
td_str td_tandem_scaled_text(struct td_arena *arena, const struct td_tandem_input *in,
                             const struct td_tandem_decision *decision);
/* "app cpu 100m -> 200m, app memory ...; VerticalApplied, RatioBased" */
td_str td_tandem_resized_text(struct td_arena *arena, const struct td_tandem_input *in,
                              const struct td_tandem_decision *decision);
