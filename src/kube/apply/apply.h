/*
 * Server-side apply: who owns which field, what an apply merges, removes or conflicts with, and how
 * a plain update changes ownership. Pure: stored object and request in, next stored object out, as
 * upstream's field manager with structured merge and diff. Time enters as an argument. Inputs are
 * never changed; the result is a new tree in the arena.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/timefmt.h"
#include "kube/schema/schema.h"

struct td_error;

struct td_apply_request {
    const struct td_schema_type
        *type; /* of the kind; td_schema_any_object() for one without schema */
    td_str api_version;
    td_str kind;           /* an apply of another kind is refused; empty: not checked */
    td_str manager;        /* empty: "unknown" */
    td_str subresource;    /* empty for the main resource */
    struct td_instant now; /* written as the time of changed entries */
    bool force;            /* apply: take fields over instead of failing */
};

/* `live` NULL: the object does not exist yet. Conflicts are TD_CONFLICT with upstream's text
 * ("Apply failed with 1 conflict: ...", cut as any message); when ret_conflicts is not NULL it then
 * gets a JSON array of {manager, field} objects for the Status causes. `manager` is the owner as
 * upstream's message shows it, after "conflict with ": `"hpa" using apps/v1`. Very many or very
 * long paths are cut at TD_APPLY_CONFLICT_BYTES_MAX. The result shares texts with both inputs, so
 * those must live as long as it does. */
int td_apply(struct td_arena *arena, const struct td_apply_request *request,
             const struct td_json *live, const struct td_json *applied, struct td_json **ret,
             struct td_json **ret_conflicts, struct td_error *err);

/* A whole-object write by `manager`: ownership is recomputed by comparing; managedFields present in
 * `updated` are taken as given, an empty list resets ownership. */
int td_apply_update(struct td_arena *arena, const struct td_apply_request *request,
                    const struct td_json *live, const struct td_json *updated, struct td_json **ret,
                    struct td_error *err);
