/*
 * The list of policies, the walk of one of them over a trace, and the figures of a score.
 */
#include "sim/replay/replay.h"

#include <math.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "decide/vertical/estimator/estimator.h"
#include "sim/replay/replay_policy.h"

#define WINDOWS_PER_DAY 288.0 /* of five minutes; a gap is no container-day */

/* A core costs as much as this many bytes: list prices of the large clouds are near 7.5 GiB. */
#define CORE_BYTES (7.5 * 1024 * 1024 * 1024)

static const struct td_replay_policy own_policies[] = {
    {.name = "as-was", .title = "as it was", .rule = &replay_as_was},
    {.name = "krr", .title = "KRR, daily", .rule = &replay_krr},
    {.name = "oracle", .title = "oracle, a day ahead", .rule = &replay_oracle},
};
#define OWN_COUNT TD_COUNT(own_policies)

bool td_replay_policy_at(size_t index, struct td_replay_policy *ret)
{
    if (index < OWN_COUNT) {
        *ret = own_policies[index];
        return true;
    }
    const struct td_estimator *estimator = td_estimator_at(index - OWN_COUNT);
    if (estimator) {
        *ret = (struct td_replay_policy){.name = estimator->name,
                                         .title = estimator->title,
                                         .rule = &replay_estimator,
                                         .estimator = estimator};
    }
    return estimator != NULL;
}

bool td_replay_policy_find(td_str name, struct td_replay_policy *ret)
{
    struct td_replay_policy policy;
    for (size_t i = 0; td_replay_policy_at(i, &policy); i++) {
        if (td_str_equal(td_str_from(policy.name), name)) {
            *ret = policy;
            return true;
        }
    }
    return false;
}

void td_replay_policy_write_names(struct td_buf *out)
{
    for (size_t i = 0; i < OWN_COUNT; i++) {
        (void)td_buf_append_format(out, "%s, ", own_policies[i].name);
    }
    td_estimator_write_names(out);
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

/* Above its limit a container is killed. */
static int64_t limit_of(const struct td_replay_policy *policy, int64_t request_bytes)
{
    int64_t permille = policy->limit_permille > 0 ? policy->limit_permille : 1000;
    int64_t whole = request_bytes / 1000 * permille;
    return whole + request_bytes % 1000 * permille / 1000;
}

/* The pod that takes the place of one that was gone for a while. */
static void recreate(const struct replay_rule *rule, void *state, const struct td_trace *trace,
                     size_t index, struct replay_request *request)
{
    int64_t time = trace->items[index].time;
    bool is_hole = index > 0 && time - trace->items[index - 1].time > REPLAY_WINDOW + REPLAY_HOLE;
    if (is_hole && rule->recreate) {
        rule->recreate(state, time, request);
    }
}

static void count_change(const struct replay_request *before, const struct replay_request *after,
                         struct td_replay_score *score)
{
    score->changes += is_different(before, after);
    score->cpu_changes += before->cpu_milli != after->cpu_milli;
}

void td_replay_run(const struct td_replay_policy *policy, const struct td_trace *trace,
                   struct td_replay_score *ret)
{
    td_replay_watch(policy, trace, NULL, NULL, ret);
}

void td_replay_watch(const struct td_replay_policy *policy, const struct td_trace *trace,
                     td_replay_watch_fn fn, void *context, struct td_replay_score *ret)
{
    struct td_replay_score score = {.windows = 0};
    const struct replay_rule *rule = policy->rule;
    td_auto_free void *state = td_alloc_zero(1, rule->state_bytes + 1);
    struct replay_request request = {.cpu_milli = 0};
    if (rule->init) {
        rule->init(state, trace, policy);
    }
    if (trace->count > 0) {
        /* Every policy takes over what was really set. */
        request.cpu_milli = trace->items[0].cpu_limit_milli;
        request.memory_bytes = trace->items[0].memory_limit_bytes;
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct td_trace_window *window = &trace->items[i];
        bool is_counted = window->time - trace->items[0].time >= REPLAY_DAY;
        recreate(rule, state, trace, i, &request);
        struct replay_request last = request;
        if (rule->before) {
            rule->before(state, trace, i, &request);
        }
        int64_t limit = limit_of(policy, request.memory_bytes);
        bool is_above = request.memory_bytes > 0 && window->memory_bytes_max > limit;
        if (fn) {
            const struct td_replay_window told = {.index = i,
                                                  .cpu_milli = request.cpu_milli,
                                                  .memory_bytes = request.memory_bytes,
                                                  .limit_bytes = limit,
                                                  .why = request.why,
                                                  .is_oom = is_above};
            fn(context, &told);
        }
        if (is_counted) {
            count_change(&last, &request, &score);
            score_window(window, &request, is_above, &score);
        }
        if (rule->after) {
            bool is_oom = is_above && !rule->is_as_was;
            struct replay_sample sample = {
                .index = i,
                .time = window->time,
                .cpu_milli = window->cpu_milli,
                .memory_bytes = is_oom ? limit : window->memory_bytes_max,
                .limit_bytes = limit,
                .is_oom = is_oom,
            };
            last = request;
            rule->after(state, &sample, &request);
            if (is_counted && last.cpu_milli > 0) { /* else it is made, not changed */
                count_change(&last, &request, &score);
            }
        }
    }
    if (rule->done) {
        rule->done(state);
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
    sum->cpu_changes += score->cpu_changes;
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
        .cpu_changes_per_day = share((double)score->cpu_changes, has_requests),
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
