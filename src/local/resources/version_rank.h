/*
 * The order in which Kubernetes prefers versions of one group: "v10" before "v2" before "v3beta1"
 * before "v1alpha1", and all that is not of this form behind, by name.
 */
#pragma once

#include "base/str.h"

/* Below 0 when `a` is preferred. */
int td_version_compare(td_str a, td_str b);
