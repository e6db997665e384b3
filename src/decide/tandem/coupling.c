/* A row is coupled when a metric with a utilisation target covers it and the vpaSpec controls it;
 * of several such metrics the one with the smallest target counts. */
#include "decide/tandem/coupling.h"

#include "base/assert.h"
#include "decide/tandem/amount.h"
#include "decide/tandem/floor.h"

#define GAIN_LOW 0.9      /* below it the HPA would leave its tolerance */
#define CPU_SCALE (-5)    /* percent of milli-cores */
#define MEMORY_SCALE (-2) /* percent of bytes */

bool td_tandem_is_pod(td_str container)
{
    static const td_str pod = TD_TANDEM_POD;
    return td_str_equal(container, pod);
}

static bool pod_is_controlled(const struct td_pod_policy *policy, td_str resource)
{
    for (size_t i = 0; i < policy->controlled_resource_count; i++) {
        if (td_str_equal(policy->controlled_resources[i], resource)) {
            return true;
        }
    }
    return !policy->has_controlled_resources;
}

bool td_tandem_controls(const struct td_hvpa *hvpa, td_str container,
                        enum td_hvpa_resource resource)
{
    if (!hvpa->has_vpa) {
        return false;
    }
    if (td_tandem_is_pod(container)) {
        return pod_is_controlled(&hvpa->vpa.policy.pod, td_hvpa_resource_name(resource));
    }
    const struct td_container_policy *policy =
        td_vpa_container_policy(&hvpa->vpa.policy, container);
    return !(policy && policy->is_off) && td_vpa_controls(policy, td_hvpa_resource_name(resource));
}

bool td_tandem_is_measured_by(const struct td_hpa_metric *metric, td_str container,
                              enum td_hvpa_resource resource)
{
    bool is_of_container =
        metric->type == TD_HPA_CONTAINER_RESOURCE && td_str_equal(metric->container, container);
    return (metric->type == TD_HPA_RESOURCE || is_of_container) &&
           td_str_equal(metric->name, td_hvpa_resource_name(resource)) &&
           metric->target.type == TD_HPA_UTILIZATION && metric->target.has_average_utilization &&
           metric->target.average_utilization > 0;
}

static struct td_tandem_coupling coupling_of(const struct td_hvpa *hvpa, td_str container,
                                             enum td_hvpa_resource resource, bool is_beside_pod)
{
    struct td_tandem_coupling coupling = {.is_coupled = false};
    if (!td_hvpa_scales_horizontally(hvpa) || !td_tandem_controls(hvpa, container, resource)) {
        return coupling;
    }
    for (size_t i = 0; i < hvpa->hpa.metric_count; i++) {
        const struct td_hpa_metric *metric = &hvpa->hpa.metrics[i];
        int32_t percent = metric->target.average_utilization;
        bool is_elsewhere = is_beside_pod && metric->type == TD_HPA_RESOURCE;
        if (td_tandem_is_measured_by(metric, container, resource) && !is_elsewhere &&
            (!coupling.is_coupled || percent < coupling.utilization)) {
            coupling.is_coupled = true;
            coupling.utilization = percent;
        }
    }
    return coupling;
}

struct td_tandem_coupling td_tandem_coupling_of(const struct td_hvpa *hvpa, td_str container,
                                                enum td_hvpa_resource resource)
{
    return coupling_of(hvpa, container, resource, false);
}

struct td_tandem_coupling td_tandem_coupling_beside_pod(const struct td_hvpa *hvpa,
                                                        td_str container,
                                                        enum td_hvpa_resource resource)
{
    return coupling_of(hvpa, container, resource, true);
}

static int64_t cap_by_policy(const struct td_tandem_row *row, int64_t target)
{
    if (row->min_allowed.is_set && target < row->min_allowed.amount) {
        target = row->min_allowed.amount;
    }
    if (row->max_allowed.is_set && target > row->max_allowed.amount) {
        target = row->max_allowed.amount;
    }
    return target;
}

/* The size below which the HPA would ask for replicas because the pods became smaller. Without a
 * measurement it is the present one: never shrink blind. */
static int64_t content_size(const struct td_tandem_row *row)
{
    const struct td_tandem_coupling *coupling = &row->coupling;
    if (!coupling->usage.is_set) {
        return row->request;
    }
    td_assert(coupling->utilization > 0);
    return td_tandem_ceil_quotient((td_wide)coupling->usage.amount * 100, coupling->utilization);
}

/* The wish without floor and ceiling. */
static struct td_tandem_wish coupled_wish(const struct td_hvpa *hvpa,
                                          const struct td_tandem_row *row)
{
    struct td_tandem_wish wish = {
        .policy_target = cap_by_policy(row, row->target),
        .uncapped = row->uncapped,
    };
    if (row->coupling.is_coupled && hvpa->coupling == TD_HVPA_RECONCILE) {
        int64_t size = content_size(row);
        int64_t raised = cap_by_policy(row, size > wish.policy_target ? size : wish.policy_target);
        wish.is_raised = raised > wish.policy_target;
        wish.policy_target = raised;
        wish.uncapped = size > row->uncapped ? size : row->uncapped;
    }
    wish.target = td_tandem_cap_by_limit(row, wish.policy_target);
    return wish;
}

static struct td_tandem_bound lower_of(struct td_tandem_bound a, struct td_tandem_bound b)
{
    return !a.is_set || (b.is_set && b.amount < a.amount) ? b : a;
}

/* The most that the row may ever ask for: by its policy, and by a limit that stays as it is. */
static struct td_tandem_bound most_of(const struct td_tandem_input *in,
                                      const struct td_tandem_row *row)
{
    struct td_tandem_bound fixed = {.is_set = row->is_requests_only && row->limit.is_set,
                                    .amount = row->limit.amount};
    return lower_of(lower_of(row->max_allowed, fixed), td_tandem_ceiling_of(in, row));
}

struct td_tandem_wish td_tandem_wish_of(const struct td_tandem_input *in,
                                        const struct td_tandem_row *row)
{
    struct td_tandem_wish wish = coupled_wish(in->hvpa, row);
    struct td_tandem_bound ceiling = td_tandem_ceiling_of(in, row);
    int64_t floor = td_tandem_floor_of(in, row);
    int64_t capped = cap_by_policy(row, floor);
    wish.most = most_of(in, row);
    if (ceiling.is_set && wish.policy_target > ceiling.amount) {
        wish.policy_target = cap_by_policy(row, ceiling.amount);
    }
    if (floor > 0 && capped > wish.policy_target) {
        wish.policy_target = capped;
        wish.is_kept = true;
        wish.is_raised = false;
    }
    wish.uncapped = floor > wish.uncapped ? floor : wish.uncapped;
    wish.target = td_tandem_cap_by_limit(row, wish.policy_target);
    wish.floor = floor > 0 ? td_tandem_cap_by_limit(row, capped) : 0;
    return wish;
}

bool td_tandem_gain(const struct td_tandem_row *row, int64_t target, double *ret)
{
    const struct td_tandem_coupling *coupling = &row->coupling;
    if (!coupling->is_coupled || !coupling->usage.is_set || target == 0) {
        return false;
    }
    *ret = (double)coupling->usage.amount * 100 / ((double)coupling->utilization * (double)target);
    return true;
}

int64_t td_tandem_measured_against(const struct td_hvpa *hvpa,
                                   const struct td_tandem_request *request)
{
    bool is_reference = hvpa->coupling == TD_HVPA_REFERENCE && request->in_template != 0;
    return is_reference ? request->in_template : request->live;
}

/* Does a metric of whole pods measure this resource by another of the requests: the pod's own? */
static bool is_measured_by_pod(const struct td_hvpa *hvpa, const struct td_hpa_metric *metric,
                               const struct td_tandem_request *request,
                               const struct td_tandem_request *requests, size_t count)
{
    for (size_t i = 0; i < count && metric->type == TD_HPA_RESOURCE; i++) {
        if (td_tandem_is_pod(requests[i].container) && requests[i].resource == request->resource &&
            td_tandem_measured_against(hvpa, &requests[i]) != 0) {
            return !td_tandem_is_pod(request->container);
        }
    }
    return false;
}

bool td_tandem_average_value(const struct td_hvpa *hvpa, size_t metric_index,
                             const struct td_tandem_request *requests, size_t count,
                             struct td_quantity *ret)
{
    td_assert(metric_index < hvpa->hpa.metric_count);
    const struct td_hpa_metric *metric = &hvpa->hpa.metrics[metric_index];
    if (hvpa->coupling != TD_HVPA_REFERENCE) {
        return false;
    }
    td_wide sum = 0;
    bool is_coupled = false;
    enum td_hvpa_resource resource = TD_HVPA_CPU;
    for (size_t i = 0; i < count; i++) {
        if (td_tandem_is_measured_by(metric, requests[i].container, requests[i].resource) &&
            !is_measured_by_pod(hvpa, metric, &requests[i], requests, count)) {
            resource = requests[i].resource;
            is_coupled = is_coupled ||
                         td_tandem_coupling_of(hvpa, requests[i].container, resource).is_coupled;
            sum += td_tandem_measured_against(hvpa, &requests[i]);
        }
    }
    if (!is_coupled) {
        return false;
    }
    int64_t amount = td_tandem_saturate(sum * metric->target.average_utilization);
    *ret = td_quantity_new_scaled(amount, resource == TD_HVPA_CPU ? CPU_SCALE : MEMORY_SCALE);
    return true;
}

/* How far a gain is from 1, whichever way it drives. */
static double gain_strength(double gain)
{
    return gain > 1 ? gain : 1 / gain;
}

struct td_tandem_coupled_condition td_tandem_coupled_of(const struct td_hvpa *hvpa,
                                                        const struct td_tandem_row *rows,
                                                        const int64_t *in_template, size_t count)
{
    struct td_tandem_coupled_condition condition = {.reason = TD_TANDEM_COUPLED_FALSE};
    for (size_t i = 0; i < count; i++) {
        double gain = 0;
        bool has_gain =
            td_tandem_gain(&rows[i], coupled_wish(hvpa, &rows[i]).target, &gain) && gain > 0;
        enum td_tandem_coupled reason = TD_TANDEM_COUPLED_FALSE;
        if (!rows[i].coupling.is_coupled) {
            continue;
        }
        if (hvpa->coupling == TD_HVPA_COUPLING_NONE) {
            reason = TD_TANDEM_COUPLED_LOOP_POSSIBLE;
        } else if (hvpa->coupling == TD_HVPA_REFERENCE && in_template[i] == 0) {
            reason = TD_TANDEM_COUPLED_NO_REFERENCE;
        } else if (hvpa->coupling == TD_HVPA_RECONCILE && has_gain && gain < GAIN_LOW) {
            reason = TD_TANDEM_COUPLED_HEADROOM_CONFLICT;
        }
        bool is_first = condition.reason == TD_TANDEM_COUPLED_FALSE;
        bool is_farther = has_gain && (!condition.has_gain ||
                                       gain_strength(gain) > gain_strength(condition.gain));
        if (reason != TD_TANDEM_COUPLED_FALSE && (is_first || is_farther)) {
            condition = (struct td_tandem_coupled_condition){
                .reason = reason, .row = i, .has_gain = has_gain, .gain = gain};
        }
    }
    return condition;
}

td_str td_tandem_coupled_name(enum td_tandem_coupled reason)
{
    static const td_str names[] = {
        [TD_TANDEM_COUPLED_FALSE] = TD_STR_INIT(""),
        [TD_TANDEM_COUPLED_LOOP_POSSIBLE] = TD_STR_INIT("LoopPossible"),
        [TD_TANDEM_COUPLED_NO_REFERENCE] = TD_STR_INIT("NoReference"),
        [TD_TANDEM_COUPLED_HEADROOM_CONFLICT] = TD_STR_INIT("HeadroomConflict"),
    };
    td_assert(reason <= TD_TANDEM_COUPLED_HEADROOM_CONFLICT);
    return names[reason];
}
