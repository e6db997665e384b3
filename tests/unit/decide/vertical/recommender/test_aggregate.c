/* What an aggregate makes of numbers that come from outside: checkpoints and annotations. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/error.h"
#include "decide/vertical/recommender/aggregate.h"
#include "decide/vertical/recommender/oom_annotation.h"

#define CREATED ((td_time)1772409600 * TD_SECOND)

/* A stored number of samples at the end of its type wraps as upstream's does, when a sample comes
 * in and when two aggregates are merged. */
static void test_aggregate_count_of_samples_wraps(void **context)
{
    (void)context;
    const struct td_vertical_config config = td_vertical_config_default();
    struct td_aggregate first;
    struct td_aggregate second;
    td_aggregate_init(&first, &config, CREATED);
    td_aggregate_init(&second, &config, CREATED);
    first.total_samples = INT64_MAX;
    td_aggregate_add_cpu(&first, &config, CREATED, 500);
    assert_int_equal(first.total_samples, INT64_MIN);
    second.total_samples = INT64_MAX;
    first.total_samples = 2;
    td_aggregate_merge(&first, &config, &second);
    assert_int_equal(first.total_samples, INT64_MIN + 1);
    td_aggregate_done(&first);
    td_aggregate_done(&second);
}

/* Counts of an annotation are bounded, so that adding one more, or those of other containers,
 * cannot overflow; amounts and times stay as they were written. */
static void test_oom_annotation_bounds_counts(void **context)
{
    (void)context;
    static const struct {
        const char *count;
        int64_t want;
    } rows[] = {
        {"0", 0},
        {"7", 7},
        {"100000000000000", TD_AMOUNT_MAX},
        {"100000000000001", TD_AMOUNT_MAX},
        {"9223372036854775807", TD_AMOUNT_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 16);
        struct td_oom_knowledge oom;
        td_str text = td_arena_format(&arena,
                                      "{\"at\":\"2026-03-02T00:00:00Z\",\"windowEnd\":"
                                      "\"2026-03-03T00:00:00Z\",\"bytes\":9223372036854775807,"
                                      "\"count\":%s,\"cappedBytes\":0,\"shortRuns\":%s}",
                                      rows[i].count, rows[i].count);
        assert_int_equal(td_oom_annotation_decode(text, &oom, NULL), TD_OK);
        assert_int_equal(oom.count, rows[i].want);
        assert_int_equal(oom.short_runs, rows[i].want);
        assert_int_equal(oom.bytes, INT64_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aggregate_count_of_samples_wraps),
        cmocka_unit_test(test_oom_annotation_bounds_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
