/*
 * What is kept of an object: its tree cut down to the members that deciders read, as text. Private
 * to the sight.
 */
#pragma once

#include "base/arena.h"
#include "base/json/json.h"
#include "control/sight.h"

/* Is all of it kept but its managedFields? Then there is nothing to cut. */
bool td_sight_keeps_all(enum td_sight_kind kind);

/* A cut copy in the arena; texts are shared. */
struct td_json *td_sight_keep(struct td_arena *arena, enum td_sight_kind kind,
                              const struct td_json *object);
