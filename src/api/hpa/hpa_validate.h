/*
 * The rules of a HorizontalPodAutoscaler's spec and status (hpa.md 1.3), over a v2 tree in wire
 * form. Private to admission.
 */
#pragma once

#include "base/json/json.h"
#include "kube/fielderror.h"

struct td_hpa_rules_in_force {
    int64_t min_replicas_bound;        /* 0 or 1 */
    bool allows_any_target_version;    /* scaleTargetRef.apiVersion is not looked at */
    bool allows_core_target;           /* it may lack a group */
    bool allows_any_described_version; /* likewise of describedObject */
};

void td_hpa_validate_spec(struct td_field_errors *errors, const struct td_json *spec,
                          const struct td_hpa_rules_in_force *rules);
void td_hpa_validate_status(struct td_field_errors *errors, const struct td_json *status);
