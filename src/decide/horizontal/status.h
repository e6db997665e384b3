/*
 * The status that a decision leaves behind: conditions with upstream's types, order and words,
 * counts, current metrics, and whether it differs from the stored one. Lists and texts are in the
 * arena of the pass.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/timefmt.h"
#include "decide/horizontal/behavior.h"

struct td_hpa_condition {
    td_str type;
    td_str status; /* "True", "False" */
    td_str reason;
    td_str message;
    struct td_instant since; /* lastTransitionTime; TD_INSTANT_ZERO when it has none */
};

struct td_hpa_conditions {
    struct td_arena *arena;
    struct td_hpa_condition *items;
    size_t count;
    size_t cap;
    bool is_list; /* there is a list, though it may be empty */
};

#define TD_HPA_ABLE_TO_SCALE TD_STR("AbleToScale")
#define TD_HPA_SCALING_ACTIVE TD_STR("ScalingActive")
#define TD_HPA_SCALING_LIMITED TD_STR("ScalingLimited")
#define TD_HPA_SCALED_TO_ZERO TD_STR("ScaledToZero")
#define TD_HPA_SELECTION_STRATEGY TD_STR("SelectionStrategy")

/* From a stored list, which may be NULL or null. Entries that are no objects are left out. */
void td_hpa_conditions_read(struct td_arena *arena, const struct td_json *list,
                            struct td_hpa_conditions *ret);

/* Edits in place or appends; the time moves only when the status does. Texts are borrowed. */
void td_hpa_condition_set(struct td_hpa_conditions *conditions, td_time now, td_str type,
                          bool status, td_str reason, td_str message);
void td_hpa_condition_remove(struct td_hpa_conditions *conditions, td_str type);
bool td_hpa_condition_is_true(const struct td_hpa_conditions *conditions, td_str type);

/* AbleToScale and ScalingLimited as a normalisation leaves them. */
void td_hpa_conditions_normalized(struct td_hpa_conditions *conditions,
                                  const struct td_hpa_normalized *normalized, td_time now);

struct td_json *td_hpa_conditions_json(struct td_arena *arena,
                                       const struct td_hpa_conditions *conditions);

struct td_hpa_status {
    int64_t observed_generation; /* 0: not known */
    bool has_last_scale_time;
    struct td_instant last_scale_time;
    int32_t current_replicas;
    int32_t desired_replicas;
    const struct td_json *current_metrics; /* array, or NULL */
    struct td_hpa_conditions conditions;
};

void td_hpa_status_read(struct td_arena *arena, const struct td_json *status,
                        struct td_hpa_status *ret);
struct td_json *td_hpa_status_json(struct td_arena *arena, const struct td_hpa_status *status);

/* Would a write change anything? Quantities by value, times by instant, null as an empty list. */
bool td_hpa_status_differs(const struct td_json *stored, const struct td_json *updated);

/* A count of thousandths as status shows it: memory in powers of 1024, all else in SI. */
td_str td_hpa_quantity_text(struct td_arena *arena, td_str resource, int64_t milli);
