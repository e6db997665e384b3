/*
 * Structured merge and diff: what server-side apply does with an object whose shape is known. Every
 * function walks a value along its schema type; all are pure, make new trees and sets in the arena,
 * share texts (never nodes) with their inputs and leave those as they were. Only validation can
 * fail: the other walks take values that td_typed_validate accepted, and assert its depth limit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/apply/fieldpath.h"
#include "kube/apply/fieldset.h"
#include "kube/schema/schema.h"

struct td_error;

/* Does `value` have the shape of `type`? Unknown fields, wrong scalars, list items without a usable
 * key and (unless allowed) two list items of one key are TD_INVALID; too deep a value is TD_LIMIT.
 * The message begins with the path. */
int td_typed_validate(struct td_arena *arena, const struct td_schema_type *type,
                      const struct td_json *value, bool allow_duplicates, struct td_error *err);

/* Every field and list item that `value` mentions. */
const struct td_fieldset *td_typed_fields(struct td_arena *arena, const struct td_schema_type *type,
                                          const struct td_json *value);

/* `over` laid over `base`: nothing is removed, `over` wins, lists merge by their keys. */
struct td_json *td_typed_merge(struct td_arena *arena, const struct td_schema_type *type,
                               const struct td_json *base, const struct td_json *over);

struct td_typed_changes {
    const struct td_fieldset *removed;
    const struct td_fieldset *modified;
    const struct td_fieldset *added;
};

struct td_typed_changes td_typed_compare(struct td_arena *arena, const struct td_schema_type *type,
                                         const struct td_json *before, const struct td_json *after);

/* `value` without the fields and items of `set`; what became empty is null, as upstream leaves it.
 */
struct td_json *td_typed_remove(struct td_arena *arena, const struct td_schema_type *type,
                                const struct td_json *value, const struct td_fieldset *set);

/* `set` with each declared field on the way to a member made a member too. */
const struct td_fieldset *td_typed_with_named(struct td_arena *arena,
                                              const struct td_schema_type *type,
                                              const struct td_fieldset *set);

/* `set` as it has to be under today's schema: parts of what is now atomic become the whole. */
const struct td_fieldset *td_typed_reconcile(struct td_arena *arena,
                                             const struct td_schema_type *type,
                                             const struct td_fieldset *set);
