/*
 * Request bodies in Kubernetes' protobuf form (application/vnd.kubernetes.protobuf): an envelope
 * that names the kind, around the message of that kind. A message becomes the tree that Go's JSON
 * of the same typed object would parse to, so whatever handles JSON handles it: names instead of
 * numbers, zero values printed or left out by each field's tags, quantities, times and embedded
 * JSON as in JSON. The numbers are those of the schema table (schema.h); fields that it does not
 * know are skipped, as a server does with a newer client's.
 *
 * Strings of the tree are slices of the body, so the body lives as long as the tree. Time and
 * memory are proportional to the body; the arena's cap is honoured.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

struct td_error;
struct td_json;

/* What the envelope says; slices of the body. */
struct td_proto_envelope {
    td_str api_version; /* may be empty; the caller then knows from the request what is meant */
    td_str kind;        /* the same */
    td_str message;
};

/* The envelope of a body. TD_INVALID when it is none, TD_LIMIT above TD_PROTO_BYTES_MAX. */
int td_proto_open(td_str body, struct td_proto_envelope *ret, struct td_error *err);

/* The message as a tree, beginning with the envelope's apiVersion and kind. Every kind of the
 * schema table is known; DeleteOptions under every version, since each group has its own name for
 * it. TD_INVALID names the field, as in "spec.containers[0].name: not UTF-8". */
int td_proto_decode(struct td_arena *arena, const struct td_proto_envelope *envelope,
                    struct td_json **ret, struct td_error *err);
