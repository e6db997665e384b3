/* The list of Kubernetes' deprecation guide, by group; versions of alpha APIs are left out. */
#include "kube/removed.h"

#include <stddef.h>

#define REMOVED(version, kind, since, by)                                                          \
    {                                                                                              \
        TD_STR_INIT(version), TD_STR_INIT(kind), since, by, NULL                                   \
    }
#define GONE(version, kind, since, what)                                                           \
    {                                                                                              \
        TD_STR_INIT(version), TD_STR_INIT(kind), since, NULL, what                                 \
    }

#define APPS "apps/v1 (since 1.9)"
#define INGRESS "networking.k8s.io/v1 (since 1.19)"
#define NETWORK "networking.k8s.io/v1 (since 1.8)"
#define RBAC "rbac.authorization.k8s.io/v1 (since 1.8)"
#define RBAC_BETA "rbac.authorization.k8s.io/v1beta1"
#define ACCESS "authorization.k8s.io/v1 (since 1.6)"
#define ACCESS_BETA "authorization.k8s.io/v1beta1"
#define ADMISSION "admissionregistration.k8s.io/v1 (since 1.16)"
#define VPA "autoscaling.k8s.io/v1 (since 0.7)"
#define FLOW "flowcontrol.apiserver.k8s.io/v1 (since 1.29)"
#define STORAGE "storage.k8s.io/v1 (since 1.19)"
#define POLICIES "use Pod Security admission (since 1.25) or a policy webhook"

static const struct td_removed_api removed_apis[] = {
    REMOVED("extensions/v1beta1", "DaemonSet", "Kubernetes 1.16", APPS),
    REMOVED("extensions/v1beta1", "Deployment", "Kubernetes 1.16", APPS),
    REMOVED("extensions/v1beta1", "ReplicaSet", "Kubernetes 1.16", APPS),
    REMOVED("extensions/v1beta1", "NetworkPolicy", "Kubernetes 1.16", NETWORK),
    REMOVED("extensions/v1beta1", "Ingress", "Kubernetes 1.22", INGRESS),
    GONE("extensions/v1beta1", "PodSecurityPolicy", "Kubernetes 1.16", POLICIES),
    REMOVED("apps/v1beta1", "Deployment", "Kubernetes 1.16", APPS),
    REMOVED("apps/v1beta1", "StatefulSet", "Kubernetes 1.16", APPS),
    REMOVED("apps/v1beta1", "ControllerRevision", "Kubernetes 1.16", APPS),
    REMOVED("apps/v1beta2", "DaemonSet", "Kubernetes 1.16", APPS),
    REMOVED("apps/v1beta2", "Deployment", "Kubernetes 1.16", APPS),
    REMOVED("apps/v1beta2", "ReplicaSet", "Kubernetes 1.16", APPS),
    REMOVED("apps/v1beta2", "StatefulSet", "Kubernetes 1.16", APPS),
    REMOVED("apps/v1beta2", "ControllerRevision", "Kubernetes 1.16", APPS),
    REMOVED("authentication.k8s.io/v1beta1", "TokenReview", "Kubernetes 1.22",
            "authentication.k8s.io/v1 (since 1.6)"),
    REMOVED(ACCESS_BETA, "LocalSubjectAccessReview", "Kubernetes 1.22", ACCESS),
    REMOVED(ACCESS_BETA, "SelfSubjectAccessReview", "Kubernetes 1.22", ACCESS),
    REMOVED(ACCESS_BETA, "SelfSubjectRulesReview", "Kubernetes 1.22", ACCESS),
    REMOVED(ACCESS_BETA, "SubjectAccessReview", "Kubernetes 1.22", ACCESS),
    REMOVED("autoscaling/v2beta1", "HorizontalPodAutoscaler", "Kubernetes 1.25",
            "autoscaling/v2 (since 1.23)"),
    REMOVED("autoscaling/v2beta2", "HorizontalPodAutoscaler", "Kubernetes 1.26",
            "autoscaling/v2 (since 1.23)"),
    REMOVED("autoscaling.k8s.io/v1beta1", "VerticalPodAutoscaler",
            "the Vertical Pod Autoscaler 0.5", VPA),
    REMOVED("autoscaling.k8s.io/v1beta1", "VerticalPodAutoscalerCheckpoint",
            "the Vertical Pod Autoscaler 0.5", VPA),
    REMOVED("autoscaling.k8s.io/v1beta2", "VerticalPodAutoscaler",
            "the Vertical Pod Autoscaler 1.3", VPA),
    REMOVED("autoscaling.k8s.io/v1beta2", "VerticalPodAutoscalerCheckpoint",
            "the Vertical Pod Autoscaler 1.3", VPA),
    REMOVED("batch/v1beta1", "CronJob", "Kubernetes 1.25", "batch/v1 (since 1.21)"),
    REMOVED("policy/v1beta1", "PodDisruptionBudget", "Kubernetes 1.25", "policy/v1 (since 1.21)"),
    GONE("policy/v1beta1", "PodSecurityPolicy", "Kubernetes 1.25", POLICIES),
    REMOVED("networking.k8s.io/v1beta1", "Ingress", "Kubernetes 1.22", INGRESS),
    REMOVED("networking.k8s.io/v1beta1", "IngressClass", "Kubernetes 1.22", INGRESS),
    REMOVED(RBAC_BETA, "Role", "Kubernetes 1.22", RBAC),
    REMOVED(RBAC_BETA, "RoleBinding", "Kubernetes 1.22", RBAC),
    REMOVED(RBAC_BETA, "ClusterRole", "Kubernetes 1.22", RBAC),
    REMOVED(RBAC_BETA, "ClusterRoleBinding", "Kubernetes 1.22", RBAC),
    REMOVED("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "Kubernetes 1.22",
            "apiextensions.k8s.io/v1 (since 1.16)"),
    REMOVED("apiregistration.k8s.io/v1beta1", "APIService", "Kubernetes 1.22",
            "apiregistration.k8s.io/v1 (since 1.10)"),
    REMOVED("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration",
            "Kubernetes 1.22", ADMISSION),
    REMOVED("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration",
            "Kubernetes 1.22", ADMISSION),
    REMOVED("certificates.k8s.io/v1beta1", "CertificateSigningRequest", "Kubernetes 1.22",
            "certificates.k8s.io/v1 (since 1.19)"),
    REMOVED("coordination.k8s.io/v1beta1", "Lease", "Kubernetes 1.22",
            "coordination.k8s.io/v1 (since 1.14)"),
    REMOVED("scheduling.k8s.io/v1beta1", "PriorityClass", "Kubernetes 1.22",
            "scheduling.k8s.io/v1 (since 1.14)"),
    REMOVED("storage.k8s.io/v1beta1", "CSIDriver", "Kubernetes 1.22", STORAGE),
    REMOVED("storage.k8s.io/v1beta1", "CSINode", "Kubernetes 1.22",
            "storage.k8s.io/v1 (since 1.17)"),
    REMOVED("storage.k8s.io/v1beta1", "StorageClass", "Kubernetes 1.22",
            "storage.k8s.io/v1 (since 1.6)"),
    REMOVED("storage.k8s.io/v1beta1", "VolumeAttachment", "Kubernetes 1.22",
            "storage.k8s.io/v1 (since 1.13)"),
    REMOVED("storage.k8s.io/v1beta1", "CSIStorageCapacity", "Kubernetes 1.27",
            "storage.k8s.io/v1 (since 1.24)"),
    REMOVED("discovery.k8s.io/v1beta1", "EndpointSlice", "Kubernetes 1.25",
            "discovery.k8s.io/v1 (since 1.21)"),
    REMOVED("events.k8s.io/v1beta1", "Event", "Kubernetes 1.25", "events.k8s.io/v1 (since 1.19)"),
    REMOVED("node.k8s.io/v1beta1", "RuntimeClass", "Kubernetes 1.25",
            "node.k8s.io/v1 (since 1.20)"),
    REMOVED("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", "Kubernetes 1.26", FLOW),
    REMOVED("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration", "Kubernetes 1.26",
            FLOW),
    REMOVED("flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema", "Kubernetes 1.29", FLOW),
    REMOVED("flowcontrol.apiserver.k8s.io/v1beta2", "PriorityLevelConfiguration", "Kubernetes 1.29",
            FLOW),
    REMOVED("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "Kubernetes 1.32", FLOW),
    REMOVED("flowcontrol.apiserver.k8s.io/v1beta3", "PriorityLevelConfiguration", "Kubernetes 1.32",
            FLOW),
};

const struct td_removed_api *td_removed_find(td_str api_version, td_str kind)
{
    for (size_t i = 0; i < TD_COUNT(removed_apis); i++) {
        if (td_str_equal(removed_apis[i].api_version, api_version) &&
            td_str_equal(removed_apis[i].kind, kind)) {
            return &removed_apis[i];
        }
    }
    return NULL;
}
