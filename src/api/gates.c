/*
 * Each gate that is off clears its fields in the decoded object and adds one part to a sentence.
 * An Hvpa is closed as its HPA half and its VPA half, which differ in the prefix of their paths.
 */
#include "api/gates.h"

#include "base/buf.h"
#include "base/limits.h"

/* The fields found so far. */
struct gate_report {
    struct td_buf text;
    const char *prefix; /* "", "vpaSpec." */
};

static void report_init(struct gate_report *report, const char *prefix)
{
    td_buf_init(&report->text, TD_OBJECT_BYTES_MAX);
    report->prefix = prefix;
}

/* A text past its cap is cut: it is only shown. */
static void report_add(struct gate_report *report, const char *field, const char *gate)
{
    (void)td_buf_append_format(&report->text, "%sspec.%s%s (%s)", report->text.len > 0 ? ", " : "",
                               report->prefix, field, gate);
}

static td_str report_sentence(struct td_arena *arena, struct gate_report *report)
{
    td_str sentence =
        report->text.len > 0
            ? td_arena_format(arena, "not looked at, since its feature gate is off: %.*s",
                              TD_STR_ARG(td_buf_str(&report->text)))
            : TD_STR_EMPTY;
    td_buf_done(&report->text);
    return sentence;
}

/* ---- VPAs ---- */

static bool policy_is_configured(const struct td_container_policy *policy)
{
    return policy->has_oom_bump_up_ratio || policy->has_oom_min_bump_up ||
           policy->has_memory_interval || policy->has_memory_interval_count;
}

static void close_policies(struct td_arena *arena, const struct td_vpa_gates *gates,
                           struct td_resource_policy *policy, struct gate_report *report)
{
    bool has_boost = false;
    bool has_config = false;
    struct td_container_policy *made =
        td_arena_array(arena, struct td_container_policy, policy->container_count + 1);
    for (size_t i = 0; i < policy->container_count; i++) {
        made[i] = policy->containers[i];
        if (!gates->cpu_startup_boost && made[i].startup_boost.is_set) {
            made[i].startup_boost = (struct td_startup_boost){.is_set = false};
            has_boost = true;
        }
        if (!gates->per_vpa_config && policy_is_configured(&made[i])) {
            made[i].has_oom_bump_up_ratio = false;
            made[i].has_oom_min_bump_up = false;
            made[i].has_memory_interval = false;
            made[i].has_memory_interval_count = false;
            has_config = true;
        }
    }
    policy->containers = made;
    if (has_boost) {
        report_add(report, "resourcePolicy.containerPolicies[].startupBoost", "CPUStartupBoost");
    }
    if (has_config) {
        report_add(report,
                   "resourcePolicy.containerPolicies[].oomBumpUpRatio, oomMinBumpUp or "
                   "memoryAggregationInterval",
                   "PerVPAConfig");
    }
    if (!gates->pod_level_resources && policy->pod.is_set) {
        policy->pod = (struct td_pod_policy){.is_set = false};
        report_add(report, "resourcePolicy.podPolicies", "PodLevelResources");
    }
}

static void close_vpa(struct td_arena *arena, const struct td_vpa_gates *gates, struct td_vpa *vpa,
                      struct gate_report *report)
{
    if (!gates->heterogeneous_workloads && vpa->has_selector) {
        vpa->has_selector = false;
        vpa->selector_tree = NULL;
        report_add(report, "selector", "HeterogeneousWorkloads");
    }
    /* The mode stays: new pods are sized in it with the gate off as well (vpa.md 1.2). */
    if (!gates->in_place && vpa->mode == TD_VPA_IN_PLACE) {
        report_add(report, "updatePolicy.updateMode InPlace", "InPlace");
    }
    if (!gates->per_vpa_config && vpa->has_evict_after_oom) {
        vpa->has_evict_after_oom = false;
        report_add(report, "updatePolicy.evictAfterOOMSeconds", "PerVPAConfig");
    }
    if (!gates->cpu_startup_boost && vpa->startup_boost.is_set) {
        vpa->startup_boost = (struct td_startup_boost){.is_set = false};
        report_add(report, "startupBoost", "CPUStartupBoost");
    }
    close_policies(arena, gates, &vpa->policy, report);
}

td_str td_vpa_close_gates(struct td_arena *arena, const struct td_vpa_gates *gates,
                          struct td_vpa *vpa)
{
    struct gate_report report;
    report_init(&report, "");
    close_vpa(arena, gates, vpa, &report);
    return report_sentence(arena, &report);
}

/* ---- HPAs ---- */

static void close_hpa(struct td_arena *arena, const struct td_hpa_gates *gates, td_str annotation,
                      struct td_hpa *hpa, struct gate_report *report)
{
    if (!gates->scale_to_zero && hpa->min_replicas == 0) {
        hpa->min_replicas = 1;
        report_add(report, "minReplicas 0, which counts as 1", "HPAScaleToZero");
    }
    if (!gates->configurable_tolerance &&
        (hpa->scale_up.has_tolerance || hpa->scale_down.has_tolerance)) {
        hpa->scale_up.has_tolerance = false;
        hpa->scale_down.has_tolerance = false;
        report_add(report, "behavior tolerance", "HPAConfigurableTolerance");
    }
    if (!gates->selection_strategy && hpa->has_selection_strategy) {
        hpa->has_selection_strategy = false;
        report_add(report, "selectionStrategy", "HPASelectionStrategy");
    } else if (!gates->selection_strategy && td_json_get(hpa->meta.annotations, annotation)) {
        td_str words =
            td_arena_format(arena, "selectionStrategy by annotation %.*s", TD_STR_ARG(annotation));
        report_add(report, words.ptr, "HPASelectionStrategy");
    }
}

td_str td_hpa_close_gates(struct td_arena *arena, const struct td_hpa_gates *gates,
                          td_str annotation, struct td_hpa *hpa)
{
    struct gate_report report;
    report_init(&report, "");
    close_hpa(arena, gates, annotation, hpa, &report);
    return report_sentence(arena, &report);
}

/* ---- Hvpas ---- */

td_str td_hvpa_close_gates(struct td_arena *arena, const struct td_vpa_gates *vpa_gates,
                           const struct td_hpa_gates *hpa_gates, td_str annotation,
                           struct td_hvpa *hvpa)
{
    struct gate_report report;
    report_init(&report, "hpaSpec.");
    if (hvpa->has_hpa) {
        close_hpa(arena, hpa_gates, annotation, &hvpa->hpa, &report);
    }
    report.prefix = "vpaSpec.";
    if (hvpa->has_vpa) {
        close_vpa(arena, vpa_gates, &hvpa->vpa, &report);
    }
    return report_sentence(arena, &report);
}
