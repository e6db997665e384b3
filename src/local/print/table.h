/*
 * What `kubectl get` prints: the columns of a kind and the cells of one object, as the Table form
 * of the API has them. Cells are JSON values, one a column. Built-in kinds have upstream's columns
 * (table_kinds.c), custom ones those of their definition. Pure; everything is made in the arena and
 * shares texts with the object.
 */
#pragma once

#include "base/timefmt.h"
#include "local/resources/resource.h"

/* An array of columnDefinitions: name, type, format, description, priority. */
struct td_json *td_table_columns(struct td_arena *arena, struct td_resource_at at);

/* An array of as many cells, of an object in that version. */
struct td_json *td_table_cells(struct td_arena *arena, struct td_resource_at at,
                               const struct td_json *object, struct td_instant now);

/* The conditions of an object's row, or NULL when it has none: only pods that ended do. */
struct td_json *td_table_conditions(struct td_arena *arena, struct td_resource_at at,
                                    const struct td_json *object);

/* The time between as kubectl shows ages ("3d4h"); "<unknown>" when `since` is no time. */
td_str td_table_age(struct td_arena *arena, td_str since, struct td_instant now);
