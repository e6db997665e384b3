#include "sim/replay/replay.h"

#include <math.h>

#include "base/alloc.h"
#include "sim/replay/replay_policy.h"

#define WINDOWS_PER_DAY 288.0 /* of five minutes; a gap is no container-day */

/* A core costs as much as this many bytes: list prices of the large clouds are near 7.5 GiB. */
#define CORE_BYTES (7.5 * 1024 * 1024 * 1024)

static const struct td_replay_policy *const policies[] = {
    &replay_as_was,           &replay_upstream,        &replay_krr,    &replay_adaptive,
    &replay_adaptive_careful, &replay_adaptive_frugal, &replay_oracle,
};

const struct td_replay_policy *td_replay_policy_find(td_str name)
{
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        if (td_str_equal(td_str_from(policies[i]->name), name)) {
            return policies[i];
        }
    }
    return NULL;
}

const char *td_replay_policy_name(const struct td_replay_policy *policy)
{
    return policy->name;
}

const char *td_replay_policy_title(const struct td_replay_policy *policy)
{
    return policy->title;
}

const char *td_replay_policy_names(void)
{
    return "as-was, upstream, krr, adaptive, adaptive-careful, adaptive-frugal, oracle";
}

static int64_t positive(int64_t value)
{
    return value > 0 ? value : 0;
}

static void score_window(const struct td_trace_window *window, const struct replay_request *request,
                         bool is_killed, struct td_replay_score *score)
{
    score->windows++;
    if (request->cpu_milli > 0) {
        score->cpu_windows++;
        score->cpu_requested += (double)request->cpu_milli;
        score->cpu_slack += (double)positive(request->cpu_milli - window->cpu_milli);
        score->cpu_used += (double)window->cpu_milli;
        score->cpu_excess += (double)positive(window->cpu_milli - request->cpu_milli);
        score->cpu_overruns += window->cpu_milli > request->cpu_milli;
        score->cpu_throttles += window->cpu_p90_milli > request->cpu_milli;
    }
    if (request->memory_bytes > 0) {
        score->memory_windows++;
        score->memory_requested += (double)request->memory_bytes;
        score->memory_slack += (double)positive(request->memory_bytes - window->memory_bytes);
        score->memory_overruns += window->memory_bytes_max > request->memory_bytes;
        score->ooms += is_killed;
    }
}

static bool is_different(const struct replay_request *a, const struct replay_request *b)
{
    return a->cpu_milli != b->cpu_milli || a->memory_bytes != b->memory_bytes;
}

void td_replay_run(const struct td_replay_policy *policy, const struct td_trace *trace,
                   struct td_replay_score *ret)
{
    struct td_replay_score score = {.windows = 0};
    td_auto_free void *state = td_alloc_zero(1, policy->state_bytes + 1);
    struct replay_request request = {.cpu_milli = 0};
    if (policy->init) {
        policy->init(state, trace);
    }
    if (trace->count > 0) {
        /* Every policy takes over what was really set. */
        request.cpu_milli = trace->items[0].cpu_limit_milli;
        request.memory_bytes = trace->items[0].memory_limit_bytes;
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct td_trace_window *window = &trace->items[i];
        bool is_counted = window->time - trace->items[0].time >= REPLAY_DAY;
        struct replay_request last = request;
        if (policy->before) {
            policy->before(state, trace, i, &request);
        }
        bool is_above = request.memory_bytes > 0 && window->memory_bytes_max > request.memory_bytes;
        if (is_counted) {
            score.changes += is_different(&last, &request);
            score_window(window, &request, is_above, &score);
        }
        if (policy->after) {
            bool is_oom = is_above && !policy->is_as_was;
            struct replay_sample sample = {
                .index = i,
                .time = window->time,
                .cpu_milli = window->cpu_milli,
                .memory_bytes = is_oom ? request.memory_bytes : window->memory_bytes_max,
                .is_oom = is_oom,
            };
            last = request;
            policy->after(state, &sample, &request);
            /* A request that was unknown is made, not changed. */
            score.changes += is_counted && last.cpu_milli > 0 && is_different(&last, &request);
        }
    }
    if (policy->done) {
        policy->done(state);
    }
    score.containers = score.windows > 0;
    score.containers_oom = score.ooms > 0;
    *ret = score;
}

void td_replay_score_add(struct td_replay_score *sum, const struct td_replay_score *score)
{
    sum->windows += score->windows;
    sum->cpu_windows += score->cpu_windows;
    sum->memory_windows += score->memory_windows;
    sum->cpu_requested += score->cpu_requested;
    sum->cpu_slack += score->cpu_slack;
    sum->cpu_used += score->cpu_used;
    sum->cpu_excess += score->cpu_excess;
    sum->cpu_overruns += score->cpu_overruns;
    sum->cpu_throttles += score->cpu_throttles;
    sum->memory_requested += score->memory_requested;
    sum->memory_slack += score->memory_slack;
    sum->memory_overruns += score->memory_overruns;
    sum->ooms += score->ooms;
    sum->changes += score->changes;
    sum->containers += score->containers;
    sum->containers_oom += score->containers_oom;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : (double)NAN;
}

static double cost_of(const struct td_replay_score *score)
{
    return score->cpu_requested / 1000 + score->memory_requested / CORE_BYTES;
}

struct td_replay_figures td_replay_figures(const struct td_replay_score *score,
                                           const struct td_replay_score *as_was)
{
    double days = (double)score->windows / WINDOWS_PER_DAY;
    /* Costs are compared only where all of what was set is known. */
    bool is_comparable = as_was->cpu_windows == score->cpu_windows &&
                         as_was->memory_windows == score->memory_windows;
    double has_requests = score->cpu_windows > 0 ? days : 0;
    return (struct td_replay_figures){
        .cpu_slack = share(score->cpu_slack, score->cpu_requested),
        .cpu_overrun = share((double)score->cpu_overruns, (double)score->cpu_windows),
        .cpu_excess = share(score->cpu_excess, score->cpu_used),
        .throttled = share((double)score->cpu_throttles, (double)score->cpu_windows),
        .memory_slack = share(score->memory_slack, score->memory_requested),
        .memory_overrun = share((double)score->memory_overruns, (double)score->memory_windows),
        .ooms_per_day = share((double)score->ooms, has_requests),
        .changes_per_day = share((double)score->changes, has_requests),
        .cost = is_comparable ? share(cost_of(score), cost_of(as_was)) : (double)NAN,
        .container_days = days,
    };
}

void td_replay_count(const struct td_trace *trace, int64_t *ret_windows, int64_t *ret_censored)
{
    int64_t windows = 0;
    int64_t censored = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct td_trace_window *window = &trace->items[i];
        if (window->time - trace->items[0].time >= REPLAY_DAY) {
            bool is_cpu =
                window->cpu_limit_milli > 0 && window->cpu_p90_milli >= window->cpu_limit_milli;
            bool is_memory = window->memory_limit_bytes > 0 &&
                             window->memory_bytes_max >= window->memory_limit_bytes;
            windows++;
            censored += is_cpu || is_memory;
        }
    }
    *ret_windows = windows;
    *ret_censored = censored;
}
