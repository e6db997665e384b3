/* Custom kinds that own pods: run by annotation of their definition, scaled by their scale
 * subresource, with a status at its paths, until the definition says otherwise. */
#include "support/workload_bed.h"

#include "local/kinds/crds.h"

#define DEFINITIONS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define FLEETS "/apis/example.com/v1/namespaces/default/fleets"
#define OCEAN FLEETS "/ocean"
#define FLEET(scope, annotation)                                                                   \
    "{\"metadata\":{\"name\":\"fleets.example.com\",\"annotations\":{" annotation "}},\"spec\":{"  \
    "\"group\":\"example.com\",\"scope\":\"" scope "\",\"names\":{\"plural\":\"fleets\","          \
    "\"kind\":\"Fleet\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"         \
    "\"subresources\":{\"status\":{},\"scale\":{\"specReplicasPath\":\".spec.ships\","             \
    "\"statusReplicasPath\":\".status.afloat\",\"labelSelectorPath\":\".status.selector\"}},"      \
    "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":"     \
    "\"object\",\"x-kubernetes-preserve-unknown-fields\":true},\"status\":{\"type\":\"object\","   \
    "\"properties\":{\"afloat\":{\"type\":\"integer\"},\"readyReplicas\":{\"type\":\"integer\"},"  \
    "\"selector\":{\"type\":\"string\"}}}}}}}]}}"
#define RUNS "\"tandem.dev/workload\":\"pods\""
#define SHIPS(rest)                                                                                \
    "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Fleet\",\"metadata\":{\"name\":\"ocean\"},"     \
    "\"spec\":{\"ships\":2," rest TEMPLATE_OF("{\"sea\":\"north\"}", "i") "}}"

struct fixture {
    void *workload; /* a struct workload_bed */
    struct td_crds *crds;
};

static int setup(void **state)
{
    struct fixture *f = td_alloc_zero(1, sizeof(*f));
    workload_setup(&f->workload);
    struct workload_bed *w = f->workload;
    assert_int_equal(td_crds_new(w->bed.api, NULL, &f->crds, NULL), TD_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    td_crds_free(f->crds);
    workload_teardown(&f->workload);
    td_free(f);
    return 0;
}

static struct bed *bed_of(void **state)
{
    struct fixture *f = *state;
    return &((struct workload_bed *)f->workload)->bed;
}

static void test_custom_kind_owns_pods(void **state)
{
    struct bed *bed = bed_of(state);
    workload_do(bed, "POST", DEFINITIONS, NULL, FLEET("Namespaced", RUNS), 201);
    workload_do(bed, "POST", FLEETS, NULL, SHIPS(""), 201);
    assert_string_equal(workload_count(bed), "2 pods, 0 ready, 0 going");
    td_str pod = workload_name(workload_next_pod(bed, TD_STR_EMPTY));
    td_str path = td_arena_format(&bed->arena, PODS "/%.*s", TD_STR_ARG(pod));
    assert_non_null(strstr(workload_get(bed, path.ptr, "metadata.ownerReferences"),
                           "\"apiVersion\":\"example.com/v1\",\"kind\":\"Fleet\",\"name\":"
                           "\"ocean\""));
    workload_node(bed, 1);
    assert_string_equal(workload_get(bed, OCEAN, "status.afloat"), "2");
    assert_string_equal(workload_get(bed, OCEAN, "status.readyReplicas"), "1");
    assert_string_equal(workload_get(bed, OCEAN, "status.selector"), "sea=north");
    /* What the schema does not know is not written. */
    assert_string_equal(workload_get(bed, OCEAN, "status.observedGeneration"), "nothing");
    assert_string_equal(workload_get(bed, OCEAN "/scale", "status.selector"), "sea=north");
    assert_string_equal(workload_get(bed, OCEAN "/scale", "status.replicas"), "2");
    /* As kubectl scale and an autoscaler do it. */
    workload_do(bed, "PATCH", OCEAN "/scale", MERGE, "{\"spec\":{\"replicas\":4}}", 200);
    assert_string_equal(workload_count(bed), "4 pods, 1 ready, 0 going");
    workload_do(bed, "PATCH", OCEAN "/scale", MERGE, "{\"spec\":{\"replicas\":1}}", 200);
    workload_node(bed, 9);
    assert_string_equal(workload_count(bed), "1 pods, 1 ready, 0 going");
    assert_string_equal(workload_get(bed, OCEAN, "status.afloat"), "1");
    /* A pod that is deleted is replaced, and all go with their owner. */
    pod = workload_name(workload_next_pod(bed, TD_STR_EMPTY));
    path = td_arena_format(&bed->arena, PODS "/%.*s", TD_STR_ARG(pod));
    workload_do(bed, "DELETE", path.ptr, NULL, NULL, 200);
    workload_node(bed, 9);
    assert_string_equal(workload_count(bed), "1 pods, 1 ready, 0 going");
    workload_do(bed, "DELETE", OCEAN, NULL, NULL, 200);
    workload_settle(bed, 1);
    workload_node(bed, 0);
    assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
}

/* A selector of its own, and no number at all: one. */
static void test_custom_kind_has_a_selector(void **state)
{
    struct bed *bed = bed_of(state);
    workload_do(bed, "POST", DEFINITIONS, NULL, FLEET("Namespaced", RUNS), 201);
    workload_do(bed, "POST", FLEETS, NULL,
                "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Fleet\",\"metadata\":{\"name\":"
                "\"ocean\"},\"spec\":{\"selector\":{\"matchExpressions\":[{\"key\":\"sea\","
                "\"operator\":\"Exists\"}]}," TEMPLATE_OF("{\"sea\":\"x\"}", "i") "}}",
                201);
    assert_string_equal(workload_count(bed), "1 pods, 0 ready, 0 going");
    assert_string_equal(workload_get(bed, OCEAN, "status.selector"), "sea");
}

/* What cannot be run is left alone, and nothing breaks. */
static void test_custom_kind_may_be_wrong(void **state)
{
    static const char *const specs[] = {
        "{}",
        "{\"ships\":3}",
        "{\"ships\":\"three\",\"template\":[]}",
        "{\"ships\":-4,\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}}}}",
        "{\"ships\":1,\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":7}}",
        "{\"ships\":1,\"selector\":\"x\",\"template\":{}}",
    };
    struct bed *bed = bed_of(state);
    workload_do(bed, "POST", DEFINITIONS, NULL, FLEET("Namespaced", RUNS), 201);
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        td_str body = td_arena_format(&bed->arena,
                                      "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Fleet\","
                                      "\"metadata\":{\"name\":\"f%zu\"},\"spec\":%s}",
                                      i, specs[i]);
        workload_do(bed, "POST", FLEETS, NULL, body.ptr, 201);
    }
    workload_settle(bed, 1);
    assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
}

/* The annotation may come and go; without it objects are just stored. */
static void test_custom_kind_follows_its_definition(void **state)
{
    struct bed *bed = bed_of(state);
    static const char *const definition = DEFINITIONS "/fleets.example.com";
    workload_do(bed, "POST", DEFINITIONS, NULL, FLEET("Namespaced", ""), 201);
    workload_do(bed, "POST", FLEETS, NULL, SHIPS(""), 201);
    assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
    workload_do(bed, "PATCH", definition, MERGE, "{\"metadata\":{\"annotations\":{" RUNS "}}}",
                200);
    assert_string_equal(workload_count(bed), "2 pods, 0 ready, 0 going");
    workload_do(bed, "PATCH", definition, MERGE,
                "{\"metadata\":{\"annotations\":{\"tandem.dev/workload\":\"other\"}}}", 200);
    workload_do(bed, "PATCH", OCEAN "/scale", MERGE, "{\"spec\":{\"replicas\":5}}", 200);
    assert_string_equal(workload_count(bed), "2 pods, 0 ready, 0 going");
    workload_do(bed, "PATCH", definition, MERGE, "{\"metadata\":{\"annotations\":{" RUNS "}}}",
                200);
    assert_string_equal(workload_count(bed), "5 pods, 0 ready, 0 going");
    workload_do(bed, "DELETE", definition, NULL, NULL, 200);
    workload_settle(bed, 1);
    workload_node(bed, 0);
    assert_string_equal(workload_count(bed), "0 pods, 0 ready, 0 going");
}

int main(void)
{
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        BED_TEST(test_custom_kind_owns_pods),
        BED_TEST(test_custom_kind_has_a_selector),
        BED_TEST(test_custom_kind_may_be_wrong),
        BED_TEST(test_custom_kind_follows_its_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
