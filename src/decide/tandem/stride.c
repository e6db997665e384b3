/*
 * A tolerance (vertical.tolerancePercent, usually 10 %) is what a wish has to exceed. A step that
 * only just exceeds it is followed by the next as long as the load or a leak goes on: from 250Mi to
 * 4Gi there are 29 steps of a tenth, and 15 of a fifth. Two tolerances up from where one was
 * exceeded end less than one above the target, where no decrease is due. Downwards the same: a
 * request that the HPA measures shrinks once it is two tolerances above its target, three within an
 * hour of a change of replicas, and stops half a tolerance above it.
 *
 * In RatioBased replicas and size share a growth, and most shares of size are short. Under
 * Reconcile replicas can do what size does, so a share is made only where it is worth a
 * disturbance:
 *
 * 1. Few replicas, of which one more would be three tolerances or more of the whole: a share of one
 *    tolerance. With more replicas, or where the limit hides how much is wanted: of four.
 * 2. Otherwise replicas carry all of it, as many as bring use within the HPA's tolerance.
 * 3. But few replicas whose size is behind the line that both would be on by their ratio, from
 *    minReplicas of the template on: size alone grows by a stride, where that is enough.
 * 4. Where the HPA is content, what it measures asks for nothing: a wish for more that comes from
 * it is of pods that are not ready yet, or within its tolerance. The VPA's own is carried out.
 */
#include "decide/tandem/amount.h"
#include "decide/tandem/coupling.h"
#include "decide/tandem/floor.h"
#include "decide/tandem/gates.h"
#include "decide/tandem/work.h"

#define PERCENT 100
#define MEBIBYTE (INT64_C(1) << 20)

/* In tolerances: */
#define STRIDE 2      /* a step of a request, up or down */
#define FAR 3         /* so far above its target a request shrinks whatever else holds it */
#define BESIDE_MANY 4 /* a step up beside replicas, of which one more is little */
#define COARSE 3      /* one more replica is little up to this much of all */

#define RECENT_SECONDS 3600
#define HIDDEN_PERCENT 95 /* of its limit: what a container wants beyond is not seen */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool tandem_is_measured(const struct td_hvpa *hvpa, const struct td_tandem_row *row)
{
    if (row->coupling.is_coupled || (hvpa->hpa.metric_count == 0 && row->resource == TD_HVPA_CPU)) {
        return true;
    }
    for (size_t i = 0; i < hvpa->hpa.metric_count; i++) {
        const struct td_hpa_metric *metric = &hvpa->hpa.metrics[i];
        bool is_of_use =
            metric->type == TD_HPA_RESOURCE || metric->type == TD_HPA_CONTAINER_RESOURCE;
        bool is_here = metric->type != TD_HPA_CONTAINER_RESOURCE ||
                       td_tandem_is_pod(row->container) ||
                       td_str_equal(metric->container, row->container);
        /* What else is measured stands for the load, which the use of cpu follows. */
        if (is_of_use ? is_here && td_str_equal(metric->name, td_hvpa_resource_name(row->resource))
                      : row->resource == TD_HVPA_CPU) {
            return true;
        }
    }
    return false;
}

/* Two tolerances more, if that is not too much. */
static int64_t longer_step(const struct tandem_work *work, size_t index)
{
    const struct td_tandem_row *row = &work->in->rows[index];
    const struct td_tandem_outcome *outcome = &work->outcomes[index];
    int64_t tolerance = work->hvpa->tolerance_percent;
    int64_t longer =
        td_tandem_saturate((td_wide)row->request * (PERCENT + STRIDE * tolerance) / PERCENT);
    int64_t most = td_tandem_saturate((td_wide)outcome->target * (PERCENT + tolerance) / PERCENT);
    most = row->upper.is_set ? least(most, row->upper.amount) : most;
    most = outcome->most.is_set ? least(most, outcome->most.amount) : most;
    longer = least(longer, most);
    return longer - (row->resource == TD_HVPA_MEMORY ? longer % MEBIBYTE : 0);
}

bool tandem_is_long(const struct tandem_work *work, size_t index, int64_t to, int32_t tolerances)
{
    const struct td_tandem_row *row = &work->in->rows[index];
    bool is_up = to > row->request;
    td_wide change = is_up ? (td_wide)to - row->request : (td_wide)row->request - to;
    const struct td_hvpa_change *least_change =
        is_up ? &work->hvpa->vertical_up.min_change[row->resource]
              : &work->hvpa->vertical_down.min_change[row->resource];
    if (td_tandem_is_change_set(least_change)) {
        return td_tandem_reaches(least_change, td_tandem_saturate(change), row->request);
    }
    td_wide smaller = is_up ? row->request : to;
    return change * PERCENT >= smaller * tolerances * work->hvpa->tolerance_percent;
}

/* Half a tolerance above the target, where a row that the HPA measures stops to shrink: the next
 * step of replicas or size is then not at hand. At minAllowed where the target is. */
static int64_t least_left(const struct tandem_work *work, size_t index)
{
    const struct td_tandem_row *row = &work->in->rows[index];
    int64_t target = work->outcomes[index].target;
    if (row->min_allowed.is_set && target <= row->min_allowed.amount) {
        return least(row->request, target); /* it tells nothing of use, which is below it */
    }
    int64_t left = td_tandem_saturate(
        (td_wide)target * (2 * PERCENT + work->hvpa->tolerance_percent) / (2 * PERCENT));
    left = row->upper.is_set ? least(left, row->upper.amount) : left;
    return least(row->request, most_of(left, target));
}

/* A row that is the VPA's alone does not go along with others by less than a tolerance, at least
 * not down: that would undo the stride by which it grew. */
void tandem_lengthen(struct tandem_work *work)
{
    bool is_ratio = work->hvpa->mode == TD_HVPA_RATIO_BASED;
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        bool is_alone = !tandem_is_measured(work->hvpa, row);
        bool is_long = is_alone || (is_ratio && outcome->is_coupling_raised);
        if (is_alone && !outcome->is_significant && (is_ratio || outcome->request < row->request)) {
            outcome->request = row->request;
        }
        if (is_ratio && work->hvpa->coupling == TD_HVPA_RECONCILE && row->coupling.is_coupled &&
            outcome->request < row->request) {
            outcome->request = most_of(outcome->request, least_left(work, i));
        }
        if (is_long && row->request > 0 && outcome->request == outcome->target &&
            outcome->target > row->request && outcome->is_significant && !outcome->is_kept) {
            outcome->request = most_of(outcome->target, longer_step(work, i));
        }
    }
}

static bool is_growing(const struct tandem_work *work, size_t i)
{
    return work->outcomes[i].target > work->in->rows[i].request;
}

/* Does the row share its growth with replicas, by which the HPA's metric is served as well? */
static bool is_shared(const struct tandem_work *work, size_t i)
{
    double exponent = work->outcomes[i].exponent;
    return is_growing(work, i) && exponent > 0 && exponent < 1;
}

/* The container starves, or has far too much: that is not weighed. What replicas can serve as well
 * is not starvation. */
static bool is_pressing(const struct tandem_work *work, size_t i)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    bool is_served = row->coupling.is_coupled && is_shared(work, i);
    return is_served ? row->request == 0 || row->request < work->outcomes[i].floor ||
                           (row->lower.is_set && row->request < row->lower.amount)
                     : tandem_is_breached(work, i);
}

/* More is wished for because of what the HPA measured, and the HPA does not: it is near enough, or
 * the pods that it asked for are not ready yet. */
static bool is_answered(const struct tandem_work *work, size_t i)
{
    return work->in->is_horizontal_valid && work->decision->desired_replicas <= work->current &&
           work->outcomes[i].is_coupling_raised && is_shared(work, i);
}

/* One more replica is a large step of the whole. */
static bool is_coarse(const struct tandem_work *work)
{
    return (td_wide)work->current * COARSE * work->hvpa->tolerance_percent < PERCENT;
}

/* The limit hides how much more is wanted. */
static bool is_hidden(const struct td_tandem_row *row)
{
    return row->limit.is_set && row->coupling.usage.is_set &&
           (td_wide)row->coupling.usage.amount * PERCENT >=
               (td_wide)row->limit.amount * HIDDEN_PERCENT;
}

/* Replicas moved within the hour: a size that they had to help is hardly too large. */
static bool has_moved(const struct tandem_work *work)
{
    const struct td_tandem_time *last =
        work->in->last_horizontal.is_set ? &work->in->last_horizontal : &work->in->first_seen;
    return last->is_set && !td_tandem_has_passed(last->at, work->in->now, RECENT_SECONDS);
}

/* How long a step of a row that the HPA measures has to be. */
static int32_t least_step(const struct tandem_work *work, size_t i)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    if (work->outcomes[i].request < row->request) {
        return has_moved(work) ? FAR : STRIDE;
    }
    return is_shared(work, i) && (!is_coarse(work) || is_hidden(row)) ? BESIDE_MANY : 1;
}

/* Is the step that was decided for the row worth a disturbance? */
static bool is_worth_it(const struct tandem_work *work, size_t i)
{
    const struct td_tandem_row *row = &work->in->rows[i];
    int64_t to = work->outcomes[i].request;
    int32_t tolerances = row->coupling.is_coupled ? least_step(work, i) : 1;
    if (!tandem_is_measured(work->hvpa, row)) {
        return to != row->request && work->outcomes[i].is_significant;
    }
    /* Replicas share a decrease too: how far the request is above its target tells what it is
     * worth. */
    int64_t judged = to < row->request ? work->outcomes[i].target : to;
    return to != row->request &&
           (tandem_is_emergency(work, i) || is_pressing(work, i) ||
            (!is_answered(work, i) && tandem_is_long(work, i, judged, tolerances)));
}

/* Can size alone carry the growth, and better than one more replica? */
static bool can_leap(const struct tandem_work *work, double line)
{
    int32_t tolerance = work->hvpa->tolerance_percent;
    bool is_asked = work->decision->desired_replicas > work->current;
    bool has_any = false;
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        const struct td_tandem_outcome *outcome = &work->outcomes[i];
        if (!row->coupling.is_coupled || !is_shared(work, i) || !outcome->is_significant) {
            continue;
        }
        bool is_modest = (td_wide)outcome->target * PERCENT <=
                         (td_wide)row->request * (PERCENT + STRIDE * tolerance);
        bool is_its_own = !is_asked && !outcome->is_coupling_raised;
        int64_t from =
            most_of(row->coupling.in_template, row->target); /* either may be too small */
        bool is_behind = (double)row->request < (double)from * line;
        has_any = true;
        if (!tandem_is_long(work, i, longer_step(work, i), 1) ||
            !(is_its_own || (is_asked && is_coarse(work) && is_modest && is_behind))) {
            return false;
        }
    }
    return has_any;
}

static void hold_step(struct tandem_work *work, size_t i, bool is_carried)
{
    struct td_tandem_outcome *outcome = &work->outcomes[i];
    int64_t request = work->in->rows[i].request;
    if (outcome->request != request && outcome->is_significant && !is_carried) {
        outcome->block = TD_TANDEM_BLOCK_SMALL_STEP;
    }
    outcome->request = request;
}

/* What grows is taken along with another step, what shrinks is not: it would have to grow again. */
static void hold_short_steps(struct tandem_work *work)
{
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        bool is_less = work->outcomes[i].request < row->request && !is_worth_it(work, i);
        if (row->coupling.is_coupled && (is_less || is_answered(work, i))) {
            hold_step(work, i, false);
        }
    }
}

int32_t tandem_enough_replicas(const struct tandem_work *work)
{
    int64_t enough = 0;
    bool is_known = false;
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        const struct td_tandem_coupling *coupling = &row->coupling;
        if (!coupling->is_coupled) {
            continue;
        }
        if (!coupling->usage.is_set || is_hidden(row) || row->request == 0) {
            return work->desired;
        }
        is_known = true;
        td_wide needed = (td_wide)work->current * coupling->usage.amount * PERCENT * PERCENT;
        td_wide of_each =
            (td_wide)row->request * (PERCENT + td_tandem_tolerance_of(row)) * coupling->utilization;
        int64_t replicas = td_tandem_ceil_quotient(needed, td_tandem_saturate(of_each));
        enough = replicas > enough ? replicas : enough;
    }
    enough = enough > work->current ? enough : work->current + 1;
    return is_known && enough < work->desired ? (int32_t)enough : work->desired;
}

/* Beyond a wish of the VPA's own, which replicas do not follow, there is nothing to gain. */
static void leap(struct tandem_work *work, size_t i)
{
    struct td_tandem_outcome *outcome = &work->outcomes[i];
    int64_t longer = longer_step(work, i);
    longer = outcome->is_coupling_raised ? longer : least(longer, outcome->target);
    outcome->request = most_of(outcome->request, longer);
    outcome->exponent = 1;
}

/* What shrinks alone does so by strides as well. */
static void shrink_by_strides(struct tandem_work *work)
{
    int64_t tolerance = work->hvpa->tolerance_percent;
    for (size_t i = 0; i < work->in->row_count; i++) {
        const struct td_tandem_row *row = &work->in->rows[i];
        struct td_tandem_outcome *outcome = &work->outcomes[i];
        if (!row->coupling.is_coupled || outcome->request >= row->request) {
            continue;
        }
        td_wide shorter = (td_wide)row->request * PERCENT / (PERCENT + STRIDE * tolerance);
        if (work->decision->replicas == work->current && !has_moved(work) &&
            shorter < outcome->request && tandem_is_long(work, i, outcome->target, FAR)) {
            outcome->request = td_tandem_saturate(shorter);
        }
    }
}

enum td_tandem_carrier tandem_choose_carrier(struct tandem_work *work, double line)
{
    bool is_out = work->desired > work->current;
    bool has_coupled = false;
    bool is_worth = false;
    if (work->hvpa->coupling != TD_HVPA_RECONCILE) {
        return TD_TANDEM_CARRIED_BY_BOTH;
    }
    shrink_by_strides(work);
    for (size_t i = 0; i < work->in->row_count; i++) {
        has_coupled = has_coupled || work->in->rows[i].coupling.is_coupled;
        is_worth = is_worth || is_worth_it(work, i);
    }
    if (is_worth) {
        hold_short_steps(work);
        return TD_TANDEM_CARRIED_BY_BOTH;
    }
    bool is_leap = can_leap(work, line);
    for (size_t i = 0; i < work->in->row_count; i++) {
        if (is_leap && is_shared(work, i) && work->in->rows[i].coupling.is_coupled) {
            leap(work, i);
        } else if (work->in->rows[i].coupling.is_coupled) {
            hold_step(work, i, is_out && is_growing(work, i));
        }
    }
    if (!is_out || !has_coupled) {
        return TD_TANDEM_CARRIED_BY_BOTH;
    }
    return is_leap ? TD_TANDEM_CARRIED_BY_SIZE : TD_TANDEM_CARRIED_BY_REPLICAS;
}
