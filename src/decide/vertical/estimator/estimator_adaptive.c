/*
 * The adaptive estimator behind the interface of estimator.h, once for each risk. All three share
 * one state and one format of saving, so changing the risk of a VPA forgets nothing.
 */
#include <stdio.h>

#include "decide/vertical/estimator/adaptive.h"
#include "decide/vertical/estimator/estimator.h"

#define DETAIL_BYTES_MAX ((size_t)1024)
#define YOUNG_HOURS 48.0

/* Rounded down, before 1970 too. */
static int64_t seconds_of(td_time time)
{
    return time / TD_SECOND - (time % TD_SECOND < 0 ? 1 : 0);
}

static void adaptive_init(void *state)
{
    td_adaptive_init(state);
}

static void adaptive_add_cpu(void *state, td_time time, int64_t milli, int64_t limit_milli)
{
    td_adaptive_cpu(state, td_adaptive_params_of(TD_RISK_BALANCED), seconds_of(time), milli,
                    limit_milli);
}

static void adaptive_add_memory(void *state, td_time time, int64_t bytes)
{
    td_adaptive_memory(state, seconds_of(time), bytes);
}

static void adaptive_add_oom(void *state, td_time time, int64_t requested_bytes)
{
    td_adaptive_oom(state, td_adaptive_params_of(TD_RISK_BALANCED), seconds_of(time),
                    requested_bytes);
}

static struct td_json *adaptive_save(struct td_arena *arena, const void *state)
{
    return td_adaptive_save(arena, state);
}

static int adaptive_load(void *state, const struct td_json *saved, struct td_error *err)
{
    return td_adaptive_load(state, saved, err);
}

static struct td_bound_account bound_account(int64_t base, int64_t estimate, int64_t target,
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

static void fill_text(struct td_resource_account *account, enum td_adaptive_reason reason,
                      const struct td_buf *detail)
{
    td_str text = td_str_cut_utf8(td_buf_str(detail), sizeof(account->detail) - 1);
    (void)snprintf(account->detail, sizeof(account->detail), "%.*s", TD_STR_ARG(text));
    (void)snprintf(account->reason, sizeof(account->reason), "%s", td_adaptive_reason_name(reason));
}

static void account_cpu(const struct td_adaptive_cpu_answer *answer, int64_t floor,
                        struct td_resource_account *account)
{
    td_auto_buf text;
    td_buf_init(&text, DETAIL_BYTES_MAX);
    td_adaptive_write_cpu(answer, true, &text);
    bool is_floor = answer->reason == TD_ADAPTIVE_MINIMUM || answer->reason == TD_ADAPTIVE_NO_DATA;
    account->lacks_data = answer->reason == TD_ADAPTIVE_NO_DATA;
    account->margin_fraction = (double)answer->margin / 1000;
    account->confidence = (double)answer->slots / TD_ADAPTIVE_SLOTS;
    account->floor = floor;
    account->target = bound_account(answer->peak, answer->target, answer->target, is_floor);
    account->lower = bound_account(answer->peak, answer->lower, answer->target, is_floor);
    account->upper = bound_account(answer->peak, answer->upper, answer->target, is_floor);
    account->target.percentile = (double)answer->quantile / 1000;
    fill_text(account, answer->reason, &text);
}

static void account_memory(const struct td_adaptive_memory_answer *answer, int64_t seen,
                           const struct td_adaptive_params *params,
                           struct td_resource_account *account)
{
    td_auto_buf text;
    td_buf_init(&text, DETAIL_BYTES_MAX);
    td_adaptive_write_memory(answer, params, true, &text);
    bool is_floor = answer->reason == TD_ADAPTIVE_MINIMUM || answer->reason == TD_ADAPTIVE_NO_DATA;
    account->lacks_data = answer->reason == TD_ADAPTIVE_NO_DATA;
    account->margin_fraction = (double)answer->margin / 1000;
    account->confidence = (double)seen / YOUNG_HOURS;
    account->floor = params->min_mem;
    account->target = bound_account(answer->peak, answer->target, answer->target, is_floor);
    account->lower = bound_account(answer->peak, answer->lower, answer->target, is_floor);
    account->upper = bound_account(answer->peak, answer->upper, answer->target, is_floor);
    account->target.percentile = 1;
    fill_text(account, answer->reason, &text);
}

/* Ours unless the user set the pod's minima. */
static struct td_adaptive_params params_for(const struct td_estimator_input *input,
                                            enum td_adaptive_risk risk)
{
    const struct td_vertical_config usual = td_vertical_config_default();
    struct td_adaptive_params params = *td_adaptive_params_of(risk);
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

static void recommend_with(const struct td_estimator_input *input, enum td_adaptive_risk risk,
                           struct td_estimate *ret, struct td_account *account)
{
    struct td_adaptive empty;
    td_adaptive_init(&empty);
    const struct td_adaptive *state = input->state ? input->state : &empty;
    struct td_adaptive_params params = params_for(input, risk);
    struct td_adaptive_answer answer;
    td_adaptive_recommend(state, &params, seconds_of(input->now), &answer);
    *ret = (struct td_estimate){
        .cpu = {answer.cpu.target, answer.cpu.lower, answer.cpu.upper},
        .memory = {answer.memory.target, answer.memory.lower, answer.memory.upper},
    };
    account->is_adaptive = state->first >= 0;
    account->adaptive_since = state->first * TD_SECOND;
    account_cpu(&answer.cpu, params.min_cpu, &account->cpu);
    account_memory(&answer.memory, state->seen, &params, &account->memory);
}

static void recommend_balanced(const struct td_estimator_input *input, struct td_estimate *ret,
                               struct td_account *account)
{
    recommend_with(input, TD_RISK_BALANCED, ret, account);
}

static void recommend_careful(const struct td_estimator_input *input, struct td_estimate *ret,
                              struct td_account *account)
{
    recommend_with(input, TD_RISK_CAREFUL, ret, account);
}

static void recommend_frugal(const struct td_estimator_input *input, struct td_estimate *ret,
                             struct td_account *account)
{
    recommend_with(input, TD_RISK_FRUGAL, ret, account);
}

#define ADAPTIVE_STATE                                                                             \
    .state_bytes = sizeof(struct td_adaptive), .init = adaptive_init, .add_cpu = adaptive_add_cpu, \
    .add_memory = adaptive_add_memory, .add_oom = adaptive_add_oom, .save = adaptive_save,         \
    .load = adaptive_load

const struct td_estimator td_estimator_adaptive = {
    .name = "adaptive", ADAPTIVE_STATE, .recommend = recommend_balanced};
const struct td_estimator td_estimator_adaptive_careful = {
    .name = "adaptive-careful", ADAPTIVE_STATE, .recommend = recommend_careful};
const struct td_estimator td_estimator_adaptive_frugal = {
    .name = "adaptive-frugal", ADAPTIVE_STATE, .recommend = recommend_frugal};
