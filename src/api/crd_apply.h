/*
 * What an API server does with an object of a custom kind of our own when it is created: what its
 * structural schema does not know is dropped, what is left is checked. Works on the schema trees
 * that td_crd_schema makes (types, formats, enums, patterns of quantities, minima, maxima, required
 * members; no defaults); users' schemas are the local server's business (local/schema_check.h).
 * Errors are in a server's own words, so that a person meets the same text here and there. CEL
 * rules are their owner's business: see td_vpa_apply_crd. Pure; results are in the arena.
 */
#pragma once

#include "api/fielderror.h"
#include "base/arena.h"
#include "base/json/json.h"

/* A copy of `object` without unknown members and without nulls, except where the schema is
 * nullable; null items of lists stay and are refused by the check. apiVersion, kind and metadata of
 * the root are kept as they are. Texts are shared with `object`. */
struct td_json *td_crd_prune(struct td_arena *arena, const struct td_json *schema,
                             const struct td_json *object);

/* Every way in which a pruned object breaks its schema, about TD_STRICT_PROBLEMS_MAX of them at
 * most; metadata is not looked into. */
void td_crd_check(const struct td_json *schema, const struct td_json *object,
                  struct td_field_errors *errors);
