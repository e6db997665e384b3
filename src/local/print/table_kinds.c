/* The columns of the built-in kinds, as Kubernetes 1.36 has them. Kinds that are not here show
 * their name and when they were created. */
#include "local/print/table_private.h"

static const struct td_table_column table_pod[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Ready", "string", 0, td_cell_pod_ready, NULL, NULL},
    {"Status", "string", 0, td_cell_pod_status, NULL, NULL},
    {"Restarts", "string", 0, td_cell_pod_restarts, NULL, NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"IP", "string", 1, td_cell_pod_ip, "status.podIPs", "<none>"},
    {"Node", "string", 1, td_cell_text, "spec.nodeName", "<none>"},
    {"Nominated Node", "string", 1, td_cell_text, "status.nominatedNodeName", "<none>"},
    {"Readiness Gates", "string", 1, td_cell_pod_gates, "spec.readinessGates", "<none>"},
};

static const struct td_table_column table_pod_template[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Containers", "string", 0, td_cell_containers, "template.spec.containers", NULL},
    {"Images", "string", 0, td_cell_images, "template.spec.containers", NULL},
    {"Pod Labels", "string", 0, td_cell_labels, "template.metadata.labels", NULL},
};

static const struct td_table_column table_replication_controller[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Desired", "integer", 0, td_cell_number, "spec.replicas", NULL},
    {"Current", "integer", 0, td_cell_number, "status.replicas", NULL},
    {"Ready", "integer", 0, td_cell_number, "status.readyReplicas", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Containers", "string", 1, td_cell_containers, "spec.template.spec.containers", NULL},
    {"Images", "string", 1, td_cell_images, "spec.template.spec.containers", NULL},
    {"Selector", "string", 1, td_cell_labels, "spec.selector", NULL},
};

static const struct td_table_column table_service[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Type", "string", 0, td_cell_text, "spec.type", ""},
    {"Cluster-IP", "string", 0, td_cell_cluster_ip, "spec.clusterIPs", "<none>"},
    {"External-IP", "string", 0, td_cell_external_ip, NULL, NULL},
    {"Port(s)", "string", 0, td_cell_service_ports, "spec.ports", "<none>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Selector", "string", 1, td_cell_labels, "spec.selector", NULL},
};

static const struct td_table_column table_endpoints[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Endpoints", "string", 0, td_cell_endpoints, NULL, "<none>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_node[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Status", "string", 0, td_cell_node_status, "status.conditions", NULL},
    {"Roles", "string", 0, td_cell_node_roles, "metadata.labels", "<none>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Version", "string", 0, td_cell_text, "status.nodeInfo.kubeletVersion", ""},
    {"Internal-IP", "string", 1, td_cell_node_address, "InternalIP", "<none>"},
    {"External-IP", "string", 1, td_cell_node_address, "ExternalIP", "<none>"},
    {"OS-Image", "string", 1, td_cell_text, "status.nodeInfo.osImage", "<unknown>"},
    {"Kernel-Version", "string", 1, td_cell_node_kernel, "status.nodeInfo.kernelVersion",
     "<unknown>"},
    {"Container-Runtime", "string", 1, td_cell_text, "status.nodeInfo.containerRuntimeVersion",
     "<unknown>"},
};

static const struct td_table_column table_event[] = {
    {"Last Seen", "string", 0, td_cell_event_last, NULL, NULL},
    {"Type", "string", 0, td_cell_text, "type", ""},
    {"Reason", "string", 0, td_cell_text, "reason", ""},
    {"Object", "string", 0, td_cell_event_object, NULL, NULL},
    {"Subobject", "string", 1, td_cell_text, "involvedObject.fieldPath", ""},
    {"Source", "string", 1, td_cell_event_source, NULL, NULL},
    {"Message", "string", 0, td_cell_event_message, NULL, NULL},
    {"First Seen", "string", 1, td_cell_event_first, NULL, NULL},
    {"Count", "string", 1, td_cell_event_count, NULL, NULL},
    {"Name", "string", 1, td_cell_name, NULL, NULL},
};

static const struct td_table_column table_namespace[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Status", "string", 0, td_cell_text, "status.phase", ""},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_secret[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Type", "string", 0, td_cell_text, "type", ""},
    {"Data", "string", 0, td_cell_count, "data", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_config_map[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Data", "string", 0, td_cell_config_count, NULL, NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_service_account[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_volume[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Capacity", "string", 0, td_cell_capacity, "spec.capacity.storage", NULL},
    {"Access Modes", "string", 0, td_cell_access_modes, "spec.accessModes", NULL},
    {"Reclaim Policy", "string", 0, td_cell_text, "spec.persistentVolumeReclaimPolicy", ""},
    {"Status", "string", 0, td_cell_volume_phase, "status.phase", ""},
    {"Claim", "string", 0, td_cell_volume_claim, "spec.claimRef", NULL},
    {"StorageClass", "string", 0, td_cell_volume_class, "spec.storageClassName", ""},
    {"VolumeAttributesClass", "string", 0, td_cell_text, "spec.volumeAttributesClassName",
     "<unset>"},
    {"Reason", "string", 0, td_cell_text, "status.reason", ""},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"VolumeMode", "string", 1, td_cell_text, "spec.volumeMode", "<unset>"},
};

static const struct td_table_column table_claim[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Status", "string", 0, td_cell_volume_phase, "status.phase", ""},
    {"Volume", "string", 0, td_cell_text, "spec.volumeName", ""},
    {"Capacity", "string", 0, td_cell_claim_capacity, "status.capacity.storage", NULL},
    {"Access Modes", "string", 0, td_cell_claim_modes, "status.accessModes", NULL},
    {"StorageClass", "string", 0, td_cell_volume_class, "spec.storageClassName", ""},
    {"VolumeAttributesClass", "string", 0, td_cell_text, "spec.volumeAttributesClassName",
     "<unset>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"VolumeMode", "string", 1, td_cell_text, "spec.volumeMode", "<unset>"},
};

static const struct td_table_column table_quota[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Request", "string", 0, td_cell_quota, NULL, NULL},
    {"Limit", "string", 0, td_cell_quota, "limits", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_deployment[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Ready", "string", 0, td_cell_ready, "status.readyReplicas", "spec.replicas"},
    {"Up-to-date", "string", 0, td_cell_number, "status.updatedReplicas", NULL},
    {"Available", "string", 0, td_cell_number, "status.availableReplicas", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Containers", "string", 1, td_cell_containers, "spec.template.spec.containers", NULL},
    {"Images", "string", 1, td_cell_images, "spec.template.spec.containers", NULL},
    {"Selector", "string", 1, td_cell_deployment_selector, "spec.selector", NULL},
};

static const struct td_table_column table_replica_set[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Desired", "integer", 0, td_cell_number, "spec.replicas", NULL},
    {"Current", "integer", 0, td_cell_number, "status.replicas", NULL},
    {"Ready", "integer", 0, td_cell_number, "status.readyReplicas", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Containers", "string", 1, td_cell_containers, "spec.template.spec.containers", NULL},
    {"Images", "string", 1, td_cell_images, "spec.template.spec.containers", NULL},
    {"Selector", "string", 1, td_cell_selector, "spec.selector", NULL},
};

static const struct td_table_column table_stateful_set[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Ready", "string", 0, td_cell_ready, "status.readyReplicas", "spec.replicas"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Containers", "string", 1, td_cell_containers, "spec.template.spec.containers", NULL},
    {"Images", "string", 1, td_cell_images, "spec.template.spec.containers", NULL},
};

static const struct td_table_column table_daemon_set[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Desired", "integer", 0, td_cell_number, "status.desiredNumberScheduled", NULL},
    {"Current", "integer", 0, td_cell_number, "status.currentNumberScheduled", NULL},
    {"Ready", "integer", 0, td_cell_number, "status.numberReady", NULL},
    {"Up-to-date", "integer", 0, td_cell_number, "status.updatedNumberScheduled", NULL},
    {"Available", "integer", 0, td_cell_number, "status.numberAvailable", NULL},
    {"Node Selector", "string", 0, td_cell_labels, "spec.template.spec.nodeSelector", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Containers", "string", 1, td_cell_containers, "spec.template.spec.containers", NULL},
    {"Images", "string", 1, td_cell_images, "spec.template.spec.containers", NULL},
    {"Selector", "string", 1, td_cell_selector, "spec.selector", NULL},
};

static const struct td_table_column table_revision[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Controller", "string", 0, td_cell_revision_owner, NULL, "<none>"},
    {"Revision", "string", 0, td_cell_number, "revision", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_job[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Status", "string", 0, td_cell_job_status, "status.conditions", NULL},
    {"Completions", "string", 0, td_cell_job_completions, NULL, NULL},
    {"Duration", "string", 0, td_cell_job_duration, NULL, NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Containers", "string", 1, td_cell_containers, "spec.template.spec.containers", NULL},
    {"Images", "string", 1, td_cell_images, "spec.template.spec.containers", NULL},
    {"Selector", "string", 1, td_cell_selector, "spec.selector", NULL},
};

static const struct td_table_column table_cron_job[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Schedule", "string", 0, td_cell_text, "spec.schedule", ""},
    {"Timezone", "string", 0, td_cell_text, "spec.timeZone", "<none>"},
    {"Suspend", "boolean", 0, td_cell_bool_text, "spec.suspend", "<unset>"},
    {"Active", "integer", 0, td_cell_count, "status.active", NULL},
    {"Last Schedule", "string", 0, td_cell_since, "status.lastScheduleTime", "<none>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Containers", "string", 1, td_cell_containers,
     "spec.jobTemplate.spec.template.spec.containers", NULL},
    {"Images", "string", 1, td_cell_images, "spec.jobTemplate.spec.template.spec.containers", NULL},
    {"Selector", "string", 1, td_cell_selector, "spec.jobTemplate.spec.selector", NULL},
};

static const struct td_table_column table_hpa[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Reference", "string", 0, td_cell_hpa_reference, NULL, NULL},
    {"Targets", "string", 0, td_cell_hpa_targets, NULL, NULL},
    {"MinPods", "string", 0, td_cell_scalar, "spec.minReplicas", "<unset>"},
    {"MaxPods", "string", 0, td_cell_number, "spec.maxReplicas", NULL},
    {"Replicas", "string", 0, td_cell_number, "status.currentReplicas", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_budget[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Min Available", "string", 0, td_cell_scalar, "spec.minAvailable", "N/A"},
    {"Max Unavailable", "string", 0, td_cell_scalar, "spec.maxUnavailable", "N/A"},
    {"Allowed Disruptions", "integer", 0, td_cell_number, "status.disruptionsAllowed", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_ingress[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Class", "string", 0, td_cell_text, "spec.ingressClassName", "<none>"},
    {"Hosts", "string", 0, td_cell_hosts, "spec.rules", "*"},
    {"Address", "string", 0, td_cell_ingress_address, NULL, NULL},
    {"Ports", "string", 0, td_cell_ingress_ports, "spec.tls", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_ingress_class[] = {
    {"Name", "string", 0, td_cell_class_name, "ingressclass.kubernetes.io/is-default-class", NULL},
    {"Controller", "string", 0, td_cell_text, "spec.controller", ""},
    {"Parameters", "string", 0, td_cell_class_parameters, "spec.parameters", "<none>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_network_policy[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Pod-Selector", "string", 0, td_cell_selector, "spec.podSelector", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_binding[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Role", "string", 0, td_cell_role, NULL, NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"Users", "string", 1, td_cell_subjects, "User", NULL},
    {"Groups", "string", 1, td_cell_subjects, "Group", NULL},
    {"ServiceAccounts", "string", 1, td_cell_subjects, "ServiceAccount", NULL},
};

static const struct td_table_column table_csi_node[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Drivers", "integer", 0, td_cell_count, "spec.drivers", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_storage_class[] = {
    {"Name", "string", 0, td_cell_class_name, "storageclass.kubernetes.io/is-default-class",
     "storageclass.beta.kubernetes.io/is-default-class"},
    {"Provisioner", "string", 0, td_cell_text, "provisioner", ""},
    {"ReclaimPolicy", "string", 0, td_cell_text, "reclaimPolicy", "Delete"},
    {"VolumeBindingMode", "string", 0, td_cell_text, "volumeBindingMode", "Immediate"},
    {"AllowVolumeExpansion", "string", 0, td_cell_bool, "allowVolumeExpansion", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_webhooks[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Webhooks", "integer", 0, td_cell_count, "webhooks", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_admission_policy[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Validations", "integer", 0, td_cell_count, "spec.validations", NULL},
    {"ParamKind", "string", 0, td_cell_param_kind, "spec.paramKind", "<unset>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_policy_binding[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"PolicyName", "string", 0, td_cell_text, "spec.policyName", ""},
    {"ParamRef", "string", 0, td_cell_param_ref, NULL, "<unset>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_priority_class[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Value", "integer", 0, td_cell_number, "value", NULL},
    {"Global-Default", "boolean", 0, td_cell_bool, "globalDefault", NULL},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
    {"PreemptionPolicy", "string", 0, td_cell_text, "preemptionPolicy", ""},
};

static const struct td_table_column table_lease[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Holder", "string", 0, td_cell_text, "spec.holderIdentity", ""},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_runtime_class[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"Handler", "string", 0, td_cell_text, "handler", ""},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

static const struct td_table_column table_endpoint_slice[] = {
    {"Name", "string", 0, td_cell_name, NULL, NULL},
    {"AddressType", "string", 0, td_cell_text, "addressType", ""},
    {"Ports", "string", 0, td_cell_slice_ports, NULL, "<unset>"},
    {"Endpoints", "string", 0, td_cell_slice_endpoints, NULL, "<unset>"},
    {"Age", "string", 0, td_cell_age, NULL, NULL},
};

#define TABLE_COLUMNS(rows) .columns = (rows), .column_count = sizeof(rows) / sizeof((rows)[0])

const struct td_table_kind td_table_kinds[] = {
    {TD_STR_INIT(""), TD_STR_INIT("Pod"), TABLE_COLUMNS(table_pod)},
    {TD_STR_INIT(""), TD_STR_INIT("PodTemplate"), TABLE_COLUMNS(table_pod_template)},
    {TD_STR_INIT(""), TD_STR_INIT("ReplicationController"),
     TABLE_COLUMNS(table_replication_controller)},
    {TD_STR_INIT(""), TD_STR_INIT("Service"), TABLE_COLUMNS(table_service)},
    {TD_STR_INIT(""), TD_STR_INIT("Endpoints"), TABLE_COLUMNS(table_endpoints)},
    {TD_STR_INIT(""), TD_STR_INIT("Node"), TABLE_COLUMNS(table_node)},
    {TD_STR_INIT(""), TD_STR_INIT("Event"), TABLE_COLUMNS(table_event)},
    {TD_STR_INIT(""), TD_STR_INIT("Namespace"), TABLE_COLUMNS(table_namespace)},
    {TD_STR_INIT(""), TD_STR_INIT("Secret"), TABLE_COLUMNS(table_secret)},
    {TD_STR_INIT(""), TD_STR_INIT("ConfigMap"), TABLE_COLUMNS(table_config_map)},
    {TD_STR_INIT(""), TD_STR_INIT("ServiceAccount"), TABLE_COLUMNS(table_service_account)},
    {TD_STR_INIT(""), TD_STR_INIT("PersistentVolume"), TABLE_COLUMNS(table_volume)},
    {TD_STR_INIT(""), TD_STR_INIT("PersistentVolumeClaim"), TABLE_COLUMNS(table_claim)},
    {TD_STR_INIT(""), TD_STR_INIT("ResourceQuota"), TABLE_COLUMNS(table_quota)},
    {TD_STR_INIT("apps"), TD_STR_INIT("Deployment"), TABLE_COLUMNS(table_deployment)},
    {TD_STR_INIT("apps"), TD_STR_INIT("ReplicaSet"), TABLE_COLUMNS(table_replica_set)},
    {TD_STR_INIT("apps"), TD_STR_INIT("StatefulSet"), TABLE_COLUMNS(table_stateful_set)},
    {TD_STR_INIT("apps"), TD_STR_INIT("DaemonSet"), TABLE_COLUMNS(table_daemon_set)},
    {TD_STR_INIT("apps"), TD_STR_INIT("ControllerRevision"), TABLE_COLUMNS(table_revision)},
    {TD_STR_INIT("batch"), TD_STR_INIT("Job"), TABLE_COLUMNS(table_job)},
    {TD_STR_INIT("batch"), TD_STR_INIT("CronJob"), TABLE_COLUMNS(table_cron_job)},
    {TD_STR_INIT("autoscaling"), TD_STR_INIT("HorizontalPodAutoscaler"), TABLE_COLUMNS(table_hpa)},
    {TD_STR_INIT("policy"), TD_STR_INIT("PodDisruptionBudget"), TABLE_COLUMNS(table_budget)},
    {TD_STR_INIT("networking.k8s.io"), TD_STR_INIT("Ingress"), TABLE_COLUMNS(table_ingress)},
    {TD_STR_INIT("networking.k8s.io"), TD_STR_INIT("IngressClass"),
     TABLE_COLUMNS(table_ingress_class)},
    {TD_STR_INIT("networking.k8s.io"), TD_STR_INIT("NetworkPolicy"),
     TABLE_COLUMNS(table_network_policy)},
    {TD_STR_INIT("rbac.authorization.k8s.io"), TD_STR_INIT("RoleBinding"),
     TABLE_COLUMNS(table_binding)},
    {TD_STR_INIT("rbac.authorization.k8s.io"), TD_STR_INIT("ClusterRoleBinding"),
     TABLE_COLUMNS(table_binding)},
    {TD_STR_INIT("storage.k8s.io"), TD_STR_INIT("CSINode"), TABLE_COLUMNS(table_csi_node)},
    {TD_STR_INIT("storage.k8s.io"), TD_STR_INIT("StorageClass"),
     TABLE_COLUMNS(table_storage_class)},
    {TD_STR_INIT("admissionregistration.k8s.io"), TD_STR_INIT("MutatingWebhookConfiguration"),
     TABLE_COLUMNS(table_webhooks)},
    {TD_STR_INIT("admissionregistration.k8s.io"), TD_STR_INIT("ValidatingWebhookConfiguration"),
     TABLE_COLUMNS(table_webhooks)},
    {TD_STR_INIT("admissionregistration.k8s.io"), TD_STR_INIT("ValidatingAdmissionPolicy"),
     TABLE_COLUMNS(table_admission_policy)},
    {TD_STR_INIT("admissionregistration.k8s.io"), TD_STR_INIT("ValidatingAdmissionPolicyBinding"),
     TABLE_COLUMNS(table_policy_binding)},
    {TD_STR_INIT("scheduling.k8s.io"), TD_STR_INIT("PriorityClass"),
     TABLE_COLUMNS(table_priority_class)},
    {TD_STR_INIT("coordination.k8s.io"), TD_STR_INIT("Lease"), TABLE_COLUMNS(table_lease)},
    {TD_STR_INIT("node.k8s.io"), TD_STR_INIT("RuntimeClass"), TABLE_COLUMNS(table_runtime_class)},
    {TD_STR_INIT("discovery.k8s.io"), TD_STR_INIT("EndpointSlice"),
     TABLE_COLUMNS(table_endpoint_slice)},
};

const size_t td_table_kind_count = sizeof(td_table_kinds) / sizeof(td_table_kinds[0]);
