/*
 * From what was seen to the rows of the decision: one a container and resource that the vpaSpec
 * controls, with its request, what is recommended, its bounds, and whether it ran out of memory.
 *
 * The request of a row is what was last applied by us; before that, or while the Hvpa is paused, it
 * is what the newest pod runs with. Pods that differ from it are unfinished business, whoever made
 * them so.
 */
#include "base/error.h"
#include "base/limits.h"
#include "control/hvpa/hvpa_private.h"
#include "control/recommender/recommend_loop.h"
#include "decide/horizontal/replicas.h"
#include "decide/tandem/floor.h"
#include "decide/vertical/estimator/decaying.h"
#include "decide/vertical/recommender/account.h"
#include "decide/vertical/recommender/recommender.h"

#define FOREIGN_AFTER_SECONDS 5 /* our own write of a template is seen again within */

/* ---- What was decided before ---- */

static const struct td_vpa_condition *rows_condition(const struct td_hvpa_status *status,
                                                     td_str type)
{
    for (size_t i = 0; i < status->condition_count; i++) {
        if (td_str_equal(status->conditions[i].type, type)) {
            return &status->conditions[i];
        }
    }
    return NULL;
}

bool hvpa_rows_decided(const struct td_hvpa_status *status)
{
    const struct td_vpa_condition *ready = rows_condition(status, TD_STR("Ready"));
    bool was_paused = ready && td_str_equal(ready->reason, TD_STR("Paused"));
    return status->has_vertical_time && status->decision.is_set && !was_paused;
}

static struct td_hvpa_requests template_requests(struct hvpa_tick *tick)
{
    struct td_hvpa_requests made = {.count = 0};
    for (size_t i = 0; i < tick->template_count; i++) {
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            const struct td_quantity *quantity =
                td_resource_list_get(&tick->template[i].requests, td_hvpa_resource_name(resource));
            if (quantity) {
                hvpa_request_put(&tick->arena, &made, tick->template[i].name, resource, quantity);
            }
        }
    }
    return made;
}

/* Somebody else changed the template that we write: theirs is the reference from now on. */
static bool template_is_foreign(const struct hvpa_tick *tick, const struct td_hvpa_requests *now)
{
    for (size_t i = 0; i < tick->decided.count; i++) {
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            td_str container = tick->decided.items[i].container;
            const struct td_quantity *ours = hvpa_request_of(&tick->decided, container, resource);
            const struct td_quantity *theirs = hvpa_request_of(now, container, resource);
            if (ours && hvpa_amount(resource, ours) != hvpa_amount(resource, theirs)) {
                return true;
            }
        }
    }
    return false;
}

static void recall_template(struct hvpa_tick *tick)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    if (tick->hvpa.actuation != TD_HVPA_ACTUATE_TEMPLATE || tick->template_count == 0) {
        return;
    }
    struct td_hvpa_requests now = template_requests(tick);
    bool is_young =
        status->has_vertical_time &&
        !td_tandem_has_passed(status->vertical_time, tick->instant, FOREIGN_AFTER_SECONDS);
    tick->reference = status->reference_requests;
    if (tick->reference.count == 0 || (!is_young && template_is_foreign(tick, &now))) {
        tick->reference = now;
        tick->origin = (struct td_hvpa_origin){.requests = {.count = 0}};
        tick->decided = (struct td_hvpa_requests){.count = 0};
        tick->decided_limits = (struct td_hvpa_requests){.count = 0};
    }
}

void hvpa_rows_recall(struct hvpa_tick *tick)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    if (!tick->hvpa.paused && hvpa_rows_decided(status)) {
        tick->decided = status->decision.requests;
        tick->decided_limits = status->decision.limits;
    }
    tick->origin = status->origin;
    recall_template(tick);
}

/* ---- The vertical verdict ---- */

/* All conditions are looked at, in whatever order they are (2.2). */
void hvpa_rows_judge(struct hvpa_tick *tick, const struct td_vpa_condition *conditions,
                     size_t count)
{
    static const td_str spoilers[] = {
        TD_STR_INIT("LowConfidence"), TD_STR_INIT("ConfigUnsupported"),
        TD_STR_INIT("ConfigDeprecated"), TD_STR_INIT("NoPodsMatched")};
    tick->vertical_reason = TD_STR_EMPTY;
    tick->input.is_vertical_valid = false;
    for (size_t i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++) {
        if (td_vpa_condition_holds(conditions, count, spoilers[i])) {
            tick->vertical_reason = spoilers[i];
            return;
        }
    }
    if (tick->recommendation.container_count == 0 ||
        !td_vpa_condition_holds(conditions, count, TD_STR("RecommendationProvided"))) {
        tick->vertical_reason = TD_STR("NoRecommendation");
        return;
    }
    tick->input.is_vertical_valid = true;
}

void hvpa_rows_vertical(struct hvpa_tick *tick)
{
    struct td_recommend_loop *recommend = tick->loop->options.recommend;
    struct td_vpa_status status;
    struct td_error err = TD_ERROR_INIT;
    tick->recommendation = (struct td_recommendation){.container_count = 0};
    tick->input.is_vertical_valid = false;
    tick->learnt_since = TD_TIME_NONE;
    if (!tick->hvpa.has_vpa) {
        tick->vertical_reason = TD_STR("NoVpaSpec");
        return;
    }
    if (tick->hvpa.sources == TD_HVPA_OBJECTS) {
        hvpa_children_vertical(tick);
        return;
    }
    if (!recommend) {
        tick->vertical_reason = TD_STR("no recommender runs in this process");
        return;
    }
    if (td_recommend_loop_hvpa(recommend, &tick->arena, &tick->hvpa, &status, &err) != TD_OK) {
        tick->vertical_reason = td_arena_copy_str(&tick->arena, td_str_from(err.message));
        return;
    }
    tick->recommendation = status.recommendation;
    tick->accounts = status.accounts;
    tick->account_count = status.accounts ? status.recommendation.container_count : 0;
    hvpa_rows_judge(tick, status.conditions, status.condition_count);
}

/* ---- Rows ---- */

static struct td_tandem_bound row_bound(enum td_hvpa_resource resource,
                                        const struct td_resource_list *list)
{
    const struct td_quantity *quantity =
        td_resource_list_get(list, td_hvpa_resource_name(resource));
    return (struct td_tandem_bound){.is_set = quantity != NULL,
                                    .amount = hvpa_amount(resource, quantity)};
}

static const struct hvpa_container *rows_template(const struct hvpa_tick *tick, td_str container)
{
    for (size_t i = 0; i < tick->template_count; i++) {
        if (td_str_equal(tick->template[i].name, container)) {
            return &tick->template[i];
        }
    }
    return NULL;
}

static const struct td_vertical_container *rows_live(const struct hvpa_tick *tick, td_str container)
{
    for (size_t i = 0; tick->newest && i < tick->newest->container_count; i++) {
        if (td_str_equal(tick->newest->containers[i].name, container)) {
            return &tick->newest->containers[i];
        }
    }
    return NULL;
}

static void row_sizes(const struct hvpa_tick *tick, struct td_tandem_row *row)
{
    const struct td_vertical_container *live = rows_live(tick, row->container);
    const struct hvpa_container *template = rows_template(tick, row->container);
    const struct td_resource_list none = {.count = 0};
    const struct td_quantity *decided =
        hvpa_request_of(&tick->decided, row->container, row->resource);
    const struct td_quantity *limit =
        hvpa_request_of(&tick->decided_limits, row->container, row->resource);
    bool is_template = tick->hvpa.actuation == TD_HVPA_ACTUATE_TEMPLATE && template;
    const struct td_resource_list *requests = live ? td_vertical_requests(live) : &none;
    const struct td_resource_list *limits = live ? td_vertical_limits(live) : &none;
    if (is_template || (!live && template)) {
        requests = &template->requests;
        limits = &template->limits;
    }
    row->request =
        decided ? hvpa_amount(row->resource, decided) : row_bound(row->resource, requests).amount;
    row->limit = limit ? (struct td_tandem_bound){.is_set = true,
                                                  .amount = hvpa_amount(row->resource, limit)}
                       : row_bound(row->resource, limits);
}

/* In whose proportion the limit follows the request: the template's as its user wrote it. Where the
 * template has no limit (a LimitRange gave one) or is what we write, what was there at first is
 * kept in the status. */
static void row_origin(struct hvpa_tick *tick, struct td_tandem_row *row)
{
    const struct hvpa_container *template = rows_template(tick, row->container);
    bool is_written = tick->hvpa.actuation == TD_HVPA_ACTUATE_TEMPLATE;
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
        hvpa_request_of(&tick->origin.limits, row->container, row->resource);
    const struct td_quantity *request =
        hvpa_request_of(&tick->origin.requests, row->container, row->resource);
    if (limit && request) {
        *origin = (struct td_tandem_pair){.request = hvpa_amount(row->resource, request),
                                          .limit = hvpa_amount(row->resource, limit)};
    } else if (row->limit.is_set && row->limit.amount > 0 && row->request > 0) {
        struct td_quantity at = hvpa_quantity(row->resource, row->limit.amount);
        hvpa_request_put(&tick->arena, &tick->origin.limits, row->container, row->resource, &at);
        at = hvpa_quantity(row->resource, row->request);
        hvpa_request_put(&tick->arena, &tick->origin.requests, row->container, row->resource, &at);
        *origin = (struct td_tandem_pair){.request = row->request, .limit = row->limit.amount};
    }
}

/* Does the container, or the pod under its own name, ask for the resource? */
static bool rows_is_requested(const struct hvpa_tick *tick, td_str container,
                              enum td_hvpa_resource resource)
{
    td_str name = td_hvpa_resource_name(resource);
    const struct td_vertical_container *live = rows_live(tick, container);
    const struct hvpa_container *template = rows_template(tick, container);
    return (live && td_resource_list_get(td_vertical_requests(live), name)) ||
           (!live && template && td_resource_list_get(&template->requests, name)) ||
           hvpa_request_of(&tick->decided, container, resource);
}

/* In pods with resources of their own only what is asked for is changed, as by a VPA. */
static bool rows_is_wanted(const struct hvpa_tick *tick, td_str container,
                           enum td_hvpa_resource resource)
{
    bool is_known = rows_live(tick, container) || rows_template(tick, container);
    bool has_whole = rows_live(tick, hvpa_pod_name) || rows_template(tick, hvpa_pod_name);
    return is_known && td_tandem_controls(&tick->hvpa, container, resource) &&
           (!has_whole || rows_is_requested(tick, container, resource));
}

static void row_policy(const struct hvpa_tick *tick, struct td_tandem_row *row)
{
    const struct td_resource_policy *all = &tick->hvpa.vpa.policy;
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
static bool row_usage(const struct hvpa_tick *tick, const struct td_horizontal_verdict *verdict,
                      const struct td_tandem_row *row, int64_t *ret)
{
    td_str name = td_hvpa_resource_name(row->resource);
    if (!td_tandem_is_pod(row->container)) {
        return td_horizontal_usage(verdict, row->container, name, ret);
    }
    int64_t sum = 0;
    for (size_t i = 0; i < tick->template_count; i++) {
        int64_t amount = 0;
        if (td_tandem_is_pod(tick->template[i].name)) {
            continue;
        }
        if (!td_horizontal_usage(verdict, tick->template[i].name, name, &amount)) {
            return false;
        }
        sum = amount > INT64_MAX - sum ? INT64_MAX : sum + amount;
    }
    *ret = sum;
    return true;
}

static void row_couple(const struct hvpa_tick *tick, const struct td_horizontal_verdict *verdict,
                       struct td_tandem_row *row)
{
    bool is_beside =
        !td_tandem_is_pod(row->container) && rows_is_requested(tick, hvpa_pod_name, row->resource);
    row->coupling = is_beside
                        ? td_tandem_coupling_beside_pod(&tick->hvpa, row->container, row->resource)
                        : td_tandem_coupling_of(&tick->hvpa, row->container, row->resource);
    row->coupling.usage.is_set = verdict && row->coupling.is_coupled &&
                                 row_usage(tick, verdict, row, &row->coupling.usage.amount);
}

static int64_t row_in_template(const struct hvpa_tick *tick, td_str container,
                               enum td_hvpa_resource resource)
{
    const struct hvpa_container *template = rows_template(tick, container);
    const struct td_quantity *reference = hvpa_request_of(&tick->reference, container, resource);
    if (reference) {
        return hvpa_amount(resource, reference);
    }
    return template ? row_bound(resource, &template->requests).amount : 0;
}

/* What a pod may use on average until the HPA wants more, by the metric that says so first: as it
 * is asked for (hvpa_view_hpa), where the template's requests are the measure. */
static int64_t row_reference(const struct hvpa_tick *tick, const struct td_tandem_row *row)
{
    int64_t least = 0;
    for (size_t i = 0; i < tick->hvpa.hpa.metric_count && tick->hpa.metrics; i++) {
        const struct td_hpa_target *asked = &tick->hpa.metrics[i].target;
        if (asked->type != TD_HPA_AVERAGE_VALUE ||
            !td_tandem_is_measured_by(&tick->hvpa.hpa.metrics[i], row->container, row->resource)) {
            continue;
        }
        int64_t milli = asked->average_value_milli;
        int64_t amount = row->resource == TD_HVPA_CPU ? milli : milli / 1000;
        least = least == 0 || amount < least ? amount : least;
    }
    return least;
}

/* What the other containers ask for, where a metric adds them all up. */
static int64_t row_beside(const struct hvpa_tick *tick, const struct td_tandem_row *row)
{
    bool is_of_pods = false;
    int64_t sum = 0;
    for (size_t i = 0; i < tick->hvpa.hpa.metric_count; i++) {
        const struct td_hpa_metric *metric = &tick->hvpa.hpa.metrics[i];
        is_of_pods =
            is_of_pods || (metric->type == TD_HPA_RESOURCE &&
                           td_tandem_is_measured_by(metric, row->container, row->resource));
    }
    for (size_t i = 0; is_of_pods && i < tick->template_count; i++) {
        struct td_tandem_row other = {.container = tick->template[i].name,
                                      .resource = row->resource};
        row_sizes(tick, &other);
        bool is_other = !td_str_equal(other.container, row->container) &&
                        !td_tandem_is_pod(other.container) && !td_tandem_is_pod(row->container);
        sum += is_other && other.request < INT64_MAX - sum ? other.request : 0;
    }
    return sum;
}

/* Was less than a day seen of the container, or of some container of the pod? */
static bool row_is_young(const struct hvpa_tick *tick, const struct td_tandem_row *row)
{
    if (tick->hvpa.sources == TD_HVPA_OBJECTS) {
        return tick->learnt_since == TD_TIME_NONE || tick->now - tick->learnt_since < HVPA_YOUNG;
    }
    bool is_pod = td_tandem_is_pod(row->container);
    bool is_found = false;
    for (size_t i = 0; i < tick->account_count; i++) {
        const struct td_account *account = &tick->accounts[i];
        if (!is_pod && !td_str_equal(account->container, row->container)) {
            continue;
        }
        is_found = true;
        if (td_instant_is_zero(account->first_sample) ||
            tick->now - td_time_from_instant(account->first_sample) < HVPA_YOUNG) {
            return true;
        }
    }
    return !is_found;
}

/* What keeps the row from becoming too small for the HPA (decide/tandem/floor.h). */
static void row_floor(const struct hvpa_tick *tick, struct td_tandem_row *row)
{
    const struct td_hpa_config *config = &tick->loop->options.horizontal;
    struct td_tandem_coupling *coupling = &row->coupling;
    if (!td_hvpa_scales_horizontally(&tick->hvpa)) {
        return;
    }
    coupling->in_template = row_in_template(tick, row->container, row->resource);
    coupling->reference = row_reference(tick, row);
    coupling->beside = row_beside(tick, row);
    coupling->headroom_percent = td_tandem_headroom_of(
        td_hpa_tolerance_of(&tick->hpa, config->tolerance, config->is_tolerance_configurable).up);
    row->is_young = row_is_young(tick, row);
}

/* An API server takes no pod whose own request is below that of its containers: not below what they
 * have or are to have. */
static void row_hold_containers(const struct hvpa_tick *tick, struct td_tandem_row *row)
{
    int64_t sum = 0;
    for (size_t i = 0; i < tick->row_count; i++) {
        const struct td_tandem_row *other = &tick->rows[i];
        if (other->resource == row->resource) {
            int64_t wish = td_tandem_wish_of(&tick->input, other).target;
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

static bool row_is_emergency(struct hvpa_tick *tick, const struct td_tandem_row *row)
{
    bool is_flagged = td_tandem_is_pod(row->container)
                          ? tick->emergency_count > 0
                          : hvpa_emergency_find(tick, row->container) != NULL;
    return row->resource == TD_HVPA_MEMORY && is_flagged;
}

static void rows_add(struct hvpa_tick *tick, const struct td_horizontal_verdict *verdict,
                     const struct td_container_recommendation *from, enum td_hvpa_resource resource)
{
    td_str name = td_hvpa_resource_name(resource);
    const struct td_quantity *target = td_resource_list_get(&from->target, name);
    const struct td_quantity *uncapped = td_resource_list_get(&from->uncapped_target, name);
    if (!target || !rows_is_wanted(tick, from->container_name, resource)) {
        return;
    }
    struct td_tandem_row *row = &tick->rows[tick->row_count];
    *row = (struct td_tandem_row){
        .container = from->container_name,
        .resource = resource,
        .target = hvpa_amount(resource, target),
        .uncapped = hvpa_amount(resource, uncapped ? uncapped : target),
        .lower = row_bound(resource, &from->lower_bound),
        .upper = row_bound(resource, &from->upper_bound),
    };
    row->is_emergency = row_is_emergency(tick, row);
    row_policy(tick, row);
    row_couple(tick, verdict, row);
    row_sizes(tick, row);
    row_origin(tick, row);
    row_floor(tick, row);
    if (td_tandem_is_pod(row->container)) {
        row_hold_containers(tick, row);
    }
    struct td_tandem_wish wish = td_tandem_wish_of(&tick->input, row);
    if (wish.is_raised || wish.is_kept) {
        /* The HPA decides how large it is: that is above what the VPA would call too much. */
        row->upper.is_set = false;
    }
    tick->in_template[tick->row_count++] = row_in_template(tick, row->container, resource);
}

/* The pod is the last of its containers. */
static void rows_add_pod(struct hvpa_tick *tick)
{
    struct td_recommendation *all = &tick->recommendation;
    if (!all->pod.is_set) {
        return;
    }
    struct td_container_recommendation *containers =
        td_arena_array(&tick->arena, struct td_container_recommendation, all->container_count + 1);
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

void hvpa_rows_build(struct hvpa_tick *tick, const struct td_horizontal_verdict *verdict)
{
    hvpa_emergencies_recall(tick);
    rows_add_pod(tick);
    size_t count = tick->recommendation.container_count * TD_HVPA_RESOURCE_COUNT;
    tick->rows = td_arena_array(&tick->arena, struct td_tandem_row, count + 1);
    tick->in_template = td_arena_array(&tick->arena, int64_t, count + 1);
    tick->outcomes = td_arena_array(&tick->arena, struct td_tandem_outcome, count + 1);
    for (size_t i = 0; i < tick->recommendation.container_count; i++) {
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            rows_add(tick, verdict, &tick->recommendation.containers[i], (enum td_hvpa_resource)r);
        }
    }
    tick->input.rows = tick->rows;
    tick->input.row_count = tick->row_count;
}

/* ---- Unfinished business ---- */

static bool requests_equal(const struct td_hvpa_requests *a, const struct td_hvpa_requests *b)
{
    for (size_t i = 0; i < a->count; i++) {
        for (int r = 0; r < TD_HVPA_RESOURCE_COUNT; r++) {
            enum td_hvpa_resource resource = (enum td_hvpa_resource)r;
            td_str container = a->items[i].container;
            if (hvpa_amount(resource, hvpa_request_of(a, container, resource)) !=
                hvpa_amount(resource, hvpa_request_of(b, container, resource))) {
                return false;
            }
        }
    }
    return a->count == b->count;
}

static bool progress_is_given_up(const struct hvpa_tick *tick)
{
    const struct td_hvpa_infeasible *failed = &tick->status.infeasible;
    return failed->is_set && requests_equal(&failed->requests, &tick->decided);
}

/* The time is over: what cannot be had is remembered, and when no pod has it, no longer wanted. */
static void progress_give_up(struct hvpa_tick *tick, bool has_any)
{
    tick->status.infeasible = (struct td_hvpa_infeasible){
        .is_set = true, .time = tick->instant, .requests = tick->decided};
    hvpa_tick_event(tick, true, TD_STR("ResizeInfeasible"),
                    TD_STR("pods could not be given the decided sizes within 15 minutes; tried "
                           "again with lower ones, or after an hour"));
    if (!has_any) {
        tick->decided = (struct td_hvpa_requests){.count = 0};
        tick->decided_limits = (struct td_hvpa_requests){.count = 0};
    }
    tick->is_progressing = false;
    tick->is_growing = false;
}

static bool progress_is_infeasible(const struct hvpa_tick *tick)
{
    const struct td_hvpa_infeasible *failed = &tick->status.infeasible;
    for (size_t i = 0; i < tick->row_count && failed->is_set; i++) {
        const struct td_tandem_row *row = &tick->rows[i];
        const struct td_quantity *was =
            hvpa_request_of(&failed->requests, row->container, row->resource);
        if (was && td_tandem_wish_of(&tick->input, row).target < hvpa_amount(row->resource, was)) {
            return false;
        }
    }
    return failed->is_set;
}

static bool progress_is_wanted(const struct td_hvpa *hvpa)
{
    bool is_off = hvpa->vertical_up.update == TD_HVPA_UPDATE_OFF &&
                  hvpa->vertical_down.update == TD_HVPA_UPDATE_OFF;
    return hvpa->has_vpa && !hvpa->paused && !is_off;
}

static void progress_find(struct hvpa_tick *tick)
{
    const struct td_vpa_condition *before =
        rows_condition(&tick->hvpa.status, TD_STR("Progressing"));
    bool was = before && td_str_equal(before->status, TD_STR("True"));
    bool has_any = false;
    if (!progress_is_wanted(&tick->hvpa) || progress_is_given_up(tick)) {
        return;
    }
    for (size_t i = 0; i < tick->pod_count; i++) {
        bool is_smaller = false;
        if (!hvpa_pod_is_sized(tick, &tick->pods[i])) {
            continue;
        }
        bool is_as_decided = hvpa_pod_is_as_decided(&tick->decided, &tick->decided_limits,
                                                    &tick->pods[i], &is_smaller);
        tick->is_growing =
            tick->is_growing || (is_smaller && tick->pods[i].ready == TD_CONDITION_TRUE);
        tick->is_progressing = tick->is_progressing || !is_as_decided;
        has_any = has_any || (is_as_decided && tick->pods[i].ready == TD_CONDITION_TRUE);
    }
    tick->progressing_since = was ? td_time_from_instant(before->last_transition) : tick->now;
    if (tick->is_progressing && tick->now - tick->progressing_since >= HVPA_GIVE_UP) {
        progress_give_up(tick, has_any);
    }
}

void hvpa_rows_progress(struct hvpa_tick *tick)
{
    const struct td_hvpa_infeasible *failed = &tick->hvpa.status.infeasible;
    bool is_over =
        failed->is_set && td_tandem_has_passed(failed->time, tick->instant, HVPA_RETRY / TD_SECOND);
    tick->status.infeasible = *failed;
    tick->status.infeasible.is_set = failed->is_set && !is_over;
    progress_find(tick);
}

void hvpa_rows_resize(struct hvpa_tick *tick)
{
    if (tick->is_progressing) {
        tick->input.resize = TD_TANDEM_RESIZE_IN_PROGRESS;
    } else if (progress_is_infeasible(tick)) {
        tick->input.resize = TD_TANDEM_RESIZE_INFEASIBLE;
    } else {
        tick->input.resize = TD_TANDEM_RESIZE_NONE;
    }
}

/* ---- What is decided now ---- */

void hvpa_rows_keep(struct hvpa_tick *tick)
{
    hvpa_emergencies_keep(tick);
    for (size_t i = 0; i < tick->row_count; i++) {
        const struct td_tandem_row *row = &tick->rows[i];
        const struct td_tandem_outcome *outcome = &tick->outcomes[i];
        struct td_quantity request = hvpa_quantity(row->resource, outcome->request);
        struct td_quantity limit = hvpa_quantity(row->resource, outcome->limit.amount);
        tick->is_resized = tick->is_resized || outcome->request != row->request;
        if (outcome->request > 0) {
            hvpa_request_put(&tick->arena, &tick->decided, row->container, row->resource, &request);
        }
        bool is_kept = outcome->request != row->request ||
                       hvpa_request_of(&tick->decided_limits, row->container, row->resource);
        if (outcome->limit.is_set && is_kept) {
            hvpa_request_put(&tick->arena, &tick->decided_limits, row->container, row->resource,
                             &limit);
        }
    }
}
