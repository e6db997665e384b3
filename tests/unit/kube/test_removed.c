/* APIs that are gone: each row says since when and what to use, and what is served has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/removed.h"
#include "kube/schema/schema.h"

static void test_removed_names_the_replacement(void **state)
{
    (void)state;
    static const struct {
        td_str api_version;
        td_str kind;
        const char *removed_in; /* NULL: it is served */
        const char *replacement;
    } rows[] = {
#define ROW(version, kind, since, by) {TD_STR_INIT(version), TD_STR_INIT(kind), since, by}
        ROW("autoscaling/v2beta2", "HorizontalPodAutoscaler", "Kubernetes 1.26",
            "autoscaling/v2 (since 1.23)"),
        ROW("extensions/v1beta1", "Deployment", "Kubernetes 1.16", "apps/v1 (since 1.9)"),
        ROW("autoscaling.k8s.io/v1beta2", "VerticalPodAutoscaler",
            "the Vertical Pod Autoscaler 1.3", "autoscaling.k8s.io/v1 (since 0.7)"),
        ROW("policy/v1beta1", "PodSecurityPolicy", "Kubernetes 1.25", NULL),
        ROW("autoscaling/v2", "HorizontalPodAutoscaler", NULL, NULL),
        ROW("autoscaling/v2beta2", "Deployment", NULL, NULL),
        ROW("", "", NULL, NULL),
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        const struct td_removed_api *found = td_removed_find(rows[i].api_version, rows[i].kind);
        assert_int_equal(found != NULL, rows[i].removed_in != NULL);
        if (found) {
            assert_string_equal(found->removed_in, rows[i].removed_in);
            assert_int_equal(found->replacement != NULL, rows[i].replacement != NULL);
            assert_int_equal(found->advice != NULL, rows[i].replacement == NULL);
            assert_null(td_schema_find(rows[i].api_version, rows[i].kind));
        }
        if (found && rows[i].replacement) {
            assert_string_equal(found->replacement, rows[i].replacement);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removed_names_the_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
