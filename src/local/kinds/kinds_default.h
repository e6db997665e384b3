/*
 * Defaults and the form of built-in kinds, driven by the schema tables: what a server's decoder,
 * its defaulting functions and its encoder do to an object on the way in. Rules belong to types
 * (every Probe, wherever it stands), so that a pod and the template of a CronJob follow the same
 * rows. Trees have passed td_check_types. Private to the kinds; knows nothing of resources.
 */
#pragma once

#include "api/object_check.h"
#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/schema/schema.h"

/* The tree as a typed encoder writes it: no nulls, no unknown members, no empty optional members,
 * every member there that is always written, quantities and times canonical. In place,
 * idempotent. */
void td_kind_to_wire(struct td_arena *arena, const struct td_schema_type *type,
                     struct td_json *object);

/* Defaults of every type in the tree, which is in wire form before and afterwards. */
void td_kind_set_defaults(struct td_arena *arena, const struct td_schema_type *type,
                          struct td_json *object);
