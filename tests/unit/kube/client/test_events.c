/* The event recorder: counted, combined, limited and bounded as client-go's correlator does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/os/clock.h"
#include "kube/client/client.h"
#include "kube/client/events.h"
#include "support/fake_transport.h"

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct fake_transport fake;
    struct td_client *client;
    struct td_events *events;
    int patch_status;  /* answers; 0: 200 */
    int create_status; /* 0: 201 */
    bool is_silent;
};

static void bed_answer(void *context, const struct td_call_request *request,
                       struct fake_answer *ret)
{
    struct bed *bed = context;
    bool is_patch = td_str_equal(request->method, TD_STR("PATCH"));
    int status = is_patch ? bed->patch_status : bed->create_status;
    ret->status = status != 0 ? status : is_patch ? 200 : 201;
    ret->is_silent = bed->is_silent;
}

static void bed_init(struct bed *bed)
{
    *bed = (struct bed){.clock = td_clock_virtual(1700000000 * TD_SECOND)};
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, NULL), TD_OK);
    fake_init(&bed->fake, bed->loop, bed_answer, bed);
    bed->client = td_client_new(
        &(struct td_client_options){.loop = bed->loop, .transport = &bed->fake.transport});
    bed->events = td_events_new(&(struct td_events_options){
        .loop = bed->loop,
        .client = bed->client,
        .component = TD_STR("vpa-updater"),
        .host = TD_STR("h"),
    });
}

static void bed_done(struct bed *bed)
{
    td_events_free(bed->events);
    td_client_free(bed->client);
    td_loop_free(bed->loop);
}

static void record(struct bed *bed, const char *pod, const char *reason, const char *message)
{
    td_events_record(bed->events, &(struct td_event){
                                      .api_version = TD_STR("v1"),
                                      .kind = TD_STR("Pod"),
                                      .namespace = TD_STR("web"),
                                      .name = td_str_from(pod),
                                      .uid = TD_STR("u"),
                                      .reason = td_str_from(reason),
                                      .message = td_str_from(message),
                                  });
    assert_int_equal(td_loop_run(bed->loop, NULL), TD_OK);
}

static void bed_log_is(struct bed *bed, const char *want)
{
    assert_string_equal(bed->fake.log.ptr ? bed->fake.log.ptr : "", want);
    td_buf_reset(&bed->fake.log);
    if (bed->fake.log.ptr) {
        bed->fake.log.ptr[0] = '\0';
    }
}

/* The first is an object with everything in it, the next of the same a count. */
static void test_events_are_counted(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    record(&bed, "a", "Evicted", "gone");
    bed_log_is(&bed,
               "POST /api/v1/namespaces/web/events "
               "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"a."
               "17979cfe362a0000\",\"namespace\":\"web\"},\"involvedObject\":{\"kind\":\"Pod\","
               "\"namespace\":\"web\",\"name\":\"a\",\"uid\":\"u\",\"apiVersion\":\"v1\"},"
               "\"reason\":\"Evicted\",\"message\":\"gone\",\"source\":{\"component\":"
               "\"vpa-updater\",\"host\":\"h\"},\"firstTimestamp\":\"2023-11-14T22:13:20Z\","
               "\"lastTimestamp\":\"2023-11-14T22:13:20Z\",\"count\":1,\"type\":\"Normal\","
               "\"eventTime\":null,\"reportingComponent\":\"vpa-updater\",\"reportingInstance\":"
               "\"h\"}\n");
    td_clock_advance(&bed.clock, TD_MINUTE);
    record(&bed, "a", "Evicted", "gone");
    bed_log_is(&bed, "PATCH /api/v1/namespaces/web/events/a.17979cfe362a0000 "
                     "{\"count\":2,\"lastTimestamp\":\"2023-11-14T22:14:20Z\",\"message\":\"gone\"}"
                     "\n");
    /* An object that is gone meanwhile comes back with its count. */
    bed.patch_status = 404;
    record(&bed, "a", "Evicted", "gone");
    assert_non_null(strstr(bed.fake.log.ptr, "PATCH"));
    assert_non_null(strstr(bed.fake.log.ptr, "\nPOST"));
    assert_non_null(strstr(bed.fake.log.ptr, "\"firstTimestamp\":\"2023-11-14T22:13:20Z\""));
    assert_non_null(strstr(bed.fake.log.ptr, "\"count\":3"));
    assert_int_equal(td_events_counts(bed.events).written, 3);
    bed_done(&bed);
}

/* From the tenth message on that differs within ten minutes they are one object. */
static void test_events_that_differ_are_combined(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    char message[32];
    for (int i = 1; i <= 12; i++) {
        td_buf_reset(&bed.fake.log);
        td_clock_advance(&bed.clock, TD_SECOND);
        (void)snprintf(message, sizeof(message), "m%d", i);
        record(&bed, "a", "R", message);
        const char *log = bed.fake.log.ptr;
        assert_int_equal(strncmp(log, i <= 10 ? "POST" : "PATCH", 4), 0);
        (void)snprintf(message, sizeof(message), "similar events): m%d\"", i);
        assert_int_equal(strstr(log, message) != NULL, i >= 10);
    }
    assert_non_null(strstr(bed.fake.log.ptr, "\"count\":3"));
    /* Another reason, and the same one after a quiet time, start again. */
    record(&bed, "a", "Other", "x");
    assert_null(strstr(strstr(bed.fake.log.ptr, "\nPOST"), "combined"));
    td_clock_advance(&bed.clock, 10 * TD_MINUTE + TD_SECOND);
    td_buf_reset(&bed.fake.log);
    record(&bed, "a", "R", "fresh");
    assert_null(strstr(bed.fake.log.ptr, "combined"));
    bed_done(&bed);
}

/* 25 writes of one object at once, then one each five minutes; others have their own. */
static void test_events_of_one_object_are_limited(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    for (int i = 0; i < 100; i++) {
        record(&bed, "a", "R", "m");
    }
    assert_int_equal(bed.fake.starts, 25);
    assert_int_equal(td_events_counts(bed.events).suppressed, 75);
    record(&bed, "b", "R", "m");
    assert_int_equal(bed.fake.starts, 26);
    td_clock_advance(&bed.clock, 5 * TD_MINUTE - TD_SECOND);
    record(&bed, "a", "R", "m");
    assert_int_equal(bed.fake.starts, 26);
    td_clock_advance(&bed.clock, TD_SECOND);
    record(&bed, "a", "R", "m");
    assert_int_equal(bed.fake.starts, 27);
    assert_non_null(strstr(bed.fake.log.ptr, "\"count\":102")); /* those held back count */
    bed_done(&bed);
}

/* A server without an answer: recording goes on, the queue has its cap, the rest is counted. */
static void test_events_never_block(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    bed.is_silent = true;
    char pod[32];
    for (size_t i = 0; i < TD_EVENTS_QUEUE_MAX + 50; i++) {
        (void)snprintf(pod, sizeof(pod), "p%zu", i);
        td_events_record(bed.events,
                         &(struct td_event){.kind = TD_STR("Pod"), .name = td_str_from(pod)});
    }
    assert_int_equal(bed.fake.starts, 1);
    assert_int_equal(td_events_counts(bed.events).dropped, 50);
    bed_done(&bed);
}

/* More objects than the caches hold: the oldest are forgotten, nothing grows. */
static void test_events_forget_the_oldest(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    char pod[32];
    record(&bed, "old", "R", "m");
    for (size_t i = 0; i < TD_EVENTS_CACHE_MAX; i++) {
        (void)snprintf(pod, sizeof(pod), "p%zu", i);
        record(&bed, pod, "R", "m");
    }
    td_buf_reset(&bed.fake.log);
    record(&bed, "old", "R", "m");
    assert_int_equal(strncmp(bed.fake.log.ptr, "POST", 4), 0);
    td_buf_reset(&bed.fake.log);
    record(&bed, pod, "R", "m");
    assert_int_equal(strncmp(bed.fake.log.ptr, "PATCH", 5), 0);
    bed_done(&bed);
}

/* Names that are no DNS names, long messages, cluster-scoped objects, refusals. */
static void test_events_of_odd_objects(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    bed.create_status = 403;
    char message[2000];
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    td_events_record(bed.events, &(struct td_event){
                                     .kind = TD_STR("ClusterRole"),
                                     .name = TD_STR("system:Node"),
                                     .is_warning = true,
                                     .reason = TD_STR("R"),
                                     .message = td_str_from(message),
                                 });
    assert_int_equal(td_loop_run(bed.loop, NULL), TD_OK);
    assert_int_equal(strncmp(bed.fake.log.ptr, "POST /api/v1/namespaces/default/events ", 39), 0);
    assert_non_null(strstr(bed.fake.log.ptr, "\"name\":\"event.17979cfe362a0000\""));
    assert_non_null(strstr(bed.fake.log.ptr, "\"type\":\"Warning\""));
    assert_true(bed.fake.log.len < 1600);
    assert_int_equal(td_events_counts(bed.events).failed, 1);
    td_events_free(NULL);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_are_counted),
        cmocka_unit_test(test_events_that_differ_are_combined),
        cmocka_unit_test(test_events_of_one_object_are_limited),
        cmocka_unit_test(test_events_never_block),
        cmocka_unit_test(test_events_forget_the_oldest),
        cmocka_unit_test(test_events_of_odd_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
