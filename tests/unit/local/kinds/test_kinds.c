/* What the kinds promise beside the recorded answers: decoding, fields, schedules, custom kinds. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/error.h"
#include "local/jobs/cron_text.h"
#include "local/kinds/custom.h"
#include "local/kinds/kinds.h"

#define KINDS_ARENA_BYTES_MAX ((size_t)64 << 20)

struct kinds {
    struct td_arena arena;
    struct td_resources *resources;
};

static int kinds_setup(void **state)
{
    static struct kinds kinds;
    td_arena_init(&kinds.arena, KINDS_ARENA_BYTES_MAX);
    kinds.resources = td_resources_new();
    *state = &kinds;
    return 0;
}

static int kinds_teardown(void **state)
{
    struct kinds *kinds = *state;
    td_resources_free(kinds->resources);
    td_arena_done(&kinds->arena);
    return 0;
}

static struct td_json *parse(struct kinds *kinds, const char *json)
{
    struct td_json *tree = NULL;
    struct td_error err = TD_ERROR_INIT;
    if (td_json_parse(&kinds->arena, td_str_from(json), NULL, &tree, &err) < 0) {
        fail_msg("%s", err.message);
    }
    return tree;
}

static struct td_resource_at find(struct kinds *kinds, const char *version, const char *kind)
{
    struct td_resource_at at =
        td_resources_find_kind(kinds->resources, td_str_from(version), td_str_from(kind));
    assert_non_null(at.resource);
    return at;
}

/* A member of the wrong type is refused with its place and value. */
static void test_kinds_name_the_member_that_does_not_decode(void **state)
{
    static const struct {
        const char *version;
        const char *kind;
        const char *json;
        const char *message;
    } rows[] = {
        {"apps/v1", "Deployment", "{\"spec\":{\"replicas\":\"three\"}}",
         "spec.replicas: \"three\": must be a 32-bit integer"},
        {"v1", "Pod", "{\"spec\":{\"containers\":{}}}", "spec.containers: {}: must be a list"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"cpu\":\"x\"}}}]}}",
         "spec.containers[0].resources.limits.cpu: \"x\": must be a quantity such as 500m, 1.5 or "
         "128Mi"},
        {"autoscaling/v2", "HorizontalPodAutoscaler", "{\"spec\":{\"maxReplicas\":true}}",
         "spec.maxReplicas: true: must be a 32-bit integer"},
    };
    struct kinds *kinds = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_error err = TD_ERROR_INIT;
        struct td_resource_at at = find(kinds, rows[i].version, rows[i].kind);
        struct td_json *object = parse(kinds, rows[i].json);
        assert_int_equal(td_kind_default(&kinds->arena, at.resource, at.version, object, &err),
                         TD_INVALID);
        assert_string_equal(err.message, rows[i].message);
    }
}

/* Defaulting what was defaulted changes nothing. */
static void test_kinds_default_once(void **state)
{
    static const struct {
        const char *version;
        const char *kind;
        const char *json;
    } rows[] = {
        {"v1", "Pod",
         "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"cpu\":2}}}]}}"},
        {"v1", "Secret", "{\"stringData\":{\"a\":\"b\"}}"},
        {"v1", "Service", "{\"spec\":{\"ports\":[{\"port\":1}]}}"},
        {"batch/v1", "Job", "{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}}}}}"},
        {"v1", "Pod", "{\"unknown\":1,\"spec\":null,\"metadata\":{\"labels\":null}}"},
        {"v1", "Pod", "{}"},
    };
    struct kinds *kinds = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_resource_at at = find(kinds, rows[i].version, rows[i].kind);
        struct td_json *object = parse(kinds, rows[i].json);
        assert_int_equal(td_kind_default(&kinds->arena, at.resource, at.version, object, NULL),
                         TD_OK);
        assert_null(td_json_get(object, TD_STR("unknown")));
        struct td_json *once = td_json_copy(&kinds->arena, object, true);
        assert_int_equal(td_kind_default(&kinds->arena, at.resource, at.version, object, NULL),
                         TD_OK);
        assert_true(td_json_equal(object, once));
    }
}

/* Field selectors find what each kind is selected by, and nothing else. */
static void test_kinds_fields(void **state)
{
    static const struct {
        const char *version;
        const char *kind;
        const char *field;
        const char *json;
        const char *value; /* NULL: not supported */
    } rows[] = {
        {"v1", "Pod", "metadata.name", "{\"metadata\":{\"name\":\"a\"}}", "a"},
        {"v1", "Pod", "spec.nodeName", "{\"spec\":{\"nodeName\":\"n\"}}", "n"},
        {"v1", "Pod", "spec.nodeName", "{}", ""},
        {"v1", "Pod", "spec.hostNetwork", "{\"spec\":{\"hostNetwork\":true}}", "true"},
        {"v1", "Pod", "spec.hostNetwork", "{}", "false"},
        {"v1", "Pod", "status.phase", "{\"status\":{\"phase\":\"Running\"}}", "Running"},
        {"v1", "Pod", "spec.containers", "{}", NULL},
        {"v1", "Node", "spec.unschedulable", "{}", "false"},
        {"v1", "Node", "metadata.namespace", "{}", NULL},
        {"v1", "Secret", "type", "{\"type\":\"Opaque\"}", "Opaque"},
        {"v1", "Event", "involvedObject.name", "{\"involvedObject\":{\"name\":\"p\"}}", "p"},
        {"v1", "Event", "source", "{\"source\":{\"component\":\"c\"}}", "c"},
        {"events.k8s.io/v1", "Event", "regarding.name", "{\"involvedObject\":{\"name\":\"p\"}}",
         "p"},
        {"batch/v1", "Job", "status.successful", "{\"status\":{\"succeeded\":3}}", "3"},
        {"batch/v1", "Job", "status.successful", "{}", "0"},
        {"apps/v1", "ReplicaSet", "status.replicas", "{\"status\":{\"replicas\":2}}", "2"},
        {"v1", "Namespace", "status.phase", "{\"status\":{\"phase\":\"Active\"}}", "Active"},
        {"apps/v1", "Deployment", "status.phase", "{}", NULL},
        {"v1", "ConfigMap", "metadata.namespace", "{\"metadata\":{\"namespace\":\"x\"}}", "x"},
    };
    struct kinds *kinds = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct td_resource *resource = find(kinds, rows[i].version, rows[i].kind).resource;
        td_str field = td_str_from(rows[i].field);
        td_str value = TD_STR("untouched");
        bool is_found = td_kind_field(resource, field, parse(kinds, rows[i].json), &value);
        assert_int_equal(is_found, rows[i].value != NULL);
        assert_int_equal(td_kind_has_field(resource, field), is_found);
        assert_true(
            td_str_equal(value, rows[i].value ? td_str_from(rows[i].value) : TD_STR("untouched")));
    }
}

/* Schedules as cron writes them are read; others are refused with the part that is wrong. */
static void test_kinds_schedules(void **state)
{
    static const struct {
        const char *schedule;
        const char *problem;
    } rows[] = {
        {"* * * * *", ""},
        {"*/5 0-23/2 1,15 jan-MAR mon", ""},
        {"0 0 ? * 6", ""},
        {"@daily", ""},
        {"@every 1h30m", ""},
        {"@every x", "failed to parse duration @every x"},
        {"@never", "unrecognized descriptor: @never"},
        {"", "expected exactly 5 fields, found 0: []"},
        {"* * * *", "expected exactly 5 fields, found 4: [* * * *]"},
        {"60 * * * *", "end of range (60) above maximum (59): 60"},
        {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
        {"5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"},
        {"*/0 * * * *", "step of range should be a positive number: */0"},
        {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
        {"1/2/3 * * * *", "too many slashes: 1/2/3"},
        {"x * * * *", "failed to parse number: x"},
        {"TZ=UTC 0 0 * * *", ""},
    };
    struct kinds *kinds = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_str problem = td_cron_problem(&kinds->arena, td_str_from(rows[i].schedule));
        assert_true(td_str_equal(problem, td_str_from(rows[i].problem)));
    }
    assert_true(td_cron_has_zone(TD_STR("CRON_TZ=UTC * * * * *")));
    assert_false(td_cron_has_zone(TD_STR("* * * * *")));
}

/* A node port that a user chooses lies in the range that services have. */
static void test_kinds_node_ports(void **state)
{
    static const struct {
        const char *type;
        int port;
        const char *detail; /* NULL: accepted */
    } rows[] = {
        {"NodePort", 30000, NULL},
        {"NodePort", 32767, NULL},
        {"LoadBalancer", 30123, NULL},
        {"NodePort", 29999, "provided port is not in the valid range"},
        {"NodePort", 32768, "provided port is not in the valid range"},
        {"LoadBalancer", 1, "provided port is not in the valid range"},
        {"ClusterIP", 30123, "may not be used when `type` is 'ClusterIP'"},
    };
    struct kinds *kinds = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_resource_at at =
            td_resources_find_kind(kinds->resources, TD_STR("v1"), TD_STR("Service"));
        td_str text =
            td_arena_format(&kinds->arena,
                            "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},\"spec\":{"
                            "\"type\":\"%s\",\"ports\":[{\"port\":80,\"nodePort\":%d}]}}",
                            rows[i].type, rows[i].port);
        struct td_json *object = parse(kinds, text.ptr);
        assert_int_equal(td_kind_default(&kinds->arena, at.resource, at.version, object, NULL),
                         TD_OK);
        struct td_kind_write write = {.arena = &kinds->arena,
                                      .resource = at.resource,
                                      .operation = TD_WRITE_CREATE,
                                      .object = object};
        struct td_field_errors errors = {.arena = &kinds->arena};
        td_kind_prepare(&write);
        td_kind_validate(&write, &errors);
        assert_int_equal(errors.count, rows[i].detail ? 1 : 0);
        if (rows[i].detail) {
            assert_true(td_str_equal(errors.items[0].field, TD_STR("spec.ports[0].nodePort")));
            assert_true(td_str_starts_with(errors.items[0].detail, td_str_from(rows[i].detail)));
        }
    }
}

/* A custom resource loses what its schema does not know, and its status has its own door. */
static void test_kinds_custom_resources(void **state)
{
    struct kinds *kinds = *state;
    const struct td_json *schema = parse(
        kinds, "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":"
               "{\"size\":{\"type\":\"integer\"}}},\"status\":{\"type\":\"object\","
               "\"properties\":{\"ready\":{\"type\":\"boolean\"}}}}}");
    static const td_str fields[] = {TD_STR_INIT("spec.size")};
    struct td_custom_version version = {
        .schema = schema, .fields = fields, .field_count = 1, .has_status = true};
    struct td_custom custom = {.versions = &version, .version_count = 1};
    struct td_resource_version row = {.name = TD_STR("v1"),
                                      .api_version = TD_STR("example.com/v1"),
                                      .type = td_schema_any_object()};
    struct td_resource resource = {.group = TD_STR("example.com"),
                                   .kind = TD_STR("Thing"),
                                   .is_namespaced = true,
                                   .has_generation = true,
                                   .subresources = TD_SUB_STATUS,
                                   .versions = &row,
                                   .version_count = 1,
                                   .custom = &custom};
    struct td_json *object = parse(
        kinds, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},\"spec\":{\"size\":3,\"x\":1},"
               "\"status\":{\"ready\":true}}");
    assert_int_equal(td_kind_default(&kinds->arena, &resource, 0, object, NULL), TD_OK);
    assert_null(td_json_get_path(object, "spec.x"));
    struct td_kind_write write = {.arena = &kinds->arena,
                                  .resource = &resource,
                                  .operation = TD_WRITE_CREATE,
                                  .object = object};
    td_kind_prepare(&write);
    assert_null(td_json_get(object, TD_STR("status")));
    struct td_field_errors errors = {.arena = &kinds->arena};
    td_kind_validate(&write, &errors);
    assert_int_equal(errors.count, 0);
    td_str value;
    assert_true(td_kind_field(&resource, TD_STR("spec.size"), object, &value));
    assert_true(td_str_equal(value, TD_STR("3")));
    assert_false(td_kind_has_field(&resource, TD_STR("spec.other")));

    struct td_json *next =
        parse(kinds, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"resourceVersion\":\"1\"},"
                     "\"spec\":{\"size\":9},\"status\":{\"ready\":\"yes\"}}");
    write = (struct td_kind_write){.arena = &kinds->arena,
                                   .resource = &resource,
                                   .operation = TD_WRITE_STATUS,
                                   .old = object,
                                   .object = next};
    td_kind_prepare(&write);
    assert_int_equal(td_json_get_int64(td_json_get(next, TD_STR("spec")), TD_STR("size"), 0), 3);
    td_kind_validate(&write, &errors);
    assert_int_equal(errors.count, 1);
    assert_true(td_str_equal(errors.items[0].field, TD_STR("status.ready")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kinds_name_the_member_that_does_not_decode,
                                        kinds_setup, kinds_teardown),
        cmocka_unit_test_setup_teardown(test_kinds_default_once, kinds_setup, kinds_teardown),
        cmocka_unit_test_setup_teardown(test_kinds_fields, kinds_setup, kinds_teardown),
        cmocka_unit_test_setup_teardown(test_kinds_schedules, kinds_setup, kinds_teardown),
        cmocka_unit_test_setup_teardown(test_kinds_node_ports, kinds_setup, kinds_teardown),
        cmocka_unit_test_setup_teardown(test_kinds_custom_resources, kinds_setup, kinds_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
