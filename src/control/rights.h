/*
 * What each controller must be allowed to do: one table, from which `tandem manifests` writes Roles
 * and the check at the start asks (kube/client/access.h). A right that no controller uses is not in
 * it, and a call without its right fails a test.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "kube/client/access.h"

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
/* The same where a flag chose the name: it is that of the only controller which is elected; of
 * several each has its own behind it, "NAME-updater". Empty `chosen`: the one above. In the arena.
 */
td_str td_controller_lease_name(struct td_arena *arena, enum td_controller_kind kind,
                                const bool has[TD_CONTROLLER_COUNT], td_str chosen);

/* Where the objects of a right are. The Roles of `tandem manifests` are all in one namespace. */
enum td_right_place {
    TD_RIGHT_EVERYWHERE,
    TD_RIGHT_OWN,         /* with Secret and probe of the webhook */
    TD_RIGHT_ELECTION,    /* leases of leader election */
    TD_RIGHT_STATUS,      /* the lease that the webhook renews */
    TD_RIGHT_STATUS_READ, /* the lease that the updater reads */
    TD_RIGHT_PLACES,
};

struct td_right {
    const char *group;     /* "": the core group, "*": any */
    const char *resources; /* "pods,pods/resize" */
    const char *verbs;     /* "get,list" */
    const char *name;      /* the only object; NULL: every one */
    enum td_right_place place;
    unsigned controllers; /* a bit (1u << kind) for each that needs it */
    unsigned capping;     /* and for each that needs it with --cap-to-node */
};

const struct td_right *td_rights(size_t *ret_count);

/* The next word of a list with commas; empty at the end. */
td_str td_rights_word(td_str *list);

/* What a process was told to do, as far as its rights follow from it. */
struct td_rights_scope {
    const bool *has;   /* TD_CONTROLLER_COUNT of them */
    bool caps_to_node; /* --cap-to-node */
    td_str lease_name; /* --leader-elect-resource-name */
    struct {
        bool is_off;      /* such objects are not used */
        td_str namespace; /* where they are; not of EVERYWHERE */
        td_str name;      /* instead of the one in the table; empty: that one */
    } places[TD_RIGHT_PLACES];
};

/* The questions for those that a process needs, in the arena. */
size_t td_rights_questions(struct td_arena *arena, const struct td_rights_scope *scope,
                           const struct td_access_rule **ret);
