/* What the answers to a resize mean, what is sent, and how long the webhook's proof is waited for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json/json.h"
#include "control/actuator.h"
#include "kube/client/client.h"

#define ARENA_BYTES ((size_t)1 << 20)

static void test_refusals_are_told_by_causes_and_then_by_words(void **unused)
{
    (void)unused;
    static const struct {
        int code;
        int status;
        const char *reason;
        const char *message;
        enum td_resize_result result;
    } rows[] = {
        {TD_OK, 200, "", "", TD_RESIZE_RESULT_DONE},
        {TD_NOT_FOUND, 404, "NotFound", "no pod", TD_RESIZE_RESULT_GONE},
        {TD_CONFLICT, 409, "Conflict", "another uid", TD_RESIZE_RESULT_GONE},
        {TD_DENIED, 403, "NodeCapacity", "any words", TD_RESIZE_RESULT_CAPACITY},
        {TD_INVALID, 422, "NodeCapacity", "any words", TD_RESIZE_RESULT_FAILED},
        {TD_DENIED, 403, "Forbidden", "pod update requires features A which are not available",
         TD_RESIZE_RESULT_UNFIT},
        {TD_DENIED, 403, "Forbidden", "user may not", TD_RESIZE_RESULT_FAILED},
        {TD_INVALID, 422, "Invalid", "Pod QOS Class may not change as a result of resizing",
         TD_RESIZE_RESULT_UNFIT},
        {TD_INVALID, 422, "Invalid", "must be less than or equal to cpu limit of 1",
         TD_RESIZE_RESULT_UNFIT},
        {TD_INVALID, 422, "Invalid", "Forbidden: pods with pod-level resources cannot be resized",
         TD_RESIZE_RESULT_UNFIT},
        {TD_INVALID, 422, "Invalid", "Forbidden: Pod running on node without support for resize",
         TD_RESIZE_RESULT_UNFIT},
        {TD_INVALID, 422, "Invalid", "only cpu and memory", TD_RESIZE_RESULT_FAILED},
        {TD_IO, 500, "InternalError", "must be less than or equal to", TD_RESIZE_RESULT_FAILED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct td_client_reply reply = {
            .code = rows[i].code, .status = rows[i].status, .reason = td_str_from(rows[i].reason)};
        if (rows[i].code != TD_OK) {
            (void)td_error_set(&reply.err, rows[i].code, "%s", rows[i].message);
        }
        assert_int_equal(td_resize_result_of(&reply), rows[i].result);
    }
}

static void test_requests_name_the_pod_that_was_judged(void **unused)
{
    (void)unused;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_pod pod = {
        .meta = {.namespace = TD_STR("ns"), .name = TD_STR("web-1"), .uid = TD_STR("u-1")}};
    struct td_json *patch = td_json_new_array(&arena);
    struct td_client_request request;
    assert_int_equal(td_actuator_evict(&arena, &pod, &request, NULL), TD_OK);
    assert_true(td_str_equal(request.path, TD_STR("/api/v1/namespaces/ns/pods/web-1/eviction")));
    assert_non_null(memmem(request.body.ptr, request.body.len, "\"u-1\"", strlen("\"u-1\"")));
    assert_int_equal(td_actuator_patch(&arena, &pod, patch, true, NULL, &request, NULL), TD_OK);
    assert_true(td_str_equal(request.path, TD_STR("/api/v1/namespaces/ns/pods/web-1/resize")));
    assert_true(td_str_equal(request.body, TD_STR("[]")));
    assert_int_equal(td_actuator_patch(&arena, &pod, patch, false, NULL, &request, NULL), TD_OK);
    assert_true(td_str_equal(request.path, TD_STR("/api/v1/namespaces/ns/pods/web-1")));
}

struct prover {
    bool is_proved;
    td_duration since;
};

static bool prover_ask(void *context, td_duration since)
{
    struct prover *prover = context;
    prover->since = since;
    return prover->is_proved;
}

static void test_a_proof_is_awaited_so_often_and_then_missing(void **unused)
{
    (void)unused;
    struct td_clock clock = td_clock_virtual(0);
    struct td_webhook_proof proof = {.waits = 0};
    struct prover prover = {.is_proved = false};
    assert_int_equal(td_webhook_proof_ask(&proof, NULL, NULL, &clock, 2), TD_PROOF_SEEN);
    td_clock_advance(&clock, TD_SECOND);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(td_webhook_proof_ask(&proof, prover_ask, &prover, &clock, 2),
                         TD_PROOF_AWAITED);
        assert_int_equal(prover.since, TD_SECOND); /* of the first question */
        td_clock_advance(&clock, TD_SECOND);
    }
    assert_int_equal(td_webhook_proof_ask(&proof, prover_ask, &prover, &clock, 2),
                     TD_PROOF_MISSING);
    assert_int_equal(td_webhook_proof_ask(&proof, prover_ask, &prover, &clock, 2),
                     TD_PROOF_AWAITED);
    prover.is_proved = true;
    assert_int_equal(td_webhook_proof_ask(&proof, prover_ask, &prover, &clock, 2), TD_PROOF_SEEN);
    assert_int_equal(proof.waits, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals_are_told_by_causes_and_then_by_words),
        cmocka_unit_test(test_requests_name_the_pod_that_was_judged),
        cmocka_unit_test(test_a_proof_is_awaited_so_often_and_then_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
