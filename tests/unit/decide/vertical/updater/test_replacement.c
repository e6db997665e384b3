/* The pod that would replace an evicted one, and owners that cannot make pods. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "decide/vertical/updater/replacement.h"
#include "unit/decide/vertical_support.h"

#define ARENA_BYTES ((size_t)8 << 20)
#define TARGET(cpu) "\"target\":{\"cpu\":\"" cpu "\"}"
#define VPA(cpu)                                                                                   \
    "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"updatePolicy\":{\"updateMode\":\"Recreate\"}},"    \
    "\"status\":{\"recommendation\":{\"containerRecommendations\":[{\"containerName\":"            \
    "\"c\"," TARGET(cpu) "}]}}}"
#define CONTAINER(resources)                                                                       \
    "{\"name\":\"c\",\"image\":\"i\",\"imagePullPolicy\":\"Always\",\"terminationMessagePolicy\":" \
    "\"File\",\"resources\":" resources "}"
#define TEMPLATE(own, resources)                                                                   \
    "{\"metadata\":{\"labels\":{\"app\":\"a\"}},\"spec\":{" own                                    \
    "\"restartPolicy\":\"Always\",\"dnsPolicy\":\"ClusterFirst\",\"containers\":[" CONTAINER(      \
        resources) "]}}"
#define SMALL "{\"requests\":{\"cpu\":\"100m\"}}"
#define RATIO "{\"requests\":{\"cpu\":\"100m\"},\"limits\":{\"cpu\":\"200m\"}}"
#define RANGE(type, what) "[{\"type\":\"" type "\"," what "}]"

static void test_the_pod_is_judged_as_it_would_be_admitted(void **state)
{
    (void)state;
    static const struct {
        const char *template;
        const char *vpa;
        const char *limits; /* of a LimitRange, or NULL */
        bool gate;          /* PodLevelResources */
        const char *says;   /* NULL: nothing */
    } rows[] = {
        {TEMPLATE("", SMALL), VPA("5"), NULL, true, NULL},
        {TEMPLATE("", RATIO), VPA("5"), NULL, true, NULL},
        /* Containers beyond the limit of their pod, which admission does not look at. */
        {TEMPLATE("\"resources\":{\"limits\":{\"cpu\":\"1\"}},", SMALL), VPA("5"), NULL, false,
         "spec.resources.requests[cpu]: Invalid value: \"100m\": must be greater than or equal to "
         "aggregate container requests of 5"},
        {TEMPLATE("\"resources\":{\"limits\":{\"cpu\":\"1\"}},", SMALL), VPA("5"), NULL, true,
         NULL},
        /* What is wrong with the template itself was accepted by the API server. */
        {"{\"metadata\":{},\"spec\":{\"restartPolicy\":\"Later\",\"containers\":[" CONTAINER(
             SMALL) "]}}",
         VPA("5"), NULL, true, NULL},
        {TEMPLATE("", SMALL), VPA("5"),
         RANGE("Container", "\"max\":{\"memory\":\"1Gi\"},\"default\":{\"memory\":\"1Gi\"}"), true,
         NULL}, /* as a server stores it: the max is the default */
        {TEMPLATE("", RATIO), VPA("5"),
         RANGE("Container", "\"maxLimitRequestRatio\":{\"cpu\":"
                            "\"1500m\"}"),
         true, "cpu max limit to request ratio per Container is 1500m"},
        {TEMPLATE("", RATIO), VPA("5"), RANGE("Pod", "\"max\":{\"memory\":\"1Gi\"}"), true,
         "maximum memory usage per Pod is 1Gi"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_pod pod =
            vertical_pod(&arena, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\"},\"spec\":{"
                                 "\"containers\":[{\"name\":\"c\"}]}}");
        struct td_vpa vpa = vertical_vpa(&arena, rows[i].vpa);
        struct td_limit_ranges limits = vertical_limits(&arena, rows[i].limits);
        struct td_json *range = vertical_tree(&arena, "{\"metadata\":{\"name\":\"bounds\"}}");
        if (rows[i].limits) {
            struct td_json *spec = td_json_ensure_object(&arena, range, TD_STR("spec"));
            td_json_set(&arena, spec, TD_STR("limits"), vertical_tree(&arena, rows[i].limits));
        }
        const struct td_json *const ranges[] = {range};
        const struct td_replacement_input input = {
            .template = vertical_tree(&arena, rows[i].template),
            .pod = &pod,
            .vpa = &vpa,
            .limits = &limits,
            .limit_objects = {.items = ranges, .count = rows[i].limits != NULL},
            .gates = {.pod_level_resources = rows[i].gate},
        };
        td_str says = td_replacement_problem(&arena, &input);
        if (rows[i].says ? !strstr(says.ptr ? says.ptr : "", rows[i].says) : says.len > 0) {
            fail_msg("row %zu: %.*s", i, TD_STR_ARG(says));
        }
    }
}

#define EVENT(reason, at)                                                                          \
    "{\"reason\":\"" reason "\",\"message\":\"" reason " " at "\",\"lastTimestamp\":\"2026-01-01T" \
    "00:" at ":00Z\"}"
#define FAILING                                                                                    \
    "\"conditions\":[{\"type\":\"ReplicaFailure\",\"status\":\"True\",\"reason\":"                 \
    "\"FailedCreate\","                                                                            \
    "\"message\":\"no\"}]"

static void test_an_owner_that_cannot_make_pods_is_known_by_its_events(void **state)
{
    (void)state;
    static const struct {
        const char *owner;
        const char *events;
        const char *says; /* NULL: nothing */
    } rows[] = {
        {"{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":1," FAILING "}}", "[]",
         "its owner cannot create pods: no"},
        {"{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":1}}",
         "[" EVENT("SuccessfulCreate", "01") "," EVENT("FailedCreate", "02") "]",
         "its owner cannot create pods: FailedCreate 02"},
        {"{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":1}}",
         "[" EVENT("FailedCreate", "02") "," EVENT("SuccessfulCreate", "03") "]", NULL},
        {"{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":2}}",
         "[" EVENT("FailedCreate", "02") "]", NULL}, /* it has all of them */
        {"{\"status\":{\"desiredNumberScheduled\":3,\"currentNumberScheduled\":2}}",
         "[" EVENT("FailedCreate", "02") "]", "its owner cannot create pods: FailedCreate 02"},
        {"{\"spec\":{\"parallelism\":3},\"status\":{\"active\":2}}",
         "[" EVENT("FailedCreate", "02") "]", "its owner cannot create pods: FailedCreate 02"},
        {"{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":1}}", "[null,1,{}]", NULL},
        {"{\"spec\":{\"replicas\":2},\"status\":{\"replicas\":1,\"conditions\":[null]}}", "{}",
         NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        td_str says = td_owner_problem(&arena, vertical_tree(&arena, rows[i].owner),
                                       vertical_tree(&arena, rows[i].events));
        if (!td_str_equal(says, td_str_from(rows[i].says ? rows[i].says : ""))) {
            fail_msg("row %zu: %.*s", i, TD_STR_ARG(says));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_pod_is_judged_as_it_would_be_admitted),
        cmocka_unit_test(test_an_owner_that_cannot_make_pods_is_known_by_its_events),
    };
    return cmocka_run_group_tests_name("decide/replacement", tests, NULL, NULL);
}
