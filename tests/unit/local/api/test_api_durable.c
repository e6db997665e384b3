/* On a durable store nothing leaves before it is on disk: answers wait, and none is lost. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/api_objects.h"

struct durable {
    struct bed bed;
    char folder[64];
};

static int setup(void **state)
{
    struct durable *durable = td_alloc_zero(1, sizeof(*durable));
    (void)snprintf(durable->folder, sizeof(durable->folder), "td-test-api-XXXXXX");
    assert_non_null(mkdtemp(durable->folder));
    bed_init_with(&durable->bed, &(struct td_store_options){.data_dir = durable->folder});
    *state = durable;
    return 0;
}

static int teardown(void **state)
{
    struct durable *durable = *state;
    bed_done(&durable->bed);
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", durable->folder);
    assert_int_equal(system(command), 0);
    td_free(durable);
    return 0;
}

/* Every kind of answer waits while a commit is on its way, and comes once it is on disk. */
static void test_answers_wait_for_the_disk(void **state)
{
    static const struct {
        const char *target;
        int status;
        const char *part; /* of the body */
        bool goes_on;
    } rows[] = {
        {"/api/v1/namespaces/default/configmaps/c1", 200, "\"name\":\"c1\"", false},
        {"/api/v1/namespaces/default/configmaps/c1?pretty=1", 200, "\"name\": \"c1\"", false},
        {"/api/v1/namespaces/default/configmaps/none", 404, "not found", false},
        {"/api/v1/configmaps", 200, "\"name\":\"c1\"", false},
        {"/api/v1/configmaps?watch=1", 200, "\"type\":\"ADDED\"", true},
    };
    struct durable *durable = *state;
    struct bed *bed = &durable->bed;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_auto_answer answer;
        bed_answer_init(&answer);
        bed_put_map(bed, "c1", NULL, "1");
        assert_false(td_store_is_durable(bed->store));
        struct bed_request request = {.method = "GET", .target = rows[i].target};
        bed_ask(bed, &request, &answer);
        assert_int_equal(answer.head_count, 0);
        assert_non_null(answer.call);
        bed_run(bed, TD_MILLISECOND);
        assert_int_equal(answer.head_count, 1);
        assert_int_equal(answer.status, rows[i].status);
        assert_non_null(strstr(answer.body.ptr, rows[i].part));
        assert_int_equal(answer.end_count, rows[i].goes_on ? 0 : 1);
        bed_cancel(&answer);
    }
}

/* A client that leaves while its answer waits takes it along. */
static void test_waiting_answers_can_be_cancelled(void **state)
{
    static const char *const targets[] = {"/api/v1/namespaces/default/configmaps/c1",
                                          "/api/v1/configmaps", "/api/v1/configmaps?watch=1"};
    struct durable *durable = *state;
    struct bed *bed = &durable->bed;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        bed_auto_answer answer;
        bed_answer_init(&answer);
        bed_put_map(bed, "c1", NULL, "1");
        struct bed_request request = {.method = "GET", .target = targets[i]};
        bed_ask(bed, &request, &answer);
        bed_cancel(&answer);
        bed_run(bed, TD_MILLISECOND);
        assert_int_equal(answer.head_count, 0);
        assert_int_equal(answer.end_count, 0);
    }
}

/* A watch that began gets what is committed only once it is on disk. */
static void test_watch_sees_what_is_on_disk(void **state)
{
    struct durable *durable = *state;
    struct bed *bed = &durable->bed;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    struct bed_request request = {.method = "GET", .target = "/api/v1/configmaps?watch=1"};
    bed_ask(bed, &request, &answer);
    bed_run(bed, TD_MILLISECOND);
    bed_put_map(bed, "c1", NULL, "1");
    td_api_resume(answer.call);
    assert_int_equal(answer.body.len, 0);
    bed_run(bed, TD_MILLISECOND);
    assert_non_null(strstr(answer.body.ptr, "\"name\":\"c1\""));
    bed_cancel(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers_wait_for_the_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waiting_answers_can_be_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch_sees_what_is_on_disk, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
