/*
 * Manifests as users keep them: YAML or JSON texts with any number of objects, Lists unpacked.
 * Each object remembers its file and line. Trees and texts live in the arena; the input text must
 * live as long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/yaml/yaml.h"

struct td_error;

struct td_manifest_object {
    const struct td_json *tree;
    td_str file; /* as the caller named it */
    uint32_t line;
    td_str api_version;
    td_str kind;
    td_str namespace; /* empty when it has none */
    td_str name;      /* or generateName */
};

struct td_manifest {
    struct td_manifest_object *items; /* in the arena */
    size_t count;
    size_t cap;
};

/* "Deployment shop/web". */
td_str td_manifest_title(struct td_arena *arena, const struct td_manifest_object *object);

/* Is it read as JSON? By its name, or by its first character. Trees of JSON refer to their text. */
bool td_manifest_is_json(td_str file, td_str text);

/* The documents of one text, several values of JSON among them; a failure begins with "FILE:LINE:".
 */
int td_manifest_parse(struct td_arena *arena, td_str file, td_str text,
                      struct td_yaml_documents *ret, struct td_error *err);

/* Add one document: an object, or the items of a List (one level, as kubectl writes them; those of
 * a DeploymentList are Deployments). An item that is no object with apiVersion and kind fails and
 * adds nothing. */
int td_manifest_add(struct td_arena *arena, td_str file, const struct td_json *tree,
                    struct td_manifest *manifest, struct td_error *err);

/* An item of a List as the object that it is: those of a DeploymentList need not say their kind. */
const struct td_json *td_manifest_item(struct td_arena *arena, const struct td_json *list,
                                       const struct td_json *item);

/* Add the objects of one text, JSON or YAML. A text
 * that is malformed, or an item that is no object with apiVersion and kind, fails with "FILE:LINE:
 * ..." and adds nothing. */
int td_manifest_read(struct td_arena *arena, td_str file, td_str text, struct td_manifest *manifest,
                     struct td_error *err);
