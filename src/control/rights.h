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
    TD_CONTROLLER_CHOICES,                        /* those above can be chosen */
    TD_CONTROLLER_SHADOW = TD_CONTROLLER_CHOICES, /* `--shadow`: alone, instead of them */
    TD_CONTROLLER_COUNT,
};

/* "recommender", "updater", "admission", "horizontal", "hvpa", "shadow"; static. */
const char *td_controller_name(enum td_controller_kind kind);
/* Of its leader election; NULL: every replica does it. */
const char *td_controller_lease(enum td_controller_kind kind);
/* That of upstream's program which does the same work; NULL: there is none. */
const char *td_controller_upstream_lease(enum td_controller_kind kind);
/* The same where a flag chose the name: it is that of the only controller which is elected; of
 * several each has its own behind it, "NAME-updater". Empty `chosen`: one of the two above. In the
 * arena. */
td_str td_controller_lease_name(struct td_arena *arena, enum td_controller_kind kind,
                                const bool has[TD_CONTROLLER_COUNT], td_str chosen,
                                bool replaces_upstream);

/* The lease by which an admission controller says that it mutates pods. */
#define TD_STATUS_LEASE "tandem-admission"
#define TD_UPSTREAM_STATUS_LEASE "vpa-admission-controller"
/* Names of holders of ours begin with it, those of upstream's programs do not. */
#define TD_IDENTITY_OURS "tandem"

/* Where the objects of a right are: in the namespace of the program, or, all leases, in the one
 * that every installation looks at (kube-system). */
enum td_right_place {
    TD_RIGHT_EVERYWHERE,
    TD_RIGHT_OWN,         /* with Secret and probe of the webhook */
    TD_RIGHT_ELECTION,    /* leases of leader election */
    TD_RIGHT_STATUS,      /* the lease that the webhook renews */
    TD_RIGHT_STATUS_READ, /* the lease that the updater reads */
    TD_RIGHT_SHARDS,      /* of --shards: leases and the ConfigMap with the cut */
    TD_RIGHT_UPSTREAM,    /* leases of upstream's programs, to see whether they live */
    TD_RIGHT_PLACES,
};

/* What a right is for, besides the work of its controllers: it is neither granted nor asked for
 * while that is off. */
enum td_feature {
    TD_FEATURE_ALWAYS,
    TD_FEATURE_HVPA,      /* the gate Hvpa */
    TD_FEATURE_ANNOTATE,  /* --annotate-resized-pods, the gate CPUStartupBoost */
    TD_FEATURE_NODES,     /* --cap-to-node */
    TD_FEATURE_BUILTIN,   /* --horizontal=builtin */
    TD_FEATURE_REVIEWS,   /* --metrics-tls */
    TD_FEATURE_TEMPLATES, /* Hvpas with .spec.vertical.actuation Template */
    TD_FEATURES,
};

struct td_right {
    const char *group;         /* "": the core group, "*": any */
    const char *resources;     /* "pods,pods/resize" */
    const char *verbs;         /* "get,list" */
    const char *name;          /* the only object; NULL: every one */
    const char *upstream_name; /* instead of it where upstream's is taken over; NULL: the same */
    enum td_right_place place;
    enum td_feature feature; /* needed with it only */
    unsigned controllers;    /* a bit (1u << kind) for each that needs it */
};

const struct td_right *td_rights(size_t *ret_count);

/* Does that controller need it where these features are on? */
bool td_right_is_needed(const struct td_right *right, enum td_controller_kind kind,
                        const bool features[TD_FEATURES]);

/* Rights of a feature that adds to a controller's work are in a Role of its own, which ends in this
 * word; empty: they are in that of the controller. Static. */
td_str td_feature_word(enum td_feature feature);

/* The name that a row has, which is not NULL. */
td_str td_right_name(const struct td_right *right, bool replaces_upstream);

/* The next word of a list with commas; empty at the end. */
td_str td_rights_word(td_str *list);

/* What a process was told to do, as far as its rights follow from it. */
struct td_rights_scope {
    const bool *has; /* TD_CONTROLLER_COUNT of them */
    bool features[TD_FEATURES];
    bool replaces_upstream; /* --replace-upstream */
    td_str lease_name;      /* --leader-elect-resource-name */
    struct {
        bool is_off;      /* such objects are not used */
        td_str namespace; /* where they are; not of EVERYWHERE */
        td_str name;      /* instead of the one in the table; empty: that one */
    } places[TD_RIGHT_PLACES];
};

/* The questions for those that a process needs, in the arena. */
size_t td_rights_questions(struct td_arena *arena, const struct td_rights_scope *scope,
                           const struct td_access_rule **ret);
