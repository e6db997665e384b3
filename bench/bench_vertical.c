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
 */
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "decide/vertical/recommender.h"

#define VPAS ((size_t)10000)
#define VPAS_PER_NAMESPACE ((size_t)100)
#define PODS_PER_VPA ((size_t)15)
#define PODS (VPAS * PODS_PER_VPA)
#define CONTAINERS ((size_t)2)
#define SEED 7U
#define WARM_ROUNDS 24
#define ROUNDS 5
#define START ((td_time)1772323200 * TD_SECOND)

#define REPLAY_CONTAINERS ((size_t)10000)
#define REPLAY_MINUTES ((size_t)8 * 24 * 60) /* 115.2 million samples */

#define ROLLOUT_SECONDS 30
#define ROLLOUT_DAYS 8

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

struct cluster {
    struct td_recommender *recommender;
    struct td_arena names;
    struct td_arena turn;
    td_str *namespaces; /* one per VPA */
    td_str *pods;       /* names of all pods */
    struct td_vpa *vpas;
};

static void make_vpa(struct cluster *cluster, size_t v)
{
    td_str name = td_arena_format(&cluster->names, "vpa-%zu", v);
    cluster->namespaces[v] = td_arena_format(&cluster->names, "team-%zu", v / VPAS_PER_NAMESPACE);
    struct td_vpa *vpa = &cluster->vpas[v];
    *vpa = (struct td_vpa){.meta = {.name = name,
                                    .namespace = cluster->namespaces[v],
                                    .created = TD_INSTANT_ZERO,
                                    .generation = 1},
                           .mode = TD_VPA_RECREATE,
                           .target_kind = TD_STR("Deployment"),
                           .target_name = name};
    const td_str value = name;
    const struct td_requirement requirement = {
        .key = TD_STR("app"), .operation = TD_SELECTOR_EQUALS, .values = &value, .value_count = 1};
    const struct td_selector selector = {.requirements = &requirement, .count = 1};
    const struct td_vpa_link link = {
        .vpa = vpa, .target_selector = &selector, .target = TD_STR_EMPTY};
    (void)td_recommender_set_vpa(cluster->recommender, &link, START, NULL);
}

static void make_pods(struct cluster *cluster, size_t v)
{
    const struct td_label labels[] = {{TD_STR("app"), cluster->vpas[v].meta.name},
                                      {TD_STR("pod-template-hash"), TD_STR("5d9c7b8f6d")}};
    for (size_t p = v * PODS_PER_VPA; p < (v + 1) * PODS_PER_VPA; p++) {
        cluster->pods[p] = td_arena_format(&cluster->names, "vpa-%zu-5d9c7b8f6d-%05zx", v, p);
        const struct td_pod_sight sight = {.namespace = cluster->namespaces[v],
                                           .name = cluster->pods[p],
                                           .labels = {.items = labels, .count = 2},
                                           .target = TD_STR_EMPTY,
                                           .phase = TD_POD_RUNNING};
        struct td_tracked_pod *pod = NULL;
        (void)td_recommender_set_pod(cluster->recommender, &sight, START, &pod, NULL);
        for (size_t c = 0; c < CONTAINERS; c++) {
            (void)td_recommender_set_container(cluster->recommender, pod, container_names[c], 0,
                                               START, NULL);
        }
    }
}

static void feed_round(struct cluster *cluster, size_t round, td_time now)
{
    for (size_t p = 0; p < PODS; p++) {
        struct td_tracked_pod *pod = td_recommender_find_pod(
            cluster->recommender, cluster->namespaces[p / PODS_PER_VPA], cluster->pods[p]);
        for (size_t c = 0; c < CONTAINERS; c++) {
            uint64_t r = mix(SEED + round * PODS * CONTAINERS + p * CONTAINERS + c);
            (void)td_recommender_sample(cluster->recommender, pod, container_names[c], TD_LEARN_CPU,
                                        now, (int64_t)(50 + r % 400), now);
            (void)td_recommender_sample(cluster->recommender, pod, container_names[c],
                                        TD_LEARN_MEMORY, now,
                                        (int64_t)(200 + (r >> 16) % 300) << 20, now);
        }
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

static void bench_cluster(void)
{
    struct td_vertical_config config = td_vertical_config_default();
    struct cluster cluster = {.namespaces = td_alloc_zero(VPAS, sizeof(td_str)),
                              .pods = td_alloc_zero(PODS, sizeof(td_str)),
                              .vpas = td_alloc_zero(VPAS, sizeof(struct td_vpa))};
    td_arena_init(&cluster.names, SIZE_MAX);
    td_arena_init(&cluster.turn, SIZE_MAX);
    cluster.recommender = td_recommender_new(&config);
    /* The names are the caller's: made first, and not counted. */
    for (size_t v = 0; v < VPAS; v++) {
        make_vpa(&cluster, v);
    }
    double before = resident_mib();
    for (size_t v = 0; v < VPAS; v++) {
        make_pods(&cluster, v);
    }
    td_time now = START;
    size_t round = 0;
    for (; round < WARM_ROUNDS; round++, now += TD_HOUR) {
        feed_round(&cluster, round, now);
    }
    (void)printf("bench vertical.memory %.1f MiB\n", resident_mib() - before);
    double start = cpu_seconds();
    for (size_t i = 0; i < ROUNDS; i++, round++, now += TD_MINUTE) {
        feed_round(&cluster, round, now);
    }
    (void)printf("bench vertical.feed.cpu %.4f s\n", (cpu_seconds() - start) / ROUNDS);
    start = cpu_seconds();
    size_t made = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        made += recommend_all(&cluster, now);
    }
    (void)printf("bench vertical.recommend.cpu %.4f s\n", (cpu_seconds() - start) / ROUNDS);
    (void)fprintf(stderr, "%zu recommendations a pass, %zu aggregates\n", made / ROUNDS,
                  td_recommender_aggregates(cluster.recommender));
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
    (void)printf("bench vertical.replay.cpu %.2f s\n", cpu_seconds() - start);
    for (size_t c = 0; c < REPLAY_CONTAINERS; c++) {
        td_aggregate_done(&aggregates[c]);
    }
    td_free(aggregates);
    td_free(states);
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* One rollout: five pods of a new template replace the five before. */
static void roll_out(struct cluster *cluster, int64_t number, td_time now)
{
    char hash[32];
    char name[64];
    (void)snprintf(hash, sizeof(hash), "%010llx", (unsigned long long)number);
    const struct td_label labels[] = {{TD_STR("app"), cluster->vpas[0].meta.name},
                                      {TD_STR("pod-template-hash"), td_str_from(hash)}};
    for (int p = 0; p < 5; p++) {
        (void)snprintf(name, sizeof(name), "vpa-0-%010llx-%d", (unsigned long long)(number - 1), p);
        td_recommender_delete_pod(cluster->recommender, cluster->namespaces[0], td_str_from(name));
        (void)snprintf(name, sizeof(name), "vpa-0-%s-%d", hash, p);
        const struct td_pod_sight sight = {.namespace = cluster->namespaces[0],
                                           .name = td_str_from(name),
                                           .labels = {.items = labels, .count = 2},
                                           .target = TD_STR_EMPTY,
                                           .phase = TD_POD_RUNNING};
        struct td_tracked_pod *pod = NULL;
        (void)td_recommender_set_pod(cluster->recommender, &sight, now, &pod, NULL);
        (void)td_recommender_set_container(cluster->recommender, pod, container_names[0], 0, now,
                                           NULL);
        uint64_t r = mix(SEED + (uint64_t)number * 5 + (uint64_t)p);
        (void)td_recommender_sample(cluster->recommender, pod, container_names[0], TD_LEARN_CPU,
                                    now, (int64_t)(50 + r % 400), now);
        (void)td_recommender_sample(cluster->recommender, pod, container_names[0], TD_LEARN_MEMORY,
                                    now, (int64_t)(200 + (r >> 16) % 300) << 20, now);
    }
}

static void bench_rollouts(void)
{
    struct td_vertical_config config = td_vertical_config_default();
    struct td_vpa vpa;
    td_str namespace;
    struct cluster cluster = {
        .recommender = td_recommender_new(&config), .namespaces = &namespace, .vpas = &vpa};
    const int64_t day = 24 * 3600 / ROLLOUT_SECONDS;
    size_t first_day = 0;
    td_arena_init(&cluster.names, SIZE_MAX);
    make_vpa(&cluster, 0);
    for (int64_t number = 1; number <= ROLLOUT_DAYS * day; number++) {
        td_time now = START + number * ROLLOUT_SECONDS * TD_SECOND;
        roll_out(&cluster, number, now);
        if (number % (3600 / ROLLOUT_SECONDS) == 0) {
            td_recommender_gc(cluster.recommender, now, NULL);
        }
        if (number == day) {
            first_day = heap_bytes();
        }
    }
    double growth = 100.0 * ((double)heap_bytes() - (double)first_day) / (double)first_day;
    (void)printf("bench vertical.rollout.growth %.2f %%\n", growth);
    td_recommender_free(cluster.recommender);
    td_arena_done(&cluster.names);
}

int main(void)
{
    bench_rollouts();
    bench_cluster();
    bench_replay();
    return 0;
}
