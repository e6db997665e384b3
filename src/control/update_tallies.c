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

static const struct td_tally_declaration update_rows[] = {
    {.name = "vpa_updater_controlled_pods_total",
     .help = "Pods under a VPA that acts.",
     .kind = TD_TALLY_GAUGE,
     .labels = {"vpa_size_log2", "update_mode"}},
    {.name = "vpa_updater_evictable_pods_total",
     .help = "Pods that would be evicted.",
     .kind = TD_TALLY_GAUGE,
     .labels = {"vpa_size_log2", "update_mode"}},
    {.name = "vpa_updater_evicted_pods_total",
     .help = "Pods evicted to apply a recommendation.",
     .kind = TD_TALLY_COUNTER,
     .labels = {"vpa_size_log2", "update_mode", "vpa_name", "vpa_namespace"}},
    {.name = "vpa_updater_failed_eviction_attempts_total",
     .help = "Evictions that failed.",
     .kind = TD_TALLY_COUNTER,
     .labels = {"vpa_size_log2", "update_mode", "reason", "vpa_name", "vpa_namespace"}},
    {.name = "vpa_updater_in_place_updatable_pods_total",
     .help = "Pods that would be resized in place.",
     .kind = TD_TALLY_GAUGE,
     .labels = {"vpa_size_log2"}},
    {.name = "vpa_updater_in_place_updated_pods_total",
     .help = "Pods resized in place.",
     .kind = TD_TALLY_COUNTER,
     .labels = {"vpa_size_log2", "vpa_name", "vpa_namespace"}},
    {.name = "vpa_updater_failed_in_place_update_attempts_total",
     .help = "Resizes in place that failed.",
     .kind = TD_TALLY_COUNTER,
     .labels = {"vpa_size_log2", "reason", "vpa_name", "vpa_namespace"}},
    {.name = "vpa_updater_in_place_infeasible_skip_pods_total",
     .help = "Resizes that were infeasible before and not tried again.",
     .kind = TD_TALLY_COUNTER,
     .labels = {"vpa_size_log2", "vpa_name", "vpa_namespace"}},
    {.name = "vpa_updater_vpas_with_evictable_pods_total",
     .help = "VPAs with pods that would be evicted.",
     .kind = TD_TALLY_GAUGE,
     .labels = {"vpa_size_log2", "update_mode"}},
    {.name = "vpa_updater_vpas_with_evicted_pods_total",
     .help = "VPAs with pods that were evicted.",
     .kind = TD_TALLY_GAUGE,
     .labels = {"vpa_size_log2", "update_mode"}},
    {.name = "vpa_updater_vpas_with_in_place_updatable_pods_total",
     .help = "VPAs with pods that would be resized in place.",
     .kind = TD_TALLY_GAUGE,
     .labels = {"vpa_size_log2"}},
    {.name = "vpa_updater_vpas_with_in_place_updated_pods_total",
     .help = "VPAs with pods that were resized in place.",
     .kind = TD_TALLY_GAUGE,
     .labels = {"vpa_size_log2"}},
    {.name = "vpa_updater_admission_controller_status_invalid_total",
     .help = "Passes skipped because of the lease of the admission controller.",
     .kind = TD_TALLY_COUNTER,
     .labels = {"reason"}},
    {.name = "tandem_updater_skipped_passes_total",
     .help = "Passes skipped or broken off, and why.",
     .kind = TD_TALLY_COUNTER,
     .labels = {"reason"}},
    {.name = "vpa_updater_execution_latency_seconds",
     .help = "Time spent in the steps of a pass.",
     .kind = TD_TALLY_HISTOGRAM,
     .labels = {"step"},
     .buckets = update_steps,
     .bucket_count = sizeof(update_steps) / sizeof(update_steps[0])},
};

void update_tallies_init(struct td_update_loop *loop)
{
    struct td_tally *tally = loop->options.control.tally;
    struct td_tally_family **families[] = {
        &loop->tallies.controlled,     &loop->tallies.evictable,
        &loop->tallies.evicted,        &loop->tallies.failed_evictions,
        &loop->tallies.updatable,      &loop->tallies.updated,
        &loop->tallies.failed_updates, &loop->tallies.infeasible_skips,
        &loop->tallies.with_evictable, &loop->tallies.with_evicted,
        &loop->tallies.with_updatable, &loop->tallies.with_updated,
        &loop->tallies.lease_invalid,  &loop->tallies.skipped,
        &loop->tallies.steps,
    };
    for (size_t i = 0; i < sizeof(update_rows) / sizeof(update_rows[0]); i++) {
        *families[i] = td_tally_declare(tally, &update_rows[i]);
    }
}

void update_tally_skip(struct td_update_loop *loop, const char *reason)
{
    td_str value = td_str_from(reason);
    td_tally_add(td_tally_series(loop->tallies.skipped, &value), 1);
}

void update_tally_end(struct td_update_loop *loop)
{
    const td_str total = TD_STR("total");
    td_tally_observe(td_tally_series(loop->tallies.steps, &total),
                     (double)(update_now(loop) - loop->began) / (double)TD_SECOND);
}

/* What is counted anew by each pass. */
void update_tally_begin(struct td_update_loop *loop)
{
    struct td_tally_family *families[] = {
        loop->tallies.controlled,     loop->tallies.evictable,    loop->tallies.updatable,
        loop->tallies.with_evictable, loop->tallies.with_evicted, loop->tallies.with_updatable,
        loop->tallies.with_updated,
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        td_tally_clear(families[i]);
    }
}

/* The pods and the candidates of the namespace that was at work. */
void update_tally_pass(struct td_update_loop *loop)
{
    for (size_t i = 0; i < loop->pass.job_count; i++) {
        const struct td_updater_job *job = &loop->pass.jobs[i];
        const struct td_vpa *vpa = job->match->vpa;
        const td_str values[] = {update_size(job->pod_count), td_vpa_mode_name(vpa->mode)};
        td_tally_add(td_tally_series(loop->tallies.controlled, values), (double)job->pod_count);
        td_tally_add(td_tally_series(loop->tallies.evictable, values),
                     (double)job->evictions.count);
        td_tally_add(td_tally_series(loop->tallies.updatable, values), (double)job->in_place.count);
        const td_str named[] = {values[0], values[1], vpa->meta.name, vpa->meta.namespace};
        const td_str resized[] = {values[0], vpa->meta.name, vpa->meta.namespace};
        (void)td_tally_series(loop->tallies.evicted, named); /* 0 is a figure too */
        (void)td_tally_series(loop->tallies.updated, resized);
        td_tally_add(td_tally_series(loop->tallies.infeasible_skips, resized),
                     (double)job->skipped);
        td_tally_add(td_tally_series(loop->tallies.with_evictable, values),
                     job->evictions.count > 0);
        td_tally_add(td_tally_series(loop->tallies.with_evicted, values), job->evicted > 0);
        td_tally_add(td_tally_series(loop->tallies.with_updatable, values),
                     job->in_place.count > 0);
        td_tally_add(td_tally_series(loop->tallies.with_updated, values), job->resized > 0);
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

void update_tally_result(struct td_update_loop *loop, enum td_updater_result result)
{
    const struct td_vpa *vpa = loop->action.vpa;
    td_str size = update_size(update_pod_count(loop));
    if (loop->action.call == TD_UPDATER_EVICT) {
        const td_str done[] = {size, td_vpa_mode_name(vpa->mode), vpa->meta.name,
                               vpa->meta.namespace};
        const td_str failed[] = {size, td_vpa_mode_name(vpa->mode), TD_STR("EvictionError"),
                                 vpa->meta.name, vpa->meta.namespace};
        td_tally_add(result == TD_UPDATER_DONE
                         ? td_tally_series(loop->tallies.evicted, done)
                         : td_tally_series(loop->tallies.failed_evictions, failed),
                     1);
    } else if (loop->action.call == TD_UPDATER_RESIZE) {
        const td_str done[] = {size, vpa->meta.name, vpa->meta.namespace};
        const td_str failed[] = {size,
                                 result == TD_UPDATER_INFEASIBLE ? TD_STR("InPlaceUpdateInfeasible")
                                                                 : TD_STR("InPlaceUpdateError"),
                                 vpa->meta.name, vpa->meta.namespace};
        td_tally_add(result == TD_UPDATER_DONE
                         ? td_tally_series(loop->tallies.updated, done)
                         : td_tally_series(loop->tallies.failed_updates, failed),
                     1);
    }
}

void update_tally_unboost(struct td_update_loop *loop, const struct td_vpa *vpa, size_t pod_count,
                          bool is_done)
{
    td_str size = update_size(pod_count);
    const td_str done[] = {size, vpa->meta.name, vpa->meta.namespace};
    const td_str failed[] = {size, TD_STR("UnboostError"), vpa->meta.name, vpa->meta.namespace};
    td_tally_add(is_done ? td_tally_series(loop->tallies.updated, done)
                         : td_tally_series(loop->tallies.failed_updates, failed),
                 1);
}
