#include "control/horizontal/horizontal_private.h"

#define TALLY_PREFIX "horizontal_pod_autoscaler_controller_"
#define TALLY_PLURAL_BYTES_MAX ((size_t)256)

/* 15 of them, from a millisecond, doubling. */
static const double tally_seconds[] = {0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128,
                                       0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384};
#define TALLY_BUCKETS (sizeof(tally_seconds) / sizeof(tally_seconds[0]))

void horizontal_tallies_init(struct td_horizontal_loop *loop)
{
    static const struct td_tally_declaration rows[] = {
        {.name = TALLY_PREFIX "reconciliations_total",
         .help = "Reconciles of HPAs, by what they did and whether they failed.",
         .kind = TD_TALLY_COUNTER,
         .labels = {"action", "error"}},
        {.name = TALLY_PREFIX "reconciliation_duration_seconds",
         .help = "Time that a reconcile of an HPA took.",
         .kind = TD_TALLY_HISTOGRAM,
         .labels = {"action", "error"},
         .buckets = tally_seconds,
         .bucket_count = TALLY_BUCKETS},
        {.name = TALLY_PREFIX "metric_computation_total",
         .help = "Proposals of single metrics.",
         .kind = TD_TALLY_COUNTER,
         .labels = {"action", "error", "metric_type"}},
        {.name = TALLY_PREFIX "metric_computation_duration_seconds",
         .help = "Time until a metric was answered and judged.",
         .kind = TD_TALLY_HISTOGRAM,
         .labels = {"action", "error", "metric_type"},
         .buckets = tally_seconds,
         .bucket_count = TALLY_BUCKETS},
        {.name = TALLY_PREFIX "num_horizontal_pod_autoscalers",
         .help = "HPAs that are served.",
         .kind = TD_TALLY_GAUGE},
        {.name = TALLY_PREFIX "desired_replicas",
         .help = "Replicas that an HPA wants.",
         .kind = TD_TALLY_GAUGE,
         .labels = {"namespace", "hpa_name"}},
        {.name = TALLY_PREFIX "stale_sync_skips_total",
         .help = "Reconciles put off because our own last write was not seen yet.",
         .kind = TD_TALLY_COUNTER,
         .labels = {"group", "resource"}},
        {.name = TALLY_PREFIX "cache_hits_total",
         .help = "Owners of pods that were known.",
         .kind = TD_TALLY_COUNTER,
         .labels = {"resource_kind"}},
        {.name = TALLY_PREFIX "cache_misses_total",
         .help = "Owners of pods that had to be looked up.",
         .kind = TD_TALLY_COUNTER,
         .labels = {"resource_kind"}},
        {.name = TALLY_PREFIX "pod_filter_fallbacks_total",
         .help = "Reconciles that counted all pods because owners could not be read.",
         .kind = TD_TALLY_COUNTER,
         .labels = {"reason"}},
    };
    struct horizontal_tallies *t = &loop->tallies;
    struct td_tally_family **families[] = {
        &t->reconciliations, &t->reconciliation_seconds,
        &t->computations,    &t->computation_seconds,
        &t->objects,         &t->desired,
        &t->stale_skips,     &t->owner_hits,
        &t->owner_misses,    &t->fallbacks,
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        *families[i] = td_tally_declare(loop->options.control.tally, &rows[i]);
    }
}

void horizontal_tally_objects(struct td_horizontal_loop *loop)
{
    td_tally_set(td_tally_series(loop->tallies.objects, NULL), (double)loop->items.count);
}

static td_str tally_action(int64_t wanted, int64_t current)
{
    if (wanted == current) {
        return TD_STR("none");
    }
    return wanted > current ? TD_STR("scale_up") : TD_STR("scale_down");
}

static td_str tally_error(bool is_failed, bool is_spec_fault)
{
    if (!is_failed) {
        return TD_STR("none");
    }
    return is_spec_fault ? TD_STR("spec") : TD_STR("internal");
}

void horizontal_tally_sync(const struct horizontal_sync *sync)
{
    const struct horizontal_tallies *t = &sync->loop->tallies;
    const struct td_hpa_pass *pass = &sync->pass;
    const td_str values[] = {
        pass->is_rescaled ? tally_action(pass->desired, pass->scale.spec_replicas) : TD_STR("none"),
        tally_error(pass->has_error, pass->is_spec_fault)};
    double seconds = (double)(horizontal_now(sync->loop) - sync->began) / (double)TD_SECOND;
    td_tally_add(td_tally_series(t->reconciliations, values), 1);
    td_tally_observe(td_tally_series(t->reconciliation_seconds, values), seconds);
    if (!pass->is_failed && !sync->item->is_gone) {
        const td_str place[] = {sync->item->namespace, sync->item->name};
        td_tally_set(td_tally_series(t->desired, place), (double)pass->desired);
    }
}

void horizontal_tally_metrics(const struct horizontal_sync *sync)
{
    const struct horizontal_tallies *t = &sync->loop->tallies;
    const struct td_hpa_evaluation *evaluation = &sync->pass.evaluation;
    int64_t stored = td_json_get_int64(sync->hpa.status, TD_STR("currentReplicas"), 0);
    for (size_t i = 0; i < evaluation->result_count; i++) {
        const struct td_hpa_metric_result *result = &evaluation->results[i];
        const td_str values[] = {
            result->is_failed ? TD_STR("none") : tally_action(result->calculation.replicas, stored),
            tally_error(result->is_failed, result->is_spec_fault),
            sync->hpa.metrics[i].type_text,
        };
        td_tally_add(td_tally_series(t->computations, values), 1);
        td_tally_observe(td_tally_series(t->computation_seconds, values),
                         (double)sync->questions[i].took / (double)TD_SECOND);
    }
}

void horizontal_tally_stale(const struct horizontal_item *item)
{
    const td_str values[] = {item->group == HORIZONTAL_OWN ? TD_STR("autoscaling.tandem.dev")
                                                           : TD_STR("autoscaling"),
                             TD_STR("horizontalpodautoscalers")};
    td_tally_add(td_tally_series(item->loop->tallies.stale_skips, values), 1);
}

void horizontal_tally_forget(const struct horizontal_item *item)
{
    const td_str values[] = {item->namespace, item->name};
    td_tally_drop(item->loop->tallies.desired, values);
}

void horizontal_tally_fallback(struct td_horizontal_loop *loop, enum td_hpa_filter_cause cause)
{
    static const td_str names[TD_HPA_FILTER_CAUSES] = {
        [TD_HPA_FILTER_FORBIDDEN] = TD_STR_INIT("forbidden"),
        [TD_HPA_FILTER_THROTTLED] = TD_STR_INIT("throttled"),
        [TD_HPA_FILTER_ERROR] = TD_STR_INIT("error"),
        [TD_HPA_FILTER_TIMEOUT] = TD_STR_INIT("timeout"),
        [TD_HPA_FILTER_UNMAPPED] = TD_STR_INIT("unmapped"),
    };
    td_tally_add(td_tally_series(loop->tallies.fallbacks, &names[cause]), 1);
}

/* The label holds the plural, as upstream's prototype has it. */
void horizontal_tally_lookup(void *context, const struct td_owner_key *key, bool is_hit)
{
    struct td_horizontal_loop *loop = context;
    td_auto_buf plural;
    td_buf_init(&plural, TALLY_PLURAL_BYTES_MAX);
    for (size_t i = 0; i < key->kind.len; i++) {
        char c = key->kind.ptr[i];
        (void)td_buf_append_char(&plural, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    (void)td_buf_append_char(&plural, 's');
    const td_str values[] = {td_buf_str(&plural)};
    td_tally_add(
        td_tally_series(is_hit ? loop->tallies.owner_hits : loop->tallies.owner_misses, values), 1);
}
