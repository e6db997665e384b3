/* Watches through the handler: what each change means to a selector, bookmarks, initial objects,
 * ends, expiry and slow receivers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/api_objects.h"
#include "support/random.h"

#define CHURN_NAMES 12

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
#define PARTIAL "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

static int setup(void **state)
{
    struct bed *bed = td_alloc_zero(1, sizeof(*bed));
    bed_init(bed);
    bed_put_map(bed, "c1", "\"x\":\"y\"", "1");
    bed_put_map(bed, "c2", NULL, "1");
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    bed_done(*state);
    td_free(*state);
    return 0;
}

/* "ADDED c1 2, BOOKMARK - 3, " of the events in the body; the object's kind when asked. */
static const char *summary(struct bed *bed, const struct bed_answer *answer)
{
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    td_str body = td_buf_str(&answer->body);
    for (size_t from = 0; from < body.len;) {
        size_t end = td_str_find(body, '\n', from);
        struct td_json *event;
        assert_int_equal(td_json_parse(&bed->arena, td_str_slice(body, from, end),
                                       &(struct td_json_options){.copy_strings = true}, &event,
                                       NULL),
                         TD_OK);
        const struct td_json *object = td_json_get(event, TD_STR("object"));
        const struct td_json *rows = td_json_get(object, TD_STR("rows"));
        object = rows ? td_json_get(td_json_first_child(rows), TD_STR("object")) : object;
        const struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
        td_str type = td_json_get_str(event, TD_STR("type"), TD_STR("?"));
        td_str name = td_json_get_str(metadata, TD_STR("name"), TD_STR("-"));
        td_str version = td_json_get_str(metadata, TD_STR("resourceVersion"), TD_STR("-"));
        (void)td_buf_append_format(&text, "%.*s %.*s %.*s, ", TD_STR_ARG(type), TD_STR_ARG(name),
                                   TD_STR_ARG(version));
        from = end + 1;
    }
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

static void start(struct bed *bed, const char *query, const char *accept, struct bed_answer *answer)
{
    char target[512];
    (void)snprintf(target, sizeof(target), "/api/v1/namespaces/default/configmaps?watch=1&%s",
                   query);
    struct bed_request request = {.method = "GET", .target = target, .accept = accept};
    bed_ask(bed, &request, answer);
}

/* Where a watch begins follows from version and sendInitialEvents. */
static void test_watch_begins_where_it_was_asked(void **state)
{
    static const struct {
        const char *query;
        const char *events;
    } rows[] = {
        {"", "ADDED c1 2, ADDED c2 3, MODIFIED c2 4, "},
        {"resourceVersion=0", "ADDED c1 2, ADDED c2 3, MODIFIED c2 4, "},
        {"resourceVersion=2", "ADDED c2 3, MODIFIED c2 4, "},
        {"resourceVersion=3", "MODIFIED c2 4, "},
        {"resourceVersion=9", ""},
        {"allowWatchBookmarks=true", "ADDED c1 2, ADDED c2 3, BOOKMARK - 3, MODIFIED c2 4, "},
        {"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
         "ADDED c1 2, ADDED c2 3, BOOKMARK - 3, MODIFIED c2 4, "},
        {"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=3",
         "ADDED c1 2, ADDED c2 3, MODIFIED c2 4, "},
        {"sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=2",
         "ADDED c2 3, MODIFIED c2 4, "},
        {"sendInitialEvents=false&resourceVersionMatch=NotOlderThan", "MODIFIED c2 4, "},
        {"fieldSelector=metadata.name%3Dc2", "ADDED c2 3, MODIFIED c2 4, "},
        {"shardSelector=shardRange(object.metadata.namespace,'0xebada5168620c5fe',"
         "'0xebada5168620c5ff')",
         "ADDED c1 2, ADDED c2 3, MODIFIED c2 4, "},
        {"allowWatchBookmarks=true&shardSelector=shardRange(object.metadata.namespace,"
         "'0x0000000000000000','0xebada5168620c5fe')",
         "BOOKMARK - 3, "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *fresh;
        setup(&fresh);
        struct bed *bed = fresh;
        bed_auto_answer answer;
        bed_answer_init(&answer);
        start(bed, rows[i].query, NULL, &answer);
        assert_int_equal(answer.status, 200);
        bed_put_map(bed, "c2", NULL, "2");
        bed_run(bed, TD_MILLISECOND);
        if (strcmp(summary(bed, &answer), rows[i].events) != 0) {
            fail_msg("%s: %s", rows[i].query, summary(bed, &answer));
        }
        bed_cancel(&answer);
        teardown(&fresh);
    }
}

/* What a change means depends on whether the object matched before and after it. */
static void test_watch_translates_changes_by_selector(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    start(bed, "resourceVersion=3&labelSelector=x%3Dy", NULL, &answer);
    bed_put_map(bed, "c1", "\"x\":\"y\"", "2");   /* 4: still in */
    bed_put_map(bed, "c2", "\"x\":\"y\"", "2");   /* 5: comes in */
    bed_put_map(bed, "c1", "\"x\":\"z\"", "3");   /* 6: goes out */
    bed_put_map(bed, "c1", "\"x\":\"z\"", "4");   /* 7: stays out */
    bed_drop_map(bed, "c1", "\"x\":\"z\"");       /* 8: deleted while out */
    bed_drop_map(bed, "c2", "\"x\":\"y\"");       /* 9: deleted while in */
    bed_put_map(bed, "other", "\"x\":\"y\"", ""); /* 10 */
    bed_run(bed, TD_MILLISECOND);
    assert_string_equal(summary(bed, &answer), "MODIFIED c1 4, ADDED c2 5, DELETED c1 6, "
                                               "DELETED c2 9, ADDED other 10, ");
    /* The state before, under the version of the change. */
    assert_non_null(strstr(answer.body.ptr, "\"type\":\"DELETED\",\"object\":{\"kind\":"
                                            "\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"
                                            "\"name\":\"c1\",\"namespace\":\"default\",\"uid\":"
                                            "\"u-c1\",\"resourceVersion\":\"6\""));
    assert_non_null(strstr(answer.body.ptr, "\"x\":\"y\"}},\"data\":{\"a\":\"2\"}}}\n"));
    bed_cancel(&answer);
}

/* Other namespaces are not seen. */
static void test_watch_sees_its_namespace_only(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    start(bed, "resourceVersion=3", NULL, &answer);
    const struct bed_object object = {"configmaps", "v1", "ConfigMap", "other", "c9", NULL, NULL};
    bed_commit(bed, &object, false);
    bed_put_map(bed, "c3", NULL, "1");
    bed_run(bed, TD_MILLISECOND);
    assert_string_equal(summary(bed, &answer), "ADDED c3 5, ");
    bed_cancel(&answer);
}

/* The old /watch/ path of one object watches it alone. */
static void test_watch_old_path_names_an_object(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    struct bed_request request = {.method = "GET",
                                  .target = "/api/v1/watch/namespaces/default/configmaps/c2"};
    bed_ask(bed, &request, &answer);
    bed_put_map(bed, "c1", NULL, "2");
    bed_run(bed, TD_MILLISECOND);
    assert_string_equal(summary(bed, &answer), "ADDED c2 3, ");
    bed_cancel(&answer);
}

/* A bookmark comes within ten seconds, again and again, and before the end by timeout. */
static void test_watch_sends_bookmarks(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    start(bed, "resourceVersion=3&allowWatchBookmarks=true&timeoutSeconds=25", NULL, &answer);
    const struct bed_object object = {"secrets", "v1", "Secret", "default", "s", NULL, NULL};
    bed_commit(bed, &object, false); /* another kind moves the version */
    bed_run(bed, 10 * TD_SECOND);
    assert_string_equal(summary(bed, &answer), "BOOKMARK - 4, ");
    bed_run(bed, 10 * TD_SECOND);
    assert_string_equal(summary(bed, &answer), "BOOKMARK - 4, BOOKMARK - 4, ");
    bed_commit(bed, &object, false);
    bed_run(bed, 10 * TD_SECOND);
    assert_string_equal(summary(bed, &answer), "BOOKMARK - 4, BOOKMARK - 4, BOOKMARK - 5, ");
    assert_int_equal(answer.end_count, 1);
    assert_null(answer.call);
}

/* Without a word about it there are no bookmarks, and the end still comes. */
static void test_watch_ends_by_timeout(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    start(bed, "resourceVersion=3&timeoutSeconds=5", NULL, &answer);
    bed_run(bed, 4 * TD_SECOND);
    assert_non_null(answer.call);
    bed_run(bed, 2 * TD_SECOND);
    assert_null(answer.call);
    assert_int_equal(answer.body.len, 0);
    start(bed, "resourceVersion=3", NULL, &answer);
    bed_run(bed, 29 * TD_MINUTE);
    assert_non_null(answer.call);
    bed_run(bed, 32 * TD_MINUTE);
    assert_null(answer.call);
}

/* On a clock a thousand times as fast a second of a client is still one of its own. */
static void test_watch_keeps_its_timeout_on_a_fast_clock(void **state)
{
    (void)state;
    struct bed bed;
    bed_init_on(&bed, td_clock_accelerated(1000, BED_START * TD_SECOND), NULL);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_duration begin = td_clock_machine(&bed.clock);
    start(&bed, "resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=1", NULL, &answer);
    bed_run(&bed, 300 * TD_SECOND);
    assert_non_null(answer.call);
    assert_string_equal(summary(&bed, &answer), "");
    for (int i = 0; i < 100 && answer.call; i++) {
        bed_run(&bed, 100 * TD_SECOND);
    }
    assert_null(answer.call);
    assert_true(td_clock_machine(&bed.clock) - begin >= 999 * TD_MILLISECOND);
    bed_done(&bed);
}

/* A position that is gone is an ERROR event of code 410 in a stream of status 200. */
static void test_watch_tells_expiry_as_an_event(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    td_store_compact(bed->store, td_store_version(bed->store));
    start(bed, "resourceVersion=1", NULL, &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body.ptr,
                        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                        "\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource "
                        "version: 1 (3)\",\"reason\":\"Expired\",\"code\":410}}\n");
    assert_null(answer.call);
}

/* A receiver that is full keeps its place; one that slept through the log is told so. */
static void test_watch_slow_receiver_keeps_its_place(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    answer.full_at = 1;
    start(bed, "resourceVersion=3", NULL, &answer);
    for (int i = 0; i < 10; i++) {
        bed_put_map(bed, "c2", NULL, "2");
        bed_run(bed, TD_MILLISECOND);
    }
    size_t first = answer.body.len;
    assert_true(first > 0 && first < 1000);
    answer.full_at = 0;
    td_api_resume(answer.call);
    bed_put_map(bed, "c2", NULL, "3");
    bed_run(bed, TD_MILLISECOND);
    assert_string_equal(summary(bed, &answer),
                        "MODIFIED c2 4, MODIFIED c2 5, MODIFIED c2 6, MODIFIED c2 7, MODIFIED c2 "
                        "8, MODIFIED c2 9, MODIFIED c2 10, MODIFIED c2 11, MODIFIED c2 12, "
                        "MODIFIED c2 13, MODIFIED c2 14, ");
    answer.full_at = 1;
    bed_put_map(bed, "c2", NULL, "4");
    bed_put_map(bed, "c2", NULL, "5");
    bed_run(bed, TD_MILLISECOND);
    td_store_compact(bed->store, td_store_version(bed->store));
    td_buf_reset(&answer.body);
    answer.full_at = 0;
    td_api_resume(answer.call);
    assert_string_equal(summary(bed, &answer), "ERROR - -, ");
    assert_null(answer.call);
}

/* kubectl's watch: each event a Table of one row, the first with columns. */
static void test_watch_sends_tables_and_metadata(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    start(bed, "allowWatchBookmarks=true&labelSelector=x", TABLE, &answer);
    bed_put_map(bed, "c1", "\"x\":\"y\"", "2");
    bed_run(bed, TD_MILLISECOND);
    assert_string_equal(summary(bed, &answer), "ADDED c1 2, BOOKMARK - 3, MODIFIED c1 4, ");
    td_str body = td_buf_str(&answer.body);
    size_t line = td_str_find(body, '\n', 0);
    td_str first = td_str_slice(body, 0, line);
    assert_non_null(memmem(first.ptr, first.len, "\"columnDefinitions\":[", 21));
    assert_null(strstr(body.ptr + line, "\"columnDefinitions\":["));
    bed_cancel(&answer);
    start(bed, "labelSelector=x&allowWatchBookmarks=1", PARTIAL, &answer);
    assert_string_equal(
        answer.body.ptr,
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
        "\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"c1\",\"namespace\":\"default\",\"uid\":"
        "\"u-c1\",\"resourceVersion\":\"4\",\"creationTimestamp\":\"2023-11-14T22:13:20Z\","
        "\"labels\":{\"x\":\"y\"}}}}\n"
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
        "\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"4\",\"annotations\":{"
        "\"k8s.io/initial-events-end\":\"true\"}}}}\n");
    bed_cancel(&answer);
}

/* A receiver may be gone in the middle of an event. */
static void test_watch_cancelled_inside_its_sink(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    start(bed, "resourceVersion=3", NULL, &answer);
    answer.cancels = true;
    bed_put_map(bed, "c2", NULL, "2");
    bed_run(bed, TD_MILLISECOND);
    assert_null(answer.call);
    assert_int_equal(answer.end_count, 0);
}

/* Many watchers of one kind each see every change. */
static void test_watch_many_see_all(void **state)
{
    struct bed *bed = *state;
    enum { WATCHERS = 200, CHANGES = 50 };
    struct bed_answer *answers = td_alloc_zero(WATCHERS, sizeof(*answers));
    for (size_t i = 0; i < WATCHERS; i++) {
        bed_answer_init(&answers[i]);
        start(bed, "resourceVersion=3", NULL, &answers[i]);
    }
    for (int i = 0; i < CHANGES; i++) {
        bed_put_map(bed, "c2", NULL, "2");
    }
    bed_run(bed, TD_MILLISECOND);
    for (size_t i = 0; i < WATCHERS; i++) {
        assert_string_equal(answers[i].body.ptr, answers[0].body.ptr);
    }
    for (size_t i = 0; i < WATCHERS; i++) {
        bed_cancel(&answers[i]);
        bed_answer_done(&answers[i]);
    }
    td_free(answers);
}

/* What a client holds after the events it got: names and versions, in order of names. */
static const char *held(struct bed *bed, const struct bed_answer *answer)
{
    char versions[CHURN_NAMES][24];
    memset(versions, 0, sizeof(versions));
    td_str body = td_buf_str(&answer->body);
    for (size_t from = 0; from < body.len;) {
        size_t end = td_str_find(body, '\n', from);
        struct td_json *event;
        assert_int_equal(
            td_json_parse(&bed->arena, td_str_slice(body, from, end), NULL, &event, NULL), TD_OK);
        const struct td_json *metadata = td_json_get_path(event, "object.metadata");
        td_str type = td_json_get_str(event, TD_STR("type"), TD_STR_EMPTY);
        td_str name = td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY);
        td_str version = td_json_get_str(metadata, TD_STR("resourceVersion"), TD_STR_EMPTY);
        from = end + 1;
        if (td_str_equal(type, TD_STR("BOOKMARK"))) {
            continue;
        }
        size_t index = (size_t)(name.ptr[1] - 'a');
        assert_true(name.len == 2 && index < CHURN_NAMES);
        bool is_new = versions[index][0] == '\0';
        assert_int_equal(td_str_equal(type, TD_STR("ADDED")), is_new); /* no other order */
        bool is_gone = td_str_equal(type, TD_STR("DELETED"));
        (void)snprintf(versions[index], sizeof(versions[index]), "%.*s",
                       TD_STR_ARG(is_gone ? TD_STR_EMPTY : version));
    }
    td_auto_buf text;
    td_buf_init(&text, 4096);
    for (size_t i = 0; i < CHURN_NAMES; i++) {
        if (versions[i][0] != '\0') {
            (void)td_buf_append_format(&text, "c%c %s, ", (char)('a' + (char)i), versions[i]);
        }
    }
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

static const char *listed(struct bed *bed, const char *query)
{
    bed_auto_answer answer;
    bed_answer_init(&answer);
    char target[256];
    (void)snprintf(target, sizeof(target), "/api/v1/namespaces/default/configmaps?%s", query);
    assert_int_equal(bed_call(bed, "GET", target, NULL, &answer), 200);
    td_auto_buf text;
    td_buf_init(&text, 4096);
    const struct td_json *items = td_json_get(bed_tree(bed, &answer), TD_STR("items"));
    for (const struct td_json *item = td_json_first_child(items); item; item = item->next) {
        const struct td_json *metadata = td_json_get(item, TD_STR("metadata"));
        (void)td_buf_append_format(
            &text, "%.*s %.*s, ",
            TD_STR_ARG(td_json_get_str(metadata, TD_STR("name"), TD_STR_EMPTY)),
            TD_STR_ARG(td_json_get_str(metadata, TD_STR("resourceVersion"), TD_STR_EMPTY)));
    }
    return td_arena_copy_str(&bed->arena, td_buf_str(&text)).ptr;
}

/* Whatever is written and however slowly they read, watchers end up with what a list says. */
static void test_watch_converges_to_the_list(void **state)
{
    static const char *const selectors[] = {"", "labelSelector=x%3D1", "labelSelector=x!%3D1",
                                            "labelSelector=x", "fieldSelector=metadata.name%3Dcc"};
    enum { COUNT = sizeof(selectors) / sizeof(selectors[0]) };
    struct bed *bed = *state;
    bed_drop_map(bed, "c1", "\"x\":\"y\"");
    bed_drop_map(bed, "c2", NULL);
    struct bed_answer answers[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        char query[128];
        (void)snprintf(query, sizeof(query), "allowWatchBookmarks=1&%s", selectors[i]);
        bed_answer_init(&answers[i]);
        start(bed, query, NULL, &answers[i]);
    }
    static const char *const labels[] = {NULL, "\"x\":\"1\"", "\"x\":\"2\""};
    bool is_there[CHURN_NAMES] = {false};
    for (int step = 0; step < 2000; step++) {
        size_t which = random_below(CHURN_NAMES);
        char name[3] = {'c', (char)('a' + (char)which), '\0'};
        const char *label = labels[random_below(3)];
        if (is_there[which] && random_below(4) == 0) {
            bed_drop_map(bed, name, label);
            is_there[which] = false;
        } else {
            bed_put_map(bed, name, label, "v");
            is_there[which] = true;
        }
        struct bed_answer *slow = &answers[random_below(COUNT)];
        slow->full_at = random_below(2) == 0 ? 0 : slow->body.len + 1;
        if (random_below(3) == 0) {
            td_api_resume(slow->call);
        }
        if (random_below(8) == 0) {
            bed_run(bed, TD_MILLISECOND * (td_duration)(1 + random_below(3000)));
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        answers[i].full_at = 0;
        td_api_resume(answers[i].call);
    }
    bed_run(bed, TD_MILLISECOND);
    for (size_t i = 0; i < COUNT; i++) {
        assert_string_equal(held(bed, &answers[i]), listed(bed, selectors[i]));
        bed_cancel(&answers[i]);
        bed_answer_done(&answers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watch_begins_where_it_was_asked),
        cmocka_unit_test_setup_teardown(test_watch_translates_changes_by_selector, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_sees_its_namespace_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_old_path_names_an_object, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_sends_bookmarks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_ends_by_timeout, setup, teardown),
        cmocka_unit_test(test_watch_keeps_its_timeout_on_a_fast_clock),
        cmocka_unit_test_setup_teardown(test_watch_tells_expiry_as_an_event, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_slow_receiver_keeps_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_sends_tables_and_metadata, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_cancelled_inside_its_sink, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_many_see_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_converges_to_the_list, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
