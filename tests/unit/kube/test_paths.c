/* Request paths: every part is escaped, and what no escape makes safe is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "kube/paths.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Groups, namespaces, names and subresources in the places where the API server looks for them. */
static void test_path_is_written_as_the_server_reads_it(void **state)
{
    (void)state;
    static const struct {
        const char *group, *version, *namespace, *plural, *name, *subresource, *want;
    } rows[] = {
        {"", "v1", "", "pods", "", "", "/api/v1/pods"},
        {"", "v1", "web", "pods", "", "", "/api/v1/namespaces/web/pods"},
        {"", "v1", "web", "pods", "a", "eviction", "/api/v1/namespaces/web/pods/a/eviction"},
        {"", "v1", "", "nodes", "n-1", "", "/api/v1/nodes/n-1"},
        {"apps", "v1", "web", "deployments", "front", "scale",
         "/apis/apps/v1/namespaces/web/deployments/front/scale"},
        {"autoscaling.k8s.io", "v1", "", "verticalpodautoscalers", "", "",
         "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"},
        {"", "v1", "a/../b", "pods", "x?y=1&z#%", "",
         "/api/v1/namespaces/a%2F..%2Fb/pods/x%3Fy%3D1%26z%23%25"},
        {"rbac.authorization.k8s.io", "v1", "", "clusterroles", "system:node", "",
         "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode"},
        {"", "v1", "web", "pods", "\xc3\xa4 \r\n", "",
         "/api/v1/namespaces/web/pods/%C3%A4%20%0D%0A"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_buf out;
        td_buf_init(&out, TD_API_PATH_BYTES_MAX);
        const struct td_api_path path = {
            td_str_from(rows[i].group),     td_str_from(rows[i].version),
            td_str_from(rows[i].namespace), td_str_from(rows[i].plural),
            td_str_from(rows[i].name),      td_str_from(rows[i].subresource),
        };
        assert_int_equal(td_path_write(&path, &out, NULL), TD_OK);
        assert_string_equal(out.ptr, rows[i].want);
    }
}

/* A kind without namespaces is scaled without one, whatever namespace the scaler has. */
static void test_path_of_a_scale(void **state)
{
    (void)state;
    struct td_served_resource resource = {
        .group = TD_STR("apps"),
        .version = TD_STR("v1"),
        .plural = TD_STR("deployments"),
        .is_namespaced = true,
    };
    const struct td_object_key object = TD_OBJECT_KEY(TD_STR("web"), TD_STR("front"));
    td_auto_buf out;
    td_buf_init(&out, TD_API_PATH_BYTES_MAX);
    struct td_api_path path = td_path_scale(&resource, object);
    assert_int_equal(td_path_write(&path, &out, NULL), TD_OK);
    assert_string_equal(out.ptr, "/apis/apps/v1/namespaces/web/deployments/front/scale");
    resource.is_namespaced = false;
    td_buf_reset(&out);
    path = td_path_scale(&resource, object);
    assert_int_equal(td_path_write(&path, &out, NULL), TD_OK);
    assert_string_equal(out.ptr, "/apis/apps/v1/deployments/front/scale");
}

/* Parts that would change what the path means, and paths without a resource. */
static void test_path_refuses_what_cannot_be_escaped(void **state)
{
    (void)state;
    const struct {
        struct td_api_path path;
        const char *want;
    } rows[] = {
        {{.version = TD_STR("v1")}, "API path: no resource"},
        {{.plural = TD_STR("pods")}, "API path: no version"},
        {{.version = TD_STR("v1"), .plural = TD_STR("pods"), .name = TD_STR("..")},
         "API path: name '..' cannot stand in a path"},
        {{.version = TD_STR("v1"), .namespace = TD_STR("."), .plural = TD_STR("pods")},
         "API path: namespace '.' cannot stand in a path"},
        {{.version = TD_STR("v1"), .plural = TD_STR("pods"), .subresource = TD_STR("scale")},
         "API path: subresource 'scale' without a name"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        td_auto_buf out;
        td_buf_init(&out, TD_API_PATH_BYTES_MAX);
        struct td_error err = TD_ERROR_INIT;
        assert_int_equal(td_path_write(&rows[i].path, &out, &err), TD_INVALID);
        assert_string_equal(err.message, rows[i].want);
    }
    td_auto_buf small;
    td_buf_init(&small, 5);
    const struct td_api_path pods = {.version = TD_STR("v1"), .plural = TD_STR("pods")};
    assert_int_equal(td_path_write(&pods, &small, NULL), TD_LIMIT);
}

/* The first parameter opens the query, others are joined; keys and values are escaped. */
static void test_path_parameters_are_joined(void **state)
{
    (void)state;
    td_auto_buf out;
    td_buf_init(&out, TD_API_PATH_BYTES_MAX);
    (void)td_buf_append(&out, TD_STR("/api/v1/pods"));
    td_path_add_query(&out, TD_STR("labelSelector"), TD_STR("app in (a,b),x!=y"));
    td_path_add_query(&out, TD_STR("limit"), TD_STR("500"));
    td_path_add_query(&out, TD_STR("continue"), TD_STR_EMPTY);
    assert_string_equal(out.ptr, "/api/v1/pods?labelSelector=app%20in%20%28a%2Cb%29%2Cx%21%3Dy"
                                 "&limit=500&continue=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_is_written_as_the_server_reads_it),
        cmocka_unit_test(test_path_of_a_scale),
        cmocka_unit_test(test_path_refuses_what_cannot_be_escaped),
        cmocka_unit_test(test_path_parameters_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
