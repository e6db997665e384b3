/* The objects of a new cluster as a table of manifests, created when they are missing. */
#include "local/system.h"

#include "api/objects.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/yaml/yaml.h"
#include "local/api/api.h"
#include "local/kinds/kinds.h"
#include "local/resources/resource.h"
#include "local/store/edit.h"

#define SYSTEM_NAMESPACE(name)                                                                     \
    "---\n"                                                                                        \
    "{apiVersion: v1, kind: Namespace, metadata: {name: " name                                     \
    ", labels: {kubernetes.io/metadata.name: " name                                                \
    "}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}\n"

#define SYSTEM_PRIORITY(name, value)                                                               \
    "---\n"                                                                                        \
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: " name               \
    "}, value: " value ", preemptionPolicy: PreemptLowerPriority}\n"

#define SYSTEM_ROLE(name)                                                                          \
    "---\n"                                                                                        \
    "apiVersion: rbac.authorization.k8s.io/v1\n"                                                   \
    "kind: ClusterRole\n"                                                                          \
    "metadata: {name: \"" name "\", labels: {kubernetes.io/bootstrapping: rbac-defaults}}\n"       \
    "rules:\n"

#define SYSTEM_BINDING(name, groups)                                                               \
    "---\n"                                                                                        \
    "apiVersion: rbac.authorization.k8s.io/v1\n"                                                   \
    "kind: ClusterRoleBinding\n"                                                                   \
    "metadata: {name: \"" name "\", labels: {kubernetes.io/bootstrapping: rbac-defaults}}\n"       \
    "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \"" name "\"}\n"      \
    "subjects:\n" groups

#define SYSTEM_GROUP(name)                                                                         \
    "- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"" name "\"}\n"

/* Everything of a namespace that is neither a secret's reading nor a change of rights. */
#define SYSTEM_GROUPS                                                                              \
    "\"\", apps, autoscaling, autoscaling.k8s.io, autoscaling.tandem.dev, batch, policy, "         \
    "networking.k8s.io, discovery.k8s.io, events.k8s.io, metrics.k8s.io, custom.metrics.k8s.io, "  \
    "external.metrics.k8s.io"
#define SYSTEM_READABLE                                                                            \
    "- apiGroups: [" SYSTEM_GROUPS "]\n"                                                           \
    "  resources: [bindings, configmaps, endpoints, events, limitranges, namespaces, "             \
    "namespaces/status, persistentvolumeclaims, persistentvolumeclaims/status, pods, pods/log, "   \
    "pods/status, replicationcontrollers, replicationcontrollers/scale, "                          \
    "replicationcontrollers/status, resourcequotas, resourcequotas/status, serviceaccounts, "      \
    "services, services/status, controllerrevisions, daemonsets, daemonsets/status, "              \
    "deployments, deployments/scale, deployments/status, replicasets, replicasets/scale, "         \
    "replicasets/status, statefulsets, statefulsets/scale, statefulsets/status, "                  \
    "horizontalpodautoscalers, horizontalpodautoscalers/status, verticalpodautoscalers, "          \
    "verticalpodautoscalers/status, verticalpodautoscalercheckpoints, hvpas, hvpas/status, "       \
    "cronjobs, cronjobs/status, jobs, jobs/status, poddisruptionbudgets, "                         \
    "poddisruptionbudgets/status, ingresses, ingresses/status, networkpolicies, endpointslices]\n" \
    "  verbs: [get, list, watch]\n"                                                                \
    "- {apiGroups: [metrics.k8s.io, custom.metrics.k8s.io, external.metrics.k8s.io], resources: "  \
    "[\"*\"], verbs: [get, list]}\n"
#define SYSTEM_WRITABLE                                                                            \
    "- apiGroups: [" SYSTEM_GROUPS "]\n"                                                           \
    "  resources: [configmaps, events, persistentvolumeclaims, pods, pods/eviction, pods/resize, " \
    "replicationcontrollers, replicationcontrollers/scale, serviceaccounts, services, "            \
    "daemonsets, deployments, deployments/scale, replicasets, replicasets/scale, statefulsets, "   \
    "statefulsets/scale, horizontalpodautoscalers, verticalpodautoscalers, hvpas, cronjobs, "      \
    "jobs, poddisruptionbudgets, ingresses, networkpolicies]\n"                                    \
    "  verbs: [create, delete, deletecollection, patch, update]\n"                                 \
    "- {apiGroups: [\"\"], resources: [secrets], verbs: [create, delete, deletecollection, get, "  \
    "list, patch, update, watch]}\n"                                                               \
    "- {apiGroups: [\"\"], resources: [serviceaccounts/token], verbs: [create]}\n"

/* What every cluster begins with: pieces of one YAML stream. */
static const char *const system_objects[] = {
    SYSTEM_NAMESPACE("default"),
    SYSTEM_NAMESPACE("kube-system"),
    SYSTEM_NAMESPACE("kube-public"),
    SYSTEM_NAMESPACE("kube-node-lease"),
    "---\n"
    "apiVersion: v1\n"
    "kind: Service\n"
    "metadata: {name: kubernetes, namespace: default, labels: {component: apiserver, provider: "
    "kubernetes}}\n"
    "spec: {type: ClusterIP, clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1], ipFamilies: [IPv4], "
    "ipFamilyPolicy: SingleStack, internalTrafficPolicy: Cluster, sessionAffinity: None, ports: "
    "[{name: https, port: 443, protocol: TCP, targetPort: 6443}]}\n"
    "status: {loadBalancer: {}}\n",
    SYSTEM_PRIORITY("system-cluster-critical", "2000000000"),
    SYSTEM_PRIORITY("system-node-critical", "2000001000"),
    SYSTEM_ROLE("cluster-admin"),
    "- {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}\n"
    "- {nonResourceURLs: [\"*\"], verbs: [\"*\"]}\n",
    SYSTEM_ROLE("view"),
    SYSTEM_READABLE,
    SYSTEM_ROLE("edit"),
    SYSTEM_READABLE,
    SYSTEM_WRITABLE,
    SYSTEM_ROLE("admin"),
    SYSTEM_READABLE,
    SYSTEM_WRITABLE,
    "- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [create, "
    "delete, deletecollection, get, list, patch, update, watch]}\n",
    SYSTEM_ROLE("system:discovery"),
    "- {nonResourceURLs: [/api, \"/api/*\", /apis, \"/apis/*\", /healthz, /livez, /openapi, "
    "\"/openapi/*\", /readyz, /version, /version/], verbs: [get]}\n",
    SYSTEM_ROLE("system:basic-user"),
    "- {apiGroups: [authorization.k8s.io], resources: [selfsubjectaccessreviews, "
    "selfsubjectrulesreviews], verbs: [create]}\n"
    "- {apiGroups: [authentication.k8s.io], resources: [selfsubjectreviews], verbs: [create]}\n",
    SYSTEM_ROLE("system:public-info-viewer"),
    "- {nonResourceURLs: [/healthz, /livez, /readyz, /version, /version/], verbs: [get]}\n",
    SYSTEM_BINDING("cluster-admin", SYSTEM_GROUP("system:masters")),
    SYSTEM_BINDING("system:discovery", SYSTEM_GROUP("system:authenticated")),
    SYSTEM_BINDING("system:basic-user", SYSTEM_GROUP("system:authenticated")),
    SYSTEM_BINDING("system:public-info-viewer",
                   SYSTEM_GROUP("system:authenticated") SYSTEM_GROUP("system:unauthenticated")),
};

/* The stored object's own version is kept by an update, so that watchers see one change. */
static int system_put(struct td_api *api, struct td_arena *arena, struct td_json *object,
                      bool is_updated, struct td_error *err)
{
    td_str api_version = td_json_text(object, "apiVersion");
    td_str kind = td_json_text(object, "kind");
    struct td_json *metadata = td_json_get(object, TD_STR("metadata"));
    td_str name = td_json_text(metadata, "name");
    td_str ns = td_json_text(metadata, "namespace");
    struct td_resource_at at = td_resources_find_kind(td_api_resources(api), api_version, kind);
    if (!at.resource) {
        return td_error_set(err, TD_NOT_FOUND, "kind '%.*s' of '%.*s' is not served",
                            TD_STR_ARG(kind), TD_STR_ARG(name));
    }
    struct td_json *old = NULL;
    int code = td_edit_get(api, at.resource, ns, name, arena, &old, err);
    if (code == TD_OK && !is_updated) {
        return TD_OK;
    }
    if (code == TD_OK) {
        td_json_set(arena, old, TD_STR("spec"), td_json_get(object, TD_STR("spec")));
        object = old;
    } else if (code != TD_NOT_FOUND) {
        return code;
    }
    code = td_kind_default(arena, at.resource, at.version, object, err);
    return code == TD_OK ? td_edit_put(api, at.resource, arena, object, err) : code;
}

static int system_install_texts(struct td_api *api, struct td_arena *arena, struct td_error *err)
{
    struct td_yaml_documents documents = {.count = 0};
    td_auto_buf text = td_buf_capped(TD_YAML_BYTES_MAX);
    for (size_t i = 0; i < TD_COUNT(system_objects); i++) {
        (void)td_buf_append(&text, td_str_from(system_objects[i])); /* far below the maximum */
    }
    int code = td_yaml_parse(arena, td_buf_str(&text), &documents, err);
    for (size_t i = 0; code == TD_OK && i < documents.count; i++) {
        code = system_put(api, arena, documents.items[i], false, err);
    }
    return code;
}

int td_system_install(struct td_api *api, struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_TREE_ARENA_BYTES_MAX);
    int code = system_install_texts(api, &arena, err);
    for (size_t i = 0; code == TD_OK && i < TD_OBJECTS_DEFINITION_COUNT; i++) {
        code = system_put(api, &arena, td_objects_definitions[i](&arena), true, err);
    }
    return code == TD_OK ? TD_OK : td_error_wrap(err, code, "install the system's objects");
}
