/* Histograms keep their promises over random streams, and Go's arithmetic bit for bit. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <math.h>

#include "base/error.h"
#include "decide/vertical/estimator/gomath.h"
#include "decide/vertical/recommender/config.h"

#define STREAMS 2000
#define STREAM_SAMPLES 40

/* A small generator of our own, so that a failing stream can be named and repeated. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}

static double unit_random(uint64_t *state)
{
    return (double)(next_random(state) >> 11) / 9007199254740992.0;
}

static void fill(struct td_decaying *histogram, const struct td_decay *decay, uint64_t *state)
{
    struct td_instant time = {.unix_seconds = 1772323200};
    for (int i = 0; i < STREAM_SAMPLES; i++) {
        time.unix_seconds += (int64_t)(next_random(state) % 40000);
        double value = exp(unit_random(state) * 12.0) * 0.005;
        if (next_random(state) % 5 == 0) {
            td_decaying_subtract(histogram, decay, value, unit_random(state), time);
        } else {
            td_decaying_add(histogram, decay, value, unit_random(state), time);
        }
    }
}

/* Go's results for arguments on which C libraries differ or that mark the ends of ranges. */
static void test_gomath_matches_go(void **unused)
{
    (void)unused;
    assert_true(td_go_pow(INFINITY, -2) == 0.0);
    assert_true(td_go_pow(0.0, -2) == INFINITY);
    assert_true(td_go_pow(3.0, 0) == 1.0);
    assert_true(td_go_pow(-2.0, -3) == -0.125);
    assert_true(td_go_pow(1e300, 40) == INFINITY);
    assert_true(td_go_exp2(0.0) == 1.0);
    assert_true(td_go_exp2(10.0) == 1024.0);
    assert_true(td_go_exp2(-1075.0) == 0.0);
    assert_true(td_go_exp2(1024.0) == INFINITY);
    assert_true(td_go_log(1.0) == 0.0);
    assert_true(td_go_log(0.0) == -INFINITY);
    assert_true(isnan(td_go_log(-1.0)));
}

/* The two schemes have 176 buckets, and the one boundary that correct rounding would move. */
static void test_bucketing_of_cpu_and_memory(void **unused)
{
    struct td_vertical_config config = td_vertical_config_default();
    (void)unused;
    assert_int_equal(config.cpu.scheme.count, 176);
    assert_int_equal(config.memory.scheme.count, 176);
    assert_int_equal((int64_t)td_bucketing_start(&config.memory.scheme, 4), 43101249);
    assert_int_equal(td_bucketing_find(&config.memory.scheme, 20500000), 1);
    assert_int_equal(td_bucketing_find(&config.memory.scheme, 20500001), 2);
    assert_int_equal(td_bucketing_find(&config.memory.scheme, 1e15), 175);
    assert_int_equal(td_bucketing_find(&config.memory.scheme, -1), 0);
}

static void test_bucketing_refuses_bad_options(void **unused)
{
    static const double rows[][4] = {{0, 1, 1.1, 0.1},
                                     {1, 0, 1.1, 0.1},
                                     {1, 1, 1.0, 0.1},
                                     {1, 1, 1.1, 0},
                                     {1e300, 1e-9, 1.0000001, 1}};
    (void)unused;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_bucketing scheme;
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(
            td_bucketing_exponential(rows[i][0], rows[i][1], rows[i][2], rows[i][3], &scheme, &err),
            TD_INVALID);
        assert_true(err.message[0] != '\0');
    }
}

/* Percentiles never fall as the fraction grows, and no weight is negative. */
static void test_histogram_percentiles_are_monotone(void **unused)
{
    struct td_vertical_config config = td_vertical_config_default();
    (void)unused;
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15;
        struct td_decaying histogram;
        td_decaying_init(&histogram, &config.cpu);
        fill(&histogram, &config.cpu, &state);
        double last = 0;
        for (int step = 0; step <= 20; step++) {
            double value = td_decaying_percentile(&histogram, &config.cpu, step / 20.0);
            assert_true(value >= last);
            last = value;
        }
        assert_true(histogram.plain.total >= 0);
        for (int32_t bucket = 0; bucket < config.cpu.scheme.count; bucket++) {
            assert_true(td_histogram_weight(&histogram.plain, bucket) >= 0);
        }
        td_decaying_done(&histogram);
    }
}

/* What was saved and loaded saves the same again. */
static void test_histogram_save_and_load_is_idempotent(void **unused)
{
    struct td_vertical_config config = td_vertical_config_default();
    (void)unused;
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15;
        struct td_decaying histogram;
        struct td_decaying loaded;
        struct td_histogram_checkpoint first;
        struct td_histogram_checkpoint second;
        td_decaying_init(&histogram, &config.cpu);
        td_decaying_init(&loaded, &config.cpu);
        fill(&histogram, &config.cpu, &state);
        td_decaying_save(&histogram, &first);
        assert_int_equal(td_decaying_load(&loaded, &config.cpu, &first, NULL), TD_OK);
        td_decaying_save(&loaded, &second);
        /* Buckets below epsilon are dropped by the first round and cannot come back. */
        for (int bucket = 0; bucket < TD_CHECKPOINT_BUCKETS_MAX; bucket++) {
            assert_true(second.weights[bucket] == first.weights[bucket] ||
                        second.weights[bucket] == 0);
        }
        assert_true(fabs(first.total_weight - second.total_weight) <= 1e-9 * first.total_weight);
        td_decaying_done(&histogram);
        td_decaying_done(&loaded);
    }
}

/* a + b and b + a agree within 1e-9. */
static void test_histogram_merge_is_commutative(void **unused)
{
    struct td_vertical_config config = td_vertical_config_default();
    (void)unused;
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        struct td_decaying sides[2];
        struct td_decaying copies[2];
        uint64_t state = seed * 0x9e3779b97f4a7c15;
        for (int i = 0; i < 2; i++) {
            td_decaying_init(&sides[i], &config.cpu);
            fill(&sides[i], &config.cpu, &state);
            td_decaying_copy(&sides[i], &copies[i]);
        }
        td_decaying_merge(&sides[0], &config.cpu, &sides[1]);
        td_decaying_merge(&copies[1], &config.cpu, &copies[0]);
        for (int32_t bucket = 0; bucket < config.cpu.scheme.count; bucket++) {
            double a = td_histogram_weight(&sides[0].plain, bucket);
            double b = td_histogram_weight(&copies[1].plain, bucket);
            assert_true(fabs(a - b) <= 1e-9 * fmax(1.0, fabs(a)));
        }
        for (int i = 0; i < 2; i++) {
            td_decaying_done(&sides[i]);
            td_decaying_done(&copies[i]);
        }
    }
}

/* Only the stretch of buckets in use is stored. */
static void test_histogram_stores_little(void **unused)
{
    struct td_vertical_config config = td_vertical_config_default();
    struct td_histogram histogram;
    (void)unused;
    td_histogram_init(&histogram, &config.cpu.scheme);
    assert_int_equal(td_histogram_bytes(&histogram), 0);
    td_histogram_add(&histogram, &config.cpu.scheme, 0.5, 1.0);
    td_histogram_add(&histogram, &config.cpu.scheme, 0.6, 1.0);
    assert_true(td_histogram_bytes(&histogram) <= 8 * sizeof(double));
    td_histogram_done(&histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gomath_matches_go),
        cmocka_unit_test(test_bucketing_of_cpu_and_memory),
        cmocka_unit_test(test_bucketing_refuses_bad_options),
        cmocka_unit_test(test_histogram_percentiles_are_monotone),
        cmocka_unit_test(test_histogram_save_and_load_is_idempotent),
        cmocka_unit_test(test_histogram_merge_is_commutative),
        cmocka_unit_test(test_histogram_stores_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
