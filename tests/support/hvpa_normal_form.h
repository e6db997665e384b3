/*
 * The normal form of an Hvpa's spec, which a server with defaulting would store: every field with
 * its value, defaults written out, the parts in flat form. Decoding it gives the same struct.
 */
#pragma once

#include "api/hvpa/hvpa_private.h"

#define ENCODE_SECONDS_PART 100

static struct td_json *encode_changes(struct td_arena *arena,
                                      const struct td_hvpa_change changes[TD_HVPA_RESOURCE_COUNT])
{
    struct td_json *made = td_json_new_object(arena);
    for (int i = 0; i < TD_HVPA_RESOURCE_COUNT; i++) {
        const struct td_hvpa_change *from = &changes[i];
        struct td_json *item = td_json_new_object(arena);
        if (from->has_value) {
            td_json_set_str(arena, item, TD_STR("value"), td_quantity_text(arena, &from->value));
        }
        if (from->has_percentage) {
            td_json_set_int64(arena, item, TD_STR("percentage"), from->percentage);
        }
        if (item->count > 0) {
            td_json_set(arena, made, td_hvpa_resource_name((enum td_hvpa_resource)i), item);
        }
    }
    return made;
}

static struct td_json *encode_policy(struct td_arena *arena,
                                     const struct td_hvpa_scale_policy *policy)
{
    struct td_json *made = td_json_new_object(arena);
    struct td_json *update = td_json_ensure_object(arena, made, TD_STR("updatePolicy"));
    char text[TD_DURATION_TEXT_BYTES];
    td_str duration = {.ptr = text, .len = td_duration_format(policy->stabilization, text)};
    td_json_set_str(arena, update, TD_STR("updateMode"), td_hvpa_update_name(policy->update));
    td_json_set_str(arena, made, TD_STR("stabilizationDuration"),
                    td_arena_copy_str(arena, duration));
    struct td_json *change = encode_changes(arena, policy->min_change);
    if (change->count > 0) {
        td_json_set(arena, made, TD_STR("minChange"), change);
    }
    return made;
}

static struct td_json *encode_ratio(struct td_arena *arena, const struct td_hvpa_ratio *ratio)
{
    struct td_json *made = td_json_new_object(arena);
    td_json_set(arena, made, TD_STR("vToHScalingRatio"), td_json_new_double(arena, ratio->v_to_h));
    if (ratio->has_start) {
        td_json_set_int64(arena, made, TD_STR("startReplicaCount"), ratio->start);
    }
    if (ratio->has_finish) {
        td_json_set_int64(arena, made, TD_STR("finishReplicaCount"), ratio->finish);
    }
    td_json_set_bool(arena, made, TD_STR("overflow"), ratio->overflow);
    td_json_set_str(arena, made, TD_STR("capacityPolicy"), td_hvpa_capacity_name(ratio->capacity));
    return made;
}

static struct td_json *encode_mixed(struct td_arena *arena, const struct td_hvpa_mixed *mixed)
{
    struct td_json *made = td_json_new_object(arena);
    td_json_set_str(arena, made, TD_STR("preference"), td_hvpa_axis_name(mixed->preference));
    td_json_set_int64(arena, made, TD_STR("horizontalThreshold"), mixed->horizontal_threshold);
    td_json_set(arena, made, TD_STR("verticalThreshold"),
                encode_changes(arena, mixed->vertical_threshold));
    td_json_set_int64(arena, made, TD_STR("patienceSeconds"), mixed->patience_seconds);
    return made;
}

static void encode_window_end(struct td_arena *arena, struct td_json *window, td_str key,
                              int32_t second)
{
    int32_t minute = second / 60;
    int32_t packed = (minute / 60 * ENCODE_SECONDS_PART + minute % 60) * ENCODE_SECONDS_PART;
    td_json_set_str(arena, window, key, td_arena_format(arena, "%06d+0000", packed + second % 60));
}

static void encode_axes(struct td_arena *arena, struct td_json *spec, const struct td_hvpa *hvpa)
{
    struct td_json *horizontal = td_json_ensure_object(arena, spec, TD_STR("horizontal"));
    struct td_json *vertical = td_json_ensure_object(arena, spec, TD_STR("vertical"));
    td_json_set(arena, horizontal, TD_STR("scaleUp"), encode_policy(arena, &hvpa->horizontal_up));
    td_json_set(arena, horizontal, TD_STR("scaleDown"),
                encode_policy(arena, &hvpa->horizontal_down));
    td_json_set(arena, vertical, TD_STR("scaleUp"), encode_policy(arena, &hvpa->vertical_up));
    td_json_set(arena, vertical, TD_STR("scaleDown"), encode_policy(arena, &hvpa->vertical_down));
    td_json_set_int64(arena, vertical, TD_STR("tolerancePercent"), hvpa->tolerance_percent);
    td_json_set_int64(arena, vertical, TD_STR("settleSeconds"), hvpa->settle_seconds);
    struct td_json *gap = encode_changes(arena, hvpa->gap);
    if (gap->count > 0) {
        td_json_set(arena, vertical, TD_STR("limitsRequestsGapScaleParams"), gap);
    }
    td_json_set_str(arena, vertical, TD_STR("actuation"), td_hvpa_actuation_name(hvpa->actuation));
}

static struct td_json *hvpa_normal_form(struct td_arena *arena, const struct td_hvpa *hvpa)
{
    struct td_json *spec = td_json_new_object(arena);
    td_json_set_str(arena, spec, TD_STR("mode"), td_hvpa_mode_name(hvpa->mode));
    td_hvpa_set_target(arena, spec, TD_STR("targetRef"), &hvpa->target);
    td_json_set_str(arena, spec, TD_STR("initialScaling"),
                    td_hvpa_axis_name(hvpa->initial_scaling));
    td_json_set_str(arena, spec, TD_STR("finalScaling"), td_hvpa_axis_name(hvpa->final_scaling));
    td_json_set(arena, spec, TD_STR("ratioBasedScalingSpec"), encode_ratio(arena, &hvpa->ratio));
    td_json_set(arena, spec, TD_STR("mixed"), encode_mixed(arena, &hvpa->mixed));
    if (hvpa->has_hpa) {
        td_json_set(arena, spec, TD_STR("hpaSpec"), td_json_copy(arena, hvpa->hpa_spec, false));
    }
    if (hvpa->has_vpa) {
        td_json_set(arena, spec, TD_STR("vpaSpec"), td_json_copy(arena, hvpa->vpa_spec, false));
    }
    if (hvpa->has_replicas) {
        td_json_set_int64(arena, spec, TD_STR("replicas"), hvpa->replicas);
    }
    encode_axes(arena, spec, hvpa);
    if (hvpa->window.is_set) {
        struct td_json *window =
            td_json_ensure_object(arena, spec, TD_STR("maintenanceTimeWindow"));
        encode_window_end(arena, window, TD_STR("begin"), hvpa->window.begin_second);
        encode_window_end(arena, window, TD_STR("end"), hvpa->window.end_second);
    }
    td_json_set_str(arena, spec, TD_STR("coupling"), td_hvpa_coupling_name(hvpa->coupling));
    td_json_set_bool(arena, spec, TD_STR("opposingGuard"), hvpa->opposing_guard);
    td_json_set_str(arena, spec, TD_STR("sources"), td_hvpa_sources_name(hvpa->sources));
    td_json_set_bool(arena, spec, TD_STR("paused"), hvpa->paused);
    if (hvpa->on_delete != TD_HVPA_DELETE_TEMPLATE) {
        td_json_set_str(arena, spec, TD_STR("onDelete"), td_hvpa_on_delete_name(hvpa->on_delete));
    }
    return spec;
}
