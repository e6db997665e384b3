/* The values that the account of an HPA names are the true ones: at the value that it scales out
 * above, no usage shown so scales it out, and every usage shown as one unit more does; likewise for
 * the value down from which it scales in. Judged by the decider itself on pods whose samples are
 * set to give each value.
 *
 *     hpa_bounds [COUNT [SEED]]
 *
 * Each case is a random HPA with one metric (a utilization, an average, a value or a value for each
 * pod), pods of which some are starting or without a sample, and replicas that need not be as many
 * as the pods. Prints one line; exits 1 with seed and number of the first case that is wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/os/clock.h"
#include "decide/horizontal/bounds.h"
#include "decide/horizontal/evaluate.h"
#include "support/tandem_random.h"

#define DEFAULT_COUNT 20000
#define DEFAULT_SEED 5
#define NOW (1000 * TD_MINUTE)
#define PODS_MAX 12

struct scene {
    struct td_hpa hpa;
    struct td_hpa_metric metric;
    struct td_hpa_config config;
    struct td_hpa_pod pods[PODS_MAX];
    size_t count;
    size_t measured; /* pods from the first on that are ready and have a sample */
    int32_t current;
};

enum measure { UTILIZATION, AVERAGE, VALUE, PER_POD };

static void make_pods(struct tandem_random *random, struct scene *scene)
{
    scene->count = 1 + (size_t)tandem_pick(random, PODS_MAX);
    scene->measured = tandem_chance(random, 60)
                          ? scene->count
                          : 1 + (size_t)tandem_pick(random, (int64_t)scene->count);
    for (size_t i = 0; i < scene->count; i++) {
        bool is_measured = i < scene->measured;
        bool is_missing = !is_measured && tandem_chance(random, 50);
        scene->pods[i] = (struct td_hpa_pod){
            .name = TD_STR("p"),
            .phase = TD_POD_RUNNING,
            .ready = is_measured || is_missing ? TD_CONDITION_TRUE : TD_CONDITION_FALSE,
            .has_sample = !is_missing,
            .start_time = is_measured ? 0 : NOW - TD_MINUTE,
            .ready_since = is_measured ? 0 : NOW - TD_MINUTE,
            .request_milli = 100 + tandem_pick(random, 3000), /* every percent can be shown */
            .sample_time = NOW,
            .sample_window = TD_MINUTE,
        };
    }
}

static enum measure make(struct tandem_random *random, struct scene *scene)
{
    enum measure measure = (enum measure)tandem_pick(random, 4);
    *scene = (struct scene){.config = td_hpa_config_default()};
    make_pods(random, scene);
    bool is_of_pods = measure == UTILIZATION || measure == AVERAGE;
    int64_t amount = 1 + tandem_pick(random, tandem_chance(random, 50) ? 20 : 100000);
    scene->metric = (struct td_hpa_metric){
        .type = is_of_pods ? TD_HPA_RESOURCE : TD_HPA_EXTERNAL,
        .name = TD_STR("cpu"),
        .target = {.has_average_utilization = measure == UTILIZATION,
                   .average_utilization = 1 + (int32_t)tandem_pick(random, 150),
                   .has_average_value = measure == AVERAGE || measure == PER_POD,
                   .average_value_milli = amount,
                   .has_value = measure == VALUE,
                   .value_milli = amount},
    };
    scene->current = tandem_chance(random, 70) ? (int32_t)scene->count
                                               : 1 + (int32_t)tandem_pick(random, 2 * PODS_MAX);
    scene->config.tolerance =
        tandem_chance(random, 60) ? 0.1 : (double)tandem_pick(random, 50) / 100;
    scene->hpa = (struct td_hpa){
        .min_replicas = 1 + (int32_t)tandem_pick(random, scene->current),
        .max_replicas = scene->current + (int32_t)tandem_pick(random, 10),
        .metrics = &scene->metric,
        .metric_count = 1,
    };
    return measure;
}

/* The count that the decider asks for, within the bounds of the HPA, when the pods use `usage`. */
static int32_t decide(const struct scene *scene, int64_t usage, struct td_hpa_basis *ret_basis)
{
    td_auto_arena arena = td_arena_capped(1 << 20);
    struct td_hpa_pod pods[PODS_MAX];
    for (size_t i = 0; i < scene->count; i++) {
        pods[i] = scene->pods[i];
        pods[i].sample_milli = i == 0 ? usage : 0;
    }
    const struct td_hpa_answer answer = {
        .view = {.pods = pods, .count = scene->count}, .values_milli = &usage, .value_count = 1};
    const struct td_hpa_evaluation_input in = {
        .hpa = &scene->hpa,
        .config = &scene->config,
        .now = NOW,
        .spec_replicas = scene->current,
        .status_replicas = scene->current,
        .answers = &answer,
    };
    struct td_hpa_conditions conditions = {.arena = &arena};
    struct td_hpa_events events = {.arena = &arena};
    struct td_hpa_evaluation made = td_hpa_evaluate(&arena, &in, &conditions, &events);
    if (made.winner == SIZE_MAX) {
        return scene->current;
    }
    if (ret_basis) {
        *ret_basis = made.results[0].calculation.basis;
    }
    int32_t wanted =
        made.replicas < scene->hpa.min_replicas ? scene->hpa.min_replicas : made.replicas;
    return wanted > scene->hpa.max_replicas ? scene->hpa.max_replicas : wanted;
}

/* The least and the most usage that is shown as `shown`. */
static void usage_of(const struct scene *scene, enum measure measure, int64_t shown, int64_t *least,
                     int64_t *most)
{
    int64_t request = 0;
    for (size_t i = 0; i < scene->measured; i++) {
        request += scene->pods[i].request_milli;
    }
    int64_t pods = (int64_t)scene->measured;
    *least = *most = shown;
    if (measure == UTILIZATION) {
        for (*least = shown * request / 100; *least * 100 / request < shown; (*least)++) {
        }
        for (*most = *least; (*most + 1) * 100 / request == shown; (*most)++) {
        }
    } else if (measure == AVERAGE) {
        *least = shown * pods;
        *most = *least + pods - 1;
    } else if (measure == PER_POD) {
        *most = shown * scene->current;
        *least = shown == 0 ? 0 : *most - scene->current + 1;
    }
}

static const char *check(const struct scene *scene, enum measure measure)
{
    struct td_hpa_basis basis = {.measure = TD_HPA_MEASURE_VALUE};
    int64_t least;
    int64_t most;
    (void)decide(scene, 1, &basis);
    struct td_hpa_bounds bounds = td_hpa_bounds_of(&scene->hpa, &basis, scene->current);
    if (bounds.can_scale_out) {
        usage_of(scene, measure, bounds.out_above + 1, &least, &most);
        if (decide(scene, least, NULL) <= scene->current ||
            decide(scene, most, NULL) <= scene->current) {
            return "above the value for scaling out it does not";
        }
        usage_of(scene, measure, bounds.out_above, &least, &most);
        if (decide(scene, least, NULL) > scene->current) {
            return "at the value for scaling out it does already";
        }
    } else if (decide(scene, INT64_C(1) << 40, NULL) > scene->current) {
        return "it scales out, but no value is named";
    }
    if (bounds.can_scale_in) {
        usage_of(scene, measure, bounds.in_up_to, &least, &most);
        if (decide(scene, least, NULL) >= scene->current ||
            decide(scene, most, NULL) >= scene->current) {
            return "at the value for scaling in it does not";
        }
        usage_of(scene, measure, bounds.in_up_to + 1, &least, &most);
        if (decide(scene, most, NULL) < scene->current) {
            return "above the value for scaling in it does already";
        }
    } else if (basis.target > 0 && decide(scene, 0, NULL) < scene->current) {
        usage_of(scene, measure, 0, &least, &most);
        return decide(scene, most, NULL) < scene->current ? "it scales in, but no value is named"
                                                          : NULL;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : DEFAULT_COUNT;
    long seed = argc > 2 ? strtol(argv[2], NULL, 10) : DEFAULT_SEED;
    struct tandem_random random = {.state = (uint64_t)seed * 2 + 1};
    struct scene scene;
    for (long i = 0; i < count; i++) {
        enum measure measure = make(&random, &scene);
        const char *wrong = check(&scene, measure);
        if (wrong) {
            printf("seed %ld, case %ld (measure %d, %d replicas, %zu of %zu pods measured): %s\n",
                   seed, i, (int)measure, scene.current, scene.measured, scene.count, wrong);
            return 1;
        }
    }
    printf("%ld HPAs move at the values that are named, seed %ld\n", count, seed);
    return 0;
}
