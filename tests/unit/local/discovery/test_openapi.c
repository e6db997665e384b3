/* The documents of OpenAPI: whole, described, and published under upstream's names. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "local/discovery/openapi.h"

struct documents {
    struct td_arena arena;
    struct td_resources *resources;
};

static int documents_setup(void **state)
{
    static struct documents documents;
    td_arena_init(&documents.arena, TD_TREE_ARENA_BYTES_MAX);
    documents.resources = td_resources_new();
    *state = &documents;
    return 0;
}

static int documents_teardown(void **state)
{
    struct documents *documents = *state;
    td_resources_free(documents->resources);
    td_arena_done(&documents->arena);
    return 0;
}

static const struct td_json *schemas_v2(struct documents *documents)
{
    return td_json_get(td_openapi_v2(&documents->arena, documents->resources),
                       TD_STR("definitions"));
}

static const struct td_json *schemas_v3(struct documents *documents, const char *group,
                                        const char *version)
{
    return td_json_get_path(td_openapi_v3(&documents->arena, documents->resources,
                                          td_str_from(group), td_str_from(version)),
                            "components.schemas");
}

/* kubectl explain shows the sentence of every type and of every field. */
static void test_everything_is_described(void **state)
{
    const struct td_json *schemas = schemas_v2(*state);
    assert_true(schemas->count > 400);
    for (const struct td_json *type = td_json_first_member(schemas); type; type = type->next) {
        if (!td_json_get(type, TD_STR("description"))) {
            fail_msg("nothing is said about %.*s", TD_STR_ARG(type->key));
        }
        const struct td_json *fields = td_json_get(type, TD_STR("properties"));
        for (const struct td_json *field = fields ? td_json_first_member(fields) : NULL; field;
             field = field->next) {
            if (!td_json_get(field, TD_STR("description"))) {
                fail_msg("nothing is said about %.*s.%.*s", TD_STR_ARG(type->key),
                         TD_STR_ARG(field->key));
            }
        }
    }
}

/* Follows every member of a document; the depth is that of the document. */
static void check_refs(const struct td_json *schemas, const struct td_json *node, td_str prefix)
{
    if (!td_json_is(node, TD_JSON_TYPE_OBJECT) && !td_json_is(node, TD_JSON_TYPE_ARRAY)) {
        return;
    }
    for (const struct td_json *each = td_json_first_child(node); each; each = each->next) {
        bool is_ref = td_json_is(each, TD_JSON_TYPE_STRING) &&
                      td_json_is(node, TD_JSON_TYPE_OBJECT) &&
                      td_str_equal(each->key, TD_STR("$ref"));
        if (is_ref) {
            assert_true(td_str_starts_with(each->text, prefix));
            td_str name = td_str_slice(each->text, prefix.len, each->text.len);
            if (!td_json_get(schemas, name)) {
                fail_msg("%.*s is not published", TD_STR_ARG(name));
            }
        }
        check_refs(schemas, each, prefix);
    }
}

/* No document refers to what it does not have, in schemas, bodies and answers. */
static void test_references_lead_somewhere(void **state)
{
    struct documents *documents = *state;
    const struct td_json *v2 = td_openapi_v2(&documents->arena, documents->resources);
    check_refs(td_json_get(v2, TD_STR("definitions")), v2, TD_STR("#/definitions/"));
    size_t count = 0;
    for (size_t i = 0; i < td_resources_count(documents->resources); i++) {
        const struct td_resource *row = td_resources_row(documents->resources, i);
        for (size_t v = 0; v < row->version_count; v++) {
            const struct td_json *v3 = td_openapi_v3(&documents->arena, documents->resources,
                                                     row->group, row->versions[v].name);
            if (v3) {
                check_refs(td_json_get_path(v3, "components.schemas"), v3,
                           TD_STR("#/components/schemas/"));
                count++;
            }
        }
    }
    assert_true(count > 40);
}

struct fact {
    const char *type;
    const char *member; /* of the schema; "properties.NAME" for a field */
    const char *text;   /* as JSON; NULL: it is not there */
};

static void check_facts(const struct td_json *schemas, const struct fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct td_json *schema = td_json_get(schemas, td_str_from(facts[i].type));
        assert_non_null(schema);
        const struct td_json *value = td_json_get_path(schema, facts[i].member);
        td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
        if (value) {
            td_json_write(value, &(struct td_json_format){0}, &text);
        }
        td_str wanted = td_str_from(facts[i].text);
        if (!td_str_equal(td_buf_str(&text), wanted)) {
            fail_msg("%s %s is %.*s", facts[i].type, facts[i].member,
                     TD_STR_ARG(td_buf_str(&text)));
        }
    }
}

#define APPS "io.k8s.api.apps.v1."
#define CORE "io.k8s.api.core.v1."
#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

static void test_v3_says_all_of_a_type(void **state)
{
    static const struct fact facts[] = {
        {APPS "Deployment", "x-kubernetes-group-version-kind",
         "[{\"group\":\"apps\",\"kind\":\"Deployment\",\"version\":\"v1\"}]"},
        {APPS "Deployment", "properties.spec.allOf",
         "[{\"$ref\":\"#/components/schemas/" APPS "DeploymentSpec\"}]"},
        {APPS "Deployment", "properties.spec.default", "{}"},
        {APPS "DeploymentSpec", "required", "[\"selector\",\"template\"]"},
        {APPS "DeploymentStrategy", "properties.type.enum", "[\"Recreate\",\"RollingUpdate\"]"},
        {APPS "DeploymentList", "required", "[\"items\"]"},
        {APPS "DeploymentList", "properties.metadata.allOf",
         "[{\"$ref\":\"#/components/schemas/" META "ListMeta\"}]"},
        {CORE "Container", "properties.ports.x-kubernetes-list-map-keys",
         "[\"containerPort\",\"protocol\"]"},
        {CORE "Container", "properties.ports.x-kubernetes-patch-merge-key", "\"containerPort\""},
        {CORE "Container", "properties.args.items.default", "\"\""},
        {CORE "ContainerPort", "properties.protocol.default", "\"TCP\""},
        {CORE "ContainerPort", "properties.containerPort.format", "\"int32\""},
        {CORE "ConfigMapKeySelector", "x-kubernetes-map-type", "\"atomic\""},
        {CORE "PersistentVolumeClaim", "x-kubernetes-group-version-kind",
         "[{\"group\":\"\",\"kind\":\"PersistentVolumeClaim\",\"version\":\"v1\"}]"},
        {"io.k8s.api.autoscaling.v1.Scale", "x-kubernetes-group-version-kind",
         "[{\"group\":\"autoscaling\",\"kind\":\"Scale\",\"version\":\"v1\"}]"},
        {"io.k8s.apimachinery.pkg.util.intstr.IntOrString", "oneOf",
         "[{\"type\":\"integer\"},{\"type\":\"string\"}]"},
        {META "DeleteOptions", "x-kubernetes-group-version-kind",
         "[{\"group\":\"\",\"kind\":\"DeleteOptions\",\"version\":\"v1\"},"
         "{\"group\":\"apps\",\"kind\":\"DeleteOptions\",\"version\":\"v1\"}]"},
    };
    check_facts(schemas_v3(*state, "apps", "v1"), facts, TD_COUNT(facts));
}

/* The same types without what version 2 cannot say. */
static void test_v2_has_the_same_types(void **state)
{
    static const struct fact facts[] = {
        {APPS "Deployment", "properties.spec.$ref", "\"#/definitions/" APPS "DeploymentSpec\""},
        {APPS "Deployment", "properties.spec.default", NULL},
        {APPS "DeploymentSpec", "required", "[\"selector\",\"template\"]"},
        {CORE "ContainerPort", "properties.protocol.default", NULL},
        {CORE "ContainerPort", "properties.protocol.enum", "[\"SCTP\",\"TCP\",\"UDP\"]"},
        {"io.k8s.apimachinery.pkg.util.intstr.IntOrString", "type", "\"string\""},
        {"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", "type", NULL},
        {"io.k8s.apimachinery.pkg.runtime.RawExtension", "type", "\"object\""},
        {CORE "PersistentVolumeSpec", "properties.claimRef.x-kubernetes-map-type", "\"granular\""},
        {CORE "ObjectReference", "x-kubernetes-map-type", "\"atomic\""},
        {"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", "required",
         "[\"maxReplicas\",\"scaleTargetRef\"]"},
    };
    check_facts(schemas_v2(*state), facts, TD_COUNT(facts));
}

/* Lists are answered by lists, and deletions by a Status; subresources have kinds of their own. */
static void test_paths_name_what_they_take_and_answer(void **state)
{
    struct documents *documents = *state;
    static const struct {
        const char *path;
        const char *member; /* of the path's item */
        const char *text;
    } rows[] = {
        {"/api/v1/namespaces/{namespace}/pods",
         "get.responses.200.content.application/json.schema.$ref",
         "#/components/schemas/" CORE "PodList"},
        {"/api/v1/namespaces/{namespace}/pods/{name}",
         "delete.responses.200.content.application/json.schema.$ref",
         "#/components/schemas/" META "Status"},
        {"/api/v1/namespaces/{namespace}/pods/{name}",
         "put.requestBody.content.application/json.schema.$ref",
         "#/components/schemas/" CORE "Pod"},
        {"/api/v1/namespaces/{namespace}/pods/{name}/eviction",
         "post.x-kubernetes-group-version-kind.kind", "Eviction"},
        {"/api/v1/namespaces/{namespace}/pods/{name}/resize",
         "patch.x-kubernetes-group-version-kind.kind", "Pod"},
    };
    const struct td_json *paths = td_json_get(
        td_openapi_v3(&documents->arena, documents->resources, TD_STR_EMPTY, TD_STR("v1")),
        TD_STR("paths"));
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        const struct td_json *at = td_json_get(paths, td_str_from(rows[i].path));
        assert_non_null(at);
        const struct td_json *value = td_json_get_path(at, rows[i].member);
        assert_non_null(value);
        assert_true(td_str_equal(value->text, td_str_from(rows[i].text)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_is_described),
        cmocka_unit_test(test_references_lead_somewhere),
        cmocka_unit_test(test_v3_says_all_of_a_type),
        cmocka_unit_test(test_v2_has_the_same_types),
        cmocka_unit_test(test_paths_name_what_they_take_and_answer),
    };
    return cmocka_run_group_tests(tests, documents_setup, documents_teardown);
}
