/*
 * RatioBased (hvpa.md 2.7, 2.8). Capacity is replicas times request, a product, so each axis gets
 * its share of the logarithm of the wished factor: n·(d/n)^h replicas and r·(t/r)^v of request.
 * Replicas are whole, so their rounding and every cut at a stage's border flow into the request:
 * (r* n*) / N. When both autoscalers ask for the same factor, N·R is exactly that factor, neither
 * lost nor doubled. An additive blend would give 9 cores where 5 are asked for.
 *
 * Which exponents hold depends on the stage, and the border between two stages on the direction of
 * the wish: at x2 a growing load already belongs to the last stage, at x1 a shrinking one to the
 * first, so that there is always a way back.
 */
#include "decide/tandem/amount.h"
#include "decide/tandem/gates.h"
#include "decide/tandem/work.h"

struct share {
    double horizontal;
    double vertical;
};

struct stages {
    int32_t start;  /* x1 */
    int32_t finish; /* x2 */
    struct share shares[TD_TANDEM_FINAL + 1];
};

static struct share share_of_axis(enum td_hvpa_axis axis)
{
    return axis == TD_HVPA_HORIZONTAL ? (struct share){.horizontal = 1, .vertical = 0}
                                      : (struct share){.horizontal = 0, .vertical = 1};
}

/* A missing border is the end of the range, and beyond it size goes on to its own bounds. */
static struct stages stages_of(const struct td_hvpa *hvpa, int32_t min, int32_t max)
{
    const struct td_hvpa_ratio *ratio = &hvpa->ratio;
    bool has_start = td_hvpa_scales_horizontally(hvpa) && ratio->has_start;
    bool has_finish = td_hvpa_scales_horizontally(hvpa) && ratio->has_finish;
    struct stages stages = {
        .start = has_start ? ratio->start : min,
        .finish = has_finish ? ratio->finish : max,
    };
    stages.shares[TD_TANDEM_INITIAL] =
        share_of_axis(has_start ? hvpa->initial_scaling : TD_HVPA_VERTICAL);
    stages.shares[TD_TANDEM_RATIO] = (struct share){
        .horizontal = 1 / (1 + ratio->v_to_h), .vertical = ratio->v_to_h / (1 + ratio->v_to_h)};
    stages.shares[TD_TANDEM_FINAL] =
        share_of_axis(has_finish ? hvpa->final_scaling : TD_HVPA_VERTICAL);
    for (int i = TD_TANDEM_INITIAL; !hvpa->has_vpa && i <= TD_TANDEM_FINAL; i++) {
        stages.shares[i] = share_of_axis(TD_HVPA_HORIZONTAL);
    }
    return stages;
}

static enum td_tandem_stage stage_at(int32_t n, const struct stages *stages, bool is_up)
{
    if (is_up ? n < stages->start : n <= stages->start) {
        return TD_TANDEM_INITIAL;
    }
    return (is_up ? n < stages->finish : n <= stages->finish) ? TD_TANDEM_RATIO : TD_TANDEM_FINAL;
}

static enum td_tandem_stage stage_of(const struct tandem_work *work, const struct stages *stages,
                                     bool is_up)
{
    return stage_at(work->current, stages, is_up);
}

bool tandem_grows_by_size_only(const struct td_tandem_input *in)
{
    const struct td_hvpa *hvpa = in->hvpa;
    if (hvpa->mode != TD_HVPA_RATIO_BASED || !td_hvpa_scales_horizontally(hvpa)) {
        return false;
    }
    struct stages stages = stages_of(hvpa, hvpa->hpa.min_replicas, hvpa->hpa.max_replicas);
    return stages.shares[stage_at(in->replicas, &stages, true)].horizontal == 0;
}

/* O1: size cannot follow any more, although the recommender would like it to. */
static bool is_vertical_exhausted(const struct tandem_work *work, bool is_up)
{
    if (!work->is_vertical_valid) {
        return false;
    }
    bool is_at_end = false;
    int32_t tolerance = work->hvpa->tolerance_percent;
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        const struct td_tandem_outcome *outcome = &work->outcomes[i];
        if (outcome->is_significant && (outcome->target > row->request) == is_up) {
            return false;
        }
        td_wide request = (td_wide)row->request * 100;
        const struct td_tandem_bound *most = &outcome->most;
        if (is_up && most->is_set && outcome->uncapped > most->amount &&
            request >= (td_wide)most->amount * (100 - tolerance)) {
            is_at_end = true;
        }
        if (!is_up && row->min_allowed.is_set && outcome->uncapped < row->min_allowed.amount &&
            request <= (td_wide)row->min_allowed.amount * (100 + tolerance)) {
            is_at_end = true;
        }
    }
    return is_at_end;
}

/* O2: replicas stand at their end, so size takes all. */
static bool is_horizontal_exhausted(const struct tandem_work *work, bool is_up)
{
    return is_up ? work->current >= work->max && work->desired >= work->current
                 : work->current <= work->min && work->desired <= work->current;
}

/* A stage moves replicas as far as its border; the rest is for the next stage. */
static int32_t cut_at_border(struct tandem_work *work, const struct stages *stages, bool is_up,
                             int32_t replicas)
{
    enum td_tandem_stage stage = stage_of(work, stages, is_up);
    int32_t cut = replicas;
    if (is_up) {
        int32_t border = stage == TD_TANDEM_INITIAL ? stages->start : stages->finish;
        cut = stage != TD_TANDEM_FINAL && replicas > border ? border : replicas;
    } else {
        int32_t border = stage == TD_TANDEM_FINAL ? stages->finish : stages->start;
        cut = stage != TD_TANDEM_INITIAL && replicas < border ? border : replicas;
    }
    if (cut != replicas) {
        work->decision->blend.is_cut_by_border = true;
        work->decision->blend.border_replicas = cut;
    }
    return cut;
}

static int32_t clamp_to_range(const struct tandem_work *work, int32_t replicas)
{
    if (replicas < work->min) {
        return work->min;
    }
    return replicas > work->max ? work->max : replicas;
}

static int32_t round_replicas(double exact, bool is_up)
{
    int64_t whole = is_up ? td_tandem_ceil(exact) : td_tandem_floor(exact);
    return whole > INT32_MAX ? INT32_MAX : (int32_t)whole;
}

/* The horizontal half: sets replicas and the exact count that they stand for. */
static void blend_replicas(struct tandem_work *work, const struct stages *stages)
{
    struct td_tandem_blend *blend = &work->decision->blend;
    blend->replicas_exact = work->current;
    if (!work->has_horizontal) {
        return;
    }
    bool is_up = work->desired > work->current;
    double exponent = stages->shares[stage_of(work, stages, is_up)].horizontal;
    if (exponent == 0 && work->hvpa->ratio.overflow && is_vertical_exhausted(work, is_up)) {
        exponent = 1;
        blend->is_overflow = true;
    }
    double n = work->current;
    blend->exponent = exponent;
    blend->replicas_exact =
        exponent == 1 ? (double)work->desired : n * td_tandem_power(work->desired / n, exponent);
    int32_t replicas = round_replicas(blend->replicas_exact, is_up);
    if (is_up ? replicas > work->desired : replicas < work->desired) {
        replicas = work->desired;
    }
    replicas = cut_at_border(work, stages, is_up, replicas);
    work->decision->replicas = clamp_to_range(work, replicas);
    if (exponent == 0 && work->decision->replicas == work->current) {
        work->decision->horizontal_block = TD_TANDEM_BLOCK_STAGE;
    }
}

static int64_t between(int64_t a, int64_t b, int64_t value)
{
    int64_t low = a < b ? a : b;
    int64_t high = a < b ? b : a;
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

/* One row's share, with the factor by which rounding left replicas short or ahead. */
static int64_t share_request(const struct td_tandem_row *row, int64_t target, double exponent,
                             double compensation)
{
    if (exponent == 0) {
        return row->request;
    }
    if (exponent == 1 || row->request == 0) {
        return target;
    }
    double request = (double)row->request;
    double exact = request * td_tandem_power((double)target / request, exponent) * compensation;
    return between(row->request, target, td_tandem_round_up(row->resource, exact));
}

static double exponent_of_row(struct tandem_work *work, const struct stages *stages,
                              const struct td_tandem_row *row, bool is_up)
{
    double exponent = stages->shares[stage_of(work, stages, is_up)].vertical;
    if (exponent > 0 && !tandem_is_measured(work->hvpa, row)) {
        return 1;
    }
    if (exponent != 1 && work->hvpa->ratio.overflow && is_horizontal_exhausted(work, is_up)) {
        work->decision->blend.is_overflow = true;
        return 1;
    }
    return exponent;
}

/* A power of zero has no logarithm; such a target is taken in full. */
static bool can_share(const struct td_tandem_row *row, int64_t target)
{
    return row->request > 0 && target > 0;
}

/* Where the HPA's own measure is what asks for size, the product of both is known: what replicas
 * were rounded up by is not asked for again. */
static int64_t within_need(const struct tandem_work *work, size_t i, double exponent,
                           int64_t request)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    const struct td_tandem_outcome *outcome = &work->outcomes[i];
    bool is_shared = exponent > 0 && exponent < 1;
    if (!outcome->is_coupling_raised || !is_shared || request <= row->request) {
        return request;
    }
    int64_t needed =
        td_tandem_ceil_quotient((td_wide)work->current * outcome->target, work->decision->replicas);
    needed = needed > row->request ? needed : row->request;
    return needed < request ? needed : request;
}

/* The vertical half of Blend. With Max (only_uncoupled) the coupled rows are moved elsewhere. */
static void blend_requests(struct tandem_work *work, const struct stages *stages,
                           bool only_uncoupled)
{
    double compensation = work->decision->blend.replicas_exact / work->decision->replicas;
    for (size_t i = 0; work->has_vertical && i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        if (outcome->target == row->request || (only_uncoupled && row->coupling.is_coupled)) {
            continue;
        }
        bool is_max = only_uncoupled && !work->decision->blend.is_hold;
        double exponent = is_max
                              ? stages->shares[TD_TANDEM_RATIO].vertical
                              : exponent_of_row(work, stages, row, outcome->target > row->request);
        outcome->exponent = exponent;
        if (exponent != 0 && !can_share(row, outcome->target)) {
            exponent = 1;
        }
        int64_t request =
            share_request(row, outcome->target, exponent, only_uncoupled ? 1 : compensation);
        request = within_need(work, i, exponent, request);
        bool is_starved = row->request < outcome->floor && outcome->target > row->request;
        outcome->request = is_starved && request < outcome->floor ? outcome->floor : request;
        if (exponent == 0 && !is_starved && !tandem_is_emergency(work, i)) {
            outcome->block = TD_TANDEM_BLOCK_STAGE;
        }
    }
}

/* A wished factor of capacity. */
struct factor {
    int64_t to;
    int64_t from;
};

static bool is_larger(struct factor a, struct factor b)
{
    return (td_wide)a.to * b.from > (td_wide)b.to * a.from;
}

/* The largest factor that the HPA or a row which it measures asks for. */
static struct factor common_factor(const struct tandem_work *work)
{
    struct factor factor = {.to = work->desired, .from = work->current};
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        struct factor wish = {.to = work->has_vertical ? work->outcomes[i].target : row->request,
                              .from = row->request};
        if (row->coupling.is_coupled && row->request > 0 && is_larger(wish, factor)) {
            factor = wish;
        }
    }
    return factor;
}

/* Max moves rows that the VPA did not ask to move; what holds the axis holds them too. */
static enum td_tandem_block max_block(const struct tandem_work *work, bool is_up)
{
    if (work->in->resize != TD_TANDEM_RESIZE_NONE) {
        return work->in->resize == TD_TANDEM_RESIZE_IN_PROGRESS ? TD_TANDEM_BLOCK_RESIZE_IN_PROGRESS
                                                                : TD_TANDEM_BLOCK_RESIZE_INFEASIBLE;
    }
    enum td_tandem_block block = td_tandem_policy_block(
        work->in, is_up ? &work->hvpa->vertical_up : &work->hvpa->vertical_down);
    return block != TD_TANDEM_BLOCK_NONE ? block : td_tandem_vertical_gate(work->in, is_up);
}

static int64_t clamp_allowed(const struct td_tandem_row *row, int64_t amount)
{
    if (row->min_allowed.is_set && amount < row->min_allowed.amount) {
        amount = row->min_allowed.amount;
    }
    return row->max_allowed.is_set && amount > row->max_allowed.amount ? row->max_allowed.amount
                                                                       : amount;
}

/* The request that gives one coupled row its part of the capacity at the decided replicas. It may
 * be smaller than before where replicas were rounded up: the product counts. */
static int64_t max_request(const struct tandem_work *work, size_t i, double capacity)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    if (row->request == 0) {
        return work->has_vertical ? work->outcomes[i].target : 0;
    }
    int64_t request = td_tandem_round_up(row->resource, capacity / work->decision->replicas);
    const struct td_tandem_outcome *outcome = &work->outcomes[i];
    request = request > outcome->floor ? request : outcome->floor;
    bool is_over = outcome->most.is_set && request > outcome->most.amount;
    request = clamp_allowed(row, is_over ? outcome->most.amount : request);
    /* What the product asks for is judged as a wish is; replicas make up for what is not made. */
    bool is_worth_it = tandem_is_long(work, i, request, 1) || tandem_is_breached(work, i);
    return is_worth_it ? request : row->request;
}

/* Growing, and a clamped request leaves capacity short: replicas make up for it. */
static int64_t replicas_needed(const struct tandem_work *work, int64_t request, double capacity)
{
    double replicas = work->decision->replicas;
    return request > 0 && replicas * (double)request < capacity
               ? td_tandem_ceil(capacity / (double)request)
               : work->decision->replicas;
}

static void max_requests(struct tandem_work *work, double factor)
{
    for (size_t i = 0; work->is_vertical_valid && i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        if (!row->coupling.is_coupled) {
            continue;
        }
        double capacity = (double)work->current * (double)row->request * factor;
        int64_t request = max_request(work, i, capacity);
        enum td_tandem_block block = request != row->request
                                         ? max_block(work, request > row->request)
                                         : TD_TANDEM_BLOCK_NONE;
        outcome->request = block == TD_TANDEM_BLOCK_NONE ? request : row->request;
        if (outcome->block == TD_TANDEM_BLOCK_NONE) {
            outcome->block = block;
        }
    }
}

/* Max also moves replicas that the HPA did not ask to move; what holds that axis holds them too. */
static bool is_horizontal_held(const struct tandem_work *work, bool is_up)
{
    const struct td_hvpa_scale_policy *policy =
        is_up ? &work->hvpa->horizontal_up : &work->hvpa->horizontal_down;
    return td_tandem_policy_block(work->in, policy) != TD_TANDEM_BLOCK_NONE ||
           td_tandem_horizontal_gate(work->in, is_up) != TD_TANDEM_BLOCK_NONE;
}

/* The most replicas that any coupled row needs at its request. */
static int64_t most_needed(const struct tandem_work *work, double ratio)
{
    int64_t needed = work->decision->replicas;
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        double capacity = (double)work->current * (double)row->request * ratio;
        int64_t of_row = row->coupling.is_coupled
                             ? replicas_needed(work, work->outcomes[i].request, capacity)
                             : 0;
        needed = of_row > needed ? of_row : needed;
    }
    return needed;
}

/* capacityPolicy Max in the ratio stage: false when Blend is to decide. A factor of 1 comes from
 * autoscalers of which none wants to grow, so its stage is that of a decrease: outside of the ratio
 * stage a scale-in does not wait for the VPA to agree. */
static bool run_max(struct tandem_work *work, const struct stages *stages)
{
    struct td_tandem_blend *blend = &work->decision->blend;
    struct factor factor = common_factor(work);
    bool is_up = factor.to > factor.from;
    if (stage_of(work, stages, is_up) != TD_TANDEM_RATIO) {
        return false;
    }
    blend->replicas_exact = work->current;
    if (factor.to == factor.from) {
        blend->is_max = true;
        blend->is_hold = true;
        blend_requests(work, stages, true);
        return true;
    }
    double ratio = (double)factor.to / (double)factor.from;
    blend->is_max = true;
    blend->exponent = stages->shares[TD_TANDEM_RATIO].horizontal;
    blend->replicas_exact = work->current * td_tandem_power(ratio, blend->exponent);
    bool is_fixed = is_horizontal_held(work, is_up);
    if (!is_fixed) {
        int32_t replicas = round_replicas(blend->replicas_exact, is_up);
        replicas = cut_at_border(work, stages, is_up, replicas);
        work->decision->replicas = clamp_to_range(work, replicas);
    }
    max_requests(work, ratio);
    int32_t most = stages->finish < work->max ? stages->finish : work->max;
    int64_t needed = is_up && !is_fixed ? most_needed(work, ratio) : work->decision->replicas;
    if (needed > work->decision->replicas && work->decision->replicas < most) {
        work->decision->replicas = needed > most ? most : (int32_t)needed;
        max_requests(work, ratio);
    }
    blend_requests(work, stages, true);
    return true;
}

/* Short steps of requests are not made: replicas or size carry the growth alone. What both would
 * be, had they shared all growth since there were as few replicas as can be, is the line that size
 * catches up with. */
static void carry(struct tandem_work *work, const struct stages *stages)
{
    struct td_tandem_blend *blend = &work->decision->blend;
    double exponent = stages->shares[stage_of(work, stages, true)].horizontal;
    double line = td_tandem_power((double)work->current / stages->start, work->hvpa->ratio.v_to_h);
    enum td_tandem_carrier carrier = tandem_choose_carrier(work, line);
    if (carrier == TD_TANDEM_CARRIED_BY_BOTH || exponent == 0 || exponent == 1) {
        return;
    }
    int32_t replicas =
        carrier == TD_TANDEM_CARRIED_BY_SIZE ? work->current : tandem_enough_replicas(work);
    blend->carrier = carrier;
    blend->is_cut_by_border = false;
    blend->exponent = carrier == TD_TANDEM_CARRIED_BY_SIZE ? 0 : 1;
    blend->replicas_exact = replicas;
    work->decision->replicas = clamp_to_range(work, cut_at_border(work, stages, true, replicas));
}

/* The stage that all wishes of the tick share, if they do. */
static void name_stage(struct tandem_work *work, const struct stages *stages)
{
    struct td_tandem_blend *blend = &work->decision->blend;
    bool is_up[2] = {false, false}; /* a wish up, a wish down */
    if (work->has_horizontal) {
        is_up[work->desired > work->current ? 0 : 1] = true;
    }
    for (size_t i = 0; work->has_vertical && i < work->in->row_count; i++) {
        int64_t request = work->in->rows[i].request;
        if (work->outcomes[i].target != request) {
            is_up[work->outcomes[i].target > request ? 0 : 1] = true;
        }
    }
    enum td_tandem_stage up = stage_of(work, stages, true);
    enum td_tandem_stage down = stage_of(work, stages, false);
    blend->has_stage = (is_up[0] || is_up[1]) && (!is_up[0] || !is_up[1] || up == down);
    blend->stage = is_up[0] ? up : down;
    blend->has_weights = blend->has_stage && !blend->is_overflow;
    blend->horizontal = stages->shares[blend->stage].horizontal;
    blend->vertical = stages->shares[blend->stage].vertical;
}

struct tandem_action tandem_ratio_based(struct tandem_work *work)
{
    if (!work->has_horizontal && !work->has_vertical) {
        return (struct tandem_action){.reason = TD_TANDEM_NO_CHANGE};
    }
    struct stages stages = stages_of(work->hvpa, work->min, work->max);
    if (work->hvpa->ratio.capacity != TD_HVPA_MAX || !run_max(work, &stages)) {
        blend_replicas(work, &stages);
        blend_requests(work, &stages, false);
    } else if (work->has_horizontal) {
        work->decision->replicas = clamp_to_range(work, work->decision->replicas);
    }
    if (!work->decision->blend.is_max) {
        carry(work, &stages);
    }
    name_stage(work, &stages);
    struct tandem_action action = {
        .is_horizontal = work->decision->replicas != work->current,
    };
    bool is_short = false;
    bool is_forbidden = work->decision->horizontal_block == TD_TANDEM_BLOCK_STAGE;
    for (size_t i = 0; i < work->in->row_count; i++) {
        action.is_vertical =
            action.is_vertical || work->outcomes[i].request != work->in->rows[i].request;
        is_short = is_short || work->outcomes[i].block == TD_TANDEM_BLOCK_SMALL_STEP;
        is_forbidden = is_forbidden || work->outcomes[i].block == TD_TANDEM_BLOCK_STAGE;
    }
    action.reason = is_short && !is_forbidden ? TD_TANDEM_NO_CHANGE : TD_TANDEM_STAGE_FORBIDS;
    if (action.is_horizontal && action.is_vertical) {
        action.reason = TD_TANDEM_BOTH_APPLIED;
    } else if (action.is_horizontal) {
        action.reason = TD_TANDEM_HORIZONTAL_APPLIED;
    } else if (action.is_vertical) {
        action.reason = TD_TANDEM_VERTICAL_APPLIED;
    }
    return action;
}
