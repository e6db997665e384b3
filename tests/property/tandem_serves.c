/* The law of the Hvpa: where an HPA alone would reach a count of replicas that serves the load, the
 * Hvpa serves it too, in every mode and under every coupling.
 *
 *     tandem_serves [COUNT [SEED [ONLY]]]
 *
 * Each run is a random load (levels of one to three hours) on a random workload and spec, played
 * twice in virtual time: by the HPA's decider with pods of the template, and by both deciders and
 * the coordinator. A pod uses what it is asked to do up to the limit of the container that is the
 * first to reach its own; what is measured is what is used. At the end of every level it is judged:
 * an HPA alone that serves the level and an Hvpa that does not is a broken law. Prints one line;
 * exits 1 with seed, number and the state of the first run that breaks it. ONLY shows that run,
 * level by level.
 *
 * What a user has switched off or forbidden is not the Hvpa's to give back, so specs here leave
 * replicas free to move, allow the template's own size and its limit, and let Mixed lose its
 * patience. Where the HPA measures by live requests it adds up those of all containers, so that one
 * that grows hides how busy another is: there a second container idles and keeps its size. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "decide/horizontal/behavior.h"
#include "decide/horizontal/replicas.h"
#include "decide/tandem/floor.h"
#include "decide/vertical/recommender/config.h"
#include "support/tandem_random.h"

#define DEFAULT_COUNT 1000
#define DEFAULT_SEED 11
#define TICK_SECONDS 15
#define LEVELS 6
#define REPLICAS_MAX 64
#define CONTAINERS_MAX 2
#define MARGIN 1.15 /* of the VPA */
#define DAY_SECONDS 86400
#define WHOLE 1000 /* of the work, per mille */

struct container {
    int64_t request; /* of the template, milli-cores */
    int64_t limit;   /* 0: none */
    int64_t share;   /* of the work, per mille; 0: it idles */
    bool is_controlled;
    bool is_requests_only;
    int64_t min_allowed;
    int64_t max_allowed; /* 0: none */
};

struct scene {
    struct td_hvpa hvpa;
    struct td_hpa hpa;
    struct td_hpa_policy policies[3];
    struct container containers[CONTAINERS_MAX];
    size_t count;
    int32_t utilization;
    int32_t replicas; /* at first */
    int64_t demand[LEVELS];
    int32_t ticks[LEVELS];
    struct td_decay decay;
    bool is_young;
    double history; /* cores that a container used on average until now, as a part of its request */
};

/* One of the two worlds. */
struct side {
    int32_t replicas;
    int64_t request[CONTAINERS_MAX];
    int64_t limit[CONTAINERS_MAX];
    double used[CONTAINERS_MAX]; /* of one pod, milli-cores */
    struct td_decaying seen[CONTAINERS_MAX];
    double target[CONTAINERS_MAX]; /* of the VPA, milli-cores */
    double lower[CONTAINERS_MAX];
    double upper[CONTAINERS_MAX];
    int64_t memory;
    int64_t memory_target;
    struct td_hpa_history history;
    struct td_tandem_time last_horizontal;
    struct td_tandem_time last_vertical;
    struct td_tandem_time below_since;
};

/* ---- Physics ---- */

/* What one pod can do. */
static double pod_capacity(const struct scene *scene, const struct side *side)
{
    double capacity = 1e15;
    for (size_t i = 0; i < scene->count; i++) {
        int64_t share = scene->containers[i].share;
        if (side->limit[i] > 0 && share > 0) {
            double most = (double)side->limit[i] * WHOLE / (double)share;
            capacity = most < capacity ? most : capacity;
        }
    }
    return capacity;
}

static bool is_serving(const struct scene *scene, const struct side *side, int64_t demand)
{
    return pod_capacity(scene, side) * side->replicas >= (double)demand;
}

static void use(const struct scene *scene, struct side *side, int64_t demand)
{
    double work = (double)demand / side->replicas;
    double capacity = pod_capacity(scene, side);
    work = work < capacity ? work : capacity;
    for (size_t i = 0; i < scene->count; i++) {
        side->used[i] = work * (double)scene->containers[i].share / WHOLE;
    }
}

/* ---- The two autoscalers ---- */

static int64_t sum_of(const struct scene *scene, const int64_t *amounts)
{
    int64_t sum = 0;
    for (size_t i = 0; i < scene->count; i++) {
        sum += amounts[i];
    }
    return sum;
}

static int64_t reference_of(const struct scene *scene)
{
    int64_t sum = 0;
    for (size_t i = 0; i < scene->count; i++) {
        sum += scene->containers[i].request;
    }
    return sum * scene->utilization / 100;
}

/* The HPA's wish; by_reference: what it waits for is an amount, else a part of the requests. */
static int32_t desired_of(const struct scene *scene, struct side *side, bool by_reference,
                          struct td_instant now)
{
    static struct td_hpa_pod pods[REPLICAS_MAX];
    double used = 0;
    for (size_t i = 0; i < scene->count; i++) {
        used += side->used[i];
    }
    for (int32_t i = 0; i < side->replicas; i++) {
        pods[i] = (struct td_hpa_pod){.phase = TD_POD_RUNNING,
                                      .ready = TD_CONDITION_TRUE,
                                      .has_sample = true,
                                      .request_milli = sum_of(scene, side->request),
                                      .sample_milli = (int64_t)used};
    }
    td_time at = td_time_from_instant(now);
    struct td_hpa_view view = {.pods = pods, .count = (size_t)side->replicas};
    struct td_hpa_calc_options options = {
        .replicas = side->replicas,
        .tolerance = td_hpa_tolerance_of(&scene->hpa, 0.1, true),
        .grouping = {.now = at},
    };
    struct td_hpa_calculation made =
        by_reference ? td_hpa_calc_average(&view, &options, reference_of(scene))
                     : td_hpa_calc_utilization(&view, &options, scene->utilization);
    struct td_hpa_normalization terms = {
        .hpa = &scene->hpa,
        .now = at,
        .current = side->replicas,
        .proposed = made.replicas,
        .downscale_stabilization = 300 * TD_SECOND,
    };
    return td_hpa_normalize(&side->history, &terms).replicas;
}

/* The VPA learns from what is used, as the recommender does: a percentile of a decaying histogram.
 */
static void learn(const struct scene *scene, struct side *side, struct td_instant now)
{
    for (size_t i = 0; i < scene->count; i++) {
        struct td_decaying *seen = &side->seen[i];
        double used = side->used[i] / 1000;
        td_decaying_add(seen, &scene->decay, used, used > 0.1 ? used : 0.1, now);
        side->target[i] = td_decaying_percentile(seen, &scene->decay, 0.9) * 1000 * MARGIN;
        side->lower[i] = td_decaying_percentile(seen, &scene->decay, 0.5) * 1000 * MARGIN;
        side->upper[i] = td_decaying_percentile(seen, &scene->decay, 0.95) * 1000 * MARGIN;
    }
}

/* ---- The coordinator ---- */

static struct td_tandem_row row_of(const struct scene *scene, const struct side *side, size_t i)
{
    const struct container *container = &scene->containers[i];
    bool is_by_reference = scene->hvpa.coupling == TD_HVPA_REFERENCE;
    int64_t target = (int64_t)side->target[i] + 1;
    return (struct td_tandem_row){
        .container = i == 0 ? TD_STR("app") : TD_STR("side"),
        .resource = TD_HVPA_CPU,
        .request = side->request[i],
        .target = target,
        .uncapped = target,
        .lower = {.is_set = true, .amount = (int64_t)side->lower[i]},
        .upper = {.is_set = true, .amount = (int64_t)side->upper[i] + 2},
        .min_allowed = {.is_set = true, .amount = container->min_allowed},
        .max_allowed = {.is_set = container->max_allowed > 0, .amount = container->max_allowed},
        .limit = {.is_set = side->limit[i] > 0, .amount = side->limit[i]},
        .origin = {.request = container->request, .limit = container->limit},
        .is_requests_only = container->is_requests_only,
        .is_young = scene->is_young,
        .coupling = {.is_coupled = true,
                     .utilization = scene->utilization,
                     .usage = {.is_set = true, .amount = (int64_t)side->used[i]},
                     .in_template = container->request,
                     .reference = is_by_reference ? reference_of(scene) : 0,
                     .beside = sum_of(scene, side->request) - side->request[i],
                     .headroom_percent =
                         td_tandem_headroom_of(td_hpa_tolerance_of(&scene->hpa, 0.1, true).up)},
    };
}

static void apply(struct side *side, const struct scene *scene, const struct td_tandem_input *in,
                  const struct td_tandem_decision *decision)
{
    struct td_tandem_time now = {.is_set = true, .at = in->now};
    if (decision->replicas != side->replicas) {
        td_hpa_history_store(&side->history, &scene->hpa, side->replicas, decision->replicas,
                             td_time_from_instant(in->now));
        side->replicas = decision->replicas;
        side->last_horizontal = now;
    }
    for (size_t i = 0; i < in->row_count; i++) {
        const struct td_tandem_outcome *outcome = &decision->outcomes[i];
        if (outcome->request != in->rows[i].request) {
            side->last_vertical = now;
        }
        if (in->rows[i].resource == TD_HVPA_MEMORY) {
            side->memory = outcome->request;
            continue;
        }
        size_t at = td_str_equal(in->rows[i].container, TD_STR("app")) ? 0 : 1;
        side->request[at] = outcome->request;
        side->limit[at] = outcome->limit.is_set ? outcome->limit.amount : 0;
    }
    side->below_since = decision->below_thresholds_since;
}

static struct td_tandem_decision coordinate(const struct scene *scene, struct side *side,
                                            struct td_instant now)
{
    struct td_tandem_row rows[CONTAINERS_MAX + 1];
    struct td_tandem_outcome outcomes[CONTAINERS_MAX + 1];
    struct td_tandem_input in = {
        .hvpa = &scene->hvpa,
        .replicas = side->replicas,
        .is_horizontal_valid = true,
        .desired_replicas = desired_of(scene, side, scene->hvpa.coupling == TD_HVPA_REFERENCE, now),
        .is_vertical_valid = true,
        .rows = rows,
        .last_horizontal = side->last_horizontal,
        .last_vertical = side->last_vertical,
        .below_thresholds_since = side->below_since,
        .now = now,
    };
    for (size_t i = 0; i < scene->count; i++) {
        if (scene->containers[i].is_controlled) {
            rows[in.row_count++] = row_of(scene, side, i);
        }
    }
    rows[in.row_count++] = (struct td_tandem_row){.container = TD_STR("app"),
                                                  .resource = TD_HVPA_MEMORY,
                                                  .request = side->memory,
                                                  .target = side->memory_target,
                                                  .uncapped = side->memory_target};
    struct td_tandem_decision decision;
    td_tandem_decide(&in, outcomes, &decision);
    apply(side, scene, &in, &decision);
    decision.outcomes = NULL; /* they were this function's */
    return decision;
}

/* ---- Random scenes ---- */

static int64_t pick_of(struct tandem_random *random, const int64_t *values, int64_t count)
{
    return values[tandem_pick(random, count)];
}

static void random_container(struct tandem_random *random, struct container *container)
{
    int64_t request = 20 + tandem_pick(random, tandem_chance(random, 50) ? 300 : 3000);
    int64_t percent = tandem_chance(random, 30) ? 100 : 100 + tandem_pick(random, 200);
    *container = (struct container){
        .request = request,
        .limit = tandem_chance(random, 15) ? 0 : request * percent / 100,
        .is_controlled = true,
        .is_requests_only = tandem_chance(random, 15),
        .min_allowed = 5 + tandem_pick(random, 40),
        .max_allowed = tandem_chance(random, 40) ? request + tandem_pick(random, request * 4) : 0,
    };
}

static void random_stages(struct tandem_random *random, struct td_hvpa *hvpa)
{
    static const double ratios[] = {0, 0.25, 0.5, 1, 2, 9};
    int32_t range = hvpa->hpa.max_replicas - hvpa->hpa.min_replicas + 1;
    hvpa->ratio.v_to_h = ratios[tandem_pick(random, 6)];
    hvpa->ratio.has_start = tandem_chance(random, 60);
    hvpa->ratio.start = hvpa->hpa.min_replicas + (int32_t)tandem_pick(random, range);
    hvpa->ratio.has_finish = tandem_chance(random, 60);
    int32_t from = hvpa->ratio.has_start ? hvpa->ratio.start : hvpa->hpa.min_replicas;
    hvpa->ratio.finish = from + (int32_t)tandem_pick(random, hvpa->hpa.max_replicas - from + 1);
    hvpa->initial_scaling = (enum td_hvpa_axis)tandem_pick(random, 2);
    hvpa->final_scaling = (enum td_hvpa_axis)tandem_pick(random, 2);
    hvpa->ratio.overflow = true;
    hvpa->ratio.capacity = tandem_chance(random, 25) ? TD_HVPA_MAX : TD_HVPA_BLEND;
}

/* A stage that gives all to size needs size to be free to move. */
static bool has_size_stage(const struct td_hvpa *hvpa)
{
    bool is_initial = hvpa->ratio.has_start && hvpa->initial_scaling == TD_HVPA_VERTICAL;
    bool is_final = hvpa->ratio.has_finish && hvpa->final_scaling == TD_HVPA_VERTICAL;
    return hvpa->mode == TD_HVPA_RATIO_BASED && (is_initial || is_final);
}

static void random_policies(struct tandem_random *random, struct td_hvpa *hvpa)
{
    static const int64_t ups[] = {0, 180, 300};
    static const int64_t downs[] = {0, 900, 3600, 7 * DAY_SECONDS};
    static const int64_t replicas[] = {0, 0, 60};
    hvpa->vertical_up.stabilization = pick_of(random, ups, 3) * TD_SECOND;
    hvpa->vertical_down.stabilization = pick_of(random, downs, 4) * TD_SECOND;
    hvpa->horizontal_up.stabilization = pick_of(random, replicas, 3) * TD_SECOND;
    hvpa->horizontal_down.stabilization = pick_of(random, replicas, 3) * TD_SECOND;
    hvpa->settle_seconds = tandem_pick(random, 2) * 60;
    hvpa->tolerance_percent = (int32_t)tandem_pick(random, 31);
    for (int i = 0; i < TD_HVPA_RESOURCE_COUNT; i++) {
        hvpa->vertical_up.min_change[i] = tandem_some_change(random, 15);
        hvpa->vertical_down.min_change[i] = tandem_some_change(random, 15);
        hvpa->mixed.vertical_threshold[i] = tandem_some_change(random, 100);
    }
    hvpa->mixed.preference = (enum td_hvpa_axis)tandem_pick(random, 2);
    hvpa->mixed.horizontal_threshold = (int32_t)tandem_pick(random, 5);
    hvpa->opposing_guard = tandem_chance(random, 80);
    if (tandem_chance(random, 15)) {
        hvpa->vertical_down.update = TD_HVPA_UPDATE_OFF;
    }
    if (tandem_chance(random, 15) && !has_size_stage(hvpa)) {
        hvpa->vertical_up.update = TD_HVPA_UPDATE_OFF;
    }
    hvpa->ratio.overflow = has_size_stage(hvpa) || tandem_chance(random, 85);
}

static void random_hpa(struct tandem_random *random, struct scene *scene)
{
    static const int64_t windows[] = {0, 60, 300};
    scene->policies[0] =
        (struct td_hpa_policy){.type = TD_HPA_POLICY_PODS, .value = 4, .period_seconds = 15};
    scene->policies[1] =
        (struct td_hpa_policy){.type = TD_HPA_POLICY_PERCENT, .value = 100, .period_seconds = 15};
    scene->policies[2] = scene->policies[1];
    scene->hpa = (struct td_hpa){
        .has_min_replicas = true,
        .min_replicas = scene->hvpa.hpa.min_replicas,
        .max_replicas = scene->hvpa.hpa.max_replicas,
        .has_behavior = true,
        .scale_up = {.has_window = true, .policies = scene->policies, .policy_count = 2},
        .scale_down = {.has_window = true,
                       .window_seconds = (int32_t)pick_of(random, windows, 3),
                       .policies = scene->policies + 2,
                       .policy_count = 1},
    };
    if (tandem_chance(random, 20)) {
        scene->hpa.scale_up.has_tolerance = true;
        scene->hpa.scale_up.tolerance = (double)tandem_pick(random, 31) / 100;
    }
}

static void random_load(struct tandem_random *random, struct scene *scene)
{
    static const int64_t half_lives[] = {600, 3600, DAY_SECONDS};
    scene->decay = td_vertical_config_default().cpu;
    scene->decay.half_life = pick_of(random, half_lives, 3) * TD_SECOND;
    scene->is_young = tandem_chance(random, 25);
    scene->history = (double)tandem_pick(random, 100) / 100;
    for (size_t i = 0; i < LEVELS; i++) {
        double part = (double)(1 + tandem_pick(random, 140)) / 100;
        part = tandem_chance(random, 40) ? part * part * part : part;
        scene->demand[i] =
            (int64_t)((double)reference_of(scene) * scene->hvpa.hpa.max_replicas * part) + 1;
        scene->ticks[i] = (int32_t)(240 + tandem_pick(random, 480));
    }
}

static void random_scene(struct tandem_random *random, struct scene *scene)
{
    struct tandem_case defaults;
    tandem_case_init(&defaults, (enum td_hvpa_mode)tandem_pick(random, 5));
    *scene = (struct scene){.hvpa = defaults.hvpa};
    struct td_hvpa *hvpa = &scene->hvpa;
    hvpa->coupling = (enum td_hvpa_coupling)tandem_pick(random, 3);
    hvpa->hpa.min_replicas = 1 + (int32_t)tandem_pick(random, 4);
    hvpa->hpa.max_replicas =
        hvpa->hpa.min_replicas + (int32_t)tandem_pick(random, REPLICAS_MAX - 8);
    scene->utilization = 20 + (int32_t)tandem_pick(random, 80);
    scene->count = tandem_chance(random, 35) ? 2 : 1;
    for (size_t i = 0; i < scene->count; i++) {
        random_container(random, &scene->containers[i]);
    }
    random_stages(random, hvpa);
    scene->containers[0].share = WHOLE;
    if (scene->count == 2) {
        bool is_idle = hvpa->coupling != TD_HVPA_REFERENCE || tandem_chance(random, 30);
        int64_t share = is_idle ? 0 : tandem_pick(random, WHOLE);
        scene->containers[0].share = WHOLE - share;
        scene->containers[1].share = share;
        scene->containers[1].is_controlled = hvpa->coupling == TD_HVPA_REFERENCE &&
                                             (has_size_stage(hvpa) || tandem_chance(random, 60));
    }
    random_policies(random, hvpa);
    random_hpa(random, scene);
    random_load(random, scene);
    scene->replicas =
        hvpa->hpa.min_replicas +
        (int32_t)tandem_pick(random, hvpa->hpa.max_replicas - hvpa->hpa.min_replicas + 1);
}

/* ---- A run ---- */

static void begin_side(const struct scene *scene, struct side *side)
{
    *side = (struct side){.replicas = scene->replicas, .memory = 1000 * MI};
    side->memory_target = side->memory;
    td_hpa_history_init(&side->history);
    side->last_horizontal = tandem_ago(9 * DAY_SECONDS);
    side->last_vertical = tandem_ago(9 * DAY_SECONDS);
    for (size_t i = 0; i < scene->count; i++) {
        const struct container *container = &scene->containers[i];
        side->request[i] = container->request;
        side->limit[i] = container->limit;
        td_decaying_init(&side->seen[i], &scene->decay);
        /* A day of quiet, which the recommender will not forget at once. */
        double used = scene->history * (double)container->request / 1000;
        for (int64_t ago = DAY_SECONDS; ago > 0; ago -= 600) {
            td_decaying_add(&side->seen[i], &scene->decay, used, 1, tandem_ago(ago).at);
        }
        side->target[i] = used * 1000 * MARGIN;
        side->upper[i] = (double)container->request * 100;
    }
}

static void end_side(const struct scene *scene, struct side *side)
{
    td_hpa_history_done(&side->history);
    for (size_t i = 0; i < scene->count; i++) {
        td_decaying_done(&side->seen[i]);
    }
}

static void tell(const struct scene *scene, const struct side *side, size_t level, const char *who)
{
    int64_t demand = scene->demand[level];
    printf("  level %zu: %lld wanted, %s serves %.0f with %d x", level, (long long)demand, who,
           pod_capacity(scene, side) * side->replicas, side->replicas);
    for (size_t i = 0; i < scene->count; i++) {
        printf(" %lldm/%lldm (%.0fm used)", (long long)side->request[i], (long long)side->limit[i],
               side->used[i]);
    }
    printf("\n");
}

static void tell_scene(const struct scene *scene)
{
    const struct td_hvpa *hvpa = &scene->hvpa;
    printf("  %.*s, %.*s, target %d %%, replicas %d..%d, ratio %g, stages %d..%d (%d, %d) "
           "overflow %d Max %d, Off up %d, young %d\n",
           TD_STR_ARG(td_hvpa_mode_name(hvpa->mode)),
           TD_STR_ARG(td_hvpa_coupling_name(hvpa->coupling)), scene->utilization,
           hvpa->hpa.min_replicas, hvpa->hpa.max_replicas, hvpa->ratio.v_to_h,
           hvpa->ratio.has_start ? hvpa->ratio.start : 0,
           hvpa->ratio.has_finish ? hvpa->ratio.finish : 0, (int)hvpa->initial_scaling,
           (int)hvpa->final_scaling, hvpa->ratio.overflow, (int)hvpa->ratio.capacity,
           (int)hvpa->vertical_up.update, scene->is_young);
    for (size_t i = 0; i < scene->count; i++) {
        const struct container *c = &scene->containers[i];
        printf("  container %lldm/%lldm, share %lld, controlled %d, max %lldm\n",
               (long long)c->request, (long long)c->limit, (long long)c->share, c->is_controlled,
               (long long)c->max_allowed);
    }
}

struct registry {
    long long levels; /* that the HPA alone served at their end */
    long long ticks;  /* in which it served and the Hvpa did not */
    long long resizes;
};

/* Limits so close to its target that the HPA alone never goes out: what it serves is chance. */
static bool is_blind(const struct scene *scene, const struct side *alone)
{
    double asked = (double)sum_of(scene, alone->request);
    double percent = pod_capacity(scene, alone) / asked * 100;
    double up = 1 + td_hpa_tolerance_of(&scene->hpa, 0.1, true).up;
    return (double)(int64_t)(percent < 1e9 ? percent : 1e9) <= scene->utilization * up;
}

/* The first level whose end breaks the law, or -1. */
static int play(struct tandem_random *random, const struct scene *scene, struct registry *registry,
                bool is_reported)
{
    struct side alone;
    struct side both;
    int broken = -1;
    int64_t tick = 0;
    begin_side(scene, &alone);
    begin_side(scene, &both);
    bool is_judged = !is_blind(scene, &alone);
    for (size_t level = 0; level < LEVELS && broken < 0; level++) {
        int64_t demand = scene->demand[level];
        both.memory_target = (200 + tandem_pick(random, 3000)) * MI;
        for (int32_t i = 0; i < scene->ticks[level]; i++, tick++) {
            struct td_instant now = {.unix_seconds = TANDEM_NOON + tick * TICK_SECONDS};
            int64_t before = both.request[0];
            use(scene, &alone, demand);
            use(scene, &both, demand);
            registry->ticks +=
                is_judged && is_serving(scene, &alone, demand) && !is_serving(scene, &both, demand);
            int32_t desired = desired_of(scene, &alone, false, now);
            if (desired != alone.replicas) {
                td_hpa_history_store(&alone.history, &scene->hpa, alone.replicas, desired,
                                     td_time_from_instant(now));
                alone.replicas = desired;
            }
            if (tick % 4 == 0) {
                learn(scene, &both, now);
            }
            (void)coordinate(scene, &both, now);
            registry->resizes += both.request[0] != before;
        }
        bool is_alone = is_judged && is_serving(scene, &alone, demand);
        bool is_broken = is_alone && !is_serving(scene, &both, demand);
        registry->levels += is_alone;
        if (is_reported || is_broken) {
            tell(scene, &alone, level, "the HPA alone");
            tell(scene, &both, level, "the Hvpa");
        }
        broken = is_broken ? (int)level : -1;
    }
    end_side(scene, &alone);
    end_side(scene, &both);
    return broken;
}

int main(int argc, char **argv)
{
    long long count = argc > 1 ? atoll(argv[1]) : DEFAULT_COUNT;
    long long seed = argc > 2 ? atoll(argv[2]) : DEFAULT_SEED;
    long long only = argc > 3 ? atoll(argv[3]) : -1;
    struct registry registry = {.levels = 0};
    long long by_mode[5] = {0};
    clock_t begin = clock();
    for (long long i = only >= 0 ? only : 0; i < (only >= 0 ? only + 1 : count); i++) {
        static struct scene scene;
        struct tandem_random random = {.state = ((uint64_t)seed << 32) + (uint64_t)i * 2 + 1};
        for (int j = 0; j < 8; j++) {
            (void)tandem_next(&random);
        }
        random_scene(&random, &scene);
        by_mode[scene.hvpa.mode]++;
        if (play(&random, &scene, &registry, only >= 0) >= 0) {
            tell_scene(&scene);
            printf("seed %lld, run %lld: the HPA alone serves what the Hvpa does not\n", seed, i);
            return 1;
        }
    }
    printf("tandem serves: %lld runs (%lld %lld %lld %lld %lld by mode), %lld levels that an HPA "
           "alone serves, all served; %lld ticks behind it on the way, %lld resizes, %.1f s\n",
           count, by_mode[0], by_mode[1], by_mode[2], by_mode[3], by_mode[4], registry.levels,
           registry.ticks, registry.resizes, (double)(clock() - begin) / CLOCKS_PER_SEC);
    return 0;
}
