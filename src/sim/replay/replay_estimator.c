/*
 * An estimator as a policy: histograms and OOM rule of the recommender with upstream's default
 * settings, the estimator, and the updater's question whether a pod is to be changed, which for the
 * adaptive and track estimators is their own rule. One container in one pod; an update by eviction
 * starts the pod anew.
 */
#include "base/alloc.h"
#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/adaptive_apply.h"
#include "decide/vertical/estimator/track.h"
#include "decide/vertical/recommender/aggregate.h"
#include "decide/vertical/recommender/recommend.h"
#include "decide/vertical/updater/priority.h"
#include "sim/replay/replay.h"
#include "sim/replay/replay_policy.h"

#define ARENA_BYTES_MAX ((size_t)1 << 20) /* of one decision */
#define CONTAINER TD_STR("container")
#define WINDOW_SAMPLES 5 /* one a minute: confidence counts them */

struct learner {
    const struct td_estimator *estimator;
    void *state; /* the estimator's own; NULL: it has none */
    struct td_vertical_config config;
    struct td_aggregate aggregate;
    struct td_container_state container;
    struct td_arena arena;             /* of one decision */
    struct td_track_template template; /* one in the proportion of limit to request */
    td_time pod_started;    /* at first, after a hole, or by the latest change of the requests */
    td_time cpu_changed;    /* in place, under track: when each was */
    td_time memory_changed; /* likewise */
    td_time container_started;
    td_time killed_started; /* the life that the latest OOM ended; valid when has_oom */
    td_time killed_at;
    bool has_oom;
};

static void learner_init(void *state, const struct td_trace *trace,
                         const struct td_replay_policy *policy)
{
    struct learner *learner = state;
    const struct td_estimator *estimator = policy->estimator;
    td_time start = trace->count > 0 ? trace->items[0].time * TD_SECOND : 0;
    learner->estimator = estimator;
    if (estimator->state_bytes > 0) {
        learner->state = td_alloc_zero(1, estimator->state_bytes);
        estimator->init(learner->state);
    }
    learner->template = (struct td_track_template){
        .request_bytes = 1000,
        .limit_bytes = policy->limit_permille > 0 ? policy->limit_permille : 1000,
    };
    if (estimator->set_terms) {
        const struct td_estimator_terms terms = {
            .memory_request_bytes = learner->template.request_bytes,
            .memory_limit_bytes = learner->template.limit_bytes,
        };
        estimator->set_terms(learner->state, &terms);
    }
    learner->config = td_vertical_config_default();
    learner->config.is_upstream_exact = true;
    td_aggregate_init(&learner->aggregate, &learner->config, start);
    td_aggregate_set_policy(&learner->aggregate, &learner->config, NULL);
    td_container_state_init(&learner->container);
    td_arena_init(&learner->arena, ARENA_BYTES_MAX);
    learner->pod_started = start;
    learner->cpu_changed = start;
    learner->memory_changed = start;
    learner->container_started = start;
}

static void learner_done(void *state)
{
    struct learner *learner = state;
    td_free(learner->state);
    td_aggregate_done(&learner->aggregate);
    td_arena_done(&learner->arena);
}

static void learner_learn(struct learner *learner, const struct replay_sample *sample,
                          const struct replay_request *request)
{
    td_time now = sample->time * TD_SECOND;
    const struct td_oom_rule rule = td_learn_rule(&learner->aggregate.policy, &learner->config);
    bool is_accepted = td_container_cpu(&learner->container, now, sample->cpu_milli);
    for (int i = 0; is_accepted && i < WINDOW_SAMPLES; i++) {
        td_aggregate_add_cpu(&learner->aggregate, &learner->config, now, sample->cpu_milli);
    }
    struct td_peak_change change =
        td_container_memory(&learner->container, &rule, now, sample->memory_bytes);
    td_aggregate_apply(&learner->aggregate, &learner->config, &change);
    if (learner->state) {
        const struct td_cpu_use use = {.milli = sample->cpu_milli,
                                       .request_milli = request->cpu_milli};
        learner->estimator->add_cpu(learner->state, now, &use);
        learner->estimator->add_memory(learner->state, now, sample->memory_bytes);
    }
    if (!sample->is_oom) {
        return;
    }
    if (learner->state) {
        const struct td_oom_kill kill = {.request_bytes = request->memory_bytes,
                                         .limit_bytes = sample->limit_bytes};
        learner->estimator->add_oom(learner->state, now, &kill);
    }
    (void)td_aggregate_oom(&learner->aggregate, &learner->config, &learner->container, now,
                           request->memory_bytes); /* a refused one teaches nothing, as upstream */
    learner->has_oom = true;
    learner->killed_started = learner->container_started;
    learner->killed_at = now;
    learner->container_started = now;
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

/* Says why in `ret_why`. */
static bool learner_judge(struct learner *learner, td_time now,
                          const struct td_recommendation *recommendation,
                          const struct replay_request *request, const char **ret_why)
{
    static const struct td_update_config config = {.threshold = TD_UPDATE_THRESHOLD_DEFAULT,
                                                   .lifetime = TD_UPDATE_LIFETIME_DEFAULT,
                                                   .oom_threshold =
                                                       TD_UPDATE_OOM_THRESHOLD_DEFAULT};
    static const struct td_vpa_gates gates = {.in_place = false};
    const struct td_vpa vpa = {.mode = TD_VPA_RECREATE};
    const struct td_pod_container container = {
        .name = CONTAINER,
        .spec_requests = request_list(&learner->arena, request),
        .has_spec_requests = true,
        .has_status = true,
        .has_last_terminated = learner->has_oom,
        .last_terminated_reason = TD_STR("OOMKilled"),
        .last_started = learner->killed_started,
        .last_finished = learner->killed_at,
    };
    const struct td_pod pod = {.phase = TD_POD_RUNNING,
                               .start_time = learner->pod_started,
                               .containers = &container,
                               .container_count = 1};
    const struct td_update_question question = {.vpa = &vpa,
                                                .pod = &pod,
                                                .recommendation = recommendation,
                                                .config = &config,
                                                .gates = &gates,
                                                .now = now};
    struct td_update_answer answer = td_update_judge(&learner->arena, &question);
    *ret_why = answer.priority.is_outside ? "the request is outside the recommended bounds"
               : answer.is_quick_oom      ? "killed soon after its start"
                                          : "old enough, and off the target by more than 10 %";
    return answer.verdict == TD_UPDATE_ACCEPTED;
}

static const char *apply_words(enum td_adaptive_apply_reason reason)
{
    static const char *const words[] = {
        [TD_APPLY_NO_REQUEST] = "there was no request",
        [TD_APPLY_OOM] = "killed for memory",
        [TD_APPLY_INCREASE] = "the target is above the band",
        [TD_APPLY_DECREASE] = "the target has been below the band for long enough",
        [TD_APPLY_WAITING] = "a decrease is due later",
        [TD_APPLY_IN_BAND] = "the target is within the band",
    };
    return words[reason];
}

/* What the adaptive estimator's rule makes of its target; false: the requests stay. */
static bool learner_adapt(const struct learner *learner, td_time now,
                          const struct td_account *account, const struct replay_request *request,
                          struct replay_request *wanted)
{
    td_time changed = learner->pod_started > account->adaptive_since ? learner->pod_started
                                                                     : account->adaptive_since;
    const struct td_adaptive_apply_input input = {
        .now = now / TD_SECOND,
        .changed = changed / TD_SECOND,
        .is_oom = learner->has_oom && learner->killed_at >= learner->pod_started,
        .current = {.cpu_milli = request->cpu_milli, .memory_bytes = request->memory_bytes},
        .target = {.cpu_milli = wanted->cpu_milli, .memory_bytes = wanted->memory_bytes},
    };
    /* What the risks differ in is no part of this rule. */
    struct td_adaptive_decision decision =
        td_adaptive_apply(&input, td_adaptive_params_of(TD_RISK_BALANCED));
    *wanted = (struct replay_request){.cpu_milli = decision.request.cpu_milli,
                                      .memory_bytes = decision.request.memory_bytes,
                                      .why = apply_words(decision.reason)};
    return decision.is_apply;
}

static td_time latest(td_time a, td_time b, td_time c)
{
    td_time later = a > b ? a : b;
    return later > c ? later : c;
}

/* The track estimator's rule for CPU and adaptive's for memory, each for itself and in place. */
static bool learner_track(struct learner *learner, td_time now, const struct td_account *account,
                          const struct replay_request *request, struct replay_request *wanted)
{
    struct td_adaptive_params params = td_track_memory_params(&learner->template, TD_RISK_BALANCED);
    td_time memory_changed =
        latest(learner->memory_changed, learner->pod_started, account->adaptive_since);
    const struct td_track_apply_input cpu = {
        .now = now / TD_SECOND,
        .changed =
            latest(learner->cpu_changed, learner->pod_started, account->tracked_since) / TD_SECOND,
        .current = request->cpu_milli,
        .target = wanted->cpu_milli,
    };
    const struct td_adaptive_apply_input memory = {
        .now = now / TD_SECOND,
        .changed = memory_changed / TD_SECOND,
        .is_oom = learner->has_oom && learner->killed_at >= memory_changed,
        .current = {.cpu_milli = 1, .memory_bytes = request->memory_bytes},
        .target = {.cpu_milli = 1, .memory_bytes = wanted->memory_bytes},
    };
    struct td_track_decision of_cpu =
        td_track_apply(&cpu, td_track_params_find(td_str_from(account->tracked_risk)));
    struct td_adaptive_decision of_memory = td_adaptive_apply(&memory, &params);
    wanted->cpu_milli = of_cpu.request;
    wanted->memory_bytes = of_memory.request.memory_bytes;
    wanted->why = apply_words(of_memory.is_apply ? of_memory.reason : of_cpu.reason);
    if (wanted->cpu_milli != request->cpu_milli) {
        learner->cpu_changed = now;
    }
    if (wanted->memory_bytes != request->memory_bytes) {
        learner->memory_changed = now;
        learner->has_oom = false; /* this was the answer to it */
    }
    return true;
}

/* What is recommended, in the learner's arena; the request where nothing is. */
static const struct td_account *learner_recommend(struct learner *learner, td_time now,
                                                  const struct replay_request *request,
                                                  struct td_recommendation *recommendation,
                                                  struct replay_request *wanted)
{
    const struct td_recommend_terms terms = {
        .config = &learner->config, .estimator = learner->estimator, .now = now};
    const struct td_subject subject = {.container = CONTAINER,
                                       .aggregate = &learner->aggregate,
                                       .estimator_state = learner->state};
    struct td_account *account;
    td_recommend(&learner->arena, &terms, &subject, 1, recommendation, &account);
    const struct td_resource_list *target = &recommendation->containers[0].target;
    const struct td_quantity *cpu = td_resource_list_get(target, TD_STR("cpu"));
    const struct td_quantity *memory = td_resource_list_get(target, TD_STR("memory"));
    *wanted = (struct replay_request){
        .cpu_milli = cpu ? td_quantity_milli(cpu) : request->cpu_milli,
        .memory_bytes = memory ? td_quantity_value(memory) : request->memory_bytes,
    };
    return account;
}

/* The new pod has not been killed yet. */
static void learner_restart(struct learner *learner, td_time now)
{
    learner->pod_started = now;
    learner->container_started = now;
    learner->has_oom = false;
}

static void learner_recreate(void *state, int64_t time, struct replay_request *request)
{
    struct learner *learner = state;
    struct td_recommendation recommendation;
    struct replay_request wanted;
    (void)learner_recommend(learner, time * TD_SECOND, request, &recommendation, &wanted);
    *request = wanted;
    request->why = "a new pod, after a hole in the trace";
    learner_restart(learner, time * TD_SECOND);
    td_arena_reset(&learner->arena);
}

static void learner_after(void *state, const struct replay_sample *sample,
                          struct replay_request *request)
{
    struct learner *learner = state;
    td_time now = sample->time * TD_SECOND;
    struct td_recommendation recommendation;
    struct replay_request wanted;
    learner_learn(learner, sample, request);
    const struct td_account *account =
        learner_recommend(learner, now, request, &recommendation, &wanted);
    const char *why = NULL;
    bool is_changed = account->tracked_risk ? learner_track(learner, now, account, request, &wanted)
                      : account->is_adaptive
                          ? learner_adapt(learner, now, account, request, &wanted)
                          : learner_judge(learner, now, &recommendation, request, &why);
    wanted.why = why ? why : wanted.why;
    bool is_different =
        wanted.cpu_milli != request->cpu_milli || wanted.memory_bytes != request->memory_bytes;
    if (is_changed && is_different) {
        *request = wanted;
        if (!account->tracked_risk) {
            learner_restart(learner, now);
        }
    }
    td_arena_reset(&learner->arena);
}

const struct replay_rule replay_estimator = {.state_bytes = sizeof(struct learner),
                                             .init = learner_init,
                                             .done = learner_done,
                                             .recreate = learner_recreate,
                                             .after = learner_after};
