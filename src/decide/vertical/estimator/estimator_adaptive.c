/*
 * The adaptive estimator behind the interface of estimator.h, once for each risk. All three share
 * one state and one format of saving, so changing the risk of a VPA forgets nothing.
 */
#include "decide/vertical/estimator/estimator_adaptive.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "decide/vertical/estimator/state_json.h"

#define DETAIL_BYTES_MAX ((size_t)1024)
#define YOUNG_HOURS 48.0

static void adaptive_init(void *state)
{
    td_adaptive_init(state);
}

static void adaptive_add_cpu(void *state, td_time time, const struct td_cpu_use *use)
{
    td_adaptive_cpu(state, td_adaptive_params_of(TD_RISK_BALANCED), td_adaptive_seconds(time),
                    use->milli, use->limit_milli);
}

static void adaptive_add_memory(void *state, td_time time, int64_t bytes)
{
    td_adaptive_memory(state, td_adaptive_seconds(time), bytes);
}

static void adaptive_add_oom(void *state, td_time time, const struct td_oom_kill *kill)
{
    td_adaptive_oom(state, td_adaptive_params_of(TD_RISK_BALANCED), td_adaptive_seconds(time),
                    kill->request_bytes);
}

void td_adaptive_store(struct td_arena *arena, const struct td_adaptive *state,
                       struct td_json *annotations)
{
    td_json_set_str(arena, annotations, TD_ADAPTIVE_ANNOTATION,
                    td_json_line(arena, td_adaptive_save(arena, state)));
}

int td_adaptive_restore(struct td_adaptive *state, const struct td_json *annotations,
                        struct td_error *err)
{
    td_adaptive_init(state);
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_json *saved = NULL;
    int code = td_state_read(&arena, annotations, TD_ADAPTIVE_ANNOTATION, &saved, err);
    if (code < 0 || !saved) {
        return code;
    }
    code = td_adaptive_load(state, saved, err);
    return code < 0 ? td_error_wrap(err, code, "tandem.dev/adaptive") : code;
}

static void adaptive_save(struct td_arena *arena, const void *state, struct td_json *annotations)
{
    td_adaptive_store(arena, state, annotations);
}

static int adaptive_load(void *state, const struct td_json *annotations, struct td_error *err)
{
    return td_adaptive_restore(state, annotations, err);
}

struct td_bound_account td_adaptive_bound(int64_t base, int64_t estimate, int64_t target,
                                          bool is_floor)
{
    return (struct td_bound_account){
        .base = base,
        .with_margin = estimate,
        .confidence_factor = target > 0 ? (double)estimate / (double)target : 1.0,
        .estimate = estimate,
        .is_floor = is_floor,
    };
}

void td_adaptive_tell(struct td_resource_account *account, const char *reason,
                      const struct td_buf *detail)
{
    td_str text = td_str_cut_utf8(td_buf_str(detail), sizeof(account->detail) - 1);
    (void)snprintf(account->detail, sizeof(account->detail), "%.*s", TD_STR_ARG(text));
    (void)snprintf(account->reason, sizeof(account->reason), "%s", reason);
}

static void account_cpu(const struct td_adaptive_cpu_answer *answer, int64_t floor,
                        struct td_resource_account *account)
{
    td_auto_buf text = td_buf_capped(DETAIL_BYTES_MAX);
    td_adaptive_write_cpu(answer, true, &text);
    bool is_floor = answer->reason == TD_ADAPTIVE_MINIMUM || answer->reason == TD_ADAPTIVE_NO_DATA;
    account->lacks_data = answer->reason == TD_ADAPTIVE_NO_DATA;
    account->margin_fraction = (double)answer->margin / 1000;
    account->confidence = (double)answer->slots / TD_ADAPTIVE_SLOTS;
    account->floor = floor;
    account->target = td_adaptive_bound(answer->peak, answer->target, answer->target, is_floor);
    account->lower = td_adaptive_bound(answer->peak, answer->lower, answer->target, is_floor);
    account->upper = td_adaptive_bound(answer->peak, answer->upper, answer->target, is_floor);
    account->target.percentile = (double)answer->quantile / 1000;
    td_adaptive_tell(account, td_adaptive_reason_name(answer->reason), &text);
}

static void account_memory(const struct td_adaptive_memory_answer *answer, int64_t seen,
                           const struct td_adaptive_params *params,
                           struct td_resource_account *account)
{
    td_auto_buf text = td_buf_capped(DETAIL_BYTES_MAX);
    td_adaptive_write_memory(answer, params, true, &text);
    bool is_floor = answer->reason == TD_ADAPTIVE_MINIMUM || answer->reason == TD_ADAPTIVE_NO_DATA;
    account->lacks_data = answer->reason == TD_ADAPTIVE_NO_DATA;
    account->margin_fraction = (double)answer->margin / 1000;
    account->confidence = (double)seen / YOUNG_HOURS;
    account->floor = params->min_mem;
    account->target = td_adaptive_bound(answer->peak, answer->target, answer->target, is_floor);
    account->lower = td_adaptive_bound(answer->peak, answer->lower, answer->target, is_floor);
    account->upper = td_adaptive_bound(answer->peak, answer->upper, answer->target, is_floor);
    account->target.percentile = 1;
    td_adaptive_tell(account, td_adaptive_reason_name(answer->reason), &text);
}

struct td_adaptive_params td_adaptive_minima(const struct td_estimator_input *input,
                                             const struct td_adaptive_params *own)
{
    const struct td_vertical_config usual = td_vertical_config_default();
    struct td_adaptive_params params = *own;
    if (input->config->pod_min_cpu_milli < usual.pod_min_cpu_milli ||
        input->config->pod_min_cpu_milli > usual.pod_min_cpu_milli) {
        params.min_cpu = input->min_cpu_milli;
    }
    if (input->config->pod_min_memory_mib < usual.pod_min_memory_mib ||
        input->config->pod_min_memory_mib > usual.pod_min_memory_mib) {
        params.min_mem = input->min_memory_bytes;
    }
    return params;
}

void td_adaptive_estimate_memory(const struct td_estimator_input *input,
                                 const struct td_adaptive *state,
                                 const struct td_adaptive_params *own, struct td_estimate *ret,
                                 struct td_account *account)
{
    struct td_adaptive_params params = td_adaptive_minima(input, own);
    struct td_adaptive_memory_answer answer;
    td_adaptive_recommend_memory(state, &params, td_adaptive_seconds(input->now), &answer);
    ret->memory = (struct td_bounds){answer.target, answer.lower, answer.upper};
    account->is_adaptive = state->first >= 0;
    account->adaptive_since = state->first * TD_SECOND;
    account_memory(&answer, state->seen, &params, &account->memory);
}

void td_adaptive_estimate(const struct td_estimator_input *input, const struct td_adaptive *known,
                          enum td_adaptive_risk risk, struct td_estimate *ret,
                          struct td_account *account)
{
    struct td_adaptive empty;
    td_adaptive_init(&empty);
    const struct td_adaptive *state = known ? known : &empty;
    struct td_adaptive_params params = td_adaptive_minima(input, td_adaptive_params_of(risk));
    struct td_adaptive_answer answer;
    td_adaptive_recommend(state, &params, td_adaptive_seconds(input->now), &answer);
    ret->cpu = (struct td_bounds){answer.cpu.target, answer.cpu.lower, answer.cpu.upper};
    account_cpu(&answer.cpu, params.min_cpu, &account->cpu);
    td_adaptive_estimate_memory(input, state, &params, ret, account);
}

static void recommend_balanced(const struct td_estimator_input *input, struct td_estimate *ret,
                               struct td_account *account)
{
    td_adaptive_estimate(input, input->state, TD_RISK_BALANCED, ret, account);
}

static void recommend_careful(const struct td_estimator_input *input, struct td_estimate *ret,
                              struct td_account *account)
{
    td_adaptive_estimate(input, input->state, TD_RISK_CAREFUL, ret, account);
}

static void recommend_frugal(const struct td_estimator_input *input, struct td_estimate *ret,
                             struct td_account *account)
{
    td_adaptive_estimate(input, input->state, TD_RISK_FRUGAL, ret, account);
}

#define ADAPTIVE_STATE                                                                             \
    .state_bytes = sizeof(struct td_adaptive), .init = adaptive_init, .add_cpu = adaptive_add_cpu, \
    .add_memory = adaptive_add_memory, .add_oom = adaptive_add_oom, .save = adaptive_save,         \
    .load = adaptive_load

const struct td_estimator td_estimator_adaptive = {
    .name = "adaptive", .title = "adaptive", ADAPTIVE_STATE, .recommend = recommend_balanced};
const struct td_estimator td_estimator_adaptive_careful = {.name = "adaptive-careful",
                                                           .title = "adaptive, careful",
                                                           ADAPTIVE_STATE,
                                                           .recommend = recommend_careful};
const struct td_estimator td_estimator_adaptive_frugal = {.name = "adaptive-frugal",
                                                          .title = "adaptive, frugal",
                                                          ADAPTIVE_STATE,
                                                          .recommend = recommend_frugal};
