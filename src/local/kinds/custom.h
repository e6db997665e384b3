/*
 * What only custom resources have: the definition they come from and, version by version, the
 * schema that prunes, defaults and checks them. Made from a CustomResourceDefinition, immutable,
 * owned by the row of the resource (local/resources/resource.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/fielderror.h"

struct td_error;
struct td_kind_write;

struct td_custom_version {
    const struct td_json *schema; /* openAPIV3Schema, or NULL: anything goes */
    const td_str *fields;         /* selectableFields: "spec.color", without the leading dot */
    size_t field_count;
    bool has_status;               /* the status subresource */
    const struct td_json *columns; /* additionalPrinterColumns, or NULL */
    /* The scale subresource's paths: ".spec.replicas"; empty when there is none. */
    td_str scale_spec;
    td_str scale_status;
    td_str scale_selector;
};

/* The rules of one of our own kinds, which its schema states in CEL (not evaluated here), about an
 * object that its schema accepts. NULL for a kind without such rules. */
typedef void (*td_custom_check_fn)(const struct td_json *object, struct td_field_errors *errors);

struct td_custom {
    const struct td_custom_version *versions; /* in the order of the row's versions */
    size_t version_count;
    td_custom_check_fn check_rules;
};

/* Nulls and unknown members dropped, defaults of the schema set; in place. */
int td_custom_default(struct td_arena *arena, const struct td_custom *custom, size_t version,
                      struct td_json *object, struct td_error *err);

/* Status and spec are written apart when the version has the subresource. */
void td_custom_prepare(struct td_kind_write *write);

/* Against the schema of the storage version; metadata is the caller's. */
void td_custom_validate(const struct td_kind_write *write, struct td_field_errors *errors);
