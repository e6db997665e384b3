/*
 * Everything that a cluster needs to run the controllers, as objects: definitions of our kinds,
 * what each controller is allowed to do (rights.h), the webhooks' registration, and the program
 * itself with two replicas. The same list, in another order, says what to remove.
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
    td_str namespace; /* "kube-system" */
    td_str image;
    bool serves_builtin; /* HPAs of autoscaling/v2 */
};

/* "crds", "rbac", "webhooks", "deployment"; static. */
const char *td_install_part_name(enum td_install_part part);

/* The objects, in an order in which they can be made. An array in the arena. TD_INVALID for a name
 * that cannot be. */
int td_install_objects(struct td_arena *arena, const struct td_install_options *options,
                       struct td_json **ret, struct td_error *err);

/* The same by name only, and what the program makes by itself, in an order in which nothing comes
 * back: the program first, then its rights, then the rest. */
int td_install_leftovers(struct td_arena *arena, const struct td_install_options *options,
                         struct td_json **ret, struct td_error *err);
