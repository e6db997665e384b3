/* The policies of Jobs: what each rule says of a pod or of indexes, as tables, and what a Job makes
 * of it on a virtual clock. */
#include "support/workload_bed.h"

#include "local/jobs/workload_job_policy.h"

#define WORK JOBS "/work"
#define JOB(rest)                                                                                  \
    "{\"metadata\":{\"name\":\"work\"},\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":"       \
    "\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}," rest "}}"
#define INDEXED(rest) JOB("\"completionMode\":\"Indexed\",\"completions\":3,\"parallelism\":3" rest)
#define RULES(list) "\"podFailurePolicy\":{\"rules\":[" list "]}"
#define ON_CODES(action, relation, values)                                                         \
    "{\"action\":\"" action "\",\"onExitCodes\":{\"operator\":\"" relation                         \
    "\",\"values\":[" values "]}}"

/* The pod whose name begins so and that has not ended ends with that code. */
static void finish(struct bed *bed, const char *prefix, int64_t code)
{
    struct td_arena *arena = &bed->arena;
    td_str after = TD_STR_EMPTY;
    struct td_json *pod;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        struct td_json *status = td_json_ensure_object(arena, pod, TD_STR("status"));
        td_str phase = td_json_get_str(status, TD_STR("phase"), TD_STR_EMPTY);
        if (!td_str_starts_with(after, td_str_from(prefix)) ||
            td_str_equal(phase, TD_STR("Failed")) || td_str_equal(phase, TD_STR("Succeeded")) ||
            td_json_get_path(pod, "metadata.deletionTimestamp")) {
            continue;
        }
        char text[TD_TIME_TEXT_BYTES];
        size_t len = td_time_format(td_time_to_instant(td_clock_wall(&bed->clock)), 0, text);
        td_json_set_str(arena, status, TD_STR("phase"),
                        code == 0 ? TD_STR("Succeeded") : TD_STR("Failed"));
        struct td_json *container = td_json_new_object(arena);
        td_json_set_str(arena, container, TD_STR("name"), TD_STR("c"));
        struct td_json *state = td_json_ensure_object(arena, container, TD_STR("state"));
        struct td_json *ended = td_json_ensure_object(arena, state, TD_STR("terminated"));
        td_json_set_int64(arena, ended, TD_STR("exitCode"), code);
        td_json_set_str(arena, ended, TD_STR("finishedAt"),
                        td_arena_copy_str(arena, (td_str){.ptr = text, .len = len}));
        struct td_json *list = td_json_new_array(arena);
        td_json_append(list, container);
        td_json_set(arena, status, TD_STR("containerStatuses"), list);
        assert_int_equal(td_edit_put(bed->api, workload_pods(bed), arena, pod, NULL), TD_OK);
        workload_settle(bed, 0);
        return;
    }
    fail_msg("no pod %s runs", prefix);
}

/* An annotation of the first pod whose name begins so and that has not ended. */
static const char *annotation(struct bed *bed, const char *prefix, const char *key)
{
    td_str after = TD_STR_EMPTY;
    const struct td_json *pod;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        td_str phase =
            td_json_get_str(td_json_get(pod, TD_STR("status")), TD_STR("phase"), TD_STR_EMPTY);
        if (td_str_starts_with(after, td_str_from(prefix)) &&
            !td_str_equal(phase, TD_STR("Failed"))) {
            td_str text = td_json_get_str(td_json_get_path(pod, "metadata.annotations"),
                                          td_str_from(key), TD_STR("nothing"));
            return td_arena_copy_str(&bed->arena, text).ptr;
        }
    }
    return "no pod";
}

static void test_job_fails_by_rule(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL,
                JOB("\"completions\":2,\"parallelism\":2," RULES(ON_CODES("FailJob", "In", "42"))),
                201);
    finish(bed, "work-", 42);
    assert_string_equal(workload_condition(bed, WORK, "FailureTarget"), "PodFailurePolicy=True");
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "PodFailurePolicy=True");
    /* The pod that the Job took away counts as well. */
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "2");
    assert_non_null(strstr(workload_events(bed, "work", "PodFailurePolicy"),
                           "failed with exit code 42 matching FailJob rule at index 0"));
}

static void test_job_ignores_by_rule(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL,
                JOB("\"backoffLimit\":0," RULES(ON_CODES("Ignore", "In", "7"))), 201);
    finish(bed, "work-", 7);
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "nothing");
    workload_settle(bed, 11);
    assert_string_equal(workload_count(bed), "2 pods, 0 ready, 0 going");
    finish(bed, "work-", 1);
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "BackoffLimitExceeded=True");
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "1");
}

/* Each index has its own number of failures, and waits for itself. */
static void test_job_counts_failures_of_indexes(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL, INDEXED(",\"backoffLimitPerIndex\":1"), 201);
    assert_string_equal(workload_get(bed, WORK, "status.failedIndexes"), "");
    assert_string_equal(annotation(bed, "work-1-", TD_JOB_INDEX_FAILURES), "0");
    finish(bed, "work-1-", 3);
    assert_string_equal(workload_count(bed), "3 pods, 0 ready, 0 going"); /* it waits 10 s */
    finish(bed, "work-0-", 0);
    workload_settle(bed, 10);
    assert_string_equal(annotation(bed, "work-1-", TD_JOB_INDEX_FAILURES), "1");
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "1");
    finish(bed, "work-1-", 3);
    assert_string_equal(workload_get(bed, WORK, "status.failedIndexes"), "1");
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "none");
    finish(bed, "work-2-", 0);
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "FailedIndexes=True");
    assert_string_equal(workload_get(bed, WORK, "status.completedIndexes"), "0,2");
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "2");
}

static void test_job_has_too_many_failed_indexes(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL,
                INDEXED(",\"backoffLimitPerIndex\":0,\"maxFailedIndexes\":1"), 201);
    finish(bed, "work-0-", 1);
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "none");
    finish(bed, "work-2-", 1);
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "MaxFailedIndexesExceeded=True");
    assert_string_equal(workload_get(bed, WORK, "status.failedIndexes"), "0,2");
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "3"); /* with the one it took */
}

static void test_job_is_content_with_some_indexes(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL,
                INDEXED(",\"successPolicy\":{\"rules\":[{\"succeededIndexes\":\"0-1\","
                        "\"succeededCount\":1}]}"),
                201);
    finish(bed, "work-2-", 0);
    assert_string_equal(workload_condition(bed, WORK, "Complete"), "none");
    finish(bed, "work-1-", 0);
    assert_string_equal(workload_condition(bed, WORK, "SuccessCriteriaMet"), "SuccessPolicy=True");
    assert_string_equal(workload_condition(bed, WORK, "Complete"), "SuccessPolicy=True");
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "nothing");
}

/* ---- Tables ---- */

#define ENDED(name, code)                                                                          \
    "{\"name\":\"" name "\",\"state\":{\"terminated\":{\"exitCode\":" code "}}}"
#define STATUS(rest) "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"status\":{" rest "}}"

static void test_rules_judge_pods(void **state)
{
    (void)state;
    static const struct {
        const char *rules;
        const char *pod;
        enum td_job_action action;
    } rows[] = {
        {"[" ON_CODES("Ignore", "In", "1,2") "]",
         STATUS("\"containerStatuses\":[" ENDED("a", "2") "]"), TD_JOB_ACTION_IGNORE},
        {"[" ON_CODES("Ignore", "In", "1,2") "]",
         STATUS("\"containerStatuses\":[" ENDED("a", "3") "]"), TD_JOB_ACTION_NONE},
        {"[" ON_CODES("Count", "NotIn", "1") "]",
         STATUS("\"containerStatuses\":[" ENDED("a", "3") "]"), TD_JOB_ACTION_COUNT},
        /* A container that did well matches nothing, not even NotIn. */
        {"[" ON_CODES("FailJob", "NotIn", "1") "]",
         STATUS("\"containerStatuses\":[" ENDED("a", "0") "]"), TD_JOB_ACTION_NONE},
        {"[" ON_CODES("FailJob", "Near", "1") "]",
         STATUS("\"containerStatuses\":[" ENDED("a", "1") "]"), TD_JOB_ACTION_NONE},
        {"[" ON_CODES("FailJob", "In", "\"1\"") "]",
         STATUS("\"containerStatuses\":[" ENDED("a", "1") "]"), TD_JOB_ACTION_NONE},
        {"[" ON_CODES("FailIndex", "In", "9") "]",
         STATUS("\"initContainerStatuses\":[" ENDED("i", "9") "]"), TD_JOB_ACTION_FAIL_INDEX},
        {"[{\"action\":\"FailJob\",\"onExitCodes\":{\"containerName\":\"b\",\"operator\":\"In\","
         "\"values\":[1]}}]",
         STATUS("\"containerStatuses\":[" ENDED("a", "1") "]"), TD_JOB_ACTION_NONE},
        {"[{\"action\":\"Ignore\",\"onPodConditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
         "\"True\"}]}]",
         STATUS("\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\"}]"),
         TD_JOB_ACTION_IGNORE},
        {"[{\"action\":\"Ignore\",\"onPodConditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
         "\"True\"}]}]",
         STATUS("\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"False\"}]"),
         TD_JOB_ACTION_NONE},
        /* The first that matches decides; an unknown action does not. */
        {"[" ON_CODES("Strange", "In",
                      "1") "," ON_CODES("Ignore", "In", "1") "," ON_CODES("FailJob", "In", "1") "]",
         STATUS("\"containerStatuses\":[" ENDED("a", "1") "]"), TD_JOB_ACTION_IGNORE},
        {"[]", STATUS(""), TD_JOB_ACTION_NONE},
        {"{}", STATUS("\"containerStatuses\":{},\"conditions\":7"), TD_JOB_ACTION_NONE},
    };
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_json *policy = td_json_new_object(&arena);
        struct td_json *rules;
        struct td_json *pod;
        assert_int_equal(td_json_parse(&arena, td_str_from(rows[i].rules), NULL, &rules, NULL), 0);
        assert_int_equal(td_json_parse(&arena, td_str_from(rows[i].pod), NULL, &pod, NULL), 0);
        td_json_set(&arena, policy, TD_STR("rules"), rules);
        assert_int_equal(td_job_judge_pod(&arena, policy, pod).action, rows[i].action);
    }
    assert_int_equal(td_job_judge_pod(&arena, NULL, NULL).action, TD_JOB_ACTION_NONE);
}

static void test_rules_judge_indexes(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *succeeded;
        bool is_met;
    } rows[] = {
        {"{\"succeededCount\":2}", "0,5", true},
        {"{\"succeededCount\":2}", "5", false},
        {"{\"succeededIndexes\":\"1-3\"}", "0-2", false},
        {"{\"succeededIndexes\":\"1-3\"}", "0-4", true},
        {"{\"succeededIndexes\":\"1-3\",\"succeededCount\":1}", "0,2", true},
        {"{\"succeededIndexes\":\"1-3\",\"succeededCount\":1}", "0,4", false},
        {"{\"succeededIndexes\":\"x\"}", "0-9", false},
        {"{}", "0-9", false},
        {"{\"succeededCount\":0}", "", false},
    };
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_json *policy = td_json_new_object(&arena);
        struct td_json *rules = td_json_new_array(&arena);
        struct td_json *rule;
        assert_int_equal(td_json_parse(&arena, td_str_from(rows[i].rule), NULL, &rule, NULL), 0);
        td_json_append(rules, rule);
        td_json_set(&arena, policy, TD_STR("rules"), rules);
        struct td_job_indexes set = td_job_indexes_new(&arena, 10);
        td_job_indexes_read(&set, td_str_from(rows[i].succeeded));
        td_str message = TD_STR("untouched");
        assert_int_equal(td_job_judge_success(&arena, policy, &set, &message), rows[i].is_met);
        assert_string_equal(message.ptr, rows[i].is_met ? "Matched rules at index 0" : "untouched");
    }
}

static void test_failures_are_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t count;
    } rows[] = {{"3", 3},          {"0", 0}, {"-1", 0}, {"x", 0}, {"2147483647", 2147483647},
                {"2147483648", 0}, {"", 0}};
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_json *pod = td_json_new_object(&arena);
        struct td_json *metadata = td_json_ensure_object(&arena, pod, TD_STR("metadata"));
        struct td_json *list = td_json_ensure_object(&arena, metadata, TD_STR("annotations"));
        td_json_set_str(&arena, list, TD_STR(TD_JOB_INDEX_FAILURES), td_str_from(rows[i].text));
        assert_int_equal(td_job_failures(pod, TD_STR(TD_JOB_INDEX_FAILURES)), rows[i].count);
    }
    assert_int_equal(td_job_failures(NULL, TD_STR(TD_JOB_INDEX_FAILURES)), 0);
}

int main(void)
{
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, workload_setup, workload_teardown)
    const struct CMUnitTest tests[] = {
        BED_TEST(test_job_fails_by_rule),
        BED_TEST(test_job_ignores_by_rule),
        BED_TEST(test_job_counts_failures_of_indexes),
        BED_TEST(test_job_has_too_many_failed_indexes),
        BED_TEST(test_job_is_content_with_some_indexes),
        cmocka_unit_test(test_rules_judge_pods),
        cmocka_unit_test(test_rules_judge_indexes),
        cmocka_unit_test(test_failures_are_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
