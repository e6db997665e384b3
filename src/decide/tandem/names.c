/* The words by which a decision is known in status, events, metrics and pages. */
#include "base/assert.h"
#include "decide/tandem/decide.h"

td_str td_tandem_axis_name(enum td_tandem_axis axis)
{
    static const td_str names[] = {
        [TD_TANDEM_AXIS_NONE] = TD_STR_INIT("None"),
        [TD_TANDEM_AXIS_HORIZONTAL] = TD_STR_INIT("Horizontal"),
        [TD_TANDEM_AXIS_VERTICAL] = TD_STR_INIT("Vertical"),
        [TD_TANDEM_AXIS_BOTH] = TD_STR_INIT("Both"),
    };
    td_assert(axis <= TD_TANDEM_AXIS_BOTH);
    return names[axis];
}

td_str td_tandem_reason_name(enum td_tandem_reason reason)
{
    static const td_str names[TD_TANDEM_REASON_COUNT] = {
        [TD_TANDEM_HORIZONTAL_APPLIED] = TD_STR_INIT("HorizontalApplied"),
        [TD_TANDEM_VERTICAL_APPLIED] = TD_STR_INIT("VerticalApplied"),
        [TD_TANDEM_BOTH_APPLIED] = TD_STR_INIT("BothApplied"),
        [TD_TANDEM_NO_RECOMMENDATION] = TD_STR_INIT("NoRecommendation"),
        [TD_TANDEM_NO_CHANGE] = TD_STR_INIT("NoChange"),
        [TD_TANDEM_VERTICAL_HELD_BELOW_MAX_REPLICAS] = TD_STR_INIT("VerticalHeldBelowMaxReplicas"),
        [TD_TANDEM_VERTICAL_HELD_ABOVE_MIN_REPLICAS] = TD_STR_INIT("VerticalHeldAboveMinReplicas"),
        [TD_TANDEM_BELOW_THRESHOLDS] = TD_STR_INIT("BelowThresholds"),
        [TD_TANDEM_THRESHOLD_PATIENCE_EXPIRED] = TD_STR_INIT("ThresholdPatienceExpired"),
        [TD_TANDEM_STAGE_FORBIDS] = TD_STR_INIT("StageForbids"),
        [TD_TANDEM_EMERGENCY_MEMORY] = TD_STR_INIT("EmergencyMemory"),
        [TD_TANDEM_BLOCKED] = TD_STR_INIT("Blocked"),
        [TD_TANDEM_SCALING_DISABLED] = TD_STR_INIT("ScalingDisabled"),
    };
    td_assert(reason < TD_TANDEM_REASON_COUNT);
    return names[reason];
}

td_str td_tandem_block_name(enum td_tandem_block block)
{
    static const td_str names[TD_TANDEM_BLOCK_COUNT] = {
        [TD_TANDEM_BLOCK_NONE] = TD_STR_INIT(""),
        [TD_TANDEM_BLOCK_UPDATE_POLICY] = TD_STR_INIT("UpdatePolicy"),
        [TD_TANDEM_BLOCK_MAINTENANCE_WINDOW] = TD_STR_INIT("MaintenanceWindow"),
        [TD_TANDEM_BLOCK_STABILIZATION_WINDOW] = TD_STR_INIT("StabilizationWindow"),
        [TD_TANDEM_BLOCK_SETTLING] = TD_STR_INIT("Settling"),
        [TD_TANDEM_BLOCK_MIN_CHANGE] = TD_STR_INIT("MinChange"),
        [TD_TANDEM_BLOCK_OPPOSING] = TD_STR_INIT("Opposing"),
        [TD_TANDEM_BLOCK_RESIZE_IN_PROGRESS] = TD_STR_INIT("ResizeInProgress"),
        [TD_TANDEM_BLOCK_RESIZE_INFEASIBLE] = TD_STR_INIT("ResizeInfeasible"),
        [TD_TANDEM_BLOCK_STAGE] = TD_STR_INIT("Stage"),
        [TD_TANDEM_BLOCK_SMALL_STEP] = TD_STR_INIT("SmallStep"),
    };
    td_assert(block < TD_TANDEM_BLOCK_COUNT);
    return names[block];
}

td_str td_tandem_stage_name(enum td_tandem_stage stage)
{
    static const td_str names[] = {
        [TD_TANDEM_INITIAL] = TD_STR_INIT("Initial"),
        [TD_TANDEM_RATIO] = TD_STR_INIT("Ratio"),
        [TD_TANDEM_FINAL] = TD_STR_INIT("Final"),
    };
    td_assert(stage <= TD_TANDEM_FINAL);
    return names[stage];
}
