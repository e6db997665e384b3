/*
 * The kinds that have rules beyond their schema, and checks across objects: what `tandem validate`
 * runs after types and names. A new kind adds one row to the table in objects.c. Problems carry
 * the line of the field they are about, or of its nearest parent that is there. Pure; texts are in
 * the arena of the problems.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "api/fielderror.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/manifest.h"
#include "kube/schema/check.h"
#include "kube/schema/schema.h"

/* The schema to check an object of this kind with: ours, else the built-in one, else NULL. */
const struct td_schema_type *td_objects_schema(td_str api_version, td_str kind);

/* The rules of the object's kind, when it has any. Its types have been checked; metadata is left to
 * td_check_object. */
void td_objects_check(td_str api_version, td_str kind, const struct td_json *object,
                      struct td_problems *problems);

/* What is wrong between the objects of all files. problems[i] belongs to manifest->items[i] and is
 * added to; the later object is blamed, in the order of files. */
void td_objects_check_all(const struct td_manifest *manifest, struct td_problems *problems);

/* The line of the value at a path ("spec.metrics[0].type"), or of the deepest parent that exists.
 */
uint32_t td_objects_line(const struct td_json *object, td_str path);
