/*
 * What each controller must be allowed to do: one table, from which `tandem manifests` writes Roles
 * and the check at the start asks (kube/access.h). A right that no controller uses is not in it,
 * and a call without its right fails a test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "kube/access.h"

enum td_controller_kind {
    TD_CONTROLLER_RECOMMENDER,
    TD_CONTROLLER_UPDATER,
    TD_CONTROLLER_ADMISSION,
    TD_CONTROLLER_HORIZONTAL,
    TD_CONTROLLER_HVPA,
    TD_CONTROLLER_COUNT,
};

/* "recommender", "updater", "admission", "horizontal", "hvpa"; static. */
const char *td_controller_name(enum td_controller_kind kind);
/* Of its leader election; NULL: every replica does it. */
const char *td_controller_lease(enum td_controller_kind kind);

struct td_right {
    const char *group;     /* "": the core group, "*": any */
    const char *resources; /* "pods,pods/resize" */
    const char *verbs;     /* "get,list" */
    const char *name;      /* the only object; NULL: every one */
    bool is_local;         /* in the namespace of our own objects, not in all */
    unsigned controllers;  /* a bit (1u << kind) for each that needs it */
};

const struct td_right *td_rights(size_t *ret_count);

/* The next word of a list with commas; empty at the end. */
td_str td_rights_word(td_str *list);

/* The questions for those that a set of controllers needs, in the arena. */
size_t td_rights_questions(struct td_arena *arena, const bool has[TD_CONTROLLER_COUNT],
                           td_str namespace, const struct td_access_rule **ret);
