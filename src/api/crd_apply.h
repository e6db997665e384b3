/*
 * What an API server does with an object of a custom kind when it is created: what its structural
 * schema does not know is dropped, defaults are set, what is left is checked. Works on the schema
 * trees that td_crd_schema makes and on those of users' definitions (types, formats, enums,
 * patterns of quantities, minima, maxima, required members, defaults). Errors are in a server's own
 * words, so that a person meets the same text here and there. CEL rules are their owner's business:
 * see td_vpa_apply_crd. Pure; results are in the arena.
 */
#pragma once

#include "api/fielderror.h"
#include "base/arena.h"
#include "base/json.h"

struct td_error;

/* A copy of `object` without unknown members and without nulls, except where the schema is
 * nullable; null items of lists stay and are refused by the check. apiVersion, kind and metadata of
 * the root are kept as they are. Texts are shared with `object`. */
struct td_json *td_crd_prune(struct td_arena *arena, const struct td_json *schema,
                             const struct td_json *object);

/* Sets what a pruned object leaves out and its schema has a default for, in place, inside a default
 * too; metadata is not looked into. Fails with TD_LIMIT, the object half filled, when the defaults
 * are larger than TD_CRD_DEFAULT_NODES_MAX: a list can repeat them. */
int td_crd_default(struct td_arena *arena, const struct td_json *schema, struct td_json *object,
                   struct td_error *err);

/* Every way in which a pruned object breaks its schema, about TD_STRICT_PROBLEMS_MAX of them at
 * most; metadata is not looked into. */
void td_crd_check(const struct td_json *schema, const struct td_json *object,
                  struct td_field_errors *errors);
