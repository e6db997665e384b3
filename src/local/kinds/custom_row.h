/*
 * Makes the row of a custom resource (local/resources/resource.h) from its
 * CustomResourceDefinition. The row owns all it needs, so the definition's text may go.
 */
#pragma once

#include "base/str.h"
#include "local/resources/resource.h"

struct td_error;

/* A definition as stored, so already checked. *ret_release frees the row. */
int td_custom_row_new(td_str definition_json, struct td_resource **ret,
                      void (**ret_release)(struct td_resource *row), struct td_error *err);
