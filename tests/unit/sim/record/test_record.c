/* A run that is kept: every peak of the raw samples is in the bounded curves, what happened is kept
 * up to a cap, and keeping changes nothing of the run. */
#include <math.h>

#include "support/world_bed.h"

#include "sim/record/record.h"
#include "sim/world/world_report.h"

#define OBJECTS                                                                                    \
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"                        \
    "  replicas: 3\n  selector: {matchLabels: {app: web}}\n"                                       \
    "  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n"              \
    "      - {name: main, image: x, resources: {requests: {cpu: 200m, memory: 100Mi}, "            \
    "limits: {cpu: 400m, memory: 300Mi}}}\n"
/* Spikes of 20 s, of which some fall between the columns' ends. */
#define DEMAND                                                                                     \
    "  demand:\n"                                                                                  \
    "  - target: {kind: Deployment, name: web}\n"                                                  \
    "    cpu: {shape: spikes, low: 50m, high: 900m, every: 7m, for: 20s, noise: 20%}\n"            \
    "    memory: {shape: spikes, low: 90Mi, high: 280Mi, every: 11m, for: 10s, noise: 5%}\n"

/* All values of a column are in the raw curve at its times. */
static void assert_same_peaks(const struct td_curve *raw, struct td_curve_grid fine,
                              const struct td_curve *kept, struct td_curve_grid coarse)
{
    size_t wide = (size_t)(coarse.column / fine.column);
    assert_int_equal(fine.slots, 1);
    assert_int_equal(coarse.slots, 2);
    for (size_t column = 0; column < kept->count; column++) {
        double low = NAN;
        double high = NAN;
        for (size_t i = column * wide; i < (column + 1) * wide; i++) {
            double value = td_curve_point(raw, &fine, i);
            low = isnan(low) || value < low ? value : low;
            high = isnan(high) || value > high ? value : high;
        }
        double one = td_curve_point(kept, &coarse, column * 2);
        double two = td_curve_point(kept, &coarse, column * 2 + 1);
        assert_true((isnan(one) && isnan(low)) || (one < two ? one : two) == low);
        assert_true((isnan(one) && isnan(high)) || (one > two ? one : two) == high);
    }
}

static void test_record_loses_no_peak(void **state)
{
    (void)state;
    struct world_bed bed;
    td_duration lasts = 6 * TD_HOUR;
    world_bed_begin(&bed, WORLD_BED_HEAD DEMAND, OBJECTS);
    struct td_record *raw = td_record_new(lasts, 1000000);
    struct td_record *kept = td_record_new(lasts, 100);
    td_record_begin(raw, bed.loop, bed.world);
    td_record_begin(kept, bed.loop, bed.world);
    world_bed_run(&bed, lasts);
    const struct td_record_row *fine = td_record_row_at(raw, 0);
    const struct td_record_row *coarse = td_record_row_at(kept, 0);
    assert_non_null(fine);
    assert_non_null(coarse);
    assert_null(td_record_row_at(kept, 1));
    for (size_t i = 0; i < TD_RECORD_CURVES; i++) {
        assert_same_peaks(&fine->curves[i], td_record_grid(raw), &coarse->curves[i],
                          td_record_grid(kept));
    }
    for (int i = 0; i < TD_RECORD_TOTALS; i++) {
        assert_same_peaks(td_record_total(raw, (enum td_record_total)i), td_record_grid(raw),
                          td_record_total(kept, (enum td_record_total)i), td_record_grid(kept));
    }
    /* The spikes are there: more than the limit of CPU is never used, and it is reached. */
    double most = 0;
    struct td_curve_grid grid = td_record_grid(kept);
    for (size_t i = 0; i < td_curve_points(&coarse->curves[TD_RECORD_CPU_MOST], &grid); i++) {
        most = fmax(most, td_curve_point(&coarse->curves[TD_RECORD_CPU_MOST], &grid, i));
    }
    assert_true(most > 350 && most <= 400);
    td_record_free(raw);
    td_record_free(kept);
    world_bed_done(&bed);
}

static void outcome(struct world_bed *bed, struct td_buf *out)
{
    td_json_write(td_world_report(bed->world, &bed->arena), &(struct td_json_format){.indent = 1},
                  out);
}

static void test_record_changes_nothing(void **state)
{
    (void)state;
    struct td_buf texts[2] = {td_buf_capped((size_t)16 << 20), td_buf_capped((size_t)16 << 20)};
    for (int with = 0; with < 2; with++) {
        struct world_bed bed;
        world_bed_begin(&bed, WORLD_BED_HEAD DEMAND, OBJECTS);
        struct td_record *record = with ? td_record_new(TD_HOUR, 0) : NULL;
        if (record) {
            td_record_begin(record, bed.loop, bed.world);
        }
        world_bed_run(&bed, TD_HOUR);
        outcome(&bed, &texts[with]);
        td_record_free(record);
        world_bed_done(&bed);
    }
    assert_true(texts[0].len > 100);
    assert_true(td_str_equal(td_buf_str(&texts[0]), td_buf_str(&texts[1])));
    td_buf_done(&texts[0]);
    td_buf_done(&texts[1]);
}

static void test_record_keeps_a_bounded_number_of_events(void **state)
{
    (void)state;
    struct td_record *record = td_record_new(TD_HOUR, 0);
    const struct td_world_event event = {.at = 5 * TD_SECOND,
                                         .type = TD_STR("Warning"),
                                         .reason = TD_STR("OOMKilled"),
                                         .kind = TD_STR("Pod"),
                                         .ns = TD_STR("shop"),
                                         .name = TD_STR("web-1"),
                                         .message = TD_STR("too much")};
    for (size_t i = 0; i < TD_RECORD_EVENTS_MAX + 7; i++) {
        td_record_tell(record, &event);
    }
    const struct td_record_event *last = td_record_event_at(record, TD_RECORD_EVENTS_MAX - 1);
    assert_non_null(last);
    assert_true(last->is_warning);
    assert_true(td_str_equal(last->message, TD_STR("too much")));
    assert_null(td_record_event_at(record, TD_RECORD_EVENTS_MAX));
    assert_int_equal(td_record_events_left_out(record), 7);
    td_record_free(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_loses_no_peak),
        cmocka_unit_test(test_record_changes_nothing),
        cmocka_unit_test(test_record_keeps_a_bounded_number_of_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
