/*
 * What the files of the VerticalPodAutoscaler module share; nobody else includes this.
 */
#pragma once

#include "api/crd.h"
#include "api/vpa.h"

#define TD_VPA_API_VERSION TD_STR("autoscaling.k8s.io/v1")
#define TD_VPA_KIND TD_STR("VerticalPodAutoscaler")
#define TD_VPA_CHECKPOINT_KIND TD_STR("VerticalPodAutoscalerCheckpoint")

/* td_vpa_decode, but a selector that is no valid one is passed over (has_selector stays false):
 * admission names its faults one by one, or must not look at it at all. */
int td_vpa_decode_lax(struct td_arena *arena, const struct td_json *object, struct td_vpa *ret,
                      struct td_error *err);

/* A member that is there and not null, or NULL. */
static inline const struct td_json *td_vpa_member(const struct td_json *object, td_str key)
{
    const struct td_json *member = td_json_get(object, key);
    return td_json_is(member, TD_JSON_TYPE_NULL) ? NULL : member;
}
