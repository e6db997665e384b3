/*
 * What the vertical deciders ask of a decoded pod (model/pod.h): which of its requests and limits
 * count, the kubelet's, the spec's or those of the owner's template.
 */
#pragma once

#include <stdbool.h>

#include "kube/podresources.h"
#include "model/pod.h"

/* What upstream calls the container's requests and limits: those of containerStatuses when that
 * block is there, else of the spec. */
const struct td_resource_list *td_vertical_requests(const struct td_pod_container *container);
const struct td_resource_list *td_vertical_limits(const struct td_pod_container *container);

/* Are those maps there, be they empty? */
bool td_vertical_has_requests(const struct td_pod_container *container);
bool td_vertical_has_limits(const struct td_pod_container *container);

/* Does the kubelet report other amounts than the spec has? A resize is under way then, whether or
 * not a condition says so yet. */
bool td_vertical_is_behind(const struct td_pod *pod);

/* What new limits are in proportion to: the resources of the owner's template where they are known,
 * else those above. */
const struct td_resource_list *
td_vertical_origin_requests(const struct td_pod_container *container);
const struct td_resource_list *td_vertical_origin_limits(const struct td_pod_container *container);
