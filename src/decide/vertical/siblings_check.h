/*
 * Siblings in files: what `tandem validate` says about VPAs of several manifests that share a
 * target, and about selectors that can never match. Objects that do not decode are passed over:
 * their own checks have named the fault.
 */
#pragma once

#include "kube/manifest.h"
#include "kube/schema/check.h"

/* problems[i] belongs to manifest->items[i] and is added to; the later of two objects is blamed. An
 * object without a namespace is in "default". */
void td_siblings_check_all(const struct td_manifest *manifest, struct td_problems *problems);
