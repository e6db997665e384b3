/* PATCH in its four media types and the scale subresource, through the handler. Texts and codes are
 * the real server's; where that one answers 500 to a bad patch, ours is a 400. */
#include "support/api_script.h"

#define DEPLOYMENT                                                                                 \
    "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":0,\"selector\":{\"matchLabels\":"       \
    "{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":"               \
    "{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}"
#define APPLIED(rest) "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"" rest "}"
#define REJECTED "the server rejected our request due to an error in our request"

static int setup(void **state)
{
    (void)script_setup(state);
    static const struct step steps[] = {
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"1\"}}", 201, NULL,
         NULL},
        {"POST", DEPLOYMENTS, NULL, DEPLOYMENT, 201, NULL, NULL},
    };
    RUN(*state, steps);
    return 0;
}

static void test_patch_changes_what_it_says(void **state)
{
    static const struct step steps[] = {
        {"PATCH", MAPS "/a", MERGE, "{\"data\":{\"y\":\"2\"}}", 200, "data",
         "{\"x\":\"1\",\"y\":\"2\"}"},
        {"PATCH", MAPS "/a", MERGE, "{\"data\":{\"x\":null}}", 200, "data", "{\"y\":\"2\"}"},
        {"PATCH", MAPS "/a", JSON_PATCH, "[{\"op\":\"add\",\"path\":\"/data/z\",\"value\":\"3\"}]",
         200, "data.z", "3"},
        {"PATCH", MAPS "/a", JSON_PATCH, "[{\"op\":\"remove\",\"path\":\"/kind\"}]", 200, "kind",
         "ConfigMap"},
        {"PATCH", DEPLOYMENTS "/d", STRATEGIC,
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"s\",\"image\":\"j\"}]}}}}",
         200, "metadata.generation", "2"},
        {"PATCH", DEPLOYMENTS "/d", STRATEGIC,
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"s\",\"$patch\":"
         "\"delete\"}]}}}}",
         200, "metadata.generation", "3"},
        {"PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"managedFields\":[]}}", 200,
         "metadata.managedFields", NULL},
        {"PATCH", MAPS "/none", MERGE, "{}", 404, "message", "configmaps \"none\" not found"},
    };
    RUN(*state, steps);
}

/* Every bad patch is a 4xx and changes nothing. */
static void test_patch_refuses_odd_ones(void **state)
{
    struct bed *bed = *state;
    struct script_watch watch;
    script_watch(bed, "configmaps", &watch);
    static const struct step steps[] = {
        {"PATCH", MAPS "/a", "application/foo", "{}", 415, "message",
         "415: Unsupported Media Type"},
        {"PATCH", MAPS "/a", NULL, "{}", 415, "reason", "UnsupportedMediaType"},
        {"PATCH", MAPS "/a", MERGE, NULL, 400, "message",
         "error decoding patch: unexpected end of JSON input"},
        {"PATCH", MAPS "/a", MERGE, "{", 400, "reason", "BadRequest"},
        {"PATCH", MAPS "/a", MERGE, "[]", 400, "message",
         "error decoding patch: json: cannot unmarshal array into Go value of type "
         "map[string]interface {}"},
        {"PATCH", MAPS "/a", MERGE, "{\"data\":3}", 422, "reason", "Invalid"},
        {"PATCH", MAPS "/a", MERGE, "{\"kind\":\"Secret\"}", 422, "reason", "Invalid"},
        {"PATCH", MAPS "/a", MERGE, "{\"apiVersion\":\"v3\"}", 422, "reason", "Invalid"},
        {"PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"name\":\"z\"}}", 400, "message",
         "the name of the object (z) does not match the name on the URL (a)"},
        {"PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"namespace\":\"z\"}}", 400, "reason",
         "BadRequest"},
        {"PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"uid\":\"z\"}}", 422, "message",
         "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"z\": field is immutable"},
        {"PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"resourceVersion\":\"1\"}}", 409, "reason",
         "Conflict"},
        {"PATCH", MAPS "/a?force=true", MERGE, "{}", 422, "message",
         "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for "
         "non-apply patch"},
        {"PATCH", MAPS "/a?fieldValidation=Strict", MERGE, "{\"foo\":3}", 422, "reason", "Invalid"},
        {"PATCH", MAPS "/a", JSON_PATCH, "{}", 400, "message",
         "error decoding patch: json: cannot unmarshal object into Go value of type "
         "[]handlers.jsonPatchOp"},
        {"PATCH", MAPS "/a", JSON_PATCH, "[3]", 400, "reason", "BadRequest"},
        {"PATCH", MAPS "/a", JSON_PATCH, "[{\"op\":\"foo\"}]", 422, "message", REJECTED},
        {"PATCH", MAPS "/a", JSON_PATCH, "[{\"op\":\"remove\",\"path\":\"/data/zz\"}]", 422,
         "message", REJECTED},
        {"PATCH", MAPS "/a", JSON_PATCH, "[{\"op\":\"test\",\"path\":\"/data/x\",\"value\":\"2\"}]",
         422, "message", REJECTED},
        {"PATCH", MAPS "/a", JSON_PATCH, "[{\"op\":\"replace\",\"path\":\"\",\"value\":3}]", 422,
         "message", REJECTED},
        {"PATCH", MAPS "/a", STRATEGIC, "[]", 400, "message",
         "json: cannot unmarshal array into Go value of type map[string]interface {}"},
        {"PATCH", MAPS "/a", STRATEGIC, "{\"$patch\":\"foo\"}", 400, "reason", "BadRequest"},
        {"PATCH", MAPS "/a", STRATEGIC, "{\"$patch\":\"delete\"}", 400, "message",
         "the name of the object (a based on URL) was undeterminable: name must be provided"},
        {"PATCH", MAPS "/a", STRATEGIC, "{\"$retainKeys\":3}", 400, "reason", "BadRequest"},
        {"PATCH", MAPS "/a", STRATEGIC, "{\"metadata\":{\"finalizers\":[{\"x\":1}]}}", 422,
         "reason", "Invalid"},
    };
    RUN(bed, steps);
    assert_string_equal(script_changes(bed, &watch), "");
    td_watch_close(&watch.cursor);
}

/* Server-side apply makes objects, owns what it says and stands up for what others own. */
static void test_patch_applies(void **state)
{
    static const struct step steps[] = {
        {"PATCH", MAPS "/s", APPLY, APPLIED(""), 422, "message",
         "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for "
         "apply patch"},
        {"PATCH", MAPS "/s?fieldManager=m", APPLY, APPLIED(",\"data\":{\"x\":\"1\"}"), 400,
         "message",
         "the name of the object (s based on URL) was undeterminable: name must be provided"},
        {"PATCH", MAPS "/s?fieldManager=m", APPLY,
         APPLIED(",\"metadata\":{\"name\":\"s\"},\"data\":{\"x\":\"1\",\"y\":\"1\"}"), 201,
         "metadata.managedFields",
         "[{\"manager\":\"m\",\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"time\":"
         "\"2023-11-14T22:13:20Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\"f:x\":"
         "{},\"f:y\":{}}}}]"},
        {"PATCH", MAPS "/s?fieldManager=m", APPLY, APPLIED(",\"data\":{\"x\":\"1\"}"), 200, "data",
         "{\"x\":\"1\"}"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY, APPLIED(",\"data\":{\"x\":\"2\"}"), 409,
         "message", "Apply failed with 1 conflict: conflict with \"m\": .data.x"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY, APPLIED(",\"data\":{\"x\":\"2\"}"), 409,
         "details",
         "{\"causes\":[{\"reason\":\"FieldManagerConflict\",\"message\":\"conflict with "
         "\\\"m\\\"\",\"field\":\".data.x\"}]}"},
        {"PATCH", MAPS "/s?fieldManager=n&force=true", APPLY, APPLIED(",\"data\":{\"x\":\"2\"}"),
         200, "data.x", "2"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY, "{\"kind\":\"ConfigMap\"}", 400, "message",
         "invalid object type: /, Kind=ConfigMap"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", 400,
         "message", "invalid object type: /v1, Kind=Pod"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY, APPLIED(",\"foo\":1"), 400, "message",
         "failed to create typed patch object (default/s; /v1, Kind=ConfigMap): .foo: field not "
         "declared in schema"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY,
         APPLIED(",\"metadata\":{\"managedFields\":[{}]}"), 400, "message",
         "metadata.managedFields must be nil"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY,
         APPLIED(",\"metadata\":{\"resourceVersion\":\"1\"}"), 409, "reason", "Conflict"},
        {"PATCH", MAPS "/new?fieldManager=n", APPLY, APPLIED(",\"metadata\":{\"uid\":\"1\"}"), 409,
         "message",
         "Operation cannot be fulfilled on configmaps \"new\": uid mismatch: the provided object "
         "specified uid 1, and no existing object was found"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY, "a: b: c", 400, "reason", "BadRequest"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY, "[]", 400, "reason", "BadRequest"},
        {"PATCH", MAPS "/s?fieldManager=n", APPLY, NULL, 400, "message",
         "invalid object type: /, Kind="},
        {"PATCH", DEPLOYMENTS "/d/status?fieldManager=c", APPLY,
         "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"spec\":{\"replicas\":9},"
         "\"status\":{\"replicas\":2}}",
         200, "spec.replicas", "0"},
        {"GET", DEPLOYMENTS "/d", NULL, NULL, 200, "status.replicas", "2"},
    };
    RUN(*state, steps);
}

#define SCALE(rest) "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\"," rest "}"

/* A Scale is a view of its object: it writes replicas and nothing else. */
static void test_scale_reads_and_writes_replicas(void **state)
{
    struct bed *bed = *state;
    struct script_watch watch;
    script_watch(bed, "deployments.apps", &watch);
    static const struct step steps[] = {
        {"GET", DEPLOYMENTS "/d/scale", NULL, NULL, 200, "status",
         "{\"replicas\":0,\"selector\":\"a=b\"}"},
        {"GET", DEPLOYMENTS "/d/scale", NULL, NULL, 200, "spec", "{}"},
        {"GET", DEPLOYMENTS "/x/scale", NULL, NULL, 404, "message",
         "deployments.apps \"x\" not found"},
        {"PUT", DEPLOYMENTS "/d/scale", NULL,
         SCALE("\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":1}"), 200, "spec.replicas",
         "1"},
        {"PUT", DEPLOYMENTS "/d/scale", NULL,
         SCALE("\"metadata\":{\"name\":\"d\",\"resourceVersion\":\"1\"}"), 409, "reason",
         "Conflict"},
        {"PUT", DEPLOYMENTS "/d/scale", NULL, SCALE("\"metadata\":{\"name\":\"e\"}"), 400,
         "message", "the name of the object (e) does not match the name on the URL (d)"},
        {"PUT", DEPLOYMENTS "/d/scale", NULL,
         SCALE("\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":-1}"), 422, "message",
         "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater "
         "than or equal to 0"},
        {"PUT", DEPLOYMENTS "/d/scale", NULL, "{\"kind\":\"Deployment\"}", 400, "reason",
         "BadRequest"},
        {"PATCH", DEPLOYMENTS "/d/scale", MERGE, "{\"spec\":{\"replicas\":2}}", 200,
         "spec.replicas", "2"},
        {"PATCH", DEPLOYMENTS "/d/scale", MERGE, "{\"spec\":{\"replicas\":\"x\"}}", 422, "reason",
         "Invalid"},
        {"PATCH", DEPLOYMENTS "/d/scale", JSON_PATCH,
         "[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":3}]", 200, "kind", "Scale"},
        {"PATCH", DEPLOYMENTS "/d/scale?fieldManager=q", APPLY,
         SCALE("\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":5}"), 409, "message",
         "Apply failed with 1 conflict: conflict with \"bed\" with subresource \"scale\" using "
         "apps/v1: .spec.replicas"},
        {"PATCH", DEPLOYMENTS "/d/scale?fieldManager=q&force=true", APPLY,
         SCALE("\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":5}"), 200, "spec.replicas",
         "5"},
        {"GET", DEPLOYMENTS "/d", NULL, NULL, 200, "metadata.generation", "5"},
    };
    RUN(bed, steps);
    assert_string_equal(script_changes(bed, &watch),
                        "MODIFIED d, MODIFIED d, MODIFIED d, MODIFIED d");
    td_watch_close(&watch.cursor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_patch_changes_what_it_says, setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_patch_refuses_odd_ones, setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_patch_applies, setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_scale_reads_and_writes_replicas, setup,
                                        script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
