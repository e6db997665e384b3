/*
 * The table of flags and what reads, prints and documents it. A flag is a row: its name, type, the
 * member it sets, bounds and help.
 */
#include "cli/run/run_flags.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/limits.h"
#include "base/os/file.h"
#include "base/timefmt.h"
#include "control/gates.h"
#include "decide/horizontal/strategy.h"
#include "decide/vertical/estimator/estimator.h"
#include "sim/scenario/scenario.h"

enum flag_type {
    FLAG_BOOL,
    FLAG_INT,   /* int64_t */
    FLAG_INT32, /* int */
    FLAG_SIZE,  /* size_t */
    FLAG_DOUBLE,
    FLAG_DURATION,
    FLAG_SPAN, /* a duration that may have days, as Prometheus' */
    FLAG_TEXT,
};

struct flag_row {
    const char *name;
    enum flag_type type;
    size_t offset;   /* in struct td_run_flags */
    double min;      /* of numbers and, in seconds, of durations */
    double max;      /* 0: none */
    const char *who; /* group in the documentation; NULL: as the row before */
    const char *help;
};

#define AT(member) offsetof(struct td_run_flags, member)
#define AT_C(member) AT(controllers.member)
#define AT_R(member) AT(controllers.recommend.member)
#define AT_U(member) AT(controllers.update.member)
#define AT_A(member) AT(controllers.webhook.member)
#define AT_H(member) AT(controllers.horizontal.member)
#define AT_P(member) AT(controllers.recommend.prometheus.member)
#define FLAG_TINY 1e-9

static const struct flag_row flag_rows[] = {
    {"controllers", FLAG_TEXT, AT(controllers_text), 0, 0, "General",
     "comma-separated controllers to run, of `recommender`, `updater`, `admission`, `horizontal`, "
     "`hvpa`; unset, all of them"},
    {"kubeconfig", FLAG_TEXT, AT(kubeconfig), 0, 0, NULL,
     "path to a kubeconfig; unset, `$KUBECONFIG`, `~/.kube/config` or the pod's service account"},
    {"context", FLAG_TEXT, AT(context), 0, 0, NULL,
     "kubeconfig context to use; unset, the current context"},
    {"kube-api-qps", FLAG_DOUBLE, AT_C(qps), 0, 0, NULL,
     "QPS limit for requests to the API server; 0: no limit"},
    {"kube-api-burst", FLAG_INT32, AT_C(burst), 1, 1e6, NULL,
     "burst allowed above `--kube-api-qps`"},
    {"page-listen", FLAG_TEXT, AT(page_listen), 0, 0, NULL,
     "address of the page, with TLS by the webhook's certificate and a login by bearer token; "
     "`:8443` "
     "means all interfaces; empty: no page"},
    {"address", FLAG_TEXT, AT(address), 0, 0, NULL,
     "address that serves `/metrics`, `/healthz`, `/livez`, `/readyz` and `/health-check`; `:8942` "
     "binds every interface, empty disables it; unset, a free port if 8942 is taken"},
    {"metrics-tls", FLAG_BOOL, AT_C(is_metrics_tls), 0, 0, NULL,
     "serve `--address` with TLS by the webhook's certificate, and `/metrics` only to bearer "
     "tokens "
     "whose user may get that path (TokenReview and SubjectAccessReview)"},
    {"cap-to-node", FLAG_BOOL, AT_C(caps_to_node), 0, 0, NULL,
     "cap pod recommendations at the allocatable resources of the largest node; needs permission "
     "to list and watch nodes"},
    {"vpa-object-namespace", FLAG_TEXT, AT_C(vpa_namespace), 0, 0, NULL,
     "namespace to watch for VPA objects; empty means all namespaces"},
    {"ignored-vpa-object-namespaces", FLAG_TEXT, AT(ignored_text), 0, 0, NULL,
     "comma-separated namespaces whose VPA objects are ignored"},
    {"feature-gates", FLAG_TEXT, AT(gates_text), 0, 0, NULL,
     "feature gates, `Name=true,Name=false`; the gates are listed below"},
    {"v", FLAG_INT, AT(verbosity), 0, 10, NULL,
     "log verbosity: 0 warnings and errors, 1 to 4 also actions, 5 and above everything"},
    {"logging-format", FLAG_TEXT, AT(logging_text), 0, 0, NULL, "log format, `text` or `json`"},
    {"shadow", FLAG_BOOL, AT(is_shadow), 0, 0, NULL,
     "compute beside upstream's VPA what would be recommended and which pods would be updated, "
     "into "
     "objects of its own (`VerticalPodAutoscalerShadow`) and metrics `tandem_shadow_*`; nothing "
     "else "
     "is written"},
    {"replace-upstream", FLAG_BOOL, AT_C(replaces_upstream), 0, 0, NULL,
     "take upstream's VPA over: share its leases `vpa-recommender-lease` and `vpa-updater`, renew "
     "`vpa-admission-controller` and change its webhook configuration `vpa-webhook-config`; unset, "
     "controllers hold while upstream's are alive"},
    {"leader-elect", FLAG_BOOL, AT_C(leader.is_on), 0, 0, "Leader election",
     "elect a leader per controller, by a Lease each; only leaders act"},
    {"leader-elect-lease-duration", FLAG_DURATION, AT_C(leader.lease_duration), 1, 0, NULL,
     "time without renewal after which other candidates may take the lease"},
    {"leader-elect-renew-deadline", FLAG_DURATION, AT_C(leader.renew_deadline), FLAG_TINY, 0, NULL,
     "time the leader retries renewing its lease before it stops leading"},
    {"leader-elect-retry-period", FLAG_DURATION, AT_C(leader.retry_period), FLAG_TINY, 0, NULL,
     "pause between attempts to acquire or renew the lease"},
    {"leader-elect-resource-namespace", FLAG_TEXT, AT_C(leader.namespace), 0, 0, NULL,
     "namespace of the leases"},
    {"leader-elect-resource-name", FLAG_TEXT, AT_C(leader.name), 0, 0, NULL,
     "name of the lease instead of the controllers' default names; with several controllers, "
     "`NAME-updater` and so on"},
    {"shards", FLAG_SIZE, AT(shards), 1, TD_SHARDS_MAX, NULL,
     "parts of the namespaces, each with a lease of its own, that the replicas share; when given, "
     "instead of a leader per controller"},

    {"recommender-interval", FLAG_DURATION, AT_R(interval), FLAG_TINY, 0, "Recommender",
     "interval of passes: metrics are read and recommendations updated"},
    {"recommender-name", FLAG_TEXT, AT_R(name), 0, 0, NULL,
     "name of this recommender: it serves VPAs that name it in `spec.recommenders`; `default` also "
     "serves VPAs that name none"},
    {"storage", FLAG_TEXT, AT(storage_text), 0, 0, NULL,
     "source of history at the start: `checkpoint`, or `prometheus` in addition to checkpoints; "
     "unset, `prometheus` if `--prometheus-address` is given"},
    {"checkpoints-gc-interval", FLAG_DURATION, AT_R(checkpoints_gc_interval), FLAG_TINY, 0, NULL,
     "interval of the garbage collection of orphaned checkpoints"},
    {"checkpoints-timeout", FLAG_DURATION, AT_R(checkpoints_timeout), FLAG_TINY, 0, NULL,
     "time limit for writing checkpoints in one pass"},
    {"update-worker-count", FLAG_SIZE, AT_R(writes_max), 1, 1000, NULL,
     "concurrent writes of VPA statuses and checkpoints"},
    {"estimator", FLAG_TEXT, AT_R(estimator), 0, 0, NULL,
     "estimator for VPAs without the annotation `tandem.dev/estimator`; unset, `upstream`; `tandem "
     "replay --help` lists all"},
    {"min-confidence-to-apply", FLAG_DOUBLE, AT_R(min_confidence), 0, 0, NULL,
     "days of history that a container needs before its recommendation is applied (condition "
     "`LowConfidence` until then)"},
    {"recommendation-margin-fraction", FLAG_DOUBLE, AT_R(config.margin_fraction), 0, 0, NULL,
     "fraction of usage added to the recommended request as safety margin"},
    {"pod-recommendation-min-cpu-millicores", FLAG_DOUBLE, AT_R(config.pod_min_cpu_milli), 0, 0,
     NULL, "minimum CPU recommendation for a pod"},
    {"pod-recommendation-min-memory-mb", FLAG_DOUBLE, AT_R(config.pod_min_memory_mib), 0, 0, NULL,
     "minimum memory recommendation for a pod, in MiB"},
    {"target-cpu-percentile", FLAG_DOUBLE, AT_R(config.target_cpu_percentile), 0, 1, NULL,
     "percentile of CPU usage used for the target"},
    {"target-memory-percentile", FLAG_DOUBLE, AT_R(config.target_memory_percentile), 0, 1, NULL,
     "percentile of memory peaks used for the target"},
    {"recommendation-lower-bound-cpu-percentile", FLAG_DOUBLE, AT_R(config.lower_cpu_percentile), 0,
     1, NULL, "percentile of CPU usage used for the lower bound"},
    {"recommendation-lower-bound-memory-percentile", FLAG_DOUBLE,
     AT_R(config.lower_memory_percentile), 0, 1, NULL,
     "percentile of memory peaks used for the lower bound"},
    {"recommendation-upper-bound-cpu-percentile", FLAG_DOUBLE, AT_R(config.upper_cpu_percentile), 0,
     1, NULL, "percentile of CPU usage used for the upper bound"},
    {"recommendation-upper-bound-memory-percentile", FLAG_DOUBLE,
     AT_R(config.upper_memory_percentile), 0, 1, NULL,
     "percentile of memory peaks used for the upper bound"},
    {"confidence-interval-cpu", FLAG_DURATION, AT_R(config.confidence_cpu), FLAG_TINY, 0, NULL,
     "span of history over which the CPU bounds narrow towards the target"},
    {"confidence-interval-memory", FLAG_DURATION, AT_R(config.confidence_memory), FLAG_TINY, 0,
     NULL, "span of history over which the memory bounds narrow towards the target"},
    {"humanize-memory", FLAG_BOOL, AT_R(config.humanize_memory), 0, 0, NULL,
     "write memory recommendations in Ki, Mi or Gi with at most two decimals"},
    {"round-cpu-millicores", FLAG_INT, AT_R(config.round_cpu_milli), 1, 1e9, NULL,
     "round CPU recommendations up to a multiple of this"},
    {"round-memory-bytes", FLAG_INT, AT_R(config.round_memory_bytes), 1, 1e15, NULL,
     "round memory recommendations up to a multiple of this"},
    {"cpu-integer-post-processor-enabled", FLAG_BOOL, AT_R(config.cpu_integer_post_processor), 0, 0,
     NULL, "round CPU recommendations up to whole CPUs for VPAs that opt in by annotation"},
    {"container-recommendation-max-allowed-cpu", FLAG_TEXT, AT(container_max_cpu), 0, 0, NULL,
     "maximum CPU recommendation for a container; `maxAllowed` of the VPA takes precedence"},
    {"container-recommendation-max-allowed-memory", FLAG_TEXT, AT(container_max_memory), 0, 0, NULL,
     "maximum memory recommendation for a container; `maxAllowed` of the VPA takes precedence"},
    {"pod-recommendation-max-allowed-cpu", FLAG_TEXT, AT(pod_max_cpu), 0, 0, NULL,
     "maximum CPU recommendation for a pod with pod-level resources"},
    {"pod-recommendation-max-allowed-memory", FLAG_TEXT, AT(pod_max_memory), 0, 0, NULL,
     "maximum memory recommendation for a pod with pod-level resources"},
    {"memory-aggregation-interval", FLAG_DURATION, AT_R(config.memory_interval), FLAG_TINY, 0, NULL,
     "length of the interval of which the peak memory usage is one sample"},
    {"memory-aggregation-interval-count", FLAG_INT, AT_R(config.memory_interval_count), 1, 1e6,
     NULL, "number of `--memory-aggregation-interval` intervals that make up the memory history"},
    {"memory-histogram-decay-half-life", FLAG_DURATION, AT_R(config.memory.half_life), FLAG_TINY, 0,
     NULL, "time in which a memory peak loses half of its weight"},
    {"cpu-histogram-decay-half-life", FLAG_DURATION, AT_R(config.cpu.half_life), FLAG_TINY, 0, NULL,
     "time in which a CPU sample loses half of its weight"},
    {"oom-bump-up-ratio", FLAG_DOUBLE, AT_R(config.oom_bump_up_ratio), 1, 0, NULL,
     "factor by which the memory recommendation grows after an OOM"},
    {"oom-min-bump-up-bytes", FLAG_DOUBLE, AT_R(config.oom_min_bump_up), 0, 0, NULL,
     "minimum growth of the memory recommendation after an OOM, in bytes"},
    {"prometheus-address", FLAG_TEXT, AT_P(address), 0, 0, NULL,
     "URL of the Prometheus that provides history at the start"},
    {"prometheus-insecure", FLAG_BOOL, AT_P(is_insecure), 0, 0, NULL,
     "skip verification of Prometheus' TLS certificate"},
    {"prometheus-cadvisor-job-name", FLAG_TEXT, AT_P(job), 0, 0, NULL,
     "`job` label of the cAdvisor series; empty matches any"},
    {"prometheus-query-timeout", FLAG_SPAN, AT_P(query_timeout), FLAG_TINY, 0, NULL,
     "timeout of one Prometheus query; all queries together get three times as long"},
    {"prometheus-bearer-token", FLAG_TEXT, AT_P(bearer_token), 0, 0, NULL,
     "bearer token for Prometheus"},
    {"prometheus-bearer-token-file", FLAG_TEXT, AT(bearer_file), 0, 0, NULL,
     "file with the bearer token for Prometheus"},
    {"username", FLAG_TEXT, AT_P(username), 0, 0, NULL,
     "user name for Prometheus; unset, `$PROMETHEUS_USERNAME` and `$PROMETHEUS_PASSWORD`"},
    {"password", FLAG_TEXT, AT_P(password), 0, 0, NULL, "password for Prometheus"},
    {"history-length", FLAG_SPAN, AT_P(history_length), FLAG_TINY, 0, NULL,
     "length of the history queried from Prometheus"},
    {"history-resolution", FLAG_SPAN, AT_P(history_resolution), 1, 0, NULL,
     "step and rate window of the history queries"},
    {"history-cpu-metric", FLAG_TEXT, AT_P(cpu_metric), 0, 0, NULL,
     "counter of CPU seconds per container"},
    {"history-memory-metric", FLAG_TEXT, AT_P(memory_metric), 0, 0, NULL,
     "gauge of memory bytes per container"},
    {"pod-label-prefix", FLAG_TEXT, AT_P(pod_label_prefix), 0, 0, NULL,
     "prefix of pod labels in the series of `--metric-for-pod-labels`"},
    {"metric-for-pod-labels", FLAG_TEXT, AT_P(pod_labels_metric), 0, 0, NULL,
     "query that returns the labels of deleted pods; empty: history is loaded for existing pods "
     "only"},
    {"pod-namespace-label", FLAG_TEXT, AT_P(pod_namespace_label), 0, 0, NULL,
     "label of the namespace in the series of `--metric-for-pod-labels`"},
    {"pod-name-label", FLAG_TEXT, AT_P(pod_name_label), 0, 0, NULL,
     "label of the pod name in the series of `--metric-for-pod-labels`"},
    {"container-namespace-label", FLAG_TEXT, AT_P(container_namespace_label), 0, 0, NULL,
     "label of the namespace in the container series"},
    {"container-pod-name-label", FLAG_TEXT, AT_P(container_pod_name_label), 0, 0, NULL,
     "label of the pod name in the container series; current cAdvisor uses `pod`"},
    {"container-name-label", FLAG_TEXT, AT_P(container_name_label), 0, 0, NULL,
     "label of the container name in the container series; current cAdvisor uses `container`"},

    {"updater-interval", FLAG_DURATION, AT_U(interval), FLAG_TINY, 0, "Updater",
     "interval of passes: pods are evicted or resized in place"},
    {"min-replicas", FLAG_INT, AT_U(config.restriction.min_replicas), 0, 1e9, NULL,
     "minimum number of replicas of a workload for the updater to evict or resize its pods"},
    {"eviction-tolerance", FLAG_DOUBLE, AT_U(config.restriction.tolerance), 0, 1, NULL,
     "fraction of a workload's pods that may be unavailable at the same time because of updates"},
    {"eviction-rate-limit", FLAG_DOUBLE, AT_U(config.rate_per_second), -1e9, 0, NULL,
     "evictions per second; 0 or less: no limit"},
    {"eviction-rate-burst", FLAG_INT, AT_U(config.rate_burst), 0, 1e9, NULL,
     "burst allowed above `--eviction-rate-limit`"},
    {"pod-update-threshold", FLAG_DOUBLE, AT_U(config.update.threshold), 0, 0, NULL,
     "relative change of resources below which in-bounds pods are not updated"},
    {"in-recommendation-bounds-eviction-lifetime-threshold", FLAG_DURATION,
     AT_U(config.update.lifetime), 0, 0, NULL, "pod age after which in-bounds pods may be evicted"},
    {"evict-after-oom-threshold", FLAG_DURATION, AT_U(config.update.oom_threshold), 0, 0, NULL,
     "a container OOM-killed within this time after its start makes its pod evictable"},
    {"in-place-skip-disruption-budget", FLAG_BOOL, AT_U(config.restriction.in_place_skips_budget),
     0, 0, NULL,
     "in-place resizes that restart no container do not count against the eviction tolerance"},
    {"in-place-ignores-eviction-requirements", FLAG_BOOL,
     AT_U(config.in_place_ignores_requirements), 0, 0, NULL,
     "apply `evictionRequirements` to evictions only, not to in-place resizes"},
    {"annotate-resized-pods", FLAG_BOOL, AT_U(annotates), 0, 0, NULL,
     "write `vpaInPlaceUpdated` and, for the estimator `track`, `tandem.dev/resized` to pods that "
     "were resized in place; needs permission to patch pods, as the gate CPUStartupBoost does"},
    {"use-admission-controller-status", FLAG_BOOL, AT_U(uses_lease), 0, 0, NULL,
     "evict pods only while the admission controller's status lease is fresh"},
    {"admission-controller-status-lease-name", FLAG_TEXT, AT_U(lease_name), 0, 0, NULL,
     "name of the admission controller's status lease; unset, as `--status-lease-name`"},
    {"admission-controller-status-lease-namespace", FLAG_TEXT, AT_U(lease_namespace), 0, 0, NULL,
     "namespace of the admission controller's status lease"},
    {"admission-controller-status-lease-timeout", FLAG_DURATION, AT_U(lease_timeout), FLAG_TINY, 0,
     NULL, "age after which the admission controller's status lease is stale"},
    {"concurrent-cpu-startup-boost-syncs", FLAG_SIZE, AT_U(boost_syncs), 1, 1000, NULL,
     "concurrent reverts of CPU startup boosts"},

    {"webhook-listen", FLAG_TEXT, AT(webhook_listen), 0, 0, "Admission",
     "loopback address for the webhook outside a cluster; it is registered by URL"},
    {"port", FLAG_INT, AT(webhook_port), 1, 65535, NULL, "port of the webhook in a cluster"},
    {"keep-webhooks", FLAG_BOOL, AT_A(keeps), 0, 0, NULL,
     "keep webhook configurations registered by URL when the process ends"},
    {"register-webhook", FLAG_BOOL, AT_A(registers), 0, 0, NULL,
     "create the webhook configurations and restore them when deleted or changed"},
    {"webhook-service", FLAG_TEXT, AT_A(service), 0, 0, NULL, "Service of the webhook"},
    {"webhook-secret", FLAG_TEXT, AT_A(secret), 0, 0, NULL,
     "Secret with the webhook's CA and serving certificate"},
    {"webhook-certificate-issued", FLAG_BOOL, AT_A(is_issued), 0, 0, NULL,
     "another program, such as cert-manager, writes `--webhook-secret` (`tls.crt`, `tls.key`, "
     "`ca.crt`) and renews it; it is read only"},
    {"webhook-client-ca-file", FLAG_TEXT, AT(client_ca_file), 0, 0, NULL,
     "PEM file of the CA whose client certificates the webhook demands; the API server's is named "
     "in its AdmissionConfiguration; unset, none is needed"},
    {"webhook-timeout-seconds", FLAG_INT32, AT_A(timeout_seconds), 1, 30, NULL,
     "`timeoutSeconds` of the webhook configurations"},
    {"webhook-failure-policy-fail", FLAG_BOOL, AT_A(fails_closed), 0, 0, NULL,
     "set `failurePolicy: Fail` for pods: no pod is created while the webhook is unavailable"},
    {"webhook-labels", FLAG_TEXT, AT_A(labels), 0, 0, NULL,
     "labels of the webhook configurations, `key:value,key:value`"},
    {"webhook-exempt-namespaces", FLAG_TEXT, AT(exempt_text), 0, 0, NULL,
     "comma-separated namespaces whose pods the webhook does not see, in addition to its own "
     "namespace"},
    {"webhook-probe-interval", FLAG_DURATION, AT_A(probe_interval), 0, 0, NULL,
     "interval of the dry-run pod creations that check that the webhook mutates pods; 0s: none"},
    {"webhook-deadline", FLAG_DURATION, AT_A(deadline), FLAG_TINY, 0, NULL,
     "time limit for a review, after which the webhook admits the object unchanged"},
    {"status-lease-name", FLAG_TEXT, AT_A(lease_name), 0, 0, NULL,
     "name of the status lease that the webhook renews; unset, `tandem-admission`, or upstream's "
     "`vpa-admission-controller` with `--replace-upstream` and where only one of updater and "
     "admission is in `--controllers`"},
    {"status-lease-namespace", FLAG_TEXT, AT_A(lease_namespace), 0, 0, NULL,
     "namespace of the status lease"},
    {"webhook-namespace", FLAG_TEXT, AT_A(namespace), 0, 0, NULL,
     "namespace of the webhook's Service, Secret and probe pods; `$NAMESPACE` if set"},
    {"status-lease-update-interval", FLAG_DURATION, AT_A(lease_interval), FLAG_TINY, 0, NULL,
     "interval of renewals of the status lease"},
    {"max-allowed-cpu-boost", FLAG_TEXT, AT(boost_max), 0, 0, NULL,
     "maximum CPU request of a container with a startup boost"},
    {"pod-level-container-limitrange", FLAG_TEXT, AT(limit_range_text), 0, 0, NULL,
     "what the webhook does with pod-level resources in a namespace whose LimitRange has an item "
     "of type Container: `reject` (running pods are not evicted) or `warn`"},

    {"horizontal", FLAG_TEXT, AT(horizontal_text), 0, 0, "Horizontal",
     "`builtin`: reconcile HPAs of `autoscaling/v2` too, in clusters where kube-controller-manager "
     "does not; `off`: only those of `autoscaling.tandem.dev`"},
    {"concurrent-horizontal-pod-autoscaler-syncs", FLAG_SIZE, AT_H(syncs_max), 1, 10000, NULL,
     "number of HPAs that are reconciled concurrently"},
    {"horizontal-pod-autoscaler-sync-period", FLAG_DURATION, AT_H(sync_period), FLAG_TINY, 0, NULL,
     "interval between two reconciliations of an HPA"},
    {"horizontal-pod-autoscaler-downscale-stabilization", FLAG_DURATION,
     AT_H(config.downscale_stabilization), 0, 0, NULL,
     "downscale stabilization window of HPAs without `behavior`"},
    {"horizontal-pod-autoscaler-tolerance", FLAG_DOUBLE, AT_H(config.tolerance), 0, 0, NULL,
     "minimum change of the metric ratio from 1.0 for an HPA to scale"},
    {"horizontal-pod-autoscaler-cpu-initialization-period", FLAG_DURATION,
     AT_H(config.cpu_initialization), 0, 0, NULL,
     "time after pod start during which CPU samples may be skipped"},
    {"horizontal-pod-autoscaler-initial-readiness-delay", FLAG_DURATION,
     AT_H(config.readiness_delay), 0, 0, NULL,
     "time after pod start during which readiness changes count as initial readiness"},
    {"hpa-selection-strategy", FLAG_TEXT, AT(strategy_text), 0, 0, NULL,
     "pod selection strategy of HPAs that do not set one: `LabelSelector` or `OwnerReference`"},
    {"hpa-selection-strategy-annotation", FLAG_TEXT, AT_H(strategy.primary_key), 0, 0, NULL,
     "annotation with the pod selection strategy, for HPAs without the field "
     "`spec.selectionStrategy`"},
    {"hpa-owner-scoped-ambiguity", FLAG_BOOL, AT_H(config.is_ambiguity_owner_scoped), 0, 0, NULL,
     "HPAs conflict only over pods that both count; `false`: over pods that both select by labels"},
    {"hpa-owner-cache-ttl", FLAG_DURATION, AT_H(owner_ttl), FLAG_TINY, 0, NULL,
     "time to live of cached owners of ReplicaSets and Jobs"},

    {"hvpa-sync-period", FLAG_DURATION, AT_C(hvpa.sync_period), FLAG_TINY, 0, "Hvpa",
     "interval between two reconciliations of an Hvpa"},
};

#define FLAG_COUNT (sizeof(flag_rows) / sizeof(flag_rows[0]))

static struct td_run_flags flags_default(void)
{
    struct td_run_flags flags = {
        .controllers = td_controllers_options_default(),
        .kubeconfig = TD_STR_EMPTY,
        .context = TD_STR_EMPTY,
        .address = TD_STR("127.0.0.1:8942"),
        .verbosity = 4,
        .shards = 1,
        .webhook_listen = TD_STR_EMPTY,
        .webhook_port = 8000,
        .controllers_text = TD_STR_EMPTY,
        .gates_text = TD_STR_EMPTY,
        .horizontal_text = TD_STR("off"),
        .storage_text = TD_STR_EMPTY,
        .logging_text = TD_STR("text"),
        .strategy_text = TD_STR("LabelSelector"),
        .limit_range_text = TD_STR("reject"),
        .ignored_text = TD_STR_EMPTY,
        .exempt_text = TD_STR_EMPTY,
        .bearer_file = TD_STR_EMPTY,
        .client_ca_file = TD_STR_EMPTY,
        .container_max_cpu = TD_STR_EMPTY,
        .container_max_memory = TD_STR_EMPTY,
        .pod_max_cpu = TD_STR_EMPTY,
        .pod_max_memory = TD_STR_EMPTY,
        .boost_max = TD_STR_EMPTY,
    };
    flags.controllers.update.lease_name = TD_STR_EMPTY;
    flags.controllers.webhook.lease_name = TD_STR_EMPTY;
    return flags;
}

/* ---- One value ---- */

static void *flag_place(struct td_run_flags *flags, size_t offset)
{
    return (char *)flags + offset;
}

static int flag_refuse(const struct flag_row *row, td_str value, struct td_error *err,
                       const char *wish)
{
    return td_error_set(err, TD_INVALID, "--%s: '%.*s': must be %s", row->name, TD_STR_ARG(value),
                        wish);
}

static int flag_set_bool(const struct flag_row *row, void *place, td_str value,
                         struct td_error *err)
{
    bool is_true = td_str_equal(value, TD_STR("true"));
    if (!is_true && !td_str_equal(value, TD_STR("false"))) {
        return flag_refuse(row, value, err, "true or false");
    }
    memcpy(place, &is_true, sizeof(is_true));
    return TD_OK;
}

static int flag_set_int(const struct flag_row *row, void *place, td_str value, struct td_error *err)
{
    int64_t number;
    if (!td_str_to_int64(value, &number)) {
        return flag_refuse(row, value, err, "a whole number");
    }
    if ((double)number < row->min || (row->max > 0 && (double)number > row->max)) {
        return td_error_set(err, TD_INVALID, "--%s: '%.*s': must be from %.0f to %.0f", row->name,
                            TD_STR_ARG(value), row->min, row->max);
    }
    if (row->type == FLAG_INT32) {
        int small = (int)number; /* the bounds of such rows are narrow */
        memcpy(place, &small, sizeof(small));
    } else if (row->type == FLAG_SIZE) {
        size_t size = (size_t)number;
        memcpy(place, &size, sizeof(size));
    } else {
        memcpy(place, &number, sizeof(number));
    }
    return TD_OK;
}

static int flag_set_double(const struct flag_row *row, void *place, td_str value,
                           struct td_error *err)
{
    td_auto_arena arena = td_arena_capped(TD_JSON_BYTES_MAX);
    struct td_json *number = NULL;
    double read = 0;
    if (td_json_parse(&arena, value, NULL, &number, NULL) != TD_OK ||
        !td_json_to_double(number, &read)) {
        return flag_refuse(row, value, err, "a number");
    }
    if (read < row->min || (row->max > 0 && read > row->max)) {
        return row->max > 0 ? td_error_set(err, TD_INVALID, "--%s: '%.*s': must be from %g to %g",
                                           row->name, TD_STR_ARG(value), row->min, row->max)
                            : td_error_set(err, TD_INVALID, "--%s: '%.*s': must be at least %g",
                                           row->name, TD_STR_ARG(value), row->min);
    }
    memcpy(place, &read, sizeof(read));
    return TD_OK;
}

static int flag_set_duration(const struct flag_row *row, void *place, td_str value,
                             struct td_error *err)
{
    td_duration span;
    bool is_read = row->type == FLAG_SPAN ? td_scenario_parse_duration(value, &span)
                                          : td_duration_parse(value, &span, NULL) == TD_OK;
    if (!is_read) {
        return flag_refuse(row, value, err, "a duration such as 90s, 15m or 24h");
    }
    if ((double)span < row->min * (double)TD_SECOND) {
        return flag_refuse(row, value, err,
                           row->min >= 1  ? "at least 1s"
                           : row->min > 0 ? "longer than 0s"
                                          : "0s or longer");
    }
    memcpy(place, &span, sizeof(span));
    return TD_OK;
}

static int flag_set(const struct flag_row *row, struct td_run_flags *flags, td_str value,
                    struct td_error *err)
{
    void *place = flag_place(flags, row->offset);
    switch (row->type) {
    case FLAG_BOOL:
        return flag_set_bool(row, place, value, err);
    case FLAG_INT:
    case FLAG_INT32:
    case FLAG_SIZE:
        flags->has_shards = flags->has_shards || row->offset == AT(shards);
        return flag_set_int(row, place, value, err);
    case FLAG_DOUBLE:
        return flag_set_double(row, place, value, err);
    case FLAG_DURATION:
    case FLAG_SPAN:
        return flag_set_duration(row, place, value, err);
    case FLAG_TEXT:
        memcpy(place, &value, sizeof(value));
        flags->has_address = flags->has_address || row->offset == AT(address);
        return TD_OK;
    }
    return TD_OK;
}

/* ---- What texts mean ---- */

static int settle_word(const char *flag, td_str text, const char *yes, const char *no, bool *ret,
                       struct td_error *err)
{
    *ret = td_str_equal(text, td_str_from(yes));
    if (!*ret && !td_str_equal(text, td_str_from(no))) {
        return td_error_set(err, TD_INVALID, "--%s: '%.*s': must be %s or %s", flag,
                            TD_STR_ARG(text), no, yes);
    }
    return TD_OK;
}

static int settle_words(struct td_run_flags *flags, struct td_error *err)
{
    struct td_controllers_options *options = &flags->controllers;
    bool is_owners = false;
    int code = settle_word("horizontal", flags->horizontal_text, "builtin", "off",
                           &options->horizontal.serves_builtin, err);
    if (code == TD_OK) {
        code = settle_word("logging-format", flags->logging_text, "json", "text",
                           &flags->is_log_json, err);
    }
    if (code == TD_OK) {
        code = settle_word("pod-level-container-limitrange", flags->limit_range_text, "warn",
                           "reject", &options->webhook.warns_of_limit_range, err);
        options->update.config.warns_of_limit_range = options->webhook.warns_of_limit_range;
    }
    if (code == TD_OK) {
        code = settle_word("hpa-selection-strategy", flags->strategy_text, "OwnerReference",
                           "LabelSelector", &is_owners, err);
    }
    options->horizontal.strategy.by_default =
        is_owners ? TD_HPA_STRATEGY_OWNERS : TD_HPA_STRATEGY_LABELS;
    if (code == TD_OK && options->recommend.estimator.len > 0 &&
        !td_estimator_find(options->recommend.estimator)) {
        td_auto_buf names = td_buf_capped(TD_ERROR_MESSAGE_BYTES);
        td_estimator_write_names(&names);
        code =
            td_error_set(err, TD_INVALID, "--estimator: '%.*s': use %.*s",
                         TD_STR_ARG(options->recommend.estimator), TD_STR_ARG(td_buf_str(&names)));
    }
    return code;
}

static int settle_quantity(struct td_arena *arena, const char *flag, td_str text,
                           const char *resource, struct td_resource_list *list,
                           struct td_error *err)
{
    struct td_quantity quantity;
    if (text.len == 0) {
        return TD_OK;
    }
    int code = td_vpa_parse_flag(arena, td_str_from(flag), text, &quantity, err);
    if (code == TD_OK) {
        td_resource_list_set(arena, list, td_str_from(resource), &quantity);
    }
    return code;
}

static int settle_quantities(struct td_arena *arena, struct td_run_flags *flags,
                             struct td_error *err)
{
    struct td_resource_list boost = {.count = 0};
    struct td_recommend_options *recommend = &flags->controllers.recommend;
    const struct {
        const char *flag;
        td_str text;
        const char *resource;
        struct td_resource_list *list;
    } rows[] = {
        {"--container-recommendation-max-allowed-cpu", flags->container_max_cpu, "cpu",
         &recommend->global_max},
        {"--container-recommendation-max-allowed-memory", flags->container_max_memory, "memory",
         &recommend->global_max},
        {"--pod-recommendation-max-allowed-cpu", flags->pod_max_cpu, "cpu", &recommend->pod_max},
        {"--pod-recommendation-max-allowed-memory", flags->pod_max_memory, "memory",
         &recommend->pod_max},
        {"--max-allowed-cpu-boost", flags->boost_max, "cpu", &boost},
    };
    int code = TD_OK;
    for (size_t i = 0; code == TD_OK && i < sizeof(rows) / sizeof(rows[0]); i++) {
        code =
            settle_quantity(arena, rows[i].flag, rows[i].text, rows[i].resource, rows[i].list, err);
    }
    flags->controllers.webhook.max_cpu_boost =
        code == TD_OK ? td_resource_list_edit(&boost, TD_STR("cpu")) : NULL;
    return code;
}

static int settle_prometheus(struct td_arena *arena, struct td_run_flags *flags, td_env_fn env,
                             struct td_error *err)
{
    struct td_prometheus_options *prometheus = &flags->controllers.recommend.prometheus;
    td_str storage = flags->storage_text;
    if (storage.len > 0 && !td_str_equal(storage, TD_STR("checkpoint")) &&
        !td_str_equal(storage, TD_STR("prometheus"))) {
        return td_error_set(err, TD_INVALID, "--storage: '%.*s': must be checkpoint or prometheus",
                            TD_STR_ARG(storage));
    }
    if (td_str_equal(storage, TD_STR("checkpoint"))) {
        prometheus->address = TD_STR_EMPTY;
    } else if (td_str_equal(storage, TD_STR("prometheus")) && prometheus->address.len == 0) {
        prometheus->address = TD_STR("http://prometheus.monitoring.svc");
    }
    if (flags->bearer_file.len > 0) {
        td_str token;
        int code =
            td_file_read(flags->bearer_file.ptr, arena, TD_TOKEN_FILE_BYTES_MAX, &token, err);
        if (code != TD_OK) {
            return td_error_wrap(err, code, "--prometheus-bearer-token-file");
        }
        prometheus->bearer_token = td_str_trim(token);
    }
    td_str username = td_str_from(env ? env("PROMETHEUS_USERNAME", NULL) : NULL);
    td_str password = td_str_from(env ? env("PROMETHEUS_PASSWORD", NULL) : NULL);
    if (prometheus->username.len == 0 && username.len > 0 && password.len > 0) {
        prometheus->username = username;
        prometheus->password = password;
    }
    return TD_OK;
}

static size_t settle_list(struct td_arena *arena, td_str text, const td_str **ret)
{
    td_str *items = td_arena_array(arena, td_str, text.len + 1);
    size_t count = 0;
    while (text.len > 0) {
        td_str word = td_str_trim(td_rights_word(&text));
        if (word.len > 0) {
            items[count++] = td_arena_copy_str(arena, word);
        }
    }
    *ret = items;
    return count;
}

/* Names of ours, but for what is shared with upstream's programs: all of it where its place is
 * taken, the status lease where only one of the two that use it is ours. */
static void settle_names(struct td_controllers_options *options)
{
    bool is_mixed = options->has[TD_CONTROLLER_UPDATER] != options->has[TD_CONTROLLER_ADMISSION];
    td_str status = options->replaces_upstream || is_mixed ? TD_STR(TD_UPSTREAM_STATUS_LEASE)
                                                           : TD_STR(TD_STATUS_LEASE);
    const struct td_webhook_options usual = td_controllers_options_default().webhook;
    options->webhook.replaces_upstream = options->replaces_upstream;
    if (options->update.lease_name.len == 0) {
        options->update.lease_name = status;
    }
    if (options->webhook.lease_name.len == 0) {
        options->webhook.lease_name = status;
    }
    if (options->replaces_upstream && td_str_equal(options->webhook.service, usual.service)) {
        options->webhook.service = TD_STR("vpa-webhook");
    }
}

static int flags_settle(struct td_arena *arena, struct td_run_flags *flags, td_env_fn env,
                        struct td_error *err)
{
    struct td_controllers_options *options = &flags->controllers;
    options->ignored_count = settle_list(arena, flags->ignored_text, &options->ignored_namespaces);
    options->webhook.exempt_count =
        settle_list(arena, flags->exempt_text, &options->webhook.exempt_namespaces);
    int code = TD_OK;
    if (flags->controllers_text.len > 0) {
        code = td_controllers_choose(flags->controllers_text, options->has, err);
        code = code == TD_OK ? code : td_error_wrap(err, code, "--controllers");
    }
    settle_names(options);
    code = code == TD_OK ? td_gates_set(options, flags->gates_text, err) : code;
    code = code == TD_OK && flags->is_shadow ? td_run_flags_settle_shadow(flags, err) : code;
    code = code == TD_OK ? settle_words(flags, err) : code;
    code = code == TD_OK ? settle_quantities(arena, flags, err) : code;
    code = code == TD_OK ? td_run_flags_check(flags, err) : code;
    code = code == TD_OK ? td_run_flags_read_client_ca(arena, flags, err) : code;
    return code == TD_OK ? settle_prometheus(arena, flags, env, err) : code;
}

/* ---- The command line ---- */

static const struct flag_row *flags_find(td_str name)
{
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        td_str row = td_str_from(flag_rows[i].name);
        size_t at = 0;
        while (row.len == name.len && at < name.len &&
               (row.ptr[at] == name.ptr[at] || (row.ptr[at] == '-' && name.ptr[at] == '_'))) {
            at++;
        }
        if (row.len == name.len && at == name.len) {
            return &flag_rows[i];
        }
    }
    return NULL;
}

static bool flags_take_word(struct td_run_flags *flags, const char *word)
{
    flags->wants_help = flags->wants_help || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    flags->wants_flags = flags->wants_flags || strcmp(word, "--flags") == 0;
    bool is_quiet = strcmp(word, "-q") == 0 || strcmp(word, "--quiet") == 0;
    flags->is_quiet = flags->is_quiet || is_quiet;
    return is_quiet || flags->wants_help || flags->wants_flags;
}

static int flags_unknown(const char *word, td_str name, struct td_error *err)
{
    const char *meant = td_str_suggest(name, flag_rows, FLAG_COUNT, sizeof(flag_rows[0]));
    return meant
               ? td_error_set(err, TD_INVALID, "%s: unknown flag; did you mean --%s?", word, meant)
               : td_error_set(err, TD_INVALID, "%s: unknown flag; 'tandem run --flags' lists them",
                              word);
}

/* Takes one argument, or two; returns how many, or a failure. */
static int flags_take(struct td_run_flags *flags, int argc, char **argv, struct td_error *err)
{
    if (flags_take_word(flags, argv[0])) {
        return 1;
    }
    td_str word = td_str_from(argv[0]);
    if (word.len < 2 || word.ptr[0] != '-') {
        return td_error_set(err, TD_INVALID, "'%s': takes flags only; see 'tandem run --help'",
                            argv[0]);
    }
    word = td_str_slice(word, word.ptr[1] == '-' ? 2 : 1, word.len);
    size_t equals = td_str_find(word, '=', 0);
    const struct flag_row *row = flags_find(td_str_slice(word, 0, equals));
    if (!row) {
        return flags_unknown(argv[0], td_str_slice(word, 0, equals), err);
    }
    if (equals < word.len) {
        int code = flag_set(row, flags, td_str_slice(word, equals + 1, word.len), err);
        return code == TD_OK ? 1 : code;
    }
    if (row->type == FLAG_BOOL) {
        return flag_set(row, flags, TD_STR("true"), err) == TD_OK ? 1 : TD_INVALID;
    }
    if (argc < 2) {
        return td_error_set(err, TD_INVALID, "--%s: needs a value", row->name);
    }
    int code = flag_set(row, flags, td_str_from(argv[1]), err);
    return code == TD_OK ? 2 : code;
}

int td_run_flags_parse(struct td_arena *arena, int argc, char **argv, td_env_fn env,
                       struct td_run_flags *ret, struct td_error *err)
{
    struct td_run_flags flags = flags_default();
    td_str namespace = td_str_from(env ? env("NAMESPACE", NULL) : NULL);
    if (namespace.len > 0) {
        flags.controllers.webhook.namespace = namespace;
    }
    for (int at = 0; at < argc && !flags.wants_help && !flags.wants_flags;) {
        int taken = flags_take(&flags, argc - at, argv + at, err);
        if (taken < 0) {
            return taken;
        }
        at += taken;
    }
    int code = flags_settle(arena, &flags, env, err);
    if (code == TD_OK) {
        *ret = flags;
    }
    return code;
}

/* ---- Of another command's line ---- */

/* Does the flag say how a controller decides, and not whom it talks to? */
static bool flag_is_of_decisions(const struct flag_row *row)
{
    static const char *const groups[] = {"Recommender", "Updater", "Horizontal", "Hvpa"};
    static const char *const others[] = {"cap-to-node", "vpa-object-namespace",
                                         "ignored-vpa-object-namespaces", "max-allowed-cpu-boost",
                                         "pod-level-container-limitrange"};
    static const char *const left_out[] = {
        "recommender-name", "storage",
        "prometheus-",      "username",
        "password",         "history-",
        "pod-label-",       "metric-for-",
        "pod-namespace-",   "pod-name-",
        "container-n",      "container-pod-",
        "use-admission-",   "admission-controller-",
    };
    const struct flag_row *first = row;
    while (!first->who) {
        first--;
    }
    bool is_taken = false;
    for (size_t i = 0; i < TD_COUNT(groups); i++) {
        is_taken = is_taken || strcmp(first->who, groups[i]) == 0;
    }
    for (size_t i = 0; i < TD_COUNT(others); i++) {
        is_taken = is_taken || strcmp(row->name, others[i]) == 0;
    }
    for (size_t i = 0; i < TD_COUNT(left_out); i++) {
        is_taken =
            is_taken && !td_str_starts_with(td_str_from(row->name), td_str_from(left_out[i]));
    }
    return is_taken && strcmp(row->name, "horizontal") != 0;
}

int td_run_flags_extract(struct td_arena *arena, int *argc, char **argv,
                         struct td_controllers_options *ret, struct td_error *err)
{
    struct td_run_flags flags = flags_default();
    int kept = 1;
    for (int at = 1; at < *argc;) {
        td_str word = td_str_from(argv[at]);
        bool is_long = td_str_starts_with(word, TD_STR("--"));
        td_str name = is_long ? td_str_slice(word, 2, td_str_find(word, '=', 0)) : TD_STR_EMPTY;
        const struct flag_row *row = flags_find(name);
        if (!row || !flag_is_of_decisions(row)) {
            argv[kept++] = argv[at++];
            continue;
        }
        int taken = flags_take(&flags, *argc - at, argv + at, err);
        if (taken < 0) {
            return taken;
        }
        at += taken;
    }
    argv[kept] = NULL;
    *argc = kept;
    int code = flags_settle(arena, &flags, NULL, err);
    if (code == TD_OK) {
        *ret = flags.controllers;
    }
    return code;
}

/* ---- The table ---- */

static void flags_write_value(const struct flag_row *row, struct td_run_flags *flags,
                              struct td_buf *out)
{
    const void *place = flag_place(flags, row->offset);
    char text[TD_DURATION_TEXT_BYTES];
    switch (row->type) {
    case FLAG_BOOL:
        (void)td_buf_append_format(out, "%s", *(const bool *)place ? "true" : "false");
        break;
    case FLAG_INT:
        (void)td_buf_append_int64(out, *(const int64_t *)place);
        break;
    case FLAG_INT32:
        (void)td_buf_append_int64(out, *(const int *)place);
        break;
    case FLAG_SIZE:
        (void)td_buf_append_int64(out, (int64_t) * (const size_t *)place);
        break;
    case FLAG_DOUBLE:
        td_json_write_double(*(const double *)place, out);
        break;
    case FLAG_DURATION:
    case FLAG_SPAN:
        (void)td_duration_format(*(const td_duration *)place, text);
        (void)td_buf_append(out, td_str_from(text));
        break;
    case FLAG_TEXT:
        (void)td_buf_append(out, *(const td_str *)place);
        break;
    }
}

static void flags_write_gates(const struct td_run_flags *flags, struct td_buf *out)
{
    (void)td_buf_append(out, TD_STR("\n### Gates\n\n| gate | default | stage |\n|---|---|---|\n"));
    for (size_t i = 0; i < TD_GATE_COUNT; i++) {
        struct td_gate gate = td_gate_at(&flags->controllers, i);
        (void)td_buf_append_format(out, "| `%s` | `%s` | %s |\n", gate.name,
                                   gate.is_on ? "true" : "false", gate.stage);
    }
}

bool td_run_flags_at(size_t index, struct td_run_flag *ret)
{
    const struct flag_row *row = &flag_rows[index];
    if (index >= FLAG_COUNT) {
        return false;
    }
    *ret = (struct td_run_flag){row->name, row->who, row->help, row->type == FLAG_BOOL,
                                flag_is_of_decisions(row)};
    return true;
}

void td_run_flags_default(size_t index, struct td_buf *out)
{
    struct td_run_flags flags = flags_default();
    flags_write_value(&flag_rows[index], &flags, out);
}

void td_run_flags_write(struct td_buf *out)
{
    struct td_run_flags flags = flags_default();
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        const struct flag_row *row = &flag_rows[i];
        if (row->who) {
            (void)td_buf_append_format(out, "%s### %s\n\n| flag | default | |\n|---|---|---|\n",
                                       i > 0 ? "\n" : "", row->who);
        }
        (void)td_buf_append_format(out, "| `--%s` | ", row->name);
        size_t before = out->len;
        (void)td_buf_append_char(out, '`');
        flags_write_value(row, &flags, out);
        if (out->len == before + 1) {
            out->len = before; /* an empty text has no quotes */
        } else {
            (void)td_buf_append(out, TD_STR("` "));
        }
        (void)td_buf_append_format(out, "| %s |\n", row->help);
    }
    flags_write_gates(&flags, out);
}
