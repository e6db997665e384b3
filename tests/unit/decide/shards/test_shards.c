/* Shards: cuts that are as even as namespaces allow, and plans under which no two replicas ever
 * work on one namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "decide/shards/shards.h"
#include "kube/selector/shard.h"
#include "support/random.h"

#define NAMESPACES 300
#define SHARDS_MAX 12
#define ROUNDS 400

static size_t teams(struct td_arena *arena, struct td_shard_weight *weights, size_t count,
                    uint64_t weight_max)
{
    for (size_t i = 0; i < count; i++) {
        td_str name = td_arena_format(arena, "team-%zu", i + 1);
        /* A few large namespaces, many small ones. */
        uint64_t weight = 1 + random_below(i % 20 == 0 ? weight_max : weight_max / 20 + 1);
        weights[i] = (struct td_shard_weight){
            .namespace = name, .hash = td_shard_hash(name), .weight = weight};
    }
    return count;
}

static void equal_parts(uint64_t *starts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        starts[i - 1] = UINT64_MAX / count * i;
    }
}

/* team-1 to team-300, whose hashes are neighbours: the heaviest shard stays within 1.5 of the mean,
 * of equal parts of the hashes it holds up to eight means. */
static void test_shards_are_even_where_hashes_are_not(void **state)
{
    (void)state;
    td_auto_arena arena = td_arena_capped((size_t)16 << 20);
    struct td_shard_weight weights[NAMESPACES];
    teams(&arena, weights, NAMESPACES, 400);
    for (size_t count = 3; count <= SHARDS_MAX; count++) {
        uint64_t starts[SHARDS_MAX];
        uint64_t parts[SHARDS_MAX];
        td_shards_cut(weights, NAMESPACES, count, starts);
        equal_parts(parts, count);
        struct td_shard_balance cut = td_shards_weigh(weights, NAMESPACES, starts, count);
        struct td_shard_balance equal = td_shards_weigh(weights, NAMESPACES, parts, count);
        assert_true(cut.heaviest * count * 2 <= cut.total * 3);
        assert_true(equal.heaviest * count * 2 > equal.total * 3);
        assert_true(td_shards_is_uneven(&equal, &cut, count));
        assert_false(td_shards_is_uneven(&cut, &cut, count));
    }
}

/* Any cut is growing, every namespace is in one shard, and no shard is heavier than a mean and the
 * heaviest namespace together. */
static void test_shards_cut_holds_its_bounds(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        td_auto_arena arena = td_arena_capped((size_t)16 << 20);
        struct td_shard_weight weights[NAMESPACES];
        size_t namespaces = random_below(round % 4 == 0 ? 4 : NAMESPACES);
        size_t count = 1 + random_below(SHARDS_MAX);
        (void)teams(&arena, weights, namespaces, 1 + random_below(1000));
        uint64_t starts[SHARDS_MAX];
        td_shards_cut(weights, namespaces, count, starts);
        uint64_t heaviest = 0;
        uint64_t total = 0;
        for (size_t i = 0; i < namespaces; i++) {
            heaviest = weights[i].weight > heaviest ? weights[i].weight : heaviest;
            total += weights[i].weight;
        }
        for (size_t i = 0; i + 1 < count; i++) {
            assert_true(starts[i] > (i > 0 ? starts[i - 1] : 0));
        }
        struct td_shard_balance balance = td_shards_weigh(weights, namespaces, starts, count);
        assert_int_equal(balance.total, total);
        assert_true(balance.heaviest <= total / count + heaviest + 1);
    }
}

/* What a replica does, by what it sees. */
static void test_shards_plan_follows_what_is_seen(void **state)
{
    static const struct td_shard_lease two[] = {
        {.index = 0, .count = 4, .epoch = 3, .holder = TD_STR_INIT("b"), .is_alive = true},
        {.index = 1, .count = 4, .epoch = 3, .holder = TD_STR_INIT("b"), .is_alive = true},
        {.index = 2, .count = 4, .epoch = 3, .holder = TD_STR_INIT("c"), .is_alive = false},
    };
    static const struct td_shard_lease old[] = {
        {.index = 7, .count = 8, .epoch = 2, .holder = TD_STR_INIT("b"), .is_alive = true},
        {.index = 0, .count = 4, .epoch = 2, .holder = TD_STR_INIT("c"), .is_alive = false},
    };
    struct td_shards_view view = {.self = TD_STR("a"), .claimant = TD_STR_EMPTY};
    struct td_shards_plan plan = td_shards_plan(&view, 0);
    (void)state;
    assert_int_equal(plan.take, 0); /* no cut was read */
    assert_false(plan.is_drained);
    view.epoch = 3;
    view.count = 4;
    view.leases = two;
    view.lease_count = 3;
    plan = td_shards_plan(&view, 0);
    assert_int_equal(plan.live, 2);
    assert_int_equal(plan.share, 2);
    assert_int_equal(plan.take, 2);
    assert_true(plan.is_drained);
    assert_false(td_shards_is_free(&view, 1));
    assert_true(td_shards_is_free(&view, 2));
    view.claimant = TD_STR("d");
    plan = td_shards_plan(&view, 2);
    assert_int_equal(plan.live, 3);
    assert_int_equal(plan.share, 2);
    view.claimant = TD_STR("b"); /* holds shards already */
    assert_int_equal(td_shards_plan(&view, 2).live, 2);
    assert_int_equal(td_shards_plan(&view, 4).release, 2);
    view.leases = old;
    view.lease_count = 2;
    assert_false(td_shards_plan(&view, 0).is_drained);
}

/* ---- Replicas under the protocol ---- */

#define REPLICAS 5
#define STEPS 4000

struct lease {
    int holder; /* -1: nobody */
    uint64_t epoch;
};

struct replica {
    uint64_t read_epoch; /* of the newest cut that it has read */
    size_t read_count;
    uint64_t held_epoch[SHARDS_MAX]; /* 0: not held */
    bool works[SHARDS_MAX];
    bool has_looked[SHARDS_MAX]; /* since it holds the lease, and saw none of another cut */
};

struct cluster {
    uint64_t epoch;
    size_t count;
    uint64_t cuts[64][SHARDS_MAX]; /* starts by epoch */
    size_t counts[64];
    struct lease leases[SHARDS_MAX + 1][SHARDS_MAX]; /* by N and index */
    struct replica replicas[REPLICAS];
};

static size_t seen_leases(const struct cluster *cluster, struct td_shard_lease *ret)
{
    static const td_str names[REPLICAS] = {TD_STR_INIT("a"), TD_STR_INIT("b"), TD_STR_INIT("c"),
                                           TD_STR_INIT("d"), TD_STR_INIT("e")};
    size_t count = 0;
    for (size_t n = 1; n <= SHARDS_MAX; n++) {
        for (size_t i = 0; i < n; i++) {
            const struct lease *lease = &cluster->leases[n][i];
            if (lease->holder >= 0) {
                ret[count++] = (struct td_shard_lease){.index = i,
                                                       .count = n,
                                                       .epoch = lease->epoch,
                                                       .holder = names[lease->holder],
                                                       .is_alive = true};
            }
        }
    }
    return count;
}

static void drop(struct cluster *cluster, size_t who, size_t index)
{
    struct replica *replica = &cluster->replicas[who];
    struct lease *lease = &cluster->leases[cluster->counts[replica->held_epoch[index]]][index];
    replica->works[index] = false;
    replica->held_epoch[index] = 0;
    lease->holder = -1;
}

/* One move of one replica, as small as they are on a cluster: reading, taking, beginning, giving
 * up, dying. */
static void step(struct cluster *cluster, size_t who)
{
    struct replica *replica = &cluster->replicas[who];
    struct td_shard_lease leases[SHARDS_MAX * SHARDS_MAX];
    size_t index = random_below(SHARDS_MAX);
    struct td_shards_view view = {.self = TD_STR("?"),
                                  .epoch = replica->read_epoch,
                                  .count = replica->read_count,
                                  .leases = leases};
    switch (random_below(7)) {
    case 0: /* reads the cut */
        replica->read_epoch = cluster->epoch;
        replica->read_count = cluster->count;
        break;
    case 1: /* takes a lease under the cut that it knows, which may be old */
        if (replica->read_epoch > 0 && index < replica->read_count &&
            replica->held_epoch[index] == 0 &&
            cluster->leases[replica->read_count][index].holder < 0) {
            cluster->leases[replica->read_count][index] =
                (struct lease){.holder = (int)who, .epoch = replica->read_epoch};
            replica->held_epoch[index] = replica->read_epoch;
            replica->has_looked[index] = false;
        }
        break;
    case 2: /* looks at all leases */
        view.lease_count = seen_leases(cluster, leases);
        for (size_t i = 0; i < SHARDS_MAX; i++) {
            replica->has_looked[i] = replica->held_epoch[i] > 0 &&
                                     replica->held_epoch[i] == replica->read_epoch &&
                                     td_shards_plan(&view, 1).is_drained;
        }
        break;
    case 5: /* begins, when it may: some time after it looked */
        replica->works[index] =
            replica->works[index] || (replica->held_epoch[index] > 0 && replica->has_looked[index]);
        break;
    case 3: /* gives up what is of an older cut, or anything */
        if (replica->held_epoch[index] > 0 &&
            (replica->held_epoch[index] != replica->read_epoch || random_below(8) == 0)) {
            drop(cluster, who, index);
        }
        break;
    case 4: /* dies, and comes back knowing nothing */
        for (size_t i = 0; i < SHARDS_MAX && random_below(20) == 0; i++) {
            if (replica->held_epoch[i] > 0) {
                drop(cluster, who, i);
            }
        }
        break;
    default: /* cuts anew */
        if (random_below(40) == 0 && cluster->epoch < 63) {
            cluster->epoch++;
            cluster->count = 1 + random_below(SHARDS_MAX);
            cluster->counts[cluster->epoch] = cluster->count;
            struct td_shard_weight weights[8];
            for (size_t i = 0; i < 8; i++) {
                weights[i] = (struct td_shard_weight){.hash = random_next(), .weight = 1};
            }
            td_shards_cut(weights, 8, cluster->count, cluster->cuts[cluster->epoch]);
        }
        break;
    }
}

static bool works_on(const struct cluster *cluster, const struct replica *replica, uint64_t hash)
{
    for (size_t i = 0; i < SHARDS_MAX; i++) {
        uint64_t epoch = replica->held_epoch[i];
        const uint64_t *starts = cluster->cuts[epoch];
        if (replica->works[i] && hash >= (i > 0 ? starts[i - 1] : 0) &&
            (i + 1 >= cluster->counts[epoch] || hash < starts[i])) {
            return true;
        }
    }
    return false;
}

/* Replicas that read, take, begin and die in any order, while the cut changes under them: no two
 * ever work on one namespace. And it is not for want of work. */
static void test_shards_never_have_two_workers(void **state)
{
    (void)state;
    size_t worked = 0;
    for (int round = 0; round < 60; round++) {
        static struct cluster cluster;
        cluster = (struct cluster){.epoch = 1, .count = 4, .counts = {[1] = 4}};
        equal_parts(cluster.cuts[1], 4);
        for (size_t n = 0; n <= SHARDS_MAX; n++) {
            for (size_t i = 0; i < SHARDS_MAX; i++) {
                cluster.leases[n][i].holder = -1;
            }
        }
        for (int i = 0; i < STEPS; i++) {
            step(&cluster, random_below(REPLICAS));
            for (size_t probe = 0; probe < 4; probe++) {
                uint64_t hash = random_next();
                size_t workers = 0;
                for (size_t who = 0; who < REPLICAS; who++) {
                    workers += works_on(&cluster, &cluster.replicas[who], hash);
                }
                assert_true(workers <= 1);
                worked += workers;
            }
        }
    }
    assert_true(worked > 1000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards_are_even_where_hashes_are_not),
        cmocka_unit_test(test_shards_cut_holds_its_bounds),
        cmocka_unit_test(test_shards_plan_follows_what_is_seen),
        cmocka_unit_test(test_shards_never_have_two_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
