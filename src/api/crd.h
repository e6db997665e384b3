/*
 * CustomResourceDefinitions from the same schema tables that decode and validate: one source of
 * truth for every kind of ours. The OpenAPI v3 schema is structural (what a server demands of
 * v1 CRDs); what a table cannot say (required members, enums, bounds, CEL rules) is attached by
 * path. Paths are JSON paths from the root of the object, "[]" for the items of a list and "{}"
 * for the values of a map: "spec.metrics[].type". Everything here is our own static data, so a
 * path that leads nowhere or a recursive type is an assertion, found by the first test that makes
 * the CRD. Trees are in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/schema/schema.h"

/* A member of the schema at a path: {"spec.maxReplicas", "minimum", "1"}. */
struct td_crd_note {
    const char *path;
    const char *key;
    const char *json; /* the value as JSON text */
};

/* A CEL rule over the value at a path; several at one path are all enforced. */
struct td_crd_rule {
    const char *path;
    const char *rule;
    const char *message;
    const char *field;  /* below the path, which the message is about: ".maxReplicas"; or NULL */
    const char *reason; /* "FieldValueRequired", ...; NULL: the value is invalid */
};

struct td_crd_column {
    const char *name;
    const char *type; /* "string", "integer", "date" */
    const char *json_path;
    int priority; /* 0: always shown */
};

struct td_crd {
    const char *group;
    const char *version;
    const char *kind;
    const char *plural;
    const char *singular;
    const char *short_name; /* NULL: none */
    const char *category;   /* NULL: none */
    bool has_status;        /* the status subresource */
    bool is_described; /* of the kind and its fields; not where others' definitions of it, which
                          say it in their words, may be applied over */
    /* Paths of the scale subresource, or NULL: ".spec.replicas", ".status.replicas" and, if any,
     * ".status.selector". */
    const char *scale_spec;
    const char *scale_status;
    const char *scale_selector;
    const struct td_schema_type *type; /* of the whole object */
    const struct td_crd_note *notes;
    size_t note_count;
    const struct td_crd_rule *rules;
    size_t rule_count;
    const struct td_crd_column *columns;
    size_t column_count;
};

/* The structural schema of a type: keys of keyed lists become required (or have their default),
 * atomic maps and lists say so. */
struct td_json *td_crd_schema(struct td_arena *arena, const struct td_schema_type *type);

/* The schema at a path of one that td_crd_schema made, to be changed; asserts that it is there. */
struct td_json *td_crd_schema_at(struct td_json *schema, const char *path);

/* The whole object, ready to be applied; one version, served and stored, namespaced. */
struct td_json *td_crd_new(struct td_arena *arena, const struct td_crd *crd);
