/*
 * Sets of field paths, the language of field ownership (managedFields, fieldsV1). A set is a tree
 * of path elements: a field (f:name), a list item by key (k:{...}), a list item by value (v:...),
 * or an index; an element is itself a member (".") or only on the way to members. Immutable values
 * in an arena; every operation returns a new set and shares what it can.
 */
#pragma once

#include "base/json/json.h"

struct td_error;
struct td_fieldset; /* NULL is the empty set */

int td_fieldset_parse(struct td_arena *arena, const struct td_json *fields_v1,
                      const struct td_fieldset **ret, struct td_error *err);
struct td_json *td_fieldset_to_json(struct td_arena *arena, const struct td_fieldset *set);

const struct td_fieldset *td_fieldset_union(struct td_arena *arena, const struct td_fieldset *a,
                                            const struct td_fieldset *b);
const struct td_fieldset *td_fieldset_intersection(struct td_arena *arena,
                                                   const struct td_fieldset *a,
                                                   const struct td_fieldset *b);
const struct td_fieldset *td_fieldset_difference(struct td_arena *arena,
                                                 const struct td_fieldset *a,
                                                 const struct td_fieldset *b);
