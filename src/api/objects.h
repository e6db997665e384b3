/*
 * The kinds of ours as a set: their definitions, the rules that our webhooks add to what their
 * schema says, and checks across objects of files. Problems carry the line of the field they are
 * about, or of its nearest parent that is there. Pure; texts are in the arena of the problems.
 */
#pragma once

#include <stdint.h>

#include "base/str.h"
#include "kube/fielderror.h"
#include "kube/manifest.h"
#include "kube/schema/check.h"

/* The definitions of our kinds, as trees ready to be applied. */
typedef struct td_json *(*td_definition_fn)(struct td_arena *arena);
#define TD_OBJECTS_DEFINITION_COUNT 4
extern const td_definition_fn td_objects_definitions[TD_OBJECTS_DEFINITION_COUNT];

/* What our webhooks say of an object of one of our kinds, when it says more than the problems that
 * are there already. */
void td_objects_check(td_str api_version, td_str kind, const struct td_json *object,
                      struct td_problems *problems);

/* Field errors as problems of `object`. */
void td_objects_add_errors(const struct td_json *object, const struct td_field_errors *errors,
                           struct td_problems *problems);

/* What is wrong between the objects of all files. problems[i] belongs to manifest->items[i] and is
 * added to; the later object is blamed, in the order of files. */
void td_objects_check_all(const struct td_manifest *manifest, struct td_problems *problems);

/* The line of the value at a path ("spec.metrics[0].type"), or of the deepest parent that exists.
 */
uint32_t td_objects_line(const struct td_json *object, td_str path);
