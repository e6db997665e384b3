/* The schema table against what Kubernetes documents, and strict reading by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/vec.h"
#include "kube/schema/schema.h"
#include "unit/kube/patch/patch_fixture.h"

#define TYPES_MAX 2000

struct type_list {
    TD_VEC_FIELDS(const struct td_schema_type *);
};

/* Every type below `type`, each once. */
static void collect(const struct td_schema_type *type, struct type_list *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->items[i] == type) {
            return;
        }
    }
    const struct td_schema_type **place = td_vec_push(seen);
    assert_non_null(place);
    *place = type;
    if (type->element) {
        collect(type->element, seen);
    }
    for (size_t i = 0; i < type->field_count; i++) {
        collect(type->fields[i].type, seen);
    }
}

static const struct {
    const char *api_version;
    const char *kind;
} kinds[] = {
    {"v1", "ConfigMap"},
    {"v1", "Event"},
    {"v1", "LimitRange"},
    {"v1", "Namespace"},
    {"v1", "Node"},
    {"v1", "PersistentVolumeClaim"},
    {"v1", "Pod"},
    {"v1", "PodTemplate"},
    {"v1", "ReplicationController"},
    {"v1", "ResourceQuota"},
    {"v1", "Secret"},
    {"v1", "Service"},
    {"v1", "ServiceAccount"},
    {"apps/v1", "ControllerRevision"},
    {"apps/v1", "DaemonSet"},
    {"apps/v1", "Deployment"},
    {"apps/v1", "ReplicaSet"},
    {"apps/v1", "StatefulSet"},
    {"batch/v1", "CronJob"},
    {"batch/v1", "Job"},
    {"autoscaling/v1", "HorizontalPodAutoscaler"},
    {"autoscaling/v1", "Scale"},
    {"autoscaling/v2", "HorizontalPodAutoscaler"},
    {"policy/v1", "Eviction"},
    {"policy/v1", "PodDisruptionBudget"},
    {"coordination.k8s.io/v1", "Lease"},
    {"apiextensions.k8s.io/v1", "CustomResourceDefinition"},
    {"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"},
    {"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"},
    {"rbac.authorization.k8s.io/v1", "ClusterRole"},
    {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"},
    {"rbac.authorization.k8s.io/v1", "Role"},
    {"rbac.authorization.k8s.io/v1", "RoleBinding"},
    {"events.k8s.io/v1", "Event"},
    {"v1", "Binding"},
    {"v1", "Endpoints"},
    {"v1", "PersistentVolume"},
    {"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"},
    {"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"},
    {"authentication.k8s.io/v1", "SelfSubjectReview"},
    {"authentication.k8s.io/v1", "TokenRequest"},
    {"authentication.k8s.io/v1", "TokenReview"},
    {"authorization.k8s.io/v1", "LocalSubjectAccessReview"},
    {"authorization.k8s.io/v1", "SelfSubjectAccessReview"},
    {"authorization.k8s.io/v1", "SelfSubjectRulesReview"},
    {"authorization.k8s.io/v1", "SubjectAccessReview"},
    {"discovery.k8s.io/v1", "EndpointSlice"},
    {"networking.k8s.io/v1", "Ingress"},
    {"networking.k8s.io/v1", "IngressClass"},
    {"networking.k8s.io/v1", "NetworkPolicy"},
    {"node.k8s.io/v1", "RuntimeClass"},
    {"scheduling.k8s.io/v1", "PriorityClass"},
    {"storage.k8s.io/v1", "CSINode"},
    {"storage.k8s.io/v1", "StorageClass"},
    {"apiregistration.k8s.io/v1", "APIService"},
    {"metrics.k8s.io/v1beta1", "NodeMetrics"},
    {"metrics.k8s.io/v1beta1", "PodMetrics"},
    /* From here on without the metadata of an object. */
    {"v1", "DeleteOptions"},
    {"v1", "Status"},
    {"admission.k8s.io/v1", "AdmissionReview"},
    {"custom.metrics.k8s.io/v1beta1", "MetricValueList"},
    {"custom.metrics.k8s.io/v1beta2", "MetricValueList"},
    {"external.metrics.k8s.io/v1beta1", "ExternalMetricValueList"},
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))
#define BARE_KIND_COUNT 6 /* the last ones */

static const struct td_schema_type *find(const char *api_version, const char *kind)
{
    return td_schema_find(td_str_from(api_version), td_str_from(kind));
}

static void collect_all(struct type_list *seen)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        collect(find(kinds[i].api_version, kinds[i].kind), seen);
    }
}

static const struct td_schema_type *named(const struct type_list *types, const char *name)
{
    for (size_t i = 0; i < types->count; i++) {
        if (td_str_equal(types->items[i]->name, td_str_from(name))) {
            return types->items[i];
        }
    }
    return NULL;
}

/* Every promised kind is there under its version only, and starts like an object. */
static void test_schema_knows_its_kinds(void **state)
{
    (void)state;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const struct td_schema_type *type = find(kinds[i].api_version, kinds[i].kind);
        assert_non_null(type);
        assert_int_equal(type->kind, TD_SCHEMA_OBJECT);
        assert_true(td_str_equal(type->name, td_str_from(kinds[i].kind)));
        assert_non_null(td_schema_field(type, TD_STR("apiVersion")));
        const struct td_schema_field *metadata = td_schema_field(type, TD_STR("metadata"));
        bool is_object = metadata && td_str_equal(metadata->type->name, TD_STR("ObjectMeta"));
        assert_int_equal(is_object, i < KIND_COUNT - BARE_KIND_COUNT);
    }
    assert_ptr_not_equal(find("autoscaling/v1", "HorizontalPodAutoscaler"),
                         find("autoscaling/v2", "HorizontalPodAutoscaler"));
    assert_null(find("apps/v1", "Pod"));
    assert_null(find("v1", "pod"));
    assert_null(find("", ""));
    assert_null(find("v1", "Widget"));
}

/* A field has a number in protobuf that no other field of its type has, nor leads to one. */
static void check_number(const struct td_schema_type *type, size_t index)
{
    td_str name = type->fields[index].name;
    uint32_t path = type->fields[index].proto_path;
    if (path == 0) {
        assert_true(td_str_equal(name, TD_STR("apiVersion")) || td_str_equal(name, TD_STR("kind")));
        return;
    }
    for (size_t i = 0; i < type->field_count; i++) {
        uint32_t other = type->fields[i].proto_path;
        assert_true(i == index || other != path);
        assert_true(other >> 8 != path && other >> 16 != path);
    }
}

/* The table is whole: fields sorted and found, elements and keys where the kind needs them. */
static void test_schema_table_is_sound(void **state)
{
    (void)state;
    struct type_list types = TD_VEC_INIT(TYPES_MAX);
    collect_all(&types);
    for (size_t i = 0; i < types.count; i++) {
        const struct td_schema_type *type = types.items[i];
        bool has_element = type->kind == TD_SCHEMA_LIST || type->kind == TD_SCHEMA_MAP ||
                           type->proto != TD_SCHEMA_PROTO_PLAIN;
        assert_int_equal(has_element, type->element != NULL);
        assert_int_equal(type->topology == TD_SCHEMA_KEYED, type->list_key_count > 0);
        assert_true(type->kind != TD_SCHEMA_OBJECT || type->name.len > 0);
        assert_int_equal(type->name.len > 0, type->package.len > 0);
        assert_true(type->values.len == 0 || type->kind == TD_SCHEMA_STRING);
        for (size_t j = 0; j < type->field_count; j++) {
            const struct td_schema_field *field = &type->fields[j];
            assert_ptr_equal(td_schema_field(type, field->name), field);
            assert_true(j == 0 || td_str_compare(type->fields[j - 1].name, field->name) < 0);
            bool is_list = field->type->kind == TD_SCHEMA_LIST;
            assert_true(field->patch != TD_SCHEMA_PATCH_MERGE || is_list);
            check_number(type, j);
        }
        for (size_t j = 0; j < type->list_key_count; j++) {
            assert_non_null(td_schema_field(type->element, type->list_keys[j].name));
        }
    }
    td_vec_done(&types);
}

static const struct {
    const char *type;
    const char *field;
    const char *how;
    const char *key;
} merge_rows[] = {
    {"Container", "env", "merge", "name"},
    {"Container", "ports", "merge", "containerPort"},
    {"Container", "volumeDevices", "merge", "devicePath"},
    {"Container", "volumeMounts", "merge", "mountPath"},
    {"ContainerStatus", "allocatedResourcesStatus", "merge", "name"},
    {"ContainerStatus", "volumeMounts", "merge", "mountPath"},
    {"DeploymentSpec", "strategy", "retainKeys", ""},
    {"DeploymentStatus", "conditions", "merge", "type"},
    {"EphemeralContainerCommon", "env", "merge", "name"},
    {"EphemeralContainerCommon", "ports", "merge", "containerPort"},
    {"EphemeralContainerCommon", "volumeDevices", "merge", "devicePath"},
    {"EphemeralContainerCommon", "volumeMounts", "merge", "mountPath"},
    {"HorizontalPodAutoscalerStatus", "conditions", "merge", "type"},
    {"ObjectMeta", "finalizers", "merge", ""},
    {"ObjectMeta", "ownerReferences", "merge", "uid"},
    {"PersistentVolumeClaimStatus", "conditions", "merge", "type"},
    {"PodDisruptionBudgetSpec", "selector", "replace", ""},
    {"PodDisruptionBudgetStatus", "conditions", "merge", "type"},
    {"PodSpec", "containers", "merge", "name"},
    {"PodSpec", "ephemeralContainers", "merge", "name"},
    {"PodSpec", "hostAliases", "merge", "ip"},
    {"PodSpec", "imagePullSecrets", "merge", "name"},
    {"PodSpec", "initContainers", "merge", "name"},
    {"PodSpec", "resourceClaims", "merge,retainKeys", "name"},
    {"PodSpec", "schedulingGates", "merge", "name"},
    {"PodSpec", "topologySpreadConstraints", "merge", "topologyKey"},
    {"PodSpec", "volumes", "merge,retainKeys", "name"},
    {"PodStatus", "conditions", "merge", "type"},
    {"PodStatus", "hostIPs", "merge", "ip"},
    {"PodStatus", "podIPs", "merge", "ip"},
    {"PodStatus", "resourceClaimStatuses", "merge,retainKeys", "name"},
    {"StatefulSetStatus", "conditions", "merge", "type"},
};

static bool has_merge_row(td_str type, td_str field)
{
    bool is_inline = td_str_equal(type, TD_STR("EphemeralContainer"));
    td_str owner = is_inline ? TD_STR("EphemeralContainerCommon") : type;
    for (size_t i = 0; i < sizeof(merge_rows) / sizeof(merge_rows[0]); i++) {
        if (td_str_equal(owner, td_str_from(merge_rows[i].type)) &&
            td_str_equal(field, td_str_from(merge_rows[i].field))) {
            return true;
        }
    }
    return false;
}

static const char *patch_name(enum td_schema_patch patch)
{
    static const char *const names[] = {"", "merge", "replace", "retainKeys", "merge,retainKeys"};
    return names[patch];
}

/* Strategic merge patch has exactly the documented special fields in the everyday kinds. */
static void test_schema_has_documented_merge_keys(void **state)
{
    (void)state;
    struct type_list types = TD_VEC_INIT(TYPES_MAX);
    collect(find("v1", "Pod"), &types);
    collect(find("v1", "ConfigMap"), &types);
    collect(find("v1", "LimitRange"), &types);
    collect(find("apps/v1", "Deployment"), &types);
    collect(find("apps/v1", "StatefulSet"), &types);
    collect(find("autoscaling/v2", "HorizontalPodAutoscaler"), &types);
    collect(find("policy/v1", "PodDisruptionBudget"), &types);
    for (size_t i = 0; i < sizeof(merge_rows) / sizeof(merge_rows[0]); i++) {
        const char *name = merge_rows[i].type;
        name = strcmp(name, "EphemeralContainerCommon") == 0 ? "EphemeralContainer" : name;
        const struct td_schema_type *type = named(&types, name);
        assert_non_null(type);
        const struct td_schema_field *field =
            td_schema_field(type, td_str_from(merge_rows[i].field));
        assert_non_null(field);
        assert_string_equal(patch_name(field->patch), merge_rows[i].how);
        assert_true(td_str_equal(field->patch_key, td_str_from(merge_rows[i].key)));
    }
    for (size_t i = 0; i < types.count; i++) {
        const struct td_schema_type *type = types.items[i];
        for (size_t j = 0; j < type->field_count; j++) {
            bool is_special = type->fields[j].patch != TD_SCHEMA_PATCH_DEFAULT;
            assert_true(!is_special || has_merge_row(type->name, type->fields[j].name));
        }
    }
    td_vec_done(&types);
}

static const struct {
    const char *type;
    const char *field;
    bool is_element; /* of the list in that field */
    const char *how;
} owner_rows[] = {
    {"CSIVolumeSource", "nodePublishSecretRef", false, "atomic"},
    {"CephFSVolumeSource", "secretRef", false, "atomic"},
    {"CinderVolumeSource", "secretRef", false, "atomic"},
    {"ClusterTrustBundleProjection", "labelSelector", false, "atomic"},
    {"Container", "env", false, "by name=\"\""},
    {"Container", "ports", false, "by containerPort=0+protocol=\"TCP\""},
    {"Container", "volumeDevices", false, "by devicePath=\"\""},
    {"Container", "volumeMounts", false, "by mountPath=\"\""},
    {"ContainerRestartRuleOnExitCodes", "values", false, "set"},
    {"DeploymentSpec", "selector", false, "atomic"},
    {"DeploymentStatus", "conditions", false, "by type=\"\""},
    {"DownwardAPIVolumeFile", "fieldRef", false, "atomic"},
    {"DownwardAPIVolumeFile", "resourceFieldRef", false, "atomic"},
    {"EnvVarSource", "configMapKeyRef", false, "atomic"},
    {"EnvVarSource", "fieldRef", false, "atomic"},
    {"EnvVarSource", "fileKeyRef", false, "atomic"},
    {"EnvVarSource", "resourceFieldRef", false, "atomic"},
    {"EnvVarSource", "secretKeyRef", false, "atomic"},
    {"EphemeralContainer", "env", false, "by name=\"\""},
    {"EphemeralContainer", "ports", false, "by containerPort=0+protocol=\"TCP\""},
    {"EphemeralContainer", "volumeDevices", false, "by devicePath=\"\""},
    {"EphemeralContainer", "volumeMounts", false, "by mountPath=\"\""},
    {"FlexVolumeSource", "secretRef", false, "atomic"},
    {"HorizontalPodAutoscalerStatus", "conditions", false, "by type=\"\""},
    {"ISCSIVolumeSource", "secretRef", false, "atomic"},
    {"MetricIdentifier", "selector", false, "atomic"},
    {"NodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", false, "atomic"},
    {"NodeSelector", "nodeSelectorTerms", true, "atomic"},
    {"ObjectMeta", "finalizers", false, "set"},
    {"ObjectMeta", "ownerReferences", false, "by uid=\"\""},
    {"ObjectMeta", "ownerReferences", true, "atomic"},
    {"PersistentVolumeClaimSpec", "dataSource", false, "atomic"},
    {"PersistentVolumeClaimSpec", "selector", false, "atomic"},
    {"PodAffinityTerm", "labelSelector", false, "atomic"},
    {"PodAffinityTerm", "namespaceSelector", false, "atomic"},
    {"PodSpec", "containers", false, "by name=\"\""},
    {"PodSpec", "ephemeralContainers", false, "by name=\"\""},
    {"PodSpec", "hostAliases", false, "by ip=\"\""},
    {"PodSpec", "imagePullSecrets", false, "by name=\"\""},
    {"PodSpec", "imagePullSecrets", true, "atomic"},
    {"PodSpec", "initContainers", false, "by name=\"\""},
    {"PodSpec", "nodeSelector", false, "atomic"},
    {"PodSpec", "resourceClaims", false, "by name=\"\""},
    {"PodSpec", "schedulingGates", false, "by name=\"\""},
    {"PodSpec", "topologySpreadConstraints", false, "by topologyKey=\"\"+whenUnsatisfiable=\"\""},
    {"PodSpec", "volumes", false, "by name=\"\""},
    {"PreferredSchedulingTerm", "preference", false, "atomic"},
    {"RBDVolumeSource", "secretRef", false, "atomic"},
    {"ResourceRequirements", "claims", false, "by name=\"\""},
    {"ScaleIOVolumeSource", "secretRef", false, "atomic"},
    {"StorageOSVolumeSource", "secretRef", false, "atomic"},
    {"TopologySpreadConstraint", "labelSelector", false, "atomic"},
};

static void describe(const struct td_schema_type *type, char *out, size_t size)
{
    static const char *const names[] = {"granular", "atomic", "set", "by "};
    int at = snprintf(out, size, "%s", names[type->topology]);
    for (size_t i = 0; i < type->list_key_count; i++) {
        const struct td_schema_key *key = &type->list_keys[i];
        at += snprintf(out + at, size - (size_t)at, "%s%.*s=%.*s", i > 0 ? "+" : "",
                       TD_STR_ARG(key->name), TD_STR_ARG(key->fallback));
    }
}

/* Server-side apply divides values as documented, with the defaults of list keys. */
static void test_schema_has_documented_owners(void **state)
{
    (void)state;
    struct type_list types = TD_VEC_INIT(TYPES_MAX);
    collect_all(&types);
    for (size_t i = 0; i < sizeof(owner_rows) / sizeof(owner_rows[0]); i++) {
        const struct td_schema_type *type = named(&types, owner_rows[i].type);
        /* Two versions of the autoscaler have types of one name. */
        if (strncmp(owner_rows[i].type, "HorizontalPodAutoscalerS", 24) == 0) {
            type = find("autoscaling/v2", "HorizontalPodAutoscaler");
            type = td_schema_field(type, TD_STR("status"))->type;
        }
        assert_non_null(type);
        const struct td_schema_field *field =
            td_schema_field(type, td_str_from(owner_rows[i].field));
        assert_non_null(field);
        char how[200];
        describe(owner_rows[i].is_element ? field->type->element : field->type, how, sizeof(how));
        assert_string_equal(how, owner_rows[i].how);
    }
    td_vec_done(&types);
}

/* Kinds of values, and lists and maps of them, come from the Go types. */
static void test_schema_has_kinds_of_values(void **state)
{
    (void)state;
    static const struct {
        const char *api_version;
        const char *kind;
        const char *path;
        enum td_schema_kind value;
    } rows[] = {
        {"v1", "Pod", "metadata.creationTimestamp", TD_SCHEMA_TIME},
        {"v1", "Pod", "metadata.managedFields.fieldsV1", TD_SCHEMA_ANY},
        {"v1", "Pod", "metadata.labels", TD_SCHEMA_MAP},
        {"v1", "Pod", "metadata.labels.x", TD_SCHEMA_STRING},
        {"v1", "Pod", "spec.containers", TD_SCHEMA_LIST},
        {"v1", "Pod", "spec.containers.resources.requests.cpu", TD_SCHEMA_QUANTITY},
        {"v1", "Pod", "spec.containers.livenessProbe.httpGet.port", TD_SCHEMA_INT_OR_STRING},
        {"v1", "Pod", "spec.containers.ports.containerPort", TD_SCHEMA_INT32},
        {"v1", "Pod", "spec.terminationGracePeriodSeconds", TD_SCHEMA_INT64},
        {"v1", "Pod", "spec.hostNetwork", TD_SCHEMA_BOOL},
        {"v1", "Pod", "spec.volumes.emptyDir.sizeLimit", TD_SCHEMA_QUANTITY},
        {"v1", "Secret", "data.x", TD_SCHEMA_BYTES},
        {"apps/v1", "ControllerRevision", "data", TD_SCHEMA_ANY},
        {"coordination.k8s.io/v1", "Lease", "spec.renewTime", TD_SCHEMA_MICRO_TIME},
        {"apiextensions.k8s.io/v1", "CustomResourceDefinition",
         "spec.versions.schema.openAPIV3Schema.properties.a.properties.b.maximum",
         TD_SCHEMA_NUMBER},
        {"apiextensions.k8s.io/v1", "CustomResourceDefinition",
         "spec.versions.schema.openAPIV3Schema.items", TD_SCHEMA_ANY},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct td_schema_type *type = find(rows[i].api_version, rows[i].kind);
        td_str path = td_str_from(rows[i].path);
        for (size_t from = 0; from < path.len;) {
            size_t to = td_str_find(path, '.', from);
            type = type->kind == TD_SCHEMA_LIST ? type->element : type;
            type = td_schema_member(type, td_str_slice(path, from, to));
            assert_non_null(type);
            from = to + 1;
        }
        assert_int_equal(type->kind, rows[i].value);
    }
}

/* A custom resource without schema is open, but its metadata is typed. */
static void test_schema_any_object_is_open(void **state)
{
    (void)state;
    const struct td_schema_type *type = td_schema_any_object();
    const struct td_schema_type *spec = td_schema_member(type, TD_STR("spec"));
    assert_int_equal(spec->kind, TD_SCHEMA_ANY);
    assert_int_equal(spec->topology, TD_SCHEMA_GRANULAR);
    assert_ptr_equal(td_schema_member(spec, TD_STR("deeper")), spec);
    assert_null(td_schema_field(type, TD_STR("spec")));
    const struct td_schema_type *metadata = td_schema_member(type, TD_STR("metadata"));
    assert_true(td_str_equal(metadata->name, TD_STR("ObjectMeta")));
    assert_null(td_schema_member(metadata, TD_STR("nonsense")));
    assert_null(td_schema_member(td_schema_member(type, TD_STR("kind")), TD_STR("x")));
}

/* Unknown fields are named by upstream's paths; values of the wrong shape are not our matter. */
static void test_schema_names_unknown_fields(void **state)
{
    (void)state;
    static const struct {
        const char *object;
        const char *expected;
    } rows[] = {
        {"{}", ""},
        {"{'metadata':{'labels':{'any':'thing'}},'spec':{'containers':[{'name':'a'}]}}", ""},
        {"{'foo':1}", "unknown field \"foo\";"},
        {"{'spec':{'containers':[{'name':'a'},{'foo':1,'ports':[{'x':1}]}]}}",
         "unknown field \"spec.containers[1].foo\";"
         "unknown field \"spec.containers[1].ports[0].x\";"},
        {"{'spec':{'Containers':[]}}", "unknown field \"spec.Containers\";"},
        {"{'spec':{'containers':{'foo':1}},'metadata':[1]}", ""},
        {"{'spec':{'nodeSelector':{'a':{'b':1}}}}", ""},
        {"{'metadata':{'managedFields':[{'fieldsV1':{'f:x':{}},'y':1}]}}",
         "unknown field \"metadata.managedFields[0].y\";"},
        {"{'a\\nb\\u0001':1}", "unknown field \"a\\nb\\x01\";"},
        {"{'':1}", "unknown field \"\";"},
        {"[{'foo':1}]", ""},
        {"null", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        td_auto_arena arena;
        td_arena_init(&arena, ARENA_BYTES);
        struct td_json_problems problems = {.arena = &arena};
        td_schema_find_unknown(find("v1", "Pod"), json(&arena, rows[i].object), &problems);
        td_auto_buf got;
        td_buf_init(&got, ARENA_BYTES);
        for (size_t j = 0; j < problems.count; j++) {
            (void)td_buf_append(&got, problems.items[j]);
            (void)td_buf_append_char(&got, ';');
        }
        assert_string_equal(got.ptr ? got.ptr : "", rows[i].expected);
    }
}

/* At most so many problems are kept, and each path has a bound. */
static void test_schema_bounds_problems(void **state)
{
    (void)state;
    td_auto_arena arena;
    td_arena_init(&arena, ARENA_BYTES);
    struct td_json *object = td_json_new_object(&arena);
    for (int i = 0; i < TD_STRICT_PROBLEMS_MAX + 5; i++) {
        td_json_set(&arena, object, td_arena_format(&arena, "x%d", i), td_json_new_null(&arena));
    }
    struct td_json_problems problems = {.arena = &arena};
    td_schema_find_unknown(find("v1", "Pod"), object, &problems);
    assert_int_equal(problems.count, TD_STRICT_PROBLEMS_MAX);
    assert_true(problems.is_cut);

    char name[3 * TD_STRICT_PATH_BYTES_MAX];
    memset(name, 'n', sizeof(name));
    object = td_json_new_object(&arena);
    td_json_set(&arena, object, (td_str){.ptr = name, .len = sizeof(name)},
                td_json_new_null(&arena));
    problems = (struct td_json_problems){.arena = &arena};
    td_schema_find_unknown(find("v1", "Pod"), object, &problems);
    assert_int_equal(problems.count, 1);
    assert_true(problems.items[0].len < TD_STRICT_PATH_BYTES_MAX + 20);
}

/* What the API server publishes of types and fields: names, allowed values, defaults. */
static void test_schema_has_what_is_published(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        const char *path; /* of members and "[]" */
        const char *package;
        const char *name;
        const char *values;
        const char *fallback;
        bool is_required;
        bool has_default;
    } rows[] = {
        {"Pod", "spec", "io.k8s.api.core.v1", "PodSpec", "", "", false, true},
        {"Pod", "metadata", "io.k8s.apimachinery.pkg.apis.meta.v1", "ObjectMeta", "", "", false,
         true},
        {"Pod", "spec.containers", "", "", "", "", true, false},
        {"Pod", "spec.restartPolicy", "", "", "Always,Never,OnFailure", "", false, false},
        {"Pod", "spec.containers.[].name", "", "", "", "", true, true},
        {"Pod", "spec.containers.[].image", "", "", "", "", false, false},
        {"Pod", "spec.containers.[].ports.[].protocol", "", "", "SCTP,TCP,UDP", "\"TCP\"", false,
         true},
        {"Service", "spec.ipFamilies.[]", "", "", ",IPv4,IPv6", "", false, false},
        {"ReplicationController", "spec.replicas", "", "", "", "1", false, true},
        {"Pod", "metadata.creationTimestamp", "io.k8s.apimachinery.pkg.apis.meta.v1", "Time", "",
         "", false, false},
        {"LimitRange", "spec.limits.[].max.*", "io.k8s.apimachinery.pkg.api.resource", "Quantity",
         "", "", false, false},
    };
    for (size_t i = 0; i < TD_COUNT(rows); i++) {
        const struct td_schema_type *type = find("v1", rows[i].kind);
        const struct td_schema_field *field = NULL;
        td_str rest = td_str_from(rows[i].path);
        while (rest.len > 0) {
            size_t dot = td_str_find(rest, '.', 0);
            td_str step = td_str_slice(rest, 0, dot);
            rest = td_str_slice(rest, dot + 1, rest.len);
            bool is_element = td_str_equal(step, TD_STR("[]")) || td_str_equal(step, TD_STR("*"));
            field = is_element ? NULL : td_schema_field(type, step);
            type = is_element ? type->element : field->type;
        }
        assert_true(td_str_equal(type->package, td_str_from(rows[i].package)));
        assert_true(td_str_equal(type->name, td_str_from(rows[i].name)));
        assert_true(td_str_equal(type->values, td_str_from(rows[i].values)));
        assert_true(td_str_equal(type->fallback, td_str_from(rows[i].fallback)));
        assert_int_equal(field && field->is_required, rows[i].is_required);
        assert_int_equal(field && field->has_default, rows[i].has_default);
    }
    const struct td_schema_type *claim = find("v1", "PersistentVolume");
    claim = td_schema_member(td_schema_member(claim, TD_STR("spec")), TD_STR("claimRef"));
    assert_true(claim->is_variant && claim->topology == TD_SCHEMA_GRANULAR);
    assert_true(td_str_equal(td_schema_list_meta()->name, TD_STR("ListMeta")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema_knows_its_kinds),
        cmocka_unit_test(test_schema_table_is_sound),
        cmocka_unit_test(test_schema_has_documented_merge_keys),
        cmocka_unit_test(test_schema_has_documented_owners),
        cmocka_unit_test(test_schema_has_kinds_of_values),
        cmocka_unit_test(test_schema_any_object_is_open),
        cmocka_unit_test(test_schema_names_unknown_fields),
        cmocka_unit_test(test_schema_bounds_problems),
        cmocka_unit_test(test_schema_has_what_is_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
