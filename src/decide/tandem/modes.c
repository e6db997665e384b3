/* The four modes that move one axis at a time (hvpa.md 2.4 to 2.6). */
#include "decide/tandem/amount.h"
#include "decide/tandem/gates.h"
#include "decide/tandem/work.h"

static const struct tandem_action nothing = {.reason = TD_TANDEM_NO_CHANGE};

static struct tandem_action move_replicas(struct tandem_work *work)
{
    work->decision->replicas = work->desired;
    return (struct tandem_action){.reason = TD_TANDEM_HORIZONTAL_APPLIED, .is_horizontal = true};
}

static struct tandem_action move_requests(struct tandem_work *work)
{
    for (size_t i = 0; i < work->in->row_count; i++) {
        work->outcomes[i].request = work->outcomes[i].target;
    }
    return (struct tandem_action){.reason = TD_TANDEM_VERTICAL_APPLIED, .is_vertical = true};
}

/* Which directions a pod may grow or shrink in: only at the ends of what replicas can reach. */
struct freedom {
    bool is_up;
    bool is_down;
};

static struct freedom vertical_freedom(const struct tandem_work *work)
{
    const struct td_tandem_input *in = work->in;
    bool can_go_out = work->has_axis && td_tandem_policy_block(in, &work->hvpa->horizontal_up) == 0;
    bool can_go_in =
        work->has_axis && td_tandem_policy_block(in, &work->hvpa->horizontal_down) == 0;
    return (struct freedom){
        .is_up = !can_go_out || work->current >= work->max,
        .is_down = !can_go_in || work->current <= work->min,
    };
}

/* Too small for the HPA to notice its load: it may grow to its floor wherever replicas stand. */
static bool is_starved(const struct tandem_work *work, size_t i)
{
    const struct td_tandem_outcome *outcome = &work->outcomes[i];
    int64_t request = work->in->rows[i].request;
    return request < outcome->floor && outcome->target > request;
}

struct tandem_action tandem_hpa_preferred(struct tandem_work *work)
{
    if (work->has_horizontal) {
        return move_replicas(work);
    }
    if (!work->has_vertical) {
        return nothing;
    }
    struct freedom freedom = vertical_freedom(work);
    bool is_allowed_significant = false;
    bool is_increase_held = false;
    for (size_t i = 0; i < work->in->row_count; i++) {
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        bool is_up = outcome->target > work->in->rows[i].request;
        if (!outcome->is_significant) {
            continue;
        }
        bool is_allowed = is_up ? freedom.is_up || is_starved(work, i) : freedom.is_down;
        is_allowed_significant = is_allowed_significant || is_allowed;
        is_increase_held = is_increase_held || is_up;
    }
    if (!is_allowed_significant) {
        return (struct tandem_action){.reason = is_increase_held
                                                    ? TD_TANDEM_VERTICAL_HELD_BELOW_MAX_REPLICAS
                                                    : TD_TANDEM_VERTICAL_HELD_ABOVE_MIN_REPLICAS};
    }
    for (size_t i = 0; i < work->in->row_count; i++) {
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        bool is_up = outcome->target > work->in->rows[i].request;
        if (is_up ? freedom.is_up : freedom.is_down) {
            outcome->request = outcome->target;
        } else if (is_starved(work, i)) {
            outcome->request = outcome->floor;
        }
    }
    return (struct tandem_action){.reason = TD_TANDEM_VERTICAL_APPLIED, .is_vertical = true};
}

struct tandem_action tandem_hpa_biased(struct tandem_work *work)
{
    if (work->has_horizontal) {
        return move_replicas(work);
    }
    return work->has_vertical ? move_requests(work) : nothing;
}

/* Does the VPA's wish come before that of the HPA, or beside it? More replicas do not wait for
 * requests that a gate holds, which may stay closed for days: those say why they are held, and
 * stand aside. */
static bool has_rival(struct tandem_work *work)
{
    bool is_rival = false;
    if (!work->has_vertical || work->desired <= work->current ||
        td_tandem_horizontal_gate(work->in, true) != TD_TANDEM_BLOCK_NONE) {
        return work->has_vertical;
    }
    for (size_t i = 0; i < work->in->row_count; i++) {
        is_rival = is_rival || (work->outcomes[i].is_significant &&
                                tandem_gate_of_row(work, i) == TD_TANDEM_BLOCK_NONE);
    }
    for (size_t i = 0; !is_rival && i < work->in->row_count; i++) {
        if (work->outcomes[i].is_significant) {
            work->outcomes[i].block = tandem_gate_of_row(work, i);
        }
    }
    return is_rival;
}

struct tandem_action tandem_vpa_biased(struct tandem_work *work)
{
    if (has_rival(work)) {
        return move_requests(work);
    }
    return work->has_horizontal ? move_replicas(work) : nothing;
}

/* Some row moves by more than its threshold, or past its limit. */
static bool is_vertical_past_threshold(const struct tandem_work *work)
{
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        const struct td_tandem_outcome *outcome = &work->outcomes[i];
        int64_t change = outcome->target > row->request ? outcome->target - row->request
                                                        : row->request - outcome->target;
        if (change == 0) {
            continue;
        }
        const struct td_hvpa_change *threshold =
            &work->hvpa->mixed.vertical_threshold[row->resource];
        if (td_tandem_exceeds(threshold, change, row->request) || is_starved(work, i) ||
            (row->limit.is_set && outcome->policy_target > row->limit.amount)) {
            return true;
        }
    }
    return false;
}

/* Two weak wishes must not hold each other for ever, when either alone would be carried out. */
static struct tandem_action wait_or_lose_patience(struct tandem_work *work)
{
    const struct td_tandem_input *in = work->in;
    const struct td_hvpa_mixed *mixed = &work->hvpa->mixed;
    struct td_tandem_time since = in->below_thresholds_since;
    if (since.is_set && mixed->patience_seconds > 0 &&
        td_tandem_has_passed(since.at, in->now, mixed->patience_seconds)) {
        work->decision->below_thresholds_since =
            (struct td_tandem_time){.is_set = true, .at = in->now};
        struct tandem_action action =
            mixed->preference == TD_HVPA_HORIZONTAL ? move_replicas(work) : move_requests(work);
        action.reason = TD_TANDEM_THRESHOLD_PATIENCE_EXPIRED;
        return action;
    }
    work->decision->below_thresholds_since =
        since.is_set ? since : (struct td_tandem_time){.is_set = true, .at = in->now};
    return (struct tandem_action){.reason = TD_TANDEM_BELOW_THRESHOLDS};
}

struct tandem_action tandem_mixed(struct tandem_work *work)
{
    if (!work->has_horizontal || !has_rival(work)) {
        return tandem_hpa_biased(work); /* one alone is applied, whatever the thresholds */
    }
    const struct td_hvpa_mixed *mixed = &work->hvpa->mixed;
    int64_t distance = (int64_t)work->desired - work->current;
    bool is_horizontal_strong = (distance < 0 ? -distance : distance) > mixed->horizontal_threshold;
    bool is_vertical_strong = is_vertical_past_threshold(work);
    if (!is_horizontal_strong && !is_vertical_strong) {
        return wait_or_lose_patience(work);
    }
    bool is_horizontal = is_horizontal_strong && is_vertical_strong
                             ? mixed->preference == TD_HVPA_HORIZONTAL
                             : is_horizontal_strong;
    return is_horizontal ? move_replicas(work) : move_requests(work);
}
