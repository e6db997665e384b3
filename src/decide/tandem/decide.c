/*
 * The order of evaluation is that of hvpa.md 2.1 and each step sees the result of the one
 * before: validity, caps, coupling, policy filter, opposing guard, what counts as a recommendation,
 * the mode's rule, emergency, time gates, limits. RatioBased asks its gates before the rule,
 * because a gated axis there leaves its share to the other; the other modes ask them after it,
 * because stepping aside to the other axis would defeat the mode.
 *
 * A step that takes a wish away sets the outcome's target back to the request and leaves the reason
 * in `block`; the first reason stays.
 */
#include "decide/tandem/decide.h"

#include "base/assert.h"
#include "decide/tandem/amount.h"
#include "decide/tandem/coupling.h"
#include "decide/tandem/gates.h"
#include "decide/tandem/work.h"

static int32_t clamp_replicas(const struct tandem_work *work, int32_t replicas)
{
    if (replicas < work->min) {
        return work->min;
    }
    return replicas > work->max ? work->max : replicas;
}

/* Steps 3 and 4 for one row. */
static void begin_row(const struct tandem_work *work, size_t i)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    struct td_tandem_outcome *outcome = &work->outcomes[i];
    *outcome = (struct td_tandem_outcome){
        .request = row->request,
        .limit = row->limit,
        .wish = row->request,
        .target = row->request,
        .policy_target = row->request,
        .uncapped = row->uncapped,
        .can_emergency_act = true,
    };
    if (!work->is_vertical_valid) {
        return;
    }
    struct td_tandem_wish wish = td_tandem_wish_of(work->in, row);
    outcome->wish = wish.target;
    outcome->target = wish.target;
    outcome->policy_target = wish.policy_target;
    outcome->uncapped = wish.uncapped;
    outcome->is_coupling_raised = wish.is_raised;
    outcome->floor = wish.floor;
    outcome->most = wish.most;
    outcome->is_kept = wish.is_kept;
}

static const struct td_hvpa_scale_policy *vertical_policy(const struct tandem_work *work,
                                                          bool is_up)
{
    return is_up ? &work->hvpa->vertical_up : &work->hvpa->vertical_down;
}

static bool is_within_tolerance(const struct tandem_work *work, int64_t change, int64_t request)
{
    return (td_wide)change * 100 < (td_wide)request * work->hvpa->tolerance_percent;
}

bool tandem_is_breached(const struct tandem_work *work, size_t index)
{
    const struct td_tandem_row *row = &work->in->rows[index];
    const struct td_tandem_outcome *outcome = &work->outcomes[index];
    return row->request == 0 || row->request < outcome->floor ||
           (row->lower.is_set && row->request < row->lower.amount) ||
           (row->upper.is_set && row->request > row->upper.amount) ||
           (row->limit.is_set && outcome->policy_target > row->limit.amount);
}

/* Less than a tolerance more for a row that is the VPA's alone, whose limit leaves room: a leak
 * crosses the lower bound each time that it grows a little. */
static bool is_slight(const struct tandem_work *work, size_t i)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    const struct td_tandem_outcome *outcome = &work->outcomes[i];
    bool has_room = !row->limit.is_set ||
                    (td_wide)row->limit.amount * 100 >=
                        (td_wide)outcome->policy_target * (100 + work->hvpa->tolerance_percent);
    return has_room && row->request > 0 && row->request >= outcome->floor &&
           is_within_tolerance(work, outcome->target - row->request, row->request) &&
           !tandem_is_measured(work->hvpa, row);
}

/* Is what is left of the row's wish worth a disruption? */
static bool is_significant(const struct tandem_work *work, size_t i)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    const struct td_tandem_outcome *outcome = &work->outcomes[i];
    bool is_up = outcome->target > row->request;
    int64_t change = is_up ? outcome->target - row->request : row->request - outcome->target;
    if (change == 0) {
        return false;
    }
    if (tandem_is_breached(work, i) && !(is_up && is_slight(work, i))) {
        return true;
    }
    const struct td_hvpa_change *min_change =
        &vertical_policy(work, is_up)->min_change[row->resource];
    return td_tandem_is_change_set(min_change) ? td_tandem_reaches(min_change, change, row->request)
                                               : !is_within_tolerance(work, change, row->request);
}

/* Take the row's wish away; only significant ones are worth a word. */
static void remove_wish(struct tandem_work *work, size_t i, enum td_tandem_block block)
{
    struct td_tandem_outcome *outcome = &work->outcomes[i];
    if (outcome->is_significant) {
        outcome->block = block;
    }
    outcome->target = work->in->rows[i].request;
    outcome->is_significant = false;
}

/* Step 5. */
static void filter_by_policy(struct tandem_work *work)
{
    if (work->desired != work->current) {
        bool is_up = work->desired > work->current;
        enum td_tandem_block block = td_tandem_policy_block(
            work->in, is_up ? &work->hvpa->horizontal_up : &work->hvpa->horizontal_down);
        if (block != TD_TANDEM_BLOCK_NONE) {
            work->decision->horizontal_block = block;
            work->desired = work->current;
        }
    }
    enum td_tandem_block up = td_tandem_policy_block(work->in, vertical_policy(work, true));
    enum td_tandem_block down = td_tandem_policy_block(work->in, vertical_policy(work, false));
    for (size_t i = 0; i < work->in->row_count; i++) {
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        int64_t request = work->in->rows[i].request;
        outcome->is_significant = is_significant(work, i);
        outcome->can_emergency_act =
            up == TD_TANDEM_BLOCK_NONE && work->in->resize != TD_TANDEM_RESIZE_INFEASIBLE;
        enum td_tandem_block block = outcome->target > request ? up : down;
        if (outcome->target != request && block != TD_TANDEM_BLOCK_NONE) {
            remove_wish(work, i, block);
        }
    }
}

/* Step 6: a tick that wants more replicas does not shrink what the same signal measures. */
static void guard_against_opposing(struct tandem_work *work)
{
    if (!work->hvpa->opposing_guard || work->desired <= work->current) {
        return;
    }
    bool is_for_all = work->hvpa->mode == TD_HVPA_RATIO_BASED;
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        if (work->outcomes[i].target < row->request && (is_for_all || row->coupling.is_coupled)) {
            remove_wish(work, i, TD_TANDEM_BLOCK_OPPOSING);
        }
    }
}

bool tandem_is_emergency(const struct tandem_work *work, size_t index)
{
    const struct td_tandem_row *row = &work->in->rows[index];
    return row->is_emergency && row->resource == TD_HVPA_MEMORY &&
           work->in->resize != TD_TANDEM_RESIZE_INFEASIBLE &&
           work->outcomes[index].target > row->request;
}

/* Step 7. */
static void find_recommendations(struct tandem_work *work)
{
    enum td_tandem_resize resize = work->in->resize;
    bool has_significant = false;
    for (size_t i = 0; i < work->in->row_count; i++) {
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        if (!outcome->is_significant) {
            continue;
        }
        has_significant = true;
        if (resize != TD_TANDEM_RESIZE_NONE && !tandem_is_emergency(work, i)) {
            outcome->block = resize == TD_TANDEM_RESIZE_IN_PROGRESS
                                 ? TD_TANDEM_BLOCK_RESIZE_IN_PROGRESS
                                 : TD_TANDEM_BLOCK_RESIZE_INFEASIBLE;
        }
    }
    work->has_horizontal = work->desired != work->current;
    work->has_vertical = has_significant && resize == TD_TANDEM_RESIZE_NONE;
}

enum td_tandem_block tandem_gate_of_row(const struct tandem_work *work, size_t index)
{
    int64_t target = work->outcomes[index].target;
    int64_t request = work->in->rows[index].request;
    if (target == request || tandem_is_emergency(work, index)) {
        return TD_TANDEM_BLOCK_NONE;
    }
    return td_tandem_vertical_gate(work->in, target > request);
}

/* Step 8: RatioBased. */
static void gate_wishes(struct tandem_work *work)
{
    if (work->has_horizontal) {
        enum td_tandem_block block =
            td_tandem_horizontal_gate(work->in, work->desired > work->current);
        if (block != TD_TANDEM_BLOCK_NONE) {
            work->decision->horizontal_block = block;
            work->desired = work->current;
            work->has_horizontal = false;
        }
    }
    if (!work->has_vertical) {
        return;
    }
    work->has_vertical = false;
    for (size_t i = 0; i < work->in->row_count; i++) {
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        enum td_tandem_block block = tandem_gate_of_row(work, i);
        if (block != TD_TANDEM_BLOCK_NONE) {
            outcome->block = block;
            outcome->target = work->in->rows[i].request;
            outcome->is_significant = false;
        }
        work->has_vertical = work->has_vertical || outcome->is_significant;
    }
}

/* Step 11: the other modes. What remains of a vertical action must still be worth it. */
static void gate_action(struct tandem_work *work, struct tandem_action *action)
{
    bool was_action = action->is_horizontal || action->is_vertical;
    if (action->is_horizontal) {
        enum td_tandem_block block =
            td_tandem_horizontal_gate(work->in, work->desired > work->current);
        if (block != TD_TANDEM_BLOCK_NONE) {
            work->decision->horizontal_block = block;
            work->decision->replicas = work->current;
            action->is_horizontal = false;
        }
    }
    if (action->is_vertical) {
        action->is_vertical = false;
        for (size_t i = 0; i < work->in->row_count; i++) {
            struct td_tandem_outcome *outcome = &work->outcomes[i];
            if (outcome->request == work->in->rows[i].request) {
                continue; /* not part of the action */
            }
            enum td_tandem_block block = tandem_gate_of_row(work, i);
            if (block != TD_TANDEM_BLOCK_NONE) {
                outcome->block = block;
                outcome->request = work->in->rows[i].request;
            } else {
                action->is_vertical = action->is_vertical || outcome->is_significant;
            }
        }
        for (size_t i = 0; !action->is_vertical && i < work->in->row_count; i++) {
            work->outcomes[i].request = work->in->rows[i].request;
        }
    }
    if (was_action && !action->is_horizontal && !action->is_vertical) {
        if (action->reason == TD_TANDEM_THRESHOLD_PATIENCE_EXPIRED) {
            work->decision->below_thresholds_since = work->in->below_thresholds_since;
        }
        action->reason = TD_TANDEM_BLOCKED;
    }
}

/* Step 10, after the gates because it passes them: memory in full where a container was killed. */
static void merge_emergency(struct tandem_work *work, struct tandem_action *action)
{
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        if (tandem_is_emergency(work, i)) {
            outcome->request = outcome->target;
            outcome->block = TD_TANDEM_BLOCK_NONE;
            outcome->is_emergency = true;
            work->decision->is_emergency = true;
        } else if (row->is_emergency && row->resource == TD_HVPA_MEMORY) {
            outcome->is_at_max_allowed = outcome->wish <= row->request && row->max_allowed.is_set &&
                                         row->request >= row->max_allowed.amount;
        }
    }
    if (work->decision->is_emergency && !action->is_horizontal && !action->is_vertical) {
        action->reason = TD_TANDEM_EMERGENCY_MEMORY;
    }
}

/* Step 12 for one row whose request changes. */
static void finish_row(struct tandem_work *work, size_t i)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    struct td_tandem_outcome *outcome = &work->outcomes[i];
    if (outcome->request == row->request) {
        return;
    }
    if (row->max_allowed.is_set && outcome->request > row->max_allowed.amount) {
        outcome->request = row->max_allowed.amount;
    }
    outcome->request = td_tandem_cap_by_limit(row, outcome->request);
    if (row->is_requests_only || !row->limit.is_set || outcome->request == row->request) {
        return;
    }
    outcome->limit.amount = td_tandem_limit_for(row, &work->hvpa->gap[row->resource],
                                                outcome->request, &outcome->is_saturated);
    if (outcome->request > outcome->limit.amount) {
        outcome->request = outcome->limit.amount;
    }
}

/* A change that the tolerance would have let through, and minChange did not. */
static void report_min_change(struct tandem_work *work, size_t i)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    struct td_tandem_outcome *outcome = &work->outcomes[i];
    if (outcome->block != TD_TANDEM_BLOCK_NONE || outcome->is_significant ||
        outcome->target == row->request || outcome->request != row->request ||
        work->in->resize != TD_TANDEM_RESIZE_NONE) {
        return;
    }
    bool is_up = outcome->target > row->request;
    int64_t change = is_up ? outcome->target - row->request : row->request - outcome->target;
    if (td_tandem_is_change_set(&vertical_policy(work, is_up)->min_change[row->resource]) &&
        !is_within_tolerance(work, change, row->request)) {
        outcome->block = TD_TANDEM_BLOCK_MIN_CHANGE;
    }
}

static bool is_anything_blocked(const struct tandem_work *work)
{
    bool is_blocked = work->decision->horizontal_block != TD_TANDEM_BLOCK_NONE;
    for (size_t i = 0; i < work->in->row_count; i++) {
        enum td_tandem_block block = work->outcomes[i].block;
        is_blocked =
            is_blocked || (block != TD_TANDEM_BLOCK_NONE && block != TD_TANDEM_BLOCK_MIN_CHANGE &&
                           block != TD_TANDEM_BLOCK_SMALL_STEP);
    }
    return is_blocked;
}

static bool is_anything_recommended(const struct td_tandem_input *in)
{
    return (in->is_horizontal_valid && td_hvpa_scales_horizontally(in->hvpa)) ||
           (in->is_vertical_valid && in->hvpa->has_vpa);
}

static struct tandem_action run_mode(struct tandem_work *work)
{
    switch (work->hvpa->mode) {
    case TD_HVPA_HPA_PREFERRED:
        return tandem_hpa_preferred(work);
    case TD_HVPA_HPA_BIASED:
        return tandem_hpa_biased(work);
    case TD_HVPA_VPA_BIASED:
        return tandem_vpa_biased(work);
    case TD_HVPA_MIXED:
        return tandem_mixed(work);
    case TD_HVPA_RATIO_BASED:
        return tandem_ratio_based(work);
    }
    td_assert(false); /* a mode without a rule */
    return (struct tandem_action){.reason = TD_TANDEM_NO_CHANGE};
}

/* Steps 1 to 4. */
static struct tandem_work begin(const struct td_tandem_input *in,
                                struct td_tandem_outcome *outcomes,
                                struct td_tandem_decision *decision)
{
    const struct td_hvpa *hvpa = in->hvpa;
    bool has_axis = td_hvpa_scales_horizontally(hvpa);
    struct tandem_work work = {
        .in = in,
        .hvpa = hvpa,
        .outcomes = outcomes,
        .decision = decision,
        .has_axis = has_axis,
        .is_vertical_valid = in->replicas > 0 && in->is_vertical_valid && hvpa->has_vpa,
        .current = in->replicas,
        .min = has_axis ? hvpa->hpa.min_replicas : in->replicas,
        .max = has_axis ? hvpa->hpa.max_replicas : in->replicas,
    };
    work.desired = in->is_horizontal_valid && has_axis ? clamp_replicas(&work, in->desired_replicas)
                                                       : in->replicas;
    *decision = (struct td_tandem_decision){
        .replicas = in->replicas,
        .reason = TD_TANDEM_SCALING_DISABLED,
        .min_replicas = work.min,
        .max_replicas = work.max,
        .desired_replicas = work.desired,
        .outcomes = outcomes,
        .outcome_count = in->row_count,
    };
    for (size_t i = 0; i < in->row_count; i++) {
        td_assert(in->rows[i].request >= 0);
        td_assert(in->rows[i].target >= 0);
        begin_row(&work, i);
    }
    return work;
}

/* A step of size that the mode made may have been held since, because it was too short. */
static enum td_tandem_reason made_of(enum td_tandem_reason reason, enum td_tandem_axis axis)
{
    if (reason == TD_TANDEM_BOTH_APPLIED && axis == TD_TANDEM_AXIS_HORIZONTAL) {
        return TD_TANDEM_HORIZONTAL_APPLIED;
    }
    if (reason == TD_TANDEM_VERTICAL_APPLIED && axis == TD_TANDEM_AXIS_NONE) {
        return TD_TANDEM_NO_CHANGE;
    }
    return reason;
}

/* Step 12, and the words for what happened. */
static void finish(struct tandem_work *work, const struct tandem_action *action)
{
    struct td_tandem_decision *decision = work->decision;
    bool is_vertical = false;
    for (size_t i = 0; i < work->in->row_count; i++) {
        finish_row(work, i);
        report_min_change(work, i);
        is_vertical = is_vertical || work->outcomes[i].request != work->in->rows[i].request;
    }
    bool is_horizontal = decision->replicas != work->current;
    decision->axis = is_horizontal ? (is_vertical ? TD_TANDEM_AXIS_BOTH : TD_TANDEM_AXIS_HORIZONTAL)
                                   : (is_vertical ? TD_TANDEM_AXIS_VERTICAL : TD_TANDEM_AXIS_NONE);
    enum td_tandem_reason reason = made_of(action->reason, decision->axis);
    decision->reason = reason != TD_TANDEM_NO_CHANGE       ? reason
                       : is_anything_blocked(work)         ? TD_TANDEM_BLOCKED
                       : is_anything_recommended(work->in) ? TD_TANDEM_NO_CHANGE
                                                           : TD_TANDEM_NO_RECOMMENDATION;
}

void td_tandem_decide(const struct td_tandem_input *in, struct td_tandem_outcome *outcomes,
                      struct td_tandem_decision *ret)
{
    td_assert(in->replicas >= 0);
    struct tandem_work work = begin(in, outcomes, ret);
    if (in->replicas == 0) {
        return;
    }
    filter_by_policy(&work);
    guard_against_opposing(&work);
    find_recommendations(&work);
    ret->has_horizontal = work.has_horizontal;
    ret->has_vertical = work.has_vertical;
    bool is_ratio = work.hvpa->mode == TD_HVPA_RATIO_BASED;
    if (is_ratio) {
        gate_wishes(&work);
    }
    struct tandem_action action = run_mode(&work);
    if (!is_ratio) {
        gate_action(&work, &action);
    }
    tandem_lengthen(&work);
    merge_emergency(&work, &action);
    finish(&work, &action);
}
