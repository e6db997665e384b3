/*
 * The vertical recommender over a made-up cluster: 10,000 VPAs with 15 pods of 2 containers each,
 * 100 VPAs a namespace. A round of samples is what a metrics API gives in a minute: a name, CPU and
 * memory for each container; pods are found by name. The peer (bench/peer/vertical) feeds
 * upstream's model the same numbers:
 *
 *     r = mix(seed + round * 300000 + container);  cpu = 50 + r % 400 millicores
 *     memory = (200 + (r >> 16) % 300) MiB
 *
 * Rounds before the measured ones are an hour apart, so that windows close and histograms fill.
 *
 * Memory is what a user sees, on both sides: the resident memory of the process (VmRSS) after
 * rounds of feeding and recommending, less that before the model was set up. Names and VPA objects
 * are the caller's and are made before. After it everything is rolled out once a day for a week,
 * and memory is read again. The week of rollouts every 30 seconds is small, so there the bytes in
 * use on the heap are counted, at the end of each day.
 *
 * States under the track estimator: one for each of 300,000 containers, as if each were of a target
 * of its own, after a day of samples. Bytes are what the heap has for each; a pass is a sample of
 * CPU and memory and a recommendation for each.
 *
 * Ends with 1 when a figure is worse than what is promised.
 */
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "decide/vertical/recommender/recommender.h"

#define VPAS ((size_t)10000)
#define VPAS_PER_NAMESPACE ((size_t)100)
#define PODS_PER_VPA ((size_t)15)
#define PODS (VPAS * PODS_PER_VPA)
#define CONTAINERS ((size_t)2)
#define SEED 7U
#define WARM_ROUNDS 24
#define ROUNDS 5
#define ROLLOUTS 7
#define START ((td_time)1772323200 * TD_SECOND)

#define REPLAY_CONTAINERS ((size_t)10000)
#define REPLAY_MINUTES ((size_t)8 * 24 * 60) /* 115.2 million samples */

#define ROLLOUT_SECONDS 30
#define ROLLOUT_DAYS 8
#define ROLLOUT_PODS 5

#define TRACKED ((size_t)300000)
#define TRACKED_SLOTS 48 /* half an hour apart: all hours of a day are closed */

#define MEMORY_MIB_MAX 256.0
#define TRACKED_BYTES_MAX 2048.0
#define TRACKED_SECONDS_MAX 2.0
#define FEED_SECONDS_MAX 0.25
#define RECOMMEND_SECONDS_MAX 0.5
#define REPLAY_SECONDS_MAX 60.0
#define GROWTH_PERCENT_MAX 5.0

static const td_str container_names[CONTAINERS] = {TD_STR_INIT("app"), TD_STR_INIT("sidecar")};

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail for the process itself */
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
           (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

/* VmRSS, by its other door. */
static double resident_mib(void)
{
    unsigned long total = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%lu %lu", &total, &resident) != 2) {
            resident = 0;
        }
        (void)fclose(file); /* only read from */
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1024.0 * 1024.0);
}

static bool is_broken;

/* Prints a figure, and what was promised when it is worse. */
static void print_figure(const char *name, double value, const char *unit, double most)
{
    (void)printf("bench vertical.%s %.4g %s\n", name, value, unit);
    if (value > most) {
        (void)printf("broken: vertical.%s is above %g %s\n", name, most, unit);
        is_broken = true;
    }
}

struct cluster {
    struct td_recommender *recommender;
    struct td_arena names;
    struct td_arena turn;
    td_str *namespaces; /* one per VPA */
    struct {
        char text[36];
        uint32_t len;
    } * pods; /* names of all pods */
    struct td_vpa *vpas;
};

/* An object of the API, which is the caller's. */
static void make_vpa(struct cluster *cluster, size_t v)
{
    td_str name = td_arena_format(&cluster->names, "vpa-%zu", v);
    cluster->namespaces[v] = td_arena_format(&cluster->names, "team-%zu", v / VPAS_PER_NAMESPACE);
    cluster->vpas[v] = (struct td_vpa){.meta = {.name = name,
                                                .namespace = cluster->namespaces[v],
                                                .created = TD_INSTANT_ZERO,
                                                .generation = 1},
                                       .mode = TD_VPA_RECREATE,
                                       .target_kind = TD_STR("Deployment"),
                                       .target_name = name};
}

static void set_vpa(struct cluster *cluster, size_t v)
{
    const struct td_requirement requirement = {.key = TD_STR("app"),
                                               .operation = TD_SELECTOR_EQUALS,
                                               .values = &cluster->vpas[v].meta.name,
                                               .value_count = 1};
    const struct td_selector selector = {.requirements = &requirement, .count = 1};
    const struct td_vpa_link link = {
        .vpa = &cluster->vpas[v], .target_selector = &selector, .target = TD_STR_EMPTY};
    (void)td_recommender_set_vpa(cluster->recommender, &link, START, NULL);
}

static void set_pod(struct cluster *cluster, size_t v, td_str name, td_str template_hash,
                    td_time now)
{
    const struct td_label labels[] = {{TD_STR("app"), cluster->vpas[v].meta.name},
                                      {TD_STR("pod-template-hash"), template_hash}};
    const struct td_observed_pod observed = {.namespace = cluster->namespaces[v],
                                             .name = name,
                                             .labels = {.items = labels, .count = 2},
                                             .target = TD_STR_EMPTY,
                                             .phase = TD_POD_RUNNING};
    struct td_tracked_pod *pod = NULL;
    (void)td_recommender_set_pod(cluster->recommender, &observed, now, &pod, NULL);
    for (size_t c = 0; c < CONTAINERS; c++) {
        (void)td_recommender_set_container(cluster->recommender, &pod, container_names[c], 0, now,
                                           NULL);
    }
}

/* The pods of a VPA in its rollout of that number; names are overwritten in place. */
static void name_pods(struct cluster *cluster, size_t v, int rollout)
{
    for (size_t p = v * PODS_PER_VPA; p < (v + 1) * PODS_PER_VPA; p++) {
        int len = snprintf(cluster->pods[p].text, sizeof(cluster->pods[p].text),
                           "vpa-%zu-5d9c7b8f%02x-%05zx", v, (unsigned)rollout, p);
        cluster->pods[p].len = (uint32_t)len;
    }
}

static td_str pod_name(const struct cluster *cluster, size_t p)
{
    return (td_str){.ptr = cluster->pods[p].text, .len = cluster->pods[p].len};
}

static void set_pods(struct cluster *cluster, size_t v, int rollout, td_time now)
{
    char hash[16];
    (void)snprintf(hash, sizeof(hash), "5d9c7b8f%02x", (unsigned)rollout);
    for (size_t p = v * PODS_PER_VPA; p < (v + 1) * PODS_PER_VPA; p++) {
        set_pod(cluster, v, pod_name(cluster, p), td_str_from(hash), now);
    }
}

/* Pods of a new template take the place of those before, everywhere. */
static void roll_out_all(struct cluster *cluster, int rollout, td_time now)
{
    for (size_t v = 0; v < VPAS; v++) {
        for (size_t p = v * PODS_PER_VPA; p < (v + 1) * PODS_PER_VPA; p++) {
            td_recommender_delete_pod(cluster->recommender, cluster->namespaces[v],
                                      pod_name(cluster, p));
        }
        name_pods(cluster, v, rollout);
        set_pods(cluster, v, rollout, now);
    }
}

static void feed_pod(struct cluster *cluster, td_str namespace, td_str name, uint64_t number,
                     td_time now)
{
    struct td_tracked_pod *pod = td_recommender_find_pod(cluster->recommender, namespace, name);
    for (size_t c = 0; c < CONTAINERS; c++) {
        uint64_t r = mix(SEED + number * CONTAINERS + c);
        (void)td_recommender_sample(cluster->recommender, pod, container_names[c], TD_LEARN_CPU,
                                    now, (int64_t)(50 + r % 400), now);
        (void)td_recommender_sample(cluster->recommender, pod, container_names[c], TD_LEARN_MEMORY,
                                    now, (int64_t)(200 + (r >> 16) % 300) << 20, now);
    }
}

static void feed_round(struct cluster *cluster, size_t round, td_time now)
{
    for (size_t p = 0; p < PODS; p++) {
        feed_pod(cluster, cluster->namespaces[p / PODS_PER_VPA], pod_name(cluster, p),
                 round * PODS + p, now);
    }
}

static size_t recommend_all(struct cluster *cluster, td_time now)
{
    size_t made = 0;
    for (size_t v = 0; v < VPAS; v++) {
        struct td_vpa_status status;
        td_arena_reset(&cluster->turn);
        if (td_recommender_status(cluster->recommender, &cluster->turn, &cluster->vpas[v], NULL,
                                  now, &status, NULL) == 0) {
            made += status.recommendation.container_count;
        }
    }
    return made;
}

static void measure_cluster(struct cluster *cluster)
{
    double before = resident_mib();
    for (size_t v = 0; v < VPAS; v++) {
        set_vpa(cluster, v);
    }
    for (size_t v = 0; v < VPAS; v++) {
        set_pods(cluster, v, 0, START);
    }
    td_time now = START;
    size_t round = 0;
    for (; round < WARM_ROUNDS; round++, now += TD_HOUR) {
        feed_round(cluster, round, now);
        (void)recommend_all(cluster, now);
    }
    double start = cpu_seconds();
    for (size_t i = 0; i < ROUNDS; i++, round++, now += TD_MINUTE) {
        feed_round(cluster, round, now);
    }
    print_figure("feed.cpu", (cpu_seconds() - start) / ROUNDS, "s", FEED_SECONDS_MAX);
    start = cpu_seconds();
    size_t made = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        made += recommend_all(cluster, now);
    }
    print_figure("recommend.cpu", (cpu_seconds() - start) / ROUNDS, "s", RECOMMEND_SECONDS_MAX);
    print_figure("memory", resident_mib() - before, "MiB", MEMORY_MIB_MAX);
    (void)fprintf(stderr, "%zu recommendations a pass, %zu aggregates\n", made / ROUNDS,
                  td_recommender_aggregates(cluster->recommender));
    for (int rollout = 1; rollout <= ROLLOUTS; rollout++, round++, now += 24 * TD_HOUR) {
        roll_out_all(cluster, rollout, now);
        feed_round(cluster, round, now);
        (void)recommend_all(cluster, now);
    }
    print_figure("memory_rollouts", resident_mib() - before, "MiB", MEMORY_MIB_MAX);
}

static void bench_cluster(void)
{
    struct td_vertical_config config = td_vertical_config_default();
    struct cluster cluster = {.namespaces = td_alloc_zero(VPAS, sizeof(td_str)),
                              .pods = td_alloc_zero(PODS, sizeof(*cluster.pods)),
                              .vpas = td_alloc_zero(VPAS, sizeof(struct td_vpa))};
    td_arena_init(&cluster.names, SIZE_MAX);
    td_arena_init(&cluster.turn, SIZE_MAX);
    cluster.recommender = td_recommender_new(&config);
    for (size_t v = 0; v < VPAS; v++) {
        make_vpa(&cluster, v);
        name_pods(&cluster, v, 0);
    }
    measure_cluster(&cluster);
    td_recommender_free(cluster.recommender);
    td_arena_done(&cluster.names);
    td_arena_done(&cluster.turn);
    td_free(cluster.namespaces);
    td_free(cluster.pods);
    td_free(cluster.vpas);
}

/* Eight days of a sample a minute for each container, CPU and memory, in order of time. */
static void bench_replay(void)
{
    struct td_vertical_config config = td_vertical_config_default();
    struct td_aggregate *aggregates = td_alloc_zero(REPLAY_CONTAINERS, sizeof(*aggregates));
    struct td_container_state *states = td_alloc_zero(REPLAY_CONTAINERS, sizeof(*states));
    for (size_t c = 0; c < REPLAY_CONTAINERS; c++) {
        td_aggregate_init(&aggregates[c], &config, START);
        td_container_state_init(&states[c]);
    }
    double start = cpu_seconds();
    for (size_t m = 0; m < REPLAY_MINUTES; m++) {
        td_time now = START + (td_time)m * TD_MINUTE;
        for (size_t c = 0; c < REPLAY_CONTAINERS; c++) {
            uint64_t r = mix(SEED + m * REPLAY_CONTAINERS + c);
            struct td_oom_rule rule = td_learn_rule(&aggregates[c].policy, &config);
            int64_t milli = (int64_t)(50 + r % 400);
            if (td_container_cpu(&states[c], now, milli)) {
                td_aggregate_add_cpu(&aggregates[c], &config, now, milli);
            }
            struct td_peak_change change =
                td_container_memory(&states[c], &rule, now, (int64_t)(200 + (r >> 16) % 300) << 20);
            if (change.has_add) {
                td_aggregate_apply(&aggregates[c], &config, &change);
            }
        }
    }
    print_figure("replay.cpu", cpu_seconds() - start, "s", REPLAY_SECONDS_MAX);
    for (size_t c = 0; c < REPLAY_CONTAINERS; c++) {
        td_aggregate_done(&aggregates[c]);
    }
    td_free(aggregates);
    td_free(states);
}

/* In use on the heap. Pieces that malloc keeps at hand for the next call count as used, so the
 * figure moves by some hundred bytes. */
static double heap_mib(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd) / (1024.0 * 1024.0);
}

static td_str rollout_pod(char text[64], int64_t number, int p)
{
    int len = snprintf(text, 64, "vpa-0-%010llx-%d", (unsigned long long)number, p);
    return (td_str){.ptr = text, .len = (size_t)len};
}

/* One rollout: five pods of a new template replace the five before. */
static void roll_out(struct cluster *cluster, int64_t number, td_time now)
{
    char hash[32];
    char name[64];
    (void)snprintf(hash, sizeof(hash), "%010llx", (unsigned long long)number);
    for (int p = 0; p < ROLLOUT_PODS; p++) {
        td_recommender_delete_pod(cluster->recommender, cluster->namespaces[0],
                                  rollout_pod(name, number - 1, p));
        set_pod(cluster, 0, rollout_pod(name, number, p), td_str_from(hash), now);
        feed_pod(cluster, cluster->namespaces[0], rollout_pod(name, number, p),
                 (uint64_t)(number * ROLLOUT_PODS + p), now);
    }
}

static void bench_rollouts(void)
{
    struct td_vertical_config config = td_vertical_config_default();
    struct td_vpa vpa;
    td_str namespace;
    struct cluster cluster = {.namespaces = &namespace, .vpas = &vpa};
    const int64_t per_day = 24 * 3600 / ROLLOUT_SECONDS;
    double days[ROLLOUT_DAYS];
    td_arena_init(&cluster.names, SIZE_MAX);
    make_vpa(&cluster, 0);
    double before = heap_mib();
    cluster.recommender = td_recommender_new(&config);
    set_vpa(&cluster, 0);
    for (int64_t number = 1; number <= ROLLOUT_DAYS * per_day; number++) {
        td_time now = START + number * ROLLOUT_SECONDS * TD_SECOND;
        roll_out(&cluster, number, now);
        td_recommender_gc(cluster.recommender, now, NULL); /* once an hour */
        if (number % per_day == 0) {
            days[number / per_day - 1] = heap_mib() - before;
        }
    }
    /* Only now, because the first print allocates. */
    for (int day = 0; day < ROLLOUT_DAYS; day++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "rollout.day%d", day + 1);
        print_figure(name, days[day], "MiB", MEMORY_MIB_MAX);
    }
    print_figure("rollout.growth", 100.0 * (days[ROLLOUT_DAYS - 1] - days[0]) / days[0], "%",
                 GROWTH_PERCENT_MAX);
    td_recommender_free(cluster.recommender);
    td_arena_done(&cluster.names);
}

/* A sample of each state's container in the round of that number. */
static void feed_tracked(void **states, size_t round, td_time now)
{
    for (size_t i = 0; i < TRACKED; i++) {
        uint64_t r = mix(SEED + round * TRACKED + i);
        const struct td_cpu_use use = {.milli = (int64_t)(50 + r % 400), .request_milli = 300};
        td_estimator_track.add_cpu(states[i], now, &use);
        td_estimator_track.add_memory(states[i], now, (int64_t)(200 + (r >> 16) % 300) << 20);
    }
}

static void bench_tracked(void)
{
    struct td_vertical_config config = td_vertical_config_default();
    void **states = td_alloc_zero(TRACKED, sizeof(*states));
    double before = heap_mib();
    for (size_t i = 0; i < TRACKED; i++) {
        states[i] = td_alloc_zero(1, td_estimator_track.state_bytes);
        td_estimator_track.init(states[i]);
    }
    double bytes = (heap_mib() - before) * 1024 * 1024 / (double)TRACKED;
    td_time now = START;
    size_t round = 0;
    for (; round < TRACKED_SLOTS; round++, now += 30 * TD_MINUTE) {
        feed_tracked(states, round, now);
    }
    double start = cpu_seconds();
    int64_t sum = 0;
    for (size_t pass = 0; pass < ROUNDS; pass++, round++, now += TD_MINUTE) {
        feed_tracked(states, round, now);
        for (size_t i = 0; i < TRACKED; i++) {
            const struct td_estimator_input input = {
                .config = &config, .state = states[i], .now = now};
            struct td_estimate estimate;
            struct td_account account = {.samples = 0};
            td_estimator_track.recommend(&input, &estimate, &account);
            sum += estimate.cpu.target;
        }
    }
    print_figure("track.state", bytes, "bytes", TRACKED_BYTES_MAX);
    print_figure("track.pass.cpu", (cpu_seconds() - start) / ROUNDS, "s", TRACKED_SECONDS_MAX);
    (void)fprintf(stderr, "mean target under track %lldm\n",
                  (long long)(sum / (int64_t)(ROUNDS * TRACKED)));
    for (size_t i = 0; i < TRACKED; i++) {
        td_free(states[i]);
    }
    td_free(states);
}

int main(void)
{
    bench_rollouts();
    bench_tracked();
    bench_cluster();
    bench_replay();
    return is_broken ? 1 : 0;
}
