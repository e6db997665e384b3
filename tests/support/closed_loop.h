/*
 * A closed loop in virtual time: a demand comes in, the pods there are share it, a horizontal and a
 * vertical decider look at what they use, and either the coordinator decides for both or each acts
 * alone, as separate autoscalers do. One container, cpu only; a tick every 15 s. It shows what a
 * setting does over hours in a millisecond, and that a loop which is meant to settle does. Pure:
 * the ticks are a function of the options. In a tick, demand over ready pods is what each uses, the
 * deciders look at it, and their verdicts are coordinated or carried out one beside the other.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/hvpa/hvpa.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/timefmt.h"
#include "decide/horizontal/behavior.h"
#include "decide/horizontal/replicas.h"
#include "decide/tandem/amount.h"
#include "decide/tandem/coupling.h"
#include "decide/tandem/decide.h"
#include "decide/vertical/estimator/gomath.h"

#define CLOSED_TICK_SECONDS 15

/* The demand from a tick on. */
struct closed_load {
    int32_t first_tick;
    int64_t demand_milli; /* of all pods together */
};

struct closed_loop {
    const struct td_hvpa *hvpa;     /* the coordinator's spec; NULL: both act alone */
    enum td_hvpa_coupling coupling; /* of the two alone */
    int32_t utilization;            /* percent, the HPA's target */
    int32_t min_replicas;
    int32_t max_replicas;
    int64_t min_allowed_milli;
    int64_t max_allowed_milli;
    int32_t replicas; /* at first; above 0 */
    int64_t request_milli;
    const struct closed_load *loads; /* by tick; the first at tick 0 */
    size_t load_count;
    int64_t scale_in_stabilization_seconds; /* the HPA's */
    /* The VPA's target is 1.15 times a peak: the largest usage of the last `peak_ticks`, or, with a
     * half-life, one that decays. */
    int32_t peak_ticks;
    int64_t peak_half_life_seconds; /* 0: by peak_ticks */
    bool uses_decider;   /* the horizontal decider with its floating point, else whole numbers */
    bool keeps_patience; /* hand Mixed its timer from tick to tick */
    int32_t ticks;
    struct td_instant start;
};

/* One tick: what was seen, and the state after it. */
struct closed_tick {
    int64_t demand_milli;
    int32_t desired_replicas; /* the HPA's wish */
    int64_t target_milli;     /* the VPA's */
    int32_t replicas;
    int64_t request_milli;
    bool is_changed;
    enum td_tandem_reason reason;     /* of the coordinator */
    enum td_tandem_coupled condition; /* of the coordinator */
};

#define CLOSED_MARGIN_PERCENT 115 /* the VPA's safety margin */
#define CLOSED_HPA_TOLERANCE 0.1
#define CLOSED_LONG_AGO_UNIX 1767225600 /* 2026-01-01T00:00:00Z */

/* The behaviour that an HPA gets when it names one and leaves everything out. The older rules, of
 * an HPA without any, would scale out to a wish of minutes ago, which was measured by another size.
 */
static const struct td_hpa_policy closed_up_policies[] = {
    {.type = TD_HPA_POLICY_PODS, .value = 4, .period_seconds = 15},
    {.type = TD_HPA_POLICY_PERCENT, .value = 100, .period_seconds = 15},
};
static const struct td_hpa_policy closed_down_policies[] = {
    {.type = TD_HPA_POLICY_PERCENT, .value = 100, .period_seconds = 15},
};

static struct td_hpa closed_default_hpa(const struct closed_loop *options)
{
    return (struct td_hpa){
        .has_min_replicas = true,
        .min_replicas = options->min_replicas,
        .max_replicas = options->max_replicas,
        .has_behavior = true,
        .scale_up = {.has_window = true, .policies = closed_up_policies, .policy_count = 2},
        .scale_down = {.has_window = true,
                       .window_seconds = (int32_t)options->scale_in_stabilization_seconds,
                       .policies = closed_down_policies,
                       .policy_count = 1},
    };
}

/* What a run carries from tick to tick. */
struct closed_run {
    const struct closed_loop *options;
    const struct td_hpa *hpa; /* bounds and behaviour for the horizontal decider */
    struct td_hpa_pod *pods;  /* of the horizontal decider */
    struct td_hpa_history history;
    int32_t *raw;     /* proposals before stabilisation, by tick */
    int64_t *demands; /* by tick */
    int32_t *counts;  /* replicas that shared the demand, by tick */
    double peak;      /* decaying */
    int32_t tick;
    int32_t replicas;
    int64_t request;
    struct td_tandem_time last_horizontal;
    struct td_tandem_time last_vertical;
    struct td_tandem_time below_since;
};

static struct td_instant closed_now_of(const struct closed_run *run)
{
    struct td_instant now = run->options->start;
    now.unix_seconds += (int64_t)run->tick * CLOSED_TICK_SECONDS;
    return now;
}

static int64_t closed_demand_at(const struct closed_loop *options, int32_t tick)
{
    int64_t demand = 0;
    for (size_t i = 0; i < options->load_count && options->loads[i].first_tick <= tick; i++) {
        demand = options->loads[i].demand_milli;
    }
    return demand;
}

static int64_t closed_clamp_allowed(const struct closed_loop *options, int64_t amount)
{
    if (amount < options->min_allowed_milli) {
        return options->min_allowed_milli;
    }
    return amount > options->max_allowed_milli ? options->max_allowed_milli : amount;
}

static int64_t closed_ceil_div(int64_t dividend, int64_t divisor)
{
    return (dividend + divisor - 1) / divisor;
}

/* 1.15 times the largest share of the last ticks, as an exact fraction rounded up. */
static int64_t closed_window_target(const struct closed_run *run)
{
    int32_t from = run->tick - run->options->peak_ticks + 1;
    int32_t best = run->tick;
    for (int32_t i = from > 0 ? from : 0; i < run->tick; i++) {
        if (run->demands[i] * run->counts[best] > run->demands[best] * run->counts[i]) {
            best = i;
        }
    }
    return closed_ceil_div(CLOSED_MARGIN_PERCENT * run->demands[best],
                           (int64_t)100 * run->counts[best]);
}

static int64_t closed_decaying_target(struct closed_run *run)
{
    double half_lives = (double)CLOSED_TICK_SECONDS / (double)run->options->peak_half_life_seconds;
    double usage = (double)run->demands[run->tick] / run->counts[run->tick];
    run->peak = fmax(usage, run->peak * td_go_exp2(-half_lives));
    return td_tandem_ceil(run->peak * CLOSED_MARGIN_PERCENT / 100);
}

static int32_t closed_clamp_replicas(const struct closed_loop *options, int64_t replicas)
{
    if (replicas < options->min_replicas) {
        return options->min_replicas;
    }
    return replicas > options->max_replicas ? options->max_replicas : (int32_t)replicas;
}

/* The HPA in whole numbers: utilisation cut to percent, tolerance a tenth, and scale-in held by the
 * largest proposal of the window. */
static int32_t closed_plain_desired(struct closed_run *run, int64_t measured_against)
{
    const struct closed_loop *options = run->options;
    int64_t target = options->utilization;
    int64_t n = run->replicas;
    int64_t percent = 100 * run->demands[run->tick] / (n * measured_against);
    int64_t distance = percent > target ? percent - target : target - percent;
    int64_t proposed = 10 * distance <= target ? n : closed_ceil_div(n * percent, target);
    int32_t raw = closed_clamp_replicas(options, proposed);
    run->raw[run->tick] = raw;
    int32_t highest = raw;
    for (int32_t i = run->tick - 1; i >= 0; i--) {
        if ((int64_t)(run->tick - i) * CLOSED_TICK_SECONDS >=
            options->scale_in_stabilization_seconds) {
            break;
        }
        highest = run->raw[i] > highest ? run->raw[i] : highest;
    }
    if (raw > run->replicas) {
        return raw;
    }
    return highest < run->replicas ? highest : run->replicas;
}

/* The HPA as the controller runs it. */
static int32_t closed_decider_desired(struct closed_run *run, int64_t measured_against)
{
    const struct closed_loop *options = run->options;
    td_time now = td_time_from_instant(closed_now_of(run));
    int64_t share = run->demands[run->tick] / run->replicas;
    int64_t rest = run->demands[run->tick] % run->replicas;
    for (int32_t i = 0; i < run->replicas; i++) {
        run->pods[i] = (struct td_hpa_pod){
            .phase = TD_POD_RUNNING,
            .ready = TD_CONDITION_TRUE,
            .has_sample = true,
            .request_milli = measured_against,
            .sample_milli = share + (i < rest ? 1 : 0),
        };
    }
    struct td_hpa_view view = {.pods = run->pods, .count = (size_t)run->replicas};
    struct td_hpa_calc_options calc = {
        .replicas = run->replicas,
        .tolerance = {.down = CLOSED_HPA_TOLERANCE, .up = CLOSED_HPA_TOLERANCE},
        .grouping = {.now = now},
    };
    struct td_hpa_calculation calculation =
        td_hpa_calc_utilization(&view, &calc, options->utilization);
    struct td_hpa_normalization normalization = {
        .hpa = run->hpa,
        .now = now,
        .current = run->replicas,
        .proposed = calculation.replicas,
        .downscale_stabilization = options->scale_in_stabilization_seconds * TD_SECOND,
    };
    return td_hpa_normalize(&run->history, &normalization).replicas;
}

static int32_t closed_desired_replicas(struct closed_run *run, enum td_hvpa_coupling coupling,
                                       int64_t request)
{
    int64_t measured_against =
        coupling == TD_HVPA_REFERENCE ? run->options->request_milli : request;
    return run->options->uses_decider ? closed_decider_desired(run, measured_against)
                                      : closed_plain_desired(run, measured_against);
}

/* Two separate autoscalers: size at once, then replicas by the new size. */
static void closed_act_alone(struct closed_run *run, struct closed_tick *tick)
{
    const struct closed_loop *options = run->options;
    int64_t target = closed_clamp_allowed(options, tick->target_milli);
    if (options->coupling == TD_HVPA_RECONCILE) {
        int64_t usage = run->demands[run->tick] / run->replicas;
        int64_t size = closed_ceil_div(100 * usage, options->utilization);
        target = closed_clamp_allowed(options, size > target ? size : target);
    }
    run->request = target;
    tick->desired_replicas = closed_desired_replicas(run, options->coupling, run->request);
    run->replicas = tick->desired_replicas;
}

static void closed_act_in_tandem(struct closed_run *run, struct closed_tick *tick)
{
    const struct closed_loop *options = run->options;
    tick->desired_replicas = closed_desired_replicas(run, options->hvpa->coupling, run->request);
    struct td_tandem_row row = {
        .container = TD_STR("app"),
        .resource = TD_HVPA_CPU,
        .request = run->request,
        .target = closed_clamp_allowed(options, tick->target_milli),
        .uncapped = tick->target_milli,
        .min_allowed = {.is_set = true, .amount = options->min_allowed_milli},
        .max_allowed = {.is_set = true, .amount = options->max_allowed_milli},
        .coupling = {.is_coupled = true,
                     .utilization = options->utilization,
                     .in_template = options->request_milli,
                     .reference =
                         closed_ceil_div(options->request_milli * options->utilization, 100),
                     .usage = {.is_set = true, .amount = run->demands[run->tick] / run->replicas}},
    };
    struct td_tandem_input in = {
        .hvpa = options->hvpa,
        .replicas = run->replicas,
        .is_horizontal_valid = true,
        .desired_replicas = tick->desired_replicas,
        .is_vertical_valid = true,
        .rows = &row,
        .row_count = 1,
        .last_horizontal = run->last_horizontal,
        .last_vertical = run->last_vertical,
        .below_thresholds_since = run->below_since,
        .now = closed_now_of(run),
    };
    struct td_tandem_outcome outcome;
    struct td_tandem_decision decision;
    td_tandem_decide(&in, &outcome, &decision);
    tick->reason = decision.reason;
    tick->condition = td_tandem_coupled_of(options->hvpa, &row, &options->request_milli, 1).reason;
    run->below_since = options->keeps_patience ? decision.below_thresholds_since
                                               : (struct td_tandem_time){.is_set = false};
    run->replicas = decision.replicas;
    run->request = outcome.request;
}

static void closed_tick(struct closed_run *run, struct closed_tick *tick)
{
    const struct closed_loop *options = run->options;
    int32_t replicas = run->replicas;
    int64_t request = run->request;
    int64_t demand = closed_demand_at(options, run->tick);
    run->demands[run->tick] = demand;
    run->counts[run->tick] = replicas;
    *tick = (struct closed_tick){
        .demand_milli = demand,
        .target_milli = options->peak_half_life_seconds > 0 ? closed_decaying_target(run)
                                                            : closed_window_target(run),
    };
    if (options->hvpa) {
        closed_act_in_tandem(run, tick);
    } else {
        closed_act_alone(run, tick);
    }
    struct td_tandem_time now = {.is_set = true, .at = closed_now_of(run)};
    if (run->replicas != replicas) {
        run->last_horizontal = now;
        td_hpa_history_store(&run->history, run->hpa, replicas, run->replicas,
                             td_time_from_instant(now.at));
    }
    if (run->request != request) {
        run->last_vertical = now;
    }
    tick->replicas = run->replicas;
    tick->request_milli = run->request;
    tick->is_changed = run->replicas != replicas || run->request != request;
}

/* Fills options->ticks ticks. The arena holds what the deciders need on the way. */
static void closed_loop_run(struct td_arena *arena, const struct closed_loop *options,
                            struct closed_tick *ret_ticks)
{
    td_assert(options->replicas > 0);
    td_assert(options->request_milli > 0);
    td_assert(options->utilization > 0);
    td_assert(options->min_replicas > 0);
    td_assert(options->min_allowed_milli > 0);
    struct td_hpa hpa = closed_default_hpa(options);
    int32_t most =
        options->max_replicas > options->replicas ? options->max_replicas : options->replicas;
    struct td_tandem_time long_ago = {.is_set = true, .at = {.unix_seconds = CLOSED_LONG_AGO_UNIX}};
    size_t count = options->ticks > 0 ? (size_t)options->ticks : 0;
    struct closed_run run = {
        .options = options,
        .hpa = &hpa,
        .pods = td_arena_array(arena, struct td_hpa_pod, (size_t)most),
        .raw = td_arena_array(arena, int32_t, count),
        .demands = td_arena_array(arena, int64_t, count),
        .counts = td_arena_array(arena, int32_t, count),
        .replicas = options->replicas,
        .request = options->request_milli,
        .last_horizontal = long_ago,
        .last_vertical = long_ago,
    };
    td_hpa_history_init(&run.history);
    for (run.tick = 0; run.tick < options->ticks; run.tick++) {
        closed_tick(&run, &ret_ticks[run.tick]);
    }
    td_hpa_history_done(&run.history);
}
