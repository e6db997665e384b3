#include "base/os/loop.h"
#include "control/admission/webhook_private.h"

static const double webhook_buckets[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8,
                                         0.9,  1,    2,    5,   10,  20,  30,  60,  120, 300};

void webhook_metrics_init(struct td_webhook *webhook)
{
    static const struct td_metric_declaration pods = {
        "vpa_admission_controller_admission_pods_total",
        "Pods reviewed by the admission webhook, by whether a recommendation was applied.",
        .kind = TD_METRIC_COUNTER, .labels = {"applied"}};
    static const struct td_metric_declaration latency = {
        "vpa_admission_controller_admission_latency_seconds",
        "Latency of admission reviews.",
        .kind = TD_METRIC_HISTOGRAM,
        .labels = {"status", "resource"},
        .buckets = webhook_buckets,
        .bucket_count = TD_COUNT(webhook_buckets)};
    static const struct td_metric_declaration steps = {
        "vpa_admission_controller_execution_latency_seconds",
        "Time spent in the steps of an admission review.",
        .kind = TD_METRIC_HISTOGRAM,
        .labels = {"step"},
        .buckets = webhook_buckets,
        .bucket_count = TD_COUNT(webhook_buckets)};
    static const struct td_metric_declaration undecided = {
        "tandem_admission_undecided_total",
        "Objects admitted unchanged because information for the decision was missing, by "
        "reason.",
        .kind = TD_METRIC_COUNTER, .labels = {"reason"}};
    static const struct td_metric_declaration siblings = {
        "tandem_admission_siblings_total",
        "VPAs and Hvpas checked against others of the same target, by the source of those: "
        "a live list of the namespace, or the informer when the list failed.",
        .kind = TD_METRIC_COUNTER, .labels = {"source"}};
    static const struct td_metric_declaration mutates = {
        "tandem_admission_webhook_mutates",
        "1 if the API server returned the last dry-run probe pod with the webhook's mark, "
        "else 0.",
        .kind = TD_METRIC_GAUGE};
    static const struct td_metric_declaration expiry = {
        "tandem_admission_certificate_expiry_seconds",
        "Unix time at which the webhook's serving certificate expires.", .kind = TD_METRIC_GAUGE};
    struct td_metric_registry *registry = webhook->options.control.registry;
    struct webhook_metrics *metrics = &webhook->metrics;
    struct td_metric_family *family = td_metric_declare(registry, &pods);
    metrics->pods[0] = td_metric_series(family, &TD_STR("false"));
    metrics->pods[1] = td_metric_series(family, &TD_STR("true"));
    metrics->latency = td_metric_declare(registry, &latency);
    metrics->steps = td_metric_declare(registry, &steps);
    metrics->undecided = td_metric_declare(registry, &undecided);
    metrics->siblings = td_metric_declare(registry, &siblings);
    metrics->mutates = td_metric_series(td_metric_declare(registry, &mutates), NULL);
    metrics->expiry = td_metric_series(td_metric_declare(registry, &expiry), NULL);
}

td_duration webhook_metrics_step(struct td_webhook *webhook, const char *step, td_duration since)
{
    td_duration now = td_clock_machine(td_loop_clock(webhook->options.control.loop));
    td_str value = td_str_from(step);
    td_metric_observe(td_metric_series(webhook->metrics.steps, &value),
                      (double)(now - since) / (double)TD_SECOND);
    return now;
}

void webhook_metrics_undecided(struct td_webhook *webhook, const char *reason)
{
    td_str value = td_str_from(reason);
    td_metric_add(td_metric_series(webhook->metrics.undecided, &value), 1);
}

void webhook_metrics_siblings(struct td_webhook *webhook, const char *source)
{
    td_str value = td_str_from(source);
    td_metric_add(td_metric_series(webhook->metrics.siblings, &value), 1);
}
