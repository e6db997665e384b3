/* The adaptive estimator and its apply rule, as a policy. */
#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/adaptive_apply.h"
#include "sim/replay/replay_policy.h"

struct adaptive {
    struct td_adaptive state;
    int64_t changed;
    int64_t oom_at; /* of the latest OOM; valid when has_oom */
    bool has_oom;
    bool is_begun;
};

static void adaptive_init(void *state, const struct td_trace *trace)
{
    struct adaptive *adaptive = state;
    (void)trace;
    td_adaptive_init(&adaptive->state);
}

static void adaptive_after(struct adaptive *adaptive, const struct td_adaptive_params *params,
                           const struct replay_sample *sample, struct replay_request *request)
{
    int64_t now = sample->time;
    if (!adaptive->is_begun) {
        adaptive->is_begun = true;
        adaptive->changed = now;
    }
    td_adaptive_cpu(&adaptive->state, params, now, sample->cpu_milli, 0);
    td_adaptive_memory(&adaptive->state, now, sample->memory_bytes);
    if (sample->is_oom) {
        td_adaptive_oom(&adaptive->state, params, now, request->memory_bytes);
        adaptive->has_oom = true;
        adaptive->oom_at = now;
    }
    struct td_adaptive_answer answer;
    td_adaptive_recommend(&adaptive->state, params, now, &answer);
    const struct td_adaptive_apply_input input = {
        .now = now,
        .changed =
            adaptive->changed > adaptive->state.first ? adaptive->changed : adaptive->state.first,
        .is_oom = adaptive->has_oom && adaptive->oom_at >= adaptive->changed,
        .current = {.cpu_milli = request->cpu_milli, .memory_bytes = request->memory_bytes},
        .target = {.cpu_milli = answer.cpu.target, .memory_bytes = answer.memory.target},
    };
    struct td_adaptive_decision decision = td_adaptive_apply(&input, params);
    bool is_same = decision.request.cpu_milli == request->cpu_milli &&
                   decision.request.memory_bytes == request->memory_bytes;
    if (decision.is_apply && !is_same) {
        request->cpu_milli = decision.request.cpu_milli;
        request->memory_bytes = decision.request.memory_bytes;
        adaptive->changed = now;
        adaptive->has_oom = false;
    }
}

static void balanced_after(void *state, const struct replay_sample *sample,
                           struct replay_request *request)
{
    adaptive_after(state, td_adaptive_params_of(TD_RISK_BALANCED), sample, request);
}

static void careful_after(void *state, const struct replay_sample *sample,
                          struct replay_request *request)
{
    adaptive_after(state, td_adaptive_params_of(TD_RISK_CAREFUL), sample, request);
}

static void frugal_after(void *state, const struct replay_sample *sample,
                         struct replay_request *request)
{
    adaptive_after(state, td_adaptive_params_of(TD_RISK_FRUGAL), sample, request);
}

const struct td_replay_policy replay_adaptive = {.name = "adaptive",
                                                 .title = "adaptive",
                                                 .state_bytes = sizeof(struct adaptive),
                                                 .init = adaptive_init,
                                                 .after = balanced_after};
const struct td_replay_policy replay_adaptive_careful = {.name = "adaptive-careful",
                                                         .title = "adaptive, careful",
                                                         .state_bytes = sizeof(struct adaptive),
                                                         .init = adaptive_init,
                                                         .after = careful_after};
const struct td_replay_policy replay_adaptive_frugal = {.name = "adaptive-frugal",
                                                        .title = "adaptive, frugal",
                                                        .state_bytes = sizeof(struct adaptive),
                                                        .init = adaptive_init,
                                                        .after = frugal_after};
