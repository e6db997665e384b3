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

/* Is a bound of the recommendation crossed, the floor, or the limit? That beats every threshold:
 * the container starves, or the HPA does not see it. */
bool tandem_is_breached(const struct tandem_work *work, size_t index);

/* The gate that holds the row now, if it moves at all. An emergency passes every gate. */
enum td_tandem_block tandem_gate_of_row(const struct tandem_work *work, size_t index);

/* ---- How long a step of requests is (stride.c) ---- */

/* Does a metric of the HPA follow the use of this row? Not that of memory, when it looks at
 * requests a second or at cpu: such a row is the VPA's alone, in every mode. */
bool tandem_is_measured(const struct td_hvpa *hvpa, const struct td_tandem_row *row);

/* Is a step of the row from its request to this one long: by minChange, else by this many
 * tolerances? A factor counts the same up and down. */
bool tandem_is_long(const struct tandem_work *work, size_t index, int64_t to, int32_t tolerances);

/* Once the mode has decided: rows that grow to their target grow by strides, those that no metric
 * measures in every mode, the others in RatioBased. */
void tandem_lengthen(struct tandem_work *work);

/* RatioBased, once it has shared the wishes: who carries a growth that is not worth a step of
 * both? `line` is by how much the ratio would have made pods larger than the template's until now.
 * Requests are set; replicas are the caller's to set. */
enum td_tandem_carrier tandem_choose_carrier(struct tandem_work *work, double line);

/* As many replicas as bring use within the HPA's tolerance of its target; all that it asks for
 * where a limit hides what is wanted, or nothing is known. */
int32_t tandem_enough_replicas(const struct tandem_work *work);
