/*
 * Would the replacement of an evicted pod belong to the same VPA? A VPA may select pods by labels
 * that they get at run time (a role that an election gives). Such a pod is made anew from its
 * owner's template, without the label, and whatever the VPA recommends does not reach it: an
 * eviction can only do harm, and would be repeated with every election. Labels that a controller
 * gives to each pod as it is made (its ordinal, its name, the revision) are those of the pod
 * before. Pure; results are in the arena.
 */
#pragma once

#include <stdbool.h>

#include "api/vpa/vpa.h"
#include "base/arena.h"
#include "base/str.h"
#include "kube/selector/labels.h"

/* `heterogeneous_workloads` is the gate: without it spec.selector does not count. */
bool td_vpa_selects_replacement(struct td_arena *arena, const struct td_vpa *vpa,
                                bool heterogeneous_workloads, const struct td_labels *template,
                                const struct td_labels *pod);

/* What to say of a VPA whose selector no new pod of its target can match; empty: nothing. Only
 * modes that evict are meant. */
td_str td_vpa_selector_warning(struct td_arena *arena, const struct td_vpa *vpa,
                               const struct td_labels *template);
