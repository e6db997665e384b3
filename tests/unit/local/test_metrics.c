/* The three metrics APIs, told from annotations. */
#include "support/api_script.h"

#define METRICS "/apis/metrics.k8s.io/v1beta1"
#define CUSTOM "/apis/custom.metrics.k8s.io/v1beta2"
#define EXTERNAL "/apis/external.metrics.k8s.io/v1beta1"
#define POD(name, node, annotations)                                                               \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"app\":\"" name                             \
    "\"},\"annotations\":{" annotations "}},\"spec\":{\"nodeName\":\"" node                        \
    "\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"},{\"name\":\"d\",\"image\":\"i\"}]}}"
#define RUNS "{\"status\":{\"phase\":\"Running\"}}"

static const struct step prepare[] = {
    {"POST", "/api/v1/nodes", NULL, "{\"metadata\":{\"name\":\"n1\"}}", 201, NULL, NULL},
    {"POST", "/api/v1/nodes", NULL, "{\"metadata\":{\"name\":\"n2\"}}", 201, NULL, NULL},
    {"POST", PODS, NULL,
     POD("a", "n1", "\"usage.tandem.dev/c\":\"250m,300Mi\",\"usage.tandem.dev/d\":\"50m,100Mi\""),
     201, NULL, NULL},
    {"POST", PODS, NULL, POD("b", "n1", "\"usage.tandem.dev/c\":\"1,1Gi\""), 201, NULL, NULL},
    {"POST", PODS, NULL, POD("waits", "n1", "\"usage.tandem.dev/c\":\"9,9Gi\""), 201, NULL, NULL},
    {"POST", PODS, NULL, POD("bad", "n2", "\"usage.tandem.dev/c\":\"much\""), 201, NULL, NULL},
    {"POST", PODS, NULL, POD("plain", "n2", ""), 201, NULL, NULL},
    {"PATCH", PODS "/a/status", MERGE, RUNS, 200, NULL, NULL},
    {"PATCH", PODS "/b/status", MERGE, RUNS, 200, NULL, NULL},
    {"PATCH", PODS "/bad/status", MERGE, RUNS, 200, NULL, NULL},
    {"PATCH", PODS "/plain/status", MERGE, RUNS, 200, NULL, NULL},
};

static size_t count_of(struct bed *bed, const char *target)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(bed_call(bed, "GET", target, NULL, &answer), 200);
    return td_json_get_path(bed_tree(bed, &answer), "items")->count;
}

/* Pods that run and were measured, and nodes by the sum of theirs. */
static void test_resource_metrics(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(count_of(bed, METRICS "/nodes"), 0);
    assert_int_equal(count_of(bed, METRICS "/pods"), 0);
    RUN(bed, prepare);
    static const struct step steps[] = {
        {"GET", METRICS "/namespaces/default/pods/a", NULL, NULL, 200, "containers",
         "[{\"name\":\"c\",\"usage\":{\"cpu\":\"250m\",\"memory\":\"300Mi\"}},{\"name\":\"d\","
         "\"usage\":{\"cpu\":\"50m\",\"memory\":\"100Mi\"}}]"},
        {"GET", METRICS "/namespaces/default/pods/a", NULL, NULL, 200, "metadata.labels.app", "a"},
        {"GET", METRICS "/namespaces/default/pods/b", NULL, NULL, 200, "window", "15s"},
        {"GET", METRICS "/namespaces/default/pods/waits", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", METRICS "/namespaces/default/pods/bad", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", METRICS "/namespaces/default/pods/none", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", METRICS "/nodes/n1", NULL, NULL, 200, "usage",
         "{\"cpu\":\"1300m\",\"memory\":\"1424Mi\"}"},
        {"GET", METRICS "/nodes/n2", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", METRICS "/nodes", NULL, NULL, 200, "kind", "NodeMetricsList"},
        {"GET", METRICS "/pods?labelSelector=a%20b", NULL, NULL, 400, "reason", "BadRequest"},
        {"POST", METRICS "/namespaces/default/pods", NULL, "{}", 405, "reason", "MethodNotAllowed"},
    };
    RUN(bed, steps);
    assert_int_equal(count_of(bed, METRICS "/pods"), 2);
    assert_int_equal(count_of(bed, METRICS "/namespaces/default/pods?labelSelector=app%3Db"), 1);
    assert_int_equal(count_of(bed, METRICS "/namespaces/other/pods"), 0);
    assert_int_equal(count_of(bed, METRICS "/nodes"), 1);
}

/* A value about an object, about all that are selected, about a namespace. */
static void test_custom_metrics(void **state)
{
    struct bed *bed = *state;
    static const struct step steps[] = {
        {"POST", PODS, NULL, POD("a", "n", "\"metrics.tandem.dev/rps\":\"20\""), 201, NULL, NULL},
        {"POST", PODS, NULL, POD("b", "n", "\"metrics.tandem.dev/rps\":\"1500m\""), 201, NULL,
         NULL},
        {"POST", PODS, NULL, POD("c", "n", "\"metrics.tandem.dev/rps\":\"x\""), 201, NULL, NULL},
        {"PATCH", "/api/v1/namespaces/default", MERGE,
         "{\"metadata\":{\"annotations\":{\"metrics.tandem.dev/load\":\"7\"}}}", 200, NULL, NULL},
        {"GET", CUSTOM "/namespaces/default/pods/c/rps", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", CUSTOM "/namespaces/default/pods/a/none", NULL, NULL, 404, "message",
         "the server could not find the metric none for pods a"},
        {"GET", CUSTOM "/namespaces/default/things/a/rps", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", CUSTOM "/namespaces/default/pods/a/rps", NULL, NULL, 200, "kind",
         "MetricValueList"},
    };
    RUN(bed, steps);
    assert_int_equal(count_of(bed, CUSTOM "/namespaces/default/pods/*/rps"), 2);
    assert_int_equal(count_of(bed, CUSTOM "/namespaces/default/pods/*/rps?labelSelector=app%3Da"),
                     1);
    assert_int_equal(count_of(bed, CUSTOM "/namespaces/default/metrics/load"), 1);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    (void)bed_call(bed, "GET", CUSTOM "/namespaces/default/pods/b/rps", NULL, &answer);
    const struct td_json *value = td_json_get_path(bed_tree(bed, &answer), "items")->first;
    assert_true(td_str_equal(td_json_get_path(value, "describedObject.name")->text, TD_STR("b")));
    assert_true(td_str_equal(td_json_get_path(value, "metric.name")->text, TD_STR("rps")));
    assert_true(td_str_equal(td_json_get_path(value, "value")->text, TD_STR("1500m")));
}

/* Values in labelled ConfigMaps, selected by their other labels. */
static void test_external_metrics(void **state)
{
    struct bed *bed = *state;
    static const struct step steps[] = {
        {"POST", MAPS, NULL,
         "{\"metadata\":{\"name\":\"a\",\"labels\":{\"metrics.tandem.dev/external\":\"true\","
         "\"queue\":\"in\"}},\"data\":{\"depth\":\" 12\\n\"}}",
         201, NULL, NULL},
        {"POST", MAPS, NULL,
         "{\"metadata\":{\"name\":\"b\",\"labels\":{\"metrics.tandem.dev/external\":\"true\","
         "\"queue\":\"out\"}},\"data\":{\"depth\":\"3\",\"odd\":\"many\"}}",
         201, NULL, NULL},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"c\"},\"data\":{\"depth\":\"3\"}}", 201,
         NULL, NULL},
    };
    RUN(bed, steps);
    assert_int_equal(count_of(bed, EXTERNAL "/namespaces/default/depth"), 2);
    assert_int_equal(count_of(bed, EXTERNAL "/namespaces/default/depth?labelSelector=queue%3Din"),
                     1);
    assert_int_equal(count_of(bed, EXTERNAL "/namespaces/default/odd"), 0);
    assert_int_equal(count_of(bed, EXTERNAL "/namespaces/default/none"), 0);
    assert_int_equal(count_of(bed, EXTERNAL "/namespaces/other/depth"), 0);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    (void)bed_call(bed, "GET", EXTERNAL "/namespaces/default/depth?labelSelector=queue%3Din", NULL,
                   &answer);
    const struct td_json *value = td_json_get_path(bed_tree(bed, &answer), "items")->first;
    assert_true(td_str_equal(td_json_get_path(value, "value")->text, TD_STR("12")));
    assert_int_equal(td_json_get_path(value, "metricLabels")->count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resource_metrics, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_custom_metrics, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_external_metrics, script_setup, script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
