#include "api/hvpa/hvpa_private.h"

td_str td_hvpa_mode_name(enum td_hvpa_mode mode)
{
    static const td_str names[] = {
        [TD_HVPA_HPA_PREFERRED] = TD_STR_INIT("HPAPreferred"),
        [TD_HVPA_HPA_BIASED] = TD_STR_INIT("HPABiased"),
        [TD_HVPA_VPA_BIASED] = TD_STR_INIT("VPABiased"),
        [TD_HVPA_MIXED] = TD_STR_INIT("Mixed"),
        [TD_HVPA_RATIO_BASED] = TD_STR_INIT("RatioBased"),
    };
    return names[mode];
}

td_str td_hvpa_axis_name(enum td_hvpa_axis axis)
{
    return axis == TD_HVPA_VERTICAL ? TD_STR("vertical") : TD_STR("horizontal");
}

td_str td_hvpa_resource_name(enum td_hvpa_resource resource)
{
    return resource == TD_HVPA_MEMORY ? TD_STR("memory") : TD_STR("cpu");
}

td_str td_hvpa_capacity_name(enum td_hvpa_capacity capacity)
{
    return capacity == TD_HVPA_MAX ? TD_STR("Max") : TD_STR("Blend");
}

td_str td_hvpa_update_name(enum td_hvpa_update update)
{
    static const td_str names[] = {
        [TD_HVPA_UPDATE_AUTO] = TD_STR_INIT("Auto"),
        [TD_HVPA_UPDATE_OFF] = TD_STR_INIT("Off"),
        [TD_HVPA_UPDATE_WINDOW] = TD_STR_INIT("MaintenanceWindow"),
    };
    return names[update];
}

td_str td_hvpa_on_delete_name(enum td_hvpa_on_delete on_delete)
{
    return on_delete == TD_HVPA_DELETE_KEEP ? TD_STR("Keep") : TD_STR("Template");
}

td_str td_hvpa_actuation_name(enum td_hvpa_actuation actuation)
{
    return actuation == TD_HVPA_ACTUATE_TEMPLATE ? TD_STR("Template") : TD_STR("Pods");
}

td_str td_hvpa_coupling_name(enum td_hvpa_coupling coupling)
{
    static const td_str names[] = {
        [TD_HVPA_REFERENCE] = TD_STR_INIT("Reference"),
        [TD_HVPA_RECONCILE] = TD_STR_INIT("Reconcile"),
        [TD_HVPA_COUPLING_NONE] = TD_STR_INIT("None"),
    };
    return names[coupling];
}

td_str td_hvpa_sources_name(enum td_hvpa_sources sources)
{
    return sources == TD_HVPA_OBJECTS ? TD_STR("Objects") : TD_STR("Internal");
}

int64_t td_hvpa_amount(const struct td_quantity *quantity, enum td_hvpa_resource resource)
{
    return resource == TD_HVPA_CPU ? td_quantity_milli(quantity) : td_quantity_value(quantity);
}

bool td_hvpa_scales_horizontally(const struct td_hvpa *hvpa)
{
    return hvpa->has_hpa && !td_str_equal(hvpa->target.kind, TD_STR("DaemonSet"));
}

bool td_hvpa_window_contains(const struct td_hvpa_window *window, struct td_instant now)
{
    if (!window->is_set) {
        return false;
    }
    int64_t second = now.unix_seconds % TD_HVPA_SECONDS_A_DAY;
    second = second < 0 ? second + TD_HVPA_SECONDS_A_DAY : second;
    if (window->begin_second <= window->end_second) {
        return second >= window->begin_second && second <= window->end_second;
    }
    return second >= window->begin_second || second <= window->end_second;
}
