/* What a pod asks for: upstream's sums of containers, sidecars, init containers and overhead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "kube/podresources.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define ARENA_BYTES ((size_t)256 << 20)
#define TEXT_BYTES 1024
#define MANY_CONTAINERS 20000

static struct td_json *tree(struct td_arena *arena, const char *text)
{
    struct td_json *node = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(arena, td_str_from(text), NULL, &node, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
    return node;
}

static void assert_resources(const struct td_resource_list *resources, const char *expected)
{
    td_auto_buf text;
    td_buf_init(&text, TEXT_BYTES);
    for (size_t i = 0; i < resources->count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s=", i > 0 ? " " : "",
                                   TD_STR_ARG(resources->items[i].name));
        td_quantity_write(&resources->items[i].quantity, &text);
    }
    assert_string_equal(td_buf_str(&text).ptr, expected);
}

/* Rows of spec and status with the sums that upstream gives. */
static void test_pod_requests_and_limits_by_table(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        struct td_pod_resource_options options;
        const char *requests;
        const char *limits;
    } rows[] = {
        {"{}", {0}, "", ""},
        {"{\"spec\":{\"containers\":[]}}", {0}, "", ""},
        /* One quantity keeps its text; a sum is canonical in the first one's format. */
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"memory\":"
         "\"+1Gi\",\"cpu\":1}}}]}}",
         {0},
         "cpu=1 memory=+1Gi",
         ""},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"memory\":\"1Gi\"}"
         "}},{\"name\":\"b\",\"resources\":{\"limits\":{\"memory\":\"1G\",\"cpu\":null}}}]}}",
         {0},
         "",
         "cpu=0 memory=2073741824"},
        /* An init container counts with the sidecars before it, sidecars with the containers. */
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]"
         ",\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{"
         "\"requests\":{\"cpu\":\"500m\"}}},{\"name\":\"i\",\"resources\":{\"requests\":{\"cpu\":"
         "\"2\",\"memory\":\"1Mi\"}}}]}}",
         {0},
         "cpu=2500m memory=1Mi",
         ""},
        /* Overhead joins requests always, limits only where one is set. */
        {"{\"spec\":{\"overhead\":{\"cpu\":\"10m\",\"memory\":\"1Mi\"},\"containers\":[{\"name\":"
         "\"a\",\"resources\":{\"requests\":{\"cpu\":\"1\"},\"limits\":{\"cpu\":\"1\",\"memory\":"
         "\"0\"}}}]}}",
         {0},
         "cpu=1010m memory=1Mi",
         "cpu=1010m memory=0"},
        {"{\"spec\":{\"overhead\":{\"cpu\":\"10m\"},\"containers\":[{\"name\":\"a\",\"resources\":{"
         "\"requests\":{\"cpu\":\"1\"}}}]}}",
         {.exclude_overhead = true},
         "cpu=1",
         ""},
        /* Pod-level cpu, memory and huge pages replace the sums; other names do not count. */
        {"{\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"3\",\"hugepages-2Mi\":\"4Mi\","
         "\"example.com/gpu\":\"9\"}},\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{"
         "\"cpu\":\"1\",\"memory\":\"5Mi\"}}}]}}",
         {0},
         "cpu=3 hugepages-2Mi=4Mi memory=5Mi",
         ""},
        {"{\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"3\"}},\"containers\":[{\"name\":\"a\","
         "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}",
         {.skip_pod_level_resources = true},
         "cpu=1",
         ""},
        {"{\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"3\"}},\"containers\":[{\"name\":\"a\","
         "\"resources\":{\"requests\":{\"memory\":\"1\"},\"limits\":{\"memory\":\"1\"}}}]}}",
         {.skip_container_level_resources = true},
         "cpu=3",
         "memory=1"},
        /* During a resize the larger of wish, actuated and allocated counts, if allowed. */
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"1\"},"
         "\"limits\":{\"cpu\":\"1\"}}}]},\"status\":{\"containerStatuses\":[{\"name\":\"a\","
         "\"resources\":{\"requests\":{\"cpu\":\"2\"},\"limits\":{\"cpu\":\"4\"}},"
         "\"allocatedResources\":{\"cpu\":\"3\"}}]}}",
         {.use_status_resources = true},
         "cpu=3",
         "cpu=4"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"9\"},"
         "\"limits\":{\"cpu\":\"9\"}}}]},\"status\":{\"conditions\":[{\"type\":\"PodResizePending\""
         ",\"reason\":\"Infeasible\"}],\"containerStatuses\":[{\"name\":\"a\",\"resources\":{"
         "\"requests\":{\"cpu\":\"2\"},\"limits\":{\"cpu\":\"4\"}}}]}}",
         {.use_status_resources = true},
         "cpu=2",
         "cpu=4"},
        {"{\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"9\"},\"limits\":{\"cpu\":\"9\"}}},"
         "\"status\":{\"conditions\":[{\"type\":\"PodResizePending\",\"reason\":\"Infeasible\"}],"
         "\"resources\":{}}}",
         {.use_status_resources = true, .in_place_pod_level_resources = true},
         "cpu=0",
         "cpu=9"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct td_json *pod = tree(&arena, rows[i].pod);
        struct td_resource_list resources;
        assert_int_equal(td_pod_requests(&arena, pod, &rows[i].options, &resources, NULL), TD_OK);
        assert_resources(&resources, rows[i].requests);
        assert_int_equal(td_pod_limits(&arena, pod, &rows[i].options, &resources, NULL), TD_OK);
        assert_resources(&resources, rows[i].limits);
    }
}

/* Defaults fill what a container leaves out, but not what it sets to zero. */
static void test_pod_requests_fill_missing_requests(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    const struct td_json *pod =
        tree(&arena, "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\",\"resources\":{"
                     "\"requests\":{\"cpu\":\"0\"}}}]}}");
    struct td_pod_resource_options options = {
        .non_missing_container_requests = tree(&arena, "{\"cpu\":\"0.1\",\"memory\":\"1Mi\"}"),
    };
    struct td_resource_list resources;
    assert_int_equal(td_pod_requests(&arena, pod, &options, &resources, NULL), TD_OK);
    assert_resources(&resources, "cpu=100m memory=2Mi");
    assert_int_equal(td_pod_limits(&arena, pod, &options, &resources, NULL), TD_OK);
    assert_resources(&resources, "");
}

/* NULL options and a NULL pod are the plain case. */
static void test_pod_requests_without_pod_or_options(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_resource_list resources;
    assert_int_equal(td_pod_requests(&arena, NULL, NULL, &resources, NULL), TD_OK);
    assert_int_equal(resources.count, 0);
}

/* A bad quantity is named with its container, list and value, and no result is given. */
static void test_pod_requests_name_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        const char *message;
    } rows[] = {
        {"{\"spec\":{\"containers\":[{\"name\":\"web\",\"resources\":{\"requests\":{\"memory\":"
         "\"1.5.5Gi\"}}}]}}",
         "container 'web': resources.requests: resource 'memory': quantity '1.5.5Gi'"},
        {"{\"spec\":{\"containers\":[{\"name\":\"web\",\"resources\":{\"requests\":[]}}]}}",
         "container 'web': resources.requests: a list of resources must be an object"},
        {"{\"spec\":{\"overhead\":{\"cpu\":true}}}",
         "spec.overhead: resource 'cpu': a quantity must be a string or a number"},
        {"{\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"x\"}}}}",
         "spec: resources.requests: resource 'cpu': quantity 'x'"},
        {"{\"spec\":{\"containers\":[{\"name\":\"a\"}]},\"status\":{\"containerStatuses\":[{"
         "\"name\":\"a\",\"resources\":{},\"allocatedResources\":{\"cpu\":\"y\"}}]}}",
         "container 'a': status: allocatedResources: resource 'cpu': quantity 'y'"},
    };
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_pod_resource_options options = {.use_status_resources = true};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct td_json *pod = tree(&arena, rows[i].pod);
        struct td_resource_list resources = {.count = 7};
        struct td_error err = TD_ERROR_INIT;
        int code = td_pod_requests(&arena, pod, &options, &resources, &err);
        assert_int_equal(code, TD_INVALID);
        assert_int_equal(resources.count, 7);
        assert_true(strncmp(err.message, rows[i].message, strlen(rows[i].message)) == 0);
        assert_int_equal(td_pod_requests(&arena, pod, &options, &resources, NULL), TD_INVALID);
    }
}

/* Lists are sorted and searched by name. */
static void test_resources_decode_sorts_names(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_resource_list resources;
    const struct td_json *object = tree(&arena, "{\"memory\":\"2Gi\",\"cpu\":\"1\",\"a\":3}");
    assert_int_equal(td_resource_list_decode(&arena, object, &resources, NULL), TD_OK);
    assert_resources(&resources, "a=3 cpu=1 memory=2Gi");
    assert_int_equal(td_quantity_value(td_resource_list_get(&resources, TD_STR("cpu"))), 1);
    assert_null(td_resource_list_get(&resources, TD_STR("gpu")));
    assert_int_equal(td_resource_list_decode(&arena, NULL, &resources, NULL), TD_OK);
    assert_int_equal(resources.count, 0);
}

/* Many containers, each with a name of its own, are no more work than their text. */
static void test_pod_requests_of_many_containers(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    td_auto_buf text;
    td_buf_init(&text, (size_t)16 << 20);
    (void)td_buf_append_format(&text, "{\"spec\":{\"containers\":[");
    for (int i = 0; i < MANY_CONTAINERS; i++) {
        (void)td_buf_append_format(
            &text, "%s{\"name\":\"c%d\",\"resources\":{\"requests\":{\"cpu\":\"1m\",\"x/%d\":1}}}",
            i > 0 ? "," : "", i, i);
    }
    (void)td_buf_append_format(&text, "]}}");
    assert_false(text.is_full);
    struct td_resource_list resources;
    assert_int_equal(
        td_pod_requests(&arena, tree(&arena, td_buf_str(&text).ptr), NULL, &resources, NULL),
        TD_OK);
    assert_int_equal(resources.count, MANY_CONTAINERS + 1);
    assert_int_equal(td_quantity_milli(td_resource_list_get(&resources, TD_STR("cpu"))),
                     MANY_CONTAINERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pod_requests_and_limits_by_table),
        cmocka_unit_test(test_pod_requests_fill_missing_requests),
        cmocka_unit_test(test_pod_requests_without_pod_or_options),
        cmocka_unit_test(test_pod_requests_name_what_is_wrong),
        cmocka_unit_test(test_resources_decode_sorts_names),
        cmocka_unit_test(test_pod_requests_of_many_containers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
