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
    assert_int_equal(pod.container_count, 3);
    assert_int_equal(pod.containers[0].kind, TD_CONTAINER_INIT);
    assert_int_equal(pod.containers[1].kind, TD_CONTAINER_SIDECAR);
    assert_int_equal(pod.containers[2].kind, TD_CONTAINER_REGULAR);
    assert_int_equal(*td_amounts_get(&pod.containers[2].requests, TD_STR("cpu")), 1);
    assert_int_equal(*td_amounts_get(&pod.containers[2].requests, TD_STR("memory")), 5000);
    assert_int_equal(*td_amounts_get(&pod.containers[2].limits, TD_STR("cpu")), 1500);
    assert_null(td_amounts_get(&pod.containers[1].requests, TD_STR("cpu")));
    assert_int_equal(*td_amounts_get(&pod.overhead, TD_STR("cpu")), 10);
    assert_int_equal(*td_amounts_get(&pod.whole_requests, TD_STR("cpu")), 2010);
    assert_int_equal(*td_amounts_get(&pod.whole_requests, TD_STR("memory")), (int64_t)1000 << 30);
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
        {"{\"spec\":7}", "pod.spec"},
        {"{\"spec\":{\"containers\":{}}}", "spec.containers"},
        {"{\"spec\":{\"containers\":[1]}}", "spec.containers[]"},
        {"{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1x\"}}}]}}",
         "spec.containers[].resources.requests.cpu: "},
        {"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":1}}]}}",
         "spec.containers[].resources.limits: "},
        {"{\"spec\":{\"resources\":{\"requests\":{\"cpu\":[]}}}}", "spec.resources.requests.cpu: "},
        {"{\"spec\":{\"overhead\":1}}", "spec.overhead: "},
        {"{\"spec\":{\"overhead\":{\"cpu\":{}}}}", "spec.overhead.cpu"},
        {"{\"status\":{\"phase\":1}}", "status.phase"},
        {"{\"status\":{\"startTime\":\"yesterday\"}}", "status.startTime"},
        {"{\"status\":{\"conditions\":\"x\"}}", "status.conditions"},
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
