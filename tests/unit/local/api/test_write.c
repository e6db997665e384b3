/* Creating and updating whole objects through the handler: words of refusals, what the server fills
 * in, versions, generations, ownership and strictness. Texts and codes are the real server's; where
 * that one answers 500 to a bad request, ours is a 400. */
#include "local/api/api_private.h"
#include "support/api_script.h"

#define CANNOT "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "
#define UNRECOGNIZED "the object provided is unrecognized (must be of type ConfigMap): "
#define DEPLOYMENT(name, image)                                                                    \
    "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"" name           \
    "\"},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{"     \
    "\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\","           \
    "\"image\":\"" image "\"}]}}},\"status\":{\"replicas\":7}}"

/* A body that is no object of the kind is a 400 or a 415, in the real server's words. */
static void test_write_refuses_bodies_it_cannot_read(void **state)
{
    static const struct step steps[] = {
        {"POST", MAPS, NULL, NULL, 400, "message",
         UNRECOGNIZED "couldn't get version/kind; json parse error: unexpected end of JSON input "
                      "(<empty>)"},
        {"POST", MAPS, NULL, "   ", 400, "reason", "BadRequest"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"x", 400, "reason", "BadRequest"},
        {"POST", MAPS, NULL, "[]", 400, "message",
         UNRECOGNIZED "couldn't get version/kind; json parse error: json: cannot unmarshal array "
                      "into Go value (5b5d)"},
        {"POST", MAPS, NULL, "\"x\"", 400, "reason", "BadRequest"},
        {"POST", MAPS, NULL, "null", 422, "message",
         "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is "
         "required"},
        {"POST", MAPS, "application/foo", "{}", 415, "message",
         "the body of the request was in an unknown format - accepted media types include: "
         "application/json, application/yaml, application/vnd.kubernetes.protobuf"},
        {"POST", MAPS, "application/yaml", "a: b: c", 400, "reason", "BadRequest"},
        {"POST", MAPS, "application/vnd.kubernetes.protobuf", "{}", 400, "reason", "BadRequest"},
        {"POST", MAPS, NULL, "{\"kind\":\"Secret\",\"apiVersion\":\"v1\"}", 400, "message",
         "Secret in version \"v1\" cannot be handled as a ConfigMap: it is no ConfigMap of version "
         "\"v1\""},
        {"POST", MAPS, NULL, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v2\"}", 400, "message",
         "the API version in the data (v2) does not match the expected API version (v1)"},
        {"POST", MAPS, NULL, "{\"metadata\":3}", 400, "message",
         CANNOT "metadata: 3: must be an object"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"w\"},\"data\":{\"x\":1}}", 400, "message",
         CANNOT "data.x: 1: must be a string"},
    };
    RUN(*state, steps);
}

static void test_write_takes_bodies_of_several_types(void **state)
{
    static const struct step steps[] = {
        {"POST", MAPS, "Application/JSON; charset=utf-8", "{\"metadata\":{\"name\":\"a\"}}", 201,
         "metadata.name", "a"},
        {"POST", MAPS, "application/yaml", "metadata:\n  name: b\ndata: {k: v}\n", 201, "data.k",
         "v"},
        {"POST", MAPS, "", "{\"metadata\":{\"name\":\"c\"}}", 201, "kind", "ConfigMap"},
    };
    RUN(*state, steps);
}

/* No parameter is passed over: a dry run is one at the last place that is read, and a query with
 * more is refused and writes nothing. */
static void test_write_reads_every_parameter_or_none(void **state)
{
    static const struct {
        int before;
        int status;
    } rows[] = {{63, 201}, {64, 400}, {65, 400}, {500, 400}};
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char target[4096];
        int used = snprintf(target, sizeof(target), "%s?", MAPS);
        for (int k = 0; k < rows[i].before; k++) {
            used += snprintf(target + used, sizeof(target) - (size_t)used, "x=%d&", k % 10);
        }
        (void)snprintf(target + used, sizeof(target) - (size_t)used, "dryRun=All");
        const char *body = "{\"metadata\":{\"name\":\"dry\"}}";
        assert_int_equal(bed_call(bed, "POST", target, body, &answer), rows[i].status);
        assert_int_equal(bed_call(bed, "GET", MAPS "/dry", NULL, &answer), 404);
    }
}

/* Unknown and duplicate fields are refused, warned about or passed over, as the client asks. */
static void test_write_is_as_strict_as_asked(void **state)
{
    struct bed *bed = *state;
    static const char odd[] = "{\"metadata\":{\"name\":\"w\",\"foo\":1},\"datax\":{\"x\":\"1\"},"
                              "\"datax\":3,\"data\":{},\"data\":{}}";
    static const struct step steps[] = {
        {"POST", MAPS "?fieldValidation=Strict", NULL, odd, 400, "message",
         CANNOT "strict decoding error: unknown field \"metadata.foo\", unknown field \"datax\", "
                "duplicate field \"data\""},
        {"POST", MAPS "?fieldValidation=Stric", NULL, odd, 422, "message",
         "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: "
         "\"Stric\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""},
    };
    RUN(bed, steps);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(bed_call(bed, "POST", MAPS "?fieldValidation=Ignore&dryRun=All", odd, &answer),
                     201);
    assert_null(bed_header(&answer, "Warning"));
    assert_int_equal(bed_call(bed, "POST", MAPS, odd, &answer), 201);
    assert_string_equal(bed_header(&answer, "Warning"),
                        "299 - \"unknown field \\\"metadata.foo\\\"\"");
    assert_null(script_at(bed, &answer, "datax"));
}

/* Where an object goes is the path's business, and names must agree with it. */
static void test_write_checks_names_and_places(void **state)
{
    static const struct step steps[] = {
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"a\"}}", 201, "metadata.namespace",
         "default"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"a\"}}", 409, "message",
         "configmaps \"a\" already exists"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"a\"}}", 409, "details",
         "{\"name\":\"a\",\"kind\":\"configmaps\"}"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"b\",\"namespace\":\"x\"}}", 400, "message",
         "the namespace of the provided object does not match the namespace sent on the request"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"3\"}}", 400,
         "message", "resourceVersion should not be set on objects to be created"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"Bad_Name\"}}", 422, "reason", "Invalid"},
        {"POST", "/api/v1/namespaces", NULL, "{\"metadata\":{\"name\":\"n\",\"namespace\":\"x\"}}",
         201, "metadata.namespace", NULL},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"b\"}}", 400, "message",
         "the name of the object (b) does not match the name on the URL (a)"},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{}}", 400, "message",
         "the name of the object (a based on URL) was undeterminable: name must be provided"},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"o\"}}", 400,
         "message",
         "the namespace of the provided object does not match the namespace sent on the request"},
        {"PUT", MAPS "/x", NULL, "{\"metadata\":{\"name\":\"x\"}}", 404, "message",
         "configmaps \"x\" not found"},
    };
    RUN(*state, steps);
}

/* What only the server knows is filled in and what a client says of it is forgotten. */
static void test_write_fills_in_metadata(void **state)
{
    static const struct step steps[] = {
        {"POST", MAPS, NULL,
         "{\"metadata\":{\"name\":\"a\",\"uid\":\"mine\",\"creationTimestamp\":"
         "\"2001-01-01T00:00:00Z\",\"deletionTimestamp\":\"2001-01-01T00:00:00Z\",\"selfLink\":"
         "\"/x\",\"generation\":7}}",
         201, "metadata.creationTimestamp", "2023-11-14T22:13:20Z"},
        {"GET", MAPS "/a", NULL, NULL, 200, "metadata.deletionTimestamp", NULL},
        {"GET", MAPS "/a", NULL, NULL, 200, "metadata.selfLink", NULL},
        {"POST", MAPS, NULL, "{\"metadata\":{\"generateName\":\"g-\"}}", 201,
         "metadata.generateName", "g-"},
        {"PUT", MAPS "/a", NULL,
         "{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2001-01-01T00:00:00Z\"}}", 200,
         "metadata.creationTimestamp", "2023-11-14T22:13:20Z"},
    };
    RUN(*state, steps);
}

static void test_write_generates_names_of_five_letters(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    assert_int_equal(
        bed_call(bed, "POST", MAPS, "{\"metadata\":{\"generateName\":\"gen-\"}}", &answer), 201);
    const char *name = bed_text(bed, &answer, "metadata.name");
    assert_int_equal(strlen(name), strlen("gen-") + 5);
    assert_memory_equal(name, "gen-", 4);
    static const char longest[] =
        "{\"metadata\":{\"generateName\":\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
        "ffffffffffgggggggggg\"}}";
    assert_int_equal(bed_call(bed, "POST", MAPS, longest, &answer), 201);
    assert_int_equal(strlen(bed_text(bed, &answer, "metadata.name")), 63);
}

/* An update names the version it replaces, or none where the kind allows that. */
static void test_write_compares_versions(void **state)
{
    static const char leases[] = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    static const struct step steps[] = {
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"a\"}}", 201, NULL, NULL},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}", 409,
         "message",
         "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please "
         "apply your changes to the latest version and try again"},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"abc\"}}", 400,
         "reason", "BadRequest"},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"-1\"}}", 400,
         "reason", "BadRequest"},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"0\"}}", 200,
         NULL, NULL},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\",\"uid\":\"x\"}}", 409, "reason",
         "Conflict"},
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}", 200,
         "data.k", "v"},
        {"PUT", leases, NULL, "{\"metadata\":{\"name\":\"l\"}}", 201, "kind", "Lease"},
        {"PUT", leases, NULL, "{\"metadata\":{\"name\":\"l\"}}", 422, "message",
         "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: "
         "must be specified for an update"},
    };
    RUN(*state, steps);
}

/* A write that changes nothing is none: same version, no event; a dry run neither. */
static void test_write_tells_of_changes_only(void **state)
{
    struct bed *bed = *state;
    struct script_watch watch;
    script_watch(bed, "configmaps", &watch);
    static const struct step first[] = {
        {"POST", MAPS "?dryRun=All", NULL, "{\"metadata\":{\"name\":\"a\"}}", 201, "kind",
         "ConfigMap"},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}", 201, NULL,
         NULL},
    };
    RUN(bed, first);
    assert_string_equal(script_changes(bed, &watch), "ADDED a");
    static const struct step second[] = {
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}", 200,
         NULL, NULL},
        {"PATCH", MAPS "/a", MERGE, "{\"data\":{\"k\":\"v\"}}", 200, NULL, NULL},
        {"PATCH", MAPS "/a?dryRun=All", MERGE, "{\"data\":{\"k\":\"w\"}}", 200, "data.k", "w"},
        {"DELETE", MAPS "/a?dryRun=All", NULL, NULL, 200, "status", "Success"},
    };
    RUN(bed, second);
    assert_string_equal(script_changes(bed, &watch), "");
    static const struct step third[] = {
        {"PUT", MAPS "/a", NULL, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"w\"}}", 200,
         NULL, NULL},
        {"DELETE", MAPS "/a", NULL, NULL, 200, NULL, NULL},
    };
    RUN(bed, third);
    assert_string_equal(script_changes(bed, &watch), "MODIFIED a, DELETED a");
    td_watch_close(&watch.cursor);
}

/* Status has its own face, and the generation counts changes of the spec. */
static void test_write_keeps_spec_and_status_apart(void **state)
{
    static const struct step steps[] = {
        {"POST", DEPLOYMENTS, NULL, DEPLOYMENT("d", "i"), 201, "status", "{}"},
        {"GET", DEPLOYMENTS "/d", NULL, NULL, 200, "metadata.generation", "1"},
        {"PUT", DEPLOYMENTS "/d", NULL, DEPLOYMENT("d", "i"), 200, "metadata.generation", "1"},
        {"PUT", DEPLOYMENTS "/d", NULL, DEPLOYMENT("d", "j"), 200, "metadata.generation", "2"},
        {"GET", DEPLOYMENTS "/d", NULL, NULL, 200, "status", "{}"},
        {"PUT", DEPLOYMENTS "/d/status", NULL, DEPLOYMENT("d", "k"), 200, "status.replicas", "7"},
        {"GET", DEPLOYMENTS "/d", NULL, NULL, 200, "metadata.generation", "2"},
        {"PATCH", DEPLOYMENTS "/d", MERGE, "{\"metadata\":{\"annotations\":{\"x\":\"y\"}}}", 200,
         "metadata.annotations.x", "y"},
        {"PATCH", DEPLOYMENTS "/d/status", MERGE,
         "{\"spec\":{\"replicas\":9},\"status\":{\"readyReplicas\":2}}", 200, "spec.replicas", "1"},
        {"PATCH", DEPLOYMENTS "/d", MERGE, "{\"status\":{\"readyReplicas\":5}}", 200,
         "status.readyReplicas", "2"},
    };
    RUN(*state, steps);
}

/* Who wrote which field, by the name of the client and its subresource. */
static void test_write_records_owners(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const struct bed_request create = {
        .method = "POST",
        .target = MAPS,
        .user_agent = "kubectl/v1.36 (linux)",
        .body = TD_STR("{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}"),
    };
    bed_ask(bed, &create, &answer);
    assert_string_equal(
        script_at(bed, &answer, "metadata.managedFields"),
        "[{\"manager\":\"kubectl\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
        "\"2023-11-14T22:13:20Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\".\":{},"
        "\"f:k\":{}}}}]");
    static const struct step steps[] = {
        {"PATCH", MAPS "/a?fieldManager=other", MERGE, "{\"data\":{\"l\":\"1\"}}", 200, "data.l",
         "1"},
        {"POST", "/api/v1/namespaces", NULL, "{\"metadata\":{\"name\":\"n\"}}", 201,
         "metadata.managedFields",
         "[{\"manager\":\"bed\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
         "\"2023-11-14T22:13:20Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{"
         "\"f:labels\":{\".\":{},\"f:kubernetes.io/metadata.name\":{}}}}}]"},
    };
    RUN(bed, steps);
}

/* HPAs come in two versions and are one object. */
static void test_write_serves_versions_of_one_object(void **state)
{
#define HPAS(version) "/apis/autoscaling/" version "/namespaces/default/horizontalpodautoscalers"
    static const struct step steps[] = {
        {"POST", HPAS("v1"), NULL,
         "{\"metadata\":{\"name\":\"h\"},\"spec\":{\"scaleTargetRef\":{\"kind\":\"Deployment\","
         "\"name\":\"d\",\"apiVersion\":\"apps/v1\"},\"maxReplicas\":3,"
         "\"targetCPUUtilizationPercentage\":50}}",
         201, "spec.targetCPUUtilizationPercentage", "50"},
        {"GET", HPAS("v2") "/h", NULL, NULL, 200, "spec.maxReplicas", "3"},
        {"PATCH", HPAS("v2") "/h", MERGE, "{\"spec\":{\"maxReplicas\":4}}", 200, "apiVersion",
         "autoscaling/v2"},
        {"PATCH", HPAS("v1") "/h", MERGE, "{\"spec\":{\"maxReplicas\":0}}", 422, "reason",
         "Invalid"},
        {"GET", HPAS("v1") "/h", NULL, NULL, 200, "spec.maxReplicas", "4"},
        {"POST", HPAS("v2"), NULL, "{\"apiVersion\":\"autoscaling/v1\"}", 400, "message",
         "the API version in the data (autoscaling/v1) does not match the expected API version "
         "(autoscaling/v2)"},
    };
    RUN(*state, steps);
}

/* An object above etcd's limit is refused, one below it stored. */
#define V2_HPAS "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
#define V2_HPA(name, strategy)                                                                     \
    "{\"apiVersion\":\"autoscaling/v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{"       \
    "\"name\":\"" name "\"},\"spec\":{\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"d\"," \
    "\"apiVersion\":\"apps/v1\"},\"maxReplicas\":3" strategy "}}"
#define STRICT "?fieldValidation=Strict"

/* The field of the proposal, in both of its spellings, is one of the served kind's. */
static void test_write_knows_the_selection_strategy(void **state)
{
    static const struct step steps[] = {
        {"POST", V2_HPAS STRICT, NULL, V2_HPA("a", ",\"selectionStrategy\":\"OwnerReference\""),
         201, "spec.selectionStrategy", "OwnerReference"},
        {"POST", V2_HPAS STRICT, NULL, V2_HPA("b", ",\"SelectionStrategy\":\"OwnerReference\""),
         201, "spec.selectionStrategy", "OwnerReference"},
        {"GET", V2_HPAS "/b", NULL, NULL, 200, "spec.SelectionStrategy", NULL},
        {"GET", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/b", NULL, NULL,
         200, "spec.selectionStrategy", NULL},
        {"PATCH", V2_HPAS "/b" STRICT, MERGE,
         "{\"spec\":{\"SelectionStrategy\":\"LabelSelector\"}}", 200, "spec.selectionStrategy",
         "LabelSelector"},
        {"PATCH", V2_HPAS "/b" STRICT, STRATEGIC,
         "{\"spec\":{\"selectionStrategy\":\"OwnerReferences\"}}", 200, "spec.selectionStrategy",
         "OwnerReferences"},
        {"PATCH", V2_HPAS "/b", MERGE, "{\"spec\":{\"selectionStrategy\":null}}", 200,
         "spec.selectionStrategy", NULL},
        {"POST", V2_HPAS, NULL, V2_HPA("c", ",\"selectionStrategy\":\"Owner\""), 422, "message",
         "HorizontalPodAutoscaler.autoscaling \"c\" is invalid: spec.selectionStrategy: "
         "Unsupported "
         "value: \"Owner\": supported values: \"LabelSelector\", \"OwnerReference\""},
        {"POST", V2_HPAS, NULL, V2_HPA("c", ",\"SelectionStrategy\":3"), 400, "reason",
         "BadRequest"},
        {"PATCH", V2_HPAS "/d" STRICT "&fieldManager=m", APPLY,
         V2_HPA("d", ",\"SelectionStrategy\":\"OwnerReference\""), 201, "spec.selectionStrategy",
         "OwnerReference"},
        /* The manager owns it by its stored name, so it goes when it is applied no more. */
        {"PATCH", V2_HPAS "/d" STRICT "&fieldManager=m", APPLY, V2_HPA("d", ""), 200,
         "spec.selectionStrategy", NULL},
    };
    RUN(*state, steps);
}

/* With the gate off it is dropped with a warning, unless it was stored before. */
static void test_write_drops_the_selection_strategy_of_a_closed_gate(void **state)
{
    struct bed *bed = *state;
    static const struct step open[] = {
        {"POST", V2_HPAS, NULL, V2_HPA("old", ",\"selectionStrategy\":\"OwnerReference\""), 201,
         "spec.selectionStrategy", "OwnerReference"},
    };
    static const struct step closed[] = {
        {"POST", V2_HPAS STRICT, NULL, V2_HPA("a", ",\"selectionStrategy\":\"OwnerReference\""),
         201, "spec.selectionStrategy", NULL},
        {"PATCH", V2_HPAS "/old", MERGE, "{\"spec\":{\"maxReplicas\":4}}", 200,
         "spec.selectionStrategy", "OwnerReference"},
        {"PATCH", V2_HPAS "/old", MERGE, "{\"spec\":{\"selectionStrategy\":\"Owner\"}}", 422,
         "reason", "Invalid"},
    };
    RUN(bed, open);
    bed->api->has_no_strategy = true;
    RUN(bed, closed);
    bed_auto_answer answer;
    bed_answer_init(&answer);
    const char *body = V2_HPA("b", ",\"SelectionStrategy\":\"OwnerReference\"");
    assert_int_equal(bed_call(bed, "POST", V2_HPAS, body, &answer), 201);
    assert_string_equal(bed_header(&answer, "Warning"),
                        "299 - \"spec.selectionStrategy: dropped, since the feature gate "
                        "HPASelectionStrategy is off\"");
}

static void test_write_bounds_the_size_of_objects(void **state)
{
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    static const size_t sizes[] = {(size_t)900 << 10, (size_t)1600 << 10};
    static const int statuses[] = {201, 413};
    for (size_t i = 0; i < 2; i++) {
        td_auto_buf body;
        td_buf_init(&body, (size_t)4 << 20);
        (void)td_buf_append_format(&body,
                                   "{\"metadata\":{\"name\":\"s%zu\",\"annotations\":{}},"
                                   "\"spec\":{\"holderIdentity\":\"",
                                   i);
        char *at = td_buf_reserve(&body, sizes[i]);
        memset(at, 'x', sizes[i]);
        td_buf_commit(&body, sizes[i]);
        (void)td_buf_append(&body, TD_STR("\"}}"));
        assert_int_equal(bed_call(bed, "POST",
                                  "/apis/coordination.k8s.io/v1/namespaces/default/leases",
                                  td_buf_str(&body).ptr, &answer),
                         statuses[i]);
    }
    assert_string_equal(bed_text(bed, &answer, "reason"), "RequestEntityTooLarge");
}

/* Bodies of more values or longer lists than any real object has are refused before anything is
 * done with them, in every form. */
static void test_write_bounds_what_is_in_a_body(void **state)
{
    static const struct {
        const char *method;
        const char *target;
        const char *type;
        const char *before;
        const char *item;
        const char *after;
        size_t count;
        int status;
    } rows[] = {
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"a\"},\"u\":[", "0,", "0]}", 9999, 201},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"b\"},\"u\":[", "0,", "0]}", 10000, 413},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"b\"},\"u\":[", "[{}],", "0]}", 9999, 201},
        {"POST", MAPS, NULL, "{\"metadata\":{\"name\":\"c\"},\"u\":[", "[0,[0,0,{}]],", "0]}", 9999,
         413},
        {"POST", MAPS, "application/yaml", "metadata: {name: c}\nu:\n", "- 0\n", "", 10001, 413},
        {"PATCH", MAPS "/a", MERGE, "{\"u\":[", "0,", "0]}", 10000, 413},
        {"PATCH", MAPS "/a?fieldManager=m", APPLY,
         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nu:\n", "- 0\n", "", 10001, 413},
        {"DELETE", MAPS "/a", NULL, "{\"dryRun\":[", "\"All\",", "\"All\"]}", 10000, 413},
        {"GET", MAPS "/a", NULL, "", "", "", 0, 200},
    };
    struct bed *bed = *state;
    bed_auto_answer answer;
    bed_answer_init(&answer);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_buf body;
        td_buf_init(&body, (size_t)4 << 20);
        (void)td_buf_append(&body, td_str_from(rows[i].before));
        for (size_t k = 0; k < rows[i].count; k++) {
            (void)td_buf_append(&body, td_str_from(rows[i].item));
        }
        (void)td_buf_append(&body, td_str_from(rows[i].after));
        const struct bed_request request = {.method = rows[i].method,
                                            .target = rows[i].target,
                                            .content_type = rows[i].type,
                                            .body = td_buf_str(&body)};
        bed_ask(bed, &request, &answer);
        if (answer.status != rows[i].status) {
            fail_msg("row %zu: %d %.300s", i, answer.status, answer.body.ptr);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_refuses_bodies_it_cannot_read, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_takes_bodies_of_several_types, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_reads_every_parameter_or_none, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_is_as_strict_as_asked, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_checks_names_and_places, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_fills_in_metadata, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_generates_names_of_five_letters, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_compares_versions, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_tells_of_changes_only, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_keeps_spec_and_status_apart, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_records_owners, script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_write_serves_versions_of_one_object, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_knows_the_selection_strategy, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_drops_the_selection_strategy_of_a_closed_gate,
                                        script_setup, script_teardown),
        cmocka_unit_test_setup_teardown(test_write_bounds_the_size_of_objects, script_setup,
                                        script_teardown),
        cmocka_unit_test_setup_teardown(test_write_bounds_what_is_in_a_body, script_setup,
                                        script_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
