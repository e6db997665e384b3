/*
 * What a server does with an object of a custom kind, by the structural schema of its definition
 * (apiextensions v1): shape it (unknown members and stray nulls dropped, defaults set) and check
 * what is left, in upstream's words and with upstream's oddities. CEL rules
 * (x-kubernetes-validations) are not evaluated, and a pattern that kube/schema/regex.h does not
 * know is passed over: td_schema_warn says so when a definition is written. Schemas come from
 * users: nothing here trusts them, and the work on one object is capped. Pure; results are in the
 * arena.
 */
#pragma once

#include "base/arena.h"
#include "base/json/json.h"
#include "kube/fielderror.h"

struct td_error;

/* A copy of `object`, pruned and with defaults. apiVersion, kind and metadata of the root and of
 * embedded resources are kept as they are. Texts are shared with `object` and the schema. Fails
 * with TD_LIMIT when the defaults have more than TD_CRD_DEFAULT_NODES_MAX values: each item of a
 * list can repeat them. */
int td_schema_shape(struct td_arena *arena, const struct td_json *schema,
                    const struct td_json *object, struct td_json **ret, struct td_error *err);

/* Every way in which a shaped object breaks its schema, about TD_STRICT_PROBLEMS_MAX at most. */
void td_schema_check(const struct td_json *schema, const struct td_json *object,
                     struct td_field_errors *errors);

/* What of a version's schema this server does not enforce, one sentence each. */
void td_schema_warn(struct td_arena *arena, td_str version, const struct td_json *schema,
                    struct td_json *warnings);
