/* What a cluster does to requests without being told: namespaces, accounts, priorities, limits. */
#include "support/api_script.h"

#define LIMITS "/api/v1/namespaces/default/limitranges"
#define CLASSES "/apis/scheduling.k8s.io/v1/priorityclasses"
#define POD(name, spec)                                                                            \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec                                        \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"
#define SIZED(name, resources)                                                                     \
    "{\"metadata\":{\"name\":\"" name                                                              \
    "\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{" resources      \
    "}}]}}"
#define DRY PODS "?dryRun=All"

/* A namespace must be there, not on its way out, and three of them last. */
static void test_namespaces(void **state)
{
    static const struct step steps[] = {
        {"POST", "/api/v1/namespaces/none/configmaps", NULL, "{\"metadata\":{\"name\":\"a\"}}", 404,
         "message", "namespaces \"none\" not found"},
        {"PUT", "/api/v1/namespaces/none/configmaps/a", NULL, "{\"metadata\":{\"name\":\"a\"}}",
         404, "reason", "NotFound"},
        {"POST", "/api/v1/namespaces", NULL,
         "{\"metadata\":{\"name\":\"going\",\"finalizers\":[\"example.dev/hold\"]}}", 201, NULL,
         NULL},
        {"POST", "/api/v1/namespaces/going/configmaps", NULL, "{\"metadata\":{\"name\":\"a\"}}",
         201, NULL, NULL},
        {"DELETE", "/api/v1/namespaces/going", NULL, NULL, 200, NULL, NULL},
        {"POST", "/api/v1/namespaces/going/configmaps", NULL, "{\"metadata\":{\"name\":\"b\"}}",
         403, "message",
         "configmaps \"b\" is forbidden: unable to create new content in namespace going because "
         "it is being terminated"},
        {"POST", "/apis/apps/v1/namespaces/going/deployments", NULL,
         "{\"metadata\":{\"generateName\":\"d-\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":"
         "\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{"
         "\"name\":\"c\",\"image\":\"i\"}]}}}}",
         403, "message",
         "deployments.apps \"d-\" is forbidden: unable to create new content in namespace going "
         "because it is being terminated"},
        {"PATCH", "/api/v1/namespaces/going/configmaps/a", MERGE, "{\"data\":{\"k\":\"v\"}}", 200,
         NULL, NULL},
        {"DELETE", "/api/v1/namespaces/going/configmaps/a", NULL, NULL, 200, NULL, NULL},
        {"DELETE", "/api/v1/namespaces/default", NULL, NULL, 403, "message",
         "namespaces \"default\" is forbidden: this namespace may not be deleted"},
    };
    RUN(*state, steps);
}

/* Pods get an account, a priority and two tolerations, and only those that there are. */
static void test_pods(void **state)
{
    static const struct step steps[] = {
        {"POST", DRY, NULL, POD("p", ""), 201, "spec.serviceAccountName", "default"},
        {"POST", DRY, NULL, POD("p", ""), 201, "spec.priority", "0"},
        {"POST", DRY, NULL, POD("p", ""), 201, "spec.preemptionPolicy", "PreemptLowerPriority"},
        {"POST", DRY, NULL, POD("p", "\"tolerations\":[{\"operator\":\"Exists\"}],"), 201,
         "spec.tolerations", "[{\"operator\":\"Exists\"}]"},
        {"POST", DRY, NULL,
         POD("p", "\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":"
                  "\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":1},{\"key\":"
                  "\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":"
                  "\"NoSchedule\"}],"),
         201, "spec.tolerations",
         "[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"
         "\"NoExecute\",\"tolerationSeconds\":1},{\"key\":\"node.kubernetes.io/unreachable\","
         "\"operator\":\"Exists\",\"effect\":\"NoSchedule\"},{\"key\":"
         "\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
         "\"tolerationSeconds\":300}]"},
        {"POST", DRY, NULL, POD("p", "\"serviceAccountName\":\"bot\","), 403, "message",
         "pods \"p\" is forbidden: error looking up service account default/bot: serviceaccount "
         "\"bot\" not found"},
        {"POST", "/api/v1/namespaces/default/serviceaccounts", NULL,
         "{\"metadata\":{\"name\":\"bot\"}}", 201, NULL, NULL},
        {"POST", DRY, NULL, POD("p", "\"serviceAccountName\":\"bot\","), 201, "spec.serviceAccount",
         "bot"},
        {"POST", DRY, NULL, POD("p", "\"priorityClassName\":\"high\","), 403, "message",
         "pods \"p\" is forbidden: no PriorityClass with name high was found"},
        {"POST", DRY, NULL, POD("p", "\"priority\":5,"), 403, "message",
         "pods \"p\" is forbidden: the integer value of priority (5) must not be provided in pod "
         "spec; priority admission controller computed 0 from the given PriorityClass name"},
        {"POST", CLASSES, NULL,
         "{\"metadata\":{\"name\":\"high\"},\"value\":1000,\"preemptionPolicy\":\"Never\"}", 201,
         NULL, NULL},
        {"POST", CLASSES, NULL,
         "{\"metadata\":{\"name\":\"usual\"},\"value\":7,\"globalDefault\":true}", 201, NULL, NULL},
        {"POST", DRY, NULL, POD("p", "\"priorityClassName\":\"high\","), 201, "spec.priority",
         "1000"},
        {"POST", DRY, NULL, POD("p", "\"priorityClassName\":\"high\","), 201,
         "spec.preemptionPolicy", "Never"},
        {"POST", DRY, NULL, POD("p", ""), 201, "spec.priorityClassName", "usual"},
        {"POST", DRY, NULL, POD("p", ""), 201, "spec.priority", "7"},
        {"POST", DRY, NULL,
         POD("p", "\"priorityClassName\":\"high\",\"preemptionPolicy\":\"PreemptLowerPriority\","),
         403, "reason", "Forbidden"},
    };
    RUN(*state, steps);
}

/* Missing requests and limits are filled in, and it is written down which. */
static void test_limit_defaults(void **state)
{
    static const struct step steps[] = {
        {"POST", LIMITS, NULL,
         "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"limits\":[{\"type\":\"Container\",\"default\":"
         "{\"memory\":\"1Gi\",\"cpu\":\"2\"},\"defaultRequest\":{\"cpu\":\"1\"}}]}}",
         201, NULL, NULL},
        {"POST", LIMITS, NULL,
         "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"limits\":[{\"type\":\"Container\",\"default\":"
         "{\"cpu\":\"9\"},\"defaultRequest\":{\"cpu\":\"8\"}}]}}",
         201, NULL, NULL},
        {"POST", DRY, NULL, POD("p", ""), 201, "metadata.annotations",
         "{\"kubernetes.io/limit-ranger\":\"LimitRanger plugin set: cpu, memory request for "
         "container c; cpu, memory limit for container c\"}"},
        {"POST", DRY, NULL, SIZED("p", "\"requests\":{\"cpu\":\"500m\"}"), 201,
         "metadata.annotations",
         "{\"kubernetes.io/limit-ranger\":\"LimitRanger plugin set: memory request for container "
         "c; cpu, memory limit for container c\"}"},
        {"POST", DRY, NULL,
         SIZED("p", "\"requests\":{\"cpu\":\"1\",\"memory\":\"1Mi\"},\"limits\":{\"cpu\":\"1\","
                    "\"memory\":\"1Mi\"}"),
         201, "metadata.annotations", NULL},
    };
    RUN(*state, steps);
}

/* What is outside the bounds is refused with every reason once, in the real plugin's words. */
static void test_limit_bounds(void **state)
{
    static const struct step steps[] = {
        {"POST", LIMITS, NULL,
         "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"limits\":[{\"type\":\"Container\",\"min\":{"
         "\"cpu\":\"100m\"},\"max\":{\"cpu\":\"2\"},\"default\":{\"cpu\":\"1\"},\"defaultRequest\":"
         "{\"cpu\":\"1\"},\"maxLimitRequestRatio\":{\"cpu\":\"4\"}},{\"type\":\"Pod\",\"max\":{"
         "\"memory\":\"1Gi\"}}]}}",
         201, NULL, NULL},
        {"POST", DRY, NULL,
         SIZED("p", "\"requests\":{\"cpu\":\"50m\"},\"limits\":{\"cpu\":\"3\",\"memory\":\"1Mi\"}"),
         403, "message",
         "pods \"p\" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, "
         "maximum cpu usage per Container is 2, but limit is 3, cpu max limit to request ratio per "
         "Container is 4, but provided ratio is 60.000000]"},
        {"POST", DRY, NULL, SIZED("p", "\"limits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}"), 403,
         "message",
         "pods \"p\" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi"},
        {"POST", DRY, NULL, SIZED("p", "\"limits\":{\"cpu\":\"1\"}"), 403, "message",
         "pods \"p\" is forbidden: maximum memory usage per Pod is 1Gi.  No limit is specified"},
        {"POST", DRY, NULL, SIZED("p", "\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}"), 201, NULL,
         NULL},
        {"POST", DRY, NULL,
         "{\"metadata\":{\"generateName\":\"p-\"},\"spec\":{\"containers\":[{\"name\":\"c\","
         "\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"3\",\"memory\":\"1Mi\"}}},{\"name\":"
         "\"d\",\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"3\",\"memory\":\"1Mi\"}}}]}}",
         403, "reason", "Forbidden"},
    };
    RUN(*state, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_namespaces, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_pods, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_limit_defaults, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_limit_bounds, script_setup, script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
