/* Values and rules of the account in words: tables by enum, and amounts, times and durations as
 * texts in the arena. */
#include "decide/tandem/account/account_words.h"

#include "base/assert.h"
#include "kube/quantity/quantity.h"

#define DAY_SECONDS 86400
#define CLOCK_OFFSET 11 /* of "15:04:05" in "2006-01-02T15:04:05Z" */
#define CLOCK_BYTES 8

static struct td_quantity quantity_of(enum td_hvpa_resource resource, int64_t amount)
{
    return resource == TD_HVPA_CPU ? td_quantity_new_milli(amount, TD_QUANTITY_DECIMAL_SI)
                                   : td_quantity_new(amount, TD_QUANTITY_BINARY_SI);
}

td_str tandem_amount_exact(struct td_arena *arena, enum td_hvpa_resource resource, int64_t amount)
{
    struct td_quantity quantity = quantity_of(resource, amount);
    return amount == 0 ? TD_STR("unset") : td_quantity_text(arena, &quantity);
}

td_str tandem_amount_text(struct td_arena *arena, enum td_hvpa_resource resource, int64_t amount)
{
    struct td_quantity quantity = quantity_of(resource, amount);
    return amount == 0 ? TD_STR("unset")
                       : td_quantity_short(arena, &quantity, resource != TD_HVPA_CPU);
}

td_str tandem_number_text(struct td_arena *arena, double number)
{
    td_auto_buf text = td_buf_capped(512);
    (void)td_buf_append_number(&text, number, 3);
    return td_arena_copy_str(arena, td_buf_str(&text));
}

td_str tandem_row_name(struct td_arena *arena, const struct td_tandem_input *in, size_t index)
{
    td_str resource = td_hvpa_resource_name(in->rows[index].resource);
    bool has_several = false;
    for (size_t i = 1; i < in->row_count; i++) {
        has_several = has_several || !td_str_equal(in->rows[i].container, in->rows[0].container);
    }
    return has_several ? td_arena_format(arena, "%.*s %.*s", TD_STR_ARG(in->rows[index].container),
                                         TD_STR_ARG(resource))
                       : resource;
}

td_str tandem_time_text(struct td_arena *arena, struct td_instant now, struct td_instant at)
{
    char text[TD_TIME_TEXT_BYTES];
    td_str whole = {.ptr = text, .len = td_time_format(at, 0, text)};
    bool is_today = now.unix_seconds / DAY_SECONDS == at.unix_seconds / DAY_SECONDS;
    return td_arena_copy_str(
        arena, is_today ? td_str_slice(whole, CLOCK_OFFSET, CLOCK_OFFSET + CLOCK_BYTES) : whole);
}

td_str tandem_duration_text(struct td_arena *arena, td_duration duration)
{
    char text[TD_DURATION_TEXT_BYTES];
    td_str whole = {.ptr = text, .len = td_duration_format(duration, text)};
    return td_arena_copy_str(arena, whole);
}

const char *tandem_reason_words(enum td_tandem_reason reason)
{
    static const char *const words[TD_TANDEM_REASON_COUNT] = {
        [TD_TANDEM_HORIZONTAL_APPLIED] = "replicas follow the HPA",
        [TD_TANDEM_VERTICAL_APPLIED] = "requests follow the VPA",
        [TD_TANDEM_BOTH_APPLIED] = "replicas and requests share the change",
        [TD_TANDEM_NO_RECOMMENDATION] = "neither the HPA nor the VPA has a recommendation yet",
        [TD_TANDEM_NO_CHANGE] = "neither the HPA nor the VPA wants a change above its threshold",
        [TD_TANDEM_VERTICAL_HELD_BELOW_MAX_REPLICAS] =
            "pods grow only once replicas are at their maximum",
        [TD_TANDEM_VERTICAL_HELD_ABOVE_MIN_REPLICAS] =
            "pods shrink only once replicas are at their minimum",
        [TD_TANDEM_BELOW_THRESHOLDS] = "both changes are below their thresholds",
        [TD_TANDEM_THRESHOLD_PATIENCE_EXPIRED] =
            "both changes stayed below their thresholds for too long: the preferred one is applied",
        [TD_TANDEM_STAGE_FORBIDS] = "this stage does not scale the axis that should change",
        [TD_TANDEM_EMERGENCY_MEMORY] = "a container was OOM-killed: its memory grows at once",
        [TD_TANDEM_BLOCKED] = "the change is blocked",
        [TD_TANDEM_SCALING_DISABLED] = "the target has no replicas: scaling is disabled",
    };
    td_assert(reason < TD_TANDEM_REASON_COUNT);
    return words[reason];
}

const char *tandem_block_words(enum td_tandem_block block)
{
    static const char *const words[TD_TANDEM_BLOCK_COUNT] = {
        [TD_TANDEM_BLOCK_NONE] = "this mode scaled the other axis",
        [TD_TANDEM_BLOCK_UPDATE_POLICY] = "updateMode Off for this direction",
        [TD_TANDEM_BLOCK_MAINTENANCE_WINDOW] = "the maintenance window is closed",
        [TD_TANDEM_BLOCK_STABILIZATION_WINDOW] = "too soon after the last change of this axis",
        [TD_TANDEM_BLOCK_SETTLING] = "usage has not settled since replicas changed",
        [TD_TANDEM_BLOCK_MIN_CHANGE] = "smaller than minChange",
        [TD_TANDEM_BLOCK_SMALL_STEP] = "too short a step to disturb every pod for",
        [TD_TANDEM_BLOCK_OPPOSING] = "blocked while the HPA wants more replicas for the same usage",
        [TD_TANDEM_BLOCK_RESIZE_IN_PROGRESS] = "the last resize is not finished",
        [TD_TANDEM_BLOCK_RESIZE_INFEASIBLE] = "these sizes were infeasible",
        [TD_TANDEM_BLOCK_STAGE] = "this stage scales the other axis only",
    };
    td_assert(block < TD_TANDEM_BLOCK_COUNT);
    return words[block];
}

td_str tandem_block_remedy(struct td_arena *arena, enum td_tandem_block block, const char *axis,
                           bool is_up)
{
    const char *direction = is_up ? "scaleUp" : "scaleDown";
    switch (block) {
    case TD_TANDEM_BLOCK_UPDATE_POLICY:
    case TD_TANDEM_BLOCK_MAINTENANCE_WINDOW:
        return td_arena_format(arena, "%s.%s.updatePolicy.updateMode: Auto allows it", axis,
                               direction);
    case TD_TANDEM_BLOCK_MIN_CHANGE:
        return td_arena_format(arena, "a smaller %s.%s.minChange allows it", axis, direction);
    case TD_TANDEM_BLOCK_OPPOSING:
        return TD_STR("opposingGuard: false allows it");
    case TD_TANDEM_BLOCK_RESIZE_INFEASIBLE:
        return TD_STR("it is retried with a lower target, or after an hour");
    case TD_TANDEM_BLOCK_STAGE:
        return TD_STR("other stages (startReplicaCount, finishReplicaCount, initialScaling, "
                      "finalScaling) allow it");
    default:
        return TD_STR_EMPTY;
    }
}
