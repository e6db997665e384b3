/*
 * Siblings that overlap (seeds.md 1.4, last paragraph): VPAs of one target whose selectors could
 * select the same pod. The webhook refuses them, but it can be bypassed or raced, so controllers
 * look again: the elder keeps the pods (matching.h), the younger is told. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/vpa.h"
#include "base/arena.h"

/* One VPA and an elder sibling that could select the same pods. */
struct td_match_conflict {
    const struct td_vpa *younger;
    const struct td_vpa *elder;
    td_str witness; /* labels that both select: "key=value, ..." */
};

struct td_match_conflicts {
    struct td_match_conflict *items; /* by younger, then by the elder's age */
    size_t count;
};

/* Overlapping siblings among `vpas`; empty with the gate off. Of each VPA the oldest
 * TD_SIBLINGS_COMPARED_MAX siblings are looked at. */
struct td_match_conflicts td_match_find_conflicts(struct td_arena *arena,
                                                  const struct td_vpa *const *vpas, size_t count,
                                                  bool heterogeneous_workloads);
