/*
 * Writes and reads by the cluster's own controllers (garbage collection, namespaces, budgets,
 * custom resource definitions, workloads): no request, no webhooks, no managed fields of their
 * own, but the same version, event and generation rules as any write. Trees are in the storage
 * version. A write that another one overtook is TD_CONFLICT: read again.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "local/api/api.h"
#include "local/resources/resource.h"

struct td_error;

/* The stored object as a new tree in the arena; texts are copied. TD_NOT_FOUND. */
int td_edit_get(struct td_api *api, const struct td_resource *resource, td_str ns, td_str name,
                struct td_arena *arena, struct td_json **ret, struct td_error *err);

/* Create (no resourceVersion in the object) or replace (its resourceVersion must be the stored
 * one). uid, creationTimestamp, generation and resourceVersion are filled in, in place. An object
 * that is being deleted and has lost its last finalizer goes. Writing what is already there changes
 * nothing. */
int td_edit_put(struct td_api *api, const struct td_resource *resource, struct td_arena *arena,
                struct td_json *object, struct td_error *err);

/* As a delete request with that propagation ("Background", "Foreground", "Orphan", empty for the
 * kind's own); a pod with grace gets its deletionTimestamp, grace 0 removes it. uid empty: any. */
int td_edit_delete(struct td_api *api, const struct td_resource *resource, td_str ns, td_str name,
                   td_str uid, td_str propagation, int64_t grace_seconds, struct td_error *err);

/* An event as controllers write them (aggregated by count on the same object and reason). */
void td_edit_event(struct td_api *api, const struct td_json *about, td_str type, td_str reason,
                   td_str component, td_str message);

/* The same with all that can be said. Repeats are counted by everything here but the times. */
struct td_occasion {
    td_str type;
    td_str reason;
    td_str component;
    td_str host; /* the node where it happened; may be empty */
    td_str part; /* of the object: "spec.containers{app}"; may be empty */
    td_str message;
};
void td_edit_record(struct td_api *api, const struct td_json *about,
                    const struct td_occasion *event);
