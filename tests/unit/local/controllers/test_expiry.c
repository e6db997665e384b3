/*
 * Events that did not happen again for an hour go, others stay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "local/controllers/expiry.h"
#include "support/api_bed.h"

#define EVENTS "/api/v1/namespaces/default/events"

static void create_event(struct bed *bed, const char *name, const char *last)
{
    struct bed_answer answer;
    bed_answer_init(&answer);
    char body[512];
    (void)snprintf(body, sizeof(body),
                   "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},\"involvedObject\":"
                   "{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"a\"},\"reason\":\"R\","
                   "\"lastTimestamp\":%s%s%s}",
                   name, last ? "\"" : "", last ? last : "null", last ? "\"" : "");
    assert_int_equal(bed_call(bed, "POST", EVENTS, body, &answer), 201);
    bed_answer_done(&answer);
}

static size_t count_events(struct bed *bed)
{
    return td_collection_count(td_store_find(bed->store, TD_STR("events")), TD_STR_EMPTY);
}

/* A repeated event lives on from its last time; one without counts from its creation. */
static void test_expiry_deletes_events_after_an_hour(void **state)
{
    (void)state;
    struct bed place;
    struct bed *bed = &place;
    bed_init(bed);
    struct bed_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(bed_call(bed, "POST", "/api/v1/namespaces",
                              "{\"metadata\":{\"name\":\"default\"}}", &answer),
                     201);
    bed_answer_done(&answer);
    struct td_expiry *expiry = td_expiry_new(bed->api);
    create_event(bed, "old", NULL);
    create_event(bed, "repeated", "2023-11-14T22:43:20Z"); /* half an hour after BED_START */
    bed_run(bed, 59 * TD_MINUTE);
    assert_int_equal(count_events(bed), 2);
    bed_run(bed, 3 * TD_MINUTE);
    assert_int_equal(count_events(bed), 1);
    bed_run(bed, 30 * TD_MINUTE);
    assert_int_equal(count_events(bed), 0);
    td_expiry_free(expiry);
    bed_done(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expiry_deletes_events_after_an_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
