/*
 * Small edits of resource lists: copies that may be changed, values by name, and the two resources
 * that vertical scaling is about. Lists stay sorted by name and live in the arena.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"
#include "kube/podresources.h"

#define TD_CPU TD_STR("cpu")
#define TD_MEMORY TD_STR("memory")

bool td_resource_is_scaled(td_str name); /* cpu or memory */

/* A copy whose quantities may be changed without touching the original. */
struct td_resource_list td_resource_list_copy(struct td_arena *arena,
                                              const struct td_resource_list *list);

/* The quantity of a resource in a list that may be changed, or NULL. */
struct td_quantity *td_resource_list_edit(struct td_resource_list *list, td_str name);

/* The quantity of a resource; the zero quantity when the list has none. */
struct td_quantity td_resource_list_value(const struct td_resource_list *list, td_str name);

/* Replaces or adds. Adding makes a new array. */
void td_resource_list_set(struct td_arena *arena, struct td_resource_list *list, td_str name,
                          const struct td_quantity *quantity);

/* Takes out a name, in place. */
void td_resource_list_drop(struct td_resource_list *list, td_str name);

/* Are all amounts of `wanted` in the list, and equal? */
bool td_resource_list_has_all(const struct td_resource_list *list,
                              const struct td_resource_list *wanted);
