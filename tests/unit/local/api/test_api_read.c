/* Getting and listing through the handler: words of refusals, pages of one snapshot, selectors and
 * forms. Expected texts are those of the real server. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support/api_objects.h"

static int setup(void **state)
{
    struct bed *bed = td_alloc_zero(1, sizeof(*bed));
    bed_init(bed);
    bed_put_map(bed, "c1", "\"x\":\"y\"", "1");
    for (int i = 2; i <= 5; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "c%d", i);
        bed_put_map(bed, name, NULL, "v");
    }
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    bed_done(*state);
    td_free(*state);
    return 0;
}

static void check_body(const struct bed_answer *answer, const char *expected)
{
    assert_string_equal(td_buf_str(&answer->body).ptr, expected);
}

/* What is wrong first is what the client is told, in the real server's words. */
static void test_api_refuses_in_upstreams_words(void **state)
{
    static const struct {
        const char *method;
        const char *target;
        int status;
        const char *message;
    } rows[] = {
        {"GET", "/apis/apps/v1/nothing", 404, "the server could not find the requested resource"},
        {"GET", "/apis/apps/v2/deployments", 404,
         "the server could not find the requested resource"},
        {"GET", "/api/v1/pods/x", 404, "the server could not find the requested resource"},
        {"GET", "/api/v1/namespaces/a/nodes", 404,
         "the server could not find the requested resource"},
        {"GET", "/api/v1/namespaces/a/pods/x/nosub", 404,
         "the server could not find the requested resource"},
        {"GET", "/api/v1/nodes/x/exec", 404, "the server could not find the requested resource"},
        {"GET", "/api/v1/namespaces/a/pods/x", 404, "pods \"x\" not found"},
        {"GET", "/apis/apps/v1/namespaces/a/deployments/x", 404,
         "deployments.apps \"x\" not found"},
        {"POST", "/api/v1/pods", 405,
         "the server does not allow this method on the requested resource"},
        {"PUT", "/api/v1/namespaces/default/pods", 405,
         "the server does not allow this method on the requested resource"},
        {"FOO", "/api/v1/nodes", 405,
         "the server does not allow this method on the requested resource"},
        {"DELETE", "/api/v1/namespaces", 405,
         "the server does not allow this method on the requested resource"},
        {"GET", "/api/v1/pods?limit=abc", 400, "strconv.ParseInt: parsing \"abc\": invalid syntax"},
        {"GET", "/api/v1/pods?limit=99999999999999999999", 400,
         "strconv.ParseInt: parsing \"99999999999999999999\": value out of range"},
        {"GET", "/api/v1/pods?timeoutSeconds=x", 400,
         "strconv.ParseInt: parsing \"x\": invalid syntax"},
        {"GET", "/api/v1/pods?resourceVersion=abc", 400,
         "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: "
         "parsing \"abc\": invalid syntax"},
        {"GET", "/api/v1/pods?resourceVersion=-1", 400,
         "invalid resource version: resourceVersion: Invalid value: \"-1\": strconv.ParseUint: "
         "parsing \"-1\": invalid syntax"},
        {"GET", "/api/v1/pods?resourceVersionMatch=Exact", 422,
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
         "resourceVersionMatch is forbidden unless resourceVersion is provided"},
        {"GET", "/api/v1/pods?resourceVersionMatch=Foo&resourceVersion=5", 422,
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: "
         "\"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\""},
        {"GET", "/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=0", 422,
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
         "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""},
        {"GET", "/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=5&watch=1", 422,
         "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: "
         "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided, "
         "resourceVersionMatch: Unsupported value: \"Exact\": supported values: "
         "\"NotOlderThan\"]"},
        {"GET", "/api/v1/pods?sendInitialEvents=true&watch=1", 422,
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
         "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"},
        {"GET", "/api/v1/pods?sendInitialEvents=true", 422,
         "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
         "sendInitialEvents is forbidden for list"},
        {"GET", "/api/v1/pods?labelSelector=a%20b", 400,
         "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
        {"GET", "/api/v1/pods?fieldSelector=foo", 400,
         "field selector: 'foo' has none of the operators =, == and !="},
        {"GET", "/api/v1/pods?fieldSelector=spec.x%3Dfoo", 400,
         "field label not supported: spec.x"},
        {"GET", "/api/v1/configmaps?fieldSelector=data.x%3Dfoo", 400,
         "\"data.x\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {"GET", "/api/v1/pods?continue=eyJ2IjoieCIsInJ2IjoxLCJzdGFydCI6Ii9hMSJ9", 400,
         "invalid continue token: continue key is not valid: server does not recognize this "
         "encoded "
         "version x"},
        {"POST", "/api/v1/namespaces/default/configmaps?fieldManager=a%0Ab", 422,
         "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\nb\": "
         "invalid character U+000A (at position 1)"},
        {"GET",
         "/api/v1/pods?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MzI2LCJzdGFydCI6Ii9jMlx1"
         "MDAwMCJ9&resourceVersion=5",
         400, "specifying resource version is not allowed when using continue"},
        {"GET", "/api/v1/pods?resourceVersion=99999999", 504,
         "Timeout: Too large resource version: 99999999, current: 6"},
        {"GET", "/api/v1/namespaces/default/configmaps/c1?resourceVersion=99999999", 504,
         "Timeout: Too large resource version: 99999999, current: 6"},
        {"DELETE", "/api/v1/namespaces/default/configmaps/c1?dryRun=foo", 422,
         "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"foo\"]: "
         "supported values: \"All\""},
        {"POST", "/api/v1/namespaces/default/configmaps?dryRun=foo&fieldValidation=x", 422,
         "CreateOptions.meta.k8s.io \"\" is invalid: [dryRun: Unsupported value: [\"foo\"]: "
         "supported values: \"All\", fieldValidation: Unsupported value: \"x\": supported values: "
         "\"\", \"Ignore\", \"Strict\", \"Warn\"]"},
        {"DELETE", "/api/v1/namespaces/default/configmaps/c1?propagationPolicy=Foo", 422,
         "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: "
         "\"Foo\": "
         "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""},
        {"PATCH", "/api/v1/namespaces/default/configmaps/c1?force=true", 422,
         "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for "
         "non-apply patch"},
        {"GET", "/api/v1/pods/%zz", 400, "invalid URL path"},
    };
    struct bed *bed = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_auto_answer answer;
        bed_answer_init(&answer);
        int status = bed_call(bed, rows[i].method, rows[i].target, NULL, &answer);
        if (status != rows[i].status ||
            strcmp(bed_text(bed, &answer, "message"), rows[i].message) != 0) {
            fail_msg("%s %s: %d %s", rows[i].method, rows[i].target, status, answer.body.ptr);
        }
        assert_int_equal(answer.head_count, 1);
        assert_int_equal(answer.end_count, 1);
        assert_null(answer.call);
    }
}

/* A Status has the members of the real one in their order, and its headers. */
static void test_api_status_has_its_details(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    bed_call(bed, "GET", "/apis/apps/v1/namespaces/a/deployments/x", NULL, &answer);
    check_body(&answer,
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
               "\"message\":\"deployments.apps \\\"x\\\" not found\",\"reason\":\"NotFound\","
               "\"details\":{\"name\":\"x\",\"group\":\"apps\",\"kind\":\"deployments\"},"
               "\"code\":404}");
    assert_string_equal(bed_header(&answer, "Content-Type"), "application/json");
    assert_string_equal(bed_header(&answer, "Cache-Control"), "no-cache, private");
    assert_int_equal(strlen(bed_header(&answer, "Audit-Id")), 36);
    bed_call(bed, "GET", "/api/v1/pods?resourceVersion=99", NULL, &answer);
    assert_string_equal(bed_header(&answer, "Retry-After"), "1");
    check_body(&answer,
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
               "\"message\":\"Timeout: Too large resource version: 99, current: 6\","
               "\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
               "\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\"}],"
               "\"retryAfterSeconds\":1},\"code\":504}");
    bed_call(bed, "GET", "/nope", NULL, &answer);
    assert_int_equal(answer.status, 404);
    check_body(&answer, "404 page not found\n");
}

/* An object is given as it is stored; a list leaves out kind and apiVersion of its items. */
static void test_api_gives_what_is_stored(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(
        bed_call(bed, "GET", "/api/v1/namespaces/default/configmaps/c2", NULL, &answer), 200);
    check_body(&answer, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                        "\"c2\",\"namespace\":\"default\",\"uid\":\"u-c2\",\"resourceVersion\":"
                        "\"3\",\"creationTimestamp\":\"2023-11-14T22:13:20Z\"},\"data\":{\"a\":"
                        "\"v\"}}");
    bed_call(bed, "GET", "/api/v1/configmaps?labelSelector=x", NULL, &answer);
    check_body(&answer, "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{"
                        "\"resourceVersion\":\"6\"},\"items\":[{\"metadata\":{\"name\":"
                        "\"c1\",\"namespace\":\"default\",\"uid\":\"u-c1\",\"resourceVersion\":"
                        "\"2\",\"creationTimestamp\":\"2023-11-14T22:13:20Z\",\"labels\":{\"x\":"
                        "\"y\"}},\"data\":{\"a\":\"1\"}}]}");
    bed_call(bed, "GET", "/api/v1/namespaces/other/configmaps", NULL, &answer);
    check_body(&answer, "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{"
                        "\"resourceVersion\":\"6\"},\"items\":[]}");
}

/* Names, continue token and remainingItemCount of a list of ConfigMaps. */
static td_str listed(struct bed *bed, const struct bed_answer *answer)
{
    td_auto_buf told = td_buf_capped(1024);
    const struct td_json *items = td_json_get(bed_tree(bed, answer), TD_STR("items"));
    for (const struct td_json *item = td_json_first_child(items); item; item = item->next) {
        td_str name = td_json_get_path(item, "metadata.name")->text;
        (void)td_buf_append_format(&told, "%.*s ", TD_STR_ARG(name));
    }
    const char *remaining = bed_text(bed, answer, "metadata.remainingItemCount");
    (void)td_buf_append_format(&told, "%s%s", remaining,
                               bed_text(bed, answer, "metadata.continue")[0] ? "..." : "");
    return td_arena_copy_str(&bed->arena, td_buf_str(&told));
}

#define SHARD(lo, hi) "shardRange(object.metadata.namespace,'0x" lo "','0x" hi "')"
#define SHARD_LOW SHARD("0000000000000000", "8000000000000000")
#define SHARD_HIGH SHARD("8000000000000000", "10000000000000000")

/* Shards choose by the namespace's hash, on lists and pages; what remains is counted without them,
 * and the proof stands where upstream's does. The bed's objects are in "default": ebad.... */
static void test_api_lists_a_shard(void **state)
{
    static const struct {
        const char *query;
        const char *accept;
        const char *told;
        const char *proof;
    } rows[] = {
        {"shardSelector=" SHARD_HIGH, NULL, "c1 c2 c3 c4 c5 ",
         "shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')"},
        {"shardSelector=" SHARD_LOW, NULL, "",
         "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')"},
        {"shardSelector=", NULL, "c1 c2 c3 c4 c5 ", ""},
        {"limit=2&shardSelector=" SHARD_HIGH, NULL, "c1 c2 3...",
         "shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')"},
        {"limit=2&labelSelector=!x&shardSelector=" SHARD_HIGH, NULL, "c2 c3 ...",
         "shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')"},
        {"shardSelector=" SHARD_HIGH,
         "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "c1 c2 c3 c4 c5 ", ""},
    };
    struct bed *bed = *state;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        bed_auto_answer answer;
        bed_answer_init(&answer);
        char target[512];
        (void)snprintf(target, sizeof(target), "/api/v1/configmaps?%s", rows[i].query);
        struct bed_request request = {.method = "GET", .target = target, .accept = rows[i].accept};
        bed_ask(bed, &request, &answer);
        assert_int_equal(answer.status, 200);
        assert_string_equal(listed(bed, &answer).ptr, rows[i].told);
        assert_string_equal(bed_text(bed, &answer, "metadata.shardInfo.selector"), rows[i].proof);
    }
}

/* A malformed one is upstream's 500 without a reason, after the other selectors and before the
 * version; a get does not look at it. */
static void test_api_refuses_malformed_shards(void **state)
{
    static const struct {
        const char *query;
        int status;
        const char *message;
    } rows[] = {
        {"?shardSelector=x", 500,
         "invalid shard selector: unexpected expression kind 3; expected shardRange() call or || "
         "operator"},
        {"?watch=1&shardSelector=%20", 500,
         "invalid shard selector: empty shard selector is not allowed; omit the parameter for "
         "unfiltered lists"},
        {"?resourceVersion=x&shardSelector=f()", 500,
         "invalid shard selector: unsupported function \"f\"; only shardRange() and || are "
         "allowed"},
        {"?labelSelector=a%3D((&shardSelector=x", 400,
         "unable to parse requirement: found '(', expected: identifier"},
        {"/c1?shardSelector=x", 200, ""},
    };
    struct bed *bed = *state;
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        bed_auto_answer answer;
        bed_answer_init(&answer);
        char target[256];
        (void)snprintf(target, sizeof(target), "/api/v1/namespaces/default/configmaps%s",
                       rows[i].query);
        assert_int_equal(bed_call(bed, "GET", target, NULL, &answer), rows[i].status);
        assert_string_equal(bed_text(bed, &answer, "message"), rows[i].message);
        assert_string_equal(bed_text(bed, &answer, "reason"),
                            rows[i].status == 400 ? "BadRequest" : "");
    }
}

/* Selectors choose; a limit counts what matches. */
static void test_api_lists_what_is_selected(void **state)
{
    static const struct {
        const char *query;
        const char *names;
        bool has_more;
        const char *remaining;
    } rows[] = {
        {"", "c1 c2 c3 c4 c5 ", false, ""},
        {"limit=0", "c1 c2 c3 c4 c5 ", false, ""},
        {"limit=-1", "c1 c2 c3 c4 c5 ", false, ""},
        {"limit=2", "c1 c2 ", true, "3"},
        {"limit=5", "c1 c2 c3 c4 c5 ", false, ""},
        {"labelSelector=x%3Dy", "c1 ", false, ""},
        {"labelSelector=!x", "c2 c3 c4 c5 ", false, ""},
        {"labelSelector=!x&limit=2", "c2 c3 ", true, ""},
        {"labelSelector=!x&limit=4", "c2 c3 c4 c5 ", false, ""},
        {"fieldSelector=metadata.name%3Dc3", "c3 ", false, ""},
        {"fieldSelector=metadata.name!%3Dc3", "c1 c2 c4 c5 ", false, ""},
        {"fieldSelector=metadata.namespace%3Dother", "", false, ""},
        {"fieldSelector=metadata.name%3Dc1&labelSelector=!x", "", false, ""},
        {"resourceVersion=0", "c1 c2 c3 c4 c5 ", false, ""},
        {"resourceVersion=3&resourceVersionMatch=NotOlderThan", "c1 c2 c3 c4 c5 ", false, ""},
        {"resourceVersion=3&resourceVersionMatch=Exact", "c1 c2 ", false, ""},
        {"resourceVersion=4&limit=1", "c1 ", true, "2"},
    };
    struct bed *bed = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_auto_answer answer;
        bed_answer_init(&answer);
        char target[256];
        (void)snprintf(target, sizeof(target), "/api/v1/configmaps?%s", rows[i].query);
        assert_int_equal(bed_call(bed, "GET", target, NULL, &answer), 200);
        const struct td_json *tree = bed_tree(bed, &answer);
        char names[256] = "";
        for (const struct td_json *item = td_json_first_child(td_json_get(tree, TD_STR("items")));
             item; item = item->next) {
            td_str name = td_json_get_path(item, "metadata.name")->text;
            size_t used = strlen(names);
            (void)snprintf(names + used, sizeof(names) - used, "%.*s ", TD_STR_ARG(name));
        }
        if (strcmp(names, rows[i].names) != 0 ||
            (td_json_get_path(tree, "metadata.continue") != NULL) != rows[i].has_more ||
            strcmp(bed_text(bed, &answer, "metadata.remainingItemCount"), rows[i].remaining) != 0) {
            fail_msg("%s: %s", rows[i].query, answer.body.ptr);
        }
    }
}

static void next_target(struct bed *bed, const struct bed_answer *answer, char target[512])
{
    (void)snprintf(target, 512, "/api/v1/configmaps?limit=2&continue=%s",
                   bed_text(bed, answer, "metadata.continue"));
}

/* The pages of one list are one snapshot, whatever is written between them. */
static void test_api_pages_are_one_snapshot(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    char target[512];
    bed_call(bed, "GET", "/api/v1/configmaps?limit=2", NULL, &answer);
    assert_string_equal(bed_text(bed, &answer, "metadata.resourceVersion"), "6");
    next_target(bed, &answer, target);
    bed_put_map(bed, "c25", NULL, "new");
    bed_put_map(bed, "c4", NULL, "changed");
    bed_drop_map(bed, "c3", NULL);
    bed_call(bed, "GET", target, NULL, &answer);
    assert_string_equal(bed_text(bed, &answer, "metadata.resourceVersion"), "6");
    assert_string_equal(bed_text(bed, &answer, "metadata.remainingItemCount"), "1");
    assert_non_null(strstr(answer.body.ptr, "\"name\":\"c3\""));
    assert_non_null(strstr(answer.body.ptr, "\"name\":\"c4\""));
    assert_null(strstr(answer.body.ptr, "changed"));
    assert_null(strstr(answer.body.ptr, "c25"));
    next_target(bed, &answer, target);
    bed_call(bed, "GET", target, NULL, &answer);
    assert_non_null(strstr(answer.body.ptr, "\"name\":\"c5\""));
    assert_string_equal(bed_text(bed, &answer, "metadata.continue"), "");
}

/* A snapshot that is gone is a 410; its token goes on with the newest state. */
static void test_api_expired_page_can_go_on(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    char target[512];
    bed_call(bed, "GET", "/api/v1/configmaps?limit=2", NULL, &answer);
    next_target(bed, &answer, target);
    bed_put_map(bed, "c6", NULL, "new");
    td_store_compact(bed->store, td_store_version(bed->store));
    assert_int_equal(bed_call(bed, "GET", target, NULL, &answer), 410);
    assert_string_equal(bed_text(bed, &answer, "reason"), "Expired");
    next_target(bed, &answer, target);
    assert_int_equal(bed_call(bed, "GET", target, NULL, &answer), 200);
    assert_string_equal(bed_text(bed, &answer, "metadata.resourceVersion"), "7");
    assert_non_null(strstr(answer.body.ptr, "\"name\":\"c3\""));
    assert_int_equal(bed_call(bed, "GET",
                              "/api/v1/configmaps?resourceVersion=3&resourceVersionMatch=Exact",
                              NULL, &answer),
                     410);
    assert_string_equal(bed_text(bed, &answer, "message"),
                        "The resourceVersion for the provided list is too old.");
}

struct form_row {
    const char *target;
    const char *accept;
    int status;
    const char *type;
    const char *body;
};

/* Each form that a client can ask for, of one object and of a list. */
static void test_api_gives_each_form(void **state)
{
#define META                                                                                       \
    "\"metadata\":{\"name\":\"c2\",\"namespace\":\"default\",\"uid\":\"u-c2\",\"resourceVersion\"" \
    ":\"3\",\"creationTimestamp\":\"2023-11-14T22:13:20Z\"}"
#define PARTIAL "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\"," META "}"
#define ONE "/api/v1/namespaces/default/configmaps/c2"
#define LIST "/api/v1/configmaps?fieldSelector=metadata.name%3Dc2"
    static const struct form_row rows[] = {
        {ONE, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", 200,
         "application/json", PARTIAL},
        {LIST, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 200,
         "application/json",
         "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
         "\"resourceVersion\":\"6\"},\"items\":[" PARTIAL "]}"},
        {LIST, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", 406,
         "application/json", NULL},
        {ONE, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 406,
         "application/json", NULL},
        {ONE, "text/html", 406, "application/json", NULL},
        {ONE, "application/yaml", 200, "application/yaml",
         "apiVersion: v1\ndata:\n  a: v\nkind: ConfigMap\nmetadata:\n  creationTimestamp: "
         "\"2023-11-14T22:13:20Z\"\n  name: c2\n  namespace: default\n  resourceVersion: \"3\"\n"
         "  uid: u-c2\n"},
        {LIST, "application/yaml", 200, "application/yaml",
         "apiVersion: v1\nitems:\n- data:\n    a: v\n  metadata:\n    creationTimestamp: "
         "\"2023-11-14T22:13:20Z\"\n    name: c2\n    namespace: default\n    resourceVersion: "
         "\"3\"\n    uid: u-c2\nkind: ConfigMapList\nmetadata:\n  resourceVersion: \"6\"\n"},
        {LIST "&pretty=true", "application/json", 200, "application/json",
         "{\n  \"kind\": \"ConfigMapList\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    "
         "\"resourceVersion\": \"6\"\n  },\n  \"items\": [\n    {\n      \"metadata\": {\n        "
         "\"name\": \"c2\",\n        \"namespace\": \"default\",\n        \"uid\": \"u-c2\",\n     "
         "   \"resourceVersion\": \"3\",\n        \"creationTimestamp\": "
         "\"2023-11-14T22:13:20Z\"\n      },\n      \"data\": {\n        \"a\": \"v\"\n      }\n "
         "   }\n  ]\n}"},
        {LIST "&includeObject=Foo", "application/json;as=Table;g=meta.k8s.io;v=v1", 400,
         "application/json", NULL},
    };
    struct bed *bed = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_auto_answer answer;
        bed_answer_init(&answer);
        struct bed_request request = {
            .method = "GET", .target = rows[i].target, .accept = rows[i].accept};
        bed_ask(bed, &request, &answer);
        if (answer.status != rows[i].status ||
            strcmp(bed_header(&answer, "Content-Type"), rows[i].type) != 0 ||
            (rows[i].body && strcmp(answer.body.ptr, rows[i].body) != 0)) {
            fail_msg("row %zu: %d %s", i, answer.status, answer.body.ptr);
        }
    }
}

/* A Table has rows of cells, and of each object as much as was asked for. */
static void test_api_tables_have_rows(void **state)
{
    static const struct {
        const char *include;
        const char *kind;
    } rows[] = {{"", "PartialObjectMetadata"},
                {"&includeObject=Metadata", "PartialObjectMetadata"},
                {"&includeObject=Object", "ConfigMap"},
                {"&includeObject=None", NULL}};
    struct bed *bed = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_auto_answer answer;
        bed_answer_init(&answer);
        char target[128];
        (void)snprintf(target, sizeof(target), "/api/v1/configmaps?limit=2%s", rows[i].include);
        struct bed_request request = {.method = "GET",
                                      .target = target,
                                      .accept = "application/json;as=Table;v=v1;g=meta.k8s.io"};
        bed_ask(bed, &request, &answer);
        const struct td_json *table = bed_tree(bed, &answer);
        assert_string_equal(bed_text(bed, &answer, "kind"), "Table");
        assert_string_equal(bed_text(bed, &answer, "metadata.remainingItemCount"), "3");
        const struct td_json *columns = td_json_get(table, TD_STR("columnDefinitions"));
        const struct td_json *first = td_json_first_child(td_json_get(table, TD_STR("rows")));
        assert_int_equal(td_json_get(table, TD_STR("rows"))->count, 2);
        assert_int_equal(td_json_get(first, TD_STR("cells"))->count, columns->count);
        assert_true(td_str_equal(td_json_first_child(td_json_get(first, TD_STR("cells")))->text,
                                 TD_STR("c1")));
        const struct td_json *object = td_json_get(first, TD_STR("object"));
        if (rows[i].kind) {
            assert_true(td_str_equal(td_json_get_str(object, TD_STR("kind"), TD_STR_EMPTY),
                                     td_str_from(rows[i].kind)));
        } else {
            assert_true(td_json_is(object, TD_JSON_TYPE_NULL));
        }
    }
}

/* A receiver that is full gets no more until it has room, and then all of the list. */
static void test_api_list_waits_for_its_receiver(void **state)
{
    struct bed *bed = *state;
    char large[2048];
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    char rest[2200];
    (void)snprintf(rest, sizeof(rest), ",\"data\":{\"a\":\"%s\"}", large);
    for (int i = 0; i < 100; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "big-%03d", i);
        const struct bed_object object = {"configmaps", "v1", "ConfigMap", "default",
                                          name,         NULL, rest};
        bed_commit(bed, &object, false);
    }
    bed_auto_answer whole;
    bed_answer_init(&whole);
    bed_call(bed, "GET", "/api/v1/configmaps", NULL, &whole);
    assert_int_equal(td_json_get(bed_tree(bed, &whole), TD_STR("items"))->count, 105);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    answer.full_at = 10000;
    bed_call(bed, "GET", "/api/v1/configmaps", NULL, &answer);
    int turns = 0;
    while (answer.call && turns < 1000) {
        assert_true(answer.body.len <= answer.full_at + 4096);
        answer.full_at += 10000;
        turns++;
        td_api_resume(answer.call);
    }
    assert_true(turns > 10);
    assert_int_equal(answer.end_count, 1);
    assert_string_equal(answer.body.ptr, whole.body.ptr);
    answer.full_at = 10000;
    bed_call(bed, "GET", "/api/v1/configmaps", NULL, &answer);
    bed_cancel(&answer); /* nothing is lost or used afterwards: the sanitizers look */
    assert_int_equal(answer.end_count, 0);
}

/* Programs behind which there is nothing are refused in one sentence. */
static void test_api_refuses_processes(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_object pod = {"pods", "v1", "Pod", "default", "web", NULL, ",\"spec\":{}"};
    bed_commit(bed, &pod, false);
    assert_int_equal(bed_call(bed, "GET", "/api/v1/namespaces/default/pods/web/log", NULL, &answer),
                     400);
    assert_non_null(strstr(answer.body.ptr, "log of pods"));
    assert_int_equal(
        bed_call(bed, "POST", "/api/v1/namespaces/default/pods/none/exec", NULL, &answer), 404);
}

/* A client that takes OpenAPI v2 in protobuf alone gets a document that it can read. */
static void test_api_openapi_v2_for_protobuf_readers(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request request = {
        .method = "GET",
        .target = "/openapi/v2",
        .accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    };
    bed_ask(bed, &request, &answer);
    assert_int_equal(answer.status, 200);
    /* A media type with '@' cannot be parsed by Go's clients. */
    assert_string_equal(bed_header(&answer, "Content-Type"),
                        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    assert_int_equal(answer.body.len, 23);
    assert_memory_equal(answer.body.ptr,
                        "\x0a\x03"
                        "2.0\x12\x10",
                        7);
    assert_int_equal(bed_call(bed, "GET", "/openapi/v2", NULL, &answer), 200);
    assert_non_null(bed_tree(bed, &answer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_api_refuses_in_upstreams_words, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_status_has_its_details, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_gives_what_is_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_lists_what_is_selected, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_lists_a_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_refuses_malformed_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_pages_are_one_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_expired_page_can_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_gives_each_form, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_tables_have_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_list_waits_for_its_receiver, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_refuses_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_api_openapi_v2_for_protobuf_readers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
