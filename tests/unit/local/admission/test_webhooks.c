/*
 * Webhooks end to end over TLS: what they are asked, what comes of their answers, and what happens
 * when something goes away while one is being asked.
 */
#include "support/webhook_caller_bed.h"

#include "local/api/api_private.h"
#include "local/engine/faults.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define MAP(name) "{\"metadata\":{\"name\":\"" name "\"}}"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *review_text(struct hook_bed *hooks, size_t index, const char *path)
{
    const struct td_json *node = td_json_get_path(hooks->asked[index], path);
    return td_json_is(node, TD_JSON_TYPE_STRING)
               ? td_arena_copy_str(&hooks->bed.arena, node->text).ptr
               : "";
}

static void expect_text(td_str found, const char *wanted)
{
    if (!td_str_equal(found, td_str_from(wanted))) {
        fail_msg("'%.*s' is not '%s'", TD_STR_ARG(found), wanted);
    }
}

static void expect_message(struct hook_bed *hooks, const struct bed_answer *answer, int status,
                           const char *reason, const char *message)
{
    const char *found = bed_text(&hooks->bed, answer, "message");
    if (answer->status != status || strcmp(found, message) != 0) {
        fail_msg("%d '%s' is not %d '%s'", answer->status, found, status, message);
    }
    assert_string_equal(bed_text(&hooks->bed, answer, "reason"), reason);
}

/* A review says who asks for what, and the patch that comes back is stored. */
static void test_patch_is_applied(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {
        {"/a", "\"allowed\":true,\"warnings\":[\"mind the gap\"]",
         "[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"k\":\"v\"}}]", NULL, 0, 0}};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(hook_send(&hooks, "POST", MAPS "?fieldManager=me", MAP("a"), &answer), 201);
    assert_string_equal(bed_text(&hooks.bed, &answer, "data.k"), "v");
    assert_string_equal(bed_header(&answer, "Warning"), "299 - \"mind the gap\"");
    assert_int_equal(hooks.asked_count, 1);
    assert_string_equal(hooks.asked_path[0], "/a?timeout=10s");
    static const char *const wanted[][2] = {
        {"kind", "AdmissionReview"},
        {"apiVersion", "admission.k8s.io/v1"},
        {"request.kind.kind", "ConfigMap"},
        {"request.kind.version", "v1"},
        {"request.kind.group", ""},
        {"request.requestKind.kind", "ConfigMap"},
        {"request.resource.resource", "configmaps"},
        {"request.requestResource.resource", "configmaps"},
        {"request.name", "a"},
        {"request.namespace", "default"},
        {"request.operation", "CREATE"},
        {"request.userInfo.username", "admin"},
        {"request.object.kind", "ConfigMap"},
        {"request.object.apiVersion", "v1"},
        {"request.object.metadata.name", "a"},
        {"request.options.kind", "CreateOptions"},
        {"request.options.fieldManager", "me"},
    };
    for (size_t i = 0; i < COUNT(wanted); i++) {
        assert_string_equal(review_text(&hooks, 0, wanted[i][0]), wanted[i][1]);
    }
    assert_true(
        td_json_is(td_json_get_path(hooks.asked[0], "request.oldObject"), TD_JSON_TYPE_NULL));
    assert_int_equal(hook_send(&hooks, "GET", MAPS "/a", NULL, &answer), 200);
    assert_string_equal(bed_text(&hooks.bed, &answer, "data.k"), "v");
    assert_int_equal(hooks.asked_count, 1); /* reading calls no webhook */
    hook_done(&hooks);
}

/* Refusals are told in the real server's words. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *response;
        int status;
        const char *reason;
        const char *message;
    } rows[] = {
        {"\"allowed\":false", 400, "",
         "admission webhook \"a.hooks.dev\" denied the request without explanation"},
        {"\"allowed\":false,\"status\":{\"message\":\"no\"}", 400, "",
         "admission webhook \"a.hooks.dev\" denied the request: no"},
        {"\"allowed\":false,\"status\":{\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no\"}",
         403, "Forbidden", "admission webhook \"a.hooks.dev\" denied the request: no"},
        {"\"allowed\":false,\"status\":{\"code\":200,\"reason\":\"Invalid\"}", 400, "Invalid",
         "admission webhook \"a.hooks.dev\" denied the request: Invalid"},
        {"\"allowed\":false,\"status\":{\"code\":599}", 599, "",
         "admission webhook \"a.hooks.dev\" denied the request without explanation"},
        {"\"allowed\":false,\"status\":{\"code\":99999}", 400, "",
         "admission webhook \"a.hooks.dev\" denied the request without explanation"},
    };
    static const char *const kinds[] = {"Mutating", "Validating"};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct hook_script script = {.path = "/a"};
        struct hook_bed hooks;
        hook_init(&hooks, &script, 1);
        hook_configure(&hooks, kinds[k], "one",
                       hook_json(&hooks, "a", "/a", "\"failurePolicy\":\"Ignore\","));
        bed_auto_answer answer;
        bed_answer_init(&answer);
        for (size_t i = 0; i < COUNT(rows); i++) {
            script.response = rows[i].response;
            (void)hook_send(&hooks, "POST", MAPS, MAP("a"), &answer);
            expect_message(&hooks, &answer, rows[i].status, rows[i].reason, rows[i].message);
        }
        assert_int_equal(hook_send(&hooks, "GET", MAPS "/a", NULL, &answer), 404);
        hook_done(&hooks);
    }
}

struct bad_row {
    const char *whole;    /* or */
    const char *response; /* with */
    const char *patch;
    int status;
    const char *message; /* behind the prefix of a failed call, unless is_told_anyway */
    bool is_told_anyway; /* whatever the failurePolicy */
};

#define NO_REVIEW "failed to call webhook: the response is not an AdmissionReview: "

static const struct bad_row bad_rows[] = {
    {"", NULL, NULL, 500, "failed to call webhook: the server answered with status 500", false},
    {"{", NULL, NULL, 0, NULL, false},
    {"{}", NULL, NULL, 0, "received invalid webhook response: webhook response was absent", false},
    {"[]", NULL, NULL, 0, NO_REVIEW "not an object", false},
    {"{\"response\":1}", NULL, NULL, 0, NO_REVIEW "response: 1: must be an object", false},
    {NULL, "\"allowed\":true,\"warnings\":\"mind the gap\"", NULL, 0,
     NO_REVIEW "response.warnings: \"mind the gap\": must be a list", false},
    {NULL, "\"allowed\":\"yes\"", NULL, 0,
     NO_REVIEW "response.allowed: \"yes\": must be true or false", false},
    {NULL, "\"allowed\":true,\"warnings\":7", NULL, 0,
     NO_REVIEW "response.warnings: 7: must be a list", false},
    {NULL, "\"allowed\":true,\"warnings\":{\"a\":\"b\"}", NULL, 0,
     NO_REVIEW "response.warnings: {\"a\":\"b\"}: must be a list", false},
    {NULL, "\"allowed\":true,\"warnings\":[{\"a\":\"b\"}]", NULL, 0,
     NO_REVIEW "response.warnings[0]: {\"a\":\"b\"}: must be a string", false},
    {"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{\"uid\":"
     "\"x\",\"allowed\":true}}",
     NULL, NULL, 0, NULL, false},
    {NULL, "\"allowed\":true,\"patch\":\"W10=\"", NULL, 0,
     "received invalid webhook response: webhook returned response.patch but not "
     "response.patchType",
     false},
    {NULL, "\"allowed\":true,\"patchType\":\"JSONPatch\"", NULL, 0,
     "received invalid webhook response: webhook returned response.patchType but not "
     "response.patch",
     false},
    {NULL, "\"allowed\":true,\"patchType\":\"Merge\",\"patch\":\"e30=\"", NULL, 0,
     "unsupported patch type: only JSONPatch is known", false},
    {NULL, "\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":\"?\"", NULL, 0,
     NO_REVIEW "response.patch: \"?\": must be base64", false},
    {NULL, "\"allowed\":true", "{}", 0,
     "received undecodable patch in webhook response: not an array", false},
    {NULL, "\"allowed\":true", "[{\"op\":\"remove\",\"path\":\"/nope\"}]", 0, NULL, true},
    {NULL, "\"allowed\":true", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", 0,
     "Internal error occurred: the patched text is not an object", true},
};

/* An answer that is no use is a failure: refused with Fail, passed over with Ignore. */
static void test_bad_answers(void **state)
{
    (void)state;
    static const char *const policies[] = {"Fail", "Ignore"};
    for (size_t p = 0; p < COUNT(policies); p++) {
        struct hook_script script = {.path = "/a"};
        struct hook_bed hooks;
        hook_init(&hooks, &script, 1);
        td_str extra = td_arena_format(&hooks.bed.arena, "\"failurePolicy\":\"%s\",", policies[p]);
        hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", extra.ptr));
        bed_auto_answer answer;
        bed_answer_init(&answer);
        for (size_t i = 0; i < COUNT(bad_rows); i++) {
            const struct bad_row *row = &bad_rows[i];
            script = (struct hook_script){.path = "/a",
                                          .response = row->response,
                                          .patch = row->patch,
                                          .whole = row->whole,
                                          .status = row->status};
            bool is_refused = p == 0 || row->is_told_anyway;
            int status = hook_send(&hooks, "POST", MAPS "?dryRun=All", MAP("a"), &answer);
            assert_int_equal(status, is_refused ? 500 : 201);
            if (is_refused && row->message) {
                td_str text = td_arena_format(
                    &hooks.bed.arena, "%s%s",
                    row->is_told_anyway
                        ? ""
                        : "Internal error occurred: failed calling webhook \"a.hooks.dev\": ",
                    row->message);
                expect_message(&hooks, &answer, 500, "InternalError", text.ptr);
            }
        }
        hook_done(&hooks);
    }
}

/* A validating webhook may not send a patch. */
static void test_validating_webhook_cannot_patch(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {{"/a", "\"allowed\":true", "[]", NULL, 0, 0}};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_configure(&hooks, "Validating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    (void)hook_send(&hooks, "POST", MAPS, MAP("a"), &answer);
    expect_message(&hooks, &answer, 500, "InternalError",
                   "Internal error occurred: failed calling webhook \"a.hooks.dev\": received "
                   "invalid webhook response: validating webhook may not return response.patch");
    hook_done(&hooks);
}

/* A webhook that does not answer in its time has failed. */
static void test_timeout(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {{"/a", "\"allowed\":true", NULL, NULL, 0, -1}};
    static const char *const policies[] = {"Fail", "Ignore"};
    for (size_t p = 0; p < COUNT(policies); p++) {
        struct hook_bed hooks;
        hook_init(&hooks, scripts, COUNT(scripts));
        td_str extra = td_arena_format(
            &hooks.bed.arena, "\"timeoutSeconds\":1,\"failurePolicy\":\"%s\",", policies[p]);
        hook_configure(&hooks, "Validating", "one", hook_json(&hooks, "a", "/a", extra.ptr));
        bed_auto_answer answer;
        bed_answer_init(&answer);
        (void)hook_send(&hooks, "POST", MAPS, MAP("a"), &answer);
        if (p == 0) {
            td_str text = td_arena_format(
                &hooks.bed.arena,
                "Internal error occurred: failed calling webhook \"a.hooks.dev\": failed to call "
                "webhook: Post \"https://127.0.0.1:%u/a?timeout=1s\": context deadline exceeded",
                (unsigned)td_http_server_port(hooks.server));
            expect_message(&hooks, &answer, 500, "InternalError", text.ptr);
        } else {
            assert_int_equal(answer.status, 201);
        }
        assert_int_equal(hooks.asked_count, 1);
        hook_done(&hooks);
    }
}

/* A dry run is told to the webhook, and stores nothing. */
static void test_dry_run(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {{"/a", "\"allowed\":true", NULL, NULL, 0, 0}};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(hook_send(&hooks, "POST", MAPS "?dryRun=All", MAP("a"), &answer), 201);
    assert_true(
        td_json_get_bool(td_json_get(hooks.asked[0], TD_STR("request")), TD_STR("dryRun"), false));
    assert_int_equal(hook_send(&hooks, "GET", MAPS "/a", NULL, &answer), 404);
    hook_done(&hooks);
}

/* Who asks to see later changes is asked again, once; the others are not. */
static void test_reinvocation(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *later_patch;
        size_t first_count;
    } rows[] = {
        {"IfNeeded", "[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"k\":\"v\"}}]", 2},
        {"IfNeeded", "[{\"op\":\"test\",\"path\":\"/metadata/name\",\"value\":\"a\"}]", 1},
        {"IfNeeded", NULL, 1},
        {"Never", "[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"k\":\"v\"}}]", 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct hook_script scripts[] = {
            {"/a", "\"allowed\":true", NULL, NULL, 0, 0},
            {"/b", "\"allowed\":true", rows[i].later_patch, NULL, 0, 0},
        };
        struct hook_bed hooks;
        hook_init(&hooks, scripts, COUNT(scripts));
        td_str extra =
            td_arena_format(&hooks.bed.arena, "\"reinvocationPolicy\":\"%s\",", rows[i].policy);
        hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", extra.ptr));
        hook_configure(&hooks, "Mutating", "two", hook_json(&hooks, "b", "/b", extra.ptr));
        bed_auto_answer answer;
        bed_answer_init(&answer);
        assert_int_equal(hook_send(&hooks, "POST", MAPS, MAP("a"), &answer), 201);
        assert_int_equal(hooks.asked_count, rows[i].first_count + 1);
        for (size_t a = 0; a < hooks.asked_count; a++) {
            assert_int_equal(hooks.asked_path[a][1], a == 1 ? 'b' : 'a');
        }
        hook_done(&hooks);
    }
}

/* A container that a webhook puts in gets the defaults of its namespace. */
static void test_plugins_run_again(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {
        {"/a", "\"allowed\":true",
         "[{\"op\":\"add\",\"path\":\"/spec/containers/-\",\"value\":{\"name\":\"side\",\"image\":"
         "\"i\"}}]",
         NULL, 0, 0}};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_make(&hooks, "/api/v1/namespaces/default/limitranges",
              "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"limits\":[{\"type\":\"Container\","
              "\"default\":{\"cpu\":\"1\"}}]}}");
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(hook_send(&hooks, "POST", "/api/v1/namespaces/default/pods",
                               "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":"
                               "\"c\",\"image\":\"i\"}]}}",
                               &answer),
                     201);
    const struct td_json *list = td_json_get_path(bed_tree(&hooks.bed, &answer), "spec.containers");
    assert_int_equal(list->count, 2);
    const struct td_json *side = td_json_first_child(list)->next;
    expect_text(td_json_get_str(side, TD_STR("name"), TD_STR_EMPTY), "side");
    expect_text(td_json_get_path(side, "resources.limits.cpu")->text, "1");
    assert_int_equal(hooks.asked_count, 1); /* its policy is Never */
    hook_done(&hooks);
}

/* Labels that an earlier webhook sets decide whether a later one is asked. */
static void test_selectors_see_the_patched_object(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {
        {"/a", "\"allowed\":true",
         "[{\"op\":\"add\",\"path\":\"/metadata/labels\",\"value\":{\"x\":\"y\"}}]", NULL, 0, 0},
        {"/b", "\"allowed\":true", NULL, NULL, 0, 0},
    };
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    hook_configure(
        &hooks, "Mutating", "two",
        hook_json(&hooks, "b", "/b", "\"objectSelector\":{\"matchLabels\":{\"x\":\"y\"}},"));
    hook_configure(
        &hooks, "Mutating", "zzz",
        hook_json(&hooks, "c", "/c", "\"namespaceSelector\":{\"matchLabels\":{\"x\":\"y\"}},"));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(hook_send(&hooks, "POST", MAPS, MAP("a"), &answer), 201);
    assert_int_equal(hooks.asked_count, 2);
    assert_int_equal(hooks.asked_path[1][1], 'b');
    hook_done(&hooks);
}

/* A rule for one version stands for all, and the webhook sees that version. */
static void test_equivalent_version_is_shown(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        size_t asked;
    } rows[] = {{"Equivalent", 1}, {"Exact", 0}};
    static const struct hook_script scripts[] = {
        {"/a", "\"allowed\":true",
         "[{\"op\":\"replace\",\"path\":\"/spec/metrics/0/resource/target/averageUtilization\","
         "\"value\":42}]",
         NULL, 0, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hook_bed hooks;
        hook_init(&hooks, scripts, COUNT(scripts));
        td_str hook = td_arena_format(
            &hooks.bed.arena,
            "{\"name\":\"a.hooks.dev\",\"matchPolicy\":\"%s\",\"clientConfig\":{\"url\":\"https://"
            "localhost:%u/a\",\"caBundle\":\"%.*s\"},\"rules\":[{\"operations\":[\"CREATE\"],"
            "\"apiGroups\":[\"autoscaling\"],\"apiVersions\":[\"v2\"],\"resources\":["
            "\"horizontalpodautoscalers\"]}],\"sideEffects\":\"None\",\"admissionReviewVersions\":"
            "[\"v1\"]}",
            rows[i].policy, (unsigned)td_http_server_port(hooks.server),
            TD_STR_ARG(hook_bundle(&hooks)));
        hook_configure(&hooks, "Mutating", "one", hook.ptr);
        bed_auto_answer answer;
        bed_answer_init(&answer);
        assert_int_equal(
            hook_send(&hooks, "POST",
                      "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
                      "{\"metadata\":{\"name\":\"h\"},\"spec\":{\"maxReplicas\":3,"
                      "\"targetCPUUtilizationPercentage\":80,\"scaleTargetRef\":{\"kind\":"
                      "\"Deployment\",\"apiVersion\":\"apps/v1\",\"name\":\"d\"}}}",
                      &answer),
            201);
        assert_int_equal(hooks.asked_count, rows[i].asked);
        assert_string_equal(bed_text(&hooks.bed, &answer, "apiVersion"), "autoscaling/v1");
        assert_string_equal(bed_text(&hooks.bed, &answer, "spec.targetCPUUtilizationPercentage"),
                            rows[i].asked > 0 ? "42" : "80");
        if (rows[i].asked > 0) {
            assert_string_equal(review_text(&hooks, 0, "request.kind.version"), "v2");
            assert_string_equal(review_text(&hooks, 0, "request.requestKind.version"), "v1");
            assert_string_equal(review_text(&hooks, 0, "request.object.apiVersion"),
                                "autoscaling/v2");
        }
        hook_done(&hooks);
    }
}

/* A subresource with a kind of its own is shown as that kind. */
static void test_scale_has_its_kind(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {{"/a", "\"allowed\":true", NULL, NULL, 0, 0}};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_make(
        &hooks, "/apis/apps/v1/namespaces/default/deployments",
        "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}}"
        ",\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{"
        "\"name\":\"c\",\"image\":\"i\"}]}}}}");
    hook_configure(&hooks, "Validating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request request = {
        .method = "PATCH",
        .target = "/apis/apps/v1/namespaces/default/deployments/d/scale",
        .content_type = "application/merge-patch+json",
        .body = TD_STR("{\"spec\":{\"replicas\":3}}"),
    };
    assert_int_equal(hook_call(&hooks, &request, &answer), 200);
    assert_int_equal(hooks.asked_count, 1);
    static const char *const wanted[][2] = {
        {"request.kind.group", "autoscaling"},    {"request.kind.kind", "Scale"},
        {"request.resource.group", "apps"},       {"request.resource.resource", "deployments"},
        {"request.subResource", "scale"},         {"request.object.kind", "Scale"},
        {"request.oldObject.kind", "Scale"},      {"request.operation", "UPDATE"},
        {"request.options.kind", "PatchOptions"}, {"request.name", "d"},
    };
    for (size_t i = 0; i < COUNT(wanted); i++) {
        assert_string_equal(review_text(&hooks, 0, wanted[i][0]), wanted[i][1]);
    }
    hook_done(&hooks);
}

static const char *service_hook(struct hook_bed *hooks, const char *name, const char *extra)
{
    return td_arena_format(
               &hooks->bed.arena,
               "{%s\"name\":\"%s.hooks.dev\",\"clientConfig\":{\"service\":{\"namespace\":"
               "\"default\",\"name\":\"hook\",\"path\":\"/a\",\"port\":8443},\"caBundle\":\"%.*s\"}"
               ",\"rules\":[{\"operations\":[\"*\"],\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],"
               "\"resources\":[\"configmaps/*\"]}],\"sideEffects\":\"None\","
               "\"admissionReviewVersions\":[\"v1\"]}",
               extra, name, TD_STR_ARG(hook_bundle(hooks)))
        .ptr;
}

/* A Service leads to its endpoints, and its certificate is for its name. */
static void test_by_service(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {
        {"/a", "\"allowed\":true", "[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"k\":\"v\"}}]",
         NULL, 0, 0}};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_configure(&hooks, "Mutating", "one", service_hook(&hooks, "a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    (void)hook_send(&hooks, "POST", MAPS, MAP("a"), &answer);
    expect_message(&hooks, &answer, 500, "InternalError",
                   "Internal error occurred: failed calling webhook \"a.hooks.dev\": failed to "
                   "call webhook: Post \"https://hook.default.svc:8443/a?timeout=10s\": service "
                   "\"hook\" not found");
    hook_make(&hooks, "/api/v1/namespaces/default/services",
              "{\"metadata\":{\"name\":\"hook\"},\"spec\":{\"ports\":[{\"name\":\"other\",\"port\":"
              "1},{\"name\":\"web\",\"port\":8443,\"targetPort\":9}]}}");
    (void)hook_send(&hooks, "POST", MAPS, MAP("a"), &answer);
    expect_message(&hooks, &answer, 500, "InternalError",
                   "Internal error occurred: failed calling webhook \"a.hooks.dev\": failed to "
                   "call webhook: Post \"https://hook.default.svc:8443/a?timeout=10s\": no "
                   "endpoints available for service \"hook\"");
    td_str endpoints = td_arena_format(
        &hooks.bed.arena,
        "{\"metadata\":{\"name\":\"hook\"},\"subsets\":[{\"notReadyAddresses\":[{\"ip\":"
        "\"192.0.2.1\"}],\"ports\":[{\"port\":1}]},{\"addresses\":[{\"ip\":\"127.0.0.1\"}],"
        "\"ports\":[{\"name\":\"other\",\"port\":1},{\"name\":\"web\",\"port\":%u}]}]}",
        (unsigned)td_http_server_port(hooks.server));
    hook_make(&hooks, "/api/v1/namespaces/default/endpoints", endpoints.ptr);
    (void)hook_send(&hooks, "POST", MAPS, MAP("a"), &answer);
    expect_text(td_str_from(bed_text(&hooks.bed, &answer, "data.k")), "v");
    assert_int_equal(answer.status, 201);
    hook_done(&hooks);
}

/* One that cannot be asked at all, behind one that answers: Fail ends the write, Ignore goes on. */
static void test_unreachable_behind_a_good_one(void **state)
{
    (void)state;
    static const char *const policies[] = {"Fail", "Ignore"};
    static const struct hook_script scripts[] = {{"/a", "\"allowed\":true", NULL, NULL, 0, 0}};
    for (size_t p = 0; p < COUNT(policies); p++) {
        struct hook_bed hooks;
        hook_init(&hooks, scripts, COUNT(scripts));
        td_str extra = td_arena_format(&hooks.bed.arena, "\"failurePolicy\":\"%s\",", policies[p]);
        td_str all =
            td_arena_format(&hooks.bed.arena, "%s,%s,%s,%s", hook_json(&hooks, "a", "/a", ""),
                            service_hook(&hooks, "b", extra.ptr),
                            service_hook(&hooks, "c", extra.ptr), hook_json(&hooks, "d", "/a", ""));
        hook_configure(&hooks, "Mutating", "one", all.ptr);
        bed_auto_answer answer;
        bed_answer_init(&answer);
        assert_int_equal(hook_send(&hooks, "POST", MAPS, MAP("a"), &answer), p == 0 ? 500 : 201);
        assert_int_equal(hooks.asked_count, p == 0 ? 1 : 2);
        hook_done(&hooks);
    }
}

/* A certificate of another authority is not trusted, and no listener at the port is a failure. */
static void test_untrusted_and_absent_servers(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {{"/a", "\"allowed\":true", NULL, NULL, 0, 0}};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    struct td_pki_pair true_ca = hooks.ca;
    td_pki_pair_init(&hooks.ca);
    struct td_instant now = td_time_to_instant(td_clock_wall(&hooks.bed.clock));
    assert_int_equal(td_pki_make_ca(TD_STR("other"), now, &hooks.ca, NULL), TD_OK);
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(hook_send(&hooks, "POST", MAPS, MAP("a"), &answer), 500);
    assert_int_equal(hooks.asked_count, 0);
    td_pki_pair_done(&hooks.ca);
    hooks.ca = true_ca;
    td_http_server_free(hooks.server);
    hooks.server = NULL;
    assert_int_equal(hook_send(&hooks, "POST", MAPS, MAP("a"), &answer), 500);
    hook_done(&hooks);
}

#define HELD                                                                                       \
    {                                                                                              \
        "/a", "\"allowed\":true", "[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"k\":\"v\"}}]", \
            NULL, 0, 1                                                                             \
    }

/* A configuration that goes while its webhook is being asked is followed to the end. */
static void test_configuration_goes_meanwhile(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {HELD};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    bed_auto_answer other;
    bed_answer_init(&other);
    bed_ask(&hooks.bed,
            &(struct bed_request){.method = "POST", .target = MAPS, .body = TD_STR(MAP("a"))},
            &answer);
    hook_wait(&hooks, NULL, 1, HOOK_TURNS);
    assert_int_equal(
        hook_send(&hooks, "DELETE",
                  "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/one", NULL,
                  &other),
        200);
    assert_int_equal(hook_send(&hooks, "POST", MAPS, MAP("b"), &other), 201); /* calls no webhook */
    hook_release(&hooks);
    hook_wait(&hooks, &answer.end_count, 0, HOOK_TURNS);
    assert_int_equal(answer.status, 201);
    assert_string_equal(bed_text(&hooks.bed, &answer, "data.k"), "v");
    hook_done(&hooks);
}

/* A client that goes away takes its write along. */
static void test_client_goes_meanwhile(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {HELD};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    bed_ask(&hooks.bed,
            &(struct bed_request){.method = "POST", .target = MAPS, .body = TD_STR(MAP("a"))},
            &answer);
    hook_wait(&hooks, NULL, 1, HOOK_TURNS);
    bed_cancel(&answer);
    hook_release(&hooks);
    hook_wait(&hooks, NULL, 0, 20);
    assert_int_equal(answer.head_count, 0);
    assert_int_equal(hook_send(&hooks, "GET", MAPS "/a", NULL, &answer), 404);
    hook_done(&hooks);
}

/* Writes that wait for webhooks are finite in number, and one user has half of the places: the next
 * is asked to come back, and another client is served. */
static void test_writes_in_flight_are_finite(void **state)
{
    (void)state;
    enum { ASKED = TD_API_WAITING_COUNT_MAX / 2 + 8 };
    static const struct hook_script scripts[] = {HELD};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    struct bed_answer *answers = td_alloc_zero(ASKED + 1, sizeof(*answers));
    size_t waiting = 0;
    struct bed_request request = {.method = "POST", .target = MAPS, .body = TD_STR(MAP("a"))};
    for (size_t i = 0; i < ASKED; i++) {
        bed_answer_init(&answers[i]);
        bed_ask(&hooks.bed, &request, &answers[i]);
        waiting += answers[i].call != NULL;
    }
    assert_int_equal(waiting, TD_API_WAITING_COUNT_MAX / 2 + 1);
    assert_int_equal(answers[ASKED - 1].status, 429);
    assert_string_equal(bed_header(&answers[ASKED - 1], "Retry-After"), "1");
    struct bed_answer *other = &answers[ASKED];
    bed_answer_init(other);
    const struct td_api_request ask = {
        .method = TD_STR("POST"),
        .target = TD_STR(MAPS),
        .content_type = TD_STR("application/json"),
        .body = TD_STR(MAP("b")),
        .user = {.name = TD_STR("other")},
    };
    other->call = td_api_start(hooks.bed.api, &ask, &bed_sink, other);
    assert_non_null(other->call);
    for (size_t i = 0; i <= ASKED; i++) {
        bed_cancel(&answers[i]);
        bed_answer_done(&answers[i]);
    }
    td_free(answers);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    bed_ask(&hooks.bed, &request, &answer); /* there is room again */
    assert_non_null(answer.call);
    bed_cancel(&answer);
    hook_done(&hooks);
}

/* The handler goes while it waits, once before anything was connected, once in the middle. */
static void test_handler_goes_meanwhile(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {HELD};
    for (size_t asked = 0; asked < 2; asked++) {
        struct hook_bed hooks;
        hook_init(&hooks, scripts, COUNT(scripts));
        hook_configure(&hooks, "Validating", "one", hook_json(&hooks, "a", "/a", ""));
        bed_auto_answer answer;
        bed_answer_init(&answer);
        bed_ask(&hooks.bed,
                &(struct bed_request){.method = "POST", .target = MAPS, .body = TD_STR(MAP("a"))},
                &answer);
        if (asked > 0) {
            hook_wait(&hooks, NULL, asked, HOOK_TURNS);
        }
        hook_done(&hooks);
        assert_int_equal(answer.head_count, 0);
    }
}

/* A write that another one overtakes while it waits is made again on what is there now. */
static void test_overtaken_write_is_made_again(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {{"/a", "\"allowed\":true", NULL, NULL, 0, 1}};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_make(&hooks, MAPS, MAP("a"));
    hook_configure(&hooks, "Validating", "one", hook_json(&hooks, "a", "/a", ""));
    bed_auto_answer answer;
    bed_answer_init(&answer);
    bed_auto_answer other;
    bed_answer_init(&other);
    struct bed_request request = {.method = "PATCH",
                                  .target = MAPS "/a",
                                  .content_type = "application/merge-patch+json",
                                  .body = TD_STR("{\"data\":{\"x\":\"1\"}}")};
    bed_ask(&hooks.bed, &request, &answer);
    hook_wait(&hooks, NULL, 1, HOOK_TURNS);
    request.body = TD_STR("{\"data\":{\"y\":\"2\"}}");
    assert_int_equal(hook_call(&hooks, &request, &other), 200);
    hook_release(&hooks);
    hook_wait(&hooks, &answer.end_count, 0, HOOK_TURNS);
    assert_int_equal(answer.status, 200);
    assert_int_equal(hooks.asked_count, 3);
    assert_string_equal(bed_text(&hooks.bed, &answer, "data.x"), "1");
    assert_string_equal(bed_text(&hooks.bed, &answer, "data.y"), "2");
    hook_done(&hooks);
}

/* A deletion is reviewed with the old object alone, and cannot be patched. */
static void test_deletion(void **state)
{
    (void)state;
    static const struct hook_script scripts[] = {HELD};
    struct hook_bed hooks;
    hook_init(&hooks, scripts, COUNT(scripts));
    hook_make(&hooks, MAPS, MAP("a"));
    hook_configure(&hooks, "Mutating", "one", hook_json(&hooks, "a", "/a", ""));
    hooks.held_so_far = 1;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    (void)hook_send(&hooks, "DELETE", MAPS "/a", NULL, &answer);
    expect_message(&hooks, &answer, 500, "InternalError",
                   "Internal error occurred: admission webhook \"a.hooks.dev\" attempted to modify "
                   "the object, which is not supported for this operation");
    assert_true(td_json_is(td_json_get_path(hooks.asked[0], "request.object"), TD_JSON_TYPE_NULL));
    assert_string_equal(review_text(&hooks, 0, "request.oldObject.metadata.name"), "a");
    assert_string_equal(review_text(&hooks, 0, "request.operation"), "DELETE");
    hook_done(&hooks);
}

/* While webhooks are down, none is called and the failure policy decides. */
static void test_webhooks_are_down(void **state)
{
    (void)state;
    static const char *const policies[] = {"Fail", "Ignore"};
    for (size_t p = 0; p < COUNT(policies); p++) {
        static const struct hook_script scripts[] = {{"/a", "\"allowed\":true", NULL, NULL, 0, 0}};
        struct hook_bed hooks;
        struct td_faults faults = {.are_webhooks_down = true};
        hook_init(&hooks, scripts, COUNT(scripts));
        td_str extra = td_arena_format(&hooks.bed.arena, "\"failurePolicy\":\"%s\",", policies[p]);
        hook_configure(&hooks, "Validating", "one", hook_json(&hooks, "a", "/a", extra.ptr));
        hooks.bed.api->faults = &faults;
        bed_auto_answer answer;
        bed_answer_init(&answer);
        int status = hook_send(&hooks, "POST", MAPS, MAP("a"), &answer);
        assert_int_equal(status, p == 0 ? 500 : 201);
        const char *message = bed_text(&hooks.bed, &answer, "message");
        assert_int_equal(strstr(message, ": connect: connection refused") != NULL, p == 0);
        assert_int_equal(hooks.asked_count, 0);
        faults.are_webhooks_down = false;
        assert_int_equal(hook_send(&hooks, "POST", MAPS, MAP("b"), &answer), 201);
        assert_int_equal(hooks.asked_count, 1);
        hook_done(&hooks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_webhooks_are_down),
        cmocka_unit_test(test_patch_is_applied),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bad_answers),
        cmocka_unit_test(test_validating_webhook_cannot_patch),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_dry_run),
        cmocka_unit_test(test_reinvocation),
        cmocka_unit_test(test_plugins_run_again),
        cmocka_unit_test(test_selectors_see_the_patched_object),
        cmocka_unit_test(test_equivalent_version_is_shown),
        cmocka_unit_test(test_scale_has_its_kind),
        cmocka_unit_test(test_by_service),
        cmocka_unit_test(test_unreachable_behind_a_good_one),
        cmocka_unit_test(test_untrusted_and_absent_servers),
        cmocka_unit_test(test_configuration_goes_meanwhile),
        cmocka_unit_test(test_client_goes_meanwhile),
        cmocka_unit_test(test_handler_goes_meanwhile),
        cmocka_unit_test(test_writes_in_flight_are_finite),
        cmocka_unit_test(test_overtaken_write_is_made_again),
        cmocka_unit_test(test_deletion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
