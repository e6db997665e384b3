/*
 * metadata.managedFields as a table of owners: who (manager, operation, version, subresource) owns
 * which fields since when. Decoded from an object, changed by apply.c, written back sorted as
 * upstream sorts. Everything lives in the arena; sets and texts borrow from the decoded object. One
 * owner, no locking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "base/timefmt.h"
#include "kube/apply/fieldset.h"

struct td_error;

/* Who an entry belongs to. Entries with the same identity are one. */
struct td_manager {
    td_str name;
    td_str api_version;
    td_str subresource;
    bool is_apply; /* operation Apply, whose identity leaves the version out; else Update */
};

struct td_managed_entry {
    td_str id; /* the identity as upstream's JSON text; the order of managers in messages */
    struct td_manager manager;
    const struct td_fieldset *fields;
    struct td_instant time; /* when has_time */
    bool has_time;
    bool is_present; /* false: the entry is gone, only its time is remembered */
};

struct td_managed {
    struct td_managed_entry *entries; /* sorted by id */
    size_t count;                     /* gone ones included */
};

enum td_managed_state {
    TD_MANAGED_ABSENT, /* no list, or one that is not a list of entries at all */
    TD_MANAGED_RESET,  /* an empty list, or one empty entry: forget all ownership */
    TD_MANAGED_LISTED,
};

/* What metadata.managedFields of an object asks for. */
enum td_managed_state td_managed_state(const struct td_json *object);

/* The owners of an object; the empty table when absent or reset. TD_INVALID for entries with a
 * wrong operation, version, type or field set, except when the list cannot be read as entries at
 * all: upstream takes that for an absent one. */
int td_managed_decode(struct td_arena *arena, const struct td_json *object, struct td_managed *ret,
                      struct td_error *err);

/* Replace metadata.managedFields of `object`, or remove it when no field has an owner. TD_LIMIT
 * when the list would be nested too deeply to be read again. */
int td_managed_encode(struct td_arena *arena, const struct td_managed *managed,
                      struct td_json *object, struct td_error *err);

/* The same entries in an array of their own. */
struct td_managed td_managed_copy(struct td_arena *arena, const struct td_managed *managed);

/* Is no entry present? */
bool td_managed_is_empty(const struct td_managed *managed);

/* The identity text of a manager. */
td_str td_managed_id(struct td_arena *arena, const struct td_manager *manager);

/* The entry of that identity, made (not present) when there is none. Valid until the next call. */
struct td_managed_entry *td_managed_entry(struct td_arena *arena, struct td_managed *managed,
                                          const struct td_manager *manager);

/* Merge the oldest updaters into "ancient-changes", one for each version, until at most ten are
 * left. */
void td_managed_cap(struct td_arena *arena, struct td_managed *managed);

/* The manager as conflict messages name it: `"hpa" with subresource "scale" using apps/v1`. */
td_str td_managed_describe(struct td_arena *arena, const struct td_manager *manager);
