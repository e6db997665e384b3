/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

#include "base/error.h"
#include "base/json/json.h"
#include "model/pod.h"

static int decode(struct td_arena *arena, const char *text, struct td_pod *ret,
                  struct td_error *err)
{
    struct td_json *tree = NULL;
    assert_int_equal(td_json_parse(arena, td_str_from(text), NULL, &tree, err), 0);
    return td_pod_decode(arena, tree, ret, err);
}

static int64_t milli(const struct td_resource_list *list, const char *resource)
{
    const struct td_quantity *quantity = td_resource_list_get(list, td_str_from(resource));
    assert_non_null(quantity);
    return td_quantity_milli(quantity);
}

/* The fields that matter are found wherever a pod has them; all else is passed over. */
static void test_pod_decodes_what_matters(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_error err = TD_ERROR_INIT;
    struct td_pod pod;
    assert_int_equal(
        decode(&arena,
               "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\","
               "\"deletionTimestamp\":\"2026-03-01T12:00:00Z\",\"labels\":{\"app\":\"web\"}},"
               "\"spec\":{\"nodeName\":\"x\",\"overhead\":{\"cpu\":\"10m\"},"
               "\"resources\":{\"requests\":{\"memory\":\"1Gi\"}},"
               "\"initContainers\":[{\"name\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}},"
               "{\"name\":\"s\",\"restartPolicy\":\"Always\"}],"
               "\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"memory\":5,"
               "\"cpu\":\"1n\"},\"limits\":{\"cpu\":\"1.5\"}}}]},"
               "\"status\":{\"phase\":\"Running\",\"startTime\":\"1970-01-01T00:00:01Z\","
               "\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"},"
               "{\"type\":\"Ready\",\"status\":\"False\",\"lastTransitionTime\":"
               "\"1970-01-01T00:00:02Z\"}]}}",
               &pod, &err),
        0);
    assert_true(pod.is_terminating);
    assert_int_equal(pod.phase, TD_POD_RUNNING);
    assert_int_equal(pod.ready, TD_CONDITION_FALSE);
    assert_int_equal(pod.start_time, TD_SECOND);
    assert_int_equal(pod.ready_since, 2 * TD_SECOND);
    assert_int_equal(pod.container_count, 1);
    assert_int_equal(pod.init_container_count, 2);
    assert_false(pod.init_containers[0].is_sidecar);
    assert_true(pod.init_containers[1].is_sidecar);
    assert_int_equal(milli(&pod.containers[0].spec_requests, "cpu"), 1);
    assert_int_equal(milli(&pod.containers[0].spec_requests, "memory"), 5000);
    assert_int_equal(milli(&pod.containers[0].spec_limits, "cpu"), 1500);
    assert_int_equal(milli(&pod.init_containers[0].spec_requests, "cpu"), 2000);
    assert_null(td_resource_list_get(&pod.init_containers[1].spec_requests, TD_STR("cpu")));
    assert_int_equal(milli(&pod.overhead, "cpu"), 10);
    assert_int_equal(milli(&pod.whole_requests, "cpu"), 2010);
    assert_int_equal(milli(&pod.whole_requests, "memory"), (int64_t)1000 << 30);
}

/* Nothing is nothing: an empty pod has no times, no readiness and no phase. */
static void test_pod_of_nothing(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_pod pod;
    assert_int_equal(decode(&arena, "{\"metadata\":{},\"spec\":null,\"status\":{}}", &pod, NULL),
                     0);
    assert_int_equal(pod.phase, TD_POD_PHASE_NONE);
    assert_int_equal(pod.ready, TD_CONDITION_ABSENT);
    assert_true(pod.start_time == TD_TIME_NONE);
    assert_int_equal(pod.container_count, 0);
    assert_int_equal(pod.whole_requests.count, 0);
}

/* What has the wrong type or no meaning is refused with its path. */
static void test_pod_refuses_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *part;
    } rows[] = {
        {"{\"spec\":7}", "spec: has the wrong JSON type"},
        {"{\"spec\":{\"containers\":{}}}", "spec: containers: "},
        {"{\"spec\":{\"containers\":[1]}}", "spec.containers[0]: "},
        {"{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1x\"}}}]}}",
         "spec.containers[0]: resources.requests: resource 'cpu': "},
        {"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":1}}]}}",
         "spec.containers[0]: resources.limits: "},
        {"{\"spec\":{\"initContainers\":[{\"name\":1}]}}", "spec.initContainers[0]: name: "},
        {"{\"spec\":{\"resources\":{\"requests\":{\"cpu\":[]}}}}",
         "spec: resources.requests: resource 'cpu': "},
        {"{\"spec\":{\"overhead\":1}}", "spec: overhead: "},
        {"{\"spec\":{\"overhead\":{\"cpu\":{}}}}", "spec: overhead: resource 'cpu'"},
        {"{\"status\":{\"phase\":1}}", "status: phase"},
        {"{\"status\":{\"startTime\":\"yesterday\"}}", "status: startTime"},
        {"{\"status\":{\"conditions\":\"x\"}}", "status: conditions"},
        {"{\"metadata\":{\"name\":5}}", "metadata.name"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        struct td_error err = TD_ERROR_INIT;
        struct td_pod pod;
        assert_int_equal(decode(&arena, rows[i].text, &pod, &err), TD_INVALID);
        assert_non_null(strstr(err.message, rows[i].part));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pod_decodes_what_matters),
        cmocka_unit_test(test_pod_of_nothing),
        cmocka_unit_test(test_pod_refuses_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
