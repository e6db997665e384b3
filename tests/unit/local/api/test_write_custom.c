/* Writes of custom resources through the handler: what their definition allows, its scale and its
 * status. Texts and codes are the real server's. */
#include "support/api_script.h"

#include "local/kinds/crds.h"

#define FOOS "/apis/ex.io/v1/namespaces/default/foos"
#define FOO(rest) "{\"kind\":\"Foo\",\"apiVersion\":\"ex.io/v1\"," rest "}"

#define BARS "/apis/ex.io/v1/namespaces/default/bars"
#define BAR(rest) "{\"kind\":\"Bar\",\"apiVersion\":\"ex.io/v1\"," rest "}"

static const char definition[] =
    "{\"metadata\":{\"name\":\"foos.ex.io\"},\"spec\":{\"group\":\"ex.io\",\"names\":{\"plural\":"
    "\"foos\",\"kind\":\"Foo\",\"singular\":\"foo\",\"listKind\":\"FooList\"},\"scope\":"
    "\"Namespaced\",\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"
    "\"subresources\":{\"status\":{},\"scale\":{\"specReplicasPath\":\".spec.replicas\","
    "\"statusReplicasPath\":\".status.replicas\",\"labelSelectorPath\":\".status.sel\"}},"
    "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":"
    "\"object\",\"properties\":{\"replicas\":{\"type\":\"integer\"},\"l\":{\"type\":\"array\","
    "\"items\":{\"type\":\"string\"}}}},\"status\":{\"type\":\"object\",\"properties\":{"
    "\"replicas\":{\"type\":\"integer\"},\"sel\":{\"type\":\"string\"}}}}}}}]}}";

struct custom_bed {
    struct bed *bed;
    struct td_crds *crds;
};

static int setup(void **state)
{
    struct custom_bed *custom = td_alloc_zero(1, sizeof(*custom));
    void *bed = NULL;
    (void)script_setup(&bed);
    custom->bed = bed;
    assert_int_equal(td_crds_new(custom->bed->api, NULL, &custom->crds, NULL), TD_OK);
    const struct step steps[] = {
        {"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", NULL, definition, 201,
         NULL, NULL},
    };
    RUN(custom->bed, steps);
    td_crds_sync(custom->crds);
    *state = custom;
    return 0;
}

static int teardown(void **state)
{
    struct custom_bed *custom = *state;
    td_crds_free(custom->crds);
    void *bed = custom->bed;
    (void)script_teardown(&bed);
    td_free(custom);
    return 0;
}

static void test_write_custom_resources(void **state)
{
    struct custom_bed *custom = *state;
    static const struct step steps[] = {
        {"POST", FOOS, NULL, "{\"metadata\":{\"name\":\"f\"}}", 400, "message",
         "the object provided is unrecognized (must be of type Foo): Object 'Kind' is missing in "
         "'{\"metadata\":{\"name\":\"f\"}}' ({\"metadata\":{\"name\":\"f\"}})"},
        {"POST", FOOS, NULL, "{\"kind\":\"Foo\",\"metadata\":{\"name\":\"f\"}}", 400, "message",
         "the API version in the data () does not match the expected API version (ex.io/v1)"},
        {"POST", FOOS, "application/vnd.kubernetes.protobuf", "k8s", 415, "reason",
         "UnsupportedMediaType"},
        {"POST", FOOS, NULL, FOO("\"metadata\":{\"name\":\"f\"},\"spec\":{\"x\":1}"), 201, "spec",
         "{}"},
        {"PATCH", FOOS "/f", STRATEGIC, "{}", 415, "message",
         "the body of the request was in an unknown format - accepted media types include: "
         "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"},
        {"PATCH", FOOS "/f", MERGE, "{\"spec\":{\"l\":[\"a\"]},\"status\":{\"replicas\":3}}", 200,
         "status", NULL},
        {"GET", FOOS "/f", NULL, NULL, 200, "metadata.generation", "2"},
        {"PATCH", FOOS "/f/status", MERGE,
         "{\"spec\":{\"l\":[\"b\"]},\"status\":{\"replicas\":3,\"sel\":\"a=b\"}}", 200, "spec.l",
         "[\"a\"]"},
        {"PUT", FOOS "/f", NULL, FOO("\"metadata\":{\"name\":\"f\"}"), 422, "message",
         "foos.ex.io \"f\" is invalid: metadata.resourceVersion: Invalid value: 0: must be "
         "specified for an update"},
        {"PUT", FOOS "/f/scale", NULL,
         "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"name\":\"f\"},"
         "\"spec\":{\"replicas\":2}}",
         200, "status", "{\"replicas\":3,\"selector\":\"a=b\"}"},
        {"GET", FOOS "/f", NULL, NULL, 200, "spec.replicas", "2"},
        {"GET", FOOS "/f", NULL, NULL, 200, "metadata.generation", "3"},
        {"PATCH", FOOS "/g?fieldManager=m", APPLY,
         FOO("\"metadata\":{\"name\":\"g\"},\"spec\":{\"l\":[\"z\"]}"), 201, "spec.l", "[\"z\"]"},
        {"PATCH", FOOS "/f", MERGE, "{\"spec\":{\"replicas\":\"x\"}}", 422, "message",
         "Foo.ex.io \"f\" is invalid: spec.replicas: Invalid value: \"string\": spec.replicas in "
         "body "
         "must be of type integer: \"string\""},
        {"POST", FOOS, NULL, FOO("\"metadata\":{\"name\":\"g\"},\"spec\":{\"replicas\":true}"), 422,
         "details.causes",
         "[{\"reason\":\"FieldValueTypeInvalid\",\"message\":\"Invalid value: \\\"boolean\\\": "
         "spec.replicas in body must be of type integer: \\\"boolean\\\"\",\"field\":"
         "\"spec.replicas\"}]"},
        {"POST", FOOS, NULL, FOO("\"metadata\":{\"name\":\"g\",\"labels\":3}"), 400, "reason",
         "BadRequest"},
        {"DELETE", FOOS "/f", NULL, NULL, 200, "status", "Success"},
    };
    RUN(custom->bed, steps);
}

/* Defaults of the schema are set at every level, and set again after a client removes them. */
#define PATTERN_DEFINITION(schema)                                                                 \
    "{\"metadata\":{\"name\":\"bads.ex.io\"},\"spec\":{\"group\":\"ex.io\",\"names\":{"            \
    "\"plural\":\"bads\",\"kind\":\"Bad\",\"singular\":\"bad\",\"listKind\":\"BadList\"},"         \
    "\"scope\":"                                                                                   \
    "\"Namespaced\",\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"  \
    "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"," schema  \
    "}}}}}]}}"
#define PATTERN_AT "spec.validation.openAPIV3Schema.properties[a]."
#define NO_PATTERN "must be a valid regular expression, but isn't: "

/* A definition with a pattern that is no regular expression is refused, wherever the pattern is;
 * the one with ten to the thirtieth empty groups is judged as fast as any other. */
static void test_write_custom_patterns_are_checked(void **state)
{
    struct custom_bed *custom = *state;
    static const char *const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const struct step steps[] = {
        {"POST", crds, NULL, PATTERN_DEFINITION("\"pattern\":\"[z-a]\""), 422, "message",
         "CustomResourceDefinition.apiextensions.k8s.io \"bads.ex.io\" is invalid: " PATTERN_AT
         "pattern: Invalid value: \"[z-a]\": " NO_PATTERN
         "pattern '[z-a]': a range that ends before it begins at byte 4"},
        {"POST", crds, NULL, PATTERN_DEFINITION("\"anyOf\":[{},{\"pattern\":\"x**\"}]"), 422,
         "message",
         "CustomResourceDefinition.apiextensions.k8s.io \"bads.ex.io\" is invalid: " PATTERN_AT
         "anyOf[1].pattern: Invalid value: \"x**\": " NO_PATTERN
         "pattern 'x**': a repeat of a repeat at byte 3"},
        {"POST", crds, NULL,
         PATTERN_DEFINITION("\"pattern\":\"((((((((((){1000}){1000}){1000}){1000}){1000}){1000}){"
                            "1000}){1000}){1000}){1000}\""),
         422, "reason", "Invalid"},
        {"POST", crds, NULL, PATTERN_DEFINITION("\"pattern\":\"^\\\\p{L}$\""), 201, NULL, NULL},
    };
    RUN(custom->bed, steps);
}

static void test_write_custom_defaults(void **state)
{
    struct custom_bed *custom = *state;
    static const struct step define[] = {
        {"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", NULL,
         "{\"metadata\":{\"name\":\"bars.ex.io\"},\"spec\":{\"group\":\"ex.io\",\"names\":{"
         "\"plural\":"
         "\"bars\",\"kind\":\"Bar\"},\"scope\":\"Namespaced\",\"versions\":[{\"name\":\"v1\","
         "\"served\":"
         "true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
         "\"properties\":{"
         "\"spec\":{\"type\":\"object\",\"default\":{},\"properties\":{\"c\":{\"type\":\"string\","
         "\"default\":\"red\"},\"n\":{\"type\":\"integer\",\"nullable\":true,\"default\":3},\"l\":{"
         "\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"p\":{\"type\":"
         "\"string\","
         "\"default\":\"TCP\"}}}},\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
         "\"object\",\"properties\":{\"q\":{\"type\":\"boolean\",\"default\":true}}}}}}}}}}]}}",
         201, NULL, NULL},
    };
    static const struct step steps[] = {
        {"POST", BARS, NULL, BAR("\"metadata\":{\"name\":\"a\"}"), 201, "spec",
         "{\"c\":\"red\",\"n\":3}"},
        {"POST", BARS, NULL, BAR("\"metadata\":{\"name\":\"b\"},\"spec\":{\"c\":null,\"n\":null}"),
         201, "spec", "{\"c\":\"red\",\"n\":null}"},
        {"POST", BARS, NULL,
         BAR("\"metadata\":{\"name\":\"c\"},\"spec\":{\"c\":\"x\",\"n\":1,\"l\":[{},{\"p\":\"UDP\"}"
             "],"
             "\"m\":{\"k\":{}}}"),
         201, "spec",
         "{\"c\":\"x\",\"n\":1,\"l\":[{\"p\":\"TCP\"},{\"p\":\"UDP\"}],\"m\":{\"k\":{\"q\":true}}"
         "}"},
        {"PATCH", BARS "/c", MERGE, "{\"spec\":{\"c\":null}}", 200, "spec.c", "red"},
        {"PATCH", BARS "/d?fieldManager=m", APPLY, BAR("\"metadata\":{\"name\":\"d\"}"), 201,
         "spec.c", "red"},
    };
    RUN(custom->bed, define);
    td_crds_sync(custom->crds);
    RUN(custom->bed, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_custom_patterns_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_custom_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_custom_resources, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
