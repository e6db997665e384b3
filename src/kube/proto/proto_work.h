/*
 * What the two halves of the protobuf decoder share: proto.c walks messages by the schema table,
 * proto_leaf.c reads the values at its ends. Private to them.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json.h"
#include "kube/objectpath.h"
#include "kube/proto/proto_wire.h"
#include "kube/schema/schema.h"

struct proto_work {
    struct td_arena *arena;
    struct td_error *err; /* may be NULL */
};

/* Sets TD_INVALID with the path in front. */
int td_proto_fail(const struct proto_work *work, const struct td_field_path *path,
                  const char *what);

/* Puts the path in front of an error that is set already; returns `code`. */
int td_proto_wrap(const struct proto_work *work, const struct td_field_path *path, int code);

/* Arrays and objects around the value at `path`. */
size_t td_proto_depth(const struct td_field_path *path);

/* A value that is no object, list, map or choice, in its JSON form. */
int td_proto_leaf(const struct proto_work *work, const struct td_schema_type *type,
                  const struct td_wire_field *wire, const struct td_field_path *path,
                  struct td_json **ret);

/* What Go prints for such a value that was never set. */
struct td_json *td_proto_zero_leaf(const struct proto_work *work,
                                   const struct td_schema_type *type);

/* The wire type of a kind; of a list, that of its elements when they are not packed. */
enum td_wire_type td_proto_wire_type(const struct td_schema_type *type);
