/*
 * `tandem validate --migrate`: the Hvpas that the files could hold instead of what they hold.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "kube/manifest.h"

/* Prints them, as YAML with notes in comments or as JSON; returns the exit status: 1 when something
 * cannot be expressed. */
int td_validate_migrate(struct td_arena *arena, const struct td_manifest *manifest, bool is_json);
