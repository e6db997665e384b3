/*
 * What a command's argument SCENARIO means: a file, or a folder that holds a scenario.yaml.
 */
#pragma once

#include "base/arena.h"

/* The file's path: the argument itself, or one in the arena. Whether it is there is seen when it is
 * read. */
const char *td_scenario_path(struct td_arena *arena, const char *argument);
