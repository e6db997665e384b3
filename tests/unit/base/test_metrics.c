/* What the process counts about itself: the text is Prometheus' and the same for the same state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/metrics.h"

static const double seconds[] = {0.5, 1, 2.5};

static const char *metric_text(const struct td_metric_registry *registry, struct td_buf *buf)
{
    td_buf_reset(buf);
    td_metric_registry_write(registry, buf);
    return td_buf_str(buf).ptr;
}

static void test_counters_and_gauges_are_sorted(void **state)
{
    (void)state;
    struct td_metric_registry *registry = td_metric_registry_new();
    td_auto_buf buf;
    td_buf_init(&buf, 65536);
    assert_string_equal(metric_text(registry, &buf), "");
    struct td_metric_family *evicted = td_metric_declare(
        registry, &(struct td_metric_declaration){.name = "vpa_updater_evicted_pods_total",
                                                  .help = "Pods evicted.",
                                                  .kind = TD_METRIC_COUNTER,
                                                  .labels = {"mode", "name"}});
    struct td_metric_family *age = td_metric_declare(
        registry,
        &(struct td_metric_declaration){.name = "age", .help = "Age.", .kind = TD_METRIC_GAUGE});
    assert_string_equal(metric_text(registry, &buf), ""); /* nothing was seen yet */
    const td_str b[] = {TD_STR("Recreate"), TD_STR("b")};
    const td_str a[] = {TD_STR("Recreate"), TD_STR("a\"\\\n")};
    td_metric_add(td_metric_series(evicted, b), 2);
    td_metric_add(td_metric_series(evicted, a), 1);
    td_metric_add(td_metric_series(evicted, b), 0.5);
    td_metric_set(td_metric_series(age, NULL), -3);
    assert_string_equal(
        metric_text(registry, &buf),
        "# HELP age Age.\n# TYPE age gauge\nage -3\n"
        "# HELP vpa_updater_evicted_pods_total Pods evicted.\n"
        "# TYPE vpa_updater_evicted_pods_total counter\n"
        "vpa_updater_evicted_pods_total{mode=\"Recreate\",name=\"a\\\"\\\\\\n\"} 1\n"
        "vpa_updater_evicted_pods_total{mode=\"Recreate\",name=\"b\"} 2.5\n");
    td_metric_drop(evicted, a);
    td_metric_drop(evicted, a); /* twice is once */
    td_metric_clear(age);
    assert_string_equal(metric_text(registry, &buf),
                        "# HELP vpa_updater_evicted_pods_total Pods evicted.\n"
                        "# TYPE vpa_updater_evicted_pods_total counter\n"
                        "vpa_updater_evicted_pods_total{mode=\"Recreate\",name=\"b\"} 2.5\n");
    td_metric_registry_free(registry);
}

/* Several registries are one text: a heading for each family, and the shard as first label. */
static void test_sources_are_one_text(void **state)
{
    static const struct td_metric_declaration up = {
        .name = "up", .help = "Up.", .kind = TD_METRIC_GAUGE, .labels = {"name"}};
    static const struct td_metric_declaration took = {.name = "took",
                                                      .help = "Time.",
                                                      .kind = TD_METRIC_HISTOGRAM,
                                                      .buckets = seconds,
                                                      .bucket_count = 1};
    const td_str a[] = {TD_STR("a")};
    struct td_metric_registry *first = td_metric_registry_new();
    struct td_metric_registry *second = td_metric_registry_new();
    td_auto_buf buf = td_buf_capped(65536);
    (void)state;
    td_metric_set(td_metric_series(td_metric_declare(first, &up), a), 1);
    td_metric_set(td_metric_series(td_metric_declare(second, &up), a), 2);
    td_metric_observe(td_metric_series(td_metric_declare(second, &took), NULL), 0.25);
    const struct td_metric_source sources[] = {{first, TD_STR_EMPTY}, {second, TD_STR("2-of-3")}};
    td_metric_sources_write(sources, 2, &buf);
    assert_string_equal(td_buf_str(&buf).ptr,
                        "# HELP took Time.\n# TYPE took histogram\n"
                        "took_bucket{shard=\"2-of-3\",le=\"0.5\"} 1\n"
                        "took_bucket{shard=\"2-of-3\",le=\"+Inf\"} 1\n"
                        "took_sum{shard=\"2-of-3\"} 0.25\ntook_count{shard=\"2-of-3\"} 1\n"
                        "# HELP up Up.\n# TYPE up gauge\nup{name=\"a\"} 1\n"
                        "up{shard=\"2-of-3\",name=\"a\"} 2\n");
    td_metric_registry_free(first);
    td_metric_registry_free(second);
}

static void test_histograms_sum_up(void **state)
{
    (void)state;
    struct td_metric_registry *registry = td_metric_registry_new();
    td_auto_buf buf;
    td_buf_init(&buf, 65536);
    const struct td_metric_declaration declaration = {.name = "took",
                                                      .help = "Time.",
                                                      .kind = TD_METRIC_HISTOGRAM,
                                                      .labels = {"step"},
                                                      .buckets = seconds,
                                                      .bucket_count = 3};
    struct td_metric_family *took = td_metric_declare(registry, &declaration);
    assert_ptr_equal(td_metric_declare(registry, &declaration), took);
    struct td_metric_series *series = td_metric_series(took, (td_str[]){TD_STR("total")});
    const double values[] = {0.5, 0.25, 2, 9}; /* a bound belongs to its bucket */
    for (size_t i = 0; i < 4; i++) {
        td_metric_observe(series, values[i]);
    }
    assert_string_equal(metric_text(registry, &buf), "# HELP took Time.\n# TYPE took histogram\n"
                                                     "took_bucket{step=\"total\",le=\"0.5\"} 2\n"
                                                     "took_bucket{step=\"total\",le=\"1\"} 2\n"
                                                     "took_bucket{step=\"total\",le=\"2.5\"} 3\n"
                                                     "took_bucket{step=\"total\",le=\"+Inf\"} 4\n"
                                                     "took_sum{step=\"total\"} 11.75\n"
                                                     "took_count{step=\"total\"} 4\n");
    td_metric_registry_free(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters_and_gauges_are_sorted),
        cmocka_unit_test(test_sources_are_one_text),
        cmocka_unit_test(test_histograms_sum_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
