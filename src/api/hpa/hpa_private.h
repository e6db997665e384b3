/*
 * What the files of the HorizontalPodAutoscaler module share, private to them. Trees
 * handed to these functions have passed td_hpa_check_types.
 */
#pragma once

#include "api/hpa/hpa.h"
#include "api/object_check.h"

#define TD_HPA_KIND TD_STR("HorizontalPodAutoscaler")
#define TD_HPA_STRATEGY_ALIAS_FIELD TD_STR("SelectionStrategy")
#define TD_HPA_V1 TD_STR("autoscaling/v1")
#define TD_HPA_V2 TD_STR("autoscaling/v2")
#define TD_HPA_TANDEM_V2 TD_STR("autoscaling.tandem.dev/v2")

/* What a v2 server adds when no metric is given. */
#define TD_HPA_DEFAULT_CPU_PERCENT 80

/* The schema that objects of an apiVersion are read with, or NULL when it is none of ours. Both v2
 * groups share the one that has selectionStrategy. */
const struct td_schema_type *td_hpa_schema_of(td_str api_version);

/* The tree as a typed encoder writes it: no nulls, no empty optional members, every required member
 * there, quantities and times canonical. Unknown members stay. In place, idempotent. */
void td_hpa_to_wire(struct td_arena *arena, const struct td_schema_type *type,
                    struct td_json *object);

/* The type and the member of a target, by enum td_hpa_target_type. */
extern const td_str td_hpa_target_types[TD_HPA_TARGET_UNKNOWN];
extern const td_str td_hpa_target_members[TD_HPA_TARGET_UNKNOWN];
