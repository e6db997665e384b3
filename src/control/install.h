/*
 * Everything that a cluster needs to run the controllers, as objects: definitions of our kinds,
 * what each controller is allowed to do (rights.h), the webhooks' registration, and the program
 * itself with two replicas. A controller that is installed alone has an account, and everything
 * else, of its own name, so that several may stand side by side. The same list, in another order,
 * says what to remove.
 */
#pragma once

#include <stdbool.h>

#include "base/json/json.h"
#include "base/str.h"
#include "control/rights.h"

struct td_error;

enum td_install_part {
    TD_INSTALL_CRDS,
    TD_INSTALL_RBAC,
    TD_INSTALL_WEBHOOKS,
    TD_INSTALL_DEPLOYMENT,
    TD_INSTALL_PARTS,
};

struct td_install_options {
    bool has[TD_CONTROLLER_COUNT];
    bool wants[TD_INSTALL_PARTS];
    td_str namespace; /* "tandem-system" */
    td_str image;     /* empty: none is known; only the part deployment needs it */
    bool features[TD_FEATURES];
    td_str gates;        /* --feature-gates of the program, as far as they follow from features */
    size_t shards;       /* --shards; 0: a leader for each controller */
    bool skips_vpa_crds; /* others installed those of VPA and its checkpoints */
    bool
        replaces_upstream; /* upstream's leases, webhook configuration and Service are taken over */
};

#define TD_INSTALL_NAMESPACE "tandem-system"

/* "crds", "rbac", "webhooks", "deployment"; static. */
const char *td_install_part_name(enum td_install_part part);

/* The objects, in an order in which they can be made. An array in the arena. TD_INVALID for a name
 * that cannot be. */
int td_install_objects(struct td_arena *arena, const struct td_install_options *options,
                       struct td_json **ret, struct td_error *err);

/* The same by name only, and what the program makes by itself, in an order in which nothing comes
 * back: the program first, then its rights, then the rest. Nothing of upstream's names: it may be
 * upstream's again. */
int td_install_leftovers(struct td_arena *arena, const struct td_install_options *options,
                         struct td_json **ret, struct td_error *err);
