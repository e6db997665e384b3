/* DaemonSets on a virtual clock: which nodes get a pod, how templates roll, with a node played by
 * hand; and what fits a node, as a table. */
#include "support/workload_bed.h"

#include "local/nodes/node_fit.h"

#define AGENT DAEMONS "/agent"
#define DAEMON(rest, pod, image)                                                                   \
    "{\"metadata\":{\"name\":\"agent\"},\"spec\":{\"selector\":{\"matchLabels\":{\"app\":"         \
    "\"agent\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"agent\"}},\"spec\":{"           \
    "\"containers\":[{\"name\":\"c\",\"image\":\"" image "\"}]" pod "}}" rest "}}"
#define NODE(name, labels, spec)                                                                   \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{" labels "}},\"spec\":{" spec "}}"
#define IMAGE(image)                                                                               \
    "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"" image        \
    "\"}]}}}}"

/* "n1:a+ n2:a-": node, image, ready or not, "x" when it is going; in the order of nodes. */
static const char *pods(struct bed *bed)
{
    td_str texts[32];
    size_t count = 0;
    td_str after = TD_STR_EMPTY;
    const struct td_json *pod;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        const struct td_json *containers = td_json_get_path(pod, "spec.containers");
        td_str image =
            td_json_get_str(td_json_first_child(containers), TD_STR("image"), TD_STR_EMPTY);
        const struct td_json *terms = td_json_get_path(
            pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
                 "nodeSelectorTerms");
        const struct td_json *fields =
            td_json_get(td_json_first_child(terms), TD_STR("matchFields"));
        td_str node =
            td_json_first_child(td_json_get(td_json_first_child(fields), TD_STR("values")))->text;
        const char *mark = td_json_get_path(pod, "metadata.deletionTimestamp") ? "x"
                           : workload_is_ready(pod)                            ? "+"
                                                                               : "-";
        texts[count++] =
            td_arena_format(&bed->arena, "%.*s:%.*s%s", TD_STR_ARG(node), TD_STR_ARG(image), mark);
    }
    qsort(texts, count, sizeof(texts[0]), td_str_compare_items);
    td_auto_buf text;
    td_buf_init(&text, BED_BODY_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)td_buf_append_format(&text, "%s%.*s", i > 0 ? " " : "", TD_STR_ARG(texts[i]));
    }
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

/* A pod goes where its affinity says, then becomes ready. */
static void place(struct bed *bed)
{
    td_str after = TD_STR_EMPTY;
    struct td_json *pod;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        struct td_json *spec = td_json_get(pod, TD_STR("spec"));
        const struct td_json *terms = td_json_get_path(
            pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
                 "nodeSelectorTerms");
        const struct td_json *fields =
            td_json_get(td_json_first_child(terms), TD_STR("matchFields"));
        td_json_set_str(
            &bed->arena, spec, TD_STR("nodeName"),
            td_json_first_child(td_json_get(td_json_first_child(fields), TD_STR("values")))->text);
        assert_int_equal(td_edit_put(bed->api, workload_pods(bed), &bed->arena, pod, NULL), TD_OK);
    }
    workload_node(bed, 99);
}

static void test_daemon_set_is_on_every_node(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", NODES, NULL, NODE("n1", "", ""), 201);
    workload_do(bed, "POST", DAEMONS, NULL, DAEMON("", "", "a"), 201);
    assert_string_equal(pods(bed), "n1:a-");
    workload_do(bed, "POST", NODES, NULL, NODE("n2", "", ""), 201);
    assert_string_equal(pods(bed), "n1:a- n2:a-");
    assert_string_equal(workload_get(bed, AGENT, "status.desiredNumberScheduled"), "2");
    assert_string_equal(workload_get(bed, AGENT, "status.numberReady"), "0");
    assert_string_equal(workload_get(bed, AGENT, "status.numberUnavailable"), "2");
    place(bed);
    assert_string_equal(workload_get(bed, AGENT, "status.numberReady"), "2");
    assert_string_equal(workload_get(bed, AGENT, "status.numberAvailable"), "2");
    assert_string_equal(workload_get(bed, AGENT, "status.updatedNumberScheduled"), "2");
    assert_string_equal(workload_get(bed, AGENT, "status.currentNumberScheduled"), "2");
    assert_string_equal(workload_get(bed, AGENT, "status.observedGeneration"), "1");
    /* One that is deleted comes back on its node. */
    const struct td_json *pod = workload_next_pod(bed, TD_STR_EMPTY);
    td_str path = td_arena_format(&bed->arena, PODS "/%.*s?gracePeriodSeconds=0",
                                  TD_STR_ARG(workload_name(pod)));
    workload_do(bed, "DELETE", path.ptr, NULL, NULL, 200);
    assert_string_equal(workload_get(bed, AGENT, "status.numberReady"), "1");
    place(bed);
    assert_string_equal(pods(bed), "n1:a+ n2:a+");
}

static void test_daemon_set_follows_labels_and_taints(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", NODES, NULL, NODE("n1", "\"disk\":\"fast\"", ""), 201);
    workload_do(bed, "POST", NODES, NULL, NODE("n2", "", ""), 201);
    workload_do(bed, "POST", DAEMONS, NULL,
                DAEMON("", ",\"nodeSelector\":{\"disk\":\"fast\"}", "a"), 201);
    assert_string_equal(pods(bed), "n1:a-");
    place(bed);
    workload_do(bed, "PATCH", NODES "/n2", MERGE, "{\"metadata\":{\"labels\":{\"disk\":\"fast\"}}}",
                200);
    assert_string_equal(pods(bed), "n1:a+ n2:a-");
    place(bed);
    /* A taint keeps new pods away, and only NoExecute sends old ones off. */
    workload_do(bed, "PATCH", NODES "/n1", MERGE,
                "{\"spec\":{\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]}}", 200);
    assert_string_equal(pods(bed), "n1:a+ n2:a+");
    assert_string_equal(workload_get(bed, AGENT, "status.desiredNumberScheduled"), "1");
    assert_string_equal(workload_get(bed, AGENT, "status.numberMisscheduled"), "1");
    workload_do(bed, "PATCH", NODES "/n1", MERGE,
                "{\"spec\":{\"taints\":[{\"key\":\"k\",\"effect\":\"NoExecute\"}]}}", 200);
    assert_string_equal(pods(bed), "n1:ax n2:a+");
}

static void test_daemon_set_rolls_node_by_node(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", NODES, NULL, NODE("n1", "", ""), 201);
    workload_do(bed, "POST", NODES, NULL, NODE("n2", "", ""), 201);
    workload_do(bed, "POST", NODES, NULL, NODE("n3", "", ""), 201);
    workload_do(bed, "POST", DAEMONS, NULL, DAEMON("", "", "a"), 201);
    place(bed);
    workload_do(bed, "PATCH", AGENT, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(pods(bed), "n1:ax n2:a+ n3:a+");
    workload_node(bed, 0);
    assert_string_equal(pods(bed), "n1:b- n2:a+ n3:a+");
    place(bed);
    assert_string_equal(pods(bed), "n1:b+ n2:ax n3:a+");
    for (int i = 0; i < 4; i++) {
        place(bed);
    }
    assert_string_equal(pods(bed), "n1:b+ n2:b+ n3:b+");
    assert_string_equal(workload_get(bed, AGENT, "status.updatedNumberScheduled"), "3");
}

static void test_daemon_set_surges(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", NODES, NULL, NODE("n1", "", ""), 201);
    workload_do(bed, "POST", NODES, NULL, NODE("n2", "", ""), 201);
    workload_do(bed, "POST", DAEMONS, NULL,
                DAEMON(",\"updateStrategy\":{\"rollingUpdate\":{\"maxSurge\":1,"
                       "\"maxUnavailable\":0}}",
                       "", "a"),
                201);
    place(bed);
    workload_do(bed, "PATCH", AGENT, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(pods(bed), "n1:a+ n1:b- n2:a+");
    place(bed);
    assert_string_equal(pods(bed), "n1:ax n1:b+ n2:a+ n2:b-");
    place(bed);
    place(bed);
    assert_string_equal(pods(bed), "n1:b+ n2:b+");
}

static void test_daemon_set_waits_for_deletion(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", NODES, NULL, NODE("n1", "", ""), 201);
    workload_do(bed, "POST", DAEMONS, NULL,
                DAEMON(",\"updateStrategy\":{\"type\":\"OnDelete\"}", "", "a"), 201);
    place(bed);
    workload_do(bed, "PATCH", AGENT, STRATEGIC, IMAGE("b"), 200);
    assert_string_equal(pods(bed), "n1:a+");
    assert_string_equal(workload_get(bed, AGENT, "status.updatedNumberScheduled"), "nothing");
    workload_do(bed, "DELETE", AGENT, NULL, NULL, 200);
    workload_node(bed, 0);
    assert_string_equal(pods(bed), "");
}

static void test_node_fit(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        bool fits;
    } affinity[] = {
        {"{}", true},
        {"{\"nodeSelector\":{\"a\":\"1\"}}", true},
        {"{\"nodeSelector\":{\"a\":\"2\"}}", false},
        {"{\"nodeSelector\":{\"b\":\"1\"}}", false},
#define TERM(text)                                                                                 \
    "{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"        \
    "\"nodeSelectorTerms\":[" text "]}}}}"
#define EXPRESSION(key, operator, values)                                                          \
    "{\"matchExpressions\":[{\"key\":\"" key "\",\"operator\":\"" operator"\",\"values\":[" values \
                                                                          "]}]}"
        {TERM(""), false},
        {TERM("{}"), false},
        {TERM(EXPRESSION("a", "In", "\"0\",\"1\"")), true},
        {TERM(EXPRESSION("a", "NotIn", "\"0\",\"1\"")), false},
        {TERM(EXPRESSION("b", "NotIn", "\"1\"")), true},
        {TERM(EXPRESSION("a", "Exists", "")), true},
        {TERM(EXPRESSION("b", "Exists", "")), false},
        {TERM(EXPRESSION("b", "DoesNotExist", "")), true},
        {TERM(EXPRESSION("n", "Gt", "\"9\"")), true},
        {TERM(EXPRESSION("n", "Gt", "\"10\"")), false},
        {TERM(EXPRESSION("n", "Lt", "\"11\"")), true},
        {TERM(EXPRESSION("a", "Gt", "\"x\"")), false},
        {TERM(EXPRESSION("a", "Strange", "\"1\"")), false},
        {TERM(EXPRESSION("b", "Exists", "") "," EXPRESSION("a", "Exists", "")), true},
        {TERM("{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":["
              "\"n1\"]}]}"),
         true},
        {TERM("{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":["
              "\"n1\"]}]}"),
         false},
        {TERM("{\"matchFields\":[{\"key\":\"spec.x\",\"operator\":\"In\",\"values\":[\"n1\"]}]}"),
         false},
    };
    static const struct {
        const char *tolerations;
        const char *taint;
        bool is_tolerated;
        bool may_stay;
    } taints[] = {
        {"[]", "{\"key\":\"k\",\"effect\":\"NoSchedule\"}", false, true},
        {"[]", "{\"key\":\"k\",\"effect\":\"NoExecute\"}", false, false},
        {"[]", "{\"key\":\"k\",\"effect\":\"PreferNoSchedule\"}", true, true},
        {"[{\"operator\":\"Exists\"}]", "{\"key\":\"k\",\"effect\":\"NoExecute\"}", true, true},
        {"[{\"key\":\"k\"}]", "{\"key\":\"k\",\"effect\":\"NoExecute\"}", true, true},
        {"[{\"key\":\"k\",\"value\":\"v\"}]", "{\"key\":\"k\",\"effect\":\"NoExecute\"}", false,
         false},
        {"[{\"key\":\"k\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]",
         "{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoExecute\"}", false, false},
        /* Without a key any is meant; validation lets none through that says so with a value. */
        {"[{\"value\":\"\"}]", "{\"key\":\"k\",\"effect\":\"NoExecute\"}", true, true},
        {"[{\"value\":\"v\"}]", "{\"key\":\"k\",\"effect\":\"NoExecute\"}", false, false},
    };
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    const struct td_label pairs[] = {{TD_STR("a"), TD_STR("1")}, {TD_STR("n"), TD_STR("10")}};
    struct td_labels labels = td_labels_from_pairs(&arena, pairs, 2);
    for (size_t i = 0; i < sizeof(affinity) / sizeof(affinity[0]); i++) {
        struct td_json *spec;
        assert_int_equal(td_json_parse(&arena, td_str_from(affinity[i].spec), NULL, &spec, NULL),
                         TD_OK);
        assert_int_equal(td_node_fits_affinity(td_json_get(spec, TD_STR("nodeSelector")),
                                               td_json_get_path(spec, TD_NODE_AFFINITY_PATH),
                                               TD_STR("n1"), &labels),
                         affinity[i].fits);
    }
    for (size_t i = 0; i < sizeof(taints) / sizeof(taints[0]); i++) {
        struct td_json *list;
        struct td_json *taint;
        assert_int_equal(
            td_json_parse(&arena, td_str_from(taints[i].tolerations), NULL, &list, NULL), TD_OK);
        assert_int_equal(td_json_parse(&arena, td_str_from(taints[i].taint), NULL, &taint, NULL),
                         TD_OK);
        struct td_json *all = td_json_new_array(&arena);
        td_json_append(all, taint);
        assert_int_equal(td_node_tolerates(list, all, false), taints[i].is_tolerated);
        assert_int_equal(td_node_tolerates(list, all, true), taints[i].may_stay);
    }
    assert_true(td_node_tolerates(NULL, NULL, false));
}

int main(void)
{
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, workload_setup, workload_teardown)
    const struct CMUnitTest tests[] = {
        BED_TEST(test_daemon_set_is_on_every_node),
        BED_TEST(test_daemon_set_follows_labels_and_taints),
        BED_TEST(test_daemon_set_rolls_node_by_node),
        BED_TEST(test_daemon_set_surges),
        BED_TEST(test_daemon_set_waits_for_deletion),
        cmocka_unit_test(test_node_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
