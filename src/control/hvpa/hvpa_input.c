/*
 * From what was seen to the rows of the decision: one a container and resource that the vpaSpec
 * controls, with its request, what is recommended, its bounds, and whether it ran out of memory.
 *
 * The request of a row is what was last applied by us; before that, or while the Hvpa is paused, it
 * is what the newest pod runs with. Pods that differ from it are brought to it
 * (decide/tandem/progress.h).
 */
#include "base/error.h"
#include "control/hvpa/hvpa_private.h"
#include "control/recommender/recommend_loop.h"
#include "decide/horizontal/replicas.h"
#include "decide/tandem/floor.h"
#include "decide/vertical/estimator/decaying.h"
#include "decide/vertical/recommender/account.h"
#include "decide/vertical/recommender/recommender.h"

#define FOREIGN_AFTER_SECONDS 5 /* our own write of a template is seen again within */

/* ---- What was decided before ---- */

bool hvpa_input_decided(const struct td_hvpa_status *status)
{
    const struct td_vpa_condition *ready =
        td_vpa_condition_find(status->conditions, status->condition_count, TD_STR("Ready"));
    bool was_paused = ready && td_str_equal(ready->reason, TD_STR("Paused"));
    return status->has_vertical_time && status->decision.is_set && !was_paused;
}

static struct td_hvpa_requests template_requests(struct hvpa_reconcile *run)
{
    struct td_hvpa_requests made = {.count = 0};
    for (size_t i = 0; i < run->seen.template_count; i++) {
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            const struct td_quantity *quantity = td_resource_list_get(
                &run->seen.template[i].requests, td_hvpa_resource_name(resource));
            if (quantity) {
                td_tandem_request_put(&run->arena, &made, run->seen.template[i].name, resource,
                                      quantity);
            }
        }
    }
    return made;
}

/* Another writer changed the template that we write: its requests are the reference from now on.
 */
static bool template_is_foreign(const struct hvpa_reconcile *run,
                                const struct td_hvpa_requests *now)
{
    for (size_t i = 0; i < run->decided.requests.count; i++) {
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            td_str container = run->decided.requests.items[i].container;
            const struct td_quantity *ours =
                td_tandem_request_of(&run->decided.requests, container, resource);
            const struct td_quantity *theirs = td_tandem_request_of(now, container, resource);
            if (ours &&
                td_tandem_amount_of(resource, ours) != td_tandem_amount_of(resource, theirs)) {
                return true;
            }
        }
    }
    return false;
}

static void recall_template(struct hvpa_reconcile *run)
{
    const struct td_hvpa_status *status = &run->hvpa.status;
    if (run->hvpa.actuation != TD_HVPA_ACTUATE_TEMPLATE || run->seen.template_count == 0) {
        return;
    }
    struct td_hvpa_requests now = template_requests(run);
    bool is_young =
        status->has_vertical_time &&
        !td_tandem_has_passed(status->vertical_time, run->instant, FOREIGN_AFTER_SECONDS);
    run->decided.reference = status->reference_requests;
    if (run->decided.reference.count == 0 || (!is_young && template_is_foreign(run, &now))) {
        run->decided.reference = now;
        run->decided.origin = (struct td_hvpa_origin){.requests = {.count = 0}};
        run->decided.requests = (struct td_hvpa_requests){.count = 0};
        run->decided.limits = (struct td_hvpa_requests){.count = 0};
    }
}

void hvpa_input_recall(struct hvpa_reconcile *run)
{
    const struct td_hvpa_status *status = &run->hvpa.status;
    if (!run->hvpa.paused && hvpa_input_decided(status)) {
        run->decided.requests = status->decision.requests;
        run->decided.limits = status->decision.limits;
    }
    run->decided.origin = status->origin;
    recall_template(run);
}

/* ---- The vertical verdict ---- */

void hvpa_input_judge(struct hvpa_reconcile *run, const struct td_vpa_condition *conditions,
                      size_t count)
{
    run->seen.vertical_reason =
        td_tandem_vertical_problem(&run->seen.recommendation, conditions, count);
    run->decided.input.is_vertical_valid = run->seen.vertical_reason.len == 0;
}

void hvpa_input_vertical(struct hvpa_reconcile *run)
{
    struct td_recommend_loop *recommend = run->loop->options.recommend;
    struct td_vpa_status status;
    struct td_error err = TD_ERROR_INIT;
    run->seen.recommendation = (struct td_recommendation){.container_count = 0};
    run->decided.input.is_vertical_valid = false;
    run->seen.learnt_since = TD_TIME_NONE;
    if (!run->hvpa.has_vpa) {
        run->seen.vertical_reason = TD_STR("NoVpaSpec");
        return;
    }
    if (run->hvpa.sources == TD_HVPA_OBJECTS) {
        hvpa_children_vertical(run);
        return;
    }
    if (!recommend) {
        run->seen.vertical_reason = TD_STR("no recommender runs in this process");
        return;
    }
    if (td_recommend_loop_hvpa(recommend, &run->arena, &run->hvpa, &status, &err) != TD_OK) {
        run->seen.vertical_reason = td_arena_copy_str(&run->arena, td_str_from(err.message));
        return;
    }
    run->seen.recommendation = status.recommendation;
    run->seen.accounts = status.accounts;
    run->seen.account_count = status.accounts ? status.recommendation.container_count : 0;
    hvpa_input_judge(run, status.conditions, status.condition_count);
}

/* ---- Rows ---- */

static struct td_tandem_bound row_bound(enum td_hvpa_resource resource,
                                        const struct td_resource_list *list)
{
    const struct td_quantity *quantity =
        td_resource_list_get(list, td_hvpa_resource_name(resource));
    return (struct td_tandem_bound){.is_set = quantity != NULL,
                                    .amount = td_tandem_amount_of(resource, quantity)};
}

static const struct hvpa_container *rows_template(const struct hvpa_reconcile *run,
                                                  td_str container)
{
    for (size_t i = 0; i < run->seen.template_count; i++) {
        if (td_str_equal(run->seen.template[i].name, container)) {
            return &run->seen.template[i];
        }
    }
    return NULL;
}

static const struct td_pod_container *rows_live(const struct hvpa_reconcile *run, td_str container)
{
    for (size_t i = 0; run->seen.newest && i < run->seen.newest->container_count; i++) {
        if (td_str_equal(run->seen.newest->containers[i].name, container)) {
            return &run->seen.newest->containers[i];
        }
    }
    return NULL;
}

static void row_sizes(const struct hvpa_reconcile *run, struct td_tandem_row *row)
{
    const struct td_pod_container *live = rows_live(run, row->container);
    const struct hvpa_container *template = rows_template(run, row->container);
    const struct td_resource_list none = {.count = 0};
    const struct td_quantity *decided =
        td_tandem_request_of(&run->decided.requests, row->container, row->resource);
    const struct td_quantity *limit =
        td_tandem_request_of(&run->decided.limits, row->container, row->resource);
    bool is_template = run->hvpa.actuation == TD_HVPA_ACTUATE_TEMPLATE && template;
    const struct td_resource_list *requests = live ? td_vertical_requests(live) : &none;
    const struct td_resource_list *limits = live ? td_vertical_limits(live) : &none;
    if (is_template || (!live && template)) {
        requests = &template->requests;
        limits = &template->limits;
    }
    row->request = decided ? td_tandem_amount_of(row->resource, decided)
                           : row_bound(row->resource, requests).amount;
    row->limit = limit
                     ? (struct td_tandem_bound){.is_set = true,
                                                .amount = td_tandem_amount_of(row->resource, limit)}
                     : row_bound(row->resource, limits);
}

/* In whose proportion the limit follows the request: the template's as its user wrote it. Where the
 * template has no limit (a LimitRange gave one) or is what we write, what was there at first is
 * kept in the status. */
static void row_origin(struct hvpa_reconcile *run, struct td_tandem_row *row)
{
    const struct hvpa_container *template = rows_template(run, row->container);
    bool is_written = run->hvpa.actuation == TD_HVPA_ACTUATE_TEMPLATE;
    struct td_tandem_pair *origin = &row->origin;
    if (template && !is_written) {
        origin->limit = row_bound(row->resource, &template->limits).amount;
        int64_t request = row_bound(row->resource, &template->requests).amount;
        origin->request = request > 0 ? request : origin->limit; /* as the API server has it */
    }
    if (origin->limit > 0) {
        return;
    }
    const struct td_quantity *limit =
        td_tandem_request_of(&run->decided.origin.limits, row->container, row->resource);
    const struct td_quantity *request =
        td_tandem_request_of(&run->decided.origin.requests, row->container, row->resource);
    if (limit && request) {
        *origin = (struct td_tandem_pair){.request = td_tandem_amount_of(row->resource, request),
                                          .limit = td_tandem_amount_of(row->resource, limit)};
    } else if (row->limit.is_set && row->limit.amount > 0 && row->request > 0) {
        struct td_quantity at = td_tandem_quantity_of(row->resource, row->limit.amount);
        td_tandem_request_put(&run->arena, &run->decided.origin.limits, row->container,
                              row->resource, &at);
        at = td_tandem_quantity_of(row->resource, row->request);
        td_tandem_request_put(&run->arena, &run->decided.origin.requests, row->container,
                              row->resource, &at);
        *origin = (struct td_tandem_pair){.request = row->request, .limit = row->limit.amount};
    }
}

/* Does the container, or the pod under its own name, ask for the resource? */
static bool rows_is_requested(const struct hvpa_reconcile *run, td_str container,
                              enum td_hvpa_resource resource)
{
    td_str name = td_hvpa_resource_name(resource);
    const struct td_pod_container *live = rows_live(run, container);
    const struct hvpa_container *template = rows_template(run, container);
    return (live && td_resource_list_get(td_vertical_requests(live), name)) ||
           (!live && template && td_resource_list_get(&template->requests, name)) ||
           td_tandem_request_of(&run->decided.requests, container, resource);
}

/* In pods with resources of their own only what is asked for is changed, as by a VPA. */
static bool rows_is_wanted(const struct hvpa_reconcile *run, td_str container,
                           enum td_hvpa_resource resource)
{
    bool is_known = rows_live(run, container) || rows_template(run, container);
    bool has_whole = rows_live(run, hvpa_pod_name) || rows_template(run, hvpa_pod_name);
    return is_known && td_tandem_controls(&run->hvpa, container, resource) &&
           (!has_whole || rows_is_requested(run, container, resource));
}

static void row_policy(const struct hvpa_reconcile *run, struct td_tandem_row *row)
{
    const struct td_resource_policy *all = &run->hvpa.vpa.policy;
    const struct td_container_policy *policy =
        td_tandem_is_pod(row->container) ? NULL : td_vpa_container_policy(all, row->container);
    if (td_tandem_is_pod(row->container)) {
        row->min_allowed = row_bound(row->resource, &all->pod.min_allowed);
        row->max_allowed = row_bound(row->resource, &all->pod.max_allowed);
        row->is_requests_only = all->pod.is_requests_only;
    } else if (policy) {
        row->min_allowed = row_bound(row->resource, &policy->min_allowed);
        row->max_allowed = row_bound(row->resource, &policy->max_allowed);
        row->is_requests_only = policy->is_requests_only;
    }
}

/* What a pod uses is what its containers use. */
static bool row_usage(const struct hvpa_reconcile *run, const struct td_horizontal_result *result,
                      const struct td_tandem_row *row, int64_t *ret)
{
    td_str name = td_hvpa_resource_name(row->resource);
    if (!td_tandem_is_pod(row->container)) {
        return td_horizontal_usage(result, row->container, name, ret);
    }
    int64_t sum = 0;
    for (size_t i = 0; i < run->seen.template_count; i++) {
        int64_t amount = 0;
        if (td_tandem_is_pod(run->seen.template[i].name)) {
            continue;
        }
        if (!td_horizontal_usage(result, run->seen.template[i].name, name, &amount)) {
            return false;
        }
        sum = amount > INT64_MAX - sum ? INT64_MAX : sum + amount;
    }
    *ret = sum;
    return true;
}

static void row_couple(const struct hvpa_reconcile *run, const struct td_horizontal_result *result,
                       struct td_tandem_row *row)
{
    bool is_beside =
        !td_tandem_is_pod(row->container) && rows_is_requested(run, hvpa_pod_name, row->resource);
    row->coupling = is_beside
                        ? td_tandem_coupling_beside_pod(&run->hvpa, row->container, row->resource)
                        : td_tandem_coupling_of(&run->hvpa, row->container, row->resource);
    row->coupling.usage.is_set = result && row->coupling.is_coupled &&
                                 row_usage(run, result, row, &row->coupling.usage.amount);
}

static int64_t row_in_template(const struct hvpa_reconcile *run, td_str container,
                               enum td_hvpa_resource resource)
{
    const struct hvpa_container *template = rows_template(run, container);
    const struct td_quantity *reference =
        td_tandem_request_of(&run->decided.reference, container, resource);
    if (reference) {
        return td_tandem_amount_of(resource, reference);
    }
    return template ? row_bound(resource, &template->requests).amount : 0;
}

/* What a pod may use on average until the HPA wants more, by the metric that says so first: as it
 * is asked for (hvpa_view_hpa), where the template's requests are the measure. */
static int64_t row_reference(const struct hvpa_reconcile *run, const struct td_tandem_row *row)
{
    int64_t least = 0;
    for (size_t i = 0; i < run->hvpa.hpa.metric_count && run->hpa.metrics; i++) {
        const struct td_hpa_target *target = &run->hpa.metrics[i].target;
        if (target->type != TD_HPA_AVERAGE_VALUE ||
            !td_tandem_is_measured_by(&run->hvpa.hpa.metrics[i], row->container, row->resource)) {
            continue;
        }
        int64_t milli = target->average_value_milli;
        int64_t amount = row->resource == TD_HVPA_CPU ? milli : milli / 1000;
        least = least == 0 || amount < least ? amount : least;
    }
    return least;
}

/* What the other containers ask for, where a metric adds them all up. */
static int64_t row_beside(const struct hvpa_reconcile *run, const struct td_tandem_row *row)
{
    bool is_of_pods = false;
    int64_t sum = 0;
    for (size_t i = 0; i < run->hvpa.hpa.metric_count; i++) {
        const struct td_hpa_metric *metric = &run->hvpa.hpa.metrics[i];
        is_of_pods =
            is_of_pods || (metric->type == TD_HPA_RESOURCE &&
                           td_tandem_is_measured_by(metric, row->container, row->resource));
    }
    for (size_t i = 0; is_of_pods && i < run->seen.template_count; i++) {
        struct td_tandem_row other = {.container = run->seen.template[i].name,
                                      .resource = row->resource};
        row_sizes(run, &other);
        bool is_other = !td_str_equal(other.container, row->container) &&
                        !td_tandem_is_pod(other.container) && !td_tandem_is_pod(row->container);
        sum += is_other && other.request < INT64_MAX - sum ? other.request : 0;
    }
    return sum;
}

/* Was less than a day seen of the container, or of some container of the pod? */
static bool row_is_young(const struct hvpa_reconcile *run, const struct td_tandem_row *row)
{
    if (run->hvpa.sources == TD_HVPA_OBJECTS) {
        return run->seen.learnt_since == TD_TIME_NONE ||
               run->now - run->seen.learnt_since < HVPA_YOUNG;
    }
    bool is_pod = td_tandem_is_pod(row->container);
    bool is_found = false;
    for (size_t i = 0; i < run->seen.account_count; i++) {
        const struct td_account *account = &run->seen.accounts[i];
        if (!is_pod && !td_str_equal(account->container, row->container)) {
            continue;
        }
        is_found = true;
        if (td_instant_is_zero(account->first_sample) ||
            run->now - td_time_from_instant(account->first_sample) < HVPA_YOUNG) {
            return true;
        }
    }
    return !is_found;
}

/* What keeps the row from becoming too small for the HPA (decide/tandem/floor.h). */
static void row_floor(const struct hvpa_reconcile *run, struct td_tandem_row *row)
{
    const struct td_hpa_config *config = &run->loop->options.horizontal;
    struct td_tandem_coupling *coupling = &row->coupling;
    if (!td_hvpa_scales_horizontally(&run->hvpa)) {
        return;
    }
    coupling->in_template = row_in_template(run, row->container, row->resource);
    coupling->reference = row_reference(run, row);
    coupling->beside = row_beside(run, row);
    coupling->headroom_percent = td_tandem_headroom_of(
        td_hpa_tolerance_of(&run->hpa, config->tolerance, config->is_tolerance_configurable).up);
    row->is_young = row_is_young(run, row);
}

/* An API server takes no pod whose own request is below that of its containers: not below what they
 * have or are to have. */
static void row_hold_containers(const struct hvpa_reconcile *run, struct td_tandem_row *row)
{
    int64_t sum = 0;
    for (size_t i = 0; i < run->decided.row_count; i++) {
        const struct td_tandem_row *other = &run->decided.rows[i];
        if (other->resource == row->resource) {
            int64_t wish = td_tandem_wish_of(&run->decided.input, other).target;
            int64_t most = wish > other->request ? wish : other->request;
            sum = most > INT64_MAX - sum ? INT64_MAX : sum + most;
        }
    }
    if (sum > row->min_allowed.amount) {
        row->min_allowed = (struct td_tandem_bound){.is_set = true, .amount = sum};
    }
    if (row->max_allowed.is_set && sum > row->max_allowed.amount) {
        row->max_allowed.amount = sum;
    }
}

static bool row_is_emergency(const struct hvpa_reconcile *run, const struct td_tandem_row *row)
{
    bool is_flagged =
        td_tandem_is_pod(row->container)
            ? run->decided.emergencies.count > 0
            : td_tandem_emergency_find(&run->decided.emergencies, row->container) != NULL;
    return row->resource == TD_HVPA_MEMORY && is_flagged;
}

static void rows_add(struct hvpa_reconcile *run, const struct td_horizontal_result *result,
                     const struct td_container_recommendation *from, enum td_hvpa_resource resource)
{
    td_str name = td_hvpa_resource_name(resource);
    const struct td_quantity *target = td_resource_list_get(&from->target, name);
    const struct td_quantity *uncapped = td_resource_list_get(&from->uncapped_target, name);
    if (!target || !rows_is_wanted(run, from->container_name, resource)) {
        return;
    }
    struct td_tandem_row *row = &run->decided.rows[run->decided.row_count];
    *row = (struct td_tandem_row){
        .container = from->container_name,
        .resource = resource,
        .target = td_tandem_amount_of(resource, target),
        .uncapped = td_tandem_amount_of(resource, uncapped ? uncapped : target),
        .lower = row_bound(resource, &from->lower_bound),
        .upper = row_bound(resource, &from->upper_bound),
    };
    row->is_emergency = row_is_emergency(run, row);
    row_policy(run, row);
    row_couple(run, result, row);
    row_sizes(run, row);
    row_origin(run, row);
    row_floor(run, row);
    if (td_tandem_is_pod(row->container)) {
        row_hold_containers(run, row);
    }
    struct td_tandem_wish wish = td_tandem_wish_of(&run->decided.input, row);
    if (wish.is_raised || wish.is_kept) {
        /* The HPA decides how large it is: that is above what the VPA would call too much. */
        row->upper.is_set = false;
    }
    run->decided.in_template[run->decided.row_count++] =
        row_in_template(run, row->container, resource);
}

/* The pod is the last of its containers. */
static void rows_add_pod(struct hvpa_reconcile *run)
{
    struct td_recommendation *all = &run->seen.recommendation;
    if (!all->pod.is_set) {
        return;
    }
    struct td_container_recommendation *containers =
        td_arena_array(&run->arena, struct td_container_recommendation, all->container_count + 1);
    for (size_t i = 0; i < all->container_count; i++) {
        containers[i] = all->containers[i];
    }
    containers[all->container_count++] = (struct td_container_recommendation){
        .container_name = hvpa_pod_name,
        .target = all->pod.target,
        .lower_bound = all->pod.lower_bound,
        .upper_bound = all->pod.upper_bound,
        .has_target = true,
        .has_lower_bound = all->pod.lower_bound.count > 0,
        .has_upper_bound = all->pod.upper_bound.count > 0,
    };
    all->containers = containers;
}

void hvpa_input_build(struct hvpa_reconcile *run, const struct td_horizontal_result *result)
{
    hvpa_emergencies_find(run);
    rows_add_pod(run);
    size_t count = run->seen.recommendation.container_count * TD_HVPA_RESOURCE_COUNT;
    run->decided.rows = td_arena_array(&run->arena, struct td_tandem_row, count + 1);
    run->decided.in_template = td_arena_array(&run->arena, int64_t, count + 1);
    run->decided.outcomes = td_arena_array(&run->arena, struct td_tandem_outcome, count + 1);
    for (size_t i = 0; i < run->seen.recommendation.container_count; i++) {
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            rows_add(run, result, &run->seen.recommendation.containers[i],
                     (enum td_hvpa_resource)r);
        }
    }
    run->decided.input.rows = run->decided.rows;
    run->decided.input.row_count = run->decided.row_count;
    run->decided.input.resize = td_tandem_resize_of(&run->decided.progress, &run->decided.input);
}

/* ---- Unfinished business ---- */

void hvpa_input_progress(struct hvpa_reconcile *run)
{
    const struct td_tandem_progress_input input = {
        .hvpa = &run->hvpa,
        .decided = &run->decided.requests,
        .limits = &run->decided.limits,
        .pods = run->seen.pods,
        .pod_count = run->seen.pod_count,
        .is_selective = run->loop->options.control.gates.heterogeneous_workloads,
        .now = run->now,
    };
    run->decided.progress = td_tandem_progress_of(&input);
    if (run->decided.progress.is_given_up) {
        hvpa_reconcile_event(
            run, true, TD_STR("ResizeInfeasible"),
            TD_STR("pods did not get the decided sizes within 15 minutes; the next "
                   "attempt is with smaller sizes, or after an hour"));
    }
    if (run->decided.progress.is_dropped) {
        run->decided.requests = (struct td_hvpa_requests){.count = 0};
        run->decided.limits = (struct td_hvpa_requests){.count = 0};
    }
}

/* ---- What is decided now ---- */

void hvpa_input_keep(struct hvpa_reconcile *run)
{
    td_time last = run->item->last_reconcile;
    td_tandem_emergencies_settle(&run->decided.emergencies, &run->decided.input,
                                 run->decided.outcomes,
                                 last == TD_TIME_NONE ? 0 : (run->now - last) / TD_SECOND);
    for (size_t i = 0; i < run->decided.row_count; i++) {
        const struct td_tandem_row *row = &run->decided.rows[i];
        const struct td_tandem_outcome *outcome = &run->decided.outcomes[i];
        struct td_quantity request = td_tandem_quantity_of(row->resource, outcome->request);
        struct td_quantity limit = td_tandem_quantity_of(row->resource, outcome->limit.amount);
        run->decided.is_resized = run->decided.is_resized || outcome->request != row->request;
        if (outcome->request > 0) {
            td_tandem_request_put(&run->arena, &run->decided.requests, row->container,
                                  row->resource, &request);
        }
        bool is_kept = outcome->request != row->request ||
                       td_tandem_request_of(&run->decided.limits, row->container, row->resource);
        if (outcome->limit.is_set && is_kept) {
            td_tandem_request_put(&run->arena, &run->decided.limits, row->container, row->resource,
                                  &limit);
        }
    }
}
