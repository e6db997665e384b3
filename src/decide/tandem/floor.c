/*
 * Three floors, and none is ever above what makes the pod as good as the template's, but where a
 * stage has size take the place of replicas:
 *
 * 1. Under Reference the HPA waits for a use of target x template. A request of that and the
 *    headroom (1.15 with the HPA's tolerance of a tenth) lets a pod use it, whatever its limit.
 *    Before a day was seen the floor is the template itself: what a pod needs at its busiest hour
 *    is not known yet.
 * 2. Under the other couplings the HPA waits for a share of what pods ask for now. A limit close to
 *    the request, or other containers that ask for much and use little, can put that out of reach
 *    of this container; what reaches it is solved for the request.
 * 3. Where replicas can go no further, size is all there is left: at maxReplicas the HPA alone has
 *    pods of the template. In a stage that moves size only there would be more of them.
 *
 * What could not be given back (requests may not grow) is not taken below the template at all.
 */
#include "decide/tandem/floor.h"

#include <math.h>

#include "decide/tandem/amount.h"
#include "decide/tandem/gates.h"
#include "decide/tandem/work.h"

#define PERCENT 100
#define TOLERANCE_PERCENT 10 /* of the HPA, where nothing is said */
#define MARGIN_PERCENT 5     /* beyond it */

int32_t td_tandem_headroom_of(double tolerance)
{
    double percent = tolerance > 0 ? ceil(tolerance * PERCENT - 1e-9) : 0;
    return (percent < INT32_MAX / 2 ? (int32_t)percent : INT32_MAX / 2) + MARGIN_PERCENT;
}

static int32_t headroom_of(const struct td_tandem_row *row)
{
    int32_t headroom = row->coupling.headroom_percent;
    return headroom > 0 ? headroom : TOLERANCE_PERCENT + MARGIN_PERCENT;
}

int32_t td_tandem_tolerance_of(const struct td_tandem_row *row)
{
    return headroom_of(row) - MARGIN_PERCENT;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Can a request that was made smaller grow again when it has to? */
static bool can_grow(const struct td_hvpa *hvpa)
{
    return hvpa->vertical_up.update == TD_HVPA_UPDATE_AUTO &&
           (hvpa->mode != TD_HVPA_RATIO_BASED || hvpa->ratio.overflow);
}

/* Are there as many replicas as there can be? */
static bool is_at_end(const struct td_tandem_input *in)
{
    return in->replicas > 0 &&
           (in->replicas >= in->hvpa->hpa.max_replicas ||
            td_tandem_policy_block(in, &in->hvpa->horizontal_up) != TD_TANDEM_BLOCK_NONE);
}

static bool wants_out(const struct td_tandem_input *in)
{
    return in->is_horizontal_valid && in->desired_replicas > in->replicas;
}

/* The size at which the use that was measured is what the HPA's target allows. */
static int64_t content_size(const struct td_tandem_row *row)
{
    const struct td_tandem_coupling *coupling = &row->coupling;
    return coupling->usage.is_set && coupling->utilization > 0
               ? td_tandem_ceil_quotient((td_wide)coupling->usage.amount * PERCENT,
                                         coupling->utilization)
               : 0;
}

static int64_t floor_of_reference(const struct td_tandem_input *in, const struct td_tandem_row *row)
{
    int64_t template = row->coupling.in_template;
    td_wide reach = (td_wide)row->coupling.reference * (PERCENT + headroom_of(row));
    int64_t floor = row->is_young || is_at_end(in)
                        ? template
                        : least(template, td_tandem_ceil_quotient(reach, PERCENT));
    return tandem_grows_by_size_only(in) && wants_out(in) ? most(floor, content_size(row)) : floor;
}

/* The limit of a row that follows its request, in percent of it; 0: it does not bound the use by
 * the request. */
static int64_t limit_percent(const struct td_tandem_input *in, const struct td_tandem_row *row)
{
    struct td_tandem_pair origin = row->origin;
    const struct td_hvpa_change *gap = &in->hvpa->gap[row->resource];
    if (origin.request == 0 || origin.limit == 0) {
        origin = (struct td_tandem_pair){.request = row->request, .limit = row->limit.amount};
    }
    if (!row->limit.is_set || row->is_requests_only) {
        return 0;
    }
    if (origin.request == 0 || origin.limit == origin.request) {
        return PERCENT;
    }
    if (td_tandem_is_change_set(gap)) {
        return PERCENT + (gap->has_percentage ? gap->percentage : 0);
    }
    return td_tandem_saturate((td_wide)origin.limit * PERCENT / origin.request);
}

/* Use of this container alone, up to its limit, must be able to exceed the HPA's threshold over
 * all requests that it is measured against: R x limit >= threshold x (R + beside). */
static int64_t floor_of_reach(const struct td_tandem_input *in, const struct td_tandem_row *row)
{
    int64_t limit = limit_percent(in, row);
    if (limit == 0) {
        return 0;
    }
    td_wide threshold = (td_wide)row->coupling.utilization * (PERCENT + headroom_of(row));
    td_wide room = (td_wide)limit * PERCENT - threshold;
    if (room <= 0) {
        return row->coupling.in_template;
    }
    int64_t divisor = td_tandem_saturate(room);
    return least(row->coupling.in_template,
                 td_tandem_ceil_quotient(threshold * row->coupling.beside, divisor));
}

/* Where replicas cannot follow: the size at which the HPA is content. It is given once the HPA
 * would go out if it could, and not taken back before. */
static int64_t floor_of_size(const struct td_tandem_input *in, const struct td_tandem_row *row)
{
    bool is_stage = tandem_grows_by_size_only(in);
    if (limit_percent(in, row) == 0 || !(is_stage || is_at_end(in))) {
        return 0;
    }
    int64_t content = content_size(row);
    content = is_stage ? content : least(row->coupling.in_template, content);
    bool is_due =
        (td_wide)content * PERCENT > (td_wide)row->request * (PERCENT + TOLERANCE_PERCENT);
    return is_due ? content : least(content, row->request);
}

int64_t td_tandem_floor_of(const struct td_tandem_input *in, const struct td_tandem_row *row)
{
    const struct td_tandem_coupling *coupling = &row->coupling;
    bool is_by_reference = in->hvpa->coupling == TD_HVPA_REFERENCE && coupling->reference > 0;
    if (coupling->in_template == 0 || !(coupling->is_coupled || is_by_reference)) {
        return 0;
    }
    int64_t floor = is_by_reference ? floor_of_reference(in, row)
                                    : most(floor_of_reach(in, row), floor_of_size(in, row));
    return can_grow(in->hvpa) ? floor : most(floor, coupling->in_template);
}

struct td_tandem_bound td_tandem_ceiling_of(const struct td_tandem_input *in,
                                            const struct td_tandem_row *row)
{
    const struct td_tandem_coupling *coupling = &row->coupling;
    bool is_by_reference = in->hvpa->coupling == TD_HVPA_REFERENCE && coupling->reference > 0;
    if (!row->is_requests_only || !row->limit.is_set || !coupling->is_coupled || is_by_reference ||
        coupling->in_template == 0) {
        return (struct td_tandem_bound){.is_set = false};
    }
    td_wide threshold = (td_wide)coupling->utilization * (PERCENT + headroom_of(row));
    td_wide together = (td_wide)row->limit.amount * PERCENT * PERCENT / threshold;
    return (struct td_tandem_bound){
        .is_set = true,
        .amount = most(coupling->in_template, td_tandem_saturate(together - coupling->beside))};
}
