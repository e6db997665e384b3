/*
 * What is kept of an object: its tree cut down to the members that deciders read, as text. Private
 * to the informers.
 */
#pragma once

#include "control/informers/informers.h"

/* Is all of it kept but its managedFields? Then there is nothing to cut. */
bool td_informers_keep_all(enum td_informer_kind kind);

/* A cut copy in the arena; texts are shared. */
struct td_json *td_informers_trim(struct td_arena *arena, enum td_informer_kind kind,
                                  const struct td_json *object);
