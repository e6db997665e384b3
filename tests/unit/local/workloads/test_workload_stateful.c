/* StatefulSets on a virtual clock: order, names, claims, revisions, with a node played by hand; and
 * the plan alone, as a table. */
#include "support/workload_bed.h"

#include "local/workloads/workload_stateful_plan.h"

#define DB STATEFULS "/db"
#define SET(replicas, rest, image)                                                                 \
    "{\"metadata\":{\"name\":\"db\"},\"spec\":{\"serviceName\":\"db\",\"replicas\":" replicas rest \
    ",\"selector\":{\"matchLabels\":{\"app\":\"db\"}}," TEMPLATE_OF("{\"app\":\"db\"}",            \
                                                                    image) "}}"
#define IMAGE(image)                                                                               \
    "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"" image        \
    "\"}]}}}}"
#define CLAIMS                                                                                     \
    ",\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"data\"},\"spec\":{\"accessModes\":["     \
    "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}}]"

/* "db-0:a+ db-1:b-": name, image, ready or not, "x" when it is going. */
static const char *pods(struct bed *bed)
{
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    td_str after = TD_STR_EMPTY;
    const struct td_json *pod;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        const struct td_json *containers = td_json_get_path(pod, "spec.containers");
        td_str image =
            td_json_get_str(td_json_first_child(containers), TD_STR("image"), TD_STR_EMPTY);
        const char *mark = td_json_get_path(pod, "metadata.deletionTimestamp") ? "x"
                           : workload_is_ready(pod)                            ? "+"
                                                                               : "-";
        (void)td_buf_append_format(&text, "%s%.*s:%.*s%s", text.len > 0 ? " " : "",
                                   TD_STR_ARG(after), TD_STR_ARG(image), mark);
    }
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

static void test_stateful_set_comes_in_order(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", STATEFULS, NULL, SET("3", "", "a"), 201);
    assert_string_equal(pods(bed), "db-0:a-");
    workload_settle(bed, 60);
    assert_string_equal(pods(bed), "db-0:a-");
    workload_node(bed, 1);
    assert_string_equal(pods(bed), "db-0:a+ db-1:a-");
    workload_node(bed, 1);
    workload_node(bed, 1);
    assert_string_equal(pods(bed), "db-0:a+ db-1:a+ db-2:a+");
    assert_string_equal(workload_get(bed, DB, "status.replicas"), "3");
    assert_string_equal(workload_get(bed, DB, "status.readyReplicas"), "3");
    assert_string_equal(workload_get(bed, DB, "status.availableReplicas"), "3");
    assert_string_equal(workload_get(bed, DB, "status.currentReplicas"), "3");
    assert_string_equal(workload_get(bed, DB, "status.updatedReplicas"), "3");
    assert_string_equal(workload_get(bed, DB, "status.collisionCount"), "0");
    assert_string_equal(workload_get(bed, PODS "/db-1", "spec.hostname"), "db-1");
    assert_string_equal(workload_get(bed, PODS "/db-1", "spec.subdomain"), "db");
    assert_non_null(strstr(workload_get(bed, PODS "/db-1", "metadata.labels"),
                           "\"apps.kubernetes.io/pod-index\":\"1\""));
    assert_non_null(strstr(workload_get(bed, PODS "/db-1", "metadata.labels"),
                           "\"statefulset.kubernetes.io/pod-name\":\"db-1\""));
    assert_string_equal(workload_events(bed, "db", "SuccessfulCreate"),
                        "Create Pod db-0 in StatefulSet db successful; Create Pod db-1 in "
                        "StatefulSet db successful; Create Pod db-2 in StatefulSet db successful");
    /* The last one goes first, one at a time. */
    workload_do(bed, "PATCH", DB, MERGE, "{\"spec\":{\"replicas\":1}}", 200);
    assert_string_equal(pods(bed), "db-0:a+ db-1:a+ db-2:ax");
    workload_node(bed, 0);
    assert_string_equal(pods(bed), "db-0:a+ db-1:ax");
    workload_node(bed, 0);
    assert_string_equal(pods(bed), "db-0:a+");
    assert_string_equal(workload_events(bed, "db", "SuccessfulDelete"),
                        "Delete Pod db-1 in StatefulSet db successful; Delete Pod db-2 in "
                        "StatefulSet db successful");
}

static void test_stateful_set_comes_at_once_when_parallel(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", STATEFULS, NULL,
                SET("3", ",\"podManagementPolicy\":\"Parallel\"", "a"), 201);
    assert_string_equal(pods(bed), "db-0:a- db-1:a- db-2:a-");
    workload_node(bed, 9);
    workload_do(bed, "PATCH", DB, MERGE, "{\"spec\":{\"replicas\":0}}", 200);
    assert_string_equal(pods(bed), "db-0:ax db-1:ax db-2:ax");
}

static void test_stateful_set_rolls_from_the_top(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", STATEFULS, NULL, SET("3", "", "a"), 201);
    for (int i = 0; i < 3; i++) {
        workload_node(bed, 1);
    }
    const char *before = workload_get(bed, DB, "status.currentRevision");
    workload_do(bed, "PATCH", DB, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(pods(bed), "db-0:a+ db-1:a+ db-2:ax");
    workload_node(bed, 0);
    assert_string_equal(pods(bed), "db-0:a+ db-1:a+ db-2:b-");
    assert_string_equal(workload_get(bed, DB, "status.currentRevision"), before);
    workload_node(bed, 1);
    assert_string_equal(pods(bed), "db-0:a+ db-1:ax db-2:b+");
    for (int i = 0; i < 4; i++) {
        workload_node(bed, 1);
    }
    assert_string_equal(pods(bed), "db-0:b+ db-1:b+ db-2:b+");
    const char *after = workload_get(bed, DB, "status.currentRevision");
    assert_string_not_equal(after, before);
    assert_string_equal(workload_get(bed, DB, "status.updateRevision"), after);
    /* Back again: the first revision is found and becomes the newest. */
    workload_do(bed, "PATCH", DB, STRATEGIC, IMAGE("a"), 200);
    assert_string_equal(workload_get(bed, DB, "status.updateRevision"), before);
    td_str path = td_arena_format(
        &bed->arena, "/apis/apps/v1/namespaces/default/controllerrevisions/%s", before);
    assert_string_equal(workload_get(bed, path.ptr, "revision"), "3");
}

static void test_stateful_set_stops_at_its_partition(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", STATEFULS, NULL,
                SET("3", ",\"updateStrategy\":{\"rollingUpdate\":{\"partition\":2}}", "a"), 201);
    for (int i = 0; i < 3; i++) {
        workload_node(bed, 1);
    }
    workload_do(bed, "PATCH", DB, STRATEGIC, IMAGE("b"), 200);
    for (int i = 0; i < 4; i++) {
        workload_node(bed, 1);
    }
    assert_string_equal(pods(bed), "db-0:a+ db-1:a+ db-2:b+");
    assert_string_equal(workload_get(bed, DB, "status.currentReplicas"), "2");
    assert_string_equal(workload_get(bed, DB, "status.updatedReplicas"), "1");
    /* One below it comes back as it was. */
    workload_do(bed, "DELETE", PODS "/db-0?gracePeriodSeconds=0", NULL, NULL, 200);
    assert_string_equal(pods(bed), "db-0:a- db-1:a+ db-2:b+");
}

static void test_stateful_set_leaves_pods_alone_on_delete(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", STATEFULS, NULL,
                SET("1", ",\"updateStrategy\":{\"type\":\"OnDelete\"}", "a"), 201);
    workload_node(bed, 1);
    workload_do(bed, "PATCH", DB, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(pods(bed), "db-0:a+");
    workload_do(bed, "DELETE", PODS "/db-0?gracePeriodSeconds=0", NULL, NULL, 200);
    assert_string_equal(pods(bed), "db-0:b-");
}

static void test_stateful_set_makes_claims_that_stay(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", STATEFULS, NULL, SET("1", CLAIMS, "a"), 201);
    static const char *const claim = "/api/v1/namespaces/default/persistentvolumeclaims/data-db-0";
    assert_string_equal(workload_get(bed, claim, "status.phase"), "Bound");
    assert_string_equal(workload_get(bed, claim, "status.capacity.storage"), "1Gi");
    assert_string_equal(workload_get(bed, claim, "metadata.labels.app"), "db");
    assert_non_null(
        strstr(workload_get(bed, PODS "/db-0", "spec.volumes"), "{\"claimName\":\"data-db-0\"}"));
    workload_do(bed, "DELETE", DB, NULL, NULL, 200);
    assert_string_equal(pods(bed), "");
    assert_string_equal(workload_get(bed, claim, "status.phase"), "Bound");
}

static void test_stateful_set_makes_claims_that_go(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", STATEFULS, NULL,
                SET("2",
                    CLAIMS ",\"persistentVolumeClaimRetentionPolicy\":{\"whenScaled\":\"Delete\","
                           "\"whenDeleted\":\"Delete\"}",
                    "a"),
                201);
    workload_node(bed, 1);
    workload_node(bed, 1);
    static const char *const first = "/api/v1/namespaces/default/persistentvolumeclaims/data-db-0";
    static const char *const second = "/api/v1/namespaces/default/persistentvolumeclaims/data-db-1";
    assert_string_equal(workload_get(bed, second, "status.phase"), "Bound");
    workload_do(bed, "PATCH", DB, MERGE, "{\"spec\":{\"replicas\":1}}", 200);
    workload_node(bed, 0);
    assert_string_equal(workload_get(bed, second, "status.phase"), "gone");
    assert_string_equal(workload_get(bed, first, "status.phase"), "Bound");
    workload_do(bed, "DELETE", DB, NULL, NULL, 200);
    assert_string_equal(workload_get(bed, first, "status.phase"), "gone");
}

/* One letter a pod: "." missing, "+" well, "-" not ready, "x" going, "!" finished, "o" well but of
 * an old template. */
static struct td_stateful_slot slot(char letter)
{
    return (struct td_stateful_slot){
        .exists = letter != '.',
        .is_finished = letter == '!',
        .is_terminating = letter == 'x',
        .is_ready = letter == '+' || letter == 'o',
        .is_available = letter == '+' || letter == 'o',
        .revision = letter == 'o' ? TD_STR("old") : TD_STR("new"),
    };
}

static void test_stateful_plan(void **state)
{
    (void)state;
    static const struct {
        const char *replicas;
        const char *condemned; /* the highest first */
        bool is_parallel;
        bool is_on_delete;
        int64_t partition;
        const char *steps; /* c: create, d: delete, k: condemn, each with its index */
    } rows[] = {
        {"", "", false, false, 0, ""},           {"...", "", false, false, 0, "c0"},
        {"...", "", true, false, 0, "c0 c1 c2"}, {"+-.", "", false, false, 0, ""},
        {"+-.", "", true, false, 0, "c2"},       {"+x.", "", false, false, 0, ""},
        {"+!+", "", false, false, 0, "d1"},      {"+!.", "", true, false, 0, "d1 c2"},
        {"++", "++", false, false, 0, "k0"},     {"++", "++", true, false, 0, "k0 k1"},
        {"++", "x+", false, false, 0, ""},       {"++", "x+", true, false, 0, "k1"},
        {"++", "-+", false, false, 0, "k0"},     {"++", "--", false, false, 0, ""},
        {"+-", "+", false, false, 0, ""},        {"ooo", "", false, false, 0, "d2"},
        {"oo+", "", false, false, 0, "d1"},      {"oo-", "", false, false, 0, ""},
        {"ooo", "", false, false, 2, "d2"},      {"oo+", "", false, false, 2, ""},
        {"ooo", "", false, false, 9, ""},        {"ooo", "", false, true, 0, ""},
        {"oo.", "", true, false, 0, "c2"},       {"ooo", "o", false, false, 0, "k0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_stateful_slot replicas[8];
        struct td_stateful_slot condemned[8];
        struct td_stateful_step steps[17];
        struct td_stateful_set set = {
            .is_parallel = rows[i].is_parallel,
            .is_on_delete = rows[i].is_on_delete,
            .partition = rows[i].partition,
            .update_revision = TD_STR("new"),
            .replicas = replicas,
            .replica_count = strlen(rows[i].replicas),
            .condemned = condemned,
            .condemned_count = strlen(rows[i].condemned),
        };
        for (size_t k = 0; k < set.replica_count; k++) {
            replicas[k] = slot(rows[i].replicas[k]);
        }
        for (size_t k = 0; k < set.condemned_count; k++) {
            condemned[k] = slot(rows[i].condemned[k]);
        }
        size_t count = td_stateful_decide(&set, steps);
        char text[64] = "";
        size_t len = 0;
        for (size_t k = 0; k < count; k++) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%c%zu", k > 0 ? " " : "",
                                    "cdk"[steps[k].action], steps[k].index);
        }
        if (strcmp(text, rows[i].steps) != 0) {
            print_message("row %zu: %s / %s\n", i, rows[i].replicas, rows[i].condemned);
        }
        assert_string_equal(text, rows[i].steps);
    }
}

int main(void)
{
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, workload_setup, workload_teardown)
    const struct CMUnitTest tests[] = {
        BED_TEST(test_stateful_set_comes_in_order),
        BED_TEST(test_stateful_set_comes_at_once_when_parallel),
        BED_TEST(test_stateful_set_rolls_from_the_top),
        BED_TEST(test_stateful_set_stops_at_its_partition),
        BED_TEST(test_stateful_set_leaves_pods_alone_on_delete),
        BED_TEST(test_stateful_set_makes_claims_that_stay),
        BED_TEST(test_stateful_set_makes_claims_that_go),
        cmocka_unit_test(test_stateful_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
