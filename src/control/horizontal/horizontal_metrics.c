/*
 * The figures of the horizontal controller for Prometheus: upstream's names, labels and buckets,
 * one of its work queue, and three of our own about owners of pods.
 */
#include "control/horizontal/horizontal_private.h"

#define METRIC_PREFIX "horizontal_pod_autoscaler_controller_"
#define METRIC_PLURAL_BYTES_MAX ((size_t)256)

/* 15 of them, from a millisecond, doubling. */
static const double metric_seconds[] = {0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128,
                                        0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384};
#define METRIC_BUCKETS (sizeof(metric_seconds) / sizeof(metric_seconds[0]))

/* Late by 0.9 s, at the end of a moment, is 16 s after the last sync of a period of 15 s. */
static const double metric_waits[] = {0.001, 0.01, 0.1, 0.5, 0.9, 2, 5, 10};

void horizontal_metrics_init(struct td_horizontal_loop *loop)
{
    static const struct td_metric_declaration rows[] = {
        {METRIC_PREFIX "reconciliations_total", "HPA reconciliations, by action and error.",
         .kind = TD_METRIC_COUNTER, .labels = {"action", "error"}},
        {METRIC_PREFIX "reconciliation_duration_seconds", "Duration of HPA reconciliations.",
         .kind = TD_METRIC_HISTOGRAM, .labels = {"action", "error"}, .buckets = metric_seconds,
         .bucket_count = METRIC_BUCKETS},
        {METRIC_PREFIX "metric_computation_total",
         "Replica counts computed from single metrics, by action, error and metric type.",
         .kind = TD_METRIC_COUNTER, .labels = {"action", "error", "metric_type"}},
        {METRIC_PREFIX "metric_computation_duration_seconds",
         "Duration of fetching a metric and computing its replica count.",
         .kind = TD_METRIC_HISTOGRAM, .labels = {"action", "error", "metric_type"},
         .buckets = metric_seconds, .bucket_count = METRIC_BUCKETS},
        {METRIC_PREFIX "num_horizontal_pod_autoscalers", "HPAs that this controller reconciles.",
         .kind = TD_METRIC_GAUGE},
        {METRIC_PREFIX "desired_replicas", "Desired replicas of an HPA.", .kind = TD_METRIC_GAUGE,
         .labels = {"namespace", "hpa_name"}},
        {METRIC_PREFIX "stale_sync_skips_total",
         "Reconciliations postponed because the informer had not yet seen the controller's "
         "last write.",
         .kind = TD_METRIC_COUNTER, .labels = {"group", "resource"}},
        {"workqueue_queue_duration_seconds",
         "How long an item waited for its turn after it was due.", .kind = TD_METRIC_HISTOGRAM,
         .labels = {"name"}, .buckets = metric_waits,
         .bucket_count = sizeof(metric_waits) / sizeof(metric_waits[0])},
        {METRIC_PREFIX "cache_hits_total", "Owner lookups answered by the cache.",
         .kind = TD_METRIC_COUNTER, .labels = {"resource_kind"}},
        {METRIC_PREFIX "cache_misses_total", "Owner lookups sent to the API server.",
         .kind = TD_METRIC_COUNTER, .labels = {"resource_kind"}},
        {METRIC_PREFIX "pod_filter_fallbacks_total",
         "Reconciliations that counted all selected pods because their owners could not be "
         "read.",
         .kind = TD_METRIC_COUNTER, .labels = {"reason"}},
    };
    struct horizontal_metrics *t = &loop->metrics;
    struct td_metric_family **families[] = {
        &t->reconciliations, &t->reconciliation_seconds,
        &t->computations,    &t->computation_seconds,
        &t->objects,         &t->desired,
        &t->stale_skips,     &t->waited,
        &t->owner_hits,      &t->owner_misses,
        &t->fallbacks,
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        *families[i] = td_metric_declare(loop->options.control.registry, &rows[i]);
    }
}

void horizontal_metrics_objects(struct td_horizontal_loop *loop)
{
    td_metric_set(td_metric_series(loop->metrics.objects, NULL), (double)loop->items.count);
}

static td_str metric_action(int64_t wanted, int64_t current)
{
    if (wanted == current) {
        return TD_STR("none");
    }
    return wanted > current ? TD_STR("scale_up") : TD_STR("scale_down");
}

static td_str metric_error(bool is_failed, bool is_spec_fault)
{
    if (!is_failed) {
        return TD_STR("none");
    }
    return is_spec_fault ? TD_STR("spec") : TD_STR("internal");
}

void horizontal_metrics_sync(const struct horizontal_sync *sync)
{
    const struct horizontal_metrics *t = &sync->loop->metrics;
    const struct td_hpa_pass *pass = &sync->decided.pass;
    const td_str values[] = {pass->is_rescaled
                                 ? metric_action(pass->desired, pass->scale.spec_replicas)
                                 : TD_STR("none"),
                             metric_error(pass->has_error, pass->is_spec_fault)};
    double seconds = (double)(horizontal_now(sync->loop) - sync->began) / (double)TD_SECOND;
    td_metric_add(td_metric_series(t->reconciliations, values), 1);
    td_metric_observe(td_metric_series(t->reconciliation_seconds, values), seconds);
    if (!pass->is_failed && !sync->item->is_gone) {
        const td_str place[] = {sync->item->namespace, sync->item->name};
        td_metric_set(td_metric_series(t->desired, place), (double)pass->desired);
    }
}

void horizontal_metrics_responses(const struct horizontal_sync *sync)
{
    const struct horizontal_metrics *t = &sync->loop->metrics;
    const struct td_hpa_evaluation *evaluation = &sync->decided.pass.evaluation;
    int64_t stored = td_json_get_int64(sync->seen.hpa.status, TD_STR("currentReplicas"), 0);
    for (size_t i = 0; i < evaluation->result_count; i++) {
        const struct td_hpa_metric_result *result = &evaluation->results[i];
        const td_str values[] = {
            result->is_failed ? TD_STR("none")
                              : metric_action(result->calculation.replicas, stored),
            metric_error(result->is_failed, result->is_spec_fault),
            sync->seen.hpa.metrics[i].type_text,
        };
        td_metric_add(td_metric_series(t->computations, values), 1);
        td_metric_observe(td_metric_series(t->computation_seconds, values),
                          (double)sync->seen.queries[i].took / (double)TD_SECOND);
    }
}

void horizontal_metrics_stale(const struct horizontal_item *item)
{
    const td_str values[] = {item->group == HORIZONTAL_OWN ? TD_STR("autoscaling.tandem.dev")
                                                           : TD_STR("autoscaling"),
                             TD_STR("horizontalpodautoscalers")};
    td_metric_add(td_metric_series(item->loop->metrics.stale_skips, values), 1);
}

void horizontal_metrics_waited(const struct horizontal_item *item)
{
    static const td_str values[] = {TD_STR_INIT("horizontalpodautoscaler")};
    td_duration late = horizontal_steady(item->loop) - item->due;
    td_metric_observe(td_metric_series(item->loop->metrics.waited, values),
                      late > 0 ? (double)late / (double)TD_SECOND : 0);
}

void horizontal_metrics_forget(const struct horizontal_item *item)
{
    const td_str values[] = {item->namespace, item->name};
    td_metric_drop(item->loop->metrics.desired, values);
}

void horizontal_metrics_fallback(struct td_horizontal_loop *loop, enum td_hpa_filter_cause cause)
{
    static const td_str names[TD_HPA_FILTER_CAUSES] = {
        [TD_HPA_FILTER_FORBIDDEN] = TD_STR_INIT("forbidden"),
        [TD_HPA_FILTER_THROTTLED] = TD_STR_INIT("throttled"),
        [TD_HPA_FILTER_ERROR] = TD_STR_INIT("error"),
        [TD_HPA_FILTER_TIMEOUT] = TD_STR_INIT("timeout"),
        [TD_HPA_FILTER_UNMAPPED] = TD_STR_INIT("unmapped"),
    };
    td_metric_add(td_metric_series(loop->metrics.fallbacks, &names[cause]), 1);
}

/* The label holds the plural, as upstream's prototype has it. */
void horizontal_metrics_lookup(void *context, const struct td_owner_key *key, bool is_hit)
{
    struct td_horizontal_loop *loop = context;
    td_auto_buf plural = td_buf_capped(METRIC_PLURAL_BYTES_MAX);
    for (size_t i = 0; i < key->kind.len; i++) {
        char c = key->kind.ptr[i];
        (void)td_buf_append_char(&plural, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    (void)td_buf_append_char(&plural, 's');
    const td_str values[] = {td_buf_str(&plural)};
    td_metric_add(
        td_metric_series(is_hit ? loop->metrics.owner_hits : loop->metrics.owner_misses, values),
        1);
}
