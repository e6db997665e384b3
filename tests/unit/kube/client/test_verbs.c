/* Requests of controllers as they go over the wire, and what the answers to evictions mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/limits.h"
#include "kube/client/verbs.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct td_api_path pod = {
    .version = TD_STR_INIT("v1"),
    .namespace = TD_STR_INIT("a"),
    .plural = TD_STR_INIT("pods"),
    .name = TD_STR_INIT("p"),
};

static void request_is(const struct td_client_request *request, const char *want, bool is_twice)
{
    char line[1024];
    (void)snprintf(line, sizeof(line), "%.*s %.*s|%.*s|%.*s", TD_STR_ARG(request->method),
                   TD_STR_ARG(request->path), TD_STR_ARG(request->content_type),
                   TD_STR_ARG(request->body));
    assert_string_equal(line, want);
    assert_int_equal(request->is_idempotent, is_twice);
}

/* Method, path with parameters, content type, body, and whether it may be sent twice. */
static void test_verbs_fill_in_requests(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_client_request request;
    struct td_api_path pods = pod;
    pods.name = TD_STR_EMPTY;
    struct td_api_path resize = pod;
    resize.subresource = TD_STR("resize");
    const struct td_write_options options = {.field_manager = TD_STR("tandem"),
                                             .field_validation = TD_STR("Strict"),
                                             .is_dry_run = true};

    assert_int_equal(td_verb_get(&arena, &pod, &request, NULL), TD_OK);
    request_is(&request, "GET /api/v1/namespaces/a/pods/p||", true);
    assert_int_equal(td_verb_create(&arena, &pods, TD_STR("{}"), NULL, &request, NULL), TD_OK);
    request_is(&request, "POST /api/v1/namespaces/a/pods|application/json|{}", false);
    assert_int_equal(td_verb_update(&arena, &pod, TD_STR("{}"), &options, &request, NULL), TD_OK);
    request_is(&request,
               "PUT /api/v1/namespaces/a/pods/p?fieldManager=tandem&fieldValidation=Strict&dryRun="
               "All|application/json|{}",
               false);
    assert_int_equal(td_verb_patch(&arena, &pod, TD_PATCH_JSON, TD_STR("[]"), NULL, &request, NULL),
                     TD_OK);
    request_is(&request, "PATCH /api/v1/namespaces/a/pods/p|application/json-patch+json|[]", false);
    assert_int_equal(
        td_verb_patch(&arena, &pod, TD_PATCH_MERGE, TD_STR("{}"), NULL, &request, NULL), TD_OK);
    request_is(&request, "PATCH /api/v1/namespaces/a/pods/p|application/merge-patch+json|{}", true);
    assert_int_equal(
        td_verb_patch(&arena, &resize, TD_PATCH_STRATEGIC, TD_STR("{}"), NULL, &request, NULL),
        TD_OK);
    request_is(&request,
               "PATCH /api/v1/namespaces/a/pods/p/resize|application/strategic-merge-patch+json|{}",
               true);
    assert_int_equal(td_verb_apply(&arena, &pod, TD_STR("{}"), true, &options, &request, NULL),
                     TD_OK);
    request_is(&request,
               "PATCH /api/v1/namespaces/a/pods/p?fieldManager=tandem&fieldValidation=Strict&force="
               "true&dryRun=All|application/apply-patch+yaml|{}",
               true);
    assert_int_equal(td_verb_apply(&arena, &pod, TD_STR("{}"), true, NULL, &request, NULL),
                     TD_INVALID);
    struct td_api_path bad = pod;
    bad.name = TD_STR("..");
    assert_int_equal(td_verb_get(&arena, &bad, &request, NULL), TD_INVALID);
}

/* Preconditions, propagation and grace go into the body. */
static void test_verbs_delete_and_evict(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, 1 << 20);
    struct td_client_request request;
    struct td_delete_options options = TD_DELETE_OPTIONS_INIT;
    assert_int_equal(td_verb_delete(&arena, &pod, &options, &request, NULL), TD_OK);
    request_is(
        &request,
        "DELETE /api/v1/namespaces/a/pods/p|application/json|{\"apiVersion\":\"v1\",\"kind\":"
        "\"DeleteOptions\"}",
        false);
    options = (struct td_delete_options){TD_STR("u"), TD_STR("7"), TD_STR("Foreground"), 0, true};
    assert_int_equal(td_verb_delete(&arena, &pod, &options, &request, NULL), TD_OK);
    request_is(
        &request,
        "DELETE /api/v1/namespaces/a/pods/p|application/json|{\"apiVersion\":\"v1\",\"kind\":"
        "\"DeleteOptions\",\"gracePeriodSeconds\":0,\"propagationPolicy\":\"Foreground\","
        "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"dryRun\":[\"All\"]}",
        true);
    options.is_dry_run = false;
    assert_int_equal(td_verb_evict(&arena, TD_STR("a"), TD_STR("p"), &options, &request, NULL),
                     TD_OK);
    request_is(
        &request,
        "POST /api/v1/namespaces/a/pods/p/eviction|application/json|{\"apiVersion\":\"policy/"
        "v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\",\"namespace\":\"a\"},"
        "\"deleteOptions\":{\"apiVersion\":\"policy/v1\",\"kind\":\"DeleteOptions\","
        "\"gracePeriodSeconds\":0,\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}"
        "}}",
        false);
}

/* A budget that says no is not a server with too much to do. */
static void test_verbs_tell_why_an_eviction_failed(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *reason;
        enum td_evict_result want;
    } rows[] = {
        {TD_OK, "", TD_EVICT_DONE},
        {TD_NOT_FOUND, "NotFound", TD_EVICT_GONE},
        {TD_CONFLICT, "Conflict", TD_EVICT_GONE},
        {TD_BUSY, "DisruptionBudget", TD_EVICT_BUDGET},
        {TD_BUSY, "TooManyRequests", TD_EVICT_THROTTLED},
        {TD_IO, "InternalError", TD_EVICT_FAILED},
        {TD_DENIED, "Forbidden", TD_EVICT_FAILED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct td_client_reply reply = {.code = rows[i].code,
                                              .reason = td_str_from(rows[i].reason)};
        assert_int_equal(td_evict_result_of(&reply), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verbs_fill_in_requests),
        cmocka_unit_test(test_verbs_delete_and_evict),
        cmocka_unit_test(test_verbs_tell_why_an_eviction_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
