/*
 * The families of vpa_recommender_* and tandem_recommender_* metrics, and the moments of a pass at
 * which each is set.
 */
#include "control/recommender/recommend_metrics.h"

#include "base/alloc.h"
#include "base/metrics.h"

#define METRIC_MILLI 1000.0 /* of a core or a byte */

static const double metric_steps[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,   2,   5,   10,  20, 30,
                                      40,   50,   60,   70,  80,  90,  100, 120, 150, 240, 300};
static const double metric_latency[] = {1,  2,   5,   7.5, 10,  20,  30,  40,  50,  60,
                                        90, 120, 150, 180, 240, 300, 600, 900, 1800};

struct recommend_metrics {
    struct td_metric_family *objects;
    struct td_metric_family *latency;
    struct td_metric_family *steps;
    struct td_metric_family *aggregates;
    struct td_metric_family *responses;
    struct td_metric_family *histories;
    struct td_metric_family *history_samples;
    struct td_metric_family *newest;
    struct td_metric_family *stale;
    struct td_metric_family *kills;
    struct td_metric_family *checkpoints;
    struct td_metric_family *targets;
};

static const char *const metric_sizers[RECOMMEND_SIZERS] = {
    [RECOMMEND_SIZED_BY_OWNER] = "owner",
    [RECOMMEND_SIZED_BY_ADMISSION] = "admission",
    [RECOMMEND_SIZED_BY_RESIZE] = "resize",
};

static td_str metric_bool(bool value)
{
    return value ? TD_STR("true") : TD_STR("false");
}

void recommend_metrics_init(struct td_recommend_loop *loop)
{
    static const struct td_metric_declaration rows[] = {
        {"vpa_recommender_vpa_objects_count", "VPA objects present in the cluster.",
         .kind = TD_METRIC_GAUGE,
         .labels = {"update_mode", "has_recommendation", "api", "matches_pods",
                    "unsupported_config"}},
        {"vpa_recommender_recommendation_latency_seconds",
         "Time elapsed from creating a valid VPA to its first recommendation.",
         .kind = TD_METRIC_HISTOGRAM, .buckets = metric_latency,
         .bucket_count = TD_COUNT(metric_latency)},
        {"vpa_recommender_execution_latency_seconds",
         "Time spent in the steps of the recommender's main loop.", .kind = TD_METRIC_HISTOGRAM,
         .labels = {"step"}, .buckets = metric_steps, .bucket_count = TD_COUNT(metric_steps)},
        {"vpa_recommender_aggregate_container_states_count",
         "Aggregate container states in memory.", .kind = TD_METRIC_GAUGE},
        {"vpa_recommender_metric_server_responses", "Responses to queries of the metrics server.",
         .kind = TD_METRIC_COUNTER, .labels = {"is_error", "client_name"}},
        {"tandem_recommender_history_reads_total", "Attempts to load history from Prometheus.",
         .kind = TD_METRIC_COUNTER, .labels = {"is_error"}},
        {"tandem_recommender_history_samples_total", "Samples learnt from Prometheus.",
         .kind = TD_METRIC_COUNTER},
        {"tandem_recommender_newest_metrics_timestamp_seconds",
         "Unix time of the newest pod metrics read; 0: none yet.", .kind = TD_METRIC_GAUGE},
        {"tandem_recommender_stale_vpas",
         "VPAs with running pods and no recent metrics of them (condition MetricsStale).",
         .kind = TD_METRIC_GAUGE},
        {"tandem_recommender_oom_kills_total",
         "OOM kills of containers, by who sized the pod last: resize, admission, or owner for "
         "none.",
         .kind = TD_METRIC_COUNTER, .labels = {"sized_by"}},
        {"tandem_recommender_checkpoint_writes_total", "Checkpoints written, by whether it failed.",
         .kind = TD_METRIC_COUNTER, .labels = {"is_error"}},
        {"tandem_recommender_target", "Recommended requests of a VPA, in cores or bytes.",
         .kind = TD_METRIC_GAUGE, .labels = {"namespace", "vpa", "container", "resource"}},
    };
    struct td_metric_registry *registry = loop->options.control.registry;
    struct recommend_metrics *metrics = td_alloc_zero(1, sizeof(*metrics));
    metrics->objects = td_metric_declare(registry, &rows[0]);
    metrics->latency = td_metric_declare(registry, &rows[1]);
    metrics->steps = td_metric_declare(registry, &rows[2]);
    metrics->aggregates = td_metric_declare(registry, &rows[3]);
    metrics->responses = td_metric_declare(registry, &rows[4]);
    metrics->histories = td_metric_declare(registry, &rows[5]);
    metrics->history_samples = td_metric_declare(registry, &rows[6]);
    metrics->newest = td_metric_declare(registry, &rows[7]);
    metrics->stale = td_metric_declare(registry, &rows[8]);
    metrics->kills = td_metric_declare(registry, &rows[9]);
    metrics->checkpoints = td_metric_declare(registry, &rows[10]);
    metrics->targets = td_metric_declare(registry, &rows[11]);
    loop->metrics = metrics;
    /* There before the first of them, so that a rate sees it. */
    for (int i = 0; i < RECOMMEND_SIZERS; i++) {
        const td_str value = td_str_from(metric_sizers[i]);
        (void)td_metric_series(metrics->kills, &value);
    }
    for (int is_error = 0; is_error < 2; is_error++) {
        const td_str value = metric_bool(is_error == 1);
        (void)td_metric_series(metrics->checkpoints, &value);
    }
}

void recommend_metrics_begin(struct td_recommend_loop *loop)
{
    td_metric_clear(loop->metrics->objects);
    td_metric_set(td_metric_series(loop->metrics->aggregates, NULL),
                  (double)td_recommender_aggregates(loop->model));
    td_metric_set(td_metric_series(loop->metrics->newest, NULL),
                  (double)loop->last_metrics / (double)TD_SECOND);
    if (loop->pass.kind != RECOMMEND_URGENT || loop->pass.is_telling) { /* all VPAs are looked at */
        td_metric_set(td_metric_series(loop->metrics->stale, NULL), 0);
        td_metric_clear(loop->metrics->targets);
    }
}

void recommend_metrics_stale(struct td_recommend_loop *loop, bool is_stale)
{
    if (is_stale && (loop->pass.kind != RECOMMEND_URGENT || loop->pass.is_telling)) {
        td_metric_add(td_metric_series(loop->metrics->stale, NULL), 1);
    }
}

static void metric_targets(struct td_recommend_loop *loop, const struct td_vpa *object,
                           const struct td_recommendation *recommendation)
{
    for (size_t i = 0; i < recommendation->container_count; i++) {
        const struct td_container_recommendation *one = &recommendation->containers[i];
        for (size_t r = 0; r < one->target.count; r++) {
            const struct td_resource_amount *resource = &one->target.items[r];
            const td_str values[] = {object->meta.namespace, object->meta.name, one->container_name,
                                     resource->name};
            td_metric_set(td_metric_series(loop->metrics->targets, values),
                          (double)td_quantity_milli(&resource->quantity) / METRIC_MILLI);
        }
    }
}

void recommend_metrics_vpa(struct td_recommend_loop *loop, struct recommend_vpa *vpa,
                           const struct td_vpa *object, const struct td_vpa_status *status)
{
    bool has_recommendation = status->recommendation.container_count > 0;
    const td_str values[] = {td_vpa_mode_name(object->mode), metric_bool(has_recommendation),
                             TD_STR("v1"), metric_bool(status->pod_count > 0),
                             metric_bool(vpa->config_error.len > 0)};
    td_metric_add(td_metric_series(loop->metrics->objects, values), 1);
    metric_targets(loop, object, &status->recommendation);
    if (!object->has_recommendation && has_recommendation && vpa->born == 0) {
        td_duration took = recommend_now(loop) - vpa->created;
        td_metric_observe(td_metric_series(loop->metrics->latency, NULL),
                          (double)took / (double)TD_SECOND);
        vpa->born = recommend_now(loop);
    }
}

void recommend_metrics_kill(struct td_recommend_loop *loop, enum recommend_sizer sizer)
{
    const td_str value = td_str_from(metric_sizers[sizer]);
    td_metric_add(td_metric_series(loop->metrics->kills, &value), 1);
}

void recommend_metrics_checkpoint(struct td_recommend_loop *loop, bool is_error)
{
    const td_str value = metric_bool(is_error);
    td_metric_add(td_metric_series(loop->metrics->checkpoints, &value), 1);
}

void recommend_metrics_step(struct td_recommend_loop *loop, const char *step, td_duration took)
{
    const td_str values[] = {td_str_from(step)};
    td_metric_observe(td_metric_series(loop->metrics->steps, values),
                      (double)took / (double)TD_SECOND);
}

void recommend_metrics_responses(struct td_recommend_loop *loop, bool is_error)
{
    const td_str values[] = {metric_bool(is_error), TD_STR("default-metrics-client")};
    td_metric_add(td_metric_series(loop->metrics->responses, values), 1);
}

void recommend_metrics_history(struct td_recommend_loop *loop, bool is_failed, size_t samples)
{
    const td_str values[] = {metric_bool(is_failed)};
    td_metric_add(td_metric_series(loop->metrics->histories, values), 1);
    td_metric_add(td_metric_series(loop->metrics->history_samples, NULL),
                  is_failed ? 0 : (double)samples);
}
