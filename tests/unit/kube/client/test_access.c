/* The preflight of permissions: what is missing is named as a Role names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/os/clock.h"
#include "kube/client/access.h"
#include "support/fake_transport.h"

struct bed {
    struct td_clock clock;
    struct td_loop *loop;
    struct fake_transport fake;
    struct td_client *client;
    int failures; /* so many requests are answered with 500 */
    const char *body;
    int done;
    int code;
    size_t missing;
    char lines[1024];
};

static void bed_answer(void *context, const struct td_call_request *request,
                       struct fake_answer *ret)
{
    struct bed *bed = context;
    bool is_denied = memmem(request->body.ptr, request->body.len, "\"patch\"", 7) != NULL;
    ret->status = bed->failures > 0 ? 500 : 201;
    bed->failures -= bed->failures > 0 ? 1 : 0;
    ret->body = bed->body   ? bed->body
                : is_denied ? "{\"status\":{\"allowed\":false}}"
                            : "{\"status\":{\"allowed\":true}}";
}

static void bed_result(void *context, const struct td_access_result *result)
{
    struct bed *bed = context;
    bed->done++;
    bed->code = result->code;
    bed->missing = result->missing;
    (void)snprintf(bed->lines, sizeof(bed->lines), "%.*s", TD_STR_ARG(result->lines));
}

static void bed_init(struct bed *bed)
{
    *bed = (struct bed){.clock = td_clock_virtual(0)};
    assert_int_equal(td_loop_new(&bed->clock, &bed->loop, NULL), TD_OK);
    fake_init(&bed->fake, bed->loop, bed_answer, bed);
    bed->client = td_client_new(
        &(struct td_client_options){.loop = bed->loop, .transport = &bed->fake.transport});
}

static void bed_done(struct bed *bed)
{
    td_client_free(bed->client);
    td_loop_free(bed->loop);
}

static const struct td_access_rule rules[] = {
    {.verb = TD_STR_INIT("list"), .resource = TD_STR_INIT("pods")},
    {.verb = TD_STR_INIT("patch"),
     .resource = TD_STR_INIT("pods"),
     .subresource = TD_STR_INIT("resize")},
    {.verb = TD_STR_INIT("patch"),
     .group = TD_STR_INIT("apps"),
     .resource = TD_STR_INIT("deployments"),
     .subresource = TD_STR_INIT("scale"),
     .namespace = TD_STR_INIT("web"),
     .name = TD_STR_INIT("shop")},
    {.verb = TD_STR_INIT("get"),
     .group = TD_STR_INIT("apps"),
     .resource = TD_STR_INIT("deployments"),
     .namespace = TD_STR_INIT("web")},
};

/* Rules in their order, groups and subresources as in a Role. */
static void test_access_names_what_is_missing(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    bed.failures = 3; /* questions are asked again */
    (void)td_access_check(bed.client, NULL, rules, 4, bed_result, &bed);
    assert_int_equal(td_loop_run(bed.loop, NULL), TD_OK);
    assert_int_equal(bed.done, 1);
    assert_int_equal(bed.code, TD_OK);
    assert_int_equal(bed.missing, 2);
    assert_string_equal(
        bed.lines,
        "apiGroups: [\"\"], resources: [\"pods/resize\"], verbs: [\"patch\"] (ClusterRole)\n"
        "apiGroups: [\"apps\"], resources: [\"deployments/scale\"], resourceNames: [\"shop\"], "
        "verbs: [\"patch\"] (Role in namespace \"web\")\n");
    assert_non_null(
        strstr(bed.fake.log.ptr,
               "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews "
               "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":"
               "\"SelfSubjectAccessReview\",\"spec\":{\"resourceAttributes\":{"
               "\"verb\":\"patch\",\"group\":\"apps\",\"resource\":\"deployments\","
               "\"subresource\":\"scale\",\"namespace\":\"web\",\"name\":\"shop\"}}}\n"));
    bed_done(&bed);
}

/* No answer is not a missing permission. */
static void test_access_without_answers_is_an_error(void **state)
{
    (void)state;
    static const struct {
        int failures;
        const char *body;
        int code;
    } rows[] = {{1000, NULL, TD_IO}, {0, "{}", TD_INVALID}, {0, "[]", TD_INVALID}};
    for (size_t i = 0; i < 3; i++) {
        struct bed bed;
        bed_init(&bed);
        bed.failures = rows[i].failures;
        bed.body = rows[i].body;
        (void)td_access_check(bed.client, NULL, rules, 2, bed_result, &bed);
        assert_int_equal(td_loop_run(bed.loop, NULL), TD_OK);
        assert_int_equal(bed.done, 1);
        assert_int_equal(bed.code, rows[i].code);
        assert_int_equal(bed.missing, 0);
        bed_done(&bed);
    }
}

/* A cancelled preflight is silent. */
static void test_access_is_cancelled(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    td_access_cancel(td_access_check(bed.client, NULL, rules, 4, bed_result, &bed));
    td_access_cancel(NULL);
    assert_int_equal(td_loop_run(bed.loop, NULL), TD_OK);
    assert_int_equal(bed.done, 0);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access_names_what_is_missing),
        cmocka_unit_test(test_access_without_answers_is_an_error),
        cmocka_unit_test(test_access_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
