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
#include "control/hvpa_private.h"
#include "control/recommend_loop.h"
#include "decide/vertical/recommender.h"

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
    hvpa_rows_judge(tick, status.conditions, status.condition_count);
}

/* ---- Out of memory ---- */

static struct td_hvpa_emergency *emergency_find(struct hvpa_tick *tick, td_str container)
{
    for (size_t i = 0; i < tick->emergency_count; i++) {
        if (td_str_equal(tick->emergencies[i].container, container)) {
            return &tick->emergencies[i];
        }
    }
    return NULL;
}

static void emergency_raise(struct hvpa_tick *tick, td_str container, td_time at)
{
    struct td_hvpa_emergency *flag = emergency_find(tick, container);
    if (flag) {
        flag->usable_seconds = 0; /* it happened again */
        return;
    }
    struct td_hvpa_emergency *flags =
        td_arena_array(&tick->arena, struct td_hvpa_emergency, tick->emergency_count + 1);
    for (size_t i = 0; i < tick->emergency_count; i++) {
        flags[i] = tick->emergencies[i];
    }
    flags[tick->emergency_count] =
        (struct td_hvpa_emergency){.container = container, .since = td_time_to_instant(at)};
    flags[tick->emergency_count++].since.nanos = 0;
    tick->emergencies = flags;
}

/* Both times are whole seconds: one in that of the last scaling may have come behind it. */
static bool oom_is_new(const struct hvpa_tick *tick, td_time at)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    td_time applied = status->has_vertical_time ? td_time_from_instant(status->vertical_time) : 0;
    bool is_seen = tick->item->oom_seen != TD_TIME_NONE && at <= tick->item->oom_seen;
    return at > applied - TD_SECOND && !is_seen &&
           tick->now - at < HVPA_EMERGENCY_SECONDS * TD_SECOND;
}

/* Those who died with another size have nothing to say about the present one. */
static bool oom_is_of_this_size(const struct hvpa_tick *tick,
                                const struct td_vertical_container *container)
{
    const struct td_quantity *decided =
        hvpa_request_of(&tick->decided, container->name, TD_HVPA_MEMORY);
    const struct td_quantity *has =
        td_resource_list_get(td_vertical_requests(container), TD_STR("memory"));
    return !decided || hvpa_amount(TD_HVPA_MEMORY, decided) == hvpa_amount(TD_HVPA_MEMORY, has);
}

static bool pod_is_evicted_for_memory(const struct hvpa_tick *tick,
                                      const struct td_vertical_pod *pod)
{
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_json *status = td_json_get(pod->tree, TD_STR("status"));
    const struct td_cache *nodes =
        td_sight_cache(tick->loop->options.control.sight, TD_SIGHT_NODES);
    td_str node =
        td_json_get_str(td_json_get(pod->tree, TD_STR("spec")), TD_STR("nodeName"), TD_STR_EMPTY);
    const struct td_sight_object *seen = nodes ? td_cache_get(nodes, TD_STR_EMPTY, node) : NULL;
    struct td_json *tree;
    bool is_evicted =
        td_str_equal(td_json_get_str(status, TD_STR("reason"), TD_STR_EMPTY), TD_STR("Evicted"));
    if (!is_evicted || !seen || td_sight_tree(&arena, seen, &tree, NULL) != TD_OK) {
        return false;
    }
    const struct td_json *list = td_json_get_path(tree, "status.conditions");
    for (const struct td_json *c = td_json_first_item(list); c; c = c->next) {
        if (td_str_equal(td_json_get_str(c, TD_STR("type"), TD_STR_EMPTY),
                         TD_STR("MemoryPressure"))) {
            return td_str_equal(td_json_get_str(c, TD_STR("status"), TD_STR_EMPTY), TD_STR("True"));
        }
    }
    return false;
}

static td_time oom_of(const struct td_vertical_container *container)
{
    bool is_oom = container->has_last_terminated &&
                  td_str_equal(container->last_terminated_reason, TD_STR("OOMKilled"));
    return is_oom ? container->last_finished : TD_TIME_NONE;
}

static void emergencies_find(struct hvpa_tick *tick)
{
    td_time newest = tick->item->oom_seen;
    for (size_t i = 0; i < tick->pod_count; i++) {
        bool is_sized = hvpa_pod_is_sized(tick, &tick->pods[i]);
        for (size_t j = 0; j < tick->pods[i].container_count && is_sized; j++) {
            const struct td_vertical_container *c = &tick->pods[i].containers[j];
            td_time at = oom_of(c);
            if (at != TD_TIME_NONE && oom_is_new(tick, at) && oom_is_of_this_size(tick, c)) {
                emergency_raise(tick, c->name, at);
                newest = newest == TD_TIME_NONE || at > newest ? at : newest;
            }
        }
    }
    for (size_t i = 0; i < tick->ended_count; i++) {
        const struct td_vertical_pod *pod = &tick->ended[i];
        td_time at = pod->start_time;
        bool is_new = at != TD_TIME_NONE && oom_is_new(tick, at);
        for (size_t j = 0; j < pod->container_count && is_new; j++) {
            const struct td_vertical_container *c = &pod->containers[j];
            if (oom_is_of_this_size(tick, c) && pod_is_evicted_for_memory(tick, pod)) {
                emergency_raise(tick, c->name, tick->now);
                newest = newest == TD_TIME_NONE || at > newest ? at : newest;
            }
        }
    }
    tick->item->oom_seen = newest;
}

/* Those from before, without the ones whose time is over. */
static void emergencies_recall(struct hvpa_tick *tick)
{
    const struct td_hvpa_status *status = &tick->hvpa.status;
    tick->emergencies =
        td_arena_array(&tick->arena, struct td_hvpa_emergency, status->emergency_count + 1);
    for (size_t i = 0; i < status->emergency_count; i++) {
        td_time since = td_time_from_instant(status->emergency[i].since);
        if (status->emergency[i].usable_seconds < HVPA_EMERGENCY_SECONDS) {
            tick->emergencies[tick->emergency_count++] = status->emergency[i];
        }
        if (tick->item->oom_seen == TD_TIME_NONE || since > tick->item->oom_seen) {
            tick->item->oom_seen = since;
        }
    }
    emergencies_find(tick);
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

/* An API server takes no pod whose own request is below that of its containers: not below what they
 * have or are to have. */
static void row_hold_containers(const struct hvpa_tick *tick, struct td_tandem_row *row)
{
    int64_t sum = 0;
    for (size_t i = 0; i < tick->row_count; i++) {
        const struct td_tandem_row *other = &tick->rows[i];
        if (other->resource == row->resource) {
            int64_t wish = td_tandem_wish_of(&tick->hvpa, other).target;
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
                          : emergency_find(tick, row->container) != NULL;
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
    if (td_tandem_is_pod(row->container)) {
        row_hold_containers(tick, row);
    }
    if (td_tandem_wish_of(&tick->hvpa, row).is_raised) {
        /* The HPA decides how large it is: that is above what the VPA would call too much. */
        row->upper.is_set = false;
    }
    const struct hvpa_container *template = rows_template(tick, row->container);
    const struct td_quantity *reference =
        hvpa_request_of(&tick->reference, row->container, resource);
    tick->in_template[tick->row_count++] =
        reference ? hvpa_amount(resource, reference)
                  : hvpa_amount(resource,
                                template ? td_resource_list_get(&template->requests, name) : NULL);
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
    emergencies_recall(tick);
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
        if (was && td_tandem_wish_of(&tick->hvpa, row).target < hvpa_amount(row->resource, was)) {
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

static void keep_emergencies(struct hvpa_tick *tick)
{
    td_time last = tick->item->last_tick;
    int64_t seconds = last == TD_TIME_NONE ? 0 : (tick->now - last) / TD_SECOND;
    for (size_t i = 0; i < tick->row_count; i++) {
        const struct td_tandem_row *row = &tick->rows[i];
        bool is_more = tick->outcomes[i].request > row->request && !tick->hvpa.paused;
        if (row->resource != TD_HVPA_MEMORY) {
            continue;
        }
        if (td_tandem_is_pod(row->container) && is_more) {
            tick->emergency_count = 0; /* room for every container */
        }
        struct td_hvpa_emergency *flag = emergency_find(tick, row->container);
        if (!flag) {
            continue;
        }
        if (tick->outcomes[i].can_emergency_act) {
            flag->usable_seconds += seconds > 0 ? seconds : 0;
        }
        if (is_more) {
            *flag = tick->emergencies[--tick->emergency_count]; /* it has what it needed */
        }
    }
}

void hvpa_rows_keep(struct hvpa_tick *tick)
{
    keep_emergencies(tick);
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
