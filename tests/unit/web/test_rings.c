/* What a page remembers of workloads: exact enough, whole for a day, within its budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "web/rings.h"

#define START INT64_C(28400000) /* minutes */

static void fill(double values[], size_t count, double value)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = value;
    }
}

static void put(struct td_rings *rings, struct td_ring *ring, int64_t minute, double sample,
                double setting)
{
    double samples[TD_SAMPLE_COUNT];
    double settings[TD_SETTING_COUNT];
    fill(samples, TD_SAMPLE_COUNT, sample);
    fill(settings, TD_SETTING_COUNT, setting);
    td_rings_put(rings, ring, minute, samples, settings);
}

/* A value comes back within 0.06 %, whole from 0 to 800; below 0 is "not known". */
static void test_rings_keep_values(void **state)
{
    (void)state;
    static const double values[] = {0, 1, 25, 799, 1500, 65536, 4.3e9, 1.1e12, 1e16};
    struct td_rings rings;
    td_rings_init(&rings);
    struct td_ring *ring = td_rings_add(&rings);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        put(&rings, ring, START + (int64_t)i, values[i], -1);
        double back = td_ring_sample(ring, i, TD_SAMPLE_MEMORY_MAX);
        double error = back > values[i] ? back - values[i] : values[i] - back;
        assert_true(error <= values[i] * 0.0006 + 1e-9);
    }
    put(&rings, ring, START + 20, -1, -1);
    assert_true(td_ring_sample(ring, 20, TD_SAMPLE_CPU_MAX) < 0);
    assert_true(td_ring_sample(ring, 15, TD_SAMPLE_CPU_MAX) < 0); /* a gap */
    put(&rings, ring, START + 21, 1e300, -1);
    assert_true(td_ring_sample(ring, 21, TD_SAMPLE_CPU_MAX) <= 1.0007e16);
    td_rings_remove(&rings, ring);
    assert_int_equal(rings.count, 0);
}

/* Two of one minute: the middle of what is usual, the highest of peaks, the lowest of the ready. A
 * clock that goes back before the first point is passed over. */
static void test_rings_merge_a_minute(void **state)
{
    (void)state;
    struct td_rings rings;
    td_rings_init(&rings);
    struct td_ring *ring = td_rings_add(&rings);
    put(&rings, ring, START, 100, -1);
    put(&rings, ring, START, 300, -1);
    put(&rings, ring, START - 5, 999, -1);
    assert_int_equal(td_ring_span(&rings, ring).count, 1);
    assert_int_equal(td_ring_span(&rings, ring).first, START);
    assert_true(td_ring_sample(ring, 0, TD_SAMPLE_CPU_P50) > 199);
    assert_true(td_ring_sample(ring, 0, TD_SAMPLE_CPU_P50) < 201);
    assert_true(td_ring_sample(ring, 0, TD_SAMPLE_CPU_MAX) > 299);
    assert_true(td_ring_sample(ring, 0, TD_SAMPLE_READY) < 101);
    td_rings_remove(&rings, ring);
}

/* After a day the oldest points go, most of a day stays; after a long silence it begins anew. */
static void test_rings_hold_a_day(void **state)
{
    (void)state;
    struct td_rings rings;
    td_rings_init(&rings);
    struct td_ring *ring = td_rings_add(&rings);
    for (int64_t minute = 0; minute < 4000; minute++) {
        put(&rings, ring, START + minute, (double)minute, 1);
    }
    struct td_ring_span span = td_ring_span(&rings, ring);
    assert_true(span.count > TD_RING_MINUTES * 3 / 4);
    assert_true(span.count <= TD_RING_MINUTES);
    assert_int_equal(span.first + (int64_t)span.count, START + 4000);
    assert_true(td_ring_sample(ring, span.count - 1, TD_SAMPLE_CPU_MAX) > 3990);
    put(&rings, ring, START + 40000, 7, 1);
    assert_int_equal(td_ring_span(&rings, ring).count, 1);
    td_rings_remove(&rings, ring);
}

/* Settings are kept when they change, and hold until the next change. */
static void test_rings_keep_changes(void **state)
{
    (void)state;
    struct td_rings rings;
    td_rings_init(&rings);
    struct td_ring *ring = td_rings_add(&rings);
    double values[100];
    for (int64_t minute = 0; minute < 100; minute++) {
        put(&rings, ring, START + minute, 1, minute < 10 ? -1 : minute < 60 ? 500 : 250);
    }
    size_t position = 0;
    int64_t minute = 0;
    double value = 0;
    assert_true(td_ring_next_change(ring, TD_SETTING_WANTED, &position, &minute, &value));
    assert_int_equal(minute, START + 10);
    assert_true(td_ring_next_change(ring, TD_SETTING_WANTED, &position, &minute, &value));
    assert_int_equal(minute, START + 60);
    assert_false(td_ring_next_change(ring, TD_SETTING_WANTED, &position, &minute, &value));
    td_ring_fill(&rings, ring, TD_SETTING_CPU_REQUEST, values);
    assert_true(values[9] < 0);
    assert_true(values[10] > 499 && values[59] > 499);
    assert_true(values[60] < 251 && values[99] > 249);
    td_rings_remove(&rings, ring);
}

/* A target that changes every minute of a day: the day stays whole, and each point is near. */
static void test_rings_keep_the_day_of_changes(void **state)
{
    (void)state;
    struct td_rings rings;
    td_rings_init(&rings);
    struct td_ring *ring = td_rings_add(&rings);
    for (int64_t minute = 0; minute < TD_RING_MINUTES; minute++) {
        put(&rings, ring, START + minute, 1, 1000 + 10 * (double)minute);
    }
    double *values = td_alloc_zero(TD_RING_MINUTES, sizeof(*values));
    td_ring_fill(&rings, ring, TD_SETTING_MEMORY_TARGET, values);
    assert_true(values[0] < 0 || values[0] < 1700);
    for (int64_t minute = 64; minute < TD_RING_MINUTES; minute++) {
        double should = 1000 + 10 * (double)minute;
        assert_true(values[minute] > should - 660 && values[minute] < should + 20);
    }
    assert_true(td_rings_bytes(&rings) < 32 * 1024);
    td_free(values);
    td_rings_remove(&rings, ring);
}

/* 1,000 workloads by the minute for a day, each setting changing all the time: within 32 MiB. */
static void test_rings_of_a_thousand_are_bounded(void **state)
{
    (void)state;
    struct td_rings rings;
    td_rings_init(&rings);
    for (int i = 0; i < 1000; i++) {
        struct td_ring *ring = td_rings_add(&rings);
        for (int64_t minute = 0; minute < 1500; minute++) {
            put(&rings, ring, START + minute, (double)minute, (double)(minute % 97 * 13));
        }
    }
    assert_int_equal(rings.minutes_per_point, 1);
    assert_true(td_rings_bytes(&rings) <= (size_t)32 << 20);
    while (rings.first) {
        td_rings_remove(&rings, rings.first);
    }
}

/* With many more the points cover more minutes, an odd first one included; peaks stay, and the
 * memory does. */
static void test_rings_thin_out(void **state)
{
    (void)state;
    struct td_rings rings;
    td_rings_init(&rings);
    struct td_ring *first = td_rings_add(&rings);
    for (int64_t minute = 1; minute <= TD_RING_MINUTES; minute++) {
        put(&rings, first, START + minute, minute == 701 ? 5000 : 10, (double)(minute % 50));
    }
    for (int i = 1; i < 10000; i++) {
        td_rings_add(&rings);
    }
    assert_int_equal(rings.minutes_per_point, 16);
    struct td_ring_span span = td_ring_span(&rings, first);
    assert_true(span.count <= TD_RING_MINUTES / 16 + 1);
    double peak = 0;
    for (size_t i = 0; i < span.count; i++) {
        double value = td_ring_sample(first, i, TD_SAMPLE_CPU_MAX);
        peak = value > peak ? value : peak;
    }
    assert_true(peak > 4990);
    for (int64_t minute = 0; minute < 3 * TD_RING_MINUTES; minute += 7) {
        for (struct td_ring *ring = rings.first; ring; ring = ring == first ? NULL : first) {
            put(&rings, ring, START + TD_RING_MINUTES + minute, 10, (double)(minute % 50));
        }
    }
    span = td_ring_span(&rings, first);
    assert_true(span.count <= TD_RING_MINUTES / 16);
    while (rings.first) {
        td_rings_remove(&rings, rings.first);
    }
    assert_int_equal(rings.count, 0);
}

/* What was before a ring began is put in front, but for what it has itself; both stay whole. */
static void test_rings_begin_earlier(void **state)
{
    (void)state;
    struct td_rings rings;
    td_rings_init(&rings);
    struct td_ring *ring = td_rings_add(&rings);
    struct td_ring *empty = td_rings_add(&rings);
    struct td_ring_past past[4];
    for (size_t i = 0; i < 4; i++) {
        past[i].minute = START - 10 + 5 * (int64_t)i; /* -10, -5, 0, 5 */
        fill(past[i].samples, TD_SAMPLE_COUNT, 100);
        fill(past[i].settings, TD_SETTING_COUNT, 30);
    }
    for (int64_t minute = 0; minute < 20; minute++) {
        put(&rings, ring, START + minute, 700, minute < 10 ? 40 : 50);
    }
    td_rings_put_before(&rings, ring, past, 4);
    td_rings_put_before(&rings, empty, past, 4);
    struct td_ring_span span = td_ring_span(&rings, ring);
    assert_int_equal(span.first, START - 10);
    assert_int_equal(span.count, 30);
    double values[30];
    td_ring_fill(&rings, ring, TD_SETTING_CPU_REQUEST, values);
    for (size_t i = 0; i < 30; i++) {
        /* A few minutes between two points have the value of the later one. */
        double sample = td_ring_sample(ring, i, TD_SAMPLE_CPU_MAX);
        assert_true(i < 6 ? sample > 99 && sample < 101 : sample > 699 && sample < 701);
        assert_true(values[i] > (i < 10 ? 29 : i < 20 ? 39 : 49));
        assert_true(values[i] < (i < 10 ? 31 : i < 20 ? 41 : 51));
    }
    put(&rings, ring, START + 20, 800, 50);
    assert_int_equal(td_ring_span(&rings, ring).count, 31);
    assert_int_equal(td_ring_span(&rings, empty).count, 16);
    td_rings_remove(&rings, ring);
    td_rings_remove(&rings, empty);
    assert_null(rings.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings_keep_values),
        cmocka_unit_test(test_rings_merge_a_minute),
        cmocka_unit_test(test_rings_hold_a_day),
        cmocka_unit_test(test_rings_keep_changes),
        cmocka_unit_test(test_rings_keep_the_day_of_changes),
        cmocka_unit_test(test_rings_of_a_thousand_are_bounded),
        cmocka_unit_test(test_rings_thin_out),
        cmocka_unit_test(test_rings_begin_earlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
