/*
 * What is particular to a kind when it is written: defaults, what a client may not set, what must
 * hold. Built-in kinds by their own files (kinds_*.c), HPAs, VPAs and Hvpas by their rooms in api,
 * custom ones by their CRD. The order of a write is: decode and default, mutating webhooks, default
 * again, prepare, validate, validating webhooks. Pure functions on trees in the storage version's
 * shape, or of the version named; everything in the arena of the call.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/timefmt.h"
#include "kube/fielderror.h"
#include "local/resources/resource.h"

struct td_error;

enum td_write_operation {
    TD_WRITE_CREATE,
    TD_WRITE_UPDATE,
    TD_WRITE_STATUS, /* only status (and metadata where upstream allows it) */
    TD_WRITE_RESIZE, /* pods: only resources */
    TD_WRITE_EPHEMERAL,
};

struct td_kind_write {
    struct td_arena *arena;
    const struct td_resource *resource;
    enum td_write_operation operation;
    const struct td_json *old; /* stored; NULL on create */
    struct td_json *object;    /* changed in place by default and prepare */
    struct td_instant now;
    bool has_no_strategy;     /* the gate HPASelectionStrategy is off */
    struct td_json *warnings; /* array of strings for Warning headers; appended to */
};

/* Can it be decoded as `version` of its resource? A wrong type is TD_INVALID with its place
 * ("spec.replicas: ..."): a 400, in front of which the caller says what it was decoding. Then
 * defaults, in place, and the form in which a server writes it: no nulls, quantities canonical.
 * Idempotent. */
int td_kind_default(struct td_arena *arena, const struct td_resource *resource, size_t version,
                    struct td_json *object, struct td_error *err);

/* Members that may be written with another name get the one that they are stored with; what an
 * apply owns goes by that name. Part of td_kind_default. */
void td_kind_rename(const struct td_resource *resource, struct td_arena *arena,
                    struct td_json *object);

/* In the storage version: status cleared on create, kept on update, taken alone by a status write;
 * generation set; what clients cannot write put back. Metadata common to all kinds (uid, name,
 * times, resourceVersion, managedFields) is the caller's, and there before this is called: a job's
 * selector and a service's address come from them. */
void td_kind_prepare(struct td_kind_write *write);

/* What is wrong with write->object, immutable fields included. Names and metadata are checked here
 * too. */
void td_kind_validate(const struct td_kind_write *write, struct td_field_errors *errors);

/* The value of a field selector's field for this kind ("spec.nodeName"), or false when the kind
 * does not support it: metadata.name and metadata.namespace always do. */
bool td_kind_field(const struct td_resource *resource, td_str field, const struct td_json *object,
                   td_str *ret);
/* Is it supported at all? */
bool td_kind_has_field(const struct td_resource *resource, td_str field);
