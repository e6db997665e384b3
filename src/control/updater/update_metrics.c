/* The metrics of the updater, under upstream's names, and how a pass counts in them: the size class
 * of a VPA is the logarithm of its pods. */
#include "control/updater/update_private.h"

#define UPDATE_SIZE_CLASSES 20

static const double update_steps[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,   2,   5,   10,  20, 30,
                                      40,   50,   60,   70,  80,  90,  100, 120, 150, 240, 300};

/* log2 of the pods, at most 20, as a text. */
static td_str update_size(size_t pods)
{
    static const char *const names[UPDATE_SIZE_CLASSES + 1] = {
        "0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9", "10",
        "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"};
    size_t size = 0;
    while (size < UPDATE_SIZE_CLASSES && pods >> (size + 1) > 0) {
        size++;
    }
    return td_str_from(names[size]);
}

static const struct td_metric_declaration update_rows[] = {
    {"vpa_updater_controlled_pods_total",
     "Pods controlled by VPAs with an update mode other than Off and Initial.",
     .kind = TD_METRIC_GAUGE, .labels = {"vpa_size_log2", "update_mode"}},
    {"vpa_updater_evictable_pods_total", "Pods that match the criteria for eviction.",
     .kind = TD_METRIC_GAUGE, .labels = {"vpa_size_log2", "update_mode"}},
    {"vpa_updater_evicted_pods_total", "Pods evicted by the updater to apply a recommendation.",
     .kind = TD_METRIC_COUNTER,
     .labels = {"vpa_size_log2", "update_mode", "vpa_name", "vpa_namespace"}},
    {"vpa_updater_failed_eviction_attempts_total", "Failed attempts to evict a pod.",
     .kind = TD_METRIC_COUNTER,
     .labels = {"vpa_size_log2", "update_mode", "reason", "vpa_name", "vpa_namespace"}},
    {"vpa_updater_in_place_updatable_pods_total",
     "Pods that match the criteria for an in-place update.", .kind = TD_METRIC_GAUGE,
     .labels = {"vpa_size_log2"}},
    {"vpa_updater_in_place_updated_pods_total",
     "Pods resized in place by the updater to apply a recommendation.", .kind = TD_METRIC_COUNTER,
     .labels = {"vpa_size_log2", "vpa_name", "vpa_namespace"}},
    {"vpa_updater_failed_in_place_update_attempts_total",
     "Failed attempts to resize a pod in place.", .kind = TD_METRIC_COUNTER,
     .labels = {"vpa_size_log2", "reason", "vpa_name", "vpa_namespace"}},
    {"vpa_updater_in_place_infeasible_skip_pods_total",
     "Pods skipped because the same in-place resize was infeasible before.",
     .kind = TD_METRIC_COUNTER, .labels = {"vpa_size_log2", "vpa_name", "vpa_namespace"}},
    {"vpa_updater_vpas_with_evictable_pods_total", "VPAs with at least one evictable pod.",
     .kind = TD_METRIC_GAUGE, .labels = {"vpa_size_log2", "update_mode"}},
    {"vpa_updater_vpas_with_evicted_pods_total", "VPAs with at least one evicted pod.",
     .kind = TD_METRIC_GAUGE, .labels = {"vpa_size_log2", "update_mode"}},
    {"vpa_updater_vpas_with_in_place_updatable_pods_total",
     "VPAs with at least one pod that could be resized in place.", .kind = TD_METRIC_GAUGE,
     .labels = {"vpa_size_log2"}},
    {"vpa_updater_vpas_with_in_place_updated_pods_total",
     "VPAs with at least one pod resized in place.", .kind = TD_METRIC_GAUGE,
     .labels = {"vpa_size_log2"}},
    {"vpa_updater_admission_controller_status_invalid_total",
     "Passes skipped because the admission controller's status lease is missing or stale.",
     .kind = TD_METRIC_COUNTER, .labels = {"reason"}},
    {"tandem_updater_skipped_passes_total", "Passes skipped or aborted, by reason.",
     .kind = TD_METRIC_COUNTER, .labels = {"reason"}},
    {"vpa_updater_execution_latency_seconds", "Time spent in the steps of the updater's main loop.",
     .kind = TD_METRIC_HISTOGRAM, .labels = {"step"}, .buckets = update_steps,
     .bucket_count = TD_COUNT(update_steps)},
};

void update_metrics_init(struct td_update_loop *loop)
{
    struct td_metric_registry *registry = loop->options.control.registry;
    struct td_metric_family **families[] = {
        &loop->metrics.controlled,     &loop->metrics.evictable,
        &loop->metrics.evicted,        &loop->metrics.failed_evictions,
        &loop->metrics.updatable,      &loop->metrics.updated,
        &loop->metrics.failed_updates, &loop->metrics.infeasible_skips,
        &loop->metrics.with_evictable, &loop->metrics.with_evicted,
        &loop->metrics.with_updatable, &loop->metrics.with_updated,
        &loop->metrics.lease_invalid,  &loop->metrics.skipped,
        &loop->metrics.steps,
    };
    for (size_t i = 0; i < TD_COUNT(update_rows); i++) {
        *families[i] = td_metric_declare(registry, &update_rows[i]);
    }
}

void update_metrics_skip(struct td_update_loop *loop, const char *reason)
{
    td_str value = td_str_from(reason);
    td_metric_add(td_metric_series(loop->metrics.skipped, &value), 1);
}

void update_metrics_end(struct td_update_loop *loop)
{
    const td_str total = TD_STR("total");
    td_metric_observe(td_metric_series(loop->metrics.steps, &total),
                      (double)(update_now(loop) - loop->began) / (double)TD_SECOND);
}

/* What is counted anew by each pass. */
void update_metrics_begin(struct td_update_loop *loop)
{
    struct td_metric_family *families[] = {
        loop->metrics.controlled,     loop->metrics.evictable,    loop->metrics.updatable,
        loop->metrics.with_evictable, loop->metrics.with_evicted, loop->metrics.with_updatable,
        loop->metrics.with_updated,
    };
    for (size_t i = 0; i < TD_COUNT(families); i++) {
        td_metric_clear(families[i]);
    }
}

/* The pods and the candidates of the namespace that was at work. */
void update_metrics_pass(struct td_update_loop *loop)
{
    for (size_t i = 0; i < loop->pass.job_count; i++) {
        const struct td_updater_job *job = &loop->pass.jobs[i];
        const struct td_vpa *vpa = job->match->vpa;
        const td_str values[] = {update_size(job->pod_count), td_vpa_mode_name(vpa->mode)};
        td_metric_add(td_metric_series(loop->metrics.controlled, values), (double)job->pod_count);
        td_metric_add(td_metric_series(loop->metrics.evictable, values),
                      (double)job->evictions.count);
        td_metric_add(td_metric_series(loop->metrics.updatable, values),
                      (double)job->in_place.count);
        const td_str named[] = {values[0], values[1], vpa->meta.name, vpa->meta.namespace};
        const td_str resized[] = {values[0], vpa->meta.name, vpa->meta.namespace};
        (void)td_metric_series(loop->metrics.evicted, named); /* 0 is a figure too */
        (void)td_metric_series(loop->metrics.updated, resized);
        td_metric_add(td_metric_series(loop->metrics.infeasible_skips, resized),
                      (double)job->skipped);
        td_metric_add(td_metric_series(loop->metrics.with_evictable, values),
                      job->evictions.count > 0);
        td_metric_add(td_metric_series(loop->metrics.with_evicted, values), job->evicted > 0);
        td_metric_add(td_metric_series(loop->metrics.with_updatable, values),
                      job->in_place.count > 0);
        td_metric_add(td_metric_series(loop->metrics.with_updated, values), job->resized > 0);
    }
}

/* The pods of the VPA that the last action was for. */
static size_t update_pod_count(const struct td_update_loop *loop)
{
    for (size_t i = 0; i < loop->pass.job_count; i++) {
        if (loop->pass.jobs[i].match->vpa == loop->action.vpa) {
            return loop->pass.jobs[i].pod_count;
        }
    }
    return 0;
}

void update_metrics_result(struct td_update_loop *loop, enum td_updater_result result)
{
    const struct td_vpa *vpa = loop->action.vpa;
    td_str size = update_size(update_pod_count(loop));
    if (loop->action.call == TD_UPDATER_EVICT) {
        const td_str done[] = {size, td_vpa_mode_name(vpa->mode), vpa->meta.name,
                               vpa->meta.namespace};
        const td_str failed[] = {size, td_vpa_mode_name(vpa->mode), TD_STR("EvictionError"),
                                 vpa->meta.name, vpa->meta.namespace};
        td_metric_add(result == TD_UPDATER_DONE
                          ? td_metric_series(loop->metrics.evicted, done)
                          : td_metric_series(loop->metrics.failed_evictions, failed),
                      1);
    } else if (loop->action.call == TD_UPDATER_RESIZE) {
        const td_str done[] = {size, vpa->meta.name, vpa->meta.namespace};
        const td_str failed[] = {size,
                                 result == TD_UPDATER_INFEASIBLE ? TD_STR("InPlaceUpdateInfeasible")
                                                                 : TD_STR("InPlaceUpdateError"),
                                 vpa->meta.name, vpa->meta.namespace};
        td_metric_add(result == TD_UPDATER_DONE
                          ? td_metric_series(loop->metrics.updated, done)
                          : td_metric_series(loop->metrics.failed_updates, failed),
                      1);
    }
}

void update_metrics_revert_boost(struct td_update_loop *loop, const struct td_vpa *vpa,
                                 size_t pod_count, bool is_done)
{
    td_str size = update_size(pod_count);
    const td_str done[] = {size, vpa->meta.name, vpa->meta.namespace};
    const td_str failed[] = {size, TD_STR("UnboostError"), vpa->meta.name, vpa->meta.namespace};
    td_metric_add(is_done ? td_metric_series(loop->metrics.updated, done)
                          : td_metric_series(loop->metrics.failed_updates, failed),
                  1);
}
