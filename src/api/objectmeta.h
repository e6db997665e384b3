/*
 * Validation of metadata that every kind shares: what a server checks of a new object and of a
 * change to one. Trees have passed a type check. Unless a kind says otherwise, names are DNS
 * subdomains and the object is namespaced. Errors are added in the order found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json/json.h"
#include "kube/fielderror.h"

struct td_objectmeta_rules {
    size_t (*check_name)(td_str name, struct td_buf *out); /* one of kube/names.h */
    bool is_cluster_scoped;                                /* no namespace is allowed */
};

void td_objectmeta_validate(struct td_field_errors *errors, const struct td_json *metadata);
void td_objectmeta_validate_as(struct td_field_errors *errors, const struct td_json *metadata,
                               const struct td_objectmeta_rules *rules);

/* `metadata` replaces `old`: identity may not change, and a version must be named. */
void td_objectmeta_validate_update(struct td_field_errors *errors, const struct td_json *metadata,
                                   const struct td_json *old);
