/* Binding a pod to a node, and its eviction under disruption budgets. */
#include "support/api_script.h"

#define BUDGETS "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define POD(name)                                                                                  \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"app\":\"" name                             \
    "\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"
#define BIND(name, node)                                                                           \
    "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"" name                   \
    "\",\"annotations\":{\"x\":\"y\"}},\"target\":{\"kind\":\"Node\",\"name\":\"" node "\"}}"
#define EVICT(name, options)                                                                       \
    "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"" name           \
    "\"},\"deleteOptions\":{" options "}}"
#define BUDGET(name, app, more)                                                                    \
    "{\"metadata\":{\"name\":\"" name                                                              \
    "\"},\"spec\":{\"minAvailable\":1,\"selector\":{\"matchLabels\":{\"app\":\"" app "\"}}" more   \
    "}}"
#define RUNS                                                                                       \
    "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]" \
    "}}"
#define ALLOWS(count)                                                                              \
    "{\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":" #count                         \
    ",\"currentHealthy\":1,\"desiredHealthy\":1,\"expectedPods\":1}}"

/* A pod is bound once, whichever of the two paths is used. */
static void test_binding(void **state)
{
    static const struct step steps[] = {
        {"POST", PODS, NULL, POD("a"), 201, NULL, NULL},
        {"POST", PODS, NULL, POD("b"), 201, NULL, NULL},
        {"POST", PODS "/a/binding?dryRun=All", NULL, BIND("a", "n1"), 201, "status", "Success"},
        {"GET", PODS "/a", NULL, NULL, 200, "spec.nodeName", NULL},
        {"POST", PODS "/a/binding", NULL, BIND("a", "n1"), 201, "status", "Success"},
        {"GET", PODS "/a", NULL, NULL, 200, "spec.nodeName", "n1"},
        {"GET", PODS "/a", NULL, NULL, 200, "metadata.annotations", "{\"x\":\"y\"}"},
        {"POST", PODS "/a/binding", NULL, BIND("a", "n2"), 409, "reason", "Conflict"},
        {"POST", PODS "/b/binding", NULL, BIND("a", "n2"), 400, "reason", "BadRequest"},
        {"POST", PODS "/b/binding", NULL, BIND("b", ""), 422, "reason", "Invalid"},
        {"POST", PODS "/none/binding", NULL, BIND("none", "n"), 404, "reason", "NotFound"},
        {"POST", "/api/v1/namespaces/default/bindings", NULL, BIND("b", "n1"), 201, "status",
         "Success"},
        {"GET", PODS "/b", NULL, NULL, 200, "spec.nodeName", "n1"},
        {"POST", PODS "/b/binding", NULL, "[]", 400, "reason", "BadRequest"},
    };
    RUN(*state, steps);
}

/* Without a budget a pod goes; preconditions and dry runs are kept. */
static void test_eviction_without_budget(void **state)
{
    static const struct step steps[] = {
        {"POST", PODS, NULL, POD("a"), 201, NULL, NULL},
        {"POST", PODS "/none/eviction", NULL, EVICT("none", ""), 404, "reason", "NotFound"},
        {"POST", PODS "/a/eviction", NULL, EVICT("b", ""), 400, "reason", "BadRequest"},
        {"POST", PODS "/a/eviction", NULL, EVICT("a", "\"preconditions\":{\"uid\":\"x\"}"), 409,
         "reason", "Conflict"},
        {"POST", PODS "/a/eviction", NULL, EVICT("a", "\"dryRun\":[\"All\"]"), 201, "status",
         "Success"},
        {"POST", PODS "/a/eviction?dryRun=All", NULL, EVICT("a", ""), 201, "status", "Success"},
        {"GET", PODS "/a", NULL, NULL, 200, "metadata.deletionTimestamp", NULL},
        {"POST", PODS "/a/eviction", NULL, EVICT("a", "\"gracePeriodSeconds\":0"), 201, "status",
         "Success"},
        {"GET", PODS "/a", NULL, NULL, 404, NULL, NULL},
    };
    RUN(*state, steps);
}

/* A budget without room refuses with a 429 that names it, one with room is spent at once. */
static void test_eviction_under_a_budget(void **state)
{
    static const struct step steps[] = {
        {"POST", PODS, NULL, POD("a"), 201, NULL, NULL},
        {"PATCH", PODS "/a/status", STRATEGIC, RUNS, 200, NULL, NULL},
        {"POST", BUDGETS, NULL, BUDGET("guard", "a", ""), 201, NULL, NULL},
        {"POST", PODS "/a/eviction", NULL, EVICT("a", ""), 429, "details",
         "{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget guard "
         "is still being processed by the server.\"}],\"retryAfterSeconds\":10}"},
        {"PATCH", BUDGETS "/guard/status", MERGE, ALLOWS(0), 200, NULL, NULL},
        {"POST", PODS "/a/eviction", NULL, EVICT("a", ""), 429, "message",
         "Cannot evict pod as it would violate the pod's disruption budget."},
        {"POST", PODS "/a/eviction", NULL, EVICT("a", ""), 429, "details",
         "{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget guard "
         "needs 1 healthy pods and has 1 currently\"}]}"},
        {"PATCH", BUDGETS "/guard/status", MERGE, ALLOWS(1), 200, NULL, NULL},
        {"POST", PODS "/a/eviction?dryRun=All", NULL, EVICT("a", ""), 201, NULL, NULL},
        {"GET", BUDGETS "/guard", NULL, NULL, 200, "status.disruptionsAllowed", "1"},
        {"POST", PODS "/a/eviction", NULL, EVICT("a", "\"gracePeriodSeconds\":0"), 201, NULL, NULL},
        {"GET", BUDGETS "/guard", NULL, NULL, 200, "status.disruptionsAllowed", "0"},
        {"GET", PODS "/a", NULL, NULL, 404, NULL, NULL},
    };
    RUN(*state, steps);
}

/* A pod that is not there for its users needs no room, two budgets are one too many. */
static void test_pods_that_disturb_nobody(void **state)
{
    static const struct step steps[] = {
        {"POST", BUDGETS, NULL, BUDGET("one", "a", ""), 201, NULL, NULL},
        {"POST", BUDGETS, NULL,
         BUDGET("always", "b", ",\"unhealthyPodEvictionPolicy\":\"AlwaysAllow\""), 201, NULL, NULL},
        {"PATCH", BUDGETS "/one/status", MERGE, ALLOWS(0), 200, NULL, NULL},
        {"PATCH", BUDGETS "/always/status", MERGE,
         "{\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":0,\"currentHealthy\":0,"
         "\"desiredHealthy\":1,\"expectedPods\":1}}",
         200, NULL, NULL},
        {"POST", PODS, NULL, POD("a"), 201, NULL, NULL},
        {"POST", PODS, NULL, POD("b"), 201, NULL, NULL},
        {"PATCH", PODS "/b/status", STRATEGIC, "{\"status\":{\"phase\":\"Running\"}}", 200, NULL,
         NULL},
        {"POST", PODS "/a/eviction", NULL, EVICT("a", ""), 201, NULL, NULL}, /* pending */
        {"POST", PODS "/b/eviction", NULL, EVICT("b", "\"gracePeriodSeconds\":0"), 201, NULL, NULL},
        {"POST", PODS, NULL, POD("b"), 201, NULL, NULL},
        {"PATCH", PODS "/b/status", STRATEGIC, RUNS, 200, NULL, NULL},
        {"POST", BUDGETS, NULL, BUDGET("second", "b", ""), 201, NULL, NULL},
        {"POST", PODS "/b/eviction", NULL, EVICT("b", ""), 500, "message",
         "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
         "support."},
    };
    RUN(*state, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_binding, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_eviction_without_budget, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_eviction_under_a_budget, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_pods_that_disturb_nobody, script_setup,
                                        script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
