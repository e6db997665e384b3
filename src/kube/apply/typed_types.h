/*
 * Shared by the walks of typed.h: which of the three forms (map, scalar, list) a type allows, the
 * type of a member, and list items sorted by their key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/apply/fieldpath.h"
#include "kube/schema/schema.h"

/* Forms in the order in which upstream tries them. A type usually has one, an untyped value all. */
#define TD_FORM_MAP 1u
#define TD_FORM_SCALAR 2u
#define TD_FORM_LIST 4u

/* All forms of the type; 0 for NULL, the type of what no schema knows. */
unsigned td_typed_forms(const struct td_schema_type *type);

/* The forms that `value` can be handled in: its own when the type has it, else all of the type's;
 * NULL and null do not decide. */
unsigned td_typed_forms_of(const struct td_schema_type *type, const struct td_json *value);

/* The first form of a mask in upstream's order, 0 when it has none. */
unsigned td_typed_first_form(unsigned forms);

/* Is the type, taken in that form, owned as a whole? */
bool td_typed_is_atomic(const struct td_schema_type *type, unsigned form);

/* The type of a member of a map; *ret_is_named tells whether the schema declares it by name. */
const struct td_schema_type *td_typed_member(const struct td_schema_type *type, td_str name,
                                             bool *ret_is_named);

/* The type of a list's items. */
const struct td_schema_type *td_typed_item(const struct td_schema_type *type);

struct td_typed_item {
    struct td_field_step step;
    const struct td_json *value;
    size_t position; /* in the list */
    size_t same;     /* how many items have this step; only kept for the first of them */
};

/* A list's items twice: as they stand, and sorted by step with equal ones in list order. */
struct td_typed_items {
    struct td_typed_item *items;
    const struct td_typed_item **sorted;
    size_t count;
};

/* What is wrong with an item that has no step, or NULL when `ret` was filled. */
const char *td_typed_step(struct td_arena *arena, const struct td_schema_type *list,
                          const struct td_json *item, struct td_field_step *ret);

/* Items without a step are left out (validation refused them before). `list` may be NULL. */
struct td_typed_items td_typed_items_new(struct td_arena *arena, const struct td_schema_type *type,
                                         const struct td_json *list);

/* Index into `sorted` of the first item with that step, or items->count. */
size_t td_typed_items_find(const struct td_typed_items *items, const struct td_field_step *step);
