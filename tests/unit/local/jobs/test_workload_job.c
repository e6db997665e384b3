/* Jobs and CronJobs on a virtual clock: how many pods, when the next one comes after a failure, how
 * a Job ends; schedules as tables. */
#include "support/workload_bed.h"

#include "local/jobs/cron_schedule.h"
#include "local/jobs/workload_job_plan.h"

#define WORK JOBS "/work"
#define JOB(rest)                                                                                  \
    "{\"metadata\":{\"name\":\"work\"},\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":"       \
    "\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}" rest "}}"
#define TICK CRONS "/tick"
#define CRON(schedule, rest)                                                                       \
    "{\"metadata\":{\"name\":\"tick\"},\"spec\":{\"schedule\":\"" schedule "\",\"jobTemplate\":{"  \
    "\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":"     \
    "\"c\",\"image\":\"i\"}]}}}}" rest "}}"

static td_str phase_of(const struct td_json *pod)
{
    return td_json_get_str(td_json_get(pod, TD_STR("status")), TD_STR("phase"), TD_STR_EMPTY);
}

/* Up to `count` pods that have not ended end in that way, now. */
static void finish(struct bed *bed, int count, const char *phase)
{
    td_str after = TD_STR_EMPTY;
    struct td_json *pod;
    while (count > 0 && (pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        if (td_str_equal(phase_of(pod), TD_STR("Succeeded")) ||
            td_str_equal(phase_of(pod), TD_STR("Failed")) ||
            td_json_get_path(pod, "metadata.deletionTimestamp")) {
            continue;
        }
        char text[TD_TIME_TEXT_BYTES];
        size_t len = td_time_format(td_time_to_instant(td_clock_wall(&bed->clock)), 0, text);
        struct td_arena *arena = &bed->arena;
        td_str now = td_arena_copy_str(arena, (td_str){.ptr = text, .len = len});
        struct td_json *status = td_json_ensure_object(arena, pod, TD_STR("status"));
        td_json_set_str(arena, status, TD_STR("phase"), td_str_from(phase));
        struct td_json *container = td_json_new_object(arena);
        struct td_json *state = td_json_ensure_object(arena, container, TD_STR("state"));
        struct td_json *ended = td_json_ensure_object(arena, state, TD_STR("terminated"));
        td_json_set_str(arena, ended, TD_STR("finishedAt"), now);
        struct td_json *list = td_json_new_array(arena);
        td_json_append(list, container);
        td_json_set(arena, status, TD_STR("containerStatuses"), list);
        assert_int_equal(td_edit_put(bed->api, workload_pods(bed), arena, pod, NULL), TD_OK);
        count--;
    }
    workload_settle(bed, 0);
}

/* "2 active, 1 succeeded, 0 failed" of the pods themselves. */
static const char *pods(struct bed *bed)
{
    size_t active = 0;
    size_t succeeded = 0;
    size_t failed = 0;
    td_str after = TD_STR_EMPTY;
    const struct td_json *pod;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        if (td_json_get_path(pod, "metadata.deletionTimestamp")) {
            continue;
        }
        succeeded += td_str_equal(phase_of(pod), TD_STR("Succeeded"));
        failed += td_str_equal(phase_of(pod), TD_STR("Failed"));
        active += !td_str_equal(phase_of(pod), TD_STR("Succeeded")) &&
                  !td_str_equal(phase_of(pod), TD_STR("Failed"));
    }
    return td_arena_format(&bed->arena, "%zu active, %zu succeeded, %zu failed", active, succeeded,
                           failed)
        .ptr;
}

static void test_job_runs_to_its_end(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL, JOB(",\"completions\":3,\"parallelism\":2"), 201);
    assert_string_equal(pods(bed), "2 active, 0 succeeded, 0 failed");
    assert_string_equal(workload_get(bed, WORK, "status.active"), "2");
    assert_string_equal(workload_get(bed, WORK, "status.startTime"), "2023-11-14T22:13:20Z");
    const struct td_json *pod = workload_next_pod(bed, TD_STR_EMPTY);
    assert_true(td_str_starts_with(workload_name(pod), TD_STR("work-")));
    assert_string_equal(workload_get(bed, WORK, "status.ready"), "0");
    finish(bed, 1, "Succeeded");
    assert_string_equal(pods(bed), "2 active, 1 succeeded, 0 failed");
    assert_string_equal(workload_get(bed, WORK, "status.succeeded"), "1");
    assert_string_equal(workload_get(bed, WORK, "status.uncountedTerminatedPods"), "{}");
    finish(bed, 1, "Succeeded");
    assert_string_equal(pods(bed), "1 active, 2 succeeded, 0 failed");
    finish(bed, 1, "Succeeded");
    assert_string_equal(pods(bed), "0 active, 3 succeeded, 0 failed");
    assert_string_equal(workload_get(bed, WORK, "status.succeeded"), "3");
    assert_string_equal(workload_get(bed, WORK, "status.active"), "nothing");
    assert_string_equal(workload_condition(bed, WORK, "SuccessCriteriaMet"),
                        "CompletionsReached=True");
    assert_string_equal(workload_condition(bed, WORK, "Complete"), "CompletionsReached=True");
    assert_string_not_equal(workload_get(bed, WORK, "status.completionTime"), "nothing");
    assert_string_equal(workload_events(bed, "work", "Completed"), "Job completed");
    td_str after = TD_STR_EMPTY;
    while ((pod = workload_next_pod(bed, after))) {
        after = workload_name(pod);
        assert_null(td_json_get_path(pod, "metadata.finalizers"));
    }
}

/* Ten seconds after the first failure, twenty after the second; then it is enough. */
static void test_job_tries_again_later_each_time(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL, JOB(",\"backoffLimit\":2"), 201);
    finish(bed, 1, "Failed");
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "1");
    workload_settle(bed, 8);
    assert_string_equal(pods(bed), "0 active, 0 succeeded, 1 failed");
    workload_settle(bed, 2);
    assert_string_equal(pods(bed), "1 active, 0 succeeded, 1 failed");
    finish(bed, 1, "Failed");
    workload_settle(bed, 18);
    assert_string_equal(pods(bed), "0 active, 0 succeeded, 2 failed");
    workload_settle(bed, 2);
    assert_string_equal(pods(bed), "1 active, 0 succeeded, 2 failed");
    finish(bed, 1, "Failed");
    workload_settle(bed, 600);
    assert_string_equal(pods(bed), "0 active, 0 succeeded, 3 failed");
    assert_string_equal(workload_condition(bed, WORK, "FailureTarget"),
                        "BackoffLimitExceeded=True");
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "BackoffLimitExceeded=True");
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "3");
    assert_string_equal(workload_events(bed, "work", "BackoffLimitExceeded"),
                        "Job has reached the specified backoff limit");
}

static void test_job_stops_at_its_deadline(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL,
                JOB(",\"activeDeadlineSeconds\":30,\"ttlSecondsAfterFinished\":60"), 201);
    workload_settle(bed, 28);
    assert_string_equal(pods(bed), "1 active, 0 succeeded, 0 failed");
    workload_settle(bed, 3);
    assert_string_equal(pods(bed), "0 active, 0 succeeded, 0 failed");
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "DeadlineExceeded=True");
    workload_settle(bed, 50);
    assert_string_not_equal(workload_get(bed, WORK, "status"), "gone");
    workload_settle(bed, 12);
    assert_string_equal(workload_get(bed, WORK, "status"), "gone");
}

/* It waits for pods that end slowly before it says that it failed. */
static void test_job_waits_for_terminating_pods(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL, JOB(",\"activeDeadlineSeconds\":30"), 201);
    workload_node(bed, 1);
    assert_string_equal(workload_get(bed, WORK, "status.ready"), "1");
    workload_settle(bed, 31);
    assert_string_equal(workload_get(bed, WORK, "status.terminating"), "1");
    assert_string_equal(workload_condition(bed, WORK, "FailureTarget"), "DeadlineExceeded=True");
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "none");
    workload_node(bed, 0);
    assert_string_equal(workload_condition(bed, WORK, "Failed"), "DeadlineExceeded=True");
    assert_string_equal(workload_get(bed, WORK, "status.terminating"), "0");
}

static void test_job_is_suspended_and_resumed(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL, JOB(",\"parallelism\":2,\"completions\":2"), 201);
    workload_do(bed, "PATCH", WORK, MERGE, "{\"spec\":{\"suspend\":true}}", 200);
    assert_string_equal(pods(bed), "0 active, 0 succeeded, 0 failed");
    assert_string_equal(workload_condition(bed, WORK, "Suspended"), "JobSuspended=True");
    assert_string_equal(workload_get(bed, WORK, "status.failed"), "nothing");
    assert_string_equal(workload_get(bed, WORK, "status.startTime"), "nothing");
    workload_do(bed, "PATCH", WORK, MERGE, "{\"spec\":{\"suspend\":false}}", 200);
    assert_string_equal(pods(bed), "2 active, 0 succeeded, 0 failed");
    assert_string_equal(workload_condition(bed, WORK, "Suspended"), "JobResumed=False");
    assert_string_equal(workload_events(bed, "work", "Suspended"), "Job suspended");
    assert_string_equal(workload_events(bed, "work", "Resumed"), "Job resumed");
}

static void test_job_counts_indexes(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", JOBS, NULL,
                JOB(",\"completionMode\":\"Indexed\",\"completions\":4,\"parallelism\":2"), 201);
    const struct td_json *pod = workload_next_pod(bed, TD_STR_EMPTY);
    assert_true(td_str_starts_with(workload_name(pod), TD_STR("work-0-")));
    finish(bed, 2, "Succeeded");
    assert_string_equal(workload_get(bed, WORK, "status.completedIndexes"), "0,1");
    finish(bed, 1, "Succeeded");
    assert_string_equal(workload_get(bed, WORK, "status.completedIndexes"), "0-2");
    finish(bed, 1, "Succeeded");
    assert_string_equal(workload_get(bed, WORK, "status.completedIndexes"), "0-3");
    assert_string_equal(workload_condition(bed, WORK, "Complete"), "CompletionsReached=True");
}

/* Of a Job that is forgotten as soon as it is over nothing is told but that. */
static void test_cron_job_forgets_at_once(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", CRONS, NULL, CRON("*/5 * * * *", ",\"successfulJobsHistoryLimit\":0"),
                201);
    workload_settle(bed, 100);
    finish(bed, 1, "Succeeded");
    assert_string_equal(workload_get(bed, TICK, "status.active"), "nothing");
    assert_string_not_equal(workload_get(bed, TICK, "status.lastSuccessfulTime"), "nothing");
    assert_string_equal(workload_events(bed, "tick", "SuccessfulDelete"),
                        "Deleted job tick-28333335");
    assert_string_equal(workload_events(bed, "tick", "SawCompletedJob"), "");
}

/* Its pods carry a finalizer, which must not outlive it. */
static void test_job_goes_with_its_pods(void **state)
{
    struct bed *bed = *state;
    static const char *const ways[] = {
        WORK "?propagationPolicy=Background",
        WORK "?propagationPolicy=Foreground",
    };
    for (size_t i = 0; i < 2; i++) {
        workload_do(bed, "POST", JOBS, NULL, JOB(""), 201);
        assert_string_equal(pods(bed), "1 active, 0 succeeded, 0 failed");
        workload_do(bed, "DELETE", ways[i], NULL, NULL, 200);
        assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
        assert_string_equal(workload_get(bed, WORK, "status"), "gone");
    }
    workload_do(bed, "POST", JOBS, NULL, JOB(""), 201);
    workload_do(bed, "DELETE", WORK "?propagationPolicy=Orphan", NULL, NULL, 200);
    const struct td_json *pod = workload_next_pod(bed, TD_STR_EMPTY);
    assert_non_null(pod);
    assert_null(td_json_get_path(pod, "metadata.finalizers"));
}

static void test_cron_job_makes_jobs_at_its_times(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", CRONS, NULL, CRON("*/5 * * * *", ""), 201);
    workload_settle(bed, 99); /* 22:14:59 */
    assert_string_equal(pods(bed), "0 active, 0 succeeded, 0 failed");
    workload_settle(bed, 1);
    assert_string_equal(pods(bed), "1 active, 0 succeeded, 0 failed");
    assert_string_equal(workload_get(bed, TICK, "status.lastScheduleTime"), "2023-11-14T22:15:00Z");
    assert_string_equal(workload_get(bed, JOBS "/tick-28333335", "metadata.annotations"),
                        "{\"batch.kubernetes.io/cronjob-scheduled-timestamp\":"
                        "\"2023-11-14T22:15:00Z\"}");
    assert_string_equal(workload_events(bed, "tick", "SuccessfulCreate"),
                        "Created job tick-28333335");
    finish(bed, 1, "Succeeded");
    assert_string_equal(workload_get(bed, TICK, "status.active"), "nothing");
    assert_string_equal(workload_events(bed, "tick", "SawCompletedJob"),
                        "Saw completed job: tick-28333335, condition: Complete");
    assert_string_equal(workload_get(bed, TICK, "status.lastSuccessfulTime"),
                        workload_get(bed, JOBS "/tick-28333335", "status.completionTime"));
    workload_settle(bed, 300);
    assert_string_equal(workload_get(bed, TICK, "status.lastScheduleTime"), "2023-11-14T22:20:00Z");
    /* Three that succeeded are kept. */
    for (int i = 0; i < 4; i++) {
        finish(bed, 1, "Succeeded");
        workload_settle(bed, 300);
    }
    assert_string_equal(workload_get(bed, JOBS "/tick-28333335", "status"), "gone");
    assert_string_not_equal(workload_get(bed, JOBS "/tick-28333350", "status"), "gone");
    workload_do(bed, "PATCH", TICK, MERGE, "{\"spec\":{\"suspend\":true}}", 200);
    const char *last = workload_get(bed, TICK, "status.lastScheduleTime");
    workload_settle(bed, 900);
    assert_string_equal(workload_get(bed, TICK, "status.lastScheduleTime"), last);
}

static void test_cron_job_forbids_and_replaces(void **state)
{
    struct bed *bed = *state;
    workload_do(bed, "POST", CRONS, NULL, CRON("* * * * *", ",\"concurrencyPolicy\":\"Forbid\""),
                201);
    workload_settle(bed, 170); /* 22:16:10 */
    assert_string_equal(pods(bed), "1 active, 0 succeeded, 0 failed");
    assert_string_not_equal(workload_events(bed, "tick", "JobAlreadyActive"), "");
    workload_do(bed, "PATCH", TICK, MERGE, "{\"spec\":{\"concurrencyPolicy\":\"Replace\"}}", 200);
    workload_settle(bed, 60);
    assert_string_equal(pods(bed), "1 active, 0 succeeded, 0 failed");
    assert_string_equal(workload_get(bed, JOBS "/tick-28333334", "status"), "gone");
    workload_do(bed, "PATCH", TICK, MERGE, "{\"spec\":{\"concurrencyPolicy\":\"Allow\"}}", 200);
    workload_settle(bed, 120);
    assert_string_equal(pods(bed), "3 active, 0 succeeded, 0 failed");
    workload_do(bed, "DELETE", TICK, NULL, NULL, 200);
    assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
}

static void test_cron_schedule(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        const char *from;
        const char *next; /* NULL: none */
    } rows[] = {
        {"* * * * *", "2024-02-28T23:59:30Z", "2024-02-29T00:00:00Z"},
        {"* * * * *", "2024-02-28T23:59:00Z", "2024-02-29T00:00:00Z"},
        {"*/15 * * * *", "2024-01-01T00:00:00Z", "2024-01-01T00:15:00Z"},
        {"5-20/5,59 3 * * *", "2024-01-01T03:20:00Z", "2024-01-01T03:59:00Z"},
        {"0 0 1 1 *", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
        {"0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
        {"0 0 31 2 *", "2024-01-01T00:00:00Z", NULL},
        {"0 12 * * mon-fri", "2024-01-05T12:00:00Z", "2024-01-08T12:00:00Z"},
        {"0 12 * JUL Sun", "2024-01-05T12:00:00Z", "2024-07-07T12:00:00Z"},
        {"0 0 13 * 5", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"}, /* either is enough */
        {"0 0 13 * *", "2024-01-01T00:00:00Z", "2024-01-13T00:00:00Z"},
        {"0 0 */2 * 1", "2024-01-02T00:00:00Z", "2024-01-03T00:00:00Z"},
        {"10/20 * * * *", "2024-01-01T00:00:00Z", "2024-01-01T00:10:00Z"},
        {"@hourly", "2024-01-01T00:00:01Z", "2024-01-01T01:00:00Z"},
        {"@daily", "2024-01-01T00:00:01Z", "2024-01-02T00:00:00Z"},
        {"@weekly", "2024-01-01T00:00:01Z", "2024-01-07T00:00:00Z"},
        {"@monthly", "2024-01-01T00:00:01Z", "2024-02-01T00:00:00Z"},
        {"@yearly", "2024-01-01T00:00:01Z", "2025-01-01T00:00:00Z"},
        {"@every 90s", "2024-01-01T00:00:01Z", "2024-01-01T00:01:31Z"},
        {"@every 1ms", "2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_cron_schedule schedule;
        struct td_instant from;
        td_time next;
        assert_int_equal(td_cron_parse(td_str_from(rows[i].schedule), &schedule, NULL), TD_OK);
        assert_int_equal(td_time_parse(td_str_from(rows[i].from), &from, NULL), TD_OK);
        int code = td_cron_next(&schedule, td_time_from_instant(from), &next);
        assert_int_equal(code, rows[i].next ? TD_OK : TD_NOT_FOUND);
        if (code == TD_OK) {
            char text[TD_TIME_TEXT_BYTES];
            (void)td_time_format(td_time_to_instant(next), 0, text);
            assert_string_equal(text, rows[i].next);
        }
    }
    static const char *const bad[] = {
        "",          "* * * *",    "* * * * * *", "60 * * * *",    "* 24 * * *",
        "* * 0 * *", "* * * 13 *", "* * * * 7",   "*/0 * * * *",   "5-1 * * * *",
        "x * * * *", "@noon",      "@every x",    "1-2-3 * * * *", "-1 * * * *",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct td_cron_schedule schedule;
        assert_int_equal(td_cron_parse(td_str_from(bad[i]), &schedule, NULL), TD_INVALID);
    }
    static const struct {
        const char *zone;
        int code;
        int64_t offset;
    } zones[] = {
        {"", TD_OK, 0},
        {"UTC", TD_OK, 0},
        {"Etc/GMT-2", TD_OK, 7200},
        {"Etc/GMT+5", TD_OK, -18000},
        {"Etc/GMT+13", TD_INVALID, 0},
        {"Europe/Berlin", TD_INVALID, 0},
        {"Etc/GMTx", TD_INVALID, 0},
    };
    for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
        int64_t offset = 0;
        assert_int_equal(td_cron_zone(td_str_from(zones[i].zone), &offset, NULL), zones[i].code);
        assert_int_equal(offset, zones[i].offset);
    }
    struct td_cron_schedule east;
    td_time next;
    assert_int_equal(td_cron_parse(TD_STR("0 8 * * *"), &east, NULL), TD_OK);
    east.offset = 7200;
    assert_int_equal(td_cron_next(&east, 0, &next), TD_OK);
    assert_int_equal(next, 6 * TD_HOUR);
}

static void test_job_plan(void **state)
{
    (void)state;
    static const struct {
        struct td_job_need need;
        int64_t want;
        bool is_complete;
    } rows[] = {
        {{.parallelism = 2, .completions = -1, .succeeded = 0, .active = 0}, 2, false},
        {{.parallelism = 2, .completions = -1, .succeeded = 1, .active = 1}, 1, false},
        {{.parallelism = 2, .completions = -1, .succeeded = 1, .active = 0}, 0, true},
        {{.parallelism = 2, .completions = 5, .succeeded = 0, .active = 0}, 2, false},
        {{.parallelism = 2, .completions = 5, .succeeded = 4, .active = 1}, 1, false},
        {{.parallelism = 2, .completions = 5, .succeeded = 5, .active = 1}, 0, false},
        {{.parallelism = 2, .completions = 5, .succeeded = 6, .active = 0}, 0, true},
        {{.parallelism = 0, .completions = 5, .succeeded = 0, .active = 0}, 0, false},
        {{.parallelism = 1, .completions = 0, .succeeded = 0, .active = 0}, 0, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(td_job_want_active(&rows[i].need), rows[i].want);
        assert_int_equal(td_job_is_complete(&rows[i].need), rows[i].is_complete);
    }
    static const int64_t pauses[] = {0, 10, 20, 40, 80, 160, 320, 600, 600};
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        assert_int_equal(td_job_retry_at((int64_t)i, 0), pauses[i] * TD_SECOND);
    }
    assert_int_equal(td_job_retry_at(INT64_MAX, 0), 600 * TD_SECOND);
    static const struct {
        const char *text;
        const char *written;
    } sets[] = {
        {"", ""},
        {"0", "0"},
        {"0,1,2", "0-2"},
        {"3,1", "1,3"},
        {"1-1000000000000", "1-9"},
        {"x,2", "2"},
        {"5-3,-1,10,99", ""},
    };
    td_auto_arena arena;
    td_arena_init(&arena, TD_TREE_ARENA_BYTES_MAX);
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct td_job_indexes set = td_job_indexes_new(&arena, 10);
        td_job_indexes_read(&set, td_str_from(sets[i].text));
        assert_string_equal(td_job_indexes_write(&arena, &set).ptr, sets[i].written);
    }
}

int main(void)
{
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, workload_setup, workload_teardown)
    const struct CMUnitTest tests[] = {
        BED_TEST(test_job_runs_to_its_end),
        BED_TEST(test_job_tries_again_later_each_time),
        BED_TEST(test_job_stops_at_its_deadline),
        BED_TEST(test_job_waits_for_terminating_pods),
        BED_TEST(test_job_is_suspended_and_resumed),
        BED_TEST(test_job_counts_indexes),
        BED_TEST(test_job_goes_with_its_pods),
        BED_TEST(test_cron_job_makes_jobs_at_its_times),
        BED_TEST(test_cron_job_forbids_and_replaces),
        BED_TEST(test_cron_job_forgets_at_once),
        cmocka_unit_test(test_cron_schedule),
        cmocka_unit_test(test_job_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
