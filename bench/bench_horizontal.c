/*
 * One pass of horizontal decisions over a made-up cluster: 10,000 HPAs with 15 pods each and one
 * cpu utilization metric. A pass joins the samples that a metrics API would give with the pods and
 * makes the whole decision: metric, behaviour, conditions, status and whether to write it. The peer
 * (bench/peer/horizontal) runs upstream's replica calculator alone over the same numbers:
 *
 *     r = mix(seed + hpa * 15 + pod);  load = 20 + mix(seed ^ hpa << 32) % 100
 *     request = 250 * (1 + r % 4) millicores;  usage = request * (load + (r >> 8) % 20) / 100
 *     one pod in 25 started a minute ago and is not ready, one in 20 has no sample
 *
 * The tolerance is 0, because upstream's calculator has no way to set one.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "decide/horizontal/reconcile.h"

#define HPAS ((size_t)10000)
#define PODS_PER_HPA ((size_t)15)
#define SEED 7U
#define ROUNDS 10 /* the mean of all counts, as a collector's work is spread over them there */
#define CPU_SECONDS_MAX 0.3
#define MEMORY_MIB_MAX 64.0

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

struct cluster {
    struct td_arena names;
    struct td_arena turn;
    struct td_hpa_pod *pods;
    struct td_hpa_sample *samples;
    size_t *sample_counts;
    struct td_hpa_state *states;
    struct td_hpa hpa;
    struct td_hpa_config config;
    td_time now;
};

static void make_pods(struct cluster *cluster, size_t h)
{
    uint64_t load = 20 + mix(SEED ^ (uint64_t)h << 32) % 100;
    for (size_t p = 0; p < PODS_PER_HPA; p++) {
        uint64_t r = mix(SEED + h * PODS_PER_HPA + p);
        int64_t request = (int64_t)(250 * (1 + r % 4));
        bool is_starting = (r >> 16) % 25 == 0;
        td_time start = cluster->now - (is_starting ? TD_MINUTE : TD_HOUR);
        td_str name = td_arena_format(&cluster->names, "web-%zu-%zu", h, p);
        cluster->pods[h * PODS_PER_HPA + p] = (struct td_hpa_pod){
            .name = name,
            .phase = TD_POD_RUNNING,
            .ready = is_starting ? TD_CONDITION_FALSE : TD_CONDITION_TRUE,
            .start_time = start,
            .ready_since = start,
            .request_milli = request,
        };
        if ((r >> 24) % 20 != 0) {
            cluster->samples[h * PODS_PER_HPA + cluster->sample_counts[h]++] =
                (struct td_hpa_sample){
                    .pod = name,
                    .value_milli = request * (int64_t)(load + (r >> 8) % 20) / 100,
                    .at = cluster->now,
                    .window = 30 * TD_SECOND,
                };
        }
    }
}

/* A metrics API has an order of its own: every second HPA gets its samples backwards. */
static void turn_samples(struct cluster *cluster, size_t h)
{
    struct td_hpa_sample *samples = &cluster->samples[h * PODS_PER_HPA];
    size_t count = cluster->sample_counts[h];
    for (size_t i = 0; h % 2 == 1 && i < count / 2; i++) {
        struct td_hpa_sample other = samples[i];
        samples[i] = samples[count - 1 - i];
        samples[count - 1 - i] = other;
    }
}

static bool make_cluster(struct cluster *cluster)
{
    static const td_str text = TD_STR_INIT(
        "{\"apiVersion\":\"autoscaling/v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":"
        "{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{\"minReplicas\":1,\"maxReplicas\":100,"
        "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\"},"
        "\"metrics\":[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{\"type\":"
        "\"Utilization\",\"averageUtilization\":60}}}]}}");
    struct td_json *object = NULL;
    struct td_error err = TD_ERROR_INIT;
    td_arena_init(&cluster->names, (size_t)1 << 30);
    td_arena_init(&cluster->turn, (size_t)1 << 20);
    if (td_json_parse(&cluster->names, text, NULL, &object, &err) < 0 ||
        td_hpa_decode(&cluster->names, object, &cluster->hpa, &err) < 0) {
        (void)fprintf(stderr, "bench_horizontal: %s\n", err.message);
        return false;
    }
    cluster->config = td_hpa_config_default();
    cluster->config.tolerance = 0;
    cluster->now = 1772000000 * TD_SECOND;
    cluster->pods = td_alloc_zero(HPAS * PODS_PER_HPA, sizeof(*cluster->pods));
    cluster->samples = td_alloc_zero(HPAS * PODS_PER_HPA, sizeof(*cluster->samples));
    cluster->sample_counts = td_alloc_zero(HPAS, sizeof(*cluster->sample_counts));
    cluster->states = td_alloc_zero(HPAS, sizeof(*cluster->states));
    for (size_t h = 0; h < HPAS; h++) {
        td_hpa_state_init(&cluster->states[h]);
        make_pods(cluster, h);
        turn_samples(cluster, h);
    }
    return true;
}

static void free_cluster(struct cluster *cluster)
{
    for (size_t h = 0; h < HPAS; h++) {
        td_hpa_state_done(&cluster->states[h]);
    }
    td_free(cluster->states);
    td_free(cluster->sample_counts);
    td_free(cluster->samples);
    td_free(cluster->pods);
    td_arena_done(&cluster->turn);
    td_arena_done(&cluster->names);
}

/* One HPA, as the controller would do it; returns what its metric proposes. */
static int64_t judge(struct cluster *cluster, size_t h, td_time now)
{
    struct td_hpa_pod *pods = &cluster->pods[h * PODS_PER_HPA];
    for (size_t p = 0; p < PODS_PER_HPA; p++) {
        pods[p].has_sample = false;
    }
    td_arena_reset(&cluster->turn);
    struct td_hpa_answer answer = {.timestamp = TD_INSTANT_ZERO};
    td_hpa_samples_join(&cluster->turn, pods, PODS_PER_HPA, &cluster->samples[h * PODS_PER_HPA],
                        cluster->sample_counts[h], &answer.view);
    const struct td_hpa_scale scale = {.spec_replicas = PODS_PER_HPA,
                                       .status_replicas = PODS_PER_HPA,
                                       .selector = TD_STR("app=web")};
    struct td_hpa_pass pass;
    td_hpa_begin(&pass, &cluster->turn, &cluster->hpa, &cluster->config, &cluster->states[h],
                 &scale, now);
    td_hpa_decide(&pass, &answer, now);
    if (pass.wants_rescale) {
        td_hpa_rescaled(&pass, true, TD_STR_EMPTY, now);
    }
    td_hpa_finish(&pass, now);
    td_hpa_end(&pass, true, TD_STR_EMPTY);
    return pass.is_evaluated && pass.evaluation.replicas > 0 ? pass.evaluation.replicas : 0;
}

static int64_t judge_all(struct cluster *cluster, td_time now)
{
    int64_t sum = 0;
    for (size_t h = 0; h < HPAS; h++) {
        sum += judge(cluster, h, now);
    }
    return sum;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail for oneself */
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double resident_mib(void)
{
    long pages = 0;
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%ld %ld", &pages, &resident) != 2) {
            resident = 0;
        }
        (void)fclose(file); /* only read from */
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1024.0 * 1024.0);
}

int main(void)
{
    struct cluster cluster = {.now = 0};
    double before_mib = resident_mib();
    if (!make_cluster(&cluster)) {
        return 1;
    }
    int64_t sum = judge_all(&cluster, cluster.now);
    bool is_steady = true;
    double before = cpu_seconds();
    for (int i = 1; i <= ROUNDS; i++) {
        /* The clock moves on too little to make a starting pod ready. */
        is_steady = judge_all(&cluster, cluster.now + i * TD_SECOND) == sum && is_steady;
    }
    double seconds = (cpu_seconds() - before) / ROUNDS;
    double mib = resident_mib() - before_mib;
    (void)printf("bench horizontal.decide.cpu %.4f s\n", seconds);
    (void)printf("bench horizontal.memory %.1f MiB\n", mib);
    (void)printf("bench horizontal.replicas %lld replicas\n", (long long)sum);
    free_cluster(&cluster);
    if (!is_steady || seconds >= CPU_SECONDS_MAX || mib >= MEMORY_MIB_MAX) {
        (void)fprintf(stderr, "promised: under %.1f s and %.0f MiB, the same sum every round\n",
                      CPU_SECONDS_MAX, MEMORY_MIB_MAX);
        return 1;
    }
    return 0;
}
