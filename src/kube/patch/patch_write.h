/*
 * Operations of a JSON patch that is to be sent, appended to an array in the arena. An operation
 * always has a value member, null for a removal, as upstream's controllers write it.
 */
#pragma once

#include "base/arena.h"
#include "base/json/json.h"
#include "base/str.h"

/* `value` NULL is null. */
void td_patch_append(struct td_arena *arena, struct td_json *patch, const char *op, td_str path,
                     struct td_json *value);

/* The text of a patch of one operation. */
td_str td_patch_one(struct td_arena *arena, const char *op, td_str path, struct td_json *value);

/* One part of a path: '~' and '/' have meanings of their own. */
td_str td_patch_part(struct td_arena *arena, td_str part);
