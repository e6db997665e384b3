/*
 * Makes the row of a custom resource (local/resource.h) from its CustomResourceDefinition. The row
 * owns all it needs, so the definition's text may go.
 */
#pragma once

#include "base/str.h"
#include "local/kinds/custom.h"
#include "local/resources/resource.h"

struct td_error;

/* A definition as stored, so already checked. *ret_release frees the row. */
int td_custom_row_new(td_str definition_json, struct td_resource **ret,
                      void (**ret_release)(struct td_resource *row), struct td_error *err);

/* What a kind of our own checks beyond its schema; NULL for others. */
td_custom_check_fn td_custom_own_rules(td_str group, td_str kind);
