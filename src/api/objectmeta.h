/*
 * Validation of metadata that every kind shares: what a server checks of a new object and of a
 * change to one. Trees have passed a type check. Names follow the rule of most kinds (DNS
 * subdomain); the object is namespaced. Errors are added in the order found.
 */
#pragma once

#include "api/fielderror.h"
#include "base/json.h"

void td_objectmeta_validate(struct td_field_errors *errors, const struct td_json *metadata);

/* `metadata` replaces `old`: identity may not change, and a version must be named. */
void td_objectmeta_validate_update(struct td_field_errors *errors, const struct td_json *metadata,
                                   const struct td_json *old);
