/* A create without a server: the same refusals as the server's, with lines of the file; kinds of
 * definitions that were shown; kinds that are not known or gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/limits.h"
#include "local/kinds/offline.h"

#define META "metadata: {name: a, namespace: shop}\n"
#define POD(container)                                                                             \
    "apiVersion: v1\nkind: Pod\n" META "spec:\n  containers:\n  - " container "\n"
#define THING(spec) "apiVersion: example.com/v1\nkind: Thing\n" META "spec: " spec "\n"
#define THINGS(name, served, schema)                                                               \
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"                        \
    "metadata: {name: " name "}\nspec:\n  group: example.com\n  scope: Namespaced\n"               \
    "  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}\n"               \
    "  versions:\n  - name: v1\n    served: " served "\n    storage: true\n"                       \
    "    schema: {openAPIV3Schema: {type: object, properties: {spec: " schema "}}}\n"
#define SIZED "{type: object, properties: {size: {type: integer, maximum: 3}}}"
#define EMBEDDED                                                                                   \
    "{type: object, x-kubernetes-embedded-resource: true, properties: {metadata: {type: object}}}"

struct row {
    const char *text;
    bool is_known;
    const char *field; /* of the last problem; NULL: there is none */
    uint32_t line;
    const char *rule;
    const char *part;
};

/* Objects of one text, one after the other, by one judge; the last one counts. */
static void judge(const struct row *row)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    struct td_manifest manifest = {.count = 0};
    struct td_error err = TD_ERROR_INIT;
    if (td_manifest_read(&arena, TD_STR("a.yaml"), td_str_from(row->text), &manifest, &err) < 0) {
        fail_msg("%s: %s", row->text, err.message);
    }
    struct td_offline *offline = td_offline_new();
    struct td_problems problems = {.arena = &arena};
    bool is_known = false;
    for (size_t i = 0; i < manifest.count; i++) {
        problems = (struct td_problems){.arena = &arena};
        is_known = td_offline_judge(offline, &manifest.items[i], &problems);
    }
    td_offline_free(offline);
    if (problems.count != (row->field ? 1 : 0)) {
        fail_msg("%s: %zu problems, first: %s", row->text, problems.count,
                 problems.count > 0 ? problems.items[0].message.ptr : "");
    }
    assert_int_equal(is_known, row->is_known);
    if (row->field) {
        td_str field = td_arena_copy_str(&arena, problems.items[0].field);
        assert_string_equal(field.ptr, row->field);
        assert_int_equal(problems.items[0].line, row->line);
        assert_string_equal(problems.items[0].rule, row->rule);
        assert_non_null(strstr(problems.items[0].message.ptr, row->part));
    }
}

static void test_offline_judges_as_a_create(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {POD("{name: a, image: a}"), true, NULL, 0, NULL, NULL},
        {POD("{name: a, image: a, ports: 3}"), true, "spec.containers[0].ports", 6, "type",
         "must be a list"},
        {POD("{name: a, image: a, port: 3}"), true, "spec.containers[0].port", 6, "unknown-field",
         "unknown field"},
        {POD("{name: a}"), true, "spec.containers[0].image", 6, "invalid", "Required value"},
        {POD("{name: a, image: a, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}"), true,
         "spec.containers[0].resources.requests", 6, "invalid", "must be less than or equal to"},
        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n", true, NULL, 0, NULL,
         NULL},
        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", true, "metadata.name", 3, "invalid",
         "Required value"},
        {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n", true, NULL, 0,
         NULL, NULL},
        {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
         "metadata: {name: 'system:a'}\nrules: []\n",
         true, NULL, 0, NULL, NULL},
        {"apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\n" META
         "spec: {minReplicas: 3, maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: "
         "Deployment, name: "
         "a}}\n",
         true, "spec.maxReplicas", 4, "invalid", "must be greater than or equal to"},
        {"apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n" META "spec: {}\n", true,
         "spec.targetRef", 4, "invalid", "Required value"},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        judge(&rows[i]);
    }
}

static void test_offline_knows_shown_definitions(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {THING("{size: 4}"), false, NULL, 0, NULL, NULL},
        {THINGS("things.example.com", "true", SIZED) "---\n" THING("{size: 3}"), true, NULL, 0,
         NULL, NULL},
        {THINGS("things.example.com", "true", SIZED) "---\n" THING("{size: 4}"), true, "spec.size",
         17, "invalid", "should be less than or equal to 3"},
        {THINGS("things.example.com", "true", SIZED) "---\n" THING("{sizes: 3}"), true,
         "spec.sizes", 17, "unknown-field", "unknown field"},
        {THINGS("things.example.com", "true",
                EMBEDDED) "---\n" THING("{kind: Pod, apiVersion: v1}"),
         true, NULL, 0, NULL, NULL},
        /* Of a definition that is wrong, or not served, nothing is known. */
        {THINGS("other.example.com", "true", SIZED) "---\n" THING("{size: 4}"), false, NULL, 0,
         NULL, NULL},
        {THINGS("things.example.com", "false", SIZED) "---\n" THING("{size: 4}"), false, NULL, 0,
         NULL, NULL},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        judge(&rows[i]);
    }
}

#define HPA(spec) "kind: HorizontalPodAutoscaler\n" META "spec: {" spec "}\n"
#define TARGET "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, "
#define METRIC(text) HPA(TARGET "maxReplicas: 5, metrics: [" text "]")
#define BEHAVIOR(text) HPA(TARGET "maxReplicas: 5, behavior: {scaleUp: " text "}")

/* Fields of all problems, in order, each once. */
static td_str fields_of(struct td_arena *arena, struct td_offline *offline, td_str text)
{
    struct td_manifest manifest = {.count = 0};
    struct td_problems problems = {.arena = arena};
    td_str fields = TD_STR_EMPTY;
    assert_int_equal(td_manifest_read(arena, TD_STR("a.yaml"), text, &manifest, NULL), TD_OK);
    assert_true(td_offline_judge(offline, &manifest.items[0], &problems));
    bool is_listed[TD_STRICT_PROBLEMS_MAX] = {false};
    for (size_t n = 0; n < problems.count; n++) {
        size_t least = problems.count;
        for (size_t i = 0; i < problems.count; i++) {
            bool is_less = least == problems.count ||
                           td_str_compare(problems.items[i].field, problems.items[least].field) < 0;
            least = !is_listed[i] && is_less ? i : least;
        }
        is_listed[least] = true;
        td_str field = td_arena_format(arena, " %.*s", TD_STR_ARG(problems.items[least].field));
        if (!td_str_ends_with(fields, field)) {
            fields = td_arena_format(arena, "%.*s%.*s", TD_STR_ARG(fields), TD_STR_ARG(field));
        }
    }
    return fields;
}

/* Our own kind is refused by the fields by which the built-in one is, whole objects that are
 * missing among them. */
static void test_offline_refuses_both_kinds_of_hpa_alike(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *fields;
    } rows[] = {
        {METRIC("{type: Pods}"), " spec.metrics[0].pods"},
        {METRIC("{type: Pods, pods: {metric: {name: a}}}"),
         " spec.metrics[0].pods.target.averageValue spec.metrics[0].pods.target.type"},
        {METRIC("{type: External, external: {target: {type: Value, value: 1}}}"),
         " spec.metrics[0].external.metric.name"},
        {METRIC("{type: Resource, resource: {name: cpu}}"),
         " spec.metrics[0].resource.target.averageUtilization "
         "spec.metrics[0].resource.target.type"},
        {METRIC("{type: Resource, resource: {name: cpu, target: {type: Utilization}}}"),
         " spec.metrics[0].resource.target.averageUtilization"},
        {METRIC("{}"), " spec.metrics[0].type"},
        {HPA("maxReplicas: 5"),
         " spec.scaleTargetRef.apiVersion spec.scaleTargetRef.kind spec.scaleTargetRef.name"},
        {HPA(TARGET "maxReplicas: 0"), " spec.maxReplicas"},
        {HPA(TARGET "minReplicas: 6, maxReplicas: 5"), " spec.maxReplicas"},
        {"kind: HorizontalPodAutoscaler\n" META,
         " spec.maxReplicas spec.scaleTargetRef.apiVersion "
         "spec.scaleTargetRef.kind spec.scaleTargetRef.name"},
        {BEHAVIOR("{policies: []}"), " spec.behavior.scaleUp.policies"},
        {BEHAVIOR("{policies: [{type: Pods}]}"), " spec.behavior.scaleUp.policies[0].periodSeconds "
                                                 "spec.behavior.scaleUp.policies[0].value"},
        {BEHAVIOR("{}"), ""},
    };
    static const char *const versions[] = {"autoscaling/v2", "autoscaling.tandem.dev/v2"};
    struct td_offline *offline = td_offline_new();
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        for (size_t j = 0; j < TD_COUNT(versions); j++) {
            td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
            td_str text = td_arena_format(&arena, "apiVersion: %s\n%s", versions[j], rows[i].text);
            td_str fields = fields_of(&arena, offline, text);
            if (!td_str_equal(fields, td_str_from(rows[i].fields))) {
                fail_msg("%s %s: '%.*s'", versions[j], rows[i].text, TD_STR_ARG(fields));
            }
        }
    }
    td_offline_free(offline);
}

static void test_offline_says_what_is_not_served(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: A}\n", false, "metadata.name",
         3, "invalid", "Invalid value: \"A\""},
        {"apiVersion: example.com/v1\nkind: Thing\nmetadata: []\n", false, "metadata", 3, "type",
         "must be an object"},
        {"apiVersion: skaffold/v4\nkind: Config\n", false, NULL, 0, NULL, NULL},
        {"kind: Deployment\napiVersion: extensions/v1beta1\n" META, true, "apiVersion", 2,
         "removed-api", "is not served since Kubernetes 1.16; use apps/v1"},
        {"kind: PodSecurityPolicy\napiVersion: policy/v1beta1\n" META, true, "apiVersion", 2,
         "removed-api", "Pod Security admission"},
        {"kind: Deployment\napiVersion: v1\n" META, true, "apiVersion", 2, "unknown-api",
         "no matches for kind \"Deployment\" in version \"v1\"; use apps/v1"},
        {"kind: CronJob\napiVersion: batch/v2alpha1\n" META, true, "apiVersion", 2, "unknown-api",
         "; use batch/v1"},
        {"apiVersion: apps/v1\nkind: deployment\n" META, true, "kind", 2, "unknown-api",
         "; use Deployment"},
        {"apiVersion: apps/v1\nkind: Thing\n" META, true, "kind", 2, "unknown-api",
         "no matches for kind \"Thing\" in version \"apps/v1\""},
        {"apiVersion: v1\nkind: Config\n" META, false, NULL, 0, NULL, NULL},
        {"apiVersion: example.com/v1\nkind: Deployment\n" META, false, NULL, 0, NULL, NULL},
        {"apiVersion: metrics.k8s.io/v1beta1\nkind: PodMetrics\n" META, false, NULL, 0, NULL, NULL},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        judge(&rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offline_judges_as_a_create),
        cmocka_unit_test(test_offline_knows_shown_definitions),
        cmocka_unit_test(test_offline_refuses_both_kinds_of_hpa_alike),
        cmocka_unit_test(test_offline_says_what_is_not_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
