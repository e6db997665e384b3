/* Deployments and their ReplicaSets on a virtual clock: sequences of pods, conditions and events,
 * with a node that is played by hand. */
#include "support/workload_bed.h"

#define WEB DEPLOYMENTS "/web"
#define DEPLOYMENT(replicas, rest, image)                                                          \
    "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":" replicas rest                       \
    ",\"selector\":{\"matchLabels\":{\"app\":\"web\"}}," TEMPLATE_OF("{\"app\":\"web\"}",          \
                                                                     image) "}}"
#define IMAGE(image)                                                                               \
    "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"" image        \
    "\"}]}}}}"

/* "3/2,0/1": asked for and available of each set, the oldest first. */
static const char *sets(struct bed *bed)
{
    const struct td_collection *all = td_store_find(bed->store, TD_STR("replicasets.apps"));
    const char *texts[16] = {NULL};
    struct td_collection_iter iter;
    const struct td_stored *stored;
    iter = td_collection_walk(all, TD_STR_EMPTY);
    while ((stored = td_collection_iter_next(&iter))) {
        struct td_json *set;
        assert_int_equal(td_json_parse(&bed->arena, td_arena_copy_str(&bed->arena, stored->json),
                                       NULL, &set, NULL),
                         TD_OK);
        int64_t revision = 0;
        assert_true(td_str_to_int64(td_json_get_str(td_json_get_path(set, "metadata.annotations"),
                                                    TD_STR("deployment.kubernetes.io/revision"),
                                                    TD_STR_EMPTY),
                                    &revision));
        const struct td_json *status = td_json_get(set, TD_STR("status"));
        texts[revision] =
            td_arena_format(
                &bed->arena, "%d:%d/%d", (int)revision,
                (int)td_json_get_int64(td_json_get(set, TD_STR("spec")), TD_STR("replicas"), -1),
                (int)td_json_get_int64(status, TD_STR("availableReplicas"), 0))
                .ptr;
    }
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    for (size_t i = 0; i < 16; i++) {
        (void)td_buf_append_format(&text, "%s%s", text.len > 0 && texts[i] ? " " : "",
                                   texts[i] ? texts[i] : "");
    }
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

static void test_deployment_brings_up_its_pods(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("3", "", "a"), 201);
    assert_string_equal(workload_count(bed), "3 pods, 0 ready, 0 going");
    assert_string_equal(workload_get(bed, WEB, "status.replicas"), "3");
    assert_string_equal(workload_get(bed, WEB, "status.unavailableReplicas"), "3");
    assert_string_equal(workload_get(bed, WEB, "status.observedGeneration"), "1");
    assert_string_equal(workload_condition(bed, WEB, "Available"),
                        "MinimumReplicasUnavailable=False");
    assert_string_equal(workload_condition(bed, WEB, "Progressing"), "ReplicaSetUpdated=True");
    workload_node(bed, 3);
    assert_string_equal(workload_get(bed, WEB, "status.readyReplicas"), "3");
    assert_string_equal(workload_get(bed, WEB, "status.availableReplicas"), "3");
    assert_string_equal(workload_get(bed, WEB, "status.updatedReplicas"), "3");
    assert_string_equal(workload_condition(bed, WEB, "Available"), "MinimumReplicasAvailable=True");
    assert_string_equal(workload_condition(bed, WEB, "Progressing"), "NewReplicaSetAvailable=True");
    assert_string_equal(sets(bed), "1:3/3");
}

/* A quarter more, a quarter less, each step when the pods of the one before are there. */
static void test_deployment_rolls_in_steps(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("4", "", "a"), 201);
    workload_node(bed, 4);
    workload_do(bed, "PATCH", WEB, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(sets(bed), "1:3/3 2:2/0");
    assert_string_equal(workload_count(bed), "6 pods, 3 ready, 1 going");
    workload_node(bed, 1);
    assert_string_equal(sets(bed), "1:2/2 2:3/1");
    workload_node(bed, 2);
    assert_string_equal(sets(bed), "1:0/0 2:4/3");
    workload_node(bed, 9);
    assert_string_equal(sets(bed), "1:0/0 2:4/4");
    workload_node(bed, 9);
    assert_string_equal(workload_count(bed), "4 pods, 4 ready, 0 going");
    assert_string_equal(workload_condition(bed, WEB, "Progressing"), "NewReplicaSetAvailable=True");
    /* Back to the first template: its set is found again, under a new revision. */
    workload_do(bed, "PATCH", WEB, STRATEGIC, IMAGE("a"), 200);
    for (int i = 0; i < 6; i++) {
        workload_node(bed, 9);
    }
    assert_string_equal(sets(bed), "2:0/0 3:4/4");
    assert_string_equal(workload_get(bed, WEB, "metadata.annotations"),
                        "{\"deployment.kubernetes.io/revision\":\"3\"}");
}

static void test_deployment_scales_and_pauses(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("2", "", "a"), 201);
    workload_node(bed, 9);
    workload_do(bed, "PATCH", WEB, MERGE, "{\"spec\":{\"replicas\":5}}", 200);
    workload_node(bed, 9);
    assert_string_equal(sets(bed), "1:5/5");
    workload_do(bed, "PATCH", WEB, MERGE, "{\"spec\":{\"paused\":true}}", 200);
    assert_string_equal(workload_condition(bed, WEB, "Progressing"), "DeploymentPaused=Unknown");
    workload_do(bed, "PATCH", WEB, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(sets(bed), "1:5/5");
    workload_do(bed, "PATCH", WEB, MERGE, "{\"spec\":{\"replicas\":1}}", 200);
    workload_node(bed, 9);
    assert_string_equal(sets(bed), "1:1/1");
    workload_do(bed, "PATCH", WEB, MERGE, "{\"spec\":{\"paused\":null}}", 200);
    for (int i = 0; i < 3; i++) {
        workload_node(bed, 9);
    }
    assert_string_equal(sets(bed), "1:0/0 2:1/1");
    assert_string_equal(workload_condition(bed, WEB, "Progressing"), "NewReplicaSetAvailable=True");
}

/* In the middle of a rollout each set grows by its share. */
static void test_deployment_scales_in_proportion(void **state)
{
    struct bed *bed = *state;
    workload_do(
        bed, "POST", DEPLOYMENTS, NULL,
        DEPLOYMENT("10", ",\"strategy\":{\"rollingUpdate\":{\"maxSurge\":3,\"maxUnavailable\":2}}",
                   "a"),
        201);
    workload_node(bed, 99);
    workload_do(bed, "PATCH", WEB, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(sets(bed), "1:8/8 2:5/0");
    workload_do(bed, "PATCH", WEB, MERGE, "{\"spec\":{\"replicas\":15}}", 200);
    assert_string_equal(sets(bed), "1:11/8 2:7/0");
}

static void test_deployment_recreates(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", DEPLOYMENTS, NULL,
                DEPLOYMENT("2", ",\"strategy\":{\"type\":\"Recreate\"}", "a"), 201);
    workload_node(bed, 9);
    workload_do(bed, "PATCH", WEB, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(workload_count(bed), "2 pods, 0 ready, 2 going");
    assert_string_equal(sets(bed), "1:0/0");
    workload_node(bed, 0);
    assert_string_equal(workload_count(bed), "2 pods, 0 ready, 0 going");
    workload_node(bed, 9);
    assert_string_equal(sets(bed), "1:0/0 2:2/2");
}

static void test_deployment_reports_a_missed_deadline(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", DEPLOYMENTS, NULL,
                DEPLOYMENT("1", ",\"progressDeadlineSeconds\":60", "a"), 201);
    workload_settle(bed, 58);
    assert_string_equal(workload_condition(bed, WEB, "Progressing"), "ReplicaSetUpdated=True");
    workload_settle(bed, 5);
    assert_string_equal(workload_condition(bed, WEB, "Progressing"),
                        "ProgressDeadlineExceeded=False");
    workload_node(bed, 9);
    assert_string_equal(workload_condition(bed, WEB, "Progressing"), "NewReplicaSetAvailable=True");
}

static void test_deployment_keeps_a_bounded_history(void **state)
{
    struct bed *bed = *state;
    static const char *const images[] = {IMAGE("b"), IMAGE("c"), IMAGE("d")};
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("1", ",\"revisionHistoryLimit\":1", "a"),
                201);
    for (size_t i = 0; i < 3; i++) {
        workload_node(bed, 9);
        workload_node(bed, 9);
        workload_do(bed, "PATCH", WEB, STRATEGIC, images[i], 200);
    }
    for (int i = 0; i < 4; i++) {
        workload_node(bed, 9);
    }
    assert_string_equal(sets(bed), "3:0/0 4:1/1");
}

static void test_deployment_waits_until_pods_stay_ready(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("2", ",\"minReadySeconds\":10", "a"),
                201);
    workload_node(bed, 9);
    assert_string_equal(workload_get(bed, WEB, "status.readyReplicas"), "2");
    assert_string_equal(workload_get(bed, WEB, "status.availableReplicas"), "nothing");
    workload_settle(bed, 9);
    assert_string_equal(workload_get(bed, WEB, "status.availableReplicas"), "nothing");
    workload_settle(bed, 1);
    assert_string_equal(workload_get(bed, WEB, "status.availableReplicas"), "2");
}

static void test_deployment_goes_with_all_it_owns(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("2", "", "a"), 201);
    workload_do(bed, "DELETE", WEB, NULL, "{\"propagationPolicy\":\"Background\"}", 200);
    assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
    assert_string_equal(sets(bed), "");
    /* Orphaned sets are taken over by the next Deployment that selects them. */
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("2", "", "a"), 201);
    workload_do(bed, "DELETE", WEB "?propagationPolicy=Orphan", NULL, NULL, 200);
    assert_string_equal(sets(bed), "1:2/0");
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("3", "", "a"), 201);
    assert_string_equal(sets(bed), "1:3/0");
    assert_string_equal(workload_count(bed), "3 pods, 0 ready, 0 going");
}

static void test_deployment_tells_what_it_does(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", DEPLOYMENTS, NULL, DEPLOYMENT("2", "", "a"), 201);
    const struct td_json *pod = workload_next_pod(bed, TD_STR_EMPTY);
    const struct td_json *owners = td_json_get_path(pod, "metadata.ownerReferences");
    td_str set = td_json_get_str(td_json_first_child(owners), TD_STR("name"), TD_STR_EMPTY);
    td_str text =
        td_arena_format(&bed->arena, "Scaled up replica set %.*s from 0 to 2", TD_STR_ARG(set));
    assert_string_equal(workload_events(bed, "web", "ScalingReplicaSet"), text.ptr);
    assert_true(td_str_starts_with(workload_name(pod), set));
    td_str label = td_json_get_str(td_json_get_path(pod, "metadata.labels"),
                                   TD_STR("pod-template-hash"), TD_STR_EMPTY);
    assert_true(td_str_ends_with(set, label));
    assert_true(label.len > 0);
    td_str created =
        td_arena_format(&bed->arena, "Created pod: %.*s", TD_STR_ARG(workload_name(pod)));
    const char *all =
        workload_events(bed, td_arena_copy_str(&bed->arena, set).ptr, "SuccessfulCreate");
    assert_non_null(strstr(all, created.ptr));
}

int main(void)
{
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, workload_setup, workload_teardown)
    const struct CMUnitTest tests[] = {
        BED_TEST(test_deployment_brings_up_its_pods),
        BED_TEST(test_deployment_rolls_in_steps),
        BED_TEST(test_deployment_scales_and_pauses),
        BED_TEST(test_deployment_scales_in_proportion),
        BED_TEST(test_deployment_recreates),
        BED_TEST(test_deployment_reports_a_missed_deadline),
        BED_TEST(test_deployment_keeps_a_bounded_history),
        BED_TEST(test_deployment_waits_until_pods_stay_ready),
        BED_TEST(test_deployment_goes_with_all_it_owns),
        BED_TEST(test_deployment_tells_what_it_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
