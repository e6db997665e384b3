#include "control/recommend_tallies.h"

#include "base/alloc.h"
#include "control/tally.h"

static const double tally_steps[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,   2,   5,   10,  20, 30,
                                     40,   50,   60,   70,  80,  90,  100, 120, 150, 240, 300};
static const double tally_latency[] = {1,  2,   5,   7.5, 10,  20,  30,  40,  50,  60,
                                       90, 120, 150, 180, 240, 300, 600, 900, 1800};

struct recommend_tallies {
    struct td_tally_family *objects;
    struct td_tally_family *latency;
    struct td_tally_family *steps;
    struct td_tally_family *aggregates;
    struct td_tally_family *responses;
    struct td_tally_family *histories;
    struct td_tally_family *history_samples;
    struct td_tally_family *newest;
    struct td_tally_family *stale;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void recommend_tallies_init(struct td_recommend_loop *loop)
{
    static const struct td_tally_declaration rows[] = {
        {.name = "vpa_recommender_vpa_objects_count",
         .help = "VPA objects present in the cluster.",
         .kind = TD_TALLY_GAUGE,
         .labels = {"update_mode", "has_recommendation", "api", "matches_pods",
                    "unsupported_config"}},
        {.name = "vpa_recommender_recommendation_latency_seconds",
         .help = "Time from a VPA's creation to its first recommendation.",
         .kind = TD_TALLY_HISTOGRAM,
         .buckets = tally_latency,
         .bucket_count = COUNT(tally_latency)},
        {.name = "vpa_recommender_execution_latency_seconds",
         .help = "Time spent in the steps of a pass.",
         .kind = TD_TALLY_HISTOGRAM,
         .labels = {"step"},
         .buckets = tally_steps,
         .bucket_count = COUNT(tally_steps)},
        {.name = "vpa_recommender_aggregate_container_states_count",
         .help = "Aggregates of containers that are kept.",
         .kind = TD_TALLY_GAUGE},
        {.name = "vpa_recommender_metric_server_responses",
         .help = "Answers of the metrics API.",
         .kind = TD_TALLY_COUNTER,
         .labels = {"is_error", "client_name"}},
        {.name = "tandem_recommender_history_reads_total",
         .help = "Times that history was read from Prometheus.",
         .kind = TD_TALLY_COUNTER,
         .labels = {"is_error"}},
        {.name = "tandem_recommender_history_samples_total",
         .help = "Samples learnt from Prometheus.",
         .kind = TD_TALLY_COUNTER},
        {.name = "tandem_recommender_newest_metrics_timestamp_seconds",
         .help = "Time of the newest measurement of a pod that was read; 0: none was.",
         .kind = TD_TALLY_GAUGE},
        {.name = "tandem_recommender_stale_vpas",
         .help = "VPAs whose pods run, but are not measured: condition MetricsStale.",
         .kind = TD_TALLY_GAUGE},
    };
    struct td_tally *tally = loop->options.control.tally;
    struct recommend_tallies *tallies = td_alloc_zero(1, sizeof(*tallies));
    tallies->objects = td_tally_declare(tally, &rows[0]);
    tallies->latency = td_tally_declare(tally, &rows[1]);
    tallies->steps = td_tally_declare(tally, &rows[2]);
    tallies->aggregates = td_tally_declare(tally, &rows[3]);
    tallies->responses = td_tally_declare(tally, &rows[4]);
    tallies->histories = td_tally_declare(tally, &rows[5]);
    tallies->history_samples = td_tally_declare(tally, &rows[6]);
    tallies->newest = td_tally_declare(tally, &rows[7]);
    tallies->stale = td_tally_declare(tally, &rows[8]);
    loop->tallies = tallies;
}

void recommend_tallies_done(struct td_recommend_loop *loop)
{
    td_free(loop->tallies);
}

static td_str tally_bool(bool value)
{
    return value ? TD_STR("true") : TD_STR("false");
}

void recommend_tally_begin(struct td_recommend_loop *loop)
{
    td_tally_clear(loop->tallies->objects);
    td_tally_set(td_tally_series(loop->tallies->aggregates, NULL),
                 (double)td_recommender_aggregates(loop->model));
    td_tally_set(td_tally_series(loop->tallies->newest, NULL),
                 (double)loop->last_metrics / (double)TD_SECOND);
    if (!loop->is_urgent_only || loop->is_telling) { /* all VPAs are looked at */
        td_tally_set(td_tally_series(loop->tallies->stale, NULL), 0);
    }
}

void recommend_tally_stale(struct td_recommend_loop *loop, bool is_stale)
{
    if (is_stale && (!loop->is_urgent_only || loop->is_telling)) {
        td_tally_add(td_tally_series(loop->tallies->stale, NULL), 1);
    }
}

void recommend_tally_vpa(struct td_recommend_loop *loop, struct recommend_vpa *vpa,
                         const struct td_vpa *object, const struct td_vpa_status *status)
{
    bool has_recommendation = status->recommendation.container_count > 0;
    const td_str values[] = {td_vpa_mode_name(object->mode), tally_bool(has_recommendation),
                             TD_STR("v1"), tally_bool(status->pod_count > 0),
                             tally_bool(vpa->config_error.len > 0)};
    td_tally_add(td_tally_series(loop->tallies->objects, values), 1);
    if (!object->has_recommendation && has_recommendation && vpa->born == 0) {
        td_duration took = recommend_now(loop) - vpa->created;
        td_tally_observe(td_tally_series(loop->tallies->latency, NULL),
                         (double)took / (double)TD_SECOND);
        vpa->born = recommend_now(loop);
    }
}

void recommend_tally_step(struct td_recommend_loop *loop, const char *step, td_duration took)
{
    const td_str values[] = {td_str_from(step)};
    td_tally_observe(td_tally_series(loop->tallies->steps, values),
                     (double)took / (double)TD_SECOND);
}

void recommend_tally_metrics(struct td_recommend_loop *loop, bool is_error)
{
    const td_str values[] = {tally_bool(is_error), TD_STR("default-metrics-client")};
    td_tally_add(td_tally_series(loop->tallies->responses, values), 1);
}

void recommend_tally_history(struct td_recommend_loop *loop, bool is_failed, size_t samples)
{
    const td_str values[] = {tally_bool(is_failed)};
    td_tally_add(td_tally_series(loop->tallies->histories, values), 1);
    td_tally_add(td_tally_series(loop->tallies->history_samples, NULL),
                 is_failed ? 0 : (double)samples);
}
