/* Which version of custom metrics is asked for, and what is said where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/os/clock.h"
#include "kube/client/client.h"
#include "kube/client/metrics_client.h"
#include "support/fake_transport.h"

#define VALUES                                                                                     \
    "{\"kind\":\"MetricValueList\",\"items\":[{\"describedObject\":{\"kind\":\"Pod\",\"name\":"    \
    "\"a\"},\"metric\":{\"name\":\"rps\"},\"timestamp\":\"2026-03-01T12:00:00Z\",\"value\":"       \
    "\"7\"}]}"
#define AGGREGATED(versions)                                                                       \
    "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"apps\"},"            \
    "\"versions\":[{\"version\":\"v1\"}]},{\"metadata\":{\"name\":\"custom.metrics.k8s.io\"},"     \
    "\"versions\":[" versions "]}]}"
#define OLD(preferred)                                                                             \
    "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"custom.metrics.k8s.io\",\"versions\":["    \
    "{\"version\":\"v1beta1\"},{\"version\":\"v1beta2\"}],\"preferredVersion\":{\"version\":"      \
    "\"" preferred "\"}}]}"
#define BEFORE "unable to fetch metrics from custom metrics API: "

struct metrics_bed {
    struct td_loop *loop;
    struct fake_transport fake;
    struct td_client *client;
    struct td_metrics_client *metrics_client;
    const char *discovery;
    int status; /* of the metrics */
    size_t values;
    char problem[sizeof(((struct td_error *)0)->message)];
};

static void bed_answer(void *context, const struct td_call_request *request,
                       struct fake_answer *ret)
{
    struct metrics_bed *bed = context;
    if (td_str_equal(request->path, TD_STR("/apis"))) {
        ret->body = bed->discovery;
        return;
    }
    ret->status = bed->status;
    ret->body = VALUES;
}

static void bed_value(void *context, const struct td_metric_value *measure)
{
    struct metrics_bed *bed = context;
    assert_int_equal(measure->milli, 7000);
    bed->values++;
}

static void bed_done(void *context, int code, const struct td_error *err)
{
    struct metrics_bed *bed = context;
    (void)snprintf(bed->problem, sizeof(bed->problem), "%s", code == TD_OK ? "" : err->message);
    td_loop_stop(bed->loop);
}

static void bed_init(struct metrics_bed *bed, struct td_clock *clock, td_duration version_for,
                     const char *discovery)
{
    *bed = (struct metrics_bed){.discovery = discovery, .status = 200};
    assert_int_equal(td_loop_new(clock, &bed->loop, NULL), TD_OK);
    fake_init(&bed->fake, bed->loop, bed_answer, bed);
    bed->client = td_client_new(&(struct td_client_options){
        .loop = bed->loop, .transport = &bed->fake.transport, .burst = 1, .seed = 1});
    bed->metrics_client = td_metrics_client_new(bed->loop, bed->client, NULL, version_for);
}

static void bed_free(struct metrics_bed *bed)
{
    td_metrics_client_free(bed->metrics_client);
    td_client_free(bed->client);
    td_loop_free(bed->loop);
}

/* What was asked for since the last time. */
static const char *bed_ask(struct metrics_bed *bed)
{
    static const struct td_metric_value_handler handler = {.value = bed_value, .done = bed_done};
    td_buf_reset(&bed->fake.log);
    (void)td_metrics_get_custom(bed->metrics_client,
                                &(struct td_custom_query){.namespace = TD_STR("web"),
                                                          .resource = TD_STR("pods"),
                                                          .metric = TD_STR("rps")},
                                &handler, bed);
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
    return td_buf_str(&bed->fake.log).ptr;
}

static void test_the_version_is_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *discovery;
        const char *version; /* NULL: none, and `problem` is said */
        const char *problem;
    } rows[] = {
        {AGGREGATED("{\"version\":\"v1beta2\",\"freshness\":\"Current\"},{\"version\":"
                    "\"v1beta1\"}"),
         "v1beta2", ""},
        {AGGREGATED("{\"version\":\"v1beta1\"},{\"version\":\"v1beta2\"}"), "v1beta1", ""},
        {AGGREGATED("{\"version\":\"v2\"},{\"version\":\"v1beta1\"}"), "v1beta1", ""},
        {AGGREGATED("{\"version\":\"v1beta2\",\"freshness\":\"Stale\"},{\"version\":"
                    "\"v1beta1\",\"freshness\":\"Current\"}"),
         "v1beta1", ""},
        {AGGREGATED("{\"version\":\"v1beta2\",\"freshness\":\"Stale\"}"), NULL,
         BEFORE "no known available metric versions found"},
        {AGGREGATED("{\"version\":\"v2\"}"), NULL,
         BEFORE "no known available metric versions found"},
        {AGGREGATED(""), NULL, BEFORE "no known available metric versions found"},
        {"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[]}", NULL,
         BEFORE "no custom metrics API (custom.metrics.k8s.io) registered"},
        {"{\"kind\":\"APIGroupList\",\"groups\":null}", NULL,
         BEFORE "no custom metrics API (custom.metrics.k8s.io) registered"},
        {OLD("v1beta2"), "v1beta2", ""},
        {OLD("v9"), "v1beta1", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_clock clock = td_clock_real();
        struct metrics_bed bed;
        bed_init(&bed, &clock, TD_HOUR, rows[i].discovery);
        char expected[256] = "GET /apis\n";
        if (rows[i].version) {
            (void)snprintf(expected, sizeof(expected),
                           "GET /apis\nGET /apis/custom.metrics.k8s.io/%s/namespaces/web/pods/%%2A/"
                           "rps\n",
                           rows[i].version);
        }
        const char *asked = bed_ask(&bed);
        assert_string_equal(asked, expected);
        assert_string_equal(bed.problem, rows[i].problem);
        assert_int_equal(bed.values, rows[i].version ? 1 : 0);
        bed_free(&bed);
    }
}

/* It is asked for once in a while. */
static void test_the_version_is_asked_for_again(void **state)
{
    (void)state;
    struct td_clock clock = td_clock_real();
    struct metrics_bed bed;
    bed_init(&bed, &clock, TD_HOUR, AGGREGATED("{\"version\":\"v1beta2\"}"));
    assert_non_null(strstr(bed_ask(&bed), "GET /apis\n"));
    assert_null(strstr(bed_ask(&bed), "GET /apis\n"));
    bed_free(&bed);
    bed_init(&bed, &clock, 0, AGGREGATED("{\"version\":\"v1beta2\"}"));
    assert_non_null(strstr(bed_ask(&bed), "v1beta2"));
    bed.discovery = AGGREGATED("{\"version\":\"v1beta2\",\"freshness\":\"Stale\"}");
    assert_string_equal(bed_ask(&bed), "GET /apis\n");
    assert_string_equal(bed.problem, BEFORE "no known available metric versions found");
    bed.discovery = AGGREGATED("{\"version\":\"v1beta1\"}");
    assert_non_null(strstr(bed_ask(&bed), "v1beta1"));
    assert_string_equal(bed.problem, "");
    bed.status = 403;
    (void)bed_ask(&bed);
    assert_int_equal(strncmp(bed.problem, BEFORE, strlen(BEFORE)), 0);
    bed_free(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_version_is_chosen),
        cmocka_unit_test(test_the_version_is_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
