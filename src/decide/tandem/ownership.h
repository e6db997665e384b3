/*
 * Who may scale a workload (hvpa.md 5.2): at most one Hvpa, and none while an HPA, a ScaledObject
 * or an acting VPA is on the same target. The eldest Hvpa owns its target, also while it is invalid
 * or paused: else a mistake in one object would hand the workload to another. Objects are read from
 * their trees without validation, for the same reason. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/timefmt.h"

enum td_ownership_kind {
    TD_OWNERSHIP_HVPA,
    TD_OWNERSHIP_HPA,
    TD_OWNERSHIP_SCALED_OBJECT,
    TD_OWNERSHIP_VPA,
};

struct td_ownership_target {
    td_str namespace;
    td_str api_version; /* empty: not known, then only kind and name are compared */
    td_str kind;
    td_str name;
};

struct td_ownership_object {
    enum td_ownership_kind kind;
    td_str name;
    struct td_instant created;
    struct td_ownership_target target;
    td_str target_field; /* path of the reference in the object */
    bool is_off;         /* a VPA that only recommends */
};

#define TD_OWNERSHIP_NONE ((size_t)-1)

struct td_ownership {
    size_t acting;           /* index of the Hvpa that acts, or TD_OWNERSHIP_NONE */
    size_t foreign;          /* index of an object that makes every Hvpa refuse, or NONE */
    const size_t *conflicts; /* indices of the Hvpas that refuse (TargetConflict), by name */
    size_t conflict_count;
};

/* Is it an Hvpa, HPA, ScaledObject or VPA with a target? Borrows texts from the tree. */
bool td_ownership_read(const struct td_json *object, struct td_ownership_object *ret);

/* The API groups are compared where both are known. */
bool td_ownership_is_same_target(const struct td_ownership_target *a,
                                 const struct td_ownership_target *b);

/* One target; objects on other targets do not count. An HPA that scales the Hvpa itself is its
 * child: it has another target. */
void td_ownership_judge(struct td_arena *arena, const struct td_ownership_target *target,
                        const struct td_ownership_object *objects, size_t count,
                        struct td_ownership *ret);
