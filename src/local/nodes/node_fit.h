/*
 * May a pod be on a node? Node selectors, required node affinity and taints, as the scheduler and
 * the DaemonSet controller read them. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "kube/selector/labels.h"

/* The required part of a pod's spec.affinity.nodeAffinity. */
#define TD_NODE_AFFINITY_PATH "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"

/* spec.nodeSelector and the required affinity of a pod; both may be NULL. */
bool td_node_fits_affinity(const struct td_json *selector, const struct td_json *required,
                           td_str node, const struct td_labels *labels);

/* Does it tolerate a taint of that key, value and effect? */
bool td_toleration_matches(const struct td_json *toleration, td_str key, td_str value,
                           td_str effect);

/* Are all taints with one of the effects tolerated? With `only_execute` NoExecute alone is looked
 * at, else NoSchedule as well. Both lists may be NULL. */
bool td_node_tolerates(const struct td_json *tolerations, const struct td_json *taints,
                       bool only_execute);
