/* ReplicaSets and ReplicationControllers on a virtual clock: adoption and release, who goes first,
 * refusals; and the order of going as a table. */
#include "support/workload_bed.h"

#include "local/workloads/workload_rank.h"

#define RS SETS "/rs"
#define SET(replicas)                                                                              \
    "{\"metadata\":{\"name\":\"rs\"},\"spec\":{\"replicas\":" replicas                             \
    ",\"selector\":{\"matchLabels\":{\"app\":\"x\"}}," TEMPLATE_OF("{\"app\":\"x\"}", "i") "}}"
#define POD(name, app)                                                                             \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"app\":\"" app                              \
    "\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"

static void test_replica_set_adopts_and_releases(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", PODS, NULL, POD("mine", "x"), 201);
    workload_do(bed, "POST", PODS, NULL, POD("other", "y"), 201);
    workload_do(bed, "POST", SETS, NULL, SET("2"), 201);
    assert_string_equal(workload_count(bed), "3 pods, 0 ready, 0 going");
    assert_non_null(strstr(workload_get(bed, PODS "/mine", "metadata.ownerReferences"),
                           "\"kind\":\"ReplicaSet\",\"name\":\"rs\""));
    assert_string_equal(workload_get(bed, PODS "/other", "metadata.ownerReferences"), "nothing");
    /* A label that no longer matches lets it go, and another one comes. */
    workload_do(bed, "PATCH", PODS "/mine", MERGE, "{\"metadata\":{\"labels\":{\"app\":\"z\"}}}",
                200);
    assert_string_equal(workload_get(bed, PODS "/mine", "metadata.ownerReferences"), "nothing");
    assert_string_equal(workload_count(bed), "4 pods, 0 ready, 0 going");
    assert_string_equal(workload_get(bed, RS, "status.replicas"), "2");
    /* One that comes to match is one too many: the youngest that is not ready goes. */
    workload_node(bed, 9);
    workload_do(bed, "PATCH", PODS "/other", MERGE, "{\"metadata\":{\"labels\":{\"app\":\"x\"}}}",
                200);
    assert_string_equal(workload_get(bed, RS, "status.replicas"), "2");
    assert_string_equal(workload_get(bed, RS, "status.fullyLabeledReplicas"), "2");
    assert_string_equal(workload_get(bed, RS, "status.terminatingReplicas"), "1");
}

static void test_replica_set_replaces_pods(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", SETS, NULL, SET("3"), 201);
    workload_node(bed, 3);
    const struct td_json *pod = workload_next_pod(bed, TD_STR_EMPTY);
    td_str path = td_arena_format(&bed->arena, PODS "/%.*s", TD_STR_ARG(workload_name(pod)));
    workload_do(bed, "DELETE", path.ptr, NULL, NULL, 200);
    assert_string_equal(workload_count(bed), "4 pods, 2 ready, 1 going");
    workload_node(bed, 9);
    assert_string_equal(workload_get(bed, RS, "status.availableReplicas"), "3");
    workload_do(bed, "PATCH", RS, MERGE, "{\"spec\":{\"replicas\":0}}", 200);
    workload_node(bed, 0);
    assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
    assert_string_equal(workload_get(bed, RS, "status.replicas"), "0");
    assert_string_equal(workload_get(bed, RS, "status.observedGeneration"), "2");
}

/* A pod that the server refuses: one attempt at a time, a condition, and an end when it may. */
static void test_replica_set_reports_refusals(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", SETS, NULL,
                "{\"metadata\":{\"name\":\"rs\"},\"spec\":{\"replicas\":5,\"selector\":{"
                "\"matchLabels\":{\"app\":\"x\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":"
                "\"x\"}},\"spec\":{\"serviceAccountName\":\"absent\",\"priorityClassName\":\"p\","
                "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
                201);
    assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
    assert_string_equal(workload_condition(bed, RS, "ReplicaFailure"), "FailedCreate=True");
    assert_non_null(strstr(workload_events(bed, "rs", "FailedCreate"), "Error creating: "));
    workload_do(bed, "PATCH", RS, MERGE, "{\"spec\":{\"replicas\":0}}", 200);
    assert_string_equal(workload_condition(bed, RS, "ReplicaFailure"), "none");
}

static void test_replication_controller_works_alike(void **state)
{
    struct bed *bed = *state;
    static const char *const path = "/api/v1/namespaces/default/replicationcontrollers";
    workload_do(bed, "POST", path, NULL,
                "{\"metadata\":{\"name\":\"rc\"},\"spec\":{\"replicas\":2,\"selector\":{\"app\":"
                "\"x\"}," TEMPLATE_OF("{\"app\":\"x\"}", "i") "}}",
                201);
    workload_node(bed, 9);
    static const char *const rc = "/api/v1/namespaces/default/replicationcontrollers/rc";
    static const char *const paths[] = {
        "status.replicas",
        "status.fullyLabeledReplicas",
        "status.readyReplicas",
        "status.availableReplicas",
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_string_equal(workload_get(bed, rc, paths[i]), "2");
    }
    assert_string_equal(workload_get(bed, rc, "status.observedGeneration"), "1");
    assert_string_equal(workload_get(bed, rc, "status.terminatingReplicas"), "nothing");
}

/* The first of two goes first. Ages in seconds; 0 is now. */
struct rank_row {
    const char *node;
    enum td_pod_phase phase;
    int ready_age; /* -1: not ready */
    int cost;
    size_t neighbours;
    int restarts;
    int age;
    const char *uid;
};

static void test_rank(void **state)
{
    (void)state;
    static const struct rank_row rows[][2] = {
        {{"", TD_POD_PENDING, -1, 9, 0, 0, 9, "b"}, {"n", TD_POD_PENDING, -1, 0, 9, 0, 1, "a"}},
        {{"n", TD_POD_PENDING, -1, 0, 0, 0, 9, "b"}, {"n", TD_POD_RUNNING, -1, 0, 0, 0, 1, "a"}},
        {{"n", TD_POD_PHASE_UNKNOWN, -1, 0, 0, 0, 9, "b"},
         {"n", TD_POD_RUNNING, -1, 0, 0, 0, 1, "a"}},
        {{"n", TD_POD_RUNNING, -1, 9, 0, 0, 9, "b"}, {"n", TD_POD_RUNNING, 1, 0, 0, 0, 9, "a"}},
        {{"n", TD_POD_RUNNING, 9, -5, 0, 0, 9, "b"}, {"n", TD_POD_RUNNING, 1, 0, 9, 0, 9, "a"}},
        {{"n", TD_POD_RUNNING, 9, 0, 2, 0, 9, "b"}, {"m", TD_POD_RUNNING, 1, 0, 1, 0, 9, "a"}},
        {{"n", TD_POD_RUNNING, 1, 0, 0, 0, 9, "b"}, {"n", TD_POD_RUNNING, 100, 0, 0, 9, 9, "a"}},
        {{"n", TD_POD_RUNNING, 100, 0, 0, 0, 9, "a"}, {"n", TD_POD_RUNNING, 101, 0, 0, 9, 9, "b"}},
        {{"n", TD_POD_RUNNING, 101, 0, 0, 0, 9, "a"}, {"n", TD_POD_RUNNING, 100, 0, 0, 9, 9, "b"}},
        {{"n", TD_POD_RUNNING, 5, 0, 0, 3, 9, "b"}, {"n", TD_POD_RUNNING, 5, 0, 0, 2, 1, "a"}},
        {{"n", TD_POD_RUNNING, -1, 0, 0, 0, 1, "b"}, {"n", TD_POD_RUNNING, -1, 0, 0, 0, 99, "a"}},
        {{"n", TD_POD_RUNNING, -1, 0, 0, 0, 5, "a"}, {"n", TD_POD_RUNNING, -1, 0, 0, 0, 5, "b"}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_rank_pod pods[2];
        for (size_t k = 0; k < 2; k++) {
            const struct rank_row *row = &rows[i][1 - k];
            pods[k] = (struct td_rank_pod){
                .index = 1 - k,
                .node = td_str_from(row->node),
                .phase = row->phase,
                .is_ready = row->ready_age >= 0,
                .deletion_cost = row->cost,
                .neighbours = row->neighbours,
                .ready_since =
                    row->ready_age >= 0 ? (1000 - row->ready_age) * TD_SECOND : TD_TIME_NONE,
                .restarts = row->restarts,
                .created = (1000 - row->age) * TD_SECOND,
                .uid = td_str_from(row->uid),
            };
        }
        td_rank_sort(pods, 2, 1000 * TD_SECOND);
        if (pods[0].index != 0) {
            print_message("row %zu\n", i);
        }
        assert_int_equal(pods[0].index, 0);
    }
    td_rank_sort(NULL, 0, 0);
}

int main(void)
{
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, workload_setup, workload_teardown)
    const struct CMUnitTest tests[] = {
        BED_TEST(test_replica_set_adopts_and_releases),
        BED_TEST(test_replica_set_replaces_pods),
        BED_TEST(test_replica_set_reports_refusals),
        BED_TEST(test_replication_controller_works_alike),
        cmocka_unit_test(test_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
