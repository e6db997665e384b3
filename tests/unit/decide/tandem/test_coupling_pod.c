/*
 * Pods with resources of their own: which metric measures by which request, and which of them the
 * VPA controls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/json/json.h"
#include "decide/tandem/coupling.h"
#include "support/quoted_json.h"

#define WHOLE                                                                                      \
    "{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization','"                 \
    "averageUtilization':50}}}"
#define APP                                                                                        \
    "{'type':'ContainerResource','containerResource':{'name':'cpu','container':'app','target':{"   \
    "'type':'Utilization','averageUtilization':50}}}"

static void decode(struct td_arena *arena, const char *metric, struct td_hvpa *ret)
{
    struct td_hvpa_findings findings = {.is_target_mismatch = false};
    struct td_error err = TD_ERROR_INIT;
    td_str text = td_arena_format(
        arena,
        "{'apiVersion':'autoscaling.k8s.io/v1alpha1','kind':'Hvpa','metadata':{'name':'web',"
        "'namespace':'shop'},'spec':{'mode':'HPABiased','targetRef':{'apiVersion':'apps/v1','kind':"
        "'Deployment','name':'web'},'hpaSpec':{'maxReplicas':9,'metrics':[%s]},'vpaSpec':{"
        "'resourcePolicy':{'podPolicies':{'controlledResources':['cpu']}}}}}",
        metric);
    struct td_json *tree = quoted_json(arena, text.ptr);
    if (td_hvpa_decode(arena, tree, ret, &findings, &err) != TD_OK) {
        fail_msg("%s", err.message);
    }
}

static void test_a_metric_of_whole_pods_measures_by_the_pods_own_request(void **state)
{
    (void)state;
    static const td_str pod = TD_TANDEM_POD;
    static const struct {
        const char *metric;
        int64_t whole; /* the pod's own request; 0: none */
        int64_t average;
        bool is_app_coupled; /* beside that of the pod */
    } rows[] = {{WHOLE, 0, 150, false}, {WHOLE, 1000, 500, false}, {APP, 1000, 100, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, 1 << 20);
        struct td_hvpa hvpa;
        struct td_quantity average;
        decode(&arena, rows[i].metric, &hvpa);
        const struct td_tandem_request requests[] = {
            {.container = TD_STR("app"), .resource = TD_HVPA_CPU, .in_template = 200},
            {.container = TD_STR("side"), .resource = TD_HVPA_CPU, .in_template = 100},
            {.container = pod, .resource = TD_HVPA_CPU, .in_template = rows[i].whole},
        };
        assert_true(td_tandem_average_value(&hvpa, 0, requests, 3, &average));
        assert_int_equal(td_quantity_milli(&average), rows[i].average);
        assert_int_equal(
            td_tandem_coupling_beside_pod(&hvpa, TD_STR("app"), TD_HVPA_CPU).is_coupled,
            rows[i].is_app_coupled);
        assert_true(td_tandem_coupling_of(&hvpa, TD_STR("app"), TD_HVPA_CPU).is_coupled);
        assert_int_equal(td_tandem_coupling_of(&hvpa, pod, TD_HVPA_CPU).is_coupled,
                         !rows[i].is_app_coupled);
        assert_false(td_tandem_coupling_of(&hvpa, pod, TD_HVPA_MEMORY).is_coupled);
        assert_true(td_tandem_controls(&hvpa, pod, TD_HVPA_CPU));
        assert_false(td_tandem_controls(&hvpa, pod, TD_HVPA_MEMORY));
        assert_true(td_tandem_controls(&hvpa, TD_STR("app"), TD_HVPA_MEMORY));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_metric_of_whole_pods_measures_by_the_pods_own_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
