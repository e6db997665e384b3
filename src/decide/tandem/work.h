/*
 * Private to the decider: the state of one decision between its steps, and the mode rules. A rule
 * sets the outcomes' requests and the decision's replicas and says which axes it moved.
 */
#pragma once

#include "decide/tandem/decide.h"

struct tandem_work {
    const struct td_tandem_input *in;
    const struct td_hvpa *hvpa;
    struct td_tandem_outcome *outcomes;
    struct td_tandem_decision *decision;
    bool has_axis;          /* replicas may be changed at all */
    bool is_vertical_valid; /* there is a vertical verdict to go by */
    int32_t current;        /* n */
    int32_t desired;        /* d: clamped, then n where a step removed the wish */
    int32_t min;
    int32_t max;
    bool has_horizontal;
    bool has_vertical;
};

struct tandem_action {
    enum td_tandem_reason reason;
    bool is_horizontal;
    bool is_vertical;
};

struct tandem_action tandem_hpa_preferred(struct tandem_work *work);
struct tandem_action tandem_hpa_biased(struct tandem_work *work);
struct tandem_action tandem_vpa_biased(struct tandem_work *work);
struct tandem_action tandem_mixed(struct tandem_work *work);
struct tandem_action tandem_ratio_based(struct tandem_work *work);

/* RatioBased: does more capacity come from size alone where replicas stand? */
bool tandem_grows_by_size_only(const struct td_tandem_input *in);

/* Is there an increase in this row that an emergency applies in full? */
bool tandem_is_emergency(const struct tandem_work *work, size_t index);

/* The gate that holds the row now, if it moves at all. An emergency passes every gate. */
enum td_tandem_block tandem_gate_of_row(const struct tandem_work *work, size_t index);
