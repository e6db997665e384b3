/* The three metrics APIs: told from the engine's samples, from annotations and from the series of a
 * scenario; and what a gap in them answers. */
#include "support/api_script.h"

#include "kube/selector/labels.h"
#include "local/api/api_private.h"
#include "local/engine/demand.h"
#include "local/engine/engine.h"
#include "local/engine/faults.h"
#include "local/engine/measures.h"

#define METRICS "/apis/metrics.k8s.io/v1beta1"
#define CUSTOM "/apis/custom.metrics.k8s.io/v1beta2"
#define EXTERNAL "/apis/external.metrics.k8s.io/v1beta1"
#define POD(name, node, annotations)                                                               \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"app\":\"" name                             \
    "\"},\"annotations\":{" annotations "}},\"spec\":{\"nodeName\":\"" node                        \
    "\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"},{\"name\":\"d\",\"image\":\"i\"}]}}"
#define MI (1024.0 * 1024.0)

static const struct step prepare[] = {
    {"POST", "/api/v1/nodes", NULL, "{\"metadata\":{\"name\":\"n1\"}}", 201, NULL, NULL},
    {"POST", "/api/v1/nodes", NULL, "{\"metadata\":{\"name\":\"n2\"}}", 201, NULL, NULL},
    {"POST", "/api/v1/nodes", NULL, "{\"metadata\":{\"name\":\"n3\"}}", 201, NULL, NULL},
    {"PATCH", "/api/v1/nodes/n2/status", MERGE,
     "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}", 200, NULL, NULL},
    {"POST", PODS, NULL, POD("a", "n1", ""), 201, NULL, NULL},
    {"POST", PODS, NULL, POD("b", "n1", ""), 201, NULL, NULL},
    {"POST", PODS, NULL, POD("plain", "n2", ""), 201, NULL, NULL},
    {"POST", PODS, NULL, POD("web-1", "n1", ""), 201, NULL, NULL},
    {"POST", DEPLOYMENTS, NULL,
     "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
     "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":"
     "\"c\",\"image\":\"i\"}]}}}}",
     201, NULL, NULL},
};

/* A bed with an engine in which pods run. */
struct measured {
    struct bed *bed;
    struct td_engine *engine;
    struct td_demand demand; /* of Deployment web: 20 requests a second, 10 ms each */
    struct td_label label;
    struct td_measure series[3];
    struct td_measures measures;
    struct td_faults faults;
};

static struct td_engine_pod *run_pod(struct measured *m, const char *name, const char *kind,
                                     const char *owner)
{
    struct td_engine_pod *pod = td_engine_add_pod(
        m->engine, &(struct td_engine_pod_spec){.node = TD_STR("n1"),
                                                .ns = TD_STR("default"),
                                                .name = td_str_from(name),
                                                .workload_kind = td_str_from(kind),
                                                .workload_name = td_str_from(owner)});
    assert_non_null(pod);
    return pod;
}

static void run_container(struct td_engine_pod *pod, const char *name, double cpu, double memory)
{
    assert_non_null(td_engine_start(
        pod, &(struct td_engine_spec){.name = td_str_from(name),
                                      .has_fixed = true,
                                      .fixed = {.cpu_milli = cpu, .memory_bytes = memory}}));
}

static int measured_setup(void **state)
{
    struct measured *m = td_alloc_zero(1, sizeof(*m));
    void *bed;
    (void)script_setup(&bed);
    m->bed = bed;
    m->demand = (struct td_demand){
        .ns = TD_STR("default"),
        .kind = TD_STR("Deployment"),
        .name = TD_STR("web"),
        .driver = TD_DEMAND_REQUESTS,
        .requests = {.shape = TD_SERIES_CONSTANT, .low = 20},
        .request_cpu_ms = 10,
        .warmup_factor = 1,
    };
    m->label = (struct td_label){.key = TD_STR("topic"), .value = TD_STR("mail")};
    m->series[0] = (struct td_measure){.name = TD_STR("depth"),
                                       .ns = TD_STR("default"),
                                       .labels = {.items = &m->label, .count = 1},
                                       .series = {.low = 12.5}};
    m->series[1] = (struct td_measure){.name = TD_STR("hits"),
                                       .ns = TD_STR("default"),
                                       .kind = TD_STR("Deployment"),
                                       .object = TD_STR("web"),
                                       .series = {.low = 7}};
    m->series[2] = (struct td_measure){.name = TD_STR("hits"),
                                       .ns = TD_STR("elsewhere"),
                                       .kind = TD_STR("Deployment"),
                                       .object = TD_STR("web"),
                                       .series = {.low = 8}};
    m->engine = td_engine_new(&(struct td_engine_options){
        .loop = m->bed->loop, .demands = &m->demand, .demand_count = 1});
    m->measures = (struct td_measures){.engine = m->engine,
                                       .items = m->series,
                                       .count = 3,
                                       .demands = &m->demand,
                                       .demand_count = 1};
    static const char *const nodes[] = {"n1", "n2", "n3"};
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        td_engine_set_node(m->engine, &(struct td_engine_node){.name = td_str_from(nodes[i]),
                                                               .cpu_milli = 4000,
                                                               .memory_bytes = 8192 * MI});
    }
    RUN(m->bed, prepare);
    m->bed->api->measures = &m->measures;
    *state = m;
    return 0;
}

static int measured_teardown(void **state)
{
    struct measured *m = *state;
    static const char *const names[] = {"a", "b", "web-1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct td_engine_pod *found =
            td_engine_find_pod(m->engine, TD_STR("default"), td_str_from(names[i]));
        if (found) {
            td_engine_remove_pod(found);
        }
    }
    void *bed = m->bed;
    td_engine_free(m->engine);
    (void)script_teardown(&bed);
    td_free(m);
    return 0;
}

static size_t count_of(struct bed *bed, const char *target)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(bed_call(bed, "GET", target, NULL, &answer), 200);
    return td_json_get_path(bed_tree(bed, &answer), "items")->count;
}

/* Without an engine there are no metrics. */
static void test_nobody_measures(void **state)
{
    struct bed *bed = *state;
    RUN(bed, prepare);
    assert_int_equal(count_of(bed, METRICS "/nodes"), 0);
    assert_int_equal(count_of(bed, METRICS "/pods"), 0);
}

/* Pods that were measured for a whole window, and nodes by the sum of theirs. */
static void test_resource_metrics(void **state)
{
    struct measured *m = *state;
    struct bed *bed = m->bed;
    struct td_engine_pod *a = run_pod(m, "a", "Pod", "a");
    run_container(a, "c", 250, 300 * MI);
    run_container(a, "d", 50, 100 * MI + 1023);
    struct td_engine_pod *b = run_pod(m, "b", "Pod", "b");
    run_container(b, "c", 1000.5, 1024 * MI);
    assert_int_equal(count_of(bed, METRICS "/pods"), 0);
    bed_run(bed, 20 * TD_SECOND);
    static const struct step steps[] = {
        {"GET", METRICS "/namespaces/default/pods/a", NULL, NULL, 200, "containers",
         "[{\"name\":\"c\",\"usage\":{\"cpu\":\"250m\",\"memory\":\"300Mi\"}},{\"name\":\"d\","
         "\"usage\":{\"cpu\":\"50m\",\"memory\":\"100Mi\"}}]"},
        {"GET", METRICS "/namespaces/default/pods/a", NULL, NULL, 200, "metadata.labels.app", "a"},
        {"GET", METRICS "/namespaces/default/pods/b", NULL, NULL, 200, "window", "15s"},
        {"GET", METRICS "/namespaces/default/pods/b", NULL, NULL, 200, "timestamp",
         "2023-11-14T22:13:35Z"},
        {"GET", METRICS "/namespaces/default/pods/b", NULL, NULL, 200, "metadata.creationTimestamp",
         "2023-11-14T22:13:40Z"},
        {"GET", METRICS "/namespaces/default/pods/plain", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", METRICS "/namespaces/default/pods/none", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", METRICS "/nodes/n1", NULL, NULL, 200, "usage",
         "{\"cpu\":\"1300500u\",\"memory\":\"1424Mi\"}"},
        {"GET", METRICS "/nodes/n1", NULL, NULL, 200, "timestamp", "2023-11-14T22:13:35Z"},
        {"GET", METRICS "/nodes/n2", NULL, NULL, 200, "usage", "{\"cpu\":\"0\",\"memory\":\"0\"}"},
        {"GET", METRICS "/nodes/n3", NULL, NULL, 404, "reason", "NotFound"},
        {"GET", METRICS "/nodes", NULL, NULL, 200, "kind", "NodeMetricsList"},
        {"GET", METRICS "/pods?labelSelector=a%20b", NULL, NULL, 400, "reason", "BadRequest"},
        {"POST", METRICS "/namespaces/default/pods", NULL, "{}", 405, "reason", "MethodNotAllowed"},
    };
    RUN(bed, steps);
    assert_int_equal(count_of(bed, METRICS "/pods"), 2);
    assert_int_equal(count_of(bed, METRICS "/namespaces/default/pods?labelSelector=app%3Db"), 1);
    assert_int_equal(count_of(bed, METRICS "/namespaces/other/pods"), 0);
    assert_int_equal(count_of(bed, METRICS "/nodes"), 2);
    run_container(b, "d", 1, MI); /* while it is new, nothing is told of its pod */
    assert_int_equal(count_of(bed, METRICS "/namespaces/default/pods"), 1);
    bed_run(bed, 30 * TD_SECOND);
    assert_int_equal(count_of(bed, METRICS "/namespaces/default/pods"), 2);
}

/* What requests drive is measured too, by pod and as a whole; series are about objects or not. */
static void test_metrics_of_a_scenario(void **state)
{
    struct measured *m = *state;
    struct td_engine_pod *pod = run_pod(m, "web-1", "Deployment", "web");
    struct td_engine_container *container =
        td_engine_start(pod, &(struct td_engine_spec){.name = TD_STR("c"), .is_first = true});
    td_engine_set_ready(container, true);
    bed_run(m->bed, 40 * TD_SECOND);
    static const struct step steps[] = {
        {"GET", METRICS "/namespaces/default/pods/web-1", NULL, NULL, 200, "containers",
         "[{\"name\":\"c\",\"usage\":{\"cpu\":\"200m\",\"memory\":\"0\"}}]"},
        {"GET", CUSTOM "/namespaces/default/pods/web-1/waiting_requests", NULL, NULL, 404, "reason",
         "NotFound"},
        {"GET", CUSTOM "/namespaces/default/pods/a/requests_per_second", NULL, NULL, 404, "reason",
         "NotFound"},
        {"GET", CUSTOM "/namespaces/elsewhere/deployments.apps/web/hits", NULL, NULL, 404, "reason",
         "NotFound"},
    };
    RUN(m->bed, steps);
    static const struct {
        const char *target;
        const char *value;
    } rows[] = {
        {CUSTOM "/namespaces/default/pods/web-1/requests_per_second", "20"},
        {CUSTOM "/namespaces/default/pods/*/requests_per_second", "20"},
        {CUSTOM "/namespaces/default/pods/web-1/request_latency_seconds", "10526u"},
        {CUSTOM "/namespaces/default/deployments.apps/web/requests_per_second", "20"},
        {CUSTOM "/namespaces/default/deployments.apps/web/waiting_requests", "0"},
        {CUSTOM "/namespaces/default/deployments.apps/web/hits", "7"},
        {EXTERNAL "/namespaces/default/depth", "12500m"},
        {EXTERNAL "/namespaces/default/depth?labelSelector=topic%3Dmail", "12500m"},
    };
    bed_auto_answer answer;
    bed_answer_init(&answer);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(bed_call(m->bed, "GET", rows[i].target, NULL, &answer), 200);
        const struct td_json *items = td_json_get_path(bed_tree(m->bed, &answer), "items");
        assert_int_equal(items->count, 1);
        td_str value = td_json_get_str(td_json_first_child(items), TD_STR("value"), TD_STR_EMPTY);
        if (!td_str_equal(value, td_str_from(rows[i].value))) {
            fail_msg("%s: %.*s", rows[i].target, TD_STR_ARG(value));
        }
    }
    assert_int_equal(
        count_of(m->bed, EXTERNAL "/namespaces/default/depth?labelSelector=topic%3Dsms"), 0);
    assert_int_equal(count_of(m->bed, EXTERNAL "/namespaces/default/hits"), 0);
    assert_int_equal(count_of(m->bed, EXTERNAL "/namespaces/elsewhere/depth"), 0);
}

/* In a gap all three are silent, and nothing else is. */
static void test_a_gap(void **state)
{
    struct measured *m = *state;
    m->bed->api->faults = &m->faults;
    static const struct step good[] = {
        {"GET", METRICS "/nodes", NULL, NULL, 200, NULL, NULL},
        {"GET", EXTERNAL "/namespaces/default/depth", NULL, NULL, 200, NULL, NULL},
    };
    RUN(m->bed, good);
    m->faults.is_metrics_gap = true;
    static const struct step bad[] = {
        {"GET", METRICS "/nodes", NULL, NULL, 503, "message",
         "the server is currently unable to handle the request (get nodes.metrics.k8s.io)"},
        {"GET", METRICS "/namespaces/default/pods/a", NULL, NULL, 503, "message",
         "the server is currently unable to handle the request (get pods.metrics.k8s.io a)"},
        {"GET", CUSTOM "/namespaces/default/pods/a/x", NULL, NULL, 503, "reason",
         "ServiceUnavailable"},
        {"GET", EXTERNAL "/namespaces/default/depth", NULL, NULL, 503, "kind", "Status"},
        {"GET", PODS, NULL, NULL, 200, NULL, NULL},
        {"GET", "/apis/metrics.k8s.io/v1beta1", NULL, NULL, 200, NULL, NULL},
    };
    RUN(m->bed, bad);
    m->faults.is_metrics_gap = false;
    RUN(m->bed, good);
}

/* A share of the requests fails, the same ones each time; whether it lives can always be asked. */
static void test_api_errors(void **state)
{
    struct measured *m = *state;
    m->bed->api->faults = &m->faults;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    uint64_t patterns[2] = {0, 0};
    int failed = 0;
    for (int i = 0; i < 2000; i++) {
        m->faults.draws = i == 1000 ? 0 : m->faults.draws;
        m->faults.api_error_share = 0.2;
        int status = bed_call(m->bed, "GET", PODS "/a", NULL, &answer);
        assert_true(status == 200 || status == 500);
        failed += status == 500;
        patterns[i / 1000] = patterns[i / 1000] * 31 + (uint64_t)status;
    }
    assert_true(failed > 320 && failed < 480);
    assert_true(patterns[0] == patterns[1]);
    m->faults.api_error_share = 1;
    uint64_t draws = m->faults.draws;
    static const struct step steps[] = {
        {"GET", "/healthz", NULL, NULL, 200, NULL, NULL},
        {"GET", "/readyz?verbose", NULL, NULL, 200, NULL, NULL},
        {"GET", "/livez/ping", NULL, NULL, 200, NULL, NULL},
        {"GET", "/version", NULL, NULL, 200, NULL, NULL},
    };
    RUN(m->bed, steps);
    assert_true(m->faults.draws == draws);
    static const struct step struck[] = {
        {"GET", "/versions", NULL, NULL, 500, "reason", "InternalError"},
        {"GET", PODS, NULL, NULL, 500, "message",
         "Internal error occurred: the scenario makes requests fail"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"x\"}}", 500, "code", "500"},
        {"GET", PODS "?watch=1", NULL, NULL, 500, NULL, NULL},
    };
    RUN(m->bed, struck);
    m->faults.api_error_share = 0;
    static const struct step after[] = {{"GET", MAPS "/x", NULL, NULL, 404, NULL, NULL}};
    RUN(m->bed, after);
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
    const struct td_json *value =
        td_json_first_child(td_json_get_path(bed_tree(bed, &answer), "items"));
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
    const struct td_json *value =
        td_json_first_child(td_json_get_path(bed_tree(bed, &answer), "items"));
    assert_true(td_str_equal(td_json_get_path(value, "value")->text, TD_STR("12")));
    assert_int_equal(td_json_get_path(value, "metricLabels")->count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_measures, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_resource_metrics, measured_setup, measured_teardown),
        cmocka_unit_test_setup_teardown(test_metrics_of_a_scenario, measured_setup,
                                        measured_teardown),
        cmocka_unit_test_setup_teardown(test_a_gap, measured_setup, measured_teardown),
        cmocka_unit_test_setup_teardown(test_api_errors, measured_setup, measured_teardown),
        cmocka_unit_test_setup_teardown(test_custom_metrics, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_external_metrics, script_setup, script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
