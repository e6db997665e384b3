/*
 * Upstream's VPA with its default settings, as a policy: histograms and OOM rule of the
 * recommender, its estimator, and the updater's question whether a pod is to be changed. One
 * container in one pod; an update starts the pod anew.
 */
#include "decide/vertical/recommender/aggregate.h"
#include "decide/vertical/recommender/recommend.h"
#include "decide/vertical/updater/priority.h"
#include "sim/replay/replay_policy.h"

#define ARENA_BYTES_MAX ((size_t)1 << 20) /* of one decision */
#define CONTAINER TD_STR("container")
#define WINDOW_SAMPLES 5 /* one a minute: confidence counts them */

struct upstream {
    struct td_vertical_config config;
    struct td_aggregate aggregate;
    struct td_container_state container;
    struct td_arena arena; /* of one decision */
    td_time pod_started;
    td_time container_started;
    td_time killed_started; /* the life that the latest OOM ended; valid when has_oom */
    td_time killed_at;
    bool has_oom;
};

static void upstream_init(void *state, const struct td_trace *trace)
{
    struct upstream *upstream = state;
    td_time start = trace->count > 0 ? trace->items[0].time * TD_SECOND : 0;
    upstream->config = td_vertical_config_default();
    upstream->config.is_upstream_exact = true;
    td_aggregate_init(&upstream->aggregate, &upstream->config, start);
    td_aggregate_set_policy(&upstream->aggregate, &upstream->config, NULL);
    td_container_state_init(&upstream->container);
    td_arena_init(&upstream->arena, ARENA_BYTES_MAX);
    upstream->pod_started = start;
    upstream->container_started = start;
}

static void upstream_done(void *state)
{
    struct upstream *upstream = state;
    td_aggregate_done(&upstream->aggregate);
    td_arena_done(&upstream->arena);
}

static void upstream_learn(struct upstream *upstream, const struct replay_sample *sample,
                           int64_t requested_bytes)
{
    td_time now = sample->time * TD_SECOND;
    const struct td_oom_rule rule = td_learn_rule(&upstream->aggregate.policy, &upstream->config);
    bool is_accepted = td_container_cpu(&upstream->container, now, sample->cpu_milli);
    for (int i = 0; is_accepted && i < WINDOW_SAMPLES; i++) {
        td_aggregate_add_cpu(&upstream->aggregate, &upstream->config, now, sample->cpu_milli);
    }
    struct td_peak_change change =
        td_container_memory(&upstream->container, &rule, now, sample->memory_bytes);
    td_aggregate_apply(&upstream->aggregate, &upstream->config, &change);
    if (sample->is_oom) {
        (void)td_aggregate_oom(&upstream->aggregate, &upstream->config, &upstream->container, now,
                               requested_bytes); /* a refused one teaches nothing, as upstream */
        upstream->has_oom = true;
        upstream->killed_started = upstream->container_started;
        upstream->killed_at = now;
        upstream->container_started = now;
    }
}

static struct td_resource_list request_list(struct td_arena *arena,
                                            const struct replay_request *request)
{
    struct td_resource_list list = {.items = td_arena_array(arena, struct td_resource_amount, 2)};
    if (request->cpu_milli > 0) {
        list.items[list.count++] = (struct td_resource_amount){
            .name = TD_STR("cpu"),
            .quantity = td_quantity_new_milli(request->cpu_milli, TD_QUANTITY_DECIMAL_SI)};
    }
    if (request->memory_bytes > 0) {
        list.items[list.count++] = (struct td_resource_amount){
            .name = TD_STR("memory"),
            .quantity = td_quantity_new(request->memory_bytes, TD_QUANTITY_BINARY_SI)};
    }
    return list;
}

static bool upstream_judge(struct upstream *upstream, td_time now,
                           const struct td_recommendation *recommendation,
                           const struct replay_request *request)
{
    static const struct td_update_config config = {.threshold = TD_UPDATE_THRESHOLD_DEFAULT,
                                                   .lifetime = TD_UPDATE_LIFETIME_DEFAULT,
                                                   .oom_threshold =
                                                       TD_UPDATE_OOM_THRESHOLD_DEFAULT};
    static const struct td_vpa_gates gates = {.in_place = false};
    const struct td_vpa vpa = {.mode = TD_VPA_RECREATE};
    const struct td_vertical_container container = {
        .name = CONTAINER,
        .spec_requests = request_list(&upstream->arena, request),
        .has_spec_requests = true,
        .has_status = true,
        .has_last_terminated = upstream->has_oom,
        .last_terminated_reason = TD_STR("OOMKilled"),
        .last_started = upstream->killed_started,
        .last_finished = upstream->killed_at,
    };
    const struct td_vertical_pod pod = {.phase = TD_POD_RUNNING,
                                        .start_time = upstream->pod_started,
                                        .containers = &container,
                                        .container_count = 1};
    const struct td_update_question question = {.vpa = &vpa,
                                                .pod = &pod,
                                                .recommendation = recommendation,
                                                .config = &config,
                                                .gates = &gates,
                                                .now = now};
    return td_update_judge(&upstream->arena, &question).verdict == TD_UPDATE_ACCEPTED;
}

static void upstream_after(void *state, const struct replay_sample *sample,
                           struct replay_request *request)
{
    struct upstream *upstream = state;
    td_time now = sample->time * TD_SECOND;
    upstream_learn(upstream, sample, request->memory_bytes);
    const struct td_recommend_terms terms = {
        .config = &upstream->config, .estimator = &td_estimator_upstream, .now = now};
    const struct td_subject subject = {.container = CONTAINER, .aggregate = &upstream->aggregate};
    struct td_recommendation recommendation;
    td_recommend(&upstream->arena, &terms, &subject, 1, &recommendation, NULL);
    const struct td_resource_list *target = &recommendation.containers[0].target;
    struct replay_request wanted = {
        .cpu_milli = td_quantity_milli(td_resource_list_get(target, TD_STR("cpu"))),
        .memory_bytes = td_quantity_value(td_resource_list_get(target, TD_STR("memory"))),
    };
    bool is_different =
        wanted.cpu_milli != request->cpu_milli || wanted.memory_bytes != request->memory_bytes;
    if (is_different && upstream_judge(upstream, now, &recommendation, request)) {
        *request = wanted;
        upstream->pod_started = now;
        upstream->container_started = now;
        upstream->has_oom = false; /* the new pod has not been killed yet */
    }
    td_arena_reset(&upstream->arena);
}

const struct td_replay_policy replay_upstream = {.name = "upstream",
                                                 .title = "upstream VPA",
                                                 .state_bytes = sizeof(struct upstream),
                                                 .init = upstream_init,
                                                 .done = upstream_done,
                                                 .after = upstream_after};
