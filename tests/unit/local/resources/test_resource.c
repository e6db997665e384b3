/* The kinds served, beside what the real server (1.36) tells of them; versions of one object. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "local/resources/resource.h"

struct real_row {
    const char *api_version;
    const char *plural;
    const char *singular;
    const char *kind;
    bool is_namespaced;
    const char *verbs; /* "all" for the usual eight */
    const char *short_names;
    const char *categories;
    const char *subresources;
};

static const struct real_row real_rows[] = {
    {"v1", "bindings", "binding", "Binding", true, "create", "", "", ""},
    {"v1", "configmaps", "configmap", "ConfigMap", true, "all", "cm", "", ""},
    {"v1", "endpoints", "endpoints", "Endpoints", true, "all", "ep", "", ""},
    {"v1", "events", "event", "Event", true, "all", "ev", "", ""},
    {"v1", "limitranges", "limitrange", "LimitRange", true, "all", "limits", "", ""},
    {"v1", "namespaces", "namespace", "Namespace", false,
     "create,delete,get,list,patch,update,watch", "ns", "", "finalize,status"},
    {"v1", "nodes", "node", "Node", false, "all", "no", "", "proxy,status"},
    {"v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", true, "all",
     "pvc", "", "status"},
    {"v1", "persistentvolumes", "persistentvolume", "PersistentVolume", false, "all", "pv", "",
     "status"},
    {"v1", "pods", "pod", "Pod", true, "all", "po", "all",
     "attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize,status"},
    {"v1", "podtemplates", "podtemplate", "PodTemplate", true, "all", "", "", ""},
    {"v1", "replicationcontrollers", "replicationcontroller", "ReplicationController", true, "all",
     "rc", "all", "scale,status"},
    {"v1", "resourcequotas", "resourcequota", "ResourceQuota", true, "all", "quota", "", "status"},
    {"v1", "secrets", "secret", "Secret", true, "all", "", "", ""},
    {"v1", "serviceaccounts", "serviceaccount", "ServiceAccount", true, "all", "sa", "", "token"},
    {"v1", "services", "service", "Service", true, "all", "svc", "all", "proxy,status"},
    {"apps/v1", "controllerrevisions", "controllerrevision", "ControllerRevision", true, "all", "",
     "", ""},
    {"apps/v1", "daemonsets", "daemonset", "DaemonSet", true, "all", "ds", "all", "status"},
    {"apps/v1", "deployments", "deployment", "Deployment", true, "all", "deploy", "all",
     "scale,status"},
    {"apps/v1", "replicasets", "replicaset", "ReplicaSet", true, "all", "rs", "all",
     "scale,status"},
    {"apps/v1", "statefulsets", "statefulset", "StatefulSet", true, "all", "sts", "all",
     "scale,status"},
    {"batch/v1", "cronjobs", "cronjob", "CronJob", true, "all", "cj", "all", "status"},
    {"batch/v1", "jobs", "job", "Job", true, "all", "", "all", "status"},
    {"autoscaling/v1", "horizontalpodautoscalers", "horizontalpodautoscaler",
     "HorizontalPodAutoscaler", true, "all", "hpa", "all", "status"},
    {"autoscaling/v2", "horizontalpodautoscalers", "horizontalpodautoscaler",
     "HorizontalPodAutoscaler", true, "all", "hpa", "all", "status"},
    {"policy/v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", true, "all",
     "pdb", "", "status"},
    {"coordination.k8s.io/v1", "leases", "lease", "Lease", true, "all", "", "", ""},
    {"events.k8s.io/v1", "events", "event", "Event", true, "all", "ev", "", ""},
    {"rbac.authorization.k8s.io/v1", "clusterrolebindings", "clusterrolebinding",
     "ClusterRoleBinding", false, "all", "", "", ""},
    {"rbac.authorization.k8s.io/v1", "clusterroles", "clusterrole", "ClusterRole", false, "all", "",
     "", ""},
    {"rbac.authorization.k8s.io/v1", "rolebindings", "rolebinding", "RoleBinding", true, "all", "",
     "", ""},
    {"rbac.authorization.k8s.io/v1", "roles", "role", "Role", true, "all", "", "", ""},
    {"apiextensions.k8s.io/v1", "customresourcedefinitions", "customresourcedefinition",
     "CustomResourceDefinition", false, "all", "crd,crds", "api-extensions", "status"},
    {"admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations",
     "mutatingwebhookconfiguration", "MutatingWebhookConfiguration", false, "all", "",
     "api-extensions", ""},
    {"admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "validatingadmissionpolicy",
     "ValidatingAdmissionPolicy", false, "all", "", "api-extensions", "status"},
    {"admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings",
     "validatingadmissionpolicybinding", "ValidatingAdmissionPolicyBinding", false, "all", "",
     "api-extensions", ""},
    {"admissionregistration.k8s.io/v1", "validatingwebhookconfigurations",
     "validatingwebhookconfiguration", "ValidatingWebhookConfiguration", false, "all", "",
     "api-extensions", ""},
    {"authentication.k8s.io/v1", "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview",
     false, "create", "", "", ""},
    {"authentication.k8s.io/v1", "tokenreviews", "tokenreview", "TokenReview", false, "create", "",
     "", ""},
    {"authorization.k8s.io/v1", "localsubjectaccessreviews", "localsubjectaccessreview",
     "LocalSubjectAccessReview", true, "create", "", "", ""},
    {"authorization.k8s.io/v1", "selfsubjectaccessreviews", "selfsubjectaccessreview",
     "SelfSubjectAccessReview", false, "create", "", "", ""},
    {"authorization.k8s.io/v1", "selfsubjectrulesreviews", "selfsubjectrulesreview",
     "SelfSubjectRulesReview", false, "create", "", "", ""},
    {"authorization.k8s.io/v1", "subjectaccessreviews", "subjectaccessreview",
     "SubjectAccessReview", false, "create", "", "", ""},
    {"discovery.k8s.io/v1", "endpointslices", "endpointslice", "EndpointSlice", true, "all", "", "",
     ""},
    {"scheduling.k8s.io/v1", "priorityclasses", "priorityclass", "PriorityClass", false, "all",
     "pc", "", ""},
    {"storage.k8s.io/v1", "csinodes", "csinode", "CSINode", false, "all", "", "", ""},
    {"storage.k8s.io/v1", "storageclasses", "storageclass", "StorageClass", false, "all", "sc", "",
     ""},
    {"networking.k8s.io/v1", "ingressclasses", "ingressclass", "IngressClass", false, "all", "", "",
     ""},
    {"networking.k8s.io/v1", "ingresses", "ingress", "Ingress", true, "all", "ing", "", "status"},
    {"networking.k8s.io/v1", "networkpolicies", "networkpolicy", "NetworkPolicy", true, "all",
     "netpol", "", ""},
    {"node.k8s.io/v1", "runtimeclasses", "runtimeclass", "RuntimeClass", false, "all", "", "", ""},
    {"metrics.k8s.io/v1beta1", "nodes", "", "NodeMetrics", false, "get,list", "", "", ""},
    {"metrics.k8s.io/v1beta1", "pods", "", "PodMetrics", true, "get,list", "", "", ""},
};

static const struct {
    const char *name;
    unsigned flag;
} verb_names[] = {
    {"create", TD_VERB_CREATE},
    {"delete", TD_VERB_DELETE},
    {"deletecollection", TD_VERB_DELETE_COLLECTION},
    {"get", TD_VERB_GET},
    {"list", TD_VERB_LIST},
    {"patch", TD_VERB_PATCH},
    {"update", TD_VERB_UPDATE},
    {"watch", TD_VERB_WATCH},
};

static const struct {
    const char *name;
    unsigned flag;
    bool is_of_pods_only;
} part_names[] = {
    {"attach", TD_SUB_PROCESS, true},
    {"binding", TD_SUB_BINDING, false},
    {"ephemeralcontainers", TD_SUB_EPHEMERAL, false},
    {"eviction", TD_SUB_EVICTION, false},
    {"exec", TD_SUB_PROCESS, true},
    {"finalize", TD_SUB_FINALIZE, false},
    {"log", TD_SUB_PROCESS, true},
    {"portforward", TD_SUB_PROCESS, true},
    {"proxy", TD_SUB_PROCESS, false},
    {"resize", TD_SUB_RESIZE, false},
    {"scale", TD_SUB_SCALE, false},
    {"status", TD_SUB_STATUS, false},
    {"token", TD_SUB_TOKEN, false},
};

static void add(char out[512], const char *word)
{
    size_t used = strlen(out);
    (void)snprintf(out + used, 512 - used, "%s%s", used > 0 ? "," : "", word);
}

static void add_texts(char out[512], const td_str *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char word[128];
        (void)snprintf(word, sizeof(word), "%.*s", TD_STR_ARG(texts[i]));
        add(out, word);
    }
}

static void check_same(const struct real_row *row, const char *what, const char *ours,
                       const char *real)
{
    if (strcmp(ours, real) != 0) {
        fail_msg("%s of %s %s: '%s', the real one has '%s'", what, row->api_version, row->plural,
                 ours, real);
    }
}

/* Each kind has the names, verbs and parts of the real one. */
static void test_resources_are_upstreams(void **state)
{
    (void)state;
    struct td_resources *resources = td_resources_new();
    for (size_t i = 0; i < sizeof(real_rows) / sizeof(real_rows[0]); i++) {
        const struct real_row *row = &real_rows[i];
        struct td_resource_at at = td_resources_find_kind(resources, td_str_from(row->api_version),
                                                          td_str_from(row->kind));
        if (!at.resource) {
            fail_msg("%s %s is not served", row->api_version, row->kind);
        }
        const struct td_resource *resource = at.resource;
        char plural[512] = "", singular[512] = "", verbs[512] = "", short_names[512] = "";
        char categories[512] = "", parts[512] = "";
        add_texts(plural, &resource->plural, 1);
        add_texts(singular, &resource->singular, 1);
        add_texts(short_names, resource->short_names, resource->short_name_count);
        add_texts(categories, resource->categories, resource->category_count);
        for (size_t v = 0; v < sizeof(verb_names) / sizeof(verb_names[0]); v++) {
            if (resource->verbs & verb_names[v].flag) {
                add(verbs, verb_names[v].name);
            }
        }
        bool is_pod = strcmp(plural, "pods") == 0;
        for (size_t p = 0; p < sizeof(part_names) / sizeof(part_names[0]); p++) {
            if ((resource->subresources & part_names[p].flag) &&
                (is_pod || !part_names[p].is_of_pods_only)) {
                add(parts, part_names[p].name);
            }
        }
        check_same(row, "plural", plural, row->plural);
        check_same(row, "singular", singular, row->singular);
        check_same(row, "short names", short_names, row->short_names);
        check_same(row, "categories", categories, row->categories);
        check_same(row, "subresources", parts, row->subresources);
        check_same(row, "verbs", resource->verbs == TD_VERBS_ALL ? "all" : verbs, row->verbs);
        assert_int_equal(resource->is_namespaced, row->is_namespaced);
    }
    td_resources_free(resources);
}

/* Every row leads back to itself, in each of its versions. */
static void test_resources_are_found_by_path(void **state)
{
    (void)state;
    struct td_resources *resources = td_resources_new();
    size_t served = 0;
    for (size_t i = 0; i < td_resources_count(resources); i++) {
        const struct td_resource *row = td_resources_row(resources, i);
        for (size_t v = 0; v < row->version_count; v++) {
            struct td_resource_at at =
                td_resources_find(resources, row->group, row->versions[v].name, row->plural);
            assert_ptr_equal(at.resource, row);
            assert_int_equal(at.version, v);
            assert_non_null(row->versions[v].type);
            served++;
        }
        assert_non_null(row->versions[row->storage].type);
    }
    /* Two versions of custom metrics and one of external ones have no row in discovery. */
    assert_int_equal(served, sizeof(real_rows) / sizeof(real_rows[0]) + 3);
    assert_null(
        td_resources_find(resources, TD_STR("apps"), TD_STR("v2"), TD_STR("deployments")).resource);
    assert_null(
        td_resources_find(resources, TD_STR(""), TD_STR("v1"), TD_STR("deployments")).resource);
    assert_non_null(td_resources_find(resources, TD_STR("external.metrics.k8s.io"),
                                      TD_STR("v1beta1"), TD_STR("queue"))
                        .resource);
    td_resources_free(resources);
}

static int released;

static void release_row(struct td_resource *row)
{
    released++;
    td_free(row);
}

static struct td_resource *new_row(td_str group, td_str plural, td_str kind)
{
    static const struct td_resource_version version = {.name = TD_STR_INIT("v1"),
                                                       .api_version = TD_STR_INIT("x.dev/v1")};
    struct td_resource *row = td_alloc_zero(1, sizeof(*row));
    row->group = group;
    row->plural = plural;
    row->kind = kind;
    row->versions = &version;
    row->version_count = 1;
    return row;
}

/* Custom rows are sorted, replaced and removed; a user keeps the old one alive. */
static void test_custom_resources_come_and_go(void **state)
{
    (void)state;
    released = 0;
    struct td_resources *resources = td_resources_new();
    size_t builtin = td_resources_count(resources);
    uint64_t generation = td_resources_generation(resources);
    td_str group = TD_STR("x.dev");
    td_resources_put_custom(resources, new_row(group, TD_STR("foos"), TD_STR("Foo")), release_row);
    td_resources_put_custom(resources, new_row(group, TD_STR("bars"), TD_STR("Bar")), release_row);
    td_resources_put_custom(resources, new_row(TD_STR("a.dev"), TD_STR("foos"), TD_STR("Foo")),
                            release_row);
    assert_int_equal(td_resources_count(resources), builtin + 3);
    assert_true(td_str_equal(td_resources_row(resources, builtin)->group, TD_STR("a.dev")));
    assert_true(td_str_equal(td_resources_row(resources, builtin + 1)->plural, TD_STR("bars")));
    assert_true(td_resources_generation(resources) > generation);
    const struct td_resource *old =
        td_resource_ref(td_resources_find(resources, group, TD_STR("v1"), TD_STR("foos")).resource);
    td_resources_put_custom(resources, new_row(group, TD_STR("foos"), TD_STR("Foo")), release_row);
    assert_int_equal(released, 0);
    assert_ptr_not_equal(td_resources_find(resources, group, TD_STR("v1"), TD_STR("foos")).resource,
                         old);
    td_resource_unref(old);
    assert_int_equal(released, 1);
    td_resources_put_custom(resources, new_row(group, TD_STR("foo2s"), TD_STR("Foo")), release_row);
    td_resources_remove_custom(resources, group, TD_STR("foos"));
    td_resources_remove_custom(resources, group, TD_STR("none"));
    assert_int_equal(released, 2);
    struct td_resource_at at = td_resources_find_kind(resources, TD_STR("x.dev/v1"), TD_STR("Foo"));
    assert_true(td_str_equal(at.resource->plural, TD_STR("foo2s")));
    assert_null(td_resources_find(resources, group, TD_STR("v1"), TD_STR("foos")).resource);
    td_resources_free(resources);
    assert_int_equal(released, 5);
}

/* An event is the same object in both groups, under other names. */
static void test_events_convert_both_ways(void **state)
{
    (void)state;
    static const char core[] =
        "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"g3\"},"
        "\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"x\"},\"reason\":\"R\",\"message\":"
        "\"hello\",\"source\":{\"component\":\"c\"},\"firstTimestamp\":\"2026-01-01T00:00:00Z\","
        "\"lastTimestamp\":\"2026-01-01T00:00:02Z\",\"count\":3,\"type\":\"Normal\",\"eventTime\":"
        "null,\"reportingComponent\":\"\",\"reportingInstance\":\"\"}";
    static const char events[] =
        "{\"kind\":\"Event\",\"apiVersion\":\"events.k8s.io/v1\",\"metadata\":{\"name\":\"g3\"},"
        "\"eventTime\":null,\"reason\":\"R\",\"regarding\":{\"kind\":\"Pod\",\"name\":\"x\"},"
        "\"note\":\"hello\",\"type\":\"Normal\",\"deprecatedSource\":{\"component\":\"c\"},"
        "\"deprecatedFirstTimestamp\":\"2026-01-01T00:00:00Z\",\"deprecatedLastTimestamp\":"
        "\"2026-01-01T00:00:02Z\",\"deprecatedCount\":3}";
    td_auto_arena arena;
    td_arena_init(&arena, (size_t)1 << 20);
    struct td_resources *resources = td_resources_new();
    struct td_resource_at at =
        td_resources_find(resources, TD_STR("events.k8s.io"), TD_STR("v1"), TD_STR("events"));
    struct td_json *tree;
    struct td_json *converted;
    td_auto_buf text;
    td_buf_init(&text, (size_t)1 << 20);
    assert_int_equal(td_json_parse(&arena, td_str_from(core), NULL, &tree, NULL), TD_OK);
    assert_int_equal(td_resource_convert(&arena, at.resource, at.resource->storage, at.version,
                                         tree, &converted, NULL),
                     TD_OK);
    td_json_write(converted, &(struct td_json_format){.indent = 0}, &text);
    assert_string_equal(text.ptr, events);
    td_buf_reset(&text);
    assert_int_equal(td_resource_convert(&arena, at.resource, at.version, at.resource->storage,
                                         converted, &tree, NULL),
                     TD_OK);
    td_json_write(tree, &(struct td_json_format){.indent = 0}, &text);
    assert_string_equal(text.ptr, core);
    td_resources_free(resources);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resources_are_upstreams),
        cmocka_unit_test(test_resources_are_found_by_path),
        cmocka_unit_test(test_custom_resources_come_and_go),
        cmocka_unit_test(test_events_convert_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
