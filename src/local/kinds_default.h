/*
 * Defaults and the form of built-in kinds, driven by the schema tables: what a server's decoder,
 * its defaulting functions and its encoder do to an object on the way in. Rules belong to types
 * (every Probe, wherever it stands), so that a pod and the template of a CronJob follow the same
 * rows. Trees have passed td_check_types. Private to the kinds; knows nothing of resources.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "kube/schema.h"

/* The tree as a typed encoder writes it: no nulls, no unknown members, no empty optional members,
 * every member there that is always written, quantities and times canonical. In place,
 * idempotent. */
void td_kind_to_wire(struct td_arena *arena, const struct td_schema_type *type,
                     struct td_json *object);

/* Defaults of every type in the tree, which is in wire form before and afterwards. */
void td_kind_set_defaults(struct td_arena *arena, const struct td_schema_type *type,
                          struct td_json *object);

/* The rules that are no constants: of one object of the type they are named for. */
void td_default_pod(struct td_arena *arena, struct td_json *pod);
void td_default_pod_spec(struct td_arena *arena, struct td_json *spec);
void td_default_container(struct td_arena *arena, struct td_json *container);
void td_default_volume(struct td_arena *arena, struct td_json *volume);

/* A member that is there and not null, or NULL. */
static inline struct td_json *td_kind_member(const struct td_json *object, td_str key)
{
    struct td_json *member = td_json_get(object, key);
    return td_json_is(member, TD_JSON_TYPE_NULL) ? NULL : member;
}

static inline td_str td_kind_text(const struct td_json *object, td_str key)
{
    return td_json_get_str(object, key, TD_STR_EMPTY);
}

/* The first item of a list or member of an object; NULL for anything else. */
static inline struct td_json *td_kind_first(const struct td_json *collection)
{
    bool has_items =
        td_json_is(collection, TD_JSON_TYPE_ARRAY) || td_json_is(collection, TD_JSON_TYPE_OBJECT);
    return has_items ? collection->first : NULL;
}
