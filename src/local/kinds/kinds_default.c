/*
 * Two tables, both sorted by type: members with a constant default, and types whose defaults have
 * to be worked out. The tree is walked from the root downwards, as the server's defaulting does, so
 * that a parent's rule (an update strategy that brings its parameters) comes before its children's.
 */
#include "local/kinds/kinds_default.h"
#include "api/pod/pod_validate.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/limits.h"

struct default_member {
    td_str type;
    td_str member;
    const char *json; /* one scalar, or {} */
};

#define ROW(type_name, member_name, text)                                                          \
    {                                                                                              \
        .type = TD_STR_INIT(type_name), .member = TD_STR_INIT(member_name), .json = (text)         \
    }

static const struct default_member default_members[] = {
    ROW("AzureDiskVolumeSource", "cachingMode", "\"ReadWrite\""),
    ROW("AzureDiskVolumeSource", "fsType", "\"ext4\""),
    ROW("AzureDiskVolumeSource", "kind", "\"Shared\""),
    ROW("AzureDiskVolumeSource", "readOnly", "false"),
    ROW("ConfigMapVolumeSource", "defaultMode", "420"),
    ROW("ContainerPort", "protocol", "\"TCP\""),
    ROW("CronJobSpec", "concurrencyPolicy", "\"Allow\""),
    ROW("CronJobSpec", "failedJobsHistoryLimit", "1"),
    ROW("CronJobSpec", "successfulJobsHistoryLimit", "3"),
    ROW("CronJobSpec", "suspend", "false"),
    ROW("DaemonSetSpec", "revisionHistoryLimit", "10"),
    ROW("DaemonSetUpdateStrategy", "type", "\"RollingUpdate\""),
    ROW("DeploymentSpec", "progressDeadlineSeconds", "600"),
    ROW("DeploymentSpec", "replicas", "1"),
    ROW("DeploymentSpec", "revisionHistoryLimit", "10"),
    ROW("DeploymentStrategy", "type", "\"RollingUpdate\""),
    ROW("DownwardAPIVolumeSource", "defaultMode", "420"),
    ROW("EndpointPort", "name", "\"\""),
    ROW("EndpointPort", "protocol", "\"TCP\""),
    ROW("FileKeySelector", "optional", "false"),
    ROW("GRPCAction", "service", "\"\""),
    ROW("HTTPGetAction", "path", "\"/\""),
    ROW("HTTPGetAction", "scheme", "\"HTTP\""),
    ROW("HostPathVolumeSource", "type", "\"\""),
    ROW("ISCSIVolumeSource", "iscsiInterface", "\"default\""),
    ROW("MutatingWebhook", "failurePolicy", "\"Fail\""),
    ROW("MutatingWebhook", "matchPolicy", "\"Equivalent\""),
    ROW("MutatingWebhook", "namespaceSelector", "{}"),
    ROW("MutatingWebhook", "objectSelector", "{}"),
    ROW("MutatingWebhook", "reinvocationPolicy", "\"Never\""),
    ROW("MutatingWebhook", "timeoutSeconds", "10"),
    ROW("NamespaceStatus", "phase", "\"Active\""),
    ROW("NetworkPolicyPort", "protocol", "\"TCP\""),
    ROW("ObjectFieldSelector", "apiVersion", "\"v1\""),
    ROW("PersistentVolumeClaimSpec", "volumeMode", "\"Filesystem\""),
    ROW("PersistentVolumeClaimStatus", "phase", "\"Pending\""),
    ROW("PersistentVolumeSpec", "persistentVolumeReclaimPolicy", "\"Retain\""),
    ROW("PersistentVolumeSpec", "volumeMode", "\"Filesystem\""),
    ROW("PersistentVolumeStatus", "phase", "\"Pending\""),
    ROW("PodFailurePolicyOnPodConditionsPattern", "status", "\"True\""),
    ROW("PodSpec", "dnsPolicy", "\"ClusterFirst\""),
    ROW("PodSpec", "restartPolicy", "\"Always\""),
    ROW("PodSpec", "schedulerName", "\"default-scheduler\""),
    ROW("PodSpec", "securityContext", "{}"),
    ROW("PodSpec", "terminationGracePeriodSeconds", "30"),
    ROW("PriorityClass", "preemptionPolicy", "\"PreemptLowerPriority\""),
    ROW("Probe", "failureThreshold", "3"),
    ROW("Probe", "periodSeconds", "10"),
    ROW("Probe", "successThreshold", "1"),
    ROW("Probe", "timeoutSeconds", "1"),
    ROW("ProjectedVolumeSource", "defaultMode", "420"),
    ROW("RBDVolumeSource", "keyring", "\"/etc/ceph/keyring\""),
    ROW("RBDVolumeSource", "pool", "\"rbd\""),
    ROW("RBDVolumeSource", "user", "\"admin\""),
    ROW("ReplicaSetSpec", "replicas", "1"),
    ROW("ReplicationControllerSpec", "replicas", "1"),
    ROW("RoleRef", "apiGroup", "\"rbac.authorization.k8s.io\""),
    ROW("RuleWithOperations", "scope", "\"*\""),
    ROW("ScaleIOVolumeSource", "fsType", "\"xfs\""),
    ROW("ScaleIOVolumeSource", "storageMode", "\"ThinProvisioned\""),
    ROW("Secret", "type", "\"Opaque\""),
    ROW("SecretVolumeSource", "defaultMode", "420"),
    ROW("ServiceAccountTokenProjection", "expirationSeconds", "3600"),
    ROW("ServicePort", "protocol", "\"TCP\""),
    ROW("ServiceReference", "port", "443"),
    ROW("ServiceSpec", "sessionAffinity", "\"None\""),
    ROW("ServiceSpec", "type", "\"ClusterIP\""),
    ROW("StatefulSetPersistentVolumeClaimRetentionPolicy", "whenDeleted", "\"Retain\""),
    ROW("StatefulSetPersistentVolumeClaimRetentionPolicy", "whenScaled", "\"Retain\""),
    ROW("StatefulSetSpec", "persistentVolumeClaimRetentionPolicy", "{}"),
    ROW("StatefulSetSpec", "podManagementPolicy", "\"OrderedReady\""),
    ROW("StatefulSetSpec", "replicas", "1"),
    ROW("StatefulSetSpec", "revisionHistoryLimit", "10"),
    ROW("StorageClass", "reclaimPolicy", "\"Delete\""),
    ROW("StorageClass", "volumeBindingMode", "\"Immediate\""),
    ROW("ValidatingWebhook", "failurePolicy", "\"Fail\""),
    ROW("ValidatingWebhook", "matchPolicy", "\"Equivalent\""),
    ROW("ValidatingWebhook", "namespaceSelector", "{}"),
    ROW("ValidatingWebhook", "objectSelector", "{}"),
    ROW("ValidatingWebhook", "timeoutSeconds", "10"),
};

#define DEFAULT_MEMBER_COUNT (TD_COUNT(default_members))

static struct td_json *default_value(struct td_arena *arena, const char *json)
{
    td_str text = td_str_from(json);
    switch (json[0]) {
    case '{':
        return td_json_new_object(arena);
    case '"':
        return td_json_new_string(arena, td_str_slice(text, 1, text.len - 1));
    case 't':
    case 'f':
        return td_json_new_bool(arena, json[0] == 't');
    default: {
        int64_t number = 0;
        td_assert(td_str_to_int64(text, &number));
        return td_json_new_int64(arena, number);
    }
    }
}

static void default_set(struct td_arena *arena, struct td_json *object, td_str member,
                        const char *json)
{
    if (!td_kind_member(object, member)) {
        td_json_set(arena, object, member, default_value(arena, json));
    }
}

/* The parameters of a rolling update come with its type, given or defaulted. */
static void default_rolling(struct td_arena *arena, struct td_json *strategy,
                            const char *unavailable, const char *surge)
{
    if (td_str_equal(td_json_text(strategy, "type"), TD_STR("RollingUpdate"))) {
        struct td_json *rolling = td_json_ensure_object(arena, strategy, TD_STR("rollingUpdate"));
        default_set(arena, rolling, TD_STR("maxUnavailable"), unavailable);
        default_set(arena, rolling, TD_STR("maxSurge"), surge);
    }
}

static void default_deployment_strategy(struct td_arena *arena, struct td_json *strategy)
{
    default_rolling(arena, strategy, "\"25%\"", "\"25%\"");
}

static void default_daemon_set_strategy(struct td_arena *arena, struct td_json *strategy)
{
    default_rolling(arena, strategy, "1", "0");
}

static void default_stateful_set_strategy(struct td_arena *arena, struct td_json *strategy)
{
    if (td_json_text(strategy, "type").len == 0) {
        td_json_set_str(arena, strategy, TD_STR("type"), TD_STR("RollingUpdate"));
        (void)td_json_ensure_object(arena, strategy, TD_STR("rollingUpdate")); /* filled below */
    }
    struct td_json *rolling = td_kind_member(strategy, TD_STR("rollingUpdate"));
    if (rolling && td_str_equal(td_json_text(strategy, "type"), TD_STR("RollingUpdate"))) {
        default_set(arena, rolling, TD_STR("partition"), "0");
    }
}

/* Labels of the template become the object's own where it has none. */
static void default_take_labels(struct td_arena *arena, struct td_json *object,
                                const struct td_json *labels)
{
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    const struct td_json *own = td_kind_member(metadata, TD_STR("labels"));
    if (labels && (!own || own->count == 0)) {
        td_json_set_copy(arena, metadata, TD_STR("labels"), labels);
    }
}

/* Of jobs, not of the templates of CronJobs. */
static void default_job(struct td_arena *arena, struct td_json *job)
{
    struct td_json *spec = td_json_ensure_object(arena, job, TD_STR("spec"));
    default_take_labels(arena, job, td_json_get_path(spec, "template.metadata.labels"));
    if (!td_kind_member(spec, TD_STR("parallelism"))) {
        default_set(arena, spec, TD_STR("completions"), "1");
    }
    bool is_indexed = td_kind_member(spec, TD_STR("backoffLimitPerIndex")) != NULL;
    default_set(arena, spec, TD_STR("backoffLimit"), is_indexed ? "2147483647" : "6");
    bool has_policy = td_kind_member(spec, TD_STR("podFailurePolicy")) != NULL;
    default_set(arena, spec, TD_STR("podReplacementPolicy"),
                has_policy ? "\"Failed\"" : "\"TerminatingOrFailed\"");
    default_set(arena, spec, TD_STR("parallelism"), "1");
    default_set(arena, spec, TD_STR("completionMode"), "\"NonIndexed\"");
    default_set(arena, spec, TD_STR("suspend"), "false");
    default_set(arena, spec, TD_STR("manualSelector"), "false");
}

/* Claims say what they are, also inside a template. */
static void default_stateful_set_spec(struct td_arena *arena, struct td_json *spec)
{
    struct td_json *claim =
        td_json_first_item(td_kind_member(spec, TD_STR("volumeClaimTemplates")));
    for (; claim; claim = claim->next) {
        td_json_set_str(arena, claim, TD_STR("apiVersion"), TD_STR("v1"));
        td_json_set_str(arena, claim, TD_STR("kind"), TD_STR("PersistentVolumeClaim"));
    }
}

static void default_network_policy_spec(struct td_arena *arena, struct td_json *spec)
{
    const struct td_json *types = td_kind_member(spec, TD_STR("policyTypes"));
    const struct td_json *egress = td_kind_member(spec, TD_STR("egress"));
    if (types && types->count > 0) {
        return;
    }
    struct td_json *list = td_json_new_array(arena);
    td_json_append(list, td_json_new_string(arena, TD_STR("Ingress")));
    if (egress && egress->count > 0) {
        td_json_append(list, td_json_new_string(arena, TD_STR("Egress")));
    }
    td_json_set(arena, spec, TD_STR("policyTypes"), list);
}

static void default_replication_controller(struct td_arena *arena, struct td_json *object)
{
    struct td_json *spec = td_json_ensure_object(arena, object, TD_STR("spec"));
    const struct td_json *labels = td_json_get_path(spec, "template.metadata.labels");
    default_take_labels(arena, object, labels);
    const struct td_json *selector = td_kind_member(spec, TD_STR("selector"));
    if (labels && (!selector || selector->count == 0)) {
        td_json_set_copy(arena, spec, TD_STR("selector"), labels);
    }
}

/* Write-only text members become data, which they override. */
static void default_secret(struct td_arena *arena, struct td_json *secret)
{
    const struct td_json *plain = td_kind_member(secret, TD_STR("stringData"));
    for (const struct td_json *item = td_json_first_member(plain); item; item = item->next) {
        td_auto_buf text = td_buf_capped(TD_JSON_BYTES_MAX);
        td_base64_write(td_json_is(item, TD_JSON_TYPE_STRING) ? item->text : TD_STR_EMPTY,
                        TD_BASE64_STANDARD, &text);
        struct td_json *data = td_json_ensure_object(arena, secret, TD_STR("data"));
        td_json_set_str(arena, data, item->key, td_arena_copy_str(arena, td_buf_str(&text)));
    }
    (void)td_json_remove(secret, TD_STR("stringData")); /* mostly absent */
}

static bool default_is_type(const struct td_json *spec, td_str type)
{
    return td_str_equal(td_json_text(spec, "type"), type);
}

static void default_service_ports(struct td_arena *arena, struct td_json *spec)
{
    struct td_json *port = td_json_first_item(td_kind_member(spec, TD_STR("ports")));
    for (; port; port = port->next) {
        const struct td_json *target = td_json_get(port, TD_STR("targetPort"));
        bool is_text = td_json_is(target, TD_JSON_TYPE_STRING) && target->text.len > 0;
        if (!is_text && td_json_get_int64(port, TD_STR("targetPort"), 0) == 0) {
            td_json_set_int64(arena, port, TD_STR("targetPort"),
                              td_json_get_int64(port, TD_STR("port"), 0));
        }
    }
}

static void default_service_spec(struct td_arena *arena, struct td_json *spec)
{
    bool is_cluster = default_is_type(spec, TD_STR("ClusterIP"));
    bool is_balancer = default_is_type(spec, TD_STR("LoadBalancer"));
    bool is_node_port = default_is_type(spec, TD_STR("NodePort"));
    td_str affinity = td_json_text(spec, "sessionAffinity");
    if (td_str_equal(affinity, TD_STR("None"))) {
        (void)td_json_remove(spec, TD_STR("sessionAffinityConfig")); /* may be absent */
    } else if (td_str_equal(affinity, TD_STR("ClientIP"))) {
        struct td_json *config =
            td_json_ensure_object(arena, spec, TD_STR("sessionAffinityConfig"));
        struct td_json *client = td_json_ensure_object(arena, config, TD_STR("clientIP"));
        default_set(arena, client, TD_STR("timeoutSeconds"), "10800");
    }
    const struct td_json *external = td_kind_member(spec, TD_STR("externalIPs"));
    if (is_balancer || is_node_port || (is_cluster && external && external->count > 0)) {
        default_set(arena, spec, TD_STR("externalTrafficPolicy"), "\"Cluster\"");
    }
    if (is_cluster || is_balancer || is_node_port) {
        default_set(arena, spec, TD_STR("internalTrafficPolicy"), "\"Cluster\"");
    }
    if (is_balancer) {
        default_set(arena, spec, TD_STR("allocateLoadBalancerNodePorts"), "true");
    }
    default_service_ports(arena, spec);
}

static void default_namespace(struct td_arena *arena, struct td_json *object)
{
    struct td_json *metadata = td_json_ensure_object(arena, object, TD_STR("metadata"));
    td_str name = td_json_text(metadata, "name");
    if (name.len > 0) {
        struct td_json *labels = td_json_ensure_object(arena, metadata, TD_STR("labels"));
        td_json_set_str(arena, labels, TD_STR("kubernetes.io/metadata.name"), name);
    }
}

static void default_copy_missing(struct td_arena *arena, struct td_json *to,
                                 const struct td_json *from)
{
    for (const struct td_json *item = td_json_first_member(from); item; item = item->next) {
        if (!td_json_get(to, item->key)) {
            td_json_set_copy(arena, to, item->key, item);
        }
    }
}

static void default_node_status(struct td_arena *arena, struct td_json *status)
{
    const struct td_json *capacity = td_kind_member(status, TD_STR("capacity"));
    if (capacity && !td_kind_member(status, TD_STR("allocatable"))) {
        td_json_set_copy(arena, status, TD_STR("allocatable"), capacity);
    }
}

static void default_limit_range_item(struct td_arena *arena, struct td_json *item)
{
    if (!default_is_type(item, TD_STR("Container"))) {
        return;
    }
    struct td_json *limits = td_json_ensure_object(arena, item, TD_STR("default"));
    struct td_json *requests = td_json_ensure_object(arena, item, TD_STR("defaultRequest"));
    default_copy_missing(arena, limits, td_kind_member(item, TD_STR("max")));
    default_copy_missing(arena, requests, limits);
    default_copy_missing(arena, requests, td_kind_member(item, TD_STR("min")));
}

static void default_subject(struct td_arena *arena, struct td_json *subject)
{
    td_str kind = td_json_text(subject, "kind");
    if (td_str_equal(kind, TD_STR("User")) || td_str_equal(kind, TD_STR("Group"))) {
        default_set(arena, subject, TD_STR("apiGroup"), "\"rbac.authorization.k8s.io\"");
    }
}

static td_str default_lower(struct td_arena *arena, td_str text)
{
    char *lower = td_arena_alloc(arena, text.len + 1);
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.ptr[i];
        lower[i] = byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
    }
    return (td_str){.ptr = lower, .len = text.len};
}

static void default_definition(struct td_arena *arena, struct td_json *definition)
{
    struct td_json *spec = td_json_ensure_object(arena, definition, TD_STR("spec"));
    struct td_json *names = td_json_ensure_object(arena, spec, TD_STR("names"));
    td_str kind = td_json_text(names, "kind");
    if (kind.len > 0 && td_json_text(names, "singular").len == 0) {
        td_json_set_str(arena, names, TD_STR("singular"), default_lower(arena, kind));
    }
    if (kind.len > 0 && td_json_text(names, "listKind").len == 0) {
        td_json_set_str(arena, names, TD_STR("listKind"),
                        td_arena_format(arena, "%.*sList", TD_STR_ARG(kind)));
    }
    if (!td_kind_member(spec, TD_STR("conversion"))) {
        struct td_json *conversion = td_json_ensure_object(arena, spec, TD_STR("conversion"));
        td_json_set_str(arena, conversion, TD_STR("strategy"), TD_STR("None"));
    }
    struct td_json *status = td_json_ensure_object(arena, definition, TD_STR("status"));
    const struct td_json *stored = td_kind_member(status, TD_STR("storedVersions"));
    const struct td_json *version = td_json_first_item(td_kind_member(spec, TD_STR("versions")));
    for (; version && (!stored || stored->count == 0); version = version->next) {
        if (td_json_get_bool(version, TD_STR("storage"), false)) {
            struct td_json *list = td_json_new_array(arena);
            td_json_append(list, td_json_new_string(arena, td_json_text(version, "name")));
            td_json_set(arena, status, TD_STR("storedVersions"), list);
            return;
        }
    }
}

struct default_rule {
    td_str type;
    void (*apply)(struct td_arena *arena, struct td_json *object);
    bool is_after; /* the constants of the type */
};

static const struct default_rule default_rules[] = {
    {TD_STR_INIT("Container"), td_default_container, false},
    {TD_STR_INIT("CustomResourceDefinition"), default_definition, false},
    {TD_STR_INIT("DaemonSetUpdateStrategy"), default_daemon_set_strategy, true},
    {TD_STR_INIT("DeploymentStrategy"), default_deployment_strategy, true},
    {TD_STR_INIT("EphemeralContainer"), td_default_container, false},
    {TD_STR_INIT("Job"), default_job, false},
    {TD_STR_INIT("LimitRangeItem"), default_limit_range_item, false},
    {TD_STR_INIT("Namespace"), default_namespace, false},
    {TD_STR_INIT("NetworkPolicySpec"), default_network_policy_spec, false},
    {TD_STR_INIT("NodeStatus"), default_node_status, false},
    {TD_STR_INIT("Pod"), td_default_pod, false},
    {TD_STR_INIT("PodSpec"), td_default_pod_spec, false},
    {TD_STR_INIT("ReplicationController"), default_replication_controller, false},
    {TD_STR_INIT("Secret"), default_secret, false},
    {TD_STR_INIT("ServiceSpec"), default_service_spec, true},
    {TD_STR_INIT("StatefulSetSpec"), default_stateful_set_spec, false},
    {TD_STR_INIT("StatefulSetUpdateStrategy"), default_stateful_set_strategy, false},
    {TD_STR_INIT("Subject"), default_subject, false},
    {TD_STR_INIT("Volume"), td_default_volume, false},
};

#define DEFAULT_RULE_COUNT (TD_COUNT(default_rules))

static const struct default_rule *default_find_rule(td_str type)
{
    size_t at = td_str_place(default_rules, DEFAULT_RULE_COUNT, sizeof(default_rules[0]), type);
    bool is_found = at < DEFAULT_RULE_COUNT && td_str_equal(default_rules[at].type, type);
    return is_found ? &default_rules[at] : NULL;
}

/* The first row of a type, or of the next one. */
static size_t default_find_member(td_str type)
{
    return td_str_place(default_members, DEFAULT_MEMBER_COUNT, sizeof(default_members[0]), type);
}

static void default_object(struct td_arena *arena, const struct td_schema_type *type,
                           struct td_json *object)
{
    const struct default_rule *rule = default_find_rule(type->name);
    if (rule && !rule->is_after) {
        rule->apply(arena, object);
    }
    size_t i = default_find_member(type->name);
    for (; i < DEFAULT_MEMBER_COUNT && td_str_equal(default_members[i].type, type->name); i++) {
        const struct default_member *row = &default_members[i];
        const struct td_schema_field *field = td_schema_field(type, row->member);
        const struct td_json *member = td_json_get(object, row->member);
        bool is_empty = td_json_is(member, TD_JSON_TYPE_STRING) && member->text.len == 0;
        if (field && is_empty && !field->is_pointer) {
            (void)td_json_remove(object, row->member); /* always written, but says nothing */
        }
        if (field) { /* types of two groups may share a name */
            default_set(arena, object, row->member, row->json);
        }
    }
    if (rule && rule->is_after) {
        rule->apply(arena, object);
    }
}

/* Trees are as deep as their text was, which the parser caps. */
static void default_walk(struct td_arena *arena, const struct td_schema_type *type,
                         struct td_json *value, uint32_t depth)
{
    bool is_collection = type->kind == TD_SCHEMA_LIST || type->kind == TD_SCHEMA_MAP;
    bool is_object = type->kind == TD_SCHEMA_OBJECT && value->type == TD_JSON_TYPE_OBJECT;
    if (depth > TD_JSON_DEPTH_MAX || (!is_collection && !is_object)) {
        return;
    }
    if (is_object) {
        default_object(arena, type, value);
    }
    for (struct td_json *child = td_json_first_child(value); child; child = child->next) {
        const struct td_schema_type *inner =
            is_object ? td_schema_member(type, child->key) : type->element;
        if (inner) {
            default_walk(arena, inner, child, depth + 1);
        }
    }
}

void td_kind_set_defaults(struct td_arena *arena, const struct td_schema_type *type,
                          struct td_json *object)
{
    default_walk(arena, type, object, 0);
    td_kind_to_wire(arena, type, object); /* what a rule made follows the same form */
}
