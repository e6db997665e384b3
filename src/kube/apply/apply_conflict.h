/*
 * Conflicts of one apply: for each other owner the fields it would lose. Collected in the order of
 * managers, told in upstream's words. In the arena; sets are borrowed.
 */
#pragma once

#include <stddef.h>

#include "kube/apply/managed.h"

struct td_error;

struct td_conflict {
    struct td_manager manager;
    const struct td_fieldset *fields; /* not empty */
};

struct td_conflicts {
    struct td_conflict *items;
    size_t count;
    size_t cap;
};

/* An empty set is no conflict and adds nothing. */
void td_conflicts_add(struct td_arena *arena, struct td_conflicts *conflicts,
                      const struct td_manager *manager, const struct td_fieldset *fields);

/* The conflicts that are not in `allowed`. */
struct td_conflicts td_conflicts_without(struct td_arena *arena,
                                         const struct td_conflicts *conflicts,
                                         const struct td_fieldset *allowed);

/* TD_CONFLICT with the message; *ret_json (may be NULL) gets an array of {manager, field}. */
int td_conflicts_report(struct td_arena *arena, const struct td_conflicts *conflicts,
                        struct td_json **ret_json, struct td_error *err);
