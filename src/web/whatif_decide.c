/*
 * One point of the history: what was used is learnt as the recommender learns it, the estimator
 * recommends, the HPA's own rule counts the replicas that the load would need, and an Hvpa decides
 * between both as its controller lets it decide. The load is what all pods used together; more pods
 * share it, fewer have more of it.
 */
#include "base/alloc.h"
#include "base/timefmt.h"
#include "decide/horizontal/replicas.h"
#include "decide/tandem/coupling.h"
#include "decide/vertical/recommender/account.h"
#include "decide/vertical/recommender/recommend.h"
#include "decide/vertical/resourcelist.h"
#include "web/whatif.h"

#define DECIDE_TOLERANCE 0.1 /* of the HPA, the usual one */
#define DECIDE_PODS_SAMPLED 10
#define DECIDE_AMOUNT_MAX 1e13 /* times the most replicas it still is an int64 */

void whatif_learner_init(struct web_whatif *whatif)
{
    const struct td_estimator *estimator = whatif->settings.estimator;
    td_aggregate_init(&whatif->aggregate, &whatif->config, whatif->span.first * TD_MINUTE);
    td_aggregate_set_policy(&whatif->aggregate, &whatif->config, NULL);
    td_container_state_init(&whatif->learnt);
    if (estimator->state_bytes > 0) {
        whatif->state = td_alloc_zero(1, estimator->state_bytes);
        estimator->init(whatif->state);
    }
}

void whatif_learner_done(struct web_whatif *whatif)
{
    td_aggregate_done(&whatif->aggregate);
    td_free(whatif->state);
}

static void learn(struct web_whatif *whatif, const struct td_ring *ring, size_t i, td_time now)
{
    const struct td_oom_rule rule = td_learn_rule(&whatif->aggregate.policy, &whatif->config);
    const struct td_estimator *estimator = whatif->settings.estimator;
    double usual = td_ring_sample(ring, i, TD_SAMPLE_CPU_P50);
    double most = td_ring_sample(ring, i, TD_SAMPLE_CPU_MAX);
    double memory = td_ring_sample(ring, i, TD_SAMPLE_MEMORY_MAX);
    double pods = td_ring_sample(ring, i, TD_SAMPLE_READY);
    double before = i > 0 ? whatif->points[i - 1].request[TD_MODEL_CPU] : -1;
    if (most >= 0) {
        const struct td_cpu_use use = {.milli = (int64_t)most,
                                       .request_milli = before > 0 ? (int64_t)before : 0};
        td_aggregate_add_cpu(&whatif->aggregate, &whatif->config, now, use.milli);
        for (int p = 1; p < DECIDE_PODS_SAMPLED && p < pods; p++) {
            td_aggregate_add_cpu(&whatif->aggregate, &whatif->config, now, (int64_t)usual);
        }
        if (whatif->state) {
            estimator->add_cpu(whatif->state, now, &use);
        }
    }
    if (memory >= 0) {
        struct td_peak_change change =
            td_container_memory(&whatif->learnt, &rule, now, (int64_t)memory);
        td_aggregate_apply(&whatif->aggregate, &whatif->config, &change);
        if (whatif->state) {
            estimator->add_memory(whatif->state, now, (int64_t)memory);
        }
    }
}

static int64_t amount_in(const struct td_resource_list *list, size_t resource)
{
    const struct td_quantity *quantity =
        td_resource_list_get(list, resource == TD_MODEL_CPU ? TD_CPU : TD_MEMORY);
    return !quantity                  ? -1
           : resource == TD_MODEL_CPU ? td_quantity_milli(quantity)
                                      : td_quantity_value(quantity);
}

static const struct td_container_recommendation *recommend(struct web_whatif *whatif, td_time now)
{
    bool is_hvpa = whatif->settings.way == WHATIF_HVPA;
    const struct td_recommend_terms terms = {.config = &whatif->config,
                                             .estimator = whatif->settings.estimator,
                                             .policy = is_hvpa ? &whatif->hvpa.vpa.policy
                                                               : &whatif->policy,
                                             .now = now};
    const struct td_subject subject = {.container = whatif->container,
                                       .aggregate = &whatif->aggregate,
                                       .estimator_state = whatif->state};
    struct td_recommendation made;
    td_recommend(&whatif->scratch, &terms, &subject, 1, &made, NULL);
    return made.container_count > 0 ? &made.containers[0] : NULL;
}

/* ---- Replicas ---- */

/* The HPA's count for the load of that minute, shared by `pods` of `request` each. */
static double count_for(const struct web_whatif *whatif, double load, double request, double pods)
{
    double asked = request < DECIDE_AMOUNT_MAX ? request : DECIDE_AMOUNT_MAX;
    const struct td_hpa_basis basis = {
        .measure = TD_HPA_MEASURE_UTILIZATION,
        .target = (int64_t)whatif->settings.utilization,
        .replicas = (int32_t)pods,
        .tolerance = {.down = DECIDE_TOLERANCE, .up = DECIDE_TOLERANCE},
        .has_pods = true,
        .ready = (size_t)pods,
        .request = (int64_t)(asked * pods),
    };
    double shown = 100 * load / (asked * pods);
    return td_hpa_calc_again(&basis, (int64_t)(shown < 1e9 ? shown : 1e9), false);
}

/* Within the bounds; on the way down the highest of the last minutes. Below 0: not known. */
static double wanted_replicas(struct web_whatif *whatif, const struct td_ring *ring, size_t i,
                              double request, double before)
{
    double ready = td_ring_sample(ring, i, TD_SAMPLE_READY);
    double use = td_ring_sample(ring, i, TD_SAMPLE_CPU_P50);
    double least = whatif->settings.replicas_min > 0 ? whatif->settings.replicas_min : 1;
    double most = whatif->settings.replicas_max > 0 ? whatif->settings.replicas_max : 1e5;
    if (use < 0 || ready <= 0 || request < 1 || before < 1) {
        return -1;
    }
    double wanted = count_for(whatif, use * ready, request, before);
    whatif->desired[i % WHATIF_DOWN_MINUTES] = wanted;
    for (size_t d = 0; wanted < before && d < WHATIF_DOWN_MINUTES; d++) {
        wanted = whatif->desired[d] > wanted ? whatif->desired[d] : wanted;
    }
    wanted = wanted < least ? least : wanted;
    return wanted > most ? most : wanted;
}

/* ---- An Hvpa ---- */

static void row_fill(const struct web_whatif *whatif, struct td_tandem_row *row,
                     const struct td_container_recommendation *made, double request)
{
    size_t r = row->resource == TD_HVPA_CPU ? TD_MODEL_CPU : TD_MODEL_MEMORY;
    const struct td_container_policy *policy =
        td_vpa_container_policy(&whatif->hvpa.vpa.policy, whatif->container);
    const struct {
        const struct td_resource_list *list;
        struct td_tandem_bound *bound;
    } bounds[] = {{&made->lower_bound, &row->lower},
                  {&made->upper_bound, &row->upper},
                  {policy ? &policy->min_allowed : NULL, &row->min_allowed},
                  {policy ? &policy->max_allowed : NULL, &row->max_allowed}};
    int64_t uncapped = amount_in(&made->uncapped_target, r);
    row->target = amount_in(&made->target, r);
    row->uncapped = uncapped >= 0 ? uncapped : row->target;
    row->request = request > 0 ? (int64_t)request : row->target;
    for (size_t b = 0; b < TD_COUNT(bounds); b++) {
        int64_t amount = bounds[b].list ? amount_in(bounds[b].list, r) : -1;
        *bounds[b].bound =
            (struct td_tandem_bound){.is_set = amount >= 0, .amount = amount >= 0 ? amount : 0};
    }
    row->coupling = td_tandem_coupling_of(&whatif->hvpa, whatif->container, row->resource);
    row->coupling.in_template = whatif->asked[r][0] > 0 ? (int64_t)whatif->asked[r][0] : 0;
}

static void decide_hvpa(struct web_whatif *whatif, const struct td_ring *ring,
                        const struct td_container_recommendation *made, td_time now)
{
    struct whatif_point *point = &whatif->points[whatif->done];
    double use = td_ring_sample(ring, whatif->done, TD_SAMPLE_CPU_P50);
    double ready = td_ring_sample(ring, whatif->done, TD_SAMPLE_READY);
    struct td_tandem_row rows[TD_HVPA_RESOURCE_COUNT];
    struct td_tandem_outcome outcomes[TD_HVPA_RESOURCE_COUNT];
    struct td_tandem_decision decision;
    size_t count = 0;
    for (size_t r = 0; made && r < TD_MODEL_RESOURCES; r++) {
        enum td_hvpa_resource resource = r == TD_MODEL_CPU ? TD_HVPA_CPU : TD_HVPA_MEMORY;
        if (amount_in(&made->target, r) >= 0 &&
            td_tandem_controls(&whatif->hvpa, whatif->container, resource)) {
            rows[count] =
                (struct td_tandem_row){.container = whatif->container, .resource = resource};
            row_fill(whatif, &rows[count], made, point->request[r]);
            rows[count].coupling.usage = (struct td_tandem_bound){
                .is_set = resource == TD_HVPA_CPU && rows[count].coupling.is_coupled && use >= 0,
                .amount = use >= 0 ? (int64_t)(use * ready / point->replicas) : 0};
            count++;
        }
    }
    double wanted =
        wanted_replicas(whatif, ring, whatif->done, point->request[TD_MODEL_CPU], point->replicas);
    const struct td_tandem_input in = {
        .hvpa = &whatif->hvpa,
        .replicas = (int32_t)point->replicas,
        .is_horizontal_valid = wanted >= 0,
        .desired_replicas = wanted >= 0 ? (int32_t)wanted : 0,
        .is_vertical_valid = count > 0,
        .rows = rows,
        .row_count = count,
        .last_horizontal = whatif->last_horizontal,
        .last_vertical = whatif->last_vertical,
        .below_thresholds_since = whatif->below_since,
        .now = td_time_to_instant(now),
    };
    td_tandem_decide(&in, outcomes, &decision);
    const struct td_tandem_time at = {.is_set = true, .at = in.now};
    whatif->below_since = decision.below_thresholds_since;
    whatif->last_horizontal = decision.replicas != in.replicas ? at : whatif->last_horizontal;
    point->replicas = decision.replicas;
    for (size_t i = 0; i < count; i++) {
        size_t r = rows[i].resource == TD_HVPA_CPU ? TD_MODEL_CPU : TD_MODEL_MEMORY;
        whatif->last_vertical = outcomes[i].request != rows[i].request ? at : whatif->last_vertical;
        point->request[r] = (double)outcomes[i].request;
    }
}

/* ---- The point ---- */

void whatif_decide(struct web_whatif *whatif, const struct td_ring *ring)
{
    size_t i = whatif->done;
    td_time now = (whatif->span.first + (int64_t)i * whatif->step) * TD_MINUTE;
    struct whatif_point *point = &whatif->points[i];
    double was = td_ring_sample(ring, i, TD_SAMPLE_REPLICAS);
    enum whatif_way way = whatif->settings.way;
    td_arena_reset(&whatif->scratch);
    learn(whatif, ring, i, now);
    const struct td_container_recommendation *made = recommend(whatif, now);
    for (size_t r = 0; r < TD_MODEL_RESOURCES; r++) {
        bool goes_on = way == WHATIF_HVPA && i > 0 && whatif->points[i - 1].request[r] > 0;
        bool is_sized = way == WHATIF_VPA || way == WHATIF_BOTH;
        double target = made && is_sized ? (double)amount_in(&made->target, r) : -1;
        point->request[r] = target > 0 ? target
                            : goes_on  ? whatif->points[i - 1].request[r]
                                       : whatif->asked[r][i];
    }
    point->replicas = way != WHATIF_VPA && i > 0 && whatif->points[i - 1].replicas >= 0
                          ? whatif->points[i - 1].replicas
                          : was;
    if (way == WHATIF_HVPA && point->replicas >= 1) {
        decide_hvpa(whatif, ring, made, now);
    } else if (way == WHATIF_HPA || way == WHATIF_BOTH) {
        double wanted =
            wanted_replicas(whatif, ring, i, point->request[TD_MODEL_CPU], point->replicas);
        point->replicas = wanted >= 0 ? wanted : point->replicas;
    }
}
