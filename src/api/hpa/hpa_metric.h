/*
 * Metrics in the two shapes that autoscaling/v1 and v2 give them. v1 has no field for most of them:
 * they travel in annotations as JSON text of the v1 shape. Private to the conversion.
 */
#pragma once

#include "base/json/json.h"
#include "base/str.h"

enum td_hpa_metric_part { TD_HPA_METRIC_SPECS, TD_HPA_METRIC_STATUSES };

/* A v1-shaped list of a list of v2 metrics in wire form. */
struct td_json *td_hpa_metrics_to_v1(struct td_arena *arena, enum td_hpa_metric_part part,
                                     const struct td_json *metrics);

/* Reading an annotation as Go's json.Unmarshal reads it: member names in any case, unknown ones
 * ignored. NULL when it is not JSON or a value has the wrong type; then the annotation is ignored,
 * as upstream does. Lists come in v2 shape. */
struct td_json *td_hpa_metrics_from_text(struct td_arena *arena, enum td_hpa_metric_part part,
                                         td_str text);
struct td_json *td_hpa_conditions_from_text(struct td_arena *arena, td_str text);
struct td_json *td_hpa_behavior_from_text(struct td_arena *arena, td_str text);

/* spec.behavior as upstream writes it into an annotation: Go's names, nulls written. */
struct td_json *td_hpa_behavior_to_v1(struct td_arena *arena, const struct td_json *behavior);
