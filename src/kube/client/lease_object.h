/*
 * The Lease object (coordination.k8s.io/v1) as the elector reads and writes it. What a lease holds
 * besides its spec is kept as the server sent it, so a write changes nothing that is not ours.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/timefmt.h"
#include "kube/paths.h"

struct td_error;

struct td_lease_record {
    td_str holder; /* empty: no holder */
    int64_t duration_seconds;
    int64_t transitions;
    td_str acquire_time; /* as written */
    td_str spec;         /* the whole spec as JSON text, to notice any change */
};

struct td_api_path td_lease_path(td_str namespace, td_str name); /* name may be empty */

/* Texts are borrowed from `body` and the arena. TD_INVALID for what is no Lease. */
int td_lease_decode(struct td_arena *arena, td_str body, struct td_json **ret_object,
                    struct td_lease_record *ret, struct td_error *err);

/* A new object with metadata only. */
struct td_json *td_lease_new_object(struct td_arena *arena, td_str namespace, td_str name);

/* Sets those members of the spec; times are written as MicroTime. An empty acquire_time is `now`.
 */
void td_lease_set(struct td_arena *arena, struct td_json *object,
                  const struct td_lease_record *record, struct td_instant now);

td_str td_lease_time(struct td_arena *arena, struct td_instant now); /* with six digits */
